//! Scalar expressions of an integrand as a graph in which equal nodes are one node.

use super::expr::{Coefficient, Comparison, Constant, MathFunction, Size};
use super::role::Role;
use crate::side::Side;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A node of a [`ScalarGraph`]; a node's operands have smaller numbers than itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScalarId(u32);

impl ScalarId {
    /// Position in [`ScalarGraph::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// A coefficient, by its place in [`ScalarGraph::coefficients`].
    Coefficient(usize),
    /// The trial function.
    Trial,
    /// The test function.
    Test,
}

impl Field {
    /// The argument of a form.
    #[must_use]
    pub const fn of(role: Role) -> Self {
        match role {
            Role::Test => Self::Test,
            Role::Trial => Self::Trial,
        }
    }
}

/// A component of a function or of one of its partial derivatives in physical coordinates.
///
/// # Source
/// The terms `∂^η u` of Kulkarni & Klöckner 2025, equation (15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Jet {
    /// The function.
    pub field: Field,
    /// Its component, 0 for scalars.
    pub component: usize,
    /// How often it is differentiated by each coordinate.
    pub derivative: [u8; 3],
    /// The side of an interior facet, over such.
    pub side: Option<Side>,
}

impl Jet {
    /// Order of the derivative; 0 for the function itself.
    pub fn order(&self) -> usize {
        self.derivative.iter().map(|&n| usize::from(n)).sum()
    }

    /// The coordinates of its derivatives, ascending, each as often as it is differentiated by.
    pub fn axes(&self) -> Vec<usize> {
        let times = |(axis, &n): (usize, &u8)| std::iter::repeat_n(axis, usize::from(n));
        self.derivative.iter().enumerate().flat_map(times).collect()
    }

    /// The jet differentiated once more by a coordinate.
    #[must_use]
    pub fn differentiated(mut self, axis: usize) -> Self {
        self.derivative[axis] = self.derivative[axis].saturating_add(1);
        self
    }
}

/// A number, compared by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bits(u64);

impl Bits {
    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A scalar operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// A number.
    Literal(Bits),
    /// A component of a constant, by its place in [`ScalarGraph::constants`].
    Constant(usize, usize),
    /// A component of the position.
    Coordinate(usize),
    /// A component of the unit normal of a facet, over interior facets out of the cell of a side.
    FacetNormal(usize, Option<Side>),
    /// A size of the cell or facet, over interior facets of the cell on a side.
    Size(Size, Option<Side>),
    /// A function or derivative.
    Jet(Jet),
    /// A number that a later stage knows, by its place in that stage's list.
    Symbol(usize),
    /// A component of a variable: its label, the component, its value.
    Variable(u64, usize, ScalarId),
    /// Minus.
    Negate(ScalarId),
    /// Sum.
    Add(ScalarId, ScalarId),
    /// Difference.
    Subtract(ScalarId, ScalarId),
    /// Product.
    Multiply(ScalarId, ScalarId),
    /// Quotient.
    Divide(ScalarId, ScalarId),
    /// Power.
    Power(ScalarId, ScalarId),
    /// A function of one number.
    Math(MathFunction, ScalarId),
    /// The angle of the point `(second, first)`, in radians.
    Atan2(ScalarId, ScalarId),
    /// `if left ? right then .. else ..`: comparison, left, right, then, else.
    Conditional(Comparison, [ScalarId; 4]),
}

impl Scalar {
    /// The operands, in order.
    pub fn operands(&self) -> Vec<ScalarId> {
        match *self {
            Self::Literal(_)
            | Self::Constant(..)
            | Self::Coordinate(_)
            | Self::FacetNormal(..)
            | Self::Size(..)
            | Self::Jet(_)
            | Self::Symbol(_) => Vec::new(),
            Self::Variable(_, _, a) | Self::Negate(a) | Self::Math(_, a) => vec![a],
            Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b)
            | Self::Power(a, b)
            | Self::Atan2(a, b) => vec![a, b],
            Self::Conditional(_, list) => list.to_vec(),
        }
    }
}

