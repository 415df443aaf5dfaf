//! Sums and differences of the elements of orbits: the bases in which what a group of permutations
//! leaves alone has blocks.
//!
//! An orbit is a list of `2^k` elements, of which each stands in it as often as the others. The
//! combination `c` of values is `sum_g (-1)^popcount(c & g) v[orbit[g]]`: the characters of the
//! group of `k` commuting swaps, if `orbit[g]` is the image by the swaps whose bits `g` has.

use kingpost_steps::accuracy::is_near;

/// Most entries of an orbit.
pub(crate) const MAX_ENTRIES: usize = 64;

/// Orbits of `0..n`.
pub(crate) struct Orbits<'a> {
    orbits: &'a [Vec<u32>],
    /// The orbit of each element, and its first place in it.
    places: Vec<(usize, usize)>,
    /// Entries of an orbit.
    pub(crate) entries: usize,
}

/// What small numbers become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounded {
    /// Columns that hold nothing else.
    Columns,
    /// Entries.
    Entries,
}

/// An entry of a table that its combinations do not give.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deviation {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) value: f64,
    pub(crate) combined: f64,
    /// What the difference is compared with.
    pub(crate) scale: f64,
}

impl<'a> Orbits<'a> {
    /// The orbits of `n` elements.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub(crate) fn new(orbits: &'a [Vec<u32>], n: usize) -> Result<Self, String> {
        let entries = orbits.first().map_or(0, Vec::len);
        if !entries.is_power_of_two() || !(2..=MAX_ENTRIES).contains(&entries) {
            return Err(format!("an orbit has {entries} entries, needed 2, 4, 8, … {MAX_ENTRIES}"));
        }
        let mut places = vec![None; n];
        for (o, orbit) in orbits.iter().enumerate() {
            if orbit.len() != entries {
                return Err(format!("orbit {o} has {} entries, and the first one {entries}", orbit.len()));
            }
            let times = |e: u32| orbit.iter().filter(|other| **other == e).count();
            for (g, element) in orbit.iter().enumerate() {
                let Some(place) = places.get_mut(*element as usize) else {
                    return Err(format!("orbit {o} has element {element}, and there are {n}"));
                };
                match place {
                    None => *place = Some((o, g)),
                    Some((other, _)) if *other != o => {
                        return Err(format!("element {element} is in the orbits {other} and {o}"));
                    }
                    Some(_) => {}
                }
                let (own, first) = (times(*element), times(orbit[0]));
                if own != first {
                    return Err(format!(
                        "orbit {o} has element {element} {own} times and element {} {first} times",
                        orbit[0]
                    ));
                }
            }
        }
        match places.iter().position(Option::is_none) {
            Some(missing) => Err(format!("element {missing} is in no orbit")),
            None => Ok(Self { orbits, places: places.into_iter().flatten().collect(), entries }),
        }
    }

    /// Number of orbits.
    pub(crate) fn count(&self) -> usize {
        self.orbits.len()
    }

    /// The elements by place in their orbit, then by orbit.
    pub(crate) fn images(&self) -> Vec<i64> {
        let of = |g: usize| self.orbits.iter().map(move |orbit| i64::from(orbit[g]));
        (0..self.entries).flat_map(of).collect()
    }

    /// Where an element stands in its orbit, the first time, and which one that is.
    pub(crate) fn places(&self) -> Vec<(i64, i64)> {
        self.places.iter().map(|(o, g)| (*g as i64, *o as i64)).collect()
    }

    /// What a sum over all entries of an orbit counts of each of its elements: one divided by how often
    /// it stands there. None if all stand there once.
    pub(crate) fn shares(&self) -> Option<Vec<f64>> {
        let times = |orbit: &Vec<u32>| orbit.iter().filter(|e| **e == orbit[0]).count();
        let shares: Vec<f64> = self.orbits.iter().map(|orbit| 1.0 / times(orbit) as f64).collect();
        shares.iter().any(|s| *s != 1.0).then_some(shares)
    }

    /// The tables of all combinations of columns, each of a column an orbit: with them,
    /// `T[r, orbit[g]] = sum_c (-1)^popcount(c & g) T_c[r, orbit]`.
    pub(crate) fn combined(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let mut tables = vec![Vec::new(); self.entries];
        for row in values.chunks(self.places.len().max(1)) {
            for orbit in self.orbits {
                let mut sums: Vec<f64> = orbit.iter().map(|e| row[*e as usize]).collect();
                alternate(&mut sums);
                for (table, sum) in tables.iter_mut().zip(sums) {
                    table.push(sum / self.entries as f64);
                }
            }
        }
        tables
    }

    /// Sets to zero what is small in the tables of combinations against the `scales` of the entries of
    /// the table that it is part of: whole columns, of which rounding alone is left, or every entry.
    pub(crate) fn round(&self, tables: &mut [Vec<f64>], scales: &[f64], tolerance: f64, rounded: Rounded) {
        for table in tables {
            for (o, orbit) in self.orbits.iter().enumerate() {
                let least = |scales: &[f64]| {
                    orbit.iter().fold(f64::INFINITY, |least: f64, e| least.min(scales[*e as usize]))
                };
                let rows = scales.chunks(self.places.len().max(1)).map(least).enumerate();
                let small: Vec<usize> = rows
                    .map(|(row, least)| (row * self.count() + o, least))
                    .filter(|(at, least)| table[*at].abs() <= tolerance * least)
                    .map(|(at, _)| at)
                    .collect();
                if rounded == Rounded::Entries || small.len() * self.count() == table.len() {
                    small.into_iter().for_each(|at| table[at] = 0.0);
                }
            }
        }
    }

    /// Compares every entry with what the combinations give.
    ///
    /// # Errors
    /// The entry that is furthest from it, if that is more than `tolerance` of what `scales` has for it.
    pub(crate) fn certify(
        &self,
        values: &[f64],
        tables: &[Vec<f64>],
        scales: &[f64],
        tolerance: f64,
    ) -> Result<(), Deviation> {
        let n = self.places.len().max(1);
        let mut worst: Option<(f64, Deviation)> = None;
        for (at, (value, scale)) in values.iter().zip(scales).enumerate() {
            let (row, column) = (at / n, at % n);
            let (o, g) = self.places[column];
            let signed = |(c, table): (usize, &Vec<f64>)| sign(c, g) * table[row * self.count() + o];
            let combined: f64 = tables.iter().enumerate().map(signed).sum();
            let apart = (value - combined).abs() / scale;
            let fits = is_near(*value, combined, tolerance, *scale);
            if !fits && worst.as_ref().is_none_or(|(most, _)| apart.total_cmp(most).is_gt()) {
                worst = Some((apart, Deviation { row, column, value: *value, combined, scale: *scale }));
            }
        }
        worst.map_or(Ok(()), |(_, deviation)| Err(deviation))
    }
}

