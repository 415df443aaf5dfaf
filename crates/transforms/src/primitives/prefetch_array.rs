//! Copies what a region reads of an array to a temporary.

use super::Transform;
use super::tag_iname::check_placement;
use crate::error::Cause;
use crate::lookup;
use crate::proofs::footprint::{Span, certain_elements, element_names, span};
use crate::proofs::stale::{Place, check_unchanged};
use crate::tree::{loop_body, replace_loop};
use purlin_ir::deps::{AccessSite, Mode, access_sites};
use purlin_ir::polyhedral::{Polyhedral, Side, cross, difference};
use purlin_ir::{
    Access, AddressSpace, Affine, AxisTag, Constraint, Direction, Domain, Expr, Id, Iname, InameId, Insn,
    InsnId, Kernel, Node, VarId, VarKind, Variable, WriteOp,
};
use purlin_isl as isl;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Copies the box of elements of `var` that one iteration of the loop `at` reads to a temporary, right before
/// the first node of its body that reads them, and reads the temporary instead.
///
/// # Rewrite
/// ```text
/// for k_o in 0..floor_div(n, 8)        =>   for k_o in 0..floor_div(n, 8)
///   for k_i in 0..8                           for a_tile_0 in 0..8
///     S(a[8*k_o + k_i])                         fetch_a_tile: a_tile[a_tile_0] = a[8*k_o + a_tile_0]
///                                             for k_i in 0..8
///                                               S(a_tile[k_i])
/// ```
/// Axes along which the box has one element disappear. Elements of the box that are not in the array are left
/// out by the bounds of the copy loops. With `work_items` the copy is one flat loop of constant length, in
/// rounds of a work-group, the last entry outermost:
/// ```text
/// for t_o in 0..2
///   for t_l1 in 0..4 {l.1}
///     for t_l0 in 0..32 {l.0} where 128*t_o + 32*t_l1 + t_l0 < 192
/// ```
/// The copy is an instruction of its own; the instances of the others stay.
///
/// # Precondition
/// With `L` the loops around the copy, for every write `w` of `var` after it and every read `r`:
/// `{ w -> r : L = L', element(w) = element(r), w before r }` is empty. The box has constant extents. What may be
/// undefined (temporaries and `out` arguments) is copied only if the box holds nothing but what is read.
/// If loops are on axes, the placement must hold.
///
/// # Errors
/// An unknown variable or loop, a scalar, an array that the region does not read, an index that is not affine, reads
/// inside a rule, an extent that is not a constant, taken names; a write between the copy and a read, with two
/// instances; a copy that the placement breaks.
///
/// # Source
/// Document 000, section 4.2.2.
///
/// # Elsewhere
/// Loopy `add_prefetch`; Halide `compute_at` with `store_in`; Exo `stage_mem`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefetchArray {
    /// The array.
    pub var: String,
    /// The loop in whose body the copy stands; the whole kernel if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `global`, `local` or `private`.
    pub space: String,
    /// Name of the temporary; `{var}_tile` if absent. Loops and the instruction are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Names of the copy loops, one for each axis of the temporary; `{temporary}_0`, … if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inames: Vec<String>,
    /// Work-items along `l.0`, `l.1`, `l.2` that share one flat copy loop; none: loops over the axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_items: Vec<i64>,
}

impl PrefetchArray {
    /// Copies what an iteration of `at` reads of `var` to a temporary in `space`.
    pub fn new(var: impl Into<String>, at: impl Into<String>, space: AddressSpace) -> Self {
        Self { at: Some(at.into()), ..Self::whole(var, space) }
    }

    /// Copies what the kernel reads of `var`.
    pub fn whole(var: impl Into<String>, space: AddressSpace) -> Self {
        let (temporary, inames, work_items) = (None, Vec::new(), Vec::new());
        Self { var: var.into(), at: None, space: space.name().into(), temporary, inames, work_items }
    }

    /// Calls the temporary `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.temporary = Some(name.into());
        self
    }

    /// Copies by a flat loop over the work-items of a group.
    #[must_use]
    pub fn by_work_items(mut self, sizes: impl IntoIterator<Item = i64>) -> Self {
        self.work_items = sizes.into_iter().collect();
        self
    }

    fn name(&self) -> String {
        self.temporary.clone().unwrap_or_else(|| format!("{}_tile", self.var))
    }
}

