//! Newton's method over parts.

use super::communicator::Guard;
use super::{Communicator, Halo, PartLayout, PartMatrix, PartMesh, PartSystem};
use crate::load::{Load, follow};
use crate::newton::NewtonEquations;
use crate::texts::{compiled, text};
use crate::{
    Call, ConjugateGradients, Constraints, DeviceForm, Diagonal, LinearReport, MatrixAssembly, NewtonOptions,
    NewtonReport, NewtonStep, Preconditioning, SolveError, Vectors,
};
use purlin_forms::import::CsrPattern;
use purlin_runtime::{Buffer, Device, Executable, buffer_of, download_values};
use std::time::Instant;

/// A functional over the cells that count for a part, each of which counts for one.
pub struct PartEnergy {
    form: DeviceForm,
    n: usize,
    n_mesh: usize,
    take: Executable,
    at: Buffer,
    u: Buffer,
}

impl PartEnergy {
    /// A form of one given array, whose degrees of freedom have the numbers `dofs` on the whole
    /// mesh and the same number of components, and are among those of the part's mesh.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernel.
    pub fn new(
        device: &dyn Device,
        form: DeviceForm,
        dofs: &[i32],
        on_mesh: &PartMesh,
        components: usize,
    ) -> Result<Self, SolveError> {
        let last = on_mesh.dofs.iter().max().map_or(0, |dof| *dof as usize + 1);
        let mut places = vec![0; last];
        for (place, dof) in on_mesh.dofs.iter().enumerate() {
            places[*dof as usize] = place;
        }
        let unknowns = |dof: &i32| {
            let place = places.get(*dof as usize).copied().unwrap_or(0);
            (0..components).map(move |k| (place * components + k) as i32)
        };
        let at: Vec<i32> = dofs.iter().flat_map(unknowns).collect();
        Ok(Self {
            form,
            n: at.len(),
            n_mesh: on_mesh.dofs.len() * components,
            take: compiled(device, text!("take"))?,
            u: device.allocate(8 * at.len() as u64)?,
            at: buffer_of(device, &at)?,
        })
    }

    /// Appends what adds the functional of `u` on the part's mesh to `sum`.
    fn add_to<'a>(&'a self, u: &'a Buffer, sum: &'a Buffer, calls: &mut Vec<Call<'a>>) {
        let sizes = [("n", self.n), ("n_from", self.n_mesh)];
        calls.push(Call::of(&self.take, &sizes, &[("at", &self.at), ("from", u), ("to", &self.u)]));
        self.form.add_to(&[&self.u], sum, calls);
    }
}

/// The equations of a part, on its mesh.
pub struct PartEquations {
    /// The residual, of one given array, the unknown.
    pub residual: DeviceForm,
    /// Its derivative, likewise.
    pub tangent: MatrixAssembly,
    /// Prescribed values, those of ghosts among them.
    pub constraints: Constraints,
    /// What the residual is the derivative of, if there is such.
    pub energy: Option<PartEnergy>,
}

/// Newton's method for a part, by conjugate gradients with the inverse of the diagonal or nothing.
///
/// The part assembles on its mesh, all of whose cells have an owned unknown, and takes its rows.
pub struct PartNewton<'d> {
    device: &'d dyn Device,
    /// When it stops.
    pub options: NewtonOptions,
    /// Whether products with owned columns run while ghosts are under way.
    pub overlaps: bool,
    by_jacobi: bool,
    equations: PartEquations,
    matrix: PartMatrix,
    halo: Halo,
    diagonal: Diagonal,
    solver: ConjugateGradients<'d>,
    on_mesh: Vectors<'d>,
    owned: Vectors<'d>,
    /// Entries of the matrix of the part's mesh.
    values: Buffer,
    /// Residual, right-hand side and update on the part's mesh, and of owned unknowns.
    of_mesh: [Buffer; 3],
    of_owned: [Buffer; 3],
    /// The residual of the start on the part's mesh and of owned unknowns, and the unknown that a
    /// load step starts from.
    loads: [Buffer; 2],
    kept: Buffer,
    sum: Buffer,
}

