// -------------------------------------------------------------------------------------------- details
const TABS = [["deps", "Dependences"], ["counts", "Counts"], ["roofline", "Roofline"], ["refusal", "Refusal"]];
const tabShown = (id) => (id !== "refusal" || st().refusal) && (id !== "roofline" || D.performance);

function drawDetail() {
  const tabs = $("tabs");
  const body = $("dbody");
  tabs.replaceChildren();
  body.replaceChildren();
  const shown = TABS.filter(([id]) => tabShown(id));
  if (!shown.some(([id]) => id === state.tab)) state.tab = "deps";
  for (const [id, name] of shown) {
    const show = () => { state.tab = id; drawDetail(); writeHash(); };
    tabs.append(el("button", { role: "tab", "aria-selected": String(id === state.tab), onclick: show }, name));
  }
  ({ deps: drawDeps, counts: drawCounts, roofline: drawRoofline, refusal: drawRefusal })[state.tab](body);
}

const signed = (v) => (v > 0 ? "+" : v < 0 ? "−" : "") + Math.abs(v);

// How far apart pairs are in the loops as written, or in today's, as far as pairs were looked at.
function distance(d) {
  const [a, b] = [d.source, d.sink].map((name) => ker().insns.find((i) => i.name === name));
  const loops = (i) => new Map(i.origin.length ? i.origin.map((o) => [o.name, o.row]) : i.loops.map((l) => [l.name, [0, l.name, 1]]));
  const [from, to] = [loops(a), loops(b)];
  const shared = [...from.keys()].filter((name) => to.has(name));
  const at = (i, point, row) => {
    const env = { ...state.params };
    i.loops.forEach((l, n) => (env[l.name] = point[n]));
    return value(row, env);
  };
  const bounds = {};
  let [looked, pairs] = [0, 0];
  try {
    for (const p of points(a, { ...state.params })) {
      if (looked++ > 300 || pairs > 80) break;
      for (const q of partners(d, p, b, true, state.params, 3)) {
        pairs++;
        for (const name of shared) {
          const v = at(b, q, to.get(name)) - at(a, p, from.get(name));
          const [lo, hi] = bounds[name] || [v, v];
          bounds[name] = [Math.min(lo, v), Math.max(hi, v)];
        }
      }
    }
  } catch (error) {
    if (!(error instanceof Unbounded)) throw error;
  }
  const seen = shared.filter((name) => bounds[name]).map((name) => {
    const [lo, hi] = bounds[name];
    return `${name} ${lo === hi ? signed(lo) : `${signed(lo)} to ${signed(hi)}`}`;
  });
  return seen.length ? `in ${pairs} pairs that were looked at: ${seen.join(", ")}` : "";
}

function relationText(d) {
  const primes = d.dst.length ? `[${d.dst.join(", ")}]` : "";
  return d.pieces.map((p) => `${d.source}[${d.src.join(", ")}] → ${d.sink}${primes}: ${conditionsText(p) || "all"}`).join("; ");
}

// Lines of the source with a barrier between the two statements of a dependence.
function barriersOf(d) {
  const all = Object.entries(st().sources[state.target]?.barriers ?? {});
  const separates = (b) => b.source === d.source && b.sink === d.sink && b.var === d.var;
  return all.filter(([, barrier]) => barrier.some(separates)).map(([line]) => +line);
}
function showSource(line) {
  const n = state.source.find((row) => row.line === line);
  if (innerWidth <= 700) { document.body.dataset.panel = "source"; marks(); }
  state.source.view.scrollTop = Math.max(0, state.source.top(n) - state.source.view.clientHeight * 0.3);
  state.source.show();
}

