//! Loops: what becomes a counted loop, what a substitution, what a guard.

use super::{Lower, guarded};
use crate::ast::{Block, Declare, Expr, For, IntFn, LoopKind, Op, Stmt};
use crate::axes::range_of;
use crate::bounds::{self, Bounds, mentions_any};
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::launch_bounds::LoopBounds;
use crate::value::{Value, condition, divide};
use kingpost_analysis::placement::first_bounded_by;
use kingpost_ir::{AddressSpace, Affine, Atom, AxisTag, Constraint, Id, InameId, Node, ScalarType, VarId};

/// Iterations of a loop of varying length that count as few. NVVM unrolls by up to four; twice that
/// is a margin.
const SHORT: i128 = 8;

/// How a loop is written.
pub(super) enum Form {
    /// Nothing runs.
    Empty,
    /// The iname has one value; its name stands for it.
    Value(Affine),
    /// The iname takes these values, written out.
    Values(Vec<Affine>),
    /// A counted loop.
    Counted { lower: Vec<Vec<Affine>>, upper: Vec<Vec<Affine>>, stride: Option<(i64, i64)> },
}

/// A loop in its context.
pub(super) struct Shape {
    pub(super) form: Form,
    /// Conditions around the loop.
    outer: Vec<Constraint>,
    /// Conditions around its body.
    pub(super) inner: Vec<Vec<Constraint>>,
    pub(super) range: Interval,
    /// What the body may take as known.
    pub(super) facts: Vec<Constraint>,
}

/// Whether a constraint may hold.
fn is_possible(c: &Constraint) -> bool {
    c.as_constant() != Some(false)
}

type Body<'a, 'k> = &'a mut dyn FnMut(&mut Lower<'k>) -> Result<Block, CodegenError>;

impl<'k> Lower<'k> {
    /// Code of a loop of the tree that holds no barrier.
    pub(super) fn plain_loop(&mut self, iname: InameId, body: &'k [Node]) -> Result<Block, CodegenError> {
        let shape = self.shape(iname, true)?;
        let written = written_vars(self.kernel, body);
        self.check_unchanged(iname, &shape, &written)?;
        self.emit(iname, shape, &written, &mut |this| this.nodes(Some(iname), body, &[]))
    }

    /// Code of a loop of a reduction: always in order, on every work-item, as a loop or written
    /// out.
    pub(super) fn reduction_loop(
        &mut self,
        iname: InameId,
        body: Body<'_, 'k>,
    ) -> Result<Block, CodegenError> {
        let shape = self.shape(iname, false)?;
        self.emit(iname, shape, &[], body)
    }

    fn emit(
        &mut self,
        iname: InameId,
        shape: Shape,
        written: &[VarId],
        body: Body<'_, 'k>,
    ) -> Result<Block, CodegenError> {
        let outer = self.noted_conditions(&shape.outer);
        let mark = self.env.mark();
        for c in &shape.outer {
            self.env.learn(c);
        }
        let code = self.emit_form(iname, shape, written, body);
        self.env.forget(mark);
        Ok(guarded(outer, code?))
    }

    /// The loop itself.
    fn emit_form(
        &mut self,
        iname: InameId,
        shape: Shape,
        written: &[VarId],
        body: Body<'_, 'k>,
    ) -> Result<Block, CodegenError> {
        match shape.form {
            Form::Empty => Ok(Block::new()),
            Form::Value(value) => {
                self.env.set_value(iname, Some(value));
                let code = self.body(iname, &shape.inner, &shape.facts, body);
                self.env.set_value(iname, None);
                code
            }
            Form::Values(values) => {
                let mut code = Block::new();
                for v in values {
                    if self.barriers.holds(iname) {
                        code.push(Stmt::Iteration(self.env.name(iname).clone()));
                    }
                    self.env.set_value(iname, Some(v));
                    let copy = self.body(iname, &shape.inner, &shape.facts, body);
                    self.env.set_value(iname, None);
                    code.extend(copy?);
                }
                Ok(code)
            }
            Form::Counted { lower, upper, stride } => {
                self.env.set_range(iname, shape.range);
                let bounds = LoopBounds { lower: lower.clone(), upper: upper.clone() };
                self.env.reach.set_bounds(iname, bounds);
                let (mut code, mut head) = self.head(iname, &lower, &upper, stride, shape.range, written);
                head.body = self.body(iname, &shape.inner, &shape.facts, body)?;
                if !head.body.is_empty() {
                    code.extend(self.runs(iname, [&lower, &upper], &head));
                    code.push(Stmt::For(head));
                    return Ok(code);
                }
                Ok(Block::new())
            }
        }
    }

