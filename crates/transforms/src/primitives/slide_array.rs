//! Lets the elements along an axis of a temporary move along with a loop.

use super::expand_array::ExpandArray;
use super::peel_iname::check_off_axis;
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::AccessSite;
use kingpost_ir::neutral::of_nothing;
use kingpost_ir::{
    Access, Affine, Atom, AxisTag, Constraint, Domain, Expr, Iname, InameId, Insn, Kernel, Node, UpdateOp,
    VarId, VarKind, WriteOp,
};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::hull::has_linear_bounds;
use kingpost_steps::lookup::{self, NO_REDUCTION};
use kingpost_steps::nest::{new_loop, wrapped};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::proofs::elements::{
    AXIS, NO_RULE, OF_NO_LAYOUT, ONLY_ACCESSED, TEMPORARY, check_axis, check_no_rule, check_of_no_layout,
    check_only_accessed, rewrite_accesses, temporary,
};
use kingpost_steps::proofs::footprint::{CONSTANT_BOX, span};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{NOT_CALLED, check_not_called};
use kingpost_steps::schedule::Loop;
use kingpost_steps::tree::{body_of, edit_body, insns_of, loops_down_to, replace_loop};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Keeps the elements along an axis of a temporary that iterations of a loop use at places that
/// move along with the loop, as in a shift register: element `f` stands at place `f - k - lo` in
/// iteration `k`.
///
/// # Rewrite
/// ```text
/// temp t: f64[n + 2]                         =>   temp t: f64[3]
///                                                 for t_place_start in 0..3
///                                                   t_start: t[t_place_start] = 0.0
/// for k in 0..n + 2                               for k in 0..n + 2
///                                                   for t_place in 0..2
///                                                     t_move: t[t_place] = t[t_place + 1]
///   s: t[k] = a[k]                                  s: t[2] = a[k]
///   r: b[k - 2] = t[k] - t[k - 2] if 2 <= k         r: b[k - 2] = t[2] - t[0] if 2 <= k
/// ```
/// Before an iteration uses the temporary, every element moves down by one place. With the loops
/// over places unrolled, places are constants, and elements of private memory are registers, in a
/// loop that is not unrolled itself. What moves before it is written is zero.
///
/// The elements along the other axes move in loops of their own. These have values and tag of the
/// loop that all accesses have as their index there, and else run over the axis.
///
/// # Precondition
/// The loop is on no axis and takes every integer between its bounds. All accesses are in it, and
/// with `k` its value, for a `lo` that no iteration changes, `0 <= f - k - lo < length` for every
/// index `f` along the axis. No value passes from one iteration of the loops around it to another
/// one: with `o` these loops and `D` the flow and update dependences through the variable,
/// `{ s -> t in D : o(s) /= o(t) }` is empty.
///
/// An element is at the place where the next access looks for it, because both moved by one place
/// in each iteration between, and no place in between is outside. In each iteration, places and
/// elements are one to one, so that nothing else was written there. If loops are on axes, the
/// placement must still hold.
///
/// # Errors
/// A loop on an axis, or with strides; an access outside the loop or in a call; indices that do
/// not follow the loop at a bounded distance, or are not affine; a value that passes from one run
/// of the loop to another, with two instances; a variable that is no temporary; an axis there is
/// not.
///
/// # Elsewhere
/// Halide slides windows that are stored in registers (`store_in(MemoryType::Register)`); shift
/// registers and line buffers of high-level synthesis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlideArray {
    /// The temporary.
    pub var: String,
    /// The axis, counted from 0.
    pub axis: u32,
    /// The loop.
    pub iname: String,
}

impl SlideArray {
    /// Lets the elements along `axis` of `var` move along with `iname`.
    pub fn new(var: impl Into<String>, axis: u32, iname: impl Into<String>) -> Self {
        Self { var: var.into(), axis, iname: iname.into() }
    }
}

impl fmt::Display for SlideArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slide `{}` along axis {} with `{}`", self.var, self.axis, self.iname)
    }
}

/// Elements move between iterations that run one after the other.
const OFF_AXIS: Obligation = Obligation::new("slide_array.off_axis", "the loop is on no axis");

/// Elements move by one place an iteration.
const EVERY_VALUE: Obligation =
    Obligation::new("slide_array.every_value", "the loop takes every integer between its bounds");

/// Places move along with the loop.
const FOLLOWS: Obligation = Obligation::new(
    "slide_array.follows",
    "the indices along the axis follow the loop at a bounded distance",
);

/// A place is that of an iteration.
const INSIDE: Obligation = super::expand_array::INSIDE;

/// A loop of elements that move.
struct Across {
    /// The loop whose values and tag it has, if there is one.
    like: Option<InameId>,
    extent: Affine,
}

