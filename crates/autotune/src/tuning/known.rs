//! The mapping of a form that is known to be fast on a device.
//!
//! One cascade serves the command line, [`jit`](crate::jit()) and the Python package:
//!
//! 1. the fastest trial of the kernel on the device, or of its operator with another rule;
//! 2. what is shipped for the device's architecture: for the operator, or for the operator whose
//!    sizes are nearest, with as many tiles;
//! 3. what suits most forms on that architecture, over modes where those are fewer than quadrature
//!    points. A functional has one update of the result a group;
//! 4. on other cards, the tiling that the cost model ranks first;
//! 5. on a processor, facets one at a time where that is as fast, as compilers take long for their code in
//!    lanes; cells in the lanes of vectors: their sums factorised where tables are tensor
//!    products, matrices of cells with the fewest operations where these are far fewer, over modes
//!    where those are no more than quadrature points;
//! 6. one cell a work-item.
//!
//! The first that the form and the device can take is used. Where numbers are by entity, their own
//! trials and what is shipped for them stand before all of these ([`by_entity`]); likewise on
//! meshes from files ([`unstructured`]).

use super::candidates::usual_cells;
use super::search::staged_tilings;
use super::similar::{FormSizes, similar};
use super::vectors::HostVectors;
use super::{Candidate, Choice, Database, FormCase, Record, transform};
use crate::{DatabaseError, DeviceModel, DeviceModelError, Refusal, Stage, known_devices};
use kingpost_codegen::{Options, Program, generate};
use kingpost_fem::numbering::NumberingOrder;
use kingpost_forms::CellKernel;
use kingpost_forms::lowering::LoweredKernel;
use kingpost_ir::{Kernel, SubGroup};
use kingpost_primitives::Recipe;
use kingpost_runtime::{Backend, Cache, Device, DeviceInfo, measure_ceilings};
use kingpost_strategies::Mapping;
use kingpost_strategies::strategy::Question;
use kingpost_strategies::tiling::staged_tiling_sizes;
use kingpost_strategies::{
    ConstantCells, FactorisedLines, FactorisedPlanes, SingleCell, StagedCells, StagedTiling, SummedCells,
    is_functional, line_sizes, tensor_dimension, with_modes, work_items_of_planes,
};
use std::fmt;

/// The file that `kingpost tune` writes its trials to unless told otherwise; `kingpost run` and
/// [`jit`](crate::jit()) look for them there.
pub const DATABASE: &str = "tune-output/trials.jsonl";

/// What a line with a mapping of combined degrees of freedom contains.
const ORBITS: &str = "\"orbits\"";

/// What the text of a mapping has that takes runs of degrees of freedom.
const RUNS: &str = "\"map_runs\"";

/// The fastest mappings of whole kinds of devices: the architecture, the device they were measured
/// on, and a line a case, as `kingpost results --mapping` prints it.
const SHIPPED: [(&str, &str, &str); 1] =
    [("sm_90", "NVIDIA H200", include_str!("known_data/nvidia_h200.txt"))];

/// Those that are faster than these where numbers are [by entity](NumberingOrder::ByEntity),
/// likewise.
const BY_ENTITY: [(&str, &str, &str); 1] =
    [("sm_90", "NVIDIA H200", include_str!("known_data/nvidia_h200_by_entity.txt"))];

/// Those where numbers are [by block](NumberingOrder::ByBlock), likewise.
const BY_BLOCK: [(&str, &str, &str); 1] =
    [("sm_90", "NVIDIA H200", include_str!("known_data/nvidia_h200_by_block.txt"))];

/// Those that are faster than these where successive cells are neighbours of each other, likewise.
const UNSTRUCTURED: [(&str, &str, &str); 1] =
    [("sm_90", "NVIDIA H200", include_str!("known_data/nvidia_h200_unstructured.txt"))];

/// Work-items of a group that share cells: four sub-groups, or more where one cell has more.
const WORK_ITEMS_OF_CELLS: u64 = 128;

/// Work-items of a cell with nine points along each axis. With three evaluations ptxas 13.0 takes
/// 188 registers where entries of matrices are operands of constant memory, and 156 where they are
/// literals: four groups of an H200's multiprocessor instead of three (Laplace of Q7: 177 µs
/// instead of 229; the mass operator takes fewer, and 72 µs instead of 79, 2026-11-23).
const NINE_POINTS: u64 = 81;

