//! Products of matrices by schedules, compared with sums in double precision on the host; what is not written
//! keeps its poison.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::of_run;
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, Value};
use kingpost::ir::{Kernel, ScalarType};
use kingpost::runtime::{Backend, Cache, Optimisation, RuntimeError, cuda::nvrtc, open};
use kingpost::transforms::steps;
use kingpost::{LoadError, Loaded, Random, RelativeError};

/// What a program with a schedule after it becomes.
pub(crate) fn scheduled(program: &str) -> Kernel {
    let (kernel, script) = steps().file(program).unwrap_or_else(|e| panic!("{}", e.render(program)));
    script.unwrap().apply(&kernel).unwrap_or_else(|e| panic!("{e}")).kernel().clone()
}

const DGEMM: &str = include_str!("../../examples/dgemm.kingpost");
const SGEMM: &str = include_str!("../../examples/sgemm.kingpost");
const REGISTERS: &str = include_str!("../../examples/hgemm_registers.kingpost");
const TEAMS: &str = include_str!("../../examples/hgemm.kingpost");

/// The three loops of a product of halves, and the combined step for teams.
const LOOPS: &str = "kernel loops
param m: i32  # blocks of 64 rows
param n: i32  # blocks of 128 columns
param k: i32  # tiles of 64 terms
arg a: bf16[64*m, 64*k] in
arg b: bf16[64*k, 128*n] in
arg c: bf16[64*m, 128*n] out
assume m >= 1
assume n >= 1
assume k >= 1

for i in 0..64*m
  for j in 0..128*n
    store: c[i, j] = sum(q in 0..64*k: a[i, q]*b[q, j])

schedule
tile_product([i, j, q], tile: [64, 128, 64], sub_group: [16, 128], buffers: 3, by: team_instructions)
";

/// A text with the rows, columns and terms of a block, and those of `m`, `n` and `k` blocks.
struct Product<'t> {
    text: &'t str,
    ty: ScalarType,
    block: [usize; 3],
}

impl Product<'_> {
    fn kernel(&self) -> Kernel {
        scheduled(&self.text.replace("bf16", self.ty.name()))
    }

    /// Compares with sums in double precision.
    fn check(&self, kernel: &Kernel, device: &str, blocks: [usize; 3]) {
        let device = &*open(device).unwrap();
        let [rows, columns, terms] = std::array::from_fn(|k| self.block[k] * blocks[k]);
        let seed = Random::fresh_seed();
        let mut random = Random::new(seed);
        let mut numbers =
            |len| random.numbers(len).into_iter().map(|x| self.ty.rounded(x)).collect::<Vec<f64>>();
        let (a, b) = (numbers(rows * terms), numbers(terms * columns));
        let values = |all: &[f64]| match self.ty {
            ScalarType::F64 => all.to_vec().into(),
            ty => Value::of_reals(ty, all),
        };
        let params = ["m", "n", "k"].into_iter().zip(blocks);
        let memory = params.fold(Memory::new(), |memory, (name, n)| memory.param(name, n as i64));
        let memory = memory
            .value("a", values(&a))
            .value("b", values(&b))
            .value("c", values(&vec![f64::NAN; rows * columns]));
        let mut expected = vec![0.0; rows * columns];
        for (sums, a) in expected.chunks_mut(columns).zip(a.chunks(terms)) {
            for (x, b) in a.iter().zip(b.chunks(columns)) {
                sums.iter_mut().zip(b).for_each(|(sum, y)| *sum += x * y);
            }
        }
        let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = match Loaded::new(device, &program, &memory) {
            // Intel's OpenCL has 256 kB
            Err(LoadError::Runtime(e @ RuntimeError::LocalMemory { .. }))
                if device.info().backend == Backend::OpenCl =>
            {
                println!("skipped: {e}");
                return;
            }
            loaded => loaded.unwrap(),
        };
        loaded.launch().unwrap();
        let error = RelativeError::between(&loaded.f64s("c").unwrap(), &expected);
        let within = match self.ty {
            // sums of 80 terms in another order
            ScalarType::F64 => 1e-13,
            ScalarType::F32 => 1e-5,
            // results are rounded to 8 or 11 bits; sums of 320 terms in single precision lose much less
            ScalarType::Bf16 => 1.01 * 2.0_f64.powi(-8),
            _ => 1.01 * 2.0_f64.powi(-11),
        };
        assert!(error.is_within(within), "{}, {blocks:?}, seed {seed}: {error:?}", device.info().name);
    }
}

/// Tiles of terms fewer and more than buffers; rows and columns of different numbers.
#[test]
fn a_product_by_copies_ahead_and_matrix_instructions() {
    let product = Product { text: DGEMM, ty: ScalarType::F64, block: [128, 128, 16] };
    let kernel = product.kernel();
    let blocks = [[1, 1, 1], [1, 2, 5]];
    let runs = blocks.into_iter().flat_map(|blocks| ["c", "opencl"].map(|device| (device, blocks)));
    for (device, blocks) in of_run(runs, &[1, 2]) {
        product.check(&kernel, device, blocks);
    }
    check_copies(&kernel);
}

