//! Stores what a substitution rule gives before it is used.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::Mode;
use kingpost_ir::{AddressSpace, Expr, ExprType, InsnId, Kernel, ScalarType, VarId};
use kingpost_steps::argument;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup::{self, Selection};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::footprint::CONSTANT_BOX;
use kingpost_steps::proofs::inside::{INSIDE, NO_FAULT, check_inside};
use kingpost_steps::proofs::stale::{Place, check_unchanged};
use kingpost_steps::proofs::width::{NO_WIDE_UPDATE, cast_stored, fits_i32, stores_wide};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::staging::{
    AFFINE_READS, BOX_NOT_EMPTY, BOX_SIZE, CLOSED_FORM, Footprint, Formula, Limits, Region, SOMETHING_READS,
    Staged, Staging, StandIn, Temporary, filled_name,
};
use kingpost_steps::template;
use kingpost_steps::tree::{body_of, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Stores the values of `rule` that one iteration of the loop `at` uses in a temporary, right
/// before the first node of its body that uses them, and reads the temporary instead.
///
/// # Rewrite
/// ```text
/// rule r(i) := exp(x[i])            =>   rule r(i) := exp(x[i])
/// for b in 0..floor_div(n, 8)            for b in 0..floor_div(n, 8)
///   for k in 0..8                          for r_values_0 in 0..8
///     for l in 0..8                          compute_r_values: r_values[r_values_0] = r(8*b + r_values_0)
///       S(r(8*b + k)*r(8*b + l))           for k in 0..8
///                                            for l in 0..8
///                                              S(r_values[k]*r_values[l])
/// ```
/// The temporary has an axis for each parameter of the rule along which more than one value is
/// used.
/// A rule with reductions has no name in a kernel: instead of one, its declaration stands there, as in
/// `precompute_rule("along(e, i) := sum(j in 0..8: d[i, j]*u[e, j])", at: e, space: private)`. It is used
/// wherever an expression is the one on the right, with arguments that are solved for and other loops.
/// `work_items` makes one flat loop over the work-items of a group of the loops that compute,
/// `footprint` chooses the box around the arguments or exactly those that are used; see
/// `prefetch_array`. Uses inside other rules stay. Values of type `i32` that are more than loads
/// are kept in 64 bits, and cast where they are stored: `y[i] = i32(r_values[k])`.
///
/// # Precondition
/// All arguments are affine in loops and parameters, and the box around them has constant extents.
/// With `L` the loops around the new instruction, for every operand `x` of the rule, every write
/// `w` of it after that place and every use `u`,
/// `{ w -> u : L = L', element(w) = element(u), w before u }` is empty. If loops are on axes, the
/// placement must hold.
///
/// The rule is evaluated for arguments that are surely used. Otherwise it reads nothing outside its
/// arrays and nothing that may be undefined there. It then divides integers only by constants or
/// `max(…, 1)`, and casts no number to an integer type that it may not fit.
///
/// # Errors
/// An unknown rule or loop, a declaration that is none, no use, arguments that are not affine, values without a type of their
/// own, an update of an `i32` by values in 64 bits, an extent that is not a constant, taken names;
/// a write between the computation and a use, with two instances; an element outside, or an
/// operation that some values do not allow; a computation that the placement breaks.
///
/// # Elsewhere
/// Loopy `precompute`; Halide `compute_at`; Exo `bind_expr` with `stage_mem`; TVM `compute_at`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrecomputeRule {
    /// The rule, or a declaration: `name(parameters) := expression`.
    pub rule: String,
    /// The loop in whose body the values are computed; the whole kernel if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `global`, `local` or `private`.
    #[serde(serialize_with = "argument::write", deserialize_with = "argument::read")]
    #[schemars(schema_with = "argument::copy_spaces")]
    pub space: AddressSpace,
    /// Name of the temporary; `{rule}_values` if absent, with a number if that is taken. Loops and the
    /// instruction are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Names of the loops that compute, one for each axis of the temporary; `{temporary}_0`, … if
    /// absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inames: Vec<String>,
    /// Work-items along `l.0`, `l.1`, `l.2` that share one flat loop; none: loops over the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_items: Vec<i64>,
    /// Which values are computed: the `box` around the arguments, or `exact`ly those that are used.
    #[serde(default, skip_serializing_if = "Footprint::is_box")]
    pub footprint: Footprint,
    /// The instructions whose uses are replaced; all inside the loop if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insns: Option<Selection>,
}

impl PrecomputeRule {
    /// Stores what an iteration of `at` uses of `rule` in a temporary in `space`.
    pub fn new(rule: impl Into<String>, at: impl Into<String>, space: AddressSpace) -> Self {
        Self { at: Some(at.into()), ..Self::whole(rule, space) }
    }

    /// Stores what the kernel uses of `rule`.
    pub fn whole(rule: impl Into<String>, space: AddressSpace) -> Self {
        Self {
            rule: rule.into(),
            at: None,
            space,
            temporary: None,
            inames: Vec::new(),
            work_items: Vec::new(),
            footprint: Footprint::Box,
            insns: None,
        }
    }

