//! The action of a form on a device.

use crate::error::BenchmarkError;
use kingpost::codegen::{Options, generate};
use kingpost::forms::form::Form;
use kingpost::forms::import::Imported;
use kingpost::forms::lowering::{LoweredKernel, LoweringOptions, TabulatedOptions, tabulate};
use kingpost::forms::tabulated::Precision;
use kingpost::interp::{Memory, Value};
use kingpost::ir::text::print;
use kingpost::ir::{Kernel, ScalarType};
use kingpost::prelude::{Recipe, Schedule};
use kingpost::runtime::{Buffer, Device};
use kingpost::solve::{Arrays, Call, DeviceForm};
use kingpost::transforms::primitives::{SetPrecision, set_precision};
use kingpost::tuning::known::{Known, Sought, first, known};
use kingpost::{Mapping, definitions, set_up, transform};

/// The action of a form as a kernel in double precision, in which its tables are known to be tensor products.
///
/// # Errors
/// A form without tables.
fn lowered(form: &Form, name: &str) -> Result<LoweredKernel, BenchmarkError> {
    let tabulated = tabulate(form, &LoweringOptions::new(name))?;
    Ok(Imported::new(tabulated, &TabulatedOptions::default())?.kernels.swap_remove(0))
}

/// A mapped kernel in a precision, and the steps of its mapping.
fn mapped(
    kernel: &LoweredKernel,
    mapping: &Mapping,
    precision: Precision,
) -> Result<(Kernel, Recipe), BenchmarkError> {
    let (kernel, recipe) = transform(kernel, mapping).map_err(BenchmarkError::Mapping)?;
    if precision == Precision::F64 {
        return Ok((kernel, recipe));
    }
    let reals = kernel.vars.values().filter(|var| var.ty == ScalarType::F64);
    let step = SetPrecision::new(reals.map(|var| var.name.clone()), set_precision::Precision::F32);
    let mut schedule = Schedule::of(&kernel);
    schedule.apply(step)?;
    Ok((schedule.kernel().clone(), recipe))
}

/// The text of the action of a form, mapped, in a precision.
///
/// # Errors
/// A mapping that is refused.
pub fn text(
    form: &Form,
    name: &str,
    mapping: &Mapping,
    precision: Precision,
) -> Result<String, BenchmarkError> {
    Ok(print(&mapped(&lowered(form, name)?, mapping, precision)?.0))
}

/// The arrays of reals in a precision.
fn set_precision_of(memory: &mut Memory, precision: Precision) {
    let reals = |value: &Value| {
        let Value::F64(values) = value else { return None };
        Some(Value::of_reals(precision.ty(), values))
    };
    let changed = memory.values().iter().filter_map(|(name, value)| Some((name.clone(), reals(value)?)));
    let changed: Vec<(String, Value)> = changed.collect();
    changed.into_iter().for_each(|(name, value)| memory.set(&name, value));
}

/// The action of a form with its arrays on a device.
pub struct Operator {
    /// One for each list of cells.
    forms: Vec<DeviceForm>,
    /// How the kernel is mapped.
    pub mapping: Mapping,
    /// Registers, spills and local memory, where the compiler tells.
    pub resources: Option<String>,
}

impl Operator {
    /// Compiles the action of a form on a coefficient `u` by a mapping, or else the first one that is known, and
    /// uploads what it reads of the mesh, of several lists of cells.
    ///
    /// # Errors
    /// A mapping that is refused, a device that refuses the code or has no room.
    pub fn new(
        device: &dyn Device,
        (form, name): (&Form, &str),
        mapping: Option<Mapping>,
        precision: Precision,
        lists: impl IntoIterator<Item = Memory>,
    ) -> Result<Self, BenchmarkError> {
        let lowered = lowered(form, name)?;
        let attempt = |mapping: &Mapping| {
            let (kernel, recipe) = mapped(&lowered, mapping, precision)?;
            let program = generate(&kernel, device.info().backend.target(), &Options::default())?;
            Ok::<_, BenchmarkError>((recipe, device.compile(&program)?))
        };
        let (mapping, (recipe, executable)) = match mapping {
            Some(mapping) => {
                let done = attempt(&mapping)?;
                (mapping, done)
            }
            None => {
                let all = known(&lowered, Sought { case: None, dim: 3 }, device.info(), &[]);
                let (known, done) = first(all, |known: &Known| attempt(&known.mapping))?;
                (known.mapping, done)
            }
        };
        let definitions = definitions(&lowered, &recipe).map_err(BenchmarkError::Mapping)?;
        let resources = executable.resources().map(ToString::to_string);
        let on_cells = |mut memory: Memory| {
            set_up(device, &definitions, &mut memory)?;
            set_precision_of(&mut memory, precision);
            let mut form = DeviceForm::default();
            form.add_kernel(device, &executable, &memory, ("y", &["u"]), None, &mut Arrays::default())?;
            Ok(form)
        };
        let forms = lists.into_iter().map(on_cells).collect::<Result<_, BenchmarkError>>()?;
        Ok(Self { forms, mapping, resources })
    }

    /// Appends what adds the action of the cells of a list on `u` to `y`.
    pub fn add_to<'a>(
        &'a self,
        list: usize,
        u: &'a Buffer,
        y: &'a Buffer,
        calls: &mut impl Extend<Call<'a>>,
    ) {
        if let Some(form) = self.forms.get(list) {
            form.add_to(&[u], y, calls);
        }
    }
}
