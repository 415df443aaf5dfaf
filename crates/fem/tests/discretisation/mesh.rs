//! Unit meshes, checks and reordering.
#![allow(clippy::unwrap_used)]

use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::{CellTags, Facet, FacetSide, FacetTag, Mesh, MeshError};
use std::collections::BTreeMap;

#[test]
fn unit_meshes_are_checked_meshes_of_volume_one() {
    for n in [1, 2, 7] {
        for mesh in [Mesh::unit_square(n).unwrap(), Mesh::unit_cube(n).unwrap()] {
            let dim = mesh.shape().dim();
            assert_eq!(mesh.n_cells(), if dim == 2 { 2 * n * n } else { 6 * n * n * n });
            assert_eq!(mesh.n_vertices(), (n + 1).pow(dim as u32));
            let checked =
                Mesh::new(mesh.shape(), mesh.coordinates().to_vec(), mesh.cells().to_vec(), None).unwrap();
            assert_eq!(checked, mesh);
            // 1e-13: at most 2058 determinants, each with the rounding of i/n.
            assert!((mesh.volume() - 1.0).abs() < 1e-13);
        }
    }
}

#[test]
fn unit_meshes_refuse_no_divisions_and_too_many() {
    assert_eq!(
        Mesh::unit_square(0).unwrap_err().to_string(),
        "0 divisions of the unit square: from 1 to 65534 are supported"
    );
    assert_eq!(
        Mesh::unit_cube(1625).unwrap_err(),
        MeshError::Divisions { domain: "cube", n: 1625, max: 1624 }
    );
}

fn two_triangles(coordinates: [f64; 8], cells: [u32; 6]) -> Result<Mesh, MeshError> {
    Mesh::new(CellShape::Triangle, coordinates.to_vec(), cells.to_vec(), None)
}

const SQUARE: [f64; 8] = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0];

/// Every order of the vertices of every cell is the same mesh: as large, and with cells on the same
/// sides of facets.
#[test]
fn cells_list_their_vertices_in_any_order() {
    for mesh in [Mesh::unit_square(2).unwrap(), Mesh::unit_cube(2).unwrap()] {
        let corners = mesh.shape().n_vertices();
        let rebuilt = |cells: Vec<u32>| Mesh::new(mesh.shape(), mesh.coordinates().to_vec(), cells, None);
        for (a, b) in (0..corners).flat_map(|a| (0..a).map(move |b| (a, b))) {
            // one cell in two is turned round, so that facets lie between cells of both
            // orientations
            let turned = |(k, cell): (usize, &[u32])| {
                let mut cell = cell.to_vec();
                if k % 2 == 0 {
                    cell.swap(a, b);
                }
                cell
            };
            let cells: Vec<u32> = mesh.cells().chunks(corners).enumerate().flat_map(turned).collect();
            let mixed = rebuilt(cells.clone()).unwrap();
            assert!(mixed.determinant(0) < 0.0 && mixed.determinant(1) > 0.0);
            // 1e-13: 48 determinants of halves
            assert!((mixed.volume() - 1.0).abs() < 1e-13);
            let mut twice = cells.clone();
            twice.extend(mesh.cell(0)); // the first cell once more, turned back
            let error = rebuilt(twice).unwrap_err();
            assert_eq!(error, MeshError::Overlap { cell: mesh.n_cells(), other: 0 });
        }
    }
}

#[test]
fn refuses_a_degenerate_cell_by_number() {
    let flat = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 3.0, 3.0 + 1e-15];
    assert!(matches!(
        two_triangles(flat, [0, 1, 2, 0, 2, 3]).unwrap_err(),
        MeshError::Degenerate { cell: 1, .. }
    ));
    assert!(matches!(
        two_triangles(SQUARE, [0, 1, 2, 0, 2, 2]).unwrap_err(),
        MeshError::Degenerate { cell: 1, .. }
    ));
    let huge = SQUARE.map(|x| (x - 0.5) * 1e300);
    assert!(matches!(
        two_triangles(huge, [0, 1, 2, 0, 2, 3]).unwrap_err(),
        MeshError::Degenerate { cell: 0, .. }
    ));
}

