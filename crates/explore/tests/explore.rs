//! What the page computes of the exported expressions is what the engine counts.

#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost_analysis::Known;
use kingpost_explore::{
    Conditions, Exploration, Explorer, Loop, Row, Statement, StepState, Subject, Term, data, live_page, page,
};
use kingpost_ir::Kernel;
use kingpost_primitives::{Means, Recipe, steps};
use kingpost_sample::{is_long_run, of_run};
use serde_json::{Value, json};
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

/// A loop that runs backward has the same values; its iterations are others.
#[test]
fn loops_as_written_are_told_of_a_loop_that_is_reversed() {
    let text = "kernel k\nparam n: i32\narg y: f64[n] out\n\nfor i in 0..n\n  s: y[i] = 1.0\n";
    let explored = explored(text, r#"{"steps": [{"reverse_iname": {"iname": "i"}}]}"#, &[("n", 7)]);
    let at = values(&[("n", 7), ("i", 2)]);
    for (state, written) in explored.steps.iter().zip([2, 4]) {
        let origin = &state.kernel.insns[0].origin;
        assert_eq!(origin.iter().map(|o| value(&o.row, &at)).collect::<Vec<_>>(), [written]);
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
    assert_eq!(last.sources.keys().copied().collect::<Vec<_>>(), ["c", "cuda", "hip", "opencl"]);
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

/// Every statement has lines of its own in every source, and every barrier separates something.
#[test]
fn lines_of_sources_are_for_statements() {
    // in C the work-items of a group run one after the other
    let is_barrier =
        |l: &str| ["__syncthreads();", "__syncwarp();", "barrier("].iter().any(|b| l.contains(b));
    for state in matmul(70).steps {
        let insns = &state.kernel.insns;
        for (target, source) in &state.sources {
            let lines = &source.text.lines;
            assert!(!lines.is_empty(), "{target} after {}: {:?}", state.label, source.error);
            assert_eq!((source.insns.len(), source.around.len()), (lines.len(), lines.len()));
            for (k, statement) in insns.iter().enumerate() {
                let own = |line: usize| source.insns[line].contains(&k) && lines[line].contains('=');
                assert!((0..lines.len()).any(own), "{target}: no line is for {}", statement.name);
            }
            for (line, separated) in &source.barriers {
                assert!(is_barrier(&lines[*line]), "{target} after {}: {}", state.label, lines[*line]);
                // compilers of OpenCL C need some around loops with barriers
                let serves = *target == "opencl" || !separated.is_empty();
                assert!(serves, "{target} after {}: line {line} separates nothing", state.label);
            }
            let barriers = lines.iter().filter(|line| is_barrier(line));
            assert_eq!(barriers.count(), source.barriers.len(), "{target} after {}", state.label);
        }
    }
}

/// The line that computes something is for the statement that does in the text, wherever it stands.
#[test]
fn a_line_is_for_the_statement_that_it_computes() {
    let explored = matmul(70);
    let last = explored.steps.last().unwrap();
    let place = |name: &str| last.kernel.insns.iter().position(|s| s.name == name).unwrap();
    let cuda = &last.sources["cuda"];
    let of = |part: &str| {
        let line = cuda.text.lines.iter().position(|line| line.contains(part)).unwrap();
        cuda.insns[line].clone()
    };
    assert_eq!(of("a_tile[32*l1 + l0] = "), [place("fetch_a_tile")]);
    assert_eq!(of("b_tile[32*l1 + l0] = "), [place("fetch_b_tile")]);
    assert_eq!(of("acc += "), [place("acc_update")]);
    assert_eq!(of("= acc;"), [place("store")]);
    assert_eq!(of("a_tile[1024];"), [place("fetch_a_tile"), place("acc_update")]);
    let loop_over_k = cuda.text.lines.iter().position(|line| line.contains("int k_tile = 0")).unwrap();
    assert!(cuda.around[loop_over_k].contains(&place("acc_update")) && cuda.insns[loop_over_k].is_empty());
    let tile = cuda.barriers.values().flatten().find(|s| s.var == "a_tile" && s.carrier.is_none()).unwrap();
    assert_eq!((tile.source.as_str(), tile.sink.as_str()), ("fetch_a_tile", "acc_update"));
}

/// What was proved, and how: by isl, by the order of the loops, or nothing.
#[test]
fn steps_tell_what_they_proved() {
    let explored = explored(JACOBI, TILES, &[("T", 8), ("n", 26)]);
    let by = |step: usize, id: &str| {
        let proved = explored.steps[step].proved.iter().find(|p| p.id == id);
        proved.map(|p| p.by.clone()).unwrap_or_default()
    };
    assert_eq!(explored.steps[0].proved, []);
    let order = by(4, "order");
    // each of three reads, before and after
    let told: Vec<_> = order.iter().map(|e| (e.means, e.of.as_str(), e.times)).collect();
    let pair = |kind: &str| format!("{kind} of `u` from `s` to `s`");
    let (anti, flow) = (pair("anti"), pair("flow"));
    assert_eq!(told, [(Means::Empty, anti.as_str(), 3), (Means::Empty, flow.as_str(), 3)]);
    assert_eq!(order[0].under, ["n >= 3", "T >= 1"]);
    assert_eq!(by(4, "interchange_inames.nested")[0].means, Means::Form);
    assert_eq!(by(4, "placement")[0].means, Means::Nothing);
    for state in &explored.steps {
        assert!(state.proved.iter().all(|p| !p.by.is_empty()), "{}", state.label);
    }
    // a step that is refused has proved nothing
    let refused = self::explored(JACOBI, WRONG, &[]);
    assert_eq!(refused.steps.last().unwrap().proved, []);
    let placed = &matmul(70).steps[16];
    assert_eq!(placed.proved.iter().find(|p| p.id == "placement").unwrap().by[0].means, Means::Empty);
}

/// Each condition of each step of the examples has its evidence: the page leaves none open.
#[test]
fn every_condition_of_the_examples_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut told, mut evident) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Some("kingpost") = path.extension().and_then(|e| e.to_str()) else { continue };
        let slow = ["causal_attention_128", "dgemm", "hgemm_registers", "sgemm", "stencil_27_planes"];
        let is_slow = slow.iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name));
        if is_slow && !is_long_run() {
            continue; // three seconds and more
        }
        // a file of several kernels, a kernel alone, or a schedule with holes
        let Ok((kernel, Some(script))) = steps().file(&std::fs::read_to_string(&path).unwrap()) else {
            continue;
        };
        let Ok(schedule) = script.apply(&kernel) else { continue };
        let mut known = Known::of(kernel);
        for step in &schedule.finish().1.steps {
            let (after, _, proved) = step.apply_and_tell(&known.analysis()).unwrap();
            for obligation in steps().row(step.name()).unwrap().obligations {
                let found = proved.iter().find(|p| p.id == obligation.id());
                let by = &found.unwrap_or_else(|| panic!("{step}: {}", obligation.id())).by;
                told += 1;
                evident += usize::from(by.iter().any(|e| e.means != Means::Nothing));
            }
            known = after;
        }
    }
    assert!(told > 100 && 2 * evident > told, "{evident} of {told}");
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

