//! The kernel after a step of a schedule.

use crate::document::Document;
use serde_json::{Value, json};

/// The command that shows a kernel, which is the client's.
const SHOW: &str = "kingpost.showKernel";
/// The command that gives a kernel.
pub const KERNEL_AFTER: &str = "kingpost.kernelAfter";

/// A lens for each step that is legal.
pub fn lenses(document: &Document, uri: &str) -> Vec<Value> {
    let sections = document.sections.iter().enumerate();
    let steps =
        sections.flat_map(|(k, section)| section.applied.iter().enumerate().map(move |step| (k, step)));
    let lens = |(section, (step, applied)): (usize, (usize, &kingpost_primitives::schedule::AppliedStep))| {
        let arguments = json!([{"uri": uri, "section": section, "step": step}]);
        json!({
            "range": document.lines.range(&document.text, &applied.span),
            "command": {"title": "after this step", "command": SHOW, "arguments": arguments},
        })
    };
    steps.map(lens).collect()
}

/// The kernel before and after a step.
pub fn kernel_after(document: &Document, argument: &Value) -> Option<Value> {
    let number =
        |name: &str| argument.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let section = document.sections.get(number("section")?)?;
    let step = section.applied.get(number("step")?)?;
    let before = section.before(step.span.start).0?;
    Some(json!({"before": before.to_string(), "after": step.kernel.to_string()}))
}
