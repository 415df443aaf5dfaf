//! What is missing says how to get it. Child processes, since loaders read the environment once.

use crate::programs::axpy;
use kingpost_codegen::Target;
use kingpost_runtime::cuda::{nvrtc, ptxas};
use kingpost_runtime::{Backend, Cache, RuntimeError, Unavailable, devices, oclgrind, open, open_host};
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
