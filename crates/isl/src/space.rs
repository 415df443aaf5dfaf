//! Spaces: tuples, dimensions and parameters by name, and how the names of two operands match.

use std::fmt;

use crate::error::IslError;

/// The space of a set: an optional tuple name, dimensions in order, parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SetSpace {
    /// The name of the tuple, for example a statement or an array.
    pub tuple: Option<String>,
    /// The dimensions; their order is the lexicographic order.
    pub dims: Vec<String>,
    /// The parameters; their order means nothing except in witnesses.
    pub params: Vec<String>,
}

/// The space of a map: input and output tuples, parameters. All names differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct MapSpace {
    /// The name of the input tuple.
    pub in_tuple: Option<String>,
    /// The input dimensions.
    pub in_dims: Vec<String>,
    /// The name of the output tuple.
    pub out_tuple: Option<String>,
    /// The output dimensions.
    pub out_dims: Vec<String>,
    /// The parameters.
    pub params: Vec<String>,
}

/// Owned strings of a list of names.
pub(crate) fn owned_names<S: AsRef<str>>(names: &[S]) -> Vec<String> {
    names.iter().map(|name| name.as_ref().to_owned()).collect()
}

impl SetSpace {
    /// A space without a tuple name.
    pub fn new<D: AsRef<str>, P: AsRef<str>>(dims: &[D], params: &[P]) -> SetSpace {
        SetSpace { tuple: None, dims: owned_names(dims), params: owned_names(params) }
    }

    /// The same space with a tuple name.
    #[must_use]
    pub fn with_tuple(mut self, tuple: impl Into<String>) -> SetSpace {
        self.tuple = Some(tuple.into());
        self
    }

    /// Checks that the names are usable and differ.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn check(&self) -> Result<(), IslError> {
        check_names(&[&self.params, &self.dims], self)
    }
}

impl MapSpace {
    /// A space without tuple names.
    pub fn new<I: AsRef<str>, O: AsRef<str>, P: AsRef<str>>(
        in_dims: &[I],
        out_dims: &[O],
        params: &[P],
    ) -> MapSpace {
        MapSpace {
            in_tuple: None,
            in_dims: owned_names(in_dims),
            out_tuple: None,
            out_dims: owned_names(out_dims),
            params: owned_names(params),
        }
    }

    /// The same space with tuple names.
    #[must_use]
    pub fn with_tuples(mut self, input: impl Into<String>, output: impl Into<String>) -> MapSpace {
        self.in_tuple = Some(input.into());
        self.out_tuple = Some(output.into());
        self
    }

    /// Checks that the names are usable and differ.
    ///
    /// # Errors
    /// [`IslError::InvalidName`], [`IslError::DuplicateName`].
    pub fn check(&self) -> Result<(), IslError> {
        check_names(&[&self.params, &self.in_dims, &self.out_dims], self)
    }
}

/// Checks groups of names that together must be usable and different.
pub(crate) fn check_names(groups: &[&[String]], space: &dyn fmt::Display) -> Result<(), IslError> {
    let all = || groups.iter().flat_map(|group| group.iter());
    for (position, name) in all().enumerate() {
        if name.is_empty() || name.contains('\0') {
            return Err(IslError::InvalidName { name: name.clone() });
        }
        // Quadratic, but a space has a dozen names and this allocates nothing.
        if all().take(position).any(|other| other == name) {
            return Err(IslError::DuplicateName { name: name.clone(), space: space.to_string() });
        }
    }
    Ok(())
}

/// `name` without its trailing primes.
fn unprimed(name: &str) -> &str {
    name.trim_end_matches('\'')
}

/// How `right` must be permuted to line up with `left`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// The order is the same already.
    Same,
    /// Position `k` of the left operand is position `permutation[k]` of the right one.
    Permuted(Vec<usize>),
}

/// Matches names exactly or, when that fails, up to trailing primes (`i'` is the output twin of
/// `i`).
///
/// Returns `None` when the names are not the same.
pub(crate) fn match_names(left: &[String], right: &[String]) -> Option<Matching> {
    if left.len() != right.len() {
        return None;
    }
    if left == right {
        return Some(Matching::Same);
    }
    let find = |same: &dyn Fn(&str, &str) -> bool| -> Option<Vec<usize>> {
        let found: Option<Vec<usize>> =
            left.iter().map(|name| right.iter().position(|other| same(name, other))).collect();
        let found = found?;
        // Two names of one side may share a base (`i`, `i'`): then the base does not identify a
        // dimension.
        let distinct = (0..found.len()).all(|k| !found[..k].contains(&found[k]));
        distinct.then_some(found)
    };
    let permutation = find(&|a, b| a == b).or_else(|| find(&|a, b| unprimed(a) == unprimed(b)))?;
    if permutation.iter().enumerate().all(|(k, position)| k == *position) {
        return Some(Matching::Same);
    }
    Some(Matching::Permuted(permutation))
}

/// `names`, each with as many trailing primes as it takes to differ from `taken` and from each
/// other.
pub(crate) fn primed_apart(names: &[String], taken: &[&[String]]) -> Vec<String> {
    let mut result: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let mut candidate = name.clone();
        while taken.iter().any(|group| group.contains(&candidate)) || result.contains(&candidate) {
            candidate.push('\'');
        }
        result.push(candidate);
    }
    result
}

/// Writes `tuple[a, b]`.
fn write_tuple(f: &mut fmt::Formatter<'_>, tuple: Option<&str>, dims: &[String]) -> fmt::Result {
    write!(f, "{}[{}]", tuple.unwrap_or(""), dims.join(", "))
}

/// Writes `[N, M] -> ` when there are parameters.
fn write_params(f: &mut fmt::Formatter<'_>, params: &[String]) -> fmt::Result {
    if params.is_empty() { Ok(()) } else { write!(f, "[{}] -> ", params.join(", ")) }
}

impl fmt::Display for SetSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`")?;
        write_params(f, &self.params)?;
        write_tuple(f, self.tuple.as_deref(), &self.dims)?;
        write!(f, "`")
    }
}

impl fmt::Display for MapSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`")?;
        write_params(f, &self.params)?;
        write_tuple(f, self.in_tuple.as_deref(), &self.in_dims)?;
        write!(f, " -> ")?;
        write_tuple(f, self.out_tuple.as_deref(), &self.out_dims)?;
        write!(f, "`")
    }
}
