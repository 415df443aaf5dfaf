//! Matrix instructions of AMD's wavefronts: products become them by a recipe, their meaning gives the same in the
//! interpreter, C and OpenCL, and clang compiles them.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::intrinsics::agree;
use kingpost::Random;
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, interpret};
use kingpost::ir::text::{parse, parse_callees};
use kingpost::ir::{AddressSpace, AxisTag};
use kingpost::runtime::{Cache, hip};
use kingpost::transforms::primitives::{
    DeclareCallee, InterchangeInames, JoinArrayAxes, JoinInames, ReplaceWithIntrinsic, SetAddressSpace,
    SplitArrayAxis, SplitIname, Tag, TransposeArrayAxes,
};
use kingpost::transforms::{Recipe, intrinsics};

/// A product of a 16·n × 16 matrix and a 16 × 16 one, by groups of 16 rows.
const PRODUCT: &str = "kernel matrix_product {sub_group(64)}
param n: i32
arg A: f64[16*n, 16] in
arg B: f64[16, 16] in
arg C: f64[16*n, 16] out
temp acc: f64[16, 16] private
assume n <= 1000000

for g in 0..n
  for i_0 in 0..16
    for j_0 in 0..16
      zero: acc[i_0, j_0] = 0.0
  for k in 0..16
    for i in 0..16
      for j in 0..16
        multiply: acc[i, j] += A[16*g + i, k]*B[k, j]
  for i_1 in 0..16
    for j_1 in 0..16
      store: C[16*g + i_1, j_1] = acc[i_1, j_1]
";

/// Products of 4×4 matrices, by groups of four.
const SMALL_PRODUCTS: &str = "kernel small_products {sub_group(64)}
param n: i32
arg A: f64[4*n, 4, 8] in
arg B: f64[4*n, 8, 4] in
arg C: f64[4*n, 4, 4] out
temp acc: f64[4, 4, 4] private
assume n <= 1000000

for g in 0..n
  for i_0 in 0..4
    for p_0 in 0..4
      for j_0 in 0..4
        zero: acc[i_0, p_0, j_0] = 0.0
  for k in 0..8
    for i in 0..4
      for p in 0..4
        for j in 0..4
          multiply: acc[i, p, j] += A[4*g + p, i, k]*B[4*g + p, k, j]
  for i_1 in 0..4
    for p_1 in 0..4
      for j_1 in 0..4
        store: C[4*g + p_1, i_1, j_1] = acc[i_1, p_1, j_1]
";

/// Loops over work-items and accumulators are there: the terms in fours, and these an instruction.
fn to_instructions(recipe: Recipe, callee: &str, own: Option<&str>) -> Recipe {
    let mut recipe = recipe.then(SplitIname::new("k", 4)).then(InterchangeInames::new("k_i", "lane"));
    if let Some(own) = own {
        recipe = recipe.then(InterchangeInames::new("k_i", own));
    }
    let [parsed] = parse_callees(callee).unwrap().try_into().unwrap();
    recipe =
        recipe.then(Tag::new("g", AxisTag::Group(0))).then(SetAddressSpace::new("acc", AddressSpace::Local));
    for lane in ["lane_0", "lane", "lane_1"] {
        recipe = recipe.then(Tag::new(lane, AxisTag::Local(0)));
    }
    recipe
        .then(SetAddressSpace::new("acc", AddressSpace::Private))
        .then(DeclareCallee::new(callee))
        .then(ReplaceWithIntrinsic::new(["lane"], parsed.name()))
}

/// Row `4*v + t` and column `j` of the result belong to work-item `16*t + j`.
fn of_product() -> Recipe {
    let mut recipe = Recipe::default();
    for suffix in ["_0", "", "_1"] {
        let [i, j, v, t, lane] = ["i", "j", "v", "t", "lane"].map(|name| format!("{name}{suffix}"));
        recipe = recipe
            .then(SplitIname { outer: Some(v.clone()), inner: Some(t.clone()), ..SplitIname::new(i, 4) })
            .then(InterchangeInames::new(v.as_str(), t.as_str()))
            .then(InterchangeInames::new(v.as_str(), j.as_str()))
            .then(JoinInames { joined: Some(lane), ..JoinInames::new(t, j) });
    }
    recipe = recipe
        .then(SplitArrayAxis::new("acc", 0, 4))
        .then(TransposeArrayAxes::new("acc", [1, 2, 0]))
        .then(JoinArrayAxes::new("acc", 0));
    to_instructions(recipe, intrinsics::MFMA_16X16X4_F64, Some("v"))
}

/// Row `i` and column `j` of product `p` belong to work-item `16*i + 4*p + j`.
fn of_small_products() -> Recipe {
    let mut recipe = Recipe::default();
    for suffix in ["_0", "", "_1"] {
        let [i, p, j, rows, lane] = ["i", "p", "j", "rows", "lane"].map(|name| format!("{name}{suffix}"));
        recipe = recipe
            .then(JoinInames { joined: Some(rows.clone()), ..JoinInames::new(i, p) })
            .then(JoinInames { joined: Some(lane), ..JoinInames::new(rows, j) });
    }
    recipe = recipe.then(JoinArrayAxes::new("acc", 0)).then(JoinArrayAxes::new("acc", 0));
    to_instructions(recipe, intrinsics::MFMA_4X4X4_F64, None)
}

