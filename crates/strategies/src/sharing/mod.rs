//! Sharing elimination: fewer operations by expansion, factorisation and code motion.

mod graph;
mod nest;

use super::decided;
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, MappingError, Stopped, StrategyError, Work};
pub use graph::SharingGraph;
use kingpost_forms::CellKernel;
use kingpost_ir::{AddressSpace, Expr, Kernel, UpdateOp, VarKind};
use kingpost_primitives::lookup::Selection;
use kingpost_primitives::polynomial::{Atoms, Sum};
use kingpost_primitives::primitives::{
    EliminateCommonSubexpressions, ExpandProducts, ExpandRule, ExtractRule, FactoriseSum, PrecomputeRule,
    Reassociate,
};
use kingpost_primitives::{Recipe, Schedule, TransformError};
use nest::Nest;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Iterations of a loop whose bounds are parameters, where operations are counted.
const TYPICAL: i64 = 8;

/// What was decided for an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingDecision {
    /// The instruction.
    pub insn: String,
    /// Operands that depend on one of the inner loops and stay whole (strategy 1).
    pub whole: Vec<String>,
    /// Operands that are multiplied out (strategy 2).
    pub expanded: Vec<String>,
    /// Number of symbols and of products of two of them; none where code motion alone takes fewer
    /// operations.
    pub graph: [usize; 2],
    /// The symbols that the integer program factorises; without products of symbols, the common factors
    /// of terms.
    pub factorised: Vec<String>,
    /// Operations before and after, where loops whose bounds are parameters run eight times; the same
    /// where the update stays what it is.
    pub operations: [u64; 2],
}

impl fmt::Display for SharingDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |all: &[String]| all.iter().map(|s| format!("`{s}`")).collect::<Vec<_>>().join(", ");
        let [symbols, products] = self.graph;
        match (products, self.factorised.len()) {
            (0, 0) => write!(f, "`{}`: code motion alone", self.insn)?,
            (0, _) => {
                write!(
                    f,
                    "`{}`: no products of symbols; common factors {}",
                    self.insn,
                    names(&self.factorised)
                )?;
            }
            (_, chosen) => write!(
                f,
                "`{}`: {symbols} symbols in {products} products; the integer program factorises {chosen}: {}",
                self.insn,
                names(&self.factorised)
            )?,
        }
        if !self.whole.is_empty() {
            write!(f, "; strategy 1 for {}", names(&self.whole))?;
        }
        if !self.expanded.is_empty() {
            write!(f, "; strategy 2 for {}", names(&self.expanded))?;
        }
        match self.operations {
            [before, after] if before == after => write!(f, "; it stays, {after} operations"),
            [before, after] => write!(f, "; {before} operations before, {after} after"),
        }
    }
}

/// Computes what the updates of a kernel add with fewer operations.
///
/// An update whose value is linear in each of two inner loops is multiplied out as far as its operands
/// ask for, factorised by the symbols that an integer program chooses, and what does not depend on a
/// loop around it moves out of that loop, into a temporary over the loops that it depends on. An update
/// without products of symbols, as of an action, is factorised by what its terms have in common. What
/// moved is factorised and moved on in the same way, and what is equal among it, up to
/// associativity, is computed once. Steps stay only where they take operations away.
///
/// Step 4 of the source merges the instances of a symbol where that adds no operations. Here they are
/// always merged, and the result is compared with code motion alone, by the operations of the kernels
/// that both make: an increase that the step would look for ahead shows there.
///
/// # Errors
/// A step that is refused, or an integer program that the solver gives up.
///
/// # Source
/// Luporini et al. 2017, §3.2.2, Algorithm 1; the comments name its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharingElimination {}

impl fmt::Display for SharingElimination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sharing eliminated")
    }
}

impl Arguments for SharingElimination {
    const NAME: &'static str = "sharing_elimination";
    const SUMMARY: &'static str = "Fewer operations by expansion, factorisation and code motion.";
}

impl Combinator for SharingElimination {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        eliminate_all(on.schedule())?;
        on.go_on(then)
    }

    fn decisions(&self, form: &dyn CellKernel) -> Result<Vec<String>, MappingError> {
        let (_, _, decisions) = eliminate_sharing(form.kernel())?;
        Ok(decisions.iter().map(ToString::to_string).collect())
    }
}

