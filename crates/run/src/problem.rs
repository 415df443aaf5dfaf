//! A form on a mesh with inputs, and what its result must be.

use kingpost_fem::mesh::{Mesh, MeshCounts};
use kingpost_fem::numbering::{Numbering, NumberingError, NumberingOrder};
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::form::{Form, FormError, FunctionSpace, Inputs};
use kingpost_forms::lowering::{Argument, ArgumentRole, LoweredForm, LoweringOptions, lower};
use kingpost_forms::reference;
use kingpost_interp::Memory;
use kingpost_kernels::{Operator, OperatorError};
use std::collections::BTreeMap;

use crate::random::Random;
use kingpost_capacity::{OutOfMemory, check_memory};

/// Why there is no such problem.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// There is no such operator.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The form is wrong, or does not fit the mesh.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The degrees of freedom cannot be numbered.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The machine has too little memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// A result of another length.
    #[error("the result has {found} entries, needed {needed}")]
    Length {
        /// Entries of the result.
        found: usize,
        /// Entries of the reference.
        needed: usize,
    },
}

/// A linear form, lowered, on a mesh with pseudo-random inputs.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The kernel and what its arguments stand for.
    pub lowered: LoweredForm,
    /// The mesh.
    pub mesh: Mesh,
    /// Values of coefficients and constants.
    pub inputs: Inputs,
    /// The same as values of the kernel's parameters and arguments; the result starts at zero.
    pub memory: Memory,
    /// Entries of the result: degrees of freedom times components.
    pub n_dofs: usize,
}

/// Distance of a result from the reference, relative to the reference's size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeError {
    /// In the Euclidean norm.
    pub l2: f64,
    /// In the maximum norm.
    pub max: f64,
}

impl RelativeError {
    /// Of `found` with respect to `expected`, entry by entry. Any NaN equals any NaN, and infinity
    /// itself; where only one of both is a number no comparison with a tolerance passes.
    #[must_use]
    pub fn between(found: &[f64], expected: &[f64]) -> Self {
        let (mut sum, mut size, mut max, mut largest) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        for (a, b) in found.iter().zip(expected) {
            let same = a == b || (a.is_nan() && b.is_nan());
            let d = if same { 0.0 } else { (a - b).abs() };
            sum += d * d;
            max = if d > max || d.is_nan() { d } else { max };
            if b.is_finite() {
                size += b * b;
                largest = largest.max(b.abs());
            }
        }
        if sum == 0.0 {
            return Self { l2: 0.0, max: 0.0 };
        }
        let max = if sum.is_nan() { f64::NAN } else { max };
        Self { l2: (sum / size).sqrt(), max: max / largest }
    }

    /// Whether both are at most `tolerance`.
    #[must_use]
    pub fn is_within(&self, tolerance: f64) -> bool {
        self.l2 <= tolerance && self.max <= tolerance
    }
}

impl Problem {
    /// An operator of Kulkarni & Klöckner 2025 on Lagrange elements of
    /// `degree`, named like `laplace_3d_p4`.
    ///
    /// # Errors
    /// As [`Problem::new`].
    pub fn operator(
        operator: Operator,
        degree: usize,
        scheme: Option<QuadratureScheme>,
        mesh: Mesh,
        seed: u64,
    ) -> Result<Self, ProblemError> {
        let dim = mesh.shape().dim();
        let name = operator.kernel_name(dim, degree);
        Self::new(&name, &operator.form(dim, degree)?, scheme, mesh, seed)
    }

    /// Lowers `form` and draws inputs from the stream of `seed`, uniform in [-1, 1).
    ///
    /// # Errors
    /// A form that cannot be lowered or does not fit the mesh, more than 2³¹ degrees of freedom,
    /// constants without a default.
    pub fn new(
        name: &str,
        form: &Form,
        scheme: Option<QuadratureScheme>,
        mesh: Mesh,
        seed: u64,
    ) -> Result<Self, ProblemError> {
        let options = LoweringOptions { scheme, ..LoweringOptions::new(name) };
        Self::lowered(lower(form, &options)?, mesh, seed)
    }

    /// Draws inputs of a lowered form from the stream of `seed`, uniform in [-1, 1). Degrees of
    /// freedom are numbered [by dimension](NumberingOrder::OF_ACTIONS).
    ///
    /// # Errors
    /// As [`Problem::new`].
    pub fn lowered(lowered: LoweredForm, mesh: Mesh, seed: u64) -> Result<Self, ProblemError> {
        Self::in_order(lowered, mesh, NumberingOrder::OF_ACTIONS, seed)
    }

    /// As [`Problem::lowered`], with degrees of freedom in the given order; by dimension or entity,
    /// with the vertices of cells [in ascending order](Mesh::with_ascending_vertices), so that
    /// those of an entity are consecutive.
    ///
    /// # Errors
    /// As [`Problem::new`].
    pub fn in_order(
        lowered: LoweredForm,
        mesh: Mesh,
        order: NumberingOrder,
        seed: u64,
    ) -> Result<Self, ProblemError> {
        Self::check_size(&lowered, &MeshCounts::of(&mesh))?;
        let mesh = match order {
            NumberingOrder::FirstTouch => mesh,
            NumberingOrder::ByDimension | NumberingOrder::ByEntity => mesh.with_ascending_vertices(),
            NumberingOrder::ByBlock => mesh.with_vertices_as_numbered(),
        };
        let mut sizes = BTreeMap::new();
        let mut random = Random::new(seed);
        let mut size = |space: &FunctionSpace| -> Result<usize, NumberingError> {
            let nodes = match sizes.get(&space.degree()) {
                Some(nodes) => *nodes,
                None => Numbering::new_in_order(&mesh, space.degree(), order)?.n_dofs(),
            };
            sizes.insert(space.degree(), nodes);
            Ok(nodes * space.components())
        };
        let mut inputs = Inputs::new().in_order(order);
        for argument in &lowered.arguments {
            if let ArgumentRole::Coefficient(coefficient) = &argument.role {
                inputs = inputs.field(&coefficient.name, random.numbers(size(&coefficient.space)?));
            }
        }
        let n_dofs = size(&lowered.test)?;
        let memory = lowered.bind(&mesh, &inputs)?;
        Ok(Self { lowered, mesh, inputs, memory, n_dofs })
    }

