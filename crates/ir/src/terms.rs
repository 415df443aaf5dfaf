//! The terms of an affine expression.

use crate::affine::Atom;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// An atom and its coefficient.
pub(crate) type Term = (Atom, i64);

/// Terms in order. One alone needs no memory of its own: most expressions are a loop or a parameter
/// with a constant. Compares, hashes and prints as the slice does.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Term>", into = "Vec<Term>")]
pub(crate) enum Terms {
    /// No term.
    #[default]
    None,
    /// One term.
    One(Term),
    /// At least two terms when it is made.
    Many(Vec<Term>),
}

impl Terms {
    /// The terms.
    pub(crate) fn as_slice(&self) -> &[Term] {
        match self {
            Self::None => &[],
            Self::One(term) => std::slice::from_ref(term),
            Self::Many(terms) => terms,
        }
    }

    /// Puts a term before the `k`-th.
    pub(crate) fn insert(&mut self, k: usize, term: Term) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(term),
            Self::One(other) if k == 0 => Self::Many(vec![term, other]),
            Self::One(other) => Self::Many(vec![other, term]),
            Self::Many(mut terms) => {
                terms.insert(k, term);
                Self::Many(terms)
            }
        };
    }

    /// Takes the `k`-th term out.
    pub(crate) fn remove(&mut self, k: usize) {
        *self = match std::mem::take(self) {
            Self::None | Self::One(_) => Self::None,
            Self::Many(mut terms) => {
                terms.remove(k);
                terms.into()
            }
        };
    }
}

impl Deref for Terms {
    type Target = [Term];

    fn deref(&self) -> &[Term] {
        self.as_slice()
    }
}

impl DerefMut for Terms {
    fn deref_mut(&mut self) -> &mut [Term] {
        match self {
            Self::None => &mut [],
            Self::One(term) => std::slice::from_mut(term),
            Self::Many(terms) => terms,
        }
    }
}

impl From<Vec<Term>> for Terms {
    fn from(mut terms: Vec<Term>) -> Self {
        if terms.len() > 1 {
            return Self::Many(terms);
        }
        terms.pop().map_or(Self::None, Self::One)
    }
}

impl From<Terms> for Vec<Term> {
    fn from(terms: Terms) -> Self {
        match terms {
            Terms::None => Self::new(),
            Terms::One(term) => vec![term],
            Terms::Many(terms) => terms,
        }
    }
}

impl FromIterator<Term> for Terms {
    fn from_iter<I: IntoIterator<Item = Term>>(terms: I) -> Self {
        let mut terms = terms.into_iter();
        let Some(first) = terms.next() else { return Self::None };
        let Some(second) = terms.next() else { return Self::One(first) };
        let mut many = Vec::with_capacity(2 + terms.size_hint().0);
        many.extend([first, second]);
        many.extend(terms);
        Self::Many(many)
    }
}

impl<'a> IntoIterator for &'a Terms {
    type Item = &'a Term;
    type IntoIter = std::slice::Iter<'a, Term>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl PartialEq for Terms {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Terms {}

impl PartialOrd for Terms {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Terms {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for Terms {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Id, VarId};

    fn terms(of: &[usize]) -> Vec<Term> {
        of.iter().map(|k| (Atom::Var(VarId::from_index(*k)), 1)).collect()
    }

    /// Every operation leaves what it leaves of a vector, whatever the form.
    #[test]
    fn terms_are_those_of_a_vector() {
        for len in 0..4 {
            let all: Vec<usize> = (0..len).collect();
            let vector = terms(&all);
            assert_eq!(Terms::from(vector.clone()).as_slice(), vector);
            assert_eq!(vector.iter().cloned().collect::<Terms>().as_slice(), vector);
            for k in 0..=len {
                let (mut some, mut expected) = (Terms::from(vector.clone()), vector.clone());
                some.insert(k, terms(&[9])[0].clone());
                expected.insert(k, terms(&[9])[0].clone());
                assert_eq!(some.as_slice(), expected);
                some.remove(k);
                assert_eq!((some.as_slice(), &some), (&vector[..], &Terms::from(vector.clone())));
            }
        }
    }

    #[test]
    fn order_is_that_of_slices() {
        let all = [&[][..], &[0], &[0, 1], &[0, 2], &[1], &[1, 2], &[1, 2, 3], &[2]];
        let sorted: Vec<Terms> = all.iter().map(|t| terms(t).into()).collect();
        assert!(sorted.is_sorted());
        let mut again = sorted.clone();
        again.reverse();
        again.sort();
        assert_eq!(again, sorted);
    }
}
