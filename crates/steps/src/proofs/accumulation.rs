//! What primitives that regroup the terms of an update must know: that nobody sees the element in
//! between, that it is found by the same way later, and that there is one where no term is.

use crate::lookup;
use crate::obligation::Obligation;
use crate::proofs::order::relation_text;
use crate::proofs::stale;
use crate::proofs::written::{NewRead, may_be_undefined};
use crate::proved::Means;
use crate::refusal::{AtParameters, LostValue, Refusal, WrongOrder};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_analysis::deps::{AccessSite, DependenceKind, Mode};
use kingpost_analysis::polyhedral::{Disjuncts, Polyhedral, Side, difference, smallest_point};
use kingpost_ir::{Expr, InameId, Insn, InsnId, Kernel, UpdateOp};
use kingpost_isl as isl;

/// A sum is accumulated by an update.
pub const IS_UPDATE: Obligation = Obligation::new("is_update", "the instruction is an update");

/// Expressions that will stand in two places hold no loop of their own.
pub const NO_REDUCTIONS: Obligation =
    Obligation::new("no_reductions", "no reduction is in an expression that would stand in two places");

/// A sum without terms is added to an element, too.
pub const HAS_ELEMENT: Obligation =
    Obligation::new("has_element", "the updated element is there also where the sum has no term");

/// A sum without terms is added to a value, too.
pub const HAS_VALUE: Obligation =
    Obligation::new("has_value", "the updated element has a value also where the sum has no term");

/// The update of a name and its operator, by which values may be joined in any order.
///
/// # Errors
/// An unknown name, a plain store, or an operator whose operands keep their order.
pub fn update(kernel: &Kernel, name: &str) -> Result<(InsnId, UpdateOp), Refusal> {
    let (id, op) = update_in_order(kernel, name)?;
    IS_UPDATE.require(op.commutes(), || {
        format!(
            "`{name}` updates by `{}`, which is not declared associative and commutative, so that its operands keep \
             their order",
            op.update_symbol()
        )
    })?;
    Ok((id, op))
}

/// The update of a name and its operator, by which values may be grouped in another way.
///
/// # Errors
/// An unknown name, a plain store, or an operator that is not declared associative.
pub fn update_in_order(kernel: &Kernel, name: &str) -> Result<(InsnId, UpdateOp), Refusal> {
    let id = lookup::insn(kernel, name)?;
    let insn = &kernel.insns[id];
    let op = IS_UPDATE.find(insn.update_op(), || {
        format!(
            "`{name}` is a plain store to `{}`, needed an update such as `+=`; convert it to an update first, if it \
             accumulates",
            kernel.vars[insn.lhs.var].name
        )
    })?;
    IS_UPDATE.require(op.named().is_none_or(kingpost_ir::NamedOperator::is_associative), || {
        format!(
            "`{name}` updates by `{}`, which is not declared associative; declare it so, if it is",
            op.update_symbol()
        )
    })?;
    Ok((id, op))
}

/// Refuses a reduction in expressions that will stand in two places: its loop can stand in one
/// only.
///
/// # Errors
/// [`Refusal::Argument`] with the reduction.
pub fn refuse_reductions(kernel: &Kernel, insn: &Insn, expressions: &[&Expr]) -> Result<(), Refusal> {
    let mut found = None;
    for e in expressions {
        e.for_each(&mut |e| {
            if let Expr::Reduce(r) = e {
                found = found.or(r.inames.first().copied());
            }
        });
    }
    NO_REDUCTIONS.forbid(found, |iname| {
        format!(
            "`{}` holds the reduction over `{}` in an expression that would stand in two places; store it in a \
             temporary first",
            insn.name, kernel.inames[iname].name
        )
    })
}

/// An update inside the loop from whose end on its terms will count.
pub struct Delayed<'a, 'k> {
    /// The kernel.
    pub analysis: &'a Analysis<'k>,
    /// The update.
    pub id: InsnId,
    /// How many of the loops around it are around the loop that ends first.
    pub outer: usize,
}

