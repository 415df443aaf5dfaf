//! The blended kernel by planes of lines, with contractions by FP64 matrix instructions.
//!
//! A line of inner nodes has k even and k - 1 odd parts, and so have its eigenvectors. What a face
//! adds to a line stands at both of its ends, and is the last part of either parity: with the eight
//! parts that a matrix instruction takes, all that a contraction sums is in one product a parity up
//! to degree 7.

use crate::kernels::{Operation, of_text};
use crate::line::Line;
use crate::matrix::Matrix;
use crate::{Dimension, Element, MultigridError, Precision};
use kingpost_ir::text::NamedLayout;
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_primitives::Schedule;
use kingpost_primitives::intrinsics::MMA_M16N8K8_F64;
use kingpost_primitives::primitives::{
    AliasStorage, ChangeLayout, DeclareCallee, FixArgument, ReplaceWithIntrinsic, SetAddressSpace, TagInames,
};

/// Parts of a parity in an instruction.
const PARTS: usize = 8;

/// The cells a side up to which the text says that places in vectors fit 32 bits: 64 take 1.3 times
/// as many instructions.
pub(crate) const MOST_CELLS: usize = 128;

/// Arrays that take turns in a buffer.
const TURNS: [(&[&str], &str); 3] =
    [(&["s0", "s1", "s3", "s4"], "in_turn"), (&["mk", "gk"], "of_planes"), (&["mi", "gi"], "of_ends")];

/// Contractions of what stands on faces, each in loops that load lines, sum and put results.
const FACES: [&str; 6] = ["fk", "fj", "fi", "gk", "gj", "gi"];

/// Contractions of lines of inner nodes, of which a sub-group has two planes.
const INNER: [&str; 6] = ["k2", "j1", "i0", "i3", "j4", "k5"];

/// The contraction whose results are the lines of the next one in place, without a copy.
const HELD: &str = "i0";

/// The schedule for an element.
///
/// # Errors
/// Another kernel, or a degree of which lines do not fill most of an instruction: all but 5 to 7.
pub(crate) fn schedule(
    operation: Operation,
    element: Element,
    precision: Precision,
) -> Result<Schedule, MultigridError> {
    let k = element.degree;
    let suits = (operation, element.dimension, precision)
        == (Operation::SmoothBlended, Dimension::Three, Precision::Double);
    if !suits || !(5..PARTS).contains(&k) {
        return Err(MultigridError::NoTiles(format!(
            "{operation:?} of degree {k} in {} dimensions, {precision:?}, by planes",
            element.dimension.axes()
        )));
    }
    let mut s = of_text(include_str!("../kernels/smooth_planes_3d.kingpost"), element, precision)?;
    for (name, values) in tables(&Line::new(k)?) {
        s.apply(FixArgument::real(name, values))?;
    }
    share(&mut s, k)?;
    place(&mut s)?;
    for (arrays, buffer) in TURNS {
        s.apply(AliasStorage::new(arrays.iter().copied(), buffer))?;
    }
    Ok(s)
}

/// Has planes in local memory, rows of twenty places apart, and lines in the registers of sub-groups.
fn share(s: &mut Schedule, k: usize) -> Result<(), MultigridError> {
    let (p, q) = (2 * k + 1, 2 * k - 1);
    let of_planes = [("mk", p), ("mj", q), ("mi", p), ("gk", q), ("gj", q), ("gi", q)];
    for (array, rows) in of_planes.into_iter().chain(["s0", "s1", "s3", "s4"].map(|array| (array, q))) {
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
        s.apply(ChangeLayout::new(array, NamedLayout::strides([20 * rows as i64, 20, 1])))?;
    }
    for line in FACES.iter().chain(&INNER) {
        for parts in ["e", "c"] {
            s.apply(SetAddressSpace::new(format!("{parts}_{line}"), AddressSpace::SubGroup))?;
        }
    }
    Ok(())
}

