//! The proof that temporaries may share a buffer: while a value of one is alive, nothing else is
//! written to its place.
//!
//! Dependences know variables, not buffers, so that any step could bring two lives together, and so
//! can the text of a kernel: the proof is part of every placement, and of every step of a recipe.

use crate::Analysis;
use crate::deps::Dependence;
use crate::deps::pair::Span;
use crate::placement::axes::{Axis, LaunchAxes};
use crate::placement::places::place;
use crate::placement::slices::sliced_axes;
use crate::polyhedral::Polyhedral;
use crate::question::{Linear, NothingBetween, Pairs};
use crate::witness::Witness;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel, VarKind};
use kingpost_isl as isl;

/// Why temporaries may not share a buffer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// They are not of a kind that can share, whatever their lives.
    #[error("{0}")]
    Unfit(String),
    /// A value of one is alive when another is written.
    #[error("{found}; {HELP}")]
    Alive {
        /// The write of the value and its last read.
        witness: Box<Witness>,
        /// What was found, with both instances.
        found: String,
    },
    /// isl failed.
    #[error("{0}")]
    Isl(#[from] isl::IslError),
}

impl StorageError {
    /// What to try when a value is alive.
    pub const HELP: &'static str = HELP;
}

const HELP: &str = "give them storage of their own, or keep their uses apart";

impl Analysis<'_> {
    /// Checks every group of temporaries that share a buffer: while a value of one is alive, no
    /// other is written.
    ///
    /// # Errors
    /// Types or address spaces that differ, memory that cannot be shared, or two instances between
    /// which another sharer is written.
    pub fn check_storage(&self) -> Result<(), StorageError> {
        if self.facts.storage.get().is_none() {
            check_buffers(self)?;
            self.facts.storage.get_or_init(|| ());
        }
        Ok(())
    }
}

/// Checks every group of temporaries that share a buffer.
///
/// Formula: for `u`, `v` in a group, `D` the flow and update dependences through `u`, `X` the
/// writes of `v` and `p` the place that a write touches, `{ w -> r in D : exists x in X : w before
/// x before r, p(w) = p(x) }` is empty. A place is an element of the buffer of a work-item in
/// private memory, of a work-group in local memory; one that is not affine is any. In private
/// memory, "before" is the sequential order, of which every work-item runs a part. In local memory
/// it leaves the loops on axes out (work-items run side by side; generated code separates accesses
/// of different sharers by barriers, which keep what remains of the order), and instances of one
/// instruction count as running at once; without loops on axes it is the sequential order.
///
/// # Errors
/// Types or address spaces that differ, memory that cannot be shared, or two instances between
/// which another sharer is written.
fn check_buffers(analysis: &Analysis) -> Result<(), StorageError> {
    let kernel = analysis.kernel();
    let sharers: Vec<_> = kernel.vars.ids().filter(|v| kernel.vars[*v].storage.is_some()).collect();
    if sharers.len() < 2 {
        return Ok(());
    }
    let poly = analysis.polyhedral();
    for u in &sharers {
        for v in sharers.iter().filter(|v| *v != u && kernel.vars[**v].storage == kernel.vars[*u].storage) {
            check_kind(poly, *u, *v)?;
            let through = analysis.dependences_of(&|var| var == *u)?;
            for d in through.into_iter().filter(|d| d.carries_value()) {
                check_life(analysis, d, *v)?;
            }
        }
    }
    Ok(())
}

/// Equal types and address spaces, in memory that a buffer can stand for.
fn check_kind(poly: &Polyhedral, u: VarId, v: VarId) -> Result<(), StorageError> {
    let kernel = &*poly.kernel;
    let (a, b) = (&kernel.vars[u], &kernel.vars[v]);
    let refuse = |why: String| Err(StorageError::Unfit(why));
    if a.kind != VarKind::Temporary {
        return refuse(format!("`{}` is no temporary, and only temporaries share storage", a.name));
    }
    if a.ty != b.ty || a.space != b.space {
        return refuse(format!(
            "`{}` is {} in {} memory and `{}` is {} in {} memory; only equal ones share storage",
            a.name,
            a.ty,
            a.space.name(),
            b.name,
            b.ty,
            b.space.name()
        ));
    }
    if !matches!(a.space, AddressSpace::Local | AddressSpace::Private) {
        return refuse(format!(
            "`{}` is in {} memory; only local and private temporaries share storage",
            a.name,
            a.space.name()
        ));
    }
    for (id, iname) in kernel.inames.iter() {
        if iname.domain.any_symbol(&mut |atom| *atom == Atom::Var(u)) {
            return refuse(format!(
                "the bounds of `{}` mention `{}`, which needs a place of its own",
                iname.name, a.name
            ));
        }
        let inside = |insn: &InsnId| poly.loops(*insn).contains(&id) && uses(kernel, *insn, u);
        if iname.tag == AxisTag::Vector && kernel.insns.ids().any(|i| inside(&i)) {
            return refuse(format!(
                "`{}` is used in the lanes of `{}`, which run together; give it storage of its own",
                a.name, iname.name
            ));
        }
    }
    Ok(())
}

fn uses(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    let insn = &kernel.insns[insn];
    insn.accesses(var)
}

