//! Witnesses, counts, enumeration, piecewise bounds; threads and memory.
use kingpost_isl::{Affine, Constraint, IslError, Set, SetSpace};

fn set(text: &str) -> Set {
    Set::read_str(text).unwrap()
}

fn point(values: &[(&str, i64)]) -> Vec<(String, i64)> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn witnesses_are_the_smallest() {
    let smallest = |text: &str| set(text).lexmin_point().unwrap();
    assert_eq!(smallest("{ [i, j] : 3 <= i < 9 and i < j < 20 }"), Some(point(&[("i", 3), ("j", 4)])));
    let parametric = "[N] -> { [i, j] : 0 <= i < j < N and j >= 2 }";
    assert_eq!(smallest(parametric), Some(point(&[("N", 3), ("i", 0), ("j", 2)])));
    assert_eq!(smallest("{ [i] : 5 <= i < 5 }"), None);
    assert_eq!(smallest("{ [i] : i = 7 or i = 4 or (i mod 3 = 2 and i > 0) }"), Some(point(&[("i", 2)])));
    assert_eq!(smallest("{ [i] : i <= 40 and i mod 7 = 3 }"), Some(point(&[("i", 3)])));
    let negative = smallest("{ [i] : i <= -5 }").unwrap();
    assert!(negative[0].1 <= -5);
    assert_eq!(smallest("[N] -> { [] : N >= 6 }"), Some(point(&[("N", 6)])));
}

#[test]
fn witnesses_stay_in_the_ranges_of_parameters() {
    let ranges = [("N".to_owned(), -8, 7), ("other".to_owned(), 0, 0)];
    let smallest = |text: &str| set(text).lexmin_point_within(&ranges).unwrap();
    assert_eq!(smallest("[N] -> { [i] : 0 <= i < N }"), Some(point(&[("N", 1), ("i", 0)])));
    assert_eq!(smallest("[N] -> { [i] : N > 100 and 0 <= i < N }"), None);
    // the smallest point lies below the range: the next one is not negative, or where there is none
    // negative
    assert_eq!(smallest("[N] -> { [i] : -20 <= N and i = 3 }"), Some(point(&[("N", 0), ("i", 3)])));
    assert_eq!(smallest("[N] -> { [i] : -20 <= N <= -2 and i = 3 }"), Some(point(&[("N", -8), ("i", 3)])));
    assert_eq!(smallest("[N] -> { [i] : N = -20 or N = 20 }"), None);
    assert_eq!(smallest("{ [i] : i = 1000 }"), Some(point(&[("i", 1000)])));
    // and beyond 64 bits there is a smallest point all the same
    let wide = "[N] -> { [i] : i = 9223372036854775807 + N or (i = 3 and N = 5) }";
    assert_eq!(smallest(wide), Some(point(&[("N", 0), ("i", i64::MAX)])));
}

#[test]
fn samples_lie_in_the_set() {
    let space = SetSpace::new(&["i", "j"], &["N"]);
    let constraints = [
        Constraint::non_negative(Affine::name("i").offset(-11)),
        Constraint::zero(Affine::name("j").add_scaled(-3, &Affine::name("i").plus(2, "N").floor_div(5))),
    ];
    let one = Set::from_constraints(&space, &constraints).unwrap();
    let sample = one.sample_point().unwrap().unwrap();
    let lookup = |name: &str| sample.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    assert!(constraints.iter().all(|constraint| constraint.holds(&lookup) == Some(true)), "{sample:?}");
    assert_eq!(Set::empty(&space).unwrap().sample_point().unwrap(), None);
}

#[test]
fn counts_agree_with_enumeration() {
    let texts = [
        "{ [i, j] : 0 <= i < 7 and 0 <= j < 5 }",
        "{ [i, j, k] : 0 <= i < 7 and i <= j < 9 and 0 <= 3k < 14 }",
        "{ [i] : -20 <= i <= 30 and i mod 4 = 1 }",
        "{ [i] : 3i = 12 or 5 <= -2i <= 11 or 0 <= i < 4 }",
        "{ [i, j] : 0 <= i < 6 and 2j = i }",
        "{ [i] : 2i = 7 }",
        "{ [] }",
        "[N] -> { [i] : 0 <= i < N and N = 9 }",
        "[M] -> { [i] : 0 <= i < 3 }",
    ];
    for text in texts {
        let one = set(text);
        let points = one.points(1000).unwrap();
        assert_eq!(one.count().unwrap(), points.len() as u128, "{text}");
        assert!(points.is_sorted(), "{text}");
        let found = points.len();
        if found > 0 {
            let error = one.points(found - 1).unwrap_err();
            assert_eq!(error, IslError::TooManyPoints { operation: "points", limit: found - 1 });
        }
    }
    assert_eq!(set(texts[1]).points(1).is_err(), set(texts[1]).count().unwrap() > 1);
    assert_eq!(set("{ [i] : 2 <= i < 5 }").points(10).unwrap(), [[2], [3], [4]]);
}

#[test]
fn counting_a_large_box_needs_no_scan() {
    let cells = "{ [c, i, j] : 0 <= c < 10000000000 and 0 <= i < 35 and 0 <= j <= i }";
    assert_eq!(set(cells).count().unwrap(), 10_000_000_000 * 35 * 36 / 2);
}

