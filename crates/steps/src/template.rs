//! Expressions with parameters, which may hold reductions, and where they stand in a kernel.

use kingpost_ir::{
    Affine, Arena, Atom, Direction, Domain, Expr, ExprType, Id, Iname, InameId, Kernel, ScalarType, VarId,
    VarKind,
};

/// An expression with parameters that stand for integers, for one kernel.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// The names of its parameters.
    pub names: Vec<String>,
    /// What stands for the parameters: ids beyond those of the kernel's loops.
    params: Vec<InameId>,
    /// The loops of its reductions, with ids beyond those, too.
    own: Vec<(InameId, Domain)>,
    body: Expr,
    /// The types of its reductions, in order.
    types: Vec<Option<ExprType>>,
}

/// Where a template stands: the expression is the template with these arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The argument of each parameter.
    pub args: Vec<Expr>,
    /// The loops of its reductions.
    pub loops: Vec<InameId>,
}

/// The variables and rules of a kernel alone, as text that more lines may follow.
pub fn declarations(kernel: &Kernel) -> String {
    let mut bare = kernel.clone();
    bare.body.clear();
    bare.insns = Arena::default();
    bare.inames = Arena::default();
    bare.callees = Arena::default();
    for var in bare.vars.values_mut().filter(|var| matches!(var.kind, VarKind::Table(_))) {
        // without the values, which stand at the end
        var.kind = VarKind::Argument(Direction::In);
        var.space = kingpost_ir::AddressSpace::Global;
    }
    kingpost_ir::text::print(&bare)
}

/// A kernel with these lines after its declarations.
///
/// # Errors
/// What is wrong with the lines.
pub fn with_lines(kernel: &Kernel, lines: &[String]) -> Result<Kernel, String> {
    if lines.iter().any(|line| line.contains(['\n', '\r', '#'])) {
        return Err("it is one line without comments".into());
    }
    let text = declarations(kernel) + &lines.join("\n") + "\n";
    kingpost_ir::text::parse(&text)
        .map_err(|all| all.errors().first().map_or_else(String::new, |e| e.message.clone()))
}

