//! Loops over lanes, and over the work-items of a group, in vectors of C's compilers.
//!
//! The vectors are those of GCC and Clang (`vector_size`), which have operators. Compilers keep a
//! variable of such a type in a register over a loop; of a loop over lanes in that loop they make
//! a load and a store in each iteration (GCC 12; sums of the 3-D P3 Laplace action, 8 lanes of
//! AVX-512: 0.70 times FFCx's speed as loops, 1.94 as vectors, 2026-11-22). BP3.5 at N = 7, sums in
//! rows of eight nodes: 12.1 ms as loops with `omp simd`, 8.4 ms as vectors, and 6.7 and 6.8 ms by
//! Clang 19 (4,096 elements, one thread, AMD EPYC with AVX-512, 2026-11-30).
//!
//! The loop goes from vector to vector, as many lanes at once as the processor has for which the
//! source is compiled: compilers write it out. Vectors wider than that they keep in memory (the
//! same with AVX2 alone: 23.6 ms in vectors of 64 bytes, 11.1 in those of 32, 15.1 as loops).
//!
//! A loop of a number of iterations becomes vectors if all that it does is arithmetic on reals of
//! one type, which lanes find next to each other where they store them. What they find elsewhere is
//! loaded for one lane after the other. Conditions of lanes, scatters and functions of integers
//! stay loops.

use super::host::is_width;
use super::offset::{joined, mentions, reads, slope, type_of};
use super::symbols::{Space, Symbols};
use super::touched::Touched;
use crate::ast::{Block, Declare, Expr, Extent, For, LoopKind, Name, Op, Place, Stmt};
use crate::notes::NoVectors;
use kingpost_ir::{InsnId, ScalarType, UpdateOp};
use std::collections::{BTreeMap, BTreeSet};

/// Largest vector, in bytes: AVX-512.
const MAX_BYTES: i64 = 64;

/// What became of loops with the tag `vector`, by their names.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) written: BTreeSet<Name>,
    pub(super) left: BTreeMap<Name, NoVectors>,
}

/// Writes the loops over work-items and over lanes of a block as vectors where they are arithmetic.
/// What is left is asked of the compiler where lanes share no private memory, else it is a loop.
pub(super) fn vectorise(block: &mut Block, symbols: &Symbols, outcome: &mut Outcome) {
    for mut stmt in std::mem::take(block) {
        if let Stmt::For(f) = &stmt
            && matches!(f.kind, LoopKind::WorkItems | LoopKind::Vector)
        {
            match vectors(f, symbols) {
                Ok(code) => {
                    outcome.written.insert(f.name.clone());
                    block.extend(code);
                    continue;
                }
                Err(why) if f.kind == LoopKind::Vector => _ = outcome.left.insert(f.name.clone(), why),
                Err(_) => {}
            }
        }
        if let Stmt::For(f) = &mut stmt
            && f.kind == LoopKind::Vector
            && !are_apart(f, symbols)
        {
            f.kind = LoopKind::Sequential;
        }
        if let Some(body) = stmt.body_mut() {
            vectorise(body, symbols, outcome);
        }
        block.push(stmt);
    }
}

/// Whether lanes keep to private memory of their own: placement takes it for theirs, and here it is
/// one memory where it is declared outside the loop.
fn are_apart(f: &For, symbols: &Symbols) -> bool {
    Touched::by(&f.body).is_some_and(|touched| {
        touched.scalars_from_outside().is_empty() && touched.arrays_per_lane(&f.name, symbols).is_ok()
    })
}

