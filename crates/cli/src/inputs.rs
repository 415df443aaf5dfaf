//! Values for the kernel of a file: from the command line, from a file, of a mesh, at random.

use super::failure::Failure;
use super::mesh_inputs::{LoweredArrays, unit_mesh_of};
use super::text_file::read;
use super::values::{Order, ParamArg, evaluate, file_mesh, missing, order_of, unit_mesh, unknown};
use clap::Args;
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::interp::{Memory, Value};
use kingpost::ir::{
    Affine, Assumption, Atom, Class, Direction, Expr, Kernel, ScalarType, VarId, VarKind, Variable,
};
use kingpost::runtime::RuntimeError;
use kingpost::{Random, check_memory, settled};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a kernel is given.
#[derive(Args, Clone)]
pub struct InputArgs {
    /// Divisions of each side of the unit square or cube: 2 n^2 triangles or 6 n^3 tetrahedra
    /// [default: 32 or 8]
    #[arg(long, value_name = "N", conflicts_with = "mesh")]
    pub cells: Option<usize>,
    /// Gmsh file (MSH 4.1 or 2.2) with the mesh of a form, or of a kernel that was lowered from one
    #[arg(long, value_name = "FILE.msh")]
    pub mesh: Option<PathBuf>,
    /// Order of the degrees of freedom of a form, by name or exported, or of a kernel that was lowered
    /// from one [default: by-dimension]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub numbering: Option<Order>,
    /// Value of a parameter of a file's kernel; repeat it for each
    #[arg(short, long, value_name = "NAME=VALUE")]
    param: Vec<ParamArg>,
    /// JSON object of argument values for a file's kernel, instead of random ones: {"rowptr": [0,
    /// 2, 3]}
    #[arg(long, value_name = "FILE.json")]
    values: Option<PathBuf>,
}

impl InputArgs {
    /// What they say of values, besides the parameters that steps have `fixed`.
    pub fn wanted(&self, fixed: BTreeMap<String, i64>) -> Wanted<'_> {
        let (mesh, values) = (self.mesh.as_deref(), self.values.as_deref());
        Wanted { cells: self.cells, mesh, order: self.numbering, param: &self.param, fixed, values }
    }

    /// The parameters that are given.
    pub fn given(&self) -> Result<BTreeMap<String, i64>, Failure> {
        ParamArg::collect(&self.param)
    }

    /// The order of the degrees of freedom of a form.
    pub fn order(&self) -> NumberingOrder {
        order_of(self.numbering)
    }

    /// Refuses values for a form by name.
    pub fn refuse_values_of_form(&self) -> Result<(), Failure> {
        if self.param.is_empty() && self.values.is_none() {
            return Ok(());
        }
        let message = "--param and --values are for .kingpost files; a form takes its sizes from the mesh";
        Err(Failure::Usage(message.into()))
    }
}

/// What the command line says of values.
#[derive(Clone, Default)]
pub struct Wanted<'a> {
    /// Divisions of the unit mesh.
    pub cells: Option<usize>,
    /// A Gmsh file.
    pub mesh: Option<&'a Path>,
    /// The order of the degrees of freedom.
    pub order: Option<Order>,
    /// Values of parameters.
    pub param: &'a [ParamArg],
    /// Values of parameters that the steps to be applied fix.
    pub fixed: BTreeMap<String, i64>,
    /// A JSON file of values of arguments.
    pub values: Option<&'a Path>,
}

/// Values of all parameters and arguments.
pub struct Inputs {
    /// The values.
    pub memory: Memory,
    /// Where those come from that were not given, if there is something to say.
    pub origin: Option<String>,
    /// The order of degrees of freedom.
    pub order: NumberingOrder,
}

