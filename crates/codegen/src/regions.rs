//! Loops over the work-items of a group, for C: one around each run of statements between barriers.
//!
//! Uniform loops and conditions around barriers stay outside. A private variable that lives across
//! runs becomes an array over the work-items, the work-item innermost so that lanes are neighbours.

use crate::ast::{Block, Expr, For, LoopKind, Name, Op, Place, Stmt};
use crate::axes::Axes;
use crate::declare::{Private, starts_defined};
use crate::env::Env;
use crate::spread::{Spread, spread};
use crate::vectors::host::is_width;
use kingpost_ir::ScalarType;
use std::collections::BTreeMap;

/// Maximum bytes of a group's expanded private variables on the stack for which a body without
/// barriers is spread.
const STACK_LIMIT: u64 = 256 * 1024;

/// The same where the work-items are a vector: arrays beyond the stack are objects of the thread.
/// 3-D P3 elasticity matrices, 230 KB a vector of 8 cells, take 37 ms spread and 130 ms a cell at a
/// time, P4, 706 KB, 182 ms and 640 ms (4,374 cells, one thread, GCC 12, Zen 4, 2026-11-24).
const VECTOR_LIMIT: u64 = 8 << 20;

/// Puts the statements between barriers into loops over the work-items. Also names their number in the
/// current group, where the last group has another one.
pub(crate) fn work_item_loops(
    body: Block,
    env: &mut Env<'_>,
    axes: &Axes,
    privates: &mut Vec<Private>,
) -> (Block, Option<Name>) {
    let barriers = body.iter().any(Stmt::has_barrier);
    if !barriers && let Some((code, items)) = spread_items(&body, env, axes, privates) {
        return (code, Some(items));
    }
    let mut code = Regions { env, axes }.block(body);
    if barriers {
        expand(&mut code, env, axes, privates);
    }
    (code, None)
}

/// The body with its loops over the work-items moved inwards, where atomic updates or vectors call
/// for it and what then lives across is small enough.
fn spread_items(
    body: &Block,
    env: &mut Env<'_>,
    axes: &Axes,
    privates: &mut Vec<Private>,
) -> Option<(Block, Name)> {
    let [Some(local), None, None] = &axes.block else { return None };
    if local.extent == 1 {
        return None;
    }
    let item = env.name(env.hardware(false, 0)).clone();
    let end = env.names.fresh(&format!("{item}_end"));
    let Spread { mut code, scalars } = spread(body, &item, local.extent, &end, privates)?;
    let before: Vec<Private> = privates.iter().cloned().chain(scalars).collect();
    let mut after = before.clone();
    expand(&mut code, env, axes, &mut after);
    let bytes = |p: &Private| p.len.unwrap_or(1).saturating_mul(p.ty.bytes());
    let expanded = before.iter().zip(&after).filter(|(b, a)| b.len != a.len);
    let limit = if is_width(local.extent) { VECTOR_LIMIT } else { STACK_LIMIT };
    if expanded.map(|(_, a)| bytes(a)).fold(0, u64::saturating_add) > limit {
        return None;
    }
    *privates = after;
    Some((code, end))
}

struct Regions<'a, 'k> {
    env: &'a Env<'k>,
    axes: &'a Axes,
}

impl Regions<'_, '_> {
    fn block(&self, block: Block) -> Block {
        let mut out = Block::new();
        let mut run = Block::new();
        let mut rest = block.into_iter().peekable();
        while let Some(mut stmt) = rest.next() {
            match &stmt {
                Stmt::Barrier(_) | Stmt::Iteration(_) => self.flush(&mut run, &mut out),
                // A bound that is taken before a loop around a barrier: the same for all
                // work-items.
                Stmt::Declare(d) if d.constant && rest.peek().is_some_and(Stmt::has_barrier) => {
                    self.flush(&mut run, &mut out);
                    out.push(stmt);
                }
                _ if stmt.has_barrier() => {
                    self.flush(&mut run, &mut out);
                    if let Some(body) = stmt.body_mut() {
                        *body = self.block(std::mem::take(body));
                    }
                    out.push(stmt);
                }
                Stmt::Comment(_)
                | Stmt::Declare(_)
                | Stmt::Assign { .. }
                | Stmt::Atomic(_)
                | Stmt::Intrinsic(_)
                | Stmt::If { .. }
                | Stmt::For(_) => run.push(stmt),
            }
        }
        self.flush(&mut run, &mut out);
        out
    }

    fn flush(&self, run: &mut Block, out: &mut Block) {
        // Remarks at the head of a run stand before its loops.
        let remarks = run.iter().take_while(|s| matches!(s, Stmt::Comment(_))).count();
        out.extend(run.drain(..remarks));
        out.extend(self.wrap(std::mem::take(run)));
    }

