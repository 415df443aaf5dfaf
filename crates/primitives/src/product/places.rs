//! What a product is tiled by, and how entries and copies are dealt out by it.

use kingpost_ir::ScalarType;
use kingpost_steps::lookup::quoted;
use kingpost_steps::refusal::{Refusal, TransformError};
use serde::Deserialize;

pub(super) type Applied<T> = Result<T, TransformError>;

/// Work-items of a sub-group.
pub(super) const LANES: i64 = 32;

/// Bytes that are copied at once.
pub(super) const COPIED: i64 = 16;

/// Bytes that are read from memory at once.
const SECTOR: i64 = 32;

/// Elements between the ends of rows in local memory and the next ones, so that the work-items of a
/// sub-group read different banks.
pub(super) const PADDING: i64 = 4;

/// What multiplies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Units {
    /// Each work-item for itself.
    #[default]
    WorkItems,
    /// The matrix instructions of a sub-group, in double precision.
    MatrixInstructions,
    /// The matrix instructions of teams of four sub-groups, of halves.
    TeamInstructions,
}

/// `tile_product([i, j, k], tile: [128, 128, 8], sub_group: [64, 64], buffers: 3)`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileProduct {
    /// The loops along rows and columns of the result, and that of the sum.
    pub loops: [String; 3],
    /// Rows, columns and terms of a tile.
    pub tile: [i64; 3],
    /// Rows and columns of the part of a sub-group.
    pub sub_group: [i64; 2],
    /// Tiles of each factor in local memory: all but one are copied ahead.
    pub buffers: i64,
    /// What multiplies.
    #[serde(default)]
    pub by: Units,
}

/// Terms of a matrix instruction.
pub(super) const MATRIX_TERMS: i64 = 4;

/// A side of a tile: how many entries there are of it, of a sub-group's part, of a block of that, and of
/// what a block is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) lengths: [i64; 4],
}

impl TileProduct {
    pub(super) fn refused(&self, cause: Refusal) -> TransformError {
        TransformError { operation: format!("tile product {}", quoted(&self.loops)), cause }
    }

    /// How entries and copies are dealt out.
    pub(super) fn places(&self, ty: ScalarType) -> Result<Places, Refusal> {
        let [rows, columns, terms] = self.tile;
        let [part_rows, part_columns] = self.sub_group;
        let by_matrix = self.by == Units::MatrixInstructions;
        let suits = if by_matrix { ty == ScalarType::F64 } else { ty.is_real() };
        if !suits {
            let needed = if by_matrix { "sums in `f64`" } else { "sums of real numbers" };
            return Err(Refusal::argument("by", format!("the sums are in `{ty}`"), needed));
        }
        let vector = COPIED / ty.bytes() as i64;
        if !divides(part_rows, rows) || !divides(part_columns, columns) {
            let found = format!("parts of {part_rows} by {part_columns} entries of {rows} by {columns}");
            return Err(Refusal::argument("sub_group", found, "parts of which a whole number makes a tile"));
        }
        let sides = if by_matrix {
            // 16 rows in two halves of 8, and 8 columns in 4 pairs
            let fits = divides(16, part_rows) && divides(8, part_columns) && divides(MATRIX_TERMS, terms);
            fits.then_some([[16, 8], [8, 2]])
        } else {
            let fits =
                |[a, b]: &[i64; 2]| divides(a * vector, part_rows) && divides(b * vector, part_columns);
            // 4096 rows in f32, tiles of 128 by 128: parts of 64 by 32 have 0.91 of cuBLAS by 4
            // rows of 8 work-items, 0.88 by 8 of 4 (H200, 2026-11-29)
            let first = if part_rows == part_columns { [8, 4] } else { [4, 8] };
            let found = [first].into_iter().chain(SHAPES).find(fits);
            found.map(|shape| shape.map(|items| [items * vector, vector]))
        };
        let Some([[row_block, row], [column_block, column]]) = sides else {
            let found = format!("parts of {part_rows} by {part_columns} entries, {terms} terms");
            let needed = "multiples of 16 rows, 8 columns and 4 terms for matrix instructions, else a vector of \
                          16 bytes or more by another for each of 32 work-items";
            return Err(Refusal::argument("sub_group", found, needed));
        };
        // rounds of sub-groups copy whole rows, or a row takes whole rounds
        let is_copied = |count: i64| divides(count, LANES) || divides(LANES, count);
        let lengths = [rows, columns, terms];
        let whole = lengths.iter().all(|n| divides(vector, *n) && is_copied(n / vector) && is_copied(*n));
        if !whole || !(1..=16).contains(&self.buffers) {
            let found = format!(
                "tiles of {rows} rows, {columns} columns and {terms} terms, {} buffers",
                self.buffers
            );
            return Err(Refusal::argument(
                "tile",
                found,
                "powers of two from 16 bytes on, and 1 to 16 buffers",
            ));
        }
        Ok(Places {
            sides: [
                Side { lengths: [rows, part_rows, row_block, row] },
                Side { lengths: [columns, part_columns, column_block, column] },
            ],
            terms,
            sub_groups: (rows / part_rows) * (columns / part_columns),
            vector,
            by_matrix,
            buffers: self.buffers,
            ty,
        })
    }
}

/// Rows and columns of the work-items of a sub-group.
const SHAPES: [[i64; 2]; 4] = [[8, 4], [4, 8], [16, 2], [2, 16]];

fn divides(part: i64, whole: i64) -> bool {
    part > 0 && whole > 0 && whole % part == 0
}

/// How entries and copies are dealt out.
pub(super) struct Places {
    pub(super) sides: [Side; 2],
    pub(super) terms: i64,
    pub(super) sub_groups: i64,
    /// Elements that are copied at once.
    pub(super) vector: i64,
    pub(super) by_matrix: bool,
    pub(super) buffers: i64,
    pub(super) ty: ScalarType,
}

/// Registers of 32 bits of a multiprocessor, and those of a work-item for addresses and counters.
const REGISTERS: i64 = 1 << 16;
const OTHER_REGISTERS: i64 = 24;

impl Places {
    /// Rows and columns of the entries of a work-item that multiplies for itself.
    fn entries(&self) -> [i64; 2] {
        self.sides.map(|Side { lengths: [_, part, block, entry] }| part / block * entry)
    }

    /// Whether a work-item goes through its entries forward and backward in turns.
    pub(super) fn winds(&self) -> bool {
        let [rows, columns] = self.entries();
        !self.by_matrix && rows == columns
    }

    /// Whether work-items read a term ahead, also of the next tile: where registers for two terms
    /// are counted on.
    pub(super) fn reads_ahead(&self) -> bool {
        self.buffers > 1 && self.terms > 2 && self.resident_groups().is_some()
    }

    /// Elements of a row that neighbours copy one by one: a sector of memory.
    pub(super) fn of_sector(&self) -> i64 {
        SECTOR / self.ty.bytes() as i64
    }

    /// Groups that a multiprocessor should have registers for, where entries are wound: with 128
    /// for each work-item, of which its entries and the parts of two terms take half or more, and
    /// leave some.
    pub(super) fn resident_groups(&self) -> Option<u32> {
        let [rows, columns] = self.entries();
        let words = self.ty.bytes() as i64 / 4;
        let taken = words * (rows * columns + 2 * (rows + columns)) + OTHER_REGISTERS;
        let fits = self.winds() && (64..=128).contains(&taken);
        let groups = REGISTERS / (128 * LANES * self.sub_groups);
        u32::try_from(groups).ok().filter(|groups| fits && (1..=32).contains(groups))
    }
}
