//! A scan in which every iteration adds the sums before it in its chunk.

use super::Scan;
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, AxisTag, BinaryOp, Constraint, Domain, Expr, Insn, Kernel, Node, VarId,
    VarKind, Variable,
};
use kingpost_steps::nest::{copy_loops, new_loop, renamed, wrapped};

/// What the names of all that it makes besides end in.
pub(super) const IN_CHUNKS: [&str; 7] = ["_sum", "_store", "_chunk", "_k", "_earlier", "_read", "_end"];

impl Scan {
    /// Row 0 of the sums holds those of the iterations, row 1 the totals before each chunk but the first.
    pub(super) fn in_chunks(
        &self,
        kernel: &mut Kernel,
        (sums, run): (VarId, VarId),
        chunk: i64,
        lo: &Affine,
    ) {
        let ty = kernel.vars[self.total].ty;
        let mut private = |end: &str| {
            let name = format!("{}{end}", self.name);
            kernel.vars.push(Variable::new(name, ty, VarKind::Temporary, [], AddressSpace::Private))
        };
        let [sum, earlier] = ["_sum", "_earlier"].map(&mut private);
        let at = Affine::iname(self.iname).minus(lo);
        let first = at.floor_div(chunk);
        let element = |row: i64, at: &Affine| Access::new(sums, [Expr::Int(row), Expr::from_affine(at)]);
        let mut made = self.own_sum(kernel, sum);
        let within = Expr::from_affine(&at.modulo(chunk));
        let later = Expr::binary(BinaryOp::Le, Expr::Int(chunk), Expr::from_affine(&at));
        let last = Expr::binary(BinaryOp::Eq, within, Expr::Int(chunk - 1));
        let k = new_loop(kernel, &format!("{}_k", self.name), chunk, AxisTag::Sequential);
        let before = Constraint::lt(&Affine::iname(k), &at.modulo(chunk));
        kernel.inames[k].domain = kernel.inames[k].domain.intersect(&Domain::conjunction([before]));
        let other = first.times(chunk).plus(&Affine::iname(k));
        let [private_sum, total] = [sum, run].map(Access::scalar);
        let whole = self.op.joined(Expr::scalar(run), Expr::scalar(sum));
        let mut push = |insn: Insn| Node::Insn(kernel.insns.push(insn));
        let store = push(self.insn("_store", element(0, &at), None, Expr::Load(private_sum), None));
        let start = push(self.insn("_start", total.clone(), None, Expr::scalar(self.total), None));
        let from = Expr::Load(element(1, &first));
        let from = push(self.insn("_chunk", total.clone(), None, from, Some(later)));
        let read = Expr::Load(element(0, &other));
        let read = push(self.insn("_read", Access::scalar(earlier), None, read, None));
        let add = push(self.insn("_before", total, Some(self.op), Expr::scalar(earlier), None));
        let end = element(1, &first.plus_constant(1));
        let end = push(self.insn("_end", end, None, whole, Some(last)));
        made.extend([store, start, from, Node::Loop(k, vec![read, add]), end]);
        self.insert(kernel, &[], &made, None);
    }

    /// The sum of an iteration in a scalar.
    fn own_sum(&self, kernel: &mut Kernel, sum: VarId) -> Vec<Node> {
        let nothing = neutral(self.op, kernel.vars[self.total].ty);
        let fill = self.insn("_fill", Access::scalar(sum), None, nothing, None);
        let fill = Node::Insn(kernel.insns.push(fill));
        let update = kernel.insns[self.id].clone();
        // the first one is the loop itself
        let copies = copy_loops(kernel, &self.nest[1..], "part");
        let (rhs, predicate) =
            (renamed(&update.rhs, &copies), update.predicate.as_ref().map(|p| renamed(p, &copies)));
        let part = self.insn("_part", Access::scalar(sum), Some(self.op), rhs, predicate);
        let part = Node::Insn(kernel.insns.push(part));
        let mut made = vec![fill];
        made.extend(wrapped(copies.iter().map(|(_, new)| *new), vec![part]));
        made
    }
}
