//! Expressions, by precedence climbing.
//!
//! Written by hand on tokens, not with parser combinators: one nested bracket costs three stack
//! frames, so that the limit on nesting holds on small stacks, and every refusal has its own words.

use super::cursor::Cursor;
use super::error::{Fail, fail, fail_help};
use super::lex::{Kind, Span};
use super::names::{Entity, may_name};
use super::number::{read_int, read_nan, read_real};
use super::parse::Parser;
use super::show::Level;
use crate::constant::Real;
use crate::depth::{Depth, MAX_DEPTH};
use crate::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use crate::ids::VarId;
use crate::types::ScalarType;

/// An expression with its depth, so that no later recursion over it is too deep.
pub(super) struct Parsed {
    pub expr: Expr,
    pub depth: Depth,
}

type Result<T> = std::result::Result<T, Fail>;

impl<'s> Parser<'s> {
    /// Reads a whole expression.
    pub(super) fn expression(&mut self, c: &mut Cursor<'_, 's>) -> Result<Expr> {
        self.climb(c, Level::Or).map(|p| p.expr)
    }

    /// Reads an expression up to an `or` outside brackets.
    pub(super) fn operand_of_or(&mut self, c: &mut Cursor<'_, 's>) -> Result<Expr> {
        self.climb(c, Level::And).map(|p| p.expr)
    }

    fn climb(&mut self, c: &mut Cursor<'_, 's>, lowest: Level) -> Result<Parsed> {
        c.depth += 1;
        // an operation is at most two deep: the operand and its brackets, or the call and its
        // argument
        if c.depth > 2 * MAX_DEPTH + 2 {
            return Err(too_deep(c.span(), MAX_DEPTH));
        }
        let mut left = self.prefix(c)?;
        let mut compared = false;
        while let Some((op, swapped, level)) = operator(c) {
            if level < lowest {
                break;
            }
            if level == Level::Comparison && std::mem::replace(&mut compared, true) {
                let help = "write `a < b and b < c`";
                return Err(fail_help(c.span(), "comparisons do not chain", help));
            }
            compared &= level >= Level::Comparison;
            c.advance();
            let right = self.climb(c, tighter(level))?;
            let depth = left.depth.left_of(op, &left.expr).max(right.depth.inside());
            check_depth(depth, c.last_span())?;
            let (a, b) = if swapped { (right.expr, left.expr) } else { (left.expr, right.expr) };
            left = Parsed { expr: Expr::binary(op, a, b), depth };
        }
        c.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self, c: &mut Cursor<'_, 's>) -> Result<Parsed> {
        let mut operand = self.primary(c)?;
        while c.is_symbol(".") && matches!(c.peek_second(), Some(Kind::Name(_))) {
            operand = self.field(c, operand)?;
        }
        Ok(operand)
    }

    fn primary(&mut self, c: &mut Cursor<'_, 's>) -> Result<Parsed> {
        if c.take_symbol("-") {
            if let Some(literal) = self.literal(c, true)? {
                return Ok(Parsed { expr: literal, depth: Depth::LEAF });
            }
            let a = self.climb(c, Level::Unary)?;
            return unary(UnaryOp::Neg, a, c);
        }
        if c.take_word("not") {
            let a = self.climb(c, Level::Not)?;
            return unary(UnaryOp::Not, a, c);
        }
        if let Some(literal) = self.literal(c, false)? {
            return Ok(Parsed { expr: literal, depth: Depth::LEAF });
        }
        if c.take_symbol("(") {
            let inner = self.climb(c, Level::Or)?;
            c.expect_symbol(")", "or an operator")?;
            return Ok(inner);
        }
        if let Some(Kind::Imaginary(digits)) = c.peek() {
            let Some(part) = read_real(digits, false, ScalarType::F64) else {
                return Err(too_large(c.span(), digits, ScalarType::F64));
            };
            c.advance();
            let parts = [Expr::Real(Real(0.0)), Expr::Real(part)];
            return Ok(Parsed { expr: Expr::call(MathFn::Complex, parts), depth: Depth::LEAF.inside() });
        }
        match c.peek() {
            Some(Kind::Name(word)) if matches!(*word, "true" | "false") => {
                c.advance();
                Ok(Parsed { expr: Expr::truth(*word == "true"), depth: Depth::LEAF.inside() })
            }
            Some(Kind::Name(name)) => self.named(c, name),
            _ => Err(c.expected("an expression")),
        }
    }

