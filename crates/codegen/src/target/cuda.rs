//! CUDA C++, as NVRTC compiles it.

use super::description::{
    Atomics, Awaits, Banks, Completion, Contraction, Execution, Feature, Limits, Posix, SubGroups, Target,
    TargetDescription, Vectors, Words, bits, combine,
};
use crate::ast::{Coding, Fence};
use crate::function::Function;
use kingpost_analysis::placement::Scope;
use kingpost_ir::{ScalarType, UpdateOp};

pub(crate) const CUDA: TargetDescription = TargetDescription {
    target: Target::Cuda,
    name: "cuda",
    summary: "CUDA C++",
    extension: "cu",
    execution: Execution::Device,
    sub_groups: SubGroups::Hardware {
        widths: &[32],
        shuffle: "$to = __shfl_sync($mask, $value, $lane, $width);",
    },
    limits: Limits {
        // the programming guide's
        work_items: Some(1024),
        constant: Some(64 * 1024),
        // compute capability 9.0; the runtime compares with the card's own
        local: Some(227 * 1024),
        declared_local: Some(48 * 1024),
        // local memory of a thread on every compute capability so far (programming guide, technical
        // specifications)
        private: 512 * 1024,
        stack: None,
    },
    banks: Banks { count: 32, word: 4, sector: 32 },
    contraction: Contraction { options: Some(["--fmad=true", "--fmad=false"]), forbidden: "" },
    vectors: Vectors::Accesses { widest: 16 },
    atomics: Atomics {
        native: &[
            (UpdateOp::Add, ScalarType::F32, "atomicAdd"),
            (UpdateOp::Add, ScalarType::F64, "atomicAdd"),
            (UpdateOp::Add, ScalarType::I32, "atomicAdd"),
            (UpdateOp::Min, ScalarType::I32, "atomicMin"),
            (UpdateOp::Min, ScalarType::I64, "atomicMin"),
            (UpdateOp::Max, ScalarType::I32, "atomicMax"),
            (UpdateOp::Max, ScalarType::I64, "atomicMax"),
            (UpdateOp::Add, ScalarType::U32, "atomicAdd"),
            (UpdateOp::Min, ScalarType::U32, "atomicMin"),
            (UpdateOp::Max, ScalarType::U32, "atomicMax"),
            (UpdateOp::Add, ScalarType::U64, "atomicAdd"),
            (UpdateOp::Min, ScalarType::U64, "atomicMin"),
            (UpdateOp::Max, ScalarType::U64, "atomicMax"),
        ],
        spaces: false,
        wide: None,
        source: atomic,
    },
    awaits: Some(AWAITS),
    posix: Posix::Known,
    completions: PTX,
    feature: capability,
    features: "`sm_80`, `sm_90a` and the like",
    cuts_at_barriers: false,
    words: Words {
        ty,
        vector: |of, width| {
            let element = ty(of).replace("unsigned ", "u").replace("signed ", "").replace(' ', "");
            format!("{element}{width}")
        },
        lane: |k| format!(".{}", ["x", "y", "z", "w"][usize::from(k.min(3))]),
        aligned: |bytes| format!("__align__({bytes}) "),
        pair: |_| ["{".into(), "}".into()],
        long_suffix: ["LL", "ULL"],
        single_suffix: "f",
        rounded: Some(["__fadd_rn", "__fsub_rn", "__fmul_rn"]),
        conversions: Some([SPLIT, WIDEN]),
        preamble: |_, _| String::new(),
        head,
        global: "",
        local: "__shared__ ",
        constant: "__constant__",
        restrict: "__restrict__ ",
        // `tests/compilers/nvvm_reads_once.cu`; `tests/forms/nvrtc.rs` shows it
        reads_once: true,
        register_class: Some(register_class),
        map: [
            "const __grid_constant__ TensorMap",
            "// CUtensorMap of the driver\nstruct __align__(128) TensorMap {\n    unsigned long long words[16];\n};\n\n",
        ],
        inline: "__device__ static inline",
        barrier,
        hardware,
        // NVRTC has no header for them
        nan: ["__int_as_float(0x7fc00000)", "__longlong_as_double(0x7ff8000000000000LL)"],
        infinity: ["__int_as_float(0x7f800000)", "__longlong_as_double(0x7ff0000000000000LL)"],
        assume: Some("__builtin_assume"),
        // A loop that is tagged so, and a short one of varying length. NVVM (CUDA 13.0, before sm_100)
        // unrolls the inner loop of `for i in 0..3 for j in i..3` around a call, and then leaves the outer
        // one after its first iteration: `tests/compilers/nvvm_leaves_a_triangle.cu`;
        // `tests/forms/nvrtc.rs` shows it.
        rolled: Some("#pragma unroll 1"),
        half,
        extremes: false,
    },
};

