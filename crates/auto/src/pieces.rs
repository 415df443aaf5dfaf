//! Tiles without conditions: loops are cut where instructions begin or cease to run, so that compilers make
//! vectors of what is left.

use crate::draft::{Draft, NextPieces, Tried, refusable};
use crate::reschedules::OuterBand;
use kingpost_ir::{AddressSpace, Affine, Atom, InameId, Node, VarKind};
use kingpost_isl::{IslError, Objective, with_operation_limit};
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{
    CutIname, ExpandArray, Reschedule, SetAddressSpace, SplitLives, TileBand,
};

/// Length of a tile along the innermost loop, a few lines, and along the others, so that three such tiles
/// are in the second cache.
const ROW: i64 = 128;
const TILE: i64 = 32;

/// Loops of a band that is tiled in pieces, at most: four that lean against each other take minutes.
const DEEPEST: usize = 3;

/// Operations of the solver that the cuts of a loop may take: half a second.
const CUTS: u64 = 10_000_000;

impl Draft<'_> {
    /// Tiles the bands of isl's schedule whose loops may stand in any order, and cuts loops inside a tile into
    /// pieces without conditions. The loops come in the order that the model takes for the fastest.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn tile_pieces(&mut self) -> Tried {
        let mut parted = self.clone();
        let bands = match refusable(parted.parted_bands(Objective::default()))? {
            Ok(bands) => bands,
            Err(error) => {
                self.considered.push(format!("tiles in pieces: refused: {error}"));
                return Ok(());
            }
        };
        let before = std::mem::replace(&mut self.schedule, parted.schedule.clone());
        let mut next = Vec::new();
        for OuterBand { step, permutable, .. } in bands {
            if !permutable || !(2..=DEEPEST).contains(&step.loops.len()) {
                continue;
            }
            let mut drafts: Vec<(Vec<usize>, Draft<'_>)> = Vec::new();
            for order in orders(step.loops.len()) {
                let mut draft = self.clone();
                let idea = format!("tiles of loops {order:?} of `{}`, in pieces", step.subtree.join("`, `"));
                let line = match refusable(draft.pieces_of(&step, &order))? {
                    Err(error) => format!("{idea}: refused: {error}"),
                    Ok(()) => {
                        draft.cycles = draft.predicted();
                        let ratio = draft.cycles / self.cycles;
                        drafts.push((order, draft));
                        format!("{idea}: predicted {ratio:.3} of the time before")
                    }
                };
                self.considered.push(line);
            }
            drafts.sort_by(|(_, a), (_, b)| a.cycles.total_cmp(&b.cycles));
            let second = drafts.get(1).or(drafts.first()).map(|(order, _)| order.clone());
            next.extend(second.map(|order| (step, order)));
            if let Some((_, draft)) = drafts.into_iter().next() {
                (self.schedule, self.cycles) = (draft.schedule, draft.cycles);
            }
        }
        if next.is_empty() {
            self.schedule = before;
        } else {
            self.next_pieces = Some(NextPieces { parted: parted.schedule, bands: next });
        }
        Ok(())
    }

    /// The tiles in pieces in the order that the model ranks next.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn take_next_pieces(&mut self) -> Tried {
        let Some(NextPieces { parted, bands }) = self.next_pieces.take() else { return Ok(()) };
        self.restart("the next order of tiles in pieces", |d| {
            d.schedule = parted;
            bands.iter().try_for_each(|(step, order)| d.pieces_of(step, order))
        })
    }

    fn pieces_of(&mut self, step: &Reschedule, order: &[usize]) -> Tried {
        let mut step = step.clone();
        let loops = step.loops.clone();
        for rows in step.maps.values_mut() {
            *rows = order.iter().map(|k| rows[*k].clone()).collect();
        }
        self.make(step)?;
        let mut sizes = vec![TILE; loops.len()];
        if let Some(last) = sizes.last_mut() {
            *last = ROW;
        }
        self.make(TileBand::new(loops.clone(), sizes))?;
        // the innermost loop first: what it decides, it need not decide for others
        for around in loops.iter().rev() {
            if self.insns(around).iter().all(|s| self.kernel().insns[*s].predicate.is_none()) {
                break;
            }
            // past the budget the outer loops keep what they decide
            let schedule = &mut self.schedule;
            let cut = || Ok::<_, IslError>(schedule.separate_loops(around, None));
            let Ok(cut) = with_operation_limit(CUTS, cut) else { break };
            if refusable(cut)?.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Gives each value of a scalar its own element, where the scalar is assigned again in each iteration
    /// of some loops: it carries nothing but reuse from one to the next.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn expand_scalars(&mut self) -> Tried {
        for (scalar, loops) in self.lives() {
            self.restart(&format!("`{scalar}` in each iteration of `{}`", loops.join("`, `")), |d| {
                let Some(inner) = loops.last() else { return Ok(()) };
                let array = match d.is_used_outside(&scalar, inner) {
                    true => {
                        let lives = SplitLives::new(inner, inner).of([&scalar]);
                        d.make(lives)?.first().map_or(scalar.clone(), |array| array.name().to_owned())
                    }
                    false => scalar.clone(),
                };
                d.make(SetAddressSpace::new(&array, AddressSpace::Global))?;
                d.make(ExpandArray::new(&array, loops.clone())).map(|_| ())
            })?;
        }
        Ok(())
    }

    /// The private scalars, with the loops around each place where one is assigned that holds other loops.
    fn lives(&self) -> Vec<(String, Vec<String>)> {
        let kernel = self.kernel();
        let mut found = Vec::new();
        for (insn, loops) in kernel.schedule() {
            let (insn, name) = (&kernel.insns[insn], |l: &InameId| kernel.inames[*l].name.clone());
            let var = &kernel.vars[insn.lhs.var];
            let is_scalar =
                var.kind == VarKind::Temporary && var.space == AddressSpace::Private && var.shape.is_empty();
            let loops: Vec<String> = loops.iter().map(name).collect();
            let holds_loops = |inner: &String| self.body(inner).iter().any(|n| matches!(n, Node::Loop(..)));
            if is_scalar && insn.update_op().is_none() && loops.last().is_some_and(holds_loops) {
                found.push((var.name.clone(), loops));
            }
        }
        found.dedup();
        found
    }

    /// Cuts innermost loops before and after the iteration that writes an element that all iterations
    /// read: the others neither change it nor wait for it.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn cut_meetings(&mut self) -> Tried {
        for nest in self.innermost() {
            let Some(inner) = nest.last() else { continue };
            for at in self.meetings(inner) {
                let texts =
                    [at.clone(), at.plus_constant(1)].map(|e| self.kernel().show_affine(&e).to_string());
                self.restart(&format!("cut `{inner}` around `{}`", texts[0]), |d| {
                    texts.iter().try_for_each(|at| d.make(CutIname::new(inner, at)).map(|_| ()))
                })?;
            }
        }
        Ok(())
    }

    /// The iterations of a loop that write what all of them read.
    pub(crate) fn meetings(&self, inner: &str) -> Vec<Affine> {
        let kernel = self.kernel();
        let Some(iname) = kernel.iname(inner) else { return Vec::new() };
        let insns = || self.insns(inner).into_iter().map(|s| &kernel.insns[s]);
        let mut found = Vec::new();
        for write in insns().map(|insn| &insn.lhs) {
            for read in insns().flat_map(|insn| insn.reads()).filter(|read| read.var == write.var) {
                let pairs: Option<Vec<(Affine, Affine)>> = write
                    .index
                    .iter()
                    .zip(&read.index)
                    .map(|(w, r)| Some((w.as_affine()?, r.as_affine()?)))
                    .collect();
                let Some(mut pairs) = pairs else { continue };
                pairs.retain(|(w, r)| w != r);
                let [(w, r)] = pairs.as_slice() else { continue };
                let rest = w.minus(&Affine::iname(iname));
                if w.coefficient(&Atom::Iname(iname)) != 1 || rest.mentions(iname) || r.mentions(iname) {
                    continue;
                }
                let at = r.minus(&rest);
                if !found.contains(&at) {
                    found.push(at);
                }
            }
        }
        found
    }
}

/// Orders of loops that are tried: all of three, else each as the innermost one.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let innermost = |inner: usize| (0..count).filter(|k| *k != inner).chain([inner]).collect::<Vec<_>>();
    let mut all: Vec<Vec<usize>> = (0..count).rev().map(innermost).collect();
    if count == 3 {
        let others: Vec<_> = all.iter().map(|order| vec![order[1], order[0], order[2]]).collect();
        all.extend(others);
    }
    all
}
