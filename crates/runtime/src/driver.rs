//! What a backend has to provide, and the checked device that is built on it.

use crate::arguments::{BoundMap, Params, Value, bind_entry, maps, scratch};
use crate::device::{
    Arg, Buffer, Code, Device, DeviceInfo, Optimisation, Origin, Replay, Running, Shared, Stream,
};
use crate::error::RuntimeError;
use crate::foreign::{Foreign, Place};
use crate::fork::{delay_forks, forks, watch_forks};
use crate::interrupt::check_interrupt;
use crate::limits::check_limits;
use crate::resources::Resources;
use kingpost_codegen::{ArgKind, ArgSpec, Entry, Program};
use kingpost_ir::Complex;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard, Weak};
use std::time::Instant;

/// A launch in terms of a backend's own memory.
pub(crate) struct Call<'a, M> {
    pub(crate) values: Vec<CallValue<'a, M>>,
    /// Maps of tensors, which follow the values.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) maps: Vec<BoundMap>,
    pub(crate) grid: [u64; 3],
    /// The host's compiler has it in the source.
    #[cfg_attr(not(any(feature = "cuda", feature = "opencl")), allow(dead_code))]
    pub(crate) block: [u64; 3],
}

/// One argument of a [`Call`].
pub(crate) enum CallValue<'a, M> {
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    C64(Complex<f32>),
    C128(Complex<f64>),
    Memory(&'a M),
}

/// A backend: everything arrives checked, one call at a time.
pub(crate) trait Driver: Send + Sync {
    type Code: Send + Sync + 'static;
    type Memory: Send + Sync + 'static;

