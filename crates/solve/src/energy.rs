//! Energies, which Newton's method searches along its updates by.

use crate::texts::{compiled, text};
use crate::{Call, DeviceForm, PartMesh, Queue, SolveError};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};

/// A functional of one given array, the unknown.
pub struct Energy {
    form: DeviceForm,
    of_part: Option<Taken>,
}

/// The unknowns of a functional among those of a part's mesh.
struct Taken {
    n: usize,
    n_mesh: usize,
    take: Executable,
    at: Buffer,
    u: Buffer,
}

impl From<DeviceForm> for Energy {
    /// A functional of the unknown itself.
    fn from(form: DeviceForm) -> Self {
        Self { form, of_part: None }
    }
}

impl Energy {
    /// A functional over the cells that count for a part, each of which counts for one. Its degrees of
    /// freedom have the numbers `dofs` on the whole mesh and this number of components, and are among those of
    /// the part's mesh.
    ///
    /// # Errors
    /// A degree of freedom that is not, no memory, a device that refuses the kernel.
    pub fn of_part(
        device: &dyn Device,
        form: DeviceForm,
        dofs: &[i32],
        on_mesh: &PartMesh,
        components: usize,
    ) -> Result<Self, SolveError> {
        let last = on_mesh.dofs.iter().max().map_or(0, |dof| *dof as usize + 1);
        let mut places = vec![None; last];
        for (place, dof) in on_mesh.dofs.iter().enumerate() {
            places[*dof as usize] = Some(place);
        }
        let mut at = Vec::with_capacity(dofs.len() * components);
        for dof in dofs {
            let place = places.get(*dof as usize).copied().flatten();
            let place = place.ok_or(SolveError::NotInPart { dof: *dof })?;
            at.extend((0..components).map(|k| (place * components + k) as i32));
        }
        let of_part = Taken {
            n: at.len(),
            n_mesh: on_mesh.dofs.len() * components,
            take: compiled(device, text!("take"))?,
            u: device.allocate(8 * at.len() as u64)?,
            at: buffer_of(device, &at)?,
        };
        Ok(Self { form, of_part: Some(of_part) })
    }

    /// Appends what adds the functional of `u` to `sum`.
    pub(crate) fn add_to<'a>(&'a self, u: &'a Buffer, sum: &'a Buffer, queue: &mut Queue<'a>) {
        let u = match &self.of_part {
            None => u,
            Some(Taken { n, n_mesh, take, at, u: taken }) => {
                let sizes = [("n", *n), ("n_from", *n_mesh)];
                queue.push(Call::of(take, &sizes, &[("at", at), ("from", u), ("to", taken)]));
                taken
            }
        };
        self.form.add_to(&[u], sum, queue);
    }
}
