//! Figures of the publication.

/// Memory bandwidth of the V100 of the publication, in GB/s (Trotter et al. 2023, Table 1).
pub const V100_GB_S: f64 = 898.0;
/// That of its A100 (Table 1).
pub const A100_GB_S: f64 = 2039.0;
/// Nominal memory bandwidth of an H200, in GB/s.
pub const H200_GB_S: f64 = 4800.0;

/// Millions of unknowns a second of a strategy on a V100, uniform mesh 3 (Tables 3 and 4); none where
/// nothing is published.
#[must_use]
pub fn v100(strategy: &str, degree: usize) -> Option<f64> {
    match (strategy, degree) {
        ("partial", 1) => Some(0.64),
        ("full", 1) => Some(188.97),
        ("lookup-table", 1) => Some(229.57),
        ("rowwise", 1) => Some(279.37),
        ("full", 2) => Some(61.1),
        ("lookup-table", 2) => Some(13.1),
        ("rowwise", 2) => Some(1.5),
        _ => None,
    }
}

/// The fastest strategy on a V100, uniform mesh 3.
#[must_use]
pub fn best_of_v100(degree: usize) -> Option<f64> {
    match degree {
        1 => Some(279.37),
        2 => Some(61.1),
        _ => None,
    }
}

/// The Newton solve of a uniform mesh on an A100, Jacobi's preconditioner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct A100 {
    /// Iterations of Newton's method.
    pub newton: usize,
    /// Seconds of assembly.
    pub assembly_s: f64,
    /// Millions of unknowns a second and iteration in assembly.
    pub assembly_rate: f64,
    /// Seconds of conjugate gradients.
    pub linear_s: f64,
    /// Iterations of conjugate gradients.
    pub linear: usize,
    /// Millions of unknowns a second and iteration of conjugate gradients.
    pub linear_rate: f64,
}

/// The uniform meshes 1 to 8 (Tables 5 and 6).
pub const A100: [A100; 8] = [
    row(0.05, 68.9, 2.5, 4616, 1239.8),
    row(0.11, 75.2, 6.8, 6077, 1433.2),
    row(0.19, 83.4, 13.2, 7259, 1703.1),
    row(0.32, 84.1, 27.7, 9091, 1742.5),
    row(0.50, 84.0, 49.3, 10571, 1802.5),
    row(0.75, 83.4, 82.5, 12064, 1830.3),
    row(1.07, 83.3, 133.3, 13552, 1808.2),
    row(1.64, 74.2, 194.9, 14870, 1858.7),
];

const fn row(assembly_s: f64, assembly_rate: f64, linear_s: f64, linear: usize, linear_rate: f64) -> A100 {
    A100 { newton: 5, assembly_s, assembly_rate, linear_s, linear, linear_rate }
}
