//! Boxes of arrays that a copy engine finds by the map of a tensor: address, extents and strides of the array,
//! sides of the box and the swizzle of where it is copied to, made by the host before a launch.
//!
//! The window of the argument is the box: one step along each axis of the array, whose rows lie one after the
//! other, and whose other strides and address are multiples of 16 bytes.

use super::{Arg, Binding, Callee, Mismatch, Piece, TargetCode, Window};
use crate::affine::Affine;
use crate::ids::{Id, VarId};
use crate::kernel::{AddressSpace, Direction, Kernel, VarKind};
use crate::multiples::{Multiples, strides};
use crate::types::ScalarType;

/// Bytes of a row that is swizzled: eight units of 16.
pub const SWIZZLED_ROW: u64 = 128;
/// Bytes of which addresses and strides are multiples.
const UNIT: u64 = 16;
/// The longest side of a box, in elements.
const LONGEST: i64 = 256;
/// The highest number of axes.
const MOST_AXES: usize = 5;

/// The map of a tensor that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapOfTensor {
    /// The array of the caller.
    pub var: VarId,
    /// Elements of the box along each axis.
    pub sides: Vec<u64>,
    /// Whether its rows are swizzled where they are copied to.
    pub is_swizzled: bool,
}

impl MapOfTensor {
    /// The map of an argument of a call; none of what is no window.
    pub fn of(callee: &Callee, binding: &Binding, argument: VarId) -> Option<Self> {
        let Arg::Window(window) = binding.args.get(argument.index())? else { return None };
        let shape = &callee.kernel.vars[argument].shape;
        let sides =
            shape.iter().map(|side| u64::try_from(side.as_constant()?).ok()).collect::<Option<_>>()?;
        Some(Self { var: window.var, sides, is_swizzled: is_swizzled(callee) })
    }
}

fn is_swizzled(callee: &Callee) -> bool {
    callee.kernel.vars.values().any(|var| var.layout.swizzle.is_some())
}

/// Checks that boxes may have the shape of an argument.
///
/// # Errors
/// What is wrong.
pub(super) fn check_argument(callee: &Callee, argument: VarId) -> Result<(), String> {
    let var = &callee.kernel.vars[argument];
    let name = &var.name;
    if var.kind != VarKind::Argument(Direction::In) || var.shape.is_empty() {
        return Err(format!("`{name}` has no map of a tensor; copy from an array that is only read"));
    }
    match var.ty {
        ScalarType::F16
        | ScalarType::Bf16
        | ScalarType::F32
        | ScalarType::F64
        | ScalarType::I32
        | ScalarType::I64
        | ScalarType::U32
        | ScalarType::U64
        | ScalarType::U16
        | ScalarType::U8 => {}
        ScalarType::Bool
        | ScalarType::I8
        | ScalarType::I16
        | ScalarType::C64
        | ScalarType::C128
        | ScalarType::Record(_) => return Err(format!("tensors have no elements of `{}`", var.ty)),
    }
    let sides: Option<Vec<i64>> = var.shape.iter().map(Affine::as_constant).collect();
    let sides =
        sides.filter(|sides| sides.len() <= MOST_AXES && sides.iter().all(|n| (1..=LONGEST).contains(n)));
    let Some(row) = sides.and_then(|sides| sides.last().map(|n| n.unsigned_abs() * var.ty.bytes())) else {
        return Err(format!(
            "boxes have 1 to {MOST_AXES} axes and sides of 1 to {LONGEST} elements, which `{name}` has not"
        ));
    };
    if !row.is_multiple_of(UNIT) {
        return Err(format!("rows of `{name}` have {row} bytes, needed a multiple of {UNIT}"));
    }
    for to in callee.kernel.vars.values() {
        let Some(swizzle) = to.layout.swizzle else { continue };
        let (axis, extents) = (swizzle.axis as usize, &to.shape);
        let is_row = extents.len() == axis + 2
            && swizzle.by + 1 == swizzle.axis
            && extents[axis].as_constant() == i64::try_from(SWIZZLED_ROW / UNIT).ok()
            && extents[axis + 1].as_constant().is_some_and(|n| n.unsigned_abs() * to.ty.bytes() == UNIT);
        if !is_row || row != SWIZZLED_ROW {
            return Err(format!(
                "boxes are swizzled in rows of {SWIZZLED_ROW} bytes, in units of {UNIT} by the row, and `{}` in \
                 another way",
                to.name
            ));
        }
    }
    Ok(())
}

