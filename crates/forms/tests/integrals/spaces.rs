//! Forms on spaces of all families, interpreted, against sums over cells that are written out here.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost_fem::element::{CellShape, ElementFamily, LagrangeVariant, Pullback};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::{ComposedNumbering, Numbering, NumberingOrder};
use kingpost_fem::quadrature::{QuadratureScheme, rule};
use kingpost_forms::form::{
    FunctionSpace, Inputs, coefficient, coordinate, curl, div, ds, dx, grad, inner, split, test,
};
use kingpost_forms::lowering::{LoweringOptions, MeshForm, NumberedMesh, lower};
use kingpost_sample::{is_long_run, of_run};

use crate::on_meshes::{interpreted, mesh, numbers};
use CellShape::{Hexahedron, Prism, Pyramid, Quadrilateral, Tetrahedron, Triangle};
use ElementFamily::{BrezziDouglasMarini, Bubble, NedelecFirst, NedelecSecond, RaviartThomas};
use kingpost_interp::interpret;

/// Global degrees of freedom of a cell, and a matrix.
type CellMap = (Vec<usize>, Vec<Vec<f64>>);

/// Number of degrees of freedom, and for each cell its global ones with the matrix from their
/// values to the coefficients of the cell's basis functions.
fn cell_maps(mesh: &Mesh, space: &FunctionSpace) -> (usize, Vec<CellMap>) {
    let (base, block) = space.base();
    let element = base.element().unwrap();
    let n = element.n_dofs();
    let (mut total, mut maps) =
        (0, vec![(vec![0; n * block], vec![vec![0.0; n * block]; n * block]); mesh.n_cells()]);
    for part in element.parts() {
        let numbering = Numbering::of(mesh, part.element).unwrap();
        for (cell, (dofs, matrix)) in maps.iter_mut().enumerate() {
            for (j, dof) in numbering.cell(cell).iter().enumerate() {
                let mut unit = vec![0.0; part.element.n_dofs()];
                unit[j] = 1.0;
                numbering.to_local(cell, &mut unit);
                for c in 0..block {
                    let place = |i: usize| (part.offset + part.stride * i) * block + c;
                    dofs[place(j)] = (total + *dof as usize) * block + c;
                    unit.iter().enumerate().for_each(|(i, value)| matrix[place(i)][place(j)] = *value);
                }
            }
        }
        total += numbering.n_dofs();
    }
    (total * block, maps)
}

/// The inverse of a matrix with 2 or 3 rows, and its determinant, by cofactors.
fn inverse(m: &[f64], n: usize) -> (Vec<f64>, f64) {
    let minor = |i: usize, j: usize| {
        let entries: Vec<f64> = (0..n * n).filter(|k| k / n != i && k % n != j).map(|k| m[k]).collect();
        let minor = if n == 2 { entries[0] } else { entries[0] * entries[3] - entries[1] * entries[2] };
        if (i + j).is_multiple_of(2) { minor } else { -minor }
    };
    let det: f64 = (0..n).map(|j| m[j] * minor(0, j)).sum();
    ((0..n * n).map(|k| minor(k % n, k / n) / det).collect(), det)
}

/// Values `[components]` and gradients `[components, axes]` of all basis functions of an element
/// on a cell at a point.
fn mapped(space: &FunctionSpace, jacobian: &[f64], point: &[f64]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let element = space.element().unwrap();
    let (dim, size) = (space.dim(), element.value_size());
    let table = element.tabulate(point, 1).unwrap();
    let (inv, det) = inverse(jacobian, dim);
    let mut matrix = vec![0.0; size * size];
    for part in element.parts() {
        for (a, b) in
            (0..part.element.value_size()).flat_map(|a| (0..part.element.value_size()).map(move |b| (a, b)))
        {
            matrix[(part.component + a) * size + part.component + b] = match part.element.pullback() {
                Pullback::Identity => 1.0,
                Pullback::ContravariantPiola => jacobian[a * dim + b] / det,
                Pullback::CovariantPiola => inv[b * dim + a],
            };
        }
    }
    let of = |dof: usize, derivative: usize, c: usize| -> f64 {
        (0..size).map(|k| matrix[c * size + k] * table.value(derivative, 0, dof, k)).sum()
    };
    let function = |dof: usize| {
        let values = (0..size).map(|c| of(dof, 0, c)).collect();
        let entry = |c: usize, j: usize| (0..dim).map(|k| inv[k * dim + j] * of(dof, 1 + k, c)).sum();
        let gradient =
            (0..size).flat_map(|c| (0..dim).map(move |j| (c, j))).map(|(c, j)| entry(c, j)).collect();
        (values, gradient)
    };
    (0..element.n_dofs()).map(function).collect()
}

