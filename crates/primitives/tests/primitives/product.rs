//! Products of matrices in tiles: what the combined step makes, that it computes the same, what it refuses.

use crate::story::{kernel, story};
use insta::assert_snapshot;
use kingpost_analysis::Analysis;
use kingpost_interp::{Memory, Value, interpret};
use kingpost_ir::Kernel;
use kingpost_primitives::{schedule, steps};
use kingpost_sample::is_long_run;

const SUM: &str = "kernel matmul
arg a: f64[32, 8] in
arg b: f64[8, 32] in
arg c: f64[32, 32] out

for i in 0..32
  for j in 0..32
    s: c[i, j] = sum(k in 0..8: a[i, k]*b[k, j])
";

/// Of transposed factors, added to what is there, columns outside.
const UPDATE: &str = "kernel matmul
arg a: f64[8, 32] in
arg b: f64[32, 8] in
arg c: f64[32, 32] inout

for j in 0..32
  for i in 0..32
    for k in 0..8
      s: c[i, j] += a[k, i]*b[j, k]
";

const LANES: &str = "tile_product([i, j, k], tile: [16, 16, 4], sub_group: [8, 16], buffers: 2)\n";
const TEAMS: &str =
    "tile_product([i, j, k], tile: [64, 128, 64], sub_group: [16, 128], buffers: 3, by: team_instructions)\n";
const MATRIX: &str =
    "tile_product([i, j, k], tile: [16, 16, 4], sub_group: [16, 8], buffers: 3, by: matrix_instructions)\n";

/// The kernel after the step, each of whose parts computes the same.
fn tiled(text: &str, step: &str) -> Kernel {
    let applied = steps().script(step).unwrap().apply(&kernel(text)).unwrap();
    let told = story(text, &applied.recipe().steps);
    assert!(!told.contains("\nrefused: "), "{told}");
    Analysis::of(applied.kernel()).place().unwrap();
    applied.kernel().clone()
}

#[test]
fn work_items_multiply_vectors_of_rows_and_columns() {
    assert_snapshot!(tiled(SUM, LANES).to_string());
}

/// Work-items with as many rows as columns: a term is read ahead, also of the next tile, and the
/// last tile stands after the loop.
#[test]
fn work_items_read_a_term_ahead() {
    let text = SUM.replace("f64", "f32").replace("32, 8]", "32, 16]").replace("[8, 32", "[16, 64");
    let text = text.replace("c: f32[32, 32]", "c: f32[32, 64]").replace("j in 0..32", "j in 0..64");
    let before = kernel(&text.replace("k in 0..8", "k in 0..16"));
    let step = "tile_product([i, j, k], tile: [32, 64, 4], sub_group: [32, 64], buffers: 3)\n";
    let applied = steps().script(step).unwrap().apply(&before).unwrap();
    let after = applied.kernel();
    Analysis::of(after).place().unwrap();
    let printed = after.to_string();
    for wanted in ["a_part_of_0: f32[1, 32, 2, 4] private", "for k_o in 0..3\n", "for k_o_last in 3..4\n"] {
        assert!(printed.contains(wanted), "{printed}");
    }
    let numbers = |seed: usize| (0..1024).map(move |k| ((k * 37 + seed) % 101) as f32 / 64.0);
    let result = |kernel: &Kernel| {
        let values = |seed, count| Value::F32(numbers(seed).take(count).collect());
        let mut memory = Memory::new().value("a", values(11, 512)).value("b", values(5, 1024));
        interpret(kernel, &mut memory).unwrap();
        memory.get("c").unwrap().to_f64()
    };
    // terms are multiples of 1/4096 and sums below 40: all of them are exact
    assert_eq!(result(after), result(&before));
}

#[test]
fn sub_groups_multiply_fragments() {
    let text = tiled(SUM, MATRIX).to_string();
    // tiles are copied two ahead, parts are read a step ahead
    for wanted in
        ["call mma_m16n8k4_f64_registers", "call copy_async_f64x2", "a_part_0: f64[2, 32, 1, 2] subgroup"]
    {
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn factors_may_be_transposed_and_sums_go_on() {
    if is_long_run() {
        tiled(UPDATE, MATRIX);
        tiled(UPDATE, LANES);
    }
    // the parts are compared in the tests above
    let before = kernel(UPDATE);
    let after = steps().script(MATRIX).unwrap().apply(&before).unwrap().kernel().clone();
    Analysis::of(&after).place().unwrap();
    let result = |kernel: &Kernel| {
        let numbers =
            |seed: i32, n: i32| Value::F64((0..n).map(|k| f64::from((k * 37 + seed) % 101)).collect());
        let factors = Memory::new().value("a", numbers(11, 256)).value("b", numbers(5, 256));
        let mut memory = factors.value("c", numbers(3, 1024));
        interpret(kernel, &mut memory).unwrap();
        memory.get("c").unwrap().to_f64()
    };
    // sums of integers
    assert_eq!(result(&after), result(&before));
}

/// The recipe holds the primitives alone.
#[test]
fn the_recipe_replays() {
    let before = kernel(SUM);
    let applied = steps().script(MATRIX).unwrap().apply(&before).unwrap();
    let text = schedule::print(applied.recipe());
    assert!(!text.contains("tile_product"), "{text}");
    let again = steps().script(&text).unwrap().apply(&before).unwrap();
    assert_eq!(again.kernel(), applied.kernel());
}

#[test]
fn what_is_no_product_in_whole_tiles_is_refused() {
    let refused =
        |text: &str, step: &str| steps().script(step).unwrap().apply(&kernel(text)).unwrap_err().to_string();
    let longer = SUM.replace("32", "36");
    let two = "kernel two
arg a: f64[32, 8] in
arg c: f64[32, 32] out

for i in 0..32
  for j in 0..32
    r: c[i, j] = 0.0
    for k in 0..8
      s: c[i, j] += a[i, k]
    t: c[i, j] *= 2.0
";
    let of_steps = |tile: &str, rest: &str| format!("tile_product([i, j, k], tile: {tile}, {rest})\n");
    let errors = [
        refused(&longer, LANES),
        refused(two, LANES),
        refused(&SUM.replace("f64", "f32"), MATRIX),
        refused(SUM, &of_steps("[16, 16, 4]", "sub_group: [12, 16], buffers: 2")),
        refused(SUM, &of_steps("[16, 16, 4]", "sub_group: [4, 4], buffers: 2")),
        refused(SUM, &of_steps("[16, 16, 4]", "sub_group: [8, 16], buffers: 40")),
        refused(SUM, &of_steps("[16, 48, 4]", "sub_group: [8, 16], buffers: 2")),
        refused(SUM, TEAMS),
        refused(&UPDATE.replace("f64", "bf16"), TEAMS),
        refused(&SUM.replace("f64", "bf16"), &TEAMS.replace("[16, 128]", "[64, 32]")),
        refused(&SUM.replace("f64", "bf16"), &TEAMS.replace("128, 64]", "128, 32]")),
        refused(SUM, "tile_product([i, j, z], tile: [16, 16, 4], sub_group: [8, 16], buffers: 2)\n"),
    ];
    assert_snapshot!(errors.join("\n"));
}
