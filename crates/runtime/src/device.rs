//! The device trait and what passes through it: information, buffers, executables, arguments.

use crate::error::RuntimeError;
use crate::foreign::{Foreign, Place};
use crate::resources::Resources;
use crate::timing::{Timing, TimingOptions};
use kingpost_codegen::{LaunchPlan, Program, Sequence, Target};
use kingpost_ir::Complex;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A family of devices with one driver interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Backend {
    /// The host's cores through the system C compiler.
    C,
    /// OpenCL 1.2.
    OpenCl,
    /// The CUDA driver and NVRTC.
    Cuda,
}

impl Backend {
    /// Every backend, in the order of the enum.
    pub const ALL: [Self; 3] = [Self::C, Self::OpenCl, Self::Cuda];

    /// The language its devices take.
    pub fn target(self) -> Target {
        match self {
            Self::C => Target::C,
            Self::OpenCl => Target::OpenCl,
            Self::Cuda => Target::Cuda,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target().fmt(f)
    }
}

/// How far a compiler may go. The results of a program are the same either way: where they are not,
/// the others tell whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Optimisation {
    /// As far as it can.
    #[default]
    Full,
    /// As far as it can without what `restrict`, the types of pointers and overflow of signed
    /// integers promise it: a fault that is gone then may be a promise that the source breaks.
    Defined,
    /// A little, with all promises: a fault that is gone then is rather the optimiser's than one of a promise that
    /// the source breaks. Where a compiler has nothing in between, it is the same as [`Self::Off`].
    Light,
    /// Not at all: a fault that is gone then is the optimiser's, or lies in a promise that the
    /// source breaks.
    Off,
}

impl Optimisation {
    /// What the compiler of a backend is told, besides what it is always told.
    #[must_use]
    pub fn options(self, backend: Backend) -> &'static [&'static str] {
        match (backend, self) {
            (Backend::C, Self::Full) => &["-O3"],
            (Backend::C, Self::Defined) => &["-O3", "-fwrapv", "-fno-strict-aliasing", "-Drestrict="],
            (Backend::C, Self::Light) => &["-O1", "-fno-thread-jumps"],
            (Backend::C, Self::Off) => &["-O0"],
            (Backend::OpenCl | Backend::Cuda, Self::Full) => &[],
            (Backend::OpenCl, Self::Defined) => &["-Drestrict="],
            (Backend::OpenCl, Self::Light | Self::Off) => &["-cl-opt-disable"],
            (Backend::Cuda, Self::Defined) => &["-D__restrict__="],
            // without `--dopt` it turns off the optimisers of NVVM and ptxas alike
            (Backend::Cuda, Self::Light | Self::Off) => &["--device-debug"],
        }
    }
}

/// What a device is and what it can take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The device's own name.
    pub name: String,
    /// Its backend.
    pub backend: Backend,
    /// Its position among the backend's devices: `open("opencl:1")` opens the one with index 1.
    pub index: usize,
    /// Vendor and driver or compiler, with version.
    pub driver: String,
    /// Cores, compute units or multiprocessors.
    pub compute_units: u32,
    /// Maximum number of work-items in a group.
    pub max_work_group_size: u64,
    /// Maximum number of work-items along each axis of a group.
    pub max_work_item_sizes: [u64; 3],
    /// Maximum number of work-groups along each axis.
    pub max_grid: [u64; 3],
    /// Local memory a group may declare, in bytes.
    pub local_mem_bytes: u64,
    /// Private arrays that all work-items of a group may have together, in bytes, where they lie on
    /// one stack.
    #[serde(default)]
    pub private_mem_bytes: Option<u64>,
    /// Memory of the device, in bytes; 0 where it is not known.
    pub global_mem_bytes: u64,
    /// Whether it computes in double precision.
    pub fp64: bool,
    /// Whether it has 64-bit integer atomics.
    pub int64_atomics: bool,
    /// Highest clock in MHz; 0 where it is not known.
    pub clock_mhz: u32,
    /// Architecture the code is compiled for, such as `sm_90` or `x86_64`.
    pub arch: String,
    /// Bytes of a vector of a processor; 0 where work-items are no lanes of one.
    #[serde(default)]
    pub vector_bytes: u64,
    /// Bytes of the second-level cache of a core of a processor; 0 where it is not known.
    #[serde(default)]
    pub core_cache_bytes: u64,
    /// What tells a card from others of its kind, as the driver says it; none of processors.
    #[serde(default)]
    pub uuid: Option<String>,
}