impl<'d> PartNewton<'d> {
    /// Equations whose matrix has this pattern on the part's mesh; `by_jacobi` says whether systems
    /// are preconditioned.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernels.
    pub fn new(
        device: &'d dyn Device,
        pattern: &CsrPattern,
        layout: &PartLayout,
        equations: PartEquations,
        options: NewtonOptions,
        by_jacobi: bool,
    ) -> Result<Self, SolveError> {
        let (n, n_owned) = (pattern.row_starts.len().saturating_sub(1), layout.owned.len());
        let (on_mesh, owned) = (Vectors::new(device, n)?, Vectors::new(device, n_owned)?);
        let three = |vectors: &Vectors<'_>| -> Result<[Buffer; 3], SolveError> {
            Ok([vectors.allocate()?, vectors.allocate()?, vectors.allocate()?])
        };
        Ok(Self {
            device,
            options,
            overlaps: true,
            by_jacobi,
            equations,
            matrix: PartMatrix::new(device, pattern, layout)?,
            halo: Halo::new(device, layout)?,
            diagonal: Diagonal::identity(device, n_owned)?,
            solver: ConjugateGradients::new(device, n_owned, options.systems)?,
            values: device.allocate(8 * pattern.columns.len() as u64)?,
            of_mesh: three(&on_mesh)?,
            of_owned: three(&owned)?,
            loads: [on_mesh.allocate()?, owned.allocate()?],
            kept: on_mesh.allocate()?,
            sum: device.allocate(8)?,
            on_mesh,
            owned,
        })
    }

    /// Its rows.
    #[must_use]
    pub const fn matrix(&self) -> &PartMatrix {
        &self.matrix
    }

    /// What it exchanges.
    #[must_use]
    pub const fn halo(&self) -> &Halo {
        &self.halo
    }

    /// Solves from what `u` holds on the part's mesh, together with the threads of the other parts,
    /// each of which calls this with its own part. All parts take the same steps, as those of
    /// [`crate::Newton::solve`]. Seconds are by the wall clock.
    ///
    /// # Errors
    /// A failing driver, a part that ended. The other parts end likewise.
    pub fn solve(
        &mut self,
        communicator: &dyn Communicator,
        u: &Buffer,
        progress: &mut dyn FnMut(usize, &NewtonStep),
    ) -> Result<NewtonReport, SolveError> {
        let mut guard = Guard::new(communicator);
        let options = self.options;
        let mut part = InPart { newton: self, communicator, u, load: Load::WHOLE };
        let report = follow(options, &mut part, progress)?;
        guard.is_done = true;
        Ok(report)
    }
}

struct InPart<'p, 'd> {
    newton: &'p PartNewton<'d>,
    communicator: &'p dyn Communicator,
    u: &'p Buffer,
    load: Load,
}

impl<'p> InPart<'p, '_> {
    /// The number that the kernels of all parts add up to.
    fn number(&self, calls: impl FnOnce(&'p Buffer) -> Vec<Call<'p>>) -> Result<f64, SolveError> {
        let sum = &self.newton.sum;
        self.newton.device.fill(sum, 0)?;
        self.communicator.run(&calls(sum))?;
        self.communicator.sum(&[sum], 0)?;
        self.communicator.wait()?;
        let sum: Vec<f64> = download_values(self.newton.device, sum)?;
        Ok(sum.first().copied().unwrap_or(f64::NAN))
    }

    /// The update on the part's mesh, with what other parts own.
    fn spread_update(&self) -> Result<(), SolveError> {
        let PartNewton { halo, of_owned: [_, _, update], of_mesh: [_, _, on_mesh], .. } = self.newton;
        self.communicator.run(&[halo.pack(update)])?;
        self.communicator.start_exchange(halo.wire())?;
        self.communicator.finish_exchange(halo.wire())?;
        self.communicator.run(&halo.prolong(update, on_mesh))
    }
}

impl NewtonEquations for InPart<'_, '_> {
    fn evaluate(&mut self) -> Result<f64, SolveError> {
        let PartNewton { device, equations, halo, owned, of_mesh, of_owned, loads, .. } = self.newton;
        let ([on_mesh, ..], [residual, ..]) = (of_mesh, of_owned);
        device.fill(on_mesh, 0)?;
        let mut calls = Vec::new();
        equations.residual.add_to(&[self.u], on_mesh, &mut calls);
        calls.push(equations.constraints.clear(on_mesh));
        if self.load.is_part() {
            calls.push(self.newton.on_mesh.axpy(-self.load.missing(), &loads[0], on_mesh));
        }
        calls.push(halo.restrict(on_mesh, residual));
        self.number(|sum| {
            calls.push(owned.square_to(residual, sum));
            calls
        })
        .map(f64::sqrt)
    }