#[test]
fn products_become_matrix_instructions() {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let n = 3;
    for (text, recipe, sizes, instruction) in [
        (PRODUCT, of_product(), [256 * n, 256, 256 * n], "v_mfma_f64_16x16x4"),
        (SMALL_PRODUCTS, of_small_products(), [128 * n, 128 * n, 64 * n], "v_mfma_f64_4x4x4"),
    ] {
        let plain = parse(text).unwrap();
        let replaced = recipe.apply(&plain).unwrap_or_else(|e| panic!("{e}\n{}", e.kernel));
        let mut values = |len: usize| random.numbers(len);
        let [a, b, c] = sizes;
        let memory = Memory::new().param("n", n as i64).value("A", values(a)).value("B", values(b));
        let memory = memory.value("C", vec![f64::NAN; c]);
        assert_eq!(agree(&replaced, &memory, "C", seed), agree(&plain, &memory, "C", seed));
        let program = generate(&replaced, Target::Hip, &Options::default()).unwrap();
        assert!(program.source.contains("__builtin_amdgcn_mfma_f64") && program.plan.block == [64, 1, 1]);
        for arch in ["gfx90a", "gfx942"] {
            match hip::compile_program(arch, &program, &Cache::from_environment()) {
                Ok(object) => {
                    assert!(object.assembly.contains(instruction), "{}", object.assembly);
                    assert_eq!(object.resources[0].scratch_bytes, 0, "{}", object.resources[0]);
                }
                Err(error) => {
                    assert!(hip::version().is_err(), "{error}\n{}", program.source);
                    println!("skipped: {error}");
                }
            }
        }
    }
}

/// What the code of a callee gives a work-item as each factor, and what the meaning adds to its results.
fn operands(text: &str, instruction: &str, memory: &Memory) -> ([Vec<f64>; 2], Vec<f64>) {
    let [callee] = parse_callees(text).unwrap().try_into().unwrap();
    let code = &text[text.find(instruction).unwrap()..];
    let element = |name: &str| {
        let from = code.find(&format!("{{{name}[")).unwrap() + 1;
        code[from..].split_once('}').unwrap().0
    };
    let mut found = memory.clone();
    interpret(&callee.kernel, &mut found).unwrap();
    let args = text.lines().filter(|line| line.starts_with("  arg ") && line.ends_with(" in"));
    let args: String = args.map(|line| format!("{}\n", line.trim())).collect();
    let factors = ["a", "b"].map(|name| {
        let kernel = format!(
            "kernel k\n{args}arg held: f64[64] out\n\nfor lane in 0..64\n  s: held[lane] = {} + 0.0*a{} + 0.0*b{}\n",
            element(name),
            zeros(text, "a"),
            zeros(text, "b")
        );
        let kernel = parse(&kernel).unwrap_or_else(|e| panic!("{}", e.render(&kernel)));
        let mut memory = memory.clone().value("held", vec![f64::NAN; 64]);
        interpret(&kernel, &mut memory).unwrap();
        memory.f64s("held").unwrap().to_vec()
    });
    (factors, found.f64s("c").unwrap().to_vec())
}

/// The index of the first element of an argument.
fn zeros(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(&format!("  arg {name}: "))).unwrap();
    let axes = line.split_once('[').unwrap().1.split_once(']').unwrap().0.split(',').count();
    format!("[{}]", vec!["0"; axes].join(", "))
}

/// The instructions as AMD's matrix instruction calculator lays their operands out (CDNA 3,
/// `v_mfma_f64_16x16x4_f64` and `v_mfma_f64_4x4x4_4b_f64`): with what the code of a callee gives them they
/// compute what its meaning says.
#[test]
fn the_instructions_compute_the_meaning() {
    let mut random = Random::new(Random::fresh_seed());
    let mut values = || random.numbers(64);
    let memory = Memory::new().value("a", values()).value("b", values());
    for text in [intrinsics::MFMA_16X16X4_F64, intrinsics::MFMA_16X16X4_F64_REGISTERS] {
        let memory = memory.clone().value("c", vec![0.0; 256]);
        let ([a, b], c) = operands(text, "mfma_f64_16x16x4f64(", &memory);
        for (row, column) in (0..16).flat_map(|row| (0..16).map(move |column| (row, column))) {
            let expected: f64 = (0..4).map(|k| a[row + 16 * k] * b[column + 16 * k]).sum();
            let (lane, v) = (16 * (row % 4) + column, row / 4);
            // sums of four terms in any order
            assert!((c[4 * lane + v] - expected).abs() < 1e-14, "{text}: row {row}, column {column}");
        }
    }
    let memory = memory.value("c", vec![0.0; 64]);
    let ([a, b], c) = operands(intrinsics::MFMA_4X4X4_F64, "mfma_f64_4x4x4f64(", &memory);
    for (lane, found) in c.iter().enumerate() {
        let (row, block, column) = (lane / 16, lane / 4 % 4, lane % 4);
        let factors = |k: usize| a[row + 4 * block + 16 * k] * b[column + 4 * block + 16 * k];
        let expected: f64 = (0..4).map(factors).sum();
        assert!((found - expected).abs() < 1e-14, "product {block}, row {row}, column {column}");
    }
}
