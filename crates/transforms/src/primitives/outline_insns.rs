//! Makes a callee of statements.

use kingpost_analysis::Analysis;
use kingpost_ir::{
    Access, AddressSpace, Affine, Arena, Atom, Callee, Direction, Domain, Expr, InameId, Insn, InsnId,
    Kernel, Node, ScalarType, VarId, VarKind, Variable,
};
use kingpost_steps::Means;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::windows::{ArgAxis, axes_of};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::{self, CONTIGUOUS, NOT_CALLED, Run};
use kingpost_steps::tree::{inames_of, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Makes a callee of neighbouring statements, and a call of it where they stand.
///
/// What the statements touch of an array becomes an argument: a window that starts where they
/// start, if that is an affine function of the loops around and the window's extent is one of the
/// parameters, else the whole axis. What they read of loops around, parameters and integer scalars
/// becomes parameters, other scalars become values.
///
/// # Rewrite
/// ```text
/// for i in 0..n                         callee row
///   for j in 0..4                =>       arg a: f64[4] in
///     s: y[i] += a[i, j]                  arg y: f64 inout
///
///                                         for j in 0..4
///                                           s: y += a[j]
///
///                                       for i in 0..n
///                                         call row  # a = a[i, 0..], y = y[i]
///                                           for j in 0..4
///                                             s: y[i] += a[i, j]
/// ```
///
/// # Precondition
/// With its arguments put in, the callee has the same instances and accesses: shown by unifying the
/// statements with it ([`kingpost_ir::calls::unify`]).
///
/// # Errors
/// Unknown names, statements that are no run, a name that is taken, statements that belong to a
/// call, bounds from which no parameter can be told.
///
/// # Elsewhere
/// Exo `extract_subproc`; Loopy's callable kernels; MLIR `transform.loop.outline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutlineInsns {
    /// Names of the instructions and loops; neighbours.
    pub statements: Vec<String>,
    /// Name of the callee.
    pub name: String,
}

impl OutlineInsns {
    /// Makes the callee `name` of the statements.
    pub fn new<S: Into<String>>(statements: impl IntoIterator<Item = S>, name: impl Into<String>) -> Self {
        Self { statements: statements.into_iter().map(Into::into).collect(), name: name.into() }
    }
}

impl fmt::Display for OutlineInsns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.statements.iter().map(|n| format!("`{n}`")).collect();
        let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        write!(f, "outline {names} as `{}`", self.name)
    }
}

/// A call says what it means.
const ARGUMENTS: Obligation = Obligation::new(
    "outline_insns.arguments",
    "the arguments of the call can be told from the statements, which are the callee with them put in",
);

/// Statements, and the callee that they are.
pub struct Outlined {
    statements: Vec<Node>,
    callee: Callee,
}

impl Primitive for OutlineInsns {
    const NAME: &'static str = "outline_insns";
    const SUMMARY: &'static str = "Makes a callee of statements, and a call of it where they stand.";

    type Proof = Outlined;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[ARGUMENTS, CONTIGUOUS, NOT_CALLED];

    fn check(&self, analysis: &Analysis) -> Result<Outlined, Refusal> {
        let kernel = analysis.kernel();
        lookup::free(kernel, &self.name)?;
        let run = run::named(kernel, &self.statements)?;
        let callee = Outline::new(analysis, run.nodes)?.callee(&self.name);
        callee.verify()?;
        let proof = Outlined { statements: run.nodes.to_vec(), callee: Callee::new(callee.canonical()) };
        match self.draft(kernel, &proof).calls() {
            Ok(_) => {
                ARGUMENTS.holds(Means::Form, String::new);
                Ok(proof)
            }
            Err(kingpost_ir::KernelError::Call { why, .. }) => Err(ARGUMENTS.undecided(format!(
                "the arguments cannot be told from the statements: {why}; outline the loops around as well"
            ))),
            Err(other) => Err(Refusal::Malformed(other)),
        }
    }

    fn edit(&self, kernel: &mut Kernel, Outlined { statements, callee }: &Outlined) {
        let callee = kernel.callees.push(callee.clone());
        Run { nodes: statements }.mark(kernel, callee);
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(draw::some_statements(kernel, p)?, kernel.fresh_name("part")))
    }
}

/// What becomes of the variables and loops that statements mention.
struct Outline<'k> {
    kernel: &'k Kernel,
    nodes: &'k [Node],
    /// Loops and reductions inside.
    inside: Vec<InameId>,
    insns: Vec<InsnId>,
    /// How each array becomes an argument.
    arrays: BTreeMap<VarId, Vec<ArgAxis>>,
    written: BTreeSet<VarId>,
}

