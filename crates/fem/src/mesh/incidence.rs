//! The cells around each vertex, and the edges and faces that these cells share.

use crate::element::CellShape;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Vertices whose edges or faces a thread finds at a time.
const VERTICES: usize = 1024;

/// The ascending vertices of an edge or a face; those that it lacks are `u32::MAX`.
pub type EntityKey = [u32; 4];

/// The same vertices in ascending order, by which the cells of an edge or a face find each other.
pub fn entity_key(vertices: impl IntoIterator<Item = u32>) -> EntityKey {
    let mut key = [u32::MAX; 4];
    key.iter_mut().zip(vertices).for_each(|(place, vertex)| *place = vertex);
    key.sort_unstable();
    key
}

/// An edge or a face as one of its cells has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// Its vertices.
    pub key: EntityKey,
    /// The cell.
    pub cell: u32,
    /// Which of the cell's entities it is.
    pub number: u8,
}

/// The cells around each vertex.
///
/// An edge or a face is found at the lowest of its vertices, so that vertices are independent: all
/// threads work, and the result does not depend on them. Sorting all faces of a mesh at once takes
/// several times as long.
pub struct CellsOfVertices<'m> {
    shape: CellShape,
    /// `[cells, corners]` row-major.
    cells: &'m [u32],
    /// Cells of vertex `v`: `starts[v]..starts[v + 1]`.
    starts: Vec<usize>,
    /// In any order at one vertex.
    around: Vec<AtomicU32>,
}

impl<'m> CellsOfVertices<'m> {
    /// Of cells whose vertices are below `n_vertices`, `[cells, corners]` row-major.
    #[must_use]
    pub fn new(shape: CellShape, cells: &'m [u32], n_vertices: usize) -> Self {
        let free: Vec<AtomicU32> = (0..n_vertices).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        cells.par_iter().for_each(|vertex| {
            free[*vertex as usize].fetch_add(1, Relaxed);
        });
        let (mut starts, mut end) = (Vec::with_capacity(n_vertices + 1), 0);
        starts.push(0);
        starts.extend(free.iter().map(|count| {
            end += count.load(Relaxed) as usize;
            end
        }));
        let around: Vec<AtomicU32> = (0..cells.len()).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        cells.par_chunks_exact(shape.n_vertices()).enumerate().for_each(|(cell, vertices)| {
            for vertex in vertices {
                // each place is taken once
                let left = free[*vertex as usize].fetch_sub(1, Relaxed) as usize;
                around[starts[*vertex as usize] + left - 1].store(cell as u32, Relaxed);
            }
        });
        Self { shape, cells, starts, around }
    }

    /// What `of` makes of each edge or face that there is, in the order of their [keys](EntityKey).
    ///
    /// `entities` are those of the reference cell, by their vertices. `of` is given all occurrences of
    /// one, ascending.
    pub fn entities<T: Send>(
        &self,
        entities: &[&[usize]],
        of: impl Fn(&[Occurrence]) -> Option<T> + Sync,
    ) -> Vec<T> {
        let n_vertices = self.starts.len() - 1;
        let of_vertices = |part: usize| {
            let (mut around, mut found, mut made) = (Vec::new(), Vec::new(), Vec::new());
            for vertex in part * VERTICES..n_vertices.min((part + 1) * VERTICES) {
                around.clear();
                let own = &self.around[self.starts[vertex]..self.starts[vertex + 1]];
                around.extend(own.iter().map(|cell| cell.load(Relaxed)));
                found.clear();
                around.iter().for_each(|cell| self.at(vertex as u32, *cell, entities, &mut found));
                // the first vertex is that of all, and two are one number
                let others = |of: &Occurrence| u64::from(of.key[1]) << 32 | u64::from(of.key[2]);
                found.sort_unstable_by_key(|of| (others(of), of.key[3], of.cell, of.number));
                made.extend(found.chunk_by(|a, b| a.key == b.key).filter_map(&of));
            }
            made
        };
        (0..n_vertices.div_ceil(VERTICES)).into_par_iter().flat_map_iter(of_vertices).collect()
    }

    /// Appends the entities of a cell whose lowest vertex this is.
    fn at(&self, lowest: u32, cell: u32, entities: &[&[usize]], found: &mut Vec<Occurrence>) {
        let corners = self.shape.n_vertices();
        let vertices = &self.cells[cell as usize * corners..(cell as usize + 1) * corners];
        for (number, entity) in entities.iter().enumerate() {
            let is_lowest = entity.iter().all(|v| vertices[*v] >= lowest);
            if is_lowest && entity.iter().any(|v| vertices[*v] == lowest) {
                let key = entity_key(entity.iter().map(|v| vertices[*v]));
                found.push(Occurrence { key, cell, number: number as u8 });
            }
        }
    }
}
