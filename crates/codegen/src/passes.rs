//! The passes over the code of a kernel: one list, in order.

use crate::ast::{Block, CodePiece, Declare, Expr, For, LoopKind, Name, Stmt};
use crate::axes::Axes;
use crate::barriers::BarrierPlan;
use crate::completions::Completions;
use crate::declare::Private;
use crate::double_single::rewrite::{is_split, rewrite};
use crate::env::Env;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::lower::place::uniform_scalars;
use crate::lower::{Lower, mutable_names};
use crate::notes::Note;
use crate::placed::PlacedKernel;
use crate::print::{Function, Param};
use crate::stack::Stack;
use crate::storage::Storage;
use crate::target::{Execution, TargetDescription};
use crate::{
    advance, convergence, declare, ends, hoist, loop_barriers, race, regions, registers, tidy, vectors,
};
use kingpost_analysis::placement::Barrier;
use kingpost_ir::{Arithmetic, Id, Multiples, ScalarType};
use std::collections::{BTreeMap, BTreeSet};

/// A pass over the code of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, as `kingpost print --after` takes it.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Why it stands where it stands in the list.
    pub place: &'static str,
    run: Run,
}

type Run = fn(&mut Work<'_>) -> Result<(), CodegenError>;

/// All passes, in the order in which they run.
pub fn passes() -> &'static [Pass] {
    &PASSES
}

/// The pass of a name.
pub fn pass_named(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}

const PASSES: [Pass; 15] = [
    Pass {
        name: "lower",
        summary: "writes the loop tree as loops, guards, statements and the planned barriers",
        place: "first: the others read code, not the kernel",
        run: lower,
    },
    Pass {
        name: "tidy",
        summary: "merges guards, moves them out of loops, drops what is empty",
        place: "before barriers are checked: a guard moved past one would skip it",
        run: merge_guards,
    },
    Pass {
        name: "barriers",
        summary: "checks that a barrier separates each dependence, and drops those that none needs",
        place: "after guards have their places; before C's loops over work-items, which end at barriers",
        run: barriers,
    },
    Pass {
        name: "loop_barriers",
        summary: "in OpenCL, puts barriers before loops that hold one, and at the head of their bodies",
        place: "after barriers that none needs are dropped: a compiler needs these, not the program",
        run: enclose_loops,
    },
    Pass {
        name: "convergence",
        summary: "refuses shuffles and intrinsics that some work-items would skip",
        place: "after guards have their places; before indices become variables, which it knows by name",
        run: check_convergence,
    },
    Pass {
        name: "work_items",
        summary: "declares the hardware indices; in C writes loops over the work-items between barriers",
        place: "after the last change of barriers; inside what belongs to a group",
        run: work_items,
    },
    Pass {
        name: "local_arrays",
        summary: "declares the arrays in local memory",
        place: "around the loops over work-items, which share them; inside those over groups",
        run: local_arrays,
    },
    Pass {
        name: "groups",
        summary: "in C, writes loops over the work-groups",
        place: "around all that a group has",
        run: groups,
    },
    Pass {
        name: "declare",
        summary: "declares private variables in the innermost scope that holds their uses",
        place: "after the last loop is written: a scope is a loop or a guard",
        run: declare_privates,
    },
    Pass {
        name: "hoist",
        summary: "reads entries of maps once, before the loops that repeat them",
        place: "after declarations: an entry is read after what its index needs",
        run: hoist_maps,
    },
    Pass {
        name: "double_single",
        summary: "in kernels of double-single numbers, makes pairs of `f32` of private and local reals",
        place: "after declarations, of which it changes types; before vectors, which hold no pairs",
        run: make_pairs,
    },
    Pass {
        name: "vectorise",
        summary: "takes accesses of neighbouring lanes as one; in C, arithmetic of lanes and of work-items",
        place: "after declarations and hoisting: what is private to a lane is seen by its scope",
        run: vectorise,
    },
    Pass {
        name: "ends",
        summary: "ends loops when the flag that guards all of their bodies has fallen",
        place: "after vectorisation: lanes have flags of their own",
        run: end_loops,
    },
    Pass {
        name: "advance",
        summary: "lets addresses of asynchronous copies, and of reads ahead, move with the loop, on devices",
        place: "after loops end by flags, which guard all of their bodies",
        run: advance_addresses,
    },
    Pass {
        name: "stack",
        summary: "measures private arrays, and in C keeps large ones off the stack",
        place: "last: vectors may have replaced arrays",
        run: measure_stack,
    },
];

