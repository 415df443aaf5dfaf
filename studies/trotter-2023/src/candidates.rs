//! The mappings that are tried of a strategy.

use kingpost::Mapping;
use kingpost::forms::Combinator;
use kingpost::forms::element::CellShape;
use kingpost::forms::form::FormError;
use kingpost::forms::lowering::{
    LoweringOptions, MatrixResult, MeshForm, NumberedMesh, OwnerCells, RowOwners,
};
use kingpost::forms::mesh::{Mesh, MeshError};
use kingpost::forms::numbering::NumberingOrder;
use kingpost::forms::strategies::{ConstantCells, FewestOperations, Objective, OwnedRows, StraightCells};
use kingpost::kernels::BoundaryValueProblem;
use kingpost::solve::AssemblyStrategy;
use kingpost::tuning::vectors::HostVectors;

/// The matrix of a problem on tetrahedra, lowered to that.
///
/// # Errors
/// A form that is not lowered.
pub fn lowered(
    problem: BoundaryValueProblem,
    degree: usize,
    matrix: MatrixResult,
) -> Result<MeshForm, FormError> {
    let space = problem.space(CellShape::Tetrahedron, degree);
    let options = LoweringOptions::new(format!("{problem}_tangent")).with_matrix(matrix);
    Ok(MeshForm::new(&problem.tangent(&space), &options)?.in_order(NumberingOrder::OF_MATRICES))
}

fn checked(mesh: Result<Mesh, MeshError>) -> Result<Mesh, FormError> {
    mesh.map_err(|e| FormError::Discretisation(e.to_string()))
}

/// A strategy with what is open of it decided, as records name it.
///
/// # Errors
/// A form that is not lowered.
pub fn decided(
    problem: BoundaryValueProblem,
    degree: usize,
    strategy: AssemblyStrategy,
) -> Result<AssemblyStrategy, FormError> {
    let mesh = checked(Mesh::unit_cube(1))?;
    strategy.decided(&lowered(problem, degree, MatrixResult::Sparse)?, &NumberedMesh::new(&mesh))
}

/// What a strategy takes on a uniform mesh: four divisions have an inner vertex with all neighbours.
///
/// # Errors
/// A form that is not lowered.
pub fn matrix_of(
    problem: BoundaryValueProblem,
    degree: usize,
    strategy: AssemblyStrategy,
) -> Result<MatrixResult, FormError> {
    let mesh = checked(Mesh::unit_cube(4))?;
    let form = lowered(problem, degree, MatrixResult::Sparse)?;
    let patterns = form.patterns(&mesh)?;
    let Some(pattern) = patterns.first() else { return Ok(strategy.matrix(0)) };
    strategy.matrix_of(&form, &NumberedMesh::new(&mesh), pattern)
}

/// The mappings that are tried of a strategy: on a processor with these vectors, or on a card.
#[must_use]
pub fn mappings(host: Option<HostVectors>, strategy: AssemblyStrategy) -> Vec<Mapping> {
    let owners = if let MatrixResult::OwnedRows(RowOwners { cells, packed, .. }) = strategy.matrix(1) {
        if packed {
            return vec![OwnedRows { owners: RowOwners::GROUP as u64 }.into()];
        }
        Some(cells)
    } else {
        None
    };
    match host {
        Some(host) if owners == Some(OwnerCells::Mapped) => vec![host.of_any()],
        // no other takes several loops over owners
        Some(_) if owners.is_some() => vec![OwnedRows { owners: RowOwners::GROUP as u64 }.into()],
        // of the half of a matrix, one triangle of a cell's matrix is summed
        Some(host) if strategy == AssemblyStrategy::SymmetricHalf => vec![host.tiles()],
        Some(host) => vec![
            host.tiles(),
            Mapping::from(ConstantCells { cells: host.lanes }),
            host.fewest(Objective::Operations),
        ],
        None => {
            if owners.is_some() {
                return [32, 64, 128].map(|owners| Mapping::from(OwnedRows { owners })).to_vec();
            }
            let cells = [64, 128].map(|cells| Mapping::from(ConstantCells { cells }));
            let (memory, objective) = (FewestOperations::MEMORY, Objective::Operations);
            let fewest = FewestOperations { memory, objective };
            let fewest = [64, 128].map(|cells| fewest.before(ConstantCells { cells }));
            let straight = match strategy {
                AssemblyStrategy::LookupTable => {
                    vec![Mapping::from(StraightCells::new(64))]
                }
                AssemblyStrategy::Partial
                | AssemblyStrategy::Full
                | AssemblyStrategy::SymmetricHalf
                | AssemblyStrategy::Coloured
                | AssemblyStrategy::Rowwise
                | AssemblyStrategy::OwnedRows(_) => Vec::new(),
            };
            [&straight[..], &cells, &fewest].concat()
        }
    }
}
