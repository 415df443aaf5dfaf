//! Meshes whose vertices lie elsewhere, with a coefficient, against dense matrices.

#![allow(clippy::unwrap_used)]

use crate::reference::{CASES, Random, dense, devices, element, inner_numbers, is_inner, largest, patches};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::quadrature::{gauss_jacobi, gauss_lobatto};
use kingpost_multigrid::kernels::Variant;
use kingpost_multigrid::{
    DeformedMesh, Dimension, Element, Hierarchy, HierarchyOptions, Line, MappedBox, MultigridError, Order,
    Precision, PreconditionedSolver, Relaxation, Start, Which,
};
use kingpost_runtime::{Backend, Device, open};
use kingpost_sample::of_run;
use kingpost_solve::GmresOptions;
use nalgebra::{DMatrix, DVector, Matrix3};
use std::f64::consts::PI;

/// Vertices moved at random by at most a tenth of a cell, and a coefficient from 0.5 to 1.5.
fn random_mesh(dimension: Dimension, cells: usize, seed: u64) -> DeformedMesh {
    let axes = dimension.axes();
    let side = cells + 1;
    let mut random = Random(seed);
    let moved = random.numbers(axes * side.pow(axes as u32));
    let at = |vertex: usize, axis: usize| (vertex / side.pow(axis as u32) % side) as f64;
    let vertices =
        (0..moved.len()).map(|i| (at(i / axes, i % axes) + 0.1 * moved[i]) / cells as f64).collect();
    let coefficient = random.numbers((2 * cells).pow(axes as u32)).iter().map(|x| 1.0 + 0.5 * x).collect();
    DeformedMesh::new(dimension, cells, vertices).unwrap().with_coefficient(coefficient).unwrap()
}

/// Values and slopes of the Lagrange polynomials at a point, by barycentric weights.
fn basis(nodes: &[f64], x: f64) -> (Vec<f64>, Vec<f64>) {
    let n = nodes.len();
    let product = |skip: &[usize], x: f64| -> f64 {
        (0..n).filter(|j| !skip.contains(j)).map(|j| x - nodes[j]).product()
    };
    let scale = |i: usize| product(&[i], nodes[i]);
    let slope = |i: usize| (0..n).filter(|l| *l != i).map(|l| product(&[i, l], x)).sum::<f64>();
    ((0..n).map(|i| product(&[i], x) / scale(i)).collect(), (0..n).map(|i| slope(i) / scale(i)).collect())
}

