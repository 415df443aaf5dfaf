#!/usr/bin/env node
// Pictures of the book: iteration spaces as `kingpost explore` draws them. The page's own script draws, on a document
// that holds nothing but what it draws; the colours are those of its style, light and dark.
//
//     cargo build -p kingpost-cli && node scripts/book_pictures.mjs [--check] [--kingpost PATH] [NAME...]
//
// `--check` writes nothing and fails where a picture would change.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BOOK = join(ROOT, "docs/book/src");
const run = promisify(execFile);

// name: arguments of `kingpost explore`, the place in the page, and what is chosen there
const PICTURES = {
  axpy_lanes: ["axpy.kingpost --recipe peeled.json --param n=26", "stmt=s", { x: "l:lane", y: "l:four", colour: "order" }],
  argmin_tree: ["argmin.kingpost --recipe argmin_tree.json --param n=6", "stmt=s_update_tree_join_1"],
  blur_2d_tiles: ["blur_2d.kingpost --param n=20 --param m=80", "step=6&stmt=b"],
  blur_groups: ["fast_blur.kingpost --param n=1000", "stmt=s0", { x: "l:i_i", y: "l:i_o" }],
  cells: ["laplace --dim 2 --degree 2 --mapping {\"strategy\":\"single_cell\",\"cells\":8}", ""],
  contraction: ["contraction.kingpost --recipe sum_factorisation.json --param ne=1", "stmt=q_update", { x: "l:n", y: "l:m", z: "l:l", colour: "order" }],
  gemm_loops: ["gemm.kingpost --param ni=8 --param nj=10 --param nk=6", "stmt=s1&at=3,2,4"],
  jacobi_time: ["examples/jacobi_2d.kingpost --param tsteps=24 --param n=90", "step=2&stmt=s", { x: "l:c1", y: "l:c0", colour: "tile" }],
  matmul_rows: ["examples/matmul.kingpost --recipe rows.json --param n=32", "stmt=store", { colour: "item" }],
  matmul_tiles: ["examples/matmul.kingpost --recipe examples/matmul_recipe.json --param n=40", "step=3"],
  prefix_terms: ["prefix.kingpost --recipe terms.json --param n=14", "", { colour: "order" }],
  productions: ["productions.kingpost --param n=16", "stmt=a", { colour: "order" }],
  reversed: ["axpy.kingpost --recipe reverse.json --param n=12", "", { x: "o:i", y: "l:i", colour: "order" }],
  row_sums: ["examples/row_sums.kingpost --recipe examples/row_sums_recipe.json --param n=6 --param m=40", "step=2"],
  running_sum: ["running.kingpost --param n=14", "at=5"],
  stencil_refused: ["stencil.kingpost --recipe wrong_tiles.json", ""],
  tiled: ["tiled.kingpost --param n=20 --param m=12", "", { colour: "group" }],
  waves_refused: ["waves.kingpost --recipe interchange.json", "", { params: { n: 9 } }],
};

// ------------------------------------------------------------------------------------------------ document
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// As much of an element of a document as the page's drawing asks for.
class Element {
  constructor(tag) {
    Object.assign(this, { tag, attributes: new Map(), children: [], dataset: {}, style: {}, classList: { add() {}, toggle() {} } });
  }
  setAttribute(name, value) { this.attributes.set(name, value); }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener() {}
  getBoundingClientRect() { return { width: 460, height: 300 }; }
  // the one question of the drawing: the names of tiles
  querySelectorAll() {
    const below = this.children.flatMap((child) => (child instanceof Element ? [child, ...child.querySelectorAll()] : []));
    return below.filter((element) => element.attributes.has("data-tile"));
  }
  set textContent(text) { this.children = [text]; }
  text() {
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
    const inside = this.children.map((child) => (child instanceof Element ? child.text() : escaped(child))).join("");
    return `<${this.tag}${attributes}>${inside}</${this.tag}>`;
  }
}

function newDocument() {
  const known = new Map();
  return {
    body: new Element("body"),
    documentElement: new Element("html"),
    createElement: (tag) => new Element(tag),
    createElementNS: (_, tag) => new Element(tag),
    getElementById(id) {
      if (!known.has(id)) known.set(id, new Element("div"));
      return known.get(id);
    },
  };
}

// ------------------------------------------------------------------------------------------------- drawing
// The SVG that the page draws at a place, as text.
function drawn(page, place, chosen) {
  const script = page.slice(page.indexOf('"use strict";'), page.lastIndexOf("</script>"));
  const packed = page.match(/id="data">([^<]*)</)[1];
  const draw = new Function(`${script};
    return (data, chosen) => {
      D = data;
      readHash();
      const cursor = state.cursor;
      resetView();
      Object.assign(state, { cursor }, chosen);
      drawSpace();
      return $("plot").children.find((child) => child.tag === "svg");
    };`)();
  const unpack = new Function(`${script}; return unpack;`)();
  Object.assign(globalThis, { document: newDocument(), location: { hash: `#${place}` } });
  const svg = draw(unpack(JSON.parse(gunzipSync(Buffer.from(packed, "base64")))), chosen);
  delete globalThis.document;
  if (!svg) throw new Error("no picture: too many instances, or none");
  return svg.text();
}

