//! The largest end of a loop whose end is read from memory, computed before a loop around it.

use crate::lookup;
use crate::nest::{copy_loops, renamed, wrapped};
use crate::obligation::Obligation;
use crate::proofs::recomputed::check_recomputed;
use crate::refusal::Refusal;
use crate::tree::{body_of, edit_siblings, insns_of};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, AddressSpace, Affine, Atom, AxisTag, Constraint, Domain, Expr, ExprType, InameId, Insn, Kernel,
    Node, ScalarType, UpdateOp, VarId, VarKind, Variable, WriteOp,
};

/// There is a largest one.
pub const WIDEST: Obligation = Obligation::new(
    "widest",
    "the loop is inside the one named, a constant bounds it from below, and one bound from above moves",
);

/// The largest end of a loop, in loops around it.
pub struct Widest {
    /// The loops, outer first.
    loops: Vec<InameId>,
    /// Where the loop starts, and its end in terms of the loops.
    start: i64,
    end: Expr,
    name: String,
    ty: ScalarType,
}

impl Widest {
    /// The largest end that one of the constraints `moved` gives `iname` in the loop `around`, where the
    /// others are `stays`.
    ///
    /// # Errors
    /// [`WIDEST`], a scalar whose value is not known before the loop, or a name that is taken.
    pub fn find(
        analysis: &Analysis,
        iname: InameId,
        around: &str,
        stays: &Domain,
        moved: &[&Constraint],
        asked: Option<String>,
    ) -> Result<Self, Refusal> {
        let kernel = analysis.kernel();
        let own = &kernel.inames[iname].name;
        let outer = lookup::tree_loop(kernel, around)?;
        let first = insns_of(body_of(kernel, iname)?);
        let loops = first.first().map_or(&[][..], |insn| analysis.loops(*insn));
        let [from, to] = [outer, iname].map(|l| loops.iter().position(|found| *found == l));
        let (Some(from), Some(to)) = (from, to.filter(|to| from < Some(*to))) else {
            return Err(WIDEST.unfit(format!("`{around}` is not around `{own}`; name a loop around it")));
        };
        let at = Atom::Iname(iname);
        let bound = |c: &Constraint, sign| match c {
            Constraint::NonNegative(e) if e.coefficient(&at) == sign => {
                Some(e.minus(&Affine::iname(iname).times(sign))).filter(|rest| !rest.mentions(iname))
            }
            Constraint::NonNegative(_) | Constraint::Zero(_) => None,
        };
        let starts = stays.as_conjunction().into_iter().flatten();
        let starts = starts.filter_map(|c| Some(-bound(c, 1)?.as_constant()?));
        let end = if let &[c] = moved { bound(c, -1) } else { None };
        let (Some(start), Some(end)) = (starts.max(), end) else {
            return Err(WIDEST.unfit(format!(
                "`{}` does not run from a constant to one end that moves; shift it by the scalar that it starts at",
                kernel.show_domain(iname, &kernel.inames[iname].domain)
            )));
        };
        let loops = loops[from..to].to_vec();
        let launch = loops.iter().find(|l| kernel.inames[**l].tag == AxisTag::Launch);
        WIDEST.forbid(launch, |l| {
            let name = &kernel.inames[*l].name;
            format!("the launch `{name}` is inside `{around}`, and before that is no launch; name a loop inside it")
        })?;
        let end = check_recomputed(analysis, &loops, iname, &end.plus_constant(1))?;
        let ty = match kernel.type_of(&end, &[]) {
            Ok(ExprType::Scalar(ScalarType::I32)) => ScalarType::I32,
            Ok(_) | Err(_) => ScalarType::I64,
        };
        let all = |name: &str| ["", "_start", "_update"].map(|end| format!("{name}{end}")).to_vec();
        let name = lookup::made(kernel, asked.as_deref(), &format!("{own}_max"), all)?;
        Ok(Self { loops, start, end, name, ty })
    }

    /// The name of the scalar that it is computed in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Declares and computes it.
    pub fn compute(&self, kernel: &mut Kernel) -> VarId {
        let temporary = Variable::new(&self.name, self.ty, VarKind::Temporary, [], AddressSpace::Private);
        let var = kernel.vars.push(temporary);
        let copies = copy_loops(kernel, &self.loops, "max");
        copies.iter().for_each(|(_, l)| kernel.inames[*l].tag = AxisTag::Sequential);
        let mut insn = |end: &str, op, rhs| {
            let (name, lhs) = (format!("{}{end}", self.name), Access::scalar(var));
            let insn = Insn { name, lhs, op, rhs, predicate: None, tags: Default::default(), callee: None };
            Node::Insn(kernel.insns.push(insn))
        };
        let start = insn("_start", WriteOp::Assign, Expr::Int(self.start));
        let op = WriteOp::Update { op: UpdateOp::Max, atomic: false };
        let update = insn("_update", op, renamed(&self.end, &copies));
        let before = [vec![start], wrapped(copies.iter().map(|(_, l)| *l), vec![update])].concat();
        let is_outer = |node: &Node| matches!(node, Node::Loop(l, _) if *l == self.loops[0]);
        edit_siblings(&mut kernel.body, &is_outer, &mut |nodes| {
            if let Some(at) = nodes.iter().position(is_outer) {
                nodes.splice(at..at, before.clone());
            }
        });
        var
    }
}
