//! Forms of this crate's language as tabulated forms.
//!
//! The vertices of a simplex are values of the position: tables of one 1 a row, the same at all
//! points. Jacobian, determinant and inverse are operations on them. On squares and cubes, and on
//! curved cells, the Jacobian is evaluated at each point. Over facets, tables have an axis for
//! them, over interior facets another one for their orientations, and the normals of the reference
//! facets are tables without degrees of freedom.

use super::directions::Directions;
use super::entity::side_suffix;
use super::options::LoweringOptions;
use super::pull::{PulledForm, PulledIntegral, measured_side};
use super::samples::Samples;
use super::symbol::Symbol;
use crate::form::space::element_label;
use crate::form::{Coefficient, Comparison, Field, FormError, FunctionSpace, Jet, Region, Scalar, ScalarId};
use crate::tabulated::{
    Arithmetic, Bessel, Constant, Evaluation, Function, Integral, IntegralType, MathFunction, Node, Output,
    Precision, Relation, Role, Side, Space, Table, TabulatedForm, Term, TermArgument, Transform, VERSION,
    Values,
};
use kingpost_fem::element::{ComposedElement, ElementTable, Pullback};
use kingpost_fem::numbering::EntityTransform;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A tabulated form, and what its spaces and functions were.
pub(super) struct Tabulated {
    pub(super) form: TabulatedForm,
    /// Its spaces; that of the position is the first.
    pub(super) spaces: Vec<FunctionSpace>,
}

impl PulledForm {
    /// The space of the position.
    fn position_space(&self) -> FunctionSpace {
        FunctionSpace::vector(self.cell, self.geometry_degree)
    }
}

fn discretisation(error: impl std::fmt::Display) -> FormError {
    FormError::Discretisation(error.to_string())
}

/// `u_q`, `u_d0`, `u1_q`, `u1_d0`, `u_d01`.
fn jet_name(coefficient: &Coefficient, jet: &Jet, directions: Directions) -> String {
    let component = if coefficient.space.is_vector() { jet.component.to_string() } else { String::new() };
    let name = format!("{}{component}", coefficient.name);
    let side = side_suffix(jet.side);
    let suffix = derivative_suffix(jet.derivative, directions);
    if suffix.is_empty() { format!("{name}_q{side}") } else { format!("{name}{suffix}{side}") }
}

/// `_d01` of a derivative by both reference coordinates, `_s1` of one along a symmetric direction.
fn derivative_suffix(derivative: [u8; 3], directions: Directions) -> String {
    let times = |(axis, n): (usize, u8)| axis.to_string().repeat(n.into());
    let axes: String = derivative.into_iter().enumerate().map(times).collect();
    if axes.is_empty() { axes } else { format!("_{}{axes}", directions.letter()) }
}

/// The tabulated form of a form that was pulled back.
pub(super) fn tabulate(form: &PulledForm, options: &LoweringOptions) -> Result<Tabulated, FormError> {
    let dim = form.cell.dim();
    let kinds = spaces(form);
    let position_space = form.position_space();
    let names = match form.geometry_degree {
        1 => ["cell_vertices", "n_vertices"],
        _ => ["cell_nodes", "n_nodes"],
    };
    let several = kinds.iter().map(|space| space.base().0).collect::<HashSet<_>>().len() > 1;
    let mut spaces = vec![Space {
        map: Some(names[0].into()),
        count: Some(names[1].into()),
        ..space("x", &position_space)?
    }];
    for kind in &kinds {
        let (base, block) = kind.base();
        let suffix = if several { format!("_{}", base.label()) } else { String::new() };
        let width = match block {
            1 => String::new(),
            n if n == dim => "_vector".into(),
            n => format!("_x{n}"),
        };
        spaces.push(Space {
            map: Some(format!("dofs{suffix}")),
            count: Some(format!("n_dofs{suffix}")),
            ..space(&format!("{}{width}", base.label()), kind)?
        });
    }
    let place = |space: &FunctionSpace| 1 + kinds.iter().position(|k| k == space).unwrap_or(0);
    let position =
        Function { name: "x".into(), role: Role::Coordinates, space: 0, argument: Some("coords".into()) };
    let coefficients = form.graph.coefficients().iter().map(|c| Function {
        name: c.name.clone(),
        role: Role::Coefficient,
        space: place(&c.space),
        argument: None,
    });
    let constants = form.graph.constants().iter().map(|c| {
        // components are numbered along one axis, as the names of their arguments have them
        let shape = if c.shape.rank() == 0 { Vec::new() } else { vec![c.shape.size()] };
        Constant { name: c.name.clone(), shape }
    });
    let mut integrals = Vec::new();
    for integral in &form.integrals {
        integrals.push(Tabulating::new(form, integral, options.point_orbits)?.integral()?);
    }
    let tabulated = TabulatedForm {
        kingpost_form: VERSION,
        name: options.name.clone(),
        cell: form.cell,
        gdim: dim,
        rank: form.arguments.len(),
        scalar: Precision::F64,
        functions: std::iter::once(position).chain(coefficients).collect(),
        constants: constants.collect(),
        outputs: vec![Output { name: "y".into(), spaces: form.arguments.iter().map(place).collect() }],
        spaces,
        integrals,
    };
    let spaces = std::iter::once(position_space).chain(kinds).collect();
    Ok(Tabulated { form: tabulated, spaces })
}

