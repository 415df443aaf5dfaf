//! What a reader of the code would not expect: a tag that changed nothing, work that few
//! work-items do.

use kingpost_ir::AxisTag;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A remark of code generation on the code for a target, which is right all the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Note {
    /// A loop with the tag `vector` that is written without vectors.
    ScalarLoop {
        /// The loop.
        iname: String,
        /// Why.
        why: NoVectors,
    },
    /// A loop with the tag `vector` of which C's compilers are to make vectors.
    LeftToCompiler {
        /// The loop.
        iname: String,
        /// Why the source has none.
        why: NoVectors,
    },
    /// A loop all of whose iterations run at index 0 of an axis.
    OneIndex {
        /// The loop.
        iname: String,
        /// The axis.
        axis: AxisTag,
        /// The instructions in it that do.
        insns: Vec<String>,
    },
    /// Arrays with accesses of which nothing proves that they stay inside.
    Open {
        /// The arrays.
        arrays: Vec<String>,
    },
}

/// Why a loop over lanes is written without vectors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NoVectors {
    /// It starts or ends at something that is no number.
    Ends,
    /// No vector that the target has divides its length.
    Length,
    /// It holds a barrier, a call or lanes of another loop.
    Inside,
    /// Lanes share a private variable, or one keeps its value after the loop.
    Shared {
        /// The variable.
        variable: String,
    },
    /// Lanes find no elements next to each other in memory that vectors are loaded from.
    Apart,
    /// Lanes find elements next to each other, and the first is at no multiple of the smallest vector
    /// for all that is known.
    Unaligned {
        /// The array.
        array: String,
        /// Bytes of which the first lane's address is known to be a multiple.
        known: u64,
        /// Bytes of the smallest vector.
        needed: u64,
    },
}

impl fmt::Display for NoVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends => f.write_str("its ends are no numbers; split it so that it starts at 0"),
            Self::Length => f.write_str("no vector of the target divides its length"),
            Self::Inside => f.write_str("it holds a barrier, a call or other lanes"),
            Self::Shared { variable } => {
                write!(f, "its lanes share `{variable}`, or its value is needed after the loop")
            }
            Self::Apart => f.write_str(
                "its lanes find no elements next to each other in memory that vectors are loaded from",
            ),
            Self::Unaligned { array, known, needed } => write!(
                f,
                "the first lane's element of `{array}` is known to lie at a multiple of {known} bytes, needed {needed}; \
                 give rows a length that says so, or assume it, as in `assume n mod 4 == 0`"
            ),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScalarLoop { iname, why } => {
                write!(f, "`{iname}` is tagged vector and stays scalar: {why}")
            }
            Self::LeftToCompiler { iname, why } => {
                write!(f, "`{iname}` is tagged vector and left to the C compiler: {why}")
            }
            Self::OneIndex { iname, axis, insns } => {
                let who = match axis {
                    AxisTag::Group(_) => "one work-group",
                    AxisTag::Sequential
                    | AxisTag::Unrolled
                    | AxisTag::Rolled
                    | AxisTag::Vector
                    | AxisTag::Launch
                    | AxisTag::Local(_) => "one work-item of a group",
                };
                let insns = quoted(insns);
                write!(
                    f,
                    "`{iname}` runs on {who}, at index 0 of {axis}: {insns}; tag it, or an inner loop that it is \
                     split into, {axis} to share the iterations out"
                )
            }
            Self::Open { arrays } => write!(
                f,
                "nothing proves that accesses to {} stay inside: their indices, bounds or conditions are read from \
                 memory or not affine; `check`, or `kingpost run --check`, looks at the values before a launch",
                quoted(arrays)
            ),
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
