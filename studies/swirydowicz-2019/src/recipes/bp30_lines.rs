//! BP3.0 beyond the publication: interpolation, differentiation and projection along lines, entries
//! of both matrices from constant memory.

use super::even_odd::{BUFFERED, RESULTS, by_halves, derivatives, interpolations};
use super::lines::{
    differentiate_in_place, differentiate_lines, fetch_lines, fetch_lines_where_contracted, fix_matrix,
};
use super::nest::{
    Steps, change_layout, copy_ahead, fetch, group_elements, halve_contractions, literal_tables, pad,
    pad_even, pair_groups, place_items, realise, share, unroll,
};
use crate::problem::{Sizes, differentiation, legendre_nodes};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, AxisTag, CutIname, MoveInsns, Schedule, Selection, SetResidentGroups,
    TagInames,
};
use kingpost::transforms::TransformError;

pub const IDEAS: [&str; 7] = [
    "beyond the publication: all contractions along lines, `I` and `D` in constant memory, two local arrays",
    "several elements in a work-group, so that few of its lanes are idle",
    "fluxes instead of derivatives, those along t contracted first; one element a work-group, and registers for several",
    "even–odd contractions: half of the multiplications, and matrices of half the size",
    "factors in local memory by asynchronous copies from the beginning, and rows of even length padded",
    "entries of `I` and `D` as literals instead of constant memory",
    "entries from constant memory; loads of `u` before copies, and copies of as many layers of factors as there is room for",
];

/// Arrays of one half of the steps, whose lives take turns in one buffer.
const FIRST: [&str; 7] = ["t1", "v", "us", "ws", "zs", "z", "t5"];

/// Those of the other half.
const SECOND: [&str; 5] = ["t2", "ur", "wr", "zr", "t4"];

/// Kernels 10 and 11, and 12 with fluxes instead of derivatives.
pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let m = sizes.points();
    let in_place = number >= 12;
    s.reorder(["j1", "i1", "c1"])?;
    s.reorder(["c2", "i2", "b2"])?;
    s.reorder(["c5", "i5", "j5"])?;
    s.reorder(["j6", "i6", "k6"])?;
    realise(s, &["l1", "l2", "l3", "l4", "l5", "l6"])?;
    if in_place {
        differentiate_in_place(s, "z")?;
    } else {
        differentiate_lines(s, "z")?;
    }
    let halved = number >= 13;
    let mut extra = if halved { Vec::new() } else { halve_contractions(s, sizes)? };
    fix_matrix(s, sizes, "I", sizes.interpolation())?;
    fix_matrix(s, sizes, "D", differentiation(&legendre_nodes(m)))?;
    let u_first = number >= 16;
    let copied = copied_layers(sizes.degree).filter(|_| u_first && elements == 1);
    fetch_inputs(s, u_first)?;
    let column = fetch("v", "e", AddressSpace::Private, "r_v", &["q2", "q1", "q0"]);
    s.apply(column.only_in(Selection::Tag("along_column".into())))?;
    s.apply(MoveInsns::before(["q2"], "k"))?;
    let lines = if in_place { lines_in_place(s)? } else { lines_apart(s)? };
    s.reorder(["q1", "q0", "q2"])?;
    if halved {
        let (along_lines, fetched) = derivatives(s, m, "r_v", BUFFERED)?;
        extra = by_halves(s, &[interpolations(sizes, RESULTS, LINES), along_lines].concat())?;
        extra.extend(fetched.map(String::from));
    }
    if number == 15 {
        literal_tables(s)?;
    }
    let local = [&FIRST[..], &SECOND].concat();
    share(s, &local)?;
    let columns = ["i1", "i2", "b3", "q0", "j", "i_s", "i_t", "i_g", "b", "a_s", "a_t", "b4", "i5", "i6"];
    let rows = ["j1", "c2", "c3", "q1", "k", "k_s", "j_t", "j_g", "c", "c_s", "b_t", "c4", "c5", "j6"];
    let (mut columns, mut rows) = ([&columns[..], lines.columns].concat(), [&rows[..], lines.rows].concat());
    if u_first {
        columns.push("u0");
        rows.push("u1");
    }
    match number {
        14.. if has_room(sizes) || copied.is_some() => {
            if let Some((layers, _)) = copied.filter(|(layers, _)| *layers < m) {
                s.apply(CutIname::new("k_g", layers.to_string()))?;
                extra.extend(["k_g_below", "f_below"].map(String::from));
            }
            with_factors_ahead(s, sizes, elements, &columns, &rows, &local)?;
        }
        12.. if elements == 1 => {
            pair_groups(s)?;
            place_items(s, &[&columns, &rows])?;
        }
        _ => {
            group_elements(s, elements, &local)?;
            place_items(s, &[&columns, &rows, &["e_in"]])?;
        }
    }
    keep_apart(s, sizes, number, elements == 1)?;
    s.apply(AliasStorage::new(FIRST, "s_1"))?;
    s.apply(AliasStorage::new(SECOND, "s_2"))?;
    let contractions = ["l1", "l2", "l3", "lr", "ls", "lt", "mr", "ms", "mt", "l4", "l5", "l6"];
    let fetched = ["f1", "f2", "f3", "f4", "f5", "f6", "f", "q2"];
    let results = ["c1", "b2", "a3", "i", "j_s", "k_t", "k_g", "a", "b_s", "c_t", "i4", "j5", "k6"];
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
    unroll(s, &[&contractions[..], &fetched, lines.unrolled, &results, &extra].concat())?;
    let groups = copied.map(|(_, groups)| groups).or(resident(sizes.degree));
    match groups.or((number >= 14 && sizes.degree == 8).then_some(3)) {
        Some(groups) if in_place && elements == 1 => s.apply(SetResidentGroups::new(groups)).map(|_| ()),
        Some(_) | None => Ok(()),
    }
}