/// Scalar nodes, each once; building one simplifies zeros, ones and signs.
#[derive(Clone, Debug, Default)]
pub struct ScalarGraph {
    nodes: Vec<Scalar>,
    ids: HashMap<Scalar, ScalarId>,
    coefficients: Vec<Arc<Coefficient>>,
    constants: Vec<Arc<Constant>>,
    /// Whether numbers move out of products, where they meet and cancel.
    moves_numbers: bool,
}

impl ScalarGraph {
    /// An empty graph in which numbers move out of products: right while an integrand is expanded
    /// and differentiated, wrong afterwards, when it would undo the sharing of what they multiply.
    pub(crate) fn moving_numbers() -> Self {
        Self { moves_numbers: true, ..Self::default() }
    }

    /// All nodes, operands first.
    pub fn nodes(&self) -> &[Scalar] {
        &self.nodes
    }

    /// The names of all nodes, operands first.
    pub fn ids(&self) -> impl Iterator<Item = ScalarId> + use<> {
        (0..self.nodes.len()).map(|k| ScalarId(k as u32))
    }

    /// The node.
    pub fn node(&self, id: ScalarId) -> Scalar {
        self.nodes[id.index()]
    }

    /// The coefficients, in the order in which they were first met.
    pub fn coefficients(&self) -> &[Arc<Coefficient>] {
        &self.coefficients
    }

    /// The constants, in the order in which they were first met.
    pub fn constants(&self) -> &[Arc<Constant>] {
        &self.constants
    }