    fn info(&self) -> &DeviceInfo;
    /// The lock that operations hold; devices that cannot run concurrently share one.
    fn queue(&self) -> Arc<Mutex<()>> {
        Arc::default()
    }
    /// Whether it interprets kernels to check them. Fresh memory then stays unwritten, so that a
    /// read before the first write is found, and nothing runs during a compilation.
    fn is_checker(&self) -> bool {
        false
    }
    fn build(
        &self,
        program: &Program,
        optimisation: Optimisation,
    ) -> Result<(Self::Code, Origin), RuntimeError>;
    /// What the compiler reports of the code, where it does.
    fn resources(&self, _code: &Self::Code) -> Option<Resources> {
        None
    }
    /// `bytes` is at least 1.
    fn allocate(&self, bytes: u64) -> Result<Self::Memory, RuntimeError>;
    /// The same, of memory that the host reads while the device works.
    fn allocate_visible(&self, bytes: u64) -> Result<Self::Memory, RuntimeError> {
        self.allocate(bytes)
    }
    /// Reads such memory from `first` on, as it is now.
    fn see(&self, memory: &Self::Memory, first: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        let mut all = vec![0; first as usize + out.len()];
        self.read(memory, &mut all)?;
        out.copy_from_slice(&all[first as usize..]);
        Ok(())
    }
    fn write(&self, memory: &Self::Memory, data: &[u8]) -> Result<(), RuntimeError>;
    fn read(&self, memory: &Self::Memory, out: &mut [u8]) -> Result<(), RuntimeError>;
    fn fill(&self, memory: &Self::Memory, byte: u8, bytes: u64) -> Result<(), RuntimeError>;
    fn copy(&self, from: &Self::Memory, to: &Self::Memory, bytes: u64) -> Result<(), RuntimeError>;
    /// Whether kernels can use foreign memory of this place as it lies.
    fn shares(&self, place: Place) -> bool;
    /// Foreign memory as it lies; only of a place that is shared.
    fn adopt(&self, memory: &Foreign<'_>) -> Result<Self::Memory, RuntimeError>;
    /// Makes what kernels wrote to adopted memory visible to its owner.
    fn settle(&self, _memory: &Self::Memory) -> Result<(), RuntimeError> {
        Ok(())
    }
    /// Waits for the work on a stream of a foreign array.
    fn wait(&self, _stream: u64) -> Result<(), RuntimeError> {
        Ok(())
    }
    /// Waits for the work on all streams of foreign arrays.
    fn wait_all(&self) -> Result<(), RuntimeError> {
        Ok(())
    }
    /// Whether it works on in a child of a fork.
    fn survives_forks(&self) -> bool {
        false
    }
    /// Runs on a stream, to the end only if `wait` says so.
    fn enqueue(
        &self,
        _code: &Self::Code,
        _call: &Call<'_, Self::Memory>,
        _stream: Stream,
        _wait: bool,
    ) -> Result<(), RuntimeError> {
        Err(RuntimeError::NoStreams { device: self.info().name.clone() })
    }
    /// Launches that `put` puts on a stream, as one; none if the device has no such graphs.
    fn record(
        &self,
        _put: &mut dyn FnMut(Stream) -> Result<(), RuntimeError>,
    ) -> Result<Option<Box<dyn Replay>>, RuntimeError> {
        Ok(None)
    }
    /// Runs what it recorded to the end and returns the seconds it took by the device's clock.
    fn rerun(&self, graph: &dyn Replay) -> Result<f64, RuntimeError> {
        let start = Instant::now();
        graph.replay(None)?;
        Ok(start.elapsed().as_secs_f64())
    }
    /// Puts what it recorded on the default stream; none if the device does not run concurrently with the host.
    fn begin(&self, _graph: &dyn Replay) -> Result<Option<Box<dyn Running>>, RuntimeError> {
        Ok(None)
    }
    /// Joules that the whole device has taken since some moment, where it counts them.
    fn joules(&self) -> Option<f64> {
        None
    }
    /// Puts launches on the default stream; false if the device does not run concurrently with the
    /// host, and nothing was done.
    fn put(&self, _calls: &[(&Self::Code, Call<'_, Self::Memory>)]) -> Result<bool, RuntimeError> {
        Ok(false)
    }
    /// Runs to the end and returns the seconds it took by the device's clock.
    fn run(&self, code: &Self::Code, call: &Call<'_, Self::Memory>) -> Result<f64, RuntimeError>;
    /// Most launches that [`Self::run_all`] takes: more are handed over in turns.
    fn most_at_once(&self) -> usize {
        1
    }
    /// Runs one after the other, to the end of the last, and returns the seconds of all.
    fn run_all(&self, calls: &[(&Self::Code, Call<'_, Self::Memory>)]) -> Result<f64, RuntimeError> {
        calls.iter().map(|(code, call)| self.run(code, call)).sum()
    }
}

/// A program, and what was compiled of it.
pub(super) type Known = (Weak<Program>, Weak<Shared>);

/// A device that checks everything before its driver sees it.
pub(crate) struct Checked<D: Driver> {
    pub(super) id: u64,
    pub(crate) driver: D,
    /// Held by every operation: kernels keep their arguments between calls in OpenCL.
    pub(super) queue: Arc<Mutex<()>>,
    /// The forks before it was opened.
    pub(crate) forks: u64,
    pub(super) compiled: Mutex<HashMap<[u8; 32], Weak<Shared>>>,
    /// The same by the address of a program that its owner keeps.
    pub(super) known: Mutex<HashMap<usize, Known>>,
    /// The last of these, the latest at the end, for whoever compiles them again: a solver has two dozen.
    recent: Mutex<VecDeque<Arc<Shared>>>,
    /// Bytes copied to the device and from it.
    pub(super) copied: [AtomicU64; 2],
}

/// What an operation holds: the device, and the process as it is.
pub(crate) struct Turn<'d> {
    pub(crate) _queue: MutexGuard<'d, ()>,
    pub(crate) _gate: Option<RwLockReadGuard<'static, ()>>,
}

/// Launches in order.
pub(crate) type Launches<'a, D> = Vec<(&'a <D as Driver>::Code, Call<'a, <D as Driver>::Memory>)>;

/// Executables that a device keeps loaded when nobody else does: to load one takes longer than a launch. A solve
/// with algebraic multigrid has about 80.
const RECENT: usize = 128;

/// Most launches of a sequence that are handed to a driver at once.
pub(crate) const PIECE: usize = 4096;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded data has no half-done state: a thread that panicked while holding it did no harm.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Driver> Checked<D> {
    pub(crate) fn new(driver: D) -> Self {
        Self {
            id: next_id(),
            queue: driver.queue(),
            forks: {
                watch_forks();
                forks()
            },
            driver,
            compiled: Mutex::default(),
            known: Mutex::default(),
            recent: Mutex::default(),
            copied: Default::default(),
        }
    }

    /// Keeps an executable loaded until others have come.
    pub(super) fn keep(&self, shared: &Arc<Shared>) {
        let mut recent = lock(&self.recent);
        recent.push_back(Arc::clone(shared));
        let oldest = if recent.len() > RECENT { recent.pop_front() } else { None };
        drop(recent); // before an executable, which may have to be waited for
        drop(oldest);
    }

    /// Waits for the device; what every operation begins with, and what it holds.
    pub(super) fn turn(&self) -> Result<Turn<'_>, RuntimeError> {
        self.check_use()?;
        let gate = self.driver.survives_forks().then(delay_forks);
        Ok(Turn { _queue: lock(&self.queue), _gate: gate })
    }

    /// Refuses a device that was lost in a fork, and work that is to stop.
    pub(crate) fn check_use(&self) -> Result<(), RuntimeError> {
        if self.forks != forks() && !self.driver.survives_forks() {
            return Err(RuntimeError::Forked { device: self.device_name() });
        }
        check_interrupt()
    }

    pub(crate) fn device_name(&self) -> String {
        self.driver.info().name.clone()
    }

    /// A buffer of this device.
    pub(crate) fn buffer(
        &self,
        bytes: u64,
        memory: D::Memory,
        region: Option<std::ops::Range<u64>>,
    ) -> Buffer {
        Buffer { id: next_id(), device: self.id, bytes, region, memory: Box::new(memory) }
    }

    pub(crate) fn memory<'a>(&self, buffer: &'a Buffer) -> Result<&'a D::Memory, RuntimeError> {
        let memory = if buffer.device == self.id { buffer.memory.downcast_ref() } else { None };
        memory.ok_or_else(|| RuntimeError::OtherDevice {
            what: format!("a buffer of {} bytes", buffer.bytes),
            device: self.device_name(),
        })
    }

    pub(crate) fn code<'a>(
        &self,
        exe: &Shared,
        code: &'a (dyn Any + Send + Sync),
    ) -> Result<&'a D::Code, RuntimeError> {
        let code = if exe.device == self.id { code.downcast_ref() } else { None };
        code.ok_or_else(|| RuntimeError::OtherDevice {
            what: format!("executable `{}`", exe.entry),
            device: self.device_name(),
        })
    }

