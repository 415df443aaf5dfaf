//! Products of matrices of 16-bit reals on NVIDIA's matrix units, with sums in single precision.

/// The code of both forms of `ldmatrix`: four matrices of eight rows, of which each lane names one row.
macro_rules! ldmatrix {
    ($form:literal) => {
        concat!(
            "  code cuda needs(sm_80) memory(from: local) (\n",
            "    \"asm volatile(\\\"ldmatrix.sync.aligned.m8n8.x4",
            $form,
            ".shared.b16 {{%0, %1, %2, %3}}, [%4];\\\"\"\n",
            "    \"    : \\\"=r\\\"(*(unsigned *){&to[lane, 0, 0, 0]; 2}), \\\"=r\\\"(*(unsigned *){&to[lane, 0, 1, 0]; 2}),\"\n",
            "    \"      \\\"=r\\\"(*(unsigned *){&to[lane, 1, 0, 0]; 2}), \\\"=r\\\"(*(unsigned *){&to[lane, 1, 1, 0]; 2})\"\n",
            "    \"    : \\\"r\\\"((unsigned)__cvta_generic_to_shared({&from[lane mod 16, floor_div(lane, 16), 0]; 8}))",
            " : \\\"memory\\\");\"\n",
            "  )\n"
        )
    };
}

/// Two columns of a row as a word.
macro_rules! convert {
    ($ty:literal, $word:literal, $columns:literal) => {
        concat!("    \"        \\\" cvt.rn.", $ty, "x2.f32 ", $word, ", ", $columns, ";\\\"\"\n")
    };
}

/// Two lanes that differ in a bit keep one of two words each, and give the other one away. As instructions: of
/// conditions in C++, NVRTC makes branches, so that a sub-group parts at each shuffle (H200, 8192 rows, 2026-11-29).
macro_rules! exchange {
    ($first:literal, $second:literal, $is_second:literal, $bit:literal) => {
        concat!(
            "    \"        \\\" selp.b32 t, ",
            $first,
            ", ",
            $second,
            ", ",
            $is_second,
            ";",
            " shfl.sync.bfly.b32 t, t, ",
            $bit,
            ", 31, -1;",
            " selp.b32 ",
            $first,
            ", t, ",
            $first,
            ", ",
            $is_second,
            ";",
            " selp.b32 ",
            $second,
            ", ",
            $second,
            ", t, ",
            $is_second,
            ";\\\"\"\n"
        )
    };
}

