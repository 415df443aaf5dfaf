//! Boundary value problems, assembled and solved on devices: matrices against an evaluation of the
//! form that shares no code with lowering and code generation, solutions against what is known.

#![allow(clippy::unwrap_used)]

use crate::support::devices;
use kingpost::forms::element::{CellShape, ElementFamily};
use kingpost::forms::form::{
    FunctionSpace, Inputs, action, coefficient, dS, ds, dx, grad, inner, jump, test, trial,
};
use kingpost::forms::lowering::{LoweredKernel, LoweringOptions, MatrixResult, MeshForm};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::Numbering;
use kingpost::forms::reference;
use kingpost::forms::sparse::{CsrPattern, EntryOrder};
use kingpost::forms::strategies::{ConstantCells, OwnedRows, PointTiles};
use kingpost::kernels::BoundaryValueProblem;
use kingpost::runtime::{Backend, Device, buffer_of, download_values, open};
use kingpost::solve::{
    Arrays, AssemblyStrategy, Constraints, CsrOperator, DeviceForm, FormOperator, FormPrograms, LinearChoice,
    LinearOptions, MatrixAssembly, NewtonOptions, NewtonReason, NewtonReport, Operator, PreconditionerKind,
    PrescribedValues, Queue, run,
};
use kingpost::solve::{BoundaryValueSetup, BoundaryValueSystem};
use kingpost::tuning::known::of_any_mesh;
use kingpost::{CsrMatrix, Mapping, Random};
use kingpost_sample::{is_long_run, of_run, seed};

/// For processors and for cards.
fn both() -> [Mapping; 2] {
    [PointTiles { cells: 8, sums: 16 }.into(), card()]
}

fn card() -> Mapping {
    ConstantCells { cells: 64 }.into()
}

const TABLE: AssemblyStrategy = AssemblyStrategy::LookupTable;

fn mappings(_: &LoweredKernel) -> Vec<Mapping> {
    both().to_vec()
}

/// The tangent of a problem on a mesh at a small random field.
struct Assembly {
    problem: BoundaryValueProblem,
    mesh: Mesh,
    degree: usize,
    u: Vec<f64>,
    /// Entries that owners of rows have room for at least.
    room: usize,
    order: EntryOrder,
}

impl Assembly {
    fn new(problem: BoundaryValueProblem, mesh: Mesh, degree: usize, seed: u64) -> Self {
        let n = Numbering::new(&mesh, degree).unwrap().n_dofs()
            * problem.space(mesh.shape(), degree).components();
        let u = Random::new(seed).numbers(n).into_iter().map(|x| 0.02 * x).collect();
        Self { problem, mesh, degree, u, room: 0, order: EntryOrder::Rows }
    }

    fn inputs(&self) -> Inputs {
        Inputs::new().field("u", self.u.clone())
    }

    /// Some columns, all if there are few: the action on unit vectors.
    fn reference(&self) -> Vec<(usize, Vec<f64>)> {
        let space = self.problem.space(self.mesh.shape(), self.degree);
        let form = action(self.problem.tangent(&space), coefficient("du", &space));
        let column = |j: usize| {
            let mut unit = vec![0.0; self.u.len()];
            unit[j] = 1.0;
            let inputs = self.inputs().field("du", unit).of(&form);
            (j, reference::action(&form, &self.mesh, &inputs).unwrap())
        };
        // in short runs of large matrices, too
        let few = self.problem.is_linear() && (is_long_run() || self.u.len() <= 25);
        let step = if few { 1 } else { 7 };
        (0..self.u.len()).step_by(step).map(column).collect()
    }

