// ------------------------------------------------------------------------------ steps, kernel, source
function drawSteps() {
  const list = $("steplist");
  list.replaceChildren();
  D.steps.forEach((s, n) => {
    list.append(el("li", {}, el("button", { class: s.refusal ? "bad" : "", "aria-current": n === state.step ? "step" : null, onclick: () => go(n) },
      el("span", { class: "n" }, s.refusal ? "✕" : String(n)), rich("span", { class: "t" }, marked(labelOf(n))), el("span", { class: "m" }))));
  });
  drawConditions(); // which leaves the list less room
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

// How a condition was found to hold.
const MEANS = {
  empty: "isl: no counterexample", loops: "decided by the order of the loops", commutes: "updates commute",
  reuse: "only memory is used again, iterations stay whole", law: "by laws", form: "read off the kernel and the arguments", nothing: "no case of it in this step", given_up: "what does not meet it is left as it was",
};
const evidence = (e) =>
  MEANS[e.means] + (e.of ? ": " + e.of : "") + (e.times > 1 ? `, ${e.times} times` : "") + (e.under.length ? `, where ${e.under.join(", ")}` : "");

// What the primitive has to prove of any kernel, and how the step did.
function drawConditions() {
  const s = st();
  const p = $("proof");
  p.replaceChildren();
  const refused = s.refusal?.obligation;
  const info = s.primitive && D.primitives[s.primitive];
  if (!info) {
    p.append(el("h2", {}, s.refusal ? "Refused" : "As written"));
    p.append(el("p", { class: "small muted" }, s.refusal ? "The last step of a strategy; its refusal is under Refusal." : "Choose a step to see what it proved."));
    return;
  }
  p.append(el("h2", {}, s.refusal ? "Not proved" : "What the step proved"), rich("div", { class: "small muted" }, marked(info.summary)));
  const proved = new Map(s.proved.map((row) => [row.id, row]));
  const rows = info.obligations.map(([id, says]) => ({ id, says, by: proved.get(id)?.by }));
  for (const row of s.proved) if (!rows.some((r) => r.id === row.id)) rows.push(row);
  if (refused && !rows.some((r) => r.id === refused)) rows.unshift({ id: refused, says: s.refusal.says });
  const kind = ({ id, by }) => (id === refused ? "no" : !by ? "un" : by.every((e) => ["nothing", "given_up"].includes(e.means)) ? "na" : "yes");
  const rank = (row) => ["no", "yes", "na", "un"].indexOf(kind(row)) * 2 + (row.by?.every((e) => e.means === "form") ? 1 : 0);
  rows.sort((a, b) => rank(a) - rank(b));
  const list = el("ul");
  for (const row of rows) {
    const told = row.by ? row.by.map(evidence) : [row.id === refused ? s.refusal.clash : "not looked at"];
    const more = told.slice(0, 30).map((text) => rich("li", {}, marked(text)));
    if (told.length > 30) more.push(el("li", {}, `and ${told.length - 30} more`));
    list.append(el("li", { class: kind(row), title: told[0].replace(/`/g, "") },
      el("details", {}, el("summary", {}, row.says + " ", el("span", { class: "id" }, row.id)), el("ul", { class: "by" }, ...more))));
  }
  const keeps = s.keeps ? el("p", { class: "small" }, `Keeps ${s.keeps}.`) : null;
  p.append(list, ...[keeps].filter(Boolean), el("details", { class: "small" }, el("summary", {}, "Arguments"), el("code", {}, JSON.stringify(s.args))));
}

const paint = (t) =>
  html(t)
    .replace(/^(\s*)(for|param|arg|temp|table|assume|kernel|call|launch|rule)\b/, "$1<span class=kw>$2</span>")
    .replace(/ (in|where|if) /g, " <span class=kw>$1</span> ")
    .replace(/\{([gl]\.\d|unroll|nounroll|vector[^}]*)\}$/, "<span class=tag>$1</span>");

function line(text, o) {
  const sw = el("span", { class: "sw" });
  const stmts = o.stmts || [];
  const all = stmts.length ? stmts : o.around || [];
  sw.classList.toggle("thin", !stmts.length);
  const colours = all.slice(0, 4);
  if (all.length === 1) sw.style.background = hue(all[0]);
  else if (all.length) {
    const part = colours.map((s, i, a) => `${hue(s)} ${(i / a.length) * 100}% ${((i + 1) / a.length) * 100}%`);
    sw.style.background = `linear-gradient(${part.join(",")})`;
  }
  const jump = o.since == null ? el("span", { class: "si" })
    : el("button", { class: "si", title: `since step ${o.since}: ${labelOf(o.since).replace(/`/g, "")}`, "aria-label": `go to step ${o.since}`, tabindex: -1,
        onclick: (e) => { e.stopPropagation(); go(o.since); } }, String(o.since));
  const row = el("div", { class: "ln" + (o.cls ? " " + o.cls : "") + (all.length ? " stmt" : ""), title: o.title }, sw, el("span", { class: "no" }, o.no ?? ""), jump,
    el("span", { class: "mk" }, o.mk || ""), rich("span", { class: "tx" }, o.html || paint(text)));
  if (all.length) {
    row.addEventListener("pointerenter", () => hot(all));
    row.addEventListener("pointerleave", () => hot([state.stmt]));
    row.addEventListener("click", () => choose(all[(all.indexOf(state.stmt) + 1) % all.length]));
  }
  return row;
}

function drawKernel() {
  const s = st();
  const k = ker();
  $("kh").textContent = s.refusal ? "Kernel the step met" : state.step ? `Kernel after step ${state.step}` : "Kernel as written";
  const byLine = {};
  const loops = {};
  for (const i of k.insns) {
    (byLine[i.line] ||= []).push(i.name);
    for (const l of i.loops) (loops[l.line] ||= []).push(i.name);
  }
  const gone = {};
  if (!s.refusal && $("showdel").checked) for (const [at, old] of k.removed) (gone[at] ||= []).push(...old);
  const declares = (i) => /^(param|arg|temp|table|assume) /.test(k.lines[i]);
  const fresh = (i) => state.step > 0 && !s.refusal && k.since[i] === state.step;
  const folding = k.lines.filter((_, i) => declares(i)).length > 4 && !state.unfold;
  const rows = [];
  let folded = [];
  state.rowOf = {};
  const flush = () => {
    if (!folded.length) return;
    const what = /^table \w+ =/.test(k.lines[folded[0]]) ? "table" : "declaration";
    const open = () => { state.unfold = true; drawKernel(); };
    const text = `▸ ${folded.length} ${what}${folded.length > 1 ? "s" : ""}`;
    rows.push({ text, make: () => el("button", { class: "fold", onclick: open }, text) });
    folded = [];
  };
  const removed = (i) => {
    for (const d of gone[i] || []) if (d.trim()) rows.push({ text: d, make: () => line(d, { cls: "del", mk: "−" }) });
  };
  k.lines.forEach((t, i) => {
    if (folding && declares(i) && !fresh(i) && !gone[i]) return void folded.push(i);
    if (!declares(i) && (t || !folded.length)) flush();
    removed(i);
    if (!t && (folding || !k.lines[i - 1])) return;
    const [stmts, around] = [byLine[i], loops[i]];
    const is = fresh(i) && t !== "";
    if (stmts) state.rowOf[stmts[0]] = rows.length;
    const make = () => line(t, { no: i + 1, since: t ? k.since[i] : null, cls: is ? "add" : "", mk: is ? "+" : "", stmts, around });
    rows.push({ text: t, stmts, around, fresh: is, make });
  });
  flush();
  removed(k.lines.length);
  state.kernel.set(rows);
  arcs();
}

// Arrows of the dependences of the chosen statement, next to the text.
function arcs() {
  const box = $("ktext");
  const on = $("showarcs").checked && st().deps.length > 0;
  box.querySelector("svg.arcs")?.remove();
  box.classList.toggle("arcson", on);
  if (!on) return;
  const svg = sv("svg", { class: "arcs", width: 10, height: 10, "aria-hidden": "true" });
  const seen = new Set();
  const edge = innerWidth <= 700 ? 29 : 44;
  const y = (name) => (name in state.rowOf ? state.kernel.top(state.rowOf[name]) + 10 : null);
  const heads = sv("defs");
  for (const k of KINDS) {
    heads.append(sv("marker", { id: "m-" + k, viewBox: "0 0 6 6", refX: 5.4, refY: 3, markerWidth: 6, markerHeight: 6, markerUnits: "userSpaceOnUse", orient: "auto" },
      sv("path", { d: "M0 0L6 3L0 6z", style: `fill:var(--${k})` })));
  }
  svg.append(heads);
  const mine = st().deps.filter((d) => {
    const key = d.kind + " " + d.source + " " + d.sink;
    const own = (d.source === state.stmt || d.sink === state.stmt) && y(d.source) != null && y(d.sink) != null;
    return own && !seen.has(key) && seen.add(key);
  });
  mine.sort((p, q) => Math.abs(y(p.source) - y(p.sink)) - Math.abs(y(q.source) - y(q.sink)));
  const shift = { flow: 0, anti: 4, output: -4, update: 2 };
  mine.forEach((d, n) => {
    const p = { fill: "none", style: `stroke:var(--${d.kind})`, "stroke-width": 1.6, "stroke-dasharray": DASHES[d.kind], "marker-end": `url(#m-${d.kind})` };
    const [a, b] = [y(d.source) + shift[d.kind], y(d.sink) + shift[d.kind]];
    const lane = Math.max(3, edge - 13 - n * Math.min(6, (edge - 16) / Math.max(1, mine.length)));
    const bow = b > a ? 6 : -6;
    const path = d.source === d.sink
      ? `M${edge - 2} ${a - 5}C${edge - 15} ${a - 10} ${edge - 15} ${a + 10} ${edge - 2} ${a + 5}`
      : `M${edge - 2} ${a}H${lane + 6}Q${lane} ${a} ${lane} ${a + bow}V${b - bow}Q${lane} ${b} ${lane + 6} ${b}H${edge - 2}`;
    svg.append(sv("path", { d: path, ...p }));
  });
  box.append(svg);
}

// Brings what a step changed, else the chosen statement, into sight.
function revealAll() {
  const { kernel, source } = state;
  const first = (rows, ...tests) => tests.map((test) => rows.find(test)).find((n) => n >= 0) ?? -1;
  const mine = (row) => row.stmts?.includes(state.stmt);
  kernel.reveal(first(kernel, (row) => row.fresh && row.stmts, (row) => row.fresh && row.around, mine));
  source.reveal(first(source, (row) => row.fresh && row.stmts, (row) => row.fresh, mine));
}

function drawSource() {
  const tabs = $("targets");
  const all = st().sources;
  const src = all[state.target] || Object.values(all)[0];
  tabs.replaceChildren();
  for (const t of Object.keys(TARGETS).filter((t) => t in all)) {
    const show = () => { state.target = t; drawSource(); drawDetail(); writeHash(); };
    tabs.append(el("button", { role: "tab", "aria-selected": String(t === state.target), onclick: show }, TARGETS[t]));
  }
  const used = (src?.used ?? []).map((u) => `${u.registers} registers, ${u.spilled ? `${count(u.spilled)} B spilled` : "no spills"}`);
  const group = src?.launch && state.target !== "c" ? [`work-group ${src.launch.block.join(" × ")}`] : [];
  $("res").textContent = [...group, ...used].join("; ");
  $("res").title = [...(src?.used ?? []).map((u) => `${u.entry}: ${u.text}`), src?.used_error].filter(Boolean).join("\n");
  if (!src || src.error) {
    state.source.set([]);
    $("stext").append(rich("div", { class: "pad wrap" }, "<b>No source after this step.</b> " + marked(src ? src.error : "")));
    return;
  }
  const told = state.step > 0 && !st().refusal;
  const gone = {};
  if (told && $("showdel").checked) for (const [at, old] of src.removed) (gone[at] ||= []).push(...old);
  const names = (list) => (list?.length ? list.map((n) => ker().insns[n].name) : undefined);
  const rows = [];
  const removed = (i) => {
    for (const d of gone[i] || []) if (d.trim()) rows.push({ text: d, make: () => line(d, { cls: "del", mk: "−", html: html(d) }) });
  };
  src.lines.forEach((t, i) => {
    removed(i);
    const barrier = src.barriers[i];
    const fresh = told && src.since[i] === state.step && t.trim() !== "";
    const stmts = names(src.insns[i]);
    const around = barrier ? [...new Set(barrier.flatMap((b) => [b.source, b.sink]))] : names(src.around[i]);
    const make = () => {
      let h = html(t).replace(/(\/\/.*)$/, "<span class=cm>$1</span>");
      if (barrier) h = `<span class=barrier>${h}</span>`;
      const mk = barrier ? "‖" : fresh ? "+" : "";
      return line(t, { no: i + 1, since: t.trim() ? src.since[i] : null, stmts, around, html: h || " ", cls: fresh ? "add" : "", mk, title: barrier && separates(barrier) });
    };
    rows.push({ text: t, line: i, stmts, around, fresh, make });
  });
  removed(src.lines.length);
  state.source.set(rows);
}

// What a barrier is for.
function separates(barrier) {
  const one = (b) => `${b.source} before ${b.sink}${b.carrier ? ` of later iterations of ${b.carrier}` : ""}, through ${b.var}`;
  if (barrier.length) return "separates " + barrier.map(one).join("; ");
  return state.target === "opencl" ? "for compilers of OpenCL C, around a loop with a barrier" : "what is under way is finished here";
}

function hot(names) {
  state.hot = names.filter(Boolean);
  state.kernel.lightAll();
  state.source.lightAll();
}
function choose(name) {
  if (name === state.stmt) return;
  state.stmt = name;
  state.cursor = null;
  state.pinned = state.keepColour = state.keepAxes = false;
  resetView();
  arcs();
  hot([name]);
  for (const rows of [state.kernel, state.source]) rows.reveal(rows.find((row) => row.stmts?.includes(name)));
  drawSpace();
  drawDetail();
  writeHash();
}