/// The texts of the callees for an element type: its name, in a kernel and in instructions.
macro_rules! callees {
    ($ty:literal) => {
        [
            concat!(
                "callee copy_async_", $ty, "x8\n",
                "  arg from: ", $ty, "[8] in\n",
                "  arg to: ", $ty, "[8] out\n\n",
                "  for i in 0..8\n",
                "    s: to[i] = from[i]\n",
                "  code cuda needs(sm_80) memory(from: global, to: local)",
                " completes(commit \"asm volatile(\\\"cp.async.commit_group;\\\" ::: \\\"memory\\\");\",",
                " wait \"asm volatile(\\\"cp.async.wait_group {n};\\\" ::: \\\"memory\\\");\") (\n",
                "    \"asm volatile(\\\"cp.async.cg.shared.global [%0], [%1], 16;\\\"",
                " :: \\\"r\\\"((unsigned)__cvta_generic_to_shared({&to[0]; 8})), \\\"l\\\"({&from[0]; 8}) : \\\"memory\\\");\"\n",
                "  )\n"
            ),
            concat!(
                "callee ldmatrix_", $ty, "\n",
                "  arg from: ", $ty, "[16, 2, 8] in\n",
                "  arg to: ", $ty, "[32, 2, 2, 2] out\n\n",
                "  for lane in 0..32 {l.0}\n",
                "    for h in 0..2\n",
                "      for i in 0..2\n",
                "        for e in 0..2\n",
                "          s: to[lane, h, i, e] = from[8*i + floor_div(lane, 4), h, 2*(lane mod 4) + e]\n",
                ldmatrix!("")
            ),
            concat!(
                "callee ldmatrix_trans_", $ty, "\n",
                "  arg from: ", $ty, "[16, 2, 8] in\n",
                "  arg to: ", $ty, "[32, 2, 2, 2] out\n\n",
                "  for lane in 0..32 {l.0}\n",
                "    for j in 0..2\n",
                "      for h in 0..2\n",
                "        for e in 0..2\n",
                "          s: to[lane, j, h, e] = from[8*h + 2*(lane mod 4) + e, j, floor_div(lane, 4)]\n",
                ldmatrix!(".trans")
            ),
            concat!(
                "callee mma_m16n8k16_", $ty, "\n",
                "  arg a: ", $ty, "[32, 2, 2, 2] in\n",
                "  arg b: ", $ty, "[32, 2, 2] in\n",
                "  arg c: f32[32, 2, 2] inout\n\n",
                "  for lane in 0..32 {l.0}\n",
                "    for i in 0..2\n",
                "      for j in 0..2\n",
                "        for h in 0..2\n",
                "          for q in 0..4\n",
                "            for e in 0..2\n",
                "              s: c[lane, i, j] += b[4*(2*(lane mod 4) + j) + q, h, e]",
                "*a[4*floor_div(lane, 4) + q, h, i, e]\n",
                "  code cuda needs(sm_80) (\n",
                "    \"asm(\\\"mma.sync.aligned.m16n8k16.row.col.f32.", $ty, ".", $ty, ".f32",
                " {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};\\\"\"\n",
                "    \"    : \\\"+f\\\"({c[lane, 0, 0]}), \\\"+f\\\"({c[lane, 0, 1]}), \\\"+f\\\"({c[lane, 1, 0]}), \\\"+f\\\"({c[lane, 1, 1]})\"\n",
                "    \"    : \\\"r\\\"(*(const unsigned *){&a[lane, 0, 0, 0]; 2}), \\\"r\\\"(*(const unsigned *){&a[lane, 0, 1, 0]; 2}),\"\n",
                "    \"      \\\"r\\\"(*(const unsigned *){&a[lane, 1, 0, 0]; 2}), \\\"r\\\"(*(const unsigned *){&a[lane, 1, 1, 0]; 2}),\"\n",
                "    \"      \\\"r\\\"(*(const unsigned *){&b[lane, 0, 0]; 2}), \\\"r\\\"(*(const unsigned *){&b[lane, 1, 0]; 2}));\"\n",
                "  )\n"
            ),
            concat!(
                "callee store_", $ty, "x2\n",
                "  arg from: f32[2] in\n",
                "  arg to: ", $ty, "[2] out\n\n",
                "  for i in 0..2\n",
                "    s: to[i] = from[i]\n",
                "  code cuda needs(sm_80) (\n",
                "    \"asm(\\\"cvt.rn.", $ty, "x2.f32 %0, %1, %2;\\\"\"\n",
                "    \"    : \\\"=r\\\"(*(unsigned *){&to[0]; 2}) : \\\"f\\\"({from[1]}), \\\"f\\\"({from[0]}));\"\n",
                "  )\n"
            ),
            concat!(
                "callee store_rows_", $ty, "x8\n",
                "  arg from: f32[32, 4, 2] in\n",
                "  arg to: ", $ty, "[8, 32] out\n\n",
                "  for lane in 0..32 {l.0}\n",
                "    for j in 0..4\n",
                "      for x in 0..2\n",
                "        s: to[floor_div(lane, 4), 8*j + 2*(lane mod 4) + x] = from[lane, j, x]\n",
                "  code cuda needs(sm_80) (\n",
                "    \"{{\"\n",
                "    \"    unsigned own[4];\"\n",
                "    \"    asm volatile(\\\"{{.reg .pred p, q; .reg .b32 a, b, c, d, t; mov.u32 t, %%laneid;\\\"\"\n",
                "    \"        \\\" and.b32 a, t, 2; setp.ne.b32 p, a, 0; and.b32 b, t, 1; setp.ne.b32 q, b, 0;\\\"\"\n",
                convert!($ty, "a", "%5, %4"), convert!($ty, "b", "%7, %6"),
                convert!($ty, "c", "%9, %8"), convert!($ty, "d", "%11, %10"),
                // a transposition of four by four words among four lanes
                exchange!("a", "c", "p", "2"), exchange!("b", "d", "p", "2"),
                exchange!("a", "b", "q", "1"), exchange!("c", "d", "q", "1"),
                "    \"        \\\" mov.b32 %0, a; mov.b32 %1, b; mov.b32 %2, c; mov.b32 %3, d;}}\\\"\"\n",
                "    \"        : \\\"=r\\\"(own[0]), \\\"=r\\\"(own[1]), \\\"=r\\\"(own[2]), \\\"=r\\\"(own[3])\"\n",
                "    \"        : \\\"f\\\"({from[lane, 0, 0]}), \\\"f\\\"({from[lane, 0, 1]}), \\\"f\\\"({from[lane, 1, 0]}), \\\"f\\\"({from[lane, 1, 1]}),\"\n",
                "    \"          \\\"f\\\"({from[lane, 2, 0]}), \\\"f\\\"({from[lane, 2, 1]}), \\\"f\\\"({from[lane, 3, 0]}), \\\"f\\\"({from[lane, 3, 1]}));\"\n",
                "    \"    *(uint4 *){&to[floor_div(lane, 4), 8*(lane mod 4)]; 8} = make_uint4(own[0], own[1], own[2], own[3]);\"\n",
                "    \"}}\"\n",
                "  )\n"
            ),
        ]
    };
}

/// Of `bf16`: `copy_async_bf16x8`, `ldmatrix_bf16`, `ldmatrix_trans_bf16`, `mma_m16n8k16_bf16`,
/// `store_bf16x2`, `store_rows_bf16x8`.
///
/// # Shapes and units
/// The work-item `lane = 4*g + t` holds `c[lane, i, j]`, row `8*i + g` and column `2*t + j` of the 16×8
/// result; `a[lane, h, i, e]`, row `8*i + g` and column `8*h + 2*t + e` of the 16×16 factor; `b[lane, h, e]`,
/// row `8*h + 2*t + e` and column `g` of the 16×8 factor. `ldmatrix_bf16` reads the first so from local
/// memory, `ldmatrix_trans_bf16` two of the second, `to[lane, j, h, e]`, from 16 rows of 16 columns.
/// Rows are in units of eight elements, 16 bytes that lie together; units may lie anywhere, as in a layout
/// with a swizzle.
///
/// `store_rows_bf16x8` stores eight rows of 32 columns of results by 16 bytes a work-item: four lanes exchange.
///
/// # Rounding
/// Products are exact. Sums of the sixteen products and `c` are in single precision, in an order and with a
/// rounding that NVIDIA does not state: on an H200, terms are cut off, not rounded to nearest.
///
/// # Source
/// PTX ISA, *Matrix Fragments for mma.m16n8k16 with floating point type*, *ldmatrix*, *cp.async*.
pub const BF16: [&str; 6] = callees!("bf16");

/// The same of `f16`.
pub const F16: [&str; 6] = callees!("f16");
