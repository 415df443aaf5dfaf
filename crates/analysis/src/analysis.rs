//! What is known of one kernel.

use crate::answers::Answers;
use crate::deps::{
    AccessSite, Dependence, DependenceGraph, Kinds, Labels, access_sites, dependence_graph,
    dependences_through,
};
use crate::entries::Entries;
use crate::inside::{self, AccessReach, Outside};
use crate::placement::{self, Placement, PlacementError, StorageError};
use crate::polyhedral::{Polyhedral, is_symbol};
use crate::stats::{self, Statistics, StatsError};
use purlin_interp::{InterpError, LaunchReport, Memory};
use purlin_ir::ids::{Id, InameId, InsnId, VarId};
use purlin_ir::kernel::{AxisTag, Kernel};
use purlin_isl::IslError;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// What is known of one kernel: everything that checks ask about it goes through this.
///
/// Facts are computed when they are asked for, once. They are those of the kernel's *normal form*,
/// in which substitution rules are expanded; loops, instructions and variables have the ids that
/// they have in the kernel.
///
/// ```
/// use purlin_analysis::Analysis;
///
/// let kernel = purlin_ir::text::parse(
///     "kernel total\nparam n: i32\narg x: f64[n] in\narg y: f64 inout\n\n\
///      for i in 0..n\n  s: y += x[i]\n",
/// )?;
/// let analysis = Analysis::of(&kernel);
/// let of = |d: &&purlin_analysis::deps::Dependence| (d.kind.to_string(), d.var);
/// let through: Vec<_> = analysis.dependences()?.iter().map(of).collect();
/// assert_eq!(through, [("update".to_owned(), kernel.var("y").unwrap())]);
/// assert_eq!(analysis.place()?.barriers, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Analysis<'k> {
    kernel: &'k Kernel,
    answers: Arc<Answers>,
    polyhedral: OnceCell<Polyhedral<'k>>,
    labels: OnceCell<Rc<Labels>>,
    /// By variable.
    dependences: OnceCell<Vec<Through>>,
    facts: Arc<Facts>,
}

/// The dependences through a variable.
#[derive(Debug, Default)]
struct Through {
    all: OnceCell<Vec<Dependence>>,
    /// The flows alone, where those were asked for first.
    flows: OnceCell<Vec<Dependence>>,
}

/// The facts of a kernel that outlive an analysis of it: plain data, which may go to other threads.
#[derive(Debug, Default)]
struct Facts {
    sites: OnceLock<Vec<Vec<AccessSite>>>,
    placement: OnceLock<Placement>,
    storage: OnceLock<()>,
}

/// A kernel and what has been found out of it: every analysis of it goes on where those before it
/// stopped. Nothing lets the kernel change, so that the facts stay its own.
#[derive(Clone, Debug)]
pub struct Known {
    kernel: Kernel,
    answers: Arc<Answers>,
    facts: Arc<Facts>,
}

impl Known {
    /// A kernel of which nothing is known.
    pub fn of(kernel: Kernel) -> Self {
        Self::with_answers(kernel, Answers::shared())
    }

    /// A kernel of which nothing is known but what isl has answered before.
    pub fn with_answers(kernel: Kernel, answers: Arc<Answers>) -> Self {
        Self { kernel, answers, facts: Arc::default() }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel alone.
    pub fn into_kernel(self) -> Kernel {
        self.kernel
    }

    /// The analysis of the kernel.
    pub fn analysis(&self) -> Analysis<'_> {
        let facts = Arc::clone(&self.facts);
        Analysis { facts, ..Analysis::with_answers(&self.kernel, Arc::clone(&self.answers)) }
    }
}

impl<'k> Analysis<'k> {
    /// The analysis of `kernel`. Nothing is computed before it is asked for.
    pub fn of(kernel: &'k Kernel) -> Self {
        Self::with_answers(kernel, Answers::shared())
    }

    /// The analysis of a kernel with what isl has answered before.
    pub fn with_answers(kernel: &'k Kernel, answers: Arc<Answers>) -> Self {
        Self {
            kernel,
            answers,
            polyhedral: OnceCell::new(),
            labels: OnceCell::new(),
            dependences: OnceCell::new(),
            facts: Arc::default(),
        }
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

    /// The dependences, in order of variables and text.
    ///
    /// Cheap: no relation is computed. Some may turn out empty; [`Analysis::dependence_graph`]
    /// leaves those out.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences(&self) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|_, _| Some(Kinds::All))
    }

