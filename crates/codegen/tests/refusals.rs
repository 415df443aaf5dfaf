//! What is refused, and in which words.

#![allow(clippy::unwrap_used, clippy::panic)]

use purlin_analysis::placement::RefusalReason;
use purlin_codegen::{CodegenError, Options, Target, generate};
use purlin_ir::text::parse;

fn refusal(target: Target, text: &str) -> String {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    match generate(&kernel, target, &Options::default()) {
        Ok(program) => panic!("not refused:\n{}", program.source),
        Err(e) => e.to_string(),
    }
}

macro_rules! refusals {
    ($($name:ident: $target:ident, $text:literal => $message:literal;)*) => { $(
        #[test]
        fn $name() {
            assert_eq!(refusal(Target::$target, concat!("kernel k\n\nparam n: i32\n", $text)), $message);
        }
    )* };
}

refusals! {
    refuses_a_shuffle_that_some_work_items_skip: Cuda,
        "arg y: f64[32] out\ntemp t: f64[32] subgroup\nfor l in 0..32 {l.0}\n  s: t[l] = f64(l)\nfor k in 0..16 {l.0}\n  r: y[k] = t[k + 16]\n"
        => "`shuffle of t` must be run by the work-items along l.0 together, and `l0 < 16` may send them apart; let the loop around it have exact bounds";
    refuses_a_shuffle_under_a_condition: Cuda,
        "arg x: f64[32] in\narg y: f64[32] out\ntemp t: f64[32] subgroup\nfor l in 0..32 {l.0}\n  s: t[l] = f64(l)\nfor k in 0..32 {l.0}\n  r: y[k] = t[31 - k] if x[k] > 0.0\n"
        => "`shuffle of t` must be run by the work-items along l.0 together, and `0.0 < x[l0]` may send them apart; let the loop around it have exact bounds";
    refuses_rows_of_sub_groups_and_a_half: Cuda,
        "arg y: f64[24] out\ntemp t: f64[24] subgroup\nfor l in 0..24 {l.0}\n  s: t[l] = f64(l)\nfor k in 0..24 {l.0}\n  r: y[k] = t[23 - k]\n"
        => "the work-items of a sub-group hold `t`, and l.0 has 24 of them, needed a power of two; split the loops on l.0 so, or make it local";
    refuses_to_write_what_another_work_item_holds: Cuda,
        "temp t: f64[32] subgroup\nfor l in 0..32 {l.0}\n  s: t[31 - l] = f64(l)\n"
        => "`s` writes `t`, of which every work-item of a sub-group holds one element, without an index that is that of the work-item along l.0, the same in every write; index it so, or make it local";
    refuses_private_arrays_beyond_a_thread: Cuda,
        "arg y: f64[n] inout\ntemp t: f64[40000] private\ntemp u: f64[30000] private\nfor i in 0..n {g.0}\n  r: t[i mod 7] = y[i]\n  s: u[i mod 7] = t[i mod 7]\n  w: y[i] = u[i mod 7]\n"
        => "private arrays of a work-item take 560000 bytes, of which `t` takes 320000; cuda code may use 524288: use smaller tiles, alias their storage, or keep `t` in global memory";
    refuses_private_arrays_beyond_a_work_item: OpenCl,
        "arg y: f64[n] inout\ntemp t: f64[1000000000, 4000000000] private\nfor i in 0..n {g.0}\n  r: t[0, 1] = y[i]\n  s: y[i] = t[0, 1]\n"
        => "private arrays of a work-item take 18446744073709551615 bytes, of which `t` takes 18446744073709551615; opencl code may use 524288: use smaller tiles, alias their storage, or keep `t` in global memory";
    refuses_arrays_beyond_a_thread_of_the_host: C,
        "arg y: f64[4] inout\ntemp t: f64[9000000] private\nfor i in 0..9\n  r: t[i] = 1.0\n  s: y[0] = t[i]\n"
        => "private arrays of a work-item take 72000000 bytes, of which `t` takes 72000000; c code may use 67108864: use smaller tiles, alias their storage, or keep `t` in global memory";
    refuses_local_arrays_beyond_64_bits: Cuda,
        "arg y: f64[n] inout\ntemp t: f64[1000000000, 4000000000] local\nfor i in 0..n {g.0}\n  r: t[0, 1] = y[i]\n  s: y[i] = t[0, 1]\n"
        => "local arrays take 18446744073709551615 bytes, a cuda kernel can declare 232448; use smaller tiles or alias their storage";
    refuses_a_parametric_block: Cuda,
        "arg y: f64[n] out\nfor i in 0..n {l.0}\n  s: y[i] = 1.0\n"
        => "work-items along l.0: the extent of `i` is `n`, needed a constant; fix the parameter, or split the loop by a constant and tag the inner one";
    refuses_a_grid_that_depends_on_a_loop: Cuda,
        "arg c: i32[1] in\narg y: f64[8] out\ntemp m: i32 private\na: m = c[0]\nfor i in 0..m {g.0}\n  s: y[i] = 1.0\n"
        => "work-groups along g.0: the extent of `i` is `m`, needed an expression of parameters; make the bounds depend on parameters only";
    refuses_to_unroll_a_parametric_loop: Cuda,
        "arg y: f64[n] out\nfor i in 0..n {unroll}\n  s: y[i] = 1.0\n"
        => "unrolled loop `i` runs from 0 to n times, needed a constant of at most 4096; fix the parameter, split it, or leave it sequential";
    refuses_to_unroll_too_much: Cuda,
        "arg y: f64[5000] out\nfor i in 0..5000 {unroll}\n  s: y[i] = 1.0\n"
        => "unrolled loop `i` runs 5000 times, needed a constant of at most 4096; fix the parameter, split it, or leave it sequential";
    refuses_to_unroll_too_much_from_anywhere: Cuda,
        "arg y: f64[n] inout\nfor i in 0..n\n  for j in i..i + 5000 {unroll}\n    s: y[i] += 1.0\n"
        => "unrolled loop `j` runs 5000 times, needed a constant of at most 4096; fix the parameter, split it, or leave it sequential";
    refuses_to_unroll_from_what_the_body_changes: C,
        "arg y: f64[8] inout\ntemp m: i32 private\na: m = 3\nfor i in m..m + 2 {unroll}\n  b: m = 4\n  s: y[i] += 1.0\n"
        => "the domain of `i` depends on `m`, which its body writes; copy `m` to a temporary before the loop";
    refuses_a_barrier_that_work_items_reach_differently_often: OpenCl,
        "arg y: f64[8] inout\ntemp t: f64[8, 8] local\nfor l in 0..8 {l.0}\n  for k in 0..l\n    b: t[l, k] = f64(k)\n    d: y[l] = t[l - 1, k] if k < l - 1\n"
        => "a barrier stands inside loop `k`, whose bounds may differ among the work-items of a group (a bound is `l`); make them depend on parameters and work-groups only";
    refuses_a_barrier_in_a_loop_with_bounds_of_work_items: OpenCl,
        "arg y: f64[8] inout\ntemp t: f64[8, 8] local\ntemp m: i32 private\nfor l in 0..8 {l.0}\n  a: m = l\n  for k in 0..m\n    b: t[l, k] = f64(k)\n    d: y[l] = t[l - 1, k] if k < l - 1\n"
        => "a barrier stands inside loop `k`, whose bounds may differ among the work-items of a group (a bound is `m`); make them depend on parameters and work-groups only";
    refuses_a_barrier_under_a_condition_from_memory: OpenCl,
        "arg y: f64[8] inout\ntemp t: f64[8] local\ntemp m: i32 private\na: m = 3\nfor l where l >= 0 and l < 8 and l < m {l.0}\n  b: t[l] = 1.0\n  d: y[l] = t[0]\n"
        => "a barrier stands inside loop `l`, whose bounds may differ among the work-items of a group (its domain depends on `m`); make them depend on parameters and work-groups only";
    refuses_a_barrier_in_a_loop_that_memory_thins_out: OpenCl,
        "arg y: f64[8] inout\ntemp t: f64[8] local\ntemp m: i32 private\na: m = 3\nfor k where k >= 0 and k < 8 and (k + m) mod 2 == 0\n  for l in 0..8 {l.0}\n    b: t[l] = f64(k)\n  for r in 0..8 {l.0}\n    d: y[r] += t[7 - r]\n"
        => "a barrier stands inside loop `k`, whose bounds may differ among the work-items of a group (its domain depends on `m`); make them depend on parameters and work-groups only";
    refuses_a_shared_bound_that_its_loop_changes: OpenCl,
        "arg y: f64[8] inout\ntemp m: i32 local\na: m = 3\nfor k in 0..m\n  b: m = k + 1\nfor l in 0..8 {l.0}\n  d: y[l] = 1.0\n"
        => "the domain of `k` depends on `m`, which its body writes; copy `m` to a temporary before the loop";
    refuses_a_shared_bound_that_its_loop_changes_before_others_run: Cuda,
        "arg y: f64[8] inout\ntemp m: i32 local\na: m = 3\nfor k in 0..m\n  b: m = 0\n  c: y[0] += f64(k)\nfor l in 0..8 {l.0}\n  d: y[l] = 1.0\n"
        => "the domain of `k` depends on `m`, which its body writes; copy `m` to a temporary before the loop";
    refuses_a_global_integer: C,
        "temp t: i32 global\ns: t = 1\n"
        => "`t` is an integer scalar in global memory, which bounds of loops cannot mention; make it local or private";
    refuses_bounds_from_a_table: Cuda,
        "table m: i32 global\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = 1.0\n  for j in 0..m\n    r: y[i] += 1.0\ntable m = [3]\n"
        => "the bounds of `j` mention `m`, which lies behind a pointer; copy it to a temporary before the loop";
    refuses_bounds_from_a_constant: OpenCl,
        "table m: i32 constant\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = sum(j in 0..m: f64(j))\ntable m = [3]\n"
        => "the bounds of `j` mention `m`, which lies behind a pointer; copy it to a temporary before the loop";
    refuses_bounds_from_an_argument_that_is_written: C,
        "arg m: i32 inout\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = sum(j in 0..ceil(m/2): f64(j))\n"
        => "the bounds of `j` mention `m`, which lies behind a pointer; copy it to a temporary before the loop";
    refuses_bounds_from_an_argument_in_global_memory: C,
        "arg m: i32 in global\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = sum(j in 0..m: f64(j))\n"
        => "the bounds of `j` mention `m`, which lies behind a pointer; copy it to a temporary before the loop";
    refuses_an_access_outside_of_its_array: OpenCl,
        "arg x: f64[n] in\narg y: f64[n] out\nfor i in 0..n {g.0}\n  s: y[i] = x[i + 1]\n"
        => "`s[0]` accesses `x[1]` with n = 1, outside of its shape [n]; correct the index or the loops, or assume \
            what the parameters satisfy";
    refuses_private_memory_of_unknown_size: C,
        "temp t: f64[n] private\nassume n >= 1\ns: t[0] = 1.0\n"
        => "the shape of `t` is not constant but `n`; fix the parameter, so that private memory can be declared";
    refuses_vectors_of_three: C,
        "temp t: f64[2, 3] private vector(1)\ns: t[0, 0] = 1.0\n"
        => "the vector axis of `t` holds no vectors: its extent is not 2, 4, 8 or 16; change its layout";
    refuses_storage_of_two_types: C,
        "temp t: f64[2] local storage(b)\ntemp u: f32[2] local storage(b)\ns: t[0] = 1.0\nr: u[0] = 1.0\n"
        => "`t` is f64 in local memory and `u` is f32 in local memory; only equal ones share storage";
    refuses_storage_of_two_values_alive: C,
        "temp t: f64 storage(b)\ntemp u: f64 storage(b)\narg y: f64[1] out\ns: t = 1.0\nr: u = 2.0\nw: y[0] = t + u\n"
        => "`t` is alive from `s` to `w`, and `r` writes `u` in between; give them storage of their own, or keep \
            their uses apart";
    refuses_storage_of_an_argument: C,
        "arg alpha: f64 in storage(b)\ntemp t: f64 storage(b)\narg y: f64[1] out\ns: t = alpha\nr: y[0] = t\n"
        => "`alpha` is no temporary, and only temporaries share storage";
    refuses_storage_of_a_bound: C,
        "temp m: i32 storage(b)\ntemp k: i32 storage(b)\narg y: f64[8] inout\ns: m = 3\nfor i in 0..m\n  r: y[i] = 1.0\nt: k = 2\nw: y[k] = 2.0\n"
        => "the bounds of `i` mention `m`, which needs a place of its own";
    refuses_more_local_memory_than_can_be_declared: Cuda,
        "temp t: f64[30000] local\ns: t[0] = 1.0\n"
        => "local arrays take 240000 bytes, a cuda kernel can declare 232448; use smaller tiles or alias their storage";
    refuses_a_block_too_large: Cuda,
        "arg y: f64[2048] out\nfor i in 0..2048 {l.0}\n  s: y[i] = 1.0\n"
        => "a group has 2048 work-items, cuda allows 1024; use smaller tiles";
    refuses_an_axis_that_starts_below_zero: Cuda,
        "arg y: f64[8] out\nfor i where i >= -4 and i < 4 and i < n {l.0}\n  s: y[i + 4] = 1.0\n"
        => "loop `i` on l.0 starts at a value that may be negative, needed a parametric one that is not negative; shift the loop";
    refuses_a_loop_without_end: C,
        "arg y: f64[8] out\nfor i where i >= n\n  s: y[0] = 1.0\n"
        => "`i` has no upper bound; give its domain one";
    refuses_a_domain_that_its_body_changes: C,
        "arg y: f64[8] inout\ntemp m: i32 private\na: m = 3\nfor i where i >= 0 and i < 8 and (i + m) mod 2 == 0\n  b: m = 4\n  s: y[i] = 1.0\n"
        => "the domain of `i` depends on `m`, which its body writes; copy `m` to a temporary before the loop";
}

