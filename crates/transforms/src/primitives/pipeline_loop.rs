//! Fetches what later iterations of a loop need while earlier ones compute.

use super::Transform;
use super::expand_array::ExpandArray;
use super::peel_iname::{LoopEnd, end_of_range};
use super::tag_iname::check_placement;
use crate::copy::copy_nodes;
use crate::lookup;
use crate::proofs::bounds::{check_bounds_stay, check_constant_value};
use crate::proofs::elements::{
    check_no_rule, check_only_accessed, dense_or_given_strides, product, rewrite_accesses, temporary,
};
use crate::proofs::order::relation_text;
use crate::refusal::{Refusal, WrongOrder};
use crate::substitute::substitute_in_nodes;
use crate::tree::{insns_of, loop_body, replace_loop};
use purlin_analysis::deps::{Dependence, DependenceKind};
use purlin_analysis::polyhedral::{equal_values, step};
use purlin_analysis::{Analysis, Entries};
use purlin_ir::{
    Affine, AxisTag, BinaryOp, Constraint, Domain, Expr, GuardedRange, InameId, InsnId, Kernel, Node, VarId,
};
use purlin_isl as isl;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets the statements that fill the temporaries `vars` in an iteration of a loop run `buffers - 1` iterations
/// ahead of those that use them (software pipelining; double buffering with two buffers).
///
/// # Rewrite
/// ```text
/// for t in lo..hi               =>   for t_first in lo..min(lo + 1, hi)
///   for j in 0..8                      for j_first in 0..8
///     f: tile[j] = a[8*t + j]            f_first: tile[(t_first - lo) mod 2, j_first] = a[8*t_first + j_first]
///   for k in 0..8                    for t in lo..hi
///     s: S(tile[k])                    for j in 0..8 where t + 1 < hi
///                                        f: tile[(t + 1 - lo) mod 2, j] = a[8*(t + 1) + j]
///                                      for k in 0..8
///                                        s: S(tile[(t - lo) mod 2, k])
/// ```
/// With the tile in local memory an iteration needs one barrier instead of two: what is fetched and what is used lie
/// in different buffers.
///
/// # Precondition
/// The loop is a range, perhaps under conditions that do not mention it, on no axis; every write of `vars` stands in it, in statements that write nothing else. With `F` the
/// instances of these, `R` the others of the loop, `o` the loops around, `n` the number of buffers: (1) no value of `vars`
/// leaves an iteration, `{ w -> r in D through vars : (o, t)(w) /= (o, t)(r) }` is empty; (2) nothing that is fetched depends
/// on an iteration that then runs later, `{ r -> f in D : o(r) = o(f), t(f) <= t(r) + a }` is empty for every flow, anti and
/// output dependence `D` from `R` to `F`, with `a = 0` through `vars` (an iteration fills them before it uses them) and
/// `a = n - 1` through other variables. A buffer is written again `n` iterations later, which then run at `t + 1`, behind
/// the last use. If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown loop or variable, a loop on an axis or without bounds, a number of buffers that is not 2 to 16; variables
/// that are no temporaries, share their storage, are used outside the loop, or are filled by statements that do more;
/// (1) or (2) broken, with two instances.
///
/// # Elsewhere
/// Halide `fold_storage` with `async`; TVM `double_buffer` and `software_pipeline`; Exo's `stage_mem` with
/// manual copies; MLIR `transform.loop.pipeline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineLoop {
    /// The loop.
    pub iname: String,
    /// The temporaries that are filled ahead.
    pub vars: Vec<String>,
    /// Buffers of each of them.
    #[serde(default = "two")]
    pub buffers: i64,
}

fn two() -> i64 {
    2
}

impl PipelineLoop {
    /// Fills `vars` one iteration of `iname` ahead.
    pub fn new<S: Into<String>>(iname: impl Into<String>, vars: impl IntoIterator<Item = S>) -> Self {
        let vars = vars.into_iter().map(Into::into).collect();
        Self { iname: iname.into(), vars, buffers: two() }
    }

    /// Uses this number of buffers, to run that many iterations less one ahead.
    #[must_use]
    pub fn with_buffers(mut self, buffers: i64) -> Self {
        self.buffers = buffers;
        self
    }

    /// Iterations between filling a buffer and using it.
    fn ahead(&self) -> i64 {
        self.buffers - 1
    }
}

impl fmt::Display for PipelineLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        write!(f, "pipeline `{}` with {} buffers for {}", self.iname, self.buffers, vars.join(", "))
    }
}

impl Transform for PipelineLoop {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let stages = self.stages(kernel)?;
        self.check_values(kernel, &stages)?;
        check_ahead(kernel, &stages, self.ahead())?;
        let pipelined = self.edit(kernel, &stages)?;
        pipelined.verify()?;
        check_placement(&pipelined)?;
        Ok(pipelined)
    }
}

