//! Functions of expressions: those of the mathematics library, and those that a kernel declares with code
//! for targets.

use crate::constant::Real;
use crate::operators::{BinaryOp, UnaryOp};
use crate::types::{Class, Field, RecordType, ScalarType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

macro_rules! math_fns {
    ($($variant:ident $name:literal $arity:literal),* $(,)?) => {
        /// A function of the C99 mathematics library, or a Bessel function of POSIX; what makes a record; or
        /// a function that the kernel declares.
        ///
        /// The first argument of the Bessel functions is the order, a whole number. The last five
        /// functions make complex numbers or take them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[allow(missing_docs)] // each variant is the function of that name
        pub enum MathFn {
            $($variant,)*
            /// The record of its arguments.
            Record(RecordType),
            /// A declared function with code for targets.
            External(ExternalFn),
        }

        impl MathFn {
            /// Every function of numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in texts: the C99 name (of the double-precision function), or `bessel_j`
            /// and `bessel_y`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Record(record) => record.name(),
                    Self::External(function) => function.name(),
                }
            }

            /// Number of arguments.
            pub fn arity(self) -> usize {
                match self {
                    $(Self::$variant => $arity,)*
                    Self::Record(record) => record.fields.len(),
                    Self::External(function) => function.params.len(),
                }
            }

            /// The function of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

math_fns! {
    Sin "sin" 1, Cos "cos" 1, Tan "tan" 1, Asin "asin" 1, Acos "acos" 1, Atan "atan" 1, Atan2 "atan2" 2,
    Sinh "sinh" 1, Cosh "cosh" 1, Tanh "tanh" 1, Asinh "asinh" 1, Acosh "acosh" 1, Atanh "atanh" 1,
    Exp "exp" 1, Exp2 "exp2" 1, Expm1 "expm1" 1, Log "log" 1, Log2 "log2" 1, Log10 "log10" 1, Log1p "log1p" 1,
    Pow "pow" 2, Sqrt "sqrt" 1, Cbrt "cbrt" 1, Hypot "hypot" 2, Erf "erf" 1, Erfc "erfc" 1,
    Tgamma "tgamma" 1, Lgamma "lgamma" 1, Fabs "fabs" 1, Floor "floor" 1, Ceil "ceil" 1, Trunc "trunc" 1,
    Round "round" 1, Fmod "fmod" 2, Fmin "fmin" 2, Fmax "fmax" 2, Fma "fma" 3, Copysign "copysign" 2,
    BesselJ "bessel_j" 2, BesselY "bessel_y" 2,
    Complex "complex" 2, RealPart "real" 1, ImagPart "imag" 1, Conj "conj" 1, Abs "abs" 1,
}

impl MathFn {
    /// Whether it makes a complex number of its parts, or takes complex numbers alone. The names of these
    /// functions may be names of variables.
    pub fn is_of_complex(self) -> bool {
        matches!(self, Self::Complex | Self::RealPart | Self::ImagPart | Self::Conj | Self::Abs)
    }

    /// Whether the kernel declares it.
    pub fn is_external(self) -> bool {
        matches!(self, Self::External(_))
    }

    /// The functions of reals.
    pub fn of_reals() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|f| !f.is_of_complex())
    }

    /// Whether it is defined of reals and of complex numbers.
    pub fn extends(self) -> bool {
        matches!(self, Self::Exp | Self::Log | Self::Sqrt | Self::Pow | Self::Sin | Self::Cos)
    }

    /// The name of the double-precision function in C and CUDA.
    pub fn symbol(self) -> &'static str {
        self.posix_symbol().unwrap_or_else(|| self.name())
    }

    /// The name of a function that POSIX adds to C99; OpenCL has none of them.
    pub fn posix_symbol(self) -> Option<&'static str> {
        if self == Self::BesselJ {
            return Some("jn");
        }
        (self == Self::BesselY).then_some("yn")
    }
}

/// An expression that reads nothing but operands: the body of a declared operator, or what a declared
/// function computes.
///
/// It stands below [`crate::expr`], whose reductions name an operator and whose calls name a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Closed {
    /// The operand of a number.
    Operand(u8),
    /// An integer.
    Int(i64),
    /// A real.
    Real(Real),
    /// A unary operation.
    Unary(UnaryOp, Box<Closed>),
    /// A binary operation.
    Binary(BinaryOp, Box<Closed>, Box<Closed>),
    /// A function, or a record of its arguments.
    Call(MathFn, Vec<Closed>),
    /// Conversion to a type.
    Cast(ScalarType, Box<Closed>),
    /// `if condition then a else b`.
    Select(Box<Closed>, Box<Closed>, Box<Closed>),
}

impl Closed {
    /// Number of its operations and operands, and how deep they are nested, where its operands have such
    /// figures (1 if they are not given) and each call of a declared function is what it computes.
    pub(crate) fn size_of(&self, operands: &[(usize, usize)]) -> (usize, usize) {
        let of = |e: &Self| e.size_of(operands);
        match self {
            Self::Operand(k) => operands.get(usize::from(*k)).copied().unwrap_or((1, 1)),
            Self::Int(_) | Self::Real(_) => (1, 1),
            Self::Unary(_, a) | Self::Cast(_, a) => around(&[of(a)]),
            Self::Binary(_, a, b) => around(&[of(a), of(b)]),
            Self::Call(MathFn::External(function), args) => {
                function.size_of(&args.iter().map(of).collect::<Vec<_>>())
            }
            Self::Call(_, args) => around(&args.iter().map(of).collect::<Vec<_>>()),
            Self::Select(c, a, b) => around(&[of(c), of(a), of(b)]),
        }
    }
}

