//! What a target has, and how it writes it: one type.

use crate::ast::{Coding, Fence};
use crate::function::Function;
use kingpost_ir::{MathFn, ScalarType, SubGroup, UpdateOp};
use serde::{Deserialize, Serialize};

/// Writes the enum of targets.
macro_rules! targets {
    ($($(#[$doc:meta])* $target:ident,)*) => {
        /// A language the printers write.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Target {
            $($(#[$doc])* $target,)*
        }

        impl Target {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$target),*];
        }
    };
}

targets! {
    /// CUDA C++ for NVRTC.
    Cuda,
    /// HIP C++ for AMD's processors whose wavefronts have 64 work-items.
    Hip,
    /// OpenCL C 1.2 with the fp64 and int64-atomics extensions.
    OpenCl,
    /// C99 with OpenMP.
    C,
}

/// A feature of a device that a program may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Feature {
    /// Double precision.
    Fp64,
    /// 64-bit integer atomics (for compare-and-swap on doubles).
    Int64Atomics,
    /// At least this compute capability of CUDA, times ten (80 for `sm_80`).
    ComputeCapability(u32),
    /// This compute capability of CUDA alone, with what only it has (90 for `sm_90a`).
    OneComputeCapability(u32),
    /// A processor of AMD's ninth generation, at least the one of these digits (`0x90a` for `gfx90a`).
    Gfx9(u32),
}

/// What a target has, and how it writes it.
#[derive(Clone, Copy, Debug)]
pub struct TargetDescription {
    /// Whose description it is, for launch plans and messages.
    pub target: Target,
    /// Its name, as options, messages and the code of callees have it.
    pub name: &'static str,
    /// What it is, for help texts.
    pub summary: &'static str,
    /// What the names of files with its source end in.
    pub extension: &'static str,
    /// Who runs work-items and groups.
    pub execution: Execution,
    /// Sub-groups, and how their work-items read each other's registers.
    pub sub_groups: SubGroups,
    /// How much there is of what.
    pub limits: Limits,
    /// How memory serves the work-items of a sub-group.
    pub banks: Banks,
    /// How a compiler is told whether it may compute `a*b + c` with one rounding.
    pub contraction: Contraction,
    /// Vectors of neighbouring elements.
    pub vectors: Vectors,
    /// Indivisible updates.
    pub atomics: Atomics,
    /// How groups wait for values of earlier ones; none where nothing promises that a group that has started goes
    /// on while others wait.
    pub awaits: Option<Awaits>,
    /// Functions of POSIX that C99 does not have, such as those of Bessel.
    pub posix: Posix,
    /// Instructions in the code of callees that run asynchronously.
    pub completions: &'static [Completion],
    /// The feature of a name that the code of a callee needs.
    pub feature: fn(&str) -> Option<Feature>,
    /// The names of such features, for messages.
    pub features: &'static str,
    /// Whether compilers cut the code at barriers, so that a loop with barriers needs one before it
    /// and one at the head of its body, and no condition of the group around it.
    pub cuts_at_barriers: bool,
    /// How it says things.
    pub(crate) words: Words,
}

/// Who runs work-items and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// A device, side by side.
    Device,
    /// Threads of a host: a group each, whose work-items they run in loops.
    Host,
}

/// How the work-items of a sub-group work together.
#[derive(Clone, Copy, Debug)]
pub enum SubGroups {
    /// The hardware has them in these widths, with barriers of their own.
    Hardware {
        /// Work-items.
        widths: &'static [u32],
        /// The statement by which each work-item reads what another one holds, with words `$name`: `to` gets
        /// the value; `mask` are the lanes that take part, as bits; `value` is what each of them holds, and
        /// `lane` the one that is read; `width` is how many neighbours read from each other.
        shuffle: &'static str,
    },
    /// In any width: what they hold lies in local memory, and their barriers are those of the group.
    InLocalMemory,
}

/// How much of a thing a kernel may use; none where the device has to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Work-items of a group.
    pub work_items: Option<u64>,
    /// Bytes of constant tables.
    pub constant: Option<u64>,
    /// Bytes of local memory of a group.
    pub local: Option<u64>,
    /// The part of them that a source may declare; the launch provides what is beyond.
    pub declared_local: Option<u64>,
    /// Bytes of private arrays of a work-item, or of a thread of a host.
    pub private: u64,
    /// The part of them that may lie on the stack; what is beyond is kept elsewhere.
    pub stack: Option<u64>,
}

/// How memory serves the work-items of a sub-group, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banks {
    /// Banks of local memory.
    pub count: usize,
    /// A word of a bank.
    pub word: i64,
    /// What is moved at once to and from global memory.
    pub sector: i64,
}

/// How a compiler is told whether it may compute `a*b + c` with one rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// An option of the compiler: if it may, and if it may not.
    pub options: Option<[&'static str; 2]>,
    /// What the source says if it may not.
    pub forbidden: &'static str,
}

