//! Which mappings with lists of degrees of freedom to try on a mesh.

use super::throughput::{ThroughputModel, by_prediction};
use super::{Candidate, CandidatesError, FormCase, architecture, candidates, with_dynamic_local};
use crate::DeviceModel;
use crate::tuning::transform_with_setup;
use kingpost_fem::numbering::NumberingOrder;
use kingpost_ir::{AddressSpace, Affine, Kernel};
use kingpost_primitives::lists::Definition;
use kingpost_run::{Problem, exclusive_room, list_room};
use kingpost_strategies::Mapping;
use kingpost_strategies::{
    CellBlocks, Combinator, ListedCells, MapRuns, StoredFactors, with_modes, words_in_registers,
};

/// Cells of a group that are tried.
const CELLS: [u64; 3] = [64, 128, 256];

/// Room of a list is a multiple of this, so that similar meshes share a kernel.
const MULTIPLE: u64 = 32;

/// What lists are for besides degrees of freedom.
#[derive(Clone, Copy, Default)]
struct Variant {
    /// Whether vertices are listed.
    vertices: bool,
    /// Whether sums are by places.
    places: bool,
    /// Whether geometry is stored.
    stored: bool,
    /// Whether degrees of freedom that a group has alone are kept apart.
    exclusive: bool,
}

impl Variant {
    /// Those that are tried.
    fn all() -> Vec<Self> {
        let plain = Self::default();
        let updated = [plain, Self { vertices: true, ..plain }, Self { stored: true, ..plain }];
        let exclusive = updated.map(|variant| Self { exclusive: true, ..variant });
        let summed = updated[1..].iter().map(|variant| Self { places: true, ..*variant });
        updated.into_iter().chain(exclusive).chain(summed).collect()
    }
}

/// What to try on a case: what suits [its form](candidates), what depends on its mesh or the
/// numbers of its degrees of freedom, and both forms of [much local memory](with_dynamic_local).
///
/// # Errors
/// As [`candidates`].
pub fn candidates_on_mesh(
    case: &FormCase,
    model: &DeviceModel,
    local_bytes: u64,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    let mut found = candidates(&case.lowered, case.workload.size, model, local_bytes, budget)?;
    if budget > 0 {
        if model.is_card() {
            found.extend(in_runs(case, &found));
            found.extend(by_entity(case, &found));
            found.extend(in_blocks(case));
        }
        found.extend(listed(case, model, local_bytes));
        found.extend(with_dynamic_local(&case.lowered, &found)); // none of wavefronts
    }
    Ok(found)
}

/// What is found that transfers the degrees of freedom of each dimension separately, edge by edge
/// and face by face: of cases numbered so.
fn by_entity(case: &FormCase, found: &[Candidate]) -> Vec<Candidate> {
    let is_by_entity = case.order() == NumberingOrder::ByEntity;
    let Some(parts) = case.lowered.entity_parts().filter(|_| is_by_entity) else { return Vec::new() };
    let cell = case.lowered.cell;
    let entities = (0..=cell.dim()).map(|dim| if dim == 0 { 1 } else { cell.entities(dim).len() });
    let each = parts.iter().zip(entities).flat_map(|(part, n)| std::iter::repeat_n(part / n as u64, n));
    let each: Vec<u64> = each.collect();
    let in_parts = found.iter().map(|c| &c.parameters);
    let in_parts = in_parts.filter(|mapping| mapping.with_parts(&parts).as_ref() == Some(*mapping));
    in_parts.filter_map(|mapping| mapping.with_parts(&each)).map(Candidate::unranked).collect()
}

