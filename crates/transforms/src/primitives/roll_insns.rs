//! Makes a loop of statements that repeat each other.

use kingpost_analysis::Analysis;
use kingpost_ir::{Access, Affine, Atom, AxisTag, Expr, Id, InameId, Insn, InsnId, Kernel, Node};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Instances;
use kingpost_steps::lookup;
use kingpost_steps::nest::{new_loop, renamed};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{same, statement};
use kingpost_steps::schedule::Loop;
use kingpost_steps::tree::{edit_siblings, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes one statement in a loop of statements (instructions, or loops with all they hold) that
/// differ in constants of their indices only: the inverse of unrolling.
///
/// # Rewrite
/// ```text
/// for i in 0..n                =>   for i in 0..n
///   s0: y[2*i] += a[i, 0]             for c in 0..3
///   s1: y[2*i + 1] += a[i, 1]           s0: y[2*i + c] += a[i, c]
///   s2: y[2*i + 2] += a[i, 2]
/// ```
/// The statement keeps the names and the tags of the first. The loop can then be tagged, joined or
/// split like any other: the components of a vector along the work-items, say. Nests that use
/// arrays of their own differ in such constants once `join_arrays` has made one array of these:
/// ```text
/// for j in 0..n                =>   for c in 0..2
///   s: y[0] += t[0, j]*u[1, j]        for j in 0..n
/// for k in 0..n                         s: y[c] += t[c, j]*u[-c + 1, j]
///   r: y[1] += t[1, k]*u[0, k]
/// ```
///
/// # Precondition
/// The statements stand one after the other, in the order given. With `S_k` the `k`-th of them,
/// there is a statement `S(c)` with `S(k) = S_k` for all `k`: the same loops, over the same values
/// and with the same tags, and in them instructions with the same operator, same expressions, and
/// indices that grow by the same constant from each statement to the next. The instances and their
/// order are then the same: `S_k(x)` is `S(k, x)`.
///
/// # Errors
/// Fewer than two statements, one that is unknown or has a call; statements that are apart or in
/// another order; two that differ in more than such constants or in their loops, with both; a name
/// that is taken.
///
/// # Elsewhere
/// LLVM's loop rerolling; the inverse of Loopy's tag `unr` and of Exo's `unroll_loop`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollInsns {
    /// The statements, instructions or loops, in textual order.
    pub insns: Vec<String>,
    /// Name of the loop.
    pub iname: String,
}

impl RollInsns {
    /// Makes a loop `iname` of `insns`.
    pub fn new<S: Into<String>>(insns: impl IntoIterator<Item = S>, iname: impl Into<String>) -> Self {
        Self { insns: insns.into_iter().map(Into::into).collect(), iname: iname.into() }
    }
}

impl fmt::Display for RollInsns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let insns: Vec<_> = self.insns.iter().map(|i| format!("`{i}`")).collect();
        write!(f, "roll {} into a loop `{}`", insns.join(", "), self.iname)
    }
}

/// The instances keep their order.
const NEIGHBOURS: Obligation =
    Obligation::new("roll_insns.neighbours", "the statements stand one after the other in the order given");

/// A call stays one.
const NO_CALL: Obligation = Obligation::new("roll_insns.no_call", "no statement is part of a call");

/// A statement has one operator.
const OPERATOR: Obligation = Obligation::new("roll_insns.operator", "the statements write by one operator");

/// A statement has a condition or none.
const CONDITION: Obligation =
    Obligation::new("roll_insns.condition", "all statements have a condition, or none has");

/// One nest of loops holds what each of them repeats.
const LOOPS: Obligation = Obligation::new(
    "roll_insns.loops",
    "the statements have the same loops, over the same values and with the same tags",
);

/// There is one statement that each of them is.
const ALIKE: Obligation = Obligation::new(
    "roll_insns.alike",
    "the statements differ in constants of their indices, by the same step from each to the next",
);

/// A statement that each of some neighbours is in one iteration of a loop.
pub struct Repeated {
    first: Node,
    count: usize,
    /// The instructions of the first one, which mention the loop by the next id of the kernel's
    /// table.
    insns: Vec<(InsnId, Insn)>,
}

