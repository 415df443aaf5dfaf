//! The loops and instructions of a scan.

use super::chunks::IN_CHUNKS;
use super::{Scan, Sums, Values};
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, BinaryOp, Expr, InameId, Insn, Kernel, Node, UpdateOp, VarId, VarKind,
    Variable, WriteOp,
};
use kingpost_steps::nest::{copy_loops, new_loop, renamed, wrapped};
use kingpost_steps::tree::edit_siblings;

impl Scan {
    /// The distances over which the steps of the scan add.
    fn distances(&self) -> Vec<i64> {
        let Sums::Local(Values { length, .. }) = &self.sums else { return Vec::new() };
        std::iter::successors(Some(1), |d| Some(2 * d)).take_while(|d| d < length).collect()
    }

    /// The names of all that is made, if the scan has this one.
    pub(super) fn names(&self, name: &str) -> Vec<String> {
        let steps = 0..self.distances().len();
        let steps = steps.flat_map(|k| [format!("_copy_{k}"), format!("_add_{k}")]);
        let fixed = ["", "_fill", "_part", "_start", "_before", "_total"].map(str::to_owned);
        let chunks = matches!(self.sums, Sums::Global { chunk: Some(_), .. });
        let more = if chunks { IN_CHUNKS.map(str::to_owned).to_vec() } else { Vec::new() };
        fixed.into_iter().chain(more).chain(steps).map(|end| format!("{name}{end}")).collect()
    }

    pub(super) fn insn(
        &self,
        end: &str,
        lhs: Access,
        op: Option<UpdateOp>,
        rhs: Expr,
        predicate: Option<Expr>,
    ) -> Insn {
        let op = op.map_or(WriteOp::Assign, |op| WriteOp::Update { op, atomic: false });
        Insn {
            name: format!("{}{end}", self.name),
            lhs,
            op,
            rhs,
            predicate,
            tags: Default::default(),
            callee: None,
        }
    }

    pub(super) fn edit(&self, kernel: &mut Kernel) {
        let ty = kernel.vars[self.total].ty;
        let temporary = |name: &str, shape: &[Affine], space| {
            Variable::new(name, ty, VarKind::Temporary, shape.iter().cloned(), space)
        };
        let (length, space) = match &self.sums {
            Sums::Local(values) => (Affine::constant(values.length), AddressSpace::Local),
            Sums::Global { extent, .. } => (extent.clone(), AddressSpace::Global),
        };
        let sums = kernel.vars.push(temporary(&self.name, &[Affine::constant(2), length], space));
        let run = kernel.vars.push(temporary(&self.run, &[], AddressSpace::Private));
        kernel.inames[self.iname].tag = self.tag;
        match &self.sums {
            Sums::Local(values) => self.in_steps(kernel, values, sums, run),
            Sums::Global { chunk: None, .. } => self.one_by_one(kernel, sums, run),
            Sums::Global { chunk: Some(chunk), lo, .. } => self.in_chunks(kernel, (sums, run), *chunk, lo),
        }
        self.rename(kernel, run);
    }

    /// The sums are scanned in steps.
    fn in_steps(&self, kernel: &mut Kernel, values: &Values, sums: VarId, run: VarId) {
        values.show_bound(kernel, self.iname);
        let at = new_loop(kernel, &format!("{}_f", self.name), values.length, self.tag);
        let fill = self.fill(kernel, Access::new(sums, [Expr::Int(0), Expr::Iname(at)]));
        let (own, part) = self.part(kernel, sums);
        let mut before = vec![Node::Loop(at, vec![fill]), Node::Loop(own, part)];
        let steps = self.distances();
        for (k, distance) in steps.iter().enumerate() {
            before.push(self.step(kernel, (sums, values.length), k, *distance));
        }
        let last = (steps.len() % 2) as i64;
        let start = self.start(kernel, sums, run, last);
        let all = Expr::load(sums, [Expr::Int(last), Expr::Int(values.length - 1)]);
        let total = self.add_total(kernel, all);
        self.insert(kernel, &before, &start, Some(total));
    }

    /// A loop of its own adds the sums, and keeps the total before each.
    fn one_by_one(&self, kernel: &mut Kernel, sums: VarId, run: VarId) {
        let (own, mut part) = self.part(kernel, sums);
        let of_part = self.element(sums, 0, own);
        part.insert(0, self.fill(kernel, of_part));
        let copies = copy_loops(kernel, &[self.iname], "total");
        let at = copies.first().map_or(self.iname, |(_, new)| *new);
        let before = self.insn("_before", self.element(sums, 1, at), None, self.total_before(kernel), None);
        let before = Node::Insn(kernel.insns.push(before));
        let total = self.add_total(kernel, Expr::Load(self.element(sums, 0, at)));
        let earlier = Expr::Load(self.element(sums, 1, self.iname));
        let start = self.insn("_start", Access::scalar(run), None, earlier, None);
        let start = Node::Insn(kernel.insns.push(start));
        let loops = [Node::Loop(own, part), Node::Loop(at, vec![before, total])];
        self.insert(kernel, &loops, &[start], None);
    }

