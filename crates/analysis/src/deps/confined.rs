//! Variables whose values do not live from one iteration of the surrounding loops to another.

use crate::answers::Answers;
use crate::deps::access::{AccessSite, Mode};
use crate::deps::covers::covers_box;
use crate::deps::words::Words;
use crate::polyhedral::{Disjuncts, Polyhedral, Side, conjunction, difference};
use purlin_ir::ids::InameId;
use purlin_isl as isl;

/// The loops around all accesses, if every iteration of them starts with a certain write of all
/// elements it touches.
///
/// Formula: with `C` the common loops and `W` the first access,
/// `{ [C, e] : e touched in C }  subset of  { [C, e] : e written by W in C }`.
///
/// Overwriting counts as touching: were `e` assigned later in `C` only, two iterations could clash on
/// it without `W` between them. What is touched may be taken too large, what is written may not:
/// hence a certain write.
pub fn confining_loops(
    poly: &Polyhedral,
    sites: &[AccessSite],
    answers: &Answers,
) -> Result<Option<Vec<InameId>>, isl::IslError> {
    let Some(first) = sites.first().filter(|s| is_certain_write(poly, s)) else { return Ok(None) };
    let common = common_loops(poly, sites);
    // The first write must be finished before anything else touches the variable: it and the next
    // access part ways directly below the common loops.
    let alone = |s: &AccessSite| poly.common_loops(first.insn, s.insn).len() == common.len();
    if sites[1..].iter().any(|s| s.insn == first.insn || !alone(s)) {
        return Ok(None);
    }
    if sites[1..].iter().all(|s| covers_syntactically(poly, first, s, &common)) {
        return Ok(Some(common));
    }
    if sites[1..].iter().all(|s| covers_box(poly, first, s, &common)) {
        return Ok(Some(common));
    }
    for site in &sites[1..] {
        let covered = answers.covered.answer(question(poly, first, site, &common), || {
            let touched = if site.is_affine() {
                footprint(poly, site, &common)
            } else {
                whole_array(poly, site, &common)
            };
            touched.set()?.is_subset(&footprint(poly, first, &common).set()?)
        })?;
        if !covered {
            return Ok(None);
        }
    }
    Ok(Some(common))
}

/// Whether all that `site` touches is written by `write`, as a question.
fn question(poly: &Polyhedral, write: &AccessSite, site: &AccessSite, common: &[InameId]) -> Words {
    let mut question = Words::default();
    question.count(common.len());
    for s in [write, site] {
        let scope = question.instances(poly, (s.insn, s.conditions), &s.reduction);
        question.count(s.index.len());
        for index in s.index.iter() {
            match index.as_ref().filter(|i| poly.is_symbolic(i)) {
                None => question.push(0),
                Some(index) => {
                    question.push(1);
                    question.affine(index, &scope);
                }
            }
        }
    }
    question.push(i64::from(site.is_affine()));
    let shape = &poly.kernel.vars[site.access.var].shape;
    for extent in shape.iter().filter(|_| !site.is_affine()) {
        question.affine(extent, &[]);
    }
    question.context(poly);
    question
}

/// Elements by iterations of the common loops: all that isl is told of them.
struct Footprint {
    dims: Vec<String>,
    /// Loops inside the common ones, projected out.
    inner: Vec<String>,
    params: Vec<String>,
    disjuncts: Disjuncts,
}

impl Footprint {
    fn set(&self) -> Result<isl::Set, isl::IslError> {
        let names: Vec<_> = self.dims.iter().chain(&self.inner).cloned().collect();
        let set = isl::Set::from_disjuncts(&isl::SetSpace::new(&names, &self.params), &self.disjuncts)?;
        let inner: Vec<_> = self.inner.iter().map(String::as_str).collect();
        if inner.is_empty() { Ok(set) } else { set.project_out(&inner) }
    }
}

fn common_loops(poly: &Polyhedral, sites: &[AccessSite]) -> Vec<InameId> {
    let mut common = poly.loops(sites[0].insn).to_vec();
    for site in sites {
        common.truncate(poly.common_loops(sites[0].insn, site.insn).len().min(common.len()));
    }
    common
}

/// Whether the write happens at every point of its loops, on a known element.
pub fn is_certain_write(poly: &Polyhedral, site: &AccessSite) -> bool {
    site.mode == Mode::Assign
        && site.is_affine()
        && poly.kernel.insns[site.insn].predicate.is_none()
        && poly.domains(poly.loops(site.insn), Side::Source).1
}

/// Whether both touch the same element in an iteration of `common`, which the write, directly in
/// `common`, has then just defined.
fn covers_syntactically(
    poly: &Polyhedral,
    write: &AccessSite,
    site: &AccessSite,
    common: &[InameId],
) -> bool {
    poly.loops(write.insn) == common && write.index == site.index && site.is_affine()
}

/// `{ [C, e] : e touched in C }`; an index that is not affine touches its whole axis.
fn footprint(poly: &Polyhedral, site: &AccessSite, common: &[InameId]) -> Footprint {
    let (dims, inner, mut all) = element_space(poly, site, common);
    for (axis, index) in site.index.iter().enumerate() {
        if let Some(index) = index.as_ref().and_then(|i| poly.affine(i, Side::Source)) {
            let element = isl::Affine::name(element_name(axis));
            let equal = vec![vec![isl::Constraint::zero(difference(&element, &index))]];
            all = conjunction(all, equal);
        }
    }
    Footprint { dims, inner, params: poly.params.clone(), disjuncts: poly.in_context(all) }
}

fn whole_array(poly: &Polyhedral, site: &AccessSite, common: &[InameId]) -> Footprint {
    let shape = &poly.kernel.vars[site.access.var].shape;
    let in_range = shape.iter().enumerate().filter_map(|(axis, extent)| {
        let extent = poly.affine(extent, Side::Source)?;
        let e = isl::Affine::name(element_name(axis));
        Some([
            isl::Constraint::non_negative(e.clone()),
            isl::Constraint::non_negative(difference(&extent, &e).offset(-1)),
        ])
    });
    let in_range: Vec<_> = in_range.flatten().collect();
    let (dims, inner, all) = element_space(poly, site, common);
    let disjuncts = poly.in_context(conjunction(all, vec![in_range]));
    Footprint { dims, inner, params: poly.params.clone(), disjuncts }
}

/// Names of the common loops and the axes, names of the inner loops, and the domain.
fn element_space(
    poly: &Polyhedral,
    site: &AccessSite,
    common: &[InameId],
) -> (Vec<String>, Vec<String>, Disjuncts) {
    let mut dims = poly.names(common, Side::Source);
    dims.extend((0..site.index.len()).map(element_name));
    let mut inner = poly.names(&poly.loops(site.insn)[common.len()..], Side::Source);
    inner.extend(poly.names(&site.reduction, Side::Source));
    let (loops, _) = poly.instances_under(site.insn, site.conditions, Side::Source);
    let (reduction, _) = poly.domains(&site.reduction, Side::Source);
    (dims, inner, conjunction(loops, reduction))
}

/// A name that no iname has: `#` cannot stand in names.
fn element_name(axis: usize) -> String {
    format!("#{axis}")
}

/// Whether different iterations of `common` touch different elements because every one of these loops
/// is an index by itself.
pub fn is_injective_on(common: &[InameId], site: &AccessSite) -> bool {
    common.iter().all(|l| site.index.iter().flatten().any(|i| i.as_iname() == Some(*l)))
}
