//! `kingpost stats`: what a kernel does, counted without running it.

use super::failure::Failure;
use super::out;
use super::source::{Source, SourceArgs};
use super::table::{figure, grouped, table};
use super::transform::TransformArgs;
use super::values::{ParamArg, missing, simplex, unit_mesh};
use clap::Args;
use kingpost::Problem;
use kingpost::analysis::stats::{
    AccessKind, BankTraffic, Formulas, Statistics, Traffic, VarFormulas, bank_traffic, formulas, statistics,
};
use kingpost::codegen::target::Execution;
use kingpost::codegen::{Note, Options, PlacedKernel, Synchronisation, Target, synchronisation};
use kingpost::forms::mesh::MeshCounts;
use kingpost::ir::{AddressSpace, AxisTag, Kernel, NamedOperator, VarKind};
use std::collections::BTreeMap;

/// Count operations, accesses and footprints of a kernel, exactly, without running it
///
/// Without --strategy, --mapping and --recipe it is the kernel as it is written. A figure marked ~
/// is an upper bound. Accesses to local memory are counted as wavefronts of 32 banks of 4 bytes, by
/// sub-groups of 32 work-items; conflicts are those beyond one for each part of a sub-group.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost stats laplace --degree 4 --cells 8
  kingpost stats matvec.kingpost --param n=1000 --param m=100
  kingpost stats matvec.kingpost --formula")]
pub struct StatsArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// Divisions of each side of the unit square or cube a form is put on
    #[arg(long, default_value_t = 4)]
    cells: usize,
    /// Value of a parameter of a file's kernel; repeat it for each
    #[arg(short, long, value_name = "NAME=VALUE")]
    param: Vec<ParamArg>,
    /// Print formulas in the parameters instead of numbers; [n >= 2] counts as 1 where it holds, else as 0
    #[arg(long, conflicts_with_all = ["param", "cells"])]
    formula: bool,
}

/// Runs the command.
pub fn run(args: &StatsArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    if args.formula {
        let kernel = match args.transform.is_given_for(&source) {
            true => args.transform.apply(&source, &*source.lower()?)?.kernel,
            false => source.kernel()?,
        };
        let counted = formula_text(&formulas(&kernel)?) + &waiting_text(&synchronisation(&kernel)?);
        return out(&(counted + &laws(&kernel)));
    }
    let (mut kernel, params, cells) = match &source {
        Source::Form(form) => {
            let counts = MeshCounts::unit(simplex(form.dim), args.cells);
            Problem::check_size(&form.lower()?, &counts.map_err(|e| Failure::Usage(e.to_string()))?)?;
            let mesh = unit_mesh(form.dim, args.cells)?;
            let cells = mesh.n_cells();
            let problem = Problem::operator(form.operator, form.degree, Some(form.scheme.into()), mesh, 1)?;
            (problem.lowered.kernel, problem.memory.params().clone(), Some(cells))
        }
        Source::File(file) => {
            let fixed = args.transform.fixed_params(&source, &ParamArg::collect(&args.param)?)?;
            (file.kernel.clone(), params_of(&args.param, &fixed, &file.kernel)?, None)
        }
    };
    if args.transform.is_given_for(&source) {
        kernel = args.transform.apply(&source, &*source.lower()?)?.kernel;
    }
    let banks = banks(&bank_traffic(&kernel, &params)?);
    let counted = text(&statistics(&kernel, &params)?, &params, cells);
    out(&(counted + &banks + &laws(&kernel) + &notes(&kernel)))
}

/// The laws of declared operators, and how they are known.
fn laws(kernel: &Kernel) -> String {
    let line = |operator: NamedOperator| {
        let laws: Vec<_> = operator.laws.iter().map(|law| law.name()).collect();
        let laws = if laws.is_empty() { "no laws".to_owned() } else { laws.join(", ") };
        format!("operator {}: {laws}: {}\n", operator.name(), operator.proof())
    };
    kernel.declared().operators.into_iter().map(line).collect()
}

/// What a reader of the code on a card would not expect of a kernel that is placed there. Where a
/// target refuses the kernel there is no code to speak of; `kingpost print` says why.
fn notes(kernel: &Kernel) -> String {
    let is_placed = |tag: AxisTag| match tag {
        AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) => true,
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Launch => false,
    };
    if !kernel.inames.values().any(|iname| is_placed(iname.tag)) {
        return String::new();
    }
    let mut found: BTreeMap<Note, Vec<String>> = BTreeMap::new();
    let on_device = |target: &&Target| target.description().execution == Execution::Device;
    for target in Target::ALL.iter().filter(on_device) {
        let code = PlacedKernel::new(kernel).and_then(|placed| placed.code(*target, &Options::default()));
        for note in code.map_or_else(|_| Vec::new(), |code| code.notes) {
            found.entry(note).or_default().push(target.to_string());
        }
    }
    let line = |(note, targets): (&Note, &Vec<String>)| format!("note ({}): {note}\n", targets.join(", "));
    found.iter().map(line).collect()
}

