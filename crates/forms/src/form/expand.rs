//! Integrands as scalar graphs: tensors written out in components, derivatives carried out.

use super::differentiate::differentiate;
use super::error::FormError;
use super::expr::{Binary, Expr, Kind, Unary};
use super::integral::{Form, Measure};
use super::role::Role;
use super::scalar::{Field, Jet, Scalar, ScalarGraph, ScalarId};
use super::shape::Shape;
use super::sides::Restricted;
use super::space::FunctionSpace;
use super::tensor;
use super::walk::operands_first;
use kingpost_fem::element::CellShape;
use std::collections::HashMap;

/// A form with derivatives carried out: one scalar integrand per measure.
#[derive(Clone, Debug)]
pub struct ExpandedForm {
    /// The nodes of all integrands.
    pub graph: ScalarGraph,
    /// Measures and integrands, in the order of the form.
    pub integrals: Vec<(Measure, ScalarId)>,
    /// The cells.
    pub cell: CellShape,
    /// Space of the test function, if there is one.
    pub test: Option<FunctionSpace>,
    /// Space of the trial function, if there is one.
    pub trial: Option<FunctionSpace>,
    /// Polynomial degree of the maps of cells: 1 of straight ones, until it is changed.
    pub geometry_degree: usize,
}

/// Maximum number of operations of a form that is written out: each derivative of a product
/// multiplies them. The linearised hyperelasticity of Kulkarni & Klöckner 2025 in three dimensions
/// stays far below.
const MAX_NODES: usize = 100_000;

/// Writes a form out in scalars.
///
/// # Errors
/// Any mistake in the form; more than 100,000 operations; two test functions (or two trial
/// functions) in different spaces.
pub fn expand(form: &Form) -> Result<ExpandedForm, FormError> {
    form.check()?;
    let cell = form.cell()?;
    let mut expander = Expander::new(cell.dim());
    let mut roots = Vec::new();
    for integral in form.integrals() {
        roots.push(expander.all_components(&integral.integrand)?[0]);
    }
    let (graph, roots) = expander.graph.without_variables(&roots);
    let integrals = form.integrals().iter().map(|i| i.measure).zip(roots).collect();
    Ok(ExpandedForm {
        graph,
        integrals,
        cell,
        test: expander.test,
        trial: expander.trial,
        geometry_degree: 1,
    })
}

pub(super) struct Expander {
    pub(super) graph: ScalarGraph,
    dim: usize,
    done: HashMap<usize, Vec<ScalarId>>,
    by_coordinate: Vec<HashMap<ScalarId, ScalarId>>,
    restricted: Restricted,
    test: Option<FunctionSpace>,
    trial: Option<FunctionSpace>,
}

impl Expander {
    fn new(dim: usize) -> Self {
        Self {
            graph: ScalarGraph::moving_numbers(),
            dim,
            done: HashMap::new(),
            by_coordinate: vec![HashMap::new(); dim],
            restricted: Restricted::default(),
            test: None,
            trial: None,
        }
    }

    /// The components of an expression, row by row.
    fn all_components(&mut self, expr: &Expr) -> Result<Vec<ScalarId>, FormError> {
        for node in operands_first(expr) {
            if !self.done.contains_key(&node.address()) {
                let result = self.expand(node)?;
                self.done.insert(node.address(), result);
                if self.graph.nodes().len() > MAX_NODES {
                    return Err(FormError::Size { limit: MAX_NODES });
                }
            }
        }
        self.components(expr)
    }

    /// The components of an operand, which was expanded before.
    fn components(&self, expr: &Expr) -> Result<Vec<ScalarId>, FormError> {
        let missing = || FormError::Bug(format!("`{expr}` was used before it was expanded"));
        self.done.get(&expr.address()).cloned().ok_or_else(missing)
    }

