//! The command line, through the binary.

#![allow(clippy::unwrap_used)]

use crate::{AXPY, kingpost, write};
use kingpost::forms::strategies::Objective;
use kingpost::tuning::vectors::HostVectors;
use kingpost_sample::{is_long_run, of_run};
use std::path::Path;
use std::process::{Command, Output};

/// What the vectors of this processor hold, on which defaults depend.
fn vectors() -> HostVectors {
    HostVectors::of(kingpost::runtime::open("c").unwrap().info())
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs and expects success; the standard output.
fn good(args: &[&str]) -> String {
    let output = kingpost(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Runs and expects an exit code; the standard error.
fn bad(args: &[&str], code: i32) -> String {
    let output = kingpost(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stderr(&output)
}

#[test]
fn every_operator_runs_and_agrees_with_the_reference() {
    for form in of_run(["mass", "helmholtz", "laplace", "elasticity", "hyperelasticity"], &[2, 4]) {
        let text = good(&["run", form, "--dim", "3", "--degree", "2", "--cells", "4", "--no-time"]);
        assert!(text.contains("relative error") && text.contains("384"), "{text}");
    }
}

#[test]
fn a_timed_run_writes_what_it_made() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let target = out.to_string_lossy();
    let text = good(&[
        "run",
        "mass",
        "--dim",
        "2",
        "--degree",
        "1",
        "--cells",
        "4",
        "--device",
        "c",
        "--save-dir",
        &target,
    ]);
    for word in [
        "cells",
        "degrees of freedom",
        "relative error",
        "time (median)",
        "DoF/s",
        "GFLOP/s",
        "roofline, true",
    ] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    // a processor has no local memory of its own
    assert!(!text.contains("local tables"), "{text}");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert!(read("mass_2d_p1.c").contains("mass_2d_p1"));
    assert!(read("roofline.svg").starts_with("<svg"));
    assert!(read("report.json").contains("\"kernel_hash\""));
    let report: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    let points = serde_json::json!([0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let nodes = serde_json::json!([{"degree": 1, "variant": "equispaced", "points": points}]);
    assert_eq!(report["nodes"], nodes);
    let recipe = out.join("recipe.json").to_string_lossy().into_owned();
    let replayed = good(&["print", "mass", "--dim", "2", "--degree", "1", "--recipe", &recipe]);
    assert_eq!(replayed, read("mass_2d_p1.kingpost"));
}

#[test]
fn print_gives_the_same_bytes_twice() {
    for target in ["kernel", "cuda", "hip", "opencl", "c"] {
        let args = ["print", "laplace", "--dim", "3", "--degree", "4", "--target", target];
        let first = good(&args);
        assert!(first.len() > 1000);
        assert_eq!(first, good(&args), "{target}");
    }
}

/// What prints for a processor of AMD.
fn for_gfx942(degree: &str) -> [&str; 10] {
    ["print", "laplace", "--dim", "3", "--degree", degree, "--target", "hip", "--arch", "gfx942"]
}

#[test]
fn a_processor_has_a_mapping_of_its_own() {
    let large = good(&for_gfx942("6"));
    let (first, source) = large.split_once('\n').unwrap();
    assert!(first.starts_with("// gfx942: ") && first.contains("matrix cells"), "{first}");
    assert!(first.contains("the only one tried that fits an MI300X; nothing was timed there"), "{first}");
    assert!(source.contains("__builtin_amdgcn_mfma_f64_16x16x4f64"));
}

#[test]
fn a_processor_is_one_that_hip_is_printed_for() {
    let small = good(&for_gfx942("1"));
    assert!(small.starts_with("// gfx942: ") && !small.contains("mfma"), "{small:.200}");
    assert!(
        small.contains("predicted to be the fastest on an MI300X; nothing was timed there"),
        "{small:.200}"
    );
    let said = bad(&["print", "laplace", "--target", "cuda", "--arch", "gfx942"], 2);
    assert!(said.contains("--arch is for --target hip"), "{said}");
    let said = bad(&[&for_gfx942("6")[..], &["--strategy", "none"]].concat(), 2);
    assert!(said.contains("cannot be used with"), "{said}");
    assert!(bad(&["print", "laplace", "--target", "hip", "--arch", "gfx1100"], 2).contains("gfx90a"));
}

#[test]
fn a_printed_kernel_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let text = good(&["print", "helmholtz", "--dim", "2", "--strategy", "none"]);
    let file = write(dir.path(), "helmholtz.kingpost", &text);
    assert_eq!(good(&["print", &file]), text);
    assert!(good(&["print", &file, "--short-tables"]).len() < text.len());
    let plan = good(&["print", &file, "--target", "opencl", "--plan"]);
    assert!(plan.starts_with("// entry `helmholtz_2d_p2`") && plan.contains("__kernel"), "{plan}");
}

#[test]
fn code_is_shown_after_each_pass() {
    let args = ["print", "mass", "--dim", "2", "--degree", "1", "--target", "cuda"];
    let with = |more: &[&str]| good(&[&args[..], more].concat());
    // a source after a pass has no plan, and so no notes
    assert!(with(&[]).ends_with(&with(&["--after", "stack"])));
    let lowered = with(&["--after", "lower"]);
    assert!(!lowered.contains("= blockIdx.x;") && with(&["--after", "work_items"]).contains("= blockIdx.x;"));
    let all = with(&["--passes"]);
    let remarks = all.lines().filter_map(|l| l.strip_prefix("// ").filter(|l| !l.starts_with('(')));
    let headings: Vec<_> = remarks.filter_map(|l| l.split_once(": ")).collect();
    let named = kingpost::codegen::passes().iter().map(|p| (p.name, p.summary));
    assert_eq!(headings, named.collect::<Vec<_>>());
    assert!(all.contains(&lowered), "{all}");
    let said = bad(&["print", "mass", "--dim", "2", "--after", "lower"], 2);
    assert!(said.contains("passes are of a target's code; add --target cuda, hip, opencl or c"), "{said}");
    let said = bad(&[&args[..], &["--after", "lwer"]].concat(), 2);
    assert!(said.contains("lower"), "{said}");
}

#[test]
fn files_of_versions_before_0_3_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "axpy.purlin", AXPY);
    let recipe = write(
        dir.path(),
        "axpy.json",
        r#"{"purlin_recipe": 1, "steps": [{"split_iname": {"iname": "i", "factor": 4}}]}"#,
    );
    for file in [file.clone(), format!("{file}#axpy")] {
        assert!(good(&["print", &file, "--recipe", &recipe]).contains("for i_i in 0..min(4, "));
    }
    assert!(bad(&["print", &format!("{file}#dot")], 2).contains("`dot`"));
}

#[test]
fn a_loop_program_runs_against_the_interpreter() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "axpy.kingpost", AXPY);
    for device in ["c", "opencl"] {
        let text = good(&["run", &file, "--param", "n=1000", "--device", device, "--no-time"]);
        assert!(text.contains("of the tolerance"), "{text}");
    }
    let error = bad(&["run", &file], 2);
    assert!(error.contains("parameter `n` has no value") && error.contains("--param n=1000"), "{error}");
    assert!(bad(&["run", &file, "--param", "m=3"], 2).contains("no parameter `m`"));
    let permuted = AXPY.replace("arg a: f64 in", "arg a: f64 in\narg p: i32[n] in\nassume injective(p)");
    let permuted = write(dir.path(), "permuted.kingpost", &permuted.replace("y[i] +=", "y[p[i]] +="));
    good(&["run", &permuted, "--param", "n=100", "--no-time"]);
    let values = write(dir.path(), "values.json", r#"{"a": 2.0, "x": [1, 2, 3], "y": [0, 0, 0]}"#);
    good(&["run", &file, "--param", "n=3", "--values", &values, "--no-time"]);
    assert!(bad(&["run", &file, "--param", "n=4", "--values", &values, "--no-time"], 2).contains("`x`"));
}

/// A program, its parameters and the steps that are applied to it.
type Case = (&'static str, &'static [&'static str], &'static str);

const LOOPS: &[Case] = &[
    (
        "kernel lanes\nparam n: i32\narg x: f64[n] in\narg y: f64[n] inout\nfor i in 0..n\n  s: y[i] = 2.0*x[i] + y[i]\n",
        &["n=37"],
        r#"{"split_iname": {"iname": "i", "factor": 8, "tail": "peel"}}, {"vectorise_iname": {"iname": "i_i"}}"#,
    ),
    (
        "kernel triangle\nparam n: i32\narg a: f64[n, 8, 8] in\narg y: f64[n, 8] inout\nfor b in 0..n {g.0}\n  for i in 0..8 {l.0}\n    for j in 0..i + 1\n      s: y[b, i] += a[b, i, j]\n",
        &["n=5"],
        r#"{"prefetch_array": {"var": "a", "at": "b", "space": "local", "work_items": [8], "footprint": "exact"}}"#,
    ),
    (
        "kernel sweep\nparam m: i32\nparam n: i32\narg a: f64[m, n] inout\nfor t in 1..m\n  for i in 0..n - 1\n    s: a[t, i] = a[t - 1, i + 1] + 0.5*a[t, i]\n",
        &["m=7", "n=9"],
        r#"{"map_inames": {"inames": ["t", "i"], "matrix": [[1, 1], [1, 0]]}}"#,
    ),
    (
        "kernel skewed\nparam m: i32\nparam n: i32\narg a: f64[m, n] inout\nfor t in 0..m\n  for i in 0..n\n    s: a[t, i] = 2.0*a[t, i]\n",
        &["m=6", "n=4"],
        r#"{"map_inames": {"inames": ["t", "i"], "matrix": [[3, 1], [2, 1]], "offset": [1, -2]}}"#,
    ),
    (
        "kernel pairs\nparam n: i32\narg x: f64[n] in\narg y: f64[n] inout\nrule r(i) := x[i]*x[i] + 1.0\nfor b in 0..floor_div(n, 8)\n  for k in 0..8\n    for l in 0..4\n      s: y[8*b + k] += r(8*b + k)*r(8*b + 2*l)\n",
        &["n=40"],
        r#"{"tag_iname": {"iname": "b", "tag": "g.0"}}, {"tag_iname": {"iname": "k", "tag": "l.0"}}, {"precompute_rule": {"rule": "r", "at": "b", "space": "local", "work_items": [8]}}"#,
    ),
    (
        "kernel ends\nparam n: i32\narg a: f64[n] in\narg b: f64[n] inout\narg c: f64[n] inout\nfor i in 2..n - 2\n  s: b[i] = a[i - 2] + a[i + 2]\n  t: c[i] = 2.0*c[i]\n",
        &["n=19"],
        r#"{"prefetch_array": {"var": "a", "at": "i", "space": "private", "footprint": "exact"}}, {"duplicate_iname": {"iname": "i", "insns": {"all": [{"inside": "i"}, {"writes": "c"}]}}}, {"tag_iname": {"iname": "i_dup", "tag": "g.0"}}"#,
    ),
];

/// A parameter that the steps fix needs no value, wherever the steps stand; another value is
/// refused.
#[test]
fn a_loop_program_is_scheduled_without_a_step() {
    let dir = tempfile::tempdir().unwrap();
    // sums of columns wait for themselves; each iteration of `i` needs a `t` of its own
    let text = "kernel columns\n\nparam n: i32\narg a: f64[n, n] in\narg y: f64[n] inout\ntemp t: f64 private\n\n\
                for i in 0..n\n  z: t = 0.0\n  for j in 0..n\n    u: t += a[j, i]*a[j, i]\n  s: y[i] += sqrt(t)\n";
    let file = write(dir.path(), "columns.kingpost", text);
    let size = ["--param", "n=90", "--device", "c", "--seed", "3"];
    let auto = |command: &str, more: &[&str]| good(&[&[command, &file][..], &size, more].concat());
    let found = auto("auto", &["--why"]);
    assert!(found.contains("as written") && found.contains("fastest"), "{found}");
    assert!(found.contains("carry `i` into `j`: taken"), "{found}");
    assert!(found.contains("expand_array(t, inames: [i])") && !found.contains("wrong"), "{found}");
    // what is printed is a schedule, for other sizes, too
    let schedule = write(dir.path(), "columns.schedule", &found);
    for n in ["n=0", "n=1", "n=37"] {
        good(&["run", &file, "--param", n, "--device", "c", "--no-time", "--recipe", &schedule]);
    }
    // a file without holes has nothing else to be tuned
    let tuned = auto("tune", &["--budget", "2"]);
    assert!(tuned.contains("as written") && tuned.contains("fastest"), "{tuned}");
    let form = bad(&["auto", "laplace"], 2);
    assert!(form.contains("`kingpost tune` finds the fastest one"), "{form}");
}

/// A sweep in time that a card runs in launches, one sum in the work-items of a group, and a triangle.
#[test]
fn a_card_gets_a_schedule_without_being_there() {
    let dir = tempfile::tempdir().unwrap();
    let text = "kernel sweep\n\nparam m: i32\nparam n: i32\narg a: f64[n, n] inout\narg b: f64[n, n] inout\n\
                arg s: f64[n] inout\nassume n >= 2\ntemp c: f64 private\n\nfor t in 0..m\n  z: c = 0.0\n  for k in 0..n\n    u: c += a[0, k]\n  \
                for i in 1..n - 1\n    for j in i..n - 1\n      p: b[i, j] = c*(a[i - 1, j] + a[i + 1, j])\n  \
                for i2 in 1..n - 1\n    for j2 in 1..n - 1\n      q: a[i2, j2] = 0.5*b[i2, j2]\n  d: s[0] += c\n";
    let file = write(dir.path(), "sweep.kingpost", text);
    let size = ["--param", "m=3", "--param", "n=300", "--device", "cuda", "--untimed"];
    let found = good(&[&["auto", &file, "--why"][..], &size].concat());
    assert!(found.contains("# not timed: ") && found.contains(" s predicted"), "{found}");
    // `c` passes from one launch to the others
    assert!(found.contains("set_address_space(c, space: global)"), "{found}");
    assert!(found.contains("reduce_in_tree(") && found.contains("tag: g.1)"), "{found}");
    let schedule = write(dir.path(), "sweep.schedule", &good(&[&["auto", &file][..], &size].concat()));
    for (device, n) in of_run([("c", "n=2"), ("c", "n=37"), ("opencl", "n=3"), ("opencl", "n=70")], &[1, 2]) {
        let sizes = ["--param", "m=3", "--param", n, "--device", device, "--no-time"];
        good(&[&["run", &file, "--recipe", &schedule][..], &sizes].concat());
    }
    let error = bad(&[&["auto", &file, "--budget", "3"][..], &size].concat(), 2);
    assert!(error.contains("--untimed") && error.contains("--budget"), "{error}");
}

#[test]
fn fixed_parameters_need_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let steps = "fix_parameter(n, 64)\nsplit_iname(i, 8)\n";
    let plain = write(dir.path(), "axpy.kingpost", AXPY);
    let scheduled = write(dir.path(), "scheduled.kingpost", &format!("{AXPY}\nschedule\n{steps}"));
    let text = write(dir.path(), "steps.txt", steps);
    let json = r#"{"steps": [{"fix_parameter": {"param": "n", "value": 64}}]}"#;
    let recipe = write(dir.path(), "recipe.json", json);
    for given in [&[&*scheduled][..], &[&plain, "--recipe", &text], &[&plain, "--recipe", &recipe]] {
        let run = [&["run"][..], given, &["--no-time"]].concat();
        assert!(good(&run).contains("of the tolerance"));
        good(&[&run[..], &["--param", "n=64"]].concat());
        let error = bad(&[&run[..], &["--param", "n=32"]].concat(), 2);
        assert!(error.contains("--param n=32: the steps fix `n` to 64; leave it out"), "{error}");
        let counted = good(&[&["stats"][..], given].concat());
        assert!(counted.contains("n = 64"), "{counted}");
        good(&[&["steps"][..], given, &["--time", "--device", "c"]].concat());
    }
    let both = AXPY.replace("param n: i32", "param n: i32\nparam m: i32\nassume m >= 1");
    let both = write(dir.path(), "both.kingpost", &both);
    let error = bad(&["run", &both, "--recipe", &recipe], 2);
    assert!(error.contains("parameter `m` has no value"), "{error}");
}

/// What stays scalar, or runs on one work-item, is said with the source, with the plan and by
/// `stats`.
#[test]
fn code_generation_says_what_nobody_expects() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "kernel rows\nparam n: i32\narg x: f32[n, n] in\narg y: f32[n, n] out\n
for i in 0..n {g.0}\n  for j in 0..floor_div(n, 4)\n    for v in 0..4 {vector}\n      s: y[i, 4*j + v] = x[i, 4*j + v]\n";
    let file = write(dir.path(), "rows.kingpost", rows);
    let scalar = "`v` is tagged vector and stays scalar: the first lane's element of `y` is known to lie at a \
                  multiple of 4 bytes, needed 8";
    for more in [&[][..], &["--plan"]] {
        let text = good(&[&["print", &file, "--target", "cuda"][..], more].concat());
        assert!(text.contains(&format!("// note: {scalar}")), "{text}");
        assert!(!good(&[&["print", &file, "--target", "opencl"][..], more].concat()).contains("note"));
    }
    let counted = good(&["stats", &file, "--param", "n=8"]);
    assert!(counted.contains(&format!("note (cuda, hip): {scalar}")), "{counted}");
    let known = rows.replace("arg x", "assume n mod 64 == 0\narg x");
    let known = write(dir.path(), "known.kingpost", &known);
    let text = good(&["print", &known, "--target", "cuda"]);
    assert!(text.contains("float4") && !text.contains("note"), "{text}");
    let copy = "kernel copy\nparam n: i32\narg x: f64[n, 32] in\narg y: f64[n, 32] out\ntemp t: f64[32] local\n
for g in 0..n {g.0}\n  for l in 0..32\n    copy: t[l] = x[g, l]\n  for i in 0..32 {l.0}\n    use: y[g, i] = t[31 - i]\n";
    let copy = write(dir.path(), "copy.kingpost", copy);
    let note = "`l` runs on one work-item of a group, at index 0 of l.0: `copy`";
    for target in ["cuda", "hip", "opencl", "c"] {
        let text = good(&["print", &copy, "--target", target]);
        assert!(text.contains(&format!("// note: {note}")) && text.contains("== 0"), "{text}");
    }
    let counted = good(&["stats", &copy, "--param", "n=2"]);
    assert!(counted.contains(&format!("note (cuda, hip, opencl): {note}")), "{counted}");
}

