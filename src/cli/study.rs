//! How good the ranking is: the best of the best ranked against the best of many drawn at random.

use super::results::single_cell_s;
use super::table::{seconds, table};
use purlin::autotune::{Parameters, Record, best_of_each, rank_correlation};

/// Cases of the study: every operator, both dimensions, low and high degrees.
pub const CASES: [&str; 10] = [
    "mass.2D.P4",
    "helmholtz.2D.P3",
    "laplace.2D.P6",
    "elasticity.2D.P5",
    "hyperelasticity.2D.P3",
    "mass.3D.P4",
    "helmholtz.3D.P3",
    "laplace.3D.P4",
    "elasticity.3D.P3",
    "hyperelasticity.3D.P2",
];

/// Best ranked mappings that stand against those that are drawn.
pub const TOP: usize = 10;

/// Seed of the draws: the same ones each time, so that a study that was stopped goes on.
pub const DRAW_SEED: u64 = 1;

/// For each case of the records: how far the best of the best ranked is from the best seen, and how well
/// predicted times rank measured ones.
pub fn study_table(records: &[Record]) -> String {
    let rows = best_of_each(records).into_iter().map(|best| row(best, records));
    let header = [
        "case",
        "top 10",
        "drawn",
        "refused",
        "best of top 10",
        "best seen",
        "ratio",
        "rank correlation",
        "single cell",
    ];
    table(header, rows)
}

fn row(best: &Record, records: &[Record]) -> [String; 9] {
    let same = |r: &&Record| {
        (&r.workload.kernel, r.workload.cells, &r.device.name)
            == (&best.workload.kernel, best.workload.cells, &best.device.name)
    };
    let tilings: Vec<&Record> =
        records.iter().filter(same).filter(|r| matches!(r.parameters, Parameters::Tiling(_))).collect();
    let is_top = |r: &&&Record| r.rank.is_some_and(|rank| rank <= TOP as u64);
    let top: Vec<f64> = tilings.iter().filter(is_top).filter_map(|r| r.median_s()).collect();
    let pairs: Vec<(f64, f64)> =
        tilings.iter().filter_map(|r| Some((r.predicted_s?, r.median_s()?))).collect();
    let least = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
    let (best_top, best_seen) = (least(&top), least(&pairs.iter().map(|p| p.1).collect::<Vec<_>>()));
    let time = |s: Option<f64>| s.map_or_else(|| "-".into(), seconds);
    let ratio = best_top.zip(best_seen).map_or_else(|| "-".into(), |(a, b)| format!("{:.2}", a / b));
    let correlation = rank_correlation(&pairs).map_or_else(|| "-".into(), |r| format!("{r:.2}"));
    [
        best.workload.case.clone(),
        top.len().to_string(),
        (pairs.len() - top.len()).to_string(),
        tilings.iter().filter(|r| r.measurement().is_none()).count().to_string(),
        time(best_top),
        time(best_seen),
        ratio,
        correlation,
        time(single_cell_s(best, records)),
    ]
}
