//! What is checked before a launch, and in which words it is refused.

use kingpost_analysis::Analysis;
use kingpost_interp::{InterpError, LaunchReport, Memory, Value, interpret};
use kingpost_ir::Kernel;
use kingpost_ir::text::parse;
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use proptest::prelude::*;

fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)))
}

fn refusal(text: &str, memory: &Memory) -> String {
    Analysis::of(&kernel(text)).check_launch(memory).unwrap_err().to_string()
}

fn report(text: &str, memory: &Memory) -> LaunchReport {
    Analysis::of(&kernel(text)).check_launch(memory).unwrap()
}

const SCATTER: &str = "kernel scatter
param n: i32
param m: i32
arg dofs: i32[n, 3] in
arg x: f64[n, 3] in
arg y: f64[m] inout
assume n >= 1
for cell in 0..n
  for j in 0..3
    scatter: y[dofs[cell, j]] += x[cell, j]
";

fn scatter(dofs: Vec<i32>) -> Memory {
    Memory::new().param("n", 2).param("m", 4).value("dofs", dofs)
}

#[test]
fn entries_that_clash_are_named() {
    let injective = SCATTER.replace("assume n >= 1", "assume injective(dofs)");
    assert_eq!(
        refusal(&injective, &scatter(vec![0, 3, 1, 2, 5, 3])),
        "`dofs[0, 1]` = `dofs[1, 2]` = 3, needed an injective `dofs`; correct it, or make the updates through it \
         atomic instead of assuming that"
    );
    let six = scatter(vec![0, 3, 1, 2, 5, 4]).param("m", 6);
    assert_eq!(report(&injective, &six).injective, ["dofs"]);
    // values that lie far apart are compared all the same
    let far = scatter(vec![0, 3, 1, 2_000_000_000, 5, 0]).param("m", 2_000_000_001);
    assert!(refusal(&injective, &far).starts_with("`dofs[0, 0]` = `dofs[1, 2]` = 0, needed"));
}

#[test]
fn tables_can_be_injective_and_temporaries_are_not_looked_at() {
    let text = "kernel k
table order: i32[3] global
temp own: i32[3] private
assume injective(order)
assume injective(own)

table order = [2, 0, 2]
";
    assert!(refusal(text, &Memory::new()).starts_with("`order[0]` = `order[2]` = 2, needed"));
    let text = text.replace("[2, 0, 2]", "[2, 0, 1]");
    let found = report(&text, &Memory::new());
    assert_eq!((found.injective, found.unchecked), (vec!["order".to_owned()], vec!["own".to_owned()]));
}

#[test]
fn arrays_ascend_as_assumed() {
    let text = "kernel k
param n: i32
arg starts: i32[n] in
table order: i32[3] global
temp own: i32[3] private
assume ascending(starts)
assume ascending(order)
assume ascending(own)

table order = [0, 2, 2]
";
    let starts = |values: Vec<i32>| Memory::new().param("n", values.len() as i64).value("starts", values);
    assert!(refusal(text, &starts(vec![0, 5, 4])).starts_with("`starts[2]` = 4 after 5, needed entries"));
    let falls = text.replace("[0, 2, 2]", "[0, 2, 1]");
    assert!(refusal(&falls, &starts(vec![])).starts_with("`order[2]` = 1 after 2, needed entries"));
    let found = report(text, &starts(vec![3]));
    assert_eq!(found.ascending, ["starts", "order"]);
    assert_eq!(found.unchecked, ["own"]);
    assert!(found.to_string().contains("; ascending: `starts`, `order`; filled by the kernel"), "{found}");
}

#[test]
fn entries_are_outside_of_ranges_as_assumed() {
    let text = "kernel k
param n: i32
arg base: i32 in
arg map: i32[n, 3] in
arg starts: i32[n] in
arg made: i32[3] out
assume outside(map, base, base + 2*n, 1)
assume outside(starts, base - 1, base + 2*n)
assume outside(made, 0, 1)
";
    assert_eq!(kingpost_ir::text::parse(text).unwrap().to_string().matches("outside(").count(), 3);
    let given = |map: [i32; 6], starts: [i32; 2]| {
        let memory = Memory::new().param("n", 2).value("base", vec![5_i32]);
        memory.value("map", map.to_vec()).value("starts", starts.to_vec())
    };
    let found = report(text, &given([4, 5, 6, 9, 7, 8], [3, 9]));
    assert_eq!(
        (found.outside, found.unchecked),
        (vec!["map".into(), "starts".into()], vec!["made".to_owned()])
    );
    for (map, starts, message) in [
        ([8, 5, 6, 9, 7, 8], [3, 9], "`map[0, 0]` = 8, needed a number outside 5..9"),
        // the rows share a number
        ([4, 5, 6, 9, 6, 7], [3, 9], "`map[1, 1]` = 6, needed 7"),
        ([4, 5, 6, 9, 7, 8], [3, 4], "`starts[1]` = 4, needed a number outside 4..9"),
    ] {
        let refused = refusal(text, &given(map, starts));
        assert!(refused.starts_with(message), "{refused}");
    }
}

