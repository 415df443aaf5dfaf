//! Changes the precision of real variables.

use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, ExprType, Kernel, Real, ScalarType, TableData, VarId, VarKind};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Stores the elements of real variables in another precision; those of arguments are given in it.
///
/// Expressions then have the precision of what they read: of `f32` and `f64` that is `f64`. What
/// does not fit an element any more is rounded by a cast. Entries of tables are rounded.
///
/// # Rewrite
/// ```text
/// arg a: f64[n] in            =>   arg a: f32[n] in
/// temp t: f64[n]                   temp t: f32[n]
///
/// for i in 0..n                    for i in 0..n
///   S: t[i] = 2.0*a[i]               S: t[i] = 2.0*a[i]
/// ```
///
/// # Precondition
/// The variables `V` hold reals. Those that share a buffer are changed together: of two, `v ∈ V` if
/// and only if `w ∈ V`. No call takes one, as a callee has types of its own. No finite entry `t` of
/// a table becomes infinite: `|round(t)| < ∞`.
///
/// # Errors
/// An unknown variable, one of integers, one of a buffer whose others stay, one that a call takes,
/// an entry beyond the precision.
///
/// # Elsewhere
/// Exo `set_precision`; Loopy `add_and_infer_dtypes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPrecision {
    /// The variables.
    pub vars: Vec<String>,
    /// `f32` or `f64`.
    pub precision: Precision,
}

/// A precision of reals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
}

impl Precision {
    /// The type of an element.
    #[must_use]
    pub const fn ty(self) -> ScalarType {
        match self {
            Self::F32 => ScalarType::F32,
            Self::F64 => ScalarType::F64,
        }
    }
}

impl SetPrecision {
    /// Stores these variables in a precision.
    pub fn new(vars: impl IntoIterator<Item = impl Into<String>>, precision: Precision) -> Self {
        Self { vars: vars.into_iter().map(Into::into).collect(), precision }
    }
}

impl fmt::Display for SetPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<String> = self.vars.iter().map(|var| format!("`{var}`")).collect();
        write!(f, "set precision of {} to {}", vars.join(", "), self.precision.ty())
    }
}

/// Integers have no precision.
const REAL: Obligation = Obligation::new("set_precision.real", "the variables hold reals");

/// A buffer has elements of one type.
const BUFFER: Obligation =
    Obligation::new("set_precision.buffer", "variables that share a buffer are changed together");

/// A callee has types of its own.
const CALLEE: Obligation = Obligation::new("set_precision.callee", "no call takes a variable");

/// What was finite stays so.
const FITS: Obligation = Obligation::new("set_precision.fits", "no finite entry of a table becomes infinite");

/// Variables that hold reals.
pub struct Reals {
    vars: Vec<VarId>,
}

impl Primitive for SetPrecision {
    const NAME: &'static str = "set_precision";
    const SUMMARY: &'static str = "Changes the precision of real variables.";

    type Proof = Reals;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[REAL, BUFFER, CALLEE, FITS];
    // f32 has seven digits, and a sum or product rounds again
    const KEEPS: Keeps = Keeps::within(6);
    // a condition on a real may turn, so that results differ by any amount
    const WEIGHT: usize = 0;

    fn check(&self, analysis: &Analysis) -> Result<Reals, Refusal> {
        let kernel = analysis.kernel();
        let vars: Vec<VarId> = self.vars.iter().map(|v| lookup::var(kernel, v)).collect::<Result<_, _>>()?;
        for var in &vars {
            let data = &kernel.vars[*var];
            REAL.require(data.ty.is_real(), || {
                format!("`{}` holds {}, needed a variable of reals", data.name, data.ty)
            })?;
            let alone = data.storage.as_ref().and_then(|storage| {
                let mut sharers = kernel.vars.iter().filter(|(_, v)| v.storage.as_ref() == Some(storage));
                sharers.find(|(other, _)| !vars.contains(other)).map(|(_, v)| &v.name)
            });
            BUFFER.require(alone.is_none(), || {
                let other = alone.map_or("", String::as_str);
                format!("`{}` shares its buffer with `{other}`; change both in one step", data.name)
            })?;
            let of_call = kernel.insns.values().find(|insn| {
                insn.callee.is_some() && insn.reads().into_iter().chain([&insn.lhs]).any(|a| a.var == *var)
            });
            CALLEE.require(of_call.is_none(), || {
                let insn = of_call.map_or("", |insn| insn.name.as_str());
                format!("`{insn}`, which is part of a call, takes `{}`; change it before the call", data.name)
            })?;
            if let VarKind::Table(TableData::Real(entries)) = &data.kind {
                let beyond = entries.iter().map(|x| x.0).find(|x| self.of(*x).is_infinite() && x.is_finite());
                FITS.require(beyond.is_none(), || {
                    let entry = beyond.unwrap_or(f64::NAN);
                    format!("the entry {entry:e} of `{}` is beyond {}", data.name, self.precision.ty())
                })?;
            }
        }
        Ok(Reals { vars })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Reals) {
        for var in &proof.vars {
            let data = &mut kernel.vars[*var];
            data.ty = self.precision.ty();
            if let VarKind::Table(TableData::Real(entries)) = &mut data.kind {
                *entries = entries.iter().map(|x| Real(self.of(x.0))).collect();
            }
        }
        let mut rounded = Vec::new();
        for (id, insn) in kernel.insns.iter() {
            let ty = kernel.vars[insn.lhs.var].ty;
            let found = kernel.type_of(&insn.rhs, &[]);
            // a type that is none is for the verifier to tell
            if ty.part().is_real() && found.is_ok_and(|found: ExprType| !found.stores_in(ty)) {
                rounded.push((id, ty));
            }
        }
        for (id, ty) in rounded {
            let insn = &mut kernel.insns[id];
            let rhs = std::mem::replace(&mut insn.rhs, Expr::Int(0));
            insn.rhs = Expr::Cast(ty, Box::new(rhs));
        }
    }
}

impl SetPrecision {
    /// A number in the precision.
    fn of(&self, x: f64) -> f64 {
        match self.precision {
            Precision::F32 => f64::from(x as f32),
            Precision::F64 => x,
        }
    }
}
