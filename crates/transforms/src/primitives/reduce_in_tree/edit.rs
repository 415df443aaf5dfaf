//! The loops and instructions of a tree.

use super::{Plan, Tree};
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, BinaryOp, Expr, InameId, Insn, InsnId, Kernel, Node, ScalarType, VarId,
    VarKind, Variable, WriteOp,
};
use kingpost_steps::nest::new_loop;
use kingpost_steps::schedule::{Array, Loop, Statement};
use kingpost_steps::tree::edit_siblings;

impl Plan {
    /// The steps: the upper half of what is left is joined to the lower half, or where operands keep their
    /// order each element to its left neighbour.
    fn joins(&self) -> Vec<Join> {
        let (mut joins, length) = (Vec::new(), self.values.length);
        let mut left = length;
        while left > 1 {
            let half = left - left / 2;
            joins.push(Join { length: left - half, scale: 1, distance: half });
            left = half;
        }
        if !self.op.commutes() {
            for (k, join) in joins.iter_mut().enumerate() {
                let distance = 1 << k;
                *join =
                    Join { length: (length + distance - 1) / (2 * distance), scale: 2 * distance, distance };
            }
        }
        joins
    }

    /// The names of all that is made, if the tree has this one.
    pub(super) fn names(&self, name: &str) -> Vec<String> {
        let steps = 0..self.joins().len();
        let joins = steps.clone().map(|k| format!("{name}_join_{k}"));
        let sums = steps.clone().filter(|_| self.shuffle).map(|k| format!("{name}_sum_{k}"));
        let reads = steps.filter(|_| self.reads_first());
        let reads = reads.flat_map(|k| [format!("{name}_other_{k}"), format!("{name}_read_{k}")]);
        let fixed = ["", "_fill", "_leaf"].map(|end| format!("{name}{end}"));
        fixed.into_iter().chain(joins).chain(sums).chain(reads).collect()
    }

    pub(super) fn edit(&self, kernel: &mut Kernel) -> Tree {
        let update = kernel.insns[self.id].clone();
        let ty = kernel.vars[update.lhs.var].ty;
        let mut parts = Grown { nodes: Vec::new(), insns: Vec::new(), loops: Vec::new() };
        let tree = self.array(kernel, self.name.clone(), ty);
        let mut arrays = vec![tree];
        if !self.full {
            let at = self.new_loop(kernel, "f", self.values.length);
            parts.loops.push(at);
            let fill =
                self.insn("_fill", self.element(tree, at, 0), WriteOp::Assign, neutral(self.op, ty), &update);
            parts.push(kernel, at, fill);
        }
        kernel.inames[self.iname].tag = self.tag;
        self.values.show_bound(kernel, self.iname);
        let leaf = Access::new(tree, self.index(Affine::iname(self.iname).minus(&self.values.lo)));
        let leaf = self.insn("_leaf", leaf, WriteOp::Assign, update.rhs.clone(), &update);
        parts.push(kernel, self.iname, Insn { predicate: update.predicate.clone(), ..leaf });
        for (k, Join { length, scale, distance }) in self.joins().into_iter().enumerate() {
            let length = if self.shuffle { self.values.length } else { length };
            let at = self.new_loop(kernel, &k.to_string(), length);
            parts.loops.push(at);
            let end = format!("_join_{k}");
            let join = if self.shuffle {
                let (before, sum) = (arrays[k], self.array(kernel, self.sum(k), ty));
                arrays.push(sum);
                let mut other = self.further(before, at, distance);
                if self.reads_first() {
                    other = self.read(kernel, &mut parts, (k, at), other, &update);
                }
                let rhs = self.op.joined(Expr::Load(self.element(before, at, 0)), other);
                self.insn(&end, self.element(sum, at, 0), WriteOp::Assign, rhs, &update)
            } else {
                let op = WriteOp::Update { op: self.op, atomic: false };
                let at = |offset| {
                    let place = Affine::iname(at).times(scale).plus_constant(offset);
                    Access::new(tree, self.index(place))
                };
                self.insn(&end, at(0), op, Expr::Load(at(distance)), &update)
            };
            parts.push(kernel, at, join);
        }
        let sum = Expr::load(*arrays.last().unwrap_or(&tree), self.index(Affine::constant(0)));
        let predicate = update.predicate.clone().filter(|p| !p.mentions(self.iname));
        kernel.insns[self.id] = Insn { rhs: sum, predicate, ..update };
        parts.nodes.push(Node::Insn(self.id));
        self.replace(kernel, &parts.nodes);
        Tree {
            arrays: arrays.iter().map(|a| Array::named(&kernel.vars[*a].name)).collect(),
            loops: parts.loops.iter().map(|l| Loop::named(&kernel.inames[*l].name)).collect(),
            statements: parts.insns.iter().map(|i| Statement::named(&kernel.insns[*i].name)).collect(),
        }
    }

