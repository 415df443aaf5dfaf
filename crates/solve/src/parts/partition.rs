//! Which part owns which degree of freedom.

use crate::SolveError;
use kingpost_fem::numbering::Numbering;
use std::ops::Range;

/// The owner of each degree of freedom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    owners: Vec<u32>,
    /// The place of each among those of its owner, which are in ascending order.
    places: Vec<u32>,
    /// How many each part owns.
    counts: Vec<usize>,
}

impl Partition {
    /// Divides degrees of freedom by where they are: recursively across the longest side of the box
    /// around them, so that each part has the same number, or one more.
    ///
    /// # Shapes and units
    /// `points` is `[dofs, dim]` row-major.
    ///
    /// # Errors
    /// [`SolveError::Parts`] if there are fewer degrees of freedom than parts, or no parts.
    ///
    /// # Source
    /// Berger & Bokhari 1987.
    pub fn bisect(points: &[f64], dim: usize, parts: usize) -> Result<Self, SolveError> {
        let dofs = points.len().checked_div(dim).unwrap_or(0);
        if parts == 0 || dofs < parts {
            return Err(SolveError::Parts { dofs, parts });
        }
        let mut owners = vec![0; dofs];
        let mut order: Vec<u32> = (0..dofs as u32).collect();
        cut(points, dim, &mut order, 0..parts, &mut owners);
        Self::of_owners(owners, parts)
    }

    /// The one with these owners, such as those that a partitioner of graphs found.
    ///
    /// # Errors
    /// [`SolveError::Parts`] if there are fewer degrees of freedom than parts, or no parts;
    /// [`SolveError::NoSuchPart`] of an owner that is no part.
    pub fn of_owners(owners: Vec<u32>, parts: usize) -> Result<Self, SolveError> {
        if parts == 0 || owners.len() < parts {
            return Err(SolveError::Parts { dofs: owners.len(), parts });
        }
        let mut counts = vec![0_usize; parts];
        let mut places = Vec::with_capacity(owners.len());
        for owner in &owners {
            let no_part = SolveError::NoSuchPart { part: *owner as usize, parts };
            let count = counts.get_mut(*owner as usize).ok_or(no_part)?;
            places.push(*count as u32);
            *count += 1;
        }
        Ok(Self { owners, places, counts })
    }

    /// The one for which each cell is of one part, such as METIS finds (`Mesh::parts_by_metis`): the
    /// first part that has a cell with a degree of freedom owns it.
    ///
    /// # Errors
    /// [`SolveError::Length`] if there is not a part for each cell; as [`Partition::of_owners`].
    pub fn of_cells(numbering: &Numbering, part_of: &[u32], parts: usize) -> Result<Self, SolveError> {
        let n_cells = numbering.dofs().len().checked_div(numbering.dofs_per_cell()).unwrap_or(0);
        if part_of.len() != n_cells {
            return Err(SolveError::Length { what: "parts of cells", found: part_of.len(), needed: n_cells });
        }
        let mut owners = vec![u32::MAX; numbering.n_dofs()];
        for (cell, part) in part_of.iter().enumerate() {
            for dof in numbering.cell(cell) {
                let owner = &mut owners[*dof as usize];
                *owner = (*owner).min(*part);
            }
        }
        Self::of_owners(owners, parts)
    }

    /// How many degrees of freedom each part owns.
    #[must_use]
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The owner of a degree of freedom.
    #[must_use]
    pub fn owner(&self, dof: i32) -> usize {
        self.owners[dof as usize] as usize
    }

    /// The place of a degree of freedom among those of its owner.
    #[must_use]
    pub fn place(&self, dof: i32) -> usize {
        self.places[dof as usize] as usize
    }
}

/// Gives the degrees of freedom of a list to parts.
fn cut(points: &[f64], dim: usize, dofs: &mut [u32], parts: Range<usize>, owners: &mut [u32]) {
    if parts.len() < 2 {
        for dof in dofs {
            owners[*dof as usize] = parts.start as u32;
        }
        return;
    }
    let at = |dof: u32, axis: usize| points[dof as usize * dim + axis];
    let side = |axis: usize| {
        let along = dofs.iter().map(|dof| at(*dof, axis));
        let (low, high) = along.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        high - low
    };
    let longest = (0..dim).max_by(|a, b| side(*a).total_cmp(&side(*b)).then(b.cmp(a))).unwrap_or(0);
    // Those in the plane of the cut are told apart by the other coordinates, so that it stays straight.
    let before = |a: &u32, b: &u32| {
        let along = (0..dim).map(|k| at(*a, (longest + k) % dim).total_cmp(&at(*b, (longest + k) % dim)));
        along.fold(a.cmp(a), std::cmp::Ordering::then).then(a.cmp(b))
    };
    let half = parts.len() / 2;
    let middle = dofs.len() * half / parts.len();
    dofs.select_nth_unstable_by(middle, before);
    let (left, right) = dofs.split_at_mut(middle);
    cut(points, dim, left, parts.start..parts.start + half, owners);
    cut(points, dim, right, parts.start + half..parts.end, owners);
}
