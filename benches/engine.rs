//! Speed of the engine itself: `cargo bench --bench engine` (or `make bench`). The limits stand in
//! the names; growth, which is a ratio, is printed at the end.

#![allow(clippy::unwrap_used)]

use divan::Bencher;
use divan::counter::ItemsCount;
use kingpost::autotune::known_devices;
use kingpost::codegen::{Options, Program, Target, generate};
use kingpost::explore::{Explorer, Subject};
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::ir::{AxisTag, Kernel, text};
use kingpost::kernels::Operator;
use kingpost::transforms::Recipe;
use kingpost::transforms::primitives::{SplitIname, Tag};
use kingpost::transforms::steps;
use kingpost::tuning::{Choice, source};
use kingpost::{Mapping, transform};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The allocator of the command line.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
    if std::env::args().any(|a| a == "--bench") {
        growth();
    }
}

fn cuda(kernel: &Kernel) -> Program {
    let (kernel, _) = transform(kernel, &Mapping::single_cell()).unwrap();
    generate(&kernel, Target::Cuda, &Options::default()).unwrap()
}

/// From the form to CUDA source: the 3-D P4 Laplace action, one cell a work-item.
#[divan::bench(name = "form_to_cuda_laplace_3d_p4 (limit 15 ms)", sample_count = 100)]
fn form_to_cuda(bencher: Bencher<'_, '_>) {
    bencher.bench(|| {
        let form = Operator::Laplace.form(3, 4).unwrap();
        cuda(&lower(&form, &LoweringOptions::new("laplace")).unwrap().kernel)
    });
}

/// The same from the kernel's text.
#[divan::bench(name = "text_to_cuda_laplace_3d_p4 (limit 15 ms)", sample_count = 100)]
fn text_to_cuda(bencher: Bencher<'_, '_>) {
    let form = Operator::Laplace.form(3, 4).unwrap();
    let source = lower(&form, &LoweringOptions::new("laplace")).unwrap().kernel.to_string();
    bencher.bench(|| cuda(&text::parse(&source).unwrap()));
}

/// From parameters to CUDA source: the best ranked tilings of the 3-D P4 Laplace action on an H200,
/// one core. Each runs once, as what isl said of one would help a second run.
#[divan::bench(
    name = "tiling_to_cuda_laplace_3d_p4 (limit 50 ms a candidate)",
    sample_count = 12,
    sample_size = 1
)]
fn tiling_to_cuda(bencher: Bencher<'_, '_>) {
    let options = LoweringOptions::new("laplace").with_scheme(QuadratureScheme::XiaoGimbutas);
    let kernel = lower(&Operator::Laplace.form(3, 4).unwrap(), &options).unwrap().kernel;
    let model = known_devices().unwrap().into_iter().find(|m| m.name == "H200").unwrap();
    let candidates = Choice::new(&kernel, 6 * 56 * 56 * 56, &model, u64::MAX).unwrap().ranked(30);
    let next = AtomicUsize::new(0);
    bencher.bench(|| {
        let k = next.fetch_add(1, Ordering::Relaxed) % candidates.len();
        tiling_candidate(&kernel, &candidates[k].parameters)
    });
}

/// One candidate; `scripts/count_instructions.sh` counts what this function executes, by its name.
#[inline(never)]
fn tiling_candidate(kernel: &Kernel, parameters: &Mapping) -> (Program, Kernel) {
    source(kernel, parameters, Target::Cuda).unwrap()
}

/// A chain of `n` instructions in one loop, each reading what the one before it wrote.
fn chain(n: usize) -> String {
    let mut source = String::from("kernel chain\nparam n: i32\narg x: f64[n] in\narg y: f64[n] out\n");
    for k in 0..n {
        // Writing to a string cannot fail.
        let _ = writeln!(source, "temp t{k}: f64 private");
    }
    source += "\nfor i in 0..n\n  s0: t0 = x[i]\n";
    for k in 1..n {
        let _ = writeln!(source, "  s{k}: t{k} = t{}*1.5 + {k}.0", k - 1);
    }
    let _ = writeln!(source, "  store: y[i] = t{}", n - 1);
    source
}

/// From text to CUDA source of a chain, its loop on work-groups and work-items; growth from 10 to
/// 160 at most linear.
#[divan::bench(name = "chain_to_cuda (limit 40 ms at 160 instructions)", args = [10, 40, 160], sample_count = 50)]
fn chain_to_cuda(bencher: Bencher<'_, '_>, n: usize) {
    let source = chain(n);
    let split = SplitIname { outer: Some("g".into()), inner: Some("l".into()), ..SplitIname::new("i", 128) };
    let recipe = Recipe::default()
        .then(split)
        .then(Tag::new("g", AxisTag::Group(0)))
        .then(Tag::new("l", AxisTag::Local(0)));
    bencher.counter(ItemsCount::new(n)).bench(|| {
        let kernel = recipe.apply(&text::parse(&source).unwrap()).unwrap();
        generate(&kernel, Target::Cuda, &Options::default()).unwrap()
    });
}

