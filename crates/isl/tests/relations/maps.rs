//! Maps: construction, composition, orders, closure, witnesses.
use purlin_isl::{Affine, Constraint, IslError, Map, MapSpace, Set, SetSpace, lex_less, lex_less_or_equal};

fn map(text: &str) -> Map {
    Map::read_str(text).unwrap()
}

fn set(text: &str) -> Set {
    Set::read_str(text).unwrap()
}

#[test]
fn constraints_build_the_map_they_say() {
    let space = MapSpace::new(&["i", "j"], &["a"], &["N"]).with_tuples("S", "A");
    let access = Constraint::zero(Affine::name("a").plus(-1, "i").plus(-2, "j").offset(-3));
    let bound = Constraint::non_negative(Affine::name("N").plus(-1, "a").offset(-1));
    let built = Map::from_constraints(&space, &[access.clone(), bound.clone()]).unwrap();
    assert!(built.is_equal(&map("[N] -> { S[i, j] -> A[a = i + 2j + 3] : i + 2j + 3 < N }")).unwrap());
    assert_eq!(built.space().unwrap(), space);
    let again = Map::from_disjuncts(&space, &built.disjuncts().unwrap()).unwrap();
    assert!(again.is_equal(&built).unwrap());
    let either = Map::from_disjuncts(&space, &[vec![access], vec![bound]]).unwrap();
    assert!(built.is_subset(&either).unwrap() && !either.is_subset(&built).unwrap());
    assert!(Map::from_disjuncts(&space, &[]).unwrap().is_equal(&Map::empty(&space).unwrap()).unwrap());
    assert!(built.is_subset(&Map::universe(&space).unwrap()).unwrap());
    let clash = MapSpace::new(&["i"], &["i"], &[] as &[&str]);
    assert!(matches!(Map::universe(&clash).unwrap_err(), IslError::DuplicateName { .. }));
}

#[test]
fn divisions_in_maps_round_trip() {
    let split = map("[N] -> { S[i] -> T[o, r] : o = floor(i/4) and r = i mod 4 and 0 <= i < N }");
    let again = Map::from_disjuncts(&split.space().unwrap(), &split.disjuncts().unwrap()).unwrap();
    assert!(again.is_equal(&split).unwrap());
    assert!(split.is_injective().unwrap() && split.is_single_valued().unwrap());
}

#[test]
fn sides_can_be_taken_turned_and_applied() {
    let shift = map("[N] -> { S[i] -> T[t = i + 1] : 0 <= i < N }");
    assert!(shift.domain().unwrap().is_equal(&set("[N] -> { S[i] : 0 <= i < N }")).unwrap());
    assert!(shift.range().unwrap().is_equal(&set("[N] -> { T[t] : 0 < t <= N }")).unwrap());
    let turned = shift.reverse().unwrap();
    assert_eq!((turned.in_tuple(), turned.out_tuple()), (Some("T"), Some("S")));
    assert_eq!((turned.in_dims()[0].as_str(), turned.out_dims()[0].as_str()), ("t", "i"));
    let image = shift.apply(&set("{ S[i] : i = 5 }")).unwrap();
    assert!(image.is_equal(&set("[N] -> { T[t] : t = 6 and N > 5 }")).unwrap());
    assert!(shift.apply(&set("{ T[t] : t = 5 }")).is_err());
    let twice = shift.apply_range(&map("{ T[t] -> S[i = 2t] }")).unwrap();
    assert_eq!(twice.out_dims(), ["i'"]);
    assert!(twice.is_equal(&map("[N] -> { S[i] -> S[i' = 2i + 2] : 0 <= i < N }")).unwrap());
    let domain = shift.apply_domain(&map("{ S[i] -> U[u = -i] }")).unwrap();
    assert!(domain.is_equal(&map("[N] -> { U[u] -> T[t = 1 - u] : 0 <= -u < N }")).unwrap());
    assert!(shift.deltas().unwrap().is_equal(&set("[N] -> { [i] : i = 1 and N > 0 }")).unwrap());
    let identity = Map::identity(&SetSpace::new(&["i"], &["N"]).with_tuple("S")).unwrap();
    assert!(identity.is_equal(&map("[N] -> { S[i] -> S[i' = i] }")).unwrap());
    assert!(set("{ S[i] : i > 2 }").identity().unwrap().is_subset(&identity).unwrap());
}

