//! The row of a test function whose values are known when the kernel is written: what it multiplies
//! is summed up before what depends on the trial function is multiplied.

use super::MatrixResult;
use crate::tabulated::{
    Arithmetic, Integral, MathFunction, Node, Table, TabulatedForm, Term, TermArgument, Values,
};
use std::collections::BTreeMap;

/// The test function of the owners of rows, where all are at vertices and cells are turned to them.
const OWN: usize = 0;

/// Terms that a sum is multiplied out to, at most: nine of Poisson's equation in space.
const MAX_TERMS: usize = 256;

/// The integrals with one term for all test functions of a trial function whose values are the same
/// at all points, where owners are known to be at vertices. Of derivatives along reference axes,
/// `sum_k t_k (sum_i K_ki K_li)` is `sum_i (sum_k t_k K_ki) K_li` then, whose inner sums all trial
/// functions share.
pub(super) fn summed(form: &TabulatedForm, integrals: &[&Integral], matrix: MatrixResult) -> Vec<Integral> {
    let are_known = |output: usize| {
        let test = form.outputs[output].spaces.first();
        test.is_some_and(|test| form.spaces[*test].columns == form.cell.n_vertices())
    };
    let of = |integral: &&Integral| {
        let is_row = |term: &Term| term.arguments.len() == 2 && are_known(term.output);
        match matrix.is_turned() && integral.terms.iter().all(is_row) {
            true => Summed::new(integral).integral,
            false => Integral::clone(integral),
        }
    };
    integrals.iter().map(of).collect()
}

/// What terms share that become one: the output, the test function without its derivative, the
/// trial function.
type Key = (usize, TermArgument, TermArgument);

/// Products of nodes, in order, with what they are multiplied by.
type Sum = BTreeMap<Vec<usize>, f64>;

/// An integral whose terms are summed.
struct Summed {
    integral: Integral,
}

