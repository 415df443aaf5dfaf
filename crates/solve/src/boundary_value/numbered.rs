//! The degrees of freedom of a mesh and its boundary, found where that is fastest.

use super::BoundaryValueSetupError;
use crate::boundary::{Around, LARGE, boundary_around};
use crate::texts::{compiled, text};
use crate::{Arrays, AssemblyStrategy, Call, PatternKernels, SolveError, boundary, run};
use kingpost_fem::element::{FiniteElement, LagrangeElement};
use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::{Numbering, NumberingOrder};
use kingpost_forms::form::FormError;
use kingpost_forms::lowering::{MeshArray, NumberedSpace};
use kingpost_runtime::{Backend, Buffer, Device, RuntimeError, buffer_of, download_values, stage};
use std::sync::Arc;

/// A mesh with the degrees of freedom of an element.
pub(super) struct Numbered<'m> {
    pub numbering: Numbering,
    /// The sides of the boundary.
    pub sides: Vec<FacetSide>,
    /// What the one device has of the mesh.
    pub arrays: Arrays<'m>,
}

impl<'m> Numbered<'m> {
    /// Found by a card, if there is one alone and the mesh is large, or else by the host.
    ///
    /// # Errors
    /// More degrees of freedom than 32 bits count; a failing driver.
    pub fn new(
        devices: &[&dyn Device],
        mesh: &'m Mesh,
        degree: usize,
        assembly: AssemblyStrategy,
    ) -> Result<Self, BoundaryValueSetupError> {
        if let [device] = devices
            && device.info().backend == Backend::Cuda
            && mesh.cells().len() >= LARGE
        {
            match Self::by(*device, mesh, degree, assembly) {
                Ok(found) => return Ok(found),
                // 32 bits or the memory of the device do not suffice for what is sorted
                Err(BoundaryValueSetupError::Solve(
                    SolveError::Form(FormError::Discretisation(_))
                    | SolveError::Runtime(RuntimeError::Allocation { .. }),
                )) => {}
                Err(error) => return Err(error),
            }
        }
        stage("numbering");
        let numbering = Numbering::new_in_order(mesh, degree, NumberingOrder::OF_MATRICES)?;
        stage("finding the boundary");
        let sides = boundary(devices[0], mesh)?;
        let mut arrays = Arrays::default();
        arrays.numbered(mesh).insert(space_of(&numbering), (&numbering).into());
        Ok(Self { numbering, sides, arrays })
    }

    /// Found by a device. The cells go there once; those around each degree of freedom are sorted once, for the
    /// boundary and the pattern of a matrix.
    ///
    /// # Errors
    /// More than 32 bits count; no memory, a failing driver.
    pub fn by(
        device: &dyn Device,
        mesh: &'m Mesh,
        degree: usize,
        assembly: AssemblyStrategy,
    ) -> Result<Self, BoundaryValueSetupError> {
        stage("numbering");
        let element = LagrangeElement::new(mesh.shape(), degree)
            .map_err(kingpost_fem::numbering::NumberingError::from)?;
        let lists = PatternKernels::new(device)?;
        let mut arrays = Arrays::default();
        let (numbering, map) = match Numbering::is_of_vertices(element.as_element()) {
            true => {
                let cells = Arc::new(buffer_of(device, mesh.cells()).map_err(SolveError::from)?);
                if std::ptr::eq(mesh.cells(), mesh.all_cell_nodes()) {
                    arrays.insert(mesh, MeshArray::Cells, &cells);
                }
                by_vertices(device, (mesh, &cells), element.as_element(), &lists)?
            }
            false => {
                let numbering = Numbering::new_in_order(mesh, degree, NumberingOrder::OF_MATRICES)?;
                let map = buffer_of(device, numbering.dofs()).map_err(SolveError::from)?;
                (numbering, map)
            }
        };
        let (map, space, n) = (Arc::new(map), space_of(&numbering), numbering.n_dofs());
        let width = numbering.dofs_per_cell();
        arrays.numbered(mesh).insert(space.clone(), (&numbering).into());
        arrays.insert(mesh, MeshArray::Map(space.clone()), &map);
        stage("finding the boundary");
        let terms = lists.terms(device, (&map, n), mesh.n_cells(), width)?;
        // the first degrees of freedom of a Lagrange element are those of its vertices
        let around = Around { n, width, map: &map, terms: &terms };
        let sides = boundary_around(device, mesh, &lists, &around)?;
        if matches!(assembly, AssemblyStrategy::LookupTable | AssemblyStrategy::OwnedRows(_)) {
            arrays.insert_terms(mesh, space, terms);
        }
        Ok(Self { numbering, sides, arrays })
    }
}

