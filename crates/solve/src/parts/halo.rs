//! The numbers that a part exchanges, on its device.

use super::{PartLayout, Wire};
use crate::texts::{compiled, text};
use crate::{Call, SolveError};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};

/// What a part sends and receives.
pub struct Halo {
    n_owned: usize,
    /// Unknowns of the part's mesh.
    n_mesh: usize,
    take: Executable,
    put: Executable,
    owned: Buffer,
    ghosts_on_mesh: Buffer,
    n_ghosts: usize,
    at: Buffer,
    wire: Wire,
}

impl Halo {
    /// The halo of a layout.
    ///
    /// # Errors
    /// No memory, a device that refuses the kernel.
    pub fn new(device: &dyn Device, layout: &PartLayout) -> Result<Self, SolveError> {
        let at: Vec<i32> = layout.sends.iter().flat_map(|(_, places)| places).copied().collect();
        let mut first = 0;
        let mut range = |n: usize| {
            first += n;
            first - n..first
        };
        let sends = layout.sends.iter().map(|(peer, places)| (*peer, range(places.len()))).collect();
        Ok(Self {
            n_owned: layout.owned.len(),
            n_mesh: layout.owned.len() + layout.ghosts.len(),
            owned: buffer_of(device, &layout.owned)?,
            ghosts_on_mesh: buffer_of(device, &layout.ghosts)?,
            n_ghosts: layout.ghosts.len(),
            put: compiled(device, text!("put"))?,
            take: compiled(device, text!("take"))?,
            at: buffer_of(device, &at)?,
            wire: Wire::new(device, sends, layout.receives.clone())?,
        })
    }

    /// Numbers that are sent each time.
    #[must_use]
    pub fn n_sent(&self) -> usize {
        self.wire.n_sent()
    }

    /// Unknowns that the part owns.
    pub(crate) const fn n_owned(&self) -> usize {
        self.n_owned
    }

    /// Unknowns of the part's mesh.
    pub(crate) const fn n_mesh(&self) -> usize {
        self.n_mesh
    }

    /// What is under way.
    #[must_use]
    pub const fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Gathers what is sent from a vector of owned unknowns.
    #[must_use]
    pub fn pack<'a>(&'a self, v: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.n_sent()), ("n_from", self.n_owned)];
        Call::of(&self.take, &sizes, &[("at", &self.at), ("from", v), ("to", self.wire.packed())])
    }

    /// Takes the owned unknowns of a vector on the part's mesh.
    #[must_use]
    pub fn restrict<'a>(&'a self, on_mesh: &'a Buffer, owned: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.n_owned), ("n_from", self.n_mesh)];
        Call::of(&self.take, &sizes, &[("at", &self.owned), ("from", on_mesh), ("to", owned)])
    }

    /// Puts owned unknowns and the [ghosts](Halo::ghosts) into a vector on the part's mesh.
    #[must_use]
    pub fn prolong<'a>(&'a self, owned: &'a Buffer, on_mesh: &'a Buffer) -> [Call<'a>; 2] {
        let put = |n: usize, at: &'a Buffer, from: &'a Buffer| {
            let sizes = [("n", n), ("n_to", self.n_mesh)];
            Call::of(&self.put, &sizes, &[("at", at), ("from", from), ("to", on_mesh)])
        };
        [put(self.n_owned, &self.owned, owned), put(self.n_ghosts, &self.ghosts_on_mesh, self.wire.ghosts())]
    }

    /// The numbers of the ghosts, as the last exchange brought them.
    #[must_use]
    pub const fn ghosts(&self) -> &Buffer {
        self.wire.ghosts()
    }
}
