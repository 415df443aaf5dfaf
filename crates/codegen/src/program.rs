//! The whole way: kernel, placed kernel, code, source and launch plan.

use crate::ast::{Block, Declare, Expr, Name};
use crate::axes::Axes;
use crate::barriers::BarrierPlan;
use crate::callees;
pub use crate::code::Code;
use crate::completions::Completions;
use crate::double_single::HELD;
use crate::double_single::rewrite::{held_table, is_split};
use crate::env::Env;
use crate::error::{CodegenError, or};
use crate::find_notes;
use crate::function::TensorParam;
use crate::interval::Interval;
use crate::launch;
use crate::lower::place::is_plain_scalar;
use crate::passes::{self, Pass, Work};
use crate::placed::PlacedKernel;
use crate::plan::Program;
use crate::print::{self, Constant, Function, Param};
use crate::storage::{Storage, check_bounds, local_bytes, provided};
use crate::target::{Target, TargetDescription};
use kingpost_analysis::Analysis;
use kingpost_analysis::placement::{Barrier, Placement, Scope};
use kingpost_ir::calls::{Arg, MapOfTensor, Piece};
use kingpost_ir::{
    AddressSpace, Affine, Arithmetic, Atom, AxisTag, Constraint, Direction, Id, InameId, Kernel, Layout,
    VarId, VarKind, Variable,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a user may choose about generated code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Whether compilers may compute `a*b + c` with one rounding instead of two, as they do by
    /// themselves: NVRTC, OpenCL C, and GCC outside ISO modes. Without, all targets round each
    /// operation, as the interpreter does.
    pub contraction: bool,
    /// Whether code of callees that Kingpost does not ship may be compiled and run: it is text of
    /// whoever wrote the kernel or its recipe. Without, a source that holds such code can be read, and
    /// devices refuse it.
    pub trust: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { contraction: true, trust: false }
    }
}

impl Options {
    /// With contraction or without.
    #[must_use]
    pub fn with_contraction(self, contraction: bool) -> Self {
        Self { contraction, ..self }
    }

    /// Whether compilers of the code of a kernel may contract: never where it adds up rounding
    /// errors.
    pub(crate) fn contracts(&self, kernel: &Kernel) -> bool {
        self.contraction && kernel.arithmetic == Arithmetic::Native
    }

    /// With the code of all callees allowed to run, or that of Kingpost's own only.
    #[must_use]
    pub fn with_trust(self, trust: bool) -> Self {
        Self { trust, ..self }
    }
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

impl PlacedKernel<'_> {
    /// The code for a target, before it is printed.
    ///
    /// # Errors
    /// What the target cannot say or the axes do not allow; see [`CodegenError`].
    pub fn code(&self, target: Target, options: &Options) -> Result<Code, CodegenError> {
        let Options { contraction: _, trust: _ } = options; // what compilers and devices may do
        self.with_room(|placed| Ok(lower(placed, target.description(), None)?.0))
    }

    /// The code for a target after one of the [`passes`](crate::passes), as its printer writes it:
    /// for reading, as it need not compile before the last one.
    ///
    /// # Errors
    /// As [`PlacedKernel::code`], as far as the passes up to this one refuse it.
    pub fn source_after(
        &self,
        target: Target,
        options: &Options,
        pass: &Pass,
    ) -> Result<String, CodegenError> {
        let contraction = options.contracts(self.kernel);
        self.with_room(|placed| source_after(placed, target.description(), contraction, pass))
    }
}

/// Source and launch plan of a placed kernel, and the code that was printed.
pub(crate) fn program(
    placed: &PlacedKernel<'_>,
    target: &'static TargetDescription,
    options: &Options,
) -> Result<(Code, Program), CodegenError> {
    let Options { trust, .. } = *options;
    let contraction = options.contracts(placed.kernel);
    let (code, axes) = lower(placed, target, None)?;
    let source = print::source(&[&code.function], None, target, contraction);
    let mut features = launch::features(placed.kernel, target, source.doubles, source.wide_atomics);
    features.extend(launch::features_of_calls(placed.kernel, target)?);
    let mut plan = launch::plan(placed.kernel, target, &axes, &code, features)?;
    crate::ordered::change_plan(placed, target, &mut plan);
    plan.preconditions.extend(code.integers.iter().cloned());
    let entry = code.function.name.to_string();
    let untrusted = if trust { Vec::new() } else { callees::foreign(placed.kernel, target)? };
    let target = target.target;
    let repeated_writes = crate::repeated_writes::has_repeated_writes(&code.function.body);
    let source = source.text;
    let program =
        Program { target, entry, source, plan, contraction, repeated_writes, untrusted, launches: None };
    Ok((code, program))
}

