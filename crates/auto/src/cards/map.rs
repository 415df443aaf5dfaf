//! Parallel loops on groups and work-items.

use super::spread::{Cover, Launch};
use super::tiles::Tiling;
use crate::draft::{Draft, Tried, is_sequential};
use crate::program::{Level, Part, Reader, Work};
use kingpost_ir::{AddressSpace, AxisTag, InameId, Kernel, Node};
use kingpost_steps::tree::inames_of;
use kingpost_transforms::primitives::{BufferWrites, SplitIname, Tag};
use std::collections::BTreeSet;

/// Work-items of a group and what each of them does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// Work-items along l.0 where one axis is shared.
    pub(super) line: i64,
    /// Work-items along l.0 and l.1 where several are.
    pub(super) plane: [i64; 2],
    /// Iterations of the second axis and of the first one in one work-item.
    pub(super) block: [i64; 2],
    /// Iterations of a third axis in one work-item.
    pub(super) outer: i64,
    /// Whether sums along rows are on the work-items of a group.
    pub(super) lanes: bool,
}

impl Shape {
    pub(super) const ALL: [Self; 10] = [
        Self { name: "32 by 8", line: 64, plane: [32, 8], block: [1, 1], outer: 1, lanes: false },
        Self {
            name: "32 by 8, rows by lanes",
            line: 64,
            plane: [32, 8],
            block: [1, 1],
            outer: 1,
            lanes: true,
        },
        Self { name: "128 by 1", line: 128, plane: [128, 1], block: [1, 1], outer: 1, lanes: true },
        Self { name: "32 by 4 of 4 rows", line: 32, plane: [32, 4], block: [4, 1], outer: 1, lanes: true },
        Self { name: "32 by 8 of 8 rows", line: 32, plane: [32, 8], block: [8, 1], outer: 1, lanes: true },
        Self { name: "32 by 4 of 4 by 2", line: 32, plane: [32, 4], block: [4, 2], outer: 1, lanes: true },
        Self { name: "16 by 16 of 4 by 4", line: 32, plane: [16, 16], block: [4, 4], outer: 1, lanes: true },
        Self { name: "16 by 16", line: 256, plane: [16, 16], block: [1, 1], outer: 1, lanes: true },
        Self { name: "32 by 4 of 8 outer", line: 32, plane: [32, 4], block: [1, 1], outer: 8, lanes: true },
        Self { name: "32 by 4 of 8 by 2", line: 32, plane: [32, 4], block: [2, 1], outer: 8, lanes: true },
    ];
}

