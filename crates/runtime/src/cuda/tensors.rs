//! Maps of tensors, by which a card's copy engine finds boxes of an array.

use super::context::{Context, CudaMemory};
use crate::arguments::BoundMap;
use crate::driver::CallValue;
use crate::error::{RuntimeError, Unavailable};
use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType_enum as Type, CUtensorMapFloatOOBfill_enum as Fill,
    CUtensorMapInterleave_enum as Interleave, CUtensorMapL2promotion_enum as Promotion,
    CUtensorMapSwizzle_enum as Swizzle,
};
use kingpost_ir::ScalarType;

const ENCODE: &str = "cuTensorMapEncodeTiled";

/// The map of one argument of a launch.
///
/// # Errors
/// A driver that has no such maps; one that refuses this one, such as for extents of 0.
pub(super) fn encode(
    context: &Context,
    map: &BoundMap,
    values: &[CallValue<'_, CudaMemory>],
) -> Result<CUtensorMap, RuntimeError> {
    let refused = |code: &str| {
        let code = format!("{code} for the map `{}` with {:?} elements", map.name, map.extents);
        RuntimeError::Driver { call: ENCODE, code, device: context.name.clone() }
    };
    // SAFETY: the context was made by this library; the symbol is not called here.
    if unsafe { sys::culib().get::<unsafe extern "C" fn()>(ENCODE.as_bytes()) }.is_err() {
        return Err(Unavailable::OldCudaDriver { symbol: ENCODE }.into());
    }
    let Some(CallValue::Memory(memory)) = values.get(map.of) else { return Err(refused("no array")) };
    let ty = element(map.ty).ok_or_else(|| refused("no such elements"))?;
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    let steps = vec![1; map.sides.len()];
    let swizzle = if map.is_swizzled {
        Swizzle::CU_TENSOR_MAP_SWIZZLE_128B
    } else {
        Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE
    };
    // SAFETY: all arrays have an entry an axis, strides those of all axes but the innermost; the driver reads them
    // and writes the map.
    let result = unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut encoded,
            ty,
            map.sides.len() as u32,
            memory.pointer as *mut _,
            map.extents.as_ptr(),
            map.strides[1..].as_ptr(),
            map.sides.as_ptr(),
            steps.as_ptr(),
            Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    result.result().map_err(|error| refused(&format!("{:?}", error.0)))?;
    Ok(encoded)
}

/// The type of an element, which the verifier has checked.
fn element(ty: ScalarType) -> Option<Type> {
    Some(match ty {
        ScalarType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        ScalarType::Bf16 => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        ScalarType::F32 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        ScalarType::F64 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        ScalarType::I32 => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        ScalarType::I64 => Type::CU_TENSOR_MAP_DATA_TYPE_INT64,
        ScalarType::U32 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        ScalarType::U64 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        ScalarType::U16 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        ScalarType::U8 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        ScalarType::Bool
        | ScalarType::I8
        | ScalarType::I16
        | ScalarType::C64
        | ScalarType::C128
        | ScalarType::Record(_) => return None,
    })
}
