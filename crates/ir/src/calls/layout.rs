//! What code asks of its arguments beyond their meaning: different arguments in different memory,
//! and windows that lie in memory as declared where their address is taken.

use super::{Arg, Binding, Callee, Mismatch, Piece, Window};
use crate::affine::Affine;
use crate::expr::{Access, Expr};
use crate::ids::VarId;
use crate::kernel::Kernel;
use crate::multiples::{Multiples, flat_position, strides};
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
    let base = &kernel.vars[window.var];
    let found = strides(base);
    for (a, needed) in strides(declared).into_iter().enumerate() {
        if is_one(a) {
            continue; // an element lies in memory as it is declared, whatever the strides
        }
        let what = format!("the stride of axis {a} of `{}`", declared.name);
        let Some(needed) = needed else {
            return Err(Mismatch::new(what, "a product of parameters", "a constant"));
        };
        let moved = window.axes.iter().zip(&found).filter_map(|(axis, stride)| {
            let step = axis.steps.get(a).copied().filter(|step| *step != 0)?;
            Some(stride.as_ref().map(|s| s.times(step)))
        });
        let sum = moved.reduce(|sum, term| Some(sum?.plus(&term?)));
        let Some(stride) = sum.unwrap_or_else(|| Some(Affine::constant(0))) else {
            return Err(Mismatch::new(what, format!("that of `{}`, a product", base.name), "a constant"));
        };
        if binding.value(&needed).as_ref() != Some(&stride) {
            let found = format!("{} in `{}`", kernel.show_affine(&stride), base.name);
            return Err(Mismatch::new(what, found, callee.kernel.show_affine(&needed).to_string()));
        }
    }
    Ok(())
}

/// The position of an element, as [`Multiples`] knows it, is a multiple of the bytes. Arrays begin at
/// multiples of 16 bytes.
fn check_alignment(
    kernel: &Kernel,
    callee: &Callee,
    binding: &Binding,
    access: &Access,
    bytes: u64,
) -> Result<(), Mismatch> {
    let Some(Expr::Load(element)) = binding.element(access) else { return Ok(()) };
    let array = &kernel.vars[element.var];
    let known = Multiples::of(kernel).of_element(kernel, &element) * array.ty.bytes();
    if known >= bytes {
        return Ok(());
    }
    let what = format!("the address of `{}`", callee.kernel.show_access(access));
    let found = match flat_position(array, &element) {
        Some(flat) => format!("element {} of `{}`", kernel.show_affine(&flat), array.name),
        None => format!("that of `{}`", kernel.show_access(&element)),
    };
    let found = format!("{found}, known to lie at a multiple of {known} bytes");
    Err(Mismatch::new(what, found, format!("a multiple of {bytes} bytes")))
}
