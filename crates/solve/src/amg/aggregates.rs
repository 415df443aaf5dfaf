//! Sets of neighbouring nodes, each of which is a node of the next level.

use super::setup::Csr;

/// The nodes that each node is strongly connected to.
pub(super) struct Strength {
    starts: Vec<usize>,
    neighbours: Vec<usize>,
}

impl Strength {
    /// Nodes `i` and `j` are connected where `|A_ij|² > θ² |A_ii| |A_jj|`, for the Frobenius norms of
    /// the blocks of a matrix; the rows of node `i` are `nodes[i]..nodes[i + 1]`.
    ///
    /// # Source
    /// Vaněk et al. 1996, §5.
    pub fn new(a: &Csr, nodes: &[usize], threshold: f64) -> Self {
        let n = nodes.len().saturating_sub(1);
        let mut node_of = vec![0; a.rows()];
        for node in 0..n {
            node_of[nodes[node]..nodes[node + 1]].fill(node);
        }
        // squared norms of the blocks of each row of blocks, in the order of their first entries
        let mut rows: Vec<Vec<(usize, f64)>> = Vec::with_capacity(n);
        let mut place = vec![usize::MAX; n];
        for node in 0..n {
            let mut row: Vec<(usize, f64)> = Vec::new();
            for view in (nodes[node]..nodes[node + 1]).filter_map(|row| a.outer_view(row)) {
                for (column, value) in view.iter() {
                    let other = node_of[column];
                    if place[other] == usize::MAX {
                        place[other] = row.len();
                        row.push((other, 0.0));
                    }
                    row[place[other]].1 += value * value;
                }
            }
            row.iter().for_each(|(other, _)| place[*other] = usize::MAX);
            rows.push(row);
        }
        let own =
            |node: usize| rows[node].iter().find(|(other, _)| *other == node).map_or(0.0, |pair| pair.1);
        let diagonal: Vec<f64> = (0..n).map(|node| own(node).sqrt()).collect();
        let mut all = Self { starts: vec![0], neighbours: Vec::new() };
        for (node, row) in rows.iter().enumerate() {
            let strong = row.iter().filter(|(other, square)| {
                *other != node && *square > threshold * threshold * diagonal[node] * diagonal[*other]
            });
            all.neighbours.extend(strong.map(|(other, _)| *other));
            all.starts.push(all.neighbours.len());
        }
        all
    }

    fn of(&self, node: usize) -> &[usize] {
        &self.neighbours[self.starts[node]..self.starts[node + 1]]
    }

    /// The aggregate of each node, and how many there are. Nodes without neighbours, such as
    /// prescribed ones, are in none.
    ///
    /// # Source
    /// Vaněk et al. 1996, Algorithm 2.
    pub fn aggregates(&self) -> (Vec<Option<usize>>, usize) {
        let n = self.starts.len() - 1;
        let (mut of, mut count) = (vec![None; n], 0);
        // whole neighbourhoods that are free
        for node in 0..n {
            let own = self.of(node);
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
            *own = self.of(node).iter().find_map(|other| whole[*other]);
        }
        // and what has none joins its own kind
        for node in 0..n {
            if of[node].is_none() && !self.of(node).is_empty() {
                of[node] = Some(count);
                for other in self.of(node) {
                    of[*other].get_or_insert(count);
                }
                count += 1;
            }
        }
        (of, count)
    }
}
