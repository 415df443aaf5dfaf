//! The monomials of what a quadrature loop sums.
//!
//! A monomial is a sum of products of (derivatives of) basis functions, a geometry, and functions that
//! the loop evaluates: the terms that have the same tables, up to those that other terms join, and the
//! same functions (Luporini et al. 2017, §2.1).

use crate::proofs::separable::{Changing, Entry, Term, axis_extents, entry_of, separate};
use kingpost_ir::{Expr, InameId, InsnId, Kernel, UpdateOp, VarId};
use kingpost_steps::lookup;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Terms of a loop with the same tables and functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monomial {
    /// The loop over points.
    pub iname: String,
    /// The tables of test and trial functions.
    pub tables: Vec<String>,
    /// The functions that the loop evaluates at its points and that multiply them, with repetition.
    pub functions: Vec<String>,
    /// Basis functions of all these functions, each once; none if something else changes with the
    /// point.
    pub basis: Option<u64>,
    /// Points.
    pub points: u64,
    /// Elements of the results that it adds to, in all updates.
    pub elements: u64,
    /// Elements times different products of tables, in all updates.
    pub products: u64,
    /// Pairs of a test and a trial symbol that are multiplied, of the update that has most of them.
    pub pairs: BTreeSet<(String, String)>,
}

impl Monomial {
    /// The increase factor `ι`: combinations with repetition of as many basis functions as there are
    /// functions; the largest number where there are more.
    pub fn increase(&self) -> u64 {
        let Some(n) = self.basis.filter(|_| !self.functions.is_empty()) else {
            return if self.functions.is_empty() && self.basis.is_some() { 1 } else { u64::MAX };
        };
        // C(n + k - 1, k), exact in each step
        let mut all = 1_u64;
        for k in 1..=self.functions.len() as u64 {
            let Some(next) = all.checked_mul(n + k - 1) else { return u64::MAX };
            all = next / k;
        }
        all
    }
}

/// The different products of entries that each update has of a monomial.
type Products = BTreeMap<InsnId, BTreeSet<Vec<Entry>>>;

/// The tables, functions and basis of a monomial.
type Key = (Vec<String>, Vec<String>, Option<u64>);

/// The monomials of the loop `iname`, in the order of their first terms; none where what it adds is no
/// sum of products of table entries and factors.
pub fn monomials(kernel: &Kernel, iname: &str) -> Vec<Monomial> {
    let Ok(id) = lookup::tree_loop(kernel, iname) else { return Vec::new() };
    let Ok(separated) = separate(kernel, id, Changing::Scalars) else { return Vec::new() };
    let extents = axis_extents(kernel);
    let Some(points) = extents.get(&id).map(|n| *n as u64) else { return Vec::new() };
    let sets = joined(separated.updates.iter().flat_map(|(_, terms)| terms));
    let mut found: Vec<(Monomial, Products)> = Vec::new();
    // there may be thousands of each: places are looked up, and factors looked at once
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut factors: HashMap<(usize, bool), Varying> = HashMap::new();
    let schedule = kernel.schedule();
    for (insn, terms) in &separated.updates {
        for term in terms.iter().filter(|t| !t.entries.is_empty()) {
            let set = sets.iter().find(|set| set.contains(&term.entries[0].0));
            let tables: Vec<String> =
                set.into_iter().flatten().map(|v| kernel.vars[*v].name.clone()).collect();
            let mut functions = Functions::default();
            for factor in &term.varying {
                let (atom, divides) = (separated.atoms.get(factor.atom), factor.divides);
                let of = || Varying::of(kernel, (id, &schedule), atom, divides, &extents);
                functions.add(factors.entry((factor.atom, divides)).or_insert_with(of));
            }
            let basis = functions.is_polynomial.then(|| functions.columns.values().sum());
            let key = (tables, functions.names, basis);
            let place = places.get(&key).copied().unwrap_or_else(|| {
                let (tables, functions, basis) = key.clone();
                let (iname, pairs) = (iname.to_owned(), BTreeSet::new());
                let (elements, products) = (0, 0);
                let monomial =
                    Monomial { iname, tables, functions, basis, points, elements, products, pairs };
                found.push((monomial, BTreeMap::new()));
                places.insert(key, found.len() - 1);
                found.len() - 1
            });
            found[place].1.entry(*insn).or_default().insert(term.entries.clone());
        }
    }
    found.into_iter().map(|(monomial, of)| counted(kernel, id, monomial, of, &extents)).collect()
}

