//! Arrays of integers that assumptions are about.

use crate::InterpError;
use crate::memory::{Memory, Value};
use crate::node::Program;
use crate::store::checked;
use kingpost_ir::ids::Id;
use kingpost_ir::kernel::{Direction, Kernel, VarKind};
use kingpost_ir::{TableData, VarId};
use std::borrow::Cow;

/// An array of integers that has values from the start.
pub(crate) struct Integers<'m> {
    values: Cow<'m, [i64]>,
    pub(crate) shape: Vec<usize>,
}

impl<'m> Integers<'m> {
    /// The values from the start, if there are any.
    pub(crate) fn of(
        kernel: &'m Kernel,
        program: &Program,
        memory: &'m Memory,
        id: VarId,
    ) -> Result<Option<Self>, InterpError> {
        let (var, shape) = (&kernel.vars[id], &program.shapes[id.index()]);
        let values = match (&var.kind, memory.get(&var.name)) {
            (VarKind::Table(TableData::Int(values)), _) => Cow::Borrowed(&**values),
            (VarKind::Argument(Direction::In | Direction::InOut), Some(value)) => {
                let value = checked(var, value, shape, shape.iter().product())?;
                match (value, value.to_i64()) {
                    (Value::I64(values), _) => Cow::Borrowed(&**values),
                    (_, Some(values)) => Cow::Owned(values),
                    (_, None) => return Ok(None),
                }
            }
            (VarKind::Argument(_) | VarKind::Temporary | VarKind::Param | VarKind::Table(_), _) => {
                return Ok(None);
            }
        };
        Ok(Some(Self { values, shape: shape.clone() }))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn at(&self, place: usize) -> Option<i64> {
        self.values.get(place).copied()
    }
}
