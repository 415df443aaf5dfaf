//! Mappings that combine degrees of freedom in orbits.

use super::{Mapping, MappingError};
use crate::program::{CellKernel, NoSymmetry};
use crate::strategies::{
    ListedCells, MatrixCells, MatrixGroups, StraightCells, listed_cells, matrix_group_orbits, matrix_orbits,
    straight_cells,
};
use purlin_ir::Kernel;
use purlin_primitives::Recipe;

impl Mapping {
    /// The mapping of the symmetric form, which combines its degrees of freedom in orbits.
    pub(super) fn in_orbits(
        &self,
        form: &impl CellKernel,
        resident_groups: Option<u32>,
        points: bool,
    ) -> Result<(Kernel, Recipe), MappingError> {
        if let (Self::StraightCells { cells, whole_groups, parts }, true) = (self, points) {
            let (form, orbits) = form.in_point_orbits()?;
            let args = StraightCells {
                work_group: *cells,
                orbits,
                point_orbits: true,
                resident_groups,
                whole_groups: *whole_groups,
                parts: parts.clone(),
            };
            return Ok(straight_cells(&form.kernel, &form.program, &args)?);
        }
        if points {
            return Err(NoSymmetry::Points { mapping: self.to_string() }.into());
        }
        if let (Self::MatrixCells { sub_groups, groups, kept_tables, overlapped, parts }, None) =
            (self, resident_groups)
        {
            let (form, orbits) = form.symmetric()?;
            let args = MatrixCells {
                sub_groups: *sub_groups,
                groups: *groups,
                kept_tables: *kept_tables,
                overlapped: *overlapped,
                parts: parts.clone(),
            };
            return Ok(matrix_orbits(&form.kernel, &form.program, &args, &orbits)?);
        }
        if let (
            Self::MatrixGroups { resident_groups, point_tiles, short_terms: false, one_sub_group, parts },
            None,
        ) = (self, resident_groups)
        {
            let (form, orbits) = form.symmetric()?;
            let args = MatrixGroups {
                resident_groups: *resident_groups,
                point_tiles: *point_tiles,
                short_terms: false,
                one_sub_group: *one_sub_group,
                parts: parts.clone(),
            };
            return Ok(matrix_group_orbits(&form.kernel, &form.program, &args, &orbits)?);
        }
        if let Self::ListedCells(lists) = self {
            let (form, orbits) = form.symmetric()?;
            let args = ListedCells { lists: *lists, orbits, resident_groups };
            return Ok(listed_cells(&form.kernel, &form.program, &args)?);
        }
        let Self::StraightCells { cells, whole_groups, parts } = self else {
            return Err(NoSymmetry::Mapping { mapping: self.to_string() }.into());
        };
        let (form, orbits) = form.symmetric()?;
        let args = StraightCells {
            work_group: *cells,
            orbits,
            point_orbits: false,
            resident_groups,
            whole_groups: *whole_groups,
            parts: parts.clone(),
        };
        Ok(straight_cells(&form.kernel, &form.program, &args)?)
    }
}
