//! What is missing says how to get it. Child processes, since loaders read the environment once.

use crate::programs::{axpy, get, put};
use kingpost_codegen::Target;
use kingpost_runtime::cuda::{nvrtc, ptxas};
use kingpost_runtime::{Arg, Backend, Cache, RuntimeError, Unavailable, devices, oclgrind, open, open_host};
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "a child process of the tests below runs it in a changed environment"]
fn child() {
    for entry in devices() {
        match entry.device {
            Ok(device) => println!("{}: {}", entry.backend, device.name),
            Err(reason) => println!("{}: {reason}", entry.backend),
        }
    }
    for name in ["c", "opencl"] {
        if let Err(e) = open(name) {
            println!("open {name}: {e}");
        }
    }
    if let Ok(device) = open("opencl") {
        let exe = device.compile(&axpy(Target::OpenCl)).unwrap();
        let (x, y) = (put(&*device, &[2.0]), put(&*device, &[1.0]));
        let args =
            [("n", Arg::Param(1)), ("a", Arg::F64(3.0)), ("x", Arg::Buffer(&x)), ("y", Arg::Buffer(&y))];
        device.launch(&exe, &args).unwrap();
        assert_eq!(get(&*device, &y), [7.5]);
        println!("opencl runs axpy");
    }
    if let Err(e) = nvrtc::compile_for("sm_90", "axpy", &axpy(Target::Cuda).source, &Cache::disabled()) {
        println!("nvrtc: {e}");
    }
    if let Err(e) = ptxas::report("sm_90", "") {
        println!("ptxas: {e}");
    }
    if let Err(e) = oclgrind::environment(Path::new(".")) {
        println!("oclgrind: {e}");
    }
}

/// What the child prints with `variables` set, from a directory below nothing of this repository.
fn child_output(variables: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "missing::child", "--ignored", "--nocapture"])
        .env_remove("OCL_ICD_VENDORS")
        .envs(variables.iter().copied())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.into_owned()
}

#[test]
fn without_a_compiler() {
    let text = child_output(&[("CC", "no-such-compiler -m64")]);
    assert!(text.contains("open c: no C compiler among `CC` = `no-such-compiler`; install one"), "{text}");
    let text = child_output(&[("PATH", "/nonexistent"), ("CC", "")]);
    assert!(text.contains("c: no C compiler among `cc`, `gcc`, `clang` in `PATH`; install one"), "{text}");
    assert!(text.contains("apt install gcc"), "{text}");
    let text = child_output(&[("CC", "false")]);
    assert!(text.contains("does not run: `--version` ended with"), "{text}");
    let Err(error) = open_host("/nonexistent/cc", Cache::disabled()) else { panic!("it opened") };
    assert!(matches!(error, RuntimeError::Unavailable(Unavailable::BrokenCompiler { .. })), "{error}");
}

#[test]
fn without_an_opencl_device() {
    let text = child_output(&[("OCL_ICD_VENDORS", "/nonexistent")]);
    assert!(text.contains("open opencl: an OpenCL library, but no device"), "{text}");
    assert!(text.contains("apt install pocl-opencl-icd"), "{text}");
}

#[test]
fn a_package_that_does_not_load() {
    let environment = tempfile::tempdir().unwrap();
    let lib = environment.path().join("lib");
    std::fs::create_dir(&lib).unwrap();
    std::fs::write(lib.join("libintelocl.so"), "").unwrap();
    let text = child_output(&[("VIRTUAL_ENV", environment.path().to_str().unwrap())]);
    assert!(text.contains("libintelocl.so` does not load: "), "{text}");
    assert!(text.contains("pip install intel-cmplr-lib-rt"), "{text}");
    // whoever names the loader's platforms means these alone
    let chosen = [("VIRTUAL_ENV", environment.path().to_str().unwrap()), ("OCL_ICD_VENDORS", "/nonexistent")];
    assert!(!child_output(&chosen).contains("libintelocl.so"));
}

/// Before pocl, if that is there, and with code that runs.
#[test]
fn intels_runtime_is_found_in_an_environment() {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/intel-opencl");
    if !environment.join("lib/libintelocl.so").is_file() {
        return println!("skipped: `scripts/intel-opencl.sh` installs it");
    }
    let text = child_output(&[("VIRTUAL_ENV", environment.to_str().unwrap())]);
    let first = text.lines().find(|line| line.starts_with("opencl: ")).unwrap();
    assert!(first.ends_with("(Intel(R) OpenCL)"), "{text}");
    assert!(text.contains("opencl runs axpy"), "{text}");
}

#[test]
fn without_cuda_tools() {
    // Only where no toolkit is installed system-wide; the wheels are out of the child's sight.
    let text = child_output(&[("CUDA_HOME", "/nonexistent"), ("KINGPOST_CUDA_WHEELS", "/nonexistent")]);
    if !text.contains("nvrtc: ") {
        println!("skipped: this machine has a CUDA toolkit on its search path");
        return;
    }
    assert!(text.contains("nvrtc: no NVRTC in `KINGPOST_CUDA_WHEELS`, `CUDA_HOME`, the system's"), "{text}");
    assert!(text.contains("ptxas: no ptxas in"), "{text}");
    assert_eq!(text.matches("pip install nvidia-cuda-nv").count(), 2, "{text}");
}

#[test]
fn every_backend_is_listed() {
    let entries = devices();
    for backend in Backend::ALL {
        assert!(entries.iter().any(|e| e.backend == backend), "{backend}");
    }
}
