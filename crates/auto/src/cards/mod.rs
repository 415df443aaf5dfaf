//! Schedules for cards: launches with loops of the host around them where nothing else is parallel
//! outside, parallel loops on groups and work-items, sums of rows on the work-items of a group.
//!
//! Which loops are parallel is asked of the placement, by tags that are tried on a copy: a proof, and
//! the only one that counts.

mod lanes;
mod map;
mod prepare;
mod spread;

use crate::draft::{Draft, Tried};
use crate::model::Machine;
use crate::{ISL, Proposal};
use map::Shape;
use purlin_ir::{AxisTag, Kernel};
use purlin_isl::Objective;
use purlin_steps::TransformError;
use purlin_transforms::primitives::Tag;
use std::collections::BTreeMap;

/// Launches from which on few shapes are tried.
const MANY: usize = 8;

/// What comes before the launches.
type Preparation = (&'static str, fn(&mut Draft<'_>) -> Tried);

const TOGETHER: Objective = Objective { outer_parallel: true, serialised: false };
const ONE_BY_ONE: Objective = Objective { outer_parallel: true, serialised: true };

const PREPARATIONS: [Preparation; 8] = [
    ("text", |_| Ok(())),
    ("waves", |d| d.restart("diagonals", |d| d.skew_outer(0))),
    ("inner waves", |d| d.restart("diagonals", |d| d.skew_outer(1))),
    ("cuts", |d| d.restart("cuts at the outer loop", Draft::cut_at_outer)),
    ("bands", |d| d.restart(ISL, |d| d.reschedule(ONE_BY_ONE))),
    ("fused bands", |d| d.restart(ISL, |d| d.reschedule(TOGETHER))),
    ("expanded, bands", |d| {
        d.expand_temporaries()?;
        d.restart(ISL, |d| d.reschedule(ONE_BY_ONE))
    }),
    ("expanded, fused bands", |d| {
        d.expand_temporaries()?;
        d.restart(ISL, |d| d.reschedule(TOGETHER))
    }),
];

/// Proposals for a card, in no order; equal ones are left out. Their [`Proposal::cycles`] are those of
/// a processor.
///
/// `params` are the sizes that groups are chosen by; the schedules are legal for all.
///
/// # Errors
/// A bug of the engine. A step that is refused only ends the idea that it belongs to.
pub fn propose_for_card(
    kernel: &Kernel,
    params: &BTreeMap<String, i64>,
) -> Result<Vec<Proposal>, TransformError> {
    let machine = Machine::default();
    let mut plain = Draft::new(kernel, params, &machine);
    let mut drafts = Vec::new();
    let mut seen: Vec<Kernel> = Vec::new();
    for (name, prepare) in PREPARATIONS {
        let mut draft = Draft::new(kernel, params, &machine);
        prepare(&mut draft)?;
        if seen.contains(draft.kernel()) {
            plain.considered.append(&mut draft.considered);
            continue;
        }
        seen.push(draft.kernel().clone());
        for wide in [true, false] {
            let mut draft = draft.clone();
            let launches = draft.spread(wide)?;
            if launches.iter().all(|launch| launch.covers.is_empty()) {
                plain.considered.append(&mut draft.considered);
                continue;
            }
            let kind = if wide { "" } else { ", few launches" };
            // each step is proved for the whole program, which takes long where it has many launches
            let shapes = if launches.len() > MANY { 2 } else { Shape::ALL.len() };
            for shape in Shape::ALL.into_iter().take(shapes) {
                let mut draft = draft.clone();
                draft.map(&launches, &shape)?;
                drafts.push((format!("{name}{kind}, {}", shape.name), draft));
            }
        }
    }
    drafts.push(("as written".to_owned(), plain));
    Ok(crate::proposals(drafts))
}

