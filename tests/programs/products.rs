//! Products of matrices by schedules, compared with sums in double precision on the host; what is not written
//! keeps its poison.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, Value};
use kingpost::ir::{Kernel, ScalarType};
use kingpost::runtime::{Cache, Optimisation, cuda::nvrtc, open};
use kingpost::transforms::steps;
use kingpost::{Loaded, Random, RelativeError};

/// What a program with a schedule after it becomes.
pub(crate) fn scheduled(program: &str) -> Kernel {
    let (kernel, script) = steps().file(program).unwrap_or_else(|e| panic!("{}", e.render(program)));
    script.unwrap().apply(&kernel).unwrap_or_else(|e| panic!("{e}")).kernel().clone()
}

/// Tiles of terms fewer and more than buffers; rows and columns of different numbers.
#[test]
fn a_product_by_copies_ahead_and_matrix_instructions() {
    let kernel = scheduled(include_str!("../../examples/dgemm.kingpost"));
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let card = open("cuda").inspect_err(|e| println!("skipped: cuda: {e}"));
    for (m, n, k) in [(1, 1, 1), (1, 2, 5)] {
        let (rows, columns, terms) = (128 * m, 128 * n, 16 * k);
        let (a, b) = (random.numbers(rows * terms), random.numbers(terms * columns));
        let memory = Memory::new()
            .param("m", m as i64)
            .param("n", n as i64)
            .param("k", k as i64)
            .value("a", a.clone())
            .value("b", b.clone())
            .value("c", vec![f64::NAN; rows * columns]);
        let product = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            (0..terms).map(|q| a[i * terms + q] * b[q * columns + j]).sum::<f64>()
        };
        let expected: Vec<f64> = (0..rows * columns).map(product).collect();
        for name in ["c", "opencl"].into_iter().chain(card.is_ok().then_some("cuda")) {
            let device = open(name).unwrap();
            let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
            let loaded = Loaded::new(&*device, &program, &memory).unwrap();
            loaded.launch().unwrap();
            let error = RelativeError::between(&loaded.f64s("c").unwrap(), &expected);
            // sums of 80 terms in another order
            assert!(error.is_within(1e-13), "{name}, {m} {n} {k}, seed {seed}: {error:?}");
        }
    }
    check_copies(&kernel);
}

/// The two groups of copies of an iteration go on while the tile after the next one is waited for; nothing is
/// spilled.
fn check_copies(kernel: &Kernel) {
    let source = generate(kernel, Target::Cuda, &Options::default()).unwrap().source;
    let (_, tiles) = source.split_once("for (int t = 0").unwrap();
    let place = |what: &str| tiles.find(what).unwrap_or_else(|| panic!("no {what} in\n{source}"));
    let in_order =
        ["cp.async.cg", "commit_group", "mma.sync", "wait_group 2;", "__syncthreads", "wait_group 0;"];
    assert!(in_order.map(place).is_sorted(), "{source}");
    assert_eq!(tiles.matches("cp.async.cg").count(), 8);
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let object = nvrtc::compile_for("sm_90", "dgemm", &source, &Cache::from_environment()).unwrap();
    let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
    assert_eq!(resources.spill_stores + resources.spill_loads, 0, "{}", object.log);
}

/// Products of halves: by matrix instructions of a sub-group on fragments, and by those of a team of four
/// sub-groups on tiles.
#[test]
fn products_of_halves() {
    let registers = include_str!("../../examples/hgemm_registers.kingpost");
    let teams = include_str!("../../examples/hgemm.kingpost");
    let (few, many) = ((128, 256), (1024, 128)); // rows and columns of a block
    for (text, ty, block, instruction) in [
        (registers, ScalarType::Bf16, few, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        (registers, ScalarType::F16, few, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (teams, ScalarType::Bf16, many, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
        (teams, ScalarType::F16, many, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"),
    ] {
        let kernel = scheduled(&text.replace("bf16", ty.name()));
        // fewer tiles than buffers, and more
        check_sums(&kernel, ty, "c", block, 1);
        if ty == ScalarType::Bf16 {
            // OpenCL on a CPU takes half a minute for the larger block
            let (device, tiles) = if block == few { ("opencl", 5) } else { ("c", 3) };
            check_sums(&kernel, ty, device, block, tiles);
        }
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
        assert!(program.source.contains(instruction), "{}", program.source);
        if let Err(reason) = nvrtc::version() {
            println!("skipped: {reason}");
            continue;
        }
        let cache = Cache::from_environment();
        let object = nvrtc::compile_program("sm_90", &program, Optimisation::Full, &cache).unwrap();
        let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
        assert_eq!(resources.spill_stores + resources.spill_loads, 0, "{}", object.log);
    }
}

fn check_sums(kernel: &Kernel, ty: ScalarType, device: &str, (rows, columns): (usize, usize), k: usize) {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let terms = 64 * k;
    let mut numbers = |len| random.numbers(len).into_iter().map(|x| ty.rounded(x)).collect::<Vec<f64>>();
    let (a, b) = (numbers(rows * terms), numbers(terms * columns));
    let memory = Memory::new()
        .param("m", 1)
        .param("n", 1)
        .param("k", k as i64)
        .value("a", Value::of_reals(ty, &a))
        .value("b", Value::of_reals(ty, &b))
        .value("c", Value::of_reals(ty, &vec![f64::NAN; rows * columns]));
    let mut expected = vec![0.0; rows * columns];
    for (sums, a) in expected.chunks_mut(columns).zip(a.chunks(terms)) {
        for (x, b) in a.iter().zip(b.chunks(columns)) {
            sums.iter_mut().zip(b).for_each(|(sum, y)| *sum += x * y);
        }
    }
    let card = open("cuda").inspect_err(|e| println!("skipped: cuda: {e}"));
    for name in [device].into_iter().chain(card.is_ok().then_some("cuda")) {
        let device = open(name).unwrap();
        let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::new(&*device, &program, &memory).unwrap();
        loaded.launch().unwrap();
        let error = RelativeError::between(&loaded.f64s("c").unwrap(), &expected);
        // results are rounded to 8 or 11 bits; sums of 320 terms in single precision lose much less
        let unit = if ty == ScalarType::Bf16 { 2.0_f64.powi(-8) } else { 2.0_f64.powi(-11) };
        assert!(error.is_within(1.01 * unit), "{name}, {k}, seed {seed}: {error:?}");
    }
}
