//! How the matrix of a form is assembled on a device.

use crate::texts::{compiled, text};
use crate::{Arrays, Call, DeviceForm, FormPrograms, Patterns, RowOptions, SolveError};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::sparse::CsrPattern;
use kingpost_forms::form::{FormError, Inputs};
use kingpost_forms::lowering::{MatrixResult, MeshForm, NumberedMesh, OwnerCells, RowOwners};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};
use std::fmt;
use std::str::FromStr;

/// How the entries of the matrices of cells get into a sparse matrix.
///
/// # Source
/// Trotter et al. 2023, §3.4 to §3.7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssemblyStrategy {
    /// The matrices of cells are stored, and a second kernel adds the terms of each entry from a list.
    /// Nothing is atomic, so that the entries are the same bit by bit in each run. (The source adds
    /// them on the host.)
    Partial,
    /// Each entry of a cell's matrix is found in its row by bisection, and added there.
    Full,
    /// Each entry of a cell's matrix is added where a lookup table says.
    #[default]
    LookupTable,
    /// The same of a symmetric matrix, of which the entries on and above the diagonal are stored: about half
    /// of the updates, and of the entries. A form that is not proved symmetric is refused.
    SymmetricHalf,
    /// The same without atomic updates: cells in colours, no two cells of which share a degree of freedom,
    /// and a launch a colour (Cecka et al. 2011).
    Coloured,
    /// A work-item for each row of each cell's matrix, in the order of the rows of the sparse matrix.
    Rowwise,
    /// A work-item for the rows of a degree of freedom, which computes those rows of the matrices of its
    /// cells alone, adds them up and stores them. Nothing is atomic, so that the entries are the same bit
    /// by bit in each run. None: as the form takes it fastest ([`AssemblyStrategy::decided`]).
    OwnedRows(Option<RowOptions>),
}

/// A name that no strategy of assembly has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no assembly `{found}`; use {needed}")]
pub struct UnknownAssembly {
    found: String,
    needed: &'static str,
}

