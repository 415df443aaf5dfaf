//! Numbers with infinitesimals whose squares vanish: exact derivatives by evaluation.

use super::number::Number;
use crate::form::{FormError, MathFunction};
use std::collections::BTreeMap;
use std::f64::consts::FRAC_2_SQRT_PI;

/// A sum over sets of infinitesimals `e_b` (bits of the key), each with `e_b * e_b = 0`.
///
/// `f(a + e)` has the derivative of `f` at `a` as its coefficient of `e`; with several
/// infinitesimals, the coefficient of their product is the mixed derivative. Missing terms are
/// zero.
#[derive(Clone, Debug)]
pub(super) struct Nilpotent {
    terms: BTreeMap<u32, Number>,
}

impl Nilpotent {
    pub(super) fn plain(value: Number) -> Self {
        Self { terms: BTreeMap::from([(0, value)]) }
    }

    pub(super) fn uniform(value: f64) -> Self {
        Self::plain(Number::Uniform(value))
    }

    /// `value` times the product of the infinitesimals in `set`.
    pub(super) fn infinitesimal(set: u32, value: Number) -> Self {
        Self { terms: BTreeMap::from([(set, value)]) }
    }

    /// The part without infinitesimals.
    pub(super) fn standard(&self) -> Number {
        self.terms.get(&0).cloned().unwrap_or(Number::ZERO)
    }

    /// What stands before `e_bit`; other infinitesimals remain.
    pub(super) fn coefficient(&self, bit: u32) -> Self {
        let with = self.terms.iter().filter(|(set, _)| **set & (1 << bit) != 0);
        Self { terms: with.map(|(set, value)| (set & !(1 << bit), value.clone())).collect() }
    }

    /// The part with infinitesimals.
    fn remainder(&self) -> Self {
        Self {
            terms: self.terms.iter().filter(|(set, _)| **set != 0).map(|(s, v)| (*s, v.clone())).collect(),
        }
    }

    fn is_zero(&self) -> bool {
        self.terms.values().all(Number::is_zero)
    }

    pub(super) fn add(&self, other: &Self) -> Result<Self, FormError> {
        let mut sum = self.clone();
        for (set, value) in &other.terms {
            sum.accumulate(*set, value)?;
        }
        Ok(sum)
    }

    fn accumulate(&mut self, set: u32, value: &Number) -> Result<(), FormError> {
        let total = match self.terms.get(&set) {
            Some(known) => known.add(value)?,
            None => value.clone(),
        };
        self.terms.insert(set, total);
        Ok(())
    }

    pub(super) fn scale(&self, factor: f64) -> Self {
        Self { terms: self.terms.iter().map(|(set, v)| (*set, v.scale(factor))).collect() }
    }

    pub(super) fn multiply(&self, other: &Self) -> Result<Self, FormError> {
        let mut product = Self { terms: BTreeMap::new() };
        for (a, x) in &self.terms {
            for (b, y) in other.terms.iter().filter(|(b, _)| a & **b == 0) {
                product.accumulate(a | b, &x.multiply(y)?)?;
            }
        }
        Ok(product)
    }

    /// `f` of this number, where `taylor(k, x)` is the `k`-th derivative of `f` at `x` over `k!`.
    fn function(&self, taylor: impl Fn(i32, f64) -> f64) -> Result<Self, FormError> {
        let (standard, remainder) = (self.standard(), self.remainder());
        let mut result = Self::plain(standard.map(|x| taylor(0, x))?);
        let mut power = Self::uniform(1.0);
        // Ends: a power as high as the number of infinitesimals is zero.
        for k in 1.. {
            power = power.multiply(&remainder)?;
            if power.terms.is_empty() || power.is_zero() {
                break;
            }
            let slope = Self::plain(standard.map(|x| taylor(k, x))?);
            result = result.add(&slope.multiply(&power)?)?;
        }
        Ok(result)
    }

    /// `self` to a power that is a number.
    pub(super) fn real_power(&self, exponent: f64) -> Result<Self, FormError> {
        if exponent == 1.0 {
            return Ok(self.clone());
        }
        // binomial(exponent, k) x^(exponent - k), zero once the binomial is: no 0 * infinity at x =
        // 0
        self.function(|k, x| {
            let binomial = (0..k).fold(1.0, |b, i| b * (exponent - f64::from(i)) / f64::from(i + 1));
            if binomial == 0.0 { 0.0 } else { binomial * x.powf(exponent - f64::from(k)) }
        })
    }

    pub(super) fn divide(&self, other: &Self) -> Result<Self, FormError> {
        self.multiply(&other.function(|k, x| alternating(k) / x.powi(k + 1))?)
    }

    pub(super) fn power(&self, exponent: &Self) -> Result<Self, FormError> {
        if let (Number::Uniform(value), true) = (exponent.standard(), exponent.remainder().is_zero()) {
            return self.real_power(value);
        }
        self.math(MathFunction::Ln)?.multiply(exponent)?.math(MathFunction::Exp)
    }

