//! Lowered kernels, run by the interpreter, against the reference.

#![allow(clippy::unwrap_used)]

use super::{ArgumentRole, LoweringOptions, MeshForm, lower};
use crate::form::*;
use crate::program::stage;
use crate::reference;
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_interp::interpret;
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers in [-1, 1) from a linear congruential generator.
struct Random(u64);

impl Random {
    fn fresh() -> Self {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        println!("seed {seed}");
        Self(seed)
    }

    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// A mesh whose cells all differ.
fn mesh(cell: CellShape, random: &mut Random) -> Mesh {
    let mesh = Mesh::unit(cell, if cell == CellShape::Triangle { 3 } else { 1 });
    let mesh = mesh.unwrap();
    let coordinates = mesh.coordinates().iter().map(|x| x + 0.05 * random.next()).collect();
    Mesh::new(cell, coordinates, mesh.cells().to_vec(), None).unwrap()
}

/// A field near 1, so that logarithms and quotients are tame.
fn field(mesh: &Mesh, space: &FunctionSpace, random: &mut Random) -> Vec<f64> {
    let n = Numbering::new(mesh, space.degree()).unwrap().n_dofs() * space.components();
    (0..n).map(|_| 1.0 + 0.3 * random.next()).collect()
}

/// Largest error relative to the largest value.
fn relative_error(form: &Form, mesh: &Mesh, inputs: &Inputs) -> f64 {
    let lowered = lower(form, &LoweringOptions::new("kernel_under_test")).unwrap();
    let inputs = inputs.of(form);
    let expected = reference::action(form, mesh, &inputs).unwrap();
    let mut memory = lowered.bind(mesh, &inputs).unwrap();
    interpret(&lowered.kernel, &mut memory).unwrap();
    let output = lowered.arguments.iter().find(|a| matches!(a.role, ArgumentRole::Output(_))).unwrap();
    let found = memory.f64s(&output.name).unwrap();
    let size = expected.iter().fold(0.0_f64, |m, y| m.max(y.abs()));
    assert!(size > 1e-4 && found.len() == expected.len(), "{size}");
    found.iter().zip(&expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs())) / size
}

/// Sums of some hundred products of numbers of size 1 in f64.
const TOLERANCE: f64 = 1e-12;

/// Functions and their first and second derivatives.
#[test]
fn functions_of_numbers_agree_with_the_reference() {
    let mut random = Random::fresh();
    let cell = CellShape::Triangle;
    let (mesh, space) = (mesh(cell, &mut random), FunctionSpace::scalar(cell, 2));
    let (u, v) = (coefficient("u", &space), test(&space));
    let inputs = Inputs::new().field("u", field(&mesh, &space, &mut random));
    let x = &u / 2.0; // between 0.35 and 0.65 at the nodes
    let functions = [
        tan(&x),
        asin(&x),
        acos(&x),
        atan(&x),
        sinh(&x),
        cosh(&x),
        tanh(&x),
        erf(&x),
        bessel_j(0, &x),
        bessel_j(3, &x),
        bessel_y(1, &x),
        atan2(&x, 0.3),
        atan2(&x - 0.5, &x - 1.0),
        abs(&x - 0.5),
        sign(&x - 0.5) * &x,
        minimum(&x, 0.5),
        maximum(&x, 0.5),
    ];
    for f in functions {
        let first = gateaux(&(&f * &u), &u, &u);
        let form = (&f + &first + gateaux(&first, &u, &u)) * &v * dx().with_degree(4);
        let error = relative_error(&form, &mesh, &inputs);
        assert!(error < TOLERANCE, "{f}: {error}");
    }
}

