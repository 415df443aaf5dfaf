use crate::story::facts;
use purlin_ir::AddressSpace::{Constant, Global, Local, Private};
use purlin_transforms::Selection;
use purlin_transforms::primitives::{PrefetchArray, SplitIname, TagIname};

const PRODUCT: &str = "kernel matvec
param n: i32
arg a: f64[n, n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..n
    s: y[i] += a[i, k]*x[k]
";

const STENCIL: &str = "kernel stencil
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
for i in 1..n - 1
  s: b[i] = a[i - 1] + 2.0*a[i] + a[i + 1]
";

const TIME: &str = "kernel time
param n: i32
arg a: f64[8] inout
arg b: f64[8] inout
for t in 0..n
  for i in 0..8
    s1: b[i] = 2.0*a[i]
  for j in 0..8
    s2: a[j] = b[j]
";

fn fetch(var: &str, at: &str) -> PrefetchArray {
    PrefetchArray::new(var, at, Private)
}

fn named(names: &[&str]) -> PrefetchArray {
    PrefetchArray {
        inames: names.iter().map(ToString::to_string).collect(),
        ..fetch("x", "k_o").into_temporary("buffer")
    }
}

const LOCAL: &str = "kernel local_tile
arg a: f64[6, 4] in
arg x: f64[64, 4] in
arg y: f64[64, 6] inout
for c_o in 0..8 {g.0}
  for c_i in 0..8 {l.0}
    for q in 0..6
      for j in 0..4
        s: y[8*c_o + c_i, q] += a[q, j]*x[8*c_o + c_i, j]
";

const WRITTEN: &str = "kernel written
param n: i32
arg a: f64[n, 4] inout
arg y: f64[n] inout
for i in 0..n
  s: y[i] = a[i, 0] + a[i, 3]
  t: a[i, 1] = y[i]
  u: y[i] += a[i, 1]
";

const TRIANGLE: &str = "kernel triangle
param n: i32
arg a: f64[n, 8, 8] in
arg y: f64[n, 8] inout
for b in 0..n {g.0}
  for i in 0..8
    for j in 0..i + 1
      s: y[b, i] += a[b, i, j]
";

facts! {
    tile_with_a_partial_one: PRODUCT, [SplitIname::new("k", 4), fetch("x", "k_o")];
    tile_without_a_partial_one: "kernel k
arg x: f64[8] in
arg y: f64[8] inout
for k in 0..8
  s: y[k] = x[k]
", [SplitIname::new("k", 4), fetch("x", "k_o")];
    /// Three elements, though the intervals of `i` and `j` alone would allow for fifteen.
    band_of_differences: "kernel k
arg a: f64[16] in
arg y: f64[8] inout
for i in 0..8
  for j in max(0, i - 2)..min(8, i + 1)
    s: y[i] += a[i - j]
", [fetch("a", "i")];
    row_of_a_matrix: PRODUCT, [SplitIname::new("k", 4), fetch("a", "k_o")];
    names_of_ones_own: PRODUCT, [SplitIname::new("k", 4), named(&["e"])];
    stencil_with_a_halo: STENCIL, [SplitIname::new("i", 4), fetch("a", "i_o")];
    halo_beyond_both_ends: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
for i_o in 0..floor_div(n, 4) + 1
  for i_i in 0..min(4, n - 4*i_o)
    t: b[4*i_o + i_i] = select(i_i + 4*i_o >= 1, a[4*i_o + i_i - 1], 0.0) if 4*i_o + i_i + 1 < n
", [fetch("a", "i_o")];
    reads_under_a_condition_are_in_the_box: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
for i in 0..n
  s: b[i] = select(1 <= i, a[i - 1], 0.0) + select(i + 1 < n, a[i + 1], 0.0)
", [SplitIname::new("i", 4), fetch("a", "i_o")];
    triangle_moves_along: "kernel k
param n: i32
arg a: f64[2*n] in
arg y: f64[n] inout
for i in 0..n
  for j in i..min(i + 4, n)
    s: y[i] += a[2*j]
", [fetch("a", "i")];
    backwards: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i_o in 0..floor_div(n - 1, 4) + 1
  for i_i in 0..min(4, n - 4*i_o)
    s: y[4*i_o + i_i] = a[n - 1 - 4*i_o - i_i]
", [fetch("a", "i_o")];
    reduction: "kernel k
param n: i32
arg a: f64[n, 3] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..3: a[i, j]*f64(j))
", [fetch("a", "i")];
    table_for_the_whole_kernel: "kernel k
param n: i32
arg y: f64[n] inout
table w: f64[3] global
for i in 0..n
  for j in 0..3
    s: y[i] += w[j]
table w = [
  0.5, 0.25, 0.125
]
", [PrefetchArray::whole("w", Global)];
    reads_in_indices_and_predicates: "kernel k
param n: i32
arg map: i32[n, 2] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..min(2, n)
    s: y[map[i, j]] = f64(map[i, j]) if map[i, j] < 3
", [fetch("map", "i")];
    before_the_first_node_that_reads: "kernel k
param n: i32
arg a: f64[n, 2] inout
arg y: f64[n] inout
for i in 0..n
  for j in 0..2
    w: a[i, j] = 1.0
  for k in 0..2
    s: y[i] += a[i, k]
", [fetch("a", "i")];
    written_after_the_reads_of_a_sweep: TIME, [fetch("a", "t")];
    temporary_that_is_read_as_a_box: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[4] private
for i in 0..n
  for j in 0..4
    w: t[j] = f64(j)
  for k in 0..4
    s: y[i] += t[3 - k]
", [fetch("t", "i")];
    flat_copy_by_work_items: LOCAL, [PrefetchArray::whole("a", Local).by_work_items([8])];
    flat_copy_by_a_group_of_two_axes: LOCAL, [PrefetchArray::whole("a", Local).by_work_items([8, 2])];
    flat_copy_of_a_partial_tile: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..n
    s: y[i] += a[i, k]
", [SplitIname::new("i", 2), SplitIname::new("k", 4), TagIname::new("i_o", "g.0"),
    purlin_transforms::primitives::InterchangeInames::new("i_i", "k_o"),
    PrefetchArray::new("a", "k_o", Local).by_work_items([4]), TagIname::new("i_i", "l.0")];
    copy_loop_tagged_afterwards: LOCAL, [PrefetchArray::whole("a", Local), TagIname::new("a_tile_0", "l.0")];
    exact_triangle: TRIANGLE, [fetch("a", "b").exactly()];
    exact_triangle_by_work_items: TRIANGLE, [PrefetchArray::new("a", "b", Local).by_work_items([8, 2]).exactly()];
    exact_stencil_without_its_centre: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