/// The sign of entry `g` in combination `c`.
pub(crate) fn sign(c: usize, g: usize) -> f64 {
    if (c & g).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// All combinations of some values, in place, by sums and differences of pairs.
fn alternate(values: &mut [f64]) {
    let mut step = 1;
    while step < values.len() {
        for start in (0..values.len()).filter(|k| k & step == 0) {
            let (a, b) = (values[start], values[start + step]);
            (values[start], values[start + step]) = (a + b, a - b);
        }
        step *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_give_the_table() {
        // the second orbit has each of its elements twice
        let orbits = [vec![0, 1, 2, 3], vec![4, 5, 5, 4]];
        let orbits = Orbits::new(&orbits, 6).expect("orbits");
        let values = [1.0, 2.0, 4.0, 8.0, 3.0, 5.0, 0.5, 0.0, 0.0, 0.25, 1.0, 1.0];
        let tables = orbits.combined(&values);
        assert_eq!(tables[0], [3.75, 4.0, 0.1875, 1.0]);
        assert_eq!(tables[1], [-1.25, 0.0, 0.0625, 0.0]);
        assert_eq!(tables[3], [0.75, -1.0, 0.1875, 0.0]);
        assert_eq!(orbits.certify(&values, &tables, &[1.0; 12], 0.0), Ok(()));
        assert_eq!(orbits.shares(), Some(vec![1.0, 0.5]));
        assert_eq!(orbits.places(), [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn a_certificate_with_one_entry_off_names_it() {
        let orbits = [vec![0, 1]];
        let orbits = Orbits::new(&orbits, 2).expect("orbits");
        let values = [1.0, 2.0, 4.0, 8.0];
        let mut tables = orbits.combined(&values);
        tables[1][1] += 1e-12;
        let scales = [2.0, 2.0, 8.0, 8.0];
        let found = orbits.certify(&values, &tables, &scales, 1e-13).expect_err("an entry is off");
        assert_eq!((found.row, found.value, found.scale), (1, 4.0, 8.0));
        assert!((found.combined - 4.0 - 1e-12).abs() < 1e-15, "{found:?}");
        assert_eq!(orbits.certify(&values, &tables, &scales, 1e-12), Ok(()));
    }

    #[test]
    fn what_is_small_in_its_row_is_rounded() {
        let orbits = [vec![0, 1]];
        let orbits = Orbits::new(&orbits, 2).expect("orbits");
        let small = 2.0_f64.powi(-70);
        let values = [1.0, 1.0 + 4e-16, small, 3.0 * small];
        let scales = [1.0, 1.0, small, small];
        let tables = orbits.combined(&values);
        assert!(tables[1].iter().all(|v| *v != 0.0));
        let rounded = |rounded, scales: &[f64]| {
            let mut tables = tables.clone();
            orbits.round(&mut tables, scales, 1e-14, rounded);
            tables
        };
        assert_eq!(rounded(Rounded::Entries, &scales)[1], [0.0, -small]);
        assert_eq!(rounded(Rounded::Columns, &scales), tables);
        assert_eq!(rounded(Rounded::Columns, &[1.0; 4])[1], [0.0, 0.0]);
    }

    #[test]
    fn orbits_hold_every_element_as_often_as_the_others() {
        let refused = |orbits: &[Vec<u32>], n| Orbits::new(orbits, n).err().unwrap_or_default();
        assert_eq!(refused(&[], 1), "an orbit has 0 entries, needed 2, 4, 8, … 64");
        assert_eq!(refused(&[vec![0, 1, 2]], 3), "an orbit has 3 entries, needed 2, 4, 8, … 64");
        assert_eq!(refused(&[vec![0, 1], vec![2, 2, 2, 2]], 3), "orbit 1 has 4 entries, and the first one 2");
        assert_eq!(refused(&[vec![0, 3]], 2), "orbit 0 has element 3, and there are 2");
        assert_eq!(refused(&[vec![0, 1], vec![1, 2]], 3), "element 1 is in the orbits 0 and 1");
        assert_eq!(refused(&[vec![0, 0, 0, 1]], 2), "orbit 0 has element 1 1 times and element 0 3 times");
        assert_eq!(refused(&[vec![0, 1]], 3), "element 2 is in no orbit");
    }
}
