//! Basix's nodes of each cell in VTK's order: written by `scripts/vtk_nodes.py`.

use crate::element::CellShape;

/// For each shape and order from 1 to 4: the number of VTK's cell type, and which node of the
/// equispaced Lagrange element each of its points is.
pub(super) const NODES: [(CellShape, usize, u8, &[usize]); 20] = [
    (CellShape::Interval, 1, 68, &[0, 1]),
    (CellShape::Interval, 2, 68, &[0, 1, 2]),
    (CellShape::Interval, 3, 68, &[0, 1, 2, 3]),
    (CellShape::Interval, 4, 68, &[0, 1, 2, 3, 4]),
    (CellShape::Triangle, 1, 69, &[0, 1, 2]),
    (CellShape::Triangle, 2, 69, &[0, 1, 2, 5, 3, 4]),
    (CellShape::Triangle, 3, 69, &[0, 1, 2, 7, 8, 3, 4, 6, 5, 9]),
    (CellShape::Triangle, 4, 69, &[0, 1, 2, 9, 10, 11, 3, 4, 5, 8, 7, 6, 12, 13, 14]),
    (CellShape::Tetrahedron, 1, 71, &[0, 1, 2, 3]),
    (CellShape::Tetrahedron, 2, 71, &[0, 1, 2, 3, 9, 6, 8, 7, 5, 4]),
    (CellShape::Tetrahedron, 3, 71, &[0, 1, 2, 3, 14, 15, 8, 9, 13, 12, 10, 11, 6, 7, 4, 5, 18, 16, 17, 19]),
    (
        CellShape::Tetrahedron,
        4,
        71,
        &[
            0, 1, 2, 3, 19, 20, 21, 10, 11, 12, 18, 17, 16, 13, 14, 15, 7, 8, 9, 4, 5, 6, 28, 29, 30, 23, 24,
            22, 25, 27, 26, 31, 33, 32, 34,
        ],
    ),
    (CellShape::Quadrilateral, 1, 70, &[0, 1, 3, 2]),
    (CellShape::Quadrilateral, 2, 70, &[0, 1, 3, 2, 4, 6, 7, 5, 8]),
    (CellShape::Quadrilateral, 3, 70, &[0, 1, 3, 2, 4, 5, 8, 9, 10, 11, 6, 7, 12, 13, 14, 15]),
    (
        CellShape::Quadrilateral,
        4,
        70,
        &[0, 1, 3, 2, 4, 5, 6, 10, 11, 12, 13, 14, 15, 7, 8, 9, 16, 17, 18, 19, 20, 21, 22, 23, 24],
    ),
    (CellShape::Hexahedron, 1, 72, &[0, 1, 3, 2, 4, 5, 7, 6]),
    (
        CellShape::Hexahedron,
        2,
        72,
        &[0, 1, 3, 2, 4, 5, 7, 6, 8, 11, 13, 9, 16, 18, 19, 17, 10, 12, 15, 14, 22, 23, 21, 24, 20, 25, 26],
    ),
    (
        CellShape::Hexahedron,
        3,
        72,
        &[
            0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 14, 15, 18, 19, 10, 11, 24, 25, 28, 29, 30, 31, 26, 27, 12, 13, 16,
            17, 22, 23, 20, 21, 40, 41, 42, 43, 44, 45, 46, 47, 36, 37, 38, 39, 48, 49, 50, 51, 32, 33, 34,
            35, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
        ],
    ),
    (
        CellShape::Hexahedron,
        4,
        72,
        &[
            0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 10, 17, 18, 19, 23, 24, 25, 11, 12, 13, 32, 33, 34, 38, 39, 40, 41,
            42, 43, 35, 36, 37, 14, 15, 16, 20, 21, 22, 29, 30, 31, 26, 27, 28, 62, 63, 64, 65, 66, 67, 68,
            69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 53, 54, 55, 56, 57, 58, 59, 60, 61, 80, 81, 82, 83,
            84, 85, 86, 87, 88, 44, 45, 46, 47, 48, 49, 50, 51, 52, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98,
            99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117,
            118, 119, 120, 121, 122, 123, 124,
        ],
    ),
];
