//! Products of matrices in tiles: a group computes a tile of the result from tiles of the operands in local
//! memory, each of its work-items a block of places in registers. Columns that become rows go through local
//! memory as well.

use super::spread::{Launch, Site};
use crate::blocks::Sums;
use crate::draft::{Draft, Tried};
use kingpost_ir::{Access, AddressSpace, Atom, AxisTag, Node};
use kingpost_transforms::ScheduleSteps;
use kingpost_transforms::primitives::{
    BufferWrites, InterchangeInames, PadArray, PrefetchArray, SplitArrayAxis, SplitIname, Tag,
};

/// A tile of a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    /// Work-items of a group along a row of the tile, and across its rows.
    pub(super) items: [i64; 2],
    /// Places of a work-item in these directions.
    pub(super) block: [i64; 2],
    /// Terms of the sums that are in local memory at a time.
    pub(super) terms: i64,
}

impl Tiling {
    pub(super) const ALL: [(&'static str, Self); 5] = [
        ("tiles of 64 by 64", Self { items: [16, 16], block: [4, 4], terms: 16 }),
        ("tiles of 64 by 64, 8 rows each", Self { items: [16, 8], block: [4, 8], terms: 16 }),
        ("tiles of 32 by 64", Self { items: [16, 16], block: [4, 2], terms: 16 }),
        ("tiles of 32 by 32, 32 terms", Self { items: [16, 16], block: [2, 2], terms: 32 }),
        ("tiles of 32 by 32", Self { items: [16, 16], block: [2, 2], terms: 16 }),
    ];
}

/// Rows that work-items have at a time of a square whose columns are read.
const ROWS: i64 = 8;

/// Two loops around a statement that reads columns.
struct Turn {
    across: String,
    along: String,
    statement: String,
}

/// A loop of a tile: blocks of work-items, written out, and the work-items themselves.
struct Places {
    blocks: Option<String>,
    items: String,
}

impl Draft<'_> {
    /// Three loops around nothing but an update that sums along one of them, with the loops around.
    fn product(&self, site: &Site) -> Option<(Vec<String>, Sums)> {
        let [node @ Node::Loop(..)] = self.statements(site) else { return None };
        let mut nest = self.perfect_nest(node);
        let inner = nest.split_off(nest.len().checked_sub(3)?);
        Some((nest, self.sums(&inner)?))
    }

    /// Whether a launch is a product of matrices, or turns one.
    pub(super) fn has_tiles(&self, launch: &Launch) -> bool {
        let Launch { site, covers } = launch;
        covers.len() > 1 && (self.product(site).is_some() || self.turn(site).is_some())
    }

    /// Computes the tiles of a result, each on a group.
    ///
    /// # Errors
    /// A step that is refused.
    pub(super) fn tile(&mut self, launch: &Launch, tiling: &Tiling) -> Tried {
        if let Some((around, sums)) = self.product(&launch.site) {
            return self.tile_product(&around, sums, tiling);
        }
        self.turn(&launch.site).map_or(Ok(()), |turn| self.tile_turn(turn, tiling.items[0] * tiling.block[0]))
    }

    /// Products of further loops around are on the next axis.
    fn tile_product(&mut self, around: &[String], sums: Sums, tiling: &Tiling) -> Tried {
        let Tiling { items, block, terms } = *tiling;
        let Sums { summed, along, across, statement, var } = sums;
        self.schedule.reorder([&across, &along, &summed])?;
        let [row_tiles, rows] = self.make(SplitIname::new(&across, items[1] * block[1]))?;
        let [tiles, places] = self.make(SplitIname::new(&along, items[0] * block[0]))?;
        self.make(InterchangeInames::new(rows.name(), tiles.name()))?;
        let [term_tiles, terms] = self.make(SplitIname::new(&summed, terms))?;
        for inner in [&term_tiles, &terms] {
            self.make(InterchangeInames::new(places.name(), inner.name()))?;
            self.make(InterchangeInames::new(rows.name(), inner.name()))?;
        }
        let derived = |name: &str| {
            let of = |verb: &str| (0..2).map(move |k| format!("{verb}_{name}_{k}")).collect::<Vec<_>>();
            [of("start"), of("store"), vec![format!("start_{name}"), format!("store_{name}")]].concat()
        };
        let sum = self.schedule.fresh_with(&format!("{var}_sum"), derived);
        let held = BufferWrites::new(&var, tiles.name(), AddressSpace::Private).into_temporary(&sum);
        let held = self.make(held)?;
        let held: Vec<&str> = held.loops.iter().map(|l| l.name()).collect();
        let each = |k: usize| held.iter().copied().skip(k).step_by(2).map(str::to_owned);
        let sides = [
            (rows.name().to_owned(), each(0).collect::<Vec<_>>(), items[1], block[1]),
            (places.name().to_owned(), each(1).collect(), items[0], block[0]),
        ];
        let mut split: Vec<Vec<Places>> = Vec::new();
        for (l, others, items, block) in &sides {
            let all = std::iter::once(l).chain(others);
            split.push(all.map(|l| self.split_places(l, *items, *block)).collect::<Tried<_>>()?);
        }
        // the axis further right first: the other one keeps its number
        for axis in [1, 0] {
            let (_, _, items, block) = &sides[axis];
            if *block > 1 {
                self.make(SplitArrayAxis::new(&sum, axis as u32, *items))?;
            }
        }
        if let Some(outer) = around.last() {
            self.make(Tag::new(outer, AxisTag::Group(2)))?;
        }
        self.make(Tag::new(row_tiles.name(), AxisTag::Group(1)))?;
        self.make(Tag::new(tiles.name(), AxisTag::Group(0)))?;
        for (axis, side) in [1_u8, 0].into_iter().zip(&split) {
            self.make(Tag::all(side.iter().map(|l| l.items.clone()), AxisTag::Local(axis)))?;
        }
        for side in split {
            let blocks: Vec<String> = side.into_iter().filter_map(|l| l.blocks).collect();
            if !blocks.is_empty() {
                self.make(Tag::all(blocks, AxisTag::Unrolled))?;
            }
        }
        self.hold_operands(&statement, term_tiles.name(), terms.name(), &items)
    }

