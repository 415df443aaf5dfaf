//! The code of a program, neutral of the target: what the printers write and statistics count.

use crate::complex::ComplexOp;
pub use crate::declaration::{Declare, Pointee};
use crate::double_single::PairOp;
use kingpost_analysis::placement::Scope;
use kingpost_ir::{InsnId, MathFn, ScalarType, UpdateOp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A name in the source, safe in every target.
pub type Name = Arc<str>;

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A remark for the reader.
    Comment(String),
    /// A variable of one work-item (or of one group, in a group's own scope).
    Declare(Declare),
    /// `place = value` or `place op= value`.
    Assign {
        /// What is written.
        place: Place,
        /// The operator of an update.
        op: Option<UpdateOp>,
        /// The value.
        value: Expr,
        /// The instruction it comes from, if it is no accumulation of a reduction.
        origin: Option<InsnId>,
    },
    /// `place op= value`, indivisible.
    Atomic(Atomic),
    /// A call as text of the target.
    Intrinsic(Intrinsic),
    /// Runs its body where the condition holds.
    If {
        /// A truth value.
        condition: Expr,
        /// What it guards.
        body: Block,
    },
    /// A counted loop.
    For(For),
    /// The next iteration of a loop that was written out begins here; prints nothing.
    Iteration(Name),
    /// Work-items wait for each other.
    Barrier(Fence),
}

/// Which work-items a barrier holds, and which memory it orders for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The work-items.
    pub scope: Scope,
    /// Local memory.
    pub local: bool,
    /// Global memory.
    pub global: bool,
    /// Statements that every work-item runs first: each makes a group of the calls since the last one.
    pub commits: BTreeSet<Name>,
    /// Statements that it runs then, after which calls are done; how many of the last groups may go on.
    pub completions: BTreeMap<Name, u8>,
    /// Statements that it runs then: what ordinary ones have done is done for code that uses a proxy.
    pub proxies: BTreeSet<Name>,
    /// Where it stands in the loop tree: the name of the loop whose body has it, none for that of the kernel, and
    /// before which child; none for one that is not of the loop tree.
    pub place: Option<(Option<String>, usize)>,
}

/// An indivisible update.
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic {
    /// What is updated.
    pub place: Place,
    /// The operator.
    pub op: UpdateOp,
    /// The operand.
    pub value: Expr,
    /// Type of the element.
    pub ty: ScalarType,
    /// Whether the element is in local memory, else in global memory.
    pub local: bool,
    /// The instruction it comes from.
    pub origin: InsnId,
}

/// A call as text of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Intrinsic {
    /// Name of the callee.
    pub name: String,
    /// The text, with places for arguments.
    pub pieces: Vec<CodePiece>,
    /// Variables that it writes.
    pub written: Vec<Name>,
    /// The instructions that it stands for.
    pub origins: Vec<InsnId>,
    /// Axes of work-items, from l.0 on, along which all must arrive together.
    pub together: u8,
    /// Whether it runs asynchronously until a completion.
    pub asynchronous: bool,
}

/// A piece of text of a target.
#[derive(Clone, Debug, PartialEq)]
pub enum CodePiece {
    /// As it is.
    Text(String),
    /// An element, to read or write, or a value.
    Value(Expr),
    /// The address of an element.
    Address(Expr),
}

/// A counted loop `for (ty name = lower; name < upper; name += step)`.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The loop variable.
    pub name: Name,
    /// `I32`, or `I64` where the range may not fit.
    pub ty: ScalarType,
    /// First value.
    pub lower: Expr,
    /// First value that is not taken.
    pub upper: Expr,
    /// Distance of two values, at least 1.
    pub step: i64,
    /// Where its iterations run.
    pub kind: LoopKind,
    /// Whether compilers are asked not to unroll it: because it is tagged so, or short and of a length
    /// that changes from one iteration of an outer loop to the next.
    pub rolled: bool,
    /// A flag that ends the loop when it has fallen: a private truth value, which guards all of the body.
    pub flag: Option<Name>,
    /// What is repeated.
    pub body: Block,
}

/// Where the iterations of a loop run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// One after the other.
    Sequential,
    /// In vector lanes.
    Vector,
    /// In vectors of elements of a type: as many at once as the processor has for which the source
    /// is compiled, at most that number (C only).
    Pieces(ScalarType, u8),
    /// Work-groups along an axis, on the threads of a host (C only).
    Groups,
    /// Work-items along an axis, in order on one thread (C only).
    WorkItems,
}

