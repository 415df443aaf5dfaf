//! Dependences with their relations as expressions.

use crate::data::Dependence;
use crate::rows::{Conditions, Row, Term, of_map};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps;
use kingpost_ir::InameId;
use kingpost_isl::IslError;

/// The dependences of which there are pairs, in order of variables and text.
pub fn dependences(analysis: &Analysis) -> Result<Vec<Dependence>, IslError> {
    let mut found = Vec::new();
    for dependence in analysis.dependences()? {
        let relation = dependence.relation()?.coalesce()?;
        if !relation.is_empty()? {
            found.push(of(analysis, dependence, &relation)?);
        }
    }
    Ok(found)
}

fn of(
    analysis: &Analysis,
    d: &deps::Dependence,
    relation: &kingpost_isl::Map,
) -> Result<Dependence, IslError> {
    let kernel = analysis.expanded();
    let names =
        |loops: &[InameId]| -> Vec<String> { loops.iter().map(|i| kernel.inames[*i].name.clone()).collect() };
    let pieces = of_map(relation)?;
    let far = |name: &String| {
        let place = relation.in_dims().iter().position(|dim| dim == name)?;
        Some((name.clone(), distance(&pieces, &relation.in_dims()[place], relation.out_dims().get(place)?)?))
    };
    // they are the outermost ones of both
    let common = names(analysis.polyhedral().common_loops(d.source, d.sink));
    Ok(Dependence {
        kind: d.kind.to_string(),
        var: kernel.vars[d.var].name.clone(),
        through: d.through.map(|v| kernel.vars[v].name.clone()),
        reuse_across: names(&d.reuse_across),
        source: kernel.insns[d.source].name.clone(),
        sink: kernel.insns[d.sink].name.clone(),
        src: relation.in_dims().to_vec(),
        dst: relation.out_dims().to_vec(),
        distance: common.iter().filter_map(far).collect(),
        pieces,
    })
}

/// `to - from`, if an equality of every piece says what it is.
fn distance(pieces: &[Conditions], from: &str, to: &str) -> Option<i64> {
    let named = |term: &Term, name: &str| matches!(term, Term::Name(own) if own == name);
    let of_row = |row: &Row| {
        let [(a, p), (b, q)] = row.terms.as_slice() else { return None };
        let sign = if named(a, from) && named(b, to) {
            *p
        } else if named(a, to) && named(b, from) {
            *q
        } else {
            return None;
        };
        // sign*from - sign*to + constant = 0
        (p + q == 0 && sign.abs() == 1).then(|| sign * row.constant)
    };
    let mut all = pieces.iter().map(|piece| piece.eq.iter().find_map(of_row));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}
