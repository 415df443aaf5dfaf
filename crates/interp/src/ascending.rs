//! Arrays that are assumed to ascend.

use crate::InterpError;
use crate::memory::{Memory, Value};
use crate::node::Program;
use crate::store::checked;
use purlin_ir::ids::Id;
use purlin_ir::kernel::{Assumption, Direction, Kernel, VarKind};
use purlin_ir::{TableData, VarId};

/// Arrays assumed ascending that have values from the start must be; those that the kernel fills are
/// returned.
pub(crate) fn check_ascending(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<Vec<VarId>, InterpError> {
    let mut unchecked = Vec::new();
    for assumption in &kernel.assumptions {
        let Assumption::Ascending(id) = assumption else { continue };
        let (var, shape) = (&kernel.vars[*id], &program.shapes[id.index()]);
        let falls = match (&var.kind, memory.get(&var.name)) {
            (VarKind::Table(TableData::Int(v)), _) => fall(v),
            (VarKind::Argument(Direction::In | Direction::InOut), Some(value)) => {
                match checked(var, value, shape, shape.iter().product())? {
                    Value::I16(v) => fall(v),
                    Value::I32(v) => fall(v),
                    Value::I64(v) => fall(v),
                    Value::F32(_) | Value::F64(_) => None,
                }
            }
            _ => {
                unchecked.push(*id);
                continue;
            }
        };
        if let Some((at, first, second)) = falls {
            return Err(InterpError::NotAscending { name: var.name.clone(), at, first, second });
        }
    }
    Ok(unchecked)
}

/// The first entry that is less than the one before it: its place, that one and itself.
fn fall<T: Copy + PartialOrd + Into<i64>>(values: &[T]) -> Option<(usize, i64, i64)> {
    let at = values.windows(2).position(|pair| pair[1] < pair[0])?;
    Some((at + 1, values[at].into(), values[at + 1].into()))
}
