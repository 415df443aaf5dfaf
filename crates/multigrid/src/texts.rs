//! Kernels on vectors of any length: texts with their schedules.

use crate::{MultigridError, Precision};
use kingpost_codegen::{Options, generate};
use kingpost_primitives::Primitive;
use kingpost_primitives::primitives::SetPrecision;
use kingpost_primitives::steps;
use kingpost_runtime::{Buffer, Device, Executable, download_values};
use kingpost_solve::{Call, SolveError, compile_text, run};

/// A kernel that has some variables in a precision.
pub(crate) fn compiled(
    device: &dyn Device,
    text: &str,
    vars: &[&str],
    precision: Precision,
) -> Result<Executable, MultigridError> {
    let (kernel, script) = steps().file(text)?;
    let kernel = SetPrecision::new(vars.iter().copied(), precision.into()).apply(&kernel)?;
    let kernel = match script {
        Some(script) => script.apply(&kernel).map_err(SolveError::from)?.kernel().clone(),
        None => kernel,
    };
    Ok(device.compile(&generate(&kernel, device.info().backend.target(), &Options::default())?)?)
}

/// What rounds a vector to single precision, and what goes back.
pub(crate) fn narrow_and_widen(device: &dyn Device) -> Result<[Executable; 2], MultigridError> {
    let [narrow, widen] =
        [include_str!("../kernels/narrow.kingpost"), include_str!("../kernels/widen.kingpost")];
    Ok([compile_text(device, narrow)?, compile_text(device, widen)?])
}

/// Kernels on vectors, and a place for a sum.
pub(crate) struct Vectors {
    clear: Executable,
    copy: Executable,
    direction: Executable,
    square: Executable,
    sum: Buffer,
}

impl Vectors {
    pub(crate) fn new(device: &dyn Device, precision: Precision) -> Result<Self, MultigridError> {
        Ok(Self {
            clear: compiled(device, include_str!("../kernels/clear.kingpost"), &["v"], precision)?,
            copy: compiled(device, include_str!("../kernels/copy.kingpost"), &["from", "to"], precision)?,
            direction: compiled(
                device,
                include_str!("../kernels/direction.kingpost"),
                &["old", "new", "z", "d", "x"],
                precision,
            )?,
            square: compiled(device, include_str!("../kernels/square.kingpost"), &["v"], precision)?,
            sum: device.allocate(8)?,
        })
    }

    /// `v = 0`
    pub(crate) fn cleared<'a>(&'a self, n: usize, v: &'a Buffer) -> Call<'a> {
        Call::of(&self.clear, &[("n", n)], &[("v", v)])
    }

    /// `to = from`
    pub(crate) fn copied<'a>(&'a self, n: usize, from: &'a Buffer, to: &'a Buffer) -> Call<'a> {
        Call::of(&self.copy, &[("n", n)], &[("from", from), ("to", to)])
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
