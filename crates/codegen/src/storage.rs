//! Buffers of temporaries: one for each storage name, as large as the largest that shares it.

use crate::ast::{Declare, Name};
use crate::declare::Private;
use crate::env::Env;
use crate::error::CodegenError;
use crate::lower::place::is_plain_scalar;
use crate::ordered::Ordered;
use crate::placed::PlacedKernel;
use crate::target::TargetDescription;
use kingpost_ir::layout::vector_lanes;
use kingpost_ir::{AddressSpace, Atom, Id, Kernel, ScalarType, VarId, VarKind, Variable};
use std::collections::BTreeSet;

/// Where temporaries are kept.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    /// Name of the buffer of each variable.
    pub(crate) names: Vec<Name>,
    /// Buffers of a work-item.
    pub(crate) privates: Vec<Private>,
    /// Buffers of a group.
    pub(crate) locals: Vec<Declare>,
    /// What groups need that wait for each other.
    pub(crate) ordered: Option<Ordered>,
}

/// A buffer while its sharers are collected.
struct Buffer {
    storage: Option<String>,
    name: Name,
    first: VarId,
    ty: ScalarType,
    space: AddressSpace,
    /// Elements; none for a plain scalar.
    len: Option<u64>,
}

impl Storage {
    /// The buffers of all temporaries.
    ///
    /// # Errors
    /// A temporary that cannot be declared: a global integer, one of parametric size, or sharing
    /// with another type; groups that wait for each other where the target has no such ones.
    pub(crate) fn new(
        placed: &PlacedKernel<'_>,
        target: &'static TargetDescription,
        env: &mut Env<'_>,
    ) -> Result<Self, CodegenError> {
        let kernel = placed.kernel;
        let mut names = env.var_names.clone();
        let mut buffers: Vec<Buffer> = Vec::new();
        for (id, var) in kernel.vars.iter() {
            if var.layout.vector_axis.is_some() {
                vector_lanes(var).map_err(|why| CodegenError::VectorAxis { var: var.name.clone(), why })?;
            }
            if var.kind != VarKind::Temporary {
                if var.layout.swizzle.is_some() {
                    return Err(CodegenError::SwizzledArgument { var: var.name.clone() });
                }
                continue;
            }
            if var.space == AddressSpace::Global {
                // bounds would mention what lies behind a pointer
                if var.is_integer_scalar() {
                    return Err(CodegenError::GlobalTemporary { var: var.name.clone() });
                }
                continue; // an argument that the runtime allocates
            }
            let sliced = &placed.placement.sliced[id.index()];
            let len = if is_plain_scalar(var, sliced) { None } else { Some(elements(env, var, sliced)?) };
            let shared =
                var.storage.as_ref().and_then(|s| buffers.iter_mut().find(|b| b.storage.as_ref() == Some(s)));
            if let Some(buffer) = shared {
                join(kernel, buffer, var, len)?;
                names[id.index()] = buffer.name.clone();
                continue;
            }
            let name = match &var.storage {
                Some(s) => env.names.fresh(s),
                None => names[id.index()].clone(),
            };
            names[id.index()] = name.clone();
            buffers.push(Buffer {
                storage: var.storage.clone(),
                name,
                first: id,
                ty: var.ty,
                space: var.space,
                len,
            });
        }
        let mut storage = Self::from_buffers(names, buffers);
        storage.ordered = Ordered::of(placed, target, env)?;
        storage.locals.extend(storage.ordered.as_ref().map(Ordered::shared));
        Ok(storage)
    }

    fn from_buffers(names: Vec<Name>, buffers: Vec<Buffer>) -> Self {
        let mut result = Self { names, privates: Vec::new(), locals: Vec::new(), ordered: None };
        for b in buffers {
            if b.space == AddressSpace::Local {
                let plain = Declare::scalar(b.name, b.ty, None);
                result.locals.push(Declare { len: b.len, local: true, ..plain });
            } else {
                result.privates.push(Private { name: b.name, ty: b.ty, len: b.len });
            }
        }
        result
    }
}

/// Bounds are printed as they are: what they mention must be a value, not a pointer to one.
///
/// # Errors
/// A domain, of a loop or of a reduction, that mentions what lies behind a pointer.
pub(crate) fn check_bounds(kernel: &Kernel) -> Result<(), CodegenError> {
    for iname in kernel.inames.values() {
        let mut found = None;
        iname.domain.for_each_symbol(&mut |atom| {
            if let Atom::Var(var) = atom
                && !is_plain_scalar(&kernel.vars[*var], &[])
            {
                found = Some(kernel.vars[*var].name.clone());
            }
        });
        if let Some(var) = found {
            return Err(CodegenError::BoundBehindPointer { iname: iname.name.clone(), var });
        }
    }
    Ok(())
}