#[test]
fn composition_of_maps_on_one_space_primes_names() {
    let next = map("{ S[i, j] -> S[i' = i, j' = j + 1] }");
    let after = next.apply_range(&next).unwrap();
    assert_eq!(after.out_dims(), ["i'", "j'"]);
    assert!(after.is_equal(&map("{ S[i, j] -> S[i' = i, j' = j + 2] }")).unwrap());
    let permuted = map("{ S[j, i] -> S[j', i'] : i' = i + 10 and j' = j }");
    let both = next.apply_range(&permuted).unwrap();
    assert!(both.is_equal(&map("{ S[i, j] -> S[i' = i + 10, j' = j + 1] }")).unwrap(), "{both}");
}

#[test]
fn restrictions_match_by_name() {
    let all = map("{ S[i, j] -> T[a, b] }");
    let one = all.intersect_domain(&set("{ S[j, i] : i = 1 and j = 2 }")).unwrap();
    assert!(one.is_equal(&map("{ S[i, j] -> T[a, b] : i = 1 and j = 2 }")).unwrap());
    let one = all.intersect_range(&set("{ T[b', a'] : a' = 1 and b' = 2 }")).unwrap();
    assert!(one.is_equal(&map("{ S[i, j] -> T[a, b] : a = 1 and b = 2 }")).unwrap());
    let one = all.intersect_params(&set("[N] -> { [] : N > 2 }")).unwrap();
    assert_eq!(one.params().unwrap(), ["N"]);
    assert!(all.intersect_params(&set("[a] -> { [] : a > 2 }")).is_err());
    assert!(all.intersect_params(&set("{ [a] }")).is_err());
    assert!(all.intersect_domain(&set("{ T[i, j] }")).is_err());
    let bounded = map("{ S[i] -> T[a] : 0 <= i < a < 9 }");
    let gist = bounded.gist_domain(&set("{ S[i] : i >= 0 }")).unwrap();
    assert!(gist.is_equal(&map("{ S[i] -> T[a] : i < a < 9 }")).unwrap());
    assert!(bounded.subtract_domain(&set("{ S[i] : i >= 0 }")).unwrap().is_empty().unwrap());
    assert!(bounded.subtract_range(&set("{ T[a] : a < 9 }")).unwrap().is_empty().unwrap());
}

#[test]
fn algebra_follows_isl() {
    let (a, b) =
        (map("{ [i] -> [o] : 0 <= i < 10 and o = i }"), map("{ [i] -> [o] : 5 <= i < 20 and o = i }"));
    assert!(a.intersect(&b).unwrap().is_equal(&map("{ [i] -> [o = i] : 5 <= i < 10 }")).unwrap());
    let both = a.union(&b).unwrap().coalesce().unwrap();
    assert!(both.is_equal(&map("{ [i] -> [o = i] : 0 <= i < 20 }")).unwrap());
    assert_eq!(both.disjuncts().unwrap().len(), 1);
    assert!(a.subtract(&b).unwrap().is_disjoint(&b).unwrap());
    assert!(
        a.gist(&map("{ [i] -> [o] : o = i }"))
            .unwrap()
            .is_equal(&map("{ [i] -> [o] : 0 <= i < 10 }"))
            .unwrap()
    );
    let fan = map("{ [i] -> [o] : i <= o < i + 3 }");
    assert!(!fan.is_single_valued().unwrap() && !fan.is_injective().unwrap());
    assert!(fan.lexmin().unwrap().is_equal(&map("{ [i] -> [o = i] }")).unwrap());
    assert!(fan.lexmax().unwrap().is_equal(&map("{ [i] -> [o = i + 2] }")).unwrap());
    assert!(fan.fix("i", 4).unwrap().range().unwrap().is_equal(&set("{ [o] : 4 <= o < 7 }")).unwrap());
    let projected = fan.project_out(&["i"]).unwrap();
    assert_eq!((projected.in_dims().len(), projected.out_dims().len()), (0, 1));
    assert!(fan.eliminate(&["o"]).unwrap().is_equal(&map("{ [i] -> [o] }")).unwrap());
    assert!(fan.rename(&[("i", "o")]).is_err());
    assert_eq!(fan.rename(&[("i", "o"), ("o", "i")]).unwrap().in_dims(), ["o"]);
}

