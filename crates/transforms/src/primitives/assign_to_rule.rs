//! Replaces a temporary by its definition as a substitution rule.

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_analysis::deps::{AccessSite, DependenceKind, Mode};
use kingpost_analysis::polyhedral::{Polyhedral, step};
use kingpost_ir::{
    Atom, Expr, ExprType, Id, InameId, InsnId, Kernel, Rule, ScalarType, VarId, VarKind, WriteOp,
};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::stale::witness;
use kingpost_steps::refusal::{LostValue, Refusal, StaleValue};
use kingpost_steps::schedule::RuleHandle;
use kingpost_steps::tree::prune_insn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces a temporary that one instruction defines by a substitution rule of the same name;
/// instruction and temporary are gone.
///
/// # Rewrite
/// ```text
/// for i in 0..n                    =>   rule t(i) := 2.0*a[i]
///   d: t[i] = 2.0*a[i]                  for j in 0..n
/// for j in 0..n                           s: y[j] = t(j) + t(n - 1 - j)
///   s: y[j] = t[j] + t[n - 1 - j]
/// ```
/// The parameters are the indices of the definition and the loops around it that its value
/// mentions. A value of another type is cast to the type of the temporary; where that is
/// `f32` and the value is made of literals, at a leaf, as the whole is computed in `f32`.
///
/// # Precondition
/// One instruction `d` writes `t`: a plain store without condition, its indices different loops.
/// With `F` the flow from `d` to a use
/// `u`: (1) loops that the value mentions and the indices do not are around both and have equal
/// values in all of `F`; (2) for every write `w` of an operand of `d`, `{ w -> u : d -> u in F,
/// element(d) = element(w), d before w before u }` is empty.
///
/// # Errors
/// An unknown variable; no temporary; several definitions, an update, a condition, a reduction in
/// the definition; indices that are no loops; reads in loop bounds or rules; shared storage; (1)
/// broken; (2) broken, with two instances.
///
/// # Elsewhere
/// Loopy `assignment_to_subst`; Halide `compute_inline`; Exo `inline_assign`; TVM `compute_inline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignToRule {
    /// The temporary.
    pub var: String,
}

impl AssignToRule {
    /// Replaces `var`.
    pub fn new(var: impl Into<String>) -> Self {
        Self { var: var.into() }
    }
}

impl fmt::Display for AssignToRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "assign `{}` to a rule", self.var)
    }
}

/// Only a temporary may go.
const TEMPORARY: Obligation = Obligation::new("assign_to_rule.temporary", "the variable is a temporary");

/// Bounds mention variables, not rules.
const NOT_IN_BOUNDS: Obligation =
    Obligation::new("assign_to_rule.not_in_bounds", "no bounds of a loop mention the variable");

/// A rule that reads the variable would have to come later than the rule that stands for it.
const NOT_IN_RULES: Obligation = Obligation::new("assign_to_rule.not_in_rules", "no rule reads the variable");

/// The loop of a reduction stands in one place.
const NO_REDUCED_INDEX: Obligation =
    Obligation::new("assign_to_rule.no_reduced_index", "no index of a use holds a reduction");

/// Every use has the same definition.
const ONE_DEFINITION: Obligation =
    Obligation::new("assign_to_rule.one_definition", "one instruction writes the variable");

/// The definition is the value.
const PLAIN_STORE: Obligation =
    Obligation::new("assign_to_rule.plain_store", "the definition has no condition and is no update");

/// The loop of a reduction stands in one place.
const NO_REDUCTION: Obligation =
    Obligation::new("assign_to_rule.no_reduction", "the definition holds no reduction");

/// A rule has no earlier value.
const NOT_RECURSIVE: Obligation =
    Obligation::new("assign_to_rule.not_recursive", "the definition does not read the variable");

/// An operand that lived longer would meet those it shares storage with.
const OWN_STORAGE: Obligation =
    Obligation::new("assign_to_rule.own_storage", "no operand of the definition shares its storage");

