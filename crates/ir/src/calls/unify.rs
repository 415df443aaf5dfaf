//! Finding the arguments that make some statements a call of a kernel.

use super::state::{Goal, Matched, Mismatch, Site, State};
use super::{Arg, Binding};
use crate::affine::{Affine, Atom};
use crate::domain::Domain;
use crate::expr::{Access, BinaryOp, Expr, MathFn, Reduction};
use crate::ids::{Id, InameId, InsnId, VarId};
use crate::kernel::{AxisTag, Direction, Insn, Kernel, Node, VarKind};
use std::collections::VecDeque;

/// Maximum number of dead ends of a search; commuting operands that fit in both orders multiply
/// them.
const MAX_DEAD_ENDS: usize = 4_000;
/// Maximum number of choices that are kept to come back to: each is a copy of what has been found.
const MAX_CHOICES: usize = 256;
/// How deep operands are compared before both of their orders are tried.
const GLANCE: u32 = 2;

/// The arguments with which `nodes` are the body of `callee`: the same loops up to shifts, the same
/// instructions in the same order, operands of commuting operations in any order, and windows and
/// parameters as affine functions of the loops around.
///
/// Formula: a bijection of loops and instructions, affine values `p` of the parameters and windows
/// `w(f) = o + M f` such that for every access `A[f(l)]` of the callee the statements access
/// `B[o + M f(l)]`, where `o` and `M` do not depend on the loops of `nodes` and nothing that
/// `nodes` write is read to find `o`, `p` or the value of a scalar. So the instances and their
/// accesses are those of the callee.
///
/// The kernel holds no substitution rules (expand them first).
///
/// # Errors
/// The first difference.
pub fn unify(kernel: &Kernel, callee: &Kernel, nodes: &[Node]) -> Result<Binding, Mismatch> {
    let mut search = Search { state: State::new(kernel, callee), choices: VecDeque::new() };
    search.state.goals.push(Goal::Windows);
    search.state.goals.push(Goal::Nodes(&callee.body, nodes));
    search.run()?;
    search.state.binding(callee)
}

struct Search<'a> {
    state: State<'a>,
    /// What to go on with if the present way fails.
    choices: VecDeque<State<'a>>,
}

impl<'a> Search<'a> {
    /// Works through the goals; at a dead end tries the next alternative of the last choice. The
    /// error is that of the first way.
    fn run(&mut self) -> Matched {
        let mut first: Option<Mismatch> = None;
        let mut dead_ends = 0;
        while let Some(goal) = self.state.goals.pop() {
            let Err(mismatch) = self.step(goal) else { continue };
            let first = first.get_or_insert(mismatch);
            dead_ends += 1;
            match self.choices.pop_back() {
                Some(choice) if dead_ends < MAX_DEAD_ENDS => self.state = choice,
                Some(_) | None => return Err(first.clone()),
            }
        }
        Ok(())
    }

    fn step(&mut self, goal: Goal<'a>) -> Matched {
        match goal {
            Goal::Nodes(needed, found) => self.state.nodes(needed, found),
            Goal::Windows => self.state.solve_windows(),
            Goal::Expr(..) if self.state.is_index(goal) => self.state.same_index(goal),
            Goal::Expr(Expr::Binary(op, a, b), Expr::Binary(other, x, y)) if op == other && commutes(*op) => {
                self.either_order([a, b], [x, y]);
                Ok(())
            }
            Goal::Expr(Expr::Call(f, args), Expr::Call(g, others)) if f == g && commutes_first(*f) => {
                let ([a, b, rest @ ..], [x, y, others @ ..]) = (args.as_slice(), others.as_slice()) else {
                    return Ok(()); // the verifier knows how many arguments a function has
                };
                let rest = rest.iter().zip(others).map(|(a, b)| Goal::Expr(a, b));
                self.state.goals.extend(rest);
                self.either_order([a, b], [x, y]);
                Ok(())
            }
            Goal::Expr(needed, found) => self.state.expr(needed, found),
        }
    }