/// Blocks of cells a work-item, of cases numbered so whose cells suit straight-line code; with
/// modes where these take no more products.
fn in_blocks(case: &FormCase) -> Vec<Candidate> {
    let is_by_block = case.order() == NumberingOrder::ByBlock;
    if !is_by_block || words_in_registers(&case.lowered).is_none() {
        return Vec::new();
    }
    let over_modes = with_modes(&case.lowered).is_some_and(|(_, products)| products.is_le());
    let mapping = |blocks, cells| {
        let mapping = Mapping::from(CellBlocks { blocks, cells, by_vertices: true, ..CellBlocks::default() });
        Candidate::unranked(if over_modes { mapping.with_modes() } else { mapping })
    };
    let cells: &[Option<u64>] = if case.lowered.cell.dim() == 3 { &[None, Some(2)] } else { &[None] };
    [32, 64, 128].iter().flat_map(|blocks| cells.iter().map(move |cells| mapping(*blocks, *cells))).collect()
}

/// What is found that transfers the degrees of freedom of each dimension separately, with the first
/// numbers of runs instead of maps: of cases whose numbers have them.
fn in_runs(case: &FormCase, found: &[Candidate]) -> Vec<Candidate> {
    let cell = case.lowered.cell;
    let order = case.order();
    let has_runs = order.is_by_dimension() && order != NumberingOrder::ByBlock && cell.dim() > 1;
    let Some(parts) = case.lowered.entity_parts().filter(|_| has_runs) else { return Vec::new() };
    let entities = (0..=cell.dim()).map(|dim| cell.entities(dim).len() as u64);
    let runs: Vec<[u64; 2]> = parts.iter().zip(entities).map(|(part, count)| [part / count, count]).collect();
    let in_parts = found.iter().map(|c| &c.parameters);
    let in_parts = in_parts.filter(|mapping| mapping.with_parts(&parts).as_ref() == Some(*mapping));
    // those of the interior are one run: where atomic updates bind, stores of them gain, and else
    // they may lose
    let interiors: &[bool] =
        if runs.last().is_some_and(|[_, count]| *count == 1) { &[false, true] } else { &[false] };
    let of = |mapping: &Mapping| {
        // stored geometry reads no vertices
        let by_vertices = mapping.find::<StoredFactors>().is_none();
        let runs = |interior| MapRuns { runs: runs.clone(), by_vertices, interior };
        interiors
            .iter()
            .map(|interior| Candidate::unranked(runs(*interior).before(mapping.clone())))
            .collect::<Vec<_>>()
    };
    in_parts.flat_map(of).collect()
}

/// The same in the order in which the [throughput model](ThroughputModel) predicts their times, on
/// cards; the first `first` of them, if that is given. Of AMD's processors, on which nothing is
/// timed, [what is tried there](architecture::tried), in order only where `first` is given.
///
/// # Errors
/// As [`candidates`].
pub fn candidates_in_order(
    case: &FormCase,
    model: &DeviceModel,
    local_bytes: u64,
    budget: usize,
    first: Option<usize>,
) -> Result<Vec<Candidate>, CandidatesError> {
    let mut found = if architecture::is_of(model) {
        // without trials an order is worth its time only where some of them are left out
        if first.is_some() { architecture::in_order(case, model)? } else { architecture::tried(case, model) }
    } else {
        candidates_on_mesh(case, model, local_bytes, budget)?
    };
    if model.is_card() && !architecture::is_of(model) && found.len() > 1 {
        found = by_prediction(found, case, &ThroughputModel::new(model)?);
    }
    found.truncate(first.unwrap_or(usize::MAX));
    Ok(found)
}

