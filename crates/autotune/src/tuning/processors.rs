//! Processors of which models are shipped, and which need no device here.

use crate::{DeviceModel, DeviceModelError, known_devices};

/// A processor without a device: what its compiler calls it, the name of its model, and its compute
/// units.
const PROCESSORS: [(&str, &str, u64); 2] = [("gfx90a", "MI250X GCD", 110), ("gfx942", "MI300X", 304)];

/// The processors that have a model, by what their compiler calls them.
pub fn processors() -> impl Iterator<Item = &'static str> {
    PROCESSORS.into_iter().map(|(arch, ..)| arch)
}

/// The model of a processor by what its compiler calls it.
///
/// # Errors
/// The models cannot be read.
pub fn model_of(arch: &str) -> Result<Option<DeviceModel>, DeviceModelError> {
    let Some(name) = name_of(arch) else {
        return Ok(None);
    };
    Ok(known_devices()?.into_iter().find(|model| model.name == name))
}

/// The name of the model of a processor.
pub(super) fn name_of(arch: &str) -> Option<&'static str> {
    PROCESSORS.into_iter().find(|(known, ..)| *known == arch).map(|(_, name, _)| name)
}

/// Whether a model is that of one of these processors.
pub(super) fn is_of(model: &DeviceModel) -> bool {
    compute_units(&model.name).is_some()
}

/// Compute units of a processor by the name of its model; none of others.
pub(super) fn compute_units(model: &str) -> Option<u64> {
    PROCESSORS.into_iter().find(|(_, name, _)| *name == model).map(|(.., units)| units)
}
