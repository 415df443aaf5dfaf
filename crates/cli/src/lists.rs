//! `kingpost form`, `kingpost recipe` and `kingpost primitives`.

use super::failure::Failure;
use super::out;
use super::print::kernel_text;
use super::source::{FormOptions, Source, SourceArgs};
use super::table::facts;
use super::transform::TransformArgs;
use clap::Args;
use kingpost::forms::import::Imported;
use kingpost::forms::tabulated::IntegralType;
use kingpost::ir::text::suggestion;
use kingpost::transforms::{PrimitiveInfo, schedule, steps};
use serde_json::Value;

/// Show a form: the integrand, its space, its quadrature
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost form hyperelasticity --dim 3 --degree 2
  kingpost form laplace --cell hexahedron
  kingpost form bp5
  kingpost form poisson.json                 a form of UFL, as `python -m kingpost export` writes it")]
pub struct FormArgs {
    /// A form by name (mass, helmholtz, laplace, elasticity, hyperelasticity), the sparse matrix of
    /// one (mass-matrix), a bake-off problem on hexahedra (bp1 to bp6; screened: bp30, bp35), or
    /// the .json file of an exported form
    #[arg(value_name = "FORM")]
    what: String,
    #[command(flatten)]
    options: FormOptions,
}

/// Print the recipe of a strategy: a file to edit and to give to --recipe
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost recipe laplace > mine.json
  kingpost steps laplace --recipe mine.json --diff
  kingpost recipe laplace --text                 the same as the text of a schedule, a step a line
  kingpost recipe laplace --recipe mine.json --start > start.kingpost
                                               the kernel that its steps start from

A mapping may lower the form again, such as `orbits` and `rules`; the recipe then says so, and goes
with the form. Of a kernel's text it takes that of --start.")]
pub struct RecipeArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// Print the text of a schedule instead of JSON
    #[arg(long)]
    text: bool,
    /// Print the kernel that the steps start from instead of the steps
    #[arg(long, conflicts_with = "text")]
    start: bool,
}

/// List the primitives that recipes are made of, or explain one
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost primitives
  kingpost primitives split_iname              what it does, what it proves, its arguments
  kingpost primitives split_iname --schema     the JSON schema of its arguments")]
pub struct PrimitivesArgs {
    /// One of them, by the name that recipes use
    name: Option<String>,
    /// Print the JSON schema of the arguments
    #[arg(long, requires = "name")]
    schema: bool,
}

/// Shows a form.
pub fn form(args: &FormArgs) -> Result<(), Failure> {
    let source = match args.options.source(&args.what)? {
        Source::Form(source) => source,
        Source::File(file) => {
            let of = file.form.ok_or_else(|| {
                let message =
                    format!("`{0}` is a kernel and no form; `kingpost print {0}` shows it", args.what);
                Failure::Usage(message)
            })?;
            let form = args.options.by_tables(&args.what)?.map(|named| named.form.to_string());
            return out(&facts(tabulated(&of.form, form)));
        }
    };
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

/// What is known of a form that is lowered by way of its tables, and its text where it has one.
fn tabulated(imported: &Imported, text: Option<String>) -> Vec<(&'static str, String)> {
    let form = &imported.form;
    let lines = |lines: Vec<String>| lines.join("\n");
    let spaces = form.spaces.iter().map(|space| match space.description.as_str() {
        "" => space.name.clone(),
        description => format!("{}: {description}", space.name),
    });
    let quadrature = form.integrals.iter().map(|integral| {
        let degree = integral.degree.filter(|d| *d >= 0).map_or(String::new(), |d| format!("degree {d}, "));
        let entity = match integral.over {
            IntegralType::Cell => "cell",
            IntegralType::ExteriorFacet => "exterior facet",
            IntegralType::InteriorFacet => "interior facet",
        };
        format!("{degree}{} points of each {entity}", integral.weights.len())
    });
    let kernels = imported.kernels.iter().map(|k| {
        format!("{}, {} instructions, hash {}", k.kernel.name, k.kernel.insns.len(), k.kernel.content_hash())
    });
    let mut rows: Vec<_> = text.map(|text| ("form", text)).into_iter().collect();
    rows.extend([
        ("cells", form.cell.to_string()),
        ("spaces", lines(spaces.collect())),
        ("quadrature", lines(quadrature.collect())),
        ("kernels", lines(kernels.collect())),
    ]);
    rows
}

/// Prints a recipe.
pub fn recipe(args: &RecipeArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    if args.start {
        let (form, _, behind) = args.transform.recipe(&source, source.lower()?)?;
        return behind.map_or_else(|| out(&kernel_text(form.kernel(), false)), |step| Err(step.into()));
    }
    let recipe = args.transform.apply(&source, &*source.lower()?)?.recipe;
    if args.text {
        return out(&schedule::print(&recipe));
    }
    let json = recipe.to_json().map_err(|e| Failure::Refused(e.to_string()))?;
    out(&(json + "\n"))
}

/// Lists the primitives, or explains one.
pub fn primitives(args: &PrimitivesArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let rows: Vec<_> = steps().rows().map(|p| (p.name, p.summary)).collect();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        return out(&rows.iter().map(|(name, what)| format!("{name:width$}  {what}\n")).collect::<String>());
    };
    let info = steps().row(name).ok_or_else(|| {
        let near = suggestion(name, steps().rows().map(|p| p.name));
        let hint = near.unwrap_or_else(|| "`kingpost primitives` lists them".into());
        Failure::Usage(format!("there is no primitive `{name}`; {hint}"))
    })?;
    let schema = (info.schema)();
    if args.schema {
        let text = serde_json::to_string_pretty(&schema).map_err(|e| Failure::Refused(e.to_string()))?;
        return out(&(text + "\n"));
    }
    out(&explained(info, schema.as_value()))
}

/// The documentation of a primitive, its obligations and its arguments.
fn explained(info: &PrimitiveInfo, schema: &Value) -> String {
    let text =
        |value: &Value| value.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut page = format!("{}\n\n{}\n", info.name, text(schema));
    page += "\n# Obligations\n";
    for obligation in info.obligations {
        page += &format!("{}\n    {}\n", obligation.id(), obligation.says());
    }
    page += "\n# Arguments\n";
    let required: Vec<&str> = match schema.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    for (name, argument) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let optional = if required.contains(&name.as_str()) { "" } else { " (optional)" };
        page += &format!("{name}{optional}\n    {}\n", text(argument));
    }
    page
}
