//! Keeps the elements of an array that an iteration reaches through numbers in registers.

use super::list_elements::Uses;
use crate::listed_elements::{Sweep, put_around};
use kingpost_analysis::Analysis;
use kingpost_ir::neutral::neutral;
use kingpost_ir::{
    Access, AddressSpace, Affine, Direction, Expr, InameId, InsnId, Kernel, UpdateOp, VarId, VarKind,
    Variable, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{NO_RULE, check_no_rule};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::Array;
use kingpost_steps::tree::{body_of, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets an iteration of the loop `at` read, or update, each element of `var` once to which its column
/// of `numbers` leads, and keep it in a private temporary meanwhile.
///
/// # Rewrite
/// ```text
/// for b in 0..n                             =>  for b in 0..n
///   for i in 0..6                                 for fetch_u_items_0 in 0..4
///     s: a[b, i] = u[numbers[places[i], b]]         fetch_u_items: u_items[…] = u[numbers[…, b]]
///                                                 for i in 0..6
///                                                   s: a[b, i] = u_items[places[i]]
/// ```
/// Updates go to a temporary that starts from the neutral element and is joined to the array after
/// them, each of its elements once.
/// ```text
/// for b in 0..n                             =>  for b in 0..n
///   for i in 0..6                                 for start_y_items_0 in 0..4
///     s: y[numbers[places[i], b]] += a[b, i]        start_y_items: y_items[…] = 0.0
///                                                 for i in 0..6
///                                                   s: y_items[places[i]] += a[b, i]
///                                                 for store_y_items_0 in 0..4
///                                                   store_y_items: y[numbers[…, b]] += y_items[…]
/// ```
/// [`PassBlocks`](super::PassBlocks) makes such accesses of those through a map. Where the loops inside
/// are written out and places are a table of literals, the temporary is in registers.
///
/// # Precondition
/// `numbers` is an input of integers with a constant number of rows. An access inside `at` is
/// redirected if it is `var[numbers[place, at] + e, …]` with any place, the same `e` of scalar inputs in
/// all of them, or none, and further axes of constant extents; at least one is. Either all accesses
/// inside `at` read, or all are updates by one operator that commutes, and `var` is an `inout`
/// argument, so that elements that nothing updates are defined. No rule reads `var`, and
/// what is redirected belongs to no call. If loops are on axes, the placement must hold.
///
/// # Errors
/// Unknown names, no access through the numbers, accesses at different distances, an array that is read
/// and written inside, a rule or a call that accesses it.
///
/// # Elsewhere
/// Scalar replacement (Callahan et al. 1990).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareElements {
    /// The array.
    pub var: String,
    /// The loop whose iterations keep elements.
    pub at: String,
    /// The input of integers, `[numbers, iterations]`.
    pub numbers: String,
}

impl ShareElements {
    /// Keeps the elements of `var` that an iteration of `at` reaches through its column of `numbers`.
    pub fn new(var: impl Into<String>, at: impl Into<String>, numbers: impl Into<String>) -> Self {
        Self { var: var.into(), at: at.into(), numbers: numbers.into() }
    }
}

impl fmt::Display for ShareElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { var, at, numbers } = self;
        write!(f, "share the elements of `{var}` at `{numbers}` in `{at}`")
    }
}

/// All of the numbers of an iteration are known.
const THROUGH: Obligation = Obligation::new(
    "share_elements.through",
    "inside the loop the array is accessed through a column of an input of integers, at one distance",
);

/// Accesses through the numbers of an iteration.
pub struct Shared {
    at: InameId,
    var: VarId,
    numbers: VarId,
    /// Numbers of an iteration.
    count: i64,
    insns: Vec<InsnId>,
    /// The index of the array at the first number.
    template: Expr,
    /// The operator of updates; none if all read.
    op: Option<UpdateOp>,
    atomic: bool,
    temporary: String,
}

impl Primitive for ShareElements {
    const NAME: &'static str = "share_elements";
    const SUMMARY: &'static str = "Reads and updates what an iteration reaches through numbers once each.";

    type Proof = Shared;
    /// The temporary.
    type Made = Array;

