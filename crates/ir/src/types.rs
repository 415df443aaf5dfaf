//! Element types of variables and expressions.

use crate::half::{Bf16, F16};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The type of one array element or scalar.
///
/// Types of 8 and 16 bits are for storage: an element is read as a value of 32 bits, an integer that is
/// stored must fit, and a real that is stored is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScalarType {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Signed, 16 bits.
    I16,
    /// Signed, 8 bits.
    I8,
    /// Without sign, 8 bits.
    U8,
    /// Without sign, 16 bits.
    U16,
    /// Modulo 2^32.
    U32,
    /// Modulo 2^64.
    U64,
    /// A truth value, one byte.
    Bool,
    /// IEEE binary16.
    F16,
    /// The upper half of IEEE binary32.
    Bf16,
    /// A complex number: two `f32`.
    C64,
    /// A complex number: two `f64`.
    C128,
    /// A record, of which a variable of scalars holds each field.
    Record(RecordType),
}

/// What arithmetic the values of a type have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Truth values.
    Truth,
    /// Integers of which every result is exact: one that does not fit where it is stored is an error.
    Exact,
    /// Integers modulo a power of two. No set of isl mentions them.
    Word,
    /// Floating-point numbers.
    Real,
    /// Pairs of them, real part and imaginary part.
    Complex,
    /// Several values, with which only operators of the kernel compute.
    Record,
}

impl ScalarType {
    /// Every type of numbers and truth values, in the order of the enum.
    pub const ALL: [Self; 15] = [
        Self::F32,
        Self::F64,
        Self::I32,
        Self::I64,
        Self::I16,
        Self::I8,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
        Self::F16,
        Self::Bf16,
        Self::C64,
        Self::C128,
    ];

    /// Size of one element in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::C64 => 8,
            Self::C128 => 16,
            Self::Record(record) => record.fields.iter().map(|field| field.ty.bytes()).sum(),
        }
    }

    /// What arithmetic its values have.
    pub const fn class(self) -> Class {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => Class::Real,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::U8 | Self::U16 => Class::Exact,
            Self::U32 | Self::U64 => Class::Word,
            Self::Bool => Class::Truth,
            Self::C64 | Self::C128 => Class::Complex,
            Self::Record(_) => Class::Record,
        }
    }

    /// The record, if its values are of one.
    pub fn record(self) -> Option<RecordType> {
        if let Self::Record(record) = self { Some(record) } else { None }
    }

    /// Whether its values are numbers with a fraction.
    pub fn is_real(self) -> bool {
        self.class() == Class::Real
    }

    /// Whether its values are complex numbers.
    pub fn is_complex(self) -> bool {
        self.class() == Class::Complex
    }

    /// The type of the parts of a complex number; any other type as it is.
    #[must_use]
    pub fn part(self) -> Self {
        match self {
            Self::C64 => Self::F32,
            Self::C128 => Self::F64,
            other @ (Self::F32
            | Self::F64
            | Self::I32
            | Self::I64
            | Self::I16
            | Self::I8
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::Bool
            | Self::F16
            | Self::Bf16
            | Self::Record(_)) => other,
        }
    }

    /// How many numbers a value is: two of a complex one.
    pub fn parts(self) -> usize {
        if self.is_complex() { 2 } else { 1 }
    }

    /// The complex type that holds a number of this real or complex type.
    #[must_use]
    pub fn complex(self) -> Self {
        if self.part().loaded() == Self::F32 { Self::C64 } else { Self::C128 }
    }

    /// Whether its values are exact integers.
    pub fn is_exact(self) -> bool {
        self.class() == Class::Exact
    }

    /// Whether its values are integers modulo a power of two.
    pub fn is_word(self) -> bool {
        self.class() == Class::Word
    }

    /// Whether nothing is computed in it: its elements are read as values of another type.
    pub fn is_storage(self) -> bool {
        self.loaded() != self
    }

    /// A real, or a part of a complex number, as an element of the type holds it; of another type as it is.
    pub fn rounded(self, x: f64) -> f64 {
        match self {
            Self::F16 => f32::from(F16::from(x as f32)).into(),
            Self::Bf16 => f32::from(Bf16::from(x as f32)).into(),
            Self::F32 | Self::C64 => (x as f32).into(),
            Self::F64
            | Self::C128
            | Self::I8
            | Self::I16
            | Self::I32
            | Self::I64
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::Bool
            | Self::Record(_) => x,
        }
    }

    /// Whether it is a type of reals of 16 bits.
    pub fn is_half(self) -> bool {
        self.is_real() && self.is_storage()
    }

    /// The smallest and the largest value of an integer type; none of another one.
    pub fn ends(self) -> Option<(i128, i128)> {
        let bits = 8 * self.bytes();
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some((0, (1 << bits) - 1)),
            Self::F16
            | Self::Bf16
            | Self::F32
            | Self::F64
            | Self::Bool
            | Self::C64
            | Self::C128
            | Self::Record(_) => None,
        }
    }

    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::C64 => "c64",
            Self::C128 => "c128",
            Self::Record(record) => record.name(),
        }
    }

    /// The type of a variable that holds the value of an element, as it is computed with.
    #[must_use]
    pub fn loaded(self) -> Self {
        match self {
            Self::I8 | Self::I16 | Self::U8 | Self::U16 => Self::I32,
            Self::F16 | Self::Bf16 => Self::F32,
            other @ (Self::F32
            | Self::F64
            | Self::I32
            | Self::I64
            | Self::U32
            | Self::U64
            | Self::Bool
            | Self::C64
            | Self::C128
            | Self::Record(_)) => other,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A truth value as memory holds it: anything but 0 is true, and what is stored is 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Flag(pub u8);

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

/// A record as it is declared: `record Best(value: f64, at: i64)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// What it holds, in order.
    pub fields: Vec<Field>,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Field {
    /// Its name, which no other field of the record has.
    pub name: String,
    /// A type in which values are computed: `f32`, `f64`, `i32`, `i64` or `bool`.
    pub ty: ScalarType,
}

/// A record as an element type. Equal records are one, which stays in memory, so that a type is copied
/// like any other.
///
/// One access of a variable of records is one access, so that dependences and placement know nothing of
/// fields. Before a kernel runs, [`Kernel::scalar_form`](crate::Kernel::scalar_form) gives each field a
/// variable of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Record", into = "Record")]
pub struct RecordType(&'static Record);

/// Maximum number of fields of a record.
const MAX_FIELDS: usize = 16;

/// Why a record is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum RecordError {
    #[error("record `{record}` has {found} fields; declare 1 to {MAX_FIELDS}")]
    Fields { record: String, found: usize },
    #[error("record `{record}` has two fields `{field}`; rename one")]
    Twice { record: String, field: String },
    #[error(
        "field `{field}` of `{record}` is of type `{found}`; a field is of type `f32`, `f64`, `i32`, `i64` or `bool`"
    )]
    FieldType { record: String, field: String, found: ScalarType },
}

