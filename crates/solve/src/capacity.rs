//! Bytes of a system before anything of it is allocated.

use crate::{AssemblyStrategy, LinearChoice, SolveError};
use kingpost_fem::mesh::Mesh;
use kingpost_runtime::{Backend, DeviceInfo, available_memory};

/// How large the system of a Lagrange space on a mesh of simplices is, from counts alone.
///
/// Edges and faces are not counted but follow from cells and vertices (Euler's formula for a ball,
/// and the boundary of a cube), so that all is *about*: exact up to what the boundary and the holes
/// of the mesh make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemSize {
    /// Unknowns.
    pub unknowns: u64,
    /// Stored entries of the matrix.
    pub entries: u64,
    /// Entries of the lookup table of positions (4 bytes each).
    pub positions: u64,
    /// Bytes on the device.
    pub device_bytes: u64,
    /// Bytes on the host while the system is set up.
    pub host_bytes: u64,
}

/// Bytes that an H200 moves while several exchange and sum in an iteration, which takes 40 µs, and
/// in as long as they connect, 25 ms, divided among some hundred iterations (2026-11-29,
/// `results/h200/dolfinx_benchmark.md`).
const EXCHANGED: u64 = 300_000_000;

/// Degrees of freedom of a simplex of a dimension, with those on its boundary.
fn nodes(degree: u64, dim: u64) -> u64 {
    let of = (1..=u128::from(dim)).fold(1_u128, |n, k| n.saturating_mul(u128::from(degree) + k) / k);
    u64::try_from(of).unwrap_or(u64::MAX)
}

/// Sub-simplices of dimension `d` of a simplex of dimension `t`.
fn parts(t: u64, d: u64) -> u64 {
    (0..=d).fold(1, |n, k| n * (t + 1 - k) / (k + 1))
}

/// Numbers of an entity of each dimension that no smaller entity has: pairs of nodes whose smallest
/// common entity it is, from the pairs in its closure.
fn own(of_closure: &[u64]) -> Vec<u64> {
    let mut own: Vec<u64> = Vec::new();
    for (t, all) in (0_u64..).zip(of_closure) {
        let shares = (0_u64..).zip(&own).map(|(d, n)| parts(t, d).saturating_mul(*n));
        let smaller = shares.fold(0, u64::saturating_add);
        own.push(all.saturating_sub(smaller));
    }
    own
}

impl SystemSize {
    /// Of a vector space of a given number of components on a mesh of simplices.
    #[must_use]
    pub fn of(mesh: &Mesh, degree: usize, components: usize, strategy: AssemblyStrategy) -> Self {
        Self::of_counts(
            mesh.shape().dim(),
            mesh.n_vertices() as u64,
            mesh.n_cells() as u64,
            degree,
            components,
            strategy,
        )
    }

    /// Of a mesh with given numbers of vertices and cells.
    #[must_use]
    pub fn of_counts(
        dim: usize,
        vertices: u64,
        cells: u64,
        degree: usize,
        components: usize,
        strategy: AssemblyStrategy,
    ) -> Self {
        let (dim, degree, block) = (dim as u64, degree as u64, components as u64);
        let boundary = (2.0 * (cells as f64).powf(1.0 - 1.0 / dim as f64)) as u64;
        let counts = match dim {
            1 => vec![vertices, cells],
            2 => vec![vertices, vertices.saturating_add(cells).saturating_sub(1), cells],
            _ => {
                let faces = cells.saturating_mul(2).saturating_add(boundary);
                let edges = vertices.saturating_add(faces).saturating_sub(cells.saturating_add(1));
                vec![vertices, edges, faces, cells]
            }
        };
        let closures: Vec<u64> = (0..=dim).map(|t| nodes(degree, t)).collect();
        let pairs: Vec<u64> = closures.iter().map(|n| n.saturating_mul(*n)).collect();
        let total = |own: &[u64]| -> u64 {
            counts.iter().zip(own).fold(0_u64, |sum, (n, own)| sum.saturating_add(n.saturating_mul(*own)))
        };
        let unknowns = block.saturating_mul(total(&own(&closures)));
        let entries = (block * block).saturating_mul(total(&own(&pairs)));
        // of a half, the entries on and above the diagonal are stored
        let whole = entries;
        let entries = match strategy {
            AssemblyStrategy::SymmetricHalf => whole.midpoint(unknowns),
            AssemblyStrategy::Partial
            | AssemblyStrategy::Full
            | AssemblyStrategy::LookupTable
            | AssemblyStrategy::Coloured
            | AssemblyStrategy::Rowwise
            | AssemblyStrategy::OwnedRows(_) => whole,
        };
        let local = block.saturating_mul(nodes(degree, dim));
        let of_cell = local.saturating_mul(local);
        let positions = cells.saturating_mul(of_cell);
        let a_cell = nodes(degree, dim).saturating_add(dim + 1);
        let maps =
            cells.saturating_mul(4).saturating_mul(a_cell).saturating_add((8 * dim).saturating_mul(vertices));
        // solution, residual, right-hand side, update, and two of load steps
        let vectors = unknowns.saturating_mul(6 * 8);
        let lists = match positions.checked_mul(16) {
            Some(_) if block > 0 => strategy.bytes(cells, nodes(degree, dim), block, entries, unknowns),
            Some(_) | None => u64::MAX,
        };
        let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
        let device_bytes = sum(&[lists, entries.saturating_mul(12), maps, vectors]);
        // the table by degree of freedom; lists as they are made, as arguments and as what is compared;
        // the pattern; values of zero
        let host_bytes = sum(&[
            positions.saturating_mul(4) / (block * block).max(1),
            lists.saturating_mul(3),
            whole.saturating_mul(16),
            maps.saturating_mul(3),
            unknowns.saturating_mul(3 * 8),
        ]);
        Self { unknowns, entries, positions, device_bytes, host_bytes }
    }

