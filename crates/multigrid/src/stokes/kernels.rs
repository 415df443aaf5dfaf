//! The kernels of Stokes' equations as texts, and how they are mapped onto a device.

use super::StokesLine;
use super::patch::PatchLine;
use crate::kernels::of_text;
use crate::lines::{in_patches, place_lanes, read_line, share};
use crate::schedules::{mapped, rows};
use crate::{Dimension, Element, MultigridError, Precision};
use kingpost_codegen::{Options, Program, generate};
use kingpost_ir::{AddressSpace, AxisTag};
use kingpost_primitives::primitives::{
    AliasStorage, DistributeLoop, ExpandArray, FixArgument, LaunchHint, MakeAtomic, SetAddressSpace,
    SkipZeroTerms, SplitIname, Tag,
};
use kingpost_primitives::{Schedule, ScheduleSteps, Selection};
use kingpost_runtime::Backend;

/// What a kernel of a level does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StokesOperation {
    /// `r = beta b - alpha A x`.
    Residual,
    /// `x += A^-1 r` on the patches of a colour.
    Solve,
    /// `y = x + A^-1 (b - A x)` on the patches of a colour, with the residual inside each.
    Smooth,
    /// `y = x` on the cells that are in no patch of a colour.
    Keep,
    /// `x += P xc`, of a level with half as many cells a side.
    Prolongate,
    /// `rc += P^T r`.
    Restrict,
}

/// How many cells or patches a work-group has on a card.
const WORK_ITEMS: usize = 128;

/// A nest: the axis of the loop that each line goes along, and what a line reads into registers.
type Nest = (usize, &'static [&'static str]);

const SOLVE_2D: [Nest; 15] = [
    (1, &[]),
    (1, &[]),
    (1, &[]),
    (0, &["a0"]),
    (0, &["a1"]),
    (0, &["a2", "v0"]),
    (1, &[]),
    (0, &["q"]),
    (1, &["q"]),
    (0, &["w0"]),
    (0, &["w1"]),
    (0, &["q"]),
    (1, &["f0"]),
    (1, &["f1"]),
    (1, &["f2"]),
];

const SOLVE_3D: [Nest; 28] = [
    (2, &[]),
    (2, &[]),
    (2, &[]),
    (2, &[]),
    (1, &["a0"]),
    (1, &["a1"]),
    (1, &["a2"]),
    (1, &["a3"]),
    (0, &["b0"]),
    (0, &["b1"]),
    (0, &["b2"]),
    (0, &["b3", "v0"]),
    (2, &[]),
    (0, &["q"]),
    (1, &["q"]),
    (2, &["q"]),
    (0, &["w0"]),
    (0, &["w1"]),
    (0, &["w2"]),
    (0, &["q"]),
    (1, &["f0"]),
    (1, &["f1"]),
    (1, &["f2"]),
    (1, &["f3"]),
    (2, &["g0"]),
    (2, &["g1"]),
    (2, &["g2"]),
    (2, &["g3"]),
];

/// Residuals of a patch before its solution: each component along its own axis, then across the
/// others. They have the numbers after those of the solution.
const RESIDUALS_2D: [Nest; 4] = [(0, &[]), (1, &["u0", "u0_1"]), (1, &[]), (0, &["u1", "u1_0"])];

const RESIDUALS_3D: [Nest; 9] = [
    (0, &[]),
    (1, &["u0", "u0_1"]),
    (2, &["u0", "u0_2"]),
    (1, &[]),
    (0, &["u1", "u1_0"]),
    (2, &["u1", "u1_2"]),
    (2, &[]),
    (0, &["u2", "u2_0"]),
    (1, &["u2", "u2_1"]),
];

/// Arrays that take turns in local memory.
const TURNS_2D: [&[&str]; 6] =
    [&["a0", "w0"], &["v0", "f0"], &["a1", "w1"], &["v1", "f1"], &["a2", "q"], &["s", "f2"]];
const TURNS_3D: [&[&str]; 8] = [
    &["a0", "v0", "f0"],
    &["b0", "w0", "g0"],
    &["a1", "v1", "f1"],
    &["b1", "w1", "g1"],
    &["a2", "v2", "f2"],
    &["b2", "w2", "g2"],
    &["a3", "s", "f3"],
    &["b3", "q", "g3"],
];

