//! Why a step is refused.

use crate::obligation::Obligation;
use crate::proved::Means;
use kingpost_analysis::Witness;
use kingpost_analysis::placement::{self, PlacementError, StorageError};
use kingpost_analysis::witness::params_text;
use kingpost_ir::{Kernel, KernelError};
use kingpost_isl::IslError;

/// A step that was not applied: the operation as the user wrote it, and why it is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {cause}{}", .cause.id_text())]
pub struct TransformError {
    /// The operation, for example ``split `cell` by 32``.
    pub operation: String,
    /// Why it was not applied.
    pub cause: Refusal,
}

/// Why a step is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A name that stands for nothing.
    #[error("there is no {kind} `{name}`; there is {known}")]
    Unknown {
        /// What was looked for: iname, instruction, variable, parameter.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names there are, nearest first.
        known: String,
    },
    /// A selection that matches no instruction.
    #[error("no instruction matches {selection}; there is {known}")]
    EmptySelection {
        /// The selection.
        selection: String,
        /// What could be selected.
        known: String,
    },
    /// A new name that something else has.
    #[error("the name `{name}` is taken; choose another")]
    Taken {
        /// The name.
        name: String,
    },
    /// An argument that makes no sense, whatever the kernel.
    #[error("{0}")]
    Argument(BadArgument),
    /// Arguments that the step does not have, or of another type.
    #[error("{0}")]
    Arguments(String),
    /// The kernel has not the form that the step needs.
    #[error("{0}")]
    Unfit(Unmet),
    /// The step may be legal, but nothing proves it.
    #[error("{0}")]
    Undecided(Unmet),
    /// The step is not legal: two instances or parameters that show it.
    #[error("{0}")]
    NotProved(Box<NotProved>),
    /// The result would not be well formed, by the user's choice of names or tags.
    #[error("{0}")]
    Malformed(#[from] KernelError),
    /// isl failed.
    #[error("the integer-set library failed, which is no fault of yours: {0}")]
    Solver(IslError),
    /// A state that cannot be.
    #[error("this is a bug of kingpost, please report it: {0}")]
    Internal(String),
}

/// An argument that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}, needed {needed}")]
pub struct BadArgument {
    /// Its name in recipes.
    pub argument: &'static str,
    /// What it is, as a clause: `the padding is 0`.
    pub found: String,
    /// What it should be.
    pub needed: String,
}

/// An obligation that is not met, without a counterexample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unmet {
    /// What had to be proved.
    pub obligation: Obligation,
    /// What was found, what was needed, and what to try.
    pub why: String,
}

/// An obligation with a counterexample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{clash}")]
pub struct NotProved {
    /// What had to be proved.
    pub obligation: Obligation,
    /// Why it does not hold.
    pub clash: Clash,
}

/// A counterexample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// Two instances would run in the wrong order.
    #[error("{0}")]
    Reordered(WrongOrder),
    /// A value would be taken before it is written.
    #[error("{0}")]
    Stale(StaleValue),
    /// The placement on work-groups and work-items breaks a dependence.
    #[error("{0}")]
    Placement(placement::Refusal),
    /// A reader would not find the value it needs.
    #[error("{0}")]
    Lost(LostValue),
    /// Values of the parameters at which the condition does not hold.
    #[error("{0}")]
    Parameters(AtParameters),
}

/// Two instances that would run in the wrong order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("would run {} before {}, {relation}{}; {help}", .witness.sink, .witness.source, .witness.params_text())]
pub struct WrongOrder {
    /// The two instances, in today's order.
    pub witness: Witness,
    /// What the later one does to the earlier one, as a relative clause.
    pub relation: String,
    /// What to try.
    pub help: String,
}

/// A value that would not reach its reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}{}; {help}", .witness.params_text())]
pub struct LostValue {
    /// The write and the read.
    pub witness: Witness,
    /// What was found, with both instances.
    pub found: String,
    /// What to try.
    pub help: String,
}

/// A write between the place where a value would be taken and the instance that uses it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} uses `{}`, which {} writes{} after {place}{}; {help}",
    .witness.sink, .witness.element, .witness.source, .witness.through_text(), .witness.params_text())]
pub struct StaleValue {
    /// The write and the use.
    pub witness: Witness,
    /// Where the value would be taken, for example `the copy`.
    pub place: String,
    /// What to try.
    pub help: String,
}

