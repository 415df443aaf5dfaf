//! Sharing elimination (Luporini et al. 2017, Algorithm 1): operations by the closed forms of the
//! publication, values by the interpreter and by C.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::compiled;
use kingpost::analysis::Analysis;
use kingpost::codegen::{Options, generate};
use kingpost::forms::strategies::{SharingDecision, eliminate_sharing};
use kingpost::interp::{Memory, interpret};
use kingpost::ir::{Kernel, text};
use kingpost::runtime::open;
use kingpost::{Loaded, Random, RelativeError};
use std::collections::BTreeMap;

/// Sums of at most some ten products in f64, relative to the size of the result.
const TOLERANCE: f64 = 1e-14;

fn operations(kernel: &Kernel, sizes: &[(&str, i64)]) -> u64 {
    let params: BTreeMap<String, i64> = sizes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    Analysis::of(kernel).statistics(&params).unwrap().flops()
}

/// The kernel without sharing, whose recipe replays, and whose values are those of the kernel.
fn eliminated(
    source: &str,
    sizes: &[(&str, i64)],
    arrays: &[(&str, usize)],
) -> (Kernel, Vec<SharingDecision>) {
    let kernel = text::parse(source).unwrap();
    let (after, recipe, decisions) = eliminate_sharing(&kernel).unwrap();
    assert_eq!(recipe.apply(&kernel).unwrap(), after);
    let mut random = Random::new(Random::fresh_seed());
    let mut memory = Memory::new();
    sizes.iter().for_each(|(name, n)| memory.set_param(*name, *n));
    arrays.iter().for_each(|(name, n)| memory.set(*name, random.numbers(*n)));
    let run = |kernel: &Kernel| {
        let mut memory = memory.clone();
        interpret(kernel, &mut memory).unwrap();
        memory.f64s("a").unwrap().to_vec()
    };
    let expected = run(&kernel);
    let device = open("c").unwrap();
    let program = generate(&after, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &memory).unwrap();
    loaded.launch().unwrap();
    for found in [run(&after), loaded.f64s("a").unwrap()] {
        let error = RelativeError::between(&found, &expected);
        assert!(error.is_within(TOLERANCE), "{error:?}\n{after}");
    }
    (after, decisions)
}

/// `E (f + I (6 J + 9 K + 4 J K))` of Figure 3, with `J` for the loop that has fewer iterations there;
/// `f` is nothing, as `z_0` to `z_3` are given.
#[test]
fn poissons_matrices_take_no_more_operations_than_published() {
    let source = include_str!("../../examples/poisson.kingpost");
    let cells = 5;
    let (after, decisions) =
        eliminated(source, &[("n_cells", cells)], &[("inverse", 4 * 5), ("det", 5), ("a", 18 * 5)]);
    let (i, j, k) = (2, 3, 6);
    let published = cells as u64 * i * (6 * j + 9 * k + 4 * j * k);
    let before = cells as u64 * i * j * k * 18;
    assert_eq!(operations(&text::parse(source).unwrap(), &[("n_cells", cells)]), before);
    let counted = operations(&after, &[("n_cells", cells)]);
    assert!(counted <= published, "{counted} operations, {published} published\n{after}");
    let [decision] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!((decision.graph, decision.factorised.len(), decision.whole.len()), ([4, 2], 2, 4));
    // `W_i*det`, which both products have, is computed once: 3 J instead of 4 J of published
    assert_eq!(after.to_string().matches("det[e]*w[i]").count(), 1, "{after}");
}

/// Products of the same factors in another order are one value, across terms.
#[test]
fn what_is_equal_up_to_associativity_is_computed_once() {
    let source = "
kernel k

arg b: f64[7] in
arg c: f64[5] in
arg d: f64[7] in
arg p: f64[3] in
arg a: f64[5, 7] inout

for i in 0..5
  for j in 0..7
    s: a[i, j] += p[0]*(p[1]*c[i])*b[j] + c[i]*p[1]*p[0]*p[2]*d[j]
";
    let (after, _) = eliminated(source, &[], &[("b", 7), ("c", 5), ("d", 7), ("p", 3), ("a", 35)]);
    // p0 p1, c_i times that, and p2 times that; two products and two sums inside
    assert!(operations(&after, &[]) <= 1 + 5 * 2 + 5 * 7 * 4, "{after}");
}

/// What is in order already stays, and the decision of the program is told.
#[test]
fn what_has_no_sharing_stays() {
    let source = "
kernel k

arg b: f64[7] in
arg c: f64[5] in
arg a: f64[7, 5] inout

for j in 0..7
  for i in 0..5
    s: a[j, i] += b[j]*c[i]
";
    let (after, decisions) = eliminated(source, &[], &[("b", 7), ("c", 5), ("a", 35)]);
    assert_eq!(after, text::parse(source).unwrap());
    assert_eq!((decisions[0].graph, decisions[0].operations), ([2, 1], [70, 70]));
    assert!(decisions[0].to_string().ends_with("; it stays, 70 operations"), "{}", decisions[0]);
}

