// ------------------------------------------------------------------------------ steps, kernel, source
function drawSteps() {
  const list = $("steplist");
  list.replaceChildren();
  D.steps.forEach((s, n) => {
    list.append(el("li", {}, el("button", { class: s.refusal ? "bad" : "", "aria-current": n === state.step ? "step" : null, onclick: () => go(n) },
      el("span", { class: "n" }, s.refusal ? "✕" : String(n)), rich("span", { class: "t" }, marked(labelOf(n))), el("span", { class: "m" }))));
  });
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  drawConditions();
}

// What the primitive has to prove of any kernel. A step that was applied has no record of how: no tick.
function drawConditions() {
  const s = st();
  const p = $("proof");
  p.replaceChildren();
  const refused = s.refusal?.obligation;
  const info = s.primitive && D.primitives[s.primitive];
  if (!info) {
    p.append(el("h2", {}, s.refusal ? "Refused" : "As written"));
    p.append(el("p", { class: "small muted" }, s.refusal ? "The last step of a strategy; its refusal is under Refusal." : "Choose a step to see what it has to prove."));
    return;
  }
  p.append(el("h2", {}, s.refusal ? "Not proved" : "What the step has to prove"), rich("div", { class: "small muted" }, marked(info.summary)));
  const rows = info.obligations.map(([id, says]) => ({ id, says }));
  if (refused && !rows.some((r) => r.id === refused)) rows.unshift({ id: refused, says: s.refusal.says });
  rows.sort((a, b) => (b.id === refused) - (a.id === refused));
  const list = el("ul");
  for (const { id, says } of rows) list.append(el("li", { class: id === refused ? "no" : "un" }, says + " ", el("span", { class: "id" }, id)));
  p.append(list, el("details", { class: "small" }, el("summary", {}, "Arguments"), el("code", {}, JSON.stringify(s.args))));
}

const paint = (t) =>
  html(t)
    .replace(/^(\s*)(for|param|arg|temp|table|assume|kernel|call|launch|rule)\b/, "$1<span class=kw>$2</span>")
    .replace(/ (in|where|if) /g, " <span class=kw>$1</span> ")
    .replace(/\{([gl]\.\d|unroll|nounroll|vector[^}]*)\}$/, "<span class=tag>$1</span>");

