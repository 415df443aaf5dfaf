//! Slices of a kernel: what computes some of its temporaries, as a kernel of its own.

use kingpost_ir::{
    AddressSpace, Assumption, Atom, AxisTag, Direction, Expr, InameId, InsnId, Kernel, Launch, Layout, Node,
    SubGroup, VarId, VarKind,
};
use std::collections::BTreeSet;

/// The variables that an instruction reads: in its value, indices and condition, also through
/// rules, and in the bounds of the loops around it.
pub(crate) fn reads(kernel: &Kernel, insn: InsnId, loops: &[InameId]) -> BTreeSet<VarId> {
    let mut found = BTreeSet::new();
    let mut bounds: Vec<InameId> = loops.to_vec();
    let data = &kernel.insns[insn];
    for e in data.expressions() {
        kernel.expand_rules(e).for_each(&mut |e| {
            if let Expr::Load(access) = e {
                found.insert(access.var);
            }
            if let Expr::Reduce(r) = e {
                bounds.extend(&r.inames);
            }
        });
    }
    for iname in bounds {
        kernel.inames[iname].domain.for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                found.insert(*v);
            }
        });
    }
    found
}

/// What computes some temporaries: the instructions that write them, those that write what these
/// read, and so on.
pub(crate) struct Slice {
    pub(crate) insns: BTreeSet<InsnId>,
    /// What they read or write, besides loops.
    pub(crate) vars: BTreeSet<VarId>,
}

impl Slice {
    /// The slice of `vars`.
    pub(crate) fn of(kernel: &Kernel, vars: &[VarId]) -> Self {
        let schedule = kernel.schedule();
        let mut slice = Self { insns: BTreeSet::new(), vars: vars.iter().copied().collect() };
        loop {
            let writes = |(s, _): &&(InsnId, Vec<InameId>)| {
                slice.vars.contains(&kernel.insns[*s].lhs.var) && !slice.insns.contains(s)
            };
            let more: Vec<_> = schedule.iter().filter(writes).collect();
            if more.is_empty() {
                return slice;
            }
            for (s, loops) in more {
                slice.insns.insert(*s);
                slice.vars.extend(reads(kernel, *s, loops));
            }
        }
    }

    /// The slice as a kernel whose results are `vars`, every loop in sequence.
    pub(crate) fn kernel(&self, kernel: &Kernel, vars: &[VarId]) -> Kernel {
        let mut setup = kernel.clone();
        setup.name = format!("{}_setup", kernel.name);
        setup.launch = Launch::default();
        setup.sub_group = SubGroup::default();
        setup.callees = [].into_iter().collect();
        setup.body = kept(&kernel.body, &self.insns);
        for insn in setup.insns.values_mut() {
            insn.map_roots(&mut |e| kernel.expand_rules(e));
        }
        setup.rules = [].into_iter().collect();
        for iname in setup.inames.values_mut() {
            iname.tag = AxisTag::Sequential;
        }
        for var in setup.vars.values_mut() {
            var.layout.vector_axis = None;
            if matches!(var.space, AddressSpace::Local | AddressSpace::SubGroup) {
                var.space = AddressSpace::Private;
            }
        }
        for var in vars {
            let var = &mut setup.vars[*var];
            var.kind = VarKind::Argument(Direction::Out);
            var.space = AddressSpace::Global;
            var.layout = Layout::default();
        }
        let mut used = self.vars.clone();
        let shapes: BTreeSet<VarId> = used.iter().flat_map(|v| sizes(kernel, *v)).collect();
        used.extend(shapes);
        for assumption in &setup.assumptions {
            if let Assumption::Params(c) = assumption {
                c.expr().for_each_symbol(&mut |atom| {
                    if let Atom::Var(v) = atom {
                        used.insert(*v);
                    }
                });
            }
        }
        // what a parameter is computed from stands above it
        let definitions: Vec<_> = setup.definitions().collect();
        for (param, value) in definitions.into_iter().rev() {
            if used.contains(&param) {
                value.for_each(&mut |e| used.extend(e.as_load().map(|access| access.var)));
            }
        }
        setup.assumptions.retain(|a| match a {
            Assumption::Params(_) => true,
            Assumption::Defined(param, _) => used.contains(param),
            Assumption::Injective(v) | Assumption::Ascending(v) => used.contains(v),
            Assumption::Outside(outside) => outside.inputs(kernel).iter().all(|v| used.contains(v)),
            Assumption::Symmetric(symmetry) => used.contains(&symmetry.var),
            Assumption::Lists(lists) => lists.vars().iter().all(|v| used.contains(v)),
        });
        // the tree no longer reaches the other instructions: without them no access is left that
        // would take the value
        let mut setup = setup.canonical();
        for var in kernel.vars.ids().rev().filter(|v| !used.contains(v)) {
            setup = setup.with_var_fixed(var, 0);
        }
        setup.canonical()
    }
}

/// The parameters that the extents of a variable mention.
fn sizes(kernel: &Kernel, var: VarId) -> Vec<VarId> {
    let var = &kernel.vars[var];
    let mut found = Vec::new();
    for e in var.shape.iter().chain(var.layout.strides().into_iter().flatten()) {
        e.for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                found.push(*v);
            }
        });
    }
    found
}

/// The nodes that hold some instructions.
fn kept(nodes: &[Node], insns: &BTreeSet<InsnId>) -> Vec<Node> {
    let keep = |node: &Node| match node {
        Node::Insn(insn) => insns.contains(insn).then(|| node.clone()),
        Node::Loop(iname, body) => {
            let body = kept(body, insns);
            (!body.is_empty()).then_some(Node::Loop(*iname, body))
        }
    };
    nodes.iter().filter_map(keep).collect()
}

/// The instructions of a slice that only serve it: they write what nothing outside it reads.
pub(crate) fn only_for(kernel: &Kernel, slice: &Slice, vars: &[VarId]) -> BTreeSet<InsnId> {
    let mut gone: BTreeSet<InsnId> =
        kernel.insns.ids().filter(|s| vars.contains(&kernel.insns[*s].lhs.var)).collect();
    let schedule = kernel.schedule();
    let assumed = |v: VarId| {
        kernel.assumptions.iter().any(|a| match a {
            Assumption::Params(_) | Assumption::Defined(..) => false,
            Assumption::Injective(var) | Assumption::Ascending(var) => *var == v,
            Assumption::Outside(outside) => outside.inputs(kernel).contains(&v),
            Assumption::Symmetric(symmetry) => symmetry.var == v,
            Assumption::Lists(lists) => lists.vars().contains(&v),
        })
    };
    loop {
        let needed = |var: VarId| {
            let by = |(s, loops): &(InsnId, Vec<InameId>)| {
                !gone.contains(s)
                    && kernel.insns[*s].lhs.var != var
                    && reads(kernel, *s, loops).contains(&var)
            };
            assumed(var) || schedule.iter().any(by)
        };
        let more: Vec<InsnId> = slice.insns.iter().copied().filter(|s| !gone.contains(s)).collect();
        let more: Vec<InsnId> = more.into_iter().filter(|s| !needed(kernel.insns[*s].lhs.var)).collect();
        if more.is_empty() {
            return gone;
        }
        gone.extend(more);
    }
}
