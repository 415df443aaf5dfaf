//! Planted mistakes that oclgrind has to find, and a clean kernel in which it finds none.

use crate::programs::*;
use kingpost_codegen::{ArgKind, BufferAccess, HostExpr, LaunchPlan, Program, Target};
use kingpost_ir::ScalarType;
use kingpost_runtime::oclgrind::{self, FindingKind};
use kingpost_runtime::{Arg, open};
use std::process::Command;

/// Which kernel the child runs.
const CASE: &str = "KINGPOST_TEST_OCLGRIND_CASE";

/// A kernel over `x` (read) and `y` (updated) of 64 doubles, in 2 groups of 32.
fn planted(body: &str) -> Program {
    let source = format!(
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n\
         __kernel void planted(__global const double *x, __global double *y) {{\n\
         const int l = get_local_id(0), i = get_group_id(0) * 32 + l;\n{body}\n}}\n"
    );
    let len = || HostExpr::Const(64);
    let args = vec![
        arg("x", ScalarType::F64, ArgKind::Buffer { len: len(), access: BufferAccess::In }),
        arg("y", ScalarType::F64, ArgKind::Buffer { len: len(), access: BufferAccess::InOut }),
    ];
    let grid = [HostExpr::Const(2), HostExpr::Const(1), HostExpr::Const(1)];
    let (features, preconditions) = (vec![], vec![]);
    let plan = LaunchPlan {
        args,
        grid,
        block: [32, 1, 1],
        local_bytes: 256,
        dynamic_local_bytes: 0,
        maps: Vec::new(),
        private_bytes: 0,
        features,
        preconditions,
        defined: vec![],
        notes: vec![],
    };
    Program {
        target: Target::OpenCl,
        entry: "planted".into(),
        source,
        plan,
        contraction: true,
        repeated_writes: true,
        untrusted: vec![],
        launches: None,
    }
}

fn body(case: &str) -> &'static str {
    match case {
        "clean" => "__local double s[32]; s[l] = x[i]; barrier(CLK_LOCAL_MEM_FENCE); y[i] += s[31 - l];",
        "no_barrier" => "__local double s[32]; s[l] = x[i]; y[i] += s[31 - l];",
        "plain_update" => "y[i % 8] += x[i];",
        "uninitialised" => {
            "__local double s[32]; if (l < 31) s[l] = x[i]; barrier(CLK_LOCAL_MEM_FENCE); if (s[l] > 0.5) y[i] = 1.0;"
        }
        "unwritten" => "if (y[i] > 0.5) y[i] = x[i];",
        "divergence" => "if (l < 16) barrier(CLK_LOCAL_MEM_FENCE); y[i] = x[i];",
        "out_of_range" => "y[i] = x[i + 1];",
        other => panic!("no case `{other}`"),
    }
}

#[test]
#[ignore = "a child process of the tests below runs it under oclgrind"]
fn child() {
    let case = std::env::var(CASE).unwrap();
    if case == "threads" {
        return two_devices_at_once();
    }
    let device = open("opencl").unwrap();
    assert!(device.info().driver.contains("Oclgrind"), "{}", device.info().driver);
    let exe = device.compile(&planted(body(&case))).unwrap();
    let x = put(&*device, &fresh(64));
    let y = if case == "unwritten" { device.allocate(512).unwrap() } else { put(&*device, &[0.0; 64]) };
    device.launch(&exe, &[("x", Arg::Buffer(&x)), ("y", Arg::Buffer(&y))]).unwrap();
}

/// Kernels on two devices of two threads; without the shared lock, updates are lost.
fn two_devices_at_once() {
    let run = || {
        let device = open("opencl").unwrap();
        let exe = device.compile(&histogram(Target::OpenCl)).unwrap();
        let n = 2000;
        let (x, sums) = (put(&*device, &vec![1.0; n]), put(&*device, &[0.0; 3]));
        let args = [("n", Arg::Param(n as i64)), ("x", Arg::Buffer(&x)), ("sums", Arg::Buffer(&sums))];
        device.launch(&exe, &args).unwrap();
        assert_eq!(get(&*device, &sums), [667.0, 667.0, 666.0]);
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(run);
        run();
        other.join().unwrap();
    });
}

/// Runs `case` in a child under oclgrind; the kinds of what it found.
fn findings(case: &str) -> Vec<FindingKind> {
    let dir = tempfile::tempdir().unwrap();
    let environment = oclgrind::environment(dir.path()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "oclgrind::child", "--ignored", "--nocapture"])
        .env(CASE, case)
        .envs(environment)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let found = oclgrind::read_log(&oclgrind::log_file(dir.path())).unwrap();
    for finding in &found {
        println!("{case}: {finding}");
    }
    found.into_iter().map(|f| f.kind).collect()
}

#[test]
fn a_clean_kernel_has_no_findings() {
    assert_eq!(findings("clean"), []);
    assert_eq!(findings("threads"), []);
}

#[test]
fn planted_mistakes_are_found() {
    assert!(findings("no_barrier").contains(&FindingKind::DataRace));
    assert!(findings("plain_update").contains(&FindingKind::DataRace));
    assert!(findings("uninitialised").contains(&FindingKind::Uninitialised));
    assert!(findings("unwritten").contains(&FindingKind::Uninitialised));
    assert!(findings("divergence").contains(&FindingKind::BarrierDivergence));
    assert!(findings("out_of_range").contains(&FindingKind::InvalidAccess));
}
