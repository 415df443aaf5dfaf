//! Modes instead of quadrature points, where the integrand is linear and its factors do not change
//! with the point.

use super::blocks::statements;
use super::trial;
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, Stopped, Work};
use kingpost_forms::CellKernel;
use kingpost_forms::program::{Block, CellProgram};
use kingpost_ir::{InsnId, Kernel, VarId};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    AssignToRule, ExpandRule, FactorQuadrature, MoveInsns, RemoveUnusedVars,
};
use kingpost_primitives::schedule::Loop;
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Sums over modes instead of the points of each quadrature rule whose terms allow it.
///
/// Terms that share no value of a function get a loop of their own first: stiffness and mass of the
/// Helmholtz operator then have the modes of derivatives and those of values, which are fewer in
/// sum than products of all tables with common modes. A rule whose integrand is not linear, or has
/// factors that change with the point, keeps its points.
///
/// # Rewrite
/// ```text
/// for q in 0..Q                          =>   for q in 0..m
///   u_d0 += phi_d0[q, j]*u[j]                   u_d0 += phi_d0_modes[q, j]*u[j]
///   e0 = weights[q]*abs_det*(g*u_d0)            e0 = abs_det*(g*u_d0)
///   y[i] += phi_d0[q, i]*e0                     y[i] += phi_d0_modes[q, i]*e0
/// ```
///
/// # Errors
/// The first refusal, if every rule keeps its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modes {}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("modes")
    }
}

impl Arguments for Modes {
    const NAME: &'static str = "modes";
    const SUMMARY: &'static str =
        "Sums over modes instead of quadrature points where the integrand is linear.";
}

impl Combinator for Modes {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        let form = on.form();
        factor(on.schedule(), &*form.program()?, 1)?;
        on.go_on(then)
    }

    fn is_over_modes(&self, _: &Mapping) -> bool {
        true
    }
}

impl Mapping {
    /// The same after modes instead of quadrature points.
    #[must_use]
    pub fn with_modes(self) -> Self {
        Modes {}.before(self)
    }
}

/// The kernel with modes instead of quadrature points, and how its products of a cell with entries
/// of tables compare with those over points; none where no quadrature loop has modes.
#[must_use]
pub fn with_modes(form: &dyn CellKernel) -> Option<(Kernel, Ordering)> {
    let program = form.program().ok()?;
    let kernel = trial(form.kernel(), |s| factor(s, &program, 1))?;
    let products = table_products(&*kernel.program().ok()?).cmp(&table_products(&program));
    Some((kernel, products))
}

/// The steps, with numbers of modes that are multiples of `multiple`.
pub(super) fn factor(s: &mut Schedule, program: &CellProgram, multiple: u32) -> Result<(), TransformError> {
    let (mut factored, mut refused) = (false, None);
    for block in &program.blocks {
        let before = s.clone();
        let mut any = false;
        for quad in split_terms(s, block)? {
            match s.apply(FactorQuadrature::new(&quad).in_multiples_of(multiple)) {
                Ok(_) => any = true,
                Err(error) => {
                    refused.get_or_insert(error);
                }
            }
        }
        if !any {
            *s = before;
        }
        factored |= any;
    }
    match refused {
        Some(error) if !factored => Err(error),
        Some(_) | None => s.apply(RemoveUnusedVars {}).map(drop),
    }
}

/// Products with entries of tables that a cell takes: what modes instead of points make fewer.
#[must_use]
pub fn table_products(program: &CellProgram) -> i64 {
    let of_block = |block: &Block| {
        let evaluations = block.evaluations.iter().map(|e| e.count * e.outputs.len() as i64);
        let products = block.products.iter().map(|p| p.count * p.insns.len() as i64);
        block.points * evaluations.chain(products).sum::<i64>()
    };
    program.blocks.iter().map(of_block).sum()
}

/// Gives the terms of a quadrature loop that share no value of a function loops of their own.
pub(super) fn split_terms(s: &mut Schedule, block: &Block) -> Result<Vec<Loop>, TransformError> {
    let mut quads = vec![block.quad.clone()];
    let terms = Terms::of(s.kernel(), block);
    if terms.groups.len() < 2 {
        return Ok(quads);
    }
    for var in terms.shared.iter().rev() {
        let made = s.apply(AssignToRule::new(var))?;
        for rule in made.rules {
            s.apply(ExpandRule::new(&rule))?;
        }
    }
    for group in &terms.groups[..terms.groups.len() - 1] {
        let mut quad = block.quad.clone();
        if let Some(last) = quads.last() {
            quad.clone_from(last);
        }
        for inner in statements(s.kernel(), quad.name()) {
            if let Some(rest) = gather_group(s, &inner, group)? {
                s.distribute_one(&inner, rest, &inner)?;
            }
        }
        if let Some(rest) = gather_group(s, quad.name(), group)? {
            quads.push(s.distribute_one(&quad, rest, quad.name())?);
        }
    }
    Ok(quads)
}

