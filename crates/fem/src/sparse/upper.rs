//! The entries on and above the diagonal of a symmetric matrix.

use super::{CsrPattern, EntryOrder, PatternError};
use rayon::prelude::*;

impl CsrPattern {
    /// The same pattern, of whose entries those on and above the diagonal are stored, row by row: an entry
    /// below stands where its mirror image does. [`CsrPattern::row_starts`] and
    /// [`CsrPattern::columns`] are those of the whole matrix still.
    ///
    /// ```
    /// use kingpost_fem::sparse::CsrPattern;
    ///
    /// // two intervals with the nodes 0, 1 and 1, 2
    /// let map = [0, 1, 1, 2];
    /// let pattern = CsrPattern::of_rows(3, 3, 2, 2, &map, &map)?.upper()?;
    /// assert_eq!(pattern.upper_rows(), (vec![0, 2, 4, 5], vec![0, 1, 1, 2, 2]));
    /// assert_eq!(*pattern.positions(), [0, 1, 1, 2, 2, 3, 3, 4]);
    /// # Ok::<(), kingpost_fem::sparse::PatternError>(())
    /// ```
    ///
    /// # Errors
    /// [`PatternError::Invalid`] of an entry without a mirror image, with its row and column, or of an
    /// entity that has a degree of freedom twice, as facets between cells have.
    pub fn upper(self) -> Result<Self, PatternError> {
        let rows = self.row_starts.len().saturating_sub(1);
        let alone = (0..rows).into_par_iter().find_map_first(|row| {
            let has_image = |column: &i32| self.entry(*column as usize, row).is_some();
            self.own_columns(row).iter().find(|column| !has_image(column)).map(|column| (row, *column))
        });
        let refused = |found: String, needed: &str| PatternError::Invalid {
            place: "the half of a symmetric matrix".into(),
            found,
            needed: needed.into(),
        };
        if let Some((row, column)) = alone {
            let found = format!("an entry at [{row}, {column}] and none at [{column}, {row}]");
            return Err(refused(found, "the same rows and columns"));
        }
        // two entries above the diagonal of an entity's matrix, of which one is added
        let own = (self.extents[0] / self.components[0]).max(1);
        let twice = self.owners.par_chunks(own).enumerate().find_map_first(|(entity, dofs)| {
            let again = |place: usize| dofs[..place].contains(&dofs[place]).then_some(dofs[place]);
            (1..dofs.len()).find_map(again).map(|dof| (entity, dof))
        });
        match twice {
            None => Ok(self.ordered(EntryOrder::UpperRows)),
            Some((entity, dof)) => Err(refused(
                format!("entity {entity} with degree of freedom {dof} twice"),
                "different ones; use a lookup table",
            )),
        }
    }

    /// Where the rows of the entries on and above the diagonal start, and their columns.
    #[must_use]
    pub fn upper_rows(&self) -> (Vec<i32>, Vec<i32>) {
        let rows = 0..self.row_starts.len().saturating_sub(1);
        let above = |row: usize| {
            let own = self.own_columns(row);
            &own[own.partition_point(|column| (*column as usize) < row)..]
        };
        let mut starts = vec![0];
        starts.extend(rows.clone().scan(0, |end, row| {
            *end += above(row).len() as i32;
            Some(*end)
        }));
        let columns = rows.into_par_iter().flat_map_iter(|row| above(row).iter().copied()).collect();
        (starts, columns)
    }

    /// Entries that are stored.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        match self.order {
            EntryOrder::Rows | EntryOrder::Blocks => self.row_starts.last().map_or(0, |n| *n as usize),
            EntryOrder::UpperRows => {
                let rows = (0..self.row_starts.len().saturating_sub(1)).into_par_iter();
                let above = |row: usize| {
                    let own = self.own_columns(row);
                    own.len() - own.partition_point(|column| (*column as usize) < row)
                };
                rows.map(above).sum()
            }
        }
    }

    /// The columns of a row; none of a row that is not there.
    fn own_columns(&self, row: usize) -> &[i32] {
        match self.row_starts.get(row..row + 2) {
            Some([first, last]) => &self.columns[*first as usize..*last as usize],
            Some(_) | None => &[],
        }
    }

    /// Where an entry of the whole matrix stands among those of its row.
    fn entry(&self, row: usize, column: usize) -> Option<usize> {
        self.own_columns(row).binary_search(&(column as i32)).ok()
    }

    /// As [`CsrPattern::positions`], of the entries on and above the diagonal.
    pub(super) fn upper_positions(&self) -> Vec<i32> {
        let (starts, _) = self.upper_rows();
        let places_of = |row: usize| {
            let (starts, columns) = (&starts, self.own_columns(row));
            columns.iter().map(move |column| {
                let (low, high) = (row.min(*column as usize), row.max(*column as usize));
                let own = self.own_columns(low);
                let before = own.partition_point(|column| (*column as usize) < low);
                let place = own.partition_point(|column| (*column as usize) < high) - before;
                starts[low] + place as i32
            })
        };
        let rows = (0..self.row_starts.len().saturating_sub(1)).into_par_iter();
        let places: Vec<i32> = rows.flat_map_iter(places_of).collect();
        self.row_positions().par_iter().map(|place| places[*place as usize]).collect()
    }
}
