//! Meshes of quadrilaterals and hexahedra in rows, columns and layers, however they are numbered.

#![allow(clippy::unwrap_used)]

use crate::reference::{Random, largest};
use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement, LagrangeVariant};
use kingpost_fem::mesh::Mesh;
use kingpost_multigrid::{DeformedMesh, Dimension, MappedBox, MultigridError};

const fn shape(dimension: Dimension) -> CellShape {
    match dimension {
        Dimension::Two => CellShape::Quadrilateral,
        Dimension::Three => CellShape::Hexahedron,
    }
}

/// Some numbers in a random order.
fn shuffled(random: &mut Random, n: usize) -> Vec<usize> {
    let keys = random.numbers(n);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
    order
}

/// Places along each axis, the first one fastest.
fn digits(mut at: usize, of: &[usize]) -> Vec<usize> {
    of.iter().map(|n| (at % n, at /= n).0).collect()
}

/// A box of cells with vertices where a map has them: cells and vertices in a random order, each
/// cell turned or mirrored at random.
fn scrambled(counts: &[usize], seed: u64, map: impl Fn(&[f64]) -> Vec<f64>) -> Mesh {
    let axes = counts.len();
    let mut random = Random(seed);
    let sides: Vec<usize> = counts.iter().map(|n| n + 1).collect();
    let numbers = shuffled(&mut random, sides.iter().product());
    let mut coordinates = vec![0.0; axes * numbers.len()];
    for (vertex, number) in numbers.iter().enumerate() {
        let place = digits(vertex, &sides);
        let unit: Vec<f64> = place.iter().zip(counts).map(|(at, n)| *at as f64 / *n as f64).collect();
        coordinates[axes * number..axes * (number + 1)].copy_from_slice(&map(&unit));
    }
    let mut cells = Vec::new();
    for cell in shuffled(&mut random, counts.iter().product()) {
        let place = digits(cell, counts);
        let own = shuffled(&mut random, axes);
        let first = (random.numbers(1)[0].abs() * 8.0) as usize;
        for local in 0..1_usize << axes {
            let vertex =
                (0..axes).rev().fold(0, |v, a| v * sides[a] + place[a] + ((local ^ first) >> own[a] & 1));
            cells.push(numbers[vertex] as u32);
        }
    }
    Mesh::new(shape(if axes == 2 { Dimension::Two } else { Dimension::Three }), coordinates, cells, None)
        .unwrap()
}

/// A trilinear map, which evenly divided cells follow.
fn bent(x: &[f64]) -> Vec<f64> {
    let z = x.get(2).copied().unwrap_or(0.0);
    let all = [1.5 * x[0] + 0.3 * x[0] * x[1] - 0.2 * z * x[1], x[1] + 0.2 * x[0] * x[1], z + 0.3 * x[0] * z];
    all[..x.len()].to_vec()
}

#[test]
fn boxes_are_found_whatever_their_numbers() {
    for (counts, cells) in [(&[2, 2, 2][..], 4), (&[4, 1, 2], 4), (&[1, 1, 1], 2), (&[2, 4], 8), (&[3, 2], 6)]
    {
        for seed in 1..=4 {
            let mesh = scrambled(counts, seed, bent);
            let found = MappedBox::of(&mesh).unwrap();
            assert_eq!(found.counts(), counts);
            let refined = found.refined(cells).unwrap();
            let dimension = found.dimension();
            let expected = DeformedMesh::of_map(dimension, cells, |x| {
                let moved = bent(&x[..dimension.axes()]);
                [0, 1, 2].map(|a| moved.get(a).copied().unwrap_or(0.0))
            })
            .unwrap();
            // 1e-14: sums of eight products
            assert!(largest(refined.vertices(), expected.vertices()) < 1e-14, "{counts:?} {seed}");
        }
    }
}