fn space(name: &str, of: &FunctionSpace) -> Result<Space, FormError> {
    let (base, block) = of.base();
    let element = base.element().map_err(discretisation)?;
    Ok(Space {
        name: name.into(),
        columns: element.n_dofs(),
        block,
        description: match of.lagrange_degree() {
            Some(degree) => format!("Lagrange {degree}"),
            None => base.to_string(),
        },
        nodes: nodes(&element),
        transforms: transforms(&element)?,
        map: None,
        count: None,
    })
}

/// The nodes of a continuous Lagrange element; a function that jumps shares no value at a node.
fn nodes(element: &ComposedElement) -> Option<Vec<Vec<f64>>> {
    let [part] = element.parts()[..] else { return None };
    let shared = !part.element.is_discontinuous() && part.stride == 1;
    let points = part.element.points().filter(|_| shared)?;
    Some(points.chunks(part.element.shape().dim()).map(<[f64]>::to_vec).collect())
}

/// What cells do to the degrees of freedom of an element, in the order of the states of
/// [`ComposedNumbering`](kingpost_fem::numbering::ComposedNumbering).
fn transforms(element: &ComposedElement) -> Result<Vec<Transform>, FormError> {
    let mut all = Vec::new();
    for part in element.parts() {
        for transform in EntityTransform::all(part.element) {
            let n = transform.dofs.len();
            let matrices = Values::new(vec![transform.matrices.len(), n, n], transform.matrices.concat());
            let gaps = || FormError::Internal("a matrix of a transform has gaps".into());
            all.push(Transform {
                entity: [transform.dim, transform.entity],
                dofs: transform.dofs.map(|dof| part.offset + part.stride * dof).collect(),
                matrices: matrices.ok_or_else(gaps)?,
            });
        }
    }
    Ok(all)
}

/// The spaces that the kernel needs, by ascending degree and number of components.
fn spaces(form: &PulledForm) -> Vec<FunctionSpace> {
    let roots: Vec<ScalarId> = form.integrals.iter().flat_map(|i| i.terms.iter().map(|t| t.factor)).collect();
    let mut kinds: Vec<FunctionSpace> = Vec::new();
    for space in &form.arguments {
        if !kinds.contains(space) {
            kinds.push(space.clone());
        }
    }
    for id in form.graph.below(&roots, |_| false) {
        if let Scalar::Jet(Jet { field: Field::Coefficient(k), .. }) = form.graph.node(id) {
            let space = &form.graph.coefficients()[k].space;
            if !kinds.contains(space) {
                kinds.push(space.clone());
            }
        }
    }
    kinds.sort_by_cached_key(|space| (space.degree(), space.components(), space.label()));
    kinds
}

/// Basis functions of one component of a space.
#[derive(Clone, Copy)]
struct Basis {
    table: usize,
    offset: usize,
    stride: usize,
    /// The component of the degrees of freedom.
    component: usize,
}

/// An integral that is being written.
struct Tabulating<'f> {
    form: &'f PulledForm,
    integral: &'f PulledIntegral,
    samples: Samples,
    elements: HashMap<FunctionSpace, ComposedElement>,
    /// By the word for the element.
    /// By element and order of the derivatives.
    tabulations: BTreeMap<(String, usize), ElementTable>,
    tables: Vec<Table>,
    evaluations: Vec<Evaluation>,
    nodes: Vec<Node>,
    names: BTreeMap<usize, String>,
    moved: BTreeMap<ScalarId, usize>,
}

impl<'f> Tabulating<'f> {
    fn new(form: &'f PulledForm, integral: &'f PulledIntegral, in_orbits: bool) -> Result<Self, FormError> {
        Ok(Self {
            form,
            integral,
            samples: Samples::new(form.cell, &integral.measure, integral.degree, in_orbits)?,
            elements: HashMap::new(),
            tabulations: BTreeMap::new(),
            tables: Vec::new(),
            evaluations: Vec::new(),
            nodes: Vec::new(),
            names: BTreeMap::new(),
            moved: BTreeMap::new(),
        })
    }

