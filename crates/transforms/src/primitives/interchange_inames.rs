//! Swaps two loops.

use kingpost_analysis::Analysis;
use kingpost_analysis::polyhedral::{Side, cross};
use kingpost_ir::{Affine, Domain, InameId, Kernel, Node};
use kingpost_isl as isl;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::hull::has_linear_bounds;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::ORDER;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, changing_bounds, check_bounds_stay};
use kingpost_steps::proofs::length::never_empty;
use kingpost_steps::proofs::order::{Reordering, check_order};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::tree::{body_of, loop_body, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Swaps two loops of which one is directly around the other; bounds that depend on the outer loop
/// are projected.
///
/// # Rewrite
/// ```text
/// for i in 0..n           =>   for j in 0..n
///   for j in 0..i + 1            for i in j..n
///     S(i, j)                      S(i, j)
/// ```
///
/// # Precondition
/// No dependence has direction `(<, >)`: with `o` the loops around both, `{ s -> t in D : o = o', i
/// < i', j > j' }` is empty for every flow, anti and output dependence `D` between instructions
/// inside. Commuting updates may be reordered; the reuse of a temporary whose values stay inside
/// one iteration of both loops does not count, because iterations move as a whole. If loops are on
/// axes, the placement must still hold. Nothing inside writes a scalar in the bounds of the two. If
/// those of the inner one are read from memory, the outer one surely has an iteration: outside they
/// would be evaluated in any case.
///
/// # Errors
/// Unknown inames, loops that are not directly nested, bounds read from memory, a dependence of
/// that direction or that the placement breaks, with two instances.
///
/// # Elsewhere
/// Loopy `prioritize_loops`; Halide `reorder`; Exo `reorder_loops`; TVM `reorder`; MLIR
/// `transform.structured.interchange`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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

/// The loops are neighbours.
const NESTED: Obligation =
    Obligation::new("interchange_inames.nested", "one loop is directly inside the other, and alone there");

/// Bounds that depend on the other loop can be projected.
const KNOWN_BOUNDS: Obligation = Obligation::new(
    "interchange_inames.known_bounds",
    "bounds that depend on the other loop depend on nothing read from memory",
);

/// And the projection can be written as bounds.
const CLOSED_FORM: Obligation =
    Obligation::new("interchange_inames.closed_form", "the projected bounds are linear in their loop");

/// Outside, the bounds of the inner loop are evaluated in any case.
const BOUNDS_HAVE_VALUES: Obligation = Obligation::new(
    "interchange_inames.bounds_have_values",
    "if the bounds of the inner loop are read from memory, the outer one has an iteration",
);

/// Two neighbours in a nest that may change places.
pub struct Interchangeable {
    outer: InameId,
    inner: InameId,
    /// What the inner loop runs over when it is outside.
    for_inner: Domain,
    /// What the outer loop runs over when it is inside.
    for_outer: Domain,
}

/// Checks that the bounds of both loops say the same when the inner one is outside: evaluated once,
/// and also where the other loop holds nothing, they must have values there.
fn check_bounds(analysis: &Analysis, outer: InameId, inner: InameId) -> Result<(), Refusal> {
    let kernel = analysis.kernel();
    let body = body_of(kernel, outer)?;
    check_bounds_stay(kernel, outer, body)?;
    check_bounds_stay(kernel, inner, body)?;
    let Some(var) = changing_bounds(kernel, inner).first().copied() else { return Ok(()) };
    let name = |iname: InameId| &kernel.inames[iname].name;
    BOUNDS_HAVE_VALUES.decide(never_empty(analysis, outer)?, || {
        format!(
            "the bounds of `{}` mention `{}`, which may have no value where `{}` holds nothing; assume that it is not \
             empty, or keep the loops in this order",
            name(inner),
            kernel.vars[var].name,
            name(outer)
        )
    })
}

impl Primitive for InterchangeInames {
    const NAME: &'static str = "interchange_inames";
    const VERB: Option<&'static str> = Some("interchange");
    const SUMMARY: &'static str = "Swaps two loops of which one is directly around the other.";

    type Proof = Interchangeable;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] =
        &[NESTED, KNOWN_BOUNDS, CLOSED_FORM, BOUNDS_STAY, BOUNDS_HAVE_VALUES, ORDER];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Interchangeable, Refusal> {
        let kernel = analysis.kernel();
        let outer = lookup::iname(kernel, &self.outer)?;
        let inner = lookup::iname(kernel, &self.inner)?;
        self.check_nest(kernel, outer, inner)?;
        let (for_inner, for_outer) = self.swapped_domains(analysis, outer, inner)?;
        check_bounds(analysis, outer, inner)?;
        let proof = Interchangeable { outer, inner, for_inner, for_outer };
        let swapped = self.draft(kernel, &proof);
        let order =
            Reordering { before: analysis, after: &swapped, value: &|_, _| None, whole: &[outer, inner] };
        check_order(&order, &|source, sink| {
            if source == sink {
                format!("skew the loops, or keep `{source}` in this order")
            } else {
                format!("distribute `{source}` and `{sink}` first")
            }
        })?;
        Ok(proof)
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Interchangeable) {
        let (outer, inner) = (proof.outer, proof.inner);
        kernel.inames[inner].domain = proof.for_inner.clone();
        kernel.inames[outer].domain = proof.for_outer.clone();
        replace_loop(&mut kernel.body, outer, &mut |mut body| {
            replace_loop(&mut body, inner, &mut |inside| vec![Node::Loop(outer, inside)]);
            vec![Node::Loop(inner, body)]
        });
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let (outer, inner) = p.of(&draw::nested(kernel))?;
        Some(Self::new(outer, inner))
    }
}

