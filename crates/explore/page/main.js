// ------------------------------------------------------------------------------------------------ all
function draw() {
  const s = st();
  const last = D.steps.length - 1;
  document.body.classList.toggle("refused", !!s.refusal);
  $("cmd").textContent = $("cmd").title = D.command;
  $("range").max = last;
  $("range").value = state.step;
  $("range").setAttribute("aria-valuetext", `step ${state.step}: ${labelOf(state.step).replace(/`/g, "")}`);
  $("prev").disabled = state.step === 0;
  $("next").disabled = state.step === last;
  const name = s.refusal ? `Step ${state.step} refused` : state.step ? `Step ${state.step} of ${last}` : "As written";
  $("what").innerHTML = `<b>${name}</b> &nbsp;${state.step ? marked(s.label) : ""}`;
  state.hot = [state.stmt].filter(Boolean);
  drawSteps();
  drawKernel();
  drawSource();
  drawSpace();
  drawDetail();
  revealAll();
  writeHash();
}

function go(n) {
  const to = Math.max(0, Math.min(D.steps.length - 1, n));
  if (to === state.step) return;
  state.step = to;
  state.pinned = false;
  state.cursor = null;
  if (!ker().insns.some((i) => i.name === state.stmt)) state.stmt = null;
  if (st().refusal) state.tab = "refusal";
  resetView();
  draw();
}

function marks() {
  for (const b of document.querySelector("nav.panels").children) b.setAttribute("aria-selected", String(b.dataset.p === document.body.dataset.panel));
}

function listen() {
  const panels = document.querySelector("nav.panels");
  for (const [id, name] of [...($("live") ? [["editor", "Edit"]] : []), ["steps", "Steps"], ["kernel", "Kernel"], ["source", "Source"], ["space", "Space"], ["detail", "More"]]) {
    const show = () => { document.body.dataset.panel = id; marks(); drawSpace(); arcs(); };
    panels.append(el("button", { role: "tab", "data-p": id, onclick: show }, name));
  }
  $("prev").onclick = () => go(state.step - 1);
  $("next").onclick = () => go(state.step + 1);
  $("range").oninput = (e) => go(+e.target.value);
  $("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  $("help").onclick = () => $("keys").showModal();
  $("showdel").onchange = () => { drawKernel(); drawSource(); revealAll(); };
  $("showarcs").onchange = arcs;
  addEventListener("keydown", (e) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "range" && e.target.type !== "checkbox";
    if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open || typing) return;
    const all = ker().insns;
    const at = all.findIndex((i) => i.name === state.stmt);
    const tab = TABS[+e.key - 1];
    const f = {
      ArrowLeft: () => go(state.step - 1), ArrowRight: () => go(state.step + 1), Home: () => go(0), End: () => go(D.steps.length - 1),
      j: () => all.length && choose(all[Math.min(all.length - 1, at + 1)].name), k: () => all.length && choose(all[Math.max(0, at - 1)].name),
      t: () => $("theme").click(), "?": () => $("keys").showModal(),
    }[e.key];
    if (f) { e.preventDefault(); f(); }
    else if (tab && tabShown(tab[0])) { state.tab = tab[0]; drawDetail(); writeHash(); }
  });
  let timer;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => { drawSpace(); arcs(); }, 80); });
}

function prepare() {
  state.kernel = new Rows($("ktext"));
  state.source = new Rows($("stext"));
}

async function unpacked() {
  const bytes = Uint8Array.from(atob($("data").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpack(await new Response(stream).json());
}

if (typeof document !== "undefined") {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  // the script of an editor follows
  if ($("live")) addEventListener("DOMContentLoaded", () => { prepare(); edit(); });
  else unpacked().then((data) => {
    D = data;
    prepare();
    listen();
    readHash();
    if (!new URLSearchParams(location.hash.slice(1)).get("tab")) state.tab = st().refusal ? "refusal" : "deps";
    const cursor = state.cursor;
    resetView();
    state.cursor = cursor;
    marks();
    draw();
    document.body.dataset.ready = "yes";
  }).catch((error) => {
    $("failed").hidden = false;
    $("failed").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
    throw error;
  });
}