/// Cells of a group for kernels without a cell program on a card: of 32, an H200 holds 1024
/// work-items a multiprocessor, of 128 it holds 2048. The mixed Poisson action of RT2 and DG1 takes
/// 656 µs with 32 and 179 µs with 256 (131712 cells, H200, 2026-11-22).
const GROUP_OF_ANY: u64 = 128;

/// What is looked for, besides the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'s> {
    /// Name of the operator action, such as `laplace.3D.P4`; none for other forms.
    pub case: Option<&'s str>,
    /// Dimension of the cells.
    pub dim: usize,
}

/// A mapping and where it is known from.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The mapping.
    pub mapping: Mapping,
    /// Where it is known from.
    pub source: Source,
}

/// Where a mapping is known from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Trials of this kernel on this device.
    Tuned {
        /// Median time of the best trial, seconds.
        median_s: f64,
    },
    /// Trials of the same operator, dimension and degree on this device, with another quadrature
    /// rule or mesh.
    SameCase,
    /// What is shipped for the architecture, measured on this device.
    Shipped(&'static str),
    /// What is shipped for an operator of nearly the same sizes, measured on this device.
    Similar {
        /// The device.
        device: &'static str,
        /// The operator action.
        case: String,
    },
    /// What suits most forms on the architecture of this device.
    Usual(&'static str),
    /// Cells that add to one number: one update of the result a group.
    Sums,
    /// The best of the tilings that the cost model ranks.
    Ranked,
    /// Matrix instructions of a processor on which nothing was timed or predicted.
    Instructions,
    /// What the throughput model predicts to be the fastest on a processor on which nothing was
    /// timed.
    Predicted(&'static str),
    /// The only one of what is tried that registers and local memory of such a processor hold.
    Held(&'static str),
    /// Tables that are tensor products: sums axis by axis need the fewest operations.
    Factorised,
    /// Facets, of which a mesh has few, one at a time on a processor.
    Facets,
    /// Matrices of cells that take many times fewer operations.
    Operations,
    /// Cells in the lanes of a processor's vectors, modes instead of points.
    Modes,
    /// Cells in the lanes of a processor's vectors.
    Lanes,
    /// Nothing is known: one cell a work-item.
    Nothing,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tuned { .. } => f.write_str("tuned on this device"),
            Self::SameCase => f.write_str("tuned on this device for the same operator and degree"),
            Self::Shipped(device) => write!(f, "the best on an {device}"),
            Self::Similar { device, case } => {
                write!(f, "the best on an {device} for `{case}`, whose sizes are nearest")
            }
            Self::Usual(device) => {
                write!(f, "good for most forms on an {device}; `kingpost tune` may find a better one")
            }
            Self::Sums => {
                f.write_str("one update of the result a group; `kingpost tune` may find a better one")
            }
            Self::Ranked => f.write_str("ranked first by the cost model"),
            Self::Instructions => f.write_str("by matrix instructions; nothing was timed there"),
            Self::Predicted(device) => {
                write!(f, "predicted to be the fastest on an {device}; nothing was timed there")
            }
            Self::Held(device) => {
                write!(f, "the only one tried that fits an {device}; nothing was timed there")
            }
            Self::Factorised => {
                f.write_str("tables are tensor products; `kingpost tune` may find a better one")
            }
            Self::Facets => {
                f.write_str("one facet at a time, quickly compiled; `kingpost tune` may find a better one")
            }
            Self::Operations => {
                f.write_str("a vector of cells, far fewer operations; `kingpost tune` may find a better one")
            }
            Self::Modes => f.write_str(
                "a vector of cells, modes instead of quadrature points; `kingpost tune` may find a better one",
            ),
            Self::Lanes => f.write_str("a vector of cells; `kingpost tune` may find a better one"),
            Self::Nothing => f.write_str("nothing is known of this device; `kingpost tune` finds a better one"),
        }
    }
}

/// The mappings to try for a form on a device, the best known first: what `records` have of this
/// device, what is shipped for its architecture, and one cell a work-item, which suits every
/// device. A later one is for devices that lack what the one before it needs.
pub fn known(
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &DeviceInfo,
    records: &[Record],
) -> Vec<Known> {
    // transfers by entity are slower where numbers are by dimension, and have no blocks
    let own = [NumberingOrder::ByEntity, NumberingOrder::ByBlock];
    let is_for_others = |r: &Record| !own.contains(&FormCase::order_of(&r.workload));
    let mut found: Vec<Known> = tuned(form, sought, device, records, is_for_others).into_iter().collect();
    if device.backend == Backend::Cuda && is_functional(form) {
        let constant_tables = fits_constant_cache(form);
        let mapping = Mapping::from(SummedCells { cells: GROUP_OF_ANY, constant_tables });
        found.push(Known { mapping, source: Source::Sums });
    }
    let factorable = tensor_dimension(form.kernel()).is_some_and(|dim| dim as usize == sought.dim);
    if device.backend == Backend::Cuda && factorable && !is_functional(form) {
        let lines = line_sizes(form.kernel()).map(|lines| {
            Mapping::from(FactorisedLines {
                cells: cells_of_lines(lines.work_items),
                literal_tables: lines.work_items == NINE_POINTS && lines.evaluations >= 3,
                factors: None,
            })
        });
        let planes = work_items_of_planes(form.kernel())
            .map(|items| Mapping::from(FactorisedPlanes { cells: (WORK_ITEMS_OF_CELLS / items).max(1) }));
        let mappings = lines.into_iter().chain(planes);
        found.extend(mappings.map(|mapping| Known { mapping, source: Source::Factorised }));
    }
    found.extend(shipped(form, sought, device));
    let vectors = HostVectors::of(device);
    if device.backend != Backend::Cuda && factorable {
        found.push(Known { mapping: vectors.factorised(), source: Source::Factorised });
    }
    if device.backend == Backend::C {
        let facets = vectors.facets(form);
        found.extend(facets.map(|mapping| Known { mapping, source: Source::Facets }));
        let fewest = vectors.fewest_if_worthwhile(form);
        found.extend(fewest.map(|mapping| Known { mapping, source: Source::Operations }));
        if with_modes(form).is_some_and(|(_, products)| products.is_le()) {
            found.push(Known { mapping: vectors.tiles().with_modes(), source: Source::Modes });
        }
        let lanes = [vectors.tiles(), vectors.of_any()];
        found.extend(lanes.map(|mapping| Known { mapping, source: Source::Lanes }));
    }
    found.push(Known { mapping: Mapping::single_cell(), source: Source::Nothing });
    found
}

/// The mappings to try where numbers are [by entity](NumberingOrder::ByEntity): the fastest trial
/// with such numbers, what is shipped for them, and then those `known` for others, which are as
/// fast there.
pub fn by_entity(
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &DeviceInfo,
    records: &[Record],
    known: Vec<Known>,
) -> Vec<Known> {
    let is_by_entity = |r: &Record| FormCase::order_of(&r.workload) == NumberingOrder::ByEntity;
    let shipped = of_case(&BY_ENTITY, sought, device);
    before(known, tuned(form, sought, device, records, is_by_entity), shipped)
}

/// The mappings to try where numbers are [by block](NumberingOrder::ByBlock): the fastest trial
/// with such numbers, what is shipped for them, and then those `known` for any order.
pub fn by_block(
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &DeviceInfo,
    records: &[Record],
    known: Vec<Known>,
) -> Vec<Known> {
    let is_by_block = |r: &Record| FormCase::order_of(&r.workload) == NumberingOrder::ByBlock;
    let shipped = of_case(&BY_BLOCK, sought, device);
    before(known, tuned(form, sought, device, records, is_by_block), shipped)
}

/// The mappings to try on a mesh in which successive cells are neighbours, as those from files are
/// in their local order: the fastest trial on such a mesh, what is shipped for them, and then those
/// `known` for unit meshes, whose successive cells are translates of each other.
///
/// Lists of degrees of freedom are shipped with several sizes of room, in ascending order: the
/// first one that is enough for a mesh is taken where [`first`] is given an attempt that tries it.
pub fn unstructured(
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &DeviceInfo,
    records: &[Record],
    known: Vec<Known>,
) -> Vec<Known> {
    let shipped = of_case(&UNSTRUCTURED, sought, device);
    before(known, tuned(form, sought, device, records, |r| r.workload.data.is_some()), shipped)
}

/// What was tuned, what is shipped, and then those `known`.
fn before(
    known: Vec<Known>,
    tuned: Option<Known>,
    shipped: Option<(Vec<Known>, (&'static str, &'static str))>,
) -> Vec<Known> {
    let shipped = shipped.into_iter().flat_map(|(found, _)| found);
    tuned.into_iter().chain(shipped).chain(known).collect()
}

/// The fastest trial of a kernel on a device, or of its operator with another rule, among those
/// `wanted`.
fn tuned(
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &DeviceInfo,
    records: &[Record],
    wanted: impl Fn(&Record) -> bool,
) -> Option<Known> {
    let here = records.iter().filter(|r| r.device.name == device.name && wanted(r));
    let timed: Vec<(&Record, f64)> = here.filter_map(|r| Some((r, r.median_s()?))).collect();
    let fastest = |wanted: &dyn Fn(&Record) -> bool| {
        let matching = timed.iter().filter(|(r, _)| wanted(r));
        matching.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(r, s)| (r.parameters.clone(), *s))
    };
    let hash = form.kernel().content_hash();
    // after the hash of a file's kernel stand its parameters
    let is_kernel = |r: &Record| r.workload.kernel.split(' ').next() == Some(&hash);
    let of_kernel = fastest(&is_kernel);
    let of_kernel =
        of_kernel.map(|(mapping, median_s)| Known { mapping, source: Source::Tuned { median_s } });
    of_kernel.or_else(|| {
        let (mapping, _) = fastest(&|r| Some(r.workload.case.as_str()) == sought.case)?;
        Some(Known { mapping, source: Source::SameCase })
    })
}

