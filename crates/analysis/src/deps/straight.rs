//! Variables that all instructions touch by the same index, directly in the same loops.
//!
//! Within an iteration such a variable is one element, so its accesses are a sequence, and a scan
//! of it gives the dependences without comparing every pair: a read follows the *run* of writes
//! before it (one assignment, or updates by one operator with nothing in between), a write follows
//! the reads since the last run, or that run. The number of relations grows with the number of
//! accesses, not with its square. Every other conflicting pair follows by transitivity, and no path
//! needs an update dependence, which orders nothing.

use crate::deps::access::{AccessSite, Mode};
use crate::deps::confined::is_injective_on;
use crate::polyhedral::Polyhedral;
use kingpost_ir::expr::UpdateOp;
use kingpost_ir::ids::InameId;

/// A dependence to be: positions in the list of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What comes first.
    pub source: usize,
    /// What comes after.
    pub sink: usize,
    /// Whether the source is in an earlier iteration of the loops; else in the same.
    pub across: bool,
    /// For a flow to a later iteration: the write that hides the value from the iterations after.
    pub hidden_by: Option<usize>,
}

/// The loops around all accesses and the dependences between them, if the variable is straight and
/// the scan knows what happens between iterations.
pub fn straight_edges(poly: &Polyhedral, sites: &[AccessSite]) -> Option<(Vec<InameId>, Vec<Edge>)> {
    let loops = poly.loops(sites.first()?.insn);
    let same = |s: &AccessSite| {
        poly.loops(s.insn) == loops
            && s.index == sites[0].index
            && s.is_affine()
            && s.reduction.is_empty()
            && poly.kernel.insns[s.insn].predicate.is_none()
    };
    if !sites.iter().all(same) {
        return None;
    }
    let mut scan = Scan::default();
    for (k, site) in sites.iter().enumerate() {
        scan.access(k, site.mode);
    }
    if !loops.is_empty() && !is_injective_on(loops, &sites[0]) {
        scan.between_iterations(sites)?;
    }
    Some((loops.to_vec(), scan.edges))
}

/// The last writes: one assignment, or updates by one operator.
#[derive(Default)]
struct Run {
    op: Option<UpdateOp>,
    members: Vec<usize>,
    /// What each member follows.
    after: Vec<usize>,
}

#[derive(Default)]
struct Scan {
    edges: Vec<Edge>,
    run: Run,
    /// Reads since the last write.
    reads: Vec<usize>,
    /// Reads before the first write.
    leading: Vec<usize>,
    first_write: Option<usize>,
}

impl Scan {
    fn inside(&mut self, source: usize, sink: usize) {
        self.edges.push(Edge { source, sink, across: false, hidden_by: None });
    }

    fn across(&mut self, source: usize, sink: usize, hidden_by: Option<usize>) {
        self.edges.push(Edge { source, sink, across: true, hidden_by });
    }

    fn access(&mut self, k: usize, mode: Mode) {
        let op = match mode {
            Mode::Read => {
                for m in self.run.members.clone() {
                    self.inside(m, k);
                }
                self.reads.push(k);
                if self.first_write.is_none() {
                    self.leading.push(k);
                }
                return;
            }
            Mode::Assign => None,
            Mode::Update(op) => Some(op),
        };
        self.first_write = self.first_write.or(Some(k));
        if op.is_some() && op == self.run.op && self.reads.is_empty() {
            self.extend_run(k);
        } else {
            self.start_run(k, op);
        }
    }

    fn extend_run(&mut self, k: usize) {
        for m in self.run.after.clone() {
            self.inside(m, k);
        }
        // only so that both are known to touch the element: updates by one operator commute
        if let Some(m) = self.run.members.last().copied() {
            self.inside(m, k);
        }
        self.run.members.push(k);
    }

    fn start_run(&mut self, k: usize, op: Option<UpdateOp>) {
        let earlier = std::mem::take(&mut self.run);
        let reads = std::mem::take(&mut self.reads);
        let commutes = op.is_some() && op == earlier.op;
        // Reads follow the run before them, so that after reads an overwritten run needs no edge;
        // an update reads what the run leaves.
        let seen = if commutes { earlier.members.len().saturating_sub(1) } else { 0 };
        if reads.is_empty() || op.is_some() {
            for m in &earlier.members[seen..] {
                self.inside(*m, k);
            }
        }
        for r in &reads {
            self.inside(*r, k);
        }
        let after = if reads.is_empty() { earlier.members } else { reads };
        self.run = Run { op, members: vec![k], after };
    }

    /// Adds what an iteration must follow of earlier ones that touch the element. `None` where
    /// updates, whose order is free, stand between the iterations.
    fn between_iterations(&mut self, sites: &[AccessSite]) -> Option<()> {
        let Some(first) = self.first_write else { return Some(()) };
        let updates = sites.iter().any(|s| matches!(s.mode, Mode::Update(_)));
        if first == 0 && sites[0].mode == Mode::Assign {
            // nothing flows in: everything precedes the first write of later iterations
            for k in 0..sites.len() {
                self.across(k, 0, None);
            }
        } else if !updates {
            let last = self.run.members[0];
            for r in self.leading.clone() {
                self.across(last, r, Some(last));
            }
            self.across(last, first, None);
            for r in self.reads.clone() {
                self.across(r, first, None);
            }
        } else if self.run.members.len() == sites.len() {
            // one run of updates: each meets itself, and the last writer of the next iteration's
            // first
            self.across(sites.len() - 1, 0, None);
            for k in 0..sites.len() - usize::from(sites.len() == 1) {
                self.across(k, k, None);
            }
        } else {
            return None;
        }
        Some(())
    }
}