    /// The matrix in the memory of the device.
    fn on_device(&self, device: &dyn Device, strategy: AssemblyStrategy, mapping: &Mapping) -> CsrMatrix {
        let space = self.problem.space(self.mesh.shape(), self.degree);
        let lowered = |matrix| {
            let options = LoweringOptions::new("tangent").with_matrix(matrix);
            MeshForm::new(&self.problem.tangent(&space), &options).unwrap()
        };
        let longest = lowered(MatrixResult::Sparse).patterns(&self.mesh).unwrap()[0].longest_row();
        let form = lowered(strategy.matrix(longest.max(self.room)));
        let programs = FormPrograms::compile(device, form, &|_| vec![mapping.clone()]).unwrap();
        let patterns = programs.form().patterns(&self.mesh).unwrap();
        let patterns: Vec<CsrPattern> = patterns
            .into_iter()
            .map(|p| if p.order() == EntryOrder::UpperRows { p } else { p.ordered(self.order) })
            .collect();
        let inputs = self.inputs().of(programs.form().form());
        let form = MatrixAssembly::new(
            device,
            &programs,
            &self.mesh,
            &inputs,
            &patterns,
            &["u"],
            &mut Arrays::default(),
        )
        .unwrap();
        let matrix = CsrOperator::new(device, &patterns[0]).unwrap();
        let u = buffer_of(device, &self.u).unwrap();
        let mut calls = Vec::new();
        form.assemble(&[&u], matrix.values(), &mut calls); // poison
        let before = device.traffic();
        run(device, &calls).unwrap();
        run(device, &calls).unwrap(); // again, whatever was there
        assert_eq!(device.traffic(), before, "nothing is copied");
        let values: Vec<f64> = download_values(device, matrix.values()).unwrap();
        let pattern = patterns.into_iter().next().unwrap();
        let n_columns = self.u.len();
        let values = match pattern.order() {
            EntryOrder::Rows | EntryOrder::Blocks => values,
            EntryOrder::UpperRows => {
                let (row_starts, columns) = pattern.upper_rows();
                assert_eq!(2 * values.len(), pattern.columns.len() + n_columns);
                let half = CsrMatrix { n_columns, row_starts, columns, values };
                let entry = |i: usize, j: usize| half.row(i.min(j)).find(|(k, _)| *k == i.max(j)).unwrap().1;
                let rows = pattern.row_starts.windows(2).enumerate();
                rows.flat_map(|(i, own)| (own[0]..own[1]).map(move |k| (i, k)))
                    .map(|(i, k)| entry(i, pattern.columns[k as usize] as usize))
                    .collect()
            }
        };
        CsrMatrix { n_columns, row_starts: pattern.row_starts, columns: pattern.columns, values }
    }
}

#[test]
fn matrices_equal_the_reference_entry_by_entry() {
    let seed = seed();
    let hyper = BoundaryValueProblem::Hyperelasticity;
    let cases = [
        Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_square(4).unwrap(), 2, seed),
        Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_cube(3).unwrap(), 1, seed),
        Assembly::new(hyper, Mesh::unit_cube(2).unwrap(), 1, seed),
        Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_cube(1).unwrap(), 3, seed),
        Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_cube(2).unwrap(), 2, seed),
        Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_cube(1).unwrap(), 4, seed),
    ];
    for case in of_run(cases, &[1, 2]) {
        let columns = case.reference();
        let largest =
            columns.iter().flat_map(|(_, column)| column).fold(0.0_f64, |most, x| most.max(x.abs()));
        for (device, strategy) in each() {
            let owned = [Mapping::from(OwnedRows { owners: 16 }), card()];
            let mappings = if strategy == AssemblyStrategy::OWNED_ROWS { owned } else { both() };
            // compilers take long for the loops of high degrees, that of OpenCL for all
            let one_of_opencl = device.info().backend == Backend::OpenCl && !is_long_run();
            if one_of_opencl && !case.problem.is_linear() {
                continue; // ten seconds
            }
            for mapping in mappings.into_iter().skip(usize::from(case.degree > 2 || one_of_opencl)) {
                let matrix = case.on_device(&*device, strategy, &mapping);
                let mut dense = vec![vec![0.0; case.u.len()]; case.u.len()];
                for (i, row) in dense.iter_mut().enumerate() {
                    matrix.row(i).for_each(|(j, value)| row[j] = value);
                }
                for (j, column) in &columns {
                    for (i, expected) in column.iter().enumerate() {
                        let error = (dense[i][*j] - expected).abs() / largest;
                        let what = format!("{} P{}, {strategy}, {mapping}", case.problem, case.degree);
                        let name = &device.info().name;
                        // sums of a dozen products over two dozen cells
                        assert!(error <= 1e-12, "{what} on {name}: [{i}, {j}] off by {error:e}, seed {seed}");
                    }
                }
            }
        }
    }
}

