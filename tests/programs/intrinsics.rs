//! Calls and intrinsics: the interpreter, C, OpenCL and, where there is a card, CUDA agree; a
//! matrix product becomes FP64 matrix instructions by a recipe, and NVRTC compiles it.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, interpret};
use kingpost::ir::text::{parse, parse_callees};
use kingpost::ir::{AddressSpace, AxisTag, Kernel};
use kingpost::runtime::{Cache, cuda::nvrtc, open};
use kingpost::transforms::Recipe;
use kingpost::transforms::intrinsics;
use kingpost::transforms::primitives::{
    DeclareCallee, InlineCall, InterchangeInames, JoinArrayAxes, JoinInames, ReplaceWithIntrinsic,
    SetAddressSpace, SplitArrayAxis, SplitIname, Tag,
};
use kingpost::transforms::steps;
use kingpost::{Loaded, Random, RelativeError};

fn on_device(name: &str, kernel: &Kernel, memory: &Memory, output: &str) -> (String, Vec<f64>) {
    let device = open(name).unwrap();
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::new(&*device, &program, memory).unwrap();
    loaded.launch().unwrap();
    (program.source, loaded.f64s(output).unwrap())
}

/// The result of the interpreter, after C, OpenCL and, where there is a card, CUDA gave the same.
pub fn agree(kernel: &Kernel, memory: &Memory, output: &str, seed: u64) -> Vec<f64> {
    let mut interpreted = memory.clone();
    interpret(kernel, &mut interpreted).unwrap();
    let expected = interpreted.f64s(output).unwrap().to_vec();
    assert!(expected.iter().any(|y| y.abs() > 1e-6), "a result of nothing but zeros checks nothing");
    let card = open("cuda").inspect_err(|e| println!("skipped: cuda: {e}"));
    for device in ["c", "opencl"].into_iter().chain(card.is_ok().then_some("cuda")) {
        let (source, found) = on_device(device, kernel, memory, output);
        let error = RelativeError::between(&found, &expected);
        // Fused multiply-adds round once where the interpreter rounds twice: a few units of the
        // last place.
        assert!(error.is_within(1e-14), "{device}, seed {seed}: {error:?}\n{source}");
    }
    expected
}

const AXPY: &str = "kernel axpy
param n: i32
arg alpha: f64 in
arg u: f64[4*n] in
arg v: f64[4*n] inout
arg d: f64[n] out
temp acc: f64 private

for i in 0..n
  for j in 0..4
    add: v[4*i + j] += u[4*i + j]*alpha
  zero: acc = 0.0
  for k in 0..4
    dot: acc += u[4*i + k]*v[4*i + 3 - k]
  store: d[i] = acc
";

#[test]
fn vectors_and_fused_multiply_adds() {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let plain = parse(AXPY).unwrap();
    let recipe = Recipe::default()
        .then(DeclareCallee::new(intrinsics::AXPY4_F64))
        .then(DeclareCallee::new(intrinsics::FMA_F64))
        .then(ReplaceWithIntrinsic::new(["j"], "axpy4_f64"))
        .then(ReplaceWithIntrinsic::new(["dot"], "fma_f64"));
    let replaced = recipe.apply(&plain).unwrap();
    let n = 37;
    let mut values = |len: usize| random.numbers(len);
    let memory = Memory::new()
        .param("n", n as i64)
        .value("alpha", values(1))
        .value("u", values(4 * n))
        .value("v", values(4 * n))
        .value("d", vec![f64::NAN; n]);
    for output in ["v", "d"] {
        assert_eq!(agree(&replaced, &memory, output, seed), agree(&plain, &memory, output, seed));
    }
    let (c, _) = on_device("c", &replaced, &memory, "v");
    assert!(c.contains("kingpost_v4") && c.contains("acc = fma("), "{c}");
    let (opencl, _) = on_device("opencl", &replaced, &memory, "v");
    assert!(opencl.contains("vstore4(") && opencl.contains("acc = fma("), "{opencl}");
    let back = Recipe::default().then(InlineCall::new("axpy4_f64")).then(InlineCall::new("fma_f64"));
    assert_eq!(back.apply(&replaced).unwrap(), plain);
}

/// A product of an 8·n × 16 matrix and a 16 × 8 one, by groups of 8 rows.
const PRODUCT: &str = "kernel matrix_product
param n: i32
arg A: f64[8*n, 16] in
arg B: f64[16, 8] in
arg C: f64[8*n, 8] out
temp acc: f64[8, 8] private
assume n <= 1000000

