#![allow(clippy::unwrap_used)] // what a failed test does
use crate::{Machine, Proposal, propose};
use kingpost_interp::{Memory, interpret};
use kingpost_ir::text::parse;
use kingpost_ir::{AddressSpace, Kernel};
use std::collections::BTreeMap;

/// Proposals for large sizes, each of which computes the same at a small one, where most tiles are
/// cut off.
fn proposals(text: &str, sizes: &[(&str, i64, i64)], arrays: &[(&str, usize)]) -> Vec<Proposal> {
    let kernel = parse(text).unwrap();
    let large: BTreeMap<String, i64> = sizes.iter().map(|(name, n, _)| ((*name).to_owned(), *n)).collect();
    let found = propose(&kernel, &large, &Machine::default()).unwrap();
    let run = |kernel: &Kernel| {
        let mut memory = Memory::new();
        for (name, _, n) in sizes {
            memory = memory.param(*name, *n);
        }
        for (name, count) in arrays {
            // sums of products of these are exact in any order
            let values = (0..*count).map(|k| ((k * 37 + 11) % 101) as f64 / 64.0).collect::<Vec<_>>();
            memory = memory.value(*name, values);
        }
        interpret(kernel, &mut memory).unwrap();
        arrays.iter().map(|(name, _)| memory.f64s(name).unwrap().to_vec()).collect::<Vec<_>>()
    };
    let expected = run(&kernel);
    for proposal in &found {
        assert_eq!(run(&proposal.kernel), expected, "{}\n{}", proposal.text(true), proposal.kernel);
    }
    found
}

fn in_time(found: &[Proposal]) -> &Proposal {
    found.iter().find(|p| p.name == "tiles in time, waves").unwrap()
}

#[test]
fn two_sweeps_a_step_are_tiled_in_half_steps() {
    let found = proposals(
        "kernel jacobi\nparam m: i32\nparam n: i32\narg a: f64[n, n] inout\narg b: f64[n, n] inout\n\n\
         for t in 0..m\n  for i in 1..n - 1\n    for j in 1..n - 1\n      \
         s: b[i, j] = a[i, j - 1] + a[i, j + 1] + 0.5*a[i + 1, j] + a[i - 1, j]\n  \
         for i2 in 1..n - 1\n    for j2 in 1..n - 1\n      \
         r: a[i2, j2] = 0.25*(b[i2, j2 - 1] + b[i2 + 1, j2])\n",
        &[("m", 100, 5), ("n", 2000, 11)],
        &[("a", 121), ("b", 121)],
    );
    let text = in_time(&found).text(false);
    assert!(text.contains("maps: {r: [\"2*t + 1\", i2, j2], s: [\"2*t\", i, j]}"), "{text}");
    assert!(text.contains("by: [c0, \"c0 + c1\", \"c0 + c2\"]"), "{text}");
    // the conditions on the phase stand outside
    assert!(text.matches("distribute_loop").count() == 2, "{text}");
}

#[test]
fn sweeps_that_do_not_wait_for_each_other_share_a_phase() {
    let found = proposals(
        "kernel waves\nparam m: i32\nparam n: i32\narg e: f64[n] inout\narg g: f64[n] inout\n\
         arg h: f64[n] inout\n\n\
         for t in 0..m\n  e0: e[0] = 0.5\n  for i in 1..n\n    s: e[i] = 0.5*e[i] + h[i] - h[i - 1]\n  \
         for j in 1..n\n    q: g[j] = 0.5*g[j] + h[j - 1]\n  \
         for k in 0..n - 1\n    r: h[k] = 0.5*h[k] + e[k + 1] - e[k] + g[k + 1]\n",
        &[("m", 100, 6), ("n", 100_000, 15)],
        &[("e", 15), ("g", 15), ("h", 15)],
    );
    let text = in_time(&found).text(false);
    assert!(text.contains("r: [\"2*t + 1\", k]") && text.contains("q: [\"2*t\", j]"), "{text}");
}

#[test]
fn a_sweep_in_place_is_tiled_and_runs_in_waves() {
    let found = proposals(
        "kernel seidel\nparam m: i32\nparam n: i32\narg a: f64[n, n] inout\n\n\
         for t in 0..m\n  for i in 1..n - 1\n    for j in 1..n - 1\n      \
         s: a[i, j] = 0.25*(a[i - 1, j + 1] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j])\n",
        &[("m", 100, 5), ("n", 2000, 11)],
        &[("a", 121)],
    );
    let text = in_time(&found).text(false);
    assert!(text.contains("tile_band") && text.contains("map_inames"), "{text}");
}

