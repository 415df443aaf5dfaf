//! First numbers of runs of degrees of freedom instead of their maps.

use super::length;
use super::listed_cells::vertices;
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, Needs, Stopped, StrategyError, Work};
use kingpost_forms::program::CellProgram;
use kingpost_ir::{Access, Expr, Insn, Kernel};
use kingpost_primitives::primitives::{MakePlain, PassStarts};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Another mapping, with the first number of each run of degrees of freedom of a cell instead of all
/// of them: those of an edge, a face or the interior follow one another where they are numbered by
/// dimension and the vertices of cells are in ascending order.
///
/// A cell then reads a number for each of its entities, where a map has one for each degree of
/// freedom: 15 instead of 84 of P6 on tetrahedra. The mapping has to transfer degrees of freedom of
/// each dimension separately, as [`StraightCells`](super::StraightCells) do by `parts`.
///
/// # Rewrite
/// ```text
/// u_cell[i + 4] = u[dofs[cell, i + 4]]     =>   u_cell[i + 4] = u[dofs_starts_4[cell, floor_div(i, 5)] + i mod 5]
/// ```
///
/// With `interior`, the last run is that of the interior, which no other cell has. Its numbers
/// follow one another, cell by cell: they are computed, and added to without atomic updates.
/// ```text
/// y[dofs[cell, i + 9]] += … {atomic}         =>   y[dofs_base_9 + cell + i] += …
/// ```
///
/// # Errors
/// No runs, or others than all degrees of freedom of a cell; a mapping whose transfers are not
/// separate.
///
/// # Source
/// Kulkarni & Klöckner 2025, §6.3.1 names the layout of the degrees of freedom as what bounds low
/// orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapRuns {
    /// Length of a run and number of runs, for vertices, edges, faces and the interior, as far as
    /// they have degrees of freedom.
    pub runs: Vec<[u64; 2]>,
    /// Whether degrees of freedom of vertices have the numbers of these and a constant, so that they need
    /// no numbers of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_vertices: bool,
    /// Whether the last run is one of numbers that no other cell has, which follow one another cell
    /// by cell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interior: bool,
}

impl fmt::Display for MapRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: Vec<String> =
            self.runs.iter().map(|[length, count]| format!("{count} of {length}")).collect();
        let by_vertices = if self.by_vertices { ", by vertices" } else { "" };
        let interior = if self.interior { ", interiors added to by stores" } else { "" };
        write!(f, "runs of numbers, {}{by_vertices}{interior}", runs.join(" + "))
    }
}

impl Arguments for MapRuns {
    const NAME: &'static str = "map_runs";
    const SUMMARY: &'static str = "First numbers of runs of degrees of freedom instead of their maps.";
}

impl Combinator for MapRuns {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        let form = on.form();
        let program = form.program()?;
        let sum = self.runs.iter().fold(0_u64, |sum, [l, n]| sum.saturating_add(l.saturating_mul(*n)));
        let count = program.count();
        if count != Some(length(sum)) {
            let several = || "functions and results that all have as many".into();
            return Err(Stopped::from(StrategyError::Parameter {
                symbol: "the degrees of freedom in runs".into(),
                found: sum,
                needed: count
                    .map_or_else(several, |count| format!("{count}, those of a component in a cell")),
            }));
        }
        let maps = maps(form.kernel(), &program);
        let commits = program.results.iter().flat_map(|result| &result.commits);
        let committed = commits.filter_map(|commit| form.kernel().insn(commit.name()));
        let results: Vec<String> = committed
            .map(|insn| form.kernel().vars[form.kernel().insns[insn].lhs.var].name.clone())
            .collect();
        let of_interior = self.runs.last().map_or(0, |[_, count]| *count);
        if self.interior && of_interior != 1 {
            return Err(Stopped::from(StrategyError::Parameter {
                symbol: "the number of runs of the interior".into(),
                found: of_interior,
                needed: "one, the last one, of an interior that no other cell has".into(),
            }));
        }
        let vertices = vertices(form.kernel()).filter(|_| self.by_vertices);
        if self.by_vertices && vertices.is_none() {
            return Err(Stopped::from(StrategyError::Parameter {
                symbol: "the number of gathers of vertices".into(),
                found: 0,
                needed: "at least one, for numbers by those of vertices".into(),
            }));
        }
        // last: transfers are separate then
        on.hand_on(then)?;
        let s = on.schedule();
        for map in maps {
            let mut first = 0;
            let mut starts = Vec::new();
            for [of_run, count] in self.runs.iter().map(|run| run.map(length)) {
                let run = PassStarts::new(&map, first, of_run, count);
                starts.push(match &vertices {
                    Some([vertices, _]) if first == 0 => run.above(vertices),
                    _ => run,
                });
                first += of_run * count;
            }
            if self.interior {
                // first: others say of what they pass that it is none of these
                let last = starts.pop().map(PassStarts::own);
                starts.splice(0..0, last);
            }
            starts.into_iter().try_for_each(|run| s.make(run).map(|_| ()))?;
        }
        if self.interior {
            for commit in plain(s.kernel(), &results) {
                s.make(MakePlain::insn(commit))?;
            }
        }
        Ok(())
    }

    fn needs(&self) -> Needs {
        Needs { setup: true, ..Needs::default() }
    }

    fn is_over_modes(&self, then: &Mapping) -> bool {
        then.is_over_modes()
    }

    fn show(&self, then: &Mapping, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{then}, {self}")
    }
}

/// Atomic updates of results at affine indices.
fn plain(kernel: &Kernel, results: &[String]) -> Vec<String> {
    let of_interior = |insn: &&Insn| {
        let is_result = results.contains(&kernel.vars[insn.lhs.var].name);
        let index = insn.lhs.index.first().and_then(Expr::as_affine);
        insn.is_atomic() && is_result && index.is_some()
    };
    kernel.insns.values().filter(of_interior).map(|insn| insn.name.clone()).collect()
}

/// The maps through which degrees of freedom are gathered and scattered.
fn maps(kernel: &Kernel, program: &CellProgram) -> Vec<String> {
    let gathers = program.evaluated().into_iter().flat_map(|k| &program.gathers[k].insns);
    let commits = program.results.iter().flat_map(|result| &result.commits);
    let mut found: Vec<String> = Vec::new();
    let mut add = |access: &Access| {
        if let Some(Expr::Load(entry)) = access.index.first() {
            let name = &kernel.vars[entry.var].name;
            if !found.contains(name) {
                found.push(name.clone());
            }
        }
    };
    for insn in gathers.chain(commits) {
        let Some(insn) = kernel.insn(insn.name()).map(|insn| &kernel.insns[insn]) else { continue };
        add(&insn.lhs);
        insn.rhs.for_each(&mut |e| e.as_load().into_iter().for_each(&mut add));
    }
    found
}
