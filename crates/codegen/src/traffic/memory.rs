//! How memory serves the accesses of a sub-group.

use super::counts::GlobalAccesses;
use super::value::Value;
use crate::ast::Name;
use crate::target::Banks;
use std::collections::{BTreeMap, HashMap, HashSet};

/// How memory serves sub-groups, and how many work-items those have.
#[derive(Clone, Copy)]
pub(super) struct Service {
    pub(super) banks: Banks,
    pub(super) width: usize,
}

/// The addresses of an access: offsets of the work-items that take part, by sub-group.
pub(super) struct Addresses<'a> {
    pub(super) offset: &'a Value,
    pub(super) mask: &'a [bool],
    pub(super) service: Service,
    /// Bytes that a work-item accesses, and bytes of an element, in which offsets count.
    pub(super) bytes: i64,
    pub(super) element: i64,
}

/// What a sub-group asks for.
enum Asked {
    /// Nobody takes part.
    Nothing,
    /// Addresses of `items` work-items, in bytes; each once.
    Known { addresses: Vec<i64>, items: usize },
    /// Addresses of `items` work-items that are not known.
    Unknown { items: usize },
}

impl Addresses<'_> {
    fn of_sub_groups(&self) -> impl Iterator<Item = Asked> + '_ {
        let width = self.service.width;
        (0..self.mask.len().div_ceil(width)).map(move |k| self.of(k * width, width))
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
        let Service { banks: Banks { count, word, .. }, width } = self.service;
        // as many work-items as the banks have words for at a time
        let items = (count / usize::try_from(self.bytes / word).unwrap_or(1).max(1)).clamp(1, width);
        let of = |k: usize| {
            let whole = self.fullest_bank(k * width, width);
            let part = |part: usize| self.fullest_bank(k * width + part * items, items);
            if whole == 1 { whole } else { (0..width / items).map(part).sum() }
        };
        (0..self.mask.len().div_ceil(width)).map(of).sum::<u64>() as f64
    }

    /// Distinct words of the fullest bank that some work-items ask for.
    fn fullest_bank(&self, first: usize, count: usize) -> u64 {
        match self.of(first, count) {
            Asked::Nothing => 0,
            Asked::Unknown { .. } => 1,
            Asked::Known { addresses, .. } => {
                let Banks { count, word, .. } = self.service.banks;
                let mut banks = vec![0_u64; count];
                let words = |a: &i64| a / word..(a + self.bytes).div_euclid(word).max(a / word + 1);
                let mut words: Vec<i64> = addresses.iter().flat_map(words).collect();
                words.dedup();
                words.iter().for_each(|word| banks[word.rem_euclid(count as i64) as usize] += 1);
                banks.into_iter().max().unwrap_or(0)
            }
        }
    }

    /// Rounds in each of which no two work-items of a sub-group have one address.
    pub(super) fn rounds(&self) -> f64 {
        let width = self.service.width;
        let mut sum = 0;
        for k in 0..self.mask.len().div_ceil(width) {
            let lanes = k * width..((k + 1) * width).min(self.mask.len());
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
                    let sector = at.service.banks.sector;
                    let touched = |a: &i64| a / sector..=(a + at.bytes - 1) / sector;
                    let mut sectors: Vec<i64> = addresses.iter().flat_map(touched).collect();
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