#[test]
fn assumptions_on_parameters_hold() {
    assert_eq!(
        refusal(SCATTER, &Memory::new().param("n", 0).param("m", 4).value("dofs", Vec::<i32>::new())),
        "the parameters break `n >= 1`; choose others"
    );
}

#[test]
fn map_that_leads_outside() {
    assert_eq!(
        refusal(SCATTER, &scatter(vec![0, 1, 2, 3, 4, 0])),
        "`scatter[cell=1, j=1]` accesses `y[4]` as `dofs[1, 1]` is 4, needed an index inside shape [4]"
    );
    assert_eq!(
        refusal(SCATTER, &scatter(vec![0, 1, -7, 3, 2, 0])),
        "`scatter[cell=0, j=2]` accesses `y[-7]` as `dofs[0, 2]` is -7, needed an index inside shape [4]"
    );
}

#[test]
fn one_pass_over_a_map_is_enough() {
    let found = report(SCATTER, &scatter(vec![0, 1, 2, 3, 2, 0]));
    assert_eq!((found.proved, found.ranged, found.followed), (2, 1, 0));
    assert_eq!(
        found.to_string(),
        "3 accesses inside their arrays (2 for all parameters, 1 by the range of the maps, 0 instance by \
         instance); 1 assumptions on parameters hold"
    );
}

#[test]
fn blocks_of_map_entries() {
    let text = "kernel gather
param n: i32
arg map: i32[n] in
arg order: i64[n] in
arg x: f64[3*n] in
arg y: f64[n] inout
for c in 0..n
  for d in 0..3
    s: y[c] += x[3*map[order[c]] + d]
";
    let memory =
        |map: Vec<i32>| Memory::new().param("n", 3).value("map", map).value("order", vec![1_i64, 2, 0]);
    assert_eq!(report(text, &memory(vec![0, 2, 1])).ranged, 2);
    assert_eq!(
        refusal(text, &memory(vec![0, 2, 3])),
        "`s[c=1, d=0]` accesses `x[9]` as `map[2]` is 3, needed an index inside shape [9]"
    );
}

/// Entries beyond the array are fine where nothing follows them.
#[test]
fn what_does_not_happen_is_not_refused() {
    let text = "kernel gather
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
for c in 0..n
  s: y[c] = select(map[c] < n, x[map[c]], 0.0)
  t: y[c] += x[map[c]] if map[c] < n
";
    let memory = Memory::new().param("n", 3).value("map", vec![9, 2, 0]);
    let found = report(text, &memory);
    assert_eq!((found.ranged, found.followed), (0, 2));
}

/// Only what decides the bounds runs, here the loads of the row pointers.
#[test]
fn bounds_that_are_read_from_memory() {
    let text = "kernel csr
param n: i32
param nnz: i32
arg row: i32[n + 1] in
arg col: i32[nnz] in
arg a: f64[nnz] in
arg x: f64[n] in
arg y: f64[n] out
temp lo: i32 private
temp hi: i32 private
temp t: f64 private
for i in 0..n
  first: lo = row[i]
  last: hi = row[i + 1]
  row_sum: y[i] = sum(k in lo..hi: a[k]*x[col[k]])
";
    let memory = |row: Vec<i32>, col: Vec<i32>| {
        Memory::new().param("n", 2).param("nnz", 3).value("row", row).value("col", col)
    };
    let found = report(text, &memory(vec![0, 2, 3], vec![0, 1, 0]));
    assert_eq!((found.proved, found.ranged, found.followed), (3, 0, 3));
    assert_eq!(
        refusal(text, &memory(vec![0, 2, 4], vec![0, 1, 0])),
        "`row_sum[i=1, k=3]` accesses `a[3]`, needed an index inside shape [3]"
    );
    assert_eq!(
        refusal(text, &memory(vec![0, 2, 3], vec![0, 1, 2])),
        "`row_sum[i=1, k=2]` accesses `x[2]` as `col[2]` is 2, needed an index inside shape [2]"
    );
}