/// The code of a kernel between passes.
pub(crate) struct Work<'k> {
    pub(crate) placed: &'k PlacedKernel<'k>,
    pub(crate) target: &'static TargetDescription,
    pub(crate) axes: &'k Axes,
    pub(crate) storage: &'k Storage,
    pub(crate) syncs: &'k [Barrier],
    pub(crate) barriers: &'k BarrierPlan,
    pub(crate) completions: &'k Completions,
    pub(crate) env: Env<'k>,
    pub(crate) function: Function,
    /// Private variables, with a place for each work-item where they live across its loops.
    pub(crate) privates: Vec<Private>,
    /// Bytes of private arrays of a work-item; known after the last pass.
    pub(crate) private_bytes: u64,
    /// What a reader of the code would not expect, so far.
    pub(crate) notes: Vec<Note>,
}

/// Runs the passes up to `last`, or all.
///
/// # Errors
/// What a pass refuses.
pub(crate) fn run(work: &mut Work<'_>, last: Option<&Pass>) -> Result<(), CodegenError> {
    for pass in passes() {
        (pass.run)(work)?;
        if last.is_some_and(|last| last.name == pass.name) {
            break;
        }
    }
    Ok(())
}

fn lower(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let (buffers, ordered) = (work.storage.names.clone(), work.storage.ordered.clone());
    let (env, placed) = (work.env.clone(), work.placed);
    let mut lower = Lower::new(env, placed, work.axes, work.barriers, buffers, ordered, work.target)?;
    lower.maps.clone_from(&work.function.maps);
    work.function.body = lower.run()?;
    work.env = lower.env;
    Ok(())
}

fn merge_guards(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let mutable = mutable_names(work.placed.kernel, &work.storage.names, &work.function.body);
    tidy::tidy(&mut work.function.body, &mutable);
    Ok(())
}

fn barriers(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let (kernel, names) = (work.placed.kernel, &work.env.iname_names);
    race::settle_barriers(kernel, work.syncs, work.completions, names, &mut work.function.body)?;
    if let Some(class) = work.target.words.register_class {
        registers::hold(&mut work.function.body, work.completions, work.storage, class);
    }
    Ok(())
}

fn enclose_loops(work: &mut Work<'_>) -> Result<(), CodegenError> {
    if work.target.cuts_at_barriers {
        loop_barriers::enclose(&mut work.function.body);
    }
    Ok(())
}

fn check_convergence(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let scalars = uniform_scalars(work.placed.kernel, &work.storage.names);
    for axes in 1..=3 {
        let uniform = same_along(&work.env, &work.function.params, &scalars, axes);
        convergence::check(&work.function.body, work.completions, &uniform, axes)?;
    }
    Ok(())
}

fn work_items(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let body = std::mem::take(&mut work.function.body);
    work.function.body = match work.target.execution {
        Execution::Device => {
            let mut all = start(work);
            all.extend(indices(&work.env, work.axes, &body, !all.is_empty()));
            all.extend(body);
            all
        }
        Execution::Host => {
            let (code, items) = regions::work_item_loops(body, &mut work.env, work.axes, &mut work.privates);
            work.function.items_of_last = items;
            code
        }
    };
    Ok(())
}

fn local_arrays(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let begins = work.completions.begins().iter().map(|begin| {
        let pieces = vec![CodePiece::Text(begin.text.clone())];
        Stmt::Intrinsic(crate::code::plain("what completes asynchronous calls", pieces))
    });
    let locals = work.storage.locals.iter().cloned().map(Stmt::Declare);
    work.function.body.splice(0..0, locals.chain(begins));
    Ok(())
}

fn groups(work: &mut Work<'_>) -> Result<(), CodegenError> {
    if work.target.is_host() {
        let body = std::mem::take(&mut work.function.body);
        // each group of a host runs to its end before the next one, if that waits for it
        let in_order = !work.placed.placement.awaited.is_empty();
        let kind = if in_order { LoopKind::Sequential } else { LoopKind::Groups };
        work.function.body = group_loops(body, &mut work.env, work.axes, &mut work.function, kind);
    }
    Ok(())
}

fn declare_privates(work: &mut Work<'_>) -> Result<(), CodegenError> {
    declare::declare(&mut work.function.body, &work.privates);
    Ok(())
}

fn hoist_maps(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let maps = maps(&work.function);
    hoist::hoist(&mut work.function.body, &maps, &mut work.env.names);
    Ok(())
}

fn make_pairs(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let kernel = work.placed.kernel;
    if kernel.arithmetic == Arithmetic::Native {
        return Ok(());
    }
    if work.storage.ordered.is_some() {
        return Err(CodegenError::OrderedPairs);
    }
    let tables = kernel.vars.iter().filter(|(_, var)| is_split(kernel, var));
    let tables = tables.map(|(id, _)| work.storage.names[id.index()].clone()).collect();
    rewrite(&mut work.function, &tables).map_err(|found| CodegenError::Internal {
        what: format!("{found} in code for double-single numbers"),
        kernel: kernel.to_string(),
    })
}

