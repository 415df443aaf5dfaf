//! Kernels without records: a variable for each field, and an instruction for each of them.
//!
//! This is the meaning of records. The interpreter and code generation see this form alone; steps see
//! the records, so that one access stays one access.
//!
//! ```text
//! s: best argmin= Best(x[j], j)    =>   s_rhs_value = x[j]
//!                                       s_rhs_at = i64(j)
//!                                       s_value = select(s_rhs_value < best_value or ..., s_rhs_value, best_value)
//!                                       s_at = select(..., s_rhs_at, best_at)
//!                                       s: best_value = s_value
//!                                       best_at = s_at
//! ```

use crate::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use crate::ids::{Id, InsnId, VarId};
use crate::kernel::{AddressSpace, Insn, Kernel, Node, VarKind, Variable, WriteOp};
use crate::types::{Class, RecordType, ScalarType};
use std::borrow::Cow;

impl Kernel {
    /// The same kernel without records: `best` of `Best(value, at)` is `best_value` and `best_at`. Other
    /// variables keep their ids, and instructions their names; rules are expanded.
    #[must_use]
    pub fn scalar_form(&self) -> Cow<'_, Self> {
        if !self.has_records() {
            return Cow::Borrowed(self);
        }
        let records = self.with_rules_expanded();
        let mut scalars = Scalars { kernel: records.clone(), records: &records, fields: Vec::new() };
        scalars.declare_fields();
        for node in &records.body {
            let nodes = scalars.node(node);
            scalars.kernel.body.extend(nodes);
        }
        Cow::Owned(scalars.kernel.canonical())
    }
}

struct Scalars<'k> {
    /// Without rules.
    records: &'k Kernel,
    /// What it becomes.
    kernel: Kernel,
    /// The variables of the fields of each variable that holds records.
    fields: Vec<Vec<VarId>>,
}

/// Where the value of a field goes, or stands.
type Fields = Vec<Access>;

