//! The launch plan: signature, grid, block, memory, features, preconditions.

use crate::axes::{Axes, host_expr};
use crate::code::Code;
use crate::double_single::rewrite::held_table;
use crate::error::CodegenError;
use crate::function::{Param, TensorParam};
use crate::plan::{
    ArgKind, ArgSpec, BufferAccess, Defined, Feature, HostExpr, LaunchPlan, Precondition, TensorMap,
};
use crate::target::TargetDescription;
use kingpost_ir::{
    AddressSpace, Affine, Assumption, Constraint, Direction, Expr, Kernel, ScalarType, Spacing, VarId,
    VarKind, Variable,
};

/// Arguments in the order of the signature: parameters, arguments, global tables and global
/// temporaries as the kernel lists its variables, each with its parameter in the code.
pub(crate) fn args(kernel: &Kernel, params: &[Param], target: &TargetDescription) -> Vec<ArgSpec> {
    let args = kernel.vars.values().filter_map(|v| arg(kernel, v, target));
    args.zip(params).map(|(arg, p)| ArgSpec { aligned: p.aligned.unwrap_or(arg.aligned), ..arg }).collect()
}

fn arg(kernel: &Kernel, var: &Variable, target: &TargetDescription) -> Option<ArgSpec> {
    let mut ty = var.ty;
    let kind = match &var.kind {
        VarKind::Param => ArgKind::Param,
        VarKind::Argument(Direction::In) if var.shape.is_empty() && var.space == AddressSpace::Private => {
            ArgKind::Scalar
        }
        VarKind::Argument(direction) => {
            ArgKind::Buffer { len: length(kernel, var), access: access(*direction) }
        }
        VarKind::Table(data) if var.space == AddressSpace::Global => {
            let (held, data) = held_table(kernel, var, data);
            ty = held;
            ArgKind::Table(data)
        }
        VarKind::Temporary if var.space == AddressSpace::Global => {
            ArgKind::Scratch { len: length(kernel, var), zeroed: false }
        }
        VarKind::Table(_) | VarKind::Temporary => return None,
    };
    // devices read a complex number in one piece, a host part by part
    let piece = if target.is_host() { ty.part() } else { ty };
    Some(ArgSpec { name: var.name.clone(), ty, kind, aligned: piece.bytes() })
}

fn access(direction: Direction) -> BufferAccess {
    match direction {
        Direction::In => BufferAccess::In,
        Direction::Out => BufferAccess::Out,
        Direction::InOut => BufferAccess::InOut,
    }
}

/// Elements of a buffer: the product of the extents, or one more than the offset of the last
/// element.
fn length(kernel: &Kernel, var: &Variable) -> HostExpr {
    let Some(strides) = var.layout.strides() else {
        return var.shape.iter().map(|e| host_expr(kernel, e)).fold(HostExpr::Const(1), multiply);
    };
    let last = var.shape.iter().zip(strides).fold(HostExpr::Const(1), |sum, (extent, stride)| {
        let extent = host_expr(kernel, &extent.plus_constant(-1));
        HostExpr::Add(Box::new(sum), Box::new(multiply(extent, host_expr(kernel, stride))))
    });
    HostExpr::Max(Box::new(last), Box::new(HostExpr::Const(0)))
}

fn multiply(a: HostExpr, b: HostExpr) -> HostExpr {
    match (a, b) {
        (HostExpr::Const(x), HostExpr::Const(y)) if x.checked_mul(y).is_some() => HostExpr::Const(x * y),
        (HostExpr::Const(1), e) | (e, HostExpr::Const(1)) => e,
        (a, b) => HostExpr::Mul(Box::new(a), Box::new(b)),
    }
}