/// Parameters from the command line, arguments from the file of values, of a mesh, or else at
/// random.
pub fn inputs(args: &Wanted<'_>, kernel: &Kernel, seed: u64) -> Result<Inputs, Failure> {
    let lowered = LoweredArrays::of(kernel);
    let mut memory = Memory::new();
    let mut params = ParamArg::of_kernel(args.param, &args.fixed, kernel)?;
    let given = given(args, kernel)?;
    add_extents(kernel, &given, &mut params)?;
    if args.order.is_some() && lowered.is_none() {
        let message = "--numbering is for forms and for kernels that were lowered from one";
        return Err(Failure::Usage(message.into()));
    }
    let mut origin = None;
    if let Some(mesh) = chosen_mesh(args, lowered.as_ref())? {
        let lowered = lowered.as_ref().ok_or_else(no_form)?;
        for (name, value) in lowered.sizes(kernel, &mesh)? {
            if params.insert(name.clone(), value).is_some_and(|other| other != value) {
                return Err(Failure::Usage(format!("--param {name}: the mesh has {value}; leave it out")));
            }
        }
        check_sizes(kernel, &params)?;
        lowered.fill(kernel, &mesh, order_of(args.order), &params, &mut memory)?;
        origin = Some("cells and degrees of freedom of the mesh, the rest random".to_owned());
    } else if let Some(lowered) = &lowered {
        let maps_given = lowered.arrays().any(|id| given.contains_key(&kernel.vars[id].name));
        check_sizes(kernel, &params)?;
        let mesh = if maps_given { None } else { unit_mesh_of(kernel, lowered, &params) };
        if let Some(mesh) = mesh {
            lowered.fill(kernel, &mesh, order_of(args.order), &params, &mut memory)?;
            origin =
                Some("cells and degrees of freedom of the unit mesh of these sizes, the rest random".into());
        } else if !maps_given {
            origin = Some(
                "random maps: no unit mesh has these sizes, so that cells may be degenerate; give --cells or --mesh"
                    .into(),
            );
        }
    }
    params.iter().for_each(|(name, value)| memory.set_param(name, *value));
    let mut needed = kernel.vars.values().filter(|v| v.kind == VarKind::Param);
    if let Some(Variable { name, .. }) = needed.find(|v| !params.contains_key(&v.name)) {
        return Err(match lowered.is_some() {
            true => Failure::Usage(format!("{}, or give --cells 4", missing(name).text())),
            false => missing(name),
        });
    }
    check_sizes(kernel, &params)?;
    let mut random = Random::new(seed);
    for (id, var) in kernel.vars.iter() {
        let name = &var.name;
        match var.kind {
            VarKind::Argument(Direction::In | Direction::InOut) => {}
            VarKind::Param | VarKind::Argument(Direction::Out) | VarKind::Temporary | VarKind::Table(_) => {
                continue;
            }
        }
        if memory.get(name).is_some() && !given.contains_key(name) {
            continue;
        }
        let value = match given.get(name) {
            Some(json) => sized(kernel, id, &params, from_json(name, json, var.ty)?)?,
            None => random_value(kernel, id, &params, &mut random)?,
        };
        memory.set(name, value);
    }
    let order = order_of(args.order);
    let Cow::Owned(settled) = settled(kernel, &memory) else { return Ok(Inputs { memory, origin, order }) };
    let text = |memory: &Memory, name: &str| format!("{:?}", memory.get(name)); // nan is nan
    match given.keys().find(|name| text(&settled, name) != text(&memory, name)) {
        Some(name) => Err(Failure::Usage(format!(
            "`{name}` has several values in one place: its strides put several elements there; give these one value"
        ))),
        None => Ok(Inputs { memory: settled, origin, order }),
    }
}

/// Copies of the arguments that are alive at once: the inputs, what the interpreter makes of them,
/// a device's on the host, and results.
const COPIES: u64 = 4;

