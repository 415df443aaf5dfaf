//! The records, declared operators and declared functions of a kernel: what it uses of them, and whether
//! they are well formed.

use crate::expr::{Expr, MathFn, UnaryOp, UpdateOp};
use crate::functions::{Closed, ExternalFn, around};
use crate::kernel::{Insn, Kernel, Rule, WriteOp};
use crate::types::{Class, RecordType, ScalarType};
use crate::typing::{ExprType, TypeError};
use crate::user_operator::{NamedOperator, Operator};

/// What a kernel uses of records and declared functions, in the order in which its text declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Its records.
    pub records: Vec<RecordType>,
    /// Its operators of them.
    pub operators: Vec<NamedOperator>,
    /// Its functions with code for targets; what one computes may use those before it.
    pub externals: Vec<ExternalFn>,
}

impl Declared {
    fn record(&mut self, record: RecordType) {
        if !self.records.contains(&record) {
            self.records.push(record);
        }
    }

    fn operator(&mut self, op: UpdateOp) {
        if let Some(operator) = op.named()
            && !self.operators.contains(&operator)
        {
            self.record(operator.record);
            self.expression(&operator.as_rule().body);
            self.operators.push(operator);
        }
    }

    fn external(&mut self, function: ExternalFn) {
        if !self.externals.contains(&function) {
            function.as_rule().into_iter().for_each(|rule| self.expression(&rule.body));
            self.externals.push(function);
        }
    }

    fn expression(&mut self, e: &Expr) {
        e.for_each(&mut |e| match e {
            Expr::Call(MathFn::External(function), _) => self.external(*function),
            Expr::Unary(UnaryOp::Field(record, _), _) | Expr::Call(MathFn::Record(record), _) => {
                self.record(*record);
            }
            Expr::Reduce(r) => self.operator(r.op),
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => {}
        });
    }

    /// Their names, which nothing else in a kernel may have.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        let records = self.records.iter().map(|record| record.name());
        let operators = self.operators.iter().map(|operator| operator.name());
        records.chain(operators).chain(self.externals.iter().map(|function| function.name()))
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.operators.is_empty() && self.externals.is_empty()
    }
}

impl Kernel {
    /// The records, operators and declared functions that it uses, its callees included.
    pub fn declared(&self) -> Declared {
        let mut declared = Declared::default();
        for var in self.vars.values() {
            var.ty.record().into_iter().for_each(|record| declared.record(record));
        }
        self.rules.values().for_each(|rule| declared.expression(&rule.body));
        for insn in self.insns.values() {
            if let WriteOp::Update { op, .. } = insn.op {
                declared.operator(op);
            }
            insn.expressions().for_each(|e| declared.expression(e));
        }
        for callee in self.callees.values() {
            let Declared { records, operators, externals } = callee.kernel.declared();
            records.into_iter().for_each(|record| declared.record(record));
            operators.into_iter().for_each(|operator| declared.operator(UpdateOp::Named(operator)));
            externals.into_iter().for_each(|function| declared.external(function));
        }
        declared
    }

    /// Whether it uses a record.
    pub fn has_records(&self) -> bool {
        self.vars.values().any(|var| var.ty.class() == Class::Record) || !self.declared().records.is_empty()
    }
}

impl Operator {
    /// The rule of its operands and its body.
    pub(crate) fn as_rule(&self) -> Rule {
        let body = self.apply(&Expr::RuleParam(0), &Expr::RuleParam(1));
        Rule { name: self.name.clone(), params: self.params.to_vec(), body }
    }

    /// Its value for two operands.
    pub fn apply(&self, a: &Expr, b: &Expr) -> Expr {
        opened(&self.body, &[a, b])
    }

    /// What changes no value, and what a reduction over nothing is.
    pub fn identity(&self) -> Expr {
        Expr::call(MathFn::Record(self.record), self.identity.iter().map(|e| opened(e, &[])))
    }

    /// Whether body and identity are values of the record.
    pub(crate) fn check(&self) -> Result<(), TypeError> {
        let record = ExprType::Scalar(ScalarType::Record(self.record));
        let kernel = Kernel::default();
        kernel.type_of(&self.identity(), &[])?;
        match kernel.type_of(&self.as_rule().body, &[record; 2])? {
            found if found == record => Ok(()),
            found => {
                let op = self.name.clone();
                Err(TypeError::Operand { op, needed: "a value of the record that it joins", found })
            }
        }
    }
}

impl ExternalFn {
    /// The rule of its parameters and of what it computes, if that is known.
    pub(crate) fn as_rule(self) -> Option<Rule> {
        let operands: Vec<Expr> = (0..).zip(&self.params).map(|(k, _)| Expr::RuleParam(k)).collect();
        let body = opened(self.meaning.as_ref()?, &operands.iter().collect::<Vec<_>>());
        let params = self.params.iter().map(|param| param.name.clone()).collect();
        Some(Rule { name: self.name.clone(), params, body })
    }

    /// What a call of it computes, if that is known: its arguments are converted to the types of its
    /// parameters, and the value to that of its result.
    pub fn applied(self, args: &[Expr]) -> Option<Expr> {
        let convert = |ty: ScalarType, e: &Expr| Expr::Cast(ty, Box::new(e.clone()));
        let args: Vec<Expr> = self.params.iter().zip(args).map(|(param, e)| convert(param.ty, e)).collect();
        let value = opened(self.meaning.as_ref()?, &args.iter().collect::<Vec<_>>());
        Some(convert(self.result, &value))
    }

