use crate::story::facts;
use purlin_ir::AddressSpace::{Constant, Local, Private};
use purlin_transforms::primitives::{BufferWrites, InterchangeInames, MakeAtomic, SplitIname, TagIname};

const PRODUCT: &str = "kernel matvec
param n: i32
arg a: f64[n, n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..n
    s: y[i] += a[i, k]*x[k]
";

const BLOCKS: &str = "kernel blocks
param n: i32
arg a: f64[n, 8] in
arg y: f64[n] inout
for i_o in 0..floor_div(n + 3, 4)
  for k in 0..8
    for i in 4*i_o..min(n, 4*i_o + 4)
      s: y[i] += a[i, k]
";

const SWEEPS: &str = "kernel sweeps
param n: i32
arg a: f64[n, 8] in
arg y: f64[n, 8] inout
for i in 0..n
  for j in 0..8
    zero: y[i, j] = 0.0
  for t in 0..3
    for k in 0..8
      add: y[i, k] += a[i, k]
  for l in 0..8
    scale: y[i, l] = 2.0*y[i, l]
";

fn buffer(var: &str, at: &str) -> BufferWrites {
    BufferWrites::new(var, at, Private)
}

facts! {
    an_accumulator: PRODUCT, [buffer("y", "i")];
    a_box_that_reaches_beyond_the_array: BLOCKS, [buffer("y", "i_o").into_temporary("t")];
    a_scalar: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
", [BufferWrites::whole("y", Private)];
    the_largest: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f32[n] inout
for i in 0..n
  for k in 0..n
    s: y[i] max= f32(a[i, k])
", [buffer("y", "i")];
    a_product_of_integers: "kernel k
param n: i32
arg a: i32[n] in
arg y: i64[2] inout
for k in 0..n
  for j in 0..2
    s: y[j] *= i64(a[k] mod 3 + j)
", [InterchangeInames::new("k", "j"), buffer("y", "j")];
    assigned_before_all_else: SWEEPS, [buffer("y", "i")];
    starts_from_what_is_there: "kernel k
param n: i32
arg a: f64[n, 3] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..3
    s: y[i] = 0.5*y[i] + a[i, k]
  for l in 0..3
    u: y[i] *= a[i, l]
", [buffer("y", "i")];
    starts_from_what_is_there_where_a_store_is_conditional: "kernel k
param n: i32
arg a: f64[n, 3] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..3
    s: y[i] = a[i, k] if a[i, k] < 1.0
", [buffer("y", "i")];
    starts_from_what_is_there_where_not_all_is_stored: "kernel k
param n: i32
arg y: f64[n, 4] inout
for i in 0..n
  for k in 0..i
    s: y[i, k mod 4] = f64(k)
", [buffer("y", "i")];
    an_output_that_is_assigned: "kernel k
param n: i32
arg a: f64[n, 3] in
arg y: f64[n] out
for i in 0..n
  zero: y[i] = 0.0
  for k in 0..3
    s: y[i] += a[i, k]
", [buffer("y", "i")];
    an_updated_temporary: "kernel k
param n: i32
arg a: f64[n, 3] in
arg y: f64[n] out
temp t: f64[n] global
for j in 0..n
  zero: t[j] = 1.0
for i in 0..n
  for k in 0..3
    s: t[i] += a[i, k]
for l in 0..n
  use: y[l] = t[l]
", [buffer("t", "i")];
    /// The read comes before every write of its iteration: it still finds the array.
    a_read_through_a_map_before_the_writes: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  read: t = y[map[i]]
  for k in 0..3
    s: y[i] += t
", [buffer("y", "i")];
    by_the_work_items_of_a_group: "kernel k
param n: i32
arg a: f64[n, 6, 4] in
arg y: f64[n, 6] inout
for c in 0..n {g.0}
  for j in 0..4
    for q in 0..6 {l.0}
      s: y[c, q] += a[c, q, j]
", [BufferWrites::new("y", "c", Local).by_work_items([4])];
    one_atomic_for_many: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
", [MakeAtomic::insn("s"), SplitIname::new("i", 4), TagIname::new("i_o", "g.0"), buffer("y", "i_o")];
    refuses_an_array_that_is_read_through_a_map: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
arg z: f64[n] inout
for i in 0..n
  for k in 0..n
    s: y[i] += f64(k)
    u: z[k] += y[map[k]]
", [buffer("y", "i")];
    refuses_a_write_through_a_map: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..n
    s: y[map[i]] += f64(k)
", [buffer("y", "i")];
    refuses_a_footprint_without_bounds: PRODUCT, [BufferWrites::whole("y", Private)];
    refuses_an_output_that_may_stay_undefined: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] out
for i in 0..n
  for k in 0..3
    s: y[i] = a[i] if a[i] < f64(k)
", [buffer("y", "i")];
    refuses_to_keep_a_value_from_another_work_item: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
arg z: f64[4] out
for i in 0..4 {l.0}
  s: y[i] += a[i]
for j in 0..4 {l.0}
  u: z[j] = y[3 - j]
", [BufferWrites::whole("y", Private)];
    refuses_a_rule: "kernel k
param n: i32
arg y: f64[n] inout
rule twice(i) := 2.0*y[i]
for i in 0..n
  s: y[i] = twice(i)
", [buffer("y", "i")];
    refuses_what_is_not_written: PRODUCT, [buffer("x", "i")];
    refuses_constant_memory: PRODUCT, [BufferWrites::new("y", "i", Constant)];
    refuses_a_taken_name: PRODUCT, [buffer("y", "i").into_temporary("x")];
    refuses_an_unknown_loop: PRODUCT, [buffer("y", "j")];
}