/// A work-group for a patch, a sub-group for planes, and an instruction for each sum.
fn place(s: &mut Schedule) -> Result<(), MultigridError> {
    for (axis, patches) in ["p0", "p1", "p2"].into_iter().enumerate() {
        s.apply(TagInames::new([patches], AxisTag::Group(axis as u8)))?;
    }
    let (mut sub_groups, mut lanes, mut unrolled) = (Vec::new(), Vec::new(), Vec::new());
    for line in FACES.iter().chain(&INNER) {
        let parts = if *line == HELD { &["load", "sum"][..] } else { &["load", "sum", "put"][..] };
        for part in parts {
            let of = |l: &str| format!("{l}_{part}_{line}");
            sub_groups.push(of("w"));
            lanes.push(of("l"));
            unrolled.extend(if *part == "sum" { vec![of("h")] } else { vec![of("r"), of("m")] });
            unrolled.extend(INNER.contains(line).then(|| of("o")));
        }
    }
    // one step a tag: each is proved for the whole kernel
    s.apply(TagInames::new(sub_groups, AxisTag::Local(1)))?;
    s.apply(TagInames::new(lanes, AxisTag::Local(0)))?;
    s.apply(TagInames::new(unrolled, AxisTag::Unrolled))?;
    s.apply(DeclareCallee::new(MMA_M16N8K8_F64))?;
    for line in FACES.iter().chain(&INNER) {
        s.apply(ReplaceWithIntrinsic::new([format!("l_sum_{line}")], "mma_m16n8k8_f64"))?;
    }
    Ok(())
}

/// The tables of the text: even rows and columns, then odd ones, filled up with zeros.
fn tables(line: &Line) -> [(&'static str, Vec<f64>); 5] {
    let (k, n) = (line.degree, 2 * line.degree - 1);
    let (vectors, values, to_modes) = line.sorted_modes();
    let mode = |parity: usize, at: usize| (at < k - parity).then_some(k * parity + at);
    let signs = [1.0, -1.0];
    // a node and its mirror image have a part each, the node in the middle is its own
    let of_nodes = |of: &dyn Fn(usize) -> f64, parity: usize, last: usize, at: usize| {
        let half = if 2 * at == last { 0.25 } else { 0.5 };
        if 2 * at <= last { half * (of(at) + signs[parity] * of(last - at)) } else { 0.0 }
    };
    let at_ends = |matrix: &Matrix, row: usize, parity: usize| {
        0.5 * (matrix.at(row, 0) + signs[parity] * matrix.at(row, 1))
    };
    let fluxes =
        Matrix::from_fn(n, 2, |mode, end| (0..n).map(|i| vectors.at(i, mode) * line.flux.at(i, end)).sum());
    let forward = table(&|parity, row, part| {
        mode(parity, row).map_or(0.0, |mode| match part {
            _ if part + 1 == PARTS => -at_ends(&fluxes, mode, parity),
            _ => of_nodes(&|i| vectors.at(i, mode), parity, n - 1, part),
        })
    });
    let backward = table(&|parity, row, part| match (row < k, mode(parity, part)) {
        (true, _) if part + 1 == PARTS => at_ends(&line.blend, row, parity),
        (true, Some(mode)) => 0.5 * (vectors.at(row, mode) + signs[parity] * vectors.at(n - 1 - row, mode)),
        (false, _) | (true, None) => 0.0,
    });
    let mass = table(&|parity, row, part| {
        let from = |i: usize| of_nodes(&|j| line.mass.at(i + 1, j), parity, n + 1, part);
        if row < k { 0.5 * (from(row) + signs[parity] * from(n - 1 - row)) } else { 0.0 }
    });
    let modes = table(&|parity, row, part| {
        mode(parity, row).map_or(0.0, |mode| of_nodes(&|j| to_modes.at(mode, j), parity, n + 1, part))
    });
    let inverses = (0..2 * PARTS * n * n).map(|at| {
        let (parity, row, others) = (at / (PARTS * n * n), at / (n * n) % PARTS, at % (n * n));
        mode(parity, row).map_or(0.0, |mode| 1.0 / (values[mode] + values[others / n] + values[others % n]))
    });
    [
        ("forward", forward),
        ("backward", backward),
        ("mass", mass),
        ("modes", modes),
        ("inverses", inverses.collect()),
    ]
}

/// Entries of a parity, row and part.
fn table(entry: &dyn Fn(usize, usize, usize) -> f64) -> Vec<f64> {
    let all = 0..2 * PARTS * PARTS;
    all.map(|at| entry(at / (PARTS * PARTS), at / PARTS % PARTS, at % PARTS)).collect()
}
