//! Sets of neighbouring nodes, each of which is a node of the next level.

use super::blocks::BlockMatrix;
use rayon::prelude::*;

/// The nodes that each node is strongly connected to.
pub(super) struct Strength {
    rows: Vec<Vec<usize>>,
}

/// A node of the next level for each set of nodes.
pub(super) struct Aggregates {
    /// The node of the next level for each node. Nodes without neighbours, such as prescribed ones,
    /// are in none.
    pub of: Vec<Option<usize>>,
    /// The nodes of each.
    pub members: Vec<Vec<usize>>,
}

/// Frobenius norms of the blocks on the diagonal.
pub(super) fn diagonal_norms(a: &BlockMatrix) -> Vec<f64> {
    let norm = |node| a.diagonal_block(node).map_or(0.0, |block| block.square().sqrt());
    (0..a.pattern().rows().count()).into_par_iter().map(norm).collect()
}

impl Strength {
    /// Nodes `i` and `j` are connected where `|A_ij|² > θ² |A_ii| |A_jj|`, for the Frobenius norms of
    /// the blocks of a matrix, of which those on the diagonal are given.
    ///
    /// # Source
    /// Vaněk et al. 1996, §5.
    pub fn new(a: &BlockMatrix, diagonal: &[f64], threshold: f64) -> Self {
        let of = |node: usize| {
            let least = threshold * threshold * diagonal[node];
            let strong = |block: &super::blocks::Block<'_>| {
                block.column != node && block.square() > least * diagonal[block.column]
            };
            a.row(node).filter(strong).map(|block| block.column).collect()
        };
        Self { rows: (0..diagonal.len()).into_par_iter().map(of).collect() }
    }

    /// Sets of strongly connected nodes.
    ///
    /// # Source
    /// Vaněk et al. 1996, Algorithm 2.
    pub fn aggregates(&self) -> Aggregates {
        let n = self.rows.len();
        let (mut of, mut count) = (vec![None; n], 0);
        // whole neighbourhoods that are free
        for (node, own) in self.rows.iter().enumerate() {
            let free = of[node].is_none() && own.iter().all(|other| of[*other].is_none());
            if free && !own.is_empty() {
                of[node] = Some(count);
                own.iter().for_each(|other| of[*other] = Some(count));
                count += 1;
            }
        }
        // what is left joins a neighbour of these
        let whole = of.clone();
        for (node, own) in of.iter_mut().enumerate().filter(|(_, own)| own.is_none()) {
            *own = self.rows[node].iter().find_map(|other| whole[*other]);
        }
        // and what has none joins its own kind
        for (node, own) in self.rows.iter().enumerate() {
            if of[node].is_none() && !own.is_empty() {
                of[node] = Some(count);
                for other in own {
                    of[*other].get_or_insert(count);
                }
                count += 1;
            }
        }
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, aggregate) in of.iter().enumerate() {
            if let Some(aggregate) = aggregate {
                members[*aggregate].push(node);
            }
        }
        Aggregates { of, members }
    }
}