/// Four, two and one place of an entry in a number.
#[test]
fn places_of_owned_rows_are_packed_as_their_length_allows() {
    let seed = seed();
    let mut case = Assembly::new(BoundaryValueProblem::Hyperelasticity, Mesh::unit_cube(1).unwrap(), 1, seed);
    for device in devices() {
        let of = |case: &Assembly, strategy| case.on_device(&*device, strategy, &card());
        let expected = of(&case, TABLE).values;
        let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        for room in [0, 129, 32_769] {
            // what is private to a work-item of a card is not that large
            let is_c = device.info().backend == Backend::C;
            if room > 129 && !is_c || room == 0 && !is_c && !is_long_run() {
                continue;
            }
            case.room = room;
            let found = of(&case, AssemblyStrategy::OWNED_ROWS).values;
            let error = found.iter().zip(&expected).fold(0.0_f64, |e, (a, b)| e.max((a - b).abs()));
            // sums of a dozen products over two dozen cells
            assert!(error <= 1e-12 * largest, "{room} on {}: {error:e}, seed {seed}", device.info().name);
        }
    }
}

/// The same entries by rows and by blocks of three by three.
#[test]
fn entries_stand_by_blocks_where_that_is_asked_for() {
    let seed = seed();
    let mut case = Assembly::new(BoundaryValueProblem::Hyperelasticity, Mesh::unit_cube(2).unwrap(), 1, seed);
    let space = case.problem.space(case.mesh.shape(), case.degree);
    let options = LoweringOptions::new("tangent").with_matrix(MatrixResult::Sparse);
    let form = MeshForm::new(&case.problem.tangent(&space), &options).unwrap();
    let blocks = form.patterns(&case.mesh).unwrap()[0].by_blocks();
    assert_eq!((blocks.extents, blocks.row_starts.len()), ([3, 3], 28));
    for device in devices() {
        let by_rows = case.on_device(&*device, TABLE, &card());
        let largest = by_rows.values.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let strategies = [TABLE, AssemblyStrategy::Partial, AssemblyStrategy::Rowwise];
        let few: &[usize] = if device.info().backend == Backend::C { &[0, 2] } else { &[1] };
        for strategy in of_run(strategies, few) {
            case.order = EntryOrder::Blocks;
            let by_blocks = case.on_device(&*device, strategy, &card()).values;
            case.order = EntryOrder::Rows;
            for dof in 0..27 {
                for block in blocks.row_starts[dof] as usize..blocks.row_starts[dof + 1] as usize {
                    for (i, j) in (0..9).map(|k| (k / 3, k % 3)) {
                        let column = 3 * blocks.columns[block] as usize + j;
                        let expected = by_rows.row(3 * dof + i).find(|(c, _)| *c == column).unwrap().1;
                        let error = (by_blocks[9 * block + 3 * i + j] - expected).abs() / largest;
                        // sums of a dozen products over two dozen cells
                        assert!(error <= 1e-12, "{strategy}: [{dof}, {block}] off by {error:e}, seed {seed}");
                    }
                }
            }
        }
    }
    for strategy in [AssemblyStrategy::Full, AssemblyStrategy::OWNED_ROWS] {
        let form = MeshForm::new(
            &case.problem.tangent(&space),
            &LoweringOptions::new("tangent").with_matrix(strategy.matrix(45)),
        );
        let form = form.unwrap();
        let patterns = form.patterns(&case.mesh).unwrap();
        let patterns: Vec<CsrPattern> = patterns.into_iter().map(|p| p.ordered(EntryOrder::Blocks)).collect();
        let inputs = case.inputs().of(form.form());
        let error = form.bind_to(0, &case.mesh, &inputs, &patterns).unwrap_err().to_string();
        assert!(error.contains("entries by blocks") && error.contains("lookup table"), "{error}");
    }
}

