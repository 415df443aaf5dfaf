//! A program and its arguments on a device.

use crate::laid_out;
use kingpost_analysis::Analysis;
use kingpost_codegen::plan::HostExprError;
use kingpost_codegen::{ArgKind, ArgSpec, BufferAccess, LaunchPlan, ParameterError, Program};
use kingpost_interp::{InterpError, LaunchReport, Memory, Value, with_elements};
use kingpost_ir::{Kernel, ScalarType};
use kingpost_runtime::cuda::ptxas::Resources;
use kingpost_runtime::{
    Arg, Buffer, Device, Executable, Launch, RuntimeError, Timing, TimingOptions, buffer_of, download_values,
    joules_of_a_run,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a program could not be loaded with a memory.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The device or its compiler refused.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// What is given breaks an assumption or leads outside an array.
    #[error(transparent)]
    Values(#[from] InterpError),
    /// A size has no value.
    #[error(transparent)]
    Size(#[from] HostExprError),
    /// A parameter has no value, or two.
    #[error(transparent)]
    Parameters(#[from] Box<ParameterError>),
    /// The arrays do not fit.
    #[error(
        "the arrays of the launch take {needed} bytes, and `{device}` has {available}; use a smaller problem"
    )]
    Memory {
        /// Bytes of all arrays together.
        needed: u64,
        /// Bytes that arrays on the device may take.
        available: u64,
        /// The device.
        device: String,
    },
    /// An argument has no value.
    #[error("argument `{0}` has no value; give it one")]
    Missing(String),
    /// An argument has another type or size.
    #[error("argument `{name}` holds {found}, needed {needed}")]
    Misfit {
        /// The argument.
        name: String,
        /// What was given.
        found: String,
        /// What the program takes.
        needed: String,
    },
}

enum Slot {
    Param(i64),
    Scalar(Value),
    Array(Buffer, ScalarType),
}

/// A compiled program, or several that run in sequence, with every argument in the device's memory.
///
/// Programs that run in sequence share arguments of the same name: what one writes, a later one reads.
///
/// Arrays that the program only writes hold poison (NaN, -1), so that an element it forgets is
/// seen.
pub struct Loaded<'d> {
    device: &'d dyn Device,
    executables: Vec<Executable>,
    slots: Vec<(String, Slot)>,
}

impl<'d> Loaded<'d> {
    /// Compiles `program` and uploads the arguments it takes from `memory`.
    ///
    /// # Errors
    /// A program the device refuses, an argument that is missing or does not fit, no memory.
    pub fn new(device: &'d dyn Device, program: &Program, memory: &Memory) -> Result<Self, LoadError> {
        check_sizes(device, &program.plan, &parameters(&program.plan, memory)?)?;
        Self::compiled(device, device.compile(program)?, memory)
    }

    /// As [`Loaded::new`] of what is [`laid_out`], after
    /// [`Analysis::check_launch`]: that what `kernel`, of which `program` is the code, assumes
    /// holds for these values, and that no map leads outside an array. Takes a pass over each
    /// map, or longer where the entries alone do not decide.
    ///
    /// # Errors
    /// [`LoadError::Values`] with the entries that clash; else as [`Loaded::new`].
    pub fn checked(
        device: &'d dyn Device,
        kernel: &Kernel,
        program: &Program,
        memory: &Memory,
    ) -> Result<(Self, LaunchReport), LoadError> {
        let report = Analysis::of(kernel).check_launch(memory)?;
        Ok((Self::new(device, program, &laid_out(kernel, memory))?, report))
    }

    /// Uploads the arguments that a compiled program takes from `memory`.
    ///
    /// # Errors
    /// An argument that is missing or does not fit, no memory.
    pub fn compiled(
        device: &'d dyn Device,
        executable: Executable,
        memory: &Memory,
    ) -> Result<Self, LoadError> {
        Self::in_turn(device, vec![executable], memory)
    }

    /// As [`Loaded::compiled`], of programs that run in sequence. An array that one of them writes needs no
    /// value for those after it.
    ///
    /// # Errors
    /// As [`Loaded::compiled`], and an array that two of them take in different sizes.
    pub fn in_turn(
        device: &'d dyn Device,
        executables: Vec<Executable>,
        memory: &Memory,
    ) -> Result<Self, LoadError> {
        let mut loaded = Self { device, executables: Vec::new(), slots: Vec::new() };
        loaded.exchange(executables, memory)?;
        Ok(loaded)
    }

