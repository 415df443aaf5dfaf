//! The arguments of the tools.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// What to start with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The text of a kernel; a schedule may follow after a line `schedule`, and is applied unless it has holes.
    pub text: Option<String>,
    /// Instead of a text, what the command line takes: `laplace --dim 2 --degree 1`, `bp5`, `matmul.kingpost`.
    pub form: Option<String>,
}

/// Which primitive.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Primitives {
    /// The one to explain.
    pub name: Option<String>,
}

/// Which steps are tried.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// The primitives; all where none is named, which takes long for large kernels.
    #[serde(default)]
    pub only: Vec<String>,
    /// Maximum number of combinations of arguments of a primitive [default: 256].
    pub limit: Option<usize>,
    /// Values of parameters, for primitives that need one.
    #[serde(default)]
    pub params: BTreeMap<String, i64>,
    /// Whether those that are refused are listed with their reasons, too.
    #[serde(default)]
    pub refused: bool,
}

/// What to apply: one of the two.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// Lines of a schedule.
    pub steps: Option<String>,
    /// A recipe: an object with `steps`, or the list of steps, each as `{"split_iname": {"iname": "i", "factor": 8}}`.
    pub recipe: Option<Value>,
    /// Values for the holes of the lines, by name.
    #[serde(default)]
    pub holes: BTreeMap<String, Value>,
}

/// How far back.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// How many calls of apply [default: 1].
    pub calls: Option<usize>,
}

/// Which source.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceOf {
    /// `c`, `opencl` or `cuda`.
    pub target: String,
}

/// As what to save.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// `schedule`, `recipe` or `file`.
    pub format: Format,
}

/// What a schedule is saved as.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Lines of a schedule.
    Schedule,
    /// JSON.
    Recipe,
    /// The kernel as it was loaded, with the schedule after it.
    File,
}

/// On which sizes, and where.
#[derive(Clone, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Values of parameters.
    #[serde(default)]
    pub params: BTreeMap<String, i64>,
    /// Divisions of each side of the unit mesh, for the kernel of a form.
    pub cells: Option<usize>,
    /// `c`, `opencl`, `cuda`, `cuda:1` … [default: opencl if there is one, else c].
    pub device: Option<String>,
    /// Seed of the inputs [default: 1].
    pub seed: Option<u64>,
}

/// What to find a schedule for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auto {
    /// On which sizes, and where.
    pub run: Run,
    /// How many schedules to time [default: 10].
    pub budget: Option<usize>,
}

/// What to tune.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// On which sizes, and where.
    pub run: Run,
    /// How many combinations of values to time [default: 20].
    pub budget: Option<usize>,
    /// Lines of a schedule with holes [default: the schedule of the loaded text].
    pub steps: Option<String>,
}
