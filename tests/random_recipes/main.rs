//! Random programs and random recipes over all primitives: what is accepted computes the same in
//! the interpreter before and after each step, in C, in OpenCL on the CPU, and in CUDA where there
//! is a card.
//!
//! A pair that pocl gets wrong by both of its methods is asked of oclgrind: pocl is at fault where
//! that and C are right.
//!
//! The texts of such programs are also changed at random, and the checks are asked what they accept
//! (`mutants.rs`).
//!
//! `KINGPOST_SEED` chooses the pairs (a number, or `fresh`),
//! `KINGPOST_PAIRS` how many, `KINGPOST_PROGRAMS` how many changed programs, `KINGPOST_EXTENT` the largest extent
//! of a loop, `KINGPOST_ARITHMETIC=0` programs as they were before 2026-11-30, `KINGPOST_TEST_ALL` a long run;
//! CONTRIBUTING.md says how to run them on a machine with a card.
//! What they find is saved below `target/tmp`, or below the directory for
//! temporary files where that cannot be written, and printed.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod devices;
mod draw;
mod harvest;
mod hip;
mod mutants;
mod mutate;
mod pair;
mod reduce;
mod regressions;
mod shrink;
mod tally;

use devices::{Fault, Place, Verdict};
use kingpost::transforms::primitives::ReduceInTree;
use kingpost_sample::{SampleConfig, plan::arbitrary_plan};
use pair::{Broken, Draft, Pair};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reduce::{Fails, Limits, Origin};
use shrink::Tree;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tally::Tally;

/// Pairs in one program: enough that starting compilers does not count, few enough to fit in
/// memory.
const BATCH: usize = 50;

/// Maximum number of steps that are tried on one program.
const STEPS: usize = 12;

/// Primitives that at most one program in a hundred has room for, as measured over 2,000 pairs: a
/// run of a few hundred may miss one by chance, a long one may not.
const UNCOMMON: [&str; 37] = [
    "collect_factors",
    "combine_orbits",
    "contract_array",
    "decompose_parity",
    "drop_zero_terms",
    "duplicate_iname",
    "embed_table",
    "expand_products",
    "expand_rule",
    "factor_out",
    "factor_quadrature",
    "factor_rank",
    "factorise_sum",
    "guard_iname",
    "inline_call",
    "join_array_axes",
    "join_inames",
    "launch_hint",
    "list_elements",
    "mirror_triangle",
    "pad_inames",
    "parallelise_scan",
    "pass_blocks",
    "pre_evaluate_loop",
    "precompute_rule",
    "realise_scan",
    "reorder_rows",
    "replace_with_intrinsic",
    "rescale_reduction",
    "roll_insns",
    "share_elements",
    "sink_accumulation",
    "skip_zero_blocks",
    "skip_zero_terms",
    "split_accumulation",
    "sum_moments",
    "use_symmetry",
];

/// Pairs from which on all of them run in OpenCL.
const MANY: u64 = 1000;

/// Pairs of a long run.
const LONG: u64 = 20_000;

/// What all workers have done so far.
#[derive(Default)]
struct Sum {
    /// Pairs that are to run.
    wanted: u64,
    /// Pairs that ran everywhere, and those of them whose code has a barrier and an atomic update.
    pairs: u64,
    replicated: u64,
    /// Pairs whose recipes make several trees.
    forests: u64,
    /// Pairs without code, by reason.
    refused: BTreeMap<String, u64>,
    tally: Tally,
    /// One a worker: each goes on to the end of its batch.
    failures: Vec<String>,
}

impl Sum {
    /// How many of the pairs that are wanted have not run; none when nothing is left to do.
    fn missing(&self) -> Option<u64> {
        (self.pairs < self.wanted && self.failures.is_empty()).then(|| self.wanted - self.pairs)
    }