    /// Two loops around an instruction whose rows are the columns of what it reads.
    fn turn(&self, site: &Site) -> Option<Turn> {
        let kernel = self.kernel();
        let [node @ Node::Loop(..)] = self.statements(site) else { return None };
        let [a, b] = <[String; 2]>::try_from(self.perfect_nest(node)).ok()?;
        let [Node::Insn(insn)] = self.body(&b) else { return None };
        let insn = &kernel.insns[*insn];
        let moves = |access: &Access, name: &str| {
            let (row, iname) = (access.index.last()?.as_affine()?, kernel.iname(name)?);
            (row.coefficient(&Atom::Iname(iname)) == 1).then_some(())
        };
        let (across, along) = if moves(&insn.lhs, &b).is_some() { (a, b) } else { (b, a) };
        moves(&insn.lhs, &along)?;
        let turned = insn.reads().into_iter().any(|access| moves(access, &across).is_some());
        turned.then(|| Turn { across, along, statement: insn.name.clone() })
    }

    /// Reads rows of a square of columns into local memory.
    fn tile_turn(&mut self, turn: Turn, side: i64) -> Tried {
        self.schedule.reorder([&turn.across, &turn.along])?;
        let [row_tiles, rows] = self.make(SplitIname::new(&turn.across, side))?;
        let [tiles, places] = self.make(SplitIname::new(&turn.along, side))?;
        self.make(InterchangeInames::new(rows.name(), tiles.name()))?;
        let [rounds, items] = self.make(SplitIname::new(rows.name(), ROWS))?;
        let axes = [AxisTag::Group(1), AxisTag::Group(0), AxisTag::Local(1), AxisTag::Local(0)];
        for (l, axis) in [&row_tiles, &tiles, &items, &places].into_iter().zip(axes) {
            self.make(Tag::new(l.name(), axis))?;
        }
        let Some(across) = self.kernel().iname(items.name()) else { return Ok(()) };
        let in_rows = |access: &Access| access.index.last().is_some_and(|e| e.mentions(across));
        for (var, text) in self.reads_of(&turn.statement, in_rows) {
            self.hold(&var, text, tiles.name(), &[side, ROWS])?;
        }
        // without guards in whole squares, so that all stores are under way together
        self.make(Tag::new(rounds.name(), AxisTag::Unrolled))
    }

    /// Blocks of a loop for the work-items, which take turns so that neighbours are side by side.
    fn split_places(&mut self, name: &str, items: i64, block: i64) -> Tried<Places> {
        if block == 1 {
            return Ok(Places { blocks: None, items: name.to_owned() });
        }
        let [blocks, items] = self.make(SplitIname::new(name, items))?;
        Ok(Places { blocks: Some(blocks.name().to_owned()), items: items.name().to_owned() })
    }

    /// Keeps what a statement reads along the loop `along` in local memory, once an iteration of `at`.
    pub(super) fn hold_operands(&mut self, statement: &str, at: &str, along: &str, items: &[i64]) -> Tried {
        let Some(along) = self.kernel().iname(along) else { return Ok(()) };
        let moves = |access: &Access| access.index.iter().any(|e| e.mentions(along));
        for (var, text) in self.reads_of(statement, moves) {
            self.hold(&var, text, at, items)?;
        }
        Ok(())
    }

    /// Keeps what is read by a text in local memory. Rows are an element longer, so that neighbours in a
    /// column are in different banks.
    fn hold(&mut self, var: &str, text: String, at: &str, items: &[i64]) -> Tried {
        let derived = |name: &str| {
            let loops = ["_0", "_1", "_o", "_l0", "_l1"].map(|end| format!("{name}{end}"));
            [loops.to_vec(), vec![format!("fetch_{name}")]].concat()
        };
        let tile = self.schedule.fresh_with(&format!("{var}_tile"), derived);
        let step = PrefetchArray::new(var, at, AddressSpace::Local).into_temporary(&tile);
        let step = step.by_work_items(items.to_vec()).only_reads([text]);
        if let Err(refused) = self.make(step.clone()) {
            // a box may hold what has no value
            self.pass(refused)?;
            self.make(step.exactly())?;
        }
        let axes = self.kernel().var(&tile).map_or(0, |v| self.kernel().vars[v].shape.len());
        if axes > 1 { self.make(PadArray::new(&tile, axes as u32 - 1, 1)) } else { Ok(()) }
    }

    /// Some of what a statement reads of arrays in global memory: names and texts.
    pub(super) fn reads_of(
        &self,
        statement: &str,
        wanted: impl Fn(&Access) -> bool,
    ) -> Vec<(String, String)> {
        let kernel = self.kernel();
        let mut found: Vec<(String, String)> = Vec::new();
        for insn in kernel.insns.values().filter(|insn| insn.name == statement) {
            for access in insn.reads() {
                let var = &kernel.vars[access.var];
                let read = (var.name.clone(), kernel.show_access(access).to_string());
                if var.space == AddressSpace::Global && wanted(access) && !found.contains(&read) {
                    found.push(read);
                }
            }
        }
        found
    }
}
