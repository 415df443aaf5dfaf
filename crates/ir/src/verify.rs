//! What makes a kernel well formed.
//!
//! 0. Every id stands for something of this kernel, and affine expressions are in normal form.
//! 1. Names are identifiers, none a keyword, and all different (the kernel's own may recur).
//! 2. Every iname stands for exactly one loop or reduction; every instruction stands once in the tree.
//! 3. A domain mentions its own iname, inames around it, parameters and integer scalars, no others,
//!    and its own iname in every disjunct.
//! 4. Expressions mention inames around them only and have types; what is stored fits its variable;
//!    predicates are truth values.
//! 5. Nothing writes to a parameter, an `in` argument, a table or constant memory.
//! 6. Shapes and strides mention parameters only; strides keep elements of temporaries apart, and may keep
//!    those of arguments apart ([`Spacing`](crate::Spacing)); tables have constant shapes and as many values.
//!    A parameter that is computed is computed once, by integer operations on parameters above it.
//! 7. Arguments are global (scalars are passed by value); temporaries are not `constant`.
//! 8. Rules use earlier rules only, and neither inames nor reductions; the names of their parameters
//!    are names, all different, and name nothing else. Expanded, a rule is as deep as an expression
//!    may be and holds at most a million operations.
//! 9. Coefficients are at most [`MAX_COEFFICIENT`](crate::affine::MAX_COEFFICIENT).
//! 10. Axes are 0, 1 or 2; an iname and one around it never share an axis. The iname of a reduction
//!     is on none: a sum is accumulated where its instruction runs.
//! 11. Loops of launches are not nested, and where there is one, every instruction is in one. Loops around
//!     them are untagged; their bounds and those of the launches mention parameters and each other.
//! 12. Callees are well formed, hold parameters and arguments only, and every instruction that names
//!     one belongs to a call of it ([`crate::calls`]).
//! 13. A symmetry that is assumed maps the elements of its array onto each other, axes onto axes of
//!     one extent; negative values are reals.
//! 14. Expressions are nested at most [`MAX_DEPTH`] operations deep, with at most [`MAX_PATH`] on a path
//!     to a leaf ([`crate::depth`]), loops [`MAX_LOOP_DEPTH`], so that recursion over them fits any stack.

use crate::affine::{Affine, Atom};
use crate::depth::{MAX_RULE_SIZE, exceeded, is_endless, with_room};
use crate::domain::Domain;
use crate::expr::Expr;
use crate::ids::{Id, InameId, InsnId, VarId};
use crate::kernel::{AddressSpace, Assumption, AxisTag, Direction, Iname, Insn, Kernel, Node, VarKind};
use crate::layout::broken_swizzle;
use crate::places::Places;
use crate::records::Declared;
use crate::types::{Class, ScalarType};
use crate::typing::{ExprType, TypeError};
use foldhash::fast::FixedState;
use std::collections::HashSet;

pub use crate::depth::{MAX_DEPTH, MAX_PATH};
pub use crate::keywords::{KEYWORDS, is_identifier, is_name};

/// Maximum number of loops around an instruction, reductions included.
pub const MAX_LOOP_DEPTH: usize = 64;