#[test]
fn refuses_cells_on_one_side_of_a_facet() {
    let twice = two_triangles(SQUARE, [0, 1, 2, 1, 2, 0]).unwrap_err();
    assert_eq!(twice, MeshError::Overlap { cell: 1, other: 0 });
    for order in [[0, 1, 3], [1, 0, 3], [3, 1, 0]] {
        let [a, b, c] = order;
        let fold = two_triangles(SQUARE, [0, 1, 2, a, b, c]).unwrap_err();
        assert_eq!(
            fold.to_string(),
            "cells 0 and 1 lie on the same side of a facet they share; one is a duplicate, or they overlap"
        );
    }
    let cube = Mesh::unit_cube(1).unwrap();
    let mut cells = cube.cells().to_vec();
    cells.extend_from_slice(cube.cell(2));
    let error = Mesh::new(cube.shape(), cube.coordinates().to_vec(), cells, None).unwrap_err();
    assert_eq!(error, MeshError::Overlap { cell: 6, other: 2 });
}

/// On meshes of more vertices than a thread takes at a time, and on those of every shape.
#[test]
fn facets_are_those_of_the_same_vertices() {
    let mut meshes = vec![Mesh::unit_cube(11).unwrap(), Mesh::unit_square(40).unwrap()];
    meshes.extend(CellShape::ALL.map(|shape| Mesh::unit(shape, 3).unwrap()));
    for mesh in &meshes {
        let mut sides: BTreeMap<Vec<u32>, Vec<FacetSide>> = BTreeMap::new();
        for cell in 0..mesh.n_cells() {
            for (facet, own) in mesh.shape().facets().iter().enumerate() {
                let mut vertices: Vec<u32> = own.iter().map(|v| mesh.cell(cell)[*v]).collect();
                vertices.sort_unstable();
                let side = FacetSide { cell: cell as u32, facet: facet as u8 };
                sides.entry(vertices).or_default().push(side);
            }
        }
        let mut all: Vec<Facet> =
            sides.values().map(|s| Facet { side: s[0], other: s.get(1).copied() }).collect();
        all.sort_by_key(|facet| facet.side);
        assert!(mesh.facets() == all, "{}", mesh.shape());
        let alone = all.iter().filter(|facet| facet.other.is_none()).map(|facet| facet.side);
        assert_eq!(mesh.boundary(), alone.collect::<Vec<_>>());
    }
}

#[test]
fn accepts_cells_of_any_size() {
    for scale in [1e-100, 1e-6, 1e100] {
        two_triangles(SQUARE.map(|x| x * scale), [0, 1, 2, 0, 2, 3]).unwrap();
    }
}

#[test]
fn refuses_lists_that_do_not_fit() {
    let shape = CellShape::Triangle;
    let new =
        |x: &[f64], cells: &[u32], tags| Mesh::new(shape, x.to_vec(), cells.to_vec(), tags).unwrap_err();
    assert_eq!(
        new(&SQUARE[..7], &[0, 1, 2], None),
        MeshError::Rows { list: "coordinates", length: 7, row: 2 }
    );
    assert_eq!(new(&SQUARE, &[0, 1], None), MeshError::Rows { list: "cells", length: 2, row: 3 });
    assert_eq!(new(&SQUARE, &[], None), MeshError::Empty);
    assert_eq!(
        new(&SQUARE, &[0, 1, 2, 0, 2, 4], None),
        MeshError::NoSuchVertex { cell: 1, vertex: 4, n_vertices: 4 }
    );
    assert_eq!(new(&SQUARE, &[0, 1, 2], Some(vec![1, 2])), MeshError::Tags { tags: 2, cells: 1 });
    let mut lost = SQUARE;
    lost[5] = f64::NAN;
    assert_eq!(new(&lost, &[0, 1, 3], None), MeshError::NotFinite { vertex: 2 });
}

/// The mean distance of the numbers of a cell's vertices.
fn spread(mesh: &Mesh) -> f64 {
    let range = |cell: &[u32]| f64::from(cell.iter().max().unwrap() - cell.iter().min().unwrap());
    mesh.cells().chunks(mesh.shape().n_vertices()).map(range).sum::<f64>() / mesh.n_cells() as f64
}

