//! NCCL: what cards tell each other, put on streams.
//!
//! The library is loaded here and not by `cudarc`, which knows it as `libnccl.so` alone: wheels and
//! the packages of distributions have `libnccl.so.2`.

use super::context::{Context, CudaMemory, driver_error};
use super::graph::Graph;
use super::toolkit;
use crate::device::{Backend, Buffer, Device, Stream};
use crate::error::{RuntimeError, Unavailable};
use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A communicator of NCCL's.
type Comm = *mut c_void;
type Code = c_int;
type Plain = unsafe extern "C" fn() -> Code;
type OfComm = unsafe extern "C" fn(Comm) -> Code;
type InitRank = unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> Code;
type GetId = unsafe extern "C" fn(*mut UniqueId) -> Code;
type InitAll = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> Code;
type Transfer = unsafe extern "C" fn(u64, usize, c_int, c_int, Comm, sys::CUstream) -> Code;
type AllReduce = unsafe extern "C" fn(u64, u64, usize, c_int, c_int, Comm, sys::CUstream) -> Code;
type Message = unsafe extern "C" fn(Code) -> *const c_char;

/// `ncclFloat64` and `ncclSum` of NCCL 2.
const FLOAT64: c_int = 8;
const SUM: c_int = 0;

/// What tells the processes of one communicator apart from others, which one of them makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct UniqueId(pub [u8; 128]);

impl UniqueId {
    /// A new one, for a process to hand to the others.
    ///
    /// # Errors
    /// No NCCL, or what it refuses.
    pub fn new() -> Result<Self, RuntimeError> {
        let nccl = load()?;
        let mut id = Self([0; 128]);
        // SAFETY: the value has the bytes of NCCL's.
        nccl.done("ncclGetUniqueId", unsafe { (nccl.get_id)(&raw mut id) })?;
        Ok(id)
    }
}

/// A loaded NCCL.
struct Nccl {
    init_all: InitAll,
    init_rank: InitRank,
    get_id: GetId,
    destroy: OfComm,
    abort: OfComm,
    group_start: Plain,
    group_end: Plain,
    send: Transfer,
    receive: Transfer,
    all_reduce: AllReduce,
    message: Message,
    /// Never dropped: the value lives in a static.
    _library: Library,
}

impl Nccl {
    /// The library at `path`, if it loads and has every function.
    fn open(path: &Path) -> Option<Self> {
        // SAFETY: NVIDIA's library; its initialisers have no preconditions.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: the types are those of NCCL's header, which has kept them since 2.7; pointers of the
        // driver are numbers of 64 bits.
        unsafe {
            Some(Self {
                init_all: *library.get(b"ncclCommInitAll").ok()?,
                init_rank: *library.get(b"ncclCommInitRank").ok()?,
                get_id: *library.get(b"ncclGetUniqueId").ok()?,
                destroy: *library.get(b"ncclCommDestroy").ok()?,
                abort: *library.get(b"ncclCommAbort").ok()?,
                group_start: *library.get(b"ncclGroupStart").ok()?,
                group_end: *library.get(b"ncclGroupEnd").ok()?,
                send: *library.get(b"ncclSend").ok()?,
                receive: *library.get(b"ncclRecv").ok()?,
                all_reduce: *library.get(b"ncclAllReduce").ok()?,
                message: *library.get(b"ncclGetErrorString").ok()?,
                _library: library,
            })
        }
    }

    fn done(&self, call: &'static str, code: Code) -> Result<(), RuntimeError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any code and returns a text that stays.
        let text = unsafe { CStr::from_ptr((self.message)(code)) };
        Err(RuntimeError::Nccl { call, reason: text.to_string_lossy().into_owned() })
    }
}

fn load() -> Result<&'static Nccl, Unavailable> {
    static NCCL: OnceLock<Result<Nccl, Unavailable>> = OnceLock::new();
    let missing = |searched| Unavailable::NoNccl { searched };
    toolkit::load(&NCCL, &["libnccl.so.2", "libnccl.so"], Nccl::open, missing)
}

