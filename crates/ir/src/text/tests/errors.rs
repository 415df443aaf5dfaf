//! What the parser says, one case for each kind of error.

use crate::text::parse;
use insta::assert_snapshot;

/// The errors of a text, as people see them.
#[track_caller]
fn errors(text: &str) -> String {
    match parse(text) {
        Ok(kernel) => panic!("parsed:\n{kernel}"),
        Err(errors) => errors.render(text),
    }
}

/// The errors of one instruction in a loop.
#[track_caller]
fn insn(statement: &str) -> String {
    errors(&format!(
        "kernel k\nparam n: i32\narg x: f64[n] inout\narg dof: i32[n] in\ntemp length: f64\n\
         rule square(a) := a*a\nfor i in 0..n\n  {statement}"
    ))
}

/// The errors of one loop header.
#[track_caller]
fn header(text: &str) -> String {
    errors(&format!("kernel k\nparam n: i32\narg dof: i32[n] in\ntemp t: f64\n{text}\n  s: t = 1\n"))
}

/// The errors of one declaration.
#[track_caller]
fn declaration(text: &str) -> String {
    errors(&format!("kernel k\nparam n: i32\n{text}\n"))
}

macro_rules! cases {
    ($($name:ident: $text:expr, @$snapshot:literal;)*) => { $(
        #[test]
        fn $name() {
            assert_snapshot!($text, @$snapshot);
        }
    )* };
}

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
  = help: put each kernel into a file of its own
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
    instruction_without_name: insn("x[i] = 1"), @r#"
error: expected a statement, found `x`
 --> 8:3
8 |   x[i] = 1
  |   ^
  = help: an instruction needs a name, as in `s: y[i] = x[i]`
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
  = help: choose another name
"#;
    function_as_name: declaration("temp sin: f64"), @r#"
error: `sin` is a function and cannot be a name
 --> 3:6
3 | temp sin: f64
  |      ^^^
  = help: choose another name
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
error: expected `=`, `+=`, `*=`, `min=` or `max=`, found `length`
 --> 8:11
8 |   s: x[i] length
  |           ^^^^^^
"#;
    comparison_for_assignment: insn("s: x[i] == length"), @r#"
error: expected `=`, `+=`, `*=`, `min=` or `max=`, found `==`
 --> 8:11
8 |   s: x[i] == length
  |           ^^
  = help: `==` compares; write `=` to store
"#;
    subtraction_update: insn("s: x[i] -= length"), @r#"
error: expected `=`, `+=`, `*=`, `min=` or `max=`, found `-`
 --> 8:11
8 |   s: x[i] -= length
  |           ^
  = help: write `+= -(...)`
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
    indented_declaration: errors("kernel k\n  param n: i32"), @r#"
error: only what is inside a `for` is indented
 --> 2:3
2 |   param n: i32
  |   ^^^^^
  = help: start the declaration at the left margin
"#;
    indented_without_loop: insn("s: x[i] = 1\n    t: x[i] = 2"), @r#"
error: indented by 4, this block by 2
 --> 9:5
9 |     t: x[i] = 2
  |     ^
  = help: only what is inside a `for` is indented further
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
    array_in_bound: header("for i in 0..dof[0]"), @r#"
error: this is not affine in loops and integer scalars: `dof[...]` is an array element
 --> 5:13
5 | for i in 0..dof[0]
  |             ^^^^^^
  = help: load it into an integer scalar before
"#;
    real_in_bound: header("for i in 0..1.5"), @r#"
error: this is not affine in loops and integer scalars: it holds a real number
 --> 5:13
5 | for i in 0..1.5
  |             ^^^
"#;
    product_in_bound: header("for i in 0..n*n"), @r#"
error: this is not affine in loops and integer scalars: it multiplies two things that are not constant
 --> 5:13
5 | for i in 0..n*n
  |             ^^^
"#;
    minimum_as_lower_bound: header("for i in min(0, n)..n"), @r#"
error: this is not affine in loops and integer scalars: lower bounds are `max` of several, upper bounds `min`
 --> 5:10
5 | for i in min(0, n)..n
  |          ^^^^^^^^^
  = help: other unions go after `where`
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
  = help: the types are `f32`, `f64`, `i32` and `i64`
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
  = help: the types are `f32`, `f64`, `i32` and `i64`
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
5:6: expected `=`, `+=`, `*=`, `min=` or `max=`, found `==`; `==` compares; write `=` to store
"#);
}
