//! Evaluates the sum of a loop over products of table entries in advance.

use crate::moved_terms::{LOOPS, Leaving, Moved, Part, WHOLE};
use crate::outer_factors;
use crate::polynomial::{Product, joined};
use crate::proofs::separable::{
    ALIKE, Changing, LOCAL, POINTS, SUMS, Separated, TABLES, Term, axis_extents, constant_extents, entry_of,
    separate,
};
use crate::table_sums::{EXACT, EXTENT, Maker, Piece, RANGE, SIZE};
use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, InameId, InsnId, Kernel, Node, VarId, VarKind, Variable};
use kingpost_steps::accuracy::Digits;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup::{self, NO_REDUCTION};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Array;
use kingpost_steps::tree::{edit_siblings, prune_insn, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Replaces a loop that sums products of table entries by one product with a table of the sums.
///
/// # Rewrite
/// ```text
/// for q in 0..3                         =>   set_factor: factor = d*g
///   set_e: e = w[q]*d                        for i in 0..2
///   for i in 0..2                              s: y[i] += reference[i]*factor
///     s: y[i] += phi[q, i]*(g*e)
/// ```
/// The value of each update is expanded to a sum of products. With `m` the terms, `g_m` the factors
/// that do not change with the loop and `T_m` the products of entries, `sum_q sum_m g_m T_m(q)` is
/// `sum_m g_m sum_q T_m(q)`. Terms with equal factors share a table, or else terms with equal
/// entries share a sum of factors, whichever leaves fewer products. A table serves all updates, also
/// with its axes exchanged. Products of scalars are computed once, in front. Terms whose sums are
/// all zero are gone.
///
/// # Precondition
/// The loop runs over `0..n`, and what it adds to anything outside is a sum of products of entries
/// of tables of `f64` and of factors that do not change with it. Scalars that are stored before
/// they are used in an iteration, and only used inside, are replaced by their values to see this.
/// The new tables are the sums of products of entries, computed in twice the precision and rounded
/// once. One is zero that is below `10^-digits R`: `R` is the largest sum of absolute values, `sum_q sum_m
/// |T_m(q)|`, of its row or of its column in the new table, whichever is smaller; its own in a table of
/// one axis. Results are equal as far as tables are equal up to this tolerance, where values are finite.
///
/// # Errors
/// A loop whose bounds are no such constants; a condition, an index of a write or an inner bound
/// that changes with the loop; a scalar that is used elsewhere, or from another iteration; anything
/// else that is written other than by `+=` or read inside; a factor that changes with the loop and
/// is no entry of a table, with the instruction and the factor; an infinity or a nan; products of entries
/// that overflow or underflow; tables that would exceed the maximum size.
///
/// # Source
/// Luporini et al. 2017, §3.3, Algorithm 2; the reference tensor of Kirby & Logg 2006.
///
/// # Elsewhere
/// FFC's tensor contraction mode; COFFEE's pre-evaluation; TSFC's `tensor` mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreEvaluateLoop {
    /// The loop over points.
    pub iname: String,
    /// The tables whose terms are summed in advance; all terms if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Decimal digits below the sums of absolute values of its row and column, from which on a sum is
    /// zero.
    #[serde(default, skip_serializing_if = "Digits::is_default")]
    pub digits: Digits<14>,
}

impl PreEvaluateLoop {
    /// Evaluates the loop `iname` in advance, to 14 digits.
    pub fn new(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), tables: Vec::new(), digits: Digits::default() }
    }

    /// Only terms with entries of these tables, and of weights.
    #[must_use]
    pub fn of_tables(mut self, tables: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tables = tables.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Display for PreEvaluateLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pre-evaluate `{}`", self.iname)?;
        if !self.tables.is_empty() {
            let tables: Vec<String> = self.tables.iter().map(|t| format!("`{t}`")).collect();
            write!(f, " for {}", tables.join(", "))?;
        }
        self.digits.fmt(f)
    }
}

/// There is something to evaluate.
const SOME: Obligation = Obligation::new(
    "pre_evaluate_loop.some",
    "with tables named, a term has entries of these and of weights, and nothing else that changes",
);

