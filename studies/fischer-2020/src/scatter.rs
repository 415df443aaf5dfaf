//! How cells add to the degrees of freedom that they share.

use crate::measure::{Action, MeasureError};
use crate::record::StoredInputs;
use kingpost::forms::lowering::VectorResult;
use kingpost::forms::sparse::{EntryTerms, map_colours};
use kingpost::interp::{Memory, Value};
use kingpost::runtime::{Buffer, Device, buffer_of};
use kingpost::solve::{Arrays, Call, DeviceForm};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How cells add to the degrees of freedom that they share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scatter {
    /// By atomic updates.
    #[default]
    Atomic,
    /// Cells in colours that share none, a launch a colour.
    Coloured,
    /// Vectors of cells are stored, and each degree of freedom sums its terms by the transposed map.
    Transposed,
}

/// A name of none.
#[derive(Debug, thiserror::Error)]
#[error("no scatter is called `{0}`; use atomic, coloured or transposed")]
pub struct UnknownScatter(String);

impl FromStr for Scatter {
    type Err = UnknownScatter;

    fn from_str(name: &str) -> Result<Self, UnknownScatter> {
        let all = [Self::Atomic, Self::Coloured, Self::Transposed];
        all.into_iter().find(|s| s.to_string() == name).ok_or_else(|| UnknownScatter(name.into()))
    }
}

impl fmt::Display for Scatter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Atomic => "atomic",
            Self::Coloured => "coloured",
            Self::Transposed => "transposed",
        })
    }
}

impl Scatter {
    /// Whether it is by atomic updates.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        *self == Self::Atomic
    }

    /// What the form is lowered to.
    pub(crate) fn vector(self) -> VectorResult {
        match self {
            Self::Atomic => VectorResult::Assembled,
            Self::Coloured => VectorResult::Coloured,
            Self::Transposed => VectorResult::Entities,
        }
    }
}

/// An action with its arrays on a device.
pub(crate) struct Applied {
    form: DeviceForm,
    /// What it is applied to.
    pub(crate) u: Buffer,
    /// What it is added to.
    pub(crate) y: Buffer,
    /// What the mapping stored, if it stores anything.
    pub(crate) setup: Option<StoredInputs>,
}

impl Applied {
    /// Uploads `memory`, which has values of `u`; the result is zero.
    pub(crate) fn new(action: &Action<'_>, mut memory: Memory) -> Result<Self, MeasureError> {
        let device = action.device();
        let u = memory.f64s("u").unwrap_or_default();
        let y = device.allocate(8 * u.len() as u64)?;
        device.fill(&y, 0)?;
        let map = match memory.get("dofs") {
            Some(Value::I32(map)) => map.clone(),
            Some(_) | None => return Err(MeasureError::Arguments("the kernel has no map".into())),
        };
        let cells = memory.get_param("n_cells").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let columns = map.len().checked_div(cells).unwrap_or(0);
        let mut this = Self { form: DeviceForm::default(), u: buffer_of(device, u)?, y, setup: None };
        let mut arrays = Arrays::default();
        match action.scatter() {
            Scatter::Atomic => this.add(action, &mut memory, None, &mut arrays)?,
            Scatter::Coloured => {
                for cells in map_colours(&map, columns, u.len())? {
                    let mut own = action.lowered().on_entities(&memory, &cells);
                    this.add(action, &mut own, None, &mut arrays)?;
                }
            }
            Scatter::Transposed => {
                let terms = EntryTerms::of_map(&map, u.len(), 1);
                this.add(action, &mut memory, Some(&terms), &mut arrays)?;
            }
        }
        Ok(this)
    }

    fn add(
        &mut self,
        action: &Action<'_>,
        memory: &mut Memory,
        terms: Option<&EntryTerms>,
        arrays: &mut Arrays,
    ) -> Result<(), MeasureError> {
        if let Some(own) = action.set_up(memory)? {
            let all = self.setup.get_or_insert(StoredInputs { bytes: 0, seconds: 0.0, kernel_s: 0.0 });
            all.bytes += own.bytes;
            all.seconds += own.seconds;
            all.kernel_s += own.kernel_s;
        }
        let (device, executable) = (action.device(), action.executable());
        Ok(self.form.add_kernel(device, executable, memory, ("y", &["u"]), terms, arrays)?)
    }

    /// Appends what adds the action on `u` to `y`.
    pub(crate) fn add_to<'a>(&'a self, calls: &mut Vec<Call<'a>>) {
        self.form.add_to(&[&self.u], &self.y, calls);
    }

    /// Launches of an action.
    pub(crate) fn launches(&self) -> usize {
        self.form.n_launches()
    }

    /// Adds the action on `u` to `y`; the seconds that takes.
    pub(crate) fn run(&self, device: &dyn Device) -> Result<f64, MeasureError> {
        let mut calls = Vec::new();
        self.add_to(&mut calls);
        Ok(kingpost::solve::run(device, &calls)?)
    }
}
