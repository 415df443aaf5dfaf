//! Elements of any family: a polynomial space, and functionals that number a basis of it.

use nalgebra::{DMatrix, Dyn, LU};

use super::functionals::{Evaluations, Functionals, exact};
use super::jets::derivatives;
use super::lattice::{Lattice, interval_points};
use super::orthonormal::{exponents, orthonormal_derivatives, space_dimension};
use super::space::Span;
use super::{CellShape, ElementError, ElementFamily, LagrangeVariant, Pullback};

/// Basis functions and their derivatives at some points, on the reference cell.
///
/// Entries below 1e-14 of the largest of their derivative and component are 0, entries as near to
/// ±1 are ±1.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementTable {
    /// The exponents of each derivative along the reference axes, in the order of [`derivatives`].
    pub derivatives: Vec<[usize; 3]>,
    /// The number of points.
    pub n_points: usize,
    /// The number of basis functions.
    pub n_dofs: usize,
    /// The number of components of a value.
    pub value_size: usize,
    /// [derivatives, points, dofs, components] row-major.
    pub values: Vec<f64>,
}

impl ElementTable {
    /// One entry; 0 outside the table.
    #[must_use]
    pub fn value(&self, derivative: usize, point: usize, dof: usize, component: usize) -> f64 {
        let row = (derivative * self.n_points + point) * self.n_dofs + dof;
        self.values.get(row * self.value_size + component).copied().unwrap_or_default()
    }

    /// One component of one derivative, [points, dofs] row-major.
    #[must_use]
    pub fn component(&self, derivative: usize, component: usize) -> Vec<f64> {
        let size = self.n_points * self.n_dofs;
        let rows = self.values.chunks_exact(self.value_size).skip(derivative * size).take(size);
        rows.map(|value| value[component]).collect()
    }
}

/// How basis functions follow from orthonormal polynomials.
#[derive(Clone, Debug, PartialEq)]
enum Basis {
    /// [components × polynomials, dofs].
    Dense(DMatrix<f64>),
    /// Products of functions of one coordinate each: [polynomials, functions] of a line, and which
    /// function of the line each degree of freedom has along each axis.
    Product { line: DMatrix<f64>, places: Vec<[usize; 3]> },
}

/// An element: polynomials on a reference cell, and functionals that are its degrees of freedom.
///
/// The order of degrees of freedom is basix's: by entity, vertices first. A function of a
/// discontinuous element has the same degrees of freedom, all of which belong to the cell.
///
/// ```
/// use kingpost_fem::element::{CellShape, ElementFamily, FiniteElement, Pullback};
///
/// let element = FiniteElement::new(CellShape::Triangle, ElementFamily::RaviartThomas, 1)?;
/// assert_eq!((element.n_dofs(), element.value_size()), (3, 2));
/// assert_eq!(element.pullback(), Pullback::ContravariantPiola);
/// let table = element.tabulate(&[0.0, 0.0], 0)?;
/// assert_eq!(table.component(0, 1), [0.0, 0.0, 1.0]); // the field of the edge on the first axis
/// # Ok::<(), kingpost_fem::element::ElementError>(())
/// ```
///
/// # Source
/// Scroggs et al. 2022 (Basix): the definition by spaces and functionals, and the families as in
/// DefElement.
#[derive(Clone, Debug, PartialEq)]
pub struct FiniteElement {
    shape: CellShape,
    family: ElementFamily,
    degree: usize,
    discontinuous: bool,
    value_size: usize,
    /// By the dimension of the entity.
    functionals: Vec<Option<Functionals>>,
    basis: Basis,
}

/// Entries of a table whose size is below this part of the table's largest are rounding noise and
/// become 0; entries as near to 1 or -1 become exactly that. Against exact values the noise is at
/// most 5e-15 of the largest entry (triangle P7; 200 random points and the nodes); a true entry is
/// this small only within about 1e-14 of a zero of its function.
const NOISE: f64 = 1e-14;

impl FiniteElement {
    /// The element of a family and degree whose functions are as continuous as the family's.
    ///
    /// # Errors
    /// [`ElementError`] if the family does not exist on the shape, the degree is out of range, or
    /// the degrees of freedom can make nothing continuous.
    pub fn new(shape: CellShape, family: ElementFamily, degree: usize) -> Result<Self, ElementError> {
        if degree == 0 || family == ElementFamily::Lagrange(LagrangeVariant::Legendre) {
            check(shape, family, degree)?;
            return Err(ElementError::Discontinuous { family, degree });
        }
        Self::build(shape, family, degree, false)
    }

