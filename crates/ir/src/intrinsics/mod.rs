//! Callees with code: instructions that compilers do not find.
//!
//! Each is the text of a callee, for the step `declare_callee`; its meaning is the kernel in it,
//! and `replace_with_intrinsic` finds out whether some statements are that. A recipe may hold
//! others of its own.
//!
//! | name | meaning | code |
//! |---|---|---|
//! | [`FMA_F64`] | `c += a*b`, rounded once | C, OpenCL, CUDA, HIP |
//! | [`AXPY4_F64`] | `y[0..4] += a*x[0..4]`, neighbours in memory | C (vectors of GCC and Clang), OpenCL |
//! | [`MMA_M16N8K8_F64`] | a 16×8 matrix times an 8×8 one, added to the fragments of a sub-group | CUDA from `sm_90` |
//! | [`MMA_M16N8K4_F64`] | a 16×4 matrix times a 4×8 one, added to the fragments of a sub-group | CUDA from `sm_90` |
//! | [`MMA_M16N8K4_F64_REGISTERS`] | the same with both factors in registers | CUDA from `sm_90` |
//! | [`MMA_M8N8K4_F64`] | an 8×4 matrix times a 4×8 one, added to the fragments of a sub-group | CUDA from `sm_80` |
//! | [`MFMA_16X16X4_F64`] | a 16×4 matrix times a 4×16 one, added to the fragments of a sub-group of 64 | HIP from `gfx90a` |
//! | [`MFMA_16X16X4_F64_REGISTERS`] | the same with the second factor in registers, as a result lies | HIP from `gfx90a` |
//! | [`MFMA_4X4X4_F64`] | four products of 4×4 matrices, added to the fragments of a sub-group of 64 | HIP from `gfx90a` |
//! | [`COPY_ASYNC_F64`] | `to[0] = from[0]` from global to local memory, without waiting, in groups | CUDA from `sm_80` |
//! | [`COPY_ASYNC_F32`] | the same in single precision | CUDA from `sm_80` |
//! | [`COPY_ASYNC_F64X2`] | the same of two neighbours, at multiples of 16 bytes | CUDA from `sm_80` |
//! | [`COPY_ASYNC_F32X4`] | the same of four neighbours in single precision | CUDA from `sm_80` |
//! | [`COPY_ASYNC_I32`] | the same of an integer, such as an entry of a map | CUDA from `sm_80` |
//! | [`half::BF16`], [`half::F16`] | copies of eight, fragments from local memory, their products, stores of eight | CUDA from `sm_80` |
//! | [`copy_box()`] | bulk copies of boxes | CUDA from `sm_90` |
//! | [`wgmma()`] | products by teams of four sub-groups | CUDA, `sm_90` alone |
//! | [`wgmma_rows`], [`wgmma_fragments`] | the same with rows of both factors, and with one in registers | CUDA, `sm_90` alone |
//! | [`copy_eight`] | `to[0..8] = from[0..8]`, neighbours of 16 bits in memory | CUDA |
//! | [`EXP2_NEAR_F32`] | `x = exp2(x)`, not rounded to nearest | CUDA, HIP |
//! | [`PREFETCH_F64`] | an element that nothing uses yet, for the second-level cache | C, OpenCL, CUDA, HIP |
//! | [`RECIPROCAL_F64`] | `r = 1.0/x` of numbers that are neither zero nor very small or large | CUDA |

mod attention;
mod boxes;
pub mod half;
mod wgmma;

pub use attention::{copy_eight, wgmma_fragments, wgmma_rows};
pub use boxes::copy_box;
pub use wgmma::wgmma;

use crate::calls::Callee;
use crate::text::parse_callees;
use std::sync::LazyLock;

/// `to[0] = from[0]` from global to local memory; the work-item goes on until it needs a value. The
/// element may be found through a map.
///
/// # Source
/// PTX ISA, *Data Movement and Conversion Instructions: cp.async*.
pub const COPY_ASYNC_F64: &str = include_str!("copy_async_f64.txt");

/// [`COPY_ASYNC_F64`] in single precision.
pub const COPY_ASYNC_F32: &str = include_str!("copy_async_f32.txt");

/// [`COPY_ASYNC_F64`] of two neighbours, past the first cache. Addresses are multiples of 16 bytes.
pub const COPY_ASYNC_F64X2: &str = include_str!("copy_async_f64x2.txt");

/// [`COPY_ASYNC_F64X2`] of four neighbours in single precision.
pub const COPY_ASYNC_F32X4: &str = include_str!("copy_async_f32x4.txt");

/// [`COPY_ASYNC_F64`] of an integer.
pub const COPY_ASYNC_I32: &str = include_str!("copy_async_i32.txt");

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