/// An index of a use says which iteration of the definition it means.
const INDEXED_BY_LOOPS: Obligation =
    Obligation::new("assign_to_rule.indexed_by_loops", "the indices of the definition are different loops");

/// What a use does not say it has around it.
const INSIDE: Obligation = Obligation::new(
    "assign_to_rule.inside",
    "every use is inside the loops that the value mentions and the indices do not",
);

/// And in the same iteration.
const SAME_ITERATION: Obligation = Obligation::new(
    "assign_to_rule.same_iteration",
    "no value goes to another iteration of a loop that it mentions and the indices do not",
);

/// The one definition of a temporary, as a rule.
pub struct Definition {
    var: VarId,
    insn: InsnId,
    params: Vec<Param>,
    /// The value, in terms of the parameters.
    body: Expr,
}

impl Primitive for AssignToRule {
    const NAME: &'static str = "assign_to_rule";
    const SUMMARY: &'static str = "Replaces a temporary by its definition as a substitution rule.";

    type Proof = Definition;
    type Made = RuleHandle;

    const OBLIGATIONS: &'static [Obligation] = &[
        TEMPORARY,
        NOT_IN_BOUNDS,
        NOT_IN_RULES,
        NO_REDUCED_INDEX,
        ONE_DEFINITION,
        PLAIN_STORE,
        NO_REDUCTION,
        NOT_RECURSIVE,
        OWN_STORAGE,
        INDEXED_BY_LOOPS,
        INSIDE,
        SAME_ITERATION,
        CURRENT,
    ];

    fn check(&self, analysis: &Analysis) -> Result<Definition, Refusal> {
        let kernel = analysis.kernel();
        let var = lookup::var(kernel, &self.var)?;
        self.check_variable(kernel, var)?;
        self.check_uses(kernel, var)?;
        let insn = self.definition(kernel, var)?;
        let params = self.params(kernel, insn)?;
        self.check_values(analysis, var, insn, &params)?;
        let body = body(kernel, insn, &params)?;
        Ok(Definition { var, insn, params, body })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Definition) -> RuleHandle {
        let params = proof.params.iter().map(|p| kernel.inames[p.iname].name.clone()).collect();
        let rule = kernel.rules.push(Rule { name: self.var.clone(), params, body: proof.body.clone() });
        let mut rewrite = |e: Expr| match e {
            Expr::Load(access) if access.var == proof.var => {
                let arg = |p: &Param| match p.axis {
                    Some(axis) => access.index[axis].clone(),
                    None => Expr::Iname(p.iname),
                };
                Expr::Rule(rule, proof.params.iter().map(arg).collect())
            }
            other => other,
        };
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
        }
        prune_insn(&mut kernel.body, proof.insn);
        // the definition is gone only from a canonical kernel; then nothing mentions the temporary,
        // and this drops it
        *kernel = kernel.clone().canonical().with_var_fixed(proof.var, 0);
        RuleHandle::named(&self.var)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::temporaries(kernel, 0))?))
    }
}

/// A parameter of the rule: a loop of the definition, and the axis it indexes, if any.
struct Param {
    iname: InameId,
    axis: Option<usize>,
}

/// The value of a definition in the type of its temporary, in terms of the parameters.
fn body(kernel: &Kernel, definition: InsnId, params: &[Param]) -> Result<Expr, Refusal> {
    let insn = &kernel.insns[definition];
    let position = |i: InameId| params.iter().position(|p| p.iname == i);
    let ty = kernel.vars[insn.lhs.var].ty;
    let typed = |source| {
        let what = format!("`{}`", insn.name);
        Refusal::Malformed(kingpost_ir::KernelError::Type { what, source })
    };
    let body = kernel.coerced(&insn.rhs, ty).map_err(typed)?.map(&mut |e| match e {
        Expr::Iname(i) => position(i).map_or(Expr::Iname(i), |k| Expr::RuleParam(k as u32)),
        other => other,
    });
    // where the arguments are wider than the loops they stand for
    let wide = vec![ExprType::Scalar(ScalarType::I64); params.len()];
    let fits = kernel.type_of(&body, &wide) == Ok(ExprType::Scalar(ty));
    Ok(if fits { body } else { Expr::Cast(ty, Box::new(body)) })
}