/// Source after a pass; it need not compile.
pub(crate) fn source_after(
    placed: &PlacedKernel<'_>,
    target: &'static TargetDescription,
    contraction: bool,
    pass: &Pass,
) -> Result<String, CodegenError> {
    let (code, _) = lower(placed, target, Some(pass))?;
    Ok(print::source(&[&code.function], None, target, contraction).text)
}

/// Code of a placed kernel after the passes up to `last`, or after all, and its axes.
pub(crate) fn lower(
    placed: &PlacedKernel<'_>,
    target: &'static TargetDescription,
    last: Option<&Pass>,
) -> Result<(Code, Axes), CodegenError> {
    if let Some((kernel, placement)) = in_local_memory(placed, target) {
        return lower(&PlacedKernel { kernel: &kernel, placement }, target, last);
    }
    let kernel = placed.kernel;
    if kernel.has_launches() {
        return Err(CodegenError::SeveralLaunches);
    }
    check_width(kernel, target)?;
    let open = Analysis::of(kernel).open_arrays().map_err(CodegenError::OutOfBounds)?;
    let mut env = Env::new(kernel);
    let axes = Axes::new(&mut env)?;
    crate::lower::shuffle::check_size(placed, &axes)?;
    let storage = Storage::new(placed, target, &mut env)?;
    check_bounds(kernel)?;
    enter_hardware(&mut env, &axes);
    let mut completions = Completions::new(kernel, target)?;
    let syncs = syncs(placed, target, &axes, &completions);
    completions.count_iterations(kernel, &syncs)?;
    let barriers = BarrierPlan::new(kernel, &syncs, &completions);
    let mut constants = Vec::new();
    let shared = syncs.iter().map(|s| s.var).collect();
    let function = Function {
        name: crate::names::entry(kernel),
        params: parameters(kernel, &env.var_names, &shared, &mut constants),
        maps: maps(kernel, target, &mut env)?,
        constants,
        block: [0, 1, 2].map(|k: usize| axes.block[k].as_ref().map_or(1, |a| a.extent.unsigned_abs())),
        resident_groups: kernel.launch.resident_groups,
        grid: Vec::new(),
        aligned: Vec::new(),
        provided: Vec::new(),
        kept: Vec::new(),
        items_of_last: None,
        body: Vec::new(),
    };
    let mut function = aligned_for_calls(kernel, &storage, target, function)?;
    if let Some(ordered) = &storage.ordered {
        ordered.change_params(&env.var_names, &mut function.params);
    }
    let privates = storage.privates.clone();
    let mut work = Work {
        placed,
        target,
        axes: &axes,
        storage: &storage,
        syncs: &syncs,
        barriers: &barriers,
        completions: &completions,
        env,
        function,
        privates,
        private_bytes: 0,
        notes: find_notes::of_kernel(kernel, &axes, &open),
    };
    passes::run(&mut work, last)?;
    let Work { env, mut function, private_bytes, notes, .. } = work;
    let used = names_in(&function.body);
    function.constants.retain(|table| used.contains(&table.name));
    function.provided = provided(&storage.locals, &function.aligned, target, kernel.launch.dynamic_local);
    let bytes = |of: &dyn Fn(&Declare) -> bool| {
        let locals: Vec<_> = storage.locals.iter().filter(|buffer| of(buffer)).cloned().collect();
        local_bytes(&locals, &function.aligned)
    };
    let of_completions: u64 = completions.begins().iter().map(|begin| begin.local_bytes).sum();
    let (local_bytes, dynamic_local_bytes) =
        (bytes(&|_| true) + of_completions, bytes(&|b| function.provided.contains(&b.name)));
    check_memory(target, &function.constants, local_bytes)?;
    let integers = env.reach.preconditions();
    let (sub_group, banks) = (kernel.sub_group, target.banks);
    let code =
        Code { function, local_bytes, dynamic_local_bytes, private_bytes, integers, notes, sub_group, banks };
    Ok((code, axes))
}

fn check_width(kernel: &Kernel, target: &TargetDescription) -> Result<(), CodegenError> {
    match target.widths() {
        Some(widths) if !target.has_width(kernel.sub_group) => {
            let others = Target::ALL.iter().filter(|other| other.description().has_width(kernel.sub_group));
            Err(CodegenError::SubGroupWidth {
                found: kernel.sub_group,
                target: target.target,
                widths: or(widths),
                others: or(others),
            })
        }
        Some(_) | None => Ok(()),
    }
}