/// The same with residuals before.
const SMOOTH_TURNS_2D: [&[&str]; 6] = [
    &["u0", "u1", "a0", "w0"],
    &["r0", "v0", "f0"],
    &["u0_1", "u1_0", "a1", "w1"],
    &["r1", "v1", "f1"],
    &["a2", "q"],
    &["r2", "s", "f2"],
];
const SMOOTH_TURNS_3D: [&[&str]; 8] = [
    &["u0", "u1", "u2", "a0", "v0", "f0"],
    &["r0", "b0", "w0", "g0"],
    &["u0_1", "u1_0", "u2_0", "a1", "v1", "f1"],
    &["r1", "b1", "w1", "g1"],
    &["u0_2", "u1_2", "u2_1", "a2", "v2", "f2"],
    &["r2", "b2", "w2", "g2"],
    &["a3", "s", "f3"],
    &["r3", "b3", "q", "g3"],
];

impl StokesOperation {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Residual, Self::Solve, Self::Smooth, Self::Keep, Self::Prolongate, Self::Restrict];

    const fn text(self, dimension: Dimension) -> &'static str {
        match (self, dimension) {
            (Self::Residual, Dimension::Two) => include_str!("../../kernels/stokes_residual_2d.kingpost"),
            (Self::Residual, Dimension::Three) => include_str!("../../kernels/stokes_residual_3d.kingpost"),
            (Self::Solve, Dimension::Two) => include_str!("../../kernels/stokes_solve_2d.kingpost"),
            (Self::Solve, Dimension::Three) => include_str!("../../kernels/stokes_solve_3d.kingpost"),
            (Self::Smooth, Dimension::Two) => include_str!("../../kernels/stokes_smooth_2d.kingpost"),
            (Self::Smooth, Dimension::Three) => include_str!("../../kernels/stokes_smooth_3d.kingpost"),
            (Self::Keep, Dimension::Two) => include_str!("../../kernels/stokes_keep_2d.kingpost"),
            (Self::Keep, Dimension::Three) => include_str!("../../kernels/stokes_keep_3d.kingpost"),
            (Self::Prolongate, Dimension::Two) => include_str!("../../kernels/stokes_prolongate_2d.kingpost"),
            (Self::Prolongate, Dimension::Three) => {
                include_str!("../../kernels/stokes_prolongate_3d.kingpost")
            }
            (Self::Restrict, Dimension::Two) => include_str!("../../kernels/stokes_restrict_2d.kingpost"),
            (Self::Restrict, Dimension::Three) => include_str!("../../kernels/stokes_restrict_3d.kingpost"),
        }
    }

    /// Arrays that take turns in local memory.
    const fn turns(self, dimension: Dimension) -> &'static [&'static [&'static str]] {
        match (self, dimension) {
            (Self::Solve, Dimension::Two) => &TURNS_2D,
            (Self::Solve, Dimension::Three) => &TURNS_3D,
            (Self::Smooth, Dimension::Two) => &SMOOTH_TURNS_2D,
            (Self::Smooth, Dimension::Three) => &SMOOTH_TURNS_3D,
            (Self::Residual | Self::Keep | Self::Prolongate | Self::Restrict, _) => &[],
        }
    }

    /// From which nest on the loops over lines are around those along them in the text already.
    fn ordered_from(self, dimension: Dimension) -> usize {
        match self {
            Self::Residual => 0,
            Self::Smooth => Self::Solve.nests(dimension).len(),
            Self::Solve | Self::Keep | Self::Prolongate | Self::Restrict => usize::MAX,
        }
    }

    /// The nests in the order of the text: their number ends the names of their loops.
    fn nests(self, dimension: Dimension) -> Vec<Nest> {
        let axes = dimension.axes();
        let lines = |axis: usize, count: usize| vec![(axis, &[][..]); count];
        match (self, dimension) {
            // each component along its own axis, then the divergence
            (Self::Residual, _) => (0..axes).chain([0]).map(|axis| (axis, &[][..])).collect(),
            (Self::Solve, Dimension::Two) => SOLVE_2D.to_vec(),
            (Self::Solve, Dimension::Three) => SOLVE_3D.to_vec(),
            (Self::Smooth, Dimension::Two) => after_residuals(&SOLVE_2D, &RESIDUALS_2D),
            (Self::Smooth, Dimension::Three) => after_residuals(&SOLVE_3D, &RESIDUALS_3D),
            (Self::Keep, _) => Vec::new(),
            (Self::Prolongate, _) => lines(axes - 1, axes * (axes + 1)),
            // values that are added under a condition keep the order of the text
            (Self::Restrict, _) => lines(0, axes * (axes + 1)),
        }
    }
}

