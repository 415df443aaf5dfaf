//! The sizes of a problem that the tiling depends on.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Sizes of one discrete function in the kernel of a form.
///
/// Kulkarni & Klöckner 2025 has one reference matrix for each derivative. The components of a
/// vector function share their matrices: 3-D elasticity evaluates nine derivatives with three
/// matrices, and fetches three.
///
/// # Source
/// Kulkarni & Klöckner 2025, equation (15) and Table 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpaceSizes {
    /// Name of the function in the kernel.
    pub name: String,
    /// Basis functions of one component on a cell: `n_U`, `n_V`, `n_W`.
    pub nodes: u64,
    /// Components; 1 for a scalar function, `d` for a vector function.
    pub components: u64,
    /// Derivatives of components (and components themselves) that are evaluated at a point,
    /// `N^deriv`; for the test function the factors `e_k`.
    pub derivatives: u64,
    /// Distinct reference matrices that they are evaluated with, at most `derivatives`.
    pub matrices: u64,
}

impl SpaceSizes {
    /// A scalar function: each of its derivatives has a matrix of its own.
    pub fn scalar(name: impl Into<String>, nodes: u64, derivatives: u64) -> Self {
        Self { name: name.into(), nodes, components: 1, derivatives, matrices: derivatives }
    }

    /// A vector function with all `matrices` derivatives of each of its components.
    pub fn vector(name: impl Into<String>, nodes: u64, components: u64, matrices: u64) -> Self {
        let derivatives = components.saturating_mul(matrices);
        Self { name: name.into(), nodes, components, derivatives, matrices }
    }

    /// Degrees of freedom of all components on a cell.
    #[must_use]
    pub fn dofs(&self) -> u64 {
        self.nodes.saturating_mul(self.components)
    }
}

impl fmt::Display for SpaceSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, nodes, components, derivatives, matrices } = self;
        write!(f, "`{name}`: {nodes} nodes x {components}, {derivatives} derivatives by {matrices} matrices")
    }
}

/// Sizes of a kernel of Algorithm 2 of Kulkarni & Klöckner 2025, which the quantities of its tiling
/// depend on.
///
/// # Source
/// Kulkarni & Klöckner 2025, Table 2 and section 4.2.4.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TilingSizes {
    /// Points of the quadrature rule, `Q`.
    pub quadrature_points: u64,
    /// Functions that are evaluated, scalar and vector ones, in the order of the kernel;
    /// coordinates are among them only where the geometry is evaluated at each point.
    pub trial: Vec<SpaceSizes>,
    /// The test function, `W`.
    pub test: SpaceSizes,
    /// Bytes of a floating-point word, `s`.
    pub word_bytes: u64,
}

impl TilingSizes {
    /// Operations of all small matrix–vector products of a cell: a multiplication and an addition
    /// for each entry of a matrix.
    ///
    /// # Shapes and units
    /// FLOP per cell.
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, equation (28); it has `n_U` where `n_V` is meant in the sum over
    /// vector spaces.
    #[must_use]
    pub fn usable_ops(&self) -> u64 {
        self.spaces().map(|s| 2 * s.derivatives * s.nodes * self.quadrature_points).sum()
    }

    /// The functions that are evaluated, then the test function.
    pub fn spaces(&self) -> impl Iterator<Item = &SpaceSizes> {
        self.trial.iter().chain([&self.test])
    }
}

impl fmt::Display for TilingSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} quadrature points; test function {}", self.quadrature_points, self.test)?;
        self.trial.iter().try_for_each(|space| write!(f, "; {space}"))
    }
}
