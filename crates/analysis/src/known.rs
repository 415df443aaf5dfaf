//! A kernel and what is known of it, from step to step.

use crate::analysis::{Analysis, Facts};
use crate::answers::Answers;
use crate::kept::Kept;
use crate::placement;
use kingpost_ir::kernel::Kernel;
use std::sync::Arc;

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::placement::{Barrier, Scope};
    use kingpost_ir::expr::Access;
    use kingpost_ir::ids::{Id, InsnId};
    use kingpost_ir::kernel::{AxisTag, Insn, Node};
    use kingpost_ir::{AddressSpace, Expr};

    const TILES: &str = "kernel k\n\narg x: f64[8] in\narg y: f64[8] out\ntemp a: f64[8] local\n\
        temp b: f64[8] local\n\nfor i in 0..8 {l.0}\n  load: a[i] = x[i]\n\
        for j in 0..8 {l.0}\n  copy: b[j] = a[7 - j]\nfor k in 0..8 {l.0}\n  store: y[k] = b[7 - k]\n";

    /// The kernel, placed, and the kernel after an edit.
    fn edited(edit: impl FnOnce(&mut Kernel)) -> (Known, Known) {
        let before = Known::of(kingpost_ir::text::parse(TILES).unwrap());
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
            k.inames[i].domain = kingpost_ir::Domain::range(
                i,
                &kingpost_ir::Affine::constant(1),
                &kingpost_ir::Affine::constant(8),
            );
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
            k.vars[a].ty = kingpost_ir::ScalarType::I32;
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
