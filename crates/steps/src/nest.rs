//! New loops around new instructions.

use purlin_ir::{Affine, Atom, AxisTag, Domain, Expr, Iname, InameId, Kernel, Node};

/// A new loop `name in 0..extent`; the name gets a number where it is taken.
pub fn new_loop(kernel: &mut Kernel, name: &str, extent: i64, tag: AxisTag) -> InameId {
    let name = kernel.fresh_name(name);
    let iname = kernel.inames.push(Iname { name, domain: Domain::universe(), tag });
    kernel.inames[iname].domain = Domain::range(iname, &Affine::constant(0), &Affine::constant(extent));
    iname
}

/// Copies of loops, outer first, over the same values and with the same tags, with `_{suffix}`
/// after their names; old and new inames. What they mention of other loops stays.
pub fn copy_loops(kernel: &mut Kernel, loops: &[InameId], suffix: &str) -> Vec<(InameId, InameId)> {
    let mut pairs = Vec::with_capacity(loops.len());
    for old in loops {
        let mut copy = kernel.inames[*old].clone();
        copy.name = kernel.fresh_name(&format!("{}_{suffix}", copy.name));
        pairs.push((*old, kernel.inames.push(copy)));
    }
    for (_, new) in &pairs {
        let replace = |atom: &Atom| renamed_atom(atom, &pairs);
        kernel.inames[*new].domain = kernel.inames[*new].domain.substitute(&replace);
    }
    pairs
}

fn renamed_atom(atom: &Atom, pairs: &[(InameId, InameId)]) -> Option<Affine> {
    let Atom::Iname(iname) = atom else { return None };
    pairs.iter().find(|(old, _)| old == iname).map(|(_, new)| Affine::iname(*new))
}

/// The expression with the inames of copied loops.
pub fn renamed(e: &Expr, pairs: &[(InameId, InameId)]) -> Expr {
    e.map(&mut |mut node| {
        if let Expr::Iname(iname) = &mut node
            && let Some((_, new)) = pairs.iter().find(|(old, _)| old == iname)
        {
            *iname = *new;
        }
        node
    })
}

/// Nodes inside loops, given outer first.
pub fn wrapped(loops: impl DoubleEndedIterator<Item = InameId>, nodes: Vec<Node>) -> Vec<Node> {
    loops.rev().fold(nodes, |nodes, iname| vec![Node::Loop(iname, nodes)])
}
