//! What a kernel is run on: parameters and arguments by name.

use purlin_ir::kernel::Kernel;
use purlin_ir::types::ScalarType;
use std::collections::BTreeMap;

/// The elements of an argument, row-major over its shape; a scalar has one element.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Elements of type `f64`.
    F64(Vec<f64>),
    /// Elements of type `f32`.
    F32(Vec<f32>),
    /// Elements of type `i32`.
    I32(Vec<i32>),
    /// Elements of type `i64`.
    I64(Vec<i64>),
    /// Elements of type `i16`.
    I16(Vec<i16>),
}

impl Value {
    /// Type of the elements.
    pub fn ty(&self) -> ScalarType {
        match self {
            Self::F64(_) => ScalarType::F64,
            Self::F32(_) => ScalarType::F32,
            Self::I32(_) => ScalarType::I32,
            Self::I64(_) => ScalarType::I64,
            Self::I16(_) => ScalarType::I16,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::I16(v) => v.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same elements with rows in another order: at each place of `order` stands the row that it
    /// names, and all rows have one length. Rows that are not there are left out.
    #[must_use]
    pub fn in_order(&self, order: &[usize]) -> Self {
        fn moved<T: Copy>(values: &[T], order: &[usize]) -> Vec<T> {
            let length = values.len() / order.len().max(1);
            order
                .iter()
                .filter_map(|row| values.get(row * length..(row + 1) * length))
                .flatten()
                .copied()
                .collect()
        }
        match self {
            Self::F64(v) => Self::F64(moved(v, order)),
            Self::F32(v) => Self::F32(moved(v, order)),
            Self::I32(v) => Self::I32(moved(v, order)),
            Self::I64(v) => Self::I64(moved(v, order)),
            Self::I16(v) => Self::I16(moved(v, order)),
        }
    }

    /// The elements, if they are integers.
    #[must_use]
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        match self {
            Self::I32(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
            Self::I64(v) => Some(v.clone()),
            Self::I16(v) => Some(v.iter().map(|v| i64::from(*v)).collect()),
            Self::F32(_) | Self::F64(_) => None,
        }
    }

    /// Integers as elements of type `ty`; none of a real type, or where one does not fit.
    #[must_use]
    pub fn of_integers(ty: ScalarType, values: &[i64]) -> Option<Self> {
        fn narrowed<T: TryFrom<i64>>(values: &[i64]) -> Option<Vec<T>> {
            values.iter().map(|v| T::try_from(*v).ok()).collect()
        }
        match ty {
            ScalarType::F32 | ScalarType::F64 => None,
            ScalarType::I16 => narrowed(values).map(Self::I16),
            ScalarType::I32 => narrowed(values).map(Self::I32),
            ScalarType::I64 => narrowed(values).map(Self::I64),
        }
    }

    /// `len` zeros of type `ty`.
    pub fn zeros(ty: ScalarType, len: usize) -> Self {
        match ty {
            ScalarType::F64 => Self::F64(vec![0.0; len]),
            ScalarType::F32 => Self::F32(vec![0.0; len]),
            ScalarType::I32 => Self::I32(vec![0; len]),
            ScalarType::I64 => Self::I64(vec![0; len]),
            ScalarType::I16 => Self::I16(vec![0; len]),
        }
    }

    /// The elements as `f64` (integers beyond 2^53 are rounded).
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F64(v) => v.clone(),
            Self::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::I32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::I16(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Self::I64(v) => v.iter().map(|x| *x as f64).collect(),
        }
    }
}

macro_rules! value_from {
    ($($ty:ty => $variant:ident),*) => { $(
        impl From<Vec<$ty>> for Value {
            fn from(elements: Vec<$ty>) -> Self {
                Self::$variant(elements)
            }
        }
        impl From<$ty> for Value {
            fn from(scalar: $ty) -> Self {
                Self::$variant(vec![scalar])
            }
        }
    )* };
}
value_from!(f64 => F64, f32 => F32, i32 => I32, i64 => I64, i16 => I16);

/// Parameters and arguments by name; names the kernel does not have are ignored.
///
/// `in` and `inout` arguments must be there; `out` arguments that are missing are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    params: BTreeMap<String, i64>,
    values: BTreeMap<String, Value>,
}

impl Memory {
    /// The values of a kernel's parameters and variables; others are left out.
    #[must_use]
    pub fn of_kernel(&self, kernel: &Kernel) -> Self {
        let mut memory = Self::new();
        for (name, value) in self.params.iter().filter(|(name, _)| kernel.var(name).is_some()) {
            memory.set_param(name, *value);
        }
        for (name, value) in self.values.iter().filter(|(name, _)| kernel.var(name).is_some()) {
            memory.set(name, value.clone());
        }
        memory
    }

    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a parameter.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>, value: i64) -> Self {
        self.set_param(name, value);
        self
    }

    /// With an array (from a vector) or a scalar (from a number).
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a parameter.
    pub fn set_param(&mut self, name: impl Into<String>, value: i64) {
        self.params.insert(name.into(), value);
    }

    /// Sets an array or a scalar.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.values.insert(name.into(), value.into());
    }

    /// The value of a parameter.
    pub fn get_param(&self, name: &str) -> Option<i64> {
        self.params.get(name).copied()
    }

    /// The elements of an argument.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The elements of an `f64` argument; `None` if it is missing or of another type.
    pub fn f64s(&self, name: &str) -> Option<&[f64]> {
        match self.get(name)? {
            Value::F64(v) => Some(v),
            Value::F32(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => None,
        }
    }

    /// Parameters in order of name.
    pub fn params(&self) -> &BTreeMap<String, i64> {
        &self.params
    }

    /// Arguments in order of name.
    pub fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }
}
