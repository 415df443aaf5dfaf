//! How a kernel is mapped onto a device: the strategies of [`crate::strategies`] as data.

use crate::program::{CellKernel, NoSymmetry, OtherRules};
use crate::quadrature::QuadratureScheme;
use crate::strategies::{
    FactorCopy, FactorisedCells, FactorisedLines, FactorisedPlanes, FewestOperations, GroupLists,
    ListedCells, LoopLanes, MatrixBasis, MatrixCells, MatrixGroups, Objective, OwnedRows, PointTiles,
    SingleCell, StagedCells, StraightCells, StrategyError, SummedCells, dynamic_local, eliminate_sharing,
    factored_quadrature, factorised_cells, factorised_lines, factorised_planes, fewest_operations,
    listed_cells, loops_in_lanes, matrix_basis, matrix_cells, matrix_groups, multi_level_tiling, owned_rows,
    point_tiles, single_cell_per_work_item, staged_cells, staged_multi_level_tiling, stored_factors,
    straight_cells, summed_cells,
};
use crate::tiling::TilingParameters;
use purlin_ir::Kernel;
use purlin_primitives::{Lowering, Recipe};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod orbits;
mod parts;
mod relowering;
mod show;

pub use relowering::{Relowering, relowered};

/// How a kernel is mapped onto a device: a strategy with its parameters, which the tuner chooses
/// and records.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "snake_case", deny_unknown_fields)]
pub enum Mapping {
    /// As it is written: everything in order, on one work-item.
    Sequential,
    /// One cell a work-item (Kulkarni & Klöckner 2025, §4.1).
    SingleCell {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
    },
    /// One cell a work-item, tables in constant memory.
    ConstantCells {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
    },
    /// One cell a work-item, tables in constant memory, several quadrature points in one loop over
    /// degrees of freedom.
    PointTiles {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
        /// Maximum of the sums of a work-item in one loop.
        sums: u64,
    },
    /// One cell a work-item, gather and scatter through local memory.
    StagedCells {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
        /// Whether the tables are in constant memory.
        constant_tables: bool,
    },
    /// One cell a work-item in straight-line code, gather and scatter through local memory.
    StraightCells {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
        /// Whether cells that fill no work-group are mapped to one each, so that nothing in the
        /// code of the others is conditional.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        whole_groups: bool,
        /// Degrees of freedom that are gathered and scattered by themselves, in their order in a
        /// cell: those of vertices, edges, faces and the interior. None does all together.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<u64>,
    },
    /// One cell a work-item in straight-line code, degrees of freedom of a group in local memory by
    /// lists that are computed for a mesh.
    ListedCells(GroupLists),
    /// One cell at a time, the columns of its matrix in the lanes of vectors, rows padded; tables
    /// in constant memory.
    LoopLanes {
        /// Lanes of a vector.
        lanes: u64,
    },
    /// The rows of a degree of freedom a work-item, added up in local memory, tables in constant
    /// memory: of matrices whose [rows are owned](crate::lowering::MatrixResult::OwnedRows).
    OwnedRows {
        /// Degrees of freedom, and so work-items, of a work-group.
        owners: u64,
    },
    /// One cell a work-item, tables in constant memory where `constant_tables` says, and what the
    /// cells of a group add to one number summed in a tree: functionals.
    SummedCells {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
        /// Whether the tables are in constant memory.
        constant_tables: bool,
    },
    /// One cell a work-item, contractions with tables of tensor products axis by axis, tables in
    /// constant memory.
    FactorisedCells {
        /// Cells, and so work-items, of a work-group.
        cells: u64,
    },
    /// Contractions with tables of tensor products axis by axis, a work-item for each point of a
    /// layer of a cell.
    FactorisedPlanes {
        /// Cells of a work-group.
        cells: u64,
    },
    /// Contractions with tables of tensor products axis by axis, a work-item for each line of
    /// points of a cell.
    FactorisedLines {
        /// Cells of a work-group.
        cells: u64,
        /// Whether entries of matrices are literals, or else operands of constant memory.
        literal_tables: bool,
        /// Where a group copies factors at points to before anything else, which it else reads
        /// where it needs them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        factors: Option<FactorCopy>,
    },
    /// The multi-level tiling (Kulkarni & Klöckner 2025, §4.2).
    Tiling(TilingParameters),
    /// The same with gather and scatter through local memory, and one tile of a matrix for all
    /// functions that are evaluated with it.
    StagedTiling(TilingParameters),
    /// Sixteen cells a sub-group, products with tables over modes by matrix instructions.
    MatrixCells {
        /// Sub-groups of a work-group.
        sub_groups: u64,
        /// Work-groups of a launch.
        groups: u64,
        /// Tables that a work-group keeps in local memory, counted from the first.
        kept_tables: u64,
        /// Whether the next block of cells is copied while products are computed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overlapped: bool,
        /// Degrees of freedom that are gathered and scattered by themselves, as in
        /// [`StraightCells`](Self::StraightCells).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<u64>,
    },
    /// Sixteen cells a work-group and a sub-group for each component, products with tables by
    /// matrix instructions.
    MatrixGroups {
        /// Work-groups that a compute unit should have registers for; none leaves it to the
        /// compiler.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resident_groups: Option<u32>,
        /// Tiles of eight points whose values are in local memory together; none is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        point_tiles: Option<u32>,
        /// Whether the last degrees of freedom are multiplied by instructions of half the length
        /// where that multiplies fewer zeros.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        short_terms: bool,
        /// Whether a group is one sub-group, which has all components of its cells.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        one_sub_group: bool,
        /// Degrees of freedom that are gathered and scattered by themselves, as in
        /// [`StraightCells`](Self::StraightCells).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<u64>,
    },
    /// Sixteen cells a work-group and a sub-group for each derivative of a component, values at
    /// points by a basis of the columns of tables, products by matrix instructions.
    MatrixBasis {
        /// Work-groups that a compute unit should have registers for; none leaves it to the
        /// compiler.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resident_groups: Option<u32>,
    },
    /// Sums over modes instead of quadrature points where the integrand is linear, and then another
    /// mapping.
    Modes {
        /// The mapping of what is left to do.
        then: Box<Mapping>,
    },
    /// Factors at quadrature points that depend on the mesh alone are inputs, which are computed
    /// once for a mesh ([`Recipe::definitions`]), and then another mapping.
    StoredFactors {
        /// The mapping of what is left to do.
        then: Box<Mapping>,
    },
    /// The fewest operations a cell, and then another mapping.
    FewestOperations {
        /// What tables of sums may occupy in all, bytes.
        #[serde(default = "memory_of_tables")]
        memory: u64,
        /// What is minimised.
        #[serde(default)]
        objective: Objective,
        /// The mapping of the kernel that they leave.
        then: Box<Mapping>,
    },
    /// Sharing eliminated, and then another mapping.
    SharingElimination {
        /// The mapping of the kernel with fewer operations.
        then: Box<Mapping>,
    },
    /// Quadrature rules of another scheme, where both are exact, and then another mapping.
    Rules {
        /// The scheme.
        scheme: QuadratureScheme,
        /// The mapping of the kernel with these rules.
        then: Box<Mapping>,
    },
    /// Degrees of freedom combined in orbits of symmetric vertices, derivatives along symmetric
    /// directions, sums over modes, in straight-line code or by matrix instructions.
    Orbits {
        /// Work-groups that a compute unit should have registers for; none leaves it to the
        /// compiler.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resident_groups: Option<u32>,
        /// Whether quadrature points are combined in orbits, too, instead of modes: of integrands
        /// that have none.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        points: bool,
        /// The mapping that combines.
        then: Box<Mapping>,
    },
    /// Another mapping, with all arrays in local memory as parts of one that the launch provides.
    DynamicLocal {
        /// The mapping.
        then: Box<Mapping>,
    },
    /// Values for the holes of a schedule, which belongs to the kernel.
    Schedule {
        /// The values by hole, as the text of a schedule has them.
        values: BTreeMap<String, String>,
    },
}

