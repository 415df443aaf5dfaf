//! Symmetries of arrays: which element has the value of which other one, or its negative.

use crate::affine::Affine;
use crate::expr::Expr;
use crate::ids::VarId;
use serde::{Deserialize, Serialize};

/// The index along one axis of the image of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AxisImage {
    /// The axis of the element whose index is taken.
    pub axis: u32,
    /// Whether it counts from the other end.
    pub mirrored: bool,
}

/// `array(f) = array(image(f))` for every index `f`, or the negative of it where it is negated.
///
/// Along axis `d`, the image of `f` has the index `f(axis)`, or `extent - 1 - f(axis)` where it is
/// mirrored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Symmetry {
    /// The array.
    pub var: VarId,
    /// The image along each axis.
    pub axes: Vec<AxisImage>,
    /// Whether the image has the negative value.
    pub negated: bool,
}

/// Why axes are no symmetry of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSymmetry {
    /// Not one image for each axis.
    Axes,
    /// An axis is the image of none or of two.
    Permutation,
    /// Two axes that are exchanged have other extents.
    Extents,
}

impl Symmetry {
    /// Whether images of elements of an array of this shape are elements of it, each of one.
    ///
    /// # Errors
    /// What is wrong with the axes.
    pub fn check(&self, shape: &[Affine]) -> Result<(), NoSymmetry> {
        if self.axes.len() != shape.len() {
            return Err(NoSymmetry::Axes);
        }
        let mut taken = vec![false; shape.len()];
        for (extent, image) in shape.iter().zip(&self.axes) {
            let from = image.axis as usize;
            match taken.get_mut(from) {
                Some(seen) if !*seen => *seen = true,
                Some(_) | None => return Err(NoSymmetry::Permutation),
            }
            if shape[from] != *extent {
                return Err(NoSymmetry::Extents);
            }
        }
        Ok(())
    }

    /// Whether every element is its own image.
    pub fn is_identity(&self) -> bool {
        self.axes.iter().enumerate().all(|(d, image)| image.axis as usize == d && !image.mirrored)
    }

    /// The index of the image of the element at `index`, in an array of this shape.
    pub fn image(&self, shape: &[Affine], index: &[Expr]) -> Vec<Expr> {
        let along = |(extent, image): (&Affine, &AxisImage)| {
            let from = &index[image.axis as usize];
            if !image.mirrored {
                return from.clone();
            }
            let last = extent.plus_constant(-1);
            match from.as_affine() {
                Some(from) => Expr::from_affine(&last.minus(&from)),
                None => Expr::from_affine(&last) - from.clone(),
            }
        };
        shape.iter().zip(&self.axes).map(along).collect()
    }

    /// The position of the image of the element at a position, both row by row.
    pub fn image_of(&self, shape: &[usize], at: usize) -> usize {
        let mut index = vec![0; shape.len()];
        let mut rest = at;
        for (d, extent) in shape.iter().enumerate().rev() {
            (index[d], rest) = (rest % extent, rest / extent);
        }
        let along = |place: usize, (extent, image): (&usize, &AxisImage)| {
            let from = index[image.axis as usize];
            place * extent + if image.mirrored { extent - 1 - from } else { from }
        };
        shape.iter().zip(&self.axes).fold(0, along)
    }

    /// The first element that has not the value it should have, and its image.
    pub fn clash<T: Copy + PartialEq>(
        &self,
        shape: &[usize],
        values: &[T],
        negative: impl Fn(T) -> T,
    ) -> Option<(usize, usize)> {
        let pairs = (0..values.len()).map(|at| (at, self.image_of(shape, at)));
        let value = |at: usize| if self.negated { negative(values[at]) } else { values[at] };
        pairs.into_iter().find(|(at, image)| values[*at] != value(*image))
    }

    /// Makes values symmetric: of elements that are images of each other the first one decides.
    pub fn impose<T: Copy + Default>(&self, shape: &[usize], values: &mut [T], negative: impl Fn(T) -> T) {
        let mut done = vec![false; values.len()];
        for start in 0..values.len() {
            let mut orbit = Vec::new();
            let mut at = start;
            while !std::mem::replace(&mut done[at], true) {
                orbit.push(at);
                at = self.image_of(shape, at);
            }
            let own_negative = self.negated && orbit.len() % 2 == 1;
            let first = if own_negative { T::default() } else { values[start] };
            for (k, at) in orbit.into_iter().enumerate() {
                values[at] = if self.negated && k % 2 == 1 { negative(first) } else { first };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    fn symmetry(axes: &[(u32, bool)], negated: bool) -> Symmetry {
        let axes = axes.iter().map(|(axis, mirrored)| AxisImage { axis: *axis, mirrored: *mirrored });
        Symmetry { var: VarId::from_index(0), axes: axes.collect(), negated }
    }

    #[test]
    fn images_of_positions_and_what_clashes() {
        let turned = symmetry(&[(0, true), (1, true)], true);
        assert_eq!(turned.image_of(&[2, 3], 0), 5);
        assert_eq!(turned.image_of(&[2, 3], 4), 1);
        assert_eq!(turned.clash(&[2, 3], &[1, 2, 3, -3, -2, -1], |x: i32| -x), None);
        assert_eq!(turned.clash(&[2, 3], &[1, 2, 3, -3, 2, -1], |x: i32| -x), Some((1, 4)));
        let transposed = symmetry(&[(1, false), (0, false)], false);
        assert_eq!(transposed.clash(&[2, 2], &[1, 2, 2, 3], |x: i32| -x), None);
        assert!(!transposed.is_identity() && symmetry(&[(0, false)], false).is_identity());
    }

    #[test]
    fn imposing_a_symmetry_leaves_no_clash() {
        for (axes, negated) in [
            (&[(0, true), (1, true)][..], true),
            (&[(1, false), (0, false)], false),
            (&[(1, true), (0, false)], true),
            (&[(1, true), (0, false)], false),
        ] {
            let symmetry = symmetry(axes, negated);
            let mut values: Vec<i32> = (1..10).collect();
            symmetry.impose(&[3, 3], &mut values, |x| -x);
            assert_eq!(symmetry.clash(&[3, 3], &values, |x| -x), None, "{symmetry:?}: {values:?}");
            assert_eq!(values[0], if negated && axes[0].0 == 1 { values[0] } else { 1 });
        }
    }

    #[test]
    fn axes_that_are_no_symmetry() {
        let square = [Affine::constant(3), Affine::constant(3)];
        let oblong = [Affine::constant(2), Affine::constant(3)];
        let check = |axes: &[(u32, bool)], shape: &[Affine]| symmetry(axes, false).check(shape);
        assert_eq!(check(&[(1, false), (0, true)], &square), Ok(()));
        assert_eq!(check(&[(0, true), (1, true)], &oblong), Ok(()));
        assert_eq!(check(&[(1, false), (0, false)], &oblong), Err(NoSymmetry::Extents));
        assert_eq!(check(&[(0, true), (0, true)], &square), Err(NoSymmetry::Permutation));
        assert_eq!(check(&[(0, true), (2, true)], &square), Err(NoSymmetry::Permutation));
        assert_eq!(check(&[(0, true)], &square), Err(NoSymmetry::Axes));
    }
}
