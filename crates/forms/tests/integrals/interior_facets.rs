//! Integrals over facets between cells: by the divergence theorem cell by cell, by values that both
//! sides share, and against sums over points in space.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::on_meshes::{interpreted, mesh, numbers};
use kingpost_fem::element::CellShape::{self, Hexahedron, Interval, Quadrilateral, Tetrahedron, Triangle};
use kingpost_fem::element::ElementFamily::RaviartThomas;
use kingpost_fem::mesh::{Facet, Mesh};
use kingpost_fem::numbering::ComposedNumbering;
use kingpost_forms::form::{
    Expr, Form, FunctionSpace, Inputs, action, as_matrix, as_vector, avg, cell_diameter, cell_volume,
    coefficient, coordinate, dS, derivative, div, dot, ds, dx, facet_area, facet_normal, grad, inner, jump,
    jump_along, minus, plus, sin, split, test, trial,
};
use kingpost_forms::lowering::{LoweringOptions, MatrixResult, MeshForm};
use kingpost_interp::interpret;

fn assert_equal(found: &[f64], expected: &[f64], what: &str) {
    let size = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    assert!(size > 0.01 && found.len() == expected.len(), "{what}: {size}");
    // 1e-13: sums of a few hundred terms on either side
    let differs = found.iter().zip(expected).position(|(a, b)| (a - b).abs() > 1e-13 * size);
    assert_eq!(differs.map(|k| (k, found[k], expected[k])), None, "{what}");
}

fn dofs(mesh: &Mesh, space: &FunctionSpace) -> usize {
    ComposedNumbering::of(mesh, &space.element().unwrap()).unwrap().n_dofs()
}

/// The mesh with the cells of squares and cubes turned and mirrored, each otherwise; those of
/// simplices are already.
fn turned(shape: CellShape) -> Mesh {
    let mesh = mesh(shape);
    let n = match shape {
        Quadrilateral => 4,
        Hexahedron => 8,
        Interval | Triangle | Tetrahedron | CellShape::Prism | CellShape::Pyramid => return mesh,
    };
    let dim = shape.dim();
    let mut cells = Vec::new();
    for cell in 0..mesh.n_cells() {
        // axes in another order, some of them walked backwards
        let axes: Vec<usize> = (0..dim).map(|axis| (axis + cell) % dim).collect();
        let flips = cell / dim;
        let from = |k: usize| -> usize {
            let bit = |axis: usize| (k >> axes[axis] & 1) ^ (flips >> axis & 1);
            (0..dim).map(|axis| bit(axis) << axis).sum()
        };
        cells.extend((0..n).map(|k| mesh.cell(cell)[from(k)]));
    }
    Mesh::new(shape, mesh.coordinates().to_vec(), cells, None).unwrap()
}

/// `∫ div(F) + .. dx` of each cell is a sum over its facets; of facets between cells two of them.
fn check_divergence(mesh: &Mesh) {
    let cell = mesh.shape();
    let space = FunctionSpace::discontinuous(cell, 1);
    let (u, v, x, n) = (coefficient("u", &space), test(&space), coordinate(cell), facet_normal(cell));
    let field = as_vector((0..cell.dim()).map(|i| &u * (&x[i] + 0.5 * &x[0] + i as f64)));
    let inside = (div(&field) * &v + inner(&field, grad(&v))) * dx();
    let outside = inner(&field, &n) * &v * ds() + jump_along(&v * &field, &n) * dS();
    let inputs = Inputs::new().field("u", numbers(dofs(mesh, &space)));
    assert_equal(&interpreted(&outside, mesh, &inputs), &interpreted(&inside, mesh, &inputs), cell.name());
}

#[test]
fn the_divergence_theorem_on_every_cell() {
    for cell in [Interval, Triangle, Tetrahedron, Quadrilateral, Hexahedron] {
        check_divergence(&turned(cell));
    }
}