    /// Whether what it computes is a value of its result.
    pub(crate) fn check(self) -> Result<(), TypeError> {
        let Some(rule) = self.as_rule() else { return Ok(()) };
        let params: Vec<ExprType> = self.params.iter().map(|param| param.ty.value_type()).collect();
        let found = Kernel::default().type_of(&rule.body, &params)?;
        if found.stores_in(self.result) {
            return Ok(());
        }
        Err(TypeError::Operand { op: "->".into(), needed: "a value of the declared type", found })
    }
}

impl Kernel {
    /// The same kernel with what declared functions compute instead of their calls, where that is known.
    #[must_use]
    pub fn with_meanings(&self) -> Self {
        let mut kernel = self.clone();
        for rule in kernel.rules.values_mut() {
            rule.body = with_meanings(&rule.body);
        }
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut meaning);
        }
        kernel
    }

    /// Operations of an expression, and how deep they are nested, where each call of a declared function is
    /// what it computes.
    pub(crate) fn size_with_meanings(&self, e: &Expr) -> (usize, usize) {
        let inner: Vec<_> = e.operands().map(|operand| self.size_with_meanings(operand)).collect();
        let body = match e {
            Expr::Call(MathFn::External(function), _) => return function.size_of(&inner),
            Expr::Rule(rule, _) => self.size_with_meanings(&self.rules[*rule].body),
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::RuleParam(_) => (0, 0),
        };
        let (size, depth) = around(&inner);
        (size.saturating_add(body.0), depth.saturating_add(body.1))
    }
}

fn with_meanings(e: &Expr) -> Expr {
    e.map(&mut meaning)
}

/// What a call computes whose arguments call no declared function.
fn meaning(e: Expr) -> Expr {
    let Expr::Call(MathFn::External(function), args) = &e else { return e };
    function.applied(args).map_or(e, |value| with_meanings(&value))
}

/// A closed expression of some operands.
fn opened(e: &Closed, operands: &[&Expr]) -> Expr {
    let of = |e: &Closed| opened(e, operands);
    let boxed = |e: &Closed| Box::new(of(e));
    match e {
        // one that is not there has no type
        Closed::Operand(k) => operands
            .get(usize::from(*k))
            .map_or_else(|| Expr::RuleParam(u32::from(*k)), |operand| (*operand).clone()),
        Closed::Int(value) => Expr::Int(*value),
        Closed::Real(value) => Expr::Real(*value),
        Closed::Unary(op, a) => Expr::Unary(*op, boxed(a)),
        Closed::Binary(op, a, b) => Expr::Binary(*op, boxed(a), boxed(b)),
        Closed::Call(function, args) => Expr::Call(*function, args.iter().map(of).collect()),
        Closed::Cast(ty, a) => Expr::Cast(*ty, boxed(a)),
        Closed::Select(c, a, b) => Expr::Select(boxed(c), boxed(a), boxed(b)),
    }
}

/// The same expression of operands and literals; none if it reads anything else.
pub fn closed(e: &Expr) -> Option<Closed> {
    let boxed = |e: &Expr| closed(e).map(Box::new);
    Some(match e {
        Expr::RuleParam(k) => Closed::Operand(u8::try_from(*k).ok()?),
        Expr::Int(value) => Closed::Int(*value),
        Expr::Real(value) => Closed::Real(*value),
        Expr::Unary(op, a) => Closed::Unary(*op, boxed(a)?),
        Expr::Binary(op, a, b) => Closed::Binary(*op, boxed(a)?, boxed(b)?),
        Expr::Call(function, args) => {
            Closed::Call(*function, args.iter().map(closed).collect::<Option<_>>()?)
        }
        Expr::Cast(ty, a) => Closed::Cast(*ty, boxed(a)?),
        Expr::Select(c, a, b) => Closed::Select(boxed(c)?, boxed(a)?, boxed(b)?),
        Expr::Iname(_) | Expr::Load(_) | Expr::Reduce(_) | Expr::Rule(..) => return None,
    })
}

/// Why an instruction may not write or read records as it does.
pub(crate) fn refused(kernel: &Kernel, insn: &Insn) -> Option<&'static str> {
    let writes_record = kernel.vars[insn.lhs.var].ty.class() == Class::Record;
    if insn.is_atomic() && writes_record {
        return Some("updates a record atomically, which no target can; use `reduce_in_tree`");
    }
    if writes_record && insn.lhs.index.iter().any(|e| e.loads(insn.lhs.var)) {
        return Some("reads the record that it writes in an index; store the index in a scalar first");
    }
    let of_records = |e: &Expr| matches!(e, Expr::Reduce(r) if r.op.named().is_some());
    let value = if let Expr::Reduce(r) = &insn.rhs { &*r.body } else { &insn.rhs };
    let inside = value.any(&mut |e| of_records(e));
    let elsewhere = insn.lhs.index.iter().chain(&insn.predicate).any(|e| e.any(&mut |e| of_records(e)));
    (inside || elsewhere).then_some(
        "reduces records inside an expression; store the reduction in a temporary, and read the fields of that",
    )
}
