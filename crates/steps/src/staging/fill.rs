//! The loops that fill a temporary, and the reads of it.

use super::loops::Loops;
use crate::condition::condition;
use crate::nest::wrapped;
use crate::proofs::footprint::element_names;
use crate::refusal::Refusal;
use crate::schedule::{Array, Handles, Loop, Made, Statement};
use crate::staging::{CLOSED_FORM, Region, Temporary, Tile};
use crate::tree::edit_body;
use purlin_analysis::Analysis;
use purlin_analysis::polyhedral::Polyhedral;
use purlin_ir::{
    Access, AddressSpace, Affine, Constraint, Domain, Expr, Iname, Insn, InsnId, Kernel, Node, ScalarType,
    VarId, VarKind, Variable, WriteOp,
};
use purlin_isl as isl;
use std::collections::BTreeSet;

/// A temporary and what fills it, for the kernel from which it was planned.
pub struct Filling {
    region: Region,
    tile: Tile,
    temporary: Variable,
    /// They mention one another, and the instruction and the nest them, by the next ids of the
    /// kernel's tables.
    inames: Vec<Iname>,
    insn: Insn,
    nest: Vec<Node>,
}

/// Handles to a temporary and what fills it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The temporary.
    pub temporary: Array,
    /// The loops around the instruction, outer first.
    pub loops: Vec<Loop>,
    /// The instruction that fills the temporary.
    pub statement: Statement,
}

impl Handles for Filled {
    fn list(&self, made: &mut Made) {
        self.temporary.list(made);
        self.loops.list(made);
        self.statement.list(made);
    }
}

impl Temporary<'_> {
    /// Plans the temporary, filled before the region's first read.
    ///
    /// # Errors
    /// Names that are taken or of the wrong number; [`CLOSED_FORM`].
    pub fn plan(
        &self,
        analysis: &Analysis,
        region: Region,
        tile: Tile,
        (ty, space): (ScalarType, AddressSpace),
    ) -> Result<Filling, Refusal> {
        // names are taken and ids are given in a copy; what is new there is what the edit adds
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        let mut draft = kernel.clone();
        let temporary = Variable::new(self.name, ty, VarKind::Temporary, tile.shape(), space);
        let id = draft.vars.push(temporary.clone());
        let loops = if self.work_items.is_empty() {
            tile.box_loops(&mut draft, self.inames, self.name)?
        } else {
            tile.flat_loops(&mut draft, self.work_items, self.name)?
        };
        let from = tile.element_at(&loops.offsets);
        let predicate = restrict(&mut draft, poly, &loops, &tile.conditions, &from)?;
        let lhs = Access::new(id, tile.temporary_at(&loops.offsets));
        let rhs = Expr::load(region.var, tile.array_at(&loops.offsets));
        let (name, tags) = (self.insn_name(), BTreeSet::new());
        let insn = Insn { name, lhs, op: WriteOp::Assign, rhs, predicate, tags, callee: None };
        let nest = wrapped(loops.inames.iter().copied(), vec![Node::Insn(draft.insns.push(insn.clone()))]);
        let inames = draft.inames.values().skip(kernel.inames.len()).cloned().collect();
        Ok(Filling { region, tile, temporary, inames, insn, nest })
    }
}

impl Filling {
    /// Puts the temporary and what fills it into the kernel, and reads it in the region.
    pub fn edit(&self, kernel: &mut Kernel) -> Filled {
        let temporary = kernel.vars.push(self.temporary.clone());
        redirect(kernel, &self.region, &self.tile, temporary);
        for iname in &self.inames {
            kernel.inames.push(iname.clone());
        }
        kernel.insns.push(self.insn.clone());
        let at = self.region.node;
        edit_body(kernel, self.region.at, &mut |body| {
            body.splice(at..at, self.nest.iter().cloned());
        });
        Filled {
            temporary: Array::named(&self.temporary.name),
            loops: self.inames.iter().map(|i| Loop::named(&i.name)).collect(),
            statement: Statement::named(&self.insn.name),
        }
    }

    /// The instructions that read the temporary.
    pub fn readers(&self) -> &[InsnId] {
        &self.region.insns
    }
}

/// Leaves out the elements that do not satisfy the conditions: by the bounds of the innermost loop,
/// or by the predicate that is returned where there is no loop.
fn restrict(
    kernel: &mut Kernel,
    poly: &Polyhedral,
    loops: &Loops,
    conditions: &[Vec<isl::Constraint>],
    elements: &[Affine],
) -> Result<Option<Expr>, Refusal> {
    let names = element_names(elements.len());
    let value = |name: &str| match names.iter().position(|n| n == name) {
        Some(k) => elements.get(k).cloned(),
        None => poly.to_affine(&isl::Affine::name(name)),
    };
    let one = |c: &isl::Constraint| {
        let e = with_values(&c.expr, &value)?;
        Some(match c.kind {
            isl::ConstraintKind::Zero => Constraint::equal(&e, &Affine::default()),
            isl::ConstraintKind::NonNegative => Constraint::le(&Affine::default(), &e),
        })
    };
    let all: Option<Vec<Vec<_>>> = conditions.iter().map(|d| d.iter().map(one).collect()).collect();
    let Some(all) = all else {
        return Err(CLOSED_FORM.undecided("what is read has no closed form; copy the box around it instead"));
    };
    let wanted = Domain::union(all);
    if wanted == Domain::universe() {
        return Ok(None);
    }
    match loops.inames.last() {
        Some(last) => {
            kernel.inames[*last].domain = kernel.inames[*last].domain.intersect(&wanted);
            Ok(None)
        }
        None => Ok(condition(&wanted)),
    }
}

/// An expression by names with a value for each name.
fn with_values(e: &isl::Affine, value: &dyn Fn(&str) -> Option<Affine>) -> Option<Affine> {
    let mut result = Affine::constant(e.constant);
    for (name, c) in &e.terms {
        result = result.plus(&value(name)?.times(*c));
    }
    for (div, c) in &e.divs {
        let floor = with_values(&div.numerator, value)?.floor_div(div.denominator);
        result = result.plus(&floor.times(*c));
    }
    Some(result)
}

/// Reads the temporary instead of the array.
fn redirect(kernel: &mut Kernel, region: &Region, tile: &Tile, temporary: VarId) {
    let mut rewrite = |e: Expr| match e {
        Expr::Load(access) if access.var == region.var => Expr::load(temporary, tile.index(&access.index)),
        other @ (Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_)) => other,
    };
    for insn in &region.insns {
        kernel.insns[*insn].map_expressions(&mut rewrite);
    }
}
