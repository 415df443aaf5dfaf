//! Records, operators of them and functions with code for targets: their declarations and fields, read from
//! text.

use super::callee::lines_of_code;
use super::cursor::{Cursor, label};
use super::error::{Fail, fail, fail_help};
use super::expression::{Parsed, check_depth};
use super::lex::{Kind, Span};
use super::line::Line;
use super::names::{Entity, check_name};
use super::parse::Parser;
use super::unnamed::is_unnamed;
use crate::depth::Depth;
use crate::expr::{Expr, MathFn, UnaryOp, UpdateOp};
use crate::functions::{External, ExternalCode, ExternalFn};
use crate::records::closed;
use crate::types::{Field, Record, RecordType, ScalarType};
use crate::typing::ExprType;
use crate::user_operator::{Law, NamedOperator, Operator};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, Fail>;

impl<'s> Parser<'s> {
    /// Reads the declaration of a record, of an operator of records that stand above it, or of a function with
    /// code for targets.
    pub(super) fn record_line(&mut self, line: &Line<'s>) {
        let read = |p: &mut Self, c: &mut Cursor<'_, 's>| match (c.is_word("record"), c.is_word("extern")) {
            (true, _) => p.record(c),
            (_, true) => p.external(c),
            _ => p.operator(c),
        };
        let declared = self.whole_line(line, read);
        self.names.rule_params.clear();
        self.names.rule_param_types.clear();
        if declared.is_none() {
            self.broken(line);
        }
    }

    /// Reads `record name(field: type, ...)`.
    fn record(&mut self, c: &mut Cursor<'_, 's>) -> Result<()> {
        c.advance();
        let (name, span) = c.expect_word("the name of the record")?;
        let fields = fields(c, "a field")?.into_iter().map(|(name, ty)| Field { name: name.to_owned(), ty });
        let fields = fields.collect();
        c.expect_end("the record")?;
        let record = RecordType::declare(Record { name: name.to_owned(), fields });
        let record = record.map_err(|error| declined(c.whole_span(), &error.to_string()))?;
        self.statement_of(name, c.whole_span());
        self.names.declare(name, span, Entity::Record(record))
    }

    /// Reads `operator name(a: record, b: record) := body identity record(...) {laws}`.
    fn operator(&mut self, c: &mut Cursor<'_, 's>) -> Result<()> {
        c.advance();
        let (name, span) = c.expect_word("the name of the operator")?;
        c.expect_symbol("(", "and two operands")?;
        let (a, first) = self.operand(c)?;
        c.expect_symbol(",", "and a second operand")?;
        let at = c.span();
        let (b, record) = self.operand(c)?;
        c.expect_symbol(")", "after the operands")?;
        if record != first || a == b {
            let help = format!("write `{name}(a: {}, b: {})`", first.name(), first.name());
            return Err(fail_help(at, "an operator has two operands of one record", help));
        }
        c.expect_symbol(":=", "and the value of the operator")?;
        self.names.rule_params = vec![a, b];
        self.names.rule_param_types = vec![ExprType::Scalar(ScalarType::Record(record)); 2];
        let body = self.expression(c)?;
        let body = closed(&body).ok_or_else(|| {
            let help = format!("make it of `{a}`, `{b}` and literals");
            fail_help(c.whole_span(), format!("the operator `{name}` reads more than its operands"), help)
        })?;
        if !c.take_word("identity") {
            let help = "add the value that changes no other one, and that a reduction over nothing is";
            return Err(fail_help(c.span(), format!("the operator `{name}` has no `identity`"), help));
        }
        let at = c.span();
        let identity = self.expression(c)?;
        let values =
            if let Expr::Call(MathFn::Record(of), values) = &identity { Some((of, values)) } else { None };
        let values = values.filter(|(of, values)| **of == record && values.iter().all(is_literal));
        let identity =
            values.map(|(_, values)| values.iter().filter_map(closed).collect()).ok_or_else(|| {
                let help = format!("write `{}(...)` of literals", record.name());
                fail_help(at, format!("the identity of `{name}` is no such record"), help)
            })?;
        let laws = laws(c)?;
        c.expect_end("the operator")?;
        let params = [a, b].map(str::to_owned);
        let operator = Operator { name: name.to_owned(), params, record, body, identity, laws };
        operator.check().map_err(|e| declined(c.whole_span(), &format!("operator `{name}`: {e}")))?;
        let operator =
            NamedOperator::declare(operator).map_err(|e| declined(c.whole_span(), &e.to_string()))?;
        self.statement_of(name, c.whole_span());
        self.names.declare(name, span, Entity::Operator(operator))
    }

