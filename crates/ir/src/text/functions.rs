//! Calls with arguments: the statements of a callee, or of a function, with these put in.

use super::cursor::Cursor;
use super::error::{Fail, fail, fail_help};
use super::lex::Span;
use super::line::Line;
use super::names::plain;
use super::parse::Parser;
use crate::affine::{Affine, Atom};
use crate::calls::{Window, WindowAxis};
use crate::domain::Domain;
use crate::expr::{Access, Expr, Reduction};
use crate::guards::size;
use crate::ids::{Arena, CalleeId, Id, InameId, VarId};
use crate::kernel::{Direction, Iname, Insn, Kernel, Node, VarKind, Variable};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, Fail>;

/// What a variable of a function stands for.
enum Actual {
    Param(Affine),
    /// A scalar with the value.
    Scalar(VarId),
    Window(Window),
    /// A temporary of its own.
    Own(VarId),
}

/// The parts of a function in the kernel that calls it.
struct Instance {
    actuals: Vec<Actual>,
    inames: Vec<InameId>,
}

impl<'s> Parser<'s> {
    /// Reads `call name(argument = value, ...)`: what is done.
    pub(super) fn call_with_arguments(&mut self, line: &Line<'s>) -> Option<Vec<Node>> {
        self.made.outside = None;
        self.whole_line(line, |p, c| {
            let span = c.whole_span();
            let callee = p.name_of_call(c)?;
            let kernel = p.kernel.callees[callee].kernel.with_rules_expanded();
            p.count(kernel.insns.values().flat_map(|insn| insn.expressions()).map(size).sum(), span)?;
            let (actuals, mut nodes) = p.actuals(c, &kernel)?;
            c.expect_end("the call")?;
            let mark = if p.made.functions.contains(&callee) { None } else { Some(callee) };
            nodes.extend(p.instance(&kernel, actuals, mark, span)?);
            Ok(nodes)
        })
    }

    /// Reads the arguments in parentheses. What numbers are is stored before, with their types.
    fn actuals(&mut self, c: &mut Cursor<'_, 's>, callee: &Kernel) -> Result<(Vec<Actual>, Vec<Node>)> {
        let mut actuals: Vec<Option<Actual>> = callee.vars.values().map(|_| None).collect();
        let (mut nodes, mut values) = (Vec::new(), Vec::new());
        c.expect_symbol("(", "and the arguments")?;
        while !c.take_symbol(")") {
            let (name, span) = c.expect_word("the name of an argument")?;
            let Some(var) = callee.var(plain(name)).filter(|v| is_argument(&callee.vars[*v])) else {
                return Err(fail(span, format!("`{}` has no argument `{}`", callee.name, plain(name))));
            };
            c.expect_symbol("=", "and what the argument is")?;
            let declared = &callee.vars[var];
            let actual = if declared.kind == VarKind::Param {
                Actual::Param(self.affine(c)?)
            } else if declared.shape.is_empty() && declared.kind == VarKind::Argument(Direction::In) {
                let value = self.expression(c)?;
                Actual::Scalar(match self.unchanging(&value, declared) {
                    Some(scalar) => scalar,
                    None => {
                        let scalar = self.scalar(&declared.name, declared.ty);
                        values.push(self.store(scalar, value, None, span.to(c.last_span())));
                        scalar
                    }
                })
            } else {
                Actual::Window(self.window(c, declared)?)
            };
            if actuals[var.index()].replace(actual).is_some() {
                return Err(fail(span, format!("the argument `{}` stands there twice", plain(name))));
            }
            if !c.is_symbol(")") {
                c.expect_symbol(",", "or `)`")?;
            }
        }
        nodes.extend(values.into_iter().map(Node::Insn));
        let whole = c.whole_span();
        let actuals = actuals.into_iter().zip(callee.vars.iter()).map(|(actual, (_, var))| match actual {
            Some(actual) => Ok(actual),
            None if var.kind == VarKind::Temporary => {
                let name = self.unnamed.fresh(&var.name);
                Ok(Actual::Own(self.kernel.vars.push(Variable { name, ..var.clone() })))
            }
            None => Err(fail(whole, format!("the call lacks the argument `{}`", var.name))),
        });
        Ok((actuals.collect::<Result<_>>()?, nodes))
    }

