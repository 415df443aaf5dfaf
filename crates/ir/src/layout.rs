//! Layouts: strides, and whether an axis is that of vectors.

use crate::affine::Affine;
use crate::kernel::{VarKind, Variable};

/// Elements of the vectors that lie along the vector axis of a variable, or why there are none: its
/// extent is 2, 4, 8 or 16, its elements lie next to each other, and every vector starts at a
/// multiple of that number.
///
/// # Errors
/// What does not hold; a variable without a vector axis has none.
pub fn vector_lanes(variable: &Variable) -> Result<i64, &'static str> {
    let axis = variable.layout.vector_axis.ok_or("it has none")? as usize;
    let extent = variable.shape.get(axis).and_then(Affine::as_constant);
    let lanes = extent.filter(|n| [2, 4, 8, 16].contains(n)).ok_or("its extent is not 2, 4, 8 or 16")?;
    let Some(strides) = variable.layout.strides() else {
        // dense: every other stride is a multiple of the innermost extent
        let innermost = variable.layout.order(variable.shape.len()).last() == Some(&axis);
        return if innermost { Ok(lanes) } else { Err("it is not the innermost one") };
    };
    for (k, (stride, extent)) in strides.iter().zip(&variable.shape).enumerate() {
        if k == axis && stride.as_constant() != Some(1) {
            return Err("its elements do not lie next to each other");
        }
        let whole =
            |e: &Affine| e.constant_term() % lanes == 0 && e.terms().iter().all(|(_, c)| c % lanes == 0);
        if k != axis && extent.as_constant().is_none_or(|n| n > 1) && !whole(stride) {
            return Err("another stride is no multiple of its extent");
        }
    }
    Ok(lanes)
}

/// Why the swizzle of a variable is none, if so. One that is: an axis of `2^b` elements is permuted, by an
/// axis of any extent, so that [`Swizzle`](crate::places::Swizzle) says why elements stay apart.
pub fn broken_swizzle(variable: &Variable) -> Option<&'static str> {
    let swizzle = variable.layout.swizzle?;
    let Some(extent) = variable.shape.get(swizzle.axis as usize) else {
        return Some("the axis that it swizzles is not one of its axes");
    };
    let is_power = |n| u64::try_from(n).is_ok_and(u64::is_power_of_two);
    if swizzle.by as usize >= variable.shape.len() || swizzle.axis == swizzle.by {
        return Some("the axis by which it swizzles is not another one of its axes");
    }
    if !extent.as_constant().is_some_and(is_power) {
        return Some(
            "exclusive-or permutes the elements of an axis only if their number is a power of two; \
             swizzle such an axis",
        );
    }
    if variable.layout.vector_axis.is_some_and(|axis| swizzle.mentions(axis as usize)) {
        return Some("its vectors would be torn apart; the vector axis takes part in no swizzle");
    }
    matches!(variable.kind, VarKind::Table(_)).then_some("the values of a table lie row by row")
}

/// The index along an axis at which an element lies, if that is affine: with a swizzle, of each bit `b` the sum
/// modulo 2, `b_u + b_r - 2*floor((b_u + b_r)/2)`.
#[must_use]
pub fn position_along(variable: &Variable, axis: usize, index: &[Affine]) -> Option<Affine> {
    let own = index.get(axis)?;
    let Some(by) = variable.layout.swizzle.filter(|s| s.axis as usize == axis) else {
        return Some(own.clone());
    };
    let (by, extent) = (index.get(by.by as usize)?, variable.shape.get(axis)?.as_constant()?);
    let bit = |e: &Affine, k: u32| e.floor_div(1 << k).minus(&e.floor_div(2 << k).times(2));
    let bits = (0..extent.ilog2()).map(|k| {
        let sum = bit(own, k).plus(&bit(by, k));
        sum.minus(&sum.floor_div(2).times(2)).times(1 << k)
    });
    Some(bits.fold(Affine::constant(0), |all, bit| all.plus(&bit)))
}

