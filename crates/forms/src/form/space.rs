//! Function spaces.

use super::FormError;
use kingpost_fem::element::{CellShape, ComposedElement, ElementError, ElementFamily, FiniteElement};
use kingpost_fem::element::{LagrangeElement, LagrangeVariant, Pullback};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A space of piecewise polynomials on a mesh of one cell shape.
///
/// ```
/// use kingpost_fem::element::{CellShape, ElementFamily};
/// use kingpost_forms::form::FunctionSpace;
///
/// let cell = CellShape::Triangle;
/// let flux = FunctionSpace::of(cell, ElementFamily::BrezziDouglasMarini, 1);
/// let pressure = FunctionSpace::discontinuous(cell, 0);
/// let space = FunctionSpace::mixed(cell, [flux, pressure]);
/// assert_eq!(space.components(), 3);
/// assert_eq!(space.element()?.n_dofs(), 7);
/// # Ok::<(), kingpost_fem::element::ElementError>(())
/// ```
///
/// Whether its element exists is checked when it is used: see [`FunctionSpace::element`].
///
/// # Source
/// Kulkarni & Klöckner 2025, section 2.1 (equation 8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionSpace {
    cell: CellShape,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Element { family: ElementFamily, degree: usize, is_discontinuous: bool },
    Blocked(Arc<FunctionSpace>, usize),
    Mixed(Arc<[FunctionSpace]>),
}

const EQUISPACED: ElementFamily = ElementFamily::Lagrange(LagrangeVariant::Equispaced);

impl FunctionSpace {
    /// Continuous scalar Lagrange elements of a degree, with equispaced nodes: P on simplices, Q on
    /// squares and cubes.
    pub fn scalar(cell: CellShape, degree: usize) -> Self {
        Self::of(cell, EQUISPACED, degree)
    }

    /// Vectors of [`FunctionSpace::scalar`]: as many components as the cell has dimensions.
    pub fn vector(cell: CellShape, degree: usize) -> Self {
        Self::blocked(&Self::scalar(cell, degree), cell.dim())
    }

    /// Elements of a family, as continuous as the family is.
    pub fn of(cell: CellShape, family: ElementFamily, degree: usize) -> Self {
        Self { cell, kind: Kind::Element { family, degree, is_discontinuous: false } }
    }

    /// Discontinuous scalar Lagrange elements with equispaced nodes; degree 0 is constants.
    pub fn discontinuous(cell: CellShape, degree: usize) -> Self {
        Self::discontinuous_of(cell, EQUISPACED, degree)
    }

    /// Elements of a family whose degrees of freedom all belong to the cell.
    pub fn discontinuous_of(cell: CellShape, family: ElementFamily, degree: usize) -> Self {
        Self { cell, kind: Kind::Element { family, degree, is_discontinuous: true } }
    }

    /// `count` functions of a space, with the components of a degree of freedom innermost.
    pub fn blocked(space: &Self, count: usize) -> Self {
        Self { cell: space.cell, kind: Kind::Blocked(Arc::new(space.clone()), count) }
    }

    /// One function of each space, the degrees of freedom of the spaces one after the other. The
    /// functions are the [`split`](super::split) of one in this space.
    pub fn mixed(cell: CellShape, parts: impl IntoIterator<Item = Self>) -> Self {
        Self { cell, kind: Kind::Mixed(parts.into_iter().collect()) }
    }

    /// The cells the space lives on.
    pub fn cell(&self) -> CellShape {
        self.cell
    }

    /// Polynomial degree: the highest of its parts.
    pub fn degree(&self) -> usize {
        match &self.kind {
            Kind::Element { degree, .. } => *degree,
            Kind::Blocked(space, _) => space.degree(),
            Kind::Mixed(parts) => parts.iter().map(Self::degree).max().unwrap_or(0),
        }
    }

    /// Polynomial degree of a component.
    pub fn component_degree(&self, component: usize) -> usize {
        match &self.kind {
            Kind::Element { degree, .. } => *degree,
            Kind::Blocked(space, _) => space.component_degree(component % space.components().max(1)),
            Kind::Mixed(parts) => {
                let mut first = 0;
                let part = parts.iter().find(|part| {
                    first += part.components();
                    component < first
                });
                part.map_or(0, |p| p.component_degree(component + p.components() - first))
            }
        }
    }

    /// Dimension of the cells.
    pub fn dim(&self) -> usize {
        self.cell.dim()
    }

    /// Whether its functions are vectors.
    pub fn is_vector(&self) -> bool {
        match &self.kind {
            Kind::Element { family, .. } => family.pullback() != Pullback::Identity,
            Kind::Blocked(..) | Kind::Mixed(_) => true,
        }
    }

    /// Values of a function at a point.
    pub fn components(&self) -> usize {
        match &self.kind {
            Kind::Element { family, .. } => match family.pullback() {
                Pullback::Identity => 1,
                Pullback::ContravariantPiola | Pullback::CovariantPiola => self.dim(),
            },
            Kind::Blocked(space, count) => space.components() * count,
            Kind::Mixed(parts) => parts.iter().map(Self::components).sum(),
        }
    }

    /// The spaces of a mixed space; else the space itself.
    pub fn parts(&self) -> &[Self] {
        match &self.kind {
            Kind::Mixed(parts) => parts,
            Kind::Element { .. } | Kind::Blocked(..) => std::slice::from_ref(self),
        }
    }

