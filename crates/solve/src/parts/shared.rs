//! Cells in parts that share the degrees of freedom between them.

use crate::SolveError;
use rayon::prelude::*;

/// The cells of a part with all of their degrees of freedom.
///
/// One that cells of several parts have is in each of these parts, and belongs to the first of
/// them. Where all parts add up what their cells add to it ([`SharedPart::peers`]), each has the
/// same number, and no cell is computed twice: an action sends partial results, where
/// [`PartMesh`](super::PartMesh) sends what it is applied to and has the cells around as well.
///
/// Numbers from `n_free` on, on the whole mesh, are of prescribed values: they are never exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPart {
    /// The cells by their numbers on the whole mesh, ascending, but first those that share degrees
    /// of freedom with other parts: what is exchanged is complete before the other cells begin.
    pub cells: Vec<u32>,
    /// How many cells share some.
    pub n_outer: usize,
    /// The number on the whole mesh of each degree of freedom: own ones, those of other parts,
    /// prescribed ones.
    pub dofs: Vec<i32>,
    /// How many are the part's own.
    pub n_owned: usize,
    /// How many are not prescribed.
    pub n_free: usize,
    /// The degrees of freedom of each cell, `[cells, width]`.
    pub map: Vec<i32>,
    /// The degrees of freedom that other parts have as well, in the order of the whole mesh.
    pub shared: Vec<i32>,
    /// The other parts, ascending, and the places in `shared` of what each of them has, ascending.
    pub peers: Vec<(usize, Vec<u32>)>,
}

impl SharedPart {
    /// The parts of cells whose map is `[cells, width]`, where `part_of` has the part of each cell.
    ///
    /// # Errors
    /// [`SolveError::Length`] if there is not a part for each cell, [`SolveError::NoSuchPart`],
    /// [`SolveError::Parts`] of a part without cells.
    pub fn all(
        (map, width): (&[i32], usize),
        (n_dofs, n_free): (usize, usize),
        part_of: &[u32],
        parts: usize,
    ) -> Result<Vec<Self>, SolveError> {
        let n_cells = map.len().checked_div(width).unwrap_or(0);
        if part_of.len() != n_cells {
            return Err(SolveError::Length { what: "parts of cells", found: part_of.len(), needed: n_cells });
        }
        let mut cells = vec![Vec::new(); parts];
        for (cell, part) in (0..).zip(part_of) {
            let no_part = SolveError::NoSuchPart { part: *part as usize, parts };
            cells.get_mut(*part as usize).ok_or(no_part)?.push(cell);
        }
        if parts == 0 || cells.iter().any(Vec::is_empty) {
            return Err(SolveError::Parts { dofs: n_cells, parts });
        }
        let sharers = Sharers::new(map, width, (n_dofs, n_free), part_of);
        let of_part = |(part, cells): (usize, Vec<u32>)| {
            Self::new((map, width), (n_dofs, n_free), &sharers, (part, cells))
        };
        Ok(cells.into_par_iter().enumerate().map(of_part).collect())
    }

    fn new(
        (whole, width): (&[i32], usize),
        (n_dofs, n_free): (usize, usize),
        sharers: &Sharers,
        (part, mut cells): (usize, Vec<u32>),
    ) -> Self {
        let of_cell = |cell: &u32| &whole[*cell as usize * width..][..width];
        let is_outer = |cell: &u32| of_cell(cell).iter().any(|dof| sharers.is_shared(*dof));
        cells.sort_by_cached_key(|cell| !is_outer(cell));
        let n_outer = cells.iter().take_while(|cell| is_outer(cell)).count();
        // the place of each degree of freedom of the whole mesh; -1 of those that the part lacks
        let mut places = vec![-1; n_dofs];
        cells.iter().flat_map(of_cell).for_each(|dof| places[*dof as usize] = 0);
        let there =
            |range: std::ops::Range<usize>| range.filter(|dof| places[*dof] == 0).map(|dof| dof as i32);
        let (mut dofs, others): (Vec<i32>, Vec<i32>) =
            there(0..n_free).partition(|dof| sharers.of(*dof).is_none_or(|parts| parts[0] as usize == part));
        let n_owned = dofs.len();
        dofs.extend(others);
        let free = dofs.len();
        dofs.extend(there(n_free..n_dofs));
        for (place, dof) in (0..).zip(&dofs) {
            places[*dof as usize] = place;
        }
        let map =
            cells.par_iter().flat_map_iter(|cell| of_cell(cell).iter().map(|dof| places[*dof as usize]));
        let map = map.collect();
        let (mut shared, mut with): (Vec<i32>, Vec<(usize, u32)>) = Default::default();
        for (dof, parts) in sharers.lists.chunk_by(|a, b| a.0 == b.0).map(|list| (list[0].0, list)) {
            if parts.iter().all(|(_, other)| *other as usize != part) {
                continue;
            }
            let others = parts.iter().filter(|(_, other)| *other as usize != part);
            with.extend(others.map(|(_, other)| (*other as usize, shared.len() as u32)));
            shared.push(places[dof as usize]);
        }
        with.sort_unstable();
        let peers = with.chunk_by(|a, b| a.0 == b.0);
        let peers = peers.map(|list| (list[0].0, list.iter().map(|(_, place)| *place).collect())).collect();
        Self { cells, n_outer, dofs, n_owned, n_free: free, map, shared, peers }
    }
}

/// The degrees of freedom of several parts.
struct Sharers {
    /// Each with each of its parts, ascending.
    lists: Vec<(i32, u32)>,
    /// The place of its first part in `lists`; none of one part, or prescribed.
    first: Vec<u32>,
}

/// Of a degree of freedom that no two parts have.
const ALONE: u32 = u32::MAX;

impl Sharers {
    fn new(map: &[i32], width: usize, (n_dofs, n_free): (usize, usize), part_of: &[u32]) -> Self {
        let mut first = vec![ALONE; n_dofs];
        let mut is_shared = vec![false; n_dofs];
        let cells = || map.chunks_exact(width.max(1)).zip(part_of);
        for (dof, part) in cells().flat_map(|(dofs, part)| dofs.iter().map(move |dof| (*dof, *part))) {
            let known = &mut first[dof as usize];
            is_shared[dof as usize] |= *known != ALONE && *known != part && (dof as usize) < n_free;
            *known = part;
        }
        let mut lists: Vec<(i32, u32)> = cells()
            .flat_map(|(dofs, part)| dofs.iter().map(move |dof| (*dof, *part)))
            .filter(|(dof, _)| is_shared[*dof as usize])
            .collect();
        lists.par_sort_unstable();
        lists.dedup();
        first.fill(ALONE);
        for (place, (dof, _)) in lists.iter().enumerate().rev() {
            first[*dof as usize] = place as u32;
        }
        Self { lists, first }
    }

    fn is_shared(&self, dof: i32) -> bool {
        self.first[dof as usize] != ALONE
    }

    /// Its parts, if there are several.
    fn of(&self, dof: i32) -> Option<Vec<u32>> {
        let first = Some(self.first[dof as usize]).filter(|first| *first != ALONE)?;
        let list = self.lists[first as usize..].iter().take_while(|(other, _)| *other == dof);
        Some(list.map(|(_, part)| *part).collect())
    }
}
