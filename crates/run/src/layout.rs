//! Arguments in memory as a kernel's layouts say.

use kingpost_interp::{Memory, Value, with_elements};
use kingpost_ir::{Affine, Atom, Bf16, Complex, F16, Flag, Kernel, Places, Variable};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The memory with the elements of each array where the layout of `kernel` puts them; what no
/// element takes is NaN or -1. A memory as the interpreter takes it has them row by row, and is not
/// copied where all layouts do.
#[must_use]
pub fn laid_out<'m>(kernel: &Kernel, memory: &'m Memory) -> Cow<'m, Memory> {
    let mut result = Cow::Borrowed(memory);
    for var in kernel.vars.values() {
        if let (Some(value), Some((places, size))) = (memory.get(&var.name), places(kernel, var, memory)) {
            result.to_mut().set(&var.name, spread(value, &places, size));
        }
    }
    result
}

/// The memory in which elements that share a place have one value, that of the last of them: only arrays that
/// nothing writes have such.
#[must_use]
pub fn settled<'m>(kernel: &Kernel, memory: &'m Memory) -> Cow<'m, Memory> {
    let mut result = Cow::Borrowed(memory);
    for var in kernel.vars.values() {
        let Some((value, (places, size))) = memory.get(&var.name).zip(places(kernel, var, memory)) else {
            continue;
        };
        if places.iter().collect::<BTreeSet<_>>().len() < places.len() {
            result.to_mut().set(&var.name, picked(spread(value, &places, size), &places));
        }
    }
    result
}

/// The elements of a variable row by row, from an array that lies as its layout says.
#[must_use]
pub fn gathered(kernel: &Kernel, var: &Variable, memory: &Memory, value: Value) -> Value {
    let Some((places, _)) = places(kernel, var, memory) else { return value };
    picked(value, &places)
}

fn picked(value: Value, places: &[usize]) -> Value {
    fn of<T: Copy>(values: &[T], places: &[usize]) -> Vec<T> {
        places.iter().filter_map(|place| values.get(*place)).copied().collect()
    }
    with_elements!(value, v => of(&v, places).into())
}

/// Where the elements of a variable lie, row by row, and how many elements its memory has; `None`
/// if they lie row by row, or a size has no value.
fn places(kernel: &Kernel, var: &Variable, memory: &Memory) -> Option<(Vec<usize>, usize)> {
    let value = |e: &Affine| {
        e.eval(&mut |atom| match atom {
            Atom::Var(v) => memory.get_param(&kernel.vars[*v].name),
            Atom::Iname(_) | Atom::Floor(..) => None,
        })
    };
    let values =
        |all: &[Affine]| all.iter().map(|e| usize::try_from(value(e)?).ok()).collect::<Option<Vec<_>>>();
    let shape = values(&var.shape)?;
    let strides = match &var.layout.places {
        Places::RowMajor => return None,
        Places::Strides(strides) => values(strides)?,
        Places::Order(_) => {
            let mut strides = vec![1; shape.len()];
            let mut stride: usize = 1;
            for axis in var.layout.order(shape.len()).into_iter().rev() {
                strides[axis] = stride;
                stride = stride.checked_mul(shape[axis])?;
            }
            strides
        }
    };
    let mut places = vec![0];
    for (extent, stride) in shape.iter().zip(&strides) {
        let along = |place: &usize| (0..*extent).map(|k| place + k * stride).collect::<Vec<_>>();
        places = places.iter().flat_map(along).collect();
    }
    let size = places.iter().max().map_or(0, |last| last + 1);
    Some((places, size))
}

fn spread(value: &Value, places: &[usize], size: usize) -> Value {
    fn placed<T: Copy>(values: &[T], places: &[usize], size: usize, rest: T) -> Vec<T> {
        let mut all = vec![rest; size];
        places.iter().zip(values).for_each(|(place, v)| all[*place] = *v);
        all
    }
    match value {
        Value::F64(v) => Value::F64(placed(v, places, size, f64::NAN)),
        Value::F32(v) => Value::F32(placed(v, places, size, f32::NAN)),
        Value::I8(v) => Value::I8(placed(v, places, size, -1)),
        Value::I16(v) => Value::I16(placed(v, places, size, -1)),
        Value::I32(v) => Value::I32(placed(v, places, size, -1)),
        Value::I64(v) => Value::I64(placed(v, places, size, -1)),
        Value::U8(v) => Value::U8(placed(v, places, size, u8::MAX)),
        Value::U16(v) => Value::U16(placed(v, places, size, u16::MAX)),
        Value::U32(v) => Value::U32(placed(v, places, size, u32::MAX)),
        Value::U64(v) => Value::U64(placed(v, places, size, u64::MAX)),
        Value::Bool(v) => Value::Bool(placed(v, places, size, Flag(u8::MAX))),
        Value::F16(v) => Value::F16(placed(v, places, size, F16(u16::MAX))),
        Value::Bf16(v) => Value::Bf16(placed(v, places, size, Bf16(u16::MAX))),
        Value::C64(v) => Value::C64(placed(v, places, size, Complex { re: f32::NAN, im: f32::NAN })),
        Value::C128(v) => Value::C128(placed(v, places, size, Complex { re: f64::NAN, im: f64::NAN })),
    }
}