/// The operator on all nodes, and the mass matrix, cell by cell and point by point.
fn dense_on(element: Element, mesh: &DeformedMesh) -> [DMatrix<f64>; 2] {
    let (k, axes, cells) = (element.degree, element.dimension.axes(), mesh.cells());
    let nodes = gauss_lobatto(k + 1).0;
    let (points, weights) = gauss_jacobi(k + 1, 0);
    let of_points: Vec<_> = points.iter().map(|x| basis(&nodes, *x)).collect();
    let linear: Vec<_> = points.iter().map(|x| basis(&[0.0, 1.0], *x)).collect();
    let digits = |at: usize, base: usize| -> Vec<usize> {
        (0..axes).map(|a| at / base.pow(a as u32) % base).collect()
    };
    // the product along the axes, with the slope along one of them
    let tensor = |tables: &[(Vec<f64>, Vec<f64>)], q: &[usize], i: &[usize], slope: Option<usize>| -> f64 {
        (0..axes)
            .map(|a| if slope == Some(a) { tables[q[a]].1[i[a]] } else { tables[q[a]].0[i[a]] })
            .product()
    };
    let n = element.nodes(cells);
    let [mut stiffness, mut mass] = [DMatrix::zeros(n, n), DMatrix::zeros(n, n)];
    for cell in 0..cells.pow(axes as u32) {
        let place = digits(cell, cells);
        let number = |side: usize, local: &[usize], per: usize| -> usize {
            (0..axes).map(|a| (per * place[a] + local[a]) * side.pow(a as u32)).sum()
        };
        let corners: Vec<Vec<usize>> = (0..1 << axes).map(|c| digits(c, 2)).collect();
        for q in 0..(k + 1).pow(axes as u32) {
            let q = digits(q, k + 1);
            let mut jacobian = Matrix3::<f64>::identity();
            for row in 0..axes {
                for axis in 0..axes {
                    let vertex =
                        |c: &[usize]| -> f64 { mesh.vertices()[axes * number(cells + 1, c, 1) + row] };
                    jacobian[(row, axis)] =
                        corners.iter().map(|c| vertex(c) * tensor(&linear, &q, c, Some(axis))).sum::<f64>();
                }
            }
            let kappa: f64 = corners
                .iter()
                .enumerate()
                .map(|(c, corner)| mesh.coefficient()[(cell << axes) + c] * tensor(&linear, &q, corner, None))
                .sum();
            let weight: f64 = jacobian.determinant() * q.iter().map(|q| weights[*q]).product::<f64>();
            let inverse = jacobian.try_inverse().unwrap();
            let locals: Vec<Vec<usize>> = (0..(k + 1).pow(axes as u32)).map(|i| digits(i, k + 1)).collect();
            let gradient = |i: &Vec<usize>| -> DVector<f64> {
                DVector::from_fn(axes, |row, _| {
                    (0..axes).map(|a| inverse[(a, row)] * tensor(&of_points, &q, i, Some(a))).sum::<f64>()
                })
            };
            let gradients: Vec<_> = locals.iter().map(gradient).collect();
            let values: Vec<f64> = locals.iter().map(|i| tensor(&of_points, &q, i, None)).collect();
            let side = element.nodes_of_side(cells);
            for (i, local) in locals.iter().enumerate() {
                for (j, other) in locals.iter().enumerate() {
                    let at = (number(side, local, k), number(side, other, k));
                    stiffness[at] += weight * kappa * gradients[i].dot(&gradients[j]);
                    mass[at] += weight * values[i] * values[j];
                }
            }
        }
    }
    [stiffness, mass]
}

fn inner_nodes(element: Element, cells: usize) -> Vec<usize> {
    let (side, axes) = (element.nodes_of_side(cells), element.dimension.axes());
    (0..element.nodes(cells)).filter(|node| is_inner(*node, side, axes)).collect()
}

#[test]
fn residuals_equal_dense_ones() {
    for device in devices() {
        for (dimension, degree, cells) in of_run(CASES, &[1, 4]) {
            let element = element(dimension, degree);
            let mesh = random_mesh(dimension, cells, 3 + degree as u64);
            let levels = Hierarchy::on(&*device, element, &mesh, HierarchyOptions::default()).unwrap();
            let finest = levels.levels() - 1;
            let mut random = Random(8);
            let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
            levels.set(finest, Which::Solution, &x).unwrap();
            levels.set(finest, Which::RightHandSide, &b).unwrap();
            levels.compute_residual(finest).unwrap();
            let found = levels.residual(finest).unwrap();
            let [a, _] = dense_on(element, &mesh);
            let expected = DVector::from_vec(b) - a * DVector::from_vec(x);
            let inner = inner_nodes(element, cells);
            let pick = |v: &[f64]| inner.iter().map(|node| v[*node]).collect::<Vec<_>>();
            let error = largest(&pick(&found), &pick(expected.as_slice()));
            // 1e-12: sums of at most (k + 1)^3 terms from each of eight cells
            assert!(error < 1e-12, "{element:?}: {error}");
            assert!((0..found.len()).all(|node| inner.contains(&node) || found[node] == 0.0));
        }
    }
}