/// An operation around operands.
pub(crate) fn around(operands: &[(usize, usize)]) -> (usize, usize) {
    operands
        .iter()
        .fold((1, 1), |(n, d), (size, depth)| (n.saturating_add(*size), d.max(depth.saturating_add(1))))
}

/// A function as it is declared, whose result depends on its arguments alone and which does nothing else:
/// `extern cube_root(x: f64) -> f64 := pow(x, 1.0/3.0) code ("return cbrt(x);")`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct External {
    /// Its name.
    pub name: String,
    /// Its parameters, of type `f32`, `f64`, `i32` or `i64`.
    pub params: Vec<Field>,
    /// The type of its value, one of these.
    pub result: ScalarType,
    /// What it computes, of its parameters. Without it, the code alone knows.
    pub meaning: Option<Closed>,
    /// Its body in the languages of targets.
    pub code: Vec<ExternalCode>,
}

/// The body of a declared function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExternalCode {
    /// The target that it is for; none if it is for all that have no code of their own.
    pub target: Option<String>,
    /// What stands between the braces of the function, in which parameters have their names.
    pub text: String,
}

/// A declared function. Equal ones are one, which stays in memory, so that it is copied like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "External", into = "External")]
pub struct ExternalFn(&'static External);

/// Maximum number of parameters of a declared function.
const MAX_PARAMS: usize = 16;

/// Maximum number of operations and operands of a closed expression, and how deep they are nested.
pub(crate) const MAX_SIZE: (usize, usize) = (1000, 100);

/// Why a function is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum ExternalError {
    #[error("`{function}` has {found} parameters; declare 1 to {MAX_PARAMS}")]
    Params { function: String, found: usize },
    #[error("`{function}` has two parameters `{param}`; rename one")]
    Twice { function: String, param: String },
    #[error(
        "`{of}` of `{function}` is of type `{found}`; functions take and make `f32`, `f64`, `i32` and `i64`"
    )]
    Type { function: String, of: String, found: ScalarType },
    #[error("`{function}` has no code; write `code (\"return ...;\")`, or a `rule` if it needs none")]
    NoCode { function: String },
    #[error("`{function}` has two codes for one target; remove one")]
    TwoCodes { function: String },
    #[error(
        "what `{function}` computes has more than {} operations, or is more than {} deep; write a shorter one",
        MAX_SIZE.0, MAX_SIZE.1
    )]
    TooLarge { function: String },
}

static KNOWN: Mutex<BTreeSet<ExternalFn>> = Mutex::new(BTreeSet::new());

impl ExternalFn {
    /// The function of a declaration. Whether its meaning has the type of its result is for the verifier of
    /// kernels to say.
    ///
    /// # Errors
    /// No parameter or too many, two of one name, types of other values, no code or two for a target, a
    /// meaning that is too large.
    pub fn declare(external: External) -> Result<Self, ExternalError> {
        let External { name, params, result, meaning, code } = &external;
        let function = || name.clone();
        if !(1..=MAX_PARAMS).contains(&params.len()) {
            return Err(ExternalError::Params { function: function(), found: params.len() });
        }
        for (k, Field { name: param, ty }) in params.iter().enumerate() {
            if params[..k].iter().any(|other| other.name == *param) {
                return Err(ExternalError::Twice { function: function(), param: param.clone() });
            }
            if !is_passed(*ty) {
                return Err(ExternalError::Type { function: function(), of: param.clone(), found: *ty });
            }
        }
        if !is_passed(*result) {
            let of = "the value".into();
            return Err(ExternalError::Type { function: function(), of, found: *result });
        }
        if code.is_empty() {
            return Err(ExternalError::NoCode { function: function() });
        }
        let targets: BTreeSet<&Option<String>> = code.iter().map(|code| &code.target).collect();
        if targets.len() < code.len() {
            return Err(ExternalError::TwoCodes { function: function() });
        }
        let (size, depth) = meaning.as_ref().map_or((0, 0), |meaning| meaning.size_of(&[]));
        if size > MAX_SIZE.0 || depth > MAX_SIZE.1 {
            return Err(ExternalError::TooLarge { function: function() });
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|same| *same.0 == external) {
            return Ok(*same);
        }
        let new = Self(Box::leak(Box::new(external)));
        known.insert(new);
        Ok(new)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// As [`Closed::size_of`], of a call of it with such arguments.
    pub(crate) fn size_of(self, args: &[(usize, usize)]) -> (usize, usize) {
        match &self.0.meaning {
            Some(meaning) => {
                let (size, depth) = meaning.size_of(args);
                // arguments and value are converted
                (size.saturating_add(args.len() + 1), depth.saturating_add(2))
            }
            None => around(args),
        }
    }

    /// Its body for a target.
    pub fn code_for(self, target: &str) -> Option<&'static str> {
        let of = |wanted: Option<&str>| self.0.code.iter().find(|code| code.target.as_deref() == wanted);
        of(Some(target)).or_else(|| of(None)).map(|code| code.text.as_str())
    }
}

fn is_passed(ty: ScalarType) -> bool {
    match ty.class() {
        Class::Real | Class::Exact => !ty.is_storage(),
        Class::Truth | Class::Word | Class::Complex | Class::Record => false,
    }
}

impl std::ops::Deref for ExternalFn {
    type Target = External;

    fn deref(&self) -> &External {
        self.0
    }
}

impl TryFrom<External> for ExternalFn {
    type Error = ExternalError;

    fn try_from(external: External) -> Result<Self, ExternalError> {
        Self::declare(external)
    }
}

impl From<ExternalFn> for External {
    fn from(function: ExternalFn) -> Self {
        function.0.clone()
    }
}