    /// Adds what a batch has done; says so at each twentieth of a run that takes long.
    fn add(&mut self, batch: Self) {
        let twentieths = |pairs: u64| 20 * pairs / self.wanted.max(1);
        let before = twentieths(self.pairs);
        self.pairs += batch.pairs;
        if self.wanted > 500 && twentieths(self.pairs) > before {
            eprintln!("{} of {} pairs", self.pairs, self.wanted);
        }
        self.replicated += batch.replicated;
        self.forests += batch.forests;
        self.tally.add(&batch.tally);
        batch.refused.into_iter().for_each(|(why, times)| *self.refused.entry(why).or_default() += times);
    }
}

/// Whether programs have all arithmetic: pairs of seeds before 2026-11-30 have not.
fn has_arithmetic() -> bool {
    variable("KINGPOST_ARITHMETIC") != Some(0)
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn accepted_recipes_keep_results_everywhere() {
    let wanted = variable("KINGPOST_PAIRS").unwrap_or(if kingpost_sample::is_long_run() { LONG } else { 30 });
    let seed = kingpost_sample::seed();
    let places = places();
    let sum = Mutex::new(Sum { wanted, ..Sum::default() });
    let mut numbers = 0..0;
    // in rounds, so that which batches run does not depend on how long each takes
    loop {
        let missing = sum.lock().unwrap().missing();
        let Some(missing) = missing else { break };
        numbers = numbers.end..numbers.end + missing.div_ceil(BATCH as u64);
        in_parallel(numbers.clone(), &sum, |number| batch(seed, number, &places, &sum));
    }
    // whichever primitives chance has left out
    let missed = missing(&sum.lock().unwrap());
    in_parallel(0..missed.len() as u64, &sum, |k| aimed(seed, missed[k as usize], &places, &sum));
    let sum = sum.into_inner().unwrap();
    let share = if wanted < MANY { ", in OpenCL half of them" } else { "" };
    println!("{} pairs ran in the interpreter and in {places:?}{share}; KINGPOST_SEED={seed}", sum.pairs);
    println!(
        "{} steps accepted; {} pairs have a barrier and an atomic update, {} several trees",
        sum.tally.accepted(),
        sum.replicated,
        sum.forests
    );
    let aborted = devices::ABORTED.load(Ordering::Relaxed);
    if aborted > 0 {
        println!(
            "{aborted} programs at which pocl aborts or does not end unless it writes loops over the work-items"
        );
    }
    let unjudged = devices::UNJUDGED.load(Ordering::Relaxed);
    if unjudged > 0 {
        println!("{unjudged} programs that pocl does not compile either way, judged elsewhere");
    }
    let doubted = devices::DOUBTED.load(Ordering::Relaxed);
    if doubted > 0 {
        println!("{doubted} programs that pocl gets right only by the other of its methods");
    }
    let miscompiled = devices::MISCOMPILED.load(Ordering::Relaxed);
    if miscompiled > 0 {
        println!(
            "{miscompiled} programs that a compiler gets right only without optimisation; they are saved"
        );
    }
    let outvoted = devices::OUTVOTED.load(Ordering::Relaxed);
    if outvoted > 0 {
        println!("{outvoted} programs that pocl gets wrong, and C and oclgrind right; they are saved");
    }
    println!("{}", sum.tally);
    for (why, times) in &sum.refused {
        println!("{times:6} without code: {why}");
    }
    assert!(sum.failures.is_empty(), "KINGPOST_SEED={seed}: {}", sum.failures.join("\n\n"));
    assert_eq!(missing(&sum), Vec::<&str>::new(), "never accepted; KINGPOST_SEED={seed}");
    assert!(
        wanted < MANY || 500 * sum.forests >= sum.pairs,
        "few pairs have several trees; KINGPOST_SEED={seed}"
    );
}

/// Where pairs run: everywhere that this machine has.
fn places() -> Vec<Place> {
    let has =
        |device| kingpost::runtime::open(device).map_err(|e| println!("skipped: {device}: {e}")).is_ok();
    let mut places = vec![Place::C];
    if has("opencl") {
        places.extend([Place::OpenCl, Place::Replicated]);
        devices::has_simulator(); // says so if not
    }
    if has("cuda") {
        places.push(Place::Cuda);
    }
    places
}

/// The primitives that were never accepted; of a run that is not long, those that are common.
fn missing(sum: &Sum) -> Vec<&'static str> {
    let mut names = sum.tally.missing();
    names.retain(|name| sum.wanted >= LONG || !UNCOMMON.contains(name));
    names
}