function drawDeps(body) {
  const s = st();
  const mine = s.deps.filter((d) => d.source === state.stmt || d.sink === state.stmt);
  const none = s.deps_error ? `Not derived: ${s.deps_error}.` : "No two instances of this kernel depend on each other.";
  const about = s.deps.length ? `${s.deps.length} dependences in the kernel, ${mine.length} of ${state.stmt}` : none;
  body.append(el("div", { class: "pad small muted" }, about));
  if (s.without_relations) body.append(el("div", { class: "pad small muted" }, D.left_out.join(" ")));
  // those of several accesses that say the same stand once
  const alike = new Map();
  for (const d of mine) {
    const key = JSON.stringify([d.kind, d.var, d.source, d.sink, d.through, d.reuse_across, d.distance]);
    if (!alike.has(key)) alike.set(key, []);
    alike.get(key).push(d);
  }
  const rows = [...alike.values()];
  for (const [d, ...others] of rows.slice(0, 40)) {
    const head = rich("summary", {}, `<b style="color:var(--${d.kind})">${d.kind}</b> of <code>${html(d.var)}</code>: <code>${html(d.source)}</code> before <code>${html(d.sink)}</code>` +
      (d.through ? ` through <code>${html(d.through)}</code>` : "") + (d.reuse_across.length ? ` <span class=muted>memory is used again across ${html(d.reuse_across.join(", "))}</span>` : ""));
    const more = el("details", {}, head);
    more.addEventListener("toggle", () => {
      if (!more.open || more.children.length > 1) return;
      for (const one of [d, ...others]) more.append(el("div", { class: "muted" }, distance(one)), el("code", {}, relationText(one) || "left out"));
    });
    for (const line of barriersOf(d)) {
      head.append(el("button", { class: "bar-at", title: "a barrier separates the two", onclick: (e) => { e.preventDefault(); showSource(line); } }, `‖ line ${line + 1}`));
    }
    const exact = d.distance.map(([n, v]) => `${n} ${signed(v)}`).join(", ");
    if (exact) head.append(el("span", { class: "muted" }, "  " + exact));
    if (others.length) head.append(el("span", { class: "muted" }, `  × ${others.length + 1}`));
    body.append(el("div", { class: "dep" },
      sv("svg", { width: 30, height: 18, "aria-hidden": "true" }, sv("path", { d: "M1 9H24", stroke: `var(--${d.kind})`, "stroke-width": 2, "stroke-dasharray": DASHES[d.kind] }),
        sv("path", { d: "M22 4L30 9L22 14z", fill: `var(--${d.kind})` })), more));
  }
  if (rows.length > 40) body.append(el("div", { class: "pad small muted" }, `and ${rows.length - 40} more`));
}

// The first instance, as far as bounds are known.
function firstLane(i) {
  const env = { ...state.params };
  for (const l of i.loops) {
    const [lo] = span(l, env);
    env[l.name] = Number.isFinite(lo) ? lo : 0;
  }
  return env;
}

// The words of banks that the first 32 work-items ask for, a row what is served at a time.
function banks(i, access, env) {
  const array = ker().arrays[access.var];
  if (!array.strides || access.index.some((row) => !row)) return null;
  const strides = array.strides.map((row) => value(row, state.params));
  const [l0, l1] = ["l.0", "l.1"].map((tag) => i.loops.find((l) => l.tag === tag));
  const lanes = [];
  for (let p = 0; p < 32; p++) {
    const at = { ...env };
    if (l0) at[l0.name] = p;
    if (l1) at[l1.name] = span(l1, at)[0];
    if (l0 && !anyHolds(l0.domain, at)) continue;
    const index = access.index.map((row) => value(row, at));
    if (array.swizzle) {
      const [axis, by] = array.swizzle;
      index[axis] ^= index[by] % value(array.shape[axis], state.params);
    }
    lanes.push(index.reduce((sum, e, n) => sum + e * strides[n], 0));
  }
  if (lanes.some(Number.isNaN) || !lanes.length) return null;
  const per = Math.max(1, Math.min(32, Math.floor(128 / array.bytes)));
  const rows = [];
  for (let a = 0; a < lanes.length; a += per) {
    const grid = Array.from({ length: 32 }, () => new Set());
    for (const lane of lanes.slice(a, a + per)) {
      for (let w = 0; w < Math.max(1, array.bytes / 4); w++) {
        const word = Math.floor((lane * array.bytes) / 4) + w;
        grid[((word % 32) + 32) % 32].add(word);
      }
    }
    rows.push(grid.map((words) => words.size));
  }
  return { rows, cost: rows.reduce((sum, row) => sum + Math.max(...row), 0) };
}

