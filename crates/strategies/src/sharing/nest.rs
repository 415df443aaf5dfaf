//! The loops around an instruction, and what its value depends on.

use kingpost_ir::{BinaryOp, Expr, ExprType, InameId, InsnId, Kernel, ScalarType, UnaryOp, VarId};
use kingpost_primitives::polynomial::{Atoms, Sum};
use std::collections::{BTreeMap, BTreeSet};

/// An instruction and the loops around it, counted from the outermost one.
pub(super) struct Nest<'k> {
    pub kernel: &'k Kernel,
    pub id: InsnId,
    pub loops: Vec<InameId>,
    /// How many of the loops are around a write of a variable, too.
    written: BTreeMap<VarId, usize>,
}

impl<'k> Nest<'k> {
    pub fn of(kernel: &'k Kernel, insn: &str) -> Option<Self> {
        let (id, loops) = kernel.schedule().into_iter().find(|(id, _)| kernel.insns[*id].name == insn)?;
        let written = kernel.write_depths(&loops);
        Some(Self { kernel, id, loops, written })
    }

    pub fn value(&self) -> &'k Expr {
        &self.kernel.insns[self.id].rhs
    }

    pub fn loop_name(&self, place: usize) -> &'k str {
        &self.kernel.inames[self.loops[place]].name
    }

    /// The loops that an expression depends on: those that it mentions, and those around what it reads
    /// and its write.
    pub fn depends(&self, e: &Expr) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        e.for_each(&mut |e| {
            if let Expr::Iname(iname) = e {
                found.extend(self.loops.iter().position(|l| l == iname));
            }
            let written = e.as_load().and_then(|access| self.written.get(&access.var));
            found.extend(written.into_iter().flat_map(|depth| 0..*depth));
            if matches!(e, Expr::Rule(..)) {
                found.extend(0..self.loops.len());
            }
        });
        found
    }

    /// The inner loops in which the value is linear, the innermost last: at most two that index what
    /// is written, such that each term has at most one factor that depends on one of them, and none
    /// that depends on both.
    pub fn linear(&self) -> Vec<usize> {
        let insn = &self.kernel.insns[self.id];
        let indexes = |place: &usize| insn.lhs.index.iter().any(|e| e.mentions(self.loops[*place]));
        let inner: Vec<usize> = (0..self.loops.len()).rev().take_while(indexes).take(2).collect();
        let mut atoms = Atoms::default();
        let Ok(sum) = atoms.expand(self.kernel, &insn.rhs) else { return Vec::new() };
        let mut linear: Vec<usize> = inner.into_iter().rev().collect();
        while !linear.is_empty() && !self.is_linear(&atoms, &sum, &linear) {
            linear.remove(0);
        }
        linear
    }

    fn is_linear(&self, atoms: &Atoms, sum: &Sum, linear: &[usize]) -> bool {
        sum.keys().all(|product| {
            let mut met = BTreeSet::new();
            product.iter().all(|factor| {
                let of: Vec<usize> = self.among(linear, atoms.get(factor.atom));
                match of.as_slice() {
                    [] => true,
                    [one] => !factor.divides && met.insert(*one),
                    [_, _, ..] => false,
                }
            })
        })
    }

    /// The loops among `linear` that an expression depends on.
    pub fn among(&self, linear: &[usize], e: &Expr) -> Vec<usize> {
        let depends = self.depends(e);
        linear.iter().copied().filter(|l| depends.contains(l)).collect()
    }

    pub fn text(&self, e: &Expr) -> String {
        self.kernel.show_expr(e).to_string()
    }

    /// The largest subexpressions of the value that hold an operation and do not depend on one of the
    /// loops, each with the outermost such loop. What a condition selects stays where it is.
    pub fn movable(&self) -> Vec<(Expr, usize)> {
        let mut found = Vec::new();
        self.collect_movable(self.value(), &mut found);
        found
    }

    fn collect_movable(&self, e: &Expr, found: &mut Vec<(Expr, usize)>) {
        let computes = matches!(
            e,
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, ..)
                | Expr::Unary(UnaryOp::Neg, _)
        );
        if !computes {
            return;
        }
        let operands: Vec<&Expr> = e.operands().collect();
        let real = self.kernel.type_of(e, &[]) == Ok(ExprType::Scalar(ScalarType::F64));
        let depends = self.depends(e);
        let misses = (0..self.loops.len()).find(|place| !depends.contains(place));
        match misses {
            Some(place) if real && operands.len() == 2 => {
                if !found.iter().any(|(known, _)| known == e) {
                    found.push((e.clone(), place));
                }
            }
            Some(_) | None => operands.into_iter().for_each(|operand| self.collect_movable(operand, found)),
        }
    }
}
