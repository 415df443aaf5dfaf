//! Entries of maps are read once: those that do not depend on a loop before it, those that
//! neighbouring statements share before the first of them.
//!
//! A map is an integer array that the program only reads, so that no write can come in between. An
//! entry is read only where it was read before: it leaves a loop only if the loop surely runs, and
//! no condition.
//!
//! Registers: a loop for which more than [`LOOP_LIMIT`] entries would wait keeps them all inside
//! (the list of an unrolled loop would take a register an entry), and statements share an entry
//! only if the next one that needs it is at most [`REACH`] statements away.

use crate::ast::{Block, Declare, Expr, For, LoopKind, Name, Op, Place, Stmt};
use crate::names::Names;
use kingpost_ir::ScalarType;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of entries that wait before one loop.
const LOOP_LIMIT: usize = 8;
/// Maximum number of statements from one use of a shared entry to the next.
const REACH: usize = 8;

/// Reads the entries of `maps` (arrays by name, with the type of an element) once.
pub(crate) fn hoist(block: &mut Block, maps: &BTreeMap<Name, ScalarType>, names: &mut Names) {
    if !maps.is_empty() {
        Hoist { maps, names }.block(block);
    }
}

struct Hoist<'a> {
    maps: &'a BTreeMap<Name, ScalarType>,
    names: &'a mut Names,
}

/// An entry that several statements of a block use.
struct Shared {
    entry: Place,
    first: usize,
    last: usize,
    uses: usize,
    /// The variable that holds it, if the first statement declares one.
    held: Option<Name>,
}

impl Hoist<'_> {
    /// Outer loops first, so that an entry goes as far out as it may.
    fn block(&mut self, block: &mut Block) {
        for mut stmt in std::mem::take(block) {
            if let Stmt::For(f) = &mut stmt {
                block.extend(self.leave_loop(f));
            }
            if let Some(body) = stmt.body_mut() {
                self.block(body);
            }
            block.push(stmt);
        }
        self.share(block);
    }

    /// Takes the entries that do not depend on a loop out of it.
    fn leave_loop(&mut self, f: &mut For) -> Block {
        if !surely_runs(f) {
            return Block::new();
        }
        let mut changing = BTreeSet::from([f.name.clone()]);
        f.body.iter().for_each(|s| changes(s, &mut changing));
        let mut entries = Vec::new();
        self.certain_entries(&f.body, &mut |place| {
            let stays = !mentions(place, &changing);
            if stays && !entries.contains(place) {
                entries.push(place.clone());
            }
            stays
        });
        if entries.len() > LOOP_LIMIT {
            return Block::new();
        }
        let mut declared = Block::new();
        for entry in entries {
            declared.extend(self.put_before(&mut f.body, entry));
        }
        declared
    }

    /// Visits the entries that every run of the block reads; those inside an entry if `visit`
    /// refuses it.
    fn certain_entries(&self, block: &Block, visit: &mut dyn FnMut(&Place) -> bool) {
        for stmt in block {
            self.own_entries(stmt, visit);
            if let Stmt::For(f) = stmt
                && surely_runs(f)
            {
                self.certain_entries(&f.body, visit);
            }
        }
    }

    /// The same for what a statement itself evaluates.
    fn own_entries(&self, stmt: &Stmt, visit: &mut dyn FnMut(&Place) -> bool) {
        for e in stmt.expressions() {
            self.entries(e, visit);
        }
    }

    fn entries(&self, e: &Expr, visit: &mut dyn FnMut(&Place) -> bool) {
        if let Expr::Load(place) = e
            && place.offset.is_some()
            && self.maps.contains_key(&place.name)
            && visit(place)
        {
            return;
        }
        // What follows may not be evaluated.
        if let Expr::Select(first, ..) | Expr::Binary(Op::And | Op::Or, first, _) = e {
            return self.entries(first, visit);
        }
        e.operands().for_each(|o| self.entries(o, visit));
    }

    /// Lets the statements of a block share entries.
    fn share(&mut self, block: &mut Block) {
        let found = self.shared(block);
        let mut declared: BTreeMap<usize, Block> = BTreeMap::new();
        for Shared { entry, first, last, held, .. } in found {
            match held {
                Some(name) => {
                    block[first + 1..=last].iter_mut().for_each(|s| _ = replace(s, &entry, &name));
                }
                None => {
                    declared
                        .entry(first)
                        .or_default()
                        .extend(self.put_before(&mut block[first..=last], entry));
                }
            }
        }
        for (k, stmt) in std::mem::take(block).into_iter().enumerate() {
            block.extend(declared.remove(&k).unwrap_or_default());
            block.push(stmt);
        }
    }

    /// Entries with more than one use, in the order of their first ones.
    fn shared(&self, block: &Block) -> Vec<Shared> {
        let mut open: Vec<Shared> = Vec::new();
        let mut found = Vec::new();
        for (k, stmt) in block.iter().enumerate() {
            let closed = |s: &Shared| s.last + REACH < k;
            found.extend(open.extract_if(.., |s| closed(s)));
            self.own_entries(stmt, &mut |place| {
                match open.iter_mut().find(|s| s.entry == *place) {
                    Some(s) => (s.last, s.uses) = (k, s.uses + 1),
                    None => {
                        let held = self.holder(stmt, place);
                        open.push(Shared { entry: place.clone(), first: k, last: k, uses: 1, held });
                    }
                }
                true
            });
            let mut changing = BTreeSet::new();
            changes(stmt, &mut changing);
            found.extend(open.extract_if(.., |s| mentions(&s.entry, &changing)));
        }
        found.extend(open);
        found.retain(|s| s.uses > 1);
        found.sort_by_key(|s| s.first);
        found
    }

    /// The variable that a statement declares to hold an entry.
    fn holder(&self, stmt: &Stmt, entry: &Place) -> Option<Name> {
        let Stmt::Declare(d) = stmt else { return None };
        let same = matches!(&d.value, Some(Expr::Load(place)) if place == entry);
        (same && d.constant && self.maps.get(&entry.name) == Some(&d.ty)).then(|| d.name.clone())
    }

    /// Reads an entry from a variable in these statements; the declaration of that, if any reads
    /// it.
    fn put_before(&mut self, statements: &mut [Stmt], entry: Place) -> Option<Stmt> {
        let name = self.names.fresh(&format!("{}_entry", entry.name));
        let uses: usize = statements.iter_mut().map(|s| replace(s, &entry, &name)).sum();
        let ty = *self.maps.get(&entry.name)?;
        // An entry inside another one may have gone with that.
        (uses > 0).then_some(Stmt::Declare(Declare::constant(name, ty, Expr::Load(entry))))
    }
}

