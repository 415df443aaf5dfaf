//! Text to kernels.

use super::attributes::attributes;
use super::cursor::{Cursor, label};
use super::error::{Fail, ParseError, ParseErrors, fail, fail_help, suggestion};
use super::lex::{Kind, Span, tokens};
use super::line::{Line, lines};
use super::names::{Entity, NameTable};
use super::unnamed::{Unnamed, is_unnamed};
use crate::calls::Callee;
use crate::expr::UpdateOp;
use crate::ids::{CalleeId, InameId, RuleId, VarId};
use crate::kernel::{Insn, Kernel, Node, VarKind, WriteOp};
use crate::verify::{KernelError, MAX_LOOP_DEPTH};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Reads a kernel.
///
/// The kernel is verified and canonical: `parse(&print(k))` is `k` for every canonical kernel.
///
/// # Errors
/// Everything that is wrong with the text, statement by statement, each with its place; or else the
/// first rule of [`crate::verify`] that is broken.
///
/// ```
/// let kernel = purlin_ir::text::parse("
/// kernel scale
/// param n: i32
/// arg x: f64[n] inout
///
/// for i in 0..n
///   s: x[i] *= 2
/// ")?;
/// assert_eq!(purlin_ir::text::parse(&kernel.to_string())?, kernel);
/// # Ok::<(), purlin_ir::text::ParseErrors>(())
/// ```
pub fn parse(source: &str) -> Result<Kernel, ParseErrors> {
    let (tokens, mut errors) = tokens(source);
    let (lines, unbalanced) = lines(tokens, source);
    errors.extend(unbalanced);
    let mut parser = Parser::new(errors);
    parser.run(&lines);
    parser.finish(source)
}

/// Reads callees, as they stand in the text of a kernel.
///
/// # Errors
/// As [`parse`], and for anything but callees.
pub fn parse_callees(source: &str) -> Result<Vec<Callee>, ParseErrors> {
    let (tokens, mut errors) = tokens(source);
    let (lines, unbalanced) = lines(tokens, source);
    errors.extend(unbalanced);
    let other = lines.iter().find(|l| l.indent == 0 && statement(l) != Statement::Callee);
    if let Some(line) = other {
        errors.push(fail(Cursor::new(&line.tokens).whole_span(), "only callees are expected here"));
    }
    let mut parser = Parser::new(errors);
    (parser.kernel.name, parser.named) = ("callees".into(), true);
    parser.run(&lines);
    Ok(parser.finish(source)?.callees.values().cloned().collect())
}

/// What has been read so far.
pub(super) struct Parser<'s> {
    pub(super) kernel: Kernel,
    pub(super) names: NameTable<'s>,
    /// Tables whose values have been read.
    pub(super) filled: BTreeSet<VarId>,
    /// The statement that declares a name, for errors of the verifier.
    statements: HashMap<Cow<'s, str>, Span>,
    /// Names for instructions without one.
    unnamed: Unnamed<'s>,
    errors: Vec<ParseError>,
    named: bool,
    /// Where errors stand that concern no statement.
    header: Span,
}

/// A block of the loop tree that is still open.
struct Block {
    /// Indentation of its statements, once there is one.
    indent: Option<usize>,
    /// Indentation of the line that opened it.
    opened_at: usize,
    kind: BlockKind,
    nodes: Vec<Node>,
}

/// What opened a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Root,
    Loop(Option<InameId>),
    /// Of an unknown callee if there is none.
    Call(Option<CalleeId>),
}

impl<'s> Parser<'s> {
    fn new(errors: Vec<Fail>) -> Self {
        Self {
            kernel: Kernel::default(),
            names: NameTable::default(),
            filled: BTreeSet::new(),
            statements: HashMap::new(),
            unnamed: Unnamed::default(),
            errors: errors.into_iter().map(|e| *e).collect(),
            named: false,
            header: Span { start: 0, end: 0 },
        }
    }

    /// For what names the parameters of a kernel and stands apart from it.
    pub(super) fn of_parameters(kernel: Kernel) -> Self {
        Self { kernel, ..Self::new(Vec::new()) }
    }

    /// For the kernel of a callee, which has its name from the line that declares it.
    pub(super) fn of_callee(kernel: Kernel, header: Span) -> Self {
        let mut parser = Self::new(Vec::new());
        parser.kernel = kernel;
        parser.named = true;
        parser.header = header;
        parser
    }

