//! The proof of every primitive that enters a loop at another time than before: its bounds stay.

use crate::obligation::Obligation;
use crate::refusal::Refusal;
use crate::tree::insns_of;
pub use kingpost_analysis::changing_bounds;
use kingpost_analysis::polyhedral::is_symbol;
use kingpost_ir::{Affine, Atom, AxisTag, InameId, Kernel, Node};

/// Nothing inside a loop writes a scalar in its bounds.
pub const BOUNDS_STAY: Obligation = Obligation::new(
    "bounds_stay",
    "nothing between two evaluations of a loop's bounds writes a scalar in them",
);

/// The bounds of a loop mention no scalar that is read from memory.
pub const CONSTANT_BOUNDS: Obligation =
    Obligation::new("constant_bounds", "no scalar in the bounds of the loop changes while the kernel runs");

/// Other values of a loop are no other places.
pub const PLACES_FOLLOW: Obligation =
    Obligation::new("places_follow", "a loop on an axis is a range, whose places count from its lower bound");

/// Checks that no instruction in `nodes` writes a scalar in the bounds of `iname`.
///
/// Formula: `vars(domain(iname)) ∩ written(nodes) = {}`. Then the bounds have the same value before
/// and after `nodes`.
///
/// # Errors
/// [`Refusal::Argument`] with the instruction and the scalar.
pub fn check_bounds_stay(kernel: &Kernel, iname: InameId, nodes: &[Node]) -> Result<(), Refusal> {
    let bounds = changing_bounds(kernel, iname);
    let writer = insns_of(nodes).into_iter().find(|insn| bounds.contains(&kernel.insns[*insn].lhs.var));
    BOUNDS_STAY.forbid(writer.map(|insn| &kernel.insns[insn]), |writer| {
        format!(
            "the bounds of `{}` mention `{}`, which `{}` writes, so that they would change between the loops; \
             copy it to another temporary first",
            kernel.inames[iname].name, kernel.vars[writer.lhs.var].name, writer.name
        )
    })
}

/// Checks that a value mentions no scalar that may change while the kernel runs.
///
/// # Errors
/// [`Refusal::Argument`] with the loop and the scalar.
pub fn check_constant_value(kernel: &Kernel, iname: InameId, value: &Affine) -> Result<(), Refusal> {
    let mut found = None;
    value.for_each_symbol(&mut |atom| match atom {
        Atom::Var(v) if !is_symbol(kernel, *v) => found = Some(*v),
        Atom::Var(_) | Atom::Iname(_) | Atom::Floor(..) => {}
    });
    CONSTANT_BOUNDS.forbid(found, |var| {
        format!(
            "the bounds of `{}` depend on `{}`, which is read from memory; keep the loop as it is",
            kernel.inames[iname].name, kernel.vars[var].name
        )
    })
}

/// Checks that the places of a loop's iterations follow when its values move: it is sequential, or
/// a range, whose places count from its lower bound.
///
/// # Errors
/// [`Refusal::Argument`] with the loop and its tag.
pub fn check_places_follow(kernel: &Kernel, iname: InameId) -> Result<(), Refusal> {
    let data = &kernel.inames[iname];
    let on_axis = matches!(data.tag, AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Vector);
    PLACES_FOLLOW.require(!on_axis || data.domain.as_guarded_range(iname).is_some(), || {
        format!(
            "`{}` is no plain range and tagged {}, so that other values mean other places; tag it sequential first",
            kernel.show_domain(iname, &data.domain),
            data.tag
        )
    })
}
