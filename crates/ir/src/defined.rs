//! Parameters that are computed from others: their definitions, their values, and what is known of them.

use crate::affine::Affine;
use crate::domain::Constraint;
use crate::elimination::implied;
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::host_expr::{HostExpr, HostExprError};
use crate::ids::{Id, VarId};
use crate::kernel::{Assumption, Kernel, VarKind};
use crate::verify::KernelError;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Bounds of an expression that are looked at.
const MAX_BOUNDS: usize = 8;

/// Why a parameter that is computed from others has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum DefinitionError {
    #[error("parameter `{name}` = `{value}` does not fit 64 bits with {params}; use smaller sizes")]
    Overflow { name: String, value: String, params: String },
    #[error("parameter `{name}` = `{value}` divides by zero with {params}")]
    DivisionByZero { name: String, value: String, params: String },
    #[error(
        "parameter `{name}` is given as {found}, and it is computed as `{value}` = {needed}; leave it out"
    )]
    Differs { name: String, value: String, found: i64, needed: i64 },
}

impl Kernel {
    /// The parameters that are computed from others, with what they are computed as, in order.
    pub fn definitions(&self) -> impl Iterator<Item = (VarId, &Expr)> {
        self.assumptions.iter().filter_map(|assumption| match assumption {
            Assumption::Defined(param, value) => Some((*param, value)),
            Assumption::Params(_)
            | Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => None,
        })
    }

    /// What a parameter is computed as, if it is not given.
    #[must_use]
    pub fn definition(&self, param: VarId) -> Option<&Expr> {
        self.definitions().find(|(v, _)| *v == param).map(|(_, value)| value)
    }

    /// Values of parameters with those that are computed from them. One whose terms have no value has none.
    ///
    /// # Errors
    /// A value that does not fit 64 bits, a division by zero, a given value that differs.
    pub fn with_defined<'p>(
        &self,
        params: &'p BTreeMap<String, i64>,
    ) -> Result<Cow<'p, BTreeMap<String, i64>>, DefinitionError> {
        let mut all = Cow::Borrowed(params);
        for (param, value) in self.definitions() {
            let name = || self.vars[param].name.clone();
            let text = || self.show_expr(value).to_string();
            let Some(computed) = HostExpr::of_definition(value, &|v| self.vars[v].name.clone()) else {
                continue; // the verifier refuses it
            };
            let needed = match computed.eval(&all) {
                Ok(needed) => needed,
                Err(HostExprError::Unbound(_)) => continue,
                // no array is meant, which alone may be negative
                Err(HostExprError::Overflow { .. } | HostExprError::Negative(_)) => {
                    let (name, value, params) = (name(), text(), self.terms_with(value, &all));
                    return Err(DefinitionError::Overflow { name, value, params });
                }
                Err(HostExprError::DivisionByZero(_)) => {
                    let (name, value, params) = (name(), text(), self.terms_with(value, &all));
                    return Err(DefinitionError::DivisionByZero { name, value, params });
                }
            };
            match all.get(&self.vars[param].name) {
                Some(found) if *found != needed => {
                    let (name, value, found) = (name(), text(), *found);
                    return Err(DefinitionError::Differs { name, value, found, needed });
                }
                Some(_) => {}
                None => {
                    all.to_mut().insert(name(), needed);
                }
            }
        }
        Ok(all)
    }

    /// `n = 3, m = 4` for the parameters of an expression.
    fn terms_with(&self, e: &Expr, params: &BTreeMap<String, i64>) -> String {
        let mut terms = Vec::new();
        for param in params_of(e) {
            let name = &self.vars[param].name;
            terms.extend(params.get(name).map(|value| format!("{name} = {value}")));
        }
        terms.dedup();
        terms.join(", ")
    }

    /// What is known of the parameters: what is assumed, and what follows from how some are computed.
    /// Affine definitions are equations; of others there are bounds.
    #[must_use]
    pub fn known_of_parameters(&self) -> Vec<Constraint> {
        let mut all = Vec::new();
        for assumption in &self.assumptions {
            if let Assumption::Params(c) = assumption {
                all.push(c.clone());
            }
        }
        let known = all.iter().flat_map(Constraint::not_negative).collect();
        all.extend(self.known_of_definitions(known));
        all
    }

    /// What follows from how parameters are computed where what is `known` is not negative.
    #[must_use]
    pub fn known_of_definitions(&self, mut known: Vec<Affine>) -> Vec<Constraint> {
        let mut all = Vec::new();
        for (param, value) in self.definitions() {
            let param = Affine::var(param);
            let first = all.len();
            if let Some(value) = value.as_affine() {
                all.push(Constraint::equal(&param, &value));
            } else {
                let bounds = Bounds::of(value, &known);
                all.extend(bounds.lower.iter().map(|bound| Constraint::le(bound, &param)));
                all.extend(bounds.upper.iter().map(|bound| Constraint::le(&param, bound)));
            }
            known.extend(all[first..].iter().flat_map(Constraint::not_negative));
        }
        all
    }

    /// A definition is of a parameter that has no other, by integer operations on parameters above it.
    pub(crate) fn verify_definition(&self, param: VarId, value: &Expr) -> Result<(), KernelError> {
        let refuse = |why| Err(KernelError::Variable { var: self.vars[param].name.clone(), why });
        if self.vars[param].kind != VarKind::Param {
            return refuse("only parameters are computed from others");
        }
        if self.definitions().filter(|(v, _)| *v == param).count() > 1 {
            return refuse("it is computed in two ways");
        }
        if let Some(limit) = crate::depth::exceeded(value) {
            let what = format!("what `{}` is computed as", self.vars[param].name);
            return Err(KernelError::TooDeep { what, limit, unit: "operations" });
        }
        if !is_definition(value) {
            return refuse(
                "a parameter is computed by `+`, `-`, `*`, `floor_div`, `mod`, `min` and `max` of parameters",
            );
        }
        let is_above = |v: VarId| v.index() < param.index() && self.vars[v].kind == VarKind::Param;
        match params_of(value).into_iter().all(is_above) {
            true => Ok(()),
            false => refuse("it is computed from parameters that are declared above it, and nothing else"),
        }
    }
}