/// The communicators of the cards of this process, one each.
struct Group {
    nccl: &'static Nccl,
    comms: Vec<Comm>,
    /// The cards of all processes.
    size: usize,
    /// Whether they were given up, and are no more.
    is_over: AtomicBool,
}

// SAFETY: NCCL's communicators may be used from any thread, each by one at a time.
unsafe impl Send for Group {}
// SAFETY: as above; those of other threads are touched by `abandon` alone, as NCCL allows.
unsafe impl Sync for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Acquire) {
            for comm in &self.comms {
                // SAFETY: made by `Rank`, destroyed once. There is nobody to tell of a failure.
                let _ = unsafe { (self.nccl.destroy)(*comm) };
            }
        }
    }
}

/// A part of a buffer of numbers in double precision, and whom it comes from or goes to.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'b> {
    /// The rank of the other card.
    pub peer: usize,
    /// The buffer.
    pub buffer: &'b Buffer,
    /// Its first number that counts.
    pub first: usize,
    /// How many of them do.
    pub count: usize,
}

/// What a [`Rank`] recorded.
pub struct RankGraph(Graph);

/// A card among others, to be used by a thread of its own: transfers and sums wait for the other
/// cards.
///
/// Kernels go on the stream [`Rank::stream`], where sums go too; exchanges have a stream of their own,
/// so that they run concurrently with kernels.
pub struct Rank {
    rank: usize,
    comm: Comm,
    group: Arc<Group>,
    work: sys::CUstream,
    transfers: sys::CUstream,
    /// Reached when what is to be sent is there.
    packed: sys::CUevent,
    /// Reached when what was received is there.
    arrived: sys::CUevent,
    context: Arc<Context>,
}

// SAFETY: handles of the driver and of NCCL, used with the context current; a value is used by one
// thread at a time, as it is not `Sync`.
unsafe impl Send for Rank {}

/// The numbers of cards, each of which is given once.
fn cards(devices: &[&dyn Device]) -> Result<Vec<usize>, RuntimeError> {
    let infos: Vec<_> = devices.iter().map(|device| device.info()).collect();
    let indices: Vec<usize> = infos.iter().map(|info| info.index).collect();
    let mut different = indices.clone();
    different.sort_unstable();
    different.dedup();
    if different.len() < infos.len() || infos.iter().any(|info| info.backend != Backend::Cuda) {
        let found: Vec<String> = infos.iter().map(|info| format!("`{}`", info.selector())).collect();
        return Err(RuntimeError::NotCards { found: found.join(", ") });
    }
    Ok(indices)
}

impl Rank {
    /// Connects cards, each of which is given once; their ranks are in this order.
    ///
    /// # Errors
    /// Other devices, or a card twice; no NCCL; what NCCL refuses.
    pub fn of_devices(devices: &[&dyn Device]) -> Result<Vec<Self>, RuntimeError> {
        let indices = cards(devices)?;
        let nccl = load()?;
        super::context::count()?;
        let ordinals: Vec<c_int> = indices.iter().map(|index| *index as c_int).collect();
        let mut comms: Vec<Comm> = vec![std::ptr::null_mut(); indices.len()];
        // SAFETY: both lists have as many elements as are announced.
        let code = unsafe { (nccl.init_all)(comms.as_mut_ptr(), comms.len() as c_int, ordinals.as_ptr()) };
        nccl.done("ncclCommInitAll", code)?;
        let size = comms.len();
        let group = Arc::new(Group { nccl, comms, size, is_over: AtomicBool::new(false) });
        (0..size).map(|rank| Self::new((rank, rank), indices[rank], &group)).collect()
    }

