//! Schedules of loop programs that nobody has scheduled: proposals made of primitives, each step of
//! which is proved, and a model that ranks them.
//!
//! ```
//! use kingpost_auto::{Machine, propose};
//! use std::collections::BTreeMap;
//!
//! // the innermost loop reads columns of `b`
//! let text = "kernel gemm\nparam n: i32\narg a: f64[n, n] in\narg b: f64[n, n] in\narg c: f64[n, n] inout\n\n\
//!             for i in 0..n\n  for j in 0..n\n    for k in 0..n\n      s: c[i, j] += a[i, k]*b[k, j]\n";
//! let kernel = kingpost_ir::text::parse(text)?;
//! let params = BTreeMap::from([("n".to_owned(), 1000)]);
//! let proposals = propose(&kernel, &params, &Machine::default())?;
//! let first = proposals.first().ok_or("none")?;
//! assert!(first.recipe.steps.len() > 2 && first.cycles < proposals.last().ok_or("none")?.cycles);
//! assert_eq!(first.recipe.apply(&kernel)?, first.kernel);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A proposal is a schedule like any other: text that can be read, edited and replayed. The program
//! as it is written is always one of them.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod asked;
mod blocks;
mod cards;
mod draft;
mod model;
mod nests;
mod one_pass;
mod pieces;
mod program;
mod reschedules;
mod rounds;
mod short;
mod sums;
#[cfg(test)]
mod tests;
mod time_tiles;

pub use cards::propose_for_card;
pub use model::{Machine, cycles};

use draft::{Draft, Tried};
use kingpost_ir::Kernel;
use kingpost_isl::Objective;
use kingpost_steps::{Recipe, TransformError};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A schedule that may be fast.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// What it is made of, as in `order, registers`.
    pub name: String,
    /// The kernel after all steps.
    pub kernel: Kernel,
    /// The steps.
    pub recipe: Recipe,
    /// Cycles that the model predicts, of a processor.
    pub cycles: f64,
    /// Seconds that another model predicts, where one was asked.
    pub seconds: Option<f64>,
    /// What was considered for it: a line for each idea, with what came of it.
    pub considered: Vec<String>,
}

