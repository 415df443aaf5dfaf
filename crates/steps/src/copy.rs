//! Copies of parts of the loop tree, under new names.

use crate::substitute::substitute_in_nodes;
use crate::tree::inames_of;
use kingpost_ir::{Affine, Atom, Domain, Expr, Iname, InameId, Kernel, Node};

/// A copy of `nodes`: loops, reductions and instructions are new, with `_{suffix}` after their
/// names (and a number where that is taken). The copy is not put into the tree.
pub fn copy_nodes(kernel: &mut Kernel, nodes: &[Node], suffix: &str) -> Vec<Node> {
    let inames: Vec<_> = inames_of(kernel, nodes)
        .into_iter()
        .map(|old| {
            let mut copy = kernel.inames[old].clone();
            copy.name = kernel.fresh_name(&format!("{}_{suffix}", copy.name));
            (old, kernel.inames.push(copy))
        })
        .collect();
    let copies = copy_insns(kernel, nodes, suffix, &inames);
    for (old, new) in &inames {
        substitute_in_nodes(kernel, &copies, *old, &Affine::iname(*new));
    }
    copies
}

/// A copy of the loop over `iname` with `body` inside, named like those of [`copy_nodes`]: its
/// iname and its node.
pub fn copy_nest(kernel: &mut Kernel, iname: InameId, body: &[Node], suffix: &str) -> (InameId, Node) {
    let name = kernel.fresh_name(&format!("{}_{suffix}", kernel.inames[iname].name));
    let copy = copy_loop(kernel, iname, name);
    let inside = copy_nodes(kernel, body, suffix);
    substitute_in_nodes(kernel, &inside, iname, &Affine::iname(copy));
    (copy, Node::Loop(copy, inside))
}

/// The nodes with new instructions, which still mention the old inames except where reductions
/// begin.
fn copy_insns(kernel: &mut Kernel, nodes: &[Node], suffix: &str, inames: &[(InameId, InameId)]) -> Vec<Node> {
    let renamed = |old: InameId| inames.iter().find(|(from, _)| *from == old).map_or(old, |(_, to)| *to);
    let mut reduction = |mut e: Expr| {
        if let Expr::Reduce(r) = &mut e {
            r.inames.iter_mut().for_each(|iname| *iname = renamed(*iname));
        }
        e
    };
    let mut copies = Vec::new();
    for node in nodes {
        copies.push(match node {
            Node::Loop(iname, body) => Node::Loop(renamed(*iname), copy_insns(kernel, body, suffix, inames)),
            Node::Insn(insn) => {
                let mut copy = kernel.insns[*insn].clone();
                copy.name = kernel.fresh_name(&format!("{}_{suffix}", copy.name));
                copy.map_expressions(&mut reduction);
                Node::Insn(kernel.insns.push(copy))
            }
        });
    }
    copies
}

/// A new loop over the values of `iname`, with its tag.
pub fn copy_loop(kernel: &mut Kernel, iname: InameId, name: String) -> InameId {
    let original = &kernel.inames[iname];
    let (domain, tag) = (original.domain.clone(), original.tag);
    let copy = kernel.inames.push(Iname { name, domain: Domain::universe(), tag });
    let of_copy = |atom: &Atom| (*atom == Atom::Iname(iname)).then(|| Affine::iname(copy));
    kernel.inames[copy].domain = domain.substitute(&of_copy);
    copy
}
