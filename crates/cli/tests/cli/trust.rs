//! Code of callees that Kingpost does not ship is read, transformed, checked, and run only where it
//! is allowed to.

#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::Memory;
use kingpost::ir::Kernel;
use kingpost::ir::text::{parse, print};
use kingpost::runtime::{RuntimeError, open};
use kingpost::transforms::Recipe;
use kingpost::transforms::intrinsics::FMA_F64;
use kingpost::transforms::primitives::{DeclareCallee, ReplaceWithIntrinsic};
use kingpost::{LoadError, Loaded};
use std::path::Path;
use std::process::{Command, Output};

const PLAIN: &str = "kernel sums
param n: i32
arg x: f64[n] in
arg y: f64[n] inout

for i in 0..n
  s: y[i] += x[i]*x[i]
";

/// A callee of another author: what else it does is seen by the file that it makes.
fn own(file: &Path) -> String {
    format!(
        "callee own\n  arg a: f64 in\n  arg c: f64 inout\n\n  s: c += a*a\n  code c (\n    \"extern void *fopen(const \
         char *, const char *); extern int fclose(void *);\"\n    \"fclose(fopen(\\\"{}\\\", \\\"w\\\"));\"\n    \"{{c}} += {{a}}*{{a}};\"\n  )\n",
        file.display()
    )
}

fn with(callee: &str, name: &str) -> Recipe {
    Recipe::default().then(DeclareCallee::new(callee)).then(ReplaceWithIntrinsic::new(["s"], name))
}

fn memory() -> Memory {
    Memory::new().param("n", 3).value("x", vec![1.0, 2.0, 3.0]).value("y", vec![0.5; 3])
}

fn run(kernel: &Kernel, device: &str, trust: bool) -> Result<Vec<f64>, LoadError> {
    let device = open(device)?;
    let options = Options::default().with_trust(trust);
    let program = generate(kernel, device.info().backend.target(), &options).unwrap();
    let loaded = Loaded::new(&*device, &program, &memory())?;
    loaded.launch()?;
    loaded.f64s("y")
}

const RESULT: [f64; 3] = [1.5, 4.5, 9.5];

#[test]
fn foreign_code_runs_where_it_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("made");
    let kernel = with(&own(&file), "own").apply(&parse(PLAIN).unwrap()).unwrap();
    // what comes out of a text is the same
    for kernel in [parse(&print(&kernel)).unwrap(), kernel] {
        let program = generate(&kernel, Target::C, &Options::default()).unwrap();
        assert!(program.source.contains("fopen(") && program.untrusted == ["own"], "{program:?}");
        let refused = run(&kernel, "c", false).unwrap_err();
        let LoadError::Runtime(RuntimeError::Untrusted { entry, callee }) = &refused else {
            panic!("{refused}")
        };
        assert_eq!((&**entry, &**callee), ("sums", "own"));
        for way in ["`kingpost print`", "`--trust`", "`trust=True`", "`Options::with_trust`"] {
            assert!(refused.to_string().contains(way), "{refused}");
        }
        // the meaning is no one's code
        let opencl = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
        assert_eq!(opencl.untrusted, Vec::<String>::new());
        assert!(!file.exists());
    }
    let kernel = with(&own(&file), "own").apply(&parse(PLAIN).unwrap()).unwrap();
    assert_eq!(run(&kernel, "c", true).unwrap(), RESULT);
    assert!(file.exists());
}

#[test]
fn callees_that_kingpost_ships_need_no_trust() {
    let kernel = with(FMA_F64, "fma_f64").apply(&parse(PLAIN).unwrap()).unwrap();
    assert_eq!(run(&kernel, "c", false).unwrap(), RESULT);
    let changed = FMA_F64.replace("fma({a}, {b}, {c})", "fma({b}, {a}, {c})");
    let kernel = with(&changed, "fma_f64").apply(&parse(PLAIN).unwrap()).unwrap();
    assert!(matches!(run(&kernel, "c", false), Err(LoadError::Runtime(RuntimeError::Untrusted { .. }))));
}

/// The command line: each command that runs nothing, and each that does.
#[test]
fn commands_ask_for_trust_before_they_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("made");
    let (program, recipe) = (dir.path().join("sums.kingpost"), dir.path().join("recipe.json"));
    std::fs::write(&program, PLAIN).unwrap();
    std::fs::write(&recipe, with(&own(&file), "own").to_json().unwrap()).unwrap();
    let holes = dir.path().join("holes.kingpost");
    let steps = format!("{:?}", own(&file));
    let schedule = format!(
        "{PLAIN}\nschedule\ntile in [2, 4]\ndeclare_callee({steps})\nlet o, i_i = split_iname(i, tile)\n\
         replace_with_intrinsic([s], callee: own)\n"
    );
    std::fs::write(&holes, schedule).unwrap();
    let kingpost = |args: &[&str], more: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        command.args(args).args(more).current_dir(dir.path());
        command.output().unwrap()
    };
    let (program, recipe) = (program.to_str().unwrap(), recipe.to_str().unwrap());
    let with_recipe = |command: &'static str| [command, program, "--recipe", recipe];
    let text = |output: &Output| {
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let device = ["--device", "c", "--param", "n=9"];
    let free: [(&str, Vec<&str>); 4] = [
        ("print", vec!["--target", "c"]),
        ("steps", vec![]),
        ("stats", vec!["--param", "n=9"]),
        ("run", [&device[..], &["--check"]].concat()),
    ];
    for (command, more) in free {
        let output = kingpost(&with_recipe(command), &more);
        assert!(output.status.success() && !file.exists(), "{command}: {}", text(&output));
        let says = "not run: code of the callee `own` is run with --trust";
        assert_eq!(text(&output).contains(says), command == "run", "{}", text(&output));
    }
    let holes = ["tune", holes.to_str().unwrap(), "--time-limit", "60s"];
    let asks = [
        (with_recipe("run").to_vec(), [&device[..], &["--no-time"]].concat()),
        (with_recipe("steps").to_vec(), [&device[..], &["--time"]].concat()),
        (holes.to_vec(), device.to_vec()),
    ];
    for (command, more) in asks {
        let output = kingpost(&command, &more);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {}", text(&output));
        assert!(text(&output).contains("holds code of the callee `own`"), "{}", text(&output));
        assert!(!file.exists());
        let output = kingpost(&command, &[&more[..], &["--trust"]].concat());
        assert!(output.status.success() && file.exists(), "{command:?}: {}", text(&output));
        std::fs::remove_file(&file).unwrap();
    }
}
