//! The sources of all operator actions under every kind of mapping stay what they are, byte for
//! byte.
//!
//! `BLESS=1 KINGPOST_TEST_ALL=1 cargo nextest run --test forms source_hashes::` writes the table again. A
//! line that changes is reviewed like a snapshot: `kingpost print` with its mapping shows the source.

#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost::codegen::{Options, Target, generate};
use kingpost::forms::lowering::{LoweredForm, LoweringOptions, lower};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::forms::strategies::{ConstantCells, MultiLevelTiling, SingleCell, StagedCells, StagedTiling};
use kingpost::forms::tiling::{TilingParameters, TilingSizes};
use kingpost::kernels::Operator;
use kingpost::{Mapping, staged_tiling_sizes, tiling_sizes, transform};
use kingpost_sample::is_long_run;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/forms/source_hashes.txt");
const SHIPPED: &str = include_str!("../../crates/autotune/src/tuning/known_data/nvidia_h200.txt");

/// An operator on Lagrange elements of a degree.
#[derive(Clone, Copy)]
pub struct Case {
    operator: Operator,
    pub dim: usize,
    pub degree: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.operator.action_name(self.dim, self.degree))
    }
}

impl Case {
    /// The 70 actions of Kulkarni & Klöckner 2025, section 6.2.
    pub fn all() -> impl Iterator<Item = Self> {
        let sizes = (1..=8).map(|p| (2, p)).chain((1..=6).map(|p| (3, p)));
        sizes.flat_map(|(dim, degree)| Operator::ALL.map(|operator| Self { operator, dim, degree }))
    }

    pub fn lowered(self) -> LoweredForm {
        let form = self.operator.form(self.dim, self.degree).unwrap();
        let options = LoweringOptions::new(self.operator.kernel_name(self.dim, self.degree));
        lower(&form, &options.with_scheme(QuadratureScheme::XiaoGimbutas)).unwrap()
    }
}

/// Tiles of one part in `parts` of each size: with 2 most sizes leave a remainder.
fn tiling(sizes: &TilingSizes, parts: u64) -> TilingParameters {
    let quad_tile = sizes.quadrature_points.div_ceil(parts);
    TilingParameters {
        cells: 16,
        work_items_per_cell: 3,
        quad_tile,
        eval_rows: quad_tile.div_ceil(parts),
        eval_cols: sizes.trial.iter().map(|s| s.nodes.div_ceil(parts)).collect(),
        quad_rows: sizes.test.nodes.div_ceil(parts),
        quad_cols: quad_tile.div_ceil(parts),
    }
}

pub fn mappings(kernel: &LoweredForm, name: Case) -> Vec<Mapping> {
    let (sizes, staged) = (tiling_sizes(kernel).unwrap(), staged_tiling_sizes(kernel).unwrap());
    let name = format!("{name} ");
    let shipped = SHIPPED.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
    vec![
        Mapping::from(SingleCell { cells: 32 }),
        Mapping::from(ConstantCells { cells: 128 }),
        Mapping::from(StagedCells { cells: 32, constant_tables: true }),
        Mapping::from(StagedCells { cells: 64, constant_tables: false }),
        Mapping::from(MultiLevelTiling(tiling(&sizes, 1))),
        Mapping::from(MultiLevelTiling(tiling(&sizes, 2))),
        Mapping::from(StagedTiling(tiling(&staged, 1))),
        Mapping::from(StagedTiling(tiling(&staged, 2))),
        serde_json::from_str(shipped).unwrap(),
    ]
}

/// A line a mapping: case, hashes of the sources in CUDA, OpenCL and C, mapping.
fn lines(case: Case) -> String {
    let lowered = case.lowered();
    let mut lines = String::new();
    for mapping in mappings(&lowered, case) {
        let (kernel, _) = transform(&lowered, &mapping).unwrap_or_else(|e| panic!("{case}: {e}"));
        let hash = |target| {
            // of a program that a target cannot hold, the hash of why
            let source =
                generate(&kernel, target, &Options::default()).map_or_else(|e| e.to_string(), |p| p.source);
            blake3::hash(source.as_bytes()).to_hex()[..16].to_owned()
        };
        let [cuda, opencl, c] = [Target::Cuda, Target::OpenCl, Target::C].map(hash);
        let mapping = serde_json::to_string(&mapping).unwrap();
        writeln!(lines, "{case} {cuda} {opencl} {c} {mapping}").unwrap();
    }
    lines
}

#[test]
fn sources_stay_what_they_are() {
    let few = [Operator::Helmholtz, Operator::Hyperelasticity];
    let is_chosen = |c: &Case| is_long_run() || ((c.dim, c.degree) == (2, 2) && few.contains(&c.operator));
    let cases: Vec<Case> = Case::all().filter(is_chosen).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            match cases.get(k) {
                Some(case) => done.push((k, lines(*case))),
                None => return done,
            }
        }
    };
    let mut found: Vec<(usize, String)> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    found.sort_unstable();
    if std::env::var_os("BLESS").is_some() && is_long_run() {
        let head = "# case, BLAKE3 of the CUDA, OpenCL and C source (first 16 digits), mapping\n";
        let text = found.iter().fold(head.to_owned(), |text, (_, lines)| text + lines);
        return std::fs::write(TABLE, text).unwrap();
    }
    let table = std::fs::read_to_string(TABLE).unwrap();
    let known: Vec<&str> = table.lines().collect();
    let found: Vec<&str> = found.iter().flat_map(|(_, lines)| lines.lines()).collect();
    assert!(found.len() >= 9 * cases.len());
    let changed: Vec<&&str> = found.iter().filter(|line| !known.contains(*line)).collect();
    assert!(changed.is_empty(), "{} of {} sources changed: {changed:#?}", changed.len(), found.len());
}
