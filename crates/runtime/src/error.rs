//! What can go wrong between a program and its results, and how to mend it.

use kingpost_codegen::{Feature, ParameterError, Target, plan::HostExprError};

pub use crate::unavailable::Unavailable;

/// Why the runtime refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A name that is no device.
    #[error("no device `{name}`; there are: {known}")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// What `open` takes here.
        known: String,
    },
    /// A backend that this machine lacks.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),

    /// The program is written for another backend.
    #[error(
        "`{entry}` is {found} source, the device `{device}` takes {needed}; generate it for target `{needed}`"
    )]
    WrongTarget {
        /// The program.
        entry: String,
        /// Its language.
        found: Target,
        /// The language of the device.
        needed: Target,
        /// The device.
        device: String,
    },
    /// The device lacks a feature.
    #[error("`{entry}` needs {}, which `{device}` lacks; choose another device (`kingpost devices`)", feature_text(*.feature))]
    MissingFeature {
        /// The program.
        entry: String,
        /// What it needs.
        feature: Feature,
        /// The device.
        device: String,
    },
    /// Too many work-items in a group.
    #[error("`{entry}` has work-groups of {} = {size} work-items, `{device}` takes at most {limit}; use smaller work-groups", product(.block))]
    GroupTooLarge {
        /// The program.
        entry: String,
        /// Work-items along each axis.
        block: [u64; 3],
        /// Their product (saturated).
        size: u64,
        /// The largest group of the device or of the compiled kernel.
        limit: u64,
        /// The device.
        device: String,
    },
    /// Too many work-items along one axis of a group, or none.
    #[error(
        "`{entry}` has {size} work-items along l.{axis}, `{device}` takes 1 to {limit}; split that axis differently"
    )]
    GroupAxis {
        /// The program.
        entry: String,
        /// The axis.
        axis: usize,
        /// Work-items along it.
        size: u64,
        /// The maximum of the device.
        limit: u64,
        /// The device.
        device: String,
    },
    /// Too much local memory.
    #[error("`{entry}` needs {needed} bytes of local memory, `{device}` has {limit}; use smaller tiles")]
    LocalMemory {
        /// The program.
        entry: String,
        /// Bytes of one work-group.
        needed: u64,
        /// Bytes the device offers a group.
        limit: u64,
        /// The device.
        device: String,
    },
    /// Too much private memory.
    #[error(
        "`{entry}` needs {needed} bytes for the private arrays of a work-group, `{device}` has {limit}; use smaller tiles or groups, or keep large arrays in global memory"
    )]
    PrivateMemory {
        /// The program.
        entry: String,
        /// Bytes of one work-group.
        needed: u64,
        /// Bytes the device offers a group.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A constant table whose values its type cannot hold.
    #[error("table `{name}` holds values that `{ty}` cannot represent; give it another type")]
    TableType {
        /// The table.
        name: String,
        /// Its type.
        ty: kingpost_ir::ScalarType,
    },
    /// The device's compiler refused the source.
    #[error(
        "bug of kingpost, unless code of an intrinsic is at fault: the code of `{entry}` does not compile with {compiler}{}; please report the kernel, as `kingpost print` shows it, with this log:\n{log}",
        place.as_ref().map_or_else(String::new, |place| format!(", {place}"))
    )]
    Compile {
        /// The program.
        entry: String,
        /// The compiler.
        compiler: String,
        /// The first error and the line that it is about, if the log says so.
        place: Option<String>,
        /// What it printed.
        log: String,
    },
    /// The compiled code cannot be loaded.
    #[error(
        "the compiled `{entry}` cannot be loaded: {reason}; if its directory forbids execution, set `KINGPOST_CACHE_DIR` to another"
    )]
    Load {
        /// The program.
        entry: String,
        /// What the loader said.
        reason: String,
    },
    /// The compiled code has no such function.
    #[error("the compiled source has no `{symbol}`: {reason}; the entry point's name and the plan disagree")]
    NoEntry {
        /// The symbol.
        symbol: String,
        /// What the loader said.
        reason: String,
    },

    /// An argument was not given.
    #[error("`{entry}` needs argument `{name}` ({kind}), which was not given; it takes {expected}")]
    MissingArgument {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
        /// What it is.
        kind: String,
        /// Every argument to give.
        expected: String,
    },
    /// An argument that the program does not take.
    #[error("`{entry}` takes no argument `{name}`; it takes {expected}")]
    UnknownArgument {
        /// The program.
        entry: String,
        /// What was given.
        name: String,
        /// Every argument to give.
        expected: String,
    },
    /// An argument was given twice.
    #[error("argument `{name}` of `{entry}` was given twice; give it once")]
    RepeatedArgument {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
    },
    /// An argument of another kind or type.
    #[error("argument `{name}` of `{entry}` is {expected}, {found} was given; pass {expected}")]
    ArgumentType {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
        /// What the plan says.
        expected: String,
        /// What came.
        found: String,
    },
    /// A parameter that has no value, or two.
    #[error("`{entry}`: {source}")]
    Parameters {
        /// The program.
        entry: String,
        /// Why.
        source: Box<ParameterError>,
    },
    /// A parameter beyond the range of its type.
    #[error("parameter `{name}` = {value} does not fit `{ty}`; use a smaller size or 64-bit indices")]
    ParameterRange {
        /// The parameter.
        name: String,
        /// Its value.
        value: i64,
        /// Its type in the source.
        ty: kingpost_ir::ScalarType,
    },
    /// A buffer shorter than the program needs.
    #[error(
        "buffer `{name}` holds {found} bytes, `{entry}` needs {needed} ({len} elements of `{ty}`); allocate more"
    )]
    BufferTooSmall {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
        /// Bytes it has.
        found: u64,
        /// Bytes needed.
        needed: u64,
        /// The length as the plan states it.
        len: String,
        /// Element type.
        ty: kingpost_ir::ScalarType,
    },
    /// A length or grid that is negative or does not fit 64 bits in bytes.
    #[error(
        "{what} of `{entry}` is {value}; it must be from 0 to 2^63 bytes or groups: check the parameters"
    )]
    BadExtent {
        /// The program.
        entry: String,
        /// Which quantity.
        what: String,
        /// Its value.
        value: i64,
    },
    /// A plan's expression has no value.
    #[error("{what} of `{entry}`: {source}")]
    Expression {
        /// The program.
        entry: String,
        /// Which quantity.
        what: String,
        /// Why.
        source: HostExprError,
    },
    /// One buffer passed twice although the program writes through it.
    #[error(
        "`{entry}` got one buffer for `{first}` and `{second}` and writes `{written}`; pass distinct buffers"
    )]
    Aliased {
        /// The program.
        entry: String,
        /// One argument.
        first: String,
        /// The other.
        second: String,
        /// The written one.
        written: String,
    },
    /// Memory that may not be written.
    #[error("argument `{name}` of `{entry}` is written, and its memory is read-only; pass a writable array")]
    ReadOnly {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
    },
    /// Memory that the device cannot reach.
    #[error(
        "argument `{name}` of `{entry}` lies in {found}, which `{device}` cannot reach; move it to the host, or run on that card"
    )]
    Unreachable {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
        /// Where it lies.
        found: String,
        /// The device.
        device: String,
    },
    /// Memory that does not start where vectors may.
    #[error(
        "argument `{name}` of `{entry}` starts at address {address:#x}, needed a multiple of {needed}; pass a copy of the array"
    )]
    Misaligned {
        /// The program.
        entry: String,
        /// The argument.
        name: String,
        /// Its first byte.
        address: u64,
        /// What has to divide the address.
        needed: u64,
    },
    /// A stream for a device that has none.
    #[error("`{device}` has no streams; leave out the stream")]
    NoStreams {
        /// The device.
        device: String,
    },
    /// A program with code that nobody has allowed to run.
    #[error(
        "`{entry}` holds code of the callee `{callee}`, which Kingpost does not ship, so that it would run whatever its \
         author wrote; read the source (`kingpost print`), and allow it by `--trust`, in Python by `trust=True`, in Rust \
         by `Options::with_trust`"
    )]
    Untrusted {
        /// The program.
        entry: String,
        /// The first such callee.
        callee: String,
    },
    /// A program at which the compiler would end the process.
    #[error(
        "the compiler of `{compiler}` ends its process at `{entry}`: {reason}; this is a fault of that compiler, so \
         nothing was run: choose another device (`kingpost devices`), or another method of pocl by \
         `POCL_WORK_GROUP_METHOD=workitemloops`, of Intel's by `CL_CONFIG_USE_VECTORIZER=False`"
    )]
    CompilerEnds {
        /// The program.
        entry: String,
        /// The platform and its driver.
        compiler: String,
        /// What it said.
        reason: String,
    },
    /// A buffer or executable of another device.
    #[error("{what} belongs to another device than `{device}`; make it with this one")]
    OtherDevice {
        /// What it is.
        what: String,
        /// The device.
        device: String,
    },
    /// The parameters break a condition that the code relies on.
    #[error(
        "`{entry}` relies on `{condition}`, which these parameters miss by {}; change them", .value.unsigned_abs())]
    Precondition {
        /// The program.
        entry: String,
        /// The condition as written.
        condition: String,
        /// The value that had to be non-negative.
        value: i64,
    },
    /// Elements of an array that is written share a place, or one that is read has a negative stride.
    #[error(
        "`{entry}` relies on `{condition}`, which fails with {params}; pass an array whose elements lie apart, such \
         as a copy"
    )]
    Strides {
        /// The program.
        entry: String,
        /// The array.
        array: String,
        /// The condition on its strides and extents.
        condition: String,
        /// Their values.
        params: String,
    },
    /// More work-groups than the device takes.
    #[error(
        "`{entry}` has {groups} work-groups along g.{axis}, `{device}` takes at most {limit}; split the loop over another axis"
    )]
    GridTooLarge {
        /// The program.
        entry: String,
        /// The axis.
        axis: usize,
        /// Work-groups along it.
        groups: u64,
        /// The maximum of the device.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A launch without work-groups was to be timed.
    #[error(
        "`{entry}` has no work-group with these parameters, so there is nothing to time; use larger sizes"
    )]
    NothingToTime {
        /// The program.
        entry: String,
    },

    /// A foreign array among launches that run in sequence.
    #[error(
        "array `{name}` of `{entry}` is not the device's own memory; launches in sequence take buffers of \
         the device: copy it into one"
    )]
    ForeignInTurn {
        /// The program.
        entry: String,
        /// The array.
        name: String,
    },

    /// A device on which time means nothing.
    #[error(
        "`{device}` checks kernels and is no measure of speed; choose another device (`kingpost devices`)"
    )]
    NotMeasurable {
        /// The device.
        device: String,
    },

    /// Source and destination differ in size.
    #[error("{operation}: {from} bytes given, {to} bytes to receive them; the two must be equal")]
    TransferSize {
        /// `upload`, `download` or `copy`.
        operation: &'static str,
        /// Bytes at the source.
        from: u64,
        /// Bytes at the destination.
        to: u64,
    },
    /// Memory could not be had.
    #[error("cannot allocate {bytes} bytes on `{device}`: {reason}; use a smaller problem")]
    Allocation {
        /// How much.
        bytes: u64,
        /// The device.
        device: String,
        /// What the allocator said.
        reason: String,
    },
    /// A call into a driver failed.
    #[error(
        "`{call}` failed with {code} on `{device}`; if it was a launch, the kernel may have read or written out of bounds"
    )]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its error, by name.
        code: String,
        /// The device.
        device: String,
    },
    /// A device whose driver does not live on in a child of a fork.
    #[error(
        "`{device}` was opened before this process was forked, and its driver does not live on in the child; open it \
         in the child alone, or start processes again (`multiprocessing.get_context(\"spawn\")`)"
    )]
    Forked {
        /// The device.
        device: String,
    },
    /// The work was asked to stop ([`crate::interruptible`]).
    #[error("interrupted")]
    Interrupted,
    /// Devices that NCCL does not connect.
    #[error("NCCL connects different cards, found {found}; exchange through the host instead")]
    NotCards {
        /// The devices.
        found: String,
    },
    /// A call into NCCL failed.
    #[error("`{call}` failed: {reason}; `NCCL_DEBUG=WARN` prints more")]
    Nccl {
        /// NCCL's function.
        call: &'static str,
        /// What it says of the error.
        reason: String,
    },
    /// A file or process operation failed.
    #[error("{action}: {source}; check that the directory exists and can be written")]
    Io {
        /// What was being done.
        action: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A tool printed something that could not be understood.
    #[error("{tool} printed no {missing}; this is its output:\n{output}")]
    ToolOutput {
        /// The tool.
        tool: String,
        /// What was looked for.
        missing: &'static str,
        /// What it printed.
        output: String,
    },
}

impl RuntimeError {
    /// A source that a compiler refused with a log.
    pub(crate) fn compile(entry: &str, compiler: impl Into<String>, source: &str, log: String) -> Self {
        let place = crate::diagnosis::first_error(&log, source);
        Self::Compile { entry: entry.into(), compiler: compiler.into(), place, log }
    }

    /// An i/o error with what was being done.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}

fn feature_text(feature: Feature) -> String {
    match feature {
        Feature::Fp64 => "double precision".into(),
        Feature::Int64Atomics => "64-bit integer atomics".into(),
        Feature::ComputeCapability(c) => format!("compute capability {}.{}", c / 10, c % 10),
        Feature::OneComputeCapability(c) => {
            format!("compute capability {}.{}, no other", c / 10, c % 10)
        }
        Feature::Gfx9(number) => format!("`gfx{number:x}` or a later one of its generation"),
    }
}

fn product(block: &[u64; 3]) -> String {
    format!("{} x {} x {}", block[0], block[1], block[2])
}