    /// Connects the card of this process with those of other processes, each of which calls this
    /// with the same id and number of cards, and a rank of its own. It waits for all of them.
    ///
    /// # Errors
    /// As [`Rank::of_devices`].
    pub fn of_process(
        device: &dyn Device,
        id: UniqueId,
        rank: usize,
        size: usize,
    ) -> Result<Self, RuntimeError> {
        let index = cards(&[device])?[0];
        let nccl = load()?;
        let (card, info) = super::card::card(index)
            .map_err(|e| driver_error(&format!("cuda:{index}"), "cuDeviceGetAttribute", e))?;
        // NCCL takes the card of the context that is current
        Context::new(card, info.name)?.enter()?;
        let mut comm: Comm = std::ptr::null_mut();
        // SAFETY: the pointer is to a value of this function, and the id is that of NCCL.
        let code = unsafe { (nccl.init_rank)(&raw mut comm, size as c_int, id, rank as c_int) };
        nccl.done("ncclCommInitRank", code)?;
        let group = Arc::new(Group { nccl, comms: vec![comm], size, is_over: AtomicBool::new(false) });
        Self::new((rank, 0), index, &group)
    }

    /// The card of a rank, whose communicator is at a place of the group.
    fn new((rank, place): (usize, usize), index: usize, group: &Arc<Group>) -> Result<Self, RuntimeError> {
        let (device, info) = super::card::card(index)
            .map_err(|e| driver_error(&format!("cuda:{index}"), "cuDeviceGetAttribute", e))?;
        let context = Context::new(device, info.name)?;
        context.enter()?;
        // Streams that wait for the default stream, which uploads and fills are on.
        let stream = || result::stream::create(StreamKind::Default).map_err(context.failed("cuStreamCreate"));
        let event = || {
            let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
            result::event::create(flags).map_err(context.failed("cuEventCreate"))
        };
        Ok(Self {
            rank,
            comm: group.comms[place],
            group: Arc::clone(group),
            work: stream()?,
            transfers: stream()?,
            packed: event()?,
            arrived: event()?,
            context: Arc::clone(&context),
        })
    }

