//! What a target says where it takes more than a word.

use crate::ast::{Fence, For, LoopKind, Stmt};
use crate::function::Param;
use crate::target::TargetDescription;
use kingpost_analysis::placement::Scope;
use kingpost_ir::calls::GROUPS;
use kingpost_ir::{MathFn, ScalarType};
use std::borrow::Cow;

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

impl TargetDescription {
    pub(crate) fn ty(&self, ty: ScalarType) -> &'static str {
        (self.words.ty)(ty)
    }

    /// A vector of elements, where the target has such a type.
    pub(crate) fn vector(&self, ty: ScalarType, width: u8) -> String {
        (self.words.vector)(ty, width)
    }

    pub(crate) fn integer_suffix(&self, ty: ScalarType) -> &'static str {
        let [long, unsigned] = self.words.long_suffix;
        match ty {
            ScalarType::I64 => long,
            ScalarType::U64 => unsigned,
            ScalarType::U32 => "U",
            ScalarType::Bool
            | ScalarType::I8
            | ScalarType::U8
            | ScalarType::I16
            | ScalarType::U16
            | ScalarType::I32
            | ScalarType::F16
            | ScalarType::Bf16
            | ScalarType::F32
            | ScalarType::F64
            | ScalarType::C64
            | ScalarType::C128
            | ScalarType::Record(_) => "",
        }
    }

    pub(crate) fn param(&self, p: &Param) -> String {
        let (ty, name) = (self.ty(p.ty), &p.name);
        let Some(read_only) = p.buffer else { return format!("const {ty} {name}") };
        let qualifier = if read_only { "const " } else { "" };
        // a host has one thread a group
        let promised = !(p.is_shared && !self.is_host() || p.is_reread && self.words.reads_once);
        let restrict = if promised { self.words.restrict } else { "" };
        format!("{}{qualifier}{ty} *{restrict}{name}", self.words.global)
    }

    /// The groups of calls that end before a barrier, the completions that it waits for, and the barrier
    /// itself.
    pub(crate) fn barrier<'f>(&self, fence: &'f Fence) -> impl Iterator<Item = Cow<'f, str>> {
        let barrier = (fence.scope > Scope::WorkItem).then(|| Cow::from((self.words.barrier)(fence)));
        let commits = fence.commits.iter().map(|statement| Cow::from(&**statement));
        let waits = fence.completions.iter().map(|(wait, n)| Cow::from(wait.replace(GROUPS, &n.to_string())));
        let proxies = fence.proxies.iter().map(|statement| Cow::from(&**statement));
        commits.chain(waits).chain(proxies).chain(barrier)
    }

    /// A function of the mathematics library.
    pub(crate) fn function(&self, f: MathFn, ty: ScalarType) -> String {
        let suffix = if ty == ScalarType::F32 { self.words.single_suffix } else { "" };
        format!("{}{suffix}", f.symbol())
    }

    /// Infinity or not-a-number.
    pub(crate) fn special(&self, v: f64, ty: ScalarType) -> String {
        let sign = if v.is_sign_negative() && !v.is_nan() { "-" } else { "" };
        let [single, double] = if v.is_nan() { self.words.nan } else { self.words.infinity };
        format!("({sign}{})", if ty == ScalarType::F32 { single } else { double })
    }
}

/// OpenMP over the groups, on threads that run already or are to be started; nested axes follow each other
/// and become one.
pub(crate) fn groups_pragma(f: &For, in_region: bool) -> String {
    let mut depth = 1;
    let mut body = &f.body;
    while let [Stmt::For(inner)] = body.as_slice() {
        if inner.kind != LoopKind::Groups {
            break;
        }
        depth += 1;
        body = &inner.body;
    }
    let start = if in_region { "" } else { "parallel " };
    match depth {
        1 => format!("#pragma omp {start}for schedule(static)"),
        n => format!("#pragma omp {start}for schedule(static) collapse({n})"),
    }
}
