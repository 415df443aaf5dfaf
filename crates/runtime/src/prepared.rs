//! Launches whose arguments are checked once and that run often.

use crate::arguments::{Value, bind, missing};
use crate::device::{Arg, Begun, Device, Executable, Guest, Kept, Prepared, Recorded, Shared, Stream};
use crate::driver::{Checked, Driver};
use crate::error::RuntimeError;
use crate::guests::{admit, among, renew, settle};
use kingpost_codegen::ArgKind;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

impl<'a> Kept<'a> {
    fn guest(&self) -> Option<&Guest<'a>> {
        match self {
            Self::Guest(guest) => Some(guest),
            Self::I32(_)
            | Self::I64(_)
            | Self::F32(_)
            | Self::F64(_)
            | Self::C64(_)
            | Self::C128(_)
            | Self::Buffer(_)
            | Self::Runtime => None,
        }
    }
}

impl Prepared<'_> {
    /// What is launched.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Whether a launch moves nothing and needs no memory of its own: arrays are used where they lie.
    pub fn is_in_place(&self) -> bool {
        self.scratch.iter().all(Option::is_none)
            && !self.values.iter().filter_map(Kept::guest).any(|guest| guest.copied)
    }

    /// The values of a launch, except for the buffers of the runtime.
    fn values<'p>(&'p self, exe: &'p Shared) -> Vec<Value<'p>> {
        let kept = self.values.iter().zip(exe.tables.iter().zip(&self.scratch));
        kept.filter_map(|(kept, (table, scratch))| match kept {
            Kept::I32(v) => Some(Value::I32(*v)),
            Kept::I64(v) => Some(Value::I64(*v)),
            Kept::F32(v) => Some(Value::F32(*v)),
            Kept::F64(v) => Some(Value::F64(*v)),
            Kept::C64(v) => Some(Value::C64(*v)),
            Kept::C128(v) => Some(Value::C128(*v)),
            Kept::Buffer(buffer) => Some(Value::Buffer(buffer)),
            Kept::Guest(guest) => Some(Value::Buffer(&guest.buffer)),
            // `prepare` made one of the two
            Kept::Runtime => table.as_ref().or(scratch.as_ref()).map(Value::Buffer),
        })
        .collect()
    }
}

/// Checks and binds, as a launch does.
pub(crate) fn prepare<'a, D: Driver>(
    device: &Checked<D>,
    executable: &Executable,
    args: &[(&str, Arg<'a>)],
) -> Result<Prepared<'a>, RuntimeError> {
    let exe = &*executable.shared;
    device.check_use()?;
    let guests = admit(device, exe, args)?; // each launch waits for the values of its own
    let with_guests = among(args, &guests);
    let scratch = device.allocate_scratch(exe, &with_guests)?;
    let bound = bind(exe, &with_guests, &scratch, device.info())?;
    let (params, grid) = (bound.params, bound.grid);
    let numbers: Vec<Option<Kept<'a>>> = bound
        .values
        .iter()
        .map(|value| match *value {
            Value::I32(v) => Some(Kept::I32(v)),
            Value::I64(v) => Some(Kept::I64(v)),
            Value::F32(v) => Some(Kept::F32(v)),
            Value::F64(v) => Some(Kept::F64(v)),
            Value::C64(v) => Some(Kept::C64(v)),
            Value::C128(v) => Some(Kept::C128(v)),
            Value::Buffer(_) => None,
        })
        .collect();
    let mut guests: BTreeMap<String, Guest<'a>> = guests.into_iter().map(|g| (g.name.clone(), g)).collect();
    let buffer = |name: &str| {
        let mut given = args.iter().filter(|(given, _)| *given == name);
        given.find_map(
            |(_, arg)| if let Arg::Buffer(buffer) = arg { Some(Kept::Buffer(buffer)) } else { None },
        )
    };
    let values = exe.plan.args.iter().zip(numbers).map(|(spec, number)| match (&spec.kind, number) {
        (ArgKind::Table(_) | ArgKind::Scratch { .. }, _) => Ok(Kept::Runtime),
        (_, Some(number)) => Ok(number),
        (ArgKind::Param | ArgKind::Scalar | ArgKind::Buffer { .. }, None) => {
            let guest = guests.remove(&spec.name).map(Kept::Guest);
            guest.or_else(|| buffer(&spec.name)).ok_or_else(|| missing(exe, spec))
        }
    });
    let values = values.collect::<Result<_, _>>()?;
    Ok(Prepared { executable: executable.clone(), values, scratch, params, grid })
}

