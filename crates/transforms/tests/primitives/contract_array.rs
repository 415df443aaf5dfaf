use crate::story::facts;
use purlin_ir::AddressSpace;
use purlin_transforms::primitives::{ContractArray, ExpandArray, SetAddressSpace, TagIname};

fn contract(axis: u32) -> ContractArray {
    ContractArray::new("t", axis)
}

const SQUARE: &str = "kernel square
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n] private
for i in 0..n
  s: t[i] = a[i]
  r: b[i] = t[i]*t[i]
";

const SWEEPS: &str = "kernel sweeps
param n: i32
arg a: f64[n, n] inout
temp t: f64[n, n] private
for i in 0..n
  for j in 0..n
    s: t[i, j] = a[i, j]
  for k in 0..n
    r: a[i, k] = t[i, n - 1 - k]
";

facts! {
    to_a_scalar: SQUARE, [contract(0)];
    undoes_an_expansion: SQUARE, [contract(0), ExpandArray::new("t", ["i"])];
    the_outer_axis_of_two: SWEEPS, [contract(0)];
    sums: "kernel k
param n: i32
arg a: f64[n, n] inout
temp t: f64[n] private
for i in 0..n
  zero: t[i] = 0.0
  for j in 0..n
    add: t[i] += a[i, j]
  r: a[i, 0] = t[i]
", [contract(0)];
    strides_of_the_other_axes_stay: "kernel k
arg a: f64[8, 8] inout
temp t: f64[8, 8] private strides(9, 1)
for i in 0..8
  for j in 0..8
    s: t[i, j] = a[i, j]
  for k in 0..8
    r: a[i, k] = t[i, 7 - k]
", [contract(0)];
    /// The old element is read before the new one is written, by the same instance.
    element_before: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n + 1] private
zero: t[0] = 0.0
for i in 0..n
  s: t[i + 1] = 0.5*t[i] + a[i]
  r: a[i] = t[i + 1]
", [contract(0)];
    read_in_a_rule: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n] private
rule twice(k) := 2.0*t[k]
for i in 0..n
  s: t[i] = a[i]
  r: a[i] = twice(i)
", [contract(0)];
    on_work_items: SQUARE, [TagIname::new("i", "l.0"), contract(0)];
    refuses_values_for_a_later_loop: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n] private
for i in 0..n
  s: t[i] = a[i]
for j in 0..n
  r: a[j] = t[j]
", [contract(0)];
    refuses_the_inner_axis: SWEEPS, [contract(1)];
    refuses_a_value_of_two_iterations_ago: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n + 2] private
zero: t[0] = 0.0
one: t[1] = 1.0
for i in 0..n
  s: t[i + 2] = t[i + 1] + t[i]
  r: a[i] = t[i + 2]
", [contract(0)];
    refuses_two_elements_alive: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[2] private
for i in 0..n
  s: t[0] = a[i]
  u: t[1] = 2.0*a[i]
  r: a[i] = t[0] - t[1]
", [contract(0)];
    refuses_a_reduction_over_the_axis: "kernel k
arg a: f64[4] in
arg y: f64 inout
temp t: f64[4] private
for i in 0..4
  s: t[i] = a[i]
r: y = sum(j in 0..4: t[j])
", [contract(0)];
    refuses_a_read_through_a_map: "kernel k
param n: i32
arg map: i32[n] in
arg a: f64[n] inout
temp t: f64[n] private
for j in 0..n
  z: t[j] = 0.0
for i in 0..n
  s: t[i] = a[i]
  r: a[i] = t[map[i]]
", [contract(0)];
    refuses_a_sum_that_goes_on: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[2] private
zero: t[0] = 0.0
one: t[1] = 0.0
for i in 0..n
  s: t[i mod 2] += a[i]
r: a[0] = t[0] + t[1] if n > 0
", [contract(0)];
    refuses_a_value_kept_where_the_condition_fails: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n] private
for k in 0..n
  z: t[k] = 1.0
for i in 0..n
  s: t[i] = a[i] if i mod 2 == 0
  r: a[i] = t[i]
", [contract(0)];
    refuses_an_element_of_each_work_item_in_local_memory: SQUARE,
        [SetAddressSpace::new("t", AddressSpace::Local), TagIname::new("i", "l.0"), contract(0)];
    refuses_a_scalar: SQUARE, [contract(0), contract(0)];
    refuses_an_axis_there_is_not: SWEEPS, [contract(2)];
    refuses_an_argument: SQUARE, [ContractArray::new("a", 0)];
}
