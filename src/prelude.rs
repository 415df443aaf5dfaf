//! What writing a recipe and running a kernel takes, in one line: `use kingpost::prelude::*`.
//!
//! ```
//! use kingpost::prelude::*;
//!
//! let kernel = text::parse(
//!     "kernel axpy\nparam n: i32\narg a: f64 in\narg x: f64[n] in\narg y: f64[n] inout\n
//! for i in 0..n\n  s: y[i] += a*x[i]\n",
//! )?;
//! let mut schedule = Schedule::of(&kernel);
//! let [block, item] = schedule.split("i", 128)?; // proved legal, or refused with two instances that clash
//! schedule.tag(&block, AxisTag::Group(0))?;
//! schedule.tag(&item, AxisTag::Local(0))?;
//!
//! let device = open("c")?;
//! let program = generate(schedule.kernel(), device.info().backend.target(), &Options::default())?;
//! let mut memory = Memory::new()
//!     .param("n", 3)
//!     .value("a", 2.0)
//!     .value("x", vec![1.0, 2.0, 3.0])
//!     .value("y", vec![0.5; 3]);
//! let loaded = Loaded::new(&*device, &program, &memory)?;
//! loaded.launch()?;
//! assert_eq!(loaded.f64s("y")?, [2.5, 4.5, 6.5]);
//!
//! interpret(&kernel, &mut memory)?; // the meaning that every step keeps
//! assert_eq!(memory.get("y"), Some(&loaded.value("y")?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every primitive is here by its name, with the types of its arguments. Forms, elements and meshes
//! (`kingpost::forms`), tuning (`kingpost::tuning`, `kingpost::autotune`) and what each stage offers
//! beyond this are imported from there.
//!
//! # Kernels
//!
//! [`text`] reads and prints a [`Kernel`], and [`KernelBuilder`] makes one without text, of [`ScalarType`],
//! [`Direction`], [`AddressSpace`] and [`Layout`]. [`AxisTag`] says where the iterations of a loop run.
//!
//! ```
//! use kingpost::prelude::*;
//!
//! let kernel = text::parse("kernel k\narg y: f64[8] out\n\nfor i in 0..8\n  s: y[i] = 1.0\n")?;
//! assert_eq!(text::parse(&text::print(&kernel))?, kernel);
//! let y = kernel.var("y").ok_or("an argument")?;
//! assert_eq!(kernel.vars[y].ty, ScalarType::F64);
//! assert_eq!(text::format("kernel k\narg y:f64[8]out\n")?, "kernel k\n\narg y: f64[8] out\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What they mean
//!
//! [`interpret`] runs a kernel in its sequential meaning on a [`Memory`] of [`Value`]s.
//!
//! ```
//! use kingpost::prelude::*;
//!
//! let kernel = text::parse("kernel k\narg y: f64[3] inout\n\nfor i in 1..3\n  s: y[i] += y[i - 1]\n")?;
//! let mut memory = Memory::new().value("y", vec![1.0, 2.0, 3.0]);
//! interpret(&kernel, &mut memory)?;
//! assert_eq!(memory.get("y"), Some(&Value::F64(vec![1.0, 3.0, 6.0])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Steps
//!
//! A [`Schedule`] applies steps as they are asked for: by short methods ([`ScheduleSteps`]), by the types of primitives
//! ([`SplitIname`] and all others), or as a [`Script`] in text. A [`Recipe`] is a list of [`Step`]s to store and
//! replay; [`Selection`] names instructions in it, and [`Primitive`] is what an own one implements.
//!
//! ```
//! use kingpost::prelude::*;
//!
//! let kernel = text::parse("kernel k\narg y: f64[64] inout\n\nfor i in 1..64\n  s: y[i] = y[i - 1]\n")?;
//! let mut schedule = Schedule::of(&kernel);
//! let [block, _] = schedule.split("i", 8)?;
//! let refusal = schedule.tag(&block, AxisTag::Group(0)).unwrap_err();
//! assert!(refusal.to_string().contains("`s[0,7]`"), "two instances clash: {refusal}");
//! let (after, recipe) = schedule.finish();
//! assert_eq!(recipe.apply(&kernel)?, after);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Code
//!
//! [`generate`] writes a [`Program`], source and launch plan, for a [`Target`], by [`Options`].
//!
//! ```
//! use kingpost::prelude::*;
//!
//! let kernel = text::parse("kernel k\narg y: f64[64] out\n\nfor i in 0..64 {g.0}\n  s: y[i] = 1.0\n")?;
//! let program = generate(&kernel, Target::OpenCl, &Options::default())?;
//! assert!(program.source.contains("void k("));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Devices
//!
//! [`devices`] lists them and [`open`] opens one: a [`Device`] compiles, launches and times, by [`TimingOptions`].
//! [`Loaded`] is a program with its arguments in memory there, as the first example has it.
//!
//! ```
//! use kingpost::prelude::*;
//!
//! let device = open("c")?;
//! assert_eq!(device.info().backend.target(), Target::C);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Forms
//!
//! A [`Problem`] is a form on a mesh with inputs of [`Random`] numbers and the result that it must have. A [`Mapping`]
//! is a strategy with its arguments, which [`transform`] applies.
//!
//! ```
//! use kingpost::{forms::mesh::Mesh, kernels::Operator, prelude::*};
//!
//! let problem = Problem::operator(Operator::Mass, 1, None, Mesh::unit_square(2)?, 7)?;
//! let (kernel, recipe) = transform(&problem.lowered, &Mapping::single_cell())?;
//! assert_eq!(recipe.apply(&problem.lowered.kernel)?, kernel);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// kernels
#[doc(no_inline)]
pub use crate::ir::{AddressSpace, AxisTag, Direction, Kernel, KernelBuilder, Layout, ScalarType, text};

// what they mean
#[doc(no_inline)]
pub use crate::interp::{Memory, Value, interpret};

// steps
#[doc(no_inline)]
pub use crate::transforms::{
    Primitive, Recipe, Schedule, ScheduleSteps, Script, Selection, Step, primitives::*,
};

// code
#[doc(no_inline)]
pub use crate::codegen::{Options, Program, Target, generate};

// devices
#[cfg(feature = "runtime")]
#[doc(no_inline)]
pub use crate::runtime::{Device, TimingOptions, devices, open};

// forms, and programs with their arguments
#[cfg(feature = "forms")]
#[doc(no_inline)]
pub use crate::Mapping;
#[cfg(feature = "tune")]
#[doc(no_inline)]
pub use crate::{Loaded, Problem, Random, transform};
