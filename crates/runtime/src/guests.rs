//! Foreign memory of a launch: adopted where the device reaches it, else copied there and back.

use crate::device::{Arg, Buffer, Device, Shared, Stream};
use crate::driver::{Checked, Driver};
use crate::error::RuntimeError;
use crate::foreign::Foreign;
use purlin_codegen::{ArgKind, ArgSpec, BufferAccess};

/// Vectors of CUDA's that a kernel may load start at multiples of this, in bytes.
const VECTOR_BYTES: u64 = 16;

/// A foreign array of a launch as a buffer of the device.
pub(crate) struct Guest<'a> {
    name: String,
    foreign: Foreign<'a>,
    buffer: Buffer,
    copied: bool,
}

impl<'a> Guest<'a> {
    /// The arguments with each foreign array as its buffer.
    pub(crate) fn among<'g>(args: &[(&'g str, Arg<'g>)], guests: &'g [Guest<'a>]) -> Vec<(&'g str, Arg<'g>)> {
        let mut guests = guests.iter();
        let admitted = |arg: Arg<'g>| match arg {
            Arg::Foreign(_) => guests.next().map_or(arg, |guest| Arg::Buffer(&guest.buffer)),
            Arg::Param(_) | Arg::F32(_) | Arg::F64(_) | Arg::I32(_) | Arg::I64(_) | Arg::Buffer(_) => arg,
        };
        let mut admitted = admitted;
        args.iter().map(|(name, arg)| (*name, admitted(*arg))).collect()
    }

    /// Whether the device has a copy of it.
    pub(crate) fn is_copy(&self) -> bool {
        self.copied
    }
}

/// Whether a program writes an argument.
fn is_written(spec: &ArgSpec) -> bool {
    match &spec.kind {
        ArgKind::Buffer { access, .. } => *access != BufferAccess::In,
        ArgKind::Param | ArgKind::Scalar | ArgKind::Table(_) | ArgKind::Scratch { .. } => false,
    }
}

/// The foreign arrays among the arguments, each in the order of the arguments.
pub(crate) fn admit<'a, D: Driver>(
    device: &Checked<D>,
    exe: &Shared,
    args: &[(&str, Arg<'a>)],
    stream: Option<Stream>,
) -> Result<Vec<Guest<'a>>, RuntimeError> {
    let mut guests = Vec::new();
    for (name, arg) in args {
        if let Arg::Foreign(foreign) = arg {
            let spec = exe.plan.args.iter().find(|spec| spec.name == *name);
            check(exe, name, spec, foreign)?;
            guests.push(guest(device, exe, name, foreign, stream)?);
        }
    }
    Ok(guests)
}

/// Refuses memory that may not be written but is, and elements that do not start where they may.
fn check(
    exe: &Shared,
    name: &str,
    spec: Option<&ArgSpec>,
    foreign: &Foreign<'_>,
) -> Result<(), RuntimeError> {
    let Some(spec) = spec else { return Ok(()) }; // `bind` refuses it
    let (entry, name) = (exe.entry.clone(), name.to_owned());
    if is_written(spec) && !foreign.writable {
        return Err(RuntimeError::ReadOnly { entry, name });
    }
    let needed = match foreign.place {
        crate::Place::Host => spec.ty.bytes(),
        crate::Place::Cuda => VECTOR_BYTES,
    };
    let address = foreign.address;
    match address % needed {
        0 => Ok(()),
        _ => Err(RuntimeError::Misaligned { entry, name, address, needed }),
    }
}

fn guest<'a, D: Driver>(
    device: &Checked<D>,
    exe: &Shared,
    name: &str,
    foreign: &Foreign<'a>,
    stream: Option<Stream>,
) -> Result<Guest<'a>, RuntimeError> {
    if let Some(ready) = foreign.ready.filter(|ready| stream.is_none_or(|s| s.0 != *ready)) {
        device.driver.wait(ready)?;
    }
    let (name, foreign) = (name.to_owned(), *foreign);
    if foreign.bytes > 0 && device.driver.shares(foreign.place) {
        let memory = device.driver.adopt(&foreign)?;
        let buffer = device.buffer(foreign.bytes, memory, Some(foreign.region()));
        return Ok(Guest { name, foreign, buffer, copied: false });
    }
    let Some(data) = foreign.host() else {
        let (entry, found) = (exe.entry.clone(), foreign.place.to_string());
        return Err(RuntimeError::Unreachable { entry, name, found, device: device.device_name() });
    };
    let mut buffer = device.allocate(foreign.bytes)?;
    device.upload(&buffer, data)?;
    buffer.region = (foreign.bytes > 0).then(|| foreign.region());
    Ok(Guest { name, foreign, buffer, copied: true })
}

/// What the kernel wrote goes to the owners of the arrays.
pub(crate) fn leave<D: Driver>(
    device: &Checked<D>,
    exe: &Shared,
    guests: &[Guest<'_>],
) -> Result<(), RuntimeError> {
    for guest in guests {
        let written = exe.plan.args.iter().any(|spec| spec.name == guest.name && is_written(spec));
        if !written {
            continue;
        }
        if !guest.copied {
            device.driver.settle(device.memory(&guest.buffer)?)?;
        } else if let Some(out) = guest.foreign.host_mut() {
            device.download(&guest.buffer, out)?;
        }
    }
    Ok(())
}
