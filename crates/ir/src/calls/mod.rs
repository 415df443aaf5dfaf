//! Calls: parts of the loop tree that are instances of a kernel.
//!
//! A kernel holds *callees*: kernels of their own, with parameters and arguments. A *call* is a run
//! of neighbouring statements of the tree whose instructions name a callee and which are that
//! callee's body with its arguments put in: array windows (element `[i, j]` of the argument is an
//! element of an array of the caller whose indices are affine in `i` and `j`) and scalars. What a
//! call does stands in the tree, so that the interpreter, dependences, statistics and code
//! generation see the accesses of every instance exactly and need to know nothing of calls; the
//! arguments are never stored but solved for ([`unify`]), so that they follow every transformation
//! of the caller.
//!
//! ```text
//! callee axpy4
//!   arg a: f64 in
//!   arg x: f64[4] in
//!   arg y: f64[4] inout
//!
//!   for l in 0..4
//!     s: y[l] += a*x[l]
//!
//! for i in 0..n
//!   call axpy4                        # a = alpha, x = u[4*i..], y = v[4*i..]
//!     for l_1 in 0..4
//!       t: v[4*i + l_1] += alpha*u[4*i + l_1]
//! ```
//!
//! [`Kernel::verify`] checks that every instruction that names a callee belongs to a call of it: a
//! step that would change the inside of a call is refused. A callee with *code* is an intrinsic:
//! generated programs hold its code for their target where there is some, and its meaning where
//! there is none.

mod asynchronous;
mod boxes;
mod find;
mod hints;
mod layout;
mod solve;
mod state;
#[cfg(test)]
#[allow(clippy::panic)] // how a test fails
mod tests;
mod unify;
mod window;

pub use asynchronous::{Accumulator, Beginning, Completion, GROUPS, proxies, touched_later};
pub use boxes::{MapOfTensor, SWIZZLED_ROW};
pub(crate) use find::groups;
pub use find::{Call, CallPlace};
pub use layout::{read_together, written_together};
pub use state::Mismatch;
pub use unify::unify;

use crate::affine::{Affine, Atom};
use crate::expr::{Access, Expr};
use crate::ids::{Id, InameId, InsnId, VarId};
use crate::kernel::{AddressSpace, AxisTag, Direction, Kernel, Node, VarKind, WriteOp};
use crate::multiples::MOST;
use crate::types::ScalarType;
use crate::verify::KernelError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel that parts of a loop tree may be calls of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Callee {
    /// What it computes; its name is the callee's. Where its arguments live is the caller's choice.
    pub kernel: Kernel,
    /// What targets write instead, by the names of the targets.
    pub code: Vec<TargetCode>,
}

/// What one target writes instead of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TargetCode {
    /// Name of the target; code generation knows which there are.
    pub target: String,
    /// Names of what a device must offer.
    pub needs: BTreeSet<String>,
    /// The memory in which the code takes arguments to be.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<VarId, AddressSpace>,
    /// Bytes of which every address in the code is a multiple, but those of some elements alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aligned: Option<u64>,
    /// If the code accesses local memory by another way than ordinary statements (a *proxy*): the statement after
    /// which what those have done is done for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// If the call runs asynchronously after the code has run: what completes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completes: Option<Completion>,
    /// Whether the code stores nothing of what the meaning stores, as a prefetch into a cache, so that nothing may
    /// read that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hint: bool,
    /// Statements of the target's language, with places for arguments.
    pub text: Vec<Piece>,
}

impl TargetCode {
    /// Bytes of which the address of an argument is a multiple: where the code takes a number of elements
    /// alone, the largest power of two that divides their size.
    pub fn alignment(&self, run: Option<u64>, ty: ScalarType) -> Option<u64> {
        let own = |n: u64| 1 << (n * ty.bytes()).trailing_zeros().min(MOST.trailing_zeros());
        run.map(own).or(self.aligned)
    }
}

/// A piece of a target's code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// An element of an argument, to read or write, or the value of a scalar. Indices mention loops
    /// on work-items and parameters of the callee.
    Element(Access),
    /// The address of an element of an argument, whose window must lie in memory as the argument is
    /// declared; or only that element and those after it along the last axis, if their number is given.
    Address(Access, Option<u64>),
    /// The address of the map of a tensor: of the array in which the window of an argument lies, for copies of
    /// boxes with the shape of the argument.
    Map(VarId),
    /// The index at which the window of an argument begins, along one of its axes.
    Begin(VarId, usize),
}

/// How the arguments of a callee are found in its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// For each iname of the callee, the caller's, and the value of the callee's.
    pub inames: Vec<(InameId, Affine)>,
    /// For each variable of the callee, what it stands for.
    pub args: Vec<Arg>,
    /// For each instruction of the callee, the caller's.
    pub insns: Vec<InsnId>,
}

/// What a parameter or argument of a callee stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The callee does not mention it.
    Unused,
    /// A parameter's value.
    Param(Affine),
    /// A scalar's value.
    Value(Expr),
    /// Where the elements of an array (or of a scalar that is written) lie.
    Window(Window),
}

