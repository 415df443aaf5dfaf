//! From physical to reference coordinates: integrands in terms of what the kernel computes.

use super::directions::Directions;
use super::entity::side_suffix;
use super::geometry::{FacetGeometry, Frame, Geometry, absolute, diameter};
use super::symbol::Symbol;
use crate::form::{
    ExpandedForm, Field, FormError, FunctionSpace, Jet, Measure, Region, Role, Scalar, ScalarGraph, ScalarId,
    Size, tensor, terms_in,
};
use crate::tabulated::Side;
use kingpost_fem::element::{CellShape, Pullback, derivatives};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// One term of the quadrature stage: `y[i, component] += table[q, i] * factor` of a linear form.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// The basis functions of each argument, the test function first, as their reference values and
    /// derivatives.
    pub(super) arguments: Vec<Jet>,
    /// What they are multiplied by.
    pub(super) factor: ScalarId,
}

/// The terms of an integral.
pub(super) struct PulledIntegral {
    pub(super) measure: Measure,
    pub(super) degree: usize,
    pub(super) terms: Vec<Term>,
}

/// Largest order of a derivative.
const MAX_ORDER: usize = 2;

/// A form in which jets are derivatives by reference coordinates.
pub(super) struct PulledForm {
    pub(super) cell: CellShape,
    /// Polynomial degree of the maps of cells.
    pub(super) geometry_degree: usize,
    /// What first derivatives by number are along.
    pub(super) directions: Directions,
    /// The spaces of its arguments, that of the test function first.
    pub(super) arguments: Vec<FunctionSpace>,
    pub(super) graph: ScalarGraph,
    /// Geometric quantities that get names of their own.
    pub(super) named: BTreeMap<ScalarId, String>,
    /// `det J`, of the cell on a side where there are two.
    pub(super) determinants: BTreeMap<Option<Side>, ScalarId>,
    pub(super) integrals: Vec<PulledIntegral>,
}

/// The side whose cell measures the pieces of an entity.
pub(super) fn measured_side(region: Region) -> Option<Side> {
    match region {
        Region::Cells | Region::BoundaryFacets => None,
        Region::InteriorFacets => Some(Side::Plus),
    }
}

/// Pulls a form back to the reference cell.
///
/// # Errors
/// A trial function alone, a form that is not linear in its arguments, derivatives of order 3, and of
/// order 2 on cells whose map is not affine; symmetric directions of what is differentiated along
/// the axes only.
pub(super) fn pull(mut form: ExpandedForm, directions: Directions) -> Result<PulledForm, FormError> {
    let directions = directions.of(&form)?;
    let arguments: Vec<FunctionSpace> = match (&form.test, &form.trial) {
        (None, Some(_)) => return Err(FormError::TrialAlone),
        (test, trial) => test.iter().chain(trial).cloned().collect(),
    };
    let roles = [Role::Test, Role::Trial].into_iter().take(arguments.len());
    let degrees = form.quadrature_degrees();
    let mut split = Vec::new();
    for ((measure, root), degree) in form.integrals.clone().into_iter().zip(degrees) {
        let mut terms = vec![(Vec::new(), root)];
        for role in roles.clone() {
            let mut finer = Vec::new();
            for (jets, factor) in terms {
                for (jet, factor) in terms_in(&mut form.graph, factor, role)? {
                    finer.push(([&jets[..], &[jet]].concat(), factor));
                }
            }
            terms = finer;
        }
        split.push((measure, degree, terms));
    }
    let frame = Frame { cell: form.cell, is_affine: form.is_affine(), directions };
    let mut pull = Pull::new(frame, &form.graph);
    let mut integrals = Vec::new();
    for (measure, degree, terms) in split {
        let terms = pull.terms(terms, &arguments, measure.region())?;
        integrals.push(PulledIntegral { measure, degree, terms });
    }
    let determinants = pull.geometries.iter().map(|(side, g)| (*side, g.determinant)).collect();
    let (graph, named) = (pull.graph, pull.named);
    let (cell, geometry_degree) = (form.cell, form.geometry_degree);
    Ok(PulledForm { cell, geometry_degree, directions, arguments, graph, named, determinants, integrals })
}

