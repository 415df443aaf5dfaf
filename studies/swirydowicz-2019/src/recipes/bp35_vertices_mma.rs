//! BP3.5 of trilinear elements, contractions by FP64 matrix instructions.

use super::bp35_mma::fetch_columns;
use super::matrix_lines::{contract_all, few_sub_groups, sub_groups};
use super::nest::{Steps, contract, cut, expand, fetch, group_elements, realise, share, unroll};
use crate::problem::{Sizes, differentiation, lobatto_nodes, lobatto_weights};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, AxisTag, FixArgument, JoinInames, Schedule, Selection, SplitIname,
};
use kingpost::transforms::instruction_lines::{InstructionLines, pad_lines};

/// What a point computes before its fluxes.
const OF_A_POINT: [&str; 9] = ["xr", "xs", "xt", "cr", "cs", "ct", "det", "q", "v"];

/// Sums, each with its terms, its loops and what follows it.
const SUMS: [(&str, [&str; 3], &str); 6] = [
    ("lr", ["k", "j", "i"], "dr"),
    ("ls", ["k_s", "j_s", "i_s"], "ds"),
    ("lt", ["k_t", "j_t", "i_t"], "dt"),
    ("mr", ["c", "b", "a"], "dr_t"),
    ("ms", ["c_s", "b_s", "a_s"], "ds_t"),
    ("mt", ["c_t", "b_t", "a_t"], "add"),
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let two_arrays = number >= 4;
    let n = sizes.nodes();
    let nodes = lobatto_nodes(n);
    for (name, values) in [("D", differentiation(&nodes)), ("x", nodes), ("w", lobatto_weights(n))] {
        s.apply(FixArgument::real(name, sizes.precision.rounded(values)))?;
    }
    realise(s, &["h", "lr", "ls", "lt", "mr", "ms"])?;
    expand(s, &["ur", "us", "ut"], &["k", "j", "i"])?;
    cut(s, &["k", "j", "i"], &[("r_ls_init", "s"), ("r_lt_init", "t"), ("jt", "g")])?;
    expand(s, &["zr", "zs", "zt"], &["c", "b", "a"])?;
    cut(s, &["c", "b", "a"], &[("r_ms_init", "s"), ("mass", "t")])?;
    expand(s, &OF_A_POINT, &["k_g", "j_g", "i_g"])?;
    for (terms, nest, behind) in SUMS {
        let sum = if terms == "mt" { "zt".to_owned() } else { format!("r_{terms}") };
        if terms != "mt" {
            expand(s, &[&sum], &nest)?;
        }
        cut(s, &nest, &[(terms, "sum"), (behind, "out")])?;
    }
    s.apply(fetch("u", "e", AddressSpace::Private, "r_u", &["q2", "q1", "q0"]))?;
    let field = fetch("r_u", "e", AddressSpace::Local, "s_u", &["p2", "p1", "p0"]);
    s.apply(field.only_in(Selection::Tag("in_layer".into())))?;
    for (array, name, loops) in [
        ("s_u", "line_r", ["lr2", "lr1", "lr0"]),
        ("s_u", "line_s", ["ls2", "ls1", "ls0"]),
        ("wr", "line_a", ["mr2", "mr1", "mr0"]),
        ("ws", "line_b", ["ms2", "ms1", "ms0"]),
    ] {
        let copy = fetch(array, "e", AddressSpace::Private, name, &loops);
        let of = format!("r_{}_update", &loops[0][..2]);
        s.apply(copy.only_in(Selection::Insn(of)))?;
    }
    let mut along_t = vec!["r_u", "r_lt", "ut", "wt", "wu", "zt"];
    let mut lines =
        InstructionLines::new(n as i64, if two_arrays { few_sub_groups(n) } else { sub_groups(n) });
    if two_arrays {
        along_t.extend(fetch_columns(s, &mut lines)?);
    }
    deal(s, &mut lines)?;
    OF_A_POINT.iter().try_for_each(|array| contract(s, array, 3))?;
    for array in ["r_lr", "r_mr", "line_r", "line_a"] {
        lines.hold(s, array, [0, 1, 2])?;
    }
    for array in ["r_ls", "r_ms", "line_s", "line_b"] {
        lines.hold(s, array, [0, 2, 1])?;
    }
    for array in &along_t {
        lines.hold(s, array, [1, 2, 0])?;
    }
    share(s, &["C", "ur", "us", "wr", "ws", "zr", "zs"])?;
    let local = ["C", "s_u", "ur", "us", "wr", "ws", "zr", "zs"];
    let held = ["r_lr", "r_mr", "line_r", "line_a", "r_ls", "r_ms", "line_s", "line_b"];
    group_elements(s, elements, &[&local[..], &held, &along_t].concat())?;
    coefficients(s)?;
    s.tag("e_in", AxisTag::Local(2))?;
    lines.place(s)?;
    local[1..].iter().try_for_each(|array| pad_lines(s, array, 1))?;
    if two_arrays {
        s.apply(AliasStorage::new(["ur", "wr", "zr"], "s_1"))?;
        s.apply(AliasStorage::new(["s_u", "us", "ws", "zs"], "s_2"))?;
    } else {
        s.apply(AliasStorage::new(["s_u", "wr"], "s_1"))?;
        s.apply(AliasStorage::new(["ur", "zr"], "s_2"))?;
        s.apply(AliasStorage::new(["us", "zs"], "s_3"))?;
    }
    unroll(s, &["h", "d1", "d2", "d3"])
}

/// Deals all nests out: lines along the axis that is contracted, or along t where none is.
fn deal(s: &mut Schedule, lines: &mut InstructionLines) -> Steps {
    let along_r =
        [["k", "j", "i"], ["k_out", "j_out", "i_out"], ["c", "b", "a"], ["c_out", "b_out", "a_out"]];
    let copies_r = [["lr2", "lr1", "lr0"], ["mr2", "mr1", "mr0"]];
    let along_s = [
        ["k_s", "i_s", "j_s"],
        ["k_s_out", "i_s_out", "j_s_out"],
        ["c_s", "a_s", "b_s"],
        ["c_s_out", "a_s_out", "b_s_out"],
        ["ls2", "ls0", "ls1"],
        ["ms2", "ms0", "ms1"],
    ];
    let along_t = [
        ["j_t", "i_t", "k_t"],
        ["j_t_out", "i_t_out", "k_t_out"],
        ["j_g", "i_g", "k_g"],
        ["b_t", "a_t", "c_t"],
        ["b_t_out", "a_t_out", "c_t_out"],
        ["q1", "q0", "q2"],
        ["p1", "p0", "p2"],
    ];
    for nest in along_r.into_iter().chain(copies_r).chain(along_s).chain(along_t) {
        lines.deal(s, nest)?;
    }
    contract_all(s, lines)
}

/// Deals the coefficients of an element out to work-items.
fn coefficients(s: &mut Schedule) -> Steps {
    s.apply(JoinInames { joined: Some("coefficient".into()), ..JoinInames::new("d", "p") })?;
    s.apply(SplitIname {
        outer: Some("coefficient_round".into()),
        inner: Some("coefficient_lane".into()),
        ..SplitIname::new("coefficient", 32)
    })?;
    s.tag("coefficient_lane", AxisTag::Local(0))
}