    /// The nodes at and below some roots in ascending order, without those that are `known` (and
    /// what only they need).
    pub(crate) fn below(&self, roots: &[ScalarId], known: impl Fn(ScalarId) -> bool) -> Vec<ScalarId> {
        let mut seen = BTreeSet::new();
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if !known(id) && seen.insert(id) {
                open.extend(self.node(id).operands());
            }
        }
        seen.into_iter().collect()
    }

    /// The name of a node, if it is there.
    pub fn find(&self, node: &Scalar) -> Option<ScalarId> {
        self.ids.get(node).copied()
    }

    /// The number, if the node is one.
    pub fn literal_value(&self, id: ScalarId) -> Option<f64> {
        match self.node(id) {
            Scalar::Literal(bits) => Some(bits.value()),
            _ => None,
        }
    }

    /// Whether the node is the number zero.
    pub fn is_zero(&self, id: ScalarId) -> bool {
        self.literal_value(id) == Some(0.0)
    }

    /// Place of a coefficient, added if it is new.
    pub(crate) fn coefficient(&mut self, coefficient: &Arc<Coefficient>) -> usize {
        place(&mut self.coefficients, coefficient)
    }

    /// Place of a constant, added if it is new.
    pub(crate) fn constant(&mut self, constant: &Arc<Constant>) -> usize {
        place(&mut self.constants, constant)
    }

    /// The node, added if it is new; no simplification.
    pub(crate) fn insert(&mut self, node: Scalar) -> ScalarId {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        // A form with 2^32 nodes does not fit the memory of a machine.
        let id = ScalarId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.ids.insert(node, id);
        id
    }

    /// A number.
    pub(crate) fn literal(&mut self, value: f64) -> ScalarId {
        // -0 and 0 are one node.
        let value = if value == 0.0 { 0.0 } else { value };
        self.insert(Scalar::Literal(Bits(value.to_bits())))
    }

    /// `-a`.
    pub(crate) fn negate(&mut self, a: ScalarId) -> ScalarId {
        match self.node(a) {
            Scalar::Literal(bits) => self.literal(-bits.value()),
            Scalar::Negate(inner) => inner,
            Scalar::Subtract(x, y) => self.insert(Scalar::Subtract(y, x)),
            _ => self.insert(Scalar::Negate(a)),
        }
    }

    /// `a + b`.
    pub(crate) fn add(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        match (self.node(a), self.node(b)) {
            (Scalar::Literal(x), Scalar::Literal(y)) => self.literal(x.value() + y.value()),
            (Scalar::Literal(x), _) if x.value() == 0.0 => b,
            (_, Scalar::Literal(y)) if y.value() == 0.0 => a,
            (_, Scalar::Negate(y)) => self.subtract(a, y),
            (Scalar::Negate(x), _) => self.subtract(b, x),
            _ if a == b => self.scale(2.0, a),
            _ => match self.common_factor(a, b) {
                Some((factor, x, y)) => {
                    let sum = self.add(x, y);
                    self.times(factor, sum)
                }
                None => self.insert(Scalar::Add(a.min(b), a.max(b))),
            },
        }
    }

    /// `a - b`.
    pub(crate) fn subtract(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        if a == b {
            return self.literal(0.0);
        }
        match (self.node(a), self.node(b)) {
            (Scalar::Literal(x), Scalar::Literal(y)) => self.literal(x.value() - y.value()),
            (Scalar::Literal(x), _) if x.value() == 0.0 => self.negate(b),
            (_, Scalar::Literal(y)) if y.value() == 0.0 => a,
            (_, Scalar::Negate(y)) => self.add(a, y),
            _ => match self.common_factor(a, b) {
                Some((factor, x, y)) => {
                    let difference = self.subtract(x, y);
                    self.times(factor, difference)
                }
                None => self.insert(Scalar::Subtract(a, b)),
            },
        }
    }

    /// `a * b`.
    pub(crate) fn multiply(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        match (self.node(a), self.node(b)) {
            (Scalar::Literal(x), Scalar::Literal(y)) => self.literal(x.value() * y.value()),
            (Scalar::Literal(x), _) => self.scale(x.value(), b),
            (_, Scalar::Literal(y)) => self.scale(y.value(), a),
            (Scalar::Negate(x), _) => {
                let product = self.multiply(x, b);
                self.negate(product)
            }
            (_, Scalar::Negate(y)) => {
                let product = self.multiply(a, y);
                self.negate(product)
            }
            _ => match (self.literal_factor(a), self.literal_factor(b)) {
                (None, None) => self.insert(Scalar::Multiply(a.min(b), a.max(b))),
                (x, y) => {
                    let ((p, x), (q, y)) = (x.unwrap_or((1.0, a)), y.unwrap_or((1.0, b)));
                    let product = self.multiply(x, y);
                    self.times(p * q, product)
                }
            },
        }
    }

    /// The number and the rest of a product with a number.
    fn literal_factor(&self, a: ScalarId) -> Option<(f64, ScalarId)> {
        match self.node(a) {
            Scalar::Multiply(x, y) if self.moves_numbers => self.literal_value(x).map(|factor| (factor, y)),
            _ => None,
        }
    }

    /// The number that two products share, and what it multiplies in each.
    fn common_factor(&self, a: ScalarId, b: ScalarId) -> Option<(f64, ScalarId, ScalarId)> {
        let ((p, x), (q, y)) = (self.literal_factor(a)?, self.literal_factor(b)?);
        (p == q).then_some((p, x, y))
    }

    /// A number times any node.
    fn times(&mut self, factor: f64, a: ScalarId) -> ScalarId {
        let factor = self.literal(factor);
        self.multiply(factor, a)
    }

    /// A number times a node that is none; numbers stand first in products.
    fn scale(&mut self, factor: f64, a: ScalarId) -> ScalarId {
        if factor == 0.0 {
            return self.literal(0.0);
        }
        if factor == 1.0 {
            return a;
        }
        if factor == -1.0 {
            return self.negate(a);
        }
        match self.node(a) {
            Scalar::Negate(x) => self.scale(-factor, x),
            Scalar::Multiply(x, y) => match self.literal_value(x) {
                Some(inner) => self.scale(factor * inner, y),
                None => self.scaled(factor, a),
            },
            _ => self.scaled(factor, a),
        }
    }

    /// The product as a node of its own.
    fn scaled(&mut self, factor: f64, a: ScalarId) -> ScalarId {
        let number = self.literal(factor);
        self.insert(Scalar::Multiply(number, a))
    }

    /// `a / b`.
    pub(crate) fn divide(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        if self.is_zero(a) && !self.is_zero(b) {
            return a;
        }
        match self.literal_value(b) {
            // Exact only for powers of two.
            Some(value) if is_power_of_two(value) => {
                let inverse = self.literal(value.recip());
                self.multiply(inverse, a)
            }
            Some(_) | None => self.insert(Scalar::Divide(a, b)),
        }
    }

    /// `a` to the power `b`.
    pub(crate) fn power(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        match (self.literal_value(a), self.literal_value(b)) {
            (_, Some(0.0)) => self.literal(1.0),
            (_, Some(1.0)) => a,
            (Some(x), Some(y)) => self.literal(x.powf(y)),
            _ => self.insert(Scalar::Power(a, b)),
        }
    }

    /// A function of a node.
    pub(crate) fn math(&mut self, function: MathFunction, a: ScalarId) -> ScalarId {
        self.insert(Scalar::Math(function, a))
    }

    /// A choice; none if both branches are one node.
    pub(crate) fn conditional(&mut self, comparison: Comparison, list: [ScalarId; 4]) -> ScalarId {
        if list[2] == list[3] { list[2] } else { self.insert(Scalar::Conditional(comparison, list)) }
    }

    /// The same operation on other operands, simplified.
    pub(crate) fn rebuild(
        &mut self,
        node: Scalar,
        operand: &mut dyn FnMut(ScalarId) -> ScalarId,
    ) -> ScalarId {
        match node {
            Scalar::Literal(_)
            | Scalar::Constant(..)
            | Scalar::Coordinate(_)
            | Scalar::Jet(_)
            | Scalar::FacetNormal(..)
            | Scalar::Size(..)
            | Scalar::Symbol(_) => self.insert(node),
            Scalar::Variable(label, component, a) => {
                let a = operand(a);
                self.insert(Scalar::Variable(label, component, a))
            }
            Scalar::Negate(a) => {
                let a = operand(a);
                self.negate(a)
            }
            Scalar::Add(a, b) => {
                let (a, b) = (operand(a), operand(b));
                self.add(a, b)
            }
            Scalar::Subtract(a, b) => {
                let (a, b) = (operand(a), operand(b));
                self.subtract(a, b)
            }
            Scalar::Multiply(a, b) => {
                let (a, b) = (operand(a), operand(b));
                self.multiply(a, b)
            }
            Scalar::Divide(a, b) => {
                let (a, b) = (operand(a), operand(b));
                self.divide(a, b)
            }
            Scalar::Power(a, b) => {
                let (a, b) = (operand(a), operand(b));
                self.power(a, b)
            }
            Scalar::Math(function, a) => {
                let a = operand(a);
                self.math(function, a)
            }
            Scalar::Atan2(a, b) => {
                let (a, b) = (operand(a), operand(b));
                self.insert(Scalar::Atan2(a, b))
            }
            Scalar::Conditional(comparison, list) => {
                let list = list.map(operand);
                self.conditional(comparison, list)
            }
        }
    }

    /// A copy of the roots in which variables are their values and nothing unused remains.
    pub(crate) fn without_variables(&self, roots: &[ScalarId]) -> (Self, Vec<ScalarId>) {
        let mut needed = vec![false; self.nodes.len()];
        for root in roots {
            needed[root.index()] = true;
        }
        for k in (0..self.nodes.len()).rev() {
            if needed[k] {
                self.nodes[k].operands().into_iter().for_each(|o| needed[o.index()] = true);
            }
        }
        let mut copy = Self {
            moves_numbers: self.moves_numbers,
            coefficients: self.coefficients.clone(),
            constants: self.constants.clone(),
            ..Self::default()
        };
        let mut moved = vec![ScalarId(0); self.nodes.len()];
        for (k, node) in self.nodes.iter().enumerate().filter(|(k, _)| needed[*k]) {
            moved[k] = match *node {
                Scalar::Variable(_, _, value) => moved[value.index()],
                other => copy.rebuild(other, &mut |o| moved[o.index()]),
            };
        }
        (copy, roots.iter().map(|r| moved[r.index()]).collect())
    }
}

fn is_power_of_two(value: f64) -> bool {
    // Mantissa zero and a normal exponent whose reciprocal is normal as well.
    value.to_bits() & ((1 << 52) - 1) == 0 && value.is_normal() && value.recip().is_normal()
}

fn place<T: PartialEq>(list: &mut Vec<Arc<T>>, item: &Arc<T>) -> usize {
    match list.iter().position(|known| known == item) {
        Some(k) => k,
        None => {
            list.push(item.clone());
            list.len() - 1
        }
    }
}
