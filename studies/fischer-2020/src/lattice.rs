//! Cubes of the unit cube, their vertices moved, with degrees of freedom numbered along the axes.

use kingpost::interp::{Memory, Value};
use kingpost::ir::{Kernel, TableData, VarKind};
use rayon::prelude::*;

/// The cubes of a cube, and Lagrange elements of a degree on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Cells along an axis.
    pub divisions: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Whether values at the boundary are given, which numbers their degrees of freedom after the
    /// others.
    pub given_boundary: bool,
}

/// Vertices move by at most this many cell widths along each axis.
const MOVED: f64 = 0.1;

impl Lattice {
    /// Number of cells.
    #[must_use]
    pub fn cells(self) -> usize {
        self.divisions.pow(3)
    }

    /// Number of vertices.
    #[must_use]
    pub fn vertices(self) -> usize {
        (self.divisions + 1).pow(3)
    }

    /// Number of degrees of freedom of a scalar function.
    #[must_use]
    pub fn unknowns(self) -> usize {
        (self.divisions * self.degree + 1).pow(3)
    }

    /// Number of degrees of freedom whose values are sought.
    #[must_use]
    pub fn free(self) -> usize {
        let inside = (self.divisions * self.degree).saturating_sub(1).pow(3);
        if self.given_boundary { inside } else { self.unknowns() }
    }

    /// The number of the degree of freedom at a place along the axes.
    fn dof(self, place: [usize; 3]) -> usize {
        let last = self.divisions * self.degree;
        let [i, j, k] = place;
        let number = i + (last + 1) * (j + (last + 1) * k);
        if !self.given_boundary {
            return number;
        }
        // those inside come first in each layer, and in each row of a layer inside
        let inside = last.saturating_sub(1);
        let before = |at: usize| at.saturating_sub(1).min(inside);
        let is_inside = |at: usize| (1..last).contains(&at);
        let (in_row, in_layer) = (is_inside(j) && is_inside(k), is_inside(k));
        let row = if in_row { before(i) } else { 0 };
        let layer = if in_layer { before(j) * inside } else { 0 };
        let inner = row + layer + before(k) * inside * inside;
        if in_row && is_inside(i) { inner } else { self.free() + number - inner }
    }

    /// A vertex by its place along the axes. Those of the boundary stay in it, so that the volume is
    /// 1.
    fn vertex(self, place: [usize; 3]) -> [f64; 3] {
        let width = 1.0 / self.divisions as f64;
        let inner = place.iter().all(|k| 0 < *k && *k < self.divisions);
        let [i, j, k] = place.map(|p| p as f64);
        let moved = [1.3 * i + 2.1 * j + 0.7 * k, 0.9 * i - 1.7 * j + 2.9 * k, 2.3 * i + 1.1 * j - 1.9 * k];
        let mut at = [i * width, j * width, k * width];
        if inner {
            at.iter_mut().zip(moved).for_each(|(x, phase)| *x += MOVED * width * phase.sin());
        }
        at
    }

    /// The place along the axes of a cell, or of a vertex of it: the first axis counts fastest, as in
    /// the reference cell.
    fn place(number: usize, along: usize) -> [usize; 3] {
        [number % along, number / along % along, number / (along * along)]
    }

