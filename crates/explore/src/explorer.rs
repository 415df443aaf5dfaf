//! Following a recipe, and keeping what its first steps made while the others change.

use crate::data::{Exploration, Primitive, StepState};
use crate::origins::Origins;
use crate::params::drawn;
use crate::refusal::refused;
use crate::sources::Asked;
use crate::state::{labelled, state};
use crate::subject::{ExploreError, Subject, check_params};
use kingpost_analysis::Known;
use kingpost_ir::Kernel;
use kingpost_primitives::refusal::{PLACEMENT, STORAGE};
use kingpost_primitives::{Proved, Step, TransformError, steps};
use std::collections::BTreeMap;

impl Exploration {
    /// The kernel after each step of the recipe, up to the one that is refused.
    ///
    /// What cannot be derived of a kernel, such as a source that a target refuses, is said in its
    /// place: a page is for finding out why.
    ///
    /// # Errors
    /// A value of a parameter that no kernel has.
    pub fn of(subject: &Subject<'_>) -> Result<Self, ExploreError> {
        Explorer::default().explore(subject)
    }
}

/// Follows recipes of which each differs little from the one before, as in an editor: steps that are the same
/// are not applied again. A compiler is the same in all calls.
///
/// ```
/// use kingpost_explore::{Explorer, Subject};
/// use kingpost_primitives::{Recipe, primitives::SplitIname};
///
/// let kernel = kingpost_ir::text::parse(
///     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
/// )?;
/// let mut explorer = Explorer::default();
/// for factor in [4, 8] {
///     let recipe = Recipe::default().then(SplitIname::new("i", factor));
///     assert_eq!(explorer.explore(&Subject::new("scale", &kernel, &recipe))?.steps.len(), 2);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Explorer {
    /// The kernel as it is written, then after each step.
    applied: Vec<Applied>,
    /// The parameters of what was told.
    params: BTreeMap<String, i64>,
}

/// A kernel after a step.
struct Applied {
    step: Option<Step>,
    known: Known,
    proved: Vec<Proved>,
    /// What the page says of it, as far as it was asked.
    told: Option<(StepState, Origins)>,
    /// The same as JSON.
    json: Option<String>,
}

impl Applied {
    fn new(step: Option<Step>, known: Known, proved: Vec<Proved>) -> Self {
        Self { step, known, proved, told: None, json: None }
    }
}

impl Explorer {
    /// As [`Exploration::of`].
    ///
    /// # Errors
    /// As [`Exploration::of`].
    pub fn explore(&mut self, subject: &Subject<'_>) -> Result<Exploration, ExploreError> {
        let refusal = self.follow(subject);
        let kernels: Vec<&Kernel> = self.applied.iter().map(|applied| applied.known.kernel()).collect();
        check_params(&kernels, &subject.params)?;
        let fixed = subject.recipe.fixed_params(&subject.params);
        let given = subject.params.iter().chain(&fixed).map(|(name, value)| (name.clone(), *value)).collect();
        let params = drawn(&kernels, &given);
        if params != self.params {
            self.applied.iter_mut().for_each(|applied| (applied.told, applied.json) = (None, None));
            self.params = params;
        }
        let mut states: Vec<StepState> = Vec::with_capacity(self.applied.len() + 1);
        for number in 0..self.applied.len() {
            states.push(self.tell(subject, number)?);
        }
        if let (Some((step, error)), Some(last)) = (refusal, states.last().cloned()) {
            let state = labelled(last, step)?;
            let label = if step.is_some() { state.label.clone() } else { error.operation.clone() };
            let refusal = Some(refused(&error));
            states.push(StepState { label, refusal, proved: Vec::new(), keeps: None, ..state });
        }
        let names = states.iter().filter_map(|state| state.primitive.as_deref());
        let primitives = names.filter_map(|name| steps().row(name)).map(|row| {
            let shared = [PLACEMENT, STORAGE];
            let obligations = row.obligations.iter().chain(&shared).map(|o| (o.id(), o.says())).collect();
            (row.name, Primitive { summary: row.summary, obligations })
        });
        Ok(Exploration {
            schema: "explore/1",
            version: env!("CARGO_PKG_VERSION"),
            title: subject.title.clone(),
            command: subject.command.clone(),
            primitives: primitives.collect(),
            params: self.params.clone(),
            steps: states,
            performance: None,
            left_out: Vec::new(),
        })
    }

