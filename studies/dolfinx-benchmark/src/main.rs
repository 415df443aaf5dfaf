//! The command of the study; `--help` explains it.

use clap::Parser;
use kingpost::forms::tabulated::Precision;
use kingpost::runtime::{Device, open};
use kingpost::{Mapping, files};
use kingpost_cli::{Failure, end, out};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use study_dolfinx_benchmark::error::BenchmarkError;
use study_dolfinx_benchmark::operator::text;
use study_dolfinx_benchmark::part::How;
use study_dolfinx_benchmark::problem::{Discretisation, cells_for};
use study_dolfinx_benchmark::report::{Input, measure};
use study_dolfinx_benchmark::vectors::{TEXTS, in_precision};

/// As for `kingpost` itself, whose steps make and drop many small expressions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER: &str = "\
Examples, after `cargo study study-dolfinx-benchmark --`:
  --device cuda --degree 3 --ndofs 10000000 --cg --json Q3.json     conjugate gradients on a card
  --device cuda:0,cuda:1 --degree 6 --ndofs 10000000 --cg           on two cards, twice as many
  --device c --degree 3 --qmode 0 --nreps 1 --mat_comp              compared with the assembled matrix
  --degree 6 --mapping JSON --sources DIR                           the kernels, for `kingpost print`";

/// The DOLFINx benchmark of UKRI on one device or several: -div(2 grad u) = f on a box of hexahedra, zero on its boundary,
/// matrix-free. Options and JSON are those of the benchmark, with a device for each process.
#[derive(Parser)]
#[command(name = "study-dolfinx-benchmark", version, after_help = AFTER, max_term_width = 110)]
struct Cli {
    /// Where to run: cuda, opencl, c; several devices with commas between them
    #[arg(long, default_value = "cuda", value_delimiter = ',', required = false)]
    device: Vec<String>,
    /// Bits of a number: 32 or 64
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = ["32", "64"])]
    float: String,
    /// Number of degrees of freedom of each device, about
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    ndofs: u64,
    /// Number of degrees of freedom of all devices
    #[arg(long = "ndofs_global", value_name = "N", conflicts_with = "ndofs", value_parser = clap::value_parser!(u64).range(1..=2_000_000_000))]
    ndofs_global: Option<u64>,
    /// Quadrature: 0 has P+1 points in each direction, 1 has P+2
    #[arg(long, value_name = "MODE", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    qmode: u8,
    /// Time iterations of conjugate gradients rather than the action
    #[arg(long)]
    cg: bool,
    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    nreps: u32,
    /// Polynomial degree P
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=15))]
    degree: u8,
    /// Compare the result with that of the assembled matrix, which takes long with many degrees of freedom
    #[arg(long = "mat_comp")]
    mat_comp: bool,
    /// Move the points of the mesh at random along the first axis, by up to this many cells
    #[arg(long = "geom_perturb_fact", value_name = "X", default_value_t = 0.0)]
    geom_perturb_fact: f64,
    /// Gauss quadrature rather than Gauss–Lobatto–Legendre quadrature
    #[arg(long = "use_gauss")]
    use_gauss: bool,
    /// File for the JSON output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Mapping of the operator in JSON instead of the default one
    #[arg(long, value_name = "JSON", value_parser = mapping)]
    mapping: Option<Mapping>,
    /// Launch kernels and send messages one by one each time, rather than as graphs of a card
    #[arg(long)]
    unrecorded: bool,
    /// Run nothing, and write the kernels into this folder as texts, the operator by --mapping
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
}

fn mapping(text: &str) -> Result<Mapping, String> {
    serde_json::from_str(text).map_err(|e| format!("{e}; `kingpost results --mapping` prints mappings"))
}

fn main() -> ExitCode {
    let cli = Cli::parse(); // exits with 2 on a mistake
    end(run(&cli))
}

fn refused(error: BenchmarkError) -> Failure {
    Failure::Refused(error.to_string())
}

impl Cli {
    fn n_dofs(&self) -> usize {
        self.ndofs_global.unwrap_or(self.ndofs * self.device.len() as u64) as usize
    }

    fn discretisation(&self) -> Discretisation {
        let degree = usize::from(self.degree);
        Discretisation {
            cells: cells_for(self.n_dofs(), degree),
            degree,
            qmode: self.qmode.into(),
            use_gauss: self.use_gauss,
            perturbation: self.geom_perturb_fact,
            precision: if self.float == "32" { Precision::F32 } else { Precision::F64 },
        }
    }

    fn input(&self) -> Input {
        Input {
            p: self.degree.into(),
            mpi_size: self.device.len(),
            ndofs_local_requested: self.n_dofs() / self.device.len(),
            nreps: self.nreps as usize,
            scalar_size: if self.float == "32" { 32 } else { 64 },
            use_gauss: self.use_gauss,
            mat_comp: self.mat_comp,
            qmode: self.qmode.into(),
            cg: self.cg,
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    if !(0.0..=0.5).contains(&cli.geom_perturb_fact) {
        let found = cli.geom_perturb_fact;
        return Err(Failure::Usage(format!("--geom_perturb_fact: {found}; needed 0 to 0.5 of a cell")));
    }
    if let Some(folder) = &cli.sources {
        return write_sources(cli, folder);
    }
    let problem = cli.discretisation().problem().map_err(refused)?;
    let opened = cli.device.iter().map(|name| open(name)).collect::<Result<Vec<_>, _>>()?;
    let devices: Vec<&dyn Device> = opened.iter().map(|device| &**device).collect();
    let how = How { mapping: cli.mapping.as_ref(), is_recorded: !cli.unrecorded };
    let report = measure(&devices, &problem, cli.input(), &how).map_err(refused)?;
    let json = serde_json::to_string(&report).map_err(|e| Failure::Refused(e.to_string()))?;
    match &cli.json {
        Some(path) => files::write(path, json + "\n").map_err(|e| Failure::of_write(path, &e))?,
        None => out(&format!("{json}\n"))?,
    }
    report.judge().map_err(refused)
}

/// Writes what `kingpost print` takes: the action and the load by a mapping, and the kernels on vectors.
fn write_sources(cli: &Cli, folder: &Path) -> Result<(), Failure> {
    let Some(mapping) = &cli.mapping else {
        return Err(Failure::Usage("--sources: also say by --mapping how the operator is mapped".into()));
    };
    let discretisation = cli.discretisation();
    let precision = discretisation.precision;
    std::fs::create_dir_all(folder).map_err(|e| Failure::of_write(folder, &e))?;
    let write = |name: &str, text: String| {
        let path = folder.join(format!("{name}.kingpost"));
        files::write(&path, text).map_err(|e| Failure::of_write(&path, &e))
    };
    for (name, form) in [("stiffness", discretisation.stiffness_action()), ("load", discretisation.load())] {
        write(name, text(&form, name, mapping, precision).map_err(refused)?)?;
    }
    TEXTS.iter().try_for_each(|(name, text)| write(name, in_precision(text, precision)))
}