/// The nests of a solution whose first ones read residuals of local memory, and then those of
/// residuals.
fn after_residuals(solve: &[Nest], residuals: &[Nest]) -> Vec<Nest> {
    const READ: [&[&str]; 4] = [&["r0"], &["r1"], &["r2"], &["r3"]];
    let first = solve.iter().take_while(|(_, read)| read.is_empty()).zip(READ);
    let first: Vec<Nest> = first.map(|((axis, _), read)| (*axis, read)).collect();
    let rest = solve[first.len()..].iter().copied();
    first.iter().copied().chain(rest).chain(residuals.iter().copied()).collect()
}

/// Elements with as many nodes along a line as there are unknowns along the axis of a component.
pub(super) const fn continuous(element: Element) -> Element {
    Element { dimension: element.dimension, degree: element.degree + 1 }
}

/// The schedule of an operation: every loop in order where each group has one work-item, as on
/// processors, or a work-item for each line of nodes. The steps that run patches in parallel prove
/// that those of one colour touch no unknown of each other.
///
/// # Errors
/// A text that is no kernel, a step that is refused: bugs.
pub fn schedule(
    operation: StokesOperation,
    element: Element,
    precision: Precision,
    backend: Backend,
) -> Result<Schedule, MultigridError> {
    let (dimension, continuous) = (element.dimension, continuous(element));
    let s = of_text(operation.text(dimension), continuous, precision)?;
    mapped(s, dimension, None, |s, blocks| {
        if operation == StokesOperation::Restrict {
            for component in 0..dimension.axes() {
                s.apply(MakeAtomic { insns: Selection::Insn(format!("add{component}")) })?;
            }
        }
        match backend {
            Backend::C => Ok(()),
            Backend::OpenCl | Backend::Cuda if operation == StokesOperation::Keep => {
                Ok(rows(s, &["i".to_owned()], WORK_ITEMS as i64)?)
            }
            Backend::OpenCl | Backend::Cuda => lines(s, (operation, element, precision), blocks),
        }
    })
}

/// The code of an operation.
///
/// # Errors
/// As [`schedule`], and code that cannot be generated.
pub fn program(
    operation: StokesOperation,
    element: Element,
    precision: Precision,
    backend: Backend,
) -> Result<Program, MultigridError> {
    let schedule = schedule(operation, element, precision, backend)?;
    Ok(generate(schedule.kernel(), backend.target(), &Options::default())?)
}

/// A work-item for each line, everything along it written out.
fn lines(
    s: &mut Schedule,
    (operation, element, precision): (StokesOperation, Element, Precision),
    blocks: &[String],
) -> Result<(), MultigridError> {
    let axes = element.dimension.axes();
    fix_matrices(s, (operation, element, precision))?;
    let ordered = operation.ordered_from(element.dimension);
    let mut lanes = vec![Vec::new(); axes - 1];
    for (at, (axis, read)) in operation.nests(element.dimension).into_iter().enumerate() {
        let name = |axis: usize| format!("{}_{at}", ["i", "j", "k"][axis]);
        let others: Vec<String> = (0..axes).rev().filter(|other| *other != axis).map(name).collect();
        if at < ordered {
            s.reorder(others.iter().cloned().chain([name(axis)]))?;
        }
        let line = name(if axis == 0 { 1 } else { 0 }); // the innermost of the others
        read.iter().try_for_each(|array| read_line(s, array, &line, &name(axis)))?;
        lanes.iter_mut().zip(others.into_iter().rev()).for_each(|(lanes, lane)| lanes.push(lane));
    }
    if operation == StokesOperation::Smooth {
        // after the reads of lines, which are as a whole where all terms are
        skip_zeros(s, element)?;
    }
    let local = share(s, 2)?;
    let side = match operation {
        StokesOperation::Residual => element.degree + 1,
        StokesOperation::Solve
        | StokesOperation::Smooth
        | StokesOperation::Keep
        | StokesOperation::Prolongate
        | StokesOperation::Restrict => 2 * element.degree + 2,
    };
    let of_block = side.pow(axes as u32 - 1);
    if let Some(block) = blocks.last().filter(|_| 2 * of_block <= WORK_ITEMS) {
        let patches = WORK_ITEMS / of_block;
        let [group, inner] = in_patches(s, block, patches as u32, &local)?;
        let is_solution = matches!(operation, StokesOperation::Solve | StokesOperation::Smooth);
        let items = match is_solution && axes == 3 && side.is_multiple_of(patches) {
            true => share_complement(s, &inner, (side / patches) as i64)?,
            false => vec![inner],
        };
        s.apply(Tag::all(items, AxisTag::Local(axes as u8 - 1)))?;
        s.rename_loop(group, block.as_str())?;
    }
    for turn in operation.turns(element.dimension) {
        s.apply(AliasStorage::new(turn.iter().copied(), format!("in_turn_{}", turn[0])))?;
    }
    place_lanes(s, &lanes, blocks)?;
    if let Some(groups) = resident_groups(operation, element, precision) {
        s.apply(LaunchHint::resident_groups(groups))?;
    }
    Ok(())
}