/// The diagonal alone, without the matrix.
#[test]
fn the_diagonal_is_that_of_the_matrix() {
    let seed = seed();
    for case in [
        Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_cube(2).unwrap(), 2, seed),
        Assembly::new(BoundaryValueProblem::Hyperelasticity, Mesh::unit_cube(2).unwrap(), 1, seed),
    ] {
        let space = case.problem.space(case.mesh.shape(), case.degree);
        let options = LoweringOptions::new("diagonal").with_matrix(MatrixResult::Diagonal);
        for device in devices() {
            let form = MeshForm::new(&case.problem.tangent(&space), &options).unwrap();
            let programs = FormPrograms::compile(&*device, form, &mappings).unwrap();
            let inputs = case.inputs().of(programs.form().form());
            let mut arrays = Arrays::default();
            let form =
                DeviceForm::new(&*device, &programs, &case.mesh, &inputs, &[], &["u"], &mut arrays).unwrap();
            let u = buffer_of(&*device, &case.u).unwrap();
            let sums = buffer_of(&*device, &vec![0.0; case.u.len()]).unwrap();
            let mut calls = Vec::new();
            form.add_to(&[&u], &sums, &mut calls);
            run(&*device, &calls).unwrap();
            let found: Vec<f64> = download_values(&*device, &sums).unwrap();
            let matrix = case.on_device(&*device, TABLE, &card());
            for (i, found) in found.iter().enumerate() {
                let expected = matrix.row(i).find(|(j, _)| *j == i).unwrap().1;
                // sums of a dozen products over two dozen cells
                assert!(
                    (found - expected).abs() <= 1e-12 * expected.abs(),
                    "{i}: {found} {expected}, seed {seed}"
                );
            }
        }
    }
}

/// Unknowns that follow prescribed ones a step later come to the same solution, one iteration
/// later.
#[test]
fn prescribed_updates_may_be_left_out_of_the_right_hand_side() {
    let device = open("c").unwrap();
    let mesh = Mesh::unit_cube(3).unwrap();
    let solved = |lifts| {
        let systems = LinearOptions { relative: 1e-12, ..LinearOptions::default() };
        let options = NewtonOptions { lifts, systems, ..NewtonOptions::default() };
        let problem = BoundaryValueProblem::Twist;
        let mut system = BoundaryValueSystem::new(
            &*device,
            &BoundaryValueSetup {
                problem,
                mesh: &mesh,
                degree: 1,
                assembly: TABLE,
                options: NewtonOptions::default(),
                mappings: &of_any_mesh().unwrap(),
            },
        )
        .unwrap();
        system.restart(options).unwrap();
        let report = system.solve(&mut |_, _| ()).unwrap();
        assert!(report.converged(), "{}", report.reason);
        (report, system.solution().unwrap())
    };
    let ((with, expected), (without, found)) = (solved(true), solved(false));
    assert_eq!((with.steps.len(), without.steps.len()), (4, 5));
    // rows of prescribed unknowns are those of the identity
    assert_eq!(without.steps[0].linear.iterations(), 1);
    for (a, b) in found.iter().zip(&expected) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
}

/// Devices with the strategies of assembly: C and OpenCL alternately, in long runs both with each.
fn each() -> impl Iterator<Item = (Box<dyn Device>, AssemblyStrategy)> {
    AssemblyStrategy::ALL.into_iter().enumerate().flat_map(|(s, strategy)| {
        let devices = devices().into_iter().enumerate().filter(move |(d, _)| is_long_run() || d % 2 == s % 2);
        devices.map(move |(_, device)| (device, strategy))
    })
}

