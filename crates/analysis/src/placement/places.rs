//! Places of elements in their buffers.

use kingpost_ir::affine::Affine;
use kingpost_ir::ids::VarId;
use kingpost_ir::kernel::Kernel;

/// Where an element is in the buffer of its array, in elements, if that is affine: every array
/// begins at the begin of its buffer. Axes that are sliced do not count.
pub(super) fn place(
    kernel: &Kernel,
    var: VarId,
    sliced: &[bool],
    index: &[Option<Affine>],
) -> Option<Affine> {
    let variable = &kernel.vars[var];
    if variable.layout.vector_axis.is_some() || variable.layout.swizzle.is_some() {
        return None;
    }
    let mut without = vec![false; variable.shape.len()];
    without.iter_mut().zip(sliced).for_each(|(axis, sliced)| *axis = *sliced);
    let strides = kingpost_ir::layout::strides(variable, &without)?;
    let mut place = Affine::default();
    for ((index, stride), _) in index.iter().zip(&strides).zip(&without).filter(|(_, sliced)| !**sliced) {
        place = place.plus(&index.as_ref()?.times(stride.as_constant()?));
    }
    place.in_bounds().then_some(place)
}
