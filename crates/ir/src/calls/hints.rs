//! Calls whose code is a hint, such as a prefetch into a cache: it stores nothing of what the
//! meaning stores.
//!
//! The meaning of a prefetch reads elements and stores them where nothing reads, so that they are
//! proved in bounds like those of any access, and results do not depend on whether the code does
//! anything. With `W` what the meaning stores: `W` are temporaries, and no instruction reads any of
//! them.

use super::asynchronous::{stores_alone, written};
use super::{Arg, Binding, Callee, Mismatch, Piece, TargetCode};
use crate::ids::Id;
use crate::kernel::{Kernel, VarKind, WriteOp};

/// Checks code that is a hint: the meaning stores and reads nothing of that, and the code names
/// none of it.
///
/// # Errors
/// What is wrong.
pub(super) fn check_code(callee: &Callee, code: &TargetCode) -> Result<(), String> {
    let k = &callee.kernel;
    if code.completes.is_some() {
        return Err("it is a hint, which nothing has to complete; leave `hint` or `completes` out".into());
    }
    if callee.is_collective() {
        return Err("it is a hint, which a work-item gives alone; leave the loops over work-items out".into());
    }
    let written = stores_alone(callee, "it is a hint", "the code does not store")?;
    let named = code.text.iter().find_map(|piece| match piece {
        Piece::Element(access) | Piece::Address(access, _) => Some(access.var),
        Piece::Map(var) | Piece::Begin(var, _) => Some(*var),
        Piece::Text(_) => None,
    });
    match named.filter(|var| written.contains(var)) {
        Some(var) => Err(format!("it is a hint, which stores nothing, and names `{}`", k.vars[var].name)),
        None => Ok(()),
    }
}

/// Checks that nothing reads what the meaning of a call stores, if some code for it is a hint.
///
/// # Errors
/// The first variable that is read, or is no temporary.
pub(super) fn check_unread(kernel: &Kernel, callee: &Callee, binding: &Binding) -> Result<(), Mismatch> {
    if !callee.code.iter().any(|code| code.hint) {
        return Ok(());
    }
    for argument in written(callee) {
        let Some(Arg::Window(window)) = binding.args.get(argument.index()) else { continue };
        let var = &kernel.vars[window.var];
        let what = || format!("what reads `{}`, which the code does not store", var.name);
        if var.kind != VarKind::Temporary {
            return Err(Mismatch::new(what(), "whoever passes it", "nothing"));
        }
        let reads = |insn: &&crate::kernel::Insn| {
            matches!(insn.op, WriteOp::Update { .. }) && insn.lhs.var == window.var
                || insn.reads().iter().any(|access| access.var == window.var)
        };
        let in_rule = kernel
            .rules
            .values()
            .find(|rule| rule.body.any(&mut |e| e.as_load().is_some_and(|access| access.var == window.var)));
        if let Some(insn) = kernel.insns.values().find(reads) {
            return Err(Mismatch::new(what(), format!("`{}`", insn.name), "nothing"));
        }
        if let Some(rule) = in_rule {
            return Err(Mismatch::new(what(), format!("the rule `{}`", rule.name), "nothing"));
        }
    }
    Ok(())
}
