//! How the kernels of a level are mapped onto a device.

use crate::ahead::{self, GROUPS, SOURCE};
use crate::instructions::{self, length};
use crate::kernels::{Blocks, Operation, Region, unscheduled};
use crate::line::Line;
use crate::mesh_plans;
use crate::parities::{HALF, decompose};
pub use crate::structure::Structure;
use crate::{Dimension, Element, MultigridError, Precision};
use purlin_codegen::{Options, Program, generate};
use purlin_ir::kernel::VarKind;
use purlin_ir::{AddressSpace, Affine, AxisTag, BinaryOp, Expr, InameId, Insn, Kernel, UpdateOp, Variable};
use purlin_primitives::ScheduleSteps;
use purlin_primitives::primitives::{
    AliasStorage, ContractArray, ExpandArray, FixArgument, LaunchHint, MakeAtomic, PadArray, PrefetchArray,
    SetAddressSpace, SplitIname, SplitSum, Tag,
};
use purlin_primitives::{Schedule, Selection, TransformError};
use purlin_runtime::Backend;

pub(crate) type Steps = Result<(), TransformError>;

/// Whether lines take each other's place. It saves half of the local memory; in three dimensions up
/// to degree 4, where that does not bind, the rows of equal length cost more: 7.8 instead of 9.3
/// billion nodes a second at degree 4 (H200, 2026-11-24).
const fn takes_places(element: Element) -> bool {
    match element.dimension {
        Dimension::Two => true,
        Dimension::Three => element.degree >= 5,
    }
}

/// The schedule of an operation. The steps that run patches and cells in parallel prove that those
/// of one colour touch no node of each other.
///
/// # Errors
/// A text that is no kernel, a step that is refused: bugs.
pub fn schedule(
    operation: Operation,
    element: Element,
    structure: Structure,
    precision: Precision,
) -> Result<Schedule, MultigridError> {
    schedule_on(Region::Mesh, operation, element, structure, precision)
}

/// The schedule of an operation on a region.
fn schedule_on(
    region: Region,
    operation: Operation,
    element: Element,
    structure: Structure,
    precision: Precision,
) -> Result<Schedule, MultigridError> {
    let parities = matches!(structure, Structure::Instructions { parities: true, .. });
    let modes = if parities { 2 * HALF } else { 2 * element.degree - 1 };
    let mut s = unscheduled(operation, element, precision, region, modes)?;
    if let Structure::Instructions { sub_groups, parities, ahead, .. } = structure {
        length(operation, element, precision, (sub_groups, parities))?;
        ahead.map_or(Ok(()), |patches| instructions::copy_ahead(&mut s, element, patches))?;
        if parities {
            decompose(&mut s, element)?;
        }
    }
    mapped(s, element.dimension, operation.shared(), |s, blocks| {
        match structure {
            Structure::Blocks => {}
            _ if matches!(operation, Operation::Copy | Operation::Load) => rows(s, blocks, 256)?,
            _ if operation == Operation::Point => rows(s, blocks, 32)?,
            Structure::Layers => layers(s, element.dimension, &[1, 0])?,
            Structure::Nodes => layers(s, element.dimension, &[2, 1, 0])?,
            Structure::Linear => linear(s, element.dimension)?,
            Structure::Lines { patches, resident_groups, separate_terms, atomic, ahead } => {
                if separate_terms {
                    split_sums(s)?;
                }
                fix_matrices(s, operation, element, (precision, AddressSpace::Constant))?;
                let ahead = ahead.filter(|_| operation == Operation::Smooth);
                lines(s, (operation, element, precision), blocks, patches, ahead)?;
                if atomic && operation.adds() {
                    s.apply(MakeAtomic { insns: Selection::Insn("correct".into()) })?;
                }
                reside(s, resident_groups)?;
            }
            Structure::Instructions { sub_groups, parities, resident_groups, ahead: _ } => {
                let length = length(operation, element, precision, (sub_groups, parities))?;
                if !parities {
                    fix_matrices(s, operation, element, (precision, AddressSpace::Global))?;
                }
                instructions::map(s, length, (i64::from(sub_groups), parities))?;
                reside(s, resident_groups)?;
            }
        }
        Ok(())
    })
}

