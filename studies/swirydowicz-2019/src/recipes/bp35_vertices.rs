//! BP3.5 of trilinear elements, a line of nodes a work-item, factors computed from the vertices.

use super::bulk::prefetch_next;
use super::even_odd::{Fluxes, by_halves, derivatives};
use super::lines::{fetch_columns, fetch_lines_where_contracted, fix_matrix};
use super::nest::{
    Steps, change_layout, contract, cut, deal_lines, expand, fetch, group_elements, place, place_items,
    realise, share, unroll,
};
use crate::problem::{Precision, Sizes, differentiation, lobatto_nodes, lobatto_weights};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, AxisTag, ExpandRule, ExtractRule, HoistNest, JoinInames, MoveInsns, PadArray,
    PrecomputeRule, Schedule, Selection, SetResidentGroups, SplitIname,
};

pub const IDEAS: [&str; 10] = [
    "a line of nodes a work-item: `D` in constant memory, factors recomputed from what a column shares",
    "several elements in a work-group, so that few of its lanes are idle",
    super::bp35_mma::IDEAS[0],
    "two local arrays instead of four, and at N = 7 an element a sub-group, which waits for no other",
    "by lines, fluxes instead of derivatives, those along t contracted first; from N = 7 on one element a work-group, and registers for several",
    "even–odd contractions: half of the multiplications, and matrices of half the size",
    "strides of each local array of its own, so that fewer work-items meet in a bank",
    "columns of the adjugate as polynomials of t, which the nodes of a column share",
    "three local arrays and a barrier less; one element a work-group from N = 6 on, lines dealt out without gaps",
    "with one element a work-group, `u` of a later element brought to the second-level cache",
];

/// Sums along r and s, where fluxes are contracted.
const FLUXES: Fluxes = Fluxes { first: "mass", sums: [("dr_t", "r_mr"), ("ds_t", "r_ms")] };

/// What a point computes before its fluxes.
const OF_A_POINT: [&str; 9] = ["xr", "xs", "xt", "cr", "cs", "ct", "det", "q", "v"];

/// As [`OF_A_POINT`] where columns share polynomials.
const BY_COLUMNS: [&str; 6] = ["cr", "cs", "ct", "jd", "q", "v"];

/// Arrays in local memory.
const LOCAL: [&str; 8] = ["C", "s_u", "ur", "us", "wr", "ws", "zr", "zs"];

