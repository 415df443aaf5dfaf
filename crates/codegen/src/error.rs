//! Why no code was generated.

use crate::target::Target;
use kingpost_ir::{ScalarType, SubGroup};

/// Why no code was generated.
///
/// [`CodegenError::Race`] and [`CodegenError::Internal`] are bugs of this crate; everything else is
/// something the kernel asks for and the target cannot give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // fields are named in the messages
pub enum CodegenError {
    #[error(
        "work-items along {axis}: the extent of `{iname}` is `{extent}`, needed a constant; fix the parameter, assume a bound of it, or split the loop by a constant and tag the inner one"
    )]
    BlockNotConstant { axis: String, iname: String, extent: String },
    #[error(
        "work-groups along {axis}: the extent of `{iname}` is `{found}`, needed an expression of parameters; make the bounds depend on parameters only"
    )]
    GridNotParametric { axis: String, iname: String, found: String },
    #[error(
        "loop `{iname}` on {axis} starts at a value that {found}, needed a parametric one that is not negative; shift the loop"
    )]
    AxisStart { axis: String, iname: String, found: String },
    #[error(
        "`{insn}` updates `{var}` by more than one work-item at once, and its elements are {ty}; {target} has atomic updates of 32 and 64 bits: use a larger type"
    )]
    NarrowAtomic { insn: String, var: String, ty: ScalarType, target: Target },
    #[error(
        "`{insn}` multiplies an element of `{var}` by more than one work-item at once, and {ty} has atomic sums alone: keep the product in one work-item, or multiply in `reduce_in_tree`"
    )]
    ComplexAtomic { insn: String, var: String, ty: ScalarType },
    #[error("`{iname}` has no {bound} bound; give its domain one")]
    Unbounded { iname: String, bound: &'static str },
    #[error(
        "unrolled loop `{iname}` runs {found} times, needed a constant of at most {limit}; fix the parameter, split it, or leave it sequential"
    )]
    UnrollNotConstant { iname: String, found: String, limit: i64 },
    #[error(
        "a barrier stands inside loop `{iname}`, whose bounds may differ among the work-items of a group ({why}); make them depend on parameters and work-groups only"
    )]
    DivergentBarrier { iname: String, why: String },
    #[error(
        "`{var}` is an integer scalar in global memory, which bounds of loops cannot mention; make it local or private"
    )]
    GlobalTemporary { var: String },
    #[error(
        "`{var}` has a swizzle, and nobody passes such an array; give it strides, and swizzle a copy of it"
    )]
    SwizzledArgument { var: String },
    #[error(
        "the bounds of `{iname}` mention `{var}`, which lies behind a pointer; copy it to a temporary before the loop"
    )]
    BoundBehindPointer { iname: String, var: String },
    #[error(
        "the shape of `{var}` is not constant but `{extent}`, which {space} memory has to be; declare it `global`, or fix the parameter or assume a bound of it"
    )]
    ShapeNotConstant { var: String, extent: String, space: &'static str },
    #[error(
        "groups wait for values of earlier ones, which are no pairs of `f32`; leave `double_single` arithmetic or `ordered_groups` out"
    )]
    OrderedPairs,
    #[error("the vector axis of `{var}` holds no vectors: {why}; change its layout")]
    VectorAxis { var: String, why: &'static str },
    #[error(
        "storage `{storage}` is shared by `{first}` and `{second}` of different types or address spaces; alias equal ones only"
    )]
    StorageTypes { storage: String, first: String, second: String },
    #[error(
        "constant tables take {found} bytes, a {target} device has {limit}; move tables to global memory"
    )]
    ConstantMemory { found: u64, limit: u64, target: Target },
    #[error(
        "local arrays take {found} bytes, a {target} kernel can declare {limit}; use smaller tiles or alias their storage"
    )]
    LocalMemory { found: u64, limit: u64, target: Target },
    #[error(
        "private arrays of a work-item take {found} bytes, of which `{array}` takes {bytes}; {target} code may use {limit}: use smaller tiles, alias their storage, or keep `{array}` in global memory"
    )]
    PrivateMemory { array: String, bytes: u64, found: u64, limit: u64, target: Target },
    #[error("a group has {found} work-items, {target} allows {limit}; use smaller tiles")]
    BlockTooLarge { found: u64, limit: u64, target: Target },
    #[error(
        "the domain of `{iname}` depends on `{var}`, which its body writes; copy `{var}` to a temporary before the loop"
    )]
    ChangingDomain { iname: String, var: String },
    #[error(
        "`{callee}` must be run by the work-items along {along} together, and `{condition}` may send them apart; let the loop around it have exact bounds"
    )]
    DivergentIntrinsic { callee: String, along: &'static str, condition: String },
    #[error(
        "`{callee}` must be called by the first work-item of a group alone, and work-items along l.{axis} call it; put the call into no loop on l.{axis}"
    )]
    NotByTheFirst { callee: String, axis: u8 },
    #[error(
        "the work-items of a sub-group hold `{var}`, and l.0 has {found} of them, needed a power of two; split the loops on l.0 so, or make it local"
    )]
    SubGroupSize { var: String, found: i64 },
    #[error(
        "the kernel has sub-groups of {found} work-items, and {target} has sub-groups of {widths}; give it such a \
         width, or print it for {others}"
    )]
    SubGroupWidth { found: SubGroup, target: Target, widths: String, others: String },
    #[error("{0}")]
    Placement(kingpost_analysis::placement::PlacementError),
    #[error(
        "groups wait for values of earlier ones, and nothing promises that a group of {target} goes on meanwhile; \
         print it for {others}, or split the launch there"
    )]
    NoOrderedGroups { target: Target, others: String },
    #[error(
        "the code of `{callee}` mentions `{argument}`, which its meaning does not; remove it from the code"
    )]
    IntrinsicArgument { callee: String, argument: String },
    #[error(
        "the code of `{callee}` names `{element}`, an element of `{var}` that {why}; name elements that the work-item \
         holds itself, or make `{var}` local"
    )]
    IntrinsicElement { callee: String, element: String, var: String, why: &'static str },
    #[error(
        "the code of `{callee}` needs `{need}`, which is no feature of a {target} device; there is {known}"
    )]
    UnknownFeature { callee: String, need: String, target: Target, known: &'static str },
    #[error(
        "the code of `{callee}` holds `{instruction}`, which runs asynchronously, and waits for nothing; say by \
         `completes(\"...\")` which statement does"
    )]
    NeverCompleted { callee: String, instruction: &'static str },
    #[error(
        "`{function}` is no function of {target} devices, needed one of c and cuda; choose such a device, or replace the function by a polynomial"
    )]
    NoFunction { function: &'static str, target: Target },
    #[error(
        "`{function}` has no code for {target}; add `code {target} (\"...\")`, or `code (\"...\")` for all targets"
    )]
    NoExternal { function: &'static str, target: Target },
    #[error(
        "the host runs the launches of `{iname}`, whose values `{domain}` are no range; give it one lower and one upper \
         bound"
    )]
    HostLoop { iname: String, domain: String },
    #[error(
        "the kernel is a sequence of launches, and one of them is asked for; ask for its program instead"
    )]
    SeveralLaunches,
    #[error("{0}")]
    OutOfBounds(Box<kingpost_analysis::inside::Outside>),
    #[error("{0}")]
    Refused(Box<kingpost_analysis::placement::Refusal>),
    #[error("{0}")]
    Storage(Box<kingpost_analysis::placement::StorageError>),
    #[error("{0}")]
    Isl(#[from] kingpost_isl::IslError),
    #[error(
        "bug of kingpost: no barrier separates `{first}` and `{second}`, which clash on `{var}`; please report this kernel:\n{kernel}"
    )]
    Race { first: String, second: String, var: String, kernel: String },
    #[error(
        "bug of kingpost: a call may be under way at the end, which `{completion}` completes; please report this kernel:\n{kernel}"
    )]
    Outstanding { completion: String, kernel: String },
    #[error("bug of kingpost: {what}; please report this kernel:\n{kernel}")]
    Internal { what: String, kernel: String },
}

/// `a, b or c`.
pub(crate) fn or(items: impl IntoIterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