    fn body(
        &mut self,
        iname: InameId,
        inner: &[Vec<Constraint>],
        facts: &[Constraint],
        body: Body<'_, 'k>,
    ) -> Result<Block, CodegenError> {
        let inner: Vec<Vec<Constraint>> =
            inner.iter().map(|d| d.iter().map(|c| self.env.resolve_constraint(c)).collect()).collect();
        let guards = match &inner[..] {
            [one] if one.iter().all(is_possible) => self.noted_conditions(one),
            many => match self.disjunction(many) {
                Some(guards) => guards,
                None => return Ok(Block::new()),
            },
        };
        let mark = self.env.mark();
        for c in facts {
            let c = self.env.resolve_constraint(c);
            self.env.learn(&c);
        }
        self.scope.push(iname);
        let code = body(self);
        self.scope.pop();
        self.env.forget(mark);
        Ok(guarded(guards, code?))
    }

    /// Conditions of a union of conjunctions; `None` if it never holds.
    fn disjunction(&self, disjuncts: &[Vec<Constraint>]) -> Option<Vec<Expr>> {
        let possible: Vec<_> = disjuncts.iter().filter(|d| d.iter().all(is_possible)).collect();
        match possible.as_slice() {
            [] => None,
            [one] => Some(self.conditions(one)),
            many => {
                let mut sum: Option<Expr> = None;
                for d in many {
                    let all = self.conditions(d).into_iter().reduce(|a, b| Expr::binary(Op::And, a, b));
                    let Some(all) = all else { return Some(Vec::new()) };
                    sum = Some(match sum {
                        None => all,
                        Some(s) => Expr::binary(Op::Or, s, all),
                    });
                }
                Some(sum.into_iter().collect())
            }
        }
    }

    /// Code of those constraints that are not known to hold.
    fn conditions(&self, constraints: &[Constraint]) -> Vec<Expr> {
        constraints.iter().filter(|c| !self.env.holds(c)).map(|c| condition(&self.env, c)).collect()
    }

    /// The same of constraints that are a guard, which it keeps.
    fn noted_conditions(&mut self, constraints: &[Constraint]) -> Vec<Expr> {
        let open: Vec<&Constraint> = constraints.iter().filter(|c| !self.env.holds(c)).collect();
        let code = open.iter().map(|c| condition(&self.env, c)).collect();
        self.note_guards(&open);
        code
    }

    /// How a loop is written in this context. `tree`: whether it is one of the tree, which may be
    /// on an axis.
    fn shape(&mut self, iname: InameId, tree: bool) -> Result<Shape, CodegenError> {
        // Its own domain is not simplified by what that domain implies, nor by another copy's
        // range.
        self.env.set_range(iname, Interval::ALL);
        let info = &self.kernel.inames[iname];
        let env = &self.env;
        let hardware = if tree { env.hardware_of(info.tag) } else { None };
        if let (Some(hardware), Some(start)) = (hardware, &self.axes.start[iname.index()]) {
            let value = Affine::iname(hardware).plus(start);
            return Ok(self.axis_shape(iname, value));
        }
        let mut disjuncts = bounds::of_domain(&info.domain, iname, &|c| env.resolve_constraint(c));
        disjuncts.retain(|b| !env.is_impossible(b));
        if disjuncts.is_empty() {
            return Ok(Shape::new(Form::Empty, Interval::point(0)));
        }
        let range = range_of(env, &disjuncts);
        let single = disjuncts.len() == 1;
        let shape = if single {
            self.single(iname, disjuncts.swap_remove(0), range)?
        } else {
            self.union(iname, disjuncts, range)?
        };
        if info.tag == AxisTag::Unrolled { self.unrolled(iname, shape, single) } else { Ok(shape) }
    }

