//! `kingpost run` on a `.kingpost` file: random inputs, compared with the interpreter.

use super::blame::{Accused, Blame};
use super::default_mapping::choose;
use super::failure::Failure;
use super::imported::imported_inputs;
use super::inputs::{Inputs, Wanted, index_bound, inputs};
use super::out;
use super::progress::Progress;
use super::report::Measured;
use super::run_args::{RunArgs, check_alone, load};
use super::source::Source;
use super::table::{facts, figure, grouped, seconds, stored};
use super::transform::Transformed;
use kingpost::codegen::{HostExpr, Program, Target};
use kingpost::files;
use kingpost::interp::{InterpError, Memory};
use kingpost::ir::{Kernel, VarId, VarKind};
use kingpost::judge::{Comparison, Expected, STEPS, results, with_tables};
use kingpost::runtime::{Device, TimingOptions};
use kingpost::tuning::known::Sought;
use kingpost::{Loaded, kernel_work, set_up_with};
use std::path::Path;

/// Runs the command on a file.
pub fn run(args: &RunArgs, source: &Source) -> Result<(), Failure> {
    let Source::File(file) = source else { return Ok(()) };
    let (kernel, seed) = (&*file.kernel.scalar_form(), args.seed());
    let arrays = args.arrays()?;
    let wanted = args.inputs.wanted(args.transform.fixed_params(source, &args.inputs.given()?)?);
    let Inputs { memory, origin, order } = match &file.form {
        Some(of) => imported_inputs(&wanted, of, seed)?,
        None => inputs(&wanted, kernel, seed)?,
    };
    let progress = Progress::new();
    // Before any device sees them: inputs that lead out of an array end here, not in a crash.
    progress.stage("interpreting");
    let (expected, reference) = reference(&wanted, kernel, &memory, file.form.is_some(), &progress)?;
    progress.stage("transforming");
    let device = args.open()?;
    let sought = file.form.as_ref().map(|of| Sought { case: None, dim: of.form.form.cell.dim() });
    let (transformed, program) =
        choose(args, source, &*source.lower()?, sought, &*device, (&memory, order), &progress)?;
    if let Some(callee) = args.checks_alone(&program) {
        let memory = with_tables(kernel, &transformed.kernel, &memory);
        return check_alone(&transformed, callee, &memory, progress);
    }
    progress.stage(format!("compiling for {}", device.info().name));
    let mut inputs = with_tables(kernel, &transformed.kernel, &memory).into_owned();
    let setup = set_up_with(&*device, &transformed.definitions, &mut inputs, &args.options())?;
    let (loaded, checked) = load(args, &*device, &transformed.kernel, &program, &inputs)?;
    progress.stage("running");
    let accused =
        Accused { device: &*device, kernel: &transformed.kernel, program: &program, memory: &inputs };
    let judged = expected.map(|expected| judge(kernel, &memory, &expected, &accused, &loaded, &progress));
    let judged = match judged {
        Some(judged) => Some(judged?),
        None => {
            loaded.launch()?;
            None
        }
    };
    let saved = match &arrays {
        Some(arrays) => {
            arrays.save_inputs(kernel, &memory)?
                + &arrays.save_results(&transformed.kernel, &loaded, &memory)?
        }
        None => String::new(),
    };
    let mut rows = vec![
        ("kernel", format!("{}, {}", kernel.name, transformed.name)),
        ("device", format!("{} ({})", device.info().name, device.info().selector())),
    ];
    rows.extend(loaded.resources().map(|resources| ("resources", resources.to_string())));
    rows.extend(unscheduled(args, &transformed, &program));
    rows.extend(origin.map(|origin| ("inputs", origin)));
    match &judged {
        None => rows.extend(reference.map(|why| ("error", why))),
        Some(Judged { comparison, .. }) => {
            rows.extend(reference.map(|what| ("reference", what)));
            rows.extend([("compared", comparison.compared()), ("error", comparison.error())]);
            rows.extend(comparison.not_finite().map(|text| ("not finite", text)));
            rows.extend(comparison.ill_conditioned(kernel, &memory).map(|text| ("conditioning", text)));
        }
    }
    rows.extend(checked.map(|report| ("checked", report.to_string())));
    rows.extend((setup.inputs > 0).then(|| ("setup", stored(&setup))));
    if !args.no_time {
        rows.extend(timed(kernel, &transformed.kernel, &memory, &loaded, &*device, &progress)?);
    }
    rows.push(("seed", seed.to_string()));
    drop(progress);
    out(&facts(rows))?;
    out(&saved)?;
    if let Some(dir) = &args.save_dir {
        save(dir, &transformed, &program)?;
    }
    let fault = judged.and_then(|j| Some((j.comparison.fault(kernel, &memory)?, j.blame?)));
    match fault {
        Some((fault, blame)) => {
            Err(accused.verdict(&blame, &format!("{fault}; seed {seed}"), args.save_dir.as_deref()))
        }
        None => Ok(()),
    }
}

