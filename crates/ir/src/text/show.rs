//! Expressions, accesses, affine expressions and domains as text, with the kernel's names.

use super::number::write_real;
use crate::affine::Affine;
use crate::domain::{Constraint, Domain};
use crate::expr::{Access, BinaryOp, Expr, Reduction, UnaryOp};
use crate::ids::{InameId, RuleId, VarId};
use crate::kernel::{Assumption, AxisTag, Insn, Kernel, Rule, WriteOp};
use crate::keywords::is_name;
use crate::lists::BlockLists;
use crate::types::RecordType;
use std::borrow::Cow;
use std::fmt;

/// A part of a kernel that prints with the kernel's names.
#[derive(Clone, Copy)]
pub struct Shown<'k> {
    pub(super) names: Names<'k>,
    item: Item<'k>,
}

#[derive(Clone, Copy)]
enum Item<'k> {
    Expr(&'k Expr),
    Access(&'k Access),
    Affine(&'k Affine),
    Constraint(&'k Constraint),
    Domain(InameId, &'k Domain),
    Insn(&'k Insn),
    Assumption(&'k Assumption),
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            Item::Expr(e) => self.names.expr(f, e, Level::Or),
            Item::Access(a) => self.names.access(f, a),
            Item::Affine(e) => self.names.affine(f, e),
            Item::Constraint(c) => self.names.constraint(f, c),
            Item::Domain(i, d) => {
                self.names.iname(f, i)?;
                self.names.domain(f, i, d)
            }
            Item::Insn(insn) => self.names.insn(f, insn),
            Item::Assumption(a) => self.names.assumption(f, a),
        }
    }
}

impl Kernel {
    fn shown<'k>(&'k self, item: Item<'k>) -> Shown<'k> {
        Shown { names: Names { kernel: self, rule: None }, item }
    }

    /// An expression in the text format.
    pub fn show_expr<'k>(&'k self, e: &'k Expr) -> Shown<'k> {
        self.shown(Item::Expr(e))
    }

    /// An access in the text format.
    pub fn show_access<'k>(&'k self, access: &'k Access) -> Shown<'k> {
        self.shown(Item::Access(access))
    }

    /// A quasi-affine expression in the text format.
    pub fn show_affine<'k>(&'k self, e: &'k Affine) -> Shown<'k> {
        self.shown(Item::Affine(e))
    }

    /// A constraint in the text format, as a comparison.
    pub fn show_constraint<'k>(&'k self, c: &'k Constraint) -> Shown<'k> {
        self.shown(Item::Constraint(c))
    }

    /// The domain of an iname as it stands after `for`: `j in 0..n where j mod 2 == 0`.
    pub fn show_domain<'k>(&'k self, iname: InameId, domain: &'k Domain) -> Shown<'k> {
        self.shown(Item::Domain(iname, domain))
    }

    /// An instruction as one line of the text format.
    pub fn show_insn<'k>(&'k self, insn: &'k Insn) -> Shown<'k> {
        self.shown(Item::Insn(insn))
    }

    /// An assumption as it stands after `assume`.
    pub fn show_assumption<'k>(&'k self, assumption: &'k Assumption) -> Shown<'k> {
        self.shown(Item::Assumption(assumption))
    }
}

/// A name as the text format writes it: in backquotes if it is a keyword or a function.
pub(super) fn spelled(name: &str) -> Cow<'_, str> {
    if is_name(name) { name.into() } else { format!("`{name}`").into() }
}

/// How tightly an operator binds; an operand that binds less tightly stands in brackets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Unary,
    Atom,
}

/// Where names are looked up.
#[derive(Clone, Copy)]
pub(super) struct Names<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) rule: Option<&'k Rule>,
}

pub(super) type Out<'a, 'b> = &'a mut fmt::Formatter<'b>;

