//! Sets: construction from constraints, algebra, names.
use kingpost_isl::{Affine, Constraint, IslError, Set, SetSpace};

fn ge(expr: Affine) -> Constraint {
    Constraint::non_negative(expr)
}

/// `lo <= name < hi`.
fn range(name: &str, lo: Affine, hi: Affine) -> [Constraint; 2] {
    [ge(Affine::name(name).add_scaled(-1, &lo)), ge(hi.plus(-1, name).offset(-1))]
}

fn set(text: &str) -> Set {
    Set::read_str(text).unwrap()
}

#[test]
fn constraints_build_the_set_they_say() {
    let space = SetSpace::new(&["i", "j"], &["N"]).with_tuple("S");
    let mut constraints = Vec::new();
    constraints.extend(range("i", Affine::constant(0), Affine::name("N")));
    constraints.extend(range("j", Affine::name("i"), Affine::name("N").offset(-2)));
    let built = Set::from_constraints(&space, &constraints).unwrap();
    assert!(built.is_equal(&set("[N] -> { S[i,j] : 0 <= i < N and i <= j < N - 2 }")).unwrap());
    assert!(!built.is_equal(&set("[N] -> { S[i,j] : 0 <= i < N and i <= j < N - 1 }")).unwrap());
    assert_eq!(built.space().unwrap(), space);
}

#[test]
fn floor_divisions_are_exact() {
    let space = SetSpace::new(&["i"], &["N"]);
    // i = 4 floor(i/4) + 1 and i < floor((N + 1)/2)
    let stride =
        Constraint::zero(Affine::name("i").add_scaled(-4, &Affine::name("i").floor_div(4)).offset(-1));
    let bound = ge(Affine::name("N").offset(1).floor_div(2).plus(-1, "i").offset(-1));
    let built = Set::from_constraints(&space, &[stride, bound]).unwrap();
    assert!(built.is_equal(&set("[N] -> { [i] : i mod 4 = 1 and i < floor((N + 1)/2) }")).unwrap());
    let again = Set::from_disjuncts(&space, &built.disjuncts().unwrap()).unwrap();
    assert!(again.is_equal(&built).unwrap());
}

#[test]
fn unknown_and_duplicate_names_are_errors() {
    let space = SetSpace::new(&["i"], &["N"]);
    let error = Set::from_constraints(&space, &[ge(Affine::name("k"))]).unwrap_err();
    assert!(matches!(error, IslError::UnknownName { ref name, .. } if name == "k"), "{error}");
    let error = Set::universe(&SetSpace::new(&["i"], &["i"])).unwrap_err();
    assert!(matches!(error, IslError::DuplicateName { ref name, .. } if name == "i"), "{error}");
    let error = Set::universe(&SetSpace::new(&["i"], &[""])).unwrap_err();
    assert!(matches!(error, IslError::InvalidName { .. }), "{error}");
}

#[test]
fn algebra_follows_isl() {
    let (a, b) = (set("{ [i] : 0 <= i < 10 }"), set("{ [i] : 5 <= i < 20 }"));
    assert!(a.intersect(&b).unwrap().is_equal(&set("{ [i] : 5 <= i < 10 }")).unwrap());
    assert!(a.union(&b).unwrap().coalesce().unwrap().is_equal(&set("{ [i] : 0 <= i < 20 }")).unwrap());
    assert!(a.subtract(&b).unwrap().is_equal(&set("{ [i] : 0 <= i < 5 }")).unwrap());
    assert!(a.gist(&set("{ [i] : i >= 0 }")).unwrap().is_equal(&set("{ [i] : i < 10 }")).unwrap());
    assert!(!a.is_disjoint(&b).unwrap() && !a.is_subset(&b).unwrap() && !a.is_empty().unwrap());
    assert!(a.subtract(&a).unwrap().is_empty().unwrap());
    assert!(a.complement().unwrap().is_disjoint(&a).unwrap());
    assert!(set("{ [i] : i = 0 or i = 9 }").simple_hull().unwrap().is_equal(&a).unwrap());
    assert!(a.lexmin().unwrap().is_equal(&set("{ [0] }").rename(&[("d0", "i")]).unwrap()).unwrap());
    assert!(a.fix("i", 3).unwrap().is_subset(&a.lexmax().unwrap().union(&a).unwrap()).unwrap());
    let redundant = set("{ [i] : 0 <= i < 10 and 2i <= 30 }").remove_redundancies().unwrap();
    assert_eq!(redundant.disjuncts().unwrap()[0].len(), 2);
}