/// Checks that an argument has an axis.
///
/// # Errors
/// What is wrong.
pub(super) fn check_axis(callee: &Callee, argument: VarId, axis: usize) -> Result<(), String> {
    let var = &callee.kernel.vars[argument];
    if matches!(var.kind, VarKind::Argument(_)) && axis < var.shape.len() {
        return Ok(());
    }
    Err(format!("`{}` has no axis {axis}", var.name))
}

/// Checks the windows of a call that are boxes.
///
/// # Errors
/// The first one that is none.
pub(super) fn check(
    kernel: &Kernel,
    callee: &Callee,
    binding: &Binding,
    code: &TargetCode,
) -> Result<(), Mismatch> {
    for piece in &code.text {
        let (argument, is_box) = match piece {
            Piece::Map(argument) => (*argument, true),
            Piece::Begin(argument, _) => (*argument, false),
            Piece::Text(_) | Piece::Element(_) | Piece::Address(..) => continue,
        };
        if let Some(Arg::Window(window)) = binding.args.get(argument.index()) {
            let name = &callee.kernel.vars[argument].name;
            check_steps(kernel, name, callee.kernel.vars[argument].shape.len(), window)?;
            if is_box {
                check_array(kernel, name, window)?;
            }
        }
    }
    Ok(())
}

/// Axis by axis, a window goes one step in the array where it goes one itself.
fn check_steps(kernel: &Kernel, name: &str, axes: usize, window: &Window) -> Result<(), Mismatch> {
    let one = |k: usize| (0..axes).map(|a| i64::from(a == k)).collect::<Vec<_>>();
    let mut steps = window.axes.iter().enumerate();
    if window.axes.len() == axes && steps.all(|(k, axis)| axis.steps == one(k)) {
        return Ok(());
    }
    let array = &kernel.vars[window.var];
    let found = format!("a window of `{}` with other axes or steps", array.name);
    Err(Mismatch::new(format!("the box `{name}`"), found, "one step along each axis of the array"))
}

fn check_array(kernel: &Kernel, name: &str, window: &Window) -> Result<(), Mismatch> {
    let array = &kernel.vars[window.var];
    // the engine does not see what work-items have written in the same launch
    let plain = array.kind == VarKind::Argument(Direction::In)
        && array.space == AddressSpace::Global
        && array.layout.vector_axis.is_none()
        && array.layout.swizzle.is_none()
        && strides(array).last().is_some_and(|s| s.as_ref().and_then(Affine::as_constant) == Some(1));
    if !plain {
        let what = format!("the array of the box `{name}`");
        let found = format!("`{}`, which is not", array.name);
        return Err(Mismatch::new(
            what,
            found,
            "an argument that is only read, in global memory, with rows whose elements are neighbours",
        ));
    }
    let known = Multiples::of(kernel).of_strides(array, &vec![false; array.shape.len()]);
    let rows = known.split_last().map_or(&[][..], |(_, rows)| rows);
    for (axis, known) in rows.iter().enumerate() {
        let known = known * array.ty.bytes();
        if known < UNIT {
            let what = format!("the stride of axis {axis} of `{}`", array.name);
            let found = format!("known to be a multiple of {known} bytes");
            return Err(Mismatch::new(what, found, format!("a multiple of {UNIT} bytes")));
        }
    }
    Ok(())
}
