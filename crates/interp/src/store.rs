//! Elements of the variables of a run and which of them have a value.

use super::error::InterpError;
use super::memory::{Memory, Value};
use super::node::Program;
use kingpost_ir::constant::TableData;
use kingpost_ir::ids::{Id, VarId};
use kingpost_ir::kernel::{Direction, Kernel, VarKind, Variable};
use kingpost_ir::types::{Class, ScalarType};

/// Elements a temporary may have in a run: 4 GiB with their marks.
const MAX_MADE: usize = 1 << 28;

/// Real part and imaginary part.
pub(super) type Pair = [f64; 2];

/// Elements of each kind; reals of fewer bits are kept as `f64`, integers of 64 bits without sign by
/// their bits, truth values as 0 and 1.
#[derive(Clone, Debug)]
pub(super) enum Elements {
    Real(Vec<f64>),
    Int(Vec<i64>),
    Complex(Vec<Pair>),
}

/// A variable during a run.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) elements: Elements,
    /// Which elements have a value; all of them if absent.
    pub(super) defined: Option<Vec<bool>>,
    pub(super) reads: u64,
    pub(super) writes: u64,
}

/// `name[2, 3]` for the element at a row-major position.
pub(super) fn element_name(name: &str, shape: &[usize], mut at: usize) -> String {
    let mut index = vec![0; shape.len()];
    for (k, extent) in index.iter_mut().zip(shape).rev() {
        *k = at % extent.max(&1);
        at /= extent.max(&1);
    }
    if index.is_empty() { name.to_owned() } else { format!("{name}{index:?}") }
}

fn from_value(value: &Value) -> Elements {
    match value.ty().class() {
        Class::Real => Elements::Real(value.to_f64()),
        Class::Complex => Elements::Complex(value.to_f64().chunks_exact(2).map(|z| [z[0], z[1]]).collect()),
        Class::Exact | Class::Word | Class::Truth | Class::Record => Elements::Int(value.integers()),
    }
}

fn from_table(data: &TableData) -> Elements {
    match data {
        TableData::Real(v) => Elements::Real(v.iter().map(|x| x.0).collect()),
        TableData::Int(v) => Elements::Int(v.to_vec()),
        TableData::Complex(v) => Elements::Complex(v.iter().map(|z| [z.re.0, z.im.0]).collect()),
    }
}

/// The elements as `ty`: integers were checked when they were stored.
fn to_value(elements: Elements, ty: ScalarType) -> Value {
    match (elements, ty) {
        (Elements::Real(v), ScalarType::F64) => Value::F64(v),
        (Elements::Real(v), ty) => Value::of_reals(ty, &v),
        (Elements::Complex(v), ty) => Value::of_reals(ty, v.as_flattened()),
        (Elements::Int(v), ScalarType::I64) => Value::I64(v),
        (Elements::Int(v), ty) => Value::of_bits(ty, &v),
    }
}

/// The slots of a kernel, arguments taken from `memory`.
pub(super) fn load(kernel: &Kernel, program: &Program, memory: &Memory) -> Result<Vec<Slot>, InterpError> {
    load_some(kernel, program, memory, &|_| true)
}

/// The slots of some variables; the others are empty and must not be accessed.
pub(super) fn load_some(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
    wanted: &dyn Fn(VarId) -> bool,
) -> Result<Vec<Slot>, InterpError> {
    let mut slots = Vec::with_capacity(kernel.vars.len());
    for (id, var) in kernel.vars.iter() {
        if !wanted(id) {
            slots.push(Slot { elements: Elements::Int(Vec::new()), defined: None, reads: 0, writes: 0 });
            continue;
        }
        let shape = &program.shapes[id.index()];
        let len = shape.iter().product();
        let given = memory.get(&var.name);
        if len > MAX_MADE && (var.kind == VarKind::Temporary || given.is_none()) {
            return Err(InterpError::TooLarge { name: var.name.clone(), elements: len, limit: MAX_MADE });
        }
        let zeros = || from_value(&Value::zeros(var.ty, len));
        let (elements, defined) = match &var.kind {
            VarKind::Param => (Elements::Int(Vec::new()), None),
            VarKind::Table(data) => (from_table(data), None),
            VarKind::Temporary => (zeros(), Some(vec![false; len])),
            VarKind::Argument(direction) => {
                let value = given.map(|v| checked(var, v, shape, len)).transpose()?.map(from_value);
                match (direction, value) {
                    (Direction::Out, value) => (value.unwrap_or_else(zeros), Some(vec![false; len])),
                    (Direction::In | Direction::InOut, Some(value)) => (value, None),
                    (Direction::In | Direction::InOut, None) => {
                        return Err(InterpError::Missing { kind: "argument", name: var.name.clone() });
                    }
                }
            }
        };
        slots.push(Slot { elements, defined, reads: 0, writes: 0 });
    }
    Ok(slots)
}

pub(super) fn checked<'v>(
    var: &Variable,
    value: &'v Value,
    shape: &[usize],
    needed: usize,
) -> Result<&'v Value, InterpError> {
    let name = || var.name.clone();
    if value.ty() != var.ty {
        return Err(InterpError::WrongType { name: name(), needed: var.ty, found: value.ty() });
    }
    if value.len() != needed {
        let (found, shape) = (value.len(), format!("{shape:?}"));
        return Err(InterpError::WrongLength { name: name(), needed, found, shape });
    }
    Ok(value)
}

/// Writes `out` and `inout` arguments back.
pub(super) fn unload(kernel: &Kernel, slots: Vec<Slot>, memory: &mut Memory) {
    for (var, slot) in kernel.vars.values().zip(slots) {
        match var.kind {
            VarKind::Argument(Direction::Out | Direction::InOut) => {
                memory.set(var.name.clone(), to_value(slot.elements, var.ty));
            }
            VarKind::Argument(Direction::In) | VarKind::Param | VarKind::Temporary | VarKind::Table(_) => {}
        }
    }
}
