//! Following a recipe, and gathering what the kernel is after each step.

use crate::changes::change;
use crate::counts::counts;
use crate::data::{Exploration, KernelState, Primitive, StepState};
use crate::dependences::dependences;
use crate::origins::Origins;
use crate::params::drawn;
use crate::refusal::refused;
use crate::sources::sources;
use crate::statements::{arrays, statements};
use crate::text::Text;
use kingpost_analysis::{Analysis, Known};
use kingpost_ir::{AxisTag, Kernel, VarKind};
use kingpost_primitives::refusal::{PLACEMENT, STORAGE};
use kingpost_primitives::{Recipe, Step, TransformError, steps};
use std::collections::BTreeMap;

/// What is explored.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// A title for the page.
    pub title: String,
    /// The command that asks for it; empty where none does.
    pub command: String,
    /// The kernel before any step.
    pub kernel: &'a Kernel,
    /// The steps.
    pub recipe: &'a Recipe,
    /// Why a step after those of the recipe is refused, as a strategy has it.
    pub behind: Option<&'a TransformError>,
    /// Values of parameters; others are chosen for the picture.
    pub params: BTreeMap<String, i64>,
}

impl<'a> Subject<'a> {
    /// A kernel and a recipe.
    pub fn new(title: impl Into<String>, kernel: &'a Kernel, recipe: &'a Recipe) -> Self {
        let title = title.into();
        Self { title, command: String::new(), kernel, recipe, behind: None, params: BTreeMap::new() }
    }

    /// With the command that asks for it.
    #[must_use]
    pub fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: command.into(), ..self }
    }

    /// With the refusal of a step after those of the recipe.
    #[must_use]
    pub fn with_refusal(self, behind: Option<&'a TransformError>) -> Self {
        Self { behind, ..self }
    }

    /// With values of parameters.
    #[must_use]
    pub fn with_params(self, params: BTreeMap<String, i64>) -> Self {
        Self { params, ..self }
    }
}

/// Why nothing can be explored.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// A step that has no JSON.
    #[error("the arguments of a step: {0}")]
    Json(#[from] serde_json::Error),
    /// A parameter that the kernel does not have.
    #[error("the kernel has no parameter `{name}`; it has {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
}

impl Exploration {
    /// The kernel after each step of the recipe, up to the one that is refused.
    ///
    /// What cannot be derived of a kernel, such as a source that a target refuses, is said in its
    /// place: a page is for finding out why.
    ///
    /// # Errors
    /// A value of a parameter that no kernel has.
    pub fn of(subject: &Subject<'_>) -> Result<Self, ExploreError> {
        let (trace, refusal) = follow(subject);
        let kernels: Vec<&Kernel> = trace.iter().map(Known::kernel).collect();
        check_params(&kernels, &subject.params)?;
        let fixed = subject.recipe.fixed_params(&subject.params);
        let params =
            drawn(&kernels, &subject.params.iter().chain(&fixed).map(|(n, v)| (n.clone(), *v)).collect());
        let mut states: Vec<StepState> = Vec::new();
        let mut origins = Origins::as_written(subject.kernel);
        for (number, known) in trace.iter().enumerate() {
            let step = number.checked_sub(1).and_then(|k| subject.recipe.steps.get(k));
            let before = number.checked_sub(1).map(|k| (trace[k].kernel(), &states[k]));
            let analysis = known.analysis();
            if let (Some(step), Some(met)) = (step, number.checked_sub(1)) {
                origins = origins.after(step, &trace[met].analysis(), &analysis);
            }
            let mut state = state(&analysis, step, before, &params, number)?;
            state.kernel.insns.iter_mut().for_each(|s| s.origin = origins.of(s));
            states.push(state);
        }
        if let (Some((step, error)), Some(last)) = (refusal, states.last().cloned()) {
            let state = labelled(last, step)?;
            let label = if step.is_some() { state.label.clone() } else { error.operation.clone() };
            states.push(StepState { label, refusal: Some(refused(&error)), ..state });
        }
        let names = states.iter().filter_map(|state| state.primitive.as_deref());
        let primitives = names.filter_map(|name| steps().row(name)).map(|row| {
            let shared = [PLACEMENT, STORAGE];
            let obligations = row.obligations.iter().chain(&shared).map(|o| (o.id(), o.says())).collect();
            (row.name, Primitive { summary: row.summary, obligations })
        });
        Ok(Self {
            schema: "explore/1",
            version: env!("CARGO_PKG_VERSION"),
            title: subject.title.clone(),
            command: subject.command.clone(),
            primitives: primitives.collect(),
            params,
            steps: states,
            left_out: Vec::new(),
        })
    }
}