/// Parameters fit their types, and the arguments this machine: before any is drawn.
fn check_sizes(kernel: &Kernel, params: &BTreeMap<String, i64>) -> Result<(), Failure> {
    let mut bytes = 0_u64;
    for var in kernel.vars.values() {
        let value = params.get(&var.name).filter(|_| var.ty == ScalarType::I32);
        match (&var.kind, value) {
            (VarKind::Param, Some(value)) if i32::try_from(*value).is_err() => {
                let (name, value, ty) = (var.name.clone(), *value, var.ty);
                return Err(Failure::Usage(RuntimeError::ParameterRange { name, value, ty }.to_string()));
            }
            (VarKind::Argument(_), _) => {
                // a length that is negative or has no value is refused when it is drawn
                bytes = bytes.saturating_add(elements(kernel, var, params).saturating_mul(var.ty.bytes()));
            }
            (VarKind::Param | VarKind::Temporary | VarKind::Table(_), _) => {}
        }
    }
    check_memory("the arguments", bytes.saturating_mul(COPIES), "give smaller parameters")?;
    Ok(())
}

/// Elements of an array as it lies in memory.
fn elements(kernel: &Kernel, var: &Variable, params: &BTreeMap<String, i64>) -> u64 {
    let value = |e: &Affine| u64::try_from(evaluate(kernel, e, params).unwrap_or(0)).unwrap_or(0);
    let extents = var.shape.iter().map(value);
    match var.layout.strides() {
        None => extents.fold(1, u64::saturating_mul),
        Some(strides) => {
            let along = extents.zip(strides).map(|(n, stride)| n.saturating_mul(value(stride)));
            along.fold(1, u64::saturating_add)
        }
    }
}

fn no_form() -> Failure {
    let message = "--mesh and --cells are for forms and for kernels that were lowered from one; give sizes with \
                   --param n=1000";
    Failure::Usage(message.into())
}

/// The mesh that the command line names.
fn chosen_mesh(args: &Wanted<'_>, lowered: Option<&LoweredArrays>) -> Result<Option<Mesh>, Failure> {
    if args.mesh.is_none() && args.cells.is_none() {
        return Ok(None);
    }
    let dim = lowered.ok_or_else(no_form)?.dim;
    match (args.mesh, args.cells) {
        (Some(path), _) => file_mesh(path, dim).map(Some),
        (None, Some(n)) => unit_mesh(dim, n).map(Some),
        (None, None) => Ok(None),
    }
}

/// The values in the file, each of an argument that takes one.
fn given(args: &Wanted<'_>, kernel: &Kernel) -> Result<BTreeMap<String, serde_json::Value>, Failure> {
    let Some(path) = args.values else { return Ok(BTreeMap::new()) };
    let refused = |message: String| Failure::Usage(format!("`{}`: {message}", path.display()));
    let given: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&read(path)?).map_err(|e| refused(e.to_string()))?;
    let takes = |v: &VarId| match kernel.vars[*v].kind {
        VarKind::Argument(Direction::In | Direction::InOut) => true,
        VarKind::Argument(Direction::Out) | VarKind::Param | VarKind::Temporary | VarKind::Table(_) => false,
    };
    let known: Vec<&str> = kernel.vars.ids().filter(takes).map(|v| &*kernel.vars[v].name).collect();
    if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(match kernel.var(name).map(|v| &kernel.vars[v].kind) {
            Some(VarKind::Argument(_)) => refused(format!("`{name}` is only written; leave it out")),
            Some(VarKind::Param) => {
                refused(format!("`{name}` is a parameter; give it with --param {name}=1000"))
            }
            Some(VarKind::Temporary | VarKind::Table(_)) | None => {
                unknown(kernel, "argument that takes values", name, &known)
            }
        });
    }
    Ok(given)
}

/// Adds the parameters that the numbers of values say, and what is computed from them.
fn add_extents(
    kernel: &Kernel,
    given: &BTreeMap<String, serde_json::Value>,
    params: &mut BTreeMap<String, i64>,
) -> Result<(), Failure> {
    let found = |params: &BTreeMap<String, i64>| {
        let of = |(name, json): (&String, &serde_json::Value)| {
            of_length(kernel, name, json.as_array()?.len(), params).transpose()
        };
        given.iter().find_map(of).transpose()
    };
    while let Some((name, value)) = found(params)? {
        params.insert(name, value);
        let all = kernel.with_defined(params).map_err(|error| Failure::Usage(error.to_string()))?;
        *params = all.into_owned();
    }
    Ok(())
}