/// Why a kernel is not well formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum KernelError {
    #[error("`{name}` is not a name: use a letter or `_`, then letters, digits and `_`, and no keyword")]
    BadName { name: String },
    #[error("`{name}` names two things; rename one")]
    DuplicateName { name: String },
    #[error("iname `{iname}` is a loop {count} times; every loop needs a name of its own")]
    InameUses { iname: String, count: usize },
    #[error("instruction `{insn}` stands {count} times in the loop tree, needed once")]
    InsnUses { insn: String, count: usize },
    #[error("{what} mentions `{name}`, which is not known there; {help}")]
    OutOfScope { what: String, name: String, help: &'static str },
    #[error("the domain of `{iname}` does not mention it; give it bounds")]
    UnboundedIname { iname: String },
    #[error("{what}: {source}")]
    Type { what: String, source: TypeError },
    #[error("`{insn}` stores {found} in `{var}`, which holds {needed}; cast the value")]
    Store { insn: String, var: String, needed: crate::ScalarType, found: ExprType },
    #[error(
        "`{insn}` updates `{var}`, which holds {found}, by `{op}`, which joins {needed}; use another operator"
    )]
    Update { insn: String, var: String, op: &'static str, needed: &'static str, found: crate::ScalarType },
    #[error("the predicate of `{insn}` is {found}, needed a truth value such as `i < n`")]
    Predicate { insn: String, found: ExprType },
    #[error("`{insn}` writes to `{var}`, which is {kind}; declare it `out`, `inout` or `temp`")]
    ReadOnly { insn: String, var: String, kind: &'static str },
    #[error("table `{var}` has {found} values of its type, its shape needs {needed}")]
    TableSize { var: String, needed: String, found: usize },
    #[error("`{var}` cannot live in {space} memory: {why}")]
    Space { var: String, space: &'static str, why: &'static str },
    #[error("`{var}`: {why}")]
    Variable { var: String, why: &'static str },
    #[error("{found} resident groups are not within 1 to 32")]
    ResidentGroups { found: u32 },
    #[error("rule `{rule}` {why}")]
    Rule { rule: String, why: &'static str },
    #[error("{what} has a coefficient beyond 2^40; use smaller numbers")]
    Overflow { what: String },
    #[error("loops `{outer}` and `{inner}` are nested and both tagged {tag}; give them different axes")]
    NestedAxis { outer: String, inner: String, tag: AxisTag },
    #[error(
        "`{iname}` is tagged {tag} and runs inside a reduction, which is accumulated in order; realise the reduction \
         first, or unroll `{iname}`"
    )]
    ReductionTag { iname: String, tag: AxisTag },
    #[error("{what} mentions {found}; build kernels from text or with `KernelBuilder`")]
    Reference { what: String, found: String },
    #[error("{what} is more than {limit} {unit} deep; split it")]
    TooDeep { what: String, limit: usize, unit: &'static str },
    #[error(
        "`{inner}` is a launch inside `{outer}`, which is tagged {tag}; a launch stands in untagged loops only"
    )]
    LaunchInside { outer: String, inner: String, tag: AxisTag },
    #[error(
        "the domain of `{iname}`, which launches stand in, mentions `{var}`, which is no parameter; keep launches out \
         of that loop"
    )]
    LaunchBound { iname: String, var: String },
    #[error("`{insn}` is in no launch, and other instructions are; split the launches, or put it into one")]
    OutsideLaunches { insn: String },
    #[error("`{insn}` {why}")]
    Records { insn: String, why: &'static str },
    #[error(
        "`{insn}` is too large where declared functions are what they compute; store parts of it in temporaries"
    )]
    Meanings { insn: String },
    #[error("callee `{callee}`: {why}")]
    Callee { callee: String, why: String },
    #[error("what stands in the call of `{callee}` is not `{callee}`: {why}; inline the call first")]
    Call { callee: String, why: Box<crate::calls::Mismatch> },
}

/// Why strides are refused.
pub const SHARED_PLACES: &str =
    "its strides may put two elements in one place; use larger ones, or assume what the parameters satisfy";

impl Kernel {
    /// Checks the rules at the head of this module.
    ///
    /// # Errors
    /// The first rule that is broken, with the names concerned.
    pub fn verify(&self) -> Result<(), KernelError> {
        self.verify_but(&[])
    }

    /// As [`Kernel::verify`], without a look into instructions that are known to be as rules 0, 4,
    /// 5, 9 and 14 have them: because a well-formed kernel has them in the same loops, with
    /// variables of the same kinds, types and ranks, and with the same rules.
    ///
    /// # Errors
    /// As [`Kernel::verify`].
    pub fn verify_but(&self, known: &[InsnId]) -> Result<(), KernelError> {
        let mut is_known = vec![false; self.insns.len()];
        for s in known {
            is_known.get_mut(s.index()).into_iter().for_each(|known| *known = true);
        }
        let new = || self.insns.values().zip(&is_known).filter(|(_, known)| !**known).map(|(insn, _)| insn);
        if let Some(insn) = new().find(|insn| insn.expressions().any(is_endless)) {
            let what = format!("an expression of `{}`", insn.name);
            return Err(KernelError::TooDeep { what, limit: MAX_PATH, unit: "operations" });
        }
        with_room(self.longest_path_of(new()), || self.verify_all(is_known.clone()))
    }

