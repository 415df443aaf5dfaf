//! Lines of kernels: indentation by blocks and brackets, empty lines between the parts.

use super::blanks::stand_apart;
use super::lines::FormattedLine;
use super::rows::Row;
use crate::text::lex::{Kind, Token};
use crate::text::line::Line;
use crate::text::statement::{Statement, statement};

/// Blanks of one level of indentation.
const LEVEL: usize = 2;

/// The lines so far.
pub(super) struct Layout<'l, 's> {
    source: &'s str,
    /// The statements that follow.
    statements: std::slice::Iter<'l, Line<'s>>,
    lines: Vec<FormattedLine>,
    /// Comments on lines of their own, whose indentation depends on what comes next.
    comments: Vec<(FormattedLine, usize)>,
    /// Whether an empty line was read.
    empty: bool,
    /// Indentations of the open blocks in the source.
    blocks: Vec<usize>,
    /// What has been read of the current statement.
    current: Vec<Token<'s>>,
    /// The number of lines at each open bracket.
    open: Vec<usize>,
    /// The part that the last statement belongs to.
    part: Option<Part>,
}

/// The parts of a text, between which there are empty lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Declarations,
    /// Each a part of its own.
    Callee,
    Body,
    /// Each a part of its own.
    Values,
}

impl<'l, 's> Layout<'l, 's> {
    pub(super) fn new(source: &'s str, statements: &'l [Line<'s>]) -> Self {
        Self {
            source,
            statements: statements.iter(),
            lines: Vec::new(),
            comments: Vec::new(),
            empty: false,
            blocks: vec![0],
            current: Vec::new(),
            open: Vec::new(),
            part: None,
        }
    }

    pub(super) fn add(&mut self, row: &Row<'_, 's>) {
        if row.tokens.is_empty() && row.comment.is_none() {
            self.empty = true;
            return;
        }
        let mut line = FormattedLine {
            empty_before: std::mem::take(&mut self.empty),
            comment: row.comment.map(str::to_owned),
            column: row.column,
            ..FormattedLine::default()
        };
        if row.tokens.is_empty() && self.open.is_empty() {
            self.comments.push((line, row.indent));
            return;
        }
        if self.open.is_empty() {
            self.start(row.indent, &mut line);
        }
        line.indent = LEVEL * (self.blocks.len() - 1 + self.levels_of_brackets(row.tokens));
        line.code = self.code(row.tokens);
        self.lines.push(line);
    }

    pub(super) fn finish(mut self) -> Vec<FormattedLine> {
        self.comments_before(0);
        self.lines
    }

    /// Begins a statement, after the comments before it.
    fn start(&mut self, indent: usize, line: &mut FormattedLine) {
        self.current.clear();
        let part = self
            .statements
            .next()
            .and_then(|next| if indent == 0 { Some(part(statement(next))) } else { None });
        let begins = match (self.part, part) {
            (Some(_), Some(Part::Callee | Part::Values)) => true,
            (Some(before), Some(now)) => before != now,
            (None, _) | (_, None) => false,
        };
        self.part = part.or(self.part);
        let own = self.comments.iter().position(|(_, at)| *at <= indent).unwrap_or(self.comments.len()); // default: all belong to the block before
        let is_apart =
            line.empty_before || self.comments[own..].iter().any(|(comment, _)| comment.empty_before);
        if begins && !is_apart {
            match self.comments.get_mut(own) {
                Some((comment, _)) => comment.empty_before = true,
                None => line.empty_before = true,
            }
        }
        self.comments_before(indent);
    }

    /// Takes the comments before a statement that is indented this far, and opens or closes its blocks:
    /// comments that are indented further belong to the block before.
    fn comments_before(&mut self, indent: usize) {
        let before = self.blocks.clone();
        while self.blocks.len() > 1 && self.blocks.last().is_some_and(|block| *block > indent) {
            self.blocks.pop();
        }
        if self.blocks.last().is_some_and(|block| *block < indent) {
            self.blocks.push(indent);
        }
        for (mut comment, at) in std::mem::take(&mut self.comments) {
            let level = if at > indent {
                before.iter().filter(|block| **block <= at).count()
            } else {
                self.blocks.len()
            };
            comment.indent = LEVEL * level.saturating_sub(1);
            self.lines.push(comment);
        }
    }

    /// How far brackets indent a line: a level for each line above in which some were left open.
    fn levels_of_brackets(&self, tokens: &[Token<'s>]) -> usize {
        let closed =
            tokens.iter().take_while(|token| matches!(token.kind, Kind::Symbol(")" | "]" | "}"))).count();
        let mut lines = self.open[..self.open.len().saturating_sub(closed)].to_vec();
        lines.dedup();
        lines.len()
    }

    /// The code of a line, one or no blank between tokens.
    fn code(&mut self, tokens: &[Token<'s>]) -> String {
        let mut code = String::new();
        for token in tokens {
            if !code.is_empty() && stand_apart(&self.current, token) {
                code.push(' ');
            }
            code += &self.source[token.span.start..token.span.end];
            match token.kind {
                Kind::Symbol("(" | "[" | "{") => self.open.push(self.lines.len()),
                Kind::Symbol(")" | "]" | "}") => drop(self.open.pop()),
                Kind::Symbol(_)
                | Kind::Name(_)
                | Kind::Int(_)
                | Kind::Real(_)
                | Kind::Imaginary(_)
                | Kind::Hex(_)
                | Kind::Text(_)
                | Kind::Newline
                | Kind::Bad => {}
            }
            self.current.push(token.clone());
        }
        code
    }
}

fn part(statement: Statement) -> Part {
    match statement {
        Statement::Kernel => Part::Head,
        Statement::Variable | Statement::Record | Statement::Rule | Statement::Assume => Part::Declarations,
        Statement::Callee => Part::Callee,
        Statement::Values => Part::Values,
        Statement::Loop
        | Statement::Call
        | Statement::If
        | Statement::Else
        | Statement::Let
        | Statement::Insn => Part::Body,
    }
}
