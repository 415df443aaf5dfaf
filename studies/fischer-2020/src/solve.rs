//! Conjugate gradients, of which the action of a problem is a part.

use crate::lattice::Lattice;
use crate::measure::{Action, MeasureError};
use crate::record::{ConjugateGradients, Record};
use crate::scatter::Applied;
use crate::vectors::Vectors;
use kingpost::Random;
use kingpost::interp::{Memory, interpret};
use kingpost::runtime::{Arg, Buffer, Device, Timing, TimingOptions, buffer_of, download_values};
use kingpost::solve::{Call, run};

/// Largest relative difference of solutions after [`FEW`] iterations, and of residuals.
const TOLERANCE: f64 = 1e-10;
/// Iterations that are compared with those of the host.
const FEW: usize = 4;

/// Actions, and the kernels on vectors between them.
pub struct Solver<'a, 'd> {
    device: &'d dyn Device,
    action: &'a Action<'d>,
    vectors: Vectors,
    seed: u64,
    error: f64,
}

impl<'a, 'd> Solver<'a, 'd> {
    /// Compiles the kernels on vectors, and compares a few iterations on 27 cells with those of the
    /// interpreter.
    ///
    /// # Errors
    /// Code that the device refuses, a wrong result.
    pub fn new(device: &'d dyn Device, action: &'a Action<'d>, seed: u64) -> Result<Self, MeasureError> {
        let vectors = Vectors::new(device)?;
        let mut solver = Self { device, action, vectors, seed, error: 0.0 };
        solver.error = solver.difference_from_host()?;
        within("the solution after four iterations", solver.error)?;
        Ok(solver)
    }

    /// The largest difference of a solution, in units of its largest value.
    fn difference_from_host(&self) -> Result<f64, MeasureError> {
        let system = self.system(self.action.lattice(3), FEW)?;
        system.start()?;
        system.iterate()?;
        let found: Vec<f64> = download_values(self.device, &system.x)?;
        let expected = system.on_the_host()?;
        let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        Ok(largest_of(expected.iter().zip(&found).map(|(a, b)| (a - b) / largest)))
    }

    /// Times iterations on a lattice, after comparing the residual that they carry with that of the
    /// solution they give.
    ///
    /// # Errors
    /// A device without room for it, a wrong result.
    pub fn measure(
        &self,
        divisions: usize,
        iterations: usize,
        options: &TimingOptions,
    ) -> Result<Record, MeasureError> {
        let lattice = self.action.lattice(divisions);
        let needed = 2 * iterations;
        if lattice.free() < needed {
            return Err(MeasureError::TooFew { free: lattice.free(), iterations, needed });
        }
        let system = self.system(lattice, iterations)?;
        let of_one = iterations as f64;
        let options = TimingOptions { min_seconds: options.min_seconds / of_one, ..*options };
        let timing = Timing::sample(&options, || {
            system.start()?;
            Ok::<_, MeasureError>(system.iterate()? / of_one)
        })?;
        let (reduction, residual_error) = system.residuals()?;
        within("the residual", residual_error)?;
        let solve = ConjugateGradients { iterations, reduction, residual_error };
        let error = self.action.error().max(self.error);
        Ok(Record {
            solve: Some(solve),
            error,
            ..self.action.record(lattice, &timing, system.action.launches())
        })
    }

    /// Random right-hand side, nothing at the boundary.
    fn system(&self, lattice: Lattice, iterations: usize) -> Result<System<'_, 'd>, MeasureError> {
        let mut b = Random::new(self.seed).numbers(lattice.free());
        b.resize(lattice.unknowns(), 0.0);
        let kernel = self.action.kernel();
        let memory: Memory = lattice.memory(kernel).map_err(MeasureError::Arguments)?;
        let memory = memory.value("u", b.clone()).value("y", vec![0.0; b.len()]);
        let device = self.device;
        let action = Applied::new(self.action, memory)?;
        let vector = || device.allocate(8 * b.len() as u64);
        let sums = || device.allocate(8 * (iterations as u64 + 1));
        Ok(System {
            solver: self,
            lattice,
            iterations,
            action,
            b: buffer_of(device, &b)?,
            x: vector()?,
            r: vector()?,
            rr: sums()?,
            pq: sums()?,
        })
    }
}

/// The largest in absolute value; what is NaN counts as infinite.
fn largest_of(differences: impl Iterator<Item = f64>) -> f64 {
    differences.map(|d| if d.is_nan() { f64::INFINITY } else { d.abs() }).fold(0.0, f64::max)
}

fn within(what: &'static str, error: f64) -> Result<(), MeasureError> {
    if error < TOLERANCE { Ok(()) } else { Err(MeasureError::Wrong { what, error, needed: TOLERANCE }) }
}

