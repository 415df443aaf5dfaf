//! Small functions that the source defines at its head when it needs them.

use super::complex;
use crate::ast::update_value;
use crate::ast::{Atomic, Coding, Expr, IntFn};
use crate::complex::ComplexOp;
use crate::double_single::PairOp;
use crate::target::TargetDescription;
use kingpost_ir::{ExternalFn, MathFn, ScalarType, UpdateOp};
use std::collections::BTreeSet;

/// A function of the source, or the native function that does the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// The declaration of a function that C's headers do not have in its standard mode.
    Declared(MathFn, ScalarType),
    /// A type of complex numbers, in C.
    Pair(ScalarType),
    /// A function of complex numbers.
    Complex(ComplexOp, ScalarType),
    /// A function of double-single numbers, after those that it calls.
    DoubleSingle(PairOp),
    /// Bytes of a vector of the processor for which C is compiled.
    VectorBytes,
    /// A type of vectors of C's compilers: of at most that many lanes, of all of them where lanes
    /// change places.
    Vector(ScalarType, u8),
    /// One value in all lanes of such a vector.
    Splat(ScalarType, u8),
    /// A vector of the values of its lanes, as many of them as it has.
    List(ScalarType, u8),
    /// The vector of lanes of two others.
    Shuffle(ScalarType, u8),
    /// A function of a given number of vectors, lane by lane.
    Lanes(MathFn, ScalarType, u8, usize),
    /// Copies of an array for the threads of C.
    Copies(ScalarType),
    /// A way to or from a number of 16 bits.
    Half(Coding, ScalarType),
    /// An integer function.
    Integer(IntFn, ScalarType),
    /// An indivisible update of an element in global or local memory.
    Atomic { op: UpdateOp, ty: ScalarType, local: bool },
    /// A function that the kernel declares.
    External(ExternalFn),
}

impl Helper {
    pub(crate) fn atomic(a: &Atomic, dialect: &TargetDescription) -> Self {
        Self::Atomic { op: a.op, ty: a.ty, local: a.local && dialect.atomics.spaces }
    }

    /// Whether it is a compare-and-swap on 64 bits.
    pub(crate) fn is_wide_atomic(&self) -> bool {
        matches!(self, Self::Atomic { ty, .. } if ty.part().bytes() == 8)
    }

    /// Whether a type of vectors, or what makes some, has all lanes whatever the processor has:
    /// lanes change places.
    pub(super) fn is_whole(&self, helpers: &BTreeSet<Self>) -> bool {
        let (Self::Vector(ty, width) | Self::List(ty, width)) = *self else { return false };
        helpers.contains(&Self::Shuffle(ty, width))
    }