/// Elements between neighbours along each axis that is kept.
/// `None` for an extent beyond the parameters' affine expressions (a product of two parameters).
pub fn strides(var: &Variable, sliced: &[bool]) -> Option<Vec<Affine>> {
    if let Some(strides) = var.layout.strides() {
        return Some(strides.to_vec());
    }
    let mut strides = vec![Affine::constant(1); var.shape.len()];
    let mut stride = Affine::constant(1);
    let order = var.layout.order(var.shape.len());
    for k in order.iter().rev().copied() {
        if sliced[k] {
            continue;
        }
        strides[k] = stride.clone();
        if k != order[0] {
            stride = match (stride.as_constant(), var.shape[k].as_constant()) {
                (Some(c), _) => var.shape[k].times(c),
                (_, Some(c)) => stride.times(c),
                (None, None) => return None,
            };
        }
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constants(values: &[i64]) -> Vec<Affine> {
        values.iter().map(|v| Affine::constant(*v)).collect()
    }

    #[test]
    fn vectors() {
        use crate::kernel::{AddressSpace, VarKind};
        use crate::places::Places;
        use crate::types::ScalarType;
        let lanes = |shape: &[i64], strides: Option<&[i64]>, axis| {
            let (shape, private) = (constants(shape), AddressSpace::Private);
            let mut var = Variable::new("t", ScalarType::F64, VarKind::Temporary, shape, private);
            var.layout.places = strides.map_or(Places::RowMajor, |s| Places::Strides(constants(s)));
            var.layout.vector_axis = axis;
            vector_lanes(&var)
        };
        assert_eq!(lanes(&[3, 4], None, Some(1)), Ok(4));
        assert_eq!(lanes(&[4, 3], Some(&[1, 4]), Some(0)), Ok(4));
        assert_eq!(lanes(&[3, 2], Some(&[6, 1]), Some(1)), Ok(2));
        assert_eq!(lanes(&[3, 4], None, None), Err("it has none"));
        assert_eq!(lanes(&[3, 4], None, Some(0)), Err("its extent is not 2, 4, 8 or 16"));
        assert_eq!(lanes(&[4, 3], None, Some(0)), Err("it is not the innermost one"));
        assert_eq!(
            lanes(&[3, 4], Some(&[4, 12]), Some(1)),
            Err("its elements do not lie next to each other")
        );
        assert_eq!(
            lanes(&[3, 4], Some(&[5, 1]), Some(1)),
            Err("another stride is no multiple of its extent")
        );
    }

    #[test]
    fn swizzled_positions() {
        use crate::ids::{Id, InameId};
        use crate::kernel::{AddressSpace, VarKind};
        use crate::places::Swizzle;
        use crate::types::ScalarType;
        let local = AddressSpace::Local;
        let mut var = Variable::new("t", ScalarType::F32, VarKind::Temporary, constants(&[16, 8, 4]), local);
        var.layout.swizzle = Some(Swizzle { axis: 1, by: 0 });
        assert_eq!(broken_swizzle(&var), None);
        let iname = |k| Affine::iname(InameId::from_index(k));
        let index = [iname(0), iname(1), iname(2)];
        let place = position_along(&var, 1, &index).unwrap_or_default();
        for (r, u) in (0..16).flat_map(|r| (0..8).map(move |u| (r, u))) {
            let value = |atom: &crate::affine::Atom| {
                [(iname(0), r), (iname(1), u)].iter().find(|(e, _)| *e == Affine::from(atom)).map(|(_, v)| *v)
            };
            assert_eq!(place.eval(&mut |atom| value(atom)), Some(u ^ (r % 8)));
        }
        assert_eq!(position_along(&var, 2, &index), Some(iname(2)));
        for (axis, by) in [(1, 3), (3, 1), (1, 1)] {
            var.layout.swizzle = Some(Swizzle { axis, by });
            assert!(broken_swizzle(&var).is_some_and(|why| why.contains("one of its axes")));
        }
        var.layout.swizzle = Some(Swizzle { axis: 2, by: 1 });
        var.layout.vector_axis = Some(2);
        assert!(broken_swizzle(&var).is_some_and(|why| why.contains("torn apart")));
        var.layout.vector_axis = None;
        var.shape[2] = Affine::constant(6);
        assert!(broken_swizzle(&var).is_some_and(|why| why.contains("power of two")));
    }
}
