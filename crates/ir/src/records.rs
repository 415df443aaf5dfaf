//! The records and declared operators of a kernel: what it uses of them, and whether they are well
//! formed.

use crate::closed::Closed;
use crate::expr::{Expr, MathFn, UnaryOp, UpdateOp};
use crate::kernel::{Insn, Kernel, Rule, WriteOp};
use crate::types::{Class, RecordType, ScalarType};
use crate::typing::{ExprType, TypeError};
use crate::user_operator::{NamedOperator, Operator};

/// What a kernel uses of records, in the order in which its text declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Its records.
    pub records: Vec<RecordType>,
    /// Its operators of them.
    pub operators: Vec<NamedOperator>,
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

    fn expression(&mut self, e: &Expr) {
        e.for_each(&mut |e| match e {
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
        records.chain(self.operators.iter().map(|operator| operator.name()))
    }
}

impl Kernel {
    /// The records and operators that it uses.
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
        let operand = |k: u32| Expr::RuleParam(k);
        let body = self.apply(&operand(0), &operand(1));
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