/// What a recipe assumes of a map is checked on the real one when that is asked for.
#[test]
fn maps_are_checked_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let scatter =
        "kernel scatter\nparam n: i32\narg dofs: i32[n, 2] in\narg x: f64[n, 2] in\narg y: f64[2*n] inout\n
for c in 0..n\n  for j in 0..2\n    s: y[dofs[c, j]] += x[c, j]\n";
    let file = write(dir.path(), "scatter.kingpost", scatter);
    let recipe = write(
        dir.path(),
        "recipe.json",
        r#"{"steps": [{"assume": {"injective": {"array": "dofs"}}}, {"tag_iname": {"iname": "c", "tag": "g.0"}}]}"#,
    );
    let values = |dofs: &str| write(dir.path(), "values.json", &format!(r#"{{"dofs": {dofs}}}"#));
    let run = |values: &str| {
        let args =
            ["run", &file, "--recipe", &recipe, "--param", "n=3", "--values", values, "--no-time", "--check"];
        args.map(str::to_owned)
    };
    let text = good(&run(&values("[0, 4, 2, 1, 3, 5]")).each_ref().map(String::as_str));
    assert!(text.contains("injective: `dofs`") && text.contains("1 by the range of the maps"), "{text}");
    let error = bad(&run(&values("[0, 4, 2, 4, 3, 5]")).each_ref().map(String::as_str), 1);
    assert!(error.contains("`dofs[0, 1]` = `dofs[1, 1]` = 4, needed an injective `dofs`"), "{error}");
    let text =
        good(&["run", "laplace", "--dim", "2", "--cells", "4", "--device", "c", "--no-time", "--check"]);
    assert!(text.contains("accesses inside their arrays"), "{text}");
    let plan = good(&["print", &file, "--target", "c", "--plan"]);
    assert!(
        plan.contains("// `s` is left to `kingpost run --check` at y[dofs[c, j]]: its index is read"),
        "{plan}"
    );
}

#[test]
fn what_is_done_to_loops_runs_against_the_interpreter() {
    let dir = tempfile::tempdir().unwrap();
    for (k, (text, params, steps)) in LOOPS.iter().enumerate() {
        let file = write(dir.path(), &format!("loops_{k}.kingpost"), text);
        let recipe = write(dir.path(), &format!("loops_{k}.json"), &format!(r#"{{"steps": [{steps}]}}"#));
        for device in ["c", "opencl"] {
            let mut args = vec!["run", &file, "--recipe", &recipe, "--device", device, "--no-time"];
            params.iter().for_each(|p| args.extend(["--param", p]));
            assert!(good(&args).contains("of the tolerance"), "{text}");
        }
    }
    let file = dir.path().join("loops_0.kingpost").to_string_lossy().into_owned();
    let recipe = dir.path().join("loops_0.json").to_string_lossy().into_owned();
    assert!(good(&["print", &file, "--recipe", &recipe, "--target", "c"]).contains("kingpost_f64x"));
}

#[test]
fn row_sums_are_joined_by_shuffles() {
    let sizes = ["--param", "n=5", "--param", "m=70", "--no-time"];
    let recipe = ["--recipe", "examples/row_sums_recipe.json"];
    for extra in [&[][..], &recipe] {
        let args = [&["run", "examples/row_sums.kingpost"][..], &sizes[..], extra].concat();
        assert!(good(&args).contains("of the tolerance"));
    }
    let args = [&["print", "examples/row_sums.kingpost", "--target", "cuda"][..], &recipe].concat();
    // five steps, and everybody takes the sum
    assert_eq!(good(&args).matches("__shfl_sync").count(), 6);
}

#[test]
fn neighbours_are_one_vector() {
    let recipe = ["examples/triad.kingpost", "--recipe", "examples/triad_recipe.json"];
    for device in ["c", "opencl"] {
        let args = [&["run"][..], &recipe, &["--param", "n=300", "--no-time", "--device", device]].concat();
        assert!(good(&args).contains("of the tolerance"));
    }
    for (target, vector) in [("cuda", "make_float4("), ("opencl", "vstore4(")] {
        assert!(good(&[&["print"][..], &recipe, &["--target", target]].concat()).contains(vector));
    }
}

#[test]
fn arguments_lie_as_the_recipe_says() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = write(
        dir.path(),
        "rows.kingpost",
        "kernel rows\nparam n: i32\narg a: f64[n, 3] in\narg r: f64[n, 2] inout\ntable w: f64[2] global\n\
         for i in 0..n\n  s: r[i, 1] = a[i, 0] + 2.0*a[i, 1] + w[1]\ntable w = [1.5, 2.5]\n",
    );
    let recipe = write(
        dir.path(),
        "laid_out.json",
        r#"{"steps": [{"change_layout": {"var": "a", "layout": "strides(1, n)"}},
            {"change_layout": {"var": "r", "layout": "strides(5, 2)"}}, {"pass_table": {"var": "w"}}]}"#,
    );
    for check in [&["--check"][..], &[]] {
        let args =
            [&["run", &kernel, "--recipe", &recipe, "--param", "n=5", "--no-time"][..], check].concat();
        assert!(good(&args).contains("of the tolerance"));
    }
}

/// Row by row whatever the layout, before a timed run updates them again.
#[test]
fn arrays_are_written_for_numpy() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = write(
        dir.path(),
        "rows.kingpost",
        "kernel rows\nparam n: i32\narg a: f64[n, 3] in\narg f: i32 in\narg r: f64[n, 2] inout\narg o: i32[n + 1] out\n\
         for i in 0..n\n  s: r[i, 1] += a[i, 0] + 2.0*a[i, 1]\n  t: o[i] = f\n",
    );
    let recipe = write(
        dir.path(),
        "r.json",
        r#"{"steps": [{"change_layout": {"var": "r", "layout": "strides(5, 2)"}}]}"#,
    );
    let values =
        write(dir.path(), "v.json", r#"{"a": [1, 2, 3, 4, 5, 6], "f": 7, "r": [0.5, 1.5, 2.5, 3.5]}"#);
    let out = dir.path().join("out/deep");
    let target = out.to_string_lossy();
    let args = [
        "run",
        &kernel,
        "--recipe",
        &recipe,
        "--values",
        &values,
        "--param",
        "n=2",
        "--save-arrays",
        &target,
    ];
    let text = good(&args);
    assert!(
        text.contains(&format!("wrote {target}/r.npy (f64 [2, 2])\nwrote {target}/o.npy (i32 [3])\n")),
        "{text}"
    );
    assert!(!out.join("inputs").exists());
    let elements = |name: &str, shape: &str| {
        let bytes = std::fs::read(out.join(name)).unwrap();
        let header = String::from_utf8_lossy(&bytes[10..128]);
        assert!(header.contains(&format!("'fortran_order': False, 'shape': {shape}, }}")), "{header}");
        bytes[128..].to_vec()
    };
    let f64s = |v: &[f64]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let i32s = |v: &[i32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(elements("r.npy", "(2, 2)"), f64s(&[0.5, 6.5, 2.5, 17.5]));
    assert_eq!(elements("o.npy", "(3,)"), i32s(&[7, 7, -1])); // nothing writes the last
    good(&[&args[..], &["--save-inputs", "--no-time"]].concat());
    assert_eq!(elements("inputs/a.npy", "(2, 3)"), f64s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!(elements("inputs/f.npy", "()"), i32s(&[7]));
    assert_eq!(elements("inputs/r.npy", "(2, 2)"), f64s(&[0.5, 1.5, 2.5, 3.5]));
    assert!(!out.join("inputs/o.npy").exists());
}

#[test]
fn the_arrays_of_a_form_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().to_string_lossy();
    let form = ["run", "mass", "--dim", "2", "--degree", "1", "--cells", "2", "--device", "c", "--no-time"];
    let text = good(&[&form[..], &["--save-arrays", &target, "--save-inputs"]].concat());
    for file in ["inputs/dofs.npy (i32 [8, 3])", "inputs/u.npy (f64 [9])", "y.npy (f64 [9])"] {
        assert!(text.contains(&format!("wrote {target}/{file}\n")), "{text}");
    }
}

/// Kernels of a form have arguments of the same names.
#[test]
fn each_kernel_of_a_form_has_a_folder_of_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().to_string_lossy();
    let form = "crates/forms/tests/tabulated/interior_penalty.json";
    let text = good(&[
        "run",
        form,
        "--cells",
        "2",
        "--device",
        "c",
        "--no-time",
        "--save-arrays",
        &target,
        "--save-inputs",
        "--save-dir",
        &target,
    ]);
    let lists = "interior_penalty_interior_facets/inputs/facet_cells.npy (i32 [8, 2])";
    for file in ["interior_penalty/y.npy", lists, "interior_penalty_exterior_facets_1/recipe.json\n"] {
        assert!(text.contains(&format!("wrote {target}/{file}")), "{text}");
    }
    assert!(!dir.path().join("y.npy").exists());
}

#[test]
fn arrays_that_cannot_be_written_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = write(dir.path(), "axpy.kingpost", AXPY);
    let run =
        |target: &str| bad(&["run", &kernel, "--param", "n=2", "--no-time", "--save-arrays", target], 2);
    let inside = format!("{kernel}/inside");
    assert_eq!(run(&inside), format!("error: cannot write `{inside}`: Not a directory (os error 20)\n"));
    std::fs::create_dir_all(dir.path().join("y.npy")).unwrap();
    let target = dir.path().to_string_lossy();
    assert_eq!(run(&target), format!("error: cannot write `{target}/y.npy`: is a directory\n"));
    assert!(bad(&["run", &kernel, "--save-inputs"], 2).contains("--save-arrays <DIR>"));
}

#[test]
fn data_dependent_bounds_take_their_values_from_a_file() {
    let sizes = ["--param", "n=3", "--param", "nnz=4", "--values", "examples/csr.json", "--no-time"];
    let plain = ["run", "examples/csr.kingpost"];
    assert!(good(&[&plain[..], &sizes[..]].concat()).contains("of the tolerance"));
    for recipe in ["csr_recipe", "csr_lanes_recipe", "csr_slices_recipe"] {
        let file = format!("examples/{recipe}.json");
        for device in ["c", "opencl"] {
            let with = ["--recipe", &file, "--device", device];
            assert!(good(&[&plain[..], &sizes[..], &with].concat()).contains("of the tolerance"), "{recipe}");
        }
    }
    // The first entry of `column` leads out of `x`: refused before a device sees it.
    let dir = tempfile::tempdir().unwrap();
    let json = std::fs::read_to_string(crate::root().join("examples/csr.json"));
    let json = json.unwrap().replace("\"column\": [0", "\"column\": [9");
    let values = write(dir.path(), "out_of_range.json", &json);
    let error =
        bad(&["run", "examples/csr.kingpost", "--param", "n=3", "--param", "nnz=4", "--values", &values], 2);
    assert!(error.contains("`x[9]`") && error.contains("--values"), "{error}");
}

/// The schedules that are compared with Triton's kernels: sums of sub-groups by shuffles, of groups
/// in local memory.
#[test]
fn softmax_and_layer_norm_hold_rows_in_registers() {
    for kernel in ["softmax", "layer_norm"] {
        let file = format!("studies/triton/{kernel}.kingpost");
        let hole = ["--hole", "warps=4"];
        let sizes = ["--param", "rows=3", "--param", "n=4096", "--device", "c", "--no-time"];
        assert!(good(&[&["run", &file][..], &sizes, &hole].concat()).contains("of the tolerance"));
        let cuda = good(&[&["print", &file, "--target", "cuda"][..], &hole].concat());
        assert_eq!((cuda.matches("= __shfl_sync").count(), cuda.matches("__syncthreads").count()), (10, 2));
    }
}