    /// The native function, if the target has one.
    fn native(&self, dialect: &TargetDescription) -> Option<&'static str> {
        let Self::Atomic { op, ty, .. } = self else { return None };
        let mut native = dialect.atomics.native.iter().filter(|(o, t, _)| (o, t) == (op, ty));
        native.next().map(|(_, _, name)| *name)
    }

    pub(crate) fn is_native(&self, dialect: &TargetDescription) -> bool {
        self.native(dialect).is_some()
    }

    pub(crate) fn name(&self, dialect: &TargetDescription) -> String {
        if let Some(native) = self.native(dialect) {
            return native.into();
        }
        match self {
            Self::Declared(f, ty) => dialect.function(*f, *ty),
            Self::Pair(ty) => dialect.ty(*ty).to_owned(),
            Self::Complex(op, ty) => op.name(*ty),
            Self::DoubleSingle(op) => op.name(),
            Self::VectorBytes => VECTOR_BYTES.into(),
            Self::Vector(ty, width) => dialect.vector(*ty, *width),
            Self::Splat(ty, width) => format!("{}_of", dialect.vector(*ty, *width)),
            Self::List(ty, width) => format!("{}_list", dialect.vector(*ty, *width)),
            Self::Shuffle(ty, width) => format!("{}_shuffle", dialect.vector(*ty, *width)),
            Self::Lanes(f, ty, width, _) => format!("{}_{}", dialect.vector(*ty, *width), f.name()),
            Self::Copies(ty) => format!("kingpost_new_copies_{}", ty.name()),
            Self::Half(Coding::Encode, ty) => format!("kingpost_to_{}", ty.name()),
            Self::Half(Coding::Decode, ty) => format!("kingpost_of_{}", ty.name()),
            Self::External(function) => format!("kingpost_extern_{}", function.name()),
            Self::Integer(f, ty) => format!("kingpost_{}_{}", integer_name(*f), ty.name()),
            Self::Atomic { op, ty, local } => {
                let space = match (dialect.atomics.spaces, local) {
                    (true, true) => "_local",
                    (true, false) => "_global",
                    (false, _) => "",
                };
                format!("kingpost_atomic_{}_{}{space}", update_name(*op), ty.name())
            }
        }
    }

    /// The definition; `whole` is as [`Helper::is_whole`] has it.
    pub(crate) fn source(&self, dialect: &TargetDescription, whole: bool) -> String {
        match self {
            Self::Declared(f, ty) => {
                let (t, name) = (dialect.ty(*ty), dialect.function(*f, *ty));
                format!("extern {t} {name}(int, {t});\n")
            }
            Self::Pair(ty) => complex::structure(*ty, dialect),
            Self::Complex(op, ty) => op.source(*ty, dialect),
            Self::DoubleSingle(op) => op.source(dialect),
            Self::VectorBytes => bytes_source(),
            Self::Vector(ty, width) => vector_source((*ty, *width), whole, dialect),
            Self::Splat(ty, width) => splat_source(*ty, *width, dialect, &self.name(dialect)),
            Self::List(ty, width) => list_source((*ty, *width), whole, dialect, &self.name(dialect)),
            Self::Shuffle(ty, width) => shuffle_source(*ty, *width, &self.name(dialect)),
            Self::Lanes(f, ty, width, args) => {
                lanes_source(*f, (*ty, *width), *args, dialect, &self.name(dialect))
            }
            Self::Copies(ty) => helper_source(*ty, dialect.ty(*ty)),
            Self::Half(coding, ty) => {
                let bits = dialect.ty(*ty);
                let (to, from) = match coding {
                    Coding::Encode => (bits, "float"),
                    Coding::Decode => ("float", bits),
                };
                let (inline, name) = (dialect.words.inline, self.name(dialect));
                let body = (dialect.words.half)(*coding, *ty);
                format!("{inline} {to} {name}(const {from} x)\n{{\n{body}}}\n")
            }
            Self::External(function) => external_source(*function, dialect, &self.name(dialect)),
            Self::Integer(f, ty) => integer_source(*f, *ty, dialect, &self.name(dialect)),
            Self::Atomic { op, ty, local } if ty.is_complex() => {
                let part = Self::Atomic { op: *op, ty: ty.part(), local: *local }.name(dialect);
                complex::atomic_sum(*ty, *local, &part, (&self.name(dialect), dialect))
            }
            Self::Atomic { op, ty, local } => (dialect.atomics.source)(*op, *ty, *local, &self.name(dialect)),
        }
    }
}

/// The macro of the bytes of a vector.
const VECTOR_BYTES: &str = "KINGPOST_VECTOR_BYTES";

/// What compilers say of the processor they compile for: AVX-512, AVX, the vectors of SVE where
/// their size is fixed, and 16 bytes, which NEON and SSE2 have.
/// With `-ffast-math`, GCC adds up products in trees, which are fewer fused multiply-adds: mass
/// matrices of P2 with two functions take 1.25 times as long (AVX-512, GCC 12, 2026-11-30).
fn bytes_source() -> String {
    format!(
        "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC optimize(\"no-associative-math\")\n#endif\n\
         // a vector of the processor that this is compiled for\n#ifndef {VECTOR_BYTES}\n\
         #if defined(__AVX512F__) || __ARM_FEATURE_SVE_BITS == 512\n#define {VECTOR_BYTES} 64\n\
         #elif defined(__AVX__) || __ARM_FEATURE_SVE_BITS == 256\n#define {VECTOR_BYTES} 32\n\
         #else\n#define {VECTOR_BYTES} 16\n#endif\n#endif\n"
    )
}

