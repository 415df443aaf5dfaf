//! BP1.0, a work-item for each node of a layer: Świrydowicz et al. 2019, §6.

use super::bulk::{align_elements, copy_in_bulk, prefetch_next};
use super::even_odd::{RESULTS, by_halves, interpolations};
use super::lines::fix_matrix;
use super::nest::{
    Steps, change_layout, contract, copy_ahead, cut, deal_lines, expand, fetch, fetch_entries, fetch_matrix,
    fuse, group_elements, halve_contractions, lay_out_in_place, literal_tables, pad, pad_even, place,
    place_items, realise, share, spill, unroll,
};
use crate::problem::{Precision, Sizes};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{AddressSpace, AliasStorage, AxisTag, MoveInsns, Schedule, SetResidentGroups};

pub const IDEAS: [&str; 20] = [
    "reference: a layer of quadrature points at a time, partial results in global memory, `I` in local memory",
    "partial results in two arrays of local memory",
    "a column of `u` in registers, from the beginning",
    "inputs are const: every kernel of Kingpost declares them so, hence the same code as kernel 3",
    "rows of local arrays padded where columns meet in one bank",
    "all loops unrolled, also the one over layers",
    "the element in local memory, and five barriers instead of four a layer",
    "each entry of `I` fetched once and used twice, by symmetry",
    "beyond the publication: `I` in constant memory, an operand of each multiplication",
    "several elements in a work-group, so that few of its lanes are idle",
    "from N = 7 on one element a work-group, and registers for several",
    "even–odd contractions: half of the multiplications, and matrices of half the size",
    "a column of `w` in registers from the beginning, so that it is there when it is needed",
    "`w` in local memory by asynchronous copies from the beginning, and rows of even length padded",
    "one local array instead of two, so that more groups are resident",
    "entries of `I` as literals instead of constant memory",
    super::bp10_mma::IDEA,
    "by lines, one local array, entries from constant memory: loads of `u` before the copies of `w`",
    "results of a line in its own places, so that barriers stand between contractions alone, and lines dealt out without gaps",
    "from N = 13 on `u` of a later element brought to the second-level cache; at N = 15 `w` by the copy engine, and planes of local memory without gaps",
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    if number < 7 { layers(s, sizes, number) } else { columns(s, sizes, number, elements) }
}

/// Kernels 1 to 6: for one layer of quadrature points after the other, interpolates to it, scales,
/// and adds its projection to a column of results.
fn layers(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let (n, m) = (sizes.nodes(), sizes.points());
    realise(s, &["l1", "l2", "l3", "l4", "l5", "l6"])?;
    // the last contraction runs over layers, and becomes part of their loop
    expand(s, &["r_l6"], &["k6", "j6", "i6"])?;
    cut(s, &["k6", "j6", "i6"], &[("l6", "add"), ("s6", "out")])?;
    s.reorder(["l6", "j6_add", "i6_add", "k6_add"])?;
    s.apply(MoveInsns::before(["k6"], "c1"))?;
    for later in ["c2", "c3", "c4", "c5", "l6"] {
        s.fuse("c1", later)?;
    }
    fuse(s, &["j5", "i5"], &["j6_add", "i6_add"])?;
    for (array, axes) in [("t1", 1), ("t2", 1), ("t3", 1), ("t4", 1), ("t5", 3)] {
        contract(s, array, axes)?;
    }
    fetch_matrix(s, "I", &[m, m])?;
    if number >= 3 {
        s.apply(fetch("u", "e", AddressSpace::Private, "r_u", &["f2", "f1", "f0"]))?;
    }
    if number == 1 {
        spill(s, &["t1", "t2", "t3", "t4"])?;
    } else {
        share(s, &["t1", "t2", "t3", "t4"])?;
    }
    if number >= 5 {
        pad(s, n, &["t1", "t2", "t4", "s_I"])?;
        pad(s, m, &["t3"])?;
    }
    let (mut rows, mut columns) = (
        vec!["j6", "j1", "b2", "b3", "b4", "j5", "j6_out"],
        vec!["i6", "i1", "i2", "a3", "i4", "i5", "i6_out"],
    );
    if number >= 3 {
        rows.push("f1");
        columns.push("f0");
    }
    place(s, &[&columns, &rows])?;
    if number >= 2 {
        s.apply(AliasStorage::new(["t1", "t3"], "s_1"))?;
        s.apply(AliasStorage::new(["t2", "t4"], "s_2"))?;
    }
    if number >= 6 {
        unroll(s, &["k6", "f2", "c1", "l1", "l2", "l3", "l4", "l5", "k6_add", "k6_out"])?;
    }
    Ok(())
}