/// Lets the work-items of a group share the entries of the Schur complement, which has k^3 of them for each of
/// its results: a work-item computes `planes` planes for all patches instead of all planes for one, and reads an
/// entry once. Returns the loops whose iterations are the work-items along the axis of patches.
///
/// On an H200 the patches of a step with RT_3 in `f64` take 2.31 ms for 2.71 (2026-11-30).
fn share_complement(s: &mut Schedule, patch: &str, planes: i64) -> Result<Vec<String>, MultigridError> {
    let [own, after] = ["patch_of_planes", "patch_after"];
    s.apply(DistributeLoop {
        names: vec![own.into(), after.into()],
        ..DistributeLoop::new(patch, ["complement", "gradient0"])
    })?;
    s.reorder(["j_12", "i_12", "k_12", own])?;
    let [part, plane] = ["part_12", "plane_12"];
    let names = (Some(part.into()), Some(plane.into()));
    s.apply(SplitIname { outer: names.0, inner: names.1, ..SplitIname::new("k_12", planes) })?;
    s.apply(ExpandArray::new("r_l_12k", [plane, own]))?;
    let parts = |of: &str| [format!("{of}_sums"), format!("{of}_store")];
    let (patches, all) = (parts(own), parts(plane));
    s.apply(DistributeLoop { names: patches.to_vec(), ..DistributeLoop::new(own, ["l_12k", "complement"]) })?;
    s.apply(DistributeLoop { names: all.to_vec(), ..DistributeLoop::new(plane, patches.clone()) })?;
    // the loop over patches around the last one of terms: one condition for all planes of a patch, and a few terms
    s.reorder(["l_12k", "l_12j", &patches[0], "l_12i", &all[0]])?;
    Ok([patch, part, after].map(str::to_owned).to_vec())
}

/// How many groups should have registers in a compute unit, where fewer would have otherwise.
const fn resident_groups(operation: StokesOperation, element: Element, precision: Precision) -> Option<u32> {
    let is_double = matches!(
        (operation, element.dimension, precision),
        (StokesOperation::Smooth, Dimension::Three, Precision::Double)
    );
    match element.degree {
        // an H200 took 5.54 ms for 5.64 with RT_2, 2.97 for 3.71 with RT_3 (2026-11-30)
        2 if is_double => Some(4),
        3 if is_double => Some(3),
        _ => None,
    }
}

/// Matrices whose entries all work-items read together, as tables of constant memory.
fn fix_matrices(
    s: &mut Schedule,
    (operation, element, precision): (StokesOperation, Element, Precision),
) -> Result<(), MultigridError> {
    let line = StokesLine::new(element.degree)?;
    let patch = PatchLine::new(&line);
    let mut known = vec![("T", &line.normal_modes), ("S", &line.modes)];
    if operation == StokesOperation::Smooth {
        known.extend(patch.by_name());
    } else {
        known.extend([("A", &line.stiffness), ("M", &line.mass), ("G", &line.gradient)]);
    }
    for (name, matrix) in known {
        if s.kernel().var(name).is_none() {
            continue;
        }
        let rounded = |x: &f64| match precision {
            Precision::Double => *x,
            Precision::Single => f64::from(*x as f32),
        };
        s.apply(FixArgument::real(name, matrix.entries.iter().map(rounded)))?;
        s.apply(SetAddressSpace::new(name, AddressSpace::Constant))?;
    }
    Ok(())
}

/// Leaves out the terms of residuals that their sparse matrices make zero.
fn skip_zeros(s: &mut Schedule, element: Element) -> Result<(), MultigridError> {
    let patch = PatchLine::new(&StokesLine::new(element.degree)?);
    for (name, matrix) in patch.by_name() {
        if matrix.entries.contains(&0.0) {
            s.apply(SkipZeroTerms { insns: Selection::Reads(name.into()) })?;
        }
    }
    Ok(())
}
