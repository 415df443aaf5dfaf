//! Sources for every target, and how they are launched.

use crate::changes::change;
use crate::data::{Launch, Source};
use kingpost_analysis::Analysis;
use kingpost_codegen::{LaunchPlan, Options, PlacedKernel, Target};
use std::collections::BTreeMap;

/// The sources after a step.
pub fn sources(
    analysis: &Analysis,
    before: Option<&BTreeMap<&'static str, Source>>,
    params: &BTreeMap<String, i64>,
    step: usize,
) -> BTreeMap<&'static str, Source> {
    let placed = PlacedKernel::of(analysis);
    let one = |target: &Target| {
        let name = target.description().name;
        // after a step without a source all lines are new
        let before = before.and_then(|all| all.get(name)).map(|source| &source.text);
        let program = placed.as_ref().map_err(ToString::to_string).and_then(|placed| {
            placed.generate(*target, &Options::default()).map_err(|error| error.to_string())
        });
        let source = match program {
            Ok(program) => Source {
                text: change(before.filter(|text| !text.lines.is_empty()), &program.source, step),
                error: None,
                launch: Some(launch(&program.plan, params)),
            },
            Err(error) => Source { text: crate::Change::default(), error: Some(error), launch: None },
        };
        (name, source)
    };
    Target::ALL.iter().map(one).collect()
}

fn launch(plan: &LaunchPlan, params: &BTreeMap<String, i64>) -> Launch {
    Launch {
        grid: plan.grid.iter().map(|extent| extent.eval(params).ok()).collect(),
        block: plan.block,
        local_bytes: plan.local_bytes,
        private_bytes: plan.private_bytes,
        notes: plan.notes.iter().map(ToString::to_string).collect(),
    }
}
