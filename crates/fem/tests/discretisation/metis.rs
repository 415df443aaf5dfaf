//! Parts of meshes by METIS: of one size, with few facets between them.
#![allow(clippy::unwrap_used)]

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::{Mesh, PartsError};

/// The facets between cells of different parts.
fn cut(mesh: &Mesh, part_of: &[u32]) -> usize {
    let part = |cell: u32| part_of[cell as usize];
    mesh.facets().iter().filter(|f| f.other.is_some_and(|o| part(f.side.cell) != part(o.cell))).count()
}

#[test]
fn parts_are_of_one_size_and_share_few_facets() {
    // the facets of planes across the mesh: those of halves along two or three axes
    let cases = [
        (Mesh::unit(CellShape::Hexahedron, 8).unwrap(), 64),
        (Mesh::unit(CellShape::Quadrilateral, 16).unwrap(), 16),
        (Mesh::unit_cube(6).unwrap(), 72),
    ];
    for (mesh, plane) in cases {
        for (parts, planes) in [(1, 0), (2, 1), (4, 2), (8, 4)] {
            let part_of = mesh.parts_by_metis(parts).unwrap();
            assert_eq!(part_of, mesh.parts_by_metis(parts).unwrap());
            let mut counts = vec![0; parts];
            for part in &part_of {
                counts[*part as usize] += 1;
            }
            let mean = mesh.n_cells() as f64 / parts as f64;
            // METIS allows 3 %, and small parts differ by a few cells
            let largest = *counts.iter().max().unwrap() as f64;
            assert!(largest <= 1.03 * mean + 2.0, "{counts:?}");
            assert!(counts.iter().all(|n| *n > 0), "{counts:?}");
            let found = cut(&mesh, &part_of);
            assert!(found <= plane * planes * 3 / 2, "{parts} parts: {found} facets for {}", plane * planes);
            assert!(parts == 1 || found >= plane * 3 / 4, "{parts} parts: {found} facets");
        }
    }
}

#[test]
fn what_makes_no_parts_is_refused() {
    let mesh = Mesh::unit_square(1).unwrap();
    assert_eq!(mesh.parts_by_metis(0).unwrap_err(), PartsError::Parts { cells: 2, parts: 0 });
    assert_eq!(mesh.parts_by_metis(3).unwrap_err().to_string(), "2 cells make no 3 parts; use from 1 to 2");
    assert_eq!(mesh.parts_by_metis(1).unwrap(), [0, 0]);
}
