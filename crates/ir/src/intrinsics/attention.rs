//! Both products of attention by a team of four sub-groups: scores of queries and keys, and sums of values with
//! weights that the team holds in registers; and copies of results.

use super::wgmma::{BEGIN, END, accumulators, descriptor, product, with_code};

/// The text of `wgmma_m64n64k128_rows_bf16` and the like: products of 64 rows of `a` with rows of `b` for columns,
/// such as queries with keys.
///
/// # Shapes and units
/// `c[w, lane, j, i, x]` as that of [`super::wgmma()`]. `a[p, r, u, e]` is row `r` and term `64*p + 8*u + e`,
/// `b[p, s, u, e]` that term of column `s`. Both lie as the factors there.
///
/// # Rounding, Source
/// As there.
pub fn wgmma_rows(columns: usize, terms: usize, ty: &str) -> String {
    let (panels, eights, results) = (terms / 64, columns / 8, columns / 2);
    let meaning = format!(
        "callee wgmma_m64n{columns}k{terms}_rows_{ty}
  arg a: {ty}[{panels}, 64, 8, 8] in swizzle(2 ^= 1)
  arg b: {ty}[{panels}, {columns}, 8, 8] in swizzle(2 ^= 1)
  arg c: f32[4, 32, {eights}, 2, 2] inout

  for w in 0..4 {{l.1}}
    for lane in 0..32 {{l.0}}
      for j in 0..{eights}
        for i in 0..2
          for x in 0..2
            for p in 0..{panels}
              for u in 0..8
                for e in 0..8
                  s: c[w, lane, j, i, x] += a[p, 16*w + 8*i + floor_div(lane, 4), u, e]\
         *b[p, 8*j + 2*(lane mod 4) + x, u, e]
  code cuda needs(sm_90a) memory(a: local, b: local) aligned(1024) (
"
    );
    let mut lines = vec![
        format!("asm volatile(\"{{{{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %{}, 0;\"", results + 2),
        BEGIN.to_owned(),
        format!("    \" mov.b64 a, %{results}; mov.b64 b, %{};\"", results + 1),
    ];
    for step in 1..=terms / 16 {
        // the next 16 terms, in units of 16 bytes: in the same rows, or in the next panel
        let next = match (step == terms / 16, step % 4) {
            (true, _) => String::new(),
            (false, 0) => format!(" add.s64 a, a, {}; add.s64 b, b, {};", 8 * 64 - 6, 8 * columns - 6),
            (false, _) => " add.s64 a, a, 2; add.s64 b, b, 2;".to_owned(),
        };
        lines.extend(product(columns, ty, &format!("a, b, p, 1, 1, 0, 0;{next}")));
    }
    lines.push(END.to_owned());
    lines.extend(accumulators(columns));
    lines.push(format!("    : {},", descriptor("a[0, 0, 0, 0]", 1)));
    lines.push(format!("      {}, \"r\"(1) : \"memory\");", descriptor("b[0, 0, 0, 0]", 1)));
    with_code(meaning, &lines)
}

/// The text of `wgmma_m64n128k64_fragments_bf16` and the like: products of 64 rows whose factor `a` is in registers.
///
/// # Shapes and units
/// `b` and `c` as those of [`super::wgmma()`]. `a[w, lane, s, h, i, e]`, with `lane = 4*g + t`, is row
/// `16*w + 8*i + g` and term `16*s + 8*h + 2*t + e`. So accumulators `[w, lane, 2*s + h, i, e]` of a product are such
/// a factor of the next one in place.
///
/// # Rounding, Source
/// As there.
pub fn wgmma_fragments(columns: usize, terms: usize, ty: &str) -> String {
    let (panels, eights, steps) = (columns / 64, columns / 8, terms / 16);
    let first = columns / 2;
    let at = first + 4 * steps;
    let meaning = format!(
        "callee wgmma_m64n{columns}k{terms}_fragments_{ty}
  arg a: {ty}[4, 32, {steps}, 2, 2, 2] in
  arg b: {ty}[{panels}, {terms}, 8, 8] in swizzle(2 ^= 1)
  arg c: f32[4, 32, {eights}, 2, 2] inout

  for w in 0..4 {{l.1}}
    for lane in 0..32 {{l.0}}
      for j in 0..{eights}
        for i in 0..2
          for x in 0..2
            for s in 0..{steps}
              for h in 0..2
                for q in 0..4
                  for e in 0..2
                    m: c[w, lane, j, i, x] += \
         b[floor_div(j, 8), 16*s + 8*h + 2*q + e, j mod 8, 2*(lane mod 4) + x]\
         *a[w, 4*floor_div(lane, 4) + q, s, h, i, e]
  code cuda needs(sm_90a) memory(b: local) aligned(1024) (
"
    );
    let mut lines = vec![
        format!("asm volatile(\"{{{{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %{}, 0;\"", at + 1),
        BEGIN.to_owned(),
        format!("    \" mov.b64 b, %{at};\""),
    ];
    for step in 0..steps {
        let some = [0, 1, 2, 3].map(|k| format!("%{}", first + 4 * step + k)).join(", ");
        // sixteen rows of 128 bytes
        let next = if step + 1 < steps { " add.s64 b, b, 128;" } else { "" };
        lines.extend(product(columns, ty, &format!("{{{{{some}}}}}, b, p, 1, 1, 1;{next}")));
    }
    lines.push(END.to_owned());
    lines.extend(accumulators(columns));
    for s in 0..steps {
        let two =
            |[h, i]: [usize; 2]| format!("\"r\"(*(const unsigned *){{&a[w, lane, {s}, {h}, {i}, 0]; 2}})");
        let some = [[0, 0], [0, 1], [1, 0], [1, 1]].map(two).join(", ");
        lines.push(format!("    {} {some},", if s == 0 { ":" } else { " " }));
    }
    lines.push(format!("      {}, \"r\"(1) : \"memory\");", descriptor("b[0, 0, 0, 0]", 8 * terms)));
    with_code(meaning, &lines)
}

/// The text of `copy_bf16x8` and `copy_f16x8`: eight neighbours at once, at multiples of 16 bytes.
pub fn copy_eight(ty: &str) -> String {
    format!(
        "callee copy_{ty}x8
  arg from: {ty}[8] in
  arg to: {ty}[8] out

  for i in 0..8
    s: to[i] = from[i]
  code cuda (
    \"*(uint4 *){{&to[0]; 8}} = *(const uint4 *){{&from[0]; 8}};\"
  )
"
    )
}