/// A statement of C code that runs the launches of a program, on every thread.
#[derive(Clone, Debug)]
pub enum HostStmt {
    /// A launch.
    Launch {
        /// Its function.
        function: Name,
        /// Arguments of the program, values of loops, numbers of groups.
        args: Vec<Expr>,
        /// Whether it has groups to share out; else one thread runs it.
        shared: bool,
    },
    /// A loop of the host.
    For {
        /// Its variable.
        name: Name,
        /// Of this type.
        ty: ScalarType,
        /// First value.
        lower: Expr,
        /// First value that is not taken.
        upper: Expr,
        /// What is repeated.
        body: Vec<HostStmt>,
    },
}

/// A scalar variable, or an element of an array at a flat offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The variable.
    pub name: Name,
    /// Offset of the element; none for a scalar.
    pub offset: Option<Box<Expr>>,
    /// How much of memory it is.
    pub extent: Extent,
}

/// How much of memory a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A variable or an element, which holds a vector if it was declared so.
    Whole,
    /// A lane of a variable or an element that holds a vector.
    Lane(u8),
    /// Elements of this type and number, neighbours from the offset on, as one vector.
    Vector(ScalarType, u8),
}

/// An expression; operands have the types that the operation needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An integer literal of type `I32`, `I64`, `U32` or `U64`, of the last one its bits.
    Int(i64, ScalarType),
    /// A literal of type `F32` or `F64`.
    Real(f64, ScalarType),
    /// A truth value.
    Bool(bool),
    /// The value of a variable.
    Load(Place),
    /// Index of the work-group (`true`) or of the work-item in its group, along an axis.
    Hardware {
        /// Work-group, else work-item.
        group: bool,
        /// Axis 0, 1 or 2.
        axis: u8,
    },
    /// Negation of a number.
    Neg(Box<Expr>),
    /// Negation of a truth value.
    Not(Box<Expr>),
    /// A binary operation.
    Binary(Op, Box<Expr>, Box<Expr>),
    /// A call of a mathematical function at a floating-point type.
    Call(MathFn, ScalarType, Vec<Expr>),
    /// An operation on complex numbers of a type.
    Complex(ComplexOp, ScalarType, Vec<Expr>),
    /// An operation on pairs of `f32`.
    Pair(PairOp, Vec<Expr>),
    /// A call of an integer function at a type.
    IntCall(IntFn, ScalarType, Box<Expr>, Box<Expr>),
    /// A call of a mathematical function for each lane of vectors of a type and width (C only).
    LanesCall(MathFn, ScalarType, u8, Vec<Expr>),
    /// A conversion.
    Cast(ScalarType, Box<Expr>),
    /// A number of 16 bits from an `f32`, or an `f32` from one.
    Half(Coding, ScalarType, Box<Expr>),
    /// `condition ? a : b`.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A vector with elements of a type.
    Vector {
        /// Type of the elements.
        ty: ScalarType,
        /// Their number.
        width: u8,
        /// The value of each lane, or one for all of them.
        lanes: Vec<Expr>,
    },
}

/// A way between a number of 16 bits, which code holds as an integer, and an `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coding {
    /// To the number of 16 bits, rounded to the nearest.
    Encode,
    /// To the `f32`, which is exact.
    Decode,
}

/// An operator that every target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // C's operators
pub enum Op {
    Add,
    Sub,
    Mul,
    /// Quotient of reals, or of integers rounded towards zero.
    Div,
    /// Remainder of integers with the sign of the dividend.
    Rem,
    Lt,
    Le,
    Eq,
    Ne,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

/// An integer function that C has no operator for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntFn {
    /// Quotient rounded down.
    FloorDiv,
    /// Remainder with the sign of the divisor, of reals, too.
    Mod,
    /// Smaller of two.
    Min,
    /// Larger of two.
    Max,
}

impl Fence {
    /// One that orders and completes nothing.
    pub(crate) const fn nothing() -> Self {
        Self {
            scope: Scope::WorkItem,
            local: false,
            global: false,
            commits: BTreeSet::new(),
            completions: BTreeMap::new(),
            proxies: BTreeSet::new(),
            place: None,
        }
    }

    /// What is left of it if it orders and completes nothing.
    pub(crate) fn commits_alone(&self) -> Option<Self> {
        let left = Self { commits: self.commits.clone(), place: self.place.clone(), ..Self::nothing() };
        (!left.commits.is_empty()).then_some(left)
    }
}

impl Place {
    /// A scalar variable.
    pub fn scalar(name: Name) -> Self {
        Self { name, offset: None, extent: Extent::Whole }
    }

    /// An element of an array.
    pub fn element(name: Name, offset: Expr) -> Self {
        Self { name, offset: Some(Box::new(offset)), extent: Extent::Whole }
    }
}

impl Expr {
    /// The value of a scalar variable.
    pub fn var(name: &Name) -> Self {
        Self::Load(Place::scalar(name.clone()))
    }

