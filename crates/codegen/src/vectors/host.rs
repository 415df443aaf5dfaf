//! Loops over the work-items of a group, and loops over lanes, as vectors, for C.
//!
//! The vectors are those of GCC and Clang (`vector_size`), which have operators. Compilers keep a
//! variable of such a type in a register over a loop; of a loop over lanes in that loop they make
//! a load and a store in each iteration (GCC 12; sums of the 3-D P3 Laplace action, 8 lanes of
//! AVX-512: 0.70 times FFCx's speed as loops, 1.94 as vectors, 2026-11-22).
//!
//! A loop becomes vectors if all that it does is arithmetic on 64-bit reals that are private to a
//! work-item, and on neighbours in tables. Others stay loops: gathers, scatters, conditions, and
//! what has 32-bit reals, whose vectors have no operators with those of 64 bits.

use super::offset::{mentions, reads};
use crate::ast::{Block, Declare, Expr, Extent, For, LoopKind, Name, Op, Place, Stmt};
use kingpost_ir::{ScalarType, UpdateOp};
use std::collections::{BTreeMap, BTreeSet};

/// Largest vector, in bytes: AVX-512. Compilers split what the processor lacks.
const MAX_BYTES: u64 = 64;

/// The private arrays and the tables of a function in C, with the types of their elements.
type Arrays = BTreeMap<Name, ScalarType>;

/// Whether a group of that number of work-items is a vector of 64-bit reals.
pub(crate) fn is_width(extent: i64) -> bool {
    matches!(extent, 2 | 4 | 8)
}

/// Whether running a statement for a work-item that does not exist has no effect but on its own
/// private variables: a private real gets what arithmetic makes of private reals and uniform
/// values. `private` has the type of a private variable, `item` is the index of the work-item.
pub(crate) fn is_harmless(stmt: &Stmt, item: &Name, private: &dyn Fn(&Name) -> Option<ScalarType>) -> bool {
    let real = |name: &Name| private(name) == Some(ScalarType::F64);
    let uniform = |e: &Expr| !reads(e, &|name| name == item || private(name).is_some());
    match stmt {
        Stmt::Comment(_) => true,
        Stmt::Assign { place, op, value, .. } => {
            matches!(op, None | Some(UpdateOp::Add | UpdateOp::Mul))
                && real(&place.name)
                && place.offset.as_ref().is_none_or(|o| uniform(o))
                && is_arithmetic(value, &|place| {
                    place.name != *item
                        && (private(&place.name).is_none() || real(&place.name))
                        && place.offset.as_ref().is_none_or(|o| uniform(o))
                })
        }
        Stmt::Declare(_)
        | Stmt::Atomic(_)
        | Stmt::Intrinsic(_)
        | Stmt::If { .. }
        | Stmt::For(_)
        | Stmt::Iteration(_)
        | Stmt::Barrier(_) => false,
    }
}

/// Whether a value is made by arithmetic from literals and places that are allowed.
fn is_arithmetic(e: &Expr, allowed: &dyn Fn(&Place) -> bool) -> bool {
    match e {
        Expr::Real(..) => true,
        Expr::Load(place) => allowed(place),
        Expr::Neg(a) => is_arithmetic(a, allowed),
        Expr::Binary(Op::Add | Op::Sub | Op::Mul | Op::Div, a, b) => {
            is_arithmetic(a, allowed) && is_arithmetic(b, allowed)
        }
        Expr::Call(f, _, args) if !f.is_external() => args.iter().all(|a| is_arithmetic(a, allowed)),
        Expr::Int(..)
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
        | Expr::Vector { .. } => false,
    }
}

/// Writes the loops over work-items and over lanes of a block as vectors where they are arithmetic.
pub(crate) fn vectorise(block: &mut Block, tables: BTreeMap<Name, ScalarType>) {
    let mut arrays = tables;
    private_arrays(block, &mut arrays);
    in_block(block, &arrays);
}

fn private_arrays(block: &Block, arrays: &mut Arrays) {
    for stmt in block {
        if let Stmt::Declare(d) = stmt
            && d.len.is_some()
        {
            arrays.insert(d.name.clone(), d.ty);
        }
        stmt.body().into_iter().for_each(|b| private_arrays(b, arrays));
    }
}

fn in_block(block: &mut Block, arrays: &Arrays) {
    for mut stmt in std::mem::take(block) {
        if let Stmt::For(f) = &stmt
            && let Some(code) = vectors(f, arrays)
        {
            block.extend(code);
            continue;
        }
        if let Some(body) = stmt.body_mut() {
            in_block(body, arrays);
        }
        block.push(stmt);
    }
}

/// The body of a loop in vectors of all its lanes.
fn vectors(f: &For, arrays: &Arrays) -> Option<Block> {
    let (LoopKind::WorkItems | LoopKind::Vector, Expr::Int(0, _), Expr::Int(end, _), 1) =
        (f.kind, &f.lower, &f.upper, f.step)
    else {
        return None;
    };
    let width = u8::try_from(*end).ok().filter(|_| is_width(*end))?;
    let mut lanes =
        HostLanes { item: &f.name, width, arrays, held: BTreeSet::new(), shared: BTreeSet::new() };
    let body: Option<Block> = f.body.iter().map(|stmt| lanes.stmt(stmt)).collect();
    // names that the body declares are its own
    body.map(|body| vec![Stmt::If { condition: Expr::Bool(true), body }]).map(unwrapped)
}

