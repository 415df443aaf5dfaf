//! Arguments of a call, checked against the launch plan.

use crate::failure::Failure;
use crate::lend::{elements, lend};
use crate::shapes::{Given, parameters, strides};
use kingpost::codegen::{ArgKind, ArgSpec, BufferAccess, Program};
use kingpost::interp::Memory;
use kingpost::ir::text::suggestion;
use kingpost::ir::{Complex, Kernel, ScalarType, VarId};
use kingpost::runtime::{Arg, Device, Executable, Foreign};
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An array of Python's: name of the argument, address, type of the elements, shape, strides in
/// bytes (absent: row by row), whether it may be written, place (`host` or `cuda`), the stream
/// that makes its values.
#[derive(FromPyObject)]
pub(crate) struct Array(String, u64, String, Vec<i64>, Option<Vec<i64>>, bool, String, Option<u64>);

impl Array {
    pub(crate) fn address(&self) -> u64 {
        self.1
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.5
    }

    pub(crate) fn is_cuda(&self) -> bool {
        self.6 == "cuda"
    }

    pub(crate) fn stream(&self) -> Option<u64> {
        self.7
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Where its elements of `size` bytes lie, row by row, in bytes from the first.
    pub(crate) fn offsets(&self, size: i64) -> Vec<i64> {
        let mut offsets = vec![0];
        for (axis, extent) in self.3.iter().enumerate() {
            let behind: i64 = self.3[axis + 1..].iter().product();
            let stride = self.4.as_ref().map_or(behind * size, |strides| strides[axis]);
            offsets = offsets.iter().flat_map(|o| (0..*extent).map(move |k| o + k * stride)).collect();
        }
        offsets
    }
}

/// A number of Python's.
#[derive(FromPyObject, Clone, Copy, Debug)]
pub(crate) enum Number {
    /// An integer, of 64 bits with a sign or without.
    Int(i128),
    /// Any other real.
    Real(f64),
    /// A complex number.
    Complex {
        #[pyo3(attribute("real"))]
        re: f64,
        #[pyo3(attribute("imag"))]
        im: f64,
    },
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(v) => v.fmt(f),
            Self::Real(v) => v.fmt(f),
            Self::Complex { re, im } => Complex { re, im }.fmt(f),
        }
    }
}

/// The arguments of a call, in terms of the runtime.
pub(crate) struct Call<'a> {
    pub(crate) args: Vec<(&'a str, Arg<'static>)>,
    pub(crate) params: BTreeMap<String, i64>,
}

/// Whether the caller gives an argument.
pub(crate) fn is_given(spec: &ArgSpec) -> bool {
    match spec.kind {
        ArgKind::Param | ArgKind::Scalar | ArgKind::Buffer { .. } => true,
        ArgKind::Table(_) | ArgKind::Scratch { .. } => false,
    }
}

/// Checks names, types, shapes and layouts, and finds the parameters.
pub(crate) fn bind<'a>(
    kernel: &Kernel,
    program: &'a Program,
    arrays: &[Array],
    numbers: &BTreeMap<String, Number>,
) -> Result<Call<'a>, Failure> {
    let specs: Vec<&ArgSpec> = program.plan.args.iter().filter(|spec| is_given(spec)).collect();
    check_names(kernel, &specs, arrays, numbers)?;
    let params = parameters(kernel, given_parameters(kernel, numbers)?, &shapes(arrays))?;
    let mut args = Vec::with_capacity(specs.len());
    for spec in specs {
        let array = arrays.iter().find(|array| array.0 == spec.name);
        let arg = match (&spec.kind, array, numbers.get(&spec.name)) {
            (ArgKind::Param, None, _) => match params.get(&spec.name) {
                Some(value) => Arg::Param(*value),
                None => return Err(missing(kernel, spec)),
            },
            (ArgKind::Scalar, None, Some(number)) => scalar(kernel, spec, *number)?,
            (ArgKind::Buffer { access, .. }, Some(array), None) => {
                Arg::Foreign(lend(array, check(kernel, spec, *access, array, &params)?))
            }
            (_, Some(array), _) => {
                let found = format!("an array of shape {:?}", array.3);
                return Err(wrong_kind(kernel, spec, &found));
            }
            (_, None, Some(_)) => return Err(wrong_kind(kernel, spec, "a number")),
            (_, None, None) => return Err(missing(kernel, spec)),
        };
        args.push((spec.name.as_str(), arg));
    }
    Ok(Call { args, params })
}

