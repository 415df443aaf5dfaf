//! Which mappings of sixteen cells a group, with components, are tried.

use super::component_products::Quadrature;
use super::instruction::{CELLS, MatrixInstruction};
use super::matrix_groups::{MatrixGroups, Parts};
use kingpost_forms::program::CellProgram;
use kingpost_ir::Kernel;

/// Fewest degrees of freedom of a component for which matrix instructions pay in operators on
/// vectors: of 2-D P3, with 10, no action gained by them, of 2-D P4, with 15, the hyperelastic one
/// (results/h200/tuned.jsonl).
const MATRIX_GROUP_DOFS: i64 = 15;

/// Sub-groups of a multiprocessor for which registers are asked for: 168 for each work-item. 3-D P5
/// elasticity takes 3.05 ms with twelve and 3.98 ms with the eight that its 255 registers allow;
/// P4, with 152, loses by it (H200, 2026-11-23).
const RESIDENT_SUB_GROUPS: i64 = 12;

/// Most doubles of a result that a work-item holds where a sub-group has all components: 3-D P4
/// elasticity, with 60, takes 1.35 ms so and 1.69 with a sub-group a component (H200, 2026-11-26).
const HELD_RESULTS: i64 = 64;

/// Sub-groups that share points: one a scheduler of a multiprocessor, of which three would leave
/// one without work and six two with half of it. 3-D P6 hyperelasticity takes 52.7 ms so, and 69.6
/// with a sub-group a component, P5 21.0 and 27.9 (H200, 2026-11-29, printed kernels that were
/// rewritten).
const SHARING_SUB_GROUPS: u32 = 4;

/// Registers for this many groups of one sub-group are asked for, which 2-D P4 hyperelasticity gains
/// by: 1.99 ms instead of 2.15; with more degrees of freedom it spills (H200, 2026-11-26).
const RESIDENT_ALONE: u32 = 10;

impl MatrixGroups {
    /// A sub-group for each component, with the registers that the compiler takes and with those
    /// for [`RESIDENT_SUB_GROUPS`], one for all, and some that share points, each also with
    /// instructions of half the length where the last degrees of freedom are as few; nothing where
    /// there are too few of them.
    pub(super) fn that_pay(
        kernel: &Kernel,
        program: &CellProgram,
        (instruction, local_bytes): (MatrixInstruction, u64),
    ) -> Vec<Self> {
        let Ok(parts) = Parts::of(kernel, program) else { return Vec::new() };
        if parts.count < MATRIX_GROUP_DOFS {
            return Vec::new();
        }
        let shapes = program.results.iter().map(|r| (r.components, r.count));
        let Some((components, count)) = shapes.max() else { return Vec::new() };
        let groups = u32::try_from((RESIDENT_SUB_GROUPS / components.max(1)).max(1)).ok();
        let own = Self { instruction, ..Self::default() };
        let alone = Self { one_sub_group: true, ..own.clone() };
        let is_held = instruction.held(components * instruction.tiled(count)) <= HELD_RESULTS;
        // of the registers of wavefronts nothing was measured
        let has_limits = instruction.is_default();
        let mut shapes = vec![own.clone()];
        shapes.extend(has_limits.then(|| Self { resident_groups: groups, ..own.clone() }));
        shapes.extend(is_held.then(|| alone.clone()));
        let few = || Self { resident_groups: Some(RESIDENT_ALONE), ..alone };
        shapes.extend((is_held && has_limits).then(few));
        // two components leave no scheduler without work
        if components % 2 == 1 {
            shapes.push(Self { shared_points: Some(SHARING_SUB_GROUPS), ..own });
        }
        let has_short = instruction.is_default() && (1..=4).contains(&(count % 8));
        let lengths: &[bool] = if has_short { &[false, true] } else { &[false] };
        let of = |short: &bool, shape: &Self| Self { short_terms: *short, ..shape.clone() };
        let all = lengths.iter().flat_map(|short| shapes.iter().map(|shape| of(short, shape)));
        all.filter(|m| {
            m.least_of(&parts)
                .is_none_or(|[words, bytes]| words <= instruction.most_words() && bytes <= local_bytes)
        })
        .collect()
    }

    /// Words of a work-item, and bytes of local memory of a group, that this takes of wavefronts at the
    /// least.
    fn least_of(&self, parts: &Parts<'_>) -> Option<[u64; 2]> {
        if self.instruction.is_default() {
            return None;
        }
        let components = parts.components;
        let all = if self.one_sub_group || self.shared_points.is_some() { components } else { 1 };
        let arrays = |q: &Quadrature<'_>| {
            [q.evaluated.iter().map(|e| e.of_tables.len() as i64).sum(), q.of_tables.len() as i64]
        };
        let most = |f: &dyn Fn([i64; 2]) -> i64| parts.blocks.iter().map(|q| f(arrays(q))).fold(0, i64::max);
        let tile = self.instruction.tile();
        // values at points are in registers, factors there or in local memory
        let held = most(&|[values, factors]| values + if self.one_sub_group { factors } else { 0 });
        let results = self.rows(parts.count) / self.shared_points.map_or(1, i64::from);
        let words = 2 * all * self.instruction.held(results + tile * held);
        let exchanged = most(&|[values, factors]| match self.shared_points {
            Some(sub_groups) => factors * i64::from(sub_groups),
            None if self.one_sub_group => 0,
            None => values + factors,
        });
        let gathered = parts.gathers.len() as i64 * parts.count;
        let bytes = 8 * CELLS * components * (gathered + self.tiles() * tile * exchanged);
        Some([words.unsigned_abs(), bytes.unsigned_abs()])
    }
}