    /// The value of a loop on a hardware axis, if all indices of the axis are iterations of it.
    pub(super) fn whole_axis(&mut self, iname: InameId) -> Result<Option<Affine>, CodegenError> {
        let shape = self.shape(iname, true)?;
        let bare = self.conditions(&shape.outer).is_empty() && shape.inner.iter().all(Vec::is_empty);
        Ok(match shape.form {
            Form::Value(value) if bare => Some(value),
            Form::Value(_) | Form::Empty | Form::Values(_) | Form::Counted { .. } => None,
        })
    }

    fn axis_shape(&self, iname: InameId, value: Affine) -> Shape {
        let domain = &self.kernel.inames[iname].domain;
        let replace = |a: &Atom| (*a == Atom::Iname(iname)).then(|| value.clone());
        let disjuncts =
            bounds::of_domain(domain, iname, &|c| self.env.resolve_constraint(&c.substitute(&replace)));
        let mut shape = Shape::new(Form::Value(value.clone()), self.env.range(&value));
        match disjuncts.as_slice() {
            [] => shape.form = Form::Empty,
            [one] => {
                shape.outer = one.all.iter().filter(|c| !self.env.holds(c)).cloned().collect();
                shape.facts = one.all.clone();
            }
            many => shape.inner = many.iter().map(|b| b.all.clone()).collect(),
        }
        shape
    }

    fn single(&self, iname: InameId, b: Bounds, range: Interval) -> Result<Shape, CodegenError> {
        let mut shape = Shape::new(Form::Empty, range);
        shape.outer = b.outer;
        shape.facts = b.all.clone();
        shape.inner = vec![b.inner];
        if let Some(value) = b.exact {
            shape.inner = vec![b.all];
            shape.form = Form::Value(value);
            return Ok(shape);
        }
        let lower = self.strongest(&b.lower, false);
        let upper = self.strongest(&b.upper, true);
        for (list, bound) in [(&lower, "lower"), (&upper, "upper")] {
            if list.is_empty() {
                return Err(CodegenError::Unbounded { iname: self.kernel.inames[iname].name.clone(), bound });
            }
        }
        if let ([lo], [hi], None) = (lower.as_slice(), upper.as_slice(), b.stride)
            && hi.minus(lo).as_constant() == Some(1)
        {
            shape.form = Form::Value(lo.clone());
            return Ok(shape);
        }
        shape.form = Form::Counted { lower: vec![lower], upper: vec![upper], stride: b.stride };
        Ok(shape)
    }

    /// The hull, with the union as a guard of the body.
    fn union(&self, iname: InameId, disjuncts: Vec<Bounds>, range: Interval) -> Result<Shape, CodegenError> {
        let mut shape = Shape::new(Form::Empty, range);
        shape.inner.clear();
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        // guards leave out what the range says: the hull of disjuncts without points may not leave
        // it
        let (first, last) =
            (range.finite_lo().map(Affine::constant), range.finite_hi().map(Affine::constant));
        for b in disjuncts {
            let exact = b.exact.clone();
            let mut l = exact.clone().map_or(b.lower, |e| vec![e]);
            let mut u = exact.map_or(b.upper, |e| vec![e.plus_constant(1)]);
            for (list, bound) in [(&l, "lower"), (&u, "upper")] {
                if list.is_empty() {
                    return Err(CodegenError::Unbounded {
                        iname: self.kernel.inames[iname].name.clone(),
                        bound,
                    });
                }
            }
            l.extend(first.clone());
            u.extend(last.as_ref().map(|e| e.plus_constant(1)));
            lower.push(self.strongest(&l, false));
            upper.push(self.strongest(&u, true));
            shape.inner.push(b.all);
        }
        for lists in [&mut lower, &mut upper] {
            lists.sort();
            lists.dedup();
        }
        shape.form = Form::Counted { lower, upper, stride: None };
        Ok(shape)
    }

