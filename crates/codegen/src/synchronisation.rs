//! How often a program synchronises: launches and barriers, as formulas in the parameters.

use crate::ast::{Block, Fence, Stmt};
use crate::placed::PlacedKernel;
use crate::program::Options;
use crate::target::Target;
use kingpost_analysis::placement::Scope;
use kingpost_analysis::stats::{Counted, StatsError, points};
use kingpost_ir::{AxisTag, InameId, Kernel, Node};
use std::collections::BTreeSet;

/// Launches and barriers of a kernel, as formulas in its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Synchronisation {
    /// Launches of the host.
    pub launches: Counted,
    /// Barriers at which the work-items of a group wait for each other, of all work-groups together.
    pub barriers: Counted,
    /// The same of sub-groups, whose work-items wait for each other alone.
    pub sub_group_barriers: Counted,
}

/// Counts the launches, and the barriers that CUDA code has. OpenCL has more around loops that hold one, and
/// none for sub-groups.
///
/// An unrolled loop may leave some of its barriers out, so that the count is an upper bound there. Where the
/// kernel has no code for CUDA, such as for a race, nothing is said of barriers, with the reason.
///
/// ```
/// use kingpost_codegen::synchronisation;
///
/// let kernel = kingpost_ir::text::parse(
///     "kernel reversed\nparam n: i32\narg x: f64[n, 32] in\narg y: f64[n, 32] inout\ntemp t: f64[32] local\n
/// for b in 0..n {g.0}
///   for i in 0..32 {l.0}
///     s: t[i] = x[b, i]
///   for j in 0..32 {l.0}
///     r: y[b, j] = t[31 - j]
/// ",
/// )?;
/// let found = synchronisation(&kernel)?;
/// assert_eq!((found.launches.to_string(), found.sub_group_barriers.to_string()), ("1".into(), "n".into()));
/// assert_eq!(found.barriers.to_string(), "0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Bounds that depend on data.
pub fn synchronisation(kernel: &Kernel) -> Result<Synchronisation, StatsError> {
    let kernel = &*kernel.scalar_form();
    let mut launches = Vec::new();
    paths(&kernel.body, &mut Vec::new(), &mut |path| {
        if path.last().is_some_and(|l| kernel.inames[*l].tag == AxisTag::Launch) {
            launches.push(path.to_vec());
        }
    });
    if launches.is_empty() {
        launches.push(Vec::new());
    }
    let codes = PlacedKernel::new(kernel)
        .and_then(|placed| placed.program_and_codes(Target::Cuda, &Options::default()))
        .map_err(|error| error.to_string());
    let mut fences: Vec<(Scope, Vec<InameId>)> = Vec::new();
    for (code, launch) in codes.iter().flat_map(|(_, codes)| codes).zip(&launches) {
        let mut found = BTreeSet::new();
        places(&code.function.body, &mut found);
        fences.extend(
            found.into_iter().map(|(inside, _, scope)| (scope, path_of(kernel, inside.as_deref(), launch))),
        );
    }
    let of = |scope: Scope| -> Result<Counted, StatsError> {
        if let Err(why) = &codes {
            return Ok(Counted { formula: Err(why.clone()), exact: false });
        }
        let here = fences.iter().filter(|(own, _)| *own == scope).map(|(_, path)| path.clone());
        barriers(kernel, &here.collect::<Vec<_>>())
    };
    Ok(Synchronisation {
        launches: points(kernel, &launches)?,
        barriers: of(Scope::Group)?,
        sub_group_barriers: of(Scope::SubGroup)?,
    })
}

/// How often barriers inside these loops are passed: once by all work-items that share them.
fn barriers(kernel: &Kernel, all: &[Vec<InameId>]) -> Result<Counted, StatsError> {
    let is_item = |l: &InameId| matches!(kernel.inames[*l].tag, AxisTag::Local(_));
    let mut shared = Vec::new();
    for path in all {
        let items: Vec<InameId> = path.iter().copied().filter(is_item).collect();
        let kept: Vec<InameId> = path.iter().copied().filter(|l| !is_item(l)).collect();
        let varies = |l: &&InameId| items.iter().any(|item| kernel.inames[**l].domain.mentions(*item));
        if let Some(l) = kept.iter().find(varies) {
            let why = format!("the bounds of `{}` depend on the work-item", kernel.inames[*l].name);
            return Ok(Counted { formula: Err(why), exact: false });
        }
        shared.push(kept);
    }
    let is_unrolled = |l: &InameId| kernel.inames[*l].tag == AxisTag::Unrolled;
    let exact = !shared.iter().flatten().any(is_unrolled);
    let counted = points(kernel, &shared)?;
    Ok(Counted { exact: exact && counted.exact, ..counted })
}

/// Calls `visit` with the loops around each body, the innermost one last.
fn paths(nodes: &[Node], around: &mut Vec<InameId>, visit: &mut dyn FnMut(&[InameId])) {
    for node in nodes {
        if let Node::Loop(iname, body) = node {
            around.push(*iname);
            visit(around);
            paths(body, around, visit);
            around.pop();
        }
    }
}

/// The loops around the body of a loop, or those of the launch.
fn path_of(kernel: &Kernel, inside: Option<&str>, launch: &[InameId]) -> Vec<InameId> {
    let mut found = None;
    paths(&kernel.body, &mut Vec::new(), &mut |path| {
        if path.last().is_some_and(|l| Some(kernel.inames[*l].name.as_str()) == inside) {
            found = Some(path.to_vec());
        }
    });
    found.unwrap_or_else(|| launch.to_vec())
}

/// Where the barriers of code stand in the loop tree, each with who waits there.
fn places(block: &Block, found: &mut BTreeSet<(Option<String>, usize, Scope)>) {
    for stmt in block {
        if let Stmt::Barrier(Fence { scope, place: Some((inside, gap)), .. }) = stmt {
            found.insert((inside.clone(), *gap, *scope));
        }
        if let Some(body) = stmt.body() {
            places(body, found);
        }
    }
}