/// A type of vectors that lie wherever their elements may lie, and alias them, and how many lanes
/// it has.
fn vector_source((ty, width): (ScalarType, u8), whole: bool, dialect: &TargetDescription) -> String {
    let (t, bytes, element) = (dialect.ty(ty), u64::from(width) * ty.bytes(), ty.bytes());
    let name = dialect.vector(ty, width);
    let size = match whole || bytes <= 16 {
        true => bytes.to_string(),
        false => format!("{VECTOR_BYTES} < {bytes} ? {VECTOR_BYTES} : {bytes}"),
    };
    format!(
        "typedef {t} {name} __attribute__((vector_size({size}), aligned({element}), may_alias));\n\
         enum {{ {name}_lanes = sizeof({name})/sizeof({t}) }};\n"
    )
}

/// `x - 0` is `x`, whatever its sign.
fn splat_source(ty: ScalarType, width: u8, dialect: &TargetDescription, name: &str) -> String {
    let (t, vector) = (dialect.ty(ty), dialect.vector(ty, width));
    format!("static inline {vector} {name}(const {t} x)\n{{\n    return x - ({vector}){{0}};\n}}\n")
}

/// A macro, so that elements after the last lane are not read.
fn list_source(
    (ty, width): (ScalarType, u8),
    whole: bool,
    dialect: &TargetDescription,
    name: &str,
) -> String {
    let params: Vec<String> = (0..width).map(|k| format!("x{k}")).collect();
    let definition = |bytes: u64| {
        let lanes = params[..(bytes / ty.bytes()) as usize].join(", ");
        format!("#define {name}({}) (({}){{{lanes}}})\n", params.join(", "), dialect.vector(ty, width))
    };
    let all = u64::from(width) * ty.bytes();
    if whole || all <= 16 {
        return definition(all);
    }
    let narrower = [32, 16].into_iter().filter(|bytes| *bytes < all);
    let mut text = format!("#if {VECTOR_BYTES} >= {all}\n{}", definition(all));
    for bytes in narrower {
        let condition = if bytes == 16 { "#else".into() } else { format!("#elif {VECTOR_BYTES} == {bytes}") };
        text += &format!("{condition}\n{}", definition(bytes));
    }
    text + "#endif\n"
}

/// GCC has Clang's function from version 12 on, and in all versions its own, whose mask is a vector.
fn shuffle_source(ty: ScalarType, width: u8, name: &str) -> String {
    let (bits, bytes) = (8 * ty.bytes(), u64::from(width) * ty.bytes());
    format!(
        "#if defined(__clang__) || __GNUC__ >= 12\n\
         #define {name}(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n\
         #else\n\
         typedef int{bits}_t {name}_mask __attribute__((vector_size({bytes})));\n\
         #define {name}(a, b, ...) __builtin_shuffle(a, b, ({name}_mask){{__VA_ARGS__}})\n\
         #endif\n"
    )
}

fn lanes_source(
    f: MathFn,
    (ty, width): (ScalarType, u8),
    args: usize,
    dialect: &TargetDescription,
    name: &str,
) -> String {
    let vector = dialect.vector(ty, width);
    let params: Vec<String> = (0..args).map(|k| format!("const {vector} x{k}")).collect();
    let lane: Vec<String> = (0..args).map(|k| format!("x{k}[i]")).collect();
    let (params, lane, function) = (params.join(", "), lane.join(", "), dialect.function(f, ty));
    format!(
        "static inline {vector} {name}({params})\n{{\n    {vector} r;\n    \
         for (int i = 0; i < {vector}_lanes; ++i) {{\n        r[i] = {function}({lane});\n    }}\n    return r;\n}}\n"
    )
}

fn external_source(function: ExternalFn, dialect: &TargetDescription, name: &str) -> String {
    let params = function.params.iter().map(|param| format!("const {} {}", dialect.ty(param.ty), param.name));
    let params = params.collect::<Vec<_>>().join(", ");
    // calls without code for the target are refused before
    let body = function.code_for(dialect.name).unwrap_or("#error no code for this target");
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("{} {} {name}({params})\n{{\n{body}}}\n", dialect.words.inline, dialect.ty(function.result))
}

fn integer_name(f: IntFn) -> &'static str {
    match f {
        IntFn::FloorDiv => "floor_div",
        IntFn::Mod => "mod",
        IntFn::Min => "min",
        IntFn::Max => "max",
    }
}

fn update_name(op: UpdateOp) -> &'static str {
    match op {
        UpdateOp::Add => "add",
        UpdateOp::Mul => "mul",
        UpdateOp::Min => "min",
        UpdateOp::Max => "max",
        UpdateOp::Or => "or",
        UpdateOp::And => "and",
        UpdateOp::Named(operator) => operator.name(),
    }
}

