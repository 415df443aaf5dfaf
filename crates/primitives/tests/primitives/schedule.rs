//! Schedules by handle and as text.

#![allow(clippy::unwrap_used, clippy::panic)]

use insta::assert_snapshot;
use kingpost_ir::text::parse;
use kingpost_ir::{AddressSpace, AxisTag, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{JoinInames, MapInames, PrefetchArray, SplitIname, Tail};
use kingpost_primitives::steps;
use kingpost_primitives::{Schedule, schedule};

const MATMUL: &str = include_str!("../../../../examples/matmul.kingpost");
const RECIPE: &str = include_str!("../../../../examples/matmul_recipe.json");

fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)))
}

fn scale() -> Kernel {
    kernel("kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n")
}

/// The errors of a text that is no schedule.
fn errors(text: &str) -> String {
    steps().script(text).unwrap_err().render(text)
}

#[test]
fn handles_are_what_the_step_made() {
    let mut s = Schedule::of(&scale());
    let [outer, inner] = s.split("i", 4).unwrap();
    assert_eq!((outer.name(), inner.name()), ("i_o", "i_i"));
    // the inner loop takes the name that the split loop had
    let again =
        SplitIname { outer: Some("b".into()), inner: Some("i_o".into()), ..SplitIname::new(&outer, 8) };
    let made = s.apply(again).unwrap();
    assert_eq!(made.loops.iter().map(|l| l.name()).collect::<Vec<_>>(), ["b", "i_o"]);
    let joined = s.apply(JoinInames { joined: Some("b".into()), ..JoinInames::new("b", "i_o") }).unwrap();
    assert_eq!(joined.loops.iter().map(|l| l.name()).collect::<Vec<_>>(), ["b"]);
    let peeled = s.apply(SplitIname::new("i_i", 3).with_tail(Tail::Guard)).unwrap();
    assert_eq!(peeled.names().collect::<Vec<_>>(), ["i_i_o", "i_i_i"]);
    let mapped = s.apply(MapInames::new(["i_i_o", "i_i_i"], [vec![1, 0], vec![0, 1]])).unwrap();
    assert_eq!(mapped.names().collect::<Vec<_>>(), ["i_i_o", "i_i_i"]);
}

/// A program whose arguments have the names that its steps would give.
const TAKEN: &str = "kernel k
param n: i32
arg block: f64[n] in
arg staged: f64[n] in
arg set_staged_1: f64[n] in
arg tile_0: f64[n] in
arg fetch_block_tile: f64[n] in
arg x: f64[n] in
arg y: f64[n] inout
temp pair: f64[2] private
arg pair_1: f64[n] in

for block_1 in 0..n
  a: pair[0] = block[block_1]
  b: pair[1] = pair_1[block_1] + staged[block_1] + set_staged_1[block_1]
  s: y[block_1] += pair[0]*pair[1] + x[block_1] + tile_0[block_1] + fetch_block_tile[block_1]
";

#[test]
fn names_give_way_to_those_there_are() {
    let kernel = kernel(TAKEN);
    let mut s = Schedule::of(&kernel);
    let (staged, set) = s.stage("s", "staged").unwrap();
    // `set_staged_1` is an argument
    assert_eq!((staged.name(), set.name()), ("staged_2", "set_staged_2"));
    let parts = s.separate("pair", 0).unwrap();
    assert_eq!(parts.iter().map(|p| p.name()).collect::<Vec<_>>(), ["pair_2_0", "pair_2_1"]);
    let [outer, inner] = s.split_as("block_1", 8, ["block", "block"]).unwrap();
    assert_eq!((outer.name(), inner.name()), ("block_2", "block_3"));
    let fetch = PrefetchArray::new("x", &outer, AddressSpace::Private);
    let (tile, loops) = s.prefetch_as(fetch, "tile").unwrap();
    // a tile `tile` would have a loop `tile_0`
    assert_eq!((tile.name(), loops[0].name()), ("tile_1", "tile_1_0"));
    let fetch = PrefetchArray::new("block", &outer, AddressSpace::Private);
    assert_eq!(s.prefetch_as(fetch, "block_tile").unwrap().0.name(), "block_tile_1");
    assert_eq!(s.recipe().apply(&kernel).unwrap(), *s.kernel());
    s.tag_all(&[], AxisTag::Unrolled).unwrap();
    let error = s.distribute_one(&inner, "a", "part").unwrap_err().to_string();
    assert_eq!(
        error,
        "distribute `block_3` before `a` into `part`: `a` belongs to the first part of `block_3`, which stays; name a \
         later one [distribute_loop.later_part]"
    );
}

