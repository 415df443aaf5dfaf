//! Nests of loops, and new loops around new instructions.

use crate::lookup;
use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_ir::{Affine, Atom, AxisTag, Domain, Expr, Iname, InameId, Kernel, Node};

/// Loops are reordered within a nest.
pub const NEST: Obligation = Obligation::new(
    "nest",
    "each of the loops is directly inside another one of them, except for the outermost",
);

/// The names of a nest in today's order, if each of the loops is directly inside another.
///
/// # Errors
/// [`NEST`], or a name that is no loop.
pub fn names(kernel: &Kernel, names: &[String]) -> Result<Vec<String>, Refusal> {
    let wanted = names.iter().map(|n| lookup::iname(kernel, n)).collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<InameId> = Vec::new();
    let mut nodes = kernel.body.as_slice();
    while let Some((l, body)) = next_loop(nodes, &wanted, found.is_empty()) {
        found.push(l);
        nodes = body;
    }
    let all = wanted.iter().all(|l| found.contains(l)) && found.len() == wanted.len();
    let name = |l: &InameId| kernel.inames[*l].name.clone();
    NEST.require(all, || {
        format!(
            "{} are not a nest of loops, one directly inside the other; name each loop of such a nest once",
            lookup::quoted(names)
        )
    })?;
    Ok(found.iter().map(name).collect())
}

/// The loop in `nodes` that belongs to a nest; everywhere below while none has been found, else
/// directly inside.
fn next_loop<'k>(nodes: &'k [Node], wanted: &[InameId], first: bool) -> Option<(InameId, &'k [Node])> {
    let loops = nodes.iter().filter_map(|node| match node {
        Node::Loop(l, body) => Some((*l, body.as_slice())),
        Node::Insn(_) => None,
    });
    if first {
        return loops.into_iter().find_map(|(l, body)| {
            if wanted.contains(&l) { Some((l, body)) } else { next_loop(body, wanted, true) }
        });
    }
    match nodes {
        [Node::Loop(l, body)] if wanted.contains(l) => Some((*l, body)),
        _ => None,
    }
}

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
