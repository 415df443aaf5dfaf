//! Loops that write one element of an array again and again, which an optimisation of a compiler of C
//! is wrong about ([`Program::repeated_writes`](crate::Program::repeated_writes)).

use crate::ast::{Atomic, Block, Expr, For, IntFn, Name, Place, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// Whether an iteration may write an element of an array that the one before has written, where the
/// loop is the innermost one or compilers may write out those inside: where they have few
/// iterations. Code of callees, which is text, counts as such a loop.
pub(crate) fn has_repeated_writes(block: &Block) -> bool {
    Walk::default().block(block)
}

/// Names and what they are made of.
type Names = BTreeSet<Name>;

#[derive(Default)]
struct Walk {
    /// The loops around, outer first, and whether each may be short.
    loops: Vec<(Name, bool)>,
    /// What the value of a declared name depends on.
    made_of: BTreeMap<Name, Names>,
}

impl Walk {
    fn block(&mut self, block: &Block) -> bool {
        block.iter().any(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Declare(d) => {
                if let Some(value) = &d.value {
                    let names = self.names(value);
                    self.made_of.insert(d.name.clone(), names);
                }
                false
            }
            Stmt::Assign { place, .. } | Stmt::Atomic(Atomic { place, .. }) => self.repeats(place),
            Stmt::Intrinsic(_) => true,
            Stmt::If { body, .. } => self.block(body),
            Stmt::For(f) => {
                let short = self.may_be_short(f);
                self.loops.push((f.name.clone(), short));
                let found = self.block(&f.body);
                self.loops.pop();
                found
            }
            Stmt::Comment(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => false,
        }
    }

    fn repeats(&self, place: &Place) -> bool {
        let Some(offset) = &place.offset else { return false };
        let names = self.names(offset);
        let innermost = self.loops.iter().rposition(|(_, short)| !short).unwrap_or(0);
        self.loops[innermost..].iter().any(|(name, _)| !names.contains(name))
    }

    /// Whether the number of iterations may be a small constant: no name is in one bound alone.
    fn may_be_short(&self, f: &For) -> bool {
        let upper = self.alternatives(&f.upper, IntFn::Min);
        let lower = self.alternatives(&f.lower, IntFn::Max);
        lower.iter().any(|lower| upper.contains(lower))
    }

    /// The long names in each operand of a minimum or a maximum.
    fn alternatives(&self, e: &Expr, function: IntFn) -> Vec<Names> {
        if let Expr::IntCall(f, _, a, b) = e
            && *f == function
        {
            let mut all = self.alternatives(a, function);
            all.extend(self.alternatives(b, function));
            return all;
        }
        let short = |name: &Name| self.loops.iter().any(|(l, short)| *short && l == name);
        vec![self.names(e).into_iter().filter(|name| !short(name)).collect()]
    }

    /// The names that a value depends on: those of loops, and what nobody declares.
    fn names(&self, e: &Expr) -> Names {
        let mut names = Names::new();
        e.for_each(&mut |e| {
            if let Expr::Load(place) = e {
                match self.made_of.get(&place.name) {
                    Some(made_of) => names.extend(made_of.iter().cloned()),
                    None => _ = names.insert(place.name.clone()),
                }
            }
        });
        names
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)] // what a failed test does
    use crate::{Options, Target, generate};
    use kingpost_ir::text::parse;

    fn repeated_writes(body: &str) -> bool {
        let text = format!(
            "kernel k\n\nparam n: i32\narg x: f64[n + 1, n + 1] inout\narg w: f64[4] inout\n\n{body}\n"
        );
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        generate(&kernel, Target::C, &Options::default()).unwrap_or_else(|e| panic!("{e}")).repeated_writes
    }

    #[test]
    fn elements_that_one_loop_writes_again() {
        // the innermost loop, however long
        assert!(repeated_writes("for i in 0..n\n  for j in 0..n\n    s: x[i, 0] += x[i, j]"));
        assert!(repeated_writes("for i in 0..n\n  for j in 0..n\n    s: x[0, i] = x[1, j]"));
        // the loops inside may be written out
        assert!(repeated_writes("for i in 0..n\n  for j in 0..4\n    s: w[j] += x[i, j] if j < n"));
        assert!(repeated_writes(
            "for i in 0..n\n  for j in 4*floor_div(i, 4)..min(n, 4*floor_div(i, 4) + 4)\n    s: x[0, j] *= 2.0"
        ));
        assert!(repeated_writes(
            "for i in 0..4\n  for j in 0..3\n    for k in 0..j + 1\n      s: w[3 - i] = w[3 - i] + x[j, k] if 4 < n"
        ));
    }

    #[test]
    fn other_elements_in_each_iteration() {
        assert!(!repeated_writes("for i in 0..n\n  for j in 0..n\n    s: x[i, j] += 1.0"));
        // an outer loop repeats what a long loop inside goes through
        assert!(!repeated_writes(
            "for t in 0..n\n  for i in 1..n\n    for j in 1..n\n      s: x[i, j] = x[i, j] + x[i, j - 1]"
        ));
        assert!(!repeated_writes("for i in 0..4\n  s: w[3 - i] += 1.0"));
    }
}
