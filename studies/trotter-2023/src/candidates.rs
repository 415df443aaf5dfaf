//! The mappings that are tried of a strategy.

use purlin::Mapping;
use purlin::forms::element::CellShape;
use purlin::forms::form::FormError;
use purlin::forms::lowering::{LoweringOptions, MeshForm};
use purlin::forms::strategies::Objective;
use purlin::kernels::BoundaryValueProblem;
use purlin::runtime::Backend;
use purlin::solve::AssemblyStrategy;

/// The matrix of a problem on tetrahedra, lowered for a strategy.
///
/// # Errors
/// A form that is not lowered.
pub fn lowered(
    problem: BoundaryValueProblem,
    degree: usize,
    strategy: AssemblyStrategy,
    longest: usize,
) -> Result<MeshForm, FormError> {
    let space = problem.space(CellShape::Tetrahedron, degree);
    let options = LoweringOptions::new(format!("{problem}_tangent")).with_matrix(strategy.matrix(longest));
    MeshForm::new(&problem.tangent(&space), &options)
}

/// The mappings that are tried of a strategy.
#[must_use]
pub fn mappings(backend: Backend, strategy: AssemblyStrategy) -> Vec<Mapping> {
    match backend {
        Backend::C | Backend::OpenCl if strategy == AssemblyStrategy::OwnedRows => {
            vec![Mapping::SingleCell { cells: 8 }]
        }
        Backend::C | Backend::OpenCl => vec![Mapping::PointTiles { cells: 8, sums: 16 }],
        Backend::Cuda => {
            if strategy == AssemblyStrategy::OwnedRows {
                return [32, 64, 128].map(|owners| Mapping::OwnedRows { owners }).to_vec();
            }
            let cells = [64, 128].map(|cells| Mapping::ConstantCells { cells });
            let fewest = [64, 128].map(|cells| Mapping::FewestOperations {
                memory: Mapping::MEMORY_OF_TABLES,
                objective: Objective::Operations,
                then: Box::new(Mapping::ConstantCells { cells }),
            });
            let straight = match strategy {
                AssemblyStrategy::LookupTable => vec![Mapping::StraightCells { cells: 64 }],
                AssemblyStrategy::Partial
                | AssemblyStrategy::Full
                | AssemblyStrategy::Coloured
                | AssemblyStrategy::Rowwise
                | AssemblyStrategy::OwnedRows => Vec::new(),
            };
            [&straight[..], &cells, &fewest].concat()
        }
    }
}
