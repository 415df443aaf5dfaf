//! The tables of a page.

use crate::DIVISIONS;
use crate::Order;
use crate::published::{A100, A100_GB_S, H200_GB_S, V100_GB_S, best_of_v100, v100};
use crate::record::{Assembled, Free, Scaled, SetUp, Solved};
use kingpost::solve::{AssemblyStrategy, PreconditionerKind};
use std::fmt::Write as _;

/// The number of a uniform mesh of the publication, or its divisions.
fn mesh(divisions: usize) -> String {
    let number = DIVISIONS.iter().position(|d| *d == divisions);
    number.map_or_else(|| format!("{divisions}³"), |k| (k + 1).to_string())
}

/// A mesh, and its order unless it is as it was made.
fn mesh_in_order(file: Option<&str>, divisions: usize, order: Order) -> String {
    let mesh = file.map_or_else(|| mesh(divisions), str::to_owned);
    if order.is_made() { mesh } else { format!("{mesh}, {order}") }
}

/// A table for each degree: the fastest mapping of each strategy on each mesh.
#[must_use]
pub fn assembly_tables(records: &[Assembled]) -> String {
    let mut degrees: Vec<usize> = records.iter().map(|r| r.degree).collect();
    degrees.sort_unstable();
    degrees.dedup();
    degrees.into_iter().map(|degree| table(records, degree)).collect()
}

fn table(records: &[Assembled], degree: usize) -> String {
    let mut text = format!("## P{degree}\n\n");
    text += "| mesh | unknowns | strategy | mapping | ms | Mdof/s | GB/s | V100, mesh 3 | the same a GB/s | \
             setup | resources |\n|--:|--:|---|---|--:|--:|--:|--:|--:|--:|---|\n";
    let of: Vec<&Assembled> = records.iter().filter(|r| r.degree == degree).collect();
    let key = |r: &Assembled| (r.file.clone(), r.divisions, r.order as u8);
    let mut meshes: Vec<_> = of.iter().map(|r| key(r)).collect();
    meshes.sort_unstable();
    meshes.dedup();
    // as strategies go, and what is decided of one as it was measured
    let place = |name: &str| {
        let of = |strategy: AssemblyStrategy| name.split(':').next() == Some(&*strategy.to_string());
        AssemblyStrategy::ALL.into_iter().position(of)
    };
    let mut strategies: Vec<&String> = of.iter().map(|r| &r.strategy).collect();
    strategies.sort_by_key(|name| (place(name), *name));
    strategies.dedup();
    for of_mesh in &meshes {
        for strategy in &strategies {
            let on_mesh = of.iter().filter(|r| key(r) == *of_mesh);
            let same = on_mesh.filter(|r| r.strategy == **strategy);
            let Some(r) = same.min_by(|a, b| a.median_s.total_cmp(&b.median_s)) else { continue };
            let published = v100(&r.strategy, degree).map_or_else(|| "–".into(), |p| format!("{p:.1}"));
            let ratio = best_of_v100(degree)
                .map_or_else(|| "–".into(), |p| format!("{:.2}", r.rate() / H200_GB_S / (p / V100_GB_S)));
            let _ = writeln!(
                text,
                "| {} | {} | {strategy} | `{}` | {:.3} | {:.0} | {:.0} | {published} | {ratio} | {:.1} s | {} |",
                mesh_in_order(r.file.as_deref(), r.divisions, r.order),
                kingpost_cli::grouped(r.unknowns as u64),
                r.mapping,
                r.median_s * 1e3,
                r.rate(),
                r.bandwidth(),
                r.setup_s,
                r.resources.as_deref().unwrap_or("–"),
            );
        }
    }
    text + "\n"
}

/// Setups on the host beside those on a device; nothing if there are none.
#[must_use]
pub fn setup_table(records: &[SetUp]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## Setup\n\n\
         | degree | mesh | unknowns | cells | entries | host, pattern and places | host, cells by unknown | \
         device | with uploads | host over that |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let grouped = |n: usize| kingpost_cli::grouped(n as u64);
    for r in records {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.0} ms | {:.0} ms | {:.1} ms | {:.1} ms | {:.1} |",
            r.degree,
            mesh_in_order(r.file.as_deref(), r.divisions, r.order),
            grouped(r.unknowns),
            grouped(r.cells),
            grouped(r.entries),
            r.host_pattern_s * 1e3,
            r.host_terms_s * 1e3,
            r.device_s * 1e3,
            r.wall_s * 1e3,
            (r.host_pattern_s + r.host_terms_s) / r.wall_s,
        );
    }
    text + "\n"
}

/// Conjugate gradients with a matrix beside those without one.
#[must_use]
pub fn free_table(records: &[Free]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## With a matrix and without one\n\n\
         | degree | divisions | unknowns | entries a row | product, matrix | product, action | \
         iteration, matrix | iteration, action | the matrix takes | action |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for r in records {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {:.3} ms | {:.3} ms | {:.3} ms | {:.3} ms | {:.2} times | `{}` |",
            r.degree,
            r.divisions,
            kingpost_cli::grouped(r.unknowns as u64),
            r.entries as f64 / r.unknowns as f64,
            r.matrix_product_s * 1e3,
            r.free_product_s * 1e3,
            r.matrix_iteration_s * 1e3,
            r.free_iteration_s * 1e3,
            r.matrix_iteration_s / r.free_iteration_s,
            r.mappings.join("`, `"),
        );
    }
    text + "\n"
}

