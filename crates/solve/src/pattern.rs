//! The pattern of a sparse matrix, found on a device from the maps of entities.

use crate::sorting::{BLOCK, Pairs, RUN, Scan, Sort};
use crate::texts::{compiled, text};
use crate::{Call, SolveError, run};
use kingpost_fem::sparse::{CsrPart, longest_row};
use kingpost_forms::form::FormError;
use kingpost_runtime::{Buffer, Device, Executable, buffer_of, download_values};
use rayon::prelude::*;
use std::sync::Arc;

/// The kernels that find patterns.
///
/// Items, the rows of the matrices of all entities, are sorted by the rows of the matrix that they are
/// added to, digit by digit: how many of each run have each digit says where each one goes. The entities of a row
/// are neighbours then. Their distinct columns are counted, counts are added up, and each row takes its columns in ascending order,
/// 16 in a pass over its entities.
/// A binary search in the row finds the place of each entry of an entity's matrix. No update is atomic, so
/// that all arrays are those of the host, in the same order.
///
/// # Source
/// Trotter et al. 2023, §3, which sets up on the host; digits after Satish et al. 2009.
pub struct PatternKernels {
    pub(crate) count_up: Executable,
    pub(crate) digits: Executable,
    pub(crate) digit_places: Executable,
    pub(crate) pairs: Executable,
    starts: Executable,
    split: Executable,
    count: Executable,
    pub(crate) sum: Executable,
    pub(crate) scan: Executable,
    fill: Executable,
    places: Executable,
}

/// The pattern of a sparse matrix on a device.
pub struct DevicePattern {
    /// Rows of the matrix.
    pub rows: usize,
    /// Entries of the matrix.
    pub entries: usize,
    /// First entry of each row, and the end of the last: i32 `[rows + 1]`.
    pub row_starts: Arc<Buffer>,
    /// The same on the host.
    pub starts: Vec<i32>,
    /// Column of each entry, ascending in a row: i32 `[entries]`.
    pub columns: Arc<Buffer>,
    /// Where each entry of an entity's matrix stands: i32 `[entities, height, width]`.
    pub positions: Arc<Buffer>,
    /// First term of each row, and the end of the last: i32 `[rows + 1]`.
    pub term_starts: Buffer,
    /// The entity of each term, by rows, those of one row ascending: i32 `[entities*height]`.
    pub term_entities: Buffer,
    /// The row of each term in the entity's matrix, likewise.
    pub term_rows: Buffer,
    /// What it took by the device's clock, without uploads.
    pub seconds: f64,
}

/// The entities around each row of a map, on a device.
pub struct DeviceTerms {
    /// First term of each row, and the end of the last: i32 `[rows + 1]`.
    pub starts: Buffer,
    /// The entity of each term, by rows, those of one row ascending: i32 `[entities*height]`.
    pub entities: Buffer,
    /// The row of each term in the entity's matrix, likewise.
    pub rows: Buffer,
    /// What it took by the device's clock, without uploads.
    pub seconds: f64,
}

/// Iterations of a binary search among `n`.
pub(crate) const fn steps(n: usize) -> usize {
    (usize::BITS - n.leading_zeros()) as usize
}

/// More numbers than 32 bits count.
pub(crate) fn too_many() -> SolveError {
    refused(format!("more than {} numbers of a pattern, as 32 bits count", i32::MAX))
}

fn refused(message: String) -> SolveError {
    SolveError::Form(FormError::Discretisation(message))
}

/// Entities, if all lists are as long as they must be, and all numbers are those of rows and columns.
fn checked(sizes: [usize; 2], part: &CsrPart<'_>) -> Result<usize, SolveError> {
    let [height, width] = part.extents;
    let entities = part.rows.len() / height.max(1);
    if height * width == 0 || entities == 0 || part.rows.len() != entities * height {
        let found = part.rows.len();
        return Err(refused(format!("a map of {found} numbers of {height} an entity: needed some entities")));
    }
    if part.columns.len() != entities * width {
        let (what, found) = ("map of columns", part.columns.len());
        return Err(SolveError::Length { what, found, needed: entities * width });
    }
    for (map, size) in [part.rows, part.columns].into_iter().zip(sizes) {
        let is_in = |number: &&i32| usize::try_from(**number).is_ok_and(|number| number < size);
        if let Some(number) = map.par_iter().find_first(|number| !is_in(number)) {
            return Err(refused(format!("a map with the number {number}: needed 0 to {}", size as i64 - 1)));
        }
    }
    check_counts(sizes, entities, part.extents)?;
    Ok(entities)
}

