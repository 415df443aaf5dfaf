//! What the quadrature loops of a cell program share, taken apart.

use kingpost_forms::program::{CellProgram, ElementResult, Gather};
use kingpost_ir::{Kernel, Node};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{MoveInsns, SplitIname, SplitLives, Tail};
use kingpost_primitives::schedule::{Array, Loop, Statement};
use kingpost_primitives::{Schedule, TransformError};

/// The statements of the loop over cells: those that gather what is evaluated, those that transform
/// it, and the first one that does neither.
pub(super) struct Statements {
    /// Places of the gathers in [`CellProgram::gathers`], in textual order.
    pub(super) gathers: Vec<usize>,
    /// The first statement that transforms what was gathered.
    pub(super) transform: Option<String>,
    /// The first other statement.
    pub(super) first: String,
}

/// Moves the gathers of what is evaluated, and then its transforms, before all other
/// statements of the loop `cell` over cells.
pub(super) fn gathers_first(
    s: &mut Schedule,
    cell: &Loop,
    program: &CellProgram,
) -> Result<Statements, TransformError> {
    let body = statements(s.kernel(), cell.name());
    let gathers: Vec<&Gather> = program.gathers.iter().collect();
    let is_gather = |name: &String| gathers.iter().any(|g| g.dofs.name() == name);
    let at = body.iter().position(|name| !is_gather(name)).unwrap_or(body.len());
    let first = s.expected(body.get(at).cloned(), "statement that gathers nothing")?;
    let late: Vec<&String> = body[at..].iter().filter(|name| is_gather(name)).collect();
    if !late.is_empty() {
        s.apply(MoveInsns::before(late, &first))?;
    }
    let place = |name: &String| gathers.iter().position(|g| g.dofs.name() == name);
    let gathers = body.iter().filter_map(place).collect();
    let transform = program.transforms.first().map(String::from);
    if transform.is_none() {
        return Ok(Statements { gathers, transform, first });
    }
    let body = statements(s.kernel(), cell.name());
    let is_transform = |name: &&String| program.transforms.iter().any(|t| t.name() == name.as_str());
    let is_rest = |name: &&String| !is_gather(name) && !is_transform(name);
    let first = s.expected(body.iter().find(is_rest).cloned(), "statement that transforms nothing")?;
    let late: Vec<&String> = body.iter().skip_while(|name| **name != first).filter(is_transform).collect();
    if !late.is_empty() {
        s.apply(MoveInsns::before(late, &first))?;
    }
    Ok(Statements { gathers, transform, first })
}

/// Names of the statements of a loop.
pub(super) fn statements(kernel: &Kernel, iname: &str) -> Vec<String> {
    let name = |node: &Node| match node {
        Node::Loop(l, _) => kernel.inames[*l].name.clone(),
        Node::Insn(i) => kernel.insns[*i].name.clone(),
    };
    body_of(kernel, &kernel.body, iname).iter().map(name).collect()
}

fn body_of<'k>(kernel: &Kernel, nodes: &'k [Node], iname: &str) -> &'k [Node] {
    for node in nodes {
        if let Node::Loop(l, body) = node {
            let found = if kernel.inames[*l].name == iname { body } else { body_of(kernel, body, iname) };
            if !found.is_empty() {
                return found;
            }
        }
    }
    &[]
}

/// The element vector of a quadrature loop: the loop that zeroes it, and the scatter.
#[derive(Clone)]
pub(super) struct Accumulation {
    pub(super) vector: Array,
    pub(super) zero: Loop,
    pub(super) scatter: Loop,
    pub(super) commits: Vec<Statement>,
}

/// An element vector for each quadrature loop, with a scatter of its own.
pub(super) fn accumulations(
    s: &mut Schedule,
    program: &CellProgram,
    element: &ElementResult,
) -> Result<Vec<Accumulation>, TransformError> {
    let commits = &program.cells.commits;
    let mut rest = Accumulation {
        vector: element.array.clone(),
        zero: element.zero.clone(),
        scatter: element.scatter.clone(),
        commits: commits.clone(),
    };
    let mut all = Vec::new();
    for block in program.blocks.iter().skip(1) {
        let (vector, [scatter, zero], mut copies) = s.split_accumulation(&rest.vector, &block.quad)?;
        copies.truncate(commits.len());
        all.push(Accumulation { scatter, commits: copies, ..rest.clone() });
        rest = Accumulation { vector, zero, ..rest };
    }
    all.push(rest);
    Ok(all)
}

/// The statement after a loop of the kernel's body.
pub(super) fn behind(kernel: &Kernel, iname: &str) -> Option<Loop> {
    let name = |node: &Node| match node {
        Node::Loop(l, _) => kernel.inames[*l].name.clone(),
        Node::Insn(i) => kernel.insns[*i].name.clone(),
    };
    let at = kernel.body.iter().position(|node| name(node) == iname)?;
    kernel.body.get(at + 1).map(|node| Loop::named(name(node)))
}

/// What the arrays of cells that fill no block end with.
pub(super) const REST: &str = "rest";

/// Loops over blocks of as many cells and over the cells of one, and what remains, whose temporaries are
/// of its own.
pub(super) fn blocks_of_cells(
    s: &mut Schedule,
    program: &CellProgram,
    cells: i64,
) -> Result<([Loop; 2], Option<Loop>), TransformError> {
    let loops: [Loop; 2] = s.make(SplitIname {
        outer: Some(s.fresh("cell_block")),
        inner: Some(s.fresh("cell_gather")),
        ..SplitIname::new(&program.cells.cell, cells).with_tail(Tail::Peel)
    })?;
    let rest = behind(s.kernel(), loops[0].name());
    if let Some(rest) = &rest {
        s.apply(SplitLives::new(rest, REST))?;
    }
    Ok((loops, rest))
}

/// The array that an instruction writes.
pub(super) fn written(kernel: &Kernel, insn: &str) -> Option<Array> {
    let id = kernel.insn(insn)?;
    Some(Array::named(&kernel.vars[kernel.insns[id].lhs.var].name))
}

/// The loops directly inside a loop.
pub(super) fn loops_in(kernel: &Kernel, iname: &Loop) -> Vec<Loop> {
    let inside = statements(kernel, iname.name()).into_iter();
    inside.filter(|name| kernel.iname(name).is_some()).map(Loop::named).collect()
}
