//! `kingpost results`: what tuning found, as tables, as a page, as pictures.

use super::components::is_part;
use super::failure::Failure;
use super::out;
use super::table::{figure, grouped, seconds, table};
use super::terminal::shown;
use super::trials::first_line;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use kingpost::autotune::{Objective, Outcome, Share, Shares, bars_svg, best_of_each, share_svg};
use kingpost::files;
use kingpost::forms::strategies::SingleCell;
use kingpost::tuning::{Contents, Database, Record};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Show what tuning found: the best mapping of each case, every trial, what was refused and why
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost results                                 the best of each case in tune-output/trials.jsonl
  kingpost results --case laplace.3D.P4 --all      every trial of a case, the fastest first
  kingpost results --refused                       what did not compile, launch or agree, and why
  kingpost results --db results/h200/tuned.jsonl   what is shipped for the H200
  kingpost results --plots .                       bars.svg and share.svg
  kingpost print laplace --degree 4 --target cuda \\
    --mapping \"$(kingpost results --case laplace.3D.P4 --mapping)\"

Columns: after the median stands the energy of one run where it was counted, of the whole card,
idle power included. `local tables` and `of true` are fractions of two rooflines with the ceilings
that were measured on the device. The true one is min(memory bandwidth * FLOP/byte, FP64 rate). The
other one also has every read of the reference matrices come from local memory (Kulkarni & Klöckner
2025, equation 47). Operations are those of the kernel before any transformation. `faster` is the
time of one cell a work-item over that of the best.")]
pub struct ResultsArgs {
    /// The database that `kingpost tune` wrote
    #[arg(long, value_name = "FILE", default_value = "tune-output/trials.jsonl")]
    db: PathBuf,
    /// Only cases whose name has these components, such as laplace, laplace.3D or 2D.P8
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Only devices whose name contains this
    #[arg(long, value_name = "TEXT")]
    device: Option<String>,
    /// What the best has least of: its time, or on a card the energy that the whole card takes meanwhile
    #[arg(long, value_name = "WHAT", default_value = "time", value_parser = objective())]
    objective: Objective,
    /// Every trial, not only the best of each case
    #[arg(long)]
    all: bool,
    /// Only the trials without a time, with the reason
    #[arg(long, conflicts_with = "all")]
    refused: bool,
    /// The best mapping of each case as JSON, as --mapping of other commands takes it
    #[arg(long, conflicts_with_all = ["all", "refused"])]
    mapping: bool,
    /// Write bars.svg and share.svg there
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

/// Reads an objective.
pub fn objective() -> impl TypedValueParser<Value = Objective> {
    let of = |text: String| if text == "energy" { Objective::Energy } else { Objective::Time };
    PossibleValuesParser::new(["time", "energy"]).map(of)
}

/// Runs the command.
pub fn run(args: &ResultsArgs) -> Result<(), Failure> {
    if !args.db.exists() {
        let path = args.db.display();
        let message = format!("no database `{path}`; `kingpost tune` makes one, --db names another");
        return Err(Failure::Usage(message));
    }
    let contents = Database::at(&args.db).read()?;
    warn_of_damage(&contents, &args.db);
    let records = args.select(contents.records)?;
    let best = best_by(&records, args.objective)?;
    out(&if args.refused && records.iter().all(|r| r.median_s().is_some()) {
        "no trial was refused\n".into()
    } else if args.refused {
        refused_table(&records)
    } else if args.all {
        trials_table(&records, args.objective)
    } else if args.mapping {
        mappings(&best)?
    } else {
        best_table(&best, &records)
    })?;
    match &args.plots {
        Some(dir) => out(&pictures(&best, dir, "")?),
        None => Ok(()),
    }
}

impl ResultsArgs {
    /// The records that are asked for.
    fn select(&self, mut records: Vec<Record>) -> Result<Vec<Record>, Failure> {
        if let Some(case) = &self.case {
            records = keep(records, "case", case, |r| &r.workload.case, is_part)?;
        }
        if let Some(device) = &self.device {
            let holds = |part: &str, name: &str| name.to_lowercase().contains(&part.to_lowercase());
            records = keep(records, "device", device, |r| &r.device.name, holds)?;
        }
        Ok(records)
    }
}

/// Maximum number of names in a message.
const MOST_NAMES: usize = 8;

/// The records whose name `suits` what is wanted.
///
/// # Errors
/// None of them, with the names there are.
fn keep(
    records: Vec<Record>,
    what: &str,
    wanted: &str,
    name: fn(&Record) -> &str,
    suits: fn(&str, &str) -> bool,
) -> Result<Vec<Record>, Failure> {
    let (kept, others): (Vec<_>, Vec<_>) = records.into_iter().partition(|r| suits(wanted, name(r)));
    if !kept.is_empty() || others.is_empty() {
        return Ok(kept);
    }
    let names: BTreeSet<&str> = others.iter().map(name).collect();
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|n| format!("`{n}`")).collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = shown.join(", ");
    Err(Failure::Usage(format!("no record is of a {what} `{wanted}`; there are {shown}{more}")))
}

