//! Runs of neighbouring statements that a user names.

use crate::expected::Expected;
use crate::lookup;
use crate::obligation::Obligation;
use crate::refusal::Refusal;
use crate::tree::{insns_of, siblings};
use kingpost_ir::{Id, Insn, Kernel, Node};

/// Neighbouring statements of one body.
#[derive(Clone, Copy, Debug)]
pub struct Run<'k> {
    /// The statements, in textual order.
    pub nodes: &'k [Node],
}

/// The statements can be taken out as they stand.
pub const CONTIGUOUS: Obligation =
    Obligation::new("contiguous", "the statements stand in one body, with nothing between them");

/// A call is one thing.
pub const NOT_CALLED: Obligation = Obligation::new("not_called", "no statement belongs to a call");

/// The statements (instructions, or loops with all they hold) of these names, in any order.
///
/// # Errors
/// No name, an unknown one, statements of different bodies or with others between them, a statement
/// that belongs to a call.
pub fn named<'k>(kernel: &'k Kernel, names: &[String]) -> Result<Run<'k>, Refusal> {
    let Some(first) = names.first() else {
        return Err(Refusal::argument("statements", "no statement is named", "instructions or loops"));
    };
    let wanted = names.iter().map(|name| statement(kernel, name)).collect::<Result<Vec<_>, _>>()?;
    let body = siblings(&kernel.body, &|node| same(node, &wanted[0]));
    let body = body.expected("statement of that name in the tree", kernel)?;
    let mut positions = Vec::with_capacity(wanted.len());
    for (name, statement) in names.iter().zip(&wanted) {
        let k = CONTIGUOUS.find(body.iter().position(|node| same(node, statement)), || {
            format!(
                "`{name}` does not stand in the body in which `{first}` stands; name the loops around them"
            )
        })?;
        positions.push(k);
    }
    positions.sort_unstable();
    positions.dedup();
    let (Some(from), Some(to)) = (positions.first().copied(), positions.last().copied()) else {
        return Err(Refusal::argument("statements", "no statement is named", "instructions or loops"));
    };
    let nodes = &body[from..=to];
    CONTIGUOUS.forbid((0..nodes.len()).find(|k| !positions.contains(&(from + k))), |k| {
        format!(
            "{} stands between the statements; name it, too, or move it",
            lookup::names_in(kernel, &nodes[k..=k])
        )
    })?;
    insns_of(nodes).into_iter().try_for_each(|insn| check_not_called(kernel, &kernel.insns[insn]))?;
    Ok(Run { nodes })
}

/// Checks that an instruction belongs to no call.
///
/// # Errors
/// [`NOT_CALLED`] with the callee.
pub fn check_not_called(kernel: &Kernel, insn: &Insn) -> Result<(), Refusal> {
    NOT_CALLED.forbid(insn.callee, |callee| {
        let callee = kernel.callees[callee].name();
        format!("`{}` belongs to a call of `{callee}`; inline the call first", insn.name)
    })
}

impl Run<'_> {
    /// Makes the statements a call of the callee, which comes last in the kernel's table if it is
    /// new.
    pub fn mark(&self, kernel: &mut Kernel, callee: kingpost_ir::CalleeId) {
        assert!(callee.index() < kernel.callees.len());
        for insn in insns_of(self.nodes) {
            kernel.insns[insn].callee = Some(callee);
        }
    }
}

/// The statement of this name, without its body.
pub fn statement(kernel: &Kernel, name: &str) -> Result<Node, Refusal> {
    if let Some(insn) = kernel.insn(name) {
        return Ok(Node::Insn(insn));
    }
    if kernel.iname(name).is_some() {
        return Ok(Node::Loop(lookup::tree_loop(kernel, name)?, Vec::new()));
    }
    let known = lookup::names_in(kernel, &kernel.body);
    Err(Refusal::Unknown { kind: "instruction or loop", name: name.into(), known })
}

/// Whether two nodes are the same statement.
pub fn same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Insn(a), Node::Insn(b)) => a == b,
        (Node::Loop(a, _), Node::Loop(b, _)) => a == b,
        (Node::Insn(_), Node::Loop(..)) | (Node::Loop(..), Node::Insn(_)) => false,
    }
}