/// Assembled, prescribed and solved by the entries on and above the diagonal.
#[test]
fn the_half_of_a_matrix_solves_as_all_of_it() {
    let (device, mesh) = (open("c").unwrap(), Mesh::unit_square(5).unwrap());
    let systems = LinearOptions { relative: 1e-12, ..LinearOptions::default() };
    let options = NewtonOptions { linear: true, systems, ..NewtonOptions::default() };
    let system = |assembly, options| {
        BoundaryValueSystem::new(
            &*device,
            &BoundaryValueSetup {
                problem: BoundaryValueProblem::Poisson,
                mesh: &mesh,
                degree: 2,
                assembly,
                options,
                mappings: &of_any_mesh().unwrap(),
            },
        )
    };
    let solved = |assembly| {
        let mut system = system(assembly, options).unwrap();
        let report = system.solve(&mut |_, _| ()).unwrap();
        assert!(report.converged(), "{}", report.reason);
        (system.entries(), system.solution().unwrap())
    };
    let ((all, expected), (half, found)) = (solved(TABLE), solved(AssemblyStrategy::SymmetricHalf));
    assert_eq!(2 * half, all + expected.len());
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let error = found.iter().zip(&expected).fold(0.0_f64, |e, (a, b)| e.max((a - b).abs()));
    // residuals of 1e-12 of the right-hand side
    assert!(error <= 1e-10 * largest, "{error:e}");
    let amg = LinearChoice { preconditioner: PreconditionerKind::Amg, ..LinearChoice::default() };
    let refused = system(AssemblyStrategy::SymmetricHalf, NewtonOptions { solver: amg, ..options });
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("preconditioner amg: found the half of a symmetric matrix"), "{error}");
}

#[test]
fn a_form_that_is_not_symmetric_has_no_half() {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 2);
    let options = LoweringOptions::new("half").with_matrix(MatrixResult::SymmetricHalf);
    let along = grad(coefficient("w", &space));
    let convection = inner(along, grad(trial(&space))) * test(&space) * dx();
    let error = MeshForm::new(&convection, &options).unwrap_err().to_string();
    assert!(error.contains("found a matrix of which that is not proved"), "{error}");
    let jump = jump(trial(&space)) * jump(test(&space)) * dS();
    let error = MeshForm::new(&jump, &options).unwrap_err().to_string();
    assert!(error.contains("found a matrix of which that is not proved"), "{error}");
    let half = |n, rows: &[i32], columns: &[i32]| {
        CsrPattern::of_rows(n, n, 2, 2, rows, columns).unwrap().upper().unwrap_err().to_string()
    };
    assert!(half(2, &[0, 0], &[0, 0]).contains("entity 0 with degree of freedom 0 twice"));
    assert!(half(3, &[0, 1], &[1, 2]).contains("found an entry at [0, 1] and none at [1, 0]"));
}

/// Terms that are stored are added in their order, and so are those of a row by its owner: the
/// entries are the same in each run.
#[test]
fn what_is_not_atomic_is_added_the_same_way_each_time() {
    let case = Assembly::new(BoundaryValueProblem::Poisson, Mesh::unit_cube(3).unwrap(), 2, seed());
    let device = open("opencl").unwrap();
    for strategy in [AssemblyStrategy::Partial, AssemblyStrategy::OWNED_ROWS] {
        let once = || case.on_device(&*device, strategy, &card()).values;
        assert_eq!(once(), once());
    }
}

#[test]
fn owners_of_rows_need_room_and_no_facets() {
    let space = FunctionSpace::scalar(CellShape::Tetrahedron, 1);
    let lowered = |form, longest| {
        let options = LoweringOptions::new("mass").with_matrix(AssemblyStrategy::OWNED_ROWS.matrix(longest));
        MeshForm::new(&form, &options)
    };
    let facets = lowered(trial(&space) * test(&space) * ds(), 9).unwrap_err().to_string();
    assert!(facets.contains("found an integral over facets, needed cells"), "{facets}");
    let mesh = Mesh::unit_cube(2).unwrap();
    let mass = lowered(trial(&space) * test(&space) * dx(), 9).unwrap();
    let error = mass.bind(0, &mesh, &Inputs::new()).unwrap_err().to_string();
    let needed = "rows of at most [15] entries, and the form was lowered for rows of at most [9]; lower it";
    assert!(error.contains(needed), "{error}");
    let edges = FunctionSpace::of(CellShape::Tetrahedron, ElementFamily::NedelecFirst, 1);
    let form = inner(trial(&edges), test(&edges)) * dx();
    let options = LoweringOptions::new("edges").with_matrix(AssemblyStrategy::OWNED_ROWS.matrix(20));
    let error = MeshForm::new(&form, &options).unwrap_err().to_string();
    assert!(error.contains("oriented by their cells"), "{error}");
}