    /// The same with what solves the linear systems.
    #[must_use]
    pub fn with_solver(self, choice: LinearChoice, components: usize) -> Self {
        let vectors = (8 * choice.method.vectors()).saturating_mul(self.unknowns);
        let preconditioner = choice.preconditioner.bytes(self.unknowns, components as u64);
        // a copy by blocks: numbers, and the row and the column of each block
        let blocks = (components as u64).saturating_pow(2);
        let copy = if components > 1 {
            self.entries.saturating_mul(8).saturating_add(8 * (self.entries / blocks))
        } else {
            0
        };
        let bytes = vectors.saturating_add(preconditioner).saturating_add(copy);
        Self { device_bytes: self.device_bytes.saturating_add(bytes), ..self }
    }

    /// How many of some cards of one host take the least time for an iteration of conjugate
    /// gradients: all of them, or one, where exchange and sums take longer than what the others
    /// save.
    #[must_use]
    pub fn cards_that_pay(&self, cards: usize) -> usize {
        // numbers and columns of the matrix once, and eleven vectors
        let moved = self.entries.saturating_mul(12).saturating_add(self.unknowns.saturating_mul(88));
        let saved = moved - moved / (cards as u64).max(1);
        if saved > EXCHANGED { cards } else { 1 }
    }

    /// Refuses a system that the device or the host has no memory for.
    ///
    /// # Errors
    /// [`SolveError::Memory`] with the bytes it takes and those that there are.
    pub fn check(&self, what: &str, device: &DeviceInfo) -> Result<(), SolveError> {
        let of_host = match device.backend {
            Backend::C | Backend::OpenCl => self.host_bytes.saturating_add(self.device_bytes),
            Backend::Cuda => self.host_bytes,
        };
        let refuse = |needed, available, place: &str| {
            Err(SolveError::Memory { what: what.into(), needed, available, place: place.into() })
        };
        if device.global_mem_bytes > 0 && self.device_bytes > device.global_mem_bytes {
            return refuse(self.device_bytes, device.global_mem_bytes, &device.name);
        }
        match available_memory() {
            Some(available) if of_host > available => refuse(of_host, available, "the host"),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_fem::numbering::Numbering;
    use kingpost_fem::sparse::CsrPattern;

    #[test]
    fn counts_are_about_those_of_meshes() {
        let table = AssemblyStrategy::LookupTable;
        for (mesh, degree) in [
            (Mesh::unit_square(20).unwrap(), 1),
            (Mesh::unit_square(12).unwrap(), 3),
            (Mesh::unit_cube(9).unwrap(), 1),
            (Mesh::unit_cube(6).unwrap(), 2),
        ] {
            let numbering = Numbering::new(&mesh, degree).unwrap();
            let (n, k, map) = (numbering.n_dofs(), numbering.dofs_per_cell(), numbering.dofs());
            let pattern = CsrPattern::of_rows(n, n, k, k, map, map).unwrap();
            let size = SystemSize::of(&mesh, degree, 1, table);
            assert_eq!(size.positions, pattern.positions().len() as u64);
            let close = |a: u64, b: usize| (a as f64 / b as f64 - 1.0).abs() < 0.1;
            assert!(close(size.unknowns, n), "{} {n}", size.unknowns);
            let entries = pattern.columns.len();
            assert!(close(size.entries, entries), "{} {entries}", size.entries);
            let three = SystemSize::of(&mesh, degree, 3, table);
            assert_eq!((three.unknowns, three.entries), (3 * size.unknowns, 9 * size.entries));
        }
    }

    /// As measured on H200s: a million unknowns of P1 lose on two cards, ten million gain.
    #[test]
    fn small_systems_take_one_card() {
        let size =
            |vertices| SystemSize::of_counts(3, vertices, 6 * vertices, 1, 1, AssemblyStrategy::LookupTable);
        let cards = |vertices: u64| [1, 2, 4].map(|cards| size(vertices).cards_that_pay(cards));
        assert_eq!((cards(1_000_000), cards(10_000_000)), ([1, 1, 1], [1, 2, 4]));
        assert_eq!(size(0).cards_that_pay(0), 1);
    }

    #[test]
    fn what_no_machine_has_is_refused_with_its_bytes() {
        let size = SystemSize::of_counts(3, 1 << 40, 6 << 40, 2, 3, AssemblyStrategy::LookupTable);
        let device = kingpost_runtime::open("c").unwrap();
        let endless =
            SystemSize::of_counts(3, u64::MAX, u64::MAX, usize::MAX, 3, AssemblyStrategy::LookupTable);
        assert_eq!((endless.device_bytes, endless.host_bytes), (u64::MAX, u64::MAX));
        let error = size.check("the system", device.info()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("the system would take {} bytes", size.device_bytes))
                || error.contains("the host"),
            "{error}"
        );
    }
}
