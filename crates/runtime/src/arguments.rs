//! Checks the arguments of a launch against its plan and puts them in order.

use crate::device::{Arg, Buffer, DeviceInfo, Shared};
use crate::error::RuntimeError;
use kingpost_codegen::{
    ArgKind, ArgSpec, BufferAccess, Entry, HostExpr, LaunchPlan, Precondition, TensorMap,
};
use kingpost_ir::{Complex, ScalarType};
use std::collections::BTreeMap;

/// An argument as the entry point takes it.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    C64(Complex<f32>),
    C128(Complex<f64>),
    Buffer(&'a Buffer),
}

/// A checked launch: values in the order of the signature, the parameters among them, and the grid.
pub(crate) struct Bound<'a> {
    pub(crate) values: Vec<Value<'a>>,
    pub(crate) params: Params,
    pub(crate) grid: [u64; 3],
}

impl<'a> Bound<'a> {
    /// What the launches of an executable are made of.
    pub(crate) fn parts(&self) -> (&[Value<'a>], &Params, [u64; 3]) {
        (&self.values, &self.params, self.grid)
    }
}

type Given<'a> = BTreeMap<&'a str, Arg<'a>>;
pub(crate) type Params = BTreeMap<String, i64>;

/// Whether the caller gives an argument: tables and scratch memory come from the runtime.
fn is_given(spec: &ArgSpec) -> bool {
    match spec.kind {
        ArgKind::Param | ArgKind::Scalar | ArgKind::Buffer { .. } => true,
        ArgKind::Table(_) | ArgKind::Scratch { .. } => false,
    }
}

/// Bytes of the scratch memory of a launch, for each argument of the plan that is such.
pub(crate) fn scratch(exe: &Shared, args: &[(&str, Arg<'_>)]) -> Result<Vec<Option<u64>>, RuntimeError> {
    // most kernels have none, and their arguments are checked when they are bound
    if !exe.plan.args.iter().any(|spec| matches!(spec.kind, ArgKind::Scratch { .. })) {
        return Ok(vec![None; exe.plan.args.len()]);
    }
    let params = parameters(exe, &collect(exe, args)?)?;
    let bytes = |spec: &ArgSpec| match &spec.kind {
        ArgKind::Scratch { len, .. } => size(exe, spec, len, &params).map(Some),
        ArgKind::Param | ArgKind::Scalar | ArgKind::Buffer { .. } | ArgKind::Table(_) => Ok(None),
    };
    exe.plan.args.iter().map(bytes).collect()
}

/// Checks `args` and evaluates the grid; `scratch` holds the memory that [`scratch`] asked for.
pub(crate) fn bind<'a>(
    exe: &'a Shared,
    args: &[(&'a str, Arg<'a>)],
    scratch: &'a [Option<Buffer>],
    info: &DeviceInfo,
) -> Result<Bound<'a>, RuntimeError> {
    let given = collect(exe, args)?;
    let params = parameters(exe, &given)?;
    let entry = (exe.entry.as_str(), &exe.plan);
    // those of strides before lengths, which they give a meaning
    check_preconditions(entry, &params, &|condition| condition.array.is_some())?;
    let mut values = Vec::with_capacity(exe.plan.args.len());
    for ((spec, table), scratch) in exe.plan.args.iter().zip(&exe.tables).zip(scratch) {
        values.push(match table.as_ref().or(scratch.as_ref()) {
            Some(buffer) => Value::Buffer(buffer),
            None => value(exe, spec, &given, &params, info)?,
        });
    }
    check_aliases(exe, &given)?;
    check_preconditions(entry, &params, &|condition| condition.array.is_none())?;
    let grid = grid(entry, &params, info, &|value| value)?;
    Ok(Bound { values, params, grid })
}

/// One launch of a sequence: the values of the host's loops, which follow the arguments of the program, and
/// the grid. Where a loop leaves nothing to do, there are fewer than no groups.
pub(crate) fn bind_entry<'a>(
    entry: &Entry,
    params: &Params,
    args: usize,
    info: &DeviceInfo,
) -> Result<(Vec<Value<'a>>, [u64; 3]), RuntimeError> {
    let this = (entry.name.as_str(), &entry.plan);
    check_preconditions(this, params, &|_| true)?;
    let mut values = Vec::new();
    for spec in &entry.plan.args[args..] {
        let v = eval(this.0, || spec.name.clone(), &HostExpr::Param(spec.name.clone()), params)?;
        let out_of_range = || RuntimeError::ParameterRange { name: spec.name.clone(), value: v, ty: spec.ty };
        values.push(param(spec, v).ok_or_else(out_of_range)?);
    }
    Ok((values, grid(this, params, info, &|value| value.max(0))?))
}

