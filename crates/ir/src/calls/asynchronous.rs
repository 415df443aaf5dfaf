//! Calls that run asynchronously after their code has run, until a statement completes them.
//!
//! What such a call reads and writes is done when the work-item that made it has run the
//! *completion* of its code. Until then nothing may read or write what it writes, and nothing may
//! write what it reads. Placement asks for a completion on every such dependence, code generation
//! puts it there, and the last check of the code asks for it once more.

use super::{Arg, Binding, Callee, Mismatch, Piece, TargetCode, Window};
use crate::expr::Expr;
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
        /// What stands at the beginning of a kernel, if something has to: then the first work-item of a group
        /// alone may make such calls, every work-item makes groups and waits, and who has waited needs no barrier
        /// to see what the calls have done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        begin: Option<Beginning>,
        /// Makes a group of the calls since the last one, perhaps of none.
        commit: String,
        /// After this statement, all groups but the last [`GROUPS`] are done.
        wait: String,
    },
}

/// Statements at the beginning of a kernel, such as for barriers in local memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Beginning {
    /// Bytes of local memory that they declare.
    pub local_bytes: u64,
    /// The statements.
    pub text: String,
}

impl Completion {
    /// What stands at the beginning of the kernel.
    pub fn begin(&self) -> Option<&Beginning> {
        match self {
            Self::All(_) => None,
            Self::Groups { begin, .. } => begin.as_ref(),
        }
    }

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
        let is_empty = |text: &str| text.trim().is_empty();
        let begin = self.begin().map(|begin| begin.text.as_str());
        if is_empty(self.wait()) || self.commit().is_some_and(is_empty) || begin.is_some_and(is_empty) {
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
/// names what is written by its address, as its value is not there yet; one work-item makes a call. Where several
/// make one together, it updates elements that they hold in registers, *accumulators*, and stores nothing.
///
/// # Errors
/// What is wrong.
pub(super) fn check_code(callee: &Callee, code: &TargetCode, completion: &Completion) -> Result<(), String> {
    completion.check()?;
    if callee.is_collective() { check_together(callee, code, completion) } else { check_alone(callee, code) }
}

/// What the meaning of a call stores, none of which it reads. Messages begin with what the code `is`, and
/// end with why a variable may not be read: `what`.
///
/// # Errors
/// The instruction that reads.
pub(super) fn stores_alone(callee: &Callee, is: &str, what: &str) -> Result<BTreeSet<VarId>, String> {
    let k = &callee.kernel;
    if let Some(insn) = k.insns.values().find(|i| matches!(i.op, WriteOp::Update { .. })) {
        return Err(format!("{is}, and `{}` updates, which reads; let it store", insn.name));
    }
    let written = written(callee);
    let mut reads = k.insns.values().flat_map(|i| i.reads().into_iter().map(move |a| (i, a.var)));
    if let Some((insn, var)) = reads.find(|(_, var)| written.contains(var)) {
        let (insn, var) = (&insn.name, &k.vars[var].name);
        return Err(format!("{is}, and `{insn}` reads `{var}`, which {what}"));
    }
    Ok(written)
}

fn check_alone(callee: &Callee, code: &TargetCode) -> Result<(), String> {
    let k = &callee.kernel;
    let written = stores_alone(callee, "it completes later", "it writes")?;
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

fn check_together(callee: &Callee, code: &TargetCode, completion: &Completion) -> Result<(), String> {
    let k = &callee.kernel;
    if completion.begin().is_some() {
        return Err(
            "several work-items make a call, and what it begins with is for the first one alone".into()
        );
    }
    if let Some(insn) = k.insns.values().find(|i| i.op == WriteOp::Assign) {
        return Err(format!(
            "it completes later, several work-items make a call, and `{}` stores; let it update accumulators, or let \
             one work-item make it",
            insn.name
        ));
    }
    let written = written(callee);
    let mut reads = k.insns.values().flat_map(|i| i.reads().into_iter().map(move |a| (i, a)));
    if let Some((insn, read)) = reads.find(|(i, a)| written.contains(&a.var) && **a != i.lhs) {
        let (insn, read) = (&insn.name, k.show_access(read));
        return Err(format!("it completes later, and `{insn}` reads `{read}`, which others update"));
    }
    let addressed = code.text.iter().find_map(|piece| match piece {
        Piece::Address(access, _) if written.contains(&access.var) => Some(access.var),
        Piece::Address(..) | Piece::Map(_) | Piece::Begin(..) | Piece::Element(_) | Piece::Text(_) => None,
    });
    match addressed {
        Some(var) => Err(format!(
            "several work-items hold `{}` in registers, which have no address; name its elements",
            k.vars[var].name
        )),
        None => Ok(()),
    }
}

/// What the meaning of a call stores or updates.
pub(super) fn written(callee: &Callee) -> BTreeSet<VarId> {
    callee.kernel.insns.values().map(|i| i.lhs.var).collect()
}

/// Checks that what a call of code that completes later touches by address has one.
///
/// # Errors
/// The first argument in registers or in a table of constants.
pub(super) fn check_memory(kernel: &Kernel, callee: &Callee, binding: &Binding) -> Result<(), Mismatch> {
    if !callee.is_asynchronous() {
        return Ok(());
    }
    let accumulators: BTreeSet<VarId> = Accumulator::of(callee, binding).map(|a| a.window.var).collect();
    for var in touched_later(callee, binding) {
        let array = &kernel.vars[var];
        let what = || format!("the memory of `{}`, which the call touches after its code", array.name);
        match array.space {
            AddressSpace::Private if accumulators.contains(&var) => {}
            _ if accumulators.contains(&var) => {
                return Err(Mismatch::new(what(), array.space.name(), "private"));
            }
            AddressSpace::Global | AddressSpace::Local => {}
            AddressSpace::Private
            | AddressSpace::SubGroup
            | AddressSpace::Constant
            | AddressSpace::Literal => {
                return Err(Mismatch::new(what(), array.space.name(), "local or global"));
            }
        }
    }
    Ok(())
}

/// The arrays of the caller that a call of code that completes later may touch until then: what it
/// writes, and what its code takes the address of. Everything else, such as an index through which
/// an element is found, is read when the code runs. Of a call of several work-items, it is all that the code
/// names.
pub fn touched_later(callee: &Callee, binding: &Binding) -> BTreeSet<VarId> {
    let written = callee.kernel.insns.values().map(|i| i.lhs.var);
    let later = callee.code.iter().filter(|code| code.completes.is_some());
    let named = later.flat_map(|code| &code.text).filter_map(|piece| match piece {
        Piece::Address(access, _) => Some(access.var),
        Piece::Map(var) => Some(*var),
        Piece::Element(access) => callee.is_collective().then_some(access.var),
        Piece::Begin(..) | Piece::Text(_) => None,
    });
    let windows = written.chain(named).filter_map(|var| match binding.args.get(var.index()) {
        Some(Arg::Window(window)) => Some(window.var),
        Some(Arg::Unused | Arg::Param(_) | Arg::Value(_)) | None => None,
    });
    windows.collect()
}

/// The arrays that code of a call accesses by address through a proxy, each with the statement after which what
/// ordinary statements have done is done for that.
pub fn proxies(callee: &Callee, binding: &Binding) -> BTreeSet<(VarId, String)> {
    let mut found = BTreeSet::new();
    for code in &callee.code {
        let Some(fence) = &code.proxy else { continue };
        for piece in &code.text {
            if let Piece::Address(access, _) = piece
                && let Some(Arg::Window(window)) = binding.args.get(access.var.index())
            {
                found.insert((window.var, fence.clone()));
            }
        }
    }
    found
}

/// What a call of several work-items that completes later updates in their registers.
///
/// Calls of one callee on the same accumulators are done in order, so that nothing has to complete between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accumulator<'b> {
    /// The argument of the callee.
    pub argument: VarId,
    /// Where it lies.
    pub window: &'b Window,
}

impl<'b> Accumulator<'b> {
    /// The accumulators of a call.
    pub fn of(callee: &Callee, binding: &'b Binding) -> impl Iterator<Item = Self> {
        let together = callee.is_asynchronous() && callee.is_collective();
        let written = if together { written(callee) } else { BTreeSet::new() };
        written.into_iter().filter_map(|argument| match binding.args.get(argument.index())? {
            Arg::Window(window) => Some(Self { argument, window }),
            Arg::Unused | Arg::Param(_) | Arg::Value(_) => None,
        })
    }

    /// Whether another one of the same callee is the same, or has no element in common, whatever the loops around
    /// are: along an axis of the array, either both windows are one element wide, or both begin at the same
    /// constant and go the same steps.
    pub fn is_same_or_apart(&self, other: &Self) -> bool {
        let mut axes = self.window.axes.iter().zip(&other.window.axes);
        self.argument == other.argument
            && self.window.var == other.window.var
            && axes.all(|(a, b)| {
                let is_one = |steps: &[i64]| steps.iter().all(|step| *step == 0);
                let constant = |e: &Expr| e.as_affine().and_then(|e| e.as_constant());
                let (first, second) = (constant(&a.offset), constant(&b.offset));
                is_one(&a.steps) && is_one(&b.steps)
                    || a.steps == b.steps && first.is_some() && first == second
            })
    }
}
