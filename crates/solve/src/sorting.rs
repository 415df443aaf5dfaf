//! Sums of what stands before numbers, and orders of keys, as launches that do not wait for the
//! host.

use crate::pattern::{PatternKernels, too_many};
use crate::{Call, SolveError};
use kingpost_runtime::{Buffer, Device, download_values};

/// Numbers that a work-group adds up in a scan.
pub(crate) const BLOCK: usize = 4096;
/// Keys that a work-item counts digits of when keys are sorted, and how many digits there are.
pub(crate) const RUN: usize = 64;
const DIGITS: usize = 32;

/// What sums of numbers need besides them: sums of blocks, of blocks of blocks, to one number.
pub(crate) struct Scan {
    /// Of the numbers, of their blocks, and so on.
    sizes: Vec<usize>,
    sums: Vec<Buffer>,
    /// What stands before each block.
    before: Vec<Buffer>,
    zero: Buffer,
}

impl Scan {
    /// Of `n` numbers.
    pub(crate) fn new(device: &dyn Device, n: usize) -> Result<Self, SolveError> {
        let integers = |n: usize| device.allocate_unset(4 * n as u64);
        let (mut sizes, mut sums, mut before) = (vec![n], Vec::new(), Vec::new());
        while let Some(size) = sizes.last().copied().filter(|size| *size > 1) {
            if sizes.len() > 1 {
                before.push(integers(size)?);
            }
            sums.push(integers(size.div_ceil(BLOCK))?);
            sizes.push(size.div_ceil(BLOCK));
        }
        let zero = integers(1)?;
        device.fill(&zero, 0)?;
        Ok(Self { sizes, sums, before, zero })
    }

    /// Appends what adds the numbers up.
    pub(crate) fn push_total<'a>(
        &'a self,
        kernels: &'a PatternKernels,
        numbers: &'a Buffer,
        calls: &mut Vec<Call<'a>>,
    ) {
        for (level, sums) in self.sums.iter().enumerate() {
            let arrays = [("a", self.of_level(level, numbers)), ("sums", sums)];
            calls.push(Call::of(&kernels.sum, &[("n", self.sizes[level])], &arrays));
        }
    }

    /// Appends what writes the sum of what stands before each of the numbers, of which the last is
    /// zero.
    pub(crate) fn push<'a>(
        &'a self,
        kernels: &'a PatternKernels,
        (numbers, before): (&'a Buffer, &'a Buffer),
        calls: &mut Vec<Call<'a>>,
    ) {
        self.push_total(kernels, numbers, calls);
        // and back: what stands before a block is known once those of the blocks above are
        for level in (0..self.sums.len()).rev() {
            let above = self.before.get(level).unwrap_or(&self.zero);
            let scanned = if level == 0 { before } else { &self.before[level - 1] };
            let arrays = [("a", self.of_level(level, numbers)), ("before", above), ("scanned", scanned)];
            calls.push(Call::of(&kernels.scan, &[("n", self.sizes[level])], &arrays));
        }
    }

    fn of_level<'a>(&'a self, level: usize, numbers: &'a Buffer) -> &'a Buffer {
        if level == 0 { numbers } else { &self.sums[level - 1] }
    }

    /// The sum of all, once the launches have ended; zero of a single number.
    pub(crate) fn total(&self, device: &dyn Device) -> Result<usize, SolveError> {
        let Some(total) = self.sums.last() else { return Ok(0) };
        let total = download_values::<i32>(device, total)?.iter().sum::<i32>();
        usize::try_from(total).map_err(|_| too_many())
    }
}

/// Keys, and the items that have them.
pub(crate) type Pairs = [Buffer; 2];

/// What the order of keys needs besides them: digit by digit, how many of each run have each digit
/// says where each one goes.
pub(crate) struct Sort {
    n: usize,
    /// What keys are divided by for each digit.
    divisors: Vec<usize>,
    pairs: [Pairs; 2],
    counts: Buffer,
    before: Buffer,
    places: Buffer,
    scan: Scan,
}

impl Sort {
    /// Of `n` keys, which are -1 or numbers below `n_keys`.
    pub(crate) fn new(device: &dyn Device, n_keys: usize, n: usize) -> Result<Self, SolveError> {
        let integers = |n: usize| device.allocate_unset(4 * n as u64);
        let pairs = || -> Result<Pairs, SolveError> { Ok([integers(n)?, integers(n)?]) };
        let n_runs = n.div_ceil(RUN);
        let counts = integers((DIGITS + 1) * n_runs)?;
        device.fill(&counts, 0)?; // what stands after the counts
        // a first digit moves the keys to memory of their own, whatever they are
        let mut divisors = vec![1];
        while divisors.last().is_some_and(|last| last * DIGITS <= n_keys) {
            divisors.push(DIGITS.pow(divisors.len() as u32));
        }
        Ok(Self {
            n,
            divisors,
            pairs: [pairs()?, pairs()?],
            counts,
            before: integers((DIGITS + 1) * n_runs)?,
            places: integers(n)?,
            scan: Scan::new(device, DIGITS * n_runs + 1)?,
        })
    }

    /// Appends what sorts the numbers below `n` by their keys, those of one key ascending.
    pub(crate) fn push<'a>(
        &'a self,
        kernels: &'a PatternKernels,
        keys: &'a Buffer,
        calls: &mut Vec<Call<'a>>,
    ) {
        if self.n == 0 {
            return;
        }
        let mut keys = keys;
        calls.push(Call::of(&kernels.count_up, &[("n", self.n)], &[("items", &self.pairs[0][1])]));
        for (pass, divisor) in self.divisors.iter().enumerate() {
            let (from, to) = (&self.pairs[pass % 2], &self.pairs[(pass + 1) % 2]);
            let n_runs = self.n.div_ceil(RUN);
            let sizes = [("n", self.n), ("n_runs", n_runs), ("divisor", *divisor)];
            let arrays = [("keys", keys), ("counts", &self.counts)];
            calls.push(Call::of(&kernels.digits, &sizes, &arrays));
            self.scan.push(kernels, (&self.counts, &self.before), calls);
            let arrays = [("keys", keys), ("before", &self.before), ("places", &self.places)];
            calls.push(Call::of(&kernels.digit_places, &sizes, &arrays));
            let arrays = [("keys", keys), ("items", &from[1]), ("places", &self.places)];
            let arrays = [&arrays[..], &[("moved_keys", &to[0]), ("moved_items", &to[1])]].concat();
            calls.push(Call::of(&kernels.pairs, &sizes[..1], &arrays));
            keys = &to[0];
        }
    }

    /// Keys and items, sorted once the launches have ended.
    pub(crate) const fn sorted(&self) -> &Pairs {
        &self.pairs[self.divisors.len() % 2]
    }

    /// The same, without what they took.
    pub(crate) fn into_sorted(self) -> Pairs {
        let [even, odd] = self.pairs;
        if self.divisors.len().is_multiple_of(2) { even } else { odd }
    }
}
