//! Programs that the shortcuts of the analysis could get wrong.

use kingpost_interp::Memory;

/// A program and values for it.
pub struct Case {
    pub name: &'static str,
    pub text: &'static str,
    pub memory: fn(i64) -> Memory,
}

/// Values for every argument that the programs mention.
fn memory(n: i64) -> Memory {
    let size = n.max(0) as usize;
    let reals = |k: usize| (0..k).map(|v| v as f64).collect::<Vec<_>>();
    Memory::new()
        .param("n", n)
        .value("x", reals(size))
        .value("y", reals(size))
        .value("z", reals(size * size))
        .value("s", vec![1.0])
        .value("map", (0..size).map(|v| ((v * v) % size.max(1)) as i32).collect::<Vec<_>>())
        .value("count", (0..size).map(|v| ((v * 2 + 1) % (size + 1)) as i32).collect::<Vec<_>>())
}

macro_rules! cases {
    ($($name:ident: $text:literal;)*) => {
        /// Each depends on `n` and on arguments of fixed names only.
        pub const HARD: &[Case] = &[$(Case {
            name: stringify!($name),
            text: concat!(
                "kernel k\nparam n: i32\narg x: f64[n] inout\narg y: f64[n] inout\narg z: f64[n, n] inout\n",
                "arg s: f64 inout\narg map: i32[n] in\narg count: i32[n] in\n",
                $text
            ),
            memory,
        }),*];
    };
}

