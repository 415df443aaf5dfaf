//! Random programs through the primitives that move data and values, mixed with splits, swaps and tags.

use crate::story::{assert_style, changed_counts};
use crate::tally::Tally;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use purlin_ir::interp::{InterpError, Memory, Value, interpret};
use purlin_ir::sample::{Sample, SampleConfig, arbitrary_kernel};
use purlin_ir::{AddressSpace, BinaryOp, Expr, Kernel, Node, UpdateOp, VarKind, WriteOp};
use purlin_transforms::primitives::{
    AssignToRule, ConvertToUpdate, ExpandRule, ExtractRule, HoistInsn, InterchangeInames, PrefetchArray,
    RealiseReduction, SplitIname, TagIname,
};
use purlin_transforms::{Cause, Step, Transform};

fn pick(names: &[String], which: u8) -> &str {
    names.get(usize::from(which) % names.len().max(1)).map_or("nothing", String::as_str)
}

/// The names of the inames that are loops, and of those that are not.
fn inames(kernel: &Kernel) -> (Vec<String>, Vec<String>) {
    fn loops(kernel: &Kernel, nodes: &[Node], found: &mut Vec<String>) {
        for node in nodes {
            if let Node::Loop(iname, body) = node {
                found.push(kernel.inames[*iname].name.clone());
                loops(kernel, body, found);
            }
        }
    }
    let mut found = Vec::new();
    loops(kernel, &kernel.body, &mut found);
    let all = kernel.inames.values().map(|i| i.name.clone());
    let reductions = all.filter(|n| !found.contains(n)).collect();
    (found, reductions)
}

/// Picks a step that has a chance.
fn draw(kernel: &Kernel, [kind, which, how]: [u8; 3]) -> Step {
    let (loops, reductions) = inames(kernel);
    let names = |wanted: &dyn Fn(&purlin_ir::Insn) -> bool| {
        kernel.insns.values().filter(|i| wanted(i)).map(|i| i.name.clone()).collect::<Vec<_>>()
    };
    match kind % 16 {
        0..3 => SplitIname::new(pick(&loops, which), i64::from(how % 4) + 1).into(),
        3..7 => {
            let read: Vec<_> = ["x", "u", "y", "a", "v", "work", "weights", "map"].map(str::to_owned).into();
            let space = AddressSpace::ALL[usize::from(how / 8) % 4];
            let step = PrefetchArray::new(pick(&read, how), pick(&loops, which), space);
            let name = kernel.fresh_name("tile");
            let flat = (how % 5 == 0).then_some(3);
            step.into_temporary(name).by_work_items(flat).into()
        }
        7 | 8 => RealiseReduction::new(pick(&reductions, which)).into(),
        9 => ConvertToUpdate::insn(pick(
            &names(&|i| i.op == WriteOp::Assign && !i.lhs.index.is_empty()),
            which,
        ))
        .into(),
        10 => {
            let template = ["u[p]", "sin(p)", "p*0.5", "p + q", "a[p, q]", "x[p]"][usize::from(how % 6)];
            let params = if template.contains('q') { vec!["p", "q"] } else { vec!["p"] };
            ExtractRule::new(kernel.fresh_name("r"), params, template).into()
        }
        11 => {
            let rules: Vec<_> = kernel.rules.values().map(|r| r.name.clone()).collect();
            ExpandRule::new(pick(&rules, which)).into()
        }
        12 | 13 => {
            let temporaries = kernel.vars.values().filter(|v| v.kind == VarKind::Temporary);
            AssignToRule::new(pick(&temporaries.map(|v| v.name.clone()).collect::<Vec<_>>(), which)).into()
        }
        14 => match how % 4 {
            0 => TagIname::new(pick(&loops, which), "l.0").into(),
            1 => InterchangeInames::new(pick(&loops, which), pick(&loops, which.wrapping_add(1))).into(),
            _ => HoistInsn::new(pick(&names(&|i| i.op == WriteOp::Assign), which)).into(),
        },
        _ => HoistInsn::new(pick(&names(&|i| i.op == WriteOp::Assign), which)).into(),
    }
}