impl DeviceInfo {
    /// The name that [`crate::open`] takes, such as `opencl:0`.
    pub fn selector(&self) -> String {
        match self.backend {
            Backend::C => "c".into(),
            Backend::OpenCl | Backend::Cuda => format!("{}:{}", self.backend, self.index),
        }
    }

    /// Bytes that arrays on the device may take: its memory, and where that is the host's, no more
    /// than what this process may still have. None where neither is known.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        let all = (self.global_mem_bytes > 0).then_some(self.global_mem_bytes);
        match self.backend {
            // arrays of an OpenCL device, too, are made on the host first
            Backend::C | Backend::OpenCl => {
                all.into_iter().chain(kingpost_capacity::available_memory()).min()
            }
            Backend::Cuda => all,
        }
    }
}

/// Memory of a device.
///
/// It keeps what it needs of its device alive. Fresh memory holds poison: every byte is `0xFF`, which is NaN as
/// `f32` and `f64` and -1 as an integer. Under [`crate::oclgrind`] it stays unwritten, so that reading it is found.
pub struct Buffer {
    pub(crate) id: u64,
    pub(crate) device: u64,
    pub(crate) bytes: u64,
    /// Where it lies, if it is not ours.
    pub(crate) region: Option<std::ops::Range<u64>>,
    pub(crate) memory: Box<dyn Any + Send + Sync>,
}

impl Buffer {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer {{ id: {}, device: {}, bytes: {} }}", self.id, self.device, self.bytes)
    }
}

/// Bytes copied between the host and a device: those of uploads, downloads, and foreign arrays that
/// the device cannot use where they lie.
///
/// Parameters and scalars of launches, fills, and copies within the device are not among them. A
/// device whose memory is the host's counts what another one would have to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes from the host to the device.
    pub to_device: u64,
    /// Bytes from the device to the host.
    pub to_host: u64,
}

impl Traffic {
    /// What was copied after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            to_device: self.to_device.saturating_sub(earlier.to_device),
            to_host: self.to_host.saturating_sub(earlier.to_host),
        }
    }
}

/// Where the code of an executable came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The compiler ran.
    Built,
    /// A compiled object was found in the cache directory.
    Disk,
    /// This device had compiled the same program before.
    Memory,
}

/// A compiled program, bound to the device that compiled it. Cloning shares the code.
#[derive(Clone)]
pub struct Executable {
    pub(crate) origin: Origin,
    pub(crate) shared: Arc<Shared>,
}

/// The part of an executable that equal programs share.
pub(crate) struct Shared {
    pub(crate) device: u64,
    pub(crate) entry: String,
    pub(crate) plan: LaunchPlan,
    pub(crate) resources: Option<Resources>,
    pub(crate) code: Code,
    /// One entry per argument of the plan; the uploaded table where it is one.
    pub(crate) tables: Vec<Option<Buffer>>,
}

/// What is launched.
pub(crate) enum Code {
    /// One function, which in C may run several launches.
    One(Box<dyn Any + Send + Sync>),
    /// The functions of the entries of a sequence.
    Several(Sequence, Vec<Box<dyn Any + Send + Sync>>),
}

impl Executable {
    /// Name of the entry point.
    pub fn entry(&self) -> &str {
        &self.shared.entry
    }

    /// The launch plan it was compiled with.
    pub fn plan(&self) -> &LaunchPlan {
        &self.shared.plan
    }

    /// Registers, spills and shared memory, as the compiler of a card reports them; none for other
    /// devices, and for programs of several launches.
    pub fn resources(&self) -> Option<&Resources> {
        self.shared.resources.as_ref()
    }

    /// Whether the compiler ran or a cache answered.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executable {{ entry: {:?}, origin: {:?} }}", self.shared.entry, self.origin)
    }
}