/// The whole plan.
///
/// # Errors
/// A group too large for the target.
pub(crate) fn plan(
    kernel: &Kernel,
    target: &TargetDescription,
    axes: &Axes,
    code: &Code,
    features: Vec<Feature>,
) -> Result<LaunchPlan, CodegenError> {
    let grid =
        [0, 1, 2].map(|k: usize| axes.grid[k].as_ref().map_or(HostExpr::Const(1), |a| a.extent.clone()));
    let block = [0, 1, 2].map(|k: usize| axes.block[k].as_ref().map_or(1, |a| a.extent.unsigned_abs()));
    let found: u64 = block.iter().product();
    if let Some(limit) = target.limits.work_items.filter(|limit| found > *limit) {
        return Err(CodegenError::BlockTooLarge { found, limit, target: target.target });
    }
    let mut preconditions = conditions(kernel)?;
    for TensorParam { map, .. } in &code.function.maps {
        preconditions.extend(kernel.vars[map.var].shape.iter().filter_map(|extent| indexed(kernel, extent)));
    }
    preconditions.dedup();
    let Code { local_bytes, dynamic_local_bytes, private_bytes, .. } = *code;
    let args = args(kernel, &code.function.params, target);
    Ok(LaunchPlan {
        args,
        maps: code.function.maps.iter().map(|param| map_of_tensor(kernel, param)).collect(),
        grid,
        block,
        local_bytes,
        dynamic_local_bytes,
        private_bytes,
        features,
        preconditions,
        defined: defined(kernel)?,
        notes: code.notes.clone(),
    })
}

/// The engine that copies boxes takes indices of 32 bits.
fn indexed(kernel: &Kernel, extent: &Affine) -> Option<Precondition> {
    let most = i64::from(i32::MAX);
    let below = extent.times(-1).plus_constant(most);
    let of = |e| Precondition {
        value: host_expr(kernel, e),
        text: format!("{} <= {most}", host_expr(kernel, extent)),
        array: None,
    };
    below.as_constant().is_none_or(|n| n < 0).then(|| of(&below))
}

fn map_of_tensor(kernel: &Kernel, TensorParam { name, map }: &TensorParam) -> TensorMap {
    let array = &kernel.vars[map.var];
    let extents: Vec<HostExpr> = array.shape.iter().map(|e| host_expr(kernel, e)).collect();
    let strides = match array.layout.strides() {
        Some(strides) => strides.iter().map(|s| host_expr(kernel, s)).collect(),
        None => {
            let mut strides = vec![HostExpr::Const(1); extents.len()];
            let mut stride = HostExpr::Const(1);
            for axis in array.layout.order(extents.len()).into_iter().rev() {
                strides[axis] = stride.clone();
                stride = multiply(stride, extents[axis].clone());
            }
            strides
        }
    };
    let (name, array, ty) = (name.to_string(), array.name.clone(), array.ty);
    TensorMap { name, array, ty, extents, strides, sides: map.sides.clone(), is_swizzled: map.is_swizzled }
}

/// The parameters that are computed, in order.
pub(crate) fn defined(kernel: &Kernel) -> Result<Vec<Defined>, CodegenError> {
    let of = |(param, value): (VarId, &Expr)| {
        let name = kernel.vars[param].name.clone();
        let value = HostExpr::of_definition(value, &|v| kernel.vars[v].name.clone()).ok_or_else(|| {
            CodegenError::Internal {
                what: format!("`{name}` is computed by what no parameter is computed by"),
                kernel: kernel.to_string(),
            }
        })?;
        Ok(Defined { name, value })
    };
    kernel.definitions().map(of).collect()
}

/// What the code relies on: what is assumed of the parameters, that extents are not negative, and that
/// strides keep elements apart.
///
/// # Errors
/// Strides that no parameters allow.
pub(crate) fn conditions(kernel: &Kernel) -> Result<Vec<Precondition>, CodegenError> {
    let mut all: Vec<_> = kernel.assumptions.iter().flat_map(|a| preconditions(kernel, a)).collect();
    for extent in extents(kernel) {
        if !all.contains(&extent) {
            all.push(extent);
        }
    }
    all.extend(spacings(kernel)?);
    Ok(all)
}