/// The only unknown parameter in the shape of an array with this number of elements, and its value.
fn of_length(
    kernel: &Kernel,
    name: &str,
    elements: usize,
    params: &BTreeMap<String, i64>,
) -> Result<Option<(String, i64)>, Failure> {
    let Some(var) = kernel.var(name).map(|id| &kernel.vars[id]) else { return Ok(None) };
    let (known, unknown): (Vec<_>, Vec<_>) =
        var.shape.iter().map(|e| (e, evaluate(kernel, e, params))).partition(|(_, value)| value.is_some());
    let [(extent, _)] = unknown[..] else { return Ok(None) };
    let rest = known.iter().try_fold(1_i64, |rest, (_, value)| rest.checked_mul((*value)?));
    let extent = extent.substitute(&|atom| match atom {
        Atom::Var(v) => params.get(&kernel.vars[*v].name).copied().map(Affine::constant),
        Atom::Iname(_) | Atom::Floor(..) => None,
    });
    let (Some(rest), Ok(elements), [(Atom::Var(param), factor)]) =
        (rest.filter(|rest| *rest > 0), i64::try_from(elements), extent.terms())
    else {
        return Ok(None);
    };
    let param = &kernel.vars[*param].name;
    let value = elements / rest - extent.constant_term();
    if elements % rest != 0 || value % factor != 0 {
        let shape: Vec<_> = var.shape.iter().map(|e| kernel.show_affine(e).to_string()).collect();
        let shape = shape.join(", ");
        let message = format!(
            "`{name}` has {elements} values, and no `{param}` makes that [{shape}]; give others, or --param {param}=1000"
        );
        return Err(Failure::Usage(message));
    }
    Ok(Some((param.clone(), value / factor)))
}

/// The values, if they are as many as the argument has elements.
fn sized(kernel: &Kernel, id: VarId, params: &BTreeMap<String, i64>, value: Value) -> Result<Value, Failure> {
    let needed = length(kernel, id, params)?;
    if value.len() == needed {
        return Ok(value);
    }
    let var = &kernel.vars[id];
    Err(Failure::Usage(format!(
        "`{}` has {} values, needed {needed} of type {}",
        var.name,
        value.len(),
        var.ty
    )))
}

fn from_json(name: &str, json: &serde_json::Value, ty: ScalarType) -> Result<Value, Failure> {
    let items = match json {
        serde_json::Value::Array(items) => items.clone(),
        other @ (serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Object(_)) => vec![other.clone()],
    };
    let wrong = |item: &serde_json::Value| {
        Failure::Usage(format!("value of `{name}`: found {item}, needed numbers of type {ty}"))
    };
    // JSON has no way to write them as numbers
    let real = |item: &serde_json::Value| match item.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => item.as_f64(),
    };
    let reals = || items.iter().map(|i| real(i).ok_or_else(|| wrong(i))).collect::<Result<Vec<_>, _>>();
    // truth values as they are written, or as 0 and 1
    let integer = |item: &serde_json::Value| item.as_bool().map(i64::from).or_else(|| item.as_i64());
    let ints = || items.iter().map(|i| integer(i).ok_or_else(|| wrong(i))).collect::<Result<Vec<_>, _>>();
    Ok(match ty {
        ScalarType::F64 => Value::F64(reals()?),
        ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 => Value::of_reals(ty, &reals()?),
        // a number, or a list of its parts
        ScalarType::C64 | ScalarType::C128 => {
            let parts = |item: &serde_json::Value| match item.as_array().map(Vec::as_slice) {
                Some([re, im]) => Some([real(re)?, real(im)?]),
                Some(_) => None,
                None => Some([real(item)?, 0.0]),
            };
            let all =
                items.iter().map(|i| parts(i).ok_or_else(|| wrong(i))).collect::<Result<Vec<_>, _>>()?;
            Value::of_reals(ty, all.as_flattened())
        }
        ScalarType::I8
        | ScalarType::I16
        | ScalarType::I32
        | ScalarType::I64
        | ScalarType::U8
        | ScalarType::U16
        | ScalarType::U32
        | ScalarType::U64
        | ScalarType::Bool
        | ScalarType::Record(_) => {
            let ints = ints()?;
            Value::of_integers(ty, &ints).ok_or_else(|| {
                let unfit = |v: &&i64| Value::of_integers(ty, &[**v]).is_none();
                wrong(&ints.iter().find(unfit).copied().unwrap_or_default().into())
            })?
        }
    })
}

