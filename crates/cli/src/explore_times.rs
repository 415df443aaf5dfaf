//! What a page of `kingpost explore` says of times: trials of a database, ceilings, registers.

use super::failure::Failure;
use super::print::resources_of;
use super::progress::Progress;
use super::results::warn_of_damage;
use super::space::find_device;
use kingpost::autotune::{Database, DeviceModel, Outcome};
use kingpost::codegen::Program;
use kingpost::explore::{Ceilings, Exploration, Performance, Times, Trial, Used, Work};
use kingpost::ir::Kernel;
use kingpost::kernel_work;
use kingpost::tuning::Record;
use std::path::Path;

/// The model of predictions where nothing else is said.
const DEVICE: &str = "h200";

/// Times and ceilings: of the device that is named, else of that of the fastest trial, else of an H200.
///
/// # Errors
/// A database that cannot be read; no such device.
pub fn performance(
    db: Option<&Path>,
    device: Option<&str>,
    kernel: &Kernel,
    explored: &Exploration,
) -> Result<Performance, Failure> {
    let mut records = db.map_or(Ok(Vec::new()), |path| {
        if !path.exists() {
            let path = path.display();
            return Err(Failure::Usage(format!("no database `{path}`; `kingpost tune --db FILE` makes one")));
        }
        let contents = Database::at(path).read()?;
        warn_of_damage(&contents, path);
        Ok(contents.records)
    })?;
    // of files the sizes follow
    let hash = kernel.content_hash();
    records.retain(|record: &Record| record.workload.kernel.split(' ').next() == Some(&*hash));
    let fastest = || {
        let time = |record: &&Record| record.median_s();
        let timed = records.iter().filter(|record| time(record).is_some());
        timed.min_by(|a, b| a.median_s().partial_cmp(&b.median_s()).unwrap_or(std::cmp::Ordering::Equal))
    };
    let model = match (device, fastest()) {
        (Some(name), _) => find_device(name, &Progress::new())?,
        (None, Some(record)) => record.device.clone(),
        (None, None) => find_device(DEVICE, &Progress::new())?,
    };
    records.retain(|record| record.device.name == model.name);
    let work = kernel_work(kernel, &explored.params).ok();
    Ok(Performance {
        work: work.map(|work| Work { flops: work.flops, dram_bytes: work.dram_bytes }),
        trials: records.iter().map(|record| trial(record, explored)).collect(),
        device: ceilings(&model),
    })
}

fn ceilings(model: &DeviceModel) -> Ceilings {
    Ceilings {
        name: model.name.clone(),
        dram_bytes_per_s: model.dram_bytes_per_s,
        fp64_flops_per_s: model.fp64_flops_per_s,
    }
}

fn trial(record: &Record, explored: &Exploration) -> Trial {
    let work = record.workload.work;
    let (measured, refused) = match &record.outcome {
        Outcome::Measured(m) => (Some(m), None),
        Outcome::Refused(refusal) => (None, Some(super::trials::first_line(refusal))),
    };
    let step = |m: &kingpost::autotune::Measurement| {
        explored.steps.iter().rposition(|state| state.refusal.is_none() && state.kernel.hash == m.kernel)
    };
    Trial {
        label: record.parameters.to_string(),
        case: format!("{} of size {}", record.workload.case, record.workload.size),
        step: measured.and_then(step),
        work: Work { flops: work.flops, dram_bytes: work.dram_bytes },
        executed_flops: measured.and_then(|m| m.executed_flops),
        predicted_s: record.predicted_s,
        times: measured.map(|m| Times { median_s: m.median_s, min_s: m.min_s, max_s: m.max_s, runs: m.runs }),
        resources: measured.and_then(|m| m.resources.as_ref()).map(ToString::to_string),
        refused,
    }
}

/// Registers and spills of a CUDA source.
///
/// # Errors
/// No compiler, or what it says against the source.
pub fn used(arch: &str, program: &Program) -> Result<Vec<Used>, String> {
    let all = resources_of(arch, program).map_err(|failure| failure.text())?;
    let used = |(entry, compiler, r): (String, String, kingpost::runtime::cuda::ptxas::Resources)| Used {
        text: format!("{arch}, {compiler}: {r}"),
        registers: r.registers,
        spilled: r.spill_stores + r.spill_loads,
        entry,
    };
    Ok(all.into_iter().map(used).collect())
}
