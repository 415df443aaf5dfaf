//! How entries of a table enter results: as factors of sums, or otherwise.
//!
//! A table that stands for another one up to a tolerance changes sums of products by rounding
//! errors. It may change a quotient by any factor where an entry divides, and a function or a
//! comparison in whatever way. Temporaries that are given entries, not sums of them, count like the
//! table.

use crate::accuracy::scales;
use crate::expected::Expected;
use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_ir::{
    Access, BinaryOp, Expr, InameId, Insn, InsnId, Kernel, MathFn, ScalarType, UnaryOp, UpdateOp, VarId,
    VarKind, Variable,
};
use std::collections::{BTreeMap, BTreeSet};

/// Results are linear in the entries.
pub const LINEAR: Obligation = Obligation::new(
    "entries.linear",
    "entries are used in sums and products alone: none divides, is an operand of a function or is compared",
);

/// How the entries of a table enter results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryUses {
    /// The axes along which each use sums entries.
    summed: BTreeSet<BTreeSet<usize>>,
}

impl EntryUses {
    /// Adds uses by the axes along which they sum entries.
    pub fn extend(&mut self, summed: impl IntoIterator<Item = BTreeSet<usize>>) {
        self.summed.extend(summed);
    }

    /// What the error of each entry is compared with: that of the use which asks for most.
    pub fn scales(&self, values: &[f64], shape: &[usize]) -> Vec<f64> {
        let every_axis = BTreeSet::from([(0..shape.len()).collect()]);
        let summed = if self.summed.is_empty() { &every_axis } else { &self.summed };
        let mut all = vec![f64::INFINITY; values.len()];
        for summed in summed {
            for (scale, own) in all.iter_mut().zip(scales(values, shape, summed)) {
                *scale = scale.min(own);
            }
        }
        all
    }
}

/// The axes of an access along which an instruction sums: those whose index mentions an iname of a
/// sum around, or a loop around an update that the updated element does not mention.
pub fn summed_axes(insn: &Insn, access: &Access, around: &[InameId], sums: &[InameId]) -> BTreeSet<usize> {
    let summed = summed_inames(insn, around, sums);
    let is_summed = |axis: &usize| summed.iter().any(|l| access.index[*axis].mentions(*l));
    (0..access.index.len()).filter(is_summed).collect()
}

fn summed_inames(insn: &Insn, around: &[InameId], sums: &[InameId]) -> BTreeSet<InameId> {
    let adds = insn.update_op() == Some(UpdateOp::Add);
    let written = |l: &InameId| insn.lhs.index.iter().any(|e| e.mentions(*l));
    around.iter().filter(|l| adds && !written(l)).chain(sums).copied().collect()
}

/// The uses of the entries of a table in a kernel without rules.
///
/// # Errors
/// A use that is not linear, with its instruction.
pub fn linear_uses(kernel: &Kernel, table: VarId) -> Result<EntryUses, Refusal> {
    linear_uses_in(kernel, table, &|_| true)
}

/// The same for what some instructions load of the table.
///
/// # Errors
/// A use that is not linear, with its instruction.
pub fn linear_uses_in(
    kernel: &Kernel,
    table: VarId,
    loads: &dyn Fn(InsnId) -> bool,
) -> Result<EntryUses, Refusal> {
    let schedule = kernel.schedule();
    let mut seen = Seen { kernel, table, loads, holders: BTreeMap::new(), uses: EntryUses::default() };
    loop {
        let known = seen.holders.clone();
        for (id, around) in &schedule {
            seen.insn(*id, around)?;
        }
        if seen.holders == known {
            return Ok(seen.uses);
        }
    }
}

struct Seen<'k> {
    kernel: &'k Kernel,
    table: VarId,
    /// Which instructions' loads of the table count.
    loads: &'k dyn Fn(InsnId) -> bool,
    /// The temporaries that hold entries of it, with the loops that chose these.
    holders: BTreeMap<VarId, BTreeSet<InameId>>,
    uses: EntryUses,
}

/// Where an operand stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    id: InsnId,
    insn: &'p Insn,
    around: &'p [InameId],
    /// Whether the result is linear in it.
    linear: bool,
}