    /// Which card it is among all.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank
    }

    /// How many cards there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.group.size
    }

    /// The stream of its kernels.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream(self.work as u64)
    }

    /// Sends and receives after the kernels so far, concurrently with later ones.
    ///
    /// # Errors
    /// A buffer of another device or that is too small, a rank that is not there, a failing driver.
    pub fn start_exchange(&self, sends: &[Piece<'_>], receives: &[Piece<'_>]) -> Result<(), RuntimeError> {
        if sends.is_empty() && receives.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        self.mark(self.packed, self.work)?;
        self.wait_for(self.packed, self.transfers)?;
        self.start()?;
        let nccl = self.group.nccl;
        for (call, transfer, pieces) in [("ncclSend", nccl.send, sends), ("ncclRecv", nccl.receive, receives)]
        {
            for piece in pieces {
                let address = self.address(piece.buffer, piece.first, piece.count)?;
                let peer = piece.peer as c_int;
                // SAFETY: the numbers lie within a buffer of this card, whose owner waits for the stream
                // before it goes.
                let code =
                    unsafe { transfer(address, piece.count, FLOAT64, peer, self.comm, self.transfers) };
                nccl.done(call, code)?;
            }
        }
        self.end()?;
        self.mark(self.arrived, self.transfers)
    }

    /// Lets later kernels wait for what the exchange brings.
    ///
    /// # Errors
    /// A failing driver.
    pub fn finish_exchange(&self) -> Result<(), RuntimeError> {
        self.context.enter()?;
        self.wait_for(self.arrived, self.work)
    }

    /// Replaces numbers, each at a place of a buffer, by their sums over all cards, after the
    /// kernels so far. All cards get the same sums.
    ///
    /// # Errors
    /// As [`Rank::start_exchange`].
    pub fn sum(&self, numbers: &[(&Buffer, usize)]) -> Result<(), RuntimeError> {
        self.start()?;
        for (buffer, place) in numbers {
            let address = self.address(buffer, *place, 1)?;
            // SAFETY: as in `start_exchange`.
            let code = unsafe {
                (self.group.nccl.all_reduce)(address, address, 1, FLOAT64, SUM, self.comm, self.work)
            };
            self.group.nccl.done("ncclAllReduce", code)?;
        }
        self.end()
    }

    /// What `put` asks of this card as one graph: kernels on [`Rank::stream`], sums, and exchanges,
    /// each of which is [finished](Rank::finish_exchange). Nothing runs. Numbers were exchanged and
    /// summed once before, because cards connect then.
    ///
    /// # Errors
    /// What `put` returns; a failing driver.
    pub fn record<E: From<RuntimeError>>(&self, put: impl FnOnce() -> Result<(), E>) -> Result<RankGraph, E> {
        self.context.enter()?;
        Ok(RankGraph(Graph::on(&self.context, self.work, put)?))
    }

    /// Does what was recorded on this card once more, after all before.
    ///
    /// # Errors
    /// A failing driver.
    pub fn replay(&self, graph: &RankGraph) -> Result<(), RuntimeError> {
        self.context.enter()?;
        graph.0.launch(self.work)
    }

    /// Waits for all of its kernels and sums.
    ///
    /// # Errors
    /// A failing driver.
    pub fn wait(&self) -> Result<(), RuntimeError> {
        self.context.enter()?;
        // SAFETY: made in `new`, destroyed when this value goes.
        unsafe { result::stream::synchronize(self.work) }.map_err(self.context.failed("cuStreamSynchronize"))
    }

    /// Gives all cards of this process up, whose threads wait for this one no longer.
    pub fn abandon(&self) {
        if !self.group.is_over.swap(true, Ordering::AcqRel) {
            for comm in &self.group.comms {
                // SAFETY: made by `Rank`; `is_over` keeps it from being used again.
                let _ = unsafe { (self.group.nccl.abort)(*comm) };
            }
        }
    }

    /// Begins a group of calls, which NCCL starts together.
    fn start(&self) -> Result<(), RuntimeError> {
        if self.group.is_over.load(Ordering::Acquire) {
            let reason = "another card failed, and all were given up".into();
            return Err(RuntimeError::Nccl { call: "ncclGroupStart", reason });
        }
        self.context.enter()?;
        // SAFETY: no preconditions.
        self.group.nccl.done("ncclGroupStart", unsafe { (self.group.nccl.group_start)() })
    }

    fn end(&self) -> Result<(), RuntimeError> {
        // SAFETY: follows `start`.
        self.group.nccl.done("ncclGroupEnd", unsafe { (self.group.nccl.group_end)() })
    }

    fn mark(&self, event: sys::CUevent, stream: sys::CUstream) -> Result<(), RuntimeError> {
        // SAFETY: both were made in `new`, in the context that is current.
        unsafe { result::event::record(event, stream) }.map_err(self.context.failed("cuEventRecord"))
    }

    fn wait_for(&self, event: sys::CUevent, stream: sys::CUstream) -> Result<(), RuntimeError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: as in `mark`.
        unsafe { result::stream::wait_event(stream, event, flags) }
            .map_err(self.context.failed("cuStreamWaitEvent"))
    }

    /// Where numbers of a buffer start.
    fn address(&self, buffer: &Buffer, first: usize, count: usize) -> Result<u64, RuntimeError> {
        let memory: Option<&CudaMemory> = buffer.memory.downcast_ref();
        let fits = 8 * (first as u64 + count as u64) <= buffer.bytes;
        match memory.filter(|memory| memory.is_on(&self.context) && fits) {
            Some(memory) => Ok(memory.pointer + 8 * first as u64),
            None => Err(RuntimeError::OtherDevice {
                what: format!(
                    "a buffer of {} bytes, of which {count} numbers from {first} on count",
                    buffer.bytes
                ),
                device: self.context.name.clone(),
            }),
        }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if self.context.enter().is_ok() && self.wait().is_ok() {
            // SAFETY: made in `new`, destroyed once, and nothing is on the streams.
            unsafe {
                let _ = result::stream::synchronize(self.transfers);
                let _ = result::stream::destroy(self.work);
                let _ = result::stream::destroy(self.transfers);
                let _ = result::event::destroy(self.packed);
                let _ = result::event::destroy(self.arrived);
            }
        }
    }
}