impl fmt::Display for PrefetchArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prefetch `{}`", self.var)?;
        if let Some(at) = &self.at {
            write!(f, " in `{at}`")?;
        }
        write!(f, " into {} `{}`", self.space, self.name())?;
        if !self.inames.is_empty() {
            let names: Vec<_> = self.inames.iter().map(|n| format!("`{n}`")).collect();
            write!(f, " by {}", names.join(", "))?;
        }
        if !self.work_items.is_empty() {
            let sizes: Vec<_> = self.work_items.iter().map(i64::to_string).collect();
            write!(f, " by {} work-items", sizes.join(" x "))?;
        }
        Ok(())
    }
}

impl Transform for PrefetchArray {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Cause> {
        let region = Region::of(self, kernel)?;
        let space = self.check_arguments(kernel)?;
        let poly = Polyhedral::new(kernel);
        let sites = access_sites(&poly).swap_remove(region.var.index());
        let reads = region.reads(&poly, &sites)?;
        let place = Place { loops: &region.around, position: poly.position(region.first), what: "the copy" };
        let help = "prefetch it in a loop further inside, or behind that write";
        check_unchanged(&poly, &sites, &reads, place, help)?;
        let spans = region.spans(&poly, &reads)?;
        let guards = region.guards(&poly, &spans)?;
        region.check_defined(&poly, &reads, &spans, &guards)?;
        let copied = self.edit(kernel, &region, spans, guards, space)?;
        copied.verify()?;
        check_placement(&copied)?;
        Ok(copied)
    }
}

/// What is copied, and where.
struct Region {
    var: VarId,
    at: Option<InameId>,
    /// Loops around the copy.
    around: Vec<InameId>,
    /// Position among the nodes of the body of the first one that reads.
    node: usize,
    /// The first instruction of that node.
    first: InsnId,
}

impl Region {
    fn of(step: &PrefetchArray, kernel: &Kernel) -> Result<Self, Cause> {
        let var = lookup::var(kernel, &step.var)?;
        if kernel.vars[var].shape.is_empty() {
            return Err(Cause::Argument(format!("`{}` is a scalar; only arrays are prefetched", step.var)));
        }
        let at = step.at.as_ref().map(|name| lookup::tree_loop(kernel, name)).transpose()?;
        let body = match at {
            None => kernel.body.as_slice(),
            Some(at) => loop_body(&kernel.body, at).unwrap_or_default(),
        };
        let place = step.at.as_ref().map_or_else(|| "the kernel".to_owned(), |at| format!("`{at}`"));
        let found = body.iter().position(|node| insns_of(node).iter().any(|i| reads(kernel, *i, var)));
        let Some(node) = found else {
            return Err(Cause::Argument(format!(
                "nothing in {place} reads `{}`; choose a loop around its reads",
                step.var
            )));
        };
        let inside: Vec<_> = body.iter().flat_map(insns_of).collect();
        if let Some(rule) = inside.iter().find_map(|i| rule_that_reads(kernel, *i, var)) {
            return Err(Cause::Argument(format!(
                "rule `{rule}` reads `{}`, and a rule knows no loops; expand it first",
                step.var
            )));
        }
        let first = insns_of(&body[node])[0];
        let loops = kernel.schedule().into_iter().find(|(i, _)| *i == first).map(|(_, l)| l);
        let loops = loops.unwrap_or_default();
        let depth = at.and_then(|at| loops.iter().position(|l| *l == at)).map_or(0, |k| k + 1);
        Ok(Self { var, at, around: loops[..depth].to_vec(), node, first })
    }