/// What stays of a recipe is not made again, and the data are those of a fresh look.
#[test]
fn an_explorer_that_goes_on_finds_the_same() {
    let kernel = kernel(JACOBI);
    let mut explorer = Explorer::default();
    let mut all = vec![recipe(TILES), recipe(WRONG), recipe(TILES), recipe(r#"{"steps": []}"#)];
    let mut shorter = recipe(TILES);
    shorter.steps.pop();
    all.push(shorter);
    for (k, recipe) in all.iter().enumerate() {
        let params = values(&[("T", 8), ("n", 20 + k as i64)]);
        let subject = Subject::new("x", &kernel, recipe).with_params(params);
        let fresh = data(&Exploration::of(&subject).unwrap()).unwrap();
        assert_eq!(data(&explorer.explore(&subject).unwrap()).unwrap(), fresh, "after edit {k}");
        assert_eq!(data(&explorer.explore(&subject).unwrap()).unwrap(), fresh, "once more");
        // of which what stays is not written again, either
        let json: Value = serde_json::from_str(&explorer.json(&subject).unwrap()).unwrap();
        let fresh = serde_json::to_value(Exploration::of(&subject).unwrap()).unwrap();
        assert_eq!(json["steps"], fresh["steps"], "after edit {k}, as text");
        assert_eq!((&json["about"]["params"], &json["about"]["steps"]), (&fresh["params"], &json!([])));
    }
}

#[test]
fn the_text_of_an_editor_ends_no_script() {
    let page = live_page("<b>", "kernel k # </script><script>alert(1)</script> {{style}}\n").unwrap();
    assert!(!page.contains("</script><script>alert") && page.contains("&lt;b&gt;"));
    assert_eq!(page.matches("<script").count(), 3, "the data, the editor's text, the script");
}

/// A column of a tile: 32 lanes meet in one bank, and in none if rows are one longer.
fn column(row: i64) -> Exploration {
    let text = format!(
        "kernel column\narg y: f32[32] out\ntemp t: f32[32, {row}] local\n\nfor j in 0..32 {{l.0}}\n  put: t[j, 0] = 1.0\nfor i in 0..32 {{l.0}}\n  \
         get: y[i] = t[i, 0]\n"
    );
    explored(&text, r#"{"steps": []}"#, &[])
}

#[test]
fn banks_are_those_of_the_engine() {
    for (row, wavefronts) in [(32, 32), (33, 1)] {
        let banks = &column(row).steps[0].counts.banks;
        assert_eq!(banks.iter().map(|b| b.wavefronts).collect::<Vec<_>>(), [wavefronts; 2], "{banks:?}");
    }
}

/// Neighbours along `x` read what a work-group writes.
const RACE: &str = r#"{"steps": [{"tag": {"inames": "x", "tag": "g.0"}}]}"#;

#[test]
fn a_race_has_its_instances() {
    let explored = explored(JACOBI, RACE, &[("T", 4), ("n", 10)]);
    let last = explored.steps.last().unwrap();
    let refusal = last.refusal.as_ref().unwrap();
    assert_eq!((refusal.kind, refusal.obligation), ("placement", Some("placement")));
    let [a, b] = [&refusal.source, &refusal.sink].map(|at| at.as_ref().unwrap().point.clone());
    assert_ne!(a[1], b[1], "both are of one work-group");
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
    type Page = (&'static str, fn() -> Exploration);
    let pages: [Page; 6] = [
        ("matmul", || matmul(5)),
        ("jacobi", || explored(JACOBI, TILES, &[("T", 8), ("n", 26)])),
        ("refused", || explored(JACOBI, WRONG, &[("T", 8), ("n", 26)])),
        ("race", || explored(JACOBI, RACE, &[("T", 4), ("n", 10)])),
        ("column", || column(32)),
        ("padded", || column(33)),
    ];
    for (name, explored) in of_run(pages, &[1, 2, 5]) {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{script}.html"));
        std::fs::write(&file, page(&explored()).unwrap()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
        let out = Command::new("node").arg(script).arg(&file).output().unwrap();
        let told = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{name}: {told}");
    }
}