struct Pull<'a> {
    dim: usize,
    /// Whether the map of a cell has one derivative at all points.
    is_affine: bool,
    frame: Frame,
    source: &'a ScalarGraph,
    graph: ScalarGraph,
    named: BTreeMap<ScalarId, String>,
    /// Of the cell, or of those on both sides.
    geometries: BTreeMap<Option<Side>, Geometry>,
    moved: HashMap<ScalarId, ScalarId>,
}

impl<'a> Pull<'a> {
    fn new(frame: Frame, source: &'a ScalarGraph) -> Self {
        let (dim, is_affine) = (frame.cell.dim(), frame.is_affine);
        let mut graph = ScalarGraph::default();
        let mut named = BTreeMap::new();
        let geometry = Geometry::new(&mut graph, &mut named, frame, None);
        // `source` numbers coefficients and constants; the copy keeps the numbers.
        for coefficient in source.coefficients() {
            graph.coefficient(coefficient);
        }
        for constant in source.constants() {
            graph.constant(constant);
        }
        let geometries = BTreeMap::from([(None, geometry)]);
        Self { dim, is_affine, frame, source, graph, named, geometries, moved: HashMap::new() }
    }

    /// The geometry of the cell on a side.
    fn geometry(&mut self, side: Option<Side>) -> &mut Geometry {
        let (graph, named, frame) = (&mut self.graph, &mut self.named, self.frame);
        self.geometries.entry(side).or_insert_with(|| Geometry::new(graph, named, frame, side))
    }

    fn symbol(&mut self, symbol: Symbol, side: Option<Side>) -> ScalarId {
        self.graph.insert(Scalar::Symbol(symbol.place(self.dim, side)))
    }

    /// An entry of the inverse of the Jacobian: reference axis, physical axis.
    fn inverse(&mut self, side: Option<Side>, reference: usize, physical: usize) -> ScalarId {
        let place = reference * self.dim + physical;
        self.geometry(side).inverse[place]
    }

    fn facet(&mut self, side: Option<Side>) -> FacetGeometry {
        let mut geometry = self.geometry(side).clone();
        let facet = geometry.facet(&mut self.graph, &mut self.named, self.dim);
        self.geometries.insert(side, geometry);
        facet
    }

    /// A size of the cell on a side, or of the facet.
    fn size(&mut self, size: Size, side: Option<Side>) -> Result<ScalarId, FormError> {
        if !self.is_affine {
            return Err(FormError::Discretisation(format!(
                "found `{}` on cells that are curved, quadrilaterals or hexahedra, needed straight simplices",
                size.word()
            )));
        }
        let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
        let found = match size {
            Size::CellVolume => {
                let measure = self.measure(side);
                let part = self.graph.literal(1.0 / factorial(self.dim));
                self.graph.multiply(part, measure)
            }
            Size::FacetArea => {
                let (measure, stretch) = (self.measure(side), self.facet(side).stretch);
                let area = self.graph.multiply(measure, stretch);
                let part = self.graph.literal(1.0 / factorial(self.dim - 1));
                self.graph.multiply(part, area)
            }
            Size::CellDiameter => diameter(&mut self.graph, self.dim, side),
        };
        self.named.insert(found, format!("{}{}", size.word(), side_suffix(side)));
        Ok(found)
    }

    /// `|det J|` of the cell on a side.
    fn measure(&mut self, side: Option<Side>) -> ScalarId {
        if side.is_none() {
            return self.symbol(Symbol::Measure, None);
        }
        let determinant = self.geometry(side).determinant;
        absolute(&mut self.graph, determinant)
    }

