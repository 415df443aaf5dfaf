//! Vectors on a device.

use crate::texts::{compiled, text};
use crate::{Call, SolveError, run};
use kingpost_runtime::{Buffer, Device, Executable, download_values};

/// The kernels on vectors of one length, and a place for a sum.
pub struct Vectors<'d> {
    device: &'d dyn Device,
    n: usize,
    square: Executable,
    dot: Executable,
    axpy: Executable,
    scale: Executable,
    sum: Buffer,
}

impl<'d> Vectors<'d> {
    /// Compiles the kernels for vectors of `n` numbers.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &'d dyn Device, n: usize) -> Result<Self, SolveError> {
        Ok(Self {
            device,
            n,
            dot: compiled(device, text!("dot"))?,
            square: compiled(device, text!("square"))?,
            axpy: compiled(device, text!("axpy"))?,
            scale: compiled(device, text!("scale"))?,
            sum: device.allocate(8)?,
        })
    }

    /// The Euclidean norm; copies 8 bytes to the host.
    ///
    /// # Errors
    /// A failing driver.
    pub fn norm(&self, v: &Buffer) -> Result<f64, SolveError> {
        Ok(self.sum(&self.square, &[("v", v)])?.sqrt())
    }

    /// The product of two different vectors; copies 8 bytes to the host.
    ///
    /// # Errors
    /// A failing driver.
    pub fn dot(&self, v: &Buffer, w: &Buffer) -> Result<f64, SolveError> {
        self.sum(&self.dot, &[("v", v), ("w", w)])
    }

    /// Adds the square of a vector's norm to a number.
    pub(crate) fn square_to<'a>(&'a self, v: &'a Buffer, sum: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.n), ("n_sums", 1), ("k", 0)];
        Call::of(&self.square, &sizes, &[("v", v), ("sums", sum)])
    }

    /// Adds the product of two different vectors to a number.
    pub(crate) fn dot_to<'a>(&'a self, v: &'a Buffer, w: &'a Buffer, sum: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.n), ("n_sums", 1), ("k", 0)];
        Call::of(&self.dot, &sizes, &[("v", v), ("w", w), ("sums", sum)])
    }

    fn sum(&self, kernel: &Executable, vectors: &[(&str, &Buffer)]) -> Result<f64, SolveError> {
        let sizes = [("n", self.n), ("n_sums", 1), ("k", 0)];
        self.number(|sum| {
            let arrays: Vec<_> = vectors.iter().copied().chain([("sums", sum)]).collect();
            vec![Call::of(kernel, &sizes, &arrays)]
        })
    }

    /// The number that kernels add up to; copies 8 bytes to the host.
    ///
    /// # Errors
    /// A failing driver.
    pub fn number<'a>(&'a self, calls: impl FnOnce(&'a Buffer) -> Vec<Call<'a>>) -> Result<f64, SolveError> {
        self.device.fill(&self.sum, 0)?;
        run(self.device, &calls(&self.sum))?;
        let sum: Vec<f64> = download_values(self.device, &self.sum)?;
        Ok(sum.first().copied().unwrap_or(f64::NAN))
    }

    /// `y += a x`
    #[must_use]
    pub fn axpy<'a>(&'a self, a: f64, x: &'a Buffer, y: &'a Buffer) -> Call<'a> {
        Call::of(&self.axpy, &[("n", self.n)], &[("x", x), ("y", y)]).with("a", a)
    }

    /// `x *= a`
    #[must_use]
    pub fn scale<'a>(&'a self, a: f64, x: &'a Buffer) -> Call<'a> {
        Call::of(&self.scale, &[("n", self.n)], &[("x", x)]).with("a", a)
    }

    /// Memory for a vector.
    ///
    /// # Errors
    /// The device has no such memory.
    pub fn allocate(&self) -> Result<Buffer, SolveError> {
        Ok(self.device.allocate(8 * self.n as u64)?)
    }
}
