//! Where the statements of functions stand in their source, and for which instructions.

use crate::ast::{Block, Expr, Fence, Name, Stmt};
use kingpost_ir::InsnId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A statement of the code in the text.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Number of its function.
    pub(crate) function: usize,
    /// Its bytes: whole lines.
    pub(crate) bytes: Range<usize>,
    /// What it is.
    pub(crate) of: Marked,
}

/// What a statement of the code is for.
#[derive(Clone, Debug)]
pub(crate) enum Marked {
    /// These instructions.
    Insns(BTreeSet<InsnId>),
    /// A loop or a condition around these instructions.
    Around(BTreeSet<InsnId>),
    /// A barrier.
    Barrier(Fence),
}

/// Marks as they are found, of one function after the other.
#[derive(Default)]
pub(super) struct Marks {
    found: Vec<Mark>,
    /// The instructions that each name of the current function is needed for.
    needed: BTreeMap<Name, BTreeSet<InsnId>>,
    /// Number of functions so far.
    functions: usize,
}

impl Marks {
    /// The next function begins.
    pub(super) fn enter(&mut self, body: &Block) {
        self.functions += 1;
        self.needed = needed(body);
    }

    /// Moves the marks of a function to where its body stands in the text.
    pub(super) fn shift(&mut self, function: usize, start: usize) {
        for mark in self.found.iter_mut().filter(|mark| mark.function == function) {
            mark.bytes = mark.bytes.start + start..mark.bytes.end + start;
        }
    }

    pub(super) fn into_found(self) -> Vec<Mark> {
        self.found
    }

    /// A statement was printed, those in it before.
    pub(super) fn note(&mut self, stmt: &Stmt, bytes: Range<usize>) {
        let needed = |name: &Name| self.needed.get(name).cloned().unwrap_or_default(); // by no instruction
        let of = match stmt {
            Stmt::Comment(_) | Stmt::Iteration(_) => return,
            Stmt::Barrier(fence) => Marked::Barrier(fence.clone()),
            Stmt::If { body, .. } => Marked::Around(insns_in(body)),
            Stmt::For(f) => Marked::Around(insns_in(&f.body)),
            Stmt::Declare(d) => Marked::Insns(needed(&d.name).into_iter().chain(d.origin).collect()),
            Stmt::Assign { .. } | Stmt::Atomic(_) | Stmt::Intrinsic(_) => {
                let own = own(stmt);
                let others = || stmt.written().into_iter().flat_map(&needed).collect();
                Marked::Insns(if own.is_empty() { others() } else { own })
            }
        };
        let function = self.functions - 1;
        self.found.push(Mark { function, bytes, of });
    }
}

/// The instructions that a statement of the code itself stands for.
fn own(stmt: &Stmt) -> BTreeSet<InsnId> {
    match stmt {
        Stmt::Assign { origin, .. } => origin.iter().copied().collect(),
        Stmt::Atomic(a) => [a.origin].into(),
        Stmt::Intrinsic(i) => i.origins.iter().copied().collect(),
        Stmt::Declare(d) => d.origin.into_iter().collect(),
        Stmt::Comment(_) | Stmt::If { .. } | Stmt::For(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => {
            BTreeSet::new()
        }
    }
}

fn insns_in(block: &Block) -> BTreeSet<InsnId> {
    let all = |stmt: &Stmt| match stmt.body() {
        Some(body) => insns_in(body),
        None => own(stmt),
    };
    block.iter().flat_map(all).collect()
}

/// The instructions that need each name: those that read or write it, or something that is computed from it
/// for nobody else, such as the accumulator of a reduction.
fn needed(body: &Block) -> BTreeMap<Name, BTreeSet<InsnId>> {
    let mut needed: BTreeMap<Name, BTreeSet<InsnId>> = BTreeMap::new();
    let mut links: Vec<(Name, BTreeSet<Name>)> = Vec::new();
    visit(body, &mut needed, &mut links);
    loop {
        let mut grown = false;
        // a value is computed before it is used
        for (target, sources) in links.iter().rev() {
            let Some(by) = needed.get(target).cloned() else { continue };
            for source in sources {
                let of = needed.entry(source.clone()).or_default();
                let before = of.len();
                of.extend(&by);
                grown |= of.len() > before;
            }
        }
        if !grown {
            return needed;
        }
    }
}

fn visit(
    block: &Block,
    needed: &mut BTreeMap<Name, BTreeSet<InsnId>>,
    links: &mut Vec<(Name, BTreeSet<Name>)>,
) -> BTreeSet<InsnId> {
    let mut all = BTreeSet::new();
    for stmt in block {
        let mut names = BTreeSet::new();
        for e in stmt.expressions() {
            e.for_each(&mut |e| {
                if let Expr::Load(place) = e {
                    names.insert(place.name.clone());
                }
            });
        }
        let by = match stmt.body() {
            Some(body) => visit(body, needed, links),
            None => own(stmt),
        };
        match stmt {
            Stmt::Declare(d) => {
                for name in &names {
                    needed.entry(name.clone()).or_default().extend(&by);
                }
                links.push((d.name.clone(), names));
            }
            Stmt::Assign { place, origin: None, .. } => links.push((place.name.clone(), names)),
            Stmt::Assign { .. } | Stmt::Atomic(_) | Stmt::Intrinsic(_) | Stmt::If { .. } | Stmt::For(_) => {
                names.extend(stmt.written().into_iter().cloned());
                for name in names {
                    needed.entry(name).or_default().extend(&by);
                }
            }
            Stmt::Comment(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => {}
        }
        all.extend(by);
    }
    all
}
