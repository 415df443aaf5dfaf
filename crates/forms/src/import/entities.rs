//! Kernels on some of their entities.

use crate::lowering::{LoweredKernel, LoweredRole};
use kingpost_interp::{Memory, Value, with_elements};
use kingpost_ir::{Affine, Atom, VarId};

impl LoweredKernel {
    /// The arguments of this kernel on some of its entities: of arrays with a row for each entity, the
    /// rows of these. Everything else is the same.
    #[must_use]
    pub fn on_entities(&self, memory: &Memory, entities: &[u32]) -> Memory {
        let Some(count) = self.entity_count() else { return memory.clone() };
        let mut some = memory.clone();
        let data = &self.kernel.vars[count];
        let all = usize::try_from(memory.get_param(&data.name).unwrap_or(0)).unwrap_or(0);
        some.set_param(&data.name, entities.len() as i64);
        let is_by_entity = |first: Option<&Affine>| {
            first.is_some_and(|e| e.constant_term() == 0 && e.terms() == [(Atom::Var(count), 1)])
        };
        for var in self.kernel.vars.values().filter(|v| is_by_entity(v.shape.first())) {
            let Some(value) = memory.get(&var.name) else { continue };
            let width = value.len().checked_div(all).unwrap_or(0);
            some.set(&var.name, rows_of(value, width, entities));
        }
        some
    }

    /// The parameter that counts entities: the first extent of what says where their entries stand, which
    /// cells they are of, or which degrees of freedom they have.
    fn entity_count(&self) -> Option<VarId> {
        let of_matrix = |role: LoweredRole| matches!(role, LoweredRole::Positions { .. });
        let listed = |role: LoweredRole| role == LoweredRole::EntityCells;
        let of_cells = |role: LoweredRole| matches!(role, LoweredRole::Map { .. });
        let find = |is: &dyn Fn(LoweredRole) -> bool| self.arguments.iter().find(|a| is(a.role));
        let places = find(&of_matrix).or_else(|| find(&listed)).or_else(|| find(&of_cells))?;
        let places = &self.kernel.vars[self.kernel.var(&places.name)?];
        match places.shape.first()?.terms() {
            [(Atom::Var(count), 1)] => Some(*count),
            _ => None,
        }
    }
}

/// Some rows of an array.
fn rows_of(value: &Value, width: usize, rows: &[u32]) -> Value {
    fn taken<T: Copy>(values: &[T], width: usize, rows: &[u32]) -> Vec<T> {
        let row = |row: &u32| values.get(*row as usize * width..(*row as usize + 1) * width);
        rows.iter().filter_map(row).flatten().copied().collect()
    }
    with_elements!(value, v => taken(v, width, rows).into())
}
