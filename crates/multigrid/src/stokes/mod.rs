//! Stokes' equations in Raviart–Thomas elements with discontinuous pressures, by multigrid with
//! vertex patches.
//!
//! The problem is `-Δu + ∇p = f`, `div u = 0` with `u = 0` on the boundary of the unit square or
//! cube. Velocities of RT_k have continuous normal components alone; the tangential ones are held
//! together, and to zero on the boundary, by interior penalties. The divergence of the velocities
//! is the space of the pressure, Q_k on each cell, so that velocities are free of divergence up to
//! roundings.
//!
//! The smoother takes all unknowns inside the two cells a side around a vertex, colour by colour.
//! The velocities of a patch are diagonalised axis by axis as in Cui et al. 2024, and the Schur
//! complement of its pressure is inverted in their modes, where it has a small block for each
//! parity. A patch is solved for as a domain of its own, with values of zero on its boundary. So
//! the energies of the patches of a colour, which share faces, add up to at least that of their
//! sum, and no step of a colour makes the error larger.
//!
//! Vectors have a place for each unknown of each cell by component and in lexicographic order, with
//! a layer of cells of zeros around them, so that no kernel asks where the mesh ends. The operator
//! is that of cells of length 1, which is h^(d - 2) of that of cells of length h if the unknowns of
//! the pressure are multiplied with h.
//!
//! # Source
//! Cui & Kanschat 2024; Cockburn et al. 2007 for the discretisation; Kanschat & Mao 2015 for the
//! smoother.

mod hierarchy;
mod kernels;
mod line;
mod patch;
mod solver;

pub use hierarchy::{StokesCycle, StokesHierarchy, StokesOperator, StokesSmoother, numbers};
pub use kernels::{StokesOperation, program, schedule};
pub use line::StokesLine;
pub use solver::{SourceTerm, StokesSolver};