/// Whether 32 bits count all that there is.
fn check_counts(sizes: [usize; 2], entities: usize, [height, width]: [usize; 2]) -> Result<(), SolveError> {
    let items = entities.saturating_mul(height);
    let largest = [items.saturating_add(RUN), items.saturating_mul(width), sizes[0] + BLOCK];
    if let Some(most) = largest.into_iter().find(|n| i32::try_from(*n).is_err()) {
        return Err(refused(format!(
            "{most} numbers of a pattern: needed at most {}, as 32 bits count",
            i32::MAX
        )));
    }
    Ok(())
}

impl PatternKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device) -> Result<Self, SolveError> {
        Ok(Self {
            count_up: compiled(device, text!("count_up"))?,
            digits: compiled(device, text!("count_digits"))?,
            digit_places: compiled(device, text!("digit_places"))?,
            pairs: compiled(device, text!("move_pairs"))?,
            starts: compiled(device, text!("first_places"))?,
            split: compiled(device, text!("split_items"))?,
            count: compiled(device, text!("count_columns"))?,
            sum: compiled(device, text!("sum_blocks"))?,
            scan: compiled(device, text!("scan_blocks"))?,
            fill: compiled(device, text!("fill_columns"))?,
            places: compiled(device, text!("find_places"))?,
        })
    }

    /// The pattern of a matrix of given numbers of rows and columns, from the numbers of the rows
    /// and columns of each entity's matrix.
    ///
    /// # Errors
    /// Lists of other lengths, a number outside the matrix, more than 32 bits count; no memory, a failing
    /// driver.
    pub fn find(
        &self,
        device: &dyn Device,
        sizes: [usize; 2],
        part: &CsrPart<'_>,
    ) -> Result<DevicePattern, SolveError> {
        let n_entities = checked(sizes, part)?;
        let (rows_of, columns_of) = (buffer_of(device, part.rows)?, buffer_of(device, part.columns)?);
        let terms = self.terms(device, (&rows_of, sizes[0]), n_entities, part.extents[0])?;
        self.find_from(device, sizes, n_entities, (part.extents, [&rows_of, &columns_of], terms))
    }

    /// The entities of each of `n` rows, from a map on the device with the `height` rows of each entity.
    ///
    /// # Errors
    /// More than 32 bits count; no memory, a failing driver.
    pub fn terms(
        &self,
        device: &dyn Device,
        (rows_of, n): (&Buffer, usize),
        n_entities: usize,
        height: usize,
    ) -> Result<DeviceTerms, SolveError> {
        check_counts([n, n], n_entities, [height, 1])?;
        let n_items = n_entities * height;
        let integers = |n: usize| device.allocate(4 * n as u64);
        let ([keys, items], mut seconds) = self.sort(device, (rows_of, n), n_items)?;
        let [starts, entities, rows] = [integers(n + 1)?, integers(n_items)?, integers(n_items)?];
        let place = self.first_places((n + 1, &starts), (n_items, &keys));
        let arrays = [("items", &items), ("entities", &entities), ("rows", &rows)];
        let split = Call::of(&self.split, &[("n", n_items), ("height", height)], &arrays);
        seconds += run(device, &[place, split])?;
        Ok(DeviceTerms { starts, entities, rows, seconds })
    }

    /// The same of maps that lie on the device, whose numbers are those of rows and columns, with the terms of the
    /// rows.
    ///
    /// # Errors
    /// More than 32 bits count; no memory, a failing driver.
    pub fn find_from(
        &self,
        device: &dyn Device,
        sizes: [usize; 2],
        n_entities: usize,
        ([height, width], [rows_of, columns_of], terms): ([usize; 2], [&Buffer; 2], DeviceTerms),
    ) -> Result<DevicePattern, SolveError> {
        check_counts(sizes, n_entities, [height, width])?;
        let ([n, n_columns], n_items) = (sizes, n_entities * height);
        let integers = |n: usize| device.allocate(4 * n as u64);
        let [row_starts, lengths] = [integers(n + 1)?, integers(n + 1)?];
        device.fill(&lengths, 0)?;
        let DeviceTerms { starts: term_starts, entities: term_entities, rows: term_rows, mut seconds } =
            terms;
        let shared = [("n", n), ("n_columns", n_columns), ("n_items", n_items), ("n_entities", n_entities)];
        let shared = [&shared[..], &[("width", width)]].concat();
        let of_rows = [("starts", &term_starts), ("entities", &term_entities), ("columns_of", columns_of)];
        let count = Call::of(&self.count, &shared, &[&of_rows[..], &[("lengths", &lengths)]].concat());
        seconds += run(device, &[count])?;

        let (entries, taken) = self.add_up(device, &lengths, n + 1, &row_starts)?;
        let starts: Vec<i32> = download_values(device, &row_starts)?;
        let [columns, positions] = [integers(entries)?, integers(n_entities * height * width)?];
        let sizes = [&shared[..], &[("n_entries", entries)]].concat();
        let arrays = [&of_rows[..], &[("row_starts", &row_starts), ("columns", &columns)]].concat();
        let fill = Call::of(&self.fill, &sizes, &arrays);
        let sizes = [("n", n), ("n_entities", n_entities), ("n_entries", entries), ("height", height)];
        let sizes = [&sizes[..], &[("width", width), ("steps", steps(longest_row(&starts)))]].concat();
        let arrays = [("rows_of", rows_of), ("columns_of", columns_of), ("row_starts", &row_starts)];
        let arrays = [&arrays[..], &[("columns", &columns), ("places", &positions)]].concat();
        let places = Call::of(&self.places, &sizes, &arrays);
        seconds += taken + run(device, &[fill, places])?;
        Ok(DevicePattern {
            rows: n,
            entries,
            row_starts: Arc::new(row_starts),
            starts,
            columns: Arc::new(columns),
            positions: Arc::new(positions),
            term_starts,
            term_entities,
            term_rows,
            seconds,
        })
    }

    /// The numbers below `n`, sorted by their keys, those of one key ascending; keys first. Keys are -1 or numbers
    /// below `n_keys`.
    pub(crate) fn sort(
        &self,
        device: &dyn Device,
        (keys, n_keys): (&Buffer, usize),
        n: usize,
    ) -> Result<(Pairs, f64), SolveError> {
        let sort = Sort::new(device, n_keys, n)?;
        let mut calls = Vec::new();
        sort.push(self, keys, &mut calls);
        let seconds = run(device, &calls)?;
        drop(calls);
        Ok((sort.into_sorted(), seconds))
    }

    /// Finds the first of `n_keys` sorted keys that is not below each number below `n`.
    pub(crate) fn first_places<'a>(
        &'a self,
        (n, starts): (usize, &'a Buffer),
        (n_keys, keys): (usize, &'a Buffer),
    ) -> Call<'a> {
        let sizes = [("n", n), ("n_keys", n_keys), ("steps", steps(n_keys))];
        Call::of(&self.starts, &sizes, &[("keys", keys), ("starts", starts)])
    }

    /// Writes the sums of what stands before each of `n` numbers, of which the last is zero; their sum.
    pub(crate) fn add_up(
        &self,
        device: &dyn Device,
        numbers: &Buffer,
        n: usize,
        before: &Buffer,
    ) -> Result<(usize, f64), SolveError> {
        let scan = Scan::new(device, n)?;
        let mut calls = Vec::new();
        scan.push(self, (numbers, before), &mut calls);
        let seconds = run(device, &calls)?;
        Ok((scan.total(device)?, seconds))
    }
}
