//! How good the ranking is: the best of the best ranked against the best of many drawn at random.

use crate::ranking::rank_correlation;
use kingpost::autotune::{Objective, best_of_each};
use kingpost::forms::strategies::MultiLevelTiling;
use kingpost::tuning::Record;
use kingpost_cli::{markdown, seconds, table};
use std::fmt::Write as _;

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

/// What the table says of a case.
const HEADER: [&str; 10] = [
    "case",
    "ranked",
    "drawn",
    "without a time",
    "first of ranking",
    "best ranked",
    "best seen",
    "best ranked / best seen",
    "median drawn / best seen",
    "rank correlation",
];

/// For each case of the records: how far the best of the ranked tilings is from the best seen, how
/// far a tiling drawn at random is, and how well predicted times rank measured ones (Spearman).
#[must_use]
pub fn study_table(records: &[Record]) -> String {
    table(HEADER, rows(records))
}

/// The same as a page in Markdown, after a summary.
#[must_use]
pub fn study_page(records: &[Record]) -> String {
    let cases: Vec<_> = groups(records).iter().filter_map(Group::judgement).collect();
    let within = |part: f64| cases.iter().filter(|j| j.ratio <= 1.0 + part).count();
    let farthest = cases.iter().map(|j| j.ratio).fold(1.0, f64::max);
    let mut summary = format!(
        "{} cases. The best of the ranked tilings is the best seen in {} of them, within 5 % of it in {}; at most {:.1} % \
         slower.",
        cases.len(),
        within(0.0),
        within(0.05),
        100.0 * (farthest - 1.0),
    );
    let mut correlations: Vec<f64> = cases.iter().filter_map(|j| j.correlation).collect();
    correlations.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (correlations.first(), correlations.last()) {
        // Writing to a string cannot fail.
        let _ = write!(
            summary,
            " Rank correlation of predicted and measured times: {least:.2} to {most:.2}, median {:.2}.",
            median(&correlations).unwrap_or(f64::NAN),
        );
    }
    format!("{summary}\n\n{}", markdown(HEADER, rows(records)))
}

/// The tilings of one case: those that the ranking put first, and those that were drawn.
struct Group<'r> {
    case: &'r str,
    ranked: Vec<&'r Record>,
    drawn: Vec<&'r Record>,
}

/// What the times of a group say.
struct Judgement {
    best_ranked_s: f64,
    best_seen_s: f64,
    ratio: f64,
    /// Median of the times of those that were drawn; none if none ran.
    drawn_s: Option<f64>,
    correlation: Option<f64>,
}

/// The tilings of each case of the records.
fn groups(records: &[Record]) -> Vec<Group<'_>> {
    let group = |best: &'_ Record| {
        let tilings = records
            .iter()
            .filter(|r| r.is_beside(best))
            .filter(|r| r.parameters.get::<MultiLevelTiling>().is_some());
        tilings.partition(|r| r.rank.is_some())
    };
    let best = best_of_each(records, Objective::Time).into_iter();
    best.map(|best| {
        let (ranked, drawn) = group(best);
        Group { case: &best.workload.case, ranked, drawn }
    })
    .collect()
}

fn rows(records: &[Record]) -> Vec<[String; 10]> {
    groups(records).iter().map(Group::row).collect()
}

impl Group<'_> {
    fn all(&self) -> impl Iterator<Item = &Record> {
        self.ranked.iter().chain(&self.drawn).copied()
    }

    fn judgement(&self) -> Option<Judgement> {
        let least = |records: &mut dyn Iterator<Item = &Record>| {
            records.filter_map(Record::median_s).min_by(f64::total_cmp)
        };
        let best_ranked_s = least(&mut self.ranked.iter().copied())?;
        let best_seen_s = least(&mut self.all())?;
        let mut drawn: Vec<f64> = self.drawn.iter().filter_map(|r| r.median_s()).collect();
        drawn.sort_by(f64::total_cmp);
        let pairs: Vec<_> = self.all().filter_map(|r| Some((r.predicted_s?, r.median_s()?))).collect();
        Some(Judgement {
            best_ranked_s,
            best_seen_s,
            ratio: best_ranked_s / best_seen_s,
            drawn_s: median(&drawn),
            correlation: rank_correlation(&pairs),
        })
    }

    fn row(&self) -> [String; 10] {
        let none = || "-".to_owned();
        let judgement = self.judgement();
        let of =
            |f: &dyn Fn(&Judgement) -> Option<String>| judgement.as_ref().and_then(f).unwrap_or_else(none);
        let first = self.ranked.iter().find(|r| r.rank == Some(1)).and_then(|r| r.median_s());
        let without = self.all().filter(|r| r.measurement().is_none()).count();
        [
            self.case.to_owned(),
            self.ranked.len().to_string(),
            self.drawn.len().to_string(),
            without.to_string(),
            first.map_or_else(none, seconds),
            of(&|j| Some(seconds(j.best_ranked_s))),
            of(&|j| Some(seconds(j.best_seen_s))),
            of(&|j| Some(format!("{:.3}", j.ratio))),
            of(&|j| Some(format!("{:.1}", j.drawn_s? / j.best_seen_s))),
            of(&|j| Some(format!("{:.2}", j.correlation?))),
        ]
    }
}

/// The middle of sorted numbers; of an even number of them, the upper one.
fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}