/// With the arrays aligned of which the code of calls takes the addresses so.
fn aligned_for_calls(
    kernel: &Kernel,
    storage: &Storage,
    target: &'static TargetDescription,
    mut function: Function,
) -> Result<Function, CodegenError> {
    let mut found: BTreeMap<Name, u64> = BTreeMap::new();
    for call in callees::with_code(kernel, target)?.values() {
        let code = kernel.callees[call.callee].code_for(target.name);
        for (code, piece) in code.iter().flat_map(|code| code.text.iter().map(move |piece| (code, piece))) {
            let (argument, run) = match piece {
                Piece::Address(access, run) => (access.var, *run),
                // as an address of 16 bytes, of which those of tensors are multiples
                Piece::Map(argument) => {
                    let ty = kernel.callees[call.callee].kernel.vars[*argument].ty;
                    (*argument, Some(16 / ty.bytes()))
                }
                Piece::Text(_) | Piece::Element(_) | Piece::Begin(..) => continue,
            };
            if let Some(Arg::Window(window)) = call.binding.args.get(argument.index())
                && let Some(bytes) = code.alignment(run, kernel.vars[window.var].ty)
            {
                let most = found.entry(storage.names[window.var.index()].clone()).or_default();
                *most = bytes.max(*most);
            }
        }
    }
    for p in &mut function.params {
        p.aligned = found.get(&p.name).copied();
    }
    let own = |name: &Name| {
        storage.locals.iter().any(|d| d.name == *name)
            || storage.privates.iter().any(|p| p.name == *name)
            || function.constants.iter().any(|c| c.name == *name)
    };
    function.aligned = found.into_iter().filter(|(name, _)| own(name)).collect();
    Ok(function)
}

/// The maps of tensors that the code of calls names.
fn maps(
    kernel: &Kernel,
    target: &TargetDescription,
    env: &mut Env<'_>,
) -> Result<Vec<TensorParam>, CodegenError> {
    let mut found = BTreeSet::new();
    for call in callees::with_code(kernel, target)?.values() {
        let callee = &kernel.callees[call.callee];
        for piece in callee.code_for(target.name).into_iter().flat_map(|code| &code.text) {
            if let Piece::Map(argument) = piece {
                found.extend(MapOfTensor::of(callee, &call.binding, *argument));
            }
        }
    }
    let named = |map: MapOfTensor| {
        let name = env.names.fresh(&format!("{}_map", kernel.vars[map.var].name));
        TensorParam { name, map }
    };
    Ok(found.into_iter().map(named).collect())
}

/// What barriers or completions must separate.
fn syncs(
    placed: &PlacedKernel<'_>,
    target: &TargetDescription,
    axes: &Axes,
    completions: &Completions,
) -> Vec<Barrier> {
    let kernel = placed.kernel;
    let alone = axes.work_items() <= 1;
    if alone && completions.is_empty() {
        return Vec::new();
    }
    // a shuffle waits for the registers that it reads
    let in_memory = |b: &&Barrier| kernel.vars[b.var].space != AddressSpace::SubGroup;
    let mut syncs: Vec<_> = placed.placement.barriers.iter().filter(in_memory).cloned().collect();
    syncs.extend(Analysis::of(kernel).reuse());
    // a work-item runs in order, except for what completes later
    let waits =
        |sync: &Barrier| completions.of(kernel, sync).is_some() || completions.proxy(kernel, sync).is_some();
    syncs.retain(|sync| waits(sync) || !alone && sync.scope > Scope::WorkItem);
    let by_sub_groups =
        target.runs_sub_groups(kernel.sub_group) && axes.has_full_sub_groups(kernel.sub_group);
    for sync in &mut syncs {
        if alone || completions.of(kernel, sync).is_some_and(|kind| kind.by_all) {
            sync.scope = Scope::WorkItem;
        } else if sync.scope > Scope::WorkItem && !by_sub_groups {
            sync.scope = Scope::Group;
        }
    }
    syncs
}

/// Names of all variables that expressions of the code read.
fn names_in(code: &Block) -> BTreeSet<Name> {
    fn collect(block: &Block, names: &mut BTreeSet<Name>) {
        for stmt in block {
            for e in stmt.expressions() {
                e.for_each(&mut |e| {
                    if let Expr::Load(place) = e {
                        names.insert(place.name.clone());
                    }
                });
            }
            if let Some(body) = stmt.body() {
                collect(body, names);
            }
        }
    }
    let mut names = BTreeSet::new();
    collect(code, &mut names);
    names
}

