//! Whether the results of a device are those of the interpreter, element by element.

mod host;

pub use host::HostError;

use crate::{LoadError, Loaded, Random, gathered};
use kingpost_interp::{InterpError, Memory, Observer, Value, interpret_with, with_elements};
use kingpost_ir::{
    Affine, Atom, Bf16, Complex, Direction, F16, Id, Kernel, ScalarType, VarId, VarKind, Variable,
};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Largest relative error of a result that counts: sums of some hundred products in double
/// precision.
pub const TOLERANCE: f64 = 1e-12;

/// Relative error in single precision above which a result is wrong: the same sums as for
/// [`TOLERANCE`].
const TOLERANCE_F32: f64 = 1e-5;

/// The same of elements of 16 bits: a few roundings to 11 bits, or to 8.
const TOLERANCE_F16: f64 = 4e-3;
const TOLERANCE_BF16: f64 = 3e-2;

/// Steps of the interpreter after which a comparison is given up: some seconds.
pub const STEPS: u64 = 50_000_000;

/// Runs of the interpreter with other roundings; each moves every operation by an ulp up or down.
const PERTURBED: u64 = 4;

/// How much further than such a run an element may be: a device rounds each of its operations once,
/// and may sum in another order.
const SLACK: f64 = 16.0;

/// What the interpreter makes of the memory.
pub struct Expected {
    memory: Memory,
    /// Elements that are written, of arguments that are only written.
    written: BTreeMap<String, Vec<bool>>,
    /// The byte that such an argument is filled with before a launch: no element that is written is
    /// that pattern.
    poison: BTreeMap<String, u8>,
    /// What other roundings make of it, once that is asked.
    perturbed: OnceCell<Vec<Memory>>,
}

/// Notes which elements are written.
struct Written(Vec<Vec<bool>>);

impl Observer for Written {
    fn write(&mut self, var: VarId, element: usize) {
        let mask = &mut self.0[var.index()];
        if element >= mask.len() {
            mask.resize(element + 1, false);
        }
        mask[element] = true;
    }
}

/// Rounds every operation that is not exact to a neighbour of its result.
struct Roundings(Random);

impl Observer for Roundings {
    const ENABLED: bool = false;
    const PERTURBS: bool = true;

    fn rounded(&mut self, value: f64, single: bool) -> f64 {
        match (self.0.below(2) == 0, single) {
            (true, true) => (value as f32).next_up().into(),
            (false, true) => (value as f32).next_down().into(),
            (true, false) => value.next_up(),
            (false, false) => value.next_down(),
        }
    }
}

fn is_out(var: &Variable) -> bool {
    var.kind == VarKind::Argument(Direction::Out)
}

impl Expected {
    /// Interprets the kernel, for at most `limit` steps.
    ///
    /// # Errors
    /// Inputs that do not fit, more steps than that.
    pub fn new(kernel: &Kernel, memory: &Memory, limit: u64) -> Result<Self, InterpError> {
        let kernel = &*kernel.scalar_form();
        let mut memory = memory.clone();
        let mut observer = Written(vec![Vec::new(); kernel.vars.len()]);
        if kernel.vars.values().any(is_out) {
            interpret_with(kernel, &mut memory, &mut observer, Some(limit))?;
        } else {
            interpret_with(kernel, &mut memory, &mut (), Some(limit))?;
        }
        let (mut written, mut poison) = (BTreeMap::new(), BTreeMap::new());
        for (id, var) in kernel.vars.iter().filter(|(_, v)| is_out(v)) {
            let Some(value) = memory.get(&var.name) else { continue };
            let mut mask = std::mem::take(&mut observer.0[id.index()]);
            mask.resize(value.len(), false);
            poison.insert(var.name.clone(), unused_byte(value, &mask));
            written.insert(var.name.clone(), mask);
        }
        Ok(Self { memory, written, poison, perturbed: OnceCell::new() })
    }

    /// What another program has computed of these inputs; nothing is known of elements that are not
    /// written.
    fn computed(inputs: &Memory, results: Vec<(String, Value)>) -> Self {
        let mut memory = inputs.clone();
        results.into_iter().for_each(|(name, value)| memory.set(name, value));
        Self { memory, written: BTreeMap::new(), poison: BTreeMap::new(), perturbed: OnceCell::new() }
    }

    /// Fills what a program only writes with patterns that tell an element that it forgets.
    ///
    /// # Errors
    /// The device refuses.
    pub fn poison(&self, loaded: &Loaded<'_>) -> Result<(), LoadError> {
        for (name, byte) in &self.poison {
            loaded.fill(name, *byte)?;
        }
        Ok(())
    }