#[test]
fn wrapping_and_unwrapping_are_inverse() {
    let fan = map("[N] -> { S[i, j] -> T[o] : i <= o < j + N }");
    let flat = fan.wrap().unwrap();
    assert_eq!(flat.dims(), ["i", "j", "o"]);
    assert!(flat.to_map(&["i", "j"], Some("S"), Some("T")).unwrap().is_equal(&fan).unwrap());
    let other = flat.to_map(&["o", "i"], None, None).unwrap();
    assert!(other.is_equal(&map("[N] -> { [o, i] -> [j] : i <= o < j + N }")).unwrap());
    assert!(flat.to_map(&["N"], None, None).is_err());
}

#[test]
fn products_put_names_side_by_side() {
    let a = map("{ S[i] -> [a = i] }");
    let b = map("{ S[i] -> [a = i + 1] }");
    let both = a.flat_range_product(&b).unwrap();
    assert!(both.is_equal(&map("{ S[i] -> [a = i, a' = i + 1] }")).unwrap());
    let c = map("{ T[k] -> U[u = k] }");
    let product = a.flat_product(&c).unwrap();
    assert!(product.is_equal(&map("{ [i, k] -> [a = i, u = k] }")).unwrap());
    assert!(a.flat_product(&a).is_err());
}

#[test]
fn orders_are_lexicographic() {
    let space = SetSpace::new(&["i", "j"], &["N"]);
    let less = lex_less(&space).unwrap();
    assert!(less.is_equal(&map("{ [i, j] -> [i', j'] : i < i' or (i = i' and j < j') }")).unwrap());
    let same = Map::identity(&space).unwrap();
    assert!(lex_less_or_equal(&space).unwrap().is_equal(&less.union(&same).unwrap()).unwrap());
    assert_eq!(less.params().unwrap(), ["N"]);
}

#[test]
fn closures_say_whether_they_are_exact() {
    let step = map("[N] -> { S[i] -> S[i' = i + 2] : 0 <= i < N }");
    let (closure, exact) = step.transitive_closure().unwrap();
    assert!(exact);
    let expected = map("[N] -> { S[i] -> S[i'] : 0 <= i < i' < N + 2 and (i' - i) mod 2 = 0 }");
    assert!(closure.is_equal(&expected).unwrap(), "{closure}");
    assert!(map("{ S[i] -> T[j = i] }").transitive_closure().is_err());
    assert!(map("{ S[i] -> S[j, k] }").transitive_closure().is_err());
}

#[test]
fn witness_pairs_are_the_smallest() {
    let clash = map("[N] -> { S[c, i] -> S[c', i'] : 0 <= c < c' < N and i' = i and 0 <= i < 3 }");
    let pair = clash.lexmin_pair().unwrap().unwrap();
    let names = |pairs: &[(&str, i64)]| -> Vec<(String, i64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    };
    assert_eq!(pair.params, names(&[("N", 2)]));
    assert_eq!(pair.input, names(&[("c", 0), ("i", 0)]));
    assert_eq!(pair.output, names(&[("c'", 1), ("i'", 0)]));
    assert!(clash.sample_pair().unwrap().is_some());
    assert_eq!(clash.fix("N", 1).unwrap().lexmin_pair().unwrap(), None);
    assert!(clash.nonempty_params().unwrap().is_equal(&set("[N] -> { [] : N > 1 }")).unwrap());
}