#[test]
fn refuses_constant_tables_beyond_the_device() {
    let values = vec!["1.0"; 9000].join(", ");
    let text = format!(
        "kernel k\n\narg y: f64[1] out\ntable t: f64[9000] constant\ns: y[0] = t[0]\n\ntable t = [{values}]\n"
    );
    assert_eq!(
        refusal(Target::OpenCl, &text),
        "constant tables take 72000 bytes, a opencl device has 65536; move tables to global memory"
    );
}

#[test]
fn refuses_a_race_with_two_instances() {
    let text = "kernel k\n\narg y: f64[1] inout\nfor i in 0..8 {g.0}\n  s: y[0] += 1.0\n";
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    match generate(&kernel, Target::Cuda, &Options::default()) {
        Err(CodegenError::Refused(refusal)) => {
            assert_eq!(refusal.reason, RefusalReason::NotAtomic);
            assert_ne!(refusal.witness.source, refusal.witness.sink);
        }
        other => panic!("{other:?}"),
    }
}

/// A kernel with a callee that work-items run together, and this body.
fn collective(around: &str, code: &str) -> String {
    format!(
        "kernel k\nparam n: i32\narg c: i32[32] in\narg y: f64[32] inout\narg x: f64[32] in\ntemp m: i32 private\n\
         callee add_up\n  arg x: f64[32] in\n  arg y: f64[32] inout\n  for l in 0..32 {{l.0}}\n    \
         s: y[l] += x[l]\n  {code}\n{around}"
    )
}

