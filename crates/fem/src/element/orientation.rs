//! Orientations of a facet between two cells: how each of them has it.

use super::CellShape;

/// In how many orientations a cell may have a facet of a shape; none is the shape of a vertex.
pub fn n_orientations(facet: Option<CellShape>) -> usize {
    match facet {
        None => 1,
        Some(CellShape::Interval) => 2,
        // the rotations, and each of them reflected
        Some(shape) => 2 * shape.n_vertices(),
    }
}

/// Where a cell that has a facet in an orientation has a point of it: the orientation is
/// `reflected + 2 * rotations`, and the rotations come first.
///
/// # Source
/// Scroggs et al. 2022, §3; the numbers are those of FFCx's tables.
pub fn oriented_point(facet: Option<CellShape>, orientation: usize, point: &[f64]) -> Vec<f64> {
    match (facet, point) {
        (Some(CellShape::Interval), [x]) => vec![if orientation % 2 == 1 { 1.0 - x } else { *x }],
        (Some(shape), [x, y]) => {
            let (mut x, mut y) = (*x, *y);
            for _ in 0..orientation / 2 {
                (x, y) = (y, if shape.is_simplex() { 1.0 - x - y } else { 1.0 - x });
            }
            if orientation % 2 == 1 { vec![y, x] } else { vec![x, y] }
        }
        (_, point) => point.to_vec(),
    }
}

/// The orientation of a facet with these vertices, in the order of the cell: its origin is at the
/// vertex of the lowest number, its first axis ends in the lower of the neighbours.
pub fn orientation_of(facet: Option<CellShape>, vertices: &[u32]) -> usize {
    let Some(shape) = facet else { return 0 };
    let dim = shape.dim();
    let corner = |k: usize| &shape.vertices()[k * dim..(k + 1) * dim];
    // the vertex that an orientation puts at a corner of the common facet
    let vertex = |orientation: usize, k: usize| {
        let place = oriented_point(facet, orientation, corner(k));
        let at = (0..vertices.len()).find(|v| corner(*v) == place);
        at.and_then(|v| vertices.get(v)).copied()
    };
    let key = |orientation: &usize| (0..=dim).map(|k| vertex(*orientation, k)).collect::<Vec<_>>();
    (0..n_orientations(facet)).min_by_key(key).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // what a failed test does
mod tests {
    use super::{n_orientations, orientation_of, oriented_point};
    use crate::element::CellShape::{self, Interval, Quadrilateral, Triangle};

    /// The numbers that DOLFINx 0.11 gives a facet of a tetrahedron, by the order of its vertices.
    #[test]
    fn orientations_of_triangles_are_those_of_dolfinx() {
        let given =
            [([0, 1, 2], 0), ([1, 0, 2], 3), ([0, 2, 1], 1), ([2, 0, 1], 4), ([1, 2, 0], 2), ([2, 1, 0], 5)];
        for (vertices, state) in given {
            assert_eq!(orientation_of(Some(Triangle), &vertices), state, "{vertices:?}");
        }
    }

    /// The same of squares, facets of hexahedra.
    #[test]
    fn orientations_of_squares_are_those_of_dolfinx() {
        let given = [
            ([0, 1, 2, 3], 0),
            ([0, 2, 1, 3], 1),
            ([1, 3, 0, 2], 2),
            ([1, 0, 3, 2], 3),
            ([3, 2, 1, 0], 4),
            ([3, 1, 2, 0], 5),
            ([2, 0, 3, 1], 6),
            ([2, 3, 0, 1], 7),
        ];
        for (vertices, state) in given {
            assert_eq!(orientation_of(Some(Quadrilateral), &vertices), state, "{vertices:?}");
        }
    }

    /// Of all orders of vertices, corners of the common facet go to the same vertex.
    #[test]
    fn all_orders_agree_on_the_points() {
        fn orders(left: &[u32]) -> Vec<Vec<u32>> {
            if left.is_empty() {
                return vec![Vec::new()];
            }
            let with_first = |first: &u32| {
                let rest: Vec<u32> = left.iter().copied().filter(|v| v != first).collect();
                orders(&rest).into_iter().map(|rest| [&[*first][..], &rest].concat()).collect::<Vec<_>>()
            };
            left.iter().flat_map(with_first).collect()
        }
        let vertex = |shape: CellShape, order: &[u32], point: &[f64]| -> u32 {
            let dim = shape.dim();
            let at = (0..order.len()).find(|k| &shape.vertices()[k * dim..(k + 1) * dim] == point).unwrap();
            order[at]
        };
        for shape in [Interval, Triangle, Quadrilateral] {
            let (n, dim) = (shape.n_vertices(), shape.dim());
            let mut found = vec![false; n_orientations(Some(shape))];
            for order in orders(&(0..n as u32).collect::<Vec<_>>()) {
                let state = orientation_of(Some(shape), &order);
                found[state] = true;
                let corners: Vec<u32> = (0..=dim)
                    .map(|k| {
                        let corner = &shape.vertices()[k * dim..(k + 1) * dim];
                        vertex(shape, &order, &oriented_point(Some(shape), state, corner))
                    })
                    .collect();
                assert_eq!(corners[0], 0, "{shape} {order:?}");
                assert!(dim == 1 || corners[1] < corners[2], "{shape} {order:?}");
            }
            assert!(found.iter().all(|f| *f), "{shape}: {found:?}");
        }
    }
}
