//! Prescribed values of unknowns.

use crate::sparse::diagonal_of;
use crate::texts::{compiled, text};
use crate::{Call, FormPatterns, FoundPattern, PatternKernels, SolveError, run};
use kingpost_fem::sparse::{CsrPattern, EntryOrder};
use kingpost_forms::form::FormError;
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};
use rayon::prelude::*;
use std::sync::Arc;

/// Unknowns and the values that they must have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrescribedValues {
    /// The unknowns, each once.
    pub unknowns: Vec<i32>,
    /// Their values.
    pub values: Vec<f64>,
}

impl PrescribedValues {
    /// Refuses an unknown that is not there or twice.
    fn check(&self, n: usize) -> Result<(), SolveError> {
        let is_in = |unknown: Option<&i32>| {
            unknown.is_none_or(|unknown| usize::try_from(*unknown).is_ok_and(|unknown| unknown < n))
        };
        let ascend = self.unknowns.par_windows(2).all(|pair| pair[0] < pair[1]);
        let are_in = is_in(self.unknowns.first()) && is_in(self.unknowns.last());
        if ascend && are_in && self.unknowns.len() == self.values.len() {
            return Ok(());
        }
        self.places(n).map(drop)
    }

    /// Where each unknown stands among the prescribed ones, if it does.
    fn places(&self, n: usize) -> Result<Vec<Option<i32>>, SolveError> {
        if self.unknowns.len() != self.values.len() {
            let (found, needed) = (self.values.len(), self.unknowns.len());
            return Err(SolveError::Length { what: "prescribed values", found, needed });
        }
        let mut places = vec![None; n];
        for (place, unknown) in self.unknowns.iter().enumerate() {
            let refuse = |found| SolveError::Prescribed {
                unknown: i64::from(*unknown),
                found,
                last: n.saturating_sub(1),
            };
            let slot = usize::try_from(*unknown).ok().and_then(|u| places.get_mut(u));
            if slot.ok_or_else(|| refuse("and is not there"))?.replace(place as i32).is_some() {
                return Err(refuse("twice"));
            }
        }
        Ok(places)
    }
}

/// Rows that a thread looks through at a time.
const ROWS: usize = 4096;

/// Which entries of a matrix prescribed unknowns change.
#[derive(Default)]
struct Changes {
    /// Rows that are solved for and have entries in columns of prescribed unknowns.
    rows: Vec<i32>,
    /// The first of these entries of each row, and the end of the last.
    starts: Vec<i32>,
    /// These entries, and the places of their columns among the prescribed unknowns.
    lifted: Vec<i32>,
    which: Vec<i32>,
    /// All other entries of rows of prescribed unknowns but those on the diagonal.
    zeroes: Vec<i32>,
    ones: Vec<i32>,
}

impl Changes {
    fn new(pattern: &CsrPattern, places: &[Option<i32>]) -> Result<Self, SolveError> {
        match pattern.order() {
            EntryOrder::Rows | EntryOrder::Blocks => Self::of_rows(pattern, places),
            EntryOrder::UpperRows => Self::of_half(pattern, places),
        }
    }

    /// Of a symmetric matrix, of which the entries on and above the diagonal are stored.
    fn of_half(pattern: &CsrPattern, places: &[Option<i32>]) -> Result<Self, SolveError> {
        let (row_starts, columns) = pattern.upper_rows();
        let place = |unknown: usize| places.get(unknown).copied().flatten();
        let (mut zeroes, mut lifted) = (Vec::new(), Vec::new());
        for (row, bounds) in row_starts.windows(2).enumerate() {
            for k in bounds[0]..bounds[1] {
                let column = columns[k as usize] as usize;
                match (place(row), place(column)) {
                    _ if row == column => {}
                    (None, None) => {}
                    (Some(_), Some(_)) => zeroes.push(k),
                    // the entry, or its mirror image, is in the row that is solved for
                    (None, Some(place)) => lifted.push((row as i32, k, place)),
                    (Some(place), None) => lifted.push((column as i32, k, place)),
                }
            }
        }
        lifted.sort_unstable();
        let diagonal = diagonal_of(&row_starts, &columns)?;
        let fixed = (0..diagonal.len()).filter(|unknown| place(*unknown).is_some());
        let mut all = Self {
            rows: Vec::new(),
            starts: vec![0],
            lifted: lifted.iter().map(|(_, k, _)| *k).collect(),
            which: lifted.iter().map(|(_, _, place)| *place).collect(),
            zeroes,
            ones: fixed.map(|unknown| diagonal[unknown]).collect(),
        };
        for of_row in lifted.chunk_by(|a, b| a.0 == b.0) {
            all.rows.push(of_row[0].0);
            all.starts.push(all.starts[all.starts.len() - 1] + of_row.len() as i32);
        }
        Ok(all)
    }

