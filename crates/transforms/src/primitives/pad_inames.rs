//! Runs loops further, over zeros.

use kingpost_analysis::{Analysis, changing_bounds};
use kingpost_ir::neutral::of_nothing;
use kingpost_ir::{
    Access, Affine, AxisTag, BinaryOp, Domain, Expr, InameId, Insn, InsnId, Kernel, Layout, Node, ScalarType,
    UnaryOp, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::{Instances, Keeps};
use kingpost_steps::lookup;
use kingpost_steps::lookup::table_factors;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::with_longer_axis;
use kingpost_steps::proofs::finite::check_finite;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::tree::edit_siblings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Runs loops of one constant length further, to `length`, over zeros: so that tiles divide it.
///
/// # Rewrite
/// ```text
/// temp u: f64[3] private       =>   temp u: f64[4] private
/// for i in 0..3                     for i in 0..4
///                                     fetch_pad: u[i] = 0.0
///   fetch: u[i] = x[i]                fetch: u[i] = x[i] if i < 3
/// for j in 0..3                     for j in 0..4
///   s: e += w[j]*u[j]                 s: e += w[j]*u[j]
/// table w = [0.5, 2.0, 1.0]         table w = [0.5, 2.0, 1.0, 0.0]
/// ```
/// Tables with an axis of a loop get zeros after their entries, and temporaries of which every
/// element is written by these loops, at the index of the loop, get elements. An instruction that
/// reads anything else at an index of the loop has a condition, and sets elements to zero where it
/// assigns them without reading their array.
///
/// # Precondition
/// Each loop runs over `0..n`, `n >= 1`, the same for all, and `length > n`. None is inside another,
/// and no bound or condition inside mentions it.
///
/// Only iterations from `n` on read and write the new elements, in the order of the accesses to
/// element 0, so that they have values where it has one. What these iterations add elsewhere is a
/// product with a new entry of a table, which is zero. All factors of it are sums and products of
/// numbers, tables and such elements: finite where the values of all arrays are. What would compute
/// with an infinity or a nan of the program or of a table has a condition. Everything else has a
/// condition that does not hold. A result of zero may have the other sign.
///
/// # Errors
/// No loop; one that has an axis, is the iname of a reduction, or has other bounds; a length that
/// is not above theirs, or beyond 2^31; a call inside; loops that nothing would compute with zeros
/// in.
///
/// # Elsewhere
/// IREE and TVM pad iteration spaces of matrix products (`transform.structured.pad`,
/// `pad_einsum`); Halide `bound` with boundary conditions; Exo has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PadInames {
    /// The loops.
    pub inames: Vec<String>,
    /// Their new length.
    pub length: i64,
}

impl PadInames {
    /// Runs loops up to `length`.
    pub fn new<S: Into<String>>(inames: impl IntoIterator<Item = S>, length: i64) -> Self {
        Self { inames: inames.into_iter().map(Into::into).collect(), length }
    }
}

impl fmt::Display for PadInames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inames: Vec<_> = self.inames.iter().map(|i| format!("`{i}`")).collect();
        write!(f, "pad {} to {}", inames.join(", "), self.length)
    }
}

/// What is added is known.
const RANGE: Obligation =
    Obligation::new("pad_inames.range", "the loops run from 0 to one constant, above 0 and below the length");

/// An axis is counted by the iterations that run.
const NO_AXIS: Obligation = Obligation::new("pad_inames.no_axis", "no loop has a tag");

/// Elements after the old ones have values where element 0 has one.
const ALIKE: Obligation =
    Obligation::new("pad_inames.alike", "no bound and no condition inside a loop mentions it");

/// An instruction belongs to one loop.
const APART: Obligation = Obligation::new("pad_inames.apart", "no loop is inside another");

/// Else nothing but conditions would come of it.
const COMPUTES: Obligation = Obligation::new(
    "pad_inames.computes",
    "an instruction inside adds products with a table, or writes elements of a temporary, by the loop",
);

/// What becomes of the loops and what they compute with.
pub struct Padded {
    loops: BTreeSet<InameId>,
    old: i64,
    /// Tables and temporaries with their longer axes.
    grown: Vec<(VarId, Variable)>,
    /// Instructions that do nothing in iterations from the old length on, with the loop, and
    /// whether zeros are assigned there instead.
    idle: Vec<(InsnId, InameId, bool)>,
}

