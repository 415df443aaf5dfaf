//! Where the elements of an array lie.

use crate::affine::Affine;
use serde::{Deserialize, Serialize};

/// Where an element lies in its buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Layout {
    /// The order of the axes, or the distances of elements.
    pub places: Places,
    /// Axis whose elements form one vector, if any.
    pub vector_axis: Option<u32>,
    /// How one axis is permuted by another one, if it is.
    pub swizzle: Option<Swizzle>,
}

/// Places along an axis of `2^b` elements, other ones for each index along another axis: `swizzle(1 ^= 0)`
/// puts element `[r, u]` where `[r, u ^ (r mod 2^b)]` would be. For a fixed `r`, exclusive-or permutes the
/// numbers below `2^b`, so that elements stay apart.
///
/// Work-items that read one column of a matrix then ask different banks, without room between rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Swizzle {
    /// The axis that is permuted.
    pub axis: u32,
    /// The axis whose index says how.
    pub by: u32,
}

impl Swizzle {
    /// Whether an axis is one of the two.
    #[must_use]
    pub fn mentions(self, axis: usize) -> bool {
        self.axis as usize == axis || self.by as usize == axis
    }

    /// With each axis at another place.
    fn moved(self, to: impl Fn(u32) -> u32) -> Self {
        Self { axis: to(self.axis), by: to(self.by) }
    }
}

/// The order of the axes of an array in memory, or the distances of its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Places {
    /// Dense, the last axis innermost.
    #[default]
    RowMajor,
    /// Dense, with the axes in another order, the outermost first.
    Order(Vec<u32>),
    /// Elements between neighbours along each axis.
    Strides(Vec<Affine>),
}

impl Places {
    /// Dense, with the axes in an order, the outermost first.
    #[must_use]
    pub fn in_order(order: Vec<u32>) -> Self {
        if order.iter().copied().eq(0..order.len() as u32) { Self::RowMajor } else { Self::Order(order) }
    }
}

impl Layout {
    /// The strides, if the layout gives any.
    #[must_use]
    pub fn strides(&self) -> Option<&[Affine]> {
        match &self.places {
            Places::Strides(strides) => Some(strides),
            Places::RowMajor | Places::Order(_) => None,
        }
    }

    /// Whether elements lie dense, the last axis innermost.
    #[must_use]
    pub fn is_row_major(&self) -> bool {
        self.places == Places::RowMajor && self.swizzle.is_none()
    }

    /// The axes of a dense array, the outermost in memory first.
    #[must_use]
    pub fn order(&self, axes: usize) -> Vec<usize> {
        match &self.places {
            Places::Order(order) => order.iter().map(|axis| *axis as usize).collect(),
            Places::RowMajor | Places::Strides(_) => (0..axes).collect(),
        }
    }

    /// Whether vectors lie along an axis, or it takes part in a swizzle.
    #[must_use]
    pub fn uses_axis(&self, axis: usize) -> bool {
        self.vector_axis.is_some_and(|a| a as usize == axis) || self.swizzle.is_some_and(|s| s.mentions(axis))
    }

    /// Takes an axis away, with a swizzle that it takes part in.
    pub fn remove_axis(&mut self, axis: usize) {
        let moved = |a: u32| if a as usize > axis { a - 1 } else { a };
        match &mut self.places {
            Places::RowMajor => {}
            Places::Strides(strides) => {
                strides.remove(axis);
                if strides.is_empty() {
                    self.places = Places::RowMajor;
                }
            }
            Places::Order(order) => {
                let kept = order.iter().filter(|a| **a as usize != axis);
                self.places = Places::in_order(kept.map(|a| moved(*a)).collect());
            }
        }
        self.vector_axis = self.vector_axis.map(moved);
        self.swizzle = self.swizzle.filter(|s| !s.mentions(axis)).map(|s| s.moved(moved));
    }

