//! Several indices along an axis of a temporary share an element: none is read after another one is
//! written.

use super::elements::element_at;
use super::index_cases::{IndexCase, index_cases};
use crate::obligation::Obligation;
use crate::refusal::{LostValue, Refusal};
use kingpost_analysis::deps::{AccessSite, Dependence, DependenceKind, Mode};
use kingpost_analysis::polyhedral::{Polyhedral, Side, difference};
use kingpost_analysis::{Analysis, Witness};
use kingpost_ir::{Affine, Atom, Kernel, VarId};
use kingpost_isl as isl;

/// An axis along which several indices share an element.
pub struct Alive {
    /// The temporary.
    pub var: VarId,
    /// The axis.
    pub axis: usize,
    /// Elements that are left along the axis, of which indices take turns; none if the axis goes.
    pub length: Option<i64>,
    /// What is refused under.
    pub obligation: Obligation,
    /// What to try.
    pub help: &'static str,
}

/// Checks that every reader finds what it found before: with `D` the flow and update dependences of
/// `after` through the variable and `k` the index along the axis in the kernel before,
/// `{ s -> t in D : k(s) /= k(t) }` is empty. The last write of a shared element then has the index
/// that is read, so it was the last write of that index before.
///
/// # Errors
/// The obligation with two instances that clash.
pub fn check_readers(analysis: &Analysis, after: &Kernel, alive: &Alive) -> Result<(), Refusal> {
    let (poly, sites) = (analysis.polyhedral(), analysis.sites(alive.var));
    let next = analysis.next(after);
    for d in next.dependences_of(&|v| v == alive.var)?.into_iter().filter(|d| d.carries_value()) {
        for source in sites.iter().filter(|s| s.insn == d.source && s.writes()) {
            for sink in sites.iter().filter(|s| s.insn == d.sink && receives(s, d.kind)) {
                check_pair(poly, after, d, [source, sink], alive)?;
            }
        }
    }
    Ok(())
}

/// Whether an access is the end of a dependence of that kind.
fn receives(site: &AccessSite, kind: DependenceKind) -> bool {
    match site.mode {
        Mode::Read => kind == DependenceKind::Flow,
        Mode::Update(_) => true,
        Mode::Assign => false,
    }
}

fn check_pair(
    poly: &Polyhedral,
    after: &Kernel,
    d: &Dependence,
    [source, sink]: [&AccessSite; 2],
    alive: &Alive,
) -> Result<(), Refusal> {
    let Some(part) = different_elements(poly, d, [source, sink], alive)? else { return Ok(()) };
    let witness = d.witness(after, &part)?;
    let lost = witness.map(|witness| another_element(poly, d, [source, sink], witness, alive.help));
    alive.obligation.refute(lost)
}

fn another_element(
    poly: &Polyhedral,
    d: &Dependence,
    [source, sink]: [&AccessSite; 2],
    witness: Witness,
    help: &str,
) -> LostValue {
    let read = element_at(poly, sink, &witness.sink.point, &witness.params);
    let written = element_at(poly, source, &witness.source.point, &witness.params);
    let known = |element: &str| element.contains('[');
    let found = if !known(&read) || !known(&written) {
        format!(
            "{} may read another element of `{}` than {} writes, and would find that one",
            witness.sink, poly.kernel.vars[d.var].name, witness.source
        )
    } else {
        format!(
            "{} reads `{read}` and would find what {} writes to `{written}`",
            witness.sink, witness.source
        )
    };
    LostValue { witness, found, help: help.into() }
}

/// The pairs whose indices along the axis may differ; `None` if there are none. Where indices take
/// turns, an instruction may read several of them, and only the accesses that meet in an element
/// count.
fn different_elements(
    poly: &Polyhedral,
    d: &Dependence,
    [source, sink]: [&AccessSite; 2],
    alive: &Alive,
) -> Result<Option<isl::Map>, isl::IslError> {
    let from = cases_along(poly, source, alive.axis, Side::Source);
    let to = cases_along(poly, sink, alive.axis, Side::Sink);
    let (Some(from), Some(to)) = (from, to) else { return d.relation().map(Some) };
    if let ([from], [to]) = (&from[..], &to[..])
        && from.index == to.index
        && settled(d, &from.index)
    {
        return Ok(None);
    }
    let mut others = Vec::new();
    if alive.length.is_some() {
        for axis in (0..source.index.len()).filter(|axis| *axis != alive.axis) {
            let known = [(source, Side::Source), (sink, Side::Sink)]
                .map(|(site, side)| poly.affine(plain_index(site, axis)?, side));
            if let [Some(x), Some(y)] = known {
                others.push(isl::Constraint::zero(difference(&y, &x)));
            }
        }
    }
    let mut disjuncts = Vec::new();
    for x in &from {
        for y in &to {
            let e = difference(&y.value, &x.value);
            let mut meet = [&x.when[..], &y.when, &others].concat();
            if let Some(length) = alive.length {
                let turns = e.clone().floor_div(length);
                meet.push(isl::Constraint::zero(e.clone().add_scaled(-length, &turns)));
            }
            let less = isl::Constraint::non_negative(e.clone().offset(-1));
            let more = isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &e));
            disjuncts.extend([less, more].map(|case| [&meet[..], &[case]].concat()));
        }
    }
    d.relation_where(&disjuncts).map(Some)
}

/// The index of an access along an axis, if it is quasi-affine and no reduction runs over it.
fn plain_index(site: &AccessSite, axis: usize) -> Option<&Affine> {
    site.index[axis].as_ref().filter(|e| !site.reduction.iter().any(|i| e.mentions(*i)))
}

/// What an index is, and where.
struct Case {
    index: Affine,
    value: isl::Affine,
    when: Vec<isl::Constraint>,
}

/// The cases of an index along an axis; none if one is not known, or a reduction runs over it.
fn cases_along(poly: &Polyhedral, site: &AccessSite, axis: usize, side: Side) -> Option<Vec<Case>> {
    let cases = match plain_index(site, axis) {
        Some(index) => vec![IndexCase { value: index.clone(), when: Vec::new() }],
        None => index_cases(poly, &site.access.index[axis])?,
    };
    let summed = |e: &Affine| site.reduction.iter().any(|i| e.mentions(*i));
    let of = |case: IndexCase| {
        if summed(&case.value) || case.when.iter().any(|c| summed(c.expr())) {
            return None;
        }
        let when = case.when.iter().map(|c| poly.constraint(c, side)).collect::<Option<_>>()?;
        Some(Case { value: poly.affine(&case.value, side)?, index: case.value, when })
    };
    cases.into_iter().map(of).collect()
}

/// Whether an index has one value at both ends because it mentions nothing but loops that do not
/// advance.
fn settled(d: &Dependence, index: &Affine) -> bool {
    let mut same = true;
    index.for_each_symbol(&mut |atom| match atom {
        Atom::Iname(i) => same &= d.equal.contains(i),
        Atom::Var(_) | Atom::Floor(..) => {}
    });
    same
}
