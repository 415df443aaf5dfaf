//! Measurements as lines of JSON.

use crate::Order;
use kingpost::Mapping;
use kingpost::runtime::DeviceInfo;
use kingpost::solve::{LinearMethod, PreconditionerKind, ResidualNorm};
use serde::{Deserialize, Serialize};

/// The device of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// As it calls itself.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its highest clock, in MHz.
    pub clock_mhz: u32,
}

impl From<&DeviceInfo> for Card {
    fn from(info: &DeviceInfo) -> Self {
        Self { name: info.name.clone(), driver: info.driver.clone(), clock_mhz: info.clock_mhz }
    }
}

/// The assembly of the matrix of Poisson's equation on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assembled {
    /// Divisions of a side of the unit cube; zero of a mesh from a file.
    pub divisions: usize,
    /// The file's name without its ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Cells of a mesh from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<usize>,
    /// How its cells and vertices are numbered.
    #[serde(default, skip_serializing_if = "Order::is_made")]
    pub order: Order,
    /// Degree of the elements.
    pub degree: usize,
    /// Unknowns.
    pub unknowns: usize,
    /// Stored entries of the matrix.
    pub entries: usize,
    /// How the entries get into the matrix.
    pub strategy: String,
    /// How the kernel of the form is mapped.
    pub mapping: Mapping,
    /// Where it ran.
    pub device: Card,
    /// BLAKE3 hash of the source of the form's kernel.
    pub source: String,
    /// Registers, spills and local memory of the form's kernel, where the compiler tells.
    pub resources: Option<String>,
    /// Median of the assemblies, all kernels, in seconds.
    pub median_s: f64,
    /// Shortest, in seconds.
    pub min_s: f64,
    /// Longest, in seconds.
    pub max_s: f64,
    /// Assemblies that count.
    pub runs: usize,
    /// Bytes of all arrays of all kernels, those that are read and written twice.
    pub bytes: u64,
    /// Largest difference of an entry from the reference on eight cubes, in units of the largest
    /// entry.
    pub error: f64,
    /// Largest difference of the product with a random vector on the mesh from the action of the
    /// form without a matrix, in units of its largest number.
    pub product_error: f64,
    /// Median of that product, all kernels, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_s: Option<f64>,
    /// Wall time to find the pattern and the lists of the strategy and to upload them, in seconds.
    pub setup_s: f64,
}

impl Assembled {
    /// Millions of unknowns a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.unknowns as f64 / self.median_s * 1e-6
    }

    /// GB/s of the arrays of all kernels.
    #[must_use]
    pub fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.median_s * 1e-9
    }
}

/// The pattern of Poisson's matrix with its lookup table and cells by degree of freedom, found on
/// the host and on a device; both have the same arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetUp {
    /// Divisions of a side of the unit cube; zero of a mesh from a file.
    pub divisions: usize,
    /// The file's name without its ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How cells and vertices are numbered.
    pub order: Order,
    /// Degree of the elements.
    pub degree: usize,
    /// Cells.
    pub cells: usize,
    /// Unknowns.
    pub unknowns: usize,
    /// Stored entries of the matrix.
    pub entries: usize,
    /// Where it ran.
    pub device: Card,
    /// Threads of the host.
    pub threads: usize,
    /// Wall time of pattern and lookup table on the host, in seconds.
    pub host_pattern_s: f64,
    /// Wall time of the cells by degree of freedom on the host, in seconds.
    pub host_terms_s: f64,
    /// Device time of all three, the median of five, in seconds.
    pub device_s: f64,
    /// Wall time of the same with allocation and the upload of the map, in seconds.
    pub wall_s: f64,
    /// Bytes that a setup copies to the device.
    pub to_device: u64,
}

/// Conjugate gradients on Poisson's equation with its matrix and without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Free {
    /// Divisions of a side of the unit cube.
    pub divisions: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Unknowns.
    pub unknowns: usize,
    /// Stored entries of the matrix.
    pub entries: usize,
    /// How the kernels of the action are mapped.
    pub mappings: Vec<String>,
    /// Where it ran.
    pub device: Card,
    /// Median time of a product with the matrix, in seconds.
    pub matrix_product_s: f64,
    /// Time of an iteration with it, the median of three solves, in seconds.
    pub matrix_iteration_s: f64,
    /// The same of the action, with its rows of prescribed unknowns.
    pub free_product_s: f64,
    /// Time of an iteration with it, in seconds.
    pub free_iteration_s: f64,
    /// Largest difference of the solutions after 64 iterations, in units of the largest number.
    pub error: f64,
}

/// A V-cycle of algebraic multigrid for Poisson's equation, and its setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cycled {
    /// Divisions of a side of the unit cube.
    pub divisions: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Unknowns of each level, from the finest on.
    pub unknowns: Vec<usize>,
    /// Entries of the matrices of all levels, relative to those of the finest.
    pub operator_complexity: f64,
    /// Where it ran.
    pub device: Card,
    /// Median time of a cycle from zero, in seconds.
    pub cycle_s: f64,
    /// Times of setups, the first of which compiles kernels, in seconds.
    pub setup_s: Vec<f64>,
    /// Times of renewals, which find the numbers of a matrix of the same pattern, in seconds.
    #[serde(default)]
    pub renewal_s: Vec<f64>,
    /// Iterations of conjugate gradients with a cycle each, to 1e-8 of the right-hand side.
    pub iterations: usize,
    /// Their time, in seconds.
    pub solve_s: f64,
}