impl<'k> Outline<'k> {
    fn new(analysis: &'k Analysis, nodes: &'k [Node]) -> Result<Self, Refusal> {
        let (kernel, poly) = (analysis.expanded(), analysis.polyhedral());
        let insns = insns_of(nodes);
        let mut this = Self {
            kernel,
            nodes,
            inside: inames_of(kernel, nodes),
            written: insns.iter().map(|s| kernel.insns[*s].lhs.var).collect(),
            insns,
            arrays: BTreeMap::new(),
        };
        let mut accesses: BTreeMap<VarId, Vec<&Access>> = BTreeMap::new();
        for insn in &this.insns {
            let insn = &kernel.insns[*insn];
            for access in insn.reads().into_iter().chain([&insn.lhs]) {
                accesses.entry(access.var).or_default().push(access);
            }
        }
        for (var, accesses) in accesses {
            // numbers of fewer than 32 bits are not passed by value
            let small = kernel.vars[var].ty.bytes() < 4;
            if small || !kernel.vars[var].shape.is_empty() || this.written.contains(&var) {
                this.arrays.insert(var, axes_of(poly, &this.inside, var, &accesses)?);
            }
        }
        Ok(this)
    }

    /// The statements as a kernel of their own.
    fn callee(&self, name: &str) -> Kernel {
        let mut to = Translation {
            outline: self,
            vars: BTreeMap::new(),
            outer: BTreeMap::new(),
            callee: Kernel::default(),
        };
        to.callee.name = name.to_owned();
        // Where an iname goes is known from the start: they keep their order.
        for iname in &self.inside {
            to.callee.inames.push(kingpost_ir::Iname {
                domain: Domain::universe(),
                ..self.kernel.inames[*iname].clone()
            });
        }
        let domains: Vec<Domain> =
            self.inside.iter().map(|i| to.domain(&self.kernel.inames[*i].domain)).collect();
        for (iname, domain) in to.callee.inames.values_mut().zip(domains) {
            iname.domain = domain;
        }
        let insns: Vec<Insn> = self.insns.iter().map(|s| to.insn(&self.kernel.insns[*s])).collect();
        to.callee.insns = insns.into_iter().collect();
        to.callee.body = to.nodes(self.nodes);
        to.ordered()
    }
}

/// The place of each, all of which are there.
fn numbers<T: Copy + Ord>(all: &[T]) -> BTreeMap<T, usize> {
    all.iter().enumerate().map(|(k, id)| (*id, k)).collect()
}

/// From the names of the caller to those of the callee, which is put together on the way.
struct Translation<'a, 'k> {
    outline: &'a Outline<'k>,
    callee: Kernel,
    vars: BTreeMap<VarId, VarId>,
    /// Parameters that stand for loops around the statements.
    outer: BTreeMap<InameId, VarId>,
}

impl Translation<'_, '_> {
    fn var(&mut self, var: VarId) -> VarId {
        if let Some(known) = self.vars.get(&var) {
            return *known;
        }
        let outline = self.outline;
        let from = &outline.kernel.vars[var];
        let direction = if outline.written.contains(&var) { Direction::InOut } else { Direction::In };
        let (kind, axes) = match outline.arrays.get(&var) {
            Some(axes) => (VarKind::Argument(direction), axes.as_slice()),
            None if from.ty.is_exact() => (VarKind::Param, [].as_slice()),
            None => (VarKind::Argument(Direction::In), [].as_slice()),
        };
        let shape: Vec<Affine> = axes.iter().filter_map(ArgAxis::extent).map(|e| self.affine(e)).collect();
        let value = shape.is_empty() && direction == Direction::In && from.ty.bytes() >= 4;
        let space = if value { AddressSpace::Private } else { AddressSpace::Global };
        let id = self.callee.vars.push(Variable::new(from.name.clone(), from.ty, kind, shape, space));
        self.vars.insert(var, id);
        id
    }

    fn iname(&mut self, iname: InameId) -> Affine {
        use kingpost_ir::Id;
        if let Some(k) = self.outline.inside.iter().position(|i| *i == iname) {
            return Affine::iname(InameId::from_index(k));
        }
        let known = self.outer.get(&iname).copied();
        Affine::var(known.unwrap_or_else(|| {
            let name = self.outline.kernel.inames[iname].name.clone();
            let param = Variable::new(name, ScalarType::I64, VarKind::Param, [], AddressSpace::Private);
            let id = self.callee.vars.push(param);
            self.outer.insert(iname, id);
            id
        }))
    }

    fn affine(&mut self, e: &Affine) -> Affine {
        let symbols = self.symbols(|visit| e.for_each_symbol(visit));
        e.substitute(&|atom| symbols.get(atom).cloned())
    }

    fn domain(&mut self, domain: &Domain) -> Domain {
        let symbols = self.symbols(|visit| domain.for_each_symbol(visit));
        domain.substitute(&|atom| symbols.get(atom).cloned())
    }