#[test]
fn rows_over_facets_and_other_results_are_refused() {
    let cell = CellShape::Triangle;
    let space = FunctionSpace::scalar(cell, 1);
    let form = trial(&space) * test(&space) * ds();
    let options = LoweringOptions::new("facets").with_matrix(AssemblyStrategy::Rowwise.matrix(0));
    let error = MeshForm::new(&form, &options).unwrap_err().to_string();
    assert!(error.contains("assembly row by row: found an integral over facets, needed cells"), "{error}");

    let diagonal = LoweringOptions::new("mass").with_matrix(MatrixResult::Diagonal);
    let form = MeshForm::new(&(trial(&space) * test(&space) * dx()), &diagonal).unwrap();
    let device = open("c").unwrap();
    let programs = FormPrograms::compile(&*device, form, &mappings).unwrap();
    let mesh = Mesh::unit_square(1).unwrap();
    let (inputs, mut arrays) = (Inputs::new(), Arrays::default());
    let error =
        MatrixAssembly::new(&*device, &programs, &mesh, &inputs, &[], &[], &mut arrays).err().unwrap();
    assert!(error.to_string().starts_with("the form has no matrix"), "{error}");
}

/// The matrix-free operator is the matrix, with rows and columns of prescribed unknowns eliminated.
#[test]
fn a_form_applied_is_its_matrix() {
    let seed = seed();
    let case = Assembly::new(BoundaryValueProblem::Hyperelasticity, Mesh::unit_cube(2).unwrap(), 1, seed);
    let matrix = case.on_device(&*open("c").unwrap(), AssemblyStrategy::LookupTable, &both()[0]);
    let n = case.u.len();
    let fixed = [0, 1, 2, 40, 80];
    let x = Random::new(seed ^ 1).numbers(n);
    let mut inner = x.clone();
    fixed.iter().for_each(|k| inner[*k] = 0.0);
    let mut expected = matrix.multiply(&inner);
    fixed.iter().for_each(|k| expected[*k] = x[*k]);
    let device = open("c").unwrap();
    let device = &*device;
    let space = case.problem.space(case.mesh.shape(), 1);
    let form = action(case.problem.tangent(&space), coefficient("du", &space));
    let form = MeshForm::new(&form, &LoweringOptions::new("action")).unwrap();
    let programs = FormPrograms::compile(device, form, &mappings).unwrap();
    let inputs = case.inputs().field("du", x.clone());
    let mut arrays = Arrays::default();
    let form =
        DeviceForm::new(device, &programs, &case.mesh, &inputs, &[], &["u", "du"], &mut arrays).unwrap();
    let tangent = MeshForm::new(&case.problem.tangent(&space), &LoweringOptions::new("tangent")).unwrap();
    let pattern = tangent.patterns(&case.mesh).unwrap().remove(0);
    let values =
        PrescribedValues { unknowns: fixed.iter().map(|k| *k as i32).collect(), values: vec![0.0; 5] };
    let constraints = Constraints::new(device, &pattern, &values).unwrap();
    let [u, at] = [&case.u, &x].map(|v| buffer_of(device, v).unwrap());
    let y = device.allocate(8 * n as u64).unwrap(); // poison
    let operator = FormOperator::new(device, n, &form, &constraints, &u).unwrap();
    let mut queue = Queue::new();
    operator.apply(&at, &y, &mut queue);
    queue.run(device).unwrap();
    let found: Vec<f64> = download_values(device, &y).unwrap();
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= 1e-12 * largest, "{}: {worst:e}, seed {seed}", device.info().name);
    assert_eq!(download_values::<f64>(device, &at).unwrap(), x, "x is as before");
}

