//! Generated C for Arm, by a cross-compiler and an emulator: the vectors of NEON, and those of SVE
//! where their size is fixed.

use super::lanes::Draw;
use super::{Random, compare, is_long_run, parameter_sets, random_memory, seed, sources};
use kingpost_codegen::{ArgKind, Options, PlacedKernel, Program, Target, generate};
use kingpost_interp::{InterpError, Memory, Value, interpret};
use kingpost_ir::text::parse;
use kingpost_ir::{Direction, Kernel, ScalarType, VarKind};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// Bytes of a vector, and what the compiler and the emulator are told.
const PROCESSORS: [(u32, &[&str], &[&str]); 2] = [
    (16, &[], &[]),
    (32, &["-march=armv8-a+sve", "-msve-vector-bits=256"], &["-cpu", "max,sve-default-vector-length=32"]),
];

/// A C program that runs a kernel once and prints the elements of what it may write; none if it has
/// an argument that is no number a literal of C can say.
fn program_text(program: &Program, memory: &Memory) -> Option<String> {
    let mut text = format!(
        "#include <stdio.h>\n{}\nint main(void)\n{{\n    void *args[{}];\n",
        program.source,
        program.plan.args.len()
    );
    let mut output = String::new();
    for (k, spec) in program.plan.args.iter().enumerate() {
        let zeros = |len: i64| Value::zeros(spec.ty, len as usize);
        let value = match &spec.kind {
            ArgKind::Param => Value::of_bits(spec.ty, &[memory.get_param(&spec.name)?]),
            ArgKind::Scalar => memory.get(&spec.name)?.clone(),
            ArgKind::Buffer { len, .. } => match memory.get(&spec.name) {
                Some(value) => value.clone(),
                None => zeros(len.eval(memory.params()).ok()?),
            },
            ArgKind::Scratch { len, .. } => zeros(len.eval(memory.params()).ok()?),
            ArgKind::Table(_) => return None,
        };
        let ty = match spec.ty {
            ScalarType::F64 => "double",
            ScalarType::F32 => "float",
            ScalarType::I32 => "int32_t",
            ScalarType::I64 => "int64_t",
            _ => return None,
        };
        let values: Vec<String> = value.to_f64().iter().map(|x| format!("{x:?}")).collect();
        // an array of no elements has a place, too
        let (len, values) = (values.len(), if values.is_empty() { "0".into() } else { values.join(", ") });
        let _ = writeln!(text, "    static {ty} a{k}[] = {{{values}}};\n    static {ty} *const p{k} = a{k};");
        let is_array = !matches!(spec.kind, ArgKind::Param | ArgKind::Scalar);
        let _ = writeln!(
            text,
            "    args[{k}] = {};",
            if is_array { format!("(void *)&p{k}") } else { format!("a{k}") }
        );
        if is_array {
            let _ = writeln!(
                output,
                "    for (int i = 0; i < {len}; ++i) printf(\"{k} %.17g\\n\", (double)a{k}[i]);"
            );
        }
    }
    let grid: Vec<_> =
        program.plan.grid.iter().map(|e| e.eval(memory.params()).ok()).collect::<Option<_>>()?;
    let _ = writeln!(text, "    const int64_t grid[3] = {{{}, {}, {}}};", grid[0], grid[1], grid[2]);
    let launch = if grid.contains(&0) {
        String::new()
    } else {
        format!("    {}_launch(args, grid);\n", program.entry)
    };
    Some(text + &launch + &output + "    return 0;\n}\n")
}

/// Compiles and runs a program; what it prints.
fn emulated(text: &str, folder: &Path, (_, compiler, emulator): (u32, &[&str], &[&str])) -> String {
    let (source, binary) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, text).unwrap();
    let output = Command::new(COMPILER)
        .args(["-O2", "-std=c11", "-static", "-fno-math-errno"])
        .args(compiler)
        .arg(&source)
        .arg("-o")
        .args([binary.as_path(), Path::new("-lm")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(EMULATOR).args(emulator).arg(&binary).output().unwrap();
    assert!(
        output.status.success(),
        "{:?}: {}\n{text}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What a kernel has written, by the names of its arguments.
fn written(kernel: &Kernel, program: &Program, printed: &str) -> BTreeMap<String, Value> {
    let mut found: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for line in printed.lines() {
        let (arg, value) = line.split_once(' ').unwrap();
        found.entry(arg.parse().unwrap()).or_default().push(value.parse().unwrap());
    }
    let of = |name: &str| program.plan.args.iter().position(|spec| spec.name == name).unwrap();
    let is_written = |kind: &VarKind| matches!(kind, VarKind::Argument(Direction::Out | Direction::InOut));
    let vars = kernel.vars.values().filter(|v| is_written(&v.kind));
    let value = |ty, v: Vec<f64>| match ty {
        ScalarType::F64 => Value::F64(v),
        ScalarType::F32 => Value::F32(v.iter().map(|x| *x as f32).collect()),
        ty => Value::of_bits(ty, &v.iter().map(|x| *x as i64).collect::<Vec<_>>()),
    };
    // an array without elements has no lines
    vars.map(|v| (v.name.clone(), value(v.ty, found.remove(&of(&v.name)).unwrap_or_default()))).collect()
}

/// Runs a kernel on each of the processors and compares it with the interpreter; whether it could
/// be run.
fn agrees(kernel: &Kernel, memory: &Memory, folder: &Path) -> bool {
    let program = generate(kernel, Target::C, &Options::default().with_trust(true)).unwrap();
    let mut expected = memory.clone();
    match interpret(kernel, &mut expected) {
        Ok(_) => {}
        Err(InterpError::Assumption { .. }) => return false, // sizes that do not go together
        Err(e) => panic!("{e}\n{kernel}"),
    }
    let text = if program.launches.is_none() { program_text(&program, memory) } else { None };
    let Some(text) = text else { return false };
    for processor in PROCESSORS {
        let found = written(kernel, &program, &emulated(&text, folder, processor));
        compare(&expected, &found)
            .unwrap_or_else(|e| panic!("vectors of {} bytes: {e}\n{kernel}\n{text}", processor.0));
    }
    true
}

/// The facts of vectors, and random loops over lanes.
#[test]
fn c_for_arm_agrees_with_the_interpreter() {
    let is_there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !is_long_run() || !is_there(COMPILER) || !is_there(EMULATOR) {
        return eprintln!("skipped: `make test-all` runs it, with `{COMPILER}` and `{EMULATOR}`");
    }
    let seed = seed();
    let (mut random, mut vectors, mut ran) = (Random(seed), 0, 0);
    let folder = tempfile::tempdir().unwrap();
    for fact in sources().iter().filter(|fact| fact.questions.iter().any(|q| q.text == "c")) {
        let kernel = parse(&fact.kernel.text).unwrap();
        // the largest sizes alone: an emulator is slow
        let Some(params) = parameter_sets(fact).pop() else { continue };
        ran += u32::from(agrees(&kernel, &random_memory(&kernel, &params, &mut random), folder.path()));
    }
    for _ in 0..24 {
        let text = Draw::kernel(&mut random);
        let kernel = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {}", e.render(&text)));
        if PlacedKernel::new(&kernel).is_ok() {
            let params = BTreeMap::from([("n".to_owned(), 3)]);
            vectors +=
                u32::from(agrees(&kernel, &random_memory(&kernel, &params, &mut random), folder.path()));
        }
    }
    assert!(ran >= 20 && vectors >= 12, "only {ran} facts and {vectors} loops over lanes ran");
}
