//! What the generated tilings execute, allocate and move, against the formulas of Kulkarni &
//! Klöckner 2025 (equations (22) to (25), (28), (43) and (44) as `kingpost_strategies::tiling::Tiling` has
//! them), for random parameters that need not divide.
//!
//! 3 parameter sets a form in `make test`, 100 with `KINGPOST_TEST_ALL`.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost::analysis::stats::{Statistics, statistics};
use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::lowering::{LoweredForm, LoweringOptions, lower};
use kingpost::forms::strategies::MultiLevelTiling;
use kingpost::forms::tiling::{Tiling, TilingParameters, TilingSizes};
use kingpost::{Mapping, Random, tiling_sizes, transform};
use kingpost_sample::{is_long_run, seed};
use std::collections::BTreeMap;
use study_kulkarni_klockner_2025::case::Case;
use study_kulkarni_klockner_2025::formulas::Algorithm4;

const FORMS: [&str; 10] = [
    "mass.2D.P2",
    "mass.3D.P2",
    "laplace.2D.P3",
    "laplace.3D.P2",
    "helmholtz.2D.P2",
    "helmholtz.3D.P2",
    "elasticity.2D.P2",
    "elasticity.3D.P1",
    "hyperelasticity.2D.P1",
    "hyperelasticity.2D.P2",
];

fn lowered(name: &str) -> LoweredForm {
    let case = Case::all().into_iter().find(|c| c.to_string() == name).unwrap();
    let form = case.operator.form(case.dim, case.degree).unwrap();
    lower(&form, &LoweringOptions::new("action")).unwrap()
}

fn drawn(sizes: &TilingSizes, random: &mut Random) -> TilingParameters {
    let mut up_to = |n: u64| 1 + random.below(n);
    let quad_tile = up_to(sizes.quadrature_points);
    TilingParameters {
        cells: up_to(8),
        work_items_per_cell: up_to(4),
        quad_tile,
        eval_rows: up_to(quad_tile),
        eval_cols: sizes.trial.iter().map(|s| up_to(s.nodes)).collect(),
        quad_rows: up_to(sizes.test.nodes),
        quad_cols: up_to(quad_tile),
    }
}

/// Instances of the instructions whose names begin so, of one group.
fn instances(stats: &Statistics, prefix: &str) -> u64 {
    stats.insns.iter().filter(|i| i.name.starts_with(prefix)).map(|i| i.instances).sum()
}

/// Barriers that the source executes, if all loops around them have constant bounds.
fn barriers(source: &str) -> Option<u64> {
    let mut trips: Vec<Option<u64>> = Vec::new();
    let mut found = 0;
    for line in source.lines().map(str::trim) {
        if line == "__syncthreads();" {
            found += trips.iter().copied().try_fold(1, |n: u64, t| t.map(|t| n * t))?;
        }
        if line.starts_with('}') {
            trips.pop();
        }
        if line.ends_with('{') {
            let bound = line.strip_prefix("for (int ").map(|head| {
                let [start, end, _] = head.split(';').collect::<Vec<_>>()[..] else { return None };
                // `i = 0`, `i < 3`
                let number = |s: &str| match s.split_whitespace().collect::<Vec<_>>()[..] {
                    [_, _, n] => n.parse::<u64>().ok(),
                    _ => None,
                };
                Some(number(end)? - number(start)?)
            });
            trips.push(bound.unwrap_or(Some(1)));
        }
    }
    Some(found)
}

fn check(form: &LoweredForm, sizes: &TilingSizes, p: &TilingParameters) -> bool {
    let tiling = Tiling::new(sizes, p).unwrap();
    let (tiled, _) =
        transform(form, &Mapping::from(MultiLevelTiling(p.clone()))).unwrap_or_else(|e| panic!("{p}: {e}"));
    let params = [("n_cells", p.cells as i64), ("n_vertices", 100), ("n_dofs", 100)];
    let params: BTreeMap<String, i64> = params.map(|(n, v)| (n.to_owned(), v)).into();
    let stats = statistics(&tiled, &params).unwrap();
    let of_cell = |n: u64| n / p.cells;
    // (28): each product is a multiplication and an addition
    let products = instances(&stats, "eval_") + instances(&stats, "quad_");
    assert_eq!(2 * of_cell(products), sizes.usable_ops(), "operations of {p}");
    // (43)
    assert_eq!(of_cell(instances(&stats, "scatter_")), tiling.scatter_words(), "scatter of {p}");
    let gathered: u64 = stats
        .insns
        .iter()
        .filter(|i| i.name.starts_with("fetch_") && i.name.ends_with("_tile"))
        .map(|i| i.instances)
        .sum();
    assert_eq!(of_cell(gathered), tiling.gather_words(), "gather of {p}");
    let fetched = instances(&stats, "fetch_phi");
    assert_eq!(fetched, tiling.reference_words(), "fetched tiles of {p}");
    // (44)
    let factors: u64 = stats
        .insns
        .iter()
        .filter(|i| i.name.starts_with("set_e") && i.name[5..].parse::<u32>().is_ok())
        .map(|i| i.instances)
        .sum();
    assert_eq!(of_cell(factors), tiling.eval_local_writes(), "factors of {p}");
    assert_eq!(of_cell(instances(&stats, "eval_")), tiling.eval_local_reads(), "evaluation of {p}");
    // (25)
    let program = generate(&tiled, Target::Cuda, &Options::default()).unwrap_or_else(|e| panic!("{p}: {e}"));
    let smallest = p.eval_cols.iter().map(|c| c * p.eval_rows).chain([p.quad_rows * p.quad_cols]).min();
    if smallest > Some(1) {
        // a tile of one element shares no buffer
        assert_eq!(program.plan.local_bytes, tiling.local_bytes(), "local memory of {p}");
    }
    // (23), (24): those that order something; a loop of one iteration needs none after it
    let Some(found) = barriers(&program.source) else { return false };
    assert!(found <= tiling.needed_barriers(), "{found} barriers, {} in {p}", tiling.needed_barriers());
    assert_eq!(found == 0, p.work_group() == 1, "{found} barriers in {p}");
    true
}

#[test]
fn generated_tilings_do_what_the_formulas_say() {
    let sets = if is_long_run() { 100 } else { 3 };
    let seed = seed();
    let mut random = Random::new(seed);
    let mut counted = 0;
    for name in FORMS {
        let form = lowered(name);
        let sizes = tiling_sizes(&form).unwrap();
        for _ in 0..sets {
            let p = drawn(&sizes, &mut random);
            counted += usize::from(check(&form, &sizes, &p));
        }
    }
    println!(
        "{} parameter sets of {} forms, barriers counted in {counted}; seed {seed}",
        sets * FORMS.len(),
        FORMS.len()
    );
    assert!(counted > 0);
}