    /// The same element, continuous nowhere: degree 0 is the constants.
    ///
    /// # Errors
    /// As [`FiniteElement::new`].
    pub fn discontinuous(
        shape: CellShape,
        family: ElementFamily,
        degree: usize,
    ) -> Result<Self, ElementError> {
        Self::build(shape, family, degree, true)
    }

    fn build(
        shape: CellShape,
        family: ElementFamily,
        degree: usize,
        discontinuous: bool,
    ) -> Result<Self, ElementError> {
        check(shape, family, degree)?;
        let functionals = functionals(shape, family, degree)?;
        let vector = family.pullback() != Pullback::Identity;
        let value_size = if vector { shape.dim() } else { 1 };
        let singular = || ElementError::Singular { shape, degree };
        let basis = match (family, shape.is_product() && !shape.is_simplex()) {
            (ElementFamily::Lagrange(variant), true) => {
                product_basis(shape, variant, degree, &functionals).ok_or_else(singular)?
            }
            (
                ElementFamily::Lagrange(_)
                | ElementFamily::Bubble
                | ElementFamily::RaviartThomas
                | ElementFamily::BrezziDouglasMarini
                | ElementFamily::NedelecFirst
                | ElementFamily::NedelecSecond,
                _,
            ) => {
                let dual = dual_matrix(shape, degree, value_size, &functionals);
                let coefficients = match span(shape, family, degree)? {
                    None => refined_inverse(&dual),
                    Some(span) => {
                        let inverse = refined_inverse(&(dual * span.rows.transpose()));
                        inverse.map(|inverse| span.rows.transpose() * inverse)
                    }
                };
                Basis::Dense(coefficients.ok_or_else(singular)?)
            }
        };
        Ok(Self { shape, family, degree, discontinuous, value_size, functionals, basis })
    }

    /// The reference cell.
    #[must_use]
    pub const fn shape(&self) -> CellShape {
        self.shape
    }

    /// The family.
    #[must_use]
    pub const fn family(&self) -> ElementFamily {
        self.family
    }

    /// The degree: the highest of a polynomial in the space, in each coordinate on squares and
    /// cubes, in those of the triangle and along it on prisms.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// Whether all degrees of freedom belong to the cell.
    #[must_use]
    pub const fn is_discontinuous(&self) -> bool {
        self.discontinuous
    }

    /// The number of components of a value: 1, or the dimension of the cell.
    #[must_use]
    pub const fn value_size(&self) -> usize {
        self.value_size
    }

    /// How values map to cells.
    #[must_use]
    pub const fn pullback(&self) -> Pullback {
        self.family.pullback()
    }

    /// The number of basis functions.
    #[must_use]
    pub fn n_dofs(&self) -> usize {
        match &self.basis {
            Basis::Dense(coefficients) => coefficients.ncols(),
            Basis::Product { places, .. } => places.len(),
        }
    }

    /// The nodes, [dofs, dim] row-major, if degrees of freedom are values at points: basis function
    /// `i` is 1 at node `i` and 0 at the others.
    #[must_use]
    pub fn points(&self) -> Option<Vec<f64>> {
        let all = self.functionals.iter().flatten().all(Functionals::are_points);
        all.then(|| self.evaluations().into_iter().flat_map(|on| on.points).collect())
    }

    /// How many degrees of freedom belong to the interior of each entity of dimension `dim`, of the faces
    /// of a prism or pyramid to that of each square: triangles have none.
    #[must_use]
    pub fn dofs_per_entity(&self, dim: usize) -> usize {
        match (self.discontinuous, dim == self.shape.dim()) {
            (true, true) => self.n_dofs(),
            (true, false) => 0,
            (false, _) => self.count(dim),
        }
    }

    /// How many functionals are defined on each entity of dimension `dim`.
    fn count(&self, dim: usize) -> usize {
        self.functionals.get(dim).and_then(Option::as_ref).map_or(0, Functionals::len)
    }

    /// The degrees of freedom that belong to the interior of entity `entity` of dimension `dim`;
    /// empty if there is no such entity.
    #[must_use]
    pub fn entity_dofs(&self, dim: usize, entity: usize) -> std::ops::Range<usize> {
        let of_shape = |dim| self.shape.entities_of_shape(dim);
        let Some(vertices) = self.shape.entities(dim).get(entity) else { return 0..0 };
        let Some(place) = of_shape(dim).iter().position(|own| own == vertices) else { return 0..0 };
        let lower: usize = (0..dim).map(|d| self.dofs_per_entity(d) * of_shape(d).len()).sum();
        let start = lower + place * self.dofs_per_entity(dim);
        start..start + self.dofs_per_entity(dim)
    }

