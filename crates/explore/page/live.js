// ------------------------------------------------------------------------------------------ editor
// Each edit goes to the server that the page is from, which analyses it: no code of the kernel runs.
const PAUSE = 40; // ms without a key before an edit is sent

// One question at a time; of edits in between only the last is sent.
const live = { asking: false, waiting: false, timer: 0, shown: false };

async function ask() {
  if (live.asking) { live.waiting = true; return; }
  live.asking = true;
  const text = $("text").value;
  const start = performance.now();
  try {
    const answer = await fetch("explore", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }) });
    if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).slice(0, 200)}`);
    const told = await answer.json();
    if (told.errors) say(told.errors);
    else take({ ...told.about, steps: told.steps });
    $("took").textContent = `${Math.round(performance.now() - start)} ms`;
  } catch (error) {
    say([{ message: `no answer: ${error.message}; is kingpost still running?` }]);
  }
  live.asking = false;
  document.body.dataset.ready = "yes";
  if (live.waiting) { live.waiting = false; ask(); }
}

// The page stays at the end if it was there, else at its step.
function take(data) {
  const atEnd = !live.shown || state.step === D.steps.length - 1;
  D = data;
  const last = D.steps.length - 1;
  state.step = atEnd ? last : Math.min(state.step, last);
  if (!ker().insns.some((i) => i.name === state.stmt)) state.stmt = null;
  if (st().refusal) state.tab = "refusal";
  state.pinned = false;
  state.cursor = null;
  resetView();
  if (!live.shown) { listen(); readHash(); marks(); resetView(); }
  live.shown = true;
  draw();
  const { refusal } = D.steps[last];
  say(refusal ? [{ message: `step ${last} is refused: ${refusal.clash}${refusal.help ? "; " + refusal.help : ""}` }] : []);
}

// What is wrong with the text; a click goes there.
function say(errors) {
  const box = $("said");
  box.replaceChildren();
  $("text").setAttribute("aria-invalid", String(errors.length > 0));
  for (const { message, help, line, column, start, end } of errors) {
    const select = () => { $("text").focus(); $("text").setSelectionRange(start, Math.max(end, start + 1)); };
    const place = line ? el("button", { onclick: select }, `line ${line}, column ${column}`) : null;
    box.append(el("p", { class: "bad" }, place, rich("span", {}, " " + marked(message) + (help ? `<br>${marked(help)}` : ""))));
  }
  if (!errors.length) box.append(el("p", { class: "muted" }, "Every step is applied."));
}

function edit() {
  const area = $("text");
  area.value = JSON.parse($("live").textContent);
  area.addEventListener("input", () => { clearTimeout(live.timer); live.timer = setTimeout(ask, PAUSE); });
  // two spaces: the text is read by its indentation
  area.addEventListener("keydown", (e) => {
    if (e.key !== "Tab" || e.shiftKey || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    document.execCommand("insertText", false, "  ");
  });
  area.addEventListener("keydown", (e) => { if (e.key === "Escape") $("next").focus(); });
  ask();
}
