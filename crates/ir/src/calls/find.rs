//! Where the calls of a kernel stand.

use super::{Arg, Binding, Mismatch, unify};
use crate::ids::{CalleeId, InameId, InsnId};
use crate::kernel::{Kernel, Node};
use crate::verify::KernelError;

/// A run of statements of one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPlace {
    /// The loop in whose body it stands; none for the kernel's.
    pub inside: Option<InameId>,
    /// Position of the first statement in the body.
    pub first: usize,
    /// Number of statements.
    pub len: usize,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub callee: CalleeId,
    /// Where it stands.
    pub place: CallPlace,
    /// Its arguments.
    pub binding: Binding,
}

/// Statements of a body that are one call, by their marks alone, or one other statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'k> {
    pub(crate) callee: Option<CalleeId>,
    pub(crate) first: usize,
    pub(crate) nodes: &'k [Node],
}

/// The statements of a body, calls together.
///
/// An instruction stands as many loops below its call as the callee's first one stands below the
/// callee's body: that tells on which level a call begins, and the length of that body tells how
/// many statements it has.
pub(crate) fn groups<'k>(kernel: &'k Kernel, nodes: &'k [Node]) -> Vec<Group<'k>> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < nodes.len() {
        let callee = root_of(kernel, &nodes[first]);
        let len = callee.map_or(1, |c| kernel.callees[c].kernel.body.len().max(1));
        let len = len.min(nodes.len() - first);
        found.push(Group { callee, first, nodes: &nodes[first..first + len] });
        first += len;
    }
    found
}

/// The callee of the call that begins with this statement.
fn root_of(kernel: &Kernel, node: &Node) -> Option<CalleeId> {
    let (insn, depth) = first_insn(node, 0)?;
    let callee = kernel.insns.get(insn)?.callee?;
    let body = &kernel.callees.get(callee)?.kernel.body;
    let (_, needed) = first_insn(body.first()?, 0)?;
    (depth == needed).then_some(callee)
}

/// The first instruction of a statement, and how many loops of the statement are around it.
fn first_insn(node: &Node, depth: usize) -> Option<(InsnId, usize)> {
    match node {
        Node::Insn(insn) => Some((*insn, depth)),
        Node::Loop(_, body) => body.iter().find_map(|n| first_insn(n, depth + 1)),
    }
}

impl Kernel {
    /// The calls in textual order, with their arguments.
    ///
    /// # Errors
    /// [`KernelError::Call`] if an instruction names a callee and stands in no call of it.
    pub fn calls(&self) -> Result<Vec<Call>, KernelError> {
        if self.insns.values().all(|i| i.callee.is_none()) {
            return Ok(Vec::new());
        }
        let expanded = (!self.rules.is_empty()).then(|| self.with_rules_expanded());
        let mut calls = Vec::new();
        find(expanded.as_ref().unwrap_or(self), None, &self.body, &mut calls)?;
        Ok(calls)
    }

    /// The arguments of a call for people: `a = alpha, x = u[4*i..]`.
    pub fn show_arguments(&self, call: &Call) -> String {
        let Some(callee) = self.callees.get(call.callee) else { return String::new() };
        let args = callee.kernel.vars.values().zip(&call.binding.args);
        let shown =
            args.filter_map(|(var, arg)| Some(format!("{} = {}", var.name, self.show_argument(arg)?)));
        shown.collect::<Vec<_>>().join(", ")
    }

    fn show_argument(&self, arg: &Arg) -> Option<String> {
        let window = match arg {
            Arg::Unused => return None,
            Arg::Param(value) => return Some(self.show_affine(value).to_string()),
            Arg::Value(value) => return Some(self.show_expr(value).to_string()),
            Arg::Window(window) => window,
        };
        let axes = window.axes.iter().map(|axis| {
            let offset = self.show_expr(&axis.offset);
            match axis.steps.iter().filter(|s| **s != 0).collect::<Vec<_>>().as_slice() {
                [] => offset.to_string(),
                [1] => format!("{offset}.."),
                steps => {
                    let steps: Vec<_> = steps.iter().map(|s| s.to_string()).collect();
                    format!("{offset}.. by {}", steps.join(" and "))
                }
            }
        });
        let axes: Vec<_> = axes.collect();
        let name = &self.vars[window.var].name;
        Some(if axes.is_empty() { name.clone() } else { format!("{name}[{}]", axes.join(", ")) })
    }
}

fn find(
    kernel: &Kernel,
    inside: Option<InameId>,
    nodes: &[Node],
    calls: &mut Vec<Call>,
) -> Result<(), KernelError> {
    for group in groups(kernel, nodes) {
        if let Some(callee) = group.callee {
            let binding = call_at(kernel, callee, group.nodes).map_err(|why| {
                let callee = kernel.callees[callee].name().to_owned();
                KernelError::Call { callee, why: Box::new(why) }
            })?;
            let place = CallPlace { inside, first: group.first, len: group.nodes.len() };
            calls.push(Call { callee, place, binding });
            continue;
        }
        match &group.nodes[0] {
            Node::Loop(iname, body) => find(kernel, Some(*iname), body, calls)?,
            Node::Insn(insn) => {
                let insn = &kernel.insns[*insn];
                if let Some(callee) = insn.callee {
                    let name = format!("`{}`", insn.name);
                    let why =
                        Mismatch::new(name, "fewer loops of the call around it", "as many as in the callee");
                    let callee = kernel.callees.get(callee).map_or_else(String::new, |c| c.name().to_owned());
                    return Err(KernelError::Call { callee, why: Box::new(why) });
                }
            }
        }
    }
    Ok(())
}

/// The arguments of the call that these statements are.
fn call_at(kernel: &Kernel, callee: CalleeId, nodes: &[Node]) -> Result<Binding, Mismatch> {
    let binding = unify(kernel, &kernel.callees[callee].kernel, nodes)?;
    for insn in &binding.insns {
        let insn = &kernel.insns[*insn];
        if insn.callee != Some(callee) {
            let found = insn.callee.and_then(|c| kernel.callees.get(c)).map_or("no callee", |c| c.name());
            let needed = format!("`{}`", kernel.callees[callee].name());
            return Err(Mismatch::new(format!("the callee of `{}`", insn.name), found, needed));
        }
    }
    super::layout::check(kernel, &kernel.callees[callee], &binding)?;
    Ok(binding)
}
