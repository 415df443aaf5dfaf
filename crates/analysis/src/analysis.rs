//! What is known of one kernel.

use crate::answers::Answers;
use crate::deps::{AccessSite, Dependence, Labels, access_sites};
use crate::entries::Entries;
use crate::placement::{Barrier, Carried, Placement};
use crate::polyhedral::Polyhedral;
use crate::stats::{self, Statistics, StatsError};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::Kernel;
use kingpost_ir::verify::KernelError;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What is known of one kernel: everything that checks ask about it goes through this.
///
/// Facts are computed when they are asked for, once. They are those of the kernel's *normal form*,
/// in which substitution rules are expanded; loops, instructions and variables have the ids that
/// they have in the kernel.
///
/// ```
/// use kingpost_analysis::Analysis;
///
/// let kernel = kingpost_ir::text::parse(
///     "kernel total\nparam n: i32\narg x: f64[n] in\narg y: f64 inout\n\n\
///      for i in 0..n\n  s: y += x[i]\n",
/// )?;
/// let analysis = Analysis::of(&kernel);
/// let of = |d: &&kingpost_analysis::deps::Dependence| (d.kind.to_string(), d.var);
/// let through: Vec<_> = analysis.dependences()?.iter().map(of).collect();
/// assert_eq!(through, [("update".to_owned(), kernel.var("y").unwrap())]);
/// assert_eq!(analysis.place()?.barriers, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Analysis<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) answers: Arc<Answers>,
    pub(crate) polyhedral: OnceCell<Polyhedral<'k>>,
    pub(crate) labels: OnceCell<Arc<Labels>>,
    pub(crate) facts: Arc<Facts>,
}

/// The dependences through a variable.
#[derive(Debug, Default)]
pub(crate) struct Through {
    pub(crate) all: OnceLock<Vec<Dependence>>,
    /// The flows alone, where those were asked for first.
    pub(crate) flows: OnceLock<Vec<Dependence>>,
}

/// The facts of a kernel that outlive an analysis of it: plain data, which may go to other threads.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) sites: Arc<OnceLock<Vec<Vec<AccessSite>>>>,
    /// By variable.
    pub(crate) dependences: Arc<OnceLock<Vec<Through>>>,
    pub(crate) placement: Arc<OnceLock<Placement>>,
    /// What of the placement is that of the kernel before.
    pub(crate) carried: Carried,
    /// Whether the kernel is known to be well formed.
    pub(crate) verified: OnceLock<()>,
    /// The instructions that a well-formed kernel before has.
    pub(crate) kept_insns: Vec<InsnId>,
    pub(crate) storage: OnceLock<()>,
}

impl<'k> Analysis<'k> {
    /// The analysis of `kernel`. Nothing is computed before it is asked for.
    pub fn of(kernel: &'k Kernel) -> Self {
        Self::with_answers(kernel, Answers::shared())
    }

    /// The analysis of a kernel with what isl has answered before.
    pub fn with_answers(kernel: &'k Kernel, answers: Arc<Answers>) -> Self {
        Self { kernel, answers, polyhedral: OnceCell::new(), labels: OnceCell::new(), facts: Arc::default() }
    }

    /// The analysis of the kernel that a step made of this one: what isl has answered is not asked
    /// again.
    pub fn next<'n>(&self, kernel: &'n Kernel) -> Analysis<'n> {
        Analysis::with_answers(kernel, Arc::clone(&self.answers))
    }

    /// The kernel.
    pub fn kernel(&self) -> &'k Kernel {
        self.kernel
    }

    /// What isl has answered.
    pub fn answers(&self) -> &Arc<Answers> {
        &self.answers
    }

    /// The normal form as integer sets: positions and loops of instructions, domains, symbols.
    pub fn polyhedral(&self) -> &Polyhedral<'k> {
        self.polyhedral.get_or_init(|| {
            Polyhedral::of(match self.kernel.rules.is_empty() {
                true => Cow::Borrowed(self.kernel),
                false => Cow::Owned(self.kernel.with_rules_expanded()),
            })
        })
    }

    /// The normal form: the kernel with its rules expanded.
    pub fn expanded(&self) -> &Kernel {
        &self.polyhedral().kernel
    }

    /// Position of an instruction in textual order.
    pub fn position(&self, insn: InsnId) -> usize {
        self.polyhedral().position(insn)
    }

    /// Loops around an instruction, outer first.
    pub fn loops(&self, insn: InsnId) -> &[InameId] {
        self.polyhedral().loops(insn)
    }

    /// The accesses of each variable in textual order; of one instruction the reads come before the
    /// write.
    pub fn all_sites(&self) -> &[Vec<AccessSite>] {
        self.facts.sites.get_or_init(|| access_sites(self.polyhedral()))
    }

    /// The accesses of a variable in textual order.
    pub fn sites(&self, var: VarId) -> &[AccessSite] {
        &self.all_sites()[var.index()]
    }

    /// Lends the analysis of the kernel in which instructions read the bounds of loops that may
    /// change: what holds of the order of instances must hold of theirs, too.
    pub fn with_entries<T>(&self, work: impl FnOnce(&Analysis, &Entries) -> T) -> T {
        let entries = Entries::of(self.kernel);
        match &entries.kernel {
            Cow::Borrowed(_) => work(self, &entries),
            Cow::Owned(kernel) => work(&self.next(kernel), &entries),
        }
    }

    /// The barriers that the dependences through a variable need, if they are those of the kernel
    /// that a step made this one of.
    pub(crate) fn carried(&self, var: VarId) -> Option<&[Barrier]> {
        self.facts.carried.get(var.index())?.as_deref()
    }

    /// The names that the dependences share.
    pub(crate) fn labels(&self) -> &Arc<Labels> {
        self.labels.get_or_init(|| Arc::new(Labels::of(self.polyhedral())))
    }

    /// Checks that the kernel is well formed. The instructions that a step took over from a
    /// well-formed kernel, in loops and with variables that say the same of them, are not looked
    /// into again.
    ///
    /// # Errors
    /// As [`Kernel::verify`].
    pub fn verify(&self) -> Result<(), KernelError> {
        if self.facts.verified.get().is_none() {
            self.kernel.verify_but(&self.facts.kept_insns)?;
            self.facts.verified.get_or_init(|| ());
        }
        Ok(())
    }

    /// Operations, accesses and footprints at these parameters.
    ///
    /// # Errors
    /// As [`stats::statistics`].
    pub fn statistics(&self, params: &BTreeMap<String, i64>) -> Result<Statistics, StatsError> {
        stats::statistics(self.kernel, params)
    }
}