/// `inner(u, v) + (1 + x[0]) inner(grad(u), grad(v)) + u[0] v[last]`, with a rule of degree 4.
fn summed(space: &FunctionSpace, mesh: &Mesh, u: &[f64]) -> Vec<f64> {
    let (n_dofs, maps) = cell_maps(mesh, space);
    let dim = space.dim();
    let rule = rule(mesh.shape(), 4, QuadratureScheme::Default).unwrap();
    let mut y = vec![0.0; n_dofs];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for (cell, (dofs, matrix)) in maps.iter().enumerate() {
        let global: Vec<f64> = dofs.iter().map(|dof| u[*dof]).collect();
        let local: Vec<f64> = matrix.iter().map(|row| dot(row, &global)).collect();
        let mut result = vec![0.0; dofs.len()];
        for (point, weight) in rule.points.chunks_exact(dim).zip(&rule.weights) {
            let jacobian = mesh.jacobian(cell, point);
            let scale = weight * inverse(&jacobian, dim).1.abs();
            let x = mesh.point(cell, point);
            let basis = mapped(space, &jacobian, point);
            let sum = |pick: &dyn Fn(usize) -> Vec<f64>| {
                let mut total = vec![0.0; pick(0).len()];
                for (i, factor) in local.iter().enumerate() {
                    total.iter_mut().zip(pick(i)).for_each(|(t, v)| *t += factor * v);
                }
                total
            };
            let (value, gradient) = (sum(&|i| basis[i].0.clone()), sum(&|i| basis[i].1.clone()));
            for (y, (v, gv)) in result.iter_mut().zip(&basis) {
                let integrand =
                    dot(&value, v) + (1.0 + x[0]) * dot(&gradient, gv) + value[0] * v[v.len() - 1];
                *y += scale * integrand;
            }
        }
        for (j, dof) in dofs.iter().enumerate() {
            y[*dof] += (0..result.len()).map(|i| matrix[i][j] * result[i]).sum::<f64>();
        }
    }
    y
}

fn check(space: &FunctionSpace) {
    let mesh = mesh(space.cell());
    let (u, v) = (coefficient("u", space), test(space));
    let ends = match space.is_vector() {
        true => u[0].clone() * v[space.components() - 1].clone(),
        false => &u * &v,
    };
    let x = coordinate(space.cell());
    let form = (inner(&u, &v) + (1 + x[0].clone()) * inner(grad(&u), grad(&v)) + ends) * dx().with_degree(4);
    let values = numbers(cell_maps(&mesh, space).0);
    let found = interpreted(&form, &mesh, &Inputs::new().field("u", values.clone()));
    let expected = summed(space, &mesh, &values);
    assert_eq!(found.len(), expected.len(), "{space}");
    let size = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    assert!(size > 1e-3, "{space}: {size}");
    for (k, (a, b)) in found.iter().zip(&expected).enumerate() {
        // 1e-12: sums of fewer than 1000 terms of about the size of the result
        assert!((a - b).abs() <= 1e-12 * size, "{space}, entry {k}: found {a}, expected {b}");
    }
}

