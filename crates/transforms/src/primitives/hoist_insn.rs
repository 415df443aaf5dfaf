//! Moves an instruction that does not depend on a loop in front of it.

use super::Transform;
use super::tag_iname::check_placement;
use crate::condition::range_runs;
use crate::lookup;
use crate::proofs::length::never_empty;
use crate::proofs::stale::{Place, check_unchanged, witness};
use crate::refusal::Refusal;
use crate::tree::{edit_siblings, loop_body, prune_insn};
use purlin_analysis::Analysis;
use purlin_analysis::deps::AccessSite;
use purlin_analysis::deps::pair::{Order, pair_relation};
use purlin_ir::{Atom, BinaryOp, Expr, GuardedRange, Id, InameId, InsnId, Kernel, Node, WriteOp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves an instruction in front of the loop around it, whose iterations it does not depend on.
///
/// # Rewrite
/// ```text
/// for i in 0..n          =>   s: t = 2.0*a[0] if 0 < n
///   s: t = 2.0*a[0]           for i in 0..n
///   u: y[i] = t                 u: y[i] = t
/// ```
/// It runs once instead of once an iteration: fewer instances are counted. If the loop may be empty, the
/// instruction gets its bounds as a condition.
///
/// # Precondition
/// The instruction is a store directly in the loop and does not mention its iname. With `L` the loops around the
/// loop: (1) no write inside the loop reaches an operand,
/// `{ w -> s : L = L', element(w) = element(s), w before s }` is empty; (2) nobody inside the loop needs an older
/// value: no other access textually before `s` touches what `s` writes, in the same iteration of `L`; (3) nobody
/// else inside the loop writes what `s` writes. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown instruction, one outside all loops, an update, an instruction that mentions the loop, a reduction; a
/// loop that may be empty and has no two bounds; shared storage; (1), (2) or (3) broken, with two instances.
///
/// # Elsewhere
/// Exo `lift_alloc` with `fission`; LLVM's loop-invariant code motion; Loopy has none; MLIR
/// `affine-loop-invariant-code-motion`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoistInsn {
    /// The instruction.
    pub insn: String,
}

impl HoistInsn {
    /// Hoists `insn` out of the innermost loop around it.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into() }
    }
}

impl fmt::Display for HoistInsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hoist `{}`", self.insn)
    }
}

impl Transform for HoistInsn {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let Some(id) = kernel.insn(&self.insn) else {
            lookup::Selection::Insn(self.insn.clone()).resolve(kernel)?;
            return Err(Refusal::Other(format!("there is no instruction `{}`", self.insn)));
        };
        let loops = kernel.schedule().into_iter().find(|(i, _)| *i == id).map(|(_, l)| l).unwrap_or_default();
        let Some((iname, around)) = loops.split_last() else {
            return Err(Refusal::Other(format!("no loop is around `{}`", self.insn)));
        };
        self.check_form(kernel, id, *iname)?;
        let analysis = Analysis::of(kernel);
        self.check_accesses(&analysis, id, *iname, around)?;
        let bounds = self.bounds(&analysis, *iname)?;
        // a loop that held nothing else is gone
        let hoisted = edit(kernel, id, *iname, bounds).canonical();
        hoisted.verify()?;
        check_placement(&hoisted)?;
        Ok(hoisted)
    }
}