/// Whether a loop runs at least once whenever it is reached. The number of groups is not known.
fn surely_runs(f: &For) -> bool {
    f.kind != LoopKind::Groups && matches!((&f.lower, &f.upper), (Expr::Int(a, _), Expr::Int(b, _)) if a < b)
}

/// The names a statement gives values to, those inside included.
pub(crate) fn changes(stmt: &Stmt, names: &mut BTreeSet<Name>) {
    match stmt {
        Stmt::Declare(d) => names.extend([d.name.clone()]),
        Stmt::For(f) => names.extend([f.name.clone()]),
        Stmt::Assign { .. }
        | Stmt::Atomic(_)
        | Stmt::Comment(_)
        | Stmt::If { .. }
        | Stmt::Iteration(_)
        | Stmt::Intrinsic(_)
        | Stmt::Barrier(_) => names.extend(stmt.written().into_iter().cloned()),
    }
    stmt.body().into_iter().flatten().for_each(|s| changes(s, names));
}

fn mentions(entry: &Place, names: &BTreeSet<Name>) -> bool {
    let mut found = false;
    if let Some(e) = &entry.offset {
        e.for_each(&mut |e| found |= matches!(e, Expr::Load(place) if names.contains(&place.name)));
    }
    found
}

/// Reads the variable instead of the entry, in a statement and its body; how often.
fn replace(stmt: &mut Stmt, entry: &Place, name: &Name) -> usize {
    let mut uses = 0;
    for e in stmt.expressions_mut() {
        e.for_each_mut(&mut |e| {
            if matches!(e, Expr::Load(place) if place == entry) {
                *e = Expr::var(name);
                uses += 1;
            }
        });
    }
    uses + stmt.body_mut().into_iter().flatten().map(|s| replace(s, entry, name)).sum::<usize>()
}
