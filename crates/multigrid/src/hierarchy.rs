//! The levels of a mesh on a device.

use crate::kernels::{Operation, Structure, program};
use crate::line::{Line, Matrix};
use crate::{Element, MultigridError};
use purlin_runtime::{Arg, Buffer, Device, Executable, buffer_of, download_values, upload_values};

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
    smooth: Executable,
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
        if cells < 2 || !cells.is_power_of_two() {
            let nearest = cells.max(2).checked_next_power_of_two().unwrap_or(2);
            return Err(MultigridError::Cells { cells, nearest });
        }
        check_memory(device, element, cells)?;
        let line = Line::new(element.degree)?;
        let backend = device.info().backend;
        let compiled = |operation| -> Result<Executable, MultigridError> {
            Ok(device.compile(&program(operation, element, Structure::of(backend), backend)?)?)
        };
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
            smooth: compiled(Operation::Smooth)?,
            residual: compiled(Operation::Residual)?,
            prolongate: compiled(Operation::Prolongate)?,
            restrict: compiled(Operation::Restrict)?,
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

    /// One step of the smoother: each colour in turn, all its patches in parallel.
    ///
    /// # Errors
    /// A failing driver.
    ///
    /// # Source
    /// Cui et al. 2024, Algorithm 2.3.
    pub fn smooth(&self, level: usize, order: Order) -> Result<(), MultigridError> {
        let axes = self.element.dimension.axes();
        for turn in 0..1_usize << axes {
            let colour = match order {
                Order::Forward => turn,
                Order::Backward => (1 << axes) - 1 - turn,
            };
            self.smooth_colour(level, colour)?;
        }
        Ok(())
    }

    /// The patches of one colour: those around the vertices of which bit `a` of `colour` is that of
    /// their place along axis `a`, less one.
    ///
    /// # Errors
    /// A failing driver.
    pub fn smooth_colour(&self, level: usize, colour: usize) -> Result<(), MultigridError> {
        let at = &self.levels[level];
        let m = &self.matrices;
        let mut args = vec![
            ("n", Arg::Param(at.cells as i64)),
            ("scale", Arg::F64(self.scale(at.cells))),
            ("x", Arg::Buffer(&at.x)),
            ("b", Arg::Buffer(&at.b)),
            ("A", Arg::Buffer(&m.stiffness)),
            ("M", Arg::Buffer(&m.mass)),
            ("S", Arg::Buffer(&m.eigenvectors)),
            ("lambda", Arg::Buffer(&m.eigenvalues)),
        ];
        let bits = ["c0", "c1", "c2"].into_iter().enumerate().take(self.element.dimension.axes());
        args.extend(bits.map(|(axis, name)| (name, Arg::Param((colour >> axis & 1) as i64))));
        Ok(self.device.launch(&self.smooth, &args)?)
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
        Ok(self.device.launch(&self.residual, &args)?)
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
        Ok(self.device.launch(&self.restrict, &args)?)
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
        Ok(self.device.launch(&self.prolongate, &args)?)
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