/// In smaller tiles than those of the example: the last tile stands after the loop, and may be the
/// first one; pointers into tiles and factors move.
#[test]
fn a_product_of_work_items_that_read_ahead() {
    let text = SGEMM.replace("[128, 128, 16]", "[64, 64, 4]").replace("128*", "64*").replace("16*", "4*");
    let product = Product { text: &text, ty: ScalarType::F32, block: [64, 64, 4] };
    let kernel = product.kernel();
    for (device, blocks) in of_run([("c", [1, 1, 1]), ("c", [1, 2, 7]), ("opencl", [1, 1, 5])], &[1, 2]) {
        product.check(&kernel, device, blocks);
    }
    let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    let (_, tiles) = program.source.split_once("for (int t_o = 0").unwrap();
    let place = |what: &str| tiles.find(what).unwrap_or_else(|| panic!("no {what} in\n{tiles}"));
    let in_order = [
        "&a_tile_at[68]",
        "sums[0] +=",
        "&a_tile_at[136]",
        "&a_at[0]",
        "commit_group",
        "&a_tile_at[204]",
        "a_tile_at = &a_tile[",
        "a_at += 4;",
        "wait_group 0;",
    ];
    assert!(in_order.map(place).is_sorted(), "{:?}", in_order.map(place));
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let object = nvrtc::compile_program("sm_90", &program, Optimisation::Full, &cache).unwrap();
    let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
    assert_eq!(resources.spill_stores + resources.spill_loads, 0, "{}", object.log);
}

/// All of them on a card, by this library's own runtime.
#[test]
fn products_on_a_card() {
    if let Err(reason) = open("cuda") {
        println!("skipped: cuda: {reason}");
        return;
    }
    let of = |text, ty, block| Product { text, ty, block };
    for product in [
        of(TEAMS, ScalarType::F16, [1024, 256, 64]),
        of(TEAMS, ScalarType::Bf16, [1024, 256, 64]),
        of(LOOPS, ScalarType::Bf16, [64, 128, 64]),
        of(REGISTERS, ScalarType::F16, [128, 256, 64]),
        of(REGISTERS, ScalarType::Bf16, [128, 256, 64]),
        of(DGEMM, ScalarType::F64, [128, 128, 16]),
        of(SGEMM, ScalarType::F32, [128, 128, 16]),
    ] {
        let kernel = product.kernel();
        for blocks in [[1, 1, 1], [1, 2, 2], [1, 1, 3], [1, 2, 5]] {
            product.check(&kernel, "cuda", blocks);
            println!("{} {blocks:?}: right", product.ty);
        }
    }
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
/// sub-groups on tiles, of which the first work-item copies boxes.
#[test]
fn products_of_halves() {
    let (few, many) = ([128, 256, 64], [1024, 256, 64]);
    for (text, ty, block, instruction) in [
        (REGISTERS, ScalarType::Bf16, few, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        (REGISTERS, ScalarType::F16, few, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (TEAMS, ScalarType::Bf16, many, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"),
        (TEAMS, ScalarType::F16, many, "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"),
        (LOOPS, ScalarType::Bf16, [64, 128, 64], "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
    ] {
        let product = Product { text, ty, block };
        let kernel = product.kernel();
        // fewer tiles than buffers, and more
        product.check(&kernel, "c", [1, 1, 1]);
        if ty == ScalarType::Bf16 {
            // OpenCL on a CPU takes half a minute for the larger block
            let (device, tiles) = if block == few { ("opencl", 5) } else { ("c", 5) };
            product.check(&kernel, device, [1, 1, tiles]);
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
        // that the compiler reads no sums before they are done
        assert!(!object.log.contains("serialized"), "{}", object.log);
        if block == many {
            check_groups(&program.source);
        }
    }
}

/// One group of products goes on while a tile is copied to where the factors of the one before were, and while the
/// next tile is waited for; stores wait for all.
fn check_groups(source: &str) {
    let (_, tiles) = source.split_once("for (int t = 0").unwrap();
    let place = |what: &str| tiles.find(what).unwrap_or_else(|| panic!("no {what} in\n{source}"));
    let in_order = [
        "wgmma.mma_async",
        "wgmma.commit_group",
        "wgmma.wait_group.sync.aligned 1;",
        "__syncthreads",
        "cp.async.bulk.tensor",
        "box_commit()",
        "box_wait(2)",
        "wgmma.wait_group.sync.aligned 0;",
        "make_uint4",
    ];
    assert!(in_order.map(place).is_sorted(), "{source}");
}