impl Summed {
    fn new(integral: &Integral) -> Self {
        let mut this = Self { integral: integral.clone() };
        let mut groups: Vec<(Key, Vec<usize>)> = Vec::new();
        for (place, term) in integral.terms.iter().enumerate() {
            let (test, trial) = (&term.arguments[0], &term.arguments[1]);
            if !integral.tables[test.table].is_constant() {
                continue;
            }
            let key = (term.output, TermArgument { table: 0, ..test.clone() }, trial.clone());
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, places)) => places.push(place),
                None => groups.push((key, vec![place])),
            }
        }
        let mut gone = Vec::new();
        for (_, places) in groups.into_iter().filter(|(_, places)| places.len() > 1) {
            if let Some(term) = this.sum_of(&places) {
                gone.extend(places);
                this.integral.terms.push(term);
            }
        }
        let mut place = 0;
        this.integral.terms.retain(|_| {
            place += 1;
            !gone.contains(&(place - 1))
        });
        this
    }

    /// The term that terms are together; none where there are too many products.
    fn sum_of(&mut self, places: &[usize]) -> Option<Term> {
        let mut sum = Sum::new();
        for place in places {
            let Term { factor, arguments, .. } = &self.integral.terms[*place];
            let known = self.integral.tables[arguments[0].table].first_row()[OWN];
            add(&mut sum, &self.expanded(*factor, false)?, known);
        }
        let (scale, node) = self.factored(sum);
        let factor = self.scaled(scale, node);
        let first = &self.integral.terms[*places.first()?];
        let (output, mut arguments) = (first.output, first.arguments.clone());
        arguments[0].table = self.ones(self.integral.tables[arguments[0].table].dofs());
        Some(Term { output, factor, arguments })
    }

    /// The table of a test function that is one.
    fn ones(&mut self, dofs: usize) -> usize {
        let name = "known_row";
        let tables = &mut self.integral.tables;
        let known = tables.iter().position(|table| table.name == name && table.dofs() == dofs);
        known.unwrap_or_else(|| {
            let values = Values::new(vec![1, dofs], vec![1.0; dofs]);
            tables.extend(values.map(|values| Table { name: name.into(), permutations: None, values }));
            tables.len() - 1
        })
    }

    /// A node as a sum of products. Sums that have a name, or are part of a product that has one,
    /// stay whole.
    fn expanded(&self, node: usize, in_named: bool) -> Option<Sum> {
        let is_named = self.integral.names.contains_key(&node);
        let part = |of: usize| self.expanded(of, in_named || is_named);
        let whole = || Sum::from([(vec![node], 1.0)]);
        let sum = match &self.integral.nodes[node] {
            Node::Literal(value) => Sum::from([(Vec::new(), *value)]),
            Node::Negate(of) => {
                let mut sum = Sum::new();
                add(&mut sum, &part(*of)?, -1.0);
                sum
            }
            Node::Arithmetic(op @ (Arithmetic::Add | Arithmetic::Subtract), a, b)
                if !in_named && !is_named =>
            {
                let mut sum = part(*a)?;
                add(&mut sum, &part(*b)?, if *op == Arithmetic::Add { 1.0 } else { -1.0 });
                sum
            }
            Node::Arithmetic(Arithmetic::Multiply, a, b) => product(&part(*a)?, &part(*b)?),
            Node::Constant(..)
            | Node::Evaluation(_)
            | Node::Weight
            | Node::Table(..)
            | Node::Arithmetic(..)
            | Node::Math(..)
            | Node::Bessel(..)
            | Node::Compare(..)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::Select(..) => whole(),
        };
        (sum.len() <= MAX_TERMS).then_some(sum)
    }

    /// A number and the node that it is multiplied by, which are a sum: what all products share
    /// first, then what most of them share.
    fn factored(&mut self, sum: Sum) -> (f64, Option<usize>) {
        let Some((first, _)) = sum.first_key_value() else { return (0.0, None) };
        let all = |node: usize| sum.keys().map(|p| count(p, node)).min().unwrap_or(0); // there is a first
        let shared: Vec<usize> = distinct(first).into_iter().flat_map(|node| vec![node; all(node)]).collect();
        if sum.len() == 1 {
            let scale = sum.values().sum();
            return (scale, self.product(&shared));
        }
        if !shared.is_empty() {
            let (scale, rest) = self.factored(divided(sum, &shared));
            let product = self.product(&shared);
            return (scale, self.times(product, rest));
        }
        let mut nodes: Vec<usize> = sum.keys().flat_map(|product| distinct(product)).collect();
        nodes.sort_unstable();
        let times = |node: usize| sum.keys().filter(|product| product.contains(&node)).count();
        // the first of those that occur most
        let most = nodes.iter().copied().max_by_key(|node| (times(*node), std::cmp::Reverse(*node)));
        let parts: Vec<Sum> = match most.filter(|node| times(*node) > 1) {
            Some(node) => {
                let (with, without) = sum.into_iter().partition(|(product, _)| product.contains(&node));
                vec![with, without]
            }
            None => sum.into_iter().map(|term| Sum::from([term])).collect(),
        };
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let parts: Vec<(f64, Option<usize>)> = parts.map(|part| self.factored(part)).collect();
        self.sum(&parts)
    }

    /// The sum of nodes times numbers, which are taken out where they differ by a sign at most.
    fn sum(&mut self, parts: &[(f64, Option<usize>)]) -> (f64, Option<usize>) {
        let scale = parts.first().map_or(0.0, |(scale, _)| *scale);
        let is_common = parts.iter().all(|(other, _)| other.abs() == scale.abs());
        let mut sum = None;
        for (own, node) in parts {
            let (op, node) = match is_common {
                true if *own == scale => (Arithmetic::Add, self.scaled(1.0, *node)),
                true => (Arithmetic::Subtract, self.scaled(1.0, *node)),
                false => (Arithmetic::Add, self.scaled(*own, *node)),
            };
            sum = Some(match sum {
                None => node,
                Some(before) => self.node(Node::Arithmetic(op, before, node)),
            });
        }
        (if is_common { scale } else { 1.0 }, sum)
    }

    /// The product of nodes: what is known of a cell first.
    fn product(&mut self, nodes: &[usize]) -> Option<usize> {
        let nodes = &self.with_reciprocal_measures(nodes)[..];
        let is_of_point = |node: &usize| {
            matches!(self.integral.nodes[*node], Node::Weight | Node::Evaluation(_) | Node::Table(..))
        };
        let (of_points, of_cell): (Vec<usize>, Vec<usize>) = nodes.iter().partition(|node| is_of_point(node));
        of_cell.into_iter().chain(of_points).fold(None, |product, node| self.times(product, Some(node)))
    }

    /// The nodes of a product with `abs(1/d)` for `abs(d)*(1/d)*(1/d)`.
    fn with_reciprocal_measures(&mut self, nodes: &[usize]) -> Vec<usize> {
        let mut nodes = nodes.to_vec();
        let is_one = |node: usize| self.integral.nodes[node] == Node::Literal(1.0);
        let found = nodes.iter().enumerate().find_map(|(at, node)| {
            let Node::Math(MathFunction::Abs, of) = &self.integral.nodes[*node] else { return None };
            let is_reciprocal = |other: &usize| {
                matches!(self.integral.nodes[*other], Node::Arithmetic(Arithmetic::Divide, one, d)
                    if d == of[0] && is_one(one))
            };
            let reciprocals: Vec<usize> =
                (0..nodes.len()).filter(|k| is_reciprocal(&nodes[*k])).take(2).collect();
            <[usize; 2]>::try_from(reciprocals).ok().map(|[a, b]| [at, a, b])
        });
        if let Some([at, a, b]) = found {
            let reciprocal = nodes[a];
            nodes[at] = self.node(Node::Math(MathFunction::Abs, vec![reciprocal]));
            nodes.remove(b.max(a));
            nodes.remove(b.min(a));
        }
        nodes
    }

    fn times(&mut self, a: Option<usize>, b: Option<usize>) -> Option<usize> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.node(Node::Arithmetic(Arithmetic::Multiply, a, b))),
            (one, other) => one.or(other),
        }
    }

    fn scaled(&mut self, scale: f64, node: Option<usize>) -> usize {
        match node {
            Some(node) if scale == 1.0 => node,
            Some(node) if scale == -1.0 => self.node(Node::Negate(node)),
            Some(node) => {
                let scale = self.node(Node::Literal(scale));
                self.node(Node::Arithmetic(Arithmetic::Multiply, scale, node))
            }
            None => self.node(Node::Literal(scale)),
        }
    }

    /// A node, which is new unless the graph of the kernel finds it equal to another one.
    fn node(&mut self, node: Node) -> usize {
        self.integral.nodes.push(node);
        self.integral.nodes.len() - 1
    }
}

