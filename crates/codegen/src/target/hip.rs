//! HIP C++, as hipcc and hiprtc compile it for AMD's ninth generation of processors: CUDA with other words.

use super::cuda;
use super::description::{
    Atomics, Awaits, Contraction, Feature, Limits, SubGroups, Target, TargetDescription, Words,
};
use crate::ast::{Coding, Fence};
use crate::function::Function;
use kingpost_analysis::placement::Scope;
use kingpost_ir::{ScalarType, UpdateOp};

pub(crate) const HIP: TargetDescription = TargetDescription {
    target: Target::Hip,
    name: "hip",
    summary: "HIP C++ for CDNA",
    extension: "hip",
    // a wavefront, or half of one, which shuffles of that width do not leave
    sub_groups: SubGroups::Hardware { widths: &[32, 64], shuffle: "$to = __shfl($value, $lane, $width);" },
    limits: Limits {
        // it lies in global memory
        constant: None,
        local: Some(64 * 1024),
        declared_local: None,
        // of 8191 KiB of a wavefront (LLVM, `GCNSubtarget::getMaxWaveScratchSize`)
        private: 131_056,
        ..cuda::CUDA.limits
    },
    contraction: Contraction {
        options: Some(["-ffp-contract=fast", "-ffp-contract=off"]),
        forbidden: "// to be compiled with -ffp-contract=off\n\n",
    },
    atomics: Atomics {
        // `atomicAdd` of reals is a compare-and-swap unless a compiler is told that no memory is of the
        // host's; results in single precision may lose denormals, as CUDA's do
        native: &[
            (UpdateOp::Add, ScalarType::F32, "unsafeAtomicAdd"),
            (UpdateOp::Add, ScalarType::F64, "unsafeAtomicAdd"),
            (UpdateOp::Add, ScalarType::I32, "atomicAdd"),
            (UpdateOp::Min, ScalarType::I32, "atomicMin"),
            (UpdateOp::Max, ScalarType::I32, "atomicMax"),
            (UpdateOp::Add, ScalarType::U32, "atomicAdd"),
            (UpdateOp::Min, ScalarType::U32, "atomicMin"),
            (UpdateOp::Max, ScalarType::U32, "atomicMax"),
            (UpdateOp::Add, ScalarType::U64, "atomicAdd"),
            (UpdateOp::Min, ScalarType::U64, "atomicMin"),
            (UpdateOp::Max, ScalarType::U64, "atomicMax"),
        ],
        ..cuda::CUDA.atomics
    },
    // groups start in order, and none is suspended for others (rocPRIM's scan with look-back builds on it, too)
    awaits: Some(Awaits {
        needs: Feature::Gfx9(0x900),
        store: [
            "__hip_atomic_store($address, $first, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
            "__hip_atomic_store($address, $first, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_store($address + 1, $second, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
        ],
        load: [
            "$low = __hip_atomic_load($address, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
            "$low = __hip_atomic_load($address, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        $high = __hip_atomic_load($address + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
        ],
        ..cuda::AWAITS
    }),
    // the meaning stands for copies that do not wait
    completions: &[],
    feature: |name| {
        let number = u32::from_str_radix(name.strip_prefix("gfx")?, 16).ok()?;
        Some(Feature::Gfx9(number)).filter(|_| number >> 8 == 9)
    },
    features: "`gfx90a`, `gfx942` and the like",
    words: Words {
        // those of its header may be contracted
        rounded: None,
        conversions: None,
        aligned: |bytes| format!("__attribute__((aligned({bytes}))) "),
        // hiprtc has the header built in; the rest would run sub-groups of 64 in halves
        preamble: |_, _| {
            "#ifndef __HIPCC_RTC__\n#include <hip/hip_runtime.h>\n#endif\n\
             #if defined(__AMDGCN__) && !defined(__GFX9__)\n#error \"wavefronts of 64 work-items are needed\"\n#endif\n\n"
                .into()
        },
        head,
        // faults of NVVM's
        reads_once: false,
        register_class: None,
        map: [""; 2],
        barrier,
        half,
        ..cuda::CUDA.words
    },
    ..cuda::CUDA
};

/// The second bound is one of wavefronts on each of the four units of a compute unit, which hold up to eight.
fn head(function: &Function) -> String {
    let Function { name, block: [x, y, z], .. } = function;
    let items = x * y * z;
    let waves = |groups| (u64::from(groups) * items.div_ceil(64)).div_ceil(4).min(8);
    let resident = function.resident_groups.map(|n| format!(", {}", waves(n))).unwrap_or_default();
    format!("extern \"C\" __global__ void __launch_bounds__({items}{resident}) {name}")
}

/// The work-items of a wavefront run each instruction together: what is left of a barrier is for the compiler.
fn barrier(fence: &Fence) -> &'static str {
    if fence.scope == Scope::SubGroup {
        "__builtin_amdgcn_fence(__ATOMIC_RELEASE, \"wavefront\"); __builtin_amdgcn_wave_barrier(); \
         __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"wavefront\");"
    } else {
        "__syncthreads();"
    }
}

fn half(coding: Coding, ty: ScalarType) -> &'static str {
    match (coding, ty == ScalarType::F16) {
        (Coding::Encode, true) => "    return __builtin_bit_cast(unsigned short, (_Float16)x);\n",
        (Coding::Decode, true) => "    return (float)__builtin_bit_cast(_Float16, x);\n",
        (_, false) => (cuda::CUDA.words.half)(coding, ty),
    }
}
