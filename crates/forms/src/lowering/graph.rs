//! The nodes of all integrals of a kernel as one graph, in which equal nodes are one node.

use super::entity::side_suffix;
use crate::tabulated::{
    Arithmetic, Bessel, Evaluation, Integral, MathFunction, Node, Relation, Role, Side, Table, TabulatedForm,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a node depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// The cell (or facet) at most.
    Cell,
    /// The quadrature point.
    Point,
}

/// An operation; the operands are kept with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// Bits of a number.
    Literal(u64),
    /// Component of a constant.
    Constant(usize, usize),
    /// An evaluation that is the same at all points, written out.
    CellValue(CellValue),
    /// An evaluation of an integral that differs from facet to facet only, written out.
    FacetValue(usize, usize),
    /// An evaluation of an integral.
    Evaluation(usize, usize),
    /// The weight of an integral.
    Weight(usize),
    /// An entry of a table of an integral.
    Table(usize, usize, Option<Side>),
    Negate,
    Arithmetic(Arithmetic),
    Math(MathFunction),
    Bessel(Bessel, i64),
    Compare(Relation),
    And,
    Or,
    Not,
    Select,
}

/// A sum of local degrees of freedom times numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CellValue {
    pub(super) function: usize,
    pub(super) side: Option<Side>,
    pub(super) component: usize,
    /// Columns with the bits of what they are multiplied by.
    pub(super) terms: Vec<(usize, u64)>,
}

/// A node of a [`Graph`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GraphNode {
    pub(super) op: Op,
    pub(super) operands: Vec<usize>,
}

/// The nodes of some integrals, operands first.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<GraphNode>,
    ids: HashMap<GraphNode, usize>,
    pub(super) level: Vec<Level>,
    /// Names in the kernel.
    pub(super) names: BTreeMap<usize, String>,
    /// For each integral, the node of each of its nodes.
    pub(super) places: Vec<Vec<usize>>,
}

/// Largest whole power that is written as products.
const MAX_POWER: f64 = 16.0;

impl Graph {
    /// The nodes of integrals, each with its own nodes first.
    pub(super) fn new(form: &TabulatedForm, integrals: &[&Integral]) -> Self {
        let mut graph = Self::default();
        for (k, integral) in integrals.iter().enumerate() {
            graph.add(form, k, integral);
        }
        graph
    }

    fn add(&mut self, form: &TabulatedForm, k: usize, integral: &Integral) {
        let mut places: Vec<usize> = Vec::with_capacity(integral.nodes.len());
        for (n, node) in integral.nodes.iter().enumerate() {
            let operands: Vec<usize> = node.operands().into_iter().map(|o| places[o]).collect();
            let id = match node {
                Node::Literal(value) => self.literal(*value),
                Node::Constant(c, component) => {
                    self.insert(Op::Constant(*c, *component), operands, Level::Cell)
                }
                Node::Evaluation(e) => self.evaluation(form, k, *e, integral),
                Node::Weight => self.insert(Op::Weight(k), operands, Level::Point),
                Node::Table(t, side) => self.table(k, *t, *side, &integral.tables[*t]),
                Node::Arithmetic(Arithmetic::Power, ..) => self.power(operands),
                Node::Negate(_) => self.operation(Op::Negate, operands),
                Node::Arithmetic(op, ..) => self.operation(Op::Arithmetic(*op), operands),
                Node::Math(f, _) => self.operation(Op::Math(*f), operands),
                Node::Bessel(kind, order, _) => self.operation(Op::Bessel(*kind, *order), operands),
                Node::Compare(relation, ..) => self.operation(Op::Compare(*relation), operands),
                Node::And(..) => self.operation(Op::And, operands),
                Node::Or(..) => self.operation(Op::Or, operands),
                Node::Not(_) => self.operation(Op::Not, operands),
                Node::Select(..) => self.operation(Op::Select, operands),
            };
            places.push(id);
            if let Some(name) = integral.names.get(&n) {
                self.names.entry(id).or_insert_with(|| name.clone());
            }
        }
        self.places.push(places);
    }

