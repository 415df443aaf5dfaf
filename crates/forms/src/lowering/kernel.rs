//! Kernels of tabulated forms and what their arguments stand for.

use super::NoSymmetry;
use crate::program::{CellLoop, CellProgram, NotAnAction};
use crate::tabulated::{Integral, IntegralType, TabulatedForm};
use kingpost_fem::sparse::SlotPacking;
use kingpost_ir::Kernel;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a bilinear form is lowered to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatrixResult {
    /// The matrix of each entity, `[entities, rows, columns]`.
    #[default]
    Cells,
    /// The diagonal of the assembled matrix, an array of the test space.
    Diagonal,
    /// The entries of a sparse matrix, at places that an argument `[entities, rows, columns]` says:
    /// the lookup table of Trotter et al. 2023, §3.6.
    Sparse,
    /// The same without atomic updates, for entities whose matrices share no entry: the kernel
    /// assumes so. [`CsrPattern::colours`](kingpost_fem::sparse::CsrPattern::colours) finds such sets,
    /// each of which is a launch.
    Coloured,
    /// The entries on and above the diagonal of a sparse matrix, which is symmetric: of each
    /// entity's matrix those on and above its own diagonal are added, at places that an argument
    /// says as for
    /// [`MatrixResult::Sparse`]. [`CsrPattern::upper`](kingpost_fem::sparse::CsrPattern::upper) has them.
    ///
    /// That the matrices of entities are symmetric is proved as
    /// [`MirrorTriangle`](kingpost_primitives::primitives::MirrorTriangle) does; other forms are refused.
    SymmetricHalf,
    /// The entries of a sparse matrix, at places that are found by bisection of the columns of
    /// their row (Trotter et al. 2023, Algorithm 4). A bisection takes as many steps as the longest
    /// row needs, so that no step depends on what it finds.
    Searched,
    /// The entries of a sparse matrix, row by row: the kernel runs over pairs of a row and a cell
    /// that adds to it, and adds that row of the cell's matrix alone (Trotter et al. 2023,
    /// Algorithm 5).
    Rowwise,
    /// The entries of a sparse matrix, row by row, without atomic updates: an iteration of the
    /// outermost loop owns the rows of a degree of freedom. It computes those rows of the matrices
    /// of its cells alone, adds them up in an array, and stores that in the entries of its rows.
    ///
    /// The first kernel of a form overwrites the entries, where others add to them.
    ///
    /// The pairs of a degree of freedom and a cell stand in slices of 32 degrees of freedom: the
    /// first pair of each, then the second of each.
    OwnedRows(RowOwners),
}

/// How the rows of a matrix are owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOwners {
    /// How cells come to the owners of rows.
    pub cells: OwnerCells,
    /// Entries of the longest row of degrees of freedom at vertices, on edges, on faces and in
    /// cells; where cells are not turned, the first is that of all rows.
    pub longest: [usize; 4],
    /// Whether the rows of [`RowOwners::GROUP`] owners lie in one array as they do in the matrix,
    /// and are stored as one. Spaces of several components have no such rows.
    pub packed: bool,
}

/// How cells come to the owners of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnerCells {
    /// As they are: a list says which degree of freedom of a cell the owner is.
    Mapped,
    /// Of Lagrange elements of degree 1 to 3 on straight triangles or tetrahedra, turned: the owner
    /// is always at the first vertex, on the first edge, face or in the cell, so that its row of a
    /// cell's matrix is known when the kernel is written. Owners at vertices, on edges, faces and
    /// in cells have a loop each, and rooms as long as their rows are. Vertices of cells are found
    /// by the columns of the row: no map is read.
    ///
    /// The integrals have to be exact, as a rule has other points on a cell that is turned.
    Turned,
    /// The same of degree 1, as [strips](kingpost_fem::sparse::Strips): one vertex after the other
    /// comes to the cell, and those that stay are neither read again nor added to before they go.
    /// Degrees of freedom may be in any order.
    Strips,
}

impl RowOwners {
    /// Owners whose rows are packed together.
    pub const GROUP: usize = 64;

    /// Rows of at most a given number of entries.
    #[must_use]
    pub const fn new(cells: OwnerCells, longest: usize) -> Self {
        Self { cells, longest: [longest; 4], packed: false }
    }

    /// How places in rows are packed, where an owner has pairs with cells.
    pub(crate) fn packing(self) -> Option<SlotPacking> {
        match self.cells {
            OwnerCells::Mapped => Some(SlotPacking::of(self.longest[0].max(1))),
            OwnerCells::Turned => Some(SlotPacking::of(self.longest.into_iter().fold(1, usize::max))),
            OwnerCells::Strips => None,
        }
    }
}

impl OwnerCells {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mapped, Self::Turned, Self::Strips];
}

impl fmt::Display for OwnerCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapped => "mapped",
            Self::Turned => "turned",
            Self::Strips => "strips",
        })
    }
}

