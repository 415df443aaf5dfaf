//! The data `explore/1`: plain values that say nothing twice and list no points.

use crate::performance::{Performance, Used};
use crate::rows::{Conditions, Row};
use kingpost_analysis::stats::{BankTraffic, Statistics};
use kingpost_primitives::Proved;
use serde::Serialize;
use std::collections::BTreeMap;

/// A kernel after each step of a recipe.
#[derive(Clone, Debug, Serialize)]
pub struct Exploration {
    /// The version of this format.
    pub schema: &'static str,
    /// The version of Kingpost.
    pub version: &'static str,
    /// What is explored, for the head of the page.
    pub title: String,
    /// The command that wrote it, if one did.
    pub command: String,
    /// The parameters of the first picture, and of all counts.
    pub params: BTreeMap<String, i64>,
    /// The primitives of the steps, by name.
    pub primitives: BTreeMap<&'static str, Primitive>,
    /// The kernel as it is written, then the kernel after each step; last the step that is refused.
    pub steps: Vec<StepState>,
    /// Times and ceilings, where the caller gave them.
    pub performance: Option<Performance>,
    /// What was left out, in words.
    pub left_out: Vec<String>,
}

/// What is known of a primitive, whatever the kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Primitive {
    /// What it does.
    pub summary: &'static str,
    /// What it has to prove: ids and conditions in words.
    pub obligations: Vec<(&'static str, &'static str)>,
}

/// A step, and the kernel after it, or the one it met if it is refused.
#[derive(Clone, Debug, Serialize)]
pub struct StepState {
    /// The step as a message has it; nothing for the kernel as it is written.
    pub label: String,
    /// Name of the primitive.
    pub primitive: Option<String>,
    /// Its arguments.
    pub args: serde_json::Value,
    /// What it proved, and how.
    pub proved: Vec<Proved>,
    /// What it keeps of the results, in words.
    pub keeps: Option<String>,
    /// Why it is refused, if it is.
    pub refusal: Option<Refused>,
    /// The kernel.
    pub kernel: KernelState,
    /// Its dependences.
    pub deps: Vec<Dependence>,
    /// Why there are none, if they could not be derived.
    pub deps_error: Option<String>,
    /// Whether the relations of the dependences were left out.
    pub without_relations: bool,
    /// Its source for each target.
    pub sources: BTreeMap<&'static str, Source>,
    /// What is counted at the parameters of the page.
    pub counts: Counts,
}

/// Lines of a text, each with the step that wrote it, and what the last step removed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Change {
    /// The lines.
    pub lines: Vec<String>,
    /// The step since which each line is there.
    pub since: Vec<usize>,
    /// Lines that the step removed, with the place before which they stood.
    pub removed: Vec<(usize, Vec<String>)>,
}

/// A kernel as text and as data.
#[derive(Clone, Debug, Serialize)]
pub struct KernelState {
    /// Its text, tables abridged.
    #[serde(flatten)]
    pub text: Change,
    /// The hash of its whole text, which trials are recorded under.
    pub hash: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// Its other variables.
    pub arrays: BTreeMap<String, Array>,
    /// Its statements in textual order.
    pub insns: Vec<Statement>,
}

/// A variable that is no parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Array {
    /// Type of an element.
    #[serde(rename = "type")]
    pub ty: String,
    /// Bytes of an element.
    pub bytes: u64,
    /// Who shares it.
    pub space: &'static str,
    /// Its extents.
    pub shape: Vec<Row>,
    /// Elements between neighbours along each axis, where they are affine.
    pub strides: Option<Vec<Row>>,
    /// The axis that a swizzle permutes, and the one by whose index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swizzle: Option<[u32; 2]>,
}

/// An instruction with the loops around it.
#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    /// Its name.
    pub name: String,
    /// Its line in the text.
    pub line: usize,
    /// The loops around it, outer first.
    pub loops: Vec<Loop>,
    /// Loops of the reductions in it.
    pub reductions: Vec<Loop>,
    /// Where it runs: of each item one disjunct holds.
    pub when: Vec<Vec<Conditions>>,
    /// Whether `when` says all; else its condition depends on data.
    pub exact: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it reads and writes.
    pub access: Vec<Access>,
    /// The loops as written that its own tell.
    pub origin: Vec<Origin>,
}

