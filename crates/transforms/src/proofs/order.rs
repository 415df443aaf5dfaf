//! The proof of every primitive that moves instances: no dependence is turned around.

use crate::error::{Cause, WrongOrder};
use purlin_ir::deps::{self, Dependence, DependenceKind};
use purlin_ir::polyhedral::{Polyhedral, Side, difference};
use purlin_ir::{Affine, InameId, InsnId, Kernel};
use purlin_isl as isl;

/// A kernel before and after its instances are moved.
pub struct Reordering<'a> {
    /// The kernel before.
    pub before: &'a Kernel,
    /// The kernel after: the same instructions by name, canonical ids not needed.
    pub after: &'a Kernel,
    /// The value of a loop of `after` at an instance of an instruction of `before`, in terms of the loops
    /// around it there. `None`: the loop of the same name has the same value.
    pub value: &'a dyn Fn(InsnId, InameId) -> Option<Affine>,
    /// Loops of `before` whose iterations move as a whole, bodies intact: reuse of memory across iterations
    /// of all of them does not count.
    pub whole: &'a [InameId],
}

/// Checks that every dependence still runs forward.
///
/// Formula: with `T` the place of an instance in the new order, for every flow, anti and output dependence
/// `D` the set `{ s -> t in D : T(t) <= T(s) }` is empty. Updates that commute may be reordered.
///
/// # Errors
/// [`Cause::Reordered`] with the smallest pair of that set and what `help` says of its source and sink, or a
/// failure of isl.
pub fn check_order(reordering: &Reordering, help: &dyn Fn(&str, &str) -> String) -> Result<(), Cause> {
    let (old, new) = (Polyhedral::new(reordering.before), Polyhedral::new(reordering.after));
    for d in deps::dependences(reordering.before)? {
        let whole =
            !reordering.whole.is_empty() && reordering.whole.iter().all(|l| d.reuse_across.contains(l));
        if d.kind == DependenceKind::Update || whole {
            continue;
        }
        let Some(backward) = backward(reordering, &old, &new, &d)? else { continue };
        if let Some(witness) = d.witness(reordering.before, &backward)? {
            let help = help(&witness.source.insn, &witness.sink.insn);
            let relation = relation_text(d.kind, &witness.element);
            return Err(Cause::Reordered(Box::new(WrongOrder { witness, relation, help })));
        }
    }
    Ok(())
}

/// What the sink does to the source, as a relative clause.
pub fn relation_text(kind: DependenceKind, element: &str) -> String {
    match kind {
        DependenceKind::Flow => format!("which it reads through `{element}`"),
        DependenceKind::Anti => format!("whose operand `{element}` it overwrites"),
        DependenceKind::Output | DependenceKind::Update => format!("whose result `{element}` it overwrites"),
    }
}

/// The pairs of a dependence that would run backward; `None` if the new order decides that there are none.
fn backward(
    reordering: &Reordering,
    old: &Polyhedral,
    new: &Polyhedral,
    d: &Dependence,
) -> Result<Option<isl::Map>, Cause> {
    let (Some(source), Some(sink)) = (renamed(reordering, d.source), renamed(reordering, d.sink)) else {
        return Ok(None);
    };
    let at = |insn: InsnId, l: InameId, side: Side| {
        let value = (reordering.value)(insn, l).or_else(|| {
            let same = reordering.before.iname(&reordering.after.inames[l].name)?;
            Some(Affine::iname(same))
        });
        value.and_then(|v| old.affine(&v, side)).ok_or_else(|| {
            let name = &reordering.after.inames[l].name;
            Cause::Argument(format!(
                "the new order of `{name}` depends on values read from memory; keep the order"
            ))
        })
    };
    // Steps of the common loops of the new tree, outer first: sink minus source.
    let mut steps = Vec::new();
    for l in new.common_loops(source, sink) {
        steps.push(difference(&at(d.sink, *l, Side::Sink)?, &at(d.source, *l, Side::Source)?));
    }
    let mut disjuncts = Vec::new();
    let mut equal = Vec::new();
    for step in steps {
        let mut earlier = equal.clone();
        earlier.push(isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &step)));
        disjuncts.push(earlier);
        equal.push(isl::Constraint::zero(step));
    }
    if new.position(source) > new.position(sink) {
        disjuncts.push(equal);
    }
    if disjuncts.is_empty() {
        return Ok(None);
    }
    let relation = d.relation()?;
    Ok(Some(relation.intersect(&isl::Map::from_disjuncts(&relation.space()?, &disjuncts)?)?))
}

/// The instruction of the same name after the move.
fn renamed(reordering: &Reordering, insn: InsnId) -> Option<InsnId> {
    reordering.after.insn(&reordering.before.insns[insn].name)
}