#[test]
fn refuses_a_feature_it_does_not_know() {
    let text = collective(
        "call add_up\n  for l in 0..32 {l.0}\n    t: y[l] += x[l]\n",
        "code cuda needs(wings) (\"add_up({y[l]}, {x[l]});\")",
    );
    assert_eq!(
        refusal(Target::Cuda, &text),
        "the code of `add_up` needs `wings`, which is no feature of a cuda device; there is `sm_80` and the like"
    );
}

/// A call of `add_up` whose second argument is `y`, in memory of this kind, of which every work-item holds an element.
fn in_registers(space: &str, code: &str) -> String {
    let call = format!(
        "temp r: f64[32] {space}\nfor i in 0..32 {{l.0}}\n  a: r[i] = x[i]\ncall add_up\n  for l in 0..32 {{l.0}}\n    \
         t: r[l] += x[l]\nfor o in 0..32 {{l.0}}\n  b: y[o] = r[o]\n"
    );
    collective(&call, &format!("code cuda (\"{code}\")"))
}

#[test]
fn code_may_name_registers_of_the_work_item_itself() {
    for space in ["subgroup", "private"] {
        let text = in_registers(space, "add_up({y[2*l - l]}, {x[31 - l]});");
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(program.source.contains("add_up(r, x[31 - l0]);"), "{}", program.source);
    }
}