    fn verify_all(&self, is_known: Vec<bool>) -> Result<(), KernelError> {
        let beyond = self.launch.resident_groups.filter(|n| !crate::RESIDENT_GROUPS.contains(n));
        beyond.map_or(Ok(()), |found| Err(KernelError::ResidentGroups { found }))?;
        self.verify_references(&is_known)?;
        self.verify_names()?;
        let has_externals = !self.verify_declared()?.externals.is_empty();
        for var in self.vars.ids() {
            self.verify_variable(var)?;
        }
        self.verify_rules()?;
        for assumption in &self.assumptions {
            match assumption {
                Assumption::Params(c) => self.verify_parametric(&|| "an assumption".into(), c.expr())?,
                Assumption::Defined(param, value) => self.verify_definition(*param, value)?,
                Assumption::Injective(v) => {
                    self.verify_integers(*v, "injective needs an integer array", &|axes| axes > 0)?;
                }
                Assumption::Ascending(v) => {
                    let why = "ascending needs an integer array of one axis";
                    self.verify_integers(*v, why, &|axes| axes == 1)?;
                }
                Assumption::Outside(outside) => outside.verify(self)?,
                Assumption::Symmetric(symmetry) => self.verify_symmetry(symmetry)?,
                Assumption::Lists(lists) => lists.verify(self)?,
            }
        }
        self.verify_spacing()?;
        let mut walk = Walk {
            kernel: self,
            is_known,
            iname_uses: vec![0; self.inames.len()],
            insn_uses: vec![0; self.insns.len()],
            scope: Vec::new(),
            has_launches: self.has_launches(),
            has_externals,
        };
        walk.nodes(&self.body)?;
        walk.finish()?;
        crate::calls::verify_calls(self)
    }

    fn verify_names(&self) -> Result<(), KernelError> {
        let mut names: Vec<&str> = self
            .vars
            .values()
            .map(|v| &v.name)
            .chain(self.inames.values().map(|i| &i.name))
            .chain(self.insns.values().map(|i| &i.name))
            .chain(self.rules.values().map(|r| &r.name))
            .chain(self.callees.values().map(|c| &c.kernel.name))
            .map(String::as_str)
            .collect();
        // The kernel's own name may stand for something inside as well.
        if let Some(name) = names.iter().chain([&self.name.as_str()]).find(|n| !is_identifier(n)) {
            return Err(KernelError::BadName { name: (*name).to_owned() });
        }
        let mut seen = HashSet::with_capacity_and_hasher(names.len(), FixedState::default());
        if names.iter().all(|name| seen.insert(*name)) {
            return Ok(());
        }
        // the first in alphabetical order
        names.sort_unstable();
        match names.windows(2).find(|w| w[0] == w[1]) {
            Some(w) => Err(KernelError::DuplicateName { name: w[0].to_owned() }),
            None => Ok(()),
        }
    }