#[test]
fn the_divergence_theorem_on_curved_cells() {
    for (name, degree) in [("triangle", 3), ("quadrangle", 2), ("tetrahedron", 2)] {
        let file = format!("{}/../fem/tests/data/sector_{name}_{degree}_41.msh", env!("CARGO_MANIFEST_DIR"));
        check_divergence(&Mesh::read_gmsh(file.as_ref()).unwrap());
    }
}

/// By parts on every cell: `∫ A:D²u v + ∫ A∇v·∇u` is what leaves the cells, for functions and for test
/// functions, and for fields with Piola maps.
#[test]
fn second_derivatives_by_parts() {
    for cell in [Interval, Triangle, Tetrahedron] {
        let (mesh, dim) = (mesh(cell), cell.dim());
        let space = FunctionSpace::discontinuous(cell, 3);
        let (u, v, x, n) = (coefficient("u", &space), test(&space), coordinate(cell), facet_normal(cell));
        let inputs = Inputs::new().field("u", numbers(dofs(&mesh, &space)));
        // not symmetric, and not the same everywhere for one of the factors
        let a = as_matrix(dim, (0..dim * dim).map(|k| 1.0 + 0.3 * k as f64));
        for (one, other) in [(&u, &v), (&v, &u)] {
            let factor = (1.0 + &x[0]) * other;
            let inside =
                (inner(&a, grad(grad(one))) * &factor + inner(dot(grad(one), &a), grad(&factor))) * dx();
            let flow = &factor * dot(grad(one), &a);
            let outside = inner(&flow, &n) * ds() + jump_along(&flow, &n) * dS();
            let expected = interpreted(&outside, &mesh, &inputs);
            assert_equal(&interpreted(&inside, &mesh, &inputs), &expected, cell.name());
        }
        // both at once: twice by parts, where the second derivatives of one are constant
        let quadratic = FunctionSpace::discontinuous(cell, 2);
        let (u, v) = (coefficient("u", &quadratic), test(&quadratic));
        let inputs = Inputs::new().field("u", numbers(dofs(&mesh, &quadratic)));
        let inside = inner(grad(grad(&u)), grad(grad(&v))) * dx();
        let flow = dot(grad(grad(&u)), grad(&v));
        let outside = inner(&flow, &n) * ds() + jump_along(&flow, &n) * dS();
        let expected = interpreted(&outside, &mesh, &inputs);
        assert_equal(&interpreted(&inside, &mesh, &inputs), &expected, cell.name());
    }
    for cell in [Triangle, Tetrahedron] {
        let (mesh, space) = (mesh(cell), FunctionSpace::of(cell, RaviartThomas, 2));
        let (sigma, tau, n) = (coefficient("u", &space), test(&space), facet_normal(cell));
        let inputs = Inputs::new().field("u", numbers(dofs(&mesh, &space)));
        let inside = (inner(grad(div(&sigma)), &tau) + div(&sigma) * div(&tau)) * dx();
        let flow = div(&sigma) * &tau;
        let outside = inner(&flow, &n) * ds() + jump_along(&flow, &n) * dS();
        let expected = interpreted(&outside, &mesh, &inputs);
        assert_equal(&interpreted(&inside, &mesh, &inputs), &expected, cell.name());
    }
}

/// The numbers of all cells: integrals against the constants of each.
fn of_cells(form: &Form, mesh: &Mesh) -> Vec<f64> {
    interpreted(form, mesh, &Inputs::new())
}