/// [`SharingElimination`] alone: the kernel, the recipe, and what was decided for each update.
///
/// # Errors
/// As [`SharingElimination`].
pub fn eliminate_sharing(kernel: &Kernel) -> Result<(Kernel, Recipe, Vec<SharingDecision>), MappingError> {
    let (decisions, kernel, recipe) = decided(kernel, eliminate_all)?;
    Ok((kernel, recipe, decisions))
}

/// The steps; returns what was decided for each update.
pub(super) fn eliminate_all(s: &mut Schedule) -> Result<Vec<SharingDecision>, Stopped> {
    let mut decisions = Vec::new();
    let adds: Vec<String> = s
        .kernel()
        .insns
        .values()
        .filter(|i| i.update_op() == Some(UpdateOp::Add) && i.callee.is_none())
        .map(|i| i.name.clone())
        .collect();
    let before = s.recipe().steps.len();
    for insn in adds {
        decisions.extend(eliminate(s, &insn)?);
    }
    // nothing has moved where there is no step
    if s.recipe().steps.len() > before {
        share_moved(s)?;
    }
    Ok(decisions)
}

/// Computes equal parts of what has moved once, where that takes operations away. Operands of products
/// and of sums are in order there, so that what is equal up to associativity is written alike.
fn share_moved(s: &mut Schedule) -> Result<(), TransformError> {
    let mut tried = s.clone();
    let shared = tried.attempt(EliminateCommonSubexpressions::default())?;
    if shared.is_some() && operations(&tried) < operations(s) {
        *s = tried;
    }
    Ok(())
}

/// The fewest symbols such that each of some products has one of them.
pub(super) fn fewest_symbols(pairs: &BTreeSet<(String, String)>) -> Result<usize, Stopped> {
    let symbols: BTreeSet<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    let number: BTreeMap<&String, usize> = symbols.iter().enumerate().map(|(k, of)| (*of, k)).collect();
    let products = pairs.iter().map(|(a, b)| (number[a], number[b])).collect();
    let graph = SharingGraph { symbols: symbols.iter().map(|s| (*s).clone()).collect(), products };
    Ok(graph.factorised()?.len())
}

/// What a plan says of an update.
#[derive(Clone, Default)]
struct Plan {
    whole: Vec<String>,
    expanded: Vec<String>,
    /// Sums that are multiplied out, as factors of products.
    opened: Vec<String>,
    graph: SharingGraph,
    factorised: Vec<String>,
    by: Vec<String>,
}

/// Applies to one update what takes operations away, and says what was decided; none where its value
/// has no products of symbols, and nothing takes operations away.
fn eliminate(s: &mut Schedule, insn: &str) -> Result<Option<SharingDecision>, Stopped> {
    let plan = plan(s.kernel(), insn)?;
    let stays = (!plan.graph.products.is_empty()).then(|| plan.clone());
    let mut before = None;
    let mut best: Option<(u64, Schedule, Plan)> = None;
    // by the program, by code motion alone, and, without products of symbols, by common factors
    let mut plans = vec![plan, Plan::default()];
    if stays.is_none() {
        plans.push(Plan { factorised: shared_symbols(s.kernel(), insn), ..Plan::default() });
    }
    for plan in plans {
        let mut tried = s.clone();
        if !plan.opened.is_empty() {
            tried.make(ExpandProducts::new(insn).with_sums(&plan.opened))?;
        }
        if !plan.by.is_empty() {
            tried.make(FactoriseSum::new(insn, &plan.by))?;
        }
        if plan.graph.products.is_empty() {
            factorise(&mut tried, insn, &plan.factorised)?;
        }
        move_out(&mut tried, insn)?;
        // another order of the operands alone takes nothing away
        if tried.recipe().steps.len() <= s.recipe().steps.len() + 1 {
            continue;
        }
        let after = operations(&tried);
        let before = *before.get_or_insert_with(|| operations(s));
        let least = best.as_ref().map_or(before, |(least, _, _)| *least);
        if after < least {
            best = Some((after, tried, plan));
        }
    }
    let before = before.unwrap_or_else(|| operations(s));
    let (after, plan) = match best {
        Some((after, tried, plan)) => {
            *s = tried;
            (after, plan)
        }
        None => match stays {
            Some(plan) => (before, plan),
            None => return Ok(None),
        },
    };
    Ok(Some(SharingDecision {
        insn: insn.to_owned(),
        whole: plan.whole,
        expanded: plan.expanded,
        graph: [plan.graph.symbols.len(), plan.graph.products.len()],
        factorised: plan.factorised,
        operations: [before, after],
    }))
}

