//! A mesh and the numberings of spaces on it.

use crate::form::{FormError, FunctionSpace};
use kingpost_fem::element::ComposedElement;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::{ComposedNumbering, NumberingOrder};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A mesh with the numberings of spaces on it, each of which is made when it is first asked for.
///
/// ```
/// use kingpost_fem::mesh::Mesh;
/// use kingpost_fem::numbering::NumberingOrder;
/// use kingpost_forms::form::FunctionSpace;
/// use kingpost_forms::lowering::NumberedMesh;
///
/// let mesh = Mesh::unit_square(1)?; // two triangles
/// let numbered = NumberedMesh::new(&mesh);
/// let space = FunctionSpace::scalar(mesh.shape(), 2);
/// assert_eq!(numbered.numbering(&space, NumberingOrder::FirstTouch)?.n_dofs(), 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NumberedMesh<'m> {
    mesh: &'m Mesh,
    known: Mutex<Vec<(NumberedSpace, Arc<ComposedNumbering>)>>,
}

/// What a numbering is of: an element, and the order of its numbers.
pub type NumberedSpace = (ComposedElement, NumberingOrder);

impl<'m> NumberedMesh<'m> {
    /// A mesh without numberings yet.
    #[must_use]
    pub fn new(mesh: &'m Mesh) -> Self {
        Self { mesh, known: Mutex::default() }
    }

    /// The mesh.
    #[must_use]
    pub const fn mesh(&self) -> &'m Mesh {
        self.mesh
    }

    /// Takes over a numbering that was made.
    pub fn insert(&self, space: NumberedSpace, numbering: ComposedNumbering) {
        self.known().push((space, Arc::new(numbering)));
    }

    /// The numbering of the [base](FunctionSpace::base) of a space.
    ///
    /// # Errors
    /// A mesh that the space has no numbering on.
    pub fn numbering(
        &self,
        space: &FunctionSpace,
        order: NumberingOrder,
    ) -> Result<Arc<ComposedNumbering>, FormError> {
        let wrong = |e: &dyn std::fmt::Display| FormError::Discretisation(e.to_string());
        let asked = numbered_space(space, order)?;
        if let Some((_, known)) = self.known().iter().find(|(space, _)| *space == asked) {
            return Ok(Arc::clone(known));
        }
        let numbering = ComposedNumbering::of_in_order(self.mesh, &asked.0, order).map_err(|e| wrong(&e))?;
        let numbering = Arc::new(numbering);
        self.known().push((asked, Arc::clone(&numbering)));
        Ok(numbering)
    }

    fn known(&self) -> MutexGuard<'_, Vec<(NumberedSpace, Arc<ComposedNumbering>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the numbering of the base of a space is of.
///
/// # Errors
/// A space without an element.
pub(super) fn numbered_space(
    space: &FunctionSpace,
    order: NumberingOrder,
) -> Result<NumberedSpace, FormError> {
    let element = space.base().0.element();
    Ok((element.map_err(|e| FormError::Discretisation(e.to_string()))?, order))
}