impl HoistInsn {
    fn check_form(&self, kernel: &Kernel, id: InsnId, iname: InameId) -> Result<(), Refusal> {
        let insn = &kernel.insns[id];
        let refuse = |why: &str| Err(Refusal::Other(format!("`{}` {why}", self.insn)));
        if insn.op != WriteOp::Assign {
            return refuse("is an update, which counts every iteration; only stores are hoisted");
        }
        if kernel.vars[insn.lhs.var].storage.is_some() {
            return refuse(
                "writes to shared storage, where it may not come earlier; give it a buffer of its own",
            );
        }
        let mut bounds = false;
        kernel.inames[iname].domain.for_each_symbol(&mut |a| bounds |= *a == Atom::Var(insn.lhs.var));
        if bounds {
            let name = &kernel.inames[iname].name;
            return refuse(&format!(
                "writes a bound of `{name}`, which is read before; keep it inside the loop"
            ));
        }
        let (mut mentions, mut reduces) = (false, false);
        for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
            e.for_each(&mut |e| match e {
                Expr::Iname(i) => mentions |= *i == iname,
                Expr::Reduce(r) => {
                    reduces = true;
                    mentions |= r.inames.iter().any(|i| kernel.inames[*i].domain.mentions(iname));
                }
                _ => {}
            });
        }
        if mentions {
            let name = &kernel.inames[iname].name;
            return refuse(&format!(
                "mentions `{name}`; only what is the same in every iteration is hoisted"
            ));
        }
        if reduces {
            return refuse("holds a reduction; realise it first");
        }
        Ok(())
    }

    fn check_accesses(
        &self,
        analysis: &Analysis,
        id: InsnId,
        iname: InameId,
        around: &[InameId],
    ) -> Result<(), Refusal> {
        let (kernel, poly, sites) = (analysis.expanded(), analysis.polyhedral(), analysis.all_sites());
        let mut loops = around.to_vec();
        loops.push(iname);
        let inside = |s: &AccessSite| poly.loops(s.insn).starts_with(&loops);
        let start =
            sites.iter().flatten().filter(|s| inside(s)).map(|s| poly.position(s.insn)).min().unwrap_or(0);
        let what = format!("the start of `{}`", kernel.inames[iname].name);
        let insn = &kernel.insns[id];
        for of_var in sites {
            let operands: Vec<_> = of_var
                .iter()
                .filter(|s| s.insn == id && !s.writes())
                .filter(|s| s.bound_of.is_none())
                .collect();
            // only what runs inside this loop comes after its start
            let here: Vec<_> = of_var.iter().filter(|s| inside(s)).cloned().collect();
            let place = Place { loops: around, position: start, what: &what };
            check_unchanged(poly, &here, &operands, place, "keep it inside the loop")?;
        }
        let target = &sites[insn.lhs.var.index()];
        let Some(own) = target.iter().find(|s| s.insn == id && s.writes()) else { return Ok(()) };
        for other in target.iter().filter(|s| s.insn != id && inside(s)) {
            let earlier = poly.position(other.insn) < poly.position(id);
            if !(earlier || other.writes()) {
                continue;
            }
            for (source, sink) in [(other, own), (own, other)] {
                if !other.writes() && std::ptr::eq(source, own) {
                    continue; // a later read sees the same value
                }
                let Some(pair) = pair_relation(poly, source, sink, Order::Within(around)) else { continue };
                if let Some(witness) = witness(kernel, source, sink, &pair.map(poly)?)? {
                    return Err(clash(witness, &what, other.writes()));
                }
            }
        }
        Ok(())
    }

    /// The condition that the loop is not empty, unless it never is.
    fn bounds(&self, analysis: &Analysis, iname: InameId) -> Result<Option<GuardedRange>, Refusal> {
        if never_empty(analysis, iname)? {
            return Ok(None);
        }
        let kernel = analysis.kernel();
        kernel.inames[iname].domain.as_guarded_range(iname).map(Some).ok_or_else(|| {
            Refusal::Other(format!(
                "the loop `{}` may be empty, and its bounds are no simple condition; assume that it is not",
                kernel.inames[iname].name
            ))
        })
    }
}

fn clash(witness: purlin_analysis::Witness, what: &str, writes: bool) -> Refusal {
    let help = if writes {
        "both write it, so the last value would be another one; keep it inside the loop"
    } else {
        "the use would see the new value; keep it inside the loop"
    };
    // the later write would come before the earlier access
    crate::proofs::ORDER.not_proved(crate::refusal::WrongOrder {
        relation: format!("which touches `{}` after {what}", witness.element),
        witness,
        help: help.into(),
    })
}

fn edit(kernel: &Kernel, id: InsnId, iname: InameId, bounds: Option<GuardedRange>) -> Kernel {
    let mut hoisted = kernel.clone();
    if let Some(range) = bounds {
        let runs = range_runs(&range);
        let insn = &mut hoisted.insns[id];
        insn.predicate = Some(match insn.predicate.take() {
            None => runs,
            // the bounds first: the rest may be defined inside the loop only
            Some(p) => Expr::binary(BinaryOp::And, runs, p),
        });
    }
    let is_loop = |n: &Node| matches!(n, Node::Loop(l, _) if *l == iname);
    edit_siblings(&mut hoisted.body, &is_loop, &mut |nodes| {
        if let Some(at) = nodes.iter().position(is_loop) {
            nodes.insert(at, Node::Insn(id));
            if let Node::Loop(_, body) = &mut nodes[at + 1] {
                prune_insn(body, id);
            }
        }
    });
    if loop_body(&hoisted.body, iname).is_some_and(<[Node]>::is_empty) {
        edit_siblings(&mut hoisted.body, &is_loop, &mut |nodes| nodes.retain(|n| !is_loop(n)));
    }
    hoisted
}
