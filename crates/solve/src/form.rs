//! The kernels of a form with their arrays on a device.

use crate::arrays::{Arrays, missing};
use crate::found::{Found, Patterns};
use crate::texts::{compiled as compiled_text, text};
use crate::{Call, SolveError};
use kingpost_codegen::{ArgKind, Options, generate};
use kingpost_fem::mesh::Mesh;
use kingpost_fem::sparse::{EntryTerms, map_colours};
use kingpost_forms::form::{FormError, Inputs};
use kingpost_forms::lowering::{Bound, LoweredKernel, MatrixResult, MeshForm, VectorResult};
use kingpost_interp::{Memory, Value};
use kingpost_ir::Complex;
use kingpost_runtime::{Arg, Buffer, Device, Executable, buffer_of};
use kingpost_strategies::Mapping;
use std::sync::Arc;

/// A form with a program for each of its kernels.
pub struct FormPrograms {
    form: MeshForm,
    programs: Vec<(Mapping, Executable)>,
}

/// Whether all arrays of a kernel lie as those of the form do.
fn keeps_layouts(kernel: &kingpost_ir::Kernel) -> bool {
    kernel
        .vars
        .values()
        .all(|var| !matches!(var.kind, kingpost_ir::VarKind::Argument(_)) || var.layout.is_row_major())
}

