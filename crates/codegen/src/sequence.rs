//! Programs of several launches: a kernel for each, with the values of the loops around as parameters.
//!
//! Each kernel is placed and lowered separately, as if it was the whole program. What the launches have in
//! common is the order of the arguments.

use crate::ast::{Expr, HostStmt, IntFn, Name, Op};
use crate::axes::{Axes, host_expr, range_of};
use crate::bounds;
use crate::callees;
use crate::code::Code;
use crate::env::Env;
use crate::error::CodegenError;
use crate::launch;
use crate::lines::{Line, Part, of_source};
use crate::placed::PlacedKernel;
use crate::plan::{Entry, HostExpr, HostStep, LaunchPlan, Program, Sequence};
use crate::print::{self, Function};
use crate::program::{Options, lower, plain_parameters, program};
use crate::repeated_writes::has_repeated_writes;
use crate::target::{Target, TargetDescription};
use crate::value::integer;
use kingpost_analysis::Analysis;
use kingpost_ir::{
    AddressSpace, Affine, Assumption, Atom, AxisTag, Constraint, Domain, Expr as Ir, InameId, Kernel, Layout,
    Node, ScalarType, VarId, VarKind, Variable,
};
use std::collections::BTreeSet;

/// A kernel taken apart.
struct Split<'k> {
    kernel: &'k Kernel,
    env: Env<'k>,
    /// The kernel of each launch.
    parts: Vec<Kernel>,
}

/// A loop of the host around the launch that is being taken out.
#[derive(Clone)]
struct Around {
    iname: InameId,
    value: Value,
}

/// What stands for a loop of the host in a launch.
#[derive(Clone, Copy)]
enum Value {
    /// The only one.
    Constant(i64),
    /// A parameter of this type.
    Parameter(ScalarType),
}

/// What the host does.
enum Step {
    Launch(usize),
    For { iname: InameId, ty: ScalarType, lower: Vec<Affine>, upper: Vec<Affine>, body: Vec<Step> },
}

impl PlacedKernel<'_> {
    /// The program for a target, and its code before it is printed: that of each entry in the order of
    /// [`Sequence::entries`](crate::Sequence::entries), or the only one.
    ///
    /// # Errors
    /// As [`PlacedKernel::code`].
    pub fn program_and_codes(
        &self,
        target: Target,
        options: &Options,
    ) -> Result<(Program, Vec<Code>), CodegenError> {
        self.with_room(|placed| match placed.kernel.has_launches() {
            true => of_launches(placed.kernel, target.description(), options, None),
            false => {
                let (code, program) = program(placed, target.description(), options)?;
                Ok((program, vec![code]))
            }
        })
    }

    /// The program for a target, and what each line of its source is for.
    ///
    /// ```
    /// use kingpost_codegen::{Options, PlacedKernel, Target};
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel k\nparam n: i32\narg x: f64[n, 4] in\narg y: f64[n] out\n\nfor i in 0..n\n  s: y[i] = sum(j in 0..4: x[i, j])\n",
    /// )?;
    /// let (program, lines) = PlacedKernel::new(&kernel)?.program_and_lines(Target::Cuda, &Options::default())?;
    /// let sum = program.source.lines().position(|line| line.contains("+=")).unwrap();
    /// assert_eq!(lines[sum].insns, ["s"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`PlacedKernel::code`].
    pub fn program_and_lines(
        &self,
        target: Target,
        options: &Options,
    ) -> Result<(Program, Vec<Line>), CodegenError> {
        self.with_room(|placed| {
            let (target, mut lines) = (target.description(), Vec::new());
            let (program, _) = match placed.kernel.has_launches() {
                true => of_launches(placed.kernel, target, options, Some(&mut lines))?,
                false => {
                    let (code, program) = program(placed, target, options)?;
                    let (function, kernel) = (&code.function, placed.kernel);
                    let part = Part { function, kernel, barriers: placed.placement.barriers.clone() };
                    lines = of_source(&[part], None, target, options.contracts(kernel));
                    (program, vec![code])
                }
            };
            Ok((program, lines))
        })
    }

    /// The program for a target.
    ///
    /// # Errors
    /// As [`PlacedKernel::code`].
    pub fn generate(&self, target: Target, options: &Options) -> Result<Program, CodegenError> {
        Ok(self.program_and_codes(target, options)?.0)
    }
}