/// The loop in vectors of at most the largest size, what is left of it in smaller ones, and at most
/// one iteration as it was.
fn vectors(f: &For, symbols: &Symbols) -> Result<Block, NoVectors> {
    let (Expr::Int(first, _), Expr::Int(end, _), 1) = (&f.lower, &f.upper, f.step) else {
        return Err(NoVectors::Ends);
    };
    let length = end.saturating_sub(*first);
    if length < 2 || (f.kind == LoopKind::WorkItems && !is_width(*end)) {
        return Err(NoVectors::Length);
    }
    let ty = type_of_stores(&f.body, symbols).ok_or(NoVectors::Apart)?;
    if f.kind == LoopKind::Vector {
        check_private(f, length, symbols)?;
    }
    let (mut code, mut start) = (Block::new(), *first);
    let mut width = MAX_BYTES / ty.bytes().cast_signed();
    while start < *end {
        let stop = end - (end - start) % width;
        let part = |step, kind, body| {
            let (lower, upper) = (Expr::int(start), Expr::int(stop));
            Stmt::For(For { lower, upper, step, kind, body, ..f.clone() })
        };
        if width == 1 {
            code.push(part(1, LoopKind::Sequential, f.body.clone()));
        } else if start < stop {
            let lanes = u8::try_from(width).map_err(|_| NoVectors::Length)?;
            let (held, entries) = (BTreeSet::new(), BTreeMap::new());
            let body = Pieces { item: &f.name, ty, lanes, symbols, held, entries }.block(&f.body)?;
            code.push(part(width, LoopKind::Pieces(ty, lanes), body));
        }
        (start, width) = (stop, width / 2);
    }
    Ok(code)
}

/// The type of the first real that a block declares or stores.
fn type_of_stores(block: &Block, symbols: &Symbols) -> Option<ScalarType> {
    let here = |stmt: &Stmt| match stmt {
        Stmt::Declare(d) => Some(d.ty),
        Stmt::Assign { place, .. } => symbols.get(&place.name).map(|(ty, _)| *ty),
        Stmt::If { body, .. } | Stmt::For(For { body, .. }) => type_of_stores(body, symbols),
        Stmt::Comment(_) | Stmt::Atomic(_) | Stmt::Intrinsic(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => {
            None
        }
    };
    block.iter().filter_map(here).find(|ty| matches!(ty, ScalarType::F32 | ScalarType::F64))
}

/// Checks that no lane writes an element of a private array that another one touches: placement
/// takes private memory that lanes use again for a lane's own.
fn check_private(f: &For, length: i64, symbols: &Symbols) -> Result<(), NoVectors> {
    let touched = Touched::by(&f.body).ok_or(NoVectors::Inside)?;
    for (name, offsets) in touched.written_arrays() {
        if symbols.get(name).is_some_and(|(_, space)| *space != Space::Private) {
            continue;
        }
        let starts: Option<Vec<(Expr, i64)>> = offsets.iter().map(|e| first(e, &f.name, symbols)).collect();
        let apart = |(a, b): (&(Expr, i64), &(Expr, i64))| {
            a.0 == b.0 && (a.1 == b.1 || a.1.abs_diff(b.1) >= length.unsigned_abs())
        };
        let all = |starts: Vec<(Expr, i64)>| starts.iter().all(|a| starts.iter().all(|b| apart((a, b))));
        let moves = offsets.iter().any(|e| touched.changes(e));
        if moves || !starts.is_some_and(all) {
            return Err(NoVectors::Shared { variable: name.to_string() });
        }
    }
    Ok(())
}

/// Where a lane 0 would find its element, as a sum and a number, if the next one's lies next to it.
fn first(offset: &Expr, item: &Name, symbols: &Symbols) -> Option<(Expr, i64)> {
    if slope(offset, item, symbols) != Some(1) {
        return None;
    }
    let mut offset = offset.clone();
    offset.for_each_mut(&mut |e| {
        if *e == Expr::var(item) {
            *e = Expr::int(0);
        }
    });
    // a literal stands at the end
    let sum = joined(offset, item);
    if let Expr::Int(c, _) = sum {
        return Some((Expr::int(0), c));
    }
    if let Expr::Binary(op @ (Op::Add | Op::Sub), sum, last) = &sum
        && let Expr::Int(c, _) = **last
    {
        return Some(((**sum).clone(), if *op == Op::Add { c } else { -c }));
    }
    Some((sum, 0))
}

/// Statements of a loop, written for as many lanes at once as a vector has.
struct Pieces<'a> {
    /// The loop's variable: that of the first lane.
    item: &'a Name,
    /// What vectors are of.
    ty: ScalarType,
    /// The maximum of their lanes.
    lanes: u8,
    symbols: &'a Symbols,
    /// Variables of the body that hold vectors.
    held: BTreeSet<Name>,
    /// Integers of the body that differ among lanes, such as entries of maps: what they stand for.
    entries: BTreeMap<Name, Expr>,
}