/// Bytes of all buffers of a group, each on a multiple of its elements' size or of the bytes it is
/// aligned to.
pub(crate) fn local_bytes(locals: &[Declare], aligned: &[(Name, u64)]) -> u64 {
    locals.iter().fold(0, |end, buffer| {
        let own = aligned.iter().find(|(name, _)| *name == buffer.name).map(|(_, bytes)| *bytes);
        let alignment = own.unwrap_or(1).max(buffer.ty.bytes());
        let start = u64::checked_next_multiple_of(end, alignment).unwrap_or(u64::MAX);
        start.saturating_add(buffer_bytes(buffer))
    })
}

/// The buffers that are parts of the memory that the launch provides: none where a source may declare
/// all of them, else those that remain when the smallest come first.
///
/// The compiler knows that arrays with names of their own do not overlap. Of parts of one array it
/// does not, so that it loads again what a store to another part may have changed: 160 instead of
/// 76 loads from local memory a work-item, 214 instead of 175 µs (BP3.5 from vertices by matrix
/// instructions, two elements a group; H200, 2026-11-24). Kernels by matrix instructions may be
/// faster with all of them in one array, which `all` asks for ([`Kernel::dynamic_local`]).
pub(crate) fn provided(
    locals: &[Declare],
    aligned: &[(Name, u64)],
    target: &TargetDescription,
    all: bool,
) -> Vec<Name> {
    let Some(declared) = target.limits.declared_local else { return Vec::new() };
    if !all && local_bytes(locals, aligned) <= declared {
        return Vec::new();
    }
    if all {
        return locals.iter().map(|buffer| buffer.name.clone()).collect();
    }
    let mut by_size: Vec<&Declare> = locals.iter().collect();
    by_size.sort_by_key(|buffer| buffer_bytes(buffer));
    let mut end: u64 = 0;
    let is_left = |buffer: &&&Declare| {
        // ptxas orders them as it likes, so that any may end in padding
        let next = u64::checked_next_multiple_of(buffer_bytes(buffer), LARGEST_ALIGNMENT);
        end = end.saturating_add(next.unwrap_or(u64::MAX));
        end > declared
    };
    let left: BTreeSet<&Name> = by_size.iter().filter(is_left).map(|buffer| &buffer.name).collect();
    locals.iter().map(|buffer| &buffer.name).filter(|name| left.contains(name)).cloned().collect()
}

/// Bytes to whose multiples a buffer may have to be aligned: those of the widest access.
const LARGEST_ALIGNMENT: u64 = 16;

/// Bytes of a buffer.
fn buffer_bytes(buffer: &Declare) -> u64 {
    buffer.len.unwrap_or(1).saturating_mul(buffer.ty.bytes())
}

fn join(kernel: &Kernel, buffer: &mut Buffer, var: &Variable, len: Option<u64>) -> Result<(), CodegenError> {
    if buffer.ty != var.ty || buffer.space != var.space {
        return Err(CodegenError::StorageTypes {
            storage: var.storage.clone().unwrap_or_default(),
            first: kernel.vars[buffer.first].name.clone(),
            second: var.name.clone(),
        });
    }
    buffer.len = buffer.len.max(len);
    Ok(())
}

/// Most elements along an axis of which only assumptions say how many there are: types of parameters
/// bound them, too.
const MAX_ASSUMED: i64 = 65_536;

/// Elements of a temporary's buffer, without the axes that each work-item holds one slice of: as many
/// as the assumptions leave room for, where a size is no constant.
fn elements(env: &Env<'_>, var: &Variable, sliced: &[bool]) -> Result<u64, CodegenError> {
    let strides = kingpost_ir::layout::strides(var, sliced);
    let most = |e: &kingpost_ir::Affine| {
        let assumed = || env.range(e).finite_hi().filter(|n| *n <= MAX_ASSUMED);
        let most = e.as_constant().or_else(assumed).and_then(|n| u64::try_from(n).ok());
        most.ok_or_else(|| CodegenError::ShapeNotConstant {
            var: var.name.clone(),
            extent: crate::axes::show(env.kernel, e),
            space: var.space.name(),
        })
    };
    let (mut last, mut all): (u64, u64) = (0, 1);
    for (k, extent) in var.shape.iter().enumerate().filter(|(k, _)| !sliced[*k]) {
        let n = most(extent)?;
        if n == 0 {
            return Ok(1); // no element, but C declares at least one
        }
        all = all.saturating_mul(n);
        if let Some(strides) = &strides {
            last = last.saturating_add((n - 1).saturating_mul(most(&strides[k])?));
        }
    }
    // a stride that is a product of parameters is one of a dense array
    Ok(if strides.is_some() { last.saturating_add(1) } else { all })
}
