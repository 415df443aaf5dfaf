//! Names in a kernel: those of the form stay as they are, the others give way.

use crate::form::FormError;
use purlin_ir::verify::is_name;
use std::collections::BTreeSet;

/// Names that are taken.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Takes a name that the user gave.
    ///
    /// # Errors
    /// [`FormError::BadName`] if it cannot stand in a kernel, [`FormError::Name`] if it is taken.
    pub(super) fn reserve(&mut self, name: &str) -> Result<String, FormError> {
        if !is_name(name) {
            return Err(FormError::BadName { name: name.into() });
        }
        if !self.taken.insert(name.into()) {
            return Err(FormError::Name { name: name.into() });
        }
        Ok(name.into())
    }

    /// `stem` if it is free, else `stem_1`, `stem_2`, …
    pub(super) fn fresh(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut k = 0;
        while !self.taken.insert(name.clone()) {
            k += 1;
            name = format!("{stem}_{k}");
        }
        name
    }
}