impl Pieces<'_> {
    fn block(&mut self, block: &Block) -> Result<Block, NoVectors> {
        let mut code = Block::new();
        for stmt in block {
            code.extend(self.stmt(stmt)?);
        }
        Ok(code)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Option<Stmt>, NoVectors> {
        Ok(Some(match stmt {
            Stmt::Comment(_) => stmt.clone(),
            Stmt::Declare(d) => return Ok(self.declare(d)?.map(Stmt::Declare)),
            Stmt::Assign { place, op, value, origin } => self.assign(place, *op, value, *origin)?,
            Stmt::If { condition, body } if !self.differs(condition) => {
                Stmt::If { condition: condition.clone(), body: self.block(body)? }
            }
            Stmt::For(f) if !self.differs(&f.lower) && !self.differs(&f.upper) => {
                Stmt::For(For { body: self.block(&f.body)?, ..f.clone() })
            }
            Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::If { .. }
            | Stmt::For(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => return Err(NoVectors::Inside),
        }))
    }

    fn declare(&mut self, d: &Declare) -> Result<Option<Declare>, NoVectors> {
        let same = d.constant && d.value.as_ref().is_some_and(|v| !self.differs(v));
        if same && d.len.is_none() {
            return Ok(Some(d.clone()));
        }
        if let (true, true, Some(value), None) = (d.constant, d.ty.is_exact(), &d.value, d.len) {
            let value = self.inlined(value);
            self.entries.insert(d.name.clone(), value);
            return Ok(None);
        }
        if d.len.is_some() || d.ty != self.ty {
            return Err(NoVectors::Shared { variable: d.name.to_string() });
        }
        let value = d.value.as_ref().map(|v| self.vector(v)).transpose()?;
        self.held.insert(d.name.clone());
        Ok(Some(Declare { value, lanes: self.lanes, ..d.clone() }))
    }

    fn assign(
        &self,
        place: &Place,
        op: Option<UpdateOp>,
        value: &Expr,
        origin: Option<InsnId>,
    ) -> Result<Stmt, NoVectors> {
        let place = match &place.offset {
            None if self.held.contains(&place.name) => place.clone(),
            None => return Err(NoVectors::Shared { variable: place.name.to_string() }),
            Some(_) => self.neighbours(place).ok_or(NoVectors::Apart)?,
        };
        match op {
            None | Some(UpdateOp::Add | UpdateOp::Mul) => {
                Ok(Stmt::Assign { place, op, value: self.vector(value)?, origin })
            }
            Some(UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_)) => {
                Err(NoVectors::Inside)
            }
        }
    }

    /// Whether an expression may have different values in different lanes.
    fn differs(&self, e: &Expr) -> bool {
        mentions(e, self.item)
            || reads(e, &|name| self.held.contains(name) || self.entries.contains_key(name))
    }

    /// The elements of all lanes, if they lie next to each other.
    fn neighbours(&self, place: &Place) -> Option<Place> {
        let offset = place.offset.as_deref()?;
        let (ty, _) = self.symbols.get(&place.name)?;
        let moves = reads(offset, &|name| self.held.contains(name) || self.entries.contains_key(name));
        let beside = !moves && slope(offset, self.item, self.symbols) == Some(1);
        (*ty == self.ty && beside)
            .then(|| Place { extent: Extent::Vector(self.ty, self.lanes), ..place.clone() })
    }

    /// The values of all lanes as a vector.
    fn vector(&self, e: &Expr) -> Result<Expr, NoVectors> {
        let value = self.value(e)?;
        let same = !self.differs(e);
        Ok(if same { Expr::Vector { ty: self.ty, width: self.lanes, lanes: vec![value] } } else { value })
    }

    /// The values of all lanes as a vector, or the one that all have.
    fn value(&self, e: &Expr) -> Result<Expr, NoVectors> {
        if !self.differs(e) {
            return self.same(e).ok_or(NoVectors::Inside);
        }
        match e {
            Expr::Load(place) if place.offset.is_none() && self.held.contains(&place.name) => Ok(e.clone()),
            Expr::Load(place) => match self.neighbours(place) {
                Some(vector) => Ok(Expr::Load(vector)),
                None => self.listed(e).ok_or(NoVectors::Apart),
            },
            Expr::Neg(a) => Ok(Expr::Neg(Box::new(self.value(a)?))),
            Expr::Binary(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div), a, b) => {
                Ok(Expr::binary(*op, self.value(a)?, self.value(b)?))
            }
            Expr::Call(f, ty, args) if *ty == self.ty && !f.is_external() => {
                let args = args.iter().map(|a| self.vector(a)).collect::<Result<_, _>>()?;
                Ok(Expr::LanesCall(*f, *ty, self.lanes, args))
            }
            Expr::Int(..)
            | Expr::Real(..)
            | Expr::Bool(_)
            | Expr::Hardware { .. }
            | Expr::Not(_)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::IntCall(..)
            | Expr::LanesCall(..)
            | Expr::Half(..)
            | Expr::Complex(..)
            | Expr::Pair(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Vector { .. } => Err(NoVectors::Inside),
        }
    }

    /// A value that all lanes have, of the type of the vectors, as C converts it.
    fn same(&self, e: &Expr) -> Option<Expr> {
        let ty = type_of(e, &|name| self.symbols.get(name).map(|(ty, _)| *ty))?;
        let converts = ty.is_exact() || (ty, self.ty) == (ScalarType::F32, ScalarType::F64);
        match ty == self.ty {
            true => Some(e.clone()),
            false => converts.then(|| Expr::Cast(self.ty, Box::new(e.clone()))),
        }
    }

    /// The elements that lanes find somewhere.
    fn listed(&self, e: &Expr) -> Option<Expr> {
        let is_vector_type =
            |place: &Place| self.symbols.get(&place.name).is_some_and(|(ty, _)| *ty == self.ty);
        let Expr::Load(place) = e else { return None };
        if !is_vector_type(place) || reads(e, &|name| self.held.contains(name)) {
            return None;
        }
        let e = self.inlined(e);
        let lanes = (0..self.lanes).map(|k| self.lane(&e, k)).collect();
        Some(Expr::Vector { ty: self.ty, width: self.lanes, lanes })
    }

    /// An expression in which integers that differ among lanes are what they stand for.
    fn inlined(&self, e: &Expr) -> Expr {
        let mut e = e.clone();
        e.for_each_mut(&mut |e| {
            if let Expr::Load(place) = e
                && let Some(entry) = self.entries.get(&place.name)
            {
                *e = entry.clone();
            }
        });
        e
    }

    /// An expression for one lane.
    fn lane(&self, e: &Expr, k: u8) -> Expr {
        let mut e = e.clone();
        let index = Expr::var(self.item);
        e.for_each_mut(&mut |e| {
            if *e == index && k > 0 {
                *e = Expr::binary(Op::Add, index.clone(), Expr::int(k.into()));
            }
            if let Expr::Load(place) = e
                && let Some(offset) = &mut place.offset
            {
                **offset = joined((**offset).clone(), self.item);
            }
        });
        e
    }
}
