//! Recipes: steps that can be saved, diffed, replayed and shown one after the other.

use crate::lists::Definition;
use crate::refusal::TransformError;
use crate::step::Step;
use kingpost_analysis::{Analysis, Known};
use kingpost_ir::Kernel;
use std::collections::BTreeMap;
use std::fmt;

pub mod json;
mod lowering;

pub use lowering::StartsFrom;
pub use lowering::{Lowering, LoweringSyntaxError};

/// The steps that were, or are to be, applied to a kernel.
///
/// As JSON it says the version of the format: `{"kingpost_recipe": 1, "steps": […]}`. A file without
/// a version, or that is only the list of steps, is read as version 1. Version 2 also has
/// `"lowering": […]`, and is written where a recipe has any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// What the form is lowered with to give the kernel that the steps start from. None of a kernel
    /// that is no form's, or of a form as it is lowered by default.
    pub lowering: Vec<Lowering>,
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A step that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {number} of {total}: {source}{}", StartsFrom(.lowering))]
pub struct RecipeError {
    /// What the form is lowered with that the recipe starts from.
    pub lowering: Vec<Lowering>,
    /// Number of the step, from 1.
    pub number: usize,
    /// Number of steps.
    pub total: usize,
    /// The step.
    pub step: Box<Step>,
    /// The kernel it met.
    pub kernel: Box<Kernel>,
    /// Why it was not applied.
    pub source: Box<TransformError>,
}

/// Text that is no recipe.
#[derive(Debug, thiserror::Error)]
#[error(
    "not a recipe: {0}; a recipe is JSON such as {{\"kingpost_recipe\": 1, \"steps\": [{{\"split_iname\": {{\"iname\": \"cell\", \"factor\": 32}}}}]}}"
)]
pub struct RecipeSyntaxError(#[from] serde_json::Error);

/// The parameters that steps give a value for good, and the values; `given` are values of others,
/// which expressions may need.
pub fn fixed_params<'s>(
    steps: impl DoubleEndedIterator<Item = &'s Step>,
    given: &BTreeMap<String, i64>,
) -> BTreeMap<String, i64> {
    let mut fixed: BTreeMap<String, i64> = BTreeMap::new();
    // an expression is of parameters that later steps may fix; of two steps the second one is
    // refused
    for step in steps.rev() {
        if let Some((param, value)) = step.fixes(&|name| fixed.get(name).or_else(|| given.get(name)).copied())
        {
            let param = param.to_owned();
            fixed.insert(param, value);
        }
    }
    fixed
}

impl Recipe {
    /// A recipe of these steps.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { lowering: Vec::new(), steps: steps.into_iter().collect() }
    }

    /// These steps, and then those of another recipe. The start is that of the first step.
    #[must_use]
    pub fn followed_by(mut self, rest: Self) -> Self {
        if self.steps.is_empty() && self.lowering.is_empty() {
            self.lowering = rest.lowering;
        }
        self.steps.extend(rest.steps);
        self
    }

    /// The parameters that its steps give a value for good, and the values; `given` are values of
    /// other parameters, without which those of expressions are not known.
    #[must_use]
    pub fn fixed_params(&self, given: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
        fixed_params(self.steps.iter(), given)
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Applies every step in order.
    ///
    /// # Errors
    /// The first step that fails, with the kernel it met.
    pub fn apply(&self, kernel: &Kernel) -> Result<Kernel, RecipeError> {
        let mut met: Option<Known> = None;
        for k in 0..self.steps.len() {
            let analysis = met.as_ref().map_or_else(|| Analysis::of(kernel), Known::analysis);
            met = Some(self.step(k, &analysis)?);
        }
        Ok(met.map_or_else(|| kernel.clone(), Known::into_kernel))
    }

    /// The kernel after each step.
    ///
    /// # Errors
    /// The first step that fails, with the kernel it met.
    pub fn trace(&self, kernel: &Kernel) -> Result<Vec<(Step, Kernel)>, RecipeError> {
        let mut trace: Vec<(Step, Kernel)> = Vec::with_capacity(self.steps.len());
        for (k, step) in self.steps.iter().enumerate() {
            let met = trace.last().map_or(kernel, |(_, result)| result);
            trace.push((step.clone(), self.step(k, &Analysis::of(met))?.into_kernel()));
        }
        Ok(trace)
    }

    /// The kernels that compute what steps pass (`pass_values`), in the order in which they have to
    /// run; most recipes have none. Their results, by name, are inputs of the kernel that the
    /// recipe makes of `kernel`.
    ///
    /// # Errors
    /// The first step that fails, with the kernel it met.
    pub fn definitions(&self, kernel: &Kernel) -> Result<Vec<Definition>, RecipeError> {
        let Some(last) = self.steps.iter().rposition(Step::defines) else { return Ok(Vec::new()) };
        let (mut found, mut met) = (Vec::new(), Known::after(&Analysis::of(kernel), kernel.clone()));
        for (k, step) in self.steps[..=last].iter().enumerate() {
            let analysis = met.analysis();
            let definition = step.definition(analysis.kernel());
            found.extend(definition.map_err(|source| self.failed(k, &analysis, source))?);
            met = self.step(k, &met.analysis())?;
        }
        Ok(found)
    }

    /// The kernel that it met after the `k`-th step.
    fn step(&self, k: usize, met: &Analysis) -> Result<Known, RecipeError> {
        self.steps[k].apply_to(met).map(|(after, _)| after).map_err(|source| self.failed(k, met, source))
    }

    fn failed(&self, k: usize, met: &Analysis, source: TransformError) -> RecipeError {
        RecipeError {
            lowering: self.lowering.clone(),
            number: k + 1,
            total: self.steps.len(),
            step: Box::new(self.steps[k].clone()),
            kernel: Box::new(met.kernel().clone()),
            source: Box::new(source),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for lowering in &self.lowering {
            writeln!(f, "lowering {lowering}")?;
        }
        for (k, step) in self.steps.iter().enumerate() {
            writeln!(f, "{}. {step}", k + 1)?;
        }
        Ok(())
    }
}