    /// A 32-bit integer literal, or a 64-bit one where it does not fit.
    pub fn int(value: i64) -> Self {
        let ty = if i32::try_from(value).is_ok() { ScalarType::I32 } else { ScalarType::I64 };
        Self::Int(value, ty)
    }

    /// The truth value that memory holds as a number.
    pub fn nonzero(self) -> Self {
        Self::binary(Op::Ne, self, Self::int(0))
    }

    /// The value of an element of a type as the code computes with it.
    pub fn decoded(self, ty: ScalarType) -> Self {
        if ty.is_half() { Self::Half(Coding::Decode, ty, Box::new(self)) } else { self }
    }

    /// A real as an element of a type holds it: what was such an element is that again.
    pub fn encoded(self, ty: ScalarType) -> Self {
        match (ty.is_half(), self) {
            (_, Self::Half(Coding::Decode, from, held)) if from == ty => *held,
            (true, value) => Self::Half(Coding::Encode, ty, Box::new(value)),
            (false, value) => value,
        }
    }

    /// A binary operation.
    pub fn binary(op: Op, a: Self, b: Self) -> Self {
        Self::Binary(op, Box::new(a), Box::new(b))
    }

    /// Direct operands, left to right; the offset of an element counts as one.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        let (boxed, listed): ([Option<&Expr>; 3], &[Expr]) = match self {
            Self::Int(..) | Self::Real(..) | Self::Bool(_) | Self::Hardware { .. } => ([None; 3], &[]),
            Self::Load(place) => ([place.offset.as_deref(), None, None], &[]),
            Self::Neg(a) | Self::Not(a) | Self::Cast(_, a) | Self::Half(_, _, a) => {
                ([Some(a), None, None], &[])
            }
            Self::Binary(_, a, b) | Self::IntCall(_, _, a, b) => ([Some(a), Some(b), None], &[]),
            Self::Call(_, _, args)
            | Self::Complex(_, _, args)
            | Self::Pair(_, args)
            | Self::LanesCall(_, _, _, args) => ([None; 3], args),
            Self::Select(c, a, b) => ([Some(c), Some(a), Some(b)], &[]),
            Self::Vector { lanes, .. } => ([None; 3], lanes),
        };
        boxed.into_iter().flatten().chain(listed)
    }

    /// The same operands, to change them.
    pub fn operands_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Int(..) | Self::Real(..) | Self::Bool(_) | Self::Hardware { .. } => Vec::new(),
            Self::Load(place) => place.offset.iter_mut().map(|e| &mut **e).collect(),
            Self::Neg(a) | Self::Not(a) | Self::Cast(_, a) | Self::Half(_, _, a) => vec![a],
            Self::Binary(_, a, b) | Self::IntCall(_, _, a, b) => vec![a, b],
            Self::Call(_, _, args)
            | Self::Complex(_, _, args)
            | Self::Pair(_, args)
            | Self::LanesCall(_, _, _, args) => args.iter_mut().collect(),
            Self::Select(c, a, b) => vec![c, a, b],
            Self::Vector { lanes, .. } => lanes.iter_mut().collect(),
        }
    }

    /// Calls `visit` with every expression inside this one, outer before inner.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        for operand in self.operands() {
            operand.for_each(visit);
        }
    }

    /// Calls `visit` with every expression inside this one, inner before outer, to change them.
    pub fn for_each_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        for operand in self.operands_mut() {
            operand.for_each_mut(visit);
        }
        visit(self);
    }
}

impl Stmt {
    /// The statements inside, if any.
    pub fn body(&self) -> Option<&Block> {
        match self {
            Self::If { body, .. } => Some(body),
            Self::For(f) => Some(&f.body),
            Self::Comment(_)
            | Self::Declare(_)
            | Self::Assign { .. }
            | Self::Atomic(_)
            | Self::Intrinsic(_)
            | Self::Iteration(_)
            | Self::Barrier(_) => None,
        }
    }

    /// The statements inside, if any, to change them.
    pub fn body_mut(&mut self) -> Option<&mut Block> {
        match self {
            Self::If { body, .. } => Some(body),
            Self::For(f) => Some(&mut f.body),
            Self::Comment(_)
            | Self::Declare(_)
            | Self::Assign { .. }
            | Self::Atomic(_)
            | Self::Intrinsic(_)
            | Self::Iteration(_)
            | Self::Barrier(_) => None,
        }
    }