/// What a column computes first, in the nest over columns.
const OF_A_COLUMN: [&str; 5] = ["xt", "a0", "a1", "b0", "b1"];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let n = sizes.nodes();
    let nodes = lobatto_nodes(n);
    for (name, values) in [("D", differentiation(&nodes)), ("x", nodes), ("w", lobatto_weights(n))] {
        fix_matrix(s, sizes, name, values)?;
    }
    realise(s, &["h", "lr", "ls", "lt", "mr", "ms"])?;
    expand(s, &["ur", "us", "ut"], &["k", "j", "i"])?;
    let by_columns = number >= 8;
    let (of_a_point, first) = if by_columns { (&BY_COLUMNS[..], "jr") } else { (&OF_A_POINT[..], "jt") };
    cut(s, &["k", "j", "i"], &[("r_ls_init", "s"), ("r_lt_init", "t"), (first, "g")])?;
    expand(s, &["zr", "zs", "zt"], &["c", "b", "a"])?;
    cut(s, &["c", "b", "a"], &[("r_ms_init", "s"), ("mass", "t"), ("add", "y")])?;
    expand(s, of_a_point, &["k_g", "j_g", "i_g"])?;
    for nest in [["j_t", "i_t", "k_t"], ["j_g", "i_g", "k_g"], ["b_t", "a_t", "c_t"], ["b_y", "a_y", "c_y"]] {
        s.reorder(nest)?;
    }
    of_a_point.iter().try_for_each(|array| contract(s, array, 3))?;
    s.reorder(["k_s", "i_s", "j_s"])?;
    s.reorder(["c_s", "a_s", "b_s"])?;
    let in_place = number >= 5;
    if in_place {
        s.apply(MoveInsns::before(["b_t"], "c"))?;
        s.apply(fetch("ur", "k_g", AddressSpace::Private, "node_r", &[]))?;
        s.apply(fetch("us", "k_g", AddressSpace::Private, "node_s", &[]))?;
    }
    if by_columns {
        expand(s, &OF_A_COLUMN, &["jc", "ic"])?;
        s.apply(MoveInsns::before(["jc"], "j_g"))?;
    } else {
        geometry(s)?;
    }
    fetch_columns(s)?;
    fetch_lines_where_contracted(s, "s_u")?;
    let mut halves = Vec::new();
    if number >= 6 {
        let (contractions, fetched) = derivatives(s, n, "r_u", FLUXES)?;
        halves = by_halves(s, &contractions)?;
        halves.extend(fetched.map(String::from));
    }
    share(s, &["C", "ur", "us", "wr", "ws", "zr", "zs"])?;
    let mut columns = vec!["q0", "p0", "p_0", "j", "i_s", "i_t", "i_g", "b", "a_s", "a_t", "a_y"];
    let mut rows = vec!["q1", "p1", "p_1", "k", "k_s", "j_t", "j_g", "c", "c_s", "b_t", "b_y"];
    if by_columns {
        columns.push("ic");
        rows.push("jc");
    }
    deal_coefficients(s, n as i64)?;
    let several = number >= 2 && !(in_place && elements == 1);
    if number >= 9 && !several {
        s.tag("e", AxisTag::Group(0))?;
        deal_lines(s, &rows, &columns)?;
        if number >= 10 && sizes.precision == Precision::Double {
            prefetch_next(s, n)?;
        }
    } else if several {
        group_elements(s, elements, &LOCAL)?;
        place_items(s, &[&columns, &rows, &["e_in"]])?;
    } else {
        place(s, &[&columns, &rows])?;
    }
    arrange(s, sizes.nodes(), number, several)?;
    if !halves.is_empty() {
        unroll(s, &halves.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    unroll(s, &["h", "lr", "ls", "lt", "mr", "ms", "mt", "d1", "d2", "d3"])?;
    if by_columns {
        unroll(s, &["d4"])?;
    }
    unroll(s, &["i", "j_s", "k_t", "k_g", "a", "b_s", "c_t", "c_y", "q2", "p2", "l_r", "l_s", "m_r", "m_s"])?;
    if !in_place {
        return Ok(());
    }
    s.apply(SetResidentGroups::new(resident(sizes.nodes(), elements))).map(|_| ())
}

/// Deals the coefficients of an element out to its work-items.
fn deal_coefficients(s: &mut Schedule, n: i64) -> Steps {
    s.apply(JoinInames { joined: Some("p_all".into()), ..JoinInames::new("d", "p") })?;
    s.apply(SplitIname {
        outer: Some("p_rest".into()),
        inner: Some("p_0".into()),
        ..SplitIname::new("p_all", n)
    })?;
    s.apply(SplitIname {
        outer: Some("p_2".into()),
        inner: Some("p_1".into()),
        ..SplitIname::new("p_rest", n)
    })
    .map(drop)
}

/// Keeps elements that work-items read at a time in different banks, and lets arrays take turns.
fn arrange(s: &mut Schedule, n: usize, number: u32, several: bool) -> Steps {
    if number >= 7 {
        lay_out(s, n, number, several)?;
    } else if n.is_multiple_of(2) {
        // lines along r begin in different banks where rows have an odd length
        let axis = if several { 3 } else { 2 };
        LOCAL[1..].iter().try_for_each(|array| s.apply(PadArray::new(*array, axis, 1)).map(|_| ()))?;
    }
    if number >= 9 {
        s.apply(AliasStorage::new(["ur", "wr", "zr"], "s_1"))?;
        s.apply(AliasStorage::new(["us", "ws", "zs"], "s_2"))?;
    } else if number >= 5 {
        s.apply(AliasStorage::new(["ur", "wr", "zr"], "s_1"))?;
        s.apply(AliasStorage::new(["s_u", "us", "ws", "zs"], "s_2"))?;
    } else {
        s.apply(AliasStorage::new(["s_u", "wr"], "s_1"))?;
        s.apply(AliasStorage::new(["ur", "zr"], "s_2"))?;
        s.apply(AliasStorage::new(["us", "zs"], "s_3"))?;
    }
    Ok(())
}

/// Strides of elements, planes and lines with few conflicts of half a sub-group: of arrays that are
/// read along r, along s, and along both.
fn lay_out(s: &mut Schedule, n: usize, number: u32, several: bool) -> Steps {
    let [along_r, along_s, along_both] = match n {
        6 => [[228, 37, 6], [228, 38, 6], [228, 37, 6]],
        7 => [[343, 49, 7], [385, 55, 7], [343, 49, 7]],
        8 => [[576, 72, 9], [576, 72, 8], [576, 72, 9]],
        9 => [[729, 81, 9], [801, 89, 9], [729, 81, 9]],
        10 => [[1010, 101, 10], [1060, 106, 10], [1010, 101, 10]],
        _ => [[n * n * n, n * n, n], [n * n * n, n * n, n], [n * n * n, n * n, n]],
    };
    // in a buffer of its own
    let along_both = if number >= 9 && n != 8 { along_s } else { along_both };
    for (arrays, [element, plane, line]) in
        [(&["ur", "wr", "zr"][..], along_r), (&["us", "ws", "zs"], along_s), (&["s_u"], along_both)]
    {
        let elements = if several { format!("{element}, ") } else { String::new() };
        let layout = format!("strides({elements}{plane}, {line}, 1)");
        arrays.iter().try_for_each(|array| change_layout(s, array, &layout))?;
    }
    Ok(())
}

/// Groups of which a multiprocessor should have the registers: as many as 16 sub-groups, each work-item
/// of which has 128.
fn resident(n: usize, elements: i64) -> u32 {
    let sub_groups = (elements as usize * n * n).div_ceil(32);
    (16 / sub_groups).max(1) as u32
}

/// Computes what all nodes of a column share before its loop.
fn geometry(s: &mut Schedule) -> Steps {
    s.apply(HoistNest::new(["d1"]))?;
    let rules = [
        ("edge_r", "j_g", "C[d, 1] + x[j]*C[d, 3]", "j"),
        ("turn_r", "j_g", "C[d, 5] + x[j]*C[d, 7]", "j"),
        ("edge_s", "i_g", "C[d, 2] + x[i]*C[d, 3]", "i"),
        ("turn_s", "i_g", "C[d, 6] + x[i]*C[d, 7]", "i"),
    ];
    for (name, _, template, along) in rules {
        let only = Selection::Insn(if name.ends_with('r') { "jr" } else { "js" }.into());
        s.apply(ExtractRule { insns: Some(only), ..ExtractRule::new(name, ["d", along], template) })?;
        let values =
            PrecomputeRule::new(name, "i_g", AddressSpace::Private).into_temporary(format!("c_{name}"));
        s.apply(PrecomputeRule { inames: vec![format!("d_{name}")], ..values })?;
        s.apply(ExpandRule::new(name))?;
        unroll(s, &[&format!("d_{name}")])?;
    }
    Ok(())
}