/// The values of all parameters.
fn params_of(
    given: &[ParamArg],
    fixed: &BTreeMap<String, i64>,
    kernel: &Kernel,
) -> Result<BTreeMap<String, i64>, Failure> {
    let params = ParamArg::of_kernel(given, fixed, kernel)?;
    let mut needed = kernel.vars.values().filter(|v| v.kind == VarKind::Param);
    match needed.find(|v| !params.contains_key(&v.name)) {
        Some(param) => Err(missing(&param.name)),
        None => Ok(params),
    }
}

fn text(stats: &Statistics, params: &BTreeMap<String, i64>, cells: Option<usize>) -> String {
    let values: Vec<String> = params.iter().map(|(name, v)| format!("{name} = {v}")).collect();
    let mut text = format!("parameters: {}\n", values.join(", "));
    let ops = stats.ops.iter().map(|o| {
        [o.kind.to_string(), o.ty.to_string(), grouped(o.count), grouped(o.kind.flops(o.ty) * o.count)]
    });
    text += &table(["operation", "type", "count", "FLOP"], ops);
    let count = |t: &Traffic| format!("{}{}", if t.exact { "" } else { "~" }, grouped(t.accesses));
    let distinct =
        |t: &Traffic| format!("{}{}", if t.footprint_exact { "" } else { "~" }, grouped(t.footprint));
    let vars = stats.vars.iter().map(|v| {
        let (reads, writes) = (count(&v.reads), count(&v.writes));
        let bytes = v.ty.bytes() * (v.reads.footprint + v.writes.footprint);
        let space = format!("{} {}", v.space.name(), v.ty);
        [v.name.clone(), space, reads, distinct(&v.reads), writes, distinct(&v.writes), grouped(bytes)]
    });
    let header =
        ["variable", "where", "reads", "distinct", "writes", "distinct", "bytes of distinct elements"];
    text += &table(header, vars);
    text += &format!("{} FLOP", grouped(stats.flops()));
    if let Some(cells) = cells {
        text += &format!(", {} a cell", figure(stats.flops() as f64 / cells as f64));
    }
    text += &format!("; {} instances\n", grouped(stats.instances()));
    text
}

/// The formulas, one a line: they are too long for columns.
fn formula_text(stats: &Formulas) -> String {
    let mut text = format!("FLOP: {}\n", stats.flops);
    for op in &stats.ops {
        text += &format!("{} {}: {}\n", op.kind, op.ty, op.count);
    }
    for var in &stats.vars {
        let VarFormulas { name, reads, writes, .. } = var;
        text += &format!("reads of {name}: {reads}\nwrites of {name}: {writes}\n");
    }
    for (name, instances) in &stats.insns {
        text += &format!("instances of {name}: {instances}\n");
    }
    text
}

/// Launches and barriers, as formulas; those of sub-groups if there are any.
fn waiting_text(found: &Synchronisation) -> String {
    let Synchronisation { launches, barriers, sub_group_barriers } = found;
    let of_sub_groups = match sub_group_barriers.to_string() {
        text if text == "0" || sub_group_barriers.formula.is_err() => String::new(),
        text => format!("barriers of sub-groups: {text}\n"),
    };
    format!("launches: {launches}\nbarriers: {barriers}\n{of_sub_groups}")
}

/// A table of the accesses to local memory, if there are any.
fn banks(traffic: &[BankTraffic]) -> String {
    if traffic.is_empty() {
        return String::new();
    }
    let rows = traffic.iter().map(|t| {
        let mark = if t.exact { "" } else { "~" };
        let kind = match t.kind {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
        };
        let [wavefronts, conflicts] = [t.wavefronts, t.conflicts].map(|n| format!("{mark}{}", grouped(n)));
        [t.insn.clone(), kind.into(), t.var.clone(), wavefronts, conflicts]
    });
    let header = ["instruction", "access", "in local memory", "wavefronts", "bank conflicts"];
    format!("{}{}\n", table(header, rows), bank_summary(traffic))
}

/// `120 bank conflicts in 2,400 wavefronts`.
fn bank_summary(traffic: &[BankTraffic]) -> String {
    let mark = if traffic.iter().all(|t| t.exact) { "" } else { "~" };
    let sum = |of: fn(&BankTraffic) -> u64| traffic.iter().map(of).fold(0_u64, u64::saturating_add);
    let (conflicts, wavefronts) = (sum(|t| t.conflicts), sum(|t| t.wavefronts));
    format!("{mark}{} bank conflicts in {mark}{} wavefronts", grouped(conflicts), grouped(wavefronts))
}

/// What a kernel asks of the banks of local memory, if it has any and work-items that share it; or
/// why that is not counted.
pub fn bank_line(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Option<String> {
    let is_shared = kernel.vars.values().any(|v| v.space == AddressSpace::Local)
        && kernel.inames.values().any(|i| matches!(i.tag, AxisTag::Local(_)));
    is_shared.then(|| match bank_traffic(kernel, params) {
        Ok(traffic) => bank_summary(&traffic),
        Err(why) => format!("bank conflicts are not counted: {why}"),
    })
}
