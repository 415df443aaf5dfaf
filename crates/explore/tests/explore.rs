//! What the page computes of the exported expressions is what the engine counts.

#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost_explore::{Conditions, Exploration, Loop, Row, Statement, StepState, Subject, Term, page};
use kingpost_ir::Kernel;
use kingpost_primitives::{Recipe, steps};
use kingpost_sample::is_long_run;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

type Values = BTreeMap<String, i64>;

fn value(row: &Row, at: &Values) -> i64 {
    let term = |term: &Term| match term {
        Term::Name(name) => at[name],
        Term::Floor(numerator, divisor) => value(numerator, at).div_euclid(*divisor),
    };
    row.constant + row.terms.iter().map(|(t, factor)| factor * term(t)).sum::<i64>()
}

fn holds(conditions: &Conditions, at: &Values) -> bool {
    conditions.eq.iter().all(|row| value(row, at) == 0) && conditions.ge.iter().all(|row| value(row, at) >= 0)
}

/// The instances of a statement: every loop is tried from -2 to 40, beyond all that the tests have.
fn points(statement: &Statement, at: &mut Values, depth: usize, found: &mut Vec<Vec<i64>>) {
    let loops: &[Loop] = &statement.loops;
    let Some(here) = loops.get(depth) else {
        if statement.when.iter().all(|disjuncts| disjuncts.iter().any(|c| holds(c, at))) {
            found.push(loops.iter().map(|l| at[&l.name]).collect());
        }
        return;
    };
    for v in -2..40 {
        at.insert(here.name.clone(), v);
        if here.domain.iter().any(|c| holds(c, at)) {
            points(statement, at, depth + 1, found);
        }
    }
    at.remove(&here.name);
}

fn instances(statement: &Statement, params: &Values) -> Vec<Vec<i64>> {
    let mut found = Vec::new();
    points(statement, &mut params.clone(), 0, &mut found);
    found
}

/// Pairs of dependences, by testing all of them.
fn pairs(state: &StepState, params: &Values) -> usize {
    let of = |name: &str| {
        let statement = state.kernel.insns.iter().find(|s| s.name == name).unwrap();
        instances(statement, params)
    };
    let count = |d: &kingpost_explore::Dependence| {
        let (from, to) = (of(&d.source), of(&d.sink));
        let mut pairs = 0;
        for (p, q) in from.iter().flat_map(|p| to.iter().map(move |q| (p, q))) {
            let mut at = params.clone();
            at.extend(d.src.iter().cloned().zip(p.iter().copied()));
            at.extend(d.dst.iter().cloned().zip(q.iter().copied()));
            pairs += usize::from(d.pieces.iter().any(|piece| holds(piece, &at)));
        }
        pairs
    };
    state.deps.iter().map(count).sum()
}

const JACOBI: &str = "kernel jacobi\nparam T: i32\nparam n: i32\nassume n >= 3\nassume T >= 1\narg u: f64[T + 1, n] inout\n\n\
                      for t in 0..T\n  for x in 1..n - 1\n    s: u[t + 1, x] = 0.25*(u[t, x - 1] + 2.0*u[t, x] + u[t, x + 1])\n";

const TILES: &str = r#"{"steps": [
    {"skew_iname": {"iname": "x", "outer": "t", "factor": 1}},
    {"split_iname": {"iname": "t", "factor": 4, "outer": "tt", "inner": "t"}},
    {"split_iname": {"iname": "x", "factor": 8, "outer": "xt", "inner": "x"}},
    {"interchange_inames": {"outer": "t", "inner": "xt"}}
]}"#;

/// Without skewing, an interchange runs readers before writers.
const WRONG: &str = r#"{"steps": [
    {"split_iname": {"iname": "t", "factor": 4, "outer": "tt", "inner": "t"}},
    {"split_iname": {"iname": "x", "factor": 8, "outer": "xt", "inner": "x"}},
    {"interchange_inames": {"outer": "t", "inner": "xt"}}
]}"#;

fn kernel(text: &str) -> Kernel {
    kingpost_ir::text::parse(text).unwrap()
}

fn recipe(text: &str) -> Recipe {
    steps().recipe(text).unwrap()
}

