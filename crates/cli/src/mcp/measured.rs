//! Tools that ask a device or its model. They change nothing, so that a dialogue can be replayed without them.

use super::super::failure::Failure;
use super::super::inputs::{Wanted, inputs};
use super::super::run_args::open_device;
use super::super::values::ParamArg;
use super::answer::{Answer, Wrong, to_json};
use super::arguments::{Auto, Run, Tune};
use super::server::{Bench, Server, nothing_loaded};
use kingpost::auto::{AutoError, Judge, Platform, Trial, expected, schedule};
use kingpost::autotune::{Limit, Shares, Work, kernel_work};
use kingpost::codegen::Options;
use kingpost::explore::Session;
use kingpost::ir::Kernel;
use kingpost::judge::with_tables;
use kingpost::runtime::{Cache, DeviceModel, measure_ceilings};
use kingpost::set_up_with;
use kingpost::transforms::schedule::{Choice, print};
use kingpost::transforms::{Recipe, Script, steps};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Schedules that are timed, if nothing else is asked for: as many as by `kingpost auto`.
const SCHEDULES: usize = 10;
/// Values of holes that are timed, if nothing else is asked for.
const CHOICES: usize = 20;

impl Server {
    /// The device and the inputs that are asked for; those of the last call if they are the same.
    fn bench(&mut self, asked: &Run) -> Result<(&Session, &mut Bench), Wrong> {
        let Self { subject, bench } = self;
        let subject = subject.as_ref().ok_or_else(nothing_loaded)?;
        let (session, written) = (&subject.session, subject.session.written());
        let bench = match bench.take() {
            Some(kept) if kept.asked == *asked && kept.written == *written => bench.insert(kept),
            Some(_) | None => bench.insert(Bench::open(asked, session)?),
        };
        Ok((session, bench))
    }
}

impl Bench {
    fn open(asked: &Run, session: &Session) -> Result<Self, Wrong> {
        let device = open_device(asked.device.as_deref())?;
        let param = ParamArg::of(&asked.params);
        let fixed = session.recipe().fixed_params(&asked.params);
        let wanted = Wanted { cells: asked.cells, param: &param, fixed, ..Wanted::default() };
        let seed = asked.seed.unwrap_or(1); // default: the same inputs for every step
        let memory = inputs(&wanted, session.written(), seed)?.memory;
        Ok(Self { asked: asked.clone(), written: session.written().clone(), device, memory, expected: None })
    }

    /// What runs of kernels are held against; found out once.
    fn expected(&mut self) -> Result<(), Wrong> {
        if self.expected.is_none() {
            self.expected = Some(expected(&self.written, &self.memory).map_err(failed)?);
        }
        Ok(())
    }

    /// Seconds of a kernel that steps made of the one that is written.
    fn seconds(&self, kernel: &Kernel, recipe: &Recipe) -> Result<f64, String> {
        let Some(expected) = &self.expected else {
            return Err("bug of kingpost: nothing to compare with".into());
        };
        let mut memory = with_tables(&self.written, kernel, &self.memory).into_owned();
        let definitions = recipe.definitions(&self.written).map_err(|e| e.to_string())?;
        set_up_with(&*self.device, &definitions, &mut memory, &Options::default())
            .map_err(|e| e.to_string())?;
        Judge { kernel: &self.written, device: &*self.device, memory: &memory, expected }.seconds(kernel)
    }

    fn ceilings(&self) -> Result<DeviceModel, Wrong> {
        Ok(measure_ceilings(&*self.device, &Cache::from_environment(), false).map_err(Failure::from)?)
    }

    /// How near some seconds of a kernel come to the roofline; nothing where its work cannot be counted.
    fn roofline(&self, kernel: &Kernel, seconds: Option<f64>) -> Answer {
        let params = self.memory.params();
        let Ok(work) = kernel_work(&self.written, params) else { return Ok(Value::Null) };
        let model = self.ceilings()?;
        let executed = kernel_work(kernel, params).ok().map(|work| work.flops);
        let shares = seconds.map(|seconds| work.shares(executed, seconds, &model));
        Ok(of_roofline(&work, &model, shares))
    }
}

fn of_roofline(work: &Work, model: &DeviceModel, shares: Option<Shares>) -> Value {
    let memory_s = work.dram_bytes as f64 / model.dram_bytes_per_s;
    let arithmetic_s = work.flops as f64 / model.fp64_flops_per_s;
    let limit = if memory_s > arithmetic_s { Limit::Dram } else { Limit::Fp64 };
    json!({
        "flops": work.flops,
        "bytes": work.dram_bytes,
        "seconds": memory_s.max(arithmetic_s),
        "limit": limit.to_string(),
        "part": shares.map(|shares| shares.useful.part),
        "why_above": shares.and_then(|shares| shares.useful.why_above),
    })
}

