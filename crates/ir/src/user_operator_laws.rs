//! Whether the laws of a declared operator hold.
//!
//! The value of a body that only compares and selects depends on the order of its operands alone, so
//! that the orders of three of them, nan included, are all cases there are. Any other body is computed
//! for values that are drawn: a law that fails is found, one that holds is believed.

use crate::functions::{Closed, MathFn};
use crate::math;
use crate::operators::{BinaryOp, UnaryOp};
use crate::types::{Class, Field, RecordType, ScalarType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What holds of an operator for all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Law {
    /// `f(f(a, b), c)` is `f(a, f(b, c))`.
    Associative,
    /// `f(a, b)` is `f(b, a)`.
    Commutative,
    /// No law: results that a nan goes into are left open.
    NoNan,
}

impl Law {
    /// Every law.
    pub const ALL: [Self; 3] = [Self::Associative, Self::Commutative, Self::NoNan];

    /// Its word in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Associative => "associative",
            Self::Commutative => "commutative",
            Self::NoNan => "no_nan",
        }
    }
}

/// How the laws of an operator are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proof {
    /// Of all cases there are, of this number.
    Enumerated(usize),
    /// Of this number of cases that were drawn.
    Sampled(usize),
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enumerated(n) => write!(f, "proved, by all {n} orders of its operands"),
            Self::Sampled(n) => write!(f, "sampled, with {n} values that were drawn"),
        }
    }
}

/// What was seen to fail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A law, with values for which it does and what they make in two ways.
    #[error(
        "is not {law}: of {values}, {} is {} and {} is {}; leave the law out{}",
        .ways[0], .found[0], .ways[1], .found[1], no_nan(values)
    )]
    Law {
        /// The law.
        law: &'static str,
        /// The operands.
        values: String,
        /// Both ways to join them.
        ways: [&'static str; 2],
        /// What they make.
        found: [String; 2],
    },
    /// The identity.
    #[error(
        "has another identity than {identity}: joined with {value} it makes {found}; declare another one{}",
        no_nan(value)
    )]
    Identity {
        /// The identity.
        identity: String,
        /// A value that it changes.
        value: String,
        /// What it makes of the value.
        found: String,
    },
    /// No value at all.
    #[error(
        "has no value for any operands that were tried; use integers that fit and functions that have a meaning"
    )]
    Undefined,
}

fn no_nan(values: &str) -> &'static str {
    if values.contains("NaN") {
        ", mend the body, or add `no_nan` if results that a nan goes into may be left open"
    } else {
        " or mend the body"
    }
}

/// Maximum number of cases of a proof.
const MAX_CASES: usize = 100_000;
/// Values that are drawn.
const SAMPLES: usize = 1000;
/// By how much rounding may change the values that are drawn, a part of them.
const TOLERANCE: f64 = 1e-6;

#[derive(Clone, Debug)]
enum Value {
    Truth(bool),
    Int(i128),
    Real(f64),
    Record(Vec<Value>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value:?}"),
            Self::Record(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "({})", values.join(", "))
            }
        }
    }
}

impl Value {
    fn real(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Truth(_) | Self::Record(_) => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        if let Self::Truth(value) = self { Some(*value) } else { None }
    }

