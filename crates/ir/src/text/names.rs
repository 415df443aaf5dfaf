//! The names of a text and what they stand for.

use super::error::{Fail, fail, fail_help, suggestion};
use super::foreign;
use super::lex::Span;
use crate::expr::MathFn;
use crate::functions::ExternalFn;
use crate::ids::{CalleeId, InameId, RuleId, VarId};
use crate::types::RecordType;
use crate::typing::ExprType;
use crate::user_operator::NamedOperator;
use crate::verify::{KEYWORDS, is_name};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Kernel,
    Var(VarId),
    Rule(RuleId),
    Iname(InameId),
    Insn,
    Callee(CalleeId),
    Record(RecordType),
    Operator(NamedOperator),
    External(ExternalFn),
}

/// Names with the places where they are declared.
#[derive(Default)]
pub(super) struct NameTable<'s> {
    entities: HashMap<&'s str, (Entity, Span)>,
    /// Names in the order of the text: a hash map has none.
    order: Vec<&'s str>,
    /// Names of the kernel around a callee, which the callee may give another meaning.
    outside: HashSet<&'s str>,
    /// Names whose declaration failed: their uses are not reported again.
    broken: HashSet<&'s str>,
    /// Loops and reductions around the current place, outer first.
    pub scope: Vec<InameId>,
    /// Parameters of the rule that is being read.
    pub rule_params: Vec<&'s str>,
    /// Their types, where they are those of an operator.
    pub rule_param_types: Vec<ExprType>,
}

impl<'s> NameTable<'s> {
    /// Declares a name.
    pub fn declare(&mut self, name: &'s str, span: Span, entity: Entity) -> Result<(), Fail> {
        check_name(name, span)?;
        // later uses mean the later declaration, so that a repeated name is one error, not many
        let earlier = self.entities.insert(name, (entity, span)).map(|(entity, _)| entity);
        // the kernel's own name may stand for something inside as well
        if earlier.is_some_and(|e| e != Entity::Kernel) && !self.outside.remove(name) {
            let name = plain(name);
            return Err(fail_help(span, format!("`{name}` names two things"), "rename one"));
        }
        self.order.push(name);
        Ok(())
    }

    /// Takes over records, operators, declared functions and functions of the kernel around a callee.
    pub fn inherit(&mut self, around: &Self, functions: &BTreeSet<CalleeId>) {
        for name in &around.order {
            let Some((entity, span)) = around.entities.get(name) else { continue };
            let is_known = match entity {
                Entity::Record(_) | Entity::Operator(_) | Entity::External(_) => true,
                Entity::Callee(id) => functions.contains(id),
                Entity::Kernel | Entity::Var(_) | Entity::Rule(_) | Entity::Iname(_) | Entity::Insn => false,
            };
            if is_known && !around.broken.contains(name) {
                self.entities.insert(name, (*entity, *span));
                self.order.push(name);
                self.outside.insert(name);
            }
        }
    }

    /// Notes that a declaration failed.
    pub fn mark_broken(&mut self, name: &'s str) {
        self.broken.insert(name);
    }

    pub fn get(&self, name: &str) -> Option<Entity> {
        self.entities.get(name).map(|(entity, _)| *entity)
    }

    /// The records that are declared, in the order of the text.
    pub fn records(&self) -> impl Iterator<Item = RecordType> + '_ {
        self.order.iter().filter_map(|name| match self.get(name) {
            Some(Entity::Record(record)) => Some(record),
            Some(
                Entity::Kernel
                | Entity::Var(_)
                | Entity::Rule(_)
                | Entity::Iname(_)
                | Entity::Insn
                | Entity::Callee(_)
                | Entity::Operator(_)
                | Entity::External(_),
            )
            | None => None,
        })
    }

    /// Where a name is declared.
    pub fn span_of(&self, name: &str) -> Option<Span> {
        self.entities.get(name).map(|(_, span)| *span)
    }

    /// Refuses a name whose declaration failed, with an error that the parser drops in the end.
    pub fn check_whole(&self, name: &str, span: Span) -> Result<(), Fail> {
        if self.broken.contains(name) { Err(fail(span, String::new())) } else { Ok(()) }
    }

    /// The error of a name that stands for nothing.
    pub fn unknown(&self, name: &str, span: Span, what: &str) -> Fail {
        if let Err(silent) = self.check_whole(name, span) {
            return silent;
        }
        let has_value = |name: &&&str| match self.get(name) {
            Some(Entity::Var(_) | Entity::Rule(_) | Entity::Iname(_)) => true,
            Some(Entity::Record(_) | Entity::Operator(_) | Entity::External(_)) => true,
            Some(Entity::Kernel | Entity::Insn | Entity::Callee(_)) | None => false,
        };
        let known = self.order.iter().filter(has_value).chain(&self.rule_params).copied();
        let functions = MathFn::ALL.iter().map(|f| f.name());
        let mut error = fail(span, format!("{what} `{name}` is not known"));
        error.help = suggestion(name, known.chain(functions).chain(KEYWORDS.iter().copied()));
        error.help = error.help.or_else(|| foreign::word(name).map(Into::into));
        error
    }
}

/// What a word names: itself, without the backquotes of a keyword.
pub(super) fn plain(word: &str) -> &str {
    word.trim_matches('`')
}

/// Whether a word may be a name.
pub(super) fn may_name(word: &str) -> bool {
    is_name(word) || word.starts_with('`')
}

/// Checks that a word may be a name.
pub(super) fn check_name(name: &str, span: Span) -> Result<(), Fail> {
    if may_name(name) {
        return Ok(());
    }
    let kind = if MathFn::from_name(name).is_some() { "a function" } else { "a keyword" };
    Err(fail_help(
        span,
        format!("`{name}` is {kind} and cannot be a name"),
        format!("choose another name, or put it in backquotes: `` `{name}` ``"),
    ))
}
