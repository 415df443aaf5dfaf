// --------------------------------------------------------------------------------------- roofline
const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const figure = (v) => (v >= 100 ? v.toFixed(0) : String(+v.toPrecision(3)));
const scaled = (v, unit) => {
  const [size, prefix] = SI.find(([size]) => v >= size) || SI.at(-1);
  return `${figure(v / size)} ${prefix}${unit}`;
};
function duration(s) {
  const [size, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([size]) => s >= size) || [1e-9, "ns"];
  return `${figure(s / size)} ${unit}`;
}

// The highest rate at an intensity, in FLOP/s.
const roof = (device, intensity) => Math.min(device.dram_bytes_per_s * intensity, device.fp64_flops_per_s);
const intensity = (work) => work.flops / work.dram_bytes;

// Work, rate and share of the roof of a trial: of what is executed, where that was counted.
function placed(trial, device) {
  const work = { ...trial.work, flops: trial.executed_flops || trial.work.flops };
  const rate = work.flops / trial.times.median_s;
  return { x: intensity(work), rate, share: rate / roof(device, intensity(work)) };
}

function drawRoofline(body) {
  const { device, work, trials } = D.performance;
  const pad = el("div", { class: "pad" });
  body.append(pad);
  const measured = trials.filter((t) => t.times);
  const at = Object.entries(D.params).map(([n, v]) => `${n} = ${v}`).join(", ");
  pad.append(el("p", { class: "small" }, `${device.name}: ${scaled(device.dram_bytes_per_s, "B/s")} of memory, ${scaled(device.fp64_flops_per_s, "FLOP/s")} in double precision.`));
  const points = measured.map((t) => ({ ...placed(t, device), trial: t, here: t.step === state.step }));
  // without a byte or an operation there is no place on it
  const least = work && work.flops > 0 && work.dram_bytes > 0 ? { x: intensity(work), rate: roof(device, intensity(work)) } : null;
  if (points.length || least) pad.append(rooflinePicture(device, points, least));
  if (least) {
    const s = work.flops / least.rate;
    const bound = least.rate < device.fp64_flops_per_s ? "memory" : "arithmetic";
    pad.append(rich("p", { class: "small" }, `<b>Predicted</b> (◇), not measured: with ${html(at)}, ${count(work.flops)} FLOP and ${count(work.dram_bytes)} B of memory take ${duration(s)} at least, by ${bound}.`));
  }
  if (!trials.length) {
    pad.append(el("p", { class: "small muted" }, "No trial of this kernel is recorded; kingpost explore takes those of a database with --db."));
    return;
  }
  const rows = [...trials].sort((a, b) => (a.times?.median_s ?? Infinity) - (b.times?.median_s ?? Infinity)).slice(0, 60);
  pad.append(table(["mapping", "case", "step", "median", "least", "roof", "predicted", "registers and spills"], rows.map((t) => {
    const p = t.times && placed(t, device);
    return [t.label, t.case, t.step == null ? "" : String(t.step), t.times ? duration(t.times.median_s) : `refused: ${t.refused}`, t.times ? duration(t.times.min_s) : "",
      p ? `${(100 * p.share).toFixed(1)} %` : "", t.predicted_s ? duration(t.predicted_s) : "", t.resources || ""];
  })));
  if (trials.length > rows.length) pad.append(el("p", { class: "small muted" }, `and ${trials.length - rows.length} more`));
}

// Both axes by powers of ten; a trial is a dot, that of the step that is shown a large one, what is predicted hollow.
function rooflinePicture(device, points, least) {
  const [W, H, L, B] = [440, 250, 50, 34];
  const knee = device.fp64_flops_per_s / device.dram_bytes_per_s;
  const all = [...points, ...(least ? [least] : [])];
  const low = (of, more) => Math.floor(Math.log10(Math.min(...all.map(of), more)));
  const high = (of, more) => Math.ceil(Math.log10(Math.max(...all.map(of), more)));
  const [x0, x1] = [low((p) => p.x, knee / 10), high((p) => p.x, knee * 10)];
  const [y0, y1] = [low((p) => p.rate, device.fp64_flops_per_s / 1000), high((p) => p.rate, device.fp64_flops_per_s)];
  const px = (v) => L + ((Math.log10(v) - x0) / (x1 - x0)) * (W - L - 12);
  const py = (v) => H - B - ((Math.log10(v) - y0) / (y1 - y0)) * (H - B - 10);
  const svg = sv("svg", { viewBox: `0 0 ${W} ${H}`, width: "100%", style: "max-width:560px;display:block", role: "img",
    "aria-label": `Roofline of ${device.name} with ${points.length} trials${least ? " and what its ceilings allow" : ""}` });
  const line = (x, y, u, v, attrs) => svg.append(sv("path", { d: `M${x} ${y}L${u} ${v}`, fill: "none", ...attrs }));
  const text = (x, y, what, attrs) => svg.append(sv("text", { x, y, "font-size": 11, style: "fill:var(--muted)", ...attrs }, what));
  for (let d = x0; d <= x1; d++) {
    line(px(10 ** d), 10, px(10 ** d), H - B, { style: "stroke:var(--line)", "stroke-width": 0.7 });
    text(px(10 ** d), H - B + 14, String(+(10 ** d).toPrecision(1)), { "text-anchor": "middle" });
  }
  for (let d = y0; d <= y1; d++) {
    line(L, py(10 ** d), W - 12, py(10 ** d), { style: "stroke:var(--line)", "stroke-width": 0.7 });
    text(L - 5, py(10 ** d) + 4, scaled(10 ** d, ""), { "text-anchor": "end" });
  }
  text(W - 12, H - 4, "FLOP per byte of memory", { "text-anchor": "end" });
  text(4, H - 4, "FLOP/s");
  const start = Math.max(10 ** x0, 10 ** y0 / device.dram_bytes_per_s);
  svg.append(sv("path", { d: `M${px(start)} ${py(roof(device, start))}L${px(knee)} ${py(device.fp64_flops_per_s)}H${W - 12}`, fill: "none", style: "stroke:var(--text)", "stroke-width": 2 }));
  for (const p of [...points].sort((a, b) => a.here - b.here)) {
    svg.append(sv("circle", { cx: px(p.x), cy: py(p.rate), r: p.here ? 6 : 3.2, "data-trial": p.trial.label, style: `fill:var(--${p.here ? "c5" : "c1"});stroke:var(--halo)`, "stroke-width": 1 },
      sv("title", {}, `${p.trial.label}: ${duration(p.trial.times.median_s)}, ${scaled(p.rate, "FLOP/s")}, ${(100 * p.share).toFixed(1)} % of the roof`)));
  }
  if (least) {
    const [x, y] = [px(least.x), py(least.rate)];
    svg.append(sv("path", { d: `M${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}L${x - 6} ${y}z`, "data-predicted": "", style: "fill:var(--bg);stroke:var(--accent)", "stroke-width": 2 }));
  }
  return svg;
}
