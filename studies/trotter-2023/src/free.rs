//! Conjugate gradients with a matrix and without one, side by side.

use crate::assembly::{MeasureError, Prepared};
use crate::candidates::lowered;
use crate::record::{Blocked, Free};
use kingpost::Random;
use kingpost::forms::form::{FormError, Inputs, action, coefficient};
use kingpost::forms::lowering::{LoweredKernel, LoweringOptions, MatrixResult, MeshForm};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::{Numbering, NumberingOrder};
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::{Device, Timing, TimingOptions, buffer_of, download_values, upload_values};
use kingpost::solve::{
    Arrays, BlockCsrOperator, ConjugateGradients, Constraints, CsrOperator, DeviceForm, Diagonal,
    FormOperator, FormPrograms, LinearOptions, MatrixAssembly, Operator, Preconditioning, PrescribedValues,
    Queue, SolveError, facet_dofs, run,
};
use kingpost::tuning::known::{Sought, for_device, without_setup};

const PROBLEM: BoundaryValueProblem = BoundaryValueProblem::Poisson;
/// Iterations that are timed.
const ITERATIONS: usize = 64;
/// Largest difference of the solutions of a given number of iterations, relative: roundings grow with them.
const TOLERANCE: f64 = 1e-11;

/// The kernels of a form under the best mappings that are known for the device.
fn programs(device: &dyn Device, form: MeshForm) -> Result<FormPrograms, SolveError> {
    FormPrograms::compile(device, form, &|lowered: &LoweredKernel| {
        let known = for_device(lowered, Sought { case: None, dim: 3 }, device, &[]);
        without_setup(known).into_iter().map(|known| known.mapping).collect()
    })
}

/// Times products and iterations of conjugate gradients on Poisson's equation with its matrix, and with
/// the action of its form, zero on the boundary. Both have Jacobi's
/// preconditioner.
///
/// # Errors
/// What the device refuses; solutions that differ.
pub fn measure(device: &dyn Device, on: &Prepared, degree: usize, seed: u64) -> Result<Free, MeasureError> {
    let (order, arrays) = (NumberingOrder::OF_MATRICES, &mut Arrays::default());
    let (matrix, constraints) = system(device, on, degree, arrays)?;
    let n = matrix.size();
    let jacobi = Diagonal::identity(device, n)?;
    run(device, &[jacobi.invert(&matrix)])?;

    let space = PROBLEM.space(on.mesh().shape(), degree);
    let form = action(PROBLEM.tangent(&space), coefficient("du", &space));
    let acting = programs(device, MeshForm::new(&form, &LoweringOptions::new("action"))?.in_order(order))?;
    let inputs = Inputs::new().field("du", vec![0.0; n]).in_order(order).of(acting.form().form());
    let acts = DeviceForm::new(device, &acting, on.mesh(), &inputs, &[], &["u", "du"], arrays)?;
    let b = buffer_of(device, &Random::new(seed).numbers(n))?;
    let free = FormOperator::new(device, n, &acts, &constraints, &b)?;

    let options = LinearOptions { relative: 0.0, max_iterations: ITERATIONS - 1, ..LinearOptions::default() };
    let solver = ConjugateGradients::new(device, n, options)?;
    let x = device.allocate(8 * n as u64)?;
    let times = TimingOptions { warm_up: 2, min_runs: 9, min_seconds: 0.0, max_runs: 9 };
    let each = |operator: &dyn Operator| -> Result<(f64, f64, Vec<f64>), MeasureError> {
        let mut queue = Queue::new();
        operator.apply(&b, &x, &mut queue);
        let product = Timing::sample(&times, || queue.run(device))?;
        let mut solved = Vec::new();
        for _ in 0..3 {
            solved.push(solver.solve(operator, Preconditioning::Diagonal(jacobi.values()), &b, &x)?.seconds);
        }
        solved.sort_by(f64::total_cmp);
        Ok((product.median_s, solved[1] / ITERATIONS as f64, download_values(device, &x)?))
    };
    let (matrix_product_s, matrix_iteration_s, with) = each(&matrix)?;
    let (free_product_s, free_iteration_s, without) = each(&free)?;
    let largest = with.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let far = with.iter().zip(&without).fold(0.0_f64, |far, (a, b)| far.max((a - b).abs()));
    let error = far / largest;
    if error.is_nan() || error > TOLERANCE {
        return Err(MeasureError::Wrong { what: "the solution without a matrix", error, needed: TOLERANCE });
    }
    Ok(Free {
        divisions: on.divisions(),
        degree,
        unknowns: n,
        entries: matrix.n_entries(),
        mappings: acting.mappings().map(ToString::to_string).collect(),
        device: device.info().into(),
        matrix_product_s,
        matrix_iteration_s,
        free_product_s,
        free_iteration_s,
        error,
    })
}

