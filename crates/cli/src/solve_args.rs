//! What `solve` is asked.

use super::failure::Failure;
use clap::{Args, ValueEnum};
use kingpost::multigrid::{HierarchyOptions, Precision, Relaxation, kernels::Variant};
use kingpost::solve::{
    AssemblyStrategy, Exchange, LinearChoice, LinearMethod, PreconditionerKind, ResidualNorm,
};
use std::path::PathBuf;

/// Assemble and solve a boundary value problem on a device
///
/// The matrix is assembled in the memory of the device, as --assembly says, and the linear systems
/// are solved there, as --method and --preconditioner say. Between setup and result the host reads
/// norms, and copies nothing else: the bytes are counted and printed. A solver that does not
/// converge ends with exit code 1 and prints its history.
#[derive(Args)]
#[command(after_help = "\
Problems (Trotter et al. 2023):
  poisson           -div(kappa grad u) = f, zero on the boundary; kappa = f = 1
  hyperelasticity   a neo-Hookean body under a body force and a traction, clamped where x is least,
                    half turned by 60 degrees where x is greatest (section 4.5; figures of Ølgaard &
                    Wells 2012)
  twist             the same body without forces, a hundredth of that motion (a demonstration of
                    DOLFINx)
Another one, with --multigrid alone (Cui & Kanschat 2024):
  stokes            -div grad u + grad p = f, div u = 0, u = 0 on the boundary; f turns the fluid
                    about the middle; Raviart-Thomas elements and discontinuous pressures

Examples:
  kingpost solve hyperelasticity --mesh meshes/bracket.msh --degree 1 --vtu bracket.vtu
  kingpost solve hyperelasticity --cells 16 --device opencl
  kingpost solve hyperelasticity --preconditioner block-jacobi
  kingpost solve hyperelasticity --cells 24 --load-steps 4
  kingpost solve poisson --dim 2 --cells 200 --degree 2 --method bicgstab
  kingpost solve poisson --devices cuda:0,cuda:1 --cells 128
  kingpost solve poisson --multigrid --degree 4 --cells 16
  kingpost solve poisson --multigrid --smoother chebyshev --dim 2 --degree 3
  kingpost solve poisson --multigrid --method gmres --precision mixed --degree 3
  kingpost solve poisson --multigrid --degree 3 --deform 0.2 --jump 100
  kingpost solve poisson --multigrid --degree 3 --mesh meshes/bend.msh --cells 16 --vtu bend.vtu
  kingpost solve poisson --multigrid --degree 7 --cells 32 --devices cuda:0,cuda:1
  kingpost solve stokes --multigrid --degree 2 --dim 2 --cells 32 --precision mixed")]
