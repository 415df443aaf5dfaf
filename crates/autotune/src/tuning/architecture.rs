//! What is known of processors that no device here is.

use super::candidates::{question, with_fewer_modes};
use super::known::{Known, Source, ranked};
pub(super) use super::processors::is_of;
use super::processors::name_of;
use super::throughput::{ThroughputModel, by_prediction};
use super::{Candidate, CaseError, CaseMesh, FormCase, NoOccupancy};
use crate::{DeviceModel, DeviceModelError};
use kingpost_forms::CellKernel;
use kingpost_forms::lowering::LoweredForm;
use kingpost_strategies::strategy::{Arguments, Question};
use kingpost_strategies::{
    InOrbits, Mapping, MatrixCells, MatrixGroups, StraightCells, Strategy, StrategyInfo, strategies,
    values_of_cell,
};
use rayon::prelude::*;

pub use super::processors::{model_of, processors};

/// Why a processor has no mappings.
#[derive(Debug, thiserror::Error)]
pub enum ProcessorError {
    /// The models cannot be read.
    #[error(transparent)]
    Models(#[from] DeviceModelError),
    /// Its model does not say what bounds the work in flight.
    #[error(transparent)]
    Occupancy(#[from] NoOccupancy),
}

/// A form on a million cells or so, more than any processor has at a time, for [`for_processor`].
///
/// # Errors
/// As [`FormCase::new`].
pub fn large_case(name: impl Into<String>, lowered: LoweredForm) -> Result<FormCase, CaseError> {
    let divisions = match lowered.cell.dim() {
        1 => 1_000_000,
        2 => 700,
        _ => 55,
    };
    FormCase::new(name, lowered, CaseMesh::Unit(divisions))
}

/// The mappings to try for a form on a processor, the best first. Mappings of a case are in the
/// order of the times that the [throughput model](ThroughputModel) predicts for the processor: one
/// cell a work-item in straight-line code, over modes and in orbits, and by matrix instructions. Of
/// a form without a case nothing is predicted: matrix instructions come first where they suit it.
/// The last one suits every form.
///
/// # Errors
/// The models cannot be read, or do not say what bounds the work in flight.
pub fn for_processor(
    form: &dyn CellKernel,
    case: Option<&FormCase>,
    arch: &str,
) -> Result<Vec<Known>, ProcessorError> {
    let mut found = Vec::new();
    if let (Some(name), Some(model)) = (name_of(arch), model_of(arch)?) {
        if let Some(case) = case {
            found.extend(in_order(case, &model)?.into_iter().map(|c| {
                let is_predicted = c.predicted_s.is_some();
                let source = if is_predicted { Source::Predicted(name) } else { Source::Held(name) };
                Known { mapping: c.parameters, source }
            }));
        } else {
            let cells = MatrixCells::candidates(&question(form, &model, u64::MAX)).into_iter();
            found.extend(cells.map(|m| Known { mapping: m.into(), source: Source::Instructions }));
        }
    }
    found.push(Known { mapping: Mapping::single_cell(), source: Source::Nothing });
    Ok(found)
}

/// What is tried of a case on a processor, in the order of predicted times; what has no code there
/// has none, and is left out. One alone is not predicted.
///
/// # Errors
/// The model does not say what bounds the work in flight.
pub fn in_order(case: &FormCase, model: &DeviceModel) -> Result<Vec<Candidate>, NoOccupancy> {
    let throughput = ThroughputModel::new(model)?;
    let all = tried(case, model);
    if all.len() < 2 {
        return Ok(all);
    }
    let ordered = by_prediction(all, case, &throughput).into_iter();
    Ok(ordered.filter(|c| c.predicted_s.is_some()).collect())
}

/// Strategies that are asked: those that few candidates suffice for.
const ASKED: [&str; 4] = [StraightCells::NAME, MatrixCells::NAME, MatrixGroups::NAME, InOrbits::NAME];

/// What is predicted of a case: what registers and local memory suffice for, as far as is known
/// before any step; where that is nothing, tiles of points.
#[must_use]
pub fn tried(case: &FormCase, model: &DeviceModel) -> Vec<Candidate> {
    let form = &case.lowered;
    let own = question(form, model, u64::MAX);
    let local_bytes = own.local_bytes;
    let is_held = match (form.program(), own.matrix_instruction) {
        (Ok(program), Some(instruction)) => {
            2 * values_of_cell(&program).unsigned_abs() <= instruction.most_words()
        }
        (Err(_), _) | (_, None) => true,
    };
    let suits = |m: &Mapping| {
        let straight = m.find::<StraightCells>();
        straight.is_none_or(|cells| is_held && fills_wavefronts(m, cells))
    };
    // sizes of matrix instructions and orbits take as long to find as a mapping takes to apply
    let rows: Vec<_> = strategies().rows().filter(|row| ASKED.contains(&row.name)).collect();
    let of_form = || {
        let of = |row: &&StrategyInfo| row.candidates(&question(form, model, u64::MAX));
        rows.par_iter().flat_map_iter(of).filter(suits).collect::<Vec<_>>()
    };
    let of_modes = || {
        let kernel = with_fewer_modes(form)?;
        let question = Question { local_bytes, ..Question::of(&kernel) };
        let found = rows.iter().flat_map(|row| row.candidates(&question)).filter(suits);
        let found: Vec<_> = found.map(Mapping::with_modes).collect();
        Some((kernel, found))
    };
    let (own, modes) = rayon::join(of_form, of_modes);
    let mut found = if is_held { vec![Mapping::single_cell()] } else { Vec::new() };
    found.extend(own);
    let (modes, over_modes) = modes.unzip();
    found.extend(over_modes.into_iter().flatten());
    // orbits leave a third of the instructions, and where they take twice the local memory half of
    // the units idle
    let wavefronts = |m: &Mapping| m.find::<MatrixCells>().map(|cells| cells.sub_groups * cells.groups);
    let most = found.iter().filter_map(wavefronts).max();
    found.retain(|m| wavefronts(m).is_none_or(|n| Some(n) == most));
    if found.is_empty() {
        let of = modes.as_ref().map_or(form as &dyn CellKernel, |kernel| kernel);
        let over_modes = |m: Mapping| if modes.is_some() { m.with_modes() } else { m };
        // none of what is no action
        found.extend(ranked(of, model, local_bytes).map(|best| over_modes(best.mapping)));
    }
    found.into_iter().map(Candidate::unranked).collect()
}

/// Whether straight-line code has a cell for each work-item of a wavefront, and no more of them
/// than two; the numbers of groups at a time that are tried on others are of registers that an H200
/// has.
fn fills_wavefronts(mapping: &Mapping, cells: &StraightCells) -> bool {
    let alone = mapping.find::<InOrbits>().is_none_or(|orbits| orbits.resident_groups.is_none());
    (64..=128).contains(&cells.cells) && !cells.whole_groups && alone
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kingpost_codegen::{Options, Target, generate};
    use kingpost_forms::lowering::{LoweringOptions, lower};
    use kingpost_kernels::Operator;
    use kingpost_sample::of_run;

    /// What is too large for registers and local memory is not tried, and what is left of 3-D P6
    /// needs no walk: one mapping each.
    #[test]
    fn large_cells_are_mapped_without_a_walk() {
        let model = model_of("gfx942").unwrap().unwrap();
        let cases = [
            (Operator::Mass, true),
            (Operator::Laplace, true),
            (Operator::Helmholtz, true),
            (Operator::Elasticity, false),
            (Operator::Hyperelasticity, false),
        ];
        for (operator, by_instructions) in of_run(cases, &[1, 3]) {
            let lowered = lower(&operator.form(3, 6).unwrap(), &LoweringOptions::new("k")).unwrap();
            let case = large_case("a case", lowered).unwrap();
            let tried = tried(&case, &model);
            assert_eq!(tried.len(), 1, "{operator}: {tried:?}");
            let only = &tried[0].parameters;
            let cells = only.find::<MatrixCells>();
            assert_eq!(cells.is_some(), by_instructions, "{operator}: {only}");
            // one wavefront for each of four vector units
            assert!(cells.is_none_or(|cells| cells.sub_groups * cells.groups == 4 * 304), "{operator}");
            assert_ne!(only, &Mapping::single_cell(), "{operator}");
            if operator == Operator::Elasticity {
                let (kernel, _) = crate::tuning::transform(&case.lowered, only).unwrap();
                assert!(generate(&kernel, Target::Hip, &Options::default()).is_ok());
            }
        }
    }

    #[test]
    fn small_cells_are_predicted() {
        let lowered = lower(&Operator::Elasticity.form(3, 2).unwrap(), &LoweringOptions::new("k")).unwrap();
        let case = large_case("a case", lowered).unwrap();
        let model = model_of("gfx90a").unwrap().unwrap();
        let ordered = in_order(&case, &model).unwrap();
        assert!(ordered.len() > 1 && ordered.iter().all(|c| c.predicted_s.is_some()), "{ordered:?}");
        let times: Vec<_> = ordered.iter().filter_map(|c| c.predicted_s).collect();
        // what spills comes after all others
        assert!(times.windows(2).filter(|pair| pair[0] > pair[1]).count() < 2, "{times:?}");
    }
}
