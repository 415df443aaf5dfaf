//! What an operator nearly takes to zero: the functions that coarse levels have to have.

use crate::texts::{compiled, text};
use crate::{Call, SolveError, put};
use kingpost_runtime::{Buffer, Device, Executable, buffer_of};

/// Degrees of freedom whose near kernel is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unknowns {
    /// Components of each degree of freedom.
    pub components: usize,
    /// Where they are, `[degrees of freedom, dim]` row-major; may be empty if no rigid motions are
    /// wanted.
    pub points: Vec<f64>,
    /// Dimension of the points.
    pub dim: usize,
}

impl Unknowns {
    /// Unknowns of a number of components, anywhere.
    #[must_use]
    pub const fn of_components(components: usize) -> Self {
        Self { components, points: Vec::new(), dim: 0 }
    }

    /// Whether they are displacements of points of the plane or space, so that rigid motions of the
    /// points strain nothing.
    #[must_use]
    pub const fn are_displacements(&self) -> bool {
        self.components == self.dim && (self.dim == 2 || self.dim == 3)
    }
}

/// Finds the vectors of a near kernel, one for each component that is constant there; of displacements rotations
/// too, of the points as they have moved, about the middle of the points at rest.
pub(super) struct NearKernel {
    find: Executable,
    side: usize,
    dofs: usize,
    /// How many vectors there are.
    pub vectors: usize,
    /// Where the points are at rest, and their middle.
    points: Option<[Buffer; 2]>,
}

impl NearKernel {
    /// What finds the vectors of some unknowns, wherever their points are, and how many there are.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn compiled(device: &dyn Device, unknowns: &Unknowns) -> Result<(Executable, usize), SolveError> {
        let side = unknowns.components.max(1);
        let (text, rotations) = match unknowns.are_displacements() {
            false => (text!("aggregation/constants").to_owned(), 0),
            true => {
                let rotations = side * (side - 1) / 2;
                (text!("aggregation/rigid_motions").replace("TURNS", &rotations.to_string()), rotations)
            }
        };
        Ok((compiled(device, &text.replace("SIDE", &side.to_string()))?, side + rotations))
    }

    /// Of `n` unknowns.
    ///
    /// # Errors
    /// [`SolveError::Length`] of unknowns that are no whole degrees of freedom or have no points; what the device
    /// refuses.
    pub fn new(device: &dyn Device, unknowns: &Unknowns, n: usize) -> Result<Self, SolveError> {
        let side = unknowns.components.max(1);
        if !n.is_multiple_of(side) {
            let needed = n.next_multiple_of(side);
            return Err(SolveError::Length { what: "matrix of blocks", found: n, needed });
        }
        let (dofs, points) = (n / side, &unknowns.points);
        let is_moved = unknowns.are_displacements();
        if is_moved && points.len() != n {
            return Err(SolveError::Length { what: "points", found: points.len(), needed: n });
        }
        let (find, vectors) = Self::compiled(device, unknowns)?;
        if !is_moved {
            return Ok(Self { find, side, dofs, vectors, points: None });
        }
        let sum = |axis: usize| points.iter().skip(axis).step_by(side).sum::<f64>();
        let middle: Vec<f64> = (0..side).map(|axis| sum(axis) / dofs.max(1) as f64).collect();
        Ok(Self {
            find,
            side,
            dofs,
            vectors,
            points: Some([buffer_of(device, points)?, buffer_of(device, &middle)?]),
        })
    }

    /// The vectors where the unknowns are `u`, f64 `[unknowns, vectors]`.
    ///
    /// # Errors
    /// [`SolveError::Length`] of another number of unknowns, no memory, a failing driver.
    pub fn of(&self, device: &dyn Device, u: Option<&Buffer>) -> Result<Buffer, SolveError> {
        let (n, sizes) = (self.side * self.dofs, [("n", self.dofs)]);
        let Some([points, middle]) = &self.points else {
            let near = device.allocate_unset(8 * (n * self.side) as u64)?;
            put(device, &[Call::of(&self.find, &sizes, &[("near", &near)])])?;
            return Ok(near);
        };
        let rest;
        let moved = match u {
            Some(u) if u.bytes() != 8 * n as u64 => {
                let found = u.bytes() as usize / 8;
                return Err(SolveError::Length { what: "displacement", found, needed: n });
            }
            Some(u) => u,
            None => {
                rest = device.allocate_unset(8 * n as u64)?;
                device.fill(&rest, 0)?;
                &rest
            }
        };
        let near = device.allocate_unset(8 * (n * self.vectors) as u64)?;
        let arrays = [("points", points), ("moved", moved), ("middle", middle), ("near", &near)];
        put(device, &[Call::of(&self.find, &sizes, &arrays)])?;
        Ok(near)
    }
}
