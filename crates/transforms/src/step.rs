//! The steps of a recipe: one variant a primitive.

use crate::primitives::{
    AliasStorage, AssignToRule, Assume, BufferWrites, ChangeLayout, ContractArray, ConvertToUpdate,
    DeclareCallee, DistributeLoop, DuplicateIname, EliminateCommonSubexpressions, EmbedTable, ExpandArray,
    ExpandRule, ExtractRule, FactorUpdate, FixArgument, FixParameter, FuseLoops, HoistInsn, InlineCall,
    InterchangeInames, JoinArrayAxes, JoinArrays, JoinInames, MakeAtomic, MapInames, MoveInsns, OutlineInsns,
    PackArrays, PadArray, ParalleliseScan, PassTable, PeelIname, PipelineLoop, PrecomputeRule, PrefetchArray,
    RealiseReduction, RealiseScan, ReduceInTree, RemoveUnusedVars, Rename, ReplaceWithIntrinsic,
    ReverseIname, RollInsns, SeparateArray, SetAddressSpace, ShiftIname, SinkAccumulation, SkewIname,
    SplitArrayAxis, SplitIname, StageValue, TagIname, TagInames, Transform, TransposeArrayAxes, UnrollIname,
    VectoriseIname,
};
use crate::refusal::{Refusal, TransformError};
use crate::schedule::{Arguments, Made, fields_of};
use purlin_analysis::Analysis;
use purlin_ir::Kernel;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! steps {
    ($($variant:ident: $summary:literal, $precondition:literal;)*) => {
        /// One step of a recipe.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Step {
            $(#[doc = $summary] $variant($variant)),*
        }

        impl Step {
            fn transform(&self) -> &dyn Transform {
                match self { $(Self::$variant(t) => t),* }
            }
        }

        $(impl From<$variant> for Step {
            fn from(t: $variant) -> Self { Self::$variant(t) }
        })*

        /// The arguments of the step of this name, in the order of their declaration.
        pub(crate) fn argument_names(step: &str) -> Option<Arguments> {
            $(if PrimitiveInfo::step_name_of(stringify!($variant)) == step {
                return Some(fields_of::<$variant>());
            })*
            None
        }

        /// The table of primitives, in alphabetical order.
        pub fn primitives() -> &'static [PrimitiveInfo] {
            &[$(PrimitiveInfo { name: stringify!($variant), summary: $summary, precondition: $precondition }),*]
        }
    };
}

/// A row of the table of primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimitiveInfo {
    /// Name of the arguments' type; the file and the variant of [`Step`] are the same in snake case.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// What it proves.
    pub precondition: &'static str,
}

impl PrimitiveInfo {
    /// The name in recipes.
    pub fn step_name(&self) -> String {
        Self::step_name_of(self.name)
    }

