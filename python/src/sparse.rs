//! Patterns of sparse matrices, and what kernels that add to them need.

use crate::failure::{self, Failure};
use kingpost::check_memory;
use kingpost::forms::import::Imported;
use kingpost::forms::lowering::{LoweredKernel, LoweredRole};
use kingpost::forms::sparse::{CsrPart, CsrPattern};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// A space: the name of its map, the columns of the map, and the components of each number.
type Space = (String, usize, usize);
/// A matrix: names of its values and of the places of entities, its spaces, and the list of cells
/// of the entities, with the number of cells that each has; none if entities are all cells.
pub(crate) type Matrix = (String, String, [Space; 2], Option<(String, usize)>);
/// Rows and columns of an entity's matrix, and the numbers of both as `i32` of this machine.
type Part = (usize, usize, Vec<u8>, Vec<u8>);

/// The sparse matrices that a kernel adds to.
pub(crate) fn matrices(imported: &Imported, kernel: &LoweredKernel) -> Vec<Matrix> {
    let form = &imported.form;
    let named = |wanted: &dyn Fn(LoweredRole) -> bool| {
        kernel.arguments.iter().find(|a| wanted(a.role)).map(|a| a.name.clone())
    };
    let mut found = Vec::new();
    for argument in &kernel.arguments {
        let LoweredRole::Positions { output } = argument.role else { continue };
        let spaces = form.outputs.get(output).map_or(&[][..], |o| &o.spaces);
        let [test, trial] = spaces else { continue };
        let space = |place: &usize| {
            let space = &form.spaces[*place];
            (space.map_name(), space.columns, space.block)
        };
        let cells = named(&|role| role == LoweredRole::EntityCells);
        let sides = kernel.kernel.var(cells.as_deref().unwrap_or_default());
        let sides = sides.map_or(1, |v| kernel.kernel.vars[v].shape.len());
        let values = named(&|role| role == LoweredRole::Output { output });
        let Some(values) = values else { continue };
        found.push((
            values,
            argument.name.clone(),
            [space(test), space(trial)],
            cells.map(|name| (name, sides)),
        ));
    }
    found
}

/// Bytes that building a pattern takes for a row without entries.
const ROW_BYTES: u64 = 64;

/// The pattern of a matrix to which several kernels add: where rows start, the columns, and the
/// places of each kernel's entities, all as `i32` of this machine.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "three arrays for Python")]
pub(crate) fn csr_pattern<'py>(
    py: Python<'py>,
    n_rows: usize,
    n_columns: usize,
    parts: Vec<Part>,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Vec<Bound<'py, PyByteArray>>)> {
    let patterns = failure::run(py, || {
        // what starts and counts rows, several times; numbers with gaps make rows of nothing
        let bytes = (n_rows as u64).saturating_mul(ROW_BYTES);
        check_memory(&format!("a pattern of {n_rows} rows"), bytes, "number rows without gaps")
            .map_err(|e| Failure::new("FormError", e.to_string()))?;
        let numbers: Vec<(Vec<i32>, Vec<i32>)> =
            parts.iter().map(|(_, _, rows, columns)| (read(rows), read(columns))).collect();
        let parts: Vec<CsrPart<'_>> = parts
            .iter()
            .zip(&numbers)
            .map(|((height, width, ..), (rows, columns))| CsrPart {
                extents: [*height, *width],
                rows,
                columns,
            })
            .collect();
        CsrPattern::joint(n_rows, n_columns, &parts).map_err(|e| Failure::new("FormError", e.to_string()))
    })?;
    let bytes = |list: &[i32]| {
        let flat: Vec<u8> = list.iter().flat_map(|n| n.to_ne_bytes()).collect();
        PyByteArray::new(py, &flat)
    };
    let first = patterns.first();
    Ok((
        bytes(first.map_or(&[0][..], |p| &p.row_starts)),
        bytes(first.map_or(&[][..], |p| &p.columns)),
        patterns.iter().map(|p| bytes(&p.positions())).collect(),
    ))
}

fn read(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect()
}