impl FormPrograms {
    /// Compiles each kernel by the first of its `mappings` that it and the device can take, and that
    /// leaves the arrays in place.
    ///
    /// # Errors
    /// What the device or its compiler refuses of the last one; [`SolveError::Unmapped`] if there is
    /// none.
    pub fn compile(
        device: &dyn Device,
        form: MeshForm,
        mappings: &dyn Fn(&LoweredKernel) -> Vec<Mapping>,
    ) -> Result<Self, SolveError> {
        let one = |lowered: &LoweredKernel| {
            let mut last = SolveError::Unmapped { kernel: lowered.kernel.name.clone() };
            for mapping in mappings(lowered) {
                match compiled(device, lowered, &mapping) {
                    Ok(Some(executable)) => return Ok((mapping, executable)),
                    Ok(None) => {}
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        let programs = form.kernels().iter().map(one).collect::<Result<_, SolveError>>()?;
        Ok(Self { form, programs })
    }

    /// The form.
    #[must_use]
    pub const fn form(&self) -> &MeshForm {
        &self.form
    }

    /// The program of each kernel.
    pub fn executables(&self) -> impl Iterator<Item = &Executable> {
        self.programs.iter().map(|(_, executable)| executable)
    }

    /// How each kernel is mapped.
    pub fn mappings(&self) -> impl Iterator<Item = &Mapping> {
        self.programs.iter().map(|(mapping, _)| mapping)
    }
}

fn compiled(
    device: &dyn Device,
    lowered: &LoweredKernel,
    mapping: &Mapping,
) -> Result<Option<Executable>, SolveError> {
    let (kernel, _) = mapping.apply(lowered)?;
    if !keeps_layouts(&kernel) {
        return Ok(None);
    }
    let program = generate(&kernel, device.info().backend.target(), &Options::default())?;
    Ok(Some(device.compile(&program)?))
}

/// What an argument of a kernel gets in every call.
pub enum Argument {
    /// A parameter.
    Param(i64),
    /// A number.
    F64(f64),
    /// One in single precision.
    F32(f32),
    /// A complex one.
    C128(Complex<f64>),
    /// A complex one in single precision.
    C64(Complex<f32>),
    /// An array on the device.
    Array(Arc<Buffer>),
}

/// What an argument of a kernel gets.
enum Slot {
    Fixed(Argument),
    /// The result.
    Output,
    /// An array that the caller gives, by its place among the names.
    Given(usize),
}

struct FormKernel {
    executable: Executable,
    slots: Vec<(String, Slot)>,
    /// Where the vectors of entities are kept, and what adds them up, if they are computed.
    vectors: Option<Vectors>,
}

/// The vectors of the entities of a kernel, and the terms of each entry of the result among them.
struct Vectors {
    sum: Executable,
    n: usize,
    n_terms: usize,
    stored: Buffer,
    starts: Buffer,
    places: Buffer,
}

impl Vectors {
    fn new(device: &dyn Device, terms: &EntryTerms) -> Result<Self, SolveError> {
        Ok(Self {
            sum: compiled_text(device, text!("add_terms"))?,
            n: terms.starts.len().saturating_sub(1),
            n_terms: terms.places.len(),
            stored: device.allocate(8 * terms.places.len() as u64)?,
            starts: buffer_of(device, &terms.starts)?,
            places: buffer_of(device, &terms.places)?,
        })
    }
}

/// What the arguments of a program get: the result and the arrays that calls give by their places, all
/// others as `of` says.
fn slots(
    executable: &Executable,
    (output, given): (&str, &[&str]),
    of: &mut dyn FnMut(&str, &ArgKind) -> Result<Argument, SolveError>,
) -> Result<Vec<(String, Slot)>, SolveError> {
    let mut slots = Vec::new();
    for spec in &executable.plan().args {
        let name = spec.name.as_str();
        let slot = match &spec.kind {
            ArgKind::Table(_) | ArgKind::Scratch { .. } => continue,
            ArgKind::Buffer { .. } if name == output => Slot::Output,
            ArgKind::Buffer { .. } => match given.iter().position(|other| *other == name) {
                Some(place) => Slot::Given(place),
                None => Slot::Fixed(of(name, &spec.kind)?),
            },
            ArgKind::Param | ArgKind::Scalar => Slot::Fixed(of(name, &spec.kind)?),
        };
        slots.push((name.to_owned(), slot));
    }
    Ok(slots)
}

/// The kernels of a form with their arrays on a device, one for each colour of its cells where these
/// are coloured. Each adds to the result, those of the vectors of entities by a second kernel that sums
/// the terms of each entry.
#[derive(Default)]
pub struct DeviceForm {
    kernels: Vec<FormKernel>,
}

impl DeviceForm {
    /// Uploads the arrays of a form on a mesh. The arrays `given` are those that each call of
    /// [`DeviceForm::add_to`] gives, as a rule the unknown; `inputs` has values of them still, whose
    /// length is checked. `patterns` are those of the matrix of a bilinear form.
    ///
    /// # Errors
    /// As [`MeshForm::bind_to`]; no memory.
    pub fn new<'m, 'p>(
        device: &dyn Device,
        programs: &FormPrograms,
        mesh: &'m Mesh,
        inputs: &Inputs,
        patterns: impl Into<Patterns<'p>>,
        given: &[&str],
        arrays: &mut Arrays<'m>,
    ) -> Result<Self, SolveError> {
        let patterns = patterns.into();
        let mut this = Self::default();
        let is_vector = programs.form.tabulated().rank == 1;
        let components = programs.form.tabulated().outputs.first().and_then(|o| o.spaces.first());
        let components = components.map_or(1, |space| programs.form.tabulated().spaces[*space].block);
        let on = arrays.numbered(mesh);
        for (place, (_, executable)) in programs.programs.iter().enumerate() {
            let bound = programs.form.bound(place, &on, inputs, patterns.rows)?;
            // a wrong one is refused before the first call
            given
                .iter()
                .filter(|name| bound.role(name).is_some())
                .try_for_each(|name| bound.argument(name).map(|_| ()))?;
            let output = programs.form.output(place);
            let lowered = &programs.form.kernels()[place];
            let refused = |e: kingpost_fem::sparse::PatternError| FormError::Discretisation(e.to_string());
            let vector = is_vector.then_some(lowered.vector);
            let colours = match (patterns.rows.get(place), vector) {
                (Some(pattern), _) if lowered.matrix == MatrixResult::Coloured => {
                    Some(pattern.colours().map_err(refused)?)
                }
                (_, Some(VectorResult::Coloured)) => {
                    let map = programs.form.result_numbering(&on)?;
                    Some(map_colours(map.dofs(), map.dofs_per_cell(), map.n_dofs()).map_err(refused)?)
                }
                _ => None,
            };
            if let Some(colours) = colours {
                let memory = bound.memory()?;
                for colour in &colours {
                    let of_colour = lowered.on_entities(&memory, colour);
                    this.add_kernel(device, executable, &of_colour, (output, given), None, arrays)?;
                }
                continue;
            }
            let vectors = match vector {
                Some(VectorResult::Entities) => {
                    let map = programs.form.result_numbering(&on)?;
                    let terms = EntryTerms::of_map(map.dofs(), map.n_dofs(), components);
                    Some(Vectors::new(device, &terms)?)
                }
                Some(VectorResult::Assembled | VectorResult::Coloured) | None => None,
            };
            let places = patterns.places(device, (&programs.form, lowered.matrix), mesh, arrays)?;
            let slots = slots(executable, (output, given), &mut |name, kind| {
                match places.as_ref().and_then(|places| places.of(&bound, name)) {
                    Some(Found::Count(count)) => return Ok(Argument::Param(count as i64)),
                    Some(Found::Array(buffer)) => return Ok(Argument::Array(buffer)),
                    None => {}
                }
                match kind {
                    ArgKind::Param | ArgKind::Scalar => match bound.argument(name)? {
                        Bound::Param(value) => Ok(Argument::Param(value)),
                        Bound::Number(value) => Ok(Argument::F64(value)),
                        Bound::Integers(_) | Bound::Reals(_) | Bound::Result(_) => Err(missing(name)),
                    },
                    ArgKind::Buffer { .. } | ArgKind::Table(_) | ArgKind::Scratch { .. } => {
                        Ok(Argument::Array(arrays.of(device, mesh, &bound, name)?))
                    }
                }
            })?;
            this.kernels.push(FormKernel { executable: executable.clone(), slots, vectors });
        }
        Ok(this)
    }

    /// Adds a program with the arrays of a memory, its output and the arrays that calls give by name. Of
    /// a kernel that computes the vectors of entities, `terms` says where each entry of the result has its
    /// terms.
    ///
    /// # Errors
    /// An argument that the memory lacks, no memory, a device that refuses the sum.
    pub fn add_kernel(
        &mut self,
        device: &dyn Device,
        executable: &Executable,
        memory: &Memory,
        (output, given): (&str, &[&str]),
        terms: Option<&EntryTerms>,
        arrays: &mut Arrays<'_>,
    ) -> Result<(), SolveError> {
        let vectors = terms.map(|terms| Vectors::new(device, terms)).transpose()?;
        let slots = slots(executable, (output, given), &mut |name, kind| {
            Ok(match kind {
                ArgKind::Param => Argument::Param(memory.get_param(name).ok_or_else(|| missing(name))?),
                ArgKind::Scalar => Argument::F64(number(memory, name)?),
                ArgKind::Buffer { .. } | ArgKind::Table(_) | ArgKind::Scratch { .. } => Argument::Array(
                    arrays.get(device, name, memory.get(name).ok_or_else(|| missing(name))?)?,
                ),
            })
        })?;
        self.kernels.push(FormKernel { executable: executable.clone(), slots, vectors });
        Ok(())
    }

    /// Adds a program. Its arguments are those that `of` says, except for the output and the arrays
    /// that calls give by name.
    ///
    /// # Errors
    /// What `of` refuses.
    pub fn add_program(
        &mut self,
        executable: &Executable,
        output: (&str, &[&str]),
        of: &mut dyn FnMut(&str) -> Result<Argument, SolveError>,
    ) -> Result<(), SolveError> {
        let slots = slots(executable, output, &mut |name, _| of(name))?;
        self.kernels.push(FormKernel { executable: executable.clone(), slots, vectors: None });
        Ok(())
    }

    /// Kernels that [`DeviceForm::add_to`] runs.
    #[must_use]
    pub fn n_launches(&self) -> usize {
        self.kernels.iter().map(|kernel| 1 + usize::from(kernel.vectors.is_some())).sum()
    }

    /// Appends what adds the form to `result`, with the arrays in the order of the names that
    /// [`DeviceForm::new`] was given.
    pub fn add_to<'a>(&'a self, given: &[&'a Buffer], result: &'a Buffer, calls: &mut impl Extend<Call<'a>>) {
        for (place, kernel) in self.kernels.iter().enumerate() {
            let Some(Vectors { sum, n, n_terms, stored, starts, places }) = &kernel.vectors else {
                calls.extend(self.add_kernel_to(place, given, result));
                continue;
            };
            calls.extend(self.add_kernel_to(place, given, stored));
            let sizes = [("n", *n), ("n_terms", *n_terms)];
            let arrays = [("starts", starts), ("places", places), ("stored", stored), ("values", result)];
            calls.extend([Call::of(sum, &sizes, &arrays)]);
        }
    }

    /// What one of the form's kernels does to `result`, likewise: adds to it, or stores the vectors of
    /// entities. None if there is no such kernel.
    #[must_use]
    pub fn add_kernel_to<'a>(
        &'a self,
        kernel: usize,
        given: &[&'a Buffer],
        result: &'a Buffer,
    ) -> Option<Call<'a>> {
        let kernel = self.kernels.get(kernel)?;
        let args = kernel.slots.iter().filter_map(|(name, slot)| {
            let arg = match slot {
                Slot::Fixed(Argument::Param(value)) => Arg::Param(*value),
                Slot::Fixed(Argument::F64(value)) => Arg::F64(*value),
                Slot::Fixed(Argument::F32(value)) => Arg::F32(*value),
                Slot::Fixed(Argument::C128(value)) => Arg::C128(*value),
                Slot::Fixed(Argument::C64(value)) => Arg::C64(*value),
                Slot::Fixed(Argument::Array(buffer)) => Arg::Buffer(buffer),
                Slot::Output => Arg::Buffer(result),
                // one that is not given is missing when the kernel is launched
                Slot::Given(place) => Arg::Buffer(given.get(*place)?),
            };
            Some((name.as_str(), arg))
        });
        Some(Call::new(&kernel.executable, args.collect()))
    }
}

fn number(memory: &Memory, name: &str) -> Result<f64, SolveError> {
    match memory.get(name) {
        Some(Value::F64(values)) => values.first().copied().ok_or_else(|| missing(name)),
        Some(_) | None => Err(missing(name)),
    }
}
