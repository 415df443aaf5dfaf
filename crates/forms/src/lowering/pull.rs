//! From physical to reference coordinates: integrands in terms of what the kernel computes.

use crate::element::{CellShape, Pullback};
use crate::form::{
    ExpandedForm, Field, FormError, FunctionSpace, Jet, MathFunction, Measure, Region, Scalar, ScalarGraph,
    ScalarId, linear_terms, tensor,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A number that the kernel computes per cell or point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// A coordinate of a vertex of the cell: vertex, axis.
    Vertex(usize, usize),
    /// `|det J|`.
    Measure,
    /// The quadrature weight.
    Weight,
    /// A derivative of the position, where the map of a cell is not affine: physical axis,
    /// reference axis.
    Jacobian(usize, usize),
    /// A component of the outward normal of the reference facet.
    ReferenceNormal(usize),
}

impl Symbol {
    /// The symbol's number in a graph, for cells of dimension `dim`.
    pub(super) fn place(self, dim: usize) -> usize {
        match self {
            Self::Vertex(vertex, axis) => vertex * dim + axis,
            Self::Measure => (dim + 1) * dim,
            Self::Weight => (dim + 1) * dim + 1,
            Self::Jacobian(physical, reference) => (dim + 1) * dim + 2 + physical * dim + reference,
            Self::ReferenceNormal(axis) => (dim + 1) * dim + 2 + dim * dim + axis,
        }
    }

    /// The symbol of a number.
    pub(super) fn from_place(place: usize, dim: usize) -> Self {
        match place.checked_sub((dim + 1) * dim) {
            None => Self::Vertex(place / dim, place % dim),
            Some(0) => Self::Measure,
            Some(1) => Self::Weight,
            Some(entry) if entry - 2 < dim * dim => Self::Jacobian((entry - 2) / dim, (entry - 2) % dim),
            Some(entry) => Self::ReferenceNormal(entry - 2 - dim * dim),
        }
    }
}

/// One term of the quadrature stage: `y[i, component] += table[q, i] * factor`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// Component of the test function.
    pub(super) component: usize,
    /// Reference axis of the derivative of its basis functions; none for their values.
    pub(super) axis: Option<usize>,
    /// What they are multiplied by.
    pub(super) factor: ScalarId,
}

/// The terms of an integral.
pub(super) struct PulledIntegral {
    pub(super) measure: Measure,
    pub(super) degree: usize,
    pub(super) terms: Vec<Term>,
}

/// A form in which jets are derivatives by reference coordinates.
pub(super) struct PulledForm {
    pub(super) cell: CellShape,
    /// Polynomial degree of the maps of cells.
    pub(super) geometry_degree: usize,
    pub(super) test: FunctionSpace,
    pub(super) graph: ScalarGraph,
    /// Geometric quantities that get names of their own.
    pub(super) named: BTreeMap<ScalarId, String>,
    /// `det J`.
    pub(super) determinant: ScalarId,
    pub(super) integrals: Vec<PulledIntegral>,
}

/// Pulls a form back to the reference cell.
///
/// # Errors
/// A trial function left, no test function, a form that is not linear, derivatives of order 2.
pub(super) fn pull(mut form: ExpandedForm) -> Result<PulledForm, FormError> {
    if form.trial.is_some() {
        return Err(FormError::TrialLeft);
    }
    let test = form.test.clone().ok_or_else(|| FormError::NoTest { term: "the form".into() })?;
    let degrees = form.quadrature_degrees();
    let mut split = Vec::new();
    for ((measure, root), degree) in form.integrals.clone().into_iter().zip(degrees) {
        split.push((measure, degree, linear_terms(&mut form.graph, root)?));
    }
    let mut pull = Pull::new(form.cell, form.is_affine(), &form.graph);
    let mut integrals = Vec::new();
    for (measure, degree, terms) in split {
        let terms = pull.terms(&terms, &test, measure.region())?;
        integrals.push(PulledIntegral { measure, degree, terms });
    }
    let (graph, named, determinant) = (pull.graph, pull.named, pull.determinant);
    let (cell, geometry_degree) = (form.cell, form.geometry_degree);
    Ok(PulledForm { cell, geometry_degree, test, graph, named, determinant, integrals })
}

struct Pull<'a> {
    dim: usize,
    /// Whether the map of a cell has one derivative at all points.
    is_affine: bool,
    source: &'a ScalarGraph,
    graph: ScalarGraph,
    named: BTreeMap<ScalarId, String>,
    determinant: ScalarId,
    /// J, [physical axis, reference axis].
    jacobian: Vec<ScalarId>,
    /// `1 / det J`.
    reciprocal: ScalarId,
    /// Inverse of J, [reference axis, physical axis].
    inverse: Vec<ScalarId>,
    moved: HashMap<ScalarId, ScalarId>,
    facet: Option<FacetGeometry>,
}