#[test]
fn reordering_keeps_the_mesh_and_brings_neighbours_together() {
    let mesh = Mesh::unit_cube(12).unwrap();
    // A stride coprime to the numbers of vertices and cells scatters both.
    let n = mesh.n_vertices();
    let far = |v: usize| v * 1009 % n;
    let mut coordinates = vec![0.0; 3 * n];
    for v in 0..n {
        coordinates[3 * far(v)..3 * far(v) + 3].copy_from_slice(mesh.vertex(v as u32));
    }
    let cells = (0..mesh.n_cells()).flat_map(|i| mesh.cell(i * 1009 % mesh.n_cells()));
    let cells: Vec<u32> = cells.map(|v| far(*v as usize) as u32).collect();
    let tags = (0..mesh.n_cells() as i32).collect();
    let scattered = Mesh::new(mesh.shape(), coordinates, cells, Some(tags)).unwrap();
    let reordered = scattered.reorder_for_locality();
    assert!(spread(&reordered) < 0.25 * spread(&scattered), "{} {}", spread(&reordered), spread(&scattered));
    for (cell, tags) in reordered.tags().unwrap().iter().enumerate() {
        for (new, old) in reordered.cell(cell).iter().zip(scattered.cell(tags[0] as usize)) {
            assert_eq!(reordered.vertex(*new), scattered.vertex(*old));
        }
    }
    let mut seen: Vec<i32> = reordered.tags().unwrap().iter().flatten().copied().collect();
    seen.sort_unstable();
    assert!(seen.iter().enumerate().all(|(i, tag)| i as i32 == *tag));
}

/// Tags of facets by the lowest of the cells that a part has.
#[test]
fn a_part_has_the_tags_of_its_facets() {
    let square =
        b"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n\
        $Elements\n4\n1 1 2 5 1 1 2\n2 1 2 6 1 1 3\n3 2 2 1 1 1 2 3\n4 2 2 1 1 1 3 4\n$EndElements\n";
    let mesh = Mesh::from_gmsh(square).unwrap();
    let tags = |mesh: &Mesh| -> Vec<(Vec<Vec<f64>>, i32)> {
        let of = |tag: &FacetTag| {
            let corners = mesh.shape().facets()[usize::from(tag.side.facet)];
            let cell = mesh.cell(tag.side.cell as usize);
            let mut points: Vec<_> = corners.iter().map(|k| mesh.vertex(cell[*k]).to_vec()).collect();
            points.sort_by(|a, b| a.partial_cmp(b).unwrap());
            (points, tag.tag)
        };
        mesh.facet_tags().iter().map(of).collect()
    };
    let bottom = (vec![vec![0.0, 0.0], vec![1.0, 0.0]], 5);
    let diagonal = (vec![vec![0.0, 0.0], vec![1.0, 1.0]], 6);
    let sorted = |mut tags: Vec<(Vec<Vec<f64>>, i32)>| {
        tags.sort_by_key(|(_, tag)| *tag);
        tags
    };
    assert_eq!(sorted(tags(&mesh)), [bottom.clone(), diagonal.clone()]);
    assert_eq!(sorted(tags(&mesh.part(&[0]).unwrap())), [bottom.clone(), diagonal.clone()]);
    let upper = tags(&mesh.part(&[1]).unwrap());
    assert_eq!((upper.len(), &upper[0]), (1, &diagonal));
    assert_eq!(sorted(tags(&mesh.part(&[1, 0]).unwrap())), [bottom, diagonal]);
}

#[test]
fn a_part_has_its_cells_and_their_boundary() {
    let whole = Mesh::unit_cube(2).unwrap();
    let alone: Vec<_> = whole.facets().into_iter().filter(|f| f.other.is_none()).map(|f| f.side).collect();
    assert_eq!(whole.boundary(), alone);
    let tags: Vec<i32> = (0..48).collect();
    let tagged =
        Mesh::new(whole.shape(), whole.coordinates().to_vec(), whole.cells().to_vec(), Some(tags)).unwrap();
    let cells = [3, 17, 40, 41];
    let part = tagged.part(&cells).unwrap();
    assert_eq!(*part.tags().unwrap(), CellTags::new([&[3][..], &[17], &[40], &[41]]));
    for (place, cell) in cells.iter().enumerate() {
        let at = |mesh: &Mesh, vertex: &u32| mesh.vertex(*vertex).to_vec();
        let here: Vec<_> = part.cell(place).iter().map(|v| at(&part, v)).collect();
        let there: Vec<_> = tagged.cell(*cell).iter().map(|v| at(&tagged, v)).collect();
        assert_eq!(here, there);
        // vertices keep their order
        let ranks = |vertices: &[u32]| {
            let mut sorted = vertices.to_vec();
            sorted.sort_unstable();
            vertices.iter().map(|v| sorted.binary_search(v).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(ranks(part.cell(place)), ranks(tagged.cell(*cell)));
    }
    let error = tagged.part(&[48]).unwrap_err().to_string();
    assert_eq!(error, "there is no cell 48: found 48 cells, counted from 0");
    assert_eq!(tagged.part(&[]), Err(MeshError::Empty));
}
