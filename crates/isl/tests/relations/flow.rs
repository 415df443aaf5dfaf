//! Dataflow on small programs.
use purlin_isl::{Dataflow, IslError, Map};

fn map(text: &str) -> Map {
    Map::read_str(text).unwrap()
}

/// for i in 0..N { s1: t = a[i]; s2: b[i] = t }
fn scalar_program() -> Dataflow {
    Dataflow::new(vec![map("{ s1[i] -> [i, 0] }"), map("{ s2[i] -> [i, 1] }")])
        .sink(map("[N] -> { s1[i] -> a[i] : 0 <= i < N }"))
        .sink(map("[N] -> { s2[i] -> t[] : 0 <= i < N }"))
        .must_source(map("[N] -> { s1[i] -> t[] : 0 <= i < N }"))
        .must_source(map("[N] -> { s2[i] -> b[i] : 0 <= i < N }"))
}

#[test]
fn a_scalar_flows_within_its_iteration_only() {
    let flow = scalar_program().compute().unwrap();
    assert_eq!(flow.must.len(), 1);
    let edge = &flow.must[0];
    assert_eq!((edge.source.as_str(), edge.sink.as_str()), ("s1", "s2"));
    assert_eq!(edge.map.out_dims(), ["i'"]);
    assert!(edge.map.is_equal(&map("[N] -> { s1[i] -> s2[i' = i] : 0 <= i < N }")).unwrap());
    assert_eq!(flow.must_no_source.len(), 1);
    assert_eq!(flow.must_no_source[0].0, "s1");
    let all = map("[N] -> { s1[i] -> a[i] : 0 <= i < N }");
    assert!(flow.must_no_source[0].1.is_equal(&all.rename(&[(&all.out_dims()[0], "a0")]).unwrap()).is_err());
    assert!(flow.must_no_source[0].1.is_equal(&all).unwrap());
}

#[test]
fn a_recurrence_flows_from_the_previous_iteration() {
    // for i in 1..N { a[i] = a[i - 1] }
    let flow = Dataflow::new(vec![map("{ s[i] -> [i] }")])
        .sink(map("[N] -> { s[i] -> a[i - 1] : 1 <= i < N }"))
        .must_source(map("[N] -> { s[i] -> a[i] : 1 <= i < N }"))
        .compute()
        .unwrap();
    assert_eq!(flow.must.len(), 1);
    assert!(flow.must[0].map.is_equal(&map("[N] -> { s[i] -> s[i' = i + 1] : 1 <= i < N - 1 }")).unwrap());
    let first = map("[N] -> { s[i] -> a[0] : N >= 2 and i = 1 }");
    assert!(flow.must_no_source[0].1.is_equal(&first).unwrap());
    let pair = flow.must[0].map.lexmin_pair_within(&[]).unwrap().unwrap();
    assert_eq!(pair.params, [("N".to_owned(), 3)]);
    assert_eq!(pair.input, [("i".to_owned(), 1)]);
    assert_eq!(pair.output, [("i'".to_owned(), 2)]);
}

#[test]
fn may_sources_hide_nothing_and_kills_do() {
    let schedule =
        || vec![map("{ w[] -> [0] }"), map("{ m[] -> [1] }"), map("{ k[] -> [2] }"), map("{ r[] -> [3] }")];
    let problem = Dataflow::new(schedule())
        .sink(map("{ r[] -> x[] }"))
        .must_source(map("{ w[] -> x[] }"))
        .may_source(map("{ m[] -> x[] }"));
    let flow = problem.clone().compute().unwrap();
    let sources: Vec<&str> = flow.may.iter().map(|edge| edge.source.as_str()).collect();
    assert_eq!(sources, ["m", "w"]);
    assert!(flow.must.is_empty(), "the may-source leaves no certain source");
    let killed = problem.kill(map("{ k[] -> x[] }")).compute().unwrap();
    assert!(killed.may.is_empty());
    // A read of a killed value has no source, but it does not read a value from before the program
    // either.
    assert!(killed.must_no_source.is_empty() && killed.may_no_source.is_empty());
}

#[test]
fn dimensions_match_by_name_in_any_order() {
    let flow = Dataflow::new(vec![map("{ s[i, j] -> [0, i, j] }"), map("{ r[i, j] -> [1, i, j] }")])
        .must_source(map("{ s[j, i] -> a[x = i, y = j] : 0 <= i < 3 and 0 <= j < 5 }"))
        .sink(map("{ r[i, j] -> a[y = j, x = i] : 0 <= i < 3 and 0 <= j < 5 }"))
        .compute()
        .unwrap();
    let expected = map("{ s[i, j] -> r[i' = i, j' = j] : 0 <= i < 3 and 0 <= j < 5 }");
    assert!(flow.must[0].map.is_equal(&expected).unwrap(), "{}", flow.must[0].map);
}

#[test]
fn ill_formed_problems_are_errors() {
    let refused = |problem: Dataflow| {
        let error = problem.compute().unwrap_err();
        assert!(matches!(error, IslError::SpaceMismatch { .. }), "{error}");
    };
    let sink = || map("{ s[i] -> a[i] }");
    refused(Dataflow::new(vec![map("{ s[i] -> [i] }"), map("{ t[i] -> [i, 0] }")]).sink(sink()));
    refused(Dataflow::new(vec![map("{ t[i] -> [i] }")]).sink(sink()));
    refused(Dataflow::new(vec![map("{ [i] -> [i] }")]).sink(sink()));
    refused(Dataflow::new(vec![map("{ s[i] -> [i] }")]).sink(map("{ s[i] -> [i] }")));
}
