//! Layouts: whether strides keep the elements of an array apart, and whether an axis is that of vectors.

use crate::affine::Affine;
use crate::kernel::Variable;

/// Whether different indices surely lie in different places: with the axes in some order, every stride is at
/// least the previous stride times the previous extent, the first at least 1. Axes of extent 1 or less do
/// not count. An order or a bound that depends on parameters in another way than by a constant difference
/// is not taken as sure.
pub fn keeps_elements_apart(shape: &[Affine], strides: &[Affine]) -> bool {
    let mut rest: Vec<(&Affine, &Affine)> =
        shape.iter().zip(strides).filter(|(extent, _)| extent.as_constant().is_none_or(|n| n > 1)).collect();
    let mut covered = Affine::constant(1);
    while !rest.is_empty() {
        // The innermost of the remaining axes: its stride covers what is inside, and no other is smaller.
        let innermost = rest.iter().position(|(_, stride)| {
            at_least(stride, &covered) && rest.iter().all(|(_, other)| at_least(other, stride))
        });
        let Some(k) = innermost else { return false };
        let (extent, stride) = rest.swap_remove(k);
        covered = match (extent.as_constant(), stride.as_constant()) {
            (Some(n), _) => stride.times(n),
            (None, Some(s)) => extent.times(s),
            // A product of parameters is not affine: only the outermost axis may need it.
            (None, None) => return rest.is_empty(),
        };
    }
    true
}

/// Elements of the vectors that lie along the vector axis of a variable, or why there are none: its extent is 2, 4, 8 or
/// 16, its elements lie beside each other, and every vector starts at a multiple of that number.
///
/// # Errors
/// What does not hold; a variable without a vector axis has none.
pub fn vector_lanes(variable: &Variable) -> Result<i64, &'static str> {
    let axis = variable.layout.vector_axis.ok_or("it has none")? as usize;
    let extent = variable.shape.get(axis).and_then(Affine::as_constant);
    let lanes = extent.filter(|n| [2, 4, 8, 16].contains(n)).ok_or("its extent is not 2, 4, 8 or 16")?;
    let Some(strides) = &variable.layout.strides else {
        // row-major: every other stride is a multiple of the last extent
        return if axis + 1 == variable.shape.len() { Ok(lanes) } else { Err("it is not the innermost one") };
    };
    for (k, (stride, extent)) in strides.iter().zip(&variable.shape).enumerate() {
        if k == axis && stride.as_constant() != Some(1) {
            return Err("its elements do not lie beside each other");
        }
        let whole =
            |e: &Affine| e.constant_term() % lanes == 0 && e.terms().iter().all(|(_, c)| c % lanes == 0);
        if k != axis && extent.as_constant().is_none_or(|n| n > 1) && !whole(stride) {
            return Err("another stride is no multiple of its extent");
        }
    }
    Ok(lanes)
}

/// `a >= b` whatever the parameters.
fn at_least(a: &Affine, b: &Affine) -> bool {
    a.minus(b).as_constant().is_some_and(|d| d >= 0) || is_positive_multiple(a, b)
}

/// Whether `b` is 1 and `a` a sum of parameters with coefficients of at least 1: extents, of which strides
/// are made, are positive where there is an element at all.
fn is_positive_multiple(a: &Affine, b: &Affine) -> bool {
    let positive = !a.terms().is_empty() && a.constant_term() >= 0;
    b.as_constant() == Some(1) && positive && a.terms().iter().all(|(_, c)| *c >= 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Id, VarId};

    fn constants(values: &[i64]) -> Vec<Affine> {
        values.iter().map(|v| Affine::constant(*v)).collect()
    }

    #[test]
    fn constant_strides() {
        let apart =
            |shape: &[i64], strides: &[i64]| keeps_elements_apart(&constants(shape), &constants(strides));
        assert!(apart(&[4, 4], &[4, 1]) && apart(&[4, 4], &[1, 4]) && apart(&[4, 4], &[5, 1]));
        assert!(apart(&[2, 3, 4], &[12, 4, 1]) && apart(&[1, 4], &[0, 1]) && apart(&[], &[]));
        assert!(
            !apart(&[4, 4], &[1, 1]) && !apart(&[4, 4], &[3, 1]) && !apart(&[4], &[0]) && !apart(&[4], &[-1])
        );
    }

    #[test]
    fn vectors() {
        use crate::kernel::{AddressSpace, VarKind};
        use crate::types::ScalarType;
        let lanes = |shape: &[i64], strides: Option<&[i64]>, axis| {
            let (shape, private) = (constants(shape), AddressSpace::Private);
            let mut var = Variable::new("t", ScalarType::F64, VarKind::Temporary, shape, private);
            var.layout.strides = strides.map(constants);
            var.layout.vector_axis = axis;
            vector_lanes(&var)
        };
        assert_eq!(lanes(&[3, 4], None, Some(1)), Ok(4));
        assert_eq!(lanes(&[4, 3], Some(&[1, 4]), Some(0)), Ok(4));
        assert_eq!(lanes(&[3, 2], Some(&[6, 1]), Some(1)), Ok(2));
        assert_eq!(lanes(&[3, 4], None, None), Err("it has none"));
        assert_eq!(lanes(&[3, 4], None, Some(0)), Err("its extent is not 2, 4, 8 or 16"));
        assert_eq!(lanes(&[4, 3], None, Some(0)), Err("it is not the innermost one"));
        assert_eq!(lanes(&[3, 4], Some(&[4, 12]), Some(1)), Err("its elements do not lie beside each other"));
        assert_eq!(
            lanes(&[3, 4], Some(&[5, 1]), Some(1)),
            Err("another stride is no multiple of its extent")
        );
    }

    #[test]
    fn parametric_strides() {
        let n = Affine::var(VarId::from_index(0));
        let one = Affine::constant(1);
        let four = Affine::constant(4);
        // [4, n] row by row, with a pad, and column by column
        assert!(keeps_elements_apart(&[four.clone(), n.clone()], &[n.clone(), one.clone()]));
        assert!(keeps_elements_apart(&[four.clone(), n.clone()], &[n.plus_constant(1), one.clone()]));
        assert!(keeps_elements_apart(&[four.clone(), n.clone()], &[one.clone(), four.clone()]));
        assert!(!keeps_elements_apart(&[four.clone(), n.clone()], &[n.plus_constant(-1), one.clone()]));
        assert!(!keeps_elements_apart(&[four, n], &[one.clone(), one]));
    }
}
