//! The loop tree as code: one pass over the tree with what is known at each point.

mod complex;
mod expr;
mod external;
mod full;
pub(crate) mod insn;
pub(crate) mod intrinsic;
mod loops;
pub(crate) mod place;
mod runs;
pub(crate) mod shuffle;
mod unroll;

use crate::ast::{Block, Expr, Name, Stmt};
use crate::axes::Axes;
use crate::barriers::BarrierPlan;
use crate::callees;
use crate::env::Env;
use crate::error::CodegenError;
use crate::function::TensorParam;
use crate::ordered::Ordered;
use crate::placed::PlacedKernel;
use crate::target::TargetDescription;
use kingpost_ir::calls::{Call, CallPlace};
use kingpost_ir::{Affine, InameId, Kernel, Node};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of iterations of an unrolled loop; the source grows with them.
pub(crate) const UNROLL_LIMIT: i64 = 4096;

/// The pass: reads the placed kernel, writes code.
pub(crate) struct Lower<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) placed: &'k PlacedKernel<'k>,
    pub(crate) axes: &'k Axes,
    pub(crate) barriers: &'k BarrierPlan,
    pub(crate) env: Env<'k>,
    /// Loops around this point, outer first.
    scope: Vec<InameId>,
    /// Statements that must stand before the one being lowered, innermost guard last.
    prelude: Vec<Block>,
    /// Name of the buffer of each variable.
    pub(crate) buffers: Vec<Name>,
    /// The strides of each variable, if they are constant; found when they are first needed.
    strides: Vec<OnceCell<Option<Vec<Affine>>>>,
    /// The guards of the loop that is being lowered, where a version without them may be written.
    open_guards: Option<Vec<kingpost_ir::Constraint>>,
    /// Whether the instruction being lowered runs at index 0 of l.0 only.
    at_lane_zero: bool,
    /// Whether an index is being lowered.
    in_index: bool,
    /// Whether a predicate is being lowered.
    in_predicate: bool,
    /// Labels of the instruction before, to remark where they change.
    stage: Option<String>,
    pub(crate) target: &'static TargetDescription,
    /// Calls that have code for the target.
    calls: BTreeMap<CallPlace, Call>,
    /// What groups need that wait for each other.
    ordered: Option<Ordered>,
    /// Maps of tensors that the code of calls names.
    pub(crate) maps: Vec<TensorParam>,
}

impl<'k> Lower<'k> {
    /// At the top of the kernel.
    ///
    /// Hardware indices have their ranges and names already.
    ///
    /// # Errors
    /// A kernel that is not well formed.
    pub(crate) fn new(
        env: Env<'k>,
        placed: &'k PlacedKernel<'k>,
        axes: &'k Axes,
        barriers: &'k BarrierPlan,
        buffers: Vec<Name>,
        ordered: Option<Ordered>,
        target: &'static TargetDescription,
    ) -> Result<Self, CodegenError> {
        let kernel = env.kernel;
        Ok(Self {
            kernel,
            placed,
            axes,
            barriers,
            env,
            scope: Vec::new(),
            prelude: vec![Vec::new()],
            buffers,
            strides: vec![OnceCell::new(); kernel.vars.len()],
            open_guards: None,
            at_lane_zero: false,
            in_index: false,
            in_predicate: false,
            stage: None,
            target,
            calls: callees::with_code(kernel, target)?,
            ordered,
            maps: Vec::new(),
        })
    }

    /// Code of the whole tree.
    ///
    /// # Errors
    /// What a target cannot say; see [`CodegenError`].
    pub(crate) fn run(&mut self) -> Result<Block, CodegenError> {
        let kernel = self.kernel;
        self.nodes(None, &kernel.body, &[])
    }