    /// Without bounds that another one implies.
    fn strongest(&self, list: &[Affine], upper: bool) -> Vec<Affine> {
        let implied = |weak: &Affine, strong: &Affine| {
            let d = if upper { weak.minus(strong) } else { strong.minus(weak) };
            self.env.is_non_negative(&d)
        };
        let mut kept: Vec<Affine> = Vec::new();
        for b in list {
            if !kept.iter().any(|s| implied(b, s)) {
                kept.retain(|s| !implied(s, b));
                kept.push(b.clone());
            }
        }
        kept
    }

    /// The head of a counted loop, and declarations that it needs before.
    fn head(
        &mut self,
        iname: InameId,
        lower: &[Vec<Affine>],
        upper: &[Vec<Affine>],
        stride: Option<(i64, i64)>,
        range: Interval,
        written: &[VarId],
    ) -> (Block, For) {
        let mut before = Block::new();
        let step = stride.map_or(1, |(step, _)| step);
        let mut lo = self.extreme(lower, IntFn::Max, IntFn::Min);
        if let Some((step, residue)) = stride {
            lo = self.first_of_stride(&lo, step, residue);
        }
        let hi = self.extreme(upper, IntFn::Min, IntFn::Max);
        let end = Interval::new(range.lo, range.hi + i128::from(step));
        let wide = !end.fits_i32();
        if step > 1 && !end.is_finite() {
            // the counter passes its end
            for e in upper.iter().flatten() {
                let _ = self.integer(&e.plus_constant(step));
            }
        }
        let ty = if wide { ScalarType::I64 } else { ScalarType::I32 };
        let short_triangle = range.hi - range.lo < SHORT && self.length_varies(lower, upper);
        let (lower, _, _) = lo.as_integer(&self.env);
        let (mut upper_code, hi_ty, _) = hi.as_integer(&self.env);
        let changes = upper.iter().flatten().any(|e| mentions_any(e, written));
        if changes {
            // The bound is taken once, before the body can change what it is made of.
            let stem = format!("{}_end", self.kernel.inames[iname].name);
            let name = self.env.names.fresh(&stem);
            let value = std::mem::replace(&mut upper_code, Expr::var(&name));
            before.push(Stmt::Declare(Declare::constant(name, hi_ty, value)));
        }
        let kind = match self.kernel.inames[iname].tag {
            AxisTag::Vector => LoopKind::Vector,
            AxisTag::Sequential
            | AxisTag::Unrolled
            | AxisTag::Rolled
            | AxisTag::Group(_)
            | AxisTag::Local(_)
            | AxisTag::Launch => LoopKind::Sequential,
        };
        let rolled = short_triangle || self.kernel.inames[iname].tag == AxisTag::Rolled;
        let name = self.env.name(iname).clone();
        (
            before,
            For { name, ty, lower, upper: upper_code, step, kind, rolled, flag: None, body: Block::new() },
        )
    }

    /// Whether the number of iterations depends on a loop around this one, a hardware axis not
    /// counted.
    fn length_varies(&self, lower: &[Vec<Affine>], upper: &[Vec<Affine>]) -> bool {
        let mut pairs =
            lower.iter().flatten().flat_map(|lo| upper.iter().flatten().map(move |hi| hi.minus(lo)));
        pairs.any(|length| {
            let mut varies = false;
            length.for_each_symbol(&mut |a| {
                varies |= matches!(a, Atom::Iname(i) if !self.env.is_hardware(*i));
            });
            varies
        })
    }

