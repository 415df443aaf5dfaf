//! Edges and faces by their global vertices.

/// A map from the set of two to four vertices of an edge or face to a number.
///
/// A chained hash table of its own, because std's spends its time on a hash that withstands
/// adversaries: 1.05 million tetrahedra look up 10 million edges and faces.
pub(super) struct EntityTable {
    /// The first entry of each bucket, or [`END`].
    heads: Vec<u32>,
    entries: Vec<Entry>,
}

struct Entry {
    vertices: [u32; 4],
    next: u32,
    number: i32,
}

const END: u32 = u32::MAX;

impl EntityTable {
    /// A table for about `capacity` entities; more only make it slower. None if there is no memory.
    pub(super) fn with_capacity(capacity: usize) -> Option<Self> {
        Some(Self { heads: filled(END, capacity.next_power_of_two())?, entries: Vec::new() })
    }

    /// The number of the entity with these 2 to 4 vertices, in any order; `fresh` if it is new.
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

    fn bucket(&self, key: [u32; 4]) -> usize {
        // Multiplication by odd constants near 2^64/golden ratio; the high bits are the well-mixed
        // ones.
        // The fourth vertex of a square follows from the others in all but odd meshes.
        let [a, b, c, _] = key.map(u64::from);
        let mixed =
            (a ^ (b << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ c.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        mixed as usize & (self.heads.len() - 1)
    }
}

/// Ascending; what an edge or triangle lacks becomes `u32::MAX`, and edges have a table of their
/// own.
fn sorted(vertices: &[u32]) -> [u32; 4] {
    let mut key = [u32::MAX; 4];
    for (place, vertex) in key.iter_mut().zip(vertices) {
        *place = *vertex;
    }
    key.sort_unstable();
    key
}

/// A list of `len` equal values; none if there is no memory.
pub(super) fn filled<T: Copy>(value: T, len: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).ok()?;
    list.resize(len, value);
    Some(list)
}
