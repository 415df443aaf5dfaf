//! Cycles over meshes that were refined, on matrices that are assembled here.

#![allow(clippy::unwrap_used)] // how a test fails

use crate::systems::devices;
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::quadrature::{QuadratureScheme, rule};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Backend, Device, buffer_of, upload_values};
use kingpost_sample::of_run;
use kingpost_solve::{
    Amg, AmgPreconditioner, Chebyshev, ConjugateGradients, CsrOperator, Diagonal, Eigenvalues, Interpolation,
    LinearOptions, NestedLevel, NestedLevels, Preconditioning, Queue, Smoothing, SolveError, Spectrum,
    Transfer, Unknowns,
};

/// The inverse of a matrix of at most three rows, transposed, and its determinant.
fn cofactors(m: &[f64], n: usize) -> (Vec<f64>, f64) {
    let at = |i: usize, j: usize| if i < n && j < n { m[i * n + j] } else { f64::from(u8::from(i == j)) };
    let minor = |i: usize, j: usize| {
        let [a, b] = [(i + 1) % 3, (i + 2) % 3];
        let [c, d] = [(j + 1) % 3, (j + 2) % 3];
        at(a, c) * at(b, d) - at(a, d) * at(b, c)
    };
    let det: f64 = (0..3).map(|j| at(0, j) * minor(0, j)).sum();
    ((0..n * n).map(|k| minor(k / n, k % n) / det).collect(), det)
}

/// Poisson's equation in Lagrange elements, zero on the boundary: its numbering, the matrix with the identity for
/// prescribed unknowns, and these.
struct Level {
    numbering: Numbering,
    matrix: CsrOperator,
    fixed: Vec<i32>,
    diagonal: Diagonal,
    spectrum: Spectrum,
}

impl Level {
    fn new(device: &dyn Device, mesh: &Mesh, degree: usize, ratio: f64) -> Result<Self, SolveError> {
        let numbering = Numbering::new(mesh, degree).unwrap();
        let (dim, k, n) = (mesh.shape().dim(), numbering.dofs_per_cell(), numbering.n_dofs());
        let on_boundary = numbering.on_facets(mesh, &mesh.boundary(), &|_| true);
        let fixed: Vec<i32> = on_boundary.iter().map(|placed| placed.dof).collect();
        let rule = rule(mesh.shape(), 2 * degree, QuadratureScheme::Default).unwrap();
        let table = numbering.element().tabulate(&rule.points, 1).unwrap();
        let map = numbering.dofs();
        let pattern = CsrPattern::of_rows(n, n, k, k, map, map).unwrap();
        let mut values = vec![0.0; pattern.columns.len()];
        let mut add = |i: i32, j: i32, value: f64| {
            let row = pattern.row_starts[i as usize] as usize..pattern.row_starts[i as usize + 1] as usize;
            let place = pattern.columns[row.clone()].binary_search(&j).unwrap();
            values[row.start + place] += value;
        };
        for cell in 0..mesh.n_cells() {
            let dofs = numbering.cell(cell);
            for (q, (point, weight)) in rule.points.chunks_exact(dim).zip(&rule.weights).enumerate() {
                let (inverse, det) = cofactors(&mesh.jacobian(cell, point), dim);
                let gradient = |i: usize| -> Vec<f64> {
                    let along =
                        |a: usize| (0..dim).map(|b| inverse[a * dim + b] * table.value(1 + b, q, i, 0)).sum();
                    (0..dim).map(along).collect()
                };
                let gradients: Vec<Vec<f64>> = (0..k).map(gradient).collect();
                for (i, a) in gradients.iter().enumerate() {
                    for (j, b) in gradients.iter().enumerate() {
                        let product: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                        if fixed.binary_search(&dofs[i]).is_err() && fixed.binary_search(&dofs[j]).is_err() {
                            add(dofs[i], dofs[j], weight * det.abs() * product);
                        }
                    }
                }
            }
        }
        fixed.iter().for_each(|dof| add(*dof, *dof, 1.0));
        let matrix = CsrOperator::new(device, &pattern)?;
        upload_values(device, matrix.values(), &values)?;
        let diagonal = Diagonal::identity(device, n)?;
        let mut queue = Queue::new();
        queue.push(diagonal.invert(&matrix));
        queue.run(device)?;
        let found = Eigenvalues::new(device, n, 12)?.of(&matrix, diagonal.values())?;
        Ok(Self { numbering, matrix, fixed, diagonal, spectrum: Spectrum::of_upper(&found, ratio)? })
    }
}

