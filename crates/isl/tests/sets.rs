//! Sets: construction from constraints, algebra, names.
#![allow(clippy::unwrap_used, clippy::panic)]

use purlin_isl::{Affine, Constraint, IslError, Set, SetSpace};

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
