//! The lattices of points of the reference cells, entity by entity.

use super::CellShape;
use super::orthonormal::orthonormal_derivatives;
use crate::cell::shape_of;
use crate::quadrature::gauss_lobatto;
use nalgebra::DMatrix;

/// How the points of a lattice are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lattice {
    /// At equal distances.
    Equispaced,
    /// Gauss–Lobatto points on edges, the displacement blended inwards.
    GllWarped,
    /// Gauss–Lobatto points on edges, recursive means inside.
    GllIsaac,
}

/// The multi-indices of the interior points of the degree-`degree` lattice of a simplex with
/// `n_vertices` vertices: barycentric counts, all at least 1, that sum to `degree`.
///
/// The count of vertex 1 runs fastest, that of vertex 0 is what remains: basix's order on every
/// entity.
fn interior_lattice(n_vertices: usize, degree: usize) -> Vec<Vec<usize>> {
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

/// The points in the interior of an entity of a Lagrange element of `degree` ≥ 1, in basix's order:
/// each as the coordinates that [`place`] takes. `shape` is none of a vertex.
pub(super) fn interior_points(shape: Option<CellShape>, degree: usize, lattice: Lattice) -> Vec<Vec<f64>> {
    let Some(shape) = shape else { return vec![vec![1.0]] };
    if matches!(shape, CellShape::Prism | CellShape::Pyramid) {
        return Vec::new(); // up to degree 2
    }
    if !shape.is_simplex() {
        let line = interval_points(degree, lattice);
        let line = &line[1..degree.max(1)];
        let mut points = vec![Vec::new()];
        for _ in 0..shape.dim() {
            // the axes that are there run faster than the new one
            points = line
                .iter()
                .flat_map(|x| points.iter().map(move |p: &Vec<f64>| p.iter().copied().chain([*x]).collect()))
                .collect();
        }
        return points;
    }
    let counts = interior_lattice(shape.n_vertices(), degree);
    if shape == CellShape::Interval {
        let line = interval_points(degree, lattice);
        return counts.iter().map(|counts| counts.iter().map(|n| line[*n]).collect()).collect();
    }
    match lattice {
        Lattice::Equispaced => {
            let share = |counts: &Vec<usize>| counts.iter().map(|n| *n as f64 / degree as f64).collect();
            counts.iter().map(share).collect()
        }
        Lattice::GllWarped => {
            let warp = if counts.is_empty() { Vec::new() } else { warp(degree) };
            counts.iter().map(|counts| warped(counts, degree, &warp)).collect()
        }
        Lattice::GllIsaac => {
            let lines: Vec<_> = (0..=degree).map(|n| interval_points(n, lattice)).collect();
            counts.iter().map(|counts| isaac(counts, &lines)).collect()
        }
    }
}

/// The `degree + 1` points of an interval with its ends; its middle if `degree` is 0.
pub(super) fn interval_points(degree: usize, lattice: Lattice) -> Vec<f64> {
    match (degree, lattice) {
        (0, _) => vec![0.5],
        (_, Lattice::Equispaced) => (0..=degree).map(|i| i as f64 / degree as f64).collect(),
        (_, Lattice::GllWarped | Lattice::GllIsaac) => gauss_lobatto(degree + 1).0,
    }
}

/// For each half step of the equispaced lattice, the displacement of the Gauss–Lobatto points
/// interpolated there, divided by `r (1 - r)`; 0 at the ends, where no interior point asks.
fn warp(degree: usize) -> Vec<f64> {
    let equispaced = interval_points(degree, Lattice::Equispaced);
    let lobatto = interval_points(degree, Lattice::GllWarped);
    let n = degree + 1;
    let table = |points: &[f64]| {
        let values = orthonormal_derivatives(CellShape::Interval, degree, points, 0).swap_remove(0);
        DMatrix::from_row_slice(points.len(), n, &values)
    };
    let displacement = DMatrix::from_iterator(n, 1, lobatto.iter().zip(&equispaced).map(|(a, b)| a - b));
    let steps: Vec<f64> = (0..=2 * degree).map(|i| i as f64 / (2 * degree) as f64).collect();
    // the equispaced points are distinct, so the system has a solution
    let coefficients = table(&equispaced).lu().solve(&displacement).unwrap_or(displacement);
    let warp = table(&steps) * coefficients;
    let scaled = |(r, w): (&f64, &f64)| if *r > 0.0 && *r < 1.0 { w / (r * (1.0 - r)) } else { 0.0 };
    steps.iter().zip(warp.iter()).map(scaled).collect()
}

/// Barycentric coordinates of a lattice point moved along each pair of vertices.
///
/// # Source
/// Hesthaven & Warburton 2008, section 6.1, as basix interpolates it.
fn warped(counts: &[usize], degree: usize, warp: &[f64]) -> Vec<f64> {
    let share = |n: usize| n as f64 / degree as f64;
    let moved = |i: usize| {
        let others = (0..counts.len()).filter(|j| *j != i);
        let pull = others.map(|j| share(counts[j]) * warp[degree + counts[i] - counts[j]]);
        share(counts[i]) * (1.0 + pull.sum::<f64>())
    };
    (0..counts.len()).map(moved).collect()
}

/// Barycentric coordinates of a lattice point as a mean of those of the facets.
///
/// # Source
/// Isaac 2020, section 3.
fn isaac(counts: &[usize], lines: &[Vec<f64>]) -> Vec<f64> {
    if counts.len() == 1 {
        return vec![1.0];
    }
    let size: usize = counts.iter().sum();
    let mut sums = vec![0.0; counts.len()];
    let mut total = 0.0;
    for (i, count) in counts.iter().enumerate() {
        let rest: Vec<usize> = counts.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, n)| *n).collect();
        let weight = lines[size][size - count];
        for (j, part) in isaac(&rest, lines).into_iter().enumerate() {
            sums[if j < i { j } else { j + 1 }] += weight * part;
        }
        total += weight;
    }
    sums.into_iter().map(|sum| sum / total).collect()
}

/// The point of `cell` at a place of one of its entities, whose vertices are given in the order
/// that the place refers to.
///
/// A place is the barycentric coordinates of a simplex or vertex, the coordinates along the axes of
/// another cell.
pub(super) fn place(cell: CellShape, vertices: &[usize], coordinates: &[f64]) -> Vec<f64> {
    let dim = cell.dim();
    let corner = |v: usize, axis: usize| cell.vertices()[v * dim + axis];
    if cell.is_simplex() {
        // each axis has one vertex at 1: no rounding
        let sum = |axis| vertices.iter().zip(coordinates).map(|(v, share)| corner(*v, axis) * share).sum();
        return (0..dim).map(sum).collect();
    }
    // an edge or vertex has barycentric coordinates, of which the first is what remains
    let coordinates = if coordinates.len() == vertices.len() { &coordinates[1..] } else { coordinates };
    let shape = shape_of(cell, vertices);
    let along = |axis: usize| {
        let moves = coordinates.iter().enumerate().map(|(i, x)| {
            let end = vertices[shape.map_or(0, |shape| shape.axis_vertex(i))];
            x * (corner(end, axis) - corner(vertices[0], axis))
        });
        corner(vertices[0], axis) + moves.sum::<f64>()
    };
    (0..dim).map(along).collect()
}
