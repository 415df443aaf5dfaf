//! Calls that run asynchronously after their code has run, until a statement completes them.
//!
//! What such a call reads and writes is done when the work-item that made it has run the
//! *completion* of its code. Until then nothing may read or write what it writes, and nothing may
//! write what it reads. Placement asks for a completion on every such dependence, code generation
//! puts it there, and the last check of the code asks for it once more.

use super::{Arg, Binding, Callee, Mismatch, Piece, TargetCode};
use crate::ids::{Id, VarId};
use crate::kernel::{AddressSpace, Kernel, WriteOp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What stands in the wait of [`Completion::Groups`] for the number of groups that may go on.
pub const GROUPS: &str = "{n}";

/// Statements of a target's language that complete calls whose code runs asynchronously.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Completion {
    /// After this statement, all calls that the work-item has made are done.
    All(String),
    /// The calls that a work-item makes form groups, which are done in order.
    Groups {
        /// Makes a group of the calls since the last one, perhaps of none.
        commit: String,
        /// After this statement, all groups but the last [`GROUPS`] are done.
        wait: String,
    },
}

impl Completion {
    /// The statement that makes a group, if there are groups.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::All(_) => None,
            Self::Groups { commit, .. } => Some(commit),
        }
    }

    /// The statement that waits, as it is declared.
    pub fn wait(&self) -> &str {
        let (Self::All(wait) | Self::Groups { wait, .. }) = self;
        wait
    }

    /// What is wrong with the statements, if anything.
    fn check(&self) -> Result<(), String> {
        if self.wait().trim().is_empty() || self.commit().is_some_and(|commit| commit.trim().is_empty()) {
            return Err("it completes by nothing; say by which statement".into());
        }
        match (self.commit(), self.wait().contains(GROUPS)) {
            (Some(_), true) | (None, false) => Ok(()),
            (Some(_), false) => Err(format!(
                "it commits groups and waits for no number of them; say `{GROUPS}` where the wait has it"
            )),
            (None, true) => Err(format!(
                "it waits for all groups but `{GROUPS}`, and nothing commits one; say `commit \"...\"`"
            )),
        }
    }
}

/// Checks code that completes later: the meaning stores, and reads nothing that it stores; the code
/// names what is written by its address, as its value is not there yet; one work-item makes a call.
///
/// # Errors
/// What is wrong.
pub(super) fn check_code(callee: &Callee, code: &TargetCode, completion: &Completion) -> Result<(), String> {
    let k = &callee.kernel;
    completion.check()?;
    if callee.is_collective() {
        return Err("it completes later, and several work-items make a call; let one make it".into());
    }
    if let Some(insn) = k.insns.values().find(|i| matches!(i.op, WriteOp::Update { .. })) {
        return Err(format!("it completes later, and `{}` updates, which reads; let it store", insn.name));
    }
    let written: BTreeSet<VarId> = k.insns.values().map(|i| i.lhs.var).collect();
    let mut reads = k.insns.values().flat_map(|i| i.reads().into_iter().map(move |a| (i, a.var)));
    if let Some((insn, var)) = reads.find(|(_, var)| written.contains(var)) {
        let (insn, var) = (&insn.name, &k.vars[var].name);
        return Err(format!("it completes later, and `{insn}` reads `{var}`, which it writes"));
    }
    for piece in &code.text {
        if let Piece::Element(access) = piece
            && written.contains(&access.var)
        {
            let name = &k.vars[access.var].name;
            return Err(format!(
                "it completes later, and the value of `{name}` is not there yet; take its address"
            ));
        }
    }
    Ok(())
}

/// Checks that what a call of code that completes later touches by address has one.
///
/// # Errors
/// The first argument in registers or in a table of constants.
pub(super) fn check_memory(kernel: &Kernel, callee: &Callee, binding: &Binding) -> Result<(), Mismatch> {
    if !callee.is_asynchronous() {
        return Ok(());
    }
    for var in touched_later(callee, binding) {
        let array = &kernel.vars[var];
        match array.space {
            AddressSpace::Global | AddressSpace::Local => {}
            AddressSpace::Private
            | AddressSpace::SubGroup
            | AddressSpace::Constant
            | AddressSpace::Literal => {
                let what = format!("the memory of `{}`, which the call touches after its code", array.name);
                return Err(Mismatch::new(what, array.space.name(), "local or global"));
            }
        }
    }
    Ok(())
}

/// The arrays of the caller that a call of code that completes later may touch until then: what it
/// writes, and what its code takes the address of. Everything else, such as an index through which
/// an element is found, is read when the code runs.
pub fn touched_later(callee: &Callee, binding: &Binding) -> BTreeSet<VarId> {
    let written = callee.kernel.insns.values().map(|i| i.lhs.var);
    let later = callee.code.iter().filter(|code| code.completes.is_some());
    let addressed = later.flat_map(|code| &code.text).filter_map(|piece| match piece {
        Piece::Address(access, _) => Some(access.var),
        Piece::Element(_) | Piece::Text(_) => None,
    });
    let windows = written.chain(addressed).filter_map(|var| match binding.args.get(var.index()) {
        Some(Arg::Window(window)) => Some(window.var),
        Some(Arg::Unused | Arg::Param(_) | Arg::Value(_)) | None => None,
    });
    windows.collect()
}