/// Maps the blocks of a kernel of some dimension onto groups, and by `inside` what is inside of them, given the
/// loops over blocks. Sums are realised before, and an update of nodes that blocks share is atomic.
///
/// # Errors
/// A step that is refused.
pub fn mapped(
    mut s: Schedule,
    dimension: Dimension,
    shared: Option<&str>,
    inside: impl FnOnce(&mut Schedule, &[String]) -> Result<(), MultigridError>,
) -> Result<Schedule, MultigridError> {
    let around = blocks(s.kernel(), dimension);
    for sum in sums(s.kernel()) {
        s.realise(&sum, format!("r_{sum}"))?;
    }
    if let Some(update) = shared {
        s.apply(MakeAtomic { insns: Selection::Insn(update.into()) })?;
    }
    inside(&mut s, &around)?;
    // where a group takes patches one after the other, the groups are around them
    let groups = blocks(s.kernel(), dimension);
    for (axis, block) in groups.iter().rev().enumerate() {
        s.tag(block, AxisTag::Group(axis as u8))?;
    }
    Ok(s)
}

/// The code of an operation on a slab of the mesh, with the fastest structure that is known.
///
/// # Errors
/// As [`program`], and an operation that slabs do not have.
pub fn program_on_slab(
    operation: Operation,
    element: Element,
    precision: Precision,
    (backend, arch): (Backend, &str),
) -> Result<Program, MultigridError> {
    let structure = Structure::of((backend, arch), operation, element, precision);
    let schedule = schedule_on(Region::Slab, operation, element, structure, precision)?;
    Ok(generate(schedule.kernel(), backend.target(), &Options::default())?)
}

/// The code of an operation.
///
/// # Errors
/// As [`schedule`], and code that cannot be generated.
pub fn program(
    operation: Operation,
    element: Element,
    structure: Structure,
    precision: Precision,
    backend: Backend,
) -> Result<Program, MultigridError> {
    let schedule = schedule(operation, element, structure, precision)?;
    Ok(generate(schedule.kernel(), backend.target(), &Options::default())?)
}

/// Leaves registers for a given number of groups.
fn reside(s: &mut Schedule, groups: Option<u32>) -> Steps {
    groups.map_or(Ok(()), |groups| s.apply(LaunchHint::resident_groups(groups)).map(drop))
}

/// An update for each term of what is added.
fn split_sums(s: &mut Schedule) -> Steps {
    let adds_a_sum =
        |i: &&Insn| i.update_op() == Some(UpdateOp::Add) && matches!(i.rhs, Expr::Binary(BinaryOp::Add, ..));
    let found: Vec<String> = s.kernel().insns.values().filter(adds_a_sum).map(|i| i.name.clone()).collect();
    found.iter().try_for_each(|insn| s.apply(SplitSum::new(insn)).map(|_| ()))
}

/// The loops over sums, in the order in which they were made.
fn sums(kernel: &Kernel) -> Vec<String> {
    let schedule = kernel.schedule();
    let is_loop = |iname: &InameId| schedule.iter().any(|(_, loops)| loops.contains(iname));
    let sums = kernel.inames.ids().filter(|iname| !is_loop(iname));
    sums.map(|iname| kernel.inames[iname].name.clone()).collect()
}

/// The loops over patches or cells, outer first.
fn blocks(kernel: &Kernel, dimension: Dimension) -> Vec<String> {
    let schedule = kernel.schedule();
    let around = schedule.first().map_or(&[][..], |(_, loops)| loops);
    around.iter().take(dimension.axes()).map(|iname| kernel.inames[*iname].name.clone()).collect()
}

/// The loops over planes, rows and columns of nodes, those of the same depth in blocks together, each in
/// the order in which they were made.
fn nodes(kernel: &Kernel, dimension: Dimension) -> Vec<Vec<String>> {
    let axes = dimension.axes();
    let mut found = vec![Vec::new(); axes];
    for (_, loops) in kernel.schedule() {
        for (depth, iname) in loops.iter().skip(axes).take(axes).enumerate() {
            if !found[depth].contains(iname) {
                found[depth].push(*iname);
            }
        }
    }
    for loops in &mut found {
        loops.sort_unstable();
    }
    found.iter().map(|loops| loops.iter().map(|l| kernel.inames[*l].name.clone()).collect()).collect()
}

/// All arrays of a patch, which have at least a given number of axes, to local memory; their names.
///
/// # Errors
/// A step that is refused.
pub fn share(s: &mut Schedule, axes: usize) -> Result<Vec<String>, TransformError> {
    let is_array = |v: &&Variable| {
        v.kind == VarKind::Temporary && v.shape.len() >= axes && v.space == AddressSpace::Private
    };
    let arrays: Vec<String> = s.kernel().vars.values().filter(is_array).map(|v| v.name.clone()).collect();
    for array in &arrays {
        s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
    }
    Ok(arrays)
}