/// A map that the kernel fills itself: the instructions that fill it run.
#[test]
fn maps_that_the_kernel_fills() {
    let text = "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] out
temp map: i64[n] global
for i in 0..n
  fill: map[i] = 2*i
for j in 0..n
  s: y[j] = x[map[j]]
";
    assert_eq!(
        refusal(text, &Memory::new().param("n", 3)),
        "`s[j=2]` accesses `x[4]` as `map[2]` is 4, needed an index inside shape [3]"
    );
    assert_eq!(report(text, &Memory::new().param("n", 1)).followed, 1);
    // what is given for it is overwritten
    let given = text.replace("temp map: i64[n] global", "arg map: i32[n] inout");
    assert_eq!(
        refusal(&given, &Memory::new().param("n", 3).value("map", vec![0, 0, 0])),
        "`s[j=2]` accesses `x[4]` as `map[2]` is 4, needed an index inside shape [3]"
    );
}

#[test]
fn accesses_in_indices_and_conditions() {
    let text = "kernel k
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
for c in 0..n
";
    let memory = |map: Vec<i32>| Memory::new().param("n", 3).value("map", map).value("x", vec![1.0; 3]);
    assert_eq!(
        refusal(&format!("{text}  s: y[map[2*c]] += 1.0\n"), &memory(vec![0, 1, 2])),
        "`s[c=2]` accesses `map[4]`, needed an index inside shape [3]"
    );
    assert_eq!(
        refusal(&format!("{text}  s: y[c] = 1.0 if x[map[c]] > 0.0\n"), &memory(vec![0, 9, 2])),
        "`s[c=1]` accesses `x[9]` as `map[1]` is 9, needed an index inside shape [3]"
    );
}

#[test]
fn every_piece_of_a_loop_counts() {
    let text = "kernel k\narg y: f64[5] inout\nfor i where (i >= 0 and i < 1) or (i >= 5 and i < 6)\n  s: y[AT] = 1.0\n";
    let found = |at: &str| refusal(&text.replace("AT", at), &Memory::new());
    assert_eq!(found("i"), "`s[i=5]` accesses `y[5]`, needed an index inside shape [5]");
    assert_eq!(found("5 - i"), "`s[i=0]` accesses `y[5]`, needed an index inside shape [5]");
}

/// Parameters for which an affine access leaves its array are refused, others are not.
#[test]
fn affine_accesses_at_the_given_parameters() {
    let text = "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = a[n - 4]
";
    assert_eq!(report(text, &Memory::new().param("n", 4)).ranged, 1);
    assert_eq!(
        refusal(text, &Memory::new().param("n", 3)),
        "`s[i=0]` accesses `a[-1]`, needed an index inside shape [3]"
    );
    assert_eq!(report(text, &Memory::new().param("n", 0)).followed, 1);
}

/// Whatever the interpreter finds out of bounds is found without computing, and nothing else.
#[test]
fn agrees_with_the_interpreter_on_random_maps() {
    let mut random = kingpost_sample::Random::new();
    for _ in 0..200 {
        let dofs: Vec<i32> = (0..6).map(|_| random.int(-1, 6) as i32).collect();
        let memory = Memory::new().param("n", 2).param("m", 5).value("dofs", dofs);
        let found = Analysis::of(&kernel(SCATTER)).check_launch(&memory).map(|_| ());
        let mut full = memory.clone().value("x", vec![1.0; 6]).value("y", vec![0.0; 5]);
        let expected = interpret(&kernel(SCATTER), &mut full).map(|_| ());
        assert_eq!(found, expected, "seed {}", random.seed);
    }
}

/// The memory with one entry of one integer array replaced.
fn with_another_entry(memory: &Memory, pick: prop::sample::Index, entry: i32) -> Memory {
    let mut changed = memory.clone();
    let maps: Vec<(&String, &Vec<i32>)> = memory
        .values()
        .iter()
        .filter_map(|(name, value)| match value {
            Value::I32(v) if !v.is_empty() => Some((name, v)),
            _ => None,
        })
        .collect();
    if !maps.is_empty() {
        let (name, values) = maps[pick.index(maps.len())];
        let mut values = values.clone();
        let at = pick.index(values.len());
        values[at] = entry;
        changed.set(name.clone(), values);
    }
    changed
}

