//! A sub-group for each derivative of a component, and one basis for all derivatives, by matrix
//! instructions: what the kernels compute, and in how many instructions.

#![allow(clippy::unwrap_used)] // what a failed test does

use purlin_forms::Mapping;
use purlin_forms::form::Inputs;
use purlin_forms::lowering::{LoweredForm, LoweringOptions, lower};
use purlin_forms::mesh::Mesh;
use purlin_forms::numbering::Numbering;
use purlin_forms::reference;
use purlin_forms::strategies::matrix_basis_instructions;
use purlin_interp::interpret;
use purlin_kernels::Operator;

const BASIS: Mapping = Mapping::MatrixBasis { resident_groups: None };

fn lowered(operator: Operator, dim: usize, degree: usize) -> LoweredForm {
    lower(&operator.form(dim, degree).unwrap(), &LoweringOptions::new(operator.name())).unwrap()
}

/// Full blocks of cells and a rest, or only one of them; degrees of freedom, points and modes that tiles
/// do not divide; one function and two.
#[test]
fn results_are_those_of_the_reference() {
    for (operator, dim, degree, divisions) in [
        (Operator::Elasticity, 2, 2, 2),
        (Operator::Hyperelasticity, 2, 2, 3),
        (Operator::Hyperelasticity, 3, 2, 1),
    ] {
        let lowered = lowered(operator, dim, degree);
        let (kernel, recipe) = BASIS.apply(&lowered).unwrap();
        assert_eq!(recipe.apply(&lowered.kernel).unwrap(), kernel);
        let mesh = if dim == 2 { Mesh::unit_square(divisions) } else { Mesh::unit_cube(divisions) }.unwrap();
        let n = Numbering::new(&mesh, degree).unwrap().n_dofs() * dim;
        let mut inputs = Inputs::new();
        for (k, name) in ["u", "du"].into_iter().enumerate() {
            let value = |i: usize| ((7 * i + 3 * k) % 11) as f64 / 11.0 - 0.4;
            inputs = inputs.field(name, (0..n).map(value).collect());
        }
        let inputs = inputs.of(&lowered.form);
        let expected = reference::action(&lowered.form, &mesh, &inputs).unwrap();
        let mut memory = lowered.bind(&mesh, &inputs).unwrap();
        interpret(&kernel, &mut memory).unwrap();
        let found = memory.f64s("y").unwrap();
        let size = expected.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
        let error = found.iter().zip(&expected).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
        // sums of at most a few hundred terms
        assert!(error <= 1e-12 * size, "{operator} {dim}-D P{degree}: {error:e} of {size:e}");
    }
}

/// 27 values: derivatives of three components of two functions, and factors of the result. P6 has 448
/// points, 84 degrees of freedom and 56 polynomials of degree 5: 56, 11 and 7 tiles. Entries are compared row by
/// row, and rows at points near a corner are small, so that roundings of the basis take an eighth tile.
#[test]
fn instructions_are_fewer_where_there_are_many_points() {
    let instructions = |dim, degree| {
        let lowered = lowered(Operator::Hyperelasticity, dim, degree);
        matrix_basis_instructions(&lowered.kernel, &lowered.program).unwrap()
    };
    assert_eq!(instructions(3, 6), [27 * 56 * 11, 27 * (56 * 8 + 8 * 11)]);
    let [over_points, by_basis] = instructions(2, 8);
    assert!(by_basis > over_points, "{by_basis} of {over_points}");
    let scalar = lowered(Operator::Laplace, 2, 2);
    assert_eq!(matrix_basis_instructions(&scalar.kernel, &scalar.program), None);
    assert!(BASIS.apply(&scalar).unwrap_err().to_string().contains("the result has no components"));
}
