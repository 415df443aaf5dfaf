//! Types and places of variables.

use crate::ast::Name;
use kingpost_ir::ScalarType;
use std::collections::BTreeMap;

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// An array behind a pointer.
    Global,
    /// The same, which is only read.
    Input,
    Constant,
    Local,
    Private,
}

/// Types and places of all variables.
pub(super) type Symbols = BTreeMap<Name, (ScalarType, Space)>;
