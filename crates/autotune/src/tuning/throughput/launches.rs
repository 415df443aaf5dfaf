//! Seconds of a program of any number of launches, also of those with few groups.

use super::model::LAUNCH;
use super::{Demand, Maps, ThroughputModel};
use kingpost_codegen::plan::HostExprError;
use kingpost_codegen::{Code, HostStep, LaunchPlan, Program};
use kingpost_interp::Memory;

/// Seconds from one launch of a sequence to the next.
const NEXT: f64 = 2.5e-6;

/// Cycles that a work-item waits for a read of global memory, of which some are under way at a time;
/// for a result of arithmetic, a quotient or a root, an operation on integers, a barrier.
const READ: f64 = 60.0;
const ARITHMETIC: f64 = 8.0;
const FUNCTION: f64 = 60.0;
const INTEGER: f64 = 2.0;
const BARRIER: f64 = 40.0;

/// Predicts what a program takes on a card, with the sizes and integers of a memory.
///
/// Loops of the host are walked at their first, middle and last value, which is exact where times are
/// polynomials of degree three in it. A launch with few groups leaves units idle, and takes as long as a
/// work-item waits for its own results.
///
/// # Shapes and units
/// `codes` are those of [`program_and_codes`](kingpost_codegen::PlacedKernel::program_and_codes). The
/// result is in seconds.
///
/// # Errors
/// A size without a value, or beyond 64 bits.
pub fn predicted(
    program: &Program,
    codes: &[Code],
    memory: &Memory,
    model: &ThroughputModel<'_>,
) -> Result<f64, HostExprError> {
    let mut maps = Maps::of(memory);
    match &program.launches {
        None => {
            let seconds = codes.iter().map(|code| launch(code, &program.plan, &maps, model));
            Ok(LAUNCH + seconds.sum::<Result<f64, _>>()?)
        }
        Some(sequence) => {
            let mut of = |entry: usize, maps: &Maps| match (sequence.entries.get(entry), codes.get(entry)) {
                (Some(entry), Some(code)) => Ok(NEXT + launch(code, &entry.plan, maps, model)?),
                _ => Ok(0.0),
            };
            steps(&sequence.steps, &mut maps, &mut of)
        }
    }
}

fn steps(
    all: &[HostStep],
    maps: &mut Maps,
    of: &mut dyn FnMut(usize, &Maps) -> Result<f64, HostExprError>,
) -> Result<f64, HostExprError> {
    let mut sum = 0.0;
    for step in all {
        sum += match step {
            HostStep::Launch(entry) => of(*entry, maps)?,
            HostStep::For { name, lower, upper, body } => {
                let (lower, upper) = (lower.eval(&maps.params)?, upper.eval(&maps.params)?);
                if lower >= upper {
                    continue;
                }
                let mut at = |value: i64| {
                    maps.params.insert(name.clone(), value);
                    steps(body, maps, of)
                };
                let (first, last) = (at(lower)?, at(upper - 1)?);
                let middle = at(lower + (upper - 1 - lower) / 2)?;
                maps.params.remove(name);
                (upper - lower) as f64 * (first + 4.0 * middle + last) / 6.0
            }
        };
    }
    Ok(sum)
}

/// Seconds of a launch, without those that any takes.
fn launch(
    code: &Code,
    plan: &LaunchPlan,
    maps: &Maps,
    model: &ThroughputModel<'_>,
) -> Result<f64, HostExprError> {
    let demand = Demand::of(code, plan, maps, 1.0, &samples)?;
    if demand.groups < 1.0 {
        return Ok(0.0);
    }
    let t = &demand.traffic;
    let units = model.units();
    let busy = demand.groups / (units * (demand.groups / units).ceil());
    let sub_groups = demand.groups * t.sub_groups.max(1) as f64;
    let waits = READ * (t.reads.instructions + t.reductions.instructions)
        + ARITHMETIC * t.arithmetic
        + FUNCTION * t.functions
        + INTEGER * t.integer
        + BARRIER * t.barriers;
    let rounds = (sub_groups / (units * model.resident(&demand))).ceil().max(1.0);
    let chain = rounds * waits / sub_groups / model.clock();
    let verdict = model.verdict(&demand);
    let spilled = if verdict.spills { 4.0 } else { 1.0 };
    Ok(spilled * ((verdict.seconds - LAUNCH) / busy).max(chain))
}

/// Groups that stand for all: at a quarter and three quarters of each axis, so that some are on each side
/// of a diagonal.
fn samples(grid: [i64; 3]) -> Vec<[i64; 3]> {
    let mut all = vec![[0; 3]];
    for (axis, extent) in grid.into_iter().enumerate() {
        let mut places = vec![extent / 4, 3 * extent / 4];
        places.dedup();
        let at = |place: &i64| {
            let place = *place;
            all.iter().map(move |group: &[i64; 3]| {
                let mut group = *group;
                group[axis] = place;
                group
            })
        };
        all = places.iter().flat_map(at).collect();
    }
    all
}
