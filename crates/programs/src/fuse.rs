//! Two programs in a row as one.

use crate::{checked, refused};
use kingpost_ir::{
    Affine, Assumption, Atom, AxisTag, CalleeId, Direction, Expr, Id, Kernel, Launch, Layout, Node, Places,
    VarId, VarKind, Variable,
};
use kingpost_steps::nest::new_loop;
use kingpost_steps::refusal::{Refusal, TransformError};
use std::collections::BTreeMap;

/// A program made of two.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// The program.
    pub kernel: Kernel,
    /// Which names of the first program became others.
    pub first: BTreeMap<String, String>,
    /// Which names of the second program became others.
    pub second: BTreeMap<String, String>,
}

/// Makes one program of two that run one after the other, each in launches of its own.
///
/// Parameters and arguments of one name are one: they must have the same type, shape and layout. Other
/// names of the second program that are taken get a number. `fuse_launches` and `fuse_loops` go on from
/// here.
///
/// ```
/// use kingpost_programs::fuse_kernels;
///
/// let twice = "kernel twice\nparam n: i32\narg a: f64[n] in\narg b: f64[n] out\n\nfor i in 0..n\n  s: b[i] = 2.0*a[i]\n";
/// let add = "kernel add\nparam n: i32\narg b: f64[n] in\narg c: f64[n] inout\n\nfor i in 0..n\n  s: c[i] += b[i]\n";
/// let [twice, add] = [twice, add].map(|text| kingpost_ir::text::parse(text).expect("a kernel"));
/// let fused = fuse_kernels(&twice, &add, "both")?;
/// assert_eq!(fused.kernel.to_string(), "\
/// kernel both
///
/// param n: i32
/// arg a: f64[n] in
/// arg b: f64[n] out
/// arg c: f64[n] inout
///
/// launch twice
///   for i in 0..n
///     s: b[i] = 2.0*a[i]
/// launch add
///   for i_1 in 0..n
///     s_1: c[i_1] += b[i_1]
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What the second reads of an array that the first writes is what was written: with direction `out` in
/// the first, it is `out` of both.
///
/// # Errors
/// An argument of both that is not declared alike; other widths of sub-groups or another
/// arithmetic; what the second assumes of an array that the first writes.
///
/// # Elsewhere
/// Loopy `fuse_kernels`.
pub fn fuse_kernels(first: &Kernel, second: &Kernel, name: &str) -> Result<Fused, TransformError> {
    let operation = format!("fuse the kernels `{}` and `{}`", first.name, second.name);
    let fail = |cause| refused(&operation, cause);
    if first.sub_group != second.sub_group {
        let found = format!("sub-groups of {} and of {}", first.sub_group, second.sub_group);
        return Err(fail(Refusal::argument("second", found, "sub-groups of one width")));
    }
    if first.arithmetic != second.arithmetic {
        let found = "`double_single` arithmetic of one of them".to_owned();
        return Err(fail(Refusal::argument("second", found, "one arithmetic of both")));
    }
    let written = |var: &str| first.insns.values().any(|insn| first.vars[insn.lhs.var].name == var);
    for var in second.assumptions.iter().flat_map(assumed_arrays) {
        let name = &second.vars[var].name;
        if written(name) {
            let found =
                format!("`{}` assumes something of `{name}`, which `{}` writes", second.name, first.name);
            return Err(fail(Refusal::argument("second", found, "assumptions of what no kernel writes")));
        }
    }
    let mut merge =
        Merge { kernel: first.clone(), second, vars: Vec::new(), names: [BTreeMap::new(), BTreeMap::new()] };
    merge.make_room();
    merge.vars().map_err(fail)?;
    merge.rest(first, name);
    let [first, second] = merge.names;
    Ok(Fused { kernel: checked(&operation, merge.kernel)?, first, second })
}