#[test]
fn sizes_of_cells_and_facets() {
    for cell in [Interval, Triangle, Tetrahedron] {
        let (mesh, dim) = (mesh(cell), cell.dim());
        let v = test(&FunctionSpace::discontinuous(cell, 0));
        let (volume, diameter, area) = (cell_volume(cell), cell_diameter(cell), facet_area(cell));
        let ones = vec![1.0; mesh.n_cells()];
        assert_equal(&of_cells(&(&v / &volume * dx()), &mesh), &ones, "volumes");
        // each facet adds 1 to its cells
        let facets = &v / &area * ds() + (plus(&v / &area) + minus(&v / &area)) * dS();
        let expected = vec![dim as f64 + 1.0; mesh.n_cells()];
        assert_equal(&of_cells(&facets, &mesh), &expected, "areas");
        let distance = |a: &u32, b: &u32| {
            let pairs = mesh.vertex(*a).iter().zip(mesh.vertex(*b));
            pairs.map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
        };
        let diameters: Vec<f64> = (0..mesh.n_cells())
            .map(|k| {
                let corners = mesh.cell(k);
                let all = corners.iter().flat_map(|a| corners.iter().map(move |b| distance(a, b)));
                all.fold(0.0, f64::max)
            })
            .collect();
        assert_equal(&of_cells(&(&diameter / &volume * &v * dx()), &mesh), &diameters, "diameters");
        // each side has its own: both times their neighbour's are one number a facet
        let product = (plus(&v) * minus(&diameter) * minus(&volume) / plus(&area)) * dS();
        let pairs = |f: &Facet| Some((f.side.cell as usize, f.other?.cell as usize));
        let volumes = of_cells(&(1.0 * &v * dx()), &mesh);
        let mut expected = vec![0.0; mesh.n_cells()];
        for (first, second) in mesh.facets().iter().filter_map(pairs) {
            expected[first] += diameters[second] * volumes[second];
        }
        assert_equal(&of_cells(&product, &mesh), &expected, "sides");
    }
}

#[test]
fn second_derivatives_need_straight_simplices() {
    let refused = |cell, degree| {
        let space = FunctionSpace::scalar(cell, 2);
        let form = coefficient("w", &space) * div(grad(test(&space))) * dx();
        let options = LoweringOptions::new("k").with_geometry_degree(degree);
        MeshForm::new(&form, &options).unwrap_err().to_string()
    };
    let expected = "found the second derivative `grad(grad(test))` on cells that are curved, quadrilaterals or \
                    hexahedra, needed first derivatives or straight simplices";
    assert_eq!(refused(Quadrilateral, 1), expected);
    assert_eq!(refused(Triangle, 2), expected);
    let v = test(&FunctionSpace::discontinuous(Hexahedron, 0));
    let form = cell_volume(Hexahedron) * &v * dx();
    let message = MeshForm::new(&form, &LoweringOptions::new("k")).unwrap_err().to_string();
    assert!(message.starts_with("found `cell_volume` on cells that are curved"), "{message}");
    let inside = facet_area(Triangle) * test(&FunctionSpace::scalar(Triangle, 1)) * dx();
    let expected =
        "`facet_area`: found an integral over cells, by `dx`, needed one over facets, by `ds` or `dS`";
    assert_eq!(inside.check().unwrap_err().to_string(), expected);
}

/// A continuous function has one value at a point, whatever cell evaluates it: points that are
/// mirrored in one of the cells are found.
#[test]
fn both_sides_meet_at_one_point() {
    for cell in [Interval, Triangle, Tetrahedron, Quadrilateral, Hexahedron] {
        let mesh = turned(cell);
        let space = FunctionSpace::scalar(cell, 2);
        let (u, w, v) = (coefficient("u", &space), coefficient("w", &space), test(&space));
        let n = dofs(&mesh, &space);
        let values = numbers(2 * n);
        let inputs = Inputs::new().field("u", values[..n].to_vec()).field("w", values[n..].to_vec());
        let across = plus(&u) * minus(&w) * avg(&v) * dS();
        let along = plus(&u * &w * &v) * dS();
        let found = interpreted(&across, &mesh, &inputs);
        assert_equal(&found, &interpreted(&along, &mesh, &inputs), cell.name());
    }
}

