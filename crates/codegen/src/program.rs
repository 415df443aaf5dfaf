//! The whole way: kernel, placed kernel, code, source and launch plan.

use crate::ast::{Block, Declare, Expr, For, LoopKind, Name, Stmt};
use crate::axes::Axes;
use crate::barriers::BarrierPlan;
use crate::declare::declare;
use crate::env::Env;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::lower::Lower;
use crate::lower::place::is_plain_scalar;
use crate::placed::PlacedKernel;
use crate::plan::{Precondition, Program, Target};
use crate::print::{self, Constant, Function, Param};
use crate::stack::Stack;
use crate::storage::{Storage, check_bounds, local_bytes};
use crate::{launch, regions};
use purlin_analysis::Analysis;
use purlin_analysis::placement::{Barrier, Placement};
use purlin_ir::{
    AddressSpace, Affine, Constraint, Direction, Id, Kernel, ScalarType, VarId, VarKind, Variable,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a user may choose about generated code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Whether compilers may compute `a*b + c` with one rounding instead of two, as they do by themselves: NVRTC,
    /// OpenCL C, and GCC outside of ISO modes. Without, all targets round each operation, as the interpreter does.
    pub contraction: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { contraction: true }
    }
}

impl Options {
    /// With contraction or without.
    #[must_use]
    pub fn with_contraction(self, contraction: bool) -> Self {
        Self { contraction }
    }
}

/// The code of a kernel for a target, before it is printed: what statistics count.
#[derive(Clone, Debug)]
pub struct Code {
    /// The function, target's loops and declarations included.
    pub function: Function,
    /// Bytes of local memory of a group.
    pub local_bytes: u64,
    /// Integers that parameters may take beyond 64 bits.
    pub integers: Vec<Precondition>,
    /// Bytes of private arrays of a work-item.
    pub private_bytes: u64,
}

/// Generates a program: [`PlacedKernel::new`], then [`PlacedKernel::generate`].
///
/// The source is the same to the byte for equal kernels.
///
/// # Errors
/// A race, what the target cannot say, or what the axes do not allow; see [`CodegenError`].
pub fn generate(kernel: &Kernel, target: Target, options: &Options) -> Result<Program, CodegenError> {
    PlacedKernel::new(kernel)?.generate(target, options)
}

/// Source and launch plan of a placed kernel.
pub(crate) fn program(
    placed: &PlacedKernel<'_>,
    target: Target,
    contraction: bool,
) -> Result<Program, CodegenError> {
    let (code, axes) = lower(placed, target)?;
    let source = print::source(&code.function, target, contraction);
    let mut features = launch::features(placed.kernel, target, source.doubles, source.wide_atomics);
    features.extend(launch::features_of_calls(placed.kernel, target)?);
    let memory = (code.local_bytes, code.private_bytes);
    let mut plan = launch::plan(placed.kernel, target, &axes, memory, features)?;
    plan.preconditions.extend(code.integers);
    Ok(Program { target, entry: code.function.name.to_string(), source: source.text, plan, contraction })
}