    /// Matches two operands in the order in which they stand, and else in the other one.
    fn either_order(&mut self, [a, b]: [&'a Expr; 2], [x, y]: [&'a Expr; 2]) {
        let could = |s: &State<'a>, a, x| s.could_match(a, x, GLANCE);
        let (straight, swapped) = (
            could(&self.state, a, x) && could(&self.state, b, y),
            could(&self.state, a, y) && could(&self.state, b, x),
        );
        if swapped && straight {
            let mut other = self.state.clone();
            other.goals.extend([Goal::Expr(b, x), Goal::Expr(a, y)]);
            self.choices.push_back(other);
            if self.choices.len() > MAX_CHOICES {
                self.choices.pop_front();
            }
        }
        let (x, y) = if swapped && !straight { (y, x) } else { (x, y) };
        self.state.goals.extend([Goal::Expr(b, y), Goal::Expr(a, x)]);
    }
}

fn commutes(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Mul
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Eq
        | BinaryOp::Ne => true,
        BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::Mod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Lt
        | BinaryOp::Le
        // `and` and `or` are short-circuit: the first operand guards the second
        | BinaryOp::And
        | BinaryOp::Or => false,
    }
}

fn commutes_first(f: MathFn) -> bool {
    matches!(f, MathFn::Fma | MathFn::Fmin | MathFn::Fmax | MathFn::Hypot)
}

impl<'a> State<'a> {
    fn new(kernel: &'a Kernel, callee: &'a Kernel) -> Self {
        let vars = callee.vars.len();
        Self {
            kernel,
            callee,
            goals: Vec::new(),
            inames: vec![None; callee.inames.len()],
            params: vec![None; vars],
            values: vec![None; vars],
            arrays: vec![None; vars],
            sites: Vec::new(),
            windows: vec![None; vars],
            insns: vec![None; callee.insns.len()],
            current: None,
        }
    }

    /// A mismatch in the instruction that is being matched.
    pub(super) fn differs(&self, found: impl Into<String>, needed: impl Into<String>) -> Mismatch {
        let what = match self.current {
            Some((needed, found)) => {
                format!("`{}` as `{}`", self.kernel.insns[found].name, self.callee.insns[needed].name)
            }
            None => "the statements".into(),
        };
        Mismatch::new(what, found, needed)
    }

    fn nodes(&mut self, needed: &'a [Node], found: &'a [Node]) -> Matched {
        if needed.len() != found.len() {
            let count = |n: usize| if n == 1 { "1 statement".to_owned() } else { format!("{n} statements") };
            return Err(self.differs(count(found.len()), count(needed.len())));
        }
        let mut goals = Vec::new();
        for (a, b) in needed.iter().zip(found) {
            goals.push((a, b));
        }
        let [(a, b), rest @ ..] = goals.as_slice() else { return Ok(()) };
        if !rest.is_empty() {
            self.goals.push(Goal::Nodes(&needed[1..], &found[1..]));
        }
        match (a, b) {
            (Node::Insn(a), Node::Insn(b)) => self.insn(*a, *b),
            (Node::Loop(a, inner), Node::Loop(b, body)) => {
                self.iname(*a, *b)?;
                self.goals.push(Goal::Nodes(inner, body));
                Ok(())
            }
            (Node::Insn(a), Node::Loop(b, _)) => Err(Mismatch::new(
                format!("instead of `{}`", self.callee.insns[*a].name),
                format!("the loop `{}`", self.kernel.inames[*b].name),
                "an instruction",
            )),
            (Node::Loop(a, _), Node::Insn(b)) => Err(Mismatch::new(
                format!("instead of the loop `{}`", self.callee.inames[*a].name),
                format!("the instruction `{}`", self.kernel.insns[*b].name),
                "a loop",
            )),
        }
    }