fn values(of: &[(&str, i64)]) -> Values {
    of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn explored(text: &str, steps: &str, params: &[(&str, i64)]) -> Exploration {
    let (kernel, recipe) = (kernel(text), recipe(steps));
    Exploration::of(&Subject::new("test", &kernel, &recipe).with_params(values(params))).unwrap()
}

fn matmul(n: i64) -> Exploration {
    let (text, steps) = (
        include_str!("../../../examples/matmul.kingpost"),
        include_str!("../../../examples/matmul_recipe.json"),
    );
    explored(text, steps, &[("n", n)])
}

fn compare(explored: &Exploration) {
    for (number, state) in explored.steps.iter().enumerate() {
        let counted = state.counts.statistics.as_ref().unwrap();
        for statement in &state.kernel.insns {
            let engine = counted.insns.iter().find(|i| i.name == statement.name).unwrap();
            let own = instances(statement, &explored.params).len() as u64;
            assert!(engine.exact && statement.exact);
            assert_eq!(own, engine.instances, "{} after step {number}", statement.name);
        }
    }
}

#[test]
fn instances_are_those_that_the_engine_counts() {
    compare(&matmul(37));
    compare(&explored(JACOBI, TILES, &[("T", 8), ("n", 26)]));
    let guarded = "kernel k\nparam n: i32\narg y: f64[n, n] inout\n\nfor i in 0..n\n  for j in i..n where i + j <= 20\n    \
                   s: y[i, j] = 1.0 if j mod 3 == 1 or i == 2\n";
    let steps = r#"{"steps": [{"split_iname": {"iname": "j", "factor": 5}}]}"#;
    compare(&explored(guarded, steps, &[("n", 17)]));
}

#[test]
fn pairs_keep_their_number_through_tiles() {
    let explored = explored(JACOBI, TILES, &[("T", 5), ("n", 14)]);
    let first = pairs(&explored.steps[0], &explored.params);
    // each of 12 points of 4 later times reads three, fewer at both ends
    assert_eq!(first, 4 * (3 * 12 - 2));
    for state in &explored.steps {
        assert_eq!(pairs(state, &explored.params), first, "{}", state.label);
    }
    let exact = |state: &StepState| state.deps.iter().map(|d| d.distance.clone()).collect::<Vec<_>>();
    let far = |values: [(&str, i64); 2]| values.map(|(n, v)| (n.to_owned(), v)).to_vec();
    for d in exact(&explored.steps[0]) {
        assert!(d.contains(&("t".to_owned(), 1)), "{d:?}");
        assert!(d.len() < 2 || (-1..=1).any(|x| d == far([("t", 1), ("x", x)])), "{d:?}");
    }
}

#[test]
fn lines_are_those_of_statements_and_loops() {
    for state in matmul(70).steps {
        for statement in &state.kernel.insns {
            let line = |n: usize| state.kernel.text.lines[n].trim_start();
            assert!(line(statement.line).starts_with(&format!("{}: ", statement.name)), "{}", statement.name);
            for l in &statement.loops {
                assert!(line(l.line.unwrap()).starts_with(&format!("for {} in ", l.name)), "{}", l.name);
            }
        }
        for text in [&state.kernel.text].into_iter().chain(state.sources.values().map(|s| &s.text)) {
            assert_eq!(text.lines.len(), text.since.len());
        }
    }
}

/// The loops as written of a statement take the values that they had before any step.
#[test]
fn loops_as_written_are_told_through_tiles() {
    let tiled = explored(JACOBI, TILES, &[("T", 8), ("n", 26)]);
    for (explored, name, loops) in [(matmul(37), "store", ["i", "j"]), (tiled, "s", ["t", "x"])] {
        let statement =
            |state: &StepState| state.kernel.insns.iter().find(|s| s.name == name).unwrap().clone();
        let written = instances(&statement(&explored.steps[0]), &explored.params);
        for state in &explored.steps {
            let statement = statement(state);
            let mut told: Vec<Vec<i64>> = Vec::new();
            for point in instances(&statement, &explored.params) {
                let mut at = explored.params.clone();
                at.extend(statement.loops.iter().map(|l| l.name.clone()).zip(point));
                let origin = |name: &&str| statement.origin.iter().find(|o| o.name == **name).unwrap();
                told.push(loops.iter().map(|name| value(&origin(name).row, &at)).collect());
            }
            told.sort();
            assert_eq!(told, written, "{}", state.label);
        }
    }
}

#[test]
fn a_refusal_has_its_instances_and_what_to_try() {
    let explored = explored(JACOBI, WRONG, &[]);
    let last = explored.steps.last().unwrap();
    let refusal = last.refusal.as_ref().unwrap();
    assert_eq!(explored.steps.len(), 4);
    assert_eq!((refusal.kind, last.primitive.as_deref()), ("reordered", Some("interchange_inames")));
    assert!(!refusal.help.is_empty() && !refusal.clash.ends_with(&refusal.help), "{refusal:?}");
    let statement = &last.kernel.insns[0];
    let mut params = explored.params.clone();
    params.extend(refusal.params.clone());
    let there = instances(statement, &params);
    for instance in [&refusal.source, &refusal.sink] {
        assert!(there.contains(&instance.as_ref().unwrap().point), "{instance:?} is no instance");
    }
    assert!(refusal.element.as_ref().unwrap().starts_with("u["));
}

#[test]
fn what_is_wrong_with_parameters_is_said() {
    let (kernel, recipe) = (kernel(JACOBI), recipe(TILES));
    let error =
        Exploration::of(&Subject::new("x", &kernel, &recipe).with_params(values(&[("m", 3)]))).unwrap_err();
    assert_eq!(error.to_string(), "the kernel has no parameter `m`; it has `T`, `n`");
}

#[test]
fn chosen_parameters_keep_assumptions() {
    let text =
        "kernel k\nparam n: i32\nassume n >= 100\narg y: f64[n] out\n\nfor i in 0..n\n  s: y[i] = 1.0\n";
    let explored = explored(text, r#"{"steps": []}"#, &[]);
    assert!(explored.params["n"] >= 100, "{:?}", explored.params);
}

#[test]
fn sources_and_counts_are_those_of_each_step() {
    let explored = matmul(70);
    let last = explored.steps.last().unwrap();
    assert_eq!(last.sources.keys().copied().collect::<Vec<_>>(), ["c", "cuda", "opencl"]);
    let cuda = &last.sources["cuda"];
    assert!(cuda.text.lines.iter().any(|line| line.contains("__syncthreads")));
    let launch = cuda.launch.as_ref().unwrap();
    assert_eq!((launch.block, launch.grid.clone()), ([32, 32, 1], Some(vec![3, 3, 1])));
    assert!(!last.counts.banks.is_empty());
    // the accumulator is an array of the group after the step that expands it, and shared by nobody before
    let expand = explored.steps.iter().position(|s| s.primitive.as_deref() == Some("expand_array")).unwrap();
    assert_eq!(explored.steps[expand].kernel.arrays["acc"].shape.len(), 2);
    assert!(explored.primitives["expand_array"].obligations.len() > 2);
}

#[test]
fn a_page_is_one_file_with_equal_bytes() {
    let (a, b) = (page(&matmul(70)).unwrap(), page(&matmul(70)).unwrap());
    assert_eq!(a, b);
    assert!(a.starts_with("<!doctype html>") && a.trim_end().ends_with("</html>"));
    for left in ["{{style}}", "{{script}}", "{{data}}", "{{title}}", "src=\"", "@import", "eval("] {
        assert!(!a.contains(left), "{left}");
    }
    // the name of a namespace is no request
    assert_eq!(a.matches("http").count(), a.matches("http://www.w3.org/2000/svg").count());
    assert!(a.len() < 200_000, "{} bytes", a.len());
}

/// The page's own script does what this file does by hand.
#[test]
fn the_script_of_a_page_agrees() {
    on_pages("agree.mjs");
}

/// No error, no request, nothing wider than the window, at four widths in both themes; keys.
#[test]
fn pages_work_in_a_browser() {
    if is_long_run() && Command::new("chromium").arg("--version").output().is_ok() {
        on_pages("browser.mjs");
    } else {
        eprintln!("skipped: this is no long run, or there is no Chromium");
    }
}

/// Runs a script on a page of each kind, where Node.js is there.
fn on_pages(script: &str) {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: there is no Node.js");
        return;
    }
    let explored = [
        ("matmul", matmul(5)),
        ("jacobi", explored(JACOBI, TILES, &[("T", 8), ("n", 26)])),
        ("refused", explored(JACOBI, WRONG, &[("T", 8), ("n", 26)])),
    ];
    for (name, explored) in explored {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{script}.html"));
        std::fs::write(&file, page(&explored).unwrap()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
        let out = Command::new("node").arg(script).arg(&file).output().unwrap();
        let told = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{name}: {told}");
    }
}
