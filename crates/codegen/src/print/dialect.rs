//! What differs among CUDA, OpenCL and C.

use super::{Function, Param};
use crate::ast::{Fence, For, LoopKind, Stmt};
use crate::plan::Target;
use purlin_analysis::placement::Scope;
use purlin_ir::{MathFn, ScalarType};

/// Infinity or not-a-number among the first values of a table. CUDA's functions and OpenCL's `NAN`
/// are no constants there, a quotient is one everywhere.
pub(crate) fn constant_special(v: f64, ty: ScalarType) -> &'static str {
    match (v.is_nan(), v.is_sign_negative(), ty) {
        (true, _, ScalarType::F32) => "0.0f/0.0f",
        (true, _, _) => "0.0/0.0",
        (false, false, ScalarType::F32) => "1.0f/0.0f",
        (false, false, _) => "1.0/0.0",
        (false, true, ScalarType::F32) => "-1.0f/0.0f",
        (false, true, _) => "-1.0/0.0",
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect(pub(crate) Target);

const XYZW: [char; 4] = ['x', 'y', 'z', 'w'];

impl Dialect {
    pub(crate) fn ty(self, ty: ScalarType) -> &'static str {
        match (self.0, ty) {
            (_, ScalarType::F32) => "float",
            (_, ScalarType::F64) => "double",
            (Target::Cuda | Target::OpenCl, ScalarType::I16) => "short",
            (Target::C, ScalarType::I16) => "int16_t",
            (Target::Cuda | Target::OpenCl, ScalarType::I32) => "int",
            (Target::C, ScalarType::I32) => "int32_t",
            (Target::Cuda, ScalarType::I64) => "long long",
            (Target::OpenCl, ScalarType::I64) => "long",
            (Target::C, ScalarType::I64) => "int64_t",
        }
    }

    /// A lane of a vector.
    pub(crate) fn lane(self, k: u8) -> String {
        match self.0 {
            Target::OpenCl => format!(".s{k:x}"),
            Target::Cuda => format!(".{}", XYZW[usize::from(k.min(3))]),
            Target::C => format!("[{k}]"),
        }
    }

    /// A vector of elements, where the target has such a type.
    pub(crate) fn vector(self, ty: ScalarType, width: u8) -> String {
        match (self.0, ty) {
            (Target::Cuda, ScalarType::I64) => format!("longlong{width}"),
            (Target::C, _) => format!("purlin_{}x{width}", ty.name()),
            (Target::Cuda | Target::OpenCl, _) => format!("{}{width}", self.ty(ty)),
        }
    }

    /// That an array starts at a multiple of some bytes.
    pub(crate) fn aligned(self, bytes: u64) -> String {
        match self.0 {
            Target::Cuda => format!("__align__({bytes}) "),
            Target::OpenCl => format!("__attribute__((aligned({bytes}))) "),
            Target::C => format!("_Alignas({bytes}) "),
        }
    }

    pub(crate) fn integer_suffix(self, ty: ScalarType) -> &'static str {
        match (self.0, ty) {
            (_, ScalarType::I16 | ScalarType::I32 | ScalarType::F32 | ScalarType::F64) => "",
            (Target::OpenCl, ScalarType::I64) => "L",
            (Target::Cuda | Target::C, ScalarType::I64) => "LL",
        }
    }

    /// What a source says of contraction: OpenCL C by a pragma, the others by an option of their
    /// compilers.
    pub(crate) fn contraction(self, allowed: bool) -> &'static str {
        match (self.0, allowed) {
            (Target::OpenCl, false) => "#pragma OPENCL FP_CONTRACT OFF\n\n",
            (Target::OpenCl | Target::Cuda | Target::C, _) => "",
        }
    }

    pub(crate) fn preamble(self, doubles: bool, wide_atomics: bool) -> String {
        let mut text = String::new();
        match self.0 {
            Target::Cuda => {}
            Target::OpenCl => {
                if doubles {
                    text.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
                }
                if wide_atomics {
                    text.push_str("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n");
                }
                if !text.is_empty() {
                    text.push('\n');
                }
            }
            Target::C => text.push_str("#include <math.h>\n#include <stdint.h>\n\n"),
        }
        text
    }

    pub(crate) fn function_head(self, function: &Function) -> String {
        let Function { name, block: [x, y, z], .. } = function;
        match self.0 {
            Target::Cuda => {
                let resident = function.resident_groups.map(|n| format!(", {n}")).unwrap_or_default();
                format!("extern \"C\" __global__ void __launch_bounds__({}{resident}) {name}", x * y * z)
            }
            Target::OpenCl => {
                format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid {name}")
            }
            Target::C => format!("static void {name}"),
        }
    }

    pub(crate) fn param(self, p: &Param) -> String {
        let (ty, name) = (self.ty(p.ty), &p.name);
        match (p.buffer, self.0) {
            (None, _) => format!("const {ty} {name}"),
            (Some(read_only), target) => {
                let qualifier = if read_only { "const " } else { "" };
                let (space, restrict) = match target {
                    Target::Cuda => ("", "__restrict__ "),
                    Target::OpenCl => ("__global ", "restrict "),
                    Target::C => ("", "restrict "),
                };
                // C has one thread a group
                let restrict = if p.is_shared && target != Target::C { "" } else { restrict };
                format!("{space}{qualifier}{ty} *{restrict}{name}")
            }
        }
    }

    pub(crate) fn local_space(self) -> &'static str {
        match self.0 {
            Target::Cuda => "__shared__ ",
            Target::OpenCl => "__local ",
            Target::C => "",
        }
    }

    pub(crate) fn constant_space(self) -> &'static str {
        match self.0 {
            Target::Cuda => "__constant__",
            Target::OpenCl => "__constant",
            Target::C => "static const",
        }
    }

    /// The completions that a barrier waits for, and the barrier itself.
    pub(crate) fn barrier(self, fence: &Fence) -> impl Iterator<Item = &str> {
        let barrier = match (self.0, fence.scope) {
            (_, Scope::WorkItem) => None,
            (Target::Cuda, Scope::SubGroup) => Some("__syncwarp();"),
            (Target::Cuda, Scope::Group) => Some("__syncthreads();"),
            (Target::OpenCl, Scope::SubGroup | Scope::Group) => Some(match (fence.local, fence.global) {
                (true, true) => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
                (false, true) => "barrier(CLK_GLOBAL_MEM_FENCE);",
                (_, false) => "barrier(CLK_LOCAL_MEM_FENCE);",
            }),
            // Only before `work_items`: loops over work-items end and begin there.
            (Target::C, Scope::SubGroup | Scope::Group) => Some("// barrier"),
        };
        fence.completions.iter().map(|statement| &**statement).chain(barrier)
    }

    pub(crate) fn hardware(self, group: bool, axis: u8) -> String {
        let xyz = XYZW[usize::from(axis.min(2))];
        match (self.0, group) {
            (Target::Cuda, true) => format!("blockIdx.{xyz}"),
            (Target::Cuda, false) => format!("threadIdx.{xyz}"),
            (Target::OpenCl, true) => format!("get_group_id({axis})"),
            (Target::OpenCl, false) => format!("get_local_id({axis})"),
            (Target::C, true) => format!("g{axis}"),
            (Target::C, false) => format!("l{axis}"),
        }
    }

    /// A function of the mathematics library; OpenCL's are generic.
    pub(crate) fn function(self, f: MathFn, ty: ScalarType) -> String {
        match (self.0, ty) {
            (Target::Cuda | Target::C, ScalarType::F32) => format!("{}f", f.symbol()),
            (Target::Cuda | Target::C | Target::OpenCl, _) => f.symbol().into(),
        }
    }

    /// Infinity or not-a-number.
    pub(crate) fn special(self, v: f64, ty: ScalarType) -> String {
        let sign = if v.is_sign_negative() && !v.is_nan() { "-" } else { "" };
        let value = match (self.0, ty, v.is_nan()) {
            // NVRTC has no header for them.
            (Target::Cuda, ScalarType::F32, true) => "__int_as_float(0x7fc00000)",
            (Target::Cuda, ScalarType::F32, false) => "__int_as_float(0x7f800000)",
            (Target::Cuda, _, true) => "__longlong_as_double(0x7ff8000000000000LL)",
            (Target::Cuda, _, false) => "__longlong_as_double(0x7ff0000000000000LL)",
            (Target::OpenCl | Target::C, ScalarType::F32, true) => "NAN",
            (Target::OpenCl | Target::C, ScalarType::F32, false) => "INFINITY",
            (Target::OpenCl | Target::C, _, true) => "(double)NAN",
            (Target::OpenCl | Target::C, _, false) => "(double)INFINITY",
        };
        if sign.is_empty() { format!("({value})") } else { format!("({sign}{value})") }
    }

    /// What keeps a loop rolled: one that is tagged so, and a short one of varying length. NVVM
    /// (CUDA 13.0, before sm_100) unrolls the inner loop of `for i in 0..3 for j in i..3` around a
    /// call, and then leaves the outer one after its first iteration:
    /// `tests/compilers/nvvm_leaves_a_triangle.cu`; `tests/forms/nvrtc.rs` shows it.
    pub(crate) fn rolled_pragma(self) -> Option<&'static str> {
        match self.0 {
            Target::Cuda => Some("#pragma unroll 1"),
            Target::OpenCl | Target::C => None,
        }
    }

    /// OpenMP over the groups; nested axes follow each other and become one.
    pub(crate) fn groups_pragma(self, f: &For) -> String {
        let mut depth = 1;
        let mut body = &f.body;
        while let [Stmt::For(inner)] = body.as_slice() {
            if inner.kind != LoopKind::Groups {
                break;
            }
            depth += 1;
            body = &inner.body;
        }
        match depth {
            1 => "#pragma omp parallel for schedule(static)".into(),
            n => format!("#pragma omp parallel for schedule(static) collapse({n})"),
        }
    }
}