#[test]
fn scalar_spaces_on_simplices() {
    for cell in [Triangle, Tetrahedron] {
        let variants = [LagrangeVariant::GllIsaac, LagrangeVariant::GllWarped, LagrangeVariant::Equispaced];
        let taken = if cell == Triangle || is_long_run() { 3 } else { 1 };
        for variant in variants.into_iter().take(taken) {
            let degree = if cell == Triangle || is_long_run() { 3 } else { 2 };
            check(&FunctionSpace::of(cell, ElementFamily::Lagrange(variant), degree));
        }
        check(&FunctionSpace::of(cell, Bubble, cell.dim() + 1));
        of_run(0..3, &[0]).into_iter().for_each(|degree| check(&FunctionSpace::discontinuous(cell, degree)));
        let legendre = ElementFamily::Lagrange(LagrangeVariant::Legendre);
        check(&FunctionSpace::discontinuous_of(cell, legendre, 2));
        check(&FunctionSpace::blocked(&FunctionSpace::discontinuous(cell, 1), 4));
    }
}

#[test]
fn vector_families() {
    for family in [RaviartThomas, BrezziDouglasMarini, NedelecFirst, NedelecSecond] {
        (1..4).for_each(|degree| check(&FunctionSpace::of(Triangle, family, degree)));
        (1..3).for_each(|degree| check(&FunctionSpace::of(Tetrahedron, family, degree)));
        check(&FunctionSpace::blocked(&FunctionSpace::of(Triangle, family, 2), 2));
    }
}

#[test]
fn squares_and_cubes() {
    for cell in [Quadrilateral, Hexahedron] {
        check(&FunctionSpace::scalar(cell, 1));
        check(&FunctionSpace::scalar(cell, 2));
        check(&FunctionSpace::discontinuous(cell, 1));
    }
    check(&FunctionSpace::vector(Quadrilateral, 3));
    check(&FunctionSpace::vector(Hexahedron, 1));
}

#[test]
fn prisms_and_pyramids() {
    for (cell, few) in [(Prism, 0), (Pyramid, 1)] {
        let spaces = [FunctionSpace::scalar(cell, 2), FunctionSpace::vector(cell, 1)];
        of_run(&spaces, &[few]).into_iter().for_each(check);
        if is_long_run() {
            check(&FunctionSpace::scalar(cell, 1));
            (0..3).for_each(|degree| check(&FunctionSpace::discontinuous(cell, degree)));
        }
        let form = test(&FunctionSpace::scalar(cell, 1)) * ds();
        let refused = MeshForm::new(&form, &LoweringOptions::new("facets")).err().unwrap().to_string();
        assert!(refused.contains(&format!("facets of a {cell}, which have two shapes")), "{refused}");
    }
}

/// Kernels gather the nodes of squares and cubes in the order of the axes, and give the results of
/// the reference; the kernels of other elements stay.
#[test]
fn the_order_of_the_axes_keeps_results() {
    let taylor_hood =
        |cell| FunctionSpace::mixed(cell, [FunctionSpace::vector(cell, 2), FunctionSpace::scalar(cell, 1)]);
    let spaces = [
        (FunctionSpace::scalar(Quadrilateral, 1), false),
        (FunctionSpace::scalar(Quadrilateral, 2), true),
        (FunctionSpace::vector(Quadrilateral, 3), true),
        (FunctionSpace::scalar(Hexahedron, 2), true),
        (FunctionSpace::discontinuous(Quadrilateral, 2), false),
        (taylor_hood(Quadrilateral), false),
        (FunctionSpace::scalar(Triangle, 3), false),
        (FunctionSpace::of(Triangle, RaviartThomas, 2), false),
    ];
    for (space, reordered) in spaces {
        check(&space);
        let form = inner(coefficient("u", &space), test(&space)) * dx();
        let lowered = MeshForm::new(&form, &LoweringOptions::new("spaces")).unwrap();
        let kernel = &lowered.kernels()[0].kernel;
        let orders = kernel.vars.values().filter(|v| v.name.ends_with("_order")).count();
        assert_eq!(orders, usize::from(reordered), "{space}");
    }
}