/// Launches once more.
pub(crate) fn repeat<D: Driver>(
    device: &Checked<D>,
    prepared: &Prepared<'_>,
    stream: Option<Stream>,
) -> Result<(), RuntimeError> {
    let exe = &*prepared.executable.shared;
    let guests = || prepared.values.iter().filter_map(Kept::guest);
    guests().try_for_each(|guest| renew(device, guest, stream))?;
    let wait = guests().any(|guest| guest.copied);
    let values = prepared.values(exe);
    device.in_pieces(exe, (&values, &prepared.params, prepared.grid), &mut |calls| {
        device.start(&calls, stream, wait)
    })?;
    guests().try_for_each(|guest| settle(device, guest))
}

/// Makes one graph of launches, unless one of them copies.
pub(crate) fn record<'a, D: Driver>(
    device: &Checked<D>,
    prepared: &[Arc<Prepared<'a>>],
) -> Result<Recorded<'a>, RuntimeError> {
    let recorded = |graph| Recorded { device: device.id, graph, launches: prepared.to_vec() };
    if guests(prepared).any(|guest| guest.copied) {
        return Ok(recorded(None));
    }
    let _turn = device.turn()?;
    let graph = device.driver.record(&mut |stream| {
        prepared.iter().try_for_each(|one| {
            let exe = &*one.executable.shared;
            device.in_pieces(exe, (&one.values(exe), &one.params, one.grid), &mut |calls| {
                calls.iter().try_for_each(|(code, call)| device.driver.enqueue(code, call, stream, false))
            })
        })
    })?;
    Ok(recorded(graph))
}

/// Launches a graph once more, after the streams that make the values of its arrays.
pub(crate) fn replay<D: Driver>(
    device: &Checked<D>,
    recorded: &Recorded<'_>,
    stream: Option<Stream>,
) -> Result<(), RuntimeError> {
    check_device(device, recorded)?;
    let Some(graph) = &recorded.graph else {
        return recorded.launches.iter().try_for_each(|one| repeat(device, one, stream));
    };
    guests(&recorded.launches).try_for_each(|guest| renew(device, guest, stream))?;
    let _turn = device.turn()?;
    graph.replay(stream)
}

/// The same to the end, with the seconds that it takes.
pub(crate) fn rerun<D: Driver>(device: &Checked<D>, recorded: &Recorded<'_>) -> Result<f64, RuntimeError> {
    check_device(device, recorded)?;
    let launches = &recorded.launches;
    if let Some(graph) = &recorded.graph {
        guests(launches).try_for_each(|guest| renew(device, guest, None))?;
        let _turn = device.turn()?;
        return device.driver.rerun(&**graph);
    }
    // what one launch writes to a copy is there for the next one when its owner has it
    let at_once = if guests(launches).any(|guest| guest.copied) { 1 } else { launches.len().max(1) };
    launches.chunks(at_once).map(|some| run(device, some)).sum()
}

/// The same without waiting; none where there is no graph, or the device does not run concurrently with the host.
pub(crate) fn begin<'r, D: Driver>(
    device: &Checked<D>,
    recorded: &'r Recorded<'_>,
) -> Result<Option<Begun<'r>>, RuntimeError> {
    check_device(device, recorded)?;
    let Some(graph) = &recorded.graph else { return Ok(None) };
    guests(&recorded.launches).try_for_each(|guest| renew(device, guest, None))?;
    let _turn = device.turn()?;
    let begun = device.driver.begin(&**graph)?;
    Ok(begun.map(|running| Begun { running, _used: PhantomData }))
}

/// Runs launches to the end of the last; none of them reads what another one writes to a copy.
fn run<D: Driver>(device: &Checked<D>, launches: &[Arc<Prepared<'_>>]) -> Result<f64, RuntimeError> {
    guests(launches).try_for_each(|guest| renew(device, guest, None))?;
    let mut calls = Vec::new();
    for one in launches {
        let exe = &*one.executable.shared;
        device.in_pieces(exe, (&one.values(exe), &one.params, one.grid), &mut |piece| {
            calls.extend(piece);
            Ok(())
        })?;
    }
    let seconds = device.run(&calls)?;
    guests(launches).try_for_each(|guest| settle(device, guest))?;
    Ok(seconds)
}

/// The foreign arrays of launches.
fn guests<'p, 'a>(launches: &'p [Arc<Prepared<'a>>]) -> impl Iterator<Item = &'p Guest<'a>> {
    launches.iter().flat_map(|one| &one.values).filter_map(Kept::guest)
}

fn check_device<D: Driver>(device: &Checked<D>, recorded: &Recorded<'_>) -> Result<(), RuntimeError> {
    if recorded.device == device.id {
        return Ok(());
    }
    let what = format!("a graph of {} launches", recorded.launches.len());
    Err(RuntimeError::OtherDevice { what, device: device.device_name() })
}
