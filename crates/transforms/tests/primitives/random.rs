//! Random steps on random programs: what is accepted computes the same.

use crate::story::{assert_style, changed_counts};
use crate::tally::Tally;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use purlin_ir::interp::{Memory, Value, interpret};
use purlin_ir::sample::{Sample, SampleConfig, arbitrary_kernel};
use purlin_ir::{AddressSpace, AxisTag, Kernel, Node, VarKind, WriteOp};
use purlin_transforms::primitives::{
    Assume, FixParameter, InterchangeInames, MakeAtomic, SetAddressSpace, SplitIname, TagIname, UnrollIname,
};
use purlin_transforms::{Cause, Step, Transform};

/// Picks a step that has a chance: names that there are, mostly.
fn draw(kernel: &Kernel, memory: &Memory, [kind, which, how]: [u8; 3]) -> Step {
    let inames: Vec<_> = kernel.inames.values().map(|i| i.name.clone()).collect();
    let iname = inames[usize::from(which) % inames.len()].clone();
    if kind >= 128 {
        return crate::structure::draw(kernel, &nested(kernel), [kind - 128, which, how]);
    }
    match kind % 16 {
        0..4 => SplitIname::new(iname, i64::from(how % 6)).into(),
        4..8 => {
            let nested = nested(kernel);
            match nested.get(usize::from(which) % nested.len().max(1)) {
                Some((outer, inner)) => InterchangeInames::new(outer, inner).into(),
                None => InterchangeInames::new(iname, "elsewhere").into(),
            }
        }
        8..11 => TagIname::new(iname, AxisTag::ALL[usize::from(how) % AxisTag::ALL.len()].to_string()).into(),
        11 => UnrollIname::new(iname).into(),
        12 => {
            let param = ["n", "m"][usize::from(which % 2)];
            let value = memory.get_param(param).unwrap_or(0);
            FixParameter::new(param, value).into()
        }
        13 => {
            let insns: Vec<_> = kernel.insns.values().collect();
            MakeAtomic::insn(&insns[usize::from(which) % insns.len()].name).into()
        }
        14 => {
            let vars: Vec<_> = kernel.vars.values().filter(|v| v.kind == VarKind::Temporary).collect();
            let space = AddressSpace::ALL[usize::from(how) % 4];
            SetAddressSpace::new(&vars[usize::from(which) % vars.len()].name, space).into()
        }
        _ => Assume::at_most(["n", "m"][usize::from(which % 2)], i64::from(how % 16)).into(),
    }
}

/// Loops with exactly one loop inside.
fn nested(kernel: &Kernel) -> Vec<(String, String)> {
    fn visit(kernel: &Kernel, nodes: &[Node], found: &mut Vec<(String, String)>) {
        for node in nodes {
            let Node::Loop(outer, body) = node else { continue };
            if let [Node::Loop(inner, _)] = body.as_slice() {
                found.push((kernel.inames[*outer].name.clone(), kernel.inames[*inner].name.clone()));
            }
            visit(kernel, body, found);
        }
    }
    let mut found = Vec::new();
    visit(kernel, &kernel.body, &mut found);
    found
}

/// Whether two runs agree: bit by bit, or, where an interchange has reordered updates, to rounding.
fn agree(before: &Memory, after: &Memory, reordered: bool) -> bool {
    // 1e-9: at most 5^3 terms of at most 1e4 in f64 with 2^-53 each, and functions of slope at most 1
    let close =
        |a: f64, b: f64| a.to_bits() == b.to_bits() || (reordered && (a - b).abs() <= 1e-9 * (1.0 + a.abs()));
    before.values().iter().zip(after.values()).all(|((n, a), (m, b))| match (a, b) {
        (Value::F64(a), Value::F64(b)) => n == m && a.iter().zip(b).all(|(a, b)| close(*a, *b)),
        _ => n == m && a == b,
    })
}

/// Applies one step; `None` if it was refused.
fn apply(kernel: &Kernel, memory: &Memory, step: &Step, reordered: bool) -> Result<Option<Kernel>, String> {
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
    let first = interpret(kernel, &mut expected).map_err(|e| e.to_string())?;
    let broken = |what: &str| Err(format!("{step}: {what}\n{kernel}\n=>\n\n{result}"));
    match interpret(&result, &mut found) {
        // a false assumption is refused at launch, not here
        Err(purlin_ir::interp::InterpError::Assumption { .. }) => return Ok(None),
        Err(error) => return broken(&error.to_string()),
        Ok(second) if !changed_counts(step, &first, &second).is_empty() => {
            return broken("other instances run");
        }
        Ok(_) => {}
    }
    if agree(&expected, &found, reordered) { Ok(Some(result)) } else { broken("other results") }
}

fn config() -> SampleConfig {
    SampleConfig { extent: 5, ..SampleConfig::default() }
}

/// Applies steps one after the other and counts, for each primitive, accepted and refused ones.
fn run(samples: SampleConfig, cases: u32, tally: &Tally) {
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let inputs = (arbitrary_kernel(samples), proptest::collection::vec(any::<[u8; 3]>(), 1..6));
    let result = runner.run(&inputs, |(Sample { mut kernel, memory }, picks)| {
        let mut reordered = false;
        for pick in picks {
            let step = draw(&kernel, &memory, pick);
            let updates = kernel.insns.values().any(|i| matches!(i.op, WriteOp::Update { .. }));
            reordered |= match step {
                Step::InterchangeInames(_)
                | Step::DistributeLoop(_)
                | Step::FuseLoops(_)
                | Step::MoveInsns(_) => updates,
                Step::ReverseIname(_) => true, // reductions as well
                _ => false,
            };
            let accepted = apply(&kernel, &memory, &step, reordered).map_err(TestCaseError::fail)?;
            tally.record(&step, accepted.is_some());
            if let Some(result) = accepted {
                kernel = result;
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn accepted_steps_keep_results_and_instances() {
    let drawn = "assume distribute_loop fix_parameter fuse_loops interchange_inames join_inames make_atomic \
                 move_insns peel_iname rename reverse_iname set_address_space shift_iname skew_iname split_iname \
                 tag_iname unroll_iname";
    // unrolling and joining need constant bounds, fusing needs neighbours alike, which few samples have
    let rare = ["fuse_loops", "join_inames", "unroll_iname"];
    let least = |name: &str| (5, if rare.contains(&name) { 0.02 } else { 0.1 });
    Tally::until_enough(drawn, &least, &mut |tally| {
        run(config(), 500, tally);
        run(SampleConfig { nests: 1, ..SampleConfig::simple() }, 300, tally);
    });
}
