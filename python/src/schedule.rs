//! Schedules: steps that are applied one by one, and the table of them.

use crate::failure::{self, Failure};
use crate::kernel::Kernel;
use kingpost::explore::{Exploration, Subject, page};
use kingpost::ir;
use kingpost::transforms::ScheduleSteps;
use kingpost::transforms::schedule::{Choice, Made, Script, print};
use kingpost::transforms::{Recipe, Refusal, Schedule, Step, TransformError, steps};
use pyo3::prelude::*;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The names of what a step made: arrays, loops, rules, statements.
type Names = (Vec<String>, Vec<String>, Vec<String>, Vec<String>);

/// A kernel and the steps that were applied to it; `kingpost.Schedule` is what users see of it.
#[pyclass(frozen, module = "kingpost._kingpost")]
pub(crate) struct Engine {
    start: ir::Kernel,
    schedule: Mutex<Schedule>,
}

impl Engine {
    fn of(start: ir::Kernel) -> Self {
        Self { schedule: Mutex::new(Schedule::of(&start)), start }
    }

    /// The schedule of a recipe.
    pub(crate) fn replayed(start: ir::Kernel, recipe: &Recipe) -> Result<Self, Failure> {
        let engine = Self::of(start);
        engine.lock().replay(recipe)?;
        Ok(engine)
    }

    /// The schedule; a refused step leaves it as it was, and so does a panic.
    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names(made: &Made) -> Names {
    (
        made.arrays.iter().map(|a| a.name().to_owned()).collect(),
        made.loops.iter().map(|l| l.name().to_owned()).collect(),
        made.rules.iter().map(|r| r.name().to_owned()).collect(),
        made.insns.iter().map(|i| i.name().to_owned()).collect(),
    )
}

/// The step of this name with arguments as JSON.
fn step(name: &str, arguments: &str) -> Result<Step, Failure> {
    let refused = |e: serde_json::Error| {
        let cause = Refusal::Arguments(e.to_string());
        Failure::from(TransformError { operation: name.to_owned(), cause })
    };
    let arguments: Value = serde_json::from_str(arguments).map_err(refused)?;
    steps().deserialize(json!({ name: arguments })).map_err(refused)
}

#[pymethods]
impl Engine {
    #[new]
    fn new(kernel: &Bound<'_, Kernel>) -> Self {
        Self::of((*kernel.get().0).clone())
    }

    /// The schedule of a text with a kernel and, after a line `schedule`, its steps.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, holes: BTreeMap<String, String>) -> PyResult<Self> {
        failure::run(py, || {
            let (kernel, script) = steps().file(text)?;
            let engine = Self::of(kernel);
            if let Some(script) = script {
                engine.append(&script, &holes)?;
            }
            Ok(engine)
        })
    }

    fn apply(&self, py: Python<'_>, name: &str, arguments: &str) -> PyResult<Names> {
        failure::run(py, || Ok(names(&self.lock().apply(step(name, arguments)?)?)))
    }

    fn reorder(&self, py: Python<'_>, order: Vec<String>) -> PyResult<()> {
        failure::run(py, || Ok(self.lock().reorder(order)?))
    }

    /// The loops over blocks, then those inside a block, with pairs of tags for the first of them.
    fn tile(
        &self,
        py: Python<'_>,
        loops: Vec<String>,
        factors: Vec<i64>,
        tags: Vec<[String; 2]>,
    ) -> PyResult<Names> {
        failure::run(py, || {
            let named = |name: &String| {
                ir::AxisTag::parse(name).ok_or_else(|| {
                    let cause =
                        Refusal::argument("tags", format!("`{name}`"), "tags such as `g.0` and `l.0`");
                    TransformError { operation: "tile".to_owned(), cause }
                })
            };
            let tags = tags.iter().map(|[block, inside]| Ok([named(block)?, named(inside)?]));
            let tags = tags.collect::<Result<Vec<_>, TransformError>>()?;
            let loops = self.lock().tile_on(loops, factors, tags)?.into_iter().flatten().collect();
            Ok(names(&Made { loops, ..Made::default() }))
        })
    }

    /// Tags the loops of a pattern; returns them.
    fn tag_matching(&self, py: Python<'_>, pattern: &str, tag: &str) -> PyResult<Names> {
        failure::run(py, || {
            let tag = ir::AxisTag::parse(tag).ok_or_else(|| {
                let cause = Refusal::argument("tag", format!("`{tag}`"), "a tag such as `g.0` or `unroll`");
                TransformError { operation: format!("tag `{pattern}`"), cause }
            })?;
            let loops = self.lock().tag_matching(pattern, tag)?;
            Ok(names(&Made { loops, ..Made::default() }))
        })
    }

