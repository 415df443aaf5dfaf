//! The text format: [`print()`] writes a kernel, [`parse()`] reads it back.
//!
//! The text reads like a loop program. Blocks are indented; the values of tables stand after the
//! body, so that the program reads first.
//!
//! ```text
//! kernel laplace
//!
//! param n_cells: i32
//! arg u: f64[n_dofs] in                     # global; a scalar `in` argument is passed by value
//! arg y: f64[n_dofs] inout
//! arg dof: i32[n_cells, 35] in
//! temp l: f64[35] private
//! temp buf: f64[8, 9] local strides(9, 1) vector(1) storage(shared)
//! table phi: f64[24, 35] global
//! rule square(x) := x*x
//! assume n_cells >= 1
//! assume injective(dof)
//!
//! for cell in 0..n_cells {g.0}
//!   for j in 0..35 {unroll}
//!     gather: l[j] = u[dof[cell, j]] {stage_gather}
//!   for i_o in 0..ceil(n/4)                     # exactly 0 <= i_o and 4*i_o < n
//!     for i_i in 0..min(4, n - 4*i_o)
//!       for k in max(0, i_i - 2)..n where (k + i_i) mod 2 == 0
//!         e: acc[k] = sum(q in 0..24, r in 0..q: phi[q, k]*l[r])
//!   for j_1 where (j_1 >= 0 and j_1 < 3) or (j_1 >= 9 and j_1 < n)
//!     s: y[dof[cell, j_1]] += l[j_1] if j_1 < n {scatter, atomic}
//!
//! table phi = [
//!   0.1, 0.2, ...
//! ]
//! ```
//!
//! | item | form |
//! |---|---|
//! | first line | `kernel name`, with attributes after it, as in `kernel name {resident_groups(4), dynamic_local, ordered_groups, sub_group(64), double_single}`: a compute unit should have registers for that number of groups; all arrays in local memory are parts of one that the launch provides; groups start in order, and one may wait for values of those before it; a sub-group has that number of work-items, else 32; code computes with `f64` as pairs of `f32` |
//! | declaration | `param`, `arg`, `temp`, `table` `name: type[shape]`, then any of `in` `out` `inout`, an address space, `strides(...)`, `order(...)`, `vector(axis)`, `swizzle(axis ^= other)`, `storage(name)` |
//! | loop | `for name in lo..hi`, or `for name where set`, or both, with `descending` after the range and `while condition` after the set; then `{tag}` |
//! | lower bound | an affine expression, `ceil(affine/c)`, or `max(...)` of several |
//! | upper bound (excluded) | the same with `min(...)` |
//! | set | comparisons of affine expressions (`mod` and `floor_div` by constants included) under `and` and `or` |
//! | block | `if condition`, `else if condition`, `else`: the instructions inside have the conditions |
//! | instruction | `name: lhs = rhs` or `lhs += rhs`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=`, `and=`; `let name = rhs`; then `if predicate`; then `{tags}`; without a name it is `s0`, `s1`, as such instructions follow each other and words of the text are free |
//! | callee | `callee name`, then indented a kernel's declarations and body, and `code target needs(feature) memory(y: local) aligned(16) completes("statement") ("line" ...)` with places `{y[0]}`, `{&y[0]}` for arguments; where calls form groups, `completes(commit "statement", wait "statement {n}")` |
//! | function | `function name`, then indented declarations and a body, which `call name(argument = value)` writes out |
//! | call | `call name` around statements that are the callee's; the arguments are printed as a remark |
//! | reduction | `sum`, `product`, `minimum`, `maximum` `(name in lo..hi, ...: body)` |
//! | record | `record Best(value: f64, at: i64)`; then `Best` is a type, `Best(1.0, 2)` a value, `best.at` a field |
//! | operator of records | `operator argmin(a: Best, b: Best) := select(b.value < a.value, b, a) identity Best(inf, 0) {associative, no_nan}`; then `best argmin= Best(x[i], i)` and `argmin(j in 0..n: Best(x[j], j))` |
//! | record taken apart | `(q, r) = value`: the record is stored, and then each field in its place |
//! | function with code | `extern cube_root(x: f64) -> f64 := pow(x, 1.0/3.0) code c ("return cbrt(x);")`, without a target for all others; then `cube_root(x[i])` |
//! | conditional, cast | `select(condition, a, b)`, `f64(i)` |
//! | integer division | `floor_div(a, b)`, `a mod b`, both rounding down |
//! | literals | `3` is an integer, `3.0` a real, also `inf` and `nan`; `-3` is a literal, `-(3)` a negation; `2.0i` is `complex(0.0, 2.0)` |
//!
//! `atomic` among the tags of an update makes it atomic; a label of that name is written
//! `"atomic"`, in quotes, as any tag that is not an identifier.

mod attributes;
mod blocks;
mod callee;
mod cursor;
mod declaration;
mod error;
mod expression;
mod extents;
mod foreign;
mod format;
mod functions;
mod guards;
mod infer;
mod kernels;
mod layout;
mod lex;
mod line;
mod made;
mod named_affine;
mod names;
mod number;
mod parse;
mod print;
mod reads;
mod record;
mod reducing;
mod set;
mod show;
mod show_record;
mod show_set;
mod statement;
mod tuple;
mod unnamed;

pub use error::{ParseError, ParseErrors, edit_distance, suggestion};
pub use format::{FormattedLine, format, formatted_lines, lay_out};
pub use kernels::{parse_all, sections};
pub use layout::NamedLayout;
pub use named_affine::parse_affine;
pub use parse::{parse, parse_callees, parse_typed, parse_with_statements};
pub use print::{PrintOptions, TableStyle, print, print_with};
pub(crate) use show::{Level, level_of};
pub use show::{Shown, show_label};

use crate::kernel::Kernel;

impl Kernel {
    /// The blake3 hash, in hexadecimal, of the kernel's full text.
    ///
    /// Equal canonical kernels have equal hashes, in every run and on every machine.
    pub fn content_hash(&self) -> String {
        blake3::hash(print(self).as_bytes()).to_hex().to_string()
    }
}

#[cfg(test)]
#[allow(clippy::panic)] // how a test fails
mod tests;