/// Products with the matrix of the hyperelastic problem, row by row of scalars and of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocked {
    /// Divisions of a side of the unit cube.
    pub divisions: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Unknowns.
    pub unknowns: usize,
    /// Stored entries of the matrix.
    pub entries: usize,
    /// Where it ran.
    pub device: Card,
    /// Median time of a product with rows of scalars, in seconds.
    pub rows_s: f64,
    /// The same with rows of blocks, in seconds.
    pub blocks_s: f64,
    /// Largest difference of the products, in units of the largest number.
    pub error: f64,
}

/// A solve of Poisson's equation on some devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaled {
    /// Divisions of a side of the unit cube.
    pub divisions: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Unknowns.
    pub unknowns: usize,
    /// Stored entries of the matrix.
    pub entries: usize,
    /// How many devices there were.
    pub devices: usize,
    /// The first of them.
    pub device: Card,
    /// How they exchanged numbers; none of one device without parts.
    pub exchange: Option<String>,
    /// Whether ghosts were in flight during products.
    pub overlaps: bool,
    /// The unknowns that each part owns, and its ghosts.
    pub parts: Vec<[usize; 2]>,
    /// Bytes that the parts send to each other in a product.
    pub halo_bytes: u64,
    /// Iterations of conjugate gradients.
    pub iterations: usize,
    /// Median time of the solves, in seconds: of one device without parts by its clock, of parts by
    /// the wall clock.
    pub solve_s: f64,
    /// Wall time of the setup, in seconds.
    pub setup_s: f64,
    /// Bytes that a solve copied from the host to the devices.
    pub to_device: u64,
    /// Bytes that it copied back.
    pub to_host: u64,
    /// Largest difference from the solution of one device, in units of its largest number.
    pub error: f64,
}

impl Scaled {
    /// Seconds an iteration.
    #[must_use]
    pub fn iteration_s(&self) -> f64 {
        self.solve_s / self.iterations as f64
    }
}

/// What a solve is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The problem.
    #[serde(default = "forces")]
    pub problem: String,
    /// Residual of the linear systems that is small enough, relative to the right-hand side.
    #[serde(default = "published_tolerance")]
    pub relative: f64,
    /// Whether other unknowns follow prescribed ones in the same update.
    #[serde(default = "yes")]
    pub lifts: bool,
    /// The method for linear systems.
    #[serde(default = "conjugate_gradients", skip_serializing_if = "is_conjugate_gradients")]
    pub method: String,
    /// Its preconditioner.
    #[serde(default = "jacobi", skip_serializing_if = "is_jacobi")]
    pub preconditioner: String,
    /// The residual whose norm is judged.
    #[serde(default = "plain", skip_serializing_if = "is_plain")]
    pub norm: String,
}

fn plain() -> String {
    ResidualNorm::Plain.to_string()
}

fn is_plain(name: &str) -> bool {
    name == plain()
}

fn conjugate_gradients() -> String {
    LinearMethod::ConjugateGradients.to_string()
}

fn is_conjugate_gradients(name: &str) -> bool {
    name == conjugate_gradients()
}

fn jacobi() -> String {
    PreconditionerKind::Jacobi.to_string()
}

fn is_jacobi(name: &str) -> bool {
    name == jacobi()
}

fn forces() -> String {
    "hyperelasticity".into()
}

const fn published_tolerance() -> f64 {
    1e-5
}

const fn yes() -> bool {
    true
}

/// The solution of a problem of hyperelasticity on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solved {
    /// What was solved, and how.
    #[serde(flatten)]
    pub question: Question,
    /// Divisions of a side of the unit cube.
    pub divisions: usize,
    /// Degree of the elements.
    pub degree: usize,
    /// Unknowns.
    pub unknowns: usize,
    /// Stored entries of the matrix.
    pub entries: usize,
    /// How the entries get into the matrix.
    pub strategy: String,
    /// How the kernels of the residual and its derivative are mapped.
    pub mappings: Vec<String>,
    /// Where it ran.
    pub device: Card,
    /// Why Newton's method stopped.
    pub reason: String,
    /// Whether that is convergence.
    pub converged: bool,
    /// Norm of the residual at the end.
    pub residual: f64,
    /// Norms of the updates.
    pub updates: Vec<f64>,
    /// Parts of these updates that were added; empty in old records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<f64>,
    /// Parts of the load that they are under; empty in old records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<f64>,
    /// Iterations of conjugate gradients in each iteration of Newton's method.
    pub linear_iterations: Vec<usize>,
    /// Device time of the assemblies of the matrix, in seconds.
    pub assembly_s: f64,
    /// Wall time in which preconditioners were made, in seconds, if they take any worth mentioning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditioner_s: Option<f64>,
    /// Unknowns of the levels of the last hierarchy; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<usize>,
    /// Device time of conjugate gradients, in seconds.
    pub linear_s: f64,
    /// Wall time of the solve, in seconds.
    pub wall_s: f64,
    /// Wall time of the setup, in seconds.
    pub setup_s: f64,
    /// Bytes that the solve copied to the device.
    pub to_device: u64,
    /// Bytes that it copied back.
    pub to_host: u64,
}

impl Solved {
    /// Millions of unknowns a second and iteration of Newton's method in assembly.
    #[must_use]
    pub fn assembly_rate(&self) -> f64 {
        (self.updates.len() * self.unknowns) as f64 / self.assembly_s * 1e-6
    }

    /// Iterations of conjugate gradients in all.
    #[must_use]
    pub fn iterations(&self) -> usize {
        self.linear_iterations.iter().sum()
    }

    /// Millions of unknowns a second and iteration of conjugate gradients.
    #[must_use]
    pub fn linear_rate(&self) -> f64 {
        (self.iterations() * self.unknowns) as f64 / self.linear_s * 1e-6
    }
}
