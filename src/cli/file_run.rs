//! `purlin run` on a `.purlin` file: random inputs, compared with the interpreter.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::run::{RunArgs, TOLERANCE, load};
use super::source::{Source, read};
use super::table::{facts, figure, seconds};
use super::transform::Transformed;
use super::values::ParamArg;
use purlin::codegen::{Options, Program, generate};
use purlin::ir::interp::{InterpError, Memory, Value, interpret_with};
use purlin::ir::{
    Affine, Assumption, Atom, Direction, Expr, Kernel, ScalarType, TableData, VarId, VarKind, Variable,
};
use purlin::runtime::{RuntimeError, TimingOptions};
use purlin::{Loaded, Random, RelativeError, check_memory, gathered, kernel_work};
use std::collections::BTreeMap;
use std::path::Path;

/// Steps of the interpreter after which a comparison is given up: some seconds.
const STEPS: u64 = 50_000_000;

/// Runs the command on a file.
pub fn run(args: &RunArgs, source: &Source) -> Result<(), Failure> {
    let Source::File(kernel) = source else { return Ok(()) };
    if args.mesh.is_some() || args.cells.is_some() {
        return Err(Failure::Usage(
            "--mesh and --cells are for forms; give sizes with --param n=1000".into(),
        ));
    }
    let seed = args.seed();
    let memory = memory(args, kernel, seed)?;
    let progress = Progress::new();
    // Before any device sees them: inputs that lead out of an array end here, not in a crash.
    progress.stage("interpreting");
    let expected = interpreted(args, kernel, &memory)?;
    progress.stage("transforming");
    let transformed = args.transform.apply(source, kernel)?;
    let device = args.open()?;
    let program = generate(&transformed.kernel, device.info().backend.target(), &Options::default())?;
    progress.stage(format!("compiling for {}", device.info().name));
    let inputs = with_tables(kernel, &transformed.kernel, &memory);
    let (loaded, checked) = load(args, &*device, &transformed.kernel, &program, &inputs)?;
    progress.stage("running");
    loaded.launch()?;
    let results = results(&transformed.kernel, &loaded, &memory)?;
    let error = expected.map(|expected| compare(&expected, &results));
    let mut rows = vec![
        ("kernel", format!("{}, {}", kernel.name, transformed.name)),
        ("device", format!("{} ({})", device.info().name, device.info().selector())),
        (
            "error",
            error.map_or_else(
                || "not compared: too large to interpret".into(),
                |e| format!("{e:.2} of the tolerance (relative {TOLERANCE:e} in f64, 1e-5 in f32)"),
            ),
        ),
    ];
    rows.extend(checked.map(|report| ("checked", report.to_string())));
    if !args.no_time {
        progress.stage("timing");
        let timing = loaded.time(&TimingOptions::default())?;
        rows.push(("time (median)", format!("{} of {} runs", seconds(timing.median_s), timing.runs)));
        if let Ok(work) = kernel_work(kernel, memory.params()) {
            let rate = |n: u64| figure(n as f64 / timing.median_s / 1e9);
            rows.push(("GFLOP/s", rate(work.flops)));
            rows.push(("GB/s of distinct data", rate(work.dram_bytes)));
        }
    }
    rows.push(("seed", seed.to_string()));
    drop(progress);
    out(&facts(rows))?;
    if let Some(dir) = &args.save_dir {
        save(dir, &transformed, &program)?;
    }
    match error {
        Some(e) if e > 1.0 || e.is_nan() => Err(Failure::Refused(format!(
            "wrong result: {e:.1} times the tolerated relative error ({TOLERANCE:e} in f64, 1e-5 in f32); seed {seed}"
        ))),
        Some(_) | None => Ok(()),
    }
}