fn integer_source(f: IntFn, ty: ScalarType, dialect: &TargetDescription, name: &str) -> String {
    let t = dialect.ty(ty);
    if ty.is_real() {
        let fmod = dialect.function(MathFn::Fmod, ty);
        return format!(
            "{} {t} {name}(const {t} a, const {t} b)\n{{\n    const {t} r = {fmod}(a, b);\n    \
             return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}}\n",
            dialect.words.inline
        );
    }
    let body = match f {
        IntFn::FloorDiv => "a / b - (a % b != 0 && (a < 0) != (b < 0))",
        IntFn::Mod => "a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0)",
        IntFn::Min if dialect.words.extremes => "min(a, b)",
        IntFn::Max if dialect.words.extremes => "max(a, b)",
        IntFn::Min => "a < b ? a : b",
        IntFn::Max => "a > b ? a : b",
    };
    format!("{} {t} {name}(const {t} a, const {t} b)\n{{\n    return {body};\n}}\n", dialect.words.inline)
}

/// The operand of a plain update: `min` and `max` have no operator in C.
pub(super) fn combined(a: &Atomic) -> Expr {
    let before = Expr::Load(a.place.clone());
    match update_value(a.op, a.ty, before, a.value.clone()) {
        Ok(value) | Err(value) => value,
    }
}

/// The functions that make, hand out and add up copies of arrays of a type.
///
/// A thread zeroes its copy, and adds up its part of all of them: two words an element whatever the
/// number of threads, so that copies of more elements than there are updates do not pay. Beyond 16
/// threads their memory is what counts.
fn helper_source(ty: ScalarType, c: &str) -> String {
    let name = ty.name();
    format!(
        "#ifdef _OPENMP\nextern int omp_get_max_threads(void);\nextern int omp_get_num_threads(void);\n\
         extern int omp_get_thread_num(void);\n#endif\n\n\
         // a copy begins on cache lines of its own\n\
         static inline int64_t kingpost_stride_{name}(const int64_t n)\n{{\n    return (n/16 + 2)*16;\n}}\n\n\
         static inline {c} *kingpost_new_copies_{name}(const int64_t n, const int64_t updates)\n{{\n\
         #ifdef _OPENMP\n    const int64_t threads = omp_get_max_threads();\n    \
         if (1 < threads && threads <= 16 && n <= updates) {{\n        \
         return __builtin_malloc((threads - 1)*kingpost_stride_{name}(n)*(int64_t)sizeof({c}));\n    }}\n\
         #endif\n    (void)n;\n    (void)updates;\n    return 0;\n}}\n\n\
         static inline {c} *kingpost_zeroed_{name}({c} *y, {c} *copies, const int64_t n)\n{{\n\
         #ifdef _OPENMP\n    const int64_t thread = omp_get_thread_num();\n    \
         if (copies && thread > 0) {{\n        \
         {c} *const own = copies + (thread - 1)*kingpost_stride_{name}(n);\n        \
         __builtin_memset(own, 0, n*(int64_t)sizeof({c}));\n        return own;\n    }}\n\
         #endif\n    (void)copies;\n    (void)n;\n    return y;\n}}\n\n\
         static inline int kingpost_is_shared_{name}(const {c} *copies)\n{{\n\
         #ifdef _OPENMP\n    return !copies && omp_get_num_threads() > 1;\n\
         #else\n    (void)copies;\n    return 0;\n#endif\n}}\n\n\
         static inline void kingpost_add_up_{name}({c} *y, const {c} *copies, const int64_t n)\n{{\n\
         #ifdef _OPENMP\n    const int64_t threads = omp_get_num_threads();\n    \
         const int64_t thread = omp_get_thread_num();\n    \
         for (int64_t t = 1; copies && t < threads; ++t) {{\n        \
         for (int64_t i = n*thread/threads; i < n*(thread + 1)/threads; ++i) {{\n            \
         y[i] += copies[(t - 1)*kingpost_stride_{name}(n) + i];\n        }}\n    }}\n\
         #else\n    (void)y;\n    (void)copies;\n    (void)n;\n#endif\n}}\n"
    )
}