    /// The dependences through some variables, in order of variables and text: see
    /// [`Analysis::dependences`].
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences_of(&self, wanted: &dyn Fn(VarId) -> bool) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|var, _| wanted(var).then_some(Kinds::All))
    }

    /// The dependences through every variable by which some pair of instructions may depend on each
    /// other that `concerns`, in order of variables and text: see [`Analysis::dependences`].
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependences_between(
        &self,
        concerns: &dyn Fn(InsnId, InsnId) -> bool,
    ) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|_, sites| {
            let mut writes = sites.iter().filter(|s| s.writes());
            writes.any(|w| sites.iter().any(|s| concerns(w.insn, s.insn))).then_some(Kinds::All)
        })
    }

    /// The dependences of these kinds through each variable, in order of variables and text.
    pub(crate) fn dependences_of_kinds(
        &self,
        kinds: &dyn Fn(VarId) -> Kinds,
    ) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|var, _| Some(kinds(var)))
    }

    fn dependences_where(
        &self,
        wanted: &dyn Fn(VarId, &[AccessSite]) -> Option<Kinds>,
    ) -> Result<Vec<&Dependence>, IslError> {
        let none = || self.kernel.vars.ids().map(|_| Through::default()).collect();
        let cells = self.dependences.get_or_init(none);
        let mut found = Vec::new();
        for ((var, sites), cell) in self.kernel.vars.ids().zip(self.all_sites()).zip(cells) {
            if is_symbol(self.kernel, var) || !sites.iter().any(AccessSite::writes) {
                continue;
            }
            let Some(kinds) = wanted(var, sites) else { continue };
            let asked = match kinds {
                Kinds::All => &cell.all,
                Kinds::Flows => &cell.flows,
            };
            let through = match cell.all.get().or_else(|| asked.get()) {
                Some(known) => known,
                None => {
                    let through = dependences_through(self, var, kinds)?;
                    asked.get_or_init(|| through)
                }
            };
            found.extend(through.iter().filter(|d| kinds.hold(d.kind)));
        }
        Ok(found)
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

    /// The names that the dependences share.
    pub(crate) fn labels(&self) -> &Rc<Labels> {
        self.labels.get_or_init(|| Rc::new(Labels::of(self.polyhedral())))
    }

    /// The dependences as a graph: nodes in order of ids, edges in order of variables and text.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn dependence_graph(&self) -> Result<DependenceGraph, IslError> {
        dependence_graph(self)
    }

    /// Checks every dependence against the axis tags, and the temporaries that share a buffer, and
    /// collects the barriers needed.
    ///
    /// # Errors
    /// The first dependence that the placement breaks, with a witness.
    pub fn place(&self) -> Result<&Placement, PlacementError> {
        if let Some(known) = self.facts.placement.get() {
            return Ok(known);
        }
        let placement = placement::place(self)?;
        Ok(self.facts.placement.get_or_init(|| placement))
    }

    /// Checks that the tags of the loops keep every dependence; without parallel loops they do.
    ///
    /// # Errors
    /// Those of [`Analysis::place`].
    pub fn check_placement(&self) -> Result<(), PlacementError> {
        let sequential = |tag| match tag {
            AxisTag::Sequential | AxisTag::Unrolled => true,
            AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) => false,
        };
        if self.kernel.inames.values().all(|i| sequential(i.tag)) {
            return Ok(());
        }
        self.place().map(|_| ())
    }

    /// Checks every group of temporaries that share a buffer: while a value of one is alive, no
    /// other is written.
    ///
    /// # Errors
    /// Types or address spaces that differ, memory that cannot be shared, or two instances between
    /// which another sharer is written.
    pub fn check_storage(&self) -> Result<(), StorageError> {
        if self.facts.storage.get().is_none() {
            placement::check_storage(self)?;
            self.facts.storage.get_or_init(|| ());
        }
        Ok(())
    }

    /// The accesses to arrays, in textual order, and whether they stay inside; those of
    /// substitution rules stand where these are used.
    pub fn accesses(&self) -> Vec<AccessReach> {
        inside::accesses_of(self, &|_| true)
    }

    /// The accesses of some instructions: see [`Analysis::accesses`].
    pub fn accesses_of(&self, wanted: &dyn Fn(InsnId) -> bool) -> Vec<AccessReach> {
        inside::accesses_of(self, wanted)
    }

    /// The first access in textual order that leaves its array for some parameters that the
    /// assumptions allow.
    pub fn first_outside(&self) -> Option<Outside> {
        inside::first_outside(self)
    }

    /// Checks what the kernel is about to be launched with: its assumptions, and every access that
    /// could leave its array ([`purlin_interp::check_launch`], with what is proved here).
    ///
    /// # Errors
    /// Those of [`purlin_interp::check_launch`].
    pub fn check_launch(&self, memory: &Memory) -> Result<LaunchReport, InterpError> {
        inside::check_launch(self, memory)
    }

    /// Operations, accesses and footprints at these parameters.
    ///
    /// # Errors
    /// Those of [`stats::statistics`].
    pub fn statistics(&self, params: &BTreeMap<String, i64>) -> Result<Statistics, StatsError> {
        stats::statistics(self.kernel, params)
    }
}