#[test]
fn cells_in_parallel_without_atomics_are_refused_with_two_instances() {
    let dir = tempfile::tempdir().unwrap();
    let recipe =
        write(dir.path(), "bad.json", r#"{"steps": [{"tag_iname": {"iname": "cell", "tag": "g.0"}}]}"#);
    for command in ["print", "run", "steps"] {
        let error = bad(&[command, "laplace", "--dim", "2", "--degree", "1", "--recipe", &recipe], 1);
        assert!(error.contains("step 1 of 1: tag `cell` g.0"), "{error}");
        assert!(error.contains("`scatter_y[0,0]`") && error.contains("`scatter_y[1,0]`"), "{error}");
        assert!(error.contains("through `dofs`") && error.contains("atomic"), "{error}");
    }
}

/// A tensor-product operator whose schedule has holes: every step is legal at both ends of them.
#[test]
fn parameters_of_a_tensor_product_recipe_are_holes() {
    let args = ["run", "examples/tuned_bp35.kingpost", "--param", "n=8", "--param", "ne=5", "--device", "c"];
    for holes in [
        ["elements=1", "pad=1", "groups=8", "columns=private", "lines=local"],
        ["elements=4", "pad=3", "groups=1", "columns=local", "lines=private"],
    ] {
        let holes: Vec<&str> = holes.iter().flat_map(|hole| ["--hole", hole]).collect();
        let text = good(&[&args[..], &["--no-time"], &holes].concat());
        assert!(text.contains("`y`: 2560 elements"), "{text}");
    }
    let refused = bad(
        &[
            &args[..],
            &[
                "--hole",
                "elements=4",
                "--hole",
                "pad=1",
                "--hole",
                "groups=8",
                "--hole",
                "columns=local",
                "--hole",
                "lines=local",
            ],
        ]
        .concat(),
        2,
    );
    let broken = "columns = local, elements = 4, groups = 8, lines = local, pad = 1 break a constraint";
    assert!(refused.contains(broken), "{refused}");
    // what is stored where is a value like any other, and an address space that no temporary has is
    // refused
    let unknown = bad(&[&args[..], &["--hole", "columns=literal"]].concat(), 2);
    assert!(unknown.contains("`columns` is one of private, local, not literal"), "{unknown}");
}

/// Which symbols the integer program factorises, and which sets of loops were compared.
#[test]
fn steps_say_what_fewer_operations_were_decided_by() {
    let shown = good(&["steps", "examples/poisson.kingpost", "--strategy", "sharing-elimination", "--diff"]);
    assert!(shown.contains("4 symbols in 2 products; the integer program factorises 2: `"), "{shown}");
    let mapping = r#"{"strategy":"fewest_operations","then":{"strategy":"sequential"}}"#;
    let shown = good(&[
        "steps",
        "helmholtz-matrix",
        "--degree",
        "2",
        "--matrix",
        "cells",
        "--mapping",
        mapping,
        "--diff",
    ]);
    for line in [
        "# monomial of `phi_p2` over `q`: increase 1, points 11, theta -2000, may be evaluated in advance; \
         integer program: 1 symbol for 1 product",
        "# `quad_y`: 8 symbols in 4 products; the integer program factorises 4: ",
        "# all loops keep their points: 6859 operations",
        "# in advance `q`: 958 operations",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

/// Each kernel is timed after it was compared, with the one before it and the first.
#[test]
fn steps_say_what_each_gains() {
    let args = ["steps", "examples/matmul.kingpost", "--recipe", "examples/matmul_recipe.json", "--diff"];
    let untimed = good(&args);
    let text = good(&[&args[..], &["--time", "--device", "c", "--param", "n=40"]].concat());
    assert_eq!(text.matches(" times as fast as before, ").count(), 16, "{text}");
    let is_added = |l: &&str| l.starts_with("# on ") || is_time(l) || l.contains(" bank conflicts in ");
    let without: String = text.lines().filter(|l| !is_added(l)).map(|l| format!("{l}\n")).collect();
    assert_eq!(without, untimed);
    // both tiles, which lie row by row: 2 x 2 groups of 2 tiles
    let counted = good(&[&args[..], &["--param", "n=40"]].concat());
    let banks: Vec<&str> = counted.lines().filter(|l| l.contains(" bank conflicts in ")).collect();
    assert_eq!(banks, ["# 0 bank conflicts in 5,040 wavefronts", "# 0 bank conflicts in 10,080 wavefronts"]);
    let text = good(&["steps", "bp35", "--degree", "1", "--cells", "2", "--time", "--device", "c"]);
    assert!(text.matches(" times as fast as before, ").count() >= 3, "{text}");
    let refused = bad(&[&args[..], &["--device", "c"]].concat(), 2);
    assert!(refused.contains("--time"), "{refused}");
    // values of an argument that a step fixes to others
    let dir = tempfile::tempdir().unwrap();
    let kernel = write(
        dir.path(),
        "a.kingpost",
        "kernel k\narg a: f64 in\narg y: f64[3] out\nfor i in 0..3\n  s: y[i] = a\n",
    );
    let fixed = r#"{"steps": [{"fix_argument": {"var": "a", "values": {"Real": [2.0]}}}]}"#;
    let fixed = write(dir.path(), "fixed.json", fixed);
    let refused = bad(&["steps", &kernel, "--recipe", &fixed, "--time", "--device", "c"], 1);
    assert!(refused.contains("after `fix "), "{refused}");
    let values = write(dir.path(), "values.json", r#"{"a": 2.0}"#);
    good(&["steps", &kernel, "--recipe", &fixed, "--time", "--device", "c", "--values", &values]);
}

fn is_time(line: &str) -> bool {
    line.contains("(median of ")
        && line.strip_prefix("# ").is_some_and(|l| l.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn steps_show_the_kernel_up_to_the_refusal() {
    let text = good(&["steps", "mass", "--dim", "2", "--degree", "1"]);
    for word in ["# the kernel before any step", "# step 1 of 4", "# step 4 of 4", "{g.0}", "{l.0}", "atomic"]
    {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    let diff = good(&["steps", "mass", "--dim", "2", "--degree", "1", "--diff"]);
    assert!(
        diff.contains("\n- for cell in 0..n_cells\n") && diff.contains("\n+ for cell_group in "),
        "{diff}"
    );

    let dir = tempfile::tempdir().unwrap();
    let json = r#"{"steps": [{"split_iname": {"iname": "cell", "factor": 8}}, {"split_iname": {"iname": "cell", "factor": 8}}]}"#;
    let recipe = write(dir.path(), "twice.json", json);
    let output = kingpost(&["steps", "mass", "--recipe", &recipe]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("# step 1 of 2") && !stdout(&output).contains("# step 2 of 2:"));
    assert!(stderr(&output).contains("step 2 of 2: split `cell`"), "{}", stderr(&output));
    // the kernel it met is the last one, also where only differences are printed
    let met =
        good(&["print", "mass", "--recipe", &write(dir.path(), "once.json", SPLIT_ONCE), "--short-tables"]);
    let printed = stdout(&output);
    let tail =
        "\n# step 2 of 2 is refused: split `cell` by 8 into `cell_o`, `cell_i`\n# it met the kernel above\n";
    assert!(printed.ends_with(&format!("{met}{tail}")), "{printed}");
    let output = kingpost(&["steps", "mass", "--diff", "--recipe", &recipe]);
    let tail = format!("split `cell` by 8 into `cell_o`, `cell_i`\n# it met this kernel\n\n{met}");
    assert!(stdout(&output).ends_with(&tail), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("there is no iname `cell`; there is `cell_i`, `cell_o`"),
        "{}",
        stderr(&output)
    );
}

/// A strategy that ends half-way has been applied as far as it came.
#[test]
fn steps_show_a_strategy_up_to_the_refusal() {
    let nonlinear = ["hyperelasticity", "--dim", "2", "--degree", "1", "--mapping"];
    let matrices = r#"{"strategy":"matrix_cells","sub_groups":1,"groups":1,"kept_tables":1}"#;
    let output = kingpost(&[&["steps"], &nonlinear[..], &[matrices]].concat());
    assert_eq!(output.status.code(), Some(1));
    let printed = stdout(&output);
    assert!(printed.contains("# the next step is refused: it met the kernel above"), "{printed}");
    assert!(stderr(&output).contains("factor quadrature `q`"), "{}", stderr(&output));
}

const SPLIT_ONCE: &str = r#"{"steps": [{"split_iname": {"iname": "cell", "factor": 8}}]}"#;

#[test]
fn recipes_are_compared_step_by_step_and_by_what_they_make() {
    let dir = tempfile::tempdir().unwrap();
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let split = |factor: u8, more: &str| {
        format!(r#"{{"steps": [{{"split_iname": {{"iname": "i", "factor": {factor}}}}}{more}]}}"#)
    };
    let tag = r#", {"tag_iname": {"iname": "i_o", "tag": "g.0"}}"#;
    let a = write(dir.path(), "a.json", &split(4, tag));
    let b = write(dir.path(), "b.json", &split(8, ""));
    let text = good(&["diff", &a, &b]);
    let steps =
        "~ 1. split `i` by 4 into `i_o`, `i_i`\n  1. split `i` by 8 into `i_o`, `i_i`\n- 2. tag `i_o` g.0\n";
    assert_eq!(text, format!("{steps}\n1 removed, 0 added, 1 changed\n"));
    let text = good(&["diff", &a, &b, "--kernel", &axpy]);
    assert!(text.starts_with(steps) && text.contains("the kernels part at step 1\n"), "{text}");
    for line in
        ["\n-  for i_i in 0..min(4, n - 4*i_o)\n", "\n+  for i_i in 0..min(8, n - 8*i_o)\n", "\nat the end\n"]
    {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    assert!(text.contains("{g.0}"), "{text}");
    let text = good(&["diff", &a, &a, "--kernel", &axpy]);
    assert_eq!(text, "the same 2 steps\n\nthe kernels are the same after each of 2 steps\n");

    // names apart the same, in another order
    let swap = r#"{"steps": [{"tag_iname": {"iname": "i", "tag": "g.0"}}, {"tag_iname": {"iname": "i", "tag": "sequential"}}]}"#;
    let there_and_back = write(dir.path(), "swap.json", swap);
    let nothing = write(dir.path(), "nothing.json", r#"{"steps": []}"#);
    let text = good(&["diff", &nothing, &there_and_back, "--kernel", &axpy]);
    assert!(
        text.contains("at the end they are the same again") && text.contains("nothing, it has ended"),
        "{text}"
    );

    let bad_step = write(dir.path(), "bad.json", &split(0, ""));
    let output = kingpost(&["diff", &a, &bad_step, "--kernel", &axpy]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("bad.json: refused: split `i` by 0"), "{}", stdout(&output));
    assert!(stderr(&output).contains("step 1 of 1: split `i` by 0"), "{}", stderr(&output));
    assert!(bad(&["diff", &a, "missing.json"], 2).contains("missing.json"));
    assert!(bad(&["diff", &a, &b, "--kernel", "laplce"], 2).contains("did you mean `laplace`?"));
}

/// Mappings that lower the form again, with a word of what their recipes say of it.
const LOWERED_ANEW: [(&str, &str); 3] = [
    (r#"{"strategy":"orbits","then":{"strategy":"straight_cells","cells":64}}"#, "symmetric_directions"),
    (
        r#"{"strategy":"orbits","points":true,"then":{"strategy":"straight_cells","cells":32,"parts":[3,3]}}"#,
        "point_orbits",
    ),
    (
        r#"{"strategy":"rules","scheme":"collapsed_gauss_jacobi","then":{"strategy":"single_cell","cells":32}}"#,
        "rules(collapsed_gauss_jacobi)",
    ),
];

/// What was written replays: on the form, as JSON, as text and from the folder of a run, and on the
/// text of the kernel that it starts from. The kernel of the form itself is another one, and a
/// refusal says so.
#[test]
fn recipes_of_what_is_lowered_anew_replay() {
    let dir = tempfile::tempdir().unwrap();
    for (mapping, lowering) in of_run(LOWERED_ANEW, &[0]) {
        let form = ["laplace", "--dim", "2", "--degree", "2"];
        let of_form = |command: &str, more: &[&str]| good(&[&[command], &form[..], more].concat());
        let expected = of_form("print", &["--mapping", mapping]);
        let json = of_form("recipe", &["--mapping", mapping]);
        assert!(json.starts_with("{\n  \"kingpost_recipe\": 2,\n  \"lowering\": ["), "{json}");
        let json = write(dir.path(), "recipe.json", &json);
        let text = of_form("recipe", &["--mapping", mapping, "--text"]);
        assert!(text.starts_with(&format!("lowering {lowering}\n")), "{text}");
        let text = write(dir.path(), "recipe.txt", &text);
        for recipe in [&json, &text] {
            assert_eq!(of_form("print", &["--recipe", recipe]), expected, "{mapping}");
            let start = of_form("recipe", &["--recipe", recipe, "--start"]);
            let start = write(dir.path(), "start.kingpost", &start);
            assert_eq!(good(&["print", &start, "--recipe", recipe]), expected, "{mapping}");
            let steps = of_form("steps", &["--recipe", recipe, "--diff"]);
            let begins = format!("# the kernel before any step, of the form lowered with {lowering}\n");
            assert!(steps.starts_with(&begins), "{steps}");
            assert_eq!(steps, of_form("steps", &["--mapping", mapping, "--diff"]), "{mapping}");
        }
        let saved = dir.path().join("saved").to_string_lossy().into_owned();
        let run = ["--cells", "4", "--no-time", "--device", "c"];
        of_form("run", &[&run[..], &["--mapping", mapping, "--save-dir", &saved]].concat());
        let saved = format!("{saved}/recipe.json");
        assert_eq!(of_form("print", &["--recipe", &saved]), expected, "{mapping}");
        of_form("run", &[&run[..], &["--recipe", &saved]].concat());
        let same = of_form("recipe", &["--strategy", "none"]);
        let same = write(dir.path(), "none.json", &same);
        let diff = good(&["diff", &same, &json, "--kernel", "laplace", "--dim", "2", "--degree", "2"]);
        assert!(diff.starts_with(&format!("+ lowering {lowering}\n")), "{diff}");
        assert!(diff.contains("the kernels differ before any step\n  "), "{diff}");
    }
    // the tables of the form itself have other names
    let (mapping, _) = LOWERED_ANEW[0];
    let json = good(&["recipe", "laplace", "--dim", "2", "--degree", "2", "--mapping", mapping]);
    let json = write(dir.path(), "recipe.json", &json);
    let own = good(&["print", "laplace", "--dim", "2", "--degree", "2", "--strategy", "none"]);
    let own = write(dir.path(), "own.kingpost", &own);
    let message = bad(&["print", &own, "--recipe", &json], 1);
    let says = "the recipe starts from a form that is lowered with `symmetric_directions`: give the form, and \
                not the text of its kernel";
    assert!(message.contains(says), "{message}");
    let text = std::fs::read_to_string(&json).unwrap().replace("symmetric_directions", "with_care");
    let other = write(dir.path(), "other.json", &text);
    let message = bad(&["print", "laplace", "--recipe", &other], 1);
    assert!(
        message.contains("lowering `with_care`: found no such lowering, needed one of `rules("),
        "{message}"
    );
}

#[test]
fn a_kernel_of_several_in_a_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let scale = "kernel scale\nparam n: i32\narg x: f64[n] inout\nfor i in 0..n\n  x[i] *= 2\n";
    let text = format!("{AXPY}\nschedule\ntag(i, tag: g.0)\n\n{scale}");
    let file = write(dir.path(), "both.kingpost", &text);
    let of = |name: &str| format!("{file}#{name}");
    assert!(good(&["print", &of("axpy")]).contains("for i in 0..n {g.0}"));
    assert!(good(&["print", &of("scale")]).contains("s0: x[i] *= 2"));
    let error = bad(&["print", &file], 2);
    assert!(error.contains("has 2 kernels, `axpy`, `scale`; name one of them"), "{error}");
    let error = bad(&["print", &of("other")], 2);
    assert!(error.contains("has no kernel `other`; it has `axpy`, `scale`"), "{error}");
    // mistakes of the other kernel play no part, and places are those of the file
    let broken = write(dir.path(), "broken.kingpost", &text.replace("*= 2", "*= k"));
    good(&["print", &format!("{broken}#axpy")]);
    let error = bad(&["print", &format!("{broken}#scale")], 2);
    let line = text.lines().count();
    assert!(error.contains(&format!("broken.kingpost:{line}:11")), "{error}");
}

#[test]
fn mistakes_in_a_text_are_shown_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let text = AXPY.replace("a*x[i]", "a*x[k]").replace("0..n", "0...n");
    let file = write(dir.path(), "bad.kingpost", &text);
    let error = bad(&["print", &file], 2);
    assert!(error.contains("bad.kingpost:7:") && error.contains("bad.kingpost:8:"), "{error}");
    assert!(error.contains("`...`") && error.contains("`k`") && error.contains("2 mistakes"), "{error}");
}

#[test]
fn what_is_no_kernel_is_told_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().display().to_string();
    for what in [folder.as_str(), concat!(env!("CARGO_MANIFEST_DIR"), "/src")] {
        let error = bad(&["print", what], 2);
        assert!(error.contains("is a folder"), "{error}");
    }
    // in the folder of the test
    let error = bad(&["run", "Cargo.toml"], 2);
    assert!(error.contains("does not end in `.kingpost`"), "{error}");
    let error = bad(&["print", &format!("{folder}/note.kingpost")], 2);
    assert!(error.contains("there is no file `") && !error.contains("did you mean"), "{error}");
    write(dir.path(), "sums.kingpost", AXPY);
    let error = bad(&["print", &format!("{folder}/sum.kingpost")], 2);
    assert!(error.contains("did you mean `sums.kingpost`?"), "{error}");
    let empty = write(dir.path(), "empty.kingpost", "");
    let error = bad(&["print", &empty], 2);
    assert!(error.contains("start with `kernel name`") && error.contains("has a mistake, "), "{error}");
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let error = bad(&["explore", &axpy, "-o", &format!("{folder}/none/page.html")], 2);
    assert!(error.contains(&format!("there is no folder `{folder}/none`")), "{error}");
}

/// The page of a kernel has its name unless another is given, and replaces nothing but such a page.
#[test]
fn a_page_has_the_name_of_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let explore = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        let output = command.args(["explore", &axpy]).current_dir(dir.path()).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + std::str::from_utf8(&output.stderr).unwrap(),
        )
    };
    for _ in 0..2 {
        let (code, told) = explore();
        assert!(code == Some(0) && told.contains("wrote axpy.html: "), "{told}");
    }
    write(dir.path(), "axpy.html", "notes");
    let (code, told) = explore();
    assert!(
        code == Some(2) && told.contains("`axpy.html` is there and is no page of this command"),
        "{told}"
    );
    assert_eq!(std::fs::read_to_string(dir.path().join("axpy.html")).unwrap(), "notes");
}

#[test]
fn names_files_and_recipes_that_are_not_there() {
    let error = bad(&["print", "laplce"], 2);
    assert!(error.contains("did you mean `laplace`?") && error.contains("`helmholtz`"), "{error}");
    assert!(bad(&["print", "stokes"], 2).contains("a file has to end in `.kingpost`"));
    assert!(bad(&["print", "missing.kingpost"], 2).contains("there is no file `missing.kingpost`"));
    assert!(bad(&["run", "laplace", "--mesh", "missing.msh"], 2).contains("missing.msh"));
    assert!(
        bad(&["print", "laplace", "--recipe", "missing.json"], 2).contains("there is no file `missing.json`")
    );
    assert!(bad(&["run", "laplace", "--device", "tpu"], 2).contains("no device `tpu`; there are: `c`"));
    assert!(bad(&["print", "laplace", "--degree", "9"], 2).contains('9'));
    bad(&["print", "laplace", "--dim", "4"], 2);
    bad(&["run", "laplace", "--cells", "2", "--mesh", "x.msh"], 2);
    bad(&["frobnicate"], 2);
}

#[test]
fn malformed_recipes_and_meshes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = write(dir.path(), "broken.json", "{\"steps\": [\n  {\"split\": {}}\n]}");
    let error = bad(&["print", "laplace", "--recipe", &recipe], 2);
    assert!(
        error.contains("broken.json") && error.contains("line 2") && error.contains("split_iname"),
        "{error}"
    );
    let mesh = write(dir.path(), "empty.msh", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n");
    let error = bad(&["run", "laplace", "--mesh", &mesh], 2);
    assert!(error.contains("empty.msh") && error.contains("the file has no cells"), "{error}");
    let mesh = write(dir.path(), "broken.msh", "$MeshFormat\n3.0 0 8\n$EndMeshFormat\n");
    let error = bad(&["run", "laplace", "--mesh", &mesh], 2);
    assert!(error.contains("broken.msh") && error.contains("4.1"), "{error}");
    let error = bad(&["run", "laplace", "--dim", "2", "--mesh", "meshes/bracket.msh"], 2);
    assert!(error.contains("--dim 3"), "{error}");
}

#[test]
fn a_device_that_is_not_here_has_its_own_exit_code() {
    if good(&["devices"]).contains("cuda: not here") {
        let error = bad(&["run", "laplace", "--device", "cuda"], 3);
        assert!(error.contains("install"), "{error}");
    } else {
        println!("skipped: there is a CUDA device");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_kingpost"))
        .args(["run", "mass", "--dim", "2", "--device", "c", "--no-time"])
        .env("CC", "/nowhere/cc")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("CC"));
}

#[test]
fn a_wrong_result_is_a_failed_check() {
    // The body adds to `y` where the interpreter does too, but a broken compiler gives another
    // program: the planted one writes nothing, so the poison or the zeros remain.
    let dir = tempfile::tempdir().unwrap();
    let compiler = dir.path().join("cc");
    let script = "#!/bin/sh\ncase \"$*\" in\n*--version*) exec cc --version;;\nesac\n\
        for f in \"$@\"; do case \"$f\" in *.c) sed -i 's/+= *\\(.*\\);/+= 0.5*(\\1);/' \"$f\";; esac; done\nexec cc \"$@\"\n";
    std::fs::write(&compiler, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&compiler, mode).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kingpost"))
        .args(["run", "mass", "--dim", "2", "--device", "c", "--no-time"])
        .env("CC", &compiler)
        .env("KINGPOST_CACHE_DIR", dir.path().join("cache"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("wrong result: relative error"), "{}", stderr(&output));
}

#[test]
fn studies_of_a_kernel() {
    let text = good(&["stats", "laplace", "--dim", "2", "--degree", "1", "--cells", "2"]);
    assert!(text.contains("n_cells = 8") && text.contains("a cell"), "{text}");
    let deps = good(&["deps", "mass", "--dim", "2", "--degree", "1"]);
    assert!(deps.contains("update y:") && deps.contains("flow "), "{deps}");
    assert!(good(&["deps", "mass", "--dim", "2", "--degree", "1", "--dot"]).starts_with("digraph"));
    // after a step, also where a later one is refused; and where there are none
    let dir = tempfile::tempdir().unwrap();
    let text = "kernel k\narg y: f64[8] inout\n\nfor i in 1..8\n  s: y[i] = y[i - 1]\n";
    let kernel = write(dir.path(), "chain.kingpost", text);
    let steps = r#"{"steps": [{"split_iname": {"iname": "i", "factor": 4}}, {"tag_iname": {"iname": "i_o", "tag": "g.0"}}]}"#;
    let recipe = write(dir.path(), "chain.json", steps);
    let split = good(&["deps", &kernel, "--recipe", &recipe, "--step", "1"]);
    assert!(split.contains("s[i_o, i_i]"), "{split}");
    assert!(good(&["deps", &kernel, "--recipe", &recipe, "--step", "0"]).contains("s[i]"));
    bad(&["deps", &kernel, "--recipe", &recipe], 1);
    assert!(bad(&["deps", &kernel, "--recipe", &recipe, "--step", "3"], 2).contains("there are 2 steps"));
    let kernel = write(dir.path(), "free.kingpost", &text.replace("y[i - 1]", "1.0"));
    assert!(good(&["deps", &kernel]).starts_with("no dependences"));
    assert!(good(&["form", "elasticity"]).contains("sym(grad(u))"));
    let text = good(&["form", "bp5", "--degree", "1"]);
    for part in ["inner(grad(u), grad(test))", "8 points of each cell", "bp5_hexahedron_q1, "] {
        assert!(text.contains(part), "{text}");
    }
    let text = good(&["form", "crates/forms/tests/tabulated/laplace.json"]);
    assert!(text.contains("spaces") && text.contains("points of each cell"), "{text}");
    assert!(
        bad(&["form", "examples/triad.kingpost"], 2).contains("is a kernel and no form; `kingpost print")
    );
    assert!(good(&["primitives"]).contains("split_iname"));
    assert!(good(&["recipe", "laplace"]).contains("\"make_atomic\""));
    assert!(good(&["--help"]).contains("Exit codes:"));
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "axpy.kingpost", AXPY);
    assert!(good(&["stats", &file, "--param", "n=1000"]).contains("2,000 FLOP"));
}

#[test]
fn the_space_of_tilings_is_counted_and_ranked() {
    let text =
        good(&["space", "laplace", "--dim", "2", "--degree", "3", "--device", "titan_v", "--best", "2"]);
    assert!(text.contains("aliasing at least 0.8") && text.contains("work-items, 6 points"), "{text}");
    let json = good(&["space", "mass", "--dim", "2", "--degree", "2", "--device", "k40c", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["device"]["name"], "Tesla K40c");
    assert_eq!(report["survey"]["best"].as_array().unwrap().len(), 9);
    let cuts = report["survey"]["cuts"].as_array().unwrap();
    assert_eq!(cuts.last().unwrap()["after"], report["survey"]["size"]);
    let none = good(&["space", "mass", "--dim", "2", "--degree", "2", "--local-bytes", "8"]);
    assert!(none.contains("no candidate is left"), "{none}");
    assert!(bad(&["space", "mass", "--device", "abacus"], 2).contains("models: `h200`"));
    assert!(bad(&["space", "mass", "--alias", "nan"], 2).contains("needed a number from 0 to 1"));
}

/// A small tuning run into `db`.
fn tune<'a>(db: &'a str, form: &'a str, degree: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["tune", form, "--dim", "2", "--degree", degree, "--device", "c", "--cells", "4"];
    args.extend(["--top", "2", "--db", db]);
    args.extend(more);
    args
}

#[test]
fn tuning_ends_with_a_checked_winner_and_pictures_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    // No trial begins after the limit, and nothing is lost.
    let output = kingpost(&tune(&db, "mass", "1", &["--time-limit", "0s"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // as many as there are mappings for the vectors of this processor
    let message = stderr(&output);
    let left = message.split(" trials are left").next().unwrap().rsplit(|c: char| !c.is_ascii_digit()).next();
    let trials: usize = left.unwrap().parse().unwrap_or(0);
    assert!(trials >= 10, "{message}");

    for (form, degree, case) in [("mass", "1", "mass.2D.P1"), ("laplace", "2", "laplace.2D.P2")] {
        let text = good(&tune(&db, form, degree, &[]));
        for word in [case, "trials_bars.svg", "trials_share.svg", "its source: kingpost print"] {
            assert!(text.contains(word), "no `{word}` in {text}");
        }
    }
    let bars = std::fs::read_to_string(dir.path().join("trials_bars.svg")).unwrap();
    assert!(bars.starts_with("<svg") && bars.contains("laplace.2D.P2"));
    let lines = || std::fs::read_to_string(&db).unwrap().lines().count();
    let all_lines = lines();
    assert!(all_lines >= 2 * trials, "{all_lines} records of {trials} trials a case");
    let again = kingpost(&tune(&db, "mass", "1", &[]));
    let done = format!("{trials} trials are in the database already, 0 to do");
    assert!(stderr(&again).contains(&done), "{}", stderr(&again));
    assert_eq!(lines(), all_lines);

    let all = good(&["results", "--db", &db, "--all", "--case", "mass"]);
    assert!(all.contains("single cell") && !all.contains("laplace"), "{all}");
    let unknown = bad(&["results", "--db", &db, "--case", "laplace.2D.P"], 2);
    let known = "no record is of a case `laplace.2D.P`; there are `laplace.2D.P2`, `mass.2D.P1`";
    assert!(unknown.contains(known), "{unknown}");
    let unknown = bad(&["results", "--db", &db, "--device", "abacus"], 2);
    assert!(unknown.contains("no record is of a device `abacus`; there are"), "{unknown}");
    assert!(good(&["results", "--db", &db]).contains("local tables"));
    // A writer that died inside its line: reported, and the others still count.
    let torn = std::fs::read_to_string(&db).unwrap() + "{\"workload\": {\"case\": \"la";
    std::fs::write(&db, torn).unwrap();
    let output = kingpost(&["results", "--db", &db]);
    assert!(stderr(&output).contains(&format!("line {} is no record", all_lines + 1)), "{}", stderr(&output));
    assert!(stdout(&output).contains("mass.2D.P1"));
}

#[test]
fn trials_run_in_opencl() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let mapping = r#"{"strategy":"single_cell","cells":8}"#;
    let form = ["tune", "mass", "--dim", "2", "--degree", "1", "--device", "opencl", "--cells", "4"];
    let text = good(&[&form[..], &["--db", &db, "--mapping", mapping]].concat());
    assert!(text.contains("mass.2D.P1") && text.contains("single cell, 8 a group"), "{text}");
}

/// In either order results are right, of other maps.
#[test]
fn forms_run_in_either_order_of_their_numbers() {
    let form = ["mass", "--dim", "2", "--degree", "3", "--cells", "2", "--device", "c", "--no-time"];
    let exported =
        ["crates/forms/tests/tabulated/laplace.json", "--cells", "2", "--device", "c", "--no-time"];
    for (form, dofs) in [(&form[..], "dofs"), (&exported[..], "p2_dofs")] {
        let map = |order: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().to_string_lossy().into_owned();
            good(&[&["run"], form, &["--save-arrays", &path, "--save-inputs"], order].concat());
            std::fs::read(dir.path().join(format!("inputs/{dofs}.npy"))).unwrap()
        };
        let by_dimension = map(&[]);
        assert_eq!(by_dimension, map(&["--numbering", "by-dimension"]));
        assert_ne!(by_dimension, map(&["--numbering", "first-touch"]));
        // nodes of exported forms do not say which edge of a cell they are on
        assert_eq!(by_dimension == map(&["--numbering", "by-entity"]), dofs == "p2_dofs");
    }
    let text = bad(&[&["run"], &form[..], &["--numbering", "last"]].concat(), 2);
    assert!(["first-touch", "by-dimension", "by-entity"].iter().all(|order| text.contains(order)), "{text}");
}

/// What `kingpost run` takes can be tuned: forms on meshes from files, and kernels that were lowered
/// from forms.
#[test]
fn whatever_runs_is_tuned() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let form = ["laplace", "--degree", "1", "--mesh", "meshes/bracket.msh", "--device", "c", "--db", &db];
    let mapping = r#"{"strategy":"single_cell","cells":8}"#;
    let text = good(&[&["tune"], &form[..], &["--mapping", mapping]].concat());
    assert!(text.contains("laplace.3D.P1") && text.contains("single cell, 8 a group"), "{text}");
    let records = std::fs::read_to_string(&db).unwrap();
    let record: serde_json::Value = serde_json::from_str(records.trim()).unwrap();
    let mesh = record["workload"]["mesh"].as_str().unwrap();
    assert!(mesh.starts_with("bracket.msh ") && mesh.len() == 28, "{mesh}");
    assert_eq!(record["workload"]["numbering"].as_str(), Some("by dimension"));
    let cells = record["workload"]["cells"].as_u64().unwrap();
    let run = good(&[&["run"], &form[..], &["--no-time"]].concat());
    assert!(run.contains("single cell, 8 a group (tuned on this device)"), "{run}");
    assert!(run.replace(',', "").contains(&cells.to_string()), "{cells} cells, but {run}");

    let args = ["print", "mass", "--dim", "2", "--degree", "2", "--strategy", "none"];
    let file = write(dir.path(), "mine.kingpost", &good(&args));
    let text = good(&["tune", &file, "--cells", "3", "--device", "c", "--top", "1", "--db", &db]);
    assert!(text.contains("mine n_cells=18") && text.contains("x1 work-items, 6"), "no tiling in {text}");
    let again = kingpost(&["tune", &file, "--cells", "3", "--device", "c", "--top", "1", "--db", &db]);
    assert!(stderr(&again).contains("trials are in the database already, 0 to do"), "{}", stderr(&again));
    let text = good(&["tune", &file, "--cells", "3", "--device", "c", "--mapping", mapping, "--db", &db]);
    let run = text.split("kingpost run ").nth(1).and_then(|rest| rest.split('\'').nth(1)).unwrap();
    assert_eq!(run, mapping, "{text}");
    assert!(
        good(&["run", &file, "--cells", "3", "--mapping", run, "--no-time"]).contains("of the tolerance")
    );

    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let scheduled = good(&["tune", &axpy, "--param", "n=8", "--device", "c", "--budget", "1"]);
    assert!(scheduled.contains("as written") && scheduled.contains("fastest"), "{scheduled}");
    let refused = bad(&["tune", "mass", "--dim", "2", "--mesh", "meshes/bracket.msh", "--device", "c"], 2);
    assert!(refused.contains("its cells are 3-dimensional; give `--dim 3`"), "{refused}");
    let refused = bad(&["tune", "mass", "--param", "n=8"], 2);
    assert!(refused.contains("--param and --values are for .kingpost files"), "{refused}");
}

/// Bake-off problems have cells and points of their own; BP5 has its nodes as points, so that
/// tables of values are the identity.
#[test]
fn bake_off_problems_run_by_name() {
    let quadrilateral = &["--cell", "quadrilateral"][..];
    let problems = [("bp1", quadrilateral), ("bp5", &[]), ("bp3.0", quadrilateral), ("bp35", &[])];
    for (problem, options) in of_run(problems, &[0, 1]) {
        let args =
            [&["run", problem, "--degree", "2", "--cells", "2", "--device", "c", "--no-time"], options]
                .concat();
        let text = good(&args);
        assert!(text.contains("factorised sums"), "{text}");
    }
    // six numbers of the stiffness and one of the mass at each point, which holds the constant
    let then = r#"{"strategy":"factorised_cells","cells":8}"#;
    let mapping = format!(r#"{{"strategy":"stored_factors","then":{then}}}"#);
    let run = ["run", "bp35", "--degree", "2", "--cells", "2", "--device", "c", "--no-time"];
    let text = good(&[&run[..], &["--mapping", &mapping]].concat());
    assert!(text.contains("7 stored inputs"), "{text}");
    let text = good(&[
        "print",
        "bp5",
        "--degree",
        "2",
        "--mapping",
        r#"{"strategy":"factorised_lines","cells":1,"literal_tables":false}"#,
    ]);
    let identity = "table phi_p2_gll_warped_d0_1 = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]";
    assert!(text.contains(identity) && text.contains(" != 0.0"), "{text}");
    for (options, message) in [
        (["--dim", "2"], "--dim: `bp5` has the points of its own, on hexahedra"),
        (["--scheme", "default"], "--scheme: `bp5` has the points of its own"),
        (["--cell", "interval"], "--cell: `bp5` is on hexahedra or quadrilaterals"),
    ] {
        let refused = bad(&[&["print", "bp5"], &options[..]].concat(), 2);
        assert!(refused.contains(message), "{refused}");
    }
}

/// The matrix of a form by name is a sparse one, whose entries are compared.
#[test]
fn matrices_of_forms_run_by_name() {
    let forms = [
        ("hyperelasticity-matrix", &["--dim", "2"][..]),
        ("mass-matrix", &["--cell", "quadrilateral"]),
        ("elasticity-matrix", &["--matrix", "cells"]),
    ];
    for (name, options) in of_run(forms, &[1, 2]) {
        let args = ["run", name, "--degree", "2", "--cells", "2", "--device", "c", "--no-time"];
        let text = good(&[&args, options].concat());
        assert!(text.contains("of the tolerance"), "{text}");
    }
    // one triangle of what is symmetric
    let mapping = r#"{"strategy":"point_tiles","cells":8,"sums":16}"#;
    let text = good(&["print", "hyperelasticity-matrix", "--mapping", mapping]);
    assert!(text.contains("mirror_y_cell: ") && text.contains("y_positions["), "{text}");
    let refused = bad(&["run", "stoks-matrix"], 2);
    assert!(refused.contains("`stoks`"), "{refused}");
}

/// The first trial is the default of the device, and the commands that are printed run what was
/// tuned.
#[test]
fn tuning_begins_with_the_default_and_prints_commands_that_run_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let form = ["laplace", "--cell", "quadrilateral", "--degree", "3"];
    let on = ["--cells", "2", "--device", "c"];
    let text = good(&[&["tune"], &form[..], &on, &["--top", "0", "--db", &db]].concat());
    let records = std::fs::read_to_string(&db).unwrap();
    let tried = records.lines().map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["parameters"].to_string()
    });
    let default = format!(r#"{{"cells":{},"strategy":"factorised_cells"}}"#, vectors().lanes);
    let single = r#"{"cells":32,"strategy":"single_cell"}"#;
    assert_eq!(tried.collect::<Vec<_>>(), [default.as_str(), single], "{text}");
    let none = dir.path().join("none.jsonl").to_string_lossy().into_owned();
    let run = |more: &[&str]| good(&[&["run"], &form[..], &on, &["--no-time", "--db", &none], more].concat());
    assert!(
        run(&[]).contains(&format!("{} (tables are tensor products", vectors().factorised())),
        "{}",
        run(&[])
    );
    // a table breaks lines
    let text = text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    for command in [
        "kingpost run laplace --cell quadrilateral --degree 3 --cells 2 --device c --mapping '",
        "kingpost print laplace --cell quadrilateral --degree 3 --target c --mapping '",
    ] {
        assert!(text.contains(command), "no `{command}` in {text}");
        let mapping = text.split(command).nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
        assert!(run(&["--mapping", mapping]).contains("of the tolerance"), "{mapping}");
        good(&[&["print"], &form[..], &["--target", "c", "--mapping", mapping]].concat());
    }
}

/// What was found on this device is the default from then on; what a user asks for comes first.
#[test]
fn a_form_runs_with_the_best_mapping_that_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let form = ["mass", "--dim", "2", "--degree", "1", "--cells", "4", "--device", "c"];
    let run = |more: &[&str]| good(&[&["run"], &form[..], &["--no-time", "--db", &db], more].concat());
    assert!(run(&[]).contains(&format!("modes, {} (a", vectors().tiles())));
    let mapping = r#"{"strategy":"single_cell","cells":8}"#;
    good(&[&["tune"], &form[..], &["--db", &db, "--mapping", mapping]].concat());
    assert!(run(&[]).contains("single cell, 8 a group (tuned on this device)"));
    let other = run(&["--scheme", "xiao-gimbutas"]);
    assert!(other.contains("8 a group (tuned on this device"), "{other}");
    assert!(run(&["--strategy", "single-cell"]).contains("strategy single-cell"));
}

#[test]
fn tuning_refuses_what_it_does_not_know() {
    let cells = bad(&["tune", "mass", "--device", "c", "--cells", "18446744073709551615"], 2);
    assert!(cells.contains("divisions of the unit cube: from 1 to 1624 are supported"), "{cells}");
    assert!(bad(&["tune", "laplce"], 2).contains("did you mean `laplace`?"));
    assert!(bad(&["tune", "laplace", "--time-limit", "9"], 2).contains("write 90s, 9m or 1h"));
    assert!(bad(&["tune", "mass", "--device", "abacus"], 2).contains("no device `abacus`"));
    assert!(bad(&["results", "--db", "nowhere.jsonl"], 2).contains("`kingpost tune` makes one"));
}

/// The cache answers where a compiler would be asked again: what `--compile-only` made is found.
#[test]
fn kernels_are_compiled_ahead_without_a_gpu() {
    if kingpost::runtime::cuda::nvrtc::version().is_err() {
        eprintln!("skipped: no NVRTC");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // all of them in a long run
    let limit: &[&str] = if is_long_run() { &[] } else { &["--time-limit", "0s"] };
    let output = Command::new(env!("CARGO_BIN_EXE_kingpost"))
        .args(["tune", "mass", "--dim", "2", "--degree", "1", "--compile-only", "--top", "2"])
        .args(limit)
        .env("KINGPOST_CACHE_DIR", dir.path())
        .current_dir(crate::root())
        .output()
        .unwrap();
    let text = stdout(&output);
    let done = if is_long_run() { 73 } else { 0 };
    assert!(text.contains(&format!("{done} of 73 compiled for sm_90")), "{text}{}", stderr(&output));
    let costs = text.lines().filter(|l| l.contains(" registers, 0 B spilled, ")).count();
    assert_eq!(costs, done, "{text}");
    let cubins = std::fs::read_dir(dir.path()).unwrap().flatten();
    let cubins = cubins.filter(|f| f.path().extension().is_some_and(|e| e == "cubin")).count();
    // two pairs of candidates have the same source
    assert_eq!(cubins, if is_long_run() { 71 } else { 0 });
    // values of holes, too
    let file = dir.path().join("twice.kingpost");
    let text = "kernel twice\nparam n: i32\narg x: f64[n] inout\n\nfor i in 0..n\n  s: x[i] *= 2.0\n\nschedule\n\
                tile in [32, 64]\nsplit_iname(i, tile)\ntag(i_o, g.0)\ntag(i_i, l.0)\n";
    std::fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kingpost"))
        .args(["tune", "--compile-only"])
        .arg(&file)
        .env("KINGPOST_CACHE_DIR", dir.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(text.contains("2 of 2 compiled for sm_90"), "{text}{}", stderr(&output));
}

/// Of AMD's processors what `--arch` chooses from is compiled, and nothing begins when the time is over.
#[test]
fn kernels_for_wavefronts_are_compiled_ahead() {
    let dir = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let args = ["tune", "mass", "--dim", "2", "--degree", "1", "--compile-only", "--arch", "gfx942"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        command.args(args).args(more).env("KINGPOST_CACHE_DIR", dir.path()).current_dir(crate::root());
        command.output().unwrap()
    };
    let over = run(&["--time-limit", "0s"]);
    if kingpost::runtime::hip::version().is_err() {
        assert!(!over.status.success() && stderr(&over).contains("clang"), "{}", stderr(&over));
        return;
    }
    assert!(stdout(&over).contains("0 of 5 compiled for gfx942"), "{}", stdout(&over));
    assert!(stdout(&over).contains("; 5 are left, as the time is over"), "{}", stdout(&over));
    let first = run(&["--first", "2"]);
    assert!(stdout(&first).contains("2 of 2 compiled for gfx942"), "{}{}", stdout(&first), stderr(&first));
}

#[test]
fn resources_are_printed_without_a_card() {
    let usage = bad(&["print", "mass", "--target", "c", "--resources"], 2);
    assert_eq!(usage, "error: --resources is for --target cuda or hip\n");
    if kingpost::runtime::cuda::nvrtc::version().is_err() {
        eprintln!("skipped: no NVRTC");
        return;
    }
    let first = |more: &[&str]| {
        let args = ["print", "mass", "--dim", "3", "--degree", "3", "--target", "cuda"];
        let text = good(&[&args[..], more].concat());
        text.lines().next().unwrap_or_default().to_owned()
    };
    let plain = first(&["--resources", "--plan"]);
    let expected = " registers, 0 B spilled, 0 B static and 0 B dynamic shared memory";
    assert!(plain.starts_with("// sm_90, NVRTC ") && plain.ends_with(expected), "{plain}");
    // more than a source may declare: what does not fit is added at launch
    let mapping = r#"{"strategy":"staged_cells","cells":192,"constant_tables":true}"#;
    let staged = first(&["--resources=sm_80", "--mapping", mapping]);
    let expected = ", 32256 B static and 32248 B dynamic shared memory";
    assert!(staged.starts_with("// sm_80, NVRTC ") && staged.ends_with(expected), "{staged}");
    let plan = good(&[
        "print",
        "mass",
        "--dim",
        "3",
        "--degree",
        "3",
        "--target",
        "cuda",
        "--plan",
        "--mapping",
        mapping,
    ]);
    assert!(plan.contains("// 64496 bytes of local memory, of which the launch gives "), "{plan}");
}

#[test]
fn a_mapping_of_tuning_is_applied() {
    let mapping = r#"{"strategy":"staged_cells","cells":8,"constant_tables":true}"#;
    let form = ["laplace", "--dim", "2", "--degree", "2", "--mapping"];
    let with = |command: &str, mapping: &str, more: &[&str]| {
        let args: Vec<&str> = [&[command], &form[..], &[mapping], more].concat();
        kingpost(&args)
    };
    let text = stdout(&with("run", mapping, &["--cells", "4", "--no-time"]));
    assert!(text.contains("mapping staged cells, 8 a group, constant tables"), "{text}");
    assert!(stdout(&with("steps", mapping, &[])).contains("stage the value of `scatter_y` in `staged`"));
    assert!(stdout(&with("recipe", mapping, &[])).contains(r#""stage_value""#));
    assert!(stdout(&with("deps", mapping, &[])).contains("scatter_y[cell_group, commit_round"));
    assert!(stdout(&with("stats", mapping, &[])).contains("staged"));
    let kept = |case| good(&["results", "--db", "results/h200/tuned.jsonl", "--case", case, "--mapping"]);
    let best = kept("elasticity.2D.P2");
    assert!(stdout(&with("print", best.trim(), &["--target", "cuda"])).contains("atomicAdd"));
    let of_each = kept("2D.P2");
    assert!(of_each.contains(&format!("\nelasticity.2D.P2 {best}")), "{of_each}");
    let wrong = with("print", r#"{"strategy":"fastest"}"#, &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("needed a mapping such as"), "{}", stderr(&wrong));
    let too_many = with("print", r#"{"strategy":"staged_cells","cells":2000,"constant_tables":true}"#, &[]);
    assert_eq!(too_many.status.code(), Some(1));
    assert!(stderr(&too_many).contains("needed 1 to 1024"), "{}", stderr(&too_many));
}

/// A compiler that stands in for `cc` and changes C sources where its options match a pattern of
/// the shell.
fn planted_compiler(dir: &Path, options: &str, edit: &str) -> String {
    let compiler = dir.join("cc");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--version*) exec cc --version;;\n{options}) for f in \"$@\"; do case \"$f\" in \
         *.c) sed -i '{edit}' \"$f\";; esac; done;;\nesac\nexec cc \"$@\"\n"
    );
    std::fs::write(&compiler, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&compiler, mode).unwrap();
    compiler.to_string_lossy().into_owned()
}

/// Runs with a compiler and caches of its own.
fn kingpost_with(compiler: &str, dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
    command.args(args).args(["--device", "c", "--no-time"]);
    command.env("CC", compiler).env("KINGPOST_CACHE_DIR", dir.join("cache")).output().unwrap()
}

#[test]
fn a_fault_of_the_compiler_is_told_from_ours() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "axpy.kingpost", AXPY);
    let out = dir.path().join("out").to_string_lossy().into_owned();
    let halves = r"s/+= *\(.*\);/+= 0.5*(\1);/";
    for what in of_run([&["mass", "--dim", "2", "--cells", "2"][..], &[&file, "--param", "n=10"]], &[1]) {
        let compiler = planted_compiler(dir.path(), "*-O3*", halves);
        let args = [&["run"], what, &["--save-dir", &out]].concat();
        let output = kingpost_with(&compiler, dir.path(), &args);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{}{error}", stdout(&output));
        assert!(error.contains("wrong result of the C compiler (") && error.contains(" at -O3: "), "{error}");
        assert!(error.contains("with -O0 the same source is right; wrote "), "{error}");
        let name = if what[0] == "mass" { "mass_2d_p2" } else { "axpy" };
        assert!(std::fs::read_to_string(format!("{out}/{name}.c")).unwrap().contains(name));

        // wrong where the compiler relies on what the source promises: always, or where it optimises as far as
        // it can alone, which tells less
        let promise = "wrong where it does with -O1 -fno-thread-jumps: rather a bug of kingpost";
        let either =
            "right where it does with -O1 -fno-thread-jumps: either the compiler's fault, or one of kingpost";
        for (wrong, says) in [("*-O0*) ;;\n*", promise), ("*-O3*", either)] {
            let compiler = planted_compiler(dir.path(), &format!("*-Drestrict=*) ;;\n{wrong}"), halves);
            std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
            let output = kingpost_with(&compiler, dir.path(), &args);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert!(stderr(&output).contains(says), "{}", stderr(&output));
        }

        // wrong at any level
        let compiler = planted_compiler(dir.path(), "*", halves);
        std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
        let output = kingpost_with(&compiler, dir.path(), &args);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("with -O0 and without contraction, too"), "{}", stderr(&output));
        std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
    }
}

#[test]
fn contraction_is_named_where_it_explains_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let root = "kernel root\nparam n: i32\narg a: f64[n] in\narg b: f64[n] in\narg y: f64[n] out\n
for i in 0..n\n  s: y[i] = sqrt(a[i]*a[i] - b[i]*b[i])\n";
    let file = write(dir.path(), "root.kingpost", root);
    let numbers = (1..100).map(|k| format!("{}", 0.1 + f64::from(k) / 7.0)).collect::<Vec<_>>().join(", ");
    let values = write(dir.path(), "values.json", &format!(r#"{{"a": [{numbers}], "b": [{numbers}]}}"#));
    let args = ["run", &file, "--param", "n=99", "--values", &values, "--device", "c", "--no-time"];
    let text = good(&[&args[..], &["--no-contraction"]].concat());
    assert!(text.contains("0.00 of the tolerance"), "{text}");
    assert!(std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default().contains("model name"));
    if !std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" fma ")) {
        println!("skipped: this processor has no fused multiply-add");
        return;
    }
    let error = bad(&args, 1);
    assert!(error.contains("wrong result by contraction: `y["), "{error}");
    assert!(error.contains("]` is NaN, needed 0.0") && error.contains("add --no-contraction"), "{error}");
}

/// Elements that nothing writes keep what was there, those that are written are compared, however
/// few.
#[test]
fn results_that_are_written_in_part_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    for (ty, value) in of_run([("f64", "1.5"), ("f32", "f32(1.5)"), ("i32", "-1"), ("i64", "-1")], &[0, 3]) {
        let text = format!(
            "kernel part\nparam n: i32\narg y: {ty}[n, 3] out\narg z: {ty}[n] out\nfor i in 0..n\n  s: y[i, 1] = {value}\n"
        );
        let file = write(dir.path(), "part.kingpost", &text);
        let args = ["run", &file, "--param", "n=4"];
        for device in ["c", "opencl"] {
            let text = good(&[&args[..], &["--device", device, "--no-time"]].concat());
            assert!(text.contains("`y`: 4 of 12 elements, 8 are written by nothing"), "{text}");
            assert!(text.contains("`z`: 0 of 4 elements, 4 are written by nothing"), "{text}");
            assert!(text.contains(" 0.00 of the tolerance"), "{text}");
        }
        // what is planted is looked for in one type of each poison
        if ["f32", "i64"].contains(&ty) {
            continue;
        }
        for (edit, message) in [
            (r"s/\(y\[[^]]*\] = \).*;/\1 7;/", "`y[0, 1]` is 7"),
            (r"s/y\[[^]]*\] = .*;/;/", "`y[0, 1]` is not written, needed "),
            (r"s/\(y\[[^]]*\] = .*;\)/\1 z[2] = 1;/", "`z[2]` is written (1"),
        ] {
            std::fs::remove_dir_all(dir.path().join("cache")).unwrap_or_default();
            let compiler = planted_compiler(dir.path(), "*", edit);
            let output = kingpost_with(&compiler, dir.path(), &args);
            assert_eq!(output.status.code(), Some(1), "{ty} {edit}: {}{}", stdout(&output), stderr(&output));
            assert!(stderr(&output).contains(message), "{ty}: no `{message}` in {}", stderr(&output));
        }
    }
    let nothing = write(
        dir.path(),
        "nothing.kingpost",
        "kernel nothing\nparam n: i32\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = 1.0\n",
    );
    let text = good(&["run", &nothing, "--param", "n=0", "--device", "c", "--no-time"]);
    assert!(text.contains("nothing to compare: no element of a result is written"), "{text}");
    assert!(!text.contains("0.00"), "{text}");
}