    fn integral(mut self) -> Result<Integral, FormError> {
        let form = self.form;
        let roots: Vec<ScalarId> = self.integral.terms.iter().map(|t| t.factor).collect();
        let needed = form.graph.below(&roots, |_| false);
        let evaluations = self.evaluations(&needed)?;
        // |det J| is a symbol of the graph: what it is computed from comes first
        let side = measured_side(self.integral.measure.region());
        let measure = Scalar::Symbol(Symbol::Measure.place(form.cell.dim(), side));
        let measure = form.graph.find(&measure).filter(|id| needed.contains(id));
        if let Some((id, determinant)) = measure.zip(form.determinants.get(&side)) {
            for node in form.graph.below(&[*determinant], |_| false) {
                self.node(node, &evaluations)?;
            }
            let place = self.push(Node::Math(MathFunction::Abs, vec![self.place(*determinant)?]));
            self.names.insert(place, "abs_det".into());
            self.moved.insert(id, place);
        }
        for node in needed {
            self.node(node, &evaluations)?;
        }
        let mut terms = Vec::new();
        for term in &self.integral.terms {
            let mut arguments = Vec::new();
            for (space, jet) in form.arguments.iter().zip(&term.arguments) {
                let Basis { table, offset, stride, component } =
                    self.basis(space, jet.component, jet.derivative)?;
                arguments.push(TermArgument { table, offset, stride, component, side: jet.side });
            }
            terms.push(Term { output: 0, factor: self.place(term.factor)?, arguments });
        }
        Ok(Integral {
            over: match self.integral.measure.region() {
                Region::Cells => IntegralType::Cell,
                Region::BoundaryFacets => IntegralType::ExteriorFacet,
                Region::InteriorFacets => IntegralType::InteriorFacet,
            },
            subdomains: self.integral.measure.tag().into_iter().map(i64::from).collect(),
            degree: i64::try_from(self.integral.degree).ok(),
            scheme: Some(self.integral.measure.scheme().unwrap_or_default().to_string()),
            points: self.samples.points,
            weights: self.samples.weights,
            tables: self.tables,
            evaluations: self.evaluations,
            nodes: self.nodes,
            names: self.names,
            terms,
        })
    }

    /// The basis functions of a component, or their derivatives by reference coordinates.
    fn basis(
        &mut self,
        space: &FunctionSpace,
        component: usize,
        derivative: [u8; 3],
    ) -> Result<Basis, FormError> {
        let base = space.base().0;
        if !self.elements.contains_key(base) {
            self.elements.insert(base.clone(), base.element().map_err(discretisation)?);
        }
        let (block, inner) = (component / base.components(), component % base.components());
        let element = self.elements[base].clone();
        let part = element.parts().into_iter().find(|p| inner < p.component + p.element.value_size());
        let missing = || FormError::Internal(format!("`{space}` has no component {component}"));
        let part = part.ok_or_else(missing)?;
        let (element, inner) = (part.element, inner - part.component);
        let label = element_label(element.family(), element.degree(), element.is_discontinuous());
        let vector =
            if element.pullback() == Pullback::Identity { String::new() } else { format!("_{inner}") };
        let directions = self.form.directions;
        let name = format!("phi_{label}{vector}{}", derivative_suffix(derivative, directions));
        let basis = |table| Basis { table, offset: part.offset, stride: part.stride, component: block };
        if let Some(place) = self.tables.iter().position(|t| t.name == name) {
            return Ok(basis(place));
        }
        let exponents = derivative.map(usize::from);
        let order = exponents.iter().sum::<usize>().max(1);
        let key = (label, order);
        if !self.tabulations.contains_key(&key) {
            let table = element.tabulate(&self.samples.places, order).map_err(discretisation)?;
            self.tabulations.insert(key.clone(), table);
        }
        let table = &self.tabulations[&key];
        let along_axes = |exponents: [usize; 3]| {
            let place = table.derivatives.iter().position(|found| *found == exponents);
            let place = place.ok_or_else(|| FormError::Internal(format!("no table of `{name}`")))?;
            Ok::<_, FormError>(table.component(place, inner))
        };
        let entries = match (directions, exponents.iter().position(|n| *n == 1)) {
            (Directions::Symmetric, Some(k)) => {
                let signs = directions.vertices(self.form.cell).get(k).copied().unwrap_or_default();
                let axes = (0..self.form.cell.dim()).map(|d| {
                    let sign = f64::from(signs.get(d + 1).copied().unwrap_or_default());
                    Ok((sign, along_axes(std::array::from_fn(|axis| usize::from(axis == d)))?))
                });
                let axes = axes.collect::<Result<Vec<_>, FormError>>()?;
                let points = axes.first().map_or(0, |(_, entries)| entries.len());
                (0..points).map(|p| axes.iter().map(|(sign, entries)| sign * entries[p]).sum()).collect()
            }
            (Directions::Symmetric, None) | (Directions::Axes, _) => along_axes(exponents)?,
        };
        Ok(basis(self.push_table(name, element.n_dofs(), entries)?))
    }