    /// Whether two values are one, up to rounding. Which zero it is, is left open.
    fn is_near(&self, other: &Self, tolerance: f64) -> bool {
        match (self, other) {
            (Self::Truth(a), Self::Truth(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => {
                let scale = 1.0 + a.abs().max(b.abs());
                a == b
                    || (a.is_nan() && b.is_nan())
                    || (a - b).abs() <= tolerance * scale && scale.is_finite()
            }
            (Self::Record(a), Self::Record(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_near(b, tolerance))
            }
            (Self::Truth(_) | Self::Int(_) | Self::Real(_) | Self::Record(_), _) => false,
        }
    }

    /// A value as an element of a type.
    fn stored(self, ty: ScalarType) -> Option<Self> {
        match (ty.class(), self) {
            (Class::Real, value) => value.real().map(Self::Real),
            (Class::Exact, Self::Int(value)) => {
                let (lo, hi) = ty.ends()?;
                (lo..=hi).contains(&value).then_some(Self::Int(value))
            }
            (Class::Truth, Self::Truth(value)) => Some(Self::Truth(value)),
            (Class::Exact | Class::Truth | Class::Word | Class::Complex | Class::Record, _) => None,
        }
    }
}

/// The value of an expression; none where it has none, or none of its type.
fn value(e: &Closed, operands: &[&Value; 2]) -> Option<Value> {
    let of = |e: &Closed| value(e, operands);
    Some(match e {
        Closed::Operand(k) => (*operands.get(usize::from(*k))?).clone(),
        Closed::Int(value) => Value::Int((*value).into()),
        Closed::Real(value) => Value::Real(value.0),
        Closed::Unary(op, a) => match (op, of(a)?) {
            (UnaryOp::Neg, Value::Int(a)) => Value::Int(-a),
            (UnaryOp::Neg, Value::Real(a)) => Value::Real(-a),
            (UnaryOp::Not, a) => Value::Truth(!a.truth()?),
            (UnaryOp::BitNot, Value::Int(a)) => Value::Int(!a),
            (UnaryOp::Field(_, k), Value::Record(values)) => values.get(usize::from(*k))?.clone(),
            (UnaryOp::Neg | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _) => return None,
        },
        Closed::Binary(BinaryOp::And, a, b) => Value::Truth(of(a)?.truth()? && of(b)?.truth()?),
        Closed::Binary(BinaryOp::Or, a, b) => Value::Truth(of(a)?.truth()? || of(b)?.truth()?),
        Closed::Binary(op, a, b) => match (of(a)?, of(b)?) {
            (Value::Int(a), Value::Int(b)) if *op != BinaryOp::Div => integer(*op, a, b)?,
            (a, b) => real(*op, a.real()?, b.real()?)?,
        },
        Closed::Call(MathFn::Record(record), values) => {
            let fields = values.iter().zip(&record.fields);
            Value::Record(fields.map(|(e, field)| of(e)?.stored(field.ty)).collect::<Option<_>>()?)
        }
        Closed::Call(function, args) => {
            let mut x = [0.0; 3];
            for (x, arg) in x.iter_mut().zip(args) {
                *x = of(arg)?.real()?;
            }
            Value::Real(math::call(*function, x)?)
        }
        Closed::Cast(ty, a) => match of(a)? {
            Value::Truth(a) => Value::Int(a.into()).stored(*ty)?,
            Value::Real(a) if ty.is_exact() => Value::Int(a.trunc() as i128).stored(*ty)?,
            a @ (Value::Int(_) | Value::Real(_) | Value::Record(_)) => a.stored(*ty)?,
        },
        Closed::Select(c, a, b) => of(if of(c)?.truth()? { a } else { b })?,
    })
}

fn integer(op: BinaryOp, a: i128, b: i128) -> Option<Value> {
    let divisor = Some(b).filter(|b| *b != 0);
    let floor = |b: i128| a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
    Some(Value::Int(match op {
        BinaryOp::Add => a.checked_add(b)?,
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::Mul => a.checked_mul(b)?,
        BinaryOp::FloorDiv => floor(divisor?),
        BinaryOp::Mod => a - b * floor(divisor?),
        BinaryOp::TruncDiv => a / divisor?,
        BinaryOp::TruncRem => a % divisor?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl => a.checked_mul(1_i128.checked_shl(u32::try_from(b).ok().filter(|b| *b < 64)?)?)?,
        BinaryOp::Shr => a >> u32::try_from(b).ok().filter(|b| *b < 64)?,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => return compared(op, &a, &b),
        BinaryOp::Div | BinaryOp::And | BinaryOp::Or => return None,
    }))
}

fn real(op: BinaryOp, a: f64, b: f64) -> Option<Value> {
    Some(Value::Real(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Mod => math::remainder(a, b),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => return compared(op, &a, &b),
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::And
        | BinaryOp::Or => return None,
    }))
}

fn compared<T: PartialOrd>(op: BinaryOp, a: &T, b: &T) -> Option<Value> {
    let holds =
        [(BinaryOp::Lt, a < b), (BinaryOp::Le, a <= b), (BinaryOp::Eq, a == b), (BinaryOp::Ne, a != b)];
    holds.into_iter().find(|(known, _)| *known == op).map(|(_, holds)| Value::Truth(holds))
}

/// Looks into all that is declared of an operator.
///
/// # Errors
/// What fails, with values for which it does.
pub(crate) fn look_into(
    body: &Closed,
    record: RecordType,
    identity: &[Closed],
    laws: &BTreeSet<Law>,
) -> Result<Proof, Broken> {
    let nothing = Value::Truth(false);
    let fields = identity.iter().zip(&record.fields);
    let neutral = fields.map(|(e, field)| value(e, &[&nothing; 2])?.stored(field.ty));
    let neutral: Vec<Value> = neutral.collect::<Option<_>>().ok_or(Broken::Undefined)?;
    let look = Look { body, laws, neutral };
    let orders = Orders::of(body, &record.fields, laws, &look.neutral);
    match orders.filter(|_| body.only_compares()) {
        Some(orders) => look.at_all(&orders).map(Proof::Enumerated),
        None => look.at_samples(&record.fields).map(Proof::Sampled),
    }
}

/// Values of each field in every order that matters: of three operands, and next to the identity.
struct Orders {
    of_operands: Vec<Vec<Value>>,
    near_identity: Vec<Vec<Value>>,
}

impl Orders {
    /// None where there are too many.
    fn of(body: &Closed, fields: &[Field], laws: &BTreeSet<Law>, neutral: &[Value]) -> Option<Self> {
        let apart = body.compares_like_fields();
        let alike =
            |a: &Field, b: &Field| if apart { a.name == b.name } else { a.ty.class() == b.ty.class() };
        let nan = || (!laws.contains(&Law::NoNan)).then_some(Value::Real(f64::NAN));
        let (mut of_operands, mut near_identity) = (Vec::new(), Vec::new());
        for field in fields {
            let places = 3 * fields.iter().filter(|other| alike(field, other)).count() as i64;
            let ends: Vec<Value> =
                fields.iter().zip(neutral).filter(|(o, _)| alike(field, o)).map(|(_, v)| v.clone()).collect();
            let (places, near): (Vec<Value>, Vec<Value>) = match field.ty.class() {
                Class::Truth => {
                    ([true, false].map(Value::Truth).to_vec(), [true, false].map(Value::Truth).to_vec())
                }
                Class::Real => {
                    let at = ends.iter().filter_map(Value::real).flat_map(|x| [x - 1.0, x, x + 1.0]);
                    let at = at.chain([f64::NEG_INFINITY, 0.0, f64::INFINITY]).filter(|x| !x.is_nan());
                    let places = (0..places).map(|k| Value::Real(k as f64));
                    (places.chain(nan()).collect(), at.map(Value::Real).chain(nan()).collect())
                }
                Class::Exact | Class::Word | Class::Complex | Class::Record => {
                    let near =
                        |v: &Value| if let Value::Int(x) = v { vec![x - 1, *x, x + 1] } else { vec![] };
                    let at = ends.iter().flat_map(near).chain([0]);
                    let fits = at.filter_map(|x| Value::Int(x).stored(field.ty));
                    ((0..places).map(|k| Value::Int(k.into())).collect(), fits.collect())
                }
            };
            of_operands.push(places);
            near_identity.push(near);
        }
        let cases = |lists: &[Vec<Value>], operands: u32| {
            lists.iter().try_fold(1_usize, |n, list| n.checked_mul(list.len().checked_pow(operands)?))
        };
        let most = cases(&of_operands, 3)?.max(cases(&near_identity, 1)?);
        (most <= MAX_CASES).then_some(Self { of_operands, near_identity })
    }
}

/// The records of a value of each field, all or those of some numbers.
fn record_of(lists: &[Vec<Value>], number: &mut usize) -> Value {
    let mut digit = |list: &Vec<Value>| {
        let value = list[*number % list.len()].clone();
        *number /= list.len();
        value
    };
    Value::Record(lists.iter().map(&mut digit).collect())
}

struct Look<'a> {
    body: &'a Closed,
    laws: &'a BTreeSet<Law>,
    neutral: Vec<Value>,
}