    /// Names and types of records, operators and declared functions; what the functions compute may stand
    /// for their calls.
    fn verify_declared(&self) -> Result<Declared, KernelError> {
        let declared = self.declared();
        if declared.is_empty() {
            return Ok(declared);
        }
        let mut inside: Vec<&str> = declared.names().collect();
        inside.extend(declared.records.iter().flat_map(|r| r.fields.iter().map(|field| field.name.as_str())));
        inside.extend(declared.operators.iter().flat_map(|op| op.params.iter().map(String::as_str)));
        inside.extend(declared.externals.iter().flat_map(|f| f.params.iter().map(|p| p.name.as_str())));
        if let Some(name) = inside.into_iter().find(|name| !is_name(name)) {
            return Err(KernelError::BadName { name: name.to_owned() });
        }
        let mut names: Vec<&str> = declared.names().collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|w| w[0] == w[1]).map(|w| w[0]);
        if let Some(name) = twice.or_else(|| names.into_iter().find(|name| !self.is_free_name(name))) {
            return Err(KernelError::DuplicateName { name: name.to_owned() });
        }
        for operator in &declared.operators {
            operator.check().map_err(|source| KernelError::Type {
                what: format!("operator `{}`", operator.name()),
                source,
            })?;
        }
        for function in &declared.externals {
            function
                .check()
                .map_err(|source| KernelError::Type { what: format!("`{}`", function.name()), source })?;
        }
        let of_record = |var: &VarId| self.vars[*var].ty.class() == Class::Record;
        let mirrored = self.assumptions.iter().find_map(|assumption| match assumption {
            Assumption::Symmetric(symmetry) => Some(symmetry.var).filter(of_record),
            Assumption::Params(_)
            | Assumption::Defined(..)
            | Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Lists(_) => None,
        });
        if let Some(var) = mirrored {
            let why = "only arrays of numbers are symmetric";
            return Err(KernelError::Variable { var: self.vars[var].name.clone(), why });
        }
        Ok(declared)
    }

    fn verify_parametric(&self, what: &dyn Fn() -> String, e: &Affine) -> Result<(), KernelError> {
        if !e.in_bounds() {
            return Err(KernelError::Overflow { what: what() });
        }
        let mut bad = None;
        e.for_each_symbol(&mut |atom| match atom {
            Atom::Var(v) if self.vars[*v].kind == VarKind::Param => {}
            Atom::Var(v) => bad = Some(self.vars[*v].name.clone()),
            Atom::Iname(i) => bad = Some(self.inames[*i].name.clone()),
            Atom::Floor(..) => {}
        });
        match bad {
            None => Ok(()),
            Some(name) => {
                Err(KernelError::OutOfScope { what: what(), name, help: "only parameters may stand there" })
            }
        }
    }

    /// Strides keep elements apart: of arguments, a launch checks what is not proved.
    fn verify_spacing(&self) -> Result<(), KernelError> {
        let broken = self.vars.values().find(|var| match self.unproved_spacing(var) {
            Ok(open) => !open.is_empty() && !matches!(var.kind, VarKind::Argument(_)),
            Err(_) => true,
        });
        let why = SHARED_PLACES;
        broken.map_or(Ok(()), |var| Err(KernelError::Variable { var: var.name.clone(), why }))
    }

    fn verify_variable(&self, id: VarId) -> Result<(), KernelError> {
        let var = &self.vars[id];
        let error = |why| Err(KernelError::Variable { var: var.name.clone(), why });
        let strides = var.layout.strides().unwrap_or_default();
        for e in var.shape.iter().chain(strides) {
            self.verify_parametric(&|| format!("the shape of `{}`", var.name), e)?;
        }
        let mut order = var.layout.order(var.shape.len());
        order.sort_unstable();
        if !order.into_iter().eq(0..var.shape.len()) {
            return error("its order is not one of all its axes, each once");
        }
        if matches!(var.kind, VarKind::Table(_)) && matches!(var.layout.places, Places::Order(_)) {
            return error("the values of a table lie row by row");
        }
        if var.layout.strides().is_some() && strides.len() != var.shape.len() {
            return error("as many strides as axes are needed");
        }
        if var.layout.vector_axis.is_some_and(|a| a as usize >= var.shape.len()) {
            return error("the vector axis is not one of its axes");
        }
        if let Some(why) = broken_swizzle(var) {
            return error(why);
        }
        let space = |why| Err(KernelError::Space { var: var.name.clone(), space: var.space.name(), why });
        let of_fields = var.ty.record().and_then(|record| record.fields.iter().map(|f| f.ty.bytes()).min());
        let is_short = of_fields.unwrap_or(var.ty.bytes()) < 4;
        if is_short && var.is_passed_by_value() {
            return error("a number that is passed by value has 32 bits or more; declare it as `i32`");
        }
        match &var.kind {
            VarKind::Param
                if !matches!(var.ty, ScalarType::I32 | ScalarType::I64) || !var.shape.is_empty() =>
            {
                error("a parameter is an integer scalar")
            }
            VarKind::Param => Ok(()),
            VarKind::Argument(Direction::In) if var.shape.is_empty() => Ok(()),
            VarKind::Argument(_) if var.space != AddressSpace::Global => space("arguments are global"),
            VarKind::Temporary if var.space.is_of_tables() => {
                space("constant memory and literals are for tables")
            }
            VarKind::Argument(_) | VarKind::Temporary => Ok(()),
            VarKind::Table(_)
                if matches!(
                    var.space,
                    AddressSpace::Local | AddressSpace::SubGroup | AddressSpace::Private
                ) =>
            {
                space("tables are global, constant or literal")
            }
            VarKind::Table(_) if var.ty.class() == Class::Record => {
                error("a table holds numbers, no records")
            }
            VarKind::Table(data) => {
                let size = var.shape.iter().try_fold(1_i64, |n, e| n.checked_mul(e.as_constant()?));
                if size == i64::try_from(data.len()).ok() && data.fits(var.ty) {
                    return Ok(());
                }
                let needed = size.map_or_else(|| "constant extents".into(), |n| format!("{n}"));
                Err(KernelError::TableSize { var: var.name.clone(), needed, found: data.len() })
            }
        }
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// Of each instruction, whether it need not be looked into.
    is_known: Vec<bool>,
    iname_uses: Vec<usize>,
    insn_uses: Vec<usize>,
    scope: Vec<InameId>,
    has_launches: bool,
    has_externals: bool,
}

