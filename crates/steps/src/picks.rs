//! What chooses the arguments of random steps.

use kingpost_ir::TableData;

/// The values that a kernel would be run with, for primitives that need one.
pub trait Inputs {
    /// The value of a parameter.
    fn param(&self, name: &str) -> Option<i64>;

    /// The elements of an argument.
    fn array(&self, name: &str) -> Option<TableData>;
}

/// Bytes that choose, one after the other; zeros, which choose what is simplest, when they are used
/// up.
pub struct Picks<'a> {
    bytes: std::slice::Iter<'a, u8>,
    inputs: &'a dyn Inputs,
    /// The choices so far, and of how many.
    taken: Vec<(u8, usize)>,
}

/// The values that one byte has.
const BYTES: usize = 1 << 8;

impl<'a> Picks<'a> {
    /// Choices by `bytes` for a kernel that would be run with `inputs`.
    pub fn new(bytes: &'a [u8], inputs: &'a dyn Inputs) -> Self {
        Self { bytes: bytes.iter(), inputs, taken: Vec::new() }
    }

    /// What the kernel would be run with.
    pub fn inputs(&self) -> &'a dyn Inputs {
        self.inputs
    }

    fn byte(&mut self) -> usize {
        self.bytes.next().copied().unwrap_or(0).into() // default: bytes may be few, and end in zeros
    }

    /// The first of several things that come at random, each as often as its weight says. Which of two comes
    /// first does not depend on the others: one more takes its share, and every other choice stays as it is.
    pub fn first<T>(
        &mut self,
        from: impl IntoIterator<Item = T>,
        of: impl Fn(&T) -> (&str, usize),
    ) -> Option<T> {
        let seed = 256 * self.byte() + self.byte();
        from.into_iter().min_by(|a, b| {
            let [a, b] = [a, b].map(|item| arrival(of(item), seed));
            a.total_cmp(&b)
        })
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n.max(1);
        let chosen = self.byte() % n;
        self.taken.push((chosen as u8, n)); // a remainder of a byte is one
        chosen
    }

    /// The bytes of the choices that come after these in lexicographic order; none after the last.
    /// Choices by [`Picks::first`] are not among them.
    pub(crate) fn following(&self) -> Option<Vec<u8>> {
        let can_grow = |(chosen, of): &(u8, usize)| usize::from(*chosen) + 1 < (*of).min(BYTES);
        let at = self.taken.iter().rposition(can_grow)?;
        let same = self.taken[..at].iter().map(|(chosen, _)| *chosen);
        Some(same.chain([self.taken[at].0 + 1]).collect())
    }

    /// An integer from `low` to `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// One of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 1
    }

    /// One of these.
    pub fn of<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }

    /// One of these, of which there is one.
    pub fn among<T: Clone, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)].clone()
    }
}

/// When a name first comes that comes at random as often as `weight` says: `-ln(u)/weight` of a number `u`
/// between 0 and 1 that follows from the name.
fn arrival((name, weight): (&str, usize), seed: usize) -> f64 {
    // FNV-1a, and the last step of splitmix64 (Steele et al. 2014), which lets every bit count
    let start = 0xcbf2_9ce4_8422_2325 ^ (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let u = ((mixed ^ mixed >> 31) as f64 + 1.0) / (u64::MAX as f64 + 1.0);
    -u.ln() / weight as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct Nothing;

    impl Inputs for Nothing {
        fn param(&self, _: &str) -> Option<i64> {
            None
        }

        fn array(&self, _: &str) -> Option<TableData> {
            None
        }
    }

    #[test]
    fn all_choices_come_once_in_order() {
        let (mut bytes, mut found) = (Some(Vec::new()), Vec::new());
        while let Some(now) = bytes {
            let mut picks = Picks::new(&now, &Nothing);
            let first = picks.below(3);
            // the second choice depends on the first
            let second = (first != 1).then(|| picks.between(5, 6));
            found.push((first, second));
            bytes = picks.following();
        }
        assert_eq!(found, [(0, Some(5)), (0, Some(6)), (1, None), (2, Some(5)), (2, Some(6))]);
    }

    #[test]
    fn a_choice_depends_on_no_other() {
        let (few, more) = ([("a", 1), ("b", 3)], [("a", 1), ("z", 4), ("b", 3)]);
        let (mut times, mut kept) = ([0; 2], 0);
        for seed in 0..=u16::MAX {
            let chosen = |from: &[(&'static str, usize)]| {
                Picks::new(&seed.to_be_bytes(), &Nothing).first(from.to_vec(), |of| *of).unwrap().0
            };
            let (before, after) = (chosen(&few), chosen(&more));
            times[usize::from(before == "b")] += 1;
            assert!(after == before || after == "z");
            kept += u32::from(after == before);
        }
        // three of four and four of eight, within six deviations of 65,536 draws
        assert!(
            (times[1] - 49_152_i32).abs() < 700 && (kept.cast_signed() - 32_768).abs() < 800,
            "{times:?} {kept}"
        );
    }
}
