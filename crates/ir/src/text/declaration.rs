//! Declarations: variables, substitution rules, assumptions, values of tables.

use super::cursor::{Cursor, label};
use super::error::{Fail, fail, fail_help};
use super::lex::{Kind, Span};
use super::names::{Entity, check_name, plain};
use super::number::{read_int, read_real};
use super::parse::Parser;
use super::print::default_space;
use crate::affine::Affine;
use crate::complex::Complex;
use crate::constant::{Real, TableData};
use crate::expr::Expr;
use crate::ids::{RuleId, VarId};
use crate::kernel::{AddressSpace, Assumption, Direction, Rule, VarKind, Variable};
use crate::lists::{BlockLists, ExclusiveItems, InverseLists};
use crate::outside::OutsideRange;
use crate::places::{Layout, Places, Swizzle};
use crate::symmetry::{AxisImage, Symmetry};
use crate::types::ScalarType;

type Result<T> = std::result::Result<T, Fail>;

impl<'s> Parser<'s> {
    /// Declares the name of a variable; [`Self::variable_declaration`] reads the rest once all
    /// names are known.
    pub(super) fn declare_variable(&mut self, name: &'s str, span: Span) -> Result<VarId> {
        let placeholder =
            Variable::new(plain(name), ScalarType::F64, VarKind::Temporary, [], AddressSpace::Private);
        let id = self.kernel.vars.push(placeholder);
        self.names.declare(name, span, Entity::Var(id)).map(|()| id)
    }

    /// Reads `param name: type[shape] attributes` and the like, from its first word.
    pub(super) fn variable_declaration(&mut self, c: &mut Cursor<'_, 's>, id: VarId) -> Result<()> {
        let (keyword, keyword_span) = c.expect_word("a declaration")?;
        let (name, _) = c.expect_word("a name")?;
        let ty = if c.take_symbol(":") { self.element_type(c)? } else { self.type_left_out(c, keyword, id)? };
        let shape = if c.take_symbol("[") { self.shape(c, keyword, name)? } else { Vec::new() };
        if keyword == "param" {
            self.definition(c, id)?;
        }
        let kind = match keyword {
            "param" => VarKind::Param,
            "arg" => VarKind::Argument(Direction::In),
            "temp" => VarKind::Temporary,
            _ if ty.is_real() => VarKind::Table(TableData::real([])),
            _ if ty.is_complex() => VarKind::Table(TableData::complex([])),
            _ => VarKind::Table(TableData::int([])),
        };
        let mut attributes = Attributes::default();
        let mut var = Variable::new(plain(name), ty, kind, shape, AddressSpace::Private);
        while !c.is_at_end() {
            self.attribute(c, &mut var, &mut attributes)?;
        }
        if let VarKind::Argument(direction) = &mut var.kind {
            let missing = || {
                let help = format!("write `in`, `out` or `inout` after the type of `{name}`");
                fail_help(keyword_span.to(c.last_span()), format!("argument `{name}` has no direction"), help)
            };
            *direction = attributes.direction.ok_or_else(missing)?;
        } else if attributes.direction.is_some() {
            let message = format!("`{name}` is a {keyword} and has no direction");
            return Err(fail_help(c.whole_span(), message, "only `arg` has one"));
        }
        var.space = attributes.space.unwrap_or_else(|| default_space(&var.kind, var.shape.is_empty()));
        self.kernel.vars[id] = var;
        Ok(())
    }

    fn attribute(&mut self, c: &mut Cursor<'_, 's>, var: &mut Variable, seen: &mut Attributes) -> Result<()> {
        let (word, span) = c.expect_word("`in`, `out`, `inout`, an address space, or a layout")?;
        let space = AddressSpace::ALL.into_iter().find(|s| s.name() == word);
        let repeated = match word {
            "in" => seen.direction.replace(Direction::In).is_some(),
            "out" => seen.direction.replace(Direction::Out).is_some(),
            "inout" => seen.direction.replace(Direction::InOut).is_some(),
            "storage" => {
                c.expect_symbol("(", "and the name of the buffer")?;
                let (label, _) = label(c, "the name of the buffer")?;
                c.expect_symbol(")", "after the name of the buffer")?;
                var.storage.replace(label).is_some()
            }
            _ if space.is_some() => std::mem::replace(&mut seen.space, space).is_some(),
            _ => {
                if let Some(repeated) = layout_attribute(self, c, word, &mut var.layout)? {
                    repeated
                } else {
                    let known = ["in", "out", "inout", "global", "constant", "local", "private"];
                    let known = known.into_iter().chain(["strides", "order", "vector", "storage"]);
                    let mut error = fail(span, format!("`{word}` is not an attribute of variables"));
                    error.help = super::error::suggestion(word, known);
                    return Err(error);
                }
            }
        };
        if repeated {
            return Err(fail_help(span, format!("`{word}` says a second time what was said"), "remove one"));
        }
        Ok(())
    }