    /// Reads `extern name(x: type, ...) -> type := meaning code target ("...")`.
    fn external(&mut self, c: &mut Cursor<'_, 's>) -> Result<()> {
        c.advance();
        let (name, span) = c.expect_word("the name of the function")?;
        let params = fields(c, "a parameter")?;
        c.expect_symbol("->", "and the type of the value")?;
        let result = scalar_type(c)?;
        let meaning = if c.take_symbol(":=") {
            self.names.rule_params = params.iter().map(|(name, _)| *name).collect();
            self.names.rule_param_types = params.iter().map(|(_, ty)| ty.value_type()).collect();
            let body = self.expression(c)?;
            Some(closed(&body).ok_or_else(|| {
                let help = "make it of the parameters, literals and functions";
                fail_help(
                    c.whole_span(),
                    format!("what `{name}` computes reads more than its parameters"),
                    help,
                )
            })?)
        } else {
            None
        };
        let mut code = Vec::new();
        while c.take_word("code") {
            let target = if c.is_symbol("(") { None } else { Some(label(c, "the name of a target")?.0) };
            let text: Vec<&str> = lines_of_code(c)?.into_iter().map(|(line, _)| line).collect();
            code.push(ExternalCode { target, text: text.join("\n") });
        }
        c.expect_end("the function")?;
        let params = params.into_iter().map(|(name, ty)| Field { name: name.to_owned(), ty }).collect();
        let function = ExternalFn::declare(External { name: name.to_owned(), params, result, meaning, code });
        let function = function.map_err(|e| declined(c.whole_span(), &e.to_string()))?;
        function.check().map_err(|e| declined(c.whole_span(), &format!("`{name}`: {e}")))?;
        self.statement_of(name, c.whole_span());
        self.names.declare(name, span, Entity::External(function))
    }

    /// Reads `a: record`.
    fn operand(&mut self, c: &mut Cursor<'_, 's>) -> Result<(&'s str, RecordType)> {
        let (name, span) = c.expect_word("the name of an operand")?;
        check_name(name, span)?;
        c.expect_symbol(":", "and its record")?;
        let (record, at) = c.expect_word("the name of a record")?;
        self.names.check_whole(record, at)?;
        match self.names.get(record) {
            Some(Entity::Record(record)) => Ok((name, record)),
            Some(_) | None => {
                let help = format!("declare `record {record}(...)`");
                Err(fail_help(at, format!("`{record}` is no record"), help))
            }
        }
    }

    /// Reads the type of a variable.
    pub(super) fn element_type(&mut self, c: &mut Cursor<'_, 's>) -> Result<ScalarType> {
        if let Some(Kind::Name(name)) = c.peek() {
            self.names.check_whole(name, c.span())?;
            if let Some(Entity::Record(record)) = self.names.get(name) {
                c.advance();
                return Ok(ScalarType::Record(record));
            }
        }
        scalar_type(c)
    }

    /// Reads `.field` after an expression.
    pub(super) fn field(&mut self, c: &mut Cursor<'_, 's>, of: Parsed) -> Result<Parsed> {
        c.advance();
        let (mut name, mut span) = c.expect_word("the name of a field")?;
        let qualified =
            if let Some(Entity::Record(record)) = self.names.get(name) { Some(record) } else { None };
        if qualified.is_some() {
            c.expect_symbol(".", "and the name of a field")?;
            (name, span) = c.expect_word("the name of a field")?;
        }
        let found = self.kernel.type_of(&of.expr, &self.names.rule_param_types);
        let record = match qualified.or_else(|| found.ok()?.record()) {
            Some(record) => record,
            // the operand of a rule has a type where the rule is used
            None => {
                let mut having = self.names.records().filter(|record| record.field(name).is_some());
                match (having.next(), having.next()) {
                    (Some(record), None) => record,
                    (Some(one), Some(_)) => {
                        let help =
                            format!("write the name of its record first, as in `.{}.{name}`", one.name());
                        return Err(fail_help(span, format!("several records have a field `{name}`"), help));
                    }
                    (None, _) => return Err(fail(span, format!("no record has a field `{name}`"))),
                }
            }
        };
        let Some(k) = record.field(name) else {
            let fields: Vec<String> = record.fields.iter().map(|f| format!("`{}`", f.name)).collect();
            let help = format!("its fields are {}", fields.join(", "));
            return Err(fail_help(span, format!("`{}` has no field `{name}`", record.name()), help));
        };
        check_depth(of.depth.inside(), span)?;
        let expr = Expr::Unary(UnaryOp::Field(record, k), Box::new(of.expr));
        Ok(Parsed { expr, depth: of.depth.inside() })
    }

