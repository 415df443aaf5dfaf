//! CUDA without a GPU: NVRTC and ptxas.

use crate::programs::*;
use kingpost_codegen::Target;
use kingpost_runtime::cuda::{nvrtc, ptxas};
use kingpost_runtime::{Cache, Origin, RuntimeError};

/// Whether NVRTC is here; says so where it is not.
fn present() -> bool {
    match nvrtc::version() {
        Ok(_) => true,
        Err(e) => {
            assert!(e.to_string().contains("nvidia-cuda-nvrtc"), "{e}");
            println!("skipped: no NVRTC; run scripts/cuda-wheels.sh");
            false
        }
    }
}

#[test]
fn a_double_atomic_compiles_for_sm_90_and_both_reports_agree() {
    if !present() {
        return;
    }
    let program = histogram(Target::Cuda);
    let object = nvrtc::compile_for("sm_90", &program.entry, &program.source, &Cache::disabled()).unwrap();
    assert!(object.ptx.contains(".target sm_90"));
    assert!(object.ptx.contains("red.global.add.f64") || object.ptx.contains("atom.global.add.f64"));
    assert_eq!(&object.cubin[..4], b"\x7fELF");
    let [own] = &object.resources[..] else { panic!("{}", object.log) };
    assert_eq!(own.entry, "histogram");
    // The kernel holds a few addresses and one double; 255 would mean that the figure is not read.
    assert!((4..=32).contains(&own.registers), "{own:?}");
    assert_eq!((own.spill_stores, own.spill_loads, own.stack_bytes, own.shared_bytes), (0, 0, 0, 0));
    match ptxas::report("sm_90", &object.ptx) {
        Ok(report) => assert_eq!(report, object.resources),
        Err(RuntimeError::Unavailable(e)) => println!("skipped: {e}"),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn shared_memory_and_a_stack_are_reported() {
    if !present() {
        return;
    }
    let source = r#"
extern "C" __global__ void f(double *out, const double *in, int at) {
  __shared__ double s[96];
  double t[40];
  for (int i = 0; i < 40; ++i) t[i] = in[i * threadIdx.x];
  s[threadIdx.x] = t[at];
  __syncthreads();
  out[threadIdx.x] = s[95 - threadIdx.x] + t[at / 2];
}
"#;
    let object = nvrtc::compile_for("sm_90", "f", source, &Cache::disabled()).unwrap();
    let own = &object.resources[0];
    assert_eq!((own.shared_bytes, own.stack_bytes, own.barriers), (96 * 8, 40 * 8, 1), "{}", object.log);
}

#[test]
fn a_mistake_or_an_unknown_architecture_shows_the_log() {
    if !present() {
        return;
    }
    let compile = |arch: &str, source: &str| nvrtc::compile_for(arch, "f", source, &Cache::disabled());
    let error = compile("sm_90", "planted_mistake;").unwrap_err().to_string();
    assert!(error.contains("planted_mistake") && error.contains("f.cu(1)"), "{error}");
    let error = compile("sm_1", "").unwrap_err();
    assert!(matches!(error, RuntimeError::Compile { .. }), "{error}");
    assert!(error.to_string().contains("sm_1"), "{error}");
    assert!(matches!(compile("sm_90", "a\0b"), Err(RuntimeError::Compile { .. })));
}

#[test]
fn objects_are_cached_by_source_and_architecture() {
    if !present() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let source = axpy(Target::Cuda).source;
    let first = nvrtc::compile_for("sm_90", "axpy", &source, &cache).unwrap();
    let second = nvrtc::compile_for("sm_90", "axpy", &source, &cache).unwrap();
    assert_eq!((first.origin, second.origin), (Origin::Built, Origin::Disk));
    assert_eq!((&first.ptx, &first.cubin, &first.resources), (&second.ptx, &second.cubin, &second.resources));
    let other = nvrtc::compile_for("sm_80", "axpy", &source, &cache).unwrap();
    assert_eq!(other.origin, Origin::Built);
}

#[test]
fn without_a_driver_nothing_panics() {
    if let Err(error) = kingpost_runtime::open("cuda") {
        assert!(matches!(error, RuntimeError::Unavailable(_)), "{error}");
        let listed = kingpost_runtime::devices();
        assert!(listed.iter().any(|e| e.device.as_ref().is_err_and(|why| {
            e.backend == kingpost_runtime::Backend::Cuda && error.to_string() == why.to_string()
        })));
    }
}