    fn strides(&mut self, c: &mut Cursor<'_, 's>) -> Result<Vec<Affine>> {
        let mut list = Vec::new();
        while !c.take_symbol(")") {
            list.push(self.affine(c)?);
            if !c.is_symbol(")") {
                c.expect_symbol(",", "or `)`")?;
            }
        }
        Ok(list)
    }

    /// Declares the name and the parameters of a rule; its body is read once all names are known.
    pub(super) fn declare_rule(&mut self, c: &mut Cursor<'_, 's>) -> Result<RuleId> {
        c.advance();
        let (name, span) = c.expect_word("the name of the rule")?;
        let rule = Rule { name: plain(name).to_owned(), params: Vec::new(), body: Expr::Int(0) };
        let id = self.kernel.rules.push(rule);
        self.names.declare(name, span, Entity::Rule(id))?;
        let params = rule_params(c)?;
        self.kernel.rules[id].params = params.into_iter().map(|(p, _)| plain(p).to_owned()).collect();
        Ok(id)
    }

    /// Reads `rule name(params) := body` from its first word.
    pub(super) fn rule_body(&mut self, c: &mut Cursor<'_, 's>, id: RuleId) -> Result<()> {
        c.advance();
        c.advance();
        let params = rule_params(c)?;
        for (param, span) in &params {
            if matches!(self.names.get(param), Some(Entity::Var(_) | Entity::Rule(_))) {
                let message = format!("the parameter `{param}` has the name of something else");
                return Err(fail_help(*span, message, "rename the parameter"));
            }
        }
        c.expect_symbol(":=", "and the body of the rule")?;
        self.names.rule_params = params.into_iter().map(|(p, _)| p).collect();
        let body = self.expression(c);
        self.names.rule_params.clear();
        self.kernel.rules[id].body = body?;
        self.note_reduction(id);
        c.expect_end("the rule")
    }

    /// Reads `assume ...` from its first word.
    pub(super) fn assumption(&mut self, c: &mut Cursor<'_, 's>) -> Result<()> {
        c.advance();
        let assumption = if c.take_word("injective") {
            Assumption::Injective(self.integers(c, "an array of integers", &|axes| axes > 0)?)
        } else if c.take_word("ascending") {
            Assumption::Ascending(self.integers(c, "an array of integers of one axis", &|axes| axes == 1)?)
        } else if c.is_word("outside") && c.peek_second() == Some(&Kind::Symbol("(")) {
            self.outside(c)?
        } else if c.is_word("symmetric") || c.is_word("antisymmetric") {
            self.symmetry(c)?
        } else if c.is_word("lists") {
            self.lists(c)?
        } else {
            Assumption::Params(self.constraint(c)?)
        };
        c.expect_end("the assumption")?;
        self.kernel.assumptions.push(assumption);
        Ok(())
    }

    /// Reads `(array)` of integers.
    fn integers(
        &mut self,
        c: &mut Cursor<'_, 's>,
        needed: &str,
        has_axes: &dyn Fn(usize) -> bool,
    ) -> Result<VarId> {
        c.expect_symbol("(", "and an array")?;
        let (name, span) = c.expect_word("the name of an array")?;
        let var = self.variable(name, span)?;
        let declared = &self.kernel.vars[var];
        if declared.ty.is_real() || !has_axes(declared.shape.len()) {
            return Err(fail(span, format!("`{name}` is not {needed}")));
        }
        c.expect_symbol(")", "after the array")?;
        Ok(var)
    }

