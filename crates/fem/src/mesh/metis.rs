//! Parts of a mesh by METIS.

use super::Mesh;
use thiserror::Error;

/// Why a mesh was not divided.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PartsError {
    /// There are fewer cells than parts, or no parts.
    #[error("{cells} cells make no {parts} parts; use from 1 to {cells}")]
    Parts {
        /// The number of cells.
        cells: usize,
        /// The number of parts.
        parts: usize,
    },
    /// There are more facets between cells than METIS's numbers of 32 bits count.
    #[error("{facets} facets between cells: METIS takes at most {max}; divide the mesh by where cells are")]
    Facets {
        /// The number of facets between cells.
        facets: usize,
        /// The highest number supported.
        max: usize,
    },
    /// METIS gave up.
    #[error("METIS divided no {cells} cells into {parts} parts: {reason}")]
    Metis {
        /// The number of cells.
        cells: usize,
        /// The number of parts.
        parts: usize,
        /// What it says.
        reason: String,
    },
}

impl Mesh {
    /// The part of each cell, `[cells]`, by METIS: parts of about one size that share few facets.
    ///
    /// Equal meshes have equal parts. The largest part has at most some hundredths more cells than the mean, and
    /// where there are but a few cells a part, one may have none. `Partition::of_cells` of `kingpost::solve` takes
    /// the result. Needs the feature `metis`, for which a C compiler compiles METIS.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let part_of = Mesh::unit_square(8)?.parts_by_metis(2)?; // 128 triangles
    /// assert_eq!(part_of.iter().filter(|part| **part == 1).count(), 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PartsError::Parts`] if there are fewer cells than parts, or no parts; [`PartsError::Facets`] of meshes of
    /// more than a billion facets; [`PartsError::Metis`] if there is no memory.
    ///
    /// # Source
    /// Karypis & Kumar 1998.
    pub fn parts_by_metis(&self, parts: usize) -> Result<Vec<u32>, PartsError> {
        let cells = self.n_cells();
        if parts == 0 || parts > cells {
            return Err(PartsError::Parts { cells, parts });
        }
        let between: Vec<[u32; 2]> =
            self.facets().iter().filter_map(|f| Some([f.side.cell, f.other?.cell])).collect();
        let max = (i32::MAX / 2) as usize;
        if between.len() > max {
            return Err(PartsError::Facets { facets: between.len(), max });
        }
        let (starts, neighbours) = graph(&between, cells);
        let mut found = vec![0; cells];
        let failed = |reason: String| PartsError::Metis { cells, parts, reason };
        metis::Graph::new(1, parts as i32, &starts, &neighbours)
            .map_err(|e| failed(e.to_string()))?
            .part_kway(&mut found)
            .map_err(|e| failed(e.to_string()))?;
        Ok(found.into_iter().map(|part| part as u32).collect())
    }
}

/// Where the neighbours of each cell begin, `[cells + 1]`, and the neighbours.
fn graph(between: &[[u32; 2]], cells: usize) -> (Vec<i32>, Vec<i32>) {
    let mut starts = vec![0_i32; cells + 1];
    for cell in between.as_flattened() {
        starts[*cell as usize + 1] += 1;
    }
    for cell in 0..cells {
        starts[cell + 1] += starts[cell];
    }
    let (mut next, mut neighbours) = (starts.clone(), vec![0; 2 * between.len()]);
    for [one, other] in between {
        for (cell, neighbour) in [(one, other), (other, one)] {
            let place = &mut next[*cell as usize];
            neighbours[*place as usize] = *neighbour as i32;
            *place += 1;
        }
    }
    (starts, neighbours)
}
