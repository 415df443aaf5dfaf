//! Which mappings with lists of degrees of freedom to try on a mesh.

use super::candidates::{with_modes, words_in_registers};
use super::{Candidate, CandidatesError, FormCase, candidates};
use crate::{Mapping, Problem, list_room, transform_with_setup};
use purlin_autotune::DeviceModel;
use purlin_ir::{AddressSpace, Affine, Kernel};

/// Cells of a group that are tried.
const CELLS: [u64; 2] = [64, 128];

/// Room of a list is a multiple of this, so that similar meshes share a kernel.
const ROOM: u64 = 32;

/// What to try on a case: what suits [its form](candidates), and what depends on its mesh, too.
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
        found.extend(listed(case, model, local_bytes));
    }
    Ok(found)
}

/// One cell a work-item with lists of the degrees of freedom of a group, for cards and forms whose
/// cells suit straight-line code. Lists have room for the longest of the case's meshes; those that
/// leave `local_bytes` of local memory are not tried.
#[must_use]
pub fn listed(case: &FormCase, model: &DeviceModel, local_bytes: u64) -> Vec<Candidate> {
    let form = &case.lowered;
    let is_card = model.occupancy.as_ref().is_some_and(|o| o.sub_group == 32);
    if !is_card || words_in_registers(form).is_none() {
        return Vec::new();
    }
    // maps and coordinates do not depend on the seed
    let problems = [case.small_problem(0), case.problem_to_measure(0)];
    let Ok(problems) = problems.into_iter().collect::<Result<Vec<Problem>, String>>() else {
        return Vec::new();
    };
    let over_modes = with_modes(form).is_some_and(|(_, products)| products.is_le());
    let mapping = |cells, items| {
        let mapping = Mapping::ListedCells { cells, items };
        if over_modes { mapping.with_modes() } else { mapping }
    };
    let fitted = |cells| {
        let items = problems.iter().map(|problem| longest(problem, &mapping(cells, 1)));
        let items = items.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        let mapping = mapping(cells, items.next_multiple_of(ROOM));
        let (kernel, _) = mapping.apply(form).ok()?;
        (bytes_of_group(&kernel) <= local_bytes).then(|| Candidate::unranked(mapping))
    };
    CELLS.into_iter().filter_map(fitted).collect()
}

/// The length of the longest list of a problem.
fn longest(problem: &Problem, mapping: &Mapping) -> Option<u64> {
    let (_, _, definitions) = transform_with_setup(&problem.lowered, mapping).ok()?;
    list_room(&definitions, &problem.memory).ok().flatten()
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
