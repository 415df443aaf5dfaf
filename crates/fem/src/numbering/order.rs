//! The order in which numbers are given.

/// The order in which the degrees of freedom of a mesh get their numbers.
///
/// ```
/// use kingpost_fem::{mesh::Mesh, numbering::{Numbering, NumberingOrder}};
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
    /// As by dimension, but edges and faces of 128 cells at a time: first the first edge of each of
    /// these cells, then the second of each, and so on.
    ///
    /// Where successive cells are translates of each other, as those of
    /// [`Mesh::unit`](crate::mesh::Mesh::unit), an edge or a face has the numbers that follow those
    /// of the same edge or face of the cell before. A sub-group that takes one edge of each of its
    /// cells then reads and updates one run.
    ///
    /// ```
    /// use kingpost_fem::{mesh::Mesh, numbering::{Numbering, NumberingOrder}};
    ///
    /// let mesh = Mesh::unit_square(4)?.with_ascending_vertices();
    /// let numbering = Numbering::new_in_order(&mesh, 2, NumberingOrder::ByEntity)?;
    /// // the first edges of the cells of a row
    /// assert_eq!([0, 1, 2, 3].map(|cell| numbering.cell(cell)[3]), [0, 1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Sectors that updates of a cell touch with transfers of one entity at a time, on the unit
    /// meshes: of P2 on tetrahedra 2.7 (by dimension 3.9), of P3 5.4 (7.7), of P4 9.7 (13.5), of P4
    /// on triangles 4.0 (4.6).
    ByEntity,
    /// As by entity, of meshes whose cells come in blocks that are alike: with
    /// [vertices as numbered](crate::mesh::Mesh::with_vertices_as_numbered), all squares or cubes of
    /// [`Mesh::unit`](crate::mesh::Mesh::unit) repeat the numbers of their cells in one pattern. The
    /// degrees of freedom of an edge are a run in all cells then, but not one that ascends in all.
    ByBlock,
}

impl NumberingOrder {
    /// The order for actions of operators, whose time is that of gathering and scattering.
    pub const OF_ACTIONS: Self = Self::ByDimension;

    /// The order for the rows of matrices: those of vertices have about five times the cells of those of edges,
    /// which a sub-group that adds up both waits for. On an H200 (2026-11-29) the 1.8 million rows of P2 on
    /// tetrahedra take half of the time.
    pub const OF_MATRICES: Self = Self::ByDimension;

    /// Whether each dimension has its own numbers.
    #[must_use]
    pub const fn is_by_dimension(self) -> bool {
        match self {
            Self::FirstTouch => false,
            Self::ByDimension | Self::ByEntity | Self::ByBlock => true,
        }
    }

    /// The cells at a time of which entities of a dimension are numbered one entity of the cell
    /// after the other.
    pub(super) const fn block(self, dim: usize) -> usize {
        match self {
            // vertices keep the order of first touch, which they have in the mesh, too
            Self::ByEntity | Self::ByBlock if dim > 0 => 128,
            Self::FirstTouch | Self::ByDimension | Self::ByEntity | Self::ByBlock => 1,
        }
    }
}

impl std::fmt::Display for NumberingOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FirstTouch => "by first touch",
            Self::ByDimension => "by dimension",
            Self::ByEntity => "by entity",
            Self::ByBlock => "by block",
        })
    }
}

/// The next number of each dimension.
#[derive(Clone, Copy)]
pub(super) struct Counters {
    order: NumberingOrder,
    /// The first counts all where they are one sequence.
    next: [usize; 4],
}

impl Counters {
    /// Counters of as many numbers of each dimension, and how many there are in all; none if they pass
    /// `i32::MAX`.
    pub(super) fn new(order: NumberingOrder, counts: [usize; 4]) -> Option<(Self, usize)> {
        let mut this = Self { order, next: [0; 4] };
        let mut n_dofs = 0_usize;
        for dim in [1, 2, 3, 0] {
            if order.is_by_dimension() {
                this.next[dim] = n_dofs;
            }
            n_dofs = n_dofs.checked_add(counts[dim])?;
        }
        i32::try_from(n_dofs).ok()?;
        Some((this, n_dofs))
    }

    /// The first of `size` fresh numbers for an entity.
    pub(super) fn take(&mut self, dim: usize, size: usize) -> i32 {
        let next = match self.order {
            NumberingOrder::FirstTouch => &mut self.next[0],
            NumberingOrder::ByDimension | NumberingOrder::ByEntity | NumberingOrder::ByBlock => {
                &mut self.next[dim]
            }
        };
        let first = *next as i32;
        *next += size;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbering::NumberingError;

    /// A mesh with 2³¹ degrees of freedom does not fit a test machine; its counters do.
    #[test]
    fn numbers_run_out_at_the_last_32_bit_one() {
        for order in [NumberingOrder::FirstTouch, NumberingOrder::ByDimension, NumberingOrder::ByEntity] {
            let of = |counts| Counters::new(order, counts).map(|(_, n)| n);
            let last = i32::MAX as usize;
            assert_eq!(of([last, 0, 0, 0]), Some(last));
            // each dimension may have fewer numbers than 32 bits hold, and all together more
            assert_eq!(of([1 << 30, 1 << 30, (1 << 30) - 1, 0]), None);
            assert_eq!(of([1, last - 3, 2, 0]), Some(last));
            assert_eq!(of([2, last - 3, 2, 0]), None);
            assert_eq!(of([usize::MAX, 1, 0, 0]), None);
        }
        let error = NumberingError::TooMany { degree: 8, cells: 134_480_000 };
        assert_eq!(
            error.to_string(),
            "P8 on 134480000 cells has more than 2147483647 degrees of freedom, which 32-bit maps cannot name; lower the degree or split the mesh"
        );
    }

    #[test]
    fn dimensions_follow_each_other_or_are_one_sequence() -> Result<(), NumberingError> {
        let none = || NumberingError::TooMany { degree: 1, cells: 1 };
        let taken = |order| -> Result<Vec<i32>, NumberingError> {
            let (mut counters, _) = Counters::new(order, [6, 4, 3, 1]).ok_or_else(none)?;
            Ok([0, 1, 0, 2, 3].map(|dim| counters.take(dim, 2)).to_vec())
        };
        assert_eq!(taken(NumberingOrder::FirstTouch)?, [0, 2, 4, 6, 8]);
        assert_eq!(taken(NumberingOrder::ByDimension)?, [8, 0, 10, 4, 7]);
        Ok(())
    }
}
