//! Callees with code: instructions that compilers do not find by themselves.
//!
//! Each is the text of a callee, for the step `declare_callee`; its meaning is the kernel in it,
//! and `replace_with_intrinsic` finds out whether some statements are that. A recipe may hold
//! others of its own.
//!
//! | name | meaning | code |
//! |---|---|---|
//! | [`FMA_F64`] | `c += a*b`, rounded once | C, OpenCL, CUDA |
//! | [`AXPY4_F64`] | `y[0..4] += a*x[0..4]`, neighbours in memory | C (vectors of GCC and Clang), OpenCL |
//! | [`MMA_M8N8K4_F64`] | an 8×4 matrix times a 4×8 one, added to the fragments of a sub-group | CUDA from `sm_80` |

/// `c += a*b` on scalars or elements, with one rounding.
pub const FMA_F64: &str = include_str!("fma_f64.txt");

/// `y[l] += a*x[l]` for four neighbours.
pub const AXPY4_F64: &str = include_str!("axpy4_f64.txt");

/// The FP64 matrix instruction `mma.sync.aligned.m8n8k4.row.col.f64` of a sub-group of 32
/// work-items along l.0.
///
/// # Shapes and units
/// `a[8, 4]` and `b[4, 8]` anywhere that all work-items see, `c[32, 2]` with a slice for each
/// work-item: `lane` holds row `lane / 4` and columns `2*(lane mod 4)` and one more of the 8×8
/// result.
///
/// # Source
/// PTX ISA, *Matrix Fragments for mma.m8n8k4 with .f64 floating point type*.
pub const MMA_M8N8K4_F64: &str = include_str!("mma_m8n8k4_f64.txt");

/// All of them.
pub const ALL: [&str; 3] = [FMA_F64, AXPY4_F64, MMA_M8N8K4_F64];
