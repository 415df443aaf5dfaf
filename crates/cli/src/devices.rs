//! `kingpost devices`: where kernels can run here.

use super::failure::Failure;
use super::out;
use super::progress::Progress;
use super::table::{figure, grouped, table};
use clap::Args;
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Cache, DeviceInfo, devices, measure_ceilings, open};

/// List the devices of this machine, and what is missing for others
#[derive(Args)]
#[command(after_help = "\
`opencl` is the first device of OpenCL. pocl is numbered last: Intel's runtime is faster.
Intel's is found where pip puts it (`pip install intel-opencl-rt intel-cmplr-lib-rt`):
in the active environment, or `.venv` here or above, unless OCL_ICD_VENDORS is set.

Examples:
  kingpost devices
  kingpost devices --ceilings       memory bandwidth and arithmetic, measured (kept for a day)")]
pub struct DevicesArgs {
    /// Measure memory bandwidth, FP64 rate and local-memory bandwidth of each device
    #[arg(long)]
    ceilings: bool,
    /// Measure again, whatever was measured before
    #[arg(long, requires = "ceilings")]
    remeasure: bool,
}

/// Runs the command.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let entries = devices();
    let found: Vec<DeviceInfo> = entries.iter().filter_map(|e| e.device.clone().ok()).collect();
    let rows = found.iter().map(|d| {
        let clock = if d.clock_mhz == 0 { "?".into() } else { d.clock_mhz.to_string() };
        let local = grouped(d.local_mem_bytes >> 10);
        let fp64 = if d.fp64 { "yes" } else { "no" };
        [
            d.selector(),
            d.name.clone(),
            d.compute_units.to_string(),
            clock,
            local,
            fp64.into(),
            d.driver.clone(),
        ]
    });
    let header = ["device", "name", "units", "MHz", "local kB", "FP64", "driver"];
    out(&table(header, rows))?;
    for entry in &entries {
        if let Err(reason) = &entry.device {
            out(&format!("{}: not here: {reason}\n", entry.backend))?;
        }
    }
    match nvrtc::version() {
        Ok(version) => out(&format!("CUDA source compiles here without a GPU: {version}\n"))?,
        Err(reason) => out(&format!("CUDA source does not compile here: {reason}\n"))?,
    }
    if args.ceilings { ceilings(&found, args.remeasure) } else { Ok(()) }
}

fn ceilings(found: &[DeviceInfo], remeasure: bool) -> Result<(), Failure> {
    let progress = Progress::new();
    let cache = Cache::from_environment();
    let mut rows = Vec::new();
    for info in found.iter().filter(|d| d.fp64) {
        progress.stage(format!("measuring {}", info.selector()));
        let device = open(&info.selector())?;
        let c = measure_ceilings(&*device, &cache, remeasure)?;
        let giga = |x: f64| figure(x / 1e9);
        let local = c.local_bytes_per_s.map_or_else(|| "-".into(), giga);
        rows.push([info.selector(), giga(c.dram_bytes_per_s), giga(c.fp64_flops_per_s), local]);
    }
    drop(progress);
    out(&table(["device", "memory GB/s", "FP64 GFLOP/s", "local memory GB/s"], rows))
}