#[test]
fn every_operation_agrees_with_the_reference() {
    let mut random = Random::fresh();
    let cell = CellShape::Triangle;
    let mesh = mesh(cell, &mut random);
    let (scalar, vector) = (FunctionSpace::scalar(cell, 2), FunctionSpace::vector(cell, 1));
    let (u, w, v) =
        (coefficient("u", &scalar), coefficient("w", &vector), test(&FunctionSpace::scalar(cell, 3)));
    let (c, d, x) = (constant("c"), vector_constant("d", 2), coordinate(cell));
    let inputs = Inputs::new()
        .field("u", field(&mesh, &scalar, &mut random))
        .field("w", field(&mesh, &vector, &mut random))
        .constant("c", [0.7])
        .constant("d", [1.3, -0.4]);
    let a = grad(&w);
    let e = variable(sym(&a));
    let cases = [
        exp(&u) * &v,
        (ln(&u) + sqrt(&u) + sin(&u) * cos(&u)) * &v,
        &u / (1.0 + &u * &u) * &v,
        (u.pow(5) - u.pow(-2) + u.pow(0.3) + u.pow(&u)) * &v,
        conditional(gt(&u, 1.0), &u, -&u) * &v,
        conditional(le(&x[0], &x[1]), &v, 2.0 * &v),
        conditional(gt(&u, 1.0) & !lt(&x[0], 0.5) | eq(&c, 0.0), &u, -&u) * &v,
        &c * dot(&d, &w) * &v + dot(&x, &w) * &grad(&v)[1],
        dot(&w, grad(&u)) * &v,
        inner(dot(grad(&u), &a), grad(&v)),
        (div(&w) + curl(&w) + det(&a + identity(2)) + tr(inv(&a + 3.0 * identity(2)))) * &v,
        inner(&a * transpose(&a) + outer(&w, &d), as_matrix(2, [1.0, 2.0, 3.0, 4.0])) * &v,
        inner(curl(&u), grad(&v)),
        inner(diff(tr(&e * &e * &e), &e), outer(grad(&v), &d)),
        gateaux(&(exp(&u) * dot(grad(&u), grad(&u))), &u, &v),
        inner(grad(&u * &x[0] * &c), grad(&v)),
    ];
    for integrand in cases {
        let error = relative_error(&(&integrand * dx()), &mesh, &inputs);
        assert!(error <= TOLERANCE, "{integrand}: {error}");
    }
}

#[test]
fn several_measures_and_degrees_make_several_loops() {
    let mut random = Random::fresh();
    let cell = CellShape::Tetrahedron;
    let mesh = mesh(cell, &mut random);
    let (p1, p2) = (FunctionSpace::vector(cell, 1), FunctionSpace::vector(cell, 2));
    let (u, w, v) = (coefficient("u", &p1), coefficient("w", &p2), test(&p2));
    let form = inner(&u, &v) * dx().with_degree(1)
        + inner(grad(&w), grad(&v)) * dx()
        + inner(&w, &v) * dx().with_scheme(QuadratureScheme::CollapsedGaussJacobi);
    let inputs =
        Inputs::new().field("u", field(&mesh, &p1, &mut random)).field("w", field(&mesh, &p2, &mut random));
    assert!(relative_error(&form, &mesh, &inputs) <= TOLERANCE);
    let lowered = lower(&form, &LoweringOptions::new("three")).unwrap();
    assert_eq!(lowered.points, [1, 4, 27]);
    let names: Vec<&str> = lowered.arguments.iter().map(|a| a.name.as_str()).collect();
    let expected = [
        "n_cells",
        "n_vertices",
        "n_dofs_p1",
        "n_dofs_p2",
        "y",
        "coords",
        "cell_vertices",
        "dofs_p1",
        "dofs_p2",
        "u",
        "w",
    ];
    assert_eq!(names, expected);
    assert!(lowered.arguments.iter().zip(lowered.kernel.vars.iter()).all(|(a, (_, v))| a.name == v.name));
    let one =
        lower(&form, &LoweringOptions::new("one").with_degree(2).with_scheme(QuadratureScheme::XiaoGimbutas));
    assert_eq!(one.unwrap().points, [4]);
}