pub struct SolveArgs {
    /// A problem by name: poisson, hyperelasticity, twist, stokes
    #[arg(value_name = "PROBLEM")]
    pub(super) problem: String,
    /// Polynomial degree of the elements
    #[arg(long, default_value_t = 1)]
    pub(super) degree: usize,
    /// Dimension of the unit mesh
    #[arg(long, default_value_t = 3, conflicts_with = "mesh", value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(super) dim: u8,
    /// Divisions of each side of the unit square or cube: 2 n^2 triangles or 6 n^3 tetrahedra
    /// [default: 64 or 8]. With --multigrid and --mesh the cells a side that the mesh is refined to
    #[arg(long, value_name = "N")]
    pub(super) cells: Option<usize>,
    /// Solve poisson in Q_k elements on squares or cubes by full multigrid with vertex-patch
    /// smoothers, without a matrix; --cells is a power of two [default: 64 or 16]. With --mesh on
    /// the mapped square or cube that its quadrilaterals or hexahedra are
    #[arg(long)]
    pub(super) multigrid: bool,
    /// What solves linear systems: cg (conjugate gradients), gmres (restarted after 50 iterations),
    /// bicgstab, chebyshev. With --multigrid: full-multigrid (cycles until the residual is small),
    /// gmres (GMRES preconditioned by a V-cycle) [default: cg, with --multigrid full-multigrid,
    /// with --deform, --jump, --mesh or --devices gmres]
    #[arg(long, value_name = "NAME")]
    pub(super) method: Option<String>,
    /// What preconditions it: none, jacobi, block-jacobi (of the components of vectors), chebyshev
    /// (a polynomial of degree 4), amg (smoothed aggregation, set up on the device), amg-f32 (the
    /// same with matrices in single precision in its cycles)
    #[arg(long, value_name = "NAME", default_value_t = PreconditionerKind::Jacobi, conflicts_with = "multigrid")]
    pub(super) preconditioner: PreconditionerKind,
    /// What smooths: vertex-patch (colour by colour, by the fastest kernel that is known), fused
    /// (the same from residuals), blended (the same from blended boundary values), inverse (the
    /// same by dense inverses), additive (all at once, damped), chebyshev (all at once, under a
    /// polynomial), point (point Gauss–Seidel)
    #[arg(long, value_name = "NAME", default_value = "vertex-patch", requires = "multigrid")]
    pub(super) smoother: MultigridSmoother,
    /// Numbers of the V-cycles: double, or single within GMRES in double (mixed)
    #[arg(long, value_name = "NAME", default_value = "double", requires = "multigrid")]
    pub(super) precision: CyclePrecision,
    /// Start GMRES from the solution on half as many cells a side, found in the same way
    #[arg(long, requires = "multigrid")]
    pub(super) nested: bool,
    /// Move the vertices by at most this part of a side, below 0.25, and solve on bilinear or
    /// trilinear cells, by GMRES
    #[arg(long, value_name = "PART", requires = "multigrid", conflicts_with = "mesh")]
    pub(super) deform: Option<f64>,
    /// A coefficient that alternates between 1 and this in the quadrants or octants, by GMRES
    #[arg(long, value_name = "KAPPA", requires = "multigrid")]
    pub(super) jump: Option<f64>,
    /// Gmsh file (MSH 4.1 or 2.2) with triangles or tetrahedra, with --multigrid quadrilaterals or
    /// hexahedra
    #[arg(long, value_name = "FILE.msh")]
    pub(super) mesh: Option<PathBuf>,
    /// Where to solve: c, opencl, opencl:1, cuda, cuda:0 … [default: opencl if there is one, else
    /// c]
    #[arg(long)]
    pub(super) device: Option<String>,
    /// Divide the unknowns among devices; one may be named more than once. With --multigrid each
    /// has a slab of the mesh: their number is a power of two
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "device")]
    pub(super) devices: Vec<String>,
    /// How they exchange numbers: nccl (from card to card), host (through its memory) [default:
    /// nccl between different cards, else host]
    #[arg(long, value_name = "NAME", requires = "devices", conflicts_with = "device")]
    pub(super) exchange: Option<Exchange>,
    /// Take all cards of --devices, also where one takes less time for so few unknowns
    #[arg(long, requires = "devices", conflicts_with_all = ["device", "multigrid"])]
    pub(super) all_devices: bool,
    /// How the matrix is assembled: partial (matrices of cells are stored, then added by entry),
    /// full (bisection of each row), lookup-table, symmetric-half (entries on and above the
    /// diagonal), coloured, rowwise (cells by row), owned-rows (a work-item a row, by the fastest
    /// of these options: mapped, turned (cells turned to the owner: P1 to P3 on simplices), strips
    /// (one vertex after the other: P1 on simplices), each also packed (rows of a group together),
    /// as owned-rows:strips:packed)
    #[arg(long, value_name = "NAME", default_value_t = AssemblyStrategy::LookupTable, conflicts_with = "multigrid")]
    pub(super) assembly: AssemblyStrategy,
    /// Make the hierarchy of --preconditioner amg this number of times again after the solve, and its
    /// numbers alone, and print how long both and a cycle take
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["multigrid", "devices"])]
    pub(super) time_hierarchies: u32,
    /// Write the solution on its mesh there, for ParaView
    #[arg(long, value_name = "FILE.vtu")]
    pub(super) vtu: Option<PathBuf>,
    /// Norm of an update of Newton's method that is small enough
    #[arg(long, value_name = "NORM", default_value = "1e-12", conflicts_with = "multigrid")]
    pub(super) update: f64,
    /// Iterations of Newton's method that are allowed, in each load step
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "multigrid")]
    pub(super) newton_iterations: usize,
    /// Apply prescribed values and forces in this number of equal parts; one that fails is halved
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000),
        conflicts_with = "multigrid")]
    pub(super) load_steps: u32,
    /// Residual of a linear system that is small enough, relative to its right-hand side [default:
    /// 1e-5, of linear problems 1e-10]
    #[arg(long, value_name = "PART")]
    pub(super) residual: Option<f64>,
    /// The residual whose norm that is: plain, preconditioned (with --method cg, as PETSc judges)
    #[arg(long, value_name = "NAME", default_value_t = ResidualNorm::Plain, conflicts_with = "multigrid")]
    pub(super) norm: ResidualNorm,
    /// Iterations of a linear system, or V-cycles, that are allowed
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(super) iterations: usize,
}

