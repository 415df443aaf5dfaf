//! Rounds: some iterations of a loop that goes over a whole matrix again and again, together for each row.
//!
//! In Floyd and Warshall's algorithm, iteration `k` updates each row by row `k` and by its own element `k`.
//! Rows after `k` read row `k` as the iteration leaves it, those before as it was. With a copy of both, row
//! `i` needs nothing of the matrix but itself: it may go through several iterations while it is in the
//! first cache, once the rows of the round are done. Along a row it is the same with columns.

use crate::draft::{Draft, Tried};
use kingpost_ir::{Access, AddressSpace, Affine, Atom, AxisTag, InameId, Node};
use kingpost_transforms::primitives::{
    CutIname, DistributeLoop, ExpandArray, Hoist, InterchangeInames, MoveInsns, PrefetchArray,
    SetAddressSpace, SplitIname, Tag, Tail,
};

/// Iterations of a round: what a row is updated by stays in the first cache, and an element in a register.
const ROUND: i64 = 8;

/// The loops of a round: over its iterations, over rows and along a row.
struct Nest {
    step: String,
    row: String,
    along: String,
}

/// Where a round begins, an iteration of it, and where the next one begins.
struct Places {
    first: String,
    at: String,
    after: String,
    next: String,
}

impl Draft<'_> {
    /// Runs loops that update each row of a matrix by one of them in rounds.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn run_rounds(&mut self) -> Tried {
        for nest in self.innermost() {
            let [.., outer, row, along] = nest.as_slice() else { continue };
            let is_only = |around: &String, inner: &String| {
                let [only] = self.body(around) else { return false };
                self.name_of(only) == *inner
            };
            if !is_only(outer, row) || !is_only(row, along) || self.insns(along).len() != 1 {
                continue;
            }
            let Some(iname) = self.kernel().iname(outer) else { continue };
            let own = vec![Affine::iname(iname)];
            if self.meetings(row) != own || self.meetings(along) != own {
                continue;
            }
            self.restart(&format!("{ROUND} iterations of `{outer}` together for each `{row}`"), |d| {
                let [_, step] = d.make(SplitIname::new(outer, ROUND).with_tail(Tail::Peel))?;
                d.round(&Nest { step: step.name().to_owned(), row: row.clone(), along: along.clone() })
            })?;
        }
        Ok(())
    }

    /// Lets the rows that are not in a round go through it after those that are.
    fn round(&mut self, nest: &Nest) -> Tried {
        let Some(places) = self.places(&nest.step, &nest.along) else { return Ok(()) };
        let [above, rest] = self.cut_at(&nest.row, &places.at)?;
        let [_, below] = self.cut_at(&rest, &places.after)?;
        for part in [&above, &below] {
            self.copy_row(&nest.step, part)?;
        }
        let [above, _] = self.cut_at(&above, &places.first)?;
        let [_, below] = self.cut_at(&below, &places.next)?;
        self.make(MoveInsns::before([&above], &below))?;
        let steps = self.make(DistributeLoop::new(&nest.step, [&above, &below]))?;
        for (step, row) in steps.iter().zip([above, below]) {
            self.make(InterchangeInames::new(step.name(), &row))?;
            self.round_of_row(step.name())?;
        }
        // what is left are the rows of the round, each in its own iteration
        self.cut_meetings()
    }

    /// Lets the elements of a row that are not in a round's columns go through it after those that are.
    fn round_of_row(&mut self, step: &str) -> Tried {
        let Some(along) = self.body(step).first().map(|node| self.name_of(node)) else { return Ok(()) };
        let Some(places) = self.places(step, &along) else { return Ok(()) };
        let [left, rest] = self.cut_at(&along, &places.first)?;
        let [_, rest] = self.cut_at(&rest, &places.at)?;
        let [_, rest] = self.cut_at(&rest, &places.after)?;
        let [_, right] = self.cut_at(&rest, &places.next)?;
        for part in [&left, &right] {
            let Some((var, read)) = self.read_of(part, |access, along| !mentions(access, along)) else {
                return Ok(());
            };
            let name = self.kernel().fresh_name(&format!("{var}_own"));
            let copy = PrefetchArray::new(var, part, AddressSpace::Private).only_reads([read]);
            let made = self.make(copy.into_temporary(&name))?;
            self.make(ExpandArray::new(name, [step]))?;
            self.make(Hoist::new(made.insns.iter().map(|insn| insn.name())))?;
        }
        self.make(MoveInsns::before([&left], &right))?;
        let steps = self.make(DistributeLoop::new(step, [&left, &right]))?;
        for (step, part) in steps.iter().zip([left, right]) {
            self.make(InterchangeInames::new(step.name(), &part))?;
            self.make(Tag::new(step.name(), AxisTag::Unrolled))?;
        }
        Ok(())
    }

    /// Copies the row that all others of a loop read, in each iteration of a round, before that loop.
    fn copy_row(&mut self, step: &str, row: &str) -> Tried {
        let Some(along) = self.body(row).first().map(|node| self.name_of(node)) else { return Ok(()) };
        let Some(insn) = self.body(&along).first().map(|node| self.name_of(node)) else { return Ok(()) };
        let Some(row) = self.kernel().iname(row) else { return Ok(()) };
        let Some((var, read)) = self.read_of(&along, |access, _| !mentions(access, row)) else {
            return Ok(());
        };
        let name = self.kernel().fresh_name(&format!("{var}_row"));
        let copy = PrefetchArray::new(var, &along, AddressSpace::Private).only_reads([read]);
        self.make(copy.into_temporary(&name))?;
        self.make(SetAddressSpace::new(&name, AddressSpace::Global))?;
        self.make(ExpandArray::new(&name, [step, &along]))?;
        self.make(DistributeLoop::new(&along, [insn]))?;
        self.make(Hoist::new([along])).map(|_| ())
    }

    /// Where the iterations of a round lie among the rows.
    fn places(&self, step: &str, along: &str) -> Option<Places> {
        let kernel = self.kernel();
        let step = kernel.iname(step)?;
        let meetings = self.meetings(along);
        let [at] = meetings.as_slice() else { return None };
        let first = at.minus(&Affine::iname(step));
        let text = |e: &Affine| kernel.show_affine(e).to_string();
        (at.coefficient(&Atom::Iname(step)) == 1).then(|| Places {
            first: text(&first),
            at: text(at),
            after: text(&at.plus_constant(1)),
            next: text(&first.plus_constant(ROUND)),
        })
    }

    /// Cuts a loop: the parts before and after, which are one where nothing runs in the other.
    fn cut_at(&mut self, name: &str, at: &str) -> Tried<[String; 2]> {
        let made = self.make(CutIname::new(name, at))?;
        let of = |part: Option<&kingpost_steps::schedule::Loop>| {
            part.map_or_else(|| name.to_owned(), |part| part.name().to_owned())
        };
        Ok([of(made.first()), of(made.last())])
    }

    /// The array and the text of a read in a loop, of which `is` says that it is the one.
    fn read_of(&self, along: &str, is: impl Fn(&Access, InameId) -> bool) -> Option<(String, String)> {
        let kernel = self.kernel();
        let iname = kernel.iname(along)?;
        let [Node::Insn(insn)] = self.body(along) else { return None };
        let insn = &kernel.insns[*insn];
        let reads = insn.reads();
        let read = reads.iter().find(|access| access.var == insn.lhs.var && is(access, iname))?;
        Some((kernel.vars[read.var].name.clone(), kernel.show_access(read).to_string()))
    }
}

fn mentions(access: &Access, iname: InameId) -> bool {
    access.index.iter().any(|e| e.mentions(iname))
}
