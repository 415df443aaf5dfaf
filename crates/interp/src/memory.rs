//! What a kernel is run on: parameters and arguments by name.

use kingpost_ir::kernel::Kernel;
use kingpost_ir::types::{Flag, ScalarType};
use kingpost_ir::{Bf16, Complex, F16, TableData};
use std::borrow::Cow;
use std::collections::BTreeMap;

macro_rules! values {
    ($($(#[$doc:meta])* $variant:ident: $ty:ty),* $(,)?) => {
        /// The elements of an argument, row-major over its shape; a scalar has one element.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Value {
            $($(#[$doc])* $variant(Vec<$ty>),)*
        }

        impl Value {
            /// Type of the elements.
            pub fn ty(&self) -> ScalarType {
                match self {
                    $(Self::$variant(_) => ScalarType::$variant,)*
                }
            }

            /// `len` zeros of type `ty`.
            pub fn zeros(ty: ScalarType, len: usize) -> Self {
                match ty {
                    $(ScalarType::$variant => Self::$variant(vec![Default::default(); len]),)*
                    // an array for each field holds those of records
                    ScalarType::Record(_) => Self::U8(Vec::new()),
                }
            }
        }

        $(
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
        )*
    };
}

values! {
    /// Elements of type `f64`.
    F64: f64,
    /// Elements of type `f32`.
    F32: f32,
    /// Elements of type `i32`.
    I32: i32,
    /// Elements of type `i64`.
    I64: i64,
    /// Elements of type `i16`.
    I16: i16,
    /// Elements of type `i8`.
    I8: i8,
    /// Elements of type `u8`.
    U8: u8,
    /// Elements of type `u16`.
    U16: u16,
    /// Elements of type `u32`.
    U32: u32,
    /// Elements of type `u64`.
    U64: u64,
    /// Elements of type `bool`.
    Bool: Flag,
    /// Elements of type `f16`.
    F16: F16,
    /// Elements of type `bf16`.
    Bf16: Bf16,
    /// Elements of type `c64`.
    C64: Complex<f32>,
    /// Elements of type `c128`.
    C128: Complex<f64>,
}

/// `$body` with the elements of a [`Value`] as `$elements`, whatever their type.
#[macro_export]
macro_rules! with_elements {
    ($value:expr, $elements:pat => $body:expr) => {
        match $value {
            $crate::Value::F64($elements) => $body,
            $crate::Value::F32($elements) => $body,
            $crate::Value::I32($elements) => $body,
            $crate::Value::I64($elements) => $body,
            $crate::Value::I16($elements) => $body,
            $crate::Value::I8($elements) => $body,
            $crate::Value::U8($elements) => $body,
            $crate::Value::U16($elements) => $body,
            $crate::Value::U32($elements) => $body,
            $crate::Value::U64($elements) => $body,
            $crate::Value::Bool($elements) => $body,
            $crate::Value::F16($elements) => $body,
            $crate::Value::Bf16($elements) => $body,
            $crate::Value::C64($elements) => $body,
            $crate::Value::C128($elements) => $body,
        }
    };
}

/// An element as the numbers that the interpreter computes with.
pub(crate) trait Element: Copy {
    /// The nearest real; of a complex number its real part.
    fn as_f64(self) -> f64;
    /// The imaginary part of a complex number.
    fn imaginary(self) -> Option<f64> {
        None
    }
    /// The integer, of 64 bits without sign its bits.
    fn as_i64(self) -> i64;
}

macro_rules! element {
    ($($ty:ty),*) => { $(
        impl Element for $ty {
            fn as_f64(self) -> f64 {
                self as f64
            }
            fn as_i64(self) -> i64 {
                self as i64
            }
        }
    )* };
}
element!(f64, f32, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! half {
    ($($ty:ty),*) => { $(
        impl Element for $ty {
            fn as_f64(self) -> f64 {
                f32::from(self).into()
            }
            fn as_i64(self) -> i64 {
                f32::from(self) as i64
            }
        }
    )* };
}
half!(F16, Bf16);

impl Element for Flag {
    fn as_f64(self) -> f64 {
        self.0.into()
    }
    fn as_i64(self) -> i64 {
        (self.0 != 0).into()
    }
}

impl<T: Element> Element for Complex<T> {
    fn as_f64(self) -> f64 {
        self.re.as_f64()
    }
    fn imaginary(self) -> Option<f64> {
        Some(self.im.as_f64())
    }
    fn as_i64(self) -> i64 {
        self.re.as_i64()
    }
}

impl Value {
    /// Number of elements.
    pub fn len(&self) -> usize {
        with_elements!(self, v => v.len())
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
        with_elements!(self, v => moved(v, order).into())
    }

    /// The elements, if they are exact integers.
    #[must_use]
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        self.ty().is_exact().then(|| self.integers())
    }

    /// An element as an integer, of 64 bits without sign its bits; a real is rounded.
    #[must_use]
    pub fn integer(&self, k: usize) -> Option<i64> {
        with_elements!(self, v => v.get(k).map(|x| x.as_i64()))
    }

    /// The elements as the interpreter holds integers and truth values.
    pub(crate) fn integers(&self) -> Vec<i64> {
        with_elements!(self, v => v.iter().map(|x| x.as_i64()).collect())
    }

    /// Integers as elements of type `ty`; none of a real type, or where one does not fit.
    #[must_use]
    pub fn of_integers(ty: ScalarType, values: &[i64]) -> Option<Self> {
        TableData::int(values.iter().copied()).fits(ty).then(|| Self::of_bits(ty, values))
    }

    /// The low bits of integers as elements of type `ty`; of a real type the nearest reals.
    #[must_use]
    pub fn of_bits(ty: ScalarType, values: &[i64]) -> Self {
        macro_rules! cast {
            ($variant:ident) => {
                Self::$variant(values.iter().map(|x| *x as _).collect())
            };
        }
        match ty {
            ScalarType::F64 => cast!(F64),
            ScalarType::F32 => cast!(F32),
            ScalarType::I8 => cast!(I8),
            ScalarType::I16 => cast!(I16),
            ScalarType::I32 => cast!(I32),
            ScalarType::I64 => cast!(I64),
            ScalarType::U8 => cast!(U8),
            ScalarType::U16 => cast!(U16),
            ScalarType::U32 => cast!(U32),
            ScalarType::U64 => cast!(U64),
            ScalarType::Bool => Self::Bool(values.iter().map(|x| (*x != 0).into()).collect()),
            ScalarType::F16 | ScalarType::Bf16 => {
                Self::of_reals(ty, &values.iter().map(|x| *x as f64).collect::<Vec<_>>())
            }
            ScalarType::C64 | ScalarType::C128 => {
                Self::of_reals(ty, &values.iter().flat_map(|x| [*x as f64, 0.0]).collect::<Vec<_>>())
            }
            ScalarType::Record(_) => Self::zeros(ty, 0),
        }
    }

    /// The values of a table with elements of type `ty`.
    #[must_use]
    pub fn of_table(ty: ScalarType, data: &TableData) -> Self {
        match data {
            TableData::Real(v) => Self::of_reals(ty, &v.iter().map(|x| x.0).collect::<Vec<_>>()),
            TableData::Int(v) => Self::of_bits(ty, v),
            TableData::Complex(v) => {
                Self::of_reals(ty, &v.iter().flat_map(|z| [z.re.0, z.im.0]).collect::<Vec<_>>())
            }
        }
    }

    /// Reals as elements of a real type, each rounded to it, or as parts of elements of a complex type;
    /// of another type as `f64`.
    #[must_use]
    pub fn of_reals(ty: ScalarType, values: &[f64]) -> Self {
        let single = || values.iter().map(|x| *x as f32);
        match ty {
            ScalarType::F16 => Self::F16(single().map(F16::from).collect()),
            ScalarType::Bf16 => Self::Bf16(single().map(Bf16::from).collect()),
            ScalarType::F32 => Self::F32(single().collect()),
            ScalarType::C64 => {
                let pair = |z: &[f64]| Complex { re: z[0] as f32, im: z[1] as f32 };
                Self::C64(values.chunks_exact(2).map(pair).collect())
            }
            ScalarType::C128 => {
                Self::C128(values.chunks_exact(2).map(|z| Complex { re: z[0], im: z[1] }).collect())
            }
            ScalarType::F64
            | ScalarType::I8
            | ScalarType::I16
            | ScalarType::I32
            | ScalarType::I64
            | ScalarType::U8
            | ScalarType::U16
            | ScalarType::U32
            | ScalarType::U64
            | ScalarType::Bool
            | ScalarType::Record(_) => Self::F64(values.to_vec()),
        }
    }

    /// The elements as `f64` (integers beyond 2^53 are rounded); of complex numbers both parts, one after
    /// the other.
    pub fn to_f64(&self) -> Vec<f64> {
        with_elements!(self, v => v.iter().flat_map(|x| [Some(x.as_f64()), x.imaginary()]).flatten().collect())
    }
}

/// Parameters and arguments by name; names the kernel does not have are ignored.
///
/// `in` and `inout` arguments must be there; `out` arguments that are missing are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    params: BTreeMap<String, i64>,
    values: BTreeMap<String, Value>,
}

impl Memory {
    /// The values of a kernel's parameters, with those that are computed, and of its variables; others are
    /// left out.
    #[must_use]
    pub fn of_kernel(&self, kernel: &Kernel) -> Self {
        let mut memory = Self::new();
        for (name, value) in self.params.iter().filter(|(name, _)| kernel.var(name).is_some()) {
            memory.set_param(name, *value);
        }
        // a value that does not fit is refused where the kernel runs
        if let Ok(Cow::Owned(all)) = kernel.with_defined(&memory.params) {
            memory.params = all;
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
        if let Value::F64(v) = self.get(name)? { Some(v) } else { None }
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
