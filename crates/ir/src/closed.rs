//! Expressions of operands and literals: how large they are, and what they compute with.

use crate::functions::{Closed, MathFn};
use crate::operators::{BinaryOp, UnaryOp};

impl Closed {
    /// Its direct operands.
    pub fn operands(&self) -> Vec<&Self> {
        match self {
            Self::Operand(_) | Self::Int(_) | Self::Real(_) => Vec::new(),
            Self::Unary(_, a) | Self::Cast(_, a) => vec![a],
            Self::Binary(_, a, b) => vec![a, b],
            Self::Call(_, args) => args.iter().collect(),
            Self::Select(c, a, b) => vec![c, a, b],
        }
    }

    /// Whether it compares and selects operands, and computes nothing.
    pub fn only_compares(&self) -> bool {
        let this = match self {
            Self::Operand(_) | Self::Select(..) => true,
            Self::Unary(op, _) => matches!(op, UnaryOp::Field(..) | UnaryOp::Not),
            Self::Call(function, _) => matches!(function, MathFn::Record(_)),
            Self::Binary(op, ..) => {
                op.is_comparison() || op.is_logical() || matches!(op, BinaryOp::Min | BinaryOp::Max)
            }
            Self::Int(_) | Self::Real(_) | Self::Cast(..) => false,
        };
        this && self.operands().into_iter().all(Self::only_compares)
    }

    /// Whether it compares each field of an operand with the same field of the other alone.
    pub fn compares_like_fields(&self) -> bool {
        let this = match self {
            Self::Binary(op, a, b) if !op.is_logical() => match (&**a, &**b) {
                (Self::Unary(UnaryOp::Field(_, k), a), Self::Unary(UnaryOp::Field(_, l), b)) => {
                    k == l && matches!((&**a, &**b), (Self::Operand(_), Self::Operand(_)))
                }
                _ => false,
            },
            // a field of what is made may come from another one
            Self::Call(MathFn::Record(record), values) => {
                values.iter().zip(0..).all(|(value, k)| value.stays_in(*record, k))
            }
            Self::Operand(_)
            | Self::Int(_)
            | Self::Real(_)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Call(..)
            | Self::Cast(..)
            | Self::Select(..) => true,
        };
        this && self.operands().into_iter().all(Self::compares_like_fields)
    }

    /// Whether its value is one of a field of the operands.
    fn stays_in(&self, record: crate::types::RecordType, field: u8) -> bool {
        match self {
            Self::Unary(UnaryOp::Field(of, k), _) => (*of, *k) == (record, field),
            Self::Select(_, a, b) => [a, b].into_iter().all(|e| e.stays_in(record, field)),
            Self::Binary(op, a, b) => {
                // a truth value is none of an order
                op.is_logical() || op.is_comparison() || [a, b].into_iter().all(|e| e.stays_in(record, field))
            }
            Self::Unary(UnaryOp::Not, _) => true,
            Self::Operand(_)
            | Self::Int(_)
            | Self::Real(_)
            | Self::Unary(..)
            | Self::Call(..)
            | Self::Cast(..) => false,
        }
    }
}