/// The map of curved cells is followed: a part of a ring by cells of degree 2.
#[test]
fn curved_cells_are_followed() {
    let ring = |x: &[f64]| {
        let angle = 0.5 * x[0];
        vec![(1.0 + x[1]) * angle.sin(), (1.0 + x[1]) * angle.cos()]
    };
    let mesh = scrambled(&[1, 1], 3, ring);
    let element =
        FiniteElement::new(CellShape::Quadrilateral, ElementFamily::Lagrange(LagrangeVariant::Equispaced), 2)
            .unwrap();
    // the parameters of the cell's own corners, which are bilinear in its own coordinates
    let corners: Vec<Vec<f64>> = (0..4)
        .map(|local| {
            let place = mesh.vertex(mesh.cell(0)[local]);
            let radius = place[0].hypot(place[1]);
            vec![2.0 * place[0].atan2(place[1]), radius - 1.0]
        })
        .collect();
    let at = |x: &[f64]| -> Vec<f64> {
        let weights = [(1.0 - x[0]) * (1.0 - x[1]), x[0] * (1.0 - x[1]), (1.0 - x[0]) * x[1], x[0] * x[1]];
        ring(&[0, 1].map(|a| (0..4).map(|c| weights[c] * corners[c][a]).sum::<f64>()))
    };
    let nodes: Vec<f64> = element.points().unwrap().chunks(2).flat_map(at).collect();
    // corners as the vertices have them, to the last bit
    let mut nodes = nodes;
    for local in 0..4 {
        nodes[2 * local..2 * local + 2].copy_from_slice(mesh.vertex(mesh.cell(0)[local]));
    }
    let curved = mesh.with_nodes(element, nodes, (0..9).collect()).unwrap();
    let refined = MappedBox::of(&curved).unwrap().refined(2).unwrap();
    let expected =
        DeformedMesh::of_map(Dimension::Two, 2, |x| [ring(&x[..2])[0], ring(&x[..2])[1], 0.0]).unwrap();
    assert!(largest(refined.vertices(), expected.vertices()) < 1e-14);
}

fn refused(shape: CellShape, coordinates: Vec<f64>, cells: Vec<u32>) -> MultigridError {
    MappedBox::of(&Mesh::new(shape, coordinates, cells, None).unwrap()).err().unwrap()
}

#[test]
fn meshes_that_are_no_boxes_are_refused() {
    let quadrilateral = CellShape::Quadrilateral;
    let tetrahedra = Mesh::unit_cube(1).unwrap();
    let error = MappedBox::of(&tetrahedra).err().unwrap();
    assert!(error.to_string().contains("tetrahedron: needed quadrilateral or hexahedron"), "{error}");
    // three cells around the vertex in the middle
    let star = vec![0.0, 0.0, 1.0, 0.0, 1.0, 1.0, -0.5, 0.9, -1.4, 0.0, -0.5, -0.9, 1.0, -1.0];
    let error = refused(quadrilateral, star, vec![0, 1, 3, 2, 0, 3, 5, 4, 0, 5, 1, 6]);
    assert!(
        matches!(&error, MultigridError::IrregularVertex { place, cells: 3, on_boundary: false, needed: 4 }
        if place == &[0.0, 0.0]),
        "{error}"
    );
    assert!(
        error.to_string().contains("3 cells around it, inside") && error.to_string().contains("with 4 there"),
        "{error}"
    );
    // an L
    let grid = |n: usize| (0..n * n).flat_map(|v| [(v % n) as f64, (v / n) as f64]).collect::<Vec<_>>();
    let corner = vec![0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7];
    let error = refused(quadrilateral, grid(3), corner);
    assert!(
        matches!(&error, MultigridError::IrregularVertex { place, cells: 3, on_boundary: true, .. }
        if place == &[1.0, 1.0]),
        "{error}"
    );
    // two squares
    let pieces = vec![0, 1, 4, 5, 10, 11, 14, 15];
    assert!(matches!(refused(quadrilateral, grid(4), pieces), MultigridError::NoBox { .. }));
    // a ring of four cells, which has no corner
    let square = |r: f64| [r, 0.0, 0.0, r, -r, 0.0, 0.0, -r];
    let ring = [square(1.0), square(2.0)].concat();
    let around: Vec<u32> = (0..4).flat_map(|i| [i, (i + 1) % 4, i + 4, (i + 1) % 4 + 4]).collect();
    assert!(matches!(refused(quadrilateral, ring, around), MultigridError::NoBox { .. }));
    let mesh = scrambled(&[3, 2], 1, bent);
    let uneven = MappedBox::of(&mesh).unwrap().refined(4).err().unwrap();
    assert!(
        uneven.to_string().starts_with("3 x 2 cells of the mesh along its axes do not divide into 4"),
        "{uneven}"
    );
    let none = MappedBox::of(&mesh).unwrap().refined(0).err().unwrap();
    assert!(matches!(none, MultigridError::BoxCells { cells: 0, .. }), "{none}");
}