    /// The parts of a loop whose iterations run side by side.
    fn interleave(&self, py: Python<'_>, iname: &str) -> PyResult<Names> {
        failure::run(py, || {
            let loops = self.lock().interleave(iname)?;
            Ok(names(&Made { loops, ..Made::default() }))
        })
    }

    /// Applies the steps of a text.
    fn apply_text(&self, py: Python<'_>, text: &str, holes: BTreeMap<String, String>) -> PyResult<()> {
        failure::run(py, || self.append(&steps().script(text)?, &holes))
    }

    /// Applies the steps of a recipe in JSON.
    fn apply_json(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        failure::run(py, || {
            let recipe = steps().recipe(json).map_err(|e| Failure::new("TextError", e.to_string()))?;
            self.extend(&recipe)
        })
    }

    /// The kernel as it is now.
    fn kernel(&self, py: Python<'_>) -> PyResult<Kernel> {
        failure::run(py, || Ok(Kernel::new(self.lock().kernel().clone())))
    }

    /// The kernel as it was before any step.
    fn start(&self) -> Kernel {
        Kernel::new(self.start.clone())
    }

    /// The steps as text.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        failure::run(py, || Ok(print(self.lock().recipe())))
    }

    /// The steps as JSON.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        failure::run(py, || {
            self.lock().recipe().to_json().map_err(|e| Failure::new("InternalError", e.to_string()))
        })
    }

    /// Each step in words, with the kernel after it and the laws that it relies on.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<(String, Kernel, Vec<String>)>> {
        failure::run(py, || {
            let recipe = self.lock().recipe().clone();
            let trace = recipe.trace(&self.start)?;
            let mut met = &self.start;
            let mut steps = Vec::with_capacity(trace.len());
            for (step, kernel) in &trace {
                let laws = step.relies_on(met, kernel).iter().map(ToString::to_string).collect();
                steps.push((step.to_string(), Kernel::new(kernel.clone()), laws));
                met = kernel;
            }
            Ok(steps)
        })
    }

    /// What every step makes of the kernel, as one page.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        failure::run(py, || {
            let recipe = self.lock().recipe().clone();
            let subject = Subject::new(self.start.name.clone(), &self.start, &recipe);
            let explored =
                Exploration::of(&subject).map_err(|e| Failure::new("InternalError", e.to_string()))?;
            page(&explored).map_err(|e| Failure::new("InternalError", e.to_string()))
        })
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        failure::run(py, || {
            let schedule = self.lock().clone();
            Ok(Self { start: self.start.clone(), schedule: Mutex::new(schedule) })
        })
    }
}

impl Engine {
    /// Applies all steps of a script or none of them.
    fn append(&self, script: &Script, holes: &BTreeMap<String, String>) -> Result<(), Failure> {
        let mut schedule = self.lock();
        let value = |(name, text): (&String, &String)| {
            let value = script.value_of(name, text).map_err(|e| Failure::new("ScheduleError", e))?;
            Ok::<_, Failure>((name.clone(), value))
        };
        let choice = Choice::new(holes.iter().map(value).collect::<Result<Vec<_>, _>>()?);
        let applied = script.apply_with(schedule.kernel(), &choice)?;
        Self::replay(&mut schedule, applied.recipe())
    }

    /// Applies all steps of a recipe or none of them.
    fn extend(&self, recipe: &Recipe) -> Result<(), Failure> {
        let mut schedule = self.lock();
        recipe.apply(schedule.kernel())?; // for the number of the step that is refused
        Self::replay(&mut schedule, recipe)
    }

    fn replay(schedule: &mut Schedule, recipe: &Recipe) -> Result<(), Failure> {
        let mut draft = schedule.clone();
        draft.replay(recipe)?;
        *schedule = draft;
        Ok(())
    }
}

/// The table of primitives: name, summary, arguments in their order, whether they are
/// alternatives, obligations (id, condition), JSON schema.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn primitives()
-> Vec<(&'static str, &'static str, Vec<&'static str>, bool, Vec<(&'static str, &'static str)>, String)> {
    let rows = steps().rows();
    rows.map(|p| {
        let obligations = p.obligations.iter().map(|o| (o.id(), o.says())).collect();
        let schema = (p.schema)().as_value().to_string();
        (p.name, p.summary, p.arguments().to_vec(), p.takes_one_of(), obligations, schema)
    })
    .collect()
}

/// The verbs and former names of primitives: the name of today, and the arguments that a step takes by them.
#[pyfunction]
pub(crate) fn other_names() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let names = steps().other_names();
    names.map(|(name, today, arguments)| (name, today.name, arguments.to_vec())).collect()
}