    const OBLIGATIONS: &'static [Obligation] =
        &[THROUGH, super::list_elements::ONE_USE, super::list_elements::GIVEN, NO_RULE, NOT_CALLED];
    const KEEPS: Keeps = Keeps::REASSOCIATED;

    fn check(&self, analysis: &Analysis) -> Result<Shared, Refusal> {
        let kernel = analysis.kernel();
        let at = lookup::tree_loop(kernel, &self.at)?;
        let (var, numbers) = (lookup::var(kernel, &self.var)?, lookup::var(kernel, &self.numbers)?);
        check_no_rule(kernel, var)?;
        let count = self.check_numbers(kernel, var, numbers)?;
        let (mut insns, mut templates, mut uses) = (Vec::new(), Vec::new(), Uses::default());
        for s in insns_of(body_of(kernel, at)?) {
            let insn = &kernel.insns[s];
            let accesses = uses.of(insn, var);
            let through: Vec<Expr> =
                accesses.iter().filter_map(|a| place_of(kernel, a, numbers, at)).map(|(_, e)| e).collect();
            if through.is_empty() {
                continue;
            }
            NOT_CALLED.require(insn.callee.is_none(), || {
                format!("`{}` belongs to a call; inline the call first", insn.name)
            })?;
            insns.push(s);
            templates.extend(through.into_iter().filter(|e| !templates.contains(e)).collect::<Vec<_>>());
        }
        let op = uses.one(kernel, var)?;
        templates.dedup();
        let one = templates.first().filter(|_| templates.len() == 1);
        let template = THROUGH.find(one, || {
            let found = if templates.is_empty() { "not" } else { "at several distances" };
            format!(
                "`{}` is {found} accessed by `{}[…, {}]` in `{}`; name a loop and numbers by which it is",
                self.var, self.numbers, self.at, self.at
            )
        })?;
        let axes = kernel.vars[var].shape.len();
        let names = |name: &str| {
            let verbs = ["fetch", "start", "store"].map(|verb| format!("{verb}_{name}"));
            let loops = verbs.iter().flat_map(|verb| (0..axes).map(move |k| format!("{verb}_{k}")));
            let loops: Vec<String> = loops.collect();
            verbs.into_iter().chain(loops).chain([name.to_owned()]).collect::<Vec<String>>()
        };
        let temporary = lookup::made(kernel, None, &format!("{}_items", self.var), names)?;
        let template = template.clone();
        let atomic = uses.atomic;
        Ok(Shared { at, var, numbers, count, insns, template, op, atomic, temporary })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Shared) -> Array {
        let Shared { var, count, op, temporary: name, .. } = proof;
        let array = kernel.vars[*var].clone();
        let shape = [vec![Affine::constant(*count)], array.shape[1..].to_vec()].concat();
        let (kind, space) = (VarKind::Temporary, AddressSpace::Private);
        let temporary = kernel.vars.push(Variable::new(name, array.ty.loaded(), kind, shape, space));
        redirect(kernel, proof, temporary);
        let sweep =
            |kernel: &mut Kernel, verb: &str| Sweep::new(kernel, &format!("{verb}_{name}"), &array, *count);
        let first = sweep(kernel, if op.is_some() { "start" } else { "fetch" });
        let value = match op {
            Some(op) => neutral(*op, array.ty),
            None => Expr::Load(proof.element(&first)),
        };
        let before = first.nodes(kernel, first.access(temporary, None), WriteOp::Assign, value, None);
        let mut behind = Vec::new();
        if let Some(op) = *op {
            let last = sweep(kernel, "store");
            let value = Expr::Load(last.access(temporary, None));
            let op = WriteOp::Update { op, atomic: proof.atomic };
            behind = last.nodes(kernel, proof.element(&last), op, value, None);
        }
        put_around(kernel, proof.at, &proof.insns, before, behind);
        Array::named(name)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let is_given = |v: &Variable| matches!(v.kind, VarKind::Argument(_));
        let has_rows = |v: &Variable| v.shape.len() == 2 && v.shape[0].as_constant().is_some();
        let numbers = draw::vars(kernel, |v| is_given(v) && v.ty.is_exact() && has_rows(v));
        let arrays = draw::vars(kernel, |v| is_given(v) && !v.ty.is_exact() && !v.shape.is_empty());
        let numbers = p.of(&numbers)?;
        let mut all = Vec::new();
        for at in draw::loops(kernel) {
            all.extend(arrays.iter().map(|var| Self::new(var, &at, &numbers)));
        }
        draw::possible(kernel, all, p)
    }
}

