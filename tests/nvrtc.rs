//! CUDA source of the operator actions compiles with NVRTC for sm_90; no GPU is needed.
//!
//! `make test` compiles both ends of the degrees of each operator, `make test-all` all 70.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use purlin::Strategy;
use purlin::codegen::{Options, Target, generate};
use purlin::forms::lowering::{LoweringOptions, lower};
use purlin::forms::quadrature::QuadratureScheme;
use purlin::runtime::Cache;
use purlin::runtime::cuda::nvrtc;
use support::{all, cases, last_degree};

#[test]
fn cuda_sources_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let mut compiled = 0;
    for (operator, dim, degree) in cases() {
        if !all() && degree != 1 && degree != last_degree(dim) {
            continue;
        }
        let name = format!("{operator}_{dim}d_p{degree}");
        let options = LoweringOptions::new(&name).with_scheme(QuadratureScheme::Document);
        let lowered = lower(&operator.form(dim, degree).unwrap(), &options).unwrap();
        let (kernel, _) = Strategy::SingleCell.apply(&lowered.kernel).unwrap();
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        let object = nvrtc::compile_for("sm_90", &name, &program.source, &cache).unwrap();
        let [resources] = object.resources.as_slice() else { panic!("{name}: {}", object.log) };
        assert!(!object.cubin.is_empty() && resources.registers > 0 && resources.entry == program.entry);
        compiled += 1;
    }
    assert_eq!(compiled, if all() { 70 } else { 20 });
}

#[test]
fn a_source_that_is_wrong_is_refused_with_the_log() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let source = "extern \"C\" __global__ void f(double *x) { x[0] = y; }";
    let error = nvrtc::compile_for("sm_90", "f", source, &Cache::disabled()).unwrap_err().to_string();
    assert!(error.contains("`f` does not compile") && error.contains("\"y\" is undefined"), "{error}");
}

/// Kernels whose loops over lanes are vectors.
#[test]
fn vectors_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let facts = [
        "vectors_are_copied_whole",
        "vectors_calculate",
        "tails_of_vectors_stay_lanes",
        "lanes_that_are_no_vectors",
        "vectors_start_at_their_multiples",
        "lanes_sum_over_loops",
    ];
    for fact in facts {
        let text = std::fs::read_to_string(format!("crates/codegen/tests/kernels/{fact}.purlin")).unwrap();
        let kernel = purlin::ir::text::parse(&text).unwrap();
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        assert!(program.source.contains("reinterpret_cast<const double2 *>"), "{fact}");
        let object = nvrtc::compile_for("sm_90", fact, &program.source, &cache).unwrap();
        assert!(!object.cubin.is_empty() && object.resources[0].entry == program.entry, "{}", object.log);
    }
}

/// A fragment that other lanes hold comes by a shuffle into the operand of a matrix instruction.
#[test]
fn shuffles_in_front_of_an_intrinsic_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let text =
        std::fs::read_to_string("crates/codegen/tests/kernels/intrinsic_reads_another_lane.purlin").unwrap();
    let kernel = purlin::ir::text::parse(&text).unwrap();
    let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    let cache = Cache::from_environment();
    let object = nvrtc::compile_for("sm_90", "other_lane", &program.source, &cache).unwrap();
    assert!(!object.cubin.is_empty() && object.resources[0].entry == program.entry, "{}", object.log);
}