    fn evaluations(&self) -> Vec<Evaluations> {
        evaluations(self.shape, &self.functionals)
    }

    /// What the functionals of an entity, taken in another order of its vertices, make of that
    /// entity's own basis functions: [functionals, functions].
    pub(super) fn reoriented(&self, dim: usize, entity: usize, order: &[usize]) -> Option<DMatrix<f64>> {
        let functionals = self.functionals.get(dim)?.as_ref()?;
        let own = self.shape.entities_of_shape(dim).get(entity)?;
        let dofs = self.entity_dofs(dim, self.shape.entities(dim).iter().position(|all| all == own)?);
        let vertices: Vec<usize> = order.iter().map(|i| own[*i]).collect();
        let on = functionals.on(self.shape, &vertices);
        let table = self.tabulate(&on.points, 0).ok()?;
        let entry = |functional: usize, dof: usize| match &on.weights {
            None => table.value(0, functional, dof, 0),
            Some(weights) => {
                let components = weights[functional].iter().enumerate();
                let sums = components.map(|(c, row)| {
                    let terms = row.iter().enumerate();
                    terms.map(|(point, w)| w * table.value(0, point, dof, c)).sum::<f64>()
                });
                sums.sum()
            }
        };
        let matrix = DMatrix::from_fn(functionals.len(), dofs.len(), |i, j| entry(i, dofs.start + j));
        let mut values = matrix.as_slice().to_vec();
        snap(&mut values, ORIENTATION_NOISE);
        Some(DMatrix::from_vec(matrix.nrows(), matrix.ncols(), values))
    }

    /// Values and all derivatives of at most `order` of all basis functions.
    ///
    /// # Shapes and units
    /// `points` is [points, dim] row-major in reference coordinates; they may lie outside the cell.
    ///
    /// # Errors
    /// [`ElementError::Points`] if the length of `points` is not a multiple of the dimension.
    pub fn tabulate(&self, points: &[f64], order: usize) -> Result<ElementTable, ElementError> {
        let dim = self.shape.dim();
        if !points.len().is_multiple_of(dim) {
            return Err(ElementError::Points { length: points.len(), dim });
        }
        let derivatives = derivatives(dim, order);
        let tables = match &self.basis {
            Basis::Dense(coefficients) => self.tabulate_dense(coefficients, points, order),
            Basis::Product { line, places } => {
                self.tabulate_product(line, places, points, order, &derivatives)
            }
        };
        let values = tables.into_iter().flatten().collect();
        let (n_points, n_dofs, value_size) = (points.len() / dim, self.n_dofs(), self.value_size);
        Ok(ElementTable { derivatives, n_points, n_dofs, value_size, values })
    }

    /// [derivatives], each [points, dofs, components].
    fn tabulate_dense(&self, coefficients: &DMatrix<f64>, points: &[f64], order: usize) -> Vec<Vec<f64>> {
        let n_points = points.len() / self.shape.dim();
        let n = space_dimension(self.shape, self.degree);
        let size = self.value_size;
        let expand = |table: Vec<f64>| {
            let basis = DMatrix::from_row_slice(n_points, n, &table);
            let mut values = vec![0.0; n_points * self.n_dofs() * size];
            for component in 0..size {
                // nalgebra stores by column, so the transpose's storage is the row-major table.
                let mut part = (&basis * coefficients.rows(component * n, n)).transpose().as_slice().to_vec();
                snap(&mut part, NOISE);
                let places = values.iter_mut().skip(component).step_by(size);
                places.zip(part).for_each(|(place, value)| *place = value);
            }
            values
        };
        orthonormal_derivatives(self.shape, self.degree, points, order).into_iter().map(expand).collect()
    }