/// Kernels 7 and later: each contraction runs over the whole element, a column a work-item.
fn columns(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let m = sizes.points();
    s.reorder(["j1", "i1", "c1"])?;
    s.reorder(["c2", "i2", "b2"])?;
    s.reorder(["c5", "i5", "j5"])?;
    s.reorder(["j6", "i6", "k6"])?;
    realise(s, &["l1", "l2", "l3", "l4", "l5", "l6"])?;
    fuse(s, &["c3", "b3"], &["c4", "b4"])?;
    contract(s, "t3", 2)?;
    let middle = if (8..12).contains(&number) { halve_contractions(s, sizes)? } else { Vec::new() };
    if number >= 9 {
        fix_matrix(s, sizes, "I", sizes.interpolation())?;
    } else {
        fetch_matrix(s, "I", &[m, m])?;
    }
    if number == 8 {
        fetch_entries(s)?;
    }
    let u_first = number >= 18;
    if u_first {
        s.apply(fetch("u", "e", AddressSpace::Private, "column_u", &["u2", "u1", "u0"]))?;
        s.reorder(["u1", "u0", "u2"])?;
        unroll(s, &["u2"])?;
    }
    for (array, at, name, along) in [
        (if u_first { "column_u" } else { "u" }, "i1", "r_u", "f1"),
        ("t1", "i2", "r_t1", "f2"),
        ("t2", "b3", "r_t2", "f3"),
        ("w", "b3", "r_w", "fw"),
        ("t4", "i5", "r_t4", "f5"),
        ("t5", "i6", "r_t5", "f6"),
    ] {
        if array == "w" && number >= 14 {
            continue; // from local memory
        }
        let early = array == "w" && number >= 13;
        let (at, along) = if early { ("e", &["w2", "w1", "fw"][..]) } else { (at, &[along][..]) };
        s.apply(fetch(array, at, AddressSpace::Private, name, along))?;
    }
    let halves =
        if number >= 12 { by_halves(s, &interpolations(sizes, RESULTS, LINES))? } else { Vec::new() };
    if number == 16 {
        literal_tables(s)?;
    }
    share(s, &LOCAL)?;
    place_columns(s, sizes, number, elements)?;
    let mut unrolled = vec!["f1", "f2", "f3", "f5", "f6", "c1", "b2", "a3", "i4", "j5", "k6"];
    unrolled.extend(["l1", "l2", "l3", "l4", "l5", "l6"]);
    if number < 14 {
        unrolled.push("fw");
    }
    unrolled.extend(middle.iter().chain(&halves).map(String::as_str));
    unroll(s, &unrolled)?;
    match resident_groups(sizes.degree, number) {
        Some(groups) if number >= 11 && elements == 1 => s.apply(SetResidentGroups::new(groups)).map(|_| ()),
        Some(_) | None => Ok(()),
    }
}

/// Local arrays of [`columns`].
const LOCAL: [&str; 4] = ["t1", "t2", "t4", "t5"];