/// What solves around the V-cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MultigridMethod {
    /// Cycles alone.
    FullMultigrid,
    /// GMRES.
    Gmres,
}

/// The numbers of V-cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CyclePrecision {
    /// As those of the solution.
    Double,
    /// Single.
    Mixed,
}

impl SolveArgs {
    /// Whether multigrid solves on a deformed mesh or with a coefficient.
    pub(super) const fn has_mesh(&self) -> bool {
        self.deform.is_some() || self.jump.is_some() || self.mesh.is_some()
    }

    /// How multigrid solves.
    pub(super) fn multigrid_method(&self) -> Result<MultigridMethod, Failure> {
        let Some(name) = &self.method else {
            let by_gmres = self.has_mesh() || !self.devices.is_empty();
            return Ok(if by_gmres { MultigridMethod::Gmres } else { MultigridMethod::FullMultigrid });
        };
        let known = || {
            let names = MultigridMethod::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>().join(", ")
        };
        MultigridMethod::from_str(name, false)
            .map_err(|_| Failure::Usage(format!("--method {name}: needed with --multigrid {}", known())))
    }

    /// From a quarter of a side on, cells of the coarsest mesh are inside out.
    pub(super) fn check_deform(&self) -> Result<(), Failure> {
        match self.deform.filter(|part| !(0.0..0.25).contains(part)) {
            Some(part) => {
                Err(Failure::Usage(format!("--deform {part}: needed a number from 0 on, below 0.25")))
            }
            None => Ok(()),
        }
    }

    /// A residual that is relative to the right-hand side is a part of it: from 1 on, nothing would
    /// be solved.
    pub(super) fn check_residual(&self) -> Result<(), Failure> {
        match self.residual.filter(|part| !(0.0..1.0).contains(part)) {
            Some(part) => {
                Err(Failure::Usage(format!("--residual {part}: needed a number from 0 on, below 1")))
            }
            None => Ok(()),
        }
    }

    /// What solves linear systems.
    pub(super) fn solver(&self) -> Result<LinearChoice, Failure> {
        let method = match &self.method {
            Some(name) => name.parse().map_err(|e| Failure::Usage(format!("--method: {e}")))?,
            None => LinearMethod::default(),
        };
        Ok(LinearChoice { method, preconditioner: self.preconditioner })
    }
}

/// What smooths on the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum MultigridSmoother {
    /// Patches colour by colour, by the fastest kernel that is known.
    VertexPatch,
    /// The same from the residual of a patch.
    Fused,
    /// The same from values at the boundary of a patch alone, which are blended.
    Blended,
    /// The same with the inverse of a patch as a dense matrix.
    Inverse,
    /// All patches at once, damped.
    Additive,
    /// All patches at once, under a polynomial of degree 3.
    Chebyshev,
    /// Point Gauss–Seidel.
    Point,
}

impl MultigridSmoother {
    /// How the hierarchy smooths, in a precision.
    pub(super) fn options(self, precision: Precision) -> HierarchyOptions {
        let (variant, relaxation) = match self {
            Self::VertexPatch => (None, Relaxation::Multiplicative),
            Self::Fused => (Some(Variant::Fused), Relaxation::Multiplicative),
            Self::Blended => (Some(Variant::Blended), Relaxation::Multiplicative),
            Self::Inverse => (Some(Variant::Inverse), Relaxation::Multiplicative),
            Self::Additive => (Some(Variant::Fused), Relaxation::Additive { degree: 1 }),
            Self::Chebyshev => (Some(Variant::Fused), Relaxation::Additive { degree: 3 }),
            Self::Point => (Some(Variant::Point), Relaxation::Multiplicative),
        };
        HierarchyOptions { precision, variant, relaxation, ..HierarchyOptions::default() }
    }

    pub(super) fn describe(self, axes: usize) -> String {
        let colours = 1 << axes;
        match self {
            Self::VertexPatch => format!("vertex patches in {colours} colours"),
            Self::Fused => format!("vertex patches in {colours} colours, by residuals"),
            Self::Blended => format!("vertex patches in {colours} colours, by blended boundary values"),
            Self::Inverse => format!("vertex patches in {colours} colours, by dense inverses"),
            Self::Additive => "additive vertex patches, damped".to_owned(),
            Self::Chebyshev => "additive vertex patches under a Chebyshev polynomial of degree 3".to_owned(),
            Self::Point => "point Gauss–Seidel".to_owned(),
        }
    }
}
