//! What is explored, and why it cannot be.

use crate::performance::Compiler;
use kingpost_ir::{Kernel, VarKind};
use kingpost_primitives::{Recipe, TransformError};
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
    /// What tells registers and spills of CUDA sources.
    pub compiler: Option<Compiler<'a>>,
}

impl<'a> Subject<'a> {
    /// A kernel and a recipe.
    pub fn new(title: impl Into<String>, kernel: &'a Kernel, recipe: &'a Recipe) -> Self {
        let title = title.into();
        let (command, params) = (String::new(), BTreeMap::new());
        Self { title, command, kernel, recipe, behind: None, params, compiler: None }
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

    /// With registers and spills of CUDA sources by a compiler.
    #[must_use]
    pub fn with_compiler(self, compiler: Option<Compiler<'a>>) -> Self {
        Self { compiler, ..self }
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

pub(crate) fn check_params(kernels: &[&Kernel], given: &BTreeMap<String, i64>) -> Result<(), ExploreError> {
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
