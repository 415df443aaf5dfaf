"use strict";
// Expressions, instances and pairs. Nothing is listed in the data: a row is [constant, term, factor, ...],
// a term the name of a loop, a parameter or a scalar, or [row, divisor], the quotient rounded down.

function value(row, env) {
  let sum = row[0];
  for (let n = 1; n < row.length; n += 2) {
    const term = row[n];
    const v = typeof term === "string" ? env[term] : Math.floor(value(term[0], env) / term[1]);
    if (v === undefined) return NaN;
    sum += row[n + 1] * v;
  }
  return sum;
}

// What is not known, such as a value in memory, rules nothing out.
function holds(conditions, env) {
  for (const row of conditions.eq || []) {
    const v = value(row, env);
    if (v !== 0 && !Number.isNaN(v)) return false;
  }
  for (const row of conditions.ge || []) if (value(row, env) < 0) return false;
  return true;
}

const anyHolds = (disjuncts, env) => disjuncts.some((conditions) => holds(conditions, env));

function mentions(row, name) {
  for (let n = 1; n < row.length; n += 2) {
    if (typeof row[n] === "string" ? row[n] === name : mentions(row[n][0], name)) return true;
  }
  return false;
}

// The factor of a name in a row; null if it is in a quotient, too.
const factors = new WeakMap();
function factor(row, name) {
  let known = factors.get(row);
  if (!known) factors.set(row, (known = new Map()));
  if (known.has(name)) return known.get(name);
  let sum = 0;
  for (let n = 1; n < row.length && sum !== null; n += 2) {
    if (row[n] === name) sum += row[n + 1];
    else if (typeof row[n] !== "string" && mentions(row[n][0], name)) sum = null;
  }
  known.set(name, sum);
  return sum;
}

// The values of a name that conditions allow, as far as the other names are known.
function range(conditions, name, env) {
  let lo = -Infinity;
  let hi = Infinity;
  const before = env[name];
  env[name] = 0;
  for (const [rows, equal] of [[conditions.eq, true], [conditions.ge, false]]) {
    for (const row of rows || []) {
      const k = factor(row, name);
      if (!k) continue;
      const rest = value(row, env);
      if (Number.isNaN(rest)) continue;
      if (k > 0 || equal) lo = Math.max(lo, Math.ceil(-rest / k));
      if (k < 0 || equal) hi = Math.min(hi, Math.floor(-rest / k));
    }
  }
  if (before === undefined) delete env[name];
  else env[name] = before;
  return [lo, hi];
}

// The values of a loop from the first to the last one of all disjuncts.
function span(loop, env) {
  let [lo, hi] = [Infinity, -Infinity];
  for (const conditions of loop.domain) {
    const [a, b] = range(conditions, loop.name, env);
    if (a > b) continue;
    lo = Math.min(lo, a);
    hi = Math.max(hi, b);
  }
  return [lo, hi];
}

class Unbounded extends Error {}

// The instances of a statement in order; `fixed` holds loops at a value.
function* points(insn, env, fixed = {}, at = 0) {
  if (at === insn.loops.length) {
    if (insn.when.every((disjuncts) => anyHolds(disjuncts, env))) yield insn.loops.map((l) => env[l.name]);
    return;
  }
  const loop = insn.loops[at];
  let [lo, hi] = span(loop, env);
  const at_value = fixed[loop.name];
  if (at_value !== undefined) [lo, hi] = [Math.max(lo, at_value), Math.min(hi, at_value)];
  if (lo <= hi && !Number.isFinite(hi - lo)) throw new Unbounded(loop.name);
  for (let v = lo; v <= hi; v++) {
    env[loop.name] = v;
    if (anyHolds(loop.domain, env)) yield* points(insn, env, fixed, at + 1);
  }
  delete env[loop.name];
}

// The instances of the other statement that a dependence pairs with one: loops are run through within
// what the conditions allow, which is one value where an equality tells it.
function partners(dep, known, insn, toSink, params, cap) {
  const [mine, others] = toSink ? [dep.src, dep.dst] : [dep.dst, dep.src];
  const found = new Map();
  for (const piece of dep.pieces) {
    const env = { ...params };
    const own = { ...params };
    let work = 0;
    mine.forEach((name, n) => (env[name] = known[n]));
    const go = (n) => {
      if (found.size >= cap || work++ > 50000) return;
      if (n === others.length) {
        if (holds(piece, env)) {
          const point = others.map((name) => env[name]);
          found.set(point.join(), point);
        }
        return;
      }
      const loop = insn.loops[n];
      const [a, b] = range(piece, others[n], env);
      if (a > b) return;
      const [c, d] = span(loop, own);
      const [lo, hi] = [Math.max(a, c), Math.min(b, d)];
      if (!(lo <= hi) || !Number.isFinite(hi - lo)) return;
      for (let v = lo; v <= hi && found.size < cap; v++) {
        env[others[n]] = own[loop.name] = v;
        if (anyHolds(loop.domain, own)) go(n + 1);
      }
      delete env[others[n]];
      delete own[loop.name];
    };
    go(0);
  }
  return [...found.values()];
}

// An expression as a reader writes it.
function show(row) {
  let text = "";
  const add = (k, what) => {
    const size = Math.abs(k) === 1 && what ? what : what ? `${Math.abs(k)}*${what}` : String(Math.abs(k));
    text += text ? (k < 0 ? " − " : " + ") + size : (k < 0 ? "−" : "") + size;
  };
  for (let n = 1; n < row.length; n += 2) {
    add(row[n + 1], typeof row[n] === "string" ? row[n] : `floor((${show(row[n][0])})/${row[n][1]})`);
  }
  if (row[0] || !text) add(row[0], "");
  return text;
}

const conditionsText = (c) =>
  [...(c.eq || []).map((r) => show(r) + " = 0"), ...(c.ge || []).map((r) => show(r) + " ≥ 0")].join(" and ");

// Equal values are in the data once: {"$": number} refers to the pool, whose values refer to those before.
function unpack({ pool, data }) {
  const at = (v) => {
    if (v === null || typeof v !== "object") return v;
    if (Array.isArray(v)) return v.map(at);
    if ("$" in v) return pool[v.$];
    return Object.fromEntries(Object.entries(v).map(([name, field]) => [name, at(field)]));
  };
  pool.forEach((v, n) => (pool[n] = at(v)));
  return at(data);
}