    /// The reads inside, which must all be affine.
    fn reads<'s, 'k>(
        &self,
        poly: &Polyhedral<'k>,
        sites: &'s [AccessSite<'k>],
    ) -> Result<Vec<&'s AccessSite<'k>>, Cause> {
        let inside = |s: &&AccessSite| s.mode == Mode::Read && poly.loops(s.insn).starts_with(&self.around);
        let reads: Vec<_> = sites.iter().filter(inside).collect();
        match reads.iter().find(|s| !s.is_affine()) {
            None => Ok(reads),
            Some(site) => Err(Cause::Argument(format!(
                "`{}` reads `{}` through an index that is not affine in the loops and parameters, so what it reads \
                 is not known; prefetch in a loop without that read",
                poly.kernel.insns[site.insn].name, poly.kernel.vars[self.var].name
            ))),
        }
    }

    fn spans(&self, poly: &Polyhedral, reads: &[&AccessSite]) -> Result<Vec<Span>, Cause> {
        let rank = poly.kernel.vars[self.var].shape.len();
        let mut spans = Vec::with_capacity(rank);
        for axis in 0..rank {
            let Some(span) = span(poly, reads, axis, self.around.len())? else {
                let name = &poly.kernel.vars[self.var].name;
                return Err(Cause::Argument(format!(
                    "the loops that read `{name}` are empty; nothing is copied"
                )));
            };
            spans.push(span);
        }
        let elements = spans.iter().try_fold(1_i64, |n, s| n.checked_mul(s.extent));
        match elements {
            Some(n) if n <= 1 << 31 => Ok(spans),
            _ => Err(Cause::Argument(
                "the box has more than 2^31 elements; prefetch in a loop further inside".into(),
            )),
        }
    }

    /// For each axis whether the box may reach below and beyond the array.
    fn guards(&self, poly: &Polyhedral, spans: &[Span]) -> Result<Vec<[bool; 2]>, Cause> {
        let shape = &poly.kernel.vars[self.var].shape;
        let mut guards = Vec::with_capacity(spans.len());
        for (span, extent) in spans.iter().zip(shape) {
            let last = span.lower.plus_constant(span.extent - 1);
            let below = self.reachable(poly, &Constraint::lt(&span.lower, &Affine::default()))?;
            let beyond = self.reachable(poly, &Constraint::le(extent, &last))?;
            guards.push([below, beyond]);
        }
        Ok(guards)
    }

    fn reachable(&self, poly: &Polyhedral, outside: &Constraint) -> Result<bool, Cause> {
        let Some(outside) = poly.constraint(outside, Side::Source) else { return Ok(true) };
        let (domain, _) = poly.domains(&self.around, Side::Source);
        let all = cross(&poly.in_context(domain), &[vec![outside]]);
        let dims = poly.names(&self.around, Side::Source);
        Ok(!isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &all)?.is_empty()?)
    }

    /// Undefined elements must not be read: of what may hold some, the copy reads what was read anyway.
    ///
    /// Formula: `{ (L, e) : e in the box and in the array }` is a subset of `{ (L, e) : e is surely read }`.
    fn check_defined(
        &self,
        poly: &Polyhedral,
        reads: &[&AccessSite],
        spans: &[Span],
        guards: &[[bool; 2]],
    ) -> Result<(), Cause> {
        let var = &poly.kernel.vars[self.var];
        match var.kind {
            VarKind::Param | VarKind::Table(_) | VarKind::Argument(Direction::In | Direction::InOut) => {
                return Ok(());
            }
            VarKind::Argument(Direction::Out) | VarKind::Temporary => {}
        }
        let axes = element_names(spans.len());
        let mut inside = Vec::new();
        for (((span, axis), extent), guard) in spans.iter().zip(&axes).zip(&var.shape).zip(guards) {
            let e = isl::Affine::name(axis.clone());
            let affine = |a: &Affine| poly.affine(a, Side::Source);
            let (Some(lower), Some(extent)) = (affine(&span.lower), affine(extent)) else { continue };
            let offset = difference(&e, &lower);
            inside.push(isl::Constraint::non_negative(difference(
                &isl::Affine::constant(span.extent - 1),
                &offset,
            )));
            inside.push(isl::Constraint::non_negative(offset));
            if guard[0] {
                inside.push(isl::Constraint::non_negative(e.clone()));
            }
            if guard[1] {
                inside.push(isl::Constraint::non_negative(difference(&extent, &e).offset(-1)));
            }
        }
        let (domain, _) = poly.domains(&self.around, Side::Source);
        let mut dims = poly.names(&self.around, Side::Source);
        dims.extend(axes);
        let space = isl::SetSpace::new(&dims, &poly.params);
        let copied = isl::Set::from_disjuncts(&space, &cross(&poly.in_context(domain), &[inside]))?;
        if copied.is_subset(&certain_elements(poly, reads, &self.around, spans.len())?)? {
            return Ok(());
        }
        Err(Cause::Argument(format!(
            "the box around what is read of `{}` holds elements that are perhaps never read, and of {} they may be \
             undefined; prefetch in a loop whose reads fill a box",
            var.name,
            if var.kind == VarKind::Temporary { "a temporary" } else { "an output" }
        )))
    }
}

impl PrefetchArray {
    fn check_arguments(&self, kernel: &Kernel) -> Result<AddressSpace, Cause> {
        lookup::free(kernel, &self.name())?;
        lookup::free(kernel, &format!("fetch_{}", self.name()))?;
        if self.work_items.len() > 3 || self.work_items.iter().any(|n| !(1..=1 << 20).contains(n)) {
            return Err(Cause::Argument(
                "a group has one to three sizes, each from 1 to 2^20; give the work-items along l.0, l.1, l.2".into(),
            ));
        }
        if !self.work_items.is_empty() && !self.inames.is_empty() {
            return Err(Cause::Argument(
                "a flat copy loop has no loop for each axis; leave out the names or the work-items".into(),
            ));
        }
        match AddressSpace::ALL.into_iter().find(|s| s.name() == self.space) {
            Some(space @ (AddressSpace::Global | AddressSpace::Local | AddressSpace::Private)) => Ok(space),
            Some(AddressSpace::Constant) | None => Err(Cause::Argument(format!(
                "`{}` is no memory for a copy; there is global, local, private",
                self.space
            ))),
        }
    }

