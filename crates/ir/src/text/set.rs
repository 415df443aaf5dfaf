//! Loop headers: bounds, sets, tags; affine expressions.

use super::cursor::Cursor;
use super::error::{Fail, fail, fail_help, suggestion};
use super::lex::{Kind, Span};
use super::names::{Entity, plain};
use super::parse::Parser;
use crate::affine::{Affine, Atom, MAX_TERMS};
use crate::domain::{Constraint, Domain};
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::InameId;
use crate::kernel::{AxisTag, Iname};

type Result<T> = std::result::Result<T, Fail>;

/// Bound on coefficients while an affine expression is put together. A product of two such numbers
/// saturates beyond the bound, so that no saturated value passes for a true one.
const MAX_INTERMEDIATE: u64 = 1 << 60;
/// Bound on the size of a set: `(a or b) and (c or d) and ...` doubles it at each level.
const MAX_DISJUNCTS: usize = 1000;

impl<'s> Parser<'s> {
    /// Reads `name in lo..hi descending where set while condition {tag}`; the iname is in scope
    /// afterwards. Gives the condition, too.
    pub(super) fn loop_header(&mut self, c: &mut Cursor<'_, 's>) -> Result<(InameId, Option<Expr>)> {
        let (name, span) = c.expect_word("the name of a loop")?;
        let iname =
            Iname { name: plain(name).to_owned(), domain: Domain::universe(), tag: AxisTag::Sequential };
        let id = self.kernel.inames.push(iname);
        self.names.scope.push(id);
        self.names.declare(name, span, Entity::Iname(id))?;
        let (mut domain, mut mirror) = (None, None);
        if c.take_word("in") {
            let (range, last) = self.range(c, id)?;
            domain = Some(range);
            mirror = c.take_word("descending").then_some(last);
        }
        if c.take_word("where") {
            let set = self.set(c, id)?;
            domain = Some(domain.map_or_else(|| set.clone(), |range| range.intersect(&set)));
        }
        let Some(domain) = domain else {
            let help = format!("write `{name} in 0..n`, or `{name} where ...`");
            return Err(fail_help(c.span(), format!("the loop `{name}` has no bounds"), help));
        };
        self.kernel.inames[id].domain = match mirror {
            Some(last) => self.mirrored(id, &domain, &last),
            None => domain,
        };
        let condition =
            if c.take_word("while") { Some(self.without_reads(|p| p.expression(c))?) } else { None };
        if c.take_symbol("{") {
            self.kernel.inames[id].tag = axis_tag(c)?;
        }
        Ok((id, condition))
    }

    /// Reads the name in `launch name`, which is `for name in 0..1 {launch}`.
    pub(super) fn launch_header(&mut self, c: &mut Cursor<'_, 's>) -> Result<()> {
        let (name, span) = c.expect_word("the name of the launch")?;
        let iname = Iname { name: plain(name).to_owned(), domain: Domain::universe(), tag: AxisTag::Launch };
        let id = self.kernel.inames.push(iname);
        self.kernel.inames[id].domain = Iname::only_value(id);
        self.names.scope.push(id);
        self.names.declare(name, span, Entity::Iname(id))
    }

    /// The domain of a loop that takes the values of `domain` in descending order: its own values `i`
    /// stand for `last - i`.
    fn mirrored(&mut self, iname: InameId, domain: &Domain, last: &Affine) -> Domain {
        self.made.mirrored.insert(iname, mirror_image(last, iname));
        let image = last.minus(&Affine::iname(iname));
        domain.substitute(&|atom| (*atom == Atom::Iname(iname)).then(|| image.clone()))
    }

    /// Reads `lo..hi`. Gives the last value, too, if it is `hi - 1` of one `hi`, else 0.
    fn range(&mut self, c: &mut Cursor<'_, 's>, iname: InameId) -> Result<(Domain, Affine)> {
        if c.is_word("range") && self.names.get("range").is_none() {
            let help = "write `0..n` for `range(n)`, and `lo..hi` for `range(lo, hi)`";
            return Err(fail_help(c.span(), "bounds are written with `..`", help));
        }
        let lower = self.bounds(c, "max", iname)?;
        c.expect_symbol("..", "and the upper bound")?;
        let upper = self.bounds(c, "min", iname)?;
        let whole = upper.iter().find(|(_, divisor)| *divisor == 1);
        let last = whole.map_or_else(Affine::default, |(value, _)| value.plus_constant(-1));
        let scaled = |divisor| Affine::iname(iname).times(divisor);
        let lower = lower.iter().map(|(value, d)| Constraint::le(value, &scaled(*d)));
        let upper = upper.iter().map(|(value, d)| Constraint::lt(&scaled(*d), value));
        Ok((Domain::conjunction(lower.chain(upper)), last))
    }