/// Bytes that tables of sums may occupy if nothing else is said: the private cache of a core, as in
/// the experiments of Luporini et al. 2017, §7.1.
fn memory_of_tables() -> u64 {
    Mapping::MEMORY_OF_TABLES
}

impl Mapping {
    /// The second-level cache of the processor of Luporini et al. 2017, §7.1, bytes.
    pub const MEMORY_OF_TABLES: u64 = 256 << 10;

    /// One cell a work-item, 32 cells a work-group (Kulkarni & Klöckner 2025, §4.1).
    pub const SINGLE_CELL: Self = Self::SingleCell { cells: 32 };

    /// Whether one work-item does one cell.
    #[must_use]
    pub fn is_single_cell(&self) -> bool {
        matches!(self, Self::SingleCell { .. })
    }

    /// Whether a cell is straight-line code.
    #[must_use]
    pub fn is_straight(&self) -> bool {
        match self {
            Self::Modes { then }
            | Self::StoredFactors { then }
            | Self::Rules { then, .. }
            | Self::Orbits { then, .. }
            | Self::DynamicLocal { then }
            | Self::SharingElimination { then }
            | Self::FewestOperations { then, .. } => then.is_straight(),
            Self::StraightCells { .. } | Self::ListedCells(_) => true,
            Self::Sequential
            | Self::SingleCell { .. }
            | Self::ConstantCells { .. }
            | Self::PointTiles { .. }
            | Self::StagedCells { .. }
            | Self::LoopLanes { .. }
            | Self::OwnedRows { .. }
            | Self::SummedCells { .. }
            | Self::FactorisedCells { .. }
            | Self::FactorisedPlanes { .. }
            | Self::FactorisedLines { .. }
            | Self::MatrixCells { .. }
            | Self::MatrixGroups { .. }
            | Self::MatrixBasis { .. }
            | Self::Tiling(_)
            | Self::StagedTiling(_)
            | Self::Schedule { .. } => false,
        }
    }

