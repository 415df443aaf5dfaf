//! What the page says of the kernel after a step.

use crate::changes::{Keyed, change};
use crate::counts::counts;
use crate::data::{KernelState, StepState};
use crate::dependences::dependences;
use crate::sources::{Asked, sources};
use crate::statements::{arrays, statements};
use crate::subject::ExploreError;
use crate::text::Text;
use kingpost_analysis::Analysis;
use kingpost_ir::{AxisTag, Kernel, VarKind};
use kingpost_primitives::Step;

/// The kernel after a step.
pub(crate) fn state(
    analysis: &Analysis,
    step: Option<&Step>,
    before: Option<(&Kernel, &StepState)>,
    asked: &Asked<'_>,
    number: usize,
) -> Result<StepState, ExploreError> {
    let kernel = analysis.kernel();
    let text = Text::of(kernel);
    let was = before.map(|(_, state)| state);
    let (deps, deps_error) = match before {
        Some((old, state)) if same_but_for_tags(old, kernel) => {
            (state.deps.clone(), state.deps_error.clone())
        }
        Some(_) | None => match dependences(analysis) {
            Ok(found) => (found, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        },
    };
    let params_of = kernel.vars.values().filter(|var| var.kind == VarKind::Param);
    let state = StepState {
        label: String::new(),
        primitive: None,
        args: serde_json::Value::Null,
        proved: Vec::new(),
        keeps: None,
        refusal: None,
        kernel: KernelState {
            text: change(
                was.map(|state| Keyed { text: &state.kernel.text, keys: &[] }),
                &text.text,
                &[],
                number,
            ),
            hash: kernel.content_hash(),
            params: params_of.map(|var| var.name.clone()).collect(),
            arrays: arrays(kernel),
            insns: statements(analysis, &text),
        },
        deps,
        deps_error,
        without_relations: false,
        sources: sources(analysis, was.map(|state| (&state.kernel, &state.sources)), asked, number),
        counts: counts(analysis, asked.params),
    };
    labelled(state, step)
}

/// A state under the name of its step.
pub(crate) fn labelled(state: StepState, step: Option<&Step>) -> Result<StepState, ExploreError> {
    let Some(step) = step else { return Ok(StepState { label: String::new(), primitive: None, ..state }) };
    // `{"split_iname": {…}}`
    let args = serde_json::to_value(step)?.get(step.name()).cloned().unwrap_or(serde_json::Value::Null);
    let keeps = Some(step.keeps().to_string());
    Ok(StepState { label: step.to_string(), keeps, primitive: Some(step.name().to_owned()), args, ..state })
}

/// Whether two kernels have the same dependences, because they differ in the tags of loops alone.
fn same_but_for_tags(a: &Kernel, b: &Kernel) -> bool {
    let plain = |kernel: &Kernel| {
        let mut kernel = kernel.clone();
        kernel.inames.values_mut().for_each(|iname| iname.tag = AxisTag::Sequential);
        kernel
    };
    plain(a) == plain(b)
}