fn save(dir: &Path, transformed: &Transformed, program: &Program) -> Result<(), Failure> {
    let recipe = transformed.recipe.to_json().map_err(|e| Failure::Refused(e.to_string()))?;
    let name = &transformed.kernel.name;
    let files = [
        (format!("{name}.{}", program.target), program.source.clone()),
        ("recipe.json".into(), recipe + "\n"),
        (format!("{name}.purlin"), transformed.kernel.to_string()),
    ];
    let refused =
        |path: &Path, e: std::io::Error| Failure::Usage(format!("cannot write `{}`: {e}", path.display()));
    std::fs::create_dir_all(dir).map_err(|e| refused(dir, e))?;
    for (file, content) in files {
        let path = dir.join(file);
        std::fs::write(&path, content).map_err(|e| refused(&path, e))?;
        out(&format!("wrote {}\n", path.display()))?;
    }
    Ok(())
}

/// The memory with the values of tables that have become arguments.
fn with_tables(before: &Kernel, after: &Kernel, memory: &Memory) -> Memory {
    let mut result = memory.clone();
    for var in after.vars.values().filter(|v| matches!(v.kind, VarKind::Argument(Direction::In))) {
        let table = before.var(&var.name).map(|v| &before.vars[v].kind);
        if let (None, Some(VarKind::Table(data))) = (memory.get(&var.name), table) {
            result.set(&var.name, table_value(data, var.ty));
        }
    }
    result
}

fn table_value(data: &TableData, ty: ScalarType) -> Value {
    match (data, ty) {
        (TableData::Real(v), ScalarType::F32) => Value::F32(v.iter().map(|x| x.0 as f32).collect()),
        (TableData::Real(v), _) => Value::F64(v.iter().map(|x| x.0).collect()),
        (TableData::Int(v), ScalarType::I32) => Value::I32(v.iter().map(|i| *i as i32).collect()),
        (TableData::Int(v), _) => Value::I64(v.to_vec()),
    }
}

/// What the kernel wrote, by argument, row by row.
fn results(kernel: &Kernel, loaded: &Loaded<'_>, memory: &Memory) -> Result<Vec<(String, Value)>, Failure> {
    let written = kernel.vars.values().filter(|v| match v.kind {
        VarKind::Argument(Direction::Out | Direction::InOut) => true,
        VarKind::Argument(Direction::In) | VarKind::Param | VarKind::Temporary | VarKind::Table(_) => false,
    });
    written.map(|v| Ok((v.name.clone(), gathered(kernel, v, memory, loaded.value(&v.name)?)))).collect()
}

/// What the interpreter makes of the memory; none if that takes too long.
struct Expected {
    memory: Memory,
    /// Results with elements that nothing writes: they hold poison on a device.
    partial: BTreeMap<String, u64>,
}

fn interpreted(args: &RunArgs, kernel: &Kernel, memory: &Memory) -> Result<Option<Expected>, Failure> {
    let mut memory = memory.clone();
    match interpret_with(kernel, &mut memory, &mut (), Some(STEPS)) {
        Ok(run) => Ok(Some(Expected { memory, partial: run.unwritten })),
        Err(InterpError::StepLimit { .. } | InterpError::TooLarge { .. }) => {
            let params = ParamArg::collect(&args.param);
            let free =
                |id: &VarId| is_integer_array(kernel, *id) && index_bound(kernel, *id, &params).is_none();
            match kernel.vars.ids().find(free).filter(|_| args.values.is_none()) {
                Some(id) => Err(Failure::Usage(format!(
                    "too large to interpret, and nothing says which values `{}` may take; give them with --values",
                    kernel.vars[id].name
                ))),
                None => Ok(None),
            }
        }
        Err(error) => Err(Failure::Usage(format!("{error}\n  help: inputs can be given with --values"))),
    }
}

fn is_integer_array(kernel: &Kernel, id: VarId) -> bool {
    let var = &kernel.vars[id];
    matches!(var.kind, VarKind::Argument(_)) && !var.ty.is_float() && !var.shape.is_empty()
}

