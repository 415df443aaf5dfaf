//! Devices: what is asked of one, checked before its driver does it.

use crate::arguments::bind;
use crate::device::{
    Arg, Begun, Buffer, Device, DeviceInfo, Executable, Launch, Optimisation, Origin, Prepared, Recorded,
    Shared, Stream, Traffic,
};
use crate::driver::{Checked, Driver, lock};
use crate::error::RuntimeError;
use crate::foreign::{Foreign, Place};
use crate::guests::{admit, among, fetch, settle, wait_for};
use crate::limits::check_limits;
use crate::prepared::{begin, prepare, record, repeat, replay, rerun};
use crate::timing::{Timing, TimingOptions};
use kingpost_codegen::Program;
use std::hash::{Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

impl<D: Driver> Device for Checked<D> {
    fn info(&self) -> &DeviceInfo {
        self.driver.info()
    }

    fn compile_as(&self, program: &Program, optimisation: Optimisation) -> Result<Executable, RuntimeError> {
        if let Some(callee) = program.untrusted.first() {
            let (entry, callee) = (program.entry.clone(), callee.clone());
            return Err(RuntimeError::Untrusted { entry, callee });
        }
        self.check_use()?;
        check_limits(program, self.driver.info())?;
        let key = program_key(program, optimisation);
        if let Some(shared) = lock(&self.compiled).get(&key).and_then(Weak::upgrade) {
            return Ok(Executable { origin: Origin::Memory, shared });
        }
        let (code, origin, resources) = {
            // Compilers run concurrently with each other and with kernels: a tuner compiles on many threads.
            let _queue = self.driver.is_checker().then(|| lock(&self.queue));
            self.built(program, optimisation)?
        };
        let shared = Arc::new(Shared {
            device: self.id,
            entry: program.entry.clone(),
            plan: program.plan.clone(),
            resources,
            code,
            tables: self.upload_tables(program)?,
        });
        lock(&self.compiled).insert(key, Arc::downgrade(&shared));
        self.keep(&shared);
        Ok(Executable { origin, shared })
    }

    fn compile_known(&self, program: &Arc<Program>) -> Result<Executable, RuntimeError> {
        self.check_use()?;
        // no other program has the address as long as the caller has this one
        let address = Arc::as_ptr(program) as usize;
        let loaded = lock(&self.known).get(&address).and_then(|(of, shared)| {
            let is_same = of.upgrade().is_some_and(|of| Arc::ptr_eq(&of, program));
            is_same.then(|| shared.upgrade()).flatten()
        });
        if let Some(shared) = loaded {
            return Ok(Executable { origin: Origin::Memory, shared });
        }
        let executable = self.compile(program)?;
        let both = (Arc::downgrade(program), Arc::downgrade(&executable.shared));
        lock(&self.known).insert(address, both);
        Ok(executable)
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer, RuntimeError> {
        self.allocated(bytes, D::allocate, true)
    }

    fn allocate_unset(&self, bytes: u64) -> Result<Buffer, RuntimeError> {
        self.allocated(bytes, D::allocate, cfg!(debug_assertions))
    }

    fn allocate_visible(&self, bytes: u64) -> Result<Buffer, RuntimeError> {
        self.allocated(bytes, D::allocate_visible, true)
    }

    fn see(&self, buffer: &Buffer, first: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        let memory = self.memory(buffer)?;
        let last = first.saturating_add(out.len() as u64);
        if last > buffer.bytes {
            return same_size("look", buffer.bytes, last);
        }
        let _queue = self.turn()?;
        self.driver.see(memory, first, out)?;
        self.copied[1].fetch_add(out.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn upload(&self, buffer: &Buffer, data: &[u8]) -> Result<(), RuntimeError> {
        let memory = self.memory(buffer)?;
        same_size("upload", data.len() as u64, buffer.bytes)?;
        if data.is_empty() {
            return Ok(());
        }
        let _queue = self.turn()?;
        self.driver.write(memory, data)?;
        self.copied[0].fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        let memory = self.memory(buffer)?;
        same_size("download", buffer.bytes, out.len() as u64)?;
        if out.is_empty() {
            return Ok(());
        }
        let _queue = self.turn()?;
        self.driver.read(memory, out)?;
        self.copied[1].fetch_add(out.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn fetch(
        &self,
        executable: &Executable,
        name: &str,
        foreign: &Foreign<'_>,
        out: &mut [u8],
    ) -> Result<(), RuntimeError> {
        same_size("download", foreign.bytes, out.len() as u64)?;
        if out.is_empty() {
            return Ok(());
        }
        let _queue = self.turn()?;
        fetch(self, executable.entry(), name, foreign, out)?;
        self.copied[1].fetch_add(out.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        let [to_device, to_host] = self.copied.each_ref().map(|bytes| bytes.load(Ordering::Relaxed));
        Traffic { to_device, to_host }
    }

    fn fill(&self, buffer: &Buffer, byte: u8) -> Result<(), RuntimeError> {
        let memory = self.memory(buffer)?;
        let _queue = self.turn()?;
        self.driver.fill(memory, byte, buffer.bytes.max(1))
    }

    fn copy(&self, from: &Buffer, to: &Buffer) -> Result<(), RuntimeError> {
        let (source, target) = (self.memory(from)?, self.memory(to)?);
        same_size("copy", from.bytes, to.bytes)?;
        if from.id == to.id || from.bytes == 0 {
            return Ok(());
        }
        let _queue = self.turn()?;
        self.driver.copy(source, target, from.bytes)
    }

    fn launch_on(
        &self,
        executable: &Executable,
        args: &[(&str, Arg<'_>)],
        stream: Option<Stream>,
    ) -> Result<(), RuntimeError> {
        let exe = &*executable.shared;
        self.check_use()?;
        let guests = admit(self, exe, args)?;
        wait_for(self, &guests, stream)?;
        let args = among(args, &guests);
        let scratch = self.allocate_scratch(exe, &args)?;
        let bound = bind(exe, &args, &scratch, self.info())?;
        let wait = scratch.iter().any(Option::is_some) || guests.iter().any(|guest| guest.copied);
        self.in_pieces(exe, bound.parts(), &mut |calls| self.start(&calls, stream, wait))?;
        guests.iter().try_for_each(|guest| settle(self, guest))
    }

    fn prepare<'a>(
        &self,
        executable: &Executable,
        args: &[(&str, Arg<'a>)],
    ) -> Result<Prepared<'a>, RuntimeError> {
        prepare(self, executable, args)
    }

    fn repeat(&self, prepared: &Prepared<'_>, stream: Option<Stream>) -> Result<(), RuntimeError> {
        repeat(self, prepared, stream)
    }

    fn record<'a>(&self, prepared: &[Arc<Prepared<'a>>]) -> Result<Recorded<'a>, RuntimeError> {
        record(self, prepared)
    }

    fn replay(&self, recorded: &Recorded<'_>, stream: Option<Stream>) -> Result<(), RuntimeError> {
        replay(self, recorded, stream)
    }

    fn rerun(&self, recorded: &Recorded<'_>) -> Result<f64, RuntimeError> {
        rerun(self, recorded)
    }

    fn begin<'r>(&self, recorded: &'r Recorded<'_>) -> Result<Option<Begun<'r>>, RuntimeError> {
        begin(self, recorded)
    }

    fn launch_all(&self, launches: &[Launch<'_>]) -> Result<f64, RuntimeError> {
        let mut scratches = Vec::with_capacity(launches.len());
        for Launch { executable, args } in launches {
            check_owned(executable, args)?;
            scratches.push(self.allocate_scratch(&executable.shared, args)?);
        }
        let mut calls = Vec::with_capacity(launches.len());
        for (Launch { executable, args }, scratch) in launches.iter().zip(&scratches) {
            let exe = &*executable.shared;
            let bound = bind(exe, args, scratch, self.info())?;
            self.in_pieces(exe, bound.parts(), &mut |piece| {
                calls.extend(piece);
                Ok(())
            })?;
        }
        self.run(&calls)
    }

    fn put_all(&self, launches: &[Launch<'_>]) -> Result<(), RuntimeError> {
        for Launch { executable, args } in launches {
            check_owned(executable, args)?;
            let exe = &*executable.shared;
            let scratch = self.allocate_scratch(exe, args)?;
            let bound = bind(exe, args, &scratch, self.info())?;
            self.in_pieces(exe, bound.parts(), &mut |piece| self.put(&piece))?;
        }
        Ok(())
    }

    fn shares(&self, place: Place) -> bool {
        self.driver.shares(place)
    }

    fn joules(&self) -> Option<f64> {
        self.driver.joules()
    }

    fn time(
        &self,
        executable: &Executable,
        args: &[(&str, Arg<'_>)],
        options: &TimingOptions,
    ) -> Result<Timing, RuntimeError> {
        let exe = &*executable.shared;
        self.check_use()?;
        let guests = admit(self, exe, args)?;
        wait_for(self, &guests, None)?;
        let args = among(args, &guests);
        let scratch = self.allocate_scratch(exe, &args)?;
        let bound = bind(exe, &args, &scratch, self.info())?;
        let mut calls = Vec::new();
        self.in_pieces(exe, bound.parts(), &mut |piece| {
            calls.extend(piece);
            Ok(())
        })?;
        if calls.is_empty() {
            return Err(RuntimeError::NothingToTime { entry: exe.entry.clone() });
        }
        let timing = Timing::sample(options, || self.run(&calls))?;
        guests.iter().try_for_each(|guest| settle(self, guest))?;
        Ok(timing)
    }
}

impl<D: Driver> Checked<D> {
    /// A buffer of new memory, all poison if asked for.
    fn allocated(
        &self,
        bytes: u64,
        allocate: impl Fn(&D, u64) -> Result<D::Memory, RuntimeError>,
        is_poison: bool,
    ) -> Result<Buffer, RuntimeError> {
        let _queue = self.turn()?;
        // OpenCL has no empty buffers; one spare byte does no harm elsewhere.
        let real = bytes.max(1);
        // Host and OpenCL promise what they do not have, and end the process when it is used.
        let all = self.info().global_mem_bytes;
        if all != 0 && real > all {
            let reason = format!("it has {all} bytes in all");
            return Err(RuntimeError::Allocation { bytes, device: self.device_name(), reason });
        }
        let memory = allocate(&self.driver, real)?;
        if is_poison && !self.driver.is_checker() {
            self.driver.fill(&memory, 0xFF, real)?;
        }
        Ok(self.buffer(bytes, memory, None))
    }
}

/// Whether all arrays of a launch are buffers.
fn check_owned(executable: &Executable, args: &[(&str, Arg<'_>)]) -> Result<(), RuntimeError> {
    match args.iter().find(|(_, arg)| matches!(arg, Arg::Foreign(_))) {
        Some((name, _)) => {
            let (entry, name) = (executable.entry().to_owned(), (*name).to_owned());
            Err(RuntimeError::ForeignInTurn { entry, name })
        }
        None => Ok(()),
    }
}

fn same_size(operation: &'static str, from: u64, to: u64) -> Result<(), RuntimeError> {
    if from == to { Ok(()) } else { Err(RuntimeError::TransferSize { operation, from, to }) }
}

/// Everything a program consists of, for one digest: of many short pieces it takes several times as
/// long.
struct DigestHasher(Vec<u8>);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0 // never asked for: the digest is of the bytes
    }
}

/// Key of the in-memory cache: source, entry, target, plan and how it is compiled.
fn program_key(program: &Program, optimisation: Optimisation) -> [u8; 32] {
    let mut hasher = DigestHasher(Vec::with_capacity(2 * program.source.len()));
    (program, optimisation).hash(&mut hasher);
    *blake3::hash(&hasher.0).as_bytes()
}