/// Iterations of conjugate gradients to 1e-8 on a unit mesh that is refined some times.
fn iterations(
    device: &dyn Device,
    shape: CellShape,
    degree: usize,
    times: usize,
) -> Result<usize, SolveError> {
    let mut meshes = vec![Mesh::unit(shape, 2).unwrap()];
    (0..times).for_each(|_| meshes.push(meshes[meshes.len() - 1].refined().unwrap()));
    let steps = degree.max(4);
    let ratio = 5.0 * steps as f64;
    let of_mesh = |mesh: &Mesh| Level::new(device, mesh, degree, ratio);
    let levels: Vec<Level> = meshes.iter().rev().map(of_mesh).collect::<Result<_, _>>()?;
    let transfer = |pair: &[Level]| {
        let [fine, coarse] = pair else { unreachable!() };
        let whole = Interpolation::of_refined(&coarse.numbering, &fine.numbering)?;
        Transfer::new(device, &whole.without(&fine.fixed, &coarse.fixed), coarse.numbering.n_dofs())
    };
    let transfers: Vec<Transfer> = levels.windows(2).map(transfer).collect::<Result<_, _>>()?;
    let smoothers: Vec<Chebyshev> = levels
        .iter()
        .map(|level| Chebyshev::new(device, level.numbering.n_dofs()))
        .collect::<Result<_, _>>()?;
    let coarsest = &levels[times].matrix;
    let unknowns = Unknowns { components: 1, points: vec![], dim: 0 };
    let hierarchy = Amg::new(device, &coarsest.block_rows()?, &unknowns, None)?;
    let solver = AmgPreconditioner { hierarchy: &hierarchy, operator: coarsest };
    let nested =
        levels.iter().zip(&transfers).zip(&smoothers).map(|((level, transfer), chebyshev)| NestedLevel {
            chebyshev,
            smoothing: Smoothing {
                operator: &level.matrix,
                inverse: level.diagonal.values(),
                spectrum: level.spectrum,
                steps,
            },
            transfer,
        });
    let cycle = NestedLevels::new(nested.collect(), &solver)?;
    let n = levels[0].numbering.n_dofs();
    let right: Vec<f64> = (0..n as i32)
        .map(|dof| {
            if levels[0].fixed.binary_search(&dof).is_ok() { 0.0 } else { (0.7548 * f64::from(dof)).fract() }
        })
        .collect();
    let (b, x) = (buffer_of(device, &right)?, device.allocate(8 * n as u64)?);
    let options = LinearOptions { relative: 1e-8, look_every: 1, ..LinearOptions::default() };
    let cg = ConjugateGradients::new(device, n, options)?;
    let report = cg.solve(&levels[0].matrix, Preconditioning::Operator(&cycle), &b, &x)?;
    assert!(report.converged(), "{shape} {degree} {times}: {report:?}");
    Ok(report.iterations())
}