fn vectorise(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let known = known_multiples(&work.env);
    let notes = vectors::vectorise(&mut work.function, work.target.vectors, work.env.names.clone(), known);
    work.notes.extend(notes);
    Ok(())
}

fn end_loops(work: &mut Work<'_>) -> Result<(), CodegenError> {
    ends::end_loops(&mut work.function.body, &BTreeSet::new());
    Ok(())
}

fn advance_addresses(work: &mut Work<'_>) -> Result<(), CodegenError> {
    if !work.target.is_host() {
        advance::advance(&mut work.function, &mut work.env.names);
    }
    Ok(())
}

fn measure_stack(work: &mut Work<'_>) -> Result<(), CodegenError> {
    let Stack { private_bytes, kept } = Stack::of(&work.function.body, work.target)?;
    work.function.kept = kept;
    work.private_bytes = private_bytes;
    Ok(())
}

/// What is known of the parameters by name.
fn known_multiples(env: &Env<'_>) -> BTreeMap<Name, u64> {
    let known = Multiples::of(env.kernel);
    let params = env.kernel.vars.ids().filter(|v| env.is_param(*v));
    params.map(|v| (env.var_names[v.index()].clone(), known.of_var(v))).collect()
}

/// Names of values that all work-items along l.0 share: parameters, indices along other axes, and
/// `scalars`.
fn same_along(env: &Env<'_>, params: &[Param], scalars: &[Name], axes: u8) -> BTreeSet<Name> {
    let values = params.iter().filter(|p| p.buffer.is_none()).map(|p| p.name.clone());
    let along = |group: bool, axes: std::ops::Range<u8>| {
        axes.map(move |axis| env.name(env.hardware(group, axis)).clone())
    };
    values.chain(scalars.iter().cloned()).chain(along(true, 0..3)).chain(along(false, axes..3)).collect()
}

/// The integer arrays that the program only reads, with the types of their values.
fn maps(function: &Function) -> BTreeMap<Name, ScalarType> {
    let arguments = function.params.iter().filter(|p| p.buffer == Some(true)).map(|p| (&p.name, p.ty));
    let constants = function.constants.iter().map(|c| (&c.name, c.ty));
    let integers = arguments.chain(constants).filter(|(_, ty)| ty.is_exact());
    integers.map(|(name, ty)| (name.clone(), ty.loaded())).collect()
}

/// Takes the place of a group in the order of the launch, if groups wait for earlier ones.
fn start(work: &Work<'_>) -> Block {
    let Some(ordered) = &work.storage.ordered else { return Block::new() };
    let index = work.env.hardware(true, 0);
    ordered.start(&work.storage.names, work.env.name(index), index_type(&work.env, index))
}

/// Declarations of the hardware indices that statements use, less that of ordered groups.
fn indices(env: &Env<'_>, axes: &Axes, body: &Block, ordered: bool) -> Block {
    let hardware = [true, false].into_iter().flat_map(|group| (0..3_u8).map(move |axis| (group, axis)));
    let hardware = hardware.filter(|index| !ordered || *index != (true, 0));
    let on_axis = hardware.filter(|(group, axis)| !axes.inames(*group, usize::from(*axis)).is_empty());
    let mut wanted: Vec<_> = on_axis.map(|(group, axis)| (group, axis, false)).collect();
    crate::ast::for_each_name(body, &mut |name| {
        for (group, axis, used) in &mut wanted {
            *used |= name == env.name(env.hardware(*group, *axis));
        }
    });
    let used = wanted.into_iter().filter(|(_, _, used)| *used);
    let declared = used.map(|(group, axis, _)| {
        let index = env.hardware(group, axis);
        let value = Expr::Hardware { group, axis };
        Stmt::Declare(Declare::constant(env.name(index).clone(), index_type(env, index), value))
    });
    declared.collect()
}

/// The loop over the groups counts one further than the last index.
fn index_type(env: &Env<'_>, index: kingpost_ir::InameId) -> ScalarType {
    if env.range_of(index).plus(Interval::new(0, 1)).fits_i32() { ScalarType::I32 } else { ScalarType::I64 }
}

/// Loops over the groups, g.0 innermost; their extents are the last parameters.
fn group_loops(
    mut body: Block,
    env: &mut Env<'_>,
    axes: &Axes,
    function: &mut Function,
    kind: LoopKind,
) -> Block {
    for axis in 0..3_u8 {
        if axes.grid[usize::from(axis)].is_none() {
            continue;
        }
        let index = env.hardware(true, axis);
        let extent = env.names.fresh(&format!("groups_{axis}"));
        function.grid.insert(0, (axis, extent.clone()));
        body = vec![Stmt::For(For {
            name: env.name(index).clone(),
            ty: index_type(env, index),
            lower: Expr::int(0),
            upper: Expr::var(&extent),
            step: 1,
            kind,
            rolled: false,
            flag: None,
            body,
        })];
    }
    body
}