/// On squares and cubes with a coefficient of 1 every part is that of the Cartesian mesh.
#[test]
fn a_mesh_that_is_not_deformed_is_the_cartesian_one() {
    for device in devices() {
        for (dimension, degree, cells) in CASES {
            let element = element(dimension, degree);
            let mesh = DeformedMesh::of_sines(dimension, cells, 0.0).unwrap();
            let both = [Relaxation::Multiplicative, Relaxation::Additive { degree: 2 }];
            for relaxation in both.into_iter().skip(usize::from(dimension == Dimension::Three)) {
                let options = HierarchyOptions { relaxation, ..HierarchyOptions::default() };
                let all = [
                    Hierarchy::on(&*device, element, &mesh, options).unwrap(),
                    Hierarchy::with(&*device, element, cells, options).unwrap(),
                ];
                let mut random = Random(6);
                let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
                let found = all.map(|levels| {
                    let finest = levels.levels() - 1;
                    levels.set(finest, Which::Solution, &x).unwrap();
                    levels.set(finest, Which::RightHandSide, &b).unwrap();
                    levels.v_cycle(finest, Order::Forward).unwrap();
                    levels.solution(finest).unwrap()
                });
                // 1e-10: condition numbers of patches reach 1e3, and each step multiplies by one
                let error = largest(&found[0], &found[1]);
                assert!(error < 1e-10, "{element:?} {relaxation:?}: {error}");
            }
        }
    }
}

/// A colour of the smoother on parallelepipeds: patches are solved with the separable operator that
/// has the diagonal of κ det J J^-1 J^-T, made larger where that of the patch is more than 1.5
/// times as large.
#[test]
fn colours_are_those_of_dense_surrogates() {
    for device in devices() {
        for (shear, larger) in [(0.3, false), (1.2, true)] {
            for (dimension, degree, cells) in [CASES[1], CASES[3], CASES[4]] {
                let element = element(dimension, degree);
                let axes = dimension.axes();
                let mut map = Matrix3::new(1.0, shear, 0.0, 0.0, 0.7, 0.0, 0.0, 0.1, 1.3);
                if dimension == Dimension::Two {
                    map[(2, 1)] = 0.0;
                    map[(2, 2)] = 1.0;
                }
                let moved = |x: [f64; 3]| {
                    (map * Matrix3::from_columns(&[x.into(), x.into(), x.into()]))
                        .column(0)
                        .into_owned()
                        .into()
                };
                let mesh = DeformedMesh::of_map(dimension, cells, moved).unwrap();
                let mesh = mesh.with_coefficient(vec![2.0; (2 * cells).pow(axes as u32)]).unwrap();
                let metric = (map.transpose() * map).try_inverse().unwrap() * (2.0 * map.determinant());
                let metric = DMatrix::from_fn(axes, axes, |i, j| metric[(i, j)]);
                let scaled = DMatrix::from_fn(axes, axes, |i, j| {
                    metric[(i, j)] / (metric[(i, i)] * metric[(j, j)]).sqrt()
                });
                let too_large = scaled.symmetric_eigenvalues().max() / 1.5;
                assert_eq!(too_large > 1.0, larger, "{shear}: {too_large}");
                let line = Line::new(degree).unwrap();
                let n = 2 * degree - 1;
                let inner =
                    |m: &kingpost_multigrid::Matrix| DMatrix::from_fn(n, n, |i, j| m.at(i + 1, j + 1));
                let (mass, stiffness) = (inner(&line.mass), inner(&line.stiffness));
                let h = 1.0 / cells as f64;
                let along = |axis: usize| {
                    (0..axes)
                        .rev()
                        .map(|a| if a == axis { &stiffness } else { &mass })
                        .fold(DMatrix::identity(1, 1), |product, matrix| product.kronecker(matrix))
                };
                let patch = (0..axes).map(|a| along(a) * metric[(a, a)]).sum::<DMatrix<f64>>()
                    * (h.powi(axes as i32 - 2) * too_large.max(1.0));
                let patch = patch.lu();
                let levels = Hierarchy::on(&*device, element, &mesh, HierarchyOptions::default()).unwrap();
                let finest = levels.levels() - 1;
                let mut random = Random(7);
                let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
                levels.set(finest, Which::Solution, &x).unwrap();
                levels.set(finest, Which::RightHandSide, &b).unwrap();
                let [a, _] = dense_on(element, &mesh);
                let (mut x, b) = (DVector::from_vec(x), DVector::from_vec(b));
                for colour in 0..1 << axes {
                    levels.smooth_colours(finest, colour..colour + 1).unwrap();
                    let residual = &b - &a * &x;
                    for nodes in patches(element, cells, colour) {
                        let right = DVector::from_fn(nodes.len(), |i, _| residual[nodes[i]]);
                        let correction = patch.solve(&right).unwrap();
                        nodes.iter().zip(correction.iter()).for_each(|(node, c)| x[*node] += c);
                    }
                    let error = largest(&levels.solution(finest).unwrap(), x.as_slice());
                    // 1e-11: condition numbers of patches reach 1e3
                    assert!(error < 1e-11, "{element:?}, colour {colour}: {error}");
                }
            }
        }
    }
}