    fn insert(&mut self, op: Op, operands: Vec<usize>, own: Level) -> usize {
        let level = operands.iter().map(|o| self.level[*o]).max().unwrap_or(own).max(own);
        let node = GraphNode { op, operands };
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        self.nodes.push(node.clone());
        self.level.push(level);
        self.ids.insert(node, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn operation(&mut self, op: Op, operands: Vec<usize>) -> usize {
        self.insert(op, operands, Level::Cell)
    }

    fn literal(&mut self, value: f64) -> usize {
        // -0 and 0 are one node.
        let value = if value == 0.0 { 0.0 } else { value };
        self.insert(Op::Literal(value.to_bits()), Vec::new(), Level::Cell)
    }

    /// An entry of a table; a number where all entries are the same.
    fn table(&mut self, k: usize, place: usize, side: Option<Side>, table: &Table) -> usize {
        if table.is_constant() {
            return self.literal(table.first_row()[0]);
        }
        let level = if is_constant_over_points(table) { Level::Cell } else { Level::Point };
        self.insert(Op::Table(k, place, side), Vec::new(), level)
    }

    fn evaluation(&mut self, form: &TabulatedForm, k: usize, place: usize, integral: &Integral) -> usize {
        let e = &integral.evaluations[place];
        let table = &integral.tables[e.table];
        if !is_written_out(form, e, table) {
            return self.insert(Op::Evaluation(k, place), Vec::new(), Level::Point);
        }
        if !table.is_constant() {
            let id = self.insert(Op::FacetValue(k, place), Vec::new(), Level::Cell);
            self.name_evaluation(id, e);
            return id;
        }
        let columns = table.first_row().iter().enumerate().filter(|(_, value)| **value != 0.0);
        let terms: Vec<(usize, u64)> =
            columns.map(|(i, value)| (e.offset + e.stride * i, value.to_bits())).collect();
        if terms.is_empty() {
            return self.literal(0.0);
        }
        let op = CellValue { function: e.function, side: e.side, component: e.component, terms };
        let id = self.insert(Op::CellValue(op), Vec::new(), Level::Cell);
        self.name_evaluation(id, e);
        id
    }

    fn name_evaluation(&mut self, id: usize, e: &Evaluation) {
        if let Some(name) = &e.name {
            let name = format!("{name}{}", side_suffix(e.side));
            self.names.entry(id).or_insert(name);
        }
    }

    /// Small whole powers as products.
    fn power(&mut self, operands: Vec<usize>) -> usize {
        let exponent = match self.nodes[operands[1]].op {
            Op::Literal(bits) => Some(f64::from_bits(bits)),
            _ => None,
        };
        match exponent.filter(|n| n.fract() == 0.0 && n.abs() <= MAX_POWER) {
            None => self.operation(Op::Arithmetic(Arithmetic::Power), operands),
            Some(n) => {
                let product = self.whole_power(operands[0], n.abs() as u32);
                if n >= 0.0 {
                    return product;
                }
                let one = self.literal(1.0);
                self.operation(Op::Arithmetic(Arithmetic::Divide), vec![one, product])
            }
        }
    }

    fn whole_power(&mut self, a: usize, n: u32) -> usize {
        match n {
            0 => self.literal(1.0),
            1 => a,
            _ => {
                let half = self.whole_power(a, n / 2);
                let square = self.operation(Op::Arithmetic(Arithmetic::Multiply), vec![half, half]);
                match n.is_multiple_of(2) {
                    true => square,
                    false => self.operation(Op::Arithmetic(Arithmetic::Multiply), vec![square, a]),
                }
            }
        }
    }

    /// Whether a node is a product with a weight.
    pub(super) fn is_weighted(&self, node: usize) -> bool {
        let GraphNode { op, operands } = &self.nodes[node];
        let is_weight = |operand: &usize| matches!(self.nodes[*operand].op, Op::Weight(_));
        *op == Op::Arithmetic(Arithmetic::Multiply) && operands.iter().any(is_weight)
    }

    /// Whether a node is zero where its products with a weight are, whatever numbers functions have:
    /// nothing else that it is made of divides.
    pub(super) fn vanishes(&self, node: usize) -> bool {
        let GraphNode { op, operands } = &self.nodes[node];
        let of = |k: usize| self.vanishes(operands[k]);
        match op {
            Op::Arithmetic(Arithmetic::Multiply) => {
                let other = |k: usize| of(k) && self.is_polynomial(operands[1 - k]);
                self.is_weighted(node) || other(0) || other(1)
            }
            Op::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => of(0) && of(1),
            Op::Negate => of(0),
            _ => false,
        }
    }

    /// Whether a node is a polynomial of what functions and constants are.
    fn is_polynomial(&self, node: usize) -> bool {
        let GraphNode { op, operands } = &self.nodes[node];
        let is_one = match op {
            Op::Literal(_) | Op::Constant(..) | Op::CellValue(_) | Op::Evaluation(..) | Op::Table(..) => true,
            Op::Arithmetic(op) => {
                matches!(op, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply)
            }
            Op::Negate => true,
            _ => false,
        };
        is_one && operands.iter().all(|operand| self.is_polynomial(*operand))
    }

    /// The nodes at and below some roots.
    pub(super) fn below(&self, roots: &[usize]) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(&self.nodes[id].operands);
            }
        }
        seen
    }
}

