//! Kernels on vectors of any length: texts with their schedules.

use crate::{MultigridError, Precision};
use purlin_runtime::{Buffer, Device, Executable, download_values};
use purlin_solve::{Call, compile_text, run};

/// A kernel of one precision.
pub(crate) fn compiled(
    device: &dyn Device,
    text: &str,
    precision: Precision,
) -> Result<Executable, MultigridError> {
    Ok(compile_text(device, &text.replace("{t}", precision.type_name()))?)
}

/// What rounds a vector to single precision, and what goes back.
pub(crate) fn narrow_and_widen(device: &dyn Device) -> Result<[Executable; 2], MultigridError> {
    let [narrow, widen] = [include_str!("../kernels/narrow.purlin"), include_str!("../kernels/widen.purlin")];
    Ok([compile_text(device, narrow)?, compile_text(device, widen)?])
}

/// Kernels on vectors, and a place for a sum.
pub(crate) struct Vectors {
    clear: Executable,
    direction: Executable,
    square: Executable,
    sum: Buffer,
}

impl Vectors {
    pub(crate) fn new(device: &dyn Device, precision: Precision) -> Result<Self, MultigridError> {
        Ok(Self {
            clear: compiled(device, include_str!("../kernels/clear.purlin"), precision)?,
            direction: compiled(device, include_str!("../kernels/direction.purlin"), precision)?,
            square: compiled(device, include_str!("../kernels/square.purlin"), precision)?,
            sum: device.allocate(8)?,
        })
    }

    /// `v = 0`
    pub(crate) fn cleared<'a>(&'a self, n: usize, v: &'a Buffer) -> Call<'a> {
        Call::of(&self.clear, &[("n", n)], &[("v", v)])
    }

    /// `d = old d + new z` and `x += d`.
    pub(crate) const fn direction(&self) -> &Executable {
        &self.direction
    }

    /// The Euclidean norm, summed in double precision; copies 8 bytes to the host.
    pub(crate) fn norm(&self, device: &dyn Device, n: usize, v: &Buffer) -> Result<f64, MultigridError> {
        device.fill(&self.sum, 0)?;
        run(device, &[Call::of(&self.square, &[("n", n)], &[("v", v), ("sums", &self.sum)])])?;
        let sum: Vec<f64> = download_values(device, &self.sum)?;
        Ok(sum.first().copied().unwrap_or(f64::NAN).sqrt())
    }
}
