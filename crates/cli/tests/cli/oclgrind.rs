//! Generated OpenCL under oclgrind, an independent checker: no race, no uninitialised and no
//! invalid access in one case of each operator; planted ones are found.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::bent_mesh;
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::Value;
use kingpost::kernels::Operator;
use kingpost::runtime::oclgrind::{self, Finding, FindingKind};
use kingpost::runtime::open;
use kingpost::{Loaded, Mapping, Problem, Random, transform};
use kingpost_sample::of_run;
use std::process::Command;

/// What the child process plants.
const PLANTED: &str = "KINGPOST_TEST_PLANTED";

/// Runs `command` with oclgrind as its only OpenCL device; what it found.
fn findings(command: &mut Command) -> Vec<Finding> {
    let dir = tempfile::tempdir().unwrap();
    let output = command.envs(oclgrind::environment(dir.path()).unwrap()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("Oclgrind") || text.contains("1 passed"), "another device ran: {text}");
    oclgrind::read_log(&oclgrind::log_file(dir.path())).unwrap()
}

#[test]
fn actions_are_clean() {
    let actions = [
        (Operator::Mass, "2", "5"),
        (Operator::Helmholtz, "3", "2"),
        (Operator::Laplace, "3", "2"),
        (Operator::Elasticity, "2", "5"),
        (Operator::Hyperelasticity, "2", "5"),
    ];
    for (operator, dim, cells) in of_run(actions, &[1, 4]) {
        // More than one work-group of 32 cells, the last one in part empty.
        let found = findings(Command::new(env!("CARGO_BIN_EXE_kingpost")).args([
            "run",
            operator.name(),
            "--dim",
            dim,
            "--degree",
            "2",
            "--cells",
            cells,
            "--device",
            "opencl",
            "--no-time",
        ]));
        assert_eq!(found, [], "{operator}");
    }
}

/// What a solver fills, copies and updates between kernels is written before it is read. Owned rows
/// are left out: LLVM makes a `freeze` of their packed places, an instruction that oclgrind does
/// not have.
#[test]
fn solvers_are_clean() {
    let assemblies = ["lookup-table", "full", "partial", "rowwise"];
    for assembly in of_run(assemblies, &[0]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        command.args(["solve", "poisson", "--dim", "2", "--cells", "3", "--device", "opencl"]);
        assert_eq!(findings(command.args(["--assembly", assembly])), [], "{assembly}");
    }
}

#[test]
#[ignore = "a child process of the test below runs it under oclgrind"]
fn child() {
    let device = open("opencl").unwrap();
    assert!(device.info().driver.contains("Oclgrind"), "{}", device.info().driver);
    let mesh = bent_mesh(2, 5);
    let mut problem = Problem::operator(Operator::Mass, 1, None, mesh, Random::fresh_seed()).unwrap();
    let (kernel, _) = transform(&problem.lowered.kernel, &Mapping::single_cell()).unwrap();
    let mut program = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
    match std::env::var(PLANTED).unwrap().as_str() {
        "nothing" => {}
        "plain_update" => program.source = with_plain_update(&program.source),
        "out_of_range" => {
            let Some(Value::I32(dofs)) = problem.memory.get("dofs") else { panic!("no map `dofs`") };
            let mut dofs = dofs.clone();
            *dofs.last_mut().unwrap() = problem.n_dofs as i32;
            problem.memory.set("dofs", dofs);
        }
        other => panic!("no plant `{other}`"),
    }
    Loaded::new(&*device, &program, &problem.memory).unwrap().launch().unwrap();
}

/// The source with its atomic addition made an ordinary one.
fn with_plain_update(source: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = source.split(|c| !is_name(c)).find(|word| word.contains("atomic_add_f64")).unwrap();
    let plain = "void plain_add(volatile __global double *p, double v) { *p = *p + v; }\n";
    let at = source.find("__kernel").unwrap();
    format!("{}{plain}{}", &source[..at], source[at..].replace(name, "plain_add"))
}

#[test]
fn planted_mistakes_are_found() {
    let kinds = |planted: &str| -> Vec<FindingKind> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "oclgrind::child", "--ignored", "--nocapture"]).env(PLANTED, planted);
        findings(&mut command).into_iter().map(|f| f.kind).collect()
    };
    assert_eq!(kinds("nothing"), []);
    assert!(kinds("plain_update").contains(&FindingKind::DataRace));
    assert!(kinds("out_of_range").contains(&FindingKind::InvalidAccess));
}