    /// Reads `outside(array, from, to)`, and the first column of numbers that rows have alone after
    /// it.
    fn outside(&mut self, c: &mut Cursor<'_, 's>) -> Result<Assumption> {
        c.advance();
        c.expect_symbol("(", "and an array")?;
        let (name, span) = c.expect_word("the name of an array")?;
        let array = self.variable(name, span)?;
        c.expect_symbol(",", "and the range")?;
        let from = self.affine(c)?;
        c.expect_symbol(",", "and the end of the range")?;
        let to = self.affine(c)?;
        let own = match c.take_symbol(",") {
            true => Some(list_length(c, "the first column of numbers that rows have alone")?),
            false => None,
        };
        c.expect_symbol(")", "after the range")?;
        let outside = OutsideRange { array, from, to, own };
        match outside.check(&self.kernel) {
            Ok(()) => Ok(Assumption::Outside(outside)),
            Err((var, why)) => Err(fail(span, format!("`{}`: {why}", self.kernel.vars[var].name))),
        }
    }

    /// Reads `symmetric(array, mirrored 0, 1)` or `antisymmetric(...)`: the image along each axis.
    fn symmetry(&mut self, c: &mut Cursor<'_, 's>) -> Result<Assumption> {
        let negated = c.is_word("antisymmetric");
        c.advance();
        c.expect_symbol("(", "and an array")?;
        let (name, span) = c.expect_word("the name of an array")?;
        let mut symmetry = Symmetry { var: self.variable(name, span)?, axes: Vec::new(), negated };
        while c.take_symbol(",") {
            let mirrored = c.take_word("mirrored");
            let (at, needed) = (c.span(), "the number of an axis, perhaps after `mirrored`");
            let Some(Kind::Int(digits)) = c.peek() else { return Err(c.expected(needed)) };
            let axis = digits.parse().map_err(|_| fail(at, format!("there is no axis `{digits}`")))?;
            c.advance();
            symmetry.axes.push(AxisImage { axis, mirrored });
        }
        c.expect_symbol(")", "after the axes")?;
        let declared = &self.kernel.vars[symmetry.var];
        let help = "name each axis once, such as `symmetric(a, mirrored 0)` or `symmetric(a, 1, 0)`";
        if symmetry.check(&declared.shape).is_err() {
            return Err(fail_help(span, format!("these axes are no symmetry of `{name}`"), help));
        }
        if declared.ty.is_real() || !negated {
            return Ok(Assumption::Symmetric(symmetry));
        }
        Err(fail(span, format!("`{name}` is not an array of reals")))
    }

    /// Reads `lists(map, items, counts, numbers, block)`, with `starts, places` before the block where
    /// there is an inverse, and the counts and the room of exclusive items after it.
    fn lists(&mut self, c: &mut Cursor<'_, 's>) -> Result<Assumption> {
        let start = c.span();
        c.advance();
        c.expect_symbol("(", "and a map")?;
        let mut vars = Vec::new();
        for what in ["the map", "the lists", "their lengths", "the numbers"] {
            let (name, span) = c.expect_word(what)?;
            vars.push(self.variable(name, span)?);
            c.expect_symbol(",", "and what follows")?;
        }
        if matches!(c.peek(), Some(Kind::Name(_))) {
            for what in ["the first places", "the places"] {
                let (name, span) = c.expect_word(what)?;
                vars.push(self.variable(name, span)?);
                c.expect_symbol(",", "and what follows")?;
            }
        }
        let block = list_length(c, "the number of rows of a block")?;
        let exclusive = if c.is_symbol(",") {
            c.advance();
            let (name, span) = c.expect_word("the numbers of exclusive items")?;
            let counts = self.variable(name, span)?;
            c.expect_symbol(",", "and the room for them")?;
            Some(ExclusiveItems { counts, room: list_length(c, "the room for exclusive items")? })
        } else {
            None
        };
        c.expect_symbol(")", "after the lists")?;
        let inverse = vars.get(4).zip(vars.get(5));
        let inverse = inverse.map(|(starts, places)| InverseLists { starts: *starts, places: *places });
        let [map, items, counts, numbers] = [vars[0], vars[1], vars[2], vars[3]];
        let lists = BlockLists { map, items, counts, numbers, inverse, block, exclusive };
        match lists.check(&self.kernel) {
            Ok(()) => Ok(Assumption::Lists(lists)),
            Err((var, why)) => Err(fail(start, format!("`{}`: {why}", self.kernel.vars[var].name))),
        }
    }

