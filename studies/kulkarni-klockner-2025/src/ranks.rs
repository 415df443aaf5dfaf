//! The published tilings in their spaces.

use clap::Args;
use kingpost::tuning::CostModel;
use kingpost_cli::{Failure, Progress, SpaceBounds, find_device, grouped, out};
use study_kulkarni_klockner_2025::tilings::{PublishedError, published_tilings};

/// Arguments of `ranks`.
#[derive(Args)]
pub struct RanksArgs {
    /// A device by its model (h200, h200_nvl, titan_v, k40c, ...) or a device of this machine (c,
    /// opencl, cuda)
    #[arg(long, default_value = "titan_v")]
    device: String,
    #[command(flatten)]
    bounds: SpaceBounds,
}

/// Prints the tilings of Tables 5 and 7 in their spaces, as Markdown.
pub fn run(args: &RanksArgs) -> Result<(), Failure> {
    let progress = Progress::new();
    let device = find_device(&args.device, &progress)?;
    let model = CostModel::new(&device).map_err(|e| Failure::Usage(e.to_string()))?;
    let bounds = args.bounds.of(&device);
    let refused = |e: PublishedError| Failure::Refused(e.to_string());
    let header =
        ["case", "published tiling", "points", "candidates", "faster", "equal", "rank", "time over best"];
    let mut text = format!("| {} |\n|---|---|{}\n", header.join(" | "), "---:|".repeat(header.len() - 2));
    let (mut count, mut top) = (0_usize, 0_usize);
    for tiling in published_tilings().map_err(refused)? {
        progress.stage(format!("ranking {}", tiling.case));
        let rank = tiling.rank(&model, &bounds).map_err(refused)?;
        count += 1;
        top += usize::from(rank.in_space && rank.share_faster() <= 0.1);
        let place = format!("{:.3} %", 100.0 * rank.share_faster());
        let row = [
            tiling.case.to_string(),
            tiling.parameters.to_string(),
            tiling.points.to_string(),
            grouped(rank.standing.of),
            grouped(rank.standing.faster),
            grouped(rank.standing.equal),
            if rank.in_space { place } else { "not in the space".into() },
            format!("{:.3}", rank.over_best),
        ];
        text += &format!("| {} |\n", row.join(" | "));
    }
    let share = 100.0 * top as f64 / count.max(1) as f64;
    let name = &model.device().name;
    text += &format!(
        "\n{top} of {count} tilings ({share:.0} %) are in the top decile of their space on {name}.\n"
    );
    drop(progress);
    out(&text)
}