fn preconditions(kernel: &Kernel, assumption: &Assumption) -> Vec<Precondition> {
    let (text, values) = match assumption {
        Assumption::Defined(..)
        | Assumption::Injective(_)
        | Assumption::Ascending(_)
        | Assumption::Outside(_)
        | Assumption::Symmetric(_)
        | Assumption::Lists(_) => return Vec::new(),
        Assumption::Params(Constraint::NonNegative(e)) => {
            (format!("{} >= 0", host_expr(kernel, e)), vec![e.clone()])
        }
        Assumption::Params(Constraint::Zero(e)) => {
            (format!("{} == 0", host_expr(kernel, e)), vec![e.clone(), e.times(-1)])
        }
    };
    let of = |e| Precondition { value: host_expr(kernel, e), text: text.clone(), array: None };
    values.iter().map(of).collect()
}

/// What is not proved of the strides of arguments.
///
/// # Errors
/// Strides that no parameters allow, which the verifier refuses.
fn spacings(kernel: &Kernel) -> Result<Vec<Precondition>, CodegenError> {
    let mut all = Vec::new();
    for var in kernel.vars.values().filter(|var| matches!(var.kind, VarKind::Argument(_))) {
        let open = kernel.unproved_spacing(var).map_err(|_| CodegenError::Internal {
            what: format!("the elements of `{}` share places", var.name),
            kernel: kernel.to_string(),
        })?;
        all.extend(open.into_iter().map(|spacing| of_spacing(kernel, var, spacing)));
    }
    Ok(all)
}

/// One of these is not negative: that an axis has one element or none, that the array has none, what the
/// strides have to satisfy.
fn of_spacing(kernel: &Kernel, var: &Variable, spacing: Spacing) -> Precondition {
    let strides = var.layout.strides().unwrap_or_default(); // without any, nothing is unproved
    let (stride, extent) =
        (|axis: usize| host_expr(kernel, &strides[axis]), |axis: usize| host_expr(kernel, &var.shape[axis]));
    let covers = |i, j| {
        let inside = multiply(HostExpr::Const(-1), multiply(stride(j), extent(j)));
        HostExpr::Add(Box::new(stride(i)), Box::new(inside))
    };
    let larger = |a, b| HostExpr::Max(Box::new(a), Box::new(b));
    let (axes, enough) = match spacing {
        Spacing::Axis(i, least) => (vec![i], host_expr(kernel, &strides[i].plus_constant(-least))),
        Spacing::Pair(i, j) => (vec![i, j], larger(covers(i, j), covers(j, i))),
    };
    let parametric = (0..var.shape.len()).filter(|axis| var.shape[*axis].as_constant().is_none());
    let few = parametric.map(|axis| {
        let one = i64::from(axes.contains(&axis));
        host_expr(kernel, &var.shape[axis].times(-1).plus_constant(one))
    });
    let value = few.fold(enough, larger);
    let list = |all: Vec<HostExpr>| all.iter().map(HostExpr::to_string).collect::<Vec<_>>().join(", ");
    let all = 0..var.shape.len();
    let (extents, strides) = (list(all.clone().map(extent).collect()), list(all.map(stride).collect()));
    let what = match var.kind {
        VarKind::Argument(Direction::In) => "are not negative",
        VarKind::Argument(_) | VarKind::Param | VarKind::Temporary | VarKind::Table(_) => {
            "keep elements apart"
        }
    };
    let text = format!("strides({strides}) of {}[{extents}] {what}", var.name);
    Precondition { value, text, array: Some(var.name.clone()) }
}

/// Extents of arguments that must not be negative. Of a single one the length of the buffer tells;
/// the product of two negative ones looks like that of two positive ones.
fn extents(kernel: &Kernel) -> Vec<Precondition> {
    let parametric = |var: &'_ Variable| match var.kind {
        VarKind::Argument(_) => var.shape.iter().filter(|e| e.as_constant().is_none()).cloned().collect(),
        VarKind::Param | VarKind::Temporary | VarKind::Table(_) => Vec::new(),
    };
    let several = kernel.vars.values().map(parametric).filter(|extents: &Vec<_>| extents.len() > 1);
    let conditions = several.flatten().map(|e| Assumption::Params(Constraint::NonNegative(e)));
    conditions.flat_map(|c| preconditions(kernel, &c)).collect()
}