/// Source and launch plans of a kernel of several launches, and the code of each; what the lines are for, where
/// the caller asks.
pub(crate) fn of_launches(
    kernel: &Kernel,
    target: &'static TargetDescription,
    options: &Options,
    lines: Option<&mut Vec<Line>>,
) -> Result<(Program, Vec<Code>), CodegenError> {
    let Options { trust, .. } = *options;
    let contraction = options.contracts(kernel);
    let mut split = Split { kernel, env: Env::new(kernel), parts: Vec::new() };
    let steps = split.steps(&kernel.body, &mut Vec::new())?;
    let made: Vec<(Code, Axes)> =
        split.parts.iter().map(|part| code(part, target)).collect::<Result<_, _>>()?;
    let main = main_function(kernel, &split.env);
    let launched: Vec<Launched> = made.iter().map(|(code, axes)| Launched::of(code, axes, &main)).collect();
    let functions: Vec<&Function> = launched.iter().map(|launched| &launched.function).collect();
    let region: Vec<HostStmt> =
        steps.iter().map(|step| host_stmt(&split.env, &launched, &main, step)).collect();
    let host = target.is_host().then_some((&main, region.as_slice()));
    let source = print::source(&functions, host, target, contraction);
    if let Some(lines) = lines {
        let mut parts = Vec::with_capacity(functions.len());
        for (kernel, function) in split.parts.iter().zip(&functions) {
            let barriers = PlacedKernel::of(&Analysis::of(kernel))?.placement.barriers;
            parts.push(Part { function, kernel, barriers });
        }
        *lines = of_source(&parts, host, target, contraction);
    }
    let mut entries = Vec::with_capacity(made.len());
    for ((part, (code, axes)), launched) in split.parts.iter().zip(&made).zip(&launched) {
        let mut features = launch::features(part, target, source.doubles, source.wide_atomics);
        features.extend(launch::features_of_calls(part, target)?);
        let mut plan = launch::plan(part, target, axes, code, features)?;
        // what is assumed of the parameters is checked once
        plan.preconditions.clone_from(&code.integers);
        let mut kept = launched.kept.iter();
        plan.args.retain(|_| kept.next() == Some(&true));
        entries.push(Entry { name: code.function.name.to_string(), plan });
    }
    let plan = whole_plan(kernel, &main, &entries, target)?;
    let untrusted = if trust { Vec::new() } else { callees::foreign(kernel, target)? };
    let repeated_writes = made.iter().any(|(code, _)| has_repeated_writes(&code.function.body));
    let steps = steps.iter().map(|step| host_step(kernel, step)).collect();
    let program = Program {
        target: target.target,
        entry: main.name.to_string(),
        source: source.text,
        plan,
        contraction,
        repeated_writes,
        untrusted,
        launches: Some(Sequence { entries, steps }),
    };
    Ok((program, made.into_iter().map(|(code, _)| code).collect()))
}

/// The function of a launch, with the values of the host's loops that it uses.
struct Launched<'a> {
    function: Function,
    /// Of each parameter of its kernel, whether it is one of the function.
    kept: Vec<bool>,
    axes: &'a Axes,
}

impl<'a> Launched<'a> {
    fn of(code: &Code, axes: &'a Axes, main: &Function) -> Self {
        let mut function = code.function.clone();
        let mut used = BTreeSet::new();
        crate::ast::names_in(&function.body, &mut used);
        let of_program = main.params.len();
        let params = function.params.iter().enumerate();
        let kept: Vec<bool> = params.map(|(k, p)| k < of_program || used.contains(&p.name)).collect();
        let mut flags = kept.iter();
        function.params.retain(|_| flags.next() == Some(&true));
        Self { function, kept, axes }
    }
}

