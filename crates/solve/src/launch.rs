//! Kernels with their arguments, to be run one after the other.

use crate::SolveError;
use purlin_runtime::{Arg, Buffer, Device, Executable, Launch};

/// A kernel and its arguments.
pub struct Call<'a> {
    executable: &'a Executable,
    args: Vec<(&'a str, Arg<'a>)>,
}

impl<'a> Call<'a> {
    /// A kernel with its arguments.
    #[must_use]
    pub fn new(executable: &'a Executable, args: Vec<(&'a str, Arg<'a>)>) -> Self {
        Self { executable, args }
    }

    /// A kernel with its sizes and arrays.
    #[must_use]
    pub fn of(
        executable: &'a Executable,
        sizes: &[(&'a str, usize)],
        arrays: &[(&'a str, &'a Buffer)],
    ) -> Self {
        let sizes = sizes.iter().map(|(name, n)| (*name, Arg::Param(*n as i64)));
        let arrays = arrays.iter().map(|(name, buffer)| (*name, Arg::Buffer(buffer)));
        Self { executable, args: sizes.chain(arrays).collect() }
    }

    /// The same with a number that is passed by value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: f64) -> Self {
        self.args.push((name, Arg::F64(value)));
        self
    }
}

/// Runs kernels one after the other and waits for the last; the seconds they took by the device's
/// clock.
///
/// # Errors
/// As [`Device::launch_all`].
pub fn run(device: &dyn Device, calls: &[Call<'_>]) -> Result<f64, SolveError> {
    let launches: Vec<Launch<'_>> =
        calls.iter().map(|call| Launch { executable: call.executable, args: &call.args }).collect();
    Ok(device.launch_all(&launches)?)
}