/// A stream of CUDA's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub(crate) u64);

impl Stream {
    /// The stream of this handle; 1 and 2 stand for the default streams of the driver.
    ///
    /// # Safety
    /// It is a stream of the card of the launches that get it, and outlives them.
    pub unsafe fn new(handle: u64) -> Self {
        Self(handle)
    }
}

/// The value of one argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// An integer parameter; it is range checked where the source takes it as `i32`.
    Param(i64),
    /// A scalar of type `f32`.
    F32(f32),
    /// A scalar of type `f64`.
    F64(f64),
    /// A scalar of type `i32`.
    I32(i32),
    /// A scalar of type `i64`.
    I64(i64),
    /// A scalar of type `u32`.
    U32(u32),
    /// A scalar of type `u64`.
    U64(u64),
    /// A scalar of type `c64`.
    C64(Complex<f32>),
    /// A scalar of type `c128`.
    C128(Complex<f64>),
    /// An array.
    Buffer(&'a Buffer),
    /// An array in memory that is not the device's own.
    Foreign(Foreign<'a>),
}

/// A program with its arguments, to be launched in a sequence with others.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The program.
    pub executable: &'a Executable,
    /// Its arguments; arrays are buffers of the device.
    pub args: &'a [(&'a str, Arg<'a>)],
}

/// An executable with its arguments, checked and in the order of its signature, for
/// [`Device::repeat`].
///
/// Arrays that the device cannot reach are copied at each launch, as by [`Device::launch`]. Memory for
/// temporaries is allocated once.
pub struct Prepared<'a> {
    pub(crate) executable: Executable,
    pub(crate) values: Vec<Kept<'a>>,
    pub(crate) scratch: Vec<Option<Buffer>>,
    pub(crate) params: BTreeMap<String, i64>,
    pub(crate) grid: [u64; 3],
}

/// Launches that a driver recorded as one. Whoever drops it has to keep until then what they read and write.
pub(crate) trait Replay: Send + Sync {
    /// Puts them on a stream, or on the default one and waits; one call at a time.
    fn replay(&self, stream: Option<Stream>) -> Result<(), RuntimeError>;
}

/// A graph on its way; dropping it waits for its end.
pub(crate) trait Running: Send {
    /// Waits for the end: the seconds that it took.
    fn finish(self: Box<Self>) -> Result<f64, RuntimeError>;
}

/// What [`Device::begin`] began. Dropped, it is waited for.
pub struct Begun<'r> {
    pub(crate) running: Box<dyn Running>,
    pub(crate) _used: PhantomData<&'r ()>,
}

impl Begun<'_> {
    /// Waits for the end: the seconds that it took by the device's clock.
    ///
    /// # Errors
    /// A failing driver.
    pub fn finish(self) -> Result<f64, RuntimeError> {
        self.running.finish()
    }
}

/// Prepared launches as one, by [`Device::record`].
pub struct Recorded<'a> {
    /// Of the device.
    pub(crate) device: u64,
    // dropped before what its launches read and write
    pub(crate) graph: Option<Box<dyn Replay>>,
    pub(crate) launches: Vec<Arc<Prepared<'a>>>,
}

impl Recorded<'_> {
    /// Whether the driver has it as one graph.
    #[must_use]
    pub fn is_graph(&self) -> bool {
        self.graph.is_some()
    }
}

/// An argument of a [`Prepared`] launch.
pub(crate) enum Kept<'a> {
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    C64(Complex<f32>),
    C128(Complex<f64>),
    Buffer(&'a Buffer),
    Guest(Guest<'a>),
    /// A table of the executable or scratch memory.
    Runtime,
}

/// A foreign array of a launch as a buffer of the device.
pub(crate) struct Guest<'a> {
    pub(crate) name: String,
    pub(crate) foreign: Foreign<'a>,
    pub(crate) buffer: Buffer,
    pub(crate) copied: bool,
    /// Whether the kernel writes it.
    pub(crate) written: bool,
}

