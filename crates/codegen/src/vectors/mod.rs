//! Loops over lanes as vectors: for C see `pieces`, for CUDA and OpenCL what follows.
//!
//! Lanes do not depend on each other (placement proves it): a statement may run for all lanes of a
//! vector before the next one does. Elements that lie next to each other are loaded and stored at
//! once. OpenCL calculates with vectors; CUDA's have no operators, so that their lanes are
//! calculated one by one. What differs among lanes in another way (a map, a stride, a guard, an
//! atomic update) is done for one lane after the other. A loop where nothing can be loaded or
//! stored at once stays a loop.
//!
//! CUDA takes vectors of at most 16 bytes, which start at multiples of their size: the offset of
//! the first lane has to be a multiple of their number whatever its variables are, and arrays start
//! at multiples of 16 bytes. OpenCL's `vload` and `vstore` ask for nothing.

pub(crate) mod host;
mod lanes;
pub(crate) mod offset;
mod pieces;
mod symbols;
mod touched;
mod transpose;

use crate::ast::names_in;
use crate::ast::{Block, Expr, For, LoopKind, Name, Stmt};
use crate::declare::{Private, declare, starts_defined};
use crate::names::Names;
use crate::notes::{NoVectors, Note};
use crate::print::Function;
use crate::target::Vectors;
use lanes::{Lanes, Written};
use offset::Known;
use std::collections::{BTreeMap, BTreeSet};
use symbols::{Space, Symbols};
use touched::Touched;

/// Writes the loops over lanes of a function as vectors, where the target has them. `known` says what
/// parameters are multiples of. Returns a note of each loop that stays scalar.
pub(crate) fn vectorise(
    function: &mut Function,
    target: Vectors,
    mut names: Names,
    mut known: Known,
) -> Vec<Note> {
    if target == Vectors::OfCompilers {
        let symbols = symbols(function);
        transpose::transpose(&mut function.body, &symbols, &mut names);
        let mut outcome = pieces::Outcome::default();
        pieces::vectorise(&mut function.body, &symbols, &mut outcome);
        outcome.left.retain(|name, _| !outcome.written.contains(name));
        let note = |(name, why): (Name, NoVectors)| Note::LeftToCompiler { iname: name.to_string(), why };
        return outcome.left.into_iter().map(note).collect();
    }
    if !function.body.iter().any(has_lanes) {
        return Vec::new();
    }
    let symbols = symbols(function);
    let aligned: BTreeMap<_, _> = function.aligned.iter().cloned().collect();
    offset::learn(&function.body, &mut known, &symbols);
    let (left, scalar, written) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    let mut pass = Pass { target, symbols, known, names, aligned, left, scalar, written };
    pass.block(&mut function.body);
    let mut used = BTreeSet::new();
    names_in(&function.body, &mut used);
    pass.left.retain(|name| !used.contains(name));
    drop_declarations(&mut function.body, &pass.left);
    for p in &mut function.params {
        p.aligned = p.aligned.max(pass.aligned.get(&p.name).copied());
    }
    let asked = |name: &Name| function.aligned.iter().any(|(given, _)| given == name);
    let local = |name: &Name| pass.symbols.get(name).is_some_and(|(_, space)| *space == Space::Local);
    let aligned = pass.aligned.iter().filter(|(name, _)| local(name) || asked(name));
    function.aligned = aligned.map(|(name, bytes)| (name.clone(), *bytes)).collect();
    // of a loop that is written once more under guards, one version in vectors is enough
    pass.scalar.retain(|name, _| !pass.written.contains(name));
    let note = |(name, why): (Name, NoVectors)| Note::ScalarLoop { iname: name.to_string(), why };
    pass.scalar.into_iter().map(note).collect()
}

fn has_lanes(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(f) if f.kind == LoopKind::Vector)
        || stmt.body().is_some_and(|b| b.iter().any(has_lanes))
}

fn symbols(function: &Function) -> Symbols {
    let space = |buffer: Option<bool>| match buffer {
        None => Space::Private,
        Some(true) => Space::Input,
        Some(false) => Space::Global,
    };
    let params = function.params.iter().map(|p| (p.name.clone(), (p.ty, space(p.buffer))));
    let constants = function.constants.iter().map(|c| (c.name.clone(), (c.ty, Space::Constant)));
    let mut symbols: Symbols = params.chain(constants).collect();
    declared(&function.body, &mut symbols);
    symbols
}

fn declared(block: &Block, symbols: &mut Symbols) {
    for stmt in block {
        if let Stmt::Declare(d) = stmt {
            let space = if d.local { Space::Local } else { Space::Private };
            symbols.insert(d.name.clone(), (d.ty, space));
        }
        if let Stmt::For(f) = stmt {
            symbols.insert(f.name.clone(), (f.ty, Space::Private));
        }
        stmt.body().into_iter().for_each(|b| declared(b, symbols));
    }
}

fn drop_declarations(block: &mut Block, names: &BTreeSet<Name>) {
    block.retain(|stmt| !matches!(stmt, Stmt::Declare(d) if names.contains(&d.name)));
    block.iter_mut().filter_map(Stmt::body_mut).for_each(|b| drop_declarations(b, names));
}

