//! The proof of every primitive that evaluates something where nothing did before: it reads what there is.

use crate::error::Cause;
use crate::proofs::written::may_be_undefined;
use purlin_ir::deps::{AccessSite, Mode, access_sites};
use purlin_ir::polyhedral::{Polyhedral, Side, cross};
use purlin_ir::{Affine, Constraint, InsnId, Kernel};
use purlin_isl as isl;

/// Checks that an instruction, wherever it runs, reads defined elements inside of their arrays.
///
/// Formula: for every read `r` along an axis of extent `n`, `{ i in D : r(i) < 0 or r(i) >= n }` is empty.
///
/// # Errors
/// [`Cause::Argument`] with the smallest element outside, or with what cannot be known: an index that is not
/// affine, an element that may be undefined; a failure of isl.
pub(crate) fn check_inside(kernel: &Kernel, insn: InsnId, help: &str) -> Result<(), Cause> {
    let expanded = kernel.with_rules_expanded();
    let poly = Polyhedral::new(&expanded);
    for site in access_sites(&poly).iter().flatten() {
        if site.insn != insn || site.mode != Mode::Read {
            continue;
        }
        let var = &kernel.vars[site.access.var];
        let refuse = |why: &str| {
            let name = &kernel.insns[insn].name;
            Err(Cause::Argument(format!(
                "`{name}` would read {why}, where perhaps nothing did before; {help}"
            )))
        };
        if may_be_undefined(&var.kind) {
            return refuse(&format!("elements of `{}` that may be undefined", var.name));
        }
        for (index, extent) in site.index.iter().zip(&var.shape) {
            let Some(index) = index else {
                return refuse(&format!("`{}` through an index that is not affine", var.name));
            };
            if let Some(point) = outside(&poly, site, index, extent)? {
                return refuse(&outside_text(&poly, site, &point));
            }
        }
    }
    Ok(())
}

/// The smallest instance at which an index is not `0..extent`.
fn outside(
    poly: &Polyhedral,
    site: &AccessSite,
    index: &Affine,
    extent: &Affine,
) -> Result<Option<isl::Point>, Cause> {
    let below = poly.constraint(&Constraint::lt(index, &Affine::default()), Side::Source);
    let beyond = poly.constraint(&Constraint::le(extent, index), Side::Source);
    let outside: Vec<_> = below.into_iter().chain(beyond).map(|c| vec![c]).collect();
    let dims = poly.names(poly.loops(site.insn), Side::Source);
    let (instances, _) = poly.instances(site.insn, Side::Source);
    let all = cross(&poly.in_context(instances), &outside);
    Ok(isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &all)?.lexmin_point()?)
}

/// `` `x[8]` with `n = 8` ``.
fn outside_text(poly: &Polyhedral, site: &AccessSite, point: &[(String, i64)]) -> String {
    let value = |name: &str| point.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
    let at = |e: &Option<Affine>| poly.affine(e.as_ref()?, Side::Source)?.evaluate(&value);
    let index: Vec<_> = site.index.iter().map(|e| at(e).map_or("?".into(), |v| v.to_string())).collect();
    let params: Vec<_> = point.iter().filter(|(name, _)| poly.params.contains(name)).collect();
    let params: Vec<_> = params.into_iter().map(|(name, v)| format!("{name} = {v}")).collect();
    let with = if params.is_empty() { String::new() } else { format!(" with {}", params.join(", ")) };
    format!("`{}[{}]`{with}", poly.kernel.vars[site.access.var].name, index.join(","))
}
