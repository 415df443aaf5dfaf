//! The equispaced lattice of points of a simplex, entity by entity.

use super::CellShape;

/// The multi-indices of the interior points of the degree-`degree` lattice of a simplex with
/// `n_vertices` vertices: barycentric counts, all at least 1, that sum to `degree`.
///
/// The count of vertex 1 runs fastest, that of vertex 0 is what remains: basix's order on every
/// entity.
pub(crate) fn interior_lattice(n_vertices: usize, degree: usize) -> Vec<Vec<usize>> {
    let mut points = Vec::new();
    if n_vertices == 1 {
        return vec![vec![degree]];
    }
    let mut counts = vec![1; n_vertices - 1];
    let free = degree.saturating_sub(1);
    loop {
        let used: usize = counts.iter().sum();
        if used <= free {
            let mut point = vec![degree - used];
            point.extend(&counts);
            points.push(point);
        }
        if !advance(&mut counts, free) {
            return points;
        }
    }
}

/// The next tuple of counts in 1..=top, the first running fastest; false after the last.
fn advance(counts: &mut [usize], top: usize) -> bool {
    for count in counts {
        if *count < top {
            *count += 1;
            return true;
        }
        *count = 1;
    }
    false
}

/// The nodes of the equispaced element of `degree` ≥ 1, [dofs, dim] row-major: vertices, then the
/// interior of the edges, of the faces, of the cell.
pub(super) fn equispaced_nodes(shape: CellShape, degree: usize) -> Vec<f64> {
    let mut nodes = Vec::new();
    for dim in 0..=shape.dim() {
        for entity in shape.entities(dim) {
            for counts in interior_lattice(entity.len(), degree) {
                nodes.extend(lattice_point(shape, entity, &counts, degree));
            }
        }
    }
    nodes
}

/// The point of `entity` whose barycentric counts are given.
fn lattice_point(shape: CellShape, entity: &[usize], counts: &[usize], degree: usize) -> Vec<f64> {
    let vertices = shape.vertices();
    let coordinate = |axis: usize| {
        // Each reference vertex has at most one coordinate that is 1, so the sum is an integer: one
        // rounding in all.
        let total: f64 =
            entity.iter().zip(counts).map(|(v, n)| vertices[v * shape.dim() + axis] * *n as f64).sum();
        total / degree as f64
    };
    (0..shape.dim()).map(coordinate).collect()
}
