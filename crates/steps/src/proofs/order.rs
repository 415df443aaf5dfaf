//! The proof of every primitive that moves instances: no dependence is turned around.

use super::ORDER;
use crate::proved::Means;
use crate::refusal::{Refusal, WrongOrder};
use kingpost_analysis::deps::{Dependence, DependenceKind};
use kingpost_analysis::polyhedral::{Polyhedral, Side, difference};
use kingpost_analysis::{Analysis, Entries};
use kingpost_ir::{Affine, Id, InameId, InsnId, Kernel};
use kingpost_isl as isl;
use std::collections::HashMap;

/// A kernel before and after its instances are moved.
pub struct Reordering<'a, 'k> {
    /// The kernel before.
    pub before: &'a Analysis<'k>,
    /// The kernel after: the same instructions by name, canonical ids not needed.
    pub after: &'a Kernel,
    /// The value of a loop of `after` at an instance of an instruction of `before`, in terms of the
    /// loops around it there. `None`: the loop of the same name has the same value.
    pub value: &'a dyn Fn(InsnId, InameId) -> Option<Affine>,
    /// Loops of `before` whose iterations move as a whole, bodies intact: reuse of memory across
    /// iterations of all of them does not count.
    pub whole: &'a [InameId],
}

/// Checks that every dependence still runs forward.
///
/// Formula: with
/// `T` the place of an instance in the new order, for every flow, anti and output dependence `D`
/// the set `{ s -> t in D : T(t) <= T(s) }` is empty. Updates that commute may be reordered. A loop
/// reads its bounds when it is entered, also if it holds no instance; loops of `before` and `after`
/// are the same by name.
///
/// # Errors
/// [`ORDER`] not proved, with the smallest pair of that set and what `help` says of its source and
/// sink, or a failure of isl.
pub fn check_order(reordering: &Reordering, help: &dyn Fn(&str, &str) -> String) -> Result<(), Refusal> {
    let after = Entries::of(reordering.after);
    reordering.before.with_entries(|before, entries| {
        let value = |insn, l| (reordering.value)(entries.inside(insn), l);
        check(&Reordering { before, after: &after.kernel, value: &value, whole: reordering.whole }, help)
    })
}

/// As [`check_order`], of kernels in which instructions read the bounds of loops.
fn check(reordering: &Reordering, help: &dyn Fn(&str, &str) -> String) -> Result<(), Refusal> {
    let (before, whole) = (reordering.before, reordering.whole);
    let (orders, kernel) = (Orders::of(reordering), before.kernel());
    let dependences = before.dependences_between(&|a, b| orders.changes(a, b))?;
    if dependences.is_empty() {
        ORDER.holds(Means::Nothing, || {
            "no dependence between statements whose instances change places".into()
        });
    }
    for d in dependences {
        let pair = || pair_text(kernel, d);
        let reuse = !whole.is_empty() && whole.iter().all(|l| d.reuse_across.contains(l));
        if d.kind == DependenceKind::Update || reuse {
            ORDER.holds(if reuse { Means::Reuse } else { Means::Commutes }, pair);
            continue;
        }
        let Some(backward) = orders.backward(d)? else {
            ORDER.holds(Means::Loops, pair);
            continue;
        };
        let witness =
            d.witness(before.kernel(), &backward).map_err(|e| e.asked(|| question(before.kernel(), d)));
        if let Some(witness) = witness? {
            let help = help(&witness.source.insn, &witness.sink.insn);
            let relation = relation_text(d.kind, &witness.element);
            return Err(ORDER.not_proved(WrongOrder { witness, relation, help }));
        }
        ORDER.holds_in(kernel, Means::Empty, pair);
    }
    Ok(())
}

/// A dependence as what is proved of it names it.
fn pair_text(kernel: &Kernel, d: &Dependence) -> String {
    let [source, sink] = [d.source, d.sink].map(|insn| &kernel.insns[insn].name);
    let through = d.through.map_or_else(String::new, |v| format!(" through `{}`", kernel.vars[v].name));
    format!("{} of `{}` from `{source}` to `{sink}`{through}", d.kind, kernel.vars[d.var].name)
}

/// What is asked of a dependence.
fn question(kernel: &Kernel, d: &Dependence) -> String {
    let relation = relation_text(d.kind, &kernel.vars[d.var].name);
    format!(
        "whether `{}` would run before `{}`, {relation}",
        kernel.insns[d.sink].name, kernel.insns[d.source].name
    )
}

/// What the sink does to the source, as a relative clause.
pub fn relation_text(kind: DependenceKind, element: &str) -> String {
    match kind {
        DependenceKind::Flow => format!("which it reads through `{element}`"),
        DependenceKind::Anti => format!("whose operand `{element}` it overwrites"),
        DependenceKind::Output | DependenceKind::Update => format!("whose result `{element}` it overwrites"),
    }
}

/// Both orders, and how the ids of one are found in the other.
struct Orders<'a, 'k> {
    reordering: &'a Reordering<'a, 'k>,
    old: &'a Polyhedral<'k>,
    new: Polyhedral<'a>,
    /// The instruction of the same name after the move.
    insns: Vec<Option<InsnId>>,
    /// The loop of the same name before the move.
    inames: Vec<Option<InameId>>,
}

