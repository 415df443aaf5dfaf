//! What the body of a loop over lanes touches.

use super::offset::{reads, slope};
use super::symbols::{Space, Symbols};
use crate::ast::{Block, Expr, LoopKind, Name, Stmt};
use crate::notes::NoVectors;
use std::collections::{BTreeMap, BTreeSet};

/// What statements touch.
#[derive(Default)]
pub(super) struct Touched<'b> {
    declared: BTreeSet<Name>,
    /// Scalars that are written.
    scalars: BTreeSet<Name>,
    arrays: BTreeMap<Name, Accesses<'b>>,
    /// Variables of loops.
    loops: BTreeSet<Name>,
}

#[derive(Default)]
struct Accesses<'b> {
    offsets: Vec<&'b Expr>,
    written: bool,
}

impl<'b> Touched<'b> {
    /// What the block touches; none if it holds what cannot run lane by lane: a barrier, a call,
    /// other lanes.
    pub(super) fn by(block: &'b Block) -> Option<Self> {
        let mut touched = Self::default();
        touched.block(block).then_some(touched)
    }

    fn block(&mut self, block: &'b Block) -> bool {
        block.iter().all(|stmt| {
            for e in stmt.expressions() {
                self.reads(e);
            }
            match stmt {
                Stmt::Barrier(_) | Stmt::Intrinsic(_) => return false,
                Stmt::For(f) if f.kind != LoopKind::Sequential => return false,
                Stmt::For(f) => _ = self.loops.insert(f.name.clone()),
                Stmt::Declare(d) => _ = self.declared.insert(d.name.clone()),
                Stmt::Assign { .. } | Stmt::Atomic(_) => {}
                Stmt::Comment(_) | Stmt::If { .. } | Stmt::Iteration(_) => {}
            }
            if let Some(place) = stmt.place() {
                match &place.offset {
                    None => _ = self.scalars.insert(place.name.clone()),
                    Some(offset) => {
                        let accesses = self.arrays.entry(place.name.clone()).or_default();
                        accesses.offsets.push(offset);
                        accesses.written = true;
                    }
                }
            }
            stmt.body().is_none_or(|b| self.block(b))
        })
    }

    fn reads(&mut self, e: &'b Expr) {
        if let Expr::Load(place) = e
            && let Some(offset) = &place.offset
        {
            self.arrays.entry(place.name.clone()).or_default().offsets.push(offset);
        }
        e.operands().for_each(|o| self.reads(o));
    }

    /// Scalars that are written and not declared inside.
    pub(super) fn scalars_from_outside(&self) -> Vec<Name> {
        self.scalars.difference(&self.declared).cloned().collect()
    }

    /// Arrays that are written, and where they are accessed.
    pub(super) fn written_arrays(&self) -> impl Iterator<Item = (&Name, &[&'b Expr])> {
        self.arrays.iter().filter(|(_, a)| a.written).map(|(name, a)| (name, a.offsets.as_slice()))
    }

    /// Whether an expression reads what the statements change.
    pub(super) fn changes(&self, e: &Expr) -> bool {
        let own = |name: &Name| self.declared.contains(name) || self.scalars.contains(name);
        reads(e, &|name| own(name) || self.loops.contains(name))
    }

    /// The private arrays of which every lane has its own: declared inside, at offsets that are the
    /// same in all lanes. In any other one that is written, or declared inside, each lane must keep
    /// to one element that no other lane touches: placement takes private memory for a lane's own,
    /// so that nothing else keeps lanes apart.
    ///
    /// # Errors
    /// An array of which one does not.
    pub(super) fn arrays_per_lane(
        &self,
        index: &Name,
        symbols: &Symbols,
    ) -> Result<BTreeSet<Name>, NoVectors> {
        let mut per_lane = BTreeSet::new();
        for (name, accesses) in &self.arrays {
            let shared = || NoVectors::Shared { variable: name.to_string() };
            let (_, space) = symbols.get(name).ok_or_else(shared)?;
            let inside = self.declared.contains(name);
            if *space != Space::Private || !(inside || accesses.written) {
                continue;
            }
            let of_lane = |read: &Name| self.declared.contains(read) || self.scalars.contains(read);
            if accesses.offsets.iter().any(|e| reads(e, &of_lane)) {
                return Err(shared());
            }
            if inside && accesses.offsets.iter().all(|e| slope(e, index, symbols) == Some(0)) {
                per_lane.insert(name.clone());
                continue;
            }
            let one = accesses.offsets.windows(2).all(|pair| pair[0] == pair[1]);
            let own = |e: &Expr| {
                slope(e, index, symbols) == Some(1) && !reads(e, &|read| self.loops.contains(read))
            };
            if !one || !accesses.offsets.iter().all(|e| own(e)) {
                return Err(shared());
            }
        }
        Ok(per_lane)
    }
}