/// The largest relative error of any result over what its type tolerates.
fn compare(expected: &Expected, results: &[(String, Value)]) -> f64 {
    let mut worst = 0.0_f64;
    for (name, found) in results {
        let Some(needed) = expected.memory.get(name).filter(|_| !expected.partial.contains_key(name)) else {
            continue;
        };
        let tolerance = match found.ty() {
            ScalarType::F64 => TOLERANCE,
            ScalarType::F32 => 1e-5,
            ScalarType::I32 | ScalarType::I64 => f64::MIN_POSITIVE,
        };
        let error = RelativeError::between(&found.to_f64(), &needed.to_f64()).max / tolerance;
        worst = if error > worst || error.is_nan() { error } else { worst };
    }
    worst
}

/// Parameters from the command line, arguments from the file of values or else at random.
fn memory(args: &RunArgs, kernel: &Kernel, seed: u64) -> Result<Memory, Failure> {
    let params = ParamArg::collect(&args.param);
    let mut memory = Memory::new();
    for (name, value) in &params {
        if kernel.var(name).is_none_or(|v| kernel.vars[v].kind != VarKind::Param) {
            return Err(Failure::Usage(format!("`{}` has no parameter `{name}`", kernel.name)));
        }
        memory.set_param(name, *value);
    }
    check_sizes(kernel, &params)?;
    let given: BTreeMap<String, serde_json::Value> = match &args.values {
        Some(path) => serde_json::from_str(&read(path)?)
            .map_err(|e| Failure::Usage(format!("`{}`: {e}", path.display())))?,
        None => BTreeMap::new(),
    };
    let mut random = Random::new(seed);
    for (id, var) in kernel.vars.iter() {
        let name = &var.name;
        match var.kind {
            VarKind::Param if !params.contains_key(name) => {
                return Err(Failure::Usage(format!(
                    "parameter `{name}` has no value; give it one with --param {name}=1000"
                )));
            }
            VarKind::Argument(Direction::In | Direction::InOut) => {}
            VarKind::Param | VarKind::Argument(Direction::Out) | VarKind::Temporary | VarKind::Table(_) => {
                continue;
            }
        }
        let value = match given.get(name) {
            Some(json) => from_json(name, json, var.ty)?,
            None => random_value(kernel, id, &params, &mut random)?,
        };
        memory.set(name, value);
    }
    Ok(memory)
}

/// Copies of the arguments that are alive at once: the inputs, what the interpreter makes of them, a device's on the
/// host, and results.
const COPIES: u64 = 4;

