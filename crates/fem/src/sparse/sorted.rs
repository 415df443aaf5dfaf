//! A counting sort by all threads.

use rayon::prelude::*;
use std::sync::atomic::{AtomicI32, Ordering};

/// Where the places of each of `n` keys start, and the places by their keys, those of one key
/// ascending: a counting sort, of which each thread takes a part of the keys.
pub(super) fn sorted(keys: &[i32], n: usize) -> (Vec<i32>, Vec<i32>) {
    // counts of all parts together take no more room than the keys
    let parts = rayon::current_num_threads().min(keys.len() / n.max(1)).max(1);
    let length = keys.len().div_ceil(parts).max(1);
    let count = |keys: &[i32]| {
        let mut counts = vec![0_i32; n];
        keys.iter().for_each(|key| counts[*key as usize] += 1);
        counts
    };
    let mut next: Vec<Vec<i32>> = keys.par_chunks(length).map(count).collect();
    let (mut starts, mut total) = (Vec::with_capacity(n + 1), 0);
    for key in 0..n {
        starts.push(total);
        for counts in &mut next {
            total += std::mem::replace(&mut counts[key], total);
        }
    }
    starts.push(total);
    let places: Vec<AtomicI32> = (0..keys.len()).into_par_iter().map(|_| AtomicI32::new(0)).collect();
    next.par_iter_mut().zip(keys.par_chunks(length)).enumerate().for_each(|(part, (next, keys))| {
        for (k, key) in keys.iter().enumerate() {
            let at = &mut next[*key as usize];
            // each place is written once
            places[*at as usize].store((part * length + k) as i32, Ordering::Relaxed);
            *at += 1;
        }
    });
    (starts, places.into_par_iter().map(AtomicI32::into_inner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_by_all_threads() {
        for n in [1_usize, 7, 1000] {
            let keys: Vec<i32> = (0..5000_usize).map(|k| ((k * k * 7919 + k) % n) as i32).collect();
            let (starts, places) = sorted(&keys, n);
            let mut expected: Vec<i32> = (0..5000).collect();
            expected.sort_by_key(|k| keys[*k as usize]);
            assert_eq!(places, expected);
            let bounds = (0..=n).map(|key| keys.iter().filter(|k| (**k as usize) < key).count() as i32);
            assert_eq!(starts, bounds.collect::<Vec<_>>());
        }
        assert_eq!(sorted(&[], 2), (vec![0; 3], vec![]));
    }
}
