//! Arrays by name, as kernels take them.

use kingpost_fem::sparse::CsrPattern;
use kingpost_interp::Value;

/// An array with its values, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Value,
}

impl Array {
    /// An array of any extents.
    pub fn new(shape: impl IntoIterator<Item = usize>, values: impl Into<Value>) -> Self {
        Self { shape: shape.into_iter().collect(), values: values.into() }
    }

    /// Where the entries of each entity stand in a sparse matrix.
    #[must_use]
    pub fn positions(pattern: &CsrPattern) -> Self {
        let [height, width] = pattern.extents;
        Self::new([pattern.n_entities(), height, width], pattern.positions().into_owned())
    }
}