    /// The table that picks a vertex.
    fn vertex(&mut self, vertex: usize) -> Result<usize, FormError> {
        let name = format!("vertex_{vertex}");
        if let Some(place) = self.tables.iter().position(|t| t.name == name) {
            return Ok(place);
        }
        let n = self.form.cell.dim() + 1;
        let row = (0..n).map(|k| if k == vertex { 1.0 } else { 0.0 });
        let entries = (0..self.samples.n_places()).flat_map(|_| row.clone()).collect();
        self.push_table(name, n, entries)
    }

    fn push_table(&mut self, name: String, n_dofs: usize, entries: Vec<f64>) -> Result<usize, FormError> {
        self.push_values(name, self.samples.permutations(), self.samples.table_shape(n_dofs), entries)
    }

    fn push_values(
        &mut self,
        name: String,
        permutations: Option<usize>,
        shape: Vec<usize>,
        entries: Vec<f64>,
    ) -> Result<usize, FormError> {
        let values = Values::new(shape, entries);
        let values = values.ok_or_else(|| FormError::Internal(format!("the table `{name}` has gaps")))?;
        self.tables.push(Table { name, permutations, values });
        Ok(self.tables.len() - 1)
    }

    /// The table of a component of the normals of the reference facets, a row for each.
    fn reference_normal(&mut self, axis: usize) -> Result<usize, FormError> {
        let name = format!("reference_normal_{axis}");
        if let Some(place) = self.tables.iter().position(|t| t.name == name) {
            return Ok(place);
        }
        let cell = self.form.cell;
        let normals = (0..cell.facets().len()).map(|facet| cell.outward_normal(facet)[axis]);
        self.push_values(name, None, vec![normals.len(), 1, 1], normals.collect())
    }

