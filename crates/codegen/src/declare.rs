//! Where private variables are declared: the innermost scope that holds all uses and keeps the value.
//!
//! A scalar goes into a sequential loop only if each iteration assigns it before it reads it; an array
//! stays outside of sequential loops. Loops over work-groups, work-items and vector lanes are parallel:
//! what is used inside only is declared inside.

use crate::ast::{Block, Declare, Expr, LoopKind, Name, Stmt};
use purlin_ir::ScalarType;
use std::collections::{BTreeMap, BTreeSet};

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
    let index: BTreeMap<Name, usize> = vars.iter().enumerate().map(|(k, v)| (v.name.clone(), k)).collect();
    let pending = (0..vars.len()).collect();
    place(block, pending, &Context { vars, index });
}

struct Context<'a> {
    vars: &'a [Private],
    index: BTreeMap<Name, usize>,
}

type Set = BTreeSet<usize>;

impl Context<'_> {
    fn used_in_expr(&self, e: &Expr, set: &mut Set) {
        e.for_each(&mut |e| {
            if let Expr::Load(place) = e {
                set.extend(self.index.get(&place.name));
            }
        });
    }

    /// Variables that the statement's own expressions and target mention, not those of its body.
    fn used_in_head(&self, stmt: &Stmt) -> Set {
        let mut set = Set::new();
        for e in stmt.expressions() {
            self.used_in_expr(e, &mut set);
        }
        if let Some((place, _)) = stmt.written() {
            set.extend(self.index.get(&place.name));
        }
        set
    }

    fn used(&self, stmt: &Stmt) -> Set {
        let mut set = self.used_in_head(stmt);
        for inner in stmt.body().into_iter().flatten() {
            set.extend(self.used(inner));
        }
        set
    }

    /// Whether the statement gives the scalar a value without reading it.
    fn defines(&self, stmt: &Stmt, v: usize) -> bool {
        let Stmt::Assign { place, op: None, value, .. } = stmt else { return false };
        let mut read = Set::new();
        self.used_in_expr(value, &mut read);
        place.name == self.vars[v].name && place.offset.is_none() && !read.contains(&v)
    }

    /// Whether each run of the block gives the scalar a value before anything reads it.
    fn starts_defined(&self, block: &Block, v: usize) -> bool {
        let users: Vec<&Stmt> = block.iter().filter(|s| self.used(s).contains(&v)).collect();
        let Some(first) = users.first() else { return true };
        if self.defines(first, v) {
            return true;
        }
        match first.body() {
            Some(body) if users.len() == 1 && !self.used_in_head(first).contains(&v) => {
                self.starts_defined(body, v)
            }
            Some(_) | None => false,
        }
    }

    /// Whether the declaration may move into the body of the statement.
    fn may_enter(&self, stmt: &Stmt, v: usize) -> bool {
        if self.used_in_head(stmt).contains(&v) {
            return false;
        }
        match stmt {
            Stmt::If { .. } => true,
            Stmt::For(f) => match f.kind {
                LoopKind::Groups | LoopKind::WorkItems | LoopKind::Vector => true,
                LoopKind::Sequential => self.vars[v].len.is_none() && self.starts_defined(&f.body, v),
            },
            Stmt::Comment(_)
            | Stmt::Declare(_)
            | Stmt::Assign { .. }
            | Stmt::Atomic(_)
            | Stmt::Iteration(_)
            | Stmt::Barrier(_) => false,
        }
    }
}

fn place(block: &mut Block, pending: Vec<usize>, cx: &Context<'_>) {
    if pending.is_empty() {
        return;
    }
    let used: Vec<Set> = block.iter().map(|s| cx.used(s)).collect();
    let mut inner: Vec<Vec<usize>> = vec![Vec::new(); block.len()];
    let mut here: Vec<Vec<usize>> = vec![Vec::new(); block.len()];
    for v in pending {
        let mut users = (0..block.len()).filter(|k| used[*k].contains(&v));
        let Some(first) = users.next() else { continue };
        if users.next().is_none() && cx.may_enter(&block[first], v) {
            inner[first].push(v);
        } else {
            here[first].push(v);
        }
    }
    for (stmt, vars) in block.iter_mut().zip(inner) {
        if let Some(body) = stmt.body_mut() {
            place(body, vars, cx);
        }
    }
    insert(block, here, cx);
}

/// Declares variables before their first uses; a first assignment becomes the declaration.
fn insert(block: &mut Block, here: Vec<Vec<usize>>, cx: &Context<'_>) {
    let mut writes = BTreeMap::new();
    count_writes(block, &mut writes);
    let statements = std::mem::take(block);
    for (stmt, vars) in statements.into_iter().zip(here) {
        let mut stmt = stmt;
        for v in vars {
            let var = &cx.vars[v];
            let declaration = |value, constant| {
                let (name, ty, len) = (var.name.clone(), var.ty, var.len);
                Stmt::Declare(Declare { name, ty, len, value, constant, local: false })
            };
            if var.len.is_none() && cx.defines(&stmt, v) {
                let constant = writes.get(&var.name) == Some(&1);
                if let Stmt::Assign { value, .. } = stmt {
                    stmt = declaration(Some(value), constant);
                }
            } else {
                block.push(declaration(None, false));
            }
        }
        block.push(stmt);
    }
}

fn count_writes(block: &Block, writes: &mut BTreeMap<Name, usize>) {
    for stmt in block {
        if let Some((place, _)) = stmt.written() {
            *writes.entry(place.name.clone()).or_default() += 1;
        }
        if let Some(body) = stmt.body() {
            count_writes(body, writes);
        }
    }
}

/// Whether each run of the block gives the scalar a value before anything reads it.
pub(crate) fn starts_defined(block: &Block, var: &Private) -> bool {
    let index = BTreeMap::from([(var.name.clone(), 0)]);
    Context { vars: std::slice::from_ref(var), index }.starts_defined(block, 0)
}