impl Draft<'_> {
    /// Runs a loop of each launch on groups, which the threads of a processor share: an outer loop where one
    /// is parallel, else one inside, with loops around it that all threads go through together.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn share_among_threads(&mut self) -> Tried<bool> {
        let launches = self.spread(false)?;
        let shared: Vec<_> = launches.iter().filter_map(|launch| launch.covers.first()).collect();
        for cover in &shared {
            self.make(Tag::all((*cover).clone(), AxisTag::Group(0)))?;
        }
        Ok(!shared.is_empty())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // what a failed test does
    use super::propose_for_card;
    use crate::Proposal;
    use purlin_ir::text::parse;
    use std::collections::BTreeMap;

    const ARRAYS: &str = "param n: i32\narg a: f64[n, n] inout\narg b: f64[n, n] in\narg x: f64[n] inout\narg y: f64[n] inout\n";

    fn proposals(body: &str) -> Vec<Proposal> {
        let kernel = parse(&format!("kernel k\n\n{ARRAYS}{body}")).unwrap();
        let found = propose_for_card(&kernel, &BTreeMap::from([("n".to_owned(), 1000)])).unwrap();
        for proposal in &found {
            assert_eq!(proposal.recipe.apply(&kernel).unwrap(), proposal.kernel, "{}", proposal.name);
        }
        found
    }

    /// Whether the steps of some proposal have all of these.
    fn has(found: &[Proposal], wanted: &[&str]) -> bool {
        found.iter().any(|p| wanted.iter().all(|step| p.text(false).contains(step)))
    }

    #[test]
    fn what_is_parallel_outside_is_one_launch() {
        let found = proposals(
            "for i in 0..n\n  for j in 0..n\n    for k in 0..n\n      s: a[i, j] += b[i, k]*b[k, j]\n",
        );
        // the axis that moves along rows is that of neighbouring work-items
        let steps = ["tag(i_o, tag: g.1)", "tag(j_i, tag: l.0)", "buffer_writes(a, at: j, space: private"];
        assert!(has(&found, &steps), "{}", found[0].text(true));
        assert!(!has(&found, &["split_launch"]));
        // rows in one work-item read the same element of `b`
        assert!(has(&found, &["split_iname(i, factor: 4)", "tag(i_i, tag: unroll)"]));
    }

    #[test]
    fn loops_that_are_in_order_become_loops_of_the_host() {
        let found = proposals(
            "for t in 1..n\n  for i in 1..n\n    s: x[i] = y[i - 1]\n  for j in 1..n\n    r: y[j] = x[j]*a[t, j]\n",
        );
        assert!(has(&found, &["split_launch([j])", "tag(i_o, tag: g.0)", "tag(j_o, tag: g.0)"]));
        let found = proposals("for t in 1..n\n  for i in 0..n\n    s: a[t, i] += a[t - 1, n - 1 - i]\n");
        assert!(has(&found, &["tag(t, tag: launch)", "tag(i_o, tag: g.0)"]));
    }

    #[test]
    fn sums_of_rows_are_shared() {
        let found = proposals("for i in 0..n\n  for j in 0..n\n    s: y[i] += b[i, j]*x[j]\n");
        let steps = ["factor_update(s", "reduce_in_tree(", "tag(i, tag: g.0)"];
        assert!(has(&found, &steps), "{}", found.iter().map(|p| p.text(true)).collect::<String>());
        // of columns they are not: neighbours read neighbours
        let found = proposals("for i in 0..n\n  for j in 0..n\n    s: y[i] += b[j, i]*x[j]\n");
        assert!(!has(&found, &["reduce_in_tree("]) && has(&found, &["tag(i_i, tag: l.0)"]));
    }

    #[test]
    fn a_nest_that_waits_for_itself_runs_in_waves() {
        let found = proposals("for i in 1..n\n  for j in 1..n\n    s: a[i, j] += a[i - 1, j]*a[i, j - 1]\n");
        assert!(has(&found, &["map_inames(", "tag: launch)", "tag: g.0)"]));
    }

    /// As in Floyd and Warshall's: all of `x` reads the element `k`, which is written in the same iteration.
    #[test]
    fn an_element_that_all_read_is_cut_out() {
        let found = proposals("for k in 0..n\n  for i in 0..n\n    s: x[i] = min(x[i], x[k] + a[i, k])\n");
        let cuts = ["cut_iname(i, at: \"k + 1\")", "split_launch(", "tag(i_o, tag: g.0)"];
        assert!(has(&found, &cuts), "{}", found[0].text(true));
    }

    #[test]
    fn what_is_in_order_throughout_is_left() {
        let found = proposals("for i in 1..n\n  s: x[i] = x[i - 1]*x[i]\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].recipe.steps.is_empty() && found[0].text(true).contains("refused"));
    }
}
