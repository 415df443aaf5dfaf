//! Writes values as sums of products of some scalars and factors.

use crate::proofs::linear::{Body, LINEAR, SAME, SHORT, Sum};
use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, AddressSpace, Expr, Insn, InsnId, Kernel, Node, ScalarType, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{NOT_CALLED, check_not_called};
use kingpost_steps::schedule::{Array, Statement};
use kingpost_steps::tree::{edit_siblings, prune_insn, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Computes values that are linear in some scalars as sums of the scalars times factors, each of which
/// is computed once and first: so that factors can be kept, or passed.
///
/// # Rewrite
/// ```text
/// s: g = a[i]*u + b[i]*v         =>   set_e_u: e_u = a[i]*c
/// t: e = c*g                          set_e_v: e_v = b[i]*c
///                                     t: e = e_u*u + e_v*v
/// ```
/// Factors that are equal when they are written out as sums of products are one. Stores whose values
/// were put in their place, and which nothing else reads, go.
///
/// # Precondition
/// The instructions store scalars of type `f64` in one body, without a condition. With the stores of
/// the body before them instead of the scalars that these give, `e = sum_k f_k u_k`: `u_k` are the
/// scalars `of`, and no `f_k` depends on them. What a factor reads is written nowhere between the place
/// where it was read and the place before the first instruction, and no `u_k` between the place
/// where it was read and the instruction: `{ w : read before w before use }` is empty. Results are equal
/// where values are finite, up to the order of sums and products. If loops are on axes, the placement
/// must hold.
///
/// # Errors
/// Instructions that are no such stores or stand in several bodies; a value that is not linear, or has
/// more than 1,024 products; an infinity or a nan as a number; an operand that is written in between; a
/// call.
///
/// # Elsewhere
/// MFEM and libCEED store such factors of the mass and diffusion operators, derived by hand; UFL
/// `compute_form_arities` knows linearity, and TSFC does not collect.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectFactors {
    /// The instructions.
    pub insns: Vec<String>,
    /// The scalars.
    pub of: Vec<String>,
}

impl CollectFactors {
    /// Collects the factors of the scalars `of` in what `insns` store.
    pub fn new<S: Into<String>, T: Into<String>>(
        insns: impl IntoIterator<Item = S>,
        of: impl IntoIterator<Item = T>,
    ) -> Self {
        let insns = insns.into_iter().map(Into::into).collect();
        Self { insns, of: of.into_iter().map(Into::into).collect() }
    }
}

impl fmt::Display for CollectFactors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |all: &[String]| all.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        write!(f, "collect the factors of {} in {}", names(&self.of), names(&self.insns))
    }
}

/// A factor is computed where the value is.
const STORES: Obligation = Obligation::new(
    "collect_factors.stores",
    "the instructions store scalars of type `f64` in one body, without a condition",
);

/// The scalars are named by their values.
const SCALARS: Obligation =
    Obligation::new("collect_factors.scalars", "`of` names scalars of type `f64` that none of them writes");

/// A factor, and the name of the temporary that holds it.
struct Factor {
    name: String,
    value: Expr,
}

/// What the instructions store.
pub struct Collected {
    factors: Vec<Factor>,
    /// The factor of each scalar in each instruction, by number.
    values: Vec<(InsnId, Vec<(usize, VarId)>)>,
    /// Before this one the factors are computed.
    first: InsnId,
    /// What nothing reads any more.
    gone: Vec<InsnId>,
}

impl Primitive for CollectFactors {
    const NAME: &'static str = "collect_factors";
    const SUMMARY: &'static str = "Writes values as sums of scalars times factors.";

    type Proof = Collected;
    type Made = (Vec<Array>, Vec<Statement>);

    const OBLIGATIONS: &'static [Obligation] = &[STORES, SCALARS, LINEAR, SHORT, SAME, NOT_CALLED, FINITE];
    const KEEPS: Keeps = Keeps::within(12).of_finite();
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Collected, Refusal> {
        let kernel = analysis.kernel();
        let of = self.scalars(kernel)?;
        let (nodes, places) = self.places(kernel, &of)?;
        let ends = places.iter().min().zip(places.iter().max());
        let (first, last) = ends.map(|(a, b)| (*a, *b)).expected("place of an instruction", kernel)?;
        let mut body = Body::new(kernel, nodes, &of);
        let (mut factors, mut values) = (Vec::<Factor>::new(), Vec::new());
        let mut known = BTreeMap::<String, usize>::new();
        for place in &places {
            let Node::Insn(id) = nodes[*place] else { continue };
            let found = body.factors(*place)?;
            let result = kernel.insns[id].lhs.var;
            let mut terms = Vec::new();
            for (var, sum) in found.into_iter().filter(|(_, sum): &(VarId, Sum)| !sum.is_empty()) {
                let number = *known.entry(sum.key()).or_insert_with(|| {
                    let stem = format!("{}_{}", kernel.vars[result].name, kernel.vars[var].name);
                    let name = free(kernel, &stem, &factors);
                    factors.push(Factor { name, value: sum.expr() });
                    factors.len() - 1
                });
                terms.push((number, var));
            }
            values.push((id, terms));
        }
        body.check_same(first, last)?;
        let gone = unread(kernel, &body, &values);
        let Node::Insn(first) = nodes[first] else {
            return Err(STORES.unfit("no instruction is named"));
        };
        Ok(Collected { factors, values, first, gone })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Collected) -> (Vec<Array>, Vec<Statement>) {
        let tags = kernel.insns[proof.first].tags.clone();
        let (mut vars, mut set) = (Vec::new(), Vec::new());
        for factor in &proof.factors {
            let (kind, space) = (VarKind::Temporary, AddressSpace::Private);
            let var = kernel.vars.push(Variable::new(&factor.name, ScalarType::F64, kind, [], space));
            vars.push(var);
            set.push(kernel.insns.push(Insn {
                name: setter(&factor.name),
                lhs: Access::scalar(var),
                op: WriteOp::Assign,
                rhs: factor.value.clone(),
                predicate: None,
                tags: tags.clone(),
                callee: None,
            }));
        }
        for (insn, terms) in &proof.values {
            let product = |(number, var): &(usize, VarId)| Expr::scalar(vars[*number]) * Expr::scalar(*var);
            let sum = terms.iter().map(product).reduce(|a, b| a + b);
            kernel.insns[*insn].rhs = sum.unwrap_or(Expr::from(0.0));
        }
        let is_first = |n: &Node| matches!(n, Node::Insn(s) if *s == proof.first);
        edit_siblings(&mut kernel.body, &is_first, &mut |nodes| {
            if let Some(at) = nodes.iter().position(is_first) {
                nodes.splice(at..at, set.iter().map(|s| Node::Insn(*s)));
            }
        });
        for insn in &proof.gone {
            prune_insn(&mut kernel.body, *insn);
        }
        let arrays = proof.factors.iter().map(|f| Array::named(&f.name)).collect();
        (arrays, proof.factors.iter().map(|f| Statement::named(setter(&f.name))).collect())
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let mut all = Vec::new();
        for insn in kernel.insns.values() {
            for read in insn.reads() {
                let var = &kernel.vars[read.var];
                if var.shape.is_empty() && var.ty == ScalarType::F64 {
                    all.push(Self::new([&insn.name], [&var.name]));
                }
            }
        }
        draw::possible(kernel, all, p)
    }
}

