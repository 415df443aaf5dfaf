// What a page computes of its own data, against what the engine counted: `node agree.mjs PAGE.html`.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const html = readFileSync(process.argv[2], "utf8");
const script = html.slice(html.indexOf('"use strict";'), html.lastIndexOf("</script>"));
const packed = html.match(/id="data">([^<]*)</)[1];
const { points, partners, unpack, banks, firstLane, at } = new Function(`${script};
  const at = (data, step) => { D = data; state.step = step; state.params = { ...data.params }; };
  return { points, partners, unpack, banks, firstLane, at };`)();
const data = unpack(JSON.parse(gunzipSync(Buffer.from(packed, "base64")).toString()));

let [looked, wrong] = [0, 0];
const say = (ok, text) => {
  looked += 1;
  if (!ok) wrong += 1;
  if (!ok) console.log("differs: " + text);
};
for (const [number, state] of data.steps.entries()) {
  const { insns } = state.kernel;
  for (const counted of state.counts.statistics?.insns ?? []) {
    const insn = insns.find((i) => i.name === counted.name);
    let own = 0;
    for (const _ of points(insn, { ...data.params })) own += 1;
    if (counted.exact) say(own === counted.instances, `step ${number}: ${insn.name} has ${counted.instances} instances, the page ${own}`);
  }
  // from either side the page finds the same pairs
  const size = (name) => state.counts.statistics?.insns.find((i) => i.name === name).instances ?? Infinity;
  for (const d of state.deps) {
    if (size(d.source) * size(d.sink) > 40000) continue;
    const [a, b] = [d.source, d.sink].map((name) => insns.find((i) => i.name === name));
    const pairs = (from, to, toSink) => {
      let sum = 0;
      for (const p of points(from, { ...data.params })) sum += partners(d, p, to, toSink, data.params, 1e6).length;
      return sum;
    };
    const [forth, back] = [pairs(a, b, true), pairs(b, a, false)];
    say(forth === back, `step ${number}: ${d.kind} of ${d.var}: ${forth} pairs forth, ${back} back`);
  }
}
// of what one sub-group does once, the rows of banks are the engine's wavefronts
for (const [number, state] of data.steps.entries()) {
  at(data, number);
  const { insns } = state.kernel;
  for (const counted of state.counts.banks.filter((t) => t.exact)) {
    const insn = insns.find((i) => i.name === counted.insn);
    const others = insn.loops.filter((l) => l.tag !== "l.0");
    if (!insn.loops.some((l) => l.tag === "l.0") || others.length > 0 || insn.reductions.length > 0) continue;
    const modes = { read: ["read", "update"], write: ["write", "update"] }[counted.kind.toLowerCase()];
    const mine = insn.access.filter((a) => a.var === counted.var && modes.includes(a.mode));
    const own = mine.reduce((sum, a) => sum + banks(insn, a, firstLane(insn)).cost, 0);
    say(own === counted.wavefronts, `step ${number}: ${insn.name} has ${counted.wavefronts} wavefronts of ${counted.var}, the page ${own}`);
  }
}
console.log(`${looked} compared, ${wrong} differ`);
process.exit(wrong > 0 || looked === 0 ? 1 : 0);