    /// Replaces these programs, as a rule by another mapping of the same kernel.
    /// Arguments of the same type and size stay where they are, with what they hold; others come
    /// from `memory`.
    ///
    /// # Errors
    /// As [`Loaded::in_turn`]; the programs from before are gone then, and nothing can be launched.
    pub fn exchange(&mut self, executables: Vec<Executable>, memory: &Memory) -> Result<(), LoadError> {
        let mut params = memory.params().clone();
        for executable in &executables {
            let of_plan = parameters(executable.plan(), memory)?;
            check_sizes(self.device, executable.plan(), &of_plan)?;
            params.extend(of_plan);
        }
        let memory = &Given { memory, params };
        let mut old: BTreeMap<_, _> = std::mem::take(&mut self.slots).into_iter().collect();
        for spec in executables.iter().flat_map(|e| &e.plan().args) {
            if let Some((_, shared)) = self.slots.iter().find(|(name, _)| *name == spec.name) {
                shared.fits(spec, memory)?;
                continue;
            }
            let kept = match old.remove(&spec.name) {
                Some(slot) if slot.suits(spec, memory)? => Some(slot),
                Some(_) | None => slot(self.device, spec, memory)?,
            };
            if let Some(slot) = kept {
                self.slots.push((spec.name.clone(), slot));
            }
        }
        self.executables = executables;
        Ok(())
    }

    /// Gives what the programs write its values of `memory` again, for a launch as the first one.
    ///
    /// # Errors
    /// As [`Loaded::exchange`].
    pub fn renew(&mut self, memory: &Memory) -> Result<(), LoadError> {
        let executables = std::mem::take(&mut self.executables);
        let is_written = |spec: &ArgSpec| match spec.kind {
            ArgKind::Buffer { access: BufferAccess::Out | BufferAccess::InOut, .. } => true,
            ArgKind::Buffer { access: BufferAccess::In, .. }
            | ArgKind::Param
            | ArgKind::Scalar
            | ArgKind::Table(_)
            | ArgKind::Scratch { .. } => false,
        };
        let specs = executables.iter().flat_map(|e| &e.plan().args);
        self.slots.retain(|(name, _)| !specs.clone().any(|spec| spec.name == *name && is_written(spec)));
        self.exchange(executables, memory)
    }

    /// Registers, spills and shared memory of each program, as the compiler of a card reports them.
    pub fn resources(&self) -> impl Iterator<Item = &Resources> {
        self.executables.iter().filter_map(Executable::resources)
    }

    /// Sets every byte of an array.
    ///
    /// # Errors
    /// [`LoadError::Missing`] if the program takes no such array, or a failing driver.
    pub fn fill(&self, name: &str, byte: u8) -> Result<(), LoadError> {
        Ok(self.device.fill(self.buffer(name)?, byte)?)
    }

    /// An array where it lies on the device.
    ///
    /// # Errors
    /// [`LoadError::Missing`] if the program takes no such array.
    pub fn buffer(&self, name: &str) -> Result<&Buffer, LoadError> {
        Ok(self.array(name)?.0)
    }

    fn array(&self, name: &str) -> Result<(&Buffer, ScalarType), LoadError> {
        match self.slots.iter().find(|(n, _)| n == name) {
            Some((_, Slot::Array(buffer, ty))) => Ok((buffer, *ty)),
            Some((_, Slot::Param(_) | Slot::Scalar(_))) | None => Err(LoadError::Missing(name.into())),
        }
    }

    /// Runs the programs once, in sequence. Updated arrays go on from where they are.
    ///
    /// # Errors
    /// As [`Device::launch`].
    pub fn launch(&self) -> Result<(), RuntimeError> {
        match &self.executables[..] {
            [executable] => self.device.launch(executable, &self.args()),
            _ => self.launch_all().map(drop),
        }
    }

    /// Runs the programs repeatedly, in sequence, and times them together; updated arrays hold nothing of
    /// use afterwards.
    ///
    /// # Errors
    /// As [`Device::time`].
    pub fn time(&self, options: &TimingOptions) -> Result<Timing, RuntimeError> {
        match &self.executables[..] {
            [executable] => self.device.time(executable, &self.args(), options),
            _ => Timing::sample(options, || self.launch_all()),
        }
    }