/// Whether an evaluation is computed once a cell: what it evaluates is the same at all points, and
/// it is the position (whose derivatives are the Jacobian) or has one degree of freedom. The
/// constant derivatives of other functions stay products with tables, which strategies map.
fn is_written_out(form: &TabulatedForm, e: &Evaluation, table: &Table) -> bool {
    is_constant_over_points(table)
        && (form.functions[e.function].role == Role::Coordinates || table.dofs() == 1)
}

/// Whether the rows of a table differ from facet to facet only.
fn is_constant_over_points(table: &Table) -> bool {
    let shape = table.values.shape();
    let [.., points, dofs] = shape else { return false };
    let same = |facet: &[f64]| facet.chunks_exact(*dofs).all(|row| row == &facet[..*dofs]);
    table.values.entries().chunks_exact(points * dofs).all(same)
}

/// Which nodes the roots need, and how often.
#[derive(Clone)]
pub(super) struct Uses {
    needed: Vec<bool>,
    /// By nodes and roots.
    count: Vec<usize>,
    /// Whether a node of level `Point` (or a root) reads it.
    read_at_point: Vec<bool>,
    level: Vec<Level>,
}

impl Uses {
    pub(super) fn new(graph: &Graph, roots: &[usize]) -> Self {
        let n = graph.nodes.len();
        let mut uses = Self {
            needed: vec![false; n],
            count: vec![0; n],
            read_at_point: vec![false; n],
            level: graph.level.clone(),
        };
        for root in roots {
            uses.needed[*root] = true;
            uses.count[*root] += 1;
            uses.read_at_point[*root] = true;
        }
        for k in (0..n).rev() {
            if !uses.needed[k] {
                continue;
            }
            // the operand of a sign is written twice
            let times = if graph.nodes[k].op == Op::Math(MathFunction::Sign) { 2 } else { 1 };
            for operand in &graph.nodes[k].operands {
                uses.needed[*operand] = true;
                uses.count[*operand] += times;
                uses.read_at_point[*operand] |= uses.level[k] == Level::Point;
            }
        }
        uses
    }

    /// Whether a root needs the node.
    pub(super) fn is_needed(&self, k: usize) -> bool {
        self.needed[k]
    }

    /// The same counts with fewer nodes needed.
    pub(super) fn restricted(&self, keep: impl Fn(usize) -> bool) -> Self {
        let needed = self.needed.iter().enumerate().map(|(k, n)| *n && keep(k)).collect();
        Self { needed, ..self.clone() }
    }

    /// Whether its value is used at several places, or at all points.
    pub(super) fn is_shared(&self, k: usize) -> bool {
        self.count[k] > 1 || (self.level[k] == Level::Cell && self.read_at_point[k])
    }
}