#[test]
fn equal_tables_are_one_and_unused_functions_are_no_arguments() {
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let (u, b, v) = (coefficient("u", &space), coefficient("b", &space), test(&space));
    let residual = (inner(grad(&u), grad(&v)) - &b * &v) * dx();
    let form = action(derivative(residual, &u, trial(&space)), coefficient("du", &space));
    let lowered = lower(&form, &LoweringOptions::new("linearised")).unwrap();
    let tables: Vec<&str> =
        lowered.kernel.vars.iter().map(|(_, v)| v.name.as_str()).filter(|n| n.starts_with("phi")).collect();
    assert_eq!(tables, ["phi_p2_d0", "phi_p2_d1"]);
    let names: Vec<&str> = lowered.arguments.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["n_cells", "n_vertices", "n_dofs", "y", "coords", "cell_vertices", "dofs", "du"]);
}

#[test]
fn names_of_the_form_win_over_those_of_the_kernel() {
    let mut random = Random::fresh();
    let mesh = mesh(CellShape::Triangle, &mut random);
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let form = coefficient("y", &space) * constant("n_cells") * test(&space) * dx();
    let inputs = Inputs::new().field("y", field(&mesh, &space, &mut random)).constant("n_cells", [3.0]);
    assert!(relative_error(&form, &mesh, &inputs) <= TOLERANCE);
    let bad =
        |name: &str| lower(&(coefficient(name, &space) * test(&space) * dx()), &LoweringOptions::new("k"));
    for name in ["in", "a b", "", "exp", "floor_div", "größe"] {
        assert_eq!(bad(name).unwrap_err(), FormError::BadName { name: name.into() });
    }
    assert!(matches!(bad("k"), Err(FormError::Name { .. })));
}

/// Names of the loops, temporaries, tables and instructions of a kernel, of its stages, and of the
/// targets' words.
#[test]
fn functions_may_have_the_names_of_parts_of_the_kernel() {
    let mut random = Random::fresh();
    let mesh = mesh(CellShape::Triangle, &mut random);
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let names =
        ["cell", "x", "y_cell", "abs_det", "weights", "scatter", "rotate", "HUGE_VAL", "_K", "kingpost_x"];
    for name in names {
        let u = coefficient(name, &space);
        let form = (u.clone() * test(&space) + inner(grad(&u), grad(test(&space)))) * dx();
        let inputs = Inputs::new().field(name, field(&mesh, &space, &mut random));
        assert!(relative_error(&form, &mesh, &inputs) <= TOLERANCE, "{name}");
    }
}

#[test]
fn what_cannot_be_lowered_is_refused() {
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let (u, v) = (coefficient("u", &space), test(&space));
    let refuse = |integrand: Expr| lower(&(integrand * dx()), &LoweringOptions::new("k")).unwrap_err();
    assert_eq!(refuse(trial(&space) * &v), FormError::TrialLeft);
    assert!(matches!(refuse(u.clone()), FormError::NoTest { .. }));
    assert!(matches!(refuse(sin(&v)), FormError::NotLinear { .. }));
    assert!(matches!(refuse(&u + &v), FormError::NoTest { .. }));
    let term = "grad(grad(grad(u)))".to_owned();
    let third = |f: &Expr| grad(div(grad(f)))[0].clone();
    assert_eq!(refuse(third(&u) * &v), FormError::Order { term, order: 3, limit: 2 });
    assert!(matches!(refuse(&u * third(&v)), FormError::Order { .. }));
    for degree in [0, 9, usize::MAX] {
        let space = FunctionSpace::scalar(CellShape::Triangle, degree);
        assert!(matches!(refuse(&u * test(&space)), FormError::Discretisation(_)));
        assert!(matches!(refuse(coefficient("w", &space).pow(2) * &v), FormError::Discretisation(_)));
    }
    assert!(matches!(refuse(u.pow(100) * &v), FormError::Discretisation(_)));
}

#[test]
fn lowering_twice_gives_the_same_bytes() {
    let form = || {
        let space = FunctionSpace::vector(CellShape::Triangle, 2);
        let (u, v) = (coefficient("u", &space), test(&space));
        let e = variable(sym(grad(&u)));
        inner(diff(tr(&e * &e) + tr(&e).pow(2), &e), grad(v)) * dx()
    };
    let text = || lower(&form(), &LoweringOptions::new("k")).unwrap().kernel.to_string();
    assert_eq!(text(), text());
}