    fn of_rows(pattern: &CsrPattern, places: &[Option<i32>]) -> Result<Self, SolveError> {
        let diagonal = diagonal_of(&pattern.row_starts, &pattern.columns)?;
        let of_row = |row: usize, part: &mut Self| {
            let own = pattern.row_starts[row]..pattern.row_starts[row + 1];
            if places[row].is_some() {
                part.zeroes.extend(own.filter(|k| *k != diagonal[row]));
                part.ones.push(diagonal[row]);
                return;
            }
            let before = part.lifted.len();
            for k in own {
                let column = pattern.columns[k as usize] as usize;
                if let Some(place) = places.get(column).copied().flatten() {
                    part.lifted.push(k);
                    part.which.push(place);
                }
            }
            if part.lifted.len() > before {
                part.rows.push(row as i32);
                part.starts.push(part.lifted.len() as i32);
            }
        };
        let of_part = |part: usize| {
            let mut found = Self::default();
            let rows = part * ROWS..places.len().min((part + 1) * ROWS);
            rows.for_each(|row| of_row(row, &mut found));
            found
        };
        let parts: Vec<Self> = (0..places.len().div_ceil(ROWS)).into_par_iter().map(of_part).collect();
        let mut all = Self { starts: vec![0], ..Self::default() };
        for part in parts {
            let before = all.lifted.len() as i32;
            all.starts.extend(part.starts.iter().map(|end| before + end));
            all.rows.extend(part.rows);
            all.lifted.extend(part.lifted);
            all.which.extend(part.which);
            all.zeroes.extend(part.zeroes);
            all.ones.extend(part.ones);
        }
        Ok(all)
    }
}

/// A list of places on the device.
struct List {
    n: usize,
    at: Buffer,
}

impl List {
    fn new(device: &dyn Device, list: &[i32]) -> Result<Self, SolveError> {
        Ok(Self { n: list.len(), at: buffer_of(device, list)? })
    }
}

/// Which entries of a matrix prescribed unknowns change, on the device.
struct OnDevice {
    rows: List,
    starts: Buffer,
    ends: Buffer,
    lifted: List,
    which: Buffer,
    zeroes: List,
    ones: List,
}

impl OnDevice {
    /// Finds them, from the places of rows, columns and diagonal of the matrix.
    fn find(
        device: &dyn Device,
        ([n, n_entries], [row_starts, columns], diagonal): ([usize; 2], &[Arc<Buffer>; 2], &Buffer),
        fixed: &List,
    ) -> Result<Self, SolveError> {
        let integers = |n: usize| device.allocate(4 * n as u64);
        let lists = PatternKernels::new(device)?;
        let [place, count] =
            [compiled(device, text!("number_listed"))?, compiled(device, text!("count_changes"))?];
        let [fill, take] =
            [compiled(device, text!("fill_changes"))?, compiled(device, text!("aggregation/take_integers"))?];
        let places = integers(n)?;
        device.fill(&places, 0xFF)?; // -1
        let counts = [integers(n + 1)?, integers(n + 1)?, integers(n + 1)?];
        counts.iter().try_for_each(|count| device.fill(count, 0))?;
        let arrays = [("at", &fixed.at), ("places", &places)];
        let place = Call::of(&place, &[("n", fixed.n), ("n_places", n)], &arrays);
        let rows: [(&str, &Buffer); 3] =
            [("row_starts", row_starts), ("columns", columns), ("places", &places)];
        let [lifted, zeroes, changed] = &counts;
        let found = [("lifted", lifted), ("zeroes", zeroes), ("changed", changed)];
        let sizes = [("n", n), ("n_entries", n_entries)];
        let count = Call::of(&count, &sizes, &[&rows[..], &found].concat());
        run(device, &[place, count])?;

        let starts = [integers(n + 1)?, integers(n + 1)?, integers(n + 1)?];
        let mut sums = [0; 3];
        for ((sum, count), starts) in sums.iter_mut().zip(&counts).zip(&starts) {
            *sum = lists.add_up(device, count, n + 1, starts)?.0;
        }
        let [lifted, zeroes, changed] = sums;
        let list = |n: usize| Ok::<_, SolveError>(List { n, at: integers(n)? });
        let this = Self {
            rows: list(changed)?,
            starts: integers(changed)?,
            ends: integers(changed)?,
            lifted: list(lifted)?,
            which: integers(lifted)?,
            zeroes: list(zeroes)?,
            ones: list(fixed.n)?,
        };
        let of_sums = [("n_lifted", lifted), ("n_zeroes", zeroes), ("n_changed", changed)];
        let [lifted, zeroes, changed] = &starts;
        let before = [("lifted_starts", lifted), ("zero_starts", zeroes), ("changed_starts", changed)];
        let found = [
            ("diagonal", diagonal),
            ("lifted", &this.lifted.at),
            ("which", &this.which),
            ("zeroes", &this.zeroes.at),
            ("rows", &this.rows.at),
            ("starts", &this.starts),
            ("ends", &this.ends),
        ];
        let sizes = [&sizes[..], &of_sums].concat();
        let fill = Call::of(&fill, &sizes, &[&rows[..], &before, &found].concat());
        let arrays = [("at", &fixed.at), ("from", diagonal), ("to", &this.ones.at)];
        let take = Call::of(&take, &[("n", fixed.n), ("n_from", n)], &arrays);
        run(device, &[fill, take])?;
        Ok(this)
    }
}

