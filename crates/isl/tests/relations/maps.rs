//! Maps: construction, composition, orders, witnesses.
use kingpost_isl::{Affine, Constraint, IslError, Map, MapSpace, Set, SetSpace, lex_less};

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
    assert!(all.intersect_domain(&set("{ T[i, j] }")).is_err());
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
fn wrapping_flattens_both_sides() {
    let fan = map("[N] -> { S[i, j] -> T[o] : i <= o < j + N }");
    let flat = fan.wrap().unwrap();
    assert_eq!(flat.dims(), ["i", "j", "o"]);
    assert!(flat.is_equal(&set("[N] -> { [i, j, o] : i <= o < j + N }")).unwrap());
}

#[test]
fn orders_are_lexicographic() {
    let space = SetSpace::new(&["i", "j"], &["N"]);
    let less = lex_less(&space).unwrap();
    assert!(less.is_equal(&map("{ [i, j] -> [i', j'] : i < i' or (i = i' and j < j') }")).unwrap());
    let same = Map::identity(&space).unwrap();
    assert!(less.is_disjoint(&same).unwrap());
    assert_eq!(less.params().unwrap(), ["N"]);
}

#[test]
fn witness_pairs_are_the_smallest() {
    let clash = map("[N] -> { S[c, i] -> S[c', i'] : 0 <= c < c' < N and i' = i and 0 <= i < 3 }");
    let pair = clash.lexmin_pair_within(&[]).unwrap().unwrap();
    let names = |pairs: &[(&str, i64)]| -> Vec<(String, i64)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    };
    assert_eq!(pair.params, names(&[("N", 2)]));
    assert_eq!(pair.input, names(&[("c", 0), ("i", 0)]));
    assert_eq!(pair.output, names(&[("c'", 1), ("i'", 0)]));
    assert_eq!(clash.fix("N", 1).unwrap().lexmin_pair_within(&[]).unwrap(), None);
}
