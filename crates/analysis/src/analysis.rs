//! What is known of one kernel.

use crate::answers::Answers;
use crate::deps::{
    AccessSite, Dependence, DependenceGraph, Kinds, Labels, access_sites, dependence_graph,
    dependences_through,
};
use crate::entries::Entries;
use crate::inside::{self, AccessReach, Outside};
use crate::kept::Kept;
use crate::placement::{self, Barrier, Carried, Placement, PlacementError, StorageError};
use crate::polyhedral::{Polyhedral, is_symbol};
use crate::stats::{self, Statistics, StatsError};
use purlin_interp::{InterpError, LaunchReport, Memory};
use purlin_ir::ids::{Id, InameId, InsnId, VarId};
use purlin_ir::kernel::{AxisTag, Kernel};
use purlin_ir::verify::KernelError;
use purlin_isl::IslError;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
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
    labels: OnceCell<Arc<Labels>>,
    facts: Arc<Facts>,
}

/// The dependences through a variable.
#[derive(Debug, Default)]
struct Through {
    all: OnceLock<Vec<Dependence>>,
    /// The flows alone, where those were asked for first.
    flows: OnceLock<Vec<Dependence>>,
}

/// The facts of a kernel that outlive an analysis of it: plain data, which may go to other threads.
#[derive(Debug, Default)]
struct Facts {
    sites: Arc<OnceLock<Vec<Vec<AccessSite>>>>,
    /// By variable.
    dependences: Arc<OnceLock<Vec<Through>>>,
    placement: Arc<OnceLock<Placement>>,
    /// What of the placement is that of the kernel before.
    carried: Carried,
    /// Whether the kernel is known to be well formed.
    verified: OnceLock<()>,
    /// The instructions that a well-formed kernel before has.
    kept_insns: Vec<InsnId>,
    storage: OnceLock<()>,
}

impl Facts {
    /// What the facts of a kernel say of the kernel that a step made of it.
    ///
    /// Accesses and dependences are found in instructions, domains and the tree, and variables say
    /// whether they are symbols: address space, layout and storage do not matter, and neither do
    /// tags. The placement is that of a kernel whose accesses, tags and variables are the same;
    /// storage is checked separately ([`Analysis::check_storage`]).
    fn after(&self, before: &Kernel, after: &Kernel) -> Self {
        let mut facts = Self::default();
        let same_program = before.body == after.body
            && before.insns == after.insns
            && before.rules == after.rules
            && before.assumptions == after.assumptions
            && before.vars.len() == after.vars.len()
            && before.inames.len() == after.inames.len();
        if !same_program {
            return facts;
        }
        let vars = || before.vars.changed(&after.vars);
        let inames = || before.inames.changed(&after.inames);
        let same_values = inames().all(|(a, b)| a.name == b.name && a.domain == b.domain)
            && vars()
                .all(|(a, b)| a.name == b.name && a.ty == b.ty && a.kind == b.kind && a.shape == b.shape);
        if !same_values {
            return facts;
        }
        facts.sites = Arc::clone(&self.sites);
        facts.dependences = Arc::clone(&self.dependences);
        let same_places = inames().all(|(a, b)| a.tag == b.tag)
            && vars().all(|(a, b)| a.space == b.space && a.layout == b.layout);
        if same_places {
            facts.placement = Arc::clone(&self.placement);
        }
        facts
    }
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