/// A block without declarations needs no scope of its own.
fn unwrapped(block: Block) -> Block {
    match <[Stmt; 1]>::try_from(block) {
        Ok([Stmt::If { body, .. }]) if !body.iter().any(|s| matches!(s, Stmt::Declare(_))) => body,
        Ok([stmt]) => vec![stmt],
        Err(block) => block,
    }
}

struct HostLanes<'a> {
    item: &'a Name,
    width: u8,
    arrays: &'a Arrays,
    /// Variables of the body that hold vectors.
    held: BTreeSet<Name>,
    /// Variables of the body with one value for all lanes.
    shared: BTreeSet<Name>,
}

impl HostLanes<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Comment(_) => Some(stmt.clone()),
            Stmt::Declare(d) => self.declare(d).map(Stmt::Declare),
            Stmt::Assign { place, op, value, origin } => {
                if !matches!(op, None | Some(UpdateOp::Add | UpdateOp::Mul))
                    || self.shared.contains(&place.name)
                {
                    return None;
                }
                let (written, ty) = match &place.offset {
                    None => (self.held.contains(&place.name).then(|| place.clone())?, None),
                    Some(_) => self.neighbours(place).map(|(p, ty)| (p, Some(ty)))?,
                };
                let (value, varies) = self.value(value)?;
                let value = match (varies, ty) {
                    (true, _) => value,
                    (false, Some(ty)) => self.splat(value, ty)?,
                    (false, None) => return None,
                };
                Some(Stmt::Assign { place: written, op: *op, value, origin: *origin })
            }
            Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::If { .. }
            | Stmt::For(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => None,
        }
    }

    fn declare(&mut self, d: &Declare) -> Option<Declare> {
        if d.len.is_some() || d.local || !self.fits(d.ty) {
            return None;
        }
        let (value, varies) = match &d.value {
            None => (None, true),
            Some(value) => self.value(value).map(|(v, varies)| (Some(v), varies))?,
        };
        if !varies && d.constant {
            self.shared.insert(d.name.clone());
            return Some(Declare { value, ..d.clone() });
        }
        self.held.insert(d.name.clone());
        let value = match value {
            Some(value) if !varies => Some(self.splat(value, d.ty)?),
            value @ (Some(_) | None) => value,
        };
        Some(Declare { value, lanes: self.width, ..d.clone() })
    }

    fn fits(&self, ty: ScalarType) -> bool {
        ty == ScalarType::F64 && u64::from(self.width) * ty.bytes() <= MAX_BYTES
    }

    /// The elements of all lanes, which lie next to each other.
    fn neighbours(&self, place: &Place) -> Option<(Place, ScalarType)> {
        let ty = *self.arrays.get(&place.name)?;
        let item = Expr::var(self.item);
        let offset = &**place.offset.as_ref()?;
        let offset = if *offset == item {
            Expr::int(0)
        } else {
            let Expr::Binary(Op::Add, first, last) = offset else { return None };
            (**last == item && self.is_uniform(first)).then(|| (**first).clone())?
        };
        if !self.fits(ty) {
            return None;
        }
        let extent = Extent::Vector(ty, self.width);
        Some((Place { extent, ..Place::element(place.name.clone(), offset) }, ty))
    }

    fn is_uniform(&self, e: &Expr) -> bool {
        !mentions(e, self.item) && !reads(e, &|name| self.held.contains(name))
    }

    /// The value of all lanes, and whether it differs among them.
    fn value(&self, e: &Expr) -> Option<(Expr, bool)> {
        match e {
            Expr::Real(..) => Some((e.clone(), false)),
            Expr::Load(place) => match &place.offset {
                None if self.held.contains(&place.name) => Some((e.clone(), true)),
                None => (place.name != *self.item).then(|| (e.clone(), false)),
                Some(offset) if self.is_uniform(offset) => Some((e.clone(), false)),
                Some(_) => Some((Expr::Load(self.neighbours(place)?.0), true)),
            },
            Expr::Neg(a) => self.value(a).map(|(a, varies)| (Expr::Neg(Box::new(a)), varies)),
            Expr::Binary(op @ (Op::Add | Op::Sub | Op::Mul | Op::Div), a, b) => {
                let ((a, of_a), (b, of_b)) = (self.value(a)?, self.value(b)?);
                Some((Expr::binary(*op, a, b), of_a || of_b))
            }
            Expr::Call(f, ty, args) if self.fits(*ty) && !f.is_external() => {
                let args: Vec<(Expr, bool)> = args.iter().map(|a| self.value(a)).collect::<Option<_>>()?;
                if args.iter().all(|(_, varies)| !varies) {
                    return Some((e.clone(), false));
                }
                let splat = |(a, varies): (Expr, bool)| if varies { Some(a) } else { self.splat(a, *ty) };
                let args = args.into_iter().map(splat).collect::<Option<_>>()?;
                Some((Expr::LanesCall(*f, *ty, self.width, args), true))
            }
            Expr::Int(..)
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
            | Expr::Vector { .. } => None,
        }
    }

    /// One value in all lanes.
    fn splat(&self, value: Expr, ty: ScalarType) -> Option<Expr> {
        self.fits(ty).then(|| Expr::Vector { ty, width: self.width, lanes: vec![value] })
    }
}
