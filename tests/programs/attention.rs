//! Flash attention on tiles, compared with attention row by row in double precision on the host.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support::of_run;
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, Value, interpret};
use kingpost::ir::{Kernel, ScalarType};
use kingpost::runtime::{Cache, Optimisation, cuda::nvrtc, open};
use kingpost::transforms::steps;
use kingpost::{Loaded, Random};

const SMALL_HEADS: &str = include_str!("../../examples/attention_64.kingpost");
const LARGE_HEADS: &str = include_str!("../../examples/attention_128.kingpost");
const CAUSAL: &str = include_str!("../../examples/causal_attention_128.kingpost");

fn scheduled(program: &str) -> Result<Kernel, String> {
    let (kernel, script) = steps().file(program).map_err(|e| e.render(program))?;
    Ok(script.unwrap().apply(&kernel).map_err(|e| e.to_string())?.kernel().clone())
}

struct Case {
    heads: usize,
    queries: usize,
    keys: usize,
    size: usize,
    is_causal: bool,
}

impl Case {
    /// Inputs of a type, and for each result what it is and how far it may be away from that.
    fn problem(&self, ty: ScalarType, seed: u64) -> (Memory, Vec<(f64, f64)>) {
        let mut random = Random::new(seed);
        // products of which some are large, so that weights differ by orders of magnitude
        let mut numbers = |rows: usize| -> Vec<f64> {
            let all = random.numbers(self.heads * rows * self.size);
            all.into_iter().map(|x| ty.rounded(3.0 * x)).collect()
        };
        let (q, k, v) = (numbers(self.queries), numbers(self.keys), numbers(self.keys));
        let mut expected = Vec::new();
        for head in 0..self.heads {
            let of = |array: &[f64], rows: usize| -> Vec<Vec<f64>> {
                let all = array[head * rows * self.size..][..rows * self.size].chunks(self.size);
                all.map(<[f64]>::to_vec).collect()
            };
            let (k, v) = (of(&k, self.keys), of(&v, self.keys));
            for (i, q) in of(&q, self.queries).iter().enumerate() {
                expected.extend(self.row(ty, i, q, &k, &v));
            }
        }
        let reals = |numbers: &[f64]| Value::of_reals(ty, numbers);
        let memory = Memory::new()
            .param("heads", self.heads as i64)
            .param("m", (self.queries / 128) as i64)
            .value("q", reals(&q))
            .value("k", reals(&k))
            .value("v", reals(&v))
            .value("o", reals(&vec![f64::NAN; q.len()]));
        let tiles = if self.size == 64 { self.keys / 128 } else { self.keys / 64 };
        (if self.is_causal { memory } else { memory.param("n", tiles as i64) }, expected)
    }

    fn row(&self, ty: ScalarType, i: usize, q: &[f64], k: &[Vec<f64>], v: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let seen = if self.is_causal { i + 1 } else { self.keys };
        let dot = |k: &Vec<f64>| q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>();
        let scores: Vec<f64> = k[..seen].iter().map(|k| dot(k) / (self.size as f64).sqrt()).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        // each weight and the result are rounded to 8 or 11 bits; scores of at most some 60 in single precision lose less
        // than 2^-14 of a weight, in double precision less than 1e-13, as do sums of 384
        let unit = match ty {
            ScalarType::Bf16 => 2.0_f64.powi(-8) + 2.0_f64.powi(-14),
            ScalarType::F16 => 2.0_f64.powi(-11) + 2.0_f64.powi(-14),
            _ => 1e-12,
        };
        (0..self.size)
            .map(|d| {
                let sum = |of: &dyn Fn(f64) -> f64| {
                    weights.iter().zip(v).map(|(w, v)| w * of(v[d])).sum::<f64>() / total
                };
                let (exact, size) = (sum(&|v| v), sum(&f64::abs));
                (exact, (size + exact.abs()) * unit)
            })
            .collect()
    }
}

fn check(found: &[f64], expected: &[(f64, f64)], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (x, (exact, tolerance))) in found.iter().zip(expected).enumerate() {
        // also false of a nan
        assert!((x - exact).abs() <= *tolerance, "{what}: {x} instead of {exact} at {at}");
    }
}

fn run(kernel: &Kernel, ty: ScalarType, device: &str, case: &Case) {
    let seed = Random::fresh_seed();
    let (memory, expected) = case.problem(ty, seed);
    let device = open(device).unwrap();
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::new(&*device, &program, &memory).unwrap();
    loaded.launch().unwrap();
    check(&loaded.f64s("o").unwrap(), &expected, &format!("{}, seed {seed}", device.info().name));
}

