//! What [`ListElements`](crate::primitives::ListElements) puts around accesses through a map.

use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, AxisTag, BinaryOp, BlockLists, Domain, ExclusiveItems, Expr, Iname,
    InameId, Insn, InsnId, InverseLists, Kernel, Node, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::nest::{new_loop, wrapped};
use kingpost_steps::schedule::{Array, Handles, Loop, Made, Statement};
use kingpost_steps::tree::{edit_body, insns_of};
use std::collections::BTreeSet;

/// What [`ListElements`](crate::primitives::ListElements) makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedElements {
    /// The temporary.
    pub array: Array,
    /// The loops that fill it, over elements and further axes.
    pub fill: Vec<Loop>,
    /// The loops that join it to the array; none where it is read.
    pub join: Vec<Loop>,
    /// What joins it.
    pub store: Option<Statement>,
    /// The loops that fill what no other block has, and those that store it; none where it is not told
    /// apart.
    pub exclusive: [Vec<Loop>; 2],
}

impl Handles for ListedElements {
    fn list(&self, made: &mut Made) {
        self.array.list(made);
        self.fill.list(made);
        self.join.list(made);
        self.store.list(made);
        self.exclusive.iter().for_each(|loops| loops.list(made));
    }
}

/// Loops over the elements of the temporary.
pub(crate) struct Sweep {
    pub(crate) name: String,
    pub(crate) inames: Vec<InameId>,
    /// The first element.
    pub(crate) from: i64,
}

impl Sweep {
    /// Over the first axis, of this length, and over the further axes of `array`.
    pub(crate) fn new(kernel: &mut Kernel, name: &str, array: &Variable, first: i64) -> Self {
        let further = array.shape[1..].iter().filter_map(Affine::as_constant);
        let extents: Vec<i64> = [first].into_iter().chain(further).collect();
        let inames = extents
            .iter()
            .enumerate()
            .map(|(k, extent)| new_loop(kernel, &format!("{name}_{k}"), *extent, AxisTag::Sequential));
        let inames = inames.collect();
        Self { name: name.into(), inames, from: 0 }
    }

    /// The same elements from another one on.
    pub(crate) fn starting_at(mut self, from: i64) -> Self {
        self.from = from;
        self
    }

    /// The place of the element along the first axis.
    pub(crate) fn place(&self) -> Expr {
        match self.from {
            0 => Expr::Iname(self.inames[0]),
            from => Expr::from_affine(&Affine::iname(self.inames[0]).plus_constant(from)),
        }
    }

    pub(crate) fn loops(&self, kernel: &Kernel) -> Vec<Loop> {
        self.inames.iter().map(|i| Loop::named(&kernel.inames[*i].name)).collect()
    }

    /// The element of an array at the loops, through the list of a block if one is given.
    pub(crate) fn access(&self, var: VarId, listed: Option<(&BlockLists, InameId)>) -> Access {
        let mut index: Vec<Expr> = self.inames.iter().map(|i| Expr::Iname(*i)).collect();
        index[0] = self.place();
        if let Some((lists, at)) = listed {
            index[0] = Expr::load(lists.items, [Expr::Iname(at), index[0].clone()]);
        }
        Access::new(var, index)
    }

    pub(crate) fn nodes(
        &self,
        kernel: &mut Kernel,
        lhs: Access,
        op: WriteOp,
        rhs: Expr,
        predicate: Option<Expr>,
    ) -> Vec<Node> {
        let name = self.name.clone();
        let insn = Insn { name, lhs, op, rhs, predicate, tags: BTreeSet::new(), callee: None };
        let insn = kernel.insns.push(insn);
        wrapped(self.inames.iter().copied(), vec![Node::Insn(insn)])
    }
}

/// Puts nodes before and after what touches some instructions in the body of a loop.
pub(crate) fn put_around(
    kernel: &mut Kernel,
    at: InameId,
    insns: &[InsnId],
    before: Vec<Node>,
    behind: Vec<Node>,
) {
    let (mut before, mut behind) = (before, behind);
    edit_body(kernel, Some(at), &mut |body| {
        let touches = |node: &Node| insns_of(std::slice::from_ref(node)).iter().any(|s| insns.contains(s));
        let last = body.iter().rposition(touches).map_or(body.len(), |k| k + 1);
        body.splice(last..last, std::mem::take(&mut behind));
        let first = body.iter().position(touches).unwrap_or(0); // default: before all, if nothing touches them
        body.splice(first..first, std::mem::take(&mut before));
    });
}