impl Look<'_> {
    fn join(&self, a: &Value, b: &Value) -> Option<Value> {
        value(self.body, &[a, b])
    }

    /// All cases; how many.
    fn at_all(&self, orders: &Orders) -> Result<usize, Broken> {
        let one: usize = orders.of_operands.iter().map(Vec::len).product();
        for case in 0..one.pow(3) {
            let mut number = case;
            let operands = [(); 3].map(|()| record_of(&orders.of_operands, &mut number));
            self.laws_hold(&operands, 0.0)?.ok_or(Broken::Undefined)?;
        }
        for case in 0..orders.near_identity.iter().map(Vec::len).product() {
            let mut number: usize = case;
            self.identity_holds(&record_of(&orders.near_identity, &mut number), 0.0)?
                .ok_or(Broken::Undefined)?;
        }
        Ok(one.pow(3))
    }

    /// Values that are drawn; for how many there is a result.
    fn at_samples(&self, fields: &[Field]) -> Result<usize, Broken> {
        let mut random = Random(0x5eed);
        let mut defined = 0;
        for k in 0..SAMPLES {
            let a = random.record(fields, k % 2 == 0, None);
            let b = random.record(fields, k % 2 == 0, Some(&a));
            let c = random.record(fields, k % 2 == 0, Some(&b));
            let operands = [a, b, c];
            let laws = self.laws_hold(&operands, TOLERANCE)?;
            let identity = self.identity_holds(&operands[0], TOLERANCE)?;
            defined += usize::from(identity.is_some() && laws.is_some());
        }
        self.identity_holds(&Value::Record(self.neutral.clone()), TOLERANCE)?;
        if defined == 0 { Err(Broken::Undefined) } else { Ok(defined) }
    }

    /// Whether the laws hold for three operands; none where a result is undefined.
    fn laws_hold(&self, [a, b, c]: &[Value; 3], tolerance: f64) -> Result<Option<()>, Broken> {
        let Some(ab) = self.join(a, b) else { return Ok(None) };
        if self.laws.contains(&Law::Commutative) {
            let Some(ba) = self.join(b, a) else { return Ok(None) };
            let values = format!("a = {a} and b = {b}");
            self.compare(Law::Commutative, values, ["`f(a, b)`", "`f(b, a)`"], [&ab, &ba], tolerance)?;
        }
        if self.laws.contains(&Law::Associative) {
            let right = self.join(b, c).and_then(|bc| self.join(a, &bc));
            let (Some(left), Some(right)) = (self.join(&ab, c), right) else { return Ok(None) };
            let ways = ["`f(f(a, b), c)`", "`f(a, f(b, c))`"];
            let values = format!("a = {a}, b = {b} and c = {c}");
            self.compare(Law::Associative, values, ways, [&left, &right], tolerance)?;
        }
        Ok(Some(()))
    }

    fn compare(
        &self,
        law: Law,
        values: String,
        ways: [&'static str; 2],
        found: [&Value; 2],
        tolerance: f64,
    ) -> Result<(), Broken> {
        if found[0].is_near(found[1], tolerance) {
            return Ok(());
        }
        Err(Broken::Law { law: law.name(), values, ways, found: found.map(ToString::to_string) })
    }

    /// Whether the identity leaves a value as it is, from both sides.
    fn identity_holds(&self, x: &Value, tolerance: f64) -> Result<Option<()>, Broken> {
        let neutral = Value::Record(self.neutral.clone());
        for found in [self.join(&neutral, x), self.join(x, &neutral)] {
            let Some(found) = found else { return Ok(None) };
            if !found.is_near(x, tolerance) {
                let (identity, value) = (neutral.to_string(), x.to_string());
                return Err(Broken::Identity { identity, value, found: found.to_string() });
            }
        }
        Ok(Some(()))
    }
}

/// Values that are the same in every run (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A record of small numbers, which are positive or of both signs; some are those of another one.
    /// Reals are not zero, so that nothing is asked of the mean of no values.
    fn record(&mut self, fields: &[Field], positive: bool, other: Option<&Value>) -> Value {
        let others = if let Some(Value::Record(values)) = other { values.as_slice() } else { &[] };
        let mut draw = |(k, field): (usize, &Field)| {
            let (bits, whole) = (self.next(), self.next());
            let small = (whole % 9) as i64 - 4;
            let small = if positive { small.abs() } else { small };
            match field.ty.class() {
                Class::Truth => Value::Truth(bits % 2 == 0),
                Class::Real if whole % 4 == 0 && k < others.len() => others[k].clone(),
                Class::Real => {
                    let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
                    Value::Real(if positive { 0.25 + 4.0 * unit } else { 8.0 * unit - 4.0 })
                }
                Class::Exact | Class::Word | Class::Complex | Class::Record => Value::Int(small.into()),
            }
        };
        Value::Record(fields.iter().enumerate().map(&mut draw).collect())
    }
}
