//! What a part owns, and what it exchanges with the others.

use super::Partition;
use crate::SolveError;
use kingpost_fem::mesh::{CellTags, FacetSide, FacetTag, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_forms::form::FormError;
use kingpost_forms::lowering::{LoweredKernel, LoweredRole, MeshForm};
use kingpost_forms::tabulated::IntegralType;
use kingpost_interp::{Memory, Value};
use rayon::prelude::*;
use std::collections::BTreeSet;
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
    /// Whether the part computes the integral over each cell, and those over its facets; others are
    /// there for what such facets read.
    pub computes: Vec<bool>,
    /// The tags of the whole mesh.
    tags: WholeTags,
}

/// The tags of the cells and facets of a whole mesh, some of which a part may lack.
#[derive(Clone, Debug)]
struct WholeTags {
    cells: BTreeSet<i32>,
    facets: Vec<FacetTag>,
}

fn refused(error: &dyn std::fmt::Display) -> SolveError {
    FormError::Discretisation(error.to_string()).into()
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
        Self::of_cells(mesh, numbering, (0..mesh.n_cells()).into_par_iter().filter(owned).collect())
    }

    /// The same with all cells that have a facet in common with one of them, which integrals over
    /// facets between cells need.
    ///
    /// # Errors
    /// As [`PartMesh::new`].
    pub fn with_neighbours(
        mesh: &Mesh,
        numbering: &Numbering,
        partition: &Partition,
        part: usize,
    ) -> Result<Self, SolveError> {
        let owned = |cell: usize| numbering.cell(cell).iter().any(|dof| partition.owner(*dof) == part);
        let computes: Vec<bool> = (0..mesh.n_cells()).into_par_iter().map(owned).collect();
        let mut is_there = computes.clone();
        for facet in mesh.facets() {
            let Some(other) = facet.other else { continue };
            let [one, other] = [facet.side.cell, other.cell].map(|cell| cell as usize);
            is_there[one] |= computes[other];
            is_there[other] |= computes[one];
        }
        let cells: Vec<usize> = (0..mesh.n_cells()).filter(|cell| is_there[*cell]).collect();
        let computes = cells.iter().map(|cell| computes[*cell]).collect();
        Ok(Self { computes, ..Self::of_cells(mesh, numbering, cells)? })
    }

    /// Some cells, by their numbers in ascending order, likewise; the part computes all of them.
    ///
    /// # Errors
    /// As [`PartMesh::new`].
    pub fn of_cells(mesh: &Mesh, numbering: &Numbering, cells: Vec<usize>) -> Result<Self, SolveError> {
        let of_part = mesh.part(&cells).map_err(|e| refused(&e))?;
        let of_cells = Numbering::of_in_order(&of_part, numbering.element(), numbering.order())
            .map_err(|e| refused(&e))?;
        let mut dofs = vec![0; of_cells.n_dofs()];
        for (place, cell) in cells.iter().enumerate() {
            for (of_part, dof) in of_cells.cell(place).iter().zip(numbering.cell(*cell)) {
                dofs[*of_part as usize] = *dof;
            }
        }
        let computes = vec![true; cells.len()];
        let tags = WholeTags {
            cells: mesh.tags().map(CellTags::all).into_iter().flatten().collect(),
            facets: mesh.facet_tags().to_vec(),
        };
        Ok(Self { mesh: of_part, numbering: of_cells, dofs, cells, computes, tags })
    }
}

/// The integers of a kernel's argument of a role; none if it has none.
fn list_of<'m>(kernel: &LoweredKernel, memory: &'m Memory, role: LoweredRole) -> &'m [i32] {
    let argument = kernel.arguments.iter().find(|argument| argument.role == role);
    match argument.and_then(|argument| memory.get(&argument.name)) {
        Some(Value::I32(list)) => list,
        Some(_) | None => &[],
    }
}