impl InterchangeInames {
    fn check_nest(&self, kernel: &Kernel, outer: InameId, inner: InameId) -> Result<(), Refusal> {
        if outer == inner {
            return Err(Refusal::argument("inner", "a loop cannot be swapped with itself", "two loops"));
        }
        let body = |iname, name| {
            loop_body(&kernel.body, iname).ok_or_else(|| {
                NESTED.unfit(format!("`{name}` belongs to a reduction and is no loop of its own"))
            })
        };
        let (outside, inside) = (body(outer, &self.outer)?, body(inner, &self.inner)?);
        let nested = matches!(outside, [Node::Loop(only, _)] if *only == inner);
        NESTED.require(nested, || match outside {
            _ if loop_body(inside, outer).is_some() => {
                format!("`{}` is around `{}`; name the outer loop first", self.inner, self.outer)
            }
            _ if loop_body(outside, inner).is_none() => {
                format!("`{}` is not inside `{}`; name two loops of one nest", self.inner, self.outer)
            }
            [Node::Loop(only, _)] => format!(
                "the loop directly inside `{}` is `{}`; interchange neighbours one after the other",
                self.outer, kernel.inames[*only].name
            ),
            _ => format!(
                "`{}` holds more than the loop `{}`; distribute `{}` first",
                self.outer, self.inner, self.outer
            ),
        })
    }

    /// Domains after the swap: `{ j : exists i }` and `{ i : both }`.
    fn swapped_domains(
        &self,
        analysis: &Analysis,
        outer: InameId,
        inner: InameId,
    ) -> Result<(Domain, Domain), Refusal> {
        let kernel = analysis.kernel();
        let (a, b) = (&kernel.inames[outer].domain, &kernel.inames[inner].domain);
        if !b.mentions(outer) {
            return Ok((b.clone(), a.clone()));
        }
        let poly = analysis.polyhedral();
        let ((i, exact_i), (j, exact_j)) = (poly.domain(a, Side::Source), poly.domain(b, Side::Source));
        KNOWN_BOUNDS.decide(exact_i && exact_j, || {
            format!(
                "the bounds of `{0}` depend on `{1}` and on values read from memory; make them conditions by guard_iname \
                 first, with `widest: {1}` if no others bound `{0}`",
                self.inner, self.outer
            )
        })?;
        let others: Vec<_> = kernel.inames.ids().filter(|k| *k != outer && *k != inner).collect();
        let mut params = poly.params.clone();
        params.extend(poly.names(&others, Side::Source));
        let space = isl::SetSpace::new(&[&self.inner, &self.outer], &params);
        let both = isl::Set::from_disjuncts(&space, &cross(&i, &j))?;
        if both.is_empty()? {
            let zero = Affine::constant(0);
            return Ok((Domain::range(inner, &zero, &zero), a.clone()));
        }
        let shadow = both.project_out(&[&self.outer])?.coalesce()?.remove_redundancies()?;
        let context = shadow.add_dims(&[&self.outer])?;
        let rest = both.gist(&context)?.coalesce()?.remove_redundancies()?;
        let domain = |set: &isl::Set, iname: InameId| -> Result<Domain, Refusal> {
            let domain = poly.to_domain(&set.disjuncts()?).filter(|d| has_linear_bounds(d, iname));
            CLOSED_FORM.known(domain, || "the swapped bounds have no closed form; keep the order".into())
        };
        Ok((domain(&shadow, inner)?, domain(&rest, outer)?))
    }
}