impl AssemblyStrategy {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Partial,
        Self::Full,
        Self::LookupTable,
        Self::SymmetricHalf,
        Self::Coloured,
        Self::Rowwise,
        Self::OWNED_ROWS,
    ];

    /// Rows that are owned as the form takes it fastest.
    pub const OWNED_ROWS: Self = Self::OwnedRows(None);

    /// What a bilinear form is lowered to, for a matrix whose longest row has a given number of
    /// entries: owners of rows have room for as many.
    #[must_use]
    pub const fn matrix(self, longest: usize) -> MatrixResult {
        match self {
            Self::Partial => MatrixResult::Cells,
            Self::Full => MatrixResult::Searched,
            Self::LookupTable => MatrixResult::Sparse,
            Self::SymmetricHalf => MatrixResult::SymmetricHalf,
            Self::Coloured => MatrixResult::Coloured,
            Self::Rowwise => MatrixResult::Rowwise,
            Self::OwnedRows(options) => {
                let RowOptions { cells, packed } = match options {
                    Some(options) => options,
                    // what every form takes
                    None => RowOptions { cells: OwnerCells::Mapped, packed: false },
                };
                MatrixResult::OwnedRows(RowOwners { packed, ..RowOwners::new(cells, longest) })
            }
        }
    }

    /// The same strategy, with what is open of it decided for a form on a mesh ([`RowOptions::of`]).
    ///
    /// # Errors
    /// A form that no kernel is lowered of.
    pub fn decided(self, form: &MeshForm, on: &NumberedMesh<'_>) -> Result<Self, FormError> {
        match self {
            Self::OwnedRows(None) => Ok(Self::OwnedRows(Some(RowOptions::of(form, on)?))),
            Self::Partial
            | Self::Full
            | Self::LookupTable
            | Self::SymmetricHalf
            | Self::Coloured
            | Self::Rowwise
            | Self::OwnedRows(Some(_)) => Ok(self),
        }
    }

    /// The same for a form on a mesh and the pattern of its matrix: with no more room than rows
    /// need, and what is open decided.
    ///
    /// # Errors
    /// As [`MeshForm::longest_rows`] where cells are turned, and [`AssemblyStrategy::decided`].
    pub fn matrix_of(
        self,
        form: &MeshForm,
        on: &NumberedMesh<'_>,
        pattern: &CsrPattern,
    ) -> Result<MatrixResult, FormError> {
        let matrix = self.decided(form, on)?.matrix(pattern.longest_row());
        if let MatrixResult::OwnedRows(owners) = matrix
            && owners.cells == OwnerCells::Turned
        {
            let longest = form.longest_rows(on, pattern)?;
            return Ok(MatrixResult::OwnedRows(RowOwners { longest, ..owners }));
        }
        Ok(matrix)
    }

    /// What the form is lowered to that has the pattern of its matrix, whatever the longest row is.
    #[must_use]
    pub const fn pattern(self) -> MatrixResult {
        match self {
            Self::SymmetricHalf => MatrixResult::SymmetricHalf,
            Self::Partial
            | Self::Full
            | Self::LookupTable
            | Self::Coloured
            | Self::Rowwise
            | Self::OwnedRows(_) => MatrixResult::Sparse,
        }
    }

    /// The strategy that adds what a bilinear form was lowered to.
    #[must_use]
    pub const fn of(matrix: MatrixResult) -> Option<Self> {
        match matrix {
            MatrixResult::Cells => Some(Self::Partial),
            MatrixResult::Searched => Some(Self::Full),
            MatrixResult::Sparse => Some(Self::LookupTable),
            MatrixResult::SymmetricHalf => Some(Self::SymmetricHalf),
            MatrixResult::Coloured => Some(Self::Coloured),
            MatrixResult::Rowwise => Some(Self::Rowwise),
            MatrixResult::OwnedRows(RowOwners { cells, packed, .. }) => {
                Some(Self::OwnedRows(Some(RowOptions { cells, packed })))
            }
            MatrixResult::Diagonal => None,
        }
    }

    /// Bytes of what is read or stored besides the form's own arrays, of a number of cells with a
    /// number of degrees of freedom of some components each, and a number of entries and rows of
    /// the sparse matrix.
    #[must_use]
    pub const fn bytes(self, cells: u64, nodes: u64, components: u64, entries: u64, rows: u64) -> u64 {
        let local = nodes * components;
        match self {
            Self::Partial => 12 * cells * local * local + 4 * (entries + 1),
            Self::Full => 4 * (cells * local + entries + rows + 1),
            Self::LookupTable | Self::SymmetricHalf | Self::Coloured => 4 * cells * local * local,
            Self::Rowwise => 4 * (cells * local * (local + 2) + 2 * rows),
            // components share lists, and at least two places stand in a number
            Self::OwnedRows(_) => 4 * (cells * nodes * (nodes.div_ceil(2) + 2) + 2 * rows / components),
        }
    }
}

impl fmt::Display for AssemblyStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Partial => "partial",
            Self::Full => "full",
            Self::LookupTable => "lookup-table",
            Self::SymmetricHalf => "symmetric-half",
            Self::Coloured => "coloured",
            Self::Rowwise => "rowwise",
            Self::OwnedRows(None) => "owned-rows",
            Self::OwnedRows(Some(options)) => return write!(f, "owned-rows:{options}"),
        })
    }
}

impl FromStr for AssemblyStrategy {
    type Err = UnknownAssembly;

    fn from_str(name: &str) -> Result<Self, UnknownAssembly> {
        let unknown = |needed| UnknownAssembly { found: name.into(), needed };
        let renamed = match name {
            "turned-rows" => Some("owned-rows:turned"),
            "strips" => Some("owned-rows:strips"),
            _ => None,
        };
        let found = Self::ALL.into_iter().find(|strategy| strategy.to_string() == name);
        match (found, name.split_once(':')) {
            (Some(found), _) => Ok(found),
            (None, Some(("owned-rows", options))) => {
                options.parse().map(|options| Self::OwnedRows(Some(options))).map_err(unknown)
            }
            (None, _) => {
                Err(unknown(renamed.unwrap_or(
                    "partial, full, lookup-table, symmetric-half, coloured, rowwise or owned-rows",
                )))
            }
        }
    }
}