    fn step_name_of(name: &str) -> String {
        let mut snake = String::new();
        for c in name.chars() {
            if c.is_ascii_uppercase() && !snake.is_empty() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        snake
    }
}

steps! {
    AliasStorage: "Lets temporaries share one buffer.",
        "while a value of one is alive, no other is written";
    AssignToRule: "Replaces a temporary by its definition as a substitution rule.",
        "one definition; nothing writes its operands before a use";
    Assume: "Asserts a bound on a parameter, or that an array is injective.",
        "the assumptions together have a solution; checked at launch";
    BufferWrites: "Writes to a temporary instead of an array, and stores it once.",
        "nobody reads a buffered element through a map; the box has constant extents; what is read is defined";
    ChangeLayout: "Gives an array other strides or an axis of vectors.",
        "different elements stay in different places; vectors start at multiples of their length";
    ContractArray: "Drops an axis of a temporary of which one element is alive at a time.",
        "every read has the index along the axis that the last write of the rest had";
    ConvertToUpdate: "Makes an accumulation an update.",
        "the rest of the sum does not read the element; equal up to reassociation";
    DeclareCallee: "Declares a kernel that parts of the program may become calls of.",
        "nothing calls it yet";
    DistributeLoop: "Distributes a loop over the parts of its body.",
        "no dependence runs from a later part to an earlier one; the bounds stay";
    DuplicateIname: "Gives some instructions of a loop a loop of their own.",
        "no dependence runs from what comes later to what comes earlier; the bounds stay";
    EliminateCommonSubexpressions: "Computes equal subexpressions once.",
        "nothing writes an operand in between; one of them is surely evaluated";
    EmbedTable: "Replaces loads of a table at constant indices by their values.",
        "the index is a constant inside the table";
    ExpandArray: "Gives a temporary an axis for each of some loops.",
        "no value goes from one iteration of the loops to another";
    ExpandRule: "Inlines a substitution rule.",
        "reductions among the arguments stay one loop";
    ExtractRule: "Makes a substitution rule of a subexpression.",
        "every use expands to what stood there";
    FactorUpdate: "Accumulates into partial values that are joined behind the loop.",
        "nobody sees the element between a term and the sum; equal up to reassociation";
    FixArgument: "Makes a table or a literal of an input whose values are known.",
        "an input of constant shape; the values fit it and what is assumed of it";
    FixParameter: "Replaces a parameter by a constant.",
        "the value fits the type and the assumptions";
    FuseLoops: "Fuses two neighbouring loops over the same values up to a shift.",
        "no dependence runs to an iteration that would come earlier; the bounds stay";
    HoistInsn: "Moves an instruction in front of a loop that it does not depend on.",
        "the same value in every iteration; nobody inside needs or writes another one";
    InlineCall: "Makes calls ordinary statements again.",
        "that is what a call means";
    InterchangeInames: "Swaps two loops of which one is directly around the other.",
        "no dependence has direction (<, >); the bounds stay";
    JoinArrayAxes: "Joins two neighbouring axes of a temporary.",
        "the extent of the second one is constant";
    JoinArrays: "Makes one array with an axis of components of several temporaries.",
        "equal types, shapes and address spaces; different elements stay different";
    JoinInames: "Joins two loops of a perfect nest into one.",
        "constant inner length >= 1; the order of the instances stays";
    MakeAtomic: "Makes updates indivisible.",
        "the instructions are updates of global or local variables";
    MapInames: "Replaces the loops of a perfect nest by an affine map of them.",
        "the map is unimodular; no dependence is turned around";
    MoveInsns: "Moves statements within their body.",
        "no dependence is turned around";
    PackArrays: "Puts temporaries side by side into one.",
        "equal types and address spaces; constant shapes; different elements stay different";
    OutlineInsns: "Makes a callee of statements, and a call of it where they stand.",
        "with its arguments put in, the callee has the same instances and accesses";
    PadArray: "Leaves room between the rows of an array.",
        "padding >= 1; strides stay multiples of rows";
    ParalleliseScan: "Scans the sums of the iterations of a loop with a running total over the work-items.",
        "the terms are known before the loop; equal up to reassociation";
    PassTable: "Lets the caller pass the values of a table.",
        "nothing to prove: the values are those of the table";
    PeelIname: "Runs the first or last iterations of a loop in a loop of their own.",
        "count >= 1; the bounds and the order of the instances stay";
    PipelineLoop: "Fills temporaries for later iterations of a loop while earlier ones use theirs.",
        "no value leaves its iteration; what is fetched depends on no iteration that then runs later";
    PrecomputeRule: "Stores what a region uses of a rule in a temporary.",
        "nothing writes an operand between the computation and a use; what is computed besides is safe to read";
    PrefetchArray: "Copies what a region reads of an array to a temporary.",
        "nothing writes between the copy and a read; the box around the reads has constant extents";
    RealiseReduction: "Turns a reduction into a loop.",
        "evaluated whenever the instruction runs; the same order";
    RealiseScan: "Turns a sum over the earlier iterations, or a recurrence, into a running total.",
        "the range grows by one; no term changes after it is read";
    ReduceInTree: "Joins the terms of an update pairwise, in logarithmically many steps.",
        "one element, which the terms do not read; equal up to reassociation";
    RemoveUnusedVars: "Drops the temporaries and tables that nothing mentions.",
        "there is one that nothing mentions";
    Rename: "Gives a loop, an instruction, a temporary or a rule another name.",
        "the name is free";
    ReplaceWithIntrinsic: "Makes statements a call of a kernel whose meaning they are.",
        "with the windows that unification finds, the callee has the same instances and accesses";
    ReverseIname: "Runs a loop backward.",
        "the loop carries no dependence";
    RollInsns: "Makes a loop of statements that repeat each other.",
        "there is one statement that each of them is at its place in the loop";
    SeparateArray: "Makes one array of each index along an axis of a temporary.",
        "every index along the axis is a constant";
    SetAddressSpace: "Moves a temporary or a table to other memory.",
        "no value flows to a place that cannot see it";
    ShiftIname: "Lets a loop count from elsewhere.",
        "the order of the instances stays; the placement holds";
    SinkAccumulation: "Zeroes and commits an accumulator in every iteration of a loop instead of around it.",
        "starts neutral, only updated inside, committed by the same update; nothing between depends on the commit";
    SkewIname: "Adds a multiple of an outer loop to the values of an inner one.",
        "the outer loop is around; the order of the instances stays; the placement holds";
    SplitArrayAxis: "Splits an axis of a temporary into blocks of constant length.",
        "factor >= 1; different elements stay different";
    SplitIname: "Splits a loop into blocks of constant length.",
        "factor >= 1; the bounds and the order of the instances stay; without remainder: the factor divides the length";
    StageValue: "Computes the value of an instruction into a temporary first.",
        "the value has the type of what is written";
    TagIname: "Says where the iterations of a loop run.",
        "every dependence across places commutes, or can be ordered by a barrier";
    TagInames: "Says where the iterations of several loops run, in one step.",
        "that of tag_iname or unroll_iname, with all tags";
    TransposeArrayAxes: "Changes the order of the axes of an array in memory.",
        "the order is a permutation";
    UnrollIname: "Writes out the iterations of a loop.",
        "the trip count is a constant";
    VectoriseIname: "Runs the iterations of an innermost loop in vector lanes.",
        "2, 4, 8, ... iterations; no dependence between lanes";
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transform().fmt(f)
    }
}

impl Transform for Step {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        self.transform().rewrite(kernel)
    }

    fn applied(&self, analysis: &Analysis) -> Result<(Kernel, Made), TransformError> {
        self.transform().applied(analysis)
    }

    fn apply(&self, kernel: &Kernel) -> Result<Kernel, TransformError> {
        self.transform().apply(kernel)
    }
}