fn code(part: &Kernel, target: &'static TargetDescription) -> Result<(Code, Axes), CodegenError> {
    lower(&PlacedKernel::of(&Analysis::of(part))?, target, None)
}

/// The function that runs everything, without its statements.
fn main_function(kernel: &Kernel, env: &Env<'_>) -> Function {
    Function {
        maps: Vec::new(),
        name: crate::names::entry(kernel),
        params: plain_parameters(kernel, &env.var_names),
        constants: Vec::new(),
        block: [1; 3],
        resident_groups: None,
        grid: Vec::new(),
        aligned: Vec::new(),
        provided: Vec::new(),
        kept: Vec::new(),
        items_of_last: None,
        body: Vec::new(),
    }
}

/// The plan of all launches together: their arguments, and the most that one of them takes.
fn whole_plan(
    kernel: &Kernel,
    main: &Function,
    entries: &[Entry],
    target: &TargetDescription,
) -> Result<LaunchPlan, CodegenError> {
    let plans = || entries.iter().map(|entry| &entry.plan);
    let mut args = launch::args(kernel, &main.params, target);
    for (k, arg) in args.iter_mut().enumerate() {
        let widest = plans().filter_map(|plan| Some(plan.args.get(k)?.aligned)).max();
        arg.aligned = widest.map_or(arg.aligned, |aligned| aligned.max(arg.aligned));
    }
    let hosts: Vec<&str> = kernel.inames.values().map(|iname| iname.name.as_str()).collect();
    let mut preconditions = launch::conditions(kernel)?;
    let of_entries = plans().flat_map(|plan| &plan.preconditions);
    preconditions.extend(of_entries.filter(|c| !c.value.mentions(&hosts)).cloned());
    let features: BTreeSet<_> = plans().flat_map(|plan| &plan.features).copied().collect();
    let most = |of: &dyn Fn(&LaunchPlan) -> u64| plans().map(of).max().unwrap_or(0);
    let mut notes = Vec::new();
    for note in plans().flat_map(|plan| &plan.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    Ok(LaunchPlan {
        args,
        maps: Vec::new(),
        grid: [const { HostExpr::Const(1) }; 3],
        block: [1; 3],
        local_bytes: most(&|plan| plan.local_bytes),
        dynamic_local_bytes: most(&|plan| plan.dynamic_local_bytes),
        private_bytes: most(&|plan| plan.private_bytes),
        features: features.into_iter().collect(),
        preconditions,
        defined: launch::defined(kernel)?,
        notes,
    })
}

impl Split<'_> {
    /// What the host does for some nodes, none of which is in a launch.
    fn steps(&mut self, nodes: &[Node], around: &mut Vec<Around>) -> Result<Vec<Step>, CodegenError> {
        let mut steps = Vec::new();
        for node in nodes {
            let Node::Loop(iname, body) = node else {
                let kernel = kingpost_ir::text::print(self.kernel);
                return Err(CodegenError::Internal { what: "an instruction in no launch".into(), kernel });
            };
            let is_launch = self.kernel.inames[*iname].tag == AxisTag::Launch;
            // the host has no loop for one value
            let domain = self.kernel.inames[*iname].domain.substitute(&|atom| constant(around, atom));
            let only = domain
                .as_range(*iname)
                .and_then(|(lo, hi)| lo.as_constant().filter(|lo| hi.as_constant() == Some(lo + 1)));
            if let Some(value) = only {
                around.push(Around { iname: *iname, value: Value::Constant(value) });
                steps.extend(self.inside(is_launch, body, around)?);
            } else {
                let Some((ty, lower, upper)) = self.range(*iname, &domain)? else { continue };
                around.push(Around { iname: *iname, value: Value::Parameter(ty) });
                let body = self.inside(is_launch, body, around)?;
                steps.push(Step::For { iname: *iname, ty, lower, upper, body });
            }
            around.pop();
        }
        Ok(steps)
    }

    fn inside(
        &mut self,
        is_launch: bool,
        body: &[Node],
        around: &mut Vec<Around>,
    ) -> Result<Vec<Step>, CodegenError> {
        if !is_launch {
            return self.steps(body, around);
        }
        let part = self.part(body, around)?;
        self.parts.push(part);
        Ok(vec![Step::Launch(self.parts.len() - 1)])
    }

    /// The type of the values of a loop, and its bounds; `None` if it has no value.
    #[allow(clippy::type_complexity)] // three things of one loop, taken apart at once
    fn range(
        &mut self,
        iname: InameId,
        domain: &Domain,
    ) -> Result<Option<(ScalarType, Vec<Affine>, Vec<Affine>)>, CodegenError> {
        let all = bounds::of_domain(domain, iname, &Constraint::clone);
        let range = range_of(&self.env, &all);
        self.env.set_range(iname, range);
        let mut all = all.into_iter();
        let (Some(only), None) = (all.next(), all.next()) else {
            return if domain.disjuncts().is_empty() { Ok(None) } else { Err(self.no_range(iname)) };
        };
        let plain = only.outer.is_empty() && only.inner.is_empty() && only.stride.is_none();
        let (lower, upper) = match only.exact {
            Some(value) => (vec![value.clone()], vec![value.plus_constant(1)]),
            None => (only.lower, only.upper),
        };
        if !plain || lower.is_empty() || upper.is_empty() {
            return Err(self.no_range(iname));
        }
        // the loop counts one further than its last value
        let counted = range.plus(crate::interval::Interval::new(0, 1));
        Ok(Some((if counted.fits_i32() { ScalarType::I32 } else { ScalarType::I64 }, lower, upper)))
    }

    fn no_range(&self, iname: InameId) -> CodegenError {
        let info = &self.kernel.inames[iname];
        let domain = self.kernel.show_domain(iname, &info.domain).to_string();
        CodegenError::HostLoop { iname: info.name.clone(), domain }
    }

    /// The kernel of a launch.
    fn part(&self, body: &[Node], around: &[Around]) -> Result<Kernel, CodegenError> {
        let mut part = Kernel { body: body.to_vec(), ..self.kernel.clone() };
        let stem = match around.last() {
            Some(launch) => format!("{}_{}", part.name, part.inames[launch.iname].name),
            None => part.name.clone(),
        };
        let mut name = stem.clone();
        let mut k = 0;
        while !self.kernel.is_free_name(&name)
            || name == crate::names::launcher(&self.kernel.name)
            || self.parts.iter().any(|other| other.name == name)
        {
            k += 1;
            name = format!("{stem}_{k}");
        }
        part.name = name;
        forget_others(&mut part);
        let mut values: Vec<(InameId, Affine)> = Vec::with_capacity(around.len());
        for Around { iname, value } in around {
            let stands = match value {
                Value::Constant(c) => Affine::constant(*c),
                Value::Parameter(ty) => {
                    let name = part.inames[*iname].name.clone();
                    rename_rule_params(&mut part, &name);
                    let param = Variable::new(name, *ty, VarKind::Param, [], AddressSpace::Private);
                    Affine::var(part.vars.push(param))
                }
            };
            values.push((*iname, stands));
        }
        let known = |iname: InameId| values.iter().find(|(i, _)| *i == iname).map(|(_, e)| e.clone());
        let replace = |atom: &Atom| match atom {
            Atom::Iname(i) => known(*i),
            Atom::Var(_) | Atom::Floor(..) => None,
        };
        for (iname, _) in &values {
            let domain = part.inames[*iname].domain.substitute(&replace);
            part.assumptions.extend(domain.disjuncts().iter().flatten().cloned().map(Assumption::Params));
        }
        for iname in part.inames.values_mut() {
            iname.domain = iname.domain.substitute(&replace);
        }
        for insn in part.insns.values_mut() {
            insn.map_expressions(&mut |e| match e {
                Ir::Iname(i) => known(i).map_or(Ir::Iname(i), |e| Ir::from_affine(&e)),
                other @ (Ir::Int(_)
                | Ir::Real(_)
                | Ir::Load(_)
                | Ir::Unary(..)
                | Ir::Binary(..)
                | Ir::Call(..)
                | Ir::Cast(..)
                | Ir::Select(..)
                | Ir::Reduce(_)
                | Ir::Rule(..)
                | Ir::RuleParam(_)) => other,
            });
        }
        let part = part.canonical();
        part.verify().map_err(|error| CodegenError::Internal {
            what: format!("a launch that is not well formed: {error}"),
            kernel: kingpost_ir::text::print(self.kernel),
        })?;
        Ok(part)
    }
}