/// The first bits of an `f64`, cut off, are those of an `f32` with another exponent; the other 29
/// are an integer. Conversions of `f64` run on the units of FP64, of which some cards have a 64th.
/// From `2^-74` to `2^127` both parts are normal numbers.
const SPLIT: &str =
    "    const unsigned int high = (unsigned int)__double2hiint(x), low = (unsigned int)__double2loint(x);
    const unsigned int sign = high & 0x80000000u, exponent = high >> 20 & 0x7ffu;
    if (exponent - 949u <= 200u) {
        const unsigned int bits = __funnelshift_l(low, (high & 0x7fffffffu) - 0x38000000u, 3);
        const float scale = __uint_as_float(sign | (exponent - 948u) << 23);
        const float rest = __fmul_rn((float)(int)(low & 0x1fffffffu), scale);
        return kingpost_ds_fast_two_sum(__uint_as_float(sign | bits), rest);
    }
";

/// The bits of a normal `f32`, with the exponent of an `f64`.
const WIDEN: &str = "    const unsigned int bits = __float_as_uint(x), exponent = bits & 0x7f800000u;
    if (exponent - 1u < 0x7f7fffffu) {
        return __hiloint2double((int)((bits & 0x80000000u) | (((bits & 0x7fffffffu) >> 3) + 0x38000000u)), (int)(bits << 29));
    }
";

/// Beginnings of PTX instructions that run asynchronously, and of those that wait for them.
pub(super) const PTX: &[Completion] = &[
    Completion {
        instruction: "cp.async",
        waits: &["cp.async.wait_all", "cp.async.wait_group", "cp.async.bulk.wait_group", "mbarrier."],
        hints: &["cp.async.bulk.prefetch"],
    },
    Completion {
        instruction: "cp.reduce.async",
        waits: &["cp.async.bulk.wait_group", "mbarrier."],
        hints: &[],
    },
    Completion { instruction: "st.async", waits: &["mbarrier."], hints: &[] },
    Completion { instruction: "wgmma.mma_async", waits: &["wgmma.wait_group"], hints: &[] },
];

/// `sm_80` is a compute capability of 8.0 or more, `sm_90a` one of 9.0 alone.
fn capability(name: &str) -> Option<Feature> {
    let number = name.strip_prefix("sm_")?;
    match number.strip_suffix('a') {
        Some(number) => number.parse().ok().map(Feature::OneComputeCapability),
        None => number.parse().ok().map(Feature::ComputeCapability),
    }
}

fn ty(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
        ScalarType::I16 => "short",
        ScalarType::I32 => "int",
        ScalarType::I64 => "long long",
        ScalarType::I8 => "signed char",
        ScalarType::U8 | ScalarType::Bool => "unsigned char",
        ScalarType::U16 | ScalarType::F16 | ScalarType::Bf16 => "unsigned short",
        ScalarType::U32 => "unsigned int",
        ScalarType::U64 => "unsigned long long",
        ScalarType::C64 => "float2",
        ScalarType::C128 => "double2",
        ScalarType::Record(record) => record.name(),
    }
}

