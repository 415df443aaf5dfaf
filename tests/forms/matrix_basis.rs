//! A sub-group for each derivative of a component, by matrix instructions: what the code of targets holds.
#![allow(clippy::unwrap_used)] // what a failed test does

use crate::support::bent_mesh;
use purlin::codegen::{Options, Target, generate};
use purlin::kernels::Operator;
use purlin::tuning::transform;
use purlin::{Mapping, Problem};

/// Products with the basis and with coefficients, each once for all components and directions; no lane
/// asks another one.
#[test]
fn products_are_matrix_instructions() {
    let problem = Problem::operator(Operator::Hyperelasticity, 3, None, bent_mesh(2, 1), 1).unwrap();
    let (kernel, _) = transform(&problem.lowered, &Mapping::MatrixBasis { resident_groups: None }).unwrap();
    let cuda = generate(&kernel, Target::Cuda, &Options::default()).unwrap();
    // 10 degrees of freedom in two tiles, 6 modes in one: two products for the coefficients of a function and
    // one at points; one for the sums of the result, and one a direction for the tile of rows that a
    // sub-group has
    let instructions = cuda.source.matches("mma.sync.aligned.m16n8k8").count();
    assert_eq!(instructions, 2 * (2 + 1) + 1 + 2, "{}", cuda.source);
    assert!(!cuda.source.contains("__shfl"), "{}", cuda.source);
    assert_eq!(cuda.plan.block, [32, 2, 2]);
    let opencl = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
    assert!(!opencl.source.contains("mma"), "{}", opencl.source);
}