static KNOWN: Mutex<BTreeSet<RecordType>> = Mutex::new(BTreeSet::new());

impl RecordType {
    /// The type of a declared record.
    ///
    /// # Errors
    /// No field or too many, two of one name, types without arithmetic of their own.
    pub fn declare(record: Record) -> Result<Self, RecordError> {
        let name = || record.name.clone();
        if !(1..=MAX_FIELDS).contains(&record.fields.len()) {
            return Err(RecordError::Fields { record: name(), found: record.fields.len() });
        }
        for (k, Field { name: field, ty }) in record.fields.iter().enumerate() {
            if record.fields[..k].iter().any(|other| other.name == *field) {
                return Err(RecordError::Twice { record: name(), field: field.clone() });
            }
            let is_computed = match ty.class() {
                Class::Truth => true,
                Class::Real | Class::Exact => !ty.is_storage(),
                Class::Word | Class::Complex | Class::Record => false,
            };
            if !is_computed {
                return Err(RecordError::FieldType { record: name(), field: field.clone(), found: *ty });
            }
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|same| *same.0 == record) {
            return Ok(*same);
        }
        let new = Self(Box::leak(Box::new(record)));
        known.insert(new);
        Ok(new)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The number of the field of a name.
    pub fn field(self, name: &str) -> Option<u8> {
        self.0.fields.iter().position(|field| field.name == name).and_then(|k| u8::try_from(k).ok())
    }

    /// The field of a number.
    pub fn field_of(self, k: u8) -> Option<&'static Field> {
        self.0.fields.get(usize::from(k))
    }
}

impl std::ops::Deref for RecordType {
    type Target = Record;

    fn deref(&self) -> &Record {
        self.0
    }
}

impl TryFrom<Record> for RecordType {
    type Error = RecordError;

    fn try_from(record: Record) -> Result<Self, RecordError> {
        Self::declare(record)
    }
}

impl From<RecordType> for Record {
    fn from(record: RecordType) -> Self {
        record.0.clone()
    }
}