/// Elements of an array.
fn length(kernel: &Kernel, id: VarId, params: &BTreeMap<String, i64>) -> Result<usize, Failure> {
    let var = &kernel.vars[id];
    let mut len = 1_usize;
    for extent in &var.shape {
        let extent = evaluate(kernel, extent, params).and_then(|e| usize::try_from(e).ok());
        let product = extent.and_then(|e| len.checked_mul(e)).filter(|n| *n < 1 << 32);
        len = product.ok_or_else(|| {
            Failure::Usage(format!(
                "the size of `{}` is negative or too large; give other parameters",
                var.name
            ))
        })?;
    }
    Ok(len)
}

fn random_value(
    kernel: &Kernel,
    id: VarId,
    params: &BTreeMap<String, i64>,
    random: &mut Random,
) -> Result<Value, Failure> {
    let (var, len) = (&kernel.vars[id], length(kernel, id, params)?);
    let below = index_bound(kernel, id, params).unwrap_or(10).max(1) as u64;
    let indices = match kernel.assumptions.contains(&Assumption::Injective(id)) {
        true => {
            let below = below.max(len as u64);
            let what = format!("the numbers from which `{}` is drawn", var.name);
            check_memory(&what, below.saturating_mul(8), "give smaller parameters, or values with --values")?;
            distinct(len, below, random)
        }
        false => (0..len).map(|_| random.below(below)).collect(),
    };
    let mut value = match var.ty.class() {
        Class::Real => Value::of_reals(var.ty, &random.numbers(len)),
        Class::Complex => Value::of_reals(var.ty, &random.numbers(2 * len)),
        Class::Truth => Value::Bool(indices.into_iter().map(|i| (i % 2 == 1).into()).collect()),
        // a record has a variable for each field by now
        Class::Exact | Class::Word | Class::Record => {
            let most = var.ty.ends().map_or(i64::MAX, |(_, hi)| hi.min(i64::MAX.into()) as i64);
            let within: Vec<i64> = indices.into_iter().map(|i| i as i64 & most).collect();
            Value::of_bits(var.ty, &within)
        }
    };
    kingpost::interp::impose_symmetries(kernel, id, params, &mut value);
    Ok(value)
}

/// The first `len` numbers of a pseudo-random order of `0..below`.
fn distinct(len: usize, below: u64, random: &mut Random) -> Vec<u64> {
    let mut order: Vec<u64> = (0..below).collect();
    for k in 0..len.min(order.len()) {
        let other = k + random.below((order.len() - k) as u64) as usize;
        order.swap(k, other);
    }
    order.truncate(len);
    order
}

/// The smallest extent of an axis that values of an integer array index: maps must stay inside.
pub fn index_bound(kernel: &Kernel, map: VarId, params: &BTreeMap<String, i64>) -> Option<i64> {
    let mut bound = None;
    let mut visit = |access: &kingpost::ir::Access| {
        for (index, extent) in access.index.iter().zip(&kernel.vars[access.var].shape) {
            let mut uses = false;
            index.for_each(&mut |e| uses |= matches!(e, Expr::Load(a) if a.var == map));
            if let (true, Some(extent)) = (uses, evaluate(kernel, extent, params)) {
                bound = Some(bound.map_or(extent, |b: i64| b.min(extent)));
            }
        }
    };
    for insn in kernel.insns.values() {
        visit(&insn.lhs);
        insn.reads().into_iter().for_each(&mut visit);
    }
    bound
}
