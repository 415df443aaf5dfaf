//! Mappings that gather and scatter degrees of freedom in parts.

use super::Mapping;

impl Mapping {
    /// The same with parts of degrees of freedom gathered and scattered by themselves, as
    /// [straight cells](Self::StraightCells) have them; none where nothing is transferred so.
    #[must_use]
    pub fn with_parts(&self, parts: &[u64]) -> Option<Self> {
        let mut with = self.clone();
        *with.parts_mut()? = parts.to_vec();
        Some(with)
    }

    fn parts_mut(&mut self) -> Option<&mut Vec<u64>> {
        match self {
            Self::StraightCells { parts, .. }
            | Self::MatrixCells { parts, .. }
            | Self::MatrixGroups { parts, .. } => Some(parts),
            Self::Modes { then }
            | Self::StoredFactors { then }
            | Self::Rules { then, .. }
            | Self::Orbits { then, .. }
            | Self::DynamicLocal { then }
            | Self::SharingElimination { then }
            | Self::FewestOperations { then, .. } => then.parts_mut(),
            Self::Sequential
            | Self::SingleCell { .. }
            | Self::ConstantCells { .. }
            | Self::PointTiles { .. }
            | Self::StagedCells { .. }
            | Self::ListedCells(_)
            | Self::LoopLanes { .. }
            | Self::OwnedRows { .. }
            | Self::SummedCells { .. }
            | Self::FactorisedCells { .. }
            | Self::FactorisedPlanes { .. }
            | Self::FactorisedLines { .. }
            | Self::MatrixBasis { .. }
            | Self::Tiling(_)
            | Self::StagedTiling(_)
            | Self::Schedule { .. } => None,
        }
    }
}
