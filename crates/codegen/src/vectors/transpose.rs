//! Stores of private arrays of the work-items of a vector, for C: the elements of a work-item lie
//! next to each other where they are stored, those of all work-items where they are computed.
//!
//! A loop over the elements around a loop over the work-items stores one real at a time. As many
//! vectors as a vector has lanes are transposed in registers instead, and each work-item's elements
//! are stored as a vector: the mass matrices of P1 tetrahedra take 0.41 of the time, memory and
//! geometry included (GCC 12, four lanes of AVX2, AMD EPYC, one thread, 2026-11-25).

use super::host::is_width;
use super::offset::slope;
use super::symbols::{Space, Symbols};
use crate::ast::{Block, Declare, Expr, Extent, For, LoopKind, Name, Op, Place, Stmt};
use crate::names::Names;
use kingpost_ir::{InsnId, ScalarType, UpdateOp};

/// Writes the stores of a block that work-items make of their private arrays with transposed vectors.
pub(super) fn transpose(block: &mut Block, symbols: &Symbols, names: &mut Names) {
    for mut stmt in std::mem::take(block) {
        if let Stmt::For(f) = &stmt
            && let Some(stores) = Stores::of(f, symbols)
        {
            block.extend(stores.write(names));
            continue;
        }
        if let Some(body) = stmt.body_mut() {
            transpose(body, symbols, names);
        }
        block.push(stmt);
    }
}

/// `y[base + stride*item + j] op= a[start + width*j + item]` for `j` in `0..count`, in loops around.
struct Stores<'a> {
    /// The loops around those that count elements next to each other, the outermost first.
    outer: Vec<&'a For>,
    /// The loop whose name counts the elements.
    elements: &'a For,
    items: &'a For,
    width: u8,
    count: i64,
    stride: i64,
    to: &'a Place,
    from: &'a Place,
    op: Option<UpdateOp>,
    origin: Option<InsnId>,
    /// The offset of the first element, where the item is 0, too; none for 0.
    base: Option<Expr>,
    start: Option<Expr>,
}

impl<'a> Stores<'a> {
    fn of(nest: &'a For, symbols: &Symbols) -> Option<Self> {
        let (mut loops, items, body) = perfect_nest(nest)?;
        let width = u8::try_from(extent(items)?).ok().filter(|w| is_width(i64::from(*w)))?;
        let Stmt::Assign {
            place: to,
            op: op @ (None | Some(UpdateOp::Add)),
            value: Expr::Load(from),
            origin,
        } = body
        else {
            return None;
        };
        let is = |place: &Place, space| {
            symbols.get(&place.name) == Some(&(ScalarType::F64, space)) && place.extent == Extent::Whole
        };
        if !is(to, Space::Global) || !is(from, Space::Private) {
            return None;
        }
        let (y, a) = (to.offset.as_deref()?, from.offset.as_deref()?);
        let slopes = |name: &Name| Some((slope(y, name, symbols)?, slope(a, name, symbols)?));
        let (stride, 1) = slopes(&items.name)? else { return None };
        let lanes = i64::from(width);
        // loops of which each counts on where the next one inside ends
        let elements = *loops.last()?;
        let mut count = 1;
        let mut counted = Vec::new();
        while let Some(next) = loops.last()
            && slopes(&next.name) == Some((count, lanes * count))
        {
            count *= extent(next)?;
            counted.push(&next.name);
            loops.pop();
        }
        // elements of different items are different
        if count < lanes || stride.checked_abs()? < count {
            return None;
        }
        counted.push(&items.name);
        let (base, start) = (without(y, &counted), without(a, &counted));
        let (op, origin) = (*op, *origin);
        Some(Self { outer: loops, elements, items, width, count, stride, to, from, op, origin, base, start })
    }

    fn write(&self, names: &mut Names) -> Block {
        let lanes = i64::from(self.width);
        let full = self.count - self.count % lanes;
        let counting = |from: i64, to: i64, step: i64, body: Block| {
            let (lower, upper) = (Expr::int(from), Expr::int(to));
            Stmt::For(For { lower, upper, step, kind: LoopKind::Sequential, body, ..self.elements.clone() })
        };
        let mut code = vec![counting(0, full, lanes, self.tile(names))];
        if full < self.count {
            let single = vec![Stmt::For(For { body: vec![self.single()], ..self.items.clone() })];
            code.push(counting(full, self.count, 1, single));
        }
        for around in self.outer.iter().rev() {
            code = vec![Stmt::For(For { body: code, ..(*around).clone() })];
        }
        code
    }

    /// One element of one item.
    fn single(&self) -> Stmt {
        let (item, j) = (Expr::var(&self.items.name), Expr::var(&self.elements.name));
        let y = sum([self.base.clone(), Some(times(self.stride, item.clone())), Some(j.clone())]);
        let a = sum([self.start.clone(), Some(times(self.width.into(), j)), Some(item)]);
        let value = Expr::Load(Place::element(self.from.name.clone(), a));
        let place = Place::element(self.to.name.clone(), y);
        Stmt::Assign { place, op: self.op, value, origin: self.origin }
    }