impl Primitive for PadInames {
    const NAME: &'static str = "pad_inames";
    const SUMMARY: &'static str = "Runs loops further, over zeros.";

    type Proof = Padded;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[RANGE, NO_AXIS, ALIKE, APART, COMPUTES, NOT_CALLED];
    const KEEPS: Keeps = Keeps::NUMBERS.of_finite();
    const INSTANCES: Instances = Instances::Free;

    fn check(&self, analysis: &Analysis) -> Result<Padded, Refusal> {
        let kernel = analysis.kernel();
        let (loops, old) = self.loops(kernel)?;
        let inside = insns_of(kernel, &loops)?;
        check_alike(kernel, &inside)?;
        let grown = grown(kernel, &inside, old);
        NOT_CALLED.forbid(
            inside.iter().map(|(id, _)| &kernel.insns[*id]).find(|i| i.callee.is_some()),
            |called| format!("`{}` belongs to a call; inline the call first", called.name),
        )?;
        let idle = idle(kernel, &inside, &grown);
        let fills = idle.iter().any(|(_, _, fills)| *fills);
        COMPUTES.require(fills || idle.len() < inside.len(), || {
            format!(
                "nothing inside `{}` would compute with zeros; name the loops that write a temporary together with \
                 those that read it, or a loop that adds products with a table",
                self.inames.join("`, `")
            )
        })?;
        let longer = |(var, axis)| Ok((var, with_longer_axis(kernel, var, axis, self.length)?));
        let grown = grown.into_iter().map(longer).collect::<Result<_, Refusal>>()?;
        Ok(Padded { loops, old, grown, idle })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Padded) {
        let (zero, end) = (Affine::constant(0), Affine::constant(self.length));
        for iname in &proof.loops {
            kernel.inames[*iname].domain = Domain::range(*iname, &zero, &end);
        }
        for (var, longer) in &proof.grown {
            kernel.vars[*var] = longer.clone();
        }
        for (id, iname, fills) in &proof.idle {
            if *fills {
                fill(kernel, *id);
            }
            let holds = Expr::binary(BinaryOp::Lt, Expr::Iname(*iname), Expr::Int(proof.old));
            let predicate = &mut kernel.insns[*id].predicate;
            *predicate = Some(match predicate.take() {
                Some(old) => Expr::binary(BinaryOp::And, holds, old),
                None => holds,
            });
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let by = p.between(1, 4);
        let length = |name: &String| {
            let id = kernel.iname(name)?;
            kernel.inames[id].domain.as_range(id)?.1.as_constant()
        };
        let mut of_length: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for name in draw::loops(kernel) {
            if let Some(n) = length(&name) {
                of_length.entry(n).or_default().push(name);
            }
        }
        // all of one length, and each alone
        let alike = of_length.iter().map(|(n, all)| Self::new(all, n + by));
        let single = of_length.iter().flat_map(|(n, all)| all.iter().map(move |l| Self::new([l], n + by)));
        draw::possible(kernel, alike.chain(single).collect(), p)
    }
}

impl PadInames {
    /// The loops and their length.
    fn loops(&self, kernel: &Kernel) -> Result<(BTreeSet<InameId>, i64), Refusal> {
        let (mut loops, mut length) = (BTreeSet::new(), None);
        for name in &self.inames {
            let iname = lookup::tree_loop(kernel, name)?;
            NO_AXIS.require(kernel.inames[iname].tag == AxisTag::Sequential, || {
                format!("`{name}` has a tag; pad loops before they are tagged")
            })?;
            let range = kernel.inames[iname].domain.as_range(iname);
            let end =
                range.filter(|(lo, _)| lo.as_constant() == Some(0)).and_then(|(_, hi)| hi.as_constant());
            let same = end.filter(|n| *n >= 1 && length.is_none_or(|other| other == *n));
            length = Some(RANGE.find(same, || {
                let help = match changing_bounds(kernel, iname).as_slice() {
                    [] => "pad loops of one length",
                    [_, ..] => "its bounds are read from memory: make them conditions by guard_iname first",
                };
                format!("`{name}` does not run from 0 to a constant above that all loops have; {help}")
            })?);
            loops.insert(iname);
        }
        let Some(n) = length else {
            return Err(Refusal::argument("inames", "no loop is named", "loops of one constant length"));
        };
        if self.length <= n || self.length > i64::from(i32::MAX) {
            let needed = format!("a length above {n}, that of the loops, and at most 2^31 - 1");
            return Err(Refusal::argument("length", format!("length is {}", self.length), needed));
        }
        Ok((loops, n))
    }
}

/// The instructions of the loops, each with its own.
fn insns_of(kernel: &Kernel, loops: &BTreeSet<InameId>) -> Result<Vec<(InsnId, InameId)>, Refusal> {
    let mut found = Vec::new();
    for (insn, around) in kernel.schedule() {
        let mut own = around.iter().filter(|l| loops.contains(l));
        let Some(iname) = own.next() else { continue };
        APART.forbid(own.next(), |inner| {
            let [outer, inner] = [iname, inner].map(|l| &kernel.inames[*l].name);
            format!("`{inner}` is inside `{outer}`; pad one after the other")
        })?;
        found.push((insn, *iname));
    }
    Ok(found)
}

fn check_alike(kernel: &Kernel, inside: &[(InsnId, InameId)]) -> Result<(), Refusal> {
    let loops: BTreeMap<InsnId, InameId> = inside.iter().copied().collect();
    for (insn, around) in kernel.schedule() {
        let Some(iname) = loops.get(&insn) else { continue };
        let name = &kernel.inames[*iname].name;
        let changing = around.iter().find(|l| *l != iname && kernel.inames[**l].domain.mentions(*iname));
        ALIKE.require(changing.is_none(), || {
            let inner = changing.map_or("", |l| &kernel.inames[*l].name);
            format!("the bounds of `{inner}` mention `{name}`; split or shift it so that they do not")
        })?;
        let insn = &kernel.insns[insn];
        ALIKE.require(insn.predicate.as_ref().is_none_or(|p| !mentions(kernel, p, *iname)), || {
            format!("the condition of `{}` mentions `{name}`; split the loop where it changes", insn.name)
        })?;
    }
    Ok(())
}

/// The tables and temporaries that grow, with the axis.
fn grown(kernel: &Kernel, inside: &[(InsnId, InameId)], n: i64) -> BTreeMap<VarId, usize> {
    let loops: BTreeMap<InsnId, InameId> = inside.iter().copied().collect();
    let mut grown: BTreeMap<VarId, usize> = BTreeMap::new();
    let is_counted = |var: VarId, axis: usize| {
        let v = &kernel.vars[var];
        v.layout == Layout::default() && v.storage.is_none() && v.shape[axis].as_constant() == Some(n)
    };
    for (id, iname) in inside {
        let insn = &kernel.insns[*id];
        // tables by what reads them
        insn.rhs.for_each(&mut |e| {
            if let Expr::Load(access) = e
                && matches!(kernel.vars[access.var].kind, VarKind::Table(_))
                && let Some(axis) = axis_of(kernel, access, *iname)
                && is_counted(access.var, axis)
                && kernel.vars[access.var].shape.iter().all(|e| e.as_constant().is_some())
            {
                grown.entry(access.var).or_insert(axis);
            }
        });
        let var = insn.lhs.var;
        let Some(axis) = axis_of(kernel, &insn.lhs, *iname) else { continue };
        let own = |(id, other): (InsnId, &Insn)| {
            other.lhs.var != var
                || loops.get(&id).is_some_and(|l| axis_of(kernel, &other.lhs, *l) == Some(axis))
        };
        if kernel.vars[var].kind == VarKind::Temporary
            && is_counted(var, axis)
            && kernel.insns.iter().all(own)
        {
            grown.insert(var, axis);
        }
    }
    grown
}

/// The instructions that do nothing after the old iterations, with their loop and whether zeros are
/// assigned there instead.
fn idle(
    kernel: &Kernel,
    inside: &[(InsnId, InameId)],
    grown: &BTreeMap<VarId, usize>,
) -> Vec<(InsnId, InameId, bool)> {
    // what an idle instruction leaves as it was is of another iteration, if it has a value at all
    let mut stale: BTreeSet<VarId> = BTreeSet::new();
    loop {
        let mut idle = Vec::new();
        let known = stale.len();
        for (id, iname) in inside {
            let (insn, scope) = (&kernel.insns[*id], Scope { kernel, grown, stale: &stale, iname: *iname });
            if !scope.computes_with_zeros(insn) {
                // what reads its own array finds the zeros of those before
                let reads_own = insn.loads(insn.lhs.var);
                let fills = scope.is_grown(&insn.lhs) && insn.op == WriteOp::Assign && !reads_own;
                idle.push((*id, *iname, fills));
            }
        }
        let left = idle.iter().map(|(id, ..)| kernel.insns[*id].lhs.var);
        stale.extend(left.filter(|var| !grown.contains_key(var)));
        if stale.len() == known {
            return idle;
        }
    }
}

/// The axis whose index is the iname, if no other index mentions it.
fn axis_of(kernel: &Kernel, access: &Access, iname: InameId) -> Option<usize> {
    let mut axes = (0..access.index.len()).filter(|k| mentions(kernel, &access.index[*k], iname));
    let axis = axes.next().filter(|k| access.index[*k] == Expr::Iname(iname))?;
    axes.next().is_none().then_some(axis)
}

/// Whether a value changes with an iname; rules know none.
fn mentions(kernel: &Kernel, e: &Expr, iname: InameId) -> bool {
    let bounds = |e: &Expr| matches!(e, Expr::Reduce(r) if r.inames.iter().any(|l| kernel.inames[*l].domain.mentions(iname)));
    e.any(&mut |e| *e == Expr::Iname(iname) || bounds(e))
}

/// An iteration of a loop.
struct Scope<'a> {
    kernel: &'a Kernel,
    grown: &'a BTreeMap<VarId, usize>,
    stale: &'a BTreeSet<VarId>,
    iname: InameId,
}

