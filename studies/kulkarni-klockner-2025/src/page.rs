//! The page of a device: every case beside its published time, as Markdown.

use crate::case::{Case, MalformedTable, PUBLISHED_MHZ, published_time};
use kingpost::tuning::Record;
use kingpost_cli::single_cell_s;
use std::fmt::Write as _;

/// A case with what was published about it.
struct Row<'r> {
    record: &'r Record,
    median_s: f64,
    single_cell_s: Option<f64>,
    trials: usize,
    refused: usize,
    /// Seconds; none if nothing was published for the case on this mesh.
    published_s: Option<f64>,
}

impl Row<'_> {
    /// How many times faster than published.
    fn ratio(&self) -> Option<f64> {
        self.published_s.map(|s| s / self.median_s)
    }

    /// The same if both cards ran at the same clock.
    fn ratio_at_equal_clocks(&self) -> Option<f64> {
        let mhz = f64::from(self.record.device.clock_mhz);
        self.ratio().filter(|_| mhz > 0.0).map(|r| r * PUBLISHED_MHZ / mhz)
    }
}

fn rows<'r>(best: &[&'r Record], records: &[Record]) -> Result<Vec<Row<'r>>, MalformedTable> {
    let mut rows = Vec::new();
    for record in best {
        let Some(median_s) = record.median_s() else { continue };
        let found = match record.workload.case.parse::<Case>() {
            Ok(case) => published_time(case)?,
            Err(_) => None, // not a published case
        };
        let published_s = found.filter(|p| p.cells == record.workload.size).map(|p| p.seconds);
        let tried: Vec<_> = records.iter().filter(|r| r.is_beside(record)).collect();
        let refused = tried.iter().filter(|r| r.measurement().is_none()).count();
        let single_cell_s = single_cell_s(record, records);
        rows.push(Row { record, median_s, single_cell_s, trials: tried.len(), refused, published_s });
    }
    Ok(rows)
}

/// Summary and table of the best record of each case; `records` are all trials.
///
/// # Errors
/// A table of published figures that cannot be read.
pub fn page(best: &[&Record], records: &[Record]) -> Result<String, MalformedTable> {
    let rows = rows(best, records)?;
    let mut text = summary(&rows);
    text += "| case | mapping | median µs | min–max µs | GFLOP/s | GDoF/s | with tables in local memory | of DRAM and FP64 \
             | single cell µs | published µs | published / ours | at equal clocks | setup ms (MB) | trials (without a time) |\n\
             |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in &rows {
        text += &line(row);
    }
    Ok(text)
}

fn summary(rows: &[Row<'_>]) -> String {
    let Some(first) = rows.first().map(|r| &r.record.device) else { return "Nothing was measured.\n".into() };
    let count = |f: &dyn Fn(&Row<'_>) -> bool| rows.iter().filter(|r| f(r)).count();
    let at_least = |part: Option<f64>, limit: f64| part.is_some_and(|p| p >= limit);
    let published = count(&|r| r.published_s.is_some());
    let mut text = format!(
        "{} cases on {} ({}, at most {} MHz; DRAM {:.0} GB/s, {}FP64 {:.0} GFLOP/s, measured). {} reach half of the \
         roofline with tables in local memory, {} half of that of DRAM and FP64 alone.",
        rows.len(),
        first.name,
        first.description,
        first.clock_mhz,
        first.dram_bytes_per_s / 1e9,
        first.local_bytes_per_s.map_or_else(String::new, |b| format!("local memory {:.0} GB/s, ", b / 1e9)),
        first.fp64_flops_per_s / 1e9,
        count(&|r| at_least(r.record.of_table_roofline(), 0.5)),
        count(&|r| at_least(r.record.of_true_roofline(), 0.5)),
    );
    if published > 0 {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " Of {published} with a published time for the H200 NVL, {} are not slower, {} not slower at equal clocks \
             (its {PUBLISHED_MHZ} MHz).",
            count(&|r| at_least(r.ratio(), 1.0)),
            count(&|r| at_least(r.ratio_at_equal_clocks(), 1.0)),
        );
    }
    text + "\n\n"
}

/// Table of the best record of each case beside the best one of the same case on another mesh, such as
/// the unit mesh.
#[must_use]
pub fn beside_page(best: &[&Record], others: &[&Record]) -> String {
    let mut text = String::from(
        "| case | mapping | median µs | GDoF/s | GDoF/s beside | rate / beside | GFLOP/s | executed GFLOP/s \
         | registers (bytes spilled) | largest error |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for r in best {
        let Some(m) = r.measurement() else { continue };
        let none = || "–".to_owned();
        let rate = r.workload.results as f64 / m.median_s / 1e9;
        let other = others.iter().find(|o| o.workload.case == r.workload.case);
        let other = other.and_then(|o| Some(o.workload.results as f64 / o.median_s()? / 1e9));
        let executed = m.executed_flops.map(|flops| flops as f64 / m.median_s / 1e9);
        let registers = m.resources.as_ref().map(|r| format!("{} ({})", r.registers, r.spill_stores));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {rate:.2} | {} | {} | {:.0} | {} | {} | {:.1e} |",
            r.workload.case,
            labelled(r),
            m.median_s * 1e6,
            other.map_or_else(none, |o| format!("{o:.2}")),
            other.map_or_else(none, |o| format!("{:.2}", rate / o)),
            r.flops_per_s().unwrap_or(f64::NAN) / 1e9,
            executed.map_or_else(none, |e| format!("{e:.0}")),
            registers.unwrap_or_else(none),
            m.errors.small.max(m.errors.measured),
        );
    }
    text
}

/// The mapping, and the order of degrees of freedom if it is not that of first touch.
fn labelled(record: &Record) -> String {
    let order = record.workload.numbering.as_ref();
    order.map_or_else(
        || record.parameters.to_string(),
        |order| format!("{}, numbered {order}", record.parameters),
    )
}

fn line(row: &Row<'_>) -> String {
    let r = row.record;
    let micros = |s: f64| format!("{:.1}", s * 1e6);
    let none = || "–".to_owned();
    let percent = |x: Option<f64>| x.map_or_else(none, |x| format!("{:.0} %", 100.0 * x));
    let times = |x: Option<f64>| x.map_or_else(none, |x| format!("{x:.2}"));
    let span = r.measurement().map_or_else(none, |m| format!("{}–{}", micros(m.min_s), micros(m.max_s)));
    // computed once for a mesh, by the host and the device
    let setup = r
        .measurement()
        .and_then(|m| m.setup)
        .map_or_else(none, |s| format!("{:.0} ({:.0})", s.seconds * 1e3, s.bytes as f64 / 1e6));
    format!(
        "| {} | {} | {} | {span} | {:.0} | {:.2} | {} | {} | {} | {} | {} | {} | {setup} | {} ({}) |\n",
        r.workload.case,
        labelled(r),
        micros(row.median_s),
        r.flops_per_s().unwrap_or(f64::NAN) / 1e9,
        r.workload.results as f64 / row.median_s / 1e9,
        percent(r.of_table_roofline()),
        percent(r.of_true_roofline()),
        row.single_cell_s.map_or_else(none, micros),
        row.published_s.map_or_else(none, micros),
        times(row.ratio()),
        times(row.ratio_at_equal_clocks()),
        row.trials,
        row.refused,
    )
}