/// Gives another name to parameters of rules that have this one, as a loop outside the rule may.
fn rename_rule_params(part: &mut Kernel, name: &str) {
    let fresh = part.fresh_name(name);
    for param in part.rules.values_mut().flat_map(|rule| &mut rule.params) {
        if param == name {
            param.clone_from(&fresh);
        }
    }
}

/// The value of a loop that has no other one.
fn constant(around: &[Around], atom: &Atom) -> Option<Affine> {
    let Atom::Iname(iname) = atom else { return None };
    around.iter().find(|of| of.iname == *iname).and_then(|of| match of.value {
        Value::Constant(value) => Some(Affine::constant(value)),
        Value::Parameter(_) => None,
    })
}

/// Takes out of the kernel of a launch what only other launches use, and what is assumed of arrays that
/// they may change.
fn forget_others(part: &mut Kernel) {
    let mut used = BTreeSet::new();
    // what rules read is read where they are used
    let whole = part.with_rules_expanded();
    for (insn, loops) in whole.schedule() {
        let insn = &whole.insns[insn];
        used.insert(insn.lhs.var);
        used.extend(insn.reads().iter().map(|access| access.var));
        for iname in loops {
            whole.inames[iname].domain.for_each_symbol(&mut |atom| match atom {
                Atom::Var(var) => {
                    used.insert(*var);
                }
                Atom::Iname(_) | Atom::Floor(..) => {}
            });
        }
    }
    for id in reduction_symbols(&whole) {
        used.insert(id);
    }
    for id in part.vars.ids() {
        let var = &mut part.vars[id];
        let local = var.kind == VarKind::Temporary && var.space != AddressSpace::Global;
        if local && !used.contains(&id) {
            (var.space, var.layout, var.storage) = (AddressSpace::Private, Layout::default(), None);
            var.shape.clear();
        }
    }
    let written: BTreeSet<VarId> = part.insns.values().map(|insn| insn.lhs.var).collect();
    part.assumptions.retain(|assumption| match assumption {
        Assumption::Params(_) | Assumption::Defined(..) => true,
        Assumption::Injective(var) | Assumption::Ascending(var) => !written.contains(var),
        Assumption::Outside(outside) => !written.contains(&outside.array),
        Assumption::Symmetric(symmetry) => !written.contains(&symmetry.var),
        Assumption::Lists(_) => true,
    });
}