/// The loop and what of it runs ahead.
struct Stages {
    iname: InameId,
    range: GuardedRange,
    /// Loops around it.
    around: Vec<InameId>,
    vars: Vec<VarId>,
    /// Statements that fill the temporaries, and the others.
    fetch: Vec<Node>,
    rest: Vec<Node>,
}

impl PipelineLoop {
    fn stages(&self, kernel: &Kernel) -> Result<Stages, Refusal> {
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        if !(2..=16).contains(&self.buffers) {
            return Err(Refusal::Other(format!("{} buffers are asked for, needed 2 to 16", self.buffers)));
        }
        let data = &kernel.inames[iname];
        if !matches!(data.tag, AxisTag::Sequential | AxisTag::Unrolled) {
            return Err(Refusal::Other(format!(
                "`{}` is tagged {}, and only iterations that run one after the other are pipelined",
                self.iname, data.tag
            )));
        }
        let Some(range) = data.domain.as_guarded_range(iname) else {
            return Err(Refusal::Other(format!(
                "`{}` is no plain range `lo..hi`; split the loop so that it is one",
                kernel.show_domain(iname, &data.domain)
            )));
        };
        check_constant_value(kernel, iname, &range.lo)?;
        let body = loop_body(&kernel.body, iname).unwrap_or_default();
        check_bounds_stay(kernel, iname, body)?;
        let vars = self.vars(kernel)?;
        let fills = |node: &Node| {
            insns_of(std::slice::from_ref(node)).iter().all(|i| vars.contains(&kernel.insns[*i].lhs.var))
        };
        let (fetch, rest): (Vec<_>, Vec<_>) = body.iter().cloned().partition(fills);
        let inside = insns_of(&fetch);
        for (id, insn) in kernel.insns.iter().filter(|(_, i)| vars.contains(&i.lhs.var)) {
            if !inside.contains(&id) {
                return Err(Refusal::Other(format!(
                    "`{}` writes `{}` and does not stand in `{}` among statements that only fill `{}`; distribute the \
                     loop around it",
                    insn.name,
                    kernel.vars[insn.lhs.var].name,
                    self.iname,
                    self.vars.join("`, `")
                )));
            }
        }
        let path = kernel.schedule().into_iter().find(|(_, l)| l.contains(&iname)).map(|(_, l)| l);
        let around = path.unwrap_or_default().into_iter().take_while(|l| *l != iname).collect();
        Ok(Stages { iname, range, around, vars, fetch, rest })
    }

    fn vars(&self, kernel: &Kernel) -> Result<Vec<VarId>, Refusal> {
        if self.vars.is_empty() {
            return Err(Refusal::Other("no temporary is given; name those that are filled ahead".into()));
        }
        let mut found = Vec::new();
        for name in &self.vars {
            let var = temporary(kernel, name, "prefetch it into one first")?;
            check_only_accessed(kernel, var)?;
            check_no_rule(kernel, var)?;
            if let Some(storage) = &kernel.vars[var].storage {
                return Err(Refusal::Other(format!(
                    "`{name}` shares the storage `{storage}`; pipeline the loop before sharing"
                )));
            }
            if !kernel.insns.values().any(|i| i.lhs.var == var) {
                return Err(Refusal::Other(format!(
                    "nothing fills `{name}`; name temporaries that are written"
                )));
            }
            if found.contains(&var) {
                return Err(Refusal::Other(format!("`{name}` is named twice")));
            }
            found.push(var);
        }
        Ok(found)
    }

    /// (1): every value is used in the iteration that made it.
    fn check_values(&self, kernel: &Kernel, stages: &Stages) -> Result<(), Refusal> {
        let mut loops = stages.around.clone();
        loops.push(stages.iname);
        for (var, name) in stages.vars.iter().zip(&self.vars) {
            let expansion = ExpandArray::new(name, [&self.iname]);
            expansion.check_values(kernel, *var, &loops)?;
            expansion.check_inside(kernel, *var, &loops)?;
        }
        Ok(())
    }