    /// A scalar of a type that nothing writes, if a value is one.
    fn unchanging(&self, value: &Expr, declared: &Variable) -> Option<VarId> {
        let var = value.as_load()?.var;
        let Variable { ty, kind, shape, .. } = &self.kernel.vars[var];
        let is_input = matches!(kind, VarKind::Param | VarKind::Argument(Direction::In));
        (is_input && shape.is_empty() && *ty == declared.ty).then_some(var)
    }

    /// Reads `x`, or `x[i, 0..]`: an index that goes on by `..` is an axis of the argument.
    fn window(&mut self, c: &mut Cursor<'_, 's>, declared: &Variable) -> Result<Window> {
        let (name, span) = c.expect_word("an array, or a part of one such as `x[i, 0..]`")?;
        let var = self.variable(name, span)?;
        let rank = self.kernel.vars[var].shape.len();
        let mut entries = Vec::new();
        if c.take_symbol("[") {
            while !c.take_symbol("]") {
                let offset = self.expression(c)?;
                entries.push((offset, c.take_symbol("..")));
                if !c.is_symbol("]") {
                    c.expect_symbol(",", "or `]`")?;
                }
            }
        } else {
            entries = vec![(Expr::Int(0), true); rank];
        }
        let span = span.to(c.last_span());
        let axes = entries.iter().filter(|(_, open)| *open).count();
        if entries.len() != rank || axes != declared.shape.len() {
            let message = format!(
                "`{}` has {rank} axes and the argument `{}` has {}, found {} indices, {axes} of them with `..`",
                plain(name),
                declared.name,
                declared.shape.len(),
                entries.len()
            );
            return Err(fail_help(span, message, "write `..` after the index of each axis of the argument"));
        }
        let found = self.kernel.vars[var].ty;
        if found != declared.ty && !self.made.untyped.contains(&var) {
            let message = format!("the argument `{}` holds {}, found {found}", declared.name, declared.ty);
            return Err(fail_help(span, message, "declare both with one type"));
        }
        let mut next = 0;
        let axes = entries.into_iter().map(|(offset, open)| {
            let steps = (0..axes).map(|axis| i64::from(open && axis == next)).collect();
            next += usize::from(open);
            WindowAxis { offset, steps }
        });
        Ok(Window { var, axes: axes.collect() })
    }

    /// The statements of a callee with its arguments put in.
    fn instance(
        &mut self,
        callee: &Kernel,
        actuals: Vec<Actual>,
        mark: Option<CalleeId>,
        span: Span,
    ) -> Result<Vec<Node>> {
        let inames = callee.inames.values().map(|iname| {
            let name = self.unnamed.fresh(&iname.name);
            self.statement_of(name.clone(), span);
            self.kernel.inames.push(Iname { name, domain: Domain::universe(), tag: iname.tag })
        });
        let instance = Instance { inames: inames.collect(), actuals };
        let at = |what: String| fail_help(span, what, "store it in an integer scalar before");
        for (id, iname) in callee.inames.iter() {
            let domain = instance.domain(callee, &iname.domain).map_err(at)?;
            self.kernel.inames[instance.inames[id.index()]].domain = domain;
        }
        for (actual, declared) in instance.actuals.iter().zip(callee.vars.values()) {
            if let Actual::Own(own) = actual {
                let shape = declared.shape.iter().map(|e| instance.affine(callee, e));
                self.kernel.vars[*own].shape = shape.collect::<std::result::Result<_, _>>().map_err(at)?;
            }
        }
        Ok(self.instance_nodes(callee, &callee.body, &instance, mark, span))
    }