/// A common loop of the new order: its values at the source and at the sink.
type Advance = (Affine, Affine);

impl<'a, 'k> Orders<'a, 'k> {
    fn of(reordering: &'a Reordering<'a, 'k>) -> Self {
        let Reordering { before, after, .. } = reordering;
        let old = before.polyhedral();
        let before = before.kernel();
        let insns: HashMap<_, _> = after.insns.iter().map(|(id, i)| (i.name.as_str(), id)).collect();
        let inames: HashMap<_, _> = before.inames.iter().map(|(id, i)| (i.name.as_str(), id)).collect();
        Self {
            reordering,
            old,
            new: Polyhedral::new(after),
            insns: before.insns.values().map(|i| insns.get(i.name.as_str()).copied()).collect(),
            inames: after.inames.values().map(|i| inames.get(i.name.as_str()).copied()).collect(),
        }
    }

    /// Whether instances of two instructions may run in another order than before: the common loops
    /// are others, or have other values, or the text is another way round. Symmetric.
    fn changes(&self, a: InsnId, b: InsnId) -> bool {
        let (Some(p), Some(q)) = (self.insns[a.index()], self.insns[b.index()]) else { return true };
        let (old, new) = (self.old.common_loops(a, b), self.new.common_loops(p, q));
        let moved = |l: InameId| [a, b].into_iter().any(|i| (self.reordering.value)(i, l).is_some());
        let same = |(l, m): (&InameId, &InameId)| self.inames[m.index()] == Some(*l) && !moved(*m);
        let text = self.old.position(a).cmp(&self.old.position(b));
        old.len() != new.len()
            || !old.iter().zip(new).all(same)
            || text != self.new.position(p).cmp(&self.new.position(q))
    }

    /// The pairs of a dependence that would run backward; `None` if the new order decides that
    /// there are none.
    fn backward(&self, d: &Dependence) -> Result<Option<isl::Map>, Refusal> {
        let (Some(source), Some(sink)) = (self.insns[d.source.index()], self.insns[d.sink.index()]) else {
            return Ok(None);
        };
        let common = self.new.common_loops(source, sink);
        let at = |l: &InameId| Ok((self.value(d.source, *l)?, self.value(d.sink, *l)?));
        let advances = common.iter().map(at).collect::<Result<Vec<Advance>, Refusal>>()?;
        let forward = self.new.position(source) < self.new.position(sink);
        if self.keeps_order(d, &advances, forward) {
            return Ok(None);
        }
        let mut disjuncts = Vec::new();
        let mut equal = Vec::new();
        for (at_source, at_sink) in advances {
            let (Some(x), Some(y)) =
                (self.old.affine(&at_source, Side::Source), self.old.affine(&at_sink, Side::Sink))
            else {
                continue; // `value` gives symbolic values only
            };
            let step = difference(&y, &x);
            let mut earlier = equal.clone();
            earlier.push(isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &step)));
            disjuncts.push(earlier);
            equal.push(isl::Constraint::zero(step));
        }
        if self.new.position(source) > self.new.position(sink) {
            disjuncts.push(equal);
        }
        if disjuncts.is_empty() {
            return Ok(None);
        }
        let pairs = d.relation_where(&disjuncts);
        Ok(Some(pairs.map_err(|e| e.asked(|| question(&self.old.kernel, d)))?))
    }

    /// The value of a new loop at an instance of an old instruction.
    fn value(&self, insn: InsnId, l: InameId) -> Result<Affine, Refusal> {
        let same = || self.inames[l.index()].map(Affine::iname);
        let value = (self.reordering.value)(insn, l).or_else(same);
        value.filter(|v| self.old.is_symbolic(v)).ok_or_else(|| {
            let name = &self.reordering.after.inames[l].name;
            ORDER.undecided(format!(
                "the new order of `{name}` depends on values read from memory; keep the order"
            ))
        })
    }

    /// Whether the loops that may advance from source to sink are in the new order those of the old
    /// one, or the outermost of them: what came first there comes first here, decided without isl.
    ///
    /// Formula: with `s` the steps of the old loops, not known to be zero, and `t` those of the new
    /// ones, a dependence has `s > 0`, or `s = 0` and the text decides. If `t = s`, then `t > 0`,
    /// or the text decides. If `t` is a prefix of `s`, then `t >= 0`, and where it is zero the new
    /// text decides. If `s` is a prefix of `t` and the text decides nothing, then `s > 0` and so is
    /// `t`.
    fn keeps_order(&self, d: &Dependence, advances: &[Advance], forward: bool) -> bool {
        let span = d.span();
        let common = self.old.common_loops(d.source, d.sink);
        let Some(common) = common.get(span.start..span.end) else { return false };
        let mut old = common.iter().filter(|l| !d.agrees(**l, **l));
        for (x, y) in advances.iter().filter(|(x, y)| !d.agree_on(x, y)) {
            let Some(l) = old.next() else { return !span.textual };
            if x.as_iname() != Some(*l) || y.as_iname() != Some(*l) {
                return false;
            }
        }
        forward || (old.next().is_none() && !span.textual)
    }
}