    fn push(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The evaluations of the nodes that are needed, in order: of the position, then of each
    /// function by component, order and axis.
    fn evaluations(&mut self, needed: &[ScalarId]) -> Result<BTreeMap<ScalarId, usize>, FormError> {
        let form = self.form;
        let mut jets: Vec<(usize, Jet, ScalarId)> = Vec::new();
        let mut positions: Vec<(usize, ScalarId)> = Vec::new();
        for id in needed {
            match form.graph.node(*id) {
                Scalar::Coordinate(axis) => positions.push((axis, *id)),
                Scalar::Jet(jet) => {
                    if let Field::Coefficient(k) = jet.field {
                        jets.push((k, jet, *id));
                    }
                }
                _ => {}
            }
        }
        positions.sort_unstable();
        jets.sort_by_key(|(k, jet, _)| (jet.side, *k, jet.component, jet.order(), jet.axes()));
        let mut places = BTreeMap::new();
        for (axis, id) in positions {
            let basis = self.basis(&form.position_space(), axis, [0; 3])?;
            // both cells have the facet at one place
            let side = measured_side(self.integral.measure.region());
            places.insert(id, self.evaluation(0, basis, Some(format!("x{axis}")), side));
        }
        for (k, jet, id) in jets {
            let coefficient = &form.graph.coefficients()[k];
            let basis = self.basis(&coefficient.space, jet.component, jet.derivative)?;
            let name = Some(jet_name(coefficient, &jet, form.directions));
            places.insert(id, self.evaluation(k + 1, basis, name, jet.side));
        }
        Ok(places)
    }

    fn evaluation(
        &mut self,
        function: usize,
        basis: Basis,
        name: Option<String>,
        side: Option<Side>,
    ) -> usize {
        let Basis { table, offset, stride, component } = basis;
        self.evaluations.push(Evaluation { function, table, offset, stride, component, name, side });
        self.evaluations.len() - 1
    }

    /// The place of a node that was moved.
    fn place(&self, id: ScalarId) -> Result<usize, FormError> {
        let missing =
            || FormError::Internal(format!("{:?} was used before it was moved", self.form.graph.node(id)));
        self.moved.get(&id).copied().ok_or_else(missing)
    }

    fn node(&mut self, id: ScalarId, evaluations: &BTreeMap<ScalarId, usize>) -> Result<(), FormError> {
        if self.moved.contains_key(&id) {
            return Ok(());
        }
        let node = self.form.graph.node(id);
        let internal = || FormError::Internal(format!("{node:?} is left in a form that was pulled back"));
        let arithmetic = |op, a, b| -> Result<Node, FormError> {
            Ok(Node::Arithmetic(op, self.place(a)?, self.place(b)?))
        };
        let moved = match node {
            Scalar::Literal(bits) => Node::Literal(bits.value()),
            Scalar::Constant(place, component) => Node::Constant(place, component),
            Scalar::Coordinate(_) | Scalar::Jet(_) => {
                Node::Evaluation(*evaluations.get(&id).ok_or_else(internal)?)
            }
            Scalar::FacetNormal(..) | Scalar::Size(..) => return Err(internal()),
            Scalar::Symbol(place) => match Symbol::from_place(place, self.form.cell.dim()) {
                (Symbol::Vertex(vertex, axis), side) => {
                    let table = self.vertex(vertex)?;
                    let basis = Basis { table, offset: 0, stride: 1, component: axis };
                    Node::Evaluation(self.evaluation(0, basis, None, side))
                }
                (Symbol::Jacobian(physical, reference), side) => {
                    let derivative = std::array::from_fn(|axis| u8::from(axis == reference));
                    let basis = self.basis(&self.form.position_space(), physical, derivative)?;
                    Node::Evaluation(self.evaluation(0, basis, None, side))
                }
                (Symbol::Weight, _) => Node::Weight,
                (Symbol::ReferenceNormal(axis), side) => Node::Table(self.reference_normal(axis)?, side),
                (Symbol::Measure, _) => return Err(internal()),
            },
            Scalar::Variable(_, _, a) => {
                let place = self.place(a)?;
                self.moved.insert(id, place);
                return Ok(());
            }
            Scalar::Negate(a) => Node::Negate(self.place(a)?),
            Scalar::Add(a, b) => arithmetic(Arithmetic::Add, a, b)?,
            Scalar::Subtract(a, b) => arithmetic(Arithmetic::Subtract, a, b)?,
            Scalar::Multiply(a, b) => arithmetic(Arithmetic::Multiply, a, b)?,
            Scalar::Divide(a, b) => arithmetic(Arithmetic::Divide, a, b)?,
            Scalar::Power(a, b) => arithmetic(Arithmetic::Power, a, b)?,
            Scalar::Math(function, a) => math(function, self.place(a)?),
            Scalar::Atan2(y, x) => Node::Math(MathFunction::Atan2, vec![self.place(y)?, self.place(x)?]),
            Scalar::Conditional(comparison, [left, right, a, b]) => {
                let compare = Node::Compare(relation(comparison), self.place(left)?, self.place(right)?);
                let (a, b) = (self.place(a)?, self.place(b)?);
                Node::Select(self.push(compare), a, b)
            }
        };
        let place = self.push(moved);
        if let Some(name) = self.form.named.get(&id) {
            self.names.insert(place, name.clone());
        }
        self.moved.insert(id, place);
        Ok(())
    }
}

fn math(function: crate::form::MathFunction, a: usize) -> Node {
    use crate::form::MathFunction as Own;
    let found = match function {
        Own::Exp => MathFunction::Exp,
        Own::Ln => MathFunction::Ln,
        Own::Sqrt => MathFunction::Sqrt,
        Own::Sin => MathFunction::Sin,
        Own::Cos => MathFunction::Cos,
        Own::Tan => MathFunction::Tan,
        Own::Asin => MathFunction::Asin,
        Own::Acos => MathFunction::Acos,
        Own::Atan => MathFunction::Atan,
        Own::Sinh => MathFunction::Sinh,
        Own::Cosh => MathFunction::Cosh,
        Own::Tanh => MathFunction::Tanh,
        Own::Erf => MathFunction::Erf,
        Own::BesselJ(order) => return Node::Bessel(Bessel::J, i64::from(order), a),
        Own::BesselY(order) => return Node::Bessel(Bessel::Y, i64::from(order), a),
    };
    Node::Math(found, vec![a])
}

fn relation(comparison: Comparison) -> Relation {
    match comparison {
        Comparison::Less => Relation::Less,
        Comparison::LessEqual => Relation::LessEqual,
        Comparison::Greater => Relation::Greater,
        Comparison::GreaterEqual => Relation::GreaterEqual,
        Comparison::Equal => Relation::Equal,
        Comparison::NotEqual => Relation::NotEqual,
    }
}