/// What the derivative of the map of a cell makes of the normal of a reference facet.
#[derive(Clone)]
struct FacetGeometry {
    /// The unit normal.
    normal: Vec<ScalarId>,
    /// Length of the reference normal's image `J^-T n`, by which facets are stretched more than
    /// cells.
    stretch: ScalarId,
}

impl<'a> Pull<'a> {
    fn new(cell: CellShape, is_affine: bool, source: &'a ScalarGraph) -> Self {
        let dim = cell.dim();
        let mut graph = ScalarGraph::default();
        let mut named = BTreeMap::new();
        let symbol = |graph: &mut ScalarGraph, s: Symbol| graph.insert(Scalar::Symbol(s.place(dim)));
        let mut jacobian = Vec::new();
        for (i, k) in (0..dim).flat_map(|i| (0..dim).map(move |k| (i, k))) {
            let entry = if is_affine {
                let (end, start) =
                    (symbol(&mut graph, Symbol::Vertex(k + 1, i)), symbol(&mut graph, Symbol::Vertex(0, i)));
                graph.subtract(end, start)
            } else {
                symbol(&mut graph, Symbol::Jacobian(i, k))
            };
            named.insert(entry, format!("jac_{i}{k}"));
            jacobian.push(entry);
        }
        let determinant = tensor::determinant(&mut graph, &jacobian, dim);
        named.insert(determinant, "det_jac".into());
        let one = graph.literal(1.0);
        let reciprocal = graph.divide(one, determinant);
        named.insert(reciprocal, "rec_det".into());
        let mut inverse = Vec::new();
        for (k, i) in (0..dim).flat_map(|k| (0..dim).map(move |i| (k, i))) {
            let cofactor = tensor::cofactor(&mut graph, &jacobian, dim, i, k);
            let entry = graph.multiply(cofactor, reciprocal);
            named.insert(entry, format!("inv_{k}{i}"));
            inverse.push(entry);
        }
        // A negated difference is the difference the other way round: one name for it, too.
        for (entry, name) in named.clone() {
            let negated = graph.negate(entry);
            named.entry(negated).or_insert_with(|| format!("neg_{name}"));
        }
        // `source` numbers coefficients and constants; the copy keeps the numbers.
        for coefficient in source.coefficients() {
            graph.coefficient(coefficient);
        }
        for constant in source.constants() {
            graph.constant(constant);
        }
        Self {
            dim,
            is_affine,
            source,
            graph,
            named,
            determinant,
            jacobian,
            reciprocal,
            inverse,
            moved: HashMap::new(),
            facet: None,
        }
    }

    fn symbol(&mut self, symbol: Symbol) -> ScalarId {
        self.graph.insert(Scalar::Symbol(symbol.place(self.dim)))
    }

    /// The geometry of a facet: `n = J^-T m / |J^-T m|` for the outward normal `m` of the reference
    /// facet, also where `det J` is negative.
    fn facet(&mut self) -> FacetGeometry {
        if let Some(known) = &self.facet {
            return known.clone();
        }
        let dim = self.dim;
        let reference: Vec<ScalarId> = (0..dim).map(|k| self.symbol(Symbol::ReferenceNormal(k))).collect();
        let mut image = Vec::new();
        for i in 0..dim {
            let products =
                (0..dim).map(|k| self.graph.multiply(self.inverse[k * dim + i], reference[k])).collect();
            image.push(tensor::sum(&mut self.graph, products));
        }
        let squares = image.iter().map(|x| self.graph.multiply(*x, *x)).collect();
        let square = tensor::sum(&mut self.graph, squares);
        let stretch = self.graph.math(MathFunction::Sqrt, square);
        self.named.insert(stretch, "stretch".into());
        let mut normal = Vec::new();
        for (i, x) in image.iter().enumerate() {
            let component = self.graph.divide(*x, stretch);
            self.named.insert(component, format!("normal_{i}"));
            normal.push(component);
        }
        self.facet.insert(FacetGeometry { normal, stretch }).clone()
    }

