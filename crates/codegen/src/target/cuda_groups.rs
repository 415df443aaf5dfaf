//! Groups of CUDA that wait for values of earlier ones.
//!
//! A group that has started goes on while others wait: blocks of CUDA that run are not suspended for others
//! of their launch (the occupancy-bound execution of Sorensen et al. 2016).
//! A relaxed access of 64 bits is one piece by the memory model of PTX, and a vector of two is two of them.

use super::{Awaits, Feature};
use kingpost_ir::ScalarType;

pub(super) const AWAITS: Awaits = Awaits {
    // the first with that memory model
    needs: Feature::ComputeCapability(70),
    start: "if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    const unsigned long long $low = atomicAdd($counter, 1ull);
    $turn[0] = $low % gridDim.x;
    $turn[1] = ($low / gridDim.x + 1) << 32;
}
__syncthreads();",
    element,
};

macro_rules! publish_one {
    ($bits:literal) => {
        concat!(
            "asm volatile(\"st.relaxed.gpu.u64 [%0], %1;\" :: \"l\"($address), \"l\"($launch | ",
            $bits,
            ") : \"memory\");"
        )
    };
}

macro_rules! publish_two {
    ($bits:literal) => {
        concat!(
            "{\n    const unsigned long long $low = ",
            $bits,
            ";\n    asm volatile(\"st.relaxed.gpu.v2.u64 [%0], {%1, %2};\" :: \"l\"($address), \"l\"($launch | ($low & \
             0xffffffffull)), \"l\"($launch | $low >> 32) : \"memory\");\n}"
        )
    };
}

macro_rules! receive_one {
    ($value:literal) => {
        concat!(
            "{\n    unsigned long long $low;\n    do {\n        asm volatile(\"ld.relaxed.gpu.u64 %0, [%1];\" : \"=l\"($low) \
             : \"l\"($address) : \"memory\");\n    } while (($low ^ $launch) >> 32 != 0);\n    $to = ",
            $value,
            ";\n}"
        )
    };
}

macro_rules! receive_two {
    ($value:literal) => {
        concat!(
            "{\n    unsigned long long $low, $high;\n    do {\n        asm volatile(\"ld.relaxed.gpu.v2.u64 {%0, %1}, \
             [%2];\" : \"=l\"($low), \"=l\"($high) : \"l\"($address) : \"memory\");\n    } while ((($low ^ $launch) | \
             ($high ^ $launch)) >> 32 != 0);\n    $low = ($low & 0xffffffffull) | $high << 32;\n    $to = ",
            $value,
            ";\n}"
        )
    };
}

/// How an element of a type is written and read. In assembly, so that no compiler makes several accesses of one.
fn element(ty: ScalarType) -> Option<[&'static str; 2]> {
    Some(match ty {
        ScalarType::F64 => [
            publish_two!("(unsigned long long)__double_as_longlong($value)"),
            receive_two!("__longlong_as_double((long long)$low)"),
        ],
        ScalarType::I64 => [publish_two!("(unsigned long long)$value"), receive_two!("(long long)$low")],
        ScalarType::U64 => [publish_two!("$value"), receive_two!("$low")],
        ScalarType::F32 => [
            publish_one!("(unsigned long long)__float_as_uint($value)"),
            receive_one!("__uint_as_float((unsigned int)$low)"),
        ],
        ScalarType::I32 => [
            publish_one!("(unsigned long long)(unsigned int)$value"),
            receive_one!("(int)(unsigned int)$low"),
        ],
        ScalarType::U32 => [publish_one!("(unsigned long long)$value"), receive_one!("(unsigned int)$low")],
        ScalarType::I8
        | ScalarType::U8
        | ScalarType::I16
        | ScalarType::U16
        | ScalarType::Bool
        | ScalarType::F16
        | ScalarType::Bf16
        | ScalarType::C64
        | ScalarType::C128
        | ScalarType::Record(_) => return None,
    })
}
