//! What is known of processors that no device here is.

use super::known::{Known, Source};
use crate::{DeviceModelError, known_devices};
use kingpost_forms::CellKernel;
use kingpost_strategies::{Mapping, MatrixCells};

/// A processor without a device: what its compiler calls it, the name of its model, and its compute
/// units.
const PROCESSORS: [(&str, &str, u64); 2] = [("gfx90a", "MI250X GCD", 110), ("gfx942", "MI300X", 304)];

/// The processors for which [`for_processor`] knows more than one cell a work-item.
pub fn processors() -> impl Iterator<Item = &'static str> {
    PROCESSORS.into_iter().map(|(arch, ..)| arch)
}

/// The mappings to try for a form on a processor, the best first: by matrix instructions where it
/// is known to have them and the form is large enough. The last one suits every form.
///
/// # Errors
/// The models cannot be read.
pub fn for_processor(form: &dyn CellKernel, arch: &str) -> Result<Vec<Known>, DeviceModelError> {
    let processor = PROCESSORS.into_iter().find(|(known, ..)| *known == arch);
    let models = known_devices()?;
    let by_instructions = processor.and_then(|(_, name, units)| {
        let model = models.into_iter().find(|model| model.name == name)?;
        MatrixCells::of_wavefronts(form, units, model.occupancy?.local_bytes_per_group)
    });
    let by_instructions =
        by_instructions.map(|cells| Known { mapping: Mapping::from(cells), source: Source::Instructions });
    let one_cell = Known { mapping: Mapping::single_cell(), source: Source::Nothing };
    Ok(by_instructions.into_iter().chain([one_cell]).collect())
}
