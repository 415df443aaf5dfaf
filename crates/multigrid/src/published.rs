//! The structures of Cui et al. 2024, §4.1, of the fused kernel: each differs from the one before by
//! the idea it is named after.

use crate::Dimension;
use crate::schedules::{Steps, pad_as_a_patch, share};
use purlin_ir::{AddressSpace, AxisTag};
use purlin_transforms::Schedule;
use purlin_transforms::primitives::{AliasStorage, PrefetchArray, TagInames};

/// A structure of the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// A work-item for each node of a layer; those at the boundary of the patch wait while it is
    /// solved for. Arrays have the rows of a whole patch, and a contraction has its results along
    /// `l.1` (Listing 1).
    Basic,
    /// The same with the inner nodes of a layer numbered one after the other (§4.1.1).
    LinearIndexing,
    /// The same with rows of inner nodes alone, and results along `l.0` as they lie in local memory
    /// (§4.1.2, Listing 2).
    ConflictFree,
}

/// A contraction: the number of its loops, and the axis along which it runs.
type Contraction = (u32, usize);

const fn contractions(dimension: Dimension) -> &'static [Contraction] {
    match dimension {
        Dimension::Two => &[(0, 0), (1, 1), (2, 1), (3, 0), (4, 0), (5, 1)],
        Dimension::Three => &[(0, 0), (1, 1), (2, 2), (3, 2), (4, 1), (5, 0), (6, 0), (7, 1), (8, 2)],
    }
}

/// Arrays that take turns in a buffer: one buffer a dimension, and one more (Table 4).
const fn turns(dimension: Dimension) -> [&'static [&'static str]; 2] {
    match dimension {
        Dimension::Two => [&["u", "r", "s1"], &["mu", "s0", "s2"]],
        Dimension::Three => [&["u", "mm", "s0", "s2", "s4"], &["mu", "r", "s1", "s3"]],
    }
}

/// Maps the smoother of this degree.
pub(crate) fn map(s: &mut Schedule, dimension: Dimension, degree: usize, structure: Published) -> Steps {
    let axes = dimension.axes();
    let mut tiles = Vec::new();
    for matrix in ["M", "A", "S", "lambda"] {
        let fetch = PrefetchArray::new(matrix, "p0", AddressSpace::Local);
        let (_, copies) = s.prefetch_as(fetch, &format!("{matrix}_local"))?;
        tiles.push(copies.iter().map(String::from).collect::<Vec<_>>());
    }
    let patch = share(s)?;
    match structure {
        Published::Basic | Published::LinearIndexing => {
            let side = 2 * degree as i64 + 1;
            patch.iter().try_for_each(|array| pad_as_a_patch(s, array, axes, side))?;
        }
        Published::ConflictFree => {}
    }
    for turn in turns(dimension) {
        s.apply(AliasStorage::new(turn.iter().copied(), format!("in_turn_{}", turn[0])))?;
    }
    let mut layers = vec![["j_u".to_owned(), "i_u".to_owned()]];
    for (number, along) in contractions(dimension) {
        layers.push(layer(s, dimension, *number, *along, structure)?);
    }
    let (matrices, vectors): (Vec<_>, Vec<_>) = tiles.into_iter().partition(|copy| copy.len() == 2);
    layers.extend(matrices.into_iter().filter_map(|copy| <[String; 2]>::try_from(copy).ok()));
    let mut along = [Vec::new(), vectors.concat()];
    for [row, column] in layers {
        match structure {
            Published::Basic => {
                along[0].push(row);
                along[1].push(column);
            }
            Published::LinearIndexing | Published::ConflictFree => {
                along[1].push(String::from(&s.join(row, column)?));
            }
        }
    }
    let [rows, columns] = along;
    if !rows.is_empty() {
        s.apply(TagInames::new(rows, AxisTag::Local(1)))?;
    }
    s.apply(TagInames::new(columns, AxisTag::Local(0))).map(|_| ())
}

/// The loops over rows and columns of a layer of a contraction, next to each other.
fn layer(
    s: &mut Schedule,
    dimension: Dimension,
    number: u32,
    along: usize,
    structure: Published,
) -> Result<[String; 2], purlin_transforms::TransformError> {
    let name = |stem: &str| format!("{stem}_{number}");
    let rest = match structure {
        Published::ConflictFree => ("k", "j", "i"),
        Published::Basic | Published::LinearIndexing => match along {
            0 => ("k", "i", "j"),
            1 => ("k", "j", "i"),
            _ => ("j", "k", "i"),
        },
    };
    let (outer, row, column) = rest;
    match dimension {
        Dimension::Two => s.reorder([name(row), name(column)])?,
        Dimension::Three => s.reorder([name(outer), name(row), name(column)])?,
    };
    Ok([name(row), name(column)])
}