    fn instance_nodes(
        &mut self,
        callee: &Kernel,
        nodes: &[Node],
        instance: &Instance,
        mark: Option<CalleeId>,
        span: Span,
    ) -> Vec<Node> {
        let node = |node: &Node| match node {
            Node::Loop(iname, body) => Node::Loop(
                instance.inames[iname.index()],
                self.instance_nodes(callee, body, instance, mark, span),
            ),
            Node::Insn(id) => {
                let Insn { name, lhs, op, rhs, predicate, tags, callee: _ } = callee.insns[*id].clone();
                let name = self.unnamed.another(&name);
                self.statement_of(name.clone(), span);
                // else a parameter, which the verifier of the callee refuses to write
                let written = instance.expr(&Expr::Load(lhs.clone()));
                let lhs = if let Expr::Load(access) = written { access } else { lhs };
                let (rhs, predicate) = (instance.expr(&rhs), predicate.map(|e| instance.expr(&e)));
                Node::Insn(self.kernel.insns.push(Insn { name, lhs, op, rhs, predicate, tags, callee: mark }))
            }
        };
        nodes.iter().map(node).collect()
    }

    /// Takes functions out of the kernel, which has what their calls do.
    pub(super) fn remove_functions(&mut self) {
        let functions: BTreeSet<CalleeId> = std::mem::take(&mut self.made.functions);
        if functions.is_empty() {
            return;
        }
        let kept: Vec<CalleeId> = self.kernel.callees.ids().filter(|id| !functions.contains(id)).collect();
        let callees: Arena<CalleeId, _> = kept.iter().map(|id| self.kernel.callees[*id].clone()).collect();
        self.kernel.callees = callees;
        for insn in self.kernel.insns.values_mut() {
            let place = insn.callee.and_then(|old| kept.iter().position(|id| *id == old));
            insn.callee = place.map(CalleeId::from_index);
        }
    }
}

fn is_argument(var: &Variable) -> bool {
    matches!(var.kind, VarKind::Param | VarKind::Argument(_))
}

impl Instance {
    fn expr(&self, e: &Expr) -> Expr {
        e.map(&mut |part| match part {
            Expr::Iname(iname) => Expr::Iname(self.inames[iname.index()]),
            Expr::Load(Access { var, index }) => match &self.actuals[var.index()] {
                Actual::Param(value) => Expr::from_affine(value),
                Actual::Scalar(scalar) => Expr::scalar(*scalar),
                Actual::Window(window) => Expr::Load(window.element(&index)),
                Actual::Own(own) => Expr::Load(Access { var: *own, index }),
            },
            Expr::Reduce(Reduction { op, inames, body }) => {
                let inames = inames.iter().map(|iname| self.inames[iname.index()]).collect();
                Expr::Reduce(Reduction { op, inames, body })
            }
            other @ (Expr::Int(_)
            | Expr::Real(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Rule(..)
            | Expr::RuleParam(_)) => other,
        })
    }

    fn symbol(&self, atom: &Atom) -> Option<Affine> {
        match atom {
            Atom::Iname(iname) => Some(Affine::iname(self.inames[iname.index()])),
            Atom::Var(var) => match &self.actuals[var.index()] {
                Actual::Param(value) => Some(value.clone()),
                Actual::Scalar(var) | Actual::Own(var) => Some(Affine::var(*var)),
                Actual::Window(window) => window.axes.is_empty().then(|| Affine::var(window.var)),
            },
            Atom::Floor(..) => None,
        }
    }

    /// Refuses a bound that is an element of an array.
    fn check(&self, callee: &Kernel, atom: &Atom) -> std::result::Result<(), String> {
        match atom {
            Atom::Var(var) if self.symbol(atom).is_none() => {
                Err(format!("a bound in `{}` is `{}`, given an element", callee.name, callee.vars[*var].name))
            }
            Atom::Var(_) | Atom::Iname(_) | Atom::Floor(..) => Ok(()),
        }
    }

    fn affine(&self, callee: &Kernel, e: &Affine) -> std::result::Result<Affine, String> {
        let mut checked = Ok(());
        e.for_each_symbol(&mut |atom| checked = checked.clone().and_then(|()| self.check(callee, atom)));
        checked.map(|()| e.substitute(&|atom| self.symbol(atom)))
    }

    fn domain(&self, callee: &Kernel, domain: &Domain) -> std::result::Result<Domain, String> {
        let mut checked = Ok(());
        domain.for_each_symbol(&mut |atom| checked = checked.clone().and_then(|()| self.check(callee, atom)));
        checked.map(|()| domain.substitute(&|atom| self.symbol(atom)))
    }
}