#[test]
fn poisson_is_solved_on_the_square() {
    let options = NewtonOptions {
        linear: true,
        systems: LinearOptions { relative: 1e-12, ..LinearOptions::default() },
        ..NewtonOptions::default()
    };
    let mesh = Mesh::unit_square(16).unwrap();
    for device in of_run(devices(), &[0]) {
        let mut system = BoundaryValueSystem::new(
            &*device,
            &BoundaryValueSetup {
                problem: BoundaryValueProblem::Poisson,
                mesh: &mesh,
                degree: 2,
                assembly: TABLE,
                options,
                mappings: &of_any_mesh().unwrap(),
            },
        )
        .unwrap();
        let before = device.traffic();
        let report = system.solve(&mut |_, _| ()).unwrap();
        assert!(report.converged() && report.steps.len() == 1, "{report:?}");
        assert_eq!(device.traffic().since(before).to_device, 0);
        let u = system.solution().unwrap();
        let points = system.numbering().dof_points(&mesh);
        let middle = points.chunks_exact(2).position(|x| x[0] == 0.5 && x[1] == 0.5).unwrap();
        // the sum of the series of -Δu = 1 in the middle; the P2 error at a node is of order h^4
        assert!((u[middle] - 0.073_671_353_3).abs() < 1e-6, "{}", u[middle]);
        let edge = points.chunks_exact(2).zip(&u).filter(|(x, _)| x.iter().any(|x| *x == 0.0 || *x == 1.0));
        assert!(edge.clone().count() == 128 && edge.into_iter().all(|(_, u)| *u == 0.0));
    }
}

