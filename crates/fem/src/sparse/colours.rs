//! Entities whose results share no entry.

use super::{CsrPattern, PatternError};

/// Most colours: bits of a word.
const MOST: usize = u128::BITS as usize;

impl CsrPattern {
    /// Entities by colour, each in ascending order: the matrices of those of a colour have no entry of
    /// the sparse matrix in common. Each entity gets the first colour that is free.
    ///
    /// ```
    /// use kingpost_fem::sparse::CsrPattern;
    ///
    /// // three intervals in a row: the first and the last share no node
    /// let map = [0, 1, 1, 2, 2, 3];
    /// let pattern = CsrPattern::of_rows(4, 4, 2, 2, &map, &map)?;
    /// assert_eq!(pattern.colours()?, [vec![0, 2], vec![1]]);
    /// # Ok::<(), kingpost_fem::sparse::PatternError>(())
    /// ```
    ///
    /// # Errors
    /// [`PatternError::Invalid`]: an entity two of whose entries are one of the sparse matrix, or that
    /// needs more than 128 colours.
    ///
    /// # Source
    /// Cecka et al. 2011: assembly by colours.
    pub fn colours(&self) -> Result<Vec<Vec<u32>>, PatternError> {
        let size: usize = self.extents.iter().product();
        coloured(&self.positions(), size, self.columns.len(), ["entries", "entry"])
    }
}

/// Entities by colour, each in ascending order, of a map `[entities, columns]` to `n` degrees of
/// freedom: those of a colour share none. Each entity gets the first colour that is free.
///
/// ```
/// use kingpost_fem::sparse::map_colours;
///
/// // three intervals in a row: the first and the last share no node
/// assert_eq!(map_colours(&[0, 1, 1, 2, 2, 3], 2, 4)?, [vec![0, 2], vec![1]]);
/// # Ok::<(), kingpost_fem::sparse::PatternError>(())
/// ```
///
/// # Errors
/// [`PatternError::Invalid`]: an entity with one degree of freedom twice, or that needs more than
/// 128 colours.
///
/// # Source
/// Cecka et al. 2011: assembly by colours.
pub fn map_colours(map: &[i32], columns: usize, n: usize) -> Result<Vec<Vec<u32>>, PatternError> {
    coloured(map, columns, n, ["degrees of freedom", "degree of freedom"])
}

/// Entities by colour, where each has that number of the `n` places.
fn coloured(places: &[i32], size: usize, n: usize, names: [&str; 2]) -> Result<Vec<Vec<u32>>, PatternError> {
    let mut taken = vec![0_u128; n];
    let mut colours: Vec<Vec<u32>> = Vec::new();
    for (entity, places) in places.chunks(size.max(1)).enumerate() {
        let used = places.iter().fold(0, |used, place| used | taken[*place as usize]);
        let colour = used.trailing_ones() as usize;
        let refused =
            |found: String, needed: String| PatternError::Invalid { place: "map".into(), found, needed };
        let [several, one] = names;
        if colour == MOST {
            return Err(refused(
                format!("entity {entity}, which shares {several} with entities of {MOST} colours"),
                "fewer of them; update atomically".into(),
            ));
        }
        for place in places {
            let own = &mut taken[*place as usize];
            if *own >> colour & 1 == 1 {
                return Err(refused(
                    format!("entity {entity}, which adds to {one} {place} twice"),
                    "different degrees of freedom; update atomically".into(),
                ));
            }
            *own |= 1 << colour;
        }
        if colour == colours.len() {
            colours.push(Vec::new());
        }
        colours[colour].push(entity as u32);
    }
    Ok(colours)
}
