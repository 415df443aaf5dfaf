//! What addresses point into.

use crate::ast::{Declare, Name, Pointee, Stmt};
use crate::function::Function;
use std::collections::{BTreeMap, BTreeSet};

/// The arrays that are no work-item's own.
pub(super) struct Arrays {
    pub(super) pointees: BTreeMap<Name, Pointee>,
    pub(super) local: BTreeSet<Name>,
}

impl Arrays {
    pub(super) fn of(function: &Function) -> Self {
        let mut found = Self { pointees: BTreeMap::new(), local: BTreeSet::new() };
        for param in &function.params {
            if let Some(constant) = param.buffer {
                let pointee = Pointee { array: param.name.clone(), ty: param.ty, constant };
                found.pointees.insert(param.name.clone(), pointee);
            }
        }
        for stmt in &function.body {
            if let Stmt::Declare(Declare { name, ty, len: Some(_), lanes: 1, local: true, .. }) = stmt {
                found.local.insert(name.clone());
                let pointee = Pointee { array: name.clone(), ty: *ty, constant: false };
                found.pointees.insert(name.clone(), pointee);
            }
        }
        found
    }
}