    pub(crate) fn values<'a>(
        &self,
        values: &[Value<'a>],
    ) -> Result<Vec<CallValue<'a, D::Memory>>, RuntimeError> {
        let value = |value: &Value<'a>| {
            Ok(match *value {
                Value::I32(v) => CallValue::I32(v),
                Value::I64(v) => CallValue::I64(v),
                Value::F32(v) => CallValue::F32(v),
                Value::F64(v) => CallValue::F64(v),
                Value::C64(v) => CallValue::C64(v),
                Value::C128(v) => CallValue::C128(v),
                Value::Buffer(b) => CallValue::Memory(self.memory(b)?),
            })
        };
        values.iter().map(value).collect()
    }

    /// Runs launches to the end of the last, and returns the seconds of all.
    ///
    /// Each turn begins with the question whether to stop. Who answers may need a lock of a thread
    /// that waits for a turn, or for one to end so that it can fork: no turn is held meanwhile.
    pub(super) fn run(&self, calls: &[(&D::Code, Call<'_, D::Memory>)]) -> Result<f64, RuntimeError> {
        let in_turn = |some: &[(&D::Code, Call<'_, D::Memory>)]| -> Result<f64, RuntimeError> {
            let _turn = self.turn()?;
            match some {
                [(code, call)] => self.driver.run(code, call),
                several => self.driver.run_all(several),
            }
        };
        calls.chunks(self.driver.most_at_once()).map(in_turn).sum()
    }

    /// Puts launches on the default stream, or runs them.
    pub(super) fn put(&self, calls: &[(&D::Code, Call<'_, D::Memory>)]) -> Result<(), RuntimeError> {
        let is_put = {
            let _turn = self.turn()?;
            self.driver.put(calls)?
        };
        if is_put { Ok(()) } else { self.run(calls).map(drop) }
    }

    /// Runs launches: to the end of the last, or puts them on a stream, and then waits if asked to.
    pub(crate) fn start(
        &self,
        calls: &[(&D::Code, Call<'_, D::Memory>)],
        stream: Option<Stream>,
        wait: bool,
    ) -> Result<(), RuntimeError> {
        let Some(stream) = stream else { return self.run(calls).map(drop) };
        let _queue = self.turn()?;
        let last = calls.len();
        calls
            .iter()
            .enumerate()
            .try_for_each(|(k, (code, call))| self.driver.enqueue(code, call, stream, wait && k + 1 == last))
    }

    /// Hands the launches of an executable to `run`, as many at once as fit a piece; those without groups
    /// are none.
    pub(crate) fn in_pieces<'a>(
        &self,
        exe: &'a Shared,
        (values, params, grid): (&[Value<'a>], &Params, [u64; 3]),
        run: &mut dyn FnMut(Launches<'a, D>) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let (sequence, codes) = match &exe.code {
            Code::One(code) => {
                if grid.contains(&0) {
                    return Ok(());
                }
                let (values, block) = (self.values(values)?, exe.plan.block);
                let maps = maps((&exe.entry, &exe.plan), params)?;
                return run(vec![(self.code(exe, &**code)?, Call { values, maps, grid, block })]);
            }
            Code::Several(sequence, codes) => (sequence, codes),
        };
        let codes = codes.iter().map(|code| self.code(exe, &**code)).collect::<Result<Vec<_>, _>>()?;
        let mut piece = Vec::new();
        let no_value = |source| RuntimeError::Expression {
            entry: exe.entry.clone(),
            what: "a bound of a loop around launches".into(),
            source,
        };
        sequence.visit(params, &no_value, &mut |k, params| {
            let (entry, code) = (&sequence.entries[k], codes[k]);
            let (own, grid) = bind_entry(entry, params, exe.plan.args.len(), self.info())?;
            if grid.contains(&0) {
                return Ok(());
            }
            let mut values = self.values(values)?;
            values.extend(self.values(&own)?);
            let maps = maps((&entry.name, &entry.plan), params)?;
            piece.push((code, Call { values, maps, grid, block: entry.plan.block }));
            if piece.len() == PIECE { run(std::mem::take(&mut piece)) } else { Ok(()) }
        })?;
        if piece.is_empty() { Ok(()) } else { run(piece) }
    }

    /// Memory for the temporaries of a launch that all work-groups share, all poison or zero.
    pub(crate) fn allocate_scratch(
        &self,
        exe: &Shared,
        args: &[(&str, Arg<'_>)],
    ) -> Result<Vec<Option<Buffer>>, RuntimeError> {
        let sizes = scratch(exe, args)?;
        let of = |(spec, bytes): (&ArgSpec, Option<u64>)| {
            let Some(buffer) = bytes.map(|n| self.allocate(n)).transpose()? else { return Ok(None) };
            if matches!(spec.kind, ArgKind::Scratch { zeroed: true, .. }) {
                self.fill(&buffer, 0)?;
            }
            Ok(Some(buffer))
        };
        exe.plan.args.iter().zip(sizes).map(of).collect()
    }

    /// The code of a program: of each function that is launched.
    pub(super) fn built(
        &self,
        program: &Program,
        optimisation: Optimisation,
    ) -> Result<(Code, Origin, Option<Resources>), RuntimeError> {
        let sequence = match &program.launches {
            Some(sequence) if !program.target.description().is_host() => sequence,
            Some(_) | None => {
                let (code, origin) = self.driver.build(program, optimisation)?;
                let resources = self.driver.resources(&code);
                return Ok((Code::One(Box::new(code)), origin, resources));
            }
        };
        let (mut codes, mut origin) = (Vec::with_capacity(sequence.entries.len()), Origin::Disk);
        for Entry { name, plan } in &sequence.entries {
            let (entry, plan) = (name.clone(), plan.clone());
            let program = Program { entry, plan, launches: None, ..program.clone() };
            check_limits(&program, self.driver.info())?;
            let (code, from) = self.driver.build(&program, optimisation)?;
            if from == Origin::Built {
                origin = from;
            }
            codes.push(Box::new(code) as Box<dyn Any + Send + Sync>);
        }
        Ok((Code::Several(sequence.clone(), codes), origin, None))
    }

    pub(super) fn upload_tables(&self, program: &Program) -> Result<Vec<Option<Buffer>>, RuntimeError> {
        let mut tables = Vec::with_capacity(program.plan.args.len());
        for spec in &program.plan.args {
            tables.push(match &spec.kind {
                ArgKind::Table(data) => {
                    let bytes = data.to_bytes(spec.ty);
                    let buffer = self.allocate(bytes.len() as u64)?;
                    self.upload(&buffer, &bytes)?;
                    Some(buffer)
                }
                ArgKind::Param | ArgKind::Scalar | ArgKind::Buffer { .. } | ArgKind::Scratch { .. } => None,
            });
        }
        Ok(tables)
    }
}