#[test]
fn operands_match_by_name() {
    let a = set("{ S[i, j] : 0 <= i < 3 and 0 <= j < 5 }");
    let swapped = set("{ S[j, i] : 0 <= i < 3 and 0 <= j < 5 }");
    assert!(a.is_equal(&swapped).unwrap());
    assert!(a.is_equal(&swapped.rename(&[("i", "i'"), ("j", "j'")]).unwrap()).unwrap());
    let cycle = set("{ S[a, b, c] : a < b < c }");
    assert!(cycle.is_equal(&cycle.reorder(&["c", "a", "b"]).unwrap()).unwrap());
    assert_eq!(cycle.reorder(&["c", "a", "b"]).unwrap().dims(), ["c", "a", "b"]);
    for other in ["{ S[i, k] }", "{ S[i] }", "{ T[i, j] }", "{ [i, j] }"] {
        let error = a.intersect(&set(other)).unwrap_err();
        assert!(matches!(error, IslError::SpaceMismatch { .. }), "{error}");
    }
    // `i` is a parameter there: after matching `i'` with `i` the names would clash.
    let error = set("{ [i] }").intersect(&set("[i] -> { [i'] : i' = i }")).unwrap_err();
    assert!(matches!(error, IslError::DuplicateName { .. }), "{error}");
}

#[test]
fn names_can_be_any_text() {
    let space = SetSpace::new(&["ζ", "i o"], &["größe"]);
    let one = Set::from_constraints(&space, &range("ζ", Affine::name("größe"), Affine::constant(7))).unwrap();
    let point = one.fix("i o", -2).unwrap().fix("größe", 3).unwrap().lexmin_point().unwrap().unwrap();
    assert_eq!(point, [("größe".to_owned(), 3), ("ζ".to_owned(), 3), ("i o".to_owned(), -2)]);
}

#[test]
fn dimensions_can_be_added_removed_renamed_and_moved() {
    let a = set("[N] -> { S[i, j] : 0 <= i < N and i <= j < N }");
    assert!(a.project_out(&["j"]).unwrap().is_equal(&set("[N] -> { S[i] : 0 <= i < N }")).unwrap());
    assert!(a.project_out(&["i", "j"]).unwrap().params().unwrap() == ["N"]);
    let no_n = a.project_out(&["N", "i"]).unwrap();
    assert!(no_n.is_equal(&set("{ S[j] : j >= 0 }")).unwrap());
    assert_eq!(a.project_onto(&["j"]).unwrap().dims(), ["j"]);
    assert!(a.eliminate(&["i"]).unwrap().is_equal(&set("[N] -> { S[i, j] : 0 <= j < N }")).unwrap());
    let renamed = a.rename(&[("i", "j"), ("j", "i"), ("N", "M")]).unwrap();
    assert!(renamed.is_equal(&set("[M] -> { S[j, i] : 0 <= j < M and j <= i < M }")).unwrap());
    assert!(matches!(a.rename(&[("i", "j")]).unwrap_err(), IslError::DuplicateName { .. }));
    assert!(matches!(a.rename(&[("k", "l")]).unwrap_err(), IslError::UnknownName { .. }));
    let moved = set("[N, i] -> { S[j] : 0 <= i < N and i <= j < N }");
    let back = moved.params_to_dims(&["i", "N"]).unwrap();
    assert_eq!(
        (back.dims(), back.params().unwrap().len()),
        (["i", "N", "j"].map(String::from).as_slice(), 0)
    );
    assert!(a.params_to_dims(&["i"]).is_err());
    let grown = a.add_dims(&["k"]).unwrap().add_params(&["M", "N"]).unwrap();
    assert_eq!(grown.space().unwrap().params, ["N", "M"]);
    assert!(a.add_dims(&["N"]).is_err() && a.add_params(&["i"]).is_err());
    assert!(a.reorder(&["i"]).is_err() && a.reorder(&["i", "i"]).is_err());
    assert!(a.nonempty_params().unwrap().with_tuple(None).is_equal(&set("[N] -> { [] : N > 0 }")).unwrap());
    assert_eq!(a.with_tuple(Some("T")).to_string(), "[N] -> { T[i, j] : 0 <= i < N and i <= j < N }");
}

#[test]
fn disjuncts_round_trip_with_nested_divisions() {
    let texts = [
        "[N] -> { [i, j] : i mod 3 = 1 and j = floor((i + floor(N/2))/5) and 0 <= i < N }",
        "[N] -> { [i, j] : exists e : 2i = 3e + j and 0 <= j < 7 and e > N }",
        "{ [i, j] : i = 1 or j = 2 }",
        "{ [i, j] : false }",
        "{ [i, j] }",
    ];
    for text in texts {
        let original = set(text);
        let disjuncts = original.disjuncts().unwrap();
        let again = Set::from_disjuncts(&original.space().unwrap(), &disjuncts).unwrap();
        assert!(again.is_equal(&original).unwrap(), "{text}: {disjuncts:?}");
    }
}