/// A device that compiles and runs programs of one target.
///
/// Operations are blocking and a device can be shared between threads; compilations run concurrently with each
/// other, all else runs one at a time.
pub trait Device: Send + Sync {
    /// What the device is and what it can take.
    fn info(&self) -> &DeviceInfo;

    /// Compiles `program` and uploads its constant tables.
    ///
    /// # Errors
    /// A program for another target, a feature or limit the device lacks (before any compiler
    /// runs), a table its type cannot hold, a compiler that is missing or refuses the source (with
    /// its log).
    fn compile(&self, program: &Program) -> Result<Executable, RuntimeError> {
        self.compile_as(program, Optimisation::Full)
    }

    /// As [`Device::compile`], sooner where the same program was compiled before and is still loaded.
    ///
    /// # Errors
    /// As [`Device::compile`].
    fn compile_known(&self, program: &Arc<Program>) -> Result<Executable, RuntimeError>;

    /// As [`Device::compile`], to find out whose fault a wrong result is.
    ///
    /// # Errors
    /// As [`Device::compile`].
    fn compile_as(&self, program: &Program, optimisation: Optimisation) -> Result<Executable, RuntimeError>;

    /// Allocates `bytes` bytes, all poison (`0xFF`).
    ///
    /// # Errors
    /// The device has no such memory.
    fn allocate(&self, bytes: u64) -> Result<Buffer, RuntimeError>;

    /// The same without poison, for whoever writes all of it before it is read; with debug
    /// assertions poison too.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    fn allocate_unset(&self, bytes: u64) -> Result<Buffer, RuntimeError>;

    /// The same of memory that the host [sees](Device::see) while the device works, for a few numbers.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    fn allocate_visible(&self, bytes: u64) -> Result<Buffer, RuntimeError>;

    /// Copies bytes of a buffer, from `first` on, into `out`. Bytes of [visible](Device::allocate_visible) memory
    /// are as they are now: work that was [begun](Device::begin) and has not ended is not waited for.
    ///
    /// # Errors
    /// Bytes beyond the buffer, one of another device, a failing driver.
    fn see(&self, buffer: &Buffer, first: u64, out: &mut [u8]) -> Result<(), RuntimeError>;

    /// Copies `data` into `buffer`; both have the same size in bytes.
    ///
    /// # Errors
    /// Sizes differ, a buffer of another device, a failing driver.
    fn upload(&self, buffer: &Buffer, data: &[u8]) -> Result<(), RuntimeError>;

    /// Copies `buffer` into `out`; both have the same size in bytes.
    ///
    /// # Errors
    /// Sizes differ, a buffer of another device, a failing driver.
    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError>;

    /// Copies to the host the bytes of a foreign array, which is argument `name` of an executable.
    ///
    /// # Errors
    /// Memory that the device does not reach, another size, a failing driver.
    fn fetch(
        &self,
        executable: &Executable,
        name: &str,
        foreign: &Foreign<'_>,
        out: &mut [u8],
    ) -> Result<(), RuntimeError>;

    /// What was copied between the host and the device since it was opened.
    fn traffic(&self) -> Traffic;

    /// Sets every byte of `buffer` to `byte`; `0xFF` is poison (NaN, -1).
    ///
    /// # Errors
    /// A buffer of another device, a failing driver.
    fn fill(&self, buffer: &Buffer, byte: u8) -> Result<(), RuntimeError>;

    /// Copies `from` into `to`; both have the same size in bytes.
    ///
    /// # Errors
    /// Sizes differ, a buffer of another device, a failing driver.
    fn copy(&self, from: &Buffer, to: &Buffer) -> Result<(), RuntimeError>;