/// The map of a tensor for one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundMap {
    /// The number of the argument that is the array.
    pub(crate) of: usize,
    pub(crate) name: String,
    pub(crate) ty: ScalarType,
    /// Along each axis, the last first: elements, bytes from one index to the next, elements of a box.
    pub(crate) extents: Vec<u64>,
    pub(crate) strides: Vec<u64>,
    pub(crate) sides: Vec<u32>,
    pub(crate) is_swizzled: bool,
}

/// The maps of tensors of a launch.
pub(crate) fn maps(
    (entry, plan): (&str, &LaunchPlan),
    params: &Params,
) -> Result<Vec<BoundMap>, RuntimeError> {
    let of_map = |map: &TensorMap| {
        let number = |what: &str, e: &HostExpr, factor: u64| {
            let what = || format!("{what} of the tensor `{}`", map.array);
            let value = eval(entry, what, e, params)?;
            let bytes = u64::try_from(value).ok().and_then(|n| n.checked_mul(factor));
            bytes.ok_or_else(|| RuntimeError::BadExtent { entry: entry.into(), what: what(), value })
        };
        let along = |what: &str, all: &[HostExpr], factor| {
            all.iter().rev().map(|e| number(what, e, factor)).collect::<Result<Vec<_>, _>>()
        };
        let of = plan.args.iter().position(|arg| arg.name == map.array).ok_or_else(|| {
            RuntimeError::UnknownArgument {
                entry: entry.into(),
                name: map.array.clone(),
                expected: map.name.clone(),
            }
        })?;
        Ok(BoundMap {
            of,
            name: map.name.clone(),
            ty: map.ty,
            extents: along("extents", &map.extents, 1)?,
            strides: along("strides", &map.strides, map.ty.bytes())?,
            // the verifier keeps them below 257
            sides: map.sides.iter().rev().map(|n| u32::try_from(*n).unwrap_or(u32::MAX)).collect(),
            is_swizzled: map.is_swizzled,
        })
    };
    plan.maps.iter().map(of_map).collect()
}

/// The arguments by name; each is known to the plan and given once.
fn collect<'a>(exe: &Shared, args: &[(&'a str, Arg<'a>)]) -> Result<Given<'a>, RuntimeError> {
    let mut given = Given::new();
    for &(name, arg) in args {
        let known = exe.plan.args.iter().any(|s| s.name == name && is_given(s));
        if !known {
            return Err(RuntimeError::UnknownArgument {
                entry: exe.entry.clone(),
                name: name.into(),
                expected: expected(exe),
            });
        }
        if given.insert(name, arg).is_some() {
            return Err(RuntimeError::RepeatedArgument { entry: exe.entry.clone(), name: name.into() });
        }
    }
    for spec in &exe.plan.args {
        // parameters may follow from others and from the lengths of arrays
        if is_given(spec) && spec.kind != ArgKind::Param && !given.contains_key(spec.name.as_str()) {
            return Err(missing(exe, spec));
        }
    }
    Ok(given)
}

pub(crate) fn missing(exe: &Shared, spec: &ArgSpec) -> RuntimeError {
    RuntimeError::MissingArgument {
        entry: exe.entry.clone(),
        name: spec.name.clone(),
        kind: describe(spec),
        expected: expected(exe),
    }
}