#[test]
fn large_coefficients_survive() {
    let space = SetSpace::new(&["i"], &[] as &[&str]);
    let big = 1_i64 << 40;
    let one = Set::from_constraints(&space, &[Constraint::zero(Affine::name("i").offset(-big))]).unwrap();
    assert_eq!(one.lexmin_point().unwrap().unwrap(), [("i".to_owned(), big)]);
    assert_eq!(one.points(9).unwrap(), [vec![big]]);
    let error = Set::from_constraints(
        &space,
        &[ge(Affine { terms: vec![("i".into(), i64::MAX); 2], ..Affine::default() })],
    );
    assert!(matches!(error.unwrap_err(), IslError::Overflow { .. }));
    let zero = Affine::name("i").floor_div(0);
    let error = Set::from_constraints(&space, &[ge(zero)]).unwrap_err();
    assert_eq!(error, IslError::Denominator { denominator: 0 });
}

#[test]
fn syntax_errors_and_limits_are_errors() {
    assert!(matches!(Set::read_str("{ [i : }").unwrap_err(), IslError::Solver { .. }));
    assert!(Set::read_str("{ [a[i] -> b[j]] }").is_err());
    // The failed call leaves nothing behind.
    assert!(!set("{ [i] }").is_empty().unwrap());
    let hard =
        set("{ [a,b,c,d] : 7a + 11b + 13c + 17d = 5 and 3a > 2b and 5c < 4d and a + b + c + d > 100 }");
    let error = kingpost_isl::with_operation_limit(1, || hard.lexmin_point()).unwrap_err();
    assert!(matches!(error, IslError::Quota { limit: 1, .. }), "{error}");
    let asked = error.asked(|| "where `a` begins".to_owned()).to_string();
    assert_eq!(asked, "where `a` begins: the solver needed more than the 1 operations it was given");
    assert!(hard.sample_point().unwrap().is_some());
}

/// Operations inside an inner limit count towards the outer one, whichever is smaller; afterwards there is
/// no limit.
#[test]
fn limits_nest() {
    let hard =
        set("{ [a,b,c,d] : 7a + 11b + 13c + 17d = 5 and 3a > 2b and 5c < 4d and a + b + c + d > 100 }");
    let takes = |limit: u64| kingpost_isl::with_operation_limit(limit, || hard.lexmin_point()).is_ok();
    let (mut few, mut enough) = (1_u64, 1 << 30);
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if takes(middle) { enough = middle } else { few = middle }
    }
    let inside = |outer: u64, inner: u64, times: usize| {
        kingpost_isl::with_operation_limit(outer, || {
            (0..times)
                .try_for_each(|_| kingpost_isl::with_operation_limit(inner, || hard.lexmin_point()).map(drop))
        })
    };
    let slack = 1000; // reading the count off takes some operations
    assert!(inside(3 * enough + slack, enough + slack, 3).is_ok());
    let limit = |found: Result<(), IslError>| match found {
        Err(IslError::Quota { limit, .. }) => Some(limit),
        _ => None,
    };
    assert_eq!(limit(inside(2 * enough, enough + slack, 3)), Some(2 * enough));
    assert_eq!(limit(inside(9 * enough, enough / 2, 3)), Some(enough / 2));
    assert!(hard.lexmin_point().unwrap().is_some());
}

#[test]
fn overflowing_expressions_are_refused_where_they_are_used() {
    let space = SetSpace::new(&["i"], &[] as &[&str]);
    let marked = [
        Affine::constant(i64::MAX).offset(1).plus(1, "i"),
        Affine::constant(1).add_scaled(i64::MAX, &Affine::name("i").offset(2)),
        Affine::name("i").add_scaled(2, &Affine::default().plus(i64::MAX, "i")),
    ];
    for expr in marked {
        assert_eq!(expr.evaluate(&|_| Some(0)), None);
        let error = Set::from_constraints(&space, &[ge(expr)]).unwrap_err();
        assert!(matches!(error, IslError::Overflow { .. }), "{error}");
    }
    let extreme = ge(Affine::constant(i64::MIN).plus(i64::MIN, "i"));
    let one = Set::from_constraints(&space, &[extreme]).unwrap();
    assert!(one.is_equal(&set("{ [i] : i <= -1 }")).unwrap());
    let low = Affine::constant(i64::MIN).plus(1, "i").floor_div(2);
    assert!(matches!(Set::from_constraints(&space, &[ge(low)]).unwrap_err(), IslError::Overflow { .. }));
}

#[test]
fn expressions_print_as_they_read() {
    let inner = Affine::name("i").plus(-2, "N").offset(-3);
    let expr = Affine::constant(4).plus(-1, "i").add_scaled(-5, &inner.floor_div(2)).plus(0, "k");
    assert_eq!(expr.to_string(), "-i - 5*floor((i - 2*N - 3)/2) + 4");
    assert_eq!(Constraint::zero(Affine::default()).to_string(), "0 = 0");
    assert_eq!(ge(Affine::name("i").offset(1)).to_string(), "i + 1 >= 0");
}