/// What a target has of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// Types with operators, loaded and stored from any element on.
    Operators,
    /// Types that are loaded and stored from multiples of their size on, up to a maximum of bytes.
    Accesses {
        /// Bytes of the widest.
        widest: u64,
    },
    /// Types of GCC and Clang.
    OfCompilers,
}

/// Indivisible updates.
#[derive(Clone, Copy, Debug)]
pub struct Atomics {
    /// Functions of the language.
    pub native: &'static [(UpdateOp, ScalarType, &'static str)],
    /// Whether functions tell the address spaces of their arguments apart.
    pub spaces: bool,
    /// What those of 64 bits need of a device.
    pub wide: Option<Feature>,
    /// The source of others: operation, type, whether in local memory, name.
    pub(crate) source: fn(UpdateOp, ScalarType, bool, &str) -> String,
}

/// How groups of a launch take numbers in the order in which they start, and wait for values of those before.
///
/// Code with words `$name`: `counter` is the address of the numbers that were taken; `turn` two words that a
/// group shares, its number and that of the launch in the upper half; `launch` the latter; `address` the first
/// word of an element; `first` and `second` its words; `low` and `high` free names.
#[derive(Clone, Copy, Debug)]
pub struct Awaits {
    /// What a device needs.
    pub needs: Feature,
    /// Writes `turn`, for all work-items of a group.
    pub(crate) start: &'static str,
    /// Writes the one word of an element, or its two.
    pub(crate) store: [&'static str; 2],
    /// Reads one to `low`, or two to `low` and `high`.
    pub(crate) load: [&'static str; 2],
}

impl Awaits {
    /// Writes `value` to an element of a type, and waits for one and assigns it to `to`.
    pub(crate) fn element(&self, ty: ScalarType) -> Option<[String; 2]> {
        let (word, from, to) = bits(ty)?;
        let value = if ty.is_real() { "($value)" } else { "$value" };
        let (bits, low) = match ty.bytes() {
            8 => (format!("{to}{value}"), "$low".to_owned()),
            _ => (format!("(unsigned long long){to}{value}"), format!("({word})$low")),
        };
        let value = from.replace("seen", &low);
        Some(match (ty.bytes() > 4, self.store, self.load) {
            (false, [store, _], [load, _]) => [
                store.replace("$first", &format!("$launch | {bits}")),
                format!(
                    "{{\n    unsigned long long $low;\n    do {{\n        {load}\n    }} while (($low ^ $launch) >> 32 != 0);\n    \
                     $to = {value};\n}}"
                ),
            ],
            (true, [_, store], [_, load]) => [
                format!(
                    "{{\n    const unsigned long long $low = {bits};\n    {}\n}}",
                    store
                        .replace("$first", "$launch | ($low & 0xffffffffull)")
                        .replace("$second", "$launch | $low >> 32")
                ),
                format!(
                    "{{\n    unsigned long long $low, $high;\n    do {{\n        {load}\n    }} while ((($low ^ $launch) | \
                     ($high ^ $launch)) >> 32 != 0);\n    $low = ($low & 0xffffffffull) | $high << 32;\n    $to = {value};\n}}"
                ),
            ],
        })
    }
}

/// Whether there are the functions of POSIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posix {
    /// None.
    Missing,
    /// All.
    Known,
    /// All, once the source has declared them.
    Declared,
}

/// An instruction that runs asynchronously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// How it begins.
    pub instruction: &'static str,
    /// How instructions begin that wait for it.
    pub waits: &'static [&'static str],
    /// How instructions begin that begin so, too, and have no result, so that nothing waits for them.
    pub hints: &'static [&'static str],
}

