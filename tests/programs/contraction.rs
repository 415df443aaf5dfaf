//! Contraction of `a*b + c` to one rounding: allowed by default, and off on every target when asked
//! for; what a compiler is told to find out whose fault a wrong result is.
#![allow(clippy::unwrap_used)]

use kingpost::Loaded;
use kingpost::codegen::{Options, Program, Target, generate};
use kingpost::interp::{Memory, interpret};
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Backend, Cache, Optimisation, open};

const N: usize = 1000;

/// 0 where every operation rounds; one rounding fewer leaves the rounding error of a product, and
/// often a nan.
const ROOT: &str = "kernel root\nparam n: i32\narg a: f64[n] in\narg b: f64[n] in\narg y: f64[n] out\n\
                    for i in 0..n\n  s: y[i] = sqrt(a[i]*a[i] - b[i]*b[i])\n";

fn memory() -> Memory {
    let values: Vec<f64> = (0..N).map(|k| 0.1 + k as f64 / 7.0).collect();
    Memory::new().param("n", N as i64).value("a", values.clone()).value("b", values)
}

fn program(target: Target, contraction: bool) -> Program {
    let kernel = kingpost::ir::text::parse(ROOT).unwrap();
    generate(&kernel, target, &Options::default().with_contraction(contraction)).unwrap()
}

/// What a device makes of it.
fn result(device: &str, contraction: bool, optimisation: Optimisation) -> Vec<f64> {
    let device = open(device).unwrap();
    let program = program(device.info().backend.target(), contraction);
    let executable = device.compile_as(&program, optimisation).unwrap();
    let loaded = Loaded::compiled(&*device, executable, &memory()).unwrap();
    loaded.launch().unwrap();
    loaded.f64s("y").unwrap()
}

#[test]
fn without_contraction_every_target_rounds_as_the_interpreter() {
    let mut expected = memory();
    interpret(&kingpost::ir::text::parse(ROOT).unwrap(), &mut expected).unwrap();
    let zeros = vec![0.0; N];
    assert_eq!(expected.f64s("y"), Some(&zeros[..]));
    for device in ["c", "opencl", "cuda"] {
        if let Err(e) = open(device) {
            println!("skipped: {e}");
            continue;
        }
        for optimisation in [Optimisation::Full, Optimisation::Defined, Optimisation::Off] {
            assert_eq!(result(device, false, optimisation), zeros, "{device}, {optimisation:?}");
        }
    }
}

#[test]
fn with_contraction_the_rounding_of_a_product_is_left() {
    let fused = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" fma "));
    if !fused {
        println!("skipped: this processor has no fused multiply-add");
        return;
    }
    let found = result("c", true, Optimisation::Full);
    assert!(found.iter().any(|x| x.is_nan()) && found.iter().any(|x| *x > 0.0), "{found:?}");
}

#[test]
fn sources_and_options_say_what_is_allowed() {
    let opencl = |contraction| program(Target::OpenCl, contraction).source;
    assert_eq!(opencl(false), format!("#pragma OPENCL FP_CONTRACT OFF\n\n{}", opencl(true)));
    let said = "// to be compiled with -ffp-contract=off\n\n";
    for (target, on, off, said) in [
        (Target::C, "-ffp-contract=fast", "-ffp-contract=off", said),
        (Target::Hip, "-ffp-contract=fast", "-ffp-contract=off", said),
        (Target::Cuda, "--fmad=true", "--fmad=false", ""),
    ] {
        let [with, without] = [true, false].map(|c| program(target, c));
        assert_eq!(without.source, format!("{said}{}", with.source));
        assert_eq!((with.contraction_option(), without.contraction_option()), (Some(on), Some(off)));
    }
    assert_eq!(program(Target::OpenCl, true).contraction_option(), None);
    assert_eq!(Optimisation::Off.options(Backend::C), ["-O0"]);
    assert_eq!(Optimisation::Off.options(Backend::OpenCl), ["-cl-opt-disable"]);
    assert_eq!(Optimisation::Off.options(Backend::Cuda), ["--device-debug"]);
}

#[test]
fn nvrtc_takes_the_options() {
    if nvrtc::version().is_err() {
        println!("skipped: no NVRTC");
        return;
    }
    let ptx = |contraction, optimisation| {
        let program = program(Target::Cuda, contraction);
        nvrtc::compile_program("sm_90", &program, optimisation, &Cache::disabled()).unwrap().ptx
    };
    let full = ptx(true, Optimisation::Full);
    // ptxas fuses products that do not say how they round
    assert!(full.contains("mul.f64") && !full.contains(".target sm_90, debug"), "{full}");
    let rounded = ptx(false, Optimisation::Full);
    assert!(rounded.contains("mul.rn.f64") && !rounded.contains("mul.f64"), "{rounded}");
    assert!(ptx(false, Optimisation::Off).contains(".target sm_90, debug"));
    assert!(full.contains("ld.global.nc"));
    // without `restrict` nothing says that a store does not change what is read
    assert!(!ptx(true, Optimisation::Defined).contains("ld.global.nc"));
}
