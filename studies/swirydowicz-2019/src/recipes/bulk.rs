//! Copies of all factors of an element by the copy engine of an H100 or H200: one instruction of one
//! work-item, where asynchronous copies are one for each number.

use super::nest::{Steps, change_layout};
use kingpost::prelude::{DeclareCallee, ReplaceWithIntrinsic, Schedule};
use std::fmt::Write;

/// A ring of barriers in local memory for 16 groups of copies, as that of
/// `kingpost::ir::intrinsics::copy_box`: each sub-group arrives at that of a group when it makes it, and the
/// engine with the bytes that it has copied. Before it makes a group it has waited for the one 16 before.
const BEGIN: &str = r#"__shared__ unsigned long long bulk_ring[16];
unsigned bulk_made = 0, bulk_done = 0;
const unsigned bulk_item = threadIdx.x + blockDim.x*(threadIdx.y + blockDim.y*threadIdx.z);
const auto bulk_group = [&](unsigned k) { return (unsigned)__cvta_generic_to_shared(bulk_ring + k % 16); };
const auto bulk_wait = [&](unsigned n) {
    for (; bulk_made - bulk_done > n; ++bulk_done)
        asm volatile("{.reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra wait;}"
            :: "r"(bulk_group(bulk_done)), "r"(bulk_done / 16 % 2) : "memory");
};
const auto bulk_commit = [&]() {
    __syncwarp();
    if (bulk_item % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bulk_group(bulk_made)) : "memory");
    ++bulk_made;
    bulk_wait(15);
};
if (bulk_item == 0) {
    for (int k = 0; k < 16; ++k)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
            :: "r"(bulk_group(k)), "r"((blockDim.x*blockDim.y*blockDim.z + 31) / 32) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}
__syncthreads();"#;

/// After it, what ordinary statements have done in local memory is done for asynchronous ones.
const PROXY: &str = r#"asm volatile("fence.proxy.async.shared::cta;" ::: "memory");"#;

/// The callee that copies seven arrays of `m` by `m` by `m` doubles, one after the other from a multiple of
/// 16 bytes on. The copy engine takes multiples of 16 bytes; what is left is copied as usual.
///
/// # Source
/// PTX ISA, *Data Movement and Conversion Instructions: cp.async.bulk*, *mbarrier*.
fn callee(m: usize) -> String {
    let quoted = |lines: &str| lines.lines().map(|line| format!("{line:?}")).collect::<Vec<_>>();
    let doubles = 7 * m.pow(3);
    let bytes = doubles / 2 * 16;
    let mut code = format!(
        r#"asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], {bytes};"
    " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%2], {bytes}, [%1];"
    :: "r"((unsigned)__cvta_generic_to_shared({{&to[0, 0, 0, 0]}})), "r"(bulk_group(bulk_made)),
       "l"({{&from[0, 0, 0, 0]}}) : "memory");"#
    );
    if doubles % 2 == 1 {
        let last = m - 1;
        let end = format!("6, {last}, {last}, {last}");
        code += &format!("\n*({{&to[{end}]}}) = *({{&from[{end}]}});");
    }
    let mut text = format!(
        "callee {NAME}
  arg from: f64[7, {m}, {m}, {m}] in
  arg to: f64[7, {m}, {m}, {m}] out

  for f in 0..7
    for c in 0..{m}
      for b in 0..{m}
        for a in 0..{m}
          s: to[f, c, b, a] = from[f, c, b, a]
  code cuda needs(sm_90) memory(from: global, to: local) aligned(16) proxy({PROXY:?}) \
         completes(begin(128) ({}), commit \"bulk_commit();\", wait \"bulk_wait({{n}});\") (
",
        quoted(BEGIN).join(" ")
    );
    for line in quoted(&code) {
        // writing to a string cannot fail
        let _ = writeln!(text, "    {line}");
    }
    text + "  )\n"
}

const NAME: &str = "copy_factors";

/// Copies the factors that the loop `factors` and those in it copy by the copy engine.
pub fn copy_in_bulk(s: &mut Schedule, m: usize, factors: &str) -> Steps {
    s.apply(DeclareCallee::new(callee(m)))?;
    s.apply(ReplaceWithIntrinsic::new([factors], NAME)).map(drop)
}

/// Has the factors of each element begin at a multiple of 16 bytes.
pub fn align_factors(s: &mut Schedule, m: usize) -> Steps {
    if m.is_multiple_of(2) {
        return Ok(());
    }
    let points = m.pow(3);
    change_layout(s, "g", &format!("strides({}, {points}, {}, {m}, 1)", 7 * points + 1, m * m))
}
