//! The transformations a command applies before it does its work.

use super::failure::Failure;
use super::source::Source;
use super::text_file::read;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kingpost::Mapping;
use kingpost::forms::CellKernel;
use kingpost::forms::Relowered;
use kingpost::forms::strategies::{
    FactorisedCells, RefusedStep, Sequential, SharingElimination, StrategyError,
};
use kingpost::forms::{Combinator, MappingError, relowered};
use kingpost::ir::Kernel;
use kingpost::transforms::lists::Definition;
use kingpost::transforms::schedule::{Choice, ScriptProblem};
use kingpost::transforms::steps;
use kingpost::transforms::{Lowering, Recipe, Script, ScriptError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A strategy, a mapping or a recipe.
#[derive(Args, Clone)]
pub struct TransformArgs {
    /// Strategy that maps the kernel onto a device [default: none for files and to analyse, the
    /// best known for `kingpost run`, else single-cell]
    #[arg(long, value_parser = strategies(), conflicts_with = "recipe")]
    pub strategy: Option<Mapping>,
    /// Mapping to apply instead of a strategy, as the records of `kingpost tune` have it in JSON:
    /// '{"strategy":"staged_cells","cells":64,"constant_tables":true}'
    #[arg(long, value_name = "JSON", value_parser = mapping, conflicts_with_all = ["recipe", "strategy"])]
    pub mapping: Option<Mapping>,
    /// Recipe to apply instead of a strategy: a file such as `kingpost recipe laplace` prints, in
    /// JSON or as the text of a schedule
    #[arg(long, value_name = "FILE")]
    pub recipe: Option<PathBuf>,
    /// Value for a hole of a schedule; repeat it for each
    #[arg(long, value_name = "NAME=VALUE", value_parser = hole)]
    pub hole: Vec<(String, String)>,
}

/// Mappings with names of their own, and what they do.
fn named() -> [(&'static str, &'static str, Mapping); 4] {
    [
        ("none", "As it is written, in order", Mapping::sequential()),
        ("single-cell", "One cell a work-item, 32 cells a work-group", Mapping::single_cell()),
        (
            "factorised",
            "One cell a work-item, sums of tensor products axis by axis",
            Mapping::from(FactorisedCells { cells: 8 }),
        ),
        (
            "sharing-elimination",
            "Fewer operations by expansion, factorisation and code motion, in order",
            SharingElimination {}.before(Sequential {}),
        ),
    ]
}

/// Reads the name of a mapping.
fn strategies() -> impl TypedValueParser<Value = Mapping> {
    let names = named().map(|(name, help, _)| PossibleValue::new(name).help(help));
    let of = |name: String| named().into_iter().find(|(n, _, _)| *n == name).map(|(_, _, m)| m);
    PossibleValuesParser::new(names).map(move |name| of(name).unwrap_or(Mapping::sequential()))
}

/// The name of a mapping that has one of its own.
fn strategy_name(mapping: &Mapping) -> &'static str {
    named().iter().find(|(_, _, m)| m == mapping).map_or("of another name", |(name, _, _)| *name)
}

/// The steps that a user gives.
enum Given<'s> {
    Recipe(Recipe),
    Script(Cow<'s, Script>),
}

/// A kernel and how it came to be.
pub struct Transformed {
    /// The result.
    pub kernel: Kernel,
    /// Every step.
    pub recipe: Recipe,
    /// The strategy, the mapping or the recipe's file, as in `strategy single-cell`.
    pub name: String,
    /// What computes the inputs that steps pass.
    pub definitions: Vec<Definition>,
}

impl TransformArgs {
    /// Whether the user asked for a transformation, or the file has a schedule.
    pub fn is_given_for(&self, source: &Source) -> bool {
        let scheduled = matches!(source, Source::File(file) if file.script.is_some());
        scheduled || self.strategy.is_some() || self.mapping.is_some() || self.recipe.is_some()
    }

    /// The strategy for a source.
    pub fn strategy_for(&self, source: &Source) -> Mapping {
        match (&self.strategy, source) {
            (Some(strategy), _) => strategy.clone(),
            (None, Source::Form(_)) => Mapping::single_cell(),
            (None, Source::File(file)) if file.form.is_some() => Mapping::single_cell(),
            (None, Source::File(_)) => Mapping::sequential(),
        }
    }