    fn expand(&mut self, expr: &Expr) -> Result<Vec<ScalarId>, FormError> {
        let shape = expr.shape();
        Ok(match expr.kind() {
            Kind::Literal(value) => vec![self.graph.literal(*value)],
            Kind::Identity(n) => tensor::identity(&mut self.graph, *n),
            Kind::Constant(constant) => {
                let place = self.graph.constant(constant);
                (0..shape.size()).map(|c| self.graph.insert(Scalar::Constant(place, c))).collect()
            }
            Kind::Coefficient(coefficient) => {
                let place = self.graph.coefficient(coefficient);
                self.jets(Field::Coefficient(place), shape)
            }
            Kind::Argument(role, space) => self.argument(*role, space, shape)?,
            Kind::Coordinate => (0..self.dim).map(|i| self.graph.insert(Scalar::Coordinate(i))).collect(),
            Kind::FacetNormal => self.normal(),
            Kind::Size(size) => vec![self.graph.insert(Scalar::Size(*size, None))],
            Kind::Components(list) => {
                let mut all = Vec::with_capacity(list.len());
                for component in list {
                    all.push(self.components(component)?[0]);
                }
                all
            }
            Kind::Unary(op, a) => self.unary(*op, a)?,
            Kind::Binary(op, a, b) => self.binary(*op, a, b)?,
            Kind::Math(function, a) => {
                let a = self.components(a)?[0];
                vec![self.graph.math(*function, a)]
            }
            Kind::Index(a, row, column) => {
                let columns = columns(a.shape());
                vec![self.components(a)?[row * columns + column]]
            }
            Kind::Conditional(condition, then, otherwise) => {
                let (l, r) = (self.components(&condition.left)?[0], self.components(&condition.right)?[0]);
                let (then, otherwise) = (self.components(then)?, self.components(otherwise)?);
                let pairs = then.into_iter().zip(otherwise);
                pairs.map(|(a, b)| self.graph.conditional(condition.comparison, [l, r, a, b])).collect()
            }
            Kind::Restricted(side, a) => {
                let values = self.components(a)?;
                self.restricted.all(&mut self.graph, &values, *side)
            }
            Kind::Variable(label, value) => {
                let values = self.components(value)?.into_iter().enumerate();
                values.map(|(c, v)| self.graph.insert(Scalar::Variable(*label, c, v))).collect()
            }
            Kind::Diff(f, by) => self.diff(f, by)?,
            Kind::Gateaux(f, by, to) => self.gateaux(f, by, to)?,
            Kind::Error(error) => return Err(error.clone()),
        })
    }

    fn normal(&mut self) -> Vec<ScalarId> {
        (0..self.dim).map(|i| self.graph.insert(Scalar::FacetNormal(i, None))).collect()
    }

    fn jets(&mut self, field: Field, shape: Shape) -> Vec<ScalarId> {
        let jet = |component| Jet { field, component, derivative: [0; 3], side: None };
        (0..shape.size()).map(|c| self.graph.insert(Scalar::Jet(jet(c)))).collect()
    }

    fn argument(
        &mut self,
        role: Role,
        space: &FunctionSpace,
        shape: Shape,
    ) -> Result<Vec<ScalarId>, FormError> {
        let (slot, field, name) = match role {
            Role::Test => (&mut self.test, Field::Test, "test"),
            Role::Trial => (&mut self.trial, Field::Trial, "trial"),
        };
        if slot.get_or_insert_with(|| space.clone()) != space {
            return Err(FormError::Name { name: name.into() });
        }
        Ok(self.jets(field, shape))
    }

    fn unary(&mut self, op: Unary, a: &Expr) -> Result<Vec<ScalarId>, FormError> {
        let values = self.components(a)?;
        let n = columns(a.shape());
        let dim = self.dim;
        let graph = &mut self.graph;
        Ok(match op {
            Unary::Negate => values.into_iter().map(|v| graph.negate(v)).collect(),
            Unary::Transpose => (0..values.len())
                .map(|k| values[(k % (values.len() / n)) * n + k / (values.len() / n)])
                .collect(),
            Unary::Trace => vec![tensor::trace(graph, &values, n)],
            Unary::Determinant => vec![tensor::determinant(graph, &values, n)],
            Unary::Inverse => tensor::inverse(graph, &values, n),
            Unary::Symmetric => tensor::symmetric(graph, &values, n),
            Unary::Gradient => {
                let places: Vec<(ScalarId, usize)> =
                    values.iter().flat_map(|v| (0..dim).map(|k| (*v, k))).collect();
                places.into_iter().map(|(v, k)| self.by_coordinate(v, k)).collect()
            }
            Unary::Divergence => {
                let rows: Vec<Vec<ScalarId>> = values.chunks(dim).map(<[ScalarId]>::to_vec).collect();
                rows.iter().map(|row| self.divergence(row)).collect()
            }
            Unary::Curl => self.curl(&values),
        })
    }

    fn divergence(&mut self, row: &[ScalarId]) -> ScalarId {
        let terms: Vec<ScalarId> = row.iter().enumerate().map(|(k, v)| self.by_coordinate(*v, k)).collect();
        tensor::sum(&mut self.graph, terms)
    }

    fn curl(&mut self, values: &[ScalarId]) -> Vec<ScalarId> {
        if let [scalar] = values {
            let (x, y) = (self.by_coordinate(*scalar, 0), self.by_coordinate(*scalar, 1));
            return vec![y, self.graph.negate(x)];
        }
        let pairs: &[(usize, usize)] = if values.len() == 2 { &[(0, 1)] } else { &[(1, 2), (2, 0), (0, 1)] };
        let rotation = |&(i, j): &(usize, usize)| {
            let forward = self.by_coordinate(values[j], i);
            let backward = self.by_coordinate(values[i], j);
            self.graph.subtract(forward, backward)
        };
        pairs.iter().map(rotation).collect()
    }

