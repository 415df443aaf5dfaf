//! The kernels of a level as texts, and the schedules that map them onto a device.

use crate::{Dimension, Element, MultigridError};
use purlin_codegen::{Options, Program, generate};
use purlin_ir::kernel::VarKind;
use purlin_ir::text::parse;
use purlin_ir::{AddressSpace, AxisTag, Kernel, Variable};
use purlin_runtime::Backend;
use purlin_transforms::primitives::{MakeAtomic, SetAddressSpace, TagInames};
use purlin_transforms::{Schedule, Selection, TransformError};

/// What a kernel of a level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// One colour of the smoother: residual and exact solution on each patch of two cells a side,
    /// of Cui et al. 2024, Algorithm 2.3 and Table 4 (*Fused*).
    Smooth,
    /// `r -= A x` at inner nodes.
    Residual,
    /// `x += P xc`, of a level with half as many cells a side.
    Prolongate,
    /// `rc += P^T r` at inner nodes.
    Restrict,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Smooth, Self::Residual, Self::Prolongate, Self::Restrict];

    const fn text(self, dimension: Dimension) -> &'static str {
        match (self, dimension) {
            (Self::Smooth, Dimension::Two) => include_str!("../kernels/smooth_2d.purlin"),
            (Self::Smooth, Dimension::Three) => include_str!("../kernels/smooth_3d.purlin"),
            (Self::Residual, Dimension::Two) => include_str!("../kernels/residual_2d.purlin"),
            (Self::Residual, Dimension::Three) => include_str!("../kernels/residual_3d.purlin"),
            (Self::Prolongate, Dimension::Two) => include_str!("../kernels/prolongate_2d.purlin"),
            (Self::Prolongate, Dimension::Three) => include_str!("../kernels/prolongate_3d.purlin"),
            (Self::Restrict, Dimension::Two) => include_str!("../kernels/restrict_2d.purlin"),
            (Self::Restrict, Dimension::Three) => include_str!("../kernels/restrict_3d.purlin"),
        }
    }

    /// The loops over patches or cells, outer first.
    fn blocks(self, dimension: Dimension) -> Vec<String> {
        let stem = match self {
            Self::Smooth => 'p',
            Self::Residual | Self::Prolongate | Self::Restrict => 'e',
        };
        (0..dimension.axes()).rev().map(|axis| format!("{stem}{axis}")).collect()
    }

    /// The updates to which several blocks contribute: nodes that cells share.
    const fn shared(self) -> Option<&'static str> {
        match self {
            Self::Smooth | Self::Prolongate => None,
            Self::Residual => Some("subtract"),
            Self::Restrict => Some("add"),
        }
    }
}

/// The plain kernel of an operation: every loop in order.
///
/// # Errors
/// A text that is no kernel: a bug.
pub fn plain(operation: Operation, element: Element) -> Result<Kernel, MultigridError> {
    let k = element.degree;
    let sizes = [("{k}", k), ("{m}", k + 1), ("{p}", 2 * k + 1), ("{q}", 2 * k - 1)];
    let text = sizes.iter().fold(operation.text(element.dimension).to_owned(), |text, (name, size)| {
        text.replace(name, &size.to_string())
    });
    Ok(parse(&text)?)
}

/// How a kernel is mapped onto a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    /// A patch or cell a work-group of one work-item, its arrays private: processors.
    Blocks,
    /// A patch or cell a work-group, a work-item for each node of a layer, which goes through the
    /// layers: the two-dimensional structure of Cui et al. 2024, Figure 5.
    Layers,
}

impl Structure {
    /// What suits a backend.
    #[must_use]
    pub const fn of(backend: Backend) -> Self {
        match backend {
            Backend::C => Self::Blocks,
            Backend::OpenCl | Backend::Cuda => Self::Layers,
        }
    }
}

/// The schedule of an operation. The steps that run patches and cells in parallel prove that those
/// of one colour touch no node of each other.
///
/// # Errors
/// A text that is no kernel, a step that is refused: bugs.
pub fn schedule(
    operation: Operation,
    element: Element,
    structure: Structure,
) -> Result<Schedule, MultigridError> {
    let kernel = plain(operation, element)?;
    let mut s = Schedule::of(&kernel);
    map(&mut s, operation, element, structure)?;
    Ok(s)
}

fn map(
    s: &mut Schedule,
    operation: Operation,
    element: Element,
    structure: Structure,
) -> Result<(), TransformError> {
    for sum in loops(s.kernel(), "l_") {
        s.realise(&sum, format!("r_{sum}"))?;
    }
    if let Some(update) = operation.shared() {
        s.apply(MakeAtomic { insns: Selection::Insn(update.into()) })?;
    }
    match structure {
        Structure::Blocks => {}
        Structure::Layers => layers(s)?,
    }
    for (axis, block) in operation.blocks(element.dimension).iter().rev().enumerate() {
        s.tag(block, AxisTag::Group(axis as u8))?;
    }
    Ok(())
}

/// Arrays of a patch in local memory, rows along `l.1` and columns along `l.0`.
fn layers(s: &mut Schedule) -> Result<(), TransformError> {
    let kernel = s.kernel();
    let is_array = |v: &&Variable| v.kind == VarKind::Temporary && !v.shape.is_empty();
    let arrays: Vec<String> = kernel.vars.values().filter(is_array).map(|v| v.name.clone()).collect();
    for array in &arrays {
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
    }
    for (stem, axis) in [("j_", 1), ("i_", 0)] {
        let along = loops(s.kernel(), stem);
        s.apply(TagInames::new(along, AxisTag::Local(axis)))?;
    }
    Ok(())
}

/// Loops whose names begin so, in the order in which they were made.
fn loops(kernel: &Kernel, stem: &str) -> Vec<String> {
    kernel.inames.values().map(|iname| &iname.name).filter(|name| name.starts_with(stem)).cloned().collect()
}

/// The code of an operation.
///
/// # Errors
/// As [`schedule`], and code that cannot be generated.
pub fn program(
    operation: Operation,
    element: Element,
    structure: Structure,
    backend: Backend,
) -> Result<Program, MultigridError> {
    let schedule = schedule(operation, element, structure)?;
    Ok(generate(schedule.kernel(), backend.target(), &Options::default())?)
}
