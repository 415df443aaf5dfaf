//! How often random steps were accepted: a property that nothing reaches would hold of anything.

use kingpost::transforms::{Step, steps};
use std::collections::BTreeMap;

/// Accepted and refused steps of each primitive.
#[derive(Clone, Default)]
pub struct Tally(BTreeMap<&'static str, [u64; 2]>);

impl Tally {
    /// Counts a step.
    pub fn record(&mut self, step: &Step, accepted: bool) {
        self.0.entry(step.name()).or_default()[usize::from(!accepted)] += 1;
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Self) {
        for (name, [accepted, refused]) in &other.0 {
            let sum = self.0.entry(name).or_default();
            sum[0] += accepted;
            sum[1] += refused;
        }
    }

    /// Of the primitives that are drawn, those that were never accepted.
    pub fn missing(&self) -> Vec<&'static str> {
        let names = steps().rows().filter(|p| p.is_drawn()).map(|p| p.name);
        names.filter(|n| self.0.get(n).is_none_or(|[accepted, _]| *accepted == 0)).collect()
    }

    /// Accepted steps in all.
    pub fn accepted(&self) -> u64 {
        self.0.values().map(|[accepted, _]| accepted).sum()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:24} {:>9} {:>9}", "primitive", "accepted", "refused")?;
        for primitive in steps().rows() {
            let [accepted, refused] = self.0.get(primitive.name).copied().unwrap_or_default();
            writeln!(f, "{:24} {accepted:9} {refused:9}", primitive.name)?;
        }
        Ok(())
    }
}