#[test]
fn updates_run_as_soon_as_their_values_are_known() {
    let found = proposals(
        "kernel parts\nparam n: i32\narg t: f64[n, n] inout\n\n\
         for r in 0..n\n  for j in n - r..n\n    s: t[n - 1 - r, j] max= t[n - 1 - r, j - 1]\n    \
         for k in n - r..j\n      e: t[n - 1 - r, j] max= t[n - 1 - r, k] + 0.5*t[k + 1, j]\n",
        &[("n", 1200, 9)],
        &[("t", 81)],
    );
    let text = found.iter().find(|p| p.name == "push").unwrap().text(false);
    assert!(text.contains("then: [s, {loops: [c1], maps: {e: [j]}}]"), "{text}");

    // a division before the values go on
    let found = proposals(
        "kernel lower\nparam n: i32\narg a: f64[n, n] inout\n\n\
         for i in 0..n\n  for j in 0..i\n    for k in 0..j\n      s: a[i, j] += -0.01*a[i, k]*a[k, j]\n    \
         d: a[i, j] = a[i, j]/(2.0 + a[j, j])\n",
        &[("n", 1000, 9)],
        &[("a", 81)],
    );
    let text = found.iter().find(|p| p.name == "push").unwrap().text(false);
    assert!(text.contains("then: [d, {loops: [c1], maps: {s: [j]}}]"), "{text}");
}

#[test]
fn factors_are_tiled_without_conditions() {
    let found = proposals(
        "kernel lu\nparam n: i32\narg a: f64[n, n] inout\n\n\
         for i in 0..n\n  for j in 0..i\n    for k in 0..j\n      s: a[i, j] += -a[i, k]*a[k, j]\n    \
         q: a[i, j] = a[i, j]/(2.0 + a[j, j])\n  \
         for j2 in i..n\n    for k2 in 0..i\n      r: a[i, j2] += -a[i, k2]*a[k2, j2]\n",
        &[("n", 1000, 11)],
        &[("a", 121)],
    );
    let tiled = |p: &Proposal| p.text(false).contains("tile_band([c0, c1, c2], sizes: [32, 32, 128])");
    // vectors go along the rows of the matrix, and nothing is decided there
    assert!(found[0].name == "tiles in pieces" && tiled(&found[0]), "{}", found[0].text(true));
    assert!(!found[0].kernel.to_string().contains(" if "), "{}", found[0].kernel);
    let next = found.iter().find(|p| p.name == "tiles in pieces, next order").unwrap();
    assert!(tiled(next) && next.cycles < 2.0 * found[0].cycles, "{}", next.text(true));
}

#[test]
fn a_row_is_cut_where_it_writes_what_it_reads() {
    let found = proposals(
        "kernel paths\nparam n: i32\narg p: f64[n, n] inout\n\n\
         for k in 0..n\n  for i in 0..n\n    for j in 0..n\n      \
         s: p[i, j] = min(p[i, j], p[i, k] + p[k, j])\n",
        &[("n", 1000, 11)],
        &[("p", 121)],
    );
    let meetings = found.iter().find(|p| p.name == "meetings").unwrap().text(false);
    assert!(meetings.contains("cut_iname(j, at: k)\ncut_iname(j, at: \"k + 1\")"), "{meetings}");
}

/// Rows that are not in a round go through it one after the other, with a copy of what they read.
#[test]
fn rows_go_through_a_round_of_iterations_together() {
    let found = proposals(
        "kernel paths\nparam n: i32\narg p: f64[n, n] inout\n\n\
         for k in 0..n\n  for i in 0..n\n    for j in 0..n\n      \
         s: p[i, j] = min(p[i, j], p[i, k] + p[k, j])\n",
        &[("n", 1000, 19)],
        &[("p", 361)],
    );
    let rounds = found.iter().find(|p| p.name == "rounds").unwrap();
    let text = rounds.text(false);
    assert!(text.matches("tag: unroll").count() == 4 && text.contains("split_iname(k, factor: 8"), "{text}");
    assert!(rounds.cycles < found.iter().find(|p| p.name == "meetings").unwrap().cycles, "{text}");
}