/// Steps 1 to 5: which operands stay whole, and which symbols are factorised.
fn plan(kernel: &Kernel, insn: &str) -> Result<Plan, StrategyError> {
    let mut plan = Plan::default();
    let Some(nest) = Nest::of(kernel, insn) else { return Ok(plan) };
    let linear = nest.linear();
    if linear.len() < 2 {
        return Ok(plan); // no products of symbols: code motion and its factorisation are all there is
    }
    let opened = RefCell::new(BTreeSet::new());
    let note = |e: &Expr, opens: bool| {
        if opens {
            opened.borrow_mut().insert(nest.text(e));
        }
        opens
    };
    let mixed = |e: &Expr| nest.among(&linear, e).len() > 1;
    // step 1: operands that share symbols, and whether there are fewer of them than symbols
    let mut atoms = Atoms::default();
    let Ok(terms) = atoms.terms(kernel, nest.value(), &|e| note(e, mixed(e))) else { return Ok(plan) };
    for (operands, symbols) in partitions(&nest, &linear, &atoms, &terms) {
        let texts = operands.iter().map(|a| nest.text(atoms.get(*a)));
        match operands.len() <= symbols {
            true => plan.whole.extend(texts.filter(|_| symbols > 1)),
            false => plan.expanded.extend(texts),
        }
    }
    // steps 3 and 4: instances of a symbol are one vertex, as collecting them never adds operations
    let opens = |e: &Expr| note(e, mixed(e) || plan.expanded.contains(&nest.text(e)));
    let mut atoms = Atoms::default();
    let Ok(terms) = atoms.terms(kernel, nest.value(), &opens) else { return Ok(plan) };
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    for product in terms.keys() {
        let symbols = product.iter().filter(|f| !nest.among(&linear, atoms.get(f.atom)).is_empty());
        let mut pair = Vec::new();
        for factor in symbols {
            let next = numbers.len();
            let number = *numbers.entry(factor.atom).or_insert(next);
            if number == next {
                plan.graph.symbols.push(nest.text(atoms.get(factor.atom)));
            }
            pair.push(number);
        }
        if let [first, second] = pair[..] {
            plan.graph.products.insert((first.min(second), first.max(second)));
        }
    }
    // step 5
    let chosen = plan.graph.factorised()?;
    let mut chosen: Vec<usize> = chosen.into_iter().collect();
    chosen.sort_by_key(|symbol| std::cmp::Reverse(plan.graph.degree(*symbol)));
    let mut left: Vec<Vec<usize>> =
        terms.keys().map(|p| p.iter().filter_map(|f| numbers.get(&f.atom).copied()).collect()).collect();
    for symbol in &chosen {
        if left.iter().filter(|term| term.contains(symbol)).count() >= 2 {
            plan.by.push(plan.graph.symbols[*symbol].clone());
            left.retain(|term| !term.contains(symbol));
        }
    }
    plan.factorised = chosen.iter().map(|symbol| plan.graph.symbols[*symbol].clone()).collect();
    plan.opened = opened.into_inner().into_iter().collect();
    Ok(plan)
}

/// Operands that depend on one of the loops, in sets that share symbols, each with its number of
/// symbols.
fn partitions(nest: &Nest<'_>, linear: &[usize], atoms: &Atoms, terms: &Sum) -> Vec<(Vec<usize>, usize)> {
    let operands: BTreeSet<usize> = terms.keys().flatten().map(|f| f.atom).collect();
    let mut sets: Vec<(Vec<usize>, BTreeSet<String>)> = Vec::new();
    for operand in operands.into_iter().filter(|a| nest.among(linear, atoms.get(*a)).len() == 1) {
        let mut of_operand = Atoms::default();
        let Ok(sum) = of_operand.expand(nest.kernel, atoms.get(operand)) else { continue };
        let symbols = sum.keys().flatten().map(|f| of_operand.get(f.atom));
        let symbols = symbols.filter(|e| !nest.among(linear, e).is_empty()).map(|e| nest.text(e));
        let mut joined = (vec![operand], symbols.collect::<BTreeSet<_>>());
        let (with, without): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|(_, known)| !known.is_disjoint(&joined.1));
        for (operands, symbols) in with {
            joined.0.extend(operands);
            joined.1.extend(symbols);
        }
        sets = without;
        sets.push(joined);
    }
    sets.into_iter().map(|(operands, symbols)| (operands, symbols.len())).collect()
}

