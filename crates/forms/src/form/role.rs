//! The two functions that a form is linear in.

/// Which argument of a multilinear form a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The test function.
    Test,
    /// The trial function.
    Trial,
}

impl Role {
    /// `test` or `trial`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Trial => "trial",
        }
    }
}