/// `n` separate nests of two loops, on work-groups and work-items.
fn nests(n: usize) -> String {
    let mut source = String::from("kernel nests\nparam n: i32\narg x: f64[n, 64] in\n");
    for k in 0..n {
        let _ = writeln!(source, "arg y{k}: f64[n, 64] out");
    }
    for k in 0..n {
        let _ = write!(source, "\nfor row{k} in 0..n {{g.0}}\n  for col{k} in 0..64 {{l.0}}\n");
        let _ = writeln!(source, "    s{k}: y{k}[row{k}, col{k}] = {k}.0*x[row{k}, col{k}]");
    }
    source
}

/// `n` matrix-vector products, each of what the one before it gave.
fn reductions(n: usize) -> String {
    let mut source = String::from("kernel chain\nparam n: i32\narg a: f64[n, n] in\narg t0: f64[n] in\n");
    for k in 1..n {
        let _ = writeln!(source, "temp t{k}: f64[n] global");
    }
    let _ = writeln!(source, "arg t{n}: f64[n] out");
    for k in 1..=n {
        let _ = write!(source, "\nfor row{k} in 0..n\n");
        let _ = writeln!(
            source,
            "  s{k}: t{k}[row{k}] = sum(col{k} in 0..n: a[row{k}, col{k}]*t{}[col{k}])",
            k - 1
        );
    }
    source
}

fn text_to_cuda_of(source: &str) -> Program {
    generate(&text::parse(source).unwrap(), Target::Cuda, &Options::default()).unwrap()
}

/// From text to CUDA source of separate nests.
#[divan::bench(name = "nests_to_cuda (limit 100 ms at 160 nests)", args = [10, 40, 160], sample_count = 50)]
fn nests_to_cuda(bencher: Bencher<'_, '_>, n: usize) {
    let source = nests(n);
    bencher.counter(ItemsCount::new(n)).bench(|| text_to_cuda_of(&source));
}

/// From text to CUDA source of chained reductions.
#[divan::bench(name = "reductions_to_cuda (limit 100 ms at 160 reductions)", args = [10, 40, 160], sample_count = 50)]
fn reductions_to_cuda(bencher: Bencher<'_, '_>, n: usize) {
    let source = reductions(n);
    bencher.counter(ItemsCount::new(n)).bench(|| text_to_cuda_of(&source));
}

/// From text to CUDA source of a matrix product in 32 x 32 tiles, both factors prefetched: 16
/// steps.
#[divan::bench(name = "tiled_product_to_cuda (limit 15 ms)", sample_count = 100)]
fn tiled_product_to_cuda(bencher: Bencher<'_, '_>) {
    let recipe = steps().recipe(include_str!("../examples/matmul_recipe.json")).unwrap();
    bencher.bench(|| {
        let kernel = text::parse(include_str!("../examples/matmul.kingpost")).unwrap();
        generate(&recipe.apply(&kernel).unwrap(), Target::Cuda, &Options::default()).unwrap()
    });
}

/// An edit before the 16 steps of a tiled matrix product, as `kingpost explore --live` answers it: all are
/// applied and told again.
#[divan::bench(name = "edit_16_steps (limit 100 ms)", sample_count = 20)]
fn edit_16_steps(bencher: Bencher<'_, '_>) {
    let recipe = steps().recipe(include_str!("../examples/matmul_recipe.json")).unwrap();
    let text = include_str!("../examples/matmul.kingpost");
    let texts = [text.to_owned(), text.replace("a[i, k]*b", "a[i, k] + b")];
    let kernels = texts.map(|text| text::parse(&text).unwrap());
    let (mut explorer, mut turn) = (Explorer::default(), 0);
    bencher.bench_local(|| {
        turn = 1 - turn;
        explorer.json(&Subject::new("matmul", &kernels[turn], &recipe)).unwrap()
    });
}

/// Median seconds of 25 runs.
fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..25)
        .map(|_| {
            let start = std::time::Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints how much longer 160 take than 10, and what n log n would be.
fn growth() {
    let limit = 16.0 * 160_f64.ln() / 10_f64.ln();
    println!("\ngrowth from 10 to 160 (medians of 25 runs; limit n log n = {limit:.1})");
    type Source = fn(usize) -> String;
    let programs: [(&str, Source); 3] = [("chain", chain), ("nests", nests), ("reductions", reductions)];
    for (name, source) in programs {
        let [few, many] = [10, 160].map(|n| {
            let source = source(n);
            median(|| drop(divan::black_box(text_to_cuda_of(&source))))
        });
        println!("{name:<12} {:>8.2} ms {:>8.2} ms {:>6.1} times", few * 1e3, many * 1e3, many / few);
    }
}

/// A kernel whose table has this many values: text to kernel.
#[divan::bench(name = "parse_table", args = [10_000, 100_000], sample_count = 20)]
fn parse_table(bencher: Bencher<'_, '_>, n: usize) {
    let mut source = format!("kernel k\ntable phi: f64[{n}] global\n\ntable phi = [");
    for k in 0..n {
        let _ = write!(source, "{}{:?}", if k == 0 { "" } else { ", " }, (k as f64 * 0.1).sin());
    }
    source.push_str("]\n");
    bencher.counter(ItemsCount::new(n)).bench(|| text::parse(&source).unwrap());
}
