//! `kingpost run` on a form: lower, transform, generate, compile, run, check, time.

use super::blame::Accused;
use super::default_mapping::choose;
use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::report::{Measured, Report, Setup};
use super::run_args::{RunArgs, TOLERANCE, check_alone, load};
use super::source::{FormSource, Source};
use super::values::{file_mesh, simplex, unit_mesh};
use kingpost::forms::lowering::LoweredForm;
use kingpost::forms::mesh::{Mesh, MeshCounts};
use kingpost::ir::Kernel;
use kingpost::runtime::{Device, TimingOptions};
use kingpost::transforms::Recipe;
use kingpost::transforms::keeps::Order;
use kingpost::tuning::known::Sought;
use kingpost::{Loaded, Problem, RelativeError, SetUp, kernel_work, set_up_with};
use std::time::Instant;

/// Runs the command on a form.
pub fn run(args: &RunArgs, source: &Source) -> Result<(), Failure> {
    let Source::Form(form) = source else { return Ok(()) };
    args.inputs.refuse_values_of_form()?;
    let arrays = args.arrays()?;
    let progress = Progress::new();
    progress.stage("lowering the form");
    let start = Instant::now();
    let lowered = form.lower()?;
    let lowering_s = start.elapsed().as_secs_f64();
    progress.stage("reading the mesh");
    let start = Instant::now();
    let mesh = mesh(args, form, &lowered)?;
    let mesh_s = start.elapsed().as_secs_f64();
    progress.stage("drawing inputs");
    let seed = args.seed();
    let start = Instant::now();
    let order = args.inputs.order();
    let problem = Problem::in_order(lowered, mesh, order, seed)?;
    let mut setup =
        Setup { mesh_s, arrays_s: lowering_s + start.elapsed().as_secs_f64(), stored: SetUp::default() };
    let device = args.open()?;
    progress.stage("transforming");
    let case = form.operator.action_name(form.dim, form.degree);
    let sought = Some(Sought { case: Some(&case), dim: form.dim });
    let (mut memory, lowered) = (problem.memory.clone(), &problem.lowered);
    let (transformed, program) =
        choose(args, source, lowered, sought, &*device, (&memory, order), &progress)?;
    if let Some(callee) = args.checks_alone(&program) {
        return check_alone(&transformed, callee, &memory, progress);
    }
    progress.stage(format!("compiling for {}", device.info().name));
    setup.stored = set_up_with(&*device, &transformed.definitions, &mut memory, &args.options())?;
    let (loaded, checked) = load(args, &*device, &transformed.kernel, &program, &memory)?;
    progress.stage("running");
    loaded.launch()?;
    let found = loaded.f64s(problem.output())?;
    progress.stage("evaluating the reference");
    let (error, not_finite) = (problem.relative_error(&found)?, problem.not_finite(&found)?);
    let saved = match &arrays {
        Some(arrays) => {
            arrays.save_inputs(&problem.lowered.kernel, &problem.memory)?
                + &arrays.save_results(&transformed.kernel, &loaded, &problem.memory)?
        }
        None => String::new(),
    };
    let measure = || measure(&problem, &transformed.kernel, &loaded, &*device, &progress);
    let measured = (!args.no_time).then(measure).transpose()?;
    drop(progress);
    let report = Report {
        kernel: &transformed.kernel,
        recipe: &transformed.recipe,
        mapping: &transformed.name,
        program: &program,
        nodes: &problem.lowered.nodes,
        device: device.info(),
        cells: problem.mesh.n_cells(),
        dofs: problem.n_dofs,
        seed,
        resources: loaded.resources().next(),
        error,
        not_finite,
        checked,
        measured,
        setup,
    };
    out(&report.table())?;
    out(&saved)?;
    if let Some(dir) = &args.save_dir {
        out(&report.save(dir)?)?;
    }
    let tolerance = tolerance(&transformed.recipe);
    match error.is_within(tolerance) {
        true => Ok(()),
        false => {
            let kernel = &transformed.kernel;
            let accused = Accused { device: &*device, kernel, program: &program, memory: &memory };
            Err(wrong(args, &accused, &problem, (error, tolerance), seed))
        }
    }
}

/// How far a result may be from its reference: as far as the steps that keep the fewest digits say.
fn tolerance(recipe: &Recipe) -> f64 {
    let digits = recipe.steps.iter().map(|step| match step.keeps().order {
        Order::Within(digits) => 10.0_f64.powi(-(digits as i32)),
        Order::Bits | Order::Numbers | Order::Reassociated | Order::Identities => TOLERANCE,
    });
    digits.fold(TOLERANCE, f64::max)
}

/// Who is to blame for a result that is wrong.
fn wrong(
    args: &RunArgs,
    accused: &Accused<'_>,
    problem: &Problem,
    (error, tolerance): (RelativeError, f64),
    seed: u64,
) -> Failure {
    let (l2, max) = (error.l2, error.max);
    let what = format!(
        "relative error {l2:.1e} (Euclidean norm), {max:.1e} (maximum norm), needed at most {tolerance:e}; seed {seed}"
    );
    let blame = accused.blame(&|loaded| {
        loaded.launch()?;
        Ok(problem.relative_error(&loaded.f64s(problem.output())?)?.is_within(tolerance))
    });
    accused.verdict(&blame, &what, args.save_dir.as_deref())
}

/// The mesh of a file, or a unit mesh that is refused before it is made if the form on it does not fit.
fn mesh(args: &RunArgs, form: &FormSource, lowered: &LoweredForm) -> Result<Mesh, Failure> {
    if let Some(path) = &args.inputs.mesh {
        return file_mesh(path, form.dim);
    }
    let divisions = args.inputs.cells.unwrap_or(if form.dim == 2 { 32 } else { 8 });
    let counts = MeshCounts::unit(simplex(form.dim), divisions).map_err(|e| Failure::Usage(e.to_string()))?;
    Problem::check_size(lowered, &counts)?;
    unit_mesh(form.dim, divisions)
}

fn measure(
    problem: &Problem,
    kernel: &Kernel,
    loaded: &Loaded<'_>,
    device: &dyn Device,
    progress: &Progress,
) -> Result<Measured, Failure> {
    progress.stage("timing");
    let timing = loaded.time(&TimingOptions::default())?;
    let work = kernel_work(&problem.lowered.kernel, problem.memory.params())?;
    let executed = kernel_work(kernel, problem.memory.params()).ok().map(|work| work.flops);
    progress.stage("measuring the device's ceilings (kept for a day)");
    Ok(Measured::new(timing, work, executed, device)?)
}