    /// Matches the values of two loops: the same up to a shift.
    fn iname(&mut self, needed: InameId, found: InameId) -> Matched {
        let (a, b) = (&self.callee.inames[needed], &self.kernel.inames[found]);
        let what = format!("`{}` as `{}`", b.name, a.name);
        let on_axis = |tag: AxisTag| matches!(tag, AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch);
        if (on_axis(a.tag) || on_axis(b.tag)) && a.tag != b.tag {
            return Err(Mismatch::new(what, format!("tag {}", b.tag), format!("{}", a.tag)));
        }
        let shown = format!("`{}`", self.kernel.show_domain(found, &b.domain));
        let wanted = format!("`{}`", self.callee.show_domain(needed, &a.domain));
        let differs = || Mismatch::new(what.clone(), shown.clone(), wanted.clone());
        if let (Some((lo, hi)), Some((from, to))) = (a.domain.as_range(needed), b.domain.as_range(found)) {
            let shift = match self.known(&lo) {
                Some(lo) => from.minus(&lo),
                None => {
                    self.equal(&lo, &from).map_err(|_| differs())?;
                    Affine::constant(0)
                }
            };
            self.inames[needed.index()] = Some((found, Affine::iname(found).minus(&shift)));
            return self.equal(&hi, &to.minus(&shift)).map_err(|_| differs());
        }
        self.inames[needed.index()] = Some((found, Affine::iname(found)));
        let before = self.params.clone();
        let mut symbols = Vec::new();
        a.domain.for_each_symbol(&mut |atom| symbols.push(atom.clone()));
        let known = self.take_by_name(&symbols);
        let same = |domain: &Domain| domain.substitute(&|atom| self.symbol(atom)) == b.domain;
        if known && same(&a.domain) {
            return Ok(());
        }
        self.params = before;
        Err(differs())
    }

    /// Gives parameters that have no value yet that of the loop or scalar of their name, a guess
    /// that whoever asks must check; whether all symbols have a value then.
    fn take_by_name(&mut self, symbols: &[Atom]) -> bool {
        for atom in symbols {
            if let Atom::Var(v) = atom
                && self.symbol(atom).is_none()
                && self.callee.vars[*v].kind == VarKind::Param
            {
                let name = &self.callee.vars[*v].name;
                let around = self.kernel.iname(name).filter(|i| !self.is_inside(*i)).map(Affine::iname);
                let scalar = || {
                    let var = self.kernel.var(name)?;
                    self.kernel.vars[var].is_integer_scalar().then(|| Affine::var(var))
                };
                self.params[v.index()] = around.or_else(scalar);
            }
        }
        symbols.iter().all(|atom| self.symbol(atom).is_some())
    }

    fn insn(&mut self, needed: InsnId, found: InsnId) -> Matched {
        self.current = Some((needed, found));
        self.insns[needed.index()] = Some(found);
        let (a, b): (&'a Insn, &'a Insn) = (&self.callee.insns[needed], &self.kernel.insns[found]);
        if a.op != b.op {
            let op = |i: &Insn| {
                let atomic = if i.is_atomic() { "atomic " } else { "" };
                format!("`{atomic}{}`", i.update_op().map_or("=", |op| op.update_symbol()))
            };
            return Err(self.differs(op(b), op(a)));
        }
        match (&a.predicate, &b.predicate) {
            (None, None) => {}
            (Some(p), Some(q)) => self.goals.push(Goal::Expr(p, q)),
            (None, Some(q)) => {
                return Err(self.differs(format!("the condition `{}`", self.kernel.show_expr(q)), "none"));
            }
            (Some(p), None) => {
                return Err(self.differs("no condition", format!("`{}`", self.callee.show_expr(p))));
            }
        }
        self.goals.push(Goal::Expr(&a.rhs, &b.rhs));
        self.access(&a.lhs, &b.lhs)
    }

