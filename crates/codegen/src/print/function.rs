//! Heads of functions, and what the host calls in C.

use super::comment::comment;
use super::printer::Printer;
use crate::ast::names_in;
use crate::function::{Function, Param, TensorParam};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What is said after a parameter.
fn remark(param: &Param) -> Option<String> {
    let remark = param.remark.as_ref()?;
    Some(match param.aligned {
        Some(bytes) => format!("{remark}, at a multiple of {bytes} bytes"),
        None => remark.clone(),
    })
}

impl Printer {
    pub(super) fn signature(&mut self, function: &Function) {
        let mut params: Vec<(String, Option<String>)> =
            function.params.iter().map(|p| (self.dialect.param(p), remark(p))).collect();
        params.extend(function.maps.iter().map(|TensorParam { name, map }| {
            let sides: Vec<String> = map.sides.iter().map(u64::to_string).collect();
            let swizzled = if map.is_swizzled { ", swizzled" } else { "" };
            let remark = format!("boxes of {}{swizzled}", sides.join(" x "));
            (format!("{} {name}", self.dialect.words.map[0]), Some(remark))
        }));
        params.extend(function.grid.iter().map(|(_, name)| (format!("const int64_t {name}"), None)));
        if self.in_region {
            self.out.push_str("__attribute__((noinline)) ");
        }
        self.out.push_str(&(self.dialect.words.head)(function));
        if params.is_empty() {
            self.out.push_str("(void)\n{\n");
            return;
        }
        self.out.push('(');
        let last = params.len() - 1;
        for (k, (text, remark)) in params.iter().enumerate() {
            let comma = if k == last { ")" } else { "," };
            let _ = write!(self.out, "\n    {text}{comma}");
            if let Some(remark) = remark {
                let _ = write!(self.out, " {}", comment(remark));
            }
        }
        self.out.push_str("\n{\n");
    }

    /// What compilers of C are told of parameters that a function does not use.
    pub(super) fn unused(&mut self, function: &Function) {
        if self.dialect.is_host() {
            let mut used = BTreeSet::new();
            names_in(&function.body, &mut used);
            for p in function.params.iter().filter(|p| !used.contains(&p.name)) {
                let _ = writeln!(self.out, "    (void){};", p.name);
            }
        }
    }

    /// `void entry_launch(void *const *args, const int64_t *grid)`: each argument points to a
    /// value, or to the pointer of a buffer.
    pub(super) fn launcher(&mut self, function: &Function) {
        let head = format!(
            "void {}(void *const *args, const int64_t *grid)",
            crate::names::launcher(&function.name)
        );
        let _ = write!(self.out, "\n{head};\n\n{head}\n{{\n");
        if function.params.is_empty() {
            self.out.push_str("    (void)args;\n");
        }
        if function.grid.is_empty() {
            self.out.push_str("    (void)grid;\n");
        }
        let mut args: Vec<String> = function
            .params
            .iter()
            .enumerate()
            .map(|(k, p)| {
                let ty = self.dialect.ty(p.ty);
                match p.buffer {
                    None => format!("*(const {ty} *)args[{k}]"),
                    Some(true) => format!("*({ty} const *const *)args[{k}]"),
                    Some(false) => format!("*({ty} *const *)args[{k}]"),
                }
            })
            .collect();
        args.extend(function.grid.iter().map(|(axis, _)| format!("grid[{axis}]")));
        let _ = write!(self.out, "    {}(", function.name);
        for (k, arg) in args.iter().enumerate() {
            let comma = if k + 1 == args.len() { "" } else { "," };
            let _ = write!(self.out, "\n        {arg}{comma}");
        }
        self.out.push_str(");\n}\n");
    }
}