impl MatrixResult {
    /// How places in rows are packed, of rows that are owned by the pairs of an owner and a cell.
    #[must_use]
    pub fn packing(self) -> Option<SlotPacking> {
        match self {
            Self::OwnedRows(owners) => owners.packing(),
            Self::Cells
            | Self::Diagonal
            | Self::Sparse
            | Self::Coloured
            | Self::SymmetricHalf
            | Self::Searched
            | Self::Rowwise => None,
        }
    }

    /// Whether an iteration of the outermost loop owns the rows of a degree of freedom.
    #[must_use]
    pub const fn is_owned(self) -> bool {
        matches!(self, Self::OwnedRows(_))
    }

    /// Whether cells stand as their owner needs them, so that columns of rows stand for maps.
    #[must_use]
    pub const fn is_turned(self) -> bool {
        matches!(self, Self::OwnedRows(RowOwners { cells: OwnerCells::Turned | OwnerCells::Strips, .. }))
    }

    /// Whether the result is the entries of a sparse matrix.
    #[must_use]
    pub fn is_sparse(self) -> bool {
        match self {
            Self::Cells | Self::Diagonal => false,
            Self::Sparse
            | Self::Coloured
            | Self::SymmetricHalf
            | Self::Searched
            | Self::Rowwise
            | Self::OwnedRows(_) => true,
        }
    }
}

/// What a linear form is lowered to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorResult {
    /// An array of the test space, the L-vector: entities add to entries that they share, which
    /// mappings make atomic.
    #[default]
    Assembled,
    /// The same without atomic updates, for entities that share no degree of freedom: the kernel
    /// assumes so. [`map_colours`](kingpost_fem::sparse::map_colours) finds such sets, each of which is a
    /// launch.
    Coloured,
    /// The vector of each entity, `[entities, rows]`, in the order of its map: the E-vector. It is
    /// overwritten. [`EntryTerms::of_map`](kingpost_fem::sparse::EntryTerms::of_map) is the map that adds
    /// it up, transposed.
    Entities,
}

/// A list of a sparse matrix that assembly reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseList {
    /// Where rows start, i32 `[rows + 1]`.
    RowStarts,
    /// The column of each entry, ascending in a row, i32 `[entries]`.
    Columns,
    /// The row of each row of an entity's matrix, i32 `[entities, rows]`.
    EntityRows,
    /// The column of each column of an entity's matrix, i32 `[entities, columns]`.
    EntityColumns,
    /// Which row of its cell's matrix a pair adds, i32 `[pairs]`; of owned rows, which degree of
    /// freedom of the cell it is of.
    PairRows,
    /// The first pair of each degree of freedom, i32 `[dofs]`; of strips, the first number.
    PairFirsts,
    /// The pairs of each degree of freedom, i32 `[dofs]`; of strips, the numbers.
    PairCounts,
    /// Places in the rows of a pair of the columns of its cell, packed
    /// ([`kingpost_fem::sparse::SlotPacking`]), i32 `[words, pairs]`; of strips, the numbers, i32
    /// `[1, numbers]`.
    Slots,
}

/// A number of a sparse matrix that assembly needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparseCount {
    /// Rows.
    Rows,
    /// Steps of a bisection of the longest row.
    SearchSteps,
    /// Degrees of freedom that own rows.
    Owners,
    /// The first degree of freedom of an entity of a dimension; they follow each other.
    FirstOf {
        /// The dimension.
        dim: usize,
    },
    /// Degrees of freedom of entities of a dimension.
    OwnersOf {
        /// The dimension.
        dim: usize,
    },
}

/// How a tabulated form is lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TabulatedOptions {
    /// Name of the kernels, instead of that of the form.
    pub name: Option<String>,
    /// What a bilinear form becomes.
    pub matrix: MatrixResult,
    /// What a linear form becomes.
    pub vector: VectorResult,
    /// Names of coefficients that are given by the values in each cell, E-vectors
    /// ([`LoweredRole::CellValues`]), which no map gathers.
    pub cell_values: BTreeSet<String>,
    /// Components of an entry of the array of the position, if it has more than space has
    /// dimensions: those of DOLFINx are 3.
    pub position_width: Option<usize>,
    /// Whether the rules of all integrals are exact, so that they have the same value on cells
    /// whose vertices are permuted. [`OwnerCells::Turned`] and [`OwnerCells::Strips`] need that.
    pub is_exact: bool,
    /// Whether each sub-element of a result has a kernel of its own. Each then has one element
    /// vector, so that all strategies take it, and evaluates again what it shares with others.
    pub split_results: bool,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredArgument {
    /// Its name in the kernel.
    pub name: String,
    /// What it stands for.
    pub role: LoweredRole,
}

