//! BP3.0, a work-item for each quadrature point: Świrydowicz et al. 2019, §8.

use super::Launch;
use super::nest::{Steps, cut, expand, fetch, fetch_matrix, pad, place, realise, share, spill, unroll};
use crate::problem::Sizes;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AliasStorage, BufferWrites, MoveInsns, PassValues, Schedule, Selection,
};
use kingpost::transforms::TransformError;

pub const IDEAS: [&str; 9] = [
    "reference: interpolation, differentiation and projection as three launches, all in global memory",
    "the three in one launch",
    "the loops of contractions unrolled",
    "factors in registers, each fetched once",
    "the interpolated field in local memory while it is differentiated",
    "results of differentiation in registers",
    "partial results of interpolation and projection in local memory",
    "no partial results in global memory, one flux after the other in one local array",
    "three local arrays for the fluxes",
];

/// Loops of a launch along each axis of work-items, the sums in it, its matrix, and its temporaries.
struct Part {
    axes: [&'static [&'static str]; 3],
    sums: &'static [&'static str],
    matrix: &'static str,
    partial: &'static [&'static str],
}

const INTERPOLATION: Part = Part {
    axes: [&["i1", "i2", "a3"], &["j1", "b2", "b3"], &["c1", "c2", "c3"]],
    sums: &["l1", "l2", "l3"],
    matrix: "I",
    partial: &["t1", "t2"],
};

const DIFFERENTIATION: Part = Part {
    axes: [&["i", "a"], &["j", "b"], &["k", "c"]],
    sums: &["lr", "ls", "lt"],
    matrix: "D",
    partial: &["wr", "ws", "wt"],
};

const PROJECTION: Part = Part {
    axes: [&["i4", "i5", "i6"], &["b4", "j5", "j6"], &["c4", "c5", "k6"]],
    sums: &["l4", "l5", "l6"],
    matrix: "I",
    partial: &["t4", "t5"],
};

/// Cuts the kernel into three launches, of which the last one is left: the field at points and what is
/// projected pass from one to the next in global memory.
pub fn three_launches(s: &mut Schedule, sizes: Sizes) -> Result<Vec<Launch>, TransformError> {
    expand(s, &["v", "z"], &["e"])?;
    let first = PassValues::new(["v"], ["u", "I"]).cut_off(s)?;
    let second = PassValues::new(["z"], ["v", "g", "D", "lambda"]).cut_off(s)?;
    part(s, sizes, &PROJECTION)?;
    [(first, INTERPOLATION), (second, DIFFERENTIATION)]
        .into_iter()
        .map(|(plain, of)| {
            let mut schedule = Schedule::of(&plain);
            part(&mut schedule, sizes, &of)?;
            Ok(Launch { plain, schedule })
        })
        .collect()
}

fn part(s: &mut Schedule, sizes: Sizes, part: &Part) -> Steps {
    let m = sizes.points();
    realise(s, part.sums)?;
    fetch_matrix(s, part.matrix, &[m, m])?;
    spill(s, part.partial)?;
    place(s, &part.axes)
}

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let m = sizes.points();
    let mut axes = [
        vec!["i1", "i2", "a3", "i", "a", "i4", "i5", "i6"],
        vec!["j1", "b2", "b3", "j", "b", "b4", "j5", "j6"],
        vec!["c1", "c2", "c3", "k", "c", "c4", "c5", "k6"],
    ];
    let mut also = |loops: [&'static str; 3]| {
        axes.iter_mut().zip(loops.iter().rev()).for_each(|(axis, l)| axis.push(*l));
    };
    let mut unrolled = vec!["l1", "l2", "l3", "lr", "ls", "lt", "mr", "ms", "mt", "l4", "l5", "l6"];
    realise(s, &["l1", "l2", "l3", "lr", "ls", "lt", "l4", "l5", "l6"])?;
    if number == 8 {
        one_flux_at_a_time(s)?;
        for part in [["k_r", "j_r", "i_r"], ["k_s", "j_s", "i_s"], ["k_t", "j_t", "i_t"]] {
            also(part);
        }
        for part in [["c_r", "b_r", "a_r"], ["c_s", "b_s", "a_s"], ["c_t", "b_t", "a_t"]] {
            also(part);
        }
    }
    fetch_matrix(s, "I", &[m, m])?;
    fetch_matrix(s, "D", &[m, m])?;
    if number >= 4 {
        s.apply(fetch("g", "e", AddressSpace::Private, "r_g", &["f", "g2", "g1", "g0"]))?;
        s.reorder(["g2", "g1", "g0", "f"])?;
        also(["g2", "g1", "g0"]);
        unrolled.push("f");
    }
    if (5..8).contains(&number) {
        let field = fetch("v", "e", AddressSpace::Local, "s_v", &["v2", "v1", "v0"]);
        s.apply(field.only_in(Selection::Inside("k".into())))?;
        also(["v2", "v1", "v0"]);
    }
    match number {
        6 | 7 => {
            s.apply(BufferWrites::new("z", "e", AddressSpace::Private).into_temporary("r_z"))?;
            also(["store_r_z_0", "store_r_z_1", "store_r_z_2"]);
        }
        8.. => {
            s.apply(fetch("z", "e", AddressSpace::Local, "s_z", &["z2", "z1", "z0"]))?;
            also(["z2", "z1", "z0"]);
        }
        _ => {}
    }
    if number >= 7 {
        share(s, &["t1", "t2", "t4", "t5"])?
    } else {
        spill(s, &["t1", "t2", "t4", "t5"])?
    }
    if number >= 8 {
        share(s, &["v", "wr", "ws", "wt"])?;
        pad(s, m, &["v", "s_z"])?;
    } else {
        spill(s, &["v", "wr", "ws", "wt", "z"])?;
    }
    place(s, &[&axes[0], &axes[1], &axes[2]])?;
    match number {
        8 => {
            s.apply(AliasStorage::new(["t1", "v", "s_z", "t5"], "s_1"))?;
            s.apply(AliasStorage::new(["t2", "wr", "ws", "wt", "t4"], "s_2"))?;
        }
        9 => {
            s.apply(AliasStorage::new(["t1", "v", "t4"], "s_1"))?;
            s.apply(AliasStorage::new(["t2", "s_z", "t5"], "s_2"))?;
        }
        _ => {}
    }
    if number >= 3 { unroll(s, &unrolled) } else { Ok(()) }
}

/// Computes a flux only after what the one before it contributes has been added.
fn one_flux_at_a_time(s: &mut Schedule) -> Steps {
    expand(s, &["ur", "us", "ut"], &["k", "j", "i"])?;
    cut(s, &["k", "j", "i"], &[("fr", "r"), ("fs", "s"), ("ft", "t")])?;
    cut(s, &["c", "b", "a"], &[("mr", "r"), ("ms", "s"), ("mt", "t")])?;
    s.apply(MoveInsns::before(["c"], "k_r"))?;
    s.apply(MoveInsns::before(["c_r"], "k_s"))?;
    s.apply(MoveInsns::before(["c_s"], "k_t")).map(|_| ())
}