/// A window that moves along with a loop.
pub struct Window {
    var: VarId,
    axis: usize,
    iname: InameId,
    /// The index at place 0.
    first: Affine,
    /// Places.
    length: i64,
    /// The other axes.
    across: Vec<Across>,
    /// Where in the body of the loop elements move.
    at: usize,
}

impl Primitive for SlideArray {
    const NAME: &'static str = "slide_array";
    const SUMMARY: &'static str = "Keeps elements of a temporary at places that move along with a loop.";

    type Proof = Window;
    type Made = Vec<Loop>;

    const OBLIGATIONS: &'static [Obligation] = &[
        OFF_AXIS,
        EVERY_VALUE,
        FOLLOWS,
        INSIDE,
        super::expand_array::SAME_ITERATION,
        BOUNDS_STAY,
        CONSTANT_BOX,
        NOT_CALLED,
        TEMPORARY,
        AXIS,
        OF_NO_LAYOUT,
        ONLY_ACCESSED,
        NO_RULE,
        NO_REDUCTION,
    ];

    fn check(&self, analysis: &Analysis) -> Result<Window, Refusal> {
        let kernel = analysis.kernel();
        let var = temporary(kernel, &self.var, "only temporaries can slide")?;
        let axis = check_axis(&kernel.vars[var], self.axis)?;
        check_only_accessed(kernel, var)?;
        check_no_rule(kernel, var)?;
        check_of_no_layout(&kernel.vars[var], axis)?;
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        check_off_axis(kernel, iname, OFF_AXIS, "slide")?;
        let domain = &kernel.inames[iname].domain;
        EVERY_VALUE.require(is_dense(domain, iname), || {
            format!(
                "`{}` may leave out values; split the loop so that it does not",
                kernel.show_domain(iname, domain)
            )
        })?;
        let body = body_of(kernel, iname)?;
        check_bounds_stay(kernel, iname, body)?;
        let uses = |node: &Node| {
            insns_of(std::slice::from_ref(node)).iter().any(|insn| kernel.insns[*insn].accesses(var))
        };
        for insn in insns_of(body).into_iter().filter(|insn| kernel.insns[*insn].accesses(var)) {
            check_not_called(kernel, &kernel.insns[insn])?;
        }
        let mut around = loops_down_to(kernel, iname)?;
        let down_to = around.len();
        around.pop();
        let inside = ExpandArray::new(&self.var, [&self.iname]);
        inside.check_inside(kernel, var, &[iname])?;
        inside.check_values(kernel, var, &around)?;
        let sites: Vec<_> = analysis.sites(var).iter().collect();
        let used = body.iter().position(uses);
        let window = match used {
            Some(_) => span(analysis.polyhedral(), &sites, axis, down_to)?,
            None => None,
        };
        let window = FOLLOWS.find(window.filter(|w| follows(&w.lower, iname)), || {
            format!(
                "the indices of `{}` along axis {} do not follow `{}`; slide it with the loop that they \
                 count with",
                self.var, self.axis, self.iname
            )
        })?;
        let called = |node: &Node| {
            insns_of(std::slice::from_ref(node)).iter().any(|insn| kernel.insns[*insn].callee.is_some())
        };
        // default: the beginning, where calls come first: the statements of one stay together
        let at = used.filter(|at| !body.iter().take(*at).any(called)).unwrap_or(0);
        let others = (0..kernel.vars[var].shape.len()).filter(|other| *other != axis);
        let across = others.map(|other| across(kernel, var, &sites, other, &around)).collect();
        Ok(Window { var, axis, iname, first: window.lower, length: window.extent, across, at })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Window) -> Vec<Loop> {
        rewrite_accesses(kernel, proof.var, &mut |mut index| {
            let f = index.get(proof.axis).and_then(Expr::as_affine);
            if let (Some(e), Some(f)) = (index.get_mut(proof.axis), f) {
                *e = Expr::from_affine(&f.minus(&proof.first));
            }
            index
        });
        kernel.vars[proof.var].shape[proof.axis] = Affine::constant(proof.length);
        if proof.length == 1 {
            return Vec::new(); // nothing outlives an iteration
        }
        let ty = kernel.vars[proof.var].ty;
        let (zeroed, start) =
            proof.nest(kernel, &self.var, "_start", proof.length, &|_| of_nothing(UpdateOp::Add, ty));
        let next = |places: &Access| {
            let mut next = places.clone();
            let place = next.index.get_mut(proof.axis);
            place.into_iter().for_each(|e| *e = plus_one(e));
            Expr::Load(next)
        };
        let (moved, moves) = proof.nest(kernel, &self.var, "", proof.length - 1, &next);
        edit_body(kernel, Some(proof.iname), &mut |nodes| {
            nodes.splice(proof.at..proof.at, moves.iter().cloned());
        });
        replace_loop(&mut kernel.body, proof.iname, &mut |body| {
            start.iter().cloned().chain([Node::Loop(proof.iname, body)]).collect()
        });
        zeroed.into_iter().chain(moved).map(|iname| Loop::named(&kernel.inames[iname].name)).collect()
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let var = p.of(&draw::temporaries(kernel, 1))?;
        let axis = p.below(draw::axes(kernel, &var) as usize) as u32;
        let iname = p.of(&draw::loops_around(kernel, &var))?;
        Some(Self::new(var, axis, iname))
    }
}