/// A nan is a nan and infinity is infinity; against a number both are wrong, and hide nothing
/// next to them.
#[test]
fn what_is_no_number_is_compared_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let text = "kernel ends\nparam n: i32\narg x: f64[n] in\narg y: f64[n] inout\nfor i in 0..n\n  s: y[i] += x[i]\n";
    let file = write(dir.path(), "ends.kingpost", text);
    let values = r#"{"x": ["nan", "inf", "-inf", 1.0, 2.0], "y": [0, 0, 0, 0, 0]}"#;
    let values = write(dir.path(), "values.json", values);
    let args = ["run", &file, "--param", "n=5", "--values", &values];
    for device in ["c", "opencl"] {
        let text = good(&[&args[..], &["--device", device, "--no-time"]].concat());
        assert!(text.contains("`y`: 5 elements") && text.contains(" 0.00 of the tolerance"), "{text}");
    }
    for (edit, message) in [
        (r"s/+= \(.*\);/= 3.0;/", "`y[0]` is 3.0, needed NaN; 5 elements are off"),
        (r"s/+= \(.*\);/+= i == 3 ? 0.0\/0.0 : \1;/", "`y[3]` is NaN, needed 1.0;"),
        (r"s/+= \(.*\);/+= i == 1 ? -(\1) : \1;/", "`y[1]` is -inf, needed inf;"),
        (r"s/+= \(.*\);/+= i == 4 ? 1.0 : \1;/", "`y[4]` is 1.0, needed 2.0: 5.0e11 times the tolerance;"),
    ] {
        let compiler = planted_compiler(dir.path(), "*", edit);
        std::fs::remove_dir_all(dir.path().join("cache")).unwrap_or_default();
        let output = kingpost_with(&compiler, dir.path(), &args);
        assert_eq!(output.status.code(), Some(1), "{edit}: {}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains(message), "no `{message}` in {}", stderr(&output));
    }
}

