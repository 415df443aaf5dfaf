//! What a strategy is: data that composes primitives on a schedule.
//!
//! A [`Strategy`] maps the cells of a form onto a device. A [`Combinator`] changes what is computed, and
//! hands the rest to another one. Either is plain data with a name, a text and a JSON form; a
//! [`Mapping`](crate::Mapping) holds any of them, and a [`StrategySet`](crate::StrategySet) reads them.
//! Kingpost has its own in [`strategies`](crate::strategies()); `examples/own_strategy` is a crate with one
//! of its own.

mod error;
pub(crate) mod mapping;
pub(crate) mod relowering;
pub(crate) mod set;
mod work;

pub use error::{MappingError, RefusedStep, Stopped, StrategyError};
pub use work::{MappedKernel, Work};

use crate::MatrixInstruction;
use crate::tiling::TilingSizes;
use kingpost_forms::CellKernel;
use kingpost_forms::lowering::{NoSymmetry, Orbits};
use kingpost_ir::{Kernel, VarKind, Variable};
use mapping::Mapping;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::hash::Hash;

/// What strategies and combinators are: plain data that can be shown, compared, written and read.
///
/// [`Display`](fmt::Display) is the text of tables and reports: `staged cells, 32 a group`.
pub trait Arguments:
    Clone + fmt::Debug + fmt::Display + Eq + Hash + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The value of `"strategy"` in JSON: `staged_cells`; one of another crate has that in front, as in
    /// `acme.cells_in_rows`.
    const NAME: &'static str;
    /// What it does, in a sentence.
    const SUMMARY: &'static str;
}

/// A strategy: how the cells of a form are mapped onto a device.
///
/// ```
/// use kingpost_strategies::SingleCell;
/// use kingpost_fem::element::CellShape;
/// use kingpost_forms::{form::*, lowering::{LoweringOptions, lower}};
/// use kingpost_strategies::Mapping;
///
/// let space = FunctionSpace::scalar(CellShape::Triangle, 1);
/// let form = coefficient("u", &space) * test(&space) * dx();
/// let lowered = lower(&form, &LoweringOptions::new("mass"))?;
/// let mapping = Mapping::from(SingleCell { cells: 64 });
/// let (kernel, recipe) = mapping.apply(&lowered)?;
/// assert_eq!(recipe.apply(&lowered.kernel)?, kernel);
/// assert_eq!(serde_json::to_string(&mapping)?, r#"{"strategy":"single_cell","cells":64}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Strategy: Arguments {
    /// Applies its steps to the schedule of `on`, one after the other, by the handles that they return.
    ///
    /// # Errors
    /// The step that is refused, roles that the kernel does not have, arguments that make no sense.
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped>;

    /// What it needs of a device.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// What the tuner tries of it; nothing unless it says so.
    fn candidates(_question: &Question<'_>) -> Vec<Self> {
        Vec::new()
    }

    /// The same with these numbers of degrees of freedom gathered and scattered separately; none where
    /// nothing is transferred so.
    fn with_parts(&self, _parts: &[u64]) -> Option<Self> {
        None
    }

    /// The same for a form of other sizes: with as many tiles along each loop.
    fn rescaled(&self, _from: &TilingSizes, _to: &TilingSizes) -> Self {
        self.clone()
    }

    /// Whether it already sums over modes.
    fn is_over_modes(&self) -> bool {
        false
    }

    /// Applies its steps with degrees of freedom combined in orbits, to the form that
    /// [`CombinedOrbits::lower`] gives.
    ///
    /// # Errors
    /// As [`Strategy::apply`]; refused unless the strategy has such steps.
    fn in_orbits(&self, _on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        Err(how.refused(self))
    }
}

