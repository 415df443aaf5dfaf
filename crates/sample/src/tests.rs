mod blocks;

use super::plan::{ExprPlan, NestPlan, Plan, RangePlan, StatementPlan, arbitrary_plan};
use super::*;
use kingpost_interp::{Value, interpret};
use kingpost_ir::domain::Domain;
use kingpost_ir::expr::Expr;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn samples_run_to_small_values(sample in arbitrary_kernel(SampleConfig::default())) {
        prop_assert_eq!(sample.kernel.verify(), Ok(()));
        prop_assert_eq!(&sample.kernel.clone().canonical(), &sample.kernel);
        let mut memory = sample.memory.clone();
        let run = interpret(&sample.kernel, &mut memory);
        prop_assert!(run.is_ok(), "{}", run.err().map(|e| e.to_string()).unwrap_or_default());
        let steps: u64 = run.map(|r| r.instances.values().sum()).unwrap_or(0);
        prop_assert!(steps < 2000, "{steps} instances");
        for (name, value) in memory.values() {
            // 5^3 iterations of sums of at most 5*5*4 terms of at most about 10 each
            let most = if matches!(value, Value::F64(_) | Value::F32(_)) { 1e7 } else { 1e17 };
            let v = value.to_f64();
            prop_assert!(v.iter().all(|x| x.abs() < most || !x.is_finite()), "{name} = {v:?}");
        }
    }

    #[test]
    fn simple_samples_hold_nothing_else(sample in arbitrary_kernel(SampleConfig::simple())) {
        let k = &sample.kernel;
        prop_assert!(k.inames.iter().all(|(i, iname)| iname.domain.as_range(i).is_some()));
        for insn in k.insns.values() {
            prop_assert!(insn.predicate.is_none());
            prop_assert!(insn.lhs.index.iter().all(|e| e.as_affine().is_some()));
            insn.rhs.for_each(&mut |e| assert!(!matches!(e, Expr::Reduce(_))));
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// They compute what the same program computes in one launch, as text order is the meaning.
    #[test]
    fn samples_of_several_launches_run(plan in arbitrary_plan(in_launches())) {
        let plan = Plan { names: 0, ..plan };
        let (one, several) = (Plan { launches: 0, ..plan.clone() }, sample(&plan, in_launches()));
        prop_assert_eq!(several.kernel.verify(), Ok(()));
        let (mut found, mut wanted) = (several.memory.clone(), sample(&one, in_launches()).memory);
        prop_assert!(interpret(&several.kernel, &mut found).is_ok());
        // else a loop of the host may repeat something
        if plan.launches & 128 == 0 {
            let run = interpret(&sample(&one, in_launches()).kernel, &mut wanted);
            prop_assert!(run.is_ok());
            prop_assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
        }
    }
}

fn with_arithmetic() -> SampleConfig {
    SampleConfig { arithmetic: true, records: true, ..SampleConfig::default() }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn samples_of_all_arithmetic_run(sample in arbitrary_kernel(with_arithmetic())) {
        prop_assert_eq!(sample.kernel.verify(), Ok(()));
        let mut memory = sample.memory.clone();
        let run = interpret(&sample.kernel, &mut memory);
        prop_assert!(run.is_ok(), "{}", run.err().map(|e| e.to_string()).unwrap_or_default());
    }
}

/// Complements of extrema, rotated words, conversions, subnormal numbers.
#[test]
fn arithmetic_occurs() {
    let mut runner = TestRunner::new(config(1));
    let mut missing =
        vec!["bit_not(min(", "bit_not(max(", "i8(", "u16(", "u64(", ", 33)", "bit_or(", "1e-309", "corners["];
    for _ in 0..2000 {
        let tree = arbitrary_kernel(with_arithmetic()).new_tree(&mut runner).expect("a sample");
        let text = tree.current().kernel.to_string();
        missing.retain(|part| !text.contains(part));
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "no {missing:?}");
}

fn in_launches() -> SampleConfig {
    SampleConfig { launches: true, ..SampleConfig::default() }
}

/// Launches, loops of the host around them, and values that live from one to the next.
#[test]
fn launches_occur() {
    let mut runner = TestRunner::new(config(1));
    let texts: Vec<String> = (0..400)
        .map(|_| {
            arbitrary_kernel(in_launches())
                .new_tree(&mut runner)
                .expect("a sample")
                .current()
                .kernel
                .to_string()
        })
        .collect();
    for feature in ["launch first", "launch second", "for again in 0..2", "{launch}", "global"] {
        let n = texts.iter().filter(|text| text.contains(feature)).count();
        assert!(n > 5, "`{feature}` in {n} of 400 samples");
    }
}

/// Records, declared functions and truth values that are compared occur, run, and mean what their text does.
#[test]
fn records_occur_and_run() {
    let mut runner = TestRunner::new(config(1));
    let strategy = arbitrary_kernel(SampleConfig { records: true, ..SampleConfig::default() });
    let (mut joined, mut kept, mut called, mut equal) = (0, 0, 0, 0);
    for _ in 0..400 {
        let mut sample = strategy.new_tree(&mut runner).expect("a sample").current();
        let text = sample.kernel.to_string();
        joined += usize::from(text.contains(" ends= "));
        kept += usize::from(text.contains(" run= "));
        called += usize::from(text.contains("extern damped"));
        equal += usize::from(text.contains("] == (i"));
        assert_eq!(kingpost_ir::text::parse(&text).as_ref(), Ok(&sample.kernel), "{text}");
        let run = interpret(&sample.kernel, &mut sample.memory);
        assert!(run.is_ok(), "{run:?}\n{text}");
    }
    assert!(joined > 5 && kept > 5, "{joined} in any order, {kept} in theirs");
    assert!(called > 5 && equal > 5, "{called} with a declared function, {equal} compare truth values");
}

/// Strides that are parameters occur, with a proof and without one.
#[test]
fn strides_occur() {
    let mut runner = TestRunner::new(config(1));
    let strategy = arbitrary_kernel(SampleConfig { strides: true, ..SampleConfig::default() });
    let (mut proved, mut open) = (0, 0);
    for _ in 0..200 {
        let sample = strategy.new_tree(&mut runner).expect("a sample").current();
        let text = sample.kernel.to_string();
        assert_eq!(kingpost_ir::text::parse(&text).as_ref(), Ok(&sample.kernel), "{text}");
        let Some(y) = sample.kernel.var("y").filter(|_| text.contains("strides(row, 1)")) else { continue };
        let unproved = sample.kernel.unproved_spacing(&sample.kernel.vars[y]).expect("no overlap");
        *(if unproved.is_empty() { &mut proved } else { &mut open }) += 1;
    }
    assert!(proved > 20 && open > 20, "{proved} proved, {open} open");
}

/// What the documentation promises to occur does, within a few hundred samples.
#[test]
fn every_feature_occurs() {
    let mut runner = TestRunner::new(config(1));
    let strategy = arbitrary_kernel(SampleConfig::default());
    let mut texts = String::new();
    for _ in 0..600 {
        texts += &strategy.new_tree(&mut runner).expect("a sample").current().kernel.to_string();
    }
    let features = [
        "sum(",
        "maximum(",
        "product(",
        " mod 2 == 0",
        ") or (",
        "..rows",
        ": x[map[",
        "[map[",
        "[permutation[",
        "select(",
        "min= ",
        "max= ",
        "*= ",
        "+= ",
        " if ",
        "f64(i",
        "weights[",
        "result[",
        " in i2..n",
        "..4",
        "sin(",
        "t2",
        " = -inf",
        "[n, 2] private",
        "[m] private",
        " - 1] + ",
        " + 1: ",
        " = 0 if i",
        " where n <= 3",
        " where m mod 2 == 1",
        " + 2 <= n",
        " where i2 >= 1",
        " and n <= 3",
        "{unroll}: ",
        "{unroll}\n",
        "arg f: f32",
        "arg big: i64",
        "odd[",
        "odd_single[",
        "small[",
        "nodes[",
        "faint[",
        "atan(0.5/",
        "copysign(0.5, ",
        "e-21",
        "e-201",
        ", inf",
        "-0.0",
        ": f32 private",
        ": i32 private",
        "f32(",
        "i32(",
        "i64(",
        "nan",
        "16777217.0",
        "floor_div(7, ",
        ": 1)/sum(",
        "minimum(",
        " in 0..0: small",
        "HUGE_VAL",
        "__x[",
        "for exists in",
        "param xor",
        "for `for` in",
        ": bool private",
        "\"what??/\"",
    ];
    for feature in features {
        assert!(texts.contains(feature), "no `{feature}` in 600 samples");
    }
}

#[test]
fn smallest_plan_is_the_smallest_program() {
    let value = ExprPlan::Literal(0);
    let statement = StatementPlan {
        depth: 0,
        after: false,
        target: 0,
        index: [0, 0],
        op: 0,
        value,
        predicate: None,
        staged: false,
    };
    let nest = NestPlan {
        loops: vec![RangePlan { extent: 0, shape: 0, condition: 0 }],
        statements: vec![statement],
    };
    let plan =
        Plan { n: 1, m: 1, seed: 0, nests: vec![nest], idioms: vec![], output: false, launches: 0, names: 0 };
    let kernel = draw::draw(&plan, SampleConfig::default()).kernel;
    let i = kernel.iname("i2").expect("the loop of the nest");
    assert_eq!(kernel.inames[i].domain.as_range(i).map(|(lo, _)| lo), Some(kingpost_ir::Affine::constant(0)));
    assert!(kernel.to_string().contains("for i2 in 0..n\n  s3: x[i2] = -1.0\n"), "{kernel}");
    assert_ne!(kernel.inames[i].domain, Domain::universe());
}

#[test]
fn names_of_the_pool_may_be_names() {
    let names = super::names::NAMES;
    assert!(names.iter().all(|n| kingpost_ir::verify::is_identifier(n)), "{names:?}");
    assert!((1..names.len()).all(|k| !names[..k].contains(&names[k])), "{names:?}");
}