    /// As many elements of all items as there are items.
    ///
    /// The vectors of elements become those of items in steps: in that of distance `s`, lanes of the
    /// vectors `k` and `k + s` change places that are `s` apart.
    fn tile(&self, names: &mut Names) -> Block {
        let (width, j) = (usize::from(self.width), Expr::var(&self.elements.name));
        let extent = Extent::Vector(ScalarType::F64, self.width);
        let mut code = Block::new();
        let mut held = |code: &mut Block, stem: &str, value: Expr| {
            let name = names.fresh(stem);
            let constant = Declare::constant(name.clone(), ScalarType::F64, value);
            code.push(Stmt::Declare(Declare { lanes: self.width, ..constant }));
            name
        };
        let mut rows: Vec<Expr> = (0..i64::from(self.width))
            .map(|k| {
                let lanes = i64::from(self.width);
                let offset = sum([self.start.clone(), Some(times(lanes, j.clone())), literal(lanes * k)]);
                Expr::Load(Place { extent, ..Place::element(self.from.name.clone(), offset) })
            })
            .collect();
        let mut distance = 1;
        while distance < width {
            let held: Vec<Name> =
                rows.into_iter().map(|v| held(&mut code, &format!("{}_tile", self.from.name), v)).collect();
            rows = (0..width).map(|k| self.exchanged(&held, k, distance)).collect();
            distance *= 2;
        }
        for (item, value) in (0_i64..).zip(rows) {
            let offset = sum([self.base.clone(), Some(j.clone()), literal(self.stride * item)]);
            let place = Place { extent, ..Place::element(self.to.name.clone(), offset) };
            code.push(Stmt::Assign { place, op: self.op, value, origin: self.origin });
        }
        code
    }

    /// The vector `k` after a step.
    fn exchanged(&self, held: &[Name], k: usize, distance: usize) -> Expr {
        let (first, second) = (k & !distance, k | distance);
        let lane = |lane: u8| {
            let from = if usize::from(lane) & distance == 0 { first } else { second };
            let at = (usize::from(lane) & !distance) | (k & distance);
            Expr::Load(Place { extent: Extent::Lane(at as u8), ..Place::scalar(held[from].clone()) })
        };
        Expr::Vector { ty: ScalarType::F64, width: self.width, lanes: (0..self.width).map(lane).collect() }
    }
}

/// Loops of numbers of iterations around a loop over work-items, and the only statement in it.
fn perfect_nest(nest: &For) -> Option<(Vec<&For>, &For, &Stmt)> {
    let mut loops = Vec::new();
    let mut inner = nest;
    loop {
        extent(inner)?;
        let [only] = inner.body.as_slice() else { return None };
        match (inner.kind, only) {
            (LoopKind::Sequential, Stmt::For(next)) => {
                loops.push(inner);
                inner = next;
            }
            (LoopKind::WorkItems | LoopKind::Vector, stmt) => return Some((loops, inner, stmt)),
            (LoopKind::Sequential | LoopKind::Groups | LoopKind::Pieces(..), _) => return None,
        }
    }
}

/// Iterations of a loop from 0 to a number.
fn extent(f: &For) -> Option<i64> {
    match (&f.lower, &f.upper, f.step) {
        (Expr::Int(0, _), Expr::Int(end, _), 1) => Some(*end),
        _ => None,
    }
}

/// A sum of products in which some variables are 0; none for 0.
fn without(e: &Expr, zero: &[&Name]) -> Option<Expr> {
    let of = |e: &Expr| without(e, zero);
    match e {
        Expr::Int(0, _) => None,
        Expr::Load(place) if place.offset.is_none() && zero.contains(&&place.name) => None,
        Expr::Neg(a) => of(a).map(|a| Expr::Neg(Box::new(a))),
        Expr::Cast(ty, a) => of(a).map(|a| Expr::Cast(*ty, Box::new(a))),
        Expr::Binary(Op::Add, a, b) => match (of(a), of(b)) {
            (Some(a), Some(b)) => Some(Expr::binary(Op::Add, a, b)),
            (a, b) => a.or(b),
        },
        Expr::Binary(Op::Sub, a, b) => match (of(a), of(b)) {
            (Some(a), Some(b)) => Some(Expr::binary(Op::Sub, a, b)),
            (None, Some(b)) => Some(Expr::Neg(Box::new(b))),
            (a, None) => a,
        },
        Expr::Binary(Op::Mul, a, b) => Some(Expr::binary(Op::Mul, of(a)?, of(b)?)),
        other @ (Expr::Int(..)
        | Expr::Real(..)
        | Expr::Bool(_)
        | Expr::Load(_)
        | Expr::Hardware { .. }
        | Expr::Not(_)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::IntCall(..)
        | Expr::LanesCall(..)
        | Expr::Half(..)
        | Expr::Complex(..)
        | Expr::Pair(..)
        | Expr::Select(..)
        | Expr::Vector { .. }) => Some(other.clone()),
    }
}

fn sum<const N: usize>(terms: [Option<Expr>; N]) -> Expr {
    let sum = terms.into_iter().flatten().reduce(|a, b| Expr::binary(Op::Add, a, b));
    sum.unwrap_or(Expr::int(0))
}

fn times(factor: i64, e: Expr) -> Expr {
    if factor == 1 { e } else { Expr::binary(Op::Mul, Expr::int(factor), e) }
}

fn literal(value: i64) -> Option<Expr> {
    (value != 0).then(|| Expr::int(value))
}