    /// Runs `executable` once and waits for it. A grid of zero groups succeeds without a launch.
    ///
    /// # Errors
    /// An argument that is missing, unknown, given twice, of another type or out of range; a buffer
    /// that is too small, aliased while written, or of another device; a broken precondition; a
    /// grid beyond the device's limits; a failing driver.
    fn launch(&self, executable: &Executable, args: &[(&str, Arg<'_>)]) -> Result<(), RuntimeError> {
        self.launch_on(executable, args, None)
    }

    /// As [`Device::launch`]. On a stream of CUDA's it does not wait for the kernel, unless memory
    /// is allocated or copied for the launch; other devices have no streams.
    ///
    /// # Errors
    /// As [`Device::launch`], and a stream for a device without streams.
    fn launch_on(
        &self,
        executable: &Executable,
        args: &[(&str, Arg<'_>)],
        stream: Option<Stream>,
    ) -> Result<(), RuntimeError>;

    /// Checks the arguments of a launch once, for [`Device::repeat`].
    ///
    /// # Errors
    /// As [`Device::launch`].
    fn prepare<'a>(
        &self,
        executable: &Executable,
        args: &[(&str, Arg<'a>)],
    ) -> Result<Prepared<'a>, RuntimeError>;

    /// Launches what this device prepared, as [`Device::launch_on`] does, without a check of arguments.
    ///
    /// # Errors
    /// A launch that another device prepared, a stream for a device without streams, a failing driver.
    fn repeat(&self, prepared: &Prepared<'_>, stream: Option<Stream>) -> Result<(), RuntimeError>;

    /// Makes one of launches that this device prepared, for [`Device::replay`] and [`Device::rerun`]: a graph,
    /// which the driver takes about as fast as one of them. Where the device has no graphs, or a launch copies
    /// its arrays, they stay a list.
    ///
    /// # Errors
    /// A launch that another device prepared, a failing driver.
    fn record<'a>(&self, prepared: &[Arc<Prepared<'a>>]) -> Result<Recorded<'a>, RuntimeError>;

    /// Launches what this device recorded, in order, as [`Device::repeat`] does one.
    ///
    /// # Errors
    /// What another device recorded, a failing driver.
    fn replay(&self, recorded: &Recorded<'_>, stream: Option<Stream>) -> Result<(), RuntimeError>;

    /// Launches what this device recorded, in order, and waits: the seconds that it took by the device's
    /// clock, as [`Device::launch_all`] has them.
    ///
    /// # Errors
    /// As [`Device::replay`].
    fn rerun(&self, recorded: &Recorded<'_>) -> Result<f64, RuntimeError>;

    /// Launches what this device recorded, without waiting: what is asked of the device later comes after it.
    /// None, with nothing launched, where the device does not run concurrently with the host, or did not make
    /// a graph.
    ///
    /// # Errors
    /// As [`Device::replay`].
    fn begin<'r>(&self, recorded: &'r Recorded<'_>) -> Result<Option<Begun<'r>>, RuntimeError>;

    /// Runs programs one after the other, each as by [`Device::launch`], and waits for the last one
    /// alone. Returns the seconds that they took by the device's clock: on a card from the first to
    /// the last, with what lies between them, elsewhere the sum of all.
    ///
    /// # Errors
    /// As [`Device::launch`], for all of them before the first one runs; an array that is no buffer
    /// of the device.
    fn launch_all(&self, launches: &[Launch<'_>]) -> Result<f64, RuntimeError>;

    /// The same without a wait on a card, which runs them before whatever else is asked of it: that
    /// waits, and says what failed. Other devices wait.
    ///
    /// # Errors
    /// As [`Device::launch`], when those before it have been launched; an array that is no buffer
    /// of the device.
    fn put_all(&self, launches: &[Launch<'_>]) -> Result<(), RuntimeError>;

    /// Joules that the whole device has taken since some moment, by its own counter; none where it has none. On a
    /// card it steps some ten times a second: see [`crate::joules_of_a_run`].
    fn joules(&self) -> Option<f64>;

    /// Whether a launch uses foreign memory of this place without a copy.
    fn shares(&self, place: Place) -> bool;

    /// Runs `executable` repeatedly and times each run by the device's clock, in seconds.
    ///
    /// Updates accumulate from run to run: the buffers hold no meaningful result afterwards.
    ///
    /// # Errors
    /// As [`Device::launch`], and a grid of zero groups.
    fn time(
        &self,
        executable: &Executable,
        args: &[(&str, Arg<'_>)],
        options: &TimingOptions,
    ) -> Result<Timing, RuntimeError>;
}