/// The FP64 matrix instruction `mma.sync.aligned.m16n8k8.row.col.f64` of a sub-group of 32
/// work-items along l.0, at twice the rate of [`MMA_M8N8K4_F64`] on an H100 or H200.
///
/// # Shapes and units
/// The work-item `lane = 4*g + t` holds `c[lane, i, j]`, row `8*i + g` and column `4*j + t` of the
/// 16×8 result, and `a[lane, h, i]`, row `8*i + g` and column `4*h + t` of the 16×8 factor, so that
/// a result is a factor of the next product as it lies. `b[t, j, h, k]`, anywhere that all
/// work-items see, is row `4*h + k` and column `4*j + t` of the 8×8 factor.
///
/// The instruction itself numbers columns of its result `2*t + j`; it gets the columns of `b` in
/// another order instead.
///
/// # Source
/// PTX ISA, *Matrix Fragments for mma.m16n8k8 with .f64 type*.
pub const MMA_M16N8K8_F64: &str = include_str!("mma_m16n8k8_f64.txt");

/// The FP64 matrix instruction `mma.m16n8k4.row.col.f64` of a sub-group of 32 work-items along l.0:
/// half of [`MMA_M16N8K8_F64`], for the end of a sum whose number of terms four divides and eight does
/// not.
///
/// # Shapes and units
/// As there with one half of the terms: `a[lane, i]`, row `8*i + g` and column `t` of the 16×4 factor,
/// `b[t, j, k]`, row `k` and column `4*j + t` of the 4×8 factor.
///
/// # Source
/// PTX ISA, *Matrix Fragments for mma.m16n8k4 with .f64 type*.
pub const MMA_M16N8K4_F64: &str = include_str!("mma_m16n8k4_f64.txt");

/// [`MMA_M16N8K4_F64`] with both factors in registers, and columns in the order of the instruction.
///
/// # Shapes and units
/// The work-item `lane = 4*g + t` holds `c[lane, i, j]`, row `8*i + g` and column `2*t + j` of the 16×8
/// result, `a[lane, i]`, row `8*i + g` and column `t` of the 16×4 factor, and `b[lane]`, row `t` and
/// column `g` of the 4×8 factor.
///
/// # Source
/// PTX ISA, *Matrix Fragments for mma.m16n8k4 with .f64 type*.
pub const MMA_M16N8K4_F64_REGISTERS: &str = include_str!("mma_m16n8k4_f64_registers.txt");

/// The FP64 matrix instruction `v_mfma_f64_16x16x4` of a wavefront: a sub-group of 64 work-items along l.0.
///
/// # Shapes and units
/// `a[16, 4]` and `b[4, 16]` anywhere that all work-items see, `c[64, 4]` with a slice for each work-item:
/// `c[lane, v]` is row `4*v + lane / 16` and column `lane mod 16` of the 16×16 result.
///
/// # Source
/// AMD Instinct MI300 Instruction Set Architecture, *Dense Matrix Multiply*; the layouts are those that AMD's
/// matrix instruction calculator prints for CDNA 2 and 3.
pub const MFMA_16X16X4_F64: &str = include_str!("mfma_16x16x4_f64.txt");

/// [`MFMA_16X16X4_F64`] with the second factor in registers, where a result is four factors of the next
/// product as it lies.
///
/// # Shapes and units
/// The work-item `lane = 16*t + g` holds `c[lane, v]`, row `4*v + t` and column `g` of the result, and
/// `b[lane]`, row `t` and column `g` of the 4×16 factor. `a[t, v, k]`, anywhere that all work-items see, is
/// row `4*v + t` and column `k` of the 16×4 factor. The source is that of the other.
pub const MFMA_16X16X4_F64_REGISTERS: &str = include_str!("mfma_16x16x4_f64_registers.txt");

/// The FP64 matrix instruction `v_mfma_f64_4x4x4_4b` of a wavefront: four products of 4×4 matrices, at half the rate of
/// [`MFMA_16X16X4_F64`].
///
/// # Shapes and units
/// `a[p, i, k]` and `b[p, k, j]` of the products `p`, anywhere that all work-items see; `c[lane]` is the
/// element of product `lane / 4 mod 4` in row `lane / 16` and column `lane mod 4`. The source is that of the others.
pub const MFMA_4X4X4_F64: &str = include_str!("mfma_4x4x4_f64.txt");

/// `x = exp2(x)` by the instruction of NVIDIA's GPUs, or of AMD's.
///
/// # Rounding
/// The relative error is at most `2^-22`. Numbers below `2^-126` are taken for zero, and results below it are zero.
///
/// # Source
/// PTX ISA, *Floating Point Instructions: ex2*; AMD Instinct MI300 Instruction Set Architecture, `V_EXP_F32`.
pub const EXP2_NEAR_F32: &str = include_str!("exp2_near_f32.txt");

/// The line of an element for the second-level cache: `seen = from[0]`, of which nothing is stored, so that nothing may
/// read `seen`. The step `touch_array` makes such reads.
///
/// # Source
/// PTX ISA, *Data Movement and Conversion Instructions: prefetch*; OpenCL C 3.0, section 6.15.11, `prefetch`.
pub const PREFETCH_F64: &str = include_str!("prefetch_f64.txt");

/// `r = 1.0/x` without a branch, as divisions compute it in the middle of the range (PTX ISA, `rcp`).
/// Where neither number is below `2^-1020` in size it is off by one unit at most (by none in 2^31
/// random numbers on an H200, 2026-11-30); else it is no number, infinite or zero.
pub const RECIPROCAL_F64: &str = include_str!("reciprocal_f64.txt");