/// Whether the tables of a form are as fast in constant memory as in registers.
fn fits_constant_cache(form: &dyn CellKernel) -> bool {
    Question { is_card: true, ..Question::of(form) }.tables_fit_constant_cache()
}

/// Cells of a group in which `items` work-items share a cell: the fewest that leave the least part
/// of the lanes of its sub-groups idle, with at most [`WORK_ITEMS_OF_CELLS`] work-items.
///
/// Of 17 forms on hexahedra on an H200 (2026-11-23) it is the best of the numbers tried for 11, and
/// within a fifth of the best one for the others (results/h200/hexahedra.md).
fn cells_of_lines(items: u64) -> u64 {
    let used = |cells: u64| {
        let items = cells * items;
        items as f64 / items.next_multiple_of(SubGroup::default().width().into()) as f64
    };
    let better = |best, cells| if used(cells) > used(best) { cells } else { best };
    (2..=WORK_ITEMS_OF_CELLS / items).fold(1, better)
}

/// What one of these lists has of an operator on the architecture of a card, with the name of the
/// list's device and its text; none has no list.
fn of_case(
    lists: &[(&str, &'static str, &'static str)],
    sought: Sought<'_>,
    device: &DeviceInfo,
) -> Option<(Vec<Known>, (&'static str, &'static str))> {
    let is_arch = |arch: &str| device.backend == Backend::Cuda && device.arch.trim_end_matches('a') == arch;
    let (_, name, text) = lists.iter().find(|(arch, _, _)| is_arch(arch))?;
    let lines = text.lines().filter_map(|l| l.strip_prefix(sought.case?)?.strip_prefix(' '));
    let mappings = lines.filter_map(|line| serde_json::from_str(line).ok());
    let found = mappings.map(|mapping| Known { mapping, source: Source::Shipped(name) }).collect();
    Some((found, (name, text)))
}

