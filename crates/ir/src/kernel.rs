//! The kernel: variables, loops, instructions, assumptions and the loop tree.

use crate::affine::Affine;
use crate::calls::Callee;
use crate::constant::TableData;
use crate::domain::Domain;
use crate::expr::{Access, Expr, UpdateOp};
use crate::ids::{Arena, CalleeId, InameId, InsnId, RuleId, VarId};
use crate::places::Layout;
use crate::types::ScalarType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

/// A complete program with one meaning: the loop tree, run in textual order.
///
/// A kernel is plain data. [`Kernel::verify`](crate::verify) lists what makes one well formed;
/// every kernel a public function returns is well formed and canonical (ids in order of
/// appearance), so that equal programs are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kernel {
    /// Name of the kernel and of the generated entry point.
    pub name: String,
    /// What it should be launched with.
    #[serde(flatten)]
    pub launch: Launch,
    /// Work-items of a sub-group. Dependences that they keep among themselves are legal, so that the
    /// width belongs to the kernel; a target says which widths it has.
    #[serde(default, skip_serializing_if = "SubGroup::is_default")]
    pub sub_group: SubGroup,
    /// How code computes with reals of 64 bits.
    #[serde(default, skip_serializing_if = "Arithmetic::is_default")]
    pub arithmetic: Arithmetic,
    /// Parameters, arguments, temporaries and tables, in the order of the signature.
    pub vars: Arena<VarId, Variable>,
    /// Loops and reduction loops.
    pub inames: Arena<InameId, Iname>,
    /// Instructions.
    pub insns: Arena<InsnId, Insn>,
    /// Substitution rules.
    pub rules: Arena<RuleId, Rule>,
    /// Kernels that parts of the loop tree are calls of.
    #[serde(default)]
    pub callees: Arena<CalleeId, Callee>,
    /// What the user asserts.
    pub assumptions: Vec<Assumption>,
    /// The loop tree.
    pub body: Vec<Node>,
}

/// How code holds and computes with reals of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    /// By the hardware's own operations.
    #[default]
    Native,
    /// As double-single numbers: unevaluated sums of two `f32`, whose operations are made of those
    /// of `f32`. Tables and temporaries that are not in global memory are held so; arguments stay
    /// `f64`.
    DoubleSingle,
}

impl Arithmetic {
    /// Whether it is that of a kernel that names none.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How many work-items a sub-group has: neighbours along `l.0` that run in lockstep.
///
/// A power of two, 1 to 128, so that sub-groups cut rows of work-items as shuffles do; 32 unless a
/// kernel says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct SubGroup(u32);

impl SubGroup {
    /// The widest.
    pub const MAX: u32 = 128;

    /// The sub-group of `width` work-items; none if there is no such sub-group.
    #[must_use]
    pub const fn new(width: u32) -> Option<Self> {
        if width.is_power_of_two() && width <= Self::MAX { Some(Self(width)) } else { None }
    }

    /// Work-items.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.0
    }

    /// Whether it is the width of a kernel that names none.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for SubGroup {
    fn default() -> Self {
        Self(32)
    }
}

impl From<SubGroup> for u32 {
    fn from(width: SubGroup) -> Self {
        width.0
    }
}

impl TryFrom<u32> for SubGroup {
    type Error = NoSubGroup;

    fn try_from(width: u32) -> Result<Self, NoSubGroup> {
        Self::new(width).ok_or(NoSubGroup { found: width })
    }
}

impl fmt::Display for SubGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of work-items that no sub-group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sub-group of {found} work-items; its width is a power of two, 1 to {}", SubGroup::MAX)]
pub struct NoSubGroup {
    /// The number.
    pub found: u32,
}

/// What a kernel should be launched with; nothing of it changes what is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// Work-groups that a compute unit should have registers for at a time; none leaves it to the
    /// compiler.
    #[serde(default)]
    pub resident_groups: Option<u32>,
    /// Whether all arrays in local memory are parts of one that the launch provides: CUDA's dynamic
    /// shared memory. Else the code declares as many as its target lets it declare.
    #[serde(default)]
    pub dynamic_local: bool,
    /// Whether groups start in the order of their index along `g.0`, so that one may wait for values of those
    /// before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered_groups: bool,
}