/// Pieces of rows of the mesh, a node or patch a work-item.
fn rows(s: &mut Schedule, blocks: &[String], length: i64) -> Steps {
    let Some(row) = blocks.last() else { return Ok(()) };
    let [group, inner] = [format!("{row}_group"), format!("{row}_in")];
    let (outer, inside) = (Some(group.clone()), Some(inner.clone()));
    s.apply(SplitIname { outer, inner: inside, ..SplitIname::new(row, length) })?;
    s.tag(inner, AxisTag::Local(0))?;
    s.rename_loop(group, row.as_str()).map(|_| ())
}

/// The innermost loops over nodes along these axes of a group: rows of a patch along `l.1` and columns
/// along `l.0`, perhaps planes along `l.2`.
fn layers(s: &mut Schedule, dimension: Dimension, axes: &[u8]) -> Steps {
    share(s, 1)?;
    let nodes = nodes(s.kernel(), dimension);
    for (along, axis) in nodes.into_iter().rev().zip(axes.iter().rev()).rev() {
        if !along.is_empty() {
            s.apply(Tag::all(along, AxisTag::Local(*axis)))?;
        }
    }
    Ok(())
}

/// Nodes of a layer along `l.0`, one row after the other.
fn linear(s: &mut Schedule, dimension: Dimension) -> Steps {
    share(s, 2)?;
    let mut joined = Vec::new();
    if let [.., rows, columns] = &nodes(s.kernel(), dimension)[..] {
        for (row, column) in rows.iter().zip(columns) {
            joined.push(String::from(&s.join(row.as_str(), column.as_str())?));
        }
    }
    s.apply(Tag::all(joined, AxisTag::Local(0))).map(|_| ())
}

/// The matrices of the degree as tables in a memory.
fn fix_matrices(
    s: &mut Schedule,
    operation: Operation,
    element: Element,
    (precision, space): (Precision, AddressSpace),
) -> Result<(), MultigridError> {
    let line = Line::new(element.degree)?;
    let (mass, stiffness) = match operation.blocks() {
        Blocks::Patches | Blocks::Points => (&line.mass, &line.stiffness),
        Blocks::Cells => (&line.cell_mass, &line.cell_stiffness),
    };
    let points = line.points();
    let known = [
        ("M", &mass.entries),
        ("A", &stiffness.entries),
        ("S", &line.eigenvectors.entries),
        ("lambda", &line.eigenvalues),
        ("P", &line.prolongation.entries),
        ("values", &points.values.entries),
        ("slopes", &points.slopes.entries),
        ("linear", &points.linear.entries),
        ("weights", &points.weights),
    ];
    let rounded = |x: &f64| match precision {
        Precision::Double => *x,
        Precision::Single => f64::from(*x as f32),
    };
    for (name, values) in known {
        if s.kernel().var(name).is_some() {
            s.apply(FixArgument::real(name, values.iter().map(rounded)))?;
            if space != AddressSpace::Global {
                s.apply(SetAddressSpace::new(name, space))?;
            }
        }
    }
    Ok(())
}

