//! Forms applied on parts of a mesh.

use super::{Halo, PartLayout, PartMesh};
use crate::texts::{compiled, text};
use crate::{Arrays, Call, Constraints, DeviceForm, FormPrograms, Operator, Queue, SolveError};
use kingpost_fem::mesh::FacetSide;
use kingpost_forms::form::Inputs;
use kingpost_forms::lowering::VectorResult;
use kingpost_forms::tabulated::IntegralType;
use kingpost_runtime::{Buffer, Device, Executable};

/// A form on the cells of a part, in two: the cells that read ghosts, and all others.
pub struct PartForm {
    outer: DeviceForm,
    inner: DeviceForm,
}

impl PartForm {
    /// What is computed of entities that read ghosts, and of all others.
    #[must_use]
    pub const fn of(outer: DeviceForm, inner: DeviceForm) -> Self {
        Self { outer, inner }
    }

    /// Appends what adds all of it to `result`, as [`DeviceForm::add_to`].
    pub fn add_to<'a>(&'a self, given: &[&'a Buffer], result: &'a Buffer, queue: &mut Queue<'a>) {
        self.inner.add_to(given, result, queue);
        self.outer.add_to(given, result, queue);
    }

    /// Uploads the arrays of a form on the mesh of a part, as [`DeviceForm::new`]. A layout says
    /// which unknowns of that mesh are ghosts. `boundary` has the facets of the boundary of the
    /// whole mesh, ascending: the mesh of a part has others, where it was cut.
    ///
    /// # Errors
    /// As [`MeshForm::bind_to`](kingpost_forms::lowering::MeshForm::bind_to); no memory;
    /// [`SolveError::PartsForm`] of results that are not added to a vector;
    /// [`SolveError::NoNeighbour`] of integrals over facets between cells on a mesh that is not
    /// made by [`PartMesh::with_neighbours`]. Tags that the whole mesh has not are refused.
    pub fn new(
        device: &dyn Device,
        programs: &FormPrograms,
        (part, layout, boundary): (&PartMesh, &PartLayout, &[FacetSide]),
        inputs: &Inputs,
        given: &[&str],
    ) -> Result<Self, SolveError> {
        let mut is_ghost = vec![false; part.dofs.len()];
        let components = (layout.owned.len() + layout.ghosts.len()).checked_div(part.dofs.len()).unwrap_or(1);
        layout.ghosts.iter().for_each(|unknown| is_ghost[*unknown as usize / components.max(1)] = true);
        let reads = |cell: u32| part.numbering.cell(cell as usize).iter().any(|dof| is_ghost[*dof as usize]);
        let mut forms = [DeviceForm::default(), DeviceForm::default()];
        let mut arrays = Arrays::default();
        for (place, executable) in programs.executables().enumerate() {
            let kernel = &programs.form().kernels()[place];
            if kernel.vector != VectorResult::Assembled {
                return Err(SolveError::PartsForm { kernel: kernel.kernel.name.clone() });
            }
            if !part.has_entities(programs.form(), kernel, boundary)? {
                continue;
            }
            let memory = programs.form().bind_to(place, &part.mesh, inputs, &[])?;
            // with both cells of a facet between two
            let entities: Vec<(u32, [u32; 2])> = match kernel.over {
                IntegralType::Cell => {
                    let own = part.own_cells(kernel, &memory).into_iter();
                    own.map(|(place, cell)| (place, [cell; 2])).collect()
                }
                IntegralType::ExteriorFacet => {
                    let facets = part.on_boundary(kernel, &memory, boundary);
                    facets.map(|(place, cell)| (place, [cell; 2])).collect()
                }
                IntegralType::InteriorFacet => part.between_cells(kernel, &memory, boundary)?,
            };
            let is_outer = |cells: &[u32; 2]| cells.iter().any(|cell| reads(*cell));
            let (outer, inner): (Vec<_>, Vec<_>) =
                entities.into_iter().partition(|(_, cells)| is_outer(cells));
            for (form, entities) in forms.iter_mut().zip([outer, inner]) {
                // no entities, no launch
                if entities.is_empty() {
                    continue;
                }
                let places: Vec<u32> = entities.iter().map(|(place, _)| *place).collect();
                let memory = kernel.on_entities(&memory, &places);
                let output = (programs.form().output(place), given);
                form.add_kernel(device, executable, &memory, output, None, &mut arrays)?;
            }
        }
        let [outer, inner] = forms;
        Ok(Self { outer, inner })
    }
}

/// The action of a bilinear form on the unknowns that a part owns, without a matrix: rows and
/// columns of prescribed unknowns are those of the identity. Cells that read no ghosts are computed
/// while ghosts are under way.
pub struct PartFormOperator<'s> {
    form: &'s PartForm,
    constraints: &'s Constraints,
    given: Vec<&'s Buffer>,
    place: usize,
    halo: &'s Halo,
    /// What it is applied to and its result, on the mesh of the part.
    x: Buffer,
    y: Buffer,
    clear: Executable,
    narrow: Option<Narrow>,
}

