//! A matrix product in tiles: the steps as a story, then the result compared with a sum in twice the
//! precision.

use kingpost::prelude::*;
use kingpost::runtime::Backend;

/// Runs the example; a test does, too.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kernel = text::parse(include_str!("matmul.kingpost"))?;
    let recipe = kingpost::transforms::steps().recipe(include_str!("matmul_recipe.json"))?;
    println!("{kernel}");
    let mut tiled = kernel;
    for (step, result) in recipe.trace(&tiled)? {
        println!("# {step}\n{}", loops(&result));
        tiled = result;
    }

    let seed = Random::fresh_seed();
    let mut random = Random::new(seed);
    let found = devices().into_iter().filter_map(|e| e.device.ok()).filter(|d| d.fp64);
    let mut opencl = false;
    for info in found {
        opencl |= info.backend == Backend::OpenCl;
        let device = open(&info.selector())?;
        let program = generate(&tiled, info.backend.target(), &Options::default())?;
        for n in [1, 31, 32, 75] {
            let (a, b) = (random.numbers(n * n), random.numbers(n * n));
            let mut memory = Memory::new();
            memory.set_param("n", n as i64);
            memory.set("a", Value::F64(a.clone()));
            memory.set("b", Value::F64(b.clone()));
            let loaded = Loaded::new(&*device, &program, &memory)?; // `c` holds poison
            loaded.launch()?;
            let error = relative_error(&loaded.f64s("c")?, &product(&a, &b, n));
            println!("{}: n = {n}, relative error {error:.1e}", info.selector());
            // 1e-13: sums of at most 75 products, each rounded to 1.1e-16 of the largest partial
            // sum
            if error.is_nan() || error > 1e-13 {
                return Err(format!("the result is wrong (seed {seed})").into());
            }
        }
    }
    if !opencl {
        println!("skipped: no OpenCL device");
    }
    Ok(())
}

/// The loop program, without the declarations above it.
fn loops(kernel: &Kernel) -> String {
    let text = kernel.to_string();
    text.find("\nfor ").map_or(text.clone(), |at| text[at + 1..].to_owned())
}

/// The product, each sum with the rounding errors of its terms added at the end.
fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        let (mut sum, mut lost) = (0.0_f64, 0.0);
        for k in 0..n {
            let term = a[i * n + k] * b[k * n + j];
            lost += a[i * n + k].mul_add(b[k * n + j], -term);
            let next = sum + term;
            lost += if sum.abs() >= term.abs() { sum - next + term } else { term - next + sum };
            sum = next;
        }
        sum + lost
    };
    (0..n * n).map(|e| entry(e / n, e % n)).collect()
}

/// The largest difference over the largest value; NaN if there is one.
fn relative_error(found: &[f64], expected: &[f64]) -> f64 {
    let largest = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(0.0_f64, |m, v| if v.is_nan() || m.is_nan() { f64::NAN } else { m.max(v.abs()) })
    };
    let difference = largest(&mut found.iter().zip(expected).map(|(f, e)| f - e));
    if found.len() == expected.len() { difference / largest(&mut expected.iter().copied()) } else { f64::NAN }
}
