//! `purlin form`, `purlin recipe` and `purlin primitives`.

use super::failure::Failure;
use super::out;
use super::source::{FormOptions, SourceArgs};
use super::table::facts;
use super::transform::TransformArgs;
use clap::Args;
use purlin::transforms::{primitives as primitive_table, schedule};

/// Show a form: the integrand, its space, its quadrature
#[derive(Args)]
#[command(after_help = "\
Examples:
  purlin form hyperelasticity --dim 3 --degree 2")]
pub struct FormArgs {
    /// A form by name: mass, helmholtz, laplace, elasticity, hyperelasticity
    #[arg(value_name = "FORM")]
    what: String,
    #[command(flatten)]
    options: FormOptions,
}

/// Print the recipe of a strategy: a file to edit and to give to --recipe
#[derive(Args)]
#[command(after_help = "\
Examples:
  purlin recipe laplace > mine.json
  purlin steps laplace --recipe mine.json --diff
  purlin recipe laplace --text                 the same as the text of a schedule, one step a line")]
pub struct RecipeArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// Print the text of a schedule instead of JSON
    #[arg(long)]
    text: bool,
}

/// List the primitives that recipes are made of
#[derive(Args)]
pub struct PrimitivesArgs {}

/// Shows a form.
pub fn form(args: &FormArgs) -> Result<(), Failure> {
    let source = args.options.form(&args.what)?;
    let lowered = source.lower()?;
    let points: Vec<String> = lowered.points.iter().map(usize::to_string).collect();
    let nodes: Vec<String> = lowered.nodes.iter().map(ToString::to_string).collect();
    let degrees = lowered.form.quadrature_degrees()?;
    let degrees: Vec<String> = degrees.iter().map(usize::to_string).collect();
    out(&facts([
        ("form", lowered.form.to_string()),
        ("result", lowered.test.to_string()),
        ("quadrature", format!("degree {}, {} points a cell", degrees.join(", "), points.join(", "))),
        ("nodes", nodes.join("\n")),
        ("instructions", lowered.kernel.insns.len().to_string()),
        ("kernel hash", lowered.kernel.content_hash()),
    ]))
}

/// Prints a recipe.
pub fn recipe(args: &RecipeArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    let recipe = args.transform.apply(&source, &source.lower()?)?.recipe;
    if args.text {
        return out(&schedule::print(&recipe));
    }
    let json = recipe.to_json().map_err(|e| Failure::Refused(e.to_string()))?;
    out(&(json + "\n"))
}

/// Lists the primitives.
pub fn primitives(args: &PrimitivesArgs) -> Result<(), Failure> {
    let PrimitivesArgs {} = args;
    let mut text = String::new();
    for p in primitive_table() {
        text += &format!("{}\n    {}\n    proved: {}\n", p.step_name(), p.summary, p.precondition);
    }
    out(&text)
}
