//! Tuning of the cases.

use clap::Args;
use kingpost::Mapping;
use kingpost::autotune::tuner::Ending;
use kingpost::tuning::{Candidate, CaseError, Choice, FormCase, candidates_in_order};
use kingpost_cli::{
    Failure, Found, Order, Progress, Scheme, TrialArgs, best_by, best_table, mapping_json, order_of, out,
    trials_table, write_pictures,
};
use study_kulkarni_klockner_2025::case::Case;
use study_kulkarni_klockner_2025::judge::{CASES, DRAW_SEED, TOP, study_table};

/// Which cases, on which meshes.
#[derive(Args)]
pub struct CaseArgs {
    /// Components of names, such as laplace, 3D.P4 or mass.2D; `published` for all 70
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cases: Vec<String>,
    /// Quadrature rules
    #[arg(long, value_enum, default_value_t = Scheme::XiaoGimbutas)]
    scheme: Scheme,
    /// Divisions of each side of the unit square or cube [default: 1280 or 56, as published]
    #[arg(long, value_name = "N")]
    cells: Option<usize>,
    /// Order of the degrees of freedom [default: by-dimension]
    #[arg(long, value_enum, value_name = "ORDER")]
    numbering: Option<Order>,
}

/// Arguments of `tune`.
#[derive(Args)]
pub struct TuneArgs {
    #[command(flatten)]
    cases: CaseArgs,
    #[command(flatten)]
    trials: TrialArgs,
}

/// Arguments of `draw`.
#[derive(Args)]
pub struct DrawArgs {
    #[command(flatten)]
    cases: CaseArgs,
    #[command(flatten)]
    trials: TrialArgs,
    /// Mappings of each case that are drawn at random
    #[arg(long, value_name = "N", default_value_t = 200, conflicts_with_all = ["budget", "mapping"])]
    draw: usize,
}

/// Tunes the 70 cases, or those that are named.
pub fn tune(args: &TuneArgs) -> Result<(), Failure> {
    let cases = args.cases.lowered(&["published"])?;
    let (budget, first) = (args.trials.budget, args.trials.first);
    let single = <[_; 1]>::try_from(cases.named).ok().map(|[case]| case);
    let found = args.trials.tune(cases.lowered, &|case, model, local_bytes| {
        candidates_in_order(case, model, local_bytes, budget, first)
            .map_err(|e| Failure::Usage(e.to_string()))
    })?;
    let Some(found) = found else { return Ok(()) };
    finish(&args.trials, args.cases.scheme, single, &found)?;
    found.end()
}

/// Tries the best ranked tilings and drawn ones of ten cases, or of those that are named.
pub fn draw(args: &DrawArgs) -> Result<(), Failure> {
    let cases = args.cases.lowered(&CASES)?;
    let single = <[_; 1]>::try_from(cases.named).ok().map(|[case]| case);
    let found = args.trials.tune(cases.lowered, &|case, model, local_bytes| {
        let mut candidates = vec![Candidate::unranked(Mapping::single_cell())];
        let choice = Choice::new(&case.lowered.kernel, case.workload.size, model, local_bytes);
        let choice = choice.map_err(|e| Failure::Usage(e.to_string()))?;
        candidates.extend(choice.ranked(TOP));
        let mut drawn = choice.drawn(args.draw, DRAW_SEED);
        drawn.retain(|new| candidates.iter().all(|c| c.parameters != new.parameters));
        candidates.extend(drawn);
        Ok(candidates)
    })?;
    let Some(found) = found else { return Ok(()) };
    let ended = finish(&args.trials, args.cases.scheme, single, &found);
    out(&study_table(&found.records))?;
    ended.and_then(|()| found.end())
}

/// Cases with their names.
struct Chosen {
    named: Vec<Case>,
    lowered: Vec<FormCase>,
}

impl CaseArgs {
    fn lowered(&self, default: &[&str]) -> Result<Chosen, Failure> {
        let parts: Vec<&str> = self.cases.iter().map(String::as_str).collect();
        let named = Case::named(if parts.is_empty() { default } else { &parts });
        let named = named.map_err(|e| Failure::Usage(e.to_string()))?;
        let progress = Progress::new();
        progress.stage("lowering");
        let divisions = |case: &Case| self.cells.unwrap_or_else(|| case.published_subdivisions());
        let order = order_of(self.numbering);
        let lowered = |case: &Case| Ok(case.lowered(self.scheme.into(), divisions(case))?.in_order(order));
        let lowered = named.iter().map(lowered);
        let lowered = lowered.collect::<Result<Vec<_>, CaseError>>()?;
        Ok(Chosen { named, lowered })
    }
}

/// Shows what the database holds of the cases.
fn finish(trials: &TrialArgs, scheme: Scheme, single: Option<Case>, found: &Found) -> Result<(), Failure> {
    let Found { ending, records, target, .. } = found;
    let best = best_by(records, trials.objective)?;
    if single.is_some() {
        out(&trials_table(records, trials.objective))?;
    }
    out(&best_table(&best, records))?;
    let Some(first) = best.first() else {
        return match ending {
            Ending::Complete => Err(Failure::Refused("no mapping is right; the table says why".into())),
            Ending::Stopped { .. } | Ending::DeviceLost { .. } => Ok(()),
        };
    };
    out(&write_pictures(&best, &trials.db)?)?;
    let Some(Case { operator, dim, degree }) = single else { return Ok(()) };
    let mapping = mapping_json(first)?;
    out(&format!(
        "its source: kingpost print {operator} --dim {dim} --degree {degree} --scheme {scheme} --target {target} --mapping '{mapping}'\n"
    ))
}