    /// Reads one bound or `max(...)` of several; each is `ceil(value / divisor)`.
    fn bounds(
        &mut self,
        c: &mut Cursor<'_, 's>,
        several: &str,
        iname: InameId,
    ) -> Result<Vec<(Affine, i64)>> {
        let mut bounds = Vec::new();
        let start = c.span();
        if !(c.is_word(several) && c.peek_second() == Some(&Kind::Symbol("("))) {
            bounds.push(self.bound(c, iname, several)?);
        } else {
            c.advance();
            c.advance();
            while !c.take_symbol(")") {
                bounds.push(self.bound(c, iname, several)?);
                if !c.is_symbol(")") {
                    c.expect_symbol(",", "or `)`")?;
                }
            }
        }
        if bounds.is_empty() {
            return Err(fail(start.to(c.last_span()), format!("`{several}()` of nothing is no bound")));
        }
        if bounds.iter().any(|(value, _)| value.mentions(iname)) {
            let message = "a bound mentions the loop itself";
            return Err(fail_help(start.to(c.last_span()), message, "put the condition after `where`"));
        }
        Ok(bounds)
    }

    fn bound(&mut self, c: &mut Cursor<'_, 's>, iname: InameId, several: &str) -> Result<(Affine, i64)> {
        let end = if several == "max" { "lo" } else { "hi" };
        let start = c.span();
        if !(c.is_word("ceil") && c.peek_second() == Some(&Kind::Symbol("("))) {
            let e = self.expression(c)?;
            let span = start.to(c.last_span());
            let e = self.with_reads(e, iname, end, span)?;
            let e = self.with_products(&e);
            return Ok((self.to_affine(&e).map_err(|why| not_affine(span, why))?, 1));
        }
        c.advance();
        c.advance();
        let e = self.expression(c)?;
        c.expect_symbol(")", "after the quotient")?;
        let span = start.to(c.last_span());
        let Expr::Binary(BinaryOp::Div, value, divisor) = &e else {
            return Err(fail_help(span, "`ceil` in a bound needs a quotient", "write `ceil(n/4)`"));
        };
        if let Expr::Int(d) = **divisor
            && d > 0
            && d.unsigned_abs() <= MAX_INTERMEDIATE
        {
            let value = self.with_reads((**value).clone(), iname, end, span)?;
            return Ok((self.to_affine(&value).map_err(|why| not_affine(span, why))?, d));
        }
        Err(fail(span, "the divisor in a bound is not a positive integer literal"))
    }

    /// Reads an affine expression.
    pub(super) fn affine(&mut self, c: &mut Cursor<'_, 's>) -> Result<Affine> {
        let start = c.span();
        let e = self.expression(c)?;
        let e = self.with_products(&e);
        self.to_affine(&e).map_err(|why| not_affine(start.to(c.last_span()), why))
    }

    /// Reads a constraint: one comparison.
    pub(super) fn constraint(&mut self, c: &mut Cursor<'_, 's>) -> Result<Constraint> {
        let start = c.span();
        let e = self.expression(c)?;
        let span = start.to(c.last_span());
        match self.disjuncts(&e).map_err(|why| refused(span, &why))?.as_mut_slice() {
            [conjunction] if conjunction.len() == 1 => Ok(conjunction.remove(0)),
            _ => Err(fail_help(span, "an assumption is one comparison", "write several `assume` lines")),
        }
    }

    /// Reads what follows `where`.
    fn set(&mut self, c: &mut Cursor<'_, 's>, iname: InameId) -> Result<Domain> {
        let mut all = Vec::new();
        loop {
            let start = c.span();
            if c.take_word("true") {
                all.push(Vec::new());
            } else if !c.take_word("false") {
                // one operand of `or` at a time: a union may have more of them than expressions are
                // deep
                let e = self.operand_of_or(c)?;
                let e = self.with_reads(e, iname, "at", start.to(c.last_span()))?;
                let disjuncts = self.disjuncts(&e);
                all.extend(disjuncts.map_err(|why| refused(start.to(c.last_span()), &why))?);
            }
            if !c.take_word("or") {
                return Ok(Domain::union(all));
            }
        }
    }

    /// The union of conjunctions of a condition.
    fn disjuncts(&self, e: &Expr) -> std::result::Result<Vec<Vec<Constraint>>, String> {
        let Expr::Binary(op, a, b) = e else {
            return Err("a set is made of comparisons, `and` and `or`".into());
        };
        let compare = |make: fn(&Affine, &Affine) -> Constraint| {
            Ok(vec![vec![make(&self.to_affine(a)?, &self.to_affine(b)?)]])
        };
        match op {
            BinaryOp::Lt => compare(Constraint::lt),
            BinaryOp::Le => compare(Constraint::le),
            BinaryOp::Eq => compare(Constraint::equal),
            BinaryOp::Or => {
                let mut all = self.disjuncts(a)?;
                all.extend(self.disjuncts(b)?);
                Ok(all)
            }
            BinaryOp::And => {
                let (a, b) = (self.disjuncts(a)?, self.disjuncts(b)?);
                if a.len() * b.len() > MAX_DISJUNCTS {
                    return Err(format!("the set is a union of more than {MAX_DISJUNCTS} pieces"));
                }
                Ok(a.iter().flat_map(|x| b.iter().map(|y| [x.as_slice(), y].concat())).collect())
            }
            BinaryOp::Ne => Err("`!=` is not convex; write `a < b or a > b`".into()),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::Mod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Min
            | BinaryOp::Max => Err("a set is made of comparisons, `and` and `or`".into()),
        }
    }