/// What [`Launch::resident_groups`] may be.
pub const RESIDENT_GROUPS: RangeInclusive<u32> = 1..=32;

/// A node of the loop tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Node {
    /// A loop and what it repeats.
    Loop(InameId, Vec<Node>),
    /// An instruction.
    Insn(InsnId),
}

/// A loop: its name, the values it takes in the context of the loops around it, where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Iname {
    /// Unique name.
    pub name: String,
    /// Values, in ascending order.
    pub domain: Domain,
    /// Where its iterations run.
    pub tag: AxisTag,
}

/// Where the iterations of a loop run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AxisTag {
    /// One after the other.
    #[default]
    Sequential,
    /// One after the other, written out; in a reduction, an update of the accumulator an iteration.
    Unrolled,
    /// One after the other, and compilers are asked not to write them out: the arrays that they
    /// index would take registers.
    Rolled,
    /// In the lanes of a vector.
    Vector,
    /// On the work-groups along axis 0, 1 or 2.
    Group(u8),
    /// On the work-items of a group along axis 0, 1 or 2.
    Local(u8),
    /// One after the other, each a launch: all work-groups of one have ended before those of the next
    /// begin.
    Launch,
}

impl AxisTag {
    /// Every tag.
    pub const ALL: [Self; 11] = [
        Self::Sequential,
        Self::Unrolled,
        Self::Rolled,
        Self::Vector,
        Self::Group(0),
        Self::Group(1),
        Self::Group(2),
        Self::Local(0),
        Self::Local(1),
        Self::Local(2),
        Self::Launch,
    ];

    /// The tag written `text` (`g.0`, `l.1`, `unroll`, `nounroll`, `vector`, `launch`, `sequential`).
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.to_string() == text)
    }
}

impl fmt::Display for AxisTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Unrolled => f.write_str("unroll"),
            Self::Rolled => f.write_str("nounroll"),
            Self::Vector => f.write_str("vector"),
            Self::Group(k) => write!(f, "g.{k}"),
            Self::Local(k) => write!(f, "l.{k}"),
            Self::Launch => f.write_str("launch"),
        }
    }
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variable {
    /// Unique name.
    pub name: String,
    /// Type of one element.
    pub ty: ScalarType,
    /// Parameter, argument, temporary or table.
    pub kind: VarKind,
    /// Extent of each axis, affine in the parameters; empty for a scalar.
    pub shape: Vec<Affine>,
    /// Where an element lies in its buffer.
    pub layout: Layout,
    /// Who shares it.
    pub space: AddressSpace,
    /// Name of the buffer it shares with other temporaries, if any.
    pub storage: Option<String>,
}

/// What a variable is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VarKind {
    /// An integer scalar given at launch that domains and shapes may mention.
    Param,
    /// A scalar or array given at launch; different arguments are different memory.
    Argument(Direction),
    /// A scalar or array that lives as long as the kernel runs, undefined at the start.
    Temporary,
    /// A constant array, row-major.
    Table(TableData),
}

/// Direction of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// Only read.
    In,
    /// Only its values after the kernel count; undefined at the start.
    Out,
    /// Read and written.
    InOut,
}

/// Who shares a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddressSpace {
    /// The whole launch.
    Global,
    /// The whole launch, read-only, written into the source.
    Constant,
    /// The same, with the entries whose indices are numbers instead of their loads.
    Literal,
    /// One work-group.
    Local,
    /// One sub-group, of which every work-item holds the elements at its own index along `l.0`; the
    /// others read them by a shuffle.
    SubGroup,
    /// One work-item.
    Private,
}

impl AddressSpace {
    /// Every address space.
    pub const ALL: [Self; 6] =
        [Self::Global, Self::Constant, Self::Literal, Self::Local, Self::SubGroup, Self::Private];

