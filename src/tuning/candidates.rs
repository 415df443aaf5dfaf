//! Which mappings to try.

use super::Candidate;
use super::known::is_functional;
use super::search::{CostModel, NoOccupancy, Ranked, SearchBounds, SearchSpace, staged_tilings};
use crate::Random;
use purlin_autotune::DeviceModel;
use purlin_forms::Mapping;
use purlin_forms::lowering::LoweredForm;
use purlin_forms::program::{CellKernel, CellProgram, NotAnAction};
use purlin_forms::quadrature::QuadratureScheme;
use purlin_forms::strategies::{
    FactorCopy, MAX_KEPT, factored_quadrature, line_sizes, matrix_group_dofs, matrix_orbit_sizes,
    matrix_sizes, stored_factor_count, table_products, tensor_dimension,
};
use purlin_forms::tiling::{Tiling, TilingError, TilingParameters, staged_tiling_sizes, tiling_sizes};
use purlin_ir::intrinsics::{self, MMA_M16N8K8_F64};
use purlin_ir::{Kernel, VarKind, Variable};
use std::cmp::Ordering;

/// Most sums of a work-item: 72 of the 127 that its registers hold, beside geometry, addresses and
/// a column of degrees of freedom. Beyond, ptxas spills (3-D P3 hyperelasticity, 144 sums: 768
/// bytes of stack and 1.7 times the time of the published kernel; H200, 2026-11-21).
const ACCUMULATORS: u64 = 72;

/// Beyond this, constant memory is slower than cached global memory (12 KB: 11.9 TFLOP/s against
/// 8.2, with the matrices of a whole action; H200, 2026-11-21).
const CONSTANT_CACHE_BYTES: u64 = 16 << 10;

/// Best ranked tilings looked at for each one that is tried.
const DEPTH: usize = 4000;

/// Tilings of one quadrature tile that are tried.
const SAME_QUAD_TILE: usize = 4;

