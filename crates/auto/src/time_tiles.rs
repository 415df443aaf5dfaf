//! Tiles in time: a loop that sweeps over the same arrays again and again is tiled together with the
//! loops inside it, along directions that are skewed by time.

use crate::draft::{Draft, Tried, is_sequential, refusable};
use kingpost_ir::{InsnId, Kernel, Node};
use kingpost_steps::tree::insns_of;
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{DistributeLoop, Reschedule, TileBand};

/// Sweeps: instructions of one nest after the other in a loop over time.
struct Sweeps {
    time: String,
    /// Instructions in the order of the text, each with the place of its nest in the loop, and rows for
    /// the place that it writes.
    statements: Vec<(String, usize, Vec<String>)>,
    /// Axes of the arrays that are written.
    rank: usize,
}

impl Draft<'_> {
    /// Tiles each loop of the program that sweeps over arrays. `sizes` are lengths along time and along
    /// the axes of arrays of one, two and three axes.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn tile_in_time(&mut self, sizes: [&[i64]; 3]) -> Tried {
        let loops: Vec<String> = self
            .kernel()
            .body
            .iter()
            .filter(|n| matches!(n, Node::Loop(..)))
            .map(|n| self.name_of(n))
            .collect();
        for time in loops {
            let Some(sweeps) = self.sweeps(&time) else { continue };
            let Some(sizes) = sizes.get(sweeps.rank - 1) else { continue };
            self.restart(&format!("tiles of `{time}` in time"), |d| d.tile_sweeps(&sweeps, sizes))?;
        }
        Ok(())
    }

    /// A loop over time writes whole arrays in each iteration, whose places do not depend on it.
    fn sweeps(&self, time: &str) -> Option<Sweeps> {
        let kernel = self.kernel();
        let iname = kernel.iname(time)?;
        if !is_sequential(kernel, iname) {
            return None;
        }
        let mut statements = Vec::new();
        for (place, node) in self.body(time).iter().enumerate() {
            for insn in insns_of(std::slice::from_ref(node)) {
                let rows = rows(kernel, insn)?;
                statements.push((kernel.insns[insn].name.clone(), place, rows));
            }
        }
        let rank = statements.first()?.2.len();
        let mentions_time = |insn: &InsnId| {
            let index = &kernel.insns[*insn].lhs.index;
            index.iter().any(|e| e.as_affine().is_none_or(|e| e.mentions(iname)))
        };
        let fits = rank > 0
            && statements.iter().all(|(.., rows)| rows.len() == rank)
            && !self.insns(time).iter().any(mentions_time);
        fits.then(|| Sweeps { time: time.to_owned(), statements, rank })
    }

    fn tile_sweeps(&mut self, sweeps: &Sweeps, sizes: &[i64]) -> Tried {
        let nests = sweeps.statements.last().map_or(0, |(_, place, _)| place + 1);
        let mut phases: Vec<usize> = (0..nests).collect();
        let mut best = self.tiled(sweeps, &phases, sizes)?;
        // Nests that do not wait for their neighbour share a step of time, which makes tiles less steep.
        for at in 1..nests {
            let fewer: Vec<usize> =
                phases.iter().enumerate().map(|(k, p)| p - usize::from(k >= at)).collect();
            if let Ok(draft) = refusable(self.tiled(sweeps, &fewer, sizes))? {
                (best, phases) = (draft, fewer);
            }
        }
        *self = best;
        Ok(())
    }

    /// The program with each nest in its phase of a step of time, in tiles.
    fn tiled(&self, sweeps: &Sweeps, phases: &[usize], sizes: &[i64]) -> Tried<Self> {
        let mut draft = self.clone();
        let count = phases.last().map_or(1, |last| last + 1);
        let loops = match draft.nest_of_one(sweeps) {
            Some(loops) => loops,
            None => draft.in_phases(sweeps, phases, count)?,
        };
        let rows = |skew: &dyn Fn(usize) -> String| -> Vec<String> {
            (0..loops.len()).map(|k| if k == 0 { loops[0].clone() } else { skew(k) }).collect()
        };
        let (t, name) = (&loops[0], |k: usize| &loops[k]);
        // neighbours at most one place away; those before in the same sweep, too; two places away
        let directions = [
            rows(&|k| format!("{t} + {}", name(k))),
            rows(&|k| {
                let before: String = (1..k).map(|b| format!(" + {}", name(b))).collect();
                format!("{k}*{t}{before} + {}", name(k))
            }),
            rows(&|k| format!("2*{t} + {}", name(k))),
        ];
        // what is past the last size stays whole
        let tiled = sizes.len().min(loops.len());
        let mut made = Ok(());
        for by in directions {
            let step =
                TileBand::new(loops[..tiled].to_vec(), sizes[..tiled].to_vec()).by(by[..tiled].to_vec());
            made = refusable(draft.make(step).map(|_| ()))?;
            if made.is_ok() {
                break;
            }
        }
        made?;
        draft.part_phases(sweeps, phases, &loops)?;
        Ok(draft)
    }

    /// The loops of a program with one instruction, outer first, where they go over what it writes.
    fn nest_of_one(&self, sweeps: &Sweeps) -> Option<Vec<String>> {
        let [(_, _, rows)] = sweeps.statements.as_slice() else { return None };
        let loops: Vec<String> = [sweeps.time.clone()].into_iter().chain(rows.iter().cloned()).collect();
        let within = |pair: &[String]| {
            let [only] = self.body(&pair[0]) else { return false };
            self.name_of(only) == pair[1]
        };
        loops.windows(2).all(within).then_some(loops)
    }

    /// Puts all instructions into one nest: their phase of time, then the place that they write.
    fn in_phases(&mut self, sweeps: &Sweeps, phases: &[usize], count: usize) -> Tried<Vec<String>> {
        let loops = self.free_names(sweeps.rank + 1);
        let mut step = Reschedule::new([sweeps.time.clone()], loops.clone());
        for (name, place, rows) in &sweeps.statements {
            let phase = match (count, phases[*place]) {
                (1, _) => sweeps.time.clone(),
                (_, 0) => format!("{count}*{}", sweeps.time),
                (_, phase) => format!("{count}*{} + {phase}", sweeps.time),
            };
            step = step.map(name, [phase].into_iter().chain(rows.iter().cloned()));
        }
        step = step.then(sweeps.statements.iter().map(|(name, ..)| name.clone()));
        self.make(step)?;
        Ok(loops)
    }

    /// A loop for each instruction, and a nest for each phase, so that conditions on the phase stand
    /// outside.
    fn part_phases(&mut self, sweeps: &Sweeps, phases: &[usize], loops: &[String]) -> Tried {
        let [(_, first, _), rest @ ..] = sweeps.statements.as_slice() else { return Ok(()) };
        if rest.is_empty() {
            return Ok(());
        }
        let Some((inner, outer)) = loops.split_last() else { return Ok(()) };
        let made = self.make(DistributeLoop::new(inner, rest.iter().map(|(name, ..)| name.clone())))?;
        let mut last = phases[*first];
        let (mut starts, mut parts) = (Vec::new(), vec![inner.clone()]);
        for ((_, place, _), part) in rest.iter().zip(made) {
            parts.push(part.name().to_owned());
            if phases[*place] != last {
                starts.push(part.name().to_owned());
            }
            last = phases[*place];
        }
        for around in outer.iter().skip(1).rev() {
            if starts.is_empty() {
                break;
            }
            let made = self.make(DistributeLoop::new(around, starts))?;
            starts = made.iter().map(|part| part.name().to_owned()).collect();
        }
        for part in parts {
            // refused, it leaves the loop as it is
            let _ = refusable(self.schedule.separate_loops(&part, None))?;
        }
        Ok(())
    }

    pub(crate) fn free_names(&self, count: usize) -> Vec<String> {
        let free = (0..).map(|k| format!("c{k}")).filter(|name| self.kernel().is_free_name(name));
        free.take(count).collect()
    }
}

/// The place that an instruction writes, as text.
fn rows(kernel: &Kernel, insn: InsnId) -> Option<Vec<String>> {
    let index = kernel.insns[insn].lhs.index.iter();
    index.map(|e| Some(kernel.show_affine(&e.as_affine()?).to_string())).collect()
}