fn space_of(numbering: &Numbering) -> NumberedSpace {
    (numbering.element().clone().into(), numbering.order())
}

/// Numbers vertices in the order in which cells first touch them: the numbers of all cells.
fn by_vertices(
    device: &dyn Device,
    (mesh, cells): (&Mesh, &Buffer),
    element: &FiniteElement,
    lists: &PatternKernels,
) -> Result<(Numbering, Buffer), BoundaryValueSetupError> {
    let find = || -> Result<(Buffer, Buffer), SolveError> {
        let (n, n_items) = (mesh.n_vertices(), mesh.cells().len());
        let integers = |n: usize| device.allocate(4 * n as u64);
        let touch = compiled(device, text!("first_touches"))?;
        let number = compiled(device, text!("number_vertices"))?;
        let take = compiled(device, text!("aggregation/take_integers"))?;
        let [after, numbers, map] = [integers(n)?, integers(n)?, integers(n_items)?];
        device.fill(&after, 0xFF)?; // -1
        let arrays = [("cells", cells), ("after", &after)];
        run(device, &[Call::of(&touch, &[("n", n), ("n_items", n_items)], &arrays)])?;
        let ([after, vertices], _) = lists.sort(device, (&after, n_items), n)?;
        let arrays = [("after", &after), ("vertices", &vertices), ("numbers", &numbers)];
        let number = Call::of(&number, &[("n", n)], &arrays);
        let arrays = [("at", cells), ("from", &numbers), ("to", &map)];
        let take = Call::of(&take, &[("n", n_items), ("n_from", n)], &arrays);
        run(device, &[number, take])?;
        Ok((numbers, map))
    };
    let (numbers, map) = find()?;
    let numbers = download_values(device, &numbers).map_err(SolveError::from)?;
    // of vertices alone, both orders are one
    Ok((Numbering::of_vertices(mesh, element, NumberingOrder::OF_MATRICES, numbers)?, map))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_fem::element::CellShape;
    use kingpost_runtime::open;
    use kingpost_sample::of_run;

    /// Meshes with vertices in any order, and one that no cell has.
    #[test]
    fn devices_number_as_the_host_does() {
        let bracket = concat!(env!("CARGO_MANIFEST_DIR"), "/../../meshes/bracket.msh");
        let shapes =
            [CellShape::Triangle, CellShape::Tetrahedron, CellShape::Quadrilateral, CellShape::Hexahedron];
        let lone = Mesh::new(
            CellShape::Triangle,
            vec![0.0, 1.0, 5.0, 5.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0],
            vec![0, 2, 3, 3, 4, 0],
            None,
        );
        let unit = shapes.iter().map(|shape| Mesh::unit(*shape, 3).unwrap());
        let all: Vec<Mesh> =
            unit.chain([Mesh::read_gmsh(bracket.as_ref()).unwrap(), lone.unwrap()]).collect();
        for (name, few) in [("c", [0, 3, 4]), ("opencl", [1, 2, 5])] {
            let device = open(name).unwrap();
            let meshes = of_run(&all, &few).into_iter();
            for (mesh, degree) in meshes.flat_map(|mesh| [(mesh, 1), (mesh, 2)]) {
                let what = format!("{}, P{degree}, {} {}", device.info().name, mesh.shape(), mesh.n_cells());
                let found = Numbered::by(&*device, mesh, degree, AssemblyStrategy::LookupTable).unwrap();
                let expected = Numbering::new_in_order(mesh, degree, NumberingOrder::OF_MATRICES).unwrap();
                assert_eq!(found.numbering, expected, "{what}");
                assert_eq!(found.sides, mesh.boundary(), "{what}");
                let mut arrays = found.arrays;
                let space = space_of(&expected);
                let map = arrays
                    .of_mesh(&*device, mesh, MeshArray::Map(space.clone()), || unreachable!("it is there"))
                    .unwrap();
                assert_eq!(download_values::<i32>(&*device, &map).unwrap(), expected.dofs(), "{what}");
                assert!(
                    arrays.take_terms(mesh, &space).is_some() && arrays.take_terms(mesh, &space).is_none()
                );
            }
        }
    }
}
