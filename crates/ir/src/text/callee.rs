//! Reading callees: `callee name`, a kernel's declarations and body, and the code of targets, all
//! indented.

use super::attributes::sub_group_width;
use super::cursor::{Cursor, label};
use super::error::{Fail, fail, fail_help};
use super::lex::{Kind, Span, tokens};
use super::line::Line;
use super::names::{Entity, plain};
use super::parse::Parser;
use super::show::spelled;
use super::statement::{Statement, statement};
use crate::calls::{Beginning, Callee, Completion, Piece, TargetCode};
use crate::expr::Access;
use crate::ids::{CalleeId, VarId};
use crate::kernel::{AddressSpace, AxisTag, Kernel, VarKind};
use std::collections::{BTreeMap, BTreeSet};

type Result<T> = std::result::Result<T, Fail>;

impl<'s> Parser<'s> {
    /// Reads `callee name` or `function name`, and the lines that are indented below it.
    pub(super) fn callee(&mut self, header: &Line<'s>, inner: &[Line<'s>]) {
        let mut c = Cursor::new(&header.tokens);
        let is_function = c.is_word("function");
        c.advance();
        let span = c.whole_span();
        let name = c.expect_word("the name of the callee").and_then(|(name, at)| {
            let mut kernel = Kernel { name: plain(name).to_owned(), ..Kernel::default() };
            if c.take_symbol("{") {
                kernel.sub_group = sub_group_width(&mut c)?;
                c.expect_symbol("}", "after the width of sub-groups")?;
            }
            c.expect_end("the name")?;
            let id = self.kernel.callees.push(Callee::new(kernel));
            self.statement_of(name, span);
            self.names.declare(name, at, Entity::Callee(id)).map(|()| (name, id))
        });
        let Some((name, id)) = self.note(name) else { return };
        if let Some(line) = inner.iter().find(|l| statement(l) == Statement::Callee) {
            let span = Cursor::new(&line.tokens).whole_span();
            self.note::<()>(Err(fail_help(span, "a callee in a callee", "declare each at the left margin")));
            return;
        }
        let base = inner.iter().map(|l| l.indent).min().unwrap_or(0);
        let (code, lines): (Vec<Line<'s>>, Vec<Line<'s>>) =
            inner.iter().map(|l| Line { indent: l.indent - base, ..l.clone() }).partition(|l| is_code(l));
        match Parser::of_callee(self.kernel.callees[id].kernel.clone(), span).inside(self).read(&lines) {
            Ok(kernel) => {
                self.kernel.callees[id].kernel = kernel;
                if is_function {
                    let function = self.function(id, code.first());
                    self.note(function);
                }
            }
            Err(errors) => {
                self.names.mark_broken(name);
                return errors.into_iter().for_each(|e| {
                    self.note::<()>(Err(Box::new(e)));
                });
            }
        }
        for line in code.iter().filter(|l| l.sound) {
            let kernel = &self.kernel.callees[id].kernel;
            let code = target_code(&mut Cursor::new(&line.tokens), kernel);
            if let Some(code) = self.note(code) {
                self.kernel.callees[id].code.push(code);
            }
        }
    }

    /// Notes that a callee is a function, of which the kernel keeps what calls do.
    fn function(&mut self, id: CalleeId, code: Option<&Line<'s>>) -> Result<()> {
        self.made.functions.insert(id);
        if let Some(code) = code {
            let span = Cursor::new(&code.tokens).whole_span();
            return Err(fail_help(span, "a function has no code", "declare it as a `callee`"));
        }
        let kernel = &self.kernel.callees[id].kernel;
        let table = kernel.vars.values().find(|var| matches!(var.kind, VarKind::Table(_)));
        if table.is_none() && kernel.assumptions.is_empty() {
            return Ok(());
        }
        let what = table.map_or("assumptions".into(), |table| format!("the table `{}`", table.name));
        let message = format!("the function `{}` has {what}", kernel.name);
        Err(fail_help(
            self.place_of_name(&kernel.name),
            message,
            "declare it outside; pass tables as arguments",
        ))
    }

    /// Reads `call name`.
    pub(super) fn call_line(&mut self, line: &Line<'s>) -> Result<CalleeId> {
        let mut c = Cursor::new(&line.tokens);
        let callee = self.name_of_call(&mut c)?;
        c.expect_end("the call")?;
        if self.made.functions.contains(&callee) {
            let help = "write its arguments, as in `call f(n = 4, x = u[i, 0..])`";
            return Err(fail_help(c.whole_span(), "the call of a function has arguments", help));
        }
        Ok(callee)
    }

    /// Reads `call name` up to the name.
    pub(super) fn name_of_call(&mut self, c: &mut Cursor<'_, 's>) -> Result<CalleeId> {
        c.advance();
        let (name, span) = c.expect_word("the name of a callee")?;
        self.names.check_whole(name, span)?;
        match self.names.get(name) {
            Some(Entity::Callee(id)) => Ok(id),
            Some(
                Entity::Kernel
                | Entity::Var(_)
                | Entity::Rule(_)
                | Entity::Iname(_)
                | Entity::Insn
                | Entity::Record(_)
                | Entity::Operator(_)
                | Entity::External(_),
            ) => Err(fail(span, format!("`{name}` is not a callee"))),
            None => Err(fail_help(
                span,
                format!("the callee `{name}` is not known"),
                format!("declare it with `callee {name}` above the body"),
            )),
        }
    }
}