/// The letter of inline assembly.
fn register_class(ty: ScalarType) -> &'static str {
    match ty.bytes() {
        _ if ty == ScalarType::F32 => "f",
        _ if ty == ScalarType::F64 => "d",
        8 => "l",
        4 => "r",
        _ => "h",
    }
}

/// NVRTC has no headers.
fn half(coding: Coding, ty: ScalarType) -> &'static str {
    match (coding, ty == ScalarType::F16) {
        (Coding::Encode, true) => {
            "    unsigned short y;\n    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n    return y;\n"
        }
        (Coding::Decode, true) => {
            "    float y;\n    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n    return y;\n"
        }
        (Coding::Encode, false) => {
            "    const unsigned int b = __float_as_uint(x);\n    \
             return (x != x ? b | 0x400000U : b + 0x7fffU + ((b >> 16) & 1U)) >> 16;\n"
        }
        (Coding::Decode, false) => "    return __uint_as_float((unsigned int)x << 16);\n",
    }
}

fn head(function: &Function) -> String {
    let Function { name, block: [x, y, z], .. } = function;
    let resident = function.resident_groups.map(|n| format!(", {n}")).unwrap_or_default();
    format!("extern \"C\" __global__ void __launch_bounds__({}{resident}) {name}", x * y * z)
}

fn barrier(fence: &Fence) -> &'static str {
    if fence.scope == Scope::SubGroup { "__syncwarp();" } else { "__syncthreads();" }
}

fn hardware(group: bool, axis: u8) -> String {
    let index = if group { "blockIdx" } else { "threadIdx" };
    format!("{index}.{}", ["x", "y", "z"][usize::from(axis.min(2))])
}

fn atomic(op: UpdateOp, of: ScalarType, _local: bool, name: &str) -> String {
    let t = ty(of);
    if (op, of) == (UpdateOp::Add, ScalarType::I64) {
        return format!(
            "__device__ static inline void {name}(long long *p, const long long v)\n{{\n    \
             atomicAdd((unsigned long long *)p, (unsigned long long)v);\n}}\n"
        );
    }
    // none of fewer than 32 bits comes here, no record, and complex numbers have sums of their own
    let (word, from, to) = bits(of).unwrap_or(("unsigned int", "(int)seen", "(unsigned int)"));
    let next = combine(op, of, &CUDA, "now", "v");
    format!(
        "__device__ static inline void {name}({t} *p, const {t} v)\n{{\n    {word} *const word = ({word} *)p;\n    \
         {word} old = *word, seen;\n    do {{\n        seen = old;\n        const {t} now = {from};\n        \
         old = atomicCAS(word, seen, {to}({next}));\n    }} while (old != seen);\n}}\n"
    )
}

/// A group that has started goes on while others wait: blocks of CUDA that run are not suspended for others
/// of their launch (the occupancy-bound execution of Sorensen et al. 2016). A relaxed access of 64 bits is one
/// piece by the memory model of PTX, and a vector of two is two of them.
pub(super) const AWAITS: Awaits = Awaits {
    // the first with that memory model
    needs: Feature::ComputeCapability(70),
    start: "if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    const unsigned long long $low = atomicAdd($counter, 1ull);
    $turn[0] = $low % gridDim.x;
    $turn[1] = ($low / gridDim.x + 1) << 32;
}
__syncthreads();",
    // in assembly, so that no compiler makes several accesses of one
    store: [
        "asm volatile(\"st.relaxed.gpu.u64 [%0], %1;\" :: \"l\"($address), \"l\"($first) : \"memory\");",
        "asm volatile(\"st.relaxed.gpu.v2.u64 [%0], {%1, %2};\" :: \"l\"($address), \"l\"($first), \"l\"($second) : \
         \"memory\");",
    ],
    load: [
        "asm volatile(\"ld.relaxed.gpu.u64 %0, [%1];\" : \"=l\"($low) : \"l\"($address) : \"memory\");",
        "asm volatile(\"ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];\" : \"=l\"($low), \"=l\"($high) : \"l\"($address) : \
         \"memory\");",
    ],
};
