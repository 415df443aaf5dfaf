//! What can be wrong with a form.

use super::role::Role;
use super::shape::Shape;
use kingpost_capacity::OutOfMemory;
use kingpost_fem::element::{CellShape, NodeMismatch};

/// A mistake in a form, named after the operation as it was written.
///
/// Operators on expressions do not return it: they carry it inside the expression, and it comes
/// out of the first call that needs a correct form ([`Form::check`](super::Form::check), lowering,
/// the reference).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FormError {
    /// Two operands that do not fit each other.
    #[error("`{operation}`: found {left} and {right}, needed {needed}")]
    Shapes {
        /// The operation as written.
        operation: &'static str,
        /// Shape of the first operand.
        left: Shape,
        /// Shape of the second operand.
        right: Shape,
        /// What would have been accepted.
        needed: &'static str,
    },
    /// An operand that the operation does not take.
    #[error("`{operation}`: found {found}, needed {needed}")]
    Operand {
        /// The operation as written.
        operation: &'static str,
        /// Shape of the operand.
        found: Shape,
        /// What would have been accepted.
        needed: &'static str,
    },
    /// An index that does not exist.
    #[error(
        "index [{index}] of `{expr}`: its shape is {shape}; count from 0 and give as many indices as it has"
    )]
    Index {
        /// The index as written.
        index: String,
        /// The indexed expression.
        expr: String,
        /// Its shape.
        shape: Shape,
    },
    /// The second argument of `derivative` is not a coefficient.
    #[error("`derivative`: cannot differentiate by `{found}`, needed a coefficient")]
    NotACoefficient {
        /// What was given.
        found: String,
    },
    /// The second argument of `diff` is not a variable.
    #[error("`diff`: cannot differentiate by `{found}`, wrap it once with `variable(..)` and use the result")]
    NotAVariable {
        /// What was given.
        found: String,
    },
    /// The machine has too little memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// `action` of a form without trial function.
    #[error("`action`: the form holds no trial function to be replaced")]
    NoTrial,
    /// A form to be lowered or evaluated still holds a trial function.
    #[error(
        "the form holds a trial function, needed a linear form; take its `action(form, coefficient)` first"
    )]
    TrialLeft,
    /// A form without test function.
    #[error("`{term}` holds no test function, needed a form that is linear in one")]
    NoTest {
        /// The offending part of the integrand.
        term: String,
    },
    /// A term of a bilinear form without trial function.
    #[error(
        "{term} holds no trial function, where others do; take the terms without one as a form of their own"
    )]
    NoTrialIn {
        /// The offending part of the integrand.
        term: String,
    },
    /// A form with a trial function and no test function.
    #[error("the form holds a trial function and no test function; write `test` in its place")]
    TrialAlone,
    /// The test or the trial function occurs in a way that is not linear.
    #[error("the form is not linear in the {} function: it occurs in {place}", .function.word())]
    NotLinear {
        /// Which of them.
        function: Role,
        /// Where it occurs.
        place: String,
    },
    /// The form mixes cell shapes.
    #[error("the form mixes functions on a {first} and on a {second}, needed one cell shape")]
    MixedCells {
        /// One cell shape.
        first: CellShape,
        /// Another.
        second: CellShape,
    },
    /// Cells that the form language does not serve.
    #[error(
        "{place} has other cells than straight triangles or tetrahedra, which the form language does not serve; import the form with its geometry as a field"
    )]
    Cells {
        /// The form, or the mesh.
        place: &'static str,
    },
    /// A facet's normal or area where there is no facet, or a derivative of a normal that is not
    /// known.
    #[error("`{name}`: found {found}, needed {needed}")]
    Facet {
        /// `facet_normal` or `facet_area`.
        name: &'static str,
        /// Where it is.
        found: &'static str,
        /// What would have been accepted.
        needed: &'static str,
    },
    /// A side of an interior facet is missing, or there is none.
    #[error("`{expr}` in an integral by `{measure}`: found {found}, needed {needed}")]
    Restriction {
        /// The part of the integrand.
        expr: String,
        /// What it has.
        found: &'static str,
        /// The measure as written.
        measure: String,
        /// What would have been accepted.
        needed: &'static str,
    },
    /// An integral over a part of the mesh, where all cells are needed.
    #[error(
        "`{measure}`: found an integral over a part of the mesh, needed integrals over all cells, by `dx()`; take `MeshForm` instead of {place}"
    )]
    Region {
        /// The measure as written.
        measure: String,
        /// What does not serve it.
        place: &'static str,
    },
    /// Nothing in the form says which cells it is on.
    #[error("the form holds no function, so its cells are unknown; multiply by a test function")]
    NoFunction,
    /// Two different functions or constants have one name.
    #[error("`{name}` names two different things in the form; give one of them another name")]
    Name {
        /// The name.
        name: String,
    },
    /// A name that cannot stand in a kernel.
    #[error(
        "`{name}` cannot be a name in a kernel: use a letter or `_`, then letters, digits and `_`, and no keyword or function"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// A state that cannot be.
    #[error("bug of kingpost: {0}; report it with the form")]
    Internal(String),
    /// A form without integrals.
    #[error("the form has no integral, multiply an expression by `dx()`")]
    Empty,
    /// Operations that nest deeper than supported.
    #[error("`{term}`: derivative of order {order}, needed order at most {limit}; integrate by parts")]
    Order {
        /// The derivative.
        term: String,
        /// Its order.
        order: usize,
        /// The highest supported order.
        limit: usize,
    },
    /// An expression that is too deep.
    #[error("an expression nests more than {limit} operations in each other; add long sums pairwise")]
    Depth {
        /// The deepest nesting.
        limit: usize,
    },
    /// An expression whose derivatives, written out, are too many operations.
    #[error("the form is more than {limit} operations with its derivatives carried out; take fewer of them")]
    Size {
        /// The most operations.
        limit: usize,
    },
    /// A field or constant that has to be given was not.
    #[error("no value for `{name}`, needed {needed}")]
    Missing {
        /// Name of the coefficient or constant.
        name: String,
        /// What is needed.
        needed: String,
    },
    /// A value for a name that the form does not have.
    #[error("a value is given for `{name}`, {found}; {}the form has {known}", .hint.as_deref().unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// What was given, and what stands against it.
        found: &'static str,
        /// The nearest name, as a question.
        hint: Option<String>,
        /// The names of the form.
        known: String,
    },
    /// Nodes from elsewhere are not those of the tables.
    #[error(transparent)]
    Nodes(#[from] NodeMismatch),
    /// A field of the wrong length.
    #[error("`{name}` has {found} values, needed {needed}")]
    Length {
        /// Name of the coefficient or constant.
        name: String,
        /// Length found.
        found: usize,
        /// Length needed.
        needed: String,
    },
    /// An element, a quadrature rule or a numbering that does not exist.
    #[error("{0}")]
    Discretisation(String),
    /// The system gives no thread.
    #[error("cannot start a thread for the reference: {0}")]
    Thread(String),
    /// A kernel that breaks a rule of the kernel language: a bug of Kingpost.
    #[error("bug of kingpost: {0}; please report it with the form")]
    Bug(String),
}
