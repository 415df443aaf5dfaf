//! Names in a kernel: those of the form stay as they are, the others give way.

use crate::form::FormError;
use kingpost_ir::verify::is_name;
use std::collections::{BTreeMap, BTreeSet};

/// Names that are taken.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// The last number of each stem: forms of many operations ask for thousands of one stem, and the
    /// search from 1 took a third of their lowering.
    last: BTreeMap<String, usize>,
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
        if self.taken.insert(stem.to_owned()) {
            return stem.to_owned();
        }
        // names are never given back, so that those of smaller numbers stay taken
        let mut k = self.last.get(stem).copied().unwrap_or(0);
        loop {
            k += 1;
            let name = format!("{stem}_{k}");
            if self.taken.insert(name.clone()) {
                self.last.insert(stem.to_owned(), k);
                return name;
            }
        }
    }
}
