//! Loops over the work-items of a group in C, and what compilers are told of them so that they do not
//! take long for code that gains little.
//!
//! What runs in the last group alone, where that has fewer work-items than the others, is rare: GCC writes
//! rare loops small. As vectors and written out, it would be half of the time that GCC takes for a function:
//! the action of Darcy's equations of RT2 and DG1 1.4 s instead of 0.8, its matrices 1.1 s instead of 0.5
//! (GCC 12, `-O3`, Zen 4, 2026-11-28).

use super::{Printer, innermost, is_width};
use crate::ast::{Block, Expr, For, Op, Stmt};

impl Printer {
    /// Whether a condition holds in the last group alone.
    fn is_of_last_group(&self, condition: &Expr) -> bool {
        let (Expr::Not(full), Some(name)) = (condition, &self.items_of_last) else { return false };
        matches!(&**full, Expr::Binary(Op::Eq, items, _) if **items == Expr::var(name))
    }

    /// Statements under a condition. Without the probability, which `__builtin_expect` leaves at nine tenths,
    /// GCC does not take them for rare.
    pub(super) fn conditional(&mut self, condition: &Expr, body: &Block) {
        let of_last_group = self.is_of_last_group(condition);
        let (before, behind) = match of_last_group {
            true => ("if (__builtin_expect_with_probability(", ", 0, 1.0))"),
            false => ("if (", ")"),
        };
        self.start();
        self.out.push_str(before);
        self.expr(condition, 0);
        self.out.push_str(behind);
        let around = self.in_last_group;
        self.in_last_group |= of_last_group;
        self.braced(body);
        self.in_last_group = around;
    }

    /// What stands before a loop over work-items.
    pub(super) fn work_items_pragma(&mut self, f: &For) {
        let holds_loops = f.body.iter().any(|s| matches!(s, Stmt::For(_)));
        // Compilers write a loop of a vector out, which the pragma would keep them from. Rolled, these loops
        // take GCC a third less time, and the matrices of curl–curl 1.4 times as long (GCC 12, 2026-11-28).
        let short = matches!(f.upper, Expr::Int(n, _) if is_width(n)) && !holds_loops;
        if !short && innermost(f) && self.may_vectorise(&f.body) {
            self.line("#pragma omp simd");
        }
    }
}