    /// Reads `table name = [values]` from its first word.
    pub(super) fn table_values(&mut self, c: &mut Cursor<'_, 's>) -> Result<()> {
        c.advance();
        let (name, span) = c.expect_word("the name of a table")?;
        let id = self.variable(name, span)?;
        let var = &self.kernel.vars[id];
        let (ty, is_table) = (var.ty, matches!(var.kind, VarKind::Table(_)));
        let needed = var.shape.iter().try_fold(1_i64, |n, e| n.checked_mul(e.as_constant()?));
        if !is_table {
            let help = format!("declare it with `table {name}: ...`");
            return Err(fail_help(span, format!("`{name}` is not a table"), help));
        }
        if self.filled.contains(&id) {
            return Err(fail(span, format!("table `{name}` has its values already")));
        }
        self.filled.insert(id); // also if the values are wrong: one error is enough
        c.expect_symbol("=", "and the values")?;
        let data = if ty.is_real() {
            TableData::Real(self.value_list(c, name, |p, c, negative| p.real_value(c, negative, ty))?.into())
        } else if ty.is_complex() {
            let value = |p: &Self, c: &mut Cursor<'_, 's>, negative| p.complex_value(c, negative, ty.part());
            TableData::Complex(self.value_list(c, name, value)?.into())
        } else {
            TableData::Int(self.value_list(c, name, |_, c, negative| int_value(c, negative, ty))?.into())
        };
        c.expect_end("the table")?;
        if let Some(needed) = needed.filter(|n| usize::try_from(*n).ok() != Some(data.len())) {
            let message = format!("table `{name}` has {} values, its shape needs {needed}", data.len());
            return Err(fail(span, message));
        }
        self.kernel.vars[id].kind = VarKind::Table(data);
        Ok(())
    }

    fn value_list<T>(
        &self,
        c: &mut Cursor<'_, 's>,
        name: &str,
        value: impl Fn(&Self, &mut Cursor<'_, 's>, bool) -> Result<T>,
    ) -> Result<Vec<T>> {
        c.expect_symbol("[", "and the values")?;
        let mut list = Vec::new();
        while !c.take_symbol("]") {
            if c.is_symbol("...") {
                let message = format!("the values of table `{name}` are abridged");
                return Err(fail_help(c.span(), message, "print the kernel with its tables in full"));
            }
            let negative = c.take_symbol("-");
            list.push(value(self, c, negative)?);
            if !c.is_symbol("]") {
                c.expect_symbol(",", "or `]`")?;
            }
        }
        Ok(list)
    }

    fn real_value(&self, c: &mut Cursor<'_, 's>, negative: bool, ty: ScalarType) -> Result<Real> {
        if let Some(Kind::Int(digits)) = c.peek() {
            let value = read_real(digits, negative, ty);
            let value =
                value.ok_or_else(|| fail(c.span(), format!("`{digits}` is beyond the largest {ty}")))?;
            c.advance();
            return Ok(value);
        }
        self.real_literal(c, negative, ty)?.ok_or_else(|| c.expected("a number"))
    }

    /// Reads `complex(re, im)`, an imaginary number or a real one, of parts of a type.
    fn complex_value(
        &self,
        c: &mut Cursor<'_, 's>,
        negative: bool,
        part: ScalarType,
    ) -> Result<Complex<Real>> {
        let zero = Real(if negative { -0.0 } else { 0.0 });
        if let Some(Kind::Imaginary(digits)) = c.peek() {
            let im = read_real(digits, negative, part);
            let im = im.ok_or_else(|| {
                let message = format!("`{digits}i` is beyond the largest {part}");
                fail_help(c.span(), message, "write `complex(0.0, inf)` for infinity")
            })?;
            c.advance();
            return Ok(Complex { re: zero, im });
        }
        if negative || !c.take_word("complex") {
            return Ok(Complex { re: self.real_value(c, negative, part)?, im: Real(0.0) });
        }
        c.expect_symbol("(", "and both parts")?;
        let mut signed = |after: &'static str| {
            let negative = c.take_symbol("-");
            let value = self.real_value(c, negative, part)?;
            c.expect_symbol(after, "after a part of the number").map(|()| value)
        };
        Ok(Complex { re: signed(",")?, im: signed(")")? })
    }
}

