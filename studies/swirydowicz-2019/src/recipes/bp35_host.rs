//! BP3.5 on processors: an element after the other on each core, a row of nodes in the lanes of a
//! vector.

use super::nest::{Steps, fetch, unroll};
use kingpost::prelude::ScheduleSteps;
use kingpost::prelude::{
    AddressSpace, AxisTag, BufferWrites, MoveInsns, RealiseReduction, Schedule, Selection, TagInames,
    TransposeArrayAxes,
};

pub const IDEAS: [&str; 1] =
    ["on processors: a row of nodes in the lanes of a vector, and the sums of a layer in registers"];

pub fn steps(s: &mut Schedule) -> Steps {
    for sum in ["lr", "ls", "lt"] {
        s.apply(RealiseReduction { in_place: true, ..RealiseReduction::new(sum) })?;
    }
    s.apply(MoveInsns::before(["ds", "dt"], "lr"))?;
    for array in ["ur", "us", "ut"] {
        s.expand(array, ["j", "i"])?;
    }
    // a term of all sums of a layer after the other, so that each is in a register
    let mut lanes = vec!["i".to_owned(), "a".into()];
    let mut rows = vec!["j".to_owned(), "b".into()];
    for (row, lane, sums, behind) in
        [("j", "i", ["lr", "ls", "lt"], Some("fr")), ("b", "a", ["mr", "ms", "mt"], None)]
    {
        let cuts: Vec<&str> = sums.into_iter().chain(behind).collect();
        let of_lanes = s.distribute(lane, cuts)?;
        for (sum, lane) in sums.iter().zip(&of_lanes) {
            s.interchange(lane, *sum)?;
        }
        let last = of_lanes.get(sums.len()).map(|l| l.name());
        let of_rows = s.distribute(row, sums.into_iter().chain(last))?;
        for (sum, row) in sums.iter().zip(&of_rows) {
            s.interchange(row, *sum)?;
        }
        lanes.extend(of_lanes.iter().map(ToString::to_string));
        rows.extend(of_rows.iter().take(sums.len()).map(ToString::to_string));
    }
    s.apply(BufferWrites::new("y", "c", AddressSpace::Private).into_temporary("r_y"))?;
    lanes.push("store_r_y_1".into());
    let columns = fetch("D", "e", AddressSpace::Private, "columns", &["q0", "q1"]);
    s.apply(columns.only_in(Selection::Insn("dr_update".into())))?;
    s.apply(TransposeArrayAxes::new("columns", [1, 0]))?;
    s.apply(TagInames::new(lanes, AxisTag::Vector))?;
    unroll(s, &rows.iter().map(String::as_str).collect::<Vec<_>>())?;
    s.tag("e", AxisTag::Group(0))
}
