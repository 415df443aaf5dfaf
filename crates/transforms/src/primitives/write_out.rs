//! Writes the iterations of a loop as statements of their own.

use kingpost_analysis::Analysis;
use kingpost_ir::Node;
use kingpost_ir::{Affine, AxisTag, InameId, Kernel};
use kingpost_steps::copy::copy_nodes;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Instances;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{CONSTANT_BOUNDS, check_constant_value};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::{Loop, Made, Statement};
use kingpost_steps::substitute::{simplify_indices, substitute_in_nodes};
use kingpost_steps::tree::{body_of, inames_of, insns_of, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most instructions that a loop is written out to.
pub const MAX_COPIES: i64 = 4096;

/// Writes the iterations of a loop of constant length as statements of their own: the inverse of
/// `roll_insns`.
///
/// # Rewrite
/// ```text
/// for i in 0..n                    =>   for i in 0..n
///   for c in 0..3                         s: y[2*i] += w[0]*a[i, 0]
///     s: y[2*i + c] += w[c]*a[i, c]       s_1: y[2*i + 1] += w[1]*a[i, 1]
///                                         s_2: y[2*i + 2] += w[2]*a[i, 2]
/// ```
/// The statements of the first iteration keep their names; copies have the number of the iteration
/// after theirs, loops inside as well. Unlike a loop that is tagged `unroll`, the copies can be
/// moved and changed one by one: constant indices of tables become literals (`embed_table`).
///
/// # Precondition
/// The loop is a range `lo..lo + n` with a constant `n`, and no axis; `lo` does not change while
/// the kernel runs. The instances and their order stay: `S_k(x)` is `S(x, lo + k)`. There are at
/// most [`MAX_COPIES`] instructions then, and no statement belongs to a call.
///
/// # Errors
/// The iname of a reduction, a loop on an axis, one of unknown length, under conditions or without
/// iterations, bounds that are read from memory, too many copies, a call.
///
/// # Elsewhere
/// Exo `unroll_loop`; MLIR `transform.loop.unroll`; Halide and Loopy unroll when they print.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteOut {
    /// The loop.
    pub iname: String,
}

impl WriteOut {
    /// Writes out `iname`.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into() }
    }
}

impl fmt::Display for WriteOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write out `{}`", self.iname)
    }
}

/// A loop on an axis runs elsewhere.
const NO_AXIS: Obligation = Obligation::new("write_out.no_axis", "the loop has no axis");

/// It is known how many copies there are.
const LENGTH: Obligation =
    Obligation::new("write_out.length", "the loop is a range of constant length, with an iteration");

/// Code of that length can be compiled.
const SIZE: Obligation = Obligation::new("write_out.size", "4096 instructions at most are written");

/// A loop whose iterations are known.
pub struct Iterations {
    iname: InameId,
    lo: Affine,
    count: i64,
    body: Vec<Node>,
}

impl Primitive for WriteOut {
    const NAME: &'static str = "write_out";
    const SUMMARY: &'static str = "Writes the iterations of a loop as statements of their own.";

    type Proof = Iterations;
    type Made = Made;

    const OBLIGATIONS: &'static [Obligation] =
        &[NO_AXIS, LENGTH, SIZE, CONSTANT_BOUNDS, NOT_CALLED, NO_REDUCTION];
    const INSTANCES: Instances = Instances::Copied;

    fn check(&self, analysis: &Analysis) -> Result<Iterations, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let data = &kernel.inames[iname];
        let on_axis = match data.tag {
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled => false,
            AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => true,
        };
        NO_AXIS.require(!on_axis, || {
            format!("`{}` is tagged {}; tag it sequential first", self.iname, data.tag)
        })?;
        let range = data.domain.as_range(iname);
        let known = range.and_then(|(lo, hi)| Some((hi.minus(&lo).as_constant()?, lo)));
        let (count, lo) = LENGTH.find(known, || {
            format!(
                "`{}` is no range of constant length; fix the parameters, or split by a constant",
                kernel.show_domain(iname, &data.domain)
            )
        })?;
        LENGTH.require(count > 0, || format!("`{}` has no iteration; keep the loop", self.iname))?;
        check_constant_value(kernel, iname, &lo)?;
        let body = body_of(kernel, iname)?;
        let insns = insns_of(body);
        let called = insns.iter().map(|i| &kernel.insns[*i]).find(|i| i.callee.is_some());
        NOT_CALLED
            .forbid(called, |insn| format!("`{}` belongs to a call; inline the call first", insn.name))?;
        let size = count.saturating_mul(insns.len() as i64);
        SIZE.require(size <= MAX_COPIES, || {
            format!("{size} instructions, at most {MAX_COPIES} are written; split the loop first")
        })?;
        Ok(Iterations { iname, lo, count, body: body.to_vec() })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Iterations) -> Made {
        let iname = proof.iname;
        let mut made = Made::default();
        let mut copies = Vec::new();
        for k in 1..proof.count {
            let copy = copy_nodes(kernel, &proof.body, &k.to_string());
            let loops = inames_of(kernel, &copy);
            made.loops.extend(loops.iter().map(|l| Loop::named(&kernel.inames[*l].name)));
            let insns = insns_of(&copy);
            made.insns.extend(insns.iter().map(|i| Statement::named(&kernel.insns[*i].name)));
            copies.push(copy);
        }
        copies.insert(0, proof.body.clone());
        for (k, copy) in (0..).zip(&copies) {
            substitute_in_nodes(kernel, copy, iname, &proof.lo.plus_constant(k));
            simplify_indices(kernel, &insns_of(copy));
        }
        replace_loop(&mut kernel.body, iname, &mut |_| copies.concat());
        made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        draw::possible(kernel, draw::loops(kernel).into_iter().map(Self::new).collect(), p)
    }
}
