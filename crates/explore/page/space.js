// ------------------------------------------------------------------------------------ iteration space
const MOST = 40000; // instances of a picture
const MOST_SVG = 3000; // beyond, cells are pixels of a canvas
const RAMP = (() => {
  const stops = [[52, 45, 130], [42, 118, 142], [34, 165, 132], [140, 205, 75], [250, 225, 60]];
  return Array.from({ length: 33 }, (_, n) => {
    const t = (n / 32) * 4;
    const a = Math.min(3, Math.floor(t));
    return `rgb(${stops[a].map((v, m) => Math.round(v + (stops[a + 1][m] - v) * (t - a))).join(" ")})`;
  });
})();

function view() {
  const i = insn();
  const all = axes();
  const [X, Y, Z] = [state.x, state.y, state.z].map((id) => all.find((a) => a.id === id));
  const free = new Set([X, Y, Z].filter(Boolean).flatMap((a) => usedBy(a.row)));
  for (const l of i.loops) if (free.has(l.name)) tilesOf(l).forEach((name) => free.add(name));
  return { i, all, X, Y, Z, rest: i.loops.filter((l) => !free.has(l.name)) };
}

// Loops over tiles that a value of a loop tells: from below and above its bounds are those of the tile.
function tilesOf(l) {
  const factor = (row, name) => row.reduce((sum, part, n) => (part === name ? sum + row[n + 1] : sum), 0);
  const of = l.domain.map((c) => {
    const rows = (c.ge || []).filter((row) => Math.abs(factor(row, l.name)) === 1);
    const mentioned = (sign) => new Set(rows.filter((row) => factor(row, l.name) === sign).flatMap((row) => usedBy(row).filter((name) => factor(row, name) * sign < -1)));
    const above = mentioned(-1);
    return [...mentioned(1)].filter((name) => above.has(name));
  });
  return of.length ? of.reduce((a, b) => a.filter((name) => b.includes(name))) : [];
}

// Where an instance lies along an axis; of another statement, if it has that axis.
const axisRows = new WeakMap();
function rowOf(ins, axis) {
  let rows = axisRows.get(ins);
  if (!rows) axisRows.set(ins, (rows = {}));
  if (!(axis.id in rows)) rows[axis.id] = (axes(ins).find((a) => a.id === axis.id) || (axis.written ? null : axis))?.row;
  return rows[axis.id];
}
function project(ins, point, axis) {
  const row = rowOf(ins, axis);
  if (!row) return NaN;
  const env = { ...state.params };
  ins.loops.forEach((l, n) => (env[l.name] = point[n]));
  return value(row, env);
}

// The instances of the slice: loops that no axis shows stand at the chosen value, or at their first.
function collect() {
  const { i, rest } = view();
  const fixed = {};
  for (const l of rest) if (state.fixed[l.name] !== undefined) fixed[l.name] = state.fixed[l.name];
  for (const l of rest) {
    if (fixed[l.name] !== undefined) continue;
    for (const p of points(i, { ...state.params }, fixed)) {
      fixed[l.name] = p[i.loops.indexOf(l)];
      break;
    }
  }
  const pts = [];
  for (const p of points(i, { ...state.params }, fixed)) {
    if (pts.length >= MOST) return { pts, more: true, fixed };
    pts.push(p);
  }
  return { pts, more: false, fixed };
}