/// What is shipped for the architecture of a card: for the operator, or else for the nearest one,
/// and what suits most forms.
fn shipped(form: &dyn CellKernel, sought: Sought<'_>, device: &DeviceInfo) -> Vec<Known> {
    let Some((found, (name, text))) = of_case(&SHIPPED, sought, device) else { return Vec::new() };
    if !found.is_empty() {
        return found;
    }
    let sizes = staged_tiling_sizes(form);
    let over_modes = with_modes(form);
    // as many modes as points still have zeros in their tables: Laplace of P2 takes 105 µs instead
    // of 110, and 67 with transfers in parts (1.05 million tetrahedra, H200, 2026-11-29)
    let as_many = over_modes.as_ref().filter(|(_, products)| products.is_le());
    let modes = as_many.and_then(|(kernel, _)| staged_tiling_sizes(kernel).ok());
    let over_modes = over_modes.filter(|(_, products)| products.is_lt()).map(|(kernel, _)| kernel);
    let form_sizes = sizes.as_ref().ok().map(|points| FormSizes { points, modes: modes.as_ref() });
    // a kernel without a form of symmetric tables takes what is known without orbits
    let is_symmetric = form.symmetric().is_ok();
    // runs are those of one degree
    let usable = text.lines().filter(|line| (is_symmetric || !line.contains(ORBITS)) && !line.contains(RUNS));
    let usable = usable.collect::<Vec<_>>().join("\n");
    let near = form_sizes.and_then(|sizes| similar(sizes, sought.dim, &usable));
    let near = near.map(|(case, mapping)| {
        let mapping = in_own_parts(form, mapping);
        Known { mapping, source: Source::Similar { device: name, case } }
    });
    // the curl–curl action of Nédélec's second kind takes 454 µs over points and 113 µs over modes,
    // whose tables fit constant memory (131712 cells, H200, 2026-11-23)
    let usual = match &over_modes {
        Some(kernel) => usual(kernel, device).map(Mapping::with_modes),
        None => usual(form, device),
    };
    let is_new = |mapping: &Mapping| near.as_ref().is_none_or(|near| near.mapping != *mapping);
    let usual = usual.filter(is_new).map(|mapping| Known { mapping, source: Source::Usual(name) });
    near.into_iter().chain(usual).collect()
}

