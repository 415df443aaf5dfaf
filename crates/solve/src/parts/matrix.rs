//! The rows of a matrix that a part owns.

use super::{Halo, PartLayout};
use crate::texts::{compiled, text};
use crate::{Call, CsrOperator, Operator, Queue, SolveError};
use kingpost_fem::sparse::CsrPattern;
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};
use rayon::prelude::*;

/// The rows of owned unknowns: entries in owned columns, and those in columns of ghosts apart from them.
pub struct PartMatrix {
    own: CsrOperator,
    coupling: Coupling,
    take: Executable,
    n_from: usize,
    /// Where each entry stands in the matrix of the part's mesh, of owned columns and of ghosts.
    from: [Buffer; 2],
}

/// Entries in columns of ghosts, of the rows that have any.
struct Coupling {
    n: usize,
    n_entries: usize,
    n_ghosts: usize,
    add: Executable,
    rows: Buffer,
    row_starts: Buffer,
    columns: Buffer,
    values: Buffer,
}

/// Rows as lists.
#[derive(Default)]
struct Rows {
    rows: Vec<i32>,
    starts: Vec<i32>,
    columns: Vec<i32>,
    from: Vec<i32>,
}

impl Rows {
    /// Appends a row of columns and places.
    fn push(&mut self, row: usize, entries: &mut [(i32, i32)]) {
        entries.sort_unstable();
        self.rows.push(row as i32);
        self.columns.extend(entries.iter().map(|(column, _)| column));
        self.from.extend(entries.iter().map(|(_, place)| place));
        self.starts.push(self.columns.len() as i32);
    }

    /// Appends rows, whose starts count from their own first entry.
    fn append(&mut self, others: &Self) {
        let before = self.columns.len() as i32;
        self.starts.extend(others.starts.iter().map(|start| before + start));
        self.rows.extend(&others.rows);
        self.columns.extend(&others.columns);
        self.from.extend(&others.from);
    }
}

/// Rows that a thread divides at a time.
const ROWS_OF_A_BLOCK: usize = 4096;

/// The owned rows of a pattern, in owned columns and in columns of ghosts.
fn split(pattern: &CsrPattern, layout: &PartLayout) -> [Rows; 2] {
    let n = pattern.row_starts.len().saturating_sub(1);
    // ghosts count from -1 downwards
    let mut places = vec![0_i32; n];
    for (place, unknown) in layout.owned.iter().enumerate() {
        places[*unknown as usize] = place as i32;
    }
    for (place, unknown) in layout.ghosts.iter().enumerate() {
        places[*unknown as usize] = -1 - place as i32;
    }
    let of_block = |(block, unknowns): (usize, &[i32])| {
        let mut found = <[Rows; 2]>::default();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (place, unknown) in (block * ROWS_OF_A_BLOCK..).zip(unknowns) {
            own.clear();
            others.clear();
            for k in pattern.row_starts[*unknown as usize]..pattern.row_starts[*unknown as usize + 1] {
                match places[pattern.columns[k as usize] as usize] {
                    ghost @ ..0 => others.push((-1 - ghost, k)),
                    column => own.push((column, k)),
                }
            }
            found[0].push(place, &mut own);
            if !others.is_empty() {
                found[1].push(place, &mut others);
            }
        }
        found
    };
    let blocks: Vec<[Rows; 2]> = layout.owned.par_chunks(ROWS_OF_A_BLOCK).enumerate().map(of_block).collect();
    let mut all = [(); 2].map(|()| Rows { starts: vec![0], ..Rows::default() });
    for found in &blocks {
        all.iter_mut().zip(found).for_each(|(all, found)| all.append(found));
    }
    all
}

/// The pattern of owned rows in owned columns, from that of the part's mesh.
pub(crate) fn own_pattern(pattern: &CsrPattern, layout: &PartLayout) -> CsrPattern {
    let [own, _] = split(pattern, layout);
    CsrPattern::of_block_rows(own.starts, own.columns, [1, 1])
}

impl PartMatrix {
    /// A matrix whose entries are among those of the part's mesh, which have this pattern; its values are
    /// poison.
    ///
    /// # Errors
    /// A row without an entry on the diagonal, no memory, a device that refuses the kernels.
    pub fn new(device: &dyn Device, pattern: &CsrPattern, layout: &PartLayout) -> Result<Self, SolveError> {
        let [own, others] = split(pattern, layout);
        let coupling = Coupling {
            n: others.rows.len(),
            n_entries: others.columns.len(),
            n_ghosts: layout.ghosts.len(),
            add: compiled(device, text!("add_ghosts"))?,
            rows: buffer_of(device, &others.rows)?,
            row_starts: buffer_of(device, &others.starts)?,
            columns: buffer_of(device, &others.columns)?,
            values: device.allocate(8 * others.columns.len() as u64)?,
        };
        Ok(Self {
            own: CsrOperator::of_rows(device, &own.starts, &own.columns)?,
            coupling,
            take: compiled(device, text!("take"))?,
            n_from: pattern.columns.len(),
            from: [buffer_of(device, &own.from)?, buffer_of(device, &others.from)?],
        })
    }

