//! Samples of several launches.

use kingpost_ir::Id;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Domain;
use kingpost_ir::ids::{InameId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Iname, Kernel, Node, VarKind};
use std::collections::BTreeSet;

/// The parts of a kernel in launches that `pick` says: cuts, whether a loop of the host repeats some
/// launches, whether the outermost loop of a launch is one of launches. The kernel as it is for 0, and
/// where loops of two launches end at one scalar.
pub(super) fn in_launches(kernel: Kernel, pick: u8) -> Kernel {
    if pick & 1 == 0 || kernel.body.len() < 2 {
        return kernel;
    }
    let mut several = kernel.clone();
    let parts = parts(std::mem::take(&mut several.body), pick >> 1);
    if !share(&mut several, &parts) {
        return kernel;
    }
    let names = ["first", "second", "third", "fourth"];
    let mut launches: Vec<Node> = Vec::new();
    for (k, part) in parts.into_iter().enumerate() {
        let own = part.as_slice();
        if let ([Node::Loop(outer, _)], true) = (own, pick & 64 != 0)
            && is_of_parameters(&several, *outer)
        {
            several.inames[*outer].tag = AxisTag::Launch;
            launches.extend(part);
        } else {
            let launch = range(&mut several, names[k % names.len()], 1, AxisTag::Launch);
            launches.push(Node::Loop(launch, part));
        }
    }
    if pick & 128 != 0 {
        // the last launches twice
        let repeated = launches.split_off(launches.len() - 2);
        let host = range(&mut several, "again", 2, AxisTag::Sequential);
        launches.push(Node::Loop(host, repeated));
    }
    several.body = launches;
    several.canonical()
}

/// Nodes in two to four groups.
fn parts(nodes: Vec<Node>, pick: u8) -> Vec<Vec<Node>> {
    let mut parts: Vec<Vec<Node>> = vec![Vec::new()];
    let last = nodes.len() - 1;
    for (k, node) in nodes.into_iter().enumerate() {
        let cut = k > 0 && (pick >> (k % 4) & 1 == 1 || k == last && parts.len() == 1);
        if cut && parts.len() < 4 {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(node);
        }
    }
    parts
}

/// Puts temporaries that several parts use into global memory; false where one of them bounds a loop.
fn share(kernel: &mut Kernel, parts: &[Vec<Node>]) -> bool {
    let used: Vec<BTreeSet<VarId>> = parts.iter().map(|part| used(kernel, part)).collect();
    for var in kernel.vars.ids().collect::<Vec<_>>() {
        let in_parts = used.iter().filter(|used| used.contains(&var)).count();
        if kernel.vars[var].kind != VarKind::Temporary || in_parts < 2 {
            continue;
        }
        let bounds = |l: &Iname| l.domain.any_symbol(&mut |atom| *atom == Atom::Var(var));
        if kernel.inames.values().any(bounds) {
            return false;
        }
        kernel.vars[var].space = AddressSpace::Global;
    }
    true
}

fn used(kernel: &Kernel, nodes: &[Node]) -> BTreeSet<VarId> {
    let mut found = BTreeSet::new();
    for node in nodes {
        match node {
            Node::Insn(insn) => {
                let insn = &kernel.insns[*insn];
                found.insert(insn.lhs.var);
                found.extend(insn.reads().iter().map(|access| access.var));
            }
            Node::Loop(iname, body) => {
                kernel.inames[*iname].domain.for_each_symbol(&mut |atom| match atom {
                    Atom::Var(var) => {
                        found.insert(*var);
                    }
                    Atom::Iname(_) | Atom::Floor(..) => {}
                });
                found.extend(used(kernel, body));
            }
        }
    }
    found
}

/// Whether the host can run a loop.
fn is_of_parameters(kernel: &Kernel, iname: InameId) -> bool {
    let data = &kernel.inames[iname];
    let known = |atom: &Atom| match atom {
        Atom::Var(var) => kernel.vars[*var].kind == VarKind::Param,
        Atom::Iname(_) | Atom::Floor(..) => true,
    };
    data.tag == AxisTag::Sequential
        && data.domain.as_range(iname).is_some()
        && !data.domain.any_symbol(&mut |atom| !known(atom))
}

fn range(kernel: &mut Kernel, name: &str, extent: i64, tag: AxisTag) -> InameId {
    let name = kernel.fresh_name(name);
    let iname = InameId::from_index(kernel.inames.len());
    let domain = Domain::range(iname, &Affine::constant(0), &Affine::constant(extent));
    kernel.inames.push(Iname { name, domain, tag })
}