/// A mapping of another form, with transfers in the parts of this one where it has them in those of
/// the other; all degrees of freedom together where this one has no parts.
fn in_own_parts(form: &dyn CellKernel, mapping: Mapping) -> Mapping {
    let together = mapping.with_parts(&[]).filter(|together| *together != mapping);
    let own = form.entity_parts().unwrap_or_default();
    together.and_then(|together| together.with_parts(&own)).unwrap_or(mapping)
}

/// What suits most forms on a card, as far as tables in constant memory and tilings are possible.
fn usual(form: &dyn CellKernel, device: &DeviceInfo) -> Option<Mapping> {
    if let Some(mapping) = usual_cells(form) {
        return Some(mapping);
    }
    let small = fits_constant_cache(form);
    match (staged_tiling_sizes(form), small) {
        (Ok(_), true) => Some(Mapping::from(StagedCells { cells: 32, constant_tables: true })),
        (Ok(sizes), false) => {
            staged_tilings(&sizes, device.local_mem_bytes).next().map(|p| Mapping::from(StagedTiling(p)))
        }
        (Err(_), true) => Some(Mapping::from(ConstantCells { cells: GROUP_OF_ANY })),
        (Err(_), false) => Some(Mapping::from(SingleCell { cells: GROUP_OF_ANY })),
    }
}

/// The tiling that the cost model ranks first; none of what is no action.
pub(super) fn ranked(form: &dyn CellKernel, model: &DeviceModel, local_bytes: u64) -> Option<Known> {
    // the number of cells does not change the order
    let best = Choice::new(form, 1, model, local_bytes).ok()?.ranked(1).into_iter().next()?;
    Some(Known { mapping: best.parameters, source: Source::Ranked })
}

/// What the cost model knows of a device: the model of that name, or what is measured there.
///
/// # Errors
/// The models cannot be read.
pub fn model(info: &DeviceInfo, measured: &DeviceModel) -> Result<DeviceModel, DeviceModelError> {
    Ok(named_model(info)?.unwrap_or_else(|| measured.clone()))
}

fn named_model(info: &DeviceInfo) -> Result<Option<DeviceModel>, DeviceModelError> {
    // Drivers put the maker in front: `NVIDIA H200`.
    let is_its = |m: &DeviceModel| m.occupancy.is_some() && info.name.trim_start_matches("NVIDIA ") == m.name;
    Ok(known_devices()?.into_iter().find(is_its))
}

/// As [`known()`], with the best ranked tiling for a card of which nothing is known. Where no model
/// has its name, its ceilings are measured, which takes seconds once a day.
pub fn for_device(
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &dyn Device,
    records: &[Record],
) -> Vec<Known> {
    let info = device.info();
    let mut found = known(form, sought, info, records);
    if info.backend == Backend::Cuda && found.len() == 1 && form.program().is_ok() {
        let measured = || measure_ceilings(device, &Cache::from_environment(), false).ok();
        let model = named_model(info).ok().flatten().or_else(measured);
        let ranked = model.and_then(|model| ranked(form, &model, info.local_mem_bytes));
        found.splice(0..0, ranked);
    }
    found
}

/// The mappings that need no inputs to be computed for a mesh first, for kernels that take
/// another mesh with each call, whose numbers are in [any order](in_any_order).
#[must_use]
pub fn without_setup(mut known: Vec<Known>) -> Vec<Known> {
    known.retain(|known| !known.mapping.needs().setup);
    in_any_order(known)
}

