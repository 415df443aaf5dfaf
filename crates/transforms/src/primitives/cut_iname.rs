//! Cuts a loop in two.

use super::peel_iname::check_off_axis;
use super::tile_band::read_row;
use kingpost_analysis::Analysis;
use kingpost_ir::{Affine, Constraint, Domain, InameId, Kernel};
use kingpost_steps::cut::{Narrowing, Part, in_two, keep};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Instances;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::Loop;
use kingpost_steps::tree::{body_of, loops_down_to};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets the iterations of `iname` below `at` run in a loop of their own, before the others, and leaves
/// out what each of both need not say.
///
/// # Rewrite
/// ```text
/// for i in 0..n                  =>   for i in 0..n
///   for j in 0..n                       for j_below in 0..i
///     s: a[i, j] = 1.0 if j < i           s_below: a[i, j_below] = 1.0
///     r: b[i, j] = 2.0                    r_below: b[i, j_below] = 2.0
///                                       for j in i..n
///                                         r: b[i, j] = 2.0
/// ```
/// In each of both loops, conditions and bounds that the loops around imply are left out, and so is what
/// never runs. If nothing runs in one of them, there is only the other one. Loops and instructions of the
/// copy get new names, with `_below` after them. Where each copy of a statement has its own loops, these have
/// no conditions: full tiles and partial ones, the pieces of a triangle.
///
/// # Precondition
/// With `D` the values of the loop, `{ i in D : i < at }` and `{ i in D : at <= i }` both have points. `at` is a
/// quasi-affine expression of loops around and parameters. The loop is on no axis, and nothing inside writes
/// a scalar in its bounds. The order of the instances stays: both loops together run `D` in ascending order.
/// If other loops are on axes, the placement must still hold.
///
/// # Errors
/// An unknown iname, the iname of a reduction, a loop on an axis, another expression, a cut that no
/// iteration comes before or after, bounds that change, and a dependence that the placement breaks, with two
/// instances.
///
/// # Elsewhere
/// Index-set splitting; isl's AST options `separate` and `isolate`; Exo `cut_loop`; TVM `loop_partition`; Loopy
/// `separate_loop_head_tail_slab`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CutIname {
    /// The loop.
    pub iname: String,
    /// Where: the first value of the second loop, an expression of loops around and parameters.
    pub at: String,
}

impl CutIname {
    /// Cuts `iname` before `at`.
    pub fn new(iname: impl Into<String>, at: impl Into<String>) -> Self {
        Self { iname: iname.into(), at: at.into() }
    }
}

impl fmt::Display for CutIname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut `{}` at `{}`", self.iname, self.at)
    }
}

/// Work-items count from the start of a loop.
const OFF_AXIS: Obligation = Obligation::new("cut_iname.off_axis", "the loop is on no axis");

/// There is something to do.
const TWO_PARTS: Obligation =
    Obligation::new("cut_iname.two_parts", "iterations come before the cut, and iterations come after it");

/// A loop below and from a value on.
pub struct Cut {
    iname: InameId,
    below: Part,
    rest: Part,
}

impl Primitive for CutIname {
    const NAME: &'static str = "cut_iname";
    const SUMMARY: &'static str = "Cuts a loop in two, neither of which has conditions that always hold.";

    type Proof = Cut;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] = &[OFF_AXIS, TWO_PARTS, BOUNDS_STAY, NO_REDUCTION];
    const INSTANCES: Instances = Instances::Copied;
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Cut, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        check_off_axis(kernel, iname, OFF_AXIS, "cut")?;
        let mut outer = loops_down_to(kernel, iname)?;
        outer.pop();
        let at = read_row(kernel, &outer, &self.at).map_err(|why| {
            let found = format!("`{}` is no place of a cut{why}", self.at);
            Refusal::argument("at", found, "a quasi-affine expression of the loops around and parameters")
        })?;
        let body = body_of(kernel, iname)?;
        check_bounds_stay(kernel, iname, body)?;
        let narrowing = Narrowing::of(analysis.polyhedral(), &outer, iname, body)?;
        let (own, i) = (&kernel.inames[iname].domain, Affine::iname(iname));
        let below = own.intersect(&Domain::conjunction([Constraint::lt(&i, &at)]));
        let above = own.intersect(&Domain::conjunction([Constraint::le(&at, &i)]));
        for (values, side) in [(&below, "before"), (&above, "after")] {
            TWO_PARTS.require(!narrowing.never(values)?, || {
                format!(
                    "no iteration of `{}` comes {side} `{}`; choose a cut between its bounds",
                    kernel.show_domain(iname, own),
                    self.at
                )
            })?;
        }
        let below = narrowing.part(iname, &below, body)?;
        let mut rest = narrowing.part(iname, &above, body)?;
        if below.is_empty() && rest.is_empty() {
            // what never runs stays
            rest = rest.with_all(body);
        }
        Ok(Cut { iname, below, rest })
    }

    fn edit(&self, kernel: &mut Kernel, Cut { iname, below, rest }: &Cut) -> Vec<Loop> {
        let own = Loop::named(&self.iname);
        match (below.is_empty(), rest.is_empty()) {
            (true, _) => keep(kernel, *iname, rest),
            (false, true) => keep(kernel, *iname, below),
            (false, false) => return vec![in_two(kernel, *iname, below, rest, "below", true), own],
        }
        vec![own]
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let iname = p.of(&draw::loops(kernel))?;
        let around = draw::around(kernel).into_iter().filter(|(_, inner)| *inner == iname);
        let mut values: Vec<String> = around.map(|(outer, _)| outer).collect();
        values.extend(draw::vars(kernel, |v| v.kind == kingpost_ir::VarKind::Param));
        let shift = p.between(-2, 5);
        let at = match p.of(&values).filter(|_| !p.one_in(3)) {
            Some(value) if p.one_in(3) => format!("floor_div({value}, 2) + {shift}"),
            Some(value) => format!("{value} + {shift}"),
            None => shift.to_string(),
        };
        Some(Self::new(iname, at))
    }
}