    /// What a device has computed, held against this.
    #[must_use]
    pub fn compare(&self, results: &[(String, Value)]) -> Comparison {
        Comparison(results.iter().filter_map(|(name, found)| self.one(name, found)).collect())
    }

    fn one(&self, name: &str, found: &Value) -> Option<OneResult> {
        let needed = self.memory.get(name)?;
        let (mask, poison) = (self.written.get(name), self.poison.get(name).copied());
        let (tolerance, scale) = (tolerance(found), largest(needed, mask));
        let mut result = OneResult {
            name: name.into(),
            elements: needed.len(),
            compared: 0,
            error: 0.0,
            not_finite: 0,
            needed: needed.clone(),
            found: found.clone(),
            faults: Vec::new(),
            excused: Vec::new(),
        };
        let (is, was) = (found.to_f64(), needed.to_f64());
        let parts = needed.ty().parts();
        let is_finite = |values: &[f64], k: usize| {
            values.chunks(parts).nth(k).is_some_and(|element| element.iter().all(|x| x.is_finite()))
        };
        for k in 0..needed.len().max(found.len()) {
            let is_written = mask.is_none_or(|m| m.get(k).copied().unwrap_or(false));
            result.compared += usize::from(is_written);
            result.not_finite += usize::from(is_written && !is_finite(&is, k) && !is_finite(&was, k));
            let untouched = poison.is_some_and(|byte| pattern(found, k, byte));
            let fault = match (is_written, untouched) {
                (true, true) => Some(Fault::Forgotten),
                (false, false) => Some(Fault::Stray),
                (false, true) => None,
                (true, false) => {
                    let error = error(needed, found, k, scale) / tolerance;
                    result.error = if error > result.error { error } else { result.error };
                    (error > 1.0).then_some(Fault::Differs(error))
                }
            };
            result.faults.extend(fault.map(|fault| Off { element: k, fault }));
        }
        Some(result)
    }

    /// Takes faults away that other roundings of the interpreter explain: where a number depends on
    /// them by as much as the device is off, nobody can say which is right. Not a number where
    /// there should be one is never explained.
    pub fn excuse(&self, kernel: &Kernel, inputs: &Memory, comparison: &mut Comparison) {
        let runs = self.perturbed.get_or_init(|| perturbed(kernel, inputs));
        let is_rounded = |r: &&mut OneResult| r.needed.ty().part().is_real() && !r.faults.is_empty();
        for result in comparison.0.iter_mut().filter(is_rounded) {
            let parts = result.needed.ty().parts();
            let (needed, found) = (result.needed.to_f64(), result.found.to_f64());
            let mut moved = vec![0.0_f64; needed.len()];
            for values in runs.iter().filter_map(|memory| Some(memory.get(&result.name)?.to_f64())) {
                for ((most, value), needed) in moved.iter_mut().zip(values).zip(&needed) {
                    let distance = (value - needed).abs();
                    *most = if distance.is_finite() { most.max(distance) } else { *most };
                }
            }
            let explained = |off: &Off| {
                let near = |k: usize| (found[k] - needed[k]).abs() <= SLACK * moved[k];
                let mut all = off.element * parts..(off.element + 1) * parts;
                matches!(off.fault, Fault::Differs(_)) && all.all(near)
            };
            (result.excused, result.faults) =
                std::mem::take(&mut result.faults).into_iter().partition(explained);
        }
    }
}

/// What the kernel makes of the inputs where its operations round otherwise.
fn perturbed(kernel: &Kernel, inputs: &Memory) -> Vec<Memory> {
    let run = |seed| {
        let mut memory = inputs.clone();
        interpret_with(kernel, &mut memory, &mut Roundings(Random::new(seed)), Some(2 * STEPS)).ok()?;
        Some(memory)
    };
    (0..PERTURBED).filter_map(run).collect()
}

/// A byte that no element repeats, so that what is filled with it is told from what is written.
/// Only bytes of numbers that are none for arrays of numbers: a value that is read before it is
/// written spreads.
fn unused_byte(value: &Value, mask: &[bool]) -> u8 {
    let used = |byte: u8| (0..value.len()).any(|k| mask[k] && pattern(value, k, byte));
    // some devices make 0xFF… of any nan, so that a written one looks like it
    let all = value.to_f64();
    let mut elements = all.chunks(value.ty().parts()).zip(mask);
    let nan = elements.any(|(parts, written)| *written && parts.iter().any(|x| x.is_nan()));
    let first = (!nan).then_some(0xFF).into_iter();
    first.chain((0x81..0xFF).rev()).find(|byte| !used(*byte)).unwrap_or(0xFF)
}

