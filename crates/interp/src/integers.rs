//! Arrays of integers that assumptions are about.

use crate::InterpError;
use crate::memory::{Memory, Value};
use crate::node::Program;
use crate::store::checked;
use purlin_ir::ids::Id;
use purlin_ir::kernel::{Direction, Kernel, VarKind};
use purlin_ir::{TableData, VarId};

/// An array of integers that has values from the start.
pub(crate) struct Integers<'m> {
    values: Entries<'m>,
    pub(crate) shape: Vec<usize>,
}

enum Entries<'m> {
    Short(&'m [i16]),
    Int(&'m [i32]),
    Long(&'m [i64]),
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
            (VarKind::Table(TableData::Int(values)), _) => Entries::Long(values),
            (VarKind::Argument(Direction::In | Direction::InOut), Some(value)) => {
                match checked(var, value, shape, shape.iter().product())? {
                    Value::I16(values) => Entries::Short(values),
                    Value::I32(values) => Entries::Int(values),
                    Value::I64(values) => Entries::Long(values),
                    Value::F32(_) | Value::F64(_) => return Ok(None),
                }
            }
            (VarKind::Argument(_) | VarKind::Temporary | VarKind::Param | VarKind::Table(_), _) => {
                return Ok(None);
            }
        };
        Ok(Some(Self { values, shape: shape.clone() }))
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        match self.values {
            Entries::Short(values) => values.len(),
            Entries::Int(values) => values.len(),
            Entries::Long(values) => values.len(),
        }
    }

    pub(crate) fn at(&self, place: usize) -> Option<i64> {
        match self.values {
            Entries::Short(values) => values.get(place).map(|v| i64::from(*v)),
            Entries::Int(values) => values.get(place).map(|v| i64::from(*v)),
            Entries::Long(values) => values.get(place).copied(),
        }
    }
}