for i in 2..n - 2
  s: b[i] = a[i - 2] + a[i + 2]
", [fetch("a", "i").exactly()];
    exact_every_second_element: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[8] private
for j in 0..4
  w: t[2*j] = f64(j)
for i in 0..n
  for k in 0..4
    s: y[i] += t[2*k]
", [fetch("t", "i").exactly()];
    exact_under_a_predicate: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..4
    s: y[i] += a[i, k] if k < i and i < 3
", [fetch("a", "i").exactly()];
    exact_single_element_under_a_predicate: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..4
    s: y[i] += a[i] if i < 3
", [fetch("a", "i").exactly()];
    exact_box_is_a_box: PRODUCT, [SplitIname::new("k", 4), fetch("x", "k_o").exactly()];
    only_some_of_the_reads: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
arg z: f64[n] inout
for i in 0..n
  for k in 0..4
    s: y[i] += a[i, k]
    t: z[i] += a[i, 3 - k]
", [fetch("a", "i").only_in(Selection::Insn("t".into()))];
    only_what_is_before_a_write: WRITTEN, [fetch("a", "i").only_in(Selection::Insn("s".into()))];
    refuses_a_write_between_the_chosen_reads: WRITTEN, [fetch("a", "i").only_in(Selection::Writes("y".into()))];
    refuses_what_is_undefined_under_a_condition_even_exactly: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
temp t: f64[4] private
for j in 0..3
  w: t[j] = f64(j)
for i in 0..n
  for k in 0..4
    s: y[i] += select(map[i] < k, t[k], 0.0)
", [fetch("t", "i").exactly()];
    refuses_an_exact_copy_of_nothing: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..4
    s: y[i] += a[i, k] if k < 0
", [fetch("a", "i").exactly()];
    refuses_a_selection_that_reads_nothing_there: PRODUCT, [fetch("x", "k").only_in(Selection::Insn("q".into()))];
    refuses_a_write_in_the_sweep: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + b[i]
", [SplitIname::new("i", 4), fetch("a", "i_o")];
    refuses_a_write_in_an_enclosing_loop: TIME, [PrefetchArray::whole("a", Private)];
    refuses_a_scatter_before_the_read: "kernel k
param n: i32
arg map: i32[n] in
arg a: f64[4] inout
arg y: f64[n] inout
for i in 0..n
  for j in 0..4
    s: y[i] += a[j]
    w: a[map[i]] = 1.0
", [fetch("a", "i")];
    refuses_private_copy_shared_by_items: LOCAL, [PrefetchArray::whole("a", Private).by_work_items([8])];
    refuses_the_axis_of_a_loop_around: LOCAL, [PrefetchArray::new("a", "c_i", Local).by_work_items([8])];
    refuses_an_extent_that_grows: PRODUCT, [fetch("x", "i")];
    refuses_a_gather: "kernel k
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..2
    s: y[i] += x[map[i]]
", [fetch("x", "i")];
    refuses_bounds_from_memory: "kernel k
param n: i32
arg count: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i] += x[j]
", [fetch("x", "i")];
    refuses_what_may_be_undefined: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[8] private
for j in 0..4
  w: t[2*j] = f64(j)
for i in 0..n
  for k in 0..4
    s: y[i] += t[2*k]
", [fetch("t", "i")];
    refuses_what_is_undefined_under_a_condition: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[4] private
for j in 0..3
  w: t[j] = f64(j)
for i in 0..n
  for k in 0..4
    s: y[i] += t[k] if k < 3
", [fetch("t", "i")];
    refuses_reads_inside_a_rule: "kernel k
param n: i32
arg a: f64[4] in
arg y: f64[n] inout
rule r(j) := 2.0*a[j]
for i in 0..n
  for k in 0..4
    s: y[i] += r(k)
", [fetch("a", "i")];
    refuses_an_array_that_is_not_read: PRODUCT, [fetch("y", "k")];
    refuses_a_scalar: "kernel k
param n: i32
arg alpha: f64 in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = alpha
", [fetch("alpha", "i")];
    refuses_empty_loops: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
for i in 0..4
  for j in 0..0
    s: y[i] = a[j]
", [fetch("a", "i")];
    refuses_names_taken: PRODUCT, [SplitIname::new("k", 4), fetch("x", "k_o").into_temporary("y")];
    refuses_a_wrong_number_of_names: PRODUCT, [SplitIname::new("k", 4), named(&["e", "f"])];
    refuses_constant_memory: PRODUCT, [PrefetchArray::new("x", "k", Constant)];
    refuses_a_group_of_nothing: PRODUCT, [SplitIname::new("k", 4), fetch("x", "k_o").by_work_items([0])];
    refuses_unknown: PRODUCT, [fetch("q", "k")];
    refuses_an_unknown_loop: PRODUCT, [fetch("x", "q")];
}
