//! Accumulates into partial values that are joined after the loop.

use kingpost_analysis::Analysis;
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, Expr, InameId, Insn, InsnId, Kernel, Node, UpdateOp, VarKind, Variable,
    WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::nest::{copy_loops, renamed, wrapped};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::accumulation::HAS_ELEMENT;
use kingpost_steps::proofs::accumulation::HAS_VALUE;
use kingpost_steps::proofs::accumulation::IS_UPDATE;
use kingpost_steps::proofs::accumulation::NO_REDUCTIONS;
use kingpost_steps::proofs::accumulation::{Delayed, refuse_reductions, update};
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, changing_bounds, check_bounds_stay};
use kingpost_steps::proofs::extent::parametric_extent;
use kingpost_steps::proofs::length::never_empty;
use kingpost_steps::proofs::written::may_be_undefined;
use kingpost_steps::proofs::{ORDER, VALUES};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Array, Handles, Loop, Made, Statement};
use kingpost_steps::tree::body_of;
use kingpost_steps::tree::{edit_siblings, loop_body, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets an update accumulate into a partial value for each iteration of some loops, and adds the
/// partial values after the outermost of them.
///
/// # Rewrite
/// ```text
///                                  temp s_part: f64[n_o]
/// for k_o in 0..n_o           =>   for k_o in 0..n_o
///   for k_i in 0..32                 s_part_init: s_part[k_o] = 0.0
///     s: y += a[32*k_o + k_i]        for k_i in 0..32
///                                      s: s_part[k_o] += a[32*k_o + k_i]
///                                  for k_o_sum in 0..n_o
///                                    s_part_sum: y += s_part[k_o_sum]
/// ```
/// The partial values have an axis for each named loop, and for each loop inside that the element's
/// index mentions: with `y[dof[c, j]] += …` over `q` inside `c` and `j`, they are what cell `c`
/// adds to its `j`-th degree of freedom. They are private; new loops have the tags of those they
/// copy; an atomic update leaves its atomicity to the sum. A predicate that says which elements are
/// updated holds for the sum, too, if its operands surely have values there.
///
/// # Precondition
/// The instruction is an update, so that its terms may be regrouped. With
/// `o` the loops around the outermost named one, nobody sees the element between a term and the
/// sum: `{ s -> t : o = o', element(s) = element(t), s before t }` is empty for every access `t`
/// inside the outermost named loop that is no update by the same operator. What the element's index
/// reads stays until the sum. Where no term is, the element lies in the array and, of a temporary
/// or output, has surely been written. The bounds of the new loops mention only loops that the
/// partial values have an axis for, and do not change; those read from memory are inside no loop
/// that is summed over and may be empty. If loops are on axes, the placement must hold.
///
/// # Errors
/// An element that is read, or an index that changes before the sum, with two instances; an
/// element that may not exist or have no value, with the sizes; a plain store; loops that are not
/// around the instruction; bounds on other loops; a loop of unknown length; names that are taken.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2 (partial sums of work-items); the step `rfactor` of Halide.
///
/// # Elsewhere
/// Halide `rfactor`; Loopy `split_reduction_outward` with `realize_reduction`; Exo `stage_mem` with
/// `accum`; TVM `rfactor`; MLIR `transform.structured.split_reduction`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorUpdate {
    /// The update.
    pub insn: String,
    /// Loops around it: one partial value for each of their iterations.
    pub inames: Vec<String>,
    /// Name of the partial values; `{insn}_part` if absent. Instructions are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

impl FactorUpdate {
    /// One partial value for each iteration of `inames`.
    pub fn new<S: Into<String>>(insn: impl Into<String>, inames: impl IntoIterator<Item = S>) -> Self {
        Self { insn: insn.into(), inames: inames.into_iter().map(Into::into).collect(), partial: None }
    }

    /// Calls the partial values `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.partial = Some(name.into());
        self
    }

    fn names(&self, kernel: &Kernel) -> Result<[String; 3], Refusal> {
        let all = |name: &str| ["", "_init", "_sum"].map(|end| format!("{name}{end}"));
        let stem = format!("{}_part", self.insn);
        Ok(all(&lookup::made(kernel, self.partial.as_deref(), &stem, |name| all(name).to_vec())?))
    }
}