/// Does some work, a part on each core at a time, until a pair fails.
fn in_parallel(numbers: Range<u64>, sum: &Mutex<Sum>, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(numbers.start);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while sum.lock().unwrap_or_else(|e| e.into_inner()).failures.is_empty() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if !numbers.contains(&number) {
                        break;
                    }
                    if let Err(e) = catch_unwind(AssertUnwindSafe(|| work(number))) {
                        let text = e.downcast_ref::<String>().cloned().unwrap_or_default();
                        let mut sum = sum.lock().unwrap_or_else(|e| e.into_inner());
                        sum.failures.push(format!("panic: {text}"));
                    }
                }
            });
        }
    });
}

/// The drafts of a batch: the same for the same seed, number and aim.
fn drafts(seed: u64, number: u64, aim: Option<&'static str>) -> Vec<Tree> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    for (k, letter) in aim.unwrap_or_default().bytes().enumerate() {
        let byte = &mut bytes[16 + k % 16];
        *byte = byte.rotate_left(3) ^ letter;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    // loops that fill vectors of a processor are longer than those that show our own faults
    let extent = variable("KINGPOST_EXTENT").map_or(SampleConfig::default().extent, |n| n.cast_signed());
    let draft = |simple: bool| {
        let config = if simple {
            SampleConfig { nests: 2, launches: true, extent, ..SampleConfig::simple() }
        } else {
            // two idioms: two sums, of which each may become a tree
            SampleConfig {
                extent,
                idioms: 2,
                launches: true,
                records: true,
                strides: true,
                arithmetic: has_arithmetic(),
                ..SampleConfig::default()
            }
        };
        // a quarter of the updates becomes stores
        let stores = (any::<u8>(), any::<u8>()).prop_map(|(a, b)| a & b);
        let rest = (stores, any::<bool>(), proptest::collection::vec(any::<[u8; 11]>(), 1..=STEPS));
        (arbitrary_plan(config), rest)
            .prop_map(move |(plan, (stores, fixed, picks))| Draft { plan, simple, stores, fixed, picks, aim })
            .boxed()
    };
    let strategy = prop_oneof![2 => draft(false), 1 => draft(true)];
    (0..BATCH).map(|_| Tree(Box::new(strategy.new_tree(&mut runner).unwrap()))).collect()
}

/// Draws, transforms and runs the pairs of one batch.
fn batch(seed: u64, number: u64, places: &[Place], sum: &Mutex<Sum>) {
    let (mut tally, mut drawn) = (Tally::default(), Vec::new());
    for (k, tree) in drafts(seed, number, None).into_iter().enumerate() {
        let of = Origin { seed, number, k, aim: None };
        match tree.0.current().pair(&mut tally) {
            Ok(pair) => drawn.push((of, pair)),
            Err(found) => return sum.lock().unwrap().failures.push(smallest_broken(&of, &found)),
        }
    }
    // pocl's compiler takes most of the time of a short run
    let in_opencl = sum.lock().unwrap().wanted >= MANY || number.is_multiple_of(2);
    let places: Vec<_> =
        places.iter().copied().filter(|place| in_opencl || place.device() != "opencl").collect();
    judge(drawn, tally, &places, sum);
}

/// Batches in which a primitive is looked for.
const AIMED: u64 = 20;

/// Runs a pair with a primitive that was never accepted: it is tried before every step, until a program has
/// room for it. So that it is found does not depend on how often it is drawn.
fn aimed(seed: u64, name: &'static str, places: &[Place], sum: &Mutex<Sum>) {
    let mut tally = Tally::default();
    let numbered =
        |number| drafts(seed, number, Some(name)).into_iter().enumerate().map(move |it| (number, it));
    for (number, (k, tree)) in (0..AIMED).flat_map(numbered) {
        let of = Origin { seed, number, k, aim: Some(name.into()) };
        match tree.0.current().pair(&mut tally) {
            Ok(pair) if !tally.missing().contains(&name) => {
                return judge(vec![(of, pair)], tally, places, sum);
            }
            Ok(_) => {}
            Err(found) => return sum.lock().unwrap().failures.push(smallest_broken(&of, &found)),
        }
    }
}

