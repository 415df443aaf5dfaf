//! Programs with slips: whatever is made of the text of a program, with tags and without, nothing panics
//! or goes on for ever; what all checks accept computes in C what the interpreter computes, bit by bit.
//!
//! `KINGPOST_PROGRAMS` chooses how many, `KINGPOST_SEED` which.

use crate::devices::{self, Place, Verdict};
use crate::mutate::{mutated, with_exact_functions};
use crate::pair::Pair;
use crate::tally::Tally;
use crate::{drafts, regressions, variable};
use kingpost::analysis::Analysis;
use kingpost::codegen::Target;
use kingpost::interp::{InterpError, interpret_with};
use kingpost::ir::text::{parse, print};
use kingpost::transforms::Recipe;
use kingpost_sample::Random;
use proptest::strategy::ValueTree;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Mutated programs of a short run and of a long one.
const SHORT: u64 = 250;
const LONG: u64 = 20_000;

/// Mutants of a program, half of them of what a recipe made of it.
const MUTANTS: u64 = 10;

/// Steps of the interpreter within which a program must end to be compared.
const STEPS: u64 = 20_000;

/// How long all checks of one program may take together.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a mutant ended; each has to occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// The reader or the verifier refuses it.
    Text,
    /// No target has code for it.
    Code,
    /// There is code, and the values of the test do not suit it.
    Values,
    /// It runs.
    Runs,
}

/// What is wrong with a mutant.
struct Found {
    pair: Pair,
    why: String,
}

/// What the readers, checks and printers say of a program.
fn end(pair: &Pair) -> Result<End, String> {
    let text = &pair.before;
    let kernel = match parse(text) {
        Ok(kernel) => kernel,
        Err(errors) => {
            let spans = errors.errors().iter().all(|e| text.get(e.span.clone()).is_some());
            let shown = !errors.render(text).is_empty();
            return if spans && shown { Ok(End::Text) } else { Err(format!("{errors:?}")) };
        }
    };
    if parse(&print(&kernel)).as_ref() != Ok(&kernel) {
        return Err("the kernel does not read back".into());
    }
    let memory = pair.memory();
    let analysis = Analysis::of(&kernel);
    let _ = (analysis.check_placement().is_ok(), analysis.statistics(memory.params()).is_ok());
    let mut has_code = false;
    for target in [Target::C, Target::OpenCl, Target::Cuda] {
        match devices::refusal(pair, target) {
            None => has_code |= target == Target::C,
            Some(Verdict::Refused(message)) => {
                let is_ours =
                    message.starts_with(|c: char| !c.is_uppercase()) && !message.ends_with(['.', '\n']);
                is_ours.then_some(()).ok_or_else(|| format!("a message in another style: {message}"))?;
            }
            Some(Verdict::Wrong(why)) => return Err(format!("code for {target}: {why}")),
            Some(Verdict::Same) => {}
        }
    }
    if !has_code {
        return Ok(End::Code);
    }
    // the check of a launch takes as many steps as it needs
    match interpret_with(&kernel, &mut memory.clone(), &mut (), Some(STEPS)) {
        Ok(_) => {
            let _ = analysis.check_launch(&memory).is_ok(); // may ask for more than these values keep
            Ok(End::Runs)
        }
        Err(e @ InterpError::OutOfBounds { .. }) if analysis.check_launch(&memory).is_ok() => {
            Err(format!("the check of a launch accepts what leaves an array: {e}"))
        }
        Err(_) => Ok(End::Values),
    }
}

