//! Obligations: the conditions that checks prove, each under an id.

use crate::refusal::{Clash, NotProved, Refusal, Unmet};

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

    /// Refuses unless the condition holds; `why` says what was found and what to try.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn require(self, holds: bool, why: impl FnOnce() -> String) -> Result<(), Refusal> {
        if holds || self.is_waived() { Ok(()) } else { Err(self.unfit(why())) }
    }

    /// Refuses if something is there that must not be; `why` says what it is and what to try.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn forbid<T>(self, found: Option<T>, why: impl FnOnce(T) -> String) -> Result<(), Refusal> {
        match found {
            Some(found) if !self.is_waived() => Err(self.unfit(why(found))),
            Some(_) | None => Ok(()),
        }
    }

    /// What the check cannot go on without, and refuses if it is not there.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn find<T>(self, found: Option<T>, why: impl FnOnce() -> String) -> Result<T, Refusal> {
        found.ok_or_else(|| self.unfit(why()))
    }

    /// Refuses unless it is known whether the condition holds; `why` says what is not known and
    /// what to try.
    ///
    /// # Errors
    /// [`Refusal::Undecided`].
    pub fn decide(self, known: bool, why: impl FnOnce() -> String) -> Result<(), Refusal> {
        if known || self.is_waived() { Ok(()) } else { Err(self.undecided(why())) }
    }

    /// Refuses if there is a counterexample.
    ///
    /// # Errors
    /// [`Refusal::NotProved`].
    pub fn refute(self, counterexample: Option<impl Into<Clash>>) -> Result<(), Refusal> {
        match counterexample {
            Some(clash) if !self.is_waived() => Err(self.not_proved(clash)),
            Some(_) | None => Ok(()),
        }
    }

    /// The kernel has not the form that the step needs.
    pub fn unfit(self, why: impl Into<String>) -> Refusal {
        Refusal::Unfit(Unmet { obligation: self.as_told(), why: why.into() })
    }

    /// The condition may hold, but nothing proves it.
    pub fn undecided(self, why: impl Into<String>) -> Refusal {
        Refusal::Undecided(Unmet { obligation: self.as_told(), why: why.into() })
    }

    /// The condition does not hold: here is why.
    pub fn not_proved(self, clash: impl Into<Clash>) -> Refusal {
        Refusal::NotProved(Box::new(NotProved { obligation: self.as_told(), clash: clash.into() }))
    }

    /// Whether the environment waives this obligation, in a build of the mutation check only.
    #[cfg(purlin_mutation)]
    pub fn is_waived(self) -> bool {
        static WAIVED: std::sync::LazyLock<Option<String>> =
            std::sync::LazyLock::new(|| std::env::var("PURLIN_MUTATION").ok());
        WAIVED.as_deref() == Some(self.id)
    }

    /// Itself, but under another id where it is waived: a check that cannot go on without its
    /// condition refuses all the same, and a test has to notice by the id.
    fn as_told(self) -> Self {
        if self.is_waived() { Self { id: "waived", ..self } } else { self }
    }

    /// No obligation is ever waived.
    #[cfg(not(purlin_mutation))]
    pub const fn is_waived(self) -> bool {
        false
    }
}