/// The matrix of Poisson's equation, zero on the boundary, and what prescribes that.
///
/// # Errors
/// What the device refuses.
pub fn system<'m>(
    device: &dyn Device,
    on: &'m Prepared,
    degree: usize,
    arrays: &mut Arrays<'m>,
) -> Result<(CsrOperator, Constraints), MeasureError> {
    let form = lowered(PROBLEM, degree, MatrixResult::Sparse)?;
    let [pattern, ..] = on.patterns() else {
        return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
    };
    let tangent = programs(device, form)?;
    let order = NumberingOrder::OF_MATRICES;
    let inputs = Inputs::new().in_order(order).of(tangent.form().form());
    let assembly = MatrixAssembly::new(device, &tangent, on.mesh(), &inputs, on.patterns(), &[], arrays)?;
    let matrix = CsrOperator::new(device, pattern)?;
    // with one prescribed unknown, roundings of products grow to 1e-8 within these iterations at P2
    let numbering = Numbering::new_in_order(on.mesh(), degree, order)?;
    let boundary = facet_dofs(on.mesh(), &numbering, &on.mesh().boundary(), &|_| true);
    let values = vec![0.0; boundary.len()];
    let constraints = Constraints::new(device, pattern, &PrescribedValues { unknowns: boundary, values })?;
    let mut calls = Vec::new();
    assembly.assemble(&[], matrix.values(), &mut calls);
    calls.extend(constraints.eliminate(matrix.values()));
    run(device, &calls)?;
    drop(calls);
    Ok((matrix, constraints))
}

/// Times products with the matrix of the hyperelastic problem on a uniform mesh, row by row of scalars
/// and of blocks. The entries are random numbers, the same in both.
///
/// # Errors
/// What the device refuses; products that differ.
pub fn measure_blocks(
    device: &dyn Device,
    divisions: usize,
    degree: usize,
    seed: u64,
) -> Result<Blocked, MeasureError> {
    let mesh = Mesh::unit_cube(divisions)?;
    let form = lowered(BoundaryValueProblem::Hyperelasticity, degree, MatrixResult::Sparse)?;
    let patterns = form.patterns(&mesh)?;
    let [pattern, ..] = &patterns[..] else {
        return Err(FormError::Bug("a bilinear form without a pattern".into()).into());
    };
    let by_blocks = pattern.by_blocks();
    let (side, n) = (by_blocks.extents[0], pattern.row_starts.len() - 1);
    let entries = Random::new(seed).numbers(pattern.columns.len());
    let scalars: Vec<f64> = (0..n)
        .flat_map(|row| {
            let [first, last] = [0, 1].map(|k| by_blocks.row_starts[row / side + k] as usize);
            (first * side..last * side).map(move |at| (at / side * side + row % side) * side + at % side)
        })
        .map(|place| entries[place])
        .collect();
    let rows = CsrOperator::new(device, pattern)?;
    let blocks = BlockCsrOperator::new(device, &by_blocks)?;
    upload_values(device, rows.values(), &scalars)?;
    upload_values(device, blocks.values(), &entries)?;
    let x = buffer_of(device, &Random::new(seed.wrapping_add(1)).numbers(n))?;
    let y = device.allocate(8 * n as u64)?;
    let times = TimingOptions { warm_up: 2, min_runs: 15, min_seconds: 0.0, max_runs: 15 };
    let each = |operator: &dyn Operator| -> Result<(f64, Vec<f64>), MeasureError> {
        let mut queue = Queue::new();
        operator.apply(&x, &y, &mut queue);
        let timing = Timing::sample(&times, || queue.run(device))?;
        Ok((timing.median_s, download_values(device, &y)?))
    };
    let ((rows_s, expected), (blocks_s, found)) = (each(&rows)?, each(&blocks)?);
    let largest = expected.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let far = found.iter().zip(&expected).fold(0.0_f64, |far, (a, b)| far.max((a - b).abs()));
    let error = far / largest;
    if error.is_nan() || error > crate::assembly::TOLERANCE {
        let needed = crate::assembly::TOLERANCE;
        return Err(MeasureError::Wrong { what: "a product with blocks", error, needed });
    }
    let (unknowns, entries) = (n, entries.len());
    Ok(Blocked {
        divisions,
        degree,
        unknowns,
        entries,
        device: device.info().into(),
        rows_s,
        blocks_s,
        error,
    })
}
