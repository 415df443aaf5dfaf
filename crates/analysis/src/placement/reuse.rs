//! What barriers must separate because temporaries share a buffer in local memory.

use super::axes::{Axis, LaunchAxes};
use super::barriers::{Barrier, Scope};
use super::places::place;
use crate::Analysis;
use crate::deps::AccessSite;
use crate::deps::pair::scope;
use crate::polyhedral::Polyhedral;
use crate::question::{self, Linear};
use kingpost_ir::affine::Affine;
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel};
use std::collections::{BTreeMap, BTreeSet};

/// A work-item: its sub-group, and its index along `l.0`.
type Item = (Vec<i64>, i64);

/// Work-items by the places that they touch.
type Touched = BTreeMap<i64, BTreeSet<Item>>;

impl Analysis<'_> {
    /// What barriers must separate besides those of the [placement](Analysis::place), because
    /// temporaries share a buffer in local memory.
    ///
    /// Every pair of accesses to different sharers, one of them writing, within an iteration and
    /// between iterations of each loop around both; each place of the buffer says who waits. A
    /// place that one work-item alone touches asks for no barrier: a work-item runs in order. That
    /// their values do not overlap in time is another proof:
    /// [`check_storage`](super::storage::check_storage).
    pub fn reuse(&self) -> Vec<Barrier> {
        let (poly, kernel) = (self.polyhedral(), self.expanded());
        let shares =
            |v: &VarId| kernel.vars[*v].space == AddressSpace::Local && kernel.vars[*v].storage.is_some();
        let sites = self.all_sites();
        let uses =
            kernel.vars.ids().filter(shares).flat_map(|v| sites[v.index()].iter().map(move |s| (v, s)));
        let mut uses: Vec<(VarId, &AccessSite)> = uses.collect();
        uses.sort_by_key(|(_, site)| poly.position(site.insn));
        let axes = LaunchAxes::of(kernel);
        let touched: Vec<_> = uses.iter().map(|(var, site)| touched(poly, &axes, *var, site)).collect();
        let mut found: BTreeMap<(InsnId, InsnId, VarId, Option<InameId>), Scope> = BTreeMap::new();
        for (k, (var, source)) in uses.iter().enumerate() {
            for (l, (other, sink)) in uses.iter().enumerate().skip(k + 1) {
                let same = kernel.vars[*var].storage == kernel.vars[*other].storage;
                let conflict = source.writes() || sink.writes();
                if !same || var == other || !conflict {
                    continue;
                }
                let Some(scope) = common_scope(touched[k].as_ref(), touched[l].as_ref()) else { continue };
                let mut add = |source: InsnId, sink: InsnId, carrier| {
                    let known = found.entry((source, sink, *var, carrier)).or_insert(scope);
                    *known = scope.max(*known);
                };
                // what one instruction reads and writes of a buffer is elsewhere in one iteration,
                // by the proof
                if source.insn != sink.insn {
                    add(source.insn, sink.insn, None);
                }
                let loops = poly.common_loops(source.insn, sink.insn).iter();
                for l in loops.filter(|l| is_sequential(kernel, **l)) {
                    add(source.insn, sink.insn, Some(*l));
                    add(sink.insn, source.insn, Some(*l));
                }
            }
        }
        let barrier = |((source, sink, var, carrier), scope)| Barrier { source, sink, var, carrier, scope };
        found.into_iter().map(barrier).collect()
    }
}

fn is_sequential(kernel: &Kernel, l: InameId) -> bool {
    !matches!(kernel.inames[l].tag, AxisTag::Group(_) | AxisTag::Local(_))
}

/// Where an access touches its buffer: places, each with the work-items that touch it. `None` if
/// that is not known.
fn touched(poly: &Polyhedral, axes: &LaunchAxes, var: VarId, site: &AccessSite) -> Option<Touched> {
    let loops = scope(poly, site);
    let linear = |e: &Affine| Linear::of(e, &loops, &|v| poly.symbol(v));
    let known: Vec<_> = site.index.iter().map(|i| Some(i.clone().unwrap_or_default())).collect();
    let mut values = vec![linear(&place(&poly.kernel, var, &[], &known)?)?];
    let unknown = unknown_places(&poly.kernel, var, site)?;
    let mut lane = Affine::default();
    for axis in &axes.axes {
        if let Axis::Local(k) = axis {
            let index = LaunchAxes::coordinate(poly, site.insn, *axis).index()?;
            let block = if *k == 0 { poly.kernel.sub_group.width().into() } else { 1 };
            values.push(linear(&index.floor_div(block))?);
            lane = if *k == 0 { index } else { lane };
        }
    }
    values.push(linear(&lane)?);
    let mut touched = Touched::new();
    for all in question::values(&poly.instances_of(site.insn, site.conditions, &site.reduction), &values)? {
        if let [place, sub_group @ .., lane] = all.as_slice() {
            for offset in &unknown {
                touched.entry(place + offset).or_default().insert((sub_group.to_vec(), *lane));
            }
        }
    }
    Some(touched)
}

/// Most places that an access may touch along axes whose index is not known.
const MAX_UNKNOWN: i64 = 1024;

/// What all values of indices that are not affine, which may be any along their axes, add to a
/// place.
fn unknown_places(kernel: &Kernel, var: VarId, site: &AccessSite) -> Option<Vec<i64>> {
    let variable = &kernel.vars[var];
    if variable.layout.swizzle.is_some() {
        return None;
    }
    let strides = kingpost_ir::layout::strides(variable, &vec![false; variable.shape.len()])?;
    let mut places = vec![0];
    for ((index, stride), extent) in site.index.iter().zip(&strides).zip(&variable.shape) {
        if index.is_none() {
            let (stride, extent) = (stride.as_constant()?, extent.as_constant()?);
            if places.len() as i64 * extent > MAX_UNKNOWN {
                return None;
            }
            places = places.iter().flat_map(|at| (0..extent).map(move |k| at + k * stride)).collect();
        }
    }
    Some(places)
}

/// The smallest scope in which all that touch a place of the buffer are; `None` if they touch no
/// common place.
fn common_scope(source: Option<&Touched>, sink: Option<&Touched>) -> Option<Scope> {
    let Some((source, sink)) = source.zip(sink) else { return Some(Scope::Group) };
    source.iter().filter_map(|(place, by)| Some(scope_of(by.union(sink.get(place)?)))).max()
}

/// The smallest scope in which these work-items are.
fn scope_of<'i>(items: impl Iterator<Item = &'i Item>) -> Scope {
    let items: BTreeSet<&Item> = items.collect();
    let sub_groups: BTreeSet<_> = items.iter().map(|(sub_group, _)| sub_group).collect();
    match (items.len(), sub_groups.len()) {
        (1, _) => Scope::WorkItem,
        (_, 1) => Scope::SubGroup,
        (_, _) => Scope::Group,
    }
}
