//! The terms of an affine expression.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

/// Terms in order. One alone needs no memory of its own: most expressions are a loop or a parameter
/// with a constant. Compares, hashes and prints as the slice does.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<T>", into = "Vec<T>")]
#[serde(bound = "T: Clone + Serialize + serde::de::DeserializeOwned")]
pub(crate) enum Terms<T> {
    /// No term.
    #[default]
    None,
    /// One term.
    One(T),
    /// At least two terms when it is made.
    Many(Vec<T>),
}

impl<T> Terms<T> {
    /// The terms.
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(term) => std::slice::from_ref(term),
            Self::Many(terms) => terms,
        }
    }

    /// Puts a term before the `k`-th.
    pub(crate) fn insert(&mut self, k: usize, term: T) {
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

impl<T> Deref for Terms<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> DerefMut for Terms<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::None => &mut [],
            Self::One(term) => std::slice::from_mut(term),
            Self::Many(terms) => terms,
        }
    }
}

impl<T> From<Vec<T>> for Terms<T> {
    fn from(mut terms: Vec<T>) -> Self {
        if terms.len() > 1 {
            return Self::Many(terms);
        }
        terms.pop().map_or(Self::None, Self::One)
    }
}

impl<T> From<Terms<T>> for Vec<T> {
    fn from(terms: Terms<T>) -> Self {
        match terms {
            Terms::None => Self::new(),
            Terms::One(term) => vec![term],
            Terms::Many(terms) => terms,
        }
    }
}

impl<T> FromIterator<T> for Terms<T> {
    fn from_iter<I: IntoIterator<Item = T>>(terms: I) -> Self {
        let mut terms = terms.into_iter();
        let Some(first) = terms.next() else { return Self::None };
        let Some(second) = terms.next() else { return Self::One(first) };
        let mut many = Vec::with_capacity(2 + terms.size_hint().0);
        many.extend([first, second]);
        many.extend(terms);
        Self::Many(many)
    }
}

impl<'a, T> IntoIterator for &'a Terms<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl<T: PartialEq> PartialEq for Terms<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq> Eq for Terms<T> {}

impl<T: Ord> PartialOrd for Terms<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Terms<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl<T: Hash> Hash for Terms<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Terms<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(of: &[usize]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    /// Every operation leaves what it leaves of a vector, whatever the form.
    #[test]
    fn terms_are_those_of_a_vector() {
        for len in 0..4 {
            let all: Vec<usize> = (0..len).collect();
            let vector = terms(&all);
            assert_eq!(Terms::from(vector.clone()).as_slice(), vector);
            assert_eq!(vector.iter().cloned().collect::<Terms<_>>().as_slice(), vector);
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
        let sorted: Vec<Terms<_>> = all.iter().map(|t| terms(t).into()).collect();
        assert!(sorted.is_sorted());
        let mut again = sorted.clone();
        again.reverse();
        again.sort();
        assert_eq!(again, sorted);
    }
}