fn cycle(levels: &Hierarchy<'_>, level: usize, b: &[f64], after: Order) -> Vec<f64> {
    levels.set(level, Which::RightHandSide, b).unwrap();
    levels.clear(level).unwrap();
    levels.v_cycle(level, after).unwrap();
    levels.solution(level).unwrap()
}

/// v·Pw = w·Pv, if the second smoothing step takes the colours backward, or is a polynomial.
#[test]
fn cycles_are_symmetric_and_positive() {
    let device = open("c").unwrap();
    for (dimension, degree, cells) in [(Dimension::Two, 2, 8), (Dimension::Three, 2, 4)] {
        for relaxation in [Relaxation::Multiplicative, Relaxation::Additive { degree: 3 }] {
            let element = element(dimension, degree);
            let mesh = random_mesh(dimension, cells, 5);
            let options = HierarchyOptions { relaxation, ..HierarchyOptions::default() };
            let levels = Hierarchy::on(&*device, element, &mesh, options).unwrap();
            let finest = levels.levels() - 1;
            let mut random = Random(9);
            let [v, w] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let [pv, pw] = [&v, &w].map(|b| cycle(&levels, finest, b, Order::Backward));
            let apart = (dot(&v, &pw) - dot(&w, &pv)).abs() / dot(&v, &pv);
            assert!(dot(&v, &pv) > 0.0 && dot(&w, &pw) > 0.0);
            assert!(apart < 1e-12, "{element:?} {relaxation:?}: {apart}");
            if relaxation == Relaxation::Multiplicative {
                let [pv, pw] = [&v, &w].map(|b| cycle(&levels, finest, b, Order::Forward));
                let apart = (dot(&v, &pw) - dot(&w, &pv)).abs() / dot(&v, &pv);
                assert!(apart > 1e-9, "{element:?}: {apart}");
            }
        }
    }
}

/// The energy of the error on the coarsest level is that of the polynomial that is asked for.
#[test]
fn the_coarsest_level_is_solved_to_a_thousandth() {
    let device = open("c").unwrap();
    for dimension in [Dimension::Two, Dimension::Three] {
        let element = element(dimension, 3);
        let mesh = DeformedMesh::of_sines(dimension, 2, 0.2).unwrap().with_jump(3.0).unwrap();
        let levels = Hierarchy::on(&*device, element, &mesh, HierarchyOptions::default()).unwrap();
        let b = inner_numbers(&mut Random(2), element, 2);
        let x = cycle(&levels, 0, &b, Order::Forward);
        let inner = inner_nodes(element, 2);
        let [a, _] = dense_on(element, &mesh);
        let a = DMatrix::from_fn(inner.len(), inner.len(), |i, j| a[(inner[i], inner[j])]);
        let pick = |v: &[f64]| DVector::from_fn(inner.len(), |i, _| v[inner[i]]);
        let exact = a.clone().lu().solve(&pick(&b)).unwrap();
        let energy = |v: &DVector<f64>| v.dot(&(&a * v)).sqrt();
        let left = energy(&(pick(&x) - &exact)) / energy(&exact);
        assert!(left < 1e-3, "{dimension:?}: {left}");
    }
}

/// Iterations and the distance from the product of sines of the coordinates.
fn solved(device: &dyn Device, element: Element, mesh: &DeformedMesh, precision: Precision) -> (usize, f64) {
    let options = HierarchyOptions { precision, ..HierarchyOptions::default() };
    let mut solver =
        PreconditionedSolver::on(device, element, mesh, options, Start::Zero, GmresOptions::default())
            .unwrap();
    let axes = element.dimension.axes();
    let sines = |x: [f64; 3]| x.iter().take(axes).map(|x| (PI * x).sin()).product::<f64>();
    solver.set_source(&mesh.at_nodes(element, |x| axes as f64 * PI * PI * sines(x))).unwrap();
    let report = solver.solve().unwrap();
    assert!(report.converged(), "{element:?} {precision:?}: {report:?}");
    (report.iterations(), solver.distance(&mesh.at_nodes(element, sines)).unwrap())
}