/// How a target says things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) ty: fn(ScalarType) -> &'static str,
    /// A vector of elements.
    pub(crate) vector: fn(ScalarType, u8) -> String,
    /// A lane of a vector.
    pub(crate) lane: fn(u8) -> String,
    /// That an array starts at a multiple of some bytes.
    pub(crate) aligned: fn(u64) -> String,
    /// Around the parts of a complex number of a type among the first values of a table.
    pub(crate) pair: fn(&str) -> [String; 2],
    /// After a literal of 64 bits, with a sign and without.
    pub(crate) long_suffix: [&'static str; 2],
    /// After the name of a function of single precision.
    pub(crate) single_suffix: &'static str,
    /// Functions of the sum, difference and product of `f32` that are rounded even where `a*b + c`
    /// may be one operation; none where a compiler has to be told.
    pub(crate) rounded: Option<[&'static str; 3]>,
    /// Statements that return the pair of an `f64` `x`, and the `f64` of an `f32` `x`, by
    /// operations on integers where that can be; none where conversions are no slower.
    pub(crate) conversions: Option<[&'static str; 2]>,
    /// Before everything; whether there are doubles, and atomic updates of 64 bits.
    pub(crate) preamble: fn(bool, bool) -> String,
    /// The function up to its parameters.
    pub(crate) head: fn(&Function) -> String,
    /// Address spaces, before a type.
    pub(crate) global: &'static str,
    pub(crate) local: &'static str,
    pub(crate) constant: &'static str,
    pub(crate) restrict: &'static str,
    /// Whether its compiler takes `restrict` for a promise that nothing is written where it reads.
    pub(crate) reads_once: bool,
    /// How an assembler's statement names registers of a type, where there are such statements.
    pub(crate) register_class: Option<fn(ScalarType) -> &'static str>,
    /// The parameter that is the map of a tensor, and the declaration of its type.
    pub(crate) map: [&'static str; 2],
    /// Before a function of the source.
    pub(crate) inline: &'static str,
    /// A barrier of a group, or of a sub-group where the hardware has them.
    pub(crate) barrier: fn(&Fence) -> &'static str,
    /// The index of a group (or work-item) along an axis.
    pub(crate) hardware: fn(bool, u8) -> String,
    /// Not-a-number in single and double precision.
    pub(crate) nan: [&'static str; 2],
    pub(crate) infinity: [&'static str; 2],
    /// The body of a function of `x` to or from a number of 16 bits.
    pub(crate) half: fn(Coding, ScalarType) -> &'static str,
    /// A function that tells the compiler what holds.
    pub(crate) assume: Option<&'static str>,
    /// What keeps a loop rolled.
    pub(crate) rolled: Option<&'static str>,
    /// Whether `min` and `max` of integers are functions of the language.
    pub(crate) extremes: bool,
}

impl TargetDescription {
    /// Whether a program runs on the threads of the host, and its entry point runs all its launches.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.execution == Execution::Host
    }

    /// The widths of sub-groups that it has; none if it has any.
    #[must_use]
    pub fn widths(&self) -> Option<&'static [u32]> {
        match self.sub_groups {
            SubGroups::Hardware { widths, .. } => Some(widths),
            SubGroups::InLocalMemory => None,
        }
    }

    /// Whether it has sub-groups of a width.
    #[must_use]
    pub fn has_width(&self, width: SubGroup) -> bool {
        self.widths().is_none_or(|widths| widths.contains(&width.width()))
    }

    /// Whether its hardware runs sub-groups of a width, so that they have barriers of their own.
    pub(crate) fn runs_sub_groups(&self, width: SubGroup) -> bool {
        self.widths().is_some() && self.has_width(width)
    }
}

/// The unsigned integer with the bits of a type of 32 or 64 in CUDA and HIP, how one, `seen`, becomes a value, and
/// what is written before a value in parentheses to make it one.
pub(crate) fn bits(of: ScalarType) -> Option<(&'static str, &'static str, &'static str)> {
    let [word, wide] = ["unsigned int", "unsigned long long"];
    Some(match of {
        ScalarType::F64 => {
            (wide, "__longlong_as_double((long long)seen)", "(unsigned long long)__double_as_longlong")
        }
        ScalarType::F32 => (word, "__uint_as_float(seen)", "__float_as_uint"),
        ScalarType::U32 => (word, "seen", ""),
        ScalarType::U64 => (wide, "seen", ""),
        ScalarType::I32 => (word, "(int)seen", "(unsigned int)"),
        ScalarType::I64 => (wide, "(long long)seen", "(unsigned long long)"),
        ScalarType::I8
        | ScalarType::U8
        | ScalarType::I16
        | ScalarType::U16
        | ScalarType::Bool
        | ScalarType::F16
        | ScalarType::Bf16
        | ScalarType::C64
        | ScalarType::C128
        | ScalarType::Record(_) => return None,
    })
}

/// `a op b` in the source of a helper.
pub(crate) fn combine(op: UpdateOp, ty: ScalarType, dialect: &TargetDescription, a: &str, b: &str) -> String {
    match (op, ty.is_real()) {
        (UpdateOp::Add, _) => format!("{a} + {b}"),
        // no record is updated atomically
        (UpdateOp::Named(operator), _) => format!("{operator}({a}, {b})"),
        (UpdateOp::Mul, _) => format!("{a} * {b}"),
        (UpdateOp::Or, _) => format!("{a} || {b}"),
        (UpdateOp::And, _) => format!("{a} && {b}"),
        (UpdateOp::Min, true) => format!("{}({a}, {b})", dialect.function(MathFn::Fmin, ty)),
        (UpdateOp::Max, true) => format!("{}({a}, {b})", dialect.function(MathFn::Fmax, ty)),
        (UpdateOp::Min, false) => format!("({a} < {b} ? {a} : {b})"),
        (UpdateOp::Max, false) => format!("({a} > {b} ? {a} : {b})"),
    }
}
