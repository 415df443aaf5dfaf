//! How well the throughput model orders the trials of a database.

use clap::Args;
use kingpost::Mapping;
use kingpost::autotune::{DeviceModel, Objective, best_of_each, known_devices};
use kingpost::codegen::Target;
use kingpost::files;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::tuning::throughput::{Demand, ThroughputModel, Verdict, demands};
use kingpost::tuning::{FormCase, Record};
use kingpost_cli::{Failure, Progress, markdown, out};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;
use study_kulkarni_klockner_2025::case::Case;
use study_kulkarni_klockner_2025::ranking::rank_correlation;

/// Arguments of `predictions`.
#[derive(Args)]
pub struct PredictionArgs {
    /// The database that `tune` wrote
    #[arg(long, value_name = "FILE", default_value = "tune-output/trials.jsonl")]
    pub db: PathBuf,
    /// Components of names, such as laplace, 3D.P4 or mass.2D [default: all of the database]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cases: Vec<String>,
    /// Trials of a case that are predicted: the fastest, and others evenly [default: all]
    #[arg(long, value_name = "N")]
    most: Option<usize>,
    /// What trials ask for beside their times, one JSON object a line: those that are there are not
    /// counted again, others are added
    #[arg(long, value_name = "FILE")]
    demands: Option<PathBuf>,
    /// Print what each unit of the card takes for the fastest trial of each case, instead of the order
    #[arg(long)]
    parts: bool,
}

/// A trial, and what it asks for.
#[derive(Clone, Serialize, Deserialize)]
struct Trial {
    case: String,
    mapping: Mapping,
    measured_s: f64,
    registers: Option<u64>,
    spills: Option<u64>,
    demand: Demand,
}

/// Prints how the model orders the measured trials of each case, as Markdown.
pub fn run(args: &PredictionArgs, records: &[Record]) -> Result<(), Failure> {
    let progress = Progress::new();
    let known = h200()?;
    let kept = args.kept()?;
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    for best in best_of_each(records, Objective::Time) {
        let name = &best.workload.case;
        let wanted = |part: &String| format!(".{name}.").contains(&format!(".{part}."));
        let Ok(case) = name.parse::<Case>() else { continue };
        if !args.cases.is_empty() && !args.cases.iter().any(wanted) {
            continue;
        }
        progress.stage(format!("predicting {name}"));
        let lowered = || case.lowered(QuadratureScheme::XiaoGimbutas, case.published_subdivisions());
        let orders = [NumberingOrder::FirstTouch, NumberingOrder::ByDimension];
        let lowered = [lowered()?.in_order(orders[0]), lowered()?.in_order(orders[1])];
        // records before version 2 have no occupancy
        let occupancy = best.device.occupancy.or(known.occupancy);
        let device = DeviceModel { occupancy, ..best.device.clone() };
        let model = ThroughputModel::new(&device).map_err(|e| Failure::Usage(e.to_string()))?;
        let beside: Vec<&Record> = records.iter().filter(|r| r.is_beside(best)).collect();
        let most = if args.parts { 1 } else { args.most.unwrap_or(usize::MAX) };
        let chosen = chosen(&beside, most);
        let (trials, fresh) = trials(&lowered, &chosen, &kept);
        args.keep(&fresh)?;
        let lost = chosen.len() - trials.len();
        parts.extend(trials.iter().map(|trial| parts_of(trial, &model)));
        rows.push(Trials::of(name, trials, lost, &model));
    }
    drop(progress);
    out(&if args.parts { markdown(PARTS, parts) } else { page(&rows) })
}

const PARTS: [&str; 12] = [
    "case",
    "mapping",
    "µs",
    "memory, MB",
    "FP64, G instructions of a lane",
    "local wavefronts, M",
    "atomic sectors, M",
    "registers (spills)",
    "units alone, µs: memory, cache",
    "arithmetic, issue",
    "local memory, atomic updates",
    "all, predicted",
];

