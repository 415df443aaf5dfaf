//! Addresses of asynchronous copies move with the loop, instead of being multiplied out in each
//! iteration.
//!
//! Copies of later iterations leave the instructions of a loop to what computes. An offset with a
//! product of 64 bits, which the rows of an array of any size take, costs several instructions a
//! copy: in a matrix product of 4096 rows on an H200, ratios to cuBLAS were 0.94 with and 0.96
//! without (2026-11-29).
//!
//! Formula: an offset is `p*t + r + c`, where `t` is the variable of the loop, `p` and `r` have one
//! value in all of its iterations and `c` is a number. Where `p` is a number, `r` is computed
//! before the loop. Else a variable begins with `p*lower + r`, every iteration adds `p*step`, and
//! the copy is at the variable plus `c`.
//!
//! Where reads from local memory run ahead across iterations ([`rings`]), a loop has nothing to
//! wait for, so that each instruction counts. There copies of constant strides move, too, and
//! variables are pointers, which begin with the smallest `c`: an asynchronous copy takes no large
//! constant in its address, and this one then none.
//!
//! Registers: a loop of which more than [`LIMIT`] variables would come stays as it is.

mod arrays;
mod rings;
mod sum;

use crate::ast::{Block, CodePiece, Declare, Expr, For, LoopKind, Name, Op, Place, Stmt};

use crate::function::Function;
use crate::hoist::changes;
use crate::names::Names;
use arrays::Arrays;
use kingpost_ir::{ScalarType, UpdateOp};
use std::collections::BTreeSet;
use sum::{Sum, is_fixed, is_wide, linear, mentions};

/// Maximum number of variables of a loop.
const LIMIT: usize = 8;

/// Lets the addresses of asynchronous copies move with the loops that they stand in.
pub(crate) fn advance(function: &mut Function, names: &mut Names) {
    let arrays = Arrays::of(function);
    in_block(&mut function.body, &arrays, names);
}

fn in_block(block: &mut Block, arrays: &Arrays, names: &mut Names) {
    for mut stmt in std::mem::take(block) {
        if let Some(body) = stmt.body_mut() {
            in_block(body, arrays, names);
        }
        if let Stmt::For(f) = &mut stmt
            && f.kind == LoopKind::Sequential
        {
            block.extend(of_loop(f, arrays, names));
        }
        block.push(stmt);
    }
}

/// What takes the place of offsets in a loop.
struct Moving {
    /// The array, if it is a pointer into one.
    array: Option<Name>,
    per: Sum,
    rest: Sum,
    /// The smallest constant of an offset.
    least: i64,
}

/// Moves the addresses in a loop; returns the declarations before it.
fn of_loop(f: &mut For, arrays: &Arrays, names: &mut Names) -> Block {
    let mut changing = BTreeSet::new();
    f.body.iter().for_each(|s| changes(s, &mut changing));
    let mut copies = false;
    each_place(&mut f.body, &mut |_| copies = true);
    if !copies {
        return Block::new();
    }
    let mut before = rings::carry(f, &changing, arrays, (LIMIT, names));
    let terms = Terms { t: f.name.clone(), changing, any: !before.is_empty() };
    let mut found: Vec<Moving> = Vec::new();
    each_place(&mut f.body, &mut |place| {
        let Some((per, rest, constant)) = terms.of(place) else { return };
        let array = terms.any.then(|| place.name.clone());
        let same = |m: &&mut Moving| m.array == array && m.per == per && m.rest == rest;
        match found.iter_mut().find(same) {
            Some(m) => m.least = m.least.min(constant),
            None => found.push(Moving { array, per, rest, least: constant }),
        }
    });
    if found.len() + before.len() > LIMIT {
        return before;
    }
    for m in found {
        before.extend(m.replace(f, &terms, arrays, names));
    }
    before
}

impl Moving {
    /// Lets a variable take the place of the offsets; returns its declaration, if there is one.
    fn replace(self, f: &mut For, terms: &Terms, arrays: &Arrays, names: &mut Names) -> Option<Stmt> {
        let Self { array, per, rest, least } = self;
        let least = if array.is_some() { least } else { 0 };
        let moves = !per.terms.is_empty() || array.is_some();
        let (first, step) = if moves {
            let first = per.times(&f.lower)?.plus(rest.clone())?;
            (
                Sum { constant: first.constant.checked_add(least)?, ..first },
                Some(per.times(&Expr::int(f.step))?),
            )
        } else {
            (rest.clone(), None)
        };
        let name = names.fresh(&format!("{}_at", array.as_ref().unwrap_or(&f.name)));
        let along = per.times(&Expr::var(&f.name))?;
        each_place(&mut f.body, &mut |place| {
            let Some((own, stays, constant)) = terms.of(place) else { return };
            if array.as_ref().is_some_and(|array| *array != place.name) || own != per || stays != rest {
                return;
            }
            // `least` is the smallest of them
            let mut sum = Sum { terms: vec![Expr::var(&name)], constant: constant - least };
            if !moves {
                sum.terms.extend(along.terms.clone());
            }
            place.offset = Some(Box::new(sum.expr()));
        });
        let into = array.and_then(|array| arrays.pointees.get(&array).cloned());
        let plain = Declare::scalar(name.clone(), ScalarType::I64, Some(first.expr()));
        if let Some(step) = step {
            let place = Place::scalar(name);
            f.body.push(Stmt::Assign { place, op: Some(UpdateOp::Add), value: step.expr(), origin: None });
        }
        Some(Stmt::Declare(Declare { constant: !moves, into, ..plain }))
    }
}

/// Visits what asynchronous copies in a block read and write, but those in other loops.
fn each_place(block: &mut Block, visit: &mut dyn FnMut(&mut Place)) {
    for stmt in block {
        match stmt {
            Stmt::Intrinsic(call) if call.asynchronous => {
                for piece in &mut call.pieces {
                    if let CodePiece::Address(Expr::Load(place @ Place { offset: Some(_), .. })) = piece {
                        visit(place);
                    }
                }
            }
            Stmt::If { body, .. } => each_place(body, visit),
            Stmt::Comment(_)
            | Stmt::Declare(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::For(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => {}
        }
    }
}

/// The offsets of a loop that are worth moving.
struct Terms {
    t: Name,
    changing: BTreeSet<Name>,
    /// All linear ones, else those with a product of 64 bits.
    any: bool,
}

impl Terms {
    /// An offset as what a step of the loop adds, what stays, and a number.
    fn of(&self, place: &Place) -> Option<(Sum, Sum, i64)> {
        let offset = place.offset.as_deref()?;
        let mut product = self.any;
        offset.for_each(&mut |e| {
            if let Expr::Binary(Op::Mul, a, b) = e {
                let literal = |e: &Expr| matches!(e, Expr::Int(..));
                product |= is_wide(e) && !literal(a) && !literal(b);
            }
        });
        if !(product && is_fixed(offset, &self.changing) && mentions(offset, &self.t)) {
            return None;
        }
        let (per, mut rest) = linear(offset, &self.t)?;
        let constant = std::mem::take(&mut rest.constant);
        Some((per, rest, constant))
    }
}
