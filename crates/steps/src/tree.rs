//! Edits of the loop tree.

use crate::expected::Expected;
use crate::refusal::Refusal;
use kingpost_ir::{Expr, InameId, Insn, InsnId, Kernel, Node};

/// Replaces the loop over `iname`, wherever it is, by what `edit` makes of its body.
pub fn replace_loop(
    nodes: &mut Vec<Node>,
    iname: InameId,
    edit: &mut dyn FnMut(Vec<Node>) -> Vec<Node>,
) -> bool {
    for k in 0..nodes.len() {
        let Node::Loop(found, body) = &mut nodes[k] else { continue };
        if *found == iname {
            let body = std::mem::take(body);
            nodes.splice(k..=k, edit(body));
            return true;
        }
        if replace_loop(body, iname, edit) {
            return true;
        }
    }
    false
}

/// The body of the loop over `iname`, if the tree has one (reduction loops are not in the tree).
pub fn loop_body(nodes: &[Node], iname: InameId) -> Option<&[Node]> {
    nodes.iter().find_map(|node| match node {
        Node::Loop(found, body) if *found == iname => Some(body.as_slice()),
        Node::Loop(_, body) => loop_body(body, iname),
        Node::Insn(_) => None,
    })
}

/// The body of a loop that the tree has, or the kernel's.
///
/// # Errors
/// [`Refusal::Internal`] if the tree has no such loop.
pub fn body_of(kernel: &Kernel, at: impl Into<Option<InameId>>) -> Result<&[Node], Refusal> {
    match at.into() {
        None => Ok(&kernel.body),
        Some(at) => {
            let what = format!("loop over `{}` in the tree", kernel.inames[at].name);
            loop_body(&kernel.body, at).expected(&what, kernel)
        }
    }
}

/// The loops around an instruction of the tree, outer first.
///
/// # Errors
/// [`Refusal::Internal`] if the tree has no such instruction.
pub fn loops_of(kernel: &Kernel, insn: InsnId) -> Result<Vec<InameId>, Refusal> {
    let found = kernel.schedule().into_iter().find(|(id, _)| *id == insn).map(|(_, loops)| loops);
    found.expected("instruction in the tree that the kernel has", kernel)
}

/// The loops around what stands in a loop of the tree, or in the kernel: outer first, that loop
/// itself last.
///
/// # Errors
/// [`Refusal::Internal`] if nothing stands in it.
pub fn loops_down_to(kernel: &Kernel, at: impl Into<Option<InameId>>) -> Result<Vec<InameId>, Refusal> {
    let Some(iname) = at.into() else { return Ok(Vec::new()) };
    let path = kernel.schedule().into_iter().find_map(|(_, loops)| {
        let depth = loops.iter().position(|l| *l == iname)?;
        Some(loops[..=depth].to_vec())
    });
    path.expected("instruction in the loop", kernel)
}

/// Edits the body of a loop, or the kernel's.
pub fn edit_body(kernel: &mut Kernel, at: Option<InameId>, edit: &mut dyn FnMut(&mut Vec<Node>)) {
    match at {
        None => edit(&mut kernel.body),
        Some(at) => {
            replace_loop(&mut kernel.body, at, &mut |mut body| {
                edit(&mut body);
                vec![Node::Loop(at, body)]
            });
        }
    }
}

/// Calls `edit` with the siblings among which a node that `wanted` accepts stands, first in textual
/// order.
pub fn edit_siblings(
    nodes: &mut Vec<Node>,
    wanted: &dyn Fn(&Node) -> bool,
    edit: &mut dyn FnMut(&mut Vec<Node>),
) -> bool {
    if nodes.iter().any(wanted) {
        edit(nodes);
        return true;
    }
    nodes.iter_mut().any(|node| match node {
        Node::Loop(_, body) => edit_siblings(body, wanted, edit),
        Node::Insn(_) => false,
    })
}

/// The siblings among which a node that `wanted` accepts stands, first in textual order.
pub fn siblings<'a>(nodes: &'a [Node], wanted: &dyn Fn(&Node) -> bool) -> Option<&'a [Node]> {
    if nodes.iter().any(wanted) {
        return Some(nodes);
    }
    nodes.iter().find_map(|node| match node {
        Node::Loop(_, body) => siblings(body, wanted),
        Node::Insn(_) => None,
    })
}

/// The loop directly around a node that `wanted` accepts, first in textual order; `None` if none
/// is.
pub fn loop_around(nodes: &[Node], wanted: &dyn Fn(&Node) -> bool) -> Option<InameId> {
    nodes.iter().find_map(|node| match node {
        Node::Loop(iname, body) if body.iter().any(wanted) => Some(*iname),
        Node::Loop(_, body) => loop_around(body, wanted),
        Node::Insn(_) => None,
    })
}

/// The instructions in some nodes, in textual order.
pub fn insns_of(nodes: &[Node]) -> Vec<InsnId> {
    let inside = nodes.iter().map(|node| match node {
        Node::Insn(insn) => vec![*insn],
        Node::Loop(_, body) => insns_of(body),
    });
    inside.flatten().collect()
}

/// The loops in some nodes and the reductions of their instructions, outer before inner.
pub fn inames_of(kernel: &Kernel, nodes: &[Node]) -> Vec<InameId> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Loop(iname, body) => {
                found.push(*iname);
                found.extend(inames_of(kernel, body));
            }
            Node::Insn(insn) => found.extend(reductions_of(&kernel.insns[*insn])),
        }
    }
    found
}

/// The inames of the reductions of an instruction.
fn reductions_of(insn: &Insn) -> Vec<InameId> {
    let mut found = Vec::new();
    for e in insn.expressions() {
        e.for_each(&mut |e| {
            if let Expr::Reduce(r) = e {
                found.extend(&r.inames);
            }
        });
    }
    found
}

/// Removes an instruction and the loops that hold nothing without it.
pub fn prune_insn(nodes: &mut Vec<Node>, insn: InsnId) {
    nodes.retain_mut(|node| match node {
        Node::Insn(found) => *found != insn,
        Node::Loop(_, body) => {
            let empty = body.is_empty();
            prune_insn(body, insn);
            empty || !body.is_empty()
        }
    });
}