struct Pass {
    target: Vectors,
    symbols: Symbols,
    known: Known,
    names: Names,
    /// Arrays that are accessed by vectors that need it, and the bytes of the largest one.
    aligned: BTreeMap<Name, u64>,
    /// Variables that vectors stand for in a loop.
    left: BTreeSet<Name>,
    /// Loops that stay as they are, and why.
    scalar: BTreeMap<Name, NoVectors>,
    /// Loops that are written in vectors.
    written: BTreeSet<Name>,
}

/// The body of a loop, ready to be written in vectors.
struct Prepared {
    body: Block,
    /// Private arrays of which every lane has its own.
    per_lane: BTreeSet<Name>,
    /// The loop's own copies of scalars from outside, and the scalars.
    copies: Vec<(Name, Name)>,
}

impl Pass {
    fn block(&mut self, block: &mut Block) {
        for mut stmt in std::mem::take(block) {
            if let Stmt::For(f) = &stmt
                && f.kind == LoopKind::Vector
            {
                match self.vectors(f) {
                    Ok(code) => {
                        self.written.insert(f.name.clone());
                        block.extend(code);
                        continue;
                    }
                    Err(why) => _ = self.scalar.insert(f.name.clone(), why),
                }
            }
            if let Some(body) = stmt.body_mut() {
                self.block(body);
            }
            block.push(stmt);
        }
    }

    /// The loop in vectors of the width that lets most accesses be vectors; of several, the
    /// largest. Of several reasons against it, that against the smallest.
    fn vectors(&mut self, f: &For) -> Result<Block, NoVectors> {
        let (Expr::Int(first, _), Expr::Int(end, _), 1) = (&f.lower, &f.upper, f.step) else {
            return Err(NoVectors::Ends);
        };
        let prepared = self.prepared(f)?;
        let widths = [2, 4, 8, 16].into_iter().filter(|w| (end - first) % i64::from(*w) == 0);
        let (mut best, mut against) = (None, None);
        for width in widths {
            match self.written(f, &prepared, width) {
                Ok(written) => {
                    written.names.iter().for_each(|name| self.names.give_back(name));
                    best = best.max(Some((written.vectors, width)));
                }
                Err(why) => against = against.or(Some(why)),
            }
        }
        let written = match best {
            Some((_, width)) => self.written(f, &prepared, width),
            None => Err(against.unwrap_or(NoVectors::Length)),
        };
        let written = written.inspect_err(|_| {
            prepared.copies.iter().for_each(|(own, _)| self.names.give_back(own));
        })?;
        self.left.extend(prepared.copies.into_iter().map(|(_, name)| name));
        for (name, bytes) in written.aligned {
            let most = self.aligned.entry(name).or_default();
            *most = bytes.max(*most);
        }
        Ok(written.code)
    }

    fn written(&mut self, f: &For, prepared: &Prepared, width: u8) -> Result<Written, NoVectors> {
        let (known, names) = ((self.target, &self.symbols, &self.known), &mut self.names);
        Lanes::new(known, names, f, width, &prepared.per_lane).write(&prepared.body)
    }

    /// The body with its own copies of scalars from outside that it writes: no value leaves or
    /// enters a lane by them.
    ///
    /// # Errors
    /// Lanes share more than vectors can keep apart.
    fn prepared(&mut self, f: &For) -> Result<Prepared, NoVectors> {
        let mut body = f.body.clone();
        let touched = Touched::by(&f.body).ok_or(NoVectors::Inside)?;
        let per_lane = touched.arrays_per_lane(&f.name, &self.symbols)?;
        let replaced = |name: &Name| {
            let shared = || NoVectors::Shared { variable: name.to_string() };
            self.replaceable(name, &f.body).ok_or_else(shared)
        };
        let outside: Vec<Private> =
            touched.scalars_from_outside().iter().map(replaced).collect::<Result<_, _>>()?;
        let mut copies = Vec::new();
        for var in outside {
            let own = self.names.fresh(&var.name);
            self.symbols.insert(own.clone(), (var.ty, Space::Private));
            rename(&mut body, &var.name, &own);
            copies.push((own.clone(), var.name.clone()));
            declare(&mut body, &[Private { name: own, ..var }]);
        }
        Ok(Prepared { body, per_lane, copies })
    }

    /// A scalar to which every iteration gives a value before it reads it.
    fn replaceable(&self, name: &Name, body: &Block) -> Option<Private> {
        let (ty, space) = *self.symbols.get(name)?;
        let var = Private { name: name.clone(), ty, len: None };
        (space == Space::Private && starts_defined(body, &var)).then_some(var)
    }
}

fn rename(block: &mut Block, from: &Name, to: &Name) {
    for stmt in block {
        for e in stmt.expressions_mut() {
            e.for_each_mut(&mut |e| {
                if let Expr::Load(place) = e
                    && place.name == *from
                {
                    place.name = to.clone();
                }
            });
        }
        if let Some(place) = stmt.place_mut().filter(|place| place.name == *from) {
            place.name = to.clone();
        }
        stmt.body_mut().into_iter().for_each(|b| rename(b, from, to));
    }
}
