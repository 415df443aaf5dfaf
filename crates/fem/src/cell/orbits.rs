//! Orbits of points of a cell under permutations of the vertices of its cell.

use super::CellShape;

/// How far images of nodes may be from nodes.
const SAME: f64 = 1e-10;

/// The orbits of points of a reference cell, [points, dim], as
/// [`Nodes::orbits`](crate::element::Nodes::orbits) has them.
pub fn orbits_of_points(cell: CellShape, points: &[f64]) -> Option<Vec<Vec<u32>>> {
    let swaps: &[&[usize]] = match cell {
        CellShape::Triangle => &[&[0, 1, 2], &[1, 0, 2]],
        CellShape::Tetrahedron => &[&[0, 1, 2, 3], &[1, 0, 3, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]],
        CellShape::Interval
        | CellShape::Quadrilateral
        | CellShape::Hexahedron
        | CellShape::Prism
        | CellShape::Pyramid => return None,
    };
    let barycentric = |p: &[f64]| [&[1.0 - p.iter().sum::<f64>()], p].concat();
    let nodes: Vec<Vec<f64>> = points.chunks_exact(cell.dim()).map(barycentric).collect();
    let image = |node: &[f64], swap: &[usize]| {
        let near = |other: &&Vec<f64>| {
            swap.iter().zip(other.iter()).all(|(from, x)| (node[*from] - x).abs() <= SAME)
        };
        nodes.iter().position(|other| near(&other)).and_then(|at| u32::try_from(at).ok())
    };
    let mut orbits: Vec<Vec<u32>> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if orbits.iter().flatten().any(|known| *known as usize == at) {
            continue;
        }
        orbits.push(swaps.iter().map(|swap| image(node, swap)).collect::<Option<_>>()?);
    }
    let times = |orbit: &Vec<u32>| orbit.iter().filter(|e| **e == orbit[0]).count();
    orbits.sort_by_key(times);
    Some(orbits)
}