// Which instances of a statement are in a pair that a refused step gets wrong: the pairs of the dependence of the two
// that it names, as far as the step says what it does to them.
function wrongPairs(i) {
  const r = st().refusal;
  const [a, b] = [r.source, r.sink];
  if (!a || !b || !r.element) return null;
  const name = r.element.split("[")[0];
  const deps = st().deps.filter((d) => d.var === name && d.source === a.insn && d.sink === b.insn && d.pieces.length);
  const args = st().args || {};
  const at = (ins, p, loop) => p[ins.loops.findIndex((l) => l.name === loop)];
  let wrong;
  if (r.kind === "placement" && st().primitive === "tag") {
    const tagged = [args.inames].flat();
    const axis = (ins, p) => ins.loops.map((l, n) => (tagged.includes(l.name) || l.tag === args.tag ? p[n] : null)).filter((v) => v !== null).join();
    wrong = (p, pi, q, qi) => axis(pi, p) !== axis(qi, q);
  } else if (r.kind === "reordered" && st().primitive === "interchange_inames") {
    const swapped = (n) => (n === args.outer ? args.inner : n === args.inner ? args.outer : n);
    wrong = (p, pi, q, qi) => {
      for (const l of pi.loops) {
        const loop = swapped(l.name);
        const step = at(qi, q, loop) - at(pi, p, loop);
        if (step) return step < 0;
      }
      return false;
    };
  }
  if (!wrong || !deps.length) return null;
  const of = (it) => ker().insns.find((x) => x.name === it.insn);
  const [from, to] = [of(a), of(b)];
  const hit = (p) =>
    deps.some((d) => (i === from && partners(d, p, to, true, state.params, 64).some((q) => wrong(p, from, q, to))) ||
      (i === to && partners(d, p, from, false, state.params, 64).some((q) => wrong(q, from, p, to))));
  return i === from || i === to ? hit : null;
}

function colouring(i, pts) {
  const c = colours(i).find((x) => x.id === state.colour) || colours(i)[0];
  if (c.clash) {
    const wrong = wrongPairs(i);
    const all = pts.map((p, n) => n < 3000 && wrong(p));
    const hit = (_, n) => all[n];
    return { ramp: true, clash: c.clash, N: 2, hit, of: (p, n) => (all[n] ? "var(--c5)" : "var(--line)"), key: (p, n) => all[n] };
  }
  const places = c.loops && c.loops.map((n) => i.loops.findIndex((l) => l.name === n));
  const key = (p, n) => (places ? places.map((x) => p[x]).join(",") : n);
  const seen = new Map();
  pts.forEach((p, n) => { const k = key(p, n); if (!seen.has(k)) seen.set(k, seen.size); });
  const N = seen.size;
  const of = (p, n) => {
    const k = seen.get(key(p, n));
    return c.ramp ? RAMP[Math.round((N > 1 ? k / (N - 1) : 0) * (RAMP.length - 1))] : N === 1 ? "var(--c1)" : `var(--c${k % 6})`;
  };
  return { ramp: c.ramp, N, of, key };
}

function drawControls({ i, all, X, Y }, rest, fixed) {
  const ctl = $("ctl");
  ctl.replaceChildren();
  const select = (label, chosen, options, f) => {
    const s = el("select", { "aria-label": label, onchange: (e) => f(e.target.value) });
    for (const [v, t] of options) s.append(el("option", { value: v, selected: v === chosen }, t));
    return el("label", {}, label, s);
  };
  const number = (label, name, v, f) => el("label", {}, name, el("input", { type: "number", value: v, "aria-label": label, onchange: (e) => f(+e.target.value || 0) }));
  const axis = (which) => (v) => { state[which] = v || null; if (which === "x" && state.y === v) state.y = null; state.keepAxes = true; drawSpace(); };
  const names = all.map((a) => [a.id, a.name]);
  ctl.append(select("statement", i.name, ker().insns.map((x) => [x.name, x.name]), choose));
  if (all.length) {
    ctl.append(select("across", state.x, names, axis("x")), select("down", state.y ?? "", [["", "–"], ...names], axis("y")));
    if (all.length > 2 && Y) ctl.append(select("deep", state.z ?? "", [["", "–"], ...all.filter((a) => a !== X && a !== Y).map((a) => [a.id, a.name])], axis("z")));
  }
  ctl.append(select("colour", state.colour, colours().map((c) => [c.id, c.name]), (v) => { state.colour = v; state.keepColour = true; drawSpace(); }));
  const used = new Set(i.loops.flatMap((l) => l.domain.flatMap((c) => [...(c.eq || []), ...(c.ge || [])].flatMap(usedBy))));
  for (const p of ker().params) {
    if (!used.has(p)) continue;
    ctl.append(number("parameter " + p, p, state.params[p], (v) => { state.params[p] = Math.max(0, Math.min(100000, v)); state.cursor = null; drawSpace(); }));
  }
  for (const l of rest) ctl.append(number("slice at " + l.name, l.name + " =", fixed[l.name] ?? 0, (v) => { state.fixed[l.name] = v; drawSpace(); }));
}

