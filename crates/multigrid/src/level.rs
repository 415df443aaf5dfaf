//! The vectors of a level.

use crate::line::Line;
use crate::mesh::DeformedMesh;
use crate::on_mesh::MeshArrays;
use crate::options::{HierarchyOptions, Relaxation};
use crate::slabs::Slab;
use crate::{Element, MultigridError, Precision};
use kingpost_runtime::{Buffer, Device};
use kingpost_solve::Wire;

/// The vectors of a level, or of the part of it that a device has.
pub(crate) struct Level {
    pub(crate) slab: Slab,
    /// The solution, or the correction of the level above.
    pub(crate) x: Buffer,
    /// The right-hand side, or the residual of the level above.
    pub(crate) b: Buffer,
    /// The residual.
    pub(crate) r: Buffer,
    /// The direction of a polynomial and what is added to it, if the smoother has one.
    pub(crate) polynomial: Option<[Buffer; 2]>,
    /// The mesh, if it is deformed.
    pub(crate) mesh: Option<MeshArrays>,
    /// What neighbours exchange of it, if there are any.
    wire: Option<Wire>,
}

/// What the kernels of a level work on: its own vectors, or others of its length.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) slab: Slab,
    pub(crate) x: &'a Buffer,
    pub(crate) b: &'a Buffer,
    pub(crate) r: &'a Buffer,
    pub(crate) polynomial: Option<&'a [Buffer; 2]>,
    pub(crate) mesh: Option<&'a MeshArrays>,
    pub(crate) wire: Option<&'a Wire>,
}

impl Level {
    /// Of the part with this rank, on cubes.
    pub(crate) fn new(
        device: &dyn Device,
        element: Element,
        slab: Slab,
        precision: Precision,
        rank: usize,
    ) -> Result<Self, MultigridError> {
        let vector = || device.allocate(precision.bytes() * slab.nodes(element) as u64);
        let layer = element.degree * slab.plane(element);
        let below = (slab.below > 0).then(|| (rank - 1, 0..layer));
        let at = slab.below * layer;
        let above = (slab.above > 0).then(|| (rank + 1, at..at + layer));
        let pieces: Vec<_> = below.into_iter().chain(above).collect();
        let wire = match pieces.is_empty() {
            true => None,
            false => Some(Wire::new(device, pieces.clone(), pieces)?),
        };
        Ok(Self { slab, x: vector()?, b: vector()?, r: vector()?, polynomial: None, mesh: None, wire })
    }

    pub(crate) const fn at(&self) -> At<'_> {
        let Self { slab, x, b, r, polynomial, mesh, wire } = self;
        At { slab: *slab, x, b, r, polynomial: polynomial.as_ref(), mesh: mesh.as_ref(), wire: wire.as_ref() }
    }

    /// Numbers that neighbours are sent each time.
    pub(crate) fn sent(&self) -> usize {
        self.wire.as_ref().map_or(0, Wire::n_sent)
    }
}

/// The vectors of all levels, with their meshes.
pub(crate) fn levels(
    device: &dyn Device,
    element: Element,
    cells: usize,
    mesh: Option<&DeformedMesh>,
    line: &Line,
    HierarchyOptions { precision, relaxation, .. }: HierarchyOptions,
) -> Result<Vec<Level>, MultigridError> {
    let mut levels = Vec::new();
    let mut mesh = mesh.cloned();
    let mut of_level = cells;
    while of_level >= 2 {
        let slab = Slab::of((of_level, of_level), 0, 1);
        let vector = || device.allocate(precision.bytes() * slab.nodes(element) as u64);
        let iterates = relaxation != Relaxation::Multiplicative || (mesh.is_some() && of_level == 2);
        let polynomial = if iterates { Some([vector()?, vector()?]) } else { None };
        let arrays = mesh.as_ref().map(|mesh| MeshArrays::new(device, mesh, line, precision, true));
        let mesh_arrays = arrays.transpose()?;
        let mut level = Level::new(device, element, slab, precision, 0)?;
        (level.polynomial, level.mesh) = (polynomial, mesh_arrays);
        levels.push(level);
        of_level /= 2;
        mesh = match mesh {
            Some(mesh) if of_level >= 2 => Some(mesh.coarser()?),
            _ => None,
        };
    }
    levels.reverse();
    Ok(levels)
}