/// Code of a placed kernel, and its axes.
pub(crate) fn lower(placed: &PlacedKernel<'_>, target: Target) -> Result<(Code, Axes), CodegenError> {
    if let Some((kernel, placement)) = in_local_memory(placed, target) {
        return lower(&PlacedKernel { kernel: &kernel, placement }, target);
    }
    let kernel = placed.kernel;
    if let Some(outside) = Analysis::of(kernel).first_outside() {
        return Err(CodegenError::OutOfBounds(Box::new(outside)));
    }
    let mut env = Env::new(kernel);
    let axes = Axes::new(&mut env)?;
    crate::lower::shuffle::check_size(placed, &axes)?;
    let storage = Storage::new(placed, &mut env.names, &env.var_names)?;
    check_bounds(kernel)?;
    enter_hardware(&mut env, &axes);
    let mut syncs = Vec::new();
    if axes.work_items() > 1 {
        // a shuffle waits for the registers that it reads
        let in_memory = |b: &&Barrier| kernel.vars[b.var].space != AddressSpace::SubGroup;
        syncs.extend(placed.placement.barriers.iter().filter(in_memory).cloned());
        syncs.extend(crate::storage::reuse(kernel));
    }
    let barriers = BarrierPlan::new(kernel, &syncs);
    let mut pass = Lower::new(env, placed, &axes, &barriers, storage.names.clone(), target)?;
    let mut body = pass.run()?;
    crate::race::check(kernel, &syncs, &pass.env.iname_names, &body)?;
    crate::race::drop_needless(kernel, &syncs, &pass.env.iname_names, &mut body);
    let scalars = pass.uniform_scalars();
    let env = pass.env;
    let mut constants = Vec::new();
    let shared = syncs.iter().map(|s| s.var).collect();
    let params = parameters(kernel, &env.var_names, &shared, &mut constants);
    crate::convergence::check(&body, &same_in_a_row(&env, &params, scalars))?;
    let mut function = Function {
        name: crate::names::entry(kernel),
        params,
        constants,
        block: [0, 1, 2].map(|k: usize| axes.block[k].as_ref().map_or(1, |a| a.extent.unsigned_abs())),
        grid: Vec::new(),
        aligned: Vec::new(),
        kept: Vec::new(),
        body,
    };
    let integers = env.reach.preconditions();
    frame(&mut function, target, env, &axes, &storage);
    let local_bytes = local_bytes(&storage.locals, &function.aligned);
    check_memory(target, &function.constants, local_bytes)?;
    let Stack { private_bytes, kept } = Stack::of(&function.body, target)?;
    function.kept = kept;
    Ok((Code { function, local_bytes, private_bytes, integers }, axes))
}

/// The kernel with what sub-groups hold in local memory, for targets without shuffles: the same values flow, in the
/// order that barriers keep.
fn in_local_memory(placed: &PlacedKernel<'_>, target: Target) -> Option<(Kernel, Placement)> {
    let held = |var: &Variable| var.space == AddressSpace::SubGroup;
    if target == Target::Cuda || !placed.kernel.vars.values().any(held) {
        return None;
    }
    let (mut kernel, mut placement) = (placed.kernel.clone(), placed.placement.clone());
    for (id, var) in placed.kernel.vars.iter().filter(|(_, v)| held(v)) {
        kernel.vars[id].space = AddressSpace::Local;
        placement.sliced[id.index()] = vec![false; var.shape.len()];
        placement.lanes[id.index()] = None;
    }
    Some((kernel, placement))
}

/// Names, ranges and bounds of the hardware indices.
fn enter_hardware(env: &mut Env<'_>, axes: &Axes) {
    for k in 0..3_u8 {
        if let Some(axis) = &axes.grid[usize::from(k)] {
            let index = env.hardware(true, k);
            env.set_range(index, axis.range);
            env.reach.set_extent(index, axis.extent.clone());
            for bound in &axis.below {
                env.learn(&Constraint::lt(&Affine::iname(index), bound));
            }
            name_after(env, axes, index, &axis.inames);
        }
        if let Some(axis) = &axes.block[usize::from(k)] {
            let index = env.hardware(false, k);
            env.set_range(index, Interval::new(0, i128::from(axis.extent) - 1));
            name_after(env, axes, index, &axis.inames);
        }
    }
}

/// An index that is one iname's value takes its name.
fn name_after(env: &mut Env<'_>, axes: &Axes, index: purlin_ir::InameId, inames: &[purlin_ir::InameId]) {
    if let [only] = inames
        && axes.start[only.index()].as_ref().is_some_and(|s| s.as_constant() == Some(0))
    {
        env.iname_names[index.index()] = env.iname_names[only.index()].clone();
    }
}

/// Parameters of the function; `shared` are the variables between work-items that wait for each other.
fn parameters(
    kernel: &Kernel,
    names: &[Name],
    shared: &BTreeSet<VarId>,
    constants: &mut Vec<Constant>,
) -> Vec<Param> {
    let mut params = Vec::new();
    for (id, var) in kernel.vars.iter() {
        let name = names[id.index()].clone();
        let shape: Vec<String> = var.shape.iter().map(|e| crate::axes::show(kernel, e)).collect();
        let remark = (!shape.is_empty()).then(|| format!("[{}]", shape.join(", ")));
        let buffer = match &var.kind {
            VarKind::Temporary if var.space == AddressSpace::Global => Some(false),
            VarKind::Temporary => continue,
            VarKind::Table(data) if var.space == AddressSpace::Constant => {
                constants.push(Constant { name, ty: var.ty, data: data.clone() });
                continue;
            }
            VarKind::Param => None,
            VarKind::Argument(Direction::In)
                if is_plain_scalar(var, &[]) || var.space == AddressSpace::Private =>
            {
                None
            }
            VarKind::Argument(Direction::In) | VarKind::Table(_) => Some(true),
            VarKind::Argument(Direction::Out | Direction::InOut) => Some(false),
        };
        params.push(Param { name, ty: var.ty, buffer, is_shared: shared.contains(&id), remark });
    }
    params
}