    fn energy(&mut self) -> Result<Option<f64>, SolveError> {
        let energy = self.newton.equations.energy.as_ref();
        let of = |energy: &'_ _| {
            let energy: &PartEnergy = energy;
            self.number(|sum| {
                let mut calls = Vec::new();
                energy.add_to(self.u, sum, &mut calls);
                calls
            })
        };
        let Some(of_all) = energy.map(of).transpose()? else {
            return Ok(None);
        };
        if !self.load.is_part() {
            return Ok(Some(of_all));
        }
        // the right-hand side is free between systems
        let PartNewton { halo, owned, loads: [_, loads], of_owned: [_, at, _], .. } = self.newton;
        let work = self.number(|sum| vec![halo.restrict(self.u, at), owned.dot_to(loads, at, sum)])?;
        Ok(Some(of_all - self.load.missing() * work))
    }

    fn has_energy(&self) -> bool {
        self.newton.equations.energy.is_some()
    }

    fn linearise(&mut self) -> Result<(f64, f64, LinearReport), SolveError> {
        let newton = self.newton;
        let PartNewton { equations, matrix, halo, values, diagonal, .. } = newton;
        let PartEquations { tangent, constraints, .. } = equations;
        let ([residual, right, _], [_, own_right, update]) = (&newton.of_mesh, &newton.of_owned);
        let start = Instant::now();
        let mut calls = Vec::new();
        tangent.assemble(&[self.u], values, &mut calls);
        self.communicator.run(&calls)?;
        self.communicator.wait()?;
        let assembly_s = start.elapsed().as_secs_f64();
        newton.device.copy(residual, right)?;
        let mut calls =
            vec![newton.on_mesh.scale(-1.0, right), constraints.measure_gap(self.u, self.load.gap())];
        match newton.options.lifts {
            true => calls.extend(constraints.lift(values, right)),
            false => calls.push(constraints.set_gap(right)),
        }
        calls.extend(constraints.eliminate(values));
        calls.extend(matrix.gather(values));
        calls.push(halo.restrict(right, own_right));
        if newton.by_jacobi {
            calls.push(diagonal.invert(matrix.own()));
        }
        self.communicator.run(&calls)?;
        let (communicator, overlaps) = (self.communicator, newton.overlaps);
        let preconditioning = Preconditioning::Diagonal(diagonal.values());
        let system = PartSystem { matrix, halo, communicator, preconditioning, overlaps };
        let linear = newton.solver.solve_part(&system, own_right, update)?;
        self.spread_update()?;
        Ok((assembly_s, 0.0, linear))
    }

    fn update_norm(&mut self) -> Result<f64, SolveError> {
        let PartNewton { owned, of_owned: [_, _, update], .. } = self.newton;
        self.number(|sum| vec![owned.square_to(update, sum)]).map(f64::sqrt)
    }

    fn slope(&mut self) -> Result<f64, SolveError> {
        let PartNewton { owned, of_owned: [residual, _, update], .. } = self.newton;
        self.number(|sum| vec![owned.dot_to(residual, update, sum)])
    }

    fn advance(&mut self, length: f64) -> Result<(), SolveError> {
        let PartNewton { on_mesh, of_mesh: [_, _, update], .. } = self.newton;
        self.communicator.run(&[on_mesh.axpy(length, update, self.u)])
    }
    fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    fn keep_loads(&mut self) -> Result<(), SolveError> {
        let PartNewton { device, loads, of_mesh, of_owned, .. } = self.newton;
        device.copy(&of_mesh[0], &loads[0])?;
        Ok(device.copy(&of_owned[0], &loads[1])?)
    }

    fn keep(&mut self) -> Result<(), SolveError> {
        Ok(self.newton.device.copy(self.u, &self.newton.kept)?)
    }

    fn take_back(&mut self) -> Result<(), SolveError> {
        Ok(self.newton.device.copy(&self.newton.kept, self.u)?)
    }
}