#[test]
fn a_refused_step_leaves_the_schedule_as_it_was() {
    let mut s = Schedule::of(&scale());
    let [_, inner] = s.split("i", 4).unwrap();
    let before = s.clone();
    let error = s.tag("i", AxisTag::Local(0)).unwrap_err().to_string();
    assert_eq!(error, "tag `i` l.0: there is no iname `i`; there is `i_i`, `i_o`");
    assert_eq!(s, before);
    s.tag(&inner, AxisTag::Local(0)).unwrap();
    assert_eq!(s.recipe().apply(&scale()).unwrap(), *s.kernel());
}

#[test]
fn nests_are_reordered_by_naming_the_order() {
    let text = "kernel nest
param n: i32
arg y: f64[n, n, n] inout

for i in 0..n
  for j in 0..n
    for k in 0..n
      s: y[i, j, k] = 2.0*y[i, j, k]
";
    let mut s = Schedule::of(&kernel(text));
    s.reorder(["k", "i", "j"]).unwrap();
    let order: Vec<_> =
        s.kernel().to_string().lines().filter(|l| l.contains("for ")).map(str::to_owned).collect();
    assert_eq!(order, ["for k in 0..n", "  for i in 0..n", "    for j in 0..n"]);
    s.reorder(["i", "k"]).unwrap();
    let before = s.clone();
    let error = s.reorder(["i", "i"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "reorder `i` `i`: `i` `i` are not a nest of loops, one directly inside the other; name each loop of such a \
         nest once [nest]"
    );
    assert_eq!(s, before);
}

/// The tiled matrix product by handles is the committed recipe's.
#[test]
fn the_matrix_product_by_handles() {
    let tiles = |s: &mut Schedule, iname: &str| {
        let outer = Some(format!("{iname}_tile"));
        let made =
            s.apply(SplitIname { outer, inner: Some(iname.into()), ..SplitIname::new(iname, 32) }).unwrap();
        <[_; 2]>::try_from(made.loops).unwrap()
    };
    let mut s = Schedule::of(&kernel(MATMUL));
    let acc = s.realise("k", "acc").unwrap();
    let [i_tile, i] = tiles(&mut s, "i");
    let [j_tile, j] = tiles(&mut s, "j");
    let [k_tile, _] = tiles(&mut s, "k");
    s.reorder([&i_tile, &j_tile, &i, &j]).unwrap();
    s.expand(&acc, [&i, &j]).unwrap();
    s.tag(&i_tile, AxisTag::Group(1)).unwrap();
    s.tag(&j_tile, AxisTag::Group(0)).unwrap();
    s.tag(&i, AxisTag::Local(1)).unwrap();
    s.tag(&j, AxisTag::Local(0)).unwrap();
    let columns = s.distribute(&j, [k_tile.name(), "store"]).unwrap();
    let rows = s.distribute(&i, [&columns[0], &columns[1]]).unwrap();
    s.reorder([&k_tile, &rows[0], &columns[0]]).unwrap();
    for factor in ["a", "b"] {
        let copy = PrefetchArray::new(factor, &k_tile, AddressSpace::Local).by_work_items([32, 32]);
        assert_eq!(s.apply(copy).unwrap().arrays[0].name(), format!("{factor}_tile"));
    }
    let expected = steps().recipe(RECIPE).unwrap().apply(&kernel(MATMUL)).unwrap();
    // the recipe gives the distributed loops names
    for (handle, name) in
        [(&columns[0], "j_sum"), (&columns[1], "j_store"), (&rows[0], "i_sum"), (&rows[1], "i_store")]
    {
        s.rename_loop(handle, name).unwrap();
    }
    assert_eq!(s.kernel().to_string(), expected.to_string());
}

#[test]
fn the_text_of_a_recipe_reads_back() {
    let recipe = steps().recipe(RECIPE).unwrap();
    let text = schedule::print(&recipe);
    assert_snapshot!(text, @"
realise_reduction(k, accumulator: acc)
split_iname(i, factor: 32, outer: i_tile, inner: i)
split_iname(j, factor: 32, outer: j_tile, inner: j)
split_iname(k, factor: 32, outer: k_tile, inner: k)
interchange_inames(i, inner: j_tile)
expand_array(acc, inames: [i, j])
tag(i_tile, tag: g.1)
tag(j_tile, tag: g.0)
tag(i, tag: l.1)
tag(j, tag: l.0)
distribute_loop(j, before: [k_tile, store], names: [j_sum, j_store])
distribute_loop(i, before: [j_sum, j_store], names: [i_sum, i_store])
interchange_inames(j_sum, inner: k_tile)
interchange_inames(i_sum, inner: k_tile)
prefetch_array(a, at: k_tile, space: local, work_items: [32, 32])
prefetch_array(b, at: k_tile, space: local, work_items: [32, 32])
");
    let applied = steps().script(&text).unwrap().apply(&kernel(MATMUL)).unwrap();
    assert_eq!(*applied.recipe(), recipe);
    assert_eq!(*applied.kernel(), recipe.apply(&kernel(MATMUL)).unwrap());
}

#[test]
fn handles_stand_for_what_was_made() {
    let text = "# blocks of a group
let block, item = split_iname(i, 128)  # two loops
tag_iname(block, g.0)
let _, lane = split_iname(
  item, 4,
  inner: lane,
)
unroll_iname(lane)
";
    let applied = steps().script(text).unwrap().apply(&scale()).unwrap();
    assert_snapshot!(schedule::print(applied.recipe()), @"
split_iname(i, factor: 128)
tag(i_o, tag: g.0)
split_iname(i_i, factor: 4, inner: lane)
tag(lane, tag: unroll)
");
}

#[test]
fn what_is_no_schedule() {
    let all: Vec<String> = [
        "split_inam(i, 4)\ntag_iname(i_o, tg: g.0)",
        "split_iname(i 4)",
        "split_iname i, 4",
        "let a b = split_iname(i, 4)",
        "split_iname(i, 4, o, i, guard, 7)",
        "split_iname(iname: i, 4)",
        "split_iname(i, iname: j, factor: 4)",
        "split_iname(i, four)",
        "split_iname(i)",
        "fix_parameter(n, \"4",
        "split_iname(i, 4) tag_iname(i_o, g.0)",
        "remove_unused_vars(x)",
        "assume(map)",
        "split_iname(i, 4",
        "= 4",
        "é",
    ]
    .into_iter()
    .map(errors)
    .collect();
    assert_snapshot!(all.join("\n"), @r#"
error: there is no step `split_inam`
 --> 1:1
1 | split_inam(i, 4)
  | ^^^^^^^^^^
  = help: did you mean `split_iname`?
error: `tag_iname` has no argument `tg`
 --> 2:16
2 | tag_iname(i_o, tg: g.0)
  |                ^^
  = help: its arguments are `iname`, `tag`

error: found `4`, needed `,` or `)`
 --> 1:15
1 | split_iname(i 4)
  |               ^

error: found `i`, needed `(` and the arguments of the step
 --> 1:13
1 | split_iname i, 4
  |             ^

error: found `b`, needed `=`
 --> 1:7
1 | let a b = split_iname(i, 4)
  |       ^

error: `split_iname` takes 5 arguments: `iname`, `factor`, `outer`, `inner`, `tail`
 --> 1:32
1 | split_iname(i, 4, o, i, guard, 7)
  |                                ^

error: an argument by position after one by name
 --> 1:23
1 | split_iname(iname: i, 4)
  |                       ^
  = help: give it by name, too

error: `iname` is given twice
 --> 1:16
1 | split_iname(i, iname: j, factor: 4)
  |                ^^^^^

error: `split_iname`: invalid type: string "four", expected i64
 --> 1:1
1 | split_iname(i, four)
  | ^^^^^^^^^^^^^^^^^^^^
  = help: its arguments are `iname`, `factor`, `outer`, `inner`, `tail`

error: `split_iname`: missing field `factor`
 --> 1:1
1 | split_iname(i)
  | ^^^^^^^^^^^^^^
  = help: its arguments are `iname`, `factor`, `outer`, `inner`, `tail`

error: found `"`, needed a number or a string as in JSON
 --> 1:18
1 | fix_parameter(n, "4
  |                  ^

error: found `tag_iname`, needed the end of the line
 --> 1:19
1 | split_iname(i, 4) tag_iname(i_o, g.0)
  |                   ^^^^^^^^^

error: `remove_unused_vars` takes 0 arguments: none
 --> 1:20
1 | remove_unused_vars(x)
  |                    ^

error: `assume` takes its argument by name
 --> 1:8
1 | assume(map)
  |        ^^^
  = help: one of `at_least`, `at_most`, `multiple_of`, `injective`, `symmetric`

error: found the end of the line, needed `,` or `)`
 --> 1:17
1 | split_iname(i, 4
  |                 ^

error: found `=`, needed the name of a step
 --> 1:1
1 | = 4
  | ^

error: found `é`, needed the name of a step
 --> 1:1
1 | é
  | ^
"#);
}

#[test]
fn a_step_is_refused_at_its_line() {
    let refused = |text: &str| steps().script(text).unwrap().apply(&scale()).unwrap_err().to_string();
    assert_eq!(
        refused("\n# first\nsplit_iname(j, 4)\n"),
        "line 3: split `j` by 4 into `j_o`, `j_i`: there is no iname `j`; there is `i`"
    );
    assert_eq!(
        refused("let a, b, c = split_iname(i, 4)\n"),
        "line 1: 3 handles for 2 made by this step: `i_o`, `i_i`; leave out a handle"
    );
    assert_eq!(
        refused("let a = tag_iname(i, g.0)\n"),
        "line 1: 1 handles for 0 made by this step: nothing; leave out a handle"
    );
}

const HOLES: &str = "# a tile for each group
tile in [4, 8, 16]
space in [local, private]
threads = tile*tile
require threads <= 64
require threads mod 16 == 0
let o, i = split_iname(i, tile)
tag_iname(o, g.0)
";

#[test]
fn holes_are_searched_under_their_constraints() {
    let script = steps().script(HOLES).unwrap();
    assert!(script.has_holes());
    let choices: Vec<String> = script.choices().map(|c| c.to_string()).collect();
    assert_eq!(
        choices,
        [
            "space = local, tile = 4",
            "space = private, tile = 4",
            "space = local, tile = 8",
            "space = private, tile = 8"
        ]
    );
    let second = script.choices().nth(2).unwrap();
    let applied = script.apply_with(&scale(), &second).unwrap();
    assert_eq!(schedule::print(applied.recipe()), "split_iname(i, factor: 8)\ntag(i_o, tag: g.0)\n");
    assert_eq!(
        script.apply(&scale()).unwrap_err().to_string(),
        "line 2: `tile` has no value; choose one of 4, 8, 16, or let `kingpost tune` search for the best"
    );
    let too_large = schedule::Choice::new([("tile".into(), 16.into()), ("space".into(), "local".into())]);
    assert_eq!(
        script.apply_with(&scale(), &too_large).unwrap_err().to_string(),
        "line 1: space = local, tile = 16 break a constraint of the schedule; choose others"
    );
}

#[test]
fn a_quotient_by_zero_satisfies_nothing() {
    let script =
        steps().script("a in [0, 2]\nrequire 4/a > 1\nrequire a*4611686018427387904 >= 0\n").unwrap();
    assert_eq!(script.choices().count(), 0);
    let script = steps().script("a in [0, 2]\nrequire 4/a > 1\n").unwrap();
    assert_eq!(script.choices().map(|c| c.to_string()).collect::<Vec<_>>(), ["a = 2"]);
}

#[test]
fn holes_that_make_no_sense() {
    let all: Vec<String> = [
        "tile in []",
        "tile in [4, 8, 4]",
        "tile in [4]\ntile in [8]",
        "tile in 4",
        "a.b in [4]",
        "space in [local]\nthreads = 2*space",
        "require tile < 4",
        "tile in [4]\nrequire tile",
        "tile in [4]\nrequire tile < ",
        "tile in [local]\nsplit_iname(i, tile)",
    ]
    .into_iter()
    .map(errors)
    .collect();
    assert_snapshot!(all.join("\n"), @r#"
error: `tile` has no values
 --> 1:1
1 | tile in []
  | ^^^^

error: this value stands in the list already
 --> 1:16
1 | tile in [4, 8, 4]
  |                ^

error: there is a `tile` already
 --> 2:1
2 | tile in [8]
  | ^^^^

error: found `4`, needed a list of values
 --> 1:9
1 | tile in 4
  |         ^

error: `a.b` is no name for a value
 --> 1:1
1 | a.b in [4]
  | ^^^

error: `space` is no hole with integer values
 --> 2:13
2 | threads = 2*space
  |             ^^^^^

error: `tile` is no hole with integer values
 --> 1:9
1 | require tile < 4
  |         ^^^^

error: found the end of the line, needed a comparison
 --> 2:13
2 | require tile
  |             ^

error: found the end of the line, needed an integer or the name of a hole
 --> 2:16
2 | require tile < 
  |                ^

error: `split_iname`: invalid type: string "local", expected i64
 --> 2:1
2 | split_iname(i, tile)
  | ^^^^^^^^^^^^^^^^^^^^
  = help: its arguments are `iname`, `factor`, `outer`, `inner`, `tail`
"#);
}

#[test]
fn errors_of_a_schedule_behind_its_kernel_have_their_place() {
    let text = format!("{}\nschedule  # of 1 step\nsplit_iname(i, 4, bock: b)\n", scale());
    let rendered = steps().file(&text).unwrap_err().render(&text);
    assert_snapshot!(rendered, @"
error: `split_iname` has no argument `bock`
  --> 10:19
10 | split_iname(i, 4, bock: b)
   |                   ^^^^
   = help: its arguments are `iname`, `factor`, `outer`, `inner`, `tail`
");
    let (kernel, script) = steps().file(&scale().to_string()).unwrap();
    assert!(kernel == scale() && script.is_none());
}

#[test]
fn alternatives_are_given_by_name() {
    let text = "kernel k\nparam n: i32\narg map: i32[n] in\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[map[i]] += 1.0\n";
    let script = steps().script("assume(injective: {array: map})\n").unwrap();
    let applied = script.apply(&kernel(text)).unwrap();
    assert_eq!(schedule::print(applied.recipe()), "assume(injective: {array: map})\n");
}

/// Verbs and combined steps are read; recipes hold the primitives that they are.
#[test]
fn verbs_and_combined_steps_record_primitives() {
    let text = "let i_o, j_o, i_i, j_i = tile([i, j], [8, 4])
reorder([j_o, i_o])
tag([i_o], g.0)
split(j_i, 2)
";
    let kernel = parse(
        "kernel t\narg a: f64[32, 32] in\narg b: f64[32, 32] out\n\nfor i in 0..32\n  for j in 0..32\n    s: b[i, j] = a[j, i]\n",
    )
    .unwrap();
    let applied = steps().script(text).unwrap().apply(&kernel).unwrap();
    assert_snapshot!(schedule::print(applied.recipe()));
    assert_eq!(applied.recipe().apply(&kernel).unwrap(), *applied.kernel());
    let reordered = steps().script("reoder([j, i])\n").unwrap_err().to_string();
    assert!(reordered.contains("there is no step `reoder`"), "{reordered}");
    let error = steps().script("tile([i, j], [8])\n").unwrap().apply(&kernel).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 1: tile `i` `j`: 2 loops and 1 factors, needed one factor for each of some loops"
    );
}

/// A product of matrices by tiles of 16 x 16 in local memory, in four calls.
#[test]
fn a_product_of_matrices_is_tiled_in_four_calls() {
    let text = "kernel matmul\nparam n: i32\narg a: f64[n, n] in\narg b: f64[n, n] in\narg c: f64[n, n] out\n\nfor i in \
                0..n\n  for j in 0..n\n    s: c[i, j] = sum(k in 0..n: a[i, k]*b[k, j])\n";
    let kernel = parse(text).unwrap();
    let calls = "realise(k, accumulator: acc)
let i_o, j_o, k_o, i_i, j_i, k_i = tile([i, j, k], [16, 16, 16], tags: [[g.1, l.1], [g.0, l.0]])
prefetch(a, at: k_o, space: local, work_items: [16, 16])
prefetch(b, at: k_o, space: local, work_items: [16, 16])
";
    let applied = steps().script(calls).unwrap().apply(&kernel).unwrap();
    assert_snapshot!(format!("{}\n{}", schedule::print(applied.recipe()), applied.kernel()));
    let placed = kingpost_analysis::Analysis::of(applied.kernel()).place().unwrap().barriers.len();
    assert!(placed > 0);
    let more = "tile([i], [8], tags: [[g.1, l.1], [g.0, l.0]])\n";
    let error = steps().script(more).unwrap().apply(&kernel).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 1: tile `i`: 1 loops and 2 pairs of tags, needed two tags for each of some loops"
    );
}

/// A nest that is not perfect: the accumulator of a row gets an axis, and the loop over rows is distributed.
#[test]
fn a_nest_that_is_not_perfect_is_tiled() {
    let kernel = parse(
        "kernel mv\narg a: f64[32, 16] in\narg x: f64[16] in\narg y: f64[32] out\ntemp t: f64 private\n\nfor i in 0..32\n  \
         z: t = 0.0\n  for j in 0..16\n    s: t += a[i, j]*x[j]\n  w: y[i] = t\n",
    )
    .unwrap();
    let mut s = Schedule::of(&kernel);
    let [blocks, inside] = s.tile(["i", "j"], [8, 4]).unwrap();
    assert_eq!((blocks.len(), inside.len()), (2, 2));
    assert_snapshot!(format!("{}\n{}", schedule::print(s.recipe()), s.kernel()));
    let mut refused = Schedule::of(&kernel);
    let error = refused.tile(["j", "i"], [4, 8]).unwrap_err().to_string();
    assert!(error.contains("not loops one inside the other"), "{error}");
    assert_eq!(refused.kernel(), &kernel);
}