impl Template {
    /// Reads `name(parameters) := expression`, with the variables and rules of a kernel.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(kernel: &Kernel, declaration: &str) -> Result<Self, String> {
        let head = declaration.split(":=").next().unwrap_or_default(); // default: there is a first part always
        let (name, params) = head
            .trim()
            .strip_suffix(')')
            .and_then(|head| head.split_once('('))
            .ok_or("needed a name with parameters, `:=` and an expression")?;
        let names: Vec<String> =
            params.split(',').map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect();
        let value = kernel.fresh_name("template_value");
        let mut lines = vec![format!("rule {declaration}"), format!("temp {value}"), String::new()];
        let indent = |depth: usize| "  ".repeat(depth);
        lines.extend(names.iter().enumerate().map(|(k, p)| format!("{}for {p} in 0..1", indent(k))));
        lines.push(format!("{}{value} = {name}({})", indent(names.len()), names.join(", ")));
        let parsed = with_lines(kernel, &lines)?;
        let same = kernel.vars.values().zip(parsed.vars.values()).all(|(a, b)| a.name == b.name);
        let alone = same && parsed.vars.len() == kernel.vars.len() + 1 && parsed.insns.len() == 1;
        let Some(insn) = parsed.insns.values().next().filter(|_| alone) else {
            return Err("its bounds and extents are affine in parameters of the kernel".into());
        };
        // a rule without reductions is one of the kernel's
        let mut body = insn.rhs.clone();
        if let Expr::Rule(rule, args) = &insn.rhs
            && parsed.rules[*rule].name == name.trim()
        {
            let mut put_in = |e| if let Expr::RuleParam(k) = e { args[k as usize].clone() } else { e };
            body = parsed.rules[*rule].body.map(&mut put_in);
        }
        Self::of(kernel, &parsed, (name.trim(), names), &body)
    }

    fn of(
        kernel: &Kernel,
        parsed: &Kernel,
        (name, names): (&str, Vec<String>),
        body: &Expr,
    ) -> Result<Self, String> {
        let moved = |iname: InameId| InameId::from_index(kernel.inames.len() + iname.index());
        let loops: Vec<InameId> = names.iter().filter_map(|p| parsed.iname(p)).collect();
        let own = reduced(body);
        if matches!(body, Expr::Iname(_)) {
            return Err("a parameter alone is everything".into());
        }
        let unused = loops.iter().position(|p| !body.mentions(*p));
        if let Some(k) = unused {
            return Err(format!("it does not mention the parameter `{}`", names[k]));
        }
        let move_atom = |atom: &Atom| match atom {
            Atom::Iname(iname) => Some(Affine::iname(moved(*iname))),
            Atom::Var(_) | Atom::Floor(..) => None,
        };
        let own =
            own.into_iter().map(|iname| (moved(iname), parsed.inames[iname].domain.substitute(&move_atom)));
        Ok(Self {
            name: name.to_owned(),
            names,
            params: loops.into_iter().map(moved).collect(),
            own: own.collect(),
            body: renamed(body, &moved),
            types: types(parsed, body),
        })
    }

    /// The arguments with which the template is an expression of the kernel, and the loops of its
    /// reductions.
    pub fn find(&self, kernel: &Kernel, e: &Expr) -> Option<Use> {
        let args = vec![None; self.params.len()];
        let mut search = Search { template: self, kernel, args, loops: Vec::new(), indices: Vec::new() };
        (search.expr(&self.body, e) && search.solve()).then_some(())?;
        search.found(e)
    }

    /// The expression with these arguments and loops.
    pub fn expression(&self, found: &Use) -> Expr {
        let of_param = |iname: InameId| self.params.iter().position(|p| *p == iname);
        let of_loop = |iname: InameId| {
            let k = self.own.iter().position(|(own, _)| *own == iname);
            k.and_then(|k| found.loops.get(k)).copied().unwrap_or(iname) // the template has no others
        };
        let with_args = renamed(&self.body, &of_loop).map(&mut |e| {
            let param = if let Expr::Iname(iname) = &e { of_param(*iname) } else { None };
            param.map_or(e, |k| found.args[k].clone())
        });
        with_args.map(&mut |mut e| {
            if let Expr::Load(access) = &mut e {
                for index in &mut access.index {
                    *index = index.as_affine().map_or_else(|| index.clone(), |i| Expr::from_affine(&i));
                }
            }
            e
        })
    }

    /// Gives the loops of the reductions of a use the domains that the template has for it.
    pub fn set_domains(&self, kernel: &mut Kernel, found: &Use) {
        for ((_, domain), iname) in self.own.iter().zip(&found.loops) {
            kernel.inames[*iname].domain = domain.substitute(&|atom| self.symbol(found, atom));
        }
    }

    /// Whether the reductions of an expression of the kernel have the types that they have here: what one of
    /// nothing is depends on it.
    pub fn has_types_of(&self, kernel: &Kernel, e: &Expr) -> bool {
        self.types == types(kernel, e)
    }

    /// What it reads, in expressions and in the bounds of its reductions.
    pub fn reads(&self, kernel: &Kernel) -> Vec<VarId> {
        let mut all = Vec::new();
        kernel.expand_rules(&self.body).for_each(&mut |e| all.extend(e.as_load().map(|access| access.var)));
        for (_, domain) in &self.own {
            domain.for_each_symbol(&mut |atom| {
                if let Atom::Var(var) = atom {
                    all.push(*var);
                }
            });
        }
        all
    }

    /// What stands for a symbol of the template in a use.
    fn symbol(&self, found: &Use, atom: &Atom) -> Option<Affine> {
        let Atom::Iname(iname) = atom else { return None };
        let own = self.own.iter().position(|(own, _)| own == iname);
        let param = || self.params.iter().position(|p| p == iname);
        match own {
            Some(k) => found.loops.get(k).copied().map(Affine::iname),
            None => found.args.get(param()?)?.as_affine(),
        }
    }
}

/// The types of the reductions of an expression, in order.
fn types(kernel: &Kernel, e: &Expr) -> Vec<Option<ExprType>> {
    let mut all = Vec::new();
    e.for_each(&mut |e| {
        if matches!(e, Expr::Reduce(_)) {
            all.push(kernel.type_of(e, &[]).ok());
        }
    });
    all
}