impl Scope<'_> {
    /// Whether an access is of the iteration's own element.
    fn is_grown(&self, access: &Access) -> bool {
        let axis = self.grown.get(&access.var);
        axis.is_some() && axis_of(self.kernel, access, self.iname) == axis.copied()
    }

    /// Whether an instruction may run after the old iterations: what it reads there has values,
    /// and it changes nothing but new elements.
    fn computes_with_zeros(&self, insn: &Insn) -> bool {
        let adds_zero = insn.op == WriteOp::Update { op: UpdateOp::Add, atomic: false }
            && self.has_zero_factor(insn)
            && !insn.lhs.index.iter().any(|e| mentions(self.kernel, e, self.iname));
        let finite = check_finite(self.kernel, &insn.name, &insn.rhs).is_ok();
        (self.is_grown(&insn.lhs) || adds_zero) && finite && self.is_polynomial(&insn.rhs)
    }

    /// Whether a value is made of sums and products of numbers and of elements that there are.
    fn is_polynomial(&self, e: &Expr) -> bool {
        match e {
            Expr::Int(_) | Expr::Real(_) | Expr::Iname(_) => true,
            Expr::Load(access) => {
                let is_same = || !access.index.iter().any(|index| mentions(self.kernel, index, self.iname));
                self.is_grown(access) || (is_same() && !self.stale.contains(&access.var))
            }
            Expr::Unary(UnaryOp::Neg, a) => self.is_polynomial(a),
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, a, b) => {
                self.is_polynomial(a) && self.is_polynomial(b)
            }
            Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => false,
        }
    }

    /// Whether a factor of a product is an entry after those of a table.
    fn has_zero_factor(&self, insn: &Insn) -> bool {
        table_factors(self.kernel, insn).into_iter().any(|access| self.is_grown(access))
    }
}

/// Assigns zero before an instruction that assigns.
fn fill(kernel: &mut Kernel, id: InsnId) {
    let insn = kernel.insns[id].clone();
    let ty = kernel.vars[insn.lhs.var].ty;
    let op = if ty == ScalarType::Bool { UpdateOp::Or } else { UpdateOp::Add };
    let zero = of_nothing(op, ty);
    let name = kernel.fresh_name(&format!("{}_pad", insn.name));
    let filling = kernel.insns.push(Insn { name, rhs: zero, ..insn });
    let is_user = |n: &Node| matches!(n, Node::Insn(i) if *i == id);
    edit_siblings(&mut kernel.body, &is_user, &mut |nodes| {
        if let Some(at) = nodes.iter().position(is_user) {
            nodes.insert(at, Node::Insn(filling));
        }
    });
}
