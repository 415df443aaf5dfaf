//! Transformations of the degrees of freedom of a cell by the orientation of its entities.

use super::builder::Builder;
use super::entity::side_suffix;
use super::locals::{LocalVar, with_component};
use super::needed::matrix_extents;
use crate::form::FormError;
use crate::program::stage;
use crate::tabulated::{Side, Transform};
use kingpost_ir::{Access, Expr, VarId};

/// Which of a matrix and its transpose is multiplied by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    /// `M x`.
    Matrix,
    /// `M^T x`.
    Transposed,
}

/// Multiplies gathered degrees of freedom by the matrices of their states.
pub(super) fn transform_input(w: &mut Builder<'_>, local: &LocalVar) -> Result<(), FormError> {
    let names = vector(w, local, Factor::Matrix)?;
    w.roles.transforms.extend(names);
    Ok(())
}

/// Multiplies results by the transposed matrices of their states.
pub(super) fn transform_result(w: &mut Builder<'_>, local: &LocalVar) -> Result<(), FormError> {
    let names = vector(w, local, Factor::Transposed)?;
    w.roles.result_transforms.extend(names);
    Ok(())
}

/// Names of the instructions.
fn vector(w: &mut Builder<'_>, local: &LocalVar, which: Factor) -> Result<Vec<String>, FormError> {
    let data = &local.local;
    let mut names = Vec::new();
    for component in local.components() {
        let element = |dof: usize| Access::new(local.var, with_component(Expr::Int(dof as i64), component));
        names.extend(apply(w, data.space, data.side, which, &element)?);
    }
    Ok(names)
}

/// Multiplies a matrix by those of its test and trial functions.
pub(super) fn transform_matrix(w: &mut Builder<'_>, output: usize, matrix: VarId) -> Result<(), FormError> {
    let spaces = w.form.outputs[output].spaces.clone();
    let kind = w.vars.entities.kind;
    let extents: Vec<usize> = matrix_extents(w.form, output, kind).collect();
    for (axis, space) in spaces.iter().enumerate() {
        let data = &w.form.spaces[*space];
        if data.transforms.is_empty() {
            continue;
        }
        let (n, block) = (data.columns, data.block);
        let (_, other) = w.loop_over("k_state", extents[1 - axis]);
        for (s, side) in kind.sides().iter().enumerate() {
            for component in 0..block {
                let element = |dof: usize| {
                    let own = Expr::Int(((s * n + dof) * block + component) as i64);
                    let index = if axis == 0 { [own, other.clone()] } else { [other.clone(), own] };
                    Access::new(matrix, index)
                };
                let names = apply(w, *space, *side, Factor::Transposed, &element)?;
                w.roles.result_transforms.extend(names);
            }
        }
        w.b.close_loop();
    }
    Ok(())
}

/// Applies all transforms of a space to the elements of its degrees of freedom; names of the
/// instructions.
fn apply(
    w: &mut Builder<'_>,
    space: usize,
    side: Option<Side>,
    which: Factor,
    element: &dyn Fn(usize) -> Access,
) -> Result<Vec<String>, FormError> {
    let mut names = Vec::new();
    let states =
        *w.vars.states.get(&space).ok_or_else(|| FormError::Internal("a space without states".into()))?;
    let transforms = &w.form.spaces[space].transforms;
    for (k, transform) in transforms.iter().enumerate() {
        let state = Expr::load(states, [w.cell(side), Expr::Int(k as i64)]);
        let n = transform.dofs.len();
        let name = format!("{}_transform", w.form.spaces[space].name);
        let table = w.table(&name, transform.matrices.shape(), transform.matrices.entries());
        let mut written = Vec::new();
        for a in (0..n).filter(|a| !is_unit(transform, which, *a)) {
            let mut sum: Option<Expr> = None;
            for b in (0..n).filter(|b| !is_zero(transform, which, a, *b)) {
                let (row, column) = place(which, a, b);
                let entry =
                    Expr::load(table, [state.clone(), Expr::Int(row as i64), Expr::Int(column as i64)]);
                let product = entry * Expr::Load(element(transform.dofs[b]));
                sum = Some(sum.map_or(product.clone(), |s| s + product));
            }
            let sum = sum.unwrap_or(Expr::from(0.0));
            let var = w.scalar(&format!("turned{}", side_suffix(side)), &sum)?;
            let insn = w.assign("turn", Access::scalar(var), sum);
            names.push(w.label(insn, stage::TRANSFORM, None));
            written.push((a, var));
        }
        for (a, var) in written {
            let insn = w.assign("set_turned", element(transform.dofs[a]), Expr::scalar(var));
            names.push(w.label(insn, stage::TRANSFORM, None));
        }
    }
    Ok(names)
}

fn place(which: Factor, a: usize, b: usize) -> (usize, usize) {
    match which {
        Factor::Matrix => (a, b),
        Factor::Transposed => (b, a),
    }
}

/// The entry of a state.
fn entry(transform: &Transform, which: Factor, state: usize, a: usize, b: usize) -> f64 {
    let n = transform.dofs.len();
    let (row, column) = place(which, a, b);
    transform.matrices.entries()[(state * n + row) * n + column]
}

fn states(transform: &Transform) -> usize {
    transform.matrices.shape()[0]
}

/// Whether an entry is zero in all states.
fn is_zero(transform: &Transform, which: Factor, a: usize, b: usize) -> bool {
    (0..states(transform)).all(|s| entry(transform, which, s, a, b) == 0.0)
}

/// Whether a row keeps its degree of freedom in all states.
fn is_unit(transform: &Transform, which: Factor, a: usize) -> bool {
    let n = transform.dofs.len();
    let unit = |b: usize| if a == b { 1.0 } else { 0.0 };
    (0..states(transform)).all(|s| (0..n).all(|b| entry(transform, which, s, a, b) == unit(b)))
}
