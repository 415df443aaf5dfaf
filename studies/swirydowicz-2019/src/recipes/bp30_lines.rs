//! BP3.0 beyond the publication: interpolation, differentiation and projection along lines, entries
//! of both matrices from constant memory.

use super::lines::{differentiate_lines, fetch_lines, fix_matrix};
use super::nest::{
    Steps, fetch, group_elements, halve_contractions, pad, place_items, realise, share, unroll,
};
use crate::problem::{Sizes, differentiation, legendre_nodes};
use purlin::prelude::{AddressSpace, AliasStorage, MoveInsns, Schedule, Selection};

pub const IDEAS: [&str; 2] = [
    "beyond the publication: all contractions along lines, `I` and `D` in constant memory, two local arrays",
    "several elements in a work-group, so that few of its lanes are idle",
];

/// Arrays of one half of the steps, whose lives take turns in one buffer.
const FIRST: [&str; 7] = ["t1", "v", "us", "ws", "zs", "z", "t5"];

/// Those of the other half.
const SECOND: [&str; 5] = ["t2", "ur", "wr", "zr", "t4"];

pub fn steps(s: &mut Schedule, sizes: Sizes, elements: i64) -> Steps {
    let (n, m) = (sizes.nodes(), sizes.points());
    s.reorder(["j1", "i1", "c1"])?;
    s.reorder(["c2", "i2", "b2"])?;
    s.reorder(["c5", "i5", "j5"])?;
    s.reorder(["j6", "i6", "k6"])?;
    realise(s, &["l1", "l2", "l3", "l4", "l5", "l6"])?;
    differentiate_lines(s, "z")?;
    let middle = halve_contractions(s, sizes)?;
    fix_matrix(s, sizes, "I", sizes.interpolation())?;
    fix_matrix(s, sizes, "D", differentiation(&legendre_nodes(m)))?;
    for (array, at, name, along) in [
        ("u", "i1", "r_u", "f1"),
        ("t1", "i2", "r_t1", "f2"),
        ("t2", "b3", "r_t2", "f3"),
        ("z", "b4", "r_z", "f4"),
        ("t4", "i5", "r_t4", "f5"),
        ("t5", "i6", "r_t5", "f6"),
    ] {
        let name = if array == "z" { "line_z" } else { name };
        s.apply(fetch(array, at, AddressSpace::Private, name, &[along]))?;
    }
    let column = fetch("v", "e", AddressSpace::Private, "r_v", &["q2", "q1", "q0"]);
    s.apply(column.only_in(Selection::Tag("along_column".into())))?;
    s.apply(MoveInsns::before(["q2"], "k"))?;
    fetch_lines(s, "v")?;
    for (array, stem) in [("zr", "dr"), ("zs", "ds")] {
        let loops = [2, 1, 0].map(|axis| format!("{stem}{axis}"));
        let loops = loops.each_ref().map(String::as_str);
        s.apply(fetch(array, "e", AddressSpace::Private, &format!("column_{array}"), &loops))?;
        s.reorder([loops[1], loops[2], loops[0]])?;
    }
    s.reorder(["q1", "q0", "q2"])?;
    let local = [&FIRST[..], &SECOND].concat();
    share(s, &local)?;
    group_elements(s, elements, &local)?;
    pad(s, n, &["t1", "t2", "t4", "t5"])?;
    pad(s, m, &["v", "ur", "us", "wr", "ws", "zr", "zs", "z"])?;
    let columns = ["i1", "i2", "b3", "q0", "j", "i_s", "i_t", "i_g", "b", "a_s", "a_t", "b4", "i5", "i6"];
    let rows = ["j1", "c2", "c3", "q1", "k", "k_s", "j_t", "j_g", "c", "c_s", "b_t", "c4", "c5", "j6"];
    let lines = ["lr1", "ls0", "cr0", "cs0", "mr1", "ms0", "dr0", "ds0"];
    let layers = ["lr2", "ls2", "cr1", "cs1", "mr2", "ms2", "dr1", "ds1"];
    place_items(s, &[&[&columns[..], &lines].concat(), &[&rows[..], &layers].concat(), &["e_in"]])?;
    s.apply(AliasStorage::new(FIRST, "s_1"))?;
    s.apply(AliasStorage::new(SECOND, "s_2"))?;
    let contractions = ["l1", "l2", "l3", "lr", "ls", "lt", "mr", "ms", "mt", "l4", "l5", "l6"];
    let fetched = [
        "f1", "f2", "f3", "f4", "f5", "f6", "f", "q2", "lr0", "ls1", "cr2", "cs2", "mr0", "ms1", "dr2", "ds2",
    ];
    let results = ["c1", "b2", "a3", "i", "j_s", "k_t", "k_g", "a", "b_s", "c_t", "i4", "j5", "k6"];
    let middle: Vec<&str> = middle.iter().map(String::as_str).collect();
    unroll(s, &[&contractions[..], &fetched, &results, &middle].concat())
}