    /// [derivatives], each [points, dofs].
    fn tabulate_product(
        &self,
        line: &DMatrix<f64>,
        places: &[[usize; 3]],
        points: &[f64],
        order: usize,
        derivatives: &[[usize; 3]],
    ) -> Vec<Vec<f64>> {
        let dim = self.shape.dim();
        let n = self.degree + 1;
        let along = |axis: usize| -> Vec<Vec<f64>> {
            let xs: Vec<f64> = points.iter().skip(axis).step_by(dim).copied().collect();
            let tables = orthonormal_derivatives(CellShape::Interval, self.degree, &xs, order);
            let expand = |t: Vec<f64>| {
                (DMatrix::from_row_slice(xs.len(), n, &t) * line).transpose().as_slice().to_vec()
            };
            tables.into_iter().map(expand).collect()
        };
        let axes: Vec<_> = (0..dim).map(along).collect();
        let table = |exponents: &[usize; 3]| {
            let n_points = points.len() / dim;
            // 20 million entries at Q15: one loop an axis, without iterators inside
            let mut table = vec![1.0; n_points * places.len()];
            for (row, q) in table.chunks_exact_mut(places.len().max(1)).zip(0..) {
                for (axis, (lines, d)) in axes.iter().zip(exponents).enumerate() {
                    let line = &lines[*d][q * n..(q + 1) * n];
                    for (entry, place) in row.iter_mut().zip(places) {
                        *entry *= line[place[axis]];
                    }
                }
            }
            snap(&mut table, NOISE);
            table
        };
        derivatives.iter().map(table).collect()
    }

    /// Integrals of the tangential part against the basis, of a vector element, of functions of at
    /// most degree `of`.
    fn functionals_against(&self, of: usize) -> Result<Functionals, ElementError> {
        let rule = exact(self.shape(), self.degree() + of)?;
        let table = self.tabulate(&rule.points, 0)?;
        let weighted = |dof: usize, component: usize| {
            let values = rule.weights.iter().enumerate();
            values.map(|(point, w)| w * table.value(0, point, dof, component)).collect()
        };
        let row = |dof: usize| (0..table.value_size).map(|c| weighted(dof, c)).collect();
        let weights = Some((0..table.n_dofs).map(row).collect());
        Ok(Functionals::tangential_at(&rule, weights))
    }
}

/// Moments of moments are sums of some hundred terms.
const ORIENTATION_NOISE: f64 = 1e-12;

fn check(shape: CellShape, family: ElementFamily, degree: usize) -> Result<(), ElementError> {
    let Some((min, max)) = family.degrees(shape) else { return Err(ElementError::Shape { family, shape }) };
    match (min..=max).contains(&degree) {
        true => Ok(()),
        false => Err(ElementError::FamilyDegree { family, shape, degree, min, max }),
    }
}

/// The functionals of each dimension of entities.
fn functionals(
    shape: CellShape,
    family: ElementFamily,
    degree: usize,
) -> Result<Vec<Option<Functionals>>, ElementError> {
    let dim = shape.dim();
    let mut list: Vec<Option<Functionals>> = vec![None; dim + 1];
    let facet = shape.entity_shape(dim - 1);
    match family {
        ElementFamily::Lagrange(LagrangeVariant::Legendre) => {
            list[dim] = Some(Functionals::against_legendre(shape, degree)?);
        }
        ElementFamily::Lagrange(_) if degree == 0 => list[dim] = Some(Functionals::at_centroid(shape)),
        ElementFamily::Lagrange(variant) => {
            let lattice = lattice(variant);
            let on = |d| Some(Functionals::at_points(shape.entity_shape(d), degree, lattice));
            list = (0..=dim).map(on).collect();
        }
        ElementFamily::Bubble => {
            list[dim] = Some(Functionals::at_points(Some(shape), degree, Lattice::Equispaced));
        }
        ElementFamily::RaviartThomas => {
            list[dim - 1] = facet.map(|f| Functionals::normal(f, degree - 1, degree)).transpose()?;
            if degree > 1 {
                list[dim] = Some(Functionals::tangential(shape, degree - 2, degree)?);
            }
        }
        ElementFamily::BrezziDouglasMarini => {
            list[dim - 1] = facet.map(|f| Functionals::normal(f, degree, degree)).transpose()?;
            if degree > 1 {
                let space = FiniteElement::discontinuous(shape, ElementFamily::NedelecFirst, degree - 1)?;
                list[dim] = Some(space.functionals_against(degree)?);
            }
        }
        ElementFamily::NedelecFirst => {
            for d in (1..=dim).take_while(|d| *d <= degree) {
                let on = shape.entity_shape(d).map(|s| Functionals::tangential(s, degree - d, degree));
                list[d] = on.transpose()?;
            }
        }
        ElementFamily::NedelecSecond => {
            list[1] = Some(Functionals::tangential(CellShape::Interval, degree, degree)?);
            for d in (2..=dim).take_while(|d| *d <= degree) {
                let Some(on) = shape.entity_shape(d) else { continue };
                let space = FiniteElement::discontinuous(on, ElementFamily::RaviartThomas, degree + 1 - d)?;
                list[d] = Some(space.functionals_against(degree)?);
            }
        }
    }
    Ok(list)
}