    /// What stands in the callee for each iname and variable that is visited.
    fn symbols(&mut self, for_each: impl Fn(&mut dyn FnMut(&Atom))) -> BTreeMap<Atom, Affine> {
        let mut found = BTreeSet::new();
        for_each(&mut |atom| {
            found.insert(atom.clone());
        });
        let translated = found.into_iter().filter_map(|atom| {
            let value = match &atom {
                Atom::Iname(i) => self.iname(*i),
                Atom::Var(v) => Affine::var(self.var(*v)),
                Atom::Floor(..) => return None,
            };
            Some((atom, value))
        });
        translated.collect()
    }

    fn access(&mut self, access: &Access) -> Access {
        let axes = self.outline.arrays.get(&access.var);
        let index = access.index.iter().enumerate().filter_map(|(k, e)| match axes.and_then(|a| a.get(k)) {
            Some(axis) => axis.index(e).map(|e| self.expr(&e)),
            None => Some(self.expr(e)),
        });
        let index: Vec<Expr> = index.collect();
        Access { var: self.var(access.var), index }
    }

    /// From outside in: an index is translated with its access.
    fn expr(&mut self, e: &Expr) -> Expr {
        let boxed = |this: &mut Self, e: &Expr| Box::new(this.expr(e));
        match e {
            Expr::Int(_) | Expr::Real(_) | Expr::RuleParam(_) => e.clone(),
            Expr::Iname(i) => Expr::from_affine(&self.iname(*i)),
            Expr::Load(access) => Expr::Load(self.access(access)),
            Expr::Unary(op, a) => Expr::Unary(*op, boxed(self, a)),
            Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(self, a), boxed(self, b)),
            Expr::Call(f, args) => Expr::Call(*f, args.iter().map(|a| self.expr(a)).collect()),
            Expr::Cast(ty, a) => Expr::Cast(*ty, boxed(self, a)),
            Expr::Select(c, a, b) => Expr::Select(boxed(self, c), boxed(self, a), boxed(self, b)),
            Expr::Reduce(r) => {
                let inames = r.inames.iter().filter_map(|i| self.iname(*i).as_iname()).collect();
                Expr::Reduce(kingpost_ir::Reduction { op: r.op, inames, body: boxed(self, &r.body) })
            }
            Expr::Rule(rule, args) => Expr::Rule(*rule, args.iter().map(|a| self.expr(a)).collect()),
        }
    }

    fn insn(&mut self, insn: &Insn) -> Insn {
        Insn {
            name: insn.name.clone(),
            lhs: self.access(&insn.lhs),
            op: insn.op,
            rhs: self.expr(&insn.rhs),
            predicate: insn.predicate.as_ref().map(|p| self.expr(p)),
            tags: insn.tags.clone(),
            callee: None,
        }
    }

    fn nodes(&self, nodes: &[Node]) -> Vec<Node> {
        use kingpost_ir::Id;
        let (insns, inames) = (numbers(&self.outline.insns), numbers(&self.outline.inside));
        let translated = nodes.iter().map(|node| match node {
            Node::Insn(insn) => Node::Insn(InsnId::from_index(insns[insn])),
            Node::Loop(iname, inner) => Node::Loop(InameId::from_index(inames[iname]), self.nodes(inner)),
        });
        translated.collect()
    }

    /// Parameters first, then the arguments in the caller's order.
    fn ordered(self) -> Kernel {
        use kingpost_ir::Id;
        let of_caller: BTreeMap<VarId, VarId> = self.vars.iter().map(|(from, to)| (*to, *from)).collect();
        let mut order: Vec<VarId> = self.callee.vars.ids().collect();
        order.sort_by_key(|id| {
            let kind = &self.callee.vars[*id].kind;
            (*kind != VarKind::Param, of_caller.get(id).map_or(usize::MAX, |v| v.index()))
        });
        let places = numbers(&order);
        let moved = |v: VarId| VarId::from_index(places[&v]);
        let mut kernel = self.callee.clone();
        kernel.vars = order.iter().map(|v| self.callee.vars[*v].clone()).collect::<Arena<_, _>>();
        let replace = |atom: &Atom| match atom {
            Atom::Var(v) => Some(Affine::var(moved(*v))),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        for var in kernel.vars.values_mut() {
            var.shape = var.shape.iter().map(|e| e.substitute(&replace)).collect();
        }
        for iname in kernel.inames.values_mut() {
            iname.domain = iname.domain.substitute(&replace);
        }
        let mut rewrite = |e: Expr| match e {
            Expr::Load(a) => Expr::Load(Access { var: moved(a.var), index: a.index }),
            other => other,
        };
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
            insn.lhs.var = moved(insn.lhs.var);
        }
        kernel
    }
}
