//! What a host needs to launch a generated program: arguments, grid, block, memory, features.

use crate::notes::Note;
pub use crate::target::Feature;
use crate::target::Target;
pub use kingpost_ir::{HostExpr, HostExprError};
use kingpost_ir::{ScalarType, TableData};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A generated program: source text and how to launch it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    /// Language of the source.
    pub target: Target,
    /// Name of the entry point in the source.
    pub entry: String,
    /// The source, deterministic to the byte.
    pub source: String,
    /// How to launch it.
    pub plan: LaunchPlan,
    /// Whether it may be compiled with `a*b + c` rounded once
    /// ([`Options::contraction`](crate::Options)).
    pub contraction: bool,
    /// Whether a loop may write one element of an array again and again. GCC 12 is wrong about some
    /// such loops (`-fpredictive-commoning`), and programs without any run faster with that.
    #[serde(default = "unknown")]
    pub repeated_writes: bool,
    /// Callees that Kingpost does not ship, of which the source may hold code, where nobody has allowed
    /// that to run ([`Options::trust`](crate::Options)): devices refuse the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
    /// The launches, where the kernel is a sequence of them. In C the entry point runs all of them;
    /// elsewhere there is no function of its name, and whoever runs the program launches these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<Sequence>,
}

/// Launches in order, with the loops of the host around them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sequence {
    /// The functions that are launched.
    pub entries: Vec<Entry>,
    /// When.
    pub steps: Vec<HostStep>,
}

/// A function of a program of several launches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the source.
    pub name: String,
    /// How to launch it: its arguments are those of the whole program, then as parameters the values of the
    /// host's loops around it that it uses.
    pub plan: LaunchPlan,
}

/// What the host does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HostStep {
    /// Launches the entry of this number.
    Launch(usize),
    /// Repeats steps for the values of a parameter of the entries.
    For {
        /// The parameter.
        name: String,
        /// Its first value.
        lower: HostExpr,
        /// The value after its last one.
        upper: HostExpr,
        /// What is repeated.
        body: Vec<HostStep>,
    },
}

/// Called with the number of an entry, and with all values that it depends on.
type Visit<'v, E> = dyn FnMut(usize, &BTreeMap<String, i64>) -> Result<(), E> + 'v;

impl Sequence {
    /// Visits every launch in order, with the parameters of the program and the values of the host's
    /// loops.
    ///
    /// # Errors
    /// What `visit` refuses; what `no_value` makes of a bound of a loop that has none.
    pub fn visit<E>(
        &self,
        params: &BTreeMap<String, i64>,
        no_value: &dyn Fn(HostExprError) -> E,
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        walk(&self.steps, &mut params.clone(), no_value, visit)
    }
}

fn walk<E>(
    steps: &[HostStep],
    params: &mut BTreeMap<String, i64>,
    no_value: &dyn Fn(HostExprError) -> E,
    visit: &mut Visit<'_, E>,
) -> Result<(), E> {
    for step in steps {
        match step {
            HostStep::Launch(entry) => visit(*entry, params)?,
            HostStep::For { name, lower, upper, body } => {
                let end = |e: &HostExpr, params: &_| e.eval(params).map_err(no_value);
                for value in end(lower, params)?..end(upper, params)? {
                    params.insert(name.clone(), value);
                    walk(body, params, no_value, visit)?;
                }
                params.remove(name);
            }
        }
    }
    Ok(())
}

/// A program of before may hold such loops.
fn unknown() -> bool {
    true
}

impl Program {
    /// What the compiler of the target has to be told so that `a*b + c` is rounded once, or twice;
    /// none where the source says it.
    #[must_use]
    pub fn contraction_option(&self) -> Option<&'static str> {
        let [once, twice] = self.target.description().contraction.options?;
        Some(if self.contraction { once } else { twice })
    }
}

