//! The levels of a mesh on a device.

use crate::kernels::{Operation, Variant};
use crate::line::{Line, Matrix};
use crate::schedules::{Structure, program};
use crate::{Element, MultigridError};
use purlin_runtime::{Arg, Buffer, Device, Executable, Launch, buffer_of, download_values, upload_values};

/// The vectors of a level.
struct Level {
    cells: usize,
    /// The solution, or the correction of the level above.
    x: Buffer,
    /// The right-hand side, or the residual of the level above.
    b: Buffer,
    /// The residual.
    r: Buffer,
}

/// Matrices of the reference element on the device.
struct Matrices {
    mass: Buffer,
    stiffness: Buffer,
    cell_mass: Buffer,
    cell_stiffness: Buffer,
    eigenvectors: Buffer,
    eigenvalues: Buffer,
    prolongation: Buffer,
}

/// The order in which the colours of a smoother take their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending.
    Forward,
    /// Descending: the transpose of the other.
    Backward,
}

/// Nested meshes of the unit square or cube on a device, from two cells a side to the finest one,
/// with the kernels of their levels.
pub struct Hierarchy<'d> {
    device: &'d dyn Device,
    element: Element,
    line: Line,
    matrices: Matrices,
    /// What is launched for a colour, in turn.
    smooth: Vec<(Operation, Executable)>,
    residual: Executable,
    prolongate: Executable,
    restrict: Executable,
    levels: Vec<Level>,
}

impl<'d> Hierarchy<'d> {
    /// Compiles the kernels and allocates the vectors of all levels up to `cells` cells a side.
    ///
    /// # Errors
    /// Cells that are no power of two from 2 on; vectors that do not fit, before one is allocated; a
    /// device that refuses.
    pub fn new(device: &'d dyn Device, element: Element, cells: usize) -> Result<Self, MultigridError> {
        let smoother = Structure::of(device.info().backend, Operation::Smooth, element);
        Self::with_smoother(device, element, cells, smoother)
    }

