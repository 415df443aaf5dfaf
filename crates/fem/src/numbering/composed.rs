//! Numbering of elements that are made of others.

use super::lists::CellDofs;
use super::{Numbering, NumberingError, NumberingOrder};
use crate::element::ComposedElement;
use crate::mesh::Mesh;
use std::sync::Arc;

/// The map from the basis functions of each cell to the global degrees of freedom of an element
/// that may be made of others: the degrees of freedom of its parts follow each other.
///
/// ```
/// use kingpost_fem::element::{CellShape, ComposedElement, ElementFamily, FiniteElement, LagrangeVariant};
/// use kingpost_fem::{mesh::Mesh, numbering::ComposedNumbering};
///
/// let mesh = Mesh::unit_square(1)?; // two triangles, five edges
/// let flux = FiniteElement::new(CellShape::Triangle, ElementFamily::RaviartThomas, 1)?;
/// let family = ElementFamily::Lagrange(LagrangeVariant::GllWarped);
/// let pressure = FiniteElement::discontinuous(CellShape::Triangle, family, 0)?;
/// let element = ComposedElement::mixed(vec![flux.into(), pressure.into()])?;
/// let numbering = ComposedNumbering::of(&mesh, &element)?;
/// assert_eq!(numbering.n_dofs(), 7);
/// assert_eq!(numbering.first_dofs(), [0, 5]);
/// assert_eq!(numbering.cell(1)[3], 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ComposedNumbering {
    n_dofs: usize,
    dofs_per_cell: usize,
    dofs: Arc<CellDofs>,
    first_dofs: Vec<usize>,
    n_transforms: usize,
    states: Arc<Vec<i32>>,
}

impl From<&Numbering> for ComposedNumbering {
    /// An element of one part has the numbers of that part, and the same lists.
    fn from(numbering: &Numbering) -> Self {
        Self {
            n_dofs: numbering.n_dofs,
            dofs_per_cell: numbering.dofs_per_cell(),
            dofs: Arc::clone(&numbering.dofs),
            first_dofs: vec![0],
            n_transforms: numbering.transforms.len(),
            states: Arc::clone(&numbering.states),
        }
    }
}

impl ComposedNumbering {
    /// Numbers the space of `element` on `mesh`, in the order of first touch.
    ///
    /// # Errors
    /// As [`Numbering::of`].
    pub fn of(mesh: &Mesh, element: &ComposedElement) -> Result<Self, NumberingError> {
        Self::of_in_order(mesh, element, NumberingOrder::FirstTouch)
    }

    /// As [`ComposedNumbering::of`], with the numbers of each part in the given order.
    ///
    /// # Errors
    /// As [`Numbering::of`].
    pub fn of_in_order(
        mesh: &Mesh,
        element: &ComposedElement,
        order: NumberingOrder,
    ) -> Result<Self, NumberingError> {
        let (cells, n) = (mesh.n_cells(), element.n_dofs());
        if let [part] = &element.parts()[..]
            && part.element.n_dofs() == n
        {
            return Ok((&Numbering::of_in_order(mesh, part.element, order)?).into());
        }
        let (mut dofs, mut states) = (vec![0; cells * n], Vec::new());
        let mut all = Self {
            n_dofs: 0,
            dofs_per_cell: n,
            dofs: Arc::default(),
            first_dofs: Vec::new(),
            n_transforms: 0,
            states: Arc::default(),
        };
        let mut numberings: Vec<Numbering> = Vec::new();
        for part in element.parts() {
            // the values of one element are numbered alike
            let numbering = match numberings.last() {
                Some(last) if last.element() == part.element => last.clone(),
                Some(_) | None => Numbering::of_in_order(mesh, part.element, order)?,
            };
            let too_many = || NumberingError::TooMany { degree: part.element.degree(), cells };
            let end = all.n_dofs + numbering.n_dofs();
            i32::try_from(end).map_err(|_| too_many())?;
            let rows = numbering.dofs().chunks_exact(numbering.dofs_per_cell());
            for (row, part_row) in dofs.chunks_exact_mut(n).zip(rows) {
                for (i, dof) in part_row.iter().enumerate() {
                    row[part.offset + part.stride * i] = all.n_dofs as i32 + dof;
                }
            }
            all.first_dofs.push(all.n_dofs);
            all.n_dofs = end;
            all.n_transforms += numbering.transforms().len();
            numberings.push(numbering);
        }
        states.reserve(cells * all.n_transforms);
        for cell in 0..cells {
            for numbering in &numberings {
                let count = numbering.transforms().len();
                states.extend(&numbering.states()[cell * count..(cell + 1) * count]);
            }
        }
        (all.dofs, all.states) = (Arc::new(dofs.into()), states.into());
        Ok(all)
    }

    /// The number of global degrees of freedom.
    #[must_use]
    pub const fn n_dofs(&self) -> usize {
        self.n_dofs
    }

    /// The number of basis functions of a cell.
    #[must_use]
    pub const fn dofs_per_cell(&self) -> usize {
        self.dofs_per_cell
    }

    /// The map, [cells, dofs per cell] row-major, in the order of the cells of the mesh.
    #[must_use]
    pub fn dofs(&self) -> &[i32] {
        self.dofs.all()
    }

    /// The degrees of freedom of one cell; empty if there is no such cell.
    #[must_use]
    pub fn cell(&self, cell: usize) -> &[i32] {
        let n = self.dofs_per_cell;
        self.dofs().get(cell * n..(cell + 1) * n).unwrap_or(&[])
    }

    /// The first degree of freedom of each of the element's [parts](ComposedElement::parts).
    #[must_use]
    pub fn first_dofs(&self) -> &[usize] {
        &self.first_dofs
    }

    /// The number of transforms of a cell: those of the parts, one after the other.
    #[must_use]
    pub const fn n_transforms(&self) -> usize {
        self.n_transforms
    }

    /// Which matrix of each transform a cell takes: [cells, transforms] row-major.
    #[must_use]
    pub fn states(&self) -> &[i32] {
        &self.states
    }
}