    /// Products by matrix instructions, a sub-group for each component, as many groups at a time as
    /// the compiler finds.
    pub const MATRIX_GROUPS: Self = Self::MatrixGroups {
        resident_groups: None,
        point_tiles: None,
        short_terms: false,
        one_sub_group: false,
        parts: Vec::new(),
    };

    /// The same after modes instead of quadrature points.
    #[must_use]
    pub fn with_modes(self) -> Self {
        Self::Modes { then: Box::new(self) }
    }

    /// The same with factors that are stored.
    #[must_use]
    pub fn with_stored_factors(self) -> Self {
        Self::StoredFactors { then: Box::new(self) }
    }

    /// Whether products with tables are matrix instructions.
    #[must_use]
    pub fn is_by_instructions(&self) -> bool {
        matches!(self, Self::MatrixCells { .. } | Self::MatrixGroups { .. } | Self::MatrixBasis { .. })
            || self.behind().is_some_and(Self::is_by_instructions)
    }

    /// The mapping after what this one does first; none where it does nothing first.
    fn behind(&self) -> Option<&Self> {
        match self {
            Self::Modes { then }
            | Self::StoredFactors { then }
            | Self::Rules { then, .. }
            | Self::Orbits { then, .. }
            | Self::DynamicLocal { then }
            | Self::SharingElimination { then }
            | Self::FewestOperations { then, .. } => Some(then),
            Self::Sequential
            | Self::SingleCell { .. }
            | Self::ConstantCells { .. }
            | Self::PointTiles { .. }
            | Self::StagedCells { .. }
            | Self::StraightCells { .. }
            | Self::ListedCells(_)
            | Self::LoopLanes { .. }
            | Self::OwnedRows { .. }
            | Self::SummedCells { .. }
            | Self::FactorisedCells { .. }
            | Self::FactorisedPlanes { .. }
            | Self::FactorisedLines { .. }
            | Self::MatrixCells { .. }
            | Self::MatrixGroups { .. }
            | Self::MatrixBasis { .. }
            | Self::Tiling(_)
            | Self::StagedTiling(_)
            | Self::Schedule { .. } => None,
        }
    }

    /// Whether the kernel has inputs that are computed once for a mesh.
    #[must_use]
    pub fn needs_setup(&self) -> bool {
        matches!(self, Self::StoredFactors { .. } | Self::ListedCells(_))
            || self.behind().is_some_and(Self::needs_setup)
    }

    /// Whether the first of its lists is that of vertices.
    #[must_use]
    pub fn lists_vertices(&self) -> bool {
        matches!(self, Self::ListedCells(GroupLists { vertices: Some(_), .. }))
            || self.behind().is_some_and(Self::lists_vertices)
    }

    /// The same after rules of a scheme.
    #[must_use]
    pub fn with_rules(self, scheme: QuadratureScheme) -> Self {
        Self::Rules { scheme, then: Box::new(self) }
    }

    /// The same with degrees of freedom combined in orbits.
    #[must_use]
    pub fn with_orbits(self) -> Self {
        Self::Orbits { resident_groups: None, points: false, then: Box::new(self) }
    }

    /// The same with all arrays in local memory as parts of one that the launch provides.
    #[must_use]
    pub fn with_dynamic_local(self) -> Self {
        Self::DynamicLocal { then: Box::new(self) }
    }