/// A loop as it was written, in the loops of today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Its name in the kernel before any step.
    pub name: String,
    /// Its value.
    pub row: Row,
}

/// A loop in the context of those around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loop {
    /// Its name.
    pub name: String,
    /// Where its iterations run, if they do not run one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Its line in the text; none of a reduction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Its values: one disjunct holds.
    pub domain: Vec<Conditions>,
}

/// An access of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The variable.
    pub var: String,
    /// Whether it is read, written or updated.
    pub mode: &'static str,
    /// Index along each axis, where it is quasi-affine.
    pub index: Vec<Option<Row>>,
    /// The element as the text has it.
    pub text: String,
}

/// A dependence between instances of two statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependence {
    /// `flow`, `anti`, `output` or `update`.
    pub kind: String,
    /// The variable.
    pub var: String,
    /// The array through which the element is found.
    pub through: Option<String>,
    /// Loops across whose iterations only the memory is used again.
    pub reuse_across: Vec<String>,
    /// The statement that comes first.
    pub source: String,
    /// The statement that comes after it.
    pub sink: String,
    /// Names of the loops of the source in the relation.
    pub src: Vec<String>,
    /// Names of the loops of the sink in the relation.
    pub dst: Vec<String>,
    /// The pairs: the disjuncts of the relation.
    pub pieces: Vec<Conditions>,
    /// How far the sink is from the source along loops that both are in, where that is one number.
    pub distance: Vec<(String, i64)>,
}

/// An instance of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// The statement.
    pub insn: String,
    /// Values of the loops around it, outer first.
    pub point: Vec<i64>,
}

/// Why a step is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Which kind of refusal it is, such as `reordered`.
    pub kind: &'static str,
    /// Id of the obligation that is not met.
    pub obligation: Option<&'static str>,
    /// The obligation in words.
    pub says: Option<&'static str>,
    /// What was found, without the advice if that is known apart.
    pub clash: String,
    /// What to try.
    pub help: String,
    /// The instance that comes first today.
    pub source: Option<Instance>,
    /// The one that comes second.
    pub sink: Option<Instance>,
    /// The element on which they meet.
    pub element: Option<String>,
    /// The array through which it is found.
    pub through: Option<String>,
    /// The parameters at which it happens.
    pub params: BTreeMap<String, i64>,
}

/// The source for a target, or why there is none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Source {
    /// The text; no lines where there is none.
    #[serde(flatten)]
    pub text: Change,
    /// Of each line the statements that it computes something for, by their places in
    /// [`KernelState::insns`].
    pub insns: Vec<Vec<usize>>,
    /// Of each line that opens or ends a loop or a condition the statements in it.
    pub around: Vec<Vec<usize>>,
    /// Of each line with a barrier what it separates.
    pub barriers: BTreeMap<usize, Vec<Separated>>,
    /// Why there is none.
    pub error: Option<String>,
    /// Registers and spills of its functions, where a compiler was asked.
    pub used: Vec<Used>,
    /// Why there are none, if it was asked.
    pub used_error: Option<String>,
    /// How it is launched.
    pub launch: Option<Launch>,
}

/// Two statements that a barrier separates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Separated {
    /// What must be finished.
    pub source: String,
    /// What may then start.
    pub sink: String,
    /// The variable between them.
    pub var: String,
    /// The loop, if the second one is in a later iteration of it.
    pub carrier: Option<String>,
}

/// How a program is launched.
#[derive(Clone, Debug, Serialize)]
pub struct Launch {
    /// Work-groups at the parameters of the page, where they are known.
    pub grid: Option<Vec<i64>>,
    /// Work-items of a group.
    pub block: [u64; 3],
    /// Local memory of a work-group.
    pub local_bytes: u64,
    /// Private arrays of a work-item.
    pub private_bytes: u64,
    /// What a reader of the code would not expect.
    pub notes: Vec<String>,
}

/// What is counted of a kernel at the parameters of the page, each with why it is not, if it is not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Instances, operations, accesses.
    pub statistics: Option<Statistics>,
    /// Conflicts over the banks of local memory.
    pub banks: Vec<BankTraffic>,
    /// Why something is missing.
    pub error: Option<String>,
}