function bankPicture(i, access, found) {
  const [W, cw] = [430, 430 / 32];
  const least = found.rows.length;
  const svg = sv("svg", { viewBox: `0 0 ${W} ${least * 18 + 15}`, width: "100%", style: "max-width:560px;display:block", role: "img", "aria-label": `${access.text} by 32 work-items: ${found.cost} wavefronts, ${least} would do` });
  found.rows.forEach((row, n) => row.forEach((words, m) => {
    svg.append(sv("rect", { x: m * cw + 0.5, y: n * 18 + 0.5, width: cw - 1, height: 17, rx: 2, style: `fill:${words === 0 ? "var(--hov)" : words === 1 ? "var(--c1)" : "var(--c5)"}` }));
    if (words > 1) svg.append(sv("text", { x: m * cw + cw / 2, y: n * 18 + 13, "text-anchor": "middle", "font-size": 9.5, "font-weight": 700, style: "fill:#000" }, String(words)));
  }));
  for (const m of [0, 8, 16, 24, 31]) svg.append(sv("text", { x: m * cw + cw / 2, y: least * 18 + 12, "text-anchor": "middle", "font-size": 10, style: "fill:var(--muted)" }, String(m)));
  const cost = found.cost === least ? '<span style="color:var(--ok)">no conflict</span>' : `<b style="color:var(--warn)">${found.cost} wavefronts instead of ${least}</b>`;
  return el("div", { style: "margin:2px 0 10px" }, rich("div", { class: "small" }, `<code>${html(i.name)}</code> ${access.mode} <code>${html(access.text)}</code> &nbsp; ${cost}`), svg);
}

function table(heads, rows) {
  const body = el("tbody");
  for (const row of rows) body.append(el("tr", {}, ...row.map((x, n) => el("td", {}, n === 0 ? el("code", {}, x) : x))));
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", {}, h)))), body));
}

function drawCounts(body) {
  const { statistics, banks: traffic, error } = st().counts;
  const pad = el("div", { class: "pad" });
  body.append(pad);
  const src = st().sources[state.target];
  if (src?.launch) {
    const { grid, block, local_bytes, private_bytes, notes } = src.launch;
    const groups = grid ? `${grid.map(count).join(" × ")} work-groups of ` : "work-groups of ";
    const bytes = [local_bytes && `${count(local_bytes)} bytes of local memory a group`, private_bytes && `${count(private_bytes)} bytes of private arrays a work-item`];
    const place = state.target === "c" ? "One call." : `${groups}${block.join(" × ")} work-items`;
    pad.append(el("p", { class: "small" }, [`${TARGETS[state.target]}: ${place}`, ...bytes].filter(Boolean).join("; ")));
    for (const note of notes) pad.append(el("p", { class: "small muted" }, note));
  }
  if (error) pad.append(rich("p", { class: "small" }, "Not counted: " + marked(error)));
  let any = false;
  for (const i of ker().insns) {
    if (!i.loops.some((l) => l.tag === "l.0")) continue;
    for (const access of i.access) {
      if (ker().arrays[access.var]?.space !== "local") continue;
      const found = banks(i, access, firstLane(i));
      if (!found) continue;
      if (!any) pad.append(el("div", { class: "small muted", style: "margin-bottom:6px" }, "Banks 0 to 31 across, one row a wavefront of the first 32 work-items; a number says how many words of one bank are wanted at a time."));
      any = true;
      pad.append(bankPicture(i, access, found));
    }
  }
  const sure = (n, exact) => (exact ? "" : "~") + count(n);
  const at = Object.entries(D.params).map(([n, v]) => `${n} = ${v}`).join(", ");
  if (traffic.length) pad.append(table(["statement", "", "array", "wavefronts", "conflicts"], traffic.map((t) => [t.insn, t.kind.toLowerCase(), t.var, sure(t.wavefronts, t.exact), sure(t.conflicts, t.exact)])));
  if (!statistics) return;
  pad.append(table(["array", "in", "reads", "distinct", "writes", "distinct"], statistics.vars.map((v) => {
    const [r, w] = [v.reads, v.writes];
    const array = ker().arrays[v.name];
    return [v.name, array ? `${array.space} ${array.type}` : "", sure(r.accesses, r.exact), sure(r.footprint, r.footprint_exact), sure(w.accesses, w.exact), sure(w.footprint, w.footprint_exact)];
  })));
  pad.append(table(["statement", "instances", "FLOP"], statistics.insns.map((i) => [i.name, sure(i.instances, i.exact), sure(i.flops, i.exact)])));
  pad.append(el("div", { class: "small muted" }, (at ? `With ${at}. ` : "") + "~ is an upper bound."));
}