/// Whether three groups of a multiprocessor have room for the factors of an element each.
fn has_room(sizes: Sizes) -> bool {
    sizes.points() <= 10
}

/// Fetches a line to registers where it is interpolated or projected; with `u_first`, columns of
/// `u` before anything else.
fn fetch_inputs(s: &mut Schedule, u_first: bool) -> Steps {
    if u_first {
        s.apply(fetch("u", "e", AddressSpace::Private, "column_u", &["u2", "u1", "u0"]))?;
        s.reorder(["u1", "u0", "u2"])?;
    }
    for (array, at, name, along) in [
        (if u_first { "column_u" } else { "u" }, "i1", "r_u", "f1"),
        ("t1", "i2", "r_t1", "f2"),
        ("t2", "b3", "r_t2", "f3"),
        ("z", "b4", "line_z", "f4"),
        ("t4", "i5", "r_t4", "f5"),
        ("t5", "i6", "r_t5", "f6"),
    ] {
        s.apply(fetch(array, at, AddressSpace::Private, name, &[along]))?;
    }
    Ok(())
}

/// Keeps elements that work-items read at a time in different banks.
fn keep_apart(s: &mut Schedule, sizes: Sizes, number: u32, alone: bool) -> Steps {
    let (n, m) = (sizes.nodes(), sizes.points());
    let (of_nodes, of_points) = (["t1", "t2", "t4", "t5"], ["v", "ur", "us", "wr", "ws", "zr", "zs", "z"]);
    if number >= 16 && alone {
        lay_out(s, sizes)?;
    } else if number >= 14 {
        pad_even(s, n, &of_nodes)?;
        pad_even(s, m, &of_points)?;
    } else {
        pad(s, n, &of_nodes)?;
        pad(s, m, &of_points)?;
    }
    Ok(())
}

/// Strides of planes and of lines with the fewest conflicts of half a sub-group, by how arrays are
/// read and written.
fn lay_out(s: &mut Schedule, sizes: Sizes) -> Steps {
    let [twice, once, field, along_r, along_s] = match sizes.degree {
        7 => [[72, 8], [81, 9], [81, 9], [81, 9], [89, 9]],
        8 => [[89, 9], [90, 9], [110, 11], [101, 10], [106, 10]],
        9 => [[106, 10], [121, 11], [121, 11], [121, 11], [123, 11]],
        _ => return pad_even(s, sizes.nodes(), &["t1", "t2", "t4", "t5"]),
    };
    let all = [
        (&["t1", "t5"][..], twice),
        (&["t2", "t4"], once),
        (&["v"], field),
        (&["ur", "wr", "zr", "z"], along_r),
        (&["us", "ws", "zs"], along_s),
    ];
    for (arrays, [plane, line]) in all {
        let layout = format!("strides({plane}, {line}, 1)");
        arrays.iter().try_for_each(|array| change_layout(s, array, &layout))?;
    }
    Ok(())
}