proptest! {
    #![proptest_config(config(400))]

    /// Maps as they should be, and with an entry that may lead anywhere: what the interpreter runs
    /// is not refused, and what it finds out of bounds or twice is.
    #[test]
    fn agrees_with_the_interpreter_on_random_kernels(
        sample in arbitrary_kernel(SampleConfig::default()),
        pick in any::<prop::sample::Index>(),
        entry in -2..9_i32,
    ) {
        prop_assert!(Analysis::of(&sample.kernel).check_launch(&sample.memory).is_ok());
        let memory = with_another_entry(&sample.memory, pick, entry);
        let found = Analysis::of(&sample.kernel).check_launch(&memory).map(|_| ());
        match interpret(&sample.kernel, &mut memory.clone()) {
            Ok(_) => prop_assert_eq!(found, Ok(())),
            Err(InterpError::OutOfBounds { .. }) => {
                prop_assert!(matches!(found, Err(InterpError::OutOfBounds { .. })), "{:?}", found);
            }
            Err(error @ InterpError::NotInjective { .. }) => prop_assert_eq!(found, Err(error)),
            Err(_) => {} // what is computed went wrong first
        }
    }
}

const LISTED: &str = "kernel listed
param n: i32
param m: i32
arg map: i32[n, 2] in
arg map_items: i32[floor_div(n + 1, 2), 3] in
arg map_counts: i32[floor_div(n + 1, 2)] in
arg map_numbers: i32[2, n] in
arg y: f64[m] inout
assume lists(map, map_items, map_counts, map_numbers, 2)
for b in 0..floor_div(n + 1, 2)
  for k in 0..3
    s: y[map_items[b, k]] += 1.0
";

/// Rows (0, 4), (4, 2) and (3, 3): two blocks.
fn listed(items: [i32; 6], counts: [i32; 2], numbers: [i32; 6]) -> Memory {
    let memory = Memory::new().param("n", 3).param("m", 5).value("map", vec![0, 4, 4, 2, 3, 3]);
    let memory = memory.value("map_items", items.to_vec()).value("map_counts", counts.to_vec());
    memory.value("map_numbers", numbers.to_vec())
}

#[test]
fn wrong_lists_are_refused_with_the_entry() {
    let (items, counts, numbers) = ([0, 2, 4, 3, 3, 3], [3, 1], [0, 2, 0, 2, 1, 0]);
    assert_eq!(report(LISTED, &listed(items, counts, numbers)).listed, ["map"]);
    let wrong = |items, counts, numbers| {
        let refused = refusal(LISTED, &listed(items, counts, numbers));
        refused
            .split_once(", as `lists(map, map_items, map_counts, map_numbers, 2)` says")
            .unwrap()
            .0
            .to_owned()
    };
    // an element that is not the map's
    assert_eq!(wrong([0, 1, 4, 3, 3, 3], counts, numbers), "`map_items[0, 1]` = 1, needed 2");
    // a number that exchanges two elements, one of another block, one after the list
    assert_eq!(wrong(items, counts, [0, 1, 0, 2, 1, 0]), "`map_items[0, 1]` = 2, needed 4");
    assert_eq!(
        wrong(items, counts, [0, 2, 1, 2, 1, 0]),
        "`map_numbers[0, 2]` = 1, needed one of the 1 of its block"
    );
    assert_eq!(wrong(items, [2, 1], numbers), "`map_numbers[1, 0]` = 2, needed one of the 2 of its block");
    // a length that its list has no room for
    assert_eq!(wrong(items, [4, 1], numbers), "`map_counts[0]` = 4, needed a length up to 3");
    // the interpreter asks the same
    let mut memory = listed([0, 1, 4, 3, 3, 3], counts, numbers).value("y", vec![0.0; 5]);
    assert!(matches!(interpret(&kernel(LISTED), &mut memory), Err(InterpError::NotListed { .. })));
}

const PLACED: &str = "
kernel k
param n: i32
param m: i32
arg map: i32[n, 2] in
arg map_items: i32[floor_div(n + 1, 2), 3] in
arg map_counts: i32[floor_div(n + 1, 2)] in
arg map_numbers: i32[2, n] in
arg starts: i32[floor_div(n + 1, 2), 4] in
arg places: i32[floor_div(n + 1, 2), 4] in
arg y: f64[m] inout
assume lists(map, map_items, map_counts, map_numbers, starts, places, 2)
for b in 0..floor_div(n + 1, 2)
  for k in 0..3
    s: y[map_items[b, k]] += 1.0
";

