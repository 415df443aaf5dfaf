//! Foreign memory of a launch: adopted where the device reaches it, else copied there and back.

use crate::device::{Arg, Device, Guest, Shared, Stream};
use crate::driver::{Checked, Driver};
use crate::error::RuntimeError;
use crate::foreign::{Foreign, Ready};
use kingpost_codegen::{ArgKind, ArgSpec, BufferAccess};

/// The arguments with each foreign array as its buffer.
pub(crate) fn among<'g>(args: &[(&'g str, Arg<'g>)], guests: &'g [Guest<'_>]) -> Vec<(&'g str, Arg<'g>)> {
    let mut guests = guests.iter();
    let mut admitted = |arg: Arg<'g>| match arg {
        Arg::Foreign(_) => guests.next().map_or(arg, |guest| Arg::Buffer(&guest.buffer)),
        Arg::Param(_)
        | Arg::F32(_)
        | Arg::F64(_)
        | Arg::I32(_)
        | Arg::I64(_)
        | Arg::U32(_)
        | Arg::U64(_)
        | Arg::C64(_)
        | Arg::C128(_)
        | Arg::Buffer(_) => arg,
    };
    args.iter().map(|(name, arg)| (*name, admitted(*arg))).collect()
}

/// Whether a program writes an argument.
fn is_written(spec: &ArgSpec) -> bool {
    match &spec.kind {
        ArgKind::Buffer { access, .. } => *access != BufferAccess::In,
        ArgKind::Param | ArgKind::Scalar | ArgKind::Table(_) | ArgKind::Scratch { .. } => false,
    }
}

