//! The facts of the analyses: `facts/ANALYSIS/*.txt`.
//!
//! | question | answer |
//! |---|---|
//! | `placement` | the barriers and slices that the tags need, or `refused: ` and the message |
//! | `dependences` | the relations between instances, one a line |
//! | `graph` | the graph of instructions and dependences, for Graphviz |
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

use kingpost_analysis::Analysis;
use kingpost_analysis::deps::{show_dependences, to_dot};
use kingpost_analysis::placement::{Placement, Scope};
use kingpost_facts::{Answers, Fact};
use kingpost_ir::Kernel;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    kingpost_facts::main(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts")), answer)
}

fn answer(fact: &Fact) -> Result<Answers, String> {
    let text = &fact.kernel.text;
    let kernel = kingpost_ir::text::parse(text).map_err(|e| e.render(text))?;
    let analysis = Analysis::of(&kernel);
    let mut found = Answers { kernel: Some(kernel.to_string()), answers: Vec::new() };
    for question in &fact.questions {
        found.answers.push(match question.text.as_str() {
            "placement" => match analysis.place() {
                Err(error) => format!("refused: {error}"),
                Ok(placement) => placed(&kernel, placement),
            },
            "dependences" => show_dependences(&kernel, &analysis.dependence_graph().unwrap()).unwrap(),
            "graph" => to_dot(&kernel, &analysis.dependence_graph().unwrap()),
            other => return Err(format!("`{other}` is no question")),
        });
    }
    Ok(found)
}

fn placed(kernel: &Kernel, placement: &Placement) -> String {
    let mut shown = Vec::new();
    if placement.barriers.is_empty() {
        shown.push("no barrier".to_owned());
    }
    for b in &placement.barriers {
        let [source, sink] = [b.source, b.sink].map(|i| &kernel.insns[i].name);
        let carrier = b.carrier.map_or("in the text".to_owned(), |l| {
            format!("from one `{}` to a later one", kernel.inames[l].name)
        });
        let scope = match b.scope {
            Scope::WorkItem => " of a work-item",
            Scope::SubGroup => " of a sub-group",
            Scope::Group => "",
        };
        shown.push(format!("barrier{scope}: {source}, {sink} for `{}` {carrier}", kernel.vars[b.var].name));
    }
    for (var, sliced) in kernel.vars.values().zip(&placement.sliced) {
        if sliced.contains(&true) {
            shown.push(format!("slices of `{}`: {sliced:?}", var.name));
        }
    }
    shown.join("\n")
}