/// Parameters at which a condition does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}{}, {reason}", params_text(.params))]
pub struct AtParameters {
    /// Values of the parameters and of the loops outside.
    pub params: Vec<(String, i64)>,
    /// What is found there, as a clause.
    pub found: String,
    /// Why that does not do, and what to try.
    pub reason: String,
}

impl TransformError {
    /// Whether the step does not fit this kernel, or nobody could decide it: what a strategy that
    /// only tries a step may pass over. A name that is not there, a bug and a failure of isl are
    /// none of these.
    pub fn is_misfit(&self) -> bool {
        match self.cause {
            Refusal::Unfit(_) | Refusal::Undecided(_) | Refusal::NotProved(_) => true,
            Refusal::Unknown { .. }
            | Refusal::EmptySelection { .. }
            | Refusal::Taken { .. }
            | Refusal::Argument(_)
            | Refusal::Arguments(_)
            | Refusal::Malformed(_)
            | Refusal::Solver(_)
            | Refusal::Internal(_) => false,
        }
    }
}

impl Refusal {
    /// The two instances that clash, if the proof failed by two instances.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Self::NotProved(failed) => failed.clash.witness(),
            Self::Unknown { .. }
            | Self::EmptySelection { .. }
            | Self::Taken { .. }
            | Self::Argument(_)
            | Self::Arguments(_)
            | Self::Unfit(_)
            | Self::Undecided(_)
            | Self::Malformed(_)
            | Self::Solver(_)
            | Self::Internal(_) => None,
        }
    }

    /// The obligation that is not met, if there is one.
    pub fn obligation(&self) -> Option<Obligation> {
        match self {
            Self::NotProved(failed) => Some(failed.obligation),
            Self::Unfit(unmet) | Self::Undecided(unmet) => Some(unmet.obligation),
            Self::Unknown { .. }
            | Self::EmptySelection { .. }
            | Self::Taken { .. }
            | Self::Argument(_)
            | Self::Arguments(_)
            | Self::Malformed(_)
            | Self::Solver(_)
            | Self::Internal(_) => None,
        }
    }

    /// `` [interchange_inames.nested] `` or nothing.
    fn id_text(&self) -> String {
        self.obligation().map_or_else(String::new, |o| format!(" [{}]", o.id()))
    }

    /// A state that cannot be, with the kernel to report.
    pub fn internal(found: impl std::fmt::Display, kernel: &Kernel) -> Self {
        Self::Internal(format!("{found}\n{kernel}"))
    }

    /// An argument that makes no sense: its name in recipes, what it is as a clause, and what it
    /// should be.
    pub fn argument(argument: &'static str, found: impl Into<String>, needed: impl Into<String>) -> Self {
        Self::Argument(BadArgument { argument, found: found.into(), needed: needed.into() })
    }
}

impl Clash {
    /// The two instances, if it is about two.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Self::Reordered(order) => Some(&order.witness),
            Self::Stale(stale) => Some(&stale.witness),
            Self::Placement(refusal) => Some(&refusal.witness),
            Self::Lost(lost) => Some(&lost.witness),
            Self::Parameters(_) => None,
        }
    }
}

macro_rules! clashes {
    ($($kind:ident($type:ty))*) => { $(
        impl From<$type> for Clash {
            fn from(found: $type) -> Self {
                Self::$kind(found)
            }
        }
    )* };
}

clashes! {
    Reordered(WrongOrder)
    Stale(StaleValue)
    Placement(placement::Refusal)
    Lost(LostValue)
    Parameters(AtParameters)
}

/// What every result must keep: a value of a temporary stays in its storage until it is read last.
pub const STORAGE: Obligation =
    Obligation::new("storage", "no storage is written while a value of another variable in it is still read");

/// What every result must keep: dependences across work-groups and work-items.
pub const PLACEMENT: Obligation = Obligation::new(
    "placement",
    "every dependence across work-groups and work-items commutes, or a barrier can order it",
);

/// What every question to the solver keeps within.
pub const BUDGET: Obligation =
    Obligation::new("budget", "the solver decides every question within the operations it is given");

impl From<IslError> for Refusal {
    fn from(error: IslError) -> Self {
        match error {
            IslError::Quota { operation, limit } => BUDGET.undecided(format!(
                "{operation}: not decided within {limit} operations of the solver; simplify the bounds, or try \
                 another order of steps"
            )),
            other @ (IslError::UnknownName { .. }
            | IslError::DuplicateName { .. }
            | IslError::InvalidName { .. }
            | IslError::SpaceMismatch { .. }
            | IslError::Denominator { .. }
            | IslError::Unbounded { .. }
            | IslError::Parametric { .. }
            | IslError::TooManyPoints { .. }
            | IslError::Overflow { .. }
            | IslError::Solver { .. }) => Self::Solver(other),
        }
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unfit(why) => STORAGE.unfit(why),
            StorageError::Alive { witness, found } => {
                STORAGE.not_proved(LostValue { witness: *witness, found, help: StorageError::HELP.into() })
            }
            StorageError::Isl(error) => error.into(),
        }
    }
}

