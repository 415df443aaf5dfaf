//! What a part owns, and what it exchanges with the others.

use super::Partition;
use crate::SolveError;
use purlin_forms::form::FormError;
use purlin_forms::mesh::Mesh;
use purlin_forms::numbering::Numbering;
use std::ops::Range;

/// The cells of a mesh that have a degree of freedom of a part, as a mesh of its own.
#[derive(Clone, Debug)]
pub struct PartMesh {
    /// The cells in the order of the whole mesh.
    pub mesh: Mesh,
    /// Their degrees of freedom.
    pub numbering: Numbering,
    /// The number on the whole mesh of each degree of freedom.
    pub dofs: Vec<i32>,
    /// The number on the whole mesh of each cell.
    pub cells: Vec<usize>,
}

fn refused(error: &dyn std::fmt::Display) -> SolveError {
    FormError::Discretisation(error.to_string()).into()
}

/// Rows of numbers, renumbered in ascending order, and which numbers they were.
fn renumbered(rows: impl Iterator<Item = u32> + Clone, n: usize) -> (Vec<u32>, Vec<u32>) {
    let mut new = vec![u32::MAX; n];
    for number in rows.clone() {
        new[number as usize] = 0;
    }
    let kept: Vec<u32> = (0..n as u32).filter(|number| new[*number as usize] == 0).collect();
    for (place, number) in kept.iter().enumerate() {
        new[*number as usize] = place as u32;
    }
    (rows.map(|number| new[number as usize]).collect(), kept)
}

fn rows_of(rows: &[f64], width: usize, numbers: &[u32]) -> Vec<f64> {
    numbers.iter().flat_map(|n| &rows[*n as usize * width..(*n as usize + 1) * width]).copied().collect()
}

impl PartMesh {
    /// The cells of a part. Vertices keep their order, so that edges and faces keep their directions.
    ///
    /// # Errors
    /// What a mesh or a numbering refuses: memory.
    pub fn new(
        mesh: &Mesh,
        numbering: &Numbering,
        partition: &Partition,
        part: usize,
    ) -> Result<Self, SolveError> {
        let owned = |cell: &usize| numbering.cell(*cell).iter().any(|dof| partition.owner(*dof) == part);
        Self::of_cells(mesh, numbering, (0..mesh.n_cells()).filter(owned).collect())
    }

    /// Some cells, by their numbers in ascending order, likewise.
    ///
    /// # Errors
    /// As [`PartMesh::new`].
    pub fn of_cells(mesh: &Mesh, numbering: &Numbering, cells: Vec<usize>) -> Result<Self, SolveError> {
        let dim = mesh.shape().dim();
        let vertices = cells.iter().flat_map(|cell| mesh.cell(*cell)).copied();
        let (corners, kept) = renumbered(vertices, mesh.n_vertices());
        let points = rows_of(mesh.coordinates(), dim, &kept);
        let mut of_part = Mesh::new(mesh.shape(), points, corners, None).map_err(|e| refused(&e))?;
        if mesh.geometry_degree() > 1 {
            let nodes = cells.iter().flat_map(|cell| mesh.cell_nodes(*cell)).copied();
            let (nodes, kept) = renumbered(nodes, mesh.nodes().len() / dim);
            let element = mesh.geometry_element().map_err(|e| refused(&e))?;
            let points = rows_of(mesh.nodes(), dim, &kept);
            of_part = of_part.with_nodes(element, points, nodes).map_err(|e| refused(&e))?;
        }
        let of_cells = Numbering::of(&of_part, numbering.element()).map_err(|e| refused(&e))?;
        let mut dofs = vec![0; of_cells.n_dofs()];
        for (place, cell) in cells.iter().enumerate() {
            for (of_part, dof) in of_cells.cell(place).iter().zip(numbering.cell(*cell)) {
                dofs[*of_part as usize] = *dof;
            }
        }
        Ok(Self { mesh: of_part, numbering: of_cells, dofs, cells })
    }
}

/// The unknowns of a part: owned ones in the order of the whole mesh, and ghosts by their owners.
///
/// Unknowns of a part's mesh are its degrees of freedom times components, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartLayout {
    /// The unknown of the part's mesh that each owned one is.
    pub owned: Vec<i32>,
    /// The unknown of the part's mesh that each ghost is.
    pub ghosts: Vec<i32>,
    /// The parts that own ghosts, and the ghosts that each owns.
    pub receives: Vec<(usize, Range<usize>)>,
    /// The parts that need owned unknowns, and which each needs, in its order of ghosts.
    pub sends: Vec<(usize, Vec<i32>)>,
}

/// The layouts of all parts, for degrees of freedom of so many components.
#[must_use]
pub fn layouts(partition: &Partition, meshes: &[PartMesh], components: usize) -> Vec<PartLayout> {
    let mut all: Vec<PartLayout> = Vec::with_capacity(meshes.len());
    // the ghosts of each part by owner: part, owner, places among the owner's
    let mut needs: Vec<(usize, usize, Vec<i32>)> = Vec::new();
    let spread = |place: usize| (0..components).map(move |k| (place * components + k) as i32);
    for (part, mesh) in meshes.iter().enumerate() {
        let mut owned = vec![0; partition.counts()[part] * components];
        let mut ghosts: Vec<(usize, usize, usize)> = Vec::new();
        for (place, dof) in mesh.dofs.iter().enumerate() {
            let (owner, at) = (partition.owner(*dof), partition.place(*dof));
            if owner == part {
                for (slot, unknown) in spread(at).zip(spread(place)) {
                    owned[slot as usize] = unknown;
                }
            } else {
                ghosts.push((owner, at, place));
            }
        }
        ghosts.sort_unstable();
        let mut receives = Vec::new();
        let mut first = 0;
        for chunk in ghosts.chunk_by(|a, b| a.0 == b.0) {
            let owner = chunk[0].0;
            needs.push((part, owner, chunk.iter().flat_map(|(_, at, _)| spread(*at)).collect()));
            receives.push((owner, first..first + chunk.len() * components));
            first += chunk.len() * components;
        }
        let ghosts = ghosts.iter().flat_map(|(_, _, place)| spread(*place)).collect();
        all.push(PartLayout { owned, ghosts, receives, sends: Vec::new() });
    }
    for (part, owner, places) in needs {
        all[owner].sends.push((part, places));
    }
    all
}
