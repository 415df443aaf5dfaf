//! What code asks of its arguments beyond their meaning: different arguments in different memory,
//! and windows that lie in memory as declared where their address is taken.

use super::{Arg, Binding, Callee, Mismatch, Piece, Window};
use crate::affine::Affine;
use crate::expr::{Access, Expr};
use crate::ids::VarId;
use crate::kernel::{AddressSpace, Kernel};
use crate::multiples::{Multiples, flat_position, strides};
use crate::places::Swizzle;
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
    super::hints::check_unread(kernel, callee, binding)?;
    for code in &callee.code {
        let addressed = code.text.iter().filter_map(|piece| match piece {
            Piece::Address(access, run) => Some((access, run)),
            Piece::Element(_) | Piece::Map(_) | Piece::Begin(..) | Piece::Text(_) => None,
        });
        super::boxes::check(kernel, callee, binding, code)?;
        for (access, run) in addressed {
            use crate::ids::Id;
            if let Some(Arg::Window(window)) = binding.args.get(access.var.index()) {
                let shape = &callee.kernel.vars[access.var].shape;
                let first = if run.is_some() { shape.len().saturating_sub(1) } else { 0 };
                // an element lies in memory as it is declared, whatever the strides
                let is_several = |axis: &usize| shape[*axis].as_constant().is_none_or(|n| n > 1);
                let axes: Vec<usize> = (first..shape.len()).filter(is_several).collect();
                check_strides(kernel, callee, binding, (access.var, window), &axes)?;
                check_swizzle(kernel, callee, (access.var, window), &axes)?;
                if let Some(bytes) = code.alignment(*run, callee.kernel.vars[access.var].ty) {
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
/// declared stride of each axis `a` of some.
fn check_strides(
    kernel: &Kernel,
    callee: &Callee,
    binding: &Binding,
    (var, window): (VarId, &Window),
    axes: &[usize],
) -> Result<(), Mismatch> {
    let declared = &callee.kernel.vars[var];
    let base = &kernel.vars[window.var];
    let found = strides(base);
    for (a, needed) in strides(declared).into_iter().enumerate().filter(|(a, _)| axes.contains(a)) {
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

/// With `p = u ^ (r mod 2^b)` the position of the array's swizzle: along some axes of the window neither `u` nor
/// `r` changes; or the argument is declared with a swizzle, and its `u` and `r` are those of the array up to
/// a multiple of `2^b` that is added to `r`, and nothing else moves either.
fn check_swizzle(
    kernel: &Kernel,
    callee: &Callee,
    (var, window): (VarId, &Window),
    axes: &[usize],
) -> Result<(), Mismatch> {
    let (declared, base) = (&callee.kernel.vars[var], &kernel.vars[window.var]);
    let needed = declared.layout.swizzle.filter(|s| axes.iter().any(|axis| s.mentions(*axis)));
    let moves = |axis: u32| {
        let steps = &window.axes[axis as usize].steps;
        axes.iter().map(|a| (*a, steps[*a])).filter(|(_, step)| *step != 0).collect::<Vec<_>>()
    };
    let fits = match (base.layout.swizzle, needed) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some(found), None) => moves(found.axis).is_empty() && moves(found.by).is_empty(),
        (Some(found), Some(needed)) => {
            let [unit, row] = [found.axis, found.by].map(|axis| &window.axes[axis as usize].offset);
            let extent = declared.shape[needed.axis as usize].as_constant();
            let turns = |n: i64| Multiples::of(kernel).of_index(row).is_multiple_of(n.cast_unsigned());
            moves(found.axis) == [(needed.axis as usize, 1)]
                && moves(found.by) == [(needed.by as usize, 1)]
                && *unit == Expr::Int(0)
                && base.shape[found.axis as usize].as_constant() == extent
                && extent.is_some_and(turns)
        }
    };
    if fits {
        return Ok(());
    }
    let shown = |swizzle: Option<Swizzle>| match swizzle {
        Some(Swizzle { axis, by }) => format!("swizzle({axis} ^= {by})"),
        None => "none".into(),
    };
    let what = format!("the swizzle of `{}`", declared.name);
    let found = format!("{} of `{}`", shown(base.layout.swizzle), base.name);
    let needed = match needed {
        None => "elements of one unit, which it does not tear apart".into(),
        some => format!("{}, of the whole axis and from a multiple of its extent on", shown(some)),
    };
    Err(Mismatch::new(what, found, needed))
}

/// What the code of a call finds by address and does not write, where all work-items along some axes make the
/// call together: which of them reads an element is not said.
pub fn read_together(callee: &Callee, binding: &Binding) -> BTreeSet<VarId> {
    addressed_together(callee, binding, false)
}

/// What it writes by address: which of them writes an element is not said either.
pub fn written_together(callee: &Callee, binding: &Binding) -> BTreeSet<VarId> {
    addressed_together(callee, binding, true)
}

fn addressed_together(callee: &Callee, binding: &Binding, is_written: bool) -> BTreeSet<VarId> {
    use crate::ids::Id;
    let written: BTreeSet<VarId> = callee.kernel.insns.values().map(|i| i.lhs.var).collect();
    let found = callee.code.iter().flat_map(|code| &code.text).filter_map(|piece| match piece {
        Piece::Address(access, _) if written.contains(&access.var) == is_written => {
            match binding.args.get(access.var.index()) {
                Some(Arg::Window(window)) => Some(window.var),
                Some(Arg::Unused | Arg::Param(_) | Arg::Value(_)) | None => None,
            }
        }
        Piece::Address(..) | Piece::Element(_) | Piece::Map(_) | Piece::Begin(..) | Piece::Text(_) => None,
    });
    if callee.is_collective() { found.collect() } else { BTreeSet::new() }
}

/// The position of an element, as [`Multiples`] knows it, is a multiple of the bytes. Arrays begin at
/// multiples of 16 bytes, and in local memory of as many as are asked for.
fn check_alignment(
    kernel: &Kernel,
    callee: &Callee,
    binding: &Binding,
    access: &Access,
    bytes: u64,
) -> Result<(), Mismatch> {
    let Some(Expr::Load(element)) = binding.element(access) else { return Ok(()) };
    let array = &kernel.vars[element.var];
    let begin = if array.space == AddressSpace::Local { bytes } else { 16 };
    let known = begin.min(Multiples::of(kernel).of_element(kernel, &element) * array.ty.bytes());
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