/// The scalars in the domains of reductions.
fn reduction_symbols(part: &Kernel) -> Vec<VarId> {
    let mut found = Vec::new();
    for (insn, _) in part.schedule() {
        let insn = &part.insns[insn];
        for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
            e.for_each(&mut |e| {
                let Ir::Reduce(reduction) = e else { return };
                for iname in &reduction.inames {
                    part.inames[*iname].domain.for_each_symbol(&mut |atom| {
                        if let Atom::Var(var) = atom {
                            found.push(*var);
                        }
                    });
                }
            });
        }
    }
    found
}

/// Bounds as one expression of the host.
fn extreme(kernel: &Kernel, bounds: &[Affine], largest: bool) -> HostExpr {
    let join = |a: HostExpr, b: HostExpr| match largest {
        true => HostExpr::Max(Box::new(a), Box::new(b)),
        false => HostExpr::Min(Box::new(a), Box::new(b)),
    };
    bounds.iter().map(|e| host_expr(kernel, e)).reduce(join).unwrap_or(HostExpr::Const(0))
}

fn host_step(kernel: &Kernel, step: &Step) -> HostStep {
    match step {
        Step::Launch(k) => HostStep::Launch(*k),
        Step::For { iname, ty: _, lower, upper, body } => HostStep::For {
            name: kernel.inames[*iname].name.clone(),
            lower: extreme(kernel, lower, true),
            upper: extreme(kernel, upper, false),
            body: body.iter().map(|step| host_step(kernel, step)).collect(),
        },
    }
}

