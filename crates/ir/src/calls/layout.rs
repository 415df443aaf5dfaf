//! What code asks of its arguments beyond their meaning: different arguments in different memory,
//! and windows that lie in memory as declared where their address is taken.

use super::{Arg, Binding, Callee, Mismatch, Piece, Window};
use crate::affine::Affine;
use crate::expr::{Access, Expr};
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
    check_memory(kernel, callee, binding)?;
    super::asynchronous::check_memory(kernel, callee, binding)?;
    for code in &callee.code {
        let addressed = code.text.iter().filter_map(|piece| match piece {
            Piece::Address(access) => Some(access),
            Piece::Element(_) | Piece::Text(_) => None,
        });
        for access in addressed {
            use crate::ids::Id;
            if let Some(Arg::Window(window)) = binding.args.get(access.var.index()) {
                check_strides(kernel, callee, binding, (access.var, window))?;
                if let Some(bytes) = code.aligned {
                    check_alignment(kernel, callee, binding, access, bytes)?;
                }
            }
        }
    }
    Ok(())
}

/// The code takes arguments to be in some memory.
fn check_memory(kernel: &Kernel, callee: &Callee, binding: &Binding) -> Result<(), Mismatch> {
    use crate::ids::Id;
    for (var, needed) in callee.code.iter().flat_map(|code| &code.memory) {
        if let Some(Arg::Window(window)) = binding.args.get(var.index()) {
            let array = &kernel.vars[window.var];
            if array.space != *needed {
                let what = format!("the memory of `{}`", callee.kernel.vars[*var].name);
                let found = format!("{}, where `{}` is", array.space.name(), array.name);
                return Err(Mismatch::new(what, found, needed.name()));
            }
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
            let storage = |var: VarId| kernel.vars[var].storage.as_ref();
            let shared = storage(x.var).filter(|s| Some(*s) == storage(y.var));
            if a != b && (x.var == y.var || shared.is_some()) && written.contains(&a) {
                let name = shared.unwrap_or(&kernel.vars[x.var].name);
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
    let is_one = |axis: usize| declared.shape[axis].as_constant().is_some_and(|n| n <= 1);
    if (0..declared.shape.len()).all(is_one) {
        return Ok(()); // an element lies in memory as it is declared, whatever the strides
    }
    let base = &kernel.vars[window.var];
    let what = |axis: usize| format!("the stride of axis {axis} of `{}`", declared.name);
    let needed =
        strides(declared).ok_or_else(|| Mismatch::new(what(0), "a product of parameters", "a constant"))?;
    let found = strides(base)
        .ok_or_else(|| Mismatch::new(what(0), format!("that of `{}`, a product", base.name), "a constant"))?;
    for (a, needed) in needed.iter().enumerate() {
        if is_one(a) {
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

/// With `o` the index of an element and `S` the strides of its array, every term of `sum_k S[k] o[k]`
/// is a multiple of the bytes. Arrays begin at multiples of 16 bytes.
fn check_alignment(
    kernel: &Kernel,
    callee: &Callee,
    binding: &Binding,
    access: &Access,
    bytes: u64,
) -> Result<(), Mismatch> {
    let Some(Expr::Load(element)) = binding.element(access) else { return Ok(()) };
    let array = &kernel.vars[element.var];
    let flat = strides(array).and_then(|strides| {
        element.index.iter().zip(&strides).try_fold(Affine::constant(0), |sum, (index, stride)| {
            Some(sum.plus(&index.as_affine()?.times(stride.as_constant()?)))
        })
    });
    let elements = i64::try_from(bytes / array.ty.bytes()).unwrap_or(1).max(1);
    let fits = |flat: &Affine| {
        flat.constant_term() % elements == 0 && flat.terms().iter().all(|(_, factor)| factor % elements == 0)
    };
    if flat.as_ref().is_some_and(fits) {
        return Ok(());
    }
    let what = format!("the address of `{}`", callee.kernel.show_access(access));
    let found = match &flat {
        Some(flat) => format!("element {} of `{}`", kernel.show_affine(flat), array.name),
        None => format!("that of `{}`, which is not affine", kernel.show_access(&element)),
    };
    Err(Mismatch::new(what, found, format!("a multiple of {bytes} bytes")))
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
