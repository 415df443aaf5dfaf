//! BP3.0, a work-item for each quadrature point of a layer: Świrydowicz et al. 2019, §8.

use super::nest::{
    Steps, add_by_layers, contract, cut, expand, fetch, fetch_entries, fetch_matrix, fluxes_apart, fuse,
    halve_contractions, pad, place, realise, share, unroll,
};
use super::{bp30_in_place, bp30_lines};
use crate::problem::Sizes;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, MoveInsns, PrefetchArray, Schedule, Selection, TransposeArrayAxes,
};

pub const IDEAS: [&str; 18] = [
    "reference: `I`, `D` and two layers in local memory, columns of partial results in registers",
    "inputs are const, as in every kernel of Kingpost; a column of `u` in registers",
    "the loops of contractions and over layers unrolled",
    "rows of local arrays padded where columns meet in one bank",
    "interpolation and projection of the whole element at a time, as in BP1.0's kernel 7",
    "`u` in local memory, interpolated by layers again, and a third local array for differentiation",
    "one local array fewer, for more barriers",
    "`I` and its transpose in local memory, so that both are read along columns",
    "as kernel 5, with each entry of `I` fetched once and used twice, by symmetry",
    bp30_lines::IDEAS[0],
    bp30_lines::IDEAS[1],
    bp30_lines::IDEAS[2],
    bp30_lines::IDEAS[3],
    bp30_lines::IDEAS[4],
    bp30_lines::IDEAS[5],
    bp30_lines::IDEAS[6],
    bp30_in_place::IDEA,
    bp30_in_place::PREFETCH,
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    if number == 5 || number == 9 { columns(s, sizes, number) } else { layers(s, sizes, number) }
}

/// Interpolates, differentiates and projects one layer of quadrature points after the other;
/// between these a column of each work-item is in registers.
fn layers(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let (n, m) = (sizes.nodes(), sizes.points());
    realise(s, &["l1", "l2", "l3", "lr", "ls", "lt", "l4", "l5", "l6"])?;
    for later in ["c2", "c3"] {
        s.fuse("c1", later)?;
    }
    add_by_layers(s)?;
    // the last contraction runs over layers, and becomes part of their loop
    expand(s, &["r_l6"], &["k6", "j6", "i6"])?;
    cut(s, &["k6", "j6", "i6"], &[("l6", "add"), ("s6", "out")])?;
    s.reorder(["l6", "j6_add", "i6_add", "k6_add"])?;
    s.apply(MoveInsns::before(["k6"], "c4"))?;
    for later in ["c5", "l6"] {
        s.fuse("c4", later)?;
    }
    fuse(s, &["j5", "i5"], &["j6_add", "i6_add"])?;
    for (array, axes) in [("t1", 1), ("t2", 1), ("t4", 1), ("t5", 3)] {
        contract(s, array, axes)?;
    }
    let one_array_for_layer_and_flux = number != 6;
    if one_array_for_layer_and_flux {
        fluxes_apart(s)?;
    }
    let (mut rows, mut columns) = (
        vec!["j1", "b2", "b3", "j", "b", "b_add", "j6", "b4", "j5", "j6_out"],
        vec!["i1", "i2", "a3", "i", "a", "a_add", "i6", "i4", "i5", "i6_out"],
    );
    if one_array_for_layer_and_flux {
        rows.push("j_flux");
        columns.push("i_flux");
    }
    fetch_matrices(s, m, number)?;
    let layer_of_v = fetch("v", "k", AddressSpace::Local, "s_v", &["p1", "p0"]);
    s.apply(layer_of_v.only_in(Selection::Tag("in_layer".into())))?;
    s.apply(fetch("z", "c4", AddressSpace::Local, "s_z", &["z1", "z0"]))?;
    s.apply(fetch("g", "k", AddressSpace::Private, "r_g", &["f", "g1", "g0"]))?;
    s.reorder(["g1", "g0", "f"])?;
    rows.extend(["p1", "z1", "g1"]);
    columns.extend(["p0", "z0", "g0"]);
    if number >= 2 {
        let space = if number < 6 { AddressSpace::Private } else { AddressSpace::Local };
        s.apply(fetch("u", "e", space, "r_u", &["f2", "f1", "f0"]))?;
        rows.push("f1");
        columns.push("f0");
    }
    share(s, &["t1", "t2", "wr", "ws", "t4"])?;
    if number >= 4 {
        pad(s, n, &["t1", "t2", "t4", "s_I"])?;
        pad(s, m, &["s_v", "wr", "ws", "s_z", "s_D"])?;
    }
    place(s, &[&columns, &rows])?;
    if one_array_for_layer_and_flux {
        s.apply(AliasStorage::new(["t1", "s_v", "wr", "s_z"], "s_1"))?;
    } else {
        s.apply(AliasStorage::new(["t1", "wr", "s_z"], "s_1"))?;
    }
    s.apply(AliasStorage::new(["t2", "ws", "t4"], "s_2"))?;
    if number >= 3 {
        let outer = ["c1", "c", "k", "f", "c_t", "k6", "c4", "k6_add", "k6_out"];
        let inner = ["l1", "l2", "l3", "lr", "ls", "lt", "mr", "ms", "l4", "l5"];
        unroll(s, &[&outer[..], &inner, &["f2"]].concat())?;
    }
    Ok(())
}