/// Both on the mesh of the part in single precision, in which the form is.
struct Narrow {
    x: Buffer,
    y: Buffer,
    narrow: Executable,
    widen: Executable,
}

impl Narrow {
    fn call<'a>(&'a self, n: usize, from: &'a Buffer, to: &'a Buffer) -> Call<'a> {
        Call::of(&self.narrow, &[("n", n)], &[("from", from), ("to", to)])
    }
}

impl<'s> PartFormOperator<'s> {
    /// A form of some given arrays of the mesh of the part, as are the constraints. It is applied
    /// to the one at a `place`, whose buffer here is not used. The mesh of a part has all cells of
    /// what the part owns, or, with a halo [with sums](Halo::with_sums), each cell is of one part
    /// alone.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernels.
    pub fn new(
        device: &dyn Device,
        form: &'s PartForm,
        constraints: &'s Constraints,
        (given, place): (Vec<&'s Buffer>, usize),
        halo: &'s Halo,
    ) -> Result<Self, SolveError> {
        let vector = || device.allocate(8 * halo.n_mesh() as u64);
        let (x, y) = (vector()?, vector()?);
        let clear = compiled(device, text!("clear"))?;
        Ok(Self { form, constraints, given, place, halo, x, y, clear, narrow: None })
    }

    /// The same of a form whose arrays are of single precision. What it is applied to and its
    /// result are rounded to it, and are of double precision themselves, as are the vectors of
    /// solvers.
    ///
    /// # Errors
    /// As [`PartFormOperator::new`].
    pub fn in_single_precision(self, device: &dyn Device) -> Result<Self, SolveError> {
        let vector = || device.allocate(4 * self.halo.n_mesh() as u64);
        let narrow = Narrow {
            x: vector()?,
            y: vector()?,
            narrow: compiled(device, text!("narrow"))?,
            widen: compiled(device, text!("widen"))?,
        };
        Ok(Self { narrow: Some(narrow), ..self })
    }
}

impl Operator for PartFormOperator<'_> {
    fn size(&self) -> usize {
        self.halo.n_owned()
    }

    fn room(&self) -> usize {
        if self.halo.is_first() { self.halo.n_mesh() } else { self.halo.n_owned() }
    }

    fn apply<'a>(&'a self, from: &'a Buffer, to: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { constraints, halo, .. } = self;
        // vectors with room for ghosts after what is owned are computed with where they are
        let has_room = |v: &Buffer| v.bytes() >= 8 * halo.n_mesh() as u64;
        let in_place = halo.is_first() && has_room(from) && has_room(to);
        let [x, y] = if in_place { [from, to] } else { [&self.x, &self.y] };
        queue.push(halo.pack(from));
        queue.start(halo.wire());
        let [owned, ghosts] = halo.prolong(from, x);
        if !in_place {
            queue.push(owned);
        }
        queue.push(Call::of(&self.clear, &[("n", halo.n_mesh())], &[("v", y)]));
        // those among ghosts are cleared again when they are there
        queue.extend([constraints.keep(x), constraints.clear(x)]);
        self.compute([x, y], ghosts, queue);
        if let Some(back) = halo.back() {
            // owners of prescribed unknowns have their values
            queue.extend([constraints.clear(y), halo.pack_back(y, back)]);
            queue.start(back.wire());
        }
        queue.push(constraints.put_back(y));
        queue.push(if in_place { constraints.put_back(x) } else { halo.restrict(y, to) });
        if let Some(back) = halo.back() {
            queue.finish(back.wire());
            queue.push(back.add_to(to));
        }
    }
}

impl PartFormOperator<'_> {
    /// Appends what adds the form of `x` to `y`, both on the mesh of the part, while ghosts are
    /// under way that a call puts there.
    fn compute<'a>(&'a self, [x, y]: [&'a Buffer; 2], ghosts: Call<'a>, queue: &mut Queue<'a>) {
        let Self { form, constraints, given, place, halo, narrow, .. } = self;
        let [of_form, result] = narrow.as_ref().map_or([x, y], |narrow| [&narrow.x, &narrow.y]);
        let mut given = given.clone();
        if let Some(applied_to) = given.get_mut(*place) {
            *applied_to = of_form;
        }
        if let Some(narrow) = narrow {
            queue.extend([narrow.call(halo.n_mesh(), x, of_form), narrow.call(halo.n_mesh(), y, result)]);
        }
        form.inner.add_to(&given, result, queue);
        queue.finish(halo.wire());
        queue.extend([ghosts, constraints.clear(x)]);
        if let Some(narrow) = narrow {
            queue.push(narrow.call(halo.n_mesh(), x, of_form));
        }
        form.outer.add_to(&given, result, queue);
        if let Some(Narrow { widen, .. }) = narrow {
            queue.push(Call::of(widen, &[("n", halo.n_mesh())], &[("from", result), ("to", y)]));
        }
    }
}
