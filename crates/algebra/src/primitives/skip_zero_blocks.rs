//! Adds the terms of one iteration of a loop, where those of all others are zero.

use super::skip_zero_terms::{NO_QUOTIENT, check_zero_terms};
use kingpost_analysis::Analysis;
use kingpost_ir::Node;
use kingpost_ir::{Access, Affine, Atom, AxisTag, InameId, Kernel, UpdateOp, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup::table_factors;
use kingpost_steps::lookup::{self, NO_REDUCTION};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::substitute::substitute_in_nodes;
use kingpost_steps::tree::body_of;
use kingpost_steps::tree::{insns_of, loop_body, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Runs a loop over the blocks of a sum for one block alone, that of another loop, if the table has
/// zeros in all others.
///
/// # Rewrite
/// ```text
/// for b in 0..2                               =>  for b in 0..2
///   for c in 0..2                                   for l in 0..2
///     for l in 0..2                                   s: y[b] += t[b, 2*b + l]*u[2*b + l]
///       s: y[b] += t[b, 2*c + l]*u[2*c + l]
/// ```
/// where `t` is `[[1, 2, 0, 0], [0, 0, 3, 4]]`.
///
/// # Precondition
/// All instructions in the loop add products, each with an entry `T(f)` of a table as a factor, and
/// `T(f(i)) = 0` for all values of the loops where `iname` is not `equal`. The values of `iname` hold
/// those of `equal`, a loop around it; bounds of the loops in `f` are constants. Zero times an infinity
/// or a nan is a nan, which is left out as well; a result of zero may have the other sign. Nothing divides
/// but numbers other than zero: zero over zero is a nan of finite values.
///
/// # Errors
/// Loops of which one is not in the other, have a tag, or bounds that are no constants; an instruction
/// that does not add a product with an entry of a table, or adds a quotient; a number or an entry that is
/// an infinity or a nan; an entry that is not zero, with its place.
///
/// # Source
/// The zero blocks of Luporini et al. 2017, §5, block by block.
///
/// # Elsewhere
/// Compilers of sparse tensors iterate over blocks that are stored (TACO, Kjolstad et al. 2017).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipZeroBlocks {
    /// The loop over blocks.
    pub iname: String,
    /// The loop whose iteration has the number of the block that is not zero.
    pub equal: String,
}

impl SkipZeroBlocks {
    /// Runs `iname` for the iteration of `equal` alone.
    pub fn new(iname: impl Into<String>, equal: impl Into<String>) -> Self {
        Self { iname: iname.into(), equal: equal.into() }
    }
}

impl fmt::Display for SkipZeroBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run `{}` for the block of `{}` alone", self.iname, self.equal)
    }
}

/// The block is one of the loop.
const BLOCK: Obligation = Obligation::new(
    "skip_zero_blocks.block",
    "`equal` is around `iname`, which has no tag, both run between constants, and `iname` has the values of `equal`",
);

/// Zero is neutral for sums, and a factor of zero makes a product zero.
const PRODUCTS: Obligation = Obligation::new(
    "skip_zero_blocks.products",
    "every instruction in the loop adds a product with an entry of a table at indices between constants",
);

/// All terms that go are zero.
const ZERO: Obligation =
    Obligation::new("skip_zero_blocks.zero", "entries are zero where the two loops have different values");

/// Most entries that are looked at.
const MAX_ENTRIES: i64 = 1 << 22;

/// The two loops.
pub struct Block {
    iname: InameId,
    equal: InameId,
    body: Vec<Node>,
}

impl Primitive for SkipZeroBlocks {
    const NAME: &'static str = "skip_zero_blocks";
    const SUMMARY: &'static str = "Runs a loop over blocks of a sum for the one that is not zero.";