impl Draft<'_> {
    /// Puts the loops that groups share on axes of groups and work-items.
    ///
    /// # Errors
    /// A bug.
    pub(super) fn map(&mut self, launches: &[Launch], shape: &Shape, tiling: Option<&Tiling>) -> Tried {
        for launch in launches {
            let before = self.schedule.clone();
            if let Some(tiling) = tiling.filter(|_| self.has_tiles(launch)) {
                match self.tile(launch, tiling) {
                    Ok(()) => continue,
                    Err(refused) => self.pass(refused)?,
                }
                self.schedule = before.clone();
            }
            let mapped = match launch.covers.as_slice() {
                [] if shape.lanes => self.sum_in_group(&launch.site),
                [] => Ok(()),
                [only] if shape.lanes && self.sums_rows(only) => self.sum_by_lanes(only),
                covers => self.map_covers(covers, shape),
            };
            if let Err(refused) = mapped {
                self.pass(refused)?;
                self.schedule = before;
                // groups of one work-item are proved already
                for (axis, cover) in (0_u8..).zip(&launch.covers) {
                    self.make(Tag::all(cover.clone(), AxisTag::Group(axis)))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn map_covers(&mut self, covers: &[Cover], shape: &Shape) -> Tried {
        if shape.outer > 1 {
            // sums in expressions share nothing
            self.realise_sums()?;
        }
        let along = self.along_rows(covers);
        // the axis of rows first, then the others from the inside
        let mut order: Vec<usize> = (0..covers.len()).rev().filter(|k| *k != along).collect();
        order.insert(0, along);
        let mut covers = covers.to_vec();
        if let [first, second, ..] = order[..] {
            for (k, iterations) in [second, first].into_iter().zip(shape.block) {
                if iterations > 1 && self.reads_again(&covers[k]) {
                    covers[k] = self.block_rows(&covers[k], iterations)?;
                }
            }
        }
        if let Some(third) = order.get(2).filter(|k| shape.outer > 1 && self.reads_again(&covers[**k])) {
            covers[*third] = self.block_rows(&covers[*third], shape.outer)?;
        }
        if let Some(innermost) = covers.last() {
            self.hold_sums(innermost)?;
            if shape.outer > 1 {
                // what the points of a stencil load is then in flight together
                self.write_out_constant()?;
            }
        }
        let sizes = match covers.len() {
            1 => [shape.line, 1, 1],
            _ => [shape.plane[0], shape.plane[1], 1],
        };
        // outer loops first: what is inside is parallel where these are
        for (k, cover) in covers.iter().enumerate() {
            let axis = order.iter().position(|o| *o == k).unwrap_or(0);
            self.map_cover(cover, axis as u8, sizes[axis])?;
        }
        Ok(())
    }

    fn map_cover(&mut self, cover: &Cover, axis: u8, size: i64) -> Tried {
        if size == 1 {
            return self.make(Tag::all(cover.clone(), AxisTag::Group(axis)));
        }
        let mut groups = Vec::new();
        let mut items = Vec::new();
        for l in cover {
            let [block, within] = self.make(SplitIname::new(l, size))?;
            groups.push(block.name().to_owned());
            items.push(within.name().to_owned());
        }
        self.make(Tag::all(groups, AxisTag::Group(axis)))?;
        self.make(Tag::all(items, AxisTag::Local(axis)))
    }

    /// Whether iterations of a cover read the same elements.
    fn reads_again(&self, cover: &Cover) -> bool {
        let kernel = self.kernel();
        cover.iter().any(|l| {
            let Some(iname) = kernel.iname(l) else { return false };
            let inside = self.insns(l).into_iter().map(|s| &kernel.insns[s]);
            let reads = inside.flat_map(|insn| insn.reads().into_iter().cloned().collect::<Vec<_>>());
            reads
                .into_iter()
                .any(|access| !access.index.is_empty() && !access.index.iter().any(|e| e.mentions(iname)))
        })
    }

    /// Iterations of a loop together in one work-item: what they read of the same elements is loaded
    /// once. Loops that cannot be brought inside stay as they are.
    fn block_rows(&mut self, cover: &Cover, rows: i64) -> Tried<Cover> {
        let mut blocks = Cover::new();
        for l in cover {
            let before = self.schedule.clone();
            let made = self.make(SplitIname::new(l, rows)).and_then(|[blocks, within]| {
                self.write_out_inside(within.name())?;
                Ok(blocks.name().to_owned())
            });
            blocks.push(match made {
                Ok(blocks) => blocks,
                Err(refused) => {
                    self.pass(refused)?;
                    self.schedule = before;
                    l.clone()
                }
            });
        }
        Ok(blocks)
    }

    /// Keeps what a work-item adds up in registers.
    fn hold_sums(&mut self, cover: &Cover) -> Tried {
        for l in cover {
            for var in self.summed(l) {
                let before = self.schedule.clone();
                let known: BTreeSet<String> = self.loops_in(l).into_iter().collect();
                let step = BufferWrites::new(&var, l, AddressSpace::Private);
                let step = step.into_temporary(self.schedule.fresh(&format!("{var}_sum")));
                let made = self.make(step).and_then(|_| {
                    let new = self.loops_in(l).into_iter().filter(|name| !known.contains(name));
                    let new: Vec<String> = new.collect();
                    if new.is_empty() { Ok(()) } else { self.make(Tag::all(new, AxisTag::Unrolled)) }
                });
                match made {
                    Ok(()) => self.considered.push(format!("sums of `{var}` in registers: taken")),
                    Err(refused) => {
                        self.pass(refused)?;
                        self.schedule = before;
                    }
                }
            }
        }
        Ok(())
    }

    fn loops_in(&self, name: &str) -> Vec<String> {
        let kernel = self.kernel();
        inames_of(kernel, self.body(name)).into_iter().map(|l| kernel.inames[l].name.clone()).collect()
    }

    /// Arrays that innermost loops inside a loop update at places which they do not move.
    fn summed(&self, name: &str) -> Vec<String> {
        fn walk(kernel: &Kernel, nodes: &[Node], around: Option<InameId>, found: &mut Vec<String>) {
            for node in nodes {
                match node {
                    Node::Loop(iname, body) => {
                        let around = if is_sequential(kernel, *iname) { Some(*iname) } else { around };
                        walk(kernel, body, around, found);
                    }
                    Node::Insn(insn) => {
                        let insn = &kernel.insns[*insn];
                        let var = &kernel.vars[insn.lhs.var];
                        let stays = around.is_some_and(|l| !insn.lhs.index.iter().any(|e| e.mentions(l)));
                        let in_memory = var.space == AddressSpace::Global;
                        if stays && in_memory && insn.update_op().is_some() && !found.contains(&var.name) {
                            found.push(var.name.clone());
                        }
                    }
                }
            }
        }
        let mut found = Vec::new();
        walk(self.kernel(), self.body(name), None, &mut found);
        found
    }

    /// Which of the covers moves through memory element by element, where most work is.
    pub(super) fn along_rows(&self, covers: &[Cover]) -> usize {
        let parts = Reader::new(self.kernel(), self.params).parts();
        let mut scores = vec![0.0; covers.len()];
        self.score(&parts, covers, &mut Vec::new(), &mut scores);
        let best = |a: &usize, b: &usize| scores[*a].total_cmp(&scores[*b]);
        (0..covers.len()).max_by(best).unwrap_or(0)
    }

    fn score(&self, parts: &[Part], covers: &[Cover], around: &mut Vec<Level>, scores: &mut [f64]) {
        for part in parts {
            match part {
                Part::Loop(level, body) => {
                    around.push(level.clone());
                    self.score(body, covers, around, scores);
                    around.pop();
                }
                Part::Insn(work) => {
                    let times: f64 = around.iter().map(|l| l.trips.max(1.0)).product();
                    for (cover, score) in covers.iter().zip(scores.iter_mut()) {
                        let name = |l: &&Level| cover.contains(&self.kernel().inames[l.iname].name);
                        let Some(level) = around.iter().find(name) else { continue };
                        *score += times * coalesced(work, level);
                    }
                }
            }
        }
    }
}

/// How well neighbouring iterations of a loop use the lines of memory.
pub(super) fn coalesced(work: &Work, level: &Level) -> f64 {
    let all = work.reads.iter().chain([&work.write]);
    all.map(|touched| match touched.stride(level.iname).abs() {
        s if s == touched.bytes => 1.0,
        0.0 => 0.0,
        _ => -1.0,
    })
    .sum()
}
