//! Why a form is not lowered in another way.

use crate::form::FormError;
use kingpost_fem::quadrature::QuadratureScheme;

/// Why a kernel has no symmetric tables.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoSymmetry {
    /// There are tables, and no form.
    #[error("`{kernel}` has tables, and no form to take symmetric ones for; lower the form")]
    NoForm {
        /// Name of the kernel.
        kernel: String,
    },
    /// There are tables, and they do not follow the form to other directions.
    #[error(
        "`{kernel}` has no tables along symmetric directions: found {found}, needed integrals over straight triangles \
         or tetrahedra with first derivatives of elements with nodes; keep its tables"
    )]
    Tables {
        /// Name of the kernel.
        kernel: String,
        /// What stands in the way.
        found: String,
    },
    /// A permutation of the vertices moves nodes to where there are none.
    #[error("the nodes of `{kernel}` are not where permutations of the vertices move them; keep its tables")]
    Nodes {
        /// Name of the kernel.
        kernel: String,
    },
    /// A mapping that combines nothing in orbits.
    #[error(
        "`{mapping}` combines no degrees of freedom in orbits, needed `straight_cells`, `listed_cells`, `matrix_cells` or `matrix_groups`"
    )]
    Mapping {
        /// The mapping.
        mapping: String,
    },
    /// A mapping that combines no points in orbits.
    #[error("`{mapping}` combines no points in orbits, needed `straight_cells`")]
    Points {
        /// The mapping.
        mapping: String,
    },
    /// The form cannot be lowered with symmetric directions.
    #[error(transparent)]
    Form(#[from] FormError),
}

/// Why the quadrature rules of a kernel stay what they are.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OtherRules {
    /// There are tables, and no form.
    #[error(
        "`{kernel}` has the tables of its rules, and no form to take those of `{scheme}` for; lower the form with them"
    )]
    NoForm {
        /// Name of the kernel.
        kernel: String,
        /// The scheme that was asked for.
        scheme: QuadratureScheme,
    },
    /// Another rule could give another result.
    #[error(
        "integral {integral} of the form would have another value with another rule: {reason}; keep its rule"
    )]
    Inexact {
        /// Place of the integral in the form.
        integral: usize,
        /// Why it would.
        reason: &'static str,
    },
    /// The form cannot be lowered with the scheme.
    #[error(transparent)]
    Form(#[from] FormError),
}