/// Figure 2: `b_j` is factorised, and `c_i + d_i` computed outside the loop over `j`.
#[test]
fn a_common_factor_is_taken_once() {
    let source = "
kernel k

arg b: f64[7] in
arg c: f64[5] in
arg d: f64[5] in
arg a: f64[7, 5] inout

for j in 0..7
  for i in 0..5
    s: a[j, i] += b[j]*c[i] + b[j]*d[i]
";
    let (after, decisions) = eliminated(source, &[], &[("b", 7), ("c", 5), ("d", 5), ("a", 35)]);
    assert_eq!(operations(&after, &[]), 5 + 2 * 7 * 5, "{after}");
    assert_eq!(decisions[0].factorised, ["b[j]"]);
    assert!(
        decisions[0].to_string().contains("the integer program factorises 1: `b[j]`"),
        "{}",
        decisions[0]
    );
}

/// In an action (rank 1) one loop alone is linear: the row of the table is factored out of both terms, and
/// what else is left leaves the loop over the functions.
#[test]
fn an_action_shares_the_factors_of_its_terms() {
    let source = "
kernel k

param n: i32
arg z: f64[n, 2] in
arg u: f64[n, 4] in
arg a: f64[n, 6] inout
table b: f64[4, 6] global

for e in 0..n
  for q in 0..4
    for i in 0..6
      s: a[e, i] += z[e, 0]*u[e, q]*b[q, i] + z[e, 1]*u[e, q]*b[q, i]

table b = [
  1.0, 2.0, 3.0, 4.0, 5.0, 6.0,
  0.5, 0.25, 0.125, 1.0, 1.0, -1.0,
  1.0, 2.0, 3.0, 4.0, 5.0, -6.0,
  0.5, 0.25, 0.125, 1.0, -1.0, 1.0,
]
";
    let sizes = [("n", 3)];
    let (after, decisions) = eliminated(source, &sizes, &[("z", 6), ("u", 12), ("a", 18)]);
    assert_eq!(operations(&text::parse(source).unwrap(), &sizes), 3 * 4 * 6 * 6);
    // a product and a sum for each entry of the table, a product for each point, a sum for each cell
    assert_eq!(operations(&after, &sizes), 3 * (4 * (6 * 2 + 1) + 1), "{after}");
    assert!(decisions[0].to_string().contains("no products of symbols; common factors"), "{}", decisions[0]);
}

/// Operands that outnumber their symbols are multiplied out (strategy 2).
#[test]
fn more_operands_than_symbols_are_multiplied_out() {
    let source = "
kernel k

param n: i32
arg z: f64[n, 6] in
arg a: f64[n, 8, 8] inout
table b: f64[4, 8] global

for e in 0..n
  for i in 0..4
    for j in 0..8
      for k in 0..8
        s: a[e, j, k] += z[e, 0]*b[i, j]*(z[e, 1]*b[i, k]) + (z[e, 2]*b[i, j])*(z[e, 3]*b[i, k]) + z[e, 4]*(z[e, 5] + 2.0)*b[i, j]*b[i, k]

table b = [
  1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0,
  0.5, 0.25, 0.125, 1.0, 1.0, -1.0, 2.0, 3.0,
  1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0,
  0.5, 0.25, 0.125, 1.0, 1.0, -1.0, 2.0, -3.0,
]
";
    let (after, _) = eliminated(source, &[("n", 3)], &[("z", 18), ("a", 192)]);
    // one product in the inner loop, one factor in the loop around it, and few of the cell
    let cell = 4 * (8 * 8 * 2 + 8) + 4 * 10;
    assert!(operations(&after, &[("n", 3)]) <= 3 * cell, "{after}");
}

/// What is written between stays where it is, and so does a division behind its guard.
#[test]
fn nothing_moves_past_a_write_or_ahead_of_its_guard() {
    let source = "
kernel k

arg b: f64[8] inout
arg c: f64[8] in
arg a: f64[8, 8] inout

for j in 0..8
  for i in 0..8
    s: a[j, i] += (b[i] + c[i])*c[j] + select(0.0 < c[i], 1.0/c[i], 0.0)
    t: b[i] = a[j, i]*0.5
";
    let (after, decisions) = eliminated(source, &[], &[("b", 8), ("c", 8), ("a", 64)]);
    assert_eq!((after, decisions), (text::parse(source).unwrap(), Vec::new()));
}