/// Layers of factors that kernel 16 copies ahead, and groups of a multiprocessor then: the fastest
/// on an H200 of those tried (2026-11-30).
fn copied_layers(degree: usize) -> Option<(usize, u32)> {
    match degree {
        7 => Some((8, 5)),
        8 => Some((8, 4)),
        9 => Some((11, 2)),
        _ => None,
    }
}

/// Copies the factors of an element to local memory, from the beginning on, and waits where they are
/// needed.
fn with_factors_ahead(
    s: &mut Schedule,
    sizes: Sizes,
    elements: i64,
    columns: &[&str],
    rows: &[&str],
    local: &[&str],
) -> Steps {
    let (columns, rows) = ([columns, &["g0"]].concat(), [rows, &["g1"]].concat());
    let loops = ["ge", "gf", "g2", "g1", "g0"];
    if elements == 1 {
        pair_groups(s)?;
        let copy = fetch("g", "e_in", AddressSpace::Local, "s_g", &loops[1..]);
        let is_cut = s.kernel().iname("k_g_below").is_some();
        s.apply(if is_cut { copy.only_in(Selection::Insn("fetch_r_g_below".into())) } else { copy })?;
        s.apply(MoveInsns::before(["gf"], "j1"))?;
        place_items(s, &[&columns, &rows])?;
    } else {
        group_elements(s, elements, local)?;
        s.apply(fetch("g", "group", AddressSpace::Local, "s_g", &loops))?;
        place_items(s, &[&columns, &rows, &["e_in", "ge"]])?;
    }
    s.apply(TagInames::new(["gf", "g2"], AxisTag::Rolled))?;
    copy_ahead(s, sizes, &["fetch_s_g"])
}

/// What follows the sum of each interpolation and projection, and the line of values that it takes.
const LINES: [(&str, &str); 6] =
    [("s1", "r_u"), ("s2", "r_t1"), ("s3", "r_t2"), ("s4", "line_z"), ("s5", "r_t4"), ("s6", "r_t5")];

/// Groups whose registers a multiprocessor should have at a degree: the fastest on an H200 of those
/// tried (2026-11-24).
fn resident(degree: usize) -> Option<u32> {
    match degree {
        7 => Some(4),
        9..=11 => Some(3),
        12..=14 => Some(2),
        15 => Some(1),
        _ => None,
    }
}

/// The loops over lines, by where they run.
struct LineLoops {
    columns: &'static [&'static str],
    rows: &'static [&'static str],
    unrolled: &'static [&'static str],
}

/// Has lines in registers before anything else is written, and columns where they are added.
fn lines_apart(s: &mut Schedule) -> Result<LineLoops, TransformError> {
    fetch_lines(s, "v")?;
    for (array, stem) in [("zr", "dr"), ("zs", "ds")] {
        let loops = [2, 1, 0].map(|axis| format!("{stem}{axis}"));
        let loops = loops.each_ref().map(String::as_str);
        s.apply(fetch(array, "e", AddressSpace::Private, &format!("column_{array}"), &loops))?;
        s.reorder([loops[1], loops[2], loops[0]])?;
    }
    Ok(LineLoops {
        columns: &["lr1", "ls0", "cr0", "cs0", "mr1", "ms0", "dr0", "ds0"],
        rows: &["lr2", "ls2", "cr1", "cs1", "mr2", "ms2", "dr1", "ds1"],
        unrolled: &["lr0", "ls1", "cr2", "cs2", "mr0", "ms1", "dr2", "ds2"],
    })
}

/// Has a line in registers where it is contracted, and a column of sums.
fn lines_in_place(s: &mut Schedule) -> Result<LineLoops, TransformError> {
    fetch_lines_where_contracted(s, "v")?;
    s.reorder(["store_r_z_1", "store_r_z_2", "store_r_z_0"])?;
    Ok(LineLoops {
        columns: &["a_sum_1", "store_r_z_2"],
        rows: &["b_sum_1", "store_r_z_1"],
        unrolled: &["l_r", "l_s", "m_r", "m_s", "c_sum_1", "store_r_z_0"],
    })
}
