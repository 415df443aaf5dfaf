//! Threads of C code that add to one array: each in a copy of its own, or one update at a time.
#![allow(clippy::unwrap_used)] // what a failed test does

use kingpost::codegen::{Options, Target, generate};
use std::path::Path;
use std::process::Command;

/// Adds whole numbers, of which sums are exact in any order, to `m` elements.
const SCATTER: &str = "
kernel scatter

param n: i32
param m: i32
arg dofs: i32[n, 3] in
arg y: f64[m, 2] inout

for i_o in 0..ceil(n/8) {g.0}
  for i_i in 0..min(8, n - 8*i_o) {l.0}
    for j in 0..3
      put: y[dofs[8*i_o + i_i, j], 1] += f64(i_i + j) {atomic}
";

/// Runs the launcher and prints the array.
const MAIN: &str = "
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int32_t n = atoi(argv[1]), m = atoi(argv[2]);
    int32_t *dofs = malloc(3*n*sizeof(int32_t));
    double *y = malloc(2*m*sizeof(double));
    for (int i = 0; i < 3*n; ++i) dofs[i] = (int32_t)((7LL*i + i/5) % m);
    for (int i = 0; i < 2*m; ++i) y[i] = 100*i;
    void *args[] = {&n, &m, &dofs, &y};
    int64_t grid[] = {(n + 7)/8, 1, 1};
    scatter_launch(args, grid);
    for (int i = 0; i < 2*m; ++i) printf(\"%.0f\\n\", y[i]);
    return argc == 0;
}
";

fn expected(n: i64, m: i64) -> Vec<f64> {
    let mut y: Vec<f64> = (0..2 * m).map(|i| 100.0 * i as f64).collect();
    for i in 0..3 * n {
        let dof = (7 * i + i / 5) % m;
        y[2 * dof as usize + 1] += ((i / 3) % 8 + i % 3) as f64;
    }
    y
}

fn run(binary: &Path, n: i64, m: i64, threads: usize) -> Vec<f64> {
    let mut command = Command::new(binary);
    command.args([n.to_string(), m.to_string()]).env("OMP_NUM_THREADS", threads.to_string());
    let output = command.env("OMP_DYNAMIC", "false").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect()
}

/// Sizes with more updates than elements have copies, others and more than 16 threads share the
/// array.
#[test]
fn sums_are_right_on_any_number_of_threads() {
    let kernel = kingpost::ir::text::parse(SCATTER).unwrap();
    let program = generate(&kernel, Target::C, &Options::default()).unwrap();
    for part in
        ["kingpost_new_copies_f64((int64_t)m*2, groups_0*24)", "if (kingpost_shared_y)", "#pragma omp atomic"]
    {
        assert!(program.source.contains(part), "{part}: {}", program.source);
    }
    let directory = std::env::temp_dir().join(format!("kingpost-threads-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let source = directory.join("scatter.c");
    std::fs::write(&source, format!("{}{MAIN}", program.source)).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    for (name, options) in [("threads", &["-fopenmp"][..]), ("alone", &["-fopenmp-simd"])] {
        let binary = directory.join(name);
        let mut command = Command::new(&compiler);
        command
            .args(options)
            .args(["-O2", "-Wall", "-Werror", "-Wno-unknown-pragmas", "-o"])
            .args([&binary, &source])
            .arg("-lm");
        let Ok(compiled) = command.output() else {
            println!("skipped: no C compiler `{compiler}`");
            return;
        };
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        for (n, m) in [(1, 1), (1000, 37), (1000, 1600), (64, 4000), (4099, 12)] {
            for threads in [1, 2, 3, 16, 17] {
                assert_eq!(run(&binary, n, m, threads), expected(n, m), "{name} {n} {m} {threads}");
            }
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