impl Proposal {
    /// The schedule as text: the prediction and what was considered as comments, if asked for, then
    /// the steps.
    #[must_use]
    pub fn text(&self, why: bool) -> String {
        let predicted = match self.seconds {
            Some(seconds) => format!("{seconds:.2e} s"),
            None => format!("{:.3e} cycles", self.cycles),
        };
        let head = format!("# {}: {predicted} predicted\n", self.name);
        let considered = self.considered.iter().filter(|_| why).map(|line| format!("# {}\n", one_line(line)));
        let steps = kingpost_steps::schedule::print(&self.recipe);
        head + &considered.collect::<String>() + &steps
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Ideas in the order in which they are tried, each on what those before have made.
type Idea = (&'static str, fn(&mut Draft<'_>) -> Tried);

const ORDER: Idea = ("order", |d| d.order_loops());
const ROWS: Idea = ("rows", |d| d.in_cache(Draft::order_loops));
const PUSH: Idea = ("push", |d| d.push_updates());
const FUSION: Idea = ("fusion", |d| d.fuse_loops());
const WAVES: Idea = ("waves", |d| d.skew_waves());
const SMALL: Idea = ("registers 4", |d| d.block_registers(&[4]));
const SQUARE: Idea = ("registers 4 by 4", |d| d.block_registers(&[4, 4]));
const LONG: Idea = ("registers 8 by 2", |d| d.block_registers(&[8, 2]));
const TILES: Idea = ("tiles", |d| d.tile_caches());
const PARALLEL: Idea = ("parallel bands", |d| {
    d.restart(ISL, |d| d.reschedule(Objective { outer_parallel: true, ..Objective::default() }))
});
const FUSED: Idea = ("fused bands", |d| d.restart(ISL, |d| d.reschedule(Objective::default())));
const TILED: Idea = ("tiled bands", |d| d.restart(ISL, Draft::reschedule_in_tiles));
const TIME: Idea = ("tiles in time", |d| d.tile_in_time([&[64, 1024], &[32, 64, 256], &[8, 16, 32]]));
const LONG_TIME: Idea =
    ("long tiles in time", |d| d.tile_in_time([&[128, 2048], &[16, 64, 1024], &[8, 16, 32, 256]]));

const PIECES: Idea = ("tiles in pieces", |d| d.tile_pieces());
const NEXT: Idea = ("next order", |d| d.take_next_pieces());
const EXPANDED: Idea = ("expanded scalars", |d| d.expand_scalars());
const BLOCKS: Idea = ("blocks", |d| d.hold_blocks());
const MEETINGS: Idea = ("meetings", |d| d.cut_meetings());
const ROUNDS: Idea = ("rounds", |d| d.run_rounds());
const SHORT: Idea = ("short loops", |d| d.write_out_short());
const AGAIN: Idea = ("values again", |d| d.compute_again());
const LANES: Idea = ("lanes", |d| d.sum_in_lanes());
const ONCE: Idea = ("one pass", |d| d.pass_once());

/// What the loops of isl's scheduler are called in reports.
const ISL: &str = "isl's schedule";

/// The combinations of ideas that become proposals: each is the fastest for one of PolyBench's kernels or of
/// the other programs of that study, or what is left where the model takes more of it than pays.
const COMBINATIONS: [&[Idea]; 25] = [
    &[ORDER],
    &[ROWS, TILES, SQUARE],
    &[ORDER, WAVES, SMALL],
    &[ORDER, FUSION, WAVES, LONG],
    &[SQUARE],
    &[PARALLEL, ORDER, SMALL],
    &[TILED],
    &[FUSED, ORDER, SQUARE],
    &[PUSH],
    &[PUSH, ORDER, FUSION],
    &[PUSH, ORDER, FUSION, SQUARE],
    &[TIME, WAVES],
    &[LONG_TIME, WAVES],
    &[PIECES],
    &[PIECES, NEXT],
    &[EXPANDED, PIECES],
    &[MEETINGS],
    &[ROUNDS],
    &[LANES],
    &[SHORT],
    &[AGAIN],
    &[BLOCKS],
    &[BLOCKS, ROWS, TILES, SQUARE],
    &[ONCE],
    &[ONCE, LANES],
];

/// How many proposals threads are given.
const SHARED: usize = 8;

/// Proposals for one thread of a processor, or several, those first that the model takes for the
/// fastest; the program as it is written is one of them. Equal ones are left out.
///
/// `params` are the sizes that the model counts with; the schedules are legal for all.
///
/// # Errors
/// A bug of the engine. A step that is refused only ends the idea that it belongs to.
pub fn propose(
    kernel: &Kernel,
    params: &BTreeMap<String, i64>,
    machine: &Machine,
) -> Result<Vec<Proposal>, TransformError> {
    let written = Draft::written(kernel, params, machine)?;
    let mut start = written.clone();
    start.realise_sums()?;
    let mut drafts = vec![("as written".to_owned(), written), ("sums in loops".to_owned(), start.clone())];
    // combinations that begin alike share what they have in common, and the others run on other threads
    let mut groups: Vec<(&str, Vec<&[Idea]>)> = Vec::new();
    for ideas in COMBINATIONS {
        let first = ideas.first().map_or("", |(name, _)| *name);
        match groups.iter_mut().find(|(name, _)| *name == first) {
            Some((_, group)) => group.push(ideas),
            None => groups.push((first, vec![ideas])),
        }
    }
    let made: Result<Vec<_>, TransformError> =
        groups.par_iter().map(|(_, group)| combined(&start, group)).collect();
    drafts.extend(made?.into_iter().flatten());
    if machine.threads > 1 {
        // each is cut into launches, which takes a question for each loop
        let mut best = drafts.clone();
        best.sort_by(|(_, a), (_, b)| a.cycles.total_cmp(&b.cycles));
        best.truncate(SHARED);
        let shared: Result<Vec<_>, TransformError> = best.into_par_iter().map(shared).collect();
        drafts.extend(shared?.into_iter().flatten());
    }
    let mut found = proposals(drafts);
    found.sort_by(|a, b| a.cycles.total_cmp(&b.cycles));
    // only some are timed: a stage of a proposal that is much faster comes after the others
    let is_stage = |p: &Proposal| {
        let longer = format!("{}, ", p.name);
        let goes_on = |name: &str| name.starts_with(&longer) && !name.ends_with("threads");
        found.iter().any(|other| goes_on(&other.name) && 1.5 * other.cycles < p.cycles)
    };
    let stages: Vec<bool> = found.iter().map(is_stage).collect();
    let (stages, ends): (Vec<_>, Vec<_>) = found.into_iter().zip(stages).partition(|(_, is_stage)| *is_stage);
    Ok(ends.into_iter().chain(stages).map(|(proposal, _)| proposal).collect())
}

/// A draft for threads, if a loop of it is parallel.
fn shared((name, mut draft): (String, Draft<'_>)) -> Tried<Option<(String, Draft<'_>)>> {
    // tiles in time are parallel along their diagonals alone
    if name.contains("in time") {
        draft.restart("waves of tiles", |d| d.skew_outer(0))?;
    }
    if !draft.share_among_threads()? {
        return Ok(None);
    }
    draft.cycles /= draft.machine.threads as f64;
    Ok(Some((format!("{name}, threads"), draft)))
}

/// A draft for each combination of ideas, with the names of these.
fn combined<'a>(start: &Draft<'a>, group: &[&[Idea]]) -> Result<Vec<(String, Draft<'a>)>, TransformError> {
    let mut done: BTreeMap<Vec<&str>, Draft<'a>> = BTreeMap::new();
    let mut drafts = Vec::new();
    for ideas in group {
        let mut draft = start.clone();
        let mut names = Vec::new();
        for (name, apply) in *ideas {
            names.push(*name);
            draft = match done.get(&names) {
                Some(known) => known.clone(),
                None => {
                    apply(&mut draft)?;
                    done.insert(names.clone(), draft.clone());
                    draft
                }
            };
        }
        drafts.push((names.join(", "), draft));
    }
    Ok(drafts)
}

/// Proposals of drafts with their names, equal ones once.
fn proposals(drafts: Vec<(String, Draft<'_>)>) -> Vec<Proposal> {
    let mut found: Vec<Proposal> = Vec::new();
    for (name, draft) in drafts {
        let Draft { schedule, cycles, considered, .. } = draft;
        let (kernel, recipe) = schedule.finish();
        match found.iter_mut().find(|other| other.kernel == kernel) {
            Some(same) => {
                let new: Vec<_> = considered.into_iter().filter(|l| !same.considered.contains(l)).collect();
                same.considered.extend(new);
            }
            None => found.push(Proposal { name, kernel, recipe, cycles, seconds: None, considered }),
        }
    }
    found
}