/// A strategy that changes what is computed, and leaves the rest to another one.
///
/// ```
/// use kingpost_strategies::{Modes, SingleCell};
/// use kingpost_strategies::{Combinator, Mapping};
///
/// let mapping = Modes {}.before(SingleCell { cells: 32 });
/// assert_eq!(mapping.to_string(), "modes, single cell, 32 a group");
/// assert!(mapping.get::<Modes>().is_some() && mapping.find::<SingleCell>().is_some());
/// let json = r#"{"strategy":"modes","then":{"strategy":"single_cell","cells":32}}"#;
/// assert_eq!(serde_json::to_string(&mapping)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait Combinator: Arguments {
    /// Changes what is computed, and applies `then` to it: by [`Work::go_on`] to what its steps made,
    /// by [`Work::hand_on`] where it made none.
    ///
    /// # Errors
    /// As [`Strategy::apply`].
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped>;

    /// What it needs of a device, besides what the other one needs.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Whether the other one sums over modes after it.
    fn is_over_modes(&self, _then: &Mapping) -> bool {
        false
    }

    /// What the tuner tries of it, with what follows; nothing unless it says so.
    fn candidates(_question: &Question<'_>) -> Vec<Mapping> {
        Vec::new()
    }

    /// What it decides for a form, a line each.
    ///
    /// # Errors
    /// As [`Combinator::apply`].
    fn decisions(&self, _form: &dyn CellKernel) -> Result<Vec<String>, MappingError> {
        Ok(Vec::new())
    }

    /// The text of both.
    ///
    /// # Errors
    /// As [`fmt::Display::fmt`].
    fn show(&self, then: &Mapping, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}, {then}")
    }

    /// The mapping that does this first, and then another one.
    fn before(self, then: impl Into<Mapping>) -> Mapping {
        Mapping::combined(self, then.into())
    }
}

/// What a mapping needs of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Matrix instructions.
    pub matrix_instructions: bool,
    /// Registers for all values of a cell, which cards have and processors do not.
    pub cell_in_registers: bool,
    /// Inputs that are computed once for a mesh, before the kernel runs.
    pub setup: bool,
}

impl Needs {
    /// What two of them need together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            matrix_instructions: self.matrix_instructions || other.matrix_instructions,
            cell_in_registers: self.cell_in_registers || other.cell_in_registers,
            setup: self.setup || other.setup,
        }
    }
}

/// What the tuner asks strategies: what to try for a form on a device.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// The form.
    pub form: &'q dyn CellKernel,
    /// Whether the device is a card: work-items in sub-groups, with registers for a cell.
    pub is_card: bool,
    /// The matrix instruction of its sub-groups, if it has one.
    pub matrix_instruction: Option<MatrixInstruction>,
    /// Compute units, to each of which groups that take one block of cells after the other are
    /// dealt; where a device's are not known, those of an H200.
    pub compute_units: u64,
    /// Local memory of a group, bytes.
    pub local_bytes: u64,
}

/// Groups of a launch that are one for each multiprocessor of an H200.
pub(crate) const MULTIPROCESSORS: u64 = 132;

/// Beyond this, constant memory is slower than cached global memory (12 KB: 11.9 TFLOP/s against
/// 8.2, with the matrices of a whole action; H200, 2026-11-21).
const CONSTANT_CACHE_BYTES: u64 = 16 << 10;

impl<'q> Question<'q> {
    /// Of a device of which nothing is known.
    #[must_use]
    pub const fn of(form: &'q dyn CellKernel) -> Self {
        let compute_units = MULTIPROCESSORS;
        Self { form, is_card: false, matrix_instruction: None, compute_units, local_bytes: 0 }
    }

    /// Whether the tables of the form are as fast in constant memory as in registers.
    #[must_use]
    pub fn tables_fit_constant_cache(&self) -> bool {
        table_bytes(self.form.kernel()) <= CONSTANT_CACHE_BYTES
    }
}

/// Bytes of all tables of a kernel.
#[must_use]
pub fn table_bytes(kernel: &Kernel) -> u64 {
    let bytes = |v: &Variable| match &v.kind {
        VarKind::Table(data) => data.len() as u64 * v.ty.bytes(),
        VarKind::Param | VarKind::Argument(_) | VarKind::Temporary => 0,
    };
    kernel.vars.values().map(bytes).sum()
}

/// How degrees of freedom are combined in orbits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CombinedOrbits {
    /// Whether points are combined, too, instead of modes.
    pub points: bool,
    /// Groups that a compute unit should have registers for; none leaves it to the compiler.
    pub resident_groups: Option<u32>,
}

impl CombinedOrbits {
    /// Lowers the form of `on` along symmetric directions; returns the orbits of its elements.
    ///
    /// # Errors
    /// A kernel without a form, a form without this symmetry.
    pub fn lower(self, on: &mut Work<'_>) -> Result<Vec<Orbits>, Stopped> {
        on.lower(match self.points {
            true => relowering::Relowering::PointOrbits,
            false => relowering::Relowering::SymmetricDirections,
        })
    }

    /// Refuses a mapping that has no such steps.
    pub fn refused(self, mapping: &impl fmt::Display) -> Stopped {
        let mapping = mapping.to_string();
        match self.points {
            true => NoSymmetry::Points { mapping }.into(),
            false => NoSymmetry::Mapping { mapping }.into(),
        }
    }
}