impl fmt::Display for FactorUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inames: Vec<_> = self.inames.iter().map(|i| format!("`{i}`")).collect();
        let over = if inames.is_empty() { "no loop".to_owned() } else { inames.join(", ") };
        write!(f, "factor `{}` over {over}", self.insn)?;
        self.partial.as_ref().map_or(Ok(()), |name| write!(f, " into `{name}`"))
    }
}

/// The loops are around the update.
const AROUND: Obligation = Obligation::new("factor_update.around", "the named loops are around the update");

/// The new loops are entered where the old ones were not.
const BOUNDS_HAVE_VALUES: Obligation = Obligation::new(
    "factor_update.bounds_have_values",
    "no loop around a bound that is read from memory is summed over and may be empty",
);

/// The new loops stand outside what is summed over.
const BOUNDS_NOT_SUMMED: Obligation = Obligation::new(
    "factor_update.bounds_not_summed",
    "the bounds of a loop with an axis mention no loop that is summed over",
);

/// The partial values are declared before the loops run.
const KNOWN_LENGTH: Obligation =
    Obligation::new("factor_update.known_length", "parameters bound the values of every loop with an axis");

/// Terms that may be summed apart from their element until the outermost named loop ends.
pub struct PartialSums {
    id: InsnId,
    /// Names of the partial values, of what starts them and of what adds them.
    names: [String; 3],
    op: UpdateOp,
    /// The loops around the update, outer first.
    loops: Vec<InameId>,
    /// How many of them are around the outermost named one.
    outer: usize,
    /// The loops that the partial values have an axis for, outer first.
    axes: Vec<InameId>,
    /// Lower bound and extent of each axis.
    extents: Vec<(Affine, Affine)>,
    /// Whether the predicate holds for the sum as well.
    predicated_sum: bool,
}

/// Partial values, and what starts and sums them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialValues {
    /// The partial values.
    pub values: Array,
    /// The loops that start them and those that sum them, outer first.
    pub loops: Vec<Loop>,
    /// The instruction that starts them, and the one that sums them.
    pub insns: [Statement; 2],
}

impl Handles for PartialValues {
    fn list(&self, made: &mut Made) {
        self.values.list(made);
        self.loops.list(made);
        self.insns.list(made);
    }
}

impl Primitive for FactorUpdate {
    const NAME: &'static str = "factor_update";
    const SUMMARY: &'static str = "Accumulates into partial values that are joined after the loop.";

    type Proof = PartialSums;
    type Made = PartialValues;

