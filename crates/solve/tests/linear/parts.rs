//! Conjugate gradients over parts of a mesh, each with a device of its own, against one device.

#![allow(clippy::unwrap_used, clippy::needless_range_loop)] // rows and columns go by number

use crate::systems::{Numbers, TIGHT, eliminated, operator, symmetric};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_fem::sparse::{CsrPart, CsrPattern};
use kingpost_runtime::{Buffer, Device, buffer_of, download_values, open, upload_values};
use kingpost_sample::{is_long_run, of_run, seed};
use kingpost_solve::{
    Communicator, ConjugateGradients, Diagonal, Exchange, ExchangeCosts, Gmres, GmresOptions, Halo,
    HostCommunicator, LinearChoice, LinearMethod, LinearReport, LinearSolver, PartLayout, PartMesh, PartRows,
    Partition, PreconditionerKind, Preconditioning, Queue, SolveError, SystemMatrix, Unknowns, layouts, run,
};

/// What solves a system in parts.
#[derive(Clone, Copy)]
enum By {
    ConjugateGradients,
    Gmres,
    /// By name.
    Solver(LinearChoice),
}

/// A mesh with a random matrix that has the pattern of its elements.
struct Whole {
    mesh: Mesh,
    numbering: Numbering,
    components: usize,
    dense: Vec<Vec<f64>>,
    pattern: CsrPattern,
}

fn pattern_of(numbering: &Numbering, components: usize) -> CsrPattern {
    let (n, k, map) = (numbering.n_dofs(), numbering.dofs_per_cell(), numbering.dofs());
    let part = CsrPart { extents: [k, k], rows: map, columns: map };
    CsrPattern::of_components([n, n], [components, components], &[part]).unwrap().remove(0)
}

impl Whole {
    fn new(mesh: Mesh, degree: usize, components: usize, numbers: &mut Numbers) -> Self {
        let numbering = Numbering::new(&mesh, degree).unwrap();
        let pattern = pattern_of(&numbering, components);
        let dense = symmetric(&pattern, 0.05, numbers);
        Self { mesh, numbering, components, dense, pattern }
    }

    fn parts(&self, n: usize) -> (Vec<PartMesh>, Vec<PartLayout>) {
        let dim = self.mesh.shape().dim();
        let partition = Partition::bisect(&self.numbering.dof_points(&self.mesh), dim, n).unwrap();
        let mesh = |part| PartMesh::new(&self.mesh, &self.numbering, &partition, part).unwrap();
        let meshes: Vec<PartMesh> = (0..n).map(mesh).collect();
        let layouts = layouts(&partition, &meshes, self.components);
        (meshes, layouts)
    }

    /// The unknown of the whole system that one of a part's mesh is.
    fn whole(&self, mesh: &PartMesh, unknown: i32) -> usize {
        let c = self.components;
        mesh.dofs[unknown as usize / c] as usize * c + unknown as usize % c
    }

