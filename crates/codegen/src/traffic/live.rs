//! How many private values are alive at a time.

use crate::ast::Name;
use std::collections::HashMap;

/// The lives of private values, from a write to the last read before the next one.
#[derive(Default)]
pub(super) struct Lives {
    numbers: HashMap<Name, u32>,
    /// By variable and element: first write, last use, words.
    open: HashMap<(u32, i64), (u64, u64, u64)>,
    closed: Vec<(u64, u64, u64)>,
}

impl Lives {
    fn number(&mut self, name: &Name) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(name.clone(), number);
        number
    }

    /// A value of a number of words is written; an update keeps the one that is there.
    pub(super) fn written(&mut self, name: &Name, element: i64, now: u64, words: u64, updates: bool) {
        let key = (self.number(name), element);
        if updates && let Some((_, last, _)) = self.open.get_mut(&key) {
            *last = now;
            return;
        }
        self.closed.extend(self.open.insert(key, (now, now, words)));
    }

    /// A value is read.
    pub(super) fn read(&mut self, name: &Name, element: i64, now: u64) {
        let key = (self.number(name), element);
        if let Some((_, last, _)) = self.open.get_mut(&key) {
            *last = now;
        }
    }

    /// Most words at a time.
    pub(super) fn peak(mut self) -> u64 {
        self.closed.extend(self.open.into_values());
        let mut changes: Vec<(u64, i64)> = Vec::new();
        for (first, last, words) in self.closed {
            let words = i64::try_from(words).unwrap_or(i64::MAX);
            // what is never read needs no place
            if last > first {
                changes.extend([(first, words), (last, -words)]);
            }
        }
        changes.sort_unstable();
        let (mut now, mut peak) = (0, 0);
        for (_, change) in changes {
            now += change;
            peak = peak.max(now);
        }
        u64::try_from(peak).unwrap_or(0)
    }
}
