//! The loop tree: blocks by indentation.

use super::cursor::Cursor;
use super::error::{fail, fail_help};
use super::lex::{Kind, Span};
use super::line::Line;
use super::made::Branches;
use super::names::plain;
use super::parse::Parser;
use super::statement::{Statement, statement};
use crate::domain::Domain;
use crate::expr::Expr;
use crate::guards::Guarding;
use crate::ids::{CalleeId, InameId};
use crate::kernel::{AxisTag, Iname, Node};
use crate::verify::MAX_LOOP_DEPTH;

/// A block of the loop tree that is still open.
struct Block {
    /// Indentation of its statements, once there is one.
    indent: Option<usize>,
    /// Indentation of the line that opened it.
    opened_at: usize,
    kind: BlockKind,
    nodes: Vec<Node>,
    /// The `if` that ends with the last closed block inside, while an `else` may follow.
    branches: Option<Branches>,
}

impl Block {
    fn new(opened_at: usize, kind: BlockKind) -> Self {
        Self { indent: None, opened_at, kind, nodes: Vec::new(), branches: None }
    }
}

/// What opened a block.
enum BlockKind {
    Root,
    /// With the condition that ends it.
    Loop(InameId, Option<(Expr, Span)>),
    /// Of an unknown callee if there is none.
    Call(Option<CalleeId>),
    /// A branch of an `if`.
    Branch,
}