    /// The node with physical derivatives written in reference derivatives.
    fn node(&mut self, id: ScalarId) -> Result<ScalarId, FormError> {
        // In ascending order: operands before what uses them.
        for id in self.source.below(&[id], |id| self.moved.contains_key(&id)) {
            let moved = match self.source.node(id) {
                Scalar::Jet(jet) => self.jet(&jet)?,
                Scalar::Power(a, b) => self.power(self.moved[&a], self.moved[&b]),
                Scalar::FacetNormal(axis, side) => self.facet(side).normal[axis],
                Scalar::Size(size, side) => self.size(size, side)?,
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
                | Scalar::Atan2(..)
                | Scalar::Conditional(..)) => self.graph.rebuild(other, &mut |o| self.moved[&o]),
            };
            self.moved.insert(id, moved);
        }
        Ok(self.moved[&id])
    }

    /// A value or derivative of a function by those of its reference value.
    fn jet(&mut self, jet: &Jet) -> Result<ScalarId, FormError> {
        self.check_order(jet)?;
        let (pullback, range) = self.pullback(jet);
        if pullback == Pullback::Identity {
            return Ok(self.derivative(jet));
        }
        // the derivative of the matrix is left out
        self.check_constant_piola(jet.order() > 0)?;
        let terms = range.clone().map(|component| {
            let reference = self.derivative(&Jet { component, ..*jet });
            let entry = self.piola(pullback, jet.side, jet.component - range.start, component - range.start);
            self.graph.multiply(entry, reference)
        });
        let terms = terms.collect();
        let sum = tensor::sum(&mut self.graph, terms);
        let name = self.component_name(jet);
        let name = match jet.order() {
            0 => format!("value_{name}"),
            _ => format!("mapped_grad_{name}{}", axes_suffix(jet)),
        };
        self.named.insert(sum, name);
        Ok(sum)
    }

    /// `∂_j u = sum over k of inverse[k, j] * ∂^_k u` of a reference component `u`, the same once
    /// more for second derivatives, or its value.
    fn derivative(&mut self, jet: &Jet) -> ScalarId {
        if jet.order() == 0 {
            return self.graph.insert(Scalar::Jet(*jet));
        }
        let entries = self.reference_derivatives(jet);
        let terms = entries.into_iter().map(|(derivative, entry)| {
            let reference = self.graph.insert(Scalar::Jet(Jet { derivative, ..*jet }));
            self.graph.multiply(entry, reference)
        });
        let terms = terms.collect();
        let sum = tensor::sum(&mut self.graph, terms);
        let name = format!("grad_{}{}", self.component_name(jet), axes_suffix(jet));
        self.named.insert(sum, name);
        sum
    }

    /// The derivatives by reference coordinates that a physical one is a sum of, each with its factor,
    /// where the inverse of the Jacobian is constant if there are several coordinates.
    fn reference_derivatives(&mut self, physical: &Jet) -> Vec<([u8; 3], ScalarId)> {
        let value = Jet { derivative: [0; 3], ..*physical };
        let mut found: Vec<(Jet, Option<ScalarId>)> = vec![(value, None)];
        for j in physical.axes() {
            let mut next: Vec<(Jet, Option<ScalarId>)> = Vec::new();
            for (reference, factor) in found {
                for k in 0..self.dim {
                    let entry = self.inverse(physical.side, k, j);
                    let product = factor.map_or(entry, |factor| self.graph.multiply(factor, entry));
                    let reference = reference.differentiated(k);
                    match next.iter_mut().find(|(known, _)| *known == reference) {
                        Some((_, Some(sum))) => *sum = self.graph.add(*sum, product),
                        Some((_, sum)) => *sum = Some(product),
                        None => next.push((reference, Some(product))),
                    }
                }
            }
            found = next;
        }
        found.into_iter().filter_map(|(jet, factor)| Some((jet.derivative, factor?))).collect()
    }

    /// How the component of a coefficient maps to cells, together with which others.
    fn pullback(&self, jet: &Jet) -> (Pullback, Range<usize>) {
        let maps = match jet.field {
            Field::Coefficient(k) => self.source.coefficients()[k].space.pullbacks(),
            Field::Trial | Field::Test => Vec::new(), // arguments are pulled back as terms
        };
        let found = maps.into_iter().find(|(_, range)| range.contains(&jet.component));
        found.unwrap_or((Pullback::Identity, jet.component..jet.component + 1))
    }

    /// The entry of the matrix that maps reference values: `J / det J` or `J^-T`.
    fn piola(
        &mut self,
        pullback: Pullback,
        side: Option<Side>,
        physical: usize,
        reference: usize,
    ) -> ScalarId {
        match pullback {
            Pullback::Identity => self.graph.literal(f64::from(u8::from(physical == reference))),
            Pullback::ContravariantPiola => {
                let place = physical * self.dim + reference;
                let geometry = self.geometry(side);
                let (entry, reciprocal) = (geometry.jacobian[place], geometry.reciprocal);
                self.graph.multiply(entry, reciprocal)
            }
            Pullback::CovariantPiola => self.inverse(side, reference, physical),
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

    /// `u` of scalars, `u1` of vectors; with the side, where there are two.
    fn component_name(&self, jet: &Jet) -> String {
        let (name, side) = (self.function_name(jet), side_suffix(jet.side));
        match jet.field {
            Field::Coefficient(k) if self.source.coefficients()[k].space.is_vector() => {
                format!("{name}{}{side}", jet.component)
            }
            Field::Coefficient(_) | Field::Trial | Field::Test => format!("{name}{side}"),
        }
    }

    /// Refuses derivatives of too high an order.
    fn check_order(&self, jet: &Jet) -> Result<(), FormError> {
        let (name, order) = (self.function_name(jet), jet.order());
        let term = (0..order).fold(name.to_owned(), |term, _| format!("grad({term})"));
        if order > MAX_ORDER {
            return Err(FormError::Order { term, order, limit: MAX_ORDER });
        }
        if order > 1 && !self.is_affine {
            return Err(FormError::Discretisation(format!(
                "found the second derivative `{term}` on cells that are curved, quadrilaterals or hexahedra, \
                 needed first derivatives or straight simplices"
            )));
        }
        Ok(())
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

    /// What is added up at a point: factors of the reference values and derivatives of the basis
    /// functions of all arguments, from those of physical ones.
    fn terms(
        &mut self,
        mut terms: Vec<(Vec<Jet>, ScalarId)>,
        arguments: &[FunctionSpace],
        region: Region,
    ) -> Result<Vec<Term>, FormError> {
        let key = |jet: &Jet| (jet.side, jet.component, jet.order(), jet.axes());
        terms.sort_by_key(|(jets, _)| jets.iter().map(key).collect::<Vec<_>>());
        for (jets, factor) in &mut terms {
            jets.iter().try_for_each(|jet| self.check_order(jet))?;
            *factor = self.node(*factor)?;
        }
        let mut scale = self.scale(region);
        // the sums over derivatives are those of a symmetric matrix then, of which half is computed
        if let ([_, _], Some(common)) = (arguments, self.common_factor(&terms)) {
            scale = self.graph.multiply(scale, common);
            let one = self.graph.literal(1.0);
            terms.iter_mut().for_each(|(_, factor)| *factor = one);
        }
        if arguments.is_empty() {
            let scaled = |(arguments, factor)| Term { arguments, factor: self.graph.multiply(factor, scale) };
            return Ok(terms.into_iter().map(scaled).collect());
        }
        for (place, space) in arguments.iter().enumerate().rev() {
            let scale = (place == 0).then_some(scale);
            terms = self.pull_argument(terms, place, space, scale)?;
        }
        Ok(terms.into_iter().map(|(arguments, factor)| Term { arguments, factor }).collect())
    }

    /// What several terms are all multiplied by, unless it is a number.
    fn common_factor(&self, terms: &[(Vec<Jet>, ScalarId)]) -> Option<ScalarId> {
        let [(_, first), others @ ..] = terms else { return None };
        let is_common = !others.is_empty() && others.iter().all(|(_, factor)| factor == first);
        (is_common && !matches!(self.graph.node(*first), Scalar::Literal(_))).then_some(*first)
    }

    /// The weight of a point, times what a piece of the entity is larger than that of the reference.
    fn scale(&mut self, region: Region) -> ScalarId {
        let side = measured_side(region);
        let (weight, measure) = (self.symbol(Symbol::Weight, None), self.symbol(Symbol::Measure, side));
        let measure = match region {
            Region::Cells => measure,
            Region::BoundaryFacets | Region::InteriorFacets => {
                let stretch = self.facet(side).stretch;
                let measure = self.graph.multiply(measure, stretch);
                self.named.insert(measure, "facet_measure".into());
                measure
            }
        };
        let scale = self.graph.multiply(weight, measure);
        self.named.insert(scale, "scale".into());
        scale
    }

    /// Terms in reference values and derivatives of one argument, where they were in physical ones;
    /// those of the others stay.
    fn pull_argument(
        &mut self,
        terms: Vec<(Vec<Jet>, ScalarId)>,
        place: usize,
        space: &FunctionSpace,
        scale: Option<ScalarId>,
    ) -> Result<Vec<(Vec<Jet>, ScalarId)>, FormError> {
        // by the side of this argument and the other ones
        let mut groups: Vec<(Vec<Jet>, Physical)> = Vec::new();
        for (jets, factor) in terms {
            let mut others = jets;
            let own = others[place];
            others[place] = Jet { component: 0, derivative: [0; 3], ..own };
            let entry = ((own.component, own.derivative), factor);
            match groups.iter_mut().find(|(key, _)| *key == others) {
                Some((_, physical)) => drop(physical.insert(entry.0, entry.1)),
                None => groups.push((others, Physical::from([entry]))),
            }
        }
        let mut pulled = Vec::new();
        for (key, physical) in groups {
            let side = key[place].side;
            for (component, derivative, factor) in self.pulled_terms(&physical, space, side)? {
                let factor = scale.map_or(factor, |scale| self.graph.multiply(factor, scale));
                if !self.graph.is_zero(factor) {
                    let mut jets = key.clone();
                    jets[place] = Jet { component, derivative, ..jets[place] };
                    pulled.push((jets, factor));
                }
            }
        }
        Ok(pulled)
    }

    /// Component, reference derivative and factor of the values and derivatives of an argument.
    fn pulled_terms(
        &mut self,
        physical: &Physical,
        space: &FunctionSpace,
        side: Option<Side>,
    ) -> Result<Vec<(usize, [u8; 3], ScalarId)>, FormError> {
        let mut pulled = Vec::new();
        let dim = self.dim;
        for (pullback, range) in space.pullbacks() {
            let all = reference(dim);
            for (component, own) in range.clone().flat_map(|c| all.iter().map(move |own| (c, *own))) {
                let factor = match pullback {
                    Pullback::Identity => self.pulled(physical, side, component, own),
                    Pullback::ContravariantPiola | Pullback::CovariantPiola => {
                        let mut products = Vec::new();
                        for from in range.clone() {
                            let Some(factor) = self.pulled(physical, side, from, own) else { continue };
                            self.check_constant_piola(own != [0; 3])?;
                            let (from, to) = (from - range.start, component - range.start);
                            let entry = self.piola(pullback, side, from, to);
                            products.push(self.graph.multiply(entry, factor));
                        }
                        (!products.is_empty()).then(|| tensor::sum(&mut self.graph, products))
                    }
                };
                pulled.extend(factor.map(|factor| (component, own, factor)));
            }
        }
        Ok(pulled)
    }

    /// What the value or reference derivative of a component, mapped by the identity, is multiplied
    /// by: of derivatives `sum over j of inverse[k, j] * factor[j]`, as
    /// `∂_j v = sum over k of inverse[k, j] * ∂^_k v`.
    fn pulled(
        &mut self,
        physical: &Physical,
        side: Option<Side>,
        component: usize,
        own: [u8; 3],
    ) -> Option<ScalarId> {
        if own == [0; 3] {
            return physical.get(&(component, own)).copied();
        }
        let mut products = Vec::new();
        for derivative in reference(self.dim) {
            let Some(factor) = physical.get(&(component, derivative)) else { continue };
            // the field does not matter
            let jet = Jet { field: Field::Test, component, derivative, side };
            let entries = self.reference_derivatives(&jet);
            if let Some((_, entry)) = entries.into_iter().find(|(found, _)| *found == own) {
                products.push(self.graph.multiply(entry, *factor));
            }
        }
        (!products.is_empty()).then(|| tensor::sum(&mut self.graph, products))
    }
}

/// What the physical values and derivatives of an argument are multiplied by: component, derivative.
type Physical = BTreeMap<(usize, [u8; 3]), ScalarId>;

/// The value, and all derivatives by reference coordinates.
fn reference(dim: usize) -> Vec<[u8; 3]> {
    // at most MAX_ORDER each
    derivatives(dim, MAX_ORDER).into_iter().map(|exponents| exponents.map(|n| n as u8)).collect()
}

/// `_0_1` of a derivative by both coordinates.
fn axes_suffix(jet: &Jet) -> String {
    jet.axes().iter().map(|axis| format!("_{axis}")).collect()
}