#[test]
fn mixed_spaces() {
    for cell in [Triangle, Tetrahedron] {
        let taylor_hood = [FunctionSpace::vector(cell, 2), FunctionSpace::scalar(cell, 1)];
        let bdm = FunctionSpace::of(cell, BrezziDouglasMarini, 2);
        let spaces = [
            FunctionSpace::mixed(cell, taylor_hood),
            FunctionSpace::mixed(cell, [FunctionSpace::discontinuous(cell, 1), bdm]),
        ];
        of_run(&spaces, &[usize::from(cell == Triangle)]).into_iter().for_each(check);
    }
}

/// A form of a mixed space has the same result in either order of the degrees of freedom, and takes
/// inputs in its own alone.
#[test]
fn mixed_spaces_in_another_order() {
    let parts = [FunctionSpace::vector(Triangle, 3), FunctionSpace::of(Triangle, RaviartThomas, 1)];
    let space = FunctionSpace::mixed(Triangle, parts);
    let mesh = mesh(Triangle);
    let element = space.element().unwrap();
    let sorted = ComposedNumbering::of_in_order(&mesh, &element, NumberingOrder::ByDimension).unwrap();
    let touched = ComposedNumbering::of(&mesh, &element).unwrap();
    assert_eq!((touched.first_dofs(), touched.states()), (sorted.first_dofs(), sorted.states()));
    assert_ne!(touched.dofs(), sorted.dofs());
    let values = numbers(touched.n_dofs());
    let mut moved = vec![f64::NAN; values.len()];
    touched
        .dofs()
        .iter()
        .zip(sorted.dofs())
        .for_each(|(old, new)| moved[*new as usize] = values[*old as usize]);

    let form = inner(coefficient("u", &space), test(&space)) * dx();
    let by_touch = interpreted(&form, &mesh, &Inputs::new().field("u", values));
    let inputs = Inputs::new().field("u", moved).in_order(NumberingOrder::ByDimension);
    let lowered = MeshForm::new(&form, &LoweringOptions::new("spaces")).unwrap();
    assert_eq!(
        lowered.bind(0, &mesh, &inputs).unwrap_err().to_string(),
        "the inputs are numbered by dimension, and the form by first touch; needed one order"
    );
    let lowered = lowered.in_order(NumberingOrder::ByDimension);
    let numbering = lowered.result_numbering(&NumberedMesh::new(&mesh)).unwrap();
    assert_eq!((numbering.dofs(), numbering.n_dofs()), (sorted.dofs(), sorted.n_dofs()));
    let mut memory = lowered.bind(0, &mesh, &inputs).unwrap();
    interpret(&lowered.kernels()[0].kernel, &mut memory).unwrap();
    let by_dimension = memory.f64s("y").unwrap();
    for (old, new) in touched.dofs().iter().zip(sorted.dofs()) {
        let (old, new) = (by_touch[*old as usize], by_dimension[*new as usize]);
        assert_eq!(old.to_bits(), new.to_bits(), "the same sums of the same cells in the same order");
    }
}

/// Degrees of freedom that two cells have, at random; the others are 0.
fn shared(mesh: &Mesh, space: &FunctionSpace) -> Vec<f64> {
    let numbering = ComposedNumbering::of(mesh, &space.element().unwrap()).unwrap();
    let mut uses = vec![0; numbering.n_dofs()];
    numbering.dofs().iter().for_each(|dof| uses[*dof as usize] += 1);
    assert!(uses.iter().any(|n| *n > 1));
    let values = numbers(uses.len());
    values.iter().zip(uses).map(|(value, n)| if n > 1 { *value } else { 0.0 }).collect()
}

