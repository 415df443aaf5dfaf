//! Sets of neighbouring nodes, each of which is a node of the next level.

/// A node of the next level for each set of nodes, as lists for a device.
pub(super) struct Aggregates {
    /// The node of the next level for each node. Nodes without neighbours, such as prescribed ones,
    /// are in none: -1.
    pub of: Vec<i32>,
    /// First member of each, and the end of the last.
    pub starts: Vec<i32>,
    /// The nodes of each, ascending.
    pub members: Vec<i32>,
    /// The place of each node among the members, -1 of one that is in none.
    pub places: Vec<i32>,
}

/// The kind of a strong connection, as the kernel of connections has it.
const STRONG: i32 = 2;

/// The connections of nodes, by rows.
pub(super) struct Connections {
    /// First connection of each node, and the end of the last.
    pub starts: Vec<i32>,
    /// The other node of each connection.
    pub nodes: Vec<i32>,
    /// What each is.
    pub kinds: Vec<i32>,
}

impl Connections {
    /// The nodes that a node is strongly connected to.
    fn strong(&self, node: usize) -> impl Iterator<Item = usize> {
        let own = self.starts[node] as usize..self.starts[node + 1] as usize;
        let all = self.nodes[own.clone()].iter().zip(&self.kinds[own]);
        all.filter(|(_, kind)| **kind == STRONG).map(|(node, _)| *node as usize)
    }

    /// Sets of strongly connected nodes.
    ///
    /// # Source
    /// Vaněk et al. 1996, Algorithm 2.
    pub fn aggregates(&self) -> Aggregates {
        let n = self.starts.len().saturating_sub(1);
        let (mut of, mut count): (Vec<Option<i32>>, i32) = (vec![None; n], 0);
        // whole neighbourhoods that are free
        for node in 0..n {
            let mut own = self.strong(node).peekable();
            let has_any = own.peek().is_some();
            if has_any && of[node].is_none() && own.all(|other| of[other].is_none()) {
                of[node] = Some(count);
                self.strong(node).for_each(|other| of[other] = Some(count));
                count += 1;
            }
        }
        // what is left joins a neighbour of these
        let whole = of.clone();
        for (node, own) in of.iter_mut().enumerate().filter(|(_, own)| own.is_none()) {
            *own = self.strong(node).find_map(|other| whole[other]);
        }
        // and what has none joins its own kind
        for node in 0..n {
            if of[node].is_none() && self.strong(node).next().is_some() {
                of[node] = Some(count);
                for other in self.strong(node) {
                    of[other].get_or_insert(count);
                }
                count += 1;
            }
        }
        Aggregates::of(&of, count)
    }
}

impl Aggregates {
    fn of(of: &[Option<i32>], count: i32) -> Self {
        let mut starts = vec![0; count as usize + 1];
        of.iter().flatten().for_each(|aggregate| starts[*aggregate as usize + 1] += 1);
        for aggregate in 0..count as usize {
            starts[aggregate + 1] += starts[aggregate];
        }
        let (mut next, mut members) = (starts.clone(), vec![0; starts[count as usize] as usize]);
        let place = |(node, aggregate): (i32, &Option<i32>)| match aggregate {
            None => -1,
            Some(aggregate) => {
                let next = &mut next[*aggregate as usize];
                members[*next as usize] = node;
                *next += 1;
                *next - 1
            }
        };
        let places = (0..).zip(of).map(place).collect();
        Self { of: of.iter().map(|aggregate| aggregate.unwrap_or(-1)).collect(), starts, members, places }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }
}
