//! C99 with OpenMP and the vectors of GCC and Clang.

use super::combine;
use super::{
    Atomics, Contraction, Execution, Limits, Posix, SubGroups, Target, TargetDescription, Vectors, Words,
    cuda,
};
use purlin_ir::{ScalarType, UpdateOp};

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
    contraction: Contraction { options: Some(["-ffp-contract=fast", "-ffp-contract=off"]), forbidden: "" },
    vectors: Vectors::OfCompilers,
    atomics: Atomics { native: &[], spaces: false, wide: None, source: atomic },
    posix: Posix::Declared,
    // work-items run one after the other, so that the meaning stands for such instructions
    completions: &[],
    feature: |_| None,
    features: "none",
    cuts_at_barriers: false,
    words: Words {
        ty,
        vector: |of, width| format!("purlin_{}x{width}", of.name()),
        lane: |k| format!("[{k}]"),
        aligned: |bytes| format!("_Alignas({bytes}) "),
        long_suffix: "LL",
        single_suffix: "f",
        preamble: |_, _| "#include <math.h>\n#include <stdint.h>\n\n".into(),
        head: |function| format!("static void {}", function.name),
        global: "",
        local: "",
        constant: "static const",
        restrict: "restrict ",
        reads_once: false,
        inline: "static inline",
        // before the pass `work_items` only: loops over work-items end and begin there
        barrier: |_| "// barrier",
        hardware: |group, axis| format!("{}{axis}", if group { "g" } else { "l" }),
        nan: ["NAN", "(double)NAN"],
        infinity: ["INFINITY", "(double)INFINITY"],
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
    }
}

fn atomic(op: UpdateOp, of: ScalarType, _local: bool, name: &str) -> String {
    let t = ty(of);
    let next = combine(op, of, &C, "old", "v");
    format!(
        "static inline void {name}({t} *p, const {t} v)\n{{\n    {t} old, next;\n    \
         __atomic_load(p, &old, __ATOMIC_RELAXED);\n    do {{\n        next = {next};\n    \
         }} while (!__atomic_compare_exchange(p, &old, &next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));\n}}\n"
    )
}