/// The same mappings with transfers of all degrees of freedom together: those of entities by
/// themselves are slower where numbers are not by dimension (Laplace on 2-D P3: 263 µs instead of
/// 226 for its scatter; H200, 2026-11-26).
#[must_use]
pub fn in_any_order(mut known: Vec<Known>) -> Vec<Known> {
    for known in &mut known {
        if let Some(together) = known.mapping.with_parts(&[]) {
            known.mapping = together;
        }
    }
    known
}

/// The trials of a database that are of a device: of [`DATABASE`] in the working directory unless
/// another file is named.
///
/// # Errors
/// The file cannot be read; one that is not there is empty.
pub fn trials(path: Option<&std::path::Path>) -> Result<Vec<Record>, DatabaseError> {
    Ok(Database::at(path.unwrap_or_else(|| DATABASE.as_ref())).read()?.records)
}

/// The mappings that are known for a kernel over cells of a dimension on a device, best first,
/// which serve any mesh: what solvers ask for.
///
/// # Errors
/// As [`trials`].
pub fn of_any_mesh()
-> Result<impl Fn(&LoweredKernel, usize, &dyn Device) -> Vec<Mapping> + Sync, DatabaseError> {
    let trials = trials(None)?;
    Ok(move |lowered: &LoweredKernel, dim: usize, device: &dyn Device| {
        let known = for_device(lowered, Sought { case: None, dim }, device, &trials);
        without_setup(known).into_iter().map(|known| known.mapping).collect()
    })
}

/// A form with a mapping, and its code for a device.
///
/// # Errors
/// A mapping that the form or the target does not take, or that needs more local memory than the
/// device has.
pub fn mapped(
    form: &dyn CellKernel,
    mapping: &Mapping,
    device: &DeviceInfo,
    options: &Options,
) -> Result<(Kernel, Recipe, Program), Refusal> {
    let (kernel, recipe) = transform(form, mapping)?;
    let program =
        generate(&kernel, device.backend.target(), options).map_err(|e| Refusal::new(Stage::Generate, e))?;
    let (needed, found) = (program.plan.local_bytes, device.local_mem_bytes);
    if needed > found {
        let message =
            format!("{mapping}: found {found} bytes of local memory on the device, needed {needed}");
        return Err(Refusal::new(Stage::Generate, message));
    }
    Ok((kernel, recipe, program))
}

/// The first mapping for which an attempt succeeds, and what it gave.
///
/// # Errors
/// The error of the last attempt, of one cell a work-item.
pub fn first<T, E>(
    known: Vec<Known>,
    mut attempt: impl FnMut(&Known) -> Result<T, E>,
) -> Result<(Known, T), E> {
    let last = Known { mapping: Mapping::single_cell(), source: Source::Nothing };
    for known in known.into_iter().filter(|k| *k != last) {
        if let Ok(found) = attempt(&known) {
            return Ok((known, found));
        }
    }
    let found = attempt(&last)?;
    Ok((last, found))
}

/// The candidates and, for a processor, those of [its vectors](HostVectors::candidates).
#[must_use]
pub fn with_vectors(
    mut candidates: Vec<Candidate>,
    form: &dyn CellKernel,
    device: &DeviceInfo,
) -> Vec<Candidate> {
    let of_vectors = match device.backend {
        Backend::C => HostVectors::of(device).candidates(form),
        Backend::OpenCl | Backend::Cuda => Vec::new(),
    };
    for candidate in of_vectors {
        if candidates.iter().all(|c| c.parameters != candidate.parameters) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// The candidates that may suit a device, before all others the mapping that is the default where
/// nothing was tried: however few trials there are, the best of them is no slower than what they
/// started from.
#[must_use]
pub fn default_first(
    mut candidates: Vec<Candidate>,
    form: &dyn CellKernel,
    sought: Sought<'_>,
    device: &dyn Device,
) -> Vec<Candidate> {
    // a processor has no registers for a whole cell: 12 ms instead of 2.8 for the P4 Laplace
    // operator on the bracket (AMD EPYC, 2026-11-23)
    candidates.retain(|c| device.info().backend != Backend::C || !c.parameters.needs().cell_in_registers);
    let attempt = |known: &Known| mapped(form, &known.mapping, device.info(), &Options::default());
    let Ok((Known { mapping, .. }, _)) = first(for_device(form, sought, device, &[]), attempt) else {
        return candidates;
    };
    match candidates.iter().position(|c| c.parameters == mapping) {
        Some(k) => candidates[..=k].rotate_right(1),
        None => candidates.insert(0, Candidate::unranked(mapping)),
    }
    candidates
}

#[cfg(test)]
mod tests;