    /// The kernel that an edit made of that of `analysis`, in canonical form: what isl has answered,
    /// and what is known of the parts that the edit did not touch, is not found out again.
    pub fn after(analysis: &Analysis, draft: Kernel) -> Self {
        let (before, was) = (analysis.kernel, &analysis.facts);
        let kept = Kept::of(before, &draft);
        let verified = was.verified.get().map_or_else(Vec::new, |()| kept.verified(before, &draft));
        let placement = was.placement.get();
        let open = placement.and_then(|_| placement::open_vars(analysis, &draft, &kept));
        let (kernel, ids) = draft.renumbered();
        let mut facts = was.after(before, &kernel);
        if !kept.has_reductions(&kernel) {
            facts.kept_insns = verified.into_iter().filter_map(|s| ids.insn(s)).collect();
        }
        facts.carried = placement
            .zip(open)
            .map_or_else(Vec::new, |(placement, open)| placement::carried(placement, &open, &kernel, &ids));
        Self { kernel, answers: Arc::clone(&analysis.answers), facts: Arc::new(facts) }
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

    /// The dependences of these kinds through each variable of which some are asked for, in order of
    /// variables and text.
    pub(crate) fn dependences_of_kinds(
        &self,
        kinds: &dyn Fn(VarId) -> Option<Kinds>,
    ) -> Result<Vec<&Dependence>, IslError> {
        self.dependences_where(&|var, _| kinds(var))
    }

    fn dependences_where(
        &self,
        wanted: &dyn Fn(VarId, &[AccessSite]) -> Option<Kinds>,
    ) -> Result<Vec<&Dependence>, IslError> {
        let none = || self.kernel.vars.ids().map(|_| Through::default()).collect();
        let cells = self.facts.dependences.get_or_init(none);
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

    /// The barriers that the dependences through a variable need, if they are those of the kernel
    /// that a step made this one of.
    pub(crate) fn carried(&self, var: VarId) -> Option<&[Barrier]> {
        self.facts.carried.get(var.index())?.as_deref()
    }

    /// The names that the dependences share.
    pub(crate) fn labels(&self) -> &Arc<Labels> {
        self.labels.get_or_init(|| Arc::new(Labels::of(self.polyhedral())))
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
        self.check_storage()?;
        if let Some(known) = self.facts.placement.get() {
            return Ok(known);
        }
        let placement = placement::place(self)?;
        Ok(self.facts.placement.get_or_init(|| placement))
    }

    /// What barriers must separate besides those of the [placement](Analysis::place), because
    /// temporaries share a buffer in local memory.
    pub fn reuse(&self) -> Vec<Barrier> {
        placement::reuse(self)
    }

    /// Checks that the tags of the loops keep every dependence; without parallel loops they do.
    ///
    /// # Errors
    /// As [`Analysis::place`].
    pub fn check_placement(&self) -> Result<(), PlacementError> {
        let sequential = |tag| match tag {
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled => true,
            AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => false,
        };
        if self.kernel.inames.values().all(|i| sequential(i.tag)) {
            return Ok(());
        }
        self.place().map(|_| ())
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
        self.open_arrays().err().map(|outside| *outside)
    }

    /// The arrays with accesses that only the values given at launch decide: [`Analysis::check_launch`]
    /// looks at them.
    ///
    /// # Errors
    /// What [`Analysis::first_outside`] gives.
    pub fn open_arrays(&self) -> Result<BTreeSet<VarId>, Box<Outside>> {
        inside::open_arrays(self)
    }

    /// Which accesses stay inside their arrays for all parameters that the assumptions allow: what
    /// [`purlin_interp::check_launch`] needs for many launches of one kernel.
    pub fn access_proofs(&self) -> Vec<purlin_interp::AccessProof> {
        inside::access_proofs(self)
    }

    /// Checks what the kernel is about to be launched with: its assumptions, and every access that
    /// could leave its array ([`purlin_interp::check_launch`], with what is proved here).
    ///
    /// # Errors
    /// As [`purlin_interp::check_launch`].
    pub fn check_launch(&self, memory: &Memory) -> Result<LaunchReport, InterpError> {
        inside::check_launch(self, memory)
    }

    /// Operations, accesses and footprints at these parameters.
    ///
    /// # Errors
    /// As [`stats::statistics`].
    pub fn statistics(&self, params: &BTreeMap<String, i64>) -> Result<Statistics, StatsError> {
        stats::statistics(self.kernel, params)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::placement::Scope;
    use purlin_ir::expr::Access;
    use purlin_ir::kernel::{Insn, Node};
    use purlin_ir::{AddressSpace, Expr};

    const TILES: &str = "kernel k\n\narg x: f64[8] in\narg y: f64[8] out\ntemp a: f64[8] local\n\
        temp b: f64[8] local\n\nfor i in 0..8 {l.0}\n  load: a[i] = x[i]\n\
        for j in 0..8 {l.0}\n  copy: b[j] = a[7 - j]\nfor k in 0..8 {l.0}\n  store: y[k] = b[7 - k]\n";

    /// The kernel, placed, and the kernel after an edit.
    fn edited(edit: impl FnOnce(&mut Kernel)) -> (Known, Known) {
        let before = Known::of(purlin_ir::text::parse(TILES).unwrap());
        before.analysis().verify().unwrap();
        before.analysis().place().unwrap();
        let mut kernel = before.kernel().clone();
        edit(&mut kernel);
        let after = Known::after(&before.analysis(), kernel);
        (before, after)
    }

    /// Whether sites and placement of the second are those of the first.
    fn kept((before, after): &(Known, Known)) -> [bool; 2] {
        let (a, b) = (&before.facts, &after.facts);
        [Arc::ptr_eq(&a.sites, &b.sites), Arc::ptr_eq(&a.placement, &b.placement)]
    }

    #[test]
    fn a_step_keeps_what_it_does_not_touch() {
        let var = |kernel: &Kernel, name| kernel.var(name).unwrap();
        assert_eq!(kept(&edited(|_| {})), [true, true]);
        let shared = edited(|k| {
            let a = var(k, "a");
            k.vars[a].storage = Some("buffer".into());
        });
        assert_eq!(kept(&shared), [true, true]);
        let moved = edited(|k| {
            let a = var(k, "a");
            k.vars[a].space = AddressSpace::Global;
        });
        assert_eq!(kept(&moved), [true, false]);
        let tagged = edited(|k| {
            let i = k.iname("i").unwrap();
            k.inames[i].tag = AxisTag::Local(1);
        });
        assert_eq!(kept(&tagged), [true, false]);
        let shorter = edited(|k| {
            let (i, j) = (k.iname("i").unwrap(), k.iname("j").unwrap());
            k.inames[i].domain =
                purlin_ir::Domain::range(i, &purlin_ir::Affine::constant(1), &purlin_ir::Affine::constant(8));
            assert_ne!(k.inames[i].domain, k.inames[j].domain);
        });
        assert_eq!(kept(&shorter), [false, false]);
        let other = edited(|k| {
            let load = k.insn("load").unwrap();
            k.insns[load].rhs = Expr::Int(0);
        });
        assert_eq!(kept(&other), [false, false]);
    }

    /// Barriers of variables that a step did not touch are those of the kernel before, under the new
    /// numbers of the instructions.
    #[test]
    fn barriers_are_carried_over_a_step() {
        let (before, after) = edited(|k| {
            let (load, store) = (k.insn("load").unwrap(), k.insn("store").unwrap());
            k.insns[store].rhs = Expr::Int(0);
            // before all others
            let first = Insn { name: "first".into(), ..k.insns[store].clone() };
            let first = k
                .insns
                .push(Insn { lhs: Access { index: vec![Expr::Int(7)], ..first.lhs.clone() }, ..first });
            k.body.insert(0, Node::Insn(first));
            assert_eq!(load.index(), 0);
        });
        let insn = |name| after.kernel().insn(name).unwrap();
        let var = |name| after.kernel().var(name).unwrap();
        let barrier = |source, sink, of| {
            let (source, sink, var) = (insn(source), insn(sink), var(of));
            Barrier { source, sink, var, carrier: None, scope: Scope::SubGroup }
        };
        let a = barrier("load", "copy", "a");
        assert_eq!((a.source.index(), a.sink.index()), (1, 2));
        let analysis = after.analysis();
        let carried = ["x", "a", "b", "y"].map(|v| analysis.carried(var(v)).map(<[_]>::to_vec));
        assert_eq!(carried, [Some(vec![]), Some(vec![a.clone()]), None, None]);
        assert_eq!(analysis.place().unwrap(), Analysis::of(after.kernel()).place().unwrap());
        assert_eq!(analysis.place().unwrap().barriers, [barrier("first", "store", "y"), a]);
        assert_eq!(before.analysis().place().unwrap().barriers.len(), 2);
    }

    /// What a step touches, and all where variables change their types, is verified again.
    #[test]
    fn what_a_step_leaves_alone_is_not_verified_again() {
        let looked_into = |(_, after): &(Known, Known)| {
            assert_eq!(after.analysis().verify(), after.kernel().verify());
            let known = |s: &InsnId| after.facts.kept_insns.contains(s);
            let names = after.kernel().insns.iter().filter(|(s, _)| !known(s)).map(|(_, i)| i.name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        let one = edited(|k| {
            let store = k.insn("store").unwrap();
            k.insns[store].rhs = Expr::Int(0);
        });
        assert_eq!(looked_into(&one), "store");
        let moved = edited(|k| {
            let copy = k.insn("copy").unwrap();
            k.body[1] = Node::Insn(copy);
        });
        assert_eq!(looked_into(&moved), "copy");
        let error = moved.1.analysis().verify().unwrap_err().to_string();
        assert_eq!(
            error,
            "`copy` mentions `k`, which is not known there; put the instruction inside that loop"
        );
        let integer = edited(|k| {
            let a = k.var("a").unwrap();
            k.vars[a].ty = purlin_ir::ScalarType::I32;
        });
        assert_eq!(looked_into(&integer), "load copy store");
        let error = integer.1.analysis().verify().unwrap_err().to_string();
        assert_eq!(error, "`load` stores f64 in `a`, which holds i32; cast the value");
    }

    /// A known placement does not stand for the storage, which is checked separately.
    #[test]
    fn storage_is_checked_where_the_placement_is_known() {
        let (_, after) = edited(|k| {
            for name in ["a", "b"] {
                let v = k.var(name).unwrap();
                k.vars[v].storage = Some("buffer".into());
            }
        });
        let analysis = after.analysis();
        assert!(analysis.facts.placement.get().is_some());
        let error = analysis.place().unwrap_err();
        let found = "`a[0]` is alive from `load[0]` to `copy[7]`, and `copy` writes `b` in between; \
                     give them storage of their own, or keep their uses apart";
        assert_eq!(error.to_string(), found);
    }
}