/// The foreign arrays among the arguments, each in the order of the arguments. Their values may still be
/// under way: [`wait_for`].
pub(crate) fn admit<'a, D: Driver>(
    device: &Checked<D>,
    exe: &Shared,
    args: &[(&str, Arg<'a>)],
) -> Result<Vec<Guest<'a>>, RuntimeError> {
    let mut guests = Vec::new();
    for (name, arg) in args {
        if let Arg::Foreign(foreign) = arg {
            let spec = exe.plan.args.iter().find(|spec| spec.name == *name);
            check(exe, name, spec, foreign, device.driver.shares(foreign.place))?;
            let written = spec.is_some_and(is_written);
            guests.push(guest(device, exe, (name, written), foreign)?);
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
    shared: bool,
) -> Result<(), RuntimeError> {
    let Some(spec) = spec else { return Ok(()) }; // `bind` refuses it
    let (entry, name) = (exe.entry.clone(), name.to_owned());
    if is_written(spec) && !foreign.writable {
        return Err(RuntimeError::ReadOnly { entry, name });
    }
    // a copy starts where vectors may
    let needed = if shared { spec.aligned.max(spec.ty.bytes()) } else { spec.ty.bytes() };
    let address = foreign.address;
    match address % needed {
        0 => Ok(()),
        _ => Err(RuntimeError::Misaligned { entry, name, address, needed }),
    }
}

/// Waits until the values of arrays are there for work on a stream.
pub(crate) fn wait_for<D: Driver>(
    device: &Checked<D>,
    guests: &[Guest<'_>],
    stream: Option<Stream>,
) -> Result<(), RuntimeError> {
    guests.iter().try_for_each(|guest| wait(device, &guest.foreign, stream))
}

/// Waits until the values of an array are there for work on a stream.
fn wait<D: Driver>(
    device: &Checked<D>,
    foreign: &Foreign<'_>,
    stream: Option<Stream>,
) -> Result<(), RuntimeError> {
    match (foreign.ready, stream) {
        (Ready::Now, _) | (Ready::AfterAll, Some(_)) => Ok(()),
        (Ready::After(ready), Some(own)) if own.0 == ready => Ok(()),
        (Ready::After(ready), _) => device.driver.wait(ready),
        (Ready::AfterAll, None) => device.driver.wait_all(),
    }
}

/// The bytes of an array, copied to the host.
pub(crate) fn fetch<D: Driver>(
    device: &Checked<D>,
    entry: &str,
    name: &str,
    foreign: &Foreign<'_>,
    out: &mut [u8],
) -> Result<(), RuntimeError> {
    if let Some(data) = foreign.host() {
        out.copy_from_slice(data);
        return Ok(());
    }
    if !device.driver.shares(foreign.place) {
        let (entry, name) = (entry.to_owned(), name.to_owned());
        let (found, device) = (foreign.place.to_string(), device.device_name());
        return Err(RuntimeError::Unreachable { entry, name, found, device });
    }
    wait(device, foreign, None)?;
    device.driver.read(&device.driver.adopt(foreign)?, out)
}

fn guest<'a, D: Driver>(
    device: &Checked<D>,
    exe: &Shared,
    (name, written): (&str, bool),
    foreign: &Foreign<'a>,
) -> Result<Guest<'a>, RuntimeError> {
    let (name, foreign) = (name.to_owned(), *foreign);
    if foreign.bytes > 0 && device.driver.shares(foreign.place) {
        let memory = device.driver.adopt(&foreign)?;
        let buffer = device.buffer(foreign.bytes, memory, Some(foreign.region()));
        return Ok(Guest { name, foreign, buffer, copied: false, written });
    }
    let Some(data) = foreign.host() else {
        let (entry, found) = (exe.entry.clone(), foreign.place.to_string());
        return Err(RuntimeError::Unreachable { entry, name, found, device: device.device_name() });
    };
    let mut buffer = device.allocate(foreign.bytes)?;
    device.upload(&buffer, data)?;
    buffer.region = (foreign.bytes > 0).then(|| foreign.region());
    Ok(Guest { name, foreign, buffer, copied: true, written })
}

/// The values of an array for one more launch: those that its owner has given it meanwhile.
pub(crate) fn renew<D: Driver>(
    device: &Checked<D>,
    guest: &Guest<'_>,
    stream: Option<Stream>,
) -> Result<(), RuntimeError> {
    wait(device, &guest.foreign, stream)?;
    match guest.foreign.host() {
        Some(data) if guest.copied => device.upload(&guest.buffer, data),
        Some(_) | None => Ok(()),
    }
}

/// What the kernel wrote goes to the owner of the array.
pub(crate) fn settle<D: Driver>(device: &Checked<D>, guest: &Guest<'_>) -> Result<(), RuntimeError> {
    if !guest.written {
        return Ok(());
    }
    if !guest.copied {
        return device.driver.settle(device.memory(&guest.buffer)?);
    }
    guest.foreign.host_mut().map_or(Ok(()), |out| device.download(&guest.buffer, out))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::device::{Backend, DeviceInfo, Optimisation, Origin, Replay};
    use crate::driver::{Call, CallValue};
    use crate::foreign::Place;
    use kingpost_codegen::{HostExpr, LaunchPlan, Program, Target};
    use kingpost_ir::ScalarType;
    use std::sync::{Arc, Mutex};

    /// A card that writes down what it is asked for; its memory is the host's.
    struct Card {
        info: DeviceInfo,
        log: Arc<Mutex<Vec<String>>>,
    }

    /// What it recorded.
    struct Tape(Arc<Mutex<Vec<String>>>);

    impl Replay for Tape {
        fn replay(&self, stream: Option<Stream>) -> Result<(), RuntimeError> {
            self.0.lock().unwrap().push(format!("replay on {:?}", stream.map(|s| s.0)));
            Ok(())
        }
    }

    /// An address.
    struct At(u64);

    impl Card {
        fn new() -> Self {
            let info = DeviceInfo {
                name: "card".into(),
                backend: Backend::Cuda,
                index: 0,
                driver: String::new(),
                compute_units: 1,
                max_work_group_size: 64,
                max_work_item_sizes: [64; 3],
                max_grid: [64; 3],
                local_mem_bytes: 0,
                private_mem_bytes: None,
                global_mem_bytes: 1 << 20,
                fp64: true,
                int64_atomics: true,
                clock_mhz: 0,
                arch: "sm_90".into(),
                uuid: None,
                vector_bytes: 0,
                core_cache_bytes: 0,
            };
            Self { info, log: Arc::default() }
        }

        fn note(&self, what: String) {
            self.log.lock().unwrap().push(what);
        }

        fn arguments(call: &Call<'_, At>) -> usize {
            call.values.iter().filter(|value| matches!(value, CallValue::Memory(_))).count()
        }
    }

    impl Driver for Card {
        type Code = ();
        type Memory = At;

        fn info(&self) -> &DeviceInfo {
            &self.info
        }
        fn build(&self, _: &Program, _: Optimisation) -> Result<((), Origin), RuntimeError> {
            Ok(((), Origin::Built))
        }
        fn allocate(&self, _: u64) -> Result<At, RuntimeError> {
            Ok(At(0))
        }
        fn write(&self, _: &At, _: &[u8]) -> Result<(), RuntimeError> {
            Ok(())
        }
        fn read(&self, memory: &At, out: &mut [u8]) -> Result<(), RuntimeError> {
            self.note("read".into());
            // SAFETY: the tests lend slices of this length.
            out.copy_from_slice(unsafe { std::slice::from_raw_parts(memory.0 as *const u8, out.len()) });
            Ok(())
        }
        fn fill(&self, _: &At, _: u8, _: u64) -> Result<(), RuntimeError> {
            Ok(())
        }
        fn copy(&self, _: &At, _: &At, _: u64) -> Result<(), RuntimeError> {
            Ok(())
        }
        fn shares(&self, place: Place) -> bool {
            place == Place::Cuda
        }
        fn adopt(&self, memory: &Foreign<'_>) -> Result<At, RuntimeError> {
            Ok(At(memory.address))
        }
        fn wait(&self, stream: u64) -> Result<(), RuntimeError> {
            self.note(format!("wait {stream}"));
            Ok(())
        }
        fn wait_all(&self) -> Result<(), RuntimeError> {
            self.note("wait for all".into());
            Ok(())
        }
        fn enqueue(&self, (): &(), call: &Call<'_, At>, s: Stream, wait: bool) -> Result<(), RuntimeError> {
            self.note(format!("enqueue {} arrays on {}, wait: {wait}", Self::arguments(call), s.0));
            Ok(())
        }
        fn record(
            &self,
            put: &mut dyn FnMut(Stream) -> Result<(), RuntimeError>,
        ) -> Result<Option<Box<dyn Replay>>, RuntimeError> {
            put(Stream(5))?;
            self.note("recorded".into());
            Ok(Some(Box::new(Tape(Arc::clone(&self.log)))))
        }
        fn run(&self, (): &(), call: &Call<'_, At>) -> Result<f64, RuntimeError> {
            self.note(format!("run {} arrays", Self::arguments(call)));
            Ok(0.0)
        }
    }

    fn program() -> Program {
        let array = |name: &str, access| ArgSpec {
            name: name.into(),
            ty: ScalarType::F64,
            kind: ArgKind::Buffer { len: HostExpr::Const(2), access },
            aligned: 8,
        };
        let plan = LaunchPlan {
            args: vec![array("x", BufferAccess::In), array("y", BufferAccess::InOut)],
            grid: [1, 1, 1].map(HostExpr::Const),
            block: [1, 1, 1],
            local_bytes: 0,
            dynamic_local_bytes: 0,
            maps: Vec::new(),
            private_bytes: 0,
            features: Vec::new(),
            preconditions: Vec::new(),
            defined: Vec::new(),
            notes: Vec::new(),
        };
        Program {
            target: Target::Cuda,
            entry: "k".into(),
            source: String::new(),
            plan,
            contraction: true,
            repeated_writes: true,
            untrusted: Vec::new(),
            launches: None,
        }
    }

    /// Memory where a card may load vectors.
    #[repr(align(16))]
    struct Aligned([f64; 2]);

    fn lent(values: &Aligned) -> Foreign<'_> {
        // SAFETY: the card of these tests writes nothing.
        unsafe { Foreign::new(Place::Cuda, values.0.as_ptr() as u64, 16).writable() }
    }

    fn log_of(ready: Ready, stream: Option<u64>) -> Vec<String> {
        let device = Checked::new(Card::new());
        let exe = device.compile(&program()).unwrap();
        let (a, b) = (Aligned([1.0, 2.0]), Aligned([3.0, 4.0]));
        let x = match ready {
            Ready::Now => lent(&a),
            // SAFETY: the card knows no streams.
            Ready::After(stream) => unsafe { lent(&a).after(stream) },
            Ready::AfterAll => lent(&a).after_all(),
        };
        let args = [("x", Arg::Foreign(x)), ("y", Arg::Foreign(lent(&b)))];
        device.launch_on(&exe, &args, stream.map(Stream)).unwrap();
        let log = device.driver.log.lock().unwrap();
        log.clone()
    }

    #[test]
    fn a_launch_waits_for_the_stream_that_makes_an_array() {
        let after = Ready::After;
        assert_eq!(log_of(Ready::Now, None), ["run 2 arrays"]);
        assert_eq!(log_of(after(7), None), ["wait 7", "run 2 arrays"]);
        assert_eq!(log_of(Ready::AfterAll, None), ["wait for all", "run 2 arrays"]);
        let enqueued = "enqueue 2 arrays on 9, wait: false";
        assert_eq!(log_of(after(9), Some(9)), [enqueued]);
        assert_eq!(log_of(after(7), Some(9)), ["wait 7", enqueued]);
        // whoever names a stream orders what libraries do not tell
        assert_eq!(log_of(Ready::AfterAll, Some(9)), [enqueued]);
    }

    #[test]
    fn a_prepared_launch_goes_to_the_stream_that_is_named() {
        let device = Checked::new(Card::new());
        let exe = device.compile(&program()).unwrap();
        let (a, b) = (Aligned([1.0, 2.0]), Aligned([3.0, 4.0]));
        // SAFETY: the card knows no streams.
        let x = unsafe { lent(&a).after(7) };
        let args = [("x", Arg::Foreign(x)), ("y", Arg::Foreign(lent(&b)))];
        let prepared = device.prepare(&exe, &args).unwrap();
        assert!(device.driver.log.lock().unwrap().is_empty());
        device.repeat(&prepared, Some(Stream(7))).unwrap();
        device.repeat(&prepared, Some(Stream(9))).unwrap();
        device.repeat(&prepared, None).unwrap();
        let (on, run) =
            (|stream| format!("enqueue 2 arrays on {stream}, wait: false"), "run 2 arrays".to_owned());
        let wait = || "wait 7".to_owned();
        assert_eq!(*device.driver.log.lock().unwrap(), [on(7), wait(), on(9), wait(), run]);
        let other = Checked::new(Card::new());
        assert!(matches!(other.repeat(&prepared, None), Err(RuntimeError::OtherDevice { .. })));
    }

    #[test]
    fn launches_are_recorded_once_and_replayed_on_a_stream() {
        let device = Checked::new(Card::new());
        let exe = device.compile(&program()).unwrap();
        let (a, b) = (Aligned([1.0, 2.0]), Aligned([3.0, 4.0]));
        // SAFETY: the card knows no streams.
        let x = unsafe { lent(&a).after(7) };
        let args = [("x", Arg::Foreign(x)), ("y", Arg::Foreign(lent(&b)))];
        let prepared: Vec<_> = (0..2).map(|_| Arc::new(device.prepare(&exe, &args).unwrap())).collect();
        device.driver.log.lock().unwrap().clear();
        let recorded = device.record(&prepared).unwrap();
        assert!(recorded.is_graph());
        device.replay(&recorded, Some(Stream(7))).unwrap();
        device.replay(&recorded, None).unwrap();
        device.rerun(&recorded).unwrap();
        let on = "enqueue 2 arrays on 5, wait: false";
        // a run to the end waits for the values of each launch
        let to_the_end = ["wait 7", "wait 7", "replay on None"];
        let log = [&[on, on, "recorded", "replay on Some(7)"][..], &to_the_end, &to_the_end].concat();
        assert_eq!(*device.driver.log.lock().unwrap(), log);
        let other = Checked::new(Card::new());
        assert!(matches!(other.replay(&recorded, None), Err(RuntimeError::OtherDevice { .. })));
        // an array of the host is copied at each launch, which a graph would not do
        // SAFETY: as above.
        let host = unsafe { Foreign::new(Place::Host, b.0.as_ptr() as u64, 16).writable() };
        let copied =
            device.prepare(&exe, &[("x", Arg::Foreign(lent(&a))), ("y", Arg::Foreign(host))]).unwrap();
        assert!(!device.record(&[Arc::new(copied)]).unwrap().is_graph());
    }

    #[test]
    fn values_are_fetched_from_a_card_when_they_are_there() {
        let device = Checked::new(Card::new());
        let exe = device.compile(&program()).unwrap();
        let a = Aligned([1.5, -2.5]);
        let mut bytes = [0; 16];
        device.fetch(&exe, "x", &lent(&a).after_all(), &mut bytes).unwrap();
        assert_eq!(bytes[..8], 1.5_f64.to_ne_bytes());
        assert_eq!(bytes[8..], (-2.5_f64).to_ne_bytes());
        assert_eq!(*device.driver.log.lock().unwrap(), ["wait for all", "read"]);
        let error = device.fetch(&exe, "x", &lent(&a), &mut bytes[..8]).unwrap_err();
        assert!(matches!(error, RuntimeError::TransferSize { from: 16, to: 8, .. }), "{error}");
    }
}
