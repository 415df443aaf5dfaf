//! Loops over the work-items moved inwards, for C: where these are a vector, or where an atomic
//! update forbids lanes in the whole.
//!
//! Work-items between barriers are independent up to updates that commute, so that their statements
//! may be regrouped: loops whose bounds are the same for all work-items stay outside, each run of
//! statements gets its own loop over the work-items, and statements with atomic updates stand in
//! runs of their own. Compilers make lanes of such innermost loops only, and of a bound far better
//! than of a guard (GCC 12, AVX-512, one thread, 3-D P4 Laplace action of 3,072 cells: bound 1.5
//! ms, guard 6.1 ms, one loop around all 3.0 ms). Short loops stay as they are.

use crate::ast::{Block, Declare, Expr, For, IntFn, LoopKind, Name, Op, Place, Stmt};
use crate::declare::Private;
use crate::vectors::host;
use kingpost_ir::ScalarType;

/// Loops of at most this many iterations are unrolled by compilers and their arrays kept in
/// registers: spread, the mass actions of P1 and P2 on triangles took 1.2 to 1.4 times as long.
const SHORT: i64 = 6;

/// A body in runs.
pub(crate) struct Spread {
    /// The statements: loops over the work-items inside uniform loops.
    pub(crate) code: Block,
    /// Scalars that the body declared itself; they may live across runs now.
    pub(crate) scalars: Vec<Private>,
}

/// Spreads a body over the work-items `0..extent` of index `item`; `None` where there is nothing to
/// gain, or where its guard is no bound of the index.
pub(crate) fn spread(
    body: &Block,
    item: &Name,
    extent: i64,
    end: &Name,
    privates: &[Private],
) -> Option<Spread> {
    let gains = host::is_width(extent) || body.iter().any(has_atomic) && body.iter().any(has_long_loop);
    if !gains {
        return None;
    }
    let mut pass = Pass { item, end: Expr::int(extent), extent, privates: privates.to_vec() };
    let mut code = Block::new();
    let inner = match body.as_slice() {
        [Stmt::If { condition, body }] => {
            let value = pass.bound(condition, extent)?;
            pass.end = Expr::var(end);
            code.push(Stmt::Declare(Declare::constant(end.clone(), ScalarType::I64, value)));
            body
        }
        _ => body,
    };
    code.extend(pass.block(inner)?);
    Some(Spread { code, scalars: pass.privates.split_off(privates.len()) })
}

fn has_atomic(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Atomic(_)) || stmt.body().is_some_and(|b| b.iter().any(has_atomic))
}

/// Whether a loop without atomic updates has many iterations, as far as its bounds tell.
fn has_long_loop(stmt: &Stmt) -> bool {
    let is_long = |f: &For| !f.body.iter().any(has_atomic) && trip_count(f).is_none_or(|n| n > SHORT);
    matches!(stmt, Stmt::For(f) if is_long(f)) || stmt.body().is_some_and(|b| b.iter().any(has_long_loop))
}

fn trip_count(f: &For) -> Option<i64> {
    match (&f.lower, &f.upper) {
        (Expr::Int(lo, _), Expr::Int(hi, _)) => Some(hi.saturating_sub(*lo) / f.step.max(1)),
        _ => None,
    }
}

struct Pass<'a> {
    item: &'a Name,
    /// One further than the last work-item that exists.
    end: Expr,
    extent: i64,
    privates: Vec<Private>,
}

