//! Meshes with each cell divided: volumes, faces that fit, tags.
#![allow(clippy::unwrap_used)]

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::{CellTags, Mesh, MeshError};
use std::collections::BTreeSet;

/// A unit mesh with vertices that are moved, so that no cell is like another one, and a tag for half of the cells.
fn moved(shape: CellShape, n: usize) -> Mesh {
    let unit = Mesh::unit(shape, n).unwrap();
    let inside = |x: &f64| *x > 0.0 && *x < 1.0;
    let dim = shape.dim();
    let mut coordinates = unit.coordinates().to_vec();
    for (k, point) in coordinates.chunks_mut(dim).enumerate() {
        if point.iter().all(inside) {
            point.iter_mut().enumerate().for_each(|(axis, x)| *x += 0.02 * ((3 * k + axis) as f64).sin());
        }
    }
    let tags: Vec<Vec<i32>> =
        (0..unit.n_cells()).map(|cell| if cell % 2 == 0 { vec![5] } else { vec![] }).collect();
    let mesh = Mesh::new(shape, coordinates, unit.cells().to_vec(), None).unwrap();
    mesh.with_tags(CellTags::new(tags.iter().map(Vec::as_slice))).unwrap()
}

#[test]
fn children_fill_their_parents() {
    for shape in CellShape::ALL.into_iter().filter(|shape| *shape != CellShape::Pyramid) {
        let mesh = moved(shape, 3);
        let fine = mesh.refined().unwrap();
        let each = 1 << shape.dim();
        assert_eq!(fine.n_cells(), each * mesh.n_cells());
        // cells that overlap, turn inside out or are flat are refused here
        let checked = Mesh::new(shape, fine.coordinates().to_vec(), fine.cells().to_vec(), None).unwrap();
        // no facet hangs: those of one cell are the parts of the boundary
        assert_eq!(checked.boundary().len(), mesh.boundary().len() * each / 2, "{shape}");
        assert_eq!(fine.coordinates()[..mesh.coordinates().len()], *mesh.coordinates());
        // 1e-14: sums of at most 1296 volumes
        assert!((fine.volume() - 1.0).abs() < 1e-13, "{shape}");
        let (of_fine, of_coarse) = (fine.tags().unwrap(), mesh.tags().unwrap());
        for cell in 0..fine.n_cells() {
            assert_eq!(of_fine.of(cell), of_coarse.of(cell / each));
            let corners: BTreeSet<u32> = fine.cell(cell).iter().copied().collect();
            assert_eq!(corners.len(), shape.n_vertices());
        }
        if shape.is_simplex() {
            for cell in 0..mesh.n_cells() {
                let parts: f64 = (0..each).map(|k| fine.determinant(cell * each + k).abs()).sum();
                assert!((parts - mesh.determinant(cell).abs()).abs() < 1e-15);
            }
        }
    }
}

#[test]
fn tetrahedra_keep_at_most_three_shapes() {
    let corners = vec![0.0, 0.0, 0.0, 1.0, 0.1, 0.0, 0.2, 0.9, 0.1, 0.3, 0.2, 1.1];
    let mut mesh = Mesh::new(CellShape::Tetrahedron, corners, vec![0, 1, 2, 3], None).unwrap();
    for _ in 0..4 {
        mesh = mesh.refined().unwrap();
    }
    let shape = |cell: usize| {
        let vertex = |v: u32| mesh.vertex(v);
        let mut lengths = Vec::new();
        for (k, a) in mesh.cell(cell).iter().enumerate() {
            for b in &mesh.cell(cell)[..k] {
                let squares = vertex(*a).iter().zip(vertex(*b)).map(|(x, y)| (x - y) * (x - y));
                // lengths of some 0.05, whose squares have rounding errors of 1e-17
                lengths.push((squares.sum::<f64>() * 1e6).round() as i64);
            }
        }
        lengths.sort_unstable();
        lengths
    };
    let shapes: BTreeSet<Vec<i64>> = (0..mesh.n_cells()).map(shape).collect();
    assert!((2..=3).contains(&shapes.len()), "{shapes:?}");
}

#[test]
fn parts_of_facets_have_their_tags() {
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/groups_41.msh")).unwrap();
    let mesh = Mesh::from_gmsh(&text).unwrap();
    let fine = mesh.refined().unwrap();
    let count = |mesh: &Mesh, tag| mesh.facet_tags().iter().filter(|t| t.tag == tag).count();
    let all: BTreeSet<i32> = mesh.facet_tags().iter().map(|t| t.tag).collect();
    assert!(!all.is_empty());
    let boundary: BTreeSet<_> = fine.boundary().into_iter().collect();
    for tag in all {
        assert_eq!(count(&fine, tag), 2 * count(&mesh, tag));
    }
    let outside = mesh.boundary().into_iter().collect::<BTreeSet<_>>();
    for tag in fine.facet_tags() {
        let parent = mesh.facet_tags().iter().any(|t| t.side.cell == tag.side.cell / 4 && t.tag == tag.tag);
        assert!(parent, "{tag:?}");
    }
    let tagged = |mesh: &Mesh, sides: &BTreeSet<_>| {
        mesh.facet_tags().iter().filter(|t| sides.contains(&t.side)).count()
    };
    assert_eq!(tagged(&fine, &boundary), 2 * tagged(&mesh, &outside));
}

#[test]
fn curved_cells_are_not_divided() {
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plate_curved.msh")).unwrap();
    let refused = Mesh::from_gmsh(&text).unwrap().refined().unwrap_err();
    assert!(matches!(refused, MeshError::NotRefined { .. }), "{refused}");
    let pyramids = Mesh::unit(CellShape::Pyramid, 1).unwrap().refined().unwrap_err();
    assert!(
        pyramids.to_string().ends_with("pyramids and tetrahedra; needed cells of one shape"),
        "{pyramids}"
    );
    assert!(refused.to_string().ends_with("cells cannot be divided: they are curved; needed straight ones"));
}