/// Updates through a map whose lists have exclusive items in front.
pub(crate) struct ExclusiveUpdates<'l> {
    pub at: InameId,
    pub var: VarId,
    /// The temporary.
    pub temporary: VarId,
    pub op: UpdateOp,
    pub atomic: bool,
    pub lists: &'l BlockLists,
    pub items: ExclusiveItems,
    pub capacity: i64,
}

impl ExclusiveUpdates<'_> {
    /// Fills the temporary before updates and joins it to the array after them: what no other
    /// block has starts from the array and is stored.
    pub(crate) fn put_around(&self, kernel: &mut Kernel, insns: &[InsnId]) -> ListedElements {
        let array = kernel.vars[self.var].clone();
        let name = kernel.vars[self.temporary].name.clone();
        let others = self.capacity - self.items.room;
        let mut sweep = |verb: &str, length: i64, from: i64| {
            Sweep::new(kernel, &format!("{verb}_{name}"), &array, length).starting_at(from)
        };
        let [fetch, keep] = ["fetch", "keep"].map(|verb| sweep(verb, self.items.room, 0));
        let start = sweep("start", self.capacity, 0);
        let store = sweep("store", others, self.items.room);
        let listed = Some((self.lists, self.at));
        let below = |sweep: &Sweep, counts: VarId| {
            Expr::binary(BinaryOp::Lt, sweep.place(), Expr::load(counts, [Expr::Iname(self.at)]))
        };
        let own = |sweep: &Sweep| Some(below(sweep, self.items.counts));
        // all of it first: what is filled under a condition alone could be of the block before
        let here = start.access(self.temporary, None);
        let mut before = start.nodes(kernel, here, WriteOp::Assign, neutral(self.op, array.ty), None);
        let (there, here) = (fetch.access(self.var, listed), fetch.access(self.temporary, None));
        before.extend(fetch.nodes(kernel, here, WriteOp::Assign, Expr::Load(there), own(&fetch)));
        let (there, here) = (keep.access(self.var, listed), keep.access(self.temporary, None));
        let mut behind = keep.nodes(kernel, there, WriteOp::Assign, Expr::Load(here), own(&keep));
        let (there, here) = (store.access(self.var, listed), store.access(self.temporary, None));
        let first = Expr::binary(BinaryOp::Le, self.items.room, store.place());
        let listed = Expr::binary(BinaryOp::And, first, below(&store, self.lists.counts));
        let join = WriteOp::Update { op: self.op, atomic: self.atomic };
        behind.extend(store.nodes(kernel, there, join, Expr::Load(here), Some(listed)));
        let made = ListedElements {
            array: Array::named(name),
            fill: start.loops(kernel),
            join: store.loops(kernel),
            store: Some(Statement::named(&store.name)),
            exclusive: [fetch.loops(kernel), keep.loops(kernel)],
        };
        put_around(kernel, self.at, insns, before, behind);
        made
    }
}

/// Updates through a map whose lists have places.
pub(crate) struct ListedUpdates {
    pub at: InameId,
    pub var: VarId,
    pub insns: Vec<InsnId>,
    pub op: UpdateOp,
    pub atomic: bool,
    pub lists: BlockLists,
    pub inverse: InverseLists,
    /// Columns of the map.
    pub columns: i64,
    pub capacity: i64,
}

impl ListedUpdates {
    /// Gives each element of the map in a block an element of the temporary `name`, and sums those of
    /// each number after the updates.
    pub(crate) fn sum_by_places(&self, kernel: &mut Kernel, name: &str) -> ListedElements {
        let array = kernel.vars[self.var].clone();
        let width = self.columns * self.lists.block;
        let shape = [vec![Affine::constant(width)], array.shape[1..].to_vec()].concat();
        let (kind, space) = (VarKind::Temporary, AddressSpace::Local);
        let parts = kernel.vars.push(Variable::new(name, array.ty, kind, shape, space));
        self.redirect(kernel, parts);
        let start = Sweep::new(kernel, &format!("start_{name}"), &array, width);
        let fill = start.loops(kernel);
        let lhs = start.access(parts, None);
        let before = start.nodes(kernel, lhs, WriteOp::Assign, neutral(self.op, array.ty), None);
        let sums = Sweep::new(kernel, &format!("store_{name}"), &array, self.capacity);
        let join = sums.loops(kernel);
        let store = Statement::named(&sums.name);
        let behind = self.sum_and_store(kernel, name, parts, &sums);
        put_around(kernel, self.at, &self.insns, before, behind);
        let exclusive = [Vec::new(), Vec::new()];
        ListedElements { array: Array::named(name), fill, join, store: Some(store), exclusive }
    }

