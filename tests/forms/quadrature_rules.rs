//! Mappings that take other quadrature rules: the same result with fewer points, and refusals where
//! another rule would give another result.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::bent_mesh;
use kingpost::autotune::known_devices;
use kingpost::forms::CellKernel;
use kingpost::forms::element::CellShape;
use kingpost::forms::form::*;
use kingpost::forms::lowering::OtherRules;
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::program::CellProgram;
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::forms::relowered;
use kingpost::forms::strategies::Rules;
use kingpost::kernels::Operator;
use kingpost::prelude::interpret;
use kingpost::tuning::{candidates, transform};
use kingpost::{Mapping, Problem, Random, RelativeError};

const COLLAPSED: Option<QuadratureScheme> = Some(QuadratureScheme::CollapsedGaussJacobi);

/// The action with rules of fewer points, next to its own, against the reference; its recipe begins with
/// the kernel of these rules.
#[test]
fn fewer_points_give_the_same_result() {
    let seed = Random::fresh_seed();
    for (dim, degree) in [(2, 3), (3, 2)] {
        let mesh = bent_mesh(dim, 2);
        let problem = Problem::operator(Operator::Hyperelasticity, degree, COLLAPSED, mesh, seed).unwrap();
        let expected = problem.reference().unwrap();
        let mapping = Mapping::single_cell().with_rules(QuadratureScheme::Default);
        let (kernel, recipe) = transform(&problem.lowered, &mapping).unwrap();
        let ruled = relowered(&problem.lowered, &recipe.lowering).unwrap().unwrap();
        let points = |program: &CellProgram| program.blocks.iter().map(|b| b.points).collect::<Vec<_>>();
        let (fewer, own) = (points(&ruled.program().unwrap()), points(&problem.lowered.program));
        assert!(fewer < own, "{fewer:?} {own:?}");
        assert_eq!(recipe.apply(ruled.kernel()).unwrap(), kernel);
        let mut memory = problem.memory.clone();
        interpret(&kernel, &mut memory).unwrap();
        let error = RelativeError::between(memory.f64s(problem.output()).unwrap(), &expected);
        assert!(error.is_within(1e-12), "{dim}-D P{degree}, seed {seed}: {error:?}");
    }
}

fn other_rules(form: &Form) -> Result<(), OtherRules> {
    let lowered = lower(form, &LoweringOptions::new("k")).unwrap();
    lowered.with_scheme(QuadratureScheme::CollapsedGaussJacobi).map(drop)
}

#[test]
fn rules_change_only_where_both_are_exact() {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 2);
    let (u, w, v) = (coefficient("u", &space), coefficient("w", &space), test(&space));
    let (c, h) = (constant("c"), cell_diameter(CellShape::Tetrahedron));
    let polynomials = [
        &u * &w * &v,
        (&u / &c) * w.pow(3.0) * &v,
        inner(grad(&u), grad(&v)) * exp(&c) * &h,
        &u * &v * conditional(lt(&c, 1.0), 1.0, &w),
    ];
    for integrand in polynomials {
        other_rules(&(integrand * dx())).unwrap();
    }
    let others = [
        &u / &w * &v,
        sqrt(&u) * &v,
        u.pow(-1.0) * &v,
        u.pow(0.5) * &v,
        &u * &v * conditional(lt(&w, 1.0), 1.0, 2.0),
    ];
    for integrand in others {
        let message = other_rules(&(integrand * dx())).unwrap_err().to_string();
        assert!(message.contains("its integrand is no polynomial on a cell"), "{message}");
    }
    let lower_degree = &u * &v * dx().with_degree(4) + &u * &w * &v * dx().with_degree(5);
    let message = other_rules(&lower_degree).unwrap_err().to_string();
    let start =
        "integral 1 of the form would have another value with another rule: its quadrature degree is lower";
    assert!(message.starts_with(start), "{message}");
    let kernel = lower(&(&u * &v * dx()), &LoweringOptions::new("mass")).unwrap().kernel;
    let mapping = Mapping::single_cell().with_rules(QuadratureScheme::Default);
    let message = transform(&kernel, &mapping).unwrap_err().to_string();
    assert!(message.contains("`mass` has the tables of its rules, and no form"), "{message}");
}

/// Rules with fewer points are tried where no modes replace the points, and only there.
#[test]
fn rules_with_fewer_points_are_candidates() {
    let model = known_devices().unwrap().into_iter().find(|m| m.occupancy.is_some()).unwrap();
    let found = |operator: Operator, scheme| {
        let options = LoweringOptions::new("k").with_scheme(scheme);
        let lowered = lower(&operator.form(3, 2).unwrap(), &options).unwrap();
        let found = candidates(&lowered, 1000, &model, 48 << 10, 1).unwrap();
        found.into_iter().filter(|c| c.parameters.get::<Rules>().is_some()).count()
    };
    assert!(found(Operator::Hyperelasticity, QuadratureScheme::CollapsedGaussJacobi) > 4);
    assert_eq!(found(Operator::Hyperelasticity, QuadratureScheme::Default), 0);
    assert_eq!(found(Operator::Laplace, QuadratureScheme::CollapsedGaussJacobi), 0);
}
