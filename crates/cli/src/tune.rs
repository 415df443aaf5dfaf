//! `kingpost tune`: the fastest mapping of a form's action, or the best values for the holes of a
//! schedule.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::results::{best_by, best_table, mapping_json, trials_table, write_pictures};
use super::source::{FormSource, Scheme, Source};
use super::trial_args::Found;
use super::tune_args::TuneArgs;
use super::tune_file;
use kingpost::autotune::tuner::Ending;
use kingpost::tuning::{FormCase, candidates_in_order};

/// Runs the command.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    match args.form.source(&args.what)? {
        Source::File(file) => tune_file::run(args, &args.what, *file),
        Source::Form(form) => tune_form(args, &form),
    }
}

fn tune_form(args: &TuneArgs, form: &FormSource) -> Result<(), Failure> {
    args.inputs.refuse_values_of_form()?;
    let progress = Progress::new();
    progress.stage("reading the mesh");
    let mesh = args.mesh(form.dim)?;
    progress.stage("lowering the form");
    let name = form.operator.action_name(form.dim, form.degree);
    let case = FormCase::new(name, form.lower()?, mesh)?.in_order(args.inputs.order());
    if !args.trials.compile_only {
        case.check_size()?;
    }
    drop(progress);
    let (budget, first) = (args.trials.budget, args.trials.first);
    let found = args.trials.tune(vec![case], &|case, model, local_bytes| {
        candidates_in_order(case, model, local_bytes, budget, first)
            .map_err(|e| Failure::Usage(e.to_string()))
    })?;
    let Some(found) = found else { return Ok(()) };
    finish(args, form, &found)?;
    found.end()
}

/// Shows what the database holds of the form.
fn finish(args: &TuneArgs, form: &FormSource, found: &Found) -> Result<(), Failure> {
    let Found { ending, records, target, .. } = found;
    let best = best_by(records, args.trials.objective)?;
    out(&trials_table(records, args.trials.objective))?;
    out(&best_table(&best, records))?;
    let Some(first) = best.first() else {
        return match ending {
            Ending::Complete => Err(Failure::Refused("no mapping is right; the table says why".into())),
            Ending::Stopped { .. } | Ending::DeviceLost { .. } => Ok(()),
        };
    };
    out(&write_pictures(&best, &args.trials.db)?)?;
    let FormSource { operator, dim, degree, scheme } = form;
    let scheme = match scheme {
        Scheme::XiaoGimbutas => " --scheme xiao-gimbutas",
        Scheme::Default => "",
    };
    let mapping = mapping_json(first)?;
    out(&format!(
        "its source: kingpost print {operator} --dim {dim} --degree {degree}{scheme} --target {target} --mapping '{mapping}'\n"
    ))
}