#[test]
fn deep_expressions_are_lowered_and_evaluated() {
    let mut random = Random::fresh();
    let mesh = mesh(CellShape::Triangle, &mut random);
    let space = FunctionSpace::scalar(CellShape::Triangle, 1);
    let (u, v) = (coefficient("u", &space), test(&space));
    let deep = (0..490).fold(u.clone(), |sum, _| sin(sum * &u));
    let form = derivative(deep * dx().with_degree(2), &u, &v);
    let inputs = Inputs::new().field("u", vec![1.1; Numbering::new(&mesh, 1).unwrap().n_dofs()]);
    assert!(relative_error(&form, &mesh, &inputs) <= TOLERANCE);
}

/// The stages and loops of Algorithm 2 of Kulkarni & Klöckner 2025, in its order.
#[test]
fn the_kernel_is_that_of_algorithm_2() {
    let space = FunctionSpace::scalar(CellShape::Triangle, 2);
    let (u, w, v) = (coefficient("u", &space), coefficient("w", &space), test(&space));
    let form = &w * inner(grad(&u), grad(&v)) * dx();
    let kernel = lower(&form, &LoweringOptions::new("k")).unwrap().kernel;
    let mut found: Vec<String> = Vec::new();
    for (insn, loops) in kernel.schedule() {
        let insn = &kernel.insns[insn];
        let stages = ["gather", "geometry", "evaluation", "pointwise", "quadrature", "scatter"];
        let own: Vec<&str> = stages.into_iter().filter(|s| insn.tags.contains(*s)).collect();
        assert_eq!(own.len(), 1, "{}", insn.name);
        let loops: Vec<&str> = loops.iter().map(|i| kernel.inames[*i].name.as_str()).collect();
        let line = format!("{} {}", loops.join(" "), own[0]);
        if found.last() != Some(&line) {
            found.push(line);
        }
    }
    let expected = [
        "cell i_vertex gather",
        "cell i_gather_w gather",
        "cell i_gather_u gather",
        "cell geometry",
        "cell i_zero quadrature",
        "cell q evaluation",
        "cell q j_w evaluation",
        "cell q evaluation",
        "cell q j_u evaluation",
        "cell q pointwise",
        "cell q i quadrature",
        "cell i_scatter scatter",
    ];
    assert_eq!(found, expected);
}

/// The form of the tests of inputs: fields of degrees 3 and 1, constants with and without a
/// default.
fn with_inputs() -> super::LoweredForm {
    let (cubic, linear) =
        (FunctionSpace::scalar(CellShape::Triangle, 3), FunctionSpace::scalar(CellShape::Triangle, 1));
    let factor = coefficient("kappa", &linear) * constant_with_default("lambda", 2.0);
    let form = inner(coefficient("velocity", &cubic) * factor, test(&cubic)) * dx();
    lower(&form, &LoweringOptions::new("shared_name")).unwrap()
}

fn inputs(mesh: &Mesh) -> Inputs {
    let field = |degree| vec![1.0; Numbering::new(mesh, degree).unwrap().n_dofs()];
    Inputs::new().field("velocity", field(3)).field("kappa", field(1))
}

#[test]
fn inputs_of_other_names_are_refused_with_the_nearest() {
    let (lowered, mesh) = (with_inputs(), Mesh::unit_square(1).unwrap());
    let both = |inputs: &Inputs| {
        let bound = lowered.bind(&mesh, inputs).map(drop);
        assert_eq!(bound, reference::action(&lowered.form, &mesh, inputs).map(drop));
        bound
    };
    both(&inputs(&mesh).constant("lambda", [3.0])).unwrap();
    let known = "the form has coefficients `kappa`, `velocity` and constants `lambda`";
    for (given, message) in [
        (
            inputs(&mesh).constant("lamda", [3.0]),
            "a value is given for `lamda`, a name that the form does not have; did you mean `lambda`? ",
        ),
        (
            inputs(&mesh).field("velocty", vec![1.0; 16]),
            "a value is given for `velocty`, a name that the form does not have; did you mean `velocity`? ",
        ),
        (
            inputs(&mesh).field("w", vec![1.0]),
            "a value is given for `w`, a name that the form does not have; ",
        ),
        (
            inputs(&mesh).field("lambda", vec![1.0; 16]),
            "a value is given for `lambda`, as a field, and it is a constant; ",
        ),
        (
            inputs(&mesh).constant("kappa", [1.0]),
            "a value is given for `kappa`, as a constant, and it is a field; ",
        ),
    ] {
        assert_eq!(both(&given).unwrap_err().to_string(), format!("{message}{known}"));
    }
}