function drawSpace() {
  const plot = $("plot");
  plot.replaceChildren();
  $("info").textContent = "";
  if (!insn()) { $("count").textContent = "no statement"; return; }
  const v = view();
  const say = (text, note) => { $("count").textContent = note; plot.append(el("p", { class: "pad muted" }, text)); };
  if (!v.i.loops.length) { drawControls(v, [], {}); return say("This statement is in no loop.", "1 instance"); }
  let found;
  try {
    found = collect();
  } catch (error) {
    if (!(error instanceof Unbounded)) throw error;
    drawControls(v, v.rest, state.fixed);
    return say(`The bounds of ${error.message} depend on values in memory: its instances are not known before it runs.`, "not known");
  }
  drawControls(v, v.rest, found.fixed);
  if (!found.pts.length) return say("No instance here at these parameters.", "0 instances");
  const many = found.more ? `first ${count(MOST)} instances` : `${count(found.pts.length)} instances`;
  $("count").textContent = many + (v.rest.length ? " in this slice" : "") + (v.i.exact ? "" : ", where data allow");
  picture(v, found.pts, plot);
}

// Extents, and the size of a cell that lets all of them fit.
function frame({ X, Y, Z }, i, pts, box) {
  const along = (axis) => pts.map((p) => (axis ? project(i, p, axis) : 0));
  const [xs, ys, zs] = [X, Y, Z].map(along);
  const clash = clashing([X, Y, Z]);
  const [cx, cy, cz] = [0, 1, 2].map((k) => clash.filter((c) => c.known).map((c) => c.at[k]));
  const more = new Map([[xs, cx], [ys, cy], [zs, cz]]);
  const least = (all) => [...more.get(all)].concat(all).reduce((a, b) => Math.min(a, b), Infinity);
  const most = (all) => [...more.get(all)].concat(all).reduce((a, b) => Math.max(a, b), -Infinity);
  const [x0, y0, z0] = [xs, ys, zs].map(least);
  const [nx, ny, nz] = [most(xs) - x0 + 1, most(ys) - y0 + 1, most(zs) - z0 + 1];
  const W = Math.max(280, box.width || 460);
  const H = Math.max(96, box.height || 260);
  const [L, T, R, B] = [Math.max(46, Y ? Y.short.length * 7 + 26 : 46), 22, Math.max(14, X ? X.short.length * 7 + 18 : 14), 10];
  const lean = Z ? 0.62 : 0;
  const cell = Math.min((W - L - R) / (nx + (nz - 1) * lean), (H - T - B - (Z ? 16 : 0)) / (ny + (nz - 1) * lean), 26);
  const gap = cell > 6 ? Math.min(2, cell * 0.14) : cell > 3 ? 0.5 : 0;
  const oy = T + (nz - 1) * lean * cell;
  const dz = (z) => (z - z0) * lean * cell;
  const centre = (x, y, z = z0) => [L + (x - x0 + 0.5) * cell + dz(z), oy + (y - y0 + 0.5) * cell - dz(z)];
  return { X, Y, Z, i, pts, xs, ys, zs, x0, y0, z0, nx, ny, nz, W, H, L, T, ox: L, oy, cell, gap, dz, centre, clash };
}