    /// The same with a smoother of another structure.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn with_smoother(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        smoother: Structure,
    ) -> Result<Self, MultigridError> {
        Self::with_variant(device, element, cells, Variant::Fused, smoother)
    }

    /// The same with other kernels of the smoother, those on patches in this structure.
    ///
    /// # Errors
    /// As [`Hierarchy::new`].
    pub fn with_variant(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        variant: Variant,
        smoother: Structure,
    ) -> Result<Self, MultigridError> {
        if cells < 2 || !cells.is_power_of_two() {
            let nearest = cells.max(2).checked_next_power_of_two().unwrap_or(2);
            return Err(MultigridError::Cells { cells, nearest });
        }
        check_memory(device, element, cells)?;
        let line = Line::new(element.degree)?;
        let backend = device.info().backend;
        let compiled = |operation, structure| -> Result<Executable, MultigridError> {
            Ok(device.compile(&program(operation, element, structure, backend)?)?)
        };
        let best = |operation| compiled(operation, Structure::of(backend, operation, element));
        let on_device = |matrix: &Matrix| buffer_of(device, &matrix.entries);
        let matrices = Matrices {
            mass: on_device(&line.mass)?,
            stiffness: on_device(&line.stiffness)?,
            cell_mass: on_device(&line.cell_mass)?,
            cell_stiffness: on_device(&line.cell_stiffness)?,
            eigenvectors: on_device(&line.eigenvectors)?,
            eigenvalues: buffer_of(device, &line.eigenvalues)?,
            prolongation: on_device(&line.prolongation)?,
        };
        let of_colour = |operation: &Operation| {
            let structure = smoother.of_smoother(backend, *operation, element);
            Ok((*operation, compiled(*operation, structure)?))
        };
        let smooth: Result<Vec<_>, MultigridError> = variant.operations().iter().map(of_colour).collect();
        let mut levels = Vec::new();
        let mut of_level = 2;
        while of_level <= cells {
            let vector = || device.allocate(8 * element.nodes(of_level) as u64);
            levels.push(Level { cells: of_level, x: vector()?, b: vector()?, r: vector()? });
            of_level *= 2;
        }
        Ok(Self {
            device,
            element,
            matrices,
            smooth: smooth?,
            residual: best(Operation::Residual)?,
            prolongate: best(Operation::Prolongate)?,
            restrict: best(Operation::Restrict)?,
            line,
            levels,
        })
    }

    /// The discretisation.
    #[must_use]
    pub const fn element(&self) -> Element {
        self.element
    }

    /// The matrices of one dimension.
    #[must_use]
    pub const fn line(&self) -> &Line {
        &self.line
    }

    /// The number of levels; the finest is the last.
    #[must_use]
    pub const fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Cells a side of a level, from 0 on.
    #[must_use]
    pub fn cells(&self, level: usize) -> usize {
        self.levels[level].cells
    }

    /// The solution of a level: all nodes in lexicographic order, the last axis of the mesh slowest.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self, level: usize) -> Result<Vec<f64>, MultigridError> {
        Ok(download_values(self.device, &self.levels[level].x)?)
    }

    /// The right-hand side of a level: what was set, or the residual of the level above.
    ///
    /// # Errors
    /// A failing driver.
    pub fn right_hand_side(&self, level: usize) -> Result<Vec<f64>, MultigridError> {
        Ok(download_values(self.device, &self.levels[level].b)?)
    }

    /// Sets the right-hand side of a level, or its solution to start from.
    ///
    /// # Errors
    /// A vector of another length, a failing driver.
    pub fn set(&self, level: usize, what: Which, values: &[f64]) -> Result<(), MultigridError> {
        let at = &self.levels[level];
        let needed = self.element.nodes(at.cells);
        if values.len() != needed {
            return Err(MultigridError::Length { found: values.len(), needed });
        }
        let buffer = match what {
            Which::Solution => &at.x,
            Which::RightHandSide => &at.b,
        };
        Ok(upload_values(self.device, buffer, values)?)
    }

    /// One step of the smoother: each colour in turn, all its patches in parallel. Returns its
    /// seconds by the device's clock.
    ///
    /// # Errors
    /// A failing driver.
    ///
    /// # Source
    /// Cui et al. 2024, Algorithm 2.3.
    pub fn smooth(&self, level: usize, order: Order) -> Result<f64, MultigridError> {
        let colours = 1_usize << self.element.dimension.axes();
        match order {
            Order::Forward => self.smooth_colours(level, 0..colours),
            Order::Backward => self.smooth_colours(level, (0..colours).rev()),
        }
    }

    /// The patches of some colours, one after the other: those around the vertices of which bit `a`
    /// of a colour is that of their place along axis `a`, less one. Returns the seconds.
    ///
    /// # Errors
    /// A failing driver.
    pub fn smooth_colours(
        &self,
        level: usize,
        colours: impl Iterator<Item = usize>,
    ) -> Result<f64, MultigridError> {
        let mut in_turn = Vec::new();
        for colour in colours {
            let of =
                |(operation, executable)| (executable, self.smoothing(level, colour, operation, executable));
            in_turn.extend(self.smooth.iter().map(|(operation, executable)| of((*operation, executable))));
        }
        let launches: Vec<_> = in_turn.iter().map(|(executable, args)| Launch { executable, args }).collect();
        Ok(self.device.launch_all(&launches)?)
    }

    fn smoothing(
        &self,
        level: usize,
        colour: usize,
        operation: Operation,
        executable: &Executable,
    ) -> Vec<(&'static str, Arg<'_>)> {
        let at = &self.levels[level];
        let m = &self.matrices;
        let (mass, stiffness) = match operation {
            Operation::Residual => (&m.cell_mass, &m.cell_stiffness),
            Operation::Smooth
            | Operation::SmoothBoundary
            | Operation::PatchResidual
            | Operation::PatchSolve
            | Operation::Copy
            | Operation::Prolongate
            | Operation::Restrict => (&m.mass, &m.stiffness),
        };
        let mut args = vec![
            ("n", Arg::Param(at.cells as i64)),
            ("scale", Arg::F64(self.scale(at.cells))),
            ("x", Arg::Buffer(&at.x)),
            ("b", Arg::Buffer(&at.b)),
            ("r", Arg::Buffer(&at.r)),
            ("res", Arg::Buffer(&at.r)),
            ("A", Arg::Buffer(stiffness)),
            ("M", Arg::Buffer(mass)),
            ("S", Arg::Buffer(&m.eigenvectors)),
            ("lambda", Arg::Buffer(&m.eigenvalues)),
        ];
        let bits = ["c0", "c1", "c2"].into_iter().enumerate().take(self.element.dimension.axes());
        args.extend(bits.map(|(axis, name)| (name, Arg::Param((colour >> axis & 1) as i64))));
        taken(executable, args)
    }

    /// `r = b - A x` on a level.
    ///
    /// # Errors
    /// A failing driver.
    pub fn compute_residual(&self, level: usize) -> Result<(), MultigridError> {
        let at = &self.levels[level];
        self.device.copy(&at.b, &at.r)?;
        let args = [
            ("n", Arg::Param(at.cells as i64)),
            ("scale", Arg::F64(self.scale(at.cells))),
            ("x", Arg::Buffer(&at.x)),
            ("A", Arg::Buffer(&self.matrices.cell_stiffness)),
            ("M", Arg::Buffer(&self.matrices.cell_mass)),
            ("r", Arg::Buffer(&at.r)),
        ];
        self.launch(&self.residual, &args)
    }

    /// The residual that was computed last.
    ///
    /// # Errors
    /// A failing driver.
    pub fn residual(&self, level: usize) -> Result<Vec<f64>, MultigridError> {
        Ok(download_values(self.device, &self.levels[level].r)?)
    }

    /// The residual of `level` becomes the right-hand side of the level below it, whose solution
    /// starts at zero.
    ///
    /// # Errors
    /// A failing driver.
    pub fn restrict(&self, level: usize) -> Result<(), MultigridError> {
        let (fine, coarse) = (&self.levels[level], &self.levels[level - 1]);
        self.device.fill(&coarse.b, 0)?;
        self.device.fill(&coarse.x, 0)?;
        let args = [
            ("n", Arg::Param(coarse.cells as i64)),
            ("r", Arg::Buffer(&fine.r)),
            ("P", Arg::Buffer(&self.matrices.prolongation)),
            ("rc", Arg::Buffer(&coarse.b)),
        ];
        self.launch(&self.restrict, &args)
    }

    /// The solution of the level below is added to that of `level`.
    ///
    /// # Errors
    /// A failing driver.
    pub fn prolongate(&self, level: usize) -> Result<(), MultigridError> {
        let (fine, coarse) = (&self.levels[level], &self.levels[level - 1]);
        let args = [
            ("n", Arg::Param(coarse.cells as i64)),
            ("xc", Arg::Buffer(&coarse.x)),
            ("P", Arg::Buffer(&self.matrices.prolongation)),
            ("x", Arg::Buffer(&fine.x)),
        ];
        self.launch(&self.prolongate, &args)
    }

    fn launch(
        &self,
        executable: &Executable,
        args: &[(&'static str, Arg<'_>)],
    ) -> Result<(), MultigridError> {
        Ok(self.device.launch(executable, &taken(executable, args.to_vec()))?)
    }

    /// The executables of the smoother, in the order in which a colour runs them.
    pub fn smoother(&self) -> impl Iterator<Item = &Executable> {
        self.smooth.iter().map(|(_, executable)| executable)
    }

    /// Sets the solution of a level to zero.
    ///
    /// # Errors
    /// A failing driver.
    pub fn clear(&self, level: usize) -> Result<(), MultigridError> {
        Ok(self.device.fill(&self.levels[level].x, 0)?)
    }

    /// h^(d - 2): what the sum of products of reference matrices is multiplied with.
    fn scale(&self, cells: usize) -> f64 {
        let h = 1.0 / cells as f64;
        h.powi(self.element.dimension.axes() as i32 - 2)
    }
}

/// The arguments that a program takes: matrices that are part of its code are none.
fn taken<'a>(
    executable: &Executable,
    mut args: Vec<(&'static str, Arg<'a>)>,
) -> Vec<(&'static str, Arg<'a>)> {
    args.retain(|(name, _)| executable.plan().args.iter().any(|arg| arg.name == *name));
    args
}

/// A vector of a level that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The solution to start from; zero at the boundary.
    Solution,
    /// The right-hand side; zero at the boundary.
    RightHandSide,
}

/// Three vectors a level, before any is allocated.
fn check_memory(device: &dyn Device, element: Element, cells: usize) -> Result<(), MultigridError> {
    let levels = std::iter::successors(Some(cells), |n| (*n > 2).then_some(n / 2));
    let mut nodes =
        levels.map(|n| (element.nodes_of_side(n) as u64).checked_pow(element.dimension.axes() as u32));
    let needed = nodes.try_fold(0_u64, |sum, n| sum.checked_add(n?.checked_mul(24)?)).unwrap_or(u64::MAX);
    let info = device.info();
    let available = info.global_mem_bytes;
    if available > 0 && needed > available {
        return Err(MultigridError::Memory { needed, available, device: info.name.clone() });
    }
    Ok(())
}
