//! Where an instruction runs, and what is known of the symbols.

use super::{Range, Row, Shared};
use crate::polyhedral::{Disjuncts, Polyhedral, conjunction};
use kingpost_ir::domain::Domain;
use kingpost_ir::ids::{InameId, InsnId};

/// The symbols and what is assumed of them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Symbols {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// What is assumed.
    assumed: Vec<Row>,
    /// What the types of some can hold, ends included.
    pub(crate) ranges: Vec<(String, i64, i64)>,
}

impl Symbols {
    pub(crate) fn of(poly: &Polyhedral) -> Self {
        let known = poly.kernel.known_of_parameters();
        let assumed = known.iter().filter_map(|c| Row::of(c, &[], &|v| poly.symbol(v))).collect();
        let ranges = crate::polyhedral::symbol_ranges(&poly.kernel);
        Self { names: poly.params.clone(), assumed, ranges }
    }

    /// What is assumed of the symbols.
    pub(super) fn assumed(&self) -> &[Row] {
        &self.assumed
    }

    /// Adds the assumptions to every disjunct.
    pub(super) fn restrict(&self, all: Disjuncts) -> Disjuncts {
        let assumed: Vec<_> = self.assumed.iter().map(|row| row.named(&[], &self.names)).collect();
        if assumed.is_empty() { all } else { conjunction(all, vec![assumed]) }
    }
}

/// A disjunction of conjunctions.
pub(crate) type Union = Vec<Vec<Row>>;

/// Where an instruction runs, or what stands in reductions of it: all that isl is told.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instances {
    /// Number of loops around the instruction.
    pub(crate) loops: usize,
    /// Number of reduction loops inside it.
    pub(crate) reductions: usize,
    /// All of these hold.
    parts: Vec<Shared<Union>>,
}

impl Instances {
    /// The instances of an instruction where the first parts of its condition hold, or all, and
    /// what stands in these reductions. Constraints on scalars that may change are left out.
    pub(crate) fn of(
        poly: &Polyhedral,
        insn: InsnId,
        conditions: Option<usize>,
        reductions: &[InameId],
    ) -> Self {
        let loops = poly.loops(insn);
        let scope = [loops, reductions].concat();
        let mut parts: Vec<_> = loops.iter().map(|l| poly.loop_values(*l, &scope, true)).collect();
        parts
            .extend(poly.conditions(insn, conditions).iter().map(|d| Shared::new(union_of(poly, d, &scope))));
        parts.extend(reductions.iter().map(|l| poly.loop_values(*l, &scope, false)));
        Self { loops: loops.len(), reductions: reductions.len(), parts }
    }

    /// Number of all loops.
    pub(crate) fn depth(&self) -> usize {
        self.loops + self.reductions
    }

    /// Bounds of each loop, as far as constraints on it alone tell.
    pub(super) fn ranges(&self) -> Vec<Range> {
        let mut ranges = vec![Range::default(); self.depth()];
        for part in &self.parts {
            if let [rows] = part.as_slice() {
                rows.iter().for_each(|row| row.narrow(&mut ranges));
            }
        }
        ranges
    }

    /// Constraints that hold everywhere; all of them, if they are a conjunction.
    pub(super) fn certain_rows(&self) -> impl Iterator<Item = &Row> {
        self.parts.iter().filter(|part| part.len() == 1).flat_map(|part| part.iter().flatten())
    }

    /// The constraints, if they are a conjunction.
    pub(super) fn rows(&self) -> Option<impl Iterator<Item = &Row>> {
        let all = self.parts.iter().all(|part| part.len() == 1);
        all.then(|| self.parts.iter().flat_map(|part| part.iter().flatten()))
    }

    /// The points in isl's terms.
    pub(super) fn named(&self, loops: &[String], symbols: &Symbols) -> Disjuncts {
        let mut all: Disjuncts = vec![Vec::new()];
        for part in &self.parts {
            let conjunctions =
                part.iter().map(|rows| rows.iter().map(|r| r.named(loops, &symbols.names)).collect());
            all = conjunction(all, conjunctions.collect());
        }
        all
    }
}

/// A domain by numbers.
pub(crate) fn union_of(poly: &Polyhedral, domain: &Domain, scope: &[InameId]) -> Union {
    let row = |c| Row::of(c, scope, &|v| poly.symbol(v));
    domain.disjuncts().iter().map(|d| d.iter().filter_map(row).collect()).collect()
}
