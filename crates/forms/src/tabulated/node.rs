//! The scalar operations of a tabulated form; in JSON a list of a word and its operands.

use super::Side;
use serde::de::{Error, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A scalar operation; operands are places of nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A number.
    Literal(f64),
    /// A component of a constant.
    Constant(usize, usize),
    /// An evaluation.
    Evaluation(usize),
    /// The quadrature weight.
    Weight,
    /// The entry of a table without degrees of freedom at the point.
    Table(usize, Option<Side>),
    /// Minus.
    Negate(usize),
    /// Arithmetic.
    Arithmetic(Arithmetic, usize, usize),
    /// A function of one or two numbers.
    Math(Function, Vec<usize>),
    /// A Bessel function of whole order.
    Bessel(Bessel, i64, usize),
    /// A comparison of two numbers, which is a condition.
    Compare(Relation, usize, usize),
    /// Both conditions.
    And(usize, usize),
    /// At least one of two conditions.
    Or(usize, usize),
    /// The opposite condition.
    Not(usize),
    /// `condition ? a : b`.
    Select(usize, usize, usize),
}

/// An operation with words in JSON.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word in JSON.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|f| f.word() == word)
            }
        }
    };
}

words! {
    /// Arithmetic with two operands.
    Arithmetic {
        /// Sum.
        Add = "add",
        /// Difference.
        Subtract = "subtract",
        /// Product.
        Multiply = "multiply",
        /// Quotient.
        Divide = "divide",
        /// Power.
        Power = "power",
    }
}

words! {
    /// A function of one or two numbers.
    Function {
        /// Absolute value, which is real.
        Abs = "abs",
        /// Conjugate.
        Conj = "conj",
        /// Real part.
        Real = "real",
        /// Imaginary part.
        Imag = "imag",
        /// The complex number with the first operand as real and the second as imaginary part.
        Complex = "complex",
        /// -1, 0 or 1.
        Sign = "sign",
        /// Square root.
        Sqrt = "sqrt",
        /// Exponential.
        Exp = "exp",
        /// Natural logarithm.
        Ln = "ln",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Tangent.
        Tan = "tan",
        /// Inverse sine.
        Asin = "asin",
        /// Inverse cosine.
        Acos = "acos",
        /// Inverse tangent.
        Atan = "atan",
        /// Hyperbolic sine.
        Sinh = "sinh",
        /// Hyperbolic cosine.
        Cosh = "cosh",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Error function.
        Erf = "erf",
        /// Angle of the point (second, first).
        Atan2 = "atan2",
        /// Minimum.
        Min = "min",
        /// Maximum.
        Max = "max",
    }
}

impl Function {
    /// Number of operands.
    #[must_use]
    pub const fn arity(self) -> usize {
        if matches!(self, Self::Complex | Self::Atan2 | Self::Min | Self::Max) { 2 } else { 1 }
    }
}

words! {
    /// A Bessel function.
    Bessel {
        /// Of the first kind.
        J = "j",
        /// Of the second kind.
        Y = "y",
        /// Modified, of the first kind.
        I = "i",
        /// Modified, of the second kind.
        K = "k",
    }
}

words! {
    /// A comparison.
    Relation {
        /// Equal.
        Equal = "eq",
        /// Not equal.
        NotEqual = "ne",
        /// Less than.
        Less = "lt",
        /// Less than or equal.
        LessEqual = "le",
        /// Greater than.
        Greater = "gt",
        /// Greater than or equal.
        GreaterEqual = "ge",
    }
}

impl Node {
    /// Places of the operands.
    #[must_use]
    pub fn operands(&self) -> Vec<usize> {
        match self {
            Self::Literal(_) | Self::Constant(..) | Self::Evaluation(_) | Self::Weight | Self::Table(..) => {
                Vec::new()
            }
            Self::Negate(a) | Self::Bessel(_, _, a) | Self::Not(a) => vec![*a],
            Self::Arithmetic(_, a, b) | Self::Compare(_, a, b) | Self::And(a, b) | Self::Or(a, b) => {
                vec![*a, *b]
            }
            Self::Math(_, list) => list.clone(),
            Self::Select(c, a, b) => vec![*c, *a, *b],
        }
    }

    /// Whether it is a condition and no number.
    #[must_use]
    pub fn is_condition(&self) -> bool {
        matches!(self, Self::Compare(..) | Self::And(..) | Self::Or(..) | Self::Not(_))
    }

    fn parts(&self) -> Vec<Atom> {
        let word = |w: &str| Atom::Text(w.into());
        let index = |k: &usize| Atom::Index(*k as i64);
        match self {
            Self::Literal(value) => vec![word("literal"), Atom::Number(*value)],
            Self::Constant(k, c) => vec![word("constant"), index(k), index(c)],
            Self::Evaluation(k) => vec![word("evaluation"), index(k)],
            Self::Weight => vec![word("weight")],
            Self::Table(k, side) => {
                let side = side.map(|s| word(if s == Side::Plus { "+" } else { "-" }));
                [word("table"), index(k)].into_iter().chain(side).collect()
            }
            Self::Negate(a) => vec![word("negate"), index(a)],
            Self::Arithmetic(op, a, b) => vec![word(op.word()), index(a), index(b)],
            Self::Math(f, list) => {
                [word("math"), word(f.word())].into_iter().chain(list.iter().map(index)).collect()
            }
            Self::Bessel(kind, order, a) => {
                vec![word("bessel"), word(kind.word()), Atom::Index(*order), index(a)]
            }
            Self::Compare(relation, a, b) => vec![word("compare"), word(relation.word()), index(a), index(b)],
            Self::And(a, b) => vec![word("and"), index(a), index(b)],
            Self::Or(a, b) => vec![word("or"), index(a), index(b)],
            Self::Not(a) => vec![word("not"), index(a)],
            Self::Select(c, a, b) => vec![word("select"), index(c), index(a), index(b)],
        }
    }

