//! Symmetries of arrays: which element has the value of which other one, or its negative.

use crate::affine::Affine;
use crate::complex::Complex;
use crate::constant::TableData;
use crate::expr::Expr;
use crate::half::{Bf16, F16};
use crate::ids::VarId;
use crate::types::Flag;
use serde::{Deserialize, Serialize};

/// The index along one axis of the image of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AxisImage {
    /// The axis of the element whose index is taken.
    pub axis: u32,
    /// Whether it counts from the other end.
    pub mirrored: bool,
}

/// `array(f) = array(image(f))` for every index `f`, to the last bit, or the negative of it where it is
/// negated; zeros of either sign are negatives of each other, since an element may be its own image.
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

    /// The first entry of a table that has not the value it should have, and its image.
    pub fn clash_in(&self, shape: &[usize], data: &TableData) -> Option<(usize, usize)> {
        match data {
            TableData::Real(v) => self.clash(shape, &v.iter().map(|x| x.0).collect::<Vec<_>>()),
            TableData::Int(v) => self.clash(shape, v),
            TableData::Complex(v) => self.clash(shape, &v.iter().map(|z| z.map(|x| x.0)).collect::<Vec<_>>()),
        }
    }

    /// The same of the entries of a table as [`exchanges_zeros`](Self::exchanges_zeros) tells of elements.
    pub fn exchanges_zeros_in(&self, shape: &[usize], data: &TableData) -> bool {
        match data {
            TableData::Real(v) => self.exchanges_zeros(shape, &v.iter().map(|x| x.0).collect::<Vec<_>>()),
            TableData::Int(_) => false,
            TableData::Complex(v) => {
                self.exchanges_zeros(shape, &v.iter().map(|z| z.map(|x| x.0)).collect::<Vec<_>>())
            }
        }
    }

    /// The first element that has not the value it should have, and its image.
    pub fn clash<T: Element>(&self, shape: &[usize], values: &[T]) -> Option<(usize, usize)> {
        let fits = |at: usize, image: usize| match self.negated {
            true => values[at] == values[image].negative(),
            false => values[at].is_same(values[image]),
        };
        let mut pairs = (0..values.len()).map(|at| (at, self.image_of(shape, at)));
        pairs.find(|(at, image)| !fits(*at, *image))
    }

    /// Whether an element is a zero that its image, with the sign that it should have, is not to the
    /// last bit: what the symmetry says of a negated array does not tell the sign of its zeros.
    pub fn exchanges_zeros<T: Element>(&self, shape: &[usize], values: &[T]) -> bool {
        let value = |at: usize| if self.negated { values[at].negative() } else { values[at] };
        (0..values.len()).any(|at| {
            let image = value(self.image_of(shape, at));
            values[at] == image && !values[at].is_same(image)
        })
    }

    /// Makes values symmetric: of elements that are images of each other the first one decides.
    pub fn impose<T: Element>(&self, shape: &[usize], values: &mut [T]) {
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
                values[at] = if self.negated && k % 2 == 1 { first.negative() } else { first };
            }
        }
    }
}

/// An element of an array of a symmetry.
pub trait Element: Copy + Default + PartialEq {
    /// Whether both have the same bits.
    fn is_same(self, other: Self) -> bool;

    /// The negative; of the least integer itself.
    #[must_use]
    fn negative(self) -> Self;
}

macro_rules! reals {
    ($($ty:ty),*) => { $(impl Element for $ty {
        fn is_same(self, other: Self) -> bool {
            self.to_bits() == other.to_bits()
        }

        fn negative(self) -> Self {
            -self
        }
    })* };
}

macro_rules! integers {
    ($($ty:ty),*) => { $(impl Element for $ty {
        fn is_same(self, other: Self) -> bool {
            self == other
        }

        fn negative(self) -> Self {
            self.wrapping_neg()
        }
    })* };
}

reals!(f64, f32);
integers!(i64, i32, i16, i8, u8, u16, u32, u64);

impl Element for F16 {
    fn is_same(self, other: Self) -> bool {
        self.0 == other.0
    }

    fn negative(self) -> Self {
        Self(self.0 ^ 0x8000)
    }
}

impl Element for Bf16 {
    fn is_same(self, other: Self) -> bool {
        self.0 == other.0
    }

    fn negative(self) -> Self {
        Self(self.0 ^ 0x8000)
    }
}

impl<T: Element> Element for Complex<T> {
    fn is_same(self, other: Self) -> bool {
        self.re.is_same(other.re) && self.im.is_same(other.im)
    }

    fn negative(self) -> Self {
        Self { re: self.re.negative(), im: self.im.negative() }
    }
}

impl Element for Flag {
    fn is_same(self, other: Self) -> bool {
        self == other
    }

    fn negative(self) -> Self {
        self
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
        assert_eq!(turned.clash(&[2, 3], &[1, 2, 3, -3, -2, -1]), None);
        assert_eq!(turned.clash(&[2, 3], &[1, 2, 3, -3, 2, -1]), Some((1, 4)));
        let transposed = symmetry(&[(1, false), (0, false)], false);
        assert_eq!(transposed.clash(&[2, 2], &[1, 2, 2, 3]), None);
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
            symmetry.impose(&[3, 3], &mut values);
            assert_eq!(symmetry.clash(&[3, 3], &values), None, "{symmetry:?}: {values:?}");
            assert_eq!(values[0], if negated && axes[0].0 == 1 { values[0] } else { 1 });
        }
    }

    #[test]
    fn symmetric_elements_have_the_same_bits() {
        let mirrored = symmetry(&[(0, true)], false);
        assert_eq!(mirrored.clash(&[3], &[0.0, 2.0, -0.0]), Some((0, 2)));
        assert_eq!(mirrored.clash(&[3], &[-0.0_f32, 2.0, -0.0]), None);
        assert_eq!(mirrored.clash(&[2], &[f64::NAN, f64::NAN]), None);
        assert_eq!(mirrored.clash(&[2], &[f64::INFINITY, f64::NEG_INFINITY]), Some((0, 1)));
    }

    #[test]
    fn negated_zeros_have_either_sign() {
        let negated = symmetry(&[(0, true)], true);
        assert_eq!(negated.clash(&[3], &[-2.0, 0.0, 2.0]), None);
        assert!(negated.exchanges_zeros(&[3], &[-2.0, 0.0, 2.0]));
        assert_eq!(negated.clash(&[2], &[0.0, 0.0]), None);
        assert!(negated.exchanges_zeros(&[2], &[0.0, 0.0]));
        assert!(!negated.exchanges_zeros(&[4], &[-2.0, 0.0, -0.0, 2.0]));
        assert_eq!(negated.clash(&[2], &[f64::NAN, f64::NAN]), Some((0, 1)));
        assert_eq!(negated.clash(&[2], &[f64::INFINITY, f64::NEG_INFINITY]), None);
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
