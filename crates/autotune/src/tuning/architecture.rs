//! What is known of processors that no device here is.

use super::candidates::question;
use super::known::{Known, Source};
use super::processors::name_of;
use super::throughput::{ThroughputModel, by_prediction};
use super::{Candidate, CaseError, CaseMesh, FormCase, NoOccupancy};
use crate::{DeviceModel, DeviceModelError};
use kingpost_forms::CellKernel;
use kingpost_forms::lowering::LoweredForm;
use kingpost_strategies::strategy::{Arguments, Question};
use kingpost_strategies::{
    InOrbits, Mapping, MatrixCells, MatrixGroups, StraightCells, Strategy, strategies, with_modes,
};

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

/// The mappings to try for a form on a processor, the best first. Mappings of a case are in the order of
/// the times that the [throughput model](ThroughputModel) predicts for the processor: one cell a
/// work-item in straight-line code, over modes and in orbits, and by matrix instructions. Of a form
/// without a case nothing is predicted: matrix instructions come first where they suit it. The last
/// one suits every form.
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
            let candidates = tried(case, &model).into_iter().map(Candidate::unranked).collect();
            let ordered = by_prediction(candidates, case, &ThroughputModel::new(&model)?).into_iter();
            // what has no code there has no time
            let predicted = ordered.filter(|c| c.predicted_s.is_some());
            found.extend(predicted.map(|c| Known { mapping: c.parameters, source: Source::Predicted(name) }));
        } else {
            let cells = MatrixCells::candidates(&question(form, &model, u64::MAX)).into_iter();
            found.extend(cells.map(|m| Known { mapping: m.into(), source: Source::Instructions }));
        }
    }
    found.push(Known { mapping: Mapping::single_cell(), source: Source::Nothing });
    Ok(found)
}

/// Strategies that are asked: those that few candidates suffice for.
const ASKED: [&str; 4] = [StraightCells::NAME, MatrixCells::NAME, MatrixGroups::NAME, InOrbits::NAME];

/// What is predicted of a case.
fn tried(case: &FormCase, model: &DeviceModel) -> Vec<Mapping> {
    let form = &case.lowered;
    let own = question(form, model, u64::MAX);
    let asked = |question: &Question<'_>| {
        let rows = strategies().rows().filter(|row| ASKED.contains(&row.name));
        rows.flat_map(|row| row.candidates(question)).filter(fills_wavefronts).collect::<Vec<_>>()
    };
    let mut found = vec![Mapping::single_cell()];
    found.extend(asked(&own));
    if let Some((kernel, products)) = with_modes(form)
        && products.is_lt()
    {
        let over_modes = Question { form: &kernel, is_card: false, matrix_instruction: None, ..own };
        found.extend(asked(&over_modes).into_iter().map(Mapping::with_modes));
    }
    found
}

/// Whether straight-line code has a cell for each work-item of a wavefront, and no more of them than
/// two; the numbers of groups at a time that are tried on others are of registers that an H200 has.
fn fills_wavefronts(mapping: &Mapping) -> bool {
    let straight = mapping.find::<StraightCells>();
    let alone = mapping.find::<InOrbits>().is_none_or(|orbits| orbits.resident_groups.is_none());
    straight.is_none_or(|cells| (64..=128).contains(&cells.cells) && !cells.whole_groups && alone)
}