impl Arg {
    /// Variables that are read to find it: not the elements of a window.
    fn reads(&self) -> Vec<VarId> {
        let mut found = Vec::new();
        let mut collect = |e: &Expr| {
            e.for_each(&mut |e| {
                if let Expr::Load(access) = e {
                    found.push(access.var);
                }
            });
        };
        match self {
            Self::Unused => {}
            Self::Param(value) => collect(&Expr::from_affine(value)),
            Self::Value(value) => collect(value),
            Self::Window(window) => window.axes.iter().for_each(|axis| collect(&axis.offset)),
        }
        found
    }
}

/// A part of an array: element `f` of the window is element `offset + steps*f` of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The array of the caller.
    pub var: VarId,
    /// One entry an axis of the array.
    pub axes: Vec<WindowAxis>,
}

/// The index of an array as a function of that of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    /// The index of the window's element 0.
    pub offset: Expr,
    /// How far it moves with each axis of the window.
    pub steps: Vec<i64>,
}

impl Window {
    /// The element of the array that an element of the window is.
    pub fn element(&self, index: &[Expr]) -> Access {
        let axis = |a: &WindowAxis| {
            let mut sum = a.offset.clone();
            for (step, e) in a.steps.iter().zip(index).filter(|(step, _)| **step != 0) {
                let term = if *step == 1 { e.clone() } else { Expr::Int(*step) * e.clone() };
                sum = if sum == Expr::Int(0) { term } else { sum + term };
            }
            sum.as_affine().map_or(sum, |value| Expr::from_affine(&value))
        };
        Access::new(self.var, self.axes.iter().map(axis).collect::<Vec<_>>())
    }
}

impl Binding {
    /// The value in the caller of an index expression of the callee; `None` if it mentions what has
    /// none.
    pub fn value(&self, e: &Affine) -> Option<Affine> {
        let missing = e.any_symbol(&mut |atom| self.symbol(atom).is_none());
        (!missing).then(|| e.substitute(&|atom| self.symbol(atom)))
    }

    fn symbol(&self, atom: &Atom) -> Option<Affine> {
        match atom {
            Atom::Iname(i) => self.inames.get(i.index()).map(|(_, value)| value.clone()),
            Atom::Var(v) => match self.args.get(v.index())? {
                Arg::Param(value) => Some(value.clone()),
                Arg::Unused | Arg::Value(_) | Arg::Window(_) => None,
            },
            Atom::Floor(..) => None,
        }
    }

    /// What an element of an argument is in the caller: an element, or a value.
    pub fn element(&self, access: &Access) -> Option<Expr> {
        match self.args.get(access.var.index())? {
            Arg::Unused => None,
            Arg::Param(value) => Some(Expr::from_affine(value)),
            Arg::Value(e) => Some(e.clone()),
            Arg::Window(window) => {
                let index =
                    access.index.iter().map(|e| Some(Expr::from_affine(&self.value(&e.as_affine()?)?)));
                Some(Expr::Load(window.element(&index.collect::<Option<Vec<_>>>()?)))
            }
        }
    }
}