/// Features that the code of calls needs.
///
/// # Errors
/// [`CodegenError::UnknownFeature`].
pub(crate) fn features_of_calls(
    kernel: &Kernel,
    target: &TargetDescription,
) -> Result<Vec<Feature>, CodegenError> {
    let mut features = Vec::new();
    for call in crate::callees::with_code(kernel, target)?.values() {
        let callee = &kernel.callees[call.callee];
        for need in callee.code_for(target.name).into_iter().flat_map(|code| &code.needs) {
            features.push((target.feature)(need).ok_or_else(|| CodegenError::UnknownFeature {
                callee: callee.name().into(),
                need: need.clone(),
                target: target.target,
                known: target.features,
            })?);
        }
    }
    features.sort_unstable();
    features.dedup();
    Ok(features)
}

/// Features by the types that variables have.
pub(crate) fn features(
    kernel: &Kernel,
    target: &TargetDescription,
    doubles: bool,
    wide_atomics: bool,
) -> Vec<Feature> {
    let mut features = Vec::new();
    if doubles || kernel.vars.values().any(|v| v.ty.part() == ScalarType::F64) {
        features.push(Feature::Fp64);
    }
    features.extend(target.atomics.wide.filter(|_| wide_atomics));
    features
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Options, Target, generate};

    const ROWS: &str = "\
kernel rows

param n: i32
arg u: f64[n, 4] in
arg v: f32[n, 4] in
arg w: f64[n] in
arg y: f64[n, 4] inout

for i in 0..n {g.0}
  for j in 0..4 {vector}
    s: y[i, j] = u[i, j] + f64(v[i, j])
  t: y[i, 0] += w[i]
";

    /// Vectors of CUDA's start at multiples of their size, which is that of two lanes here; those of
    /// others at any element.
    #[test]
    fn arrays_start_where_the_widest_access_may() {
        let kernel = kingpost_ir::text::parse(ROWS).unwrap();
        let aligned = |target| {
            let program = generate(&kernel, target, &Options::default()).unwrap();
            let args = program.plan.args.into_iter();
            args.map(|arg| (arg.name, arg.aligned)).collect::<Vec<_>>()
        };
        let plain = |n, u, v, w, y| -> Vec<(String, u64)> {
            [("n", n), ("u", u), ("v", v), ("w", w), ("y", y)].map(|(name, at)| (name.into(), at)).into()
        };
        assert_eq!(aligned(Target::Cuda), plain(4, 16, 8, 8, 16));
        assert_eq!(aligned(Target::OpenCl), plain(4, 8, 4, 8, 8));
        assert_eq!(aligned(Target::C), plain(4, 8, 4, 8, 8));
    }

    /// What is not proved of strides is a condition of the launch, one for each axis and each pair of them.
    #[test]
    fn strides_are_conditions() {
        let text = "\
kernel k

param n: i32
param s: i64
param t: i64
arg x: f64[n, 4] in strides(s, 1)
arg y: f64[n, 4] out strides(s, t)

for i in 0..n
  for j in 0..4
    a: y[i, j] = x[i, j]
";
        let conditions = |assumed: &str| {
            let text = text.replace("\nfor i", &format!("{assumed}\nfor i"));
            let kernel = kingpost_ir::text::parse(&text).unwrap();
            let all = generate(&kernel, Target::C, &Options::default()).unwrap().plan.preconditions;
            let of_strides = all.into_iter().filter(|condition| condition.array.is_some());
            of_strides.map(|c| format!("{}: {}", c.text, c.value)).collect::<Vec<_>>()
        };
        let (x, y) =
            ("strides(s, 1) of x[n, 4] are not negative", "strides(s, t) of y[n, 4] keep elements apart");
        assert_eq!(
            conditions(""),
            [
                format!("{x}: max(s, (-1*n + 1))"),
                format!("{y}: max((s + -1), (-1*n + 1))"),
                format!("{y}: max((t + -1), -1*n)"),
                format!("{y}: max(max((s + -1*t*4), (t + -1*s*n)), (-1*n + 1))"),
            ]
        );
        assert_eq!(conditions("assume t >= 1\nassume s >= 4*t\n"), [""; 0]);
    }
}