impl Seen<'_> {
    fn insn(&mut self, id: InsnId, around: &[InameId]) -> Result<(), Refusal> {
        let insn = &self.kernel.insns[id];
        let place = Place { id, insn, around, linear: false };
        for e in insn.lhs.index.iter().chain(&insn.predicate) {
            self.visit(e, place, &mut Vec::new())?;
        }
        let linear = matches!(insn.update_op(), None | Some(UpdateOp::Add));
        let held = self.visit(&insn.rhs, Place { linear, ..place }, &mut Vec::new())?;
        if held && self.kernel.vars[insn.lhs.var].kind == VarKind::Temporary {
            let mut chosen: BTreeSet<InameId> =
                around.iter().filter(|l| insn.rhs.mentions(**l)).copied().collect();
            let others = insn.reads().into_iter().filter_map(|a| self.holders.get(&a.var));
            chosen.extend(others.flatten());
            self.holders.entry(insn.lhs.var).or_default().extend(chosen);
        }
        Ok(())
    }

    /// Notes the uses in an expression; whether its value is that of entries, not of sums of them.
    fn visit(&mut self, e: &Expr, place: Place<'_>, sums: &mut Vec<InameId>) -> Result<bool, Refusal> {
        let aside = Place { linear: false, ..place };
        match e {
            Expr::Load(access) => {
                for index in &access.index {
                    self.visit(index, aside, sums)?;
                }
                self.load(access, place, sums)
            }
            Expr::Unary(UnaryOp::Neg, a) => self.visit(a, place, sums),
            Expr::Cast(ScalarType::F32 | ScalarType::F64, a) => self.visit(a, place, sums),
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) => {
                Ok(self.visit(a, place, sums)? | self.visit(b, place, sums)?)
            }
            Expr::Binary(BinaryOp::Div, a, b) => {
                self.visit(b, aside, sums)?;
                self.visit(a, place, sums)
            }
            Expr::Select(condition, a, b) => {
                self.visit(condition, aside, sums)?;
                Ok(self.visit(a, place, sums)? | self.visit(b, place, sums)?)
            }
            Expr::Call(MathFn::Fma, operands) => self.all(operands.iter(), place, sums),
            Expr::Reduce(r) => {
                let place = if r.op == UpdateOp::Add { place } else { aside };
                let outer = sums.len();
                sums.extend(&r.inames);
                let held = self.visit(&r.body, place, sums);
                sums.truncate(outer);
                held
            }
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => self.all(e.operands(), aside, sums),
        }
    }

    fn all<'e>(
        &mut self,
        operands: impl Iterator<Item = &'e Expr>,
        place: Place<'_>,
        sums: &mut Vec<InameId>,
    ) -> Result<bool, Refusal> {
        let mut held = false;
        for operand in operands {
            held |= self.visit(operand, place, sums)?;
        }
        Ok(held)
    }

    fn load(&mut self, access: &Access, place: Place<'_>, sums: &[InameId]) -> Result<bool, Refusal> {
        let none = BTreeSet::new();
        let of_table = access.var == self.table && (self.loads)(place.id);
        let held = self.holders.get(&access.var);
        let Some(chosen) = held.or_else(|| of_table.then_some(&none)) else { return Ok(false) };
        LINEAR.require(place.linear, || {
            let name = |var: VarId| &self.kernel.vars[var].name;
            let of = if access.var == self.table {
                format!("an entry of `{}`", name(self.table))
            } else {
                format!("`{}`, which holds entries of `{}`,", name(access.var), name(self.table))
            };
            format!(
                "`{}` divides by {of} or computes a function or a condition with it; keep the table there \
                 (`copy_table`)",
                place.insn.name
            )
        })?;
        let mut summed = summed_axes(place.insn, access, place.around, sums);
        let inames = summed_inames(place.insn, place.around, sums);
        let held = summed.is_empty() && inames.is_disjoint(chosen);
        if held && self.kernel.vars[place.insn.lhs.var].kind == VarKind::Temporary {
            return Ok(true); // what reads the temporary says how the entry is used
        }
        if !held && access.var != self.table {
            // which axes of the table the sum is over is not known here
            summed = (0..self.kernel.vars[self.table].shape.len()).collect();
        }
        self.uses.summed.insert(summed);
        Ok(held)
    }
}

/// The extents of a table, which are constants: the verifier refuses one of another shape.
pub fn constant_shape(kernel: &Kernel, table: &Variable) -> Result<Vec<usize>, Refusal> {
    let extents = table.shape.iter().map(|e| usize::try_from(e.as_constant()?).ok());
    extents.collect::<Option<_>>().expected("constant extent of a table", kernel)
}
