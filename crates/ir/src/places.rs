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
        self.places == Places::RowMajor
    }

    /// The axes of a dense array, the outermost in memory first.
    #[must_use]
    pub fn order(&self, axes: usize) -> Vec<usize> {
        match &self.places {
            Places::Order(order) => order.iter().map(|axis| *axis as usize).collect(),
            Places::RowMajor | Places::Strides(_) => (0..axes).collect(),
        }
    }

    /// Takes an axis away.
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
    }

    /// Makes room for another axis before `axis`; where elements are in an order, the new one lies just
    /// outside it, or outside all others.
    pub fn insert_axis(&mut self, axis: usize, is_outermost: bool) {
        let moved = |a: u32| if a as usize >= axis { a.saturating_add(1) } else { a };
        if let Places::Order(order) = &mut self.places {
            let at =
                if is_outermost { 0 } else { order.iter().position(|a| *a as usize == axis).unwrap_or(0) };
            order.iter_mut().for_each(|a| *a = moved(*a));
            order.insert(at, axis as u32);
        }
        self.vector_axis = self.vector_axis.map(moved);
    }
}

/// A layout in files.
#[derive(Serialize, Deserialize)]
struct Written {
    strides: Option<Vec<Affine>>,
    vector_axis: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<Vec<u32>>,
}

impl From<Layout> for Written {
    fn from(layout: Layout) -> Self {
        let vector_axis = layout.vector_axis;
        match layout.places {
            Places::RowMajor => Self { strides: None, vector_axis, order: None },
            Places::Order(order) => Self { strides: None, vector_axis, order: Some(order) },
            Places::Strides(strides) => Self { strides: Some(strides), vector_axis, order: None },
        }
    }
}

impl From<Written> for Layout {
    fn from(written: Written) -> Self {
        let order = written.order.map_or(Places::RowMajor, Places::in_order);
        let places = written.strides.map_or(order, Places::Strides);
        Self { places, vector_axis: written.vector_axis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_an_order_move() {
        let mut layout = Layout { places: Places::in_order(vec![2, 0, 1]), vector_axis: Some(2) };
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
    fn the_written_form_of_strides_is_kept() -> serde_json::Result<()> {
        let old = r#"{"strides":null,"vector_axis":1}"#;
        let layout: Layout = serde_json::from_str(old)?;
        assert!(layout.is_row_major() && serde_json::to_string(&layout)? == old);
        let layout = Layout { places: Places::in_order(vec![1, 0]), vector_axis: None };
        let text = serde_json::to_string(&layout)?;
        assert_eq!(serde_json::from_str::<Layout>(&text)?, layout);
        Ok(())
    }
}
