//! What the parser says about loops, declarations and tables, one case for each kind of error.

use super::errors::{cases, errors, insn};
use insta::assert_snapshot;

/// The errors of one loop header.
#[track_caller]
fn header(text: &str) -> String {
    errors(&format!("kernel k\nparam n: i32\narg dof: i32[n] in\ntemp t: f64\n{text}\n  s: t = 1\n"))
}

/// The errors of one declaration.
#[track_caller]
pub(super) fn declaration(text: &str) -> String {
    errors(&format!("kernel k\nparam n: i32\n{text}\n"))
}

cases! {
    indented_declaration: errors("kernel k\n  param n: i32"), @r#"
error: only what is inside a `for` is indented
 --> 2:3
2 |   param n: i32
  |   ^^^^^
  = help: start the declaration at the left margin
"#;
    short_parameter: declaration("param m: i16"), @r#"
error: `m`: a number that is passed by value has 32 bits or more
 --> 3:1
3 | param m: i16
  | ^^^^^^^^^^^^
  = help: declare it as `i32`
"#;
    short_scalar: declaration("arg t: u8 in"), @r#"
error: `t`: a number that is passed by value has 32 bits or more
 --> 3:1
3 | arg t: u8 in
  | ^^^^^^^^^^^^
  = help: declare it as `i32`
"#;
    parameter_of_words: declaration("param m: u32"), @r#"
error: `m`: a parameter is an integer scalar
 --> 3:1
3 | param m: u32
  | ^^^^^^^^^^^^
"#;
    launch_in_a_launch: header("launch a\n  launch b\n    q: t = 1\nlaunch c"), @r#"
error: `b` is a launch inside `a`, which is tagged launch
 --> 6:3
6 |   launch b
  |   ^^^^^^^^
  = help: a launch stands in untagged loops only
"#;
    launch_on_groups: header("for i in 0..n {g.0}\n  launch b\n    q: t = 1\nlaunch c"), @r#"
error: `b` is a launch inside `i`, which is tagged g.0
 --> 6:3
6 |   launch b
  |   ^^^^^^^^
  = help: a launch stands in untagged loops only
"#;
    launch_under_a_bound_of_data: header("temp m: i32\nfor i in 0..m {launch}"), @r#"
error: the domain of `i`, which launches stand in, mentions `m`, which is no parameter
 --> 6:1
6 | for i in 0..m {launch}
  | ^^^^^^^^^^^^^^^^^^^^^^
  = help: keep launches out of that loop
"#;
    instruction_outside_launches: header("s0: t = 2\nlaunch c"), @r#"
error: `s0` is in no launch, and other instructions are
 --> 5:1
5 | s0: t = 2
  | ^^^^^^^^^
  = help: split the launches, or put it into one
"#;
    launch_with_bounds: header("launch c in 0..n"), @r#"
error: expected an operator or the end of the launch, found `in`
 --> 5:10
5 | launch c in 0..n
  |          ^^
  = help: products are written with `*`; one statement a line
"#;
    indented_without_loop: insn("s: x[i] = 1\n    t: x[i] = 2"), @r#"
error: indented by 4, this block by 2
 --> 9:5
9 |     t: x[i] = 2
  |     ^
  = help: only what is inside a `for` or an `if` is indented further
"#;
    indented_between: insn("s: x[i] = 1\n t: x[i] = 2"), @r#"
error: indented by 1, no block around is
 --> 9:2
9 |  t: x[i] = 2
  |  ^
  = help: this block is indented by 2
"#;
    tab: errors("kernel k\ntemp t: f64\nfor i in 0..3\n\ts: t = 1"), @r#"
error: a tab in the indentation
 --> 4:1
4 | 	s: t = 1
  | ^
  = help: indent with spaces
"#;
    loop_without_bounds: header("for i"), @r#"
error: the loop `i` has no bounds
 --> 5:6
5 | for i
  |      ^
  = help: write `i in 0..n`, or `i where ...`
"#;
    loop_with_one_bound: header("for i in n"), @r#"
error: expected `..` and the upper bound, found the end of the line
 --> 5:11
5 | for i in n
  |           ^
"#;
    loop_of_python: header("for i in range(n)"), @r#"
error: bounds are written with `..`
 --> 5:10
5 | for i in range(n)
  |          ^^^^^
  = help: write `0..n` for `range(n)`, and `lo..hi` for `range(lo, hi)`
"#;
    loop_with_colon: header("for i in 0..n:"), @r#"
error: a loop ends without `:`
 --> 5:14
5 | for i in 0..n:
  |              ^
  = help: remove it
"#;
    unknown_axis: header("for i in 0..n {g.3}"), @r#"
error: `g.3` is not a tag of loops
 --> 5:16
5 | for i in 0..n {g.3}
  |                ^^^
  = help: did you mean `g.0`?
"#;
    real_in_bound: header("for i in 0..1.5"), @r#"
error: this is not affine in loops and integer scalars: it holds a real number
 --> 5:13
5 | for i in 0..1.5
  |             ^^^
"#;
    loop_in_its_bound: header("for i in 0..i"), @r#"
error: a bound mentions the loop itself
 --> 5:13
5 | for i in 0..i
  |             ^
  = help: put the condition after `where`
"#;
    bad_ceiling: header("for i in 0..ceil(n)"), @r#"
error: `ceil` in a bound needs a quotient
 --> 5:13
5 | for i in 0..ceil(n)
  |             ^^^^^^^
  = help: write `ceil(n/4)`
"#;
    not_equal_in_set: header("for i in 0..n where i != 2"), @r#"
error: `!=` is not convex
 --> 5:21
5 | for i in 0..n where i != 2
  |                     ^^^^^^
  = help: write `a < b or a > b`
"#;
    number_in_set: header("for i in 0..n where i"), @r#"
error: a set is made of comparisons, `and` and `or`
 --> 5:21
5 | for i in 0..n where i
  |                     ^
"#;
    large_coefficient: header("for i in 0..1099511627777*n"), @r#"
error: the domain of `i` has a coefficient beyond 2^40
 --> 5:1
5 | for i in 0..1099511627777*n
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: use smaller numbers
"#;
    overflow_in_bound: header("for i in 0..4611686018427387904*n*4"), @r#"
error: this is not affine in loops and integer scalars: it holds numbers beyond 2^60
 --> 5:13
5 | for i in 0..4611686018427387904*n*4
  |             ^^^^^^^^^^^^^^^^^^^^^^^
  = help: use smaller ones
"#;
    float_scalar_in_bound: header("for i in 0..t"), @r#"
error: the domain of `i` mentions `t`, which is not known there
 --> 5:1
5 | for i in 0..t
  | ^^^^^^^^^^^^^
  = help: bounds mention loops around, parameters and integer scalars
"#;
    bad_type: declaration("temp t: float"), @r#"
error: `float` is not a type
 --> 3:9
3 | temp t: float
  |         ^^^^^
  = help: the types are `f32`, `f64`, `i32`, `i64`, `i16`, `i8`, `u8`, `u16`, `u32`, `u64`, `bool`, `f16`, `bf16`, `c64`, `c128`
"#;
    missing_direction: declaration("arg x: f64[n]"), @r#"
error: argument `x` has no direction
 --> 3:1
3 | arg x: f64[n]
  | ^^^^^^^^^^^^^
  = help: write `in`, `out` or `inout` after the type of `x`
"#;
    direction_of_temporary: declaration("temp t: f64 in"), @r#"
error: `t` is a temp and has no direction
 --> 3:1
3 | temp t: f64 in
  | ^^^^^^^^^^^^^^
  = help: only `arg` has one
"#;
    unknown_attribute: declaration("temp t: f64 locl"), @r#"
error: `locl` is not an attribute of variables
 --> 3:13
3 | temp t: f64 locl
  |             ^^^^
  = help: did you mean `local`?
"#;
    repeated_attribute: declaration("temp t: f64 local local"), @r#"
error: `local` says a second time what was said
 --> 3:19
3 | temp t: f64 local local
  |                   ^^^^^
  = help: remove one
"#;
    bad_vector_axis: declaration("temp t: f64[4] vector(x)"), @r#"
error: expected the number of an axis, from 0, found `x`
 --> 3:23
3 | temp t: f64[4] vector(x)
  |                       ^
"#;
    argument_in_local_memory: declaration("arg x: f64[n] in local"), @r#"
error: `x` cannot live in local memory: arguments are global
 --> 3:1
3 | arg x: f64[n] in local
  | ^^^^^^^^^^^^^^^^^^^^^^
"#;
    strides_of_other_rank: declaration("temp t: f64[4, 4] strides(1)"), @r#"
error: `t`: as many strides as axes are needed
 --> 3:1
3 | temp t: f64[4, 4] strides(1)
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#;
    temporary_in_shape: declaration("temp c: i32\ntemp t: f64[c]"), @r#"
error: the shape of `t` mentions `c`, which is not known there
 --> 4:1
4 | temp t: f64[c]
  | ^^^^^^^^^^^^^^
  = help: only parameters may stand there
"#;
    rule_parameter_taken: declaration("rule twice(n) := 2*n"), @r#"
error: the parameter `n` has the name of something else
 --> 3:12
3 | rule twice(n) := 2*n
  |            ^
  = help: rename the parameter
"#;
    rule_parameter_twice: declaration("rule twice(a, a) := 2*a"), @r#"
error: `a` names two parameters
 --> 3:15
3 | rule twice(a, a) := 2*a
  |               ^
  = help: rename one
"#;
    rule_of_later_rule: declaration("rule a(x) := b(x)\nrule b(x) := x"), @r#"
error: rule `a` uses a rule that is not before it
 --> 3:1
3 | rule a(x) := b(x)
  | ^^^^^^^^^^^^^^^^^
"#;
    assumption_of_array: declaration("arg x: f64[n] in\nassume x[0] >= 1"), @r#"
error: `x[...]` is an array element
 --> 4:8
4 | assume x[0] >= 1
  |        ^^^^^^^^^
  = help: load it into an integer scalar before
"#;
    assumption_of_two: declaration("assume n >= 1 and n <= 4"), @r#"
error: an assumption is one comparison
 --> 3:8
3 | assume n >= 1 and n <= 4
  |        ^^^^^^^^^^^^^^^^^
  = help: write several `assume` lines
"#;
    injective_scalar: declaration("assume injective(n)"), @r#"
error: `n` is not an array of integers
 --> 3:18
3 | assume injective(n)
  |                  ^
"#;
    ascending_axes: declaration("arg m: i32[n, 2] in\nassume ascending(m)"), @r#"
error: `m` is not an array of integers of one axis
 --> 4:18
4 | assume ascending(m)
  |                  ^
"#;
    outside_of_reals: declaration("arg x: f64[n] in\nassume outside(x, 0, n)"), @r#"
error: `x`: entries outside a range are those of an array of integers
 --> 4:16
4 | assume outside(x, 0, n)
  |                ^
"#;
    own_numbers_of_one_axis: declaration("arg m: i32[n] in\nassume outside(m, 0, n, 0)"), @r#"
error: `m`: numbers that a row has alone are in the last of two axes, of constant length
 --> 4:16
4 | assume outside(m, 0, n, 0)
  |                ^
"#;
    own_numbers_of_no_column: declaration("arg m: i32[n, 2] in\nassume outside(m, 0, n, 2)"), @r#"
error: `m`: numbers that a row has alone are in the last of two axes, of constant length
 --> 4:16
4 | assume outside(m, 0, n, 2)
  |                ^
"#;
    range_of_a_result: declaration("arg m: i32[n, 2] in\narg k: i32 out\nassume outside(m, k, n)"), @r#"
error: `k`: a range is one of parameters and of integers that are inputs
 --> 5:16
5 | assume outside(m, k, n)
  |                ^
"#;
    symmetric_axis_twice: declaration("arg x: f64[n] in\nassume symmetric(x, 0, 0)"), @r#"
error: these axes are no symmetry of `x`
 --> 4:18
4 | assume symmetric(x, 0, 0)
  |                  ^
  = help: name each axis once, such as `symmetric(a, mirrored 0)` or `symmetric(a, 1, 0)`
"#;
    antisymmetric_integers: declaration("arg x: i32[n] in\nassume antisymmetric(x, mirrored 0)"), @r#"
error: `x` is not an array of reals
 --> 4:22
4 | assume antisymmetric(x, mirrored 0)
  |                      ^
"#;
    symmetric_without_an_axis: declaration("arg x: i32[n] in\nassume symmetric(x, mirrored)"), @r#"
error: expected the number of an axis, perhaps after `mirrored`, found `)`
 --> 4:29
4 | assume symmetric(x, mirrored)
  |                             ^
"#;
    table_without_values: declaration("table phi: f64[2]"), @r#"
error: table `phi` has no values
 --> 3:7
3 | table phi: f64[2]
  |       ^^^
  = help: add `table phi = [...]` after the body
"#;
    table_with_too_few_values: declaration("table phi: f64[2, 2]\ntable phi = [1, 2, 3]"), @r#"
error: table `phi` has 3 values, its shape needs 4
 --> 4:7
4 | table phi = [1, 2, 3]
  |       ^^^
"#;
    table_with_reals_for_integers: declaration("table phi: i32[2]\ntable phi = [1, 2.5]"), @r#"
error: expected an integer, as the table holds i32, found `2.5`
 --> 4:17
4 | table phi = [1, 2.5]
  |                 ^^^
"#;
    table_beyond_its_type: declaration("table phi: i32[2]\ntable phi = [1, 2147483648]"), @r#"
error: the integer `2147483648` does not fit i32
 --> 4:17
4 | table phi = [1, 2147483648]
  |                 ^^^^^^^^^^
"#;
    table_with_complex_numbers_for_reals: declaration("table phi: f64[1]\ntable phi = [complex(1, 2)]"), @r#"
error: expected a number, found `complex`
 --> 4:14
4 | table phi = [complex(1, 2)]
  |              ^^^^^^^
"#;
    table_with_half_a_complex_number: declaration("table phi: c64[1]\ntable phi = [complex(1)]"), @r#"
error: expected `,` after a part of the number, found `)`
 --> 4:23
4 | table phi = [complex(1)]
  |                       ^
"#;
    table_with_a_part_beyond_its_type: declaration("table phi: c64[1]\ntable phi = [complex(0.0, -1e39)]"), @r#"
error: `1e39` is beyond the largest f32
 --> 4:28
4 | table phi = [complex(0.0, -1e39)]
  |                            ^^^^
  = help: write `inf` for infinity
"#;
    table_with_an_imaginary_number_beyond_its_type: declaration("table phi: c64[1]\ntable phi = [1e39i]"), @r#"
error: `1e39i` is beyond the largest f32
 --> 4:14
4 | table phi = [1e39i]
  |              ^^^^^
  = help: write `complex(0.0, inf)` for infinity
"#;
    table_beyond_f32: declaration("table phi: f32[2]\ntable phi = [1, 1e39]"), @r#"
error: `1e39` is beyond the largest f32
 --> 4:17
4 | table phi = [1, 1e39]
  |                 ^^^^
  = help: write `inf` for infinity
"#;
    table_with_a_word: declaration("table phi: f64[2]\ntable phi = [1, x]"), @r#"
error: expected a number, found `x`
 --> 4:17
4 | table phi = [1, x]
  |                 ^
"#;
    table_twice: declaration("table phi: f64[1]\ntable phi = [1]\ntable phi = [1]"), @r#"
error: table `phi` has its values already
 --> 5:7
5 | table phi = [1]
  |       ^^^
"#;
    table_of_no_table: declaration("table n = [1]"), @r#"
error: `n` is not a table
 --> 3:7
3 | table n = [1]
  |       ^
  = help: declare it with `table n: ...`
"#;
    table_abridged: declaration("table phi: f64[9]\ntable phi = [1, ... 9 values, blake3 0]"), @r#"
error: the values of table `phi` are abridged
 --> 4:17
4 | table phi = [1, ... 9 values, blake3 0]
  |                 ^^^
  = help: print the kernel with its tables in full
"#;
}

