//! The matrix instructions that multiply sixteen cells by tables.

use kingpost_primitives::intrinsics::{MFMA_16X16X4_F64_REGISTERS, MMA_M16N8K8_F64, width};
use serde::{Deserialize, Serialize};

/// Cells of a sub-group.
pub(super) const CELLS: i64 = 16;

/// A matrix instruction in double precision for sixteen cells.
///
/// # Shapes and units
/// `mma_m16n8k8` has cells as rows of the result, and columns of a table in eights: work-item `4*g + t` of
/// 32 has cells `g` and `g + 8`, columns `t` and `t + 4`. `mfma_16x16x4` has cells as columns of the result,
/// and columns of a table as its rows, sixteen of them: work-item `16*t + g` of 64 has cell `g`, columns
/// `4*v + t` for four `v`. Of either, a result is a factor of the next product as it lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatrixInstruction {
    /// `mma.m16n8k8` of sub-groups of 32, on NVIDIA cards from `sm_90` on.
    #[default]
    MmaM16n8k8,
    /// `v_mfma_f64_16x16x4` of wavefronts of 64, on AMD cards from `gfx90a` on.
    #[serde(rename = "mfma_16x16x4")]
    Mfma16x16x4,
}

impl MatrixInstruction {
    /// The instruction of a device whose sub-groups have that number of work-items; none of others.
    #[must_use]
    pub fn of_width(work_items: u64) -> Option<Self> {
        let has = |of: &Self| i64::try_from(work_items) == Ok(of.lanes());
        [Self::MmaM16n8k8, Self::Mfma16x16x4].into_iter().find(has)
    }

    /// Whether it is the one that is not named.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The text of its callee, and the name.
    pub(super) const fn callee(self) -> (&'static str, &'static str) {
        match self {
            Self::MmaM16n8k8 => (MMA_M16N8K8_F64, "mma_m16n8k8_f64"),
            Self::Mfma16x16x4 => (MFMA_16X16X4_F64_REGISTERS, "mfma_16x16x4_f64_registers"),
        }
    }

    /// Words of fragments and private arrays that a work-item may have. Compilers of wavefronts read ahead
    /// in half of the 512 registers besides: 3-D P4 to P6 with 176, 248 and 256 words take no scratch, of
    /// those with 288, 304, 312 and 368 three do (clang 19 for gfx942, 2026-11-30). Of sub-groups that
    /// were timed the strategies say themselves what pays.
    pub const fn most_words(self) -> u64 {
        match self {
            Self::MmaM16n8k8 => u64::MAX,
            Self::Mfma16x16x4 => 256,
        }
    }

    /// Doubles of a work-item that holds `columns` of sixteen cells.
    pub(super) const fn held(self, columns: i64) -> i64 {
        columns * CELLS / self.lanes()
    }

    /// Work-items of a sub-group.
    pub(super) const fn lanes(self) -> i64 {
        match self {
            Self::MmaM16n8k8 => width(MMA_M16N8K8_F64),
            Self::Mfma16x16x4 => width(MFMA_16X16X4_F64_REGISTERS),
        }
    }
}