    type Proof = Block;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[BLOCK, PRODUCTS, ZERO, NO_QUOTIENT, FINITE, NOT_CALLED, NO_REDUCTION];
    const KEEPS: Keeps = Keeps::NUMBERS.of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Block, Refusal> {
        let kernel = analysis.kernel();
        let [iname, equal] = [&self.iname, &self.equal].map(|name| lookup::tree_loop(kernel, name));
        let (iname, equal) = (iname?, equal?);
        let body = body_of(kernel, iname)?;
        let inside = insns_of(body);
        let schedule = kernel.schedule();
        let loops = schedule.iter().find(|(id, _)| inside.contains(id)).map(|(_, around)| around);
        let place = |of: InameId| loops.and_then(|l| l.iter().position(|i| *i == of));
        let around = place(equal).zip(place(iname)).is_some_and(|(equal, own)| equal < own);
        let holds = range(kernel, iname).zip(range(kernel, equal));
        let holds = holds.is_some_and(|((lo, hi), (first, end))| lo <= first && end <= hi);
        let plain = kernel.inames[iname].tag == AxisTag::Sequential;
        BLOCK.require(around && holds && plain, || {
            format!(
                "`{}` is not inside `{}` between constants that hold its values, without a tag",
                self.iname, self.equal
            )
        })?;
        for id in inside {
            let insn = &kernel.insns[id];
            NOT_CALLED.require(insn.callee.is_none(), || {
                format!("`{}` belongs to a call; inline the call first", insn.name)
            })?;
            let known: Option<Vec<(i64, &Access)>> = match insn.update_op() {
                Some(UpdateOp::Add) => table_factors(kernel, insn)
                    .into_iter()
                    .map(|a| Some((count(kernel, a, iname, equal)?, a)))
                    .collect(),
                _ => None,
            };
            let known = known.filter(|all| !all.is_empty() && all.iter().all(|(n, _)| *n <= MAX_ENTRIES));
            let known = PRODUCTS.find(known, || {
                format!(
                    "`{}` does not add a product with an entry of a table between constants; realise sums and fix \
                     parameters first",
                    insn.name
                )
            })?;
            check_zero_terms(kernel, insn)?;
            let found: Option<Vec<String>> =
                known.iter().map(|(_, access)| not_zero(kernel, access, iname, equal)).collect();
            ZERO.forbid(found.and_then(|found| found.into_iter().next()), |why| why)?;
        }
        Ok(Block { iname, equal, body: body.to_vec() })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Block) {
        substitute_in_nodes(kernel, &proof.body, proof.iname, &Affine::iname(proof.equal));
        replace_loop(&mut kernel.body, proof.iname, &mut |body| body);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for inner in draw::loops(kernel) {
            let is_around = |outer: &String| {
                let body = kernel.iname(outer).and_then(|i| loop_body(&kernel.body, i));
                body.zip(kernel.iname(&inner)).is_some_and(|(body, i)| loop_body(body, i).is_some())
            };
            all.extend(draw::loops(kernel).into_iter().filter(is_around).map(|o| Self::new(&inner, o)));
        }
        draw::possible(kernel, all, p)
    }
}

/// The constants between which a loop runs.
fn range(kernel: &Kernel, iname: InameId) -> Option<(i64, i64)> {
    let (lo, hi) = kernel.inames[iname].domain.as_range(iname)?;
    Some((lo.as_constant()?, hi.as_constant()?))
}

/// The loops that the indices of an access mention, the two first.
fn loops_of(access: &Access, iname: InameId, equal: InameId) -> Option<Vec<InameId>> {
    let mut loops = vec![iname, equal];
    let mut known: BTreeSet<InameId> = loops.iter().copied().collect();
    for index in &access.index {
        for (atom, _) in index.as_affine()?.terms() {
            let Atom::Iname(found) = atom else { return None };
            if known.insert(*found) {
                loops.push(*found);
            }
        }
    }
    Some(loops)
}

/// Values of the loops of an access; none if bounds are no constants.
fn count(kernel: &Kernel, access: &Access, iname: InameId, equal: InameId) -> Option<i64> {
    let mut count: i64 = 1;
    for of in loops_of(access, iname, equal)? {
        let (lo, hi) = range(kernel, of)?;
        count = count.checked_mul((hi - lo).max(0))?;
    }
    Some(count)
}

/// An entry that is not zero where the two loops have different values.
fn not_zero(kernel: &Kernel, access: &Access, iname: InameId, equal: InameId) -> Option<String> {
    let table = &kernel.vars[access.var];
    let VarKind::Table(data) = &table.kind else { return None };
    let loops = loops_of(access, iname, equal)?;
    let index: Vec<Affine> = access.index.iter().filter_map(|e| e.as_affine()).collect();
    let ranges: Vec<(i64, i64)> = loops.iter().filter_map(|l| range(kernel, *l)).collect();
    let mut at: Vec<i64> = ranges.iter().map(|(lo, _)| *lo).collect();
    if ranges.iter().any(|(lo, hi)| lo >= hi) {
        return None;
    }
    loop {
        if at[0] != at[1] {
            let mut value = |atom: &Atom| match atom {
                Atom::Iname(i) => loops.iter().position(|l| l == i).map(|k| at[k]),
                Atom::Var(_) | Atom::Floor(..) => None,
            };
            let place: Vec<Option<i64>> = index.iter().map(|e| e.eval(&mut value)).collect();
            let entry = table.row_major_place(place.iter().copied()).filter(|k| *k < data.len());
            if entry.and_then(|k| data.is_zero(k)) != Some(true) {
                let entry = entry.map_or_else(|| "out of bounds".into(), |k| data.show(k));
                let place: Vec<String> = place.iter().flatten().map(i64::to_string).collect();
                return Some(format!(
                    "`{}[{}]` is {entry}, needed 0; keep the loop, or split it where zeros begin",
                    table.name,
                    place.join(", ")
                ));
            }
        }
        let k = (0..at.len()).rev().find(|k| at[*k] + 1 < ranges[*k].1)?;
        at[k] += 1;
        for (inner, (lo, _)) in at.iter_mut().zip(&ranges).skip(k + 1) {
            *inner = *lo;
        }
    }
}