/// What flows out of one cell flows into its neighbour: without degrees of freedom on the boundary
/// all divergences (and rotations in the plane) sum to 0, whatever the orientation of cells.
#[test]
fn fluxes_and_circulations_cancel_between_cells() {
    let mut cases = Vec::new();
    for family in [RaviartThomas, BrezziDouglasMarini] {
        cases.extend([(family, Triangle, 3), (family, Tetrahedron, 2)]);
    }
    cases.extend([(NedelecFirst, Triangle, 3), (NedelecSecond, Triangle, 2)]);
    for (family, cell, degree) in cases {
        let space = FunctionSpace::of(cell, family, degree);
        let mesh = mesh(cell);
        let u = coefficient("u", &space);
        let density = if family.pullback() == Pullback::ContravariantPiola { div(u) } else { curl(u) };
        let form = density * test(&FunctionSpace::discontinuous(cell, 0)) * dx();
        let y = interpreted(&form, &mesh, &Inputs::new().field("u", shared(&mesh, &space)));
        let (sum, size) = (y.iter().sum::<f64>(), y.iter().map(|y| y.abs()).sum::<f64>());
        // 1e-13: fewer than 50 terms
        assert!(size > 0.1 && sum.abs() < 1e-13 * size, "{space}: {sum} of {size}");
    }
}

/// Q elements hold the linear functions on cells that are no parallelograms, and integrate
/// constants to the area: the estimated degree of the rule is high enough.
#[test]
fn linear_functions_on_squares_and_cubes() {
    for cell in [Quadrilateral, Hexahedron] {
        let mesh = mesh(cell);
        for degree in 1..3 {
            let space = FunctionSpace::scalar(cell, degree);
            let numbering = Numbering::new(&mesh, degree).unwrap();
            let points = numbering.dof_points(&mesh);
            let linear: Vec<f64> =
                points.chunks_exact(cell.dim()).map(|x| 1.0 + 2.0 * x[0] - 3.0 * x[1]).collect();
            let (u, v) = (coefficient("u", &space), test(&space));
            let inputs = Inputs::new().field("u", linear);
            let flow = interpreted(&(inner(grad(&u), grad(&v)) * dx()), &mesh, &inputs);
            let is_inner = |x: &[f64]| x.iter().all(|x| 1e-9 < *x && *x < 1.0 - 1e-9);
            let inner_flow = flow.iter().zip(points.chunks_exact(cell.dim())).filter(|(_, x)| is_inner(x));
            let largest = inner_flow.map(|(y, _)| y.abs()).fold(0.0, f64::max);
            assert!(largest < 1e-13, "{space}: {largest}");
            let mass = interpreted(&(&u * &v * dx()), &mesh, &inputs);
            // the mean of 1 + 2 x - 3 y on the unit square or cube
            assert!((mass.iter().sum::<f64>() - 0.5).abs() < 1e-13, "{space}");
        }
    }
}

#[test]
fn kernels_with_strategies_are_of_continuous_lagrange_elements() {
    let space = FunctionSpace::of(Triangle, RaviartThomas, 1);
    let form = inner(coefficient("u", &space), test(&space)) * dx();
    assert_eq!(
        lower(&form, &LoweringOptions::new("mass")).unwrap_err().to_string(),
        "`Raviart–Thomas 1 on a triangle` has neither strategies of its own nor a reference, needed continuous \
         Lagrange elements with equispaced nodes; take `tabulate` and `lower_tabulated` instead of `lower`"
    );
    let wrong = FunctionSpace::of(Quadrilateral, RaviartThomas, 1);
    let form = inner(coefficient("u", &wrong), test(&wrong)) * dx();
    let error = MeshForm::new(&form, &LoweringOptions::new("mass")).unwrap_err().to_string();
    assert!(error.contains("Raviart–Thomas") && error.contains("quadrilateral"), "{error}");
}

#[test]
fn mixed_functions_are_split() {
    let parts = [FunctionSpace::vector(Triangle, 2), FunctionSpace::scalar(Triangle, 1)];
    let space = FunctionSpace::mixed(Triangle, parts);
    let [velocity, pressure] = &split(&test(&space))[..] else { panic!("two functions") };
    assert_eq!((velocity.shape().size(), pressure.shape().size()), (2, 1));
    assert_eq!(space.to_string(), "(vector P2, P1) on a triangle");
}
