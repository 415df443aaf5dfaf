//! Steps drawn for a sample.

use purlin::interp::{Memory, Value};
use purlin::ir::{Kernel, TableData};
use purlin::transforms::draw::{Inputs, Picks};
use purlin::transforms::{Primitive, Step};

/// What a sample is run with.
struct Sample<'m>(&'m Memory);

impl Inputs for Sample<'_> {
    fn param(&self, name: &str) -> Option<i64> {
        self.0.get_param(name)
    }

    fn array(&self, name: &str) -> Option<TableData> {
        Some(match self.0.get(name)? {
            Value::F64(v) => TableData::real(v.iter().copied()),
            Value::F32(v) => TableData::real(v.iter().map(|x| f64::from(*x))),
            Value::I32(v) => TableData::int(v.iter().map(|x| i64::from(*x))),
            Value::I64(v) => TableData::int(v.iter().copied()),
        })
    }
}

/// A step, chosen by `bytes`; none where the kernel has nothing that the primitive could be tried
/// on.
pub fn step(kernel: &Kernel, memory: &Memory, bytes: &[u8]) -> Option<Step> {
    let step = Step::draw(kernel, &mut Picks::new(bytes, &Sample(memory)))?;
    // nobody passes the values of a table that a step has made
    let is_made = matches!(&step, Step::PassTable(pass) if memory.get(&pass.var).is_none());
    (!is_made).then_some(step)
}