/// Writes some updates out as stores, so that they can be converted back.
fn with_stores(kernel: Kernel, which: u8) -> Kernel {
    let mut stored = kernel.clone();
    for (k, insn) in stored.insns.values_mut().enumerate() {
        if let WriteOp::Update { op, .. } = insn.op
            && (k + usize::from(which)) % 2 == 0
        {
            let op = match op {
                UpdateOp::Add => BinaryOp::Add,
                UpdateOp::Mul => BinaryOp::Mul,
                UpdateOp::Min => BinaryOp::Min,
                UpdateOp::Max => BinaryOp::Max,
            };
            insn.rhs = Expr::binary(op, Expr::Load(insn.lhs.clone()), insn.rhs.clone());
            insn.op = WriteOp::Assign;
        }
    }
    // an index with a reduction would stand in two places: such a program stays as it is
    let stored = stored.canonical();
    if stored.verify().is_ok() { stored } else { kernel }
}

/// 1e-9: at most 5^3 terms of at most 1e4 in f64 with 2^-53 each, and functions of slope at most 1; only where
/// sums were reassociated.
fn agree(before: &Memory, after: &Memory, reassociated: bool) -> bool {
    let close = |a: f64, b: f64| {
        a.to_bits() == b.to_bits() || (reassociated && (a - b).abs() <= 1e-9 * (1.0 + a.abs()))
    };
    before.values().iter().zip(after.values()).all(|((n, a), (m, b))| match (a, b) {
        (Value::F64(a), Value::F64(b)) => n == m && a.iter().zip(b).all(|(a, b)| close(*a, *b)),
        _ => n == m && a == b,
    })
}

fn apply(kernel: &Kernel, memory: &Memory, step: &Step) -> Result<Option<Kernel>, String> {
    let result = match step.apply(kernel) {
        Ok(result) => result,
        Err(error) => {
            assert_style(&error.to_string());
            return match error.cause {
                Cause::Solver(_) => Err(error.to_string()),
                _ => Ok(None),
            };
        }
    };
    if purlin_ir::text::parse(&result.to_string()).as_ref() != Ok(&result) {
        return Err(format!("{step}: the result does not read back\n{result}"));
    }
    let (mut expected, mut found) = (memory.clone(), memory.clone());
    let first = match interpret(kernel, &mut expected) {
        Ok(first) => first,
        Err(InterpError::Assumption { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let broken = |what: &str| Err(format!("{step}: {what}\n{kernel}\n=>\n\n{result}"));
    let second = match interpret(&result, &mut found) {
        Ok(second) => second,
        Err(error) => return broken(&error.to_string()),
    };
    if !changed_counts(step, &first, &second).is_empty() {
        return broken("other instances run");
    }
    let reassociated = matches!(step, Step::ConvertToUpdate(_) | Step::InterchangeInames(_));
    if agree(&expected, &found, reassociated) { Ok(Some(result)) } else { broken("other results") }
}

#[test]
fn accepted_steps_keep_results() {
    let moved = "prefetch_array realise_reduction convert_to_update extract_rule expand_rule assign_to_rule hoist_insn";
    Tally::until_enough(moved, &|_| (4, 0.01), &mut round);
}

fn round(tally: &Tally) {
    let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
    let inputs = (
        arbitrary_kernel(SampleConfig::default()),
        any::<u8>(),
        proptest::collection::vec(any::<[u8; 3]>(), 1..7),
    );
    let result = runner.run(&inputs, |(Sample { kernel, memory }, which, picks)| {
        let mut kernel = with_stores(kernel, which);
        for pick in picks {
            let step = draw(&kernel, pick);
            let accepted = apply(&kernel, &memory, &step).map_err(TestCaseError::fail)?;
            tally.record(&step, accepted.is_some());
            kernel = accepted.unwrap_or(kernel);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}