impl Scalars<'_> {
    /// The first field takes the place of its record, so that what comes after it keeps its id; the
    /// others follow at the end.
    fn declare_fields(&mut self) {
        self.kernel.body.clear();
        for (id, var) in self.records.vars.iter() {
            let Some(record) = var.ty.record() else {
                self.fields.push(Vec::new());
                continue;
            };
            let mut fields = Vec::new();
            for (k, field) in record.fields.iter().enumerate() {
                let name = self.kernel.fresh_name(&format!("{}_{}", var.name, field.name));
                let storage = var.storage.as_ref().map(|of| format!("{of}_{}", field.name));
                let scalar = Variable { name, ty: field.ty, storage, ..var.clone() };
                if k == 0 {
                    self.kernel.vars[id] = scalar;
                    fields.push(id);
                } else {
                    fields.push(self.kernel.vars.push(scalar));
                }
            }
            self.fields.push(fields);
        }
    }

    fn node(&mut self, node: &Node) -> Vec<Node> {
        match node {
            Node::Loop(iname, body) => {
                let body = body.iter().flat_map(|node| self.node(node)).collect();
                vec![Node::Loop(*iname, body)]
            }
            Node::Insn(id) => self.insn(*id),
        }
    }

    fn insn(&mut self, id: InsnId) -> Vec<Node> {
        let insn = &self.records.insns[id];
        let mut before = Vec::new();
        let lhs = self.access(&insn.lhs);
        let predicate = insn.predicate.as_ref().map(|p| self.scalar(p));
        let Some(record) = self.records.vars[insn.lhs.var].ty.record() else {
            let rhs = self.scalar(&insn.rhs);
            self.kernel.insns[id] = Insn { lhs, rhs, predicate, ..insn.clone() };
            return vec![Node::Insn(id)];
        };
        let mut plain = Insn { lhs, predicate, op: WriteOp::Assign, callee: None, ..insn.clone() };
        if let Some(p) = plain.predicate.take() {
            // the first field that is written may change it
            let holds = if insn.predicate.as_ref().is_some_and(|p| p.loads(insn.lhs.var)) {
                let holds = self.temporary(&format!("{}_if", insn.name), ScalarType::Bool);
                before.push(self.assign(&plain, &holds, p));
                Expr::Load(holds)
            } else {
                p
            };
            plain.predicate = Some(holds);
        }
        let written = self.fields_of(&insn.lhs);
        let reduction =
            if let Expr::Reduce(r) = &insn.rhs { Some(r).filter(|r| r.op.named().is_some()) } else { None };
        let value = match reduction {
            Some(r) => {
                let acc: Fields = self.temporaries(&format!("{}_acc", insn.name), record);
                let start = crate::neutral::of_nothing(r.op, self.records.vars[insn.lhs.var].ty);
                let always = Insn { predicate: None, ..plain.clone() };
                for (to, value) in acc.iter().zip(self.values(&start, record)) {
                    before.push(self.assign(&always, to, value));
                }
                let joined = self.join(&plain, r.op, record, &acc, &r.body);
                let nest = |nodes, iname: &_| vec![Node::Loop(*iname, nodes)];
                before.extend(r.inames.iter().rev().fold(joined, nest));
                Err(acc)
            }
            None => Ok(&insn.rhs),
        };
        let after = match (insn.op, value) {
            // a field that is written must not change another one
            (WriteOp::Assign, Ok(rhs)) => {
                let mut values = self.values(rhs, record);
                if rhs.loads(insn.lhs.var) && record.fields.len() > 1 {
                    values = self.held(&plain, "", record, values, &mut before);
                }
                self.stores(id, &plain, &written, values)
            }
            (WriteOp::Assign, Err(acc)) => {
                let values = acc.into_iter().map(Expr::Load).collect();
                self.stores(id, &plain, &written, values)
            }
            (WriteOp::Update { op, .. }, value) => {
                let values = match value {
                    Ok(rhs) => {
                        let values = self.values(rhs, record);
                        self.held(&plain, "_rhs", record, values, &mut before)
                    }
                    Err(acc) => acc.into_iter().map(Expr::Load).collect(),
                };
                let values = self.joined(op, record, &written, &values);
                let values = self.held(&plain, "", record, values, &mut before);
                self.stores(id, &plain, &written, values)
            }
        };
        before.extend(after);
        before
    }

    /// `acc op= value` of private scalars.
    fn join(
        &mut self,
        plain: &Insn,
        op: UpdateOp,
        record: RecordType,
        acc: &Fields,
        value: &Expr,
    ) -> Vec<Node> {
        let mut nodes = Vec::new();
        let values = self.values(value, record);
        let values = self.held(plain, "_rhs", record, values, &mut nodes);
        let values = self.joined(op, record, acc, &values);
        let values = self.held(plain, "", record, values, &mut nodes);
        for (to, value) in acc.iter().zip(values) {
            nodes.push(self.assign(plain, to, value));
        }
        nodes
    }

    /// The fields of `op(before, values)`.
    fn joined(&self, op: UpdateOp, record: RecordType, before: &Fields, values: &[Expr]) -> Vec<Expr> {
        let a = record_of(record, before.iter().cloned().map(Expr::Load));
        let b = record_of(record, values.iter().cloned());
        let joined = op.joined(a, b);
        let of = |k| field(record, k, joined.clone()).map(&mut |e| simplified(e, &self.kernel));
        (0..).zip(&record.fields).map(|(k, _)| of(k)).collect()
    }

    /// The values of the fields of an expression.
    fn values(&self, e: &Expr, record: RecordType) -> Vec<Expr> {
        if let Expr::Call(MathFn::Record(_), values) = e {
            return values.iter().map(|value| self.scalar(value)).collect();
        }
        (0..).zip(&record.fields).map(|(k, _)| self.scalar(&field(record, k, e.clone()))).collect()
    }

    /// An expression without records, if its value is none.
    fn scalar(&self, e: &Expr) -> Expr {
        let simple = e.map(&mut |e| simplified(e, self.records));
        simple.map(&mut |e| {
            let found = if let Expr::Unary(UnaryOp::Field(_, k), of) = &e {
                of.as_load().zip(Some(*k))
            } else {
                None
            };
            let of = |(access, k): (&Access, u8)| {
                let var = *self.fields[access.var.index()].get(usize::from(k))?;
                Some(Expr::Load(Access { var, index: access.index.clone() }))
            };
            found.and_then(of).unwrap_or(e)
        })
    }

    fn access(&self, access: &Access) -> Access {
        Access { var: access.var, index: access.index.iter().map(|e| self.scalar(e)).collect() }
    }

    /// The elements of the fields of an element.
    fn fields_of(&self, access: &Access) -> Fields {
        let Access { var, index } = self.access(access);
        let of = |field: &VarId| Access { var: *field, index: index.clone() };
        self.fields[var.index()].iter().map(of).collect()
    }

    fn temporary(&mut self, name: &str, ty: ScalarType) -> Access {
        let name = self.kernel.fresh_name(name);
        let var = Variable::new(name, ty, VarKind::Temporary, [], AddressSpace::Private);
        Access::scalar(self.kernel.vars.push(var))
    }

    fn temporaries(&mut self, stem: &str, record: RecordType) -> Fields {
        record.fields.iter().map(|f| self.temporary(&format!("{stem}_{}", f.name), f.ty)).collect()
    }

    /// Values in scalars of their own. One that is set under a condition has a value before, so that what
    /// reads it surely finds none of another iteration.
    fn held(
        &mut self,
        plain: &Insn,
        suffix: &str,
        record: RecordType,
        values: Vec<Expr>,
        before: &mut Vec<Node>,
    ) -> Vec<Expr> {
        let held = self.temporaries(&format!("{}{suffix}", plain.name), record);
        if plain.predicate.is_some() {
            let always = Insn { predicate: None, ..plain.clone() };
            for (to, field) in held.iter().zip(&record.fields) {
                let nothing =
                    if field.ty.class() == Class::Truth { Expr::truth(false) } else { Expr::Int(0) };
                before.push(self.assign(&always, to, nothing));
            }
        }
        for (to, value) in held.iter().zip(values) {
            before.push(self.assign(plain, to, value));
        }
        held.into_iter().map(Expr::Load).collect()
    }

    fn assign(&mut self, plain: &Insn, lhs: &Access, rhs: Expr) -> Node {
        let name = self.kernel.fresh_name(&format!("set_{}", self.kernel.vars[lhs.var].name));
        Node::Insn(self.kernel.insns.push(Insn { name, lhs: lhs.clone(), rhs, ..plain.clone() }))
    }

    /// The last instructions, of which the first has the name of the one that they are.
    fn stores(&mut self, id: InsnId, plain: &Insn, to: &Fields, values: Vec<Expr>) -> Vec<Node> {
        let mut nodes = Vec::new();
        for (k, (lhs, rhs)) in to.iter().zip(values).enumerate() {
            if k == 0 {
                self.kernel.insns[id] = Insn { lhs: lhs.clone(), rhs, ..plain.clone() };
                nodes.push(Node::Insn(id));
            } else {
                nodes.push(self.assign(plain, lhs, rhs));
            }
        }
        nodes
    }
}

