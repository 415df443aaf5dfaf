//! Kernels with their arguments, to be run one after the other.

use crate::SolveError;
use kingpost_codegen::{ArgKind, BufferAccess};
use kingpost_runtime::{Arg, Buffer, Device, Executable, Launch, Prepared};

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

    /// The kernel with its arguments, for a device.
    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch { executable: self.executable, args: &self.args }
    }

    /// Checks the arguments, for a device.
    pub(crate) fn prepare(&self, device: &dyn Device) -> Result<Prepared<'_>, SolveError> {
        Ok(device.prepare(self.executable, &self.args)?)
    }

    /// Whether each launch allocates arrays of its own, and is waited for.
    #[cfg(feature = "cuda")]
    pub(crate) fn has_scratch(&self) -> bool {
        self.executable.plan().args.iter().any(|spec| matches!(spec.kind, ArgKind::Scratch { .. }))
    }

    /// Bytes of the arrays of the kernel, twice those that it reads and writes: what it moves if each
    /// array is moved once.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let plan = self.executable.plan().args.iter();
        let moved = plan.filter_map(|spec| {
            let times = match &spec.kind {
                ArgKind::Buffer { access: BufferAccess::In | BufferAccess::Out, .. } => 1,
                ArgKind::Buffer { access: BufferAccess::InOut, .. } => 2,
                ArgKind::Param | ArgKind::Scalar | ArgKind::Table(_) | ArgKind::Scratch { .. } => 0,
            };
            match self.args.iter().find(|(name, _)| *name == spec.name) {
                Some((_, Arg::Buffer(buffer))) => Some(times * buffer.bytes()),
                Some(_) | None => None,
            }
        });
        moved.sum()
    }

    /// The same with a number that is passed by value.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: f64) -> Self {
        self.args.push((name, Arg::F64(value)));
        self
    }
}

/// Runs kernels one after the other, without a wait on a card: what is asked of it afterwards comes
/// after them.
///
/// # Errors
/// As [`Device::put_all`].
pub(crate) fn put(device: &dyn Device, calls: &[Call<'_>]) -> Result<(), SolveError> {
    let launches: Vec<Launch<'_>> = calls.iter().map(Call::launch).collect();
    Ok(device.put_all(&launches)?)
}

/// Runs kernels one after the other and waits for the last; the seconds they took by the device's
/// clock.
///
/// # Errors
/// As [`Device::launch_all`].
pub fn run(device: &dyn Device, calls: &[Call<'_>]) -> Result<f64, SolveError> {
    let launches: Vec<Launch<'_>> = calls.iter().map(Call::launch).collect();
    Ok(device.launch_all(&launches)?)
}
