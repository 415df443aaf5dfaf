//! Edges and faces by their global vertices, and the permutations of their nodes.

use crate::element::interior_lattice;

/// A map from the set of two or three vertices of an edge or face to a number.
///
/// A chained hash table of its own, because std's spends its time on a hash that withstands
/// adversaries: 1.05 million tetrahedra look up 10 million edges and faces.
pub(super) struct EntityTable {
    /// The first entry of each bucket, or [`END`].
    heads: Vec<u32>,
    entries: Vec<Entry>,
}

struct Entry {
    vertices: [u32; 3],
    next: u32,
    number: i32,
}

const END: u32 = u32::MAX;

impl EntityTable {
    /// A table for about `capacity` entities; more only make it slower. None if there is no memory.
    pub(super) fn with_capacity(capacity: usize) -> Option<Self> {
        Some(Self { heads: super::filled(END, capacity.next_power_of_two())?, entries: Vec::new() })
    }

    /// The number of the entity with these 2 or 3 vertices, in any order; `fresh` if it is new.
    pub(super) fn slot(&mut self, vertices: &[u32], fresh: i32) -> &mut i32 {
        let key = sorted(vertices);
        let bucket = self.bucket(key);
        let mut at = self.heads[bucket];
        while at != END && self.entries[at as usize].vertices != key {
            at = self.entries[at as usize].next;
        }
        if at == END {
            at = self.entries.len() as u32;
            self.entries.push(Entry { vertices: key, next: self.heads[bucket], number: fresh });
            self.heads[bucket] = at;
        }
        &mut self.entries[at as usize].number
    }

    fn bucket(&self, key: [u32; 3]) -> usize {
        // Multiplication by odd constants near 2^64/golden ratio; the high bits are the well-mixed
        // ones.
        let [a, b, c] = key.map(u64::from);
        let mixed =
            (a ^ (b << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ c.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        mixed as usize & (self.heads.len() - 1)
    }
}

/// Ascending; the missing third vertex of an edge becomes `u32::MAX`, which no face has thanks to
/// its own table.
fn sorted(vertices: &[u32]) -> [u32; 3] {
    let mut key = [u32::MAX; 3];
    for (place, vertex) in key.iter_mut().zip(vertices) {
        *place = *vertex;
    }
    key.sort_unstable();
    key
}

/// For each order of the global vertices of an edge or face, where each node of the cell's own
/// order stands in the order of ascending global vertices.
pub(super) struct Orientations {
    /// By the code of [`order_code`]; empty for codes that no order has.
    tables: Vec<Vec<i32>>,
}

impl Orientations {
    /// The permutations of the interior nodes of degree `degree` of an entity with `n_vertices`
    /// vertices.
    pub(super) fn new(n_vertices: usize, degree: usize) -> Self {
        let lattice = interior_lattice(n_vertices, degree);
        let mut tables = vec![Vec::new(); 8];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let ranks = &order[..n_vertices];
            // For an edge, ranks such as (0, 2) order like (0, 1).
            let place = |rank: u32| ranks.iter().filter(|other| **other < rank).count();
            let canonical = |counts: &Vec<usize>| {
                let mut moved = counts.clone();
                for (count, rank) in counts.iter().zip(ranks) {
                    moved[place(*rank)] = *count;
                }
                lattice.iter().position(|other| *other == moved).map_or(0, |i| i as i32)
            };
            tables[order_code(ranks)] = lattice.iter().map(canonical).collect();
        }
        Self { tables }
    }

    /// The canonical places of the nodes of an entity whose vertices have these global numbers.
    pub(super) fn of(&self, vertices: &[u32]) -> &[i32] {
        &self.tables[order_code(vertices)]
    }
}

/// One bit for each pair of vertices that is in descending order.
fn order_code(vertices: &[u32]) -> usize {
    match vertices {
        [a, b] => usize::from(a > b),
        [a, b, c] => usize::from(a > b) | usize::from(a > c) << 1 | usize::from(b > c) << 2,
        _ => 0,
    }
}
