//! Conflicts over banks: known ones, and those of a run that is watched.

use super::super::{AccessKind, bank_traffic};
use kingpost_interp::{Memory, Observer, interpret_with};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel, SubGroup};
use kingpost_ir::layout::strides;
use kingpost_ir::text::parse;
use std::collections::{BTreeMap, BTreeSet};

/// A transposition through local memory, `t` with these attributes.
fn transposition(ty: &str, layout: &str) -> Kernel {
    let text = format!(
        "
kernel transpose
arg x: {ty}[4, 32, 32] in
arg y: {ty}[4, 32, 32] out
temp t: {ty}[32, 32] local{layout}
for g in 0..4 {{g.0}}
  for j in 0..32
    for i in 0..32 {{l.0}}
      fill: t[j, i] = x[g, j, i]
  for j_1 in 0..32
    for i_1 in 0..32 {{l.0}}
      take: y[g, j_1, i_1] = t[i_1, j_1]
"
    );
    parse(&text).unwrap()
}

fn counted(kernel: &Kernel) -> Vec<(String, AccessKind, u64, u64)> {
    let params = BTreeMap::new();
    let traffic = bank_traffic(kernel, &params).unwrap();
    assert!(traffic.iter().all(|t| t.exact));
    traffic.into_iter().map(|t| (t.insn, t.kind, t.wavefronts, t.conflicts)).collect()
}

#[test]
fn a_column_is_in_one_bank_until_it_is_padded() {
    let of = |insn: &str, kind, wavefronts, conflicts| (insn.to_owned(), kind, wavefronts, conflicts);
    let (fill, take) = (("fill", AccessKind::Write), ("take", AccessKind::Read));
    let expected = |w: [u64; 4]| vec![of(fill.0, fill.1, w[0], w[1]), of(take.0, take.1, w[2], w[3])];
    // 4 groups x 32 rows; 4 bytes: one wavefront or 32, 8 bytes: two or 2 x 16
    assert_eq!(counted(&transposition("f32", "")), expected([128, 0, 4096, 3968]));
    assert_eq!(counted(&transposition("f64", "")), expected([256, 0, 4096, 3840]));
    assert_eq!(counted(&transposition("f32", " strides(33, 1)")), expected([128, 0, 128, 0]));
    assert_eq!(counted(&transposition("f64", " strides(33, 1)")), expected([256, 0, 256, 0]));
    assert_eq!(counted(&transposition("f32", " swizzle(1 ^= 0)")), expected([128, 0, 128, 0]));
    assert_eq!(counted(&transposition("f64", " swizzle(1 ^= 0)")), expected([256, 0, 256, 0]));
    // columns by rows: a column stays in its bank
    assert_eq!(counted(&transposition("f32", " swizzle(0 ^= 1)")), expected([128, 0, 4096, 3968]));
    // rows two banks apart: half of a column
    assert_eq!(counted(&transposition("f64", " strides(34, 1)")), expected([256, 0, 512, 256]));
}

/// Sub-groups of 16 issue twice as many accesses, and meet in a bank half as often.
#[test]
fn a_narrower_sub_group_meets_less_often() {
    for ty in ["f32", "f64"] {
        let kernel = Kernel { sub_group: SubGroup::new(16).unwrap(), ..transposition(ty, "") };
        let wavefronts: Vec<_> =
            counted(&kernel).into_iter().map(|(_, _, all, beyond)| (all, beyond)).collect();
        assert_eq!(wavefronts, [(256, 0), (4096, 3840)], "{ty}");
    }
}

/// What work-items do at the same time: an instruction, the values of its other loops, the place of
/// the access in it, the array, reads or writes.
type Together = (usize, Vec<i64>, usize, VarId, AccessKind);

/// The wavefronts of a run: what work-items do in step is what they do at the same values of their
/// other loops, at the same place in the instruction.
struct Replay<'k> {
    kernel: &'k Kernel,
    loops: BTreeMap<InsnId, Vec<InameId>>,
    extents: [i64; 3],
    at: (usize, Vec<i64>, i64),
    ordinal: usize,
    steps: BTreeMap<Together, BTreeMap<i64, BTreeSet<i64>>>,
}