    fn edit(
        &self,
        kernel: &Kernel,
        region: &Region,
        spans: Vec<Span>,
        guards: Vec<[bool; 2]>,
        space: AddressSpace,
    ) -> Result<Kernel, Cause> {
        let mut copied = kernel.clone();
        let array = &kernel.vars[region.var];
        let axes: Vec<_> = spans
            .into_iter()
            .zip(guards)
            .zip(array.shape.clone())
            .map(|((s, g), e)| Axis::new(s, g, e))
            .collect();
        let shape: Vec<_> = axes.iter().filter(|a| a.kept).map(|a| Affine::constant(a.span.extent)).collect();
        let tile = copied.vars.push(Variable::new(self.name(), array.ty, VarKind::Temporary, shape, space));
        redirect(&mut copied, region, &axes, tile);
        let loops = if self.work_items.is_empty() {
            self.box_loops(&mut copied, &axes)?
        } else {
            self.flat_loops(&mut copied, &axes)?
        };
        let offsets: Vec<_> = loops.offsets;
        let kept = axes.iter().zip(&offsets).filter(|(a, _)| a.kept).map(|(_, d)| Expr::from_affine(d));
        let from = axes.iter().zip(&offsets).map(|(a, d)| Expr::from_affine(&a.span.lower.plus(d)));
        let insn = Insn {
            name: format!("fetch_{}", self.name()),
            lhs: Access::new(tile, kept.collect::<Vec<_>>()),
            op: WriteOp::Assign,
            rhs: Expr::load(region.var, from.collect::<Vec<_>>()),
            predicate: None,
            tags: BTreeSet::new(),
        };
        let mut node = Node::Insn(copied.insns.push(insn));
        for iname in loops.inames.into_iter().rev() {
            node = Node::Loop(iname, vec![node]);
        }
        let insert = |mut body: Vec<Node>| {
            body.insert(region.node, node.clone());
            body
        };
        match region.at {
            None => copied.body = insert(std::mem::take(&mut copied.body)),
            Some(at) => {
                replace_loop(&mut copied.body, at, &mut |body| vec![Node::Loop(at, insert(body))]);
            }
        }
        Ok(copied)
    }

    /// One loop for each axis that is kept.
    fn box_loops(&self, kernel: &mut Kernel, axes: &[Axis]) -> Result<Loops, Cause> {
        let kept = axes.iter().filter(|a| a.kept).count();
        if !self.inames.is_empty() && self.inames.len() != kept {
            return Err(Cause::Argument(format!(
                "the copy has {kept} loops, found {} names; give one for each axis of the box with more than one \
                 element",
                self.inames.len()
            )));
        }
        let mut loops = Loops::default();
        for axis in axes {
            if !axis.kept {
                loops.offsets.push(Affine::default());
                continue;
            }
            let k = loops.inames.len();
            let name = self.inames.get(k).cloned().unwrap_or_else(|| format!("{}_{k}", self.name()));
            let iname = new_iname(kernel, name, AxisTag::Sequential)?;
            let d = Affine::iname(iname);
            let mut bounds = within(&d, axis.span.extent);
            bounds.extend(axis.guards(&d));
            kernel.inames[iname].domain = Domain::conjunction(bounds);
            loops.inames.push(iname);
            loops.offsets.push(d);
        }
        Ok(loops)
    }