/// The error falls with the order of the elements, in both precisions of the cycle, and iterations
/// do not grow with the mesh.
#[test]
fn solutions_converge_with_the_order_of_the_elements() {
    for device in devices() {
        let on_host = device.info().backend == Backend::C;
        let cases = [(Dimension::Two, 1, 16), (Dimension::Three, 2, 4), (Dimension::Two, 3, 8)];
        for (dimension, degree, cells) in cases.into_iter().take(if on_host { 3 } else { 1 }) {
            let element = element(dimension, degree);
            let of = |cells, precision| {
                let mesh = DeformedMesh::of_sines(dimension, cells, 0.1).unwrap();
                solved(&*device, element, &mesh, precision)
            };
            let (coarse, fine) = (of(cells, Precision::Double), of(2 * cells, Precision::Double));
            let order = (coarse.1 / fine.1).log2();
            eprintln!("{element:?}: {coarse:?}, {fine:?}, order {order:.2}");
            assert!(order > degree as f64 + 0.6, "{element:?}: {order}");
            assert!(fine.0 <= coarse.0 + 2 && fine.0 < 20, "{element:?}: {coarse:?} {fine:?}");
            let single = of(cells, Precision::Single);
            assert_eq!(single.0, coarse.0, "{element:?}");
            assert!((single.1 / coarse.1 - 1.0).abs() < 1e-3, "{element:?}: {single:?}");
        }
    }
}

/// Two quadrilaterals next to each other, turned against each other, with four cells a side.
fn boxes() -> DeformedMesh {
    let coordinates = vec![1.2, 0.0, 0.1, 0.9, 2.0, 0.3, 0.0, 0.0, 1.9, 1.1, 1.0, 1.0];
    let mesh = Mesh::new(CellShape::Quadrilateral, coordinates, vec![5, 1, 0, 3, 2, 4, 0, 5], None).unwrap();
    let found = MappedBox::of(&mesh).unwrap();
    assert_eq!(found.counts(), [2, 1]);
    found.refined(4).unwrap()
}

/// A coefficient that jumps at the middle of the mesh, the solution by dense matrices.
#[test]
fn solutions_with_a_coefficient_are_those_of_dense_matrices() {
    let device = open("c").unwrap();
    let sines = |dimension| DeformedMesh::of_sines(dimension, 4, 0.1).unwrap();
    let meshes = [(sines(Dimension::Two), 2, 100.0), (sines(Dimension::Three), 1, 10.0), (boxes(), 3, 1.0)];
    for (mesh, degree, jump) in meshes {
        let (element, cells) = (element(mesh.dimension(), degree), mesh.cells());
        let mesh = mesh.with_jump(jump).unwrap();
        for start in [Start::Zero, Start::Nested] {
            let options = GmresOptions { relative: 1e-11, ..GmresOptions::default() };
            let cycle = HierarchyOptions::default();
            let mut solver =
                PreconditionedSolver::on(&*device, element, &mesh, cycle, start, options).unwrap();
            solver.set_source(&mesh.at_nodes(element, |_| 1.0)).unwrap();
            let report = solver.solve().unwrap();
            assert!(report.converged() && report.iterations() < 40, "{report:?}");
            let inner = inner_nodes(element, cells);
            let [a, mass] = dense_on(element, &mesh);
            let a = DMatrix::from_fn(inner.len(), inner.len(), |i, j| a[(inner[i], inner[j])]);
            let b = DVector::from_fn(inner.len(), |i, _| mass.row(inner[i]).sum());
            let exact = a.lu().solve(&b).unwrap();
            let found = solver.solution().unwrap();
            let found: Vec<f64> = inner.iter().map(|node| found[*node]).collect();
            let error = largest(&found, exact.as_slice());
            // 1e-8: the residual to 1e-11, a condition number of 1e3
            assert!(error < 1e-8, "{element:?} {start:?}: {error}");
        }
    }
}