fn is_code(line: &Line<'_>) -> bool {
    let kind = |k: usize| line.tokens.get(k).map(|t| &t.kind);
    kind(0) == Some(&Kind::Name("code")) && kind(1) != Some(&Kind::Symbol(":"))
}

/// Reads `code target needs(features) memory(a: global) aligned(16) proxy("statement")
/// completes("statement") hint ("line" ...)` from its first word, or the same with the statements for groups of calls.
fn target_code(c: &mut Cursor<'_, '_>, kernel: &Kernel) -> Result<TargetCode> {
    c.advance();
    let (target, _) = label(c, "the name of a target")?;
    let mut needs = BTreeSet::new();
    if c.take_word("needs") {
        c.expect_symbol("(", "and what a device must offer")?;
        while !c.take_symbol(")") {
            needs.insert(label(c, "the name of a feature")?.0);
            if !c.is_symbol(")") {
                c.expect_symbol(",", "or `)`")?;
            }
        }
    }
    let memory = if c.take_word("memory") { memory_of_arguments(c, kernel)? } else { BTreeMap::new() };
    let aligned = if c.take_word("aligned") { Some(bytes(c)?) } else { None };
    let proxy = if c.take_word("proxy") { Some(proxy(c)?) } else { None };
    let completes = if c.take_word("completes") { Some(completion(c)?) } else { None };
    let hint = c.take_word("hint");
    let mut text = Vec::new();
    for (line, span) in lines_of_code(c)? {
        if !text.is_empty() {
            push_text(&mut text, "\n");
        }
        pieces(line, span, kernel, &mut text)?;
    }
    c.expect_end("the code")?;
    Ok(TargetCode { target, needs, memory, aligned, proxy, completes, hint, text })
}

/// Reads `("line" ...)`.
pub(super) fn lines_of_code<'t>(c: &mut Cursor<'t, '_>) -> Result<Vec<(&'t str, Span)>> {
    c.expect_symbol("(", "and the code as strings, one a line")?;
    let mut lines = Vec::new();
    while !c.take_symbol(")") {
        let span = c.span();
        let Some(Kind::Text(line)) = c.peek() else {
            return Err(c.expected("a line of code in quotes, or `)`"));
        };
        c.advance();
        lines.push((line.as_str(), span));
    }
    if lines.is_empty() {
        return Err(fail(c.last_span(), "the code is empty"));
    }
    Ok(lines)
}