    /// Makes room for another axis: outside all others, or, as the outer part of the one at `axis`, just
    /// outside that, where elements are in an order. An axis in parts takes part in no swizzle.
    pub fn insert_axis(&mut self, axis: usize, is_outermost: bool) {
        let moved = |a: u32| if a as usize >= axis { a.saturating_add(1) } else { a };
        if let Places::Order(order) = &mut self.places {
            let at =
                if is_outermost { 0 } else { order.iter().position(|a| *a as usize == axis).unwrap_or(0) };
            order.iter_mut().for_each(|a| *a = moved(*a));
            order.insert(at, axis as u32);
        }
        self.vector_axis = self.vector_axis.map(moved);
        let kept = self.swizzle.filter(|s| is_outermost || !s.mentions(axis));
        self.swizzle = kept.map(|s| s.moved(moved));
    }
}

/// A layout in files.
#[derive(Serialize, Deserialize)]
struct Written {
    strides: Option<Vec<Affine>>,
    vector_axis: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    swizzle: Option<Swizzle>,
}

impl From<Layout> for Written {
    fn from(layout: Layout) -> Self {
        let (strides, order) = match layout.places {
            Places::RowMajor => (None, None),
            Places::Order(order) => (None, Some(order)),
            Places::Strides(strides) => (Some(strides), None),
        };
        Self { strides, vector_axis: layout.vector_axis, order, swizzle: layout.swizzle }
    }
}

impl From<Written> for Layout {
    fn from(written: Written) -> Self {
        let order = written.order.map_or(Places::RowMajor, Places::in_order);
        let places = written.strides.map_or(order, Places::Strides);
        Self { places, vector_axis: written.vector_axis, swizzle: written.swizzle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_an_order_move() {
        let mut layout =
            Layout { places: Places::in_order(vec![2, 0, 1]), vector_axis: Some(2), swizzle: None };
        assert_eq!(layout.order(3), [2, 0, 1]);
        layout.insert_axis(0, true);
        assert_eq!((layout.order(4), layout.vector_axis), (vec![0, 3, 1, 2], Some(3)));
        layout.insert_axis(3, false);
        assert_eq!((layout.order(5), layout.vector_axis), (vec![0, 3, 4, 1, 2], Some(4)));
        layout.remove_axis(3);
        layout.remove_axis(0);
        assert_eq!((layout.order(3), layout.vector_axis), (vec![2, 0, 1], Some(2)));
        layout.remove_axis(1);
        assert_eq!((layout.order(2), layout.vector_axis), (vec![1, 0], Some(1)));
        layout.remove_axis(0);
        assert!(layout.is_row_major());
    }

    #[test]
    fn axes_of_a_swizzle_move() {
        let swizzled = |axis, by| Layout { swizzle: Some(Swizzle { axis, by }), ..Layout::default() };
        let mut layout = swizzled(1, 0);
        assert!(!layout.is_row_major());
        layout.insert_axis(0, true);
        assert_eq!(layout, swizzled(2, 1));
        layout.insert_axis(3, false);
        assert_eq!(layout, swizzled(2, 1));
        layout.remove_axis(0);
        assert_eq!(layout, swizzled(1, 0));
        let mut other = layout.clone();
        other.insert_axis(1, false);
        layout.remove_axis(0);
        assert!(layout.is_row_major() && other.is_row_major());
    }

    #[test]
    fn the_written_form_of_strides_is_kept() -> serde_json::Result<()> {
        let old = r#"{"strides":null,"vector_axis":1}"#;
        let layout: Layout = serde_json::from_str(old)?;
        assert!(layout.is_row_major() && serde_json::to_string(&layout)? == old);
        let swizzle = Some(Swizzle { axis: 1, by: 0 });
        let layout = Layout { places: Places::in_order(vec![1, 0]), vector_axis: None, swizzle };
        let text = serde_json::to_string(&layout)?;
        assert_eq!(serde_json::from_str::<Layout>(&text)?, layout);
        Ok(())
    }
}