fn record_of(record: RecordType, values: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::call(MathFn::Record(record), values)
}

fn field(record: RecordType, k: u8, of: Expr) -> Expr {
    Expr::Unary(UnaryOp::Field(record, k), Box::new(of))
}

/// The field of a record that is made or selected: of its values, in the type of the field.
fn simplified(e: Expr, types: &Kernel) -> Expr {
    let Expr::Unary(UnaryOp::Field(record, k), of) = &e else { return e };
    let (record, k) = (*record, *k);
    let ty = record.field_of(k).map_or(ScalarType::F64, |field| field.ty);
    let of_branch = |e: &Expr| simplified(field(record, k, e.clone()), types);
    if let Expr::Select(c, a, b) = &**of {
        if ty.class() != Class::Truth {
            return Expr::Select(c.clone(), Box::new(of_branch(a)), Box::new(of_branch(b)));
        }
        let not = Expr::Unary(UnaryOp::Not, c.clone());
        let side = |c, value| Expr::binary(BinaryOp::And, c, value);
        return Expr::binary(BinaryOp::Or, side((**c).clone(), of_branch(a)), side(not, of_branch(b)));
    }
    let Expr::Call(MathFn::Record(_), values) = &**of else { return e };
    // as well typed as the kernel is
    values.get(usize::from(k)).and_then(|value| types.coerced(value, ty).ok()).unwrap_or(e)
}