impl Shared {
    /// The element of the array at loops over the temporary.
    fn element(&self, sweep: &Sweep) -> Access {
        let mut access = sweep.access(self.var, None);
        let number = Expr::load(self.numbers, [sweep.place(), Expr::Iname(self.at)]);
        access.index[0] = self.template.clone().map(&mut |e| match e.as_load() {
            Some(load) if load.var == self.numbers => number.clone(),
            Some(_) | None => e,
        });
        access
    }
}

impl ShareElements {
    /// How many numbers an iteration has.
    fn check_numbers(&self, kernel: &Kernel, var: VarId, numbers: VarId) -> Result<i64, Refusal> {
        let data = &kernel.vars[numbers];
        let given = data.kind == VarKind::Argument(Direction::In) && data.ty.is_exact();
        let count = match &data.shape[..] {
            [count, _] if given => count.as_constant(),
            _ => None,
        };
        let further = kernel.vars[var].shape.iter().skip(1);
        let constant = further.clone().all(|e| e.as_constant().is_some_and(|e| e >= 1));
        let count = count.filter(|count| constant && (1..=MAX_NUMBERS).contains(count));
        THROUGH
            .find(count.as_ref(), || {
                format!(
                    "`{}` is no input of integers with a constant number of rows, or further axes of `{}` are not \
                     constant; name such arrays",
                    self.numbers, self.var
                )
            })
            .copied()
    }
}

/// Elements that are kept at most.
const MAX_NUMBERS: i64 = 1 << 20;

/// The place among the numbers of an iteration of an access through them, and the index with the first
/// number in its place.
fn place_of(kernel: &Kernel, access: &Access, numbers: VarId, at: InameId) -> Option<(Expr, Expr)> {
    let (mut place, mut entries, mut plain) = (None, 0, true);
    let index = access.index.first()?.clone();
    let template = index.map(&mut |e| match e.as_load() {
        Some(load) if load.var == numbers && load.index.get(1) == Some(&Expr::Iname(at)) => {
            place = load.index.first().cloned();
            entries += 1;
            Expr::load(numbers, [Expr::Int(0), Expr::Int(0)])
        }
        Some(_) | None => e,
    });
    template.for_each(&mut |e| match e {
        Expr::Iname(_) => plain = false,
        Expr::Load(load) if load.var != numbers => {
            let data = &kernel.vars[load.var];
            plain &= data.shape.is_empty()
                && matches!(data.kind, VarKind::Argument(Direction::In) | VarKind::Param);
        }
        _ => {}
    });
    place.filter(|_| plain && entries == 1).map(|place| (place, template))
}

/// Accesses go to the temporary, by their places.
fn redirect(kernel: &mut Kernel, proof: &Shared, temporary: VarId) {
    let before = kernel.clone();
    let moved = |access: &Access| {
        let (place, _) = place_of(&before, access, proof.numbers, proof.at)?;
        let further = access.index.get(1..)?.iter().cloned();
        Some(Access::new(temporary, [place].into_iter().chain(further).collect::<Vec<_>>()))
    };
    for s in &proof.insns {
        let insn = &mut kernel.insns[*s];
        insn.map_expressions(&mut |e| match e {
            Expr::Load(access) if access.var == proof.var => Expr::Load(moved(&access).unwrap_or(access)),
            other => other,
        });
        if insn.lhs.var == proof.var
            && let Some(lhs) = moved(&insn.lhs)
        {
            insn.lhs = lhs;
            if let WriteOp::Update { atomic, .. } = &mut insn.op {
                *atomic = false;
            }
        }
    }
}