impl Callee {
    /// A callee without code; the names of targets play no part in what it means.
    pub fn new(kernel: Kernel) -> Self {
        Self { kernel, code: Vec::new() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.kernel.name
    }

    /// What the target of this name writes instead of a call.
    pub fn code_for(&self, target: &str) -> Option<&TargetCode> {
        self.code.iter().find(|c| c.target == target)
    }

    /// Whether work-items work together on one call: its meaning has a loop over them.
    pub fn is_collective(&self) -> bool {
        self.axes_together() > 0
    }

    /// Axes of work-items, from `l.0` on, along which all of them make a call together.
    pub fn axes_together(&self) -> u8 {
        let axes = self.kernel.inames.values().filter_map(|i| match i.tag {
            AxisTag::Local(axis) => Some(axis + 1),
            AxisTag::Group(_)
            | AxisTag::Vector
            | AxisTag::Unrolled
            | AxisTag::Rolled
            | AxisTag::Launch
            | AxisTag::Sequential => None,
        });
        axes.max().unwrap_or(0)
    }

    /// Whether some target has code for it that runs asynchronously after it has run.
    pub fn is_asynchronous(&self) -> bool {
        self.code.iter().any(|c| c.completes.is_some())
    }

    /// Checks that the kernel may be a callee, and that its code mentions what it may.
    ///
    /// # Errors
    /// [`KernelError::Callee`] with what is wrong.
    pub(crate) fn verify(&self) -> Result<(), KernelError> {
        self.kernel.verify()?;
        let k = &self.kernel;
        let refuse = |why: String| Err(KernelError::Callee { callee: k.name.clone(), why });
        let outside = k.vars.values().find(|v| !matches!(v.kind, VarKind::Param | VarKind::Argument(_)));
        if let Some(var) = outside {
            return refuse(format!("`{}` is no argument; pass it as one", var.name));
        }
        if !k.rules.is_empty() || !k.assumptions.is_empty() || !k.callees.is_empty() {
            return refuse("it has rules, assumptions or callees of its own; expand them".into());
        }
        if k.has_launches() {
            return refuse("it has launches, and a call is part of one; remove that tag".into());
        }
        if k.insns.is_empty() || has_empty_loop(&k.body) {
            return refuse("it has a loop without instructions; remove that".into());
        }
        let global = |v: &&crate::kernel::Variable| {
            v.layout.vector_axis.is_some()
                || v.storage.is_some()
                || !matches!(v.space, AddressSpace::Global | AddressSpace::Private)
        };
        if let Some(var) = k.vars.values().find(global) {
            return refuse(format!("where `{}` lives is the caller's choice; declare no memory", var.name));
        }
        for code in &self.code {
            if let Err(why) = self.check_code(code) {
                return refuse(format!("the code for {}: {why}", code.target));
            }
        }
        Ok(())
    }

    fn check_code(&self, code: &TargetCode) -> Result<(), String> {
        let k = &self.kernel;
        if k.insns.values().any(|i| matches!(i.op, WriteOp::Update { atomic: true, .. })) {
            return Err("the meaning has an atomic update, which no code can stand for".into());
        }
        if let Some(iname) = k.inames.values().find(|i| matches!(i.tag, AxisTag::Group(_))) {
            return Err(format!("`{}` runs on work-groups, which no code can stand for", iname.name));
        }
        let value = |v: &crate::kernel::Variable| {
            v.shape.is_empty() && matches!(v.kind, VarKind::Argument(Direction::In))
        };
        if let Some(v) = k.vars.values().find(|v| value(v)).filter(|_| self.is_collective()) {
            return Err(format!("`{}` may differ among the work-items; make it an array", v.name));
        }
        if let Some(bytes) = code.aligned.filter(|n| !n.is_power_of_two() || *n > MOST) {
            return Err(format!(
                "it takes addresses at multiples of {bytes} bytes, needed a power of two up to {MOST}"
            ));
        }
        if code.proxy.as_ref().is_some_and(|fence| fence.trim().is_empty()) {
            return Err(
                "it accesses memory by a proxy; say by which statement ordinary accesses are done".into()
            );
        }
        if let Some(completion) = &code.completes {
            asynchronous::check_code(self, code, completion)?;
        }
        if code.hint {
            hints::check_code(self, code)?;
        }
        for piece in &code.text {
            let (access, address, run) = match piece {
                Piece::Text(_) => continue,
                Piece::Element(access) => (access, false, None),
                Piece::Address(access, run) => (access, true, *run),
                Piece::Map(var) => {
                    boxes::check_argument(self, *var)?;
                    continue;
                }
                Piece::Begin(var, axis) => {
                    boxes::check_axis(self, *var, *axis)?;
                    continue;
                }
            };
            let name = &k.vars[access.var].name;
            if let Err(error) = k.type_of_access(access, &[]) {
                return Err(error.to_string());
            }
            if address && (k.vars[access.var].kind == VarKind::Param || value(&k.vars[access.var])) {
                return Err(format!("`{name}` is a value and has no address"));
            }
            let row = || k.vars[access.var].shape.last().and_then(Affine::as_constant);
            if let Some(n) = run.filter(|n| *n == 0 || row().is_none_or(|row| row.cast_unsigned() < *n)) {
                return Err(format!("rows of `{name}` are not known to have {n} elements"));
            }
            for e in &access.index {
                let Some(index) = e.as_affine() else {
                    return Err(format!("the index `{}` of `{name}` is not affine", k.show_expr(e)));
                };
                let mut bad = None;
                index.for_each_symbol(&mut |atom| match atom {
                    Atom::Iname(i) if !matches!(k.inames[*i].tag, AxisTag::Local(_)) => {
                        bad = Some(k.inames[*i].name.clone());
                    }
                    Atom::Var(v) if k.vars[*v].kind != VarKind::Param => bad = Some(k.vars[*v].name.clone()),
                    Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => {}
                });
                if let Some(bad) = bad {
                    return Err(format!(
                        "the index of `{name}` mentions `{bad}`, needed parameters and loops over work-items"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn has_empty_loop(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Insn(_) => false,
        Node::Loop(_, body) => body.is_empty() || has_empty_loop(body),
    })
}

/// Checks callees, and that every instruction that names one belongs to a call of it.
///
/// # Errors
/// [`KernelError::Callee`], [`KernelError::Call`].
pub(crate) fn verify_calls(kernel: &Kernel) -> Result<(), KernelError> {
    for callee in kernel.callees.values() {
        callee.verify()?;
        if callee.kernel.has_records() {
            let why = "holds records; give it a number for each field".into();
            return Err(KernelError::Callee { callee: callee.name().to_owned(), why });
        }
    }
    kernel.calls().map(drop)
}
