//! Arrays on a device that forms share.

use crate::{DeviceTerms, SolveError};
use kingpost_fem::mesh::Mesh;
use kingpost_forms::lowering::{Bound, BoundKernel, MeshArray, NumberedMesh, NumberedSpace};
use kingpost_interp::{Value, with_elements};
use kingpost_runtime::{Buffer, Device, RuntimeError, buffer_of};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Arrays on a device. Forms on one mesh share those of the mesh with its numberings, and forms share what
/// has the same name and value.
#[derive(Default)]
pub struct Arrays<'m> {
    known: BTreeMap<String, Vec<(Value, Arc<Buffer>)>>,
    meshes: Vec<OfMesh<'m>>,
}

/// The arrays of a mesh.
struct OfMesh<'m> {
    numbered: Arc<NumberedMesh<'m>>,
    known: Vec<(MeshArray, Arc<Buffer>)>,
    /// The cells around the degrees of freedom of spaces.
    terms: Vec<(NumberedSpace, DeviceTerms)>,
}

impl<'m> Arrays<'m> {
    /// A mesh with the numberings that its forms share.
    pub fn numbered(&mut self, mesh: &'m Mesh) -> Arc<NumberedMesh<'m>> {
        let place = self.place(mesh);
        Arc::clone(&self.meshes[place].numbered)
    }

    fn place(&mut self, mesh: &'m Mesh) -> usize {
        let is_known = |of: &OfMesh<'m>| std::ptr::eq(of.numbered.mesh(), mesh);
        self.meshes.iter().position(is_known).unwrap_or_else(|| {
            let numbered = Arc::new(NumberedMesh::new(mesh));
            self.meshes.push(OfMesh { numbered, known: Vec::new(), terms: Vec::new() });
            self.meshes.len() - 1
        })
    }

    /// The array of a name and value, which is uploaded the first time.
    pub(crate) fn get(
        &mut self,
        device: &dyn Device,
        name: &str,
        value: &Value,
    ) -> Result<Arc<Buffer>, SolveError> {
        let known = self.known.entry(name.to_owned()).or_default();
        if let Some((_, buffer)) = known.iter().find(|(other, _)| other == value) {
            return Ok(Arc::clone(buffer));
        }
        let buffer = Arc::new(with_elements!(value, values => buffer_of(device, values)?));
        known.push((value.clone(), Arc::clone(&buffer)));
        Ok(buffer)
    }

    /// An array of a kernel on a mesh. What belongs to the mesh is uploaded once, and no copy is kept.
    pub(crate) fn of(
        &mut self,
        device: &dyn Device,
        mesh: &'m Mesh,
        bound: &BoundKernel<'_>,
        name: &str,
    ) -> Result<Arc<Buffer>, SolveError> {
        if let Some(array) = bound.mesh_array(name)? {
            let place = self.place(mesh);
            if let Some(known) = self.known_of(place, &array) {
                return Ok(known);
            }
            let buffer = match bound.argument(name)? {
                Bound::Integers(values) => buffer_of(device, &values)?,
                Bound::Reals(values) => buffer_of(device, &values)?,
                Bound::Param(_) | Bound::Number(_) | Bound::Result(_) => return Err(missing(name)),
            };
            return Ok(self.keep(place, array, buffer));
        }
        match bound.argument(name)? {
            Bound::Integers(values) if bound.is_of_matrix(name) => Ok(Arc::new(buffer_of(device, &values)?)),
            Bound::Integers(values) => self.get(device, name, &Value::I32(values.into_owned())),
            Bound::Reals(values) => self.get(device, name, &Value::F64(values.into_owned())),
            Bound::Param(_) | Bound::Number(_) | Bound::Result(_) => Err(missing(name)),
        }
    }

    /// A list that belongs to a mesh, which is uploaded the first time.
    pub(crate) fn of_mesh<'v>(
        &mut self,
        device: &dyn Device,
        mesh: &'m Mesh,
        array: MeshArray,
        values: impl FnOnce() -> &'v [i32],
    ) -> Result<Arc<Buffer>, SolveError> {
        self.uploaded(mesh, array, || buffer_of(device, values()))
    }

    /// An array of a mesh, which is uploaded the first time.
    pub(crate) fn uploaded(
        &mut self,
        mesh: &'m Mesh,
        array: MeshArray,
        upload: impl FnOnce() -> Result<Buffer, RuntimeError>,
    ) -> Result<Arc<Buffer>, SolveError> {
        let place = self.place(mesh);
        match self.known_of(place, &array) {
            Some(known) => Ok(known),
            None => Ok(self.keep(place, array, upload()?)),
        }
    }

    /// Takes over an array that is on the device.
    pub(crate) fn insert(&mut self, mesh: &'m Mesh, array: MeshArray, buffer: &Arc<Buffer>) {
        let place = self.place(mesh);
        self.meshes[place].known.push((array, Arc::clone(buffer)));
    }

    /// Takes over the cells around the degrees of freedom of a space, for one pattern.
    pub(crate) fn insert_terms(&mut self, mesh: &'m Mesh, space: NumberedSpace, terms: DeviceTerms) {
        let place = self.place(mesh);
        self.meshes[place].terms.push((space, terms));
    }

    /// The cells around the degrees of freedom of a space, if they are known and no pattern took them.
    pub(crate) fn take_terms(&mut self, mesh: &'m Mesh, space: &NumberedSpace) -> Option<DeviceTerms> {
        let place = self.place(mesh);
        let terms = &mut self.meshes[place].terms;
        let found = terms.iter().position(|(other, _)| other == space)?;
        Some(terms.swap_remove(found).1)
    }

    fn known_of(&self, place: usize, array: &MeshArray) -> Option<Arc<Buffer>> {
        let known = self.meshes[place].known.iter().find(|(other, _)| other == array);
        known.map(|(_, buffer)| Arc::clone(buffer))
    }

    fn keep(&mut self, place: usize, array: MeshArray, buffer: Buffer) -> Arc<Buffer> {
        let buffer = Arc::new(buffer);
        self.meshes[place].known.push((array, Arc::clone(&buffer)));
        buffer
    }
}

pub(crate) fn missing(name: &str) -> SolveError {
    SolveError::Missing { name: name.into() }
}