    /// Joules that the device takes in one run, of runs of at least `seconds` in all; none if it has no counter.
    ///
    /// # Errors
    /// As [`Self::time`].
    pub fn joules(&self, seconds: f64) -> Result<Option<f64>, RuntimeError> {
        if self.device.joules().is_none() {
            return Ok(None);
        }
        let args = self.args();
        let taken = self
            .executables
            .iter()
            .map(|executable| self.device.prepare(executable, &taken_by(executable, &args)).map(Arc::new));
        joules_of_a_run(self.device, &taken.collect::<Result<Vec<_>, _>>()?, seconds)
    }

    fn launch_all(&self) -> Result<f64, RuntimeError> {
        let all = self.args();
        let args: Vec<_> = self.executables.iter().map(|executable| taken_by(executable, &all)).collect();
        let launch = |(executable, args)| Launch { executable, args };
        let launches: Vec<_> =
            self.executables.iter().zip(args.iter().map(Vec::as_slice)).map(launch).collect();
        self.device.launch_all(&launches)
    }

    /// The elements of an array, in the order of the device's memory.
    ///
    /// # Errors
    /// [`LoadError::Missing`] if the program takes no such array, or a failing driver.
    pub fn value(&self, name: &str) -> Result<Value, LoadError> {
        let (buffer, ty) = self.array(name)?;
        downloaded(self.device, buffer, ty)
    }

    /// The elements of an array as `f64`.
    ///
    /// # Errors
    /// As [`Loaded::value`].
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>, LoadError> {
        let value = self.value(name)?;
        Ok(if let Value::F64(values) = value { values } else { value.to_f64() })
    }

    /// The arguments of a launch, for [`Device::launch_all`].
    pub fn args(&self) -> Vec<(&str, Arg<'_>)> {
        self.slots.iter().filter_map(|(name, slot)| Some((name.as_str(), slot.arg()?))).collect()
    }
}

/// The arguments that a program takes.
fn taken_by<'a>(executable: &Executable, args: &[(&'a str, Arg<'a>)]) -> Vec<(&'a str, Arg<'a>)> {
    let takes = |name: &str| executable.plan().args.iter().any(|spec| spec.name == name);
    args.iter().filter(|(name, _)| takes(name)).copied().collect()
}

impl Slot {
    /// Whether it can stay for another program's argument: an array of the same type and length.
    fn suits(&self, spec: &ArgSpec, given: &Given<'_>) -> Result<bool, LoadError> {
        let Self::Array(buffer, ty) = self else { return Ok(false) };
        let ArgKind::Buffer { len, .. } = &spec.kind else { return Ok(false) };
        let negative = |_| HostExprError::Negative(spec.name.clone());
        let len = u64::try_from(len.eval(&given.params)?).map_err(negative)?;
        Ok(*ty == spec.ty && buffer.bytes() == len * spec.ty.bytes())
    }

    /// Refuses an array of a program that one before takes in another size or type.
    fn fits(&self, spec: &ArgSpec, given: &Given<'_>) -> Result<(), LoadError> {
        let (Self::Array(buffer, ty), ArgKind::Buffer { len, .. }) = (self, &spec.kind) else {
            return Ok(());
        };
        if self.suits(spec, given)? {
            return Ok(());
        }
        let found = format!("{} elements of type {ty} in a program before", buffer.bytes() / ty.bytes());
        let needed = format!("{} of type {}", len.eval(&given.params)?, spec.ty);
        Err(LoadError::Misfit { name: spec.name.clone(), found, needed })
    }