    /// The sum of an iteration.
    fn element(&self, sums: VarId, half: i64, at: InameId) -> Access {
        let at = Affine::iname(at).minus(self.sums.lo());
        Access::new(sums, [Expr::Int(half), Expr::from_affine(&at)])
    }

    fn fill(&self, kernel: &mut Kernel, element: Access) -> Node {
        let nothing = neutral(self.op, kernel.vars[self.total].ty);
        Node::Insn(kernel.insns.push(self.insn("_fill", element, None, nothing, None)))
    }

    fn add_total(&self, kernel: &mut Kernel, sum: Expr) -> Node {
        let total = Access::scalar(self.total);
        Node::Insn(kernel.insns.push(self.insn("_total", total, Some(self.op), sum, self.condition.clone())))
    }

    /// A loop like the scanned one, and what sums an iteration in it.
    fn part(&self, kernel: &mut Kernel, sums: VarId) -> (InameId, Vec<Node>) {
        let update = kernel.insns[self.id].clone();
        let copies = copy_loops(kernel, &self.nest, "part");
        let own = copies.first().map_or(self.iname, |(_, new)| *new);
        let (rhs, predicate) =
            (renamed(&update.rhs, &copies), update.predicate.as_ref().map(|p| renamed(p, &copies)));
        let part = self.insn("_part", self.element(sums, 0, own), Some(self.op), rhs, predicate);
        let inner = copies.iter().skip(1).map(|(_, new)| *new);
        (own, wrapped(inner, vec![Node::Insn(kernel.insns.push(part))]))
    }

    /// One step of the scan: from one half of the array to the other.
    fn step(&self, kernel: &mut Kernel, (sums, length): (VarId, i64), k: usize, distance: i64) -> Node {
        let (from, to) = ((k % 2) as i64, ((k + 1) % 2) as i64);
        let at = new_loop(kernel, &format!("{}_{k}", self.name), length, self.tag);
        let element = |half: i64, offset: i64| {
            Access::new(sums, [Expr::Int(half), Expr::from_affine(&Affine::iname(at).plus_constant(offset))])
        };
        let copy = self.insn(&format!("_copy_{k}"), element(to, 0), None, Expr::Load(element(from, 0)), None);
        let there = Expr::binary(BinaryOp::Le, Expr::Int(distance), Expr::Iname(at));
        let other = Expr::Load(element(from, -distance));
        // the earlier operand stands first where the order matters
        let (op, value) = match self.op.commutes() {
            true => (Some(self.op), other),
            false => (None, self.op.joined(other, Expr::Load(element(from, 0)))),
        };
        let add = self.insn(&format!("_add_{k}"), element(to, 0), op, value, Some(there));
        Node::Loop(at, [copy, add].map(|insn| Node::Insn(kernel.insns.push(insn))).into())
    }

    /// The total before the loop.
    pub(super) fn total_before(&self, kernel: &Kernel) -> Expr {
        let total = Expr::scalar(self.total);
        match &self.condition {
            None => total,
            // a choice of values, so that every iteration surely starts from its own
            Some(holds) => {
                let nothing = neutral(self.op, kernel.vars[self.total].ty);
                Expr::Select(holds.clone().into(), total.into(), nothing.into())
            }
        }
    }

    /// The total before an iteration.
    fn start(&self, kernel: &mut Kernel, sums: VarId, run: VarId, half: i64) -> Vec<Node> {
        let (run, lo) = (Access::scalar(run), self.sums.lo());
        let first = self.insn("_start", run.clone(), None, self.total_before(kernel), None);
        let at = Expr::from_affine(&Affine::iname(self.iname).minus(lo).plus_constant(-1));
        let later = Expr::binary(BinaryOp::Lt, Expr::from_affine(lo), Expr::Iname(self.iname));
        let earlier = Expr::load(sums, [Expr::Int(half), at]);
        let more = self.insn("_before", run, Some(self.op), earlier, Some(later));
        [first, more].map(|insn| Node::Insn(kernel.insns.push(insn))).into()
    }

    pub(super) fn insert(&self, kernel: &mut Kernel, before: &[Node], start: &[Node], total: Option<Node>) {
        let wanted = |n: &Node| matches!(n, Node::Loop(l, _) if *l == self.iname);
        edit_siblings(&mut kernel.body, &wanted, &mut |siblings| {
            let Some(at) = siblings.iter().position(wanted) else { return };
            if let Some(Node::Loop(_, body)) = siblings.get_mut(at) {
                body.splice(0..0, start.iter().cloned());
            }
            siblings.splice(at + 1..at + 1, total.clone());
            siblings.splice(at..at, before.iter().cloned());
        });
    }

    /// Inside the loop the total is the one of the iteration.
    fn rename(&self, kernel: &mut Kernel, run: VarId) {
        for id in &self.inside {
            let insn = &mut kernel.insns[*id];
            insn.map_expressions(&mut |e| if e == Expr::scalar(self.total) { Expr::scalar(run) } else { e });
            if insn.lhs.var == self.total {
                insn.lhs.var = run;
            }
        }
    }
}
