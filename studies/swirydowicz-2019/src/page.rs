//! The page of a device: every sequence of kernels beside the copy of the same bytes, as Markdown.

use crate::model::{Traffic, shared_bandwidth, shared_roofline};
use crate::problem::{Precision, Problem};
use crate::recipes::{Threads, Tuned};
use crate::record::{Outcome, Record};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A sequence of kernels at a number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence {
    /// The problem.
    pub problem: Problem,
    /// The arrangement of work-items.
    pub threads: Threads,
    /// Elements of a launch.
    pub elements: usize,
    /// The type of all real numbers.
    pub precision: Precision,
}

impl Sequence {
    /// Those that the records have.
    #[must_use]
    pub fn of(records: &[Record]) -> Vec<Self> {
        let sequence = |r: &Record| {
            let Tuned { problem, threads, .. } = r.tuned()?;
            Some(Self { problem, threads, elements: r.elements, precision: r.precision })
        };
        records.iter().filter_map(sequence).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The records that belong to it.
    #[must_use]
    pub fn records(self, records: &[Record]) -> Vec<&Record> {
        let mine = |r: &Record| {
            r.tuned().is_some_and(|k| (k.problem, k.threads) == (self.problem, self.threads))
                && (r.elements, r.precision) == (self.elements, self.precision)
        };
        records.iter().filter(|r| mine(r)).collect()
    }

    /// Its name, as a heading and in the names of pictures.
    #[must_use]
    pub fn title(self) -> String {
        let threads = match self.threads {
            Threads::Planes => "2-D threads",
            Threads::Cubes => "3-D threads",
            Threads::Host => "on a processor",
        };
        let problem = match self.problem {
            Problem::Bp10 => "BP1.0",
            Problem::Bp35 => "BP3.5",
            Problem::Bp30 => "BP3.0",
            Problem::Bp35Vertices => "BP3.5 from vertices",
        };
        let precision = match self.precision {
            Precision::Double => "",
            Precision::Single => ", single precision",
        };
        format!("{problem}, {threads}, {} elements{precision}", self.elements)
    }

    /// The name of its picture, without the ending.
    #[must_use]
    pub fn file(self) -> String {
        let threads = match self.threads {
            Threads::Planes => "2d",
            Threads::Cubes => "3d",
            Threads::Host => "c",
        };
        let precision = match self.precision {
            Precision::Double => "",
            Precision::Single => "_f32",
        };
        format!("{}_{threads}_{}{precision}", self.problem, self.elements)
    }
}

/// The tables of all sequences; `shared` are multiprocessors and clock in Hz of the device, for the
/// shared-memory roofline.
#[must_use]
pub fn page(records: &[Record], shared: Option<(u32, f64)>) -> String {
    let Some(first) = records.first() else { return "Nothing was measured.\n".into() };
    let mut text = format!("{} ({}, at most {} MHz).\n", first.device, first.driver, first.clock_mhz);
    for sequence in Sequence::of(records) {
        text += &section(sequence, &sequence.records(records), shared);
    }
    text
}

fn section(sequence: Sequence, records: &[&Record], shared: Option<(u32, f64)>) -> String {
    let mut text = format!("\n## {}\n\n", sequence.title());
    let kernels: BTreeSet<Tuned> = records.iter().filter_map(|r| r.tuned()).collect();
    let degrees: BTreeSet<usize> = records.iter().map(|r| r.degree).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "Part of the streaming roofline, equation (12); in the last columns the copy's rate and the best kernel's, GFLOP/s.\n"
    );
    let heads: Vec<String> = kernels.iter().map(|k| format!(" {} |", k.number)).collect();
    let _ = writeln!(text, "| N |{} copy | best | which |", heads.concat());
    let _ = writeln!(text, "|--:|{}--:|--:|--:|", "--:|".repeat(kernels.len()));
    for degree in degrees {
        let row: Vec<&Record> = records.iter().copied().filter(|r| r.degree == degree).collect();
        let of = |kernel: &Tuned| row.iter().find(|r| r.tuned() == Some(*kernel));
        let part = |r: &&Record| Some(r.flops_per_s()? / r.streaming()?);
        let cell = |k: &Tuned| of(k).and_then(part).map_or(" – |".into(), |p| format!(" {p:.2} |"));
        let cells: String = kernels.iter().map(cell).collect();
        let best = row
            .iter()
            .filter_map(|r| Some((r.flops_per_s()?, r.streaming()?, r.tuned()?.number)))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let end = best.map_or(" – | – | – |".into(), |(rate, copy, number)| {
            format!(" {:.0} | {:.0} | {number} |", copy / 1e9, rate / 1e9)
        });
        let _ = writeln!(text, "| {degree} |{cells}{end}");
    }
    text += "\n";
    for kernel in &kernels {
        let _ = writeln!(text, "{}. {}{}", kernel.number, kernel.idea(), bound(*kernel, records, shared));
    }
    text += &refusals(records);
    text
}

/// Where the shared-memory roofline is the lower one: the degrees.
fn bound(kernel: Tuned, records: &[&Record], shared: Option<(u32, f64)>) -> String {
    let Some((multiprocessors, clock_hz)) = shared else { return String::new() };
    let bandwidth = shared_bandwidth(multiprocessors, clock_hz);
    let below = records.iter().filter(|r| r.tuned() == Some(kernel) && r.shared_bytes > 0).filter(|r| {
        let moved = Traffic { read: r.shared_bytes, written: 0 };
        r.streaming().is_some_and(|s| shared_roofline(r.operations, moved, bandwidth) < s)
    });
    let degrees: Vec<String> = below.map(|r| r.degree.to_string()).collect();
    if degrees.is_empty() {
        return String::new();
    }
    format!(" (local memory bounds it, equation (13), at N = {})", degrees.join(", "))
}

/// Each reason once, with the kernels and degrees that it holds for.
fn refusals(records: &[&Record]) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for record in records {
        let Outcome::Refused(why) = &record.outcome else { continue };
        let place = format!("{} at N = {}", record.kernel, record.degree);
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, places)) => places.push(place),
            None => reasons.push((why, vec![place])),
        }
    }
    let lines = reasons.iter().map(|(why, places)| format!("- {}: {why}\n", places.join(", ")));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\nNot timed:\n\n{lines}") }
}
