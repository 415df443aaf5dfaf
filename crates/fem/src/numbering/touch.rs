//! Numbers in the order in which cells first touch edges, faces and vertices, by all threads.

use super::NumberingOrder;
use super::order::Counters;
use crate::element::{FiniteElement, Reorientation, vertex_order};
use crate::mesh::{CellsOfVertices, Mesh, Occurrence};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering::Relaxed};

/// Cells that a thread numbers at a time: whole blocks of [`NumberingOrder::block`].
const CELLS: usize = 4096;

/// Why there are no numbers.
pub(super) enum Refused {
    Memory,
    TooMany,
}

/// The entities of a dimension that have numbers.
struct Entities {
    dim: usize,
    /// Numbers of one.
    size: usize,
    /// The entities of a cell, by their vertices.
    of_cell: &'static [&'static [usize]],
    reorientation: Reorientation,
    owners: Owners,
    /// The first number of each, by its place.
    numbers: Vec<AtomicI32>,
}

/// The cell that has an entity first, and owns it.
enum Owners {
    /// By vertex, which is its place.
    Vertices(Vec<AtomicU32>),
    /// By cell and entity, with which entity of the owner it is. The place is that of the owner.
    Shared { cells: Vec<AtomicU32>, entities: Vec<AtomicU8> },
    /// Each cell owns its interior.
    Cells,
}

/// A list of equal values; none if there is no memory.
fn list<T: Send>(len: usize, value: impl Fn() -> T + Sync + Send) -> Result<Vec<T>, Refused> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| Refused::Memory)?;
    list.par_extend((0..len).into_par_iter().map(|_| value()));
    Ok(list)
}

impl Entities {
    fn new(mesh: &Mesh, element: &FiniteElement, dim: usize) -> Result<Self, Refused> {
        let (shape, cells) = (mesh.shape(), mesh.n_cells());
        let of_cell = shape.entities_of_shape(dim);
        let shared = cells.checked_mul(of_cell.len()).ok_or(Refused::Memory)?;
        let (owners, places) = match dim {
            _ if dim == shape.dim() => (Owners::Cells, cells),
            0 => (Owners::Vertices(list(mesh.n_vertices(), || AtomicU32::new(u32::MAX))?), mesh.n_vertices()),
            _ => {
                let cells = list(shared, || AtomicU32::new(0))?;
                (Owners::Shared { cells, entities: list(shared, || AtomicU8::new(0))? }, shared)
            }
        };
        Ok(Self {
            dim,
            size: element.dofs_per_entity(dim),
            of_cell,
            reorientation: element.reorientation(dim),
            owners,
            numbers: list(places, || AtomicI32::new(0))?,
        })
    }

    /// Finds the owner of each.
    fn own(&self, mesh: &Mesh, around: Option<&CellsOfVertices<'_>>) {
        match (&self.owners, around) {
            (Owners::Vertices(first), _) => {
                let cells = mesh.cells().par_chunks_exact(mesh.shape().n_vertices()).enumerate();
                cells.for_each(|(cell, vertices)| {
                    for vertex in vertices {
                        let first = &first[*vertex as usize];
                        if first.load(Relaxed) > cell as u32 {
                            first.fetch_min(cell as u32, Relaxed);
                        }
                    }
                });
            }
            (Owners::Shared { cells, entities }, Some(around)) => {
                let n = self.of_cell.len();
                let own = |of_one: &[Occurrence]| -> Option<()> {
                    for occurrence in of_one {
                        let place = occurrence.cell as usize * n + usize::from(occurrence.number);
                        cells[place].store(of_one[0].cell, Relaxed);
                        entities[place].store(of_one[0].number, Relaxed);
                    }
                    None
                };
                around.entities(self.of_cell, own);
            }
            (Owners::Shared { .. } | Owners::Cells, _) => {}
        }
    }

    /// The place of an entity of a cell, and whether the cell owns it.
    fn place(&self, cell: usize, entity: usize, vertices: &[u32]) -> (usize, bool) {
        match &self.owners {
            Owners::Vertices(first) => {
                let vertex = vertices[self.of_cell[entity][0]] as usize;
                (vertex, first[vertex].load(Relaxed) as usize == cell)
            }
            Owners::Shared { cells, entities } => {
                let n = self.of_cell.len();
                let at = cell * n + entity;
                let (of, which) = (cells[at].load(Relaxed) as usize, usize::from(entities[at].load(Relaxed)));
                (of * n + which, (of, which) == (cell, entity))
            }
            Owners::Cells => (cell, true),
        }
    }

    /// In which order a cell lists the vertices of an entity.
    fn order(&self, entity: usize, vertices: &[u32]) -> usize {
        let mut own = [0; 8];
        own.iter_mut().zip(self.of_cell[entity]).for_each(|(own, v)| *own = vertices[*v]);
        vertex_order(&own[..self.of_cell[entity].len()])
    }

