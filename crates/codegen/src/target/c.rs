//! C99 with OpenMP and the vectors of GCC and Clang.

use super::cuda;
use super::description::{
    Atomics, Contraction, Execution, Limits, Posix, SubGroups, Target, TargetDescription, Vectors, Words,
    combine,
};
use crate::ast::Coding;
use kingpost_ir::{ScalarType, UpdateOp};

pub(crate) const C: TargetDescription = TargetDescription {
    target: Target::C,
    name: "c",
    summary: "C99 with OpenMP",
    extension: "c",
    execution: Execution::Host,
    sub_groups: SubGroups::InLocalMemory,
    limits: Limits {
        work_items: None,
        constant: None,
        local: None,
        declared_local: None,
        // each core has them
        private: 64 << 20,
        // an eighth of 2 MiB, the least that is usual for a thread
        stack: Some(256 * 1024),
    },
    banks: cuda::CUDA.banks,
    contraction: Contraction {
        options: Some(["-ffp-contract=fast", "-ffp-contract=off"]),
        forbidden: "// to be compiled with -ffp-contract=off\n\n",
    },
    vectors: Vectors::OfCompilers,
    atomics: Atomics { native: &[], spaces: false, wide: None, source: atomic },
    awaits: None,
    posix: Posix::Declared,
    // work-items run one after the other, so that the meaning stands for such instructions
    completions: &[],
    feature: |_| None,
    features: "none",
    cuts_at_barriers: false,
    words: Words {
        ty,
        vector: |of, width| format!("kingpost_{}x{width}", of.name()),
        lane: |k| format!("[{k}]"),
        aligned: |bytes| format!("_Alignas({bytes}) "),
        pair: |_| ["{".into(), "}".into()],
        long_suffix: ["LL", "ULL"],
        single_suffix: "f",
        rounded: None,
        conversions: None,
        preamble: |_, _| "#include <math.h>\n#include <stdint.h>\n\n".into(),
        head: |function| format!("static void {}", function.name),
        global: "",
        local: "",
        constant: "static const",
        restrict: "restrict ",
        reads_once: false,
        register_class: None,
        map: [""; 2],
        inline: "static inline",
        // before the pass `work_items` only: loops over work-items end and begin there
        barrier: |_| "// barrier",
        hardware: |group, axis| format!("{}{axis}", if group { "g" } else { "l" }),
        nan: ["NAN", "(double)NAN"],
        infinity: ["INFINITY", "(double)INFINITY"],
        half,
        assume: None,
        rolled: None,
        extremes: false,
    },
};

fn ty(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F32 => "float",
        ScalarType::F64 => "double",
        ScalarType::I16 => "int16_t",
        ScalarType::I32 => "int32_t",
        ScalarType::I64 => "int64_t",
        ScalarType::I8 => "int8_t",
        ScalarType::U8 | ScalarType::Bool => "uint8_t",
        ScalarType::U16 | ScalarType::F16 | ScalarType::Bf16 => "uint16_t",
        ScalarType::U32 => "uint32_t",
        ScalarType::U64 => "uint64_t",
        ScalarType::C64 => "kingpost_c64",
        ScalarType::C128 => "kingpost_c128",
        ScalarType::Record(record) => record.name(),
    }
}

/// As `kingpost_ir::half` has it: `_Float16` and `__bf16` are not in every compiler.
fn half(coding: Coding, ty: ScalarType) -> &'static str {
    match (coding, ty == ScalarType::F16) {
        (Coding::Encode, true) => {
            "    uint32_t b;\n    __builtin_memcpy(&b, &x, 4);\n    const uint32_t sign = (b >> 16) & 0x8000U;\n    \
             b &= 0x7fffffffU;\n    if (b > 0x7f800000U) {\n        return sign | 0x7e00U;\n    }\n    \
             if (b >= 0x477ff000U) {\n        return sign | 0x7c00U;\n    }\n    if (b < 0x38800000U) {\n        \
             float y;\n        __builtin_memcpy(&y, &b, 4);\n        y += 0.5f;\n        __builtin_memcpy(&b, &y, 4);\n        \
             return sign | (b & 0xffffU);\n    }\n    \
             return sign | ((b + 0xfffU + ((b >> 13) & 1U) - 0x38000000U) >> 13);\n"
        }
        (Coding::Decode, true) => {
            "    const uint32_t size = x & 0x7fffU;\n    \
             uint32_t b = size >= 0x7c00U ? 0x7f800000U | (size & 0x3ffU) << 13 : (size << 13) + 0x38000000U;\n    \
             float y;\n    __builtin_memcpy(&y, &b, 4);\n    if (size < 0x400U) {\n        \
             y = (float)size*5.9604644775390625e-8f;\n    }\n    return x & 0x8000U ? -y : y;\n"
        }
        (Coding::Encode, false) => {
            "    uint32_t b;\n    __builtin_memcpy(&b, &x, 4);\n    \
             return (x != x ? b | 0x400000U : b + 0x7fffU + ((b >> 16) & 1U)) >> 16;\n"
        }
        (Coding::Decode, false) => {
            "    const uint32_t b = (uint32_t)x << 16;\n    float y;\n    __builtin_memcpy(&y, &b, 4);\n    return y;\n"
        }
    }
}

fn atomic(op: UpdateOp, of: ScalarType, _local: bool, name: &str) -> String {
    let (t, value) = (ty(of), ty(of.loaded()));
    let next = match of.is_half() {
        true => {
            let now = format!("kingpost_of_{}(old)", of.name());
            format!("kingpost_to_{}({})", of.name(), combine(op, of.loaded(), &C, &now, "v"))
        }
        false => combine(op, of, &C, "old", "v"),
    };
    format!(
        "static inline void {name}({t} *p, const {value} v)\n{{\n    {t} old, next;\n    \
         __atomic_load(p, &old, __ATOMIC_RELAXED);\n    do {{\n        next = {next};\n    \
         }} while (!__atomic_compare_exchange(p, &old, &next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));\n}}\n"
    )
}