/// Whether an element consists of one byte repeated.
fn pattern(value: &Value, k: usize, byte: u8) -> bool {
    match value {
        Value::F64(v) => v.get(k).is_some_and(|x| x.to_bits() == u64::from_ne_bytes([byte; 8])),
        Value::F32(v) => v.get(k).is_some_and(|x| x.to_bits() == u32::from_ne_bytes([byte; 4])),
        Value::I32(v) => v.get(k).is_some_and(|x| *x == i32::from_ne_bytes([byte; 4])),
        Value::I64(v) => v.get(k).is_some_and(|x| *x == i64::from_ne_bytes([byte; 8])),
        Value::I16(v) => v.get(k).is_some_and(|x| *x == i16::from_ne_bytes([byte; 2])),
        Value::I8(v) => v.get(k).is_some_and(|x| *x == i8::from_ne_bytes([byte])),
        Value::U8(v) => v.get(k).is_some_and(|x| *x == byte),
        Value::U16(v) => v.get(k).is_some_and(|x| *x == u16::from_ne_bytes([byte; 2])),
        Value::U32(v) => v.get(k).is_some_and(|x| *x == u32::from_ne_bytes([byte; 4])),
        Value::U64(v) => v.get(k).is_some_and(|x| *x == u64::from_ne_bytes([byte; 8])),
        Value::Bool(v) => v.get(k).is_some_and(|x| x.0 == byte),
        Value::F16(v) => v.get(k).is_some_and(|x| x.0 == u16::from_ne_bytes([byte; 2])),
        Value::Bf16(v) => v.get(k).is_some_and(|x| x.0 == u16::from_ne_bytes([byte; 2])),
        Value::C64(v) => {
            let bits = u32::from_ne_bytes([byte; 4]);
            v.get(k).is_some_and(|z| z.re.to_bits() == bits && z.im.to_bits() == bits)
        }
        Value::C128(v) => {
            let bits = u64::from_ne_bytes([byte; 8]);
            v.get(k).is_some_and(|z| z.re.to_bits() == bits && z.im.to_bits() == bits)
        }
    }
}

fn tolerance_of(result: &OneResult) -> f64 {
    tolerance(&result.found)
}

fn tolerance(value: &Value) -> f64 {
    match value {
        Value::F64(_) | Value::C128(_) => TOLERANCE,
        Value::F32(_) | Value::C64(_) => TOLERANCE_F32,
        Value::I8(_)
        | Value::I16(_)
        | Value::I32(_)
        | Value::I64(_)
        | Value::U8(_)
        | Value::U16(_)
        | Value::U32(_)
        | Value::U64(_)
        | Value::Bool(_) => 1.0,
        Value::F16(_) => TOLERANCE_F16,
        Value::Bf16(_) => TOLERANCE_BF16,
    }
}

/// Size of the largest number among the elements that are written.
fn largest(value: &Value, mask: Option<&Vec<bool>>) -> f64 {
    let all = value.to_f64();
    let parts = value.ty().parts();
    let counted = all.iter().enumerate().filter(|(k, x)| x.is_finite() && mask.is_none_or(|m| m[*k / parts]));
    counted.fold(0.0, |most, (_, x)| most.max(x.abs()))
}

/// Distance of two elements relative to `scale`; any nan equals any nan. Integers are equal or
/// infinitely far.
fn error(needed: &Value, found: &Value, k: usize, scale: f64) -> f64 {
    let real = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        (Some(a), Some(b)) if a.is_finite() && b.is_finite() => (a - b).abs() / scale,
        _ => f64::INFINITY,
    };
    let pair = |a: Option<[f64; 2]>, b: Option<[f64; 2]>| {
        let part = |k: usize| real(a.map(|z| z[k]), b.map(|z| z[k]));
        part(0).max(part(1))
    };
    match (needed, found) {
        (Value::F64(a), Value::F64(b)) => real(a.get(k).copied(), b.get(k).copied()),
        (Value::F32(a), Value::F32(b)) => {
            real(a.get(k).map(|x| f64::from(*x)), b.get(k).map(|x| f64::from(*x)))
        }
        (Value::F16(a), Value::F16(b)) => {
            let number = |v: &Vec<F16>| v.get(k).map(|x| f32::from(*x).into());
            real(number(a), number(b))
        }
        (Value::Bf16(a), Value::Bf16(b)) => {
            let number = |v: &Vec<Bf16>| v.get(k).map(|x| f32::from(*x).into());
            real(number(a), number(b))
        }
        (Value::C64(a), Value::C64(b)) => {
            let parts = |v: &Vec<Complex<f32>>| v.get(k).map(|z| [z.re, z.im].map(f64::from));
            pair(parts(a), parts(b))
        }
        (Value::C128(a), Value::C128(b)) => {
            let parts = |v: &Vec<Complex<f64>>| v.get(k).map(|z| [z.re, z.im]);
            pair(parts(a), parts(b))
        }
        _ if needed.ty().part().is_real() || needed.ty() != found.ty() => f64::INFINITY,
        _ if needed.integer(k) == found.integer(k) => 0.0,
        _ => f64::INFINITY,
    }
}

