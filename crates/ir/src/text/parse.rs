//! Text to kernels.

use super::attributes::attributes;
use super::cursor::{Cursor, label};
use super::error::{Fail, ParseError, ParseErrors, fail, fail_help, suggestion};
use super::foreign;
use super::lex::{Kind, Span, tokens};
use super::line::{Line, lines};
use super::made::{Branches, Made};
use super::names::{Entity, NameTable, plain};
use super::statement::{Statement, statement};
use super::unnamed::{Unnamed, is_tuple};
use crate::calls::Callee;
use crate::constant::Real;
use crate::depth::with_room;
use crate::expr::{Expr, UpdateOp};
use crate::guards::Guarding;
use crate::ids::{InameId, RuleId, VarId};
use crate::kernel::{Insn, Kernel, Node, VarKind, WriteOp};
use crate::types::ScalarType;
use crate::verify::KernelError;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Reads a kernel.
///
/// The kernel is verified and canonical: `parse(&print(k))` is `k` for every canonical kernel.
///
/// # Errors
/// Everything that is wrong with the text, statement by statement, each with its place; or else the
/// first rule of [`crate::verify`] that is broken.
///
/// ```
/// let kernel = kingpost_ir::text::parse("
/// kernel scale
/// param n: i32
/// arg x: f64[n] inout
///
/// for i in 0..n
///   s: x[i] *= 2
/// ")?;
/// assert_eq!(kingpost_ir::text::parse(&kernel.to_string())?, kernel);
/// # Ok::<(), kingpost_ir::text::ParseErrors>(())
/// ```
pub fn parse(source: &str) -> Result<Kernel, ParseErrors> {
    parse_with(source, None).map(|(kernel, _)| kernel)
}

/// Reads a kernel, and by each name the place of the statement that declares it: of a variable, a rule, a
/// loop, or an instruction, also where the text gives the instruction no name.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_statements(source: &str) -> Result<(Kernel, BTreeMap<String, Range<usize>>), ParseErrors> {
    let (kernel, statements) = parse_with(source, None)?;
    Ok((kernel, statements.into_iter().map(|(name, span)| (name.into_owned(), span.into())).collect()))
}

/// Reads a kernel whose arguments need not have types: `types` has theirs, by name. A parameter without
/// one is `i32`.
///
/// # Errors
/// As [`parse`], and for arguments without a type.
pub fn parse_typed(source: &str, types: &BTreeMap<String, ScalarType>) -> Result<Kernel, ParseErrors> {
    parse_with(source, Some(types)).map(|(kernel, _)| kernel)
}

fn parse_with<'s>(
    source: &'s str,
    types: Option<&BTreeMap<String, ScalarType>>,
) -> Result<(Kernel, HashMap<Cow<'s, str>, Span>), ParseErrors> {
    let (tokens, mut errors) = tokens(source);
    let (lines, unbalanced) = lines(tokens, source);
    errors.extend(unbalanced);
    let nesting = lines.iter().map(|line| line.nesting()).max().unwrap_or(0);
    with_room(nesting, || {
        let mut parser = Parser::new(errors.clone());
        (parser.made.types, parser.made.defines) = (types.cloned(), true);
        parser.run(&lines);
        Ok((parser.finish(source)?, parser.statements))
    })
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
    /// Names for what has none.
    pub(super) unnamed: Unnamed<'s>,
    /// What the text leaves unsaid.
    pub(super) made: Made,
    pub(super) errors: Vec<ParseError>,
    named: bool,
    /// Where errors stand that concern no statement.
    header: Span,
}