    /// An update of row `r` and column `i` goes to element `i*block + r - block*at`.
    fn redirect(&self, kernel: &mut Kernel, parts: VarId) {
        let first = Affine::iname(self.at).times(self.lists.block);
        for s in &self.insns {
            let insn = &mut kernel.insns[*s];
            let mut index = insn.lhs.index.clone();
            let Some(Expr::Load(entry)) = index.first() else { continue };
            let [row, column] = &entry.index[..] else { continue };
            let row = row.as_affine().map(|row| row.minus(&first));
            let place = match (row, column.as_affine()) {
                (Some(row), Some(column)) => Expr::from_affine(&column.times(self.lists.block).plus(&row)),
                (Some(row), None) => {
                    let column = Expr::binary(BinaryOp::Mul, column.clone(), self.lists.block);
                    Expr::binary(BinaryOp::Add, column, Expr::from_affine(&row))
                }
                (None, _) => continue,
            };
            index[0] = place;
            insn.lhs = Access::new(parts, index);
            insn.op = WriteOp::Update { op: self.op, atomic: false };
        }
    }

    /// Adds up the parts of each number, and joins their sum to the array.
    fn sum_and_store(&self, kernel: &mut Kernel, name: &str, parts: VarId, sums: &Sweep) -> Vec<Node> {
        let ty = kernel.vars[self.var].ty;
        let (count, at) = (kernel.vars[self.lists.map].ty.loaded(), Expr::Iname(self.at));
        let mut scalar = |verb: &str, ty| {
            let name = format!("{verb}_{name}_scalar");
            let (kind, space) = (VarKind::Temporary, AddressSpace::Private);
            let name = kernel.fresh_name(&name);
            kernel.vars.push(Variable::new(name, ty, kind, Vec::new(), space))
        };
        let [first, last] = ["first", "last"].map(|verb| scalar(verb, count));
        let total = scalar("total", ty);
        let p = kernel.fresh_name(&format!("place_{name}"));
        let p = kernel.inames.push(Iname { name: p, domain: Domain::universe(), tag: AxisTag::Sequential });
        kernel.inames[p].domain = Domain::range(p, &Affine::var(first), &Affine::var(last));
        let number = Affine::iname(sums.inames[0]);
        let start = |k: &Affine| Expr::load(self.inverse.starts, [at.clone(), Expr::from_affine(k)]);
        let mut part: Vec<Expr> = sums.inames.iter().map(|i| Expr::Iname(*i)).collect();
        part[0] = Expr::load(self.inverse.places, [at.clone(), Expr::Iname(p)]);
        let mut insn = |verb: &str, lhs: Access, op: WriteOp, rhs: Expr, predicate: Option<Expr>| {
            let name = format!("{verb}_{name}");
            let insn = Insn { name, lhs, op, rhs, predicate, tags: BTreeSet::new(), callee: None };
            Node::Insn(kernel.insns.push(insn))
        };
        let set = WriteOp::Assign;
        let add = WriteOp::Update { op: self.op, atomic: false };
        let join = WriteOp::Update { op: self.op, atomic: self.atomic };
        let listed = Expr::binary(BinaryOp::Lt, sums.inames[0], Expr::load(self.lists.counts, [at.clone()]));
        let of_number = vec![
            insn("first", Access::scalar(first), set, start(&number), None),
            insn("last", Access::scalar(last), set, start(&number.plus_constant(1)), None),
            insn("total", Access::scalar(total), set, neutral(self.op, ty), None),
            Node::Loop(p, vec![insn("add", Access::scalar(total), add, Expr::load(parts, part), None)]),
            insn(
                "store",
                sums.access(self.var, Some((&self.lists, self.at))),
                join,
                Expr::scalar(total),
                Some(listed),
            ),
        ];
        wrapped(sums.inames.iter().copied(), of_number)
    }
}