/// One cell a work-item with lists of the degrees of freedom of a group, for cards and forms whose
/// cells suit straight-line code. Lists have room for the longest of the case's meshes; those that
/// leave `local_bytes` of local memory are not tried.
#[must_use]
pub fn listed(case: &FormCase, model: &DeviceModel, local_bytes: u64) -> Vec<Candidate> {
    let form = &case.lowered;
    let is_card = model.is_card();
    if !is_card || words_in_registers(form).is_none() {
        return Vec::new();
    }
    // maps and coordinates do not depend on the seed
    let problems = [case.small_problem(0), case.problem_to_measure(0)];
    let Ok(problems) = problems.into_iter().collect::<Result<Vec<Problem>, String>>() else {
        return Vec::new();
    };
    let over_modes = with_modes(form).is_some_and(|(_, products)| products.is_le());
    let mapping = |cells, room: Room, Variant { places, stored, .. }: Variant| {
        let Room { vertices, exclusive, .. } = room;
        let (items, compact, short) = (room.items(), true, true);
        let lists = ListedCells { cells, items, compact, places, vertices, stored, short, exclusive };
        let mapping = Mapping::from(lists);
        if over_modes { mapping.with_modes() } else { mapping }
    };
    let fitted = |(cells, variant): (u64, Variant)| {
        let (vertices, exclusive) = (variant.vertices.then_some(1), variant.exclusive.then_some(1));
        let asked = mapping(cells, Room { others: 1, vertices, exclusive }, variant);
        let room = problems.iter().map(|problem| Room::needed(problem, &asked));
        let room = room.collect::<Option<Vec<Room>>>()?.into_iter().reduce(Room::max)?;
        let mapping = mapping(cells, room, variant);
        let (kernel, _) = mapping.apply(form).ok()?;
        (bytes_of_group(&kernel) <= local_bytes).then(|| Candidate::unranked(mapping))
    };
    let all = CELLS.into_iter().flat_map(|cells| Variant::all().into_iter().map(move |v| (cells, v)));
    all.filter_map(fitted).collect()
}

/// What lists have room for.
#[derive(Clone, Copy)]
struct Room {
    /// Degrees of freedom that other groups may have, too.
    others: u64,
    /// Those that no other group has, if they are kept apart.
    exclusive: Option<u64>,
    /// If vertices are listed, too.
    vertices: Option<u64>,
}

impl Room {
    /// What the lists of a mapping need for a problem.
    fn needed(problem: &Problem, mapping: &Mapping) -> Option<Self> {
        let (_, _, mut definitions) = transform_with_setup(&problem.lowered, mapping).ok()?;
        let told_apart = |d: &Definition| matches!(d, Definition::Lists(lists) if lists.exclusive.is_some());
        let exclusive = if definitions.iter().any(told_apart) {
            let alone = exclusive_room(&definitions, &problem.memory).ok()?.into_iter().max()?;
            Some(alone.max(1).next_multiple_of(MULTIPLE))
        } else {
            None
        };
        for definition in &mut definitions {
            if let Definition::Lists(lists) = definition
                && let (Some((_, room)), Some(alone)) = (&mut lists.exclusive, exclusive)
            {
                *room = usize::try_from(alone).ok()?;
            }
        }
        let of_lists = list_room(&definitions, &problem.memory).ok()?;
        let needed = |room: Option<&u64>| room.map(|room| room.next_multiple_of(MULTIPLE));
        // the list of vertices is made first
        let lists_vertices = mapping.find::<ListedCells>().is_some_and(|lists| lists.vertices.is_some());
        let (vertices, items) = of_lists.split_at(usize::from(lists_vertices));
        let others = items.iter().max().map(|items| (*items - exclusive.unwrap_or(0)).max(1));
        Some(Self { others: needed(others.as_ref())?, exclusive, vertices: needed(vertices.first()) })
    }

    /// Degrees of freedom of a group.
    fn items(self) -> u64 {
        self.others + self.exclusive.unwrap_or(0)
    }

    fn max(self, other: Self) -> Self {
        Self {
            others: self.others.max(other.others),
            exclusive: self.exclusive.max(other.exclusive),
            vertices: self.vertices.max(other.vertices),
        }
    }
}

/// Local memory of a group before anything shares it.
fn bytes_of_group(kernel: &Kernel) -> u64 {
    let local = kernel.vars.values().filter(|v| v.space == AddressSpace::Local);
    local
        .map(|v| {
            let extents = v.shape.iter().filter_map(Affine::as_constant);
            v.ty.bytes() * extents.map(i64::unsigned_abs).product::<u64>()
        })
        .sum()
}
