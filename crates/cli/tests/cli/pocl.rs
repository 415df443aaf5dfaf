//! Programs that pocl 3.1 gets wrong, or dies of, where loops around barriers are entered without
//! one; with optimisation, as users have it.

#![allow(clippy::unwrap_used)]

use kingpost_sample::of_run;
use std::process::Command;

/// Runs a program with a recipe by OpenCL and compares its results with the interpreter.
fn is_right(name: &str, program: &str, recipe: &str, more: &[&str]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = dir.path().join(file);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (program, recipe) = (write("program.kingpost", program), write("recipe.json", recipe));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
    command.arg("run").arg(&program).arg("--recipe").arg(&recipe);
    command.args(["--device", "opencl", "--no-time", "--seed", "7"]).args(more);
    // pocl may leave files where it dies
    command
        .current_dir(dir.path())
        .env("POCL_CACHE_DIR", dir.path())
        .env("KINGPOST_CACHE_DIR", dir.path().join("objects"));
    let output = command.env_remove("POCL_EXTRA_BUILD_FLAGS").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(3) {
        println!("skipped: {said}");
        return true;
    }
    println!("{name}: {}{said}", String::from_utf8_lossy(&output.stdout));
    output.status.success()
}

/// Sums in trees of work-items, one after the other, block by block.
fn trees(number: usize, items: usize) -> (String, String) {
    let mut program = String::from("kernel trees\nparam n: i32\narg x: f64[n] in\n");
    let mut loops = String::new();
    let mut steps = Vec::new();
    for k in 0..number {
        program += &format!("arg g{k}: f64 inout\n");
        let powers = vec!["x[i]"; k + 1].join("*").replace("[i]", &format!("[i{k}]"));
        loops += &format!("for i{k} in 0..n\n  s{k}: g{k} += {powers}\n");
        steps.push(format!(
            r#"{{"split_iname": {{"iname": "i{k}", "factor": {items}, "outer": "b{k}", "inner": "l{k}"}}}},
{{"factor_update": {{"insn": "s{k}", "inames": ["l{k}"], "partial": "p{k}"}}}},
{{"reduce_in_tree": {{"iname": "l{k}_sum", "tree": "t{k}", "tag": "l.0"}}}},
{{"tag_iname": {{"iname": "l{k}", "tag": "l.0"}}}}"#
        ));
    }
    (program + &loops, format!("{{\"steps\": [{}]}}", steps.join(",\n")))
}

#[test]
fn sums_in_several_trees_are_right() {
    for (number, items) in [(3, 16), (2, 64)] {
        let (program, recipe) = trees(number, items);
        let name = format!("{number} trees of {items}");
        assert!(is_right(&name, &program, &recipe, &["--param", "n=1000"]), "{name}");
    }
}

/// A loop whose body is an inner loop, a barrier, a statement and another barrier.
#[test]
fn a_loop_that_begins_with_a_loop_compiles() {
    for (items, turns) in of_run([(2, 5), (4, 3)], &[0]) {
        let (size, out) = (10 * items, items * turns);
        let program = format!(
            "kernel begins\narg b: i32[{out}] out\ntemp a: i32[{size}] local\n
for o in 0..{turns}
  for j in 0..{items} {{l.0}}
    for k in 0..10
      s: a[j + {items}*k] = j + k
  for i in 0..{items} {{l.0}}
    t: b[i + {items}*o] = a[2*(i + {items}*o)]\n"
        );
        let name = format!("{items} work-items");
        assert!(is_right(&name, &program, "{\"steps\": []}", &[]), "{name}");
    }
}
