//! Generated sources, one snapshot a fact: the kernel, then its source for each target.

#![allow(clippy::unwrap_used, clippy::panic)]

use purlin_codegen::{Options, Target, generate};
use purlin_ir::text::{parse, print};

const ALL: [Target; 3] = [Target::Cuda, Target::OpenCl, Target::C];

/// The kernel, its launch plan and its sources.
fn show(text: &str, targets: &[Target]) -> String {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let mut out = print(&kernel);
    for (k, target) in targets.iter().enumerate() {
        let program = generate(&kernel, *target, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let again = generate(&kernel, *target, &Options::default()).unwrap();
        assert_eq!(program, again, "two runs must give the same bytes");
        if k == 0 {
            let plan = &program.plan;
            let [gx, gy, gz] = &plan.grid;
            out.push_str(&format!("\n===== launch\ngrid {gx}, {gy}, {gz}\nblock {:?}\n", plan.block));
            out.push_str(&format!("local {} bytes, {:?}\n", plan.local_bytes, plan.features));
        }
        out.push_str(&format!("\n===== {target}\n{}", program.source));
    }
    out
}

/// The text of a kernel in `tests/kernels`.
fn kernel(fact: &str) -> String {
    let path = format!("{}/tests/kernels/{fact}.purlin", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

macro_rules! snapshots {
    ($($name:ident: $targets:expr;)*) => { $(
        #[test]
        fn $name() {
            let fact = stringify!($name);
            insta::with_settings!({omit_expression => true}, {
                insta::assert_snapshot!(fact, show(&kernel(fact), &$targets));
            });
        }
    )* };
}

use Target::{C, Cuda, OpenCl};

snapshots! {
    aliased_temporaries_share_a_buffer: [Cuda, C];
    bound_by_a_quotient_of_itself: [C];
    assumption_keeps_offsets_narrow: [Cuda];
    axpy_is_guarded_when_not_divisible: ALL;
    barrier_inside_a_guarded_loop: ALL;
    bounds_come_from_integer_temporaries: [Cuda, C];
    copies_inside_a_loop_keep_their_barriers: [OpenCl];
    extremes_of_wide_values: ALL;
    f32_literals_and_functions_have_suffixes: ALL;
    finite_element_action_one_cell_a_work_item: ALL;
    flat_positions_are_quotients_and_remainders: [Cuda];
    geometry_is_replicated_and_results_stored_once: ALL;
    full_groups_have_no_guards: [Cuda, C];
    grid_covers_the_longest_of_triangular_loops: [Cuda];
    guard_never_skips_a_barrier: ALL;
    guards_stay_around_barriers: ALL;
    pointers_that_work_items_share_are_not_restrict: ALL;
    guard_of_any_factor_stays_in_32_bits: [Cuda];
    integer_division_rounds_down: [Cuda, C];
    large_private_arrays_are_not_spread: [C];
    local_accumulator_is_atomic: ALL;
    long_lists_of_map_entries_stay: [Cuda];
    loop_keeps_the_bound_it_began_with: [Cuda];
    loops_of_different_lengths_share_an_axis: [Cuda, C];
    loops_of_constant_length_are_written_out: [Cuda, C];
    loops_of_one_and_no_iteration_vanish: [Cuda];
    map_entries_are_read_once: [Cuda, C];
    minimum_and_maximum_are_atomic: ALL;
    one_barrier_orders_both_memories: ALL;
    offsets_beyond_32_bits_are_wide: [Cuda];
    pipelined_tiles_need_one_barrier_an_iteration: ALL;
    predicate_is_a_guard: [Cuda, C];
    private_slices_live_across_loops: [Cuda, C];
    quotients_of_bounded_indices_vanish: [Cuda];
    reserved_words_are_renamed: [Cuda];
    rules_and_reductions_in_conditionals: [Cuda, C];
    special_values_are_printed: ALL;
    shared_bounds_are_read_by_all: [OpenCl];
    spread_keeps_its_bounds: [C];
    scalars_behind_pointers: ALL;
    strided_loop_steps: [Cuda];
    sums_and_products_are_atomic: ALL;
    temporaries_in_global_memory: ALL;
    three_axes_of_groups_and_items: ALL;
    tile_loop_needs_two_barriers_an_iteration: ALL;
    transpose_through_local_memory_has_one_barrier: ALL;
    triangular_loop_takes_its_bound_from_the_outer_one: [Cuda];
    union_is_a_hull_with_a_guard: [Cuda];
    unrolled_loop_around_a_barrier: [Cuda, C];
    unrolled_loops_are_written_out: [Cuda];
    unrolled_windows_around_a_barrier: [OpenCl];
    unrolled_reductions_are_written_out: [Cuda, C];
    vector_loop_is_simd_on_the_host: [Cuda, C];
    vectors_are_copied_whole: ALL;
    vectors_calculate: [Cuda, OpenCl];
    tails_of_vectors_stay_lanes: [Cuda, OpenCl];
    lanes_that_are_no_vectors: [Cuda, OpenCl];
    vectors_start_at_their_multiples: [Cuda];
    vectors_under_a_condition: ALL;
    lanes_sum_over_loops: [Cuda, OpenCl];
    hulls_stay_in_range: [C];
    intrinsics_stand_for_their_calls: ALL;
    sub_groups_sum_by_shuffles: ALL;
    short_triangles_stay_rolled: [Cuda, C];
    sub_group_intrinsic: [Cuda, C];
    intrinsic_reads_another_lane: ALL;
    shared_bound_of_the_last_loop: [OpenCl];
    barrier_under_a_condition_is_not_enough: [OpenCl];
    calls_are_written_out_where_code_may_not_stand: ALL;
    call_in_one_of_two_rows: [Cuda, OpenCl];
    parts_of_vectors_are_vectors: ALL;
}
