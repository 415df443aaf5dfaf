//! Typed dense ids and the arenas they index.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// An id that indexes an [`Arena`].
pub trait Id: Copy {
    /// Letter that stands before the number when an id is printed.
    const PREFIX: &'static str;
    /// The id with this position.
    fn from_index(index: usize) -> Self;
    /// Position in the arena.
    fn index(self) -> usize;
}

macro_rules! define_id {
    ($name:ident, $prefix:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(u32);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_index(index: usize) -> Self {
                Self(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", Self::PREFIX, self.0)
            }
        }
    };
}

define_id!(InameId, "i", "A loop of a kernel.");
define_id!(InsnId, "s", "An instruction of a kernel.");
define_id!(VarId, "v", "A variable of a kernel.");
define_id!(RuleId, "r", "A substitution rule of a kernel.");
define_id!(CalleeId, "c", "A callee of a kernel.");

/// A dense table indexed by a typed id.
///
/// Copies of a table share its items: one is copied when it is changed.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arena<I, T> {
    items: Vec<Arc<T>>,
    #[serde(skip)]
    ids: PhantomData<fn(I) -> I>,
}

impl<I, T> Default for Arena<I, T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: PhantomData }
    }
}

impl<I: Id, T> Arena<I, T> {
    /// Appends an item and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(Arc::new(item));
        I::from_index(self.items.len() - 1)
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item, or `None` for an id of another arena.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index()).map(|item| &**item)
    }

    /// Ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// Ids and items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(k, item)| (I::from_index(k), &**item))
    }

    /// Items in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.iter().map(|item| &**item)
    }

    /// Items of two arenas with the same id, without those that both share.
    pub fn changed<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a T, &'a T)> {
        let pairs = self.items.iter().zip(&other.items).filter(|(a, b)| !Arc::ptr_eq(a, b));
        pairs.map(|(a, b)| (&**a, &**b))
    }

    /// The items that `keep` names, in its order.
    pub(crate) fn taken(self, keep: &[I]) -> Self {
        let items = keep.iter().map(|id| Arc::clone(&self.items[id.index()])).collect();
        Self { items, ids: PhantomData }
    }
}

impl<I: Id, T: Clone> Arena<I, T> {
    /// Items in order, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.items.iter_mut().map(Arc::make_mut)
    }
}
impl<I: Id, T> Index<I> for Arena<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T: Clone> IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        Arc::make_mut(&mut self.items[id.index()])
    }
}

impl<I: Id, T> FromIterator<T> for Arena<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self { items: items.into_iter().map(Arc::new).collect(), ids: PhantomData }
    }
}

impl<I: Id + fmt::Debug, T: fmt::Debug> fmt::Debug for Arena<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