    /// `outer` over disjuncts of `inner` over bounds.
    fn extreme(&self, lists: &[Vec<Affine>], inner: IntFn, outer: IntFn) -> Value {
        let combine = |f: IntFn, a: Value, b: Value| {
            if let (Value::Affine(x), Value::Affine(y)) = (&a, &b) {
                let (less, more) = if f == IntFn::Min { (x, y) } else { (y, x) };
                if self.env.is_non_negative(&more.minus(less)) {
                    return a;
                }
                if self.env.is_non_negative(&less.minus(more)) {
                    return b;
                }
            }
            let ((ea, ta, ra), (eb, tb, rb)) = (a.as_integer(&self.env), b.as_integer(&self.env));
            let ty = if ta == ScalarType::I64 || tb == ScalarType::I64 {
                ScalarType::I64
            } else {
                ScalarType::I32
            };
            Value::Int(Expr::IntCall(f, ty, Box::new(ea), Box::new(eb)), ty, ra.join(rb))
        };
        lists
            .iter()
            .filter_map(|l| l.iter().cloned().map(Value::Affine).reduce(|a, b| combine(inner, a, b)))
            .reduce(|a, b| combine(outer, a, b))
            .unwrap_or(Value::Affine(Affine::constant(0)))
    }

    /// The first value from `lo` on that is `residue` modulo `step`.
    fn first_of_stride(&self, lo: &Value, step: i64, residue: i64) -> Value {
        use crate::value::arithmetic;
        if let Value::Affine(e) = lo {
            // lo + ((residue - lo) mod step)
            return Value::Affine(e.plus(&Affine::constant(residue).minus(e).modulo(step)));
        }
        let constant = |c| Value::Affine(Affine::constant(c));
        let gap = arithmetic(&self.env, Op::Sub, constant(residue), lo.clone());
        let (code, ty, range) = divide(&self.env, gap, constant(step), IntFn::Mod);
        arithmetic(&self.env, Op::Add, lo.clone(), Value::Int(code, ty, range))
    }

    /// Code of a loop that holds a barrier: conditions that differ among work-items go to the runs
    /// of statements between barriers, and bounds must not differ. In OpenCL, so do conditions of the
    /// group alone: pocl 3.1 miscompiles long kernels whose barriers stand under one. `bp30.2d.12x1` of
    /// the study of Świrydowicz et al. 2019 gives zeros, but is right with `-cl-opt-disable`.
    pub(super) fn loop_with_barrier(
        &mut self,
        iname: InameId,
        body: &'k [Node],
        pending: &[Expr],
    ) -> Result<Block, CodegenError> {
        let mut shape = self.shape(iname, true)?;
        self.check_uniform_bounds(iname, &shape)?;
        let written = written_vars(self.kernel, body);
        self.check_unchanged(iname, &shape, &written)?;
        let mut pending = pending.to_vec();
        let (outer, differing): (Vec<_>, Vec<_>) =
            std::mem::take(&mut shape.outer).into_iter().partition(|c| self.may_skip_barriers(c.expr()));
        self.check_stable(iname, &differing)?;
        let outer = self.conditions(&outer);
        pending.extend(self.conditions(&differing));
        let inner = std::mem::replace(&mut shape.inner, vec![Vec::new()]);
        let facts = std::mem::take(&mut shape.facts);
        let code = self.emit_form(iname, shape, &written, &mut |this| {
            let inner: Vec<Vec<Constraint>> =
                inner.iter().map(|d| d.iter().map(|c| this.env.resolve_constraint(c)).collect()).collect();
            this.check_stable(iname, &inner.concat())?;
            let mut pending = pending.clone();
            match this.disjunction(&inner) {
                Some(guards) => pending.extend(guards),
                None => pending.push(Expr::Bool(false)),
            }
            // only behind the guards, which they would imply
            let mark = this.env.mark();
            for c in &facts {
                let c = this.env.resolve_constraint(c);
                this.env.learn(&c);
            }
            let code = this.nodes(Some(iname), body, &pending);
            this.env.forget(mark);
            code
        });
        Ok(guarded(outer, code?))
    }

    /// What is written out inside the loop must not change there; the bounds of a counted loop
    /// are taken before.
    fn check_unchanged(&self, iname: InameId, shape: &Shape, written: &[VarId]) -> Result<(), CodegenError> {
        let values = match &shape.form {
            Form::Value(value) => std::slice::from_ref(value),
            Form::Values(values) => values,
            Form::Empty | Form::Counted { .. } => &[],
        };
        // other work-items may still be reading the bounds of the loop
        let shared = |v: &&VarId| {
            let loops = std::slice::from_ref(&iname);
            self.kernel.vars[**v].space != AddressSpace::Private
                && self.axes.work_items() > 1
                && first_bounded_by(self.kernel, loops, **v).is_some()
        };
        if let Some(var) = written.iter().find(shared) {
            return Err(self.changing(iname, *var));
        }
        let inside = shape.inner.iter().flatten().map(Constraint::expr).chain(values);
        for e in inside {
            if let Some(var) = written.iter().find(|v| mentions_any(e, &[**v])) {
                return Err(self.changing(iname, *var));
            }
        }
        Ok(())
    }

