//! Contractions of the fused kernel in three dimensions by FP64 matrix instructions.

use crate::ahead;
use crate::operation::Operation;
use crate::parities::PAIRS;
use crate::{Dimension, Element, MultigridError, Precision, Steps};
use kingpost_ir::AddressSpace;
use kingpost_primitives::instruction_lines::{InstructionLines, pad_lines};
use kingpost_primitives::primitives::{
    AliasStorage, CopyTable, CropTable, DistributeLoop, ExpandArray, MakeAtomic, PadInames, PrefetchArray,
    RemoveUnusedVars, SetAddressSpace, SplitSum,
};
use kingpost_primitives::{Schedule, Selection};
use std::collections::BTreeMap;

/// Nodes of a tile.
const TILE: i64 = 8;

/// A sum of a contraction: its loops over terms, with the matrix of each, and what stands after it.
struct Sum {
    terms: &'static [(&'static str, &'static str)],
    behind: &'static str,
}

/// A contraction along an axis, counted from the innermost, and what it reads.
struct Contraction {
    along: usize,
    sums: &'static [Sum],
    read: &'static [&'static str],
}

const fn by_vectors(sums: &'static [Sum], along: usize, read: &'static [&'static str]) -> Contraction {
    Contraction { along, sums, read }
}

/// The nests of the fused kernel, in sequence.
const CONTRACTIONS: [Contraction; 9] = [
    Contraction {
        along: 0,
        sums: &[
            Sum { terms: &[("l_m0", "M")], behind: "mass0" },
            Sum { terms: &[("l_a0", "A")], behind: "stiff0" },
        ],
        read: &[],
    },
    Contraction {
        along: 1,
        sums: &[
            Sum { terms: &[("l_m1", "M")], behind: "mass1" },
            Sum { terms: &[("l_a1", "M"), ("l_a1_1", "A")], behind: "stiff1" },
        ],
        read: &["mu", "au"],
    },
    Contraction {
        along: 2,
        sums: &[Sum { terms: &[("l_2", "M"), ("l_2_1", "A")], behind: "residual" }],
        read: &["ma", "mm"],
    },
    by_vectors(&[Sum { terms: &[("l_3", "S")], behind: "to_modes2" }], 2, &[]),
    by_vectors(&[Sum { terms: &[("l_4", "S")], behind: "to_modes1" }], 1, &["s0"]),
    by_vectors(&[Sum { terms: &[("l_5", "S")], behind: "to_modes0" }], 0, &["s1"]),
    by_vectors(&[Sum { terms: &[("l_6", "S")], behind: "from_modes0" }], 0, &[]),
    by_vectors(&[Sum { terms: &[("l_7", "S")], behind: "from_modes1" }], 1, &["s3"]),
    by_vectors(&[Sum { terms: &[("l_8", "S")], behind: "correct" }], 2, &["s4"]),
];

/// Arrays that stay in the registers of a sub-group, with the axis of their lines.
const HELD: [(&str, usize); 3] = [("u", 0), ("r", 2), ("s2", 0)];

/// Arrays in local memory that take turns in a buffer.
const TURNS: [&[&str]; 2] = [&["au", "ma", "s0", "s3"], &["mu", "mm", "s1", "s4"]];

/// Sums of two products, whose loops are distributed.
const PRODUCTS: [(&str, &str); 2] = [("l_a1", "r_l_a1_update"), ("l_2", "r_l_2_update")];

/// The length of lines, filled up to whole tiles.
///
/// # Errors
/// Another kernel, or a degree at which inner nodes of a patch fill fewer tiles than all: 1, 4, and 8
/// and more; sub-groups that do not share planes in pairs; parts of lines of one tile.
pub(crate) fn length(
    operation: Operation,
    element: Element,
    precision: Precision,
    (sub_groups, parities): (u32, bool),
) -> Result<i64, MultigridError> {
    let k = element.degree as i64;
    let tiled = |n: i64| (n + TILE - 1) / TILE * TILE;
    let [all, inner] = [2 * k + 1, 2 * k - 1].map(tiled);
    let of_a_kind =
        (operation, element.dimension, precision) == (Operation::Smooth, Dimension::Three, Precision::Double);
    let shared = sub_groups >= 1 && all % (2 * i64::from(sub_groups)) == 0;
    let of_tiles = k >= 2 && all == inner && all <= 2 * TILE && (!parities || all == 2 * TILE);
    if !of_a_kind || !of_tiles || !shared {
        return Err(MultigridError::NoTiles(format!(
            "{operation:?} of degree {k} in {} dimensions, {precision:?}, {sub_groups} sub-groups",
            element.dimension.axes()
        )));
    }
    Ok(all)
}

/// Maps the fused kernel, whose reductions are realised and whose matrices are tables: of nodes, or of
/// even and odd parts ([`crate::parities::decompose`]).
pub(crate) fn map(s: &mut Schedule, length: i64, (sub_groups, parities): (i64, bool)) -> Steps {
    for (terms, update) in PRODUCTS {
        s.apply(SplitSum::new(update))?;
        distribute(s, terms, &[(format!("{update}_1"), format!("{terms}_1"))])?;
    }
    if parities {
        s.apply(RemoveUnusedVars {})?;
    } else {
        matrices(s)?;
    }
    let mut loops = Loops::default();
    for (nest, contraction) in CONTRACTIONS.iter().enumerate() {
        apart(s, nest, contraction, parities, &mut loops)?;
    }
    loops.held.extend(HELD.map(|(array, along)| (array.to_owned(), along)));
    let mut lines = if parities {
        InstructionLines::of_parities(sub_groups)
    } else {
        loops.all.push((["k_u", "j_u", "i_u"].map(str::to_owned), 0, [0; 3]));
        loops.pad(s, length)?;
        InstructionLines::new(length, sub_groups)
    };
    for (nest, array, along) in PAIRS.iter().filter(|_| parities) {
        lines.deal_pairs(s, across(nest, *along))?;
        if *array != "u" {
            loops.held.push(((*array).to_owned(), *along));
        }
    }
    for (nest, along, _) in &loops.all {
        lines.deal(s, across(nest, *along))?;
    }
    for (nest, along, terms) in &loops.sums {
        lines.contract(s, across(nest, *along), terms)?;
    }
    for (array, along) in &loops.held {
        lines.hold(s, array, across(&[0, 1, 2], *along))?;
    }
    for array in TURNS.concat() {
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
    }
    for (_, nest) in copied(s) {
        lines.deal_rounds(s, nest)?;
    }
    lines.place(s)?;
    for turn in TURNS {
        for array in turn {
            pad_lines(s, array, 0)?;
        }
        s.apply(AliasStorage::new(turn.iter().copied(), format!("in_turn_{}", turn[0])))?;
    }
    let arrays: Vec<&str> = copied(s).map(|(array, _)| array).collect();
    if !arrays.is_empty() {
        ahead::pipeline(s, &arrays, Precision::Double)?;
    }
    // colours keep patches apart, but nothing waits for what an atomic update reads
    s.apply(MakeAtomic { insns: Selection::Writes("x".into()) }).map(drop)
}

/// Takes patches one after the other, with copies of what they need in local memory: the nodes, and
/// the right-hand side where two groups have room for it.
pub(crate) fn copy_ahead(s: &mut Schedule, element: Element, patches: u32) -> Steps {
    ahead::take_in_turn(s, patches)?;
    ahead::copy_nodes(s)?;
    if element.degree <= 6 {
        ahead::copy_source(s, element.dimension, AddressSpace::Local)?;
    }
    Ok(())
}

/// The arrays that are copied ahead, and the loops of their copies.
fn copied(s: &Schedule) -> impl Iterator<Item = (&'static str, [&'static str; 3])> + use<> {
    let all = [(ahead::NODES, ahead::NODES_LOOPS), (ahead::SOURCE, ahead::SOURCE_LOOPS)];
    let there = all.map(|(array, _)| s.kernel().var(array).is_some());
    all.into_iter().zip(there).filter_map(|(copy, there)| there.then_some(copy))
}

