//! Reads from buffers that take turns: their offset is computed once an iteration.
//!
//! Formula: with `t` the variable of a loop and `s` its step, an iteration reads at `E(t) + c` and
//! then, ahead for the next one, at `E(t + s) + c`. A variable begins with `E(lower)` and gets
//! `E(t + s)` before the first read there, so that it has the value of `E(t)` where the next
//! iteration begins. That each read in between would compute its offset costs instructions where
//! `E` has remainders, with which compilers put no constant into the address of a read.

use super::arrays::Arrays;
use super::sum::{is_fixed, is_wide, linear, mentions};
use crate::ast::{Block, Declare, Expr, For, Name, Op, Place, Stmt};
use crate::names::Names;
use kingpost_ir::ScalarType;
use std::collections::BTreeSet;

/// What is read of an array, up to constants: in which statements of the loop first and last.
struct Reads {
    array: Name,
    offset: Expr,
    first: usize,
    last: usize,
}

/// Carries the offsets of reads from one iteration to the next, if there are not too many; returns
/// the declarations before the loop.
pub(super) fn carry(
    f: &mut For,
    changing: &BTreeSet<Name>,
    arrays: &Arrays,
    (limit, names): (usize, &mut Names),
) -> Block {
    let found = reads(f, changing, arrays);
    let mut pairs: Vec<(&Reads, &Reads)> = Vec::new();
    for now in &found {
        let mut ahead = now.offset.clone();
        put(&mut ahead, &f.name, &Expr::binary(Op::Add, Expr::var(&f.name), Expr::int(f.step)));
        let next = found.iter().find(|next| next.array == now.array && next.offset == ahead);
        // one that is read in three iterations would need two variables
        let taken = |r: &Reads| pairs.iter().any(|(a, b)| std::ptr::eq(*a, r) || std::ptr::eq(*b, r));
        if let Some(next) = next
            && now.last < next.first
            && !taken(now)
            && !taken(next)
        {
            pairs.push((now, next));
        }
    }
    if pairs.len() > limit {
        return Block::new();
    }
    let mut before = Block::new();
    let mut updates: Vec<(usize, Stmt)> = Vec::new();
    for (now, next) in pairs {
        let name = names.fresh(&format!("{}_at", now.array));
        let mut first = now.offset.clone();
        put(&mut first, &f.name, &f.lower);
        let ty = if is_wide(&now.offset) { ScalarType::I64 } else { ScalarType::I32 };
        let plain = Declare::scalar(name.clone(), ty, Some(first));
        before.push(Stmt::Declare(Declare { into: arrays.pointees.get(&now.array).cloned(), ..plain }));
        let value = next.offset.clone();
        updates.push((
            next.first,
            Stmt::Assign { place: Place::scalar(name.clone()), op: None, value, origin: None },
        ));
        for stmt in &mut f.body {
            each_read(stmt, &mut |place| {
                let Some((offset, constant)) = split(place).filter(|_| place.name == now.array) else {
                    return;
                };
                if offset == now.offset || offset == next.offset {
                    let at = Expr::var(&name);
                    let sum = Expr::binary(Op::Add, at.clone(), Expr::int(constant));
                    place.offset = Some(Box::new(if constant == 0 { at } else { sum }));
                }
            });
        }
    }
    for (k, stmt) in std::mem::take(&mut f.body).into_iter().enumerate() {
        let here = updates.extract_if(.., |(at, _)| *at == k).map(|(_, update)| update);
        f.body.extend(here);
        f.body.push(stmt);
    }
    before
}

/// The offsets of reads from local memory that change with the loop, but not by the same in each
/// iteration.
fn reads(f: &mut For, changing: &BTreeSet<Name>, arrays: &Arrays) -> Vec<Reads> {
    let mut found: Vec<Reads> = Vec::new();
    for (k, stmt) in f.body.iter_mut().enumerate() {
        each_read(stmt, &mut |place| {
            let Some((offset, _)) = split(place).filter(|_| arrays.local.contains(&place.name)) else {
                return;
            };
            if let Some(known) = found.iter_mut().find(|r| r.array == place.name && r.offset == offset) {
                known.last = k;
                return;
            }
            if mentions(&offset, &f.name) && is_fixed(&offset, changing) && linear(&offset, &f.name).is_none()
            {
                found.push(Reads { array: place.name.clone(), offset, first: k, last: k });
            }
        });
    }
    found
}

/// Visits what a statement reads at offsets, but not in other loops.
fn each_read(stmt: &mut Stmt, visit: &mut dyn FnMut(&mut Place)) {
    if matches!(stmt, Stmt::For(_)) {
        return;
    }
    for e in stmt.expressions_mut() {
        e.for_each_mut(&mut |e| {
            if let Expr::Load(place) = e
                && place.offset.is_some()
            {
                visit(place);
            }
        });
    }
    if let Some(body) = stmt.body_mut() {
        body.iter_mut().for_each(|stmt| each_read(stmt, visit));
    }
}

/// The offset of a place without the constant at its end, and that.
fn split(place: &Place) -> Option<(Expr, i64)> {
    let offset = place.offset.as_deref()?;
    if let Expr::Binary(Op::Add, rest, end) = offset
        && let Expr::Int(constant, _) = **end
    {
        return Some(((**rest).clone(), constant));
    }
    Some((offset.clone(), 0))
}

/// Writes a value instead of a variable, and computes what then is known.
fn put(e: &mut Expr, name: &Name, value: &Expr) {
    e.for_each_mut(&mut |e| {
        if matches!(e, Expr::Load(place) if place.name == *name) {
            *e = value.clone();
        }
        let Expr::Binary(op, a, b) = e else { return };
        let simple = match (&*op, &**a, &**b) {
            (Op::Mul, Expr::Int(x, _), Expr::Int(y, _)) => x.checked_mul(*y).map(Expr::int),
            (Op::Rem, Expr::Int(x, _), Expr::Int(y, _)) => x.checked_rem(*y).map(Expr::int),
            (Op::Add, Expr::Int(x, _), Expr::Int(y, _)) => x.checked_add(*y).map(Expr::int),
            (Op::Add, Expr::Int(0, _), other) | (Op::Add, other, Expr::Int(0, _)) => Some(other.clone()),
            _ => None,
        };
        if let Some(simple) = simple {
            *e = simple;
        }
    });
}
