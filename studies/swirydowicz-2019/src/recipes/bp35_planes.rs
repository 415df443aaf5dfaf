//! BP3.5, a work-item for each node of a layer: Świrydowicz et al. 2019, §7 and Algorithm 6.

use super::nest::{
    Steps, add_by_layers, contract, cut, expand, fetch, fetch_matrix, fluxes_apart, pad, place, realise,
    share, unroll,
};
use super::{bp35_lines, bp35_mma};
use crate::problem::Sizes;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{AddressSpace, AliasStorage, BufferWrites, Schedule, Selection};

pub const IDEAS: [&str; 17] = [
    "reference: `D` and the fluxes of the element in local memory, all else in global memory",
    "inputs are const: every kernel of Kingpost declares them so, hence the same code as kernel 1",
    "the loops of contractions unrolled",
    "the loop over layers outermost",
    "fluxes of a layer in local memory, instead of those of the element",
    "`u` in local memory",
    "factors and results in registers, each fetched or stored once",
    "rows of local arrays padded where columns meet in one bank",
    "a column of `u` in registers, and a layer of it in the memory of the first fluxes",
    "a third local array, for the layer of `u`",
    bp35_lines::IDEAS[0],
    bp35_lines::IDEAS[1],
    bp35_lines::IDEAS[2],
    bp35_mma::IDEAS[0],
    bp35_mma::IDEAS[1],
    bp35_lines::IDEAS[3],
    bp35_lines::IDEAS[4],
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let n = sizes.nodes();
    if number < 4 {
        expand(s, &["ur", "us", "ut"], &["k", "j", "i"])?;
        s.reorder(["j", "i", "k"])?;
        s.reorder(["b", "a", "c"])?;
        ["ur", "us", "ut"].iter().try_for_each(|a| contract(s, a, 3))?;
    }
    realise(s, &["lr", "ls", "lt"])?;
    if number >= 7 {
        let results = BufferWrites::new("y", "e", AddressSpace::Private).into_temporary("r_y");
        s.apply(results)?;
    }
    if number >= 5 {
        layers(s, number)?;
    }
    fetch_matrix(s, "D", &[n, n])?;
    let mut unrolled = vec!["lr", "ls", "lt", "mr", "ms"];
    unrolled.push(if number >= 7 { "c_t" } else { "mt" });
    let (mut rows, mut columns) = (vec!["j", "b"], vec!["i", "a"]);
    if number >= 5 {
        rows.push(if number < 7 { "b_t" } else { "b_add" });
        columns.push(if number < 7 { "a_t" } else { "a_add" });
    }
    if number >= 7 {
        rows.push("store_r_y_1");
        columns.push("store_r_y_2");
        s.apply(fetch("g", "k", AddressSpace::Private, "r_g", &["f", "g1", "g0"]))?;
        s.reorder(["g1", "g0", "f"])?;
        rows.push("g1");
        columns.push("g0");
        unrolled.extend(["f", "store_r_y_0"]);
    }
    if number >= 6 {
        fetch_field(s, number)?;
        rows.push("q1");
        columns.push("q0");
    }
    share(s, &["wr", "ws"])?;
    if number >= 8 {
        pad(s, n, &["wr", "ws", "s_u", "s_D"])?;
    }
    if number >= 9 {
        rows.push("p1");
        columns.push("p0");
        unrolled.extend(["q2", "c", "k"]);
    }
    if number == 9 {
        rows.push("j_flux");
        columns.push("i_flux");
    }
    place(s, &[&columns, &rows])?;
    if number == 9 {
        s.apply(AliasStorage::new(["s_u", "wr"], "s_1"))?;
    }
    if number >= 3 { unroll(s, &unrolled) } else { Ok(()) }
}

/// Computes the fluxes of a layer and adds what they contribute, layer by layer.
fn layers(s: &mut Schedule, number: u32) -> Steps {
    if number < 7 {
        cut(s, &["c", "b", "a"], &[("mt", "t")])?;
        s.fuse("k", "c")?;
        contract(s, "wr", 1)?;
        return contract(s, "ws", 1);
    }
    add_by_layers(s)?;
    if number == 9 { fluxes_apart(s) } else { Ok(()) }
}

fn fetch_field(s: &mut Schedule, number: u32) -> Steps {
    let loops = ["q2", "q1", "q0"];
    if number < 9 {
        s.apply(fetch("u", "e", AddressSpace::Local, "s_u", &loops))?;
        return Ok(());
    }
    s.apply(fetch("u", "e", AddressSpace::Private, "r_u", &loops))?;
    let layer = fetch("r_u", "k", AddressSpace::Local, "s_u", &["p1", "p0"]);
    s.apply(layer.only_in(Selection::Tag("in_layer".into()))).map(|_| ())
}
