//! The internal form of a kernel at fixed parameters: typed trees, everything by position.
//!
//! Parameters are literals, rules are expanded, implicit conversions are explicit. A real value is
//! held as an `f64` whatever its type; `single` marks operations that round to `f32`.

use crate::op::Tally;
use kingpost_ir::expr::{MathFn, UpdateOp};
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::types::ScalarType;

/// An element of a variable.
#[derive(Clone, Debug)]
pub struct Place {
    pub var: VarId,
    pub index: Vec<Int>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    TruncDiv,
    TruncRem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Lt,
    Le,
    Eq,
    Ne,
}

#[derive(Clone, Debug)]
pub enum Real {
    Const(f64),
    Load(Place),
    FromInt(Box<Int>, bool),
    /// Of the bits of an integer without sign.
    FromU64(Box<Int>, bool),
    /// Rounds to `f32`.
    Round(Box<Real>),
    /// Rounds to a type of 16 bits.
    Half(Box<Real>, ScalarType),
    Neg(Box<Real>, Tally),
    Arith {
        op: RealOp,
        single: bool,
        tally: Tally,
        a: Box<Real>,
        b: Box<Real>,
    },
    Call {
        function: MathFn,
        single: bool,
        tally: Tally,
        args: Vec<Real>,
    },
    /// A part or the absolute value of a complex number.
    Part {
        part: Part,
        single: bool,
        tally: Tally,
        of: Box<Complex>,
    },
    Select(Box<Truth>, Box<Real>, Box<Real>),
    Reduce {
        op: UpdateOp,
        inames: Vec<InameId>,
        single: bool,
        tally: Tally,
        body: Box<Real>,
    },
}

/// A real that a complex number has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Real,
    Imaginary,
    /// The absolute value.
    Size,
}

/// A function of complex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexFn {
    Exp,
    Log,
    Sqrt,
    Sin,
    Cos,
    Pow,
}

/// An operation with a complex result, of reals `x`, `y` and complex numbers `a`, `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComplexOp {
    /// `x` and `y` are the parts.
    Of,
    /// Rounds the parts of `a` to `f32`.
    Round,
    Neg,
    Conj,
    Add,
    Sub,
    Mul,
    Div,
    /// `a + x`.
    Plus,
    /// `a - x`.
    Minus,
    /// `x - a`.
    From,
    /// `a*x`.
    Scale,
    /// `a/x`.
    Shrink,
    Function(ComplexFn),
}

#[derive(Clone, Debug)]
pub enum Complex {
    Load(Place),
    Op {
        op: ComplexOp,
        single: bool,
        tally: Tally,
        /// How often the operation of the tally is done.
        times: u64,
        reals: Vec<Real>,
        args: Vec<Complex>,
    },
    Select(Box<Truth>, Box<Complex>, Box<Complex>),
    Reduce {
        op: UpdateOp,
        inames: Vec<InameId>,
        single: bool,
        tally: Tally,
        body: Box<Complex>,
    },
}

/// How an integer becomes one of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The value must be one of the type.
    Fits(ScalarType),
    /// The bits of an integer without sign, which must fit 64 bits with one.
    FromU64,
    /// Modulo 2^32.
    Wraps,
    /// The bits of a `u32` as an `i32`.
    Signed,
}

/// An integer: of a `u64` its bits.
#[derive(Clone, Debug)]
pub enum Int {
    Const(i64),
    Iname(InameId),
    Load(Place),
    /// Rounds towards zero; the result must fit the type.
    FromReal(Box<Real>, ScalarType),
    Converted(Conversion, Box<Int>),
    /// 0 or 1.
    FromTruth(Box<Truth>),
    Neg(Box<Int>, Tally),
    Arith {
        op: IntOp,
        /// The type of words; exact integers have none.
        word: Option<ScalarType>,
        tally: Tally,
        a: Box<Int>,
        b: Box<Int>,
    },
    Select(Box<Truth>, Box<Int>, Box<Int>),
    Reduce {
        op: UpdateOp,
        inames: Vec<InameId>,
        neutral: i64,
        /// Whether partial results must fit `i32`.
        narrow: bool,
        /// The type of words; exact integers have none.
        word: Option<ScalarType>,
        tally: Tally,
        body: Box<Int>,
    },
}

impl Int {
    /// Whether this is a sum, a difference, a product or a negation of elements, as
    /// [`kingpost_ir::TypedExpr::is_made_of_elements`] says of the kernel's expressions.
    pub fn may_leave_its_type(&self) -> bool {
        match self {
            Self::Neg(..) | Self::Arith { op: IntOp::Add | IntOp::Sub | IntOp::Mul | IntOp::Shl, .. } => {
                self.is_made_of_elements()
            }
            Self::Const(_)
            | Self::Iname(_)
            | Self::Load(_)
            | Self::FromReal(..)
            | Self::Converted(..)
            | Self::FromTruth(_)
            | Self::Arith { .. }
            | Self::Select(..)
            | Self::Reduce { .. } => false,
        }
    }