impl Names<'_> {
    pub(super) fn iname(&self, f: Out<'_, '_>, id: InameId) -> fmt::Result {
        match self.kernel.inames.get(id) {
            Some(iname) => f.write_str(&spelled(&iname.name)),
            None => write!(f, "{id:?}"), // a foreign id, in a message about a kernel that is not well formed
        }
    }

    pub(super) fn var(&self, f: Out<'_, '_>, id: VarId) -> fmt::Result {
        match self.kernel.vars.get(id) {
            Some(var) => f.write_str(&spelled(&var.name)),
            None => write!(f, "{id:?}"),
        }
    }

    fn rule_name(&self, f: Out<'_, '_>, id: RuleId) -> fmt::Result {
        match self.kernel.rules.get(id) {
            Some(rule) => f.write_str(&spelled(&rule.name)),
            None => write!(f, "{id:?}"),
        }
    }

    /// Writes `e`, in brackets if its operator binds less tightly than `needed`.
    pub(super) fn expr(&self, f: Out<'_, '_>, e: &Expr, needed: Level) -> fmt::Result {
        if level(e) < needed {
            f.write_str("(")?;
            self.bare_expr(f, e)?;
            return f.write_str(")");
        }
        self.bare_expr(f, e)
    }

    fn bare_expr(&self, f: Out<'_, '_>, e: &Expr) -> fmt::Result {
        match e {
            Expr::Int(value) => write!(f, "{value}"),
            Expr::Real(value) => write_real(f, *value),
            Expr::Iname(iname) => self.iname(f, *iname),
            Expr::Load(access) => self.access(f, access),
            Expr::Unary(UnaryOp::Neg, a) => self.negation(f, a),
            Expr::Unary(UnaryOp::Not, a) => {
                f.write_str("not ")?;
                self.expr(f, a, Level::Not)
            }
            Expr::Unary(op @ (UnaryOp::BitNot | UnaryOp::Bits), a) => {
                f.write_str(if *op == UnaryOp::BitNot { "bit_not(" } else { "bits(" })?;
                self.expr(f, a, Level::Or)?;
                f.write_str(")")
            }
            Expr::Unary(UnaryOp::Field(record, k), a) => {
                self.expr(f, a, Level::Atom)?;
                if self.is_ambiguous(a, *record, *k) {
                    write!(f, ".{}", record.name())?;
                }
                write!(f, ".{}", record.field_of(*k).map_or("", |field| &field.name))
            }
            Expr::Binary(op, a, b) => match e.as_truth() {
                Some(value) => write!(f, "{value}"),
                None => self.binary(f, *op, a, b),
            },
            Expr::Call(function, args) => {
                f.write_str(function.name())?;
                self.arguments(f, args)
            }
            Expr::Cast(ty, a) => {
                write!(f, "{ty}(")?;
                self.expr(f, a, Level::Or)?;
                f.write_str(")")
            }
            Expr::Select(c, a, b) => {
                f.write_str("select(")?;
                self.list(f, [&**c, a, b].into_iter())?;
                f.write_str(")")
            }
            Expr::Reduce(reduction) => self.reduction(f, reduction),
            Expr::Rule(rule, args) => {
                self.rule_name(f, *rule)?;
                self.arguments(f, args)
            }
            Expr::RuleParam(k) => match self.rule.and_then(|r| r.params.get(*k as usize)) {
                Some(name) => f.write_str(&spelled(name)),
                None => write!(f, "${k}"),
            },
        }
    }

    /// Whether the name of a field does not say of which record it is: that of an operand of a rule, which
    /// has a type where the rule is used.
    fn is_ambiguous(&self, of: &Expr, record: RecordType, k: u8) -> bool {
        let name = record.field_of(k).map_or("", |field| field.name.as_str());
        self.rule.is_some_and(|rule| self.kernel.rule(&rule.name).is_some())
            && of.any(&mut |e| matches!(e, Expr::RuleParam(_)))
            && self.kernel.declared().records.iter().filter(|other| other.field(name).is_some()).count() > 1
    }

    /// `-3` is a literal, so the negation of a literal is written `-(3)`.
    fn negation(&self, f: Out<'_, '_>, a: &Expr) -> fmt::Result {
        f.write_str("-")?;
        match a {
            Expr::Int(_) | Expr::Real(_) => {
                f.write_str("(")?;
                self.bare_expr(f, a)?;
                f.write_str(")")
            }
            Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => self.expr(f, a, Level::Unary),
        }
    }

    fn binary(&self, f: Out<'_, '_>, op: BinaryOp, a: &Expr, b: &Expr) -> fmt::Result {
        let (left, right, spaced) = match op {
            BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => {
                write!(f, "{}(", op.symbol())?;
                self.list(f, [a, b].into_iter())?;
                return f.write_str(")");
            }
            BinaryOp::Or => (Level::Or, Level::And, true),
            BinaryOp::And => (Level::And, Level::Not, true),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => (Level::Sum, Level::Sum, true),
            BinaryOp::Add | BinaryOp::Sub => (Level::Sum, Level::Product, true),
            BinaryOp::Mul | BinaryOp::Div => (Level::Product, Level::Unary, false),
            // brackets that the grammar does not need: few people know whether `a*b mod c` is
            // `(a*b) mod c`
            BinaryOp::Mod => (Level::Unary, Level::Unary, true),
        };
        self.expr(f, a, left)?;
        if spaced {
            write!(f, " {} ", op.symbol())?;
        } else {
            f.write_str(op.symbol())?;
        }
        self.expr(f, b, right)
    }

    fn arguments(&self, f: Out<'_, '_>, args: &[Expr]) -> fmt::Result {
        f.write_str("(")?;
        self.list(f, args.iter())?;
        f.write_str(")")
    }

    fn list<'e>(&self, f: Out<'_, '_>, items: impl Iterator<Item = &'e Expr>) -> fmt::Result {
        for (k, e) in items.enumerate() {
            if k > 0 {
                f.write_str(", ")?;
            }
            self.expr(f, e, Level::Or)?;
        }
        Ok(())
    }

    pub(super) fn access(&self, f: Out<'_, '_>, access: &Access) -> fmt::Result {
        self.var(f, access.var)?;
        if access.index.is_empty() {
            return Ok(());
        }
        f.write_str("[")?;
        self.list(f, access.index.iter())?;
        f.write_str("]")
    }

    fn reduction(&self, f: Out<'_, '_>, reduction: &Reduction) -> fmt::Result {
        write!(f, "{}(", reduction.op.reduction_name())?;
        for (k, iname) in reduction.inames.iter().enumerate() {
            if k > 0 {
                f.write_str(", ")?;
            }
            self.loop_header(f, *iname)?;
        }
        f.write_str(": ")?;
        self.expr(f, &reduction.body, Level::Or)?;
        f.write_str(")")
    }

    /// `name in lo..hi where set {tag}`.
    pub(super) fn loop_header(&self, f: Out<'_, '_>, id: InameId) -> fmt::Result {
        self.iname(f, id)?;
        let Some(iname) = self.kernel.inames.get(id) else { return Ok(()) };
        self.domain(f, id, &iname.domain)?;
        match iname.tag {
            AxisTag::Sequential => Ok(()),
            tag @ (AxisTag::Unrolled
            | AxisTag::Rolled
            | AxisTag::Vector
            | AxisTag::Group(_)
            | AxisTag::Local(_)
            | AxisTag::Launch) => {
                write!(f, " {{{tag}}}")
            }
        }
    }

    pub(super) fn insn(&self, f: Out<'_, '_>, insn: &Insn) -> fmt::Result {
        write!(f, "{}: ", spelled(&insn.name))?;
        self.access(f, &insn.lhs)?;
        let (symbol, atomic) = match insn.op {
            WriteOp::Assign => ("=", false),
            WriteOp::Update { op, atomic } => (op.update_symbol(), atomic),
        };
        write!(f, " {symbol} ")?;
        self.expr(f, &insn.rhs, Level::Or)?;
        if let Some(predicate) = &insn.predicate {
            f.write_str(" if ")?;
            self.expr(f, predicate, Level::Or)?;
        }
        if insn.tags.is_empty() && !atomic {
            return Ok(());
        }
        f.write_str(" {")?;
        for (k, tag) in insn.tags.iter().enumerate() {
            f.write_str(if k > 0 { ", " } else { "" })?;
            write_label(f, tag)?;
        }
        if atomic {
            f.write_str(if insn.tags.is_empty() { "atomic" } else { ", atomic" })?;
        }
        f.write_str("}")
    }

    pub(super) fn assumption(&self, f: Out<'_, '_>, assumption: &Assumption) -> fmt::Result {
        match assumption {
            Assumption::Params(c) => self.constraint(f, c),
            Assumption::Defined(param, value) => {
                self.var(f, *param)?;
                f.write_str(" = ")?;
                self.expr(f, value, Level::Or)
            }
            Assumption::Injective(var) => {
                f.write_str("injective(")?;
                self.var(f, *var)?;
                f.write_str(")")
            }
            Assumption::Ascending(var) => {
                f.write_str("ascending(")?;
                self.var(f, *var)?;
                f.write_str(")")
            }
            Assumption::Outside(outside) => {
                f.write_str("outside(")?;
                self.var(f, outside.array)?;
                for end in [&outside.from, &outside.to] {
                    f.write_str(", ")?;
                    self.affine(f, end)?;
                }
                outside.own.iter().try_for_each(|first| write!(f, ", {first}"))?;
                f.write_str(")")
            }
            Assumption::Symmetric(symmetry) => {
                f.write_str(if symmetry.negated { "antisymmetric(" } else { "symmetric(" })?;
                self.var(f, symmetry.var)?;
                for image in &symmetry.axes {
                    let mirrored = if image.mirrored { "mirrored " } else { "" };
                    write!(f, ", {mirrored}{}", image.axis)?;
                }
                f.write_str(")")
            }
            Assumption::Lists(lists) => {
                f.write_str("lists(")?;
                let whole = BlockLists { exclusive: None, ..lists.clone() };
                for var in whole.vars() {
                    self.var(f, var)?;
                    f.write_str(", ")?;
                }
                write!(f, "{}", lists.block)?;
                if let Some(exclusive) = lists.exclusive {
                    f.write_str(", ")?;
                    self.var(f, exclusive.counts)?;
                    write!(f, ", {}", exclusive.room)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// How tightly a binary operator binds where it stands between its operands.
pub(crate) fn level_of(op: BinaryOp) -> Level {
    match op {
        BinaryOp::Or => Level::Or,
        BinaryOp::And => Level::And,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => Level::Comparison,
        BinaryOp::Add | BinaryOp::Sub => Level::Sum,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => Level::Product,
        BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => Level::Atom,
    }
}

fn level(e: &Expr) -> Level {
    match e {
        e if e.as_truth().is_some() => Level::Atom,
        Expr::Binary(op, ..) => level_of(*op),
        Expr::Unary(UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _) => Level::Atom,
        Expr::Unary(UnaryOp::Not, _) => Level::Not,
        Expr::Unary(UnaryOp::Neg, _) => Level::Unary,
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => Level::Atom,
    }
}

/// A label or the name of a buffer as the text format writes it: bare if it is an identifier, else
/// in quotes, with control characters escaped. It is one line, and ends in none of what a language
/// reads as more than a character.
pub fn show_label(label: &str) -> String {
    let mut text = String::new();
    let _ = write_label(&mut text, label); // a string takes everything
    text
}

/// Writes a label or the name of a buffer: bare if it is an identifier, else in quotes.
pub(super) fn write_label(f: &mut dyn fmt::Write, label: &str) -> fmt::Result {
    if is_bare_label(label) { f.write_str(label) } else { write_quoted(f, label) }
}

/// Writes text in quotes.
pub(super) fn write_quoted(f: &mut dyn fmt::Write, label: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in label.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("\"")
}

fn is_bare_label(label: &str) -> bool {
    let mut chars = label.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && label != "atomic"
}