/// Solves on several devices beside those on one: strong scaling, and weak scaling where one device
/// has a record with as many unknowns a device, up to a twentieth. Nothing if there are none.
#[must_use]
pub fn scaling_table(records: &[Scaled]) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## Several devices\n\n\
         | degree | divisions | unknowns | devices | exchange | overlap | ghosts a part | KB a product | \
         iterations | solve | an iteration | Mdof/s/it | of one device | strong | weak | difference | setup | \
         bytes to the devices | back |\n\
         |--:|--:|--:|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let alone = |degree: usize| records.iter().filter(move |r| r.devices == 1 && r.degree == degree);
    for r in records {
        let same = alone(r.degree).find(|one| one.divisions == r.divisions && one.exchange.is_none());
        let speed = same.map(|one| one.iteration_s() / r.iteration_s());
        let as_large = |one: &&Scaled| {
            let ratio = (one.unknowns * r.devices) as f64 / r.unknowns as f64;
            one.exchange.is_none() && (ratio - 1.0).abs() < 0.05
        };
        let weak = alone(r.degree).find(as_large).map(|one| {
            let work = (one.unknowns * r.devices) as f64 / r.unknowns as f64;
            one.iteration_s() / r.iteration_s() / work
        });
        let part = |text: Option<String>| text.filter(|_| r.devices > 1).unwrap_or_else(|| "–".into());
        let percent = |x: f64| format!("{:.0} %", 100.0 * x);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {:.0} | {} | {:.3} s | {:.1} µs | {:.0} | {} | {} | {} | \
             {:.0e} | {:.1} s | {} | {} |",
            r.degree,
            r.divisions,
            kingpost_cli::grouped(r.unknowns as u64),
            r.devices,
            r.exchange.as_deref().unwrap_or("–"),
            if r.overlaps { "yes" } else { "no" },
            r.parts.iter().map(|part| part[1]).max().unwrap_or(0),
            r.halo_bytes as f64 * 1e-3,
            r.iterations,
            r.solve_s,
            r.iteration_s() * 1e6,
            r.unknowns as f64 / r.iteration_s() * 1e-6,
            speed.map_or_else(|| "–".into(), |x| format!("{x:.2}")),
            part(speed.map(|x| percent(x / r.devices as f64))),
            part(weak.map(percent)),
            r.error,
            r.setup_s,
            r.to_device,
            r.to_host,
        );
    }
    text + "\n"
}

/// The Newton solves beside those of the publication, a table for each problem; nothing if there
/// are none.
#[must_use]
pub fn newton_tables(records: &[Solved]) -> String {
    let mut problems: Vec<&str> = Vec::new();
    for r in records {
        if !problems.contains(&r.question.problem.as_str()) {
            problems.push(&r.question.problem);
        }
    }
    problems.into_iter().map(|problem| newton_table(problem, records)).collect()
}

fn newton_table(problem: &str, records: &[Solved]) -> String {
    let mut text = format!("## Newton solves of `{problem}`\n\n");
    text += "| mesh | unknowns | strategy | residual | Newton | assembly | Mdof/s/it | A100 | a GB/s | \
             CG iterations | A100 | of them | solve | Mdof/s/it | A100 | a GB/s | setup | bytes to the device |\n\
             |--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for r in records.iter().filter(|r| r.question.problem == problem) {
        let known = DIVISIONS.iter().position(|d| *d == r.divisions).and_then(|k| A100.get(k));
        let theirs = |f: &dyn Fn(&crate::published::A100) -> String| known.map_or_else(|| "–".into(), f);
        let load_steps = r.loads.chunk_by(|one, next| one == next).count();
        let newton = match r.converged {
            true if load_steps > 1 => format!("{} in {load_steps} load steps", r.updates.len()),
            true => r.updates.len().to_string(),
            false => format!("{} ({})", r.updates.len(), r.reason),
        };
        let scale = A100_GB_S / H200_GB_S;
        let lifted = if r.question.lifts { "" } else { ", no lifting" };
        let judged =
            if r.question.norm == "plain" { String::new() } else { format!(", {}", r.question.norm) };
        let usual = r.question.preconditioner == PreconditionerKind::Jacobi.to_string();
        let around = if usual { String::new() } else { format!(", {}", r.question.preconditioner) };
        let made = r.preconditioner_s.map_or_else(String::new, |s| format!(" and {s:.1} s for hierarchies"));
        let _ = writeln!(
            text,
            "| {} | {} | {}{around} | {:.1e}{judged}{lifted} | {newton} | {:.3} s | {:.1} | {} | {} | {} | {} | {} | \
             {:.2} s{made} | {:.0} | {} | {} | {:.1} s | {} |",
            mesh(r.divisions),
            kingpost_cli::grouped(r.unknowns as u64),
            r.strategy,
            r.question.relative,
            r.assembly_s,
            r.assembly_rate(),
            theirs(&|p| format!("{:.1}", p.assembly_rate)),
            theirs(&|p| format!("{:.2}", r.assembly_rate() * scale / p.assembly_rate)),
            r.iterations(),
            theirs(&|p| format!("{} ({} Newton)", p.linear, p.newton)),
            theirs(&|p| format!("{:.1} %", 100.0 * r.iterations() as f64 / p.linear as f64)),
            r.linear_s,
            r.linear_rate(),
            theirs(&|p| format!("{:.0}", p.linear_rate)),
            theirs(&|p| format!("{:.2}", r.linear_rate() * scale / p.linear_rate)),
            r.setup_s,
            r.to_device,
        );
    }
    text + "\n"
}