/// The best record of each case.
///
/// # Errors
/// There is none by energy though there is one by time: no trial has counted it.
pub fn best_by(records: &[Record], objective: Objective) -> Result<Vec<&Record>, Failure> {
    let best = best_of_each(records, objective);
    if best.is_empty() && !best_of_each(records, Objective::Time).is_empty() {
        let message = "no trial has an energy: cards of NVIDIA count it, where their NVML is there; \
                       with `--again` older trials are made again, `--objective time` goes by time";
        return Err(Failure::Usage(message.into()));
    }
    Ok(best)
}

/// The energy of one run, if it was counted.
pub fn energy(record: &Record) -> Option<String> {
    record.joules().map(|j| match j {
        j if j >= 1.0 => format!("{j:.3} J"),
        j if j >= 1e-3 => format!("{:.3} mJ", j * 1e3),
        j => format!("{:.2} µJ", j * 1e6),
    })
}

/// The median of a record and its energy.
fn median_and_energy(median_s: f64, record: &Record) -> String {
    [Some(seconds(median_s)), energy(record)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The mapping of the one record, or of each after its case.
fn mappings(best: &[&Record]) -> Result<String, Failure> {
    let mut text = String::new();
    for record in best {
        if best.len() > 1 {
            text += &format!("{} ", record.workload.case);
        }
        text += &format!("{}\n", mapping_json(record)?);
    }
    Ok(text)
}

/// The mapping of a record as JSON.
///
/// # Errors
/// A bug: it can always be written.
pub fn mapping_json(record: &Record) -> Result<String, Failure> {
    serde_json::to_string(&record.parameters).map_err(|e| Failure::Refused(e.to_string()))
}

/// Maximum number of lines that are named.
const MOST_LINES: usize = 3;

/// Says which lines of a database are no records.
pub fn warn_of_damage(contents: &Contents, path: &Path) {
    for damaged in contents.damaged.iter().take(MOST_LINES) {
        let (line, reason) = (damaged.line, &damaged.reason);
        eprintln!(
            "warning: `{}`, line {line} is no record ({}); it is passed over",
            path.display(),
            shown(reason)
        );
    }
    let more = contents.damaged.len().saturating_sub(MOST_LINES);
    if more > 0 {
        eprintln!("warning: `{}`, {more} more lines are no records; they are passed over", path.display());
    }
}

/// The time of one cell a work-item for the same case on the same device, if it is known, in
/// seconds.
#[must_use]
pub fn single_cell_s(best: &Record, records: &[Record]) -> Option<f64> {
    let single =
        records.iter().filter(|r| r.is_beside(best)).filter(|r| r.parameters.get::<SingleCell>().is_some());
    single.filter_map(Record::median_s).min_by(f64::total_cmp)
}

fn percent(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), |x| format!("{:.0} %", 100.0 * x))
}

/// The best of each case.
#[must_use]
pub fn best_table(best: &[&Record], records: &[Record]) -> String {
    if best.is_empty() {
        return "no mapping has a time\n".into();
    }
    let rows = best.iter().filter_map(|r| {
        let median = r.median_s()?;
        Some([
            r.workload.case.clone(),
            r.parameters.to_string(),
            grouped(r.workload.size),
            median_and_energy(median, r),
            figure(r.flops_per_s()? / 1e9),
            figure(r.workload.results as f64 / median / 1e9),
            percent(r.of_table_roofline()),
            percent(r.of_true_roofline()),
            percent(r.shares().map(|shares| shares.executed.part)),
            single_cell_s(r, records).map_or_else(|| "-".into(), |s| format!("{:.2}", s / median)),
        ])
    });
    let devices: Vec<&str> = best.iter().map(|r| r.device.name.as_str()).collect();
    let mut names = devices.clone();
    names.dedup();
    let header = [
        "case",
        "best",
        "cells",
        "median",
        "GFLOP/s",
        "GDoF/s",
        "local tables",
        "of true",
        "executed",
        "faster",
    ];
    format!(
        "{}on {}\n{}",
        table(header, rows),
        if names.is_empty() { "no device".into() } else { names.join(", ") },
        above(best)
    )
}