/// Work-items of the sub-groups for which the code of a callee is written, as its text says after the
/// name: `{sub_group(64)}`, else 32. What deals work out to the lanes of an instruction asks here.
#[must_use]
pub const fn width(text: &str) -> i64 {
    let (text, word) = (text.as_bytes(), b"{sub_group(");
    let mut at = 0;
    while at < text.len() && text[at] != b'\n' {
        let mut known = 0;
        while known < word.len() && at + known < text.len() && text[at + known] == word[known] {
            known += 1;
        }
        if known == word.len() {
            let (mut digit, mut width) = (at + known, 0);
            while digit < text.len() && text[digit].is_ascii_digit() {
                width = 10 * width + (text[digit] - b'0') as i64;
                digit += 1;
            }
            return width;
        }
        at += 1;
    }
    32
}

/// Whether a callee is one of these, word for word: its code is Kingpost's own.
///
/// Code of any other callee comes from whoever wrote the kernel or the recipe that holds it, and is
/// compiled and run as it stands.
#[must_use]
pub fn ships(callee: &Callee) -> bool {
    shipped().contains(callee)
}

/// The callees of [`all`].
pub fn shipped() -> &'static [Callee] {
    static SHIPPED: LazyLock<Vec<Callee>> = LazyLock::new(|| {
        // none of a text that does not parse, which a test finds
        all().iter().filter_map(|text| parse_callees(text).ok()).flatten().collect()
    });
    &SHIPPED
}

/// All of them.
fn all() -> Vec<String> {
    let texts = TEXTS.map(str::to_owned).into_iter();
    let teams = [128, 256].into_iter().flat_map(|columns| ["bf16", "f16"].map(|ty| wgmma(columns, ty)));
    // of a head of 64 numbers and tiles of 128 keys, and of one of 128 and tiles of 64
    let attention = ["bf16", "f16"].into_iter().flat_map(|ty| {
        [(64, 128), (128, 64)]
            .into_iter()
            .flat_map(move |(size, keys)| [wgmma_rows(keys, size, ty), wgmma_fragments(size, keys, ty)])
    });
    let copies = ["bf16", "f16"].map(copy_eight).into_iter().chain(["bf16", "f16"].map(copy_box));
    texts.chain(teams).chain(attention).chain(copies).collect()
}

const TEXTS: [&str; 29] = [
    FMA_F64,
    AXPY4_F64,
    MMA_M8N8K4_F64,
    MMA_M16N8K8_F64,
    MMA_M16N8K4_F64,
    MMA_M16N8K4_F64_REGISTERS,
    MFMA_16X16X4_F64,
    MFMA_16X16X4_F64_REGISTERS,
    MFMA_4X4X4_F64,
    COPY_ASYNC_F64,
    COPY_ASYNC_F32,
    COPY_ASYNC_F64X2,
    COPY_ASYNC_F32X4,
    COPY_ASYNC_I32,
    EXP2_NEAR_F32,
    PREFETCH_F64,
    RECIPROCAL_F64,
    half::BF16[0],
    half::BF16[1],
    half::BF16[2],
    half::BF16[3],
    half::BF16[4],
    half::BF16[5],
    half::F16[0],
    half::F16[1],
    half::F16[2],
    half::F16[3],
    half::F16[4],
    half::F16[5],
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::calls::{Completion, Piece};
    use crate::text::{parse, print};

    /// The width that is read without parsing is the one that is parsed.
    #[test]
    fn widths_are_those_of_the_texts() {
        let wide = MMA_M8N8K4_F64.replacen("callee mma_m8n8k4_f64", "callee wide {sub_group(64)}", 1);
        let texts = all().into_iter().chain([wide.clone()]);
        for text in texts {
            let [callee] = parse_callees(&text).unwrap().try_into().unwrap();
            assert_eq!(width(&text), i64::from(callee.kernel.sub_group.width()), "{text}");
        }
        assert_eq!(width(&wide), 64);
    }

    /// Each is known for what it is, also after the text of a kernel, and nothing else is.
    #[test]
    fn what_is_shipped_is_told_from_what_is_not() {
        for text in all() {
            let [callee] = parse_callees(&text).unwrap().try_into().unwrap();
            assert!(ships(&callee), "{}", callee.name());
            let mut kernel = parse("kernel k\narg y: f64[1] out\n\ns: y[0] = 1.0\n").unwrap();
            kernel.callees.push(callee.clone());
            let read = parse(&print(&kernel)).unwrap();
            assert!(read.callees.values().all(ships), "{}", callee.name());

            let mut other = callee.clone();
            other.code[0].text.push(Piece::Text("system(\"true\");".into()));
            assert!(!ships(&other));
            let mut other = callee.clone();
            other.code[0].completes = Some(Completion::All("system(\"true\");".into()));
            assert!(!ships(&other));
            let mut other = callee;
            other.kernel.name = "other".into();
            assert!(!ships(&other));
        }
    }
}