fn expected(exe: &Shared) -> String {
    let names: Vec<_> =
        exe.plan.args.iter().filter(|s| is_given(s)).map(|s| format!("`{}`", s.name)).collect();
    if names.is_empty() { "no arguments".into() } else { names.join(", ") }
}

fn describe(spec: &ArgSpec) -> String {
    match &spec.kind {
        ArgKind::Param => "an integer parameter".into(),
        ArgKind::Scalar => format!("a scalar of type `{}`", spec.ty),
        ArgKind::Buffer { len, .. } => format!("a buffer of {len} elements of `{}`", spec.ty),
        ArgKind::Table(_) => format!("a table of `{}`", spec.ty),
        ArgKind::Scratch { len, .. } => format!("scratch memory of {len} elements of `{}`", spec.ty),
    }
}

fn describe_given(arg: &Arg<'_>) -> String {
    match arg {
        Arg::Param(v) => format!("parameter {v}"),
        Arg::F32(v) => format!("`f32` {v}"),
        Arg::F64(v) => format!("`f64` {v}"),
        Arg::C64(v) => format!("`c64` {v}"),
        Arg::C128(v) => format!("`c128` {v}"),
        Arg::I32(v) => format!("`i32` {v}"),
        Arg::I64(v) => format!("`i64` {v}"),
        Arg::U32(v) => format!("`u32` {v}"),
        Arg::U64(v) => format!("`u64` {v}"),
        Arg::Buffer(b) => format!("a buffer of {} bytes", b.bytes()),
        Arg::Foreign(f) => format!("a buffer of {} bytes", f.bytes()),
    }
}

fn wrong_type(exe: &Shared, spec: &ArgSpec, arg: &Arg<'_>) -> RuntimeError {
    RuntimeError::ArgumentType {
        entry: exe.entry.clone(),
        name: spec.name.clone(),
        expected: describe(spec),
        found: describe_given(arg),
    }
}

fn parameters(exe: &Shared, given: &Given<'_>) -> Result<Params, RuntimeError> {
    let mut params = Params::new();
    for spec in exe.plan.args.iter().filter(|s| matches!(s.kind, ArgKind::Param)) {
        match given.get(spec.name.as_str()) {
            Some(Arg::Param(v)) => {
                params.insert(spec.name.clone(), *v);
            }
            Some(other) => return Err(wrong_type(exe, spec, other)),
            None => {}
        }
    }
    let elements = |name: &str| {
        let bytes = match given.get(name)? {
            Arg::Buffer(buffer) => buffer.bytes(),
            Arg::Foreign(foreign) => foreign.bytes(),
            Arg::Param(_)
            | Arg::F32(_)
            | Arg::F64(_)
            | Arg::C64(_)
            | Arg::C128(_)
            | Arg::I32(_)
            | Arg::I64(_)
            | Arg::U32(_)
            | Arg::U64(_) => return None,
        };
        let spec = exe.plan.args.iter().find(|spec| spec.name == name)?;
        Some(bytes / spec.ty.bytes())
    };
    let params = exe.plan.parameters(&params, &elements);
    let params = params.map_err(|source| RuntimeError::Parameters { entry: exe.entry.clone(), source })?;
    let is_missing = |spec: &&ArgSpec| spec.kind == ArgKind::Param && !params.contains_key(&spec.name);
    exe.plan.args.iter().find(is_missing).map_or(Ok(()), |spec| Err(missing(exe, spec)))?;
    Ok(params)
}