/// The values of a call, for checks that look at them: numbers, and those arrays whose values are
/// `wanted`, copied from where they lie. [`bind`] has found them in order.
pub(crate) fn memory(
    (device, executable): (&dyn Device, &Executable),
    kernel: &Kernel,
    call: &Call<'_>,
    arrays: &[Array],
    wanted: &BTreeSet<VarId>,
) -> Result<Memory, Failure> {
    let mut memory = Memory::new();
    call.params.iter().for_each(|(name, value)| memory.set_param(name, *value));
    for (name, arg) in &call.args {
        match arg {
            Arg::F64(v) => memory.set(*name, *v),
            Arg::F32(v) => memory.set(*name, *v),
            Arg::I64(v) => memory.set(*name, *v),
            Arg::I32(v) => memory.set(*name, *v),
            Arg::U64(v) => memory.set(*name, *v),
            Arg::C64(v) => memory.set(*name, *v),
            Arg::C128(v) => memory.set(*name, *v),
            Arg::U32(v) => memory.set(*name, *v),
            Arg::Param(_) | Arg::Buffer(_) => {}
            Arg::Foreign(foreign) => {
                let array = arrays.iter().find(|array| array.name() == *name);
                let id = kernel.var(name).filter(|id| wanted.contains(id));
                if let (Some(array), Some(id)) = (array, id) {
                    let bytes = fetched((device, executable), array, foreign)?;
                    let outside = || format!("bug of kingpost: `{name}` has elements outside its bytes");
                    let values = elements(array, &bytes, kernel.vars[id].ty);
                    memory.set(*name, values.ok_or_else(|| Failure::new("InternalError", outside()))?);
                }
            }
        }
    }
    Ok(memory)
}

fn fetched(
    (device, executable): (&dyn Device, &Executable),
    array: &Array,
    foreign: &Foreign<'_>,
) -> Result<Vec<u8>, Failure> {
    let name = array.name();
    if array.address() == 0 && !array.3.contains(&0) {
        let message = format!("argument `{name}` has no address; give an array that has one");
        return Err(Failure::about("LayoutError", name, message));
    }
    let mut bytes = vec![0; foreign.bytes() as usize];
    device.fetch(executable, name, foreign, &mut bytes)?;
    Ok(bytes)
}

fn shapes(arrays: &[Array]) -> Vec<Given<'_>> {
    let mut given = Vec::with_capacity(arrays.len());
    for Array(name, _, _, shape, strides, ..) in arrays {
        given.push(Given { name, shape, strides: strides.as_deref() });
    }
    given
}

fn given_parameters(
    kernel: &Kernel,
    numbers: &BTreeMap<String, Number>,
) -> Result<BTreeMap<String, i64>, Failure> {
    let is_param =
        |name: &str| kernel.var(name).is_some_and(|v| kernel.vars[v].kind == kingpost::ir::VarKind::Param);
    let mut given = BTreeMap::new();
    for (name, number) in numbers.iter().filter(|(name, _)| is_param(name)) {
        match number {
            Number::Int(value) => {
                let value = i64::try_from(*value).map_err(|_| {
                    let message =
                        format!("parameter `{name}` of `{}` is {value}, needed 64 bits", kernel.name);
                    Failure::about("DtypeError", name, message)
                })?;
                given.insert(name.clone(), value)
            }
            value @ (Number::Real(_) | Number::Complex { .. }) => {
                let message =
                    format!("parameter `{name}` of `{}` is {value}, needed an integer", kernel.name);
                return Err(Failure::about("DtypeError", name, message));
            }
        };
    }
    Ok(given)
}

/// Every name is that of an argument; parameters that the code does not need may be given, too.
fn check_names(
    kernel: &Kernel,
    specs: &[&ArgSpec],
    arrays: &[Array],
    numbers: &BTreeMap<String, Number>,
) -> Result<(), Failure> {
    let is_known = |name: &str| {
        let param = || kernel.var(name).is_some_and(|v| kernel.vars[v].kind == kingpost::ir::VarKind::Param);
        specs.iter().any(|spec| spec.name == name) || param()
    };
    let mut given = arrays.iter().map(Array::name).chain(numbers.keys().map(String::as_str));
    match given.find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let known = specs.iter().map(|spec| spec.name.as_str());
            let help = suggestion(name, known.clone())
                .unwrap_or_else(|| format!("it takes {}", known.map(quoted).collect::<Vec<_>>().join(", ")));
            let message = format!("`{}` takes no argument `{name}`; {help}", kernel.name);
            Err(Failure::about("UnknownArgument", name, message))
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// What an argument is, for messages.
fn describe(kernel: &Kernel, spec: &ArgSpec) -> String {
    let shape = || {
        let var = kernel.var(&spec.name).map(|v| &kernel.vars[v]);
        let extents =
            var.map(|v| v.shape.iter().map(|e| kernel.show_affine(e).to_string()).collect::<Vec<_>>());
        extents.unwrap_or_default().join(", ")
    };
    match spec.kind {
        ArgKind::Param => "an integer".into(),
        ArgKind::Scalar => format!("a number of type {}", spec.ty),
        ArgKind::Buffer { .. } | ArgKind::Table(_) | ArgKind::Scratch { .. } => {
            format!("an array of {} and shape [{}]", spec.ty, shape())
        }
    }
}

fn missing(kernel: &Kernel, spec: &ArgSpec) -> Failure {
    let (name, what) = (&spec.name, describe(kernel, spec));
    let message = format!("`{}` needs argument `{name}`, {what}; give {name}=", kernel.name);
    Failure::about("MissingArgument", name, message)
}

fn wrong_kind(kernel: &Kernel, spec: &ArgSpec, found: &str) -> Failure {
    let what = describe(kernel, spec);
    let message = format!("argument `{}` of `{}` is {found}, needed {what}", spec.name, kernel.name);
    Failure::about("DtypeError", &spec.name, message)
}

fn scalar(kernel: &Kernel, spec: &ArgSpec, number: Number) -> Result<Arg<'static>, Failure> {
    scalar_of(spec.ty, number).ok_or_else(|| wrong_kind(kernel, spec, &number.to_string()))
}

