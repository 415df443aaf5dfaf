//! Generated C, OpenCL and, where there is a card, CUDA against the interpreter: the kernels of
//! kingpost-codegen's snapshots, and random programs.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "generated/arm.rs"]
mod arm;
#[path = "generated/beyond_64_bits.rs"]
mod beyond_64_bits;
#[path = "generated/lanes.rs"]
mod lanes;
#[path = "generated/names.rs"]
mod names;
#[path = "generated/nan.rs"]
mod nan;
#[path = "generated/stack.rs"]
mod stack;
#[path = "generated/strides.rs"]
mod strides;
#[path = "generated/types.rs"]
mod types;

use kingpost_codegen::{ArgKind, CodegenError, Options, generate};
use kingpost_facts::Fact;
use kingpost_interp::{InterpError, Memory, Value, interpret};
use kingpost_ir::{
    AddressSpace, Affine, Assumption, AxisTag, Constraint, Direction, Id, Kernel, ScalarType, VarId, VarKind,
    WriteOp,
};
use kingpost_runtime::{
    Arg, Backend, Buffer, Device, Optimisation, buffer_of, download_values, oclgrind, open,
};
use kingpost_sample::{SampleConfig, arbitrary_kernel, config, is_long_run, seed};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::BTreeMap;
use std::path::Path;

/// A reproducible stream of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A different seed of inputs in each run, printed with every failure.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() as u64
}