/// The value of one argument that is no table.
fn value<'a>(
    exe: &Shared,
    spec: &ArgSpec,
    given: &Given<'a>,
    params: &Params,
    info: &DeviceInfo,
) -> Result<Value<'a>, RuntimeError> {
    let known = params.get(&spec.name).filter(|_| spec.kind == ArgKind::Param).map(|v| Arg::Param(*v));
    let Some(arg) = known.or_else(|| given.get(spec.name.as_str()).copied()) else {
        return Err(missing(exe, spec));
    };
    match (&spec.kind, arg) {
        (ArgKind::Param, Arg::Param(v)) => param(spec, v).ok_or_else(|| wrong_range(exe, spec, v)),
        (ArgKind::Scalar, Arg::F32(v)) if spec.ty == ScalarType::F32 => Ok(Value::F32(v)),
        (ArgKind::Scalar, Arg::F64(v)) if spec.ty == ScalarType::F64 => Ok(Value::F64(v)),
        (ArgKind::Scalar, Arg::C64(v)) if spec.ty == ScalarType::C64 => Ok(Value::C64(v)),
        (ArgKind::Scalar, Arg::C128(v)) if spec.ty == ScalarType::C128 => Ok(Value::C128(v)),
        (ArgKind::Scalar, Arg::I32(v)) if spec.ty == ScalarType::I32 => Ok(Value::I32(v)),
        (ArgKind::Scalar, Arg::I64(v)) if spec.ty == ScalarType::I64 => Ok(Value::I64(v)),
        // what is passed are the same bytes
        (ArgKind::Scalar, Arg::U32(v)) if spec.ty == ScalarType::U32 => Ok(Value::I32(v.cast_signed())),
        (ArgKind::Scalar, Arg::U64(v)) if spec.ty == ScalarType::U64 => Ok(Value::I64(v.cast_signed())),
        (ArgKind::Buffer { len, .. }, Arg::Buffer(b)) => {
            check_buffer(exe, spec, len, b, params, info)?;
            Ok(Value::Buffer(b))
        }
        (
            ArgKind::Param
            | ArgKind::Scalar
            | ArgKind::Buffer { .. }
            | ArgKind::Table(_)
            | ArgKind::Scratch { .. },
            other,
        ) => Err(wrong_type(exe, spec, &other)),
    }
}

/// A parameter in the type of the signature, if it fits.
fn param<'a>(spec: &ArgSpec, v: i64) -> Option<Value<'a>> {
    match spec.ty {
        ScalarType::I32 => i32::try_from(v).ok().map(Value::I32),
        ScalarType::I64 => Some(Value::I64(v)),
        ScalarType::Bool
        | ScalarType::F16
        | ScalarType::Bf16
        | ScalarType::I8
        | ScalarType::U8
        | ScalarType::I16
        | ScalarType::U16
        | ScalarType::U32
        | ScalarType::U64
        | ScalarType::F32
        | ScalarType::F64
        | ScalarType::C64
        | ScalarType::C128
        | ScalarType::Record(_) => None,
    }
}

fn wrong_range(exe: &Shared, spec: &ArgSpec, v: i64) -> RuntimeError {
    if !spec.ty.is_exact() {
        return wrong_type(exe, spec, &Arg::Param(v));
    }
    RuntimeError::ParameterRange { name: spec.name.clone(), value: v, ty: spec.ty }
}

fn eval(
    entry: &str,
    what: impl FnOnce() -> String,
    expr: &HostExpr,
    params: &Params,
) -> Result<i64, RuntimeError> {
    let failed = |source| RuntimeError::Expression { entry: entry.into(), what: what(), source };
    expr.eval(params).map_err(failed)
}

/// Bytes of an array.
fn size(exe: &Shared, spec: &ArgSpec, len: &HostExpr, params: &Params) -> Result<u64, RuntimeError> {
    let what = || format!("length of `{}`", spec.name);
    let elements = eval(&exe.entry, what, len, params)?;
    u64::try_from(elements)
        .ok()
        .and_then(|n| n.checked_mul(spec.ty.bytes()))
        .ok_or_else(|| RuntimeError::BadExtent { entry: exe.entry.clone(), what: what(), value: elements })
}