    /// The element of a cell.
    ///
    /// # Errors
    /// [`ElementError`] if the family or the degree does not exist on the cells, a mixed space has
    /// no parts or parts on other cells, or a blocked one no components.
    pub fn element(&self) -> Result<ComposedElement, ElementError> {
        match &self.kind {
            Kind::Element { family, degree, is_discontinuous: false } => {
                Ok(FiniteElement::new(self.cell, *family, *degree)?.into())
            }
            Kind::Element { family, degree, is_discontinuous: true } => {
                Ok(FiniteElement::discontinuous(self.cell, *family, *degree)?.into())
            }
            Kind::Blocked(space, count) => ComposedElement::blocked(space.element()?, *count),
            Kind::Mixed(parts) => {
                let other = parts.iter().find(|part| part.cell != self.cell);
                if let Some(other) = other {
                    return Err(ElementError::MixedShapes { first: self.cell, second: other.cell });
                }
                ComposedElement::mixed(parts.iter().map(Self::element).collect::<Result<_, _>>()?)
            }
        }
    }

    /// The space whose degrees of freedom are numbered, and the number of components that each has.
    pub fn base(&self) -> (&Self, usize) {
        match &self.kind {
            Kind::Blocked(space, count) => (space, *count),
            Kind::Element { .. } | Kind::Mixed(_) => (self, 1),
        }
    }

    /// The degree, if these are continuous Lagrange elements with equispaced nodes, or vectors of
    /// as many of them as the cell has dimensions.
    pub fn lagrange_degree(&self) -> Option<usize> {
        let (base, block) = self.base();
        match base.kind {
            Kind::Element { family: EQUISPACED, degree, is_discontinuous: false } => {
                (block == 1 || block == self.dim()).then_some(degree)
            }
            Kind::Element { .. } | Kind::Blocked(..) | Kind::Mixed(_) => None,
        }
    }

    /// Refuses what [`lower`](crate::lowering::lower) and the reference do not take.
    pub(crate) fn check_lagrange(&self) -> Result<(), FormError> {
        match self.cell() {
            CellShape::Triangle | CellShape::Tetrahedron => {}
            CellShape::Interval
            | CellShape::Quadrilateral
            | CellShape::Hexahedron
            | CellShape::Prism
            | CellShape::Pyramid => {
                return Err(FormError::Cells { place: "the form" });
            }
        }
        let Some(degree) = self.lagrange_degree() else {
            return Err(FormError::Discretisation(format!(
                "`{self}` has neither strategies of its own nor a reference, needed continuous Lagrange \
                 elements with equispaced nodes; take `tabulate` and `lower_tabulated` instead of `lower`"
            )));
        };
        let max = LagrangeElement::max_degree(self.cell());
        if !(1..=max).contains(&degree) {
            let message = format!("`{self}` is not supported, needed degree 1 to {max}");
            return Err(FormError::Discretisation(message));
        }
        Ok(())
    }

    /// How each group of components maps to cells.
    pub(crate) fn pullbacks(&self) -> Vec<(Pullback, Range<usize>)> {
        let shifted = |parts: Vec<(Pullback, Range<usize>)>, by: usize| {
            parts.into_iter().map(move |(pullback, r)| (pullback, r.start + by..r.end + by))
        };
        match &self.kind {
            Kind::Element { family, .. } => vec![(family.pullback(), 0..self.components())],
            Kind::Blocked(space, count) => {
                (0..*count).flat_map(|c| shifted(space.pullbacks(), c * space.components())).collect()
            }
            Kind::Mixed(parts) => {
                let mut first = 0;
                let mut all = Vec::new();
                for part in parts.iter() {
                    all.extend(shifted(part.pullbacks(), first));
                    first += part.components();
                }
                all
            }
        }
    }

    /// A word for names in kernels: `p2`, `dp0`, `rt1`, `p2x3_p1`.
    pub(crate) fn label(&self) -> String {
        match &self.kind {
            Kind::Element { family, degree, is_discontinuous } => {
                element_label(*family, *degree, *is_discontinuous)
            }
            Kind::Blocked(space, count) => format!("{}x{count}", space.label()),
            Kind::Mixed(parts) => parts.iter().map(Self::label).collect::<Vec<_>>().join("_"),
        }
    }

    fn describe(&self) -> String {
        match &self.kind {
            Kind::Element { family: EQUISPACED, degree, is_discontinuous } => {
                let letter = match self.cell {
                    CellShape::Quadrilateral | CellShape::Hexahedron => "Q",
                    CellShape::Interval
                    | CellShape::Triangle
                    | CellShape::Tetrahedron
                    | CellShape::Prism
                    | CellShape::Pyramid => "P",
                };
                format!("{}{letter}{degree}", if *is_discontinuous { "discontinuous " } else { "" })
            }
            Kind::Element { family, degree, is_discontinuous } => {
                format!("{}{family} {degree}", if *is_discontinuous { "discontinuous " } else { "" })
            }
            Kind::Blocked(space, count) if *count == self.dim() => format!("vector {}", space.describe()),
            Kind::Blocked(space, count) => format!("{count} of {}", space.describe()),
            Kind::Mixed(parts) => {
                format!("({})", parts.iter().map(Self::describe).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A word for an element that is made of no others.
pub(crate) fn element_label(family: ElementFamily, degree: usize, is_discontinuous: bool) -> String {
    let d = if is_discontinuous { "d" } else { "" };
    match family {
        EQUISPACED => format!("{d}p{degree}"),
        ElementFamily::Lagrange(variant) => format!("{d}p{degree}_{variant}"),
        ElementFamily::Bubble => format!("{d}b{degree}"),
        ElementFamily::RaviartThomas => format!("{d}rt{degree}"),
        ElementFamily::BrezziDouglasMarini => format!("{d}bdm{degree}"),
        ElementFamily::NedelecFirst => format!("{d}n1curl{degree}"),
        ElementFamily::NedelecSecond => format!("{d}n2curl{degree}"),
    }
}

impl fmt::Display for FunctionSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on a {}", self.describe(), self.cell)
    }
}
