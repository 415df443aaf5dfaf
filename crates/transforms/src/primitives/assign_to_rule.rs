//! Replaces a temporary by its definition as a substitution rule.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::proofs::stale::witness;
use crate::refusal::{Refusal, StaleValue};
use crate::tree::prune_insn;
use purlin_analysis::Analysis;
use purlin_analysis::deps::pair::{Order, pair_relation};
use purlin_analysis::deps::{AccessSite, DependenceKind, Mode};
use purlin_analysis::polyhedral::{Polyhedral, step};
use purlin_ir::{
    Atom, Expr, ExprType, Id, InameId, Insn, InsnId, Kernel, Rule, ScalarType, VarId, VarKind, WriteOp,
};
use purlin_isl as isl;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces a temporary that one instruction defines by a substitution rule of the same name; instruction and
/// temporary are gone.
///
/// # Rewrite
/// ```text
/// for i in 0..n                    =>   rule t(i) := 2.0*a[i]
///   d: t[i] = 2.0*a[i]                  for j in 0..n
/// for j in 0..n                           s: y[j] = t(j) + t(n - 1 - j)
///   s: y[j] = t[j] + t[n - 1 - j]
/// ```
/// The parameters are the indices of the definition and the loops around it that its value mentions. A value of
/// another type is cast to the type of the temporary; where that is `f32` and the value is made of literals, at a leaf,
/// as the whole is computed in `f32`.
///
/// # Precondition
/// One instruction `d` writes `t`: a plain store without condition, its indices different loops. With `F` the flow
/// from `d` to a use `u`: (1) loops that the value mentions and the indices do not are around both and have equal
/// values in all of `F`; (2) for every write `w` of an operand of `d`,
/// `{ w -> u : d -> u in F, element(d) = element(w), d before w before u }` is empty.
///
/// # Errors
/// An unknown variable; no temporary; several definitions, an update, a condition, a reduction in the definition;
/// indices that are no loops; reads in loop bounds or rules; shared storage; (1) broken; (2) broken, with two
/// instances.
///
/// # Elsewhere
/// Loopy `assignment_to_subst`; Halide `compute_inline`; Exo `inline_assign`; TVM `compute_inline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Transform for AssignToRule {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        self.check_variable(kernel, var)?;
        self.check_uses(kernel, var)?;
        let definition = self.definition(kernel, var)?;
        let params = self.params(kernel, definition)?;
        self.check_values(kernel, var, definition, &params)?;
        let replaced = self.edit(kernel, var, definition, &params)?;
        replaced.verify()?;
        check_placement(&replaced)?;
        Ok(replaced)
    }
}

/// A parameter of the rule: a loop of the definition, and the axis it indexes, if any.
struct Param {
    iname: InameId,
    axis: Option<usize>,
}

impl AssignToRule {
    fn refuse<T>(&self, why: &str) -> Result<T, Refusal> {
        Err(Refusal::Other(format!("`{}` {why}", self.var)))
    }

