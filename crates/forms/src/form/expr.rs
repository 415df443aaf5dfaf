//! Expressions: an immutable graph whose nodes are shared.

use super::error::FormError;
use super::role::Role;
use super::shape::Shape;
use super::space::FunctionSpace;
use crate::side::Side;
use kingpost_fem::element::CellShape;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// An expression: scalar, vector or matrix valued on the cells of a mesh.
///
/// Cloning is cheap (a shared pointer). Operators never fail: a mistake is carried inside and
/// comes out of [`Form::check`](super::Form::check) and of everything that needs a correct form.
#[derive(Clone)]
pub struct Expr(Arc<Node>);

struct Node {
    kind: Kind,
    shape: Shape,
    cell: Option<CellShape>,
    depth: usize,
    components: OnceLock<Vec<Expr>>,
    outside: OnceLock<Expr>,
}

/// Operations that may be nested in each other: bounds the recursion of everything that walks
/// expressions.
const MAX_DEPTH: usize = 1000;

/// A given function in a space, known at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coefficient {
    /// Its name, unique within a form.
    pub name: String,
    /// The space it is in.
    pub space: FunctionSpace,
}

/// A number or vector known at run time, the same on all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name, unique within a form.
    pub name: String,
    /// Scalar or vector.
    pub shape: Shape,
    /// Values used where none are given, one per component.
    pub default: Option<Vec<f64>>,
}

/// Operations on one expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// Minus.
    Negate,
    /// `A_ji`.
    Transpose,
    /// `A_ii`.
    Trace,
    /// Determinant.
    Determinant,
    /// Inverse matrix.
    Inverse,
    /// `(A + A^T)/2`.
    Symmetric,
    /// Derivatives by all coordinates, the coordinate last: `grad(u)[(i, j)] = ∂_j u_i`.
    Gradient,
    /// `∂_j u_j`, or `∂_j A_ij` of a matrix.
    Divergence,
    /// Rotation; in two dimensions of a scalar (a vector) or of a vector (a scalar).
    Curl,
}

/// Operations on two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Sum of equal shapes.
    Add,
    /// Difference of equal shapes.
    Subtract,
    /// Scalar times anything, matrix times matrix or vector.
    Multiply,
    /// Anything over a scalar.
    Divide,
    /// Scalar to a scalar power.
    Power,
    /// The angle of the point `(right, left)`, in radians.
    Atan2,
    /// Sum of the products of all components.
    Inner,
    /// Sum over the last index of the first and the first index of the second.
    Dot,
    /// All products of components.
    Outer,
}

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MathFunction {
    /// Exponential.
    Exp,
    /// Natural logarithm.
    Ln,
    /// Square root.
    Sqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Inverse sine.
    Asin,
    /// Inverse cosine.
    Acos,
    /// Inverse tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// Bessel function of the first kind, of an order.
    BesselJ(u16),
    /// Bessel function of the second kind, of an order.
    BesselY(u16),
}

/// Sizes of straight simplices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// The volume of the cell: its length, area or volume.
    CellVolume,
    /// The largest distance of two of its vertices.
    CellDiameter,
    /// The area of the facet: its length in the plane, 1 on a line.
    FacetArea,
}

impl Size {
    /// The function of the language that makes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::CellVolume => "cell_volume",
            Self::CellDiameter => "cell_diameter",
            Self::FacetArea => "facet_area",
        }
    }
}

/// What a node of an expression is.
#[derive(Clone)]
pub enum Kind {
    /// A number.
    Literal(f64),
    /// The identity matrix.
    Identity(usize),
    /// A number or vector known at run time.
    Constant(Arc<Constant>),
    /// A given function.
    Coefficient(Arc<Coefficient>),
    /// A test or trial function.
    Argument(Role, FunctionSpace),
    /// The position in space.
    Coordinate,
    /// The unit normal of a facet, out of the cell.
    FacetNormal,
    /// A size of the cell or of the facet.
    Size(Size),
    /// Components put together, row by row.
    Components(Vec<Expr>),
    /// An operation on one expression.
    Unary(Unary, Expr),
    /// An operation on two expressions.
    Binary(Binary, Expr, Expr),
    /// A function of a scalar.
    Math(MathFunction, Expr),
    /// One component: row and column, or the component of a vector and 0.
    Index(Expr, usize, usize),
    /// One of two expressions of equal shape.
    Conditional(Box<Compared>, Expr, Expr),
    /// The values of an expression on one side of an interior facet.
    Restricted(Side, Expr),
    /// An expression that can be differentiated by, with its identity.
    Variable(u64, Expr),
    /// Derivative of the first by the second, which is a variable.
    Diff(Expr, Expr),
    /// Derivative of the first by the second, a coefficient, in the direction of the third.
    Gateaux(Expr, Expr, Expr),
    /// A mistake.
    Error(FormError),
}