/// Prescribed values on the device, and what they do to a matrix and a right-hand side.
///
/// An update of the unknowns brings the prescribed ones to their values: it has the *gap* there.
/// Rows and columns of prescribed unknowns are those of the identity, and what their columns held
/// is on the right-hand side. The matrix is assembled whole and changed after that, at listed
/// entries: no entry asks whether it is prescribed, as in Algorithm 4 of the source, and none is
/// computed twice for the right-hand side.
///
/// # Source
/// Trotter et al. 2023, §2.1 and §3.5.
pub struct Constraints {
    n_unknowns: usize,
    n_entries: usize,
    fixed: List,
    prescribed: Buffer,
    gap: Buffer,
    held: Buffer,
    changes: OnDevice,
    compute_gap: Executable,
    lift: Executable,
    put: Executable,
    put_constant: Executable,
    take: Executable,
}

impl Constraints {
    /// The constraints of the unknowns of a matrix of this pattern.
    ///
    /// # Errors
    /// An unknown that is not there or is prescribed twice, a row without an entry on the diagonal,
    /// no memory, a device that refuses the kernels.
    pub fn new(
        device: &dyn Device,
        pattern: &CsrPattern,
        values: &PrescribedValues,
    ) -> Result<Self, SolveError> {
        let n_unknowns = pattern.row_starts.len().saturating_sub(1);
        let changes = Changes::new(pattern, &values.places(n_unknowns)?)?;
        let [starts, ends] = [&changes.starts[..changes.rows.len()], &changes.starts[1..]];
        let changes = OnDevice {
            rows: List::new(device, &changes.rows)?,
            starts: buffer_of(device, starts)?,
            ends: buffer_of(device, ends)?,
            lifted: List::new(device, &changes.lifted)?,
            which: buffer_of(device, &changes.which)?,
            zeroes: List::new(device, &changes.zeroes)?,
            ones: List::new(device, &changes.ones)?,
        };
        let fixed = List::new(device, &values.unknowns)?;
        Self::of_changes(device, [n_unknowns, pattern.n_entries()], (values, fixed), changes)
    }

    /// The constraints of `n_unknowns` unknowns of an operator that has no matrix.
    ///
    /// # Errors
    /// An unknown that is not there or is prescribed twice, no memory, a device that refuses the
    /// kernels.
    pub fn without_matrix(
        device: &dyn Device,
        n_unknowns: usize,
        values: &PrescribedValues,
    ) -> Result<Self, SolveError> {
        values.check(n_unknowns)?;
        let (none, integers) = (|| List::new(device, &[]), || buffer_of::<i32>(device, &[]));
        let changes = OnDevice {
            rows: none()?,
            starts: integers()?,
            ends: integers()?,
            lifted: none()?,
            which: integers()?,
            zeroes: none()?,
            ones: none()?,
        };
        Self::of_changes(device, [n_unknowns, 0], (values, List::new(device, &values.unknowns)?), changes)
    }

    /// The constraints of the unknowns of a matrix whose pattern the device has found, found there if unknowns are
    /// scalars.
    ///
    /// # Errors
    /// As [`Constraints::new`].
    pub fn of_found(
        device: &dyn Device,
        found: &FoundPattern,
        values: &PrescribedValues,
    ) -> Result<Self, SolveError> {
        let Some(lists) = found.on_device() else { return Self::new(device, found.rows(), values) };
        let n_unknowns = found.rows().row_starts.len().saturating_sub(1);
        values.check(n_unknowns)?;
        let sizes = [n_unknowns, found.rows().n_entries()];
        let fixed = List::new(device, &values.unknowns)?;
        let changes = OnDevice::find(device, (sizes, &lists, &*found.diagonal(device)?), &fixed)?;
        Self::of_changes(device, sizes, (values, fixed), changes)
    }

