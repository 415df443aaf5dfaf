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
    /// Whether owned unknowns are the first ones of the mesh, in their order.
    is_first: bool,
    take: Executable,
    put: Executable,
    owned: Buffer,
    ghosts_on_mesh: Buffer,
    n_ghosts: usize,
    at: Buffer,
    wire: Wire,
    back: Option<Back>,
}

/// What brings sums at ghosts back to their owners.
pub(crate) struct Back {
    wire: Wire,
    add: Executable,
    n_owned: usize,
    /// The owned unknowns to which other parts add, and which of the numbers that come are for
    /// each.
    rows: Buffer,
    starts: Buffer,
    columns: Buffer,
    ones: Buffer,
    n: usize,
    n_terms: usize,
}

impl Back {
    fn new(device: &dyn Device, halo: &Halo, layout: &PartLayout) -> Result<Self, SolveError> {
        let at = layout.sends.iter().flat_map(|(_, places)| places).copied();
        let mut terms: Vec<(i32, i32)> = at.zip(0..).collect();
        terms.sort_unstable();
        let (mut rows, mut starts) = (Vec::new(), vec![0]);
        for of_row in terms.chunk_by(|a, b| a.0 == b.0) {
            rows.push(of_row[0].0);
            starts.push(starts[starts.len() - 1] + of_row.len() as i32);
        }
        let columns: Vec<i32> = terms.iter().map(|(_, place)| *place).collect();
        Ok(Self {
            wire: Wire::new(device, halo.wire.receives.clone(), halo.wire.sends.clone())?,
            add: compiled(device, text!("add_ghosts"))?,
            n_owned: halo.n_owned,
            n: rows.len(),
            n_terms: columns.len(),
            rows: buffer_of(device, &rows)?,
            starts: buffer_of(device, &starts)?,
            ones: buffer_of(device, &vec![1.0; columns.len()])?,
            columns: buffer_of(device, &columns)?,
        })
    }

    /// What is under way.
    pub(crate) const fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Adds what came to owned unknowns.
    pub(crate) fn add_to<'a>(&'a self, owned: &'a Buffer) -> Call<'a> {
        let sizes = [
            ("n", self.n),
            ("n_entries", self.n_terms),
            ("n_ghosts", self.n_terms),
            ("n_rows", self.n_owned),
        ];
        let lists = [("rows", &self.rows), ("row_starts", &self.starts), ("columns", &self.columns)];
        let arrays = [("values", &self.ones), ("ghosts", self.wire.ghosts()), ("y", owned)];
        Call::of(&self.add, &sizes, &[&lists[..], &arrays].concat())
    }
}

impl Halo {
    /// The same for cells that one part alone computes: what they add to ghosts is sent back to
    /// their owners.
    ///
    /// # Errors
    /// As [`Halo::new`].
    pub fn with_sums(device: &dyn Device, layout: &PartLayout) -> Result<Self, SolveError> {
        let halo = Self::new(device, layout)?;
        let back = Some(Back::new(device, &halo, layout)?);
        Ok(Self { back, ..halo })
    }

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
            is_first: (0..).zip(&layout.owned).all(|(place, unknown)| place == *unknown),
            owned: buffer_of(device, &layout.owned)?,
            ghosts_on_mesh: buffer_of(device, &layout.ghosts)?,
            n_ghosts: layout.ghosts.len(),
            put: compiled(device, text!("put"))?,
            take: compiled(device, text!("take"))?,
            at: buffer_of(device, &at)?,
            wire: Wire::new(device, sends, layout.receives.clone())?,
            back: None,
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

    /// Whether a vector of owned unknowns is the beginning of one on the part's mesh.
    pub(crate) const fn is_first(&self) -> bool {
        self.is_first
    }

    /// What is under way.
    #[must_use]
    pub const fn wire(&self) -> &Wire {
        &self.wire
    }

    /// What brings sums at ghosts back, if it does.
    pub(crate) const fn back(&self) -> Option<&Back> {
        self.back.as_ref()
    }

    /// Gathers what is sent back of a vector on the part's mesh.
    pub(crate) fn pack_back<'a>(&'a self, on_mesh: &'a Buffer, back: &'a Back) -> Call<'a> {
        let sizes = [("n", self.n_ghosts), ("n_from", self.n_mesh)];
        let arrays = [("at", &self.ghosts_on_mesh), ("from", on_mesh), ("to", back.wire.packed())];
        Call::of(&self.take, &sizes, &arrays)
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