/// What rows of a block need of each other comes after what they read of all rows before.
#[test]
fn rows_of_a_triangle_are_solved_in_blocks() {
    let found = proposals(
        "kernel lower\nparam n: i32\narg l: f64[n, n] in\narg x: f64[n] inout\narg b: f64[n] in\n\n\
         for i in 0..n\n  a: x[i] = b[i]\n  for j in 0..i\n    c: x[i] += -l[i, j]*x[j]\n  d: x[i] = 0.5*x[i]\n",
        &[("n", 8000, 19)],
        &[("l", 361), ("b", 19), ("x", 19)],
    );
    let text = found.iter().find(|p| p.name == "order, fusion, waves, registers 8 by 2").unwrap().text(false);
    assert!(text.contains("cut_iname(j, at: \"8*i_o\")\n") && text.contains("tag: unroll"), "{text}");
}

#[test]
fn sums_are_added_up_in_lanes() {
    let found = proposals(
        "kernel sums\nparam n: i32\narg a: f64[n] in\narg b: f64[n] in\narg y: f64[n] inout\n\
         temp s: f64 private\ntemp d: f64 private\n\n\
         for k in 0..n\n  z: s = 0.0\n  for i in 0..k\n    t: d = a[k - i - 1] - b[i]\n    u: s += d*d\n    \
         v: y[k] += d\n",
        &[("n", 10_000, 71)],
        &[("a", 71), ("b", 71), ("y", 71)],
    );
    let lanes = found.iter().find(|p| p.name == "lanes").unwrap();
    let text = lanes.text(false);
    assert!(text.matches("factor_update").count() == 2 && text.contains("tag: vector"), "{text}");
    assert!(2.0 * lanes.cycles < found.iter().find(|p| p.name == "as written").unwrap().cycles, "{text}");
}

#[test]
fn sums_in_expressions_become_loops() {
    let found = proposals(
        "kernel prefix\nparam n: i32\narg a: f64[n] in\narg y: f64[n] inout\n\n\
         for i in 0..n\n  s: y[i] = sum(j in 0..i + 1: a[j])\n",
        &[("n", 10_000, 9)],
        &[("a", 9), ("y", 9)],
    );
    assert!(found[0].text(false).contains("realise_scan(s"), "{}", found[0].text(true));
    let found = proposals(
        "kernel filter\nparam n: i32\narg a: f64[n + 2, n + 2] in\narg w: f64[3, 3] in\narg y: f64[n, n] inout\n\n\
         for i in 0..n\n  for j in 0..n\n    s: y[i, j] = sum(p in 0..3, q in 0..3: a[i + p, j + q]*w[p, q])\n",
        &[("n", 2000, 7)],
        &[("a", 81), ("w", 9), ("y", 49)],
    );
    let text = found.iter().find(|p| p.name == "sums in loops").unwrap().text(false);
    assert!(text.contains("realise_reduction(p, in_place: true)"), "{text}");
}

#[test]
fn small_matrices_are_written_out() {
    let found = proposals(
        "kernel factors\nparam n: i32\narg a: f64[n, 4, 4] inout\n\n\
         for b in 0..n\n  for k in 0..4\n    for i in k + 1..4\n      for j in k + 1..4\n        \
         s: a[b, i, j] += -a[b, i, k]*a[b, k, j]\n",
        &[("n", 10_000, 3)],
        &[("a", 48)],
    );
    let text = found.iter().find(|p| p.name == "short loops").unwrap().text(false);
    assert!(text.matches("tag: unroll").count() == 3 && !text.contains("tag(b"), "{text}");
}

#[test]
fn values_are_computed_again_instead_of_stored() {
    let found = proposals(
        "kernel blur\nparam n: i32\narg a: f64[n + 2] in\ntemp b: f64[n + 2] global\narg c: f64[n] inout\n\n\
         for i in 0..n + 2\n  s: b[i] = 2.0*a[i]\nfor j in 0..n\n  r: c[j] = b[j] + b[j + 1] + b[j + 2]\n",
        &[("n", 10_000_000, 9)],
        &[("a", 11), ("c", 9)],
    );
    let again = found.iter().find(|p| p.name == "values again").unwrap();
    assert!(again.text(false).contains("assign_to_rule(b)"), "{}", again.text(true));
    assert!(again.cycles < found.iter().find(|p| p.name == "as written").unwrap().cycles);
}

/// What isl makes of a program alone: its band in tiles, whatever the conditions inside.
#[test]
fn bands_are_tiled_alone() {
    let found = proposals(
        "kernel turned\nparam n: i32\narg a: f64[n, n] in\narg b: f64[n, n] inout\n\n\
         for i in 0..n\n  for j in 0..n\n    s: b[j, i] = a[i, j]\n",
        &[("n", 4000, 35)],
        &[("a", 1225), ("b", 1225)],
    );
    let text = found.iter().find(|p| p.name == "tiled bands").unwrap().text(false);
    assert!(text.contains("tile_band([c0, c1], sizes: [32, 32])"), "{text}");
}