#[test]
fn refuses_code_that_names_registers_of_other_work_items() {
    let found = |space: &str, code: &str| refusal(Target::Cuda, &in_registers(space, code));
    let says = |why: &str| {
        format!(
            "the code of `add_up` names `y[31 - l]`, an element of `r` that {why}; name elements that the work-item \
             holds itself, or make `r` local"
        )
    };
    assert_eq!(
        found("subgroup", "add_up({y[31 - l]}, {x[l]});"),
        says("lies in a register of another work-item, where the code may not write")
    );
    assert_eq!(
        found("private", "add_up({y[31 - l]}, {x[l]});"),
        says("lies in registers of another work-item, which nobody else can read")
    );
}

/// A call of a callee that reads 64 or 32 elements of an array that the work-items of a sub-group hold.
fn reads_in_registers(lanes: i64, around: &str, code: &str) -> String {
    format!(
        "kernel k\nparam n: i32\narg x: f64[{lanes}] in\narg y: f64[{lanes}] inout\ntemp r: f64[{lanes}] subgroup\n\
         callee add_up\n  arg x: f64[{lanes}] in\n  arg y: f64[{lanes}] inout\n  for l in 0..{lanes} {{l.0}}\n    \
         s: y[l] += x[l]\n  code cuda (\"{code}\")\nfor i in 0..{lanes} {{l.0}}\n  a: r[i] = x[i]\n{around}"
    )
}