/// What the fastest trial asks for, and what each unit takes alone.
fn parts_of(trial: &Trial, model: &ThroughputModel<'_>) -> [String; 12] {
    let traffic = &trial.demand.traffic;
    // a matrix instruction of 16 by 8 by 8 is 1,024 fused multiply-adds, 32 a lane
    let matrix = 32.0 * trial.demand.matrix_instructions();
    let parts = model.parts(&trial.demand);
    let of = |names: [&str; 2]| {
        let seconds = |name| parts.iter().find(|(n, _)| *n == name).map_or(f64::NAN, |(_, s)| s * 1e6);
        format!("{:.1}, {:.1}", seconds(names[0]), seconds(names[1]))
    };
    let number = |n: Option<u64>| n.map_or_else(|| "–".to_owned(), |n| n.to_string());
    [
        trial.case.clone(),
        trial.mapping.to_string(),
        format!("{:.1}", trial.measured_s * 1e6),
        format!("{:.1}", trial.demand.memory_bytes / 1e6),
        format!("{:.2}", (traffic.arithmetic + matrix) * 32.0 / 1e9),
        format!("{:.1}", traffic.local_wavefronts / 1e6),
        format!("{:.1}", traffic.reductions.sectors / 1e6),
        format!("{} ({})", number(trial.registers), number(trial.spills)),
        of(["memory", "cache"]),
        of(["arithmetic", "issue"]),
        of(["local memory", "atomic updates"]),
        format!("{:.1}", model.verdict(&trial.demand).seconds * 1e6),
    ]
}

impl PredictionArgs {
    /// The trials of the file.
    fn kept(&self) -> Result<Vec<Trial>, Failure> {
        let Some(path) = self.demands.as_ref().filter(|path| path.exists()) else { return Ok(Vec::new()) };
        let wrong =
            |e: &dyn std::fmt::Display| Failure::Usage(format!("cannot read `{}`: {e}", path.display()));
        let text = files::read_text(path).map_err(|e| wrong(&e))?;
        text.lines().map(|line| serde_json::from_str(line).map_err(|e| wrong(&e))).collect()
    }

    /// Adds trials to the file.
    fn keep(&self, trials: &[Trial]) -> Result<(), Failure> {
        let Some(path) = &self.demands else { return Ok(()) };
        let lines = trials.iter().filter_map(|trial| serde_json::to_string(trial).ok());
        let text: String = lines.map(|line| line + "\n").collect();
        files::append(path, &text).map_err(|e| Failure::of_write(path, &e))
    }
}

/// The fastest of the measured records of a case, and others evenly, up to a total.
fn chosen<'r>(records: &[&'r Record], most: usize) -> Vec<&'r Record> {
    let mut timed: Vec<&Record> = records.iter().copied().filter(|r| r.median_s().is_some()).collect();
    if let Some(best) = (0..timed.len()).min_by(|a, b| {
        let time = |k: usize| timed[k].median_s().unwrap_or(f64::INFINITY);
        time(*a).total_cmp(&time(*b))
    }) {
        timed.swap(0, best);
    }
    let (count, most) = (timed.len(), most.clamp(1, timed.len().max(1)));
    (0..most).filter_map(|k| timed.get(k * count / most).copied()).collect()
}

/// Trials with what they ask for, and those of them that were not known before; records whose code
/// cannot be generated any more are left out. `cases` have degrees of freedom in the orders of records.
fn trials(cases: &[FormCase], records: &[&Record], kept: &[Trial]) -> (Vec<Trial>, Vec<Trial>) {
    let known = |r: &Record| {
        let is = |t: &&Trial| {
            t.case == r.workload.case && t.mapping == r.parameters && Some(t.measured_s) == r.median_s()
        };
        kept.iter().find(is).cloned()
    };
    let (known, unknown): (Vec<_>, Vec<_>) =
        records.iter().map(|r| (r, known(r))).partition(|(_, t)| t.is_some());
    let counted = cases.iter().flat_map(|case| {
        let is_in_order = |r: &&Record| FormCase::order_of(&r.workload) == case.order();
        let records: Vec<&Record> = unknown.iter().map(|(r, _)| **r).filter(is_in_order).collect();
        let mappings: Vec<Mapping> = records.iter().map(|r| r.parameters.clone()).collect();
        let demands = demands(case, &mappings, Target::Cuda);
        records.into_iter().zip(demands)
    });
    let counted = counted.filter_map(|(record, demand)| {
        let resources = record.measurement().and_then(|m| m.resources.as_ref());
        Some(Trial {
            case: record.workload.case.clone(),
            mapping: record.parameters.clone(),
            measured_s: record.median_s()?,
            registers: resources.map(|r| r.registers),
            spills: resources.map(|r| r.spill_stores),
            demand: demand.ok()?,
        })
    });
    let fresh: Vec<Trial> = counted.collect();
    (known.into_iter().filter_map(|(_, trial)| trial).chain(fresh.clone()).collect(), fresh)
}