    fn from_parts(parts: &[Atom]) -> Result<Self, String> {
        let [Atom::Text(word), rest @ ..] = parts else {
            return Err("found a node without a word, needed one such as `add` first".into());
        };
        if let Some(op) = Arithmetic::from_word(word) {
            let [a, b] = indices(word, rest)?;
            return Ok(Self::Arithmetic(op, a, b));
        }
        match word.as_str() {
            "literal" => match rest {
                [Atom::Number(value)] => Ok(Self::Literal(*value)),
                [Atom::Index(value)] => Ok(Self::Literal(*value as f64)),
                _ => Err(wrong(word, "one number")),
            },
            "constant" => indices(word, rest).map(|[k, c]| Self::Constant(k, c)),
            "evaluation" => indices(word, rest).map(|[k]| Self::Evaluation(k)),
            "weight" => indices(word, rest).map(|[]| Self::Weight),
            "table" => table(word, rest),
            "negate" => indices(word, rest).map(|[a]| Self::Negate(a)),
            "math" => math(word, rest),
            "bessel" => bessel(word, rest),
            "compare" => {
                let (relation, rest) =
                    choice(word, rest, Relation::from_word, Relation::ALL, Relation::word)?;
                indices(word, rest).map(|[a, b]| Self::Compare(relation, a, b))
            }
            "and" => indices(word, rest).map(|[a, b]| Self::And(a, b)),
            "or" => indices(word, rest).map(|[a, b]| Self::Or(a, b)),
            "not" => indices(word, rest).map(|[a]| Self::Not(a)),
            "select" => indices(word, rest).map(|[c, a, b]| Self::Select(c, a, b)),
            _ => Err(format!(
                "found the node `{word}`, needed literal, constant, evaluation, weight, table, negate, add, \
                 subtract, multiply, divide, power, math, bessel, compare, and, or, not or select"
            )),
        }
    }
}

fn table(word: &str, rest: &[Atom]) -> Result<Node, String> {
    match rest {
        [k] => indices(word, std::slice::from_ref(k)).map(|[k]| Node::Table(k, None)),
        [k, Atom::Text(side)] => {
            let [k] = indices(word, std::slice::from_ref(k))?;
            match side.as_str() {
                "+" => Ok(Node::Table(k, Some(Side::Plus))),
                "-" => Ok(Node::Table(k, Some(Side::Minus))),
                _ => Err(wrong(word, "a place and the side `+` or `-`")),
            }
        }
        _ => Err(wrong(word, "a place and at most a side")),
    }
}

fn math(word: &str, rest: &[Atom]) -> Result<Node, String> {
    let (function, rest) = choice(word, rest, Function::from_word, Function::ALL, Function::word)?;
    if rest.len() != function.arity() {
        return Err(format!(
            "found `{}` with {} operands, needed {}",
            function.word(),
            rest.len(),
            function.arity()
        ));
    }
    let operands = rest.iter().map(|a| indices(word, std::slice::from_ref(a)).map(|[a]| a));
    Ok(Node::Math(function, operands.collect::<Result<_, _>>()?))
}

fn bessel(word: &str, rest: &[Atom]) -> Result<Node, String> {
    let (kind, rest) = choice(word, rest, Bessel::from_word, Bessel::ALL, Bessel::word)?;
    match rest {
        [Atom::Index(order), a] => {
            indices(word, std::slice::from_ref(a)).map(|[a]| Node::Bessel(kind, *order, a))
        }
        _ => Err(wrong(word, "a kind, a whole order and a place")),
    }
}

/// The operation that the first part names.
fn choice<'p, T: Copy>(
    word: &str,
    rest: &'p [Atom],
    find: impl Fn(&str) -> Option<T>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<(T, &'p [Atom]), String> {
    let names = || all.iter().map(|t| name(*t)).collect::<Vec<_>>().join(", ");
    match rest {
        [Atom::Text(text), rest @ ..] => match find(text) {
            Some(found) => Ok((found, rest)),
            None => Err(format!("found `{text}` in a `{word}` node, needed one of {}", names())),
        },
        _ => Err(format!("found a `{word}` node without a name, needed one of {}", names())),
    }
}

fn wrong(word: &str, needed: &str) -> String {
    format!("found other operands in a `{word}` node, needed {needed}")
}

/// Exactly this many places.
fn indices<const N: usize>(word: &str, rest: &[Atom]) -> Result<[usize; N], String> {
    let index = |a: &Atom| match a {
        Atom::Index(k) => usize::try_from(*k).ok(),
        Atom::Number(_) | Atom::Text(_) => None,
    };
    let places: Option<Vec<usize>> = rest.iter().map(index).collect();
    places.and_then(|p| p.try_into().ok()).ok_or_else(|| wrong(word, &format!("{N} places")))
}

/// A part of a node. Read by a visitor: an untagged enum keeps a copy of each part to try its
/// variants on, and a form has thousands of them.
#[derive(Serialize)]
#[serde(untagged)]
enum Atom {
    Index(i64),
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Atom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtomVisitor)
    }
}

struct AtomVisitor;

impl Visitor<'_> for AtomVisitor {
    type Value = Atom;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word or a number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Atom, E> {
        Ok(Atom::Index(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Atom, E> {
        Ok(i64::try_from(value).map_or(Atom::Number(value as f64), Atom::Index))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Atom, E> {
        Ok(Atom::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Atom, E> {
        Ok(Atom::Text(value.into()))
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.parts();
        let mut list = serializer.serialize_seq(Some(parts.len()))?;
        for part in &parts {
            list.serialize_element(part)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_parts(&Vec::<Atom>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
