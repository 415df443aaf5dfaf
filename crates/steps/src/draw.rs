//! Draws arguments of primitives that have a chance on a kernel: what random recipes and searches
//! choose from.

pub use crate::picks::{Inputs, Picks};
use crate::primitive::Primitive;
use kingpost_ir::{Affine, Atom, InameId, Insn, Kernel, Node, VarId, VarKind, Variable};
use std::collections::{BTreeMap, BTreeSet};

/// One of the steps that would be accepted, or any where there is none.
pub fn possible<P: Primitive + Clone>(kernel: &Kernel, all: Vec<P>, p: &mut Picks<'_>) -> Option<P> {
    let accepted: Vec<_> = all.iter().filter(|step| step.apply(kernel).is_ok()).cloned().collect();
    p.of(if accepted.is_empty() { &all } else { &accepted })
}

/// The names of the loops, outer ones first.
pub fn loops(kernel: &Kernel) -> Vec<String> {
    bodies(kernel).into_iter().filter_map(|(of, _)| of).collect()
}

/// The names of the inames of reductions.
pub fn reductions(kernel: &Kernel) -> Vec<String> {
    let loops = loops(kernel);
    kernel.inames.values().map(|i| i.name.clone()).filter(|n| !loops.contains(n)).collect()
}

/// The names of all inames.
pub fn inames(kernel: &Kernel) -> Vec<String> {
    kernel.inames.values().map(|i| i.name.clone()).collect()
}

/// The names of the instructions that are wanted.
pub fn insns(kernel: &Kernel, wanted: impl Fn(&Insn) -> bool) -> Vec<String> {
    kernel.insns.values().filter(|i| wanted(i)).map(|i| i.name.clone()).collect()
}

/// The names of the variables that are wanted.
pub fn vars(kernel: &Kernel, wanted: impl Fn(&Variable) -> bool) -> Vec<String> {
    kernel.vars.values().filter(|v| wanted(v)).map(|v| v.name.clone()).collect()
}

/// Temporaries with at least a given number of axes.
pub fn temporaries(kernel: &Kernel, axes: usize) -> Vec<String> {
    vars(kernel, |v| v.kind == VarKind::Temporary && v.shape.len() >= axes)
}

/// Arguments and temporaries with at least a given number of axes.
pub fn arrays(kernel: &Kernel, axes: usize) -> Vec<String> {
    let kind = |k: &VarKind| matches!(k, VarKind::Temporary | VarKind::Argument(_));
    vars(kernel, |v| kind(&v.kind) && v.shape.len() >= axes)
}

/// The names of the tables.
pub fn tables(kernel: &Kernel) -> Vec<String> {
    vars(kernel, |v| matches!(v.kind, VarKind::Table(_)))
}

/// The names of the tables with at least a given number of axes.
pub fn tables_with_axes(kernel: &Kernel, axes: usize) -> Vec<String> {
    vars(kernel, |v| matches!(v.kind, VarKind::Table(_)) && v.shape.len() >= axes)
}

/// The names of the rules.
pub fn rules(kernel: &Kernel) -> Vec<String> {
    kernel.rules.values().map(|r| r.name.clone()).collect()
}

/// The axes of a variable.
pub fn axes(kernel: &Kernel, var: &str) -> u32 {
    kernel.var(var).map_or(0, |v| kernel.vars[v].shape.len() as u32)
}

fn name(kernel: &Kernel, node: &Node) -> String {
    match node {
        Node::Insn(insn) => kernel.insns[*insn].name.clone(),
        Node::Loop(iname, _) => kernel.inames[*iname].name.clone(),
    }
}

/// Bodies of the program with the loop they belong to (none: the kernel itself).
pub fn bodies(kernel: &Kernel) -> Vec<(Option<String>, Vec<String>)> {
    type Found = Vec<(Option<String>, Vec<String>)>;
    fn visit(kernel: &Kernel, of: Option<String>, body: &[Node], found: &mut Found) {
        found.push((of, body.iter().map(|node| name(kernel, node)).collect()));
        for node in body {
            if let Node::Loop(iname, body) = node {
                visit(kernel, Some(kernel.inames[*iname].name.clone()), body, found);
            }
        }
    }
    let mut found = Vec::new();
    visit(kernel, None, &kernel.body, &mut found);
    found
}

/// Loops with exactly one loop inside, and that loop.
pub fn nested(kernel: &Kernel) -> Vec<(String, String)> {
    let pair = |(of, body): (Option<String>, Vec<String>)| match body.as_slice() {
        [inner] if kernel.iname(inner).is_some() => Some((of?, inner.clone())),
        _ => None,
    };
    bodies(kernel).into_iter().filter_map(pair).collect()
}

/// Pairs of a loop and one that is somewhere inside it.
pub fn around(kernel: &Kernel) -> Vec<(String, String)> {
    let name = |i: &InameId| kernel.inames[*i].name.clone();
    let mut found = Vec::new();
    for (_, loops) in kernel.schedule() {
        for (k, outer) in loops.iter().enumerate() {
            found.extend(loops[k + 1..].iter().map(|inner| (name(outer), name(inner))));
        }
    }
    found
}

/// Two neighbouring loops, over the same values where there are such.
pub fn neighbours(kernel: &Kernel) -> Vec<(String, String)> {
    let alike = |a, b| {
        let to_b = |atom: &Atom| (*atom == Atom::Iname(a)).then(|| Affine::iname(b));
        kernel.inames[a].domain.substitute(&to_b) == kernel.inames[b].domain
    };
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for (_, names) in bodies(kernel) {
        for pair in names.windows(2) {
            let (Some(a), Some(b)) = (kernel.iname(&pair[0]), kernel.iname(&pair[1])) else { continue };
            let list = if alike(a, b) { &mut same } else { &mut other };
            list.push((pair[0].clone(), pair[1].clone()));
        }
    }
    if same.is_empty() { other } else { same }
}