    /// Applies the recipe, or else the mapping, the strategy that is asked for, the schedule of the
    /// file, or else the usual strategy.
    pub fn apply(&self, source: &Source, form: &dyn CellKernel) -> Result<Transformed, Failure> {
        match self.given(source)? {
            Some(Given::Recipe(recipe)) => {
                let lowered = start(source, form, &recipe.lowering)?;
                let kernel = lowered.as_ref().map_or_else(|| form.kernel(), |lowered| lowered.kernel());
                let definitions = recipe.definitions(kernel)?;
                let kernel = recipe.apply(kernel)?;
                return Ok(Transformed { kernel, recipe, name: self.name_given(), definitions });
            }
            Some(Given::Script(script)) => {
                let lowered = start(source, form, script.lowering())?;
                let kernel = lowered.as_ref().map_or_else(|| form.kernel(), |lowered| lowered.kernel());
                let applied = script.apply_with(kernel, &self.choice(&script)?)?;
                let (transformed, recipe) = applied.finish();
                let definitions = recipe.definitions(kernel)?;
                let name = self.name_given();
                return Ok(Transformed { kernel: transformed, recipe, name, definitions });
            }
            None => {}
        }
        self.refuse_holes()?;
        if let Some(mapping) = &self.mapping {
            let (kernel, recipe, definitions) = kingpost::transform_with_setup(form, mapping)?;
            return Ok(Transformed { kernel, recipe, name: format!("mapping {mapping}"), definitions });
        }
        let strategy = self.strategy_for(source);
        let (kernel, recipe, definitions) = kingpost::transform_with_setup(form, &strategy)?;
        let name = format!("strategy {}", strategy_name(&strategy));
        Ok(Transformed { kernel, recipe, name, definitions })
    }

    /// [What a mapping decided](Mapping::decisions), a line each.
    pub fn decisions(&self, form: &dyn CellKernel) -> Result<Vec<String>, Failure> {
        let given = self.mapping.as_ref().or(self.strategy.as_ref());
        let decided = given.map_or_else(|| Ok(Vec::new()), |mapping| mapping.decisions(form));
        decided.map_err(Failure::from)
    }

    /// Refuses values of holes where there is no schedule.
    pub fn refuse_holes(&self) -> Result<(), Failure> {
        match self.hole.first() {
            Some((hole, _)) => Err(Failure::Usage(format!("--hole {hole}: there is no schedule with holes"))),
            None => Ok(()),
        }
    }

    /// The form that the steps start from, and the steps, also those after which a step of a strategy
    /// is refused, with that refusal.
    pub fn recipe(
        &self,
        source: &Source,
        form: Relowered,
    ) -> Result<(Relowered, Recipe, Option<Box<RefusedStep>>), Failure> {
        let from = |form: Relowered, lowering: &[Lowering]| -> Result<Relowered, Failure> {
            Ok(start(source, &*form, lowering)?.unwrap_or(form))
        };
        match self.given(source)? {
            Some(Given::Recipe(recipe)) => Ok((from(form, &recipe.lowering)?, recipe, None)),
            Some(Given::Script(script)) => {
                let form = from(form, script.lowering())?;
                match script.apply_with(form.kernel(), &self.choice(&script)?) {
                    Ok(schedule) => Ok((form, schedule.finish().1, None)),
                    Err(ScriptError { problem: ScriptProblem::Refused(_), recipe, .. }) => {
                        Ok((form, recipe, None))
                    }
                    Err(error) => Err(error.into()),
                }
            }
            None => {
                self.refuse_holes()?;
                let mapping = self.mapping.clone().unwrap_or_else(|| self.strategy_for(source));
                let (recipe, behind) = match mapping.apply(&*form) {
                    Ok((_, recipe)) => (recipe, None),
                    Err(MappingError::Strategy(StrategyError::Step(step))) => {
                        (step.recipe.clone(), Some(step))
                    }
                    Err(error) => return Err(error.into()),
                };
                Ok((from(form, &recipe.lowering)?, recipe, behind))
            }
        }
    }