impl AssignToRule {
    fn require(&self, obligation: Obligation, holds: bool, why: &str) -> Result<(), Refusal> {
        obligation.require(holds, || format!("`{}` {why}", self.var))
    }

    fn check_variable(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        let is_temporary = kernel.vars[var].kind == VarKind::Temporary;
        self.require(TEMPORARY, is_temporary, "is no temporary; only temporaries become rules")?;
        let mut in_bounds = false;
        for iname in kernel.inames.values() {
            iname.domain.for_each_symbol(&mut |a| in_bounds |= *a == Atom::Var(var));
        }
        let why = "stands in the bounds of a loop, where no rule may; keep it";
        self.require(NOT_IN_BOUNDS, !in_bounds, why)?;
        NOT_IN_RULES.forbid(kernel.rules.values().find(|r| r.body.loads(var)), |rule| {
            format!("`{}` is read inside rule `{}`; expand it first", self.var, rule.name)
        })
    }

    /// A reduction in the index of a use would be repeated by a rule.
    fn check_uses(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        for insn in kernel.insns.values() {
            for access in insn.reads().into_iter().filter(|a| a.var == var) {
                let mut reduces = false;
                access
                    .index
                    .iter()
                    .for_each(|e| e.for_each(&mut |e| reduces |= matches!(e, Expr::Reduce(_))));
                NO_REDUCED_INDEX.require(!reduces, || {
                    let (var, name) = (&self.var, &insn.name);
                    format!("`{var}` is read by `{name}` at the value of a reduction; realise it first")
                })?;
            }
        }
        Ok(())
    }

    fn definition(&self, kernel: &Kernel, var: VarId) -> Result<InsnId, Refusal> {
        let writers: Vec<_> = kernel.insns.iter().filter(|(_, i)| i.lhs.var == var).collect();
        let found = writers.len();
        let (id, insn) = ONE_DEFINITION.find(writers.into_iter().next().filter(|_| found == 1), || {
            format!("`{}` is written by {found} instructions, needed one", self.var)
        })?;
        PLAIN_STORE.require(insn.op == WriteOp::Assign && insn.predicate.is_none(), || {
            format!("`{}` is not defined by a plain store without condition: see `{}`", self.var, insn.name)
        })?;
        let (mut reduces, mut recursive, mut shared) = (false, false, None);
        let expanded = kernel.expand_rules(&insn.rhs);
        expanded.for_each(&mut |e| match e {
            Expr::Reduce(_) => reduces = true,
            Expr::Load(a) if a.var == var => recursive = true,
            Expr::Load(a) if kernel.vars[a.var].storage.is_some() => shared = Some(&kernel.vars[a.var].name),
            _ => {}
        });
        let why = "is defined by a reduction, which no rule holds; realise it first";
        self.require(NO_REDUCTION, !reduces, why)?;
        self.require(NOT_RECURSIVE, !recursive, "is defined by its own earlier value; keep it")?;
        OWN_STORAGE.forbid(shared, |name| {
            format!("`{}` is defined by `{name}`, which shares its storage and would live longer", self.var)
        })?;
        Ok(id)
    }