/// How to launch a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Arguments in the order of the entry point's signature.
    pub args: Vec<ArgSpec>,
    /// Maps of tensors, which follow the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<TensorMap>,
    /// Work-groups along g.0, g.1, g.2, as expressions of the parameters; 0 means nothing to do.
    pub grid: [HostExpr; 3],
    /// Work-items of a group along l.0, l.1, l.2.
    pub block: [u64; 3],
    /// Local memory of one work-group, in bytes.
    pub local_bytes: u64,
    /// The part of them that the launch has to provide because the source does not declare their
    /// number: what is beyond
    /// [`Limits::declared_local`](crate::target::Limits::declared_local).
    #[serde(default)]
    pub dynamic_local_bytes: u64,
    /// Private arrays of one work-item, in bytes; none for C, whose code has them where there is
    /// room.
    #[serde(default)]
    pub private_bytes: u64,
    /// What the device must offer.
    pub features: Vec<Feature>,
    /// Conditions on the parameters that the code relies on; a launch that breaks one is refused.
    pub preconditions: Vec<Precondition>,
    /// Parameters that the caller need not give, each computed from parameters and those before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defined: Vec<Defined>,
    /// What a reader of the code would not expect: loops that stay scalar, or run on one work-item.
    #[serde(default)]
    pub notes: Vec<Note>,
}

impl LaunchPlan {
    /// Bytes of device memory that a launch takes: buffers, tables and scratch.
    ///
    /// # Errors
    /// A length without a value, negative, or beyond 64 bits.
    pub fn bytes(&self, params: &BTreeMap<String, i64>) -> Result<u64, HostExprError> {
        self.args.iter().try_fold(0_u64, |sum, spec| {
            let values: Vec<_> = params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let overflow = || HostExprError::Overflow {
                expression: format!("bytes of `{}`", spec.name),
                params: values.join(", "),
            };
            let len = match &spec.kind {
                ArgKind::Param | ArgKind::Scalar => return Ok(sum),
                ArgKind::Table(data) => data.len() as u64,
                ArgKind::Buffer { len, .. } | ArgKind::Scratch { len, .. } => {
                    u64::try_from(len.eval(params)?)
                        .map_err(|_| HostExprError::Negative(spec.name.clone()))?
                }
            };
            let bytes = len.checked_mul(spec.ty.bytes()).ok_or_else(overflow)?;
            sum.checked_add(bytes).ok_or_else(overflow)
        })
    }
}

/// The map of a tensor, which the host makes before a launch: for copies of boxes of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorMap {
    /// Its name in the source.
    pub name: String,
    /// The argument that is the array.
    pub array: String,
    /// Type of an element.
    pub ty: ScalarType,
    /// Elements along each axis.
    pub extents: Vec<HostExpr>,
    /// Elements from one index to the next along each axis, the last of which is 1.
    pub strides: Vec<HostExpr>,
    /// Elements of a box along each axis.
    pub sides: Vec<u64>,
    /// Whether its rows of 128 bytes are swizzled where they are copied to.
    pub is_swizzled: bool,
}

/// A condition `value >= 0` on the parameters, checked before a launch; that the value fits 64 bits
/// is part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Precondition {
    /// Must not be negative.
    pub value: HostExpr,
    /// The condition as the user wrote it, for the error.
    pub text: String,
    /// The array whose strides it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
}

/// A parameter that is computed before a launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Defined {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: HostExpr,
}

/// One argument of the entry point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArgSpec {
    /// Name in the source and in the kernel.
    pub name: String,
    /// Type of the value or of one element.
    pub ty: ScalarType,
    /// How it is passed.
    pub kind: ArgKind,
    /// What the address of an array must be a multiple of, in bytes: the size of an element, or of the
    /// widest vector that the code loads or stores there.
    pub aligned: u64,
}

/// How an argument is passed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ArgKind {
    /// An integer parameter, by value; grid and shapes depend on it.
    Param,
    /// A scalar, by value.
    Scalar,
    /// An array given by the caller, row-major unless its strides say otherwise.
    Buffer {
        /// Elements to allocate.
        len: HostExpr,
        /// Whether the program reads it, writes it or both.
        access: BufferAccess,
    },
    /// A constant table: the runtime uploads it once and passes it as a read-only buffer.
    Table(TableData),
    /// A temporary in global memory: the runtime allocates it for the launch; its first values are
    /// undefined, or zero.
    Scratch {
        /// Elements to allocate.
        len: HostExpr,
        /// Whether they are zero before the first launch, which leaves what the next one needs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        zeroed: bool,
    },
}

/// Direction of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BufferAccess {
    /// Only read.
    In,
    /// Only written.
    Out,
    /// Read and written, or updated.
    InOut,
}