impl Primitive for RollInsns {
    const NAME: &'static str = "roll_insns";
    const SUMMARY: &'static str = "Makes a loop of statements that repeat each other.";

    type Proof = Repeated;
    type Made = Loop;

    const OBLIGATIONS: &'static [Obligation] = &[NEIGHBOURS, NO_CALL, OPERATOR, CONDITION, LOOPS, ALIKE];
    const INSTANCES: Instances = Instances::Copied;

    fn check(&self, analysis: &Analysis) -> Result<Repeated, Refusal> {
        let kernel = analysis.kernel();
        let named = self.insns.iter().map(|i| statement(kernel, i)).collect::<Result<Vec<_>, _>>()?;
        let [first, _, ..] = &named[..] else {
            let found = format!("{} statements are to be rolled", named.len());
            return Err(Refusal::argument("insns", found, "two or more"));
        };
        lookup::free(kernel, &self.iname)?;
        let all = self.neighbours(kernel, &named)?;
        let mut insns = Vec::new();
        let iname = InameId::from_index(kernel.inames.len());
        of_nodes(kernel, &all.iter().collect::<Vec<_>>(), &vec![Vec::new(); all.len()], iname, &mut insns)?;
        Ok(Repeated { first: first.clone(), count: named.len(), insns })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Repeated) -> Loop {
        let iname = new_loop(kernel, &self.iname, proof.count as i64, AxisTag::Sequential);
        for (id, insn) in &proof.insns {
            kernel.insns[*id] = insn.clone();
        }
        let is_first = |n: &Node| same(n, &proof.first);
        edit_siblings(&mut kernel.body, &is_first, &mut |nodes| {
            let Some(at) = nodes.iter().position(is_first) else { return };
            let first = nodes.drain(at..at + proof.count).take(1).collect();
            nodes.insert(at, Node::Loop(iname, first));
        });
        Loop::named(&self.iname)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let runs = draw::bodies(kernel)
            .into_iter()
            .flat_map(|(_, names)| names.windows(2).map(<[String]>::to_vec).collect::<Vec<_>>());
        let runs: Vec<Vec<String>> = runs.collect();
        Some(Self::new(p.of(&runs)?, kernel.fresh_name("rolled")))
    }
}

impl RollInsns {
    /// The statements with all they hold, if they stand one after the other.
    fn neighbours<'k>(&self, kernel: &'k Kernel, named: &[Node]) -> Result<&'k [Node], Refusal> {
        let is_first = |n: &Node| same(n, &named[0]);
        let around = siblings(&kernel.body, &is_first).expected("statement in the tree", kernel)?;
        let at = around.iter().position(is_first).expected("statement among its neighbours", kernel)?;
        let run = around[at..].get(..named.len());
        let run = run.filter(|run| run.iter().zip(named).all(|(node, wanted)| same(node, wanted)));
        NEIGHBOURS.find(run, || {
            let names: Vec<_> = self.insns.iter().map(|name| format!("`{name}`")).collect();
            format!(
                "{} do not stand one after the other in this order; move the statements between them first",
                names.join(", ")
            )
        })
    }
}

/// Inames of a statement, and those of the first one in their place.
type Renamed = Vec<(InameId, InameId)>;

