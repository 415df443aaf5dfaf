//! A boundary value problem divided among several devices, each of which owns a part of the unknowns.

use super::error::{BoundaryValueSetupError, each_part};
use crate::{
    Arrays, DeviceForm, Energy, FormPrograms, PartLayout, PartMesh, Partition, PrescribedValues, layouts,
};
use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_forms::form::Inputs;
use kingpost_forms::tabulated::IntegralType;
use kingpost_runtime::Device;

/// Which part owns which unknowns, and has which cells.
pub(super) struct Division<'q> {
    mesh: &'q Mesh,
    numbering: &'q Numbering,
    components: usize,
    partition: Partition,
    pub(super) meshes: Vec<PartMesh>,
    pub(super) layouts: Vec<PartLayout>,
    /// The facets of the mesh's boundary, ascending, if an energy is integrated.
    boundary: Vec<FacetSide>,
    /// The prescribed value of each unknown of the whole system, if it has one.
    prescribed: Vec<Option<f64>>,
}

impl<'q> Division<'q> {
    /// Divides the unknowns by where they are.
    pub(super) fn new(
        mesh: &'q Mesh,
        (numbering, points): (&'q Numbering, &[f64]),
        (values, components): (&PrescribedValues, usize),
        parts: usize,
        boundary: Vec<FacetSide>,
    ) -> Result<Self, BoundaryValueSetupError> {
        let partition = Partition::bisect(points, mesh.shape().dim(), parts)?;
        let mut prescribed = vec![None; numbering.n_dofs() * components];
        for (unknown, value) in values.unknowns.iter().zip(&values.values) {
            prescribed[*unknown as usize] = Some(*value);
        }
        let of_part = |part| Ok(PartMesh::new(mesh, numbering, &partition, part)?);
        let meshes = each_part(0..parts, of_part, of_part)?;
        let layouts = layouts(&partition, &meshes, components);
        Ok(Self { mesh, numbering, components, partition, meshes, layouts, boundary, prescribed })
    }

    /// The energy of the cells whose first degree of freedom a part owns: each cell counts once.
    pub(super) fn energy(
        &self,
        part: usize,
        device: &dyn Device,
        programs: &FormPrograms,
    ) -> Result<Energy, BoundaryValueSetupError> {
        let (of_part, components) = (&self.meshes[part], self.components);
        let first = |cell: &usize| self.numbering.cell(*cell).first().map(|dof| self.partition.owner(*dof));
        let own: Vec<usize> =
            of_part.cells.iter().copied().filter(|cell| first(cell) == Some(part)).collect();
        if own.is_empty() {
            return Ok(Energy::of_part(device, DeviceForm::default(), &[], of_part, components)?);
        }
        let cells = PartMesh::of_cells(self.mesh, self.numbering, own)?;
        let values = vec![0.0; cells.dofs.len() * components];
        let inputs = Inputs::new().field("u", values).in_order(self.numbering.order());
        let (inputs, arrays) = (inputs.of(programs.form().form()), &mut Arrays::default());
        let mut form = DeviceForm::default();
        for (place, executable) in programs.executables().enumerate() {
            let mut memory = programs.form().bind_to(place, &cells.mesh, &inputs, &[])?;
            let kernel = &programs.form().kernels()[place];
            if kernel.over == IntegralType::ExteriorFacet {
                let kept: Vec<u32> =
                    cells.on_boundary(kernel, &memory, &self.boundary).map(|(place, _)| place).collect();
                if kept.is_empty() {
                    continue;
                }
                memory = kernel.on_entities(&memory, &kept);
            }
            let given = (programs.form().output(place), &["u"][..]);
            form.add_kernel(device, executable, &memory, given, None, arrays)?;
        }
        Ok(Energy::of_part(device, form, &cells.dofs, of_part, components)?)
    }

    /// The prescribed values on the mesh of a part.
    pub(super) fn prescribed(&self, part: usize) -> PrescribedValues {
        let (of_part, components) = (&self.meshes[part], self.components);
        let mut values = PrescribedValues::default();
        for (place, dof) in of_part.dofs.iter().enumerate() {
            for component in 0..components {
                if let Some(value) = self.prescribed[*dof as usize * components + component] {
                    values.unknowns.push((place * components + component) as i32);
                    values.values.push(value);
                }
            }
        }
        values
    }

    /// The points of the degrees of freedom that a part owns, in its order, of those of all,
    /// `[dofs, dim]`.
    pub(super) fn points(&self, part: usize, all: &[f64], dim: usize) -> Vec<f64> {
        let owned = self.owned(part);
        let of_dof = owned.iter().step_by(self.components).map(|(unknown, _)| unknown / self.components);
        // displacements alone have points
        of_dof.filter_map(|dof| all.get(dof * dim..(dof + 1) * dim)).flatten().copied().collect()
    }

    /// The unknowns of the whole system that a part owns, in its order, with those of its mesh that they
    /// are.
    pub(super) fn owned(&self, part: usize) -> Vec<(usize, usize)> {
        let (of_part, components) = (&self.meshes[part], self.components);
        let whole = |unknown: &i32| {
            let (place, component) = (*unknown as usize / components, *unknown as usize % components);
            (of_part.dofs[place] as usize * components + component, *unknown as usize)
        };
        self.layouts[part].owned.iter().map(whole).collect()
    }
}