    /// Whether the value is made of elements of arrays or of reals.
    pub fn is_made_of_elements(&self) -> bool {
        match self {
            Self::Const(_) | Self::Iname(_) => false,
            Self::Load(place) => !place.index.is_empty(),
            Self::FromReal(..) | Self::FromTruth(_) => true,
            Self::Converted(_, a) | Self::Neg(a, _) | Self::Reduce { body: a, .. } => a.is_made_of_elements(),
            Self::Arith { op: IntOp::Shl, a, .. } => a.is_made_of_elements(),
            Self::Arith { a, b, .. } | Self::Select(_, a, b) => {
                a.is_made_of_elements() || b.is_made_of_elements()
            }
        }
    }
}

#[derive(Clone, Debug)]
pub enum Truth {
    Real {
        op: Comparison,
        tally: Tally,
        a: Real,
        b: Real,
    },
    Complex {
        equal: bool,
        tally: Tally,
        a: Complex,
        b: Complex,
    },
    Int {
        op: Comparison,
        unsigned: bool,
        tally: Tally,
        a: Int,
        b: Int,
    },
    /// The integer is not 0.
    Nonzero(Box<Int>),
    Not(Box<Truth>),
    And(Box<Truth>, Box<Truth>),
    Or(Box<Truth>, Box<Truth>),
}

/// A right-hand side.
#[derive(Clone, Debug)]
pub enum Number {
    Real(Real),
    Complex(Complex),
    Int(Int),
}

/// An instruction; `update` is the operator and its tally.
#[derive(Clone, Debug)]
pub struct Statement {
    pub lhs: Place,
    pub update: Option<(UpdateOp, Tally)>,
    pub rhs: Number,
    pub predicate: Option<Truth>,
    /// Loops around it, outer first.
    pub loops: Vec<InameId>,
    /// Where it goes, if that is all that is wanted of it.
    pub touches: Option<Vec<Touch>>,
}

/// Elements that an instance goes to, whatever it computes.
#[derive(Clone, Debug)]
pub enum Touch {
    /// An element; the loads of its index are part of it.
    At(Place),
    /// Where a condition is true, or false.
    When(Truth, bool, Vec<Touch>),
    /// At every point of the inames of a reduction.
    Over(Vec<InameId>, Vec<Touch>),
}

/// `constant + sum of coefficient * symbol + sum of coefficient * floor(form / divisor)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Wider than the coefficients: holds products with parameters.
    pub constant: i128,
    pub inames: Vec<(InameId, i64)>,
    pub vars: Vec<(VarId, i64)>,
    pub floors: Vec<(Form, i64, i64)>,
}

/// `form == 0` or `form >= 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub equal: bool,
    pub form: Form,
}

/// `coefficient * iname + rest >= 0`, or `== 0`.
#[derive(Clone, Debug)]
pub struct Bound {
    pub equal: bool,
    pub coefficient: i64,
    pub rest: Form,
}

/// A conjunction of the domain of a loop.
#[derive(Clone, Debug, Default)]
pub struct Disjunct {
    /// Linear in the iname.
    pub bounds: Vec<Bound>,
    /// The iname stands inside floors, or does not occur.
    pub checks: Vec<Condition>,
}

/// The whole kernel.
#[derive(Clone, Debug)]
pub struct Program {
    /// By instruction.
    pub statements: Vec<Statement>,
    /// By iname.
    pub domains: Vec<Vec<Disjunct>>,
    /// By variable: the extents.
    pub shapes: Vec<Vec<usize>>,
    /// The loop tree.
    pub body: Vec<Step>,
}

/// A node of the loop tree.
#[derive(Clone, Debug)]
pub enum Step {
    Loop { iname: InameId, outer: Vec<InameId>, body: Vec<Step> },
    Insn(InsnId),
}

impl Int {
    /// The integers that the value is made of and that memory holds, conditions and reductions left
    /// out.
    pub fn loads(&self) -> Vec<&Place> {
        match self {
            Self::Const(_)
            | Self::Iname(_)
            | Self::FromReal(..)
            | Self::FromTruth(_)
            | Self::Select(..)
            | Self::Reduce { .. } => Vec::new(),
            Self::Load(place) => vec![place],
            Self::Converted(_, a) | Self::Neg(a, _) => a.loads(),
            Self::Arith { a, b, .. } => a.loads().into_iter().chain(b.loads()).collect(),
        }
    }
}