// ---------------------------------------------------------------------------------------- refusal
function drawRefusal(body) {
  const r = st().refusal;
  const ab = instancesOf(r);
  const says = r.says || st().label;
  body.append(rich("div", { class: "refuse" }, `<b>Refused: ${marked(says)}</b> <span class="small muted">${r.obligation || r.kind}</span><div>${marked(r.clash)}</div>` +
    (r.help ? `<div class=small style="margin-top:4px">To try: ${marked(r.help)}</div>` : "")));
  const wrap = el("div", { class: "pad" });
  body.append(wrap);
  const card = (at, m) => {
    const loops = ker().insns.find((i) => i.name === at.insn)?.loops || [];
    return el("div", { class: "card" }, el("b", {}, "AB"[m] + "  "), el("code", {}, at.point.length ? `${at.insn}[${at.point.join(", ")}]` : at.insn),
      el("div", { class: "small muted" }, loops.map((l, q) => `${l.name} = ${at.point[q]}`).join(", ")));
  };
  if (ab.length) wrap.append(el("div", { class: "two", style: "margin:0 0 4px" }, ...ab.map(card)));
  const where = Object.entries(r.params).map(([n, v]) => `${n} = ${v}`).join(", ");
  const meet = r.element ? `A and B meet at ${r.element}${r.through ? ", found through " + r.through : ""}.` : "";
  const told = [where && `With ${where}.`, meet].filter(Boolean).join(" ");
  if (told) wrap.append(el("p", { class: "small muted" }, told));
  if (ab.length < 2) {
    wrap.append(el("p", { class: "small muted" }, "No two instances show it: the refusal is about the form of the kernel or of the step."));
    return;
  }
  const i = ker().insns.find((x) => x.name === ab[0].insn);
  if (ab[0].insn !== ab[1].insn || !i?.loops.length) {
    wrap.append(el("p", { class: "small muted" }, "A and B are of different statements: the iteration space shows both, the one of another statement with a dashed ring."));
    return;
  }
  drawOrder(wrap, i, r, ab);
}