impl Expr {
    /// Builds a node from operands: the first mistake among them or in `shape` is carried on.
    pub(crate) fn build(operands: &[&Expr], shape: Result<Shape, FormError>, kind: Kind) -> Self {
        if let Some(error) = operands.iter().find_map(|e| e.error()) {
            return Self::poison(error.clone());
        }
        let shape = match shape {
            Ok(shape) => shape,
            Err(error) => return Self::poison(error),
        };
        let mut cell = None;
        for found in operands.iter().filter_map(|e| e.cell()) {
            match cell {
                Some(first) if first != found => return Self::poison(mixed(first, found)),
                Some(_) | None => cell = Some(found),
            }
        }
        let depth = 1 + operands.iter().map(|e| e.0.depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return Self::poison(FormError::Depth { limit: MAX_DEPTH });
        }
        Self::node(kind, shape, cell, depth)
    }

    /// A terminal.
    pub(crate) fn terminal(kind: Kind, shape: Shape, cell: Option<CellShape>) -> Self {
        Self::node(kind, shape, cell, 0)
    }

    /// An expression that is a mistake.
    pub(crate) fn poison(error: FormError) -> Self {
        Self::node(Kind::Error(error), Shape::Scalar, None, 0)
    }

    fn node(kind: Kind, shape: Shape, cell: Option<CellShape>, depth: usize) -> Self {
        Self(Arc::new(Node {
            kind,
            shape,
            cell,
            depth,
            components: OnceLock::new(),
            outside: OnceLock::new(),
        }))
    }

    /// What the top of the expression is.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its shape; scalar if the expression is a mistake.
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// The cells it lives on; `None` for what is the same on all meshes.
    pub fn cell(&self) -> Option<CellShape> {
        self.0.cell
    }

    /// The mistake it carries.
    pub fn error(&self) -> Option<&FormError> {
        match self.kind() {
            Kind::Error(error) => Some(error),
            _ => None,
        }
    }

    /// Whether both are the same node.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Identity of the node while it is alive, for memoisation.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Component `row` of a vector, or `row`, `column` of a matrix.
    ///
    /// # Errors
    /// An index beyond the shape gives an expression that carries [`FormError::Index`].
    pub fn component(&self, row: usize, column: usize) -> Expr {
        let inside = match self.shape() {
            Shape::Scalar => false,
            Shape::Vector(n) => row < n && column == 0,
            Shape::Matrix(m, n) => row < m && column < n,
        };
        let shape = if inside { Ok(Shape::Scalar) } else { Err(self.index_error(row, column)) };
        Self::build(&[self], shape, Kind::Index(self.clone(), row, column))
    }

    fn index_error(&self, row: usize, column: usize) -> FormError {
        let index = match self.shape() {
            Shape::Scalar | Shape::Vector(_) => row.to_string(),
            Shape::Matrix(_, _) => format!("{row}, {column}"),
        };
        FormError::Index { index, expr: self.to_string(), shape: self.shape() }
    }

    /// A component by reference, kept in the node so that `u[i]` can lend it out.
    pub(crate) fn lend(&self, rank: usize, row: usize, column: usize) -> &Expr {
        let (columns, rank_fits) = match self.shape() {
            Shape::Scalar => (0, false),
            Shape::Vector(_) => (1, rank == 1),
            Shape::Matrix(_, n) => (n, rank == 2),
        };
        if self.error().is_some() {
            return self;
        }
        let place = row.checked_mul(columns).and_then(|k| k.checked_add(column));
        match place.and_then(|k| self.components().get(k)) {
            Some(component) if rank_fits && column < columns => component,
            Some(_) | None => self.0.outside.get_or_init(|| Self::poison(self.index_error(row, column))),
        }
    }

    fn components(&self) -> &[Expr] {
        self.0.components.get_or_init(|| {
            // A copy of the top node: keeping the node itself would be a cycle of counted pointers.
            let top = Self::node(self.0.kind.clone(), self.0.shape, self.0.cell, self.0.depth);
            let columns = match self.shape() {
                Shape::Matrix(_, n) => n,
                Shape::Scalar | Shape::Vector(_) => 1,
            };
            (0..self.shape().size()).map(|k| top.component(k / columns.max(1), k % columns.max(1))).collect()
        })
    }
}

fn mixed(first: CellShape, second: CellShape) -> FormError {
    FormError::MixedCells { first, second }
}

/// A number that no other variable has.
pub(crate) fn fresh_label() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Self {
        expr.clone()
    }
}

impl From<f64> for Expr {
    fn from(value: f64) -> Self {
        Self::terminal(Kind::Literal(value), Shape::Scalar, None)
    }
}

impl From<i32> for Expr {
    fn from(value: i32) -> Self {
        Self::from(f64::from(value))
    }
}

/// A comparison of two scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// Less.
    Less,
    /// Less or equal.
    LessEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterEqual,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
}

impl Comparison {
    /// The symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }

    /// Whether it holds between two numbers.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }
}

/// Two scalars that are compared.
#[derive(Clone)]
pub struct Compared {
    /// How.
    pub comparison: Comparison,
    /// Left-hand side, a scalar.
    pub left: Expr,
    /// Right-hand side, a scalar.
    pub right: Expr,
}