    /// The expressions of the statement itself, not of its body; of a call its elements and values.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Comment(_) | Self::Iteration(_) | Self::Barrier(_) => Vec::new(),
            Self::Declare(d) => d.value.iter().collect(),
            Self::Assign { place, value, .. } | Self::Atomic(Atomic { place, value, .. }) => {
                place.offset.iter().map(|e| &**e).chain([value]).collect()
            }
            Self::Intrinsic(i) => i
                .pieces
                .iter()
                .filter_map(|piece| match piece {
                    CodePiece::Text(_) => None,
                    CodePiece::Value(e) | CodePiece::Address(e) => Some(e),
                })
                .collect(),
            Self::If { condition, .. } => vec![condition],
            Self::For(f) => vec![&f.lower, &f.upper],
        }
    }

    /// The same expressions, to change them.
    pub fn expressions_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Comment(_) | Self::Iteration(_) | Self::Barrier(_) => Vec::new(),
            Self::Declare(d) => d.value.iter_mut().collect(),
            Self::Assign { place, value, .. } | Self::Atomic(Atomic { place, value, .. }) => {
                place.offset.iter_mut().map(|e| &mut **e).chain([value]).collect()
            }
            Self::Intrinsic(i) => i
                .pieces
                .iter_mut()
                .filter_map(|piece| match piece {
                    CodePiece::Text(_) => None,
                    CodePiece::Value(e) | CodePiece::Address(e) => Some(e),
                })
                .collect(),
            Self::If { condition, .. } => vec![condition],
            Self::For(f) => vec![&mut f.lower, &mut f.upper],
        }
    }

    /// The place that it writes itself, if that is one.
    pub fn place(&self) -> Option<&Place> {
        let (Self::Assign { place, .. } | Self::Atomic(Atomic { place, .. })) = self else { return None };
        Some(place)
    }

    /// The same place, to change it.
    pub fn place_mut(&mut self) -> Option<&mut Place> {
        let (Self::Assign { place, .. } | Self::Atomic(Atomic { place, .. })) = self else { return None };
        Some(place)
    }

    /// The variables it writes itself, not in its body.
    pub fn written(&self) -> Vec<&Name> {
        if let Self::Intrinsic(i) = self {
            return i.written.iter().collect();
        }
        self.place().map(|place| &place.name).into_iter().collect()
    }

    /// Whether a barrier stands in it.
    pub fn has_barrier(&self) -> bool {
        matches!(self, Self::Barrier(_)) || self.body().is_some_and(|b| b.iter().any(Self::has_barrier))
    }
}

/// Names that statements read or write.
pub(crate) fn names_in(block: &Block, names: &mut BTreeSet<Name>) {
    for_each_name(block, &mut |name| {
        if !names.contains(name) {
            names.insert(name.clone());
        }
    });
}

/// Visits the names that statements read or write, as often as they stand there.
pub(crate) fn for_each_name(block: &Block, visit: &mut dyn FnMut(&Name)) {
    for stmt in block {
        for e in stmt.expressions() {
            e.for_each(&mut |e| {
                if let Expr::Load(place) = e {
                    visit(&place.name);
                }
            });
        }
        stmt.written().into_iter().for_each(&mut *visit);
        if let Some(body) = stmt.body() {
            for_each_name(body, visit);
        }
    }
}

/// `op(before, value)` where C has no operator for it, else the value as it is; a real of 16 bits is
/// updated by an `f32`, and a complex number by a function.
pub(crate) fn update_value(op: UpdateOp, ty: ScalarType, before: Expr, value: Expr) -> Result<Expr, Expr> {
    let (real, int) = match op {
        UpdateOp::Min => (MathFn::Fmin, IntFn::Min),
        UpdateOp::Max => (MathFn::Fmax, IntFn::Max),
        UpdateOp::Or => return Ok(Expr::binary(Op::Or, before.nonzero(), value)),
        UpdateOp::And => return Ok(Expr::binary(Op::And, before.nonzero(), value)),
        UpdateOp::Add | UpdateOp::Mul if ty.is_half() => {
            let op = if op == UpdateOp::Add { Op::Add } else { Op::Mul };
            return Ok(Expr::binary(op, before.decoded(ty), value).encoded(ty));
        }
        UpdateOp::Add | UpdateOp::Mul if ty.is_complex() => {
            let op = if op == UpdateOp::Add { ComplexOp::Add } else { ComplexOp::Mul };
            return Ok(Expr::Complex(op, ty, vec![before, value]));
        }
        // by a declared operator none is left
        UpdateOp::Add | UpdateOp::Mul | UpdateOp::Named(_) => return Err(value),
    };
    Ok(if ty.is_real() {
        Expr::Call(real, ty.loaded(), vec![before.decoded(ty), value]).encoded(ty)
    } else {
        Expr::IntCall(int, ty.loaded(), Box::new(before), Box::new(value))
    })
}