/// Step 6: moves what does not depend on a loop out of it, and goes on with what has moved.
fn move_out(s: &mut Schedule, insn: &str) -> Result<(), TransformError> {
    s.attempt(Reassociate::new(insn))?; // refused where it is in order, or of another type
    let mut stays: Vec<Expr> = Vec::new();
    loop {
        let Some(nest) = Nest::of(s.kernel(), insn) else { return Ok(()) };
        let movable = nest.movable().into_iter().find(|(e, _)| !stays.contains(e));
        let Some((value, at)) = movable else { return Ok(()) };
        let text = nest.text(&value);
        let params: Vec<&str> = (0..nest.loops.len())
            .filter(|place| {
                let mut mentions = false;
                value.for_each(&mut |e| mentions |= *e == Expr::Iname(nest.loops[*place]));
                mentions
            })
            .map(|place| nest.loop_name(place))
            .collect();
        let around = at.checked_sub(1).map(|place| nest.loop_name(place).to_owned());
        let name = s.kernel().fresh_name("shared");
        let rule = s.kernel().fresh_name(&format!("{name}_value"));
        let extract = ExtractRule {
            insns: Some(Selection::Insn(insn.to_owned())),
            ..ExtractRule::new(&rule, params, &text)
        };
        let precompute = match around {
            Some(at) => PrecomputeRule::new(&rule, at, AddressSpace::Private),
            None => PrecomputeRule::whole(&rule, AddressSpace::Private),
        };
        let mut tried = s.clone();
        let done = tried.make(extract).and_then(|_| {
            tried.make(precompute.into_temporary(&name))?;
            tried.make(ExpandRule::new(&rule))
        });
        let writer = tried.kernel().insns.values().find(|i| tried.kernel().vars[i.lhs.var].name == name);
        match (done, writer.map(|i| i.name.clone())) {
            (Ok(_), Some(writer)) => {
                factorise_moved(&mut tried, &writer)?;
                *s = tried;
            }
            // an operand is written in between, or extents are no constants
            (Ok(_), None) => stays.push(value),
            (Err(error), _) if error.is_misfit() => stays.push(value),
            (Err(error), _) => return Err(error),
        }
    }
}

/// Step 2: factorises what has moved by the symbols of its innermost loop, if that takes operations
/// away (strategy 2), and moves out what it can either way (strategy 1).
fn factorise_moved(s: &mut Schedule, insn: &str) -> Result<(), TransformError> {
    let mut other = s.clone();
    move_out(s, insn)?;
    other.attempt(ExpandProducts::new(insn))?; // refused where there is no sum to multiply out
    let symbols = shared_symbols(other.kernel(), insn);
    factorise(&mut other, insn, &symbols)?;
    move_out(&mut other, insn)?;
    if operations(&other) < operations(s) {
        *s = other;
    }
    Ok(())
}

/// Factorises a sum by one factor after the other.
fn factorise(s: &mut Schedule, insn: &str, factors: &[String]) -> Result<(), TransformError> {
    for factor in factors {
        s.attempt(FactoriseSum::new(insn, [factor]))?; // refused where another took its terms
    }
    Ok(())
}

/// Factors that several terms have, those of the innermost loop first.
fn shared_symbols(kernel: &Kernel, insn: &str) -> Vec<String> {
    let Some(nest) = Nest::of(kernel, insn) else { return Vec::new() };
    let mut atoms = Atoms::default();
    let Ok(terms) = atoms.terms(kernel, nest.value(), &|_| false) else { return Vec::new() };
    let all: BTreeSet<usize> = terms.keys().flatten().filter(|f| !f.divides).map(|f| f.atom).collect();
    let mut shared: Vec<(usize, usize, usize)> = Vec::new();
    for atom in all {
        let count = terms.keys().filter(|p| p.iter().any(|f| f.atom == atom && !f.divides)).count();
        let depth = nest.depends(atoms.get(atom)).into_iter().max().map_or(0, |place| place + 1);
        if count > 1 {
            shared.push((depth, count, atom));
        }
    }
    shared.sort_by_key(|(depth, count, atom)| (std::cmp::Reverse((*depth, *count)), *atom));
    shared.into_iter().map(|(_, _, atom)| nest.text(atoms.get(atom))).collect()
}

/// Operations of a kernel whose parameters are [`TYPICAL`]; as many as there can be where they
/// cannot be counted.
fn operations(s: &Schedule) -> u64 {
    let params = s.kernel().vars.values().filter(|v| v.kind == VarKind::Param);
    let params: BTreeMap<String, i64> = params.map(|v| (v.name.clone(), TYPICAL)).collect();
    s.analysis().statistics(&params).map_or(u64::MAX, |counted| counted.flops())
}
