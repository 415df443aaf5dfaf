//! How the cells and vertices of a mesh are numbered.

use kingpost::Random;
use kingpost::forms::mesh::{Mesh, MeshError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How the cells and vertices of a mesh are numbered: what decides how much of the mesh the cells of a
/// group share. Neighbours of a mesh that was read from a file may have any numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As the mesh was made: of unit meshes row by row.
    #[default]
    Made,
    /// At random.
    Random,
    /// Along a space-filling curve, after a random order.
    Local,
}

impl Order {
    /// Whether a mesh is left as it was made.
    #[must_use]
    pub fn is_made(&self) -> bool {
        *self == Self::Made
    }

    /// The mesh in this order.
    ///
    /// # Errors
    /// As [`Mesh::new`].
    pub fn of(self, mesh: Mesh, seed: u64) -> Result<Mesh, MeshError> {
        match self {
            Self::Made => Ok(mesh),
            Self::Random => shuffled(&mesh, seed),
            Self::Local => Ok(shuffled(&mesh, seed)?.reorder_for_locality()),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made => "made",
            Self::Random => "random",
            Self::Local => "local",
        })
    }
}

/// The numbers below `n` in a random order (Fisher and Yates).
fn permutation(n: usize, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for k in (1..n).rev() {
        order.swap(k, random.below(k as u64 + 1) as usize);
    }
    order
}

fn shuffled(mesh: &Mesh, seed: u64) -> Result<Mesh, MeshError> {
    let mut random = Random::new(seed);
    let dim = mesh.shape().dim();
    let places = permutation(mesh.n_vertices(), &mut random);
    let mut coordinates = vec![0.0; mesh.coordinates().len()];
    for (vertex, place) in (0_u32..).zip(&places) {
        let at = *place as usize * dim;
        coordinates[at..at + dim].copy_from_slice(mesh.vertex(vertex));
    }
    let order = permutation(mesh.n_cells(), &mut random);
    let corners = order.iter().flat_map(|cell| mesh.cell(*cell as usize));
    let cells = corners.map(|vertex| places[*vertex as usize]).collect();
    Mesh::new(mesh.shape(), coordinates, cells, None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn orders_keep_the_cells() {
        let mesh = Mesh::unit_cube(3).unwrap();
        let corners = |mesh: &Mesh| {
            let of = |cell: usize| -> Vec<Vec<u64>> {
                let points = mesh.cell(cell).iter().map(|v| mesh.vertex(*v));
                points.map(|x| x.iter().map(|x| (x * 3.0).round() as u64).collect()).collect()
            };
            let mut all: Vec<_> = (0..mesh.n_cells()).map(of).collect();
            all.sort();
            all
        };
        for order in [Order::Made, Order::Random, Order::Local] {
            let ordered = order.of(mesh.clone(), 7).unwrap();
            assert_eq!(corners(&ordered), corners(&mesh), "{order}");
            assert_eq!(ordered == mesh, order.is_made());
        }
    }
}
