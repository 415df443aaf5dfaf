//! OpenCL C 1.2, with the extensions for double precision and for atomic updates of 64 bits.

use super::cuda;
use super::description::{
    Atomics, Contraction, Execution, Feature, Limits, Posix, SubGroups, Target, TargetDescription, Vectors,
    Words, combine,
};
use crate::ast::{Coding, Fence};
use crate::function::Function;
use kingpost_ir::{ScalarType, UpdateOp};

pub(crate) const OPENCL: TargetDescription = TargetDescription {
    target: Target::OpenCl,
    name: "opencl",
    summary: "OpenCL C 1.2",
    extension: "cl",
    execution: Execution::Device,
    // 1.2 has no sub-groups
    sub_groups: SubGroups::InLocalMemory,
    limits: Limits {
        // devices report theirs, and the runtime compares
        work_items: None,
        local: None,
        declared_local: None,
        // the least that a device offers
        constant: Some(64 * 1024),
        // there is no query for it; NVIDIA's devices have the limit of CUDA
        private: 512 * 1024,
        stack: None,
    },
    banks: cuda::CUDA.banks,
    // on by default
    contraction: Contraction { options: None, forbidden: "#pragma OPENCL FP_CONTRACT OFF\n\n" },
    vectors: Vectors::Operators,
    atomics: Atomics {
        native: &[
            (UpdateOp::Add, ScalarType::I32, "atomic_add"),
            (UpdateOp::Min, ScalarType::I32, "atomic_min"),
            (UpdateOp::Max, ScalarType::I32, "atomic_max"),
            (UpdateOp::Add, ScalarType::U32, "atomic_add"),
            (UpdateOp::Min, ScalarType::U32, "atomic_min"),
            (UpdateOp::Max, ScalarType::U32, "atomic_max"),
        ],
        spaces: true,
        wide: Some(Feature::Int64Atomics),
        source: atomic,
    },
    // OpenCL promises nothing of groups that wait for each other
    awaits: None,
    posix: Posix::Missing,
    // inline assembly of NVIDIA's compiler
    completions: cuda::PTX,
    feature: |_| None,
    features: "none",
    // pocl
    cuts_at_barriers: true,
    words: Words {
        ty,
        vector: |of, width| format!("{}{width}", ty(of)),
        lane: |k| format!(".s{k:x}"),
        aligned: |bytes| format!("__attribute__((aligned({bytes}))) "),
        pair: |ty| [format!("({ty})("), ")".into()],
        long_suffix: ["L", "UL"],
        // functions are generic
        single_suffix: "",
        rounded: None,
        conversions: None,
        preamble,
        head,
        global: "__global ",
        local: "__local ",
        constant: "__constant",
        restrict: "restrict ",
        reads_once: false,
        register_class: None,
        map: [""; 2],
        inline: "static inline",
        barrier,
        hardware: |group, axis| format!("get_{}_id({axis})", if group { "group" } else { "local" }),
        nan: ["NAN", "(double)NAN"],
        infinity: ["INFINITY", "(double)INFINITY"],
        half,
        assume: None,
        rolled: None,
        extremes: true,
    },
};

fn ty(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
        ScalarType::I16 => "short",
        ScalarType::I32 => "int",
        ScalarType::I64 => "long",
        ScalarType::I8 => "char",
        ScalarType::U8 | ScalarType::Bool => "uchar",
        ScalarType::U16 | ScalarType::F16 | ScalarType::Bf16 => "ushort",
        ScalarType::U32 => "uint",
        ScalarType::U64 => "ulong",
        ScalarType::C64 => "float2",
        ScalarType::C128 => "double2",
        ScalarType::Record(record) => record.name(),
    }
}

fn preamble(doubles: bool, wide_atomics: bool) -> String {
    let mut text = String::new();
    if doubles {
        text.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    }
    if wide_atomics {
        text.push_str("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The functions of halves in memory need no extension.
fn half(coding: Coding, ty: ScalarType) -> &'static str {
    match (coding, ty == ScalarType::F16) {
        (Coding::Encode, true) => {
            "    ushort y;\n    vstore_half_rte(x, 0, (__private half *)&y);\n    return y;\n"
        }
        (Coding::Decode, true) => "    return vload_half(0, (const __private half *)&x);\n",
        (Coding::Encode, false) => {
            "    const uint b = as_uint(x);\n    \
             return (isnan(x) ? b | 0x400000U : b + 0x7fffU + ((b >> 16) & 1U)) >> 16;\n"
        }
        (Coding::Decode, false) => "    return as_float((uint)x << 16);\n",
    }
}

fn head(function: &Function) -> String {
    let Function { name, block: [x, y, z], .. } = function;
    format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid {name}")
}

fn barrier(fence: &Fence) -> &'static str {
    match (fence.local, fence.global) {
        (true, true) => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
        (false, true) => "barrier(CLK_GLOBAL_MEM_FENCE);",
        (_, false) => "barrier(CLK_LOCAL_MEM_FENCE);",
    }
}

/// The first read is atomic too, else a race checker takes the loop for a race.
fn atomic(op: UpdateOp, of: ScalarType, local: bool, name: &str) -> String {
    let t = ty(of);
    let space = if local { "__local" } else { "__global" };
    if op == UpdateOp::Add && matches!(of, ScalarType::I64 | ScalarType::U64) {
        return format!(
            "static inline void {name}(volatile {space} {t} *p, const {t} v)\n{{\n    atom_add(p, v);\n}}\n"
        );
    }
    let (word, prefix) = if of.bytes() == 8 { ("ulong", "atom") } else { ("uint", "atomic") };
    let next = combine(op, of, &OPENCL, "now", "v");
    format!(
        "static inline void {name}(volatile {space} {t} *p, const {t} v)\n{{\n    \
         volatile {space} {word} *const word = (volatile {space} {word} *)p;\n    \
         {word} old = {prefix}_add(word, 0), seen;\n    do {{\n        seen = old;\n        \
         const {t} now = as_{t}(seen);\n        old = {prefix}_cmpxchg(word, seen, as_{word}({next}));\n    \
         }} while (old != seen);\n}}\n"
    )
}
