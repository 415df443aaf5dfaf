//! What the loops as they were written are in the loops of today.

use crate::data::{Origin, Statement};
use crate::rows::Row;
use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Side, is_symbol};
use kingpost_ir::{Expr, InsnId, Kernel, VarKind};
use kingpost_isl::{Affine, Constraint, FloorDiv, IslError, Map, MapSpace, Set, SetSpace};
use kingpost_primitives::Step;
use kingpost_primitives::primitives::{ReverseIname, SkewIname, SplitIname};
use std::collections::{BTreeMap, BTreeSet};

/// Of each statement, by its name, the loops as written, as expressions of today's.
///
/// A step's own meaning is tried, or loops that only have other names. It counts if isl finds that it
/// maps the instances after the step onto those before it, and these write the same elements; else
/// nothing is said any more.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<String, BTreeMap<String, Affine>>);

impl Origins {
    /// Before any step loops and reductions are what they are.
    pub fn as_written(kernel: &Kernel) -> Self {
        let own = |(id, mut loops): (InsnId, Vec<kingpost_ir::InameId>)| {
            kernel.insns[id].rhs.for_each(&mut |e| {
                if let Expr::Reduce(reduction) = e {
                    loops.extend(&reduction.inames);
                }
            });
            let names = loops.iter().map(|i| kernel.inames[*i].name.clone());
            (kernel.insns[id].name.clone(), names.map(|name| (name.clone(), Affine::name(name))).collect())
        };
        Self(kernel.schedule().into_iter().map(own).collect())
    }

    /// After a step.
    #[must_use]
    pub fn after(&self, step: &Step, before: &Analysis, after: &Analysis) -> Self {
        let meaning = meaning(step, before);
        let statement = |(id, _): (InsnId, Vec<kingpost_ir::InameId>)| {
            let name = &after.expanded().insns[id].name;
            let was = before.expanded().insn(name).and_then(|old| Some((old, self.0.get(name)?)));
            let origin = match was {
                Some((old, origin)) => candidates(&meaning, (before, old), (after, id))
                    .into_iter()
                    // what isl cannot decide is not said
                    .find(|values| {
                        same_elements(values, (before, old), (after, id))
                            && matches!(same_instances(values, (before, old), (after, id)), Ok(true))
                    })
                    .map(|values| origin.iter().map(|(n, e)| (n.clone(), replaced(e, &values))).collect()),
                None => Some(self.adopted(&meaning, &told_by(after, id))),
            };
            (name.clone(), origin.unwrap_or_default()) // nothing is said
        };
        Self(after.expanded().schedule().into_iter().map(statement).collect())
    }

    /// The loops as written of a new statement: what the loops around it are of others.
    fn adopted(&self, meaning: &BTreeMap<String, Affine>, known: &[String]) -> BTreeMap<String, Affine> {
        let mut found = BTreeMap::new();
        for (name, value) in self.0.values().flatten() {
            let value = replaced(value, meaning);
            if is_of(&value, known) {
                found.entry(name.clone()).or_insert(value);
            }
        }
        found
    }

    /// The loops as written that the loops of a statement tell, and parameters, in the order of the former.
    pub fn of(&self, statement: &Statement, params: &[String]) -> Vec<Origin> {
        let loops: Vec<String> = statement.loops.iter().map(|l| l.name.clone()).collect();
        let known = [loops.as_slice(), params].concat();
        let first = |e: &Affine| e.terms.iter().filter_map(|(n, _)| loops.iter().position(|l| l == n)).min();
        let all = self.0.get(&statement.name).into_iter().flatten();
        let mut told: Vec<_> = all.filter(|(_, e)| is_of(e, &known)).collect();
        told.sort_by_key(|(_, e)| first(e));
        told.into_iter().map(|(name, e)| Origin { name: name.clone(), row: Row::of_isl(e) }).collect()
    }
}

/// What a step says of the loops before it.
fn meaning(step: &Step, before: &Analysis) -> BTreeMap<String, Affine> {
    if let Some(SplitIname { iname, factor, outer, inner, .. }) = step.get() {
        let outer = outer.clone().unwrap_or_else(|| format!("{iname}_o"));
        let inner = inner.clone().unwrap_or_else(|| format!("{iname}_i"));
        return [(iname.clone(), Affine::name(inner).plus(*factor, outer))].into();
    }
    if let Some(ReverseIname { iname }) = step.get() {
        let value = before.kernel().iname(iname).and_then(|id| {
            let range = before.kernel().inames[id].domain.as_guarded_range(id)?;
            let last = range.lo.plus(&range.hi).plus_constant(-1);
            before.polyhedral().affine(&last.minus(&kingpost_ir::Affine::iname(id)), Side::Source)
        });
        return value.map(|value| (iname.clone(), value)).into_iter().collect();
    }
    if let Some(SkewIname { iname, outer, factor }) = step.get() {
        return [(iname.clone(), Affine::name(iname).plus(factor.saturating_neg(), outer))].into();
    }
    BTreeMap::new()
}

/// A statement of a kernel.
type At<'a, 'k> = (&'a Analysis<'k>, InsnId);