/// A fetch of a patch to registers.
fn fetch(array: &str, into: &str, stem: &str) -> PrefetchArray {
    PrefetchArray {
        inames: ['k', 'j', 'i'].map(|l| format!("{l}_{stem}")).into(),
        ..PrefetchArray::new(array, "p0", AddressSpace::Private).into_temporary(into)
    }
}

/// Planes, lines and nodes of lines along an axis, of what is in the order `[k, j, i]`.
fn across<T: Clone>([k, j, i]: &[T; 3], along: usize) -> [T; 3] {
    let [k, j, i] = [k, j, i].map(Clone::clone);
    match along {
        0 => [k, j, i],
        1 => [k, i, j],
        _ => [j, i, k],
    }
}

/// Distributes a loop over parts that begin before these statements, each with the name of its loop.
fn distribute(s: &mut Schedule, along: &str, parts: &[(String, String)]) -> Steps {
    let before = parts.iter().map(|(statement, _)| statement.clone());
    let names = parts.iter().map(|(_, name)| name.clone()).collect();
    s.make(DistributeLoop { names, ..DistributeLoop::new(along, before) }).map(drop)
}

/// Gives each sum the rows of a matrix that it takes as a table of its own; no table has the name of
/// an argument of the plain kernel.
fn matrices(s: &mut Schedule) -> Steps {
    for contraction in &CONTRACTIONS {
        for (terms, matrix) in contraction.sums.iter().flat_map(|sum| sum.terms) {
            let copy = format!("{matrix}_{terms}");
            s.apply(CopyTable::new(*matrix, Selection::Insn(update(terms)), &copy))?;
            if *matrix != "S" {
                s.apply(CropTable::new(copy))?;
            }
        }
    }
    s.apply(CopyTable::new("lambda", Selection::Insn("to_modes0".into()), "eigenvalues"))?;
    s.apply(RemoveUnusedVars {}).map(drop)
}

