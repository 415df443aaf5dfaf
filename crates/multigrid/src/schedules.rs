//! How the kernels of a level are mapped onto a device.

use crate::blended;
use crate::instructions::{self, length};
use crate::kernels::{Blocks, Operation, Region, unscheduled};
use crate::line::{Line, inverses};
use crate::lines::lines;
pub use crate::lines::{pad_as_a_patch, share};
use crate::parities::{HALF, decompose};
use crate::planes;
pub use crate::structure::Structure;
use crate::{Dimension, Element, MultigridError, Precision, Steps};
use kingpost_codegen::{Options, Program, generate};
use kingpost_ir::{AddressSpace, AxisTag, BinaryOp, Expr, InameId, Insn, Kernel, UpdateOp};
use kingpost_primitives::primitives::{
    FixArgument, LaunchHint, MakeAtomic, SetAddressSpace, SplitIname, SplitSum, Tag,
};
use kingpost_primitives::{Schedule, ScheduleSteps, Selection};
use kingpost_runtime::Backend;

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
    if let Structure::Planes { resident_groups } = structure {
        let mut s = planes::schedule(operation, element, precision)?;
        reside(&mut s, resident_groups)?;
        return Ok(s);
    }
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
            Structure::Blocks | Structure::Planes { .. } => {} // planes have a text of their own
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
                if operation == Operation::SmoothBlended {
                    blended::map(s, element, blocks, patches)?;
                    return reside(s, resident_groups).map_err(Into::into);
                }
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

/// Maps the blocks of a kernel of some dimension onto groups, and by `inside` what stands in them, given the
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
    // a sum over several loops is realised by the first of them
    while let Some(sum) = sums(s.kernel()).first() {
        s.realise(sum, format!("r_{sum}"))?;
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

/// Pieces of rows of the mesh, a node or patch a work-item.
pub(crate) fn rows(s: &mut Schedule, blocks: &[String], length: i64) -> Steps {
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
    let (eigenvectors, eigenvalues, to_modes) = if operation == Operation::SmoothBlended {
        line.sorted_modes()
    } else {
        (line.eigenvectors.clone(), line.eigenvalues.clone(), line.to_modes())
    };
    let inverses = inverses(&eigenvalues, element.dimension);
    let known = [
        ("M", &mass.entries),
        ("A", &stiffness.entries),
        ("S", &eigenvectors.entries),
        ("lambda", &eigenvalues),
        ("P", &line.prolongation.entries),
        ("T", &to_modes.entries),
        ("blend", &line.blend.entries),
        ("flux", &line.flux.entries),
        ("inverses", &inverses),
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
            if space != AddressSpace::Global && name != "inverses" {
                s.apply(SetAddressSpace::new(name, space))?;
            }
        }
    }
    Ok(())
}
