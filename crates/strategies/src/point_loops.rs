//! Loops over quadrature points, as tiles of points take them: of a cell program, or of what steps
//! made of one.

use super::blocks::written;
use kingpost_forms::program::{Block, CellLoop, stage};
use kingpost_ir::{InameId, InsnId, Kernel, Node, VarId, VarKind};
use kingpost_primitives::schedule::{Array, Loop};
use std::collections::{BTreeMap, BTreeSet};

/// A loop over quadrature points.
pub(super) struct PointLoop {
    pub(super) quad: Loop,
    /// Number of its iterations.
    pub(super) points: i64,
    /// Maximum of the sums of a point in one loop over degrees of freedom.
    pub(super) sums: usize,
    /// What has a value for each point of a tile.
    pub(super) of_point: Vec<Array>,
    /// The loops over degrees of freedom.
    pub(super) nests: Vec<Nest>,
}

/// A loop over degrees of freedom, or over rows.
pub(super) struct Nest {
    pub(super) rows: Loop,
    /// Of a matrix: the loop over its columns.
    pub(super) columns: Option<Loop>,
    /// Of a matrix: what is the same in a row.
    pub(super) partials: Vec<Array>,
}

impl PointLoop {
    /// The loop of a block.
    pub(super) fn of_block(block: &Block) -> Self {
        let evaluated = block.evaluations.iter().map(|e| Nest::sum(e.dofs.clone()));
        let products = block.products.iter().map(|p| {
            let (columns, partials) = (p.columns.clone(), p.partials.clone());
            Nest { rows: p.rows.clone(), columns, partials }
        });
        let outputs = block.evaluations.iter().flat_map(|e| &e.outputs);
        Self {
            quad: block.quad.clone(),
            points: block.points,
            sums: block.evaluations.iter().map(|e| e.outputs.len()).fold(0, usize::max),
            of_point: outputs.chain(&block.factors).cloned().collect(),
            nests: evaluated.chain(products).collect(),
        }
    }

    /// The loops of a kernel in which functions are evaluated, and in which each statement is an
    /// instruction, a sum, or rows of sums.
    pub(super) fn of_kernel(kernel: &Kernel, cells: &CellLoop) -> Vec<Self> {
        let is_cell =
            |node: &&Node| matches!(node, Node::Loop(l, _) if kernel.inames[*l].name == cells.cell.name());
        let Some(Node::Loop(_, body)) = kernel.body.iter().find(is_cell) else { return Vec::new() };
        let loops = body.iter().filter_map(|node| match node {
            Node::Loop(l, inside) => Self::read(kernel, *l, inside),
            Node::Insn(_) => None,
        });
        loops.collect()
    }

    fn read(kernel: &Kernel, quad: InameId, body: &[Node]) -> Option<Self> {
        let mut within = Vec::new();
        body.iter().for_each(|node| insns(node, &mut within));
        if !within.iter().any(|i| kernel.insns[*i].tags.contains(stage::EVALUATION)) {
            return None;
        }
        let mut nests = Vec::new();
        let mut sums = 0;
        // what accesses a variable: places of statements, where those after a loop are one
        let mut parts: BTreeMap<VarId, BTreeSet<usize>> = BTreeMap::new();
        let mut part = 0;
        for (k, node) in body.iter().enumerate() {
            let is_loop = |at: usize| matches!(body[at], Node::Loop(..));
            if k > 0 && (is_loop(k) || is_loop(k - 1)) {
                part += 1;
            }
            let mut own = Vec::new();
            insns(node, &mut own);
            for var in own.iter().flat_map(|i| accessed(kernel, *i)) {
                parts.entry(var).or_default().insert(part);
            }
            if let Node::Loop(rows, inside) = node {
                let nest = Nest::read(kernel, *rows, inside)?;
                if nest.columns.is_none() {
                    let sum = |i: &InsnId| kernel.insns[*i].lhs.var;
                    sums = sums.max(own.iter().map(sum).collect::<BTreeSet<_>>().len());
                }
                nests.push(nest);
            }
        }
        let (low, high) = kernel.inames[quad].domain.as_range(quad)?;
        let points = high.as_constant()? - low.as_constant()?;
        let set_here = body.iter().filter_map(|node| match node {
            Node::Insn(i) => Some(kernel.insns[*i].lhs.var),
            Node::Loop(..) => None,
        });
        let mut of_point: Vec<VarId> = Vec::new();
        for var in set_here {
            if is_only_in(kernel, var, &within) && parts[&var].len() > 1 && !of_point.contains(&var) {
                of_point.push(var);
            }
        }
        let array = |var: VarId| Array::named(&kernel.vars[var].name);
        let quad = Loop::named(&kernel.inames[quad].name);
        Some(Self { quad, points, sums, of_point: of_point.into_iter().map(array).collect(), nests })
    }
}

impl Nest {
    const fn sum(rows: Loop) -> Self {
        Self { rows, columns: None, partials: Vec::new() }
    }

    /// A loop of instructions, or of instructions and a loop of instructions after them.
    fn read(kernel: &Kernel, rows: InameId, body: &[Node]) -> Option<Self> {
        let name = |l: InameId| Loop::named(&kernel.inames[l].name);
        let is_insn = |node: &Node| matches!(node, Node::Insn(_));
        let (last, before) = body.split_last()?;
        if !before.iter().all(is_insn) {
            return None;
        }
        let Node::Loop(columns, inside) = last else { return Some(Self::sum(name(rows))) };
        if !inside.iter().all(is_insn) {
            return None;
        }
        let mut within = Vec::new();
        body.iter().for_each(|node| insns(node, &mut within));
        let mut partials: Vec<Array> = Vec::new();
        for node in before {
            let Node::Insn(insn) = node else { return None };
            let var = kernel.insns[*insn].lhs.var;
            let partial = written(kernel, &kernel.insns[*insn].name)?;
            if !is_only_in(kernel, var, &within) {
                return None;
            }
            if !partials.contains(&partial) {
                partials.push(partial);
            }
        }
        Some(Self { rows: name(rows), columns: Some(name(*columns)), partials })
    }
}

/// The instructions of a statement.
fn insns(node: &Node, found: &mut Vec<InsnId>) {
    match node {
        Node::Insn(insn) => found.push(*insn),
        Node::Loop(_, body) => body.iter().for_each(|inner| insns(inner, found)),
    }
}

fn accessed(kernel: &Kernel, insn: InsnId) -> Vec<VarId> {
    let insn = &kernel.insns[insn];
    insn.reads().iter().map(|a| a.var).chain([insn.lhs.var]).collect()
}

/// Whether a variable is a temporary that no other instructions access.
fn is_only_in(kernel: &Kernel, var: VarId, within: &[InsnId]) -> bool {
    let mut others = kernel.insns.iter().map(|(id, _)| id).filter(|id| !within.contains(id));
    kernel.vars[var].kind == VarKind::Temporary && !others.any(|id| accessed(kernel, id).contains(&var))
}
