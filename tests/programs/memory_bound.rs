//! Kernels bound by memory by schedules, compared with sums in double precision on the host; what is not
//! written keeps its poison.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::products::scheduled;
use crate::support::of_run;
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::Memory;
use kingpost::ir::Kernel;
use kingpost::runtime::{Cache, cuda::nvrtc, open};
use kingpost::{Loaded, Random};

const STENCIL_27: &str = include_str!("../../examples/stencil_27.kingpost");
const STENCIL_27_PLANES: &str = include_str!("../../examples/stencil_27_planes.kingpost");
const STENCIL_7: &str = include_str!("../../examples/stencil_7.kingpost");
const TRANSPOSE: &str = include_str!("../../examples/transpose.kingpost");

/// Runs a kernel on all devices, and compares what it wrote with `expected`, poison included.
fn check(kernel: &Kernel, memory: &Memory, result: &str, expected: &[f64], what: &str) {
    for name in ["c", "opencl", "cuda"] {
        let Ok(device) = open(name).inspect_err(|e| println!("skipped: {name}: {e}")) else { continue };
        let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
        let loaded = Loaded::new(&*device, &program, memory).unwrap();
        loaded.launch().unwrap();
        let found = loaded.value(result).unwrap().to_f64();
        assert_eq!(found.len(), expected.len());
        // 1e-13: 27 terms of at most 1 in size
        let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 || (a.is_nan() && b.is_nan());
        assert!(found.iter().zip(expected).all(same), "{what} on {name}");
    }
}

/// The sums of neighbours in a cube, by a weight for each step along z, y and x; the surface is poison.
fn neighbours(n: usize, u: &[f64], weight: &dyn Fn([usize; 3]) -> f64) -> Vec<f64> {
    let at = |z: usize, y: usize, x: usize| (z * n + y) * n + x;
    let mut sums = vec![f64::NAN; n * n * n];
    let inner = 1..n - 1;
    let steps: Vec<_> = (0..27).map(|k| [k / 9, k / 3 % 3, k % 3]).map(|step| (step, weight(step))).collect();
    for (z, y) in inner.clone().flat_map(|z| inner.clone().map(move |y| (z, y))) {
        let row = &mut sums[at(z, y, 1)..at(z, y, n - 1)];
        row.fill(0.0);
        for ([c, b, a], weight) in &steps {
            let of_step = &u[at(z + c - 1, y + b - 1, *a)..];
            row.iter_mut().zip(of_step).for_each(|(sum, u)| *sum += weight * u);
        }
    }
    sums
}

/// Cubes smaller than a block, with blocks that are cut, and with whole ones.
#[test]
fn stencils_in_blocks() {
    let (all, few) = (scheduled(STENCIL_27), scheduled(STENCIL_7));
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    for n in [3, 4, 7, 67] {
        let (u, w) = (random.numbers(n * n * n), random.numbers(27));
        let what = format!("{n} points along an axis, seed {seed}");
        let start = || {
            let poison = vec![f64::NAN; n * n * n];
            Memory::new().param("n", n as i64).value("u", u.clone()).value("v", poison)
        };
        let sums = neighbours(n, &u, &|[c, b, a]| w[9 * c + 3 * b + a]);
        check(&all, &start().value("w", w.clone()), "v", &sums, &what);
        let (centre, side) = (w[0], w[1]);
        let weight = |step: [usize; 3]| match step.iter().filter(|k| **k != 1).count() {
            0 => centre,
            1 => side,
            _ => 0.0,
        };
        let memory = start().value("centre", vec![centre]).value("side", vec![side]);
        check(&few, &memory, "v", &neighbours(n, &u, &weight), &what);
    }
}

/// Planes that slide along z: in tiles as they are, and in small ones, of which there are several
/// along each axis.
#[test]
fn a_stencil_by_planes() {
    let small = [("510", "14"), ("512", "16"), ("513", "17")];
    let small = small.iter().fold(STENCIL_27_PLANES.to_owned(), |text, (size, to)| text.replace(size, to));
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    for (text, sizes) in [(STENCIL_27_PLANES, &[3, 4, 41][..]), (&*small, &[3, 5, 15, 16, 18, 35][..])] {
        let kernel = scheduled(text);
        for n in sizes.iter().copied() {
            let (u, w) = (random.numbers(n * n * n), random.numbers(27));
            let sums = neighbours(n, &u, &|[c, b, a]| w[9 * c + 3 * b + a]);
            let poison = vec![f64::NAN; n * n * n];
            let memory = Memory::new().param("n", n as i64).value("u", u).value("w", w).value("v", poison);
            check(&kernel, &memory, "v", &sums, &format!("{n} points along an axis by planes, seed {seed}"));
        }
    }
}

#[test]
fn a_transpose_in_tiles() {
    let kernel = scheduled(TRANSPOSE);
    let mut random = Random::new(Random::fresh_seed());
    for (n, m) in [(1, 1), (63, 65), (64, 128), (130, 257)] {
        let a: Vec<f32> = random.numbers(n * m).into_iter().map(|x| x as f32).collect();
        let expected: Vec<f64> = (0..n * m).map(|at| f64::from(a[at % n * m + at / n])).collect();
        let memory = Memory::new().param("n", n as i64).param("m", m as i64).value("a", a);
        let memory = memory.value("b", vec![f32::NAN; n * m]);
        check(&kernel, &memory, "b", &expected, &format!("{n} by {m}"));
    }
}

#[test]
fn their_cuda_sources_compile() {
    if let Err(reason) = nvrtc::version() {
        return println!("skipped: {reason}");
    }
    let cache = Cache::from_environment();
    for program in of_run([STENCIL_27, STENCIL_27_PLANES, STENCIL_7, TRANSPOSE], &[1, 3]) {
        let program = generate(&scheduled(program), Target::Cuda, &Options::default()).unwrap();
        nvrtc::compile_for("sm_90", &program.entry, &program.source, &cache).unwrap();
    }
}