/// `{ w -> r in D : exists x in X : w before x before r }` is empty.
fn check_life(analysis: &Analysis, d: &Dependence, other: VarId) -> Result<(), StorageError> {
    let (poly, kernel) = (analysis.polyhedral(), analysis.expanded());
    let places = Places::of(analysis, d);
    let at_once = kernel.vars[d.var].space == AddressSpace::Local
        && kernel.inames.values().any(|i| matches!(i.tag, AxisTag::Group(_) | AxisTag::Local(_)));
    for (x, insn) in kernel.insns.iter().filter(|(_, i)| i.lhs.var == other) {
        if is_apart(poly, d, x, at_once) {
            continue;
        }
        let (Some(first), Some(second)) =
            (before(poly, d.source, x, at_once), before(poly, x, d.sink, at_once))
        else {
            continue;
        };
        let first = Pairs { same: places.same(x), ..first };
        let question = NothingBetween { relation: d.told().clone(), first, second };
        if analysis.answers().between.answer(&question)? {
            continue;
        }
        let Some(witness) = d.witness(kernel, &d.name(&question.pairs()?)?)? else { continue };
        let found = format!(
            "`{}` is alive from {} to {}, and `{}` writes `{}` in between",
            witness.element, witness.source, witness.sink, insn.name, kernel.vars[other].name
        );
        return Err(StorageError::Alive { witness: Box::new(witness), found });
    }
    Ok(())
}

/// The place that the source of a dependence writes.
struct Places<'a, 'k> {
    analysis: &'a Analysis<'k>,
    d: &'a Dependence,
    axes: LaunchAxes,
}

impl<'a, 'k> Places<'a, 'k> {
    fn of(analysis: &'a Analysis<'k>, d: &'a Dependence) -> Self {
        Self { analysis, d, axes: LaunchAxes::of(analysis.expanded()) }
    }

    /// Values at the source that are those at a write of another sharer if both write to one place.
    fn same(&self, x: InsnId) -> Vec<(Linear, Linear)> {
        let (poly, d) = (self.analysis.polyhedral(), self.d);
        let kernel = &*poly.kernel;
        let lhs = &kernel.insns[x].lhs;
        let linear = |e: &Affine, insn| Linear::of(e, poly.loops(insn), &|v| poly.symbol(v));
        let element = |insn, var, index: &[Option<Affine>]| {
            let sliced = sliced_axes(poly, var, self.analysis.sites(var));
            linear(&place(kernel, var, &sliced, index)?, insn)
        };
        let index: Vec<_> = lhs.index.iter().map(|e| e.as_affine()).collect();
        let elements = element(d.source, d.var, d.source_index()).zip(element(x, lhs.var, &index));
        let own = |axis: &&Axis| match axis {
            Axis::Group(_) => true,
            Axis::Local(_) => kernel.vars[d.var].space == AddressSpace::Private,
        };
        let position = |insn, axis| linear(&LaunchAxes::coordinate(poly, insn, axis).index()?, insn);
        let owners = self.axes.axes.iter().filter(own);
        owners.filter_map(|axis| position(d.source, *axis).zip(position(x, *axis))).chain(elements).collect()
    }
}

/// Whether the text decides that no instance of `x` runs between source and sink of a dependence.
///
/// Formula: let source and sink agree on the first
/// `n` of the loops that order them. What runs between them agrees with them on those that are
/// around it, too. If these are all that order `x` and one end, the text does, and `x` must stand
/// between them in the text.
fn is_apart(poly: &Polyhedral, d: &Dependence, x: InsnId, at_once: bool) -> bool {
    let loops = |a, b| ordering_loops(poly, a, b, at_once);
    let agreed = loops(d.source, d.sink).iter().take_while(|l| d.agrees(**l, **l)).count();
    let follows = |a, b| follows(poly, a, b, at_once);
    (loops(d.source, x).len() <= agreed && !follows(d.source, x))
        || (loops(x, d.sink).len() <= agreed && !follows(x, d.sink))
}

/// Whether a loop does not order the instances in it, because they run at once.
fn runs_at_once(poly: &Polyhedral, l: InameId, at_once: bool) -> bool {
    at_once && matches!(poly.kernel.inames[l].tag, AxisTag::Group(_) | AxisTag::Local(_))
}

/// Whether `b` may run after `a` in one iteration of the loops that order them.
fn follows(poly: &Polyhedral, a: InsnId, b: InsnId, at_once: bool) -> bool {
    poly.position(a) < poly.position(b) || (at_once && a == b)
}

/// The common loops that order instances of two instructions, outer first.
fn ordering_loops(poly: &Polyhedral, a: InsnId, b: InsnId, at_once: bool) -> Vec<InameId> {
    poly.common_loops(a, b).iter().copied().filter(|l| !runs_at_once(poly, *l, at_once)).collect()
}

/// The pairs of instances of `a` and `b`, `a` before `b`; `None` if the text decides that there are
/// none.
fn before(poly: &Polyhedral, a: InsnId, b: InsnId, at_once: bool) -> Option<Pairs> {
    let common = poly.common_loops(a, b);
    let unordered: Vec<_> = (0..common.len()).filter(|k| runs_at_once(poly, common[*k], at_once)).collect();
    let textual = follows(poly, a, b, at_once);
    if unordered.len() == common.len() && !textual {
        return None;
    }
    Some(Pairs {
        ends: [a, b].map(|insn| poly.instances_of(insn, None, &[])),
        same: Vec::new(),
        common: common.len(),
        unordered,
        span: Span { start: 0, end: common.len(), textual },
        symbols: poly.symbols().clone(),
    })
}
