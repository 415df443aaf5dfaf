//! Axes of a launch and the coordinates of instances along them.

use crate::polyhedral::Polyhedral;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel};

/// An axis of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Work-groups along 0, 1 or 2.
    Group(u8),
    /// Work-items of a group along 0, 1 or 2.
    Local(u8),
}

/// Where an instruction's instances run along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coordinate {
    /// At the value of this iname, counted from this lower bound.
    Iname(InameId, Affine),
    /// At every index, each with the same effect on its own copy.
    Everywhere,
    /// At index 0.
    Zero,
}

impl Coordinate {
    /// The index, if there is one.
    pub(crate) fn index(&self) -> Option<Affine> {
        match self {
            Self::Iname(iname, lo) => Some(Affine::iname(*iname).minus(lo)),
            Self::Zero => Some(Affine::default()),
            Self::Everywhere => None,
        }
    }
}

/// The axes a kernel uses.
#[derive(Clone, Debug, Default)]
pub struct LaunchAxes {
    /// In order: groups, then work-items.
    pub axes: Vec<Axis>,
}

/// The axis of a tag.
pub fn axis_of(tag: AxisTag) -> Option<Axis> {
    match tag {
        AxisTag::Group(k) => Some(Axis::Group(k)),
        AxisTag::Local(k) => Some(Axis::Local(k)),
        AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Vector | AxisTag::Launch => None,
    }
}

/// The first of some loops whose bounds mention a variable.
pub fn first_bounded_by(kernel: &Kernel, loops: &[InameId], var: VarId) -> Option<usize> {
    loops.iter().position(|l| kernel.inames[*l].domain.any_symbol(&mut |a| *a == Atom::Var(var)))
}

impl LaunchAxes {
    /// The axes some iname of the kernel is tagged with.
    pub fn of(kernel: &Kernel) -> Self {
        let mut axes: Vec<_> = kernel.inames.values().filter_map(|i| axis_of(i.tag)).collect();
        axes.sort_unstable();
        axes.dedup();
        Self { axes }
    }

    /// The axes of the loops of one launch; without launches, of all.
    pub(crate) fn of_launch(poly: &Polyhedral, launch: Option<InameId>) -> Self {
        let kernel = &*poly.kernel;
        let loops = kernel.insns.ids().map(|insn| poly.loops(insn));
        let own = loops.filter(|loops| kernel.launch_among(loops) == launch);
        let mut axes: Vec<_> = own.flatten().filter_map(|l| axis_of(kernel.inames[*l].tag)).collect();
        axes.sort_unstable();
        axes.dedup();
        Self { axes }
    }

    /// Where an instruction runs along an axis.
    pub fn coordinate(poly: &Polyhedral, insn: InsnId, axis: Axis) -> Coordinate {
        let kernel = &*poly.kernel;
        let tagged = poly.loops(insn).iter().find(|l| axis_of(kernel.inames[**l].tag) == Some(axis));
        if let Some(iname) = tagged {
            return Coordinate::Iname(*iname, poly.origin(*iname).clone());
        }
        let space = kernel.vars[kernel.insns[insn].lhs.var].space;
        match (space, axis) {
            (AddressSpace::Private, _) | (AddressSpace::Local | AddressSpace::SubGroup, Axis::Group(_)) => {
                Coordinate::Everywhere
            }
            (AddressSpace::Local | AddressSpace::SubGroup, Axis::Local(_))
            | (AddressSpace::Global | AddressSpace::Constant | AddressSpace::Literal, _) => Coordinate::Zero,
        }
    }
}
