//! Arrays that stand for rules, so that what is used of a rule is found as what is read of an array.

use crate::lookup;
use crate::refusal::Refusal;
use crate::template::{Template, Use};
use kingpost_ir::{
    AddressSpace, Affine, Direction, Expr, InameId, InsnId, Kernel, RuleId, ScalarType, VarId, VarKind,
    Variable,
};

/// What is computed into a temporary.
pub enum Formula {
    /// A rule of the kernel.
    Rule(RuleId),
    /// What a declaration says.
    Template(Box<Template>),
}

impl Formula {
    /// A rule by its name, or by its declaration.
    ///
    /// # Errors
    /// An unknown rule, a text that is no declaration.
    pub fn of(kernel: &Kernel, text: &str) -> Result<Self, Refusal> {
        if !text.contains(":=") {
            return lookup::rule(kernel, text).map(Self::Rule);
        }
        let template = Template::read(kernel, text).map_err(|why| {
            Refusal::argument(
                "rule",
                format!("`{text}` is no declaration: {why}"),
                "`name(parameters) := expression`",
            )
        })?;
        Ok(Self::Template(Box::new(template)))
    }

    /// The names of its parameters.
    pub fn params<'a>(&'a self, kernel: &'a Kernel) -> &'a [String] {
        match self {
            Self::Rule(rule) => &kernel.rules[*rule].params,
            Self::Template(template) => &template.names,
        }
    }

    /// The arguments with which it is an expression.
    fn find(&self, kernel: &Kernel, e: &Expr) -> Option<Use> {
        match (self, e) {
            (Self::Rule(rule), Expr::Rule(used, args)) if used == rule => {
                Some(Use { args: args.clone(), loops: Vec::new() })
            }
            (Self::Rule(_), _) => None,
            (Self::Template(template), e) => template.find(kernel, e),
        }
    }

    /// Its uses in an instruction.
    pub fn uses(&self, kernel: &Kernel, insn: InsnId) -> Vec<(Expr, Use)> {
        let mut found = Vec::new();
        for e in kernel.insns[insn].expressions() {
            e.for_each(&mut |e| found.extend(self.find(kernel, e).map(|used| (e.clone(), used))));
        }
        found
    }

    /// What it reads.
    pub fn operands(&self, kernel: &Kernel) -> Vec<VarId> {
        match self {
            Self::Rule(rule) => {
                let mut all = Vec::new();
                let body = kernel.expand_rules(&kernel.rules[*rule].body);
                body.for_each(&mut |e| all.extend(e.as_load().map(|access| access.var)));
                all
            }
            Self::Template(template) => template.reads(kernel),
        }
    }

    /// Whether the reductions in an expression of the kernel have the types that they have in it.
    pub fn has_types_of(&self, kernel: &Kernel, e: &Expr) -> bool {
        match self {
            Self::Rule(_) => true,
            Self::Template(template) => template.has_types_of(kernel, e),
        }
    }
}

/// A kernel in which an array stands where a rule is used: to the analysis a rule is an array that
/// is indexed by its arguments.
pub struct StandIn {
    /// The kernel.
    pub kernel: Kernel,
    /// Its last variable.
    pub array: VarId,
    /// Loops that were those of reductions of a use, and are free.
    loops: Vec<InameId>,
}

impl StandIn {
    /// The array instead of the rule in some instructions.
    pub fn of(before: &Kernel, formula: &Formula, chosen: &[InsnId]) -> Self {
        let mut kernel = before.clone();
        let shape = vec![Affine::constant(1); formula.params(before).len()];
        let name = match formula {
            Formula::Rule(rule) => &before.rules[*rule].name,
            Formula::Template(template) => &template.name,
        };
        let kind = VarKind::Argument(Direction::In);
        let array = Variable::new(name, ScalarType::F64, kind, shape, AddressSpace::Global);
        let array = kernel.vars.push(array);
        // a use may hold another one, which is an element of the array by then
        let with_array = kernel.clone();
        let mut loops = None;
        let mut rewrite = |e: Expr| match formula.find(&with_array, &e) {
            Some(found) => {
                loops.get_or_insert(found.loops);
                Expr::load(array, found.args)
            }
            None => e,
        };
        for insn in chosen {
            kernel.insns[*insn].map_expressions(&mut rewrite);
        }
        Self { kernel, array, loops: loops.unwrap_or_default() } // default: without a use there are none
    }

    /// The rule where the array still stands, which is where it is computed; the variable after it takes its
    /// place.
    pub fn removed(self, formula: &Formula) -> Kernel {
        let mut kernel = self.kernel;
        let last = kernel.vars.ids().next_back();
        let kept = kernel.vars.iter().filter(|(id, _)| *id != self.array).map(|(_, v)| v.clone());
        kernel.vars = kept.collect();
        let mut computed = None;
        let mut rewrite = |mut e: Expr| {
            let Expr::Load(access) = &mut e else { return e };
            if access.var == self.array {
                let args = std::mem::take(&mut access.index);
                return match formula {
                    Formula::Rule(rule) => Expr::Rule(*rule, args),
                    Formula::Template(template) => {
                        let found = computed.insert(Use { args, loops: self.loops.clone() });
                        template.expression(found)
                    }
                };
            }
            if Some(access.var) == last {
                access.var = self.array;
            }
            e
        };
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
            if Some(insn.lhs.var) == last {
                insn.lhs.var = self.array;
            }
        }
        if let (Formula::Template(template), Some(found)) = (formula, &computed) {
            template.set_domains(&mut kernel, found);
        }
        kernel
    }
}
