//! Tensor algebra in components; matrices are stored row by row.

use super::scalar::{ScalarGraph, ScalarId};

/// Sum of terms, from the left.
pub(crate) fn sum(graph: &mut ScalarGraph, terms: Vec<ScalarId>) -> ScalarId {
    let zero = graph.literal(0.0);
    terms.into_iter().fold(zero, |total, term| graph.add(total, term))
}

/// The identity matrix.
pub(crate) fn identity(graph: &mut ScalarGraph, n: usize) -> Vec<ScalarId> {
    (0..n * n).map(|k| graph.literal(if k / n == k % n { 1.0 } else { 0.0 })).collect()
}

/// Sum of the diagonal of an `n` by `n` matrix.
pub(crate) fn trace(graph: &mut ScalarGraph, a: &[ScalarId], n: usize) -> ScalarId {
    sum(graph, (0..n).map(|i| a[i * n + i]).collect())
}

/// `(A + A^T)/2`.
pub(crate) fn symmetric(graph: &mut ScalarGraph, a: &[ScalarId], n: usize) -> Vec<ScalarId> {
    let half = graph.literal(0.5);
    let entry = |k: usize| {
        let (i, j) = (k / n, k % n);
        if i == j {
            return a[k];
        }
        let both = graph.add(a[k], a[j * n + i]);
        graph.multiply(half, both)
    };
    (0..n * n).map(entry).collect()
}

/// Sums over the last index of `a` and the first of `b`, both of length `inner`.
pub(crate) fn product(
    graph: &mut ScalarGraph,
    a: &[ScalarId],
    b: &[ScalarId],
    inner: usize,
) -> Vec<ScalarId> {
    let (rows, columns) = (a.len() / inner, b.len() / inner);
    let mut all = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        for j in 0..columns {
            let terms = (0..inner).map(|k| graph.multiply(a[i * inner + k], b[k * columns + j])).collect();
            all.push(sum(graph, terms));
        }
    }
    all
}

/// Minor of a matrix with at most 3 rows without row `i` and column `j`, with its sign.
pub(crate) fn cofactor(graph: &mut ScalarGraph, a: &[ScalarId], n: usize, i: usize, j: usize) -> ScalarId {
    match n {
        1 => graph.literal(1.0),
        2 => {
            let entry = a[(1 - i) * 2 + (1 - j)];
            if i == j { entry } else { graph.negate(entry) }
        }
        _ => {
            // Cyclic indices carry the sign.
            let (i1, i2, j1, j2) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
            let forward = graph.multiply(a[i1 * 3 + j1], a[i2 * 3 + j2]);
            let backward = graph.multiply(a[i1 * 3 + j2], a[i2 * 3 + j1]);
            graph.subtract(forward, backward)
        }
    }
}

/// Determinant of a matrix with at most 3 rows, along its first row.
pub(crate) fn determinant(graph: &mut ScalarGraph, a: &[ScalarId], n: usize) -> ScalarId {
    let terms = (0..n).map(|j| {
        let minor = cofactor(graph, a, n, 0, j);
        graph.multiply(a[j], minor)
    });
    let terms = terms.collect();
    sum(graph, terms)
}

/// Inverse of a matrix with at most 3 rows by cofactors.
pub(crate) fn inverse(graph: &mut ScalarGraph, a: &[ScalarId], n: usize) -> Vec<ScalarId> {
    let determinant = determinant(graph, a, n);
    let entry = |k: usize| {
        let cofactor = cofactor(graph, a, n, k % n, k / n);
        graph.divide(cofactor, determinant)
    };
    (0..n * n).map(entry).collect()
}