/// What the columns of rooflines are of, and why some of them are above 100 %, each reason once.
fn above(best: &[&Record]) -> String {
    let mut text = String::from(
        "`local tables` and `of true` are of the operations as written, `executed` of `true` by those that ran\n",
    );
    let of = |name: &str, share: fn(&Shares) -> Share| {
        let shares = best.iter().filter_map(|r| r.shares());
        let why: BTreeSet<&str> = shares.filter_map(|shares| share(&shares).why_above).collect();
        let lines = why.into_iter().map(|why| format!("`{name}` above 100 %: {why}\n"));
        lines.collect::<String>()
    };
    text += &of("local tables", |s| s.tables);
    text += &of("of true", |s| s.useful);
    text += &of("executed", |s| s.executed);
    text
}

/// Every trial, the best of each case first, last those that do not have what is to be small.
#[must_use]
pub fn trials_table(records: &[Record], objective: Objective) -> String {
    if records.is_empty() {
        return "no trials\n".into();
    }
    let mut sorted: Vec<&Record> = records.iter().collect();
    let value = |r: &Record| objective.of(r).unwrap_or(f64::INFINITY);
    sorted.sort_by(|a, b| {
        let cases = (&a.workload.case, &a.device.name).cmp(&(&b.workload.case, &b.device.name));
        cases.then(value(a).total_cmp(&value(b)))
    });
    let rows = sorted.into_iter().map(|r| {
        let rank = r.rank.map_or_else(|| "-".into(), |n| n.to_string());
        let (time, spread, error, cost) = match &r.outcome {
            Outcome::Measured(m) => (
                median_and_energy(m.median_s, r),
                format!("{} – {}, {} runs", seconds(m.min_s), seconds(m.max_s), m.runs),
                format!("{:.1e}", m.errors.small.max(m.errors.measured)),
                m.resources.as_ref().map_or_else(|| "-".into(), ToString::to_string),
            ),
            Outcome::Refused(refusal) => ("-".into(), refusal.stage.to_string(), "-".into(), "-".into()),
        };
        [r.workload.case.clone(), r.parameters.to_string(), rank, time, spread, error, cost]
    });
    table(["case", "mapping", "rank", "median", "shortest – longest", "error", "resources"], rows)
}

fn refused_table(records: &[Record]) -> String {
    let rows = records.iter().filter_map(|r| match &r.outcome {
        Outcome::Refused(refusal) => {
            Some([r.workload.case.clone(), r.parameters.to_string(), first_line(refusal)])
        }
        Outcome::Measured(_) => None,
    });
    table(["case", "mapping", "reason"], rows)
}

/// Writes the pictures next to a database; says where.
///
/// # Errors
/// Figures that are not positive, a folder that cannot be written.
pub fn write_pictures(best: &[&Record], database: &Path) -> Result<String, Failure> {
    let dir = database.parent().unwrap_or(Path::new(""));
    let stem = database.file_stem().map_or_else(String::new, |s| format!("{}_", s.to_string_lossy()));
    pictures(best, dir, &stem)
}

fn pictures(best: &[&Record], dir: &Path, prefix: &str) -> Result<String, Failure> {
    let device = best.first().map_or("no device", |r| r.device.name.as_str());
    let title = format!("Operator actions on {device}");
    let refused = |e: kingpost::autotune::PlotError| Failure::Refused(e.to_string());
    let files = [
        ("bars.svg", bars_svg(&title, best).map_err(refused)?, "rates under their rooflines"),
        ("share.svg", share_svg(&title, best).map_err(refused)?, "cases over each fraction of the rooflines"),
    ];
    if !dir.as_os_str().is_empty() {
        std::fs::create_dir_all(dir).map_err(|e| Failure::of_write(dir, &e))?;
    }
    let mut said = String::new();
    for (name, content, what) in files {
        let path = dir.join(format!("{prefix}{name}"));
        files::write(&path, content).map_err(|e| Failure::of_write(&path, &e))?;
        said += &format!("wrote {} ({what})\n", path.display());
    }
    Ok(said)
}