/// A step as code of the function that runs everything.
fn host_stmt(env: &Env<'_>, made: &[Launched<'_>], main: &Function, step: &Step) -> HostStmt {
    match step {
        Step::Launch(k) => {
            let Launched { function, axes, .. } = &made[*k];
            let of_values = &function.params[main.params.len()..];
            let params = main.params.iter().map(|p| Expr::var(&p.name));
            let values = of_values.iter().map(|p| Expr::var(&name_of(env, &p.name)));
            let groups = function.grid.iter().map(|(axis, _)| {
                axes.grid[usize::from(*axis)].as_ref().map_or(Expr::int(1), |axis| extent(env, &axis.extent))
            });
            HostStmt::Launch {
                function: function.name.clone(),
                args: params.chain(values).chain(groups).collect(),
                shared: !function.grid.is_empty(),
            }
        }
        Step::For { iname, ty, lower, upper, body } => {
            let join = |function| {
                move |(a, _): (Expr, ScalarType), (b, _): (Expr, ScalarType)| {
                    (Expr::IntCall(function, ScalarType::I64, Box::new(a), Box::new(b)), ScalarType::I64)
                }
            };
            let code = |e: &Affine| {
                let (code, ty, _) = integer(env, e);
                (code, ty)
            };
            let one = |bounds: &[Affine], function| {
                bounds.iter().map(code).reduce(join(function)).map_or(Expr::int(0), |(code, _)| code)
            };
            HostStmt::For {
                name: env.name(*iname).clone(),
                ty: *ty,
                lower: one(lower, IntFn::Max),
                upper: one(upper, IntFn::Min),
                body: body.iter().map(|step| host_stmt(env, made, main, step)).collect(),
            }
        }
    }
}

/// The name in the function that runs everything of what has this name in the kernel.
fn name_of(env: &Env<'_>, name: &str) -> Name {
    let kernel = env.kernel;
    let of_iname = kernel.iname(name).map(|iname| env.name(iname).clone());
    let of_var = || kernel.var(name).map(|var| env.var_names[kingpost_ir::Id::index(var)].clone());
    of_iname.or_else(of_var).unwrap_or_else(|| name.into())
}

/// A number of groups as code in 64 bits.
fn extent(env: &Env<'_>, e: &HostExpr) -> Expr {
    let call = |function, a: &HostExpr, b: &HostExpr| {
        let (a, b) = (Box::new(extent(env, a)), Box::new(extent(env, b)));
        Expr::IntCall(function, ScalarType::I64, a, b)
    };
    match e {
        HostExpr::Const(c) => Expr::Int(*c, ScalarType::I64),
        HostExpr::Param(name) => Expr::Cast(ScalarType::I64, Box::new(Expr::var(&name_of(env, name)))),
        HostExpr::Add(a, b) => Expr::binary(Op::Add, extent(env, a), extent(env, b)),
        HostExpr::Mul(a, b) => Expr::binary(Op::Mul, extent(env, a), extent(env, b)),
        HostExpr::FloorDiv(a, b) => call(IntFn::FloorDiv, a, b),
        HostExpr::Max(a, b) => call(IntFn::Max, a, b),
        HostExpr::Min(a, b) => call(IntFn::Min, a, b),
    }
}