/// The declaration of a reduction as a template, with the loops around it as parameters.
pub fn declaration(kernel: &Kernel, name: &str, e: &Expr) -> String {
    let own = reduced(e);
    let outer =
        |(id, iname): (InameId, &Iname)| (!own.contains(&id) && e.mentions(id)).then(|| iname.name.clone());
    let params: Vec<String> = kernel.inames.iter().filter_map(outer).collect();
    format!("{name}({}) := {}", params.join(", "), kernel.show_expr(e))
}

/// The loops of the reductions of an expression.
fn reduced(e: &Expr) -> Vec<InameId> {
    let mut all = Vec::new();
    e.for_each(&mut |e| {
        if let Expr::Reduce(reduction) = e {
            all.extend(reduction.inames.iter().copied());
        }
    });
    all
}

/// Whether two expressions have the same operation, and as many operands, whatever those are; loops and
/// parameters of rules are the caller's.
pub fn same_head(a: &Expr, b: &Expr) -> bool {
    let heads = match (a, b) {
        (Expr::Int(a), Expr::Int(b)) => a == b,
        (Expr::Real(a), Expr::Real(b)) => a == b,
        (Expr::Load(a), Expr::Load(b)) => a.var == b.var,
        (Expr::Unary(a, _), Expr::Unary(b, _)) => a == b,
        (Expr::Binary(a, ..), Expr::Binary(b, ..)) => a == b,
        (Expr::Call(a, _), Expr::Call(b, _)) => a == b,
        (Expr::Cast(a, _), Expr::Cast(b, _)) => a == b,
        (Expr::Select(..), Expr::Select(..)) => true,
        (Expr::Rule(a, _), Expr::Rule(b, _)) => a == b,
        (Expr::Reduce(a), Expr::Reduce(b)) => a.op == b.op && a.inames.len() == b.inames.len(),
        _ => false,
    };
    heads && a.operands().count() == b.operands().count()
}

/// With other loops, those of reductions included.
fn renamed(e: &Expr, name: &dyn Fn(InameId) -> InameId) -> Expr {
    e.map(&mut |mut e| {
        if let Expr::Iname(iname) = &mut e {
            *iname = name(*iname);
        }
        if let Expr::Reduce(reduction) = &mut e {
            reduction.inames.iter_mut().for_each(|iname| *iname = name(*iname));
        }
        e
    })
}

struct Search<'a> {
    template: &'a Template,
    kernel: &'a Kernel,
    args: Vec<Option<Expr>>,
    /// The loops that stand for the template's own.
    loops: Vec<(InameId, InameId)>,
    /// Integers that are to be equal.
    indices: Vec<(Affine, Affine)>,
}