/// The update in a loop over terms.
fn update(terms: &str) -> String {
    match terms.strip_suffix("_1") {
        Some(first) => format!("r_{first}_update_1"),
        None => format!("r_{terms}_update"),
    }
}

/// Loops of the kernel once sums have nests of their own.
#[derive(Default)]
struct Loops {
    /// Nests `[k, j, i]` of nodes, with the axis of their lines and the numbers of contractions along
    /// each axis, from the innermost, before.
    all: Vec<([String; 3], usize, [u32; 3])>,
    /// Nests of sums, with the axis of their lines and the loop over terms.
    sums: Vec<([String; 3], usize, String)>,
    /// The nests of [`Self::sums`] as [`Self::all`] has them.
    numbers: Vec<([String; 3], [u32; 3])>,
    /// Loops over terms, with their axis and its number.
    terms: Vec<(String, usize, u32)>,
    /// Arrays in registers, with the axis of their lines.
    held: Vec<(String, usize)>,
}

impl Loops {
    /// Runs all loops over zeros up to a length: those along an axis between two contractions at once.
    fn pad(&self, s: &mut Schedule, length: i64) -> Steps {
        let mut alike: BTreeMap<(usize, u32), Vec<String>> = BTreeMap::new();
        let nests = self.all.iter().map(|(nest, _, numbers)| (nest, numbers));
        for (nest, numbers) in nests.chain(self.numbers.iter().map(|(nest, numbers)| (nest, numbers))) {
            for (axis, number) in numbers.iter().enumerate() {
                alike.entry((axis, *number)).or_default().push(nest[2 - axis].clone());
            }
        }
        for (terms, axis, number) in &self.terms {
            alike.entry((*axis, *number)).or_default().push(terms.clone());
        }
        alike.into_values().try_for_each(|loops| s.apply(PadInames::new(loops, length)).map(drop))
    }
}

/// Gives the sums of a contraction, what sets them to zero, what stands after them and the lines that
/// they take nests of their own.
fn apart(
    s: &mut Schedule,
    nest: usize,
    contraction: &Contraction,
    parities: bool,
    loops: &mut Loops,
) -> Steps {
    let along = contraction.along;
    let before = numbers(nest);
    let after = numbers(nest + 1);
    let nest = ['k', 'j', 'i'].map(|letter| format!("{letter}_{nest}"));
    let mut parts: Vec<(String, String)> = Vec::new();
    for (number, sum) in contraction.sums.iter().enumerate() {
        let first = sum.terms[0].0;
        s.apply(ExpandArray::new(format!("r_{first}"), nest.clone()))?;
        loops.held.push((format!("r_{first}"), along));
        if number > 0 {
            parts.push((format!("r_{first}_init"), format!("_{first}_zero")));
        }
        parts.extend(sum.terms.iter().map(|(terms, _)| ((*terms).to_owned(), format!("_{terms}"))));
        let behind = if parities && sum.behind == "correct" { "set_correction" } else { sum.behind };
        parts.push((behind.to_owned(), format!("_{behind}")));
    }
    for letter in nest.iter().rev() {
        let named: Vec<_> =
            parts.iter().map(|(at, suffix)| (at.clone(), format!("{letter}{suffix}"))).collect();
        distribute(s, letter, &named)?;
    }
    loops.all.push((nest.clone(), along, after));
    for (at, suffix) in parts {
        let part = nest.clone().map(|l| format!("{l}{suffix}"));
        if contraction.sums.iter().any(|sum| sum.terms.iter().any(|(terms, _)| *terms == at)) {
            loops.sums.push((part.clone(), along, at.clone()));
            loops.terms.push((at, along, before[along]));
            loops.numbers.push((part, after));
        } else {
            loops.all.push((part, along, after));
        }
    }
    for array in contraction.read {
        let line = format!("line_{array}");
        s.apply(fetch(array, &line, &line))?;
        loops.all.push((['k', 'j', 'i'].map(|letter| format!("{letter}_{line}")), along, before));
        loops.held.push((line, along));
    }
    Ok(())
}

/// Contractions along each axis, from the innermost, in the nests before one.
fn numbers(nest: usize) -> [u32; 3] {
    let mut numbers = [0; 3];
    CONTRACTIONS[..nest].iter().for_each(|c| numbers[c.along] += 1);
    numbers
}