/// Moves the statements of a loop that belong to a group before all others; returns the first
/// of these, if there are both.
fn gather_group(
    s: &mut Schedule,
    iname: &str,
    group: &BTreeSet<String>,
) -> Result<Option<String>, TransformError> {
    let body = statements(s.kernel(), iname);
    let (own, rest): (Vec<&String>, Vec<&String>) =
        body.iter().partition(|name| belongs(s.kernel(), name, group));
    let Some(first) = rest.first().filter(|_| !own.is_empty()) else { return Ok(None) };
    let late: Vec<&String> =
        body.iter().skip_while(|name| name != first).filter(|name| own.contains(name)).collect();
    if !late.is_empty() {
        s.apply(MoveInsns::before(late, *first))?;
    }
    Ok(Some((*first).clone()))
}

/// Whether an instruction, or everything in a loop, belongs to a group.
fn belongs(kernel: &Kernel, name: &str, group: &BTreeSet<String>) -> bool {
    let Some(iname) = kernel.iname(name) else { return group.contains(name) };
    let inside = kernel.schedule().into_iter().filter(|(_, loops)| loops.contains(&iname));
    inside.into_iter().all(|(insn, _)| group.contains(&kernel.insns[insn].name))
}

/// The instructions of a quadrature loop by the values of functions that they use.
struct Terms {
    /// Instructions that share values, in the order of the first ones.
    groups: Vec<BTreeSet<String>>,
    /// Scalars that hold no such value and that several groups use, in textual order.
    shared: Vec<String>,
}

impl Terms {
    fn of(kernel: &Kernel, block: &Block) -> Self {
        let quad = kernel.iname(block.quad.name());
        let is_inside = |loops: &[_]| quad.is_some_and(|quad| loops.contains(&quad));
        let inside: Vec<InsnId> =
            kernel.schedule().into_iter().filter(|(_, l)| is_inside(l)).map(|(i, _)| i).collect();
        let evaluated: BTreeSet<VarId> =
            block.evaluations.iter().flat_map(|e| &e.outputs).filter_map(|a| kernel.var(a.name())).collect();
        let results: BTreeSet<VarId> = block
            .products
            .iter()
            .flat_map(|p| &p.insns)
            .filter_map(|i| kernel.insn(i.name()))
            .map(|i| kernel.insns[i].lhs.var)
            .collect();
        // what a scalar of the loop depends on: a value of a function, or none
        let written: BTreeSet<VarId> = inside.iter().map(|i| kernel.insns[*i].lhs.var).collect();
        let mut depends = evaluated.clone();
        let reads = |i: &InsnId| kernel.insns[*i].reads().iter().map(|a| a.var).collect::<BTreeSet<_>>();
        loop {
            let known = depends.len();
            for insn in &inside {
                if !reads(insn).is_disjoint(&depends) {
                    depends.insert(kernel.insns[*insn].lhs.var);
                }
            }
            if depends.len() == known {
                break;
            }
        }
        let joins = |v: &VarId| depends.contains(v) && written.contains(v) && !results.contains(v);
        let mut groups: Vec<(BTreeSet<VarId>, BTreeSet<String>)> = Vec::new();
        let mut free: BTreeMap<VarId, BTreeSet<InsnId>> = BTreeMap::new();
        for insn in &inside {
            let target = kernel.insns[*insn].lhs.var;
            if written.contains(&target) && !depends.contains(&target) && !results.contains(&target) {
                free.entry(target).or_default().insert(*insn);
                continue;
            }
            let mut vars: BTreeSet<VarId> = reads(insn).into_iter().chain([target]).filter(joins).collect();
            let mut names = BTreeSet::from([kernel.insns[*insn].name.clone()]);
            let mut kept = Vec::new();
            let mut place = None;
            for (of, insns) in groups {
                if of.is_disjoint(&vars) {
                    kept.push((of, insns));
                } else {
                    place.get_or_insert(kept.len());
                    vars.extend(of);
                    names.extend(insns);
                }
            }
            kept.insert(place.unwrap_or(kept.len()), (vars, names));
            groups = kept;
        }
        let name = |v: &VarId| kernel.vars[*v].name.clone();
        let order = |v: &VarId| free.get(v).and_then(|i| inside.iter().position(|k| i.contains(k)));
        let mut shared: Vec<VarId> = free.keys().copied().collect();
        shared.sort_by_key(order);
        Self {
            groups: groups.into_iter().map(|(_, insns)| insns).collect(),
            shared: shared.iter().map(name).collect(),
        }
    }
}