    /// Maps a form, or a kernel whose tags say its roles; returns the kernel with the recipe that
    /// made it. Its steps start from the form as the mapping [lowers it](Recipe::lowering).
    ///
    /// # Errors
    /// A kernel without the roles that the mapping needs, the parameter that makes no sense, the
    /// step that was refused; values of holes, which belong to a schedule.
    pub fn apply(&self, form: &impl CellKernel) -> Result<(Kernel, Recipe), MappingError> {
        self.starting(self.applied(form))
    }

    fn applied(&self, form: &impl CellKernel) -> Result<(Kernel, Recipe), MappingError> {
        Ok(match self {
            Self::Sequential => (form.kernel().clone(), Recipe::default()),
            Self::SingleCell { cells } => single_cell(form, *cells, false)?,
            Self::ConstantCells { cells } => single_cell(form, *cells, true)?,
            Self::PointTiles { cells, sums } => {
                let args = PointTiles { work_group: *cells, sums: *sums, constant_tables: true };
                point_tiles(form.kernel(), &*form.program().map_err(StrategyError::from)?, &args)?
            }
            Self::StagedCells { cells, constant_tables } => staged(form, *cells, *constant_tables)?,
            Self::StraightCells { cells, whole_groups, parts } => {
                straight(form, *cells, *whole_groups, parts)?
            }
            Self::ListedCells(lists) => {
                let args = ListedCells { lists: *lists, orbits: Vec::new(), resident_groups: None };
                listed_cells(form.kernel(), &*form.program().map_err(StrategyError::from)?, &args)?
            }
            Self::LoopLanes { lanes } => by_columns(form, *lanes)?,
            Self::OwnedRows { owners } => by_owners(form, *owners)?,
            Self::SummedCells { cells, constant_tables } => {
                let args = SummedCells { work_group: *cells, constant_tables: *constant_tables };
                summed_cells(form.kernel(), &*form.cell_loop().map_err(StrategyError::from)?, &args)?
            }
            Self::FactorisedCells { cells } => factorised(form, *cells)?,
            Self::FactorisedPlanes { cells } => {
                let args = FactorisedPlanes { cells: *cells };
                factorised_planes(form.kernel(), &*form.cell_loop().map_err(StrategyError::from)?, &args)?
            }
            Self::FactorisedLines { cells, literal_tables, factors } => {
                let args =
                    FactorisedLines { cells: *cells, literal_tables: *literal_tables, factors: *factors };
                factorised_lines(form.kernel(), &*form.cell_loop().map_err(StrategyError::from)?, &args)?
            }
            Self::MatrixCells { sub_groups, groups, kept_tables, overlapped, parts } => {
                let (sub_groups, groups, kept_tables) = (*sub_groups, *groups, *kept_tables);
                let (overlapped, parts) = (*overlapped, parts.clone());
                by_cells(form, &MatrixCells { sub_groups, groups, kept_tables, overlapped, parts })?
            }
            Self::MatrixBasis { resident_groups } => by_basis(form, *resident_groups)?,
            Self::MatrixGroups { resident_groups, point_tiles, short_terms, one_sub_group, parts } => {
                let sizes = [*resident_groups, *point_tiles];
                by_components(form, sizes, [*short_terms, *one_sub_group], parts)?
            }
            Self::Tiling(p) => {
                multi_level_tiling(form.kernel(), &*form.program().map_err(StrategyError::from)?, p)?
            }
            Self::StagedTiling(p) => {
                staged_multi_level_tiling(form.kernel(), &*form.program().map_err(StrategyError::from)?, p)?
            }
            Self::Modes { then } => {
                let (kernel, recipe) = over_modes(form)?;
                after(recipe, then.apply(&kernel))?
            }
            Self::StoredFactors { then } => {
                let (kernel, recipe) = storing_factors(form)?;
                after(recipe, then.apply(&kernel))?
            }
            Self::FewestOperations { memory, objective, then } => {
                let program = form.program().map_err(StrategyError::from)?;
                let args = FewestOperations { memory: *memory, objective: *objective };
                let (kernel, recipe) = fewest_operations(form.kernel(), &program, &args)?;
                after(recipe, then.apply(&kernel))?
            }
            Self::SharingElimination { then } => {
                let (kernel, recipe, _) = eliminate_sharing(form.kernel())?;
                after(recipe, then.apply(&kernel))?
            }
            Self::Rules { scheme, then } => then.apply(&form.with_scheme(*scheme)?)?,
            Self::Orbits { resident_groups, points, then } => {
                then.in_orbits(form, *resident_groups, *points)?
            }
            Self::DynamicLocal { then } => {
                let (kernel, recipe) = then.apply(form)?;
                after(recipe, dynamic_local(&kernel).map_err(MappingError::from))?
            }
            Self::Schedule { .. } => return Err(MappingError::NoSchedule),
        })
    }
}

