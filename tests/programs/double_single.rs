//! Double-single numbers: the errors of sums, products, quotients and roots are within their
//! bounds.
#![allow(clippy::unwrap_used)]

use crate::support::{compiled, devices};
use kingpost::codegen::double_single::PairOp;
use kingpost::codegen::{Options, generate};
use kingpost::interp::Memory;
use kingpost::{Loaded, Random};

const N: usize = 20_000;

const OPERATIONS: &str = "kernel k {double_single}

param n: i32
arg a: f64[n] in
arg b: f64[n] in
arg c: f64[n] in
arg total: f64[n] out
arg times: f64[n] out
arg fused: f64[n] out
arg quotient: f64[n] out
arg root: f64[n] out
temp t: f64 private

for i in 0..n
  s: t = a[i] + b[i]
  s1: total[i] = t
  p: t = a[i]*b[i]
  p1: times[i] = t
  f: t = c[i] + a[i]*b[i]
  f1: fused[i] = t
  q: t = a[i]/b[i]
  q1: quotient[i] = t
  r: t = sqrt(fabs(a[i]))
  r1: root[i] = t
";

/// A number of 48 bits, the same in all runs of a seed: what a pair holds exactly.
fn pair(random: &mut Random) -> f64 {
    let high = ((random.below(1 << 25) as f64 - f64::from(1 << 24))
        * 2.0_f64.powi(random.below(20) as i32 - 30)) as f32;
    // less than half a unit in the last place of the first part
    let low = f64::from(high) * 2.0_f64.powi(-25) * (random.below(1 << 24) as f64 / f64::from(1 << 24) - 0.5);
    f64::from(high) + f64::from(low as f32)
}

/// `a*b - p`, exactly up to `2^-106`.
fn rest(a: f64, b: f64, p: f64) -> f64 {
    a.mul_add(b, -p)
}

#[test]
fn errors_are_within_their_bounds() {
    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let a: Vec<f64> = (0..N).map(|_| pair(&mut random)).collect();
    let b: Vec<f64> = (0..N)
        .map(|k| match k % 3 {
            // sums that cancel up to their last digits
            0 => -a[k] * (1.0 + 2.0_f64.powi(-(random.below(46) as i32))),
            _ => pair(&mut random),
        })
        .map(|x| f64::from(x as f32) + f64::from((x - f64::from(x as f32)) as f32))
        .collect();
    let c: Vec<f64> = (0..N)
        .map(|k| match k % 2 {
            0 => -a[k] * b[k],
            _ => pair(&mut random),
        })
        .map(|x| f64::from(x as f32) + f64::from((x - f64::from(x as f32)) as f32))
        .collect();
    let kernel = kingpost::ir::text::parse(OPERATIONS).unwrap();
    let mut of_first: Option<Vec<Vec<f64>>> = None;
    for device in devices() {
        let program = generate(&kernel, device.info().backend.target(), &Options::default()).unwrap();
        let mut memory = Memory::new().param("n", N as i64);
        for (name, values) in [("a", &a), ("b", &b), ("c", &c)] {
            memory.set(name, values.clone());
        }
        for name in ["total", "times", "fused", "quotient", "root"] {
            memory.set(name, vec![f64::NAN; N]);
        }
        let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &memory).unwrap();
        loaded.launch().unwrap();
        let found = ["total", "times", "fused", "quotient", "root"].map(|name| loaded.f64s(name).unwrap());
        let bound = |op: PairOp| op.bound().unwrap();
        let mut largest = [0.0_f64; 5];
        for k in 0..N {
            let (a, b, c) = (a[k], b[k], c[k]);
            let [sum, product, fused, quotient, root] = [0, 1, 2, 3, 4].map(|which| found[which][k]);
            // what is compared with is exact, or has errors of some 2^-52 of the sizes
            let p = a * b;
            let checks = [
                ((sum - (a + b)).abs(), (a.abs() + b.abs()) * bound(PairOp::Add)),
                ((product - p - rest(a, b, p)).abs(), p.abs() * bound(PairOp::Mul)),
                ((fused - (c + p)).abs(), (c.abs() + p.abs()) * bound(PairOp::AddProduct)),
                ((quotient - a / b).abs(), (a / b).abs() * bound(PairOp::Div)),
                ((root - a.abs().sqrt()).abs(), a.abs().sqrt() * bound(PairOp::Sqrt)),
            ];
            for (which, (error, allowed)) in checks.into_iter().enumerate() {
                assert!(
                    error <= allowed,
                    "{which}, seed {seed}, a {a:e} b {b:e} c {c:e}: {error:e} > {allowed:e}"
                );
                largest[which] = largest[which].max(if allowed > 0.0 { error / allowed } else { 0.0 });
            }
        }
        println!("{}: parts of the bounds {largest:.2?}", device.info().name);
        // sums and products are rounded alike everywhere
        let rounded = found[..3].to_vec();
        match &of_first {
            None => of_first = Some(rounded),
            Some(first) => assert_eq!(*first, rounded, "{}", device.info().name),
        }
    }
}