/// Adds a sum times a number.
fn add(to: &mut Sum, sum: &Sum, scale: f64) {
    for (product, value) in sum {
        *to.entry(product.clone()).or_insert(0.0) += scale * value;
    }
    to.retain(|_, value| *value != 0.0);
}

fn product(a: &Sum, b: &Sum) -> Sum {
    let mut product = Sum::new();
    for (left, value) in a {
        let times = |(right, other): (&Vec<usize>, &f64)| {
            let mut nodes = [&left[..], right].concat();
            nodes.sort_unstable();
            (nodes, *other)
        };
        add(&mut product, &b.iter().map(times).collect(), *value);
    }
    product
}

fn count(product: &[usize], node: usize) -> usize {
    product.iter().filter(|other| **other == node).count()
}

/// The nodes of a product, once each.
fn distinct(product: &[usize]) -> Vec<usize> {
    let mut nodes = product.to_vec();
    nodes.dedup(); // they are in order
    nodes
}

/// A sum whose products all have some nodes, without these.
fn divided(sum: Sum, shared: &[usize]) -> Sum {
    let without = |(mut product, value): (Vec<usize>, f64)| {
        for node in shared {
            if let Some(at) = product.iter().position(|other| other == node) {
                product.remove(at);
            }
        }
        (product, value)
    };
    sum.into_iter().map(without).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::form::{Form, FunctionSpace, constant, div, dx, grad, inner, test, trial};
    use crate::lowering::{LoweringOptions, OwnerCells, RowOwners, graph::Graph, tabulate};
    use crate::tabulated::MathFunction;
    use kingpost_fem::element::CellShape;
    use std::collections::BTreeSet;

    /// The values of all nodes, of operands that differ.
    fn values(integral: &Integral) -> Vec<f64> {
        let mut values: Vec<f64> = Vec::new();
        for node in &integral.nodes {
            let value = match node {
                Node::Literal(value) => *value,
                Node::Constant(k, c) => 1.3 + *k as f64 - 0.7 * *c as f64,
                Node::Evaluation(k) => (1.0 + 2.3 * *k as f64).sin(),
                Node::Weight => 0.37,
                Node::Negate(a) => -values[*a],
                Node::Math(MathFunction::Abs, of) => values[of[0]].abs(),
                Node::Arithmetic(Arithmetic::Add, a, b) => values[*a] + values[*b],
                Node::Arithmetic(Arithmetic::Subtract, a, b) => values[*a] - values[*b],
                Node::Arithmetic(Arithmetic::Multiply, a, b) => values[*a] * values[*b],
                Node::Arithmetic(Arithmetic::Divide, a, b) => values[*a] / values[*b],
                other => unreachable!("{other:?}"),
            };
            values.push(value);
        }
        values
    }

    /// What the trial functions of each component and derivative are multiplied by, in the rows of
    /// the owner.
    fn rows(integral: &Integral) -> BTreeMap<(usize, TermArgument), f64> {
        let values = values(integral);
        let mut rows = BTreeMap::new();
        for Term { factor, arguments, .. } in &integral.terms {
            let test = integral.tables[arguments[0].table].first_row()[OWN];
            *rows.entry((arguments[0].component, arguments[1].clone())).or_insert(0.0) +=
                test * values[*factor];
        }
        rows
    }

    /// Operations that the terms need.
    fn operations(form: &TabulatedForm, integral: &Integral) -> usize {
        let graph = Graph::new(form, &[integral]);
        let roots: BTreeSet<usize> = integral.terms.iter().map(|term| graph.places[0][term.factor]).collect();
        let below = graph.below(&roots.into_iter().collect::<Vec<_>>());
        below.into_iter().filter(|node| !graph.nodes[*node].operands.is_empty()).count()
    }

    fn check(form: &Form) {
        let form = tabulate(form, &LoweringOptions::new("k")).unwrap();
        let integral = &form.integrals[0];
        let [known] =
            summed(&form, &[integral], MatrixResult::OwnedRows(RowOwners::new(OwnerCells::Strips, 15)))
                .try_into()
                .unwrap();
        let (expected, found) = (rows(integral), rows(&known));
        assert!(expected.keys().eq(found.keys()));
        let largest = expected.values().fold(0.0_f64, |most, x| most.max(x.abs()));
        for (key, expected) in expected {
            // sums of some dozens of products
            assert!((found[&key] - expected).abs() <= 1e-13 * largest, "{key:?}: {} {expected}", found[&key]);
        }
        assert!(known.terms.len() < integral.terms.len());
        let (before, after) = (operations(&form, integral), operations(&form, &known));
        assert!(after < before, "{after} of {before} operations");
        let as_it_was = summed(&form, &[integral], MatrixResult::Sparse);
        assert_eq!(as_it_was[0].terms, integral.terms);
    }

    #[test]
    fn rows_that_are_known_are_summed_first() {
        let space = FunctionSpace::scalar(CellShape::Tetrahedron, 1);
        let (u, v) = (trial(&space), test(&space));
        check(&(inner(grad(u), grad(v)) * constant("kappa") * dx()));
        let space = FunctionSpace::vector(CellShape::Triangle, 1);
        let (u, v) = (trial(&space), test(&space));
        let elastic =
            inner(grad(u.clone()), grad(v.clone())) * dx() + div(u) * div(v) * constant("mu") * dx();
        check(&elastic);
    }
}
