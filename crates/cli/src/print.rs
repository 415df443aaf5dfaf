//! `kingpost print`: the kernel as text, or its source for a target.

use super::failure::Failure;
use super::out;
use super::source::{Source, SourceArgs};
use super::table::seconds;
use super::transform::TransformArgs;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use kingpost::analysis::Analysis;
use kingpost::analysis::inside::Reach;
use kingpost::codegen::{
    ArgKind, HostExpr, HostStep, LaunchPlan, Options, PlacedKernel, Program, Sequence, Target, TensorMap,
    generate, pass_named, passes,
};
use kingpost::forms::CellKernel;
use kingpost::forms::element::Nodes;
use kingpost::ir::Kernel;
use kingpost::ir::text::{PrintOptions, TableStyle, print_with};
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::cuda::ptxas::Resources;
use kingpost::runtime::hip::{self, HipResources};
use kingpost::runtime::{Cache, Optimisation};
use kingpost::tuning::architecture;
use kingpost::tuning::known::{Known, first};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::LazyLock;
use std::time::Instant;

/// Print a kernel as text, or the source generated from it
///
/// The same kernel always gives the same bytes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost print laplace --dim 3 --degree 4 --target cuda      CUDA source, one cell a work-item
  kingpost print mass --dim 2 --strategy none > mass.kingpost    a loop program to edit
  kingpost print mass.kingpost --target c --plan               its C source, and how it is launched
  kingpost print mass.kingpost --target c --after tidy           its code after a pass
  kingpost print mass.kingpost --target c --passes               what each pass does to its code")]
pub struct PrintArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// What to print
    #[arg(long, value_enum, default_value_t = PrintTarget(None))]
    target: PrintTarget,
    /// Also print the launch plan, as comments: arguments, grid, work-group, memory, device
    /// features
    #[arg(long)]
    plan: bool,
    /// With --target hip: map a form as is predicted to be the fastest on this processor, by its
    /// matrix instructions where these pay, instead of one cell a work-item
    #[arg(long, value_name = "ARCH", value_parser = PossibleValuesParser::new(architecture::processors()),
        conflicts_with_all = ["strategy", "mapping", "recipe"])]
    arch: Option<String>,
    /// With --target cuda or hip: also compile for an architecture (sm_90, and that of --arch or
    /// gfx942 if none is named), and print registers, spills and local memory as a comment; needs
    /// no card
    #[arg(long, value_name = "ARCH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    resources: Option<String>,
    /// Round each operation: OpenCL's source says so by a pragma; what other compilers are told is
    /// part of the plan
    #[arg(long)]
    no_contraction: bool,
    /// Print the code after this pass of code generation; it need not compile before the last one
    #[arg(long, value_name = "PASS", value_parser = pass_names(), conflicts_with_all = ["plan", "passes"])]
    after: Option<String>,
    /// Print what each pass of code generation does, and the code after it where it changes
    /// something
    #[arg(long, conflicts_with = "plan")]
    passes: bool,
    /// Print all kernels of an exported form, one after the other; it is read once
    #[arg(long)]
    all_kernels: bool,
    /// Print every value of the tables of a kernel, even on a terminal
    #[arg(long, conflicts_with = "short_tables")]
    full_tables: bool,
    /// Abridge the tables of a kernel, even into a file; such a text cannot be parsed back
    #[arg(long)]
    short_tables: bool,
    /// Say on standard error how long lowering, the mapping and code generation take
    #[arg(long)]
    time: bool,
}

/// A target, or none: the kernel's own text.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PrintTarget(Option<Target>);

impl ValueEnum for PrintTarget {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<PrintTarget>> = LazyLock::new(|| {
            [None].into_iter().chain(Target::ALL.iter().copied().map(Some)).map(PrintTarget).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0.map(Target::description) {
            None => PossibleValue::new("kernel").help("The kernel's own text, which parses back"),
            Some(target) => PossibleValue::new(target.name).help(target.summary),
        })
    }
}