    /// Calls the temporary `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.temporary = Some(name.into());
        self
    }

    /// Computes by a flat loop over the work-items of a group.
    #[must_use]
    pub fn by_work_items(mut self, sizes: impl IntoIterator<Item = i64>) -> Self {
        self.work_items = sizes.into_iter().collect();
        self
    }

    /// Computes exactly what is used.
    #[must_use]
    pub fn exactly(mut self) -> Self {
        self.footprint = Footprint::Exact;
        self
    }

    /// Replaces the uses of these instructions only.
    #[must_use]
    pub fn only_in(mut self, insns: Selection) -> Self {
        self.insns = Some(insns);
        self
    }

    fn name(&self) -> String {
        let own = self.rule.split(['(', ' ', ':']).next().unwrap_or_default(); // default: there is a first part always
        self.temporary.clone().unwrap_or_else(|| format!("{own}_values"))
    }

    fn temporary<'a>(&'a self, name: &'a str) -> Temporary<'a> {
        let (space, inames, work_items) = (self.space, &self.inames, &self.work_items);
        Temporary { name, space, inames, work_items, footprint: self.footprint, verb: "compute" }
    }
}

impl fmt::Display for PrecomputeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let temporary = self.temporary(&name);
        f.write_str(&temporary.describe("precompute", &self.rule, self.at.as_ref(), self.insns.as_ref()))
    }
}

/// It is known which values are used.
const AFFINE_ARGUMENTS: Obligation =
    Obligation::new("precompute_rule.affine_arguments", "every argument is affine in loops and parameters");

/// The temporary has a type.
const TYPED: Obligation =
    Obligation::new("precompute_rule.typed", "the values of the rule have a type of their own");

/// The temporary has one type.
const ONE_TYPE: Obligation =
    Obligation::new("precompute_rule.one_type", "the rule has values of one type wherever it is used");

/// A temporary for what is used of a rule, and the place where it is computed.
pub struct Computed {
    formula: Formula,
    /// The instructions whose uses are replaced.
    chosen: Vec<InsnId>,
    staging: Staging,
    /// The instructions that store a wider value now.
    casts: Vec<InsnId>,
}

impl Primitive for PrecomputeRule {
    const NAME: &'static str = "precompute_rule";
    const SUMMARY: &'static str = "Stores what a region uses of a rule in a temporary.";

    type Proof = Computed;
    type Made = Staged;

    const OBLIGATIONS: &'static [Obligation] = &[
        SOMETHING_READS,
        AFFINE_ARGUMENTS,
        TYPED,
        ONE_TYPE,
        CURRENT,
        AFFINE_READS,
        BOX_NOT_EMPTY,
        BOX_SIZE,
        CLOSED_FORM,
        NO_WIDE_UPDATE,
        INSIDE,
        NO_FAULT,
        CONSTANT_BOX,
    ];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Computed, Refusal> {
        let kernel = analysis.kernel();
        let formula = Formula::of(kernel, &self.rule)?;
        let name = filled_name(kernel, self.temporary.as_deref(), &self.name(), "compute")?;
        let temporary = self.temporary(&name);
        let space = temporary.check(kernel)?;
        let at = self.at.as_deref();
        let inside = insns_of(body_of(kernel, at.map(|at| lookup::tree_loop(kernel, at)).transpose()?)?);
        let chosen = match &self.insns {
            Some(selection) => selection.resolve(kernel)?,
            None => inside.clone(),
        };
        let chosen: Vec<InsnId> = inside.into_iter().filter(|insn| chosen.contains(insn)).collect();
        let stand_in = StandIn::of(kernel, &formula, &chosen);
        let uses = |insn| stand_in.kernel.insns[insn].loads(stand_in.array);
        let something = (&SOMETHING_READS, "read");
        let region = Region::of(&stand_in.kernel, stand_in.array, at, &uses, something)?;
        let ty = self.check_uses(kernel, &formula, &region.insns)?;
        self.check_operands(analysis, &formula.operands(kernel), &region)?;
        let of_array = analysis.next(&stand_in.kernel);
        let poly = of_array.polyhedral();
        let reads = region.reads(poly, of_array.sites(stand_in.array))?;
        let tile = region.tile(poly, &reads, self.footprint, Limits::default())?;
        let all_used = tile.is_filled_by(poly, &reads, &region.around)?;
        let staging = temporary.plan(&of_array, region, tile, (ty, space)).filled()?;
        let mut proof = Computed { formula, chosen, staging, casts: Vec::new() };
        let draft = self.draft(kernel, &proof);
        let computing = lookup::insn(&draft, &temporary.insn_name())?;
        let same_types = proof.formula.has_types_of(&draft, &draft.insns[computing].rhs);
        ONE_TYPE.require(same_types, || {
            format!("the terms of a reduction of `{}` have another type there; cast them", self.rule)
        })?;
        for insn in proof.staging.users() {
            if stores_wide(&draft, *insn, &format!("rule `{}`", self.rule))? {
                proof.casts.push(*insn);
            }
        }
        if !all_used {
            let help = "compute exactly what is used, or in a loop whose uses fill a box";
            check_inside(&analysis.next(&draft), computing, help)?;
        }
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Computed) -> Staged {
        let mut stand_in = StandIn::of(kernel, &proof.formula, &proof.chosen);
        let made = proof.staging.edit(&mut stand_in.kernel);
        *kernel = stand_in.removed(&proof.formula);
        for insn in &proof.casts {
            cast_stored(kernel, *insn);
        }
        made
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let space = p.among([AddressSpace::Local, AddressSpace::Private]);
        let mut reductions = Vec::new();
        for insn in kernel.insns.values() {
            insn.rhs.for_each(&mut |e| {
                if matches!(e, Expr::Reduce(_)) {
                    reductions.push(template::declaration(kernel, "total", e));
                }
            });
        }
        let mut all = Vec::new();
        for rule in draw::rules(kernel).into_iter().chain(p.of(&reductions)) {
            all.extend(draw::loops(kernel).into_iter().map(|l| Self::new(&rule, l, space)));
        }
        let step = draw::possible(kernel, all, p)?.into_temporary(kernel.fresh_name("values"));
        let step = if p.one_in(3) { step.by_work_items([3]) } else { step };
        Some(if p.one_in(2) { step.exactly() } else { step })
    }
}

