"""The kernels of a cycle: vectors of one level, and transfers between two."""

from __future__ import annotations

from functools import lru_cache

from kingpost.compiled import Compiled, compile
from kingpost.schedule import Schedule

#: A work-item a number, on any device.
SCHEDULE = """
schedule
let group, item = split_iname(i, 256)
tag_iname(group, tag: g.0)
tag_iname(item, tag: l.0)
"""

VECTORS = {
    # The first direction from a start of zero, whose residual is `b`.
    "begin": """
param n: i32
arg a: f64 in
arg inverse: f64[n] in
arg b: f64[n] in
arg r: f64[n] out
arg d: f64[n] out
arg x: f64[n] out

for i in 0..n
  whole: r[i] = b[i]
  first: d[i] = a*inverse[i]*b[i]
  move: x[i] = a*inverse[i]*b[i]
""",
    # The first direction from what `x` holds, whose image is `q`.
    "begin_again": """
param n: i32
arg a: f64 in
arg inverse: f64[n] in
arg b: f64[n] in
arg q: f64[n] inout
arg r: f64[n] out
arg d: f64[n] out
arg x: f64[n] inout

for i in 0..n
  rest: r[i] = b[i] - q[i]
  first: d[i] = a*inverse[i]*r[i]
  move: x[i] += d[i]
  clear: q[i] = 0.0
""",
    # A step of Chebyshev's iteration (Saad 2003, Algorithm 12.1): `q` is the image of the last direction.
    "step": """
param n: i32
arg a: f64 in
arg c: f64 in
arg inverse: f64[n] in
arg q: f64[n] inout
arg r: f64[n] inout
arg d: f64[n] inout
arg x: f64[n] inout

for i in 0..n
  rest: r[i] += -q[i]
  turn: d[i] = a*inverse[i]*r[i] + c*d[i]
  move: x[i] += d[i]
  clear: q[i] = 0.0
""",
    # The residual after the last step.
    "end": """
param n: i32
arg q: f64[n] inout
arg r: f64[n] inout

for i in 0..n
  rest: r[i] += -q[i]
  clear: q[i] = 0.0
""",
    # The residual of what `x` holds.
    "rest": """
param n: i32
arg b: f64[n] in
arg q: f64[n] inout
arg r: f64[n] out

for i in 0..n
  rest: r[i] = b[i] - q[i]
  clear: q[i] = 0.0
""",
    "clear": """
param n: i32
arg b: f64[n] out

for i in 0..n
  zero: b[i] = 0.0
""",
    # The product with a symmetric matrix, a column a work-item: neighbours read neighbours.
    "multiply": """
param n: i32
arg a: f64[n, n] in
arg b: f64[n] in
arg x: f64[n] out
temp total: f64 private

for i in 0..n
  zero: total = 0.0
  for k in 0..n
    add: total += a[k, i]*b[k]
  store: x[i] = total
""",
}

#: What both transfers read: each degree of freedom of the fine space has a row of weights, and the place of its cell in
#: the map of the coarse one. Values that are prescribed, whose `inverse` is zero, are left alone.
TRANSFER = """
param n: i32
param n_coarse: i32
param n_map: i32
param n_rows: i32
param n_entries: i32
arg first: i32[n] in
arg row: i32[n] in
arg row_starts: i32[n_rows + 1] in
arg columns: i32[n_entries] in
arg weights: f64[n_entries] in
arg map: i32[n_map] in
arg inverse: f64[n, BLOCK] in
"""

TRANSFERS = {
    # `x += P e`
    "prolong": """
arg coarse: f64[n_coarse, BLOCK] in
arg fine: f64[n, BLOCK] inout
temp start: i32 private
temp stop: i32 private
temp total: f64 private

for i in 0..n
  begin: start = row_starts[row[i]]
  last: stop = row_starts[row[i] + 1]
  for c in 0..BLOCK
    zero: total = 0.0
    for k in start..stop
      term: total += weights[k]*coarse[map[first[i] + columns[k]], c]
    move: fine[i, c] += total if inverse[i, c] != 0.0
""",
    # `b = Pᵀ r`, to zeros
    "restrict": """
arg coarse: f64[n_coarse, BLOCK] inout
arg fine: f64[n, BLOCK] in
temp start: i32 private
temp stop: i32 private

for i in 0..n
  begin: start = row_starts[row[i]]
  last: stop = row_starts[row[i] + 1]
  for k in start..stop
    for c in 0..BLOCK
      add: coarse[map[first[i] + columns[k]], c] += weights[k]*fine[i, c] if inverse[i, c] != 0.0
""",
}


@lru_cache(maxsize=None)
def vector_kernel(name: str, precision: str, device: str) -> Compiled:
    """A kernel on the vectors of one level, in ``f64`` or ``f32``."""
    text = f"kernel {name}\n{VECTORS[name]}{SCHEDULE}".replace("f64", precision)
    return compile(Schedule.parse(text), device)


@lru_cache(maxsize=None)
def transfer_kernel(name: str, block: int, precision: str, device: str) -> Compiled:
    """A transfer between spaces of a number of components, in ``f64`` or ``f32``."""
    text = f"kernel {name}\n{TRANSFER}{TRANSFERS[name]}".replace("BLOCK", str(block)).replace("f64", precision)
    # cells share the degrees of freedom of the coarse space
    schedule = SCHEDULE.replace("let", "make_atomic({insn: add})\nlet", 1) if name == "restrict" else SCHEDULE
    return compile(Schedule.parse(f"{text}{schedule}"), device)