/// The arrays of which an assumption says something.
pub(crate) fn assumed_arrays(assumption: &Assumption) -> Vec<VarId> {
    match assumption {
        Assumption::Params(_) | Assumption::Defined(..) => Vec::new(),
        Assumption::Injective(var) | Assumption::Ascending(var) => vec![*var],
        Assumption::Outside(outside) => vec![outside.array],
        Assumption::Symmetric(symmetry) => vec![symmetry.var],
        Assumption::Lists(lists) => lists.vars(),
    }
}

struct Merge<'k> {
    /// The first program, to which the second is added.
    kernel: Kernel,
    second: &'k Kernel,
    /// Where the variables of the second program are.
    vars: Vec<VarId>,
    /// Old and new names in both programs.
    names: [BTreeMap<String, String>; 2],
}

impl Merge<'_> {
    /// Gives what is the first program's own other names where they are those of arguments of the second.
    fn make_room(&mut self) {
        let given = self.second.vars.values().filter(|v| is_given(v));
        for name in given.map(|v| v.name.clone()).collect::<Vec<_>>() {
            let to = self.fresh(&name);
            let k = &mut self.kernel;
            let own = |v: &&mut Variable| v.name == name && !is_given(v);
            let vars = k.vars.values_mut().find(own).map(|v| &mut v.name);
            let names = vars
                .into_iter()
                .chain(k.inames.values_mut().map(|i| &mut i.name))
                .chain(k.insns.values_mut().map(|i| &mut i.name))
                .chain(k.rules.values_mut().map(|r| &mut r.name));
            for taken in names.filter(|taken| **taken == name) {
                taken.clone_from(&to);
                self.names[0].insert(name.clone(), to.clone());
            }
        }
    }

    /// A name that neither program has.
    fn fresh(&self, name: &str) -> String {
        let is_free = |name: &str| {
            let of_one = |k: &Kernel| k.is_free_name(name) && !k.is_rule_param(name);
            of_one(&self.kernel) && of_one(self.second)
        };
        numbered(name, is_free)
    }

    /// The name of something of the second program in the result.
    fn own_name(&mut self, name: &str) -> String {
        if self.kernel.is_free_name(name) && !self.kernel.is_rule_param(name) {
            return name.to_owned();
        }
        let to = self.fresh(name);
        self.names[1].insert(name.to_owned(), to.clone());
        to
    }

    fn affine(&self, e: &Affine, loops: usize) -> Affine {
        e.substitute(&|atom| match atom {
            Atom::Var(v) => Some(Affine::var(self.vars[v.index()])),
            Atom::Iname(i) => Some(Affine::iname(moved(*i, loops))),
            Atom::Floor(..) => None,
        })
    }

    /// Adds the variables, parameters first: shapes mention these.
    fn vars(&mut self) -> Result<(), Refusal> {
        let second = self.second;
        self.vars = second.vars.ids().collect();
        let mut order: Vec<VarId> = second.vars.ids().collect();
        order.sort_by_key(|v| second.vars[*v].kind != VarKind::Param);
        for id in order {
            let mut var = second.vars[id].clone();
            var.shape = var.shape.iter().map(|e| self.affine(e, 0)).collect();
            if let Some(strides) = var.layout.strides() {
                let strides = strides.iter().map(|e| self.affine(e, 0)).collect();
                var.layout = Layout { places: Places::Strides(strides), ..var.layout };
            }
            self.vars[id.index()] = match self.kernel.var(&var.name).filter(|_| is_given(&var)) {
                Some(shared) => self.share(shared, &var)?,
                None => {
                    var.name = self.own_name(&var.name);
                    var.storage = var.storage.map(|buffer| self.buffer(&buffer));
                    self.kernel.vars.push(var)
                }
            };
        }
        Ok(())
    }

    /// The name of a buffer that temporaries of the second program share.
    fn buffer(&self, name: &str) -> String {
        let taken = |k: &Kernel, name: &str| k.vars.values().any(|v| v.storage.as_deref() == Some(name));
        let of_first = self.kernel.vars.ids().take(self.kernel.vars.len());
        // temporaries of the second that were added before have its new name
        let moved = |v: &VarId| self.vars.contains(v);
        let clash =
            of_first.filter(|v| !moved(v)).any(|v| self.kernel.vars[v].storage.as_deref() == Some(name));
        if !clash {
            return name.to_owned();
        }
        let free = |n: &str| {
            let first = self.kernel.vars.iter().filter(|(id, _)| !moved(id));
            !taken(self.second, n) && !first.into_iter().any(|(_, v)| v.storage.as_deref() == Some(n))
        };
        numbered(name, free)
    }

    /// One argument of both programs.
    fn share(&mut self, shared: VarId, var: &Variable) -> Result<VarId, Refusal> {
        let own = &self.kernel.vars[shared];
        let same =
            own.ty == var.ty && own.shape == var.shape && own.layout == var.layout && own.space == var.space;
        let kind = match (&own.kind, &var.kind) {
            (VarKind::Param, VarKind::Param) => {
                let of_second = self.second.var(&var.name).and_then(|v| self.second.definition(v));
                let needed = of_second.map(|value| self.definition(value));
                (self.kernel.definition(shared) == needed.as_ref()).then_some(VarKind::Param)
            }
            (VarKind::Argument(first), VarKind::Argument(second)) => {
                Some(VarKind::Argument(joined(*first, *second)))
            }
            (VarKind::Param | VarKind::Argument(_) | VarKind::Temporary | VarKind::Table(_), _) => None,
        };
        match kind.filter(|_| same) {
            Some(kind) => {
                self.kernel.vars[shared].kind = kind;
                Ok(shared)
            }
            None => {
                let found = format!("`{}` is declared in two ways", var.name);
                let needed = "one type, shape, layout and kind; rename it in one of the kernels";
                Err(Refusal::argument("second", found, needed))
            }
        }
    }

    /// Adds loops, rules, callees, instructions, assumptions and launches.
    fn rest(&mut self, first: &Kernel, name: &str) {
        let second = self.second;
        let (loops, insns, rules) = (first.inames.len(), first.insns.len(), first.rules.len());
        for iname in second.inames.values() {
            let mut iname = iname.clone();
            iname.name = self.own_name(&iname.name);
            iname.domain = iname.domain.substitute(&|atom| match atom {
                Atom::Var(v) => Some(Affine::var(self.vars[v.index()])),
                Atom::Iname(i) => Some(Affine::iname(moved(*i, loops))),
                Atom::Floor(..) => None,
            });
            self.kernel.inames.push(iname);
        }
        let vars = self.vars.clone();
        let mut moved_expr = |e: Expr| match e {
            Expr::Iname(i) => Expr::Iname(moved(i, loops)),
            Expr::Load(mut access) => {
                access.var = vars[access.var.index()];
                Expr::Load(access)
            }
            Expr::Rule(rule, args) => Expr::Rule(moved(rule, rules), args),
            Expr::Reduce(mut r) => {
                r.inames.iter_mut().for_each(|i| *i = moved(*i, loops));
                Expr::Reduce(r)
            }
            other @ (Expr::Int(_)
            | Expr::Real(_)
            | Expr::RuleParam(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)) => other,
        };
        for rule in second.rules.values() {
            let mut rule = rule.clone();
            rule.name = self.own_name(&rule.name);
            rule.body = rule.body.map(&mut moved_expr);
            self.kernel.rules.push(rule);
        }
        let callees = self.callees();
        for insn in second.insns.values() {
            let mut insn = insn.clone();
            insn.name = self.own_name(&insn.name);
            insn.lhs.var = vars[insn.lhs.var.index()];
            insn.map_expressions(&mut moved_expr);
            insn.callee = insn.callee.map(|c| callees[c.index()]);
            self.kernel.insns.push(insn);
        }
        for assumption in &second.assumptions {
            let assumption = self.assumption(assumption);
            if !self.kernel.assumptions.contains(&assumption) {
                self.kernel.assumptions.push(assumption);
            }
        }
        let nodes = moved_nodes(&second.body, loops, insns);
        let own = std::mem::take(&mut self.kernel.body);
        for (nodes, of) in [(own, first), (nodes, second)] {
            if nodes.is_empty() || of.has_launches() {
                self.kernel.body.extend(nodes);
            } else {
                let launch = new_loop(&mut self.kernel, &of.name, 1, AxisTag::Launch);
                self.kernel.body.push(Node::Loop(launch, nodes));
            }
        }
        let (a, b) = (first.launch, second.launch);
        let resident_groups = if a.resident_groups == b.resident_groups { a.resident_groups } else { None };
        let dynamic_local = a.dynamic_local || b.dynamic_local;
        let ordered_groups = a.ordered_groups || b.ordered_groups;
        self.kernel.launch = Launch { resident_groups, dynamic_local, ordered_groups };
        name.clone_into(&mut self.kernel.name);
    }

    /// Adds the callees; equal ones are one.
    fn callees(&mut self) -> Vec<CalleeId> {
        let second = self.second;
        let mut found = Vec::with_capacity(second.callees.len());
        for callee in second.callees.values() {
            let known =
                self.kernel.callee(callee.name()).filter(|known| self.kernel.callees[*known] == *callee);
            found.push(known.unwrap_or_else(|| {
                let mut callee = callee.clone();
                callee.kernel.name = self.own_name(&callee.kernel.name);
                self.kernel.callees.push(callee)
            }));
        }
        found
    }

    /// What a parameter of the second program is computed as, in terms of the result.
    fn definition(&self, value: &Expr) -> Expr {
        value.map(&mut |e| match e.as_load() {
            Some(access) => Expr::scalar(self.vars[access.var.index()]),
            None => e,
        })
    }

    fn assumption(&self, assumption: &Assumption) -> Assumption {
        let moved = |v: VarId| self.vars[v.index()];
        match assumption {
            Assumption::Params(c) => Assumption::Params(c.substitute(&|atom| match atom {
                Atom::Var(v) => Some(Affine::var(moved(*v))),
                Atom::Iname(_) | Atom::Floor(..) => None,
            })),
            Assumption::Defined(param, value) => Assumption::Defined(moved(*param), self.definition(value)),
            Assumption::Injective(v) => Assumption::Injective(moved(*v)),
            Assumption::Ascending(v) => Assumption::Ascending(moved(*v)),
            Assumption::Symmetric(symmetry) => {
                let mut symmetry = symmetry.clone();
                symmetry.var = moved(symmetry.var);
                Assumption::Symmetric(symmetry)
            }
            Assumption::Outside(outside) => Assumption::Outside(outside.map_vars(&moved)),
            Assumption::Lists(lists) => Assumption::Lists(lists.map_vars(&moved)),
        }
    }
}