/// The points of a variant; Gauss–Lobatto of one that has none.
const fn lattice(variant: LagrangeVariant) -> Lattice {
    match variant {
        LagrangeVariant::Equispaced => Lattice::Equispaced,
        LagrangeVariant::GllWarped | LagrangeVariant::Legendre => Lattice::GllWarped,
        LagrangeVariant::GllIsaac => Lattice::GllIsaac,
    }
}

/// The space of a family; none if it is all polynomials of the degree.
fn span(shape: CellShape, family: ElementFamily, degree: usize) -> Result<Option<Span>, ElementError> {
    match family {
        ElementFamily::Lagrange(_) | ElementFamily::BrezziDouglasMarini | ElementFamily::NedelecSecond => {
            Ok(None)
        }
        ElementFamily::Bubble => Span::bubble(shape, degree).map(Some),
        ElementFamily::RaviartThomas => Span::raviart_thomas(shape, degree).map(Some),
        ElementFamily::NedelecFirst => Span::nedelec_first(shape, degree).map(Some),
    }
}

/// The functionals of all entities, in the order of degrees of freedom.
fn evaluations(shape: CellShape, functionals: &[Option<Functionals>]) -> Vec<Evaluations> {
    let by_dim = functionals.iter().enumerate().filter_map(|(dim, f)| Some((dim, f.as_ref()?)));
    by_dim.flat_map(|(dim, f)| shape.entities_of_shape(dim).iter().map(|v| f.on(shape, v))).collect()
}

/// What the functionals make of the orthonormal polynomials: [dofs, components × polynomials].
fn dual_matrix(
    shape: CellShape,
    degree: usize,
    value_size: usize,
    functionals: &[Option<Functionals>],
) -> DMatrix<f64> {
    let n = space_dimension(shape, degree);
    let mut rows: Vec<f64> = Vec::new();
    let mut count = 0;
    for on in evaluations(shape, functionals) {
        let values = orthonormal_derivatives(shape, degree, &on.points, 0).swap_remove(0);
        let Some(weights) = on.weights else {
            count += values.len() / n;
            rows.extend(values);
            continue;
        };
        count += weights.len();
        for row in weights.iter().flatten() {
            let mut sums = vec![0.0; n];
            for (w, values) in row.iter().zip(values.chunks_exact(n)) {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += w * value);
            }
            rows.extend(sums);
        }
    }
    DMatrix::from_row_slice(count, value_size * n, &rows)
}

/// The Lagrange element of a square or cube by one inverse on a line; none if that is singular.
fn product_basis(
    shape: CellShape,
    variant: LagrangeVariant,
    degree: usize,
    functionals: &[Option<Functionals>],
) -> Option<Basis> {
    let n = degree + 1;
    if variant == LagrangeVariant::Legendre {
        return Some(Basis::Product { line: DMatrix::identity(n, n), places: exponents(shape, degree) });
    }
    let nodes = interval_points(degree, lattice(variant));
    let values = orthonormal_derivatives(CellShape::Interval, degree, &nodes, 0).swap_remove(0);
    let line = refined_inverse(&DMatrix::from_row_slice(n, n, &values))?;
    let nearest = |x: f64| {
        let distance = |i: &usize| (nodes[*i] - x).abs();
        (0..n).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    };
    let points: Vec<f64> = evaluations(shape, functionals).into_iter().flat_map(|on| on.points).collect();
    let place = |point: &[f64]| std::array::from_fn(|axis| point.get(axis).map_or(0, |x| nearest(*x)));
    Some(Basis::Product { line, places: points.chunks_exact(shape.dim()).map(place).collect() })
}

/// The inverse of a well-conditioned matrix, with one step of iterative refinement; none if it is
/// singular.
fn refined_inverse(matrix: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    if !matrix.is_square() {
        return None;
    }
    let lu: LU<f64, Dyn, Dyn> = matrix.clone().lu();
    let inverse = lu.try_inverse()?;
    let identity = DMatrix::identity(matrix.nrows(), matrix.ncols());
    Some(&inverse + &inverse * (identity - matrix * &inverse))
}

fn snap(table: &mut [f64], noise: f64) {
    let noise = noise * table.iter().fold(0.0_f64, |largest, v| largest.max(v.abs()));
    for value in table {
        let size = value.abs();
        if size <= noise {
            *value = 0.0;
        } else if (size - 1.0).abs() <= noise {
            *value = value.signum();
        }
    }
}