/// The same kinds of problems take `kingpost.multigrid` in Python 5 to 7 iterations.
#[test]
fn iterations_do_not_grow_with_refinement() {
    for device in devices() {
        let cases = [
            (CellShape::Interval, 2, 3),
            (CellShape::Triangle, 1, 3),
            (CellShape::Triangle, 2, 2),
            (CellShape::Quadrilateral, 2, 2),
            (CellShape::Tetrahedron, 1, 2),
            (CellShape::Prism, 1, 2),
            (CellShape::Hexahedron, 1, 2),
        ];
        let few: &[usize] = if device.info().backend == Backend::C { &[2, 6] } else { &[0] };
        for (shape, degree, times) in of_run(cases, few) {
            let taken: Vec<usize> =
                (1..=times).map(|times| iterations(&*device, shape, degree, times).unwrap()).collect();
            assert!(taken.iter().all(|n| *n <= 8), "{shape} {degree}: {taken:?}");
        }
    }
}

/// The interpolation of a linear function is that function.
#[test]
fn interpolation_keeps_functions_of_the_coarse_space() {
    for shape in CellShape::ALL.into_iter().filter(|shape| *shape != CellShape::Pyramid) {
        let coarse = Mesh::unit(shape, 2).unwrap();
        let fine = coarse.refined().unwrap();
        let [below, above] =
            [(&coarse, 2), (&fine, 2)].map(|(mesh, degree)| Numbering::new(mesh, degree).unwrap());
        let function =
            |x: &[f64]| 1.0 + x.iter().enumerate().map(|(k, x)| (k as f64 + 0.5) * x * x).sum::<f64>();
        let values = |numbering: &Numbering, mesh: &Mesh| -> Vec<f64> {
            numbering.dof_points(mesh).chunks_exact(shape.dim()).map(function).collect()
        };
        let (from, to) = (values(&below, &coarse), values(&above, &fine));
        let rows = Interpolation::of_refined(&below, &above).unwrap();
        for (row, expected) in to.iter().enumerate() {
            let of_row = rows.row_starts[row] as usize..rows.row_starts[row + 1] as usize;
            let found: f64 = of_row.map(|k| rows.weights[k] * from[rows.columns[k] as usize]).sum();
            // 1e-14: sums of at most 27 terms of less than 10
            assert!((found - expected).abs() < 1e-13, "{shape}, row {row}: {found}, needed {expected}");
        }
        let components = rows.of_components(2);
        assert_eq!(components.columns.last().copied(), rows.columns.last().map(|column| 2 * column + 1));
    }
}

#[test]
fn what_makes_no_levels_is_refused() {
    let pyramids = Mesh::unit(CellShape::Pyramid, 1).unwrap();
    let of = Numbering::new(&pyramids, 1).unwrap();
    let refused = Interpolation::of_refined(&of, &of).unwrap_err().to_string();
    assert!(
        refused.starts_with("interpolation between elements on a pyramid: needed values at points"),
        "{refused}"
    );
    let square = Mesh::unit_square(2).unwrap();
    let of = Numbering::new(&square, 1).unwrap();
    let refused = Interpolation::of_refined(&of, &of).unwrap_err();
    assert!(matches!(refused, SolveError::Length { found: 8, needed: 32, .. }), "{refused}");
    let device = kingpost_runtime::open("c").unwrap();
    let [coarse, fine] =
        [&square, &square.refined().unwrap()].map(|mesh| Level::new(&*device, mesh, 1, 20.0).unwrap());
    let rows = Interpolation::of_refined(&coarse.numbering, &fine.numbering).unwrap();
    let transfer = Transfer::new(&*device, &rows, coarse.numbering.n_dofs()).unwrap();
    let chebyshev = Chebyshev::new(&*device, fine.numbering.n_dofs()).unwrap();
    let (operator, inverse) = (&fine.matrix, fine.diagonal.values());
    let smoothing = Smoothing { operator, inverse, spectrum: fine.spectrum, steps: 4 };
    let level = NestedLevel { chebyshev: &chebyshev, smoothing, transfer: &transfer };
    let refused = NestedLevels::new(vec![level], &fine.matrix).err().unwrap();
    assert!(
        matches!(refused, SolveError::Length { what: "coarser level", found: 25, needed: 9 }),
        "{refused}"
    );
}