/// Without rounding, what is written is attention.
#[test]
fn the_texts_in_double_precision() {
    for (text, size, is_causal) in of_run([(SMALL_HEADS, 64, false), (CAUSAL, 128, true)], &[1]) {
        let (written, _) = steps().file(&text.replace("bf16", "f64").replace("f32", "f64")).unwrap();
        let case = Case { heads: 1, queries: 128, keys: if is_causal { 128 } else { 256 }, size, is_causal };
        let seed = Random::fresh_seed();
        let (mut memory, expected) = case.problem(ScalarType::F64, seed);
        interpret(&written, &mut memory).unwrap();
        check(memory.f64s("o").unwrap(), &expected, &format!("interpreter, seed {seed}"));
    }
}

#[test]
fn of_heads_of_64_numbers() {
    for ty in of_run([ScalarType::Bf16, ScalarType::F16], &[0]) {
        let kernel = scheduled(&SMALL_HEADS.replace("bf16", ty.name())).unwrap();
        let case = |heads, queries, keys| Case { heads, queries, keys, size: 64, is_causal: false };
        let mut cases = vec![case(1, 128, 128)];
        if ty == ScalarType::Bf16 {
            run(&kernel, ty, "opencl", &cases[0]);
            cases.push(case(2, 256, 384));
        }
        let instruction = format!("wgmma.mma_async.sync.aligned.m64n128k16.f32.{0}.{0}", ty.name());
        // the number of tiles is loaded again for each
        check_kernel(&kernel, ty, &cases, &instruction, 8);
    }
}

#[test]
fn of_heads_of_128_numbers() {
    let case = |heads, queries, keys| Case { heads, queries, keys, size: 128, is_causal: false };
    let kernel = scheduled(LARGE_HEADS).unwrap();
    let cases = of_run([case(1, 128, 64), case(2, 256, 192)], &[1]);
    check_kernel(
        &kernel,
        ScalarType::Bf16,
        &cases,
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
        0,
    );
}

#[test]
fn of_keys_up_to_each_query() {
    let case = |heads, rows| Case { heads, queries: rows, keys: rows, size: 128, is_causal: true };
    let kernel = scheduled(CAUSAL).unwrap();
    // two words are spilled where only tiles on the diagonal are
    let instruction = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16";
    check_kernel(&kernel, ScalarType::Bf16, &of_run([case(1, 128), case(2, 256)], &[1]), instruction, 12);
}

/// Runs cases: one tile of keys and several; more heads and blocks than one. Compiles for a card.
fn check_kernel(kernel: &Kernel, ty: ScalarType, cases: &[Case], instruction: &str, spilled: u64) {
    let card = open("cuda").inspect_err(|e| println!("skipped: cuda: {e}"));
    for device in ["c"].into_iter().chain(card.is_ok().then_some("cuda")) {
        cases.iter().for_each(|case| run(kernel, ty, device, case));
    }
    let program = generate(kernel, Target::Cuda, &Options::default()).unwrap();
    assert!(program.source.contains(instruction), "{}", program.source);
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let cache = Cache::from_environment();
    let object = nvrtc::compile_program("sm_90", &program, Optimisation::Full, &cache).unwrap();
    let [resources] = object.resources.as_slice() else { panic!("{}", object.log) };
    assert!(resources.spill_stores.max(resources.spill_loads) <= spilled, "{}", object.log);
}

/// What would compute something else, or race, is refused.
#[test]
fn what_is_not_attention_is_refused() {
    let changed = |from: &str, to: &str| {
        let text = LARGE_HEADS.replacen(from, to, 1);
        assert_ne!(text, LARGE_HEADS, "{from}");
        scheduled(&text).unwrap_err()
    };
    // a row of scores of another product
    let refused = changed("floor_div(l1, 4), u1, e1]", "floor_div(l1, 8), u1, e1]");
    assert!(refused.contains("are not `wgmma_m64n64k128_rows_bf16`"), "{refused}");
    // keys that do not lie as the instruction reads them
    let refused = changed(
        "temp k_tile: bf16[2, 64, 8, 8] local swizzle(2 ^= 1)",
        "temp k_tile: bf16[2, 64, 8, 8] local",
    );
    assert!(refused.contains("the swizzle of `b`"), "{refused}");
    // weights of another work-item's columns
    let refused = changed("4*floor_div(l7, 4) + q7, s7", "4*floor_div(l7, 4) + 3 - q7, s7");
    assert!(refused.contains("are not `wgmma_m64n128k64_fragments_bf16`"), "{refused}");
    // a neighbour's maximum before it is there
    let own_loops = "          for l3 in 0..32 {l.0}\n            for y3 in 0..2 {unroll}\n";
    let text =
        LARGE_HEADS.replacen(own_loops, "            for y3 in 0..2 {unroll}\n", 1).replace("l3", "l2");
    let refused = scheduled(&text).unwrap_err();
    assert!(refused.contains("reads `own_largest["), "{refused}");
}