/// The model whose limits are those of all cards of the architecture.
fn h200() -> Result<DeviceModel, Failure> {
    let models = known_devices().map_err(|e| Failure::Refused(e.to_string()))?;
    let found = models.into_iter().find(|m| m.name == "H200");
    found.ok_or_else(|| Failure::Refused("bug of kingpost: no model `H200`".into()))
}

/// The measured trials of a case.
struct Trials {
    case: String,
    /// With what is predicted, in the order of the predictions.
    measured: Vec<(Trial, Verdict)>,
    /// Trials whose code could not be generated any more.
    lost: usize,
}

impl Trials {
    fn of(case: &str, trials: Vec<Trial>, lost: usize, model: &ThroughputModel<'_>) -> Self {
        let mut measured: Vec<(Trial, Verdict)> =
            trials.into_iter().map(|t| (model.verdict(&t.demand), t)).map(|(v, t)| (t, v)).collect();
        measured.sort_by(|(_, a), (_, b)| a.order(b));
        Self { case: case.to_owned(), measured, lost }
    }

    fn best(&self) -> f64 {
        self.measured.iter().map(|(t, _)| t.measured_s).fold(f64::INFINITY, f64::min)
    }

    /// How many times longer than the best the best of the first ones takes.
    fn within(&self, first: usize) -> f64 {
        let found = self.measured.iter().take(first).map(|(t, _)| t.measured_s).fold(f64::INFINITY, f64::min);
        found / self.best()
    }

    /// Place of the fastest in the order of predictions, from 1.
    fn place(&self) -> usize {
        let best = self.best();
        self.measured.iter().position(|(t, _)| t.measured_s <= best).map_or(0, |k| k + 1)
    }

    fn correlation(&self) -> Option<f64> {
        let pairs: Vec<(f64, f64)> = self.measured.iter().map(|(t, v)| (v.seconds, t.measured_s)).collect();
        rank_correlation(&pairs)
    }

    /// What is predicted of the fastest.
    fn fastest(&self) -> Option<&Verdict> {
        let best = self.best();
        self.measured.iter().find(|(t, _)| t.measured_s <= best).map(|(_, verdict)| verdict)
    }
}

const HEADER: [&str; 10] = [
    "case",
    "trials",
    "rank correlation",
    "place of the fastest",
    "best of the first 3",
    "of the first 5",
    "of the first 10",
    "fastest: µs",
    "predicted / measured",
    "its longest part alone, µs",
];

fn page(cases: &[Trials]) -> String {
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let mut correlations: Vec<f64> = cases.iter().filter_map(Trials::correlation).collect();
    let middle = median(&mut correlations);
    let least = correlations.first().copied().unwrap_or(f64::NAN);
    let trials: usize = cases.iter().map(|c| c.measured.len()).sum();
    let lost: usize = cases.iter().map(|c| c.lost).sum();
    let mut text = format!(
        "{trials} trials of {} cases ({lost} more cannot be generated any more). Rank correlation of predicted and measured \
         times (Spearman): median {middle:.2}, least {least:.2}.",
        cases.len(),
    );
    for first in [1, 3, 5, 10] {
        let hits = cases.iter().filter(|c| c.within(first) <= 1.0).count();
        let near = cases.iter().filter(|c| c.within(first) <= 1.05).count();
        let mean =
            (cases.iter().map(|c| c.within(first).ln()).sum::<f64>() / cases.len().max(1) as f64).exp();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " The first {first} in the order of predictions hold the fastest in {hits} cases, one within 5 % of it in {near}; \
             their best takes {mean:.3} times as long in the geometric mean."
        );
    }
    let number = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.2}"));
    let rows = cases.iter().map(|c| {
        [
            c.case.clone(),
            c.measured.len().to_string(),
            number(c.correlation()),
            c.place().to_string(),
            number(Some(c.within(3))),
            number(Some(c.within(5))),
            number(Some(c.within(10))),
            format!("{:.1}", c.best() * 1e6),
            number(c.fastest().map(|v| v.seconds / c.best())),
            c.fastest().map_or_else(String::new, |v| format!("{} {:.1}", v.longest.0, v.longest.1 * 1e6)),
        ]
    });
    format!("{text}\n\n{}", markdown(HEADER, rows))
}
