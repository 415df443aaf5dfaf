//! `kingpost explore`: what every step does, as one page to look around in.

use super::explore_live;
use super::explore_times::{performance, used};
use super::failure::Failure;
use super::out;
use super::source::{SourceArgs, is_file, is_json};
use super::table::grouped;
use super::text_file::read;
use super::transform::TransformArgs;
use super::values::ParamArg;
use clap::Args;
use kingpost::codegen::Program;
use kingpost::explore::{Compiler, Exploration, Subject, is_page, page};
use kingpost::files;
use std::path::{Path, PathBuf};

/// Write a page that shows what a kernel is after each step: dependences, iterations, sources
///
/// The page is one file that needs no server and no network. A step that is refused is its last, with
/// the two instances that clash.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost explore laplace --dim 2 --degree 1                     the single-cell strategy of a
                                                                form, as laplace.html
  kingpost explore my.kingpost -o page.html                       a file with its schedule
  kingpost explore my.kingpost --recipe mine.json -o my.html      your own steps on your own kernel
  kingpost explore my.kingpost --recipe mine.json --param n=70 -o my.html
                                                                the first picture with n = 70
  kingpost explore laplace --degree 4 --db tune-output/trials.jsonl --resources -o laplace.html
                                                                its trials, registers, spills
  kingpost explore --live my.kingpost                             an editor in the browser")]
pub struct ExploreArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// Value of a parameter, for counts and for the first picture; repeat it for each [default: small
    /// ones]
    #[arg(short, long, value_name = "NAME=VALUE")]
    param: Vec<ParamArg>,
    /// Show trials of the kernel, which `kingpost tune` wrote there, on the roofline
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// The device of the roofline: a model, as `kingpost space` has them, or a device of this machine [default:
    /// that of the fastest trial, else h200]
    #[arg(long)]
    device: Option<String>,
    /// Compile each CUDA source for an architecture (sm_90 if none is named), and show registers and
    /// spills; needs no card
    #[arg(long, value_name = "ARCH", num_args = 0..=1, require_equals = true, default_missing_value = "sm_90")]
    resources: Option<String>,
    /// File to write [default: the name of WHAT with `.html`, in this folder; a file that is there and is no such
    /// page stays]
    #[arg(long, short, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Serve the page on 127.0.0.1 with an editor of the file, and analyse what is typed; no code of the kernel
    /// runs, and the file stays as it is
    #[arg(long, conflicts_with_all = ["output", "recipe", "strategy", "mapping", "hole", "db", "device", "resources"])]
    live: bool,
    /// Port of --live [default: any that is free]
    #[arg(long, requires = "live")]
    port: Option<u16>,
}

impl ExploreArgs {
    /// Serves the page of a file until the command is stopped.
    fn live(&self) -> Result<(), Failure> {
        let what = &self.source.what;
        if !is_file(what) || is_json(what) || what.contains('#') {
            let message = format!(
                "--live edits a file of one kernel, which may end with its schedule, and `{what}` is none"
            );
            return Err(Failure::Usage(message));
        }
        explore_live::run(what, &ParamArg::collect(&self.param)?, self.port.unwrap_or(0)) // default: any that is free
    }

    /// The file to write.
    fn output(&self) -> Result<PathBuf, Failure> {
        if let Some(named) = &self.output {
            return Ok(named.clone());
        }
        let what = &self.source.what;
        let (file, kernel) =
            what.split_once('#').map_or((&**what, None), |(file, kernel)| (file, Some(kernel)));
        let of_name = || Failure::Usage(format!("`{what}` names no page; name one by `-o FILE.html`"));
        let stem = Path::new(file).file_stem().ok_or_else(of_name)?.to_string_lossy();
        let name = kernel.map_or_else(|| format!("{stem}.html"), |kernel| format!("{stem}-{kernel}.html"));
        if Path::new(&name).exists() && !read(Path::new(&name)).is_ok_and(|text| is_page(&text)) {
            let message =
                format!("`{name}` is there and is no page of this command; name another by `-o FILE.html`");
            return Err(Failure::Usage(message));
        }
        Ok(name.into())
    }
}

/// Runs the command.
pub fn run(args: &ExploreArgs) -> Result<(), Failure> {
    if args.live {
        return args.live();
    }
    let output = &args.output()?;
    let source = args.source.source()?;
    let lowered = source.lower()?;
    let (form, recipe, behind) = args.transform.recipe(&source, lowered)?;
    let given = args.source.given();
    let params: String = args.param.iter().map(|param| format!(" --param {param}")).collect();
    let command = format!("kingpost explore {given}{}{params}", args.transform.given_text());
    let compile =
        args.resources.as_deref().map(|architecture| move |program: &Program| used(architecture, program));
    let subject = Subject::new(given, form.kernel(), &recipe)
        .with_command(command)
        .with_refusal(behind.as_ref().map(|step| &step.source))
        .with_compiler(compile.as_ref().map(|compile| Compiler(compile)))
        .with_params(ParamArg::collect(&args.param)?);
    let mut explored = Exploration::of(&subject).map_err(|error| Failure::Usage(error.to_string()))?;
    explored.performance =
        Some(performance(args.db.as_deref(), args.device.as_deref(), form.kernel(), &explored)?);
    let page = page(&explored).map_err(|error| Failure::Refused(error.to_string()))?;
    files::write(output, &page).map_err(|error| Failure::of_write(output, &error))?;
    let (number, size) = (explored.steps.len() - 1, grouped(page.len().div_ceil(1024) as u64));
    out(&format!("wrote {}: {number} steps, {size} KiB\n", output.display()))?;
    let Some(last) = explored.steps.last() else { return Ok(()) };
    let Some(refusal) = &last.refusal else { return Ok(()) };
    let help = if refusal.help.is_empty() { String::new() } else { format!("; {}", refusal.help) };
    let id = refusal.obligation.map_or_else(String::new, |id| format!(" [{id}]"));
    let found = format!("step {number}: {}: {}{help}{id}", last.label, refusal.clash);
    Err(Failure::Refused(format!("{found}\n  help: `{}` shows it", output.display())))
}