/// The tables of the sums of a loop, and what its updates become.
pub struct Sums {
    iname: InameId,
    separated: Separated,
    tables: Vec<Variable>,
    pieces: BTreeMap<InsnId, Vec<Piece>>,
    /// Products of scalars that are computed in front.
    scalars: Vec<Vec<(Product, f64)>>,
    /// What leaves a loop that stays.
    moved: Option<Vec<Moved>>,
}

impl Primitive for PreEvaluateLoop {
    const NAME: &'static str = "pre_evaluate_loop";
    const SUMMARY: &'static str = "Evaluates the sum of a loop over products of table entries in advance.";

    type Proof = Sums;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] = &[
        RANGE,
        EXTENT,
        SIZE,
        EXACT,
        FINITE,
        SOME,
        WHOLE,
        LOOPS,
        ALIKE,
        LOCAL,
        POINTS,
        SUMS,
        TABLES,
        NOT_CALLED,
        NO_REDUCTION,
    ];
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Sums, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let extents = axis_extents(kernel);
        let points = RANGE.find(constant_extents(kernel).get(&iname).copied(), || {
            format!(
                "`{}` does not run from 0 to a constant above; shift it, or fix the parameters in its bounds",
                self.iname
            )
        })?;
        if !self.tables.is_empty() {
            return self.of_some(kernel, iname, points, &extents);
        }
        let separated = separate(kernel, iname, Changing::Entries)?;
        let mut maker = Maker::new(kernel, self.digits.tolerance(), points, &extents);
        let mut pieces = BTreeMap::new();
        for (insn, terms) in &separated.updates {
            pieces.insert(*insn, maker.pieces(&kernel.insns[*insn], terms)?);
        }
        let tables = maker.variables();
        let scalars = scalars(kernel, iname, &extents, &separated, &pieces);
        Ok(Sums { iname, separated, tables, pieces, scalars, moved: None })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Sums) -> Vec<Array> {
        let tables: Vec<VarId> = proof.tables.iter().map(|t| kernel.vars.push(t.clone())).collect();
        let atoms = &proof.separated.atoms;
        if let Some(moved) = &proof.moved {
            let leaving = Leaving { iname: proof.iname, atoms, stores: &proof.separated.stores };
            leaving.take_out(kernel, moved, &tables, [const { Vec::new() }; 3]);
            return proof.tables.iter().map(|t| Array::named(&t.name)).collect();
        }
        let mut in_front = Vec::new();
        let mut scalars = Vec::new();
        for factors in &proof.scalars {
            let users = proof.pieces.keys().copied();
            let (var, insn) = outer_factors::store(kernel, atoms, factors, users);
            scalars.push(var);
            in_front.push(insn);
        }
        let value = |piece: &Piece| {
            let known = proof.scalars.iter().position(|s| *s == piece.factors);
            let factor = match known {
                Some(k) => Some((Some(Expr::scalar(scalars[k])), 1.0)),
                None => outer_factors::value_of(atoms, &piece.factors),
            };
            let entry = piece
                .table
                .as_ref()
                .map(|(table, axes)| Expr::load(tables[*table], axes.iter().map(|axis| Expr::Iname(*axis))));
            match (entry, factor) {
                (Some(entry), Some((Some(e), c))) => (Some(entry * e), c),
                (Some(entry), Some((None, c))) => (Some(entry), c),
                (Some(entry), None) => (Some(entry), 0.0),
                (None, Some(factor)) => factor,
                (None, None) => (None, 0.0),
            }
        };
        for (insn, pieces) in &proof.pieces {
            kernel.insns[*insn].rhs = joined(pieces.iter().map(value)).unwrap_or(Expr::Int(0));
        }
        let mut body = Vec::new();
        let at = |node: &Node| matches!(node, Node::Loop(i, _) if *i == proof.iname);
        replace_loop(&mut kernel.body, proof.iname, &mut |mut inside| {
            let gone = proof.separated.stores.iter().copied();
            let nothing = proof.pieces.iter().filter(|(_, pieces)| pieces.is_empty()).map(|(insn, _)| *insn);
            gone.chain(nothing).for_each(|insn| prune_insn(&mut inside, insn));
            body = inside;
            vec![Node::Loop(proof.iname, Vec::new())]
        });
        edit_siblings(&mut kernel.body, &at, &mut |nodes| {
            if let Some(k) = nodes.iter().position(at) {
                nodes.splice(k..=k, in_front.drain(..).map(Node::Insn).chain(body.drain(..)));
            }
        });
        proof.tables.iter().map(|t| Array::named(&t.name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all: Vec<Self> = draw::loops(kernel).iter().map(Self::new).collect();
        let is_table = |v: &Variable| matches!(v.kind, VarKind::Table(_)) && v.shape.len() == 2;
        let some = draw::vars(kernel, is_table);
        if !some.is_empty() {
            all.extend(draw::loops(kernel).iter().map(|l| Self::new(l).of_tables(&some)));
        }
        draw::possible(kernel, all, p)
    }
}

impl PreEvaluateLoop {
    /// The sums of the terms with entries of some tables, and what stays.
    fn of_some(
        &self,
        kernel: &Kernel,
        iname: InameId,
        points: usize,
        extents: &BTreeMap<InameId, usize>,
    ) -> Result<Sums, Refusal> {
        let tables = self.tables.iter().map(|name| lookup::var(kernel, name));
        let tables: BTreeSet<VarId> = tables.collect::<Result<_, _>>()?;
        let separated = separate(kernel, iname, Changing::Scalars)?;
        let mut maker = Maker::new(kernel, self.digits.tolerance(), points, extents);
        let mut moved = Vec::new();
        for (id, terms) in &separated.updates {
            let of_tables: Vec<Option<Term>> =
                terms.iter().map(|t| constant_term(kernel, iname, &separated, &tables, t)).collect();
            let leaves = |k: usize| of_tables[k].is_some();
            let Some(mut of) = Moved::of(kernel, iname, (*id, terms), extents, &leaves)? else { continue };
            let leaving: Vec<Term> = of_tables.into_iter().flatten().collect();
            for piece in maker.pieces(&kernel.insns[*id], &leaving)? {
                let factors = piece.factors;
                // an entry of a table that leaves has a loop, so that its sums are a table
                of.parts.extend(piece.table.map(|(array, axes)| Part { array, axes, factors }));
            }
            moved.push(of);
        }
        SOME.require(!moved.is_empty(), || {
            format!(
                "no term of an update in `{}` has entries of these tables and of weights alone; name others, or sum \
                 moments (`sum_moments`)",
                self.iname
            )
        })?;
        let tables = maker.variables();
        let (pieces, scalars) = (BTreeMap::new(), Vec::new());
        Ok(Sums { iname, separated, tables, pieces, scalars, moved: Some(moved) })
    }
}

/// A term with entries of some tables and of weights, which are entries, too; none of another.
fn constant_term(
    kernel: &Kernel,
    iname: InameId,
    separated: &Separated,
    tables: &BTreeSet<VarId>,
    term: &Term,
) -> Option<Term> {
    if term.entries.is_empty() || !term.entries.iter().all(|(var, _)| tables.contains(var)) {
        return None;
    }
    let mut whole = term.clone();
    for factor in std::mem::take(&mut whole.varying) {
        let entry = entry_of(kernel, iname, separated.atoms.get(factor.atom)).filter(|_| !factor.divides);
        whole.entries.push(entry?);
    }
    whole.entries.sort();
    Some(whole)
}

/// The products of factors that are worth a scalar before the loop: those that hold an
/// operation and nothing but scalars, where all loops around their updates run.
fn scalars(
    kernel: &Kernel,
    iname: InameId,
    extents: &BTreeMap<InameId, usize>,
    separated: &Separated,
    pieces: &BTreeMap<InsnId, Vec<Piece>>,
) -> Vec<Vec<(Product, f64)>> {
    let mut found: Vec<Vec<(Product, f64)>> = Vec::new();
    for (insn, loops) in kernel.schedule() {
        let inside = loops.iter().skip_while(|l| **l != iname).skip(1);
        let runs = inside.clone().all(|l| extents.contains_key(l));
        for piece in pieces.get(&insn).into_iter().flatten().filter(|p| runs && p.table.is_some()) {
            let worth = outer_factors::is_worth_a_scalar(&separated.atoms, &piece.factors);
            if worth && !found.contains(&piece.factors) {
                found.push(piece.factors.clone());
            }
        }
    }
    found
}
