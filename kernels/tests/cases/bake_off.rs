//! The bake-off problems, and those of Świrydowicz et al. 2019, as forms.
#![allow(clippy::unwrap_used)] // how a test fails

use kingpost_fem::element::CellShape::{Hexahedron, Quadrilateral};
use kingpost_kernels::{BakeOff, TensorProduct};

#[test]
fn every_problem_has_its_operator_and_its_points() {
    let form = |name: &str| name.parse::<BakeOff>().unwrap().action_on(Hexahedron, 3).to_string();
    assert_eq!(form("bp1"), "inner(u, test) * dx(degree = 9)");
    assert_eq!(form("bp2"), form("bp1"));
    assert_eq!(form("bp3"), "inner(grad(u), grad(test)) * dx(degree = 9)");
    assert_eq!(form("bp4"), form("bp3"));
    let lobatto = "inner(grad(u), grad(test)) * dx(degree = 5)(scheme = gauss_lobatto)";
    assert_eq!([form("bp5"), form("bp6")], [lobatto, lobatto]);
    for problem in BakeOff::ALL {
        assert_eq!(problem.name().parse(), Ok(problem));
        assert_eq!(problem.is_vector(), ["bp2", "bp4", "bp6"].contains(&problem.name()));
        assert!(!problem.action_on(Quadrilateral, 2).to_string().is_empty());
    }
    let error = "bp7".parse::<BakeOff>().unwrap_err().to_string();
    assert_eq!(error, "no bake-off problem `bp7`; there are `bp1` to `bp6`");
}

#[test]
fn screened_problems_add_mass_at_the_same_points() {
    let form = |name: &str| name.parse::<TensorProduct>().unwrap().action_on(Hexahedron, 3).to_string();
    assert_eq!(form("bp10"), BakeOff::Bp1.action_on(Hexahedron, 3).to_string());
    let screened = "(inner(grad(u), grad(test)) + lambda*inner(u, test))";
    assert_eq!(form("bp3.0"), format!("{screened} * dx(degree = 9)"));
    assert_eq!(form("bp35"), format!("{screened} * dx(degree = 5)(scheme = gauss_lobatto)"));
    for problem in TensorProduct::ALL {
        assert_eq!(problem.name().parse(), Ok(problem));
        assert_eq!(problem.published_name().parse(), Ok(problem));
        assert!(!problem.action_on(Quadrilateral, 2).to_string().is_empty());
    }
    let error = "bp36".parse::<TensorProduct>().unwrap_err().to_string();
    let names = "there are `bp10`, `bp30` and `bp35`, or `bp1.0`, `bp3.0` and `bp3.5`";
    assert_eq!(error, format!("no benchmark problem `bp36`; {names}"));
}