    /// The arguments of a kernel of a scalar form on hexahedra: geometry and map of degrees of
    /// freedom.
    ///
    /// # Errors
    /// The argument that the kernel lacks or that is not known here.
    pub fn memory(self, kernel: &Kernel) -> Result<Memory, String> {
        let order = order(kernel, (self.degree + 1).pow(3))?;
        let (n, nodes) = (self.divisions, self.degree + 1);
        let coords: Vec<f64> = (0..self.vertices())
            .into_par_iter()
            .flat_map_iter(|v| self.vertex(Self::place(v, n + 1)))
            .collect();
        let index = |place: [usize; 3], along: usize| place[0] + along * (place[1] + along * place[2]);
        let cell_vertices: Vec<i32> = (0..self.cells())
            .into_par_iter()
            .flat_map_iter(|cell| {
                let [i, j, k] = Self::place(cell, n);
                (0..8).map(move |v| index([i + (v & 1), j + (v >> 1 & 1), k + (v >> 2 & 1)], n + 1) as i32)
            })
            .collect();
        let mut dofs = vec![0_i32; self.cells() * order.len()];
        dofs.par_chunks_mut(order.len()).enumerate().for_each(|(cell, dofs)| {
            let first = Self::place(cell, n).map(|c| c * self.degree);
            for (node, local) in order.iter().enumerate() {
                let [a, b, c] = Self::place(node, nodes);
                dofs[*local] = self.dof([first[0] + a, first[1] + b, first[2] + c]) as i32;
            }
        });
        let mut memory = Memory::new();
        for (name, value) in
            [("n_cells", self.cells()), ("n_vertices", self.vertices()), ("n_dofs", self.unknowns())]
        {
            memory = memory.param(name, value as i64);
        }
        Ok(memory
            .value("coords", coords)
            .value("cell_vertices", Value::I32(cell_vertices))
            .value("dofs", Value::I32(dofs)))
    }

    /// The first coordinate of each degree of freedom, numbered along the axes, whose nodes along an
    /// axis of the reference cell are `nodes`, in [0, 1].
    #[must_use]
    pub fn positions(self, nodes: &[f64]) -> Vec<f64> {
        let along = self.divisions * self.degree + 1;
        let split = |at: usize| {
            let cell = (at / self.degree).min(self.divisions - 1);
            (cell, nodes[at - cell * self.degree])
        };
        (0..self.unknowns())
            .into_par_iter()
            .map(|dof| {
                let places = Self::place(dof, along).map(split);
                (0..8_usize)
                    .map(|v| {
                        let corner = |axis: usize| places[axis].0 + (v >> axis & 1);
                        let weight = |axis: usize| {
                            let t = places[axis].1;
                            if v >> axis & 1 == 1 { t } else { 1.0 - t }
                        };
                        let x = self.vertex([corner(0), corner(1), corner(2)])[0];
                        x * weight(0) * weight(1) * weight(2)
                    })
                    .sum()
            })
            .collect()
    }
}

/// For each node of the reference cube, the first axis counting fastest, its local degree of freedom:
/// the table that kernels on hexahedra read their maps by. Vertices are in that order.
fn order(kernel: &Kernel, nodes: usize) -> Result<Vec<usize>, String> {
    let tables = kernel.vars.values().filter(|v| v.name.ends_with("_order"));
    let mut order = tables.filter_map(|v| match &v.kind {
        VarKind::Table(TableData::Int(values)) => values.iter().map(|k| usize::try_from(*k).ok()).collect(),
        _ => None,
    });
    let found = order.next_back().or_else(|| (nodes == 8).then(|| (0..8).collect()));
    found
        .filter(|order: &Vec<usize>| order.len() == nodes)
        .ok_or_else(|| format!("the kernel has no table of the order of {nodes} nodes"))
}

#[cfg(test)]
mod tests {
    use super::Lattice;

    #[test]
    fn given_values_are_numbered_behind_those_that_are_sought() {
        for (divisions, degree) in [(1, 1), (1, 2), (2, 1), (3, 2), (2, 4)] {
            let lattice = Lattice { divisions, degree, given_boundary: true };
            let last = divisions * degree;
            let mut seen = vec![false; lattice.unknowns()];
            for at in 0..lattice.unknowns() {
                let place = Lattice::place(at, last + 1);
                let inside = place.iter().all(|p| 0 < *p && *p < last);
                let dof = lattice.dof(place);
                assert_eq!(dof < lattice.free(), inside, "{place:?}");
                assert!(!std::mem::replace(&mut seen[dof], true), "{place:?}: {dof} twice");
            }
            let first = seen.iter().position(|s| !s);
            assert_eq!(first, None);
        }
    }
}