    fn edit(&self, kernel: &Kernel, stages: &Stages) -> Result<Kernel, Refusal> {
        let mut result = kernel.clone();
        let (t, lo, hi) = (stages.iname, &stages.range.lo, &stages.range.hi);
        for (var, name) in stages.vars.iter().zip(&self.vars) {
            let counted = Expr::from_affine(&Affine::iname(t).minus(lo));
            let buffer = Expr::binary(BinaryOp::Mod, counted, Expr::Int(self.buffers));
            rewrite_accesses(&mut result, *var, &mut |mut index| {
                index.insert(0, buffer.clone());
                index
            });
            self.expand(&mut result, *var, name)?;
        }
        let first = copy_nodes(&mut result, &[Node::Loop(t, stages.fetch.clone())], "first");
        if let Some(Node::Loop(copy, _)) = first.first() {
            let first = end_of_range(*copy, &stages.range, self.ahead(), LoopEnd::First);
            result.inames[*copy].domain = first;
        }
        let ahead = Affine::iname(t).plus_constant(self.ahead());
        substitute_in_nodes(&mut result, &stages.fetch, t, &ahead);
        let guard = Constraint::lt(&ahead, hi);
        for node in &stages.fetch {
            constrain(&mut result, node, &guard, (&ahead, hi));
        }
        let body: Vec<_> = stages.fetch.iter().chain(&stages.rest).cloned().collect();
        replace_loop(&mut result.body, t, &mut |_| {
            first.iter().cloned().chain([Node::Loop(t, body.clone())]).collect()
        });
        Ok(result)
    }

    /// A leading axis with an element for each buffer.
    fn expand(&self, kernel: &mut Kernel, var: VarId, name: &str) -> Result<(), Refusal> {
        let variable = &kernel.vars[var];
        if variable.layout.strides.is_some() {
            let rows = dense_or_given_strides(variable).unwrap_or_default();
            let sizes: Option<Vec<_>> =
                rows.iter().zip(&variable.shape).map(|(s, n)| product(s, n)?.as_constant()).collect();
            let Some(size) = sizes.and_then(|s| s.into_iter().max()) else {
                return Err(Refusal::Other(format!(
                    "the strides of `{name}` are no constants, so that the place of a second buffer is not known; \
                     pipeline the loop before changing the layout"
                )));
            };
            if let Some(strides) = &mut kernel.vars[var].layout.strides {
                strides.insert(0, Affine::constant(size));
            }
        }
        let variable = &mut kernel.vars[var];
        variable.shape.insert(0, Affine::constant(self.buffers));
        variable.layout.vector_axis = variable.layout.vector_axis.map(|a| a.saturating_add(1));
        Ok(())
    }
}

/// (2): `{ r -> f in D : o(r) = o(f), t(f) <= t(r) + a }` is empty, with `a` zero through what has buffers, else `ahead`.
fn check_ahead(kernel: &Kernel, stages: &Stages, ahead: i64) -> Result<(), Refusal> {
    let (fetch, rest) = (insns_of(&stages.fetch), insns_of(&stages.rest));
    let entries = Entries::of(kernel);
    let analysis = Analysis::of(&entries.kernel);
    let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
    // what reads the bounds of a loop goes with the loop
    let among =
        |insns: &[InsnId], id| poly.loops(id).contains(&stages.iname) && insns.contains(&entries.inside(id));
    let concerned =
        |d: &&Dependence| d.kind != DependenceKind::Update && among(&rest, d.source) && among(&fetch, d.sink);
    for d in analysis.dependences()?.into_iter().filter(concerned) {
        let whole = d.relation()?;
        let mut late = equal_values(poly, &stages.around);
        // other iterations have other buffers
        let reach = if stages.vars.contains(&d.var) { 0 } else { ahead };
        let distance = isl::Affine::constant(reach).add_scaled(-1, &step(poly, stages.iname));
        late.push(isl::Constraint::non_negative(distance));
        let late = whole.intersect(&isl::Map::from_constraints(&whole.space()?, &late)?)?;
        let Some(witness) = d.witness(kernel, &late)? else { continue };
        let relation = relation_text(d.kind, &witness.element);
        let help = format!("keep `{}` in its iteration", witness.sink.insn);
        return Err(crate::proofs::ORDER.not_proved(WrongOrder { witness, relation, help }));
    }
    Ok(())
}

/// Runs a statement only where `a < b`, which is `guard`.
fn constrain(kernel: &mut Kernel, node: &Node, guard: &Constraint, (a, b): (&Affine, &Affine)) {
    match node {
        Node::Loop(l, _) => {
            let domain = &kernel.inames[*l].domain;
            kernel.inames[*l].domain = domain.intersect(&Domain::conjunction([guard.clone()]));
        }
        Node::Insn(insn) => add_condition(kernel, *insn, a, b),
    }
}

fn add_condition(kernel: &mut Kernel, insn: InsnId, a: &Affine, b: &Affine) {
    let runs = Expr::binary(BinaryOp::Lt, Expr::from_affine(a), Expr::from_affine(b));
    let insn = &mut kernel.insns[insn];
    insn.predicate = Some(match insn.predicate.take() {
        None => runs,
        Some(p) => Expr::binary(BinaryOp::And, runs, p),
    });
}