#[derive(Default)]
struct Attributes {
    direction: Option<Direction>,
    space: Option<AddressSpace>,
}

/// Reads what follows `strides`, `order`, `vector` or `swizzle`; says whether the layout had it already, or
/// nothing if the word is none of them.
pub(super) fn layout_attribute<'s>(
    parser: &mut Parser<'s>,
    c: &mut Cursor<'_, 's>,
    word: &str,
    layout: &mut Layout,
) -> Result<Option<bool>> {
    let at = c.last_span();
    let places = match word {
        "strides" => {
            c.expect_symbol("(", "and the strides")?;
            Places::Strides(parser.strides(c)?)
        }
        "order" => {
            c.expect_symbol("(", "and the axes, outermost first")?;
            let mut order = vec![axis_number(c)?];
            while !c.take_symbol(")") {
                c.expect_symbol(",", "or `)`")?;
                order.push(axis_number(c)?);
            }
            Places::Order(order)
        }
        "vector" => {
            c.expect_symbol("(", "and the number of an axis")?;
            let axis = axis_number(c)?;
            c.expect_symbol(")", "after the axis")?;
            return Ok(Some(layout.vector_axis.replace(axis).is_some()));
        }
        "swizzle" => {
            c.expect_symbol("(", "and `axis ^= other`")?;
            let axis = axis_number(c)?;
            c.expect_symbol("^=", "and the axis whose index permutes")?;
            let swizzle = Swizzle { axis, by: axis_number(c)? };
            c.expect_symbol(")", "after the axes")?;
            return Ok(Some(layout.swizzle.replace(swizzle).is_some()));
        }
        _ => return Ok(None),
    };
    let is_repeated = match (&layout.places, &places) {
        (Places::RowMajor, _) => false,
        (Places::Strides(_), Places::Strides(_)) | (Places::Order(_), Places::Order(_)) => true,
        (Places::Strides(_) | Places::Order(_), _) => {
            return Err(fail_help(at, "an array has strides or an order", "remove one of them"));
        }
    };
    layout.places = match places {
        Places::Order(order) => Places::in_order(order),
        other @ (Places::RowMajor | Places::Strides(_)) => other,
    };
    Ok(Some(is_repeated))
}

fn axis_number(c: &mut Cursor<'_, '_>) -> Result<u32> {
    let axis = match c.peek() {
        Some(Kind::Int(digits)) => digits.parse().ok(),
        _ => None,
    };
    let axis = axis.ok_or_else(|| c.expected("the number of an axis, from 0"))?;
    c.advance();
    Ok(axis)
}

fn rule_params<'s>(c: &mut Cursor<'_, 's>) -> Result<Vec<(&'s str, Span)>> {
    c.expect_symbol("(", "and the parameters of the rule")?;
    let mut params: Vec<(&str, Span)> = Vec::new();
    while !c.take_symbol(")") {
        let (name, span) = c.expect_word("the name of a parameter")?;
        check_name(name, span)?;
        if params.iter().any(|(p, _)| *p == name) {
            return Err(fail_help(span, format!("`{name}` names two parameters"), "rename one"));
        }
        params.push((name, span));
        if !c.is_symbol(")") {
            c.expect_symbol(",", "or `)`")?;
        }
    }
    Ok(params)
}

/// Reads a number of rows or items.
fn list_length(c: &mut Cursor<'_, '_>, needed: &str) -> Result<i64> {
    let at = c.span();
    let Some(Kind::Int(digits)) = c.peek() else { return Err(c.expected(needed)) };
    let length = digits.parse().map_err(|_| fail(at, format!("`{digits}` does not fit 64 bits")))?;
    c.advance();
    Ok(length)
}

fn int_value(c: &mut Cursor<'_, '_>, negative: bool, ty: ScalarType) -> Result<i64> {
    let Some(Kind::Int(digits)) = c.peek() else {
        return Err(c.expected(&format!("an integer, as the table holds {ty}")));
    };
    let fits = |value: &i64| TableData::int([*value]).fits(ty);
    let sign = if negative { "-" } else { "" };
    let value = read_int(digits, negative)
        .filter(fits)
        .ok_or_else(|| fail(c.span(), format!("the integer `{sign}{digits}` does not fit {ty}")))?;
    c.advance();
    Ok(value)
}
