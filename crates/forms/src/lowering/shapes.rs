//! Sizes and indices of arrays over the degrees of freedom of a cell.

use crate::form::{FunctionSpace, Jet};
use purlin_ir::{Affine, Expr};

/// Number of basis functions of a degree: the binomial of (degree + dim, dim).
pub(super) fn n_dofs(space: &FunctionSpace) -> usize {
    (1..=space.dim()).fold(1, |n, k| n * (space.degree() + k) / k)
}

/// Constant extents.
pub(super) fn extents(list: impl IntoIterator<Item = usize>) -> Vec<Affine> {
    list.into_iter().map(|n| Affine::constant(n as i64)).collect()
}

/// Shape of an array over the degrees of freedom of a cell: [dofs] or [dofs, components].
pub(super) fn local_shape(space: &FunctionSpace) -> Vec<Affine> {
    extents(std::iter::once(n_dofs(space)).chain(space.is_vector().then(|| space.dim())))
}

/// The components of a space, none for scalars (which have no index for it).
pub(super) fn components(space: &FunctionSpace) -> Vec<Option<usize>> {
    if space.is_vector() { (0..space.dim()).map(Some).collect() } else { vec![None] }
}

/// The index of a node and, for vectors, its component.
pub(super) fn with_component(node: Expr, component: Option<usize>) -> Vec<Expr> {
    std::iter::once(node).chain(component.map(|c| Expr::Int(c as i64))).collect()
}

/// `prefix`, `name` and, for vectors, the component.
pub(super) fn numbered(prefix: &str, name: &str, component: Option<usize>) -> String {
    component.map_or(format!("{prefix}{name}"), |c| format!("{prefix}{name}{c}"))
}

/// `u_q`, `u_d0`, `u1_q`, `u1_d0`.
pub(super) fn jet_name(name: &str, space: &FunctionSpace, jet: &Jet) -> String {
    let name = numbered("", name, space.is_vector().then_some(jet.component));
    jet.axis().map_or(format!("{name}_q"), |axis| format!("{name}_d{axis}"))
}