    /// The kernel of a callee's lines.
    pub(super) fn read(mut self, lines: &[Line<'s>]) -> Result<Kernel, Vec<ParseError>> {
        self.run(lines);
        self.checked()
    }

    /// Notes where a name is declared, for errors of the verifier.
    pub(super) fn statement_of(&mut self, name: &'s str, span: Span) {
        self.statements.entry(name.into()).or_insert(span);
    }

    pub(super) fn note<T>(&mut self, result: Result<T, Fail>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.errors.push(*error);
                None
            }
        }
    }

    /// Names first, then declarations, then rules and assumptions, then the loop tree: what a
    /// statement mentions may stand below it.
    fn run(&mut self, lines: &[Line<'s>]) {
        self.unnamed = Unnamed::of(lines);
        let (mut variables, mut rules, mut assumptions, mut body) = (vec![], vec![], vec![], vec![]);
        let mut inside_callee = 0;
        for (k, line) in lines.iter().enumerate() {
            if k < inside_callee {
                continue;
            }
            match statement(line) {
                Statement::Callee => {
                    let inner = lines[k + 1..].iter().take_while(|l| l.indent > line.indent).count();
                    inside_callee = k + 1 + inner;
                    self.callee(line, &lines[k + 1..inside_callee]);
                }
                Statement::Kernel => self.kernel_line(line, k == 0),
                Statement::Variable => variables.extend(self.declare_line(line).map(|id| (line, id))),
                Statement::Rule => rules.extend(self.declare_rule_line(line).map(|id| (line, id))),
                Statement::Assume => assumptions.push(line),
                Statement::Values | Statement::Loop | Statement::Call | Statement::Insn => body.push(line),
            }
            let in_body = matches!(statement(line), Statement::Loop | Statement::Call | Statement::Insn);
            if !in_body && line.indent > 0 {
                let span = Cursor::new(&line.tokens).span();
                let message = "only what is inside a `for` is indented";
                self.errors.push(*fail_help(span, message, "start the declaration at the left margin"));
            }
        }
        if !self.named && lines.iter().all(|l| statement(l) != Statement::Kernel) {
            let start = Span { start: 0, end: 0 };
            self.errors.push(*fail_help(start, "the kernel has no name", "start with `kernel name`"));
        }
        for (line, id) in variables {
            self.variable_line(line, id);
        }
        for (line, id) in rules {
            self.whole_line(line, |p, c| p.rule_body(c, id));
        }
        for line in assumptions {
            self.whole_line(line, Self::assumption);
        }
        self.body(&body);
        self.check_tables();
    }

    /// Reads a line whose brackets match; the others have been reported.
    fn whole_line<T>(
        &mut self,
        line: &Line<'s>,
        read: impl FnOnce(&mut Self, &mut Cursor<'_, 's>) -> Result<T, Fail>,
    ) -> Option<T> {
        if !line.sound {
            return None;
        }
        let result = read(self, &mut Cursor::new(&line.tokens));
        self.note(result)
    }

    fn kernel_line(&mut self, line: &Line<'s>, first: bool) {
        let mut c = Cursor::new(&line.tokens);
        c.advance();
        let span = c.whole_span();
        let result = c.expect_word("the name of the kernel").and_then(|(name, at)| {
            if self.named {
                return Err(fail_help(span, "a second kernel", "put each kernel into a file of its own"));
            }
            if !first {
                return Err(fail(span, "`kernel` is not the first statement"));
            }
            self.named = true;
            self.kernel.name = name.to_owned();
            self.names.declare(name, at, Entity::Kernel)?;
            if !c.is_symbol("{") {
                return c.expect_end("the name");
            }
            attributes(&mut c, &mut self.kernel)?;
            c.expect_end("the attributes of the kernel")
        });
        self.note(result);
    }

    fn declare_line(&mut self, line: &Line<'s>) -> Option<VarId> {
        let mut c = Cursor::new(&line.tokens);
        c.advance();
        let result = c.expect_word("a name after the keyword").and_then(|(name, span)| {
            self.statements.entry(name.into()).or_insert(c.whole_span());
            self.declare_variable(name, span)
        });
        self.note(result)
    }

    fn variable_line(&mut self, line: &Line<'s>, id: VarId) {
        let done = self.whole_line(line, |p, c| p.variable_declaration(c, id));
        if done.is_none() {
            self.broken(line);
        }
    }

    fn declare_rule_line(&mut self, line: &Line<'s>) -> Option<RuleId> {
        if let Some(Kind::Name(name)) = line.tokens.get(1).map(|t| &t.kind) {
            self.statements.entry((*name).into()).or_insert(Cursor::new(&line.tokens).whole_span());
        }
        let id = self.whole_line(line, |p, c| p.declare_rule(c));
        if id.is_none() {
            self.broken(line);
        }
        id
    }

    fn named_variable(&self, line: &Line<'s>) -> Option<VarId> {
        match line.tokens.get(1).map(|t| &t.kind) {
            Some(Kind::Name(name)) => match self.names.get(name) {
                Some(Entity::Var(id)) => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// Takes the name that a failed declaration introduces out of use.
    fn broken(&mut self, line: &Line<'s>) {
        if let Some(Kind::Name(name)) = line.tokens.get(1).map(|t| &t.kind) {
            self.names.mark_broken(name);
        }
    }

    fn body(&mut self, lines: &[&Line<'s>]) {
        let root = Block { indent: Some(0), opened_at: 0, kind: BlockKind::Root, nodes: Vec::new() };
        let mut blocks = vec![root];
        for line in lines {
            match statement(line) {
                Statement::Values => {
                    self.whole_line(line, Self::table_values);
                    if let (false, Some(id)) = (line.sound, self.named_variable(line)) {
                        self.filled.insert(id); // with what has been reported
                    }
                }
                Statement::Loop => {
                    self.place(line, &mut blocks);
                    self.open_loop(line, &mut blocks);
                }
                Statement::Call => {
                    self.place(line, &mut blocks);
                    self.open_call(line, &mut blocks);
                }
                Statement::Kernel
                | Statement::Variable
                | Statement::Rule
                | Statement::Callee
                | Statement::Assume
                | Statement::Insn => {
                    self.place(line, &mut blocks);
                    let callee = callee_around(&blocks);
                    if let (Some(insn), Some(block)) = (self.instruction_line(line), blocks.last_mut()) {
                        block.nodes.push(Node::Insn(self.kernel.insns.push(Insn { callee, ..insn })));
                    }
                }
            }
        }
        while blocks.len() > 1 {
            self.close(&mut blocks);
        }
        self.kernel.body = blocks.pop().map(|b| b.nodes).unwrap_or_default();
    }

    /// Closes the blocks that a line is not in.
    fn place(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        while let Some(block) = blocks.last_mut() {
            let inside = line.indent > block.opened_at || block.kind == BlockKind::Root;
            let indent = *block.indent.get_or_insert(line.indent);
            if inside && line.indent >= indent {
                if line.indent > indent {
                    let span = Cursor::new(&line.tokens).span();
                    let message = format!("indented by {}, this block by {indent}", line.indent);
                    let help = "only what is inside a `for` is indented further";
                    self.errors.push(*fail_help(span, message, help));
                }
                return;
            }
            if inside {
                let span = Cursor::new(&line.tokens).span();
                let message = format!("indented by {}, no block around is", line.indent);
                let help = format!("this block is indented by {indent}");
                self.errors.push(*fail_help(span, message, help));
                return;
            }
            self.close(blocks);
        }
    }

    fn close(&mut self, blocks: &mut Vec<Block>) {
        let Some(Block { kind, nodes, .. }) = blocks.pop() else { return };
        let nodes = match kind {
            BlockKind::Root | BlockKind::Loop(None) => return,
            BlockKind::Loop(Some(iname)) => {
                self.names.scope.pop();
                vec![Node::Loop(iname, nodes)]
            }
            BlockKind::Call(_) => nodes,
        };
        if let Some(outer) = blocks.last_mut() {
            outer.nodes.extend(nodes);
        }
    }

    fn open_call(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        let callee = if line.sound {
            let callee = self.call_line(line);
            self.note(callee)
        } else {
            None
        };
        if blocks.iter().any(|b| matches!(b.kind, BlockKind::Call(_))) {
            let span = Cursor::new(&line.tokens).whole_span();
            self.errors.push(*fail_help(span, "a call in a call", "write what the inner one does"));
        }
        let kind = BlockKind::Call(callee);
        blocks.push(Block { indent: None, opened_at: line.indent, kind, nodes: Vec::new() });
    }

    fn open_loop(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        let depth = self.names.scope.len();
        if let Some(Kind::Name(name)) = line.tokens.get(1).map(|t| &t.kind) {
            self.statements.entry((*name).into()).or_insert(Cursor::new(&line.tokens).whole_span());
        }
        self.whole_line(line, |p, c| {
            if c.take_word("launch") {
                p.launch_header(c)?;
                return c.expect_end("the launch");
            }
            c.advance();
            p.loop_header(c)?;
            if c.take_symbol(":") {
                return Err(fail_help(c.last_span(), "a loop ends without `:`", "remove it"));
            }
            c.expect_end("the loop")
        });
        // a loop that failed still opens a block, so that what is inside is not reported as well
        if self.names.scope.len() == depth {
            self.broken(line);
            let placeholder = crate::kernel::Iname {
                name: String::new(),
                domain: crate::domain::Domain::universe(),
                tag: crate::kernel::AxisTag::Sequential,
            };
            let id = self.kernel.inames.push(placeholder);
            self.names.scope.push(id);
        }
        self.names.scope.truncate(depth + 1);
        if blocks.len() > MAX_LOOP_DEPTH {
            let message = format!("more than {MAX_LOOP_DEPTH} loops are nested");
            self.errors.push(*fail(Cursor::new(&line.tokens).whole_span(), message));
            self.names.scope.truncate(depth);
            return;
        }
        let iname = self.names.scope.last().copied();
        let kind = BlockKind::Loop(iname);
        blocks.push(Block { indent: None, opened_at: line.indent, kind, nodes: Vec::new() });
    }

    fn instruction_line(&mut self, line: &Line<'s>) -> Option<Insn> {
        let depth = self.names.scope.len();
        let insn = self.whole_line(line, |p, c| p.instruction(c, is_unnamed(&line.tokens)));
        self.names.scope.truncate(depth); // a reduction that failed leaves its loops
        insn
    }

    /// Reads `name: lhs op rhs if predicate {tags}`, or the same without a name.
    fn instruction(&mut self, c: &mut Cursor<'_, 's>, is_unnamed: bool) -> Result<Insn, Fail> {
        let name = if is_unnamed { self.unnamed.name() } else { self.name_of_instruction(c)?.to_owned() };
        self.statements.entry(name.clone().into()).or_insert(c.whole_span());
        let (lhs, _) = self.access(c)?;
        let mut op = write_op(c)?;
        let rhs = self.expression(c)?;
        let predicate = if c.take_word("if") { Some(self.expression(c)?) } else { None };
        let mut tags = BTreeSet::new();
        if c.take_symbol("{") {
            instruction_tags(c, &mut op, &mut tags)?;
        }
        c.expect_end("the instruction")?;
        Ok(Insn { name, lhs, op, rhs, predicate, tags, callee: None })
    }

    /// Reads `name:`.
    fn name_of_instruction(&mut self, c: &mut Cursor<'_, 's>) -> Result<&'s str, Fail> {
        if c.peek_second() != Some(&Kind::Symbol(":")) {
            return Err(not_a_statement(c));
        }
        let (name, span) = c.expect_word("a statement")?;
        self.names.declare(name, span, Entity::Insn)?;
        c.advance();
        Ok(name)
    }

    fn check_tables(&mut self) {
        for (id, var) in self.kernel.vars.iter() {
            if matches!(var.kind, VarKind::Table(_)) && !self.filled.contains(&id) {
                let span = self.names.span_of(&var.name).unwrap_or(Span { start: 0, end: 0 });
                let help = format!("add `table {} = [...]` after the body", var.name);
                self.errors.push(*fail_help(span, format!("table `{}` has no values", var.name), help));
            }
        }
    }

    fn finish(self, source: &str) -> Result<Kernel, ParseErrors> {
        self.checked().map_err(|errors| ParseErrors::new(errors, source))
    }

    fn checked(mut self) -> Result<Kernel, Vec<ParseError>> {
        let clean = self.errors.is_empty();
        self.errors.retain(|e| !e.message.is_empty()); // uses of names whose declaration failed
        if clean {
            match self.kernel.verify() {
                Ok(()) => return Ok(self.kernel.canonical()),
                Err(error) => self.errors.push(*self.located(&error)),
            }
        }
        Err(self.errors)
    }

    /// The error of the verifier at the first statement it names.
    fn located(&self, error: &KernelError) -> Fail {
        let message = error.to_string();
        // what is wrong with a call is in its statements
        let elsewhere = |name: &&str| matches!(error, KernelError::Call { callee, .. } if callee == name);
        let names = message.split('`').skip(1).step_by(2).filter(|name| !elsewhere(name));
        let named = names.into_iter().find_map(|name| self.statements.get(name));
        let span = named.copied().unwrap_or(self.header);
        match message.split_once("; ") {
            Some((what, help)) => fail_help(span, what, help),
            None => fail(span, message),
        }
    }
}

/// The callee of the call in which the innermost block stands.
fn callee_around(blocks: &[Block]) -> Option<CalleeId> {
    blocks.iter().rev().find_map(|b| match b.kind {
        BlockKind::Call(callee) => callee,
        BlockKind::Root | BlockKind::Loop(_) => None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Kernel,
    Variable,
    Rule,
    Callee,
    Assume,
    Values,
    Loop,
    Call,
    Insn,
}

/// Words that start the declaration of a variable.
const VARIABLE_WORDS: [&str; 4] = ["param", "arg", "temp", "table"];

pub(super) fn statement(line: &Line<'_>) -> Statement {
    let kind = |k: usize| line.tokens.get(k).map(|t| &t.kind);
    match kind(0) {
        _ if kind(1) == Some(&Kind::Symbol(":")) => Statement::Insn,
        Some(Kind::Name("table")) if kind(2) == Some(&Kind::Symbol("=")) => Statement::Values,
        Some(Kind::Name(word)) if VARIABLE_WORDS.contains(word) => Statement::Variable,
        Some(Kind::Name("kernel")) => Statement::Kernel,
        Some(Kind::Name("rule")) => Statement::Rule,
        Some(Kind::Name("callee")) => Statement::Callee,
        Some(Kind::Name("call")) => Statement::Call,
        Some(Kind::Name("assume")) => Statement::Assume,
        Some(Kind::Name("for")) => Statement::Loop,
        // `launch` may be the name of an array; `launch min= 1` updates a scalar
        Some(Kind::Name("launch")) if matches!(kind(1), Some(Kind::Name(_))) => match kind(2) {
            Some(Kind::Symbol("=")) => Statement::Insn,
            Some(_) | None => Statement::Loop,
        },
        _ => Statement::Insn,
    }
}

fn not_a_statement(c: &Cursor<'_, '_>) -> Fail {
    let words =
        ["kernel", "param", "arg", "temp", "table", "rule", "callee", "assume", "for", "launch", "call"];
    let found = match c.peek() {
        Some(Kind::Name(word)) => suggestion(word, words),
        _ => None,
    };
    let help = "an instruction is `y[i] = x[i]`, or with a name `s: y[i] = x[i]`".to_owned();
    fail_help(c.span(), format!("expected a statement, found {}", c.found()), found.unwrap_or(help))
}

fn write_op(c: &mut Cursor<'_, '_>) -> Result<WriteOp, Fail> {
    let update = |op| WriteOp::Update { op, atomic: false };
    let op = match (c.peek(), c.peek_second()) {
        (Some(Kind::Symbol("=")), _) => WriteOp::Assign,
        (Some(Kind::Symbol("+=")), _) => update(UpdateOp::Add),
        (Some(Kind::Symbol("*=")), _) => update(UpdateOp::Mul),
        (Some(Kind::Name("min")), Some(Kind::Symbol("="))) => update(UpdateOp::Min),
        (Some(Kind::Name("max")), Some(Kind::Symbol("="))) => update(UpdateOp::Max),
        (Some(Kind::Name("or")), Some(Kind::Symbol("="))) => update(UpdateOp::Or),
        (Some(Kind::Name("and")), Some(Kind::Symbol("="))) => update(UpdateOp::And),
        (found, next) => {
            let mut error = c.expected("`=`, `+=`, `*=`, `min=`, `max=`, `or=` or `and=`");
            error.help = match (found, next) {
                (Some(Kind::Symbol("==")), _) => Some("`==` compares; write `=` to store".into()),
                (Some(Kind::Symbol("-")), Some(Kind::Symbol("="))) => Some("write `+= -(...)`".into()),
                (Some(Kind::Symbol(":=")), _) => Some("`:=` is for rules; write `=` to store".into()),
                _ => None,
            };
            return Err(error);
        }
    };
    if matches!(c.peek(), Some(Kind::Name(_))) {
        c.advance();
    }
    c.advance();
    Ok(op)
}

/// Reads what follows `{` after an instruction.
fn instruction_tags(
    c: &mut Cursor<'_, '_>,
    op: &mut WriteOp,
    tags: &mut BTreeSet<String>,
) -> Result<(), Fail> {
    while !c.take_symbol("}") {
        let span = c.span();
        let (tag, quoted) = label(c, "a tag")?;
        match op {
            _ if quoted || tag != "atomic" => {
                tags.insert(tag);
            }
            WriteOp::Update { atomic, .. } => *atomic = true,
            WriteOp::Assign => {
                let help = "write an update such as `+=`, or `\"atomic\"` in quotes for a label of that name";
                return Err(fail_help(span, "a plain store cannot be atomic", help));
            }
        }
        if !c.is_symbol("}") {
            c.expect_symbol(",", "or `}`")?;
        }
    }
    Ok(())
}