/// A contraction: the loop over its results, the loops over lines from outside in, and what a line
/// reads.
pub(crate) type Contraction = (&'static str, &'static [&'static str], &'static [&'static str]);

const SMOOTH_2D: [Contraction; 6] = [
    ("i_0", &["j_0"], &["u"]),
    ("j_1", &["i_1"], &["mu", "au"]),
    ("j_2", &["i_2"], &[]),
    ("i_3", &["j_3"], &["s0"]),
    ("i_4", &["j_4"], &[]),
    ("j_5", &["i_5"], &["s2"]),
];

const SMOOTH_3D: [Contraction; 9] = [
    ("i_0", &["k_0", "j_0"], &["u"]),
    ("j_1", &["k_1", "i_1"], &["mu", "au"]),
    ("k_2", &["j_2", "i_2"], &["mm", "ma"]),
    ("k_3", &["j_3", "i_3"], &[]),
    ("j_4", &["k_4", "i_4"], &["s0"]),
    ("i_5", &["k_5", "j_5"], &["s1"]),
    ("i_6", &["k_6", "j_6"], &[]),
    ("j_7", &["k_7", "i_7"], &["s3"]),
    ("k_8", &["j_8", "i_8"], &["s4"]),
];

/// Of the solution alone, whose first contraction reads the residual from local memory.
const SOLVE_2D: [Contraction; 4] = [
    ("j_2", &["i_2"], &["r"]),
    ("i_3", &["j_3"], &["s0"]),
    ("i_4", &["j_4"], &[]),
    ("j_5", &["i_5"], &["s2"]),
];

const SOLVE_3D: [Contraction; 6] = [
    ("k_3", &["j_3", "i_3"], &["r"]),
    ("j_4", &["k_4", "i_4"], &["s0"]),
    ("i_5", &["k_5", "j_5"], &["s1"]),
    ("i_6", &["k_6", "j_6"], &[]),
    ("j_7", &["k_7", "i_7"], &["s3"]),
    ("k_8", &["j_8", "i_8"], &["s4"]),
];

/// Two nests over the same lines, and the array between them with the first of its axes along lanes.
pub(crate) type Fused = (&'static [&'static str], &'static [&'static str], (&'static str, u32));

/// What a kernel has of this structure.
pub(crate) struct Plan {
    pub(crate) contractions: &'static [Contraction],
    /// Loops that copy the nodes to local memory, from outside in.
    pub(crate) copies: &'static [&'static str],
    /// Neighbouring nests over the same lines, and the array between them that becomes a line, with
    /// the first of its axes that go.
    pub(crate) fused: &'static [Fused],
    /// Arrays whose lives take turns in a buffer.
    pub(crate) turns: &'static [&'static [&'static str]],
    /// Arrays that take turns in a buffer line by line, each line in the place of the one it comes
    /// from.
    pub(crate) places: &'static [&'static [&'static str]],
}

const fn plan(operation: Operation, dimension: Dimension) -> Plan {
    match (operation, dimension) {
        (Operation::MeshResidual | Operation::MeshLoad, _) => mesh_plans::plan(operation, dimension),
        (Operation::PatchSolve | Operation::MeshSolve, Dimension::Two) => Plan {
            contractions: &SOLVE_2D,
            copies: &["j_1", "i_1"],
            fused: &[(&["j_3"], &["j_4"], ("s1", 0))],
            turns: &[&["r", "s2"]],
            places: &[&["r", "s0", "s2"]],
        },
        (Operation::PatchSolve | Operation::MeshSolve, Dimension::Three) => Plan {
            contractions: &SOLVE_3D,
            copies: &["k_2", "j_2", "i_2"],
            fused: &[(&["k_5", "j_5"], &["k_6", "j_6"], ("s2", 0))],
            turns: &[&["r", "s1", "s4"], &["s0", "s3"]],
            places: &[&["r", "s0", "s1", "s3", "s4"]],
        },
        (Operation::Smooth, Dimension::Two) => Plan {
            contractions: &SMOOTH_2D,
            copies: &["j_u", "i_u"],
            fused: &[(&["i_1"], &["i_2"], ("r", 1)), (&["j_3"], &["j_4"], ("s1", 0))],
            turns: &[&["u", "s0"], &["mu", "s2"]],
            places: &[&["u", "mu", "s0", "s2"]],
        },
        (Operation::Smooth, Dimension::Three) => Plan {
            contractions: &SMOOTH_3D,
            copies: &["k_u", "j_u", "i_u"],
            fused: &[
                (&["j_2", "i_2"], &["j_3", "i_3"], ("r", 1)),
                (&["k_5", "j_5"], &["k_6", "j_6"], ("s2", 0)),
            ],
            turns: &[&["u", "mm", "s1", "s4"], &["mu", "s0", "s3"]],
            places: &[&["u", "mu", "mm", "s0", "s1", "s3", "s4"], &["au", "ma"]],
        },
        // of a residual
        (_, Dimension::Two) => Plan {
            contractions: SMOOTH_2D.split_at(2).0,
            copies: &["j_u", "i_u"],
            fused: &[],
            turns: &[],
            places: &[&["u", "mu"]],
        },
        (_, Dimension::Three) => Plan {
            contractions: SMOOTH_3D.split_at(3).0,
            copies: &["k_u", "j_u", "i_u"],
            fused: &[],
            turns: &[&["u", "mm"]],
            places: &[&["u", "mu", "mm"], &["au", "ma"]],
        },
    }
}

/// Nodes along an axis of a patch or cell, of a patch that is solved for inner ones.
const fn side(operation: Operation, element: Element) -> i64 {
    let k = element.degree as i64;
    match operation.blocks() {
        Blocks::Cells => k + 1,
        _ if matches!(operation, Operation::Smooth | Operation::PatchResidual) => 2 * k + 1,
        Blocks::Patches | Blocks::Points => 2 * k - 1,
    }
}

/// Lines of nodes in registers.
fn lines(
    s: &mut Schedule,
    (operation, element, precision): (Operation, Element, Precision),
    blocks: &[String],
    patches: u32,
    ahead: Option<u32>,
) -> Steps {
    let dimension = element.dimension;
    let plan = plan(operation, dimension);
    for (along, lanes, _) in plan.contractions {
        s.reorder(lanes.iter().copied().chain([*along]))?;
    }
    for (first, second, between) in plan.fused {
        first.iter().zip(*second).try_for_each(|(a, b)| s.fuse(*a, *b).map(|_| ()))?;
        let (array, axis) = *between;
        first.iter().try_for_each(|_| s.apply(ContractArray::new(array, axis)).map(|_| ()))?;
    }
    for (along, lanes, read) in plan.contractions {
        let Some(line) = lanes.last() else { continue };
        for array in *read {
            let name = format!("line_{array}_{along}");
            s.prefetch_as(PrefetchArray::new(*array, *line, AddressSpace::Private), &name)?;
        }
    }
    let copies_source = ahead.is_some() && element.degree > 1; // else one number
    if copies_source {
        ahead::copy_source(s, dimension, AddressSpace::Private)?;
    }
    let local = share(s, 2)?; // lines have one axis
    let axes = plan.copies.len() as u8;
    if let Some(block) = blocks.last().filter(|_| patches > 1) {
        let [group, inner] = [format!("{block}_group"), format!("{block}_in")];
        let (outer, inside) = (Some(group.clone()), Some(inner.clone()));
        s.apply(SplitIname { outer, inner: inside, ..SplitIname::new(block, i64::from(patches)) })?;
        for array in &local {
            s.apply(ExpandArray::new(array, [inner.clone()]))?;
        }
        let mut parts = vec![inner.clone()];
        if ahead.is_some() {
            parts.extend(ahead::part(s, &inner, dimension, copies_source)?);
        }
        s.apply(Tag::all(parts, AxisTag::Local(axes - 1)))?;
        s.rename_loop(group, block.as_str())?;
    }
    let in_place = takes_places(element);
    // copies that are under way take no turns
    let is_copied = |array: &str| ahead.is_some() && ["u", SOURCE].contains(&array);
    if in_place {
        for array in local.iter().filter(|array| !is_copied(array)) {
            pad_as_a_patch(s, array, plan.copies.len(), side(operation, element))?;
        }
    }
    for turn in if in_place { plan.places } else { plan.turns } {
        let turn: Vec<&str> = turn.iter().copied().filter(|array| !is_copied(array)).collect();
        if let [first, _, ..] = turn[..] {
            s.apply(AliasStorage::new(turn.iter().copied(), format!("in_turn_{first}")))?;
        }
    }
    let Some(in_turn) = ahead else { return place(s, &plan, blocks, &[]) };
    ahead::take_in_turn(s, in_turn)?;
    place(s, &plan, blocks, &ahead::SOURCE_LOOPS)?;
    let arrays: &[_] = if copies_source { &["u", SOURCE] } else { &["u"] };
    ahead::pipeline(s, arrays, precision)
}

/// Gives an array the strides of one of a whole patch or cell, so that a line has its place in every
/// array that takes its turn in a buffer.
///
/// # Errors
/// A step that is refused.
pub fn pad_as_a_patch(s: &mut Schedule, array: &str, axes: usize, side: i64) -> Result<(), TransformError> {
    let Some(var) = s.kernel().var(array) else { return Ok(()) };
    let extents: Vec<i64> = s.kernel().vars[var].shape.iter().filter_map(Affine::as_constant).collect();
    let first = extents.len() - axes; // after the patch of the group, if there are several
    // all axes but the outermost: that one too where patches lie one after the other
    let rows = extents.iter().enumerate().skip(if first == 0 { 1 } else { first });
    for (axis, extent) in rows.filter(|(_, extent)| **extent < side) {
        s.apply(PadArray::new(array, axis as u32, side - extent))?;
    }
    Ok(())
}

/// Lines on the axes of a group, as the loops of another copy, everything inside them written out.
fn place(s: &mut Schedule, plan: &Plan, blocks: &[String], more: &'static [&'static str]) -> Steps {
    let lanes = plan.contractions.iter().map(|(_, lanes, _)| *lanes);
    let copies = &plan.copies[1..];
    for depth in 0..copies.len() {
        let at = |nest: &[&'static str]| nest.iter().rev().nth(depth).copied();
        let along = lanes.clone().chain([copies, more]).filter_map(at);
        let along: Vec<&str> = along.filter(|name| s.kernel().iname(name).is_some()).collect();
        s.apply(Tag::all(along, AxisTag::Local(depth as u8)))?;
    }
    let rest: Vec<String> =
        s.kernel().inames.values().filter(|i| i.tag == AxisTag::Sequential).map(|i| i.name.clone()).collect();
    let inside = rest.into_iter().filter(|name| name != GROUPS && !blocks.contains(name));
    s.apply(Tag::all(inside, AxisTag::Unrolled)).map(|_| ())
}