    /// The steps of `--recipe`, or those after the kernel if nothing else is asked for.
    fn given<'s>(&self, source: &'s Source) -> Result<Option<Given<'s>>, Failure> {
        if let Some(path) = &self.recipe {
            return read_steps(path).map(Some);
        }
        let chosen = self.strategy.is_some() || self.mapping.is_some();
        let script = match source {
            Source::File(file) if !chosen => file.script.as_ref(),
            Source::File(_) | Source::Form(_) => None,
        };
        Ok(script.map(|script| Given::Script(Cow::Borrowed(script))))
    }

    /// The parameters that the recipe or the schedule gives a value, by those that are `given`: no option
    /// has to.
    pub fn fixed_params(
        &self,
        source: &Source,
        given: &BTreeMap<String, i64>,
    ) -> Result<BTreeMap<String, i64>, Failure> {
        Ok(match self.given(source)? {
            Some(Given::Recipe(recipe)) => recipe.fixed_params(given),
            Some(Given::Script(script)) => script.fixed_params(&self.choice(&script)?, given),
            None => BTreeMap::new(),
        })
    }

    fn name_given(&self) -> String {
        self.recipe.as_ref().map_or_else(|| "its schedule".into(), |p| format!("recipe {}", p.display()))
    }

    /// What was given, as a command line has it.
    pub fn given_text(&self) -> String {
        let strategy = self.strategy.as_ref().map(|s| format!(" --strategy {}", strategy_name(s)));
        let mapping = self.mapping.as_ref().map(|mapping| match serde_json::to_string(mapping) {
            Ok(json) => format!(" --mapping '{json}'"),
            Err(_) => format!(" --mapping '{mapping}'"),
        });
        let recipe = self.recipe.as_ref().map(|path| format!(" --recipe {}", path.display()));
        let holes = self.hole.iter().map(|(name, value)| format!(" --hole {name}={value}"));
        strategy.into_iter().chain(mapping).chain(recipe).chain(holes).collect()
    }

    /// The values of `--hole`.
    fn choice(&self, script: &Script) -> Result<Choice, Failure> {
        for (k, (name, _)) in self.hole.iter().enumerate() {
            if self.hole[..k].iter().any(|(other, _)| other == name) {
                return Err(Failure::Usage(format!("--hole {name}: given twice; leave one out")));
            }
        }
        let value = |(name, text): &(String, String)| Ok((name.clone(), script.value_of(name, text)?));
        let values: Result<Vec<_>, String> = self.hole.iter().map(value).collect();
        values.map(Choice::new).map_err(|message| Failure::Usage(format!("--hole: {message}")))
    }
}

/// The form as steps start from it, if it is lowered with something; a kernel that is no form's
/// stays as it is: steps are proved for what they meet.
pub fn start(
    source: &Source,
    form: &dyn CellKernel,
    lowering: &[Lowering],
) -> Result<Option<Relowered>, Failure> {
    match source {
        Source::File(file) if file.form.is_none() => Ok(None),
        Source::File(_) | Source::Form(_) => {
            relowered(form, lowering).map_err(|e| Failure::Refused(e.to_string()))
        }
    }
}

/// `tile=16`.
fn hole(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("needed a value, as in `tile=16`")?;
    Ok((name.trim().into(), value.trim().into()))
}

/// A mapping from JSON.
pub fn mapping(text: &str) -> Result<Mapping, String> {
    let example = r#"{"strategy":"single_cell","cells":32}"#;
    serde_json::from_str(text).map_err(|e| {
        format!(
            "{e}; needed a mapping such as {example}; `kingpost results --mapping` prints those that were best"
        )
    })
}

/// Reads steps: JSON if it begins with a brace or a bracket, else the text of a schedule.
fn read_steps<'s>(path: &Path) -> Result<Given<'s>, Failure> {
    let source = read(path)?;
    if source.trim_start().starts_with(['{', '[']) {
        let recipe = steps().recipe(&source);
        return recipe
            .map(Given::Recipe)
            .map_err(|error| Failure::Usage(format!("`{}`: {error}", path.display())));
    }
    match steps().script(&source) {
        Ok(script) => Ok(Given::Script(Cow::Owned(script))),
        Err(errors) => Err(Failure::Text { name: path.display().to_string(), source, errors }),
    }
}

/// Reads a recipe from a file, with the kernel that it starts from if a form or a kernel is named: the
/// handles of a schedule's text need it.
pub fn read_recipe(
    path: &Path,
    named: Option<(&Source, &dyn CellKernel)>,
) -> Result<(Recipe, Option<Kernel>), Failure> {
    let started = |lowering: &[Lowering]| -> Result<Option<Kernel>, Failure> {
        let Some((source, form)) = named else { return Ok(None) };
        let lowered = start(source, form, lowering)?;
        Ok(Some(lowered.map_or_else(|| form.kernel().clone(), |lowered| lowered.kernel().clone())))
    };
    match read_steps(path)? {
        Given::Recipe(recipe) => {
            let kernel = started(&recipe.lowering)?;
            Ok((recipe, kernel))
        }
        Given::Script(script) => match started(script.lowering())? {
            Some(kernel) => Ok((script.apply(&kernel)?.finish().1, Some(kernel))),
            None => Err(Failure::Usage(format!(
                "`{}` is the text of a schedule, whose steps depend on its kernel; name the kernel by --kernel",
                path.display()
            ))),
        },
    }
}
