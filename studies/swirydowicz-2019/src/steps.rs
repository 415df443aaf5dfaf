//! A sequence of kernels, step by step: what each recipe adds to the one before, and the gain.

use crate::problem::Sizes;
use crate::recipes::{self, RecipeError, Tuned};
use crate::record::{Outcome, Record};
use crate::stale::sources;
use kingpost::transforms::schedule;
use kingpost_cli::{line_diff, seconds};

/// Characters of a line.
const WIDTH: usize = 110;

/// Where a sequence was timed.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Problem, degree and precision.
    pub sizes: Sizes,
    /// Elements.
    pub elements: usize,
}

/// The kernels in their order: its idea, its time and gain among `records`, and the lines of its
/// recipe that the one before does not have (`+`), or that only that one has (`-`).
///
/// A time is shown only of the source that is generated now, by its hash.
///
/// # Errors
/// Steps that are refused, which is a bug.
pub fn steps(kernels: &[Tuned], launch: Launch, records: &[Record]) -> Result<String, RecipeError> {
    let Sizes { degree, precision, .. } = launch.sizes;
    let mut text = String::new();
    let (mut before, mut recipe_before) = (None::<(Tuned, f64)>, String::new());
    let mut first = None;
    for kernel in kernels {
        text += &format!("# {kernel}: {}\n", kernel.idea());
        let launches = match kernel.launches_in(degree, precision) {
            Ok(launches) => launches,
            Err(e @ (RecipeError::TooManyWorkItems { .. } | RecipeError::OtherLines { .. })) => {
                text += &format!("# {e}\n\n");
                continue;
            }
            Err(e @ (RecipeError::Refused { .. } | RecipeError::Plain { .. })) => return Err(e),
        };
        let timed = timed(*kernel, launch, &launches, records);
        text += &match &timed {
            Err(why) => format!("# {why}\n"),
            Ok(Timed { seconds: s, streaming, device }) => {
                let start = *first.get_or_insert(*s);
                let gain = before.map_or_else(String::new, |(other, then)| {
                    format!("; {:.2} times as fast as {other}, {:.2} times as the first", then / s, start / s)
                });
                format!("# {}, {streaming:.2} of streaming{gain} ({device})\n", seconds(*s))
            }
        };
        if let Ok(timed) = timed {
            before = Some((*kernel, timed.seconds));
        }
        let recipe = printed(&launches);
        let changed: String =
            line_diff(&recipe_before, &recipe).lines().map(|l| format!("{}\n", clipped(l))).collect();
        text += if changed.is_empty() { "  the steps of the kernel before\n" } else { &changed };
        text += "\n";
        recipe_before = recipe;
    }
    Ok(text)
}

/// The recipes of all launches, each after its number where there are several.
fn printed(launches: &[recipes::Launch]) -> String {
    let one = |(k, launch): (usize, &recipes::Launch)| {
        let number = if launches.len() > 1 {
            format!("launch {} of {}:\n", k + 1, launches.len())
        } else {
            String::new()
        };
        number + &schedule::print(launch.schedule.recipe())
    };
    launches.iter().enumerate().map(one).collect()
}

/// A line without the end of a long one, such as the entries of a matrix.
fn clipped(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_owned(),
    }
}

struct Timed<'r> {
    seconds: f64,
    streaming: f64,
    device: &'r str,
}

/// The record of the source that a schedule gives now, or why there is none.
fn timed<'r>(
    kernel: Tuned,
    launch: Launch,
    launches: &[recipes::Launch],
    records: &'r [Record],
) -> Result<Timed<'r>, String> {
    let Sizes { degree, precision, .. } = launch.sizes;
    let name = kernel.to_string();
    let is_it = |r: &&Record| {
        r.kernel == name && (r.degree, r.precision, r.elements) == (degree, precision, launch.elements)
    };
    let found: Vec<&Record> = records.iter().filter(is_it).collect();
    let Some(last) = found.last() else { return Err("not timed".into()) };
    if let Outcome::Refused(why) = &last.outcome {
        return Err(format!("not timed: {why}"));
    }
    let now = sources(launches);
    let timed = found.iter().rev().find_map(|r| match &r.outcome {
        Outcome::Measured { median_s, copy_s, .. } if now.contains(&r.source) => {
            Some(Timed { seconds: *median_s, streaming: copy_s / median_s, device: &r.device })
        }
        Outcome::Measured { .. } | Outcome::Refused(_) => None,
    });
    timed.ok_or_else(|| "not timed: the records are of another source; `time` makes new ones".into())
}