/// The instructions of the first of some statements as all of them have these in one iteration of
/// `iname` each; `inames` has the loops around of each of them.
fn of_nodes(
    kernel: &Kernel,
    all: &[&Node],
    inames: &[Renamed],
    iname: InameId,
    found: &mut Vec<(InsnId, Insn)>,
) -> Result<(), Refusal> {
    match all[0] {
        Node::Insn(first) => {
            let own = |(node, inames): (&&Node, &Renamed)| {
                let Node::Insn(id) = node else { return None };
                let mut insn = kernel.insns[*id].clone();
                if !inames.is_empty() {
                    insn.map_roots(&mut |e| renamed(e, inames));
                }
                Some(insn)
            };
            let insns: Option<Vec<Insn>> = all.iter().zip(inames).map(own).collect();
            let insns = LOOPS.find(insns, || other_loops(kernel, all))?;
            found.push((*first, of_insns(&insns.iter().collect::<Vec<_>>(), iname)?));
            Ok(())
        }
        Node::Loop(first, body) => {
            let mut inner = inames.to_vec();
            let mut bodies = Vec::new();
            for (node, renamed) in all.iter().zip(&mut inner) {
                let same_loop = match node {
                    Node::Loop(other, nodes) if nodes.len() == body.len() => {
                        renamed.push((*other, *first));
                        bodies.push(nodes);
                        is_same_loop(kernel, *first, *other, renamed)
                    }
                    Node::Loop(..) | Node::Insn(_) => false,
                };
                LOOPS.require(same_loop, || other_loops(kernel, &[all[0], node]))?;
            }
            for k in 0..body.len() {
                let nodes: Vec<&Node> = bodies.iter().map(|nodes| &nodes[k]).collect();
                of_nodes(kernel, &nodes, &inner, iname, found)?;
            }
            Ok(())
        }
    }
}

/// Whether a loop runs over the values of another one, whose name it takes, as others do.
fn is_same_loop(kernel: &Kernel, first: InameId, other: InameId, renamed: &Renamed) -> bool {
    let (first, other) = (&kernel.inames[first], &kernel.inames[other]);
    let named_alike = |atom: &Atom| match atom {
        Atom::Iname(old) => renamed.iter().find(|(own, _)| own == old).map(|(_, new)| Affine::iname(*new)),
        Atom::Var(_) | Atom::Floor(..) => None,
    };
    first.tag == other.tag && other.domain.substitute(&named_alike) == first.domain
}

fn other_loops(kernel: &Kernel, all: &[&Node]) -> String {
    let name = |node: &&Node| match node {
        Node::Insn(insn) => format!("`{}`", kernel.insns[*insn].name),
        Node::Loop(iname, _) => format!("`{}`", kernel.inames[*iname].name),
    };
    format!(
        "{} have other loops, values or tags; only statements are rolled that have the same loops, over the same \
         values and with the same tags",
        all.iter().map(name).collect::<Vec<_>>().join(" and ")
    )
}

/// The statement that each of `insns` is at one value of `iname`.
fn of_insns(insns: &[&Insn], iname: InameId) -> Result<Insn, Refusal> {
    let first = insns[0];
    let differ = |other: &Insn, what: &str| {
        format!(
            "`{}` and `{}` differ in {what}; only statements are rolled that differ in constants of their indices, by \
             the same step from each to the next",
            first.name, other.name
        )
    };
    NO_CALL.forbid(insns.iter().find(|i| i.callee.is_some()), |call| {
        format!("`{}` is part of a call; inline it first", call.name)
    })?;
    OPERATOR.forbid(insns.iter().find(|i| i.op != first.op), |other| differ(other, "their operator"))?;
    let other = insns.iter().find(|i| i.predicate.is_some() != first.predicate.is_some());
    CONDITION.forbid(other, |other| differ(other, "their condition"))?;
    // for a message, the first one of which no two make a loop with the first statement
    let culprit = |rolls: &dyn Fn(&[&Insn]) -> bool| {
        (2..=insns.len()).find(|n| !rolls(&insns[..*n])).map_or(first, |n| insns[n - 1])
    };
    let lhs = |insns: &[&Insn]| access(&insns.iter().map(|i| &i.lhs).collect::<Vec<_>>(), iname);
    let rhs = |insns: &[&Insn]| expression(&insns.iter().map(|i| &i.rhs).collect::<Vec<_>>(), iname);
    let condition = |insns: &[&Insn]| {
        let all: Vec<&Expr> = insns.iter().filter_map(|i| i.predicate.as_ref()).collect();
        if all.is_empty() { Some(None) } else { expression(&all, iname).map(Some) }
    };
    let apart = |rolls: &dyn Fn(&[&Insn]) -> bool, what: &str| differ(culprit(rolls), what);
    let mut insn = first.clone();
    insn.lhs = ALIKE.find(lhs(insns), || apart(&|i| lhs(i).is_some(), "what they write"))?;
    insn.rhs = ALIKE.find(rhs(insns), || apart(&|i| rhs(i).is_some(), "what they compute"))?;
    insn.predicate =
        ALIKE.find(condition(insns), || apart(&|i| condition(i).is_some(), "their condition"))?;
    Ok(insn)
}