/// The mutants of the pairs of a batch, and the changes that made each.
fn mutants(seed: u64, number: u64) -> Vec<(Pair, Vec<&'static str>)> {
    let mut random = Random::of(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut found = Vec::new();
    for tree in drafts(seed, number, None).into_iter().take(5) {
        let Ok(pair) = tree.0.current().pair(&mut Tally::default()) else { continue }; // of another test
        for k in 0..MUTANTS {
            let mut text = with_exact_functions(if k % 2 == 0 { &pair.before } else { &pair.after });
            let mut changes = Vec::new();
            for _ in 0..1 + random.bits() % 3 {
                if let Some((other, change)) = mutated(&text, &mut random) {
                    (text, changes) = (other, [changes, vec![change]].concat());
                }
            }
            let recipe = Recipe::default();
            found.push((
                Pair { before: text.clone(), after: text, recipe, exact: true, ..pair.clone() },
                changes,
            ));
        }
    }
    found
}

/// What the workers do now, for the one that watches them.
type Busy = Mutex<BTreeMap<u64, (Instant, String)>>;

/// Judges the mutants of a batch: how many ended how, and the first that is wrong.
fn judge(seed: u64, number: u64, busy: &Busy) -> (BTreeMap<End, u64>, Option<Found>) {
    let mut ends = BTreeMap::<End, u64>::new();
    let mut running = Vec::new();
    for (pair, changes) in mutants(seed, number) {
        busy.lock().unwrap().insert(number, (Instant::now(), pair.before.clone()));
        let ended = catch_unwind(AssertUnwindSafe(|| end(&pair))).unwrap_or_else(|panic| {
            Err(format!("panic: {}", panic.downcast_ref::<String>().map_or("", String::as_str)))
        });
        busy.lock().unwrap().remove(&number);
        match ended {
            Ok(end) => {
                *ends.entry(end).or_default() += 1;
                if end == End::Runs {
                    running.push(pair);
                }
            }
            Err(why) => return (ends, Some(Found { pair, why: format!("{why}\nafter {changes:?}") })),
        }
    }
    let verdicts = devices::verdicts(Place::C, &running, devices::start(Place::C, &running));
    for (pair, verdict) in running.into_iter().zip(verdicts) {
        let Some(Verdict::Wrong(why)) = verdict else { continue };
        match devices::fault(Place::C, &pair) {
            Some(_) => println!("a compiler's fault, saved as {}: {why}", regressions::save(&pair)),
            None => return (ends, Some(Found { pair, why: format!("in C: {why}") })),
        }
    }
    (ends, None)
}

/// Ends the test where a program takes too long: its thread cannot be stopped.
fn watch(busy: &Busy) {
    let late = busy.lock().unwrap().values().find(|(start, _)| start.elapsed() > PATIENCE).cloned();
    if let Some((_, text)) = late {
        eprintln!("no end within {} s of\n{text}", PATIENCE.as_secs());
        std::process::exit(1);
    }
}

#[test]
fn programs_with_slips_are_refused_or_agree() {
    let default = if kingpost_sample::is_long_run() { LONG } else { SHORT };
    let wanted = variable("KINGPOST_PROGRAMS").unwrap_or(default);
    let seed = kingpost_sample::seed();
    let (ends, found) = (Mutex::new(BTreeMap::<End, u64>::new()), Mutex::new(None));
    let (next, busy) = (AtomicU64::new(0), Busy::default());
    let batches = wanted.div_ceil(5 * MUTANTS);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            while found.lock().unwrap().is_none() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= batches {
                    break;
                }
                let (batch, wrong) = judge(seed, number, &busy);
                let mut ends = ends.lock().unwrap();
                batch.into_iter().for_each(|(end, times)| *ends.entry(end).or_default() += times);
                if batches > 20 && number.is_multiple_of(batches / 20) {
                    eprintln!("{:?} after {} of {batches} batches", *ends, number + 1);
                }
                drop(ends);
                if wrong.is_some() {
                    *found.lock().unwrap() = wrong;
                }
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|w| !w.is_finished()) {
            watch(&busy);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let ends = ends.into_inner().unwrap();
    println!("{ends:?}; KINGPOST_SEED={seed}");
    if let Some(Found { pair, why }) = found.into_inner().unwrap() {
        panic!("KINGPOST_SEED={seed}: {why}\nsaved as {}", regressions::save(&pair));
    }
    let all = [End::Text, End::Code, End::Values, End::Runs];
    let rare: Vec<_> = all.iter().filter(|end| ends.get(end).is_none_or(|n| 50 * n < wanted)).collect();
    assert!(wanted < SHORT || rare.is_empty(), "fewer than a fiftieth end in {rare:?}; KINGPOST_SEED={seed}");
}
