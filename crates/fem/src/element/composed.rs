//! Elements made of others: several values of one, and mixed ones.

use super::jets::derivatives;
use super::{CellShape, ElementError, ElementTable, FiniteElement};

/// An element that may be made of others.
///
/// ```
/// use kingpost_fem::element::{CellShape, ComposedElement, FiniteElement};
/// use kingpost_fem::element::{ElementFamily, LagrangeVariant};
///
/// // Taylor–Hood: quadratic velocities, linear pressure
/// let p = |degree| {
///     let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
///     FiniteElement::new(CellShape::Triangle, family, degree)
/// };
/// let velocity = ComposedElement::blocked(p(2)?.into(), 2)?;
/// let element = ComposedElement::mixed(vec![velocity, p(1)?.into()])?;
/// assert_eq!((element.n_dofs(), element.value_size()), (15, 3));
/// let pressure = &element.parts()[2];
/// assert_eq!((pressure.offset, pressure.stride, pressure.component), (12, 1, 2));
/// # Ok::<(), kingpost_fem::element::ElementError>(())
/// ```
///
/// # Source
/// Blocked and mixed elements of basix's UFL interface: a block's components run fastest among its
/// degrees of freedom, the parts of a mixed element follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposedElement {
    shape: CellShape,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Single(Box<FiniteElement>),
    Blocked(Box<ComposedElement>, usize),
    Mixed(Vec<ComposedElement>),
}

/// A part of an element that is made of no others.
#[derive(Clone, Copy, Debug)]
pub struct ElementPart<'a> {
    /// The element of the part.
    pub element: &'a FiniteElement,
    /// Degree of freedom `i` of the part is number `offset + stride * i`.
    pub offset: usize,
    /// See `offset`.
    pub stride: usize,
    /// The first component of the part's reference value.
    pub component: usize,
}

impl From<FiniteElement> for ComposedElement {
    fn from(element: FiniteElement) -> Self {
        Self { shape: element.shape(), kind: Kind::Single(Box::new(element)) }
    }
}

impl ComposedElement {
    /// `count` values of one element: component `c` of degree of freedom `i` is number
    /// `count * i + c`.
    ///
    /// # Errors
    /// [`ElementError::NoParts`] if `count` is 0.
    pub fn blocked(element: Self, count: usize) -> Result<Self, ElementError> {
        match count {
            0 => Err(ElementError::NoParts),
            _ => Ok(Self { shape: element.shape, kind: Kind::Blocked(Box::new(element), count) }),
        }
    }

    /// The parts one after the other.
    ///
    /// # Errors
    /// [`ElementError::NoParts`] if there are none, [`ElementError::MixedShapes`] if they are on
    /// different cells.
    pub fn mixed(parts: Vec<Self>) -> Result<Self, ElementError> {
        let first = parts.first().ok_or(ElementError::NoParts)?.shape;
        match parts.iter().find(|part| part.shape != first) {
            Some(part) => Err(ElementError::MixedShapes { first, second: part.shape }),
            None => Ok(Self { shape: first, kind: Kind::Mixed(parts) }),
        }
    }

    /// The reference cell.
    #[must_use]
    pub const fn shape(&self) -> CellShape {
        self.shape
    }

    /// The number of basis functions.
    #[must_use]
    pub fn n_dofs(&self) -> usize {
        match &self.kind {
            Kind::Single(element) => element.n_dofs(),
            Kind::Blocked(element, count) => element.n_dofs() * count,
            Kind::Mixed(parts) => parts.iter().map(Self::n_dofs).sum(),
        }
    }

    /// The number of components of a reference value.
    #[must_use]
    pub fn value_size(&self) -> usize {
        match &self.kind {
            Kind::Single(element) => element.value_size(),
            Kind::Blocked(element, count) => element.value_size() * count,
            Kind::Mixed(parts) => parts.iter().map(Self::value_size).sum(),
        }
    }

    /// The parts that are made of no others, in the order of their components.
    #[must_use]
    pub fn parts(&self) -> Vec<ElementPart<'_>> {
        match &self.kind {
            Kind::Single(element) => vec![ElementPart { element, offset: 0, stride: 1, component: 0 }],
            Kind::Blocked(element, count) => {
                let (inner, size) = (element.parts(), element.value_size());
                let block = |c: usize| {
                    inner.clone().into_iter().map(move |part| ElementPart {
                        offset: part.offset * count + c,
                        stride: part.stride * count,
                        component: part.component + c * size,
                        ..part
                    })
                };
                (0..*count).flat_map(block).collect()
            }
            Kind::Mixed(parts) => {
                let (mut dofs, mut components) = (0, 0);
                let mut list = Vec::new();
                for part in parts {
                    list.extend(part.parts().into_iter().map(|inner| ElementPart {
                        offset: inner.offset + dofs,
                        component: inner.component + components,
                        ..inner
                    }));
                    dofs += part.n_dofs();
                    components += part.value_size();
                }
                list
            }
        }
    }

    /// The degrees of freedom that belong to the interior of entity `entity` of dimension `dim`;
    /// empty if there is no such entity.
    #[must_use]
    pub fn entity_dofs(&self, dim: usize, entity: usize) -> Vec<usize> {
        match &self.kind {
            Kind::Single(element) => element.entity_dofs(dim, entity).collect(),
            Kind::Blocked(element, count) => {
                let blocks = element.entity_dofs(dim, entity).into_iter();
                blocks.flat_map(|dof| dof * count..(dof + 1) * count).collect()
            }
            Kind::Mixed(parts) => {
                let mut first = 0;
                let mut list = Vec::new();
                for part in parts {
                    list.extend(part.entity_dofs(dim, entity).into_iter().map(|dof| first + dof));
                    first += part.n_dofs();
                }
                list
            }
        }
    }

    /// Values and all derivatives of at most `order` of all basis functions, each 0 in the
    /// components that are not its part's.
    ///
    /// # Errors
    /// As [`FiniteElement::tabulate`].
    pub fn tabulate(&self, points: &[f64], order: usize) -> Result<ElementTable, ElementError> {
        let (n_dofs, value_size) = (self.n_dofs(), self.value_size());
        let derivatives = derivatives(self.shape.dim(), order);
        let n_points = points.len() / self.shape.dim();
        let mut values = vec![0.0; derivatives.len() * n_points * n_dofs * value_size];
        for part in self.parts() {
            let table = part.element.tabulate(points, order)?;
            for (row, value) in table.values.chunks_exact(table.value_size).enumerate() {
                let (sample, dof) = (row / table.n_dofs, row % table.n_dofs);
                let place = sample * n_dofs + part.offset + part.stride * dof;
                let at = place * value_size + part.component;
                values[at..at + value.len()].copy_from_slice(value);
            }
        }
        Ok(ElementTable { derivatives, n_points, n_dofs, value_size, values })
    }
}