    fn expr(&mut self, needed: &'a Expr, found: &'a Expr) -> Matched {
        match (needed, found) {
            (Expr::Load(a), _) if self.is_value(a.var) => self.value(a.var, found),
            (Expr::Load(a), Expr::Load(b)) => self.access(a, b),
            (Expr::Unary(op, a), Expr::Unary(other, b)) if op == other => self.then([(a, b)]),
            (Expr::Cast(ty, a), Expr::Cast(other, b)) if ty == other => self.then([(a, b)]),
            (Expr::Binary(op, a, b), Expr::Binary(other, x, y)) if op == other => self.then([(a, x), (b, y)]),
            (Expr::Select(c, a, b), Expr::Select(d, x, y)) => self.then([(c, d), (a, x), (b, y)]),
            (Expr::Call(f, args), Expr::Call(g, others)) if f == g => {
                self.goals.extend(args.iter().zip(others).map(|(a, b)| Goal::Expr(a, b)));
                Ok(())
            }
            (Expr::Reduce(a), Expr::Reduce(b)) => self.reduction(a, b),
            _ if same_literal(needed, found) => Ok(()),
            _ => Err(self.differs(
                format!("`{}`", self.kernel.show_expr(found)),
                format!("`{}`", self.callee.show_expr(needed)),
            )),
        }
    }

    /// Whether two expressions may match, by their operations alone.
    fn could_match(&self, needed: &'a Expr, found: &'a Expr, depth: u32) -> bool {
        if depth == 0 {
            return true;
        }
        let both = |a: &'a Expr, x: &'a Expr| self.could_match(a, x, depth - 1);
        match (needed, found) {
            _ if self.is_index(Goal::Expr(needed, found)) => found.as_affine().is_some(),
            (Expr::Load(a), _) if self.is_value(a.var) => true,
            (Expr::Load(a), Expr::Load(b)) => self.arrays[a.var.index()].is_none_or(|v| v == b.var),
            (Expr::Unary(op, a), Expr::Unary(other, x)) => op == other && both(a, x),
            (Expr::Cast(ty, a), Expr::Cast(other, x)) => ty == other && both(a, x),
            (Expr::Call(f, _), Expr::Call(g, _)) => f == g,
            (Expr::Binary(op, a, b), Expr::Binary(other, x, y)) => {
                op == other && ((both(a, x) && both(b, y)) || (commutes(*op) && both(a, y) && both(b, x)))
            }
            (Expr::Select(..), Expr::Select(..)) => true,
            (Expr::Reduce(a), Expr::Reduce(b)) => a.op == b.op,
            _ => same_literal(needed, found),
        }
    }

    fn then<const N: usize>(&mut self, pairs: [(&'a Expr, &'a Expr); N]) -> Matched {
        self.goals.extend(pairs.into_iter().rev().map(|(a, b)| Goal::Expr(a, b)));
        Ok(())
    }

    fn reduction(&mut self, needed: &'a Reduction, found: &'a Reduction) -> Matched {
        if needed.op != found.op || needed.inames.len() != found.inames.len() {
            let shown = |r: &Reduction| format!("`{}` over {} loops", r.op.reduction_name(), r.inames.len());
            return Err(self.differs(shown(found), shown(needed)));
        }
        for (a, b) in needed.inames.iter().zip(&found.inames) {
            self.iname(*a, *b)?;
        }
        self.then([(&needed.body, &found.body)])
    }

    /// Whether the callee's side is an affine function of its loops and parameters, and more than a
    /// literal.
    pub(super) fn is_index(&self, goal: Goal<'a>) -> bool {
        let Goal::Expr(needed, _) = goal else { return false };
        let Some(value) = needed.as_affine() else { return false };
        let mut affine = value.as_constant().is_none();
        value.for_each_symbol(&mut |atom| {
            affine &= match atom {
                Atom::Var(v) => self.callee.vars[*v].kind == VarKind::Param,
                Atom::Iname(_) | Atom::Floor(..) => true,
            };
        });
        affine
    }

    fn same_index(&mut self, goal: Goal<'a>) -> Matched {
        let Goal::Expr(needed, found) = goal else { return Ok(()) };
        match (needed.as_affine(), found.as_affine()) {
            (Some(a), Some(b)) => self.equal(&a, &b),
            _ => Err(self.differs(
                format!("`{}`", self.kernel.show_expr(found)),
                format!("`{}`", self.callee.show_expr(needed)),
            )),
        }
    }

