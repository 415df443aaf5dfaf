// ---------------------------------------------------------------- what is shown, and where it is kept
const NS = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const el = (tag, attrs = {}, ...kids) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) {
    if (v == null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...kids.filter((kid) => kid != null));
  return e;
};
const sv = (tag, attrs = {}, ...kids) => {
  const e = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attrs)) if (v != null) e.setAttribute(k, v);
  e.append(...kids);
  return e;
};
const html = (s) => s.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
const marked = (s) => html(s).replace(/`([^`]+)`/g, "<code>$1</code>");
const rich = (tag, attrs, text) => Object.assign(el(tag, attrs), { innerHTML: text });
const count = (n) => n.toLocaleString("en");
const KINDS = ["flow", "anti", "output", "update"];
const DASHES = { anti: "5 3", output: "2 3", update: "8 2 2 2" };
const TARGETS = { cuda: "CUDA", hip: "HIP", opencl: "OpenCL", c: "C" };

let D = null; // the data
const state = {
  step: 0, stmt: null, target: "cuda", tab: "deps", x: null, y: null, z: null, colour: null,
  fixed: {}, params: {}, cursor: null, pinned: false, unfold: false, hot: [], kernel: null, source: null, keepAxes: false, keepColour: false,
};
const st = () => D.steps[state.step];
const ker = () => st().kernel;
const insn = (name = state.stmt) => ker().insns.find((i) => i.name === name) || ker().insns[0];
const hue = (name) => {
  const i = ker().insns.findIndex((x) => x.name === name);
  return i < 0 ? "var(--c7)" : `var(--c${i % 7})`;
};
const instancesOf = (refusal) => [refusal.source, refusal.sink].filter(Boolean);
const labelOf = (n) => (n ? D.steps[n].label : "the kernel as it is written");

function readHash() {
  const h = new URLSearchParams(location.hash.slice(1));
  const last = D.steps.length - 1;
  const step = Number.parseInt(h.get("step"), 10);
  state.step = Number.isNaN(step) ? last : Math.min(last, Math.max(0, step));
  state.stmt = h.get("stmt");
  if (h.get("tab")) state.tab = h.get("tab");
  if (h.get("target") in TARGETS) state.target = h.get("target");
  if (h.get("panel")) document.body.dataset.panel = h.get("panel");
  if (["light", "dark"].includes(h.get("theme"))) setTheme(h.get("theme"));
  if (h.get("at")) {
    state.cursor = h.get("at").split(",").map(Number);
    state.pinned = true;
  }
}
function writeHash() {
  const h = { step: state.step, stmt: state.stmt || "", target: state.target, tab: state.tab };
  if (state.pinned && state.cursor) h.at = state.cursor.join();
  try {
    history.replaceState(null, "", "#" + new URLSearchParams(h));
  } catch {
    // the frame of a notebook has no address of its own
  }
}
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (D) drawSpace(); // pixels have no variables
}

// The statement, axes and colours that a step opens with.
function resetView() {
  const refusal = st().refusal;
  state.params = { ...D.params };
  if (refusal) {
    Object.assign(state.params, refusal.params);
    const [first] = instancesOf(refusal);
    if (first) state.stmt = first.insn;
  }
  if (!insn()) return;
  if (insn().name !== state.stmt) {
    state.stmt = [...ker().insns].sort((a, b) => b.loops.length - a.loops.length)[0].name;
  }
  const all = axes();
  const written = all.filter((a) => a.written);
  const pick = written.length >= 2 ? written.slice(0, 2) : all.slice(-2);
  const known = (id) => all.some((a) => a.id === id);
  if (!state.keepAxes || !known(state.x) || !known(state.y) || state.x === state.y) {
    state.y = pick.length > 1 ? pick[0].id : null;
    state.x = pick.at(-1)?.id ?? null;
    state.keepAxes = false;
  }
  if (!state.keepAxes || !known(state.z)) state.z = null;
  state.fixed = {};
  if (refusal) showClash(all);
  const c = colours();
  if (!state.keepColour || !c.some((x) => x.id === state.colour)) {
    state.colour = (["clash", "group", "tile"].map((id) => c.find((x) => x.id === id)).find(Boolean) || c[0]).id;
  }
  if (!refusal && !state.pinned) state.cursor = null;
}

// The slice in which the first of two instances lies, along an axis on which they differ.
function showClash(all) {
  const i = insn();
  const [a, b] = instancesOf(st().refusal);
  if (a?.insn === i.name) i.loops.forEach((l, n) => (state.fixed[l.name] = a.point[n]));
  if (a?.insn !== b?.insn || a?.insn !== i.name) return;
  const differ = all.filter((axis) => project(i, a.point, axis) !== project(i, b.point, axis));
  const shown = differ.some((axis) => [state.x, state.y, state.z].includes(axis.id));
  if (differ.length && !shown) state.x = differ[0].id;
}

// The loops as they were written, where the steps say what they are in today's, then today's.
function axes(i = insn()) {
  if (!i) return [];
  const out = [];
  for (const o of i.origin || []) {
    const same = o.row.length === 3 && o.row[0] === 0 && o.row[1] === o.name && o.row[2] === 1;
    out.push({ id: "o:" + o.name, name: same ? o.name : `${o.name} as written`, short: o.name, row: o.row, written: true });
  }
  const plain = (name) => out.some((o) => o.row.length === 3 && o.row[0] === 0 && o.row[1] === name && o.row[2] === 1);
  for (const l of i.loops) {
    if (plain(l.name)) continue;
    out.push({ id: "l:" + l.name, name: l.name + (l.tag ? ` {${l.tag}}` : ""), short: l.name, row: [0, l.name, 1] });
  }
  return out;
}

// Loops over blocks: a bound, a condition or an index has a multiple of them and of another loop.
function blocks(i) {
  const found = new Set();
  const names = new Set(i.loops.map((l) => l.name));
  const look = (row) => {
    const inRow = [];
    for (let n = 1; n < row.length; n += 2) {
      if (typeof row[n] === "string") {
        if (names.has(row[n])) inRow.push([row[n], Math.abs(row[n + 1])]);
      } else look(row[n][0]);
    }
    if (inRow.some(([, k]) => k === 1)) for (const [name, k] of inRow) if (k > 1) found.add(name);
  };
  for (const a of i.access) a.index.forEach((row) => row && look(row));
  for (const l of i.loops) for (const c of l.domain) for (const row of [...(c.eq || []), ...(c.ge || [])]) look(row);
  return found;
}

function colours(i = insn()) {
  const out = [];
  const tagged = (kind) => i.loops.filter((l) => l.tag && l.tag.startsWith(kind)).map((l) => l.name);
  const tiles = blocks(i);
  if (st().refusal && wrongPairs(i)) out.push({ id: "clash", name: "what goes wrong", clash: st().refusal.kind === "placement" ? "race" : "would run in the wrong order" });
  const [groups, items] = [tagged("g."), tagged("l.")];
  const tile = i.loops.filter((l) => tiles.has(l.name)).map((l) => l.name);
  if (groups.length) out.push({ id: "group", name: "work-group", loops: groups });
  if (tile.length) out.push({ id: "tile", name: "tile", loops: tile });
  if (items.length) out.push({ id: "item", name: "work-item", loops: items, ramp: true });
  out.push({ id: "order", name: "order of execution", ramp: true });
  for (const l of i.loops) out.push({ id: "c:" + l.name, name: l.name, loops: [l.name] });
  return out;
}
function usedBy(row) {
  const out = [];
  for (let n = 1; n < row.length; n += 2) out.push(...(typeof row[n] === "string" ? [row[n]] : usedBy(row[n][0])));
  return out;
}
