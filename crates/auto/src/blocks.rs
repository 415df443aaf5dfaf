//! Blocks of a result in registers: sums of products of matrices, where the sums of a block of places
//! are held in registers while the loop over what is summed runs.

use crate::draft::{Draft, Tried};
use kingpost_ir::{AddressSpace, Affine, Atom, AxisTag, Node};
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{
    BufferWrites, InterchangeInames, Reschedule, SkewIname, Tag, TileBand,
};

/// Terms of a sum for which a block stays in registers: what they read of a row of blocks is in the
/// first cache.
const TERMS: i64 = 128;

/// Three loops around one update: what is summed, along a row of the result, across its rows.
pub(crate) struct Sums {
    pub(crate) summed: String,
    pub(crate) along: String,
    pub(crate) across: String,
    pub(crate) statement: String,
    pub(crate) var: String,
}

impl Draft<'_> {
    /// Holds blocks of each result that three loops sum up in registers. Sums start from zero in each block,
    /// so that results are equal up to the order of their terms.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn hold_blocks(&mut self) -> Tried {
        for nest in self.innermost() {
            self.consider(&format!("blocks of sums over `{}` in registers", nest.join("`, `")), |d| {
                let loops = d.isolate(&nest)?;
                match d.sums(&loops) {
                    Some(sums) => d.hold_block(&loops[0], &sums),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Makes the three innermost loops of a nest a perfect one; returns their names, outer first.
    fn isolate(&mut self, nest: &[String]) -> Tried<Vec<String>> {
        let mut loops: Vec<String> = nest.last().cloned().into_iter().collect();
        for around in nest.iter().rev().skip(1).take(2) {
            let names: Vec<String> = self.body(around).iter().map(|node| self.name_of(node)).collect();
            let mut held = around.clone();
            if let Some(at) = names.iter().position(|name| *name == loops[0])
                && names.len() > 1
            {
                let cuts = (at > 0).then(|| names[at].clone()).into_iter().chain(names.get(at + 1).cloned());
                let made = self.distribute(around, cuts.collect())?;
                if at > 0 {
                    held.clone_from(&made[0]);
                }
            }
            loops.insert(0, held);
        }
        Ok(loops)
    }

    /// What each of three loops is to the only update inside.
    pub(crate) fn sums(&self, loops: &[String]) -> Option<Sums> {
        let kernel = self.kernel();
        let [_, _, inner] = loops else { return None };
        let [Node::Insn(insn)] = self.body(inner) else { return None };
        let insn = &kernel.insns[*insn];
        let place: Vec<Affine> = insn.lhs.index.iter().map(|e| e.as_affine()).collect::<Option<_>>()?;
        let (row, outer) = place.split_last()?;
        let moved = |e: &Affine, name: &String| {
            kernel.iname(name).map_or(0, |iname| e.coefficient(&Atom::Iname(iname)))
        };
        let along = loops.iter().find(|l| moved(row, l) == 1)?;
        let across = loops.iter().find(|l| *l != along && outer.iter().any(|e| moved(e, l) != 0))?;
        let summed = loops.iter().find(|l| place.iter().all(|e| moved(e, l) == 0))?;
        insn.update_op()?;
        Some(Sums {
            summed: summed.clone(),
            along: along.clone(),
            across: across.clone(),
            statement: insn.name.clone(),
            var: kernel.vars[insn.lhs.var].name.clone(),
        })
    }

    fn hold_block(&mut self, outermost: &str, sums: &Sums) -> Tried {
        let kernel = self.kernel();
        let bytes = kernel.var(&sums.var).map_or(8, |v| kernel.vars[v].ty.bytes()) as f64;
        // two vectors a row; half of the registers hold sums
        let along = (2.0 * self.machine.vector_bytes / bytes) as i64;
        let across = (self.machine.registers / 4.0) as i64;
        let names = self.free_names(3);
        let rows = [&sums.summed, &sums.along, &sums.across];
        self.make(Reschedule::new([outermost], names.clone()).map(&sums.statement, rows))?;
        let tiles = self.make(TileBand::new(names.clone(), [TERMS, along, across]))?;
        self.make(InterchangeInames::new(&names[1], &names[2]))?;
        for piece in self.schedule.separate_loops(tiles[1].name(), 2)? {
            let inside = |nest: &Vec<String>| nest.iter().any(|name| name == piece.name());
            for nest in self.innermost().into_iter().filter(inside) {
                self.hold_piece(&nest, &sums.var, [along, across])?;
            }
        }
        Ok(())
    }

    /// Holds the block of a full tile: `nest` ends in the loops over tiles, terms, rows, and along a row.
    fn hold_piece(&mut self, nest: &[String], var: &str, [along, across]: [i64; 2]) -> Tried {
        let [.., tile_along, tile_across, _, row, lane] = nest else { return Ok(()) };
        let length = |name: &String| {
            let iname = self.kernel().iname(name)?;
            let range = self.kernel().inames[iname].domain.as_guarded_range(iname)?;
            range.length().as_constant()
        };
        if length(row) != Some(across) || length(lane) != Some(along) {
            return Ok(());
        }
        let block = self.kernel().fresh_name(&format!("{var}_block"));
        self.make(BufferWrites::new(var, tile_across, AddressSpace::Private).into_temporary(block))?;
        self.make(SkewIname::new(row, tile_across, -across))?;
        self.make(SkewIname::new(lane, tile_along, -along))?;
        self.make(Tag::new(lane, AxisTag::Vector))?;
        self.make(Tag::new(row, AxisTag::Unrolled)).map(|_| ())
    }
}