/// The loops around every use of a variable.
pub fn loops_around(kernel: &Kernel, var: &str) -> Vec<String> {
    let Some(var) = kernel.var(var) else { return Vec::new() };
    let mut common: Option<Vec<_>> = None;
    for (insn, loops) in kernel.schedule() {
        let insn = &kernel.insns[insn];
        if insn.accesses(var) {
            let same = |c: &Vec<_>| c.iter().zip(&loops).take_while(|(a, b)| a == b).count();
            let n = common.as_ref().map_or(loops.len(), same);
            common = Some(loops[..n].to_vec());
        }
    }
    common.into_iter().flatten().map(|l| kernel.inames[l].name.clone()).collect()
}

/// The loops around an instruction.
pub fn loops_of(kernel: &Kernel, insn: &str) -> Vec<String> {
    let of = |(id, loops)| (kernel.insn(insn) == Some(id)).then_some(loops);
    let loops: Option<Vec<InameId>> = kernel.schedule().into_iter().find_map(of);
    loops.into_iter().flatten().map(|l| kernel.inames[l].name.clone()).collect()
}

/// The variables that the instructions inside a loop read.
pub fn read_inside(kernel: &Kernel, iname: &str) -> Vec<String> {
    let Some(iname) = kernel.iname(iname) else { return Vec::new() };
    let mut found = BTreeSet::new();
    for (insn, loops) in kernel.schedule() {
        if loops.contains(&iname) {
            found.extend(kernel.insns[insn].reads().iter().map(|a| a.var));
        }
    }
    let array = |v: &VarId| !kernel.vars[*v].shape.is_empty();
    found.into_iter().filter(array).map(|v| kernel.vars[v].name.clone()).collect()
}

/// Pairs of temporary arrays of one type in one memory, the last use of the first before the
/// second.
pub fn one_after_the_other(kernel: &Kernel) -> Vec<(String, String)> {
    let mut uses = BTreeMap::<_, (usize, usize)>::new();
    for (k, (insn, _)) in kernel.schedule().into_iter().enumerate() {
        let insn = &kernel.insns[insn];
        for var in insn.reads().iter().map(|a| a.var).chain([insn.lhs.var]) {
            uses.entry(var).or_insert((k, k)).1 = k;
        }
    }
    let array = |v: &VarId| {
        let var = &kernel.vars[*v];
        var.kind == VarKind::Temporary && !var.shape.is_empty() && var.storage.is_none()
    };
    let arrays: Vec<_> = uses.iter().filter(|(v, _)| array(v)).collect();
    let mut found = Vec::new();
    for (a, (_, last)) in &arrays {
        for (b, (first, _)) in &arrays {
            let (x, y) = (&kernel.vars[**a], &kernel.vars[**b]);
            if last < first && x.ty == y.ty && x.space == y.space {
                found.push((x.name.clone(), y.name.clone()));
            }
        }
    }
    found
}

/// Pairs of different temporaries, or tables, of one type, shape and address space.
pub fn alike(kernel: &Kernel) -> Vec<(String, String)> {
    let is_own = |v: &&Variable| matches!(v.kind, VarKind::Temporary | VarKind::Table(_));
    let all: Vec<_> = kernel.vars.values().filter(is_own).collect();
    let mut found = Vec::new();
    for (k, a) in all.iter().enumerate() {
        for b in &all[k + 1..] {
            let is_table = [a, b].map(|v| matches!(v.kind, VarKind::Table(_)));
            if is_table[0] == is_table[1] && a.ty == b.ty && a.shape == b.shape && a.space == b.space {
                found.push((a.name.clone(), b.name.clone()));
            }
        }
    }
    found
}

/// Loops with a statement that fills a temporary, and that temporary.
pub fn filled(kernel: &Kernel) -> Vec<(String, String)> {
    fn written(kernel: &Kernel, node: &Node, found: &mut Vec<String>) {
        match node {
            Node::Insn(insn) => found.push(kernel.vars[kernel.insns[*insn].lhs.var].name.clone()),
            Node::Loop(_, body) => body.iter().for_each(|node| written(kernel, node, found)),
        }
    }
    fn visit(kernel: &Kernel, body: &[Node], found: &mut Vec<(String, String)>) {
        for node in body {
            let Node::Loop(iname, body) = node else { continue };
            for inside in body {
                let mut vars = Vec::new();
                written(kernel, inside, &mut vars);
                vars.dedup();
                if let [var] = vars.as_slice()
                    && temporaries(kernel, 0).contains(var)
                {
                    found.push((kernel.inames[*iname].name.clone(), var.clone()));
                }
            }
            visit(kernel, body, found);
        }
    }
    let mut found = Vec::new();
    visit(kernel, &kernel.body, &mut found);
    found
}

/// The names of the callees.
pub fn callees(kernel: &Kernel) -> Vec<String> {
    kernel.callees.values().map(|c| c.name().to_owned()).collect()
}

/// One statement, or two that stand next to each other.
pub fn some_statements(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Vec<String>> {
    let bodies: Vec<_> = bodies(kernel).into_iter().filter(|(_, names)| !names.is_empty()).collect();
    let (_, names) = p.of(&bodies)?;
    let first = p.below(names.len());
    let len = if p.one_in(4) { 2 } else { 1 };
    Some(names.into_iter().skip(first).take(len).collect())
}