#[test]
fn wrong_places_are_refused_with_the_entry() {
    let with = |starts: [i32; 8], places: [i32; 8]| {
        let memory = listed([0, 2, 4, 3, 3, 3], [3, 1], [0, 2, 0, 2, 1, 0]);
        memory.value("starts", starts.to_vec()).value("places", places.to_vec())
    };
    let (starts, places) = ([0, 1, 2, 4, 0, 2, 2, 2], [0, 3, 1, 2, 0, 2, 7, 7]);
    assert_eq!(report(PLACED, &with(starts, places)).listed, ["map"]);
    let wrong = |starts, places| {
        let refused = refusal(PLACED, &with(starts, places));
        refused.split_once(", as `lists(").unwrap().0.to_owned()
    };
    // an element that is there twice, one that has another number, one of no row, and no element
    assert_eq!(
        wrong(starts, [0, 3, 1, 1, 0, 2, 7, 7]),
        "`places[0, 3]` = 1, needed the next place with number 2"
    );
    assert_eq!(
        wrong(starts, [1, 3, 0, 2, 0, 2, 7, 7]),
        "`places[0, 0]` = 1, needed the next place with number 0"
    );
    assert_eq!(
        wrong(starts, [0, 3, 1, 2, 0, 3, 7, 7]),
        "`places[1, 1]` = 3, needed the next place with number 0"
    );
    assert_eq!(
        wrong(starts, [0, 3, 1, 2, 0, -2, 7, 7]),
        "`places[1, 1]` = -2, needed the next place with number 0"
    );
    // an element that is missing, one that two numbers share, a start outside
    assert_eq!(
        wrong([0, 1, 2, 3, 0, 2, 2, 2], places),
        "`starts[0, 3]` = 3, needed 4, the elements of the block"
    );
    assert_eq!(
        wrong([1, 1, 2, 4, 0, 2, 2, 2], places),
        "`starts[0, 0]` = 1, needed 0, and a next one from there to 4"
    );
    assert_eq!(
        wrong([0, 1, 2, 5, 0, 2, 2, 2], places),
        "`starts[0, 2]` = 2, needed 2, and a next one from there to 4"
    );
    // the interpreter asks the same
    let mut memory = with([0, 1, 2, 3, 0, 2, 2, 2], places).value("y", vec![0.0; 5]);
    assert!(matches!(interpret(&kernel(PLACED), &mut memory), Err(InterpError::NotListed { .. })));
}

const EXCLUSIVE: &str = "
kernel k
param n: i32
param m: i32
arg map: i32[n, 2] in
arg map_items: i32[floor_div(n + 1, 2), 3] in
arg map_counts: i32[floor_div(n + 1, 2)] in
arg map_numbers: i32[2, n] in
arg alone: i32[floor_div(n + 1, 2)] in
arg y: f64[m] inout
assume lists(map, map_items, map_counts, map_numbers, 2, alone, 2)
for b in 0..floor_div(n + 1, 2)
  for k in 0..2
    s: y[map_items[b, k]] = 1.0 if k < alone[b]
";

/// Rows (0, 4), (4, 2) and (2, 3): blocks with 0 and 4, and 3, alone, and 2 together.
#[test]
fn items_that_are_not_exclusive_are_refused() {
    let with = |items: [i32; 6], alone: [i32; 2]| {
        let memory = listed(items, [3, 3], [0, 1, 2, 1, 2, 0]).value("map", vec![0, 4, 4, 2, 2, 3]);
        memory.value("alone", alone.to_vec())
    };
    // what stands after the exclusive ones of a block before the others means nothing
    assert_eq!(report(EXCLUSIVE, &with([0, 4, 2, 3, 3, 2], [2, 1])).listed, ["map"]);
    assert_eq!(report(EXCLUSIVE, &with([0, 4, 2, 3, 0, 2], [2, 1])).listed, ["map"]);
    let wrong = |items, alone| {
        let refused = refusal(EXCLUSIVE, &with(items, alone));
        refused.split_once(", as `lists(").unwrap().0.to_owned()
    };
    let once = "needed an item that is there once in all lists";
    // one that another block has, one that is there twice, and more than there is room for
    assert_eq!(wrong([0, 4, 2, 3, 2, 2], [2, 2]), format!("`map_items[1, 1]` = 2, {once}"));
    assert_eq!(wrong([0, 4, 2, 3, 3, 2], [2, 2]), format!("`map_items[1, 0]` = 3, {once}"));
    assert_eq!(wrong([0, 4, 2, 3, 3, 2], [3, 1]), "`alone[0]` = 3, needed a number up to 2");
}
