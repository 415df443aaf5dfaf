//! The commands of the study; `--help` explains them.

mod predictions;
mod ranks;
mod trials;

use clap::{Args, Parser, Subcommand};
use kingpost::autotune::{Objective, best_of_each};
use kingpost::tuning::{Database, Record};
use kingpost_cli::{Failure, end, out, warn_of_damage};
use std::path::PathBuf;
use std::process::ExitCode;
use study_kulkarni_klockner_2025::judge::{study_page, study_table};
use study_kulkarni_klockner_2025::page::{beside_page, page};

/// As for `kingpost` itself, whose steps make and drop many small expressions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER: &str = "\
Examples, after `cargo study study-kulkarni-klockner-2025 --`:
  tune --device cuda --db h200.jsonl --time-limit 9m          the 70 actions
  tune --cases laplace.3D,mass.2D.P1 --device c --cells 6
  tune --compile-only --arch sm_90                            no GPU needed: fills the cache of compiled kernels
  draw --device cuda --db study.jsonl                         trials of drawn tilings beside the best ranked ones
  page --db results/h200/tuned.jsonl                          the page of the H200, as Markdown
  page --db results/h200/unstructured.jsonl --beside results/h200/tuned.jsonl
                                                              another mesh beside the unit meshes
  judge --db results/h200/study.jsonl --markdown              how good the ranking is
  predictions --db results/h200/tuned.jsonl                   how well the throughput model orders trials
  ranks --device titan_v                                      Tables 5 and 7

`kingpost results` shows the same databases as tables.";

/// The study of Kulkarni & Klöckner 2025: its cases tuned, and compared with what was published.
#[derive(Parser)]
#[command(name = "study-kulkarni-klockner-2025", version, after_help = AFTER, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tune cases: all 70, or those that --cases names
    Tune(trials::TuneArgs),
    /// Try the best ranked tilings beside ones drawn at random, to judge the ranking
    Draw(trials::DrawArgs),
    /// Print the page of a database: Markdown, every case beside its published time
    Page(PageArgs),
    /// Say how well the ranking did, of the records of `draw`
    Judge(JudgeArgs),
    /// Say how well the throughput model orders the trials of a database, as Markdown
    Predictions(predictions::PredictionArgs),
    /// Rank the published tilings (Tables 5 and 7) in their spaces, as Markdown
    Ranks(ranks::RanksArgs),
}

#[derive(Args)]
struct PageArgs {
    /// The database that `tune` wrote
    #[arg(long, value_name = "FILE", default_value = "tune-output/trials.jsonl")]
    db: PathBuf,
    /// Compare rates with those of another database, such as that of the unit meshes, instead of
    /// times with published ones
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
}

#[derive(Args)]
struct JudgeArgs {
    /// The database that `draw` wrote
    #[arg(long, value_name = "FILE", default_value = "tune-output/trials.jsonl")]
    db: PathBuf,
    /// A page in Markdown instead of a table
    #[arg(long)]
    markdown: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse(); // exits with 2 on a mistake
    end(match &cli.command {
        Command::Tune(args) => trials::tune(args),
        Command::Draw(args) => trials::draw(args),
        Command::Page(args) => print_page(args),
        Command::Judge(args) => judge(args),
        Command::Predictions(args) => records(&args.db).and_then(|r| predictions::run(args, &r)),
        Command::Ranks(args) => ranks::run(args),
    })
}

/// All records of a database that is there.
fn records(db: &PathBuf) -> Result<Vec<Record>, Failure> {
    if !db.exists() {
        return Err(Failure::Usage(format!("no database `{}`; `tune` and `draw` make one", db.display())));
    }
    let contents = Database::at(db).read()?;
    warn_of_damage(&contents, db);
    Ok(contents.records)
}

fn print_page(args: &PageArgs) -> Result<(), Failure> {
    let trials = records(&args.db)?;
    let best = best_of_each(&trials, Objective::Time);
    if let Some(beside) = &args.beside {
        let others = records(beside)?;
        return out(&beside_page(&best, &best_of_each(&others, Objective::Time)));
    }
    let page = page(&best, &trials);
    out(&page.map_err(|e| Failure::Usage(e.to_string()))?)
}

fn judge(args: &JudgeArgs) -> Result<(), Failure> {
    let records = records(&args.db)?;
    out(&if args.markdown { study_page(&records) } else { study_table(&records) })
}
