//! From a kernel and its parameters to the internal form.

use super::error::InterpError;
use super::lower_expr::Lowering;
use super::node::{Bound, Condition, Disjunct, Form, Number, Program, Statement, Step};
use crate::op::{OpKind, Tally};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::Constraint;
use kingpost_ir::expr::Expr;
use kingpost_ir::ids::{Id, InameId, VarId};
use kingpost_ir::kernel::{Assumption, Insn, Kernel, Node, VarKind};
use kingpost_ir::types::ScalarType;
use kingpost_ir::typing::{ExprType, TypeError};
use kingpost_ir::verify::KernelError;
use std::collections::BTreeMap;

/// Elements a variable may have: beyond this a size is taken for a mistake.
const MAX_ELEMENTS: u128 = 1 << 48;

/// The internal form of a kernel.
///
/// # Errors
/// A kernel that is not well formed, a parameter that is missing, does not fit its type or breaks
/// an assumption, an extent that is negative.
pub fn lower(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<Program, InterpError> {
    kernel.verify()?;
    let params = kernel.with_defined(params)?;
    let params = param_values(kernel, &params)?;
    check_assumptions(kernel, &params)?;
    let shapes = kernel.vars.ids().map(|v| shape(kernel, v, &params)).collect::<Result<_, _>>()?;
    let statements = statements(&Lowering { kernel, params: &params, in_index: false })?;
    let domains = kernel.inames.ids().map(|i| domain(kernel, i, &params)).collect();
    Ok(Program { statements, domains, shapes, body: steps(&kernel.body, &mut Vec::new()) })
}

/// The internal form of the instructions of a kernel, in which parameters stay what is loaded.
///
/// # Errors
/// A kernel that is not well formed.
pub fn lower_parametric(kernel: &Kernel) -> Result<Vec<Statement>, InterpError> {
    kernel.verify()?;
    let params = vec![None; kernel.vars.len()];
    statements(&Lowering { kernel, params: &params, in_index: false })
}

fn statements(lowering: &Lowering<'_>) -> Result<Vec<Statement>, InterpError> {
    let kernel = lowering.kernel;
    let mut loops = vec![Vec::new(); kernel.insns.len()];
    for (insn, around) in kernel.schedule() {
        loops[insn.index()] = around;
    }
    let mut statements = Vec::with_capacity(kernel.insns.len());
    for ((_, insn), around) in kernel.insns.iter().zip(loops) {
        statements.push(statement(lowering, insn, around)?);
    }
    Ok(statements)
}

/// Values of the parameters, by variable.
fn param_values(kernel: &Kernel, given: &BTreeMap<String, i64>) -> Result<Vec<Option<i64>>, InterpError> {
    let mut values = vec![None; kernel.vars.len()];
    for (id, var) in kernel.vars.iter().filter(|(_, v)| v.kind == VarKind::Param) {
        let name = || var.name.clone();
        let value =
            *given.get(&var.name).ok_or_else(|| InterpError::Missing { kind: "parameter", name: name() })?;
        if var.ty == ScalarType::I32 && i32::try_from(value).is_err() {
            return Err(InterpError::ParamRange { name: name(), value, needed: var.ty });
        }
        values[id.index()] = Some(value);
    }
    Ok(values)
}

fn at_params(affine: &Affine, params: &[Option<i64>]) -> Option<i64> {
    affine.eval(&mut |atom| match atom {
        Atom::Var(v) => params[v.index()],
        Atom::Iname(_) | Atom::Floor(..) => None,
    })
}

fn check_assumptions(kernel: &Kernel, params: &[Option<i64>]) -> Result<(), InterpError> {
    for assumption in &kernel.assumptions {
        let Assumption::Params(constraint) = assumption else { continue };
        let holds = match (constraint, at_params(constraint.expr(), params)) {
            (_, None) => false,
            (Constraint::Zero(_), Some(value)) => value == 0,
            (Constraint::NonNegative(_), Some(value)) => value >= 0,
        };
        if !holds {
            let assumption = kernel.show_assumption(assumption).to_string();
            return Err(InterpError::Assumption { assumption });
        }
    }
    Ok(())
}

fn shape(kernel: &Kernel, id: VarId, params: &[Option<i64>]) -> Result<Vec<usize>, InterpError> {
    let var = &kernel.vars[id];
    let mut elements = 1_u128;
    let mut extents = Vec::with_capacity(var.shape.len());
    for (axis, extent) in var.shape.iter().enumerate() {
        let value = at_params(extent, params);
        let fitting = value.and_then(|v| usize::try_from(v).ok());
        elements = elements.saturating_mul(fitting.unwrap_or(usize::MAX) as u128);
        match fitting.filter(|_| elements <= MAX_ELEMENTS) {
            Some(extent) => extents.push(extent),
            None => {
                let extent = value.map_or_else(|| "beyond 64 bits".to_owned(), |v| v.to_string());
                return Err(InterpError::Extent { name: var.name.clone(), axis, extent });
            }
        }
    }
    Ok(extents)
}

/// A quasi-affine value with parameters as numbers.
pub(crate) fn form(affine: &Affine, params: &[Option<i64>]) -> Form {
    let mut result = Form { constant: affine.constant_term().into(), ..Form::default() };
    for (atom, c) in affine.terms() {
        match atom {
            Atom::Iname(i) => result.inames.push((*i, *c)),
            Atom::Var(v) => match params[v.index()] {
                Some(value) => result.constant += i128::from(value) * i128::from(*c),
                None => result.vars.push((*v, *c)),
            },
            Atom::Floor(numerator, d) => result.floors.push((form(numerator, params), *d, *c)),
        }
    }
    result
}

fn domain(kernel: &Kernel, iname: InameId, params: &[Option<i64>]) -> Vec<Disjunct> {
    let disjuncts = kernel.inames[iname].domain.disjuncts();
    disjuncts.iter().map(|constraints| disjunct(iname, constraints, params)).collect()
}

fn disjunct(iname: InameId, constraints: &[Constraint], params: &[Option<i64>]) -> Disjunct {
    let mut result = Disjunct::default();
    for constraint in constraints {
        let equal = matches!(constraint, Constraint::Zero(_));
        let coefficient = constraint.expr().coefficient(&Atom::Iname(iname));
        let rest = constraint.expr().minus(&Affine::iname(iname).times(coefficient));
        if coefficient == 0 || rest.mentions(iname) {
            result.checks.push(Condition { equal, form: form(constraint.expr(), params) });
        } else {
            result.bounds.push(Bound { equal, coefficient, rest: form(&rest, params) });
        }
    }
    result
}

fn statement(lowering: &Lowering<'_>, insn: &Insn, loops: Vec<InameId>) -> Result<Statement, InterpError> {
    let typed = |source: TypeError| KernelError::Type { what: format!("`{}`", insn.name), source };
    let ty = lowering.kernel.vars[insn.lhs.var].ty;
    let rhs = lowering.number(&insn.rhs, ty.value_type()).map_err(typed)?;
    let predicate = insn.predicate.as_ref().map(|p| lowering.truth(p)).transpose().map_err(typed)?;
    let update = insn.update_op().map(|op| (op, Tally::new(OpKind::from(op), ty)));
    let lhs = lowering.place(&insn.lhs).map_err(typed)?;
    Ok(Statement { lhs, update, rhs, predicate, loops, touches: None })
}

fn steps(nodes: &[Node], outer: &mut Vec<InameId>) -> Vec<Step> {
    let mut result = Vec::with_capacity(nodes.len());
    for node in nodes {
        result.push(match node {
            Node::Insn(insn) => Step::Insn(*insn),
            Node::Loop(iname, body) => {
                let around = outer.clone();
                outer.push(*iname);
                let body = steps(body, outer);
                outer.pop();
                Step::Loop { iname: *iname, outer: around, body }
            }
        });
    }
    result
}

impl Lowering<'_> {
    /// A right-hand side that is stored as `ty`.
    fn number(&self, e: &Expr, ty: ExprType) -> Result<Number, TypeError> {
        self.value(e, None)?.coerce(ty).into_number()
    }

    fn truth(&self, e: &Expr) -> Result<super::node::Truth, TypeError> {
        self.value(e, None)?.into_truth()
    }
}