fn text(value: &Value, k: usize) -> String {
    let ty = value.ty();
    let shown = if ty == ScalarType::Bool {
        value.integer(k).map(|x| format!("{x}"))
    } else {
        with_elements!(value, v => v.get(k).map(|x| format!("{x:?}")))
    };
    shown.unwrap_or_else(|| "nothing".into())
}

/// What is wrong with an element.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It differs, by this many times the tolerance.
    Differs(f64),
    /// It is not written.
    Forgotten,
    /// It is written, and should not be.
    Stray,
}

/// An element that is off.
#[derive(Clone, Copy, Debug)]
struct Off {
    element: usize,
    fault: Fault,
}

/// What became of one result.
#[derive(Debug)]
struct OneResult {
    name: String,
    elements: usize,
    /// Elements that are written, and so were compared; the others were held against their poison.
    compared: usize,
    /// The largest error over the tolerance.
    error: f64,
    /// Elements that are no finite number in both, and so prove nothing.
    not_finite: usize,
    needed: Value,
    found: Value,
    faults: Vec<Off>,
    excused: Vec<Off>,
}

/// What became of all results.
pub struct Comparison(Vec<OneResult>);

impl Comparison {
    /// Whether all is as it should be.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.0.iter().all(|r| r.faults.is_empty())
    }

    /// What was compared.
    #[must_use]
    pub fn compared(&self) -> String {
        let one = |r: &OneResult| match r.elements - r.compared {
            0 => format!("`{}`: {} elements", r.name, r.compared),
            rest => format!(
                "`{}`: {} of {} elements, {rest} are written by nothing",
                r.name, r.compared, r.elements
            ),
        };
        self.0.iter().map(one).collect::<Vec<_>>().join("\n")
    }

    /// The largest error of what was compared.
    #[must_use]
    pub fn error(&self) -> String {
        if self.0.iter().all(|r| r.compared == 0) {
            return "nothing to compare: no element of a result is written".into();
        }
        if self.0.iter().all(|r| r.compared == r.not_finite) {
            return "nothing to compare: no element is a finite number, here or in the reference".into();
        }
        let worst = self.0.iter().map(|r| r.error).fold(0.0, f64::max);
        let worst = if worst < 1e4 { format!("{worst:.2}") } else { format!("{worst:.1e}") };
        // of each type, by the tolerance that it is held against
        let relative = |tolerance: f64| {
            let of_type = self.0.iter().filter(|r| tolerance_of(r) == tolerance && r.compared > 0);
            of_type.map(|r| r.error * tolerance).reduce(f64::max)
        };
        let of_types =
            [("f64", TOLERANCE), ("f32", TOLERANCE_F32)].into_iter().filter_map(|(ty, tolerance)| {
                relative(tolerance)
                    .map(|error| format!("{error:.1e} in {ty}, where {tolerance:e} is allowed"))
            });
        let of_types: Vec<String> = of_types.collect();
        match of_types.is_empty() {
            true => format!("{worst} of the tolerance (integers are exact)"),
            false => {
                format!("{worst} of the tolerance; the largest relative error is {}", of_types.join(", "))
            }
        }
    }

    /// How many elements are nan or infinite in both, if some are: they prove nothing.
    #[must_use]
    pub fn not_finite(&self) -> Option<String> {
        let some = self.0.iter().filter(|r| r.not_finite > 0);
        let one = |r: &OneResult| format!("`{}`: {} of {} elements", r.name, r.not_finite, r.compared);
        let list: Vec<String> = some.map(one).collect();
        (!list.is_empty()).then(|| {
            format!(
                "{} are nan or infinite, here and in the reference: that proves nothing of them",
                list.join(", ")
            )
        })
    }

    /// The largest relative error of any result in double precision, or its equivalent in single.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.0.iter().map(|r| r.error * TOLERANCE).fold(0.0, f64::max)
    }

    /// What roundings decide, if there is something.
    #[must_use]
    pub fn ill_conditioned(&self, kernel: &Kernel, memory: &Memory) -> Option<String> {
        let (result, off) = worst(self.0.iter().flat_map(|r| r.excused.iter().map(move |off| (r, off))))?;
        let count: usize = self.0.iter().map(|r| r.excused.len()).sum();
        Some(format!(
            "{count} elements depend on how operations are rounded by more than the tolerance, and are right within \
             that: {} is {}, the interpreter has {}",
            element(kernel, memory, &result.name, off.element),
            text(&result.found, off.element),
            text(&result.needed, off.element)
        ))
    }

    /// The worst element, with what was found and what is needed.
    #[must_use]
    pub fn fault(&self, kernel: &Kernel, memory: &Memory) -> Option<String> {
        let (result, off) = worst(self.0.iter().flat_map(|r| r.faults.iter().map(move |off| (r, off))))?;
        let place = element(kernel, memory, &result.name, off.element);
        let count: usize = self.0.iter().map(|r| r.faults.len()).sum();
        let (found, needed) = (text(&result.found, off.element), text(&result.needed, off.element));
        let what = match off.fault {
            Fault::Forgotten => format!("{place} is not written, needed {needed}"),
            Fault::Stray => format!("{place} is written ({found}), and the kernel writes nothing there"),
            Fault::Differs(error) if error.is_finite() => {
                format!("{place} is {found}, needed {needed}: {error:.1e} times the tolerance")
            }
            Fault::Differs(_) => format!("{place} is {found}, needed {needed}"),
        };
        Some(if count > 1 { format!("{what}; {count} elements are off") } else { what })
    }
}