    /// Rounds of a work-group over the elements of the box in row-major order.
    fn flat_loops(&self, kernel: &mut Kernel, axes: &[Axis]) -> Result<Loops, Cause> {
        let length: i64 = axes.iter().map(|a| a.span.extent).product();
        let group: i64 = self.work_items.iter().product();
        let rounds = (length - 1).div_euclid(group) + 1;
        let mut loops = Loops::default();
        let mut position = Affine::default();
        if rounds > 1 {
            let iname = new_iname(kernel, format!("{}_o", self.name()), AxisTag::Sequential)?;
            kernel.inames[iname].domain = Domain::conjunction(within(&Affine::iname(iname), rounds));
            position = Affine::iname(iname).times(group);
            loops.inames.push(iname);
        }
        let mut stride = group;
        let mut innermost = Vec::new();
        for (k, size) in (0_u8..3).zip(&self.work_items).collect::<Vec<_>>().into_iter().rev() {
            stride /= size;
            let iname = new_iname(kernel, format!("{}_l{k}", self.name()), AxisTag::Local(k))?;
            innermost = within(&Affine::iname(iname), *size);
            kernel.inames[iname].domain = Domain::conjunction(innermost.clone());
            position = position.plus(&Affine::iname(iname).times(stride));
            loops.inames.push(iname);
        }
        if length % group != 0 {
            innermost.push(Constraint::lt(&position, &Affine::constant(length)));
        }
        let mut size = length;
        for axis in axes {
            let whole = size;
            size /= axis.span.extent;
            // the first axis needs no remainder: the position is below the length
            let offset = position.floor_div(size);
            let offset = if whole == length { offset } else { offset.modulo(axis.span.extent) };
            innermost.extend(axis.guards(&offset));
            loops.offsets.push(offset);
        }
        if let Some(last) = loops.inames.last() {
            kernel.inames[*last].domain = Domain::conjunction(innermost);
        }
        Ok(loops)
    }
}

/// The copy loops, outer first, and the offset in the box along each axis.
#[derive(Default)]
struct Loops {
    inames: Vec<InameId>,
    offsets: Vec<Affine>,
}

/// An axis of the box.
struct Axis {
    span: Span,
    /// Whether elements below and beyond the array must be left out.
    guard: [bool; 2],
    /// Elements of the array.
    shape: Affine,
    /// Whether the temporary has it.
    kept: bool,
}

impl Axis {
    fn new(span: Span, guard: [bool; 2], shape: Affine) -> Self {
        let kept = span.extent > 1 || guard != [false; 2];
        Self { span, guard, shape, kept }
    }

    fn guards(&self, offset: &Affine) -> Vec<Constraint> {
        let index = self.span.lower.plus(offset);
        let below = self.guard[0].then(|| Constraint::le(&Affine::default(), &index));
        let beyond = self.guard[1].then(|| Constraint::lt(&index, &self.shape));
        below.into_iter().chain(beyond).collect()
    }
}

fn within(d: &Affine, extent: i64) -> Vec<Constraint> {
    vec![Constraint::le(&Affine::default(), d), Constraint::lt(d, &Affine::constant(extent))]
}

fn new_iname(kernel: &mut Kernel, name: String, tag: AxisTag) -> Result<InameId, Cause> {
    lookup::free(kernel, &name)?;
    Ok(kernel.inames.push(Iname { name, domain: Domain::universe(), tag }))
}

/// Reads the temporary instead of the array, everywhere in the region.
fn redirect(kernel: &mut Kernel, region: &Region, axes: &[Axis], tile: VarId) {
    let body = match region.at {
        None => kernel.body.as_slice(),
        Some(at) => loop_body(&kernel.body, at).unwrap_or_default(),
    };
    let inside: Vec<_> = body.iter().flat_map(insns_of).collect();
    let mut rewrite = |e: Expr| match e {
        Expr::Load(access) if access.var == region.var => {
            let index = access.index.iter().zip(axes).filter(|(_, a)| a.kept).map(|(index, axis)| {
                let shifted = index.as_affine().map(|i| Expr::from_affine(&i.minus(&axis.span.lower)));
                shifted.unwrap_or_else(|| index.clone() - Expr::from_affine(&axis.span.lower))
            });
            Expr::load(tile, index.collect::<Vec<_>>())
        }
        other => other,
    };
    for insn in inside {
        if let Some(insn) = kernel.insns.values_mut().nth(insn.index()) {
            insn.map_expressions(&mut rewrite);
        }
    }
}

fn insns_of(node: &Node) -> Vec<InsnId> {
    match node {
        Node::Insn(insn) => vec![*insn],
        Node::Loop(_, body) => body.iter().flat_map(insns_of).collect(),
    }
}

fn reads(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    kernel.insns[insn].reads().iter().any(|a| a.var == var) || rule_that_reads(kernel, insn, var).is_some()
}

/// The first rule an instruction uses whose body, expanded, reads the variable.
fn rule_that_reads(kernel: &Kernel, insn: InsnId, var: VarId) -> Option<String> {
    let insn = &kernel.insns[insn];
    let mut found = None;
    for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
        e.for_each(&mut |e| {
            let Expr::Rule(rule, _) = e else { return };
            kernel.expand_rules(&kernel.rules[*rule].body).for_each(&mut |inner| {
                if matches!(inner, Expr::Load(a) if a.var == var) {
                    found.get_or_insert_with(|| kernel.rules[*rule].name.clone());
                }
            });
        });
    }
    found
}
