//! How memory serves the accesses of a sub-group.

use super::value::Value;
use super::{GlobalAccesses, SUB_GROUP};
use crate::ast::Name;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of a sector of global memory.
const SECTOR: i64 = 32;

/// Banks of local memory, and bytes of a word of a bank.
const BANKS: i64 = 32;
const WORD: i64 = 4;

/// The addresses of an access: offsets of the work-items that take part, by sub-group.
pub(super) struct Addresses<'a> {
    pub(super) offset: &'a Value,
    pub(super) mask: &'a [bool],
    /// Bytes that a work-item accesses, and bytes of an element, in which offsets count.
    pub(super) bytes: i64,
    pub(super) element: i64,
}

/// What a sub-group asks for.
enum Asked {
    /// Nobody takes part.
    Nothing,
    /// Addresses of so many work-items, in bytes; each once.
    Known { addresses: Vec<i64>, items: usize },
    /// Addresses of so many work-items that are not known.
    Unknown { items: usize },
}

impl Addresses<'_> {
    fn of_sub_groups(&self) -> impl Iterator<Item = Asked> + '_ {
        let sub_groups = self.mask.len().div_ceil(SUB_GROUP);
        (0..sub_groups).map(|k| self.of(k * SUB_GROUP, SUB_GROUP))
    }

    fn of(&self, first: usize, count: usize) -> Asked {
        let last = (first + count).min(self.mask.len());
        let lanes: Vec<usize> = (first..last).filter(|lane| self.mask[*lane]).collect();
        if lanes.is_empty() {
            return Asked::Nothing;
        }
        let addresses: Option<Vec<i64>> =
            lanes.iter().map(|lane| self.offset.at(*lane)?.checked_mul(self.element)).collect();
        let Some(mut addresses) = addresses else { return Asked::Unknown { items: lanes.len() } };
        addresses.sort_unstable();
        addresses.dedup();
        Asked::Known { addresses, items: lanes.len() }
    }

    /// Instructions and distinct addresses of each, where a sub-group is served one address at a time.
    pub(super) fn distinct(&self) -> f64 {
        let of = |asked: Asked| match asked {
            Asked::Nothing => 0,
            Asked::Known { addresses, .. } => addresses.len(),
            Asked::Unknown { items } => items,
        };
        self.of_sub_groups().map(of).sum::<usize>() as f64
    }

    /// Wavefronts of local memory. A bank has four bytes, so that work-items that ask for eight are
    /// served by halves of a sub-group, and for sixteen by quarters: for each part as many as its
    /// fullest bank has distinct words. One word goes to all that ask for it, one value of a whole
    /// sub-group at once.
    pub(super) fn wavefronts(&self) -> f64 {
        let parts = usize::try_from(self.bytes.max(WORD) / WORD).unwrap_or(1).min(SUB_GROUP);
        let items = SUB_GROUP / parts;
        let of = |k: usize| {
            let whole = self.fullest_bank(k * SUB_GROUP, SUB_GROUP);
            let part = |part: usize| self.fullest_bank(k * SUB_GROUP + part * items, items);
            if whole == 1 { whole } else { (0..parts).map(part).sum() }
        };
        (0..self.mask.len().div_ceil(SUB_GROUP)).map(of).sum::<u64>() as f64
    }

    /// Distinct words of the fullest bank that some work-items ask for.
    fn fullest_bank(&self, first: usize, count: usize) -> u64 {
        match self.of(first, count) {
            Asked::Nothing => 0,
            Asked::Unknown { .. } => 1,
            Asked::Known { addresses, .. } => {
                let mut banks = [0_u64; BANKS as usize];
                let words = |a: &i64| a / WORD..(a + self.bytes).div_euclid(WORD).max(a / WORD + 1);
                let mut words: Vec<i64> = addresses.iter().flat_map(words).collect();
                words.dedup();
                words.iter().for_each(|word| banks[word.rem_euclid(BANKS) as usize] += 1);
                banks.into_iter().max().unwrap_or(0)
            }
        }
    }

    /// Rounds in each of which no two work-items of a sub-group have one address.
    pub(super) fn rounds(&self) -> f64 {
        let sub_groups = self.mask.len().div_ceil(SUB_GROUP);
        let mut sum = 0;
        for k in 0..sub_groups {
            let lanes = k * SUB_GROUP..((k + 1) * SUB_GROUP).min(self.mask.len());
            let mut times: HashMap<i64, u64> = HashMap::new();
            for lane in lanes.filter(|lane| self.mask[*lane]) {
                // an unknown address is taken for one of its own
                *times.entry(self.offset.at(lane).unwrap_or(-1 - lane as i64)).or_default() += 1;
            }
            sum += times.into_values().max().unwrap_or(0);
        }
        sum as f64
    }
}

/// Sectors of global memory that a group has touched.
#[derive(Default)]
pub(super) struct Touched {
    sectors: HashSet<(Name, i64)>,
    /// By array.
    pub(super) arrays: BTreeMap<Name, f64>,
}

impl Touched {
    /// Counts an access to an array, `weight` times.
    pub(super) fn count(
        &mut self,
        array: &Name,
        at: &Addresses<'_>,
        weight: f64,
        counts: &mut GlobalAccesses,
    ) {
        for asked in at.of_sub_groups() {
            let (sectors, fresh, items) = match asked {
                Asked::Nothing => continue,
                Asked::Unknown { items } => (items, items, items),
                Asked::Known { addresses, items } => {
                    let mut sectors: Vec<i64> =
                        addresses.iter().flat_map(|a| a / SECTOR..=(a + at.bytes - 1) / SECTOR).collect();
                    sectors.dedup();
                    let fresh = sectors.iter().filter(|s| self.sectors.insert((array.clone(), **s))).count();
                    (sectors.len(), fresh, items)
                }
            };
            *self.arrays.entry(array.clone()).or_default() += weight * fresh as f64;
            counts.instructions += weight;
            counts.sectors += weight * sectors as f64;
            counts.distinct += weight * fresh as f64;
            counts.elements += weight * items as f64;
        }
    }
}