impl Replay<'_> {
    fn access(&mut self, var: VarId, element: usize, kind: AccessKind) {
        self.ordinal += 1;
        let variable = &self.kernel.vars[var];
        if variable.space != AddressSpace::Local {
            return;
        }
        let (mut rest, mut place) = (element as i64, 0);
        let strides = strides(variable, &vec![false; variable.shape.len()]).unwrap();
        for (extent, stride) in variable.shape.iter().zip(&strides).rev() {
            let extent = extent.as_constant().unwrap();
            place += rest % extent * stride.as_constant().unwrap();
            rest /= extent;
        }
        let bytes = variable.ty.bytes() as i64;
        let part = self.at.2 / (128 / bytes);
        let key = (self.at.0, self.at.1.clone(), self.ordinal, var, kind);
        self.steps.entry(key).or_default().entry(part).or_default().insert(place * bytes);
    }
}

impl Observer for Replay<'_> {
    fn instance(&mut self, insn: InsnId, point: &[i64]) {
        let mut number = [0; 3];
        let mut others = Vec::new();
        for (iname, value) in self.loops[&insn].iter().zip(point) {
            match self.kernel.inames[*iname].tag {
                AxisTag::Local(axis) => number[usize::from(axis)] = *value,
                _ => others.push(*value),
            }
        }
        let item = number[0] + self.extents[0] * (number[1] + self.extents[1] * number[2]);
        (self.at, self.ordinal) = ((insn.index(), others, item), 0);
    }

    fn read(&mut self, var: VarId, element: usize) {
        self.access(var, element, AccessKind::Read);
    }

    fn write(&mut self, var: VarId, element: usize) {
        self.access(var, element, AccessKind::Write);
    }
}

/// Wavefronts and conflicts of all accesses of a kernel without parameters.
fn replayed(kernel: &Kernel, extents: [i64; 3], memory: &mut Memory) -> (u64, u64) {
    let loops = kernel.schedule().into_iter().collect();
    let (at, ordinal, steps) = ((0, Vec::new(), 0), 0, BTreeMap::new());
    let mut replay = Replay { kernel, loops, extents, at, ordinal, steps };
    interpret_with(kernel, memory, &mut replay, None).unwrap();
    let (mut wavefronts, mut conflicts) = (0, 0);
    for bytes in replay.steps.values().flat_map(BTreeMap::values) {
        let words: BTreeSet<i64> = bytes.iter().flat_map(|b| [b / 4, b / 4 + 1]).collect();
        let most = (0..32).map(|bank| words.iter().filter(|w| **w % 32 == bank).count() as u64).max();
        wavefronts += most.unwrap_or(0);
        conflicts += most.unwrap_or(0) - 1;
    }
    (wavefronts, conflicts)
}

#[test]
fn a_watched_run_has_the_same_conflicts() {
    // a triangle, a joined index with floors, a sum, masked work-items, a group that is cut off
    let text = "
kernel mixed
arg x: f64[90] in
arg y: f64[5, 90] inout
temp t: f64[9, 11] local strides(16, 1)
for g in 0..5 {g.0}
  for n in 0..90 where n < 80 + 5*g {l.0}
    fill: t[floor_div(n, 11), n mod 11] = x[n] + 0.5
  for j in 0..7 {l.1}
    for i in 0..6 {l.0}
      use: y[g, 9*j + i] += sum(l in 0..i + 1: t[l, j]*t[j, i])
  for k in 0..8
    for c in 0..7 where c <= k {l.0}
      twice: y[g, c] += t[c, k]*t[k, 0]
";
    let kernel = parse(text).unwrap();
    let extents = [90, 7, 1];
    let mut memory =
        Memory::new().value("x", (0..90).map(f64::from).collect::<Vec<_>>()).value("y", vec![0.0; 450]);
    let expected = replayed(&kernel, extents, &mut memory);
    let traffic = bank_traffic(&kernel, &BTreeMap::new()).unwrap();
    assert!(traffic.iter().all(|t| t.exact), "{traffic:?}");
    let found = traffic.iter().fold((0, 0), |sum, t| (sum.0 + t.wavefronts, sum.1 + t.conflicts));
    assert_eq!(found, expected, "{traffic:#?}");
    assert!(found.1 > 0);
}

#[test]
fn what_depends_on_data_is_left_out_and_said_to_be() {
    let text = "
kernel gather
arg map: i32[32] in
arg y: f64[32] out
temp t: f64[32] local
for i in 0..32 {l.0}
  fill: t[i] = 1.0
for k in 0..32 {l.0}
  take: y[k] = t[map[k]]
";
    let traffic = bank_traffic(&parse(text).unwrap(), &BTreeMap::new()).unwrap();
    let exact: Vec<(&str, bool, u64)> = traffic.iter().map(|t| (&*t.insn, t.exact, t.wavefronts)).collect();
    assert_eq!(exact, [("fill", true, 2), ("take", false, 0)]);
}