impl CollectFactors {
    fn scalars(&self, kernel: &Kernel) -> Result<Vec<VarId>, Refusal> {
        let mut found = Vec::new();
        for name in &self.of {
            let var = lookup::var(kernel, name)?;
            let data = &kernel.vars[var];
            SCALARS.require(data.shape.is_empty() && data.ty == ScalarType::F64, || {
                format!("`{name}` is no scalar of type `f64`; name scalars, whose factors are wanted")
            })?;
            found.push(var);
        }
        if found.is_empty() {
            return Err(Refusal::argument("of", "no scalar is named", "at least one"));
        }
        Ok(found)
    }

    /// The body of the instructions, and the place of each.
    fn places<'k>(&self, kernel: &'k Kernel, of: &[VarId]) -> Result<(&'k [Node], Vec<usize>), Refusal> {
        let Some(name) = self.insns.first() else {
            return Err(Refusal::argument("insns", "no instruction is named", "at least one"));
        };
        let first = lookup::insn(kernel, name)?;
        let nodes = siblings(&kernel.body, &|n| matches!(n, Node::Insn(s) if *s == first));
        let nodes = nodes.expected("instruction in the tree", kernel)?;
        let mut places = Vec::new();
        for name in &self.insns {
            let id = lookup::insn(kernel, name)?;
            let insn = &kernel.insns[id];
            check_not_called(kernel, insn)?;
            let var = &kernel.vars[insn.lhs.var];
            let plain = insn.op == WriteOp::Assign && insn.predicate.is_none();
            let place = nodes.iter().position(|n| matches!(n, Node::Insn(s) if *s == id));
            STORES.require(
                plain && var.shape.is_empty() && var.ty == ScalarType::F64 && place.is_some(),
                || format!("`{name}` is no such store, or stands in another body than `{}`", self.insns[0]),
            )?;
            SCALARS.require(!of.contains(&insn.lhs.var), || {
                format!("`{name}` writes `{}`, whose factors are wanted; name others", var.name)
            })?;
            places.extend(place);
        }
        Ok((nodes, places))
    }
}

fn setter(temporary: &str) -> String {
    format!("set_{temporary}")
}

/// A name that nothing has, nor the instruction that sets it.
fn free(kernel: &Kernel, stem: &str, factors: &[Factor]) -> String {
    let taken = |name: &str| {
        !kernel.is_free_name(name)
            || kernel.is_rule_param(name)
            || !kernel.is_free_name(&setter(name))
            || factors.iter().any(|f| f.name == name || setter(&f.name) == name || f.name == setter(name))
    };
    let (mut name, mut k) = (stem.to_owned(), 0_usize);
    while taken(&name) {
        k += 1;
        name = format!("{stem}_{k}");
    }
    name
}

/// The stores whose values were put in place and which nothing else reads.
fn unread(kernel: &Kernel, body: &Body<'_>, values: &[(InsnId, Vec<(usize, VarId)>)]) -> Vec<InsnId> {
    let mut gone = Vec::new();
    let schedule = kernel.schedule();
    loop {
        let is_read = |var: VarId| {
            schedule.iter().any(|(s, loops)| {
                let rewritten = values.iter().any(|(insn, _)| insn == s);
                !gone.contains(s) && !rewritten && crate::setup::reads(kernel, *s, loops).contains(&var)
            })
        };
        let named = |s: &InsnId| values.iter().any(|(insn, _)| insn == s);
        let unread = |s: &&InsnId| !gone.contains(*s) && !named(s) && !is_read(kernel.insns[**s].lhs.var);
        let more: Vec<InsnId> = body.replaced.iter().filter(unread).copied().collect();
        if more.is_empty() {
            return gone;
        }
        gone.extend(more);
    }
}
