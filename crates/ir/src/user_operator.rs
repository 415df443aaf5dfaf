//! Operators of records that a kernel declares, with their identity and their laws:
//!
//! ```text
//! operator argmin(a: Best, b: Best) := select(b.value < a.value or b.value == a.value and b.at < a.at, b, a)
//!   identity Best(inf, 9223372036854775807) {associative, commutative, no_nan}   # on one line
//! ```
//!
//! An update `x argmin= e` is `x = argmin(x, e)`, and a reduction joins its values to the identity in
//! order. What steps may do with either follows from the laws, which are looked into when the operator
//! is declared: there is no operator with a law that was seen to fail.

use crate::functions::{Closed, MAX_SIZE};
use crate::types::RecordType;
use crate::user_operator_laws::{Broken, look_into};
pub use crate::user_operator_laws::{Law, Proof};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An operator as it is declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// The names of its operands.
    pub params: [String; 2],
    /// What it joins.
    pub record: RecordType,
    /// Its value.
    pub body: Closed,
    /// The literals of the record that changes no value and that a reduction over nothing is.
    pub identity: Vec<Closed>,
    /// What is declared of it.
    pub laws: BTreeSet<Law>,
}

/// A declared operator, of which nothing that is declared was seen to fail. Equal ones are one, which
/// stays in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Operator", into = "Operator")]
pub struct NamedOperator(&'static Known);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Known {
    operator: Operator,
    symbol: String,
    proof: Proof,
}

/// Why an operator is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum OperatorError {
    #[error("operator `{operator}` has more than {} operations, or is more than {} deep; write a shorter one", MAX_SIZE.0, MAX_SIZE.1)]
    TooLarge { operator: String },
    #[error("operator `{operator}` {broken}")]
    Law { operator: String, broken: Box<Broken> },
}

static KNOWN: Mutex<BTreeMap<Operator, &'static Known>> = Mutex::new(BTreeMap::new());

impl NamedOperator {
    /// An operator of which everything that is declared has been looked into. Whether its body has the
    /// type of its record is for the verifier of kernels to say.
    ///
    /// # Errors
    /// A law that fails, with values for which it does; a body that is too large.
    pub fn declare(operator: Operator) -> Result<Self, OperatorError> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.get(&operator) {
            return Ok(Self(same));
        }
        let (size, depth) = operator.body.size_of(&[]);
        if size > MAX_SIZE.0 || depth > MAX_SIZE.1 {
            return Err(OperatorError::TooLarge { operator: operator.name });
        }
        let Operator { body, record, identity, laws, .. } = &operator;
        let proof = look_into(body, *record, identity, laws).map_err(|broken| OperatorError::Law {
            operator: operator.name.clone(),
            broken: Box::new(broken),
        })?;
        let symbol = format!("{}=", operator.name);
        let new: &'static Known = Box::leak(Box::new(Known { operator: operator.clone(), symbol, proof }));
        known.insert(operator, new);
        Ok(Self(new))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        &self.0.operator.name
    }

    /// The operator of its updates in the text format.
    pub fn symbol(self) -> &'static str {
        &self.0.symbol
    }

    /// Whether values may be grouped in another way, in their order.
    pub fn is_associative(self) -> bool {
        self.laws.contains(&Law::Associative)
    }

    /// Whether values may be joined in any order and grouping.
    pub fn commutes(self) -> bool {
        self.is_associative() && self.laws.contains(&Law::Commutative)
    }

    /// How its laws are known.
    pub fn proof(self) -> Proof {
        self.0.proof
    }

    /// Whether its laws are proved, to the last bit.
    pub fn is_proved(self) -> bool {
        matches!(self.0.proof, Proof::Enumerated(_))
    }
}

impl std::ops::Deref for NamedOperator {
    type Target = Operator;

    fn deref(&self) -> &Operator {
        &self.0.operator
    }
}

impl fmt::Debug for NamedOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.operator.fmt(f)
    }
}

impl fmt::Display for NamedOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<Operator> for NamedOperator {
    type Error = OperatorError;

    fn try_from(operator: Operator) -> Result<Self, OperatorError> {
        Self::declare(operator)
    }
}

impl From<NamedOperator> for Operator {
    fn from(operator: NamedOperator) -> Self {
        operator.0.operator.clone()
    }
}
