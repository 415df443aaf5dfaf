//! The transformations a command applies before it does its work.

use super::failure::Failure;
use super::source::{Source, read};
use clap::{Args, ValueEnum};
use purlin::Strategy;
use purlin::autotune::Parameters;
use purlin::ir::Kernel;
use purlin::transforms::Recipe;
use std::path::{Path, PathBuf};

/// A strategy, a mapping or a recipe.
#[derive(Args, Clone)]
pub struct TransformArgs {
    /// Strategy that maps the kernel onto a device [default: none for files and to analyse, else single-cell]
    #[arg(long, value_enum, conflicts_with = "recipe")]
    pub strategy: Option<StrategyName>,
    /// Mapping to apply instead of a strategy, as the records of `purlin tune` have it in JSON:
    /// '{"strategy":"staged_cells","cells":64,"constant_tables":true}'
    #[arg(long, value_name = "JSON", value_parser = mapping, conflicts_with_all = ["recipe", "strategy"])]
    pub mapping: Option<Parameters>,
    /// Recipe to apply instead of a strategy: a JSON file such as `purlin recipe laplace` prints
    #[arg(long, value_name = "FILE")]
    pub recipe: Option<PathBuf>,
}

/// Strategies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StrategyName {
    /// As it is written, in order
    None,
    /// One cell a work-item, 32 cells a work-group
    SingleCell,
}

impl From<StrategyName> for Strategy {
    fn from(name: StrategyName) -> Self {
        match name {
            StrategyName::None => Self::None,
            StrategyName::SingleCell => Self::SingleCell,
        }
    }
}

/// A kernel and how it came to be.
pub struct Transformed {
    /// The result.
    pub kernel: Kernel,
    /// Every step.
    pub recipe: Recipe,
    /// The strategy, the mapping or the recipe's file, as in `strategy single-cell`.
    pub name: String,
}

impl TransformArgs {
    /// Whether the user asked for a transformation.
    pub fn is_given(&self) -> bool {
        self.strategy.is_some() || self.mapping.is_some() || self.recipe.is_some()
    }

    /// The strategy for a source.
    pub fn strategy_for(&self, source: &Source) -> Strategy {
        match (self.strategy, source) {
            (Some(name), _) => name.into(),
            (None, Source::Form(_)) => Strategy::SingleCell,
            (None, Source::File(_)) => Strategy::None,
        }
    }

    /// Applies the recipe, or else the mapping, or else the strategy.
    pub fn apply(&self, source: &Source, kernel: &Kernel) -> Result<Transformed, Failure> {
        if let Some(recipe) = self.read_recipe()? {
            let name = self.recipe.as_ref().map_or_else(String::new, |p| format!("recipe {}", p.display()));
            return Ok(Transformed { kernel: recipe.apply(kernel)?, recipe, name });
        }
        if let Some(mapping) = &self.mapping {
            let (kernel, recipe) = purlin::tuning::transform(kernel, mapping)?;
            return Ok(Transformed { kernel, recipe, name: format!("mapping {mapping}") });
        }
        let strategy = self.strategy_for(source);
        let (kernel, recipe) = strategy.apply(kernel)?;
        Ok(Transformed { kernel, recipe, name: format!("strategy {strategy}") })
    }

    /// The recipe of `--recipe`, if it was given.
    pub fn read_recipe(&self) -> Result<Option<Recipe>, Failure> {
        self.recipe.as_deref().map(read_recipe).transpose()
    }
}

/// A mapping from JSON.
pub fn mapping(text: &str) -> Result<Parameters, String> {
    let example = r#"{"strategy":"single_cell","cells":32}"#;
    serde_json::from_str(text).map_err(|e| {
        format!(
            "{e}; needed a mapping such as {example}; `purlin results --mapping` prints those that were best"
        )
    })
}

/// Reads a recipe from a JSON file.
pub fn read_recipe(path: &Path) -> Result<Recipe, Failure> {
    Recipe::from_json(&read(path)?).map_err(|error| Failure::Usage(format!("`{}`: {error}", path.display())))
}
