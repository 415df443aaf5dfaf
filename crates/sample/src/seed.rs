//! What random tests draw: programs that are the same in every ordinary run, and fresh numbers.

use proptest::test_runner::{Config, RngSeed};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// The seed of ordinary runs.
const USUAL: u64 = 1;

/// Whether this is a long run (`make test-all`): tests then take all of their cases.
pub fn is_long_run() -> bool {
    std::env::var_os("KINGPOST_TEST_ALL").is_some_and(|v| v != "0" && !v.is_empty())
}

/// In a long run all cases of a test, in an ordinary one those of these numbers, from 0: one of each kind.
///
/// # Panics
/// If there is no case of a number.
pub fn of_run<T>(cases: impl IntoIterator<Item = T>, few: &[usize]) -> Vec<T> {
    let cases: Vec<T> = cases.into_iter().collect();
    assert!(few.iter().all(|number| *number < cases.len()), "{few:?} of {} cases", cases.len());
    let numbered = cases.into_iter().enumerate();
    numbered.filter(|(k, _)| is_long_run() || few.contains(k)).map(|(_, case)| case).collect()
}

/// The seed of tests that draw programs, steps or malformed input, printed.
///
/// An ordinary run always draws the same, so that a change fails on what it breaks and on nothing
/// else. A run with `KINGPOST_TEST_ALL` draws again. `KINGPOST_SEED` has the last word: a number repeats
/// a run, `fresh` draws again.
///
/// # Panics
/// If `KINGPOST_SEED` is neither.
#[allow(clippy::panic)] // a test that cannot do what it was asked for fails
pub fn seed() -> u64 {
    let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = match std::env::var("KINGPOST_SEED").as_deref() {
        Ok("fresh") => fresh() % 1_000_000_007,
        Ok(number) => match number.parse() {
            Ok(seed) => seed,
            Err(_) => panic!("KINGPOST_SEED is `{number}`, needed a number or `fresh`"),
        },
        Err(_) if is_long_run() => fresh() % 1_000_000_007,
        Err(_) => USUAL,
    };
    println!("KINGPOST_SEED={seed}");
    seed
}

/// Settings of a property test that draws from [`seed`]: `cases` times in a long run, a third of that in an ordinary one.
///
/// # Panics
/// As [`seed`].
pub fn config(cases: u32) -> Config {
    let cases = if is_long_run() { cases } else { cases.div_ceil(3) };
    Config { cases, rng_seed: RngSeed::Fixed(seed()), failure_persistence: None, ..Config::default() }
}

/// Fresh pseudo-random numbers (SplitMix64); print `seed` when an assertion fails.
pub struct Random {
    /// What repeats the numbers.
    pub seed: u64,
    state: u64,
}

impl Random {
    /// Starts from a fresh seed.
    #[allow(clippy::new_without_default)] // no two are equal
    pub fn new() -> Self {
        Self::of(RandomState::new().build_hasher().finish())
    }

    /// Repeats the numbers of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Between -1 and 1.
    pub fn real(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// As many numbers between -1 and 1.
    pub fn reals(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.real()).collect()
    }

    /// From `lo` to `hi - 1`.
    pub fn int(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.bits() % (hi - lo) as u64) as i64
    }
}