fn access(all: &[&Access], iname: InameId) -> Option<Access> {
    let first = all.first()?;
    if all.iter().any(|a| (a.var, a.index.len()) != (first.var, first.index.len())) {
        return None;
    }
    let axis = |k: usize| index(&all.iter().map(|a| &a.index[k]).collect::<Vec<_>>(), iname);
    Some(Access { var: first.var, index: (0..first.index.len()).map(axis).collect::<Option<_>>()? })
}

/// Indices that grow by the same constant from each to the next, or are alike in their parts.
fn index(all: &[&Expr], iname: InameId) -> Option<Expr> {
    let first = all.first()?;
    if all.iter().all(|e| e == first) {
        return Some(Expr::clone(first));
    }
    let affine: Option<Vec<Affine>> = all.iter().map(|e| e.as_affine()).collect();
    let Some(affine) = affine else { return expression(all, iname) };
    let steps: Option<Vec<i64>> = affine.windows(2).map(|w| w[1].minus(&w[0]).as_constant()).collect();
    let steps = steps?;
    let step = *steps.first()?;
    let even = steps.iter().all(|s| *s == step);
    even.then(|| Expr::from_affine(&affine[0].plus(&Affine::iname(iname).times(step))))
}

/// Expressions of one shape whose indices grow alike.
fn expression(all: &[&Expr], iname: InameId) -> Option<Expr> {
    let first = all.first()?;
    if all.iter().all(|e| e == first) {
        return Some(Expr::clone(first));
    }
    let part = |of: &dyn Fn(&Expr) -> Option<Expr>| {
        let parts = all.iter().map(|e| of(e)).collect::<Option<Vec<Expr>>>()?;
        expression(&parts.iter().collect::<Vec<_>>(), iname).map(Box::new)
    };
    Some(match first {
        Expr::Load(_) => {
            let loads = all.iter().map(|e| if let Expr::Load(a) = e { Some(a) } else { None });
            Expr::Load(access(&loads.collect::<Option<Vec<_>>>()?, iname)?)
        }
        Expr::Unary(op, _) => Expr::Unary(
            *op,
            part(&|e| match e {
                Expr::Unary(other, a) if other == op => Some(Expr::clone(a)),
                _ => None,
            })?,
        ),
        Expr::Binary(op, ..) => {
            let of = |e: &Expr, left: bool| match e {
                Expr::Binary(other, a, b) if other == op => Some(Expr::clone(if left { a } else { b })),
                _ => None,
            };
            Expr::Binary(*op, part(&|e| of(e, true))?, part(&|e| of(e, false))?)
        }
        Expr::Cast(ty, _) => Expr::Cast(
            *ty,
            part(&|e| match e {
                Expr::Cast(other, a) if other == ty => Some(Expr::clone(a)),
                _ => None,
            })?,
        ),
        Expr::Call(function, arguments) => {
            let of = |e: &Expr, k: usize| match e {
                Expr::Call(other, a) if other == function => a.get(k).cloned(),
                _ => None,
            };
            let rolled = (0..arguments.len()).map(|k| part(&|e| of(e, k)).map(|e| *e));
            Expr::Call(*function, rolled.collect::<Option<_>>()?)
        }
        Expr::Select(..) => {
            let of = |e: &Expr, k: usize| match e {
                Expr::Select(c, a, b) => [c, a, b].get(k).map(|e| Expr::clone(e)),
                _ => None,
            };
            Expr::Select(part(&|e| of(e, 0))?, part(&|e| of(e, 1))?, part(&|e| of(e, 2))?)
        }
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => return None,
    })
}
