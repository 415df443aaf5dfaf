//! `kingpost space`: the tilings of a form, counted and ranked.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::source::SourceArgs;
use super::table::{figure, grouped, seconds, table};
use clap::Args;
use kingpost::autotune::{DeviceModel, known_devices};
use kingpost::forms::tiling::{TilingSizes, tiling_sizes};
use kingpost::runtime::{Cache, measure_ceilings, open};
use kingpost::tuning::{CostModel, Ranked, SearchBounds, SearchSpace, Survey};
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Count the multi-level tilings of a form, rank them by the cost model of Kulkarni & Klöckner
/// 2025, say what its constraints cut
///
/// Nothing is generated and nothing runs. Candidates of the same predicted time are ordered by
/// barriers, then by local memory.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost space laplace --dim 3 --degree 4                    on the model of an H200
  kingpost space hyperelasticity --dim 3 --degree 6 --device titan_v --best 3
  kingpost space mass --dim 2 --degree 5 --device opencl       on a device of this machine, measured
  kingpost space laplace --alias 0.5 --work-items 512 --json   a larger space, for scripts")]
pub struct SpaceArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// A device by its model (h200, h200_nvl, titan_v, k40c, xeon_2_cores_c, xeon_2_cores_opencl)
    /// or a device of this machine (c, opencl, cuda)
    #[arg(long, default_value = "h200")]
    device: String,
    /// How many of the best candidates to print
    #[arg(long, short, value_name = "B", default_value_t = 9)]
    best: usize,
    #[command(flatten)]
    bounds: SpaceBounds,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bounds of the space other than those of the device.
#[derive(Args)]
pub struct SpaceBounds {
    /// Minimum share of the prefetch buffer that the smallest tile fills (Constraint 2) [default:
    /// 0.8]
    #[arg(long, value_name = "PART", value_parser = share)]
    alias: Option<f64>,
    /// Minimum share of a work-group's lanes that are work-items (Constraint 3) [default: 0.97]
    #[arg(long, value_name = "PART", value_parser = share)]
    simd: Option<f64>,
    /// Maximum number of work-items of a work-group (Constraint 4) [default: 256]
    #[arg(long, value_name = "N")]
    work_items: Option<u64>,
    /// Maximum bytes of local memory of a work-group [default: what the device allows]
    #[arg(long, value_name = "BYTES")]
    local_bytes: Option<u64>,
}

fn share(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    found.ok_or_else(|| "needed a number from 0 to 1, such as 0.8".into())
}

/// What the command prints with --json.
#[derive(Serialize)]
struct Report<'a> {
    device: &'a DeviceModel,
    sizes: &'a TilingSizes,
    bounds: &'a SearchBounds,
    survey: &'a Survey,
    seconds: f64,
}

/// Runs the command.
pub fn run(args: &SpaceArgs) -> Result<(), Failure> {
    let progress = Progress::new();
    let device = find_device(&args.device, &progress)?;
    let model = CostModel::new(&device).map_err(|e| Failure::Usage(e.to_string()))?;
    let bounds = args.bounds.of(&device);
    progress.stage("lowering the form");
    let form = args.source.source()?.lower()?;
    let sizes = tiling_sizes(&*form).map_err(|e| Failure::Usage(e.to_string()))?;
    let start = Instant::now();
    let space = SearchSpace::new(sizes, bounds).map_err(|e| Failure::Usage(e.to_string()))?;
    let last = AtomicUsize::new(0);
    let survey = space.survey(&model, args.best, |done, all| {
        let percent = 100 * done / all.max(1);
        if last.fetch_max(percent, Relaxed) < percent {
            progress.stage(format!("ranking: {percent} %"));
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    drop(progress);
    if args.json {
        let report = Report {
            device: &device,
            sizes: space.sizes(),
            bounds: space.bounds(),
            survey: &survey,
            seconds,
        };
        let text = serde_json::to_string_pretty(&report).map_err(|e| Failure::Refused(e.to_string()))?;
        return out(&(text + "\n"));
    }
    out(&text(&form.kernel().name, &device, &space, &survey, seconds))
}

impl SpaceBounds {
    /// The bounds on a device.
    #[must_use]
    pub fn of(&self, device: &DeviceModel) -> SearchBounds {
        let own = device.occupancy.as_ref().map(SearchBounds::of).unwrap_or_default();
        SearchBounds {
            alias_efficiency: self.alias.unwrap_or(own.alias_efficiency),
            simd_efficiency: self.simd.unwrap_or(own.simd_efficiency),
            work_items: self.work_items.unwrap_or(own.work_items),
            local_bytes: self.local_bytes.unwrap_or(own.local_bytes),
            ..own
        }
    }
}

/// A model by its name, written in any way, or the measured model of a device of this machine.
///
/// # Errors
/// No such device.
pub fn find_device(name: &str, progress: &Progress) -> Result<DeviceModel, Failure> {
    let plain = |text: &str| {
        let kept = text.chars().filter(char::is_ascii_alphanumeric);
        kept.collect::<String>().to_lowercase().replace("tesla", "").replace("nvidia", "")
    };
    let mut models = known_devices().map_err(|e| Failure::Refused(e.to_string()))?;
    if let Some(place) = models.iter().position(|m| plain(&m.name) == plain(name)) {
        return Ok(models.swap_remove(place));
    }
    let device = open(name).map_err(|error| {
        let names: Vec<String> = models.iter().map(|m| format!("`{}`", model_name(&m.name))).collect();
        let failure = Failure::from(error);
        match failure {
            Failure::Usage(text) => Failure::Usage(format!("{text}; models: {}", names.join(", "))),
            other @ (Failure::Refused(_)
            | Failure::Compiler(_)
            | Failure::Missing(_)
            | Failure::Text { .. }
            | Failure::Interrupted(_)) => other,
        }
    })?;
    progress.stage("measuring the device's ceilings (kept for a day)");
    Ok(measure_ceilings(&*device, &Cache::from_environment(), false)?)
}

/// The name of a model as `--device` has it: `xeon_2_cores_c`.
fn model_name(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|w| !matches!(*w, "" | "tesla" | "nvidia")).collect::<Vec<_>>().join("_")
}

fn text(name: &str, device: &DeviceModel, space: &SearchSpace, survey: &Survey, elapsed: f64) -> String {
    let mut text = format!("{name} on {}\n{}\n", device.name, space.sizes());
    let cuts = survey.cuts.iter().map(|cut| {
        let kept = 100.0 * cut.after as f64 / cut.before.max(1) as f64;
        let (before, after) = (grouped(cut.before), grouped(cut.after));
        [cut.constraint.clone(), cut.of.clone(), before, after, format!("{} %", figure(kept))]
    });
    text += &table(["constraint", "of", "before", "after", "kept"], cuts);
    text +=
        &table(["tiling", "per cell", "barriers", "local bytes", "sub-groups"], survey.best.iter().map(row));
    if survey.best.is_empty() && survey.size == 0 {
        text += "no candidate is left; loosen --alias, --simd, --work-items or --local-bytes\n";
    }
    text + &format!("{} candidates, counted and ranked in {}\n", grouped(survey.size), seconds(elapsed))
}

fn row(ranked: &Ranked) -> [String; 5] {
    [
        ranked.parameters.to_string(),
        format!("{} ns", figure(ranked.seconds_per_cell * 1e9)),
        ranked.barriers.to_string(),
        grouped(ranked.local_bytes),
        figure(ranked.resident_sub_groups),
    ]
}