impl Pass<'_> {
    /// The end of the work-items that `rest + item < limit` lets run.
    fn bound(&self, condition: &Expr, extent: i64) -> Option<Expr> {
        let Expr::Binary(Op::Lt, left, right) = condition else { return None };
        let item = Expr::var(self.item);
        // In 64 bits no difference of 32-bit values overflows.
        let wide = |e: &Expr| Expr::Cast(ScalarType::I64, Box::new(e.clone()));
        let end = if **left == item {
            wide(right)
        } else {
            let Expr::Binary(Op::Add, rest, last) = &**left else { return None };
            if **last != item || !self.is_uniform(rest) {
                return None;
            }
            Expr::binary(Op::Sub, wide(right), (**rest).clone())
        };
        let extent = Box::new(Expr::int(extent));
        self.is_uniform(right).then(|| Expr::IntCall(IntFn::Min, ScalarType::I64, extent, Box::new(end)))
    }

    /// Whether all work-items of a group see one value: no index of theirs, nothing private, no
    /// memory.
    fn is_uniform(&self, e: &Expr) -> bool {
        let mut uniform = true;
        e.for_each(&mut |e| {
            if let Expr::Load(place) = e {
                uniform &= place.offset.is_none()
                    && place.name != *self.item
                    && !self.privates.iter().any(|p| p.name == place.name);
            }
        });
        uniform
    }

    fn block(&mut self, block: &Block) -> Option<Block> {
        let (mut out, mut run) = (Block::new(), Block::new());
        for stmt in block {
            let stmt = &if let Stmt::Declare(d) = stmt { self.assigned(d)? } else { stmt.clone() };
            // what makes vectors stands apart from what does not
            if run.last().is_some_and(|last| self.is_harmless(last) != self.is_harmless(stmt)) {
                self.flush(&mut run, &mut out);
            }
            if let Stmt::For(f) = stmt
                && self.stays_outside(f)
            {
                self.flush(&mut run, &mut out);
                let body = self.block(&f.body)?;
                out.extend(self.unswitched(For { body, ..f.clone() }));
            } else if has_atomic(stmt) {
                self.flush(&mut run, &mut out);
                run.push(stmt.clone());
                self.flush(&mut run, &mut out);
            } else {
                run.push(stmt.clone());
            }
        }
        self.flush(&mut run, &mut out);
        Some(out)
    }

    fn stays_outside(&self, f: &For) -> bool {
        f.kind == LoopKind::Sequential
            && self.is_uniform(&f.lower)
            && self.is_uniform(&f.upper)
            && !f.body.iter().any(has_atomic)
    }

    /// Whether the statement may also run for work-items of a vector that do not exist.
    fn is_harmless(&self, stmt: &Stmt) -> bool {
        let ty = |name: &Name| self.privates.iter().find(|p| p.name == *name).map(|p| p.ty);
        host::is_width(self.extent) && host::is_harmless(stmt, self.item, &ty)
    }

    /// A declaration as an assignment to a private variable.
    fn assigned(&mut self, d: &Declare) -> Option<Stmt> {
        let (None, Some(value), false) = (d.len, &d.value, d.local) else { return None };
        if !self.privates.iter().any(|p| p.name == d.name) {
            self.privates.push(Private { name: d.name.clone(), ty: d.ty, len: None });
        }
        let place = Place::scalar(d.name.clone());
        Some(Stmt::Assign { place, op: None, value: value.clone(), origin: None })
    }

    /// A loop over the work-items; where these are a vector, one over all lanes, or one for groups
    /// that have all and one for the last group. Compilers write a loop of so few iterations out if
    /// their number is constant (3-D P1 mass action: 0.56 of FFCx's speed with a bound, 1.04 with
    /// both; GCC 12, Zen 4, 2026-11-22).
    fn loops(&self, body: Block) -> Block {
        let extent = Expr::int(self.extent);
        let harmless = body.iter().all(|s| self.is_harmless(s));
        let work_items = |upper: &Expr, body: Block| {
            Stmt::For(For {
                name: self.item.clone(),
                ty: ScalarType::I32,
                lower: Expr::int(0),
                upper: upper.clone(),
                step: 1,
                kind: LoopKind::WorkItems,
                rolled: false,
                flag: None,
                body,
            })
        };
        if harmless || self.end == extent {
            return vec![work_items(&extent, body)];
        }
        if !host::is_width(self.extent) {
            return vec![work_items(&self.end, body)];
        }
        self.either(vec![work_items(&extent, body.clone())], vec![work_items(&self.end, body)])
    }

    /// Code for groups that have all work-items, and for the last group.
    fn either(&self, all: Block, some: Block) -> Block {
        let full = Expr::binary(Op::Eq, self.end.clone(), Expr::int(self.extent));
        let last = Expr::Not(Box::new(full.clone()));
        vec![Stmt::If { condition: full, body: all }, Stmt::If { condition: last, body: some }]
    }

    /// A loop that only chooses between groups with all work-items and the last one: the choice, and
    /// the loop in either. Within the loop it keeps compilers from writing that out (of FFCx's speed, the
    /// 3-D P1 mass action has 0.97 with the choice within and 1.00 with it around, the Laplace action,
    /// which has more arithmetic, 1.25 and 1.21; GCC 12, Zen 4, 2026-11-23).
    fn unswitched(&self, f: For) -> Block {
        match f.body.as_slice() {
            [Stmt::If { body: all, .. }, Stmt::If { body: some, .. }]
                if f.body == self.either(all.clone(), some.clone()) =>
            {
                let around = |body: &Block| vec![Stmt::For(For { body: body.clone(), ..f.clone() })];
                self.either(around(all), around(some))
            }
            _ => vec![Stmt::For(f)],
        }
    }

    /// Moves the run to `out` in a loop over the work-items, remarks at its ends outside.
    fn flush(&self, run: &mut Block, out: &mut Block) {
        let is_remark = |s: &&Stmt| matches!(s, Stmt::Comment(_));
        let head = run.iter().take_while(is_remark).count();
        out.extend(run.drain(..head));
        let tail = run.iter().rev().take_while(is_remark).count();
        let remarks = run.split_off(run.len() - tail);
        if !run.is_empty() {
            out.extend(self.loops(std::mem::take(run)));
        }
        out.extend(remarks);
    }
}
