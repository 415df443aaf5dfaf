//! Records that are taken apart: `(q, r) = value` stores a record, and then its fields.

use super::cursor::Cursor;
use super::error::{Fail, fail, fail_help};
use super::lex::Span;
use super::line::Line;
use super::made::Branches;
use super::parse::Parser;
use crate::expr::{Access, Expr, UnaryOp};
use crate::guards::Guarding;
use crate::kernel::{Insn, Node, WriteOp};
use crate::types::RecordType;
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, Fail>;

/// What `name: (q, r) = value if predicate {tags}` says.
struct Tuple {
    name: String,
    targets: Vec<Access>,
    value: Expr,
    record: RecordType,
    predicate: Option<Expr>,
    tags: BTreeSet<String>,
    span: Span,
}

impl<'s> Parser<'s> {
    /// Reads `(q, r) = value`: the instructions that it is.
    pub(super) fn tuple_line(&mut self, line: &Line<'s>) -> Option<Vec<Node>> {
        let depth = self.names.scope.len();
        self.made.outside = Some(depth);
        let tuple = self.whole_line(line, Self::tuple);
        self.names.scope.truncate(depth); // a reduction that failed leaves its loops
        let mut nodes = self.reads();
        let Tuple { name, targets, value, record, predicate, tags, span } = tuple?;
        let whole = self.scalar(&format!("{name}_value"), crate::ScalarType::Record(record));
        let insn = |name, lhs, rhs| {
            let (op, tags) = (WriteOp::Assign, tags.clone());
            Insn { name, lhs, op, rhs, predicate: None, tags, callee: None }
        };
        nodes.push(Node::Insn(self.kernel.insns.push(insn(name, Access::scalar(whole), value))));
        for (k, target) in (0..).zip(targets) {
            let name = self.unnamed.name();
            self.statement_of(name.clone(), span);
            let field = Expr::Unary(UnaryOp::Field(record, k), Box::new(Expr::scalar(whole)));
            nodes.push(Node::Insn(self.kernel.insns.push(insn(name, target, field))));
        }
        let Some(predicate) = predicate else { return Some(nodes) };
        Some(self.guarded(Branches { conditions: vec![(Some(predicate), span)], bodies: vec![nodes] }))
    }

    fn tuple(&mut self, c: &mut Cursor<'_, 's>) -> Result<Tuple> {
        let span = c.whole_span();
        let is_unnamed = c.is_symbol("(");
        let name = if is_unnamed { self.unnamed.name() } else { self.name_of_instruction(c)?.to_owned() };
        self.statement_of(name.clone(), span);
        c.expect_symbol("(", "and what the fields of a record are stored in")?;
        let mut targets = Vec::new();
        while !c.take_symbol(")") {
            targets.push(self.access(c)?.0);
            if !c.is_symbol(")") {
                c.expect_symbol(",", "or `)`")?;
            }
        }
        c.expect_symbol("=", "and a record")?;
        let at = c.span();
        let value = self.expression(c)?;
        let at = at.to(c.last_span());
        let found = self.kernel.type_of(&value, &[]).map_err(|error| fail(at, error.to_string()))?;
        let Some(record) = found.record() else {
            let help = "only a record has several values: declare `record`, or write an instruction for each";
            return Err(fail_help(at, format!("the value is {found}, needed a record"), help));
        };
        if targets.len() != record.fields.len() {
            let (name, needed) = (record.name(), record.fields.len());
            let message =
                format!("`{name}` has {needed} fields, found {} places to store them", targets.len());
            return Err(fail_help(at, message, "name a place for each field, in order"));
        }
        let (predicate, tags) = self.predicate_and_tags(c, &mut WriteOp::Assign)?;
        Ok(Tuple { name, targets, value, record, predicate, tags, span })
    }
}
