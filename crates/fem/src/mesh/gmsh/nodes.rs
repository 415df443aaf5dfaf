//! Gmsh's nodes of each element in basix's order: written by `scripts/gmsh_nodes.py`.

use crate::element::CellShape;

/// For each shape and order from 1 to 4, of prisms and pyramids to 2: the number of Gmsh's element type,
/// and which of its nodes each node of the equispaced Lagrange element is.
pub(super) const NODES: [(CellShape, usize, i32, &[usize]); 24] = [
    (CellShape::Interval, 1, 1, &[0, 1]),
    (CellShape::Interval, 2, 8, &[0, 1, 2]),
    (CellShape::Interval, 3, 26, &[0, 1, 2, 3]),
    (CellShape::Interval, 4, 27, &[0, 1, 2, 3, 4]),
    (CellShape::Triangle, 1, 2, &[0, 1, 2]),
    (CellShape::Triangle, 2, 9, &[0, 1, 2, 4, 5, 3]),
    (CellShape::Triangle, 3, 21, &[0, 1, 2, 5, 6, 8, 7, 3, 4, 9]),
    (CellShape::Triangle, 4, 23, &[0, 1, 2, 6, 7, 8, 11, 10, 9, 3, 4, 5, 12, 13, 14]),
    (CellShape::Tetrahedron, 1, 4, &[0, 1, 2, 3]),
    (CellShape::Tetrahedron, 2, 11, &[0, 1, 2, 3, 8, 9, 5, 7, 6, 4]),
    (CellShape::Tetrahedron, 3, 29, &[0, 1, 2, 3, 13, 12, 15, 14, 6, 7, 11, 10, 9, 8, 4, 5, 19, 18, 17, 16]),
    (
        CellShape::Tetrahedron,
        4,
        30,
        &[
            0, 1, 2, 3, 18, 17, 16, 21, 20, 19, 7, 8, 9, 15, 14, 13, 12, 11, 10, 4, 5, 6, 32, 33, 31, 28, 30,
            29, 25, 26, 27, 22, 24, 23, 34,
        ],
    ),
    (CellShape::Quadrilateral, 1, 3, &[0, 1, 3, 2]),
    (CellShape::Quadrilateral, 2, 10, &[0, 1, 3, 2, 4, 7, 5, 6, 8]),
    (CellShape::Quadrilateral, 3, 36, &[0, 1, 3, 2, 4, 5, 11, 10, 6, 7, 9, 8, 12, 13, 15, 14]),
    (
        CellShape::Quadrilateral,
        4,
        37,
        &[0, 1, 3, 2, 4, 5, 6, 15, 14, 13, 7, 8, 9, 12, 11, 10, 16, 20, 17, 23, 24, 21, 19, 22, 18],
    ),
    (CellShape::Hexahedron, 1, 5, &[0, 1, 3, 2, 4, 5, 7, 6]),
    (
        CellShape::Hexahedron,
        2,
        12,
        &[0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 10, 11, 12, 13, 15, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26],
    ),
    (
        CellShape::Hexahedron,
        3,
        92,
        &[
            0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 18, 22, 23, 20, 21, 24, 25, 26,
            27, 28, 29, 31, 30, 32, 35, 33, 34, 36, 37, 39, 38, 40, 43, 41, 42, 44, 45, 47, 46, 49, 48, 50,
            51, 52, 53, 55, 54, 56, 57, 59, 58, 60, 61, 63, 62,
        ],
    ),
    (
        CellShape::Hexahedron,
        4,
        93,
        &[
            0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 25, 24, 23, 29,
            30, 31, 26, 27, 28, 32, 33, 34, 35, 36, 37, 38, 39, 40, 43, 42, 41, 44, 51, 47, 48, 52, 50, 45,
            49, 46, 53, 57, 54, 60, 61, 58, 56, 59, 55, 62, 69, 65, 66, 70, 68, 63, 67, 64, 71, 75, 72, 78,
            79, 76, 74, 77, 73, 81, 84, 80, 85, 88, 87, 82, 86, 83, 89, 93, 90, 96, 97, 94, 92, 95, 91, 98,
            106, 99, 107, 118, 109, 101, 111, 100, 108, 119, 110, 120, 124, 121, 113, 122, 112, 102, 114,
            103, 115, 123, 116, 105, 117, 104,
        ],
    ),
    (CellShape::Prism, 1, 6, &[0, 1, 2, 3, 4, 5]),
    (CellShape::Prism, 2, 13, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]),
    (CellShape::Pyramid, 1, 7, &[0, 1, 3, 2, 4]),
    (CellShape::Pyramid, 2, 14, &[0, 1, 3, 2, 4, 5, 6, 7, 8, 9, 10, 12, 11, 13]),
];