    /// What holds an element for each leaf.
    fn array(&self, kernel: &mut Kernel, name: String, ty: ScalarType) -> VarId {
        let lengths = self.around.iter().map(|(_, values)| values.length).chain([self.values.length]);
        let shape = lengths.map(Affine::constant).collect::<Vec<_>>();
        let space = if self.shuffle { AddressSpace::SubGroup } else { AddressSpace::Local };
        kernel.vars.push(Variable::new(name, ty, VarKind::Temporary, shape, space))
    }

    /// A loop over work-items.
    fn new_loop(&self, kernel: &mut Kernel, end: &str, length: i64) -> InameId {
        new_loop(kernel, &format!("{}_{end}", self.name), length, self.tag)
    }

    /// An instruction with the tags of the update.
    fn insn(&self, end: &str, lhs: Access, op: WriteOp, rhs: Expr, update: &Insn) -> Insn {
        let (name, tags) = (format!("{}{end}", self.name), update.tags.clone());
        Insn { name, lhs, op, rhs, predicate: None, tags, callee: None }
    }

    /// Name of what the work-items of a sub-group hold after a step.
    fn sum(&self, k: usize) -> String {
        format!("{}_sum_{k}", self.name)
    }

    /// Whether what another work-item holds is read before it is joined: a body may read it under a condition,
    /// which not all of a sub-group come to.
    fn reads_first(&self) -> bool {
        self.shuffle && self.op.named().is_some()
    }

    /// Reads what another work-item holds in step `k`.
    fn read(
        &self,
        kernel: &mut Kernel,
        parts: &mut Grown,
        (k, at): (usize, InameId),
        other: Expr,
        update: &Insn,
    ) -> Expr {
        let (name, ty) = (format!("{}_other_{k}", self.name), kernel.vars[update.lhs.var].ty);
        let held = Variable::new(name, ty, VarKind::Temporary, [], AddressSpace::Private);
        let held = kernel.vars.push(held);
        let read = self.insn(&format!("_read_{k}"), Access::scalar(held), WriteOp::Assign, other, update);
        parts.push(kernel, at, read);
        Expr::scalar(held)
    }

    /// What the work-item half the sub-group further holds.
    fn further(&self, held: VarId, at: InameId, half: i64) -> Expr {
        let length = self.values.length;
        let further = Expr::from_affine(&Affine::iname(at).plus_constant(half));
        let other = Expr::Binary(BinaryOp::Mod, Box::new(further), Box::new(Expr::Int(length)));
        let mut index = self.index(Affine::constant(0));
        index.pop();
        index.push(other);
        Expr::load(held, index)
    }

    /// The element of an array at `last` on its last axis.
    fn index(&self, last: Affine) -> Vec<Expr> {
        let own = self.around.iter().map(|(iname, values)| Affine::iname(*iname).minus(&values.lo));
        own.chain([last]).map(|e| Expr::from_affine(&e)).collect()
    }

    fn element(&self, array: VarId, iname: InameId, offset: i64) -> Access {
        Access::new(array, self.index(Affine::iname(iname).plus_constant(offset)))
    }

    fn replace(&self, kernel: &mut Kernel, nodes: &[Node]) {
        let wanted = |n: &Node| matches!(n, Node::Loop(l, _) if *l == self.iname);
        edit_siblings(&mut kernel.body, &wanted, &mut |siblings| {
            if let Some(at) = siblings.iter().position(wanted) {
                siblings.splice(at..=at, nodes.iter().cloned());
            }
        });
    }
}

/// A step of a tree: `tree[scale*k]` is joined with the element this distance further, for each `k`.
struct Join {
    length: i64,
    scale: i64,
    distance: i64,
}

/// The statements of a tree, as far as they exist.
struct Grown {
    nodes: Vec<Node>,
    insns: Vec<InsnId>,
    /// Those that are new.
    loops: Vec<InameId>,
}

impl Grown {
    /// Adds an instruction in a loop.
    fn push(&mut self, kernel: &mut Kernel, at: InameId, insn: Insn) {
        let insn = kernel.insns.push(insn);
        self.insns.push(insn);
        match self.nodes.last_mut() {
            Some(Node::Loop(open, body)) if *open == at => body.push(Node::Insn(insn)),
            _ => self.nodes.push(Node::Loop(at, vec![Node::Insn(insn)])),
        }
    }
}