    /// What [`explore`](Self::explore) finds, as the text of JSON: `about` is an [`Exploration`] without its
    /// steps, which come after it. Those that stay as they were are not written again.
    ///
    /// # Errors
    /// As [`Exploration::of`].
    pub fn json(&mut self, subject: &Subject<'_>) -> Result<String, ExploreError> {
        let explored = self.explore(subject)?;
        let mut steps = Vec::with_capacity(explored.steps.len());
        for (number, state) in explored.steps.iter().enumerate() {
            steps.push(match self.applied.get_mut(number) {
                Some(Applied { json: Some(known), .. }) => known.clone(),
                Some(applied) => applied.json.insert(serde_json::to_string(state)?).clone(),
                None => serde_json::to_string(state)?, // the step that is refused
            });
        }
        let about = serde_json::to_string(&Exploration { steps: Vec::new(), ..explored })?;
        Ok(format!("{{\"about\":{about},\"steps\":[{}]}}", steps.join(",")))
    }

    /// Applies the steps as far as they go. Returns the one that stopped them, if it is one of the recipe,
    /// with its refusal.
    fn follow<'s>(&mut self, subject: &Subject<'s>) -> Option<(Option<&'s Step>, TransformError)> {
        let steps = &subject.recipe.steps;
        if self.applied.first().is_none_or(|first| first.known.kernel() != subject.kernel) {
            let known = Known::of(subject.kernel.clone());
            self.applied = vec![Applied::new(None, known, Vec::new())];
        }
        let mine = self.applied.iter().skip(1).map(|applied| applied.step.as_ref());
        let same = mine.zip(steps).take_while(|(own, step)| *own == Some(*step)).count();
        self.applied.truncate(1 + same);
        for step in &steps[same..] {
            let applied = self.applied.last().map(|met| step.apply_and_tell(&met.known.analysis()));
            match applied {
                Some(Ok((known, _, proved))) => {
                    self.applied.push(Applied::new(Some(step.clone()), known, proved));
                }
                Some(Err(error)) => return Some((Some(step), error)),
                None => {}
            }
        }
        subject.behind.map(|error| (None, error.clone()))
    }

    /// What the page says of the kernel after a step, once that of those before it is known.
    fn tell(&mut self, subject: &Subject<'_>, number: usize) -> Result<StepState, ExploreError> {
        let applied = &self.applied[number];
        if let Some((state, _)) = &applied.told {
            return Ok(state.clone());
        }
        let before = number.checked_sub(1).map(|k| &self.applied[k]);
        let told = before.and_then(|before| Some((before, before.told.as_ref()?)));
        let analysis = applied.known.analysis();
        let origins = match (&applied.step, told) {
            (Some(step), Some((met, (_, origins)))) => origins.after(step, &met.known.analysis(), &analysis),
            _ => Origins::as_written(subject.kernel),
        };
        let asked = Asked { params: &self.params, compiler: subject.compiler };
        let before = told.map(|(met, (state, _))| (met.known.kernel(), state));
        let mut state = state(&analysis, applied.step.as_ref(), before, &asked, number)?;
        state.proved.clone_from(&applied.proved);
        let params = &state.kernel.params;
        state.kernel.insns.iter_mut().for_each(|s| s.origin = origins.of(s, params));
        self.applied[number].told = Some((state.clone(), origins));
        Ok(state)
    }
}
