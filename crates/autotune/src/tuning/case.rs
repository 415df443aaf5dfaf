//! What is tuned: a form on a mesh.

use crate::Workload;
use crate::kernel_work;
use kingpost_analysis::stats::StatsError;
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::{Mesh, MeshCounts, MeshError};
use kingpost_fem::numbering::{Numbering, NumberingOrder};
use kingpost_forms::form::FormError;
use kingpost_forms::lowering::{ArgumentRole, LoweredForm};
use kingpost_run::{Problem, ProblemError};
use std::collections::BTreeMap;

/// The mesh on which candidates are timed.
#[derive(Clone, Debug)]
pub enum CaseMesh {
    /// The unit square or cube with a given number of divisions a side; it is made when it is needed.
    Unit(usize),
    /// Another one.
    Given {
        /// Its name for people, such as that of its file.
        name: String,
        /// The mesh.
        mesh: Box<Mesh>,
    },
}

/// A lowered form on a mesh, and what there is to compute.
pub struct FormCase {
    /// The mesh that candidates are timed on.
    pub mesh: CaseMesh,
    /// The kernel and what its arguments stand for.
    pub lowered: LoweredForm,
    /// What is computed, and how much of it.
    pub workload: Workload,
    order: NumberingOrder,
}

/// Why a case cannot be tuned at all.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The form.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The mesh it is to be measured on.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// No statistics.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

impl FormCase {
    /// A lowered form on a mesh, its degrees of freedom numbered
    /// [by dimension](NumberingOrder::OF_ACTIONS); `name` is that of its records, such as
    /// `laplace.3D.P4`.
    ///
    /// # Errors
    /// Divisions that no unit mesh has, a mesh of other cells, a kernel that cannot be counted.
    pub fn new(name: impl Into<String>, lowered: LoweredForm, mesh: CaseMesh) -> Result<Self, CaseError> {
        let order = NumberingOrder::OF_ACTIONS;
        let sizes = MeshSizes::of(&mesh, &lowered)?;
        let work = kernel_work(&lowered.kernel, &sizes.params(&lowered))?;
        let workload = Workload {
            case: name.into(),
            kernel: lowered.kernel.content_hash(),
            data: mesh.identity(),
            numbering: numbering(order),
            size: sizes.cells,
            results: sizes.nodes(lowered.test.degree()) * lowered.test.components() as u64,
            work,
        };
        Ok(Self { mesh, lowered, workload, order })
    }

    /// The case with its degrees of freedom in another order.
    #[must_use]
    pub fn in_order(mut self, order: NumberingOrder) -> Self {
        self.workload.numbering = numbering(order);
        self.order = order;
        self
    }

    /// The order of the degrees of freedom of a record.
    #[must_use]
    pub fn order_of(workload: &Workload) -> NumberingOrder {
        let orders = [NumberingOrder::ByDimension, NumberingOrder::ByEntity, NumberingOrder::ByBlock];
        let of_record = orders.into_iter().find(|order| workload.numbering == numbering(*order));
        // those before there was another order say nothing
        of_record.unwrap_or(NumberingOrder::FirstTouch)
    }

    /// The order in which degrees of freedom are numbered.
    #[must_use]
    pub const fn order(&self) -> NumberingOrder {
        self.order
    }

    /// Whether the mesh that is measured, and the form on it, fit in the memory of this machine.
    ///
    /// # Errors
    /// [`ProblemError::Memory`], as a [`CaseError`].
    pub fn check_size(&self) -> Result<(), CaseError> {
        let counts = match &self.mesh {
            CaseMesh::Unit(divisions) => MeshCounts::unit(self.lowered.cell, *divisions)?,
            CaseMesh::Given { mesh, .. } => MeshCounts::of(mesh),
        };
        Ok(Problem::check_size(&self.lowered, &counts)?)
    }

    /// The parameters of the kernel on the mesh that is measured.
    ///
    /// # Errors
    /// As [`FormCase::new`].
    pub(super) fn params(&self) -> Result<BTreeMap<String, i64>, CaseError> {
        Ok(MeshSizes::of(&self.mesh, &self.lowered)?.params(&self.lowered))
    }

