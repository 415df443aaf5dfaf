//! Tiles in the order of one loop over tiles, on the host: the tile in which it stands, the tiles next to and
//! below that, and all others in launches of their own, as in blocked factorisations.

use super::map::Shape;
use super::spread::{Cover, Launch, levels};
use crate::draft::{Draft, Tried};
use crate::reschedules::OuterBand;
use kingpost_ir::{AddressSpace, Affine, Atom, AxisTag, Constraint, InameId, Insn, Kernel, Node};
use kingpost_isl::Objective;
use kingpost_steps::tree::inames_of;
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{
    BufferWrites, CutIname, DistributeLoop, InterchangeInames, Part, Reschedule, SkewIname, Tag, TileBand,
};

/// Length of a tile along each of two loops, and of more: the work-items of a group have the places of two.
const LONG: i64 = 64;
const TILE: i64 = 32;

/// Loops of a band that is tiled, at most.
const DEEPEST: usize = 3;

impl Draft<'_> {
    /// Tiles the bands of isl's schedule of which no loop is parallel, but which may stand in any order, with
    /// the loop `first` as the outermost one; the others begin where that one is.
    ///
    /// # Errors
    /// A step that is refused; that no band is so.
    pub(super) fn tile_panels(&mut self, first: usize) -> Tried {
        let mut any = false;
        for OuterBand { mut step, permutable, parallel } in self.parted_bands(Objective::default())? {
            let count = step.loops.len();
            if parallel || !permutable || !(2..=DEEPEST).contains(&count) || first >= count {
                self.make(step)?;
                continue;
            }
            for rows in step.maps.values_mut() {
                rows[..=first].rotate_right(1);
            }
            let loops = step.loops.clone();
            if let Err(refused) = self.make(self.stores_first(&step)) {
                self.pass(refused)?;
                self.make(step)?;
            }
            self.tile_panel(&loops, if count == 2 { LONG } else { TILE })?;
            any = true;
        }
        if any { Ok(()) } else { Err(nothing_to_tile()) }
    }

    /// A band whose values come before the updates that wait for them, those of fewer loops first, so that
    /// all places of a tile can go on at a time.
    fn stores_first(&self, step: &Reschedule) -> Reschedule {
        let kernel = self.kernel();
        let loops = |part: &Part| {
            let Part::Statement(name) = part else { return None };
            let insn = kernel.insns.values().find(|insn| insn.name == *name)?;
            let mut rows = step.maps.get(name)?.clone();
            rows.sort();
            rows.dedup();
            insn.update_op().is_none().then_some(rows.len())
        };
        let mut sorted = step.clone();
        sorted.then.sort_by_key(|part| loops(part).unwrap_or(usize::MAX));
        sorted
    }

    fn tile_panel(&mut self, loops: &[String], size: i64) -> Tried {
        let tiles = self.make(TileBand::new(loops.to_vec(), vec![size; loops.len()]))?;
        let tiles: Vec<String> = tiles.iter().map(|l| l.name().to_owned()).collect();
        let Some((outer, inner)) = tiles.split_first() else { return Ok(()) };
        if !inner.iter().all(|tile| self.begins_at(tile, outer)) {
            return Err(nothing_to_tile());
        }
        // places count from the beginning of their tile, so that work-items can be these
        for (l, tile) in loops.iter().zip(&tiles) {
            self.make(SkewIname::new(l, tile, -size))?;
        }
        for tile in inner.iter().rev() {
            self.make(CutIname::new(tile, format!("{outer} + 1")))?;
        }
        for l in self.names_in(outer) {
            self.distribute_tiles(&l, inner.len() - 1)?;
        }
        self.count_from_zero(outer)
    }

    /// Whether a loop has no values below that of another one.
    fn begins_at(&self, name: &str, outer: &str) -> bool {
        let kernel = self.kernel();
        let (Some(iname), Some(outer)) = (kernel.iname(name), kernel.iname(outer)) else { return false };
        let from = Constraint::le(&Affine::iname(outer), &Affine::iname(iname));
        kernel.inames[iname].domain.as_conjunction().is_some_and(|bounds| bounds.contains(&from))
    }

    /// Gives each nest of loops over tiles, of which there are some inside a loop, a loop of its own.
    fn distribute_tiles(&mut self, name: &str, depth: usize) -> Tried {
        if depth == 0 {
            return Ok(());
        }
        for inner in self.names_in(name) {
            self.distribute_tiles(&inner, depth - 1)?;
        }
        match self.names_in(name).split_first() {
            Some((_, later)) if !later.is_empty() => {
                self.make(DistributeLoop::new(name, later.to_vec())).map(|_| ())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Counts loops inside `outer` that have its value alone from zero: what is less than that is known.
    fn count_from_zero(&mut self, outer: &str) -> Tried {
        let kernel = self.kernel();
        let Some(at) = kernel.iname(outer) else { return Ok(()) };
        let only = |l: &InameId| {
            let range = kernel.inames[*l].domain.as_guarded_range(*l);
            range.is_some_and(|r| r.lo == Affine::iname(at) && r.hi == r.lo.plus_constant(1))
        };
        let inside = inames_of(kernel, self.body(outer));
        let names: Vec<String> =
            inside.into_iter().filter(only).map(|l| kernel.inames[l].name.clone()).collect();
        names.iter().try_for_each(|l| self.make(SkewIname::new(l, outer, -1)).map(|_| ()))
    }

    /// Puts loops over tiles on groups and the places of a tile on work-items; where these are `held`, what a
    /// step brings to a tile is added up in registers first.
    ///
    /// # Errors
    /// A bug.
    pub(super) fn map_panels(&mut self, launches: &[Launch], shape: &Shape, held: bool) -> Tried {
        for launch in launches {
            let inside: Vec<Node> = match launch.covers.last() {
                None => self.statements(&launch.site).to_vec(),
                Some(cover) => cover.iter().flat_map(|l| self.body(l)).cloned().collect(),
            };
            let places = self.places_of(&inside)?;
            if places.is_empty() {
                self.map_covers(&launch.covers, shape)?;
                continue;
            }
            for (axis, cover) in (0_u8..).zip(launch.covers.iter().rev()) {
                self.make(Tag::all(cover.clone(), AxisTag::Group(axis)))?;
            }
            if let (true, Some([tile])) = (held, launch.covers.last().map(Vec::as_slice)) {
                let before = self.schedule.clone();
                if let Err(refused) = self.hold_panel(tile, &places) {
                    self.pass(refused)?;
                    self.schedule = before;
                }
            }
            for (axis, cover) in (0_u8..).zip(places) {
                self.make(Tag::all(cover, AxisTag::Local(axis)))?;
            }
        }
        Ok(())
    }

    /// The loops that can be on axes of work-items together, that along rows first.
    fn places_of(&mut self, nodes: &[Node]) -> Tried<Vec<Cover>> {
        let mut trial = self.clone();
        let mut found: Vec<Cover> = Vec::new();
        for level in levels(self.kernel(), nodes) {
            if !level.iter().all(|l| length(self.kernel(), *l).is_some_and(|n| n > 1)) {
                continue;
            }
            let names: Cover = level.iter().map(|l| self.kernel().inames[*l].name.clone()).collect();
            match trial.make(Tag::all(names.clone(), AxisTag::Local(found.len() as u8))) {
                Ok(()) => found.push(names),
                Err(refused) => self.pass(refused)?,
            }
            if found.len() == 2 {
                break;
            }
        }
        if found.len() == 2 && self.along_rows(&found) == 1 {
            found.swap(0, 1);
        }
        Ok(found)
    }

    /// Adds up what a step brings to a tile in registers, from operands in local memory.
    fn hold_panel(&mut self, tile: &str, places: &[Cover]) -> Tried {
        let kernel = self.kernel();
        let [node] = self.body(tile) else { return Ok(()) };
        let nest = self.perfect_nest(node);
        let Some((step, [.., place])) = nest.split_first() else { return Ok(()) };
        let lengths = places.iter().map(|cover| match cover.as_slice() {
            [l] if nest[1..].contains(l) => kernel.iname(l).and_then(|l| length(kernel, l)),
            _ => None,
        });
        let Some(items) = lengths.collect::<Option<Vec<i64>>>() else { return Ok(()) };
        let insns: Vec<&Insn> = self.insns(tile).into_iter().map(|s| &kernel.insns[s]).collect();
        let statements: Vec<String> = insns.iter().map(|insn| insn.name.clone()).collect();
        let mut written: Vec<String> =
            insns.iter().map(|insn| kernel.vars[insn.lhs.var].name.clone()).collect();
        written.dedup();
        let ([var], true) = (written.as_slice(), nest.len() == places.len() + 1) else { return Ok(()) };
        for l in &nest[1..] {
            self.make(InterchangeInames::new(step, l))?;
        }
        for statement in statements {
            self.hold_operands(&statement, tile, step, &items)?;
        }
        let sum = self.schedule.fresh(&format!("{var}_sum"));
        self.make(BufferWrites::new(var, place, AddressSpace::Private).into_temporary(sum)).map(|_| ())
    }
}

/// Whether a loop has no constant length: one over tiles, not over the places of one.
pub(super) fn is_long(kernel: &Kernel, iname: InameId) -> bool {
    length(kernel, iname).is_none()
}

/// The constant below which the values of a loop are, if there is one.
fn length(kernel: &Kernel, iname: InameId) -> Option<i64> {
    let bounds = kernel.inames[iname].domain.as_conjunction()?;
    bounds.iter().find_map(|bound| {
        let Constraint::NonNegative(e) = bound else { return None };
        let rest = e.plus(&Affine::iname(iname));
        (e.coefficient(&Atom::Iname(iname)) == -1).then(|| rest.as_constant())?.map(|last| last + 1)
    })
}

fn nothing_to_tile() -> TransformError {
    let cause = Refusal::argument(
        "loops",
        "no band has such loops",
        "two or three that begin where the first one is",
    );
    TransformError { operation: "tile in panels".into(), cause }
}
