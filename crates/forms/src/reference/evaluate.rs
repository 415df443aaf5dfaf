//! Evaluation of an integrand as it was written, at all quadrature points of a cell at once.

use super::facts::FactTable;
use super::nilpotent::Nilpotent;
use super::number::{Number, Slot};
use crate::form::{Binary, Expr, FormError, Kind, Role, Shape, Unary};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Values and derivatives of a field: per component, the value and then the derivative by each
/// coordinate.
pub(super) type FieldValues = Vec<Vec<Rc<[f64]>>>;

/// What the terminals are worth on one cell.
pub(super) struct CellValues<'a> {
    pub(super) n_points: usize,
    pub(super) dim: usize,
    pub(super) fields: &'a BTreeMap<String, FieldValues>,
    pub(super) constants: &'a BTreeMap<String, Vec<f64>>,
    /// Physical coordinates of the points, per axis.
    pub(super) position: &'a [Rc<[f64]>],
}

/// Place of a component of the test function (`axis` none) or of its derivative by a coordinate.
pub(super) fn slot(component: usize, axis: Option<usize>, dim: usize) -> Slot {
    component * (dim + 1) + axis.map_or(0, |k| k + 1)
}

/// Something that is moved by an infinitesimal.
enum Perturbation {
    /// The position, along an axis.
    Axis(usize),
    /// A coefficient, by an expression.
    Direction(String, Expr),
    /// A component of a variable.
    Variable(u64, usize),
}

/// Perturbations, innermost first, with the values found under them.
struct Scope {
    outer: Option<Rc<Scope>>,
    perturbation: Option<Perturbation>,
    bit: u32,
    values: RefCell<HashMap<usize, Values>>,
}

type Values = Rc<Vec<Nilpotent>>;

impl Scope {
    fn new(outer: Option<Rc<Scope>>, perturbation: Option<Perturbation>, bit: u32) -> Rc<Self> {
        Rc::new(Self { outer, perturbation, bit, values: RefCell::new(HashMap::new()) })
    }

    /// A scope within, with a fresh infinitesimal.
    fn within(self: &Rc<Self>, perturbation: Perturbation) -> Rc<Self> {
        let bit = if self.perturbation.is_some() { self.bit + 1 } else { 0 };
        Self::new(Some(self.clone()), Some(perturbation), bit)
    }

    /// All perturbations, innermost first, with their infinitesimals.
    fn active(&self) -> Vec<(&Perturbation, u32)> {
        let mut list = Vec::new();
        let mut scope = Some(self);
        while let Some(s) = scope {
            list.extend(s.perturbation.as_ref().map(|p| (p, s.bit)));
            scope = s.outer.as_deref();
        }
        list
    }
}

/// Evaluates one integrand on one cell.
pub(super) struct Evaluator<'a> {
    pub(super) cell: CellValues<'a>,
    pub(super) facts: &'a mut FactTable,
    /// A coefficient without values that was met.
    pub(super) missing: Option<String>,
}