/// The first element with the largest error.
fn worst<'o>(all: impl Iterator<Item = (&'o OneResult, &'o Off)>) -> Option<(&'o OneResult, &'o Off)> {
    let size = |off: &Off| match off.fault {
        Fault::Differs(error) => error,
        Fault::Forgotten | Fault::Stray => f64::INFINITY,
    };
    all.reduce(|best, other| if size(other.1) > size(best.1) { other } else { best })
}

/// An element as a kernel writes it: `y[2, 3]`.
fn element(kernel: &Kernel, memory: &Memory, name: &str, mut position: usize) -> String {
    let value = |e: &Affine| {
        let of = |atom: &Atom| match atom {
            Atom::Var(v) => memory.get_param(&kernel.vars[*v].name),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        usize::try_from(e.eval(&mut |atom| of(atom))?).ok().filter(|n| *n > 0)
    };
    let shape = kernel.var(name).map(|v| &kernel.vars[v].shape[..]).unwrap_or_default();
    let mut index = Vec::new();
    for extent in shape.iter().rev() {
        let Some(extent) = value(extent) else { return format!("`{name}` at {position}") };
        index.push((position % extent).to_string());
        position /= extent;
    }
    index.reverse();
    if index.is_empty() { format!("`{name}`") } else { format!("`{name}[{}]`", index.join(", ")) }
}

/// What the kernel wrote, by argument, row by row.
///
/// # Errors
/// The device refuses.
pub fn results(
    kernel: &Kernel,
    loaded: &Loaded<'_>,
    memory: &Memory,
) -> Result<Vec<(String, Value)>, LoadError> {
    let written = kernel.vars.values().filter(|v| v.is_output());
    written.map(|v| Ok((v.name.clone(), gathered(kernel, v, memory, loaded.value(&v.name)?)))).collect()
}

/// The memory with the values of tables that have become arguments.
#[must_use]
pub fn with_tables<'m>(before: &Kernel, after: &Kernel, memory: &'m Memory) -> Cow<'m, Memory> {
    let mut result = Cow::Borrowed(memory);
    for var in after.vars.values().filter(|v| matches!(v.kind, VarKind::Argument(Direction::In))) {
        let table = before.var(&var.name).map(|v| &before.vars[v].kind);
        if let (None, Some(VarKind::Table(data))) = (memory.get(&var.name), table) {
            result.to_mut().set(&var.name, Value::of_table(var.ty, data));
        }
    }
    result
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // what a failed test does
mod tests;
