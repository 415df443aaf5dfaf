//! BP3.5, a work-item for each node: Świrydowicz et al. 2019, §7 and Algorithm 7.

use super::nest::{Steps, cut, expand, fetch, fetch_matrix, pad, place, realise, share, spill, unroll};
use crate::problem::Sizes;
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{AddressSpace, AliasStorage, BufferWrites, MoveInsns, Schedule};

pub const IDEAS: [&str; 6] = [
    "reference: `D` in local memory, fluxes in global memory",
    "inputs are const, as in every kernel of Kingpost; the loops of contractions unrolled",
    "factors in registers, each fetched once",
    "results in registers until the end",
    "`u` in local memory, and one flux after the other in its place",
    "all fluxes in local memory at a time, with two barriers",
];

pub fn steps(s: &mut Schedule, sizes: Sizes, number: u32) -> Steps {
    let n = sizes.nodes();
    realise(s, &["lr", "ls", "lt"])?;
    let mut axes = [vec!["i", "a"], vec!["j", "b"], vec!["k", "c"]];
    let mut also = |loops: [&'static str; 3]| {
        axes.iter_mut().zip(loops.iter().rev()).for_each(|(axis, l)| axis.push(*l));
    };
    let mut unrolled = vec!["lr", "ls", "lt", "mr", "ms", "mt"];
    if number >= 4 {
        s.apply(BufferWrites::new("y", "e", AddressSpace::Private).into_temporary("r_y"))?;
        also(["store_r_y_0", "store_r_y_1", "store_r_y_2"]);
    }
    if number == 5 {
        one_flux_at_a_time(s)?;
        for part in [["k_r", "j_r", "i_r"], ["k_s", "j_s", "i_s"], ["k_t", "j_t", "i_t"]] {
            also(part);
        }
        for part in [["c_r", "b_r", "a_r"], ["c_s", "b_s", "a_s"], ["c_t", "b_t", "a_t"]] {
            also(part);
        }
    }
    fetch_matrix(s, "D", &[n, n])?;
    if number >= 3 {
        s.apply(fetch("g", "e", AddressSpace::Private, "r_g", &["f", "g2", "g1", "g0"]))?;
        s.reorder(["g2", "g1", "g0", "f"])?;
        also(["g2", "g1", "g0"]);
        unrolled.push("f");
    }
    if number >= 5 {
        s.apply(fetch("u", "e", AddressSpace::Local, "s_u", &["q2", "q1", "q0"]))?;
        also(["q2", "q1", "q0"]);
        share(s, &["wr", "ws", "wt"])?;
        pad(s, n, &["s_D"])?;
    } else {
        spill(s, &["wr", "ws", "wt"])?;
    }
    place(s, &[&axes[0], &axes[1], &axes[2]])?;
    if number == 5 {
        s.apply(AliasStorage::new(["s_u", "wr", "ws", "wt"], "s_tmp"))?;
    }
    if number >= 2 { unroll(s, &unrolled) } else { Ok(()) }
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