cases! {
    scalar_written_first_then_read_deeper: "temp t: f64 private
for i in 0..n
  a: t = x[i]
  for j in 0..n
    b: z[i, j] = t
";
    accumulation_in_a_confined_scalar: "temp t: f64 private
for i in 0..n
  a: t = 0.0
  for j in 0..n
    b: t += z[i, j]
  c: x[i] = t
";
    array_written_by_one_loop_and_read_by_another: "temp t: f64[n] private
for i in 0..n
  for j in 0..n
    a: t[j] = z[i, j]
  for k in 0..n
    b: x[i] += t[n - 1 - k]
";
    array_written_in_part: "temp t: f64[n] private
for q in 0..n
  z0: t[q] = 0.0
for i in 0..n
  for j in 0..i
    a: t[j] = z[i, j]
  for k in 0..n
    b: x[i] += t[k]
";
    accumulator_reset_where_it_is_updated: "temp t: f64[n] private
for i in 0..n
  for j in 0..n
    a: t[j] = 0.0
    b: t[j] += z[i, j]
  for l in 0..n
    c: x[l] = t[l]
";
    accumulator_reset_in_part: "temp t: f64[n] private
for q in 0..n
  z0: t[q] = 0.0
for i in 0..n
  for j in 0..i
    a: t[j] = 0.0
  for k in 0..n
    b: t[k] += y[i]
  for l in 0..n
    c: z[i, l] = t[l]
  d: t[0] += 1.0
";
    first_write_under_a_condition: "temp t: f64 private
zero: t = 0.0
for i in 0..n
  a: t = x[i] if i < 2
  b: y[i] = t
";
    first_write_under_a_condition_on_data: "temp t: f64 private
zero: t = 0.0
for i in 0..n
  a: t = x[i] if x[i] < 2.0
  b: y[i] = t
";
    temporary_carries_a_value: "temp t: f64 private
zero: t = 0.0
for i in 0..n
  a: y[i] = t
  b: t = x[i]
";
    later_assignment_outside_the_first_write: "for i in 0..n
  a: z[i, 0] = x[i]
  b: z[0, n - 1] = y[i]
";
    last_assignment_of_an_argument: "for i in 0..n
  for j in 0..n - i
    a: s = z[i, j]
";
    bounds_from_temporaries: "temp lo: i32 private
temp hi: i32 private
for i in 0..n
  low: lo = floor_div(i, 2)
  high: hi = count[i]
  for k in lo..hi
    a: x[k] = y[i]
  for l in 0..hi
    b: y[l] = x[l]
";
    bound_written_in_its_own_loop: "temp end: i32 private
begin: end = n
for i in 0..n
  for k in 0..end
    a: x[k] += y[i]
    b: end = count[k]
";
    whole_array_written_only_sometimes: "temp hi: i32 private
temp t: f64[n] private
for q in 0..n
  z0: t[q] = 0.0
for i in 0..n
  high: hi = count[i]
  for k in 0..hi
    a: t[k] = y[i]
  for l in 0..n
    b: z[i, l] = t[l]
";
    chain_on_one_element: "for i in 0..n
  a: x[i] = x[i] + 1.0
  b: x[i] = x[i]*2.0
  c: x[i] = x[i] - y[i]
";
    chain_on_one_element_in_an_outer_loop: "for k in 0..n
  for i in 0..n
    a: x[i] = x[i] + 1.0
    b: y[i] = x[i]
    c: x[i] = x[i]*2.0
";
    read_at_the_end_of_an_iteration: "for k in 0..n
  for i in 0..n
    a: x[i] = x[i] + 1.0
    b: z[k, i] = x[i]
    c: y[i] = x[i]
";
    overwritten_under_a_condition: "for i in 0..n
  a: x[i] = 1.0
  b: x[i] = 2.0 if y[i] < 2.0
  c: y[i] = x[i]
  d: x[i] = 3.0 if y[i] < 1.0
  e: z[0, i] = x[i]
";
    updates_and_reads_of_one_element: "for i in 0..n
  a: x[i] += 1.0
  b: x[i] += 2.0
  c: y[i] = x[i]
  d: x[i] += 3.0
  e: x[i] += y[i]
  f: z[i, 0] = x[i]
  g: x[i] *= 2.0
  h: x[i] *= 0.5
  j: y[i] = x[i]
";
    overwritten_at_once: "for k in 0..n
  for i in 0..n
    a: x[i] = 1.0
    b: x[i] = 2.0
    c: y[i] = x[i]
    d: x[i] = 3.0
    e: z[k, i] = x[i]
";
    updates_and_reads_in_turn: "for k in 0..n
  for i in 0..n
    a: x[i] += 1.0
    b: x[i] += 2.0
    c: y[i] = x[i]
    d: x[i] += 3.0
    e: z[k, i] = x[i]
    f: x[i] *= 2.0
    g: x[i] *= 0.5
";
    updates_only: "for k in 0..n
  for i in 0..n
    a: x[i] += 1.0
    b: x[i] += y[i]
    c: x[i] += 3.0
";
    updates_by_two_operators: "for i in 0..n
  a: s += x[i]
  b: s += 1.0
  c: s *= y[i]
  d: s *= 0.5
";
    update_reads_its_own_element: "for k in 0..n
  for i in 0..n
    a: x[i] += x[i]
    b: x[i] += y[i]
";
    begins_with_an_assignment_and_updates: "temp t: f64 private
for i in 0..n
  a: t = 1.0
  b: t += x[i]
  c: t += y[i]
  d: t *= 2.0
  e: x[i] = t
  f: t += 1.0
  g: y[i] = t
";
    scatter_and_gather_through_a_map: "for i in 0..n
  a: x[map[i]] = y[i]
for j in 0..n
  b: x[j] = 0.0 if j < 1
for k in 0..n
  c: y[k] = x[map[k]]
";
    overwritten_elsewhere_than_the_map_points: "for i in 0..n
  a: x[map[i]] = y[i]
for j in 0..min(1, n)
  b: z[j, j] = 0.0
  d: y[j] = 2.0
for l in 0..min(1, n)
  e: x[l] = 1.0
for k in 0..n
  c: y[k] = x[map[k]]
";
    overwritten_in_a_sum: "for i in 0..n
  a: x[map[i]] = y[i]
for l in 0..min(1, n)
  e: x[l] = 1.0
for k in 0..n
  c: y[k] = sum(q in 0..n: x[q])
";
    recurrence: "for i in 1..n
  a: x[i] = x[i - 1] + 1.0
";
    wavefront: "for i in 1..n
  for j in 1..n
    a: z[i, j] = z[i - 1, j] + z[i, j - 1]
";
    stencil_in_time: "for t in 0..n
  for i in 1..n - 1
    a: y[i] = x[i - 1] + x[i + 1]
  for j in 1..n - 1
    b: x[j] = y[j]
";
    element_read_before_its_iteration_writes_it: "temp t: f64[n] private
for i in 0..n
  for j in 0..n
    a: t[j] = z[i, j]
    b: y[j] = t[n - 1 - j] if i > 0
  c: x[i] = t[0]
";
    value_kept_where_the_loop_is_empty: "temp t: f64 private
for i in 0..n
  for j in i..2
    a: t = f64(i)
  b: x[i] = t
";
    reversed_read: "for i in 0..n
  a: x[i] = y[n - 1 - i]
  b: y[i] = x[i]
";
    indices_that_split_a_loop: "for o in 0..ceil(n/3)
  for i in 0..min(3, n - 3*o)
    a: x[3*o + i] = x[3*o + i] + 1.0
    b: y[3*o + i] = x[3*o + i]
";
    folded_index: "for i in 0..n
  a: x[floor_div(i, 2)] = y[i]
  b: y[i] = x[floor_div(i, 2)]
";
    constant_components: "temp v: f64[3] private
for i in 0..n
  a: v[0] = x[i]
  b: v[1] = v[0]
  c: v[0] = y[i]
  d: y[i] = v[0] + v[1]
";
    rule_reads_a_variable: "temp t: f64 private
rule twice(a) := a*t
for i in 0..n
  a: t = x[i]
  b: y[i] = twice(2.0)
";
}