/// Gauss's rule of three points on [0, 1], exact to degree 5.
const GAUSS: [(f64, f64); 3] =
    [(0.112_701_665_379_258_31, 5.0 / 18.0), (0.5, 8.0 / 18.0), (0.887_298_334_620_741_7, 5.0 / 18.0)];

/// Points in space and weights on a facet: exact to degree 5 on edges, to 2 on triangles.
fn rule(corners: &[&[f64]]) -> Vec<(Vec<f64>, f64)> {
    let mix = |weights: &[f64]| -> Vec<f64> {
        (0..corners[0].len()).map(|i| corners.iter().zip(weights).map(|(c, w)| c[i] * w).sum()).collect()
    };
    let side =
        |a: usize, b: usize| -> Vec<f64> { corners[b].iter().zip(corners[a]).map(|(b, a)| b - a).collect() };
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    match corners.len() {
        2 => GAUSS.iter().map(|(x, w)| (mix(&[1.0 - x, *x]), w * length(&side(0, 1)))).collect(),
        3 => {
            let (a, b) = (side(0, 1), side(0, 2));
            let normal = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
            let middles = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]];
            middles.iter().map(|m| (mix(m), length(&normal) / 6.0)).collect()
        }
        n => panic!("a facet of {n} corners"),
    }
}

/// The gradients of the barycentric coordinates of a simplex, by Cramer's rule.
fn gradients(corners: &[&[f64]]) -> Vec<Vec<f64>> {
    let dim = corners[0].len();
    let edge = |k: usize, i: usize| corners[k + 1][i] - corners[0][i];
    let minor = |rows: [usize; 2], columns: [usize; 2]| {
        edge(rows[0], columns[0]) * edge(rows[1], columns[1])
            - edge(rows[0], columns[1]) * edge(rows[1], columns[0])
    };
    let cofactor = |k: usize, i: usize| match dim {
        2 => (if (k + i).is_multiple_of(2) { 1.0 } else { -1.0 }) * edge(1 - k, 1 - i),
        _ => minor([(k + 1) % 3, (k + 2) % 3], [(i + 1) % 3, (i + 2) % 3]),
    };
    let determinant: f64 = (0..dim).map(|i| edge(0, i) * cofactor(0, i)).sum();
    let mut all: Vec<Vec<f64>> =
        (0..dim).map(|k| (0..dim).map(|i| cofactor(k, i) / determinant).collect()).collect();
    let first = (0..dim).map(|i| -all.iter().map(|g| g[i]).sum::<f64>()).collect();
    all.insert(0, first);
    all
}

/// Values and gradients of the Lagrange basis of degree 1 or 2 at a point in space. Degree 2 has
/// the vertices, then the middles of the edges opposite to them.
fn basis(degree: usize, corners: &[&[f64]], at: &[f64]) -> Vec<(f64, Vec<f64>)> {
    let slopes = gradients(corners);
    let dim = at.len();
    let offset = |k: usize| -> f64 { (0..dim).map(|i| slopes[k][i] * (at[i] - corners[0][i])).sum() };
    let b: Vec<f64> = (0..=dim).map(|k| offset(k) + if k == 0 { 1.0 } else { 0.0 }).collect();
    let scaled = |k: usize, s: f64| slopes[k].iter().map(|x| x * s).collect::<Vec<f64>>();
    if degree == 1 {
        return (0..=dim).map(|k| (b[k], scaled(k, 1.0))).collect();
    }
    let vertex = |k: usize| (b[k] * (2.0 * b[k] - 1.0), scaled(k, 4.0 * b[k] - 1.0));
    let edge = |(i, j): (usize, usize)| {
        let slope = scaled(i, 4.0 * b[j]).iter().zip(scaled(j, 4.0 * b[i])).map(|(x, y)| x + y).collect();
        (4.0 * b[i] * b[j], slope)
    };
    assert_eq!(dim, 2);
    (0..3).map(vertex).chain([(1, 2), (0, 2), (0, 1)].map(edge)).collect()
}