// The place of each cell, in the order of drawing, and the instance at each place.
function layCells(f) {
  const cells = new Map();
  const order = f.pts.map((_, n) => n);
  if (f.Z) order.sort((a, b) => f.zs[b] - f.zs[a]); // far layers first
  for (const n of order) {
    const k = `${f.xs[n]},${f.ys[n]},${f.zs[n]}`;
    if (!cells.has(k)) cells.set(k, n);
  }
  const corner = (n) => [
    f.ox + (f.xs[n] - f.x0) * f.cell + f.gap / 2 + f.dz(f.zs[n]),
    f.oy + (f.ys[n] - f.y0) * f.cell + f.gap / 2 - f.dz(f.zs[n]),
  ];
  return { cells, order, corner };
}

// One path a colour and layer.
function drawCells(f, svg, col, { order, corner }) {
  const paths = new Map();
  const size = (f.cell - f.gap).toFixed(2);
  for (const n of order) {
    const fill = col.of(f.pts[n], n);
    const [px, py] = corner(n);
    const layer = f.Z ? f.zs[n] + "|" + fill : fill;
    paths.set(layer, (paths.get(layer) || "") + `M${px.toFixed(2)} ${py.toFixed(2)}h${size}v${size}h-${size}z`);
  }
  for (const [layer, d] of paths) {
    const fill = f.Z ? layer.split("|")[1] : layer;
    svg.append(sv("path", { d, style: `fill:${fill}${f.Z ? ";stroke:var(--halo);stroke-width:.7" : ""}`, "fill-opacity": col.ramp || f.Z ? 1 : 0.82 }));
  }
}

// The same where there are too many for a tree of elements; the drawing around it scales as the SVG does.
function paintCells(f, plot, col, { order, corner }) {
  const dots = Math.min(3, devicePixelRatio || 1);
  const canvas = el("canvas", { width: Math.round(f.W * dots), height: Math.round(f.H * dots), "aria-hidden": "true" });
  const at = canvas.getContext("2d");
  at.scale(dots, dots);
  at.globalAlpha = col.ramp || f.Z ? 1 : 0.82;
  const style = getComputedStyle(document.documentElement);
  const known = new Map();
  const plain = (fill) => {
    if (!known.has(fill)) known.set(fill, fill.startsWith("var(") ? style.getPropertyValue(fill.slice(4, -1)) : fill);
    return known.get(fill);
  };
  const size = f.cell - f.gap;
  at.strokeStyle = plain("var(--halo)");
  at.lineWidth = 0.7;
  for (const n of order) {
    const [x, y] = corner(n);
    at.fillStyle = plain(col.of(f.pts[n], n));
    at.fillRect(x, y, size, size);
    if (f.Z && size > 3) at.strokeRect(x, y, size, size);
  }
  plot.append(canvas);
}

// Colours repeat, numbers do not.
function drawTileNames(f, svg, col) {
  if (f.Z || col.ramp || col.N < 2 || col.N > 60 || st().refusal) return;
  const tiles = new Map();
  f.pts.forEach((p, n) => {
    const k = col.key(p, n);
    const t = tiles.get(k) || { x: 0, y: 0, n: 0, x0: Infinity, x1: -Infinity, y0: Infinity, y1: -Infinity };
    const [x, y] = [f.xs[n], f.ys[n]];
    tiles.set(k, { x: t.x + x, y: t.y + y, n: t.n + 1, x0: Math.min(t.x0, x), x1: Math.max(t.x1, x), y0: Math.min(t.y0, y), y1: Math.max(t.y1, y) });
  });
  for (const [k, t] of tiles) {
    const [w, h] = [(t.x1 - t.x0 + 1) * f.cell, (t.y1 - t.y0 + 1) * f.cell];
    if (w < k.length * 6.6 + 2 || h < 11 || t.n * f.cell * f.cell < k.length * 60) continue;
    const [x, y] = f.centre(t.x / t.n, t.y / t.n);
    svg.append(sv("text", { x, y: y + 4, "text-anchor": "middle", "font-size": Math.min(13, Math.max(10, (Math.sqrt(t.n) * f.cell) / 3)), "font-weight": 600, "data-tile": k,
      style: "paint-order:stroke;stroke:var(--halo);stroke-width:3px;fill:var(--lbl)" }, k));
  }
}

