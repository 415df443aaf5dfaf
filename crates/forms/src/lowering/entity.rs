//! What the outermost loop of a kernel runs over, and the cells of each of its iterations.

use super::parameters::Signature;
use super::{LoweredRole, MatrixResult, VectorResult};
use crate::form::FormError;
use crate::tabulated::{Integral, IntegralType, Side, TabulatedForm};
use kingpost_ir::{Affine, Expr, ScalarType, VarId};

/// The outermost loop of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entities {
    pub(super) over: IntegralType,
    /// Whether the cells are listed.
    pub(super) listed: bool,
    /// Whether each stands with a row of a matrix.
    pub(super) of_rows: bool,
    /// Whether cells are turned, so that columns stand for their maps.
    pub(super) turned: bool,
}

impl Entities {
    pub(super) fn of(integral: &Integral) -> Self {
        let listed = !integral.subdomains.is_empty();
        Self { over: integral.over, listed, of_rows: false, turned: false }
    }

    /// Pairs of a row and a cell, if the rows of a matrix are assembled one by one.
    pub(super) fn with_rows(self, form: &TabulatedForm, matrix: MatrixResult) -> Result<Self, FormError> {
        let turned = matrix.is_turned();
        match (matrix, self.over) {
            (MatrixResult::Rowwise | MatrixResult::OwnedRows(_), over) => match over {
                _ if form.rank != 2 => Ok(self),
                IntegralType::Cell => Ok(Self { of_rows: true, turned, ..self }),
                IntegralType::ExteriorFacet | IntegralType::InteriorFacet => {
                    let message = "assembly row by row: found an integral over facets, needed cells; use a lookup table";
                    Err(FormError::Discretisation(message.into()))
                }
            },
            (
                MatrixResult::Cells
                | MatrixResult::Diagonal
                | MatrixResult::Sparse
                | MatrixResult::Coloured
                | MatrixResult::SymmetricHalf
                | MatrixResult::Searched,
                _,
            ) => Ok(self),
        }
    }

    /// Refuses vectors by colour or of entities, unless each iteration is a cell of its own.
    pub(super) fn check_vectors(self, form: &TabulatedForm, vector: VectorResult) -> Result<(), FormError> {
        if vector == VectorResult::Assembled || form.rank != 1 {
            return Ok(());
        }
        let found = match (self.over, self.listed) {
            (IntegralType::Cell, false) => return Ok(()),
            (IntegralType::Cell, true) => "an integral over part of the cells",
            (IntegralType::ExteriorFacet | IntegralType::InteriorFacet, _) => "an integral over facets",
        };
        let message = format!(
            "a vector without atomic updates: found {found}, needed all cells; assemble it atomically"
        );
        Err(FormError::Discretisation(message))
    }

    /// Name of the loop.
    pub(super) fn loop_name(self) -> &'static str {
        match (self.over, self.listed) {
            _ if self.of_rows => "pair",
            (IntegralType::Cell, false) => "cell",
            (IntegralType::Cell, true) => "listed_cell",
            (IntegralType::ExteriorFacet | IntegralType::InteriorFacet, _) => "facet",
        }
    }

    /// The sides of an entity, each with a cell.
    pub(super) fn sides(self) -> &'static [Option<Side>] {
        match self.over {
            IntegralType::Cell | IntegralType::ExteriorFacet => &[None],
            IntegralType::InteriorFacet => &[Some(Side::Plus), Some(Side::Minus)],
        }
    }
}

/// Place of a side among those of its entity.
pub(super) fn side_index(side: Option<Side>) -> usize {
    match side {
        None | Some(Side::Plus) => 0,
        Some(Side::Minus) => 1,
    }
}

/// What names end with that belong to a side.
pub(super) fn side_suffix(side: Option<Side>) -> &'static str {
    match side {
        None => "",
        Some(Side::Plus) => "_plus",
        Some(Side::Minus) => "_minus",
    }
}

/// The parameters and arguments that say which entities there are.
#[derive(Clone, Copy)]
pub(super) struct EntityVars {
    pub(super) kind: Entities,
    /// Number of entities.
    pub(super) count: VarId,
    /// The cells of each entity, unless entities are all cells.
    cells: Option<VarId>,
    local_facets: Option<VarId>,
    /// The orientations of an interior facet in its cells.
    states: Option<VarId>,
}

impl EntityVars {
    /// Declares the parameters.
    pub(super) fn params(signature: &mut Signature<'_>, kind: Entities) -> (VarId, VarId) {
        let n_cells = signature.param("n_cells", LoweredRole::CellCount);
        let count = match (kind.over, kind.listed) {
            _ if kind.of_rows => signature.param("n_pairs", LoweredRole::EntityCount),
            (IntegralType::Cell, false) => n_cells,
            (IntegralType::Cell, true) => signature.param("n_listed_cells", LoweredRole::EntityCount),
            (IntegralType::ExteriorFacet | IntegralType::InteriorFacet, _) => {
                signature.param("n_facets", LoweredRole::EntityCount)
            }
        };
        (n_cells, count)
    }

    /// Declares the arguments.
    pub(super) fn declare(
        signature: &mut Signature<'_>,
        kind: Entities,
        (_, count): (VarId, VarId),
        oriented: bool,
    ) -> Self {
        let mut vars = Self { kind, count, cells: None, local_facets: None, states: None };
        let mut shape = vec![Affine::var(count)];
        if kind.over == IntegralType::InteriorFacet {
            shape.push(Affine::constant(2));
        }
        let mut list = |stem: &str, role| signature.array(stem, ScalarType::I32, shape.clone(), role);
        match (kind.over, kind.listed) {
            _ if kind.turned => {}
            _ if kind.of_rows => vars.cells = Some(list("pair_cells", LoweredRole::EntityCells)),
            (IntegralType::Cell, false) => {}
            (IntegralType::Cell, true) => vars.cells = Some(list("listed_cells", LoweredRole::EntityCells)),
            (IntegralType::ExteriorFacet | IntegralType::InteriorFacet, _) => {
                vars.cells = Some(list("facet_cells", LoweredRole::EntityCells));
                vars.local_facets = Some(list("local_facets", LoweredRole::LocalFacets));
                if oriented {
                    vars.states = Some(list("facet_states", LoweredRole::FacetStates));
                }
            }
        }
        vars
    }

    fn at(&self, entity: Expr, side: Option<Side>) -> Vec<Expr> {
        let side = side.map(|_| Expr::Int(side_index(side) as i64));
        std::iter::once(entity).chain(side).collect()
    }

    /// The cell of a side.
    pub(super) fn cell(&self, entity: Expr, side: Option<Side>) -> Expr {
        match self.cells {
            None => entity,
            Some(cells) => Expr::load(cells, self.at(entity, side)),
        }
    }

    /// The leading indices of tables: of the orientation, if they have some, and of the facet.
    pub(super) fn leading(&self, entity: &Expr, side: Option<Side>, oriented: bool) -> Vec<Expr> {
        let states = self.states.filter(|_| oriented);
        let lists = states.into_iter().chain(self.local_facets);
        lists.map(|list| Expr::load(list, self.at(entity.clone(), side))).collect()
    }
}