/// Sets of tables that terms have in common.
pub(crate) fn joined<'t>(terms: impl Iterator<Item = &'t Term>) -> Vec<BTreeSet<VarId>> {
    let mut sets: Vec<BTreeSet<VarId>> = Vec::new();
    for term in terms {
        let mut joined: BTreeSet<VarId> = term.entries.iter().map(|(var, _)| *var).collect();
        let (with, without): (Vec<_>, Vec<_>) = sets.into_iter().partition(|of| !of.is_disjoint(&joined));
        joined.extend(with.into_iter().flatten());
        sets = without;
        sets.extend((!joined.is_empty()).then_some(joined));
    }
    sets
}

fn counted(
    kernel: &Kernel,
    iname: InameId,
    mut monomial: Monomial,
    of: Products,
    extents: &BTreeMap<InameId, usize>,
) -> Monomial {
    let schedule = kernel.schedule();
    for (insn, products) in of {
        let around = schedule.iter().find(|(i, _)| *i == insn).map_or(&[][..], |(_, l)| l.as_slice());
        let inside = around.iter().skip_while(|l| **l != iname).skip(1);
        let elements: u64 = inside.map(|l| extents.get(l).map_or(1, |n| *n as u64)).product();
        monomial.elements += elements;
        // entries with their axes exchanged have one table
        let kinds: BTreeSet<Vec<VarId>> =
            products.iter().map(|entries| entries.iter().map(|(var, _)| *var).collect()).collect();
        monomial.products += elements * kinds.len() as u64;
        let pair = |entries: &Vec<Entry>| match entries.as_slice() {
            [a, b] => {
                let mut both = [a, b].map(|(var, slots)| (slots.clone(), &kernel.vars[*var].name));
                both.sort();
                let [a, b] = both.map(|(slots, name)| format!("{name}{slots:?}"));
                Some((a, b))
            }
            _ => None,
        };
        let pairs: BTreeSet<(String, String)> = products.iter().filter_map(pair).collect();
        if pairs.len() > monomial.pairs.len() {
            monomial.pairs = pairs;
        }
    }
    monomial
}

/// The functions among the factors that change with a point.
struct Functions {
    names: Vec<String>,
    /// The tables by which they are evaluated, and the columns that are read.
    columns: BTreeMap<VarId, u64>,
    is_polynomial: bool,
}

impl Default for Functions {
    fn default() -> Self {
        Self { names: Vec::new(), columns: BTreeMap::new(), is_polynomial: true }
    }
}

impl Functions {
    fn add(&mut self, factor: &Varying) {
        match factor {
            Varying::Weight => {}
            Varying::Other(name) => {
                self.names.extend(name.clone());
                self.is_polynomial = false;
            }
            Varying::Function(name, columns) => {
                self.names.push(name.clone());
                self.columns.extend(columns.iter().copied());
            }
        }
    }
}

/// A factor that changes with a point.
enum Varying {
    /// An entry of a table of the loop alone.
    Weight,
    /// A scalar that a sum over columns of tables gives, and these.
    Function(String, Vec<(VarId, u64)>),
    /// Another scalar, or neither.
    Other(Option<String>),
}

impl Varying {
    fn of(
        kernel: &Kernel,
        (iname, schedule): (InameId, &[(InsnId, Vec<InameId>)]),
        atom: &Expr,
        divides: bool,
        extents: &BTreeMap<InameId, usize>,
    ) -> Self {
        if entry_of(kernel, iname, atom).is_some() && !divides {
            return Self::Weight;
        }
        let Expr::Load(access) = atom else { return Self::Other(None) };
        let name = kernel.vars[access.var].name.clone();
        let mut adds = schedule.iter().filter(|(i, _)| {
            let insn = &kernel.insns[*i];
            insn.lhs.var == access.var && insn.update_op() == Some(UpdateOp::Add)
        });
        let one = adds.next().filter(|_| adds.next().is_none() && !divides);
        let columns = one.map(|(i, loops)| {
            let of = kernel.insns[*i].reads().into_iter();
            let of = of.filter_map(|a| entry_of(kernel, iname, &Expr::Load(a.clone())));
            let inner = loops.iter().skip_while(|l| **l != iname).skip(1);
            let columns: u64 = inner.map(|l| extents.get(l).map_or(1, |n| *n as u64)).product();
            of.map(|(table, _)| (table, columns)).collect::<Vec<_>>()
        });
        match columns.filter(|of| !of.is_empty()) {
            Some(of) => Self::Function(name, of),
            None => Self::Other(Some(name)),
        }
    }
}
