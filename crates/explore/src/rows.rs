//! Quasi-affine expressions and constraints by names, as the page evaluates them.

use kingpost_ir::{Affine, Atom, Constraint, Domain, Kernel};
use kingpost_isl as isl;
use serde::ser::{Serialize, SerializeSeq, Serializer};

/// A quasi-affine expression: a constant and multiples of names and of floors.
///
/// As JSON it is flat: `[constant, term, factor, term, factor, …]`, a term the name or
/// `[expression, divisor]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row {
    /// The constant.
    pub constant: i64,
    /// Terms with their factors.
    pub terms: Vec<(Term, i64)>,
}

/// What an expression has multiples of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A loop, a parameter or a scalar.
    Name(String),
    /// The quotient by a number, rounded down.
    Floor(Row, i64),
}

/// Constraints that hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Conditions {
    /// These are zero.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub eq: Vec<Row>,
    /// These are not negative.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ge: Vec<Row>,
}

impl Row {
    /// An expression of a kernel.
    pub(crate) fn of(kernel: &Kernel, e: &Affine) -> Self {
        let term = |atom: &Atom| match atom {
            Atom::Iname(i) => Term::Name(kernel.inames[*i].name.clone()),
            Atom::Var(v) => Term::Name(kernel.vars[*v].name.clone()),
            Atom::Floor(n, d) => Term::Floor(Self::of(kernel, n), *d),
        };
        let terms = e.terms().iter().map(|(atom, factor)| (term(atom), *factor)).collect();
        Self { constant: e.constant_term(), terms }
    }

    /// An expression of isl.
    pub(crate) fn of_isl(e: &isl::Affine) -> Self {
        let names = e.terms.iter().map(|(name, factor)| (Term::Name(name.clone()), *factor));
        let floors = e
            .divs
            .iter()
            .map(|(div, factor)| (Term::Floor(Self::of_isl(&div.numerator), div.denominator), *factor));
        Self { constant: e.constant, terms: names.chain(floors).collect() }
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_seq(Some(1 + 2 * self.terms.len()))?;
        row.serialize_element(&self.constant)?;
        for (term, factor) in &self.terms {
            match term {
                Term::Name(name) => row.serialize_element(name)?,
                Term::Floor(numerator, divisor) => row.serialize_element(&(numerator, divisor))?,
            }
            row.serialize_element(factor)?;
        }
        row.end()
    }
}

/// The disjuncts of a domain of a kernel.
pub(crate) fn of_domain(kernel: &Kernel, domain: &Domain) -> Vec<Conditions> {
    let one = |constraints: &Vec<Constraint>| {
        let mut conditions = Conditions::default();
        for constraint in constraints {
            match constraint {
                Constraint::Zero(e) => conditions.eq.push(Row::of(kernel, e)),
                Constraint::NonNegative(e) => conditions.ge.push(Row::of(kernel, e)),
            }
        }
        conditions
    };
    domain.disjuncts().iter().map(one).collect()
}

/// The disjuncts of a map.
pub(crate) fn of_map(map: &isl::Map) -> Result<Vec<Conditions>, isl::IslError> {
    let one = |constraints: &Vec<isl::Constraint>| {
        let mut conditions = Conditions::default();
        for constraint in constraints {
            match constraint.kind {
                isl::ConstraintKind::Zero => conditions.eq.push(Row::of_isl(&constraint.expr)),
                isl::ConstraintKind::NonNegative => conditions.ge.push(Row::of_isl(&constraint.expr)),
            }
        }
        conditions
    };
    Ok(map.disjuncts()?.iter().map(one).collect())
}