    /// Loops over the work-items, l.0 innermost.
    fn wrap(&self, mut body: Block) -> Block {
        if body.is_empty() {
            return body;
        }
        for axis in 0..3_u8 {
            let Some(local) = &self.axes.block[usize::from(axis)] else { continue };
            body = vec![Stmt::For(For {
                name: self.env.name(self.env.hardware(false, axis)).clone(),
                ty: ScalarType::I32,
                lower: Expr::int(0),
                upper: Expr::int(local.extent),
                step: 1,
                kind: LoopKind::WorkItems,
                rolled: false,
                flag: None,
                body,
            })];
        }
        body
    }
}

/// Where a private variable is used.
#[derive(Default)]
struct Uses {
    /// Runs of statements that use it.
    runs: usize,
    /// Whether an iteration of a loop around a run may read what an earlier one left.
    carried: bool,
    /// Whether a bound or condition outside the runs uses it.
    outside: bool,
}

fn expand(code: &mut Block, env: &Env<'_>, axes: &Axes, privates: &mut [Private]) {
    let mut uses: BTreeMap<Name, Uses> = privates.iter().map(|p| (p.name.clone(), Uses::default())).collect();
    collect(code, false, privates, &mut uses);
    let items = axes.work_items();
    for private in privates {
        let u = &uses[&private.name];
        if u.runs > 1 || u.carried || u.outside {
            private.len = Some(private.len.unwrap_or(1).saturating_mul(items.unsigned_abs()));
        } else {
            uses.remove(&private.name);
        }
    }
    let index = flat_index(env, axes);
    rewrite(code, &uses, items, &Expr::int(0), &index);
}

fn collect(block: &Block, in_loop: bool, privates: &[Private], uses: &mut BTreeMap<Name, Uses>) {
    for stmt in block {
        if let Stmt::For(f) = stmt
            && f.kind == LoopKind::WorkItems
        {
            let mut names = std::collections::BTreeSet::new();
            crate::ast::names_in(&f.body, &mut names);
            for p in privates.iter().filter(|p| names.contains(&p.name)) {
                if let Some(u) = uses.get_mut(&p.name) {
                    u.runs += 1;
                    u.carried |= in_loop && !(p.len.is_none() && starts_defined(&f.body, p));
                }
            }
            continue;
        }
        for e in stmt.expressions() {
            e.for_each(&mut |e| {
                if let Expr::Load(place) = e
                    && let Some(u) = uses.get_mut(&place.name)
                {
                    u.outside = true;
                }
            });
        }
        if let Some(body) = stmt.body() {
            collect(body, in_loop || matches!(stmt, Stmt::For(_)), privates, uses);
        }
    }
}

/// `l0 + n0*(l1 + n1*l2)`.
fn flat_index(env: &Env<'_>, axes: &Axes) -> Expr {
    let mut index: Option<Expr> = None;
    for axis in (0..3_u8).rev() {
        let Some(local) = &axes.block[usize::from(axis)] else { continue };
        let here = Expr::var(env.name(env.hardware(false, axis)));
        index = Some(match index {
            None => here,
            Some(outer) => Expr::binary(Op::Add, Expr::binary(Op::Mul, Expr::int(local.extent), outer), here),
        });
    }
    index.unwrap_or(Expr::int(0))
}

/// Gives expanded variables the index of the work-item (outside the runs: of the first one, as
/// all have the same value there).
fn rewrite(block: &mut Block, expanded: &BTreeMap<Name, Uses>, items: i64, index: &Expr, inside: &Expr) {
    for stmt in block {
        for e in stmt.expressions_mut() {
            e.for_each_mut(&mut |e| {
                if let Expr::Load(place) = e {
                    shift(place, expanded, items, index);
                }
            });
        }
        match stmt {
            Stmt::Assign { place, .. } => shift(place, expanded, items, index),
            Stmt::Atomic(a) => shift(&mut a.place, expanded, items, index),
            Stmt::For(f) if f.kind == LoopKind::WorkItems => {
                rewrite(&mut f.body, expanded, items, inside, inside);
            }
            Stmt::For(f) => rewrite(&mut f.body, expanded, items, index, inside),
            Stmt::If { body, .. } => rewrite(body, expanded, items, index, inside),
            // all of its elements are expressions
            Stmt::Intrinsic(_) => {}
            Stmt::Comment(_) | Stmt::Declare(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => {}
        }
    }
}

fn shift(place: &mut Place, expanded: &BTreeMap<Name, Uses>, items: i64, index: &Expr) {
    if !expanded.contains_key(&place.name) {
        return;
    }
    let item = match place.offset.take() {
        None => index.clone(),
        Some(offset) => match *offset {
            Expr::Int(0, _) => index.clone(),
            Expr::Int(c, ty) => Expr::binary(Op::Add, Expr::Int(c * items, ty), index.clone()),
            other @ (Expr::Real(..)
            | Expr::Bool(_)
            | Expr::Load(_)
            | Expr::Hardware { .. }
            | Expr::Neg(_)
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
            | Expr::Vector { .. }) => {
                Expr::binary(Op::Add, Expr::binary(Op::Mul, Expr::int(items), other), index.clone())
            }
        },
    };
    place.offset = Some(Box::new(item));
}