// What is drawn, without the room that the page has around it.
function extent(plot) {
  const cells = [...plot.matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)/g)].map((cell) => cell.slice(1).map(Number));
  const words = [...plot.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)/g)].map(([, x, y, word]) => [Number(x), Number(y), word]);
  const most = (all) => Math.round(all.reduce((a, b) => Math.max(a, b))) + 12;
  return [most([...cells.map(([x, , w]) => x + w), ...words.map(([x, , word]) => x + 7 * word.length)]), most([...cells.map(([, y, , h]) => y + h), ...words.map(([, y]) => y)])];
}

// The variables of a theme that a picture mentions.
function theme(style, selector, plot) {
  const block = style.slice(style.indexOf(selector)).split("}")[0];
  const all = [...block.matchAll(/--([\w-]+):\s*([^;]+)/g)];
  return all.filter(([, name]) => plot.includes(`var(--${name})`)).map(([, name, value]) => `--${name}:${value.trim()}`).join(";");
}

function picture(page, place, chosen) {
  const style = readFileSync(join(ROOT, "crates/explore/page/style.css"), "utf8");
  let plot = drawn(page, place, chosen)
    .replace(/ tabindex="0"| data-(tile|clash)="[^"]*"/g, "")
    .replace("; arrow keys move between instances", "")
    .replace(/-?\d+\.\d{2,}/g, (number) => String(Math.round(number * 10) / 10));
  const [width, height] = extent(plot);
  const inside = plot.slice(plot.indexOf(">") + 1);
  const label = plot.match(/aria-label="[^"]*"/)[0];
  plot = `<rect width="${width}" height="${height}" style="fill:var(--panel)"/>${inside}`;
  const words = "text{fill:var(--text)}";
  const of = (selector) => `svg{${theme(style, selector, plot + words)}}`;
  const themes = `${of(":root{")}@media(prefers-color-scheme:dark){${of(":root[data-theme=dark]{")}}${words}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" role="img" ${label}><style>${themes}</style>${plot}\n`;
}

// --------------------------------------------------------------------------------------------------- files
// Writes the files that the chapters show.
function writeBlocks(folder) {
  for (const chapter of readdirSync(BOOK).filter((name) => name.endsWith(".md"))) {
    for (const [, info, body] of readFileSync(join(BOOK, chapter), "utf8").matchAll(/^```(.*)\n((?:.*\n)*?)```$/gm)) {
      const named = info.match(/file=([^\s,]+)/);
      if (named) writeFileSync(join(folder, named[1]), body);
    }
  }
  symlinkSync(join(ROOT, "examples"), join(folder, "examples"));
}

async function main(words) {
  const value = (name) => (words.includes(name) ? words.splice(words.indexOf(name), 2)[1] : null);
  const kingpost = value("--kingpost") ?? join(ROOT, "target/debug/kingpost");
  const check = words.includes("--check");
  const names = words.filter((word) => word !== "--check");
  const wanted = names.length ? names : Object.keys(PICTURES);
  const folder = mkdtempSync(join(tmpdir(), "pictures-"));
  const stale = [];
  try {
    writeBlocks(folder);
    const waiting = [...wanted];
    const work = async () => {
      for (let name; (name = waiting.shift()); ) {
        const [line, place, chosen = {}] = PICTURES[name];
        const page = join(folder, `${name}.html`);
        // a refused step is a page, too, and ends the command with 1
        const { stderr } = await run(kingpost, ["explore", ...line.split(" "), "-o", page], { cwd: folder }).catch((error) => error);
        let text;
        try {
          text = picture(readFileSync(page, "utf8"), place, chosen);
        } catch (error) {
          throw new Error(`${name}: ${error.message}\n${stderr}`);
        }
        const file = join(BOOK, "pictures", `${name}.svg`);
        if (!check) {
          writeFileSync(file, text);
          console.log(`${name}.svg: ${Math.ceil(text.length / 1024)} KiB`);
        } else if (text !== readFileSync(file, "utf8")) stale.push(name);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, work));
  } finally {
    rmSync(folder, { recursive: true });
  }
  if (stale.length) {
    console.error(`these pictures are of another program or page: node scripts/book_pictures.mjs ${stale.join(" ")}`);
    process.exit(1);
  }
}

await main(process.argv.slice(2));
