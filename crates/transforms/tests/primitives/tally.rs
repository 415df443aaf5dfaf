//! How often random steps were accepted: a property that nothing reaches would hold of anything.

use purlin_transforms::Step;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Rounds after which a primitive that is still too rare is a failure: draws are few enough for one round to
/// miss by chance.
const ROUNDS: usize = 5;

/// Accepted and refused steps of each primitive.
#[derive(Default)]
pub struct Tally(RefCell<BTreeMap<String, [u32; 2]>>);

impl Tally {
    /// Counts a step.
    pub fn record(&self, step: &Step, accepted: bool) {
        let name = serde_json::to_value(step).ok().and_then(|json| json.as_object()?.keys().next().cloned());
        self.0.borrow_mut().entry(name.unwrap_or_default()).or_default()[usize::from(!accepted)] += 1;
    }

    /// The first of the primitives that was not accepted more often than `least` says: a number of times, and
    /// a share of its draws.
    fn rare(&self, primitives: &str, least: &dyn Fn(&str) -> (u32, f64)) -> Option<String> {
        let tally = self.0.borrow();
        primitives.split_whitespace().find_map(|name| {
            let [accepted, refused] = tally.get(name).copied().unwrap_or_default();
            let share = f64::from(accepted) / f64::from((accepted + refused).max(1));
            let (times, part) = least(name);
            (accepted <= times || share <= part)
                .then(|| format!("{name}: {accepted} accepted, {refused} refused"))
        })
    }

    /// Runs rounds of random steps until every primitive was accepted often enough.
    pub fn until_enough(primitives: &str, least: &dyn Fn(&str) -> (u32, f64), round: &mut dyn FnMut(&Tally)) {
        let tally = Self::default();
        for _ in 0..ROUNDS {
            round(&tally);
            if tally.rare(primitives, least).is_none() {
                break;
            }
        }
        for (name, [accepted, refused]) in tally.0.borrow().iter() {
            println!("{name}: {accepted} accepted, {refused} refused");
        }
        assert_eq!(tally.rare(primitives, least), None, "too rare after {ROUNDS} rounds");
    }
}