fn is_given(var: &Variable) -> bool {
    matches!(var.kind, VarKind::Param | VarKind::Argument(_))
}

/// The direction of an argument of both programs.
fn joined(first: Direction, second: Direction) -> Direction {
    match (first, second) {
        (Direction::In, Direction::In) => Direction::In,
        // what the second reads is defined by the first, or nowhere
        (Direction::Out, Direction::In | Direction::Out | Direction::InOut) => Direction::Out,
        (Direction::In, Direction::Out | Direction::InOut)
        | (Direction::InOut, Direction::In | Direction::Out | Direction::InOut) => Direction::InOut,
    }
}

/// An id of the second program in the tables of both.
fn moved<I: Id>(id: I, by: usize) -> I {
    I::from_index(id.index() + by)
}

fn moved_nodes(nodes: &[Node], loops: usize, insns: usize) -> Vec<Node> {
    let node = |node: &Node| match node {
        Node::Loop(iname, body) => Node::Loop(moved(*iname, loops), moved_nodes(body, loops, insns)),
        Node::Insn(insn) => Node::Insn(moved(*insn, insns)),
    };
    nodes.iter().map(node).collect()
}

/// The first of `name_1`, `name_2`, … that is free.
fn numbered(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut k = 1_u64;
    loop {
        let found = format!("{name}_{k}");
        if is_free(&found) {
            return found;
        }
        k += 1;
    }
}
