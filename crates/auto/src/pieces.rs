//! Tiles without conditions: loops are cut where instructions begin or cease to run, so that compilers make
//! vectors of what is left.

use crate::draft::{Draft, Tried, is_bug};
use purlin_ir::{Affine, Atom};
use purlin_isl::Objective;
use purlin_transforms::ScheduleSteps;
use purlin_transforms::primitives::{CutIname, Reschedule, TileBand};

impl Draft<'_> {
    /// Tiles the bands of isl's schedule whose loops may stand in any order, in the order that the model takes
    /// for the fastest, and cuts their innermost loops into pieces without conditions. `inner` is the length
    /// of a tile along the innermost loop, `outer` that along the others.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn tile_pieces(&mut self, outer: i64, inner: i64) -> Tried {
        let bands = match self.bands(Objective::default()) {
            Ok(bands) => bands,
            Err(error) if is_bug(&error) => return Err(error),
            Err(error) => {
                self.considered.push(format!("tiles in pieces: refused: {error}"));
                return Ok(());
            }
        };
        for (step, permutable) in bands {
            if !permutable || step.loops.len() < 2 {
                continue;
            }
            let mut best: Option<Draft<'_>> = None;
            for order in orders(step.loops.len()) {
                let mut draft = self.clone();
                let idea = format!("tiles of loops {order:?} of `{}`, in pieces", step.subtree.join("`, `"));
                let line = match draft.pieces_of(&step, &order, outer, inner) {
                    Err(error) if is_bug(&error) => return Err(error),
                    Err(error) => format!("{idea}: refused: {error}"),
                    Ok(()) => {
                        draft.cycles = draft.predicted();
                        let ratio = draft.cycles / self.cycles;
                        if best.as_ref().is_none_or(|best| draft.cycles < best.cycles) {
                            best = Some(draft);
                        }
                        format!("{idea}: predicted {ratio:.3} of the time before")
                    }
                };
                self.considered.push(line);
            }
            if let Some(best) = best {
                (self.schedule, self.cycles) = (best.schedule, best.cycles);
            }
        }
        Ok(())
    }

    fn pieces_of(&mut self, step: &Reschedule, order: &[usize], outer: i64, inner: i64) -> Tried {
        let mut step = step.clone();
        let loops = step.loops.clone();
        for rows in step.maps.values_mut() {
            *rows = order.iter().map(|k| rows[*k].clone()).collect();
        }
        self.make(step)?;
        let mut sizes = vec![outer; loops.len()];
        if let Some(last) = sizes.last_mut() {
            *last = inner;
        }
        self.make(TileBand::new(loops.clone(), sizes))?;
        match loops.last() {
            Some(last) => self.schedule.separate_loops(last, None).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Cuts innermost loops before and after the iteration that writes an element that all iterations
    /// read: the others neither change it nor wait for it.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn cut_meetings(&mut self) -> Tried {
        for nest in self.innermost() {
            let Some(inner) = nest.last() else { continue };
            for (at, after) in self.meetings(inner) {
                self.restart(&format!("cut `{inner}` around `{at}`"), |d| {
                    d.make(CutIname::new(inner, &at))?;
                    d.make(CutIname::new(inner, after)).map(|_| ())
                })?;
            }
        }
        Ok(())
    }

    /// The iterations of a loop that write what all of them read, and the ones after those.
    fn meetings(&self, inner: &str) -> Vec<(String, String)> {
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
                let texts = [at.clone(), at.plus_constant(1)].map(|e| kernel.show_affine(&e).to_string());
                let [at, after] = texts;
                if !found.contains(&(at.clone(), after.clone())) {
                    found.push((at, after));
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
