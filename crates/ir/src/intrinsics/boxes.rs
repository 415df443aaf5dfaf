//! Bulk copies of boxes by the copy engine of an H100 or H200 (tensor memory accelerator).

use std::fmt::Write;

/// After it, what ordinary statements have done in local memory is done for asynchronous ones.
pub(super) const PROXY: &str = r#"asm volatile("fence.proxy.async.shared::cta;" ::: "memory");"#;

/// A ring of barriers in local memory for 16 groups of copies. Each sub-group arrives at that of a group when it makes
/// it, and the engine with the bytes that it has copied. A work-item that makes a group has waited for the one 16
/// before, so that nobody lags by a phase: that phase does not end without its sub-group. A wait is mostly for one
/// group: four copies of its loop cost a product of 1024 rows an eighth of its time (H200, 2026-11-30).
const BEGIN: &str = r#"__shared__ unsigned long long box_ring[16];
unsigned box_made = 0, box_done = 0;
const unsigned box_item = threadIdx.x + blockDim.x*(threadIdx.y + blockDim.y*threadIdx.z);
const auto box_group = [&](unsigned k) { return (unsigned)__cvta_generic_to_shared(box_ring + k % 16); };
const auto box_wait = [&](unsigned n) {
    #pragma unroll 1
    for (; box_made - box_done > n; ++box_done)
        asm volatile("{.reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra wait;}"
            :: "r"(box_group(box_done)), "r"(box_done / 16 % 2) : "memory");
};
const auto box_commit = [&]() {
    __syncwarp();
    if (box_item % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(box_group(box_made)) : "memory");
    ++box_made;
    box_wait(15);
};
if (box_item == 0) {
    for (int k = 0; k < 16; ++k)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
            :: "r"(box_group(k)), "r"((blockDim.x*blockDim.y*blockDim.z + 31) / 32) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}
__syncthreads();"#;

const CODE: &str = r#"asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], 8192;"
    " cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%2, {{%3, %4}}], [%1];"
    :: "r"((unsigned)__cvta_generic_to_shared({&to[0, 0, 0]})), "r"(box_group(box_made)), "l"({map from}),
       "r"((int)({begin from, 1})), "r"((int)({begin from, 0})) : "memory");"#;

/// The text of `copy_box_bf16_64x64` and that of `f16`: one copy, by the first work-item of a group, of 64 rows of 128
/// bytes to local memory, where they are swizzled.
///
/// # Source
/// PTX ISA, *Data Movement and Conversion Instructions: cp.async.bulk.tensor*, *mbarrier*.
pub fn copy_box(ty: &str) -> String {
    let quoted = |lines: &str| lines.lines().map(|line| format!("{line:?}")).collect::<Vec<_>>();
    let mut text = format!(
        "callee copy_box_{ty}_64x64
  arg from: {ty}[64, 64] in
  arg to: {ty}[64, 8, 8] out swizzle(1 ^= 0)

  for r in 0..64
    for u in 0..8
      for e in 0..8
        s: to[r, u, e] = from[r, 8*u + e]
  code cuda needs(sm_90) memory(from: global, to: local) aligned(1024) proxy({PROXY:?}) \
         completes(begin(128) ({}), commit \"box_commit();\", wait \"box_wait({{n}});\") (
",
        quoted(BEGIN).join(" ")
    );
    for line in quoted(CODE) {
        // writing to a string cannot fail
        let _ = writeln!(text, "    {line}");
    }
    text + "  )\n"
}