    const OBLIGATIONS: &'static [Obligation] = &[
        AROUND,
        BOUNDS_STAY,
        BOUNDS_HAVE_VALUES,
        BOUNDS_NOT_SUMMED,
        ORDER,
        VALUES,
        KNOWN_LENGTH,
        NO_REDUCTION,
        IS_UPDATE,
        NO_REDUCTIONS,
        HAS_ELEMENT,
        HAS_VALUE,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<PartialSums, Refusal> {
        let kernel = analysis.kernel();
        let (id, op) = update(kernel, &self.insn)?;
        let names = self.names(kernel)?;
        let (expanded, poly) = (analysis.expanded(), analysis.polyhedral());
        let loops = poly.loops(id).to_vec();
        let named = self.named(kernel, &loops)?;
        let outer =
            loops.iter().position(|l| named.contains(l)).expected("named loop around the update", kernel)?;
        let insn = &expanded.insns[id];
        refuse_reductions(kernel, insn, &insn.lhs.index.iter().chain(&insn.predicate).collect::<Vec<_>>())?;
        let kept = |l: &InameId| named.contains(l) || insn.lhs.index.iter().any(|e| e.mentions(*l));
        let axes: Vec<_> = loops[outer..].iter().copied().filter(kept).collect();
        self.check_bounds(analysis, &loops, outer, &axes)?;
        let known: Vec<_> = loops[..outer].iter().chain(&axes).copied().collect();
        let summed = |e: &Expr| loops.iter().any(|l| !known.contains(l) && e.mentions(*l));
        let mut runs = true;
        for l in loops[outer..].iter().filter(|l| !axes.contains(l)) {
            runs &= never_empty(analysis, *l)?;
        }
        // where no term is, nothing says that the operands of a condition have values
        let predicate =
            insn.predicate.as_ref().filter(|p| !summed(p) && (runs || has_a_value_everywhere(kernel, p)));
        let delayed = Delayed { analysis, id, outer };
        delayed.check_unseen(&format!(
            "distribute the loops, or factor `{}` over loops further inside",
            self.insn
        ))?;
        let operands: Vec<_> = insn.lhs.index.iter().chain(predicate).collect();
        delayed.check_operands_stay(&operands)?;
        delayed.check_element_exists(&known, predicate)?;
        let extents = axes.iter().map(|l| extent(analysis, *l)).collect::<Result<_, _>>()?;
        let predicated_sum = predicate.is_some();
        Ok(PartialSums { id, names, op, loops, outer, axes, extents, predicated_sum })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &PartialSums) -> PartialValues {
        let old = kernel.insns[proof.id].clone();
        let ty = kernel.vars[old.lhs.var].ty;
        let shape = proof.extents.iter().map(|(_, extent)| extent.clone());
        let [values, init_name, sum_name] = &proof.names;
        let partial = Variable::new(values, ty, VarKind::Temporary, shape, AddressSpace::Private);
        let partial = kernel.vars.push(partial);
        let element = |copies: &[(InameId, InameId)]| {
            let index = proof.axes.iter().zip(&proof.extents).map(|(l, (lo, _))| {
                let at = copies.iter().find(|(old, _)| old == l).map_or(*l, |(_, new)| *new);
                Expr::from_affine(&Affine::iname(at).minus(lo))
            });
            Access::new(partial, index)
        };
        let insn = |name: &String, lhs, op, rhs, predicate| Insn {
            name: name.clone(),
            lhs,
            op,
            rhs,
            predicate,
            tags: old.tags.clone(),
            callee: None,
        };
        kernel.insns[proof.id].lhs = element(&[]);
        kernel.insns[proof.id].op = WriteOp::Update { op: proof.op, atomic: false };

        let depth = proof.depth(kernel);
        let swept: Vec<_> =
            proof.axes.iter().copied().filter(|l| !proof.loops[..=depth].contains(l)).collect();
        let inits = copy_loops(kernel, &swept, "init");
        let init = insn(init_name, element(&inits), WriteOp::Assign, neutral(proof.op, ty), None);
        let init = wrapped(inits.iter().map(|(_, new)| *new), vec![Node::Insn(kernel.insns.push(init))]);
        let deepest = proof.loops[depth];
        replace_loop(&mut kernel.body, deepest, &mut |body| {
            vec![Node::Loop(deepest, init.iter().cloned().chain(body).collect())]
        });

        let sums = copy_loops(kernel, &proof.axes, "sum");
        let lhs = Access::new(old.lhs.var, old.lhs.index.iter().map(|e| renamed(e, &sums)));
        let predicate = old.predicate.as_ref().filter(|_| proof.predicated_sum).map(|p| renamed(p, &sums));
        let sum = insn(sum_name, lhs, old.op, Expr::Load(element(&sums)), predicate);
        let sum = wrapped(sums.iter().map(|(_, new)| *new), vec![Node::Insn(kernel.insns.push(sum))]);
        insert_behind(&mut kernel.body, proof.loops[proof.outer], &sum);
        let loops = inits.iter().chain(&sums).map(|(_, new)| Loop::named(&kernel.inames[*new].name));
        PartialValues {
            values: Array::named(values),
            loops: loops.collect(),
            insns: [init_name, sum_name].map(Statement::named),
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let update = p.of(&draw::insns(kernel, |i| i.op != WriteOp::Assign))?;
        let around = draw::loops_of(kernel, &update);
        let mut over = vec![p.of(&around)?];
        over.extend(p.of(&around).filter(|l| *l != over[0] && p.one_in(3)));
        Some(Self::new(update, over).into_temporary(kernel.fresh_name("part")))
    }
}

impl FactorUpdate {
    fn named(&self, kernel: &Kernel, loops: &[InameId]) -> Result<Vec<InameId>, Refusal> {
        if self.inames.is_empty() {
            return Err(Refusal::argument("inames", "no loop is given", "loops around the update"));
        }
        let mut named = Vec::new();
        for name in &self.inames {
            let iname = lookup::tree_loop(kernel, name)?;
            AROUND.require(loops.contains(&iname), || format!("`{name}` is not around `{}`", self.insn))?;
            if named.contains(&iname) {
                return Err(Refusal::argument(
                    "inames",
                    format!("`{name}` is named twice"),
                    "each loop once",
                ));
            }
            named.push(iname);
        }
        Ok(named)
    }