impl Evaluator<'_> {
    /// The integrand: zero, or linear in the components and derivatives of the test function.
    pub(super) fn integrand(&mut self, expr: &Expr) -> Result<Number, FormError> {
        let scope = Scope::new(None, None, 0);
        Ok(self.values(expr, &scope)?[0].standard())
    }

    fn values(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Result<Values, FormError> {
        let mut scope = scope.clone();
        // A perturbation that does not touch the expression would only hide values known further
        // out.
        while let (Some(perturbation), Some(outer)) = (&scope.perturbation, &scope.outer) {
            if self.touches(perturbation, expr) {
                break;
            }
            scope = outer.clone();
        }
        if let Some(known) = scope.values.borrow().get(&expr.address()) {
            return Ok(known.clone());
        }
        let result = Rc::new(self.evaluate(expr, &scope)?);
        scope.values.borrow_mut().insert(expr.address(), result.clone());
        Ok(result)
    }

    fn touches(&mut self, perturbation: &Perturbation, expr: &Expr) -> bool {
        let facts = self.facts.of(expr);
        match perturbation {
            Perturbation::Axis(_) => facts.varies,
            Perturbation::Direction(name, _) => facts.coefficients.contains(name),
            Perturbation::Variable(label, _) => facts.labels.contains(label),
        }
    }

    fn evaluate(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Result<Vec<Nilpotent>, FormError> {
        let size = expr.shape().size();
        match expr.kind() {
            Kind::Literal(value) => Ok(vec![Nilpotent::uniform(*value)]),
            Kind::Identity(n) => {
                Ok((0..n * n).map(|k| Nilpotent::uniform(if k % (n + 1) == 0 { 1.0 } else { 0.0 })).collect())
            }
            Kind::Constant(c) => {
                let values = self.cell.constants.get(&c.name).map_or(&[][..], Vec::as_slice);
                Ok(values.iter().map(|v| Nilpotent::uniform(*v)).collect())
            }
            Kind::Coefficient(c) => self.coefficient(&c.name, expr, scope),
            Kind::Argument(Role::Test, _) => {
                (0..size).map(|c| self.moved(scope, expr, |axis| self.test(c, axis))).collect()
            }
            Kind::Argument(Role::Trial, _) => Err(FormError::TrialLeft),
            Kind::Coordinate => (0..size).map(|c| self.position(c, scope)).collect(),
            Kind::Restricted(..) => Err(FormError::Bug("a side of a facet in an integral over cells".into())),
            Kind::FacetNormal => Err(FormError::Bug("a normal in an integral over cells".into())),
            Kind::Size(size) => {
                Err(FormError::Discretisation(format!("the reference has no `{}`", size.word())))
            }
            Kind::Components(list) => list.iter().map(|e| self.scalar(e, scope)).collect(),
            Kind::Unary(op, a) => self.unary(*op, a, scope),
            Kind::Binary(op, a, b) => self.binary(*op, a, b, scope),
            Kind::Math(function, a) => Ok(vec![self.scalar(a, scope)?.math(*function)?]),
            Kind::Index(a, row, column) => {
                let n = columns(a.shape());
                Ok(vec![self.values(a, scope)?[row * n + column].clone()])
            }
            Kind::Conditional(condition, then, otherwise) => {
                let (l, r) = (self.scalar(&condition.left, scope)?, self.scalar(&condition.right, scope)?);
                let (l, r) = (l.standard(), r.standard());
                let holds = |q| Ok(condition.comparison.holds(l.at(q)?, r.at(q)?));
                let chosen: Result<Vec<bool>, FormError> = (0..self.cell.n_points).map(holds).collect();
                let (chosen, then, otherwise) =
                    (chosen?, self.values(then, scope)?, self.values(otherwise, scope)?);
                then.iter().zip(otherwise.iter()).map(|(a, b)| Nilpotent::choose(&chosen, a, b)).collect()
            }
            Kind::Variable(label, value) => self.variable(*label, value, scope),
            Kind::Diff(f, by) => self.diff(f, by, scope),
            Kind::Gateaux(f, by, to) => self.gateaux(f, by, to, scope),
            Kind::Error(error) => Err(error.clone()),
        }
    }

    fn scalar(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Result<Nilpotent, FormError> {
        Ok(self.values(expr, scope)?[0].clone())
    }

    /// A function of position at the moved position: its value plus its derivatives by the active
    /// axes.
    fn moved(
        &self,
        scope: &Scope,
        expr: &Expr,
        part: impl Fn(Option<usize>) -> Number,
    ) -> Result<Nilpotent, FormError> {
        let mut value = Nilpotent::plain(part(None));
        let mut axes = 0;
        for (perturbation, bit) in scope.active() {
            if let Perturbation::Axis(axis) = perturbation {
                axes += 1;
                value = value.add(&Nilpotent::infinitesimal(1 << bit, part(Some(*axis))))?;
            }
        }
        if axes > 1 {
            return Err(FormError::Order { term: expr.to_string(), order: axes, limit: 1 });
        }
        Ok(value)
    }

    fn test(&self, component: usize, axis: Option<usize>) -> Number {
        let ones: Rc<[f64]> = vec![1.0; self.cell.n_points].into();
        Number::Linear(BTreeMap::from([(slot(component, axis, self.cell.dim), ones)]))
    }

    fn position(&self, component: usize, scope: &Scope) -> Result<Nilpotent, FormError> {
        let mut value = Nilpotent::plain(Number::Points(self.cell.position[component].clone()));
        for (perturbation, bit) in scope.active() {
            if matches!(perturbation, Perturbation::Axis(k) if *k == component) {
                value = value.add(&Nilpotent::infinitesimal(1 << bit, Number::Uniform(1.0)))?;
            }
        }
        Ok(value)
    }

    fn coefficient(
        &mut self,
        name: &str,
        expr: &Expr,
        scope: &Rc<Scope>,
    ) -> Result<Vec<Nilpotent>, FormError> {
        let mut values = Vec::with_capacity(expr.shape().size());
        match self.cell.fields.get(name) {
            Some(field) => {
                for component in field {
                    let part =
                        |axis: Option<usize>| Number::Points(component[axis.map_or(0, |k| k + 1)].clone());
                    values.push(self.moved(scope, expr, part)?);
                }
            }
            None => {
                // Not a number shows whether the value is needed: differentiation may take it away.
                self.missing.get_or_insert_with(|| name.to_owned());
                for _ in 0..expr.shape().size() {
                    values.push(self.moved(scope, expr, |_| Number::Uniform(f64::NAN))?);
                }
            }
        }
        let mut at = Some(scope.clone());
        while let Some(s) = at {
            if let Some(Perturbation::Direction(n, to)) = &s.perturbation
                && n == name
            {
                let moved = self.values(to, &outside(scope, &s))?;
                let step = Nilpotent::infinitesimal(1 << s.bit, Number::Uniform(1.0));
                for (value, direction) in values.iter_mut().zip(moved.iter()) {
                    *value = value.add(&direction.multiply(&step)?)?;
                }
            }
            at = s.outer.clone();
        }
        Ok(values)
    }

    fn variable(&mut self, label: u64, value: &Expr, scope: &Rc<Scope>) -> Result<Vec<Nilpotent>, FormError> {
        let mut values = self.values(value, scope)?.to_vec();
        for (perturbation, bit) in scope.active() {
            if let Perturbation::Variable(l, component) = perturbation
                && *l == label
            {
                let step = Nilpotent::infinitesimal(1 << bit, Number::Uniform(1.0));
                values[*component] = values[*component].add(&step)?;
            }
        }
        Ok(values)
    }

    /// All components of `f`, differentiated by one more infinitesimal.
    fn slope(&mut self, f: &Expr, scope: &Rc<Scope>, by: Perturbation) -> Result<Vec<Nilpotent>, FormError> {
        let inner = scope.within(by);
        let bit = inner.bit;
        Ok(self.values(f, &inner)?.iter().map(|v| v.coefficient(bit)).collect())
    }

    fn diff(&mut self, f: &Expr, by: &Expr, scope: &Rc<Scope>) -> Result<Vec<Nilpotent>, FormError> {
        let Kind::Variable(label, _) = by.kind() else {
            return Err(FormError::NotAVariable { found: by.to_string() });
        };
        let parts = (0..by.shape().size()).map(|c| self.slope(f, scope, Perturbation::Variable(*label, c)));
        Ok(interleave(&parts.collect::<Result<Vec<_>, _>>()?))
    }

    fn gateaux(
        &mut self,
        f: &Expr,
        by: &Expr,
        to: &Expr,
        scope: &Rc<Scope>,
    ) -> Result<Vec<Nilpotent>, FormError> {
        let Kind::Coefficient(c) = by.kind() else {
            return Err(FormError::NotACoefficient { found: by.to_string() });
        };
        self.slope(f, scope, Perturbation::Direction(c.name.clone(), to.clone()))
    }

    /// Derivatives of all components by all coordinates, the coordinate last.
    fn gradient(&mut self, a: &Expr, scope: &Rc<Scope>) -> Result<Vec<Nilpotent>, FormError> {
        let parts = (0..self.cell.dim).map(|k| self.slope(a, scope, Perturbation::Axis(k)));
        Ok(interleave(&parts.collect::<Result<Vec<_>, _>>()?))
    }

    fn unary(&mut self, op: Unary, a: &Expr, scope: &Rc<Scope>) -> Result<Vec<Nilpotent>, FormError> {
        let d = self.cell.dim;
        match op {
            Unary::Gradient => return self.gradient(a, scope),
            Unary::Divergence => {
                let g = self.gradient(a, scope)?;
                return g.chunks(d * d).map(|row| total((0..d).map(|k| row[k * d + k].clone()))).collect();
            }
            Unary::Curl => return curl(&self.gradient(a, scope)?, d),
            Unary::Negate
            | Unary::Transpose
            | Unary::Trace
            | Unary::Determinant
            | Unary::Inverse
            | Unary::Symmetric => {}
        }
        let v = self.values(a, scope)?;
        let n = columns(a.shape());
        match op {
            Unary::Transpose => {
                let rows = v.len() / n;
                Ok((0..v.len()).map(|k| v[(k % rows) * n + k / rows].clone()).collect())
            }
            Unary::Trace => Ok(vec![total((0..n).map(|i| v[i * n + i].clone()))?]),
            Unary::Determinant => Ok(vec![determinant(&v, n)?]),
            Unary::Inverse => inverse(&v, n),
            Unary::Symmetric => (0..n * n).map(|k| Ok(v[k].add(&v[k % n * n + k / n])?.scale(0.5))).collect(),
            Unary::Negate | Unary::Gradient | Unary::Divergence | Unary::Curl => {
                Ok(v.iter().map(|x| x.scale(-1.0)).collect())
            }
        }
    }

    fn binary(
        &mut self,
        op: Binary,
        a: &Expr,
        b: &Expr,
        scope: &Rc<Scope>,
    ) -> Result<Vec<Nilpotent>, FormError> {
        let (x, y) = (self.values(a, scope)?, self.values(b, scope)?);
        let pairs = || x.iter().zip(y.iter());
        match op {
            Binary::Add => pairs().map(|(p, q)| p.add(q)).collect(),
            Binary::Subtract => pairs().map(|(p, q)| p.add(&q.scale(-1.0))).collect(),
            Binary::Multiply if a.shape() == Shape::Scalar => y.iter().map(|q| x[0].multiply(q)).collect(),
            Binary::Multiply if b.shape() == Shape::Scalar => x.iter().map(|p| p.multiply(&y[0])).collect(),
            Binary::Multiply | Binary::Dot => {
                let inner = if a.shape().rank() == 1 { x.len() } else { columns(a.shape()) };
                let width = y.len() / inner;
                let entry = |k: usize| {
                    let (i, j) = (k / width, k % width);
                    let products = (0..inner).map(|m| x[i * inner + m].multiply(&y[m * width + j]));
                    total(products.collect::<Result<Vec<_>, _>>()?)
                };
                (0..x.len() / inner * width).map(entry).collect()
            }
            Binary::Divide => x.iter().map(|p| p.divide(&y[0])).collect(),
            Binary::Power => Ok(vec![x[0].power(&y[0])?]),
            Binary::Atan2 => Ok(vec![x[0].atan2(&y[0])?]),
            Binary::Inner => {
                let products: Result<Vec<_>, _> = pairs().map(|(p, q)| p.multiply(q)).collect();
                Ok(vec![total(products?)?])
            }
            Binary::Outer => x.iter().flat_map(|p| y.iter().map(move |q| p.multiply(q))).collect(),
        }
    }
}

/// The scope in which a direction is evaluated: what lies outside the derivative `limit`, and the
/// moves of the position inside it (the direction is a function of position like the coefficient).
fn outside(scope: &Rc<Scope>, limit: &Rc<Scope>) -> Rc<Scope> {
    let mut axes = Vec::new();
    let mut at = Some(scope.clone());
    while let Some(s) = at.filter(|s| !Rc::ptr_eq(s, limit)) {
        if let Some(Perturbation::Axis(k)) = s.perturbation {
            axes.push((k, s.bit));
        }
        at = s.outer.clone();
    }
    let mut result = limit.outer.clone().unwrap_or_else(|| Scope::new(None, None, 0));
    for (axis, bit) in axes.into_iter().rev() {
        result = Scope::new(Some(result), Some(Perturbation::Axis(axis)), bit);
    }
    result
}

fn columns(shape: Shape) -> usize {
    match shape {
        Shape::Scalar | Shape::Vector(_) => 1,
        Shape::Matrix(_, n) => n,
    }
}

/// From one list per direction to components first, direction last.
fn interleave(parts: &[Vec<Nilpotent>]) -> Vec<Nilpotent> {
    let n = parts.first().map_or(0, Vec::len);
    (0..n).flat_map(|i| parts.iter().map(move |part| part[i].clone())).collect()
}

fn total(terms: impl IntoIterator<Item = Nilpotent>) -> Result<Nilpotent, FormError> {
    terms.into_iter().try_fold(Nilpotent::uniform(0.0), |sum, term| sum.add(&term))
}

/// From the gradient of the operand.
fn curl(g: &[Nilpotent], d: usize) -> Result<Vec<Nilpotent>, FormError> {
    let minus = |a: &Nilpotent, b: &Nilpotent| a.add(&b.scale(-1.0));
    match (g.len(), d) {
        (2, _) => Ok(vec![g[1].clone(), g[0].scale(-1.0)]),
        (4, _) => Ok(vec![minus(&g[2], &g[1])?]),
        _ => [(2, 1), (0, 2), (1, 0)].iter().map(|(i, j)| minus(&g[i * 3 + j], &g[j * 3 + i])).collect(),
    }
}

/// Sum over all permutations.
fn determinant(a: &[Nilpotent], n: usize) -> Result<Nilpotent, FormError> {
    let even: &[&[usize]] = match n {
        1 => &[&[0]],
        2 => &[&[0, 1]],
        _ => &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]],
    };
    let odd: &[&[usize]] = match n {
        1 => &[],
        2 => &[&[1, 0]],
        _ => &[&[0, 2, 1], &[2, 1, 0], &[1, 0, 2]],
    };
    let mut sum = Nilpotent::uniform(0.0);
    for (list, sign) in [(even, 1.0), (odd, -1.0)] {
        for permutation in list {
            let factors = permutation.iter().enumerate().map(|(i, j)| &a[i * n + j]);
            let product = factors.into_iter().try_fold(Nilpotent::uniform(sign), |p, f| p.multiply(f))?;
            sum = sum.add(&product)?;
        }
    }
    Ok(sum)
}

/// By Cramer's rule: entry (i, j) has row j replaced by the unit vector i.
fn inverse(a: &[Nilpotent], n: usize) -> Result<Vec<Nilpotent>, FormError> {
    let whole = determinant(a, n)?;
    let entry = |k: usize| {
        let (i, j) = (k / n, k % n);
        let mut replaced = a.to_vec();
        for column in 0..n {
            replaced[j * n + column] = Nilpotent::uniform(if column == i { 1.0 } else { 0.0 });
        }
        determinant(&replaced, n)?.divide(&whole)
    };
    (0..n * n).map(entry).collect()
}