impl PrecomputeRule {
    /// The type of the values, if every use has affine arguments and the same type.
    fn check_uses(
        &self,
        kernel: &Kernel,
        formula: &Formula,
        insns: &[InsnId],
    ) -> Result<ScalarType, Refusal> {
        let mut types = Vec::new();
        for insn in insns {
            for (e, found) in formula.uses(kernel, *insn) {
                for (arg, param) in found.args.iter().zip(formula.params(kernel)) {
                    // words look affine, and wrap
                    let exact = kernel.type_of(arg, &[]).is_ok_and(|ty| ty.word().is_none());
                    AFFINE_ARGUMENTS.decide(exact && arg.as_affine().is_some(), || {
                        format!(
                            "`{}` gives rule `{}` an argument `{param}` that is not affine in the loops and \
                             parameters, so which values it uses is not known; precompute in a loop without that use",
                            kernel.insns[*insn].name, self.rule
                        )
                    })?;
                }
                types.push((self.type_of(kernel, *insn, &e)?, e));
            }
        }
        let (first, e) = types
            .first()
            .ok_or_else(|| Refusal::internal(format!("nothing uses rule `{}`", self.rule), kernel))?;
        ONE_TYPE.require(types.iter().all(|(ty, _)| ty == first), || {
            format!("rule `{}` has values of different types here; cast them in the rule", self.rule)
        })?;
        let body = match formula {
            Formula::Rule(rule) => &kernel.rules[*rule].body,
            Formula::Template(_) => e,
        };
        // integers are unbounded until they are stored; what is loaded fits its type
        let is_wide = *first == ScalarType::I32 && !fits_i32(kernel, &kernel.expand_rules(body));
        Ok(if is_wide { ScalarType::I64 } else { *first })
    }

    fn type_of(&self, kernel: &Kernel, insn: InsnId, e: &Expr) -> Result<ScalarType, Refusal> {
        let found = kernel.type_of(e, &[]).map_err(|source| {
            let what = format!("`{}`", kernel.insns[insn].name);
            Refusal::Malformed(kingpost_ir::KernelError::Type { what, source })
        })?;
        let ty = match found {
            ExprType::Scalar(ty) => Some(ty),
            ExprType::Index => Some(ScalarType::I64),
            ExprType::Bool | ExprType::Literal | ExprType::WeakReal | ExprType::WeakComplex => None,
        };
        TYPED.find(ty, || {
            format!(
                "the value of rule `{}` is a {found}, needed a number with a type; cast it in the rule",
                self.rule
            )
        })
    }

    /// Checks that nothing writes an operand of the rule between the computation and a use.
    fn check_operands(
        &self,
        analysis: &Analysis,
        operands: &[VarId],
        region: &Region,
    ) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        let poly = analysis.polyhedral();
        let position = poly.position(region.first);
        let place = Place { loops: &region.around, position, what: "the computation" };
        let help = "precompute it in a loop further inside, or after that write";
        for (var, sites) in kernel.vars.ids().zip(analysis.all_sites()) {
            if !operands.contains(&var) {
                continue;
            }
            // also what the same instruction reads without the rule: too many, never too few
            let uses = sites.iter().filter(|s| s.mode == Mode::Read && region.insns.contains(&s.insn));
            check_unchanged(poly, sites, &uses.collect::<Vec<_>>(), place, help)?;
        }
        Ok(())
    }
}
