//! The boundary of a mesh, and degrees of freedom on parts of it.

use crate::texts::{compiled, text};
use crate::{Call, DeviceTerms, PatternKernels, SolveError, run};
use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_runtime::{Backend, Buffer, Device, RuntimeError, buffer_of, download_values};

/// A side of the box that holds a mesh: along an axis, where the coordinate is least or greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The axis.
    pub axis: usize,
    /// Whether it is where the coordinate is greatest.
    pub high: bool,
}

/// Coordinates that differ by this part of the box lie on one plane.
const ON_PLANE: f64 = 1e-9;

impl Side {
    /// Whether a point lies on it.
    #[must_use]
    pub fn holds(self, point: &[f64], bounds: &[Vec<f64>; 2]) -> bool {
        let (Some(x), Some(low), Some(high)) =
            (point.get(self.axis), bounds[0].get(self.axis), bounds[1].get(self.axis))
        else {
            return false;
        };
        let plane = if self.high { high } else { low };
        (x - plane).abs() <= ON_PLANE * (high - low)
    }
}

/// The degrees of freedom of those `sides`, as a rule of the [boundary](Mesh::boundary), all of whose
/// vertices are `wanted`, in ascending order: those in the facets, on their edges, and at their vertices.
#[must_use]
pub fn facet_dofs(
    mesh: &Mesh,
    numbering: &Numbering,
    sides: &[FacetSide],
    wanted: &(dyn Fn(&[f64]) -> bool + Sync),
) -> Vec<i32> {
    numbering.on_facets(mesh, sides, wanted).into_iter().map(|placed| placed.dof).collect()
}

/// Corners of all cells from which on a card is faster than 16 cores, with the compilation of its kernels: 0.07
/// instead of 0.10 s for 6 million tetrahedra, 0.44 instead of 1.0 s for 64 million, but 0.04 instead of 0.02 s
/// for 1.3 million (H200, 2026-11-29).
pub(crate) const LARGE: usize = 1 << 24;

/// The [boundary](Mesh::boundary) of a mesh, found where that is fastest: on a card, or else on the host.
///
/// # Errors
/// A failing driver.
pub fn boundary(device: &dyn Device, mesh: &Mesh) -> Result<Vec<FacetSide>, SolveError> {
    match device.info().backend {
        Backend::Cuda if mesh.cells().len() >= LARGE => match boundary_by(device, mesh) {
            Ok(Some(sides)) => Ok(sides),
            Ok(None) | Err(SolveError::Runtime(RuntimeError::Allocation { .. })) => Ok(mesh.boundary()),
            Err(error) => Err(error),
        },
        // a processor sorts faster by threads of the host
        Backend::Cuda | Backend::C | Backend::OpenCl => Ok(mesh.boundary()),
    }
}

/// The same, found by a device: cells are sorted by their vertices, and a facet is compared with the cells around
/// its lowest vertex. None of more cells than 32 bits count.
///
/// # Errors
/// No memory, a failing driver.
pub fn boundary_by(device: &dyn Device, mesh: &Mesh) -> Result<Option<Vec<FacetSide>>, SolveError> {
    let (n, n_items, width) = (mesh.n_vertices(), mesh.cells().len(), mesh.shape().n_vertices());
    if n_items == 0 || i32::try_from(n_items + n).is_err() {
        return Ok(None);
    }
    let lists = PatternKernels::new(device)?;
    let map = buffer_of(device, mesh.cells())?;
    let terms = lists.terms(device, (&map, n), mesh.n_cells(), width)?;
    boundary_around(device, mesh, &lists, &Around { n, width, map: &map, terms: &terms }).map(Some)
}

/// The cells around the vertices of a mesh, which may have any numbers.
pub(crate) struct Around<'a> {
    /// Numbers.
    pub n: usize,
    /// Numbers of a cell, those of its vertices first.
    pub width: usize,
    /// The numbers of each cell.
    pub map: &'a Buffer,
    /// The cells of each number.
    pub terms: &'a DeviceTerms,
}

/// The boundary of a mesh of some cells, from the cells around its vertices.
pub(crate) fn boundary_around(
    device: &dyn Device,
    mesh: &Mesh,
    lists: &PatternKernels,
    around: &Around<'_>,
) -> Result<Vec<FacetSide>, SolveError> {
    let (shape, n, n_cells) = (mesh.shape(), around.n, mesh.n_cells());
    let facets = shape.facets();
    let of_shape = |text: &str| {
        let text = text.replace("CORNERS", &shape.n_vertices().to_string());
        let text = text.replace("WIDTH", &around.width.to_string());
        let text = text.replace("FACETS", &facets.len().to_string());
        compiled(device, &text.replace("SIDES", &facets[0].len().to_string()))
    };
    let (count, fill) = (of_shape(text!("count_boundary"))?, of_shape(text!("fill_boundary"))?);
    let corners: Vec<i32> = facets.iter().flat_map(|facet| facet.iter().map(|v| *v as i32)).collect();
    let corners = buffer_of(device, &corners)?;
    let integers = |n: usize| device.allocate(4 * n as u64);
    let [lengths, found_starts] = [integers(n + 1)?, integers(n + 1)?];
    device.fill(&lengths, 0)?;
    let DeviceTerms { starts, entities, .. } = around.terms;
    let given: [(&str, &Buffer); 4] =
        [("starts", starts), ("entities", entities), ("cells", around.map), ("facets", &corners)];
    let sizes = [("n", n), ("n_cells", n_cells), ("n_items", n_cells * around.width)];
    run(device, &[Call::of(&count, &sizes, &[&given[..], &[("lengths", &lengths)]].concat())])?;
    let (n_found, _) = lists.add_up(device, &lengths, n + 1, &found_starts)?;
    if n_found == 0 {
        return Ok(Vec::new());
    }
    let found = integers(n_found)?;
    let sizes = [&sizes[..], &[("n_found", n_found)]].concat();
    let arrays = [&given[..], &[("found_starts", &found_starts), ("found", &found)]].concat();
    run(device, &[Call::of(&fill, &sizes, &arrays)])?;
    let ([found, _], _) = lists.sort(device, (&found, n_cells * facets.len()), n_found)?;
    let found: Vec<i32> = download_values(device, &found)?;
    let side = |number: &i32| {
        let number = *number as usize;
        FacetSide { cell: (number / facets.len()) as u32, facet: (number % facets.len()) as u8 }
    };
    Ok(found.iter().map(side).collect())
}