    /// Code of a list of siblings: the body of
    /// `list`, or the root. Each run of statements without a barrier stands under the conditions in
    /// `pending`.
    fn nodes(
        &mut self,
        list: Option<InameId>,
        nodes: &'k [Node],
        pending: &[Expr],
    ) -> Result<Block, CodegenError> {
        let mut out = Block::new();
        let mut run = Block::new();
        let mut done = 0;
        for (k, node) in nodes.iter().enumerate() {
            if k < done {
                continue;
            }
            if let Some(fence) = self.barriers.at(list, k) {
                flush(&mut run, pending, &mut out);
                out.push(Stmt::Barrier(fence));
            }
            let remark = self.remark(node);
            if let Some(call) = self.call_at(list, k)
                && let Some(code) = self.intrinsic(&call)?
            {
                append(&mut run, remark, code);
                done = k + call.place.len;
                continue;
            }
            match node {
                Node::Loop(iname, body) if self.barriers.holds(*iname) => {
                    flush(&mut run, pending, &mut out);
                    out.extend(remark.map(Stmt::Comment));
                    out.extend(self.loop_with_barrier(*iname, body, pending)?);
                }
                Node::Loop(iname, body) => {
                    let code = self.with_full_tiles(*iname, body)?;
                    append(&mut run, remark, code);
                }
                Node::Insn(insn) => {
                    let code = self.instruction(*insn)?;
                    append(&mut run, remark, code);
                }
            }
        }
        flush(&mut run, pending, &mut out);
        if let Some(fence) = self.barriers.at(list, nodes.len()) {
            out.push(Stmt::Barrier(fence));
        }
        Ok(out)
    }

    /// The labels of the instructions in a node, if all have the same and the last remark said
    /// others.
    fn remark(&mut self, node: &Node) -> Option<String> {
        let label = self.label(node)?;
        if self.stage.as_deref() == Some(&label) {
            return None;
        }
        self.stage = Some(label.clone());
        (!label.is_empty()).then_some(label)
    }

    fn label(&self, node: &Node) -> Option<String> {
        match node {
            Node::Insn(insn) => {
                let tags: Vec<_> =
                    self.kernel.insns[*insn].tags.iter().map(|t| kingpost_ir::text::show_label(t)).collect();
                Some(tags.join(", "))
            }
            Node::Loop(_, body) => {
                let mut labels = body.iter().map(|n| self.label(n));
                let first = labels.next()??;
                labels.all(|l| l.as_ref() == Some(&first)).then_some(first)
            }
        }
    }

    /// Code of a resolved affine integer.
    pub(crate) fn integer(&self, e: &Affine) -> Expr {
        crate::value::integer(&self.env, e).0
    }

    pub(crate) fn internal(&self, what: impl Into<String>) -> CodegenError {
        CodegenError::Internal { what: what.into(), kernel: kingpost_ir::text::print(self.kernel) }
    }
}

/// Names of what statements may change: temporaries, accumulators and copies of bounds.
pub(crate) fn mutable_names(kernel: &Kernel, buffers: &[Name], code: &Block) -> BTreeSet<Name> {
    let temporaries = kernel.vars.iter().filter(|(_, v)| v.kind == kingpost_ir::VarKind::Temporary);
    let mut names = temporaries.map(|(id, _)| buffers[kingpost_ir::Id::index(id)].clone()).collect();
    declared(code, &mut names);
    names
}

/// Names that statements declare.
fn declared(block: &Block, names: &mut BTreeSet<Name>) {
    for stmt in block {
        if let Stmt::Declare(d) = stmt {
            names.insert(d.name.clone());
        }
        if let Some(body) = stmt.body() {
            declared(body, names);
        }
    }
}

fn append(run: &mut Block, remark: Option<String>, code: Block) {
    if !code.is_empty() {
        run.extend(remark.map(Stmt::Comment));
        run.extend(code);
    }
}

/// Moves the run to `out`, under the conditions.
fn flush(run: &mut Block, pending: &[Expr], out: &mut Block) {
    out.extend(guarded(pending.to_vec(), std::mem::take(run)));
}

/// `body` where all conditions hold.
pub(crate) fn guarded(conditions: Vec<Expr>, body: Block) -> Block {
    if body.is_empty() {
        return body;
    }
    match conditions.into_iter().reduce(|a, b| Expr::binary(crate::ast::Op::And, a, b)) {
        None => body,
        Some(condition) => vec![Stmt::If { condition, body }],
    }
}
