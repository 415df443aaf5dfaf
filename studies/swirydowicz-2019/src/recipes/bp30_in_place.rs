//! BP3.0 in two arrays of local memory, with the results of each line in the places of its terms.
//!
//! Between two contractions along one axis nobody waits: a work-item has its line in registers, stores
//! what it becomes, and barriers stand where the axis changes. Factors of an element are on their way
//! to local memory from the beginning on, all of them.

use super::bulk::{align_elements, copy_in_bulk, prefetch_in_bulk};
use super::even_odd::{BUFFERED, by_halves, derivatives, interpolations};
use super::lines::{differentiate_in_registers, fetch_lines_where_contracted, fix_matrix};
use super::nest::{Steps, deal_lines, fetch, lay_out_in_place, realise, share, unroll};
use crate::problem::{Precision, Sizes, differentiation, legendre_nodes};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, AxisTag, MoveInsns, Schedule, Selection, SetResidentGroups,
};

pub const IDEA: &str = "results of a line in its own places, projected along t first; all factors copied \
                        ahead by the copy engine, and lines dealt out without gaps";

pub const PREFETCH: &str = "at N = 15 all factors brought to the second-level cache from the beginning on";

/// Fields and fluxes along s, and what comes before and after them.
const FIRST: [&str; 8] = ["t1", "t2", "v", "us", "ws", "zs", "t4", "t5"];

/// Fluxes along r.
const SECOND: [&str; 3] = ["ur", "wr", "zr"];

/// Loops over results of contractions with `I`.
const RESULTS: [&str; 6] = ["c1", "b2", "a3", "k4", "i5", "j6"];

/// What follows the sum of each of them, and the line of values that it takes.
const LINES: [(&str, &str); 6] =
    [("s1", "r_u"), ("s2", "r_t1"), ("s3", "r_t2"), ("s4", "line_z"), ("s5", "r_t4"), ("s6", "r_t5")];

/// Loops over the rows of lines, and over those that follow each other in memory.
const ROWS: [&str; 17] = [
    "u1", "j1", "c2", "c3", "q1", "k", "k_s", "j_t", "j_g", "c", "c_s", "b_t", "b_sum_1", "b4", "k5", "k6",
    "g1",
];
const COLUMNS: [&str; 17] = [
    "u0", "i1", "i2", "b3", "q0", "j", "i_s", "i_t", "i_g", "b", "a_s", "a_t", "a_sum_1", "a4", "b5", "i6",
    "g0",
];

/// Loops along lines.
const ALONG: [&str; 32] = [
    "u2", "q2", "f1", "f2", "f3", "f4", "f5", "f6", "f", "l_r", "l_s", "m_r", "m_s", "l1", "l2", "l3", "lr",
    "ls", "lt", "mr", "ms", "mt", "l4", "l5", "l6", "i", "j_s", "k_t", "k_g", "a", "b_s", "c_t",
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let m = sizes.points();
    let copied = copied(sizes.degree);
    let in_bulk = copied && sizes.precision == Precision::Double;
    if in_bulk {
        align_elements(s, "g", &[7, m, m, m])?;
    }
    s.reorder(["j1", "i1", "c1"])?;
    s.reorder(["c2", "i2", "b2"])?;
    realise(s, &["l1", "l2", "l3", "l4", "l5", "l6"])?;
    differentiate_in_registers(s, None)?;
    fix_matrix(s, sizes, "I", sizes.interpolation())?;
    fix_matrix(s, sizes, "D", differentiation(&legendre_nodes(m)))?;
    fetch_lines(s)?;
    let (along_lines, fetched) = derivatives(s, m, "r_v", BUFFERED)?;
    let contractions = [interpolations(sizes, RESULTS, LINES), along_lines].concat();
    let mut unrolled = by_halves(s, &contractions)?;
    unrolled.extend(fetched.into_iter().chain(RESULTS).chain(ALONG).chain(["c_sum_1"]).map(String::from));
    share(s, &[&FIRST[..], &SECOND].concat())?;
    s.tag("e", AxisTag::Group(0))?;
    if copied {
        s.apply(fetch("g", "e", AddressSpace::Local, "s_g", &["gf", "g2", "g1", "g0"]))?;
        s.apply(MoveInsns::before(["gf"], "j1"))?;
    }
    // where a multiprocessor has room for one group; with two, others hide what factors wait for (N = 14: 698 to 785 µs,
    // H200, 2026-11-30)
    if number >= 18 && resident(sizes.degree) == Some(1) && sizes.precision == Precision::Double {
        prefetch_in_bulk(s, "g", &[7, m, m, m], &["gp", "p2", "p1", "p0"], None)?;
        s.apply(MoveInsns::before(["gp"], "u1"))?;
    }
    let dealt = ROWS.len() - usize::from(in_bulk || !copied);
    deal_lines(s, &ROWS[..dealt], &COLUMNS[..dealt])?;
    if in_bulk {
        copy_in_bulk(s, &[7, m, m, m], "gf")?;
    }
    // rows of ten are read by pairs of neighbours, others would meet in banks
    let row = if m % 4 == 2 { m } else { m | 1 };
    for (arrays, storage) in [(&FIRST[..], "s_1"), (&SECOND, "s_2")] {
        lay_out_in_place(s, arrays, m, row, m)?;
        s.apply(AliasStorage::new(arrays.iter().copied(), storage))?;
    }
    unroll(s, &unrolled.iter().map(String::as_str).collect::<Vec<_>>())?;
    match resident(sizes.degree) {
        Some(groups) => s.apply(SetResidentGroups::new(groups)).map(drop),
        None => Ok(()),
    }
}

/// Fetches a line to registers where it is contracted; columns of `u` before anything else.
fn fetch_lines(s: &mut Schedule) -> Steps {
    s.apply(fetch("u", "e", AddressSpace::Private, "column_u", &["u2", "u1", "u0"]))?;
    s.reorder(["u1", "u0", "u2"])?;
    for (array, at, name, along) in [
        ("column_u", "i1", "r_u", "f1"),
        ("t1", "i2", "r_t1", "f2"),
        ("t2", "b3", "r_t2", "f3"),
        ("z", "a4", "line_z", "f4"),
        ("t4", "b5", "r_t4", "f5"),
        ("t5", "i6", "r_t5", "f6"),
    ] {
        s.apply(fetch(array, at, AddressSpace::Private, name, &[along]))?;
    }
    let column = fetch("v", "e", AddressSpace::Private, "r_v", &["q2", "q1", "q0"]);
    s.apply(column.only_in(Selection::Tag("along_column".into())))?;
    s.apply(MoveInsns::before(["q2"], "k"))?;
    fetch_lines_where_contracted(s, "v")?;
    s.reorder(["q1", "q0", "q2"])
}

/// Whether several groups of a multiprocessor have room for the factors of an element each.
fn copied(degree: usize) -> bool {
    degree < 10
}

/// Groups whose registers a multiprocessor should have at a degree.
fn resident(degree: usize) -> Option<u32> {
    match degree {
        7 => Some(4),
        8 => Some(3),
        9 => Some(2),
        15 => Some(1),
        _ => None,
    }
}