function line(text, o) {
  const sw = el("span", { class: "sw" });
  const stmts = o.stmts || [];
  if (stmts.length === 1) sw.style.background = hue(stmts[0]);
  else if (stmts.length) {
    const part = stmts.slice(0, 4).map((s, i, a) => `${hue(s)} ${(i / a.length) * 100}% ${((i + 1) / a.length) * 100}%`);
    sw.style.background = `linear-gradient(${part.join(",")})`;
  }
  const jump = o.since == null ? el("span", { class: "si" })
    : el("button", { class: "si", title: `since step ${o.since}: ${labelOf(o.since).replace(/`/g, "")}`, "aria-label": `go to step ${o.since}`, tabindex: -1,
        onclick: (e) => { e.stopPropagation(); go(o.since); } }, String(o.since));
  const row = el("div", { class: "ln" + (o.cls ? " " + o.cls : "") + (stmts.length ? " stmt" : "") }, sw, el("span", { class: "no" }, o.no ?? ""), jump,
    el("span", { class: "mk" }, o.mk || ""), rich("span", { class: "tx" }, o.html || paint(text)));
  if (stmts.length) {
    row.dataset.s = stmts.join(" ");
    row.addEventListener("pointerenter", () => hot(stmts));
    row.addEventListener("pointerleave", () => hot([state.stmt]));
    row.addEventListener("click", () => choose(stmts[(stmts.indexOf(state.stmt) + 1) % stmts.length]));
  }
  return row;
}

function drawKernel() {
  const box = $("ktext");
  const s = st();
  const k = ker();
  box.replaceChildren();
  $("kh").textContent = s.refusal ? "Kernel the step met" : state.step ? `Kernel after step ${state.step}` : "Kernel as written";
  const byLine = {};
  const loops = {};
  for (const i of k.insns) {
    (byLine[i.line] ||= []).push(i.name);
    for (const l of i.loops) (loops[l.line] ||= new Set()).add(i.name);
  }
  const gone = {};
  if (!s.refusal && $("showdel").checked) for (const [at, old] of k.removed) (gone[at] ||= []).push(...old);
  const declares = (i) => /^(param|arg|temp|table|assume) /.test(k.lines[i]);
  const fresh = (i) => state.step > 0 && !s.refusal && k.since[i] === state.step;
  const folding = k.lines.filter((_, i) => declares(i)).length > 4 && !state.unfold;
  let folded = [];
  state.rowOf = {};
  const flush = () => {
    if (!folded.length) return;
    const what = /^table \w+ =/.test(k.lines[folded[0]]) ? "table" : "declaration";
    const open = () => { state.unfold = true; drawKernel(); hot([state.stmt]); };
    box.append(el("button", { class: "fold", onclick: open }, `▸ ${folded.length} ${what}${folded.length > 1 ? "s" : ""}`));
    folded = [];
  };
  k.lines.forEach((t, i) => {
    const old = gone[i] || [];
    if (folding && declares(i) && !fresh(i) && !old.length) return void folded.push(i);
    if (!declares(i) && (t || !folded.length)) flush();
    for (const d of old) if (d.trim()) box.append(line(d, { cls: "del", mk: "−" }));
    if (!t && (folding || !k.lines[i - 1])) return;
    const row = line(t, { no: i + 1, since: t ? k.since[i] : null, cls: fresh(i) && t ? "add" : "", mk: fresh(i) && t ? "+" : "", stmts: byLine[i] });
    if (loops[i]) row.dataset.l = [...loops[i]].join(" ");
    if (byLine[i]) state.rowOf[byLine[i][0]] = row;
    box.append(row);
  });
  flush();
  for (const d of gone[k.lines.length] || []) box.append(line(d, { cls: "del", mk: "−" }));
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
  const y = (name) => (state.rowOf[name] ? state.rowOf[name].offsetTop + 10 : null);
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
function reveal(box, rows) {
  const row = rows.find(Boolean);
  box.scrollTop = 0;
  if (row && row.offsetTop > box.clientHeight * 0.6) box.scrollTop = row.offsetTop - box.clientHeight * 0.3;
}
function revealAll() {
  const [kernel, source] = [$("ktext"), $("stext")];
  const loop = [...kernel.querySelectorAll(".ln.add")].find((r) => /^\s*for/.test(r.querySelector(".tx").textContent));
  reveal(kernel.parentNode, [kernel.querySelector(".ln.add.stmt"), loop, state.rowOf[state.stmt]]);
  const mine = [...source.querySelectorAll(".ln")].filter((r) => (r.dataset.s || "").split(" ").includes(state.stmt));
  reveal(source.parentNode, [source.querySelector(".ln.add"), mine[0]]);
}

function drawSource() {
  const tabs = $("targets");
  const box = $("stext");
  const all = st().sources;
  const src = all[state.target] || Object.values(all)[0];
  tabs.replaceChildren();
  box.replaceChildren();
  for (const t of Object.keys(TARGETS).filter((t) => t in all)) {
    const show = () => { state.target = t; drawSource(); hot([state.stmt]); writeHash(); };
    tabs.append(el("button", { role: "tab", "aria-selected": String(t === state.target), onclick: show }, TARGETS[t]));
  }
  $("res").textContent = src?.launch && state.target !== "c" ? `work-group ${src.launch.block.join(" × ")}` : "";
  if (!src || src.error) {
    box.append(rich("div", { class: "pad wrap" }, "<b>No source after this step.</b> " + marked(src ? src.error : "")));
    return;
  }
  const gone = {};
  const fresh = (i) => state.step > 0 && !st().refusal && src.since[i] === state.step;
  if (state.step > 0 && !st().refusal && $("showdel").checked) for (const [at, old] of src.removed) (gone[at] ||= []).push(...old);
  // of a long text only what is in sight is laid out, so that its width has to be said
  const long = src.lines.length > 300;
  box.classList.toggle("long", long);
  box.style.minWidth = long ? `${src.lines.reduce((most, t) => Math.max(most, t.length), 0) * 7.6 + 100}px` : "";
  src.lines.forEach((t, i) => {
    for (const d of gone[i] || []) if (d.trim()) box.append(line(d, { cls: "del", mk: "−", html: html(d) }));
    const barrier = /^\s*(__syncthreads|barrier\(|__syncwarp|sub_group_barrier)/.test(t);
    let h = html(t).replace(/(\/\/.*)$/, "<span class=cm>$1</span>");
    if (barrier) h = `<span class=barrier>${h}</span>`;
    box.append(line(t, { no: i + 1, since: t.trim() ? src.since[i] : null, stmts: src.insns?.[i], html: h || " ", cls: fresh(i) && t.trim() ? "add" : "", mk: barrier ? "‖" : fresh(i) && t.trim() ? "+" : "" }));
  });
}

function hot(names) {
  for (const r of document.querySelectorAll(".ln")) {
    const own = r.dataset.s ? r.dataset.s.split(" ") : [];
    const hit = names.find((n) => n && own.includes(n));
    r.classList.toggle("hot", !!hit);
    if (hit) r.style.setProperty("--hc", hue(hit));
  }
}
function choose(name) {
  if (name === state.stmt) return;
  state.stmt = name;
  state.cursor = null;
  state.pinned = state.keepColour = state.keepAxes = false;
  resetView();
  arcs();
  hot([name]);
  drawSpace();
  drawDetail();
  writeHash();
}
