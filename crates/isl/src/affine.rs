//! Plain quasi-affine expressions and constraints by names: data that can cross threads.

use std::fmt;

/// `sum coefficient * name + sum coefficient * floor(numerator / denominator) + constant`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Affine {
    /// Coefficients of dimensions and parameters. A name may repeat: its coefficients add up.
    pub terms: Vec<(String, i64)>,
    /// Coefficients of floor divisions.
    pub divs: Vec<(FloorDiv, i64)>,
    /// The constant term.
    pub constant: i64,
}

/// `floor(numerator / denominator)` with `denominator >= 1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FloorDiv {
    /// What is divided.
    pub numerator: Affine,
    /// The divisor, at least one.
    pub denominator: i64,
}

/// Whether a constraint is an inequality or an equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstraintKind {
    /// `expr >= 0`.
    NonNegative,
    /// `expr == 0`.
    Zero,
}

/// `expr >= 0` or `expr == 0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// The expression.
    pub expr: Affine,
    /// How it compares with zero.
    pub kind: ConstraintKind,
}

/// The denominator that marks an expression whose coefficients left `i64`; no valid division has
/// it.
pub(crate) const OVERFLOWED: i64 = i64::MIN;

/// Expressions are built without a `Result` at each step: where a number leaves `i64`, the
/// expression is marked, [`Affine::evaluate`] returns `None`, and every set or map made from it is
/// [`crate::IslError::Overflow`].
impl Affine {
    /// The constant `value`.
    pub fn constant(value: i64) -> Affine {
        Affine { constant: value, ..Affine::default() }
    }

    /// The dimension or parameter `name`.
    pub fn name(name: impl Into<String>) -> Affine {
        Affine { terms: vec![(name.into(), 1)], ..Affine::default() }
    }

    /// `floor(self / denominator)`.
    pub fn floor_div(self, denominator: i64) -> Affine {
        Affine { divs: vec![(FloorDiv { numerator: self, denominator }, 1)], ..Affine::default() }
    }

    /// Adds `coefficient * name`.
    #[must_use]
    pub fn plus(mut self, coefficient: i64, name: impl Into<String>) -> Affine {
        self.terms.push((name.into(), coefficient));
        self
    }

    /// Adds a constant.
    #[must_use]
    pub fn offset(mut self, value: i64) -> Affine {
        match self.constant.checked_add(value) {
            Some(sum) => self.constant = sum,
            None => self.mark_overflow(),
        }
        self
    }

    /// Adds `coefficient * other`.
    #[must_use]
    pub fn add_scaled(mut self, coefficient: i64, other: &Affine) -> Affine {
        let scaled = |c: &i64| c.checked_mul(coefficient);
        let terms = other.terms.iter().map(|(name, c)| Some((name.clone(), scaled(c)?)));
        let divs = other.divs.iter().map(|(div, c)| Some((div.clone(), scaled(c)?)));
        let terms: Option<Vec<_>> = terms.collect();
        let divs: Option<Vec<_>> = divs.collect();
        let constant = scaled(&other.constant).and_then(|c| self.constant.checked_add(c));
        match (terms, divs, constant) {
            (Some(terms), Some(divs), Some(constant)) => {
                self.terms.extend(terms);
                self.divs.extend(divs);
                self.constant = constant;
            }
            _ => self.mark_overflow(),
        }
        self
    }

    fn mark_overflow(&mut self) {
        self.divs.push((FloorDiv { numerator: Affine::default(), denominator: OVERFLOWED }, 1));
    }

    /// Whether a name occurs, also inside floor divisions.
    pub fn mentions(&self, name: &str) -> bool {
        self.terms.iter().any(|(n, c)| n == name && *c != 0)
            || self.divs.iter().any(|(div, c)| *c != 0 && div.numerator.mentions(name))
    }

    /// The value of `name` where this is 0, if its coefficient is 1 or -1 and no floor mentions it.
    pub(crate) fn solved_for(&self, name: &str) -> Option<Affine> {
        let coefficient: i64 = self.terms.iter().filter(|(n, _)| n == name).map(|(_, c)| c).sum();
        let rest = Affine {
            terms: self.terms.iter().filter(|(n, c)| n != name && *c != 0).cloned().collect(),
            ..self.clone()
        };
        let solved = Affine::default().add_scaled(-coefficient, &rest);
        (coefficient.abs() == 1 && !rest.mentions(name)).then_some(solved)
    }

    /// Whether the expression has no names (floor divisions of constants count as names).
    pub fn is_constant(&self) -> bool {
        self.terms.iter().all(|(_, c)| *c == 0) && self.divs.iter().all(|(_, c)| *c == 0)
    }

    /// The value where `lookup` gives the value of each name.
    ///
    /// Returns `None` for a name without a value, a denominator below one, or an overflow of `i64`.
    pub fn evaluate(&self, lookup: &impl Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut sum = self.constant;
        for (name, coefficient) in &self.terms {
            sum = sum.checked_add(coefficient.checked_mul(lookup(name)?)?)?;
        }
        for (div, coefficient) in &self.divs {
            if div.denominator < 1 {
                return None;
            }
            let quotient = div.numerator.evaluate(lookup)?.div_euclid(div.denominator);
            sum = sum.checked_add(coefficient.checked_mul(quotient)?)?;
        }
        Some(sum)
    }
}

impl Constraint {
    /// `expr >= 0`.
    pub fn non_negative(expr: Affine) -> Constraint {
        Constraint { expr, kind: ConstraintKind::NonNegative }
    }

    /// `expr == 0`.
    pub fn zero(expr: Affine) -> Constraint {
        Constraint { expr, kind: ConstraintKind::Zero }
    }

    /// Whether it holds where `lookup` gives the value of each name; `None` as in
    /// [`Affine::evaluate`].
    pub fn holds(&self, lookup: &impl Fn(&str) -> Option<i64>) -> Option<bool> {
        let value = self.expr.evaluate(lookup)?;
        Some(match self.kind {
            ConstraintKind::NonNegative => value >= 0,
            ConstraintKind::Zero => value == 0,
        })
    }
}

impl fmt::Display for FloorDiv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "floor(({})/{})", self.numerator, self.denominator)
    }
}

/// Writes one signed term; returns whether anything was written.
fn write_term(
    f: &mut fmt::Formatter<'_>,
    first: bool,
    coefficient: i64,
    what: &dyn fmt::Display,
) -> Result<bool, fmt::Error> {
    if coefficient == 0 {
        return Ok(!first);
    }
    let sign = match (first, coefficient < 0) {
        (true, true) => "-",
        (true, false) => "",
        (false, true) => " - ",
        (false, false) => " + ",
    };
    write!(f, "{sign}")?;
    if coefficient.unsigned_abs() != 1 {
        write!(f, "{}*", coefficient.unsigned_abs())?;
    }
    write!(f, "{what}")?;
    Ok(true)
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut any = false;
        for (name, coefficient) in &self.terms {
            any = write_term(f, !any, *coefficient, name)?;
        }
        for (div, coefficient) in &self.divs {
            any = write_term(f, !any, *coefficient, div)?;
        }
        match (any, self.constant) {
            (false, constant) => write!(f, "{constant}"),
            (true, 0) => Ok(()),
            (true, constant) if constant < 0 => write!(f, " - {}", constant.unsigned_abs()),
            (true, constant) => write!(f, " + {constant}"),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ConstraintKind::NonNegative => write!(f, "{} >= 0", self.expr),
            ConstraintKind::Zero => write!(f, "{} = 0", self.expr),
        }
    }
}
