//! What the parser says, one case for each kind of error.

use super::errors_declared::declaration;
use crate::text::parse;
use insta::assert_snapshot;

/// The errors of a text, as people see them.
#[track_caller]
pub(super) fn errors(text: &str) -> String {
    match parse(text) {
        Ok(kernel) => panic!("parsed:\n{kernel}"),
        Err(errors) => errors.render(text),
    }
}

/// The errors of one instruction in a loop.
#[track_caller]
pub(super) fn insn(statement: &str) -> String {
    errors(&format!(
        "kernel k\nparam n: i32\narg x: f64[n] inout\narg dof: i32[n] in\ntemp length: f64\n\
         rule square(a) := a*a\nfor i in 0..n\n  {statement}"
    ))
}

macro_rules! cases {
    ($($name:ident: $text:expr, @$snapshot:literal;)*) => { $(
        #[test]
        fn $name() {
            assert_snapshot!($text, @$snapshot);
        }
    )* };
}
pub(super) use cases;

cases! {
    no_kernel: errors(""), @r#"
error: the kernel has no name
 --> 1:1
1 | 
  | ^
  = help: start with `kernel name`
"#;
    kernel_not_first: errors("param n: i32\nkernel k"), @r#"
error: `kernel` is not the first statement
 --> 2:1
2 | kernel k
  | ^^^^^^^^
"#;
    kernel_twice: errors("kernel k\nkernel l"), @r#"
error: a second kernel
 --> 2:1
2 | kernel l
  | ^^^^^^^^
  = help: name the one to read, as in `FILE.kingpost#NAME`, or read all with `parse_all`
"#;
    residence_of_none: errors("kernel k {resident_groups(0)}"), @r#"
error: expected a number of work-groups, 1 to 32, found `0`
 --> 1:27
1 | kernel k {resident_groups(0)}
  |                           ^
"#;
    residence_of_many: errors("kernel k {resident_groups(33)}"), @r#"
error: expected a number of work-groups, 1 to 32, found `33`
 --> 1:27
1 | kernel k {resident_groups(33)}
  |                           ^^
"#;
    residence_by_another_name: errors("kernel k {resident(4)}"), @r#"
error: expected `resident_groups(...)`, `dynamic_local`, `ordered_groups`, `sub_group(...)` or `double_single`, found `resident`
 --> 1:11
1 | kernel k {resident(4)}
  |           ^^^^^^^^
"#;
    width_of_no_sub_group: errors("kernel k {sub_group(48)}"), @r#"
error: expected a number of work-items, a power of two from 1 to 128, found `48`
 --> 1:21
1 | kernel k {sub_group(48)}
  |                     ^^
"#;
    width_beyond: errors("kernel k {sub_group(256)}"), @r#"
error: expected a number of work-items, a power of two from 1 to 128, found `256`
 --> 1:21
1 | kernel k {sub_group(256)}
  |                     ^^^
"#;
    width_of_a_callee: errors("kernel k\ncallee c {dynamic_local}\n  arg y: f64[1] out\n  s: y[0] = 1.0"), @r#"
error: expected `sub_group(...)`, found `dynamic_local`
 --> 2:11
2 | callee c {dynamic_local}
  |           ^^^^^^^^^^^^^
"#;
    residence_without_end: errors("kernel k {resident_groups(4)} x"), @r#"
error: expected an operator or the end of the attributes of the kernel, found `x`
 --> 1:31
1 | kernel k {resident_groups(4)} x
  |                               ^
  = help: products are written with `*`; one statement a line
"#;
    reduction_on_work_items: insn("s: x[i] = sum(k in 0..3 {l.0}: x[k])"), @r#"
error: `k` is tagged l.0 and runs inside a reduction, which is accumulated in order
 --> 1:1
1 | kernel k
  | ^
  = help: realise the reduction first, or unroll `k`
"#;
    reduction_in_lanes: insn("s: x[i] = sum(k in 0..3: maximum(l in 0..4 {vector}: x[l]))"), @r#"
error: `l` is tagged vector and runs inside a reduction, which is accumulated in order
 --> 1:1
1 | kernel k
  | ^
  = help: realise the reduction first, or unroll `l`
"#;
    unknown_name: insn("s: x[i] = lenght"), @r#"
error: the name `lenght` is not known
 --> 8:13
8 |   s: x[i] = lenght
  |             ^^^^^^
  = help: did you mean `length`?
"#;
    unknown_without_neighbour: insn("s: x[i] = velocity"), @r#"
error: the name `velocity` is not known
 --> 8:13
8 |   s: x[i] = velocity
  |             ^^^^^^^^
"#;
    unknown_function: insn("s: x[i] = sine(length)"), @r#"
error: the function `sine` is not known
 --> 8:13
8 |   s: x[i] = sine(length)
  |             ^^^^
  = help: did you mean `sin`?
"#;
    unknown_statement: errors("kernel k\nparm n: i32"), @r#"
error: expected a statement, found `parm`
 --> 2:1
2 | parm n: i32
  | ^^^^
  = help: did you mean `param`?
"#;
    no_instruction: insn("x i"), @r#"
error: expected a statement, found `x`
 --> 8:3
8 |   x i
  |   ^
  = help: an instruction is `y[i] = x[i]`, or with a name `s: y[i] = x[i]`
"#;
    unnamed_without_operator: insn("x[i] 1"), @r#"
error: expected `=`, `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=` or `and=`, found `1`
 --> 8:8
8 |   x[i] 1
  |        ^
"#;
    unnamed_comparison: insn("x[i] == 1"), @r#"
error: expected `=`, `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=` or `and=`, found `==`
 --> 8:8
8 |   x[i] == 1
  |        ^^
  = help: `==` compares; write `=` to store
"#;
    unnamed_of_no_variable: insn("z[i] = 1"), @r#"
error: the variable `z` is not known
 --> 8:3
8 |   z[i] = 1
  |   ^
"#;
    unnamed_that_the_verifier_refuses: insn("dof[i] = 1"), @r#"
error: `s0` writes to `dof`, which is an input
 --> 8:3
8 |   dof[i] = 1
  |   ^^^^^^^^^^
  = help: declare it `out`, `inout` or `temp`
"#;
    duplicate_name: insn("x: x[i] = 1"), @r#"
error: `x` names two things
 --> 8:3
8 |   x: x[i] = 1
  |   ^
  = help: rename one
"#;
    duplicate_loop: errors("kernel k\ntemp t: f64\nfor i in 0..3\n  for i in 0..3\n    s: t = 1"), @r#"
error: `i` names two things
 --> 4:7
4 |   for i in 0..3
  |       ^
  = help: rename one
"#;
    keyword_as_name: declaration("temp min: f64"), @r#"
error: `min` is a keyword and cannot be a name
 --> 3:6
3 | temp min: f64
  |      ^^^
  = help: choose another name, or put it in backquotes: `` `min` ``
"#;
    function_as_name: declaration("temp sin: f64"), @r#"
error: `sin` is a function and cannot be a name
 --> 3:6
3 | temp sin: f64
  |      ^^^
  = help: choose another name, or put it in backquotes: `` `sin` ``
"#;
    missing_operator: insn("s: x[i] = length x[i]"), @r#"
error: expected an operator or the end of the instruction, found `x`
 --> 8:20
8 |   s: x[i] = length x[i]
  |                    ^
  = help: products are written with `*`; one statement a line
"#;
    missing_operand: insn("s: x[i] = length + "), @r#"
error: expected an expression, found the end of the line
 --> 8:21
8 |   s: x[i] = length + 
  |                     ^
"#;
    missing_assignment: insn("s: x[i] length"), @r#"
error: expected `=`, `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=` or `and=`, found `length`
 --> 8:11
8 |   s: x[i] length
  |           ^^^^^^
"#;
    comparison_for_assignment: insn("s: x[i] == length"), @r#"
error: expected `=`, `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=` or `and=`, found `==`
 --> 8:11
8 |   s: x[i] == length
  |           ^^
  = help: `==` compares; write `=` to store
"#;
    chained_comparison: insn("s: x[i] = 1 if 0 <= i < n"), @r#"
error: comparisons do not chain
 --> 8:25
8 |   s: x[i] = 1 if 0 <= i < n
  |                         ^
  = help: write `a < b and b < c`
"#;
    unclosed_bracket: insn("s: x[i = 1"), @r#"
error: `[` is never closed
 --> 8:7
8 |   s: x[i = 1
  |       ^
  = help: write `]` before the end of the statement
"#;
    unclosed_bracket_before_more: insn("s: x[i] = (length\n  t: x[i] = 2*leng"), @r#"
error: `(` is never closed
 --> 8:13
8 |   s: x[i] = (length
  |             ^
  = help: write `)` before the end of the statement
error: the name `leng` is not known
 --> 9:15
9 |   t: x[i] = 2*leng
  |               ^^^^
"#;
    wrong_bracket: insn("s: x[i) = 1"), @r#"
error: `)` does not close `[`
 --> 8:7
8 |   s: x[i) = 1
  |       ^^^
  = help: write `]` before it
"#;
    unopened_bracket: insn("s: x[i] = 1)"), @r#"
error: `)` closes nothing
 --> 8:14
8 |   s: x[i] = 1)
  |              ^
  = help: remove it, or write `(` before
"#;
    wrong_rank: insn("s: x[i, i] = 1"), @r#"
error: `x` has 1 axis, found 2 indices
 --> 8:6
8 |   s: x[i, i] = 1
  |      ^^^^^^^
"#;
    array_without_index: insn("s: x[i] = x"), @r#"
error: `x` has 1 axis, found 0 indices
 --> 8:13
8 |   s: x[i] = x
  |             ^
"#;
    wrong_number_of_arguments: insn("s: x[i] = pow(length)"), @r#"
error: `pow` takes 2 arguments, found 1
 --> 8:13
8 |   s: x[i] = pow(length)
  |             ^^^^^^^^^^^
"#;
    rule_without_arguments: insn("s: x[i] = square"), @r#"
error: `square` is a substitution rule and needs its arguments
 --> 8:13
8 |   s: x[i] = square
  |             ^^^^^^
  = help: write `square(...)`
"#;
    variable_called: insn("s: x[i] = length(2)"), @r#"
error: `length` is a variable and cannot be called
 --> 8:13
8 |   s: x[i] = length(2)
  |             ^^^^^^
  = help: index it with `length[...]`, multiply with `*`
"#;
    loop_not_around: errors("kernel k\ntemp t: f64\nfor i in 0..3\n  s: t = 1\nr: t = f64(i)"), @r#"
error: the loop `i` is not around this place
 --> 5:12
5 | r: t = f64(i)
  |            ^
  = help: move the statement into that loop
"#;
    integer_overflow: insn("s: x[i] = 9223372036854775808"), @r#"
error: the integer `9223372036854775808` does not fit 64 bits
 --> 8:13
8 |   s: x[i] = 9223372036854775808
  |             ^^^^^^^^^^^^^^^^^^^
  = help: write a real, such as `1e20`, or a smaller number
"#;
    real_overflow: insn("s: x[i] = 1e999"), @r#"
error: `1e999` is beyond the largest f64
 --> 8:13
8 |   s: x[i] = 1e999
  |             ^^^^^
  = help: write `inf` for infinity
"#;
    bad_number: insn("s: x[i] = 12abc"), @r#"
error: `12abc` is not a number
 --> 8:13
8 |   s: x[i] = 12abc
  |             ^^^^^
  = help: write integers as `12` and reals as `1.5` or `1e-7`; names start with a letter
"#;
    bad_nan: insn("s: x[i] = nan(0x1)"), @r#"
error: `0x1` is not the bits of a nan
 --> 8:17
8 |   s: x[i] = nan(0x1)
  |                 ^^^
  = help: write `nan`, or its bits as in `nan(0x7ff8000000000001)`
"#;
    bad_character: insn("s: x[i] = 1 § 2"), @r#"
error: `§` has no meaning here
 --> 8:15
8 |   s: x[i] = 1 § 2
  |               ^
"#;
    unterminated_string: insn("s: x[i] = 1 {\"tag}"), @r#"
error: this string does not end or holds an unknown escape
 --> 8:16
8 |   s: x[i] = 1 {"tag}
  |                ^^^^^
  = help: strings end with `"` on the same line; inside, write `\"`, `\\` and `\u{..}`
"#;
    atomic_store: insn("s: x[i] = 1 {atomic}"), @r#"
error: a plain store cannot be atomic
 --> 8:16
8 |   s: x[i] = 1 {atomic}
  |                ^^^^^^
  = help: write an update such as `+=`, or `"atomic"` in quotes for a label of that name
"#;
    bad_tag: insn("s: x[i] = 1 {7}"), @r#"
error: expected a tag, found `7`
 --> 8:16
8 |   s: x[i] = 1 {7}
  |                ^
"#;
    wrong_type: insn("s: x[i] = i"), @r#"
error: `s` stores index in `x`, which holds f64
 --> 8:3
8 |   s: x[i] = i
  |   ^^^^^^^^^^^
  = help: cast the value
"#;
    mixed_types: insn("s: x[i] = length*dof[i]"), @r#"
error: `s`: `*` cannot combine f64 and i32
 --> 8:3
8 |   s: x[i] = length*dof[i]
  |   ^^^^^^^^^^^^^^^^^^^^^^^
  = help: cast one of them, for example `f64(i)`
"#;
    predicate_is_number: insn("s: x[i] = 1 if i"), @r#"
error: the predicate of `s` is index, needed a truth value such as `i < n`
 --> 8:3
8 |   s: x[i] = 1 if i
  |   ^^^^^^^^^^^^^^^^
"#;
    written_input: insn("s: dof[i] = 1"), @r#"
error: `s` writes to `dof`, which is an input
 --> 8:3
8 |   s: dof[i] = 1
  |   ^^^^^^^^^^^^^
  = help: declare it `out`, `inout` or `temp`
"#;
}

/// One error for each bad line, and none for what follows from it.
#[test]
fn several_errors() {
    let text = "\
kernel k
param n: i64
arg x: f64[m] inout
arg y: f65[n] inout
temp t: f64

for i in 0..n
  a: x[i] = y[i] + t
  b: t = tt
  for j in 0..
    c: t = f64(j) + 1
  d: t += 1 {atomic
  e: t = (1 + 2
e2: x[0] = $
";
    assert_snapshot!(errors(text), @r#"
error: the name `m` is not known
 --> 3:12
3 | arg x: f64[m] inout
  |            ^
error: `f65` is not a type
 --> 4:8
4 | arg y: f65[n] inout
  |        ^^^
  = help: the types are `f32`, `f64`, `i32`, `i64`, `i16`, `i8`, `u8`, `u16`, `u32`, `u64`, `bool`, `f16`, `bf16`, `c64`, `c128`
error: the name `tt` is not known
 --> 9:10
9 |   b: t = tt
  |          ^^
error: expected an expression, found the end of the line
  --> 10:15
10 |   for j in 0..
   |               ^
error: `{` is never closed
  --> 12:13
12 |   d: t += 1 {atomic
   |             ^
   = help: write `}` before the end of the statement
error: `(` is never closed
  --> 13:10
13 |   e: t = (1 + 2
   |          ^
   = help: write `)` before the end of the statement
"#);
}

#[test]
fn displayed_in_one_line_each() {
    let text = "kernel k\ntemp t: f64\n\ns: t = u\nr: t == 1\n";
    assert_snapshot!(parse(text).expect_err("two errors"), @r#"
4:8: the name `u` is not known
5:6: expected `=`, `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=` or `and=`, found `==`; `==` compares; write `=` to store
"#);
}

/// What other languages write is told from what is meant here.
#[test]
fn what_other_languages_write_is_advised_on() {
    let cases = [
        ("x[i] = x[i]**2", "help: powers are `pow(x, 2.0)`"),
        ("x[i] = x[i]^2", "help: powers are `pow(x, 2.0)`"),
        ("x[i] = x[i] % 2", "help: `x mod y` has the sign of `y`"),
        ("x[i] = x[i] > 0 ? x[i] : 0", "help: write `select(condition, x, y)`"),
        ("x[i] = 2 if x[i] > 0 else 1", "help: write `select(condition, x, y)`"),
        ("x[i] = x[i] + (2 if i > 0 else 1)", "help: write `select(condition, x, y)`"),
        ("x[i] = 1 if i > 0 && i < 5", "help: write `and`"),
        ("x[i] = 1 if i > 0 || i < 5", "help: write `or`"),
        ("x[i] = 1 if !(i > 0)", "help: write `not`"),
        ("x[i] = dof[i] & 1", "help: operations on bits are"),
        ("x[i] = dof[i] << 1", "help: shifts are `shl(x, n)`"),
        ("x[i] = dof[i] >> 1", "help: shifts are `shl(x, n)`"),
        ("x[i] = 1;", "help: statements end with their lines"),
        ("x[i][0] = 1", "help: all indices stand in one pair"),
        ("x[:] = 1", "help: one element is computed at a time"),
        ("x[i] = .5", "help: reals start with a digit"),
        ("x[i] = (double) i", "help: write `let x = ...` for a value"),
        ("t = x[i]", "help: a new value is `let t = ...`"),
        ("x[i] = sum(k in 0..n, x[k])", "help: loops come first"),
        ("x[i] = sum(x[k] for k in 0..n)", "help: loops come first"),
        ("while i < n", "help: a loop that may end early is"),
        ("double t", "help: write `let x = ...` for a value"),
        ("for j in 0..=n", "help: write `0..n + 1`"),
        ("for j in 0..n step 2", "help: loops take all integers"),
        ("for (int j = 0; j < n; j++)", "help: write `for i in 0..n`"),
    ];
    for (statement, help) in cases {
        let found = insn(statement);
        // the advice is that of the first error
        let first = found.split("\n\n").next();
        assert!(first.is_some_and(|error| error.contains(help)), "{statement}\n{found}");
    }
}
