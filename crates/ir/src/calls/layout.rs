//! What code asks of its arguments beyond their meaning: different arguments in different memory,
//! and windows that lie in memory as declared where their address is taken.

use super::{Arg, Binding, Callee, Mismatch, Piece, Window};
use crate::affine::Affine;
use crate::ids::VarId;
use crate::kernel::{Kernel, Variable};
use std::collections::BTreeSet;

/// Checks the arguments of a call of a callee with code.
///
/// # Errors
/// The first argument that does not fit.
pub(super) fn check(kernel: &Kernel, callee: &Callee, binding: &Binding) -> Result<(), Mismatch> {
    if callee.code.is_empty() {
        return Ok(());
    }
    check_aliases(kernel, callee, binding)?;
    let pieces = callee.code.iter().flat_map(|code| &code.text);
    let addressed: BTreeSet<VarId> = pieces
        .filter_map(|piece| match piece {
            Piece::Address(access) => Some(access.var),
            Piece::Element(_) | Piece::Text(_) => None,
        })
        .collect();
    for var in addressed {
        use crate::ids::Id;
        if let Some(Arg::Window(window)) = binding.args.get(var.index()) {
            check_strides(kernel, callee, binding, (var, window))?;
        }
    }
    Ok(())
}

/// Code may read everything before it writes anything: an array that it writes is one argument
/// only.
fn check_aliases(kernel: &Kernel, callee: &Callee, binding: &Binding) -> Result<(), Mismatch> {
    let written: BTreeSet<VarId> = callee.kernel.insns.values().map(|i| i.lhs.var).collect();
    let windows = || {
        callee.kernel.vars.iter().zip(&binding.args).filter_map(|((id, var), arg)| match arg {
            Arg::Window(window) => Some((id, var, window)),
            Arg::Unused | Arg::Param(_) | Arg::Value(_) => None,
        })
    };
    for (a, first, x) in windows() {
        for (b, second, y) in windows() {
            if a != b && x.var == y.var && written.contains(&a) {
                let name = &kernel.vars[x.var].name;
                let what = format!("the arguments `{}` and `{}`", first.name, second.name);
                return Err(Mismatch::new(what, format!("both in `{name}`"), "different arrays"));
            }
        }
    }
    Ok(())
}

/// With `S` the strides of the array and `M` the steps of the window, `sum_k S[k] M[k][a]` is the
/// declared stride of each axis `a`, unless that has one element.
fn check_strides(
    kernel: &Kernel,
    callee: &Callee,
    binding: &Binding,
    (var, window): (VarId, &Window),
) -> Result<(), Mismatch> {
    let declared = &callee.kernel.vars[var];
    let base = &kernel.vars[window.var];
    let what = |axis: usize| format!("the stride of axis {axis} of `{}`", declared.name);
    let needed =
        strides(declared).ok_or_else(|| Mismatch::new(what(0), "a product of parameters", "a constant"))?;
    let found = strides(base)
        .ok_or_else(|| Mismatch::new(what(0), format!("that of `{}`, a product", base.name), "a constant"))?;
    for (a, needed) in needed.iter().enumerate() {
        if declared.shape[a].as_constant().is_some_and(|n| n <= 1) {
            continue;
        }
        let terms =
            window.axes.iter().zip(&found).map(|(axis, s)| s.times(axis.steps.get(a).copied().unwrap_or(0)));
        let stride = terms.fold(Affine::constant(0), |sum, term| sum.plus(&term));
        if binding.value(needed).as_ref() != Some(&stride) {
            let found = format!("{} in `{}`", kernel.show_affine(&stride), base.name);
            return Err(Mismatch::new(what(a), found, callee.kernel.show_affine(needed).to_string()));
        }
    }
    Ok(())
}

/// Elements between neighbours along each axis; `None` if that is a product of parameters.
fn strides(var: &Variable) -> Option<Vec<Affine>> {
    if let Some(strides) = &var.layout.strides {
        return Some(strides.clone());
    }
    let mut strides = vec![Affine::constant(1); var.shape.len()];
    let mut stride = Some(Affine::constant(1));
    for (axis, extent) in var.shape.iter().enumerate().rev() {
        let here = stride?;
        stride = match (here.as_constant(), extent.as_constant()) {
            (Some(c), _) => Some(extent.times(c)),
            (_, Some(c)) => Some(here.times(c)),
            (None, None) => None,
        };
        strides[axis] = here;
    }
    Some(strides)
}
