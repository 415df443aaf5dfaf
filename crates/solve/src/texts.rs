//! The kernels of this crate: texts with their schedules.

use crate::SolveError;
use purlin_codegen::{Options, generate};
use purlin_runtime::{Device, Executable};
use purlin_transforms::schedule::parse_file;

/// Compiles a kernel with the schedule behind it, if there is one.
///
/// # Errors
/// A text that is no kernel, a step that is refused, a device that refuses the code.
pub fn compiled(device: &dyn Device, text: &str) -> Result<Executable, SolveError> {
    let (kernel, script) = parse_file(text)?;
    let kernel = match script {
        Some(script) => script.apply(&kernel)?.kernel().clone(),
        None => kernel,
    };
    let program = generate(&kernel, device.info().backend.target(), &Options::default())?;
    Ok(device.compile(&program)?)
}

/// A kernel of this crate by the name of its file.
macro_rules! text {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/", $name, ".purlin"))
    };
}
pub(crate) use text;