#[test]
fn refuses_code_that_reads_other_sub_groups() {
    let call = "call add_up\n  for l in 0..64 {l.0}\n    t: y[l] += r[l]\n";
    assert_eq!(
        refusal(Target::Cuda, &reads_in_registers(64, call, "add_up({y[l]}, {x[63 - l]});")),
        "the code of `add_up` names `x[63 - l]`, an element of `r` that may lie in a register of another sub-group, \
         which no shuffle reads; name elements that the work-item holds itself, or make `r` local"
    );
}

#[test]
fn a_call_at_one_work_item_reads_what_that_one_holds() {
    let text = "kernel k\nparam n: i32\narg x: f64[32] in\narg y: f64[32] inout\ntemp r: f64[32] subgroup\n\
                callee add\n  arg a: f64 in\n  arg c: f64 inout\n  s: c += a\n  code cuda (\"{c} += {a};\")\n\
                for i in 0..32 {l.0}\n  a: r[i] = x[i]\ncall add\n  t: y[0] += r[0]\n";
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let program = generate(&kernel, Target::Cuda, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(program.source.contains("y[0] += r;") && !program.source.contains("shfl"), "{}", program.source);
}

/// The shuffle in front of a call stands under the conditions of the call.
#[test]
fn refuses_a_shuffle_for_a_call_that_sends_work_items_apart() {
    let text = "kernel k\nparam n: i32\narg x: f64[32] in\narg y: f64[32] inout\ntemp r: f64[32] subgroup\n\
                callee add\n  arg a: f64 in\n  arg c: f64 inout\n  s: c += a\n  code cuda (\"{c} += {a};\")\n\
                for i in 0..32 {l.0}\n  a: r[i] = x[i]\nfor j in 0..31 {l.0}\n  call add\n    t: y[j] += r[j + 1]\n";
    assert_eq!(
        refusal(Target::Cuda, text),
        "`shuffle of r` must be run by the work-items along l.0 together, and `l0 < 31` may send them apart; let the \
         loop around it have exact bounds"
    );
}

/// Two work-groups meet on an element for values only that the parameter cannot have: of 32 bits, not of 64.
#[test]
fn clashes_need_values_of_the_types() {
    let text = |ty: &str| {
        format!(
            "kernel k\nparam n: {ty}\narg y: f64[n] inout\nfor i in 0..n {{g.0}}\n  s: y[i] = 1.0\n\
             for j in 0..n {{g.0}}\n  t: y[j - 1099511627776] = 2.0 if j >= 1099511627776\n"
        )
    };
    let wide = refusal(Target::C, &text("i64"));
    assert!(wide.contains("with n = 1099511627777"), "{wide}");
    let kernel = parse(&text("i32")).unwrap();
    generate(&kernel, Target::C, &Options::default()).unwrap();
}
