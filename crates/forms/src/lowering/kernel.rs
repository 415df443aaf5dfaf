//! Kernels of tabulated forms and what their arguments stand for.

use super::{builder, symmetric, tensor_order};
use crate::form::FormError;
use crate::program::{CellLoop, CellProgram, NotAnAction};
use crate::tabulated::{Integral, IntegralType, Role, TabulatedForm, Term};
use purlin_ir::Kernel;
use purlin_ir::text::suggestion;
use std::collections::BTreeSet;

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
    /// assumes so. [`CsrPattern::colours`](purlin_fem::sparse::CsrPattern::colours) finds such sets,
    /// each of which is a launch.
    Coloured,
    /// The entries on and above the diagonal of a sparse matrix, which is symmetric: of each
    /// entity's matrix those on and above its own diagonal are added, at places that an argument
    /// says as for
    /// [`MatrixResult::Sparse`]. [`CsrPattern::upper`](purlin_fem::sparse::CsrPattern::upper) has them.
    ///
    /// That the matrices of entities are symmetric is proved as
    /// [`MirrorTriangle`](purlin_primitives::primitives::MirrorTriangle) does; other forms are refused.
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
    OwnedRows {
        /// Entries of the longest row.
        longest: usize,
    },
}

impl MatrixResult {
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
            | Self::OwnedRows { .. } => true,
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
    /// assumes so. [`map_colours`](purlin_fem::sparse::map_colours) finds such sets, each of which is a
    /// launch.
    Coloured,
    /// The vector of each entity, `[entities, rows]`, in the order of its map: the E-vector. It is
    /// overwritten. [`EntryTerms::of_map`](purlin_fem::sparse::EntryTerms::of_map) is the map that adds
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
    /// The first pair of each degree of freedom, i32 `[dofs]`.
    PairFirsts,
    /// The pairs of each degree of freedom, i32 `[dofs]`.
    PairCounts,
    /// Places in the rows of a pair of the columns of its cell, packed
    /// ([`purlin_fem::sparse::SlotPacking`]), i32 `[words, pairs]`.
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

/// Lowers a tabulated form: one kernel for the integrals over the same kind of entity and the same
/// parts of the mesh, in the order in which they first occur.
///
/// One kernel a kind lets the caller launch each on the entities it has, and overlap them;
/// integrals that share entities share what they gather. Nodes of squares and cubes are gathered in
/// the order of the axes, so that tables are tensor products.
///
/// # Errors
/// What has no kernel: a function that no target has, a diagonal that is none; cell values of what
/// is no coefficient, or with a vector by colours.
pub fn lower_tabulated(
    form: &TabulatedForm,
    options: &TabulatedOptions,
) -> Result<Vec<LoweredKernel>, FormError> {
    check_cell_values(form, options)?;
    let orders = tensor_order::orders(form, options);
    let ordered = tensor_order::reordered(form, &orders);
    let form = &ordered;
    let mut groups: Vec<Vec<&Integral>> = Vec::new();
    for integral in &form.integrals {
        let same =
            |first: &&Integral| (first.over, &first.subdomains) == (integral.over, &integral.subdomains);
        match groups.iter_mut().find(|g| g.first().is_some_and(same)) {
            Some(group) => group.push(integral),
            None => groups.push(vec![integral]),
        }
    }
    let stem = options.name.as_deref().unwrap_or(&form.name);
    let mut kernels = Vec::new();
    for group in &groups {
        let name = kernel_name(stem, group);
        let parts = if options.split_results { split(group) } else { Vec::new() };
        if parts.len() < 2 {
            kernels.push(builder::build(form, &name, group, options, &orders, kernels.is_empty())?);
            continue;
        }
        for (k, part) in parts.iter().enumerate() {
            let part: Vec<&Integral> = part.iter().collect();
            let (name, first) = (format!("{name}_{k}"), kernels.is_empty());
            kernels.push(builder::build(form, &name, &part, options, &orders, first)?);
        }
    }
    if options.matrix == MatrixResult::SymmetricHalf && form.rank == 2 {
        symmetric::check(form, &kernels)?;
    }
    Ok(kernels)
}

/// Refuses cell values of a name that no coefficient has, and those of cells that are renumbered by
/// colour.
fn check_cell_values(form: &TabulatedForm, options: &TabulatedOptions) -> Result<(), FormError> {
    let first = options.cell_values.first();
    if let Some(name) = first.filter(|_| (form.rank, options.vector) == (1, VectorResult::Coloured)) {
        return Err(FormError::Discretisation(format!(
            "values of `{name}` cell by cell: found a vector by colours, each launch of which has cells of its \
             own, needed one launch over all of them; assemble it atomically, or store the vectors of entities"
        )));
    }
    let coefficients = form.functions.iter().filter(|f| f.role == Role::Coefficient);
    let known: BTreeSet<&str> = coefficients.map(|f| f.name.as_str()).collect();
    let Some(name) = options.cell_values.iter().find(|name| !known.contains(name.as_str())) else {
        return Ok(());
    };
    let hint = suggestion(name, known.iter().copied()).map(|h| format!("; {h}")).unwrap_or_default();
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() { "and the form has none".to_owned() } else { known.join(", ") };
    Err(FormError::Discretisation(format!(
        "values of `{name}` cell by cell: found no coefficient of this name, needed one of them: {known}{hint}"
    )))
}

/// The integrals with the terms of one sub-element of a result each.
fn split(integrals: &[&Integral]) -> Vec<Vec<Integral>> {
    let key = |integral: &Integral, term: &Term| {
        let test = term.arguments.first();
        let columns = test.map(|t| (t.offset, t.stride, integral.tables[t.table].dofs(), t.side));
        (term.output, columns)
    };
    let mut keys = Vec::new();
    for (integral, term) in integrals.iter().flat_map(|i| i.terms.iter().map(move |t| (i, t))) {
        let key = key(integral, term);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let part = |wanted: &_| -> Vec<Integral> {
        let with_own = |integral: &&Integral| {
            let mut own = Integral::clone(integral);
            own.terms.retain(|term| key(integral, term) == *wanted);
            own
        };
        integrals.iter().map(with_own).filter(|i| !i.terms.is_empty()).collect()
    };
    keys.iter().map(part).collect()
}

/// `poisson`, `poisson_exterior_facets`, `poisson_cells_1_2`.
fn kernel_name(stem: &str, integrals: &[&Integral]) -> String {
    let Some(first) = integrals.first() else { return stem.to_owned() };
    let ids = first.subdomains.iter().map(|id| format!("_{}", id.to_string().replace('-', "m")));
    let ids: String = ids.collect();
    match first.over {
        IntegralType::Cell if ids.is_empty() => stem.to_owned(),
        IntegralType::Cell => format!("{stem}_cells{ids}"),
        IntegralType::ExteriorFacet => format!("{stem}_exterior_facets{ids}"),
        IntegralType::InteriorFacet => format!("{stem}_interior_facets{ids}"),
    }
}