/// Parameters fit their types, and the arguments this machine: before any is drawn.
fn check_sizes(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<(), Failure> {
    let mut bytes = 0_u64;
    for var in kernel.vars.values() {
        let value = params.get(&var.name).filter(|_| var.ty == ScalarType::I32);
        match (&var.kind, value) {
            (VarKind::Param, Some(value)) if i32::try_from(*value).is_err() => {
                let (name, value, ty) = (var.name.clone(), *value, var.ty);
                return Err(Failure::Usage(RuntimeError::ParameterRange { name, value, ty }.to_string()));
            }
            (VarKind::Argument(_), _) => {
                // a length that is negative or has no value is refused when it is drawn
                bytes = bytes.saturating_add(elements(kernel, var, params).saturating_mul(var.ty.bytes()));
            }
            (VarKind::Param | VarKind::Temporary | VarKind::Table(_), _) => {}
        }
    }
    check_memory("the arguments", bytes.saturating_mul(COPIES), "give smaller parameters")?;
    Ok(())
}

/// Elements of an array as it lies in memory.
fn elements(kernel: &Kernel, var: &Variable, params: &BTreeMap<String, i64>) -> u64 {
    let value = |e: &Affine| u64::try_from(evaluate(kernel, e, params).unwrap_or(0)).unwrap_or(0);
    let extents = var.shape.iter().map(value);
    match &var.layout.strides {
        None => extents.fold(1, u64::saturating_mul),
        Some(strides) => {
            let along = extents.zip(strides).map(|(n, stride)| n.saturating_mul(value(stride)));
            along.fold(1, u64::saturating_add)
        }
    }
}

fn from_json(name: &str, json: &serde_json::Value, ty: ScalarType) -> Result<Value, Failure> {
    let items = match json {
        serde_json::Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let wrong = |item: &serde_json::Value| {
        Failure::Usage(format!("value of `{name}`: found {item}, needed numbers of type {ty}"))
    };
    let reals = || items.iter().map(|i| i.as_f64().ok_or_else(|| wrong(i))).collect::<Result<Vec<_>, _>>();
    let ints = || items.iter().map(|i| i.as_i64().ok_or_else(|| wrong(i))).collect::<Result<Vec<_>, _>>();
    let narrow = |v: i64| i32::try_from(v).map_err(|_| wrong(&v.into()));
    Ok(match ty {
        ScalarType::F64 => Value::F64(reals()?),
        ScalarType::F32 => Value::F32(reals()?.into_iter().map(|x| x as f32).collect()),
        ScalarType::I64 => Value::I64(ints()?),
        ScalarType::I32 => Value::I32(ints()?.into_iter().map(narrow).collect::<Result<_, _>>()?),
    })
}

fn random_value(
    kernel: &Kernel,
    id: VarId,
    params: &BTreeMap<String, i64>,
    random: &mut Random,
) -> Result<Value, Failure> {
    let var = &kernel.vars[id];
    let mut len = 1_usize;
    for extent in &var.shape {
        let extent = evaluate(kernel, extent, params).and_then(|e| usize::try_from(e).ok());
        let product = extent.and_then(|e| len.checked_mul(e)).filter(|n| *n < 1 << 32);
        len = product.ok_or_else(|| {
            Failure::Usage(format!(
                "the size of `{}` is negative or too large; give other parameters",
                var.name
            ))
        })?;
    }
    let below = index_bound(kernel, id, params).unwrap_or(10).max(1) as u64;
    let indices = match kernel.assumptions.contains(&Assumption::Injective(id)) {
        true => distinct(len, below.max(len as u64), random),
        false => (0..len).map(|_| random.below(below)).collect(),
    };
    Ok(match var.ty {
        ScalarType::F64 => Value::F64(random.numbers(len)),
        ScalarType::F32 => Value::F32(random.numbers(len).into_iter().map(|x| x as f32).collect()),
        ScalarType::I32 => Value::I32(indices.into_iter().map(|i| i as i32).collect()),
        ScalarType::I64 => Value::I64(indices.into_iter().map(|i| i as i64).collect()),
    })
}

/// The first `len` numbers of a pseudo-random order of `0..below`.
fn distinct(len: usize, below: u64, random: &mut Random) -> Vec<u64> {
    let mut order: Vec<u64> = (0..below).collect();
    for k in 0..len.min(order.len()) {
        let other = k + random.below((order.len() - k) as u64) as usize;
        order.swap(k, other);
    }
    order.truncate(len);
    order
}

/// The smallest extent of an axis that values of an integer array index: maps must stay inside.
fn index_bound(kernel: &Kernel, map: VarId, params: &BTreeMap<String, i64>) -> Option<i64> {
    let mut bound = None;
    let mut visit = |access: &purlin::ir::Access| {
        for (index, extent) in access.index.iter().zip(&kernel.vars[access.var].shape) {
            let mut uses = false;
            index.for_each(&mut |e| uses |= matches!(e, Expr::Load(a) if a.var == map));
            if let (true, Some(extent)) = (uses, evaluate(kernel, extent, params)) {
                bound = Some(bound.map_or(extent, |b: i64| b.min(extent)));
            }
        }
    };
    for insn in kernel.insns.values() {
        visit(&insn.lhs);
        insn.reads().into_iter().for_each(&mut visit);
    }
    bound
}

/// An affine expression of parameters.
fn evaluate(kernel: &Kernel, e: &Affine, params: &BTreeMap<String, i64>) -> Option<i64> {
    let fixed = e.substitute(&|atom: &Atom| match atom {
        Atom::Var(v) => params.get(&kernel.vars[*v].name).map(|value| Affine::constant(*value)),
        Atom::Iname(_) | Atom::Floor(..) => None,
    });
    fixed.as_constant()
}