/// A number as a type has it, if that has such numbers.
pub(crate) fn scalar_of(ty: ScalarType, number: Number) -> Option<Arg<'static>> {
    let (re, im) = match number {
        Number::Int(v) => (v as f64, 0.0),
        Number::Real(v) => (v, 0.0),
        Number::Complex { re, im } => (re, im),
    };
    match (ty, number) {
        (ScalarType::F64, Number::Int(v)) => Some(Arg::F64(v as f64)),
        (ScalarType::F64, Number::Real(v)) => Some(Arg::F64(v)),
        (ScalarType::F32, Number::Int(v)) => Some(Arg::F32(v as f32)),
        (ScalarType::F32, Number::Real(v)) => Some(Arg::F32(v as f32)),
        (ScalarType::I64, Number::Int(v)) => i64::try_from(v).ok().map(Arg::I64),
        (ScalarType::I32, Number::Int(v)) => i32::try_from(v).ok().map(Arg::I32),
        (ScalarType::U64, Number::Int(v)) => u64::try_from(v).ok().map(Arg::U64),
        (ScalarType::U32, Number::Int(v)) => u32::try_from(v).ok().map(Arg::U32),
        (ScalarType::C64, _) => Some(Arg::C64(Complex { re: re as f32, im: im as f32 })),
        (ScalarType::C128, _) => Some(Arg::C128(Complex { re, im })),
        (_, Number::Complex { .. }) => None,
        // none has fewer than 32 bits
        (
            ScalarType::Bool
            | ScalarType::F16
            | ScalarType::Bf16
            | ScalarType::I8
            | ScalarType::U8
            | ScalarType::I16
            | ScalarType::U16
            | ScalarType::Record(_),
            Number::Int(_),
        )
        | (
            ScalarType::Bool
            | ScalarType::F16
            | ScalarType::Bf16
            | ScalarType::I8
            | ScalarType::U8
            | ScalarType::I16
            | ScalarType::U16
            | ScalarType::I32
            | ScalarType::I64
            | ScalarType::U32
            | ScalarType::U64
            | ScalarType::Record(_),
            Number::Real(_),
        ) => None,
    }
}

/// Checks type and layout of an array; returns the bytes from its first to its last element.
fn check(
    kernel: &Kernel,
    spec: &ArgSpec,
    access: BufferAccess,
    array: &Array,
    params: &BTreeMap<String, i64>,
) -> Result<u64, Failure> {
    let (name, entry) = (&spec.name, &kernel.name);
    if array.2 != spec.ty.to_string() {
        let message =
            format!("argument `{name}` of `{entry}` has elements of type {}, needed {}", array.2, spec.ty);
        return Err(Failure::about("DtypeError", name, message));
    }
    if access != BufferAccess::In && !array.is_writable() {
        let message = format!(
            "argument `{name}` of `{entry}` is written, and the array is read-only; pass a writable array"
        );
        return Err(Failure::about("ReadOnlyError", name, message));
    }
    let Some(var) = kernel.var(name).map(|v| &kernel.vars[v]) else {
        return Err(Failure::new("InternalError", format!("bug of kingpost: `{name}` is no variable")));
    };
    let size = spec.ty.bytes() as i64;
    let needed = strides(kernel, var, params).unwrap_or_default();
    let counts = |axis: &usize| array.3[*axis] > 1;
    let empty = array.3.contains(&0);
    if let Some(found) = &array.4
        && !empty
        && needed.len() <= found.len()
        && (0..needed.len()).filter(counts).any(|axis| found[axis] != needed[axis] * size)
    {
        let needed: Vec<i64> = needed.iter().map(|s| s * size).collect();
        let message = format!(
            "argument `{name}` of `{entry}` has strides {found:?} in bytes, needed {needed:?}; pass a contiguous copy"
        );
        return Err(Failure::about("LayoutError", name, message));
    }
    if array.4.is_none() && !var.layout.is_row_major() && !empty {
        let dense =
            array.3.iter().rev().scan(1, |step, extent| Some(std::mem::replace(step, *step * extent)));
        let dense: Vec<i64> = dense.collect::<Vec<_>>().into_iter().rev().collect();
        if (0..needed.len()).filter(counts).any(|axis| dense[axis] != needed[axis]) {
            let message = format!(
                "argument `{name}` of `{entry}` lies row by row, needed strides {needed:?} in elements"
            );
            return Err(Failure::about("LayoutError", name, message));
        }
    }
    // a launch refuses negative strides
    let span = |(extent, stride): (&i64, &i64)| (extent - 1).max(0) * stride.max(&0);
    let last: i64 = array.3.iter().zip(&needed).map(span).sum();
    Ok(if empty { 0 } else { ((last + 1) * size) as u64 })
}