/// Reads `(argument: address space, ...)`.
fn memory_of_arguments(c: &mut Cursor<'_, '_>, kernel: &Kernel) -> Result<BTreeMap<VarId, AddressSpace>> {
    c.expect_symbol("(", "and the memory of arguments")?;
    let mut memory = BTreeMap::new();
    while !c.take_symbol(")") {
        let (name, span) = c.expect_word("the name of an argument")?;
        let var = kernel
            .var(plain(name))
            .ok_or_else(|| fail(span, format!("`{name}` is no argument of the callee")))?;
        c.expect_symbol(":", "and an address space")?;
        let (word, at) = c.expect_word("an address space")?;
        let space = AddressSpace::ALL.into_iter().find(|s| s.name() == word);
        let space = space.ok_or_else(|| {
            let known = AddressSpace::ALL.map(AddressSpace::name).join("`, `");
            fail_help(at, format!("`{word}` is no address space"), format!("there are `{known}`"))
        })?;
        if memory.insert(var, space).is_some() {
            return Err(fail(span, format!("the memory of `{name}` stands there twice")));
        }
        if !c.is_symbol(")") {
            c.expect_symbol(",", "or `)`")?;
        }
    }
    Ok(memory)
}

/// Reads `(bytes)`, of which addresses are multiples or which statements declare.
fn bytes(c: &mut Cursor<'_, '_>) -> Result<u64> {
    c.expect_symbol("(", "and a number of bytes")?;
    let found = match c.peek() {
        Some(Kind::Int(bytes)) => bytes.parse().ok(),
        _ => None,
    };
    let found = found.ok_or_else(|| c.expected("a number of bytes"))?;
    c.advance();
    c.expect_symbol(")", "after the bytes")?;
    Ok(found)
}

/// Reads `("statement")` or `(begin(bytes) ("line" ...), commit "statement", wait "statement")`.
fn completion(c: &mut Cursor<'_, '_>) -> Result<Completion> {
    c.expect_symbol("(", "and a statement in quotes")?;
    let begin = if c.take_word("begin") { Some(beginning(c)?) } else { None };
    let completion = if c.take_word("commit") {
        let commit = quoted(c, "the statement that ends a group of calls, in quotes")?;
        c.expect_symbol(",", "and `wait \"...\"`")?;
        if !c.take_word("wait") {
            return Err(c.expected("`wait`, and the statement after which a group is done, in quotes"));
        }
        Completion::Groups {
            begin,
            commit,
            wait: quoted(c, "the statement after which a group is done, in quotes")?,
        }
    } else if begin.is_some() {
        return Err(c.expected("`commit`, and the statement that ends a group of calls, in quotes"));
    } else {
        Completion::All(quoted(c, "the statement after which the call is done, in quotes")?)
    };
    c.expect_symbol(")", "after the statement")?;
    Ok(completion)
}

/// Reads `("statement")`.
fn proxy(c: &mut Cursor<'_, '_>) -> Result<String> {
    c.expect_symbol("(", "and a statement in quotes")?;
    let fence = quoted(c, "the statement after which ordinary accesses are done, in quotes")?;
    c.expect_symbol(")", "after the statement")?;
    Ok(fence)
}

/// Reads `(bytes) ("line" ...),`.
fn beginning(c: &mut Cursor<'_, '_>) -> Result<Beginning> {
    let local_bytes = bytes(c)?;
    let lines: Vec<&str> = lines_of_code(c)?.into_iter().map(|(line, _)| line).collect();
    c.expect_symbol(",", "and `commit \"...\"`")?;
    Ok(Beginning { local_bytes, text: lines.join("\n") })
}

fn quoted(c: &mut Cursor<'_, '_>, what: &str) -> Result<String> {
    let Some(Kind::Text(statement)) = c.peek() else { return Err(c.expected(what)) };
    c.advance();
    Ok(statement.clone())
}