impl<'s> Parser<'s> {
    fn new(errors: Vec<Fail>) -> Self {
        Self {
            kernel: Kernel::default(),
            names: NameTable::default(),
            filled: BTreeSet::new(),
            statements: HashMap::new(),
            unnamed: Unnamed::default(),
            made: Made::default(),
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

    /// With the records, operators and functions that the kernel around a callee has above it.
    pub(super) fn inside(mut self, around: &Self) -> Self {
        self.names.inherit(&around.names, &around.made.functions);
        self.kernel.callees.clone_from(&around.kernel.callees);
        self.made.functions = self.kernel.callees.ids().collect(); // none of them stays in a callee
        self
    }

    /// The kernel of some lines.
    pub(super) fn read(mut self, lines: &[Line<'s>]) -> Result<Kernel, Vec<ParseError>> {
        self.run(lines);
        self.checked()
    }

    /// Notes where a name is declared, for errors of the verifier.
    pub(super) fn statement_of(&mut self, name: impl Into<Cow<'s, str>>, span: Span) {
        self.statements.entry(name.into()).or_insert(span);
    }

    /// The statement that declares a name.
    pub(super) fn place_of_name(&self, name: &str) -> Span {
        self.statements.get(name).copied().unwrap_or(self.header)
    }

    /// The statement that declares a loop.
    pub(super) fn place_of(&self, iname: InameId) -> Span {
        self.place_of_name(&self.kernel.inames[iname].name)
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
                Statement::Record => self.record_line(line),
                Statement::Rule => rules.extend(self.declare_rule_line(line).map(|id| (line, id))),
                Statement::Assume => assumptions.push(line),
                Statement::Let => {
                    if let Some(id) = self.declare_line(line) {
                        self.made.untyped.push(id);
                        self.made.once.insert(id);
                    }
                    body.push(line);
                }
                Statement::Values
                | Statement::Loop
                | Statement::Call
                | Statement::If
                | Statement::Else
                | Statement::Insn => body.push(line),
            }
            if !statement(line).is_in_body() && line.indent > 0 {
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
        self.remove_functions();
        self.remove_reducing();
        self.infer_types();
        self.check_tables();
    }

    /// Reads a line whose brackets match; the others have been reported.
    pub(super) fn whole_line<T>(
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
                return Err(fail_help(
                    span,
                    "a second kernel",
                    "name the one to read, as in `FILE.kingpost#NAME`, or read all with `parse_all`",
                ));
            }
            if !first {
                return Err(fail(span, "`kernel` is not the first statement"));
            }
            self.named = true;
            self.kernel.name = plain(name).to_owned();
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
            self.statement_of(plain(name), c.whole_span());
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
            self.statement_of(plain(name), Cursor::new(&line.tokens).whole_span());
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
    pub(super) fn broken(&mut self, line: &Line<'s>) {
        if let Some(Kind::Name(name)) = line.tokens.get(1).map(|t| &t.kind) {
            self.names.mark_broken(name);
        }
    }

    pub(super) fn values_line(&mut self, line: &Line<'s>) {
        self.whole_line(line, Self::table_values);
        if let (false, Some(id)) = (line.sound, self.named_variable(line)) {
            self.filled.insert(id); // with what has been reported
        }
    }

    /// Reads an instruction: itself, after what it reads for its bounds.
    pub(super) fn instruction_line(&mut self, line: &Line<'s>) -> Option<Vec<Node>> {
        if is_tuple(&line.tokens) {
            return self.tuple_line(line);
        }
        let depth = self.names.scope.len();
        self.made.outside = Some(depth);
        let is_let = statement(line) == Statement::Let;
        let insn = self.whole_line(line, |p, c| {
            if is_let {
                c.advance();
            }
            p.instruction(c, is_let, is_let || p.is_unnamed(line))
        });
        self.names.scope.truncate(depth); // a reduction that failed leaves its loops
        let (mut nodes, mut insn) = (self.reads(), insn?);
        let predicate = if nodes.is_empty() { None } else { insn.predicate.take() };
        nodes.push(Node::Insn(self.kernel.insns.push(insn)));
        let Some(predicate) = predicate else { return Some(nodes) };
        let span = Cursor::new(&line.tokens).whole_span();
        Some(self.guarded(Branches { conditions: vec![(Some(predicate), span)], bodies: vec![nodes] }))
    }

    /// Reads `name: lhs op rhs if predicate {tags}`, or the same without a name.
    fn instruction(&mut self, c: &mut Cursor<'_, 's>, is_let: bool, is_unnamed: bool) -> Result<Insn, Fail> {
        let name = if is_unnamed { self.unnamed.name() } else { self.name_of_instruction(c)?.to_owned() };
        self.statement_of(name.clone(), c.whole_span());
        let (lhs, _) = self.access(c)?;
        if is_let && !c.is_symbol("=") {
            return Err(c.expected("`=` and the value of `let`"));
        }
        let (mut op, change) = match self.named_update(c) {
            Some(op) => (WriteOp::Update { op, atomic: false }, None),
            None => write_op(c)?,
        };
        let mut rhs = self.expression(c)?;
        match change {
            None => {}
            Some(Change::Subtract) => rhs = self.negative(rhs, lhs.var),
            Some(Change::Divide) => rhs = Expr::Load(lhs.clone()) / rhs,
        }
        let (predicate, tags) = self.predicate_and_tags(c, &mut op)?;
        Ok(Insn { name, lhs, op, rhs, predicate, tags, callee: None })
    }

    /// Reads what follows the value of an instruction.
    pub(super) fn predicate_and_tags(
        &mut self,
        c: &mut Cursor<'_, 's>,
        op: &mut WriteOp,
    ) -> Result<(Option<Expr>, BTreeSet<String>), Fail> {
        let predicate = if c.take_word("if") { Some(self.expression(c)?) } else { None };
        let mut tags = BTreeSet::new();
        if c.take_symbol("{") {
            instruction_tags(c, op, &mut tags)?;
        }
        c.expect_end("the instruction")?;
        Ok((predicate, tags))
    }

    /// `-e`, where a variable that is updated gives a literal its type.
    fn negative(&self, e: Expr, var: VarId) -> Expr {
        let ty = self.kernel.vars[var].ty;
        if let Expr::Int(value) = e {
            let typed = if ty.is_word() { None } else { value.checked_neg() };
            return typed.map_or_else(|| -Expr::Cast(ty, Box::new(e)), Expr::Int);
        }
        if let Expr::Real(Real(value)) = e
            && !value.is_nan()
        {
            return Expr::Real(Real(-value));
        }
        -e
    }

    /// Takes what the statement that was read needs before it.
    pub(super) fn reads(&mut self) -> Vec<Node> {
        std::mem::take(&mut self.made.reads).into_iter().map(Node::Insn).collect()
    }

    /// Reads `name:`.
    pub(super) fn name_of_instruction(&mut self, c: &mut Cursor<'_, 's>) -> Result<&'s str, Fail> {
        if c.peek_second() != Some(&Kind::Symbol(":")) {
            return Err(not_a_statement(c));
        }
        let (name, span) = c.expect_word("a statement")?;
        self.names.declare(name, span, Entity::Insn)?;
        c.advance();
        Ok(plain(name))
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

    fn finish(&mut self, source: &str) -> Result<Kernel, ParseErrors> {
        self.checked().map_err(|errors| ParseErrors::new(errors, source))
    }

    fn checked(&mut self) -> Result<Kernel, Vec<ParseError>> {
        let clean = self.errors.is_empty();
        self.errors.retain(|e| !e.message.is_empty()); // uses of names whose declaration failed
        if clean {
            match self.kernel.verify() {
                Ok(()) => return Ok(std::mem::take(&mut self.kernel).canonical()),
                Err(error) => self.errors.push(*self.located(&error)),
            }
        }
        Err(std::mem::take(&mut self.errors))
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

fn not_a_statement(c: &Cursor<'_, '_>) -> Fail {
    let words = [
        "kernel", "param", "arg", "temp", "table", "rule", "callee", "assume", "for", "launch", "call",
        "let", "function",
    ];
    let found = match c.peek() {
        Some(Kind::Name(word)) => suggestion(word, words).or_else(|| foreign::word(word).map(Into::into)),
        _ => None,
    };
    let help = "an instruction is `y[i] = x[i]`, or with a name `s: y[i] = x[i]`".to_owned();
    fail_help(c.span(), format!("expected a statement, found {}", c.found()), found.unwrap_or(help))
}

/// What makes the value of an instruction from that which is written.
#[derive(Clone, Copy)]
enum Change {
    Subtract,
    Divide,
}

fn write_op(c: &mut Cursor<'_, '_>) -> Result<(WriteOp, Option<Change>), Fail> {
    let mut change = None;
    let update = |op| WriteOp::Update { op, atomic: false };
    let op = match (c.peek(), c.peek_second()) {
        (Some(Kind::Symbol("=")), _) => WriteOp::Assign,
        (Some(Kind::Symbol("+=")), _) => update(UpdateOp::Add),
        (Some(Kind::Symbol("-=")), _) => {
            change = Some(Change::Subtract);
            update(UpdateOp::Add)
        }
        (Some(Kind::Symbol("*=")), _) => update(UpdateOp::Mul),
        (Some(Kind::Symbol("/=")), _) => {
            change = Some(Change::Divide); // a product with the inverse would round twice
            WriteOp::Assign
        }
        (Some(Kind::Name("min")), Some(Kind::Symbol("="))) => update(UpdateOp::Min),
        (Some(Kind::Name("max")), Some(Kind::Symbol("="))) => update(UpdateOp::Max),
        (Some(Kind::Name("or")), Some(Kind::Symbol("="))) => update(UpdateOp::Or),
        (Some(Kind::Name("and")), Some(Kind::Symbol("="))) => update(UpdateOp::And),
        (found, _) => {
            let mut error = c.expected("`=`, `+=`, `-=`, `*=`, `/=`, `min=`, `max=`, `or=` or `and=`");
            error.help = match found {
                Some(Kind::Symbol("==")) => Some("`==` compares; write `=` to store".into()),
                Some(Kind::Symbol(":=")) => Some("`:=` is for rules; write `=` to store".into()),
                _ => error.help,
            };
            return Err(error);
        }
    };
    if matches!(c.peek(), Some(Kind::Name(_))) {
        c.advance();
    }
    c.advance();
    Ok((op, change))
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
