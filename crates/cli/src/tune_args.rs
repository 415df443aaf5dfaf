//! What `tune` is asked.

use super::failure::Failure;
use super::inputs::InputArgs;
use super::run_args::TrustArg;
use super::source::FormOptions;
use super::trial_args::TrialArgs;
use super::values::file_mesh;
use clap::Args;
use kingpost::forms::mesh::Mesh;
use kingpost::tuning::CaseMesh;
use std::path::Path;

/// Find the fastest mapping of a form's action, or the best values for the holes of a schedule, on
/// a device
///
/// Of a form the best ranked mappings are tried, on the mesh that `kingpost run` takes with the same
/// arguments. Of a .kingpost file with a schedule all values that satisfy its constraints are tried,
/// of one with the kernel of a form its mappings; its results are compared with the interpreter, or
/// with its own C code where it is too large for that. Every trial is kept.
///
/// Candidates are generated and compiled on all cores; each is checked against the reference (on a
/// small mesh everywhere, on the measured mesh at random degrees of freedom or with the first
/// result that was right) and timed by the device's clock: 5 warm-ups, then at least 15 runs or 0.2
/// s. One that does not compile, does not launch or is wrong is recorded with its reason and passed
/// over.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost tune laplace --dim 3 --degree 3 --device opencl --cells 16
  kingpost tune laplace --degree 2 --mesh meshes/bracket.msh   on the mesh of a file
  kingpost tune mine.kingpost --cells 8                        a kernel that was lowered from a form
  kingpost tune examples/tuned_matmul.kingpost --param n=256     values of the holes of its schedule
  kingpost tune laplace --compile-only --arch sm_90            no GPU needed: fills the cache
  kingpost results --db h200.jsonl                             tables of what was found

Every trial is in the database before the next one begins. A run that was stopped (Ctrl-C,
--time-limit, kill, power) goes on where it was when the same command is given again. Several
processes may share a database: each trial is done by one of them, and on one device they time in
turn.")]
pub struct TuneArgs {
    /// A form by name (mass, helmholtz, laplace, elasticity, hyperelasticity), or a .kingpost file: a
    /// kernel that was lowered from a form, or one that ends with a schedule with holes
    #[arg(value_name = "WHAT")]
    pub(super) what: String,
    #[command(flatten)]
    pub form: FormOptions,
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub trials: TrialArgs,
    #[command(flatten)]
    pub trust: TrustArg,
}

impl TuneArgs {
    /// The mesh that a form is tuned on.
    pub(super) fn mesh(&self, dim: usize) -> Result<CaseMesh, Failure> {
        match &self.inputs.mesh {
            Some(path) => Ok(given_mesh(path, file_mesh(path, dim)?)),
            None => Ok(CaseMesh::Unit(self.inputs.cells.unwrap_or(if dim == 2 { 32 } else { 8 }))),
        }
    }
}

/// A mesh under the name of its file.
pub fn given_mesh(path: &Path, mesh: Mesh) -> CaseMesh {
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    CaseMesh::Given { name: name.into_owned(), mesh: Box::new(mesh) }
}
