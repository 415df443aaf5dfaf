//! Formulas against the counts at given parameters.

use crate::stats::{Counted, Statistics, StatsError, formulas, statistics};
use kingpost_ir::{Assumption, Constraint, Kernel, VarKind};
use kingpost_sample::Random;
use std::collections::BTreeMap;
use std::path::Path;

/// Compares every formula with the count at these parameters; returns how many have none.
pub(super) fn check(kernel: &Kernel, params: &BTreeMap<String, i64>, stats: &Statistics) -> usize {
    let found = formulas(kernel).unwrap();
    let mut without = 0;
    let mut compare = |formula: &Counted, count: u64, is_exact: bool, what: &str| {
        without += usize::from(formula.formula.is_err());
        let Ok(closed) = &formula.formula else { return };
        let value = closed.at(params).unwrap_or_else(|| panic!("{what}: `{closed}` at {params:?}\n{kernel}"));
        // a product of a parameter is not affine without its value, so that a condition may count as one on data
        let fits = if formula.exact && is_exact { value == count } else { value >= count };
        assert!(fits, "{what}: `{formula}` is {value} at {params:?}, counted {count}\n{kernel}");
    };
    compare(&found.flops, stats.flops(), stats.ops_exact, "flops");
    for ((name, formula), insn) in found.insns.iter().zip(&stats.insns) {
        assert_eq!(*name, insn.name);
        compare(formula, insn.instances, insn.exact, name);
    }
    for op in &stats.ops {
        let formula = found.ops.iter().find(|f| (f.kind, f.ty) == (op.kind, op.ty)).unwrap();
        compare(&formula.count, op.count, stats.ops_exact, op.kind.name());
    }
    for (formula, var) in found.vars.iter().zip(&stats.vars) {
        assert_eq!(formula.name, var.name);
        compare(&formula.reads, var.reads.accesses, var.reads.exact, &var.name);
        compare(&formula.writes, var.writes.accesses, var.writes.exact, &var.name);
    }
    without
}

/// Small random parameters that keep the assumptions and the extents.
fn draw(kernel: &Kernel, random: &mut Random) -> BTreeMap<String, i64> {
    loop {
        let params = kernel.vars.iter().filter(|(_, v)| v.kind == VarKind::Param);
        let values: BTreeMap<_, _> =
            params.map(|(id, v)| (id, (v.name.clone(), random.int(0, 14)))).collect();
        let value = |atom: &kingpost_ir::Atom| match atom {
            kingpost_ir::Atom::Var(v) => values.get(v).map(|(_, value)| *value),
            kingpost_ir::Atom::Iname(_) | kingpost_ir::Atom::Floor(..) => None,
        };
        let at = |e: &kingpost_ir::Affine| e.eval(&mut |atom| value(atom)).unwrap();
        let holds = kernel.assumptions.iter().all(|a| match a {
            Assumption::Params(Constraint::NonNegative(e)) => at(e) >= 0,
            Assumption::Params(Constraint::Zero(e)) => at(e) == 0,
            _ => true,
        });
        if holds && kernel.vars.values().flat_map(|v| &v.shape).all(|e| at(e) >= 0) {
            return values.into_values().collect();
        }
    }
}

#[test]
fn formulas_of_polybench_are_its_counts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/polybench/kernels");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut random = Random::new();
    let mut without = Vec::new();
    for file in &files {
        let kernel = kingpost_ir::text::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
        for _ in 0..5 {
            let params = draw(&kernel, &mut random);
            let stats = match statistics(&kernel, &params) {
                Ok(stats) => stats,
                Err(error) => panic!("{}: {error}", file.display()),
            };
            if check(&kernel, &params, &stats) > 0 {
                without.push(file.file_stem().unwrap().to_owned());
                break;
            }
        }
    }
    assert!(files.len() >= 30, "{} programs", files.len());
    assert!(without.is_empty(), "no closed form: {without:?}");
}

fn texts(text: &str) -> Vec<String> {
    let kernel = kingpost_ir::text::parse(text).unwrap();
    formulas(&kernel).unwrap().insns.iter().map(|(name, count)| format!("{name}: {count}")).collect()
}

#[test]
fn formulas_are_short() {
    let head = "kernel k\nparam n: i32\nparam m: i32\narg y: f64[n, m] inout\n\n";
    let rectangle = "for i in 0..n\n  for j in 0..m\n    s: y[i, j] += 1.0\n";
    assert_eq!(texts(&format!("{head}{rectangle}")), ["s: n*m"]);
    let triangle = "for i in 0..n\n  for j in i..n\n    for k in 0..j\n      s: y[0, 0] += 1.0\n";
    assert_eq!(texts(&format!("{head}{triangle}")), ["s: n*(n^2 - 1)/3"]);
    let inner = "for i in 1..n - 1\n  s: y[i, 0] += 1.0\n";
    assert_eq!(texts(&format!("{head}{inner}")), ["s: [n >= 2]*(n - 2)"]);
    let odd = "for i in 0..n where i mod 2 == 1\n  s: y[i, 0] += 1.0\n";
    assert_eq!(texts(&format!("{head}{odd}")), ["s: floor_div(n, 2)"]);
    let data = "for i in 0..n\n  s: y[i, 0] += 1.0 if y[i, 0] < 2.0\n";
    assert_eq!(texts(&format!("{head}{data}")), ["s: at most n"]);
}

#[test]
fn what_has_no_closed_form_says_why() {
    let text = "kernel k\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  for j in 0..n where 2*j - 3*i >= 0\n    for k in 0..n where 5*k - 7*j >= 0 and 3*k - 4*i >= 0\n      s: y[i] += 1.0\n";
    let found = texts(text);
    assert!(found[0].starts_with("s: no closed form: every bound of"), "{found:?}");
    let csr = "kernel k\nparam n: i32\narg rp: i32[n + 1] in\narg y: f64[n] inout\n\nfor i in 0..n\n  for k in rp[i]..rp[i + 1]\n    s: y[i] += 1.0\n";
    let kernel = kingpost_ir::text::parse(csr).unwrap();
    assert!(matches!(formulas(&kernel), Err(StatsError::DataDependent { .. })));
}

#[test]
fn split_loops_have_formulas() {
    let head = "kernel k\nparam n: i32\narg y: f64[n] inout\n\n";
    let split = "for o in 0..floor_div(n + 3, 4)\n  for i in 0..min(4, n - 4*o)\n    s: y[4*o + i] += 1.0\n";
    assert_eq!(texts(&format!("{head}{split}")), ["s: n"]);
    let twice = "for o in 0..floor_div(n + 11, 12)\n  for m in 0..3\n    for i in 0..4 where 12*o + 4*m + i < n\n      s: y[12*o + 4*m + i] += 1.0\n";
    assert_eq!(texts(&format!("{head}{twice}")), ["s: n"]);
    // the blocks count for themselves
    let blocks = "for o in 0..floor_div(n + 3, 4)\n  b: y[o] = 0.0\n  for i in 0..min(4, n - 4*o)\n    for k in 0..o\n      s: y[4*o + i] += 1.0\n";
    let kernel = kingpost_ir::text::parse(&format!("{head}{blocks}")).unwrap();
    for n in 0..30 {
        let params = super::params(&[("n", n)]);
        assert_eq!(check(&kernel, &params, &statistics(&kernel, &params).unwrap()), 0, "n = {n}");
    }
}