    /// Name in the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Constant => "constant",
            Self::Literal => "literal",
            Self::Local => "local",
            Self::SubGroup => "subgroup",
            Self::Private => "private",
        }
    }

    /// Whether it holds tables and nothing else.
    #[must_use]
    pub fn is_of_tables(self) -> bool {
        matches!(self, Self::Constant | Self::Literal)
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Insn {
    /// Unique name.
    pub name: String,
    /// What it writes.
    pub lhs: Access,
    /// How it writes.
    pub op: WriteOp,
    /// The value.
    pub rhs: Expr,
    /// The instruction runs where this is true.
    pub predicate: Option<Expr>,
    /// Labels for selection, such as the stage of an algorithm.
    pub tags: BTreeSet<String>,
    /// The callee of the call that it belongs to, if any; see [`crate::calls`].
    #[serde(default)]
    pub callee: Option<CalleeId>,
}

/// How an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WriteOp {
    /// `lhs = rhs`.
    Assign,
    /// `lhs op= rhs`; instances on the same element may run in any order.
    Update {
        /// The operator.
        op: UpdateOp,
        /// Whether the update is indivisible with respect to other work-items.
        atomic: bool,
    },
}

/// A substitution rule, `name(params) := body`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Unique name.
    pub name: String,
    /// Names of the parameters.
    pub params: Vec<String>,
    /// The body; it mentions parameters by position and holds no reduction.
    pub body: Expr,
}

/// Something the user asserts and the analysis may use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Assumption {
    /// The parameters satisfy this.
    Params(crate::domain::Constraint),
    /// A parameter is not given but computed, from parameters above it ([`Kernel::with_defined`]).
    Defined(VarId, Expr),
    /// Different indices of this integer array hold different values.
    Injective(VarId),
    /// No entry of this one-dimensional integer array is less than the one before it.
    Ascending(VarId),
    /// Entries of an integer array are outside a range, or numbers that their row has alone.
    Outside(crate::outside::OutsideRange),
    /// Elements of an array have the values of their images.
    Symmetric(crate::symmetry::Symmetry),
    /// Lists of the values of a map, one a block of its rows, and numbers in them.
    Lists(crate::lists::BlockLists),
}

impl Kernel {
    /// The iname of this name.
    pub fn iname(&self, name: &str) -> Option<InameId> {
        self.inames.iter().find(|(_, i)| i.name == name).map(|(id, _)| id)
    }

    /// The instruction of this name.
    pub fn insn(&self, name: &str) -> Option<InsnId> {
        self.insns.iter().find(|(_, i)| i.name == name).map(|(id, _)| id)
    }

    /// The variable of this name.
    pub fn var(&self, name: &str) -> Option<VarId> {
        self.vars.iter().find(|(_, v)| v.name == name).map(|(id, _)| id)
    }

    /// The substitution rule of this name.
    pub fn rule(&self, name: &str) -> Option<RuleId> {
        self.rules.iter().find(|(_, r)| r.name == name).map(|(id, _)| id)
    }

    /// The callee of this name.
    pub fn callee(&self, name: &str) -> Option<CalleeId> {
        self.callees.iter().find(|(_, c)| c.kernel.name == name).map(|(id, _)| id)
    }

    /// Instructions in textual order with the loops around each, outer first.
    pub fn schedule(&self) -> Vec<(InsnId, Vec<InameId>)> {
        let mut order = Vec::with_capacity(self.insns.len());
        walk(&self.body, &mut Vec::new(), &mut |insn, loops| order.push((insn, loops.to_vec())));
        order
    }

    /// How many of some loops, from the outermost one on, are around a write of each variable, too:
    /// the value of a variable can change with that many of them.
    pub fn write_depths(&self, loops: &[InameId]) -> BTreeMap<VarId, usize> {
        let mut depths: BTreeMap<VarId, usize> = BTreeMap::new();
        for (insn, around) in self.schedule() {
            let shared = around.iter().zip(loops).take_while(|(a, b)| a == b).count();
            let depth = depths.entry(self.insns[insn].lhs.var).or_default();
            *depth = shared.max(*depth);
        }
        depths
    }

    /// Whether a name is free for a new iname, instruction, variable, rule or callee.
    pub fn is_free_name(&self, name: &str) -> bool {
        self.iname(name).is_none()
            && self.insn(name).is_none()
            && self.var(name).is_none()
            && self.rule(name).is_none()
            && self.callee(name).is_none()
    }

    /// Whether a name is that of a parameter of a rule, which no variable and no rule may have.
    pub fn is_rule_param(&self, name: &str) -> bool {
        self.rules.values().any(|rule| rule.params.iter().any(|param| param == name))
    }

