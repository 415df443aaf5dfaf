//! The order in which numbers are given.

use crate::element::FiniteElement;

/// The order in which the degrees of freedom of a mesh get their numbers.
///
/// ```
/// use purlin_fem::{mesh::Mesh, numbering::{Numbering, NumberingOrder}};
///
/// let mesh = Mesh::unit_square(1)?; // two triangles
/// let numbering = Numbering::new_in_order(&mesh, 2, NumberingOrder::ByDimension)?;
/// // the vertices after the five edges
/// assert_eq!(numbering.cell(0), [5, 6, 7, 0, 1, 2]);
/// assert_eq!(numbering.cell(1), [5, 7, 8, 3, 4, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NumberingOrder {
    /// In the order in which the cells first touch them, whatever entities they belong to: each cell
    /// has its new numbers in one run.
    #[default]
    FirstTouch,
    /// First the numbers of edges, then of faces, then of cells, and of vertices last; each of these in the
    /// order of first touch.
    ///
    /// The numbers of an edge or a face are a block, and all blocks of a dimension are equally long.
    /// A block of two or four numbers of eight bytes therefore stays within one sector of 32 bytes,
    /// where vertices in between would shift it across two. The interiors of successive cells are one
    /// run.
    ///
    /// # Source
    /// On an H200 (2026-11-26) the time of an atomic scatter follows the sectors that the updates
    /// of a sub-group touch. With transfers that take the entities of one dimension at a time, P5 on
    /// triangles touches 5.2 sectors a cell instead of 8.1, P5 on tetrahedra 15.4 instead of 22.6.
    ByDimension,
}

impl NumberingOrder {
    /// The order for actions of operators, whose time is that of gathering and scattering.
    pub const OF_ACTIONS: Self = Self::ByDimension;
}

impl std::fmt::Display for NumberingOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FirstTouch => "by first touch",
            Self::ByDimension => "by dimension",
        })
    }
}

/// Numbers given so far, by the dimension of the entity.
pub(super) struct Counters {
    order: NumberingOrder,
    /// The next number of each dimension; the first counts all where they are one sequence.
    next: [i32; 4],
}

impl Counters {
    pub(super) const fn new(order: NumberingOrder) -> Self {
        Self { order, next: [0; 4] }
    }

    /// The first of `size` fresh numbers for an entity; none if they would pass `i32::MAX`.
    pub(super) fn take(&mut self, dim: usize, size: usize) -> Option<i32> {
        let next = match self.order {
            NumberingOrder::FirstTouch => &mut self.next[0],
            NumberingOrder::ByDimension => &mut self.next[dim],
        };
        let first = *next;
        *next = first.checked_add(i32::try_from(size).ok()?)?;
        Some(first)
    }

    /// Turns the numbers of each dimension, [cells, dofs], into numbers of all degrees of freedom.
    /// Returns how many there are; none if they pass `i32::MAX`.
    pub(super) fn place(&self, element: &FiniteElement, dofs: &mut [i32]) -> Option<usize> {
        if self.order == NumberingOrder::FirstTouch {
            return Some(self.next[0] as usize);
        }
        let mut first = [0; 4];
        let mut n_dofs = 0_i32;
        for dim in [1, 2, 3, 0] {
            first[dim] = n_dofs;
            n_dofs = n_dofs.checked_add(self.next[dim])?;
        }
        let shape = element.shape();
        let of_entities = |dim: usize| shape.entities(dim).len() * element.dofs_per_entity(dim);
        let shifts: Vec<i32> =
            (0..=shape.dim()).flat_map(|dim| std::iter::repeat_n(first[dim], of_entities(dim))).collect();
        for cell in dofs.chunks_exact_mut(shifts.len().max(1)) {
            cell.iter_mut().zip(&shifts).for_each(|(dof, shift)| *dof += shift);
        }
        Some(n_dofs as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbering::NumberingError;

    /// A mesh with 2³¹ degrees of freedom does not fit a test machine; the counter behind the error
    /// does.
    #[test]
    fn numbers_run_out_at_the_last_32_bit_one() {
        let mut counters = Counters { order: NumberingOrder::FirstTouch, next: [i32::MAX - 3, 0, 0, 0] };
        assert_eq!(counters.take(2, 3), Some(i32::MAX - 3));
        assert_eq!(counters.next[0], i32::MAX);
        assert_eq!(counters.take(1, 1), None);
        assert_eq!(Counters::new(NumberingOrder::ByDimension).take(0, usize::MAX), None);
        let error = NumberingError::TooMany { degree: 8, cells: 134_480_000 };
        assert_eq!(
            error.to_string(),
            "P8 on 134480000 cells has more than 2147483647 degrees of freedom, which 32-bit maps cannot name; lower the degree or split the mesh"
        );
    }

    /// Each dimension may have fewer numbers than 32 bits hold, and all together more.
    #[test]
    fn the_numbers_of_all_dimensions_run_out_together() -> Result<(), crate::element::ElementError> {
        let element = crate::element::LagrangeElement::new(crate::element::CellShape::Triangle, 3)?;
        let all = |next| Counters { order: NumberingOrder::ByDimension, next };
        let place = |next| all(next).place(element.as_element(), &mut []);
        assert_eq!(place([1 << 30, 1 << 30, (1 << 30) - 1, 0]), None);
        assert_eq!(place([1, i32::MAX - 3, 2, 0]), Some(i32::MAX as usize));
        assert_eq!(place([2, i32::MAX - 3, 2, 0]), None);
        Ok(())
    }
}