fn check_buffer(
    exe: &Shared,
    spec: &ArgSpec,
    len: &HostExpr,
    buffer: &Buffer,
    params: &Params,
    info: &DeviceInfo,
) -> Result<(), RuntimeError> {
    if buffer.device != exe.device {
        return Err(RuntimeError::OtherDevice {
            what: format!("buffer `{}`", spec.name),
            device: info.name.clone(),
        });
    }
    let needed = size(exe, spec, len, params)?;
    if buffer.bytes < needed {
        return Err(RuntimeError::BufferTooSmall {
            entry: exe.entry.clone(),
            name: spec.name.clone(),
            found: buffer.bytes,
            needed,
            len: len.to_string(),
            ty: spec.ty,
        });
    }
    Ok(())
}

/// No memory is passed twice if one of the two arguments is written.
fn check_aliases(exe: &Shared, given: &Given<'_>) -> Result<(), RuntimeError> {
    let mut seen: Vec<(&ArgSpec, BufferAccess, &Buffer)> = Vec::new();
    for spec in &exe.plan.args {
        let (ArgKind::Buffer { access, .. }, Some(Arg::Buffer(buffer))) =
            (&spec.kind, given.get(spec.name.as_str()))
        else {
            continue;
        };
        for &(first, earlier, _) in seen.iter().filter(|(_, _, other)| overlap(buffer, other)) {
            let written = match (earlier, access) {
                (BufferAccess::In, BufferAccess::In) => continue,
                (BufferAccess::Out | BufferAccess::InOut, _) => first,
                (BufferAccess::In, BufferAccess::Out | BufferAccess::InOut) => spec,
            };
            return Err(RuntimeError::Aliased {
                entry: exe.entry.clone(),
                first: first.name.clone(),
                second: spec.name.clone(),
                written: written.name.clone(),
            });
        }
        seen.push((spec, *access, buffer));
    }
    Ok(())
}

/// Whether two buffers have an element in common.
fn overlap(a: &Buffer, b: &Buffer) -> bool {
    match (&a.region, &b.region) {
        (Some(a), Some(b)) => a.start < b.end && b.start < a.end,
        (Some(_), None) | (None, Some(_)) | (None, None) => a.id == b.id,
    }
}

fn check_preconditions(
    (entry, plan): (&str, &LaunchPlan),
    params: &Params,
    wanted: &dyn Fn(&Precondition) -> bool,
) -> Result<(), RuntimeError> {
    for condition in plan.preconditions.iter().filter(|condition| wanted(condition)) {
        let value = eval(entry, || format!("condition `{}`", condition.text), &condition.value, params)?;
        if value >= 0 {
            continue;
        }
        if let Some(array) = &condition.array {
            return Err(RuntimeError::Strides {
                entry: entry.into(),
                array: array.clone(),
                condition: condition.text.clone(),
                params: condition.value.values(params),
            });
        }
        let condition = condition.text.clone();
        return Err(RuntimeError::Precondition { entry: entry.into(), condition, value });
    }
    Ok(())
}

fn grid(
    (entry, plan): (&str, &LaunchPlan),
    params: &Params,
    info: &DeviceInfo,
    clamp: &dyn Fn(i64) -> i64,
) -> Result<[u64; 3], RuntimeError> {
    let mut grid = [0; 3];
    for (axis, expr) in plan.grid.iter().enumerate() {
        let what = || format!("grid along g.{axis}");
        let value = clamp(eval(entry, what, expr, params)?);
        let bad = |_| RuntimeError::BadExtent { entry: entry.into(), what: what(), value };
        grid[axis] = u64::try_from(value).map_err(bad)?;
    }
    if grid.contains(&0) {
        return Ok(grid);
    }
    for (axis, &groups) in grid.iter().enumerate() {
        // Backends count work-items in 64 bits: groups times block has to fit as well.
        let limit = info.max_grid[axis].min(i64::MAX as u64 / plan.block[axis].max(1));
        if groups > limit {
            return Err(RuntimeError::GridTooLarge {
                entry: entry.into(),
                axis,
                groups,
                limit,
                device: info.name.clone(),
            });
        }
    }
    Ok(grid)
}