    pub(super) fn math(&self, function: MathFunction) -> Result<Self, FormError> {
        let factorial = |k: i32| (1..=k).map(f64::from).product::<f64>();
        // d^k sin(x) = sin(x + k pi/2), by the four cases to stay exact
        let wave = |k: i32, x: f64| match k % 4 {
            0 => x.sin(),
            1 => x.cos(),
            2 => -x.sin(),
            _ => -x.cos(),
        };
        match function {
            MathFunction::Exp => self.function(|k, x| x.exp() / factorial(k)),
            MathFunction::Ln => self.function(|k, x| match k {
                0 => x.ln(),
                _ => -alternating(k) / (f64::from(k) * x.powi(k)),
            }),
            MathFunction::Sqrt => self.function(|k, x| match k {
                0 => x.sqrt(),
                _ => {
                    (0..k).fold(1.0, |b, i| b * (0.5 - f64::from(i)) / f64::from(i + 1)) * x.sqrt()
                        / x.powi(k)
                }
            }),
            MathFunction::Sin => self.function(|k, x| wave(k, x) / factorial(k)),
            MathFunction::Cos => self.function(|k, x| wave(k + 1, x) / factorial(k)),
            MathFunction::Sinh => {
                self.function(|k, x| if k % 2 == 0 { x.sinh() } else { x.cosh() } / factorial(k))
            }
            MathFunction::Cosh => {
                self.function(|k, x| if k % 2 == 0 { x.cosh() } else { x.sinh() } / factorial(k))
            }
            MathFunction::Tan => self.function(|k, x| riccati(k, x.tan(), 1.0)),
            MathFunction::Tanh => self.function(|k, x| riccati(k, x.tanh(), -1.0)),
            MathFunction::Erf => self.function(|k, x| if k == 0 { libm::erf(x) } else { of_erf(k, x) }),
            MathFunction::Atan => self.function(|k, x| if k == 0 { x.atan() } else { of_atan(k, x) }),
            MathFunction::Asin => self.function(|k, x| if k == 0 { x.asin() } else { of_asin(k, x) }),
            MathFunction::Acos => self.function(|k, x| if k == 0 { x.acos() } else { -of_asin(k, x) }),
            MathFunction::BesselJ(n) => self.function(|k, x| of_bessel(k, i32::from(n), &|n| libm::jn(n, x))),
            MathFunction::BesselY(n) => self.function(|k, x| of_bessel(k, i32::from(n), &|n| libm::yn(n, x))),
        }
    }

    /// The angle of the point `(x, self)`.
    pub(super) fn atan2(&self, x: &Self) -> Result<Self, FormError> {
        let (at, right) = (Self::plain(self.standard()), Self::plain(x.standard()));
        let angle = Self::plain(self.standard().zip(&x.standard(), f64::atan2)?);
        // The tangent of the angle between the point and its standard part.
        let cross = self.multiply(&right)?.add(&x.multiply(&at)?.scale(-1.0))?;
        let tangent = cross.divide(&x.multiply(&right)?.add(&self.multiply(&at)?)?)?;
        angle.add(&tangent.math(MathFunction::Atan)?)
    }

    /// `then` at the points that are chosen, `otherwise` at the others.
    pub(super) fn choose(chosen: &[bool], then: &Self, otherwise: &Self) -> Result<Self, FormError> {
        let mut result = Self { terms: BTreeMap::new() };
        for set in then.terms.keys().chain(otherwise.terms.keys()) {
            let value = |n: &Self| n.terms.get(set).cloned().unwrap_or(Number::ZERO);
            result.terms.insert(*set, Number::choose(chosen, &value(then), &value(otherwise))?);
        }
        Ok(result)
    }
}

/// Taylor coefficient `k` of the solution of `f' = 1 + sign*f^2` that begins with `value`.
fn riccati(k: i32, value: f64, sign: f64) -> f64 {
    let mut c = vec![value];
    for n in 0..k as usize {
        let square: f64 = (0..=n).map(|i| c[i] * c[n - i]).sum();
        let one = if n == 0 { 1.0 } else { 0.0 };
        c.push((one + sign * square) / (n as f64 + 1.0));
    }
    c[k as usize]
}

/// Taylor coefficient `k >= 1` of the error function, from `f'' = -2 x f'`.
fn of_erf(k: i32, x: f64) -> f64 {
    let (mut before, mut slope) = (0.0, FRAC_2_SQRT_PI * (-x * x).exp());
    for n in 1..k {
        (before, slope) = (slope, -2.0 * (x * slope + before) / f64::from(n));
    }
    slope / f64::from(k)
}

/// Taylor coefficient `k >= 1` of the inverse tangent, from `(1 + x^2) f' = 1`.
fn of_atan(k: i32, x: f64) -> f64 {
    let (mut before, mut slope) = (0.0, 1.0 / (1.0 + x * x));
    for _ in 1..k {
        (before, slope) = (slope, -(2.0 * x * slope + before) / (1.0 + x * x));
    }
    slope / f64::from(k)
}

/// Taylor coefficient `k >= 1` of the inverse sine, from `(1 - x^2) f'' = x f'`.
fn of_asin(k: i32, x: f64) -> f64 {
    let (mut before, mut slope) = (0.0, 1.0 / (1.0 - x * x).sqrt());
    for n in 0..k - 1 {
        let n = f64::from(n);
        let next = ((2.0 * n + 1.0) * x * slope + n * before) / ((1.0 - x * x) * (n + 1.0));
        (before, slope) = (slope, next);
    }
    slope / f64::from(k)
}

/// Taylor coefficient `k` of a Bessel function of order `n`, whose value at any order is given:
/// `2^k` times its derivative is the alternating binomial sum of the orders from `n - k` to `n + k`.
fn of_bessel(k: i32, n: i32, value: &dyn Fn(i32) -> f64) -> f64 {
    let mut weight = (1..=k).fold(1.0, |w, i| w / (2.0 * f64::from(i)));
    let mut sum = 0.0;
    for i in 0..=k {
        let order = n - k + 2 * i;
        let reflected = if order < 0 { alternating(order) } else { 1.0 };
        sum += alternating(i) * weight * reflected * value(order.abs());
        weight *= f64::from(k - i) / f64::from(i + 1);
    }
    sum
}

/// `(-1)^k`.
fn alternating(k: i32) -> f64 {
    if k % 2 == 0 { 1.0 } else { -1.0 }
}
