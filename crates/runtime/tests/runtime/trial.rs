//! A compiler that ends its process: an error here, and the process goes on.

use crate::programs::*;
use kingpost_codegen::{ArgKind, BufferAccess, HostExpr, LaunchPlan, Program, Target};
use kingpost_ir::ScalarType;
use kingpost_runtime::{Arg, RuntimeError, open};
use std::process::Command;

/// pocl 3.1 fails in an assertion of its own.
const DEADLY: &str =
    "__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void deadly(__global int *restrict b)
{
    __local int a[20];
    const int l0 = get_local_id(0);
    for (int o = 0; o < 5; ++o) {
        for (int k = 0; k < 10; ++k) {
            a[2*k + l0] = 1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        b[2*o + l0] = a[4*o + 2*l0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
";

/// Intel's 2026.2 ends in its vectoriser.
const DEADLY_TO_INTELS: &str = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel __attribute__((reqd_work_group_size(2, 1, 1))) void deadly(__global int *restrict b)
{
    double sum = 0.0;
    for (int i = 0; i < b[0]; ++i) {
        sum += sin(i < b[1] ? 0.5 : (double)b[i]);
    }
    b[2] = sum;
}
";

fn deadly(source: &str) -> Program {
    let len = HostExpr::Const(10);
    let one = || HostExpr::Const(1);
    let plan = LaunchPlan {
        args: vec![arg("b", ScalarType::I32, ArgKind::Buffer { len, access: BufferAccess::Out })],
        grid: [one(), one(), one()],
        block: [2, 1, 1],
        local_bytes: 80,
        dynamic_local_bytes: 0,
        maps: Vec::new(),
        private_bytes: 0,
        defined: Vec::new(),
        notes: Vec::new(),
        features: vec![],
        preconditions: vec![],
    };
    let target = Target::OpenCl;
    Program {
        target,
        entry: "deadly".into(),
        source: source.into(),
        plan,
        contraction: true,
        repeated_writes: true,
        untrusted: vec![],
        launches: None,
    }
}

#[test]
#[ignore = "a child process of the test below runs it with optimisation"]
fn child() {
    let device = match open("opencl") {
        Ok(device) => device,
        Err(e) => return println!("skipped: {e}"),
    };
    let (source, said) = if device.info().driver.contains("PoCL 3.1") {
        (DEADLY, "Assertion `exit != NULL' failed.")
    } else if device.info().driver.contains("2026.22.10") {
        (DEADLY_TO_INTELS, "1.\tRunning pass \"vplan-vec\" on function \"deadly\"")
    } else {
        return println!("skipped: {} may compile it", device.info().driver);
    };
    for _ in 0..2 {
        // tried, then from the cache
        let error = device.compile(&deadly(source)).unwrap_err();
        let RuntimeError::CompilerEnds { entry, reason, .. } = &error else { panic!("{error}") };
        assert_eq!((&**entry, &**reason), ("deadly", said));
        assert!(error.to_string().contains("`POCL_WORK_GROUP_METHOD=workitemloops`"), "{error}");
    }
    let exe = device.compile(&axpy(Target::OpenCl)).unwrap();
    let (x, y) = (put(&*device, &[2.0]), put(&*device, &[1.0]));
    let args = [("n", Arg::Param(1)), ("a", Arg::F64(3.0)), ("x", Arg::Buffer(&x)), ("y", Arg::Buffer(&y))];
    device.launch(&exe, &args).unwrap();
    assert_eq!(get(&*device, &y), [7.5]);
}

#[test]
fn intels_compiler_does_not_end_this_process() {
    let environment = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/intel-opencl");
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "trial::child", "--ignored", "--nocapture"]).current_dir(dir.path());
    // without it: pocl, as below
    command.env("VIRTUAL_ENV", environment).env("KINGPOST_CACHE_DIR", dir.path().join("objects"));
    let output = command.env_remove("POCL_EXTRA_BUILD_FLAGS").env_remove("OCL_ICD_VENDORS").output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_compiler_that_ends_its_process_does_not_end_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "trial::child", "--ignored", "--nocapture"]).current_dir(dir.path());
    command.env("POCL_CACHE_DIR", dir.path()).env("KINGPOST_CACHE_DIR", dir.path().join("objects"));
    let output = command.env_remove("POCL_EXTRA_BUILD_FLAGS").output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    println!("{said}");
}