    fn changing(&self, iname: InameId, var: VarId) -> CodegenError {
        let (iname, var) = (self.kernel.inames[iname].name.clone(), self.kernel.vars[var].name.clone());
        CodegenError::ChangingDomain { iname, var }
    }

    /// A condition that is written out again after a barrier must still say the same.
    fn check_stable(&self, iname: InameId, constraints: &[Constraint]) -> Result<(), CodegenError> {
        for c in constraints {
            let mut temporary = None;
            c.expr().for_each_symbol(&mut |a| {
                if let Atom::Var(v) = a
                    && !self.env.is_param(*v)
                {
                    temporary = Some(*v);
                }
            });
            if let Some(v) = temporary {
                let why = format!("its domain depends on `{}`", self.kernel.vars[v].name);
                return Err(self.divergent(iname, why));
            }
        }
        Ok(())
    }

    fn divergent(&self, iname: InameId, why: String) -> CodegenError {
        CodegenError::DivergentBarrier { iname: self.kernel.inames[iname].name.clone(), why }
    }

    fn check_uniform_bounds(&self, iname: InameId, shape: &Shape) -> Result<(), CodegenError> {
        let Form::Counted { lower, upper, .. } = &shape.form else { return Ok(()) };
        match lower.iter().chain(upper).flatten().find(|e| !self.is_uniform(e)) {
            None => Ok(()),
            Some(e) => {
                let code = crate::print::expression(&self.integer(e));
                Err(self.divergent(iname, format!("a bound is `{code}`")))
            }
        }
    }

    /// Whether a condition on an expression may stand around barriers.
    fn may_skip_barriers(&self, e: &Affine) -> bool {
        let inside = self.target.cuts_at_barriers && self.env.is_of_group(e);
        self.is_uniform(e) && !inside
    }

    /// Whether an expression has one value for all work-items of a group.
    pub(super) fn is_uniform(&self, e: &Affine) -> bool {
        let mut uniform = true;
        e.for_each_symbol(&mut |a| {
            uniform &= match a {
                Atom::Iname(i) => !self.env.is_work_item(*i),
                Atom::Var(v) => self.env.is_param(*v) || self.is_uniform_scalar(*v),
                Atom::Floor(..) => true,
            };
        });
        uniform
    }
}

impl Shape {
    fn new(form: Form, range: Interval) -> Self {
        Self { form, outer: Vec::new(), inner: vec![Vec::new()], range, facts: Vec::new() }
    }
}

impl crate::env::Env<'_> {
    /// Whether a disjunct has no point here.
    fn is_impossible(&self, b: &Bounds) -> bool {
        let empty = |l: &Affine, u: &Affine| self.is_non_negative(&l.minus(u));
        b.outer.iter().any(|c| match c {
            Constraint::NonNegative(e) => self.is_non_negative(&e.times(-1).plus_constant(-1)),
            Constraint::Zero(e) => {
                let r = self.range(e);
                r.lo > 0 || r.hi < 0
            }
        }) || b.lower.iter().any(|l| b.upper.iter().any(|u| empty(l, u)))
    }
}

/// Scalars that instructions in these nodes write.
fn written_vars(kernel: &kingpost_ir::Kernel, nodes: &[Node]) -> Vec<VarId> {
    let mut vars = Vec::new();
    for node in nodes {
        match node {
            Node::Insn(insn) => {
                let var = kernel.insns[*insn].lhs.var;
                if kernel.vars[var].is_integer_scalar() {
                    vars.push(var);
                }
            }
            Node::Loop(_, body) => vars.extend(written_vars(kernel, body)),
        }
    }
    vars
}