/// A definition in its normal form: affine ones are written as such, others without terms are numbers.
pub(crate) fn normalised(value: &Expr) -> Expr {
    let number = || computed(value)?.eval(&BTreeMap::new()).ok();
    match value.as_affine() {
        Some(affine) => Expr::from_affine(&affine),
        None => number().map_or_else(|| value.clone(), Expr::Int),
    }
}

/// The scalars that a definition mentions, in order.
pub(crate) fn params_of(value: &Expr) -> Vec<VarId> {
    let mut found = Vec::new();
    value.for_each(&mut |e| found.extend(e.as_load().map(|access| access.var)));
    found
}

/// What an expression computes, if a parameter may be computed so; parameters have the names of their ids.
fn computed(e: &Expr) -> Option<HostExpr> {
    HostExpr::of_definition(e, &|v| format!("{v:?}"))
}

/// Whether a parameter may be computed so.
pub(crate) fn is_definition(e: &Expr) -> bool {
    computed(e).is_some()
}

/// Affine bounds of an expression, ends included.
#[derive(Default)]
struct Bounds {
    lower: Vec<Affine>,
    upper: Vec<Affine>,
}

impl Bounds {
    /// Where what is `known` is not negative.
    fn of(e: &Expr, known: &[Affine]) -> Self {
        if let Some(value) = e.as_affine() {
            return Self { lower: vec![value.clone()], upper: vec![value] };
        }
        let mut found = match e {
            Expr::Unary(UnaryOp::Neg, a) => Self::of(a, known).times(-1),
            Expr::Binary(op, a, b) => match (op, a.as_affine().and_then(|a| a.as_constant()), &**b) {
                (BinaryOp::Mul, Some(factor), _) => Self::of(b, known).times(factor),
                (BinaryOp::Mul, None, Expr::Int(factor)) => Self::of(a, known).times(*factor),
                _ => Self::joined(*op, &Self::of(a, known), Self::of(b, known), known),
            },
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => Self::default(),
        };
        for bounds in [&mut found.lower, &mut found.upper] {
            bounds.retain(Affine::in_bounds);
            bounds.truncate(MAX_BOUNDS);
        }
        found
    }

    fn times(self, factor: i64) -> Self {
        let scaled = |all: Vec<Affine>| all.iter().map(|bound| bound.times(factor)).collect();
        let (lower, upper) = (scaled(self.lower), scaled(self.upper));
        if factor < 0 { Self { lower: upper, upper: lower } } else { Self { lower, upper } }
    }

    /// Whether it is surely no less than a number.
    fn is_at_least(&self, least: i64, known: &[Affine]) -> bool {
        self.lower.iter().any(|bound| implied(known, &bound.plus_constant(-least)))
    }