/// What an argument stands for; places are those of the form's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoweredRole {
    /// Parameter: number of cells.
    CellCount,
    /// Parameter: number of facets, or of listed cells.
    EntityCount,
    /// Parameter: number of entries of the arrays of a space.
    DofCount {
        /// The space.
        space: usize,
    },
    /// Parameter: number of stored entries of a sparse matrix.
    NonzeroCount {
        /// The output.
        output: usize,
    },
    /// Degrees of freedom of the cells, i32 `[cells, columns]`.
    Map {
        /// The space.
        space: usize,
    },
    /// States of the transforms of a space, i32 `[cells, transforms]`.
    States {
        /// The space.
        space: usize,
    },
    /// A function, `[n]` or `[n, block]`.
    Function {
        /// The function.
        function: usize,
    },
    /// A function by its degrees of freedom in each cell, in the order of the map of its space:
    /// `[cells, columns]` or `[cells, columns, block]`, the E-vector.
    CellValues {
        /// The function.
        function: usize,
    },
    /// The positions of vertices in the order of their degrees of freedom, `[n, components]`.
    VertexPoints,
    /// A component of a constant, passed by value.
    Constant {
        /// The constant.
        constant: usize,
        /// The component.
        component: usize,
    },
    /// A result, added to: `[1]` of a functional, `[n]` or `[n, block]` of a linear form, else as
    /// [`MatrixResult`] and [`VectorResult`] say.
    Output {
        /// The output.
        output: usize,
    },
    /// The cells of the entities, i32 `[entities]`, of interior facets `[facets, 2]`.
    EntityCells,
    /// The numbers of facets in their cells, of the same shape.
    LocalFacets,
    /// The orientations of facets in their cells, i32 `[facets, 2]`.
    FacetStates,
    /// Where the entries of an entity's matrix stand, i32 `[entities, rows, columns]`, or those of
    /// its row, i32 `[pairs, columns]`.
    Positions {
        /// The output.
        output: usize,
    },
    /// A list of a sparse matrix.
    SparseList {
        /// The output.
        output: usize,
        /// Which one.
        list: SparseList,
    },
    /// Parameter: a number of a sparse matrix.
    SparseCount {
        /// The output.
        output: usize,
        /// Which one.
        count: SparseCount,
    },
}

impl LoweredRole {
    /// Whether it is a number that the extents of arrays say.
    pub(crate) const fn is_count(self) -> bool {
        matches!(
            self,
            Self::CellCount
                | Self::EntityCount
                | Self::DofCount { .. }
                | Self::NonzeroCount { .. }
                | Self::SparseCount { .. }
        )
    }
}

/// The orbits of the nodes of an element, each a list of nodes by permutation.
pub type Orbits = Vec<Vec<u32>>;

/// A kernel that was lowered again, and the orbits of the nodes of its elements.
pub(super) type Again = Result<(LoweredKernel, Vec<Orbits>), NoSymmetry>;

/// What a kernel was lowered from.
#[derive(Debug)]
pub(super) struct Origin {
    /// The form, with the integrals of the kernel alone.
    pub(super) form: TabulatedForm,
    pub(super) name: String,
    pub(super) options: TabulatedOptions,
    /// Whether the kernel is the first of its form.
    pub(super) first: bool,
    pub(super) symmetric: OnceLock<Again>,
    pub(super) in_point_orbits: OnceLock<Again>,
}

impl Origin {
    pub(super) fn new(
        form: &TabulatedForm,
        name: &str,
        integrals: &[&Integral],
        options: &TabulatedOptions,
        first: bool,
    ) -> Self {
        let integrals = integrals.iter().map(|i| (*i).clone()).collect();
        let form = TabulatedForm { integrals, ..form.clone() };
        let (symmetric, in_point_orbits) = (OnceLock::new(), OnceLock::new());
        Self { form, name: name.into(), options: options.clone(), first, symmetric, in_point_orbits }
    }
}

/// A kernel of integrals over the same entities, and what it computes.
#[derive(Clone, Debug)]
pub struct LoweredKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// The roles of its parts, or why strategies that need them do not take it.
    pub program: Result<CellProgram, NotAnAction>,
    /// Its outermost loop, and what it adds to the result: all that a mapping of one entity to a
    /// work-item needs.
    pub cells: CellLoop,
    /// Its parameters and arguments, in the order of its signature.
    pub arguments: Vec<LoweredArgument>,
    /// What the outermost loop runs over.
    pub over: IntegralType,
    /// The parts of the mesh that the entities are of; none for all of it.
    pub subdomains: Vec<i64>,
    /// Quadrature points per entity, by integral.
    pub points: Vec<usize>,
    /// What a bilinear form became.
    pub matrix: MatrixResult,
    /// What a linear form became.
    pub vector: VectorResult,
    /// What it was lowered from; none where another form is known.
    pub(super) origin: Option<Arc<Origin>>,
}

impl LoweredKernel {
    /// The space whose degrees of freedom an output has one entry each for, if it does.
    #[must_use]
    pub fn result_space(&self, form: &TabulatedForm, output: usize) -> Option<usize> {
        match form.outputs.get(output)?.spaces[..] {
            [test] if self.vector != VectorResult::Entities => Some(test),
            [test, _] if self.matrix == MatrixResult::Diagonal => Some(test),
            _ => None,
        }
    }
}