impl Walk<'_> {
    fn nodes(&mut self, nodes: &[Node]) -> Result<(), KernelError> {
        for node in nodes {
            match node {
                Node::Insn(insn) => self.insn(*insn)?,
                Node::Loop(iname, body) => {
                    self.enter(*iname)?;
                    self.nodes(body)?;
                    self.scope.pop();
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, iname: InameId) -> Result<(), KernelError> {
        self.iname_uses[iname.index()] += 1;
        let this = &self.kernel.inames[iname];
        if matches!(this.tag, AxisTag::Group(_) | AxisTag::Local(_))
            && let Some(outer) = self.scope.iter().find(|o| self.kernel.inames[**o].tag == this.tag)
        {
            let outer = self.kernel.inames[*outer].name.clone();
            return Err(KernelError::NestedAxis { outer, inner: this.name.clone(), tag: this.tag });
        }
        self.scope.push(iname);
        if this.tag == AxisTag::Launch {
            self.kernel.verify_launch(&self.scope)?;
        }
        if self.scope.len() > MAX_LOOP_DEPTH {
            let what = format!("the nest around `{}`", this.name);
            return Err(KernelError::TooDeep { what, limit: MAX_LOOP_DEPTH, unit: "loops" });
        }
        self.domain(iname, &this.domain)
    }

    fn domain(&self, iname: InameId, domain: &Domain) -> Result<(), KernelError> {
        let name = &self.kernel.inames[iname].name;
        let own = |c: &crate::domain::Constraint| c.expr().mentions(iname);
        if domain.disjuncts().iter().any(|d| !d.iter().any(own)) {
            return Err(KernelError::UnboundedIname { iname: name.clone() });
        }
        let what = format!("the domain of `{name}`");
        if domain.disjuncts().iter().flatten().any(|c| !c.expr().in_bounds()) {
            return Err(KernelError::Overflow { what });
        }
        let mut bad = None;
        domain.for_each_symbol(&mut |atom| match atom {
            Atom::Iname(i) if !self.scope.contains(i) => bad = Some(self.kernel.inames[*i].name.clone()),
            Atom::Var(v) if !self.kernel.vars[*v].is_integer_scalar() => {
                bad = Some(self.kernel.vars[*v].name.clone());
            }
            Atom::Iname(_) | Atom::Var(_) | Atom::Floor(..) => {}
        });
        match bad {
            None => Ok(()),
            Some(name) => {
                let help = "bounds mention loops around, parameters and integer scalars";
                Err(KernelError::OutOfScope { what, name, help })
            }
        }
    }

    fn insn(&mut self, id: InsnId) -> Result<(), KernelError> {
        self.insn_uses[id.index()] += 1;
        if self.has_launches && self.kernel.launch_among(&self.scope).is_none() {
            return Err(KernelError::OutsideLaunches { insn: self.kernel.insns[id].name.clone() });
        }
        if self.is_known[id.index()] {
            return Ok(());
        }
        let insn = &self.kernel.insns[id];
        self.check_lhs(insn)?;
        let mut parts = insn.expressions();
        if let Some(limit) = parts.find_map(exceeded) {
            let what = format!("an expression of `{}`", insn.name);
            return Err(KernelError::TooDeep { what, limit, unit: "operations" });
        }
        for e in insn.expressions() {
            self.expression(insn, e)?;
        }
        let is_large = |(size, depth): (usize, usize)| size > MAX_RULE_SIZE || depth > MAX_PATH;
        if self.has_externals && insn.expressions().any(|e| is_large(self.kernel.size_with_meanings(e))) {
            return Err(KernelError::Meanings { insn: insn.name.clone() });
        }
        let typed = |e: &Expr| {
            self.kernel
                .type_of(e, &[])
                .map_err(|source| KernelError::Type { what: format!("`{}`", insn.name), source })
        };
        self.kernel
            .type_of_access(&insn.lhs, &[])
            .map_err(|source| KernelError::Type { what: format!("`{}`", insn.name), source })?;
        let found = typed(&insn.rhs)?;
        let var = &self.kernel.vars[insn.lhs.var];
        let (name, to) = (|| insn.name.clone(), || var.name.clone());
        if let Some(why) = crate::records::refused(self.kernel, insn) {
            return Err(KernelError::Records { insn: name(), why });
        }
        if let Some(op) = insn.update_op()
            && let Some(needed) = op.refused(var.ty)
        {
            let op = op.update_symbol();
            return Err(KernelError::Update { insn: name(), var: to(), op, needed, found: var.ty });
        }
        if !found.stores_in(var.ty) || !self.kernel.literal_fits(&insn.rhs, found, var.ty.value_type()) {
            return Err(KernelError::Store { insn: name(), var: to(), needed: var.ty, found });
        }
        match insn.predicate.as_ref().map(typed).transpose()? {
            None | Some(ExprType::Bool) => Ok(()),
            Some(found) => Err(KernelError::Predicate { insn: insn.name.clone(), found }),
        }
    }

    fn check_lhs(&self, insn: &Insn) -> Result<(), KernelError> {
        let var = &self.kernel.vars[insn.lhs.var];
        let kind = match &var.kind {
            VarKind::Param => "a parameter",
            VarKind::Argument(Direction::In) => "an input",
            VarKind::Table(_) => "a table",
            VarKind::Argument(Direction::Out | Direction::InOut) | VarKind::Temporary => return Ok(()),
        };
        Err(KernelError::ReadOnly { insn: insn.name.clone(), var: var.name.clone(), kind })
    }

    /// Scopes of inames in an expression; reductions open theirs on the way down.
    fn expression(&mut self, insn: &Insn, e: &Expr) -> Result<(), KernelError> {
        let depth = self.scope.len();
        match e {
            Expr::Iname(i) if !self.scope.contains(i) => {
                let name = self.kernel.inames[*i].name.clone();
                let what = format!("`{}`", insn.name);
                let help = "put the instruction inside that loop";
                return Err(KernelError::OutOfScope { what, name, help });
            }
            Expr::RuleParam(_) => {
                let what = format!("`{}`", insn.name);
                let help = "rule parameters stand in rules only";
                return Err(KernelError::OutOfScope { what, name: "rule parameter".into(), help });
            }
            Expr::Reduce(r) => {
                for iname in &r.inames {
                    let Iname { name, tag, .. } = &self.kernel.inames[*iname];
                    if !matches!(tag, AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled) {
                        return Err(KernelError::ReductionTag { iname: name.clone(), tag: *tag });
                    }
                    self.enter(*iname)?;
                }
            }
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Rule(..) => {}
        }
        for operand in e.operands() {
            self.expression(insn, operand)?;
        }
        self.scope.truncate(depth);
        Ok(())
    }

    fn finish(self) -> Result<(), KernelError> {
        let k = self.kernel;
        if let Some((id, _)) = k.inames.iter().find(|(id, _)| self.iname_uses[id.index()] != 1) {
            let count = self.iname_uses[id.index()];
            return Err(KernelError::InameUses { iname: k.inames[id].name.clone(), count });
        }
        match k.insns.iter().find(|(id, _)| self.insn_uses[id.index()] != 1) {
            None => Ok(()),
            Some((id, insn)) => {
                Err(KernelError::InsnUses { insn: insn.name.clone(), count: self.insn_uses[id.index()] })
            }
        }
    }
}