/// The time and, where operations can be counted, rates and their share of the rooflines.
fn timed(
    kernel: &Kernel,
    transformed: &Kernel,
    memory: &Memory,
    loaded: &Loaded<'_>,
    device: &dyn Device,
    progress: &Progress,
) -> Result<Vec<(&'static str, String)>, Failure> {
    progress.stage("timing");
    let timing = loaded.time(&TimingOptions::default())?;
    let mut rows = vec![("time (median)", format!("{} of {} runs", seconds(timing.median_s), timing.runs))];
    let Ok(work) = kernel_work(kernel, memory.params()) else { return Ok(rows) };
    let rate = work.dram_bytes as f64 / timing.median_s;
    let distinct = ("GB/s of distinct data", figure(rate / 1e9));
    if work.flops == 0 {
        rows.push(distinct);
    } else {
        progress.stage("measuring the device's ceilings (kept for a day)");
        let executed_flops = kernel_work(transformed, memory.params()).ok().map(|work| work.flops);
        let measured = Measured::new(timing, work, executed_flops, device)?;
        let model = &measured.model;
        let (streaming, share) = (model.dram_bytes_per_s, 100.0 * rate / model.dram_bytes_per_s);
        let of = format!("{}, {share:.1} % of {} GB/s (streaming)", distinct.1, figure(streaming / 1e9));
        rows.push((distinct.0, of));
        rows.extend(measured.rows(None));
    }
    Ok(rows)
}

/// What a user should do who runs a loop program on one work-item of a card.
fn unscheduled(
    args: &RunArgs,
    transformed: &Transformed,
    program: &Program,
) -> Option<(&'static str, String)> {
    let one = [HostExpr::Const(1), HostExpr::Const(1), HostExpr::Const(1)];
    let alone = program.plan.grid == one && program.plan.block == [1, 1, 1];
    (alone && program.target != Target::C && transformed.recipe.steps.is_empty()).then(|| {
        let what = &args.source.what;
        let command = format!(
            "`kingpost auto {what}` finds a schedule, `kingpost tune {what}` the values of its holes"
        );
        ("not scheduled", format!("one work-item runs all of it; {command}"))
    })
}

/// What became of a result, and whose fault it is if it is wrong.
struct Judged {
    comparison: Comparison,
    blame: Option<Blame>,
}

/// Launches a program and compares its results; what is off is held against other roundings of the
/// interpreter and other ways to compile it.
fn judge(
    kernel: &Kernel,
    memory: &Memory,
    expected: &Expected,
    accused: &Accused<'_>,
    loaded: &Loaded<'_>,
    progress: &Progress,
) -> Result<Judged, Failure> {
    let compared = |loaded: &Loaded<'_>| -> Result<Comparison, Failure> {
        expected.poison(loaded)?;
        loaded.launch()?;
        let results = results(accused.kernel, loaded, memory)?;
        let mut comparison = expected.compare(&results);
        if !comparison.is_right() {
            expected.excuse(kernel, memory, &mut comparison);
        }
        Ok(comparison)
    };
    let comparison = compared(loaded)?;
    if comparison.is_right() {
        return Ok(Judged { comparison, blame: None });
    }
    progress.stage("looking for the cause of a wrong result");
    let blame = accused.blame(&|loaded| Ok(compared(loaded)?.is_right()));
    Ok(Judged { comparison, blame: Some(blame) })
}

