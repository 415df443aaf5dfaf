//! Products of matrices of 16-bit reals by a team of four sub-groups, which NVIDIA's compilers do not find.

macro_rules! wgmma_of {
    ($ty:literal, $next:literal) => {
        concat!(
            "    \"    \\\" wgmma.mma_async.sync.aligned.m64n256k16.f32.", $ty, ".", $ty, " {{\\\"\"\n",
            "    \"    \\\" %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,\\\"\"\n",
            "    \"    \\\" %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,\\\"\"\n",
            "    \"    \\\" %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,\\\"\"\n",
            "    \"    \\\" %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127\\\"\"\n",
            "    \"    \\\"}}, a, b, p, 1, 1, 0, 1;", $next, "\\\"\"\n"
        )
    };
}

/// The code of [`WGMMA`]: four products of 16 terms each, which all that the team has written before them sees,
/// and a wait for them.
macro_rules! wgmma {
    ($ty:literal) => {
        concat!(
            "callee wgmma_m64n256k64_", $ty, "\n",
            "  arg a: ", $ty, "[64, 8, 8] in swizzle(1 ^= 0)\n",
            "  arg b: ", $ty, "[4, 64, 8, 8] in swizzle(2 ^= 1)\n",
            "  arg c: f32[4, 32, 32, 2, 2] inout\n\n",
            "  for w in 0..4 {l.1}\n",
            "    for lane in 0..32 {l.0}\n",
            "      for j in 0..32\n",
            "        for i in 0..2\n",
            "          for x in 0..2\n",
            "            for u in 0..8\n",
            "              for e in 0..8\n",
            "                s: c[w, lane, j, i, x] += b[floor_div(j, 8), 8*u + e, j mod 8, 2*(lane mod 4) + x]",
            "*a[16*w + 8*i + floor_div(lane, 4), u, e]\n",
            "  code cuda needs(sm_90a) memory(a: local, b: local) aligned(1024) (\n",
            "    \"asm volatile(\\\"{{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %130, 0;\\\"\"\n",
            "    \"    \\\" fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;\\\"\"\n",
            "    \"    \\\" mov.b64 a, %128; mov.b64 b, %129;\\\"\"\n",
            wgmma_of!($ty, " add.s64 a, a, 2; add.s64 b, b, 128;"),
            wgmma_of!($ty, " add.s64 a, a, 2; add.s64 b, b, 128;"),
            wgmma_of!($ty, " add.s64 a, a, 2; add.s64 b, b, 128;"),
            wgmma_of!($ty, ""),
            "    \"    \\\" wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}}\\\"\"\n",
            "    \"    : \\\"+f\\\"({c[w, lane, 0, 0, 0]}), \\\"+f\\\"({c[w, lane, 0, 0, 1]}), \\\"+f\\\"({c[w, lane, 0, 1, 0]}), \\\"+f\\\"({c[w, lane, 0, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 1, 0, 0]}), \\\"+f\\\"({c[w, lane, 1, 0, 1]}), \\\"+f\\\"({c[w, lane, 1, 1, 0]}), \\\"+f\\\"({c[w, lane, 1, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 2, 0, 0]}), \\\"+f\\\"({c[w, lane, 2, 0, 1]}), \\\"+f\\\"({c[w, lane, 2, 1, 0]}), \\\"+f\\\"({c[w, lane, 2, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 3, 0, 0]}), \\\"+f\\\"({c[w, lane, 3, 0, 1]}), \\\"+f\\\"({c[w, lane, 3, 1, 0]}), \\\"+f\\\"({c[w, lane, 3, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 4, 0, 0]}), \\\"+f\\\"({c[w, lane, 4, 0, 1]}), \\\"+f\\\"({c[w, lane, 4, 1, 0]}), \\\"+f\\\"({c[w, lane, 4, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 5, 0, 0]}), \\\"+f\\\"({c[w, lane, 5, 0, 1]}), \\\"+f\\\"({c[w, lane, 5, 1, 0]}), \\\"+f\\\"({c[w, lane, 5, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 6, 0, 0]}), \\\"+f\\\"({c[w, lane, 6, 0, 1]}), \\\"+f\\\"({c[w, lane, 6, 1, 0]}), \\\"+f\\\"({c[w, lane, 6, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 7, 0, 0]}), \\\"+f\\\"({c[w, lane, 7, 0, 1]}), \\\"+f\\\"({c[w, lane, 7, 1, 0]}), \\\"+f\\\"({c[w, lane, 7, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 8, 0, 0]}), \\\"+f\\\"({c[w, lane, 8, 0, 1]}), \\\"+f\\\"({c[w, lane, 8, 1, 0]}), \\\"+f\\\"({c[w, lane, 8, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 9, 0, 0]}), \\\"+f\\\"({c[w, lane, 9, 0, 1]}), \\\"+f\\\"({c[w, lane, 9, 1, 0]}), \\\"+f\\\"({c[w, lane, 9, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 10, 0, 0]}), \\\"+f\\\"({c[w, lane, 10, 0, 1]}), \\\"+f\\\"({c[w, lane, 10, 1, 0]}), \\\"+f\\\"({c[w, lane, 10, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 11, 0, 0]}), \\\"+f\\\"({c[w, lane, 11, 0, 1]}), \\\"+f\\\"({c[w, lane, 11, 1, 0]}), \\\"+f\\\"({c[w, lane, 11, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 12, 0, 0]}), \\\"+f\\\"({c[w, lane, 12, 0, 1]}), \\\"+f\\\"({c[w, lane, 12, 1, 0]}), \\\"+f\\\"({c[w, lane, 12, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 13, 0, 0]}), \\\"+f\\\"({c[w, lane, 13, 0, 1]}), \\\"+f\\\"({c[w, lane, 13, 1, 0]}), \\\"+f\\\"({c[w, lane, 13, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 14, 0, 0]}), \\\"+f\\\"({c[w, lane, 14, 0, 1]}), \\\"+f\\\"({c[w, lane, 14, 1, 0]}), \\\"+f\\\"({c[w, lane, 14, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 15, 0, 0]}), \\\"+f\\\"({c[w, lane, 15, 0, 1]}), \\\"+f\\\"({c[w, lane, 15, 1, 0]}), \\\"+f\\\"({c[w, lane, 15, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 16, 0, 0]}), \\\"+f\\\"({c[w, lane, 16, 0, 1]}), \\\"+f\\\"({c[w, lane, 16, 1, 0]}), \\\"+f\\\"({c[w, lane, 16, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 17, 0, 0]}), \\\"+f\\\"({c[w, lane, 17, 0, 1]}), \\\"+f\\\"({c[w, lane, 17, 1, 0]}), \\\"+f\\\"({c[w, lane, 17, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 18, 0, 0]}), \\\"+f\\\"({c[w, lane, 18, 0, 1]}), \\\"+f\\\"({c[w, lane, 18, 1, 0]}), \\\"+f\\\"({c[w, lane, 18, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 19, 0, 0]}), \\\"+f\\\"({c[w, lane, 19, 0, 1]}), \\\"+f\\\"({c[w, lane, 19, 1, 0]}), \\\"+f\\\"({c[w, lane, 19, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 20, 0, 0]}), \\\"+f\\\"({c[w, lane, 20, 0, 1]}), \\\"+f\\\"({c[w, lane, 20, 1, 0]}), \\\"+f\\\"({c[w, lane, 20, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 21, 0, 0]}), \\\"+f\\\"({c[w, lane, 21, 0, 1]}), \\\"+f\\\"({c[w, lane, 21, 1, 0]}), \\\"+f\\\"({c[w, lane, 21, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 22, 0, 0]}), \\\"+f\\\"({c[w, lane, 22, 0, 1]}), \\\"+f\\\"({c[w, lane, 22, 1, 0]}), \\\"+f\\\"({c[w, lane, 22, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 23, 0, 0]}), \\\"+f\\\"({c[w, lane, 23, 0, 1]}), \\\"+f\\\"({c[w, lane, 23, 1, 0]}), \\\"+f\\\"({c[w, lane, 23, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 24, 0, 0]}), \\\"+f\\\"({c[w, lane, 24, 0, 1]}), \\\"+f\\\"({c[w, lane, 24, 1, 0]}), \\\"+f\\\"({c[w, lane, 24, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 25, 0, 0]}), \\\"+f\\\"({c[w, lane, 25, 0, 1]}), \\\"+f\\\"({c[w, lane, 25, 1, 0]}), \\\"+f\\\"({c[w, lane, 25, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 26, 0, 0]}), \\\"+f\\\"({c[w, lane, 26, 0, 1]}), \\\"+f\\\"({c[w, lane, 26, 1, 0]}), \\\"+f\\\"({c[w, lane, 26, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 27, 0, 0]}), \\\"+f\\\"({c[w, lane, 27, 0, 1]}), \\\"+f\\\"({c[w, lane, 27, 1, 0]}), \\\"+f\\\"({c[w, lane, 27, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 28, 0, 0]}), \\\"+f\\\"({c[w, lane, 28, 0, 1]}), \\\"+f\\\"({c[w, lane, 28, 1, 0]}), \\\"+f\\\"({c[w, lane, 28, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 29, 0, 0]}), \\\"+f\\\"({c[w, lane, 29, 0, 1]}), \\\"+f\\\"({c[w, lane, 29, 1, 0]}), \\\"+f\\\"({c[w, lane, 29, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 30, 0, 0]}), \\\"+f\\\"({c[w, lane, 30, 0, 1]}), \\\"+f\\\"({c[w, lane, 30, 1, 0]}), \\\"+f\\\"({c[w, lane, 30, 1, 1]}),\"\n",
            "    \"      \\\"+f\\\"({c[w, lane, 31, 0, 0]}), \\\"+f\\\"({c[w, lane, 31, 0, 1]}), \\\"+f\\\"({c[w, lane, 31, 1, 0]}), \\\"+f\\\"({c[w, lane, 31, 1, 1]})\"\n",
            "    \"    : \\\"l\\\"((unsigned long long)((__cvta_generic_to_shared({&a[0, 0, 0]}) & 0x3ffff) >> 4)",
            " | 1ull << 16 | 64ull << 32 | 1ull << 62),\"\n",
            "    \"      \\\"l\\\"((unsigned long long)((__cvta_generic_to_shared({&b[0, 0, 0, 0]}) & 0x3ffff) >> 4)",
            " | 512ull << 16 | 64ull << 32 | 1ull << 62), \\\"r\\\"(1) : \\\"memory\\\");\"\n",
            "  )\n"
        )
    };
}

/// `wgmma_m64n256k64_bf16` and `wgmma_m64n256k64_f16`: 64 rows, 256 columns and 64 terms by four sub-groups
/// that lie along `l.1`.
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
/// PTX ISA, *Asynchronous Warpgroup Level Matrix Instructions*, *Matrix Descriptor Format*; *Async proxy*: the
/// fence before the products lets them see what was written before the last barrier.
pub const WGMMA: [&str; 2] = [wgmma!("bf16"), wgmma!("f16")];
