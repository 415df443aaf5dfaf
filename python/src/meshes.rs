//! Files of meshes, as arrays.

use crate::failure::{self, Failure};
use kingpost::forms::mesh::GmshBlocks;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::collections::BTreeMap;
use std::path::PathBuf;

type Bytes<'py> = Bound<'py, PyByteArray>;
/// The cells of a kind: name, order, nodes, and the cells of each group, as `i32` of this machine.
type Block<'py> = (&'static str, usize, Bytes<'py>, BTreeMap<i32, Bytes<'py>>);

/// What a Gmsh file has of cells.
#[pyclass(frozen, get_all)]
pub(crate) struct GmshFile {
    /// The dimension of the cells.
    dim: usize,
    /// Positions `[nodes, 3]` in `f64`.
    positions: Py<PyByteArray>,
    /// The cells of each kind.
    blocks: Py<PyAny>,
    /// The corners of facets in groups, `[facets, 4]` as `i32`, -1 where there are fewer.
    facets: Py<PyByteArray>,
    /// The places of facets in each group, as `i32`.
    facet_groups: Py<PyAny>,
    /// The names of groups, with their dimensions and numbers.
    names: BTreeMap<String, (usize, i32)>,
}

/// Reads a Gmsh file.
#[pyfunction]
pub(crate) fn read_gmsh(py: Python<'_>, path: PathBuf) -> PyResult<GmshFile> {
    let read =
        || GmshBlocks::read(&path).map_err(|e| Failure::new("MeshError", format!("{}: {e}", path.display())));
    let found = failure::run(py, read)?;
    let integers = |list: &mut dyn Iterator<Item = i32>| {
        let flat: Vec<u8> = list.flat_map(i32::to_ne_bytes).collect();
        PyByteArray::new(py, &flat)
    };
    let signed = |list: &[u32]| integers(&mut list.iter().map(|n| *n as i32));
    let positions: Vec<u8> = found.positions.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let blocks: Vec<Block<'_>> = found
        .blocks
        .iter()
        .map(|b| {
            let groups = b.groups.iter().map(|(group, cells)| (*group, signed(cells))).collect();
            (b.cell, b.order, signed(&b.nodes), groups)
        })
        .collect();
    let corner = |facet: &[u32], k: usize| facet.get(k).map_or(-1, |vertex| *vertex as i32);
    let facets = found.facets.iter().flat_map(|(facet, _)| (0..4).map(|k| corner(facet, k)));
    let facets = integers(&mut facets.collect::<Vec<i32>>().into_iter());
    let mut of_groups: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
    for (place, (_, groups)) in (0..).zip(&found.facets) {
        groups.iter().for_each(|group| of_groups.entry(*group).or_default().push(place));
    }
    let facet_groups: BTreeMap<i32, Bytes<'_>> =
        of_groups.iter().map(|(group, places)| (*group, signed(places))).collect();
    Ok(GmshFile {
        dim: found.dim,
        positions: PyByteArray::new(py, &positions).unbind(),
        blocks: blocks.into_pyobject(py)?.into_any().unbind(),
        facets: facets.unbind(),
        facet_groups: facet_groups.into_pyobject(py)?.into_any().unbind(),
        names: found.names,
    })
}
