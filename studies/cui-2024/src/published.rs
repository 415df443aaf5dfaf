//! The structures of Cui et al. 2024, §4.1, of the fused kernel: each differs from the one before by
//! the idea it is named after.

use crate::smoother::Kernel;
use kingpost::ir::{AddressSpace, AxisTag};
use kingpost::transforms::primitives::{AliasStorage, PrefetchArray, Tag};
use kingpost::transforms::{Schedule, ScheduleSteps, TransformError};
use kingpost_multigrid::kernels::Operation;
use kingpost_multigrid::schedules::{mapped, pad_as_a_patch, share};
use kingpost_multigrid::{Dimension, Element, MultigridError, Precision};
use serde::{Deserialize, Serialize};

/// A structure of the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Published {
    /// A work-item for each node of a layer; those at the boundary of the patch wait while it is
    /// solved for. Arrays have the rows of a whole patch, and a contraction has its results along
    /// `l.1` (Listing 1).
    Basic,
    /// The same with the inner nodes of a layer numbered one after the other (§4.1.1).
    LinearIndexing,
    /// The same with rows of inner nodes alone, and results along `l.0` as they stand in local memory
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

/// The schedule of a kernel of the smoother. The steps that run patches in parallel prove that those of
/// one colour touch no node of each other.
///
/// # Errors
/// A text that is no kernel, a step that is refused: bugs.
pub fn schedule(
    kernel: Kernel,
    element: Element,
    structure: Published,
    precision: Precision,
) -> Result<Schedule, MultigridError> {
    mapped(kernel.plain(element, precision)?, element.dimension, None, |s, _| {
        Ok(map(s, kernel, element, structure)?)
    })
}

fn map(
    s: &mut Schedule,
    kernel: Kernel,
    element: Element,
    structure: Published,
) -> Result<(), TransformError> {
    let dimension = element.dimension;
    let mut along = [Vec::new(), Vec::new()];
    let mut layers = Vec::new();
    for matrix in ["M", "A", "S", "lambda"] {
        if s.kernel().var(matrix).is_none() {
            continue;
        }
        let fetch = PrefetchArray::new(matrix, "p0", AddressSpace::Local);
        let (_, copies) = s.prefetch_as(fetch, &format!("{matrix}_local"))?;
        match copies.iter().map(String::from).collect::<Vec<_>>().as_slice() {
            [row, column] => layers.push([row.clone(), column.clone()]),
            vector => along[1].extend_from_slice(vector),
        }
    }
    let patch = share(s, 2)?;
    let in_rows_of_a_patch = s.kernel().var("u").is_some() && structure != Published::ConflictFree;
    if in_rows_of_a_patch {
        let side = 2 * element.degree as i64 + 1;
        patch.iter().try_for_each(|array| pad_as_a_patch(s, array, dimension.axes(), side))?;
    }
    for turn in turns(dimension) {
        let there: Vec<&str> = turn.iter().copied().filter(|v| s.kernel().var(v).is_some()).collect();
        if let [first, _, ..] = there[..] {
            s.apply(AliasStorage::new(there.iter().copied(), format!("in_turn_{first}")))?;
        }
    }
    for (number, axis) in contractions(dimension) {
        if s.kernel().iname(&format!("j_{number}")).is_some() {
            layers.push(layer(s, dimension, *number, *axis, structure)?);
        }
    }
    layers.extend(boundary(s, kernel, dimension)?);
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
        s.apply(Tag::all(rows, AxisTag::Local(1)))?;
    }
    s.apply(Tag::all(columns, AxisTag::Local(0))).map(|_| ())
}

/// The loops over rows and columns of what copies the nodes of a patch and, where those at its
/// boundary are taken alone, of their contractions along the first axis.
fn boundary(
    s: &mut Schedule,
    kernel: Kernel,
    dimension: Dimension,
) -> Result<Vec<[String; 2]>, TransformError> {
    let pairs: &[[&str; 2]] = match (kernel, dimension) {
        (Kernel::SmoothBoundary, Dimension::Two) => {
            s.reorder(["e_u", "j_u"])?;
            &[["e_u", "j_u"], ["e_v", "i_v"], ["e_9", "i_9"]]
        }
        (Kernel::SmoothBoundary, Dimension::Three) => {
            s.reorder(["k_u", "e_u", "j_u"])?;
            &[["e_u", "j_u"], ["e_v", "i_v"], ["j_w", "i_w"], ["e_9", "i_9"], ["j_10", "i_10"]]
        }
        (Kernel::Of(Operation::Smooth | Operation::PatchResidual), _) => &[["j_u", "i_u"]],
        (Kernel::Of(_) | Kernel::MovePatch | Kernel::MoveResidual | Kernel::MoveSolution, _) => &[],
    };
    Ok(pairs.iter().map(|pair| pair.map(str::to_owned)).collect())
}

/// The loops over rows and columns of a layer of a contraction, next to each other.
fn layer(
    s: &mut Schedule,
    dimension: Dimension,
    number: u32,
    along: usize,
    structure: Published,
) -> Result<[String; 2], TransformError> {
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