impl<'s> Parser<'s> {
    /// Reads the loop tree and the values of tables.
    pub(super) fn body(&mut self, lines: &[&Line<'s>]) {
        let mut blocks = vec![Block { indent: Some(0), ..Block::new(0, BlockKind::Root) }];
        for line in lines {
            let statement = statement(line);
            if statement == Statement::Values {
                self.values_line(line);
                continue;
            }
            self.place(line, &mut blocks);
            if statement != Statement::Else {
                self.settle(&mut blocks);
            }
            match statement {
                Statement::Else => self.open_else(line, &mut blocks),
                Statement::Loop => self.open_loop(line, &mut blocks),
                Statement::Call if line.tokens.get(2).is_some_and(|t| t.kind == Kind::Symbol("(")) => {
                    if let (Some(nodes), Some(block)) = (self.call_with_arguments(line), blocks.last_mut()) {
                        block.nodes.extend(nodes);
                    }
                }
                Statement::Call => self.open_call(line, &mut blocks),
                Statement::If => self.open_if(line, &mut blocks),
                Statement::Kernel
                | Statement::Variable
                | Statement::Record
                | Statement::Rule
                | Statement::Callee
                | Statement::Assume
                | Statement::Values
                | Statement::Let
                | Statement::Insn => {
                    if let (Some(nodes), Some(block)) = (self.instruction_line(line), blocks.last_mut()) {
                        block.nodes.extend(nodes);
                    }
                }
            }
        }
        while blocks.len() > 1 {
            self.close(&mut blocks);
        }
        self.settle(&mut blocks);
        let nodes = blocks.swap_remove(0).nodes; // the root is never closed
        self.kernel.body = self.guard_bounds(nodes);
    }

    /// Closes the blocks that a line is not in.
    fn place(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        while let Some(block) = blocks.last_mut() {
            let inside = line.indent > block.opened_at || matches!(block.kind, BlockKind::Root);
            let indent = *block.indent.get_or_insert(line.indent);
            if inside && line.indent >= indent {
                if line.indent > indent {
                    let span = Cursor::new(&line.tokens).span();
                    let message = format!("indented by {}, this block by {indent}", line.indent);
                    let help = "only what is inside a `for` or an `if` is indented further";
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
        self.settle(blocks);
        let Some(Block { kind, nodes, .. }) = blocks.pop() else { return };
        let Some(outer) = blocks.last_mut() else { return };
        match kind {
            BlockKind::Root => {}
            BlockKind::Loop(iname, condition) => {
                self.names.scope.pop();
                outer.nodes.extend(match condition {
                    None => vec![Node::Loop(iname, nodes)],
                    Some(condition) => self.ended(iname, nodes, condition),
                });
            }
            BlockKind::Call(callee) => {
                self.set_callee(&nodes, callee);
                outer.nodes.extend(nodes);
            }
            BlockKind::Branch => {
                if let Some(branches) = &mut outer.branches {
                    branches.bodies.push(nodes);
                }
            }
        }
    }

    /// Puts the conditions of an `if`, which no `else` follows any more, on what is inside.
    fn settle(&mut self, blocks: &mut [Block]) {
        let Some(block) = blocks.last_mut() else { return };
        if let Some(branches) = block.branches.take() {
            let nodes = self.guarded(branches);
            block.nodes.extend(nodes);
        }
    }

    /// Says of instructions what they are a call of.
    fn set_callee(&mut self, nodes: &[Node], callee: Option<CalleeId>) {
        for node in nodes {
            match node {
                Node::Insn(insn) => self.kernel.insns[*insn].callee = callee,
                Node::Loop(_, body) => self.set_callee(body, callee),
            }
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
        blocks.push(Block::new(line.indent, BlockKind::Call(callee)));
    }

    /// Opens the first branch of an `if`.
    fn open_if(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        self.made.outside = Some(self.names.scope.len());
        let condition = self.whole_line(line, |p, c| {
            c.advance();
            let condition = p.expression(c)?;
            if c.take_symbol(":") {
                return Err(fail_help(c.last_span(), "an `if` ends without `:`", "remove it"));
            }
            c.expect_end("the condition").map(|()| condition)
        });
        let span = Cursor::new(&line.tokens).whole_span();
        // a condition that failed still opens a block, so that what is inside is read
        let condition = condition.unwrap_or_else(|| Expr::truth(true));
        let reads = self.reads();
        if let Some(block) = blocks.last_mut() {
            block.nodes.extend(reads);
            block.branches = Some(Branches { conditions: vec![(Some(condition), span)], bodies: Vec::new() });
        }
        self.open_branch(line, blocks);
    }

    /// Opens another branch: `else` or `else if`.
    fn open_else(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        let span = Cursor::new(&line.tokens).whole_span();
        let condition = self.whole_line(line, |p, c| {
            c.advance();
            let condition =
                if c.take_word("if") { Some(p.without_reads(|p| p.expression(c))?) } else { None };
            c.expect_end("the `else`").map(|()| condition)
        });
        let branches = blocks.last_mut().and_then(|block| block.branches.as_mut());
        match branches.filter(|b| b.conditions.iter().all(|(condition, _)| condition.is_some())) {
            Some(branches) => branches.conditions.push((condition.flatten(), span)),
            None => {
                let help = "it follows the block of an `if` with the same indentation";
                self.errors.push(*fail_help(span, "this `else` has no `if`", help));
            }
        }
        self.open_branch(line, blocks);
    }

    fn open_branch(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        let alternatives = blocks.last().and_then(|b| b.branches.as_ref()).map_or(0, |b| b.conditions.len());
        if blocks.len().max(alternatives) > MAX_LOOP_DEPTH {
            let message =
                format!("more than {MAX_LOOP_DEPTH} blocks are nested, or branches follow each other");
            self.errors.push(*fail(Cursor::new(&line.tokens).whole_span(), message));
        }
        blocks.push(Block::new(line.indent, BlockKind::Branch));
    }

    fn open_loop(&mut self, line: &Line<'s>, blocks: &mut Vec<Block>) {
        let depth = self.names.scope.len();
        if let Some(Kind::Name(name)) = line.tokens.get(1).map(|t| &t.kind) {
            self.statement_of(plain(name), Cursor::new(&line.tokens).whole_span());
        }
        self.made.outside = Some(depth);
        let condition = self.whole_line(line, |p, c| {
            if c.take_word("launch") {
                p.launch_header(c)?;
                return c.expect_end("the launch").map(|()| None);
            }
            c.advance();
            let (_, condition) = p.loop_header(c)?;
            if c.take_symbol(":") {
                return Err(fail_help(c.last_span(), "a loop ends without `:`", "remove it"));
            }
            c.expect_end("the loop").map(|()| condition)
        });
        // a loop that failed still opens a block, so that what is inside is not reported as well
        if self.names.scope.len() == depth {
            self.broken(line);
            let placeholder =
                Iname { name: String::new(), domain: Domain::universe(), tag: AxisTag::Sequential };
            let id = self.kernel.inames.push(placeholder);
            self.names.scope.push(id);
        }
        self.names.scope.truncate(depth + 1);
        let span = Cursor::new(&line.tokens).whole_span();
        if blocks.len() > MAX_LOOP_DEPTH {
            let message = format!("more than {MAX_LOOP_DEPTH} loops are nested");
            self.errors.push(*fail(span, message));
            self.names.scope.truncate(depth);
            return;
        }
        let reads = self.reads();
        if let (Some(block), Some(iname)) = (blocks.last_mut(), self.names.scope.last()) {
            block.nodes.extend(reads);
            let condition = condition.flatten().map(|condition| (condition, span));
            blocks.push(Block::new(line.indent, BlockKind::Loop(*iname, condition)));
        }
    }
}