/// Runs pairs everywhere.
fn judge(drawn: Vec<(Origin, Pair)>, tally: Tally, places: &[Place], sum: &Mutex<Sum>) {
    let (origins, pairs): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
    // one a batch: all steps again
    pairs.first().into_iter().for_each(pair::check_text);
    let running: Vec<_> = places.iter().map(|place| (*place, devices::start(*place, &pairs))).collect();
    let verdicts: Vec<_> = running.into_iter().map(|(p, r)| (p, devices::verdicts(p, &pairs, r))).collect();
    let (mut wrong, mut miscompiled) = (None, Vec::new());
    let mut done = Sum { tally, ..Sum::default() };
    for (k, pair) in pairs.iter().enumerate() {
        let of = |place: &(Place, Vec<Option<Verdict>>)| place.1[k].clone().map(|v| (place.0, v));
        let found: Vec<(Place, Verdict)> = verdicts.iter().filter_map(of).collect();
        for (place, verdict) in &found {
            if let (Verdict::Wrong(why), None) = (verdict, wrong)
                && !is_excused(*place, pair, why, &mut miscompiled)
            {
                wrong = Some((k, *place)); // what follows a fault on a card fails, too
            }
        }
        match found.iter().find_map(|(_, v)| if let Verdict::Refused(why) = v { Some(why) } else { None }) {
            Some(why) => *done.refused.entry(class(why)).or_default() += 1,
            None => {
                done.pairs += 1;
                done.forests += u64::from(trees_of(pair) > 1);
                done.replicated += u64::from(found.iter().any(|(place, _)| *place == Place::Replicated));
            }
        }
    }
    if let Some((k, place)) = wrong {
        let failure = reduce::report(&origins[k], &Fails::On(place), Limits::USUAL);
        let failure = failure.unwrap_or_else(|| report(&pairs[k], &format!("on {place:?}, as it was drawn")));
        sum.lock().unwrap().failures.push(failure);
        return;
    }
    sum.lock().unwrap().add(done);
}

/// How many trees a recipe makes.
fn trees_of(pair: &Pair) -> usize {
    pair.recipe.steps.iter().filter(|step| step.get::<ReduceInTree>().is_some()).count()
}

/// Whether a wrong result is a compiler's fault, which is saved and counted, or follows one on the
/// same device.
fn is_excused(place: Place, pair: &Pair, why: &str, miscompiled: &mut Vec<Place>) -> bool {
    if let Some(fault) = devices::fault(place, pair) {
        let (count, whose) = match fault {
            Fault::Compiler => (&devices::MISCOMPILED, "the compiler"),
            Fault::Pocl => (&devices::OUTVOTED, "pocl, against C and oclgrind,"),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let files = regressions::save_with_source(pair, place);
        println!("on {place:?} {whose} is at fault, saved as {files}: {why}");
        miscompiled.push(place);
        return true;
    }
    miscompiled.contains(&place) && devices::is_right_alone(place, pair)
}

/// A message without its names.
fn class(message: &str) -> String {
    let quoted = message.split('`').enumerate();
    quoted.map(|(k, part)| if k % 2 == 0 { part } else { "_" }).collect()
}

/// What a failure looks like: names of the files to commit, the pair, and what went wrong.
fn report(pair: &Pair, why: &str) -> String {
    let files = regressions::save(pair);
    format!(
        "{why}\nsaved as {files}; move it to tests/regressions\n{}\n{}\n=>\n{}",
        pair.before, pair.recipe, pair.after
    )
}

/// The report of a step that breaks a promise, of the smallest pair that is found to.
fn smallest_broken(of: &Origin, found: &Broken) -> String {
    reduce::report(of, &Fails::Broken, Limits::USUAL).unwrap_or_else(|| report_broken(found))
}

fn report_broken(broken: &Broken) -> String {
    report(&broken.pair, &broken.why)
}