    /// The node with physical derivatives written in reference derivatives.
    fn node(&mut self, id: ScalarId) -> Result<ScalarId, FormError> {
        // In ascending order: operands before what uses them.
        for id in self.source.below(&[id], |id| self.moved.contains_key(&id)) {
            let moved = match self.source.node(id) {
                Scalar::Jet(jet) => self.jet(&jet)?,
                Scalar::Power(a, b) => self.power(self.moved[&a], self.moved[&b]),
                Scalar::FacetNormal(axis) => self.facet().normal[axis],
                other @ (Scalar::Literal(_)
                | Scalar::Constant(..)
                | Scalar::Coordinate(_)
                | Scalar::Symbol(_)
                | Scalar::Variable(..)
                | Scalar::Negate(_)
                | Scalar::Add(..)
                | Scalar::Subtract(..)
                | Scalar::Multiply(..)
                | Scalar::Divide(..)
                | Scalar::Math(..)
                | Scalar::Conditional(..)) => self.graph.rebuild(other, &mut |o| self.moved[&o]),
            };
            self.moved.insert(id, moved);
        }
        Ok(self.moved[&id])
    }

    /// A value or derivative of a function by those of its reference value.
    fn jet(&mut self, jet: &Jet) -> Result<ScalarId, FormError> {
        if jet.order() > 1 {
            return Err(self.order_error(jet));
        }
        let (pullback, range) = self.pullback(jet);
        if pullback == Pullback::Identity {
            return Ok(self.derivative(jet));
        }
        // the derivative of the matrix is left out
        self.check_constant_piola(jet.order() == 1)?;
        let terms = range.clone().map(|component| {
            let reference = self.derivative(&Jet { component, ..*jet });
            let entry = self.piola(pullback, jet.component - range.start, component - range.start);
            self.graph.multiply(entry, reference)
        });
        let terms = terms.collect();
        let sum = tensor::sum(&mut self.graph, terms);
        let name = self.component_name(jet);
        let name = jet.axis().map_or(format!("value_{name}"), |j| format!("mapped_grad_{name}_{j}"));
        self.named.insert(sum, name);
        Ok(sum)
    }

    /// `∂_j u = sum over k of inverse[k, j] * ∂^_k u` of a reference component `u`, or its value.
    fn derivative(&mut self, jet: &Jet) -> ScalarId {
        let Some(j) = jet.axis() else { return self.graph.insert(Scalar::Jet(*jet)) };
        let value = Jet { derivative: [0; 3], ..*jet };
        let terms = (0..self.dim).map(|k| {
            let reference = self.graph.insert(Scalar::Jet(value.differentiated(k)));
            self.graph.multiply(self.inverse[k * self.dim + j], reference)
        });
        let terms = terms.collect();
        let sum = tensor::sum(&mut self.graph, terms);
        let name = format!("grad_{}_{j}", self.component_name(jet));
        self.named.insert(sum, name);
        sum
    }

    /// How the component of a coefficient maps to cells, together with which others.
    fn pullback(&self, jet: &Jet) -> (Pullback, Range<usize>) {
        let maps = match jet.field {
            Field::Coefficient(k) => self.source.coefficients()[k].space.pullbacks(),
            Field::Trial | Field::Test => Vec::new(),
        };
        let found = maps.into_iter().find(|(_, range)| range.contains(&jet.component));
        found.unwrap_or((Pullback::Identity, jet.component..jet.component + 1))
    }

    /// The entry of the matrix that maps reference values: `J / det J` or `J^-T`.
    fn piola(&mut self, pullback: Pullback, physical: usize, reference: usize) -> ScalarId {
        match pullback {
            Pullback::Identity => self.graph.literal(f64::from(u8::from(physical == reference))),
            Pullback::ContravariantPiola => {
                self.graph.multiply(self.jacobian[physical * self.dim + reference], self.reciprocal)
            }
            Pullback::CovariantPiola => self.inverse[reference * self.dim + physical],
        }
    }

    /// Refuses derivatives of functions that the Jacobian maps where it differs from point to point.
    fn check_constant_piola(&self, is_derivative: bool) -> Result<(), FormError> {
        if self.is_affine || !is_derivative {
            return Ok(());
        }
        Err(FormError::Discretisation(
            "found a derivative of a function with a Piola map on curved cells, needed its values alone or \
             straight cells"
                .into(),
        ))
    }

    fn function_name(&self, jet: &Jet) -> &str {
        match jet.field {
            Field::Coefficient(k) => &self.source.coefficients()[k].name,
            Field::Trial => "trial",
            Field::Test => "test",
        }
    }

    /// `u` of scalars, `u1` of vectors.
    fn component_name(&self, jet: &Jet) -> String {
        let name = self.function_name(jet);
        match jet.field {
            Field::Coefficient(k) if self.source.coefficients()[k].space.is_vector() => {
                format!("{name}{}", jet.component)
            }
            Field::Coefficient(_) | Field::Trial | Field::Test => name.to_owned(),
        }
    }