/// The matrices of the entities of a kernel, and the terms of each entry among them.
struct Stored {
    n_terms: usize,
    matrices: Buffer,
    starts: Buffer,
    places: Buffer,
}

/// A bilinear form on a device and the entries of its sparse matrix.
pub struct MatrixAssembly {
    form: DeviceForm,
    n_entries: usize,
    /// Whether the first kernel of the form overwrites all entries.
    overwrites: bool,
    clear: Executable,
    add: Executable,
    /// One a kernel, if the matrices of entities are stored.
    stored: Vec<Stored>,
}

impl MatrixAssembly {
    /// Uploads the arrays of a bilinear form as [`DeviceForm::new`] does; what it was lowered to is the
    /// [strategy](AssemblyStrategy::of). `patterns` are those of the matrix.
    ///
    /// # Errors
    /// As [`DeviceForm::new`]; [`SolveError::Assembly`] of a form that has no matrix.
    pub fn new<'m, 'p>(
        device: &dyn Device,
        programs: &FormPrograms,
        mesh: &'m Mesh,
        inputs: &Inputs,
        patterns: impl Into<Patterns<'p>>,
        given: &[&str],
        arrays: &mut Arrays<'m>,
    ) -> Result<Self, SolveError> {
        let patterns = patterns.into();
        let first = programs.form().kernels().first();
        let is_matrix = programs.form().tabulated().rank == 2;
        let strategy = first.filter(|_| is_matrix).and_then(|kernel| AssemblyStrategy::of(kernel.matrix));
        let strategy = strategy.ok_or(SolveError::Assembly)?;
        let store = |pattern: &CsrPattern| -> Result<Stored, SolveError> {
            let terms = pattern.entry_terms();
            Ok(Stored {
                n_terms: terms.places.len(),
                matrices: device.allocate(8 * terms.places.len() as u64)?,
                starts: buffer_of(device, &terms.starts)?,
                places: buffer_of(device, &terms.places)?,
            })
        };
        let stored = match strategy {
            AssemblyStrategy::Partial => patterns.rows.iter().map(store).collect::<Result<_, _>>()?,
            AssemblyStrategy::Full
            | AssemblyStrategy::LookupTable
            | AssemblyStrategy::SymmetricHalf
            | AssemblyStrategy::Coloured
            | AssemblyStrategy::Rowwise
            | AssemblyStrategy::OwnedRows(_) => Vec::new(),
        };
        Ok(Self {
            form: DeviceForm::new(device, programs, mesh, inputs, patterns, given, arrays)?,
            overwrites: first.is_some_and(|kernel| kernel.matrix.is_owned()),
            n_entries: patterns.rows.first().map_or(0, CsrPattern::n_entries),
            clear: compiled(device, text!("clear"))?,
            add: compiled(device, text!("add_terms"))?,
            stored,
        })
    }

    /// Appends what assembles the matrix, whatever `values` held.
    pub fn assemble<'a>(
        &'a self,
        given: &[&'a Buffer],
        values: &'a Buffer,
        calls: &mut impl Extend<Call<'a>>,
    ) {
        let zero = |n: usize, v: &'a Buffer| Call::of(&self.clear, &[("n", n)], &[("v", v)]);
        if !self.overwrites {
            calls.extend([zero(self.n_entries, values)]);
        }
        if self.stored.is_empty() {
            self.form.add_to(given, values, calls);
        }
        for (kernel, stored) in self.stored.iter().enumerate() {
            let Stored { n_terms, matrices, starts, places } = stored;
            calls.extend([zero(*n_terms, matrices)]);
            calls.extend(self.form.add_kernel_to(kernel, given, matrices));
            let sizes = [("n", self.n_entries), ("n_terms", *n_terms)];
            let arrays = [("starts", starts), ("places", places), ("stored", matrices), ("values", values)];
            calls.extend([Call::of(&self.add, &sizes, &arrays)]);
        }
    }
}
