//! What barriers must separate because temporaries share a buffer in local memory.

use super::axes::{Axis, LaunchAxes};
use super::check::{Barrier, Scope};
use super::slices::SUB_GROUP;
use crate::Analysis;
use crate::deps::AccessSite;
use crate::deps::pair::touching;
use crate::question::{Apart, Linear, Part};
use purlin_ir::affine::Affine;
use purlin_ir::ids::{Id, InameId, InsnId, VarId};
use purlin_ir::kernel::{AddressSpace, AxisTag, Kernel};
use purlin_isl::IslError;
use std::collections::BTreeMap;

/// Every pair of accesses to different sharers, one of them writing, within an iteration and between
/// iterations of each loop around both. That their values do not overlap in time is another proof:
/// [`check_storage`](super::storage::check_storage).
///
/// # Errors
/// A failure of isl.
pub(crate) fn reuse(analysis: &Analysis) -> Result<Vec<Barrier>, IslError> {
    let (poly, kernel) = (analysis.polyhedral(), analysis.expanded());
    let shares =
        |v: &VarId| kernel.vars[*v].space == AddressSpace::Local && kernel.vars[*v].storage.is_some();
    let sites = analysis.all_sites();
    let uses = kernel.vars.ids().filter(shares).flat_map(|v| sites[v.index()].iter().map(move |s| (v, s)));
    let mut uses: Vec<(VarId, &AccessSite)> = uses.collect();
    uses.sort_by_key(|(_, site)| poly.position(site.insn));
    let axes = LaunchAxes::of(kernel);
    let mut found: BTreeMap<(InsnId, InsnId, VarId, Option<InameId>), Scope> = BTreeMap::new();
    for (k, (var, source)) in uses.iter().enumerate() {
        for (other, sink) in &uses[k + 1..] {
            let same = kernel.vars[*var].storage == kernel.vars[*other].storage;
            let conflict = source.writes() || sink.writes();
            if !same || var == other || !conflict || source.insn == sink.insn {
                continue;
            }
            let scope = scope(analysis, &axes, [(*var, source), (*other, sink)])?;
            let mut add = |source: InsnId, sink: InsnId, carrier| {
                let known = found.entry((source, sink, *var, carrier)).or_insert(scope);
                *known = scope.max(*known);
            };
            add(source.insn, sink.insn, None);
            let loops = poly.common_loops(source.insn, sink.insn).iter();
            for l in loops.filter(|l| is_sequential(kernel, **l)) {
                add(source.insn, sink.insn, Some(*l));
                add(sink.insn, source.insn, Some(*l));
            }
        }
    }
    let barrier = |((source, sink, var, carrier), scope)| Barrier { source, sink, var, carrier, scope };
    Ok(found.into_iter().map(barrier).collect())
}

fn is_sequential(kernel: &Kernel, l: InameId) -> bool {
    !matches!(kernel.inames[l].tag, AxisTag::Group(_) | AxisTag::Local(_))
}

/// The smallest scope in which a place of the buffer is touched by both, in one group.
fn scope(analysis: &Analysis, axes: &LaunchAxes, ends: [(VarId, &AccessSite); 2]) -> Result<Scope, IslError> {
    let poly = analysis.polyhedral();
    let [Some(x), Some(y)] = ends.map(|(var, site)| place(&poly.kernel, var, site)) else {
        return Ok(Scope::Group);
    };
    let [source, sink] = ends.map(|(_, site)| site);
    let Some(relation) = touching(poly, [source, sink], [&x, &y]) else { return Ok(Scope::Group) };
    let at = |site: &AccessSite, axis, block: i64| {
        let index = axes.coordinate(poly, site.insn, axis).index()?.floor_div(block);
        Linear::of(&index, poly.loops(site.insn), &|v| poly.symbol(v))
    };
    let both = |axis, block| at(source, axis, block).zip(at(sink, axis, block));
    let (mut groups, mut items) = (Vec::new(), Vec::new());
    for axis in &axes.axes {
        match axis {
            Axis::Group(_) => groups.extend(both(*axis, 1)),
            Axis::Local(k) => {
                let block = if *k == 0 { SUB_GROUP } else { 1 };
                items.push(both(*axis, block).map_or(Part::whole(), |(x, y)| Part::apart(&x, &y)));
            }
        }
    }
    let leaves = analysis.answers().apart.answer(&Apart { relation, groups, items })?;
    Ok(if leaves { Scope::Group } else { Scope::SubGroup })
}

/// Where an access is in its array, in elements, if that is affine.
fn place(kernel: &Kernel, var: VarId, site: &AccessSite) -> Option<Affine> {
    let variable = &kernel.vars[var];
    let strides = purlin_ir::layout::strides(variable, &vec![false; variable.shape.len()])?;
    let mut place = Affine::default();
    for (index, stride) in site.index.iter().zip(&strides) {
        place = place.plus(&index.as_ref()?.times(stride.as_constant()?));
    }
    place.in_bounds().then_some(place)
}