    /// An operator of two operands, which is its body.
    pub(super) fn applied(&self, op: NamedOperator, a: &Expr, b: &Expr, span: Span) -> Result<Parsed> {
        let expr = op.apply(a, b);
        let (mut deepest, mut open) = (Depth::NONE, vec![(&expr, Depth::LEAF)]);
        while let Some((e, depth)) = open.pop() {
            deepest = deepest.max(depth);
            open.extend(e.operands().map(|operand| (operand, depth.inside())));
        }
        check_depth(deepest, span)?;
        Ok(Parsed { expr, depth: deepest })
    }

    /// Reads `argmin=` if that is next, of an operator that is declared.
    pub(super) fn named_update(&mut self, c: &mut Cursor<'_, 's>) -> Option<UpdateOp> {
        let (Some(Kind::Name(name)), Some(Kind::Symbol("="))) = (c.peek(), c.peek_second()) else {
            return None;
        };
        let Some(Entity::Operator(operator)) = self.names.get(name) else { return None };
        c.advance();
        c.advance();
        Some(UpdateOp::Named(operator))
    }

    /// Whether an instruction has no name; one that updates by an operator may have none, too.
    pub(super) fn is_unnamed(&self, line: &Line<'s>) -> bool {
        let kind = |k: usize| line.tokens.get(k).map(|token| &token.kind);
        let by_operator = match (kind(0), kind(1), kind(2)) {
            (Some(Kind::Name(_)), Some(Kind::Name(op)), Some(Kind::Symbol("="))) => {
                matches!(self.names.get(op), Some(Entity::Operator(_)))
            }
            _ => false,
        };
        by_operator || is_unnamed(&line.tokens)
    }
}

/// Reads `(name: type, ...)`.
fn fields<'s>(c: &mut Cursor<'_, 's>, what: &str) -> Result<Vec<(&'s str, ScalarType)>> {
    c.expect_symbol("(", &format!("and {what} with its type"))?;
    let mut fields = Vec::new();
    while !c.take_symbol(")") {
        let (name, at) = c.expect_word(&format!("the name of {what}"))?;
        check_name(name, at)?;
        c.expect_symbol(":", "and a type")?;
        fields.push((name, scalar_type(c)?));
        if !c.is_symbol(")") {
            c.expect_symbol(",", "or `)`")?;
        }
    }
    Ok(fields)
}

/// Reads `{law, ...}`, if it is there.
fn laws(c: &mut Cursor<'_, '_>) -> Result<BTreeSet<Law>> {
    let mut laws = BTreeSet::new();
    if !c.take_symbol("{") {
        return Ok(laws);
    }
    while !c.take_symbol("}") {
        let (word, span) = c.expect_word("a law")?;
        let law = Law::ALL.into_iter().find(|law| law.name() == word).ok_or_else(|| {
            let help = "they are `associative`, `commutative` and `no_nan`";
            fail_help(span, format!("`{word}` is not said of operators"), help)
        })?;
        laws.insert(law);
        if !c.is_symbol("}") {
            c.expect_symbol(",", "or `}`")?;
        }
    }
    Ok(laws)
}

fn is_literal(e: &Expr) -> bool {
    matches!(e, Expr::Int(_) | Expr::Real(_)) || e.as_truth().is_some()
}

/// What is wrong with a declaration, and what to try.
fn declined(span: Span, message: &str) -> Fail {
    match message.split_once("; ") {
        Some((what, help)) => fail_help(span, what, help),
        None => fail(span, message),
    }
}

fn scalar_type(c: &mut Cursor<'_, '_>) -> Result<ScalarType> {
    let names = || ScalarType::ALL.map(|ty| format!("`{ty}`")).join(", ");
    let (word, span) = c.expect_word("a type, such as `f64`, `i32`, `u32` or `bool`")?;
    ScalarType::ALL.into_iter().find(|ty| ty.name() == word).ok_or_else(|| {
        fail_help(span, format!("`{word}` is not a type"), format!("the types are {}", names()))
    })
}