    /// Whether the problem of a form fits in the memory of this machine on a mesh, of which the
    /// counts are enough.
    ///
    /// # Errors
    /// [`ProblemError::Memory`].
    pub fn check_size(lowered: &LoweredForm, counts: &MeshCounts) -> Result<(), ProblemError> {
        let (what, needed) = ("the problem with its reference", bytes_of(lowered, counts));
        Ok(check_memory(what, needed, "use fewer cells or a lower degree")?)
    }

    /// The result, by an evaluation of the form that shares no code with lowering or code
    /// generation.
    ///
    /// # Errors
    /// As [`reference::action`].
    pub fn reference(&self) -> Result<Vec<f64>, ProblemError> {
        Ok(reference::action(&self.lowered.form, &self.mesh, &self.inputs)?)
    }

    /// Distance of a result from [`Problem::reference`].
    ///
    /// # Errors
    /// Another number of entries, or as [`Problem::reference`].
    pub fn relative_error(&self, found: &[f64]) -> Result<RelativeError, ProblemError> {
        let expected = self.reference()?;
        if found.len() != expected.len() {
            return Err(ProblemError::Length { found: found.len(), needed: expected.len() });
        }
        Ok(RelativeError::between(found, &expected))
    }

    /// Entries that are no finite number, neither in `found` nor in the reference: a comparison
    /// proves nothing of them.
    ///
    /// # Errors
    /// As [`Problem::reference`].
    pub fn not_finite(&self, found: &[f64]) -> Result<usize, ProblemError> {
        // the reference takes as long as a run: it is asked only where there is such an entry
        if found.iter().all(|x| x.is_finite()) {
            return Ok(0);
        }
        let expected = self.reference()?;
        Ok(found.iter().zip(&expected).filter(|(a, b)| !a.is_finite() && !b.is_finite()).count())
    }

    /// Name of the kernel's argument that takes the result.
    #[must_use]
    pub fn output(&self) -> &str {
        let found = self.lowered.arguments.iter().find(|a| matches!(a.role, ArgumentRole::Output(_)));
        found.map_or("y", |a| a.name.as_str())
    }
}

/// Copies of the arguments that are alive at once: those of the inputs, of the kernel's memory, of
/// a device on the host, and what numbering and reference have besides.
const COPIES: u64 = 4;

/// About the bytes of a problem: [`COPIES`] of its arguments. The degrees of freedom of degree p
/// are counted as p^d a vertex, which is exact inside a structured mesh and more than there are
/// elsewhere.
fn bytes_of(lowered: &LoweredForm, counts: &MeshCounts) -> u64 {
    let dim = counts.shape.dim() as u32;
    let (cells, vertices) = (counts.cells, counts.vertices);
    let corners = u64::from(dim) + 1;
    let dofs = |degree: usize| vertices.saturating_mul((degree as u64).saturating_pow(dim));
    let field = |space: &FunctionSpace| dofs(space.degree()).saturating_mul(8 * space.components() as u64);
    // (p + 1) ... (p + d) / d! nodes a cell
    let nodes = |p: u64| (1..=u64::from(dim)).fold(1, |n, k| n * (p + k) / k);
    let bytes = |argument: &Argument| match &argument.role {
        ArgumentRole::CellCount | ArgumentRole::VertexCount | ArgumentRole::DofCount { .. } => 0,
        ArgumentRole::Constant(..) => 0,
        ArgumentRole::Coordinates => 8 * u64::from(dim) * vertices,
        ArgumentRole::CellVertices => 4 * corners * cells,
        ArgumentRole::DofMap { degree } => 4 * nodes(*degree as u64) * cells,
        ArgumentRole::Coefficient(coefficient) => field(&coefficient.space),
        ArgumentRole::Output(space) => field(space),
    };
    lowered.arguments.iter().map(bytes).fold(0, u64::saturating_add).saturating_mul(COPIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_no_number_passes_no_tolerance() {
        let error = RelativeError::between(&[1.0, f64::NAN], &[1.0, 2.0]);
        assert!(!error.is_within(f64::INFINITY));
        let error = RelativeError::between(&[1.0, 2.5], &[1.0, 2.0]);
        assert!((error.max - 0.25).abs() < 1e-15 && (error.l2 - 0.5 / 5f64.sqrt()).abs() < 1e-15);
        assert!(RelativeError::between(&[0.0], &[0.0]).is_within(0.0));
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert!(RelativeError::between(&[nan, inf, -inf, 1.0], &[-nan, inf, -inf, 1.0]).is_within(0.0));
        for (found, expected) in [(1.0, nan), (1.0, inf), (inf, 1.0), (-inf, inf), (inf, nan)] {
            let error = RelativeError::between(&[found, 1.0], &[expected, 1.0]);
            assert!(!error.is_within(f64::MAX), "{found} {expected}");
        }
        // an infinite entry hides no other
        let error = RelativeError::between(&[inf, 1.5], &[inf, 1.0]);
        assert!((error.max - 0.5).abs() < 1e-15 && (error.l2 - 0.5).abs() < 1e-15);
    }
}