/// Names of values that all work-items along l.0 share: parameters, indices along other axes, and `scalars`.
fn same_in_a_row(env: &Env<'_>, params: &[Param], scalars: Vec<Name>) -> BTreeSet<Name> {
    let values = params.iter().filter(|p| p.buffer.is_none()).map(|p| p.name.clone());
    let along = |group: bool, axes: std::ops::Range<u8>| {
        axes.map(move |axis| env.name(env.hardware(group, axis)).clone())
    };
    values.chain(scalars).chain(along(true, 0..3)).chain(along(false, 1..3)).collect()
}

fn check_memory(target: Target, constants: &[Constant], local: u64) -> Result<(), CodegenError> {
    let found: u64 = constants.iter().map(|c| c.data.len() as u64 * c.ty.bytes()).sum();
    // 64 KiB: CUDA's constant memory, and the least an OpenCL device offers.
    let limit = 64 * 1024;
    if target != Target::C && found > limit {
        return Err(CodegenError::ConstantMemory { found, limit, target });
    }
    // 227 KiB: the most a group may have on compute capability 9.0; the runtime compares with the card's own.
    let limit = 227 * 1024;
    if target == Target::Cuda && local > limit {
        return Err(CodegenError::LocalMemory { found: local, limit, target });
    }
    Ok(())
}

/// Adds what stands around the statements: hardware indices, or loops over them in C; declarations.
fn frame(function: &mut Function, target: Target, mut env: Env<'_>, axes: &Axes, storage: &Storage) {
    let body = std::mem::take(&mut function.body);
    let mut privates = storage.privates.clone();
    let mut body = match target {
        Target::Cuda | Target::OpenCl => {
            let mut all = indices(&env, axes, &body);
            all.extend(body);
            all
        }
        Target::C => regions::work_item_loops(body, &mut env, axes, &mut privates),
    };
    body.splice(0..0, storage.locals.iter().cloned().map(Stmt::Declare));
    if target == Target::C {
        body = group_loops(body, &mut env, axes, function);
    }
    declare(&mut body, &privates);
    crate::hoist::hoist(&mut body, &maps(function), &mut env.names);
    function.body = body;
    crate::vectors::vectorise(function, target, env.names);
}

/// The integer arrays that the program only reads.
fn maps(function: &Function) -> BTreeMap<Name, ScalarType> {
    let arguments = function.params.iter().filter(|p| p.buffer == Some(true)).map(|p| (&p.name, p.ty));
    let constants = function.constants.iter().map(|c| (&c.name, c.ty));
    let integers = arguments.chain(constants).filter(|(_, ty)| !ty.is_float());
    integers.map(|(name, ty)| (name.clone(), ty)).collect()
}

/// Declarations of the hardware indices that statements use.
fn indices(env: &Env<'_>, axes: &Axes, body: &Block) -> Block {
    let mut used = BTreeSet::new();
    print::names_in(body, &mut used);
    let mut declared = Block::new();
    for group in [true, false] {
        for axis in 0..3_u8 {
            let index = env.hardware(group, axis);
            let name = env.name(index).clone();
            if axes.inames(group, usize::from(axis)).is_empty() || !used.contains(&name) {
                continue;
            }
            let ty = index_type(env, index);
            let value = Expr::Hardware { group, axis };
            declared.push(Stmt::Declare(Declare::constant(name, ty, value)));
        }
    }
    declared
}

/// The loop over the groups counts one further than the last index.
fn index_type(env: &Env<'_>, index: purlin_ir::InameId) -> ScalarType {
    if env.range_of(index).plus(Interval::new(0, 1)).fits_i32() { ScalarType::I32 } else { ScalarType::I64 }
}

/// Loops over the groups, g.0 innermost; their extents are the last parameters.
fn group_loops(mut body: Block, env: &mut Env<'_>, axes: &Axes, function: &mut Function) -> Block {
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
            kind: LoopKind::Groups,
            short_triangle: false,
            body,
        })];
    }
    body
}