#[test]
fn meshes_that_there_are_not_are_refused() {
    let device = open("c").unwrap();
    let two = Dimension::Two;
    let short = DeformedMesh::new(two, 2, vec![0.0; 17]).err().unwrap();
    assert!(matches!(short, MultigridError::Vertices { found: 17, needed: 18 }), "{short}");
    // the vertex in the middle beyond that of the next cell
    let mut vertices = DeformedMesh::of_sines(two, 2, 0.0).unwrap().vertices().to_vec();
    vertices[8] = 1.2;
    let inverted = DeformedMesh::new(two, 2, vertices.clone()).err().unwrap();
    assert!(matches!(&inverted, MultigridError::Inverted { cell, .. } if cell == &[1, 0]), "{inverted}");
    vertices[8] = f64::NAN;
    let none = DeformedMesh::new(two, 2, vertices).err().unwrap();
    assert!(matches!(none, MultigridError::Inverted { .. }), "{none}");
    let folded = DeformedMesh::of_sines(Dimension::Three, 8, 0.4).err().unwrap();
    assert!(matches!(folded, MultigridError::Inverted { .. }), "{folded}");
    // the mesh is right, one that is coarser is not
    let steep = DeformedMesh::of_sines(two, 8, 0.26).unwrap();
    let coarse = Hierarchy::on(&*device, element(two, 1), &steep, HierarchyOptions::default()).err().unwrap();
    assert!(matches!(coarse, MultigridError::Inverted { cells: 4, .. }), "{coarse}");
    let none = DeformedMesh::new(two, 0, vec![0.0; 2]).err().unwrap();
    assert!(matches!(none, MultigridError::Cells { cells: 0, .. }), "{none}");
    let huge = DeformedMesh::of_sines(Dimension::Three, 1 << 40, 0.1).err().unwrap();
    assert!(matches!(huge, MultigridError::MeshSize { .. }), "{huge}");
    let mesh = DeformedMesh::of_sines(two, 2, 0.1).unwrap();
    let zero = mesh.clone().with_jump(0.0).err().unwrap();
    assert!(matches!(zero, MultigridError::Coefficient { value: 0.0, .. }), "{zero}");
    let few = mesh.clone().with_coefficient(vec![1.0]).err().unwrap();
    assert!(matches!(few, MultigridError::Coefficients { found: 1, needed: 16 }), "{few}");
    let on = |mesh: &DeformedMesh, element, options| {
        Hierarchy::on(&*device, element, mesh, options).err().unwrap()
    };
    for variant in [Variant::Point, Variant::Blended] {
        let options = HierarchyOptions { variant: Some(variant), ..HierarchyOptions::default() };
        let refused = on(&mesh, element(two, 2), options);
        assert!(matches!(refused, MultigridError::DeformedSmoother(of) if of == variant), "{refused}");
    }
    let three = on(&mesh, element(Dimension::Three, 2), HierarchyOptions::default());
    assert!(matches!(three, MultigridError::MeshDimension { found: 2, needed: 3 }), "{three}");
    let odd = on(&DeformedMesh::of_sines(two, 6, 0.1).unwrap(), element(two, 2), HierarchyOptions::default());
    assert!(matches!(odd, MultigridError::Cells { cells: 6, .. }), "{odd}");
    let cartesian =
        PreconditionedSolver::new(&*device, element(two, 1), 2, Precision::Double, GmresOptions::default())
            .unwrap();
    let source = cartesian.set_source(&[0.0; 9]).err().unwrap();
    assert!(matches!(source, MultigridError::NoMesh), "{source}");
}

/// Parts of the dense reference are those of the Cartesian one.
#[test]
fn dense_references_agree() {
    for (dimension, degree, cells) in [CASES[1], CASES[4]] {
        let element = element(dimension, degree);
        let mesh = DeformedMesh::of_sines(dimension, cells, 0.0).unwrap();
        let [a, _] = dense_on(element, &mesh);
        let error = largest(a.as_slice(), dense(element, cells).as_slice());
        assert!(error < 1e-12, "{element:?}: {error}");
    }
}
