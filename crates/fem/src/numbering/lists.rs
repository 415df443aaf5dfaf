//! The numbers of the degrees of freedom of all cells.

use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

/// `[cells, dofs]` row-major. Where the numbers of vertices say all, the list is made when it is first asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct CellDofs {
    list: OnceLock<Vec<i32>>,
    of_vertices: Option<VertexNumbers>,
}

/// The vertices of all cells, and the number of each vertex.
#[derive(Clone, Debug)]
pub(super) struct VertexNumbers {
    pub cells: Arc<Vec<u32>>,
    pub numbers: Vec<i32>,
}

impl From<Vec<i32>> for CellDofs {
    fn from(list: Vec<i32>) -> Self {
        Self { list: list.into(), of_vertices: None }
    }
}

impl From<VertexNumbers> for CellDofs {
    fn from(numbers: VertexNumbers) -> Self {
        Self { list: OnceLock::new(), of_vertices: Some(numbers) }
    }
}

impl PartialEq for CellDofs {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl CellDofs {
    pub fn all(&self) -> &[i32] {
        let number = |of: &VertexNumbers, vertex: &u32| of.numbers[*vertex as usize];
        self.list.get_or_init(|| match &self.of_vertices {
            Some(of) => of.cells.par_iter().map(|vertex| number(of, vertex)).collect(),
            None => Vec::new(), // the numbering of no cells
        })
    }

    /// One of them, which makes no list.
    pub fn at(&self, place: usize) -> Option<i32> {
        match (self.list.get(), &self.of_vertices) {
            (None, Some(of)) => Some(of.numbers[*of.cells.get(place)? as usize]),
            (Some(_), _) | (None, None) => self.all().get(place).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::element::LagrangeElement;
    use crate::mesh::Mesh;
    use crate::numbering::{Numbering, NumberingError, NumberingOrder};

    #[test]
    fn numbers_of_vertices_are_a_numbering() -> Result<(), Box<dyn std::error::Error>> {
        let mesh = Mesh::unit_cube(3)?;
        let expected = Numbering::new(&mesh, 1)?;
        let mut numbers = vec![-1; mesh.n_vertices()];
        mesh.cells().iter().zip(expected.dofs()).for_each(|(vertex, dof)| numbers[*vertex as usize] = *dof);
        let of = |degree, numbers: &[i32]| -> Result<Numbering, Box<dyn std::error::Error>> {
            let element = LagrangeElement::new(mesh.shape(), degree)?;
            let order = NumberingOrder::FirstTouch;
            Ok(Numbering::of_vertices(&mesh, element.as_element(), order, numbers.to_vec())?)
        };
        let found = of(1, &numbers)?;
        for place in [0, 3, 4] {
            assert_eq!(found.dof(7, place), expected.cell(7).get(place).copied());
            assert_eq!(expected.dof(7, place), found.dof(7, place));
        }
        assert_eq!(found.dof(mesh.n_cells(), 0), None);
        assert_eq!(found, expected);
        assert_eq!(found.dof(7, 2), expected.dof(7, 2)); // of the list that comparing made

        let refused = |degree, numbers: &[i32]| {
            let error = of(degree, numbers).err().and_then(|e| e.downcast::<NumberingError>().ok());
            assert!(matches!(error.as_deref(), Some(NumberingError::Vertices { .. })), "{error:?}");
        };
        refused(2, &numbers);
        refused(1, &numbers[1..]);
        let last = numbers.iter().position(|number| *number as usize + 1 == numbers.len()).ok_or("none")?;
        for wrong in [0, numbers.len() as i32] {
            let mut other = numbers.clone();
            other[last] = wrong;
            refused(1, &other);
        }
        Ok(())
    }
}