/// The matrix of the symmetric interior penalty terms, entry by entry.
fn penalty_matrix(mesh: &Mesh, degree: usize, space: &FunctionSpace, penalty: f64) -> Vec<f64> {
    let numbering = ComposedNumbering::of(mesh, &space.element().unwrap()).unwrap();
    let n = numbering.n_dofs();
    let mut matrix = vec![0.0; n * n];
    let inner_facets = mesh.facets().into_iter().filter(|f: &Facet| f.other.is_some());
    for facet in inner_facets {
        let sides = [facet.side, facet.other.unwrap()];
        let corners =
            |cell: u32| -> Vec<&[f64]> { mesh.cell(cell as usize).iter().map(|v| mesh.vertex(*v)).collect() };
        let of_facet = mesh.shape().facets()[usize::from(sides[0].facet)];
        let ends: Vec<&[f64]> = of_facet.iter().map(|v| corners(sides[0].cell)[*v]).collect();
        // out of a cell, away from the vertex opposite to the facet
        let normal = |k: usize| -> Vec<f64> {
            let opposite = usize::from(sides[k].facet); // facets have the number of that vertex
            let slope = &gradients(&corners(sides[k].cell))[opposite];
            let length = slope.iter().map(|x| x * x).sum::<f64>().sqrt();
            slope.iter().map(|x| -x / length).collect()
        };
        let normals = [normal(0), normal(1)];
        for (point, weight) in rule(&ends) {
            // number, jump along the first normal, mean slope along it
            let mut functions: Vec<(usize, f64, f64)> = Vec::new();
            for (k, side) in sides.iter().enumerate() {
                let values = basis(degree, &corners(side.cell), &point);
                for (dof, (value, slope)) in numbering.cell(side.cell as usize).iter().zip(values) {
                    let along: f64 = normals[k].iter().zip(&normals[0]).map(|(a, b)| a * b).sum();
                    let mean: f64 = slope.iter().zip(&normals[0]).map(|(s, n)| 0.5 * s * n).sum();
                    functions.push((*dof as usize, value * along, mean));
                }
            }
            for (row, v, dv) in &functions {
                for (column, u, du) in &functions {
                    matrix[row * n + column] += weight * (penalty * u * v - du * v - u * dv);
                }
            }
        }
    }
    matrix
}

/// The assembled matrix, row by row with its zeros.
fn assembled(form: &Form, mesh: &Mesh, inputs: &Inputs) -> Vec<f64> {
    let options = LoweringOptions::new("form").with_geometry_degree(mesh.geometry_degree());
    let form = MeshForm::new(form, &options).unwrap();
    let patterns = form.patterns(mesh).unwrap();
    let (starts, columns) = (&patterns[0].row_starts, &patterns[0].columns);
    let n = starts.len() - 1;
    let mut values = vec![0.0; columns.len()];
    for (place, kernel) in form.kernels().iter().enumerate() {
        let mut memory = form.bind_to(place, mesh, inputs, &patterns).unwrap();
        interpret(&kernel.kernel, &mut memory).unwrap();
        values.iter_mut().zip(memory.f64s("y").unwrap()).for_each(|(sum, y)| *sum += y);
    }
    let width = columns.iter().max().map_or(0, |c| *c as usize + 1);
    let mut matrix = vec![0.0; n * width];
    for row in 0..n {
        for k in starts[row] as usize..starts[row + 1] as usize {
            matrix[row * width + columns[k] as usize] += values[k];
        }
    }
    matrix
}

/// The terms of interior facets of Arnold et al. 2002, Table 3.1 (IP).
fn interior_penalty(u: &Expr, v: &Expr, n: &Expr, penalty: f64) -> Form {
    (penalty * inner(jump_along(u, n), jump_along(v, n))
        - inner(avg(grad(u)), jump_along(v, n))
        - inner(jump_along(u, n), avg(grad(v))))
        * dS()
}