    fn binary(&mut self, op: Binary, a: &Expr, b: &Expr) -> Result<Vec<ScalarId>, FormError> {
        let (left, right) = (self.components(a)?, self.components(b)?);
        let graph = &mut self.graph;
        let pairs = || left.iter().copied().zip(right.iter().copied());
        Ok(match op {
            Binary::Add => pairs().map(|(x, y)| graph.add(x, y)).collect(),
            Binary::Subtract => pairs().map(|(x, y)| graph.subtract(x, y)).collect(),
            Binary::Multiply if a.shape() == Shape::Scalar => {
                right.iter().map(|y| graph.multiply(left[0], *y)).collect()
            }
            Binary::Multiply if b.shape() == Shape::Scalar => {
                left.iter().map(|x| graph.multiply(*x, right[0])).collect()
            }
            Binary::Multiply | Binary::Dot => {
                let inner = match a.shape() {
                    Shape::Scalar => 1,
                    Shape::Vector(n) | Shape::Matrix(_, n) => n,
                };
                tensor::product(graph, &left, &right, inner)
            }
            Binary::Divide => left.iter().map(|x| graph.divide(*x, right[0])).collect(),
            Binary::Power => vec![graph.power(left[0], right[0])],
            Binary::Atan2 => vec![graph.insert(Scalar::Atan2(left[0], right[0]))],
            Binary::Inner => {
                let products = pairs().map(|(x, y)| graph.multiply(x, y)).collect();
                vec![tensor::sum(graph, products)]
            }
            Binary::Outer => {
                let all = left.iter().flat_map(|x| right.iter().map(move |y| (*x, *y)));
                all.map(|(x, y)| graph.multiply(x, y)).collect()
            }
        })
    }

    /// Derivative by a coordinate.
    fn by_coordinate(&mut self, value: ScalarId, axis: usize) -> ScalarId {
        let mut seed = |graph: &mut ScalarGraph, terminal: Scalar| along(graph, &terminal, axis);
        differentiate(&mut self.graph, value, &mut seed, &mut self.by_coordinate[axis])
    }

    fn diff(&mut self, f: &Expr, by: &Expr) -> Result<Vec<ScalarId>, FormError> {
        let Kind::Variable(label, _) = by.kind() else {
            return Err(FormError::NotAVariable { found: by.to_string() });
        };
        self.components(by)?;
        let values = self.components(f)?;
        let n = by.shape().size();
        let mut done = vec![HashMap::new(); n];
        let mut all = Vec::with_capacity(values.len() * n);
        for value in values {
            for (component, done) in done.iter_mut().enumerate() {
                let mut seed = |graph: &mut ScalarGraph, terminal: Scalar| {
                    let Scalar::Variable(of, c, _) = terminal else { return None };
                    (of == *label).then(|| graph.literal(f64::from(u8::from(c == component))))
                };
                all.push(differentiate(&mut self.graph, value, &mut seed, done));
            }
        }
        Ok(all)
    }

    fn gateaux(&mut self, f: &Expr, by: &Expr, to: &Expr) -> Result<Vec<ScalarId>, FormError> {
        let Kind::Coefficient(coefficient) = by.kind() else {
            return Err(FormError::NotACoefficient { found: by.to_string() });
        };
        let place = Field::Coefficient(self.graph.coefficient(coefficient));
        let (values, direction) = (self.components(f)?, self.components(to)?);
        let mut done = HashMap::new();
        let (by_coordinate, restricted) = (&mut self.by_coordinate, &mut self.restricted);
        let mut seed = |graph: &mut ScalarGraph, terminal: Scalar| {
            let Scalar::Jet(jet) = terminal else { return None };
            if jet.field != place {
                return None;
            }
            let direction = direction[jet.component];
            let own = jet.side.map_or(direction, |side| restricted.one(graph, direction, side));
            Some(raise(graph, by_coordinate, own, &jet))
        };
        Ok(values.iter().map(|v| differentiate(&mut self.graph, *v, &mut seed, &mut done)).collect())
    }
}

/// The derivative of a terminal by a coordinate, if it changes along it.
fn along(graph: &mut ScalarGraph, terminal: &Scalar, axis: usize) -> Option<ScalarId> {
    if let Scalar::Jet(jet) = terminal {
        return Some(graph.insert(Scalar::Jet(jet.differentiated(axis))));
    }
    matches!(terminal, Scalar::Coordinate(k) if *k == axis).then(|| graph.literal(1.0))
}

/// `value` differentiated by the coordinates as the jet is.
fn raise(
    graph: &mut ScalarGraph,
    by_coordinate: &mut [HashMap<ScalarId, ScalarId>],
    value: ScalarId,
    jet: &Jet,
) -> ScalarId {
    let mut result = value;
    for (axis, done) in by_coordinate.iter_mut().enumerate() {
        for _ in 0..jet.derivative[axis] {
            let mut seed = |graph: &mut ScalarGraph, terminal: Scalar| along(graph, &terminal, axis);
            result = differentiate(graph, result, &mut seed, done);
        }
    }
    result
}

fn columns(shape: Shape) -> usize {
    match shape {
        Shape::Scalar | Shape::Vector(_) => 1,
        Shape::Matrix(_, n) => n,
    }
}
