//! The proof of every primitive that takes a value earlier or later than its use: nothing writes it
//! in between.

use crate::proofs::CURRENT;
use crate::proved::Means;
use crate::refusal::{Refusal, StaleValue};
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::deps::pair::{Order, index_map, pair_relation};
use kingpost_analysis::polyhedral::{Polyhedral, smallest_pair};
use kingpost_analysis::{Instance, Witness};
use kingpost_ir::{Affine, Atom, InameId, Kernel};
use kingpost_isl as isl;

/// A point of the program: in every iteration of `loops`, before the instruction at `position`,
/// which stands with those loops around it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The loops around the point, outer first.
    pub loops: &'a [InameId],
    /// Position in textual order of the first instruction after the point.
    pub position: usize,
    /// What happens there, for messages: `the copy`.
    pub what: &'a str,
}

/// Checks that what some accesses read is the same at an earlier point of the same iteration of its
/// loops.
///
/// Formula: with `L` the loops around the point, for every access `w` that writes textually after
/// the point and every access `r` of `uses`,
/// `{ w -> r : L = L', element(w) = element(r), w before r }` is empty.
///
/// # Errors
/// [`CURRENT`](super::CURRENT) not proved, with the smallest pair of that set, or a failure of isl.
pub fn check_unchanged(
    poly: &Polyhedral,
    sites: &[AccessSite],
    uses: &[&AccessSite],
    place: Place,
    help: &str,
) -> Result<(), Refusal> {
    let inside = |s: &AccessSite| poly.loops(s.insn).starts_with(place.loops);
    let later = |s: &AccessSite| s.writes() && inside(s) && poly.position(s.insn) >= place.position;
    for write in sites.iter().filter(|s| later(s)) {
        for site in uses {
            let Some(pair) = pair_relation(poly, write, site, Order::Within(place.loops)) else { continue };
            if let Some(witness) = witness(&poly.kernel, write, site, &pair.map(poly)?)? {
                let (place, help) = (place.what.to_owned(), help.to_owned());
                return Err(CURRENT.not_proved(StaleValue { witness, place, help }));
            }
            CURRENT.holds_in(&poly.kernel, Means::Empty, || pair_text(&poly.kernel, write, site));
        }
    }
    Ok(())
}

/// Two accesses as what is proved of them names them.
pub(crate) fn pair_text(kernel: &Kernel, write: &AccessSite, read: &AccessSite) -> String {
    let [from, to] = [write, read].map(|site| &kernel.insns[site.insn].name);
    format!("`{from}` writes what `{to}` reads of `{}`", kernel.vars[read.access.var].name)
}

/// The smallest pair of a relation from one access to another as a witness.
///
/// # Errors
/// A failure of isl.
pub fn witness(
    kernel: &Kernel,
    source: &AccessSite,
    sink: &AccessSite,
    relation: &isl::Map,
) -> Result<Option<Witness>, isl::IslError> {
    let Some(pair) = smallest_pair(kernel, relation)? else { return Ok(None) };
    let values = |p: &[(String, i64)]| p.iter().map(|(_, v)| *v).collect::<Vec<_>>();
    let element = element(kernel, source, &pair.input, &pair.params)
        .or_else(|| element(kernel, sink, &pair.output, &pair.params))
        .unwrap_or_else(|| kernel.vars[source.access.var].name.clone());
    let through = index_map(source).or_else(|| index_map(sink));
    Ok(Some(Witness {
        source: Instance::new(kernel, source.insn, values(&pair.input)),
        sink: Instance::new(kernel, sink.insn, values(&pair.output)),
        element,
        through: through.map(|v| kernel.vars[v].name.clone()),
        params: pair.params,
    }))
}

/// The element an access touches at a point, if its indices are quasi-affine and no reduction moves
/// them.
fn element(
    kernel: &Kernel,
    site: &AccessSite,
    point: &[(String, i64)],
    params: &[(String, i64)],
) -> Option<String> {
    let find = |name: &str| {
        let same = |n: &str| n == name || n.strip_suffix('\'') == Some(name);
        point.iter().chain(params).find(|(n, _)| same(n)).map(|(_, v)| *v)
    };
    let at = |e: &Option<Affine>| {
        e.as_ref()?.eval(&mut |atom| match atom {
            Atom::Iname(i) => find(&kernel.inames[*i].name),
            Atom::Var(v) => find(&kernel.vars[*v].name),
            Atom::Floor(..) => None,
        })
    };
    let index = site.index.iter().map(at).collect::<Option<Vec<_>>>()?;
    let index: Vec<_> = index.iter().map(i64::to_string).collect();
    let name = &kernel.vars[site.access.var].name;
    Some(if index.is_empty() { name.clone() } else { format!("{name}[{}]", index.join(",")) })
}
