//! Removes an update that adds nothing but zeros.

use super::skip_zero_terms::{NO_QUOTIENT, check_zero_terms};
use kingpost_analysis::Analysis;
use kingpost_ir::{Access, Atom, Expr, InsnId, Kernel, UpdateOp, VarKind};
use kingpost_steps::Means;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup;
use kingpost_steps::lookup::table_factors;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::extent::parametric_extent;
use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::tree::prune_insn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Removes an update whose terms are products with entries of a table that are all zero.
///
/// # Rewrite
/// ```text
/// for j in 0..2                   =>  for j in 0..2
///   s: y += w[j]*x[j]                   t: y += w[j + 2]*x[j]
///   t: y += w[j + 2]*x[j]
/// table w = [0.0, 0.0, 2.0, 1.0]      table w = [0.0, 0.0, 2.0, 1.0]
/// ```
/// A loop that holds nothing else goes with it.
///
/// # Precondition
/// The instruction adds a product, one factor of which is an entry `T(f)` of a table, and with `D` the
/// values of the loops around it, `T(f(i)) = 0` for all `i` in `D`: indices are sums of multiples of
/// loops with constant bounds, and all entries between the smallest and the largest ones are zero.
/// Zero times an infinity or a nan is a nan, which is left out as well; where everything else that
/// is added is a zero, the sum may have the other sign. Nothing divides but numbers other than zero:
/// zero over zero is a nan of finite values.
///
/// # Errors
/// An unknown instruction; one that does not add, or whose value is no product with an entry of a
/// table, or a quotient; a number or an entry that is an infinity or a nan; indices or bounds that
/// are no constants, or an entry that is not zero, with its place.
///
/// # Elsewhere
/// FFCx and TSFC leave out zero columns of tables; Luporini et al. 2017, §5, zero blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropZeroTerms {
    /// The update.
    pub insn: String,
}

impl DropZeroTerms {
    /// Removes the update of this name.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into() }
    }
}

impl fmt::Display for DropZeroTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drop zero terms of `{}`", self.insn)
    }
}

/// Zero is neutral for sums alone.
const ADDS: Obligation = Obligation::new("drop_zero_terms.adds", "the instruction adds to what it updates");

/// A zero factor makes a product zero.
const PRODUCT: Obligation =
    Obligation::new("drop_zero_terms.product", "the value is a product with an entry of a table");

/// Every term is zero.
const ZERO: Obligation = Obligation::new(
    "drop_zero_terms.zero",
    "all entries of a table that the value is multiplied by are zero, in all iterations",
);

impl Primitive for DropZeroTerms {
    const NAME: &'static str = "drop_zero_terms";
    const SUMMARY: &'static str = "Removes an update that adds nothing but zeros.";

    type Proof = InsnId;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[ADDS, PRODUCT, ZERO, NO_QUOTIENT, FINITE, NOT_CALLED];
    const KEEPS: Keeps = Keeps::NUMBERS.of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<InsnId, Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        let insn = &kernel.insns[id];
        ADDS.require(insn.update_op() == Some(UpdateOp::Add), || {
            format!("`{}` does not add to `{}` by `+=`", insn.name, kernel.vars[insn.lhs.var].name)
        })?;
        NOT_CALLED.require(insn.callee.is_none(), || {
            format!("`{}` belongs to a call; inline the call first", insn.name)
        })?;
        let entries = table_factors(kernel, insn);
        PRODUCT.require(!entries.is_empty(), || {
            format!("the value of `{}` is no product with an entry of a table", insn.name)
        })?;
        check_zero_terms(kernel, insn)?;
        let mut why = None;
        for access in entries {
            match not_zero(analysis, access)? {
                None => {
                    ZERO.holds(Means::Form, String::new);
                    return Ok(id);
                }
                Some(found) => drop(why.get_or_insert(found)),
            }
        }
        ZERO.forbid(why, |why| why)?;
        Ok(id)
    }

    fn edit(&self, kernel: &mut Kernel, id: &InsnId) {
        prune_insn(&mut kernel.body, *id);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::insns(kernel, |i| !table_factors(kernel, i).is_empty());
        draw::possible(kernel, all.into_iter().map(Self::new).collect(), p)
    }
}

/// Why not all entries that an access reads are zero; none if they are.
fn not_zero(analysis: &Analysis, access: &Access) -> Result<Option<String>, Refusal> {
    let kernel = analysis.kernel();
    let table = &kernel.vars[access.var];
    let VarKind::Table(data) = &table.kind else { return Ok(None) };
    let mut boxed = Vec::new();
    for (index, extent) in access.index.iter().zip(&table.shape) {
        let (Some(range), Some(extent)) = (range(analysis, index)?, extent.as_constant()) else {
            return Ok(Some(format!("`{}` is read at an index whose bounds are no constants", table.name)));
        };
        boxed.push((range, extent));
    }
    for at in (0..data.len()).filter(|at| data.is_zero(*at) == Some(false)) {
        let mut rest = at as i64;
        let mut place = Vec::new();
        for (_, extent) in boxed.iter().rev() {
            place.insert(0, rest % extent.max(&1));
            rest /= extent.max(&1);
        }
        if place.iter().zip(&boxed).all(|(k, ((lo, hi), _))| (lo..=hi).contains(&k)) {
            let place: Vec<String> = place.iter().map(i64::to_string).collect();
            return Ok(Some(format!(
                "`{}[{}]` is {}, needed 0; keep the term, or split the loops where the zeros end",
                table.name,
                place.join(", "),
                data.show(at)
            )));
        }
    }
    Ok(None)
}

/// Smallest and largest values of an index.
fn range(analysis: &Analysis, index: &Expr) -> Result<Option<(i64, i64)>, Refusal> {
    let Some(index) = index.as_affine() else { return Ok(None) };
    let (mut low, mut high) = (index.constant_term(), index.constant_term());
    for (atom, c) in index.terms() {
        let Atom::Iname(iname) = atom else { return Ok(None) };
        let known = parametric_extent(analysis.polyhedral(), *iname)?;
        let known = known.and_then(|(lo, extent)| Some((lo.as_constant()?, extent.as_constant()?)));
        let Some((first, extent)) = known else { return Ok(None) };
        let ends = [c * first, c * (first + extent - 1)];
        low += ends[0].min(ends[1]);
        high += ends[0].max(ends[1]);
    }
    Ok(Some((low, high)))
}