    /// Writes the numbers of the entities of a cell.
    fn write(&self, cell: usize, vertices: &[u32], dofs: &mut [i32]) {
        for (entity, dofs) in dofs.chunks_exact_mut(self.size).enumerate() {
            let first = self.numbers[self.place(cell, entity, vertices).0].load(Relaxed);
            match &self.reorientation {
                Reorientation::None | Reorientation::Matrices(_) => {
                    dofs.iter_mut().zip(first..).for_each(|(dof, number)| *dof = number);
                }
                Reorientation::Permutations(tables) => {
                    let places = &tables[self.order(entity, vertices)];
                    dofs.iter_mut().zip(places).for_each(|(dof, place)| *dof = first + *place as i32);
                }
            }
        }
    }
}

/// Blocks of `size` cells, the last one of what is left.
fn blocks(cells: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    cells.clone().step_by(size).map(move |first| first..cells.end.min(first + size))
}

/// The numbers of an element on a mesh.
pub(super) struct CellMap {
    pub n_dofs: usize,
    /// `[cells, dofs]` row-major.
    pub dofs: Vec<i32>,
    /// The order in which a cell lists the vertices of each entity whose numbers are turned by a matrix.
    pub states: Vec<i32>,
}

/// Numbers an element.
pub(super) fn numbered(
    mesh: &Mesh,
    element: &FiniteElement,
    order: NumberingOrder,
) -> Result<CellMap, Refused> {
    let dims = (0..=mesh.shape().dim()).filter(|dim| element.dofs_per_entity(*dim) > 0);
    let all: Vec<Entities> = dims.map(|dim| Entities::new(mesh, element, dim)).collect::<Result<_, _>>()?;
    let is_shared = |entities: &Entities| matches!(entities.owners, Owners::Shared { .. });
    let around = all.iter().any(is_shared).then(|| mesh.cells_of_vertices());
    all.iter().for_each(|entities| entities.own(mesh, around.as_ref()));
    drop(around);

    // the numbers that each part of the cells owns, and then these
    let owned = |cells: Range<usize>, each: &mut dyn FnMut(&Entities, usize)| {
        for block in blocks(cells, order.block(mesh.shape().dim())) {
            for entities in &all {
                for block in blocks(block.clone(), order.block(entities.dim)) {
                    for entity in 0..entities.of_cell.len() {
                        for cell in block.clone() {
                            let (place, is_own) = entities.place(cell, entity, mesh.cell(cell));
                            if is_own {
                                each(entities, place);
                            }
                        }
                    }
                }
            }
        }
    };
    let cells = |part: usize| part * CELLS..mesh.n_cells().min((part + 1) * CELLS);
    let parts = 0..mesh.n_cells().div_ceil(CELLS);
    let count = |part: usize| {
        let mut counts = [0_usize; 4];
        owned(cells(part), &mut |entities, _| counts[entities.dim] += entities.size);
        counts
    };
    let counts: Vec<[usize; 4]> = parts.clone().into_par_iter().map(count).collect();
    let total = counts.iter().fold([0; 4], |sum, own| std::array::from_fn(|dim| sum[dim] + own[dim]));
    let (mut next, n_dofs) = Counters::new(order, total).ok_or(Refused::TooMany)?;
    let counters = counts.iter().map(|own| {
        let first = next;
        own.iter().enumerate().for_each(|(dim, count)| _ = next.take(dim, *count));
        first
    });
    let counters: Vec<Counters> = counters.collect();
    parts.into_par_iter().zip(counters).for_each(|(part, mut next)| {
        owned(cells(part), &mut |entities, place| {
            entities.numbers[place].store(next.take(entities.dim, entities.size), Relaxed);
        });
    });

    let mut dofs = list(mesh.n_cells().checked_mul(element.n_dofs()).ok_or(Refused::Memory)?, || 0)?;
    dofs.par_chunks_exact_mut(element.n_dofs()).enumerate().for_each(|(cell, mut dofs)| {
        for entities in &all {
            let own;
            (own, dofs) = dofs.split_at_mut(entities.size * entities.of_cell.len());
            entities.write(cell, mesh.cell(cell), own);
        }
    });
    let turned: Vec<&Entities> =
        all.iter().filter(|all| matches!(all.reorientation, Reorientation::Matrices(_))).collect();
    let n_states = turned.iter().map(|entities| entities.of_cell.len()).sum();
    let mut states = list(mesh.n_cells().checked_mul(n_states).ok_or(Refused::Memory)?, || 0)?;
    states.par_chunks_exact_mut(n_states.max(1)).enumerate().for_each(|(cell, states)| {
        let each = turned.iter().flat_map(|all| (0..all.of_cell.len()).map(move |entity| (all, entity)));
        for (state, (entities, entity)) in states.iter_mut().zip(each) {
            *state = entities.order(entity, mesh.cell(cell)) as i32;
        }
    });
    Ok(CellMap { n_dofs, dofs, states })
}