/// The targets, as `a, b or c`.
fn targets() -> String {
    let names: Vec<String> = Target::ALL.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Runs the command.
pub fn run(args: &PrintArgs) -> Result<(), Failure> {
    let mut source = args.source.source()?;
    if !args.all_kernels {
        return print(args, &source);
    }
    (0..source.kernels()).try_for_each(|place| {
        source.select(place);
        print(args, &source)
    })
}

fn print(args: &PrintArgs, source: &Source) -> Result<(), Failure> {
    let start = Instant::now();
    let form = source.lower()?;
    let lowered = start.elapsed();
    let (kernel, chosen) = match &args.arch {
        Some(arch) => args.mapped_for(arch, source, &*form)?,
        None => (args.transform.apply(source, &*form)?.kernel, String::new()),
    };
    let mapped = start.elapsed();
    let PrintTarget(target) = args.target;
    if args.time && (target.is_none() || args.passes || args.after.is_some()) {
        return Err(Failure::Usage(format!("--time is for --target {}", targets())));
    }
    if args.resources.is_some() && !matches!(target, Some(Target::Cuda | Target::Hip)) {
        return Err(Failure::Usage("--resources is for --target cuda or hip".into()));
    }
    let Some(target) = target else {
        if args.passes || args.after.is_some() {
            let targets = targets();
            return Err(Failure::Usage(format!("passes are of a target's code; add --target {targets}")));
        }
        let short = args.short_tables || (std::io::stdout().is_terminal() && !args.full_tables);
        return out(&kernel_text(&kernel, short));
    };
    let options = Options::default().with_contraction(!args.no_contraction);
    if args.passes {
        return out(&after_each_pass(&kernel, target, &options)?);
    }
    if let Some(pass) = args.after.as_deref().and_then(pass_named) {
        return out(&PlacedKernel::new(&kernel)?.source_after(target, &options, pass)?);
    }
    let program = generate(&kernel, target, &options)?;
    if args.time {
        let generated = start.elapsed();
        let [map, generate] = [mapped - lowered, generated - mapped].map(|d| seconds(d.as_secs_f64()));
        let (lower, all) = (seconds(lowered.as_secs_f64()), seconds(generated.as_secs_f64()));
        eprintln!("lowering {lower}, mapping {map}, code generation {generate}; {all} in all");
    }
    let arch = args.resources.as_deref().map(|named| match &args.arch {
        Some(arch) if named.is_empty() => arch,
        Some(_) | None => named,
    });
    let resources = arch.map(|arch| resources_text(arch, &program)).transpose();
    let plan = if args.plan { plan_text(&kernel, &program, &source.nodes()?) } else { notes_text(&program) };
    // without a compiler the rest is there
    let text = resources.as_ref().map_or("", |text| text.as_deref().unwrap_or_default());
    out(&format!("{chosen}{text}{plan}{}", program.source))?;
    resources.map(|_| ())
}

impl PrintArgs {
    /// The kernel under the first mapping that is known for a processor and that the form takes,
    /// and a comment that names it.
    fn mapped_for(
        &self,
        arch: &str,
        source: &Source,
        form: &dyn CellKernel,
    ) -> Result<(Kernel, String), Failure> {
        if self.target.0 != Some(Target::Hip) {
            return Err(Failure::Usage("--arch is for --target hip".into()));
        }
        if self.transform.is_given_for(source) {
            return Err(Failure::Usage("--arch maps a form; a file with a schedule has its own".into()));
        }
        self.transform.refuse_holes()?;
        let case = match source {
            Source::Form(of) => {
                let name = of.operator.action_name(of.dim, of.degree);
                Some(architecture::large_case(name, of.lower()?)?)
            }
            Source::File(_) => None,
        };
        let known = architecture::for_processor(form, case.as_ref(), arch);
        let known = known.map_err(|e| Failure::Refused(e.to_string()))?;
        let attempt = |known: &Known| kingpost::transform(form, &known.mapping);
        let (Known { mapping, source }, (kernel, _)) = first(known, attempt)?;
        Ok((kernel, format!("// {arch}: {mapping} ({source})\n")))
    }
}

/// What the compiler reports of each function of a program: its name, the compiler's, and the figures.
pub fn resources_of(arch: &str, program: &Program) -> Result<Vec<(String, String, Resources)>, Failure> {
    let object = nvrtc::compile_program(arch, program, Optimisation::Full, &Cache::from_environment())?;
    let entries: Vec<&String> = match &program.launches {
        Some(sequence) => sequence.entries.iter().map(|entry| &entry.name).collect(),
        None => vec![&program.entry],
    };
    let of = |entry: &String| {
        let resources = object.resources.iter().find(|r| r.entry == *entry).cloned().ok_or_else(|| {
            let (compiler, log) = (&object.compiler, &object.log);
            Failure::Compiler(format!("{compiler} does not report registers: {log}"))
        })?;
        Ok((entry.clone(), object.compiler.to_string(), resources))
    };
    entries.into_iter().map(of).collect()
}

/// The same as a comment.
fn resources_text(arch: &str, program: &Program) -> Result<String, Failure> {
    let mut text = String::new();
    let all: Vec<[String; 4]> = if program.target == Target::Hip {
        let arch = if arch.is_empty() { "gfx942" } else { arch };
        let object = hip::compile_program(arch, program, &Cache::from_environment())?;
        let of = |r: &HipResources| [arch.into(), r.entry.clone(), object.compiler.clone(), r.to_string()];
        object.resources.iter().map(of).collect()
    } else {
        let arch = if arch.is_empty() { "sm_90" } else { arch };
        let all = resources_of(arch, program)?.into_iter();
        all.map(|(entry, compiler, found)| [arch.into(), entry, compiler, found.to_string()]).collect()
    };
    for [arch, entry, compiler, resources] in &all {
        let of = if all.len() > 1 { format!(" `{entry}`") } else { String::new() };
        let _ = writeln!(text, "// {arch}, {compiler}{of}: {resources}");
    }
    Ok(text)
}

/// The names of the passes, with what they do.
fn pass_names() -> PossibleValuesParser {
    let names = passes().iter().map(|p| PossibleValue::new(p.name).help(p.summary));
    PossibleValuesParser::new(names)
}

/// Each pass, and the code after it if it is other than before.
fn after_each_pass(kernel: &Kernel, target: Target, options: &Options) -> Result<String, Failure> {
    let placed = PlacedKernel::new(kernel)?;
    let (mut text, mut before) = (String::new(), String::new());
    for pass in passes() {
        let code = placed.source_after(target, options, pass)?;
        text += &format!("// {}: {}\n// ({})\n\n", pass.name, pass.summary, pass.place);
        text += if code == before { "// unchanged\n" } else { &code };
        text += "\n";
        before = code;
    }
    Ok(text)
}

/// The text of a kernel, tables abridged or in full.
pub fn kernel_text(kernel: &Kernel, short: bool) -> String {
    let tables = if short { TableStyle::Abridged } else { TableStyle::Full };
    print_with(kernel, PrintOptions { tables })
}

/// The launch plan as comments.
fn plan_text(kernel: &Kernel, program: &Program, nodes: &[Nodes]) -> String {
    let plan = &program.plan;
    let mut text = format!("// entry `{}`\n", program.entry);
    for arg in &plan.args {
        let kind = match &arg.kind {
            ArgKind::Param => "parameter".to_owned(),
            ArgKind::Scalar => "scalar".to_owned(),
            ArgKind::Buffer { len, access } => format!("buffer of {len} elements, {access:?}").to_lowercase(),
            ArgKind::Table(data) => format!("table of {} constants", data.len()),
            ArgKind::Scratch { len, zeroed } => {
                let first = if *zeroed { ", zero before the first launch" } else { "" };
                format!("scratch memory of {len} elements{first}")
            }
        };
        let at = if arg.aligned > arg.ty.bytes() {
            format!(", at a multiple of {} bytes", arg.aligned)
        } else {
            String::new()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "//   {}: {} {kind}{at}", arg.name, arg.ty);
    }
    for TensorMap { name, array, extents, strides, sides, is_swizzled, .. } in &plan.maps {
        let list = |all: &[HostExpr]| all.iter().map(HostExpr::to_string).collect::<Vec<_>>().join(", ");
        let sides: Vec<String> = sides.iter().map(u64::to_string).collect();
        let swizzled = if *is_swizzled { ", rows swizzled" } else { "" };
        let _ = writeln!(
            text,
            "//   {name}: map of {array} with extents [{}], strides [{}], boxes of {}{swizzled}",
            list(extents),
            list(strides),
            sides.join(" x ")
        );
    }
    match &program.launches {
        None => text += &groups_text(plan),
        Some(sequence) => launches_text(&sequence.steps, sequence, 0, &mut text),
    }
    let given = match plan.dynamic_local_bytes {
        0 => String::new(),
        bytes => format!(", of which the launch gives {bytes}"),
    };
    let _ = writeln!(text, "// {} bytes of local memory{given}", plan.local_bytes);
    let _ = writeln!(text, "// features {:?}", plan.features);
    if let Some(option) = program.contraction_option() {
        let _ = writeln!(text, "// compile with {option}");
    }
    if program.target == Target::C && program.repeated_writes {
        let _ = writeln!(text, "// compile with -fno-predictive-commoning");
    }
    for nodes in nodes {
        let _ = writeln!(text, "// nodes: {nodes}");
    }
    for condition in &plan.preconditions {
        let _ = writeln!(text, "// needs {}", condition.text);
    }
    for access in Analysis::of(kernel).accesses() {
        if let Reach::Open(cause) = access.reach {
            let insn = &kernel.insns[access.insn].name;
            let _ =
                writeln!(text, "// `{insn}` is left to `kingpost run --check` at {}: {cause}", access.access);
        }
    }
    text + &notes_text(program) + "\n"
}

/// Work-groups and work-items of a launch, as a comment.
fn groups_text(plan: &LaunchPlan) -> String {
    let ([g0, g1, g2], [l0, l1, l2]) = (&plan.grid, &plan.block);
    format!("// grid {g0}, {g1}, {g2} of work-groups of {l0} x {l1} x {l2} work-items\n")
}

/// What the host does, as comments.
fn launches_text(steps: &[HostStep], sequence: &Sequence, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for step in steps {
        match step {
            HostStep::Launch(k) => {
                let entry = &sequence.entries[*k];
                let groups = groups_text(&entry.plan);
                let _ = write!(text, "// {indent}launch `{}`: {}", entry.name, &groups["// ".len()..]);
            }
            HostStep::For { name, lower, upper, body } => {
                let _ = writeln!(text, "// {indent}for {name} in {lower}..{upper}");
                launches_text(body, sequence, depth + 1, text);
            }
        }
    }
}

/// What a reader of the code would not expect, as comments.
fn notes_text(program: &Program) -> String {
    program.plan.notes.iter().map(|note| format!("// note: {note}\n")).collect()
}
