// A page in headless Chromium: `node browser.mjs PAGE.html [PICTURES]`. No error, no request, nothing wider than
// the window, at four widths in both themes; keys; times. With a folder it also writes pictures.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const url = pathToFileURL(process.argv[2]).href;
const pictures = process.argv[3];
const chromium = spawn(process.env.CHROMIUM || "chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--remote-debugging-pipe", "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
chromium.on("error", (error) => { console.log(`no browser: ${error.message}`); process.exit(3); });

const [waiting, listeners, wrong] = [new Map(), new Map(), []];
let [number, rest, session] = [0, "", undefined];
chromium.stdio[4].on("data", (bytes) => {
  const parts = (rest + bytes).split("\0");
  rest = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    if (message.id) { waiting.get(message.id)?.(message); waiting.delete(message.id); }
    else listeners.get(message.method)?.(message.params);
  }
});
const send = (method, params = {}) => new Promise((done) => {
  const id = ++number;
  waiting.set(id, (m) => { if (m.error) wrong.push(`${method}: ${m.error.message}`); done(m.result ?? {}); });
  chromium.stdio[3].write(JSON.stringify({ id, method, params, sessionId: session }) + "\0");
});
const check = (ok, text) => { if (!ok) wrong.push(text); };
const run = async (expression) => {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
  check(!exceptionDetails, `${expression.slice(0, 80)}: ${exceptionDetails?.exception?.description}`);
  return result?.value;
};
const key = async (name) => { for (const type of ["keyDown", "keyUp"]) await send("Input.dispatchKeyEvent", { type, key: name, code: name }); };
async function open(width, height, theme, hash = "") {
  await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 700 });
  await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: theme }] });
  await send("Page.navigate", { url: "about:blank" });
  const loaded = new Promise((done) => listeners.set("Page.loadEventFired", done));
  await send("Page.navigate", { url: url + hash });
  await loaded;
  for (let n = 0; n < 400; n++) {
    if (await run("document.body?.dataset.ready")) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  wrong.push("the page is never ready");
}

const { targetInfos } = await send("Target.getTargets");
const { targetId } = targetInfos.find((t) => t.type === "page");
session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
listeners.set("Runtime.exceptionThrown", ({ exceptionDetails: e }) => wrong.push(e.exception?.description || e.text));
listeners.set("Runtime.consoleAPICalled", (m) => ["error", "warning"].includes(m.type) && wrong.push("console: " + JSON.stringify(m.args)));
listeners.set("Log.entryAdded", ({ entry }) => entry.level === "error" && wrong.push("log: " + entry.text));
listeners.set("Network.requestWillBeSent", ({ request }) => /^(file|data|about|blob):/.test(request.url) || wrong.push("request: " + request.url));
for (const part of ["Page", "Runtime", "Log", "Network"]) await send(part + ".enable");

for (const [width, height] of [[1400, 900], [900, 1000], [390, 844], [360, 740]]) {
  for (const theme of ["light", "dark"]) {
    await open(width, height, theme);
    check((await run("document.documentElement.dataset.theme")) === theme, `opens ${theme}`);
    const wide = await run(`(() => {
      const wide = [];
      for (const panel of ["steps", "kernel", "source", "space", "detail"]) {
        document.body.dataset.panel = panel;
        for (let step = 0; step < D.steps.length; step++) for (const [tab] of TABS) {
          go(step); state.tab = tab; drawDetail();
          document.querySelector("#plot svg")?.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
          if (document.documentElement.scrollWidth > innerWidth) wide.push(panel + " " + step + " " + tab);
        }
        if (innerWidth > 700) break;
      }
      return wide.join(", ");
    })()`);
    check(wide === "", `${width} px, ${theme}, wider than the window: ${wide}`);
    if (pictures) {
      await open(width, height, theme, width < 700 ? "#panel=space" : "");
      const { data } = await send("Page.captureScreenshot", { format: "png" });
      writeFileSync(`${pictures}/${width}_${theme}.png`, Buffer.from(data, "base64"));
    }
  }
}

await open(1400, 900, "light", "#step=1");
const last = await run("D.steps.length - 1");
const at = async (name, step) => { await key(name); check((await run("state.step")) === step, `${name} leads to step ${step}`); };
await at("ArrowLeft", 0);
await at("ArrowRight", Math.min(1, last));
await at("End", last);
await at("Home", 0);
await key("End");
const before = await run("state.stmt");
await run("choose(ker().insns[0].name)");
await key("j");
check((await run("state.stmt")) === (await run("ker().insns[Math.min(1, ker().insns.length - 1)].name")), `j takes the next statement, not ${before}`);
await run(`document.querySelector("#plot svg")?.focus()`);
await key("ArrowRight");
check((await run("state.step")) === last, "arrows in the picture leave the step");
check(await run(`!document.querySelector("#plot svg") || state.pinned`), "arrows in the picture keep an instance");
await key("Escape");
check(!(await run("state.pinned")), "Escape lets it go");
await key("2");
check((await run("state.tab")) === "counts", "2 shows the counts");
check((await run("location.hash")).includes("tab=counts"), "the address says what is shown");
// a refusal with two instances shows both, and colours what goes wrong where the step says it
const drawn = await run(`(() => {
  go(0);
  const n = D.steps.findIndex((s) => s.refusal && instancesOf(s.refusal).length === 2);
  if (n < 0) return "";
  go(n);
  const named = [...document.querySelectorAll("#plot text[data-clash]")].map((t) => t.textContent).join("");
  if (named !== "AB") return "of the two instances the picture has " + (named || "none");
  if (!wrongPairs(insn())) return "";
  const i = insn();
  const all = [...points(i, { ...state.params })].map((p) => p.join());
  const hit = wrongPairs(i);
  const [a, b] = instancesOf(st().refusal);
  for (const at of [a, b]) if (at.insn === i.name && (!all.includes(at.point.join()) || !hit(at.point))) return at.point + " is not among what goes wrong";
  return all.every((p) => hit(p.split(",").map(Number))) && all.length > 40 ? "everything goes wrong" : "";
})()`);
check(drawn === "", drawn);
// lines of sources and statements lead to each other
const linked = await run(`(() => {
  go(D.steps.length - 1);
  const n = state.source.find((row) => row.stmts?.length === 1);
  if (n < 0) return "";
  state.source.reveal(n);
  state.source.show();
  const row = state.source.shown.get(n);
  const [name] = state.source.all[n].stmts;
  row.dispatchEvent(new PointerEvent("pointerenter"));
  const k = state.kernel.find((r) => r.stmts?.includes(name));
  state.kernel.reveal(k);
  if (!state.kernel.shown.get(k).classList.contains("hot")) return "pointing at a line of the source does not show its statement";
  row.click();
  return state.stmt === name ? "" : "a line of the source does not choose its statement";
})()`);
check(linked === "", linked);
// the best of some times, as the machine may be busy
const worst = await run(`(() => {
  const best = D.steps.map(() => Infinity);
  for (let again = 0; again < 4; again++) for (let step = 0; step < D.steps.length; step++) {
    const t = performance.now();
    go(step);
    document.body.offsetHeight;
    best[step] = Math.min(best[step], performance.now() - t);
  }
  return Math.max(...best);
})()`);
console.log(`slowest step change ${worst?.toFixed(0)} ms`);
check(worst <= 100, `a step change takes ${worst?.toFixed(0)} ms`);
console.log(wrong.length ? [...new Set(wrong)].slice(0, 20).join("\n") : "nothing wrong");
chromium.kill();
process.exit(wrong.length ? 1 : 0);