    fn literal(&self, c: &mut Cursor<'_, 's>, negative: bool) -> Result<Option<Expr>> {
        let span = c.span();
        let sign = if negative { "-" } else { "" };
        let expr = match c.peek() {
            Some(Kind::Int(digits)) => match read_int(digits, negative) {
                Some(value) => Expr::Int(value),
                None => {
                    let message = format!("the integer `{sign}{digits}` does not fit 64 bits");
                    return Err(fail_help(
                        span,
                        message,
                        "write a real, such as `1e20`, or a smaller number",
                    ));
                }
            },
            _ => match self.real_literal(c, negative, ScalarType::F64)? {
                Some(value) => return Ok(Some(Expr::Real(value))),
                None => return Ok(None),
            },
        };
        c.advance();
        Ok(Some(expr))
    }

    /// Reads a real literal, `inf`, `nan` or `nan(0x...)` if that is next.
    pub(super) fn real_literal(
        &self,
        c: &mut Cursor<'_, 's>,
        negative: bool,
        ty: ScalarType,
    ) -> Result<Option<Real>> {
        let span = c.span();
        let value = match c.peek() {
            Some(Kind::Real(digits)) => {
                read_real(digits, negative, ty).ok_or_else(|| too_large(span, digits, ty))?
            }
            Some(Kind::Name("inf")) => Real(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
            Some(Kind::Name("nan")) if !negative => {
                c.advance();
                return nan(c).map(Some);
            }
            _ => return Ok(None),
        };
        c.advance();
        Ok(Some(value))
    }

    fn named(&mut self, c: &mut Cursor<'_, 's>, name: &'s str) -> Result<Parsed> {
        let span = c.span();
        if c.peek_second() == Some(&Kind::Symbol("(")) {
            c.advance();
            c.advance();
            c.depth += 1;
            let call = self.call(c, name, span)?;
            c.depth -= 1;
            return Ok(call);
        }
        if let Some(k) = self.names.rule_params.iter().position(|p| *p == name) {
            c.advance();
            return Ok(Parsed { expr: Expr::RuleParam(k as u32), depth: Depth::LEAF });
        }
        match self.names.get(name) {
            Some(Entity::Var(_)) => {
                let (access, depth) = self.access(c)?;
                Ok(Parsed { expr: Expr::Load(access), depth })
            }
            Some(Entity::Iname(iname)) if self.names.scope.contains(&iname) => {
                c.advance();
                Ok(match self.made.mirrored.get(&iname) {
                    Some(value) => Parsed { expr: value.clone(), depth: depth_of(value) },
                    None => Parsed { expr: Expr::Iname(iname), depth: Depth::LEAF },
                })
            }
            Some(Entity::Iname(_)) => Err(fail_help(
                span,
                format!("the loop `{name}` is not around this place"),
                "move the statement into that loop",
            )),
            Some(Entity::Rule(_)) => Err(fail_help(
                span,
                format!("`{name}` is a substitution rule and needs its arguments"),
                format!("write `{name}(...)`"),
            )),
            Some(Entity::Insn) => Err(fail(span, format!("`{name}` is an instruction and has no value"))),
            Some(Entity::Kernel) => Err(fail(span, format!("`{name}` is the kernel and has no value"))),
            Some(Entity::Callee(_)) => Err(fail(span, format!("`{name}` is a callee and has no value"))),
            Some(Entity::Record(_) | Entity::Operator(_) | Entity::External(_)) => {
                let help = format!("write `{name}(...)`");
                Err(fail_help(span, format!("`{name}` needs its arguments"), help))
            }
            None if may_name(name) => Err(self.names.unknown(name, span, "the name")),
            None => Err(c.expected("an expression")),
        }
    }

    /// Reads `name` or `name[index, ...]`; the depth is that of the whole access.
    pub(super) fn access(&mut self, c: &mut Cursor<'_, 's>) -> Result<(Access, Depth)> {
        let (name, span) = c.expect_word("the name of a variable")?;
        let var = self.variable(name, span).map_err(|mut error| {
            if c.is_symbol("=") && error.help.is_none() {
                error.help = Some(format!(
                    "a new value is `let {name} = ...`; arrays are declared: `temp {name}: f64[n]`"
                ));
            }
            error
        })?;
        let (mut index, mut depth) = (Vec::new(), Depth::NONE);
        if c.take_symbol("[") {
            c.depth += 1;
            while !c.take_symbol("]") {
                let e = self.climb(c, Level::Or)?;
                depth = depth.max(e.depth);
                index.push(e.expr);
                if !c.is_symbol("]") {
                    c.expect_symbol(",", "or `]`")?;
                }
            }
            c.depth -= 1;
        }
        let needed = self.kernel.vars[var].shape.len();
        if index.len() != needed {
            let axes = if needed == 1 { "axis" } else { "axes" };
            let indices = if index.len() == 1 { "index" } else { "indices" };
            let message = format!("`{name}` has {needed} {axes}, found {} {indices}", index.len());
            return Err(fail(span.to(c.last_span()), message));
        }
        check_depth(depth.inside(), span)?;
        Ok((Access { var, index }, depth.inside()))
    }

    /// The variable of this name.
    pub(super) fn variable(&self, name: &str, span: Span) -> Result<VarId> {
        self.names.check_whole(name, span)?;
        match self.names.get(name) {
            Some(Entity::Var(var)) => Ok(var),
            Some(Entity::Iname(_)) => Err(fail(span, format!("`{name}` is a loop, needed a variable"))),
            Some(
                Entity::Rule(_)
                | Entity::Insn
                | Entity::Kernel
                | Entity::Callee(_)
                | Entity::Record(_)
                | Entity::Operator(_)
                | Entity::External(_),
            ) => Err(fail(span, format!("`{name}` is not a variable"))),
            None => Err(self.names.unknown(name, span, "the variable")),
        }
    }

    /// Reads what follows `name(`.
    fn call(&mut self, c: &mut Cursor<'_, 's>, name: &'s str, span: Span) -> Result<Parsed> {
        self.names.check_whole(name, span)?;
        // a rule may have the name of a function that came later
        let rule = if let Some(Entity::Rule(rule)) = self.names.get(name) { Some(rule) } else { None };
        let reduction = UpdateOp::ALL.into_iter().find(|op| op.reduction_name() == name);
        if let Some(op) = reduction.filter(|_| rule.is_none()) {
            return self.reduction(c, op);
        }
        if let Some(Entity::Operator(op)) = self.names.get(name)
            && (c.is_symbol(":") || c.peek_second() == Some(&Kind::Name("in")))
        {
            return self.reduction(c, UpdateOp::Named(op));
        }
        if name == "extent" && self.names.get(name).is_none() {
            let expr = self.extent(c)?;
            return Ok(Parsed { depth: depth_of(&expr), expr });
        }
        let (args, depth) = self.arguments(c)?;
        let whole = span.to(c.last_span());
        let expr = if let Some(rule) = rule {
            let needed = self.kernel.rules.get(rule).map_or(0, |r| r.params.len());
            check_count(name, needed, args.len(), whole)?;
            if self.made.reducing.contains(&rule) {
                let expr = self.written_out(rule, &args, whole)?;
                crate::depth::exceeded(&expr).map_or(Ok(()), |limit| Err(too_deep(whole, limit)))?;
                return Ok(Parsed { depth: depth_of(&expr), expr });
            }
            Expr::Rule(rule, args)
        } else if let Some(Entity::Record(record)) = self.names.get(name) {
            check_count(name, record.fields.len(), args.len(), whole)?;
            Expr::Call(MathFn::Record(record), args)
        } else if let Some(Entity::External(function)) = self.names.get(name) {
            check_count(name, function.params.len(), args.len(), whole)?;
            Expr::Call(MathFn::External(function), args)
        } else if let Some(Entity::Operator(op)) = self.names.get(name) {
            let [a, b] = exactly(args, name, whole)?;
            return self.applied(op, &a, &b, span);
        } else if let Some(function) = MathFn::from_name(name) {
            check_count(name, function.arity(), args.len(), whole)?;
            Expr::Call(function, args)
        } else if let Some(ty) = ScalarType::ALL.into_iter().find(|ty| ty.name() == name) {
            let [a] = exactly(args, name, whole)?;
            Expr::Cast(ty, Box::new(a))
        } else if name == "bit_not" {
            let [a] = exactly(args, name, whole)?;
            Expr::Unary(UnaryOp::BitNot, Box::new(a))
        } else if name == "bits" {
            let [a] = exactly(args, name, whole)?;
            Expr::Unary(UnaryOp::Bits, Box::new(a))
        } else if name == "select" {
            let [condition, a, b] = exactly(args, name, whole)?;
            Expr::Select(Box::new(condition), Box::new(a), Box::new(b))
        } else if let Some(op) = function_operator(name) {
            let [a, b] = exactly(args, name, whole)?;
            Expr::binary(op, a, b)
        } else {
            return Err(self.no_function(name, span));
        };
        check_depth(depth.inside(), span)?;
        Ok(Parsed { expr, depth: depth.inside() })
    }

    fn no_function(&self, name: &str, span: Span) -> Fail {
        match self.names.get(name) {
            Some(Entity::Var(_)) => {
                let help = format!("index it with `{name}[...]`, multiply with `*`");
                fail_help(span, format!("`{name}` is a variable and cannot be called"), help)
            }
            Some(_) => fail(span, format!("`{name}` is not a function")),
            None => self.names.unknown(name, span, "the function"),
        }
    }

    fn arguments(&mut self, c: &mut Cursor<'_, 's>) -> Result<(Vec<Expr>, Depth)> {
        let (mut args, mut depth) = (Vec::new(), Depth::NONE);
        while !c.take_symbol(")") {
            let e = self.climb(c, Level::Or)?;
            depth = depth.max(e.depth);
            args.push(e.expr);
            if !c.is_symbol(")") {
                c.expect_symbol(",", "or `)`")?;
            }
        }
        Ok((args, depth))
    }

    /// Reads what follows `sum(`: loops, `:`, body, `)`.
    fn reduction(&mut self, c: &mut Cursor<'_, 's>, op: UpdateOp) -> Result<Parsed> {
        let around = self.names.scope.len();
        let mut inames = Vec::new();
        while !c.take_symbol(":") {
            self.check_loop(c)?;
            let (iname, condition) = self.loop_header(c)?;
            if condition.is_some() {
                let help = "write a `for` with `while` and an update";
                return Err(fail_help(c.last_span(), "a reduction has no `while`", help));
            }
            inames.push(iname);
            if !c.is_symbol(":") {
                c.expect_symbol(",", "and another loop, or `:` and what is reduced")?;
            }
        }
        let body = self.climb(c, Level::Or)?;
        c.expect_symbol(")", "after the reduction")?;
        self.names.scope.truncate(around);
        check_depth(body.depth.inside(), c.last_span())?;
        Ok(Parsed { expr: Expr::reduce(op, inames, body.expr), depth: body.depth.inside() })
    }

    /// Checks that no variable stands where a reduction has a loop.
    fn check_loop(&self, c: &Cursor<'_, 's>) -> Result<()> {
        match c.peek() {
            Some(Kind::Name(name))
                if matches!(self.names.get(name), Some(Entity::Var(_)))
                    && !matches!(c.peek_second(), Some(Kind::Name("in" | "where"))) =>
            {
                let help = "loops come first, and `:` before what is reduced: `sum(k in 0..n: x[k])`";
                Err(fail_help(c.span(), format!("expected a loop, found the variable `{name}`"), help))
            }
            _ => Ok(()),
        }
    }
}

/// The depth of an expression that is not too deep.
fn depth_of(e: &Expr) -> Depth {
    let Expr::Binary(op, a, b) = e else {
        return e.operands().map(depth_of).fold(Depth::NONE, Depth::max).inside();
    };
    depth_of(a).left_of(*op, a).max(depth_of(b).inside())
}

fn too_large(span: Span, digits: &str, ty: ScalarType) -> Fail {
    fail_help(span, format!("`{digits}` is beyond the largest {ty}"), "write `inf` for infinity")
}

fn nan(c: &mut Cursor<'_, '_>) -> Result<Real> {
    if !c.take_symbol("(") {
        return Ok(Real(f64::NAN));
    }
    let span = c.span();
    let bits = match c.peek() {
        Some(Kind::Hex(digits)) => read_nan(digits),
        _ => None,
    };
    let Some(value) = bits else {
        let help = "write `nan`, or its bits as in `nan(0x7ff8000000000001)`";
        return Err(fail_help(span, format!("{} is not the bits of a nan", c.found()), help));
    };
    c.advance();
    c.expect_symbol(")", "after the bits")?;
    Ok(value)
}

fn unary(op: UnaryOp, a: Parsed, c: &Cursor<'_, '_>) -> Result<Parsed> {
    check_depth(a.depth.inside(), c.last_span())?;
    Ok(Parsed { expr: Expr::Unary(op, Box::new(a.expr)), depth: a.depth.inside() })
}

pub(super) fn check_depth(depth: Depth, span: Span) -> Result<()> {
    depth.exceeded().map_or(Ok(()), |limit| Err(too_deep(span, limit)))
}

fn too_deep(span: Span, limit: usize) -> Fail {
    let message = format!("the expression is more than {limit} operations deep");
    fail_help(span, message, "store a part of it in a temporary")
}

/// The operator that is next, whether its operands are swapped, and how tightly it binds.
fn operator(c: &Cursor<'_, '_>) -> Option<(BinaryOp, bool, Level)> {
    let (op, swapped) = match c.peek()? {
        Kind::Name("or") => (BinaryOp::Or, false),
        Kind::Name("and") => (BinaryOp::And, false),
        Kind::Name("mod") => (BinaryOp::Mod, false),
        Kind::Symbol("<") => (BinaryOp::Lt, false),
        Kind::Symbol("<=") => (BinaryOp::Le, false),
        Kind::Symbol(">") => (BinaryOp::Lt, true),
        Kind::Symbol(">=") => (BinaryOp::Le, true),
        Kind::Symbol("==") => (BinaryOp::Eq, false),
        Kind::Symbol("!=") => (BinaryOp::Ne, false),
        Kind::Symbol("+") => (BinaryOp::Add, false),
        Kind::Symbol("-") => (BinaryOp::Sub, false),
        Kind::Symbol("*") => (BinaryOp::Mul, false),
        Kind::Symbol("/") => (BinaryOp::Div, false),
        Kind::Name(_)
        | Kind::Int(_)
        | Kind::Real(_)
        | Kind::Imaginary(_)
        | Kind::Hex(_)
        | Kind::Text(_)
        | Kind::Symbol(_)
        | Kind::Newline
        | Kind::Bad => return None,
    };
    Some((op, swapped, super::show::level_of(op)))
}

fn tighter(level: Level) -> Level {
    match level {
        Level::Or => Level::And,
        Level::And => Level::Not,
        Level::Not => Level::Comparison,
        Level::Comparison => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Unary,
        Level::Unary | Level::Atom => Level::Atom,
    }
}

fn function_operator(name: &str) -> Option<BinaryOp> {
    BinaryOp::FUNCTIONS.into_iter().find(|op| op.symbol() == name)
}

fn check_count(name: &str, needed: usize, found: usize, span: Span) -> Result<()> {
    if needed == found {
        return Ok(());
    }
    Err(wrong_count(name, needed, found, span))
}

fn exactly<const N: usize>(args: Vec<Expr>, name: &str, span: Span) -> Result<[Expr; N]> {
    let found = args.len();
    args.try_into().map_err(|_| wrong_count(name, N, found, span))
}

fn wrong_count(name: &str, needed: usize, found: usize, span: Span) -> Fail {
    let arguments = if needed == 1 { "argument" } else { "arguments" };
    fail(span, format!("`{name}` takes {needed} {arguments}, found {found}"))
}
