//! Refusals that are more than a fact: of programs that are made here, or in several variants.

use kingpost_analysis::placement::RefusalReason;
use kingpost_codegen::{CodegenError, Options, Target, generate};
use kingpost_ir::text::parse;

fn refusal(target: Target, text: &str) -> String {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    match generate(&kernel, target, &Options::default()) {
        Ok(program) => panic!("not refused:\n{}", program.source),
        Err(e) => e.to_string(),
    }
}

#[test]
fn refuses_constant_tables_beyond_the_device() {
    let values = vec!["1.0"; 9000].join(", ");
    let text = format!(
        "kernel k\n\narg y: f64[2] out\ntable t: f64[9000] constant\nfor i in 0..2\n  s: y[i] = t[i]\n\ntable t = [{values}]\n"
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
        "the code of `add_up` needs `wings`, which is no feature of a cuda device; there is `sm_80`, `sm_90a` and the like"
    );
}

/// A call of `add_up` whose second argument is `y`, in memory of this kind, of which every
/// work-item holds an element.
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

/// A call of a callee that reads 64 or 32 elements of an array that the work-items of a sub-group
/// hold.
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

/// The shuffle before a call stands under the conditions of the call.
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

/// Two work-groups meet on an element for values only that the parameter cannot have: of 32 bits,
/// not of 64.
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

#[test]
fn refuses_a_swizzled_argument() {
    let text = "kernel k\narg x: f64[4, 8] in swizzle(1 ^= 0)\narg y: f64[4, 8] out\nfor i in 0..4\n  for j in 0..8\n    \
                s: y[i, j] = x[i, j]\n";
    assert_eq!(
        refusal(Target::C, text),
        "`x` has a swizzle, and nobody passes such an array; give it strides, and swizzle a copy of it"
    );
}

/// Four sub-groups call together: two of eight are no team, and what one of them skips none of them does.
#[test]
fn refuses_a_team_that_is_parted() {
    let team = |outer: &str| {
        format!(
            "kernel k\nparam n: i32\narg x: f64[4, 32] in\narg y: f64[4, 32] inout\narg z: f64[8] out\n\
             callee add_up\n  arg x: f64[4, 32] in\n  arg y: f64[4, 32] inout\n  for w in 0..4 {{l.1}}\n    \
             for l in 0..32 {{l.0}}\n      s: y[w, l] += x[w, l]\n  code cuda (\"add_up({{x[w, l]}}, {{y[w, l]}});\")\n\
             {outer}  call add_up\n    for w in 0..4 {{l.1}}\n      for l in 0..32 {{l.0}}\n        \
             t: y[w, l] += x[w, l]\n"
        )
    };
    let source = |text: &str| {
        let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        generate(&kernel, Target::Cuda, &Options::default()).unwrap_or_else(|e| panic!("{e}")).source
    };
    let all = source(&team("for i in 0..n\n"));
    assert!(all.contains("add_up(x[") && all.contains("__launch_bounds__(128)"), "{all}");
    // eight sub-groups: the meaning, for those that take part
    let more = source(&team("for q in 0..8 {l.1}\n  o: z[q] = 1.0\nfor i in 0..n\n"));
    assert!(!more.contains("add_up(x["), "{more}");
}