    /// Whether it is an argument that is passed by value.
    fn is_value(&self, var: VarId) -> bool {
        let var = &self.callee.vars[var];
        var.shape.is_empty() && var.kind == VarKind::Argument(Direction::In)
    }

    fn value(&mut self, var: VarId, found: &'a Expr) -> Matched {
        let name = &self.callee.vars[var].name;
        let shown = || format!("`{}`", self.kernel.show_expr(found));
        match self.values[var.index()] {
            Some(value) if value == found => return Ok(()),
            Some(value) => {
                let needed = format!("`{}` for `{name}`", self.kernel.show_expr(value));
                return Err(self.differs(shown(), needed));
            }
            None => {}
        }
        let mut inside = false;
        found.for_each(&mut |e| {
            inside |= matches!(e, Expr::Iname(i) if self.is_inside(*i)) || matches!(e, Expr::Reduce(_))
        });
        if inside {
            return Err(self.differs(shown(), format!("one value of `{name}`")));
        }
        let needed = self.callee.vars[var].ty;
        let fits = match self.kernel.type_of(found, &[]) {
            Ok(crate::typing::ExprType::Scalar(ty)) => ty == needed,
            Ok(ty) => ty.stores_in(needed),
            Err(_) => false,
        };
        if !fits {
            return Err(self.differs(shown(), format!("{needed} for `{name}`")));
        }
        self.values[var.index()] = Some(found);
        Ok(())
    }

    fn access(&mut self, needed: &'a Access, found: &'a Access) -> Matched {
        let (a, b) = (&self.callee.vars[needed.var], &self.kernel.vars[found.var]);
        let shown = || format!("`{}`", self.kernel.show_access(found));
        if a.ty != b.ty {
            return Err(
                self.differs(format!("{} in {}", b.ty, shown()), format!("{} for `{}`", a.ty, a.name))
            );
        }
        match self.arrays[needed.var.index()] {
            Some(var) if var != found.var => {
                let needed = format!("an element of `{}` for `{}`", self.kernel.vars[var].name, a.name);
                return Err(self.differs(shown(), needed));
            }
            Some(_) => {}
            None => self.arrays[needed.var.index()] = Some(found.var),
        }
        // An index that is itself read from an array: the whole axis is passed.
        for (k, e) in needed.index.iter().enumerate().filter(|(_, e)| e.as_affine().is_none()) {
            let Some(other) = found.index.get(k).filter(|_| needed.index.len() == found.index.len()) else {
                return Err(self.differs(shown(), format!("`{}`", self.callee.show_access(needed))));
            };
            self.goals.push(Goal::Expr(e, other));
        }
        self.sites.push(Site { var: needed.var, needed: &needed.index, found: &found.index });
        Ok(())
    }

    /// Whether a loop of the caller belongs to the statements.
    pub(super) fn is_inside(&self, iname: InameId) -> bool {
        self.inames.iter().flatten().any(|(i, _)| *i == iname)
    }

    pub(super) fn mentions_inside(&self, e: &Affine) -> bool {
        e.any_symbol(&mut |atom| matches!(atom, Atom::Iname(i) if self.is_inside(*i)))
    }

    /// The value of a symbol of the callee, as far as it is known.
    fn symbol(&self, atom: &Atom) -> Option<Affine> {
        match atom {
            Atom::Iname(i) => self.inames[i.index()].as_ref().map(|(_, value)| value.clone()),
            Atom::Var(v) => self.params[v.index()].clone().or_else(|| self.scalar(*v)),
            Atom::Floor(..) => None,
        }
    }

    /// The scalar that a scalar argument is, if it is one that statements before this one have
    /// accessed.
    fn scalar(&self, var: VarId) -> Option<Affine> {
        let array = self.arrays[var.index()].filter(|a| self.kernel.vars[*a].shape.is_empty())?;
        self.callee.vars[var].shape.is_empty().then(|| Affine::var(array))
    }