    /// The constraints of the unknowns of a form's matrix.
    ///
    /// # Errors
    /// As [`Constraints::new`].
    pub(crate) fn of(
        device: &dyn Device,
        patterns: &FormPatterns,
        values: &PrescribedValues,
    ) -> Result<Self, SolveError> {
        match (patterns.found(), patterns.all().rows) {
            (Some(found), _) => Self::of_found(device, found, values),
            (None, [pattern, ..]) => Self::new(device, pattern, values),
            (None, []) => Err(FormError::Bug("a bilinear form without a pattern".into()).into()),
        }
    }

    fn of_changes(
        device: &dyn Device,
        [n_unknowns, n_entries]: [usize; 2],
        (values, fixed): (&PrescribedValues, List),
        changes: OnDevice,
    ) -> Result<Self, SolveError> {
        let n_fixed = values.values.len() as u64;
        Ok(Self {
            n_unknowns,
            n_entries,
            fixed,
            prescribed: buffer_of(device, &values.values)?,
            gap: device.allocate(8 * n_fixed)?,
            held: device.allocate(8 * n_fixed)?,
            changes,
            compute_gap: compiled(device, text!("gap"))?,
            lift: compiled(device, text!("lift"))?,
            put: compiled(device, text!("put"))?,
            put_constant: compiled(device, text!("put_constant"))?,
            take: compiled(device, text!("take"))?,
        })
    }

    /// Computes a part of how far the prescribed unknowns are from their values.
    #[must_use]
    pub fn measure_gap<'a>(&'a self, u: &'a Buffer, part: f64) -> Call<'a> {
        let sizes = [("n", self.fixed.n), ("n_unknowns", self.n_unknowns)];
        let arrays =
            [("unknown", &self.fixed.at), ("prescribed", &self.prescribed), ("u", u), ("gap", &self.gap)];
        Call::of(&self.compute_gap, &sizes, &arrays).with("part", part)
    }

    /// Moves what the gap contributes to the other rows to the right-hand side, and puts the gap
    /// into its own rows. The matrix has its columns still.
    #[must_use]
    pub fn lift<'a>(&'a self, values: &'a Buffer, b: &'a Buffer) -> [Call<'a>; 2] {
        let sizes = [
            ("n", self.changes.rows.n),
            ("n_lifted", self.changes.lifted.n),
            ("n_fixed", self.fixed.n),
            ("n_unknowns", self.n_unknowns),
            ("n_entries", self.n_entries),
        ];
        let arrays = [
            ("rows", &self.changes.rows.at),
            ("starts", &self.changes.starts),
            ("ends", &self.changes.ends),
            ("entry", &self.changes.lifted.at),
            ("which", &self.changes.which),
            ("values", values),
            ("gap", &self.gap),
            ("b", b),
        ];
        [Call::of(&self.lift, &sizes, &arrays), self.put(&self.gap, b)]
    }

    /// Puts the gap into its own rows of the right-hand side, and leaves the others as they are.
    #[must_use]
    pub fn set_gap<'a>(&'a self, b: &'a Buffer) -> Call<'a> {
        self.put(&self.gap, b)
    }

    /// Makes rows and columns of prescribed unknowns those of the identity.
    #[must_use]
    pub fn eliminate<'a>(&'a self, values: &'a Buffer) -> [Call<'a>; 3] {
        let OnDevice { zeroes, lifted, ones, .. } = &self.changes;
        [(zeroes, 0.0), (lifted, 0.0), (ones, 1.0)]
            .map(|(list, value)| self.constant(list, self.n_entries, value, values))
    }

    /// Sets a vector to zero at prescribed unknowns.
    #[must_use]
    pub fn clear<'a>(&'a self, v: &'a Buffer) -> Call<'a> {
        self.constant(&self.fixed, self.n_unknowns, 0.0, v)
    }

    /// Keeps what a vector has at prescribed unknowns, for [`Constraints::put_back`].
    #[must_use]
    pub fn keep<'a>(&'a self, v: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.fixed.n), ("n_from", self.n_unknowns)];
        Call::of(&self.take, &sizes, &[("at", &self.fixed.at), ("from", v), ("to", &self.held)])
    }

    /// Puts what was kept into a vector.
    #[must_use]
    pub fn put_back<'a>(&'a self, v: &'a Buffer) -> Call<'a> {
        self.put(&self.held, v)
    }

    fn put<'a>(&'a self, from: &'a Buffer, to: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.fixed.n), ("n_to", self.n_unknowns)];
        Call::of(&self.put, &sizes, &[("at", &self.fixed.at), ("from", from), ("to", to)])
    }

    fn constant<'a>(&'a self, list: &'a List, n_to: usize, value: f64, to: &'a Buffer) -> Call<'a> {
        let sizes = [("n", list.n), ("n_to", n_to)];
        Call::of(&self.put_constant, &sizes, &[("at", &list.at), ("to", to)]).with("value", value)
    }
}
