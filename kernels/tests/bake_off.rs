//! The bake-off problems as forms.
#![allow(clippy::unwrap_used)] // how a test fails

use purlin_forms::element::CellShape::{Hexahedron, Quadrilateral};
use purlin_kernels::BakeOff;

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
