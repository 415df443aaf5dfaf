//! Orbits of the nodes of an element under permutations of the vertices of its cell.

use super::{CellShape, Nodes};

/// How far images of nodes may be from nodes.
const SAME: f64 = 1e-10;

impl Nodes {
    /// The orbits of the nodes under a group of permutations of the vertices that commute and are
    /// their own inverses: of triangles (01), of tetrahedra (01)(23), (02)(13) and their product.
    ///
    /// # Shapes and units
    /// Entry `g` of an orbit is the image of its first node by the permutations whose bits `g` has;
    /// small orbits hold each node several times. The largest orbits come first. None for other cells,
    /// and for nodes that are no images of others.
    #[must_use]
    pub fn orbits(&self) -> Option<Vec<Vec<u32>>> {
        orbits_of_points(self.cell, &self.points)
    }
}

/// The orbits of points of a reference cell, [points, dim], as [`Nodes::orbits`] has them.
pub(crate) fn orbits_of_points(cell: CellShape, points: &[f64]) -> Option<Vec<Vec<u32>>> {
    let swaps: &[&[usize]] = match cell {
        CellShape::Triangle => &[&[0, 1, 2], &[1, 0, 2]],
        CellShape::Tetrahedron => &[&[0, 1, 2, 3], &[1, 0, 3, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]],
        CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => return None,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn orbits(cell: CellShape, degree: usize) -> Vec<Vec<u32>> {
        Nodes::new(cell, degree).ok().and_then(|nodes| nodes.orbits()).unwrap_or_default()
    }

    #[test]
    fn vertices_are_one_orbit() {
        assert_eq!(orbits(CellShape::Tetrahedron, 1), [[0, 1, 2, 3]]);
        // vertex 2 and the middle of the edge between the others stay
        assert_eq!(orbits(CellShape::Triangle, 2), [vec![0, 1], vec![3, 4], vec![2, 2], vec![5, 5]]);
    }

    /// By counting what a permutation leaves where it is (Burnside's lemma).
    #[test]
    fn there_are_as_many_as_fixed_nodes_say() {
        for (degree, fixed) in [(1, 0), (2, 2), (3, 0), (4, 3), (5, 0), (6, 4)] {
            let n = (degree + 1) * (degree + 2) * (degree + 3) / 6;
            assert_eq!(orbits(CellShape::Tetrahedron, degree).len(), (n + 3 * fixed) / 4, "P{degree}");
        }
        for degree in 1..=8 {
            let n = (degree + 1) * (degree + 2) / 2;
            assert_eq!(orbits(CellShape::Triangle, degree).len(), (n + degree / 2).div_ceil(2), "P{degree}");
        }
        assert_eq!(orbits(CellShape::Hexahedron, 1), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn other_nodes_have_none() {
        let points = vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.25, 0.0];
        let nodes = Nodes { points, ..Nodes::new(CellShape::Triangle, 1).expect("an element") };
        assert_eq!(nodes.orbits(), None);
    }
}
