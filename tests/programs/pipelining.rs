//! A tiled matrix product whose tiles are fetched one iteration ahead: the same product on C and
//! OpenCL, with one barrier fewer in an iteration.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, Value};
use kingpost::ir::{AddressSpace, Kernel, text};
use kingpost::runtime::{Device, open};
use kingpost::transforms::Recipe;
use kingpost::transforms::primitives::{BufferWrites, PipelineLoop, PrefetchArray};
use kingpost::{Loaded, Random};

/// Blocks of 8 x 8 entries on work-groups, partial ones at the end of the rows and columns.
const PRODUCT: &str = "kernel matmul
param n: i32
arg a: f64[n, n] in
arg b: f64[n, n] in
arg c: f64[n, n] inout
for i_o in 0..floor_div(n + 7, 8) {g.1}
  for j_o in 0..floor_div(n + 7, 8) {g.0}
    for k_o in 0..floor_div(n + 7, 8)
      for i in 0..min(8, n - 8*i_o) {l.1}
        for j in 0..min(8, n - 8*j_o) {l.0}
          for k in 0..min(8, n - 8*k_o)
            s: c[8*i_o + i, 8*j_o + j] += a[8*i_o + i, 8*k_o + k]*b[8*k_o + k, 8*j_o + j]
";

fn recipe(pipelined: bool) -> Recipe {
    let tile = |var: &str| PrefetchArray::new(var, "k_o", AddressSpace::Local).by_work_items([8, 8]);
    let recipe = Recipe::default()
        .then(BufferWrites::new("c", "j_o", AddressSpace::Local).by_work_items([8, 8]))
        .then(tile("a"))
        .then(tile("b"));
    if pipelined { recipe.then(PipelineLoop::new("k_o", ["a_tile", "b_tile"])) } else { recipe }
}

fn kernel(pipelined: bool) -> Kernel {
    let product = text::parse(PRODUCT).unwrap_or_else(|e| panic!("{}", e.render(PRODUCT)));
    recipe(pipelined).apply(&product).unwrap_or_else(|e| panic!("{e}"))
}

/// Largest error of `c + a b` relative to the sum of the magnitudes of its terms.
fn error(device: &dyn Device, kernel: &Kernel, n: usize, random: &mut Random) -> f64 {
    let mut draw = || random.numbers(n * n);
    let (a, b, c) = (draw(), draw(), draw());
    let memory = Memory::new()
        .param("n", n as i64)
        .value("a", Value::F64(a.clone()))
        .value("b", Value::F64(b.clone()))
        .value("c", Value::F64(c.clone()));
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::new(device, &program, &memory).unwrap();
    loaded.launch().unwrap();
    let found = loaded.f64s("c").unwrap();
    let mut worst = 0.0_f64;
    for i in 0..n {
        for j in 0..n {
            let (mut exact, mut size) = (c[n * i + j], c[n * i + j].abs());
            for k in 0..n {
                exact += a[n * i + k] * b[n * k + j];
                size += (a[n * i + k] * b[n * k + j]).abs();
            }
            let found = found[n * i + j];
            worst = worst.max(if found.is_nan() { f64::INFINITY } else { (found - exact).abs() / size });
        }
    }
    worst
}

#[test]
fn products_agree() {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let mut devices = vec![open("c").unwrap()];
    match open("opencl") {
        Ok(device) => devices.push(device),
        Err(e) => eprintln!("skipped: no OpenCL device ({e})"),
    }
    let kernel = kernel(true);
    for device in &devices {
        for n in [1, 7, 8, 9, 24, 37] {
            let error = error(&**device, &kernel, n, &mut random);
            // 1e-14: sums of at most 38 terms in f64, relative to their magnitudes
            assert!(error <= 1e-14, "{error:e} at n = {n} on {}, seed {seed}", device.info().name);
        }
    }
}

#[test]
fn one_barrier_in_an_iteration() {
    // OpenCL has further ones before loops, for pocl
    let barriers = |pipelined| {
        let program = generate(&kernel(pipelined), Target::Cuda, &Options::default()).unwrap();
        let source = program.source;
        let from = source.find("for (int k_o").unwrap_or_else(|| panic!("{source}"));
        source[from..].matches("__sync").count()
    };
    // what is stored after the loop is what each work-item has added up itself
    assert_eq!((barriers(false), barriers(true)), (2, 1));
}