function drawAxes(f, svg) {
  const step = (n) => {
    const want = Math.max(1, n / Math.max(1, Math.floor((n * f.cell) / 34)));
    return [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128].find((s) => s >= want) || Math.ceil(want / 100) * 100;
  };
  const text = (x, y, what, attrs) => svg.append(sv("text", { x, y, "font-size": 11, style: "fill:var(--muted)", ...attrs }, what));
  const name = (x, y, what, attrs = {}) => svg.append(sv("text", { x, y, "font-size": 12, "font-weight": 600, ...attrs }, what));
  const top = f.Z ? f.oy + f.ny * f.cell + 12 : f.T - 7;
  for (let o = 0; o < f.nx; o += step(f.nx)) text(f.ox + (o + 0.5) * f.cell, top, String(o + f.x0), { "text-anchor": "middle" });
  if (f.Y) for (let o = 0; o < f.ny; o += step(f.ny)) text(f.L - 6, f.oy + (o + 0.5) * f.cell + 4, String(o + f.y0), { "text-anchor": "end" });
  if (f.X) name(Math.min(f.W - f.X.short.length * 7 - 18, f.ox + f.nx * f.cell + 6), top, "→ " + f.X.short);
  if (f.Y) name(4, f.Z ? f.oy - 4 : f.T - 7, "↓ " + f.Y.short);
  if (f.Z) name(Math.max(4, f.ox + f.dz(f.z0 + f.nz - 1) / 2 - 34), f.oy - f.dz(f.z0 + f.nz - 1) / 2 - 6, "↗ " + f.Z.short, { "text-anchor": "end" });
}

const legend = () =>
  KINDS.map((k, n) => `<span style="color:var(--${k})">${["──", "╌╌", "┈┈", "─·─"][n]} ${k}</span>`).join(" &nbsp; ") +
  "<br><span class=muted>Point at an instance for its dependences; click to keep it.</span>";