    /// None for a scalar without an element, which `fits` refuses.
    fn arg(&self) -> Option<Arg<'_>> {
        match self {
            Self::Param(value) => Some(Arg::Param(*value)),
            Self::Array(buffer, _) => Some(Arg::Buffer(buffer)),
            Self::Scalar(Value::F64(v)) => v.first().map(|x| Arg::F64(*x)),
            Self::Scalar(Value::F32(v)) => v.first().map(|x| Arg::F32(*x)),
            Self::Scalar(Value::I32(v)) => v.first().map(|x| Arg::I32(*x)),
            Self::Scalar(Value::I64(v)) => v.first().map(|x| Arg::I64(*x)),
            Self::Scalar(Value::U32(v)) => v.first().map(|x| Arg::U32(*x)),
            Self::Scalar(Value::U64(v)) => v.first().map(|x| Arg::U64(*x)),
            Self::Scalar(Value::C64(v)) => v.first().map(|x| Arg::C64(*x)),
            Self::Scalar(Value::C128(v)) => v.first().map(|x| Arg::C128(*x)),
            // none has fewer than 32 bits
            Self::Scalar(
                Value::I8(_)
                | Value::I16(_)
                | Value::U8(_)
                | Value::U16(_)
                | Value::Bool(_)
                | Value::F16(_)
                | Value::Bf16(_),
            ) => None,
        }
    }
}

/// Values of arguments, and of all parameters of the programs that take them.
struct Given<'m> {
    memory: &'m Memory,
    params: BTreeMap<String, i64>,
}

/// The parameters of a program.
fn parameters(plan: &LaunchPlan, memory: &Memory) -> Result<BTreeMap<String, i64>, LoadError> {
    let elements = |name: &str| memory.get(name).map(|value| value.len() as u64);
    Ok(plan.parameters(memory.params(), &elements)?)
}

