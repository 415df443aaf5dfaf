//! Edits of the loop tree.

use purlin_ir::{InameId, Node};

/// Replaces the loop over `iname`, wherever it is, by what `edit` makes of its body.
pub(crate) fn replace_loop(
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
pub(crate) fn loop_body(nodes: &[Node], iname: InameId) -> Option<&[Node]> {
    nodes.iter().find_map(|node| match node {
        Node::Loop(found, body) if *found == iname => Some(body.as_slice()),
        Node::Loop(_, body) => loop_body(body, iname),
        Node::Insn(_) => None,
    })
}