// The instance with those it depends on and those that depend on it.
function showInstance(f, over, n) {
  const i = f.i;
  const p = f.pts[n];
  const [cx, cy] = f.centre(f.xs[n], f.ys[n], f.zs[n]);
  const dots = [];
  const counts = {};
  let drawn = 0;
  for (const d of st().deps) {
    for (const toSink of [true, false]) {
      if ((toSink ? d.source : d.sink) !== i.name) continue;
      const other = ker().insns.find((x) => x.name === (toSink ? d.sink : d.source));
      const all = partners(d, p, other, toSink, state.params, 24);
      const key = `${d.kind} ${toSink ? "to" : "from"} ${other.name}`;
      if (all.length) counts[key] = (counts[key] || 0) + all.length;
      for (const q of all) {
        const [qx, qy, qz] = [f.X, f.Y, f.Z].map((axis, m) => (axis ? project(other, q, axis) : [f.x0, f.y0, f.z0][m]));
        const inside = qx >= f.x0 && qx < f.x0 + f.nx && qy >= f.y0 && qy < f.y0 + f.ny && qz >= f.z0 && qz < f.z0 + f.nz;
        const [ox, oy] = f.centre(qx, qy, qz);
        if (!inside || drawn > 60 || (ox === cx && oy === cy)) continue;
        drawn++;
        const [a, b] = toSink ? [[cx, cy], [ox, oy]] : [[ox, oy], [cx, cy]];
        const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        const t = Math.min(f.cell * 0.24, Math.hypot(dx, dy) / 4) / Math.hypot(dx, dy);
        const path = `M${a[0] + dx * t} ${a[1] + dy * t}L${b[0] - dx * t} ${b[1] - dy * t}`;
        dots.push(sv("circle", { cx: ox, cy: oy, r: Math.max(1.8, f.cell * 0.17), style: `fill:${toSink ? `var(--${d.kind})` : "var(--halo)"};stroke:var(--${d.kind})`, "stroke-width": 1.5 }));
        over.append(sv("path", { d: path, style: "stroke:var(--halo)", "stroke-width": f.cell < 14 ? 3 : 4.5, "stroke-opacity": 0.8 }),
          sv("path", { d: path, style: `stroke:var(--${d.kind})`, "stroke-width": f.cell < 14 ? 1.5 : 2, "stroke-dasharray": DASHES[d.kind], "marker-end": `url(#a-${d.kind})` }));
      }
    }
  }
  over.append(...dots, sv("rect", { x: cx - f.cell / 2, y: cy - f.cell / 2, width: f.cell, height: f.cell, rx: 2, fill: "none", style: "stroke:var(--text)", "stroke-width": 1.4 }),
    sv("circle", { cx, cy, r: Math.max(2, f.cell * 0.2), style: "fill:var(--text);stroke:var(--halo)", "stroke-width": 1.2 }));
  const on = (kind) => i.loops.map((l, m) => (l.tag && l.tag.startsWith(kind) ? `${l.tag} = ${p[m]}` : null)).filter(Boolean).join(", ");
  const where = [on("g.") && "work-group " + on("g."), on("l.") && "work-item " + on("l.")].filter(Boolean).join("; ");
  const told = Object.entries(counts).map(([k, c]) => {
    const [kind, way, name] = k.split(" ");
    return `<span style="color:var(--${kind})">${kind}</span> ${way} ${c >= 24 ? "24 or more" : c} of <code>${html(name)}</code>`;
  });
  const none = st().without_relations ? "relations are left out of this page" : "no dependence";
  $("info").innerHTML = `<code>${html(i.name)}[${p.join(", ")}]</code> <span class=muted>${html(i.loops.map((l) => l.name).join(", "))}</span>${where ? "<br>" + where : ""}<br>${told.join(", ") || `<span class=muted>${none}</span>`}`;
}

function picture(v, pts, plot) {
  const f = frame(v, v.i, pts, plot.getBoundingClientRect());
  const svg = sv("svg", { viewBox: `0 0 ${f.W} ${f.H}`, tabindex: 0, role: "img",
    "aria-label": `Instances of ${v.i.name}, ${f.X?.short ?? "nothing"} across and ${f.Y?.short ?? "nothing"} down; arrow keys move between instances` });
  const col = colouring(v.i, pts);
  const laid = layCells(f);
  const { cells } = laid;
  if (pts.length > MOST_SVG) paintCells(f, plot, col, laid);
  else drawCells(f, svg, col, laid);
  drawTileNames(f, svg, col);
  drawAxes(f, svg);
  const heads = sv("defs");
  const head = Math.max(4.5, Math.min(9, f.cell * 0.48));
  for (const k of KINDS) {
    heads.append(sv("marker", { id: "a-" + k, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: head, markerHeight: head, markerUnits: "userSpaceOnUse", orient: "auto" },
      sv("path", { d: "M0 0L8 4L0 8z", style: `fill:var(--${k})` })));
  }
  const over = sv("g");
  svg.append(heads, over);
  const names = [...svg.querySelectorAll("text[data-tile]")];
  let current = null;
  const show = (n) => {
    current = n;
    over.replaceChildren();
    names.forEach((t) => t.setAttribute("opacity", n == null ? 1 : 0.35));
    if (n == null) $("info").innerHTML = f.clash.length ? refusalLegend(f, col) : legend();
    else showInstance(f, over, n);
    if (st().refusal) markRefusal(f, over);
  };
  const at = (e) => {
    const r = svg.getBoundingClientRect();
    const s = Math.min(r.width / f.W, r.height / f.H);
    const px = (e.clientX - r.left - (r.width - f.W * s) / 2) / s;
    const py = (e.clientY - r.top - (r.height - f.H * s) / 2) / s;
    for (let z = f.z0; z < f.z0 + f.nz; z++) {
      const n = cells.get(`${Math.floor((px - f.ox - f.dz(z)) / f.cell + f.x0)},${Math.floor((py - f.oy + f.dz(z)) / f.cell + f.y0)},${z}`);
      if (n != null) return n;
    }
    return null;
  };
  const keep = (n) => { state.pinned = n != null; state.cursor = n != null ? pts[n] : null; show(n); writeHash(); };
  svg.addEventListener("pointermove", (e) => { const n = at(e); if (!state.pinned && n !== current) show(n); });
  svg.addEventListener("pointerleave", () => { if (!state.pinned) show(null); });
  svg.addEventListener("click", (e) => keep(at(e)));
  svg.addEventListener("keydown", (e) => {
    if (e.key === "Escape") return keep(null);
    const d = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1] }[e.key];
    if (!d) return;
    e.preventDefault();
    e.stopPropagation();
    const n = current == null ? 0 : cells.get(`${f.xs[current] + d[0]},${f.ys[current] + d[1]},${f.zs[current] + d[2]}`);
    keep(n ?? current);
  });
  plot.append(svg);
  const want = state.cursor ? pts.findIndex((p) => p.join() === state.cursor.join()) : -1;
  show(want >= 0 ? want : null);
}