    /// The affine value of an expression, or why it has none.
    pub(super) fn to_affine(&self, e: &Expr) -> std::result::Result<Affine, String> {
        let value = match e {
            Expr::Int(value) => Affine::constant(*value),
            Expr::Iname(iname) => Affine::iname(*iname),
            Expr::Load(access) if access.index.is_empty() => Affine::var(access.var),
            Expr::Load(access) => {
                let name = &self.kernel.vars[access.var].name;
                return Err(format!(
                    "`{name}[...]` is an array element; load it into an integer scalar before"
                ));
            }
            Expr::Unary(UnaryOp::Neg, a) => self.to_affine(a)?.times(-1),
            Expr::Binary(op, a, b) => combine(*op, &self.to_affine(a)?, &self.to_affine(b)?)?,
            Expr::Real(_) => return Err("it holds a real number".into()),
            Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => return Err("it holds a call or a condition".into()),
        };
        check_size(value)
    }
}

/// `last - iname`.
fn mirror_image(last: &Affine, iname: InameId) -> Expr {
    match last.as_constant() {
        Some(0) => -Expr::Iname(iname),
        Some(_) | None => Expr::from_affine(last) - Expr::Iname(iname),
    }
}

fn combine(op: BinaryOp, a: &Affine, b: &Affine) -> std::result::Result<Affine, String> {
    let divisor = || match b.as_constant() {
        Some(d) if d > 0 => Ok(d),
        _ => Err(format!("the divisor of `{}` is not a positive integer literal", op.symbol())),
    };
    match op {
        BinaryOp::Add => Ok(a.plus(b)),
        BinaryOp::Sub => Ok(a.minus(b)),
        BinaryOp::Mul => match (a.as_constant(), b.as_constant()) {
            (Some(factor), _) => Ok(b.times(factor)),
            (_, Some(factor)) => Ok(a.times(factor)),
            (None, None) => Err("it multiplies two things that are not constant".into()),
        },
        BinaryOp::FloorDiv => Ok(a.floor_div(divisor()?)),
        BinaryOp::Mod => Ok(a.modulo(divisor()?)),
        BinaryOp::Div => Err("`/` divides reals; use `floor_div`".into()),
        BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => Err(format!("`{}` is not affine; use `floor_div` and `mod`", op.symbol())),
        BinaryOp::Min | BinaryOp::Max => {
            Err("lower bounds are `max` of several, upper bounds `min`; other unions go after `where`".into())
        }
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or => {
            Err(format!("`{}` gives a truth value", op.symbol()))
        }
    }
}

fn check_size(value: Affine) -> std::result::Result<Affine, String> {
    let small = |c: i64| c.unsigned_abs() <= MAX_INTERMEDIATE;
    if !small(value.constant_term()) || !value.terms().iter().all(|(_, c)| small(*c)) {
        return Err("it holds numbers beyond 2^60; use smaller ones".into());
    }
    if value.size() > MAX_TERMS {
        return Err(format!("it has more than {MAX_TERMS} terms once remainders are written out"));
    }
    Ok(value)
}

fn not_affine(span: Span, why: String) -> Fail {
    refused(span, &format!("this is not affine in loops and integer scalars: {why}"))
}

/// An error from a reason with advice after a semicolon.
fn refused(span: Span, why: &str) -> Fail {
    match why.split_once("; ") {
        Some((what, help)) => fail_help(span, what, help),
        None => fail(span, why),
    }
}

/// Reads what follows `{` after a loop.
fn axis_tag(c: &mut Cursor<'_, '_>) -> Result<AxisTag> {
    let (word, span) = c.expect_word("a tag, such as `unroll` or `g.0`")?;
    let mut text = word.to_owned();
    if c.take_symbol(".")
        && let Some(Kind::Int(digits)) = c.peek()
    {
        text = format!("{word}.{digits}");
        c.advance();
    }
    let span = span.to(c.last_span());
    let Some(tag) = AxisTag::parse(&text) else {
        let known: Vec<String> = AxisTag::ALL.iter().map(ToString::to_string).collect();
        let all = format!("the tags of loops are {}", known.join(", "));
        let help = suggestion(&text, known.iter().map(String::as_str)).unwrap_or(all);
        return Err(fail_help(span, format!("`{text}` is not a tag of loops"), help));
    };
    c.expect_symbol("}", "after the tag; a loop has one")?;
    Ok(tag)
}
