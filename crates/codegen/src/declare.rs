//! Where private variables are declared: the innermost scope that holds all uses and keeps the
//! value.
//!
//! A scalar goes into a sequential loop only if each iteration assigns it before it reads it; an
//! array stays outside sequential loops. Loops over work-groups, work-items and vector lanes are
//! parallel: what is used inside only is declared inside.

use crate::ast::{Block, Declare, Expr, LoopKind, Name, Stmt};
use kingpost_ir::ScalarType;
use std::collections::BTreeMap;

/// A private variable.
#[derive(Clone, Debug)]
pub(crate) struct Private {
    pub(crate) name: Name,
    pub(crate) ty: ScalarType,
    /// Elements of an array.
    pub(crate) len: Option<u64>,
}

/// Adds the declarations of all variables that the block uses.
pub(crate) fn declare(block: &mut Block, vars: &[Private]) {
    let context = Context::new(vars);
    let uses = context.uses_of(block);
    place(block, &uses, (0..vars.len()).collect(), &context);
}

/// Whether each run of the block gives the scalar a value before anything reads it.
pub(crate) fn starts_defined(block: &Block, var: &Private) -> bool {
    let context = Context::new(std::slice::from_ref(var));
    context.starts_defined(block, &context.uses_of(block), 0)
}

struct Context<'a> {
    vars: &'a [Private],
    index: BTreeMap<&'a str, usize>,
}

/// Variables by bits.
#[derive(Clone, Default)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, v: usize) {
        if self.0.len() <= v / 64 {
            self.0.resize(v / 64 + 1, 0);
        }
        self.0[v / 64] |= 1 << (v % 64);
    }

    fn contains(&self, v: usize) -> bool {
        self.0.get(v / 64).is_some_and(|w| w >> (v % 64) & 1 == 1)
    }

    fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}

/// What a statement mentions.
struct Uses {
    /// In its own expressions and target.
    head: Set,
    /// Anywhere in it.
    all: Set,
    /// For each statement of its body.
    body: Vec<Uses>,
}

impl<'a> Context<'a> {
    fn new(vars: &'a [Private]) -> Self {
        Self { vars, index: vars.iter().enumerate().map(|(k, v)| (&*v.name, k)).collect() }
    }

    fn uses_of(&self, block: &Block) -> Vec<Uses> {
        block.iter().map(|s| self.uses(s)).collect()
    }

    fn uses(&self, stmt: &Stmt) -> Uses {
        let mut head = Set::default();
        for e in stmt.expressions() {
            self.add_expr(e, &mut head);
        }
        for name in stmt.written() {
            self.add(name, &mut head);
        }
        let body = stmt.body().map_or_else(Vec::new, |b| self.uses_of(b));
        let mut all = head.clone();
        for inner in &body {
            all.extend(&inner.all);
        }
        Uses { head, all, body }
    }

    fn add(&self, name: &Name, set: &mut Set) {
        if let Some(v) = self.index.get(&**name) {
            set.insert(*v);
        }
    }

    fn add_expr(&self, e: &Expr, set: &mut Set) {
        e.for_each(&mut |e| {
            if let Expr::Load(place) = e {
                self.add(&place.name, set);
            }
        });
    }

    /// Whether the statement gives the scalar a value without reading it.
    fn defines(&self, stmt: &Stmt, v: usize) -> bool {
        let Stmt::Assign { place, op: None, value, .. } = stmt else { return false };
        if place.name != self.vars[v].name || place.offset.is_some() {
            return false;
        }
        let mut read = Set::default();
        self.add_expr(value, &mut read);
        !read.contains(v)
    }

    /// Whether each run of the block gives the scalar a value before anything reads it.
    fn starts_defined(&self, block: &Block, uses: &[Uses], v: usize) -> bool {
        let mut users = (0..block.len()).filter(|k| uses[*k].all.contains(v));
        let Some(first) = users.next() else { return true };
        if self.defines(&block[first], v) {
            return true;
        }
        match block[first].body() {
            Some(body) if users.next().is_none() && !uses[first].head.contains(v) => {
                self.starts_defined(body, &uses[first].body, v)
            }
            Some(_) | None => false,
        }
    }

    /// Whether the declaration may move into the body of the statement.
    fn may_enter(&self, stmt: &Stmt, uses: &Uses, v: usize) -> bool {
        if uses.head.contains(v) {
            return false;
        }
        match stmt {
            Stmt::If { .. } => true,
            Stmt::For(f) => match f.kind {
                LoopKind::Groups | LoopKind::WorkItems | LoopKind::Vector | LoopKind::Pieces(..) => true,
                LoopKind::Sequential => {
                    self.vars[v].len.is_none() && self.starts_defined(&f.body, &uses.body, v)
                }
            },
            Stmt::Comment(_)
            | Stmt::Declare(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Intrinsic(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => false,
        }
    }
}

fn place(block: &mut Block, uses: &[Uses], pending: Vec<usize>, cx: &Context<'_>) {
    if pending.is_empty() {
        return;
    }
    let mut inner: Vec<Vec<usize>> = vec![Vec::new(); block.len()];
    let mut here: Vec<Vec<usize>> = vec![Vec::new(); block.len()];
    for v in pending {
        let mut users = (0..block.len()).filter(|k| uses[*k].all.contains(v));
        let Some(first) = users.next() else { continue };
        if users.next().is_none() && cx.may_enter(&block[first], &uses[first], v) {
            inner[first].push(v);
        } else {
            here[first].push(v);
        }
    }
    for ((stmt, vars), uses) in block.iter_mut().zip(inner).zip(uses) {
        if let Some(body) = stmt.body_mut() {
            place(body, &uses.body, vars, cx);
        }
    }
    if here.iter().any(|h| !h.is_empty()) {
        insert(block, here, cx);
    }
}

/// Declares variables before their first uses; a first assignment becomes the declaration.
fn insert(block: &mut Block, here: Vec<Vec<usize>>, cx: &Context<'_>) {
    let mut writes = vec![0_u32; cx.vars.len()];
    count_writes(block, cx, &mut writes);
    let statements = std::mem::take(block);
    for (mut stmt, vars) in statements.into_iter().zip(here) {
        for v in vars {
            let var = &cx.vars[v];
            let declaration = |value, constant, origin| {
                let plain = Declare::scalar(var.name.clone(), var.ty, value);
                Stmt::Declare(Declare { len: var.len, constant, origin, ..plain })
            };
            if var.len.is_none() && cx.defines(&stmt, v) {
                if let Stmt::Assign { value, origin, .. } = stmt {
                    stmt = declaration(Some(value), writes[v] == 1, origin);
                }
            } else {
                block.push(declaration(None, false, None));
            }
        }
        block.push(stmt);
    }
}

fn count_writes(block: &Block, cx: &Context<'_>, writes: &mut [u32]) {
    for stmt in block {
        for name in stmt.written() {
            if let Some(v) = cx.index.get(&**name) {
                writes[*v] += 1;
            }
        }
        if let Some(body) = stmt.body() {
            count_writes(body, cx, writes);
        }
    }
}
