//! Copies and prefetches of all factors of an element by the copy engine of an H100 or H200: one
//! instruction of one work-item, where asynchronous copies are one for each number.

use super::nest::{Steps, change_layout};
use kingpost::prelude::{AddressSpace, DeclareCallee, ReplaceWithIntrinsic, Schedule, TouchArray};

/// A ring of barriers in local memory for 16 groups of copies, as that of
/// `kingpost::ir::intrinsics::copy_box`: each sub-group arrives at that of a group when it makes
/// it, and the engine with the bytes that it has copied. Before it makes a group it has waited for
/// the one 16 before.
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

/// The callee that copies an array of doubles from a multiple of 16 bytes on. The copy engine takes
/// multiples of 16 bytes; what is left is copied as usual.
///
/// # Source
/// PTX ISA, *Data Movement and Conversion Instructions: cp.async.bulk*, *mbarrier*.
fn callee(shape: &[usize]) -> String {
    let doubles: usize = shape.iter().product();
    let bytes = doubles / 2 * 16;
    let first = index(shape, |_| "0".into());
    let mut code = format!(
        r#"asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], {bytes};"
    " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%2], {bytes}, [%1];"
    :: "r"((unsigned)__cvta_generic_to_shared({{&to[{first}]}})), "r"(bulk_group(bulk_made)),
       "l"({{&from[{first}]}}) : "memory");"#
    );
    if doubles % 2 == 1 {
        let end = index(shape, |axis| (shape[axis] - 1).to_string());
        code += &format!("\n*({{&to[{end}]}}) = *({{&from[{end}]}});");
    }
    let extents = index(shape, |axis| shape[axis].to_string());
    let arguments = format!("  arg from: f64[{extents}] in\n  arg to: f64[{extents}] out\n");
    let each = index(shape, |axis| format!("k{axis}"));
    let body = loops(shape, &format!("to[{each}] = from[{each}]"));
    let begin = quoted(BEGIN).join(" ");
    format!(
        "callee {NAME}
{arguments}
{body}  code cuda needs(sm_90) memory(from: global, to: local) aligned(16) proxy({PROXY:?}) \
         completes(begin(128) ({begin}), commit \"bulk_commit();\", wait \"bulk_wait({{n}});\") (
{}  )
",
        lines(&code)
    )
}

/// The callee that has the copy engine bring an array of doubles to the second-level cache, but for
/// what is no multiple of 16 bytes.
///
/// # Source
/// PTX ISA, *Data Movement and Conversion Instructions: cp.async.bulk.prefetch*.
fn prefetch(shape: &[usize]) -> String {
    let doubles: usize = shape.iter().product();
    let (bytes, first) = (8 * doubles, index(shape, |_| "0".into()));
    let code = format!(
        r#"{{{{
    const unsigned long long bulk_first = (unsigned long long){{&from[{first}]}}, bulk_from = bulk_first + 15 & ~15ull;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
        :: "l"(bulk_from), "r"((unsigned)(bulk_first + {bytes} - bulk_from & ~15ull)));
}}}}"#
    );
    let extents = index(shape, |axis| shape[axis].to_string());
    let each = index(shape, |axis| format!("k{axis}"));
    let body = loops(shape, &format!("seen = from[{each}]"));
    format!(
        "callee {PREFETCH}
  arg from: f64[{extents}] in
  arg seen: f64 out

{body}  code cuda needs(sm_90) memory(from: global) hint (
{}  )
",
        lines(&code)
    )
}

fn index(shape: &[usize], entry: impl Fn(usize) -> String) -> String {
    (0..shape.len()).map(entry).collect::<Vec<_>>().join(", ")
}

/// Loops over the elements of an array, around a statement.
fn loops(shape: &[usize], statement: &str) -> String {
    let indent = |axis: usize| " ".repeat(2 * axis + 2);
    let of_axis = |axis: usize| format!("{}for k{axis} in 0..{}\n", indent(axis), shape[axis]);
    let around: String = (0..shape.len()).map(of_axis).collect();
    format!("{around}{}s: {statement}\n", indent(shape.len()))
}

fn quoted(text: &str) -> Vec<String> {
    text.lines().map(|line| format!("{line:?}")).collect()
}

/// Lines of code, as a callee has them.
fn lines(code: &str) -> String {
    quoted(code).into_iter().map(|line| format!("    {line}\n")).collect()
}

const NAME: &str = "copy_factors";
const PREFETCH: &str = "prefetch_factors";

/// Has the copy engine bring what an iteration of `e` reads of an array, which has a shape, to the
/// second-level cache, in loops of these names: this iteration, or one so many later.
pub fn prefetch_in_bulk(
    s: &mut Schedule,
    array: &str,
    shape: &[usize],
    names: &[&str],
    ahead: Option<i64>,
) -> Steps {
    s.apply(DeclareCallee::new(prefetch(shape)))?;
    let touch = TouchArray::new(array, "e", AddressSpace::Local).by_loops(names.iter().copied());
    s.apply(TouchArray { ahead, ..touch })?;
    s.apply(ReplaceWithIntrinsic::new([names[0]], PREFETCH)).map(drop)
}

/// Brings `u` of a later element, of `n` nodes a direction, to the second-level cache. An H200 has 132
/// multiprocessors; twice as many elements later gains as much at N = 13 and 14, and nothing at 15, four
/// times as many nothing (BP1.0, 2026-11-30).
pub fn prefetch_next(s: &mut Schedule, n: usize) -> Steps {
    prefetch_in_bulk(s, "u", &[n; 3], &["up", "up1", "up0"], Some(132))
}

/// Copies the factors of a shape that the loop `factors` and those in it copy by the copy engine.
pub fn copy_in_bulk(s: &mut Schedule, shape: &[usize], factors: &str) -> Steps {
    s.apply(DeclareCallee::new(callee(shape)))?;
    s.apply(ReplaceWithIntrinsic::new([factors], NAME)).map(drop)
}

/// Has the entries of each element begin at a multiple of 16 bytes, in an array of elements of a
/// shape.
pub fn align_elements(s: &mut Schedule, array: &str, shape: &[usize]) -> Steps {
    let whole: usize = shape.iter().product();
    if whole.is_multiple_of(2) {
        return Ok(());
    }
    let strides = (1..=shape.len()).map(|axis| shape[axis..].iter().product::<usize>().to_string());
    change_layout(s, array, &format!("strides({}, {})", whole + 1, strides.collect::<Vec<_>>().join(", ")))
}
