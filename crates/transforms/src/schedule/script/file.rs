//! A file with a kernel and, behind it, its schedule.

use super::Script;
use crate::primitives::steps;
use purlin_ir::Kernel;
use purlin_ir::text::{ParseErrors, parse};

/// Reads a kernel and, behind a line `schedule`, the schedule that belongs to it.
///
/// ```
/// use purlin_transforms::schedule::parse_file;
///
/// let (kernel, script) = parse_file("kernel scale
/// param n: i32
/// arg y: f64[n] inout
///
/// for i in 0..n
///   s: y[i] = 2.0*y[i]
///
/// schedule
/// let block, item = split_iname(i, 128)
/// tag_iname(block, g.0)
/// tag_iname(item, l.0)
/// ")?;
/// let schedule = script.ok_or("a schedule")?.apply(&kernel)?;
/// assert_eq!(schedule.recipe().steps.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Everything wrong with the kernel, else with the schedule, each with its place in the file.
pub fn parse_file(text: &str) -> Result<(Kernel, Option<Script>), ParseErrors> {
    let Some((end, start)) = heading(text) else { return Ok((parse(text)?, None)) };
    let kernel = parse(&text[..end])?;
    Ok((kernel, Some(Script::parse_in(steps(), text, start)?)))
}

/// Where the line `schedule` begins, and where the one after it does.
fn heading(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.split_once('#').map_or(line, |(content, _)| content);
        if content.trim_end() == "schedule" {
            return Some((at, at + line.len()));
        }
        at += line.len();
    }
    None
}
