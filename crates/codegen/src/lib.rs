//! Turns a kernel into CUDA, HIP, OpenCL or C source with a launch plan.
//!
//! ```text
//! Kernel ──place──► PlacedKernel ──lower──► Code (ast) ──print──► Program { source, plan }
//! ```
//!
//! ```
//! use kingpost_codegen::{Options, Target, generate};
//!
//! let kernel = kingpost_ir::text::parse(
//!     "kernel scale\n\nparam n: i32\narg y: f64[n] inout\n
//! for i_o in 0..ceil(n/32) {g.0}
//!   for i_i in 0..min(32, n - 32*i_o) {l.0}
//!     s: y[32*i_o + i_i] *= 2.0\n",
//! )?;
//! let program = generate(&kernel, Target::Cuda, &Options::default())?;
//! assert!(program.source.contains("if (32*i_o + i_i < n) {"));
//! assert_eq!(program.plan.block, [32, 1, 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way from the tree to the source is one list, [`passes`]; [`PlacedKernel::source_after`]
//! shows the code after each of them (`kingpost print --after PASS`).
//!
//! - **Axes.** A hardware index is the iname minus the lower bound of its range. What an instruction
//!   writes decides where it runs along an axis it is not on: everywhere if private (along groups
//!   also if local), else at index 0.
//! - **Bounds and guards** come from the constraints of each loop's domain. A constraint that follows
//!   from loops around, hardware ranges and assumptions is left out; the proof is by intervals and
//!   Fourier–Motzkin elimination over plain integers, so that a usual kernel costs no call into
//!   isl. What is not proved stays as a guard.
//! - **Widths.** Integers are 32 bits where their range, from the types of parameters, assumptions
//!   and bounds, fits; else an operand is converted before the first operation that may overflow.
//!   Offsets of `i32` parameters times a constant are 64 bits unless an assumption such as
//!   `n <= 1000000` bounds them. A guard has the width of the values before it narrows anything:
//!   `32*g + i < n` fits 32 bits for every `i32` parameter as 32 divides 2^31; with 48 it would
//!   not, and `i < n - 48*g` is written.
//! - **Indices.** Quotients that ranges decide vanish (`floor(l/32)` for `l < 32`),
//!   `x - 4*floor(x/4)` is `x % 4`, and operators stand for rounded division where the operand is
//!   proved not to be negative.
//! - **Accesses** are proved inside their arrays ([`kingpost_analysis::inside`]), or the kernel is
//!   refused with an instance that leaves one; those that memory decides are left to
//!   [`kingpost_analysis::Analysis::check_launch`].
//! - **`restrict`** on every buffer but those through which work-items tell each other something (a
//!   barrier stands between a write and an access of another one): compilers move accesses through
//!   such a pointer past barriers. In CUDA not on those that are written, where a loop of a work-item reads one
//!   of them elsewhere than it writes it: NVVM may read it once before the loop.
//! - **Temporaries** in private and local memory have constant extents, or such that assumptions bound (`assume n <= 64`);
//!   any other is refused ([`CodegenError::ShapeNotConstant`]), as no target can declare it; fix the parameter, contract
//!   the array, or keep it in global memory, which the runtime allocates for a launch. Those that share a buffer have one type and one
//!   address space ([`CodegenError::Storage`]): a buffer has the type of its elements in every target.
//! - **Private arrays** of a work-item take at most 512 KiB in CUDA and OpenCL
//!   ([`CodegenError::PrivateMemory`]). In C those of a thread beyond 256 KiB are `_Thread_local`, the largest first.
//! - **Names** are those of the kernel, unless one of the targets' compilers knows the word: then it gets a suffix, the
//!   same for every target. Labels stand in comments as the text format writes them.
//! - **Maps.** An entry of an integer array that is only read is read once: before the loops it does not depend
//!   on, as far as they surely run and no condition is left, and once for statements close by. More than eight
//!   entries would cost more registers than loads, and stay in the loop.
//! - **Barriers** cover the placement's pairs greedily; an independent walk over the final code checks
//!   that each pair is separated. In C the body is cut at barriers into loops over the work-items, and
//!   private variables that live across are expanded.
//! - **C.** `omp parallel for` over the groups, `omp simd` over the work-items where no atomic update is
//!   inside (OpenMP forbids it). A body with atomic updates and long loops is spread: loops over the
//!   work-items move into its uniform loops, the updates stand in loops of their own, and private variables
//!   that live across are expanded as at barriers, up to 256 KiB a group.
//! - **Launches.** A kernel of several is taken apart: each launch is a kernel, with the values of the host's loops as
//!   parameters, which is placed and lowered separately. CUDA and OpenCL have a function for each and a
//!   [`Sequence`] that says when it is launched. In C one more function has a team of threads that runs the host's loops
//!   and calls the others, whose `omp for` shares the groups out; a launch without groups is `omp single`.
//! - **Vectors.** Loops with the tag `vector` are vectors of GCC and Clang in C; those that are not arithmetic have
//!   `omp simd` where lanes share no private memory. In CUDA and OpenCL elements that lie next to each other are loaded and stored at once, and scalars of a lane, sums and private arrays that are
//!   declared inside the loop hold a vector. OpenCL calculates with vectors; CUDA's have no operators, and its
//!   work-items no vector unit, so that what gains there is the wide load and store. Maps, other strides, guards and
//!   choices that differ among lanes, and atomic updates are done for one lane after the other. CUDA's vectors have at
//!   most 16 bytes and start at multiples of their size: the offset must be proved to, arrays in local memory are
//!   declared so, and the remark of an argument says what is asked of a caller (the runtime's allocations are aligned to
//!   more). A loop stays a loop where its ends are no numbers, nothing can be loaded or stored at once, or lanes share an
//!   element of a private array; so does a length that no vector divides.
//!   The launch plan has a note of each such loop, and of each that runs at index 0 of an axis alone.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod advance;
pub mod ast;
mod axes;
mod barriers;
mod bounds;
mod callees;
mod code;
mod completions;
pub mod complex;
mod convergence;
mod declaration;
mod declare;
pub mod double_single;
mod ends;
mod env;
pub mod error;
mod factors;
mod find_notes;
mod function;
mod hoist;
mod interval;
mod launch;
mod launch_bounds;
mod lines;
mod loop_barriers;
mod lower;
mod names;
mod notes;
mod ordered;
mod parameters;
mod passes;
pub mod placed;
pub mod plan;
pub mod print;
pub mod program;
mod race;
mod reach;
mod regions;
mod registers;
mod repeated_writes;
mod sequence;
mod simplify;
mod spread;
mod stack;
mod storage;
mod synchronisation;
pub mod target;
mod tidy;
pub mod traffic;
mod value;
mod vectors;

pub use error::CodegenError;
pub use lines::{Line, Separated};
pub use notes::{NoVectors, Note};
pub use parameters::ParameterError;
pub use passes::{Pass, pass_named, passes};
pub use placed::PlacedKernel;
pub use plan::{
    ArgKind, ArgSpec, BufferAccess, Defined, Entry, Feature, HostExpr, HostStep, LaunchPlan, Precondition,
    Program, Sequence, TensorMap,
};
pub use program::{Code, Options, generate};
pub use synchronisation::{Synchronisation, synchronisation};
pub use target::{Target, TargetDescription};
