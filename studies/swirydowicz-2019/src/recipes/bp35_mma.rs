//! BP3.5 with stored factors, contractions by FP64 matrix instructions.

use super::lines::reduce_apart;
use super::matrix_lines::{contract_all, sub_groups};
use super::nest::{Steps, cut, expand, fetch, group_elements, share};
use crate::problem::{Sizes, differentiation, lobatto_nodes};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, AxisTag, BufferWrites, FixArgument, Schedule, Selection,
};
use kingpost::transforms::TransformError;
use kingpost::transforms::instruction_lines::{InstructionLines, pad_lines};

pub const IDEAS: [&str; 2] = [
    "contractions by FP64 matrix instructions, eight lines of two planes at a time",
    "two local arrays instead of four, for contractions by instructions",
];

/// Sums, each with its terms, its loops and what follows it.
const SUMS: [(&str, [&str; 3], Option<&str>); 6] = [
    ("lr", ["k", "j", "i"], Some("dr")),
    ("ls", ["k_s", "j_s", "i_s"], Some("ds")),
    ("lt", ["k_t", "j_t", "i_t"], Some("dt")),
    ("mr", ["c", "b", "a"], None),
    ("ms", ["c_s", "b_s", "a_s"], None),
    ("mt", ["c_t", "b_t", "a_t"], Some("zs_sum")),
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32, elements: i64) -> Steps {
    let two_arrays = number >= 15;
    let n = sizes.nodes();
    s.apply(FixArgument::real("D", sizes.precision.rounded(differentiation(&lobatto_nodes(n)))))?;
    reduce_apart(s)?;
    let results = BufferWrites::new("y", "e", AddressSpace::Private).into_temporary("r_y");
    s.apply(results)?;
    for (terms, nest, behind) in SUMS {
        if terms.starts_with('l') {
            expand(s, &[&format!("r_{terms}")], &nest)?;
        }
        let parts: Vec<_> = [(terms, "sum")].into_iter().chain(behind.map(|b| (b, "out"))).collect();
        cut(s, &nest, &parts)?;
    }
    for (array, space, name, loops, of) in [
        ("u", AddressSpace::Private, "r_u", ["q2", "q1", "q0"], None),
        ("r_u", AddressSpace::Local, "s_u", ["p2", "p1", "p0"], Some(Selection::Tag("in_layer".into()))),
        ("s_u", AddressSpace::Private, "line_r", ["lr2", "lr1", "lr0"], Some(insn("r_lr_update"))),
        ("s_u", AddressSpace::Private, "line_s", ["ls2", "ls1", "ls0"], Some(insn("r_ls_update"))),
        ("wr", AddressSpace::Private, "line_a", ["mr2", "mr1", "mr0"], None),
        ("ws", AddressSpace::Private, "line_b", ["ms2", "ms1", "ms0"], None),
        ("zr", AddressSpace::Local, "s_zr", ["zr2", "zr1", "zr0"], Some(insn("zr_sum"))),
        ("zs", AddressSpace::Local, "s_zs", ["zs2", "zs1", "zs0"], Some(insn("zs_sum"))),
    ] {
        let copy = fetch(array, "e", space, name, &loops);
        s.apply(of.into_iter().fold(copy, kingpost::prelude::PrefetchArray::only_in))?;
    }
    let mut lines = InstructionLines::new(n as i64, sub_groups(n));
    deal(s, &mut lines)?;
    let along_r = ["r_lr", "line_r", "line_a", "zr"];
    let along_s = ["r_ls", "line_s", "line_b", "zs"];
    let mut along_t = vec!["r_u", "r_lt", "ut", "wt", "r_y"];
    if two_arrays {
        along_t.extend(fetch_columns(s, &mut lines)?);
    }
    for (arrays, axes) in [(&along_r[..], [0, 1, 2]), (&along_s, [0, 2, 1]), (&along_t, [1, 2, 0])] {
        arrays.iter().try_for_each(|array| lines.hold(s, array, axes))?;
    }
    share(s, &["ur", "us", "wr", "ws"])?;
    let local = ["s_u", "ur", "us", "wr", "ws", "s_zr", "s_zs"];
    group_elements(s, elements, &[&local[..], &along_r, &along_s, &along_t].concat())?;
    s.tag("e_in", AxisTag::Local(2))?;
    lines.place(s)?;
    local.iter().try_for_each(|array| pad_lines(s, array, 1))?;
    if two_arrays {
        s.apply(AliasStorage::new(["ur", "wr", "s_zr"], "s_1"))?;
        return s.apply(AliasStorage::new(["s_u", "us", "ws", "s_zs"], "s_2")).map(|_| ());
    }
    s.apply(AliasStorage::new(["s_u", "wr"], "s_1"))?;
    s.apply(AliasStorage::new(["ur", "s_zr"], "s_2"))?;
    s.apply(AliasStorage::new(["us", "s_zs"], "s_3")).map(|_| ())
}

/// Fetches derivatives in the layer to columns before others take their place in local memory.
pub fn fetch_columns(
    s: &mut Schedule,
    lines: &mut InstructionLines,
) -> Result<[&'static str; 2], TransformError> {
    let columns = [("ur", "column_r", ["cr2", "cr1", "cr0"]), ("us", "column_s", ["cs2", "cs1", "cs0"])];
    for (array, name, loops) in columns {
        s.apply(fetch(array, "e", AddressSpace::Private, name, &loops))?;
        lines.deal(s, [loops[1], loops[2], loops[0]])?;
    }
    Ok(columns.map(|(_, name, _)| name))
}

fn insn(name: &str) -> Selection {
    Selection::Insn(name.into())
}

/// Deals all nests out: lines along the axis that is contracted, or along t where none is.
fn deal(s: &mut Schedule, lines: &mut InstructionLines) -> Steps {
    for nest in [
        ["k", "j", "i"],
        ["k_out", "j_out", "i_out"],
        ["c", "b", "a"],
        ["lr2", "lr1", "lr0"],
        ["mr2", "mr1", "mr0"],
        ["zr2", "zr1", "zr0"],
        ["k_s", "i_s", "j_s"],
        ["k_s_out", "i_s_out", "j_s_out"],
        ["c_s", "a_s", "b_s"],
        ["ls2", "ls0", "ls1"],
        ["ms2", "ms0", "ms1"],
        ["zs2", "zs0", "zs1"],
        ["j_t", "i_t", "k_t"],
        ["j_t_out", "i_t_out", "k_t_out"],
        ["j_g", "i_g", "k_g"],
        ["b_t", "a_t", "c_t"],
        ["b_t_out", "a_t_out", "c_t_out"],
        ["q1", "q0", "q2"],
        ["p1", "p0", "p2"],
        ["store_r_y_1", "store_r_y_2", "store_r_y_0"],
    ] {
        lines.deal(s, nest)?;
    }
    contract_all(s, lines)
}