/// What does not go together without a cast, and the cast that is named.
#[test]
fn types_that_need_a_cast() {
    let cannot =
        |op: &str, left: &str, right: &str| format!("error: `s`: `{op}` cannot combine {left} and {right}");
    let needs =
        |op: &str, needed: &str, found: &str| format!("error: `s`: `{op}` needs {needed}, found {found}");
    for (statement, message, help) in [
        ("r[0] = w[0] + x[0]", cannot("+", "u32", "i32"), "cast one of them, for example `u32(i)`"),
        ("r[0] = v[0]*x[0]", cannot("*", "u64", "i32"), "cast one of them, for example `u64(i)`"),
        ("w[0] = w[0] + i", cannot("+", "u32", "index"), "cast one of them, for example `u32(i)`"),
        ("w[0] = w[0] + -1", cannot("+", "u32", "integer literal"), "cast one of them, for example `u32(i)`"),
        (
            "w[0] = w[0] + 4294967296",
            cannot("+", "u32", "integer literal"),
            "cast one of them, for example `u32(i)`",
        ),
        ("z[0] = z[0]*w[0]", cannot("*", "f64", "u32"), "cast one of them, for example `u32(i)`"),
        (
            "x[0] = i32(b[0] + b[0])",
            cannot("+", "truth value", "truth value"),
            "cast one of them, for example `i32(b)`",
        ),
        ("w[0] = -1", "error: `s` stores integer literal in `w`, which holds u32".into(), "cast the value"),
        ("w[0] = x[0]", "error: `s` stores i32 in `w`, which holds u32".into(), "cast the value"),
        ("w[0] = v[0]", "error: `s` stores u64 in `w`, which holds u32".into(), "cast the value"),
        ("q[0] = r[0]", "error: `s` stores i64 in `q`, which holds u8".into(), "cast the value"),
        ("b[0] = 1", "error: `s` stores integer literal in `b`, which holds bool".into(), "cast the value"),
        (
            "b[0] += b[0]",
            "error: `s` updates `b`, which holds bool, by `+=`, which joins numbers".into(),
            "use another operator",
        ),
        (
            "x[0] or= b[0]",
            "error: `s` updates `x`, which holds i32, by `or=`, which joins truth values".into(),
            "use another operator",
        ),
        ("z[w[0]] = 0.0", needs("z", "integer indices", "u32"), ""),
        ("x[0] = bits(x[0])", needs("bits", "a `u32` or a `u64`", "i32"), ""),
        ("b[0] = bool(x[0])", needs("bool", "no cast but `!= 0`", "i32"), ""),
        ("z[0] = bit_and(z[0], 1)", needs("bit_and", "integer operands", "f64"), ""),
        ("x[0] = sum(k in 0..n: b[k])", needs("sum", "a number", "truth value"), ""),
        ("b[0] = any(k in 0..n: x[k])", needs("any", "a truth value", "i32"), ""),
        ("c[0] = c[0] + i", cannot("+", "c64", "index"), "for example `f64(i)`"),
        ("z[0] = c[0]", "error: `s` stores c64 in `z`, which holds f64".into(), "cast the value"),
        ("z[0] = f64(c[0])", needs("f64", "a real number, such as `real(z)` or `abs(z)`", "c64"), ""),
        (
            "b[0] = c[0] < c[1]",
            needs("<", "real operands: complex numbers have no order, `abs(z)` and `real(z)` have", "c64"),
            "",
        ),
        (
            "c[0] = min(c[0], 1.0)",
            needs("min", "real operands: complex numbers have no order, `abs(z)` and `real(z)` have", "c64"),
            "",
        ),
        (
            "c[0] = c[0] mod 2.0",
            needs("mod", "real operands: complex numbers have no order, `abs(z)` and `real(z)` have", "c64"),
            "",
        ),
        (
            "c[0] = maximum(k in 0..n: c[k])",
            needs("maximum", "real numbers: complex numbers have no order", "c64"),
            "",
        ),
        ("c[0] = floor(c[0])", needs("floor", "real arguments", "c64"), ""),
        ("z[0] = abs(z[0])", needs("abs", "a complex argument (a real has `fabs`)", "f64"), ""),
        ("c[0] = complex(c[0], 1.0)", needs("complex", "real arguments", "c64"), ""),
        (
            "c[0] = complex(z[0], 1.0)",
            "error: `s` stores c128 in `c`, which holds c64".into(),
            "cast the value",
        ),
        (
            "c[0] max= c[1]",
            "error: `s` updates `c`, which holds c64, by `max=`, which joins numbers with an order".into(),
            "use another operator",
        ),
        ("w[0] = w[0]/w[0]", needs("/", "real operands (integers use floor_div)", "u32"), ""),
    ] {
        let found = errors(&format!(
            "kernel k\nparam n: i32\narg w: u32[n] inout\narg v: u64[n] inout\narg x: i32[n] inout\n\
             arg q: u8[n] inout\narg r: i64[n] inout\narg z: f64[n] inout\narg b: bool[n] inout\n\
             arg c: c64[n] inout\n\
             for i in 0..n\n  s: {statement}\n"
        ));
        assert!(found.starts_with(&message) && found.contains(help), "{statement}\n{message}\n{found}");
    }
}