/// Whether parameters fit their types and all arrays together the device, before anything is
/// allocated.
fn check_sizes(
    device: &dyn Device,
    plan: &LaunchPlan,
    params: &BTreeMap<String, i64>,
) -> Result<(), LoadError> {
    for spec in plan.args.iter().filter(|s| s.kind == ArgKind::Param && s.ty == ScalarType::I32) {
        let value = params.get(&spec.name).filter(|v| i32::try_from(**v).is_err());
        if let Some(&value) = value {
            let (name, ty) = (spec.name.clone(), spec.ty);
            return Err(RuntimeError::ParameterRange { name, value, ty }.into());
        }
    }
    let (needed, info) = (plan.bytes(params)?, device.info());
    match info.available_bytes() {
        Some(available) if needed > available => {
            Err(LoadError::Memory { needed, available, device: info.name.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

/// The value of one argument on the device; none for a table, which the device uploads itself.
fn slot(device: &dyn Device, spec: &ArgSpec, given: &Given<'_>) -> Result<Option<Slot>, LoadError> {
    let missing = || LoadError::Missing(spec.name.clone());
    let Given { memory, params } = given;
    Ok(Some(match &spec.kind {
        ArgKind::Table(_) | ArgKind::Scratch { .. } => return Ok(None),
        ArgKind::Param => Slot::Param(*params.get(&spec.name).ok_or_else(missing)?),
        ArgKind::Scalar => {
            let value = memory.get(&spec.name).ok_or_else(missing)?;
            fits(spec, value, 1)?;
            Slot::Scalar(value.clone())
        }
        ArgKind::Buffer { len, access } => {
            let negative = |_| HostExprError::Negative(spec.name.clone());
            let len = usize::try_from(len.eval(params)?).map_err(negative)?;
            let buffer = match (memory.get(&spec.name), access) {
                (Some(value), BufferAccess::In | BufferAccess::InOut) => {
                    fits(spec, value, len)?;
                    upload(device, value)?
                }
                (None, BufferAccess::In | BufferAccess::InOut) => return Err(missing()),
                (_, BufferAccess::Out) => device.allocate(len as u64 * spec.ty.bytes())?,
            };
            Slot::Array(buffer, spec.ty)
        }
    }))
}

fn fits(spec: &ArgSpec, value: &Value, len: usize) -> Result<(), LoadError> {
    if value.ty() == spec.ty && value.len() == len {
        return Ok(());
    }
    Err(LoadError::Misfit {
        name: spec.name.clone(),
        found: format!("{} elements of type {}", value.len(), value.ty()),
        needed: format!("{len} of type {}", spec.ty),
    })
}

fn upload(device: &dyn Device, value: &Value) -> Result<Buffer, RuntimeError> {
    with_elements!(value, v => buffer_of(device, v))
}

fn downloaded(device: &dyn Device, buffer: &Buffer, ty: ScalarType) -> Result<Value, LoadError> {
    Ok(match ty {
        ScalarType::F64 => Value::F64(download_values(device, buffer)?),
        ScalarType::F32 => Value::F32(download_values(device, buffer)?),
        ScalarType::I8 => Value::I8(download_values(device, buffer)?),
        ScalarType::I16 => Value::I16(download_values(device, buffer)?),
        ScalarType::I32 => Value::I32(download_values(device, buffer)?),
        ScalarType::I64 => Value::I64(download_values(device, buffer)?),
        ScalarType::U8 => Value::U8(download_values(device, buffer)?),
        ScalarType::U16 => Value::U16(download_values(device, buffer)?),
        ScalarType::U32 => Value::U32(download_values(device, buffer)?),
        ScalarType::U64 => Value::U64(download_values(device, buffer)?),
        ScalarType::Bool => Value::Bool(download_values(device, buffer)?),
        ScalarType::F16 => Value::F16(download_values(device, buffer)?),
        ScalarType::Bf16 => Value::Bf16(download_values(device, buffer)?),
        ScalarType::C64 => Value::C64(download_values(device, buffer)?),
        ScalarType::C128 => Value::C128(download_values(device, buffer)?),
        // programs have an argument for each field
        ScalarType::Record(_) => Value::zeros(ty, 0),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // how a test fails
mod tests {
    use super::*;
    use kingpost_codegen::{Options, Target, generate};
    use kingpost_ir::text;

    /// What one program writes, the next one reads, without a value from the memory; in another size it
    /// is refused.
    #[test]
    fn programs_in_turn_share_arrays() {
        let device = kingpost_runtime::open("c").unwrap();
        let compiled = |source: &str| {
            let kernel = text::parse(source).unwrap();
            device.compile(&generate(&kernel, Target::C, &Options::default()).unwrap()).unwrap()
        };
        let first = compiled(
            "kernel first\narg x: f64[8] in\narg t: f64[8] out\n\nfor i in 0..8\n  s: t[i] = 2.0*x[i]\n",
        );
        let last = |n: usize| {
            compiled(&format!(
                "kernel last\narg t: f64[{n}] in\narg y: f64[{n}] out\n\nfor i in 0..{n}\n  s: y[i] = t[{} - i]\n",
                n - 1
            ))
        };
        let memory = Memory::new().value("x", (0..8).map(f64::from).collect::<Vec<_>>());
        let loaded = Loaded::in_turn(&*device, vec![first.clone(), last(8)], &memory).unwrap();
        loaded.launch().unwrap();
        let expected: Vec<f64> = (0..8).rev().map(|i| 2.0 * f64::from(i)).collect();
        assert_eq!(loaded.f64s("y").unwrap(), expected);
        let options = TimingOptions { warm_up: 0, min_runs: 3, min_seconds: 0.0, ..TimingOptions::default() };
        assert_eq!(loaded.time(&options).unwrap().runs, 3);
        // in the other order nothing has written it
        let missing = Loaded::in_turn(&*device, vec![last(8), first.clone()], &memory);
        assert!(matches!(missing, Err(LoadError::Missing(name)) if name == "t"));
        let misfit = Loaded::in_turn(&*device, vec![first, last(9)], &memory).err().unwrap().to_string();
        let expected = "argument `t` holds 8 elements of type f64 in a program before, needed 9 of type f64";
        assert_eq!(misfit, expected);
    }

    /// What a program updates begins again; what it only reads stays on the device.
    #[test]
    fn another_launch_begins_as_the_first() {
        let device = kingpost_runtime::open("c").unwrap();
        let kernel = text::parse(
            "kernel k\narg x: f64[4] in\narg y: f64[4] inout\n\nfor i in 0..4\n  s: y[i] += x[i]\n",
        )
        .unwrap();
        let memory = Memory::new().value("x", vec![1.0; 4]).value("y", vec![2.0; 4]);
        let program = generate(&kernel, Target::C, &Options::default()).unwrap();
        let mut loaded = Loaded::new(&*device, &program, &memory).unwrap();
        loaded.launch().unwrap();
        loaded.launch().unwrap();
        assert_eq!(loaded.f64s("y").unwrap(), [4.0; 4]);
        // without a value for `x`: it is there
        loaded.renew(&Memory::new().value("y", vec![2.0; 4])).unwrap();
        loaded.launch().unwrap();
        assert_eq!(loaded.f64s("y").unwrap(), [3.0; 4]);
    }
}