    /// The bounds of the loops with an axis mention no loop that is summed over, and do not change.
    fn check_bounds(
        &self,
        analysis: &Analysis,
        loops: &[InameId],
        outer: usize,
        axes: &[InameId],
    ) -> Result<(), Refusal> {
        let kernel = analysis.kernel();
        let first = loops[outer];
        let nest = body_of(kernel, first)?;
        for axis in axes {
            check_bounds_stay(kernel, *axis, nest)?;
            let summed = loops[outer..].iter().filter(|l| !axes.contains(l));
            let around = loops[outer..].iter().take_while(|l| *l != axis);
            for l in around.filter(|l| !axes.contains(l)) {
                let bounds = changing_bounds(kernel, *axis);
                let Some(bound) = bounds.first() else { continue };
                BOUNDS_HAVE_VALUES.decide(never_empty(analysis, *l)?, || {
                    format!(
                        "the bounds of `{}` mention `{}`, which may have no value where `{}` holds nothing; assume that \
                         it is not empty, or interchange the loops",
                        kernel.inames[*axis].name, kernel.vars[*bound].name, kernel.inames[*l].name
                    )
                })?;
            }
            for l in summed {
                BOUNDS_NOT_SUMMED.require(!kernel.inames[*axis].domain.mentions(*l), || {
                    let (axis, l) = (&kernel.inames[*axis].name, &kernel.inames[*l].name);
                    format!(
                        "the bounds of `{axis}` mention `{l}`, over which the partial values sum; name `{l}` too, or \
                         interchange the loops"
                    )
                })?;
            }
        }
        Ok(())
    }
}

impl PartialSums {
    /// How deep the first values are set: below the outermost named loop as long as the nest is
    /// perfect.
    fn depth(&self, kernel: &Kernel) -> usize {
        let mut depth = self.outer;
        while let Some(next) = self.loops.get(depth + 1).filter(|l| self.axes.contains(l)) {
            let alone = loop_body(&kernel.body, self.loops[depth])
                .is_some_and(|body| matches!(body, [Node::Loop(only, _)] if only == next));
            if !alone {
                break;
            }
            depth += 1;
        }
        depth
    }
}

/// Whether an expression reads nothing but scalars that have values from the start.
fn has_a_value_everywhere(kernel: &Kernel, e: &Expr) -> bool {
    let mut all = true;
    e.for_each(&mut |e| {
        if let Expr::Load(access) = e {
            all &= access.index.is_empty() && !may_be_undefined(&kernel.vars[access.var].kind);
        }
    });
    all
}

fn insert_behind(body: &mut Vec<Node>, iname: InameId, nodes: &[Node]) {
    let wanted = |n: &Node| matches!(n, Node::Loop(l, _) if *l == iname);
    edit_siblings(body, &wanted, &mut |siblings| {
        if let Some(at) = siblings.iter().position(wanted) {
            siblings.splice(at + 1..at + 1, nodes.iter().cloned());
        }
    });
}

/// Lower bound and extent of a loop.
fn extent(analysis: &Analysis, iname: InameId) -> Result<(Affine, Affine), Refusal> {
    KNOWN_LENGTH.known(parametric_extent(analysis.polyhedral(), iname)?, || {
        format!(
            "the length of `{}` is bounded by no expression of the parameters; assume bounds, or name loops of known \
             length",
            analysis.kernel().inames[iname].name
        )
    })
}
