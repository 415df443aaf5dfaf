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
