//! Products of matrices of 16-bit reals by a team of four sub-groups, which NVIDIA's compilers do not find.

use super::boxes::PROXY;
use std::fmt::Write;

/// The text of `wgmma_m64n128k64_bf16`, `wgmma_m64n256k64_bf16` and those of `f16`: products of 64 rows, 128 or
/// 256 columns and 64 terms by four sub-groups that lie along `l.1`. They are done in groups, so that what reads the
/// results, or writes to the factors, waits for theirs.
///
/// # Shapes and units
/// `c[w, lane, j, i, x]`, with `lane = 4*g + t`, is row `16*w + 8*i + g` and column `8*j + 2*t + x` of the result.
/// `a[r, u, e]` is row `r` and term `8*u + e`; `b[q, r, u, e]` is term `r` and column `64*q + 8*u + e`. Both lie in
/// local memory, with rows of 128 bytes that are swizzled, at multiples of 1024 bytes.
///
/// # Rounding
/// As [`super::half::BF16`].
///
/// # Source
/// PTX ISA, *Asynchronous Warpgroup Level Matrix Instructions*, *Matrix Descriptor Format*, *Async proxy*.
pub fn wgmma(columns: usize, ty: &str) -> String {
    let (eights, panels) = (columns / 8, columns / 64);
    let meaning = format!(
        "callee wgmma_m64n{columns}k64_{ty}
  arg a: {ty}[64, 8, 8] in swizzle(1 ^= 0)
  arg b: {ty}[{panels}, 64, 8, 8] in swizzle(2 ^= 1)
  arg c: f32[4, 32, {eights}, 2, 2] inout

  for w in 0..4 {{l.1}}
    for lane in 0..32 {{l.0}}
      for j in 0..{eights}
        for i in 0..2
          for x in 0..2
            for u in 0..8
              for e in 0..8
                s: c[w, lane, j, i, x] += b[floor_div(j, 8), 8*u + e, j mod 8, 2*(lane mod 4) + x]\
         *a[16*w + 8*i + floor_div(lane, 4), u, e]
  code cuda needs(sm_90a) memory(a: local, b: local) aligned(1024) proxy({PROXY:?}) completes({GROUPS}) (
"
    );
    with_code(meaning, &code(columns, ty))
}

/// The text of a callee, of which the last line opens its code.
pub(super) fn with_code(mut text: String, lines: &[String]) -> String {
    for line in lines {
        // writing to a string cannot fail
        let _ = writeln!(text, "    {line:?}");
    }
    text + "  )\n"
}

/// What completes them.
const GROUPS: &str = "commit \"asm volatile(\\\"wgmma.commit_group.sync.aligned;\\\" ::: \\\"memory\\\");\", \
                      wait \"asm volatile(\\\"wgmma.wait_group.sync.aligned {n};\\\" ::: \\\"memory\\\");\"";

/// Four products of 16 terms each.
fn code(columns: usize, ty: &str) -> Vec<String> {
    let results = columns / 2;
    let [a, b, is_added] = [results, results + 1, results + 2];
    let mut lines = vec![
        format!("asm volatile(\"{{{{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %{is_added}, 0;\""),
        "    \" wgmma.fence.sync.aligned;\"".to_owned(),
        format!("    \" mov.b64 a, %{a}; mov.b64 b, %{b};\""),
    ];
    for part in 0..4 {
        // addresses of the next 16 terms, in units of 16 bytes
        let next = if part < 3 { " add.s64 a, a, 2; add.s64 b, b, 128;" } else { "" };
        lines.extend(product(columns, ty, &format!("a, b, p, 1, 1, 0, 1;{next}")));
    }
    lines.push("    \"}}\"".to_owned());
    lines.extend(accumulators(columns));
    lines.push(format!("    : {},", descriptor("a[0, 0, 0]", 1)));
    lines.push(format!("      {}, \"r\"(1) : \"memory\");", descriptor("b[0, 0, 0, 0]", 512)));
    lines
}

/// What the team wrote before is seen by what follows.
pub(super) const BEGIN: &str = "    \" fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;\"";

/// A wait for the products.
pub(super) const END: &str = "    \" wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}}\"";

/// A product of 16 terms; the accumulators are the first operands, and `rest` names the others.
pub(super) fn product(columns: usize, ty: &str, rest: &str) -> Vec<String> {
    let numbers: Vec<String> = (0..columns / 2).map(|k| format!("%{k}")).collect();
    let numbers: Vec<String> = numbers.chunks(16).map(|some| some.join(", ")).collect();
    let mut lines =
        vec![format!("    \" wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{ty}.{ty} {{{{\"")];
    let last = numbers.len() - 1;
    lines.extend(
        numbers
            .iter()
            .enumerate()
            .map(|(k, some)| format!("    \" {some}{}\"", if k < last { "," } else { "" })),
    );
    lines.push(format!("    \"}}}}, {rest}\""));
    lines
}

/// The operands `c[w, lane, j, i, x]`.
pub(super) fn accumulators(columns: usize) -> Vec<String> {
    let last = columns / 8 - 1;
    let eight = |j: usize| {
        let of = |[i, x]: [usize; 2]| format!("\"+f\"({{c[w, lane, {j}, {i}, {x}]}})");
        let elements = [[0, 0], [0, 1], [1, 0], [1, 1]].map(of).join(", ");
        format!("    {} {elements}{}", if j == 0 { ":" } else { " " }, if j < last { "," } else { "" })
    };
    (0..=last).map(eight).collect()
}

/// Where a factor lies: rows of 128 bytes with a swizzle, eight of them 1024 bytes after those before, and the next
/// ones along the other axis `ahead` units of 16 bytes after them. The shuffle tells the compiler that all
/// work-items of a sub-group have the same address, so that it adds to it once for all of them.
pub(super) fn descriptor(window: &str, ahead: usize) -> String {
    format!(
        "\"l\"((unsigned long long)__shfl_sync(~0u, (unsigned)((__cvta_generic_to_shared({{&{window}}}) & 0x3ffff) >> 4), 0) \
         | {ahead}ull << 16 | 64ull << 32 | 1ull << 62)"
    )
}