impl Delayed<'_, '_> {
    fn kernel(&self) -> &Kernel {
        self.analysis.expanded()
    }

    fn poly(&self) -> &Polyhedral<'_> {
        self.analysis.polyhedral()
    }

    /// The loops around the one that ends first.
    fn around(&self) -> &[InameId] {
        &self.poly().loops(self.id)[..self.outer]
    }

    /// Whether an access lies inside the loop that ends first.
    fn is_inside(&self, site: &AccessSite) -> bool {
        self.poly().loops(site.insn).starts_with(&self.poly().loops(self.id)[..=self.outer])
    }

    /// Checks that nobody inside the loop sees the element after the update.
    ///
    /// Formula: with `o` the loops around, for every access `s` inside the loop to the variable
    /// that is no update by the same operator,
    /// `{ u -> s : o = o', element(u) = element(s), u before s }` is empty.
    ///
    /// # Errors
    /// [`ORDER`] not proved, with the smallest pair of that set, or a failure of isl.
    pub fn check_unseen(&self, help: &str) -> Result<(), Refusal> {
        let all = self.analysis.sites(self.kernel().insns[self.id].lhs.var);
        let Some(own) = all.iter().find(|s| s.insn == self.id && s.writes()) else { return Ok(()) };
        // an update that keeps its order reads what it writes
        let reads_itself = self.kernel().insns[self.id].loads(own.access.var);
        let is_own = |s: &AccessSite| s.insn == self.id && s.bound_of.is_none() && !reads_itself;
        let alike = |s: &AccessSite| matches!(s.mode, Mode::Update(_)) && s.mode == own.mode;
        for site in all.iter().filter(|s| self.is_inside(s) && !alike(s) && !is_own(s)) {
            let Some(pair) = pair_relation(self.poly(), own, site, Order::Within(self.around())) else {
                continue;
            };
            let Some(witness) = stale::witness(self.kernel(), own, site, &pair.map(self.poly())?)? else {
                let of = || stale::pair_text(self.kernel(), own, site);
                crate::proofs::ORDER.holds_in(self.kernel(), Means::Empty, of);
                continue;
            };
            let kind = match site.mode {
                Mode::Read | Mode::Update(_) => DependenceKind::Flow,
                Mode::Assign => DependenceKind::Output,
            };
            let (relation, help) = (relation_text(kind, &witness.element), help.to_owned());
            return Err(crate::proofs::ORDER.not_proved(WrongOrder { witness, relation, help }));
        }
        Ok(())
    }

    /// Checks that some expressions of the update have the same value at the end of the loop.
    ///
    /// Formula: for every read `r` of them and every write `w` inside the loop,
    /// `{ r -> w : o = o', element(r) = element(w), r before w }` is empty.
    ///
    /// # Errors
    /// [`VALUES`](super::VALUES) not proved, with the smallest pair of that set, or a failure of
    /// isl.
    pub fn check_operands_stay(&self, operands: &[&Expr]) -> Result<(), Refusal> {
        for read in self.analysis.all_sites().iter().flatten().filter(|s| self.is_among(s, operands)) {
            for write in
                self.analysis.sites(read.access.var).iter().filter(|s| s.writes() && self.is_inside(s))
            {
                let Some(pair) = pair_relation(self.poly(), read, write, Order::Within(self.around())) else {
                    continue;
                };
                let Some(witness) = stale::witness(self.kernel(), read, write, &pair.map(self.poly())?)?
                else {
                    let of = || stale::pair_text(self.kernel(), write, read);
                    crate::proofs::VALUES.holds_in(self.kernel(), Means::Empty, of);
                    continue;
                };
                let var = &self.kernel().vars[read.access.var].name;
                let found = format!(
                    "{} finds what it updates by `{}`, which {} overwrites before the loop ends",
                    witness.source, witness.element, witness.sink
                );
                let help = format!("replace `{var}` by its definition, or keep its values in an array");
                return Err(crate::proofs::VALUES.not_proved(LostValue { witness, found, help }));
            }
        }
        Ok(())
    }

    /// Whether an access of the update stands in one of the expressions.
    fn is_among(&self, site: &AccessSite, operands: &[&Expr]) -> bool {
        let is_it = |e: &Expr| e.as_load() == Some(&site.access);
        site.insn == self.id && site.bound_of.is_none() && operands.iter().any(|e| e.any(&mut |e| is_it(e)))
    }

    /// Checks that the element exists and has a value wherever it will be updated: where at least
    /// one term is, or where the index is in bounds and something before the
    /// loop has surely written it.
    ///
    /// Formula: with `D` the values of `loops` (under `condition`), `I` those at which the update
    /// runs, and `W` those at which something in front has written the element, `{ x in D \ I :
    /// element(x) outside the shape }` is empty, and for temporaries and outputs `D \ I \ W`, too.
    ///
    /// # Errors
    /// [`Refusal::Argument`] with the smallest point of one of these sets, or a failure of isl.
    pub fn check_element_exists(&self, loops: &[InameId], condition: Option<&Expr>) -> Result<(), Refusal> {
        let poly = self.poly();
        let var = self.kernel().insns[self.id].lhs.var;
        let (sites, iname) = (self.analysis.sites(var), poly.loops(self.id)[self.outer]);
        let read = NewRead { poly, sites, id: self.id, iname, loops, condition };
        let rest = read.without()?;
        if rest.is_empty()? {
            for obligation in [HAS_ELEMENT, HAS_VALUE] {
                obligation.holds_in(self.kernel(), Means::Empty, || "where there is no term".into());
            }
            return Ok(());
        }
        let space = isl::SetSpace::new(&poly.names(loops, Side::Source), &poly.params);
        let outside = match self.outside() {
            Some(outside) => rest.intersect(&isl::Set::from_disjuncts(&space, &outside)?)?,
            None => rest.clone(),
        };
        HAS_ELEMENT.refute(smallest_point(self.kernel(), &outside)?.map(|point| self.no_element(point)))?;
        let unwritten = match may_be_undefined(&self.kernel().vars[var].kind) {
            true => smallest_point(self.kernel(), &read.unwritten(rest)?)?,
            false => None,
        };
        HAS_VALUE.refute(unwritten.map(|point| self.no_value(point)))
    }

    /// Where the index of the update leaves the array; `None` if nobody knows.
    fn outside(&self) -> Option<Disjuncts> {
        let insn = &self.kernel().insns[self.id];
        let shape = &self.kernel().vars[insn.lhs.var].shape;
        let mut outside = Vec::new();
        for (index, extent) in insn.lhs.index.iter().zip(shape) {
            let index = self.poly().affine(&index.as_affine()?, Side::Source)?;
            let extent = self.poly().affine(extent, Side::Source)?;
            let below = isl::Affine::constant(-1).add_scaled(-1, &index);
            outside.push(vec![isl::Constraint::non_negative(below)]);
            outside.push(vec![isl::Constraint::non_negative(difference(&index, &extent))]);
        }
        Some(outside)
    }

    fn no_element(&self, params: Vec<(String, i64)>) -> AtParameters {
        let insn = &self.kernel().insns[self.id];
        let reason = format!(
            "and nothing says that `{}` has the element to which their sum would be added; assume sizes at which its \
             loops are not empty",
            self.kernel().vars[insn.lhs.var].name
        );
        let found = format!("`{}` has no term", insn.name);
        AtParameters { params, found, reason }
    }

    fn no_value(&self, params: Vec<(String, i64)>) -> AtParameters {
        let insn = &self.kernel().insns[self.id];
        let reason = format!(
            "and nothing has surely written the element of `{}` to which their sum would be added; write it before \
             the loop without a condition",
            self.kernel().vars[insn.lhs.var].name
        );
        let found = format!("`{}` perhaps has no term", insn.name);
        AtParameters { params, found, reason }
    }
}