    fn check_variable(&self, kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
        if kernel.vars[var].kind != VarKind::Temporary {
            return self.refuse("is no temporary; only temporaries become rules");
        }
        let mut in_bounds = false;
        for iname in kernel.inames.values() {
            iname.domain.for_each_symbol(&mut |a| in_bounds |= *a == Atom::Var(var));
        }
        if in_bounds {
            return self.refuse("stands in the bounds of a loop, where no rule may; keep it");
        }
        let reads = |e: &Expr| {
            let mut found = false;
            e.for_each(&mut |e| found |= matches!(e, Expr::Load(a) if a.var == var));
            found
        };
        match kernel.rules.values().find(|r| reads(&r.body)) {
            Some(rule) => self.refuse(&format!("is read inside rule `{}`; expand it first", rule.name)),
            None => Ok(()),
        }
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
                if reduces {
                    let name = &insn.name;
                    return self.refuse(&format!(
                        "is read by `{name}` at the value of a reduction; realise it first"
                    ));
                }
            }
        }
        Ok(())
    }

    fn definition(&self, kernel: &Kernel, var: VarId) -> Result<InsnId, Refusal> {
        let writers: Vec<_> = kernel.insns.iter().filter(|(_, i)| i.lhs.var == var).collect();
        let [(id, insn)] = writers.as_slice() else {
            let found = writers.len();
            return self.refuse(&format!("is written by {found} instructions, needed one"));
        };
        if insn.op != WriteOp::Assign || insn.predicate.is_some() {
            return self
                .refuse(&format!("is not defined by a plain store without condition: see `{}`", insn.name));
        }
        let mut problem = None;
        let expanded = kernel.expand_rules(&insn.rhs);
        expanded.for_each(&mut |e| match e {
            Expr::Reduce(_) => {
                problem = Some("is defined by a reduction, which no rule holds; realise it first".into())
            }
            Expr::Load(a) if a.var == var => {
                problem = Some("is defined by its own earlier value; keep it".to_owned())
            }
            Expr::Load(a) if kernel.vars[a.var].storage.is_some() => {
                let name = &kernel.vars[a.var].name;
                problem =
                    Some(format!("is defined by `{name}`, which shares its storage and would live longer"));
            }
            _ => {}
        });
        problem.map_or(Ok(*id), |why| self.refuse(&why))
    }

    /// Indices first, in the order of the axes.
    fn params(&self, kernel: &Kernel, definition: InsnId) -> Result<Vec<Param>, Refusal> {
        let insn = &kernel.insns[definition];
        let mut params: Vec<Param> = Vec::new();
        for (axis, index) in insn.lhs.index.iter().enumerate() {
            match index {
                Expr::Iname(i) if params.iter().all(|p| p.iname != *i) => {
                    params.push(Param { iname: *i, axis: Some(axis) });
                }
                _ => {
                    return self.refuse(&format!(
                        "is indexed in `{}` by something else than different loops; keep it",
                        insn.name
                    ));
                }
            }
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
        kernel: &Kernel,
        var: VarId,
        definition: InsnId,
        params: &[Param],
    ) -> Result<(), Refusal> {
        let analysis = Analysis::of(kernel);
        let (expanded, poly, sites) = (analysis.expanded(), analysis.polyhedral(), analysis.all_sites());
        let flows: Vec<_> = analysis
            .dependences_of(&|v| v == var)?
            .into_iter()
            .filter(|d| d.kind == DependenceKind::Flow && d.source == definition)
            .collect();
        for site in sites[var.index()].iter().filter(|s| s.mode == Mode::Read) {
            let common = poly.common_loops(definition, site.insn);
            if let Some(p) = params.iter().find(|p| p.axis.is_none() && !common.contains(&p.iname)) {
                return self.refuse(&format!(
                    "is read by `{}` outside the loop `{}` that its value mentions; expand it over that loop first",
                    expanded.insns[site.insn].name, expanded.inames[p.iname].name
                ));
            }
        }
        for flow in &flows {
            let relation = flow.relation()?;
            for p in params.iter().filter(|p| p.axis.is_none()) {
                let same = isl::Constraint::zero(step(poly, p.iname));
                let equal = isl::Map::from_disjuncts(&relation.space()?, &[vec![same]])?;
                if !relation.is_subset(&equal)? {
                    return self.refuse(&format!(
                        "carries a value from one iteration of `{}` to another; keep it",
                        expanded.inames[p.iname].name
                    ));
                }
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
                    if let Some(witness) = witness(&poly.kernel, write, &user_site, &late)? {
                        return Err(crate::proofs::CURRENT.not_proved(StaleValue {
                            witness,
                            place: format!("`{}`", poly.kernel.insns[definition].name),
                            help: format!("keep `{}`, or copy that operand first", self.var),
                        }));
                    }
                }
            }
        }
        Ok(())
    }

    fn edit(
        &self,
        kernel: &Kernel,
        var: VarId,
        definition: InsnId,
        params: &[Param],
    ) -> Result<Kernel, Refusal> {
        let mut replaced = kernel.clone();
        let insn: Insn = kernel.insns[definition].clone();
        let position = |i: InameId| params.iter().position(|p| p.iname == i);
        let ty = kernel.vars[var].ty;
        let typed = |source| {
            let what = format!("`{}`", insn.name);
            Refusal::Malformed(purlin_ir::KernelError::Type { what, source })
        };
        let mut body = kernel.coerced(&insn.rhs, ty).map_err(typed)?.map(&mut |e| match e {
            Expr::Iname(i) => position(i).map_or(Expr::Iname(i), |k| Expr::RuleParam(k as u32)),
            other => other,
        });
        // where the arguments are wider than the loops they stand for
        let wide = vec![ExprType::Scalar(ScalarType::I64); params.len()];
        if kernel.type_of(&body, &wide) != Ok(ExprType::Scalar(ty)) {
            body = Expr::Cast(ty, Box::new(body));
        }
        let names = params.iter().map(|p| kernel.inames[p.iname].name.clone()).collect();
        let rule = replaced.rules.push(Rule { name: self.var.clone(), params: names, body });
        let mut rewrite = |e: Expr| match e {
            Expr::Load(access) if access.var == var => {
                let arg = |p: &Param| match p.axis {
                    Some(axis) => access.index[axis].clone(),
                    None => Expr::Iname(p.iname),
                };
                Expr::Rule(rule, params.iter().map(arg).collect())
            }
            other => other,
        };
        for insn in replaced.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
        }
        prune_insn(&mut replaced.body, definition);
        let mut replaced = replaced.canonical();
        // nothing mentions the temporary any more: this drops its declaration
        replaced = replaced.with_var_fixed(var, 0);
        Ok(replaced)
    }
}
