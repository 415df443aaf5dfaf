//! Statistics: operations, accesses and footprints.

mod op;

pub use op::OpKind;
pub(crate) use op::Tally;