    /// Solves a part, whose part of the solution is put into `x`.
    fn solve_part(
        &self,
        device: &dyn Device,
        (mesh, layout): (&PartMesh, &PartLayout),
        communicator: &dyn Communicator,
        b: &[f64],
        (by, overlaps): (By, bool),
    ) -> Result<(LinearReport, Vec<(usize, f64)>), SolveError> {
        let pattern = pattern_of(&mesh.numbering, self.components);
        let of = |unknown: i32| self.whole(mesh, unknown);
        let entries: Vec<f64> = (0..pattern.row_starts.len() - 1)
            .flat_map(|row| {
                let places = pattern.row_starts[row]..pattern.row_starts[row + 1];
                places.map(move |k| (row, k))
            })
            .map(|(row, k)| self.dense[of(row as i32)][of(pattern.columns[k as usize])])
            .collect();
        let mut matrix = PartRows::new(device, &pattern, layout)?;
        matrix.overlaps = overlaps;
        upload_values(device, matrix.values(), &entries)?;
        let n = layout.owned.len();
        run(device, &matrix.gather())?;
        let of_mesh: Vec<f64> = (0..pattern.row_starts.len() as i32 - 1).map(|u| b[of(u)]).collect();
        let (of_mesh, right, x) =
            (buffer_of(device, &of_mesh)?, device.allocate(8 * n as u64)?, device.allocate(8 * n as u64)?);
        run(device, &[matrix.halo.restrict(&of_mesh, &right)])?;
        let diagonal = Diagonal::identity(device, n)?;
        run(device, &[diagonal.invert(matrix.rows.own())])?;
        let report = match by {
            By::ConjugateGradients => {
                let solver = ConjugateGradients::new(device, n, TIGHT)?;
                let preconditioning = Preconditioning::Diagonal(diagonal.values());
                solver.solve_over(communicator, &matrix, preconditioning, &right, &x)?
            }
            By::Gmres => {
                let options = GmresOptions { relative: TIGHT.relative, ..GmresOptions::default() };
                let mut solver = Gmres::new(device, n, options)?;
                solver.solve_over(communicator, &matrix, Some(&diagonal), &right, &x)?
            }
            By::Solver(choice) => {
                let matrix = SystemMatrix::Part(Box::new(matrix));
                // components that are no displacements need no points
                let unknowns = Unknowns { components: self.components, points: Vec::new(), dim: 3 };
                let mut solver = LinearSolver::of_part(device, (&pattern, layout), &unknowns, choice, TIGHT)?;
                solver.prepare_over(communicator, matrix.own(), None)?;
                solver.solve_over(communicator, &matrix, &right, &x)?
            }
        };
        let found: Vec<f64> = download_values(device, &x)?;
        Ok((report, layout.owned.iter().map(|unknown| of(*unknown)).zip(found).collect()))
    }

