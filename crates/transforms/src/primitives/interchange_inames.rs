//! Swaps two loops.

use super::Transform;
use crate::error::Cause;
use crate::lookup;
use crate::tree::replace_loop;
use purlin_ir::deps::{self, Dependence, DependenceKind};
use purlin_ir::polyhedral::{Polyhedral, Side, cross, equal_values, step};
use purlin_ir::{Domain, InameId, Kernel, Node};
use purlin_isl as isl;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Swaps two loops of which one is directly around the other; bounds that depend on the outer loop are
/// projected.
///
/// # Rewrite
/// ```text
/// for i in 0..n           =>   for j in 0..n
///   for j in 0..i + 1            for i in j..n
///     S(i, j)                      S(i, j)
/// ```
///
/// # Precondition
/// No dependence has direction `(<, >)`: with `o` the loops around both,
/// `{ s -> t in D : o = o', i < i', j > j' }` is empty for every flow, anti and output dependence `D`
/// between instructions inside. Commuting updates may be reordered; the reuse of memory whose values
/// stay inside one iteration of both loops does not count, because iterations move as a whole.
///
/// # Errors
/// Unknown inames, loops that are not directly nested, bounds read from memory, a dependence of that
/// direction, with two instances.
///
/// # Elsewhere
/// Loopy `prioritize_loops`; Halide `reorder`; Exo `reorder_loops`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InterchangeInames {
    /// The outer loop.
    pub outer: String,
    /// The loop directly inside it.
    pub inner: String,
}

impl InterchangeInames {
    /// Swaps `outer` and `inner`.
    pub fn new(outer: impl Into<String>, inner: impl Into<String>) -> Self {
        Self { outer: outer.into(), inner: inner.into() }
    }
}

impl fmt::Display for InterchangeInames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interchange `{}` `{}`", self.outer, self.inner)
    }
}

impl Transform for InterchangeInames {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Cause> {
        let outer = lookup::iname(kernel, &self.outer)?;
        let inner = lookup::iname(kernel, &self.inner)?;
        self.check_nest(kernel, outer, inner)?;
        let (for_inner, for_outer) = self.swapped_domains(kernel, outer, inner)?;
        for d in deps::dependences(kernel)? {
            check_direction(kernel, &d, outer, inner)?;
        }
        let mut swapped = kernel.clone();
        swapped.inames[inner].domain = for_inner;
        swapped.inames[outer].domain = for_outer;
        replace_loop(&mut swapped.body, outer, &mut |mut body| {
            replace_loop(&mut body, inner, &mut |inside| vec![Node::Loop(outer, inside)]);
            vec![Node::Loop(inner, body)]
        });
        Ok(swapped)
    }
}

impl InterchangeInames {
    fn check_nest(&self, kernel: &Kernel, outer: InameId, inner: InameId) -> Result<(), Cause> {
        let Some(body) = crate::tree::loop_body(&kernel.body, outer) else {
            return Err(Cause::Argument(format!(
                "`{}` belongs to a reduction and is no loop of its own",
                self.outer
            )));
        };
        match body {
            [Node::Loop(only, _)] if *only == inner => Ok(()),
            _ if outer == inner => {
                Err(Cause::Argument("a loop cannot be swapped with itself; name two loops".into()))
            }
            [Node::Loop(only, _)] => Err(Cause::Argument(format!(
                "the loop directly inside `{}` is `{}`; interchange neighbours one after the other",
                self.outer, kernel.inames[*only].name
            ))),
            _ => Err(Cause::Argument(format!(
                "`{}` holds more than the loop `{}`; distribute `{}` first",
                self.outer, self.inner, self.outer
            ))),
        }
    }

    /// Domains after the swap: `{ j : exists i }` and `{ i : both }`.
    fn swapped_domains(
        &self,
        kernel: &Kernel,
        outer: InameId,
        inner: InameId,
    ) -> Result<(Domain, Domain), Cause> {
        let (a, b) = (&kernel.inames[outer].domain, &kernel.inames[inner].domain);
        if !b.mentions(outer) {
            return Ok((b.clone(), a.clone()));
        }
        let poly = Polyhedral::new(kernel);
        let ((i, exact_i), (j, exact_j)) = (poly.domain(a, Side::Source), poly.domain(b, Side::Source));
        if !(exact_i && exact_j) {
            return Err(Cause::Argument(format!(
                "the bounds of `{}` depend on `{}` and on values read from memory; keep the order",
                self.inner, self.outer
            )));
        }
        let others: Vec<_> = kernel.inames.ids().filter(|k| *k != outer && *k != inner).collect();
        let mut params = poly.params.clone();
        params.extend(poly.names(&others, Side::Source));
        let space = isl::SetSpace::new(&[&self.inner, &self.outer], &params);
        let both = isl::Set::from_disjuncts(&space, &cross(&i, &j))?;
        let shadow = both.project_out(&[&self.outer])?.coalesce()?.remove_redundancies()?;
        let context = shadow.add_dims(&[&self.outer])?;
        let rest = both.gist(&context)?.coalesce()?.remove_redundancies()?;
        let domain = |set: &isl::Set| -> Result<Domain, Cause> {
            poly.to_domain(&set.disjuncts()?).ok_or_else(|| {
                Cause::Argument("the swapped bounds have no closed form; keep the order".into())
            })
        };
        Ok((domain(&shadow)?, domain(&rest)?))
    }
}

/// Refuses a dependence of direction `(<, >)` in `outer`, `inner`.
fn check_direction(kernel: &Kernel, d: &Dependence, outer: InameId, inner: InameId) -> Result<(), Cause> {
    let poly = Polyhedral::new(kernel);
    let common = poly.common_loops(d.source, d.sink);
    let Some(depth) = common.iter().position(|l| *l == outer).filter(|_| common.contains(&inner)) else {
        return Ok(());
    };
    let commutes = d.kind == DependenceKind::Update;
    let moves_along = [outer, inner].iter().all(|l| d.reuse_across.contains(l));
    if commutes || moves_along || d.equal.contains(&outer) || d.equal.contains(&inner) {
        return Ok(());
    }
    let relation = d.relation()?;
    let mut against = equal_values(&poly, &common[..depth]);
    against.push(isl::Constraint::non_negative(step(&poly, outer).offset(-1)));
    against
        .push(isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &step(&poly, inner))));
    let clash = relation.intersect(&isl::Map::from_constraints(&relation.space()?, &against)?)?;
    let Some(witness) = d.witness(kernel, &clash)? else { return Ok(()) };
    Err(refusal(kernel, d, witness))
}

fn refusal(kernel: &Kernel, d: &Dependence, witness: purlin_ir::Witness) -> Cause {
    let element = &witness.element;
    let relation = match d.kind {
        DependenceKind::Flow => format!("reads through `{element}`"),
        DependenceKind::Anti => format!("overwrites in `{element}`, which it reads"),
        DependenceKind::Output | DependenceKind::Update => format!("overwrites in `{element}`"),
    };
    let (a, b) = (&kernel.insns[d.source].name, &kernel.insns[d.sink].name);
    let help = if a == b {
        format!("skew the loops, or keep `{a}` in this order")
    } else {
        format!("distribute `{a}` and `{b}` first")
    };
    Cause::Reordered { witness, relation, help }
}