fn save(dir: &Path, transformed: &Transformed, program: &Program) -> Result<(), Failure> {
    let recipe = transformed.recipe.to_json().map_err(|e| Failure::Refused(e.to_string()))?;
    let name = &transformed.kernel.name;
    let files = [
        (format!("{name}.{}", program.target), program.source.clone()),
        ("recipe.json".into(), recipe + "\n"),
        (format!("{name}.kingpost"), transformed.kernel.to_string()),
    ];
    std::fs::create_dir_all(dir).map_err(|e| Failure::of_write(dir, &e))?;
    for (file, content) in files {
        let path = dir.join(file);
        files::write(&path, content).map_err(|e| Failure::of_write(&path, &e))?;
        out(&format!("wrote {}\n", path.display()))?;
    }
    Ok(())
}

/// What the results must be, and what the user should know of it: of the interpreter, or of the
/// kernel as it is written, in C.
pub fn reference(
    args: &Wanted<'_>,
    kernel: &Kernel,
    memory: &Memory,
    is_form: bool,
    progress: &Progress,
) -> Result<(Option<Expected>, Option<String>), Failure> {
    let why = match interpreted(args, kernel, memory)? {
        Ok(expected) => return Ok((Some(expected), None)),
        Err(why) => why,
    };
    progress.stage("running the kernel as it is written, in C");
    let smaller = match (&args.mesh, is_form) {
        (Some(_), _) => "a smaller --mesh",
        (None, true) => "fewer --cells",
        (None, false) => "smaller --param",
    };
    Ok(match Expected::by_host(kernel, memory) {
        Ok(expected) => {
            let what =
                format!("the kernel as it is written, in C ({why}; give {smaller} to be judged by it)");
            (Some(expected), Some(what))
        }
        Err(error) => {
            let what = format!(
                "not compared: {why}, and the kernel as it is written does not run in C ({}); give {smaller}",
                Failure::from(error).text()
            );
            (None, Some(what))
        }
    })
}

/// What the interpreter makes of the memory, or why it does not run.
fn interpreted(
    args: &Wanted<'_>,
    kernel: &Kernel,
    memory: &Memory,
) -> Result<Result<Expected, String>, Failure> {
    // an operation is a step at least
    if kernel_work(kernel, memory.params()).map_or(true, |work| work.flops <= STEPS) {
        match Expected::new(kernel, memory, STEPS) {
            Ok(expected) => return Ok(Ok(expected)),
            Err(InterpError::StepLimit { .. } | InterpError::TooLarge { .. }) => {}
            Err(error @ InterpError::NoMeaning { .. }) => return Ok(Err(error.to_string())),
            Err(error) => {
                return Err(Failure::Usage(format!("{error}\n  help: inputs can be given with --values")));
            }
        }
    }
    let free =
        |id: &VarId| is_integer_array(kernel, *id) && index_bound(kernel, *id, memory.params()).is_none();
    match kernel.vars.ids().find(free).filter(|_| args.values.is_none()) {
        Some(id) => Err(Failure::Usage(format!(
            "too large to interpret, and nothing says which values `{}` may take; give them with --values",
            kernel.vars[id].name
        ))),
        None => Ok(Err(format!("more than {} steps of the interpreter", grouped(STEPS)))),
    }
}

fn is_integer_array(kernel: &Kernel, id: VarId) -> bool {
    let var = &kernel.vars[id];
    matches!(var.kind, VarKind::Argument(_)) && var.ty.is_exact() && !var.shape.is_empty()
}