/// Runs columns on work-items, and elements on work-groups.
fn place_columns(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let (n, m) = (sizes.nodes(), sizes.points());
    let (mut columns, mut rows) = (vec!["i1", "i2", "b3", "i5", "i6"], vec!["j1", "c2", "c3", "c5", "j6"]);
    if number < 9 {
        pad(s, n, &["t1", "t2", "t4", "t5", "s_I"])?;
        place(s, &[&columns, &rows])?;
        return two_arrays(s);
    }
    if number == 13 {
        columns.push("w1");
        rows.push("w2");
    }
    let in_place = number >= 19 && elements == 1;
    if number >= 15 && !in_place {
        // a line is summed before the next one takes its place
        for (sum, [row, column], store) in
            [("r_l2", ["c2", "i2"], "s2"), ("r_l4", ["c3", "b3"], "s4"), ("r_l5", ["c5", "i5"], "s5")]
        {
            expand(s, &[sum], &[row, column])?;
            cut(s, &[row, column], &[(store, "out")])?;
        }
        columns.extend(["i2_out", "b3_out", "i5_out"]);
        rows.extend(["c2_out", "c3_out", "c5_out"]);
    }
    if number >= 18 {
        columns.push("u0");
        rows.push("u1");
    }
    let alone = number >= 18 && elements == 1;
    let mut of_elements = vec!["e_in"];
    if alone {
        s.tag("e", AxisTag::Group(0))?;
        of_elements.clear();
        s.apply(fetch("w", "e", AddressSpace::Local, "s_w", &["w2", "w1", "w0"]))?;
        s.apply(MoveInsns::before(["w2"], "j1"))?;
    } else {
        group_elements(s, elements, &LOCAL)?;
    }
    if number >= 14 && !alone {
        let loops = &["we", "w2", "w1", "w0"][usize::from(elements == 1)..];
        s.apply(fetch("w", "group", AddressSpace::Local, "s_w", loops))?;
        of_elements.extend(["we"].iter().filter(|_| elements > 1));
    }
    // rows of an odd number of points in bulk: of an even one, lines would meet in banks (and N = 13 loses by it: 686 for
    // 658 µs, H200, 2026-11-30)
    let in_bulk = in_place && number >= 20 && sizes.degree == 15 && sizes.precision == Precision::Double;
    if number >= 14 && !in_bulk {
        columns.push("w0");
        rows.push("w1");
        unroll(s, &["w2"])?;
    }
    if in_bulk {
        deal_lines(s, &rows, &columns)?;
        let strides = format!("strides({}, {m}, 1)", m * m);
        LOCAL.iter().try_for_each(|array| change_layout(s, array, &strides))?;
        align_elements(s, "w", &[m; 3])?;
        copy_in_bulk(s, &[m; 3], "w2")?;
        prefetch_next(s, n)?;
        return s.apply(AliasStorage::new(LOCAL, "s_1")).map(drop);
    }
    if in_place {
        deal_lines(s, &rows, &columns)?;
        lay_out_in_place(s, &LOCAL, n, n | 1, m)?;
        if number >= 20 && sizes.degree >= 13 && sizes.precision == Precision::Double {
            prefetch_next(s, n)?;
        }
    } else {
        place_items(s, &[&columns, &rows, &of_elements])?;
    }
    if number < 14 {
        pad(s, n, &LOCAL)?;
        return two_arrays(s);
    }
    if !in_place {
        pad_even(s, n, &LOCAL)?;
    }
    pad_even(s, m, &["s_w"])?;
    copy_ahead(s, sizes, &["fetch_s_w"])?;
    if number == 14 { two_arrays(s) } else { s.apply(AliasStorage::new(LOCAL, "s_1")).map(|_| ()) }
}

/// Arrays that take turns in two buffers.
fn two_arrays(s: &mut Schedule) -> Steps {
    s.apply(AliasStorage::new(["t1", "t4"], "s_1"))?;
    s.apply(AliasStorage::new(["t2", "t5"], "s_2")).map(|_| ())
}

/// The groups that a kernel asks registers for.
fn resident_groups(degree: usize, number: u32) -> Option<u32> {
    match number {
        ..=11 => resident(degree),
        12 => resident_by_halves(degree),
        13 => resident_with_factors(degree),
        14 => resident_with_copied_factors(degree),
        19.. if degree >= 13 => Some(2), // three spill (H200, 2026-11-30)
        _ => resident_with_one_array(degree),
    }
}

/// What follows the sum of each contraction, and the line of values that it takes.
const LINES: [(&str, &str); 6] =
    [("s1", "r_u"), ("s2", "r_t1"), ("s3", "r_t2"), ("s4", "t3"), ("s5", "r_t4"), ("s6", "r_t5")];

/// As [`resident`] for even–odd contractions, which hold more sums at a time: as many groups as spill
/// nothing.
fn resident_by_halves(degree: usize) -> Option<u32> {
    match degree {
        12 => Some(3),
        13 | 14 => Some(2),
        _ => resident(degree),
    }
}

/// As [`resident_by_halves`] with a column of factors in registers.
fn resident_with_factors(degree: usize) -> Option<u32> {
    match degree {
        7 => Some(7),
        8 => Some(6),
        9 => Some(5),
        10 => Some(4),
        11 => Some(3),
        12..=15 => Some(2),
        _ => None,
    }
}

/// Those of kernel 14.
fn resident_with_copied_factors(degree: usize) -> Option<u32> {
    match degree {
        11 | 12 => Some(3),
        13 | 14 => Some(2),
        15 => Some(1),
        _ => resident(degree),
    }
}

/// Those of later kernels: at N = 11 to 14 the fastest on an H200 of those tried, with 8,192 elements
/// (2026-11-26). That of N = 15 was not timed.
fn resident_with_one_array(degree: usize) -> Option<u32> {
    match degree {
        11 | 12 => Some(4),
        13 | 14 => Some(3),
        15 => Some(2),
        _ => resident(degree),
    }
}

/// Groups whose registers a multiprocessor should have at a degree: the fastest on an H200 of those
/// tried (2026-11-24).
fn resident(degree: usize) -> Option<u32> {
    match degree {
        7 | 8 => Some(8),
        9 | 10 => Some(6),
        11 | 12 => Some(4),
        13 | 14 => Some(3),
        15 => Some(2),
        _ => None,
    }
}