impl From<PlacementError> for Refusal {
    fn from(error: PlacementError) -> Self {
        match error {
            PlacementError::Refused(refusal) => PLACEMENT.not_proved(*refusal),
            PlacementError::Storage(error) => (*error).into(),
            error @ (PlacementError::NotByLane { .. }
            | PlacementError::Awaited { .. }
            | PlacementError::Calls(_)) => PLACEMENT.unfit(error.to_string()),
            PlacementError::Isl(error) => error.into(),
        }
    }
}

/// What a check does with an obligation.
impl Obligation {
    /// Refuses unless the condition holds; `why` says what was found and what to try.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn require(self, holds: bool, why: impl FnOnce() -> String) -> Result<(), Refusal> {
        if !holds && !self.is_waived() {
            return Err(self.unfit(why()));
        }
        self.holds(Means::Form, String::new);
        Ok(())
    }

    /// Refuses if something is there that must not be; `why` says what it is and what to try.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn forbid<T>(self, found: Option<T>, why: impl FnOnce(T) -> String) -> Result<(), Refusal> {
        match found {
            Some(found) if !self.is_waived() => return Err(self.unfit(why(found))),
            Some(_) | None => self.holds(Means::Form, String::new),
        }
        Ok(())
    }

    /// What the check cannot go on without, and refuses if it is not there.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn find<T>(self, found: Option<T>, why: impl FnOnce() -> String) -> Result<T, Refusal> {
        let found = found.ok_or_else(|| self.unfit(why()))?;
        self.holds(Means::Form, String::new);
        Ok(found)
    }

    /// What [`find`](Self::find) is given, of which nobody knows whether it is there.
    ///
    /// # Errors
    /// [`Refusal::Undecided`].
    pub fn known<T>(self, found: Option<T>, why: impl FnOnce() -> String) -> Result<T, Refusal> {
        let found = found.ok_or_else(|| self.undecided(why()))?;
        self.holds(Means::Form, String::new);
        Ok(found)
    }

    /// What another check found, or its error as a refusal.
    ///
    /// # Errors
    /// [`Refusal::Unfit`].
    pub fn met<T, E>(self, found: Result<T, E>, why: impl FnOnce(E) -> String) -> Result<T, Refusal> {
        let found = found.map_err(|error| self.unfit(why(error)))?;
        self.holds(Means::Form, String::new);
        Ok(found)
    }

    /// Refuses unless it is known whether the condition holds; `why` says what is not known and
    /// what to try.
    ///
    /// # Errors
    /// [`Refusal::Undecided`].
    pub fn decide(self, known: bool, why: impl FnOnce() -> String) -> Result<(), Refusal> {
        if !known && !self.is_waived() {
            return Err(self.undecided(why()));
        }
        self.holds(Means::Form, String::new);
        Ok(())
    }

    /// Refuses if there is a counterexample.
    ///
    /// # Errors
    /// [`Refusal::NotProved`].
    pub fn refute(self, counterexample: Option<impl Into<Clash>>) -> Result<(), Refusal> {
        match counterexample {
            Some(clash) if !self.is_waived() => return Err(self.not_proved(clash)),
            Some(_) | None => self.holds(Means::Empty, String::new),
        }
        Ok(())
    }

    /// The kernel has not the form that the step needs. Where a check does not refuse by it,
    /// [`holds`](Self::holds) says so.
    pub fn unfit(self, why: impl Into<String>) -> Refusal {
        Refusal::Unfit(Unmet { obligation: self.as_told(), why: why.into() })
    }

    /// The condition may hold, but nothing proves it; otherwise as [`unfit`](Self::unfit).
    pub fn undecided(self, why: impl Into<String>) -> Refusal {
        Refusal::Undecided(Unmet { obligation: self.as_told(), why: why.into() })
    }

    /// The condition does not hold: here is why; otherwise as [`unfit`](Self::unfit).
    pub fn not_proved(self, clash: impl Into<Clash>) -> Refusal {
        Refusal::NotProved(Box::new(NotProved { obligation: self.as_told(), clash: clash.into() }))
    }
}