    fn order_error(&self, jet: &Jet) -> FormError {
        FormError::Order {
            term: format!("grad(grad({}))", self.function_name(jet)),
            order: jet.order(),
            limit: 1,
        }
    }

    /// Small whole powers as products.
    fn power(&mut self, a: ScalarId, b: ScalarId) -> ScalarId {
        match self.graph.literal_value(b) {
            Some(n) if n.fract() == 0.0 && n.abs() <= 16.0 => {
                let product = self.whole_power(a, n.abs() as u32);
                if n >= 0.0 {
                    return product;
                }
                let one = self.graph.literal(1.0);
                self.graph.divide(one, product)
            }
            Some(_) | None => self.graph.power(a, b),
        }
    }

    fn whole_power(&mut self, a: ScalarId, n: u32) -> ScalarId {
        match n {
            0 => self.graph.literal(1.0),
            1 => a,
            _ => {
                let half = self.whole_power(a, n / 2);
                let square = self.graph.multiply(half, half);
                if n.is_multiple_of(2) { square } else { self.graph.multiply(square, a) }
            }
        }
    }

    /// Factors of the values and reference derivatives of the test function's basis.
    fn terms(
        &mut self,
        terms: &BTreeMap<Jet, ScalarId>,
        test: &FunctionSpace,
        region: Region,
    ) -> Result<Vec<Term>, FormError> {
        let mut physical: BTreeMap<(usize, Option<usize>), ScalarId> = BTreeMap::new();
        let mut ordered: Vec<(&Jet, &ScalarId)> = terms.iter().collect();
        ordered.sort_by_key(|(jet, _)| (jet.component, jet.order(), jet.axis()));
        for (jet, factor) in ordered {
            if jet.order() > 1 {
                return Err(self.order_error(jet));
            }
            let factor = self.node(*factor)?;
            physical.insert((jet.component, jet.axis()), factor);
        }
        let (weight, measure) = (self.symbol(Symbol::Weight), self.symbol(Symbol::Measure));
        let measure = match region {
            Region::Cells => measure,
            Region::BoundaryFacets => {
                let stretch = self.facet().stretch;
                let measure = self.graph.multiply(measure, stretch);
                self.named.insert(measure, "facet_measure".into());
                measure
            }
        };
        let scale = self.graph.multiply(weight, measure);
        self.named.insert(scale, "scale".into());
        let mut pulled = Vec::new();
        let dim = self.dim;
        for (pullback, range) in test.pullbacks() {
            for (component, axis) in range.clone().flat_map(|c| axes(dim).map(move |axis| (c, axis))) {
                let factor = match pullback {
                    Pullback::Identity => self.pulled(&physical, component, axis),
                    Pullback::ContravariantPiola | Pullback::CovariantPiola => {
                        let mut products = Vec::new();
                        for from in range.clone() {
                            let Some(factor) = self.pulled(&physical, from, axis) else { continue };
                            self.check_constant_piola(axis.is_some())?;
                            let entry = self.piola(pullback, from - range.start, component - range.start);
                            products.push(self.graph.multiply(entry, factor));
                        }
                        (!products.is_empty()).then(|| tensor::sum(&mut self.graph, products))
                    }
                };
                let Some(factor) = factor else { continue };
                let factor = self.graph.multiply(factor, scale);
                if !self.graph.is_zero(factor) {
                    pulled.push(Term { component, axis, factor });
                }
            }
        }
        Ok(pulled)
    }

    /// What the value or reference derivative of a component, mapped by the identity, is multiplied
    /// by.
    fn pulled(
        &mut self,
        physical: &BTreeMap<(usize, Option<usize>), ScalarId>,
        component: usize,
        axis: Option<usize>,
    ) -> Option<ScalarId> {
        match axis {
            None => physical.get(&(component, None)).copied(),
            Some(k) => self.pulled_axis(physical, component, k),
        }
    }

    /// `sum over j of inverse[k, j] * factor[j]`: `∂_j v = sum over k of inverse[k, j] * ∂^_k v`.
    fn pulled_axis(
        &mut self,
        physical: &BTreeMap<(usize, Option<usize>), ScalarId>,
        component: usize,
        k: usize,
    ) -> Option<ScalarId> {
        let mut products = Vec::new();
        for j in 0..self.dim {
            if let Some(factor) = physical.get(&(component, Some(j))) {
                products.push(self.graph.multiply(self.inverse[k * self.dim + j], *factor));
            }
        }
        (!products.is_empty()).then(|| tensor::sum(&mut self.graph, products))
    }
}

/// The value, and the derivative by each reference axis.
fn axes(dim: usize) -> impl Iterator<Item = Option<usize>> {
    std::iter::once(None).chain((0..dim).map(Some))
}