for g in 0..n
  for i_0 in 0..8
    for j_0 in 0..8
      zero: acc[i_0, j_0] = 0.0
  for k in 0..16
    for i in 0..8
      for j in 0..8
        multiply: acc[i, j] += A[8*g + i, k]*B[k, j]
  for i_1 in 0..8
    for j_1 in 0..8
      store: C[8*g + i_1, j_1] = acc[i_1, j_1]
";

/// Maps rows and pairs of columns to 32 work-items, as the instruction holds its fragments.
fn to_matrix_instructions() -> Recipe {
    let mut recipe = Recipe::default();
    for suffix in ["_0", "", "_1"] {
        recipe = recipe
            .then(SplitIname {
                outer: Some(format!("q{suffix}")),
                inner: Some(format!("r{suffix}")),
                ..SplitIname::new(format!("j{suffix}"), 2)
            })
            .then(JoinInames {
                joined: Some(format!("lane{suffix}")),
                ..JoinInames::new(format!("i{suffix}"), format!("q{suffix}"))
            });
    }
    recipe
        .then(SplitArrayAxis::new("acc", 1, 2))
        .then(JoinArrayAxes::new("acc", 0))
        .then(SplitIname::new("k", 4))
        .then(InterchangeInames::new("k_i", "lane"))
        .then(InterchangeInames::new("k_i", "r"))
        .then(Tag::new("g", AxisTag::Group(0)))
        .then(SetAddressSpace::new("acc", AddressSpace::Local))
        .then(Tag::new("lane_0", AxisTag::Local(0)))
        .then(Tag::new("lane", AxisTag::Local(0)))
        .then(Tag::new("lane_1", AxisTag::Local(0)))
        .then(SetAddressSpace::new("acc", AddressSpace::Private))
        .then(DeclareCallee::new(intrinsics::MMA_M8N8K4_F64))
        .then(ReplaceWithIntrinsic::new(["lane"], "mma_m8n8k4_f64"))
}

#[test]
fn a_matrix_product_becomes_matrix_instructions() {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let plain = parse(PRODUCT).unwrap();
    let recipe = to_matrix_instructions();
    let replaced = recipe.apply(&plain).unwrap_or_else(|e| panic!("{e}\n{}", e.kernel));
    assert_eq!(steps().recipe(&recipe.to_json().unwrap()).unwrap(), recipe);
    let n = 3;
    let mut values = |len: usize| random.numbers(len);
    let memory = Memory::new()
        .param("n", n as i64)
        .value("A", values(8 * n * 16))
        .value("B", values(16 * 8))
        .value("C", vec![f64::NAN; 8 * n * 8]);
    assert_eq!(agree(&replaced, &memory, "C", seed), agree(&plain, &memory, "C", seed));
    let program = generate(&replaced, Target::Cuda, &Options::default()).unwrap();
    assert!(program.source.contains("mma.sync.aligned.m8n8k4"), "{}", program.source);
    assert_eq!(program.plan.block, [32, 1, 1]);
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let object = nvrtc::compile_for("sm_90", "product", &program.source, &Cache::from_environment()).unwrap();
    let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
    assert!(!object.cubin.is_empty() && resources.registers > 0);
}

/// The fragments of the instruction, as its meaning has them: an 8×4 matrix times a 4×8 one, each
/// element of the result with one work-item.
#[test]
fn the_fragments_cover_the_matrices_once() {
    let [callee] = parse_callees(intrinsics::MMA_M8N8K4_F64).unwrap().try_into().unwrap();
    let (a, b): (Vec<f64>, Vec<f64>) =
        ((0..32).map(|k| f64::from(k * k % 11)).collect(), (0..32).map(|k| f64::from(k * 5 % 7)).collect());
    let mut memory = Memory::new().value("a", a.clone()).value("b", b.clone()).value("c", vec![0.0; 64]);
    interpret(&callee.kernel, &mut memory).unwrap();
    let c = memory.f64s("c").unwrap();
    for row in 0..8 {
        for column in 0..8 {
            let expected: f64 = (0..4).map(|k| a[4 * row + k] * b[8 * k + column]).sum();
            let (lane, r) = (4 * row + column / 2, column % 2);
            assert_eq!(c[2 * lane + r], expected, "row {row}, column {column}");
        }
    }
}