#[test]
fn values_are_for_arguments_and_as_many_as_they_have_elements() {
    let dir = tempfile::tempdir().unwrap();
    let out = AXPY.replace("arg y", "arg weights: f64[n] in\narg z: f64[n] out\narg y")
        + "  t: z[i] = weights[i]\n";
    let file = write(dir.path(), "axpy.kingpost", &out);
    // one that does not run at all: values are looked at first
    let run = |values: &str| {
        let values = write(dir.path(), "values.json", values);
        let error =
            bad(&["run", &file, "--param", "n=3", "--values", &values, "--device", "abacus", "--no-time"], 2);
        error.trim().rsplit("values.json`: ").next().unwrap().to_owned()
    };
    let takes = "there is `x`, `a`, `weights`, `y`";
    let hint = "did you mean `weights`? ";
    let unknown = format!("error: `axpy` has no argument that takes values `wieghts`; {hint}{takes}");
    assert_eq!(run(r#"{"wieghts": [1, 2, 3]}"#), unknown);
    let unknown = format!("error: `axpy` has no argument that takes values `alpha`; {takes}");
    assert_eq!(run(r#"{"alpha": 1}"#), unknown);
    assert_eq!(run(r#"{"z": [1, 2, 3]}"#), "`z` is only written; leave it out");
    assert_eq!(run(r#"{"n": 3}"#), "`n` is a parameter; give it with --param n=1000");
    assert_eq!(run(r#"{"x": [1, 2]}"#), "error: `x` has 2 values, needed 3 of type f64");
    assert_eq!(run(r#"{"a": [1, 2]}"#), "error: `a` has 2 values, needed 1 of type f64");
    assert!(run(r#"{"x": [1, 2, "three"]}"#).contains("value of `x`: found \"three\", needed numbers"));
    assert_eq!(
        bad(&["run", &file, "--param", "m=3"], 2).trim(),
        "error: `axpy` has no parameter `m`; there is `n`"
    );
}

/// What is saved or printed of a form runs: on a mesh that has its sizes, or on a given one.
#[test]
fn a_lowered_kernel_runs_on_a_mesh() {
    let dir = tempfile::tempdir().unwrap();
    for (form, dim, degree) in
        [("hyperelasticity", "2", "2"), ("helmholtz", "3", "1"), ("elasticity", "2", "1")]
    {
        for strategy in ["none", "single-cell"] {
            let args = ["print", form, "--dim", dim, "--degree", degree, "--strategy", strategy];
            let file = write(dir.path(), "lowered.kingpost", &good(&args));
            let run = ["run", &file, "--device", "c", "--no-time", "--cells", "2"];
            let text = good(&run);
            assert!(text.contains("cells and degrees of freedom of the mesh, the rest random"), "{text}");
            assert!(text.contains("of the tolerance") && !text.contains("conditioning"), "{text}");
        }
    }
    let mapping = r#"{"strategy":"staged_cells","cells":8,"constant_tables":true}"#;
    let args = ["print", "laplace", "--dim", "2", "--degree", "2", "--mapping", mapping];
    let file = write(dir.path(), "staged.kingpost", &good(&args));
    let text = good(&["run", &file, "--device", "opencl", "--no-time", "--cells", "4"]);
    assert!(text.contains("cells and degrees of freedom of the mesh, the rest random"), "{text}");
    let args = ["print", "laplace", "--dim", "2", "--degree", "3", "--strategy", "none"];
    let file = write(dir.path(), "laplace.kingpost", &good(&args));
    let sizes = |cells, vertices, dofs| {
        [format!("n_cells={cells}"), format!("n_vertices={vertices}"), format!("n_dofs={dofs}")]
    };
    let run = |params: &[String], more: &[&'static str]| {
        let mut args = vec!["run", &file, "--device", "c", "--no-time"];
        params.iter().for_each(|p| args.extend(["--param", p]));
        args.extend(more);
        kingpost(&args)
    };
    let text = stdout(&run(&sizes(8, 9, 49), &[]));
    assert!(text.contains("of the unit mesh of these sizes, the rest random"), "{text}");
    let text = stdout(&run(&sizes(7, 9, 49), &[]));
    assert!(text.contains("random maps: no unit mesh has these sizes"), "{text}");
    let output = run(&sizes(8, 9, 50), &["--cells", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--param n_dofs: the mesh has 49; leave it out"), "{}", stderr(&output));
    let output = run(&[], &[]);
    assert!(stderr(&output).contains("--param n_cells=1000, or give --cells 4"), "{}", stderr(&output));
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    assert!(bad(&["run", &axpy, "--cells", "4"], 2).contains("for kernels that were lowered from one"));
    let text = bad(&["run", &axpy, "--numbering", "first-touch"], 2);
    assert!(text.contains("--numbering is for forms and for kernels that were lowered from one"), "{text}");
    let plan = |more: &[&str]| {
        good(&[&["print", "laplace", "--dim", "2", "--degree", "1", "--plan"], more].concat())
    };
    let text = plan(&["--target", "cuda", "--no-contraction"]);
    assert!(text.contains("\n// compile with --fmad=false\n"), "{text}");
    assert!(
        text.contains("\n// nodes: P1 on a triangle, equispaced, in basix's order: (0, 0) (1, 0) (0, 1)\n")
    );
    assert!(plan(&["--target", "c"]).contains("\n// compile with -ffp-contract=fast\n"));
    assert!(plan(&["--target", "opencl", "--no-contraction"]).contains("#pragma OPENCL FP_CONTRACT OFF\n"));
    let text = good(&["form", "laplace", "--dim", "2", "--degree", "3"]);
    assert!(text.contains("P3 on a triangle, equispaced, in basix's order: (0, 0) (1, 0) (0, 1)"), "{text}");
}

/// What roundings decide is no wrong result: the interpreter itself moves as far when its
/// operations round otherwise. What they do not decide still is.
#[test]
fn results_that_roundings_decide_are_not_called_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let text = "kernel cancel\nparam n: i32\narg x: f64[n] in\narg y: f64[n] out\narg z: f64[n] out\n
for i in 0..n\n  s: y[i] = (x[i] + 1.0e9)*(x[i] + 1.0e9) - 1.0e18 - 2.0e9*x[i]\n  t: z[i] = x[i]\n";
    let file = write(dir.path(), "cancel.kingpost", text);
    let args = ["run", &file, "--param", "n=50"];
    // as a compiler may reassociate
    let edit = r"s/\(y\[[^]]*\] = \)\(.*\);/\1(\2)*(1.0 + 1e-9);/";
    let compiler = planted_compiler(dir.path(), "*", edit);
    let output = kingpost_with(&compiler, dir.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("elements depend on how operations are rounded by more than the tolerance"),
        "{text}"
    );
    let edit = edit.replace("1e-9", "1e3");
    for edit in [edit.as_str(), r"s/\(z\[[^]]*\] = \)\(.*\);/\1(\2)*(1.0 + 1e-9);/"] {
        std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
        let compiler = planted_compiler(dir.path(), "*", edit);
        let output = kingpost_with(&compiler, dir.path(), &args);
        assert_eq!(output.status.code(), Some(1), "{edit}: {}{}", stdout(&output), stderr(&output));
    }
}

/// Sizes are compared with types and memory before anything is allocated.
#[test]
fn sizes_are_checked_before_anything_is_allocated() {
    let dir = tempfile::tempdir().unwrap();
    let wide = AXPY.replace("x: f64[n]", "x: f64[n, 64]").replace("x[i]", "x[i, 3]");
    let file = write(dir.path(), "wide.kingpost", &wide);
    let run = |n: &str| bad(&["run", &file, "--param", n, "--device", "c", "--no-time"], 2);
    assert_eq!(
        run("n=2147483648"),
        "error: parameter `n` = 2147483648 does not fit `i32`; use a smaller size or 64-bit indices\n"
    );
    // 65 arrays of 16 GiB less 8 bytes and a number, four times
    let message = run("n=2147483647");
    assert!(message.starts_with("error: the arguments would take 4466765985792 bytes, and "), "{message}");
    assert!(message.ends_with(" are free here; give smaller parameters\n"), "{message}");
    let message = bad(&["run", "mass", "--cells", "1624", "--device", "c", "--no-time"], 2);
    assert!(message.starts_with("error: the problem with its reference would take "), "{message}");
    assert!(message.ends_with(" are free here; use fewer cells or a lower degree\n"), "{message}");
}

/// Runs in 6 GB of addresses, where a list that does not fit ends the process.
#[cfg(target_os = "linux")]
fn limited(args: &[&str]) -> Output {
    let limit = "ulimit -v 6000000; exec \"$0\" \"$@\"";
    Command::new("sh")
        .args(["-c", limit, env!("CARGO_BIN_EXE_kingpost")])
        .args(args)
        .current_dir(crate::root())
        .output()
        .unwrap()
}

/// Divisions of a side, and a part of the refusal.
#[cfg(target_os = "linux")]
type Sizes = &'static [(&'static str, &'static str)];

/// Parts of the refusals of what is no unit mesh, has too many numbers, and takes too much memory.
#[cfg(target_os = "linux")]
const DIVISIONS: &str = "divisions of the unit ";
#[cfg(target_os = "linux")]
const NAMES: &str = ", which 32-bit maps can name";
#[cfg(target_os = "linux")]
const MEMORY: &str = " bytes, and ";

/// Every command that makes a mesh refuses what is too large, on every cell, before it is made.
#[cfg(target_os = "linux")]
#[test]
fn meshes_of_all_cells_and_commands_are_checked() {
    let run = ["--device", "c", "--no-time"];
    let forms: [(&[&str], Sizes); 9] = [
        (&["run", "bp5"], &[("1000000", DIVISIONS), ("1000", NAMES), ("150", MEMORY)]),
        (&["run", "laplace", "--cell", "hexahedron"], &[("1624", NAMES), ("300", MEMORY)]),
        (&["run", "laplace", "--cell", "quadrilateral"], &[("65534", NAMES), ("9000", MEMORY)]),
        (&["run", "laplace", "--cell", "interval"], &[("4294967293", NAMES), ("300000000", MEMORY)]),
        (&["run", "laplace-matrix", "--dim", "3"], &[("1624", NAMES), ("150", MEMORY)]),
        (&["run", "mass-matrix", "--cell", "hexahedron"], &[("120", MEMORY)]),
        (&["run", "laplace", "--dim", "2"], &[("65534", MEMORY), ("9000", MEMORY)]),
        (&["run", "laplace", "--dim", "3"], &[("1624", MEMORY)]),
        (&["run", "crates/forms/tests/tabulated/laplace.json"], &[("5000", MEMORY)]),
    ];
    let mut all: Vec<(Vec<&str>, &str)> = Vec::new();
    for (command, sizes) in forms {
        for (cells, why) in sizes {
            all.push(([command, &run, &["--cells", cells]].concat(), why));
        }
        for cells in ["18446744073709551615", "9223372036854775808"] {
            all.push(([command, &run, &["--cells", cells]].concat(), DIVISIONS));
        }
    }
    let others: [(&[&str], &str, &str); 12] = [
        (&["tune", "bp5", "--budget", "1"], "1000", NAMES),
        (&["tune", "bp5", "--budget", "1"], "18446744073709551615", DIVISIONS),
        (&["tune", "laplace", "--dim", "2", "--budget", "1"], "9000", MEMORY),
        (&["stats", "laplace"], "1000", MEMORY),
        (&["stats", "laplace"], "18446744073709551615", DIVISIONS),
        (&["solve", "poisson", "--dim", "2"], "9000", MEMORY),
        (&["solve", "poisson", "--dim", "3"], "18446744073709551615", DIVISIONS),
        (&["solve", "poisson", "--multigrid", "--dim", "2", "--deform", "0.1"], "16384", MEMORY),
        (&["solve", "poisson", "--multigrid", "--dim", "2"], "32768", MEMORY),
        (&["solve", "poisson", "--multigrid", "--degree", "7"], "9223372036854775808", MEMORY),
        (&["steps", "laplace", "--strategy", "single-cell", "--time"], "1000", MEMORY),
        (&["steps", "bp5", "--strategy", "single-cell", "--time"], "1000", NAMES),
    ];
    for (command, cells, why) in others {
        let device: &[&str] = if command[0] == "stats" { &[] } else { &["--device", "c"] };
        all.push(([command, device, &["--cells", cells]].concat(), why));
    }
    let few: Vec<usize> = (0..all.len()).step_by(3).collect();
    for (args, why) in of_run(all, &few) {
        let output = limited(&args);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        let last = message.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(why), "{args:?}: {message}");
    }
    for args in [
        &["run", "bp5", "--degree", "18446744073709551615", "--device", "c"][..],
        &["solve", "poisson", "--degree", "18446744073709551615", "--device", "c"],
    ] {
        let message = stderr(&limited(args));
        assert!(
            message.contains("degree 18446744073709551615") || message.contains("`P18446744073709551615"),
            "{message}"
        );
    }
    // a file without an end
    let message = stderr(&limited(&["run", "laplace", "--mesh", "/dev/zero", "--device", "c"]));
    assert!(message.contains("`/dev/zero`: it has more than the 256 MiB that are read"), "{message}");
}

/// A mesh in space is read with a note where it lies, and its groups are those of Gmsh.
#[test]
fn flat_meshes_in_space_are_read_with_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = "$Nodes\n4\n1 0 2 0\n2 1 2 0\n3 1 2 1\n4 0 2 1\n$EndNodes\n";
    let elements = "$Elements\n5\n1 1 2 11 1 1 2\n2 1 2 -11 2 3 2\n3 1 2 12 1 1 2\n4 2 2 7 1 1 2 3\n5 2 2 7 1 1 3 4\n$EndElements\n";
    let text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n{nodes}{elements}");
    let mesh = write(dir.path(), "flat.msh", &text);
    let args = ["run", "laplace", "--dim", "2", "--mesh", &mesh, "--device", "c", "--no-time"];
    let output = kingpost(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let note =
        format!("note: mesh `{mesh}`: lies in the plane y = 2, of which x and z are the coordinates\n");
    assert!(stderr(&output).contains(&note), "{}", stderr(&output));
    // over the two sides of group 11
    let form = "crates/forms/tests/integrals/boundary_length.json";
    let arrays = dir.path().join("arrays");
    good(&[
        "run",
        form,
        "--mesh",
        &mesh,
        "--device",
        "c",
        "--no-time",
        "--save-arrays",
        arrays.to_str().unwrap(),
    ]);
    let bytes = std::fs::read(arrays.join("y.npy")).unwrap();
    let value = f64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
    assert_eq!(value, 2.0);
    let bent = write(dir.path(), "bent.msh", &text.replace("4 0 2 1", "4 0 2.5 1"));
    let error = bad(&["run", "laplace", "--dim", "2", "--mesh", &bent], 2);
    assert!(error.contains("but a mesh of triangles must lie in one plane"), "{error}");
}

/// A process that may have little memory ends with a result or an error, and never by a signal.
#[test]
fn a_lack_of_memory_is_an_error() {
    let kingpost = env!("CARGO_BIN_EXE_kingpost");
    let run = |cells: u32| {
        let command = format!(
            "ulimit -v 900000; exec {kingpost} run mass --dim 2 --degree 1 --cells {cells} --device c --no-time"
        );
        Command::new("sh").args(["-c", &command]).env("OMP_NUM_THREADS", "1").output().unwrap()
    };
    let ends: Vec<_> = of_run([16, 900, 3000], &[0, 2])
        .into_iter()
        .map(|cells| {
            let output = run(cells);
            let message = stderr(&output);
            assert!(
                matches!(output.status.code(), Some(0..=3)) && !message.contains("bug of kingpost"),
                "{cells}: {:?} {message}",
                output.status
            );
            (output.status.code().unwrap(), message)
        })
        .collect();
    assert_eq!((ends[0].0, ends[ends.len() - 1].0), (0, 2), "{ends:?}");
}

#[test]
fn exported_forms_run_against_the_interpreter() {
    let sample = |name: &str| format!("crates/forms/tests/tabulated/{name}.json");
    let (poisson, penalty) = (sample("laplace"), sample("interior_penalty"));
    let report = good(&["run", &poisson, "--cells", "3", "--device", "c", "--no-time", "--seed", "1"]);
    assert!(
        report.contains("a perturbed unit mesh of 18 cells, `x`, `p2` numbered by nodes and dimension"),
        "{report}"
    );
    assert!(report.contains("│ compared   `y`: 49 elements"), "{report}");
    // a kernel for cells, for boundary facets and for facets between cells
    let reports = good(&["run", &penalty, "--cells", "2", "--device", "c", "--no-time", "--seed", "1"]);
    assert_eq!(reports.matches("│ kernel").count(), 3, "{reports}");
    let facets = format!("{penalty}#interior_penalty_interior_facets");
    let text = good(&["print", &facets, "--strategy", "none"]);
    assert!(text.contains("for facet in 0..n_facets"), "{text}");
    let stokes = sample("stokes");
    let sparse =
        ["run", &stokes, "--matrix", "sparse", "--cells", "2", "--device", "c", "--no-time", "--seed", "1"];
    assert!(good(&sparse).contains("│ compared   `y`: "));
    let split = good(&["print", &format!("{}#block_stokes_1", sample("block_stokes")), "--split-results"]);
    assert!(split.starts_with("kernel block_stokes_1"), "{split}");
    let all = good(&["print", &penalty, "--all-kernels", "--strategy", "none"]);
    let names: Vec<&str> = all.lines().filter_map(|l| l.strip_prefix("kernel ")).collect();
    let facets = ["interior_penalty_exterior_facets_1", "interior_penalty_interior_facets"];
    assert_eq!(names, ["interior_penalty", facets[0], facets[1]]);
    let unknown = bad(&["print", &format!("{poisson}#mass")], 2);
    assert!(unknown.contains(&format!("`{poisson}` has no kernel `mass`; it has `laplace`")), "{unknown}");
    let wrong = bad(&["run", &poisson, "--param", "n=3"], 2);
    assert!(wrong.contains("give one with --mesh, or the divisions of a unit mesh with --cells"), "{wrong}");
}

/// 22,393 tetrahedra as Gmsh wrote them, some of either orientation.
#[test]
fn exported_forms_run_on_the_bracket() {
    let form = "crates/forms/tests/tabulated/hyperelasticity.json";
    let report =
        good(&["run", form, "--mesh", "meshes/bracket.msh", "--device", "c", "--no-time", "--seed", "1"]);
    assert!(
        report.contains("the mesh of the file, with 22393 cells, `x`, `p1` numbered by nodes and dimension"),
        "{report}"
    );
    assert!(report.contains("`y`: 17394 elements"), "{report}");
}

#[test]
fn forms_by_name_run_on_other_cells() {
    let lanes = HostVectors::of(kingpost::runtime::open("c").unwrap().info()).lanes;
    let run = |cell| {
        let what = ["run", "helmholtz", "--cell", cell, "--degree", "2", "--cells", "2"];
        good(&[&what[..], &["--device", "c", "--no-time", "--seed", "1"]].concat())
    };
    let shapes = [("interval", 2, 5), ("quadrilateral", 4, 25), ("hexahedron", 8, 125), ("prism", 16, 125)];
    for (cell, cells, elements) in of_run(shapes, &[1, 3]) {
        let text = run(cell);
        assert!(text.contains(&format!("a perturbed unit mesh of {cells} cells")), "{text}");
        assert!(text.contains(&format!("`y`: {elements} elements")), "{text}");
        let factorised = format!("factorised sums, {lanes} cells a group");
        let is_product = ["quadrilateral", "hexahedron"].contains(&cell);
        assert_eq!(text.contains(&factorised), is_product, "{text}");
    }
    let steps =
        good(&["steps", "mass", "--cell", "quadrilateral", "--degree", "3", "--strategy", "factorised"]);
    for step in ["factor table `phi_p3` by 4*4, 4*4", "hoist"] {
        assert!(steps.contains(step), "{steps}");
    }
    let text = good(&["print", "laplace", "--cell", "quadrilateral", "--degree", "3", "--strategy", "none"]);
    assert!(text.starts_with("kernel laplace_quadrilateral_q3\n"), "{text}");
    let text = good(&["form", "mass", "--cell", "interval"]);
    assert!(text.contains("inner(u, test) * dx") && text.contains("3 points of each cell"), "{text}");
}

/// A cell of each kind as Gmsh writes it.
#[test]
fn prisms_and_pyramids_run_on_files() {
    let dir = tempfile::tempdir().unwrap();
    for (cell, kind, nodes, elements) in [
        ("prism", 6, &["0 0 0", "1 0 0", "0 1 0", "0 0 1", "1 0 1", "0 1 1"][..], 18),
        ("pyramid", 7, &["0 0 0", "1 0 0", "1 1 0", "0 1 0", "0 0 1"][..], 14),
    ] {
        let (n, names) = (nodes.len(), (1..=nodes.len()).map(|k| k.to_string()).collect::<Vec<_>>());
        let text = format!(
            "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 {n} 1 {n}\n3 1 0 {n}\n{}\n{}\n$EndNodes\n\
             $Elements\n1 1 1 1\n3 1 {kind} 1\n1 {}\n$EndElements\n",
            names.join("\n"),
            nodes.join("\n"),
            names.join(" "),
        );
        let file = write(dir.path(), cell, &text);
        let form =
            ["laplace", "--cell", cell, "--degree", "2", "--mesh", &file, "--device", "c", "--no-time"];
        let text = good(&[&["run"], &form[..]].concat());
        assert!(
            text.contains("with 1 cell") && text.contains(&format!("`y`: {elements} elements")),
            "{text}"
        );
    }
    let refused = bad(&["run", "laplace", "--cell", "pyramid", "--degree", "1", "--cells", "2"], 2);
    let expected = "a unit mesh of cells of a pyramid is not supported; take a mesh of a file";
    assert!(refused.contains(expected), "{refused}");
}

/// What would be passed over, or would end in a plausible result of something else, is refused.
#[test]
fn what_cannot_be_meant_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "axpy.kingpost", AXPY);
    let typo = r#"{"strategy":"straight_cells","cells":32,"whole_group":true}"#;
    let notes = write(dir.path(), "notes.txt", "first\n\nsecond\n");
    let cases: [(&[&str], &str); 15] = [
        (&["run", &file, "--param", "n=4", "--param", "n=5"], "--param n: given twice, as 4 and as 5"),
        (&["stats", &file], "parameter `n` has no value; give it one with --param n=1000"),
        (&["stats", &file, "--param", "m=3"], "has no parameter `m`"),
        (&["stats", &file, "--param", "n=-3"], "extent -3"),
        (&["run", "bp1", "--cells", "0", "--device", "c"], "--cells 0: needed at least 1 division"),
        (&["run", "laplace", "--degree", "-1"], "invalid value '-1' for '--degree"),
        (&["run", "laplace", "--mapping", typo], "unknown field `whole_group`"),
        (&["run", "meshes/bracket.msh"], "is a mesh; name a form and give the mesh with --mesh"),
        (&["solve", "poisson", "--residual", "-1"], "--residual -1: needed a number from 0 on, below 1"),
        (&["solve", "poisson", "--multigrid", "--residual", "nan"], "--residual NaN: needed"),
        (&["solve", "poisson", "--update", "inf"], "--update inf: needed a number of at least 0"),
        (&["solve", "poisson", "--device", "c", "--exchange", "host"], "cannot be used with '--exchange"),
        (&["solve", "poisson", "--multigrid", "--update", "3"], "cannot be used with '--update"),
        (&["solve", "poisson", "--cells", "900", "--vtu", "nowhere/x.vtu"], "cannot write `nowhere/x.vtu`"),
        (&["space", "laplace", "--device", "tpu"], "`titan_v`"),
    ];
    for (args, said) in cases {
        let error = bad(args, 2);
        assert!(error.contains(said), "{args:?}: {error}");
    }
    let tune = ["tune", "mass", "--dim", "2", "--cells", "1", "--device", "c", "--again", "--db", &notes];
    for args in [&tune[..], &["results", "--db", &notes], &["run", "mass", "--device", "c", "--db", &notes]] {
        let error = bad(args, 2);
        assert!(error.contains("notes.txt` is no database of `kingpost tune`"), "{args:?}: {error}");
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "first\n\nsecond\n");
}

/// What a file decides, and what an action by name has not, is refused and not passed over.
#[test]
fn options_that_say_nothing_of_a_source_are_refused() {
    let form = "crates/forms/tests/tabulated/laplace.json";
    let refused = |args: &[&str]| bad(args, 2).lines().next().unwrap_or_default().to_owned();
    for given in [["--cell", "interval"], ["--dim", "2"], ["--degree", "2"], ["--scheme", "default"]] {
        let option = given[0];
        assert_eq!(
            refused(&[&["run", form], &given[..]].concat()),
            format!(
                "error: {option}: `{form}` is an exported form, which has its cells, elements and quadrature rules; \
                 leave it out, or export the form with others"
            )
        );
        assert_eq!(
            refused(&[&["print", "examples/triad.kingpost"], &given[..]].concat()),
            format!(
                "error: {option}: `examples/triad.kingpost` is a kernel, which stays what it is; leave it out, or name \
                 a form"
            )
        );
    }
    for given in [&["--matrix", "sparse"][..], &["--split-results"]] {
        let kernel = refused(&[&["print", "examples/triad.kingpost"], given].concat());
        assert!(
            kernel.starts_with(&format!("error: {}: `examples/triad.kingpost` is a kernel", given[0])),
            "{kernel}"
        );
        assert_eq!(
            refused(&[&["run", "laplace"], given].concat()),
            format!(
                "error: {}: `laplace` is an action by name, which has one result and no matrix; leave it out",
                given[0]
            )
        );
    }
    let both = refused(&["print", "laplace", "--cell", "interval", "--dim", "2"]);
    assert_eq!(both, "error: the argument '--cell <CELL>' cannot be used with '--dim <DIM>'");
}

#[test]
fn what_is_too_large_to_interpret_is_compared_with_the_kernel_in_c() {
    // 2 * 300^3 operations
    let matmul = ["run", "examples/matmul.kingpost", "--recipe", "examples/matmul_recipe.json"];
    let text = good(&[&matmul[..], &["--param", "n=300", "--device", "c", "--no-time"]].concat());
    let text: String =
        text.split(['│', '\n']).map(str::trim).filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("the kernel as it is written, in C (more than 50,000,000 steps of the interpreter"),
        "{text}"
    );
    assert!(text.contains("`c`: 90000 elements"), "{text}");
}

#[test]
fn exported_forms_run_on_the_mesh_of_a_file() {
    let form = "crates/forms/tests/tabulated/face_penalty.json";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.msh");
    let elements = "$Elements\n2\n1 4 2 1 1 1 2 3 4\n2 4 2 1 1 2 3 4 5\n$EndElements\n";
    let nodes = "$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1 1 1\n$EndNodes\n";
    std::fs::write(&file, format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n{nodes}{elements}")).unwrap();
    let mesh = file.to_str().unwrap();
    let report = good(&["run", form, "--mesh", mesh, "--device", "c", "--no-time", "--seed", "1"]);
    assert!(report.contains("the mesh of the file, with 2 cells, `x` numbered by nodes"), "{report}");
    assert!(report.contains("│ compared   `y`: 20 elements"), "{report}");
    let triangles = "crates/forms/tests/tabulated/laplace.json";
    let refused = bad(&["run", triangles, "--mesh", mesh], 2);
    let expected =
        format!("error: mesh `{mesh}`: the mesh has cells of kind `tetrahedron`, needed `triangle`\n");
    assert_eq!(refused, expected);
    let db = dir.path().join("trials.jsonl");
    let mapping = r#"{"strategy":"single_cell","cells":32}"#;
    let tune = ["tune", form, "--mesh", mesh, "--device", "c", "--db", db.to_str().unwrap()];
    let text = good(&[&tune[..], &["--mapping", mapping]].concat());
    assert!(text.contains(&format!("kingpost run {form} --mesh {mesh}")), "{text}");
    assert!(std::fs::read_to_string(&db).unwrap().contains("\"mesh\":\"two.msh "));
}

#[test]
fn an_exported_form_is_tuned() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl");
    let form = "crates/forms/tests/tabulated/laplace_matrix.json";
    let args = ["tune", form, "--cells", "2", "--device", "c", "--db", db.to_str().unwrap()];
    let text = good(&args);
    assert!(text.contains("single cell, 32 a group"), "{text}");
    assert!(text.contains(&format!("kingpost run {form} --cells 2 --device c --mapping")), "{text}");
    let run = ["run", form, "--cells", "2", "--device", "c", "--no-time", "--seed", "1", "--db"];
    let known = good(&[&run[..], &[db.to_str().unwrap()]].concat());
    assert!(known.contains("(tuned on this"), "{known}");
    let unknown = good(&[&run[..], &[dir.path().join("none.jsonl").to_str().unwrap()]].concat());
    // a long name takes several lines of the table
    let words: Vec<&str> =
        unknown.split(|c: char| c.is_whitespace() || c == '│').filter(|w| !w.is_empty()).collect();
    let unknown = words.join(" ");
    assert!(
        unknown.contains(&format!("laplace_matrix, {} (a", vectors().fewest(Objective::Operations)))
            || unknown.contains(&format!("laplace_matrix, modes, {} (a", vectors().tiles())),
        "{unknown}"
    );
}

#[test]
fn tuning_an_exported_form_stops_without_complaint() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl");
    let form = "crates/forms/tests/tabulated/laplace_matrix.json";
    let args =
        ["tune", form, "--cells", "2", "--device", "c", "--db", db.to_str().unwrap(), "--time-limit", "0s"];
    let output = kingpost(&args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(" trials are left; the same command goes on with them\n"), "{said}");
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn stokes_is_solved_by_multigrid() {
    let solve = ["solve", "stokes", "--multigrid", "--cells", "4", "--device", "c", "--dim", "2"];
    let text = good(&[&solve[..], &["--precision", "mixed"]].concat());
    assert!(text.contains("RT1 and Q1 on each cell") && text.contains("2 levels from 2 a side on"), "{text}");
    for options in
        [&["--nested"][..], &["--deform", "0.1"], &["--smoother", "point"], &["--method", "full-multigrid"]]
    {
        let error = bad(&[&solve[..], options].concat(), 2);
        assert!(error.contains("needed `stokes` without it"), "{error}");
    }
    let error = bad(&["solve", "stokes"], 2);
    assert!(error.contains("needed --multigrid"), "{error}");
    let error = bad(&[&solve[..], &["--degree", "8"]].concat(), 2);
    assert!(error.contains("needed a degree from 1 to 7"), "{error}");
}

#[test]
fn poisson_is_solved_by_multigrid() {
    let args =
        ["solve", "poisson", "--multigrid", "--degree", "3", "--cells", "8", "--device", "c", "--dim", "2"];
    let text = good(&args);
    assert!(text.contains("3 levels from 2 a side on"), "{text}");
    assert!(text.contains("right-hand side"), "{text}");
    let deformed =
        ["--deform", "0.2", "--jump", "10", "--degree", "2", "--cells", "4", "--device", "c", "--dim", "2"];
    let solve = ["solve", "poisson", "--multigrid"];
    let solved = good(&[&solve[..], &deformed].concat());
    assert!(
        solved.contains("vertices moved by 0.2, a coefficient that alternates between 1 and 10"),
        "{solved}"
    );
    let error = bad(&[&solve[..], &deformed, &["--smoother", "point"]].concat(), 2);
    assert!(error.contains("needed patches by fast diagonalisation"), "{error}");
    let error = bad(&[&solve[..], &deformed, &["--method", "full-multigrid"]].concat(), 2);
    assert!(error.contains("needed --method gmres"), "{error}");
    let error = bad(&["solve", "poisson", "--multigrid", "--deform", "0.3", "--cells", "4"], 2);
    assert!(error.contains("needed a number from 0 on, below 0.25"), "{error}");
    let error = bad(&["solve", "poisson", "--multigrid", "--jump=-1", "--cells", "4"], 2);
    assert!(error.contains("needed a positive number"), "{error}");
    let error = bad(&["solve", "poisson", "--multigrid", "--cells", "12"], 2);
    assert!(error.contains("12 cells a side do not nest: needed a power of two"), "{error}");
    let error = bad(&["solve", "poisson", "--multigrid", "--degree", "0"], 2);
    assert!(error.contains("needed a degree from 1 to 15"), "{error}");
    let error = bad(&["solve", "hyperelasticity", "--multigrid"], 2);
    assert!(error.contains("has no multigrid"), "{error}");
    let error = bad(&["solve", "poisson", "--multigrid", "--residual", "1e-30", "--cells", "4"], 1);
    assert!(error.contains("as small as roundings allow"), "{error}");
    let mixed = ["--method", "gmres", "--precision", "mixed"];
    let text = good(&[&args[..], &mixed].concat());
    assert!(text.contains("V-cycle in single precision") && text.contains("iteration"), "{text}");
    poisson_is_solved_in_slabs();
    let text = good(&[&args[..], &mixed, &["--nested"]].concat());
    assert!(text.contains("start from the mesh below"), "{text}");
    let error = bad(&[&args[..], &["--nested"]].concat(), 2);
    assert!(error.contains("needed --method gmres"), "{error}");
    let error = bad(&[&args[..], &mixed[2..]].concat(), 2);
    assert!(error.contains("needed --method gmres"), "{error}");
    let error = bad(&[&args[..], &mixed, &["--iterations", "1"]].concat(), 1);
    assert!(error.contains("too many iterations"), "{error}");
    let smoothers = [
        ("fused", "in 4 colours, by residuals"),
        ("blended", "in 4 colours, by blended boundary values"),
        ("inverse", "in 4 colours, by dense inverses"),
        ("additive", "additive vertex patches, damped"),
        ("chebyshev", "under a Chebyshev polynomial of degree 3"),
        ("point", "point Gauss–Seidel"),
    ];
    for (name, said) in of_run(smoothers, &[1, 4]) {
        let text = good(&[&args[..], &["--smoother", name]].concat());
        assert!(text.contains(said), "{text}");
    }
}

/// Hexahedra of a file, refined, with the solution in another one.
#[test]
fn poisson_is_solved_on_a_mapped_cube() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.vtu").to_string_lossy().into_owned();
    let bend = ["solve", "poisson", "--multigrid", "--mesh", "meshes/bend.msh"];
    let more = ["--degree", "1", "--cells", "4", "--device", "c", "--vtu", &file];
    let text = good(&[&bend[..], &more].concat());
    assert!(text.contains("`meshes/bend.msh`, 4 x 2 x 2 cells (hexahedron)"), "{text}");
    assert!(text.contains("│ nodes      125 ") && text.contains("vertex patches in 8 colours"), "{text}");
    let vtu = std::fs::read_to_string(&file).unwrap();
    // each cell as one
    assert!(vtu.contains("NumberOfPoints=\"125\" NumberOfCells=\"64\"") && vtu.contains("Name=\"u\""));
    for (arguments, said) in [
        (&["--cells", "6"][..], "4 x 2 x 2 cells of the mesh along its axes do not divide into 6 a side"),
        (&["--cells", "2"], "do not divide into 2 a side"),
        (&["--cells", "12"], "12 cells a side do not nest"),
        (
            &["--method", "full-multigrid", "--cells", "4"],
            "--deform, --jump and --mesh: needed --method gmres",
        ),
        (&["--devices", "c,c", "--cells", "4"], "needed a Cartesian mesh"),
        (&["--deform", "0.1"], "cannot be used with"),
    ] {
        let error = bad(&[&bend[..], arguments].concat(), 2);
        assert!(error.contains(said), "{error}");
    }
    let error = bad(&["solve", "poisson", "--multigrid", "--mesh", "meshes/bracket.msh"], 2);
    assert!(error.contains("tetrahedron: needed quadrilateral or hexahedron"), "{error}");
    let error = bad(&["solve", "poisson", "--mesh", "meshes/bracket.msh", "--cells", "4"], 2);
    assert!(error.contains("a mesh of a file has its own cells"), "{error}");
}

#[test]
fn a_problem_is_solved_with_its_history() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.vtu").to_string_lossy().into_owned();
    let text = good(&["solve", "hyperelasticity", "--cells", "2", "--device", "c", "--vtu", &file]);
    assert!(text.contains("converged, residual") && text.contains("linear iterations"), "{text}");
    assert!(text.contains("0 bytes to the device,"), "{text}");
    let vtu = std::fs::read_to_string(&file).unwrap();
    assert!(vtu.contains("Name=\"u\"") && vtu.contains("NumberOfComponents=\"3\""));

    let body = ["solve", "hyperelasticity", "--cells", "2", "--device", "c"];
    let output = kingpost(&[&body[..], &["--newton-iterations", "2", "--load-steps", "2"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("too many iterations"), "the history is printed");
    assert!(stdout(&output).contains("│ 2         ┆ 0.5000 ┆"), "with loads: {}", stdout(&output));
    let error = "did not converge under 0.5 of its load, of which 0 was solved for: too many iterations";
    assert!(stderr(&output).contains(error), "{}", stderr(&output));

    let plane = ["solve", "poisson", "--dim", "2", "--cells", "4", "--device", "c"];
    for solver in of_run([["gmres", "none"], ["bicgstab", "chebyshev"], ["chebyshev", "jacobi"]], &[1]) {
        let named = ["--method", solver[0], "--preconditioner", solver[1]];
        let text = good(&[&plane[..], &named].concat());
        assert!(text.contains(&format!("{}, preconditioner {}", solver[0], solver[1])), "{text}");
    }
    let error = bad(&[&plane[..], &["--load-steps", "2"]].concat(), 2);
    assert!(error.contains("--load-steps 2: `poisson` is linear, needed 1"), "{error}");
    let error = bad(&[&plane[..], &["--method", "lu"]].concat(), 2);
    assert!(error.contains("unknown method `lu`; known: cg, gmres, bicgstab, chebyshev"), "{error}");
    let refused = ["--method", "chebyshev", "--preconditioner", "block-jacobi"];
    let error = bad(&[&plane[..], &refused].concat(), 2);
    assert!(error.contains("takes the preconditioners `none` and `jacobi`"), "{error}");
    let error = bad(&["solve", "poisson", "--multigrid", "--method", "bicgstab"], 2);
    assert!(error.contains("full-multigrid, gmres"), "{error}");

    let error = bad(&["solve", "heat"], 2);
    assert!(error.contains("no boundary value problem `heat`"), "{error}");
    let error = bad(&["solve", "poisson", "--degree", "9", "--dim", "3"], 2);
    assert!(error.contains("degree"), "{error}");
    // refused by the bytes it takes, before anything is allocated
    let error = bad(&["solve", "poisson", "--dim", "2", "--cells", "20000"], 2);
    assert!(error.contains("bytes"), "{error}");
}

fn poisson_is_solved_in_slabs() {
    let slabs = ["solve", "poisson", "--multigrid", "--dim", "2", "--cells", "8", "--degree", "2"];
    let on = |devices: &str, more: &[&'static str]| {
        let devices = devices.to_owned();
        let all: Vec<&str> = slabs.iter().chain(&["--devices", &devices]).chain(more).copied().collect();
        if more.is_empty() && devices == "c,c" { good(&all) } else { bad(&all, 2) }
    };
    let text = on("c,c", &[]);
    // 17 planes of 17 nodes: eight and nine, and those of a layer of cells of the neighbour
    assert!(text.contains("1 of 3 levels in slabs"), "{text}");
    assert!(text.contains("136 ┆") && text.contains("153 ┆") && text.contains("bytes a V-cycle"), "{text}");
    assert!(on("c,c,c", &[]).contains("such as in 2 slabs"));
    assert!(on("c,c", &["--nested"]).contains("needed a start from zero"));
    assert!(on("c,c", &["--jump", "2"]).contains("needed a Cartesian mesh"));
    assert!(on("c,c", &["--smoother", "point"]).contains("needed --smoother vertex-patch"));
    assert!(on("c,c", &["--method", "full-multigrid"]).contains("needed --method gmres"));
}

#[test]
fn a_problem_is_solved_on_several_devices() {
    let plane = ["solve", "poisson", "--dim", "2", "--cells", "8"];
    let alone = good(&[&plane[..], &["--device", "c"]].concat());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.vtu").to_string_lossy().into_owned();
    let text = good(&[&plane[..], &["--devices", "c,opencl,c", "--vtu", &file]].concat());
    assert!(text.contains("converged, residual") && text.matches("┆       27 ┆").count() == 3, "{text}");
    assert!(text.contains("host, ") && text.contains("bytes a product"), "{text}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("Name=\"u\""));
    let iterations = |text: &str| -> usize {
        let line = text.lines().find(|line| line.contains("│ iterations")).unwrap();
        let rest = line.split_once("method, ").unwrap().1;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let (of_one, of_three) = (iterations(&alone), iterations(&text));
    assert!(of_one.abs_diff(of_three) <= 1, "{alone}{text}");

    let error = bad(&[&plane[..], &["--devices", "c,c", "--iterations", "2"]].concat(), 1);
    assert!(error.contains("did not converge: the linear system was not solved"), "{error}");
    let error = bad(&[&plane[..], &["--devices", "c,c", "--exchange", "nccl"]].concat(), 1);
    assert!(error.contains("NCCL connects different cards, found `c`, `c`"), "{error}");
    let error = bad(&[&plane[..], &["--devices", "c,c", "--exchange", "mpi"]].concat(), 2);
    assert!(error.contains("no exchange `mpi`; use nccl or host"), "{error}");
    // the preconditioner of each part is that of its own rows
    if is_long_run() {
        let text = good(&[&plane[..], &["--devices", "c,opencl,c", "--preconditioner", "amg"]].concat());
        assert!(text.contains("converged, residual") && text.contains("27 unknowns; 1.00 times"), "{text}");
    }
    let error = bad(&[&plane[..], &["--devices", "c,c", "--method", "bicgstab"]].concat(), 2);
    assert!(
        error.contains("bicgstab, preconditioner jacobi on several devices: needed `cg` or `gmres`"),
        "{error}"
    );
    let error = bad(&["solve", "poisson", "--dim", "2", "--cells", "1", "--devices", "c,c,c,c,c"], 2);
    assert!(error.contains("4 degrees of freedom make no 5 parts; use fewer devices"), "{error}");
}

/// What a database holds, a file name or a message, is printed, and tells the terminal nothing.
#[test]
fn control_characters_of_files_are_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let shipped = std::fs::read_to_string(crate::root().join("results/h200/tuned.jsonl")).unwrap();
    let record = shipped.lines().next().unwrap();
    let escape = "\\u001b]0;title\\u0007";
    let named = record.replace("\"name\":\"NVIDIA H200\"", &format!("\"name\":\"red{escape}card\""));
    let named = named.replace("mass.2D.P1", &format!("mass{escape}.2D.P1"));
    assert_ne!(named, record);
    let db = dir.path().join("trials.jsonl");
    std::fs::write(&db, named + "\n{\"no\u{1b}[31m\n").unwrap();
    let db = db.to_string_lossy().into_owned();
    let is_plain = |text: &str| text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t');
    for more in [&[][..], &["--all"], &["--refused"], &["--device", "absent"]] {
        let output = kingpost(&[&["results", "--db", &db][..], more].concat());
        let (printed, said) = (stdout(&output), stderr(&output));
        assert!(is_plain(&printed) && is_plain(&said), "{printed:?} {said:?}");
        assert_eq!(printed.contains("title"), more.is_empty() || more == ["--all"], "{printed}");
    }
    let file = dir.path().join("bad.kingpost");
    std::fs::write(&file, "kernel k\u{1b}[31m\n").unwrap();
    let said = bad(&["print", &file.to_string_lossy()], 2);
    assert!(is_plain(&said), "{said:?}");
    let said = bad(&["print", "no\u{1b}[31m"], 2);
    assert!(said.contains("no\\u{1b}[31m"), "{said:?}");
}

/// Runs where no file may grow, as on a full disk.
fn without_room(args: &[&str]) -> Output {
    // the signal is ignored, so that a write fails
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_kingpost")])
        .args(args)
        .current_dir(crate::root())
        .output()
        .unwrap()
}

/// Names and contents below a folder.
fn contents(dir: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.to_string_lossy().into_owned(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let [folder, solution, database] =
        ["", "u.vtu", "trials.jsonl"].map(|name| out.join(name).to_string_lossy().into_owned());
    let small = ["--dim", "2", "--degree", "1", "--cells", "4", "--device", "c"];
    let single = r#"{"strategy":"single_cell","cells":32}"#;
    let tune = ["tune", "mass", "--db", &database, "--again", "--mapping", single];
    let solve = ["solve", "poisson", "--cells", "4", "--dim", "2", "--device", "c", "--vtu", &solution];
    let results = ["results", "--db", "results/h200/tuned.jsonl", "--case", "mass", "--plots", &folder];
    let commands = [
        ["run", &axpy, "--param", "n=100", "--device", "c", "--no-time", "--save-arrays", &folder].to_vec(),
        ["run", &axpy, "--param", "n=100", "--device", "c", "--no-time", "--save-dir", &folder].to_vec(),
        [&["run", "mass", "--save-dir", &folder], &small[..]].concat(),
        solve.to_vec(),
        [&tune[..], &small[..]].concat(),
        results.to_vec(),
    ];
    for command in of_run(&commands, &[0, 3, 4]) {
        good(command); // compiles, and measures ceilings, for what has no room to
        let before = contents(&out);
        let output = without_room(command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{command:?}: {}{said}", stdout(&output));
        // a kernel in C goes through a file of its own, for which there may be no room either
        let names_file = said.contains("error: cannot write `") && said.contains(&folder);
        assert!(names_file || said.contains("error: write the "), "{said}");
        assert!(!said.contains(".kingpost-"), "{said}");
        assert!(contents(&out) == before, "{command:?} has left {:?}", contents(&out).keys());
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut print = Command::new(env!("CARGO_BIN_EXE_kingpost"));
    let output = print.args(["print", &axpy]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("error: cannot write to standard output: "), "{}", stderr(&output));
    bad(&["solve", "poisson", "--cells", "4", "--dim", "2", "--device", "c", "--vtu", "/dev/full"], 3);
}

#[test]
fn what_has_no_end_is_not_read_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let commands = [
        &["print", "/dev/zero"][..],
        &["print", "mass", "--recipe", "/dev/zero"],
        &["diff", "/dev/zero", "/dev/zero"],
        &["run", &axpy, "--param", "n=4", "--values", "/dev/zero"],
        &["run", "mass", "--mesh", "/dev/zero", "--no-time"],
        &["results", "--db", "/dev/zero"],
    ];
    for args in of_run(commands, &[0, 4]) {
        let said = bad(args, 2);
        assert!(said.contains("it has more than the 256 MiB that are read"), "{args:?}: {said}");
    }
}

#[test]
fn errors_quote_little_of_a_long_line() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(300_000);
    let program = AXPY.replace("a*x[i]", &format!("a*{long}[i]{}", " + 1.0".repeat(20_000)));
    let program = write(dir.path(), "long.kingpost", &program);
    let name = write(dir.path(), "name.kingpost", &AXPY.replace("arg a: f64 in", &format!("arg {long}")));
    let recipe = write(dir.path(), "recipe.json", &format!(r#"{{"version":1,"steps":[{{"{long}":1}}]}}"#));
    let step = write(dir.path(), "steps.txt", &format!("split_iname({long}, 4)\n{long}\n"));
    let mesh = write(dir.path(), "long.msh", &format!("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n{long}\n"));
    let axpy = write(dir.path(), "axpy.kingpost", AXPY);
    let values = write(dir.path(), "values.json", &format!(r#"{{"x":["{long}"],"{long}":1}}"#));
    let lines = write(dir.path(), "trials.jsonl", &format!("{{\"version\":2,\"{long}\":1}}\n"));
    for args in [
        &["print", &program][..],
        &["print", &name],
        &["print", "mass", "--recipe", &recipe],
        &["print", &axpy, "--recipe", &step],
        &["run", "mass", "--mesh", &mesh, "--no-time"],
        &["run", &axpy, "--param", "n=1", "--values", &values],
        &["results", "--db", &lines],
    ] {
        let output = kingpost(args);
        let said = stderr(&output);
        assert!(!said.is_empty(), "{args:?}");
        for line in said.lines() {
            let run = line.split(|c: char| c != 'x').map(str::len).max();
            assert!(run <= Some(200), "{args:?}: {run:?} of the line in\n{:.3000}", said);
        }
    }
}

/// What is nan everywhere is equal, and proves nothing.
#[test]
fn results_that_are_no_numbers_prove_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let text = "kernel ends\nparam n: i32\narg x: f64[n] in\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = 2.0*x[i]\n";
    let file = write(dir.path(), "ends.kingpost", text);
    let run = |values: &str| {
        let values = write(dir.path(), "values.json", &format!(r#"{{"x": [{values}]}}"#));
        good(&["run", &file, "--param", "n=4", "--values", &values, "--device", "c", "--no-time"])
    };
    let none = run(r#""nan", "nan", "inf", "-inf""#);
    assert!(none.contains("nothing to compare: no element is a finite number"), "{none}");
    assert!(none.contains("`y`: 4 of 4 elements are nan or infinite") && !none.contains("0.00"), "{none}");
    let some = run(r#"1.0, "nan", 2.0, 3.0"#);
    assert!(some.contains("`y`: 1 of 4 elements are nan or infinite"), "{some}");
    let relative = "0.00 of the tolerance; the largest relative error is 0.0e0 in f64, where 1e-12 is";
    assert!(some.contains(relative), "{some}");
    let all = run("1.0, 2.0, 3.0, 4.0");
    assert!(all.contains(relative) && !all.contains("not finite"), "{all}");
}

/// Of operations that run and of those that are written; what is above 100 % says why.
#[test]
fn rooflines_are_of_what_is_executed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let save = ["--device", "c", "--save-dir", out.to_str().unwrap()];
    for what in [
        &["laplace", "--dim", "3", "--degree", "3", "--cells", "3"][..],
        &["mass", "--dim", "2", "--cells", "8"],
    ] {
        let text = good(&[&["run"], what, &save].concat());
        let report = std::fs::read_to_string(out.join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let measured = &report["measured"];
        let number = |name: &str| measured[name].as_f64().unwrap();
        let picture = std::fs::read_to_string(out.join("roofline.svg")).unwrap();
        let picture: Vec<&str> = picture.lines().filter(|line| !line.starts_with('<')).collect();
        let picture = picture.join(" ");
        for (why, rate, roof) in [
            ("executed", "executed_flops_per_s", "executed_roofline_flops_per_s"),
            ("as_written", "flops_per_s", "true_roofline_flops_per_s"),
            ("local_tables", "flops_per_s", "table_roofline_flops_per_s"),
        ] {
            let why = &measured["above_rooflines"][why];
            assert_eq!(number(rate) > number(roof), why.is_string(), "{measured}");
        }
        let differ = number("executed_flops") != number("flops");
        assert_eq!(text.matches("as written ").count(), if differ { 2 } else { 0 }, "{text}");
        assert_eq!(picture.contains("hollow: those that are written"), differ);
        let share = 100.0 * number("executed_flops_per_s") / number("executed_roofline_flops_per_s");
        assert!(text.contains(&format!("{share:.1} % of ")), "no {share}: {text}");
        assert!(picture.contains(&format!("{share:.1} % of the roof")), "no {share}: {picture}");
    }
}

/// Starts tuning what is in part in the database, and waits until trials begin.
fn begun(db: &str, form: &str) -> (std::process::Child, impl std::io::BufRead) {
    let single = ["--dim", "2", "--degree", "1", "--device", "c", "--cells", "4", "--db", db, "--mapping"];
    good(&[&["tune", form], &single[..], &[r#"{"strategy":"single_cell","cells":32}"#]].concat());
    let mut child = Command::new(env!("CARGO_BIN_EXE_kingpost"))
        .args(tune(db, form, "1", &[]))
        .current_dir(crate::root())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("in the database already") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "it ended");
    }
    (child, said)
}

#[test]
fn a_tuner_that_is_stopped_says_so_by_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    for (signal, code, message) in [
        ("-INT", 130, "error: stopped by Ctrl-C"),
        ("-TERM", 143, "error: stopped by a request to terminate"),
    ] {
        let db = dir.path().join(format!("trials{signal}.jsonl")).to_string_lossy().into_owned();
        let (mut child, mut said) = begun(&db, "laplace");
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut said, &mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{text}");
        assert!(text.contains("trials are left") && text.contains(message), "{text}");
    }
}

/// Each trial is one process's, and whatever a killed one had claimed is done by the others.
#[test]
fn several_tuners_share_the_trials_of_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("trials.jsonl").to_string_lossy().into_owned();
    let (mut killed, _) = begun(&db, "mass");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
        command.args(tune(&db, "mass", "1", &[])).current_dir(crate::root());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let tuners = [start(), start(), start()];
    for tuner in tuners {
        let output = tuner.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("its source: kingpost print"), "{}", stdout(&output));
    }
    let text = std::fs::read_to_string(&db).unwrap();
    let mapping = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        (record["workload"]["kernel"].to_string(), record["parameters"].to_string())
    };
    let trials: std::collections::BTreeSet<_> = text.lines().map(mapping).collect();
    assert_eq!(trials.len(), text.lines().count(), "a trial was done twice:\n{text}");
    assert!(trials.len() >= 10, "{text}");
}

#[test]
fn what_only_roundings_are_left_of_is_not_called_indefinite() {
    for preconditioner in of_run(["jacobi", "none", "amg"], &[0, 2]) {
        let problem = ["solve", "poisson", "--cells", "8", "--dim", "2", "--device", "c"];
        let options = ["--residual", "0", "--preconditioner", preconditioner];
        let output = kingpost(&[&problem[..], &options].concat());
        let said = stderr(&output);
        assert!(!said.contains("positive definite"), "{said}");
        let stagnated = said.contains("it is as small as roundings allow; ask for a larger --residual");
        assert!(output.status.success() || stagnated, "{preconditioner}: {said}");
    }
    for part in ["0.25", "0.3", "-0.1", "nan"] {
        let args = ["solve", "poisson", "--multigrid", "--cells", "4", "--dim", "2", "--deform", part];
        let said = bad(&args, 2);
        assert!(said.contains("needed a number from 0 on, below 0.25"), "{said}");
    }
}

#[test]
fn hierarchies_are_made_again_to_be_timed() {
    let problem = ["solve", "poisson", "--cells", "24", "--dim", "2", "--device", "c"];
    let again = |preconditioner| {
        [&problem[..], &["--time-hierarchies", "2", "--preconditioner", preconditioner]].concat()
    };
    let text = good(&again("amg"));
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
    for name in ["hierarchies  ", "renewals  "] {
        assert!(row(name).contains(", ") && row(name).contains("cycles or more"), "{text}");
    }
    assert!(row("a cycle").contains("s"), "{text}");
    let said = bad(&again("jacobi"), 2);
    let expected = "--time-hierarchies 2: `jacobi` has none; needed --preconditioner amg";
    assert!(said.contains(expected), "{said}");
}

/// A newcomer sees at once what goes on, and a build's own progress.
#[test]
fn the_demonstration_says_what_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let tools = [
        ("cargo", "#!/bin/sh\necho \"cargo $*\" >&2\nexit 7\n"),
        ("dpkg", "#!/bin/sh\n"),
        ("dpkg-query", "#!/bin/sh\necho 'ok installed'\n"),
    ];
    for (name, text) in tools {
        let path = write(dir.path(), name, text);
        Command::new("chmod").args(["+x", &path]).status().unwrap();
    }
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/demo.sh");
    let output = Command::new("sh").arg(script).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "it goes on where the build fails");
    let said = stderr(&output);
    let steps: Vec<&str> = said.lines().filter(|line| line.starts_with("demo, ")).collect();
    assert!(steps.len() == 2 && steps[0].contains("packages") && steps[1].contains("building"), "{said}");
    assert!(said.contains("cargo build --profile demo ") && !said.contains("--quiet"), "{said}");
}