fn failed(error: AutoError) -> Wrong {
    Failure::from(error).into()
}

/// What the cost model predicts.
pub fn predict(server: &mut Server, given: Run) -> Answer {
    let (session, bench) = server.bench(&given)?;
    let info = bench.device.info();
    let platform = Platform::of(info).map_err(|e| failed(e.into()))?;
    let kernel = session.kernel();
    let memory = with_tables(&bench.written, kernel, &bench.memory);
    let found = platform.predict(kernel, &memory, info.clock_mhz).map_err(|e| Wrong::new("refused", e))?;
    Ok(json!({ "prediction": to_json(&found)?, "roofline": bench.roofline(kernel, found.seconds)? }))
}

/// Runs, compares and times.
pub fn time(server: &mut Server, given: Run) -> Answer {
    let (session, bench) = server.bench(&given)?;
    bench.expected()?;
    let seconds = bench.seconds(session.kernel(), session.recipe()).map_err(|e| Wrong::new("refused", e))?;
    let info = bench.device.info();
    Ok(json!({
        "seconds": seconds,
        "device": info.name,
        "selector": info.selector(),
        "roofline": bench.roofline(session.kernel(), Some(seconds))?,
    }))
}

/// Finds schedules.
pub fn auto(server: &mut Server, given: Auto) -> Answer {
    let (session, bench) = server.bench(&given.run)?;
    let kernel = session.kernel();
    let memory = with_tables(&bench.written, kernel, &bench.memory);
    let budget = given.budget.unwrap_or(SCHEDULES).max(1);
    let found = schedule(kernel, &*bench.device, &memory, budget, &mut |_| {}).map_err(failed)?;
    let one = |Trial { proposal, outcome }: &Trial| {
        json!({
            "name": proposal.name,
            "steps": print(&proposal.recipe),
            "seconds": outcome.as_ref().ok(),
            "refused": outcome.as_ref().err(),
        })
    };
    let best = &found.trials[found.best];
    Ok(json!({
        "seconds": best.outcome.as_ref().ok(),
        "steps": print(&best.proposal.recipe),
        "trials": found.trials.iter().map(one).collect::<Vec<_>>(),
    }))
}

/// Tries values for holes.
pub fn tune(server: &mut Server, given: Tune) -> Answer {
    let Tune { run, budget, steps: text } = given;
    let script = match text {
        Some(text) => steps().script(&text).map_err(|errors| Wrong::from(&errors))?,
        None => {
            let none =
                || Wrong::new("usage", "the loaded text has no schedule with holes; give one as `steps`");
            server.subject()?.script.clone().ok_or_else(none)?
        }
    };
    let (session, bench) = server.bench(&run)?;
    bench.expected()?;
    let (mut trials, mut best) = (Vec::new(), None::<(f64, BTreeMap<String, Value>, String)>);
    for choice in script.choices().take(budget.unwrap_or(CHOICES).max(1)) {
        let (steps, outcome) = tried(session, bench, &script, &choice);
        if let Ok(seconds) = outcome
            && best.as_ref().is_none_or(|(fastest, ..)| seconds < *fastest)
        {
            best = Some((seconds, choice.values().clone(), steps));
        }
        trials.push(json!({
            "holes": choice.values(),
            "seconds": outcome.as_ref().ok(),
            "refused": outcome.as_ref().err(),
        }));
    }
    Ok(json!({
        "seconds": best.as_ref().map(|(seconds, ..)| seconds),
        "holes": best.as_ref().map(|(_, holes, _)| holes),
        "steps": best.as_ref().map(|(.., steps)| steps),
        "trials": trials,
    }))
}

/// The steps of a choice, and seconds of what they make of the kernel as it is now.
fn tried(
    session: &Session,
    bench: &Bench,
    script: &Script,
    choice: &Choice,
) -> (String, Result<f64, String>) {
    let (mut next, before) = (session.clone(), session.recipe().steps.len());
    if let Err(refused) = next.apply(script, choice) {
        return (String::new(), Err(refused.message));
    }
    let steps = print(&Recipe::new(next.recipe().steps[before..].iter().cloned()));
    (steps, bench.seconds(next.kernel(), next.recipe()))
}