/// Splits a line at its places for arguments: `{y[0]}`, `{&y[0]}`, `{&y[0]; 8}`, `{map y}`, `{begin y, 0}`; `{{` and
/// `}}` are braces.
fn pieces(line: &str, span: Span, kernel: &Kernel, text: &mut Vec<Piece>) -> Result<()> {
    let mut rest = line;
    push_text(text, "");
    while let Some(at) = rest.find(['{', '}']) {
        push_text(text, &rest[..at]);
        let from = &rest[at..];
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            push_text(text, &from[..1]);
            rest = after;
            continue;
        }
        let Some((inside, after)) = from.strip_prefix('{').and_then(|s| s.split_once('}')) else {
            let help = "write `{{` and `}}` for braces, `{x[0]}` for an argument";
            return Err(fail_help(span, "a brace without a partner in the code", help));
        };
        text.push(match inside.strip_prefix('&') {
            Some(element) => {
                let (element, run) = match element.split_once(';') {
                    Some((element, run)) => (element, Some(run.trim())),
                    None => (element, None),
                };
                let run = run.map(|n| {
                    let what = || fail(span, format!("`{n}` is no number of elements from an address on"));
                    n.parse().map_err(|_| what())
                });
                Piece::Address(element_of(kernel, element, span)?, run.transpose()?)
            }
            None => match window_of(kernel, inside, span)? {
                Some(piece) => piece,
                None => Piece::Element(element_of(kernel, inside, span)?),
            },
        });
        rest = after;
    }
    push_text(text, rest);
    Ok(())
}

/// What is said of the window of an argument: `map y` or `begin y, 0`.
fn window_of(kernel: &Kernel, inside: &str, span: Span) -> Result<Option<Piece>> {
    let argument = |name: &str| {
        let name = name.trim();
        kernel.vars.iter().find(|(_, var)| spelled(&var.name) == name).map(|(id, _)| id).ok_or_else(|| {
            fail(span, format!("`{{{inside}}}` in the code: `{name}` is no argument of the callee"))
        })
    };
    if let Some(name) = inside.strip_prefix("map ") {
        return Ok(Some(Piece::Map(argument(name)?)));
    }
    let Some((name, axis)) = inside.strip_prefix("begin ").and_then(|rest| rest.split_once(',')) else {
        return Ok(None);
    };
    let no_axis = |_| fail(span, format!("`{{{inside}}}` in the code: `{}` is no axis", axis.trim()));
    Ok(Some(Piece::Begin(argument(name)?, axis.trim().parse().map_err(no_axis)?)))
}

/// Adds text; neighbours are one piece, and no piece is empty but the first of an empty line.
fn push_text(text: &mut Vec<Piece>, more: &str) {
    if let Some(Piece::Text(plain)) = text.last_mut() {
        plain.push_str(more);
    } else if text.is_empty() || !more.is_empty() {
        text.push(Piece::Text(more.to_owned()));
    }
}

/// An element of an argument of the callee; the errors are at the whole line of code.
fn element_of(kernel: &Kernel, text: &str, span: Span) -> Result<Access> {
    let (tokens, errors) = tokens(text);
    let names: Vec<_> = kernel.vars.iter().map(|(id, var)| (spelled(&var.name), Entity::Var(id))).collect();
    let local = kernel.inames.iter().filter(|(_, i)| matches!(i.tag, AxisTag::Local(_)));
    let local: Vec<_> = local.map(|(id, iname)| (spelled(&iname.name), id)).collect();
    let mut parser = Parser::of_callee(Kernel::default(), span);
    parser.kernel = kernel.clone();
    let at = |why: &str| fail(span, format!("`{{{text}}}` in the code: {why}"));
    let parsed = || -> Result<Access> {
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        for (name, var) in &names {
            parser.names.declare(name, span, *var)?;
        }
        for (name, iname) in &local {
            parser.names.declare(name, span, Entity::Iname(*iname))?;
            parser.names.scope.push(*iname);
        }
        let mut c = Cursor::new(&tokens);
        let (access, _) = parser.access(&mut c)?;
        c.expect_end("the element")?;
        Ok(access)
    };
    parsed().map_err(|error| at(&error.message))
}
