// ------------------------------------------------------------------------------------- long texts
// Lines of equal height, of which only those in sight are laid out: a source may have thousands.
const LINE = 19;
const BEYOND = 20; // lines above and below what is in sight

class Rows {
  constructor(box) {
    this.box = box;
    this.view = box.parentNode;
    this.all = []; // { text, stmts, around, fresh, make }
    this.shown = new Map();
    this.view.addEventListener("scroll", () => this.show(), { passive: true });
    new ResizeObserver(() => this.show()).observe(this.view);
  }
  set(all) {
    this.all = all;
    this.shown.clear();
    this.box.replaceChildren();
    this.box.style.height = `${LINE * all.length + 8}px`;
    this.box.style.minWidth = `calc(${all.reduce((most, row) => Math.max(most, row.text.length), 0)}ch + 150px)`;
    this.view.scrollTop = 0;
    this.show();
  }
  show() {
    const { scrollTop, clientHeight } = this.view;
    const from = Math.max(0, Math.floor(scrollTop / LINE) - BEYOND);
    const to = Math.min(this.all.length, Math.ceil((scrollTop + clientHeight) / LINE) + BEYOND);
    for (const [n, row] of this.shown) {
      if (n >= from && n < to) continue;
      row.remove();
      this.shown.delete(n);
    }
    for (let n = from; n < to; n++) {
      if (this.shown.has(n)) continue;
      const row = this.all[n].make();
      row.style.top = `${this.top(n)}px`;
      this.shown.set(n, row);
      this.light(n);
      this.box.append(row);
    }
  }
  top(n) {
    return 4 + n * LINE;
  }
  // Marks the lines of the statements that are looked at.
  light(n) {
    const row = this.shown.get(n);
    const { stmts, around } = this.all[n];
    const own = state.hot.find((name) => stmts?.includes(name));
    const near = own ? null : state.hot.find((name) => around?.includes(name));
    row.classList.toggle("hot", own != null);
    row.classList.toggle("near", near != null);
    if (own ?? near) row.style.setProperty("--hc", hue(own ?? near));
  }
  lightAll() {
    for (const n of this.shown.keys()) this.light(n);
  }
  find(of) {
    return this.all.findIndex(of);
  }
  // Brings a line into sight, if it is not.
  reveal(n) {
    if (n < 0) return;
    const { scrollTop, clientHeight } = this.view;
    const y = this.top(n);
    if (y < scrollTop || y + LINE > scrollTop + clientHeight) {
      this.view.scrollTop = Math.max(0, y - clientHeight * 0.3);
      this.show();
    }
  }
}