/// The rows of the second factor are read, although its columns would fit a cache.
#[test]
fn rows_come_before_columns_that_fit() {
    let found = proposals(
        "kernel trmm\nparam m: i32\nparam n: i32\narg a: f64[m, m] in\narg b: f64[m, n] inout\n\n\
         for i in 0..m\n  for j in 0..n\n    for k in i + 1..m\n      s: b[i, j] += a[k, i]*b[k, j]\n    \
         q: b[i, j] *= 0.5\n",
        &[("m", 700, 9), ("n", 800, 11)],
        &[("a", 81), ("b", 99)],
    );
    let text = found.iter().find(|p| p.name == "rows, tiles, registers 4 by 4").unwrap().text(false);
    assert!(text.contains("interchange_inames(j, inner: k)"), "{text}");
}

/// What no target can declare lies in memory in every proposal; what an assumption bounds stays private.
#[test]
fn temporaries_of_any_size_lie_in_memory() {
    let space = |assumption: &str| {
        let text = format!(
            "kernel heat\nparam n: i32\nparam m: i32\narg u: f64[n] inout\ntemp v: f64[n]\n{assumption}\n\
             for t in 0..m\n  for i in 1..n - 1\n    s: v[i] = u[i - 1] + u[i + 1]\n  \
             for i2 in 1..n - 1\n    r: u[i2] = 0.25*v[i2]\n"
        );
        let found = proposals(&text, &[("n", 2000, 11), ("m", 100, 3)], &[("u", 11)]);
        assert!(found.len() > 3, "{}", found.len());
        let space_of = |p: &Proposal| p.kernel.var("v").map(|v| p.kernel.vars[v].space);
        found.iter().map(space_of).collect::<Vec<_>>()
    };
    assert!(space("").iter().all(|found| *found == Some(AddressSpace::Global)));
    assert!(space("assume n <= 4000\n").contains(&Some(AddressSpace::Private)));
}

/// Full blocks are held, those at both edges are not; the sums start elsewhere.
#[test]
fn blocks_of_sums_are_held_in_registers() {
    let found = proposals(
        "kernel matmul\nparam m: i32\nparam n: i32\nparam l: i32\narg a: f64[m, l] in\narg b: f64[l, n] in\n\
         arg c: f64[m, n] inout\n\n\
         for i in 0..m\n  for j in 0..n\n    z: c[i, j] *= 0.5\n    for k in 0..l\n      \
         s: c[i, j] += a[i, k]*b[k, j]\n",
        &[("m", 800, 17), ("n", 900, 35), ("l", 1000, 5)],
        &[("a", 85), ("b", 175), ("c", 595)],
    );
    let blocks = found.iter().find(|p| p.name == "blocks").unwrap();
    let text = blocks.text(false);
    assert!(text.contains("tile_band([c0, c1, c2], sizes: [128, 16, 8])"), "{text}");
    assert!(text.matches("buffer_writes(c").count() == 1 && text.contains("tag: vector"), "{text}");
    assert!(blocks.cycles < found.iter().find(|p| p.name == "order").unwrap().cycles, "{text}");
}

#[test]
fn threads_share_tiles_of_a_wave_and_loops_inside_sequential_ones() {
    let machine = Machine { threads: 2, ..Machine::default() };
    let shared = |text: &str, params: &[(&str, i64)], name: &str| {
        let params = params.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let found = propose(&parse(text).unwrap(), &params, &machine).unwrap();
        let texts: Vec<String> =
            found.iter().filter(|p| p.name.ends_with(name)).map(|p| p.kernel.to_string()).collect();
        assert!(texts.iter().any(|t| t.contains("launch") && t.contains("{g.0}")), "{}", texts.join("\n"));
    };
    shared(
        "kernel jacobi\nparam m: i32\nparam n: i32\narg a: f64[n] inout\narg b: f64[n] inout\n\n\
         for t in 0..m\n  for i in 1..n - 1\n    s: b[i] = a[i - 1] + a[i + 1]\n  \
         for i2 in 1..n - 1\n    r: a[i2] = b[i2 - 1] + b[i2 + 1]\n",
        &[("m", 100), ("n", 1_000_000)],
        "tiles in time, waves, threads",
    );
    shared(
        "kernel later\nparam n: i32\narg a: f64[n, n] inout\n\n\
         for k in 0..n\n  for i in k + 1..n\n    for j in k + 1..n\n      s: a[i, j] += a[i, k]*a[k, j]\n",
        &[("n", 1000)],
        "threads",
    );
}
