//! Why a kernel could not be run to its end.

use kingpost_ir::DefinitionError;
use kingpost_ir::types::ScalarType;
use kingpost_ir::verify::KernelError;
use std::fmt;

/// Where a run failed: an instance of an instruction, or the entry of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Name of the instruction or iname.
    pub name: String,
    /// Whether it is the entry of a loop.
    pub is_loop: bool,
    /// Loops around, outer first, then those of the reductions that were under way.
    pub point: Vec<(String, i64)>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point: Vec<_> = self.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let point = if point.is_empty() { String::new() } else { format!("[{}]", point.join(", ")) };
        match self.is_loop {
            true => write!(f, "for {}{point}", self.name),
            false => write!(f, "{}{point}", self.name),
        }
    }
}

/// Why a kernel could not be run to its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum InterpError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error("{kind} `{name}` is missing; give it a value")]
    Missing { kind: &'static str, name: String },
    #[error("`{name}` holds elements of type {found}, needed {needed}")]
    WrongType { name: String, needed: ScalarType, found: ScalarType },
    #[error("`{name}` has {found} elements, needed {needed} for its shape {shape}")]
    WrongLength { name: String, needed: usize, found: usize, shape: String },
    #[error("parameter `{name}` is {value}, which {needed} cannot hold")]
    ParamRange { name: String, value: i64, needed: ScalarType },
    #[error("`{name}` has extent {extent} along axis {axis}; needed a number of elements that fits memory")]
    Extent { name: String, axis: usize, extent: String },
    #[error("`{name}` has {elements} elements, a run makes at most {limit}; run a smaller size")]
    TooLarge { name: String, elements: usize, limit: usize },
    #[error("the parameters break `{assumption}`; choose others")]
    Assumption { assumption: String },
    #[error(
        "`{first}` = `{second}` = {value}, needed an injective `{name}`; correct it, or make the updates through it \
         atomic instead of assuming that"
    )]
    NotInjective { name: String, first: String, second: String, value: i64 },
    #[error(
        "`{name}[{at}]` = {second} after {first}, needed entries that ascend, as `ascending({name})` says; correct \
         it, or make the updates by its ranges atomic instead of assuming that"
    )]
    NotAscending { name: String, at: usize, first: i64, second: i64 },
    #[error(
        "`{element}` = {found}, needed {needed}, as `{assumption}` says; correct it, or make the updates atomic \
         instead of assuming that"
    )]
    NotOutside { assumption: String, element: String, found: String, needed: String },
    #[error(
        "`{first}` = {found}, needed {needed}, as `{assumption}` says of `{image}`; make the entries equal to the \
         last bit, or drop the assumption and the steps that rely on it"
    )]
    NotSymmetric { assumption: String, first: String, found: String, needed: String, image: String },
    #[error(
        "`{element}` = {found}, needed {needed}, as `{assumption}` says; build the lists from this map, or drop the \
         assumption and the steps that rely on it"
    )]
    NotListed { assumption: String, element: String, found: i64, needed: String },
    #[error("`{at}` reads `{element}`, which nothing has written; write it before")]
    Undefined { at: Site, element: String },
    #[error("`{at}` accesses `{element}`{through}, needed an index inside shape {shape}")]
    OutOfBounds { at: Site, element: String, through: Box<str>, shape: Box<str> },
    #[error("`{at}`: {what} does not fit {needed}")]
    Overflow { at: Site, what: String, needed: String },
    #[error("`{at}`: `{op}` by zero")]
    DivisionByZero { at: Site, op: &'static str },
    #[error("`{at}`: `{iname}` has no {missing} bound; add a constraint that is linear in it")]
    Unbounded { at: Site, iname: String, missing: &'static str },
    #[error(
        "`{at}` calls `{function}`, of which only the code is known; write what it computes, as in `:= x*x`"
    )]
    NoMeaning { at: Site, function: &'static str },
    #[error("`{at}`: more than {limit} steps; raise the limit or run a smaller size")]
    StepLimit { at: Site, limit: u64 },
    #[error(
        "`{at}`: to follow the accesses that values decide takes more than {limit} steps; check a smaller size, bound \
         the entries of the maps, or launch without the check"
    )]
    CheckLimit { at: Site, limit: u64 },
}