/// A mapping that was not applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MappingError {
    /// Its strategy does not suit the kernel.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The kernel keeps its quadrature rules.
    #[error(transparent)]
    Rules(#[from] OtherRules),
    /// The kernel has no symmetric tables, or the mapping does not use them.
    #[error(transparent)]
    Symmetry(#[from] NoSymmetry),
    /// A recipe for a form that is lowered with what this Purlin does not know.
    #[error("lowering `{found}`: found no such lowering, needed one of {needed}, or a later Purlin")]
    Lowering {
        /// What the recipe says.
        found: Lowering,
        /// What there is.
        needed: String,
    },
    /// The mapping has values for the holes of a schedule, and there is none.
    #[error("values of holes belong to a schedule; give the file that ends with it, and --hole NAME=VALUE")]
    NoSchedule,
}

type Mapped = Result<(Kernel, Recipe), StrategyError>;

/// What a mapping gave for a kernel that some steps had made.
fn after(
    first: Recipe,
    mapped: Result<(Kernel, Recipe), MappingError>,
) -> Result<(Kernel, Recipe), MappingError> {
    match mapped {
        Ok((kernel, rest)) => Ok((kernel, first.followed_by(rest))),
        Err(MappingError::Strategy(error)) => Err(MappingError::Strategy(error.behind(first))),
        Err(
            error @ (MappingError::NoSchedule
            | MappingError::Rules(_)
            | MappingError::Symmetry(_)
            | MappingError::Lowering { .. }),
        ) => Err(error),
    }
}

fn single_cell(form: &impl CellKernel, cells: u64, constant_tables: bool) -> Mapped {
    let args = SingleCell { work_group: cells, constant_tables };
    single_cell_per_work_item(form.kernel(), &*form.cell_loop()?, &args)
}

fn staged(form: &impl CellKernel, work_group: u64, constant_tables: bool) -> Mapped {
    let args = StagedCells { work_group, constant_tables, parts: Vec::new() };
    staged_cells(form.kernel(), &*form.program()?, &args)
}

fn straight(form: &impl CellKernel, work_group: u64, whole_groups: bool, parts: &[u64]) -> Mapped {
    let (orbits, point_orbits, resident_groups) = (Vec::new(), false, None);
    let parts = parts.to_vec();
    let args = StraightCells { work_group, orbits, point_orbits, resident_groups, whole_groups, parts };
    straight_cells(form.kernel(), &*form.program()?, &args)
}

fn factorised(form: &impl CellKernel, work_group: u64) -> Mapped {
    factorised_cells(form.kernel(), &*form.cell_loop()?, &FactorisedCells { work_group })
}

fn over_modes(form: &impl CellKernel) -> Mapped {
    factored_quadrature(form.kernel(), &*form.program()?)
}

fn storing_factors(form: &impl CellKernel) -> Mapped {
    stored_factors(form.kernel(), &*form.program()?)
}

fn by_cells(form: &impl CellKernel, args: &MatrixCells) -> Mapped {
    matrix_cells(form.kernel(), &*form.program()?, args)
}

/// With resident groups and tiles of points, with short terms and one sub-group.
fn by_components(
    form: &impl CellKernel,
    [resident_groups, point_tiles]: [Option<u32>; 2],
    [short_terms, one_sub_group]: [bool; 2],
    parts: &[u64],
) -> Mapped {
    let parts = parts.to_vec();
    let args = MatrixGroups { resident_groups, point_tiles, short_terms, one_sub_group, parts };
    matrix_groups(form.kernel(), &*form.program()?, &args)
}

fn by_basis(form: &impl CellKernel, resident_groups: Option<u32>) -> Mapped {
    matrix_basis(form.kernel(), &*form.program()?, &MatrixBasis { resident_groups })
}

fn by_columns(form: &impl CellKernel, lanes: u64) -> Mapped {
    loops_in_lanes(form.kernel(), &*form.program()?, &LoopLanes { lanes })
}

fn by_owners(form: &impl CellKernel, owners: u64) -> Mapped {
    owned_rows(form.kernel(), &*form.cell_loop()?, &OwnedRows { work_group: owners })
}
