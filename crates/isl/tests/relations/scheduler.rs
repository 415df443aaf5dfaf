//! Schedules of small programs.
use kingpost_isl::{Affine, IslError, Map, Objective, ScheduleTree, Scheduling, Set, with_operation_limit};

fn map(text: &str) -> Map {
    Map::read_str(text).unwrap()
}

fn set(text: &str) -> Set {
    Set::read_str(text).unwrap()
}

/// for t { for i { s: b[i] = f(a[i - 1], a[i], a[i + 1]) }; for i { r: a[i] = b[i] } }
fn stencil() -> Scheduling {
    let domain = "0 <= t < T and 1 <= i < n";
    let all = [
        "s[t, i] -> r[t' = t, i']: i - 1 <= i' <= i + 1",
        "r[t, i] -> s[t' = t + 1, i']: i - 1 <= i' <= i + 1",
    ];
    let mut problem = Scheduling::of(vec![
        set(&format!("[T, n] -> {{ s[t, i] : {domain} }}")),
        set(&format!("[T, n] -> {{ r[t, i] : {domain} }}")),
    ])
    .with_context(set("[T, n] -> { [] : T >= 3 and n >= 3 }"));
    for pairs in all {
        let primed = domain.replace('t', "t'").replace('i', "i'");
        let (ends, condition) = pairs.split_once(": ").unwrap();
        let pairs = map(&format!("[T, n] -> {{ {ends} : {condition} and {domain} and {primed} }}"));
        problem = problem.ordered(pairs.clone()).close(pairs);
    }
    problem
}

fn band(tree: &ScheduleTree) -> &kingpost_isl::Band {
    match tree {
        ScheduleTree::Band(band) => band,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stencil_is_one_band_that_can_be_tiled() {
    let tree = stencil().compute(Objective::default()).unwrap();
    let band = band(&tree);
    assert!(band.permutable && band.rows.len() == 2);
    assert_eq!(band.parallel, [false, false]);
    // each dependence goes forward along both loops
    let at = |(_, rows): &(String, Vec<Affine>), t: i64, i: i64| -> Vec<i64> {
        let value = |name: &str| match name {
            "t" => Some(t),
            "i" => Some(i),
            _ => None,
        };
        rows.iter().map(|row| row.evaluate(&value).unwrap()).collect()
    };
    let [r, s] = &band.rows[..] else { panic!("{band:?}") };
    assert_eq!((r.0.as_str(), s.0.as_str()), ("r", "s"));
    for d in -1..=1 {
        for (first, second) in [(at(s, 2, 7), at(r, 2, 7 + d)), (at(r, 2, 7), at(s, 3, 7 + d))] {
            assert!(first.iter().zip(&second).all(|(a, b)| a <= b), "{first:?} {second:?}");
        }
    }
}

#[test]
fn parallel_loops_outside_cost_a_sequential_one() {
    let objective = Objective { outer_parallel: true, ..Objective::default() };
    let tree = stencil().compute(objective).unwrap();
    // time around two loops that are parallel
    let outer = band(&tree);
    assert_eq!(outer.parallel, [false]);
    let ScheduleTree::Sequence(branches) = &*outer.inner else { panic!("{outer:?}") };
    let names: Vec<_> = branches.iter().map(|b| b.statements.join(" ")).collect();
    assert_eq!(names, ["s", "r"]);
    for branch in branches {
        assert_eq!(band(&branch.tree).parallel, [true]);
    }
    // the options are those of before
    assert_eq!(band(&stencil().compute(Objective::default()).unwrap()).rows[0].1.len(), 2);
}

#[test]
fn statements_without_dependences_are_apart_where_asked() {
    let domains = || vec![set("{ s[i] : 0 <= i < 4 }"), set("{ r[i] : 0 <= i < 4 }")];
    let objective = Objective { serialised: true, ..Objective::default() };
    let tree = Scheduling::of(domains()).compute(objective).unwrap();
    let (ScheduleTree::Sequence(branches) | ScheduleTree::Set(branches)) = tree else { panic!("{tree:?}") };
    assert_eq!(branches.len(), 2);
    assert_eq!(Scheduling::of(Vec::new()).compute(objective).unwrap(), ScheduleTree::Leaf);
}

#[test]
fn mistakes_and_limits_are_errors() {
    let unnamed = Scheduling::of(vec![set("{ [i] : 0 <= i < 4 }")]).compute(Objective::default());
    assert!(matches!(unnamed, Err(IslError::SpaceMismatch { .. })), "{unnamed:?}");
    let unknown = Scheduling::of(vec![set("{ s[i] : 0 <= i < 4 }")]).ordered(map("{ s[i] -> r[i' = i] }"));
    let unknown = unknown.compute(Objective::default());
    assert!(matches!(unknown, Err(IslError::SpaceMismatch { .. })), "{unknown:?}");
    let problem = stencil();
    let stopped = with_operation_limit(10, || problem.compute(Objective::default()));
    assert!(matches!(stopped, Err(IslError::Quota { .. })), "{stopped:?}");
    assert!(problem.compute(Objective::default()).is_ok());
}