#[test]
fn interior_penalty_agrees_with_sums_over_points_in_space() {
    for (cell, degree) in [(Triangle, 1), (Triangle, 2), (Tetrahedron, 1)] {
        let (mesh, space) = (turned(cell), FunctionSpace::discontinuous(cell, degree));
        let (u, v, n) = (trial(&space), test(&space), facet_normal(cell));
        let found = assembled(&interior_penalty(&u, &v, &n, 7.0), &mesh, &Inputs::new());
        let expected = penalty_matrix(&mesh, degree, &space, 7.0);
        assert_equal(&found, &expected, &format!("{cell} {degree}"));
    }
}

fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

/// The matrix times a vector is the action on it, whatever the spaces, cells and facets together.
#[test]
fn matrices_times_vectors_are_actions() {
    for (cell, family) in [(Triangle, RaviartThomas), (Tetrahedron, RaviartThomas)] {
        let flux = FunctionSpace::of(cell, family, 1);
        let space = FunctionSpace::mixed(cell, [flux, FunctionSpace::discontinuous(cell, 0)]);
        let n = facet_normal(cell);
        let form = |w: &Expr| -> Form {
            let ([s, p], [t, q]) = (&split(w)[..], &split(&test(&space))[..]) else { unreachable!() };
            (inner(s, t) - p * div(t) + 2 * div(s) * q) * dx()
                + jump(p) * inner(avg(t), plus(&n)) * dS()
                + 3 * p * q * ds()
        };
        let mesh = turned(cell);
        let x = numbers(dofs(&mesh, &space));
        let applied = form(&coefficient("w", &space));
        let expected = interpreted(&applied, &mesh, &Inputs::new().field("w", x.clone()));
        let matrix = assembled(&form(&trial(&space)), &mesh, &Inputs::new());
        assert_equal(&product(&matrix, &x), &expected, cell.name());
    }
}

/// Between two spaces of vectors and scalars, and from a derivative: rows and columns by block.
#[test]
fn linearised_and_rectangular_matrices() {
    let cell = Quadrilateral;
    let (mesh, velocity) = (turned(cell), FunctionSpace::vector(cell, 2));
    let pressure = FunctionSpace::scalar(cell, 1);
    let (n_u, n_p) = (dofs(&mesh, &velocity), dofs(&mesh, &pressure));
    let divergence = div(trial(&velocity)) * test(&pressure) * dx();
    let matrix = assembled(&divergence, &mesh, &Inputs::new());
    assert_eq!(matrix.len(), n_p * n_u);
    let u = numbers(n_u);
    let expected = interpreted(
        &action(divergence, coefficient("u", &velocity)),
        &mesh,
        &Inputs::new().field("u", u.clone()),
    );
    assert_equal(&product(&matrix, &u), &expected, "divergence");

    let (w, v) = (coefficient("w", &pressure), test(&pressure));
    let residual =
        (sin(&w) * &w * &v + inner(grad(&w), grad(&v))) * dx() + jump(grad(&w))[0].clone() * avg(&v) * dS();
    let given = Inputs::new().field("w", numbers(n_p));
    let matrix = assembled(&derivative(&residual, &w, trial(&pressure)), &mesh, &given);
    let x = numbers(2 * n_p)[n_p..].to_vec();
    let along = derivative(&residual, &w, coefficient("x", &pressure));
    let expected = interpreted(&along, &mesh, &given.clone().field("x", x.clone()));
    assert_equal(&product(&matrix, &x), &expected, "linearised");
}

