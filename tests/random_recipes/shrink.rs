//! Makes a failing pair small: the program by its plan, the recipe by leaving steps out.

use crate::devices::{self, Place, Verdict};
use crate::pair::{Broken, Draft, Pair, check};
use crate::reduce::Journal;
use crate::tally::Tally;
use kingpost::transforms::{Recipe, Step};
use proptest::strategy::ValueTree;
use std::time::{Duration, Instant};

/// A draft that can be made smaller.
pub struct Tree(pub Box<dyn ValueTree<Value = Draft>>);

/// How long a failure is made smaller.
const PATIENCE: Duration = Duration::from_secs(90);

/// The smallest draft that is found to fail, and what it fails with.
fn smallest<T>(tree: &mut Tree, journal: &Journal, fails: impl Fn(&Draft) -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let fails = |draft: &Draft| journal.ask(|| fails(draft));
    let mut best = fails(&tree.0.current());
    let mut smaller = tree.0.simplify();
    while smaller && start.elapsed() < PATIENCE {
        match fails(&tree.0.current()) {
            Some(failure) => {
                best = Some(failure);
                smaller = tree.0.simplify();
            }
            None => smaller = tree.0.complicate(),
        }
    }
    best
}

/// Replays steps that are accepted; what breaks a promise is an error.
pub fn replay(pair: &Pair) -> Result<Pair, Box<Broken>> {
    let memory = pair.memory();
    let mut kernel = kingpost::ir::text::parse(&pair.before).unwrap();
    let mut accepted: Vec<Step> = Vec::new();
    for step in &pair.recipe.steps {
        let result = check(&kernel, &memory, step);
        let done = |steps: Vec<Step>, kernel: &kingpost::ir::Kernel| Pair {
            recipe: Recipe::new(steps),
            after: kernel.to_string(),
            ..pair.clone()
        };
        match result {
            Ok(Some(result)) => {
                kernel = result;
                accepted.push(step.clone());
            }
            Ok(None) => {}
            Err(why) => {
                accepted.push(step.clone());
                return Err(Box::new(Broken { pair: done(accepted, &kernel), why }));
            }
        }
    }
    Ok(Pair { recipe: Recipe::new(accepted), after: kernel.to_string(), ..pair.clone() })
}

/// Leaves out every step without which the pair still fails.
fn shorter<T>(
    pair: Pair,
    journal: &Journal,
    fails: impl Fn(&Pair) -> Option<(Pair, T)>,
) -> Option<(Pair, T)> {
    let (start, mut k) = (Instant::now(), 0);
    let fails = |pair: &Pair| journal.ask(|| fails(pair));
    let mut best = fails(&pair)?;
    while k < best.0.recipe.steps.len() && start.elapsed() < PATIENCE {
        let mut fewer = best.0.clone();
        fewer.recipe.steps.remove(k);
        match fails(&fewer) {
            Some(failure) => best = failure,
            None => k += 1,
        }
    }
    Some(best)
}

/// The report of a step that breaks a promise.
pub fn broken(tree: &mut Tree, journal: &Journal) -> String {
    let found = smallest(tree, journal, |draft| draft.pair(&mut Tally::default()).err());
    let Some(found) = found else { return "a failure that does not repeat".into() };
    let again = shorter(found.pair.clone(), journal, |pair| replay(pair).err().map(|b| (b.pair.clone(), *b)));
    crate::report_broken(&again.map_or(*found, |(_, b)| b))
}

/// The report of a pair with other results on a device.
pub fn wrong(tree: &mut Tree, place: Place, journal: &Journal) -> String {
    let verdict = |pair: &Pair| {
        let pairs = std::slice::from_ref(pair);
        match devices::verdicts(place, pairs, devices::start(place, pairs)).pop().flatten() {
            // smaller pairs may meet a compiler's fault instead
            Some(Verdict::Wrong(_)) if devices::fault(place, pair).is_some() => None,
            Some(Verdict::Wrong(why)) => Some(why),
            Some(Verdict::Same | Verdict::Refused(_)) | None => None,
        }
    };
    match judged(tree, journal, verdict) {
        Some((pair, why)) => crate::report(&pair, &format!("on {place:?}: {why}")),
        None => format!("a failure on {place:?} that does not repeat alone"),
    }
}

/// The smallest pair that is found to fail a judge, and what that says; none where the first does
/// not.
pub fn judged<T>(
    tree: &mut Tree,
    journal: &Journal,
    verdict: impl Fn(&Pair) -> Option<T>,
) -> Option<(Pair, T)> {
    let fails = |draft: &Draft| {
        let pair = draft.pair(&mut Tally::default()).ok()?;
        verdict(&pair).map(|why| (pair, why))
    };
    let (pair, why) = smallest(tree, journal, fails)?;
    let replayed = |pair: &Pair| {
        let pair = replay(pair).ok()?;
        verdict(&pair).map(|why| (pair, why))
    };
    Some(shorter(pair.clone(), journal, replayed).unwrap_or((pair, why)))
}