/// The loops before a step as they may be in those after it.
fn candidates(meaning: &BTreeMap<String, Affine>, was: At, now: At) -> Vec<BTreeMap<String, Affine>> {
    let (old, new) = (names(was.0, was.1), names(now.0, now.1));
    let renamed = old.iter().cloned().zip(new.iter().map(Affine::name)).collect();
    let mut all = vec![meaning.clone()];
    if old.len() == new.len() {
        all.push(renamed);
    }
    let known = told_by(now.0, now.1);
    let told = |values: &BTreeMap<String, Affine>| {
        let value = |name: &String| values.get(name).cloned().unwrap_or_else(|| Affine::name(name));
        old.iter().all(|name| is_of(&value(name), &known))
    };
    all.retain(told);
    all
}

fn names(analysis: &Analysis, insn: InsnId) -> Vec<String> {
    let kernel = analysis.expanded();
    analysis.loops(insn).iter().map(|i| kernel.inames[*i].name.clone()).collect()
}

/// What has a value at an instance of a statement: the loops around it, and parameters.
fn told_by(analysis: &Analysis, insn: InsnId) -> Vec<String> {
    let params = analysis.kernel().vars.values().filter(|var| var.kind == VarKind::Param);
    names(analysis, insn).into_iter().chain(params.map(|var| var.name.clone())).collect()
}

fn is_of(e: &Affine, known: &[String]) -> bool {
    e.terms.iter().all(|(name, _)| known.contains(name))
        && e.divs.iter().all(|(div, _)| is_of(&div.numerator, known))
}

/// Whether the instances write the same elements, as far as both indices are sums of loops: a loop that
/// runs backward has the same values.
fn same_elements(values: &BTreeMap<String, Affine>, was: At, now: At) -> bool {
    let index = |(analysis, insn): At| {
        let lhs = &analysis.expanded().insns[insn].lhs;
        let place = |e: &Expr| analysis.polyhedral().affine(&e.as_affine()?, Side::Source);
        let index: Option<Vec<Affine>> = lhs.index.iter().map(place).collect();
        (analysis.expanded().vars[lhs.var].name.clone(), index)
    };
    let ((old_var, Some(old)), (new_var, Some(new))) = (index(was), index(now)) else { return true };
    let differ = |(old, new): (&Affine, &Affine)| {
        // gathers the terms
        let difference = replaced(&replaced(old, values).add_scaled(-1, new), &BTreeMap::new());
        difference.divs.is_empty() && (difference.constant != 0 || !difference.terms.is_empty())
    };
    old_var != new_var || old.len() != new.len() || !old.iter().zip(&new).any(differ)
}

/// Whether the instances after a step are those before it.
fn same_instances(values: &BTreeMap<String, Affine>, was: At, now: At) -> Result<bool, IslError> {
    let (old, new) = (names(was.0, was.1), names(now.0, now.1));
    let symbols = |(analysis, _): At| -> BTreeSet<String> {
        let kernel = analysis.expanded();
        let all = kernel.vars.ids().filter(|v| is_symbol(kernel, *v));
        all.map(|v| kernel.vars[v].name.clone()).collect()
    };
    let params: Vec<String> = symbols(was).union(&symbols(now)).cloned().collect();
    let set = |(analysis, insn): At, dims: &[String]| {
        let (disjuncts, _) = analysis.polyhedral().instances(insn, Side::Source);
        Set::from_disjuncts(&SetSpace::new(dims, &params), &disjuncts)
    };
    let primed: Vec<String> = old.iter().map(|name| format!("{name}'")).collect();
    let equal = |(name, primed): (&String, &String)| {
        let value = values.get(name).cloned().unwrap_or_else(|| Affine::name(name));
        Constraint::zero(value.plus(-1, primed))
    };
    let equal: Vec<_> = old.iter().zip(&primed).map(equal).collect();
    let map = Map::from_constraints(&MapSpace::new(&new, &primed, &params), &equal)?;
    let back: Vec<_> = primed.iter().map(String::as_str).zip(old.iter().map(String::as_str)).collect();
    map.apply(&set(now, &new)?)?.rename(&back)?.is_equal(&set(was, &old)?)
}

/// An expression with values for names, its terms gathered.
fn replaced(e: &Affine, values: &BTreeMap<String, Affine>) -> Affine {
    let mut sum = Affine::constant(e.constant);
    for (name, factor) in &e.terms {
        let value = values.get(name).cloned().unwrap_or_else(|| Affine::name(name));
        sum = sum.add_scaled(*factor, &value);
    }
    for (div, factor) in &e.divs {
        let numerator = replaced(&div.numerator, values);
        sum.divs.push((FloorDiv { numerator, denominator: div.denominator }, *factor));
    }
    let mut gathered: BTreeMap<String, i64> = BTreeMap::new();
    for (name, factor) in sum.terms {
        let entry = gathered.entry(name).or_default();
        *entry = entry.saturating_add(factor);
    }
    let terms = gathered.into_iter().filter(|(_, factor)| *factor != 0).collect();
    Affine { terms, divs: sum.divs, constant: sum.constant }
}
