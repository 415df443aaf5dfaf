//! Arguments in memory as a kernel's layouts say.

use purlin_interp::{Memory, Value};
use purlin_ir::{Affine, Atom, Kernel, Variable};
use std::borrow::Cow;

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

/// The elements of a variable row by row, from an array that lies as its layout says.
#[must_use]
pub fn gathered(kernel: &Kernel, var: &Variable, memory: &Memory, value: Value) -> Value {
    fn picked<T: Copy>(values: &[T], places: &[usize]) -> Vec<T> {
        places.iter().filter_map(|place| values.get(*place)).copied().collect()
    }
    let Some((places, _)) = places(kernel, var, memory) else { return value };
    match value {
        Value::F64(v) => Value::F64(picked(&v, &places)),
        Value::F32(v) => Value::F32(picked(&v, &places)),
        Value::I32(v) => Value::I32(picked(&v, &places)),
        Value::I64(v) => Value::I64(picked(&v, &places)),
        Value::I16(v) => Value::I16(picked(&v, &places)),
    }
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
    let (shape, strides) = (values(&var.shape)?, values(var.layout.strides.as_ref()?)?);
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
        Value::I32(v) => Value::I32(placed(v, places, size, -1)),
        Value::I64(v) => Value::I64(placed(v, places, size, -1)),
        Value::I16(v) => Value::I16(placed(v, places, size, -1)),
    }
}