    /// The form on a small unit mesh: 162 or more cells fill some groups of work-items and leave
    /// the last one in part.
    pub(super) fn small_problem(&self, seed: u64) -> Result<Problem, String> {
        let divisions = match self.lowered.cell {
            CellShape::Interval => 162,
            CellShape::Triangle => 9,
            CellShape::Tetrahedron => 3,
            CellShape::Quadrilateral => 13,
            CellShape::Hexahedron => 6,
            CellShape::Prism => 5,
            CellShape::Pyramid => 3,
        };
        self.problem(Mesh::unit(self.lowered.cell, divisions), seed)
    }

    /// The form on the mesh that is measured.
    pub(super) fn problem_to_measure(&self, seed: u64) -> Result<Problem, String> {
        let mesh = match &self.mesh {
            CaseMesh::Unit(divisions) => Mesh::unit(self.lowered.cell, *divisions),
            CaseMesh::Given { mesh, .. } => Ok(mesh.as_ref().clone()),
        };
        self.problem(mesh, seed)
    }

    fn problem(&self, mesh: Result<Mesh, MeshError>, seed: u64) -> Result<Problem, String> {
        let mesh = mesh.map_err(|e| e.to_string())?;
        Problem::in_order(self.lowered.clone(), mesh, self.order, seed).map_err(|e| e.to_string())
    }
}

/// What records say of the order of degrees of freedom; of that of first touch nothing, which all had
/// before there was another.
#[must_use]
pub fn numbering(order: NumberingOrder) -> Option<String> {
    match order {
        NumberingOrder::FirstTouch => None,
        NumberingOrder::ByDimension | NumberingOrder::ByEntity | NumberingOrder::ByBlock => {
            Some(order.to_string())
        }
    }
}

impl CaseMesh {
    /// What tells a mesh from others with as many cells, as records have it; a unit mesh needs
    /// nothing.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        let CaseMesh::Given { name, mesh } = self else { return None };
        let mut hash = blake3::Hasher::new();
        for coordinate in mesh.coordinates() {
            hash.update(&coordinate.to_le_bytes());
        }
        for vertex in mesh.cells() {
            hash.update(&vertex.to_le_bytes());
        }
        let hash = hash.finalize().to_hex();
        Some(format!("{name} {}", &hash[..16]))
    }
}

/// The sizes of a mesh that a kernel depends on; those of a unit mesh need no mesh.
struct MeshSizes {
    cells: u64,
    vertices: u64,
    /// Lagrange nodes by degree.
    nodes: BTreeMap<usize, u64>,
}

impl MeshSizes {
    fn of(mesh: &CaseMesh, lowered: &LoweredForm) -> Result<Self, CaseError> {
        let dim = lowered.cell.dim();
        let degrees = lowered.arguments.iter().filter_map(|a| match a.role {
            ArgumentRole::DofCount { degree } => Some(degree),
            ArgumentRole::CellCount
            | ArgumentRole::VertexCount
            | ArgumentRole::Coordinates
            | ArgumentRole::CellVertices
            | ArgumentRole::DofMap { .. }
            | ArgumentRole::Coefficient(_)
            | ArgumentRole::Constant(..)
            | ArgumentRole::Output(_) => None,
        });
        let degrees = degrees.chain([lowered.test.degree()]);
        match mesh {
            CaseMesh::Unit(n) => {
                Mesh::check_divisions(dim, *n)?;
                let divisions = *n as u64;
                // the nodes of a degree are the points of a grid
                let grid = |degree: usize| (divisions * degree as u64 + 1).pow(dim as u32);
                let cells = if dim == 2 { 2 * divisions.pow(2) } else { 6 * divisions.pow(3) };
                let nodes = degrees.map(|degree| (degree, grid(degree))).collect();
                Ok(Self { cells, vertices: grid(1), nodes })
            }
            CaseMesh::Given { mesh, .. } => {
                if mesh.shape() != lowered.cell {
                    let (found, needed) = (mesh.shape(), lowered.cell);
                    let message =
                        format!("the mesh has cells of kind `{found}`, and the form needs `{needed}`");
                    return Err(ProblemError::from(FormError::Discretisation(message)).into());
                }
                let count = |degree| Ok((degree, Numbering::new(mesh, degree)?.n_dofs() as u64));
                let nodes = degrees.map(count).collect::<Result<_, ProblemError>>()?;
                Ok(Self { cells: mesh.n_cells() as u64, vertices: mesh.n_vertices() as u64, nodes })
            }
        }
    }