fn fetch_matrices(s: &mut Schedule, m: usize, number: u32) -> Steps {
    fetch_matrix(s, "D", &[m, m])?;
    if number < 8 {
        return fetch_matrix(s, "I", &[m, m]);
    }
    for (name, tag) in [("s_I", "to_points"), ("s_It", "to_nodes")] {
        let fetch = PrefetchArray::new("I", "e", AddressSpace::Local).into_temporary(name);
        let part = Selection::Tag(tag.into());
        s.apply(fetch.by_work_items([m as i64, m as i64]).only_in(part))?;
    }
    s.apply(TransposeArrayAxes::new("s_It", [1, 0])).map(|_| ())
}

/// Kernels 5 and 9: interpolates and projects the whole element at a time, a column a work-item.
fn columns(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let (n, m) = (sizes.nodes(), sizes.points());
    s.reorder(["j1", "i1", "c1"])?;
    s.reorder(["c2", "i2", "b2"])?;
    s.reorder(["c5", "i5", "j5"])?;
    s.reorder(["j6", "i6", "k6"])?;
    realise(s, &["l1", "l2", "l3", "lr", "ls", "lt", "l4", "l5", "l6"])?;
    add_by_layers(s)?;
    let middle = if number == 9 { halve_contractions(s, sizes)? } else { Vec::new() };
    fetch_matrix(s, "D", &[m, m])?;
    fetch_matrix(s, "I", &[m, m])?;
    if number == 9 {
        fetch_entries(s)?;
    }
    for (array, at, name, along) in [
        ("u", "i1", "r_u", "f1"),
        ("t1", "i2", "r_t1", "f2"),
        ("t2", "b3", "r_t2", "f3"),
        ("t4", "i5", "r_t4", "f5"),
        ("t5", "i6", "r_t5", "f6"),
    ] {
        s.apply(fetch(array, at, AddressSpace::Private, name, &[along]))?;
    }
    s.apply(fetch("z", "e", AddressSpace::Local, "s_z", &["z2", "z1", "z0"]))?;
    s.apply(fetch("s_z", "b4", AddressSpace::Private, "r_z", &["f4"]))?;
    s.apply(fetch("g", "k", AddressSpace::Private, "r_g", &["f", "g1", "g0"]))?;
    s.reorder(["g1", "g0", "f"])?;
    share(s, &["t1", "t2", "v", "wr", "ws", "t4", "t5"])?;
    pad(s, n, &["t1", "t2", "t4", "t5", "s_I"])?;
    pad(s, m, &["v", "wr", "ws", "s_z", "s_D"])?;
    let columns = ["i1", "i2", "b3", "i", "a", "a_add", "z0", "g0", "b4", "i5", "i6"];
    let rows = ["j1", "c2", "c3", "j", "b", "b_add", "z1", "g1", "c4", "c5", "j6"];
    place(s, &[&columns, &rows])?;
    s.apply(AliasStorage::new(["t1", "v", "t4"], "s_1"))?;
    s.apply(AliasStorage::new(["t2", "s_z", "t5"], "s_2"))?;
    let contractions = ["l1", "l2", "l3", "lr", "ls", "lt", "mr", "ms", "l4", "l5", "l6"];
    let columns = ["f1", "f2", "f3", "f4", "f5", "f6", "z2", "f", "c", "k", "c_t"];
    let results = ["c1", "b2", "a3", "i4", "j5", "k6"];
    let middle: Vec<&str> = middle.iter().map(String::as_str).collect();
    unroll(s, &[&contractions[..], &columns, &results, &middle].concat())
}