    /// `stem` if it is free, whatever it is to name, else `stem_1`, `stem_2`, …
    pub fn fresh_name(&self, stem: &str) -> String {
        let is_free = |name: &str| self.is_free_name(name) && !self.is_rule_param(name);
        if is_free(stem) {
            return stem.to_owned();
        }
        let mut k = 1;
        loop {
            let name = format!("{stem}_{k}");
            if is_free(&name) {
                return name;
            }
            k += 1;
        }
    }
}

fn walk(nodes: &[Node], loops: &mut Vec<InameId>, visit: &mut dyn FnMut(InsnId, &[InameId])) {
    for node in nodes {
        match node {
            Node::Insn(insn) => visit(*insn, loops),
            Node::Loop(iname, body) => {
                loops.push(*iname);
                walk(body, loops, visit);
                loops.pop();
            }
        }
    }
}

impl Variable {
    /// Whether it is an argument that the kernel writes.
    pub fn is_output(&self) -> bool {
        match self.kind {
            VarKind::Argument(Direction::Out | Direction::InOut) => true,
            VarKind::Argument(Direction::In) | VarKind::Param | VarKind::Temporary | VarKind::Table(_) => {
                false
            }
        }
    }

    /// A dense row-major variable.
    pub fn new(
        name: impl Into<String>,
        ty: ScalarType,
        kind: VarKind,
        shape: impl IntoIterator<Item = Affine>,
        space: AddressSpace,
    ) -> Self {
        let shape = shape.into_iter().collect();
        Self { name: name.into(), ty, kind, shape, layout: Layout::default(), space, storage: None }
    }

    /// Place of an element in the row-major order of a table's values, by an index along each axis;
    /// none where one is not known or out of bounds, or where an extent is no number.
    pub fn row_major_place(&self, index: impl IntoIterator<Item = Option<i64>>) -> Option<usize> {
        let mut place = 0_i64;
        for (k, extent) in index.into_iter().zip(&self.shape) {
            let (k, n) = (k?, extent.as_constant()?);
            if !(0..n).contains(&k) {
                return None;
            }
            place = place.checked_mul(n)?.checked_add(k)?;
        }
        usize::try_from(place).ok()
    }

    /// Whether it is a number that a launch gets, and no memory.
    pub fn is_passed_by_value(&self) -> bool {
        match &self.kind {
            VarKind::Argument(Direction::In) => self.shape.is_empty() && self.space != AddressSpace::Global,
            VarKind::Param => true,
            VarKind::Argument(Direction::Out | Direction::InOut) | VarKind::Temporary | VarKind::Table(_) => {
                false
            }
        }
    }

    /// Whether it is a scalar integer that affine expressions may mention, which words are not.
    pub fn is_integer_scalar(&self) -> bool {
        self.shape.is_empty() && self.ty.is_exact()
    }
}

impl Insn {
    /// Its expressions: indices of what it writes, right-hand side and predicate.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> + Clone {
        self.lhs.index.iter().chain([&self.rhs]).chain(&self.predicate)
    }

    /// Whether one of its expressions loads a variable.
    pub fn loads(&self, var: VarId) -> bool {
        self.expressions().any(|e| e.loads(var))
    }

    /// Whether it writes a variable or loads it.
    pub fn accesses(&self, var: VarId) -> bool {
        self.lhs.var == var || self.loads(var)
    }

    /// Every access it reads: the element an update reads, right-hand side, predicate, and index
    /// expressions of both sides.
    pub fn reads(&self) -> Vec<&Access> {
        let mut reads = Vec::new();
        for e in self.expressions() {
            collect_loads(e, &mut reads);
        }
        reads
    }

    /// The operator, if it is an update.
    pub fn update_op(&self) -> Option<UpdateOp> {
        match self.op {
            WriteOp::Assign => None,
            WriteOp::Update { op, .. } => Some(op),
        }
    }

    /// Whether it is an atomic update.
    pub fn is_atomic(&self) -> bool {
        match self.op {
            WriteOp::Assign => false,
            WriteOp::Update { atomic, .. } => atomic,
        }
    }
}

fn collect_loads<'a>(e: &'a Expr, reads: &mut Vec<&'a Access>) {
    if let Expr::Load(access) = e {
        reads.push(access);
    }
    for operand in e.operands() {
        collect_loads(operand, reads);
    }
}