/// Random cases of a test: `usual`, or what `KINGPOST_CASES` says (for long runs).
fn cases(usual: u32) -> u32 {
    std::env::var("KINGPOST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(usual)
}

fn devices() -> Vec<Box<dyn Device>> {
    let mut found = vec![open("c").unwrap()];
    found.extend(["opencl", "cuda"].into_iter().filter_map(device));
    found
}

/// A device that not every machine has.
fn device(name: &str) -> Option<Box<dyn Device>> {
    open(name).inspect_err(|e| eprintln!("skipped: {name}: {e}")).ok()
}

/// Runs a kernel on a device; the arguments it writes.
fn run(device: &dyn Device, kernel: &Kernel, memory: &Memory) -> BTreeMap<String, Value> {
    launched(device, kernel, memory).unwrap_or_else(|e| panic!("{e}\n{kernel}"))
}

/// The same, or why the launch is refused.
fn launched(
    device: &dyn Device,
    kernel: &Kernel,
    memory: &Memory,
) -> Result<BTreeMap<String, Value>, kingpost_runtime::RuntimeError> {
    let program = generate(kernel, device.info().backend.target(), &Options::default().with_trust(true))
        .unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    // what an OpenCL compiler on the CPU optimises is left to `make test-all` and the random recipes
    let is_fast = device.info().backend == Backend::OpenCl && !is_long_run();
    let optimisation = if is_fast { Optimisation::Off } else { Optimisation::Full };
    let executable = device
        .compile_as(&program, optimisation)
        .unwrap_or_else(|e| panic!("{e}\n{kernel}\n{}", program.source));
    let mut buffers: BTreeMap<&str, Buffer> = BTreeMap::new();
    for spec in &program.plan.args {
        if let ArgKind::Buffer { len, .. } = &spec.kind {
            let given = memory
                .get(&spec.name)
                .cloned()
                .unwrap_or_else(|| Value::zeros(spec.ty, len.eval(memory.params()).unwrap() as usize));
            buffers.insert(&spec.name, upload(device, &given));
        }
    }
    let args: Vec<(&str, Arg<'_>)> = program
        .plan
        .args
        .iter()
        .filter_map(|spec| {
            let name = spec.name.as_str();
            Some(match &spec.kind {
                ArgKind::Param => (name, Arg::Param(memory.get_param(name).unwrap())),
                ArgKind::Scalar => (name, scalar(memory.get(name).unwrap())),
                ArgKind::Buffer { .. } => (name, Arg::Buffer(&buffers[name])),
                ArgKind::Table(_) | ArgKind::Scratch { .. } => return None,
            })
        })
        .collect();
    device.launch(&executable, &args)?;
    let written = kernel
        .vars
        .values()
        .filter(|v| matches!(v.kind, VarKind::Argument(Direction::Out | Direction::InOut)));
    Ok(written.map(|v| (v.name.clone(), download(device, v.ty, &buffers[v.name.as_str()]))).collect())
}

fn scalar(value: &Value) -> Arg<'static> {
    match value {
        Value::F64(v) => Arg::F64(v[0]),
        Value::F32(v) => Arg::F32(v[0]),
        Value::I32(v) => Arg::I32(v[0]),
        Value::I64(v) => Arg::I64(v[0]),
        Value::U32(v) => Arg::U32(v[0]),
        Value::U64(v) => Arg::U64(v[0]),
        Value::C64(v) => Arg::C64(v[0]),
        Value::C128(v) => Arg::C128(v[0]),
        other => panic!("no scalar is {}", other.ty()),
    }
}

fn upload(device: &dyn Device, value: &Value) -> Buffer {
    kingpost_interp::with_elements!(value, v => buffer_of(device, v)).unwrap()
}

fn download(device: &dyn Device, ty: ScalarType, buffer: &Buffer) -> Value {
    match ty {
        ScalarType::F64 => Value::F64(download_values(device, buffer).unwrap()),
        ScalarType::F32 => Value::F32(download_values(device, buffer).unwrap()),
        ScalarType::I32 => Value::I32(download_values(device, buffer).unwrap()),
        ScalarType::I64 => Value::I64(download_values(device, buffer).unwrap()),
        ScalarType::I16 => Value::I16(download_values(device, buffer).unwrap()),
        ScalarType::I8 => Value::I8(download_values(device, buffer).unwrap()),
        ScalarType::U8 => Value::U8(download_values(device, buffer).unwrap()),
        ScalarType::U16 => Value::U16(download_values(device, buffer).unwrap()),
        ScalarType::U32 => Value::U32(download_values(device, buffer).unwrap()),
        ScalarType::U64 => Value::U64(download_values(device, buffer).unwrap()),
        ScalarType::Bool => Value::Bool(download_values(device, buffer).unwrap()),
        ScalarType::F16 => Value::F16(download_values(device, buffer).unwrap()),
        ScalarType::Bf16 => Value::Bf16(download_values(device, buffer).unwrap()),
        ScalarType::C64 => Value::C64(download_values(device, buffer).unwrap()),
        ScalarType::C128 => Value::C128(download_values(device, buffer).unwrap()),
        ScalarType::Record(_) => panic!("buffers hold a field of a record each, not {ty}"),
    }
}

/// Compares what a device computed with what the interpreter did.
fn compare(expected: &Memory, found: &BTreeMap<String, Value>) -> Result<(), String> {
    compare_within(1e-12, expected, found)
}

/// The same for a random program, in which what is `f64` may be made of `f32`.
fn compare_sample(kernel: &Kernel, expected: &Memory, found: &BTreeMap<String, Value>) -> Result<(), String> {
    let mut single = kernel.vars.values().any(|v| v.ty == ScalarType::F32);
    for insn in kernel.insns.values() {
        insn.rhs.for_each(&mut |e| single |= matches!(e, kingpost_ir::Expr::Cast(ScalarType::F32, _)));
    }
    compare_within(if single { 1e-4 } else { 1e-12 }, expected, found)
}

fn compare_within(double: f64, expected: &Memory, found: &BTreeMap<String, Value>) -> Result<(), String> {
    for (name, found) in found {
        let expected = expected.get(name).unwrap();
        // Sums of at most a few hundred terms in any order, and functions within a few ulp.
        let tolerance = match found.ty() {
            ScalarType::F64 | ScalarType::C128 => double,
            ScalarType::F32 | ScalarType::C64 => 1e-4,
            _ => 0.0,
        };
        let (expected, found) = (expected.to_f64(), found.to_f64());
        let scale = expected.iter().filter(|v| v.is_finite()).fold(1.0_f64, |s, v| s.max(v.abs()));
        for (k, (e, f)) in expected.iter().zip(&found).enumerate() {
            let same = e == f || (e.is_nan() && f.is_nan()) || (e - f).abs() <= tolerance * scale;
            if !same {
                return Err(format!("`{name}[{k}]` is {f}, the interpreter has {e}"));
            }
        }
    }
    Ok(())
}

/// The line `n = 0, 1, 32; m = 3` of a fact's comment: every combination. A kernel without
/// parameters needs none.
fn parameter_sets(fact: &Fact) -> Vec<BTreeMap<String, i64>> {
    let sizes = |line: &&str| {
        let is_value = |v: &str| v.trim().parse::<i64>().is_ok();
        let mut items = line.split(';').map(|item| item.split_once('='));
        items.all(|item| item.is_some_and(|(_, values)| values.split(',').all(is_value)))
    };
    let mut sets = vec![BTreeMap::new()];
    let Some(line) = fact.why.lines().find(sizes) else {
        let has_sizes = fact.kernel.text.lines().any(|line| line.starts_with("param "));
        assert!(!has_sizes, "`{}` has no line of sizes", fact.name);
        return sets;
    };
    for item in line.split(';') {
        let (name, values) = item.split_once('=').unwrap();
        let mut next = Vec::new();
        for set in &sets {
            for v in values.split(',') {
                let mut set = set.clone();
                set.insert(name.trim().to_owned(), v.trim().parse().unwrap());
                next.push(set);
            }
        }
        sets = next;
    }
    sets
}

/// Random arguments; integers are valid indices below `n_dofs` (row pointers ascend).
fn random_memory(kernel: &Kernel, params: &BTreeMap<String, i64>, random: &mut Random) -> Memory {
    let mut memory = Memory::new();
    for (name, value) in params {
        memory.set_param(name, *value);
    }
    let limit = params.get("n_dofs").copied().unwrap_or(4).min(8) as u64;
    for var in kernel.vars.values() {
        if !matches!(var.kind, VarKind::Argument(_)) {
            continue;
        }
        let value_of = |a: &kingpost_ir::Atom| match a {
            kingpost_ir::Atom::Var(v) => params.get(&kernel.vars[*v].name).copied(),
            _ => None,
        };
        let len: i64 = var.shape.iter().map(|e| e.eval(&mut { value_of }).unwrap()).product();
        let mut ints: Vec<i64> = (0..len).map(|_| (random.next() % limit) as i64).collect();
        if var.name == "rowptr" {
            ints.sort_unstable();
        }
        let reals: Vec<f64> = (0..len).map(|_| random.unit() - 0.25).collect();
        memory.set(
            &var.name,
            match var.ty {
                ScalarType::F64 => Value::F64(reals),
                ScalarType::F32 => Value::F32(reals.iter().map(|x| *x as f32).collect()),
                ty => Value::of_bits(ty, &ints),
            },
        );
    }
    memory
}

/// The facts of generated sources: all of codegen's but those of refusals, and of programs that random values
/// of memory lead outside.
fn sources() -> Vec<Fact> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codegen/facts");
    let facts = kingpost_facts::load(&folder).unwrap().into_iter();
    let runs = |file: &str| !file.starts_with("refusals::") && file != "launch::open";
    let facts: Vec<_> = facts.filter(|(file, _)| runs(file)).map(|(_, fact)| fact).collect();
    assert!(facts.len() >= 71, "{}", facts.len());
    facts
}

