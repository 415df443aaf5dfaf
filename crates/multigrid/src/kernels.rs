//! The kernels of a level as texts.

pub use crate::operation::{Blocks, Operation, Variant};
use crate::{Dimension, Element, MultigridError, Precision};
use kingpost_ir::text::parse;
use kingpost_ir::{Kernel, Variable};
use kingpost_primitives::primitives::fix_parameter::ParamValue;
use kingpost_primitives::primitives::{Assume, FixParameter, SetPrecision};
use kingpost_primitives::{Schedule, TransformError};

/// The plain kernel of an operation: every loop in order, every number in a precision.
///
/// # Errors
/// A text that is no kernel: a bug.
pub fn plain(operation: Operation, element: Element, precision: Precision) -> Result<Kernel, MultigridError> {
    Ok(unscheduled(operation, element, precision, Region::Mesh, 2 * element.degree - 1)?.kernel().clone())
}

/// What a kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// All layers of cells of a mesh.
    Mesh,
    /// Some layers of a slab of it, `nl` layers long: `nz` layers of cells, or of patches of one colour,
    /// from layer `z` on, of the smoother from the layer that the last colour names. Between levels those
    /// sizes are of the coarser slab, and the finer one has `nf` layers, of which those from `zf` on
    /// count.
    Slab,
}

/// The schedule of an operation before any loop is mapped, with room for a number of eigenvectors along a
/// line, of which some may be zero. Of the fused kernel in three dimensions alone; others have as many as
/// there are.
pub(crate) fn unscheduled(
    operation: Operation,
    element: Element,
    precision: Precision,
    region: Region,
    modes: usize,
) -> Result<Schedule, MultigridError> {
    let mut s = sized(operation.text(element.dimension), element, precision, modes)?;
    match region {
        Region::Mesh => take_all_layers(&mut s, operation, element.dimension)?,
        Region::Slab if operation.is_on_slabs() => {}
        Region::Slab => return Err(MultigridError::NoSlab(operation)),
    }
    Ok(s)
}

/// Makes the sizes and the place along the slowest axis those of a mesh.
fn take_all_layers(
    s: &mut Schedule,
    operation: Operation,
    dimension: Dimension,
) -> Result<(), TransformError> {
    if matches!(operation, Operation::Smooth | Operation::SmoothBlended) {
        let colour = match dimension {
            Dimension::Two => "c1",
            Dimension::Three => "c2",
        };
        s.apply(Assume::AtMost { param: colour.into(), value: 1 })?;
        s.apply(FixParameter::new("nl", "n"))?;
        return s.apply(FixParameter::new("nz", ParamValue::sum([("n", 1), (colour, -1)], 0, 2))).map(drop);
    }
    let all = [
        ("z", 0.into()),
        ("zf", 0.into()),
        ("nf", ParamValue::sum([("n", 2)], 0, 1)),
        ("nl", "n".into()),
        ("nz", "n".into()),
    ];
    for (param, value) in all {
        if s.kernel().var(param).is_some() {
            s.apply(FixParameter::new(param, value))?;
        }
    }
    Ok(())
}

/// A kernel of a text for an element: `{k}` is the degree, `{m}` the nodes of a side of a cell, `{p}` and
/// `{q}` those of a patch with and without its boundary, every number in a precision.
///
/// # Errors
/// A text that is no kernel.
pub fn of_text(text: &str, element: Element, precision: Precision) -> Result<Schedule, MultigridError> {
    sized(text, element, precision, 2 * element.degree - 1)
}

fn sized(
    text: &str,
    element: Element,
    precision: Precision,
    modes: usize,
) -> Result<Schedule, MultigridError> {
    let k = element.degree;
    let nodes = (2 * k - 1).pow(element.dimension.axes() as u32);
    let sizes = [
        ("{Q}", nodes),
        ("{k}", k),
        ("{m}", k + 1),
        ("{p}", 2 * k + 1),
        ("{q}", 2 * k - 1),
        ("{s}", modes),
        ("{g}", k + 2),
    ];
    let text = sizes.iter().fold(text.to_owned(), |text, (name, size)| text.replace(name, &size.to_string()));
    let mut s = Schedule::of(&parse(&text)?);
    if precision == Precision::Single {
        let is_real = |v: &&Variable| v.ty.is_real();
        let reals: Vec<String> = s.kernel().vars.values().filter(is_real).map(|v| v.name.clone()).collect();
        s.apply(SetPrecision::new(reals, precision.into()))?;
    }
    Ok(s)
}