    /// The value of an expression of the callee, if all its symbols are known.
    pub(super) fn known(&self, e: &Affine) -> Option<Affine> {
        let unknown = e.any_symbol(&mut |atom| self.symbol(atom).is_none());
        (!unknown).then(|| e.substitute(&|atom| self.symbol(atom)))
    }

    /// Makes an expression of the callee equal to one of the caller: by a parameter that has no
    /// value yet, or by several where they have the names of what they stand for.
    pub(super) fn equal(&mut self, needed: &Affine, found: &Affine) -> Matched {
        let differs = |this: &Self| {
            this.differs(
                format!("`{}`", this.kernel.show_affine(found)),
                format!("`{}`", this.callee.show_affine(needed)),
            )
        };
        if let Some(value) = self.known(needed) {
            return if value == *found { Ok(()) } else { Err(differs(self)) };
        }
        let open: Vec<_> = needed
            .terms()
            .iter()
            .filter_map(|(atom, c)| match atom {
                Atom::Var(v) if self.params[v.index()].is_none() => Some((*v, *c)),
                Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => None,
            })
            .collect();
        let single = match open.as_slice() {
            [(param, c)] if c.abs() == 1 => {
                self.known(&needed.minus(&Affine::var(*param).times(*c))).map(|rest| (*param, *c, rest))
            }
            _ => None,
        };
        let Some((param, c, rest)) = single else {
            let before = self.params.clone();
            let mut symbols = Vec::new();
            needed.for_each_symbol(&mut |atom| symbols.push(atom.clone()));
            if self.take_by_name(&symbols) && self.known(needed).as_ref() == Some(found) {
                return Ok(());
            }
            self.params = before;
            return Err(differs(self));
        };
        let value = found.minus(&rest).times(c);
        if self.mentions_inside(&value) {
            return Err(differs(self));
        }
        self.params[param.index()] = Some(value);
        Ok(())
    }

    /// Checks what is read to find the arguments, and puts them together.
    fn binding(&self, callee: &Kernel) -> Result<Binding, Mismatch> {
        let written: Vec<VarId> =
            callee.insns.values().filter_map(|i| self.arrays[i.lhs.var.index()]).collect();
        let whole = |what: &str| Mismatch::new(what, "nothing that it stands for", "one");
        let mut args = Vec::with_capacity(callee.vars.len());
        for (id, var) in callee.vars.iter() {
            let k = id.index();
            let arg = match (&self.params[k], self.values[k], &self.windows[k]) {
                (Some(value), ..) => Arg::Param(value.clone()),
                (None, Some(value), _) => Arg::Value(value.clone()),
                (None, None, Some(window)) => Arg::Window(window.clone()),
                (None, None, None) => Arg::Unused,
            };
            if let Some(v) = arg.reads().into_iter().find(|v| written.contains(v)) {
                let found = format!("`{}`, which the statements write", self.kernel.vars[v].name);
                return Err(Mismatch::new(
                    format!("the argument `{}`", var.name),
                    found,
                    "what they do not write",
                ));
            }
            args.push(arg);
        }
        let inames = self.inames.iter().cloned().collect::<Option<Vec<_>>>();
        let insns = self.insns.iter().copied().collect::<Option<Vec<_>>>();
        Ok(Binding {
            inames: inames.ok_or_else(|| whole("a loop of the callee"))?,
            args,
            insns: insns.ok_or_else(|| whole("an instruction of the callee"))?,
        })
    }
}

/// Whether both are the same number; in floating-point arithmetic `2` is `2.0`.
fn same_literal(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Int(x), Expr::Int(y)) => x == y,
        (Expr::Real(x), Expr::Real(y)) => x == y,
        (Expr::Int(i), Expr::Real(r)) | (Expr::Real(r), Expr::Int(i)) => {
            i.unsigned_abs() < 1 << 53 && r.0 == *i as f64
        }
        _ => false,
    }
}
