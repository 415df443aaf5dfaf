//! What a step proved, and how: its checks tell it while they run, where a caller listens.

use crate::obligation::Obligation;
use kingpost_ir::{Assumption, Kernel};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// An obligation that a step has met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proved {
    /// Its id.
    pub id: &'static str,
    /// It in words.
    pub says: &'static str,
    /// What shows it.
    pub by: Vec<Evidence>,
}

/// What shows that an obligation is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// How it was found.
    pub means: Means,
    /// What was looked at; empty where the obligation says it all.
    pub of: String,
    /// How often.
    pub times: usize,
    /// The assumptions of the kernel in whose context it holds.
    pub under: Vec<String>,
}

/// How a condition was found to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// The kernel and the arguments have the form: it was read off them.
    Form,
    /// The set of counterexamples is empty, which isl decides.
    Empty,
    /// The loops around two instances are in the same order before and after: there is nothing to ask.
    Loops,
    /// Updates that commute, in any order.
    Commutes,
    /// Only memory is used again, and its iterations stay whole.
    Reuse,
    /// Declared laws of an operator.
    Law,
    /// There is nothing that it could be wrong about.
    Nothing,
    /// Something did not meet it, and the step does without.
    GivenUp,
}

/// What is told while a caller listens.
#[derive(Default)]
struct Told {
    proved: Vec<Proved>,
    /// Obligations that a part of a check did not meet. What it says of what it tries first and gives up
    /// says nothing of what it then does.
    failed: BTreeSet<&'static str>,
}

thread_local! {
    static LISTENER: RefCell<Option<Told>> = const { RefCell::new(None) };
}

/// Runs `work`, and gathers what its checks prove on this thread. Of obligations that they must meet and say
/// nothing of, no case came up: a check that passes says so.
pub(crate) fn gathered<T>(obligations: &[Obligation], work: impl FnOnce() -> T) -> (T, Vec<Proved>) {
    /// The listener around comes back even if `work` panics.
    struct Around(Option<Told>);
    impl Drop for Around {
        fn drop(&mut self) {
            LISTENER.set(self.0.take());
        }
    }
    let _around = Around(LISTENER.replace(Some(Told::default())));
    let result = work();
    let Told { mut proved, failed } = LISTENER.take().unwrap_or_default(); // default: never taken, it was set above
    proved.retain(|p| !failed.contains(p.id));
    for obligation in obligations {
        if !proved.iter().any(|p| p.id == obligation.id()) {
            let means = if failed.contains(obligation.id()) { Means::GivenUp } else { Means::Nothing };
            add(&mut proved, *obligation, Evidence::new(means, String::new()));
        }
    }
    (result, proved)
}

fn tell(to: impl FnOnce(&mut Told)) {
    LISTENER.with_borrow_mut(|listener| {
        if let Some(told) = listener {
            to(told);
        }
    });
}

impl Evidence {
    pub(crate) fn new(means: Means, of: String) -> Self {
        Self { means, of, times: 1, under: Vec::new() }
    }
}

impl Obligation {
    /// Says that the obligation was found to hold of something.
    pub fn holds(self, means: Means, of: impl FnOnce() -> String) {
        tell(|told| add(&mut told.proved, self, Evidence::new(means, of())));
    }

    /// As [`holds`](Self::holds), in the context of the assumptions of a kernel on its parameters, and of that on a
    /// map through which elements are found.
    pub fn holds_in(self, kernel: &Kernel, means: Means, of: impl FnOnce() -> String) {
        tell(|told| {
            let under = assumptions(kernel);
            add(&mut told.proved, self, Evidence { under, ..Evidence::new(means, of()) });
        });
    }

    /// Says that it was found not to hold.
    pub(crate) fn fails(self) {
        tell(|told| {
            told.failed.insert(self.id());
        });
    }
}

/// Adds evidence for an obligation.
fn add(all: &mut Vec<Proved>, obligation: Obligation, evidence: Evidence) {
    let (id, says) = (obligation.id(), obligation.says());
    let Some(proved) = all.iter_mut().find(|p| p.id == id) else {
        return all.push(Proved { id, says, by: vec![evidence] });
    };
    let same =
        |e: &&mut Evidence| (e.means, &e.of, &e.under) == (evidence.means, &evidence.of, &evidence.under);
    match proved.by.iter_mut().find(same) {
        Some(known) => known.times += 1,
        None => proved.by.push(evidence),
    }
}

/// What isl knows of parameters and maps.
fn assumptions(kernel: &Kernel) -> Vec<String> {
    let counts = |assumption: &&Assumption| match assumption {
        Assumption::Params(_)
        | Assumption::Injective(_)
        | Assumption::Ascending(_)
        | Assumption::Outside(_)
        | Assumption::Lists(_) => true,
        Assumption::Defined(..) | Assumption::Symmetric(_) => false,
    };
    kernel.assumptions.iter().filter(counts).map(|a| kernel.show_assumption(a).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Means, gathered};
    use crate::obligation::Obligation;

    const A: Obligation = Obligation::new("a", "it is so");
    const B: Obligation = Obligation::new("b", "it is not otherwise");
    const C: Obligation = Obligation::new("c", "it is never asked");

    #[test]
    fn what_fails_is_not_proved() {
        let ((), proved) = gathered(&[A, B, C], || {
            A.holds(Means::Form, String::new);
            A.holds(Means::Form, String::new);
            A.holds(Means::Empty, || "x".into());
            B.holds(Means::Form, String::new);
            B.fails();
        });
        let means: Vec<_> = proved[1..].iter().map(|p| (p.id, p.by[0].means)).collect();
        assert_eq!(means, [("b", Means::GivenUp), ("c", Means::Nothing)]);
        let by: Vec<_> = proved[0].by.iter().map(|e| (e.means, e.of.as_str(), e.times)).collect();
        assert_eq!((proved[0].id, by), ("a", vec![(Means::Form, "", 2), (Means::Empty, "x", 1)]));
        A.holds(Means::Form, String::new); // nobody listens
        assert!(gathered(&[], || ()).1.is_empty());
    }
}
