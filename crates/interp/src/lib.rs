//! The interpreter: runs a kernel in its sequential meaning.
//!
//! Loops run in textual order over the integer points of their domains in ascending order; tags,
//! layouts, address spaces and shared storage do not change the meaning. Every `f32` operation
//! rounds to `f32`; integers are exact, and leaving 64 bits is an error. Reading an element of a
//! temporary or an `out` argument that nothing has written is an error, too.
//!
//! ```
//! use kingpost_interp::{Memory, interpret};
//! use kingpost_ir::{Access, Affine, Direction, Expr, KernelBuilder, ScalarType};
//!
//! let mut b = KernelBuilder::new("scale");
//! let n = b.param("n", ScalarType::I32);
//! let x = b.argument("x", ScalarType::F64, [Affine::var(n)], Direction::In);
//! let y = b.argument("y", ScalarType::F64, [Affine::var(n)], Direction::Out);
//! let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
//! b.assign("s", Access::new(y, [i.into()]), Expr::load(x, [i.into()]) * 2.0);
//! b.close_loop();
//! let kernel = b.finish()?;
//!
//! let mut memory = Memory::new().param("n", 3).value("x", vec![1.0, 2.0, 3.0]);
//! let run = interpret(&kernel, &mut memory)?;
//! assert_eq!(memory.f64s("y"), Some(&[2.0, 4.0, 6.0][..]));
//! assert_eq!(run.flops(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod ascending;
mod check;
mod complex;
mod error;
mod eval;
mod injective;
mod integers;
mod lists;
mod lower;
mod lower_complex;
mod lower_expr;
mod lowered;
mod machine;
mod math;
#[macro_use]
mod memory;
#[doc(hidden)] // the typed program, which statistics read
pub mod node;
mod observe;
mod op;
mod outside;
mod points;
mod rounding;
mod store;
mod symmetry;
#[cfg(test)]
pub(crate) mod tests;

pub use check::{AccessProof, LaunchReport, check_launch, launch_inputs};
pub use error::{InterpError, Site};
#[doc(hidden)]
pub use lower::{lower, lower_parametric};
pub use memory::{Memory, Value};
pub use observe::Observer;
pub use op::OpKind;
#[doc(hidden)]
pub use op::Tally;
pub use symmetry::impose_symmetries;

use kingpost_ir::kernel::{Direction, Kernel, VarKind};
use kingpost_ir::types::ScalarType;
use std::collections::BTreeMap;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Operations by kind and type; integer operations are those of index expressions, too.
    pub ops: BTreeMap<(OpKind, ScalarType), u64>,
    /// Instances executed (predicate true), by instruction.
    pub instances: BTreeMap<String, u64>,
    /// Elements read, by variable; parameters are not counted, updates are.
    pub reads: BTreeMap<String, u64>,
    /// Elements written, by variable.
    pub writes: BTreeMap<String, u64>,
    /// Elements of `out` arguments that nothing wrote, by variable, where there are any. They keep
    /// the value they were given, zero if none.
    pub unwritten: BTreeMap<String, u64>,
}

impl Run {
    /// Floating-point operations; see [`OpKind::flops`].
    pub fn flops(&self) -> u64 {
        self.ops.iter().map(|((kind, ty), n)| kind.flops(*ty) * n).sum()
    }
}

/// Runs a kernel; `out` and `inout` arguments are written back to `memory`.
///
/// # Errors
/// A kernel that is not well formed; parameters or arguments that are missing or do not fit; what
/// goes wrong on the way, with the instance of the instruction. `memory` is unchanged then.
pub fn interpret(kernel: &Kernel, memory: &mut Memory) -> Result<Run, InterpError> {
    interpret_with(kernel, memory, &mut (), None)
}

/// Runs a kernel under an observer, for at most `limit` steps (instances and loop iterations).
///
/// # Errors
/// As [`interpret`], and [`InterpError::StepLimit`].
pub fn interpret_with<O: Observer>(
    kernel: &Kernel,
    memory: &mut Memory,
    observer: &mut O,
    limit: Option<u64>,
) -> Result<Run, InterpError> {
    let kernel = &*kernel.scalar_form();
    let program = lower(kernel, memory.params())?;
    let slots = store::load(kernel, &program, memory)?;
    injective::check_injective(kernel, &program, memory)?;
    ascending::check_ascending(kernel, &program, memory)?;
    outside::check_outside(kernel, &program, memory)?;
    symmetry::check_symmetric(kernel, &program, memory)?;
    lists::check_lists(kernel, &program, memory)?;
    let mut machine = machine::Machine::new(kernel, &program, slots, observer, limit.unwrap_or(u64::MAX));
    machine.run(&program.body).map_err(|fault| *fault)?;
    let run = report(kernel, &machine.ops, &machine.instances, &machine.slots);
    store::unload(kernel, machine.slots, memory);
    Ok(run)
}

fn report(kernel: &Kernel, ops: &[u64], instances: &[u64], slots: &[store::Slot]) -> Run {
    let mut run = Run { ops: Tally::collect(ops), ..Run::default() };
    for (insn, n) in kernel.insns.values().zip(instances) {
        run.instances.insert(insn.name.clone(), *n);
    }
    for (var, slot) in kernel.vars.values().zip(slots) {
        let note = |map: &mut BTreeMap<String, u64>, n: u64| {
            if n > 0 {
                map.insert(var.name.clone(), n);
            }
        };
        note(&mut run.reads, slot.reads);
        note(&mut run.writes, slot.writes);
        if var.kind == VarKind::Argument(Direction::Out) {
            let missing = slot.defined.iter().flatten().filter(|d| !**d).count();
            note(&mut run.unwritten, missing as u64);
        }
    }
    run
}