/// Vectors on the device. Those of the action are `p`, the direction, and `q`, the operator on it.
struct System<'a, 'd> {
    solver: &'a Solver<'a, 'd>,
    lattice: Lattice,
    iterations: usize,
    action: Applied,
    b: Buffer,
    x: Buffer,
    r: Buffer,
    rr: Buffer,
    pq: Buffer,
}

type Args<'a> = Vec<(&'static str, Arg<'a>)>;

impl System<'_, '_> {
    fn sizes(&self, k: usize) -> Args<'_> {
        let sizes = [
            ("n_free", self.lattice.free()),
            ("n_dofs", self.lattice.unknowns()),
            ("n_sums", self.iterations + 1),
            ("k", k),
        ];
        sizes.map(|(name, n)| (name, Arg::Param(n as i64))).to_vec()
    }

    fn with<'b>(&'b self, k: usize, arrays: &[(&'static str, &'b Buffer)]) -> Args<'b> {
        let arrays = arrays.iter().map(|(name, buffer)| (*name, Arg::Buffer(buffer)));
        self.sizes(k).into_iter().chain(arrays).collect()
    }

    /// The first residual and direction, for a solution of zero.
    fn start(&self) -> Result<(), MeasureError> {
        let device = self.solver.device;
        let (p, q) = (&self.action.u, &self.action.y);
        device.copy(&self.b, &self.r)?;
        device.copy(&self.b, p)?;
        for zero in [&self.x, q, &self.rr, &self.pq] {
            device.fill(zero, 0)?;
        }
        let args = self.with(0, &[("v", &self.r), ("w", &self.r), ("sums", &self.rr)]);
        Ok(device.launch(&self.solver.vectors.dot, &args)?)
    }

    /// All iterations; returns their seconds.
    fn iterate(&self) -> Result<f64, MeasureError> {
        let Vectors { dot, residual, direction } = &self.solver.vectors;
        let (p, q) = (&self.action.u, &self.action.y);
        let Self { x, r, rr, pq, .. } = self;
        let arrays: [(_, &[(_, _)]); 3] = [
            (dot, &[("v", p), ("w", q), ("sums", pq)]),
            (residual, &[("pq", pq), ("q", q), ("r", r), ("rr", rr)]),
            (direction, &[("rr", rr), ("pq", pq), ("r", r), ("x", x), ("p", p), ("q", q)]),
        ];
        let mut calls = Vec::new();
        for k in 0..self.iterations {
            self.action.add_to(&mut calls);
            calls.extend(
                arrays.iter().map(|(executable, arrays)| Call::new(executable, self.with(k, arrays))),
            );
        }
        Ok(run(self.solver.device, &calls)?)
    }

    /// By how much the residual was reduced, and the difference between that of the iteration and
    /// that of its solution, in units of the right-hand side.
    fn residuals(&self) -> Result<(f64, f64), MeasureError> {
        let device = self.solver.device;
        let (p, q) = (&self.action.u, &self.action.y);
        device.copy(&self.x, p)?;
        device.fill(q, 0)?;
        self.action.run(device)?;
        let squares: Vec<f64> = download_values(device, &self.rr)?;
        let [b, ax, r]: [Vec<f64>; 3] = [
            download_values(device, &self.b)?,
            download_values(device, q)?,
            download_values(device, &self.r)?,
        ];
        let free = ..self.lattice.free();
        let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
        let apart = b[free].iter().zip(&ax[free]).zip(&r[free]).map(|((b, ax), r)| b - ax - r);
        let apart = apart.map(|x| x * x).sum::<f64>();
        let counted = squares.last().copied().unwrap_or(f64::NAN);
        let (first, last) = (square(&b), square(&r[free]));
        let worst = largest_of([(apart / first).sqrt(), (counted - last) / first].into_iter());
        Ok(((last / first).sqrt(), worst))
    }

    /// The same iterations with the interpreter's action.
    fn on_the_host(&self) -> Result<Vec<f64>, MeasureError> {
        let (n, free) = (self.lattice.unknowns(), self.lattice.free());
        let kernel = self.solver.action.kernel();
        let dot = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(v, w)| v * w).sum::<f64>();
        let mut r: Vec<f64> = download_values(self.solver.device, &self.b)?;
        let (mut x, mut p) = (vec![0.0; n], r.clone());
        for _ in 0..self.iterations {
            let memory = self.lattice.memory(kernel).map_err(MeasureError::Arguments)?;
            let mut memory = memory.value("u", p.clone()).value("y", vec![0.0; n]);
            interpret(kernel, &mut memory)?;
            let q = memory.f64s("y").unwrap_or_default();
            let square = dot(&r, &r);
            let alpha = square / dot(&p[..free], &q[..free]);
            for i in 0..free {
                x[i] += alpha * p[i];
                r[i] -= alpha * q[i];
            }
            let beta = dot(&r, &r) / square;
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
        }
        Ok(x)
    }
}
