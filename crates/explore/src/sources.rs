//! Sources for every target, and how they are launched.

use crate::changes::{Keyed, change};
use crate::data::{Change, KernelState, Launch, Separated, Source};
use crate::performance::Compiler;
use kingpost_analysis::Analysis;
use kingpost_codegen::{LaunchPlan, Line, Options, PlacedKernel, Target};
use std::collections::BTreeMap;

/// What is the same for all kernels of a page.
pub(crate) struct Asked<'a> {
    pub(crate) params: &'a BTreeMap<String, i64>,
    pub(crate) compiler: Option<Compiler<'a>>,
}

/// The sources after a step, those of the step before with its kernel.
pub fn sources(
    analysis: &Analysis,
    before: Option<(&KernelState, &BTreeMap<&'static str, Source>)>,
    asked: &Asked<'_>,
    step: usize,
) -> BTreeMap<&'static str, Source> {
    let placed = PlacedKernel::of(analysis);
    let kernel = analysis.expanded();
    let places: BTreeMap<&str, usize> = kernel
        .schedule()
        .iter()
        .enumerate()
        .map(|(k, (id, _))| (kernel.insns[*id].name.as_str(), k))
        .collect();
    let one = |target: &Target| {
        let name = target.description().name;
        let program = placed.as_ref().map_err(ToString::to_string).and_then(|placed| {
            placed.program_and_lines(*target, &Options::default()).map_err(|error| error.to_string())
        });
        let source = match program {
            Ok((program, lines)) => {
                // after a step without a source all lines are new
                let old = before.and_then(|(kernel, all)| Some((kernel, all.get(name)?)));
                let old = old.filter(|(_, source)| !source.text.lines.is_empty());
                let keys: Option<Vec<_>> = old.map(|(kernel, source)| names(kernel, source));
                let old =
                    old.zip(keys.as_ref()).map(|((_, source), keys)| Keyed { text: &source.text, keys });
                let keys: Vec<_> = lines.iter().map(|line| line.insns.clone()).collect();
                let text = change(old, &program.source, &keys, step);
                let source = source(text, &lines, &places, launch(&program.plan, asked.params));
                match asked
                    .compiler
                    .filter(|_| *target == Target::Cuda)
                    .map(|Compiler(compile)| compile(&program))
                {
                    Some(Ok(used)) => Source { used, ..source },
                    Some(Err(error)) => Source { used_error: Some(error), ..source },
                    None => source,
                }
            }
            Err(error) => Source { error: Some(error), ..Source::default() },
        };
        (name, source)
    };
    Target::ALL.iter().map(one).collect()
}

/// The statements of each line of a source, by name.
fn names(kernel: &KernelState, source: &Source) -> Vec<Vec<String>> {
    let name = |k: &usize| kernel.insns[*k].name.clone();
    source.insns.iter().map(|line| line.iter().map(name).collect()).collect()
}

fn source(text: Change, lines: &[Line], places: &BTreeMap<&str, usize>, launch: Launch) -> Source {
    // what stands for a part of a statement, such as a field of a record, has no place of its own
    let placed = |names: &[String]| names.iter().filter_map(|n| places.get(n.as_str()).copied()).collect();
    let barrier = |(k, line): (usize, &Line)| {
        let separated = line.barrier.as_ref()?.iter().map(|s| Separated {
            source: s.source.clone(),
            sink: s.sink.clone(),
            var: s.var.clone(),
            carrier: s.carrier.clone(),
        });
        Some((k, separated.collect()))
    };
    Source {
        text,
        insns: lines.iter().map(|line| placed(&line.insns)).collect(),
        around: lines.iter().map(|line| placed(&line.around)).collect(),
        barriers: lines.iter().enumerate().filter_map(barrier).collect(),
        launch: Some(launch),
        ..Source::default()
    }
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