// Where the two instances of a refusal lie along some axes, whichever statements they are of.
function clashing(axes) {
  if (!st().refusal) return [];
  return instancesOf(st().refusal).map((it) => {
    const ins = ker().insns.find((x) => x.name === it.insn);
    const at = axes.map((axis) => (axis && ins ? project(ins, it.point, axis) : 0));
    return { it, at, known: !!ins && !at.some(Number.isNaN) };
  });
}

function markRefusal(f, over) {
  const places = f.clash.map((c) => (c.known ? f.centre(...(f.Z ? c.at : [c.at[0], c.at[1]])) : null));
  const [a, b] = places;
  if (a && b && (a[0] !== b[0] || a[1] !== b[1])) {
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
    const t = Math.min(0.4, Math.max(10, f.cell * 0.46) / Math.hypot(dx, dy));
    const d = `M${a[0] + dx * t} ${a[1] + dy * t}L${b[0] - dx * t} ${b[1] - dy * t}`;
    over.append(sv("defs", {}, sv("marker", { id: "a-clash", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, sv("path", { d: "M0 0L8 4L0 8z", style: "fill:var(--warn)" }))),
      sv("path", { d, style: "stroke:var(--halo)", "stroke-width": 4.5 }), sv("path", { d, style: "stroke:var(--warn)", "stroke-width": 2.2, "marker-end": "url(#a-clash)" }));
  }
  places.forEach((at, m) => {
    if (!at) return;
    const [cx, cy] = at;
    const own = f.clash[m].it.insn === f.i.name;
    over.append(sv("circle", { cx, cy, r: Math.max(9, Math.min(13, f.cell * 0.46)), style: "fill:var(--halo);stroke:var(--warn)", "stroke-width": 2.5, "stroke-dasharray": own ? null : "3 2" }),
      sv("text", { x: cx, y: cy + 4.5, "text-anchor": "middle", "font-size": 13, "font-weight": 700, "data-clash": "AB"[m] }, "AB"[m]));
  });
}

// What is said below the picture of a refusal.
function refusalLegend(f, col) {
  const name = (c, m) => `<b>${"AB"[m]}</b> <code>${html(c.it.insn)}[${c.it.point.join(", ")}]</code>${c.it.insn === f.i.name ? "" : " (dashed: of that statement)"}${c.known ? "" : ", which has not these axes"}`;
  const told = f.clash.map(name).join(", ");
  const hits = col.clash ? `<br>${count(f.pts.filter((p, n) => col.hit(p, n)).length)} of ${count(f.pts.length)} instances ${col.clash} (orange)` : "";
  return told + hits;
}