/// The kernels as far as the steps go, and the step that stopped them, if it is one of the recipe, with
/// its refusal.
fn follow<'s>(subject: &Subject<'s>) -> (Vec<Known>, Option<(Option<&'s Step>, TransformError)>) {
    let mut trace = vec![Known::of(subject.kernel.clone())];
    for step in &subject.recipe.steps {
        let applied = trace.last().map(|met| step.apply_to(&met.analysis()));
        match applied {
            Some(Ok((after, _))) => trace.push(after),
            Some(Err(error)) => return (trace, Some((Some(step), error))),
            None => {}
        }
    }
    (trace, subject.behind.map(|error| (None, error.clone())))
}

fn check_params(kernels: &[&Kernel], given: &BTreeMap<String, i64>) -> Result<(), ExploreError> {
    let all = kernels.iter().flat_map(|kernel| kernel.vars.values());
    let mut known: Vec<&str> = all.filter(|v| v.kind == VarKind::Param).map(|v| v.name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    match given.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".into() } else { known };
            Err(ExploreError::Unknown { name: name.clone(), known })
        }
    }
}

/// The kernel after a step.
fn state(
    analysis: &Analysis,
    step: Option<&Step>,
    before: Option<(&Kernel, &StepState)>,
    params: &BTreeMap<String, i64>,
    number: usize,
) -> Result<StepState, ExploreError> {
    let kernel = analysis.kernel();
    let text = Text::of(kernel);
    let was = before.map(|(_, state)| state);
    let (deps, deps_error) = match before {
        Some((old, state)) if same_but_for_tags(old, kernel) => {
            (state.deps.clone(), state.deps_error.clone())
        }
        Some(_) | None => match dependences(analysis) {
            Ok(found) => (found, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        },
    };
    let params_of = kernel.vars.values().filter(|var| var.kind == VarKind::Param);
    let state = StepState {
        label: String::new(),
        primitive: None,
        args: serde_json::Value::Null,
        refusal: None,
        kernel: KernelState {
            text: change(was.map(|state| &state.kernel.text), &text.text, number),
            params: params_of.map(|var| var.name.clone()).collect(),
            arrays: arrays(kernel),
            insns: statements(analysis, &text),
        },
        deps,
        deps_error,
        without_relations: false,
        sources: sources(analysis, was.map(|state| &state.sources), params, number),
        counts: counts(analysis, params),
    };
    labelled(state, step)
}

/// A state under the name of its step.
fn labelled(state: StepState, step: Option<&Step>) -> Result<StepState, ExploreError> {
    let Some(step) = step else { return Ok(StepState { label: String::new(), primitive: None, ..state }) };
    // `{"split_iname": {…}}`
    let args = serde_json::to_value(step)?.get(step.name()).cloned().unwrap_or(serde_json::Value::Null);
    Ok(StepState { label: step.to_string(), primitive: Some(step.name().to_owned()), args, ..state })
}

/// Whether two kernels have the same dependences, because they differ in the tags of loops alone.
fn same_but_for_tags(a: &Kernel, b: &Kernel) -> bool {
    let plain = |kernel: &Kernel| {
        let mut kernel = kernel.clone();
        kernel.inames.values_mut().for_each(|iname| iname.tag = AxisTag::Sequential);
        kernel
    };
    plain(a) == plain(b)
}