    /// Entries in owned columns, whose diagonal is that of the matrix.
    #[must_use]
    pub const fn own(&self) -> &CsrOperator {
        &self.own
    }

    /// Stored entries.
    #[must_use]
    pub const fn n_entries(&self) -> usize {
        self.own.n_entries() + self.coupling.n_entries
    }

    /// Takes the entries from those of the matrix of the part's mesh.
    #[must_use]
    pub fn gather<'a>(&'a self, values: &'a Buffer) -> [Call<'a>; 2] {
        let [own, others] = &self.from;
        let take = |n: usize, at: &'a Buffer, to: &'a Buffer| {
            let sizes = [("n", n), ("n_from", self.n_from)];
            Call::of(&self.take, &sizes, &[("at", at), ("from", values), ("to", to)])
        };
        let Coupling { n_entries, values: to, .. } = &self.coupling;
        [take(self.own.n_entries(), own, self.own.values()), take(*n_entries, others, to)]
    }

    /// Adds the products with the ghosts to those with owned unknowns.
    #[must_use]
    pub fn add_ghosts<'a>(&'a self, halo: &'a Halo, y: &'a Buffer) -> Call<'a> {
        let Coupling { n, n_entries, n_ghosts, add, rows, row_starts, columns, values } = &self.coupling;
        let n_rows = self.own.size();
        let sizes = [("n", *n), ("n_entries", *n_entries), ("n_ghosts", *n_ghosts), ("n_rows", n_rows)];
        let arrays = [
            ("rows", rows),
            ("row_starts", row_starts),
            ("columns", columns),
            ("values", values),
            ("ghosts", halo.ghosts()),
            ("y", y),
        ];
        Call::of(add, &sizes, &arrays)
    }
}

/// The rows of a part with what it exchanges: an operator on the unknowns that it owns.
pub struct PartRows {
    /// The rows.
    pub rows: PartMatrix,
    /// What is exchanged.
    pub halo: Halo,
    /// Whether products with owned columns run while ghosts are under way.
    pub overlaps: bool,
    /// Entries of the matrix of the part's mesh.
    values: Buffer,
}

impl PartRows {
    /// Rows of matrices that have a pattern on the part's mesh; their values are poison.
    ///
    /// # Errors
    /// As [`PartMatrix::new`].
    pub fn new(device: &dyn Device, pattern: &CsrPattern, layout: &PartLayout) -> Result<Self, SolveError> {
        Ok(Self {
            rows: PartMatrix::new(device, pattern, layout)?,
            halo: Halo::new(device, layout)?,
            overlaps: true,
            values: device.allocate(8 * pattern.columns.len() as u64)?,
        })
    }

    /// The entries of the matrix of the part's mesh, f64.
    #[must_use]
    pub const fn values(&self) -> &Buffer {
        &self.values
    }

    /// Takes the rows from the matrix of the part's mesh.
    #[must_use]
    pub fn gather(&self) -> [Call<'_>; 2] {
        self.rows.gather(&self.values)
    }
}

impl Operator for PartRows {
    fn size(&self) -> usize {
        self.rows.own.size()
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let Self { rows, halo, .. } = self;
        queue.push(halo.pack(x));
        queue.start(halo.wire());
        if !self.overlaps {
            queue.finish(halo.wire());
        }
        rows.own.apply(x, y, queue);
        if self.overlaps {
            queue.finish(halo.wire());
        }
        queue.push(rows.add_ghosts(halo, y));
    }
}

/// The matrix of a linear system: of all unknowns, or the rows of a part.
pub enum SystemMatrix {
    /// All of it.
    Whole(Box<CsrOperator>),
    /// The rows of the unknowns that a part owns.
    Part(Box<PartRows>),
}

impl SystemMatrix {
    /// The entries of the matrix that is assembled, which is that of the part's mesh; f64.
    #[must_use]
    pub const fn values(&self) -> &Buffer {
        match self {
            Self::Whole(matrix) => matrix.values(),
            Self::Part(rows) => rows.values(),
        }
    }

    /// Owned rows in owned columns.
    #[must_use]
    pub const fn own(&self) -> &CsrOperator {
        match self {
            Self::Whole(matrix) => matrix,
            Self::Part(rows) => rows.rows.own(),
        }
    }

    /// Stored entries of owned rows.
    #[must_use]
    pub const fn n_entries(&self) -> usize {
        match self {
            Self::Whole(matrix) => matrix.n_entries(),
            Self::Part(rows) => rows.rows.n_entries(),
        }
    }

    /// Unknowns of the mesh.
    pub(crate) fn n_mesh(&self) -> usize {
        match self {
            Self::Whole(matrix) => matrix.size(),
            Self::Part(rows) => rows.halo.n_mesh(),
        }
    }
}
