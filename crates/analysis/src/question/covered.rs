//! Whether a write covers what an access touches.

use super::{Instances, Linear, Question, Shared, Symbols, numbered};
use crate::polyhedral::{conjunction, difference};
use kingpost_isl as isl;

/// Elements by iterations of some outer loops: `{ [C, e] : e touched in C }`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Footprint {
    /// When the access happens.
    pub(crate) at: Shared<Instances>,
    /// Along each axis the index, or, where it is not known, the extent if that is known.
    pub(crate) index: Vec<Index>,
}

/// Which elements along an axis are touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Index {
    /// This one.
    At(Linear),
    /// Those below this extent.
    Below(Linear),
    /// All.
    Any,
}

/// Whether all that is touched in an iteration of the outer loops is written in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Covered {
    /// Number of the outer loops.
    pub(crate) common: usize,
    /// What is surely written.
    pub(crate) written: Footprint,
    /// What may be touched.
    pub(crate) touched: Footprint,
    /// The symbols.
    pub(crate) symbols: Shared<Symbols>,
}

impl Question for Covered {
    type Answer = bool;

    const ASKS: &'static str = "whether a write covers what is read later";

    fn ask(&self) -> Result<bool, isl::IslError> {
        self.set(&self.touched)?.is_subset(&self.set(&self.written)?)
    }
}

impl Covered {
    fn set(&self, footprint: &Footprint) -> Result<isl::Set, isl::IslError> {
        let names = numbered(footprint.at.depth(), "");
        let (common, inner) = names.split_at(self.common);
        let elements: Vec<_> = (0..footprint.index.len()).map(|axis| format!("#element{axis}")).collect();
        let mut all = footprint.at.named(&names, &self.symbols);
        for (element, index) in elements.iter().zip(&footprint.index) {
            let element = isl::Affine::name(element.as_str());
            let on_axis = match index {
                Index::At(index) => {
                    let index = index.named(&names, &self.symbols.names);
                    vec![isl::Constraint::zero(difference(&element, &index))]
                }
                Index::Below(extent) => {
                    let extent = extent.named(&names, &self.symbols.names);
                    let below = isl::Constraint::non_negative(difference(&extent, &element).offset(-1));
                    vec![isl::Constraint::non_negative(element), below]
                }
                Index::Any => Vec::new(),
            };
            all = conjunction(all, vec![on_axis]);
        }
        let dims: Vec<_> = common.iter().chain(&elements).chain(inner).collect();
        let space = isl::SetSpace::new(&dims, &self.symbols.names);
        let set = isl::Set::from_disjuncts(&space, &self.symbols.restrict(all))?;
        let inner: Vec<_> = inner.iter().map(String::as_str).collect();
        if inner.is_empty() { Ok(set) } else { set.project_out(&inner) }
    }
}
