//! Obligations: the conditions that checks prove, each under an id.

/// A condition that a check proves before a kernel is edited.
///
/// Its id stands in the message of a refusal, in the documentation, in the facts that show the
/// refusal, and is what `scripts/mutation_check.py` waives to see that a test notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Obligation {
    id: &'static str,
    says: &'static str,
}

impl Obligation {
    /// The obligation of this id,
    /// `primitive.condition` or, where several primitives share it, `condition`.
    pub const fn new(id: &'static str, says: &'static str) -> Self {
        Self { id, says }
    }

    /// The id, for example `interchange_inames.nested`.
    pub const fn id(self) -> &'static str {
        self.id
    }

    /// The condition in words, for example `one loop is directly inside the other`.
    pub const fn says(self) -> &'static str {
        self.says
    }

    /// Whether the environment waives this obligation, in a build of the mutation check only.
    #[cfg(kingpost_mutation)]
    pub fn is_waived(self) -> bool {
        static WAIVED: std::sync::LazyLock<Option<String>> =
            std::sync::LazyLock::new(|| std::env::var("KINGPOST_MUTATION").ok());
        WAIVED.as_deref() == Some(self.id)
    }

    /// Itself, but under another id where it is waived: a check that cannot go on without its
    /// condition refuses all the same, and a test has to notice by the id.
    pub(crate) fn as_told(self) -> Self {
        self.fails();
        if self.is_waived() { Self { id: "waived", ..self } } else { self }
    }

    /// No obligation is ever waived.
    #[cfg(not(kingpost_mutation))]
    pub const fn is_waived(self) -> bool {
        false
    }
}