#[test]
fn hyperelasticity_converges_quadratically() {
    let mesh = Mesh::unit_cube(2).unwrap();
    let problem = BoundaryValueProblem::Hyperelasticity;
    let mut solutions = Vec::new();
    // all strategies have their entries compared above
    for (device, strategy) in of_run(each(), &[0, 2]) {
        let mut system = BoundaryValueSystem::new(
            &*device,
            &BoundaryValueSetup {
                problem,
                mesh: &mesh,
                degree: 1,
                assembly: strategy,
                options: NewtonOptions::default(),
                mappings: &of_any_mesh().unwrap(),
            },
        )
        .unwrap();
        let before = device.traffic();
        let mut told = 0;
        let report = system.solve(&mut |k, _| told = k).unwrap();
        let traffic = device.traffic().since(before);
        assert!(report.converged(), "{report:?}");
        assert!((4..=9).contains(&report.steps.len()) && told == report.steps.len(), "{report:?}");
        assert!(report.steps.iter().all(|step| step.linear.converged() && step.length == 1.0));
        let updates: Vec<f64> = report.steps.iter().map(|step| step.update).collect();
        assert!(updates[updates.len() - 1] < 1e-12, "{updates:?}");
        assert_eq!(traffic.to_device, 0);
        assert!(traffic.to_host < 16 * 1024, "{traffic:?}");
        let u = system.solution().unwrap();
        let points = system.numbering().dof_points(&mesh);
        for (x, u) in points.chunks_exact(3).zip(u.chunks_exact(3)) {
            if x[0] == 0.0 {
                assert_eq!(u, [0.0; 3]);
            } else if x[0] == 1.0 {
                let (sine, cosine) = (std::f64::consts::PI / 3.0).sin_cos();
                let (y, z) = (x[1] - 0.5, x[2] - 0.5);
                let turned = [0.0, 0.5 * (y * cosine - z * sine - y), 0.5 * (y * sine + z * cosine - z)];
                assert!(u.iter().zip(turned).all(|(a, b)| (a - b).abs() < 1e-14), "{u:?} {turned:?}");
            }
        }
        solutions.push(u);
    }
    for other in &solutions[1..] {
        let worst = other.iter().zip(&solutions[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-9, "{worst:e}"); // residuals of 1e-5 in each linear system
    }
}

#[test]
fn what_does_not_converge_has_a_history() {
    let device = open("c").unwrap();
    let mesh = Mesh::unit_cube(2).unwrap();
    let problem = BoundaryValueProblem::Hyperelasticity;
    let solved = |options| {
        let mut system = BoundaryValueSystem::new(
            &*device,
            &BoundaryValueSetup {
                problem,
                mesh: &mesh,
                degree: 1,
                assembly: TABLE,
                options,
                mappings: &of_any_mesh().unwrap(),
            },
        )
        .unwrap();
        system.solve(&mut |_, _| ()).unwrap()
    };
    let report = solved(NewtonOptions { max_iterations: 2, ..NewtonOptions::default() });
    assert_eq!((report.reason, report.steps.len()), (NewtonReason::TooMany, 2));
    let systems = LinearOptions { max_iterations: 2, ..LinearOptions::default() };
    let report = solved(NewtonOptions { systems, ..NewtonOptions::default() });
    assert!(matches!(report.reason, NewtonReason::Linear(_)), "{report:?}");
    assert_eq!(report.steps[0].linear.residuals.len(), 3);
}

/// The cube whose cells are small at its faces, where prescribed values end and strains are
/// singular.
fn fine_at_faces() -> Mesh {
    let cube = Mesh::unit_cube(6).unwrap();
    let lines = [0.0, 1.0 / 62.0, 6.0 / 62.0, 0.5, 56.0 / 62.0, 61.0 / 62.0, 1.0];
    let coordinates = cube.coordinates().iter().map(|x| lines[(x * 6.0).round() as usize]).collect();
    let cells = (0..cube.n_cells()).flat_map(|cell| cube.cell(cell).iter().copied()).collect();
    Mesh::new(CellShape::Tetrahedron, coordinates, cells, None).unwrap()
}

/// The whole motion at once would turn cells inside out.
#[test]
fn cells_that_would_turn_inside_out_shorten_a_load_step() {
    let device = open("c").unwrap();
    let mesh = fine_at_faces();
    let problem = BoundaryValueProblem::Hyperelasticity;
    let options = NewtonOptions::default();
    let mut system = BoundaryValueSystem::new(
        &*device,
        &BoundaryValueSetup {
            problem,
            mesh: &mesh,
            degree: 1,
            assembly: TABLE,
            options,
            mappings: &of_any_mesh().unwrap(),
        },
    )
    .unwrap();
    let mut solved = |load_steps| {
        system.restart(NewtonOptions { load_steps, ..options }).unwrap();
        let before = device.traffic();
        let report = system.solve(&mut |_, _| ()).unwrap();
        assert!(report.converged() && report.load == 1.0, "{report:?}");
        assert_eq!(device.traffic().since(before).to_device, 0);
        (report, system.solution().unwrap())
    };
    let ((whole, expected), (parts, found)) = (solved(1), solved(2));
    let loads = |report: &NewtonReport| {
        let mut loads: Vec<f64> = report.steps.iter().map(|step| step.load).collect();
        loads.dedup();
        loads
    };
    assert_eq!((loads(&whole), loads(&parts)), (vec![0.5, 1.0], vec![0.5, 1.0]));
    assert_eq!((whole.steps[0].length, parts.steps[0].length), (0.5, 1.0));
    for (a, b) in found.iter().zip(&expected) {
        // the last updates are below 1e-12
        assert!((a - b).abs() < 1e-10, "{a} {b}");
    }
}

#[test]
fn problems_are_for_their_cells() {
    let device = open("c").unwrap();
    let refused = |mesh: Mesh| {
        let problem = BoundaryValueProblem::Hyperelasticity;
        let system = BoundaryValueSystem::new(
            &*device,
            &BoundaryValueSetup {
                problem,
                mesh: &mesh,
                degree: 1,
                assembly: TABLE,
                options: NewtonOptions::default(),
                mappings: &of_any_mesh().unwrap(),
            },
        );
        system.err().unwrap().to_string()
    };
    assert!(refused(Mesh::unit_square(2).unwrap()).contains("needed tetrahedra"));
    let cubes = Mesh::unit(CellShape::Hexahedron, 2).unwrap();
    assert!(refused(cubes).contains("needed triangles or tetrahedra"));
}
