//! Tables of the kernel: basis functions and derivatives at quadrature points, and weights.

use super::names::Names;
use foldhash::fast::FixedState;
use kingpost_ir::{KernelBuilder, ScalarType, TableData, VarId};
use std::collections::HashMap;

/// Tables that were declared already: equal ones are one.
pub(super) struct Tables {
    known: HashMap<(Vec<usize>, Vec<u64>), VarId, FixedState>,
    ty: ScalarType,
}

impl Tables {
    pub(super) fn new(ty: ScalarType) -> Self {
        Self { known: HashMap::default(), ty }
    }

    /// The table with these entries, declared if it is new.
    pub(super) fn table(
        &mut self,
        b: &mut KernelBuilder,
        names: &mut Names,
        stem: &str,
        shape: &[usize],
        entries: &[f64],
    ) -> VarId {
        let key = (shape.to_vec(), entries.iter().map(|v| v.to_bits()).collect());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let narrow = |v: &f64| if self.ty == ScalarType::F32 { f64::from(*v as f32) } else { *v };
        let data = TableData::real(entries.iter().map(narrow));
        let var = b.table(names.fresh(stem), self.ty, shape.iter().copied(), data);
        self.known.insert(key, var);
        var
    }
}
