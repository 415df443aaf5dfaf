//! Which programs random tests draw: the same ones in every ordinary run.

use proptest::test_runner::{Config, RngSeed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The seed of ordinary runs.
const USUAL: u64 = 1;

/// The seed of tests that draw programs, steps or malformed input, printed.
///
/// An ordinary run always draws the same, so that a change fails on what it breaks and on nothing else. A run with
/// `PURLIN_TEST_ALL` draws anew. `PURLIN_SEED` has the last word: a number repeats a run, `fresh` draws anew.
///
/// # Panics
/// If `PURLIN_SEED` is neither.
#[allow(clippy::panic)] // a test that cannot do what it was asked for fails
pub fn seed() -> u64 {
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let all = std::env::var_os("PURLIN_TEST_ALL").is_some_and(|v| v != "0" && !v.is_empty());
    let seed = match std::env::var("PURLIN_SEED").as_deref() {
        Ok("fresh") => fresh() % 1_000_000_007,
        Ok(number) => match number.parse() {
            Ok(seed) => seed,
            Err(_) => panic!("PURLIN_SEED is `{number}`, needed a number or `fresh`"),
        },
        Err(_) if all => fresh() % 1_000_000_007,
        Err(_) => USUAL,
    };
    println!("PURLIN_SEED={seed}");
    seed
}

/// Settings of a property test that draws `cases` times from [`seed`].
///
/// # Panics
/// As [`seed`].
pub fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(seed()), failure_persistence: None, ..Config::default() }
}