    fn solve(&self, devices: &[&dyn Device], b: &[f64], how: (By, bool)) -> (LinearReport, Vec<f64>) {
        let (meshes, layouts) = self.parts(devices.len());
        let communicators = HostCommunicator::of_devices(devices);
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = communicators
                .into_iter()
                .map(|communicator| {
                    let part = communicator.rank();
                    let of_part = (&meshes[part], &layouts[part]);
                    scope.spawn(move || {
                        self.solve_part(devices[part], of_part, &communicator, b, how).unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut x = vec![f64::NAN; b.len()];
        for (report, values) in &results {
            // except for the time, all parts have the same report
            assert_eq!((report.reason, &report.residuals), (results[0].0.reason, &results[0].0.residuals));
            for (unknown, value) in values {
                assert!(x[*unknown].is_nan(), "unknown {unknown} has two owners");
                x[*unknown] = *value;
            }
        }
        (results[0].0.clone(), x)
    }

    /// On one device, without parts.
    fn solve_whole(&self, device: &dyn Device, b: &[f64]) -> LinearReport {
        let n = b.len();
        let matrix = operator(device, &self.pattern, &self.dense);
        let diagonal = Diagonal::identity(device, n).unwrap();
        run(device, &[diagonal.invert(&matrix)]).unwrap();
        let (right, x) = (buffer_of(device, b).unwrap(), device.allocate(8 * n as u64).unwrap());
        let solver = ConjugateGradients::new(device, n, TIGHT).unwrap();
        solver.solve(&matrix, Preconditioning::Diagonal(diagonal.values()), &right, &x).unwrap()
    }
}

fn devices(n: usize) -> Vec<Box<dyn Device>> {
    (0..n).map(|part| open(["c", "opencl"][part % 2]).unwrap()).collect()
}

#[test]
fn parts_have_the_solution_of_the_whole() {
    let seed = seed();
    let mut numbers = Numbers(seed);
    let pool = devices(if is_long_run() { 5 } else { 3 }); // each compiles the kernels once
    let cases = [
        (Mesh::unit_square(7).unwrap(), 1, 1),
        (Mesh::unit_square(4).unwrap(), 3, 2),
        (Mesh::unit_cube(3).unwrap(), 2, 1),
    ];
    for (mesh, degree, components) in of_run(cases, &[0, 2]) {
        let whole = Whole::new(mesh, degree, components, &mut numbers);
        let b = numbers.list(whole.dense.len());
        let expected = eliminated(whole.dense.clone(), b.clone());
        let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let alone = whole.solve_whole(&*pool[0], &b);
        assert!(alone.converged() && alone.iterations() > 10, "seed {seed}: {alone:?}");
        let divisions = [(2, true), (3, true), (1, true), (2, false), (5, true)];
        // all of them in long runs, as many as there are devices for one mesh
        let taken = if is_long_run() {
            5
        } else if degree == 1 {
            4
        } else {
            2
        };
        for (parts, overlaps) in divisions.into_iter().take(taken) {
            let devices: Vec<&dyn Device> = pool[..parts].iter().map(|device| &**device).collect();
            let (report, x) = whole.solve(&devices, &b, (By::ConjugateGradients, overlaps));
            let what = format!("P{degree}, {components} components, {parts} parts, seed {seed}");
            assert!(report.converged(), "{what}: {report:?}");
            assert!(report.iterations().abs_diff(alone.iterations()) <= 1, "{what}: {report:?} {alone:?}");
            // a residual of 1e-12 times the condition, below 1e3
            let worst = x.iter().zip(&expected).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(worst <= 1e-10 * largest, "{what}: {worst:e}");
        }
    }
}

#[test]
fn every_solver_of_parts_has_the_solution_of_the_whole() {
    let seed = seed();
    let mut numbers = Numbers(seed);
    let pool = devices(2);
    let devices: Vec<&dyn Device> = pool.iter().map(|device| &**device).collect();
    let whole = Whole::new(Mesh::unit_square(7).unwrap(), 1, 1, &mut numbers);
    // of different sizes in the two parts
    let mut b = numbers.list(whole.dense.len());
    b.iter_mut().zip(1..).for_each(|(b, k)| *b *= f64::from(k));
    let expected = eliminated(whole.dense.clone(), b.clone());
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let of = |method, preconditioner| By::Solver(LinearChoice { method, preconditioner });
    let (cg, gmres) = (LinearMethod::ConjugateGradients, LinearMethod::Gmres);
    let jacobi = of(cg, PreconditionerKind::Jacobi);
    // squares of the last one are zero, and parts have to scale by the same power of two
    let cases = [
        (By::Gmres, 1.0),
        (jacobi, 1.0),
        (jacobi, 1e-180),
        (of(gmres, PreconditionerKind::Jacobi), 1.0),
        (of(gmres, PreconditionerKind::Amg), 1.0),
    ];
    for (by, size) in of_run(cases, &[0, 2, 4]) {
        let of_size: Vec<f64> = b.iter().map(|b| b * size).collect();
        let (report, x) = whole.solve(&devices, &of_size, (by, true));
        assert!(report.converged() && report.iterations() > 3, "{size:e}, seed {seed}: {report:?}");
        let worst = x.iter().zip(&expected).fold(0.0_f64, |most, (a, b)| most.max((a / size - b).abs()));
        assert!(worst <= 1e-10 * largest, "{size:e}, seed {seed}: {worst:e}");
    }
    let (meshes, layouts) = whole.parts(2);
    let pattern = pattern_of(&meshes[0].numbering, 1);
    let unknowns = Unknowns { components: 1, points: Vec::new(), dim: 2 };
    for (method, preconditioner) in
        [(LinearMethod::BiCgStab, PreconditionerKind::Jacobi), (cg, PreconditionerKind::Chebyshev)]
    {
        let choice = LinearChoice { method, preconditioner };
        let refused = LinearSolver::of_part(devices[0], (&pattern, &layouts[0]), &unknowns, choice, TIGHT)
            .err()
            .unwrap();
        assert!(matches!(refused, SolveError::PartsChoice { .. }), "{refused}");
    }
}

/// With a block a part and all unknowns in blocks of it: fewer iterations than by the diagonal, and
/// the same solution.
#[test]
fn blocks_of_parts_take_fewer_iterations_than_the_diagonal() {
    let seed = seed();
    let mut numbers = Numbers(seed);
    let pool = devices(3);
    let devices: Vec<&dyn Device> = pool.iter().map(|device| &**device).collect();
    let whole = Whole::new(Mesh::unit_square(6).unwrap(), 1, 2, &mut numbers);
    let b = numbers.list(whole.dense.len());
    let expected = eliminated(whole.dense.clone(), b.clone());
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let kinds = [PreconditionerKind::Jacobi, PreconditionerKind::BlockJacobi, PreconditionerKind::Amg];
    let iterations = kinds.map(|preconditioner| {
        let choice = LinearChoice { method: LinearMethod::ConjugateGradients, preconditioner };
        let (report, x) = whole.solve(&devices, &b, (By::Solver(choice), true));
        assert!(report.converged(), "{choice}, seed {seed}: {report:?}");
        let worst = x.iter().zip(&expected).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
        assert!(worst <= 1e-10 * largest, "{choice}, seed {seed}: {worst:e}");
        report.iterations()
    });
    assert!(iterations[2] < iterations[0], "seed {seed}: {iterations:?}");
}

#[test]
fn costs_of_exchanges_are_those_of_messages() {
    let pool = devices(2);
    let devices: Vec<&dyn Device> = pool.iter().map(|device| &**device).collect();
    let costs = ExchangeCosts::measure(&devices, Exchange::Host).unwrap();
    // a megabyte through the memory of the host takes longer than a number
    assert!(costs.byte_s > 0.0 && costs.byte_s < 1e-3 && costs.latency_s < 1.0, "{costs:?}");
    let alone = ExchangeCosts::measure(&devices[..1], Exchange::Host).unwrap();
    assert_eq!(alone, ExchangeCosts { launch_s: 0.0, sum_s: 0.0, latency_s: 0.0, byte_s: 0.0 });
}

#[test]
fn unknowns_are_divided_evenly_and_cuts_are_straight() {
    let points: Vec<f64> =
        (0..9).flat_map(|i| (0..4).flat_map(move |j| [f64::from(i), f64::from(j)])).collect();
    for (parts, counts) in [(1, vec![36]), (2, vec![18, 18]), (3, vec![12; 3]), (5, vec![7, 7, 7, 7, 8])] {
        let partition = Partition::bisect(&points, 2, parts).unwrap();
        let mut found = partition.counts().to_vec();
        found.sort_unstable();
        assert_eq!(found, counts);
        for part in 0..parts {
            let own = (0..36).filter(|dof| partition.owner(*dof) == part);
            assert!(own.enumerate().all(|(place, dof)| partition.place(dof) == place));
        }
    }
    // of two parts, the middle column is shared, its lower half left
    let two = Partition::bisect(&points, 2, 2).unwrap();
    let of = |i: i32, j: i32| two.owner(4 * i + j);
    assert!((0..4).all(|i| (0..4).all(|j| of(i, j) == 0 && of(i + 5, j) == 1)));
    assert_eq!([of(4, 0), of(4, 1), of(4, 2), of(4, 3)], [0, 0, 1, 1]);

    let refused = |parts| Partition::bisect(&points, 2, parts).unwrap_err().to_string();
    assert_eq!(refused(37), "36 degrees of freedom make no 37 parts; use fewer devices");
    assert_eq!(refused(0), "36 degrees of freedom make no 0 parts; use fewer devices");
}

#[test]
fn ghosts_are_what_others_send() {
    let whole = Whole::new(Mesh::unit_square(5).unwrap(), 2, 2, &mut Numbers(seed()));
    let (meshes, layouts) = whole.parts(4);
    for (part, (mesh, layout)) in meshes.iter().zip(&layouts).enumerate() {
        assert_eq!(layout.owned.len() + layout.ghosts.len(), mesh.dofs.len() * 2);
        for (owner, range) in &layout.receives {
            let sent = &layouts[*owner].sends.iter().find(|(to, _)| *to == part).unwrap().1;
            let there: Vec<usize> = sent
                .iter()
                .map(|place| whole.whole(&meshes[*owner], layouts[*owner].owned[*place as usize]))
                .collect();
            let here: Vec<usize> =
                layout.ghosts[range.clone()].iter().map(|unknown| whole.whole(mesh, *unknown)).collect();
            assert_eq!(here, there, "of part {owner} in part {part}");
        }
    }
}

#[test]
fn a_part_that_fails_ends_the_others() {
    let whole = Whole::new(Mesh::unit_square(4).unwrap(), 1, 1, &mut Numbers(seed()));
    let b = vec![1.0; whole.dense.len()];
    let (meshes, layouts) = whole.parts(2);
    let devices = devices(2);
    let devices: Vec<&dyn Device> = devices.iter().map(|device| &**device).collect();
    let errors: Vec<SolveError> = std::thread::scope(|scope| {
        let (meshes, layouts, whole, b, devices) = (&meshes, &layouts, &whole, &b, &devices);
        let threads: Vec<_> = HostCommunicator::of_devices(devices)
            .into_iter()
            .map(|communicator| {
                let part = communicator.rank();
                // the second part has the first one's rows, and its own ghosts do not come
                let layout = PartLayout { receives: vec![(0, 0..1)], ..layouts[part].clone() };
                let layout = if part == 1 { layout } else { layouts[part].clone() };
                scope.spawn(move || {
                    let of_part = (&meshes[part], &layout);
                    whole
                        .solve_part(devices[part], of_part, &communicator, b, (By::ConjugateGradients, true))
                        .unwrap_err()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(matches!(errors[0], SolveError::PartEnded { part: 1 }), "{}", errors[0]);
    assert!(matches!(errors[1], SolveError::Length { what: "ghosts", needed: 1, .. }), "{}", errors[1]);
}

#[test]
fn the_host_moves_what_is_exchanged_and_nothing_else() {
    let whole = Whole::new(Mesh::unit_square(6).unwrap(), 1, 1, &mut Numbers(seed()));
    let (_, layouts) = whole.parts(2);
    let device = open("c").unwrap();
    let halo = Halo::new(&*device, &layouts[0]).unwrap();
    // 49 vertices: 24 here, and the neighbours of the cut
    assert_eq!((layouts[0].owned.len(), halo.n_sent()), (24, layouts[0].sends[0].1.len()));
    let pair = [&*device, &*device];
    let [first, second] = HostCommunicator::of_devices(&pair).try_into().ok().unwrap();
    let v = buffer_of(&*device, &[1.0; 24]).unwrap();
    let before = device.traffic();
    let mut queue = Queue::new();
    queue.push(halo.pack(&v));
    queue.start(halo.wire());
    first.perform(&queue).unwrap();
    let traffic = device.traffic().since(before);
    assert_eq!((traffic.to_device, traffic.to_host), (0, 8 * halo.n_sent() as u64));
    let (a, b) = (device.allocate(24).unwrap(), device.allocate(24).unwrap());
    upload_values(&*device, &a, &[1.0, 2.0, 3.0]).unwrap();
    upload_values(&*device, &b, &[10.0, 20.0, 30.0]).unwrap();
    // what is sent waits in its channel, so the sums of the second part come after its ghosts
    let receiving = Halo::new(&*device, &layouts[1]).unwrap();
    let mut queue = Queue::new();
    queue.finish(receiving.wire());
    second.perform(&queue).unwrap();
    let ghosts: Vec<f64> = download_values(&*device, receiving.ghosts()).unwrap();
    assert_eq!(ghosts, vec![1.0; layouts[1].ghosts.len()]);
    let sum = |communicator: HostCommunicator<'_>, vector: &Buffer| {
        let mut queue = Queue::new();
        queue.sum(vector, 1);
        communicator.perform(&queue).unwrap();
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| sum(first, &a));
        sum(second, &b);
        one.join().unwrap();
    });
    let found: [Vec<f64>; 2] = [&a, &b].map(|v| download_values(&*device, v).unwrap());
    assert_eq!(found, [vec![1.0, 22.0, 3.0], vec![10.0, 22.0, 30.0]]);
}