/// Matrices of cells and of facets, and the diagonal, are the parts of the sparse matrix.
#[test]
fn matrices_of_entities_and_diagonals() {
    let cell = Triangle;
    let (mesh, space) = (turned(cell), FunctionSpace::discontinuous(cell, 1));
    let numbering = ComposedNumbering::of(&mesh, &space.element().unwrap()).unwrap();
    let (u, v) = (trial(&space), test(&space));
    let of =
        |form: &Form, matrix| MeshForm::new(form, &LoweringOptions::new("form").with_matrix(matrix)).unwrap();
    let run = |form: &MeshForm| {
        let mut memory = form.bind(0, &mesh, &Inputs::new()).unwrap();
        interpret(&form.kernels()[0].kernel, &mut memory).unwrap();
        memory
    };
    let jumps = interior_penalty(&u, &v, &facet_normal(cell), 4.0);
    let expected = assembled(&jumps, &mesh, &Inputs::new());
    let n = numbering.n_dofs();
    let memory = run(&of(&jumps, MatrixResult::Cells));
    let y = memory.f64s("y").unwrap();
    let mut found = vec![0.0; n * n];
    let facets = mesh.facets().into_iter().filter(|f| f.other.is_some());
    // facets go by their vertices in the kernel: take them from its own list
    let cells: Vec<usize> = match memory.get("facet_cells").unwrap() {
        kingpost_interp::Value::I32(list) => list.iter().map(|c| *c as usize).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(cells.len(), 2 * facets.count());
    for (pair, local) in cells.chunks(2).zip(y.chunks(36)) {
        let dofs: Vec<i32> = pair.iter().flat_map(|c| numbering.cell(*c)).copied().collect();
        for (k, value) in local.iter().enumerate() {
            found[dofs[k / 6] as usize * n + dofs[k % 6] as usize] += value;
        }
    }
    assert_equal(&found, &expected, "facets");

    let mass = &u * &v * dx();
    let expected = assembled(&mass, &mesh, &Inputs::new());
    let diagonal: Vec<f64> = (0..n).map(|i| expected[i * n + i]).collect();
    let found = run(&of(&mass, MatrixResult::Diagonal)).f64s("y").unwrap().to_vec();
    assert_equal(&found, &diagonal, "diagonal");
}

#[test]
fn functionals_are_numbers() {
    let cell = Triangle;
    let mesh = turned(cell);
    let x = coordinate(cell);
    let moment = &x[0] * &x[0] * dx() + 2 * &x[1] * ds();
    // 1/3 inside; 2 * (1 on top + 1/2 on each of the upright sides) on the boundary
    let found = interpreted(&moment, &mesh, &Inputs::new());
    assert_eq!(found.len(), 1);
    assert!((found[0] - (1.0 / 3.0 + 4.0)).abs() < 1e-14, "{found:?}");
}

#[test]
fn sides_that_are_missing_or_too_many_are_refused() {
    let space = FunctionSpace::discontinuous(Triangle, 1);
    let (u, v) = (coefficient("u", &space), test(&space));
    let refuse = |form: Form| form.check().unwrap_err().to_string();
    assert_eq!(
        refuse(&u * avg(&v) * dS()),
        "`u` in an integral by `dS`: found no side, and a value on each, needed `plus`, `minus`, `avg` or \
         `jump` around it"
    );
    assert_eq!(
        refuse(plus(&u) * &v * dx()),
        "`plus(u)` in an integral by `dx`: found a side of a facet, needed `dS`; over other measures \
         functions have one value"
    );
    assert_eq!(
        refuse(plus(minus(&u)) * avg(&v) * dS().with_tag(3)),
        "`minus(u)` in an integral by `dS(tag = 3)`: found a side of what has one already, needed one of them"
    );
    let lower = |form: Form| MeshForm::new(&form, &LoweringOptions::new("form")).unwrap_err().to_string();
    let w = trial(&space);
    assert_eq!(
        lower(&w * &u * dx()),
        "the form holds a trial function and no test function; write `test` in its place"
    );
    assert_eq!(
        lower((&w * &v + &u * &v) * dx()),
        "a term of a sum holds no trial function, where others do; take the terms without one as a form of \
         their own"
    );
    assert_eq!(
        lower(&w * &w * &v * dx()),
        "the form is not linear in the trial function: it occurs in both factors of a product"
    );
}