#[test]
fn kernels_agree_with_the_interpreter() {
    kernels_agree(&devices());
}

fn kernels_agree(devices: &[Box<dyn Device>]) {
    let seed = fresh_seed();
    let mut random = Random(seed);
    let mut failures = Vec::new();
    let oclgrind = devices.iter().any(|d| d.info().driver.contains("Oclgrind"));
    for (k, fact) in sources().into_iter().enumerate() {
        // oclgrind 21.10 gives 3 for `min(0, 3) + max(1, 0)`, as comparisons and as built-in
        // functions
        let left_out = ["integer_division_rounds_down", "sub_group_intrinsic"];
        if oclgrind && left_out.contains(&fact.name.as_str()) {
            continue;
        }
        let kernel = kingpost_ir::text::parse(&fact.kernel.text).unwrap();
        for params in parameter_sets(&fact) {
            let memory = random_memory(&kernel, &params, &mut random);
            let mut expected = memory.clone();
            match interpret(&kernel, &mut expected) {
                Ok(_) => {}
                Err(InterpError::Assumption { .. }) => continue, // sizes that do not go together
                Err(e) => panic!("{}: {e}", fact.name),
            }
            for device in devices {
                // oclgrind compiles and runs all of them
                if device.info().backend == Backend::OpenCl && !oclgrind && !is_long_run() && k % 3 != 0 {
                    continue;
                }
                let program =
                    generate(&kernel, device.info().backend.target(), &Options::default().with_trust(true));
                if matches!(
                    program,
                    Err(CodegenError::NoFunction { .. } | CodegenError::SubGroupWidth { .. })
                ) {
                    continue; // facts say which
                }
                if let Err(e) = compare(&expected, &run(&**device, &kernel, &memory)) {
                    failures.push(format!("{} with {params:?} on {}: {e}", fact.name, device.info().name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "seed {seed}\n{}", failures.join("\n"));
}

/// Temporaries need constant sizes, which no larger parameters may exceed; everything else stays
/// parametric.
fn with_constant_temporaries(kernel: &Kernel, memory: &Memory) -> Kernel {
    let mut kernel = kernel.clone();
    let names: Vec<String> = kernel.vars.values().map(|v| v.name.clone()).collect();
    for var in kernel.vars.values_mut().filter(|v| v.kind == VarKind::Temporary) {
        for extent in &mut var.shape {
            let value = extent.eval(&mut |a| match a {
                kingpost_ir::Atom::Var(v) => memory.get_param(&names[v.index()]),
                _ => None,
            });
            *extent = Affine::constant(value.unwrap());
        }
    }
    let params: Vec<_> =
        kernel.vars.iter().filter(|(_, v)| v.kind == VarKind::Param).map(|(id, _)| id).collect();
    for param in params {
        let most = memory.get_param(&names[param.index()]).unwrap();
        let bound = Constraint::le(&Affine::var(param), &Affine::constant(most));
        kernel.assumptions.push(Assumption::Params(bound));
    }
    kernel.canonical()
}

/// Random sequential programs in C.
#[test]
fn random_programs_agree_with_the_interpreter() {
    let device = open("c").unwrap();
    let mut runner = TestRunner::new(config(cases(40)));
    let result = runner.run(&arbitrary_kernel(SampleConfig::default()), |sample| {
        let mut expected = sample.memory.clone();
        interpret(&sample.kernel, &mut expected).unwrap();
        let kernel = with_constant_temporaries(&sample.kernel, &sample.memory);
        compare_sample(&kernel, &expected, &run(&*device, &kernel, &sample.memory))
            .map_err(TestCaseError::fail)
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

/// The kernel with its parameters fixed, its updates atomic, some temporaries
/// local, and random loops on random axes; `None` if
/// that is not well formed.
fn parallel(kernel: &Kernel, memory: &Memory, random: &mut Random) -> Option<Kernel> {
    let mut kernel = kernel.clone();
    let is_param = |kernel: &Kernel, id: &VarId| kernel.vars[*id].kind == VarKind::Param;
    while let Some(id) = kernel.vars.ids().find(|id| is_param(&kernel, id)) {
        let value = memory.get_param(&kernel.vars[id].name).unwrap();
        kernel = kernel.with_var_fixed(id, value);
    }
    let tags = ["g.0", "g.1", "l.0", "l.0", "l.0", "l.1", "unroll", "vector"];
    for iname in kernel.inames.values_mut() {
        if random.next().is_multiple_of(2) {
            let tag = tags[(random.next() % tags.len() as u64) as usize];
            iname.tag = AxisTag::parse(tag).unwrap();
        }
    }
    for var in kernel.vars.values_mut().filter(|v| v.kind == VarKind::Temporary) {
        if random.next().is_multiple_of(2) {
            var.space = AddressSpace::Local;
        }
    }
    for insn in kernel.insns.values_mut() {
        if let WriteOp::Update { op, .. } = insn.op {
            insn.op = WriteOp::Update { op, atomic: true };
        }
    }
    kernel.verify().ok()?;
    Some(kernel.canonical())
}

/// What oclgrind has found in this process, if it runs it.
fn findings_so_far() -> String {
    let log = std::env::var_os("OCLGRIND_LOG");
    let findings = log.map(|log| oclgrind::read_log(Path::new(&log)).unwrap()).unwrap_or_default();
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Random programs with random axis tags: what is not refused must compute the same.
fn parallel_programs_agree(device: &dyn Device, cases: u32) {
    let seed = seed();
    let random = std::cell::RefCell::new(Random(seed));
    let accepted = std::cell::Cell::new(0_u32);
    let config = Config { max_shrink_iters: 0, ..config(cases) };
    let cases = config.cases;
    let mut runner = TestRunner::new(config);
    let result = runner.run(&arbitrary_kernel(SampleConfig::default()), |sample| {
        for _ in 0..12 {
            let Some(kernel) = parallel(&sample.kernel, &sample.memory, &mut random.borrow_mut()) else {
                continue;
            };
            match generate(&kernel, device.info().backend.target(), &Options::default().with_trust(true)) {
                Ok(_) => {}
                Err(CodegenError::Race { .. } | CodegenError::Internal { .. } | CodegenError::Isl(_)) => {
                    return Err(TestCaseError::fail(format!("a bug in {kernel}")));
                }
                // The kernel asks for what cannot be.
                Err(_) => continue,
            }
            accepted.set(accepted.get() + 1);
            let mut expected = sample.memory.clone();
            interpret(&sample.kernel, &mut expected).unwrap();
            let found = run(device, &kernel, &sample.memory);
            let findings = findings_so_far();
            if !findings.is_empty() {
                return Err(TestCaseError::fail(format!("{findings}\n{kernel}")));
            }
            return compare_sample(&kernel, &expected, &found)
                .map_err(|e| TestCaseError::fail(format!("{e}\n{kernel}")));
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    assert!(accepted.get() * 4 > cases, "only {} of {cases} programs could be tagged", accepted.get());
}

#[test]
fn parallel_programs_agree_in_c() {
    parallel_programs_agree(&*open("c").unwrap(), cases(60));
}

#[test]
fn parallel_programs_agree_in_cuda() {
    if let Some(device) = device("cuda") {
        parallel_programs_agree(&*device, cases(60));
    }
}

#[test]
#[ignore = "`oclgrind_finds_nothing` runs it in a child process under oclgrind"]
fn child() {
    kernels_agree(&[open("opencl").unwrap()]);
    parallel_programs_agree(&*open("opencl").unwrap(), cases(200));
}

/// Random tagged programs run under oclgrind and not on pocl, whose version 3.1 runs an atomic
/// update of work-item 0 twice in some of them (one in a few hundred; oclgrind and the C code agree
/// with the interpreter there).
///
/// No data race, nothing uninitialised, nothing out of range, no divergent barrier. The compiler
/// does not optimise: it would leave out accesses whose values are not used, and the races that
/// they show.
#[test]
fn oclgrind_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let environment = match oclgrind::environment(dir.path()) {
        Ok(environment) => environment,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .envs(environment)
        .env("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let findings = oclgrind::read_log(&oclgrind::log_file(dir.path())).unwrap();
    assert!(
        findings.is_empty(),
        "{}",
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
}
