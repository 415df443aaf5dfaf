//! Computes the value of an instruction into a temporary first.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, AddressSpace, Expr, Insn, InsnId, Kernel, KernelError, Node, ScalarType, VarKind, Variable,
    WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::width::fits_i32;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Array, Statement};
use kingpost_steps::tree::edit_siblings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Computes the right-hand side of an instruction into a private scalar right before it: so that
/// the value can be expanded, kept elsewhere, and used by other loops.
///
/// # Rewrite
/// ```text
/// s: y[dof[c, i]] += 2.0*t[i]      =>   set_v: v = 2.0*t[i]
///                                       s: y[dof[c, i]] += v
/// ```
///
/// # Precondition
/// The value has the type of what the instruction `s` writes, and no name is taken; if `s` updates
/// an `i32`, the value surely fits one. Nothing runs between the two, `{ w : set before w before s
/// }` is empty, so every operand is the same. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown instruction, a value of another type, an update of an `i32` by a value that may not
/// fit one, a condition, a taken name; a placement that breaks a dependence.
///
/// # Elsewhere
/// Loopy `assignment` of a subexpression; Exo `bind_expr`; Halide a `Func` of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageValue {
    /// The instruction.
    pub insn: String,
    /// Name of the temporary; the instruction that sets it is `set_{temporary}`.
    pub temporary: String,
}

impl StageValue {
    /// Computes the value of `insn` into `temporary` first.
    pub fn new(insn: impl Into<String>, temporary: impl Into<String>) -> Self {
        Self { insn: insn.into(), temporary: temporary.into() }
    }
}

impl fmt::Display for StageValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stage the value of `{}` in `{}`", self.insn, self.temporary)
    }
}

/// Without its condition the value may be undefined.
const UNCONDITIONAL: Obligation =
    Obligation::new("stage_value.unconditional", "the instruction has no condition");

/// The temporary rounds no value that is not rounded today.
const SAME_TYPE: Obligation =
    Obligation::new("stage_value.same_type", "the value has the type of what the instruction writes");

/// An integer is as wide as its operands make it until it is stored; an update joins it before it
/// stores.
const FITS: Obligation =
    Obligation::new("stage_value.fits", "what an update of an `i32` takes surely fits one");

/// An instruction whose value can be stored before it is used.
pub struct Storable(InsnId);

impl Primitive for StageValue {
    const NAME: &'static str = "stage_value";
    const SUMMARY: &'static str = "Computes the value of an instruction into a temporary first.";

    type Proof = Storable;
    type Made = (Array, Statement);

    const OBLIGATIONS: &'static [Obligation] = &[UNCONDITIONAL, SAME_TYPE, FITS];

    fn check(&self, analysis: &Analysis) -> Result<Storable, Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        lookup::free(kernel, &self.temporary)?;
        lookup::free(kernel, &self.setter())?;
        let insn = &kernel.insns[id];
        UNCONDITIONAL.require(insn.predicate.is_none(), || {
            format!(
                "`{}` runs under a condition, and without it its value may be undefined; move the condition to a loop",
                self.insn
            )
        })?;
        let ty = kernel.vars[insn.lhs.var].ty;
        let found = kernel.type_of(&insn.rhs, &[]).map_err(|source| {
            Refusal::Malformed(KernelError::Type { what: format!("`{}`", self.insn), source })
        })?;
        SAME_TYPE.require(found.stored() == Some(ty), || {
            format!("the value of `{}` is not of the type {} that it writes; cast it", self.insn, ty.name())
        })?;
        check_fits(kernel, insn)?;
        Ok(Storable(id))
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Storable) -> (Array, Statement) {
        let id = proof.0;
        let ty = kernel.vars[kernel.insns[id].lhs.var].ty;
        let (space, kind) = (AddressSpace::Private, VarKind::Temporary);
        let var = kernel.vars.push(Variable::new(&self.temporary, ty, kind, [], space));
        let rhs = std::mem::replace(&mut kernel.insns[id].rhs, Expr::load(var, Vec::new()));
        let set = kernel.insns.push(Insn {
            name: self.setter(),
            lhs: Access::scalar(var),
            op: WriteOp::Assign,
            rhs,
            predicate: None,
            tags: BTreeSet::new(),
            callee: None,
        });
        let is_user = |n: &Node| matches!(n, Node::Insn(i) if *i == id);
        edit_siblings(&mut kernel.body, &is_user, &mut |nodes| {
            if let Some(at) = nodes.iter().position(is_user) {
                nodes.insert(at, Node::Insn(set));
            }
        });
        (Array::named(&self.temporary), Statement::named(self.setter()))
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::insns(kernel, |i| i.predicate.is_none()))?, kernel.fresh_name("staged")))
    }
}

impl StageValue {
    /// Name of the instruction that sets the temporary.
    fn setter(&self) -> String {
        format!("set_{}", self.temporary)
    }
}

fn check_fits(kernel: &Kernel, insn: &Insn) -> Result<(), Refusal> {
    let var = &kernel.vars[insn.lhs.var];
    let fits = insn.op == WriteOp::Assign || var.ty != ScalarType::I32 || fits_i32(kernel, &insn.rhs);
    FITS.require(fits, || {
        format!(
            "`{}` updates `{}`, an i32, by a value that may not fit one, as which it would be staged; cast it to i32",
            insn.name, var.name
        )
    })
}
