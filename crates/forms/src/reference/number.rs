//! Values at all quadrature points of a cell, plain or linear in the test function.

use crate::form::{FormError, Role};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Component or derivative of the test function.
pub(super) type Slot = usize;

/// A value at every quadrature point of a cell.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// The same at all points.
    Uniform(f64),
    /// One value a point.
    Points(Rc<[f64]>),
    /// A sum of values times components or derivatives of the test function.
    Linear(BTreeMap<Slot, Rc<[f64]>>),
}

fn not_linear(place: &str) -> FormError {
    FormError::NotLinear { function: Role::Test, place: place.into() }
}

impl Number {
    pub(super) const ZERO: Self = Self::Uniform(0.0);

    /// Zero at every point.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Uniform(value) => *value == 0.0,
            Self::Points(values) => values.iter().all(|v| *v == 0.0),
            Self::Linear(terms) => terms.values().all(|t| t.iter().all(|v| *v == 0.0)),
        }
    }

    pub(super) fn add(&self, other: &Self) -> Result<Self, FormError> {
        Ok(match (self, other) {
            (Self::Uniform(a), Self::Uniform(b)) => Self::Uniform(a + b),
            (zero, rest) | (rest, zero) if matches!(zero, Self::Uniform(v) if *v == 0.0) => rest.clone(),
            (Self::Uniform(a), Self::Points(b)) | (Self::Points(b), Self::Uniform(a)) => {
                Self::Points(b.iter().map(|v| a + v).collect())
            }
            (Self::Points(a), Self::Points(b)) => Self::Points(zip(a, b, |x, y| x + y)),
            (Self::Linear(a), Self::Linear(b)) => {
                let mut sum = a.clone();
                for (slot, values) in b {
                    let total = sum.get(slot).map(|known| zip(known, values, |x, y| x + y));
                    sum.insert(*slot, total.unwrap_or_else(|| values.clone()));
                }
                Self::Linear(sum)
            }
            (Self::Linear(a), plain) | (plain, Self::Linear(a)) => {
                if !plain.is_zero() {
                    return Err(not_linear("a sum with a term that does not hold it"));
                }
                Self::Linear(a.clone())
            }
        })
    }

    pub(super) fn multiply(&self, other: &Self) -> Result<Self, FormError> {
        Ok(match (self, other) {
            (Self::Uniform(a), Self::Uniform(b)) => Self::Uniform(a * b),
            (Self::Uniform(a), rest) | (rest, Self::Uniform(a)) => rest.scale(*a),
            (Self::Points(a), Self::Points(b)) => Self::Points(zip(a, b, |x, y| x * y)),
            (Self::Points(a), Self::Linear(terms)) | (Self::Linear(terms), Self::Points(a)) => {
                Self::Linear(terms.iter().map(|(s, t)| (*s, zip(a, t, |x, y| x * y))).collect())
            }
            (Self::Linear(_), Self::Linear(_)) => return Err(not_linear("both factors of a product")),
        })
    }

    pub(super) fn scale(&self, factor: f64) -> Self {
        if factor == 0.0 {
            return Self::ZERO;
        }
        let scaled = |values: &Rc<[f64]>| values.iter().map(|v| factor * v).collect();
        match self {
            Self::Uniform(value) => Self::Uniform(factor * value),
            Self::Points(values) => Self::Points(scaled(values)),
            Self::Linear(terms) => Self::Linear(terms.iter().map(|(s, t)| (*s, scaled(t))).collect()),
        }
    }

    /// A function of a value that does not hold the test function.
    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> Result<Self, FormError> {
        match self {
            Self::Uniform(value) => Ok(Self::Uniform(f(*value))),
            Self::Points(values) => Ok(Self::Points(values.iter().map(|v| f(*v)).collect())),
            Self::Linear(_) => Err(not_linear("the argument of a function")),
        }
    }

    /// A function of two values that do not hold the test function.
    pub(super) fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Result<Self, FormError> {
        match (self, other) {
            (Self::Uniform(a), _) => other.map(|b| f(*a, b)),
            (_, Self::Uniform(b)) => self.map(|a| f(a, *b)),
            (Self::Points(a), Self::Points(b)) => Ok(Self::Points(zip(a, b, f))),
            (Self::Linear(_), _) | (_, Self::Linear(_)) => Err(not_linear("the argument of a function")),
        }
    }

    /// The value at a point; of a value that does not hold the test function.
    pub(super) fn at(&self, point: usize) -> Result<f64, FormError> {
        match self {
            Self::Uniform(value) => Ok(*value),
            Self::Points(values) => Ok(values[point]),
            Self::Linear(_) => Err(not_linear("a condition")),
        }
    }

    /// `then` at the points that are chosen, `otherwise` at the others.
    pub(super) fn choose(chosen: &[bool], then: &Self, otherwise: &Self) -> Result<Self, FormError> {
        let mask =
            |keep: bool| Self::Points(chosen.iter().map(|c| f64::from(u8::from(*c == keep))).collect());
        let linear = |a: &Self| matches!(a, Self::Linear(_));
        if linear(then) || linear(otherwise) {
            return mask(true).multiply(then)?.add(&mask(false).multiply(otherwise)?);
        }
        // By selection, not by products: the branch not taken may be infinite.
        let pick = |(q, c): (usize, &bool)| if *c { then.at(q) } else { otherwise.at(q) };
        let values: Result<Vec<f64>, FormError> = chosen.iter().enumerate().map(pick).collect();
        Ok(Self::Points(values?.into()))
    }
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Rc<[f64]> {
    a.iter().zip(b).map(|(x, y)| f(*x, *y)).collect()
}