// The instances in today's order, and after an interchange or in groups, with the two that clash.
function drawOrder(wrap, i, r, ab) {
  const pts = [];
  try {
    for (const p of points(i, { ...D.params, ...r.params })) if (pts.push(p) >= 600) break;
  } catch (error) {
    if (!(error instanceof Unbounded)) throw error;
    return;
  }
  const places = ab.map((at) => pts.findIndex((p) => p.join() === at.point.join()));
  if (places.some((n) => n < 0)) return void wrap.append(el("p", { class: "small muted" }, "The two are beyond the first 600 instances; no picture."));
  const names = i.loops.map((l) => l.name);
  const all = axes(i);
  const written = all.filter((a) => a.written);
  const pick = written.length >= 2 ? written.slice(0, 2) : all.slice(-2);
  const [Y, X] = pick.length === 2 ? pick : [null, pick[0]];
  const sorted = (loops) => pts.map((_, n) => n).sort((m, n) => {
    for (const name of loops) { const x = names.indexOf(name); if (pts[m][x] !== pts[n][x]) return pts[m][x] - pts[n][x]; }
    return 0;
  });
  const figures = [orderPicture("Today", i, r, pts, places, sorted(names), X, Y)];
  const args = st().args || {};
  if (st().primitive === "interchange_inames") {
    const after = names.map((n) => (n === args.outer ? args.inner : n === args.inner ? args.outer : n));
    figures.push(orderPicture("After the step", i, r, pts, places, sorted(after), X, Y));
  }
  wrap.append(el("div", { class: "two" }, ...figures), el("p", { class: "small muted" }, "The thread is the order of execution."));
}

function orderPicture(title, i, r, pts, ab, order, X, Y) {
  const [xs, ys] = [X, Y].map((axis) => pts.map((p) => (axis ? project(i, p, axis) : 0)));
  const [x0, y0] = [xs, ys].map((all) => Math.min(...all));
  const [nx, ny] = [Math.max(...xs) - x0 + 1, Math.max(...ys) - y0 + 1];
  const c = Math.min(28, 210 / nx, 160 / ny);
  const [L, T] = [24, 18];
  const svg = sv("svg", { viewBox: `0 0 ${Math.max(L + nx * c + 10, 232)} ${Math.max(T + ny * c + 8, 84)}`, role: "img", "aria-label": title });
  const at = (n) => [L + (xs[n] - x0 + 0.5) * c, T + (ys[n] - y0 + 0.5) * c];
  pts.forEach((_, n) => { const [x, y] = at(n); svg.append(sv("rect", { x: x - c / 2 + 1, y: y - c / 2 + 1, width: Math.max(0.5, c - 2), height: Math.max(0.5, c - 2), rx: 2, style: "fill:var(--hov)" })); });
  svg.append(sv("path", { d: order.map((n, m) => (m ? "L" : "M") + at(n).join(" ")).join(""), fill: "none", style: "stroke:var(--muted)", "stroke-width": 1.1, "stroke-opacity": 0.75, "stroke-linejoin": "round" }));
  const [p, q] = ab.map(at);
  const [dx, dy] = [q[0] - p[0], q[1] - p[1]];
  const t = Math.min(0.4, 10 / (Math.hypot(dx, dy) || 1));
  const id = "r" + title.length;
  svg.append(sv("defs", {}, sv("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, sv("path", { d: "M0 0L8 4L0 8z", style: "fill:var(--warn)" }))),
    sv("path", { d: `M${p[0] + dx * t} ${p[1] + dy * t}L${q[0] - dx * t} ${q[1] - dy * t}`, style: "stroke:var(--warn)", "stroke-width": 2.5, "marker-end": `url(#${id})` }));
  ab.forEach((n, m) => {
    const [x, y] = at(n);
    svg.append(sv("circle", { cx: x, cy: y, r: 8.5, style: "fill:var(--halo);stroke:var(--warn)", "stroke-width": 2 }), sv("text", { x, y: y + 4, "text-anchor": "middle", "font-size": 11, "font-weight": 700 }, "AB"[m]));
  });
  svg.append(sv("text", { x: 4, y: 11, "font-size": 10, style: "fill:var(--muted)" }, (Y ? `↓ ${Y.short}   ` : "") + (X ? "→ " + X.short : "")));
  const nth = (n) => `${n}${{ 1: "st", 2: "nd", 3: "rd" }[n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] || "th"}`;
  const [a, b] = ab.map((n) => nth(order.indexOf(n) + 1));
  return el("figure", {}, el("figcaption", {}, `${title}: A ${a}, B ${b}`), svg);
}