impl PartMesh {
    /// Whether the part has entities that a kernel is over: other parts may have all of a tag.
    ///
    /// # Errors
    /// A tag that the whole mesh has not, or has of other entities.
    pub(crate) fn has_entities(
        &self,
        form: &MeshForm,
        kernel: &LoweredKernel,
        boundary: &[FacetSide],
    ) -> Result<bool, SolveError> {
        if kernel.subdomains.is_empty() {
            return Ok(true);
        }
        let is_of = |tag: i32| kernel.subdomains.contains(&i64::from(tag));
        let of_facets = |on_boundary: bool| {
            let is_there = |side: &FacetSide| boundary.binary_search(side).is_ok() == on_boundary;
            self.tags.facets.iter().any(|tag| is_of(tag.tag) && is_there(&tag.side))
        };
        let (found, what) = match kernel.over {
            IntegralType::Cell => (self.tags.cells.iter().any(|tag| is_of(*tag)), "cells"),
            IntegralType::ExteriorFacet => (of_facets(true), "boundary facets"),
            IntegralType::InteriorFacet => (of_facets(false), "interior facets"),
        };
        if !found {
            let tags: Vec<String> = kernel.subdomains.iter().map(i64::to_string).collect();
            let (name, tags) = (&kernel.kernel.name, tags.join(", "));
            let needed = "the subdomain of an integral; give the mesh such a physical group";
            return Err(refused(&format!("`{name}`: found no {what} of tag {tags}, {needed}")));
        }
        Ok(form.has_entities(kernel, &self.mesh))
    }

    /// The places of a kernel's cells that the part computes, with the cells.
    pub(crate) fn own_cells(&self, kernel: &LoweredKernel, memory: &Memory) -> Vec<(u32, u32)> {
        let all: Vec<u32> = match kernel.subdomains.is_empty() {
            true => (0..self.mesh.n_cells() as u32).collect(),
            false => {
                list_of(kernel, memory, LoweredRole::EntityCells).iter().map(|cell| *cell as u32).collect()
            }
        };
        (0..).zip(all).filter(|(_, cell)| self.is_computed(*cell)).collect()
    }

    /// The places of a kernel's facets that are on the boundary of the whole mesh, whose facets are
    /// ascending, with their cells here; all others are where cells of other parts were cut off.
    pub(crate) fn on_boundary<'m>(
        &'m self,
        kernel: &LoweredKernel,
        memory: &'m Memory,
        boundary: &'m [FacetSide],
    ) -> impl Iterator<Item = (u32, u32)> + 'm {
        let cells = list_of(kernel, memory, LoweredRole::EntityCells);
        let sides = cells.iter().zip(list_of(kernel, memory, LoweredRole::LocalFacets));
        let is_kept = |cell: i32, facet: i32| {
            let facet = FacetSide { cell: cell as u32, facet: facet as u8 };
            self.is_computed(facet.cell) && self.is_boundary(facet, boundary)
        };
        let kept = (0..).zip(sides).filter(move |(_, (cell, facet))| is_kept(**cell, **facet));
        kept.map(|(place, (cell, _))| (place, *cell as u32))
    }

    /// The places of a kernel's facets between cells, one of which the part computes at least, with
    /// both cells.
    ///
    /// # Errors
    /// [`SolveError::NoNeighbour`] where a cell across such a facet is not there.
    pub(crate) fn between_cells(
        &self,
        kernel: &LoweredKernel,
        memory: &Memory,
        boundary: &[FacetSide],
    ) -> Result<Vec<(u32, [u32; 2])>, SolveError> {
        let is_cut = |side: &FacetSide| self.is_computed(side.cell) && !self.is_boundary(*side, boundary);
        if let Some(side) = self.mesh.boundary().iter().find(|side| is_cut(side)) {
            let (kernel, cell) = (kernel.kernel.name.clone(), self.cells[side.cell as usize]);
            return Err(SolveError::NoNeighbour { kernel, cell });
        }
        let (pairs, _) = list_of(kernel, memory, LoweredRole::EntityCells).as_chunks::<2>();
        let of_pair = |pair: &[i32; 2]| pair.map(|cell| cell as u32);
        let all = (0..).zip(pairs.iter().map(of_pair));
        Ok(all.filter(|(_, pair)| pair.iter().any(|cell| self.is_computed(*cell))).collect())
    }

    /// Whether the part computes what is of a cell.
    pub(crate) fn is_computed(&self, cell: u32) -> bool {
        self.computes[cell as usize]
    }

    fn is_boundary(&self, side: FacetSide, boundary: &[FacetSide]) -> bool {
        let side = FacetSide { cell: self.cells[side.cell as usize] as u32, ..side };
        boundary.binary_search(&side).is_ok()
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

/// The layouts of all parts, for degrees of freedom of a given number of components.
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