    fn joined(op: BinaryOp, a: &Self, b: Self, known: &[Affine]) -> Self {
        let pairs = |a: &[Affine], b: &[Affine]| -> Vec<Affine> {
            a.iter().flat_map(|x| b.iter().map(|y| x.plus(y))).collect()
        };
        let (natural, other) = (a.is_at_least(0, known), b.is_at_least(0, known));
        let [a_positive, b_positive] = [a, &b].map(|x| x.is_at_least(1, known));
        match op {
            BinaryOp::Add => Self { lower: pairs(&a.lower, &b.lower), upper: pairs(&a.upper, &b.upper) },
            BinaryOp::Sub => {
                let b = b.times(-1);
                Self { lower: pairs(&a.lower, &b.lower), upper: pairs(&a.upper, &b.upper) }
            }
            // of two factors that are not negative, one that is positive leaves at least the other
            BinaryOp::Mul if natural && other => {
                let mut lower = vec![Affine::constant(i64::from(a_positive && b_positive))];
                lower.extend(a.lower.iter().filter(|_| b_positive).cloned());
                lower.extend(b.lower.into_iter().filter(|_| a_positive));
                Self { lower, upper: Vec::new() }
            }
            BinaryOp::FloorDiv if natural && b_positive => {
                Self { lower: vec![Affine::constant(0)], upper: a.upper.clone() }
            }
            BinaryOp::Mod if b_positive => {
                let upper = b.upper.iter().map(|bound| bound.plus_constant(-1)).collect();
                Self { lower: vec![Affine::constant(0)], upper }
            }
            BinaryOp::Min => {
                let least = if a_positive && b_positive { Some(1) } else { (natural && other).then_some(0) };
                let upper = a.upper.iter().chain(&b.upper).cloned().collect();
                Self { lower: least.map(Affine::constant).into_iter().collect(), upper }
            }
            BinaryOp::Max => {
                Self { lower: a.lower.iter().chain(&b.lower).cloned().collect(), upper: Vec::new() }
            }
            BinaryOp::Mul
            | BinaryOp::FloorDiv
            | BinaryOp::Mod
            | BinaryOp::Div
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => Self::default(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn known(definition: &str, assumed: &str) -> Vec<String> {
        let text = format!(
            "kernel k\nparam n: i32\nparam m: i32\nparam d: i64 = {definition}\n{assumed}arg x: f64[1] out\n\nx[0] = 1.0\n"
        );
        let kernel = parse(&text).unwrap();
        let first = kernel.assumptions.iter().filter(|a| matches!(a, Assumption::Params(_))).count();
        let shown = |c: &Constraint| kernel.show_constraint(c).to_string();
        kernel.known_of_parameters().iter().skip(first).map(shown).collect()
    }

    #[test]
    fn definitions_say_what_is_sound() {
        let positive = "assume n >= 1\nassume m >= 1\n";
        assert_eq!(known("n + 1", ""), ["n + 1 == d"]);
        assert_eq!(known("n*m", ""), [""; 0]);
        assert_eq!(known("n*m", "assume n >= 0\nassume m >= 0\n"), ["d >= 0"]);
        assert_eq!(known("n*m", positive), ["d >= 1", "n <= d", "m <= d"]);
        assert_eq!(known("2*(n*m) - 3", positive), ["d >= -1", "2*n <= d + 3", "2*m <= d + 3"]);
        assert_eq!(known("-(n*m)", positive), ["d < 0", "n + d <= 0", "m + d <= 0"]);
        assert_eq!(known("min(n, m)", ""), ["d <= n", "d <= m"]);
        assert_eq!(known("max(n, 7)", ""), ["n <= d", "d >= 7"]);
        assert_eq!(known("floor_div(n, m)", positive), ["d >= 0", "d <= n"]);
        assert_eq!(known("n mod m", positive), ["d >= 0", "d < m"]);
    }

    #[test]
    fn values_are_checked() {
        let kernel = parse(
            "kernel k\nparam n: i64\nparam m: i64\nparam d: i64 = n*m\nparam e: i64 = floor_div(d, n) - 1\narg x: f64[1] out\n\nx[0] = 1.0\n",
        )
        .unwrap();
        let with = |given: &[(&str, i64)]| {
            let params = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let all = kernel.with_defined(&params).map(Cow::into_owned);
            all.map(|all| all.into_values().collect::<Vec<_>>()).map_err(|e| e.to_string())
        };
        // in order of names: d, e, m, n
        assert_eq!(with(&[("n", 3), ("m", 4)]), Ok(vec![12, 3, 4, 3]));
        assert_eq!(with(&[("n", 3), ("m", 4), ("d", 12)]), Ok(vec![12, 3, 4, 3]));
        assert_eq!(with(&[("n", 3)]), Ok(vec![3]));
        assert_eq!(
            with(&[("n", 3), ("m", 4), ("d", 13)]).unwrap_err(),
            "parameter `d` is given as 13, and it is computed as `n*m` = 12; leave it out"
        );
        assert_eq!(
            with(&[("n", 1 << 40), ("m", 1 << 40)]).unwrap_err(),
            "parameter `d` = `n*m` does not fit 64 bits with n = 1099511627776, m = 1099511627776; use smaller sizes"
        );
        assert_eq!(
            with(&[("n", 0), ("m", 4)]).unwrap_err(),
            "parameter `e` = `floor_div(d, n) - 1` divides by zero with d = 0, n = 0"
        );
    }
}