    /// Indices first, in the order of the axes.
    fn params(&self, kernel: &Kernel, definition: InsnId) -> Result<Vec<Param>, Refusal> {
        let insn = &kernel.insns[definition];
        let mut params: Vec<Param> = Vec::new();
        for (axis, index) in insn.lhs.index.iter().enumerate() {
            let iname = match index {
                Expr::Iname(i) if params.iter().all(|p| p.iname != *i) => Some(*i),
                _ => None,
            };
            let iname = INDEXED_BY_LOOPS.find(iname, || {
                let (var, name) = (&self.var, &insn.name);
                format!("`{var}` is indexed in `{name}` by something else than different loops; keep it")
            })?;
            params.push(Param { iname, axis: Some(axis) });
        }
        insn.rhs.for_each(&mut |e| {
            if let Expr::Iname(i) = e
                && params.iter().all(|p| p.iname != *i)
            {
                params.push(Param { iname: *i, axis: None });
            }
        });
        Ok(params)
    }

    fn check_values(
        &self,
        analysis: &Analysis,
        var: VarId,
        definition: InsnId,
        params: &[Param],
    ) -> Result<(), Refusal> {
        let (expanded, poly, sites) = (analysis.expanded(), analysis.polyhedral(), analysis.all_sites());
        let flows: Vec<_> = analysis
            .dependences_of(&|v| v == var)?
            .into_iter()
            .filter(|d| d.kind == DependenceKind::Flow && d.source == definition)
            .collect();
        for site in sites[var.index()].iter().filter(|s| s.mode == Mode::Read) {
            let common = poly.common_loops(definition, site.insn);
            let outside = params.iter().find(|p| p.axis.is_none() && !common.contains(&p.iname));
            INSIDE.forbid(outside, |p| {
                format!(
                    "`{}` is read by `{}` outside the loop `{}` that its value mentions; expand it over that loop first",
                    self.var, expanded.insns[site.insn].name, expanded.inames[p.iname].name
                )
            })?;
        }
        for flow in &flows {
            let relation = flow.relation()?;
            for p in params.iter().filter(|p| p.axis.is_none()) {
                let same = isl::Constraint::zero(step(poly, p.iname));
                let equal = isl::Map::from_disjuncts(&relation.space()?, &[vec![same]])?;
                let carried = flow.witness(expanded, &relation.subtract(&equal)?)?;
                SAME_ITERATION.refute(carried.map(|witness| {
                    let found = format!(
                        "`{}` carries a value from {} to {}, in another iteration of `{}`",
                        self.var, witness.source, witness.sink, expanded.inames[p.iname].name
                    );
                    LostValue { witness, found, help: "keep it".into() }
                }))?;
            }
            self.check_operands(poly, sites, definition, flow.sink, &relation)?;
        }
        Ok(())
    }

    fn check_operands(
        &self,
        poly: &Polyhedral,
        sites: &[Vec<AccessSite>],
        definition: InsnId,
        user: InsnId,
        flow: &isl::Map,
    ) -> Result<(), Refusal> {
        for of_var in sites {
            for read in of_var.iter().filter(|s| s.insn == definition && s.mode == Mode::Read) {
                if read.bound_of.is_some() {
                    continue;
                }
                for write in of_var.iter().filter(|s| s.writes()) {
                    let Some(spoiled) = pair_relation(poly, read, write, Order::Anywhere) else { continue };
                    // any element: only the order matters
                    let use_site = AccessSite {
                        insn: user,
                        mode: Mode::Read,
                        index: [].into(),
                        reduction: Vec::new(),
                        ..read.clone()
                    };
                    let write_site = AccessSite { index: [].into(), ..write.clone() };
                    let Some(before) = pair_relation(poly, &write_site, &use_site, Order::Anywhere) else {
                        continue;
                    };
                    let late =
                        spoiled.map(poly)?.reverse()?.apply_range(flow)?.intersect(&before.map(poly)?)?;
                    let user_site = AccessSite { index: [].into(), ..use_site };
                    let witness = witness(&poly.kernel, write, &user_site, &late)?;
                    CURRENT.refute(witness.map(|witness| StaleValue {
                        witness,
                        place: format!("`{}`", poly.kernel.insns[definition].name),
                        help: format!("keep `{}`, or copy that operand first", self.var),
                    }))?;
                }
            }
        }
        Ok(())
    }
}