/// From degree 3 on nodes of other variants lie elsewhere: given with the arrays they are refused,
/// where the action would be wrong.
#[test]
fn nodes_of_another_variant_are_refused_with_the_first_that_differs() {
    let (lowered, mesh) = (with_inputs(), Mesh::unit_square(1).unwrap());
    let (linear, cubic) = (&lowered.nodes[0], &lowered.nodes[1]);
    assert_eq!((linear.degree, cubic.degree), (1, 3));
    assert_eq!(linear.to_string(), "P1 on a triangle, equispaced, in basix's order: (0, 0) (1, 0) (0, 1)");
    let bind = |degree, points: &[f64]| {
        let inputs = inputs(&mesh).nodes(degree, points.to_vec());
        let bound = lowered.bind(&mesh, &inputs).map(drop);
        assert_eq!(bound, reference::action(&lowered.form, &mesh, &inputs).map(drop));
        bound.map_err(|e| e.to_string())
    };
    // what another code computes rounds
    let rounded: Vec<f64> = cubic.points.iter().map(|x| x * (1.0 + 1e-15)).collect();
    assert_eq!((bind(1, &linear.points), bind(3, &rounded)), (Ok(()), Ok(())));
    // the points of Gauss, Lobatto and Legendre on the edges
    let warp = |x: &f64| match x {
        x if (x - 1.0 / 3.0).abs() < 0.1 => 0.5 - 0.05_f64.sqrt(),
        x if (x - 2.0 / 3.0).abs() < 0.1 => 0.5 + 0.05_f64.sqrt(),
        x => *x,
    };
    let mut warped: Vec<f64> = cubic.points.iter().map(warp).collect();
    let interior = warped.len() - 2;
    warped[interior..].copy_from_slice(&cubic.points[interior..]);
    assert_eq!(
        bind(3, &warped).unwrap_err(),
        "node 3 of P3 on a triangle is (0.723607, 0.276393), needed (0.666667, 0.333333) (equispaced); make the \
         element with this variant, or interpolate the function at these nodes"
    );
    let mut swapped = cubic.points.clone();
    swapped.swap(6, 8);
    swapped.swap(7, 9);
    assert_eq!(
        bind(3, &swapped).unwrap_err(),
        "node 3 of P3 on a triangle is (0.333333, 0.666667), needed (0.666667, 0.333333) (equispaced); they are the \
         same nodes in another order: permute the columns of the map of degrees of freedom"
    );
    assert_eq!(
        bind(3, &[0.0]).unwrap_err(),
        "the nodes given for P3 on a triangle are 1 coordinates, needed 20: [nodes, 2]"
    );
    assert_eq!(
        bind(2, &[0.0]).unwrap_err(),
        "nodes are given for P2, and the form has functions of degree 1, 3; give those"
    );
}

/// Values of such matrices are compared by the tests of strategies and solvers.
#[test]
fn what_multiplies_all_terms_leaves_the_sums_over_derivatives() {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 2);
    let stiffness = || inner(grad(trial(&space)), grad(test(&space)));
    let geometry = |form: &Form| {
        let form = MeshForm::new(form, &LoweringOptions::new("matrix")).unwrap();
        let insns = form.kernels().iter().flat_map(|lowered| lowered.kernel.insns.values());
        insns.filter(|insn| insn.tags.contains(stage::GEOMETRY)).count()
    };
    let plain = geometry(&(stiffness() * dx()));
    assert_eq!(geometry(&(stiffness() * constant("kappa") * dx())), plain);
}