impl Window {
    /// An instruction for the first `places` of every row: its loops, outer first, and the nest.
    fn nest(
        &self,
        kernel: &mut Kernel,
        stem: &str,
        end: &str,
        places: i64,
        value: &dyn Fn(&Access) -> Expr,
    ) -> (Vec<InameId>, Vec<Node>) {
        let mut loops: Vec<InameId> = Vec::new();
        for (number, across) in self.across.iter().enumerate() {
            let name = format!("{stem}_{}{end}", number + usize::from(number >= self.axis));
            loops.push(across.new_loop(kernel, &name));
        }
        let place = new_loop(kernel, &format!("{stem}_place{end}"), places, AxisTag::Sequential);
        let mut index: Vec<Expr> = loops.iter().map(|iname| Expr::Iname(*iname)).collect();
        index.insert(self.axis, Expr::Iname(place));
        loops.push(place);
        let lhs = Access { var: self.var, index };
        let name = kernel.fresh_name(&format!("{stem}{}", if end.is_empty() { "_move" } else { end }));
        let insn = Insn {
            name,
            rhs: value(&lhs),
            lhs,
            op: WriteOp::Assign,
            predicate: None,
            tags: Default::default(),
            callee: None,
        };
        let insn = kernel.insns.push(insn);
        let nest = wrapped(loops.iter().copied(), vec![Node::Insn(insn)]);
        (loops, nest)
    }
}

impl Across {
    fn new_loop(&self, kernel: &mut Kernel, name: &str) -> InameId {
        let iname = new_loop(kernel, name, 0, AxisTag::Sequential);
        let domain = match self.like {
            Some(like) => {
                let Iname { domain, tag, .. } = kernel.inames[like].clone();
                kernel.inames[iname].tag = tag;
                of_other(&domain, like, iname)
            }
            None => Domain::range(iname, &Affine::constant(0), &self.extent),
        };
        kernel.inames[iname].domain = domain;
        iname
    }
}

/// The values of a loop as those of another one.
fn of_other(domain: &Domain, old: InameId, new: InameId) -> Domain {
    domain.substitute(&|atom| (*atom == Atom::Iname(old)).then(|| Affine::iname(new)))
}

/// Whether a loop takes every integer between its bounds.
fn is_dense(domain: &Domain, iname: InameId) -> bool {
    let rest = |c: &Constraint| {
        let e = c.expr();
        e.minus(&Affine::iname(iname).times(e.coefficient(&Atom::Iname(iname))))
    };
    let convex = domain.as_conjunction().is_some_and(|all| !all.iter().any(|c| rest(c).mentions(iname)));
    convex && has_linear_bounds(domain, iname)
}

/// Whether an index counts with a loop.
fn follows(index: &Affine, iname: InameId) -> bool {
    !index.minus(&Affine::iname(iname)).mentions(iname)
}

fn plus_one(e: &Expr) -> Expr {
    e.as_affine().map_or_else(|| e.clone(), |e| Expr::from_affine(&e.plus_constant(1)))
}

/// What moves along another axis: where all accesses have a loop of the same values as their index,
/// which the loops around the window alone bound, as much as that.
fn across(kernel: &Kernel, var: VarId, sites: &[&AccessSite], axis: usize, around: &[InameId]) -> Across {
    let extent = kernel.vars[var].shape[axis].clone();
    let loop_of = |site: &AccessSite| {
        let index = site.index[axis].as_ref()?;
        let [(Atom::Iname(iname), 1)] = index.terms() else { return None };
        (index.constant_term() == 0).then_some(*iname)
    };
    let known = |iname: InameId| {
        let mut known = true;
        kernel.inames[iname].domain.for_each_symbol(&mut |atom| {
            known &= match atom {
                Atom::Iname(i) => *i == iname || around.contains(i),
                Atom::Var(v) => kernel.vars[*v].kind == VarKind::Param,
                Atom::Floor(..) => true,
            }
        });
        known
    };
    let mut like: Option<InameId> = None;
    for site in sites {
        let Some(iname) = loop_of(site) else { return Across { like: None, extent } };
        let (first, own) = (&kernel.inames[*like.get_or_insert(iname)], &kernel.inames[iname]);
        let alike = like.is_some_and(|like| first.domain == of_other(&own.domain, iname, like));
        if !alike || first.tag != own.tag || !known(iname) {
            return Across { like: None, extent };
        }
    }
    Across { like, extent }
}
