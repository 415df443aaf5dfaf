use crate::story::kernel;
use kingpost_analysis::Analysis;
use kingpost_ir::AddressSpace::Local;
use kingpost_primitives::primitives::{PipelineLoop, PrefetchArray};
use kingpost_primitives::{Recipe, Step};

/// A work-group computes a block of 4 x 4 entries from tiles of both factors in local memory.
const TILED: &str = "kernel matmul
param n: i32
arg a: f64[8*n, 8*n] in
arg b: f64[8*n, 8*n] in
arg c: f64[8*n, 8*n] inout
for i_o in 0..2*n {g.1}
  for j_o in 0..2*n {g.0}
    for k_o in 0..2*n
      for i in 0..4 {l.1}
        for j in 0..4 {l.0}
          for k in 0..4
            s: c[4*i_o + i, 4*j_o + j] += a[4*i_o + i, 4*k_o + k]*b[4*k_o + k, 4*j_o + j]
";

fn both() -> Vec<Step> {
    vec![
        PrefetchArray::new("a", "k_o", Local).by_work_items([4, 4]).into(),
        PrefetchArray::new("b", "k_o", Local).by_work_items([4, 4]).into(),
    ]
}

/// The barriers in the loop over tiles: two, then one.
#[test]
fn one_barrier_fewer_in_an_iteration() {
    let steps = |pipelined: bool| {
        let mut steps = both();
        if pipelined {
            steps.push(PipelineLoop::new("k_o", ["a_tile", "b_tile"]).into());
        }
        let recipe = steps.into_iter().fold(Recipe::default(), Recipe::then);
        recipe.apply(&kernel(TILED)).unwrap_or_else(|e| panic!("{e}"))
    };
    let within = |pipelined: bool| {
        let kernel = steps(pipelined);
        let placement = Analysis::of(&kernel).place().unwrap().clone();
        let barriers = placement.barriers.iter();
        let (inside, across): (Vec<_>, Vec<_>) = barriers.partition(|b| b.carrier.is_none());
        let of_loop = |insn| kernel.insns[insn].name == "s" || kernel.insns[insn].name.starts_with("fetch");
        let own = |b: &&&kingpost_analysis::placement::Barrier| {
            of_loop(b.source) && of_loop(b.sink) && !kernel.insns[b.source].name.ends_with("_first")
        };
        (inside.iter().filter(own).count(), across.iter().filter(own).count())
    };
    let (inside, across) = within(false);
    assert!(inside > 0 && across > 0, "{inside} {across}");
    // nothing is to be ordered within an iteration any more
    let (inside, across) = within(true);
    assert!(inside == 0 && across > 0, "{inside} {across}");
}