impl Search<'_> {
    fn expr(&mut self, needed: &Expr, found: &Expr) -> bool {
        if let Expr::Iname(iname) = needed {
            if let Some(k) = self.template.params.iter().position(|p| p == iname) {
                return match &self.args[k] {
                    Some(bound) => bound == found,
                    None => {
                        self.args[k] = Some(found.clone());
                        true
                    }
                };
            }
            return matches!(found, Expr::Iname(other) if self.loops.contains(&(*iname, *other)));
        }
        if !same_head(needed, found) {
            return false;
        }
        match (needed, found) {
            (Expr::Load(a), Expr::Load(b)) => a.index.iter().zip(&b.index).all(|(a, b)| self.index(a, b)),
            (Expr::Reduce(a), Expr::Reduce(b)) => {
                self.loops.extend(a.inames.iter().copied().zip(b.inames.iter().copied()));
                self.expr(&a.body, &b.body)
            }
            _ => needed.operands().zip(found.operands()).all(|(a, b)| self.expr(a, b)),
        }
    }

    /// Indices are solved for where they are affine.
    fn index(&mut self, needed: &Expr, found: &Expr) -> bool {
        match (self.exact(needed), self.exact(found)) {
            (Some(a), Some(b)) => {
                self.indices.push((a, b));
                true
            }
            (Some(_) | None, Some(_) | None) => self.expr(needed, found),
        }
    }

    /// The value of an integer expression that does not wrap.
    fn exact(&self, e: &Expr) -> Option<Affine> {
        let affine = e.as_affine()?;
        let mut is_exact = true;
        affine.for_each_symbol(&mut |atom| {
            if let Atom::Var(var) = atom {
                is_exact &= self.kernel.vars[*var].is_integer_scalar();
            }
        });
        is_exact.then_some(affine)
    }

    /// Whether the indices are equal, with arguments that make them so.
    fn solve(&mut self) -> bool {
        let mut open = std::mem::take(&mut self.indices);
        while !open.is_empty() {
            let before = open.len();
            let mut rest = Vec::new();
            for (needed, found) in open {
                match self.solved(&needed, &found) {
                    Some(true) => {}
                    Some(false) => return false,
                    None => rest.push((needed, found)),
                }
            }
            if rest.len() == before {
                return false;
            }
            open = rest;
        }
        true
    }

    /// Whether an index is another one; none where that has two unknown arguments.
    fn solved(&mut self, needed: &Affine, found: &Affine) -> Option<bool> {
        let known = |atom: &Atom| {
            let Atom::Iname(iname) = atom else { return None };
            if let Some((_, other)) = self.loops.iter().find(|(own, _)| own == iname) {
                return Some(Affine::iname(*other));
            }
            let k = self.template.params.iter().position(|p| p == iname)?;
            self.args[k].as_ref().and_then(|arg| self.exact(arg))
        };
        let needed = needed.substitute(&known);
        let mut unknown: Vec<usize> = Vec::new();
        needed.for_each_symbol(&mut |atom| {
            let of = |iname| self.template.params.iter().position(|p| p == iname);
            if let Atom::Iname(iname) = atom {
                unknown.extend(of(iname));
            }
        });
        unknown.sort_unstable();
        unknown.dedup();
        let &[k] = unknown.as_slice() else { return unknown.is_empty().then_some(needed == *found) };
        if self.args[k].is_some() {
            return Some(false); // it is no affine expression
        }
        let param = Atom::Iname(self.template.params[k]);
        let factor = needed.coefficient(&param);
        if factor == 0 {
            return Some(false); // it is in a quotient
        }
        let alone = Affine::iname(self.template.params[k]).times(factor);
        let rest = found.minus(&needed.minus(&alone));
        let value = rest.times(factor.signum()).floor_div(factor.abs());
        let is_value = value.times(factor) == rest && value.in_bounds();
        let is_value = is_value && !value.any_symbol(&mut |atom| *atom == param);
        if is_value {
            self.args[k] = Some(Expr::from_affine(&value));
        }
        Some(is_value)
    }

    /// The use, if its loops are the template's and its arguments are integers that do not depend on them.
    fn found(self, e: &Expr) -> Option<Use> {
        let args = self.args.into_iter().collect::<Option<Vec<_>>>()?;
        let of = |own: &InameId| self.loops.iter().find(|(o, _)| o == own).map(|(_, found)| *found);
        let loops = self.template.own.iter().map(|(own, _)| of(own)).collect::<Option<Vec<_>>>()?;
        let is_integer = |arg: &Expr| match self.kernel.type_of(arg, &[]) {
            Ok(ExprType::Literal | ExprType::Index) => true,
            Ok(ExprType::Scalar(ty)) => matches!(ty, ScalarType::I32 | ScalarType::I64),
            Ok(ExprType::Bool | ExprType::WeakReal | ExprType::WeakComplex) | Err(_) => false,
        };
        let found = Use { args, loops };
        let same_domain = |((_, domain), iname): (&(InameId, Domain), &InameId)| {
            let needed = domain.substitute(&|atom| self.template.symbol(&found, atom));
            needed == self.kernel.inames[*iname].domain
        };
        let is_outside = |arg: &Expr| !found.loops.iter().any(|iname| arg.mentions(*iname));
        let fits = found.args.iter().all(|arg| is_integer(arg) && is_outside(arg))
            && self.template.own.iter().zip(&found.loops).all(same_domain)
            && self.template.has_types_of(self.kernel, e);
        fits.then_some(found)
    }
}