    fn nodes(&self, degree: usize) -> u64 {
        self.nodes.get(&degree).copied().unwrap_or(0)
    }

    /// The kernel's parameters.
    fn params(&self, lowered: &LoweredForm) -> BTreeMap<String, i64> {
        let value = |role: &ArgumentRole| match role {
            ArgumentRole::CellCount => Some(self.cells),
            ArgumentRole::VertexCount => Some(self.vertices),
            ArgumentRole::DofCount { degree } => Some(self.nodes(*degree)),
            ArgumentRole::Coordinates
            | ArgumentRole::CellVertices
            | ArgumentRole::DofMap { .. }
            | ArgumentRole::Coefficient(_)
            | ArgumentRole::Constant(..)
            | ArgumentRole::Output(_) => None,
        };
        let named = lowered.arguments.iter().filter_map(|a| Some((a.name.clone(), value(&a.role)? as i64)));
        named.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_forms::lowering::{LoweringOptions, lower};
    use kingpost_kernels::Operator;

    fn lowered(operator: Operator, dim: usize, degree: usize) -> LoweredForm {
        lower(&operator.form(dim, degree).unwrap(), &LoweringOptions::new("action")).unwrap()
    }

    #[test]
    fn the_workload_of_a_unit_mesh_is_that_of_the_mesh() {
        let cases = [2, 3].into_iter().flat_map(|dim| (1..=3).map(move |degree| (dim, degree)));
        for (operator, (dim, degree)) in
            Operator::ALL.into_iter().flat_map(|o| cases.clone().map(move |c| (o, c)))
        {
            let lowered = lowered(operator, dim, degree);
            let case = FormCase::new("a case", lowered.clone(), CaseMesh::Unit(3)).unwrap();
            let problem = case.problem_to_measure(1).unwrap();
            assert_eq!(case.workload.size, problem.mesh.n_cells() as u64);
            assert_eq!(case.workload.results, problem.n_dofs as u64);
            assert_eq!(case.workload.data, None);
            assert_eq!(case.workload.numbering.as_deref(), Some("by dimension"));
            let sizes = MeshSizes::of(&case.mesh, &lowered).unwrap();
            assert_eq!(sizes.params(&lowered), *problem.memory.params());
            // the same mesh from elsewhere is as large
            let given = CaseMesh::Given { name: "m".into(), mesh: Box::new(problem.mesh) };
            let other = FormCase::new("a case", lowered, given).unwrap().workload;
            let name = other.data.clone().unwrap();
            assert!(name.starts_with("m ") && name.len() == 18, "{name}");
            assert_eq!(Workload { data: None, ..other }, case.workload);
            let before = case.workload.clone();
            assert_eq!(FormCase::order_of(&before), NumberingOrder::ByDimension);
            let by_touch = case.in_order(NumberingOrder::FirstTouch).workload;
            assert!(
                by_touch.numbering.is_none() && by_touch.is_beside(&before) && !by_touch.is_same(&before)
            );
            assert_eq!(FormCase::order_of(&by_touch), NumberingOrder::FirstTouch);
            let by_entity = Workload { numbering: numbering(NumberingOrder::ByEntity), ..by_touch };
            assert_eq!(FormCase::order_of(&by_entity), NumberingOrder::ByEntity);
        }
    }

    #[test]
    fn a_mesh_is_known_by_its_vertices_and_cells() {
        let identity = |mesh: Mesh| CaseMesh::Given { name: "m".into(), mesh: Box::new(mesh) }.identity();
        let square = Mesh::unit_square(2).unwrap();
        assert_eq!(identity(square.clone()), identity(square.clone()));
        assert_ne!(identity(square.clone()), identity(Mesh::unit_square(3).unwrap()));
        let mut cells = square.cells().to_vec();
        cells.rotate_left(3);
        let turned = Mesh::new(square.shape(), square.coordinates().to_vec(), cells, None).unwrap();
        assert_ne!(identity(square), identity(turned));
    }

    #[test]
    fn a_mesh_of_other_cells_is_refused() {
        let mesh = CaseMesh::Given { name: "m".into(), mesh: Box::new(Mesh::unit_cube(1).unwrap()) };
        let error = FormCase::new("a case", lowered(Operator::Mass, 2, 1), mesh).err().unwrap().to_string();
        assert!(error.contains("cells of kind `tetrahedron`, and the form needs `triangle`"), "{error}");
    }
}