/// The kernel with what sub-groups hold in local memory, for targets without shuffles: the same
/// values flow, in the order that barriers keep.
fn in_local_memory(placed: &PlacedKernel<'_>, target: &TargetDescription) -> Option<(Kernel, Placement)> {
    let held = |var: &Variable| var.space == AddressSpace::SubGroup;
    if target.widths().is_some() || !placed.kernel.vars.values().any(held) {
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
fn name_after(env: &mut Env<'_>, axes: &Axes, index: kingpost_ir::InameId, inames: &[kingpost_ir::InameId]) {
    if let [only] = inames
        && axes.start[only.index()].as_ref().is_some_and(|s| s.as_constant() == Some(0))
    {
        env.iname_names[index.index()] = env.iname_names[only.index()].clone();
    }
}

/// Parameters of the function of a kernel that no other pass has looked at.
pub(crate) fn plain_parameters(kernel: &Kernel, names: &[Name]) -> Vec<Param> {
    parameters(kernel, names, &BTreeSet::new(), &mut Vec::new())
}

/// Parameters of the function; `shared` are the variables between work-items that wait for each
/// other.
fn parameters(
    kernel: &Kernel,
    names: &[Name],
    shared: &BTreeSet<VarId>,
    constants: &mut Vec<Constant>,
) -> Vec<Param> {
    let mut params = Vec::new();
    let rereads = rereads(kernel);
    for (id, var) in kernel.vars.iter() {
        let name = names[id.index()].clone();
        let shape: Vec<String> = var.shape.iter().map(|e| crate::axes::show(kernel, e)).collect();
        let remark = (!shape.is_empty()).then(|| format!("[{}]", shape.join(", ")));
        let elements = elements(kernel, var, names);
        let buffer = match &var.kind {
            VarKind::Temporary if var.space == AddressSpace::Global => Some(false),
            VarKind::Temporary => continue,
            VarKind::Table(data) if var.space.is_of_tables() => {
                let (ty, data) = held_table(kernel, var, data);
                constants.push(Constant { name, ty, data });
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
        let is_shared = shared.contains(&id);
        let is_reread = rereads && buffer == Some(false);
        params.push(Param {
            name,
            ty: if is_split(kernel, var) { HELD } else { var.ty },
            buffer,
            is_shared,
            is_reread,
            remark,
            aligned: None,
            elements,
        });
    }
    params
}

/// Whether a loop of a work-item reads an array elsewhere than it writes it.
fn rereads(kernel: &Kernel) -> bool {
    let schedule = kernel.schedule();
    let sequential = |l: &InameId| !matches!(kernel.inames[*l].tag, AxisTag::Group(_) | AxisTag::Local(_));
    let share = |a: &[InameId], b: &[InameId]| a.iter().any(|l| sequential(l) && b.contains(l));
    schedule.iter().any(|(reader, around)| {
        kernel.insns[*reader].reads().iter().any(|read| {
            kernel.vars[read.var].space == AddressSpace::Global
                && schedule.iter().any(|(writer, loops)| {
                    let written = &kernel.insns[*writer].lhs;
                    written.var == read.var && written != *read && share(around, loops)
                })
        })
    })
}

/// C code of the number of elements of an array that lie one after the other, if its extents are
/// sums of parameters.
fn elements(kernel: &Kernel, var: &Variable, names: &[Name]) -> Option<String> {
    if var.layout != Layout::default() || var.shape.is_empty() {
        return None;
    }
    let extent = |axis: &Affine| -> Option<String> {
        let mut terms = Vec::new();
        for (atom, factor) in axis.terms() {
            let Atom::Var(param) = atom else { return None };
            let name = &names[param.index()];
            (kernel.vars[*param].kind == VarKind::Param).then_some(())?;
            terms.push(match factor {
                1 => format!("(int64_t){name}"),
                factor => format!("{factor}*(int64_t){name}"),
            });
        }
        if axis.constant_term() != 0 || terms.is_empty() {
            terms.push(axis.constant_term().to_string());
        }
        let sum = terms.join(" + ");
        Some(if terms.len() > 1 { format!("({sum})") } else { sum })
    };
    Some(var.shape.iter().map(extent).collect::<Option<Vec<String>>>()?.join("*"))
}

fn check_memory(target: &TargetDescription, constants: &[Constant], local: u64) -> Result<(), CodegenError> {
    let found: u64 = constants.iter().map(|c| c.data.len() as u64 * c.ty.bytes()).sum();
    let beyond = |limit: Option<u64>, found: u64| limit.filter(|limit| found > *limit);
    if let Some(limit) = beyond(target.limits.constant, found) {
        return Err(CodegenError::ConstantMemory { found, limit, target: target.target });
    }
    match beyond(target.limits.local, local) {
        Some(limit) => Err(CodegenError::LocalMemory { found: local, limit, target: target.target }),
        None => Ok(()),
    }
}