#[test]
fn counts_of_unbounded_and_parametric_sets_are_errors() {
    let error = set("{ [i] : i >= 0 }").count().unwrap_err();
    assert_eq!(error, IslError::Unbounded { operation: "count" });
    let error = set("[N] -> { [i] : 0 <= i < N }").count().unwrap_err();
    assert_eq!(error, IslError::Parametric { operation: "count", names: "`N`".to_owned() });
    assert_eq!(set("[N] -> { [i] : 0 <= i < N }").fix("N", 12).unwrap().count().unwrap(), 12);
    assert_eq!(set("[N] -> { [i] : 0 <= i < N }").fix("N", -1).unwrap().count().unwrap(), 0);
    assert!(!set("{ [i] : i >= 0 }").is_bounded().unwrap());
    assert!(set("[N] -> { [i] : 0 <= i < N }").is_bounded().unwrap());
}

#[test]
fn bounds_range_over_everything() {
    let one = set("[N] -> { [i, j] : 2 <= i < N and N <= 9 and j >= i }");
    assert_eq!(one.bounds("i").unwrap(), (Some(2), Some(8)));
    assert_eq!(one.bounds("N").unwrap(), (Some(3), Some(9)));
    assert_eq!(one.bounds("j").unwrap(), (Some(2), None));
    assert_eq!(set("{ [i] : false }").bounds("i").unwrap(), (None, None));
    assert!(one.bounds("k").is_err());
}

#[test]
fn random_conjunctions_agree_with_brute_force() {
    // A fresh seed each run; it is printed on failure.
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut state = seed | 1;
    let mut draw = |low: i64, high: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        low + (state % (high - low + 1) as u64) as i64
    };
    for _ in 0..60 {
        let mut constraints = Vec::new();
        for name in ["x", "y"] {
            constraints.push(Constraint::non_negative(Affine::name(name).offset(5)));
            constraints.push(Constraint::non_negative(Affine::constant(6).plus(-1, name)));
        }
        let inner = Affine::constant(draw(-3, 3)).plus(draw(-3, 3), "x").plus(draw(-3, 3), "y");
        let outer = inner.floor_div(draw(1, 4)).plus(draw(-2, 2), "y").floor_div(draw(1, 3));
        constraints.push(Constraint::non_negative(outer.clone().offset(draw(-2, 2)).plus(draw(-1, 1), "x")));
        if draw(0, 2) == 0 {
            constraints.push(Constraint::zero(outer.plus(draw(-1, 1), "x")));
        }
        let mut expected = Vec::new();
        for (x, y) in (-6..=7).flat_map(|x| (-6..=7).map(move |y| (x, y))) {
            let lookup = |name: &str| Some(if name == "x" { x } else { y });
            if constraints.iter().all(|constraint| constraint.holds(&lookup) == Some(true)) {
                expected.push(vec![x, y]);
            }
        }
        let one = Set::from_constraints(&SetSpace::new(&["x", "y"], &[] as &[&str]), &constraints).unwrap();
        assert_eq!(one.points(1000).unwrap(), expected, "seed {seed}: {constraints:?}");
        assert_eq!(one.count().unwrap(), expected.len() as u128, "seed {seed}: {constraints:?}");
        let smallest = one.lexmin_point().unwrap().map(|p| p.into_iter().map(|(_, v)| v).collect::<Vec<_>>());
        assert_eq!(smallest, expected.first().cloned(), "seed {seed}");
    }
}

#[test]
fn every_thread_has_its_own_sets() {
    let worker = |bound: i64| {
        move || {
            let space = SetSpace::new(&["i"], &["N"]);
            let mut total = 0;
            for n in 1..bound {
                let range = [
                    Constraint::non_negative(Affine::name("i")),
                    Constraint::non_negative(Affine::name("N").plus(-1, "i").offset(-1)),
                ];
                let one = Set::from_constraints(&space, &range).unwrap().fix("N", n).unwrap();
                total += one.count().unwrap();
            }
            total
        }
    };
    let threads: Vec<_> = (0..8).map(|k| std::thread::spawn(worker(50 + k))).collect();
    for (k, thread) in (0_u128..).zip(threads) {
        assert_eq!(thread.join().unwrap(), (49 + k) * (50 + k) / 2);
    }
}

#[test]
fn objects_in_thread_locals_outlive_the_context_entry() {
    thread_local!(static KEPT: std::cell::RefCell<Vec<Set>> = const { std::cell::RefCell::new(Vec::new()) });
    let keep = || {
        KEPT.with(|kept| kept.borrow_mut().push(set("{ [i] : 0 <= i < 4 }")));
    };
    for _ in 0..4 {
        std::thread::spawn(keep).join().unwrap();
    }
}

#[test]
fn thousands_of_objects_come_and_go() {
    let mut kept = Vec::new();
    for k in 0..20_000_i64 {
        let space = SetSpace::new(&["i"], &["N"]);
        let bound = Constraint::non_negative(Affine::name("N").plus(-1, "i").offset(-k));
        let one = Set::from_constraints(&space, &[bound]).unwrap();
        if k % 10 == 0 {
            kept.push(one.clone());
        }
    }
    kept.reverse();
    assert!(kept[0].is_subset(&kept[1999]).unwrap());
    kept.truncate(5);
    assert!(kept[4].is_subset(kept.last().unwrap()).unwrap());
}
