//! Why a placement is refused, in words.

use crate::deps::DependenceKind;
use crate::placement::storage::StorageError;
use crate::witness::Witness;
use kingpost_isl as isl;
use std::fmt;

/// Why a placement breaks a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// A private value is needed by another work-item.
    PrivateFlow,
    /// A local value is needed by another work-group.
    LocalFlow,
    /// A value that the work-items of a sub-group hold is needed by another sub-group.
    SubGroupFlow,
    /// A global value is needed by, or clashes with, another work-group.
    AcrossGroups,
    /// A value that is not in global memory is needed by another launch.
    AcrossLaunches,
    /// A commuting update that is not atomic.
    NotAtomic,
    /// A commuting update of a record, which no target makes atomic.
    OfRecords,
    /// No barrier can order the two.
    Unordered,
    /// Lanes of a vector run together.
    Lanes,
}

/// A dependence that the placement breaks, with two instances that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// Kind of the dependence.
    pub kind: DependenceKind,
    /// Name of the variable.
    pub var: String,
    /// Two instances that clash.
    pub witness: Witness,
    /// The map that no such two instances would be left with if it was assumed injective.
    pub assumable: Option<String>,
    /// Whether an index of the variable multiplies what is no number, so that nothing is known of
    /// it.
    pub multiplied: bool,
}

/// A refusal, or a failure of isl.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The placement breaks a dependence.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Temporaries share a buffer and must not.
    #[error("{0}")]
    Storage(Box<StorageError>),
    /// A write to another element of an array than the one that the work-item holds.
    #[error(
        "`{insn}` writes `{var}`, of which every work-item of a sub-group holds one element, without an index that is \
         that of the work-item along l.0, the same in every write; index it so, or make it local"
    )]
    NotByLane {
        /// The array.
        var: String,
        /// The first instruction that writes it.
        insn: String,
    },
    /// What a group would wait for is not written once, before it is read.
    #[error("groups would wait for values of `{var}` of earlier ones, and {why} [ordered groups]")]
    Awaited {
        /// The temporary.
        var: String,
        /// Why not.
        why: String,
    },
    /// The kernel has statements that are no call of the callee they name.
    #[error("{0}")]
    Calls(kingpost_ir::KernelError),
    /// isl failed.
    #[error("{0}")]
    Isl(#[from] isl::IslError),
}

impl From<StorageError> for PlacementError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Isl(error) => Self::Isl(error),
            other @ (StorageError::Unfit(_) | StorageError::Alive { .. }) => Self::Storage(Box::new(other)),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let var = &self.var;
        self.fmt_reason(f)?;
        if self.multiplied {
            write!(
                f,
                "; nothing is known of products in an index: declare `{var}` with an axis for each factor"
            )?;
        }
        Ok(())
    }
}

impl Refusal {
    fn fmt_reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = &self.witness;
        let (source, sink, element) = (&w.source, &w.sink, &w.element);
        let (through, params, var) = (w.through_text(), w.params_text(), &self.var);
        let assume =
            self.assumable.as_ref().map_or_else(String::new, |map| format!(", or assume injective({map})"));
        match self.reason {
            RefusalReason::NotAtomic => {
                let atomic = if source.insn == sink.insn { "the update" } else { "both updates" };
                let other = match &self.assumable {
                    Some(map) => format!("assume injective({map})"),
                    None => "keep that loop sequential".into(),
                };
                write!(
                    f,
                    "`{element}` is updated by {source} and {sink}{through}{params}; make {atomic} atomic, or {other}"
                )
            }
            RefusalReason::OfRecords => write!(
                f,
                "`{element}` is updated by {source} and {sink}{through}{params}, and no target updates records \
                 atomically; use `reduce_in_tree`, or keep that loop sequential"
            ),
            RefusalReason::PrivateFlow => write!(
                f,
                "{sink} reads `{element}`, which {source} writes in another work-item{params}; \
                 `{var}` is private: make it local or global, or expand it over the loop"
            ),
            RefusalReason::LocalFlow => write!(
                f,
                "{sink} reads `{element}`, which {source} writes in another work-group{params}; \
                 `{var}` is local: make it global, and split the launch there (`split_launch`)"
            ),
            RefusalReason::SubGroupFlow => write!(
                f,
                "{sink} reads `{element}`, which {source} writes in another sub-group{params}; the work-items of one \
                 hold `{var}`: make it local"
            ),
            RefusalReason::AcrossLaunches => write!(
                f,
                "{sink} reads `{element}`, which {source} writes in another launch{params}; \
                 `{var}` lives as long as a launch: make it global, or fuse the launches"
            ),
            RefusalReason::AcrossGroups => {
                let (first, second) = verbs(self.kind);
                write!(
                    f,
                    "{source} {first} and {sink} {second} `{element}`{through} in different work-groups{params}, \
                     which nothing orders inside one launch; keep that loop sequential, or split the launch \
                     there (`split_launch`){assume}"
                )
            }
            RefusalReason::Unordered => {
                let (first, second) = verbs(self.kind);
                write!(
                    f,
                    "{source} {first} `{element}`{through} before {sink} {second} it{params}, and no barrier can \
                     keep that order; keep the loop sequential, or distribute the instructions first{assume}"
                )
            }
            RefusalReason::Lanes => {
                let (first, second) = verbs(self.kind);
                write!(
                    f,
                    "{source} {first} `{element}`{through} before {sink} {second} it{params}, and the lanes of a \
                     vector run together; keep the loop sequential, or distribute the instructions first{assume}"
                )
            }
        }
    }
}

fn verbs(kind: DependenceKind) -> (&'static str, &'static str) {
    match kind {
        DependenceKind::Flow => ("writes", "reads"),
        DependenceKind::Anti => ("reads", "writes"),
        DependenceKind::Output => ("writes", "writes"),
        DependenceKind::Update => ("updates", "updates"),
    }
}
