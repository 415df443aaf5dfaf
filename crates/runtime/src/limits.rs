//! Whether a device can run a program at all.

use crate::device::DeviceInfo;
use crate::error::RuntimeError;
use kingpost_codegen::{ArgKind, Feature, Program};

/// Refuses a program the device cannot take, before any compiler runs.
pub(crate) fn check_limits(program: &Program, info: &DeviceInfo) -> Result<(), RuntimeError> {
    let (entry, device) = (program.entry.clone(), info.name.clone());
    let needed = info.backend.target();
    if program.target != needed {
        return Err(RuntimeError::WrongTarget { entry, found: program.target, needed, device });
    }
    for &feature in &program.plan.features {
        let has = match feature {
            Feature::Fp64 => info.fp64,
            Feature::Int64Atomics => info.int64_atomics,
            Feature::ComputeCapability(needed) => capability(info).is_some_and(|has| has >= needed),
            Feature::OneComputeCapability(needed) => capability(info) == Some(needed),
            // no backend runs HIP yet
            Feature::Gfx9(_) => false,
        };
        if !has {
            return Err(RuntimeError::MissingFeature { entry, feature, device });
        }
    }
    check_group(program, info)?;
    if program.plan.local_bytes > info.local_mem_bytes {
        let (needed, limit) = (program.plan.local_bytes, info.local_mem_bytes);
        return Err(RuntimeError::LocalMemory { entry, needed, limit, device });
    }
    let items = program.plan.block.iter().fold(1_u64, |a, &b| a.saturating_mul(b));
    let needed = program.plan.private_bytes.saturating_mul(items);
    if let Some(limit) = info.private_mem_bytes
        && needed > limit
    {
        return Err(RuntimeError::PrivateMemory { entry, needed, limit, device });
    }
    for spec in &program.plan.args {
        if let ArgKind::Table(data) = &spec.kind
            && !data.fits(spec.ty)
        {
            return Err(RuntimeError::TableType { name: spec.name.clone(), ty: spec.ty });
        }
    }
    Ok(())
}

/// The compute capability of a device of CUDA, times ten.
fn capability(info: &DeviceInfo) -> Option<u32> {
    info.arch.strip_prefix("sm_").and_then(|n| n.parse().ok())
}

fn check_group(program: &Program, info: &DeviceInfo) -> Result<(), RuntimeError> {
    let block = program.plan.block;
    let (entry, device) = (program.entry.clone(), info.name.clone());
    let size = block.iter().fold(1u64, |a, &b| a.saturating_mul(b));
    if size > info.max_work_group_size {
        let limit = info.max_work_group_size;
        return Err(RuntimeError::GroupTooLarge { entry, block, size, limit, device });
    }
    for (axis, (&size, &limit)) in block.iter().zip(&info.max_work_item_sizes).enumerate() {
        if size == 0 || size > limit {
            return Err(RuntimeError::GroupAxis { entry, axis, size, limit, device });
        }
    }
    Ok(())
}
