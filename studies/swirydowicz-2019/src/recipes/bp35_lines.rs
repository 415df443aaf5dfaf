//! BP3.5 beyond the publication: each work-item contracts a line of nodes along one direction after
//! the other, so that every entry of `D` is an operand of constant memory.

use super::even_odd::{BUFFERED, by_halves, derivatives};
use super::lines::{
    copy_matrix, differentiate_in_place, differentiate_lines, fetch_columns, fetch_lines,
    fetch_lines_where_contracted, fix_matrix,
};
use super::nest::{Steps, group_elements, pair_groups, place, place_items, share, unroll};
use crate::problem::{Sizes, differentiation, lobatto_nodes};
use kingpost::prelude::{AliasStorage, PadArray, Schedule, SetResidentGroups};

pub const IDEAS: [&str; 5] = [
    "beyond the publication: a line of nodes a work-item in every direction, `D` in constant memory",
    "lines in registers before others take their place in local memory: two arrays instead of four",
    "several elements in a work-group, so that few of its lanes are idle",
    "fluxes instead of derivatives, those along t contracted first; from N = 7 on one element a work-group, and registers for several",
    "even–odd contractions: half of the multiplications, and matrices of half the size",
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let n = sizes.nodes();
    fix_matrix(s, sizes, "D", differentiation(&lobatto_nodes(n)))?;
    differentiate_lines(s, "y")?;
    fetch_columns(s)?;
    let two_arrays = number >= 12;
    if two_arrays {
        fetch_lines(s, "s_u")?
    } else {
        fetch_lines_where_contracted(s, "s_u")?
    }
    share(s, &["ur", "us", "wr", "ws", "zr", "zs"])?;
    let mut columns = vec!["q0", "p0", "j", "i_s", "i_t", "i_g", "b", "a_s", "a_t"];
    let mut rows = vec!["q1", "p1", "k", "k_s", "j_t", "j_g", "c", "c_s", "b_t"];
    if two_arrays {
        columns.extend(["lr1", "ls0", "cr0", "cs0", "mr1", "ms0"]);
        rows.extend(["lr2", "ls2", "cr1", "cs1", "mr2", "ms2"]);
    }
    let local = ["s_u", "ur", "us", "wr", "ws", "zr", "zs"];
    group_elements(s, elements, &local)?;
    place_items(s, &[&columns, &rows, &["e_in"]])?;
    // lines along r begin in different banks where rows have an odd length
    if n.is_multiple_of(2) {
        local.iter().try_for_each(|array| s.apply(PadArray::new(*array, 3, 1)).map(|_| ()))?;
    }
    if two_arrays {
        s.apply(AliasStorage::new(["ur", "wr", "zr"], "s_1"))?;
        s.apply(AliasStorage::new(["s_u", "us", "ws", "zs"], "s_2"))?;
        unroll(s, &["lr0", "ls1", "cr2", "cs2", "mr0", "ms1"])?;
    } else {
        s.apply(AliasStorage::new(["s_u", "wr"], "s_1"))?;
        s.apply(AliasStorage::new(["ur", "zr"], "s_2"))?;
        s.apply(AliasStorage::new(["us", "zs"], "s_3"))?;
        unroll(s, &["l_r", "l_s", "m_r", "m_s"])?;
    }
    unroll(s, &["lr", "ls", "lt", "mr", "ms", "mt", "q2", "p2"])?;
    unroll(s, &["i", "j_s", "k_t", "k_g", "f", "a", "b_s", "c_t"])
}

/// Local arrays of [`in_place`].
const LOCAL: [&str; 7] = ["s_u", "ur", "us", "wr", "ws", "zr", "zs"];

/// Groups whose registers a multiprocessor should have, for `n` nodes a direction: the fastest on an
/// H200 of those tried (2026-11-24).
fn resident(n: usize) -> Option<u32> {
    match n {
        8 => Some(8),
        9 => Some(6),
        10 | 12 => Some(4),
        11 => Some(5),
        13 => Some(3),
        14..=16 => Some(2),
        _ => None,
    }
}

/// The last kernel: a work-item reads derivatives of a node before it stores fluxes in their place,
/// so that five barriers are left, and a column of `u`, of a derivative and of sums at most is in
/// registers.
pub fn in_place(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let n = sizes.nodes();
    fix_matrix(s, sizes, "D", differentiation(&lobatto_nodes(n)))?;
    differentiate_in_place(s, "y")?;
    fetch_columns(s)?;
    fetch_lines_where_contracted(s, "s_u")?;
    let mut halves = Vec::new();
    if number >= 17 {
        let (contractions, fetched) = derivatives(s, n, "r_u", BUFFERED)?;
        halves = by_halves(s, &contractions)?;
        halves.extend(fetched.map(String::from));
    }
    share(s, &LOCAL[1..])?;
    let columns = ["q0", "p0", "j", "i_s", "i_t", "i_g", "b", "a_s", "a_t", "a_sum_1", "store_r_y_2"];
    let rows = ["q1", "p1", "k", "k_s", "j_t", "j_g", "c", "c_s", "b_t", "b_sum_1", "store_r_y_1"];
    let alone = elements == 1;
    if alone && n <= 10 {
        place(s, &[&columns, &rows])?;
    } else if alone {
        pair_groups(s)?;
        place_items(s, &[&columns, &rows])?;
    } else {
        group_elements(s, elements, &LOCAL)?;
        place_items(s, &[&columns, &rows, &["e_in"]])?;
    }
    // lines along r begin in different banks where rows have an odd length
    if n.is_multiple_of(2) {
        let axis = if alone { 2 } else { 3 };
        LOCAL.iter().try_for_each(|array| s.apply(PadArray::new(*array, axis, 1)).map(|_| ()))?;
    }
    s.apply(AliasStorage::new(["ur", "wr", "zr"], "s_1"))?;
    s.apply(AliasStorage::new(["s_u", "us", "ws", "zs"], "s_2"))?;
    unroll(s, &["l_r", "l_s", "m_r", "m_s", "lr", "ls", "lt", "mr", "ms", "mt", "q2", "p2"])?;
    unroll(s, &["i", "j_s", "k_t", "k_g", "f", "a", "b_s", "c_t", "c_sum_1", "store_r_y_0"])?;
    if number >= 17 {
        unroll(s, &halves.iter().map(String::as_str).collect::<Vec<_>>())?;
        return resident(n).map_or(Ok(()), |groups| s.apply(SetResidentGroups::new(groups)).map(|_| ()));
    }
    if !alone {
        return Ok(());
    }
    // longer code loads no entry of `D` to a register, and copies take more of the cache of constants
    if n <= 13 {
        copy_matrix(s)?;
    }
    resident(n).map_or(Ok(()), |groups| s.apply(SetResidentGroups::new(groups)).map(|_| ()))
}