/// Why there are no candidates.
#[derive(Debug, thiserror::Error)]
pub enum CandidatesError {
    /// The kernel is no operator action.
    #[error(transparent)]
    Sizes(#[from] NotAnAction),
    /// Its sizes have no tiling.
    #[error(transparent)]
    Tiling(#[from] TilingError),
    /// The device has no cost model.
    #[error(transparent)]
    Model(#[from] NoOccupancy),
}

/// The tilings of a case on a device, ranked by the cost model of Kulkarni & Klöckner 2025.
pub struct Choice<'m> {
    space: SearchSpace,
    model: CostModel<'m>,
    cells: f64,
}

impl<'m> Choice<'m> {
    /// The space of an action on a given number of cells within the constraints of its cost model, with at
    /// most `local_bytes` of local memory.
    ///
    /// # Errors
    /// A kernel without the stages of an action, a device of which is not known what bounds the
    /// work in flight.
    pub fn new(
        form: &impl CellKernel,
        cells: u64,
        model: &'m DeviceModel,
        local_bytes: u64,
    ) -> Result<Self, CandidatesError> {
        let own = model.occupancy.as_ref().map(SearchBounds::of).unwrap_or_default();
        let accumulators = Some(ACCUMULATORS);
        let bounds = SearchBounds { local_bytes: own.local_bytes.min(local_bytes), accumulators, ..own };
        let space = SearchSpace::new(tiling_sizes(form)?, bounds)?;
        Ok(Self { space, model: CostModel::new(model)?, cells: cells as f64 })
    }

    /// The `budget` best ranked tilings that differ in more than the sizes of tiles: the model has
    /// no cost for barriers, so that the first ones of all are the same mapping with tiles of all
    /// sizes. No two of them share work-items of a cell, quadrature tile and rows, and at most four
    /// of them a quadrature tile; their ranks are those among all.
    ///
    /// Where the columns of the best ranked one are too many for registers, the best ranked one of
    /// the same mapping that keeps them there is tried, too.
    #[must_use]
    pub fn ranked(&self, budget: usize) -> Vec<Candidate> {
        let survey = self.space.survey(&self.model, budget.saturating_mul(DEPTH), |_, _| {});
        // mappings that are tried, and whether one of them keeps its columns in registers
        let mut seen: Vec<([u64; 3], bool)> = Vec::new();
        let mut is_new = |p: &TilingParameters| {
            let mapping = [p.quad_tile, p.work_items_per_cell, p.eval_rows];
            let keeps = self.keeps_columns(p);
            if let Some((_, kept)) = seen.iter_mut().find(|(m, _)| *m == mapping) {
                let better = keeps && !*kept;
                *kept |= keeps;
                return better;
            }
            let same_tile = seen.iter().filter(|(m, _)| m[0] == p.quad_tile).count();
            let new = same_tile < SAME_QUAD_TILE;
            if new {
                seen.push((mapping, keeps));
            }
            new
        };
        let candidate = |(k, ranked): (u64, Ranked)| Candidate {
            parameters: Mapping::Tiling(ranked.parameters),
            rank: Some(k),
            predicted_s: Some(ranked.seconds_per_cell * self.cells),
        };
        let different = (1..).zip(survey.best).filter(|(_, ranked)| is_new(&ranked.parameters));
        different.map(candidate).take(budget).collect()
    }

    /// Whether a work-item has registers for its sums and the columns of every function together.
    fn keeps_columns(&self, p: &TilingParameters) -> bool {
        let trial = &self.space.sizes().trial;
        let rounds = p.eval_rows.div_ceil(p.work_items_per_cell.max(1));
        let sums: u64 = trial.iter().map(|s| s.derivatives * rounds).sum();
        let columns =
            trial.iter().zip(&p.eval_cols).map(|(s, cols)| cols * s.derivatives / s.matrices.max(1));
        sums + columns.max().unwrap_or(0) <= MAX_KEPT.unsigned_abs()
    }

    /// `count` different tilings, each as likely as any other.
    #[must_use]
    pub fn drawn(&self, count: usize, seed: u64) -> Vec<Candidate> {
        let mut random = Random::new(seed);
        let drawn = self.space.sample(count, |n| random.below(n));
        drawn.into_iter().filter_map(|tiling| self.candidate(tiling)).collect()
    }

    /// A tiling with its predicted time; none if it is not in the space.
    fn candidate(&self, parameters: TilingParameters) -> Option<Candidate> {
        let seconds = self.model.seconds_per_cell(&Tiling::new(self.space.sizes(), &parameters).ok()?);
        let predicted_s = Some(seconds * self.cells);
        Some(Candidate { parameters: Mapping::Tiling(parameters), rank: None, predicted_s })
    }
}

/// What to try on an action on a given number of cells: one cell a work-item, its variants if the tables are
/// small, straight-line code if it is short, tiles of quadrature points, sums axis by axis if
/// tables are tensor products, the `budget` best ranked tilings, and half as many staged ones;
/// tilings only of what [can be tiled](purlin_forms::program::CellProgram::tiled). Where quadrature
/// points can become fewer modes, the same of the action with modes; for cards, sixteen cells a
/// sub-group by matrix instructions. Where it is nonlinear, and other rules are exact with fewer
/// points, the same with these. For cards, each that gathers and scatters along work-items also with
/// degrees of freedom of vertices, edges, faces and the interior by themselves.
///
/// # Errors
/// As [`Choice::new`].
pub fn candidates(
    form: &impl CellKernel,
    cells: u64,
    model: &DeviceModel,
    local_bytes: u64,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    let mut found = at_points(form, cells, model, local_bytes, budget)?;
    if budget == 0 {
        return Ok(found);
    }
    let lanes = intrinsics::width(MMA_M16N8K8_F64);
    if model.occupancy.as_ref().is_some_and(|o| i64::try_from(o.sub_group) == Ok(lanes)) {
        found.extend(matrix(form, local_bytes).into_iter().map(Candidate::unranked));
    }
    if let Some(kernel) = with_fewer_modes(form) {
        let with_modes = at_points(&kernel, cells, model, local_bytes, budget)?;
        found
            .extend(with_modes.into_iter().map(|c| Candidate { parameters: c.parameters.with_modes(), ..c }));
    }
    if model.is_card() {
        found.extend(orbits(form, local_bytes).into_iter().map(Candidate::unranked));
        found.extend(stored(form).map(Candidate::unranked));
    }
    if let Some(ruled) = with_fewer_points(form) {
        let mut with_rules = at_points(&ruled, cells, model, local_bytes, budget)?;
        with_rules.extend(matrix(&ruled, local_bytes).into_iter().map(Candidate::unranked));
        let named = |c: Candidate| Candidate { parameters: c.parameters.with_rules(FEWEST), ..c };
        found.extend(with_rules.into_iter().map(named));
    }
    if model.is_card() {
        found.extend(in_parts(form, &found));
    }
    Ok(found)
}

/// The scheme with the fewest points of each degree.
const FEWEST: QuadratureScheme = QuadratureScheme::Default;

/// Cells of a group, and groups that a multiprocessor should have registers for, with which cells
/// that fill no group are tried in groups of their own: 2-D P5 elasticity then takes 850 µs in
/// place of 989, 3-D P4 Helmholtz 312 instead of 334, but 3-D P4 Laplace 312 instead of 299
/// (H200, 2026-11-26).
const WHOLE_GROUPS: [(u64, Option<u32>); 3] = [(32, None), (64, None), (128, Some(3))];

/// What is found that gathers and scatters degrees of freedom along work-items, with those of
/// vertices, edges, faces and the interior by themselves.
fn in_parts(form: &impl CellKernel, found: &[Candidate]) -> Vec<Candidate> {
    let parts = form.entity_parts().unwrap_or_default();
    let with = |c: &Candidate| c.parameters.with_parts(&parts).map(Candidate::unranked);
    if parts.is_empty() { Vec::new() } else { found.iter().filter_map(with).collect() }
}

/// The form with rules of fewer points, where these are exact and no modes replace them.
fn with_fewer_points(form: &impl CellKernel) -> Option<LoweredForm> {
    let points = |program: &CellProgram| program.blocks.iter().map(|b| b.points).sum::<i64>();
    let own = points(&*form.program().ok()?);
    let ruled = form.with_scheme(FEWEST).ok()?;
    (points(&ruled.program) < own && with_modes(form).is_none()).then_some(ruled)
}

/// Mappings that combine degrees of freedom in orbits: straight-line code, where what tables over
/// modes have besides zeros is short, as many blocks as an orbit has entries; matrix instructions,
/// with as many tables as fit beside those of the other groups of a unit.
#[must_use]
pub fn orbits(form: &impl CellKernel, local_bytes: u64) -> Vec<Mapping> {
    let (Ok((symmetric, orbits)), Some((modes, _))) = (form.symmetric(), with_modes(form)) else {
        return Vec::new();
    };
    let blocks = orbits.iter().flatten().map(|orbit| orbit.len() as i64).next().unwrap_or(1);
    let products = modes.program().map_or(i64::MAX, |p| table_products(&p)) / blocks;
    let mut found = Vec::new();
    if symmetric.program.shares_tables && products <= STRAIGHT_PRODUCTS {
        let groups = [(32, None), (64, None), (128, None), (64, Some(6)), (128, Some(3)), (128, Some(4))];
        let mapping = |whole_groups| {
            move |(cells, resident_groups)| {
                let then = Box::new(Mapping::StraightCells { cells, whole_groups, parts: Vec::new() });
                Mapping::Orbits { resident_groups, points: false, then }
            }
        };
        found.extend(groups.map(mapping(false)));
        found.extend(WHOLE_GROUPS.map(mapping(true)));
    }
    let vector = matrix_group_dofs(&symmetric.kernel, &symmetric.program);
    if vector.is_some_and(|n| n >= MATRIX_GROUP_DOFS) && symmetric.program.evaluated().len() == 1 {
        let all = matrix_groups(&symmetric.program).into_iter();
        found.extend(all.filter(|m| !has_short_terms(m)).map(Mapping::with_orbits));
    }
    let sizes = matrix_orbit_sizes(&symmetric.kernel, &symmetric.program, &orbits);
    if let Some(sizes) = sizes.filter(|s| s.dofs >= MATRIX_DOFS) {
        let mapping = |[sub_groups, groups]: [u64; 2], overlapped| {
            let of_group = local_bytes / (groups / MATRIX_CELLS[1][1]).max(1);
            let kept_tables = sizes.tables_that_fit(sub_groups, overlapped, of_group)?;
            Some(
                Mapping::MatrixCells { sub_groups, groups, kept_tables, overlapped, parts: Vec::new() }
                    .with_orbits(),
            )
        };
        found.extend(MATRIX_CELLS.into_iter().filter_map(|sizes| mapping(sizes, false)));
        found.extend(MATRIX_CELLS_AHEAD.into_iter().filter_map(|sizes| mapping(sizes, true)));
    }
    found
}

/// The kernel with modes, where a cell takes fewer products with entries of tables over modes than
/// over points.
pub(super) fn with_fewer_modes(form: &impl CellKernel) -> Option<Kernel> {
    with_modes(form).filter(|(_, products)| products.is_lt()).map(|(kernel, _)| kernel)
}

/// The kernel with modes instead of quadrature points, and how its products of a cell with entries
/// of tables compare with those over points.
pub(super) fn with_modes(form: &impl CellKernel) -> Option<(Kernel, Ordering)> {
    let program = form.program().ok()?;
    let (kernel, _) = factored_quadrature(form.kernel(), &program).ok()?;
    let products = table_products(&*kernel.program().ok()?).cmp(&table_products(&program));
    Some((kernel, products))
}

/// The same with the loops that the form has.
fn at_points(
    form: &impl CellKernel,
    cells: u64,
    model: &DeviceModel,
    local_bytes: u64,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    let mut found = vec![Candidate::unranked(Mapping::SINGLE_CELL)];
    if budget == 0 {
        return Ok(found);
    }
    found.extend(beyond_single_cell(table_bytes(form.kernel())).map(Candidate::unranked));
    found.extend(straight(form).into_iter().map(Candidate::unranked));
    found.extend(tiles_of_points(form).into_iter().map(Candidate::unranked));
    found.extend(factorised(form));
    found.extend(summed(form).into_iter().map(Candidate::unranked));
    if form.program()?.tiled(form.kernel()).is_err() {
        return Ok(found);
    }
    found.extend(Choice::new(form, cells, model, local_bytes)?.ranked(budget));
    let largest = model.occupancy.as_ref().map_or(u64::MAX, |o| o.local_bytes_per_group);
    found.extend(staged(form, local_bytes.min(largest), budget.div_ceil(2))?);
    Ok(found)
}

/// Variants of one cell a work-item that Kulkarni & Klöckner 2025 does not have, if the tables'
/// `table_bytes` fit a cache of constant memory: tables there, gather and scatter through local
/// memory. With larger tables the work-item spills anyway.
pub fn beyond_single_cell(table_bytes: u64) -> impl Iterator<Item = Mapping> {
    let constant = [32, 128].map(|cells| Mapping::ConstantCells { cells });
    let staged = [32, 64].map(|cells| Mapping::StagedCells { cells, constant_tables: true });
    let variants = [Mapping::SingleCell { cells: 128 }].into_iter().chain(constant).chain(staged);
    variants.filter(move |_| fits_constant_cache(table_bytes))
}

/// Most products with entries of tables that are written out in one kernel. 3-D P4 Helmholtz has
/// 6,650 and gains 1.46 times; 3-D P5 Laplace, 11,760, spills and is three times slower than a
/// tiling (H200, 2026-11-23).
const STRAIGHT_PRODUCTS: i64 = 9_000;

/// Most degrees of freedom of a cell, read and added to, for which straight-line code is the best
/// known: 255 registers hold them, and what is computed from them. Elasticity on 3-D P3 has 120 and
/// is three times slower than in tiles, on 2-D P5 84 and is 1.4 times faster (H200, 2026-11-23).
const STRAIGHT_WORDS: i64 = 84;

/// One cell a work-item in straight-line code, if that is short enough.
#[must_use]
pub fn straight(form: &impl CellKernel) -> Vec<Mapping> {
    let groups =
        [32, 64, 128].map(|cells| Mapping::StraightCells { cells, whole_groups: false, parts: Vec::new() });
    if is_short(form) { groups.to_vec() } else { Vec::new() }
}

/// Whether the work of a cell is short as straight-line code, in which entries of tables are
/// numbers: not those of facets, each of which reads its own.
fn is_short(form: &impl CellKernel) -> bool {
    form.program().is_ok_and(|p| p.shares_tables && table_products(&p) <= STRAIGHT_PRODUCTS)
}

/// Fewest of them for which gather and scatter along degrees of freedom pay: 8, of scalars on 3-D
/// P1, take 35 µs so and 26 µs where each cell has its own (H200, 2026-11-23).
const STAGED_WORDS: i64 = 12;

/// One cell a work-item on a card without a trial, where that is the best known: in straight-line
/// code, or with few degrees of freedom.
pub(super) fn usual_cells(form: &impl CellKernel) -> Option<Mapping> {
    Some(match words_in_registers(form)? {
        ..STAGED_WORDS => Mapping::ConstantCells { cells: 128 },
        _ => Mapping::StraightCells { cells: 64, whole_groups: false, parts: Vec::new() },
    })
}

/// One cell a work-item with stored geometry, where cells have so few degrees of freedom that each
/// gathers its own: the map to vertices and their coordinates then are most of what is read.
fn stored(form: &impl CellKernel) -> Option<Mapping> {
    let few = words_in_registers(form).is_some_and(|words| words < STAGED_WORDS);
    let simplex = few && tensor_dimension(form.kernel()).is_none();
    let mapping = simplex.then(|| Mapping::ConstantCells { cells: 128 }.with_stored_factors())?;
    let over_modes = with_modes(form).is_some_and(|(_, products)| products.is_le());
    Some(if over_modes { mapping.with_modes() } else { mapping })
}

/// Degrees of freedom of a cell, read and added to, where straight-line code has registers for
/// them.
pub(super) fn words_in_registers(form: &impl CellKernel) -> Option<i64> {
    let program = form.program().ok()?;
    let read = program.evaluated().into_iter().map(|k| &program.gathers[k]);
    let read: i64 = read.map(|g| g.count * g.insns.len() as i64).sum();
    let written = program.results.iter().map(|r| r.count * r.columns.unwrap_or(r.components));
    let words = read + written.sum::<i64>();
    (words <= STRAIGHT_WORDS && !is_functional(form) && is_short(form)).then_some(words)
}

/// One cell a work-item, several quadrature points in one loop over degrees of freedom, for kernels
/// that have such loops: eight cells are a vector of a processor, 32 a sub-group of a card.
#[must_use]
pub fn tiles_of_points(form: &impl CellKernel) -> Vec<Mapping> {
    let tiles = [(8, 16), (8, 8), (32, 16), (32, 8)].map(|(cells, sums)| Mapping::PointTiles { cells, sums });
    if form.program().is_ok() { tiles.to_vec() } else { Vec::new() }
}

/// Sub-groups of a group and groups of a launch that are tried with matrix instructions: two groups
/// on each of the 132 multiprocessors of an H100 or H200, or up to four, as registers and local
/// memory allow, and one.
const MATRIX_CELLS: [[u64; 2]; 5] = [[4, 264], [8, 132], [12, 132], [4, 396], [4, 528]];

/// The same where the next block of cells is copied while products are computed: of five that were
/// tried in 18 cases, these were the fastest of all ten that gained (H200, 2026-11-24); after
/// orbits seven of twelve cases gain by the first one, 6 to 13 % (H200, 2026-11-26).
const MATRIX_CELLS_AHEAD: [[u64; 2]; 2] = [[8, 132], [12, 132]];

/// Fewest degrees of freedom of a cell for which matrix instructions pay: the Laplace operator
/// takes 692 µs by them on 2-D P5, with 21, and 541 µs in straight-line code, and on P6, with 28,
/// 934 µs and 1112 µs (results/h200/tuned.jsonl).
const MATRIX_DOFS: i64 = 28;

/// Fewest degrees of freedom of a component for which matrix instructions pay in operators on
/// vectors: of 2-D P3, with 10, no action gained by them, of 2-D P4, with 15, the hyperelastic one
/// (results/h200/tuned.jsonl).
const MATRIX_GROUP_DOFS: i64 = 15;

/// Sub-groups of a multiprocessor for which registers are asked for: 168 for each work-item. 3-D P5
/// elasticity takes 3.05 ms with twelve and 3.98 ms with the eight that its 255 registers allow;
/// P4, with 152, loses by it (H200, 2026-11-23).
const RESIDENT_SUB_GROUPS: i64 = 12;

/// Products with tables by matrix instructions, with as many tables in `local_bytes` as fit.
#[must_use]
pub fn matrix(form: &impl CellKernel, local_bytes: u64) -> Vec<Mapping> {
    let Ok(program) = form.program() else { return Vec::new() };
    if matrix_group_dofs(form.kernel(), &program).is_some_and(|n| n >= MATRIX_GROUP_DOFS) {
        return matrix_groups(&program);
    }
    let Some(sizes) = matrix_sizes(form.kernel(), &program).filter(|s| s.dofs >= MATRIX_DOFS) else {
        return Vec::new();
    };
    let mapping = |[sub_groups, groups]: [u64; 2], overlapped| {
        let kept_tables = sizes.tables_that_fit(sub_groups, overlapped, local_bytes)?;
        Some(Mapping::MatrixCells { sub_groups, groups, kept_tables, overlapped, parts: Vec::new() })
    };
    let waiting = MATRIX_CELLS.into_iter().filter_map(|sizes| mapping(sizes, false));
    waiting.chain(MATRIX_CELLS_AHEAD.into_iter().filter_map(|sizes| mapping(sizes, true))).collect()
}

/// Most doubles of a result that a work-item holds where a sub-group has all components: 3-D P4
/// elasticity, with 60, takes 1.35 ms so and 1.69 with a sub-group a component (H200, 2026-11-26).
const HELD_RESULTS: i64 = 64;

/// Registers for this many groups of one sub-group are asked for, which 2-D P4 hyperelasticity gains
/// by: 1.99 ms instead of 2.15; with more degrees of freedom it spills (H200, 2026-11-26).
const RESIDENT_ALONE: u32 = 10;

/// A sub-group for each component, with the registers that the compiler takes and with those for
/// [`RESIDENT_SUB_GROUPS`], and one for all, each also with instructions of half the length where
/// the last degrees of freedom are as few.
fn matrix_groups(program: &CellProgram) -> Vec<Mapping> {
    let shapes = program.results.iter().map(|r| (r.components, r.count));
    let (components, count) = shapes.max().unwrap_or((1, 1));
    let groups = u32::try_from(RESIDENT_SUB_GROUPS / components.max(1)).unwrap_or(1).max(1);
    let mut shapes = vec![(None, false), (Some(groups), false)];
    // sixteen cells, 32 work-items, degrees of freedom in tiles of eight
    if components * ((count + 7) / 8) * 4 <= HELD_RESULTS {
        shapes.extend([(None, true), (Some(RESIDENT_ALONE), true)]);
    }
    let lengths: &[bool] = if (1..=4).contains(&(count % 8)) { &[false, true] } else { &[false] };
    let mapping = |(resident_groups, one_sub_group), short_terms| Mapping::MatrixGroups {
        resident_groups,
        point_tiles: None,
        short_terms,
        one_sub_group,
        parts: Vec::new(),
    };
    lengths.iter().flat_map(|short| shapes.iter().map(|shape| mapping(*shape, *short))).collect()
}

/// Whether the last degrees of freedom are multiplied by instructions of half the length.
const fn has_short_terms(mapping: &Mapping) -> bool {
    matches!(mapping, Mapping::MatrixGroups { short_terms: true, .. })
}

/// Sums of the cells of a group in a tree, for functionals.
#[must_use]
pub fn summed(form: &impl CellKernel) -> Vec<Mapping> {
    if !is_functional(form) {
        return Vec::new();
    }
    let constant_tables = fits_constant_cache(table_bytes(form.kernel()));
    [32, 128, 256].map(|cells| Mapping::SummedCells { cells, constant_tables }).to_vec()
}

/// Whether tables of that number of bytes are as fast in constant memory as in registers.
pub(super) const fn fits_constant_cache(table_bytes: u64) -> bool {
    table_bytes <= CONSTANT_CACHE_BYTES
}

/// Most work-items of a group that share lines; one cell may take more.
const MAX_OF_LINES: u64 = 256;

/// Sums axis by axis, for kernels with tables of tensor products.
#[must_use]
pub fn factorised(form: &impl CellKernel) -> Vec<Candidate> {
    if tensor_dimension(form.kernel()).is_none() {
        return Vec::new();
    }
    let mut mappings = [1, 2, 4, 8, 16, 32].map(|cells| Mapping::FactorisedCells { cells }).to_vec();
    if !is_functional(form) {
        mappings.extend([1, 2, 4, 8].map(|cells| Mapping::FactorisedPlanes { cells }));
        let items = line_sizes(form.kernel()).map_or(1, |lines| lines.work_items);
        let of_group = [1, 2, 3, 4, 5, 8, 16].into_iter().filter(|cells| cells * items <= MAX_OF_LINES);
        let lines = |cells| {
            [false, true].map(|literal_tables| Mapping::FactorisedLines {
                cells,
                literal_tables,
                factors: None,
            })
        };
        mappings.extend(of_group.flat_map(lines));
    }
    if has_few_factors(form) {
        let copied: Vec<Mapping> = mappings.iter().flat_map(with_copied_factors).collect();
        let stored = mappings.clone().into_iter().chain(copied).map(Mapping::with_stored_factors);
        mappings.extend(stored.collect::<Vec<_>>());
    }
    mappings.into_iter().map(Candidate::unranked).collect()
}

/// By lines, with the factors of a group in registers or local memory from the beginning.
fn with_copied_factors(mapping: &Mapping) -> Vec<Mapping> {
    let Mapping::FactorisedLines { cells, literal_tables: false, factors: None } = *mapping else {
        return Vec::new();
    };
    let copies = [FactorCopy::Private, FactorCopy::Local];
    let with = |copy| Mapping::FactorisedLines { cells, literal_tables: false, factors: Some(copy) };
    copies.map(with).to_vec()
}

/// Most factors of a point that are stored: six are those of a Laplace operator, and elasticity has
/// some forty.
const STORED_FACTORS: usize = 10;

/// Whether what multiplies the values of functions at a point are few numbers that depend on the
/// mesh alone.
fn has_few_factors(form: &impl CellKernel) -> bool {
    let count = form.program().ok().and_then(|program| stored_factor_count(form.kernel(), &program));
    count.is_some_and(|count| count <= STORED_FACTORS)
}

/// At most `budget` staged tilings of an action with at most `local_bytes` of local memory.
fn staged(
    form: &impl CellKernel,
    local_bytes: u64,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    let sizes = staged_tiling_sizes(form)?;
    let tilings = staged_tilings(&sizes, local_bytes).take(budget);
    Ok(tilings.map(|p| Candidate::unranked(Mapping::StagedTiling(p))).collect())
}

/// Bytes of all tables of a kernel.
pub fn table_bytes(kernel: &Kernel) -> u64 {
    let bytes = |v: &Variable| match &v.kind {
        VarKind::Table(data) => data.len() as u64 * v.ty.bytes(),
        VarKind::Param | VarKind::Argument(_) | VarKind::Temporary => 0,
    };
    kernel.vars.values().map(bytes).sum()
}
