//! What the kernels on a deformed mesh take, on a device.

use crate::line::Line;
use crate::mesh::{DeformedMesh, Surrogate};
use crate::{MultigridError, Precision};
use kingpost_runtime::{Arg, Buffer, Device, RuntimeError, buffer_of};

/// A vector in a precision.
pub(crate) fn upload(
    device: &dyn Device,
    values: &[f64],
    precision: Precision,
) -> Result<Buffer, RuntimeError> {
    match precision {
        Precision::Double => buffer_of(device, values),
        Precision::Single => buffer_of(device, &values.iter().map(|x| *x as f32).collect::<Vec<_>>()),
    }
}

/// Tables of the Gauss points of a line, and a mesh.
pub(crate) struct MeshArrays {
    arrays: Vec<(&'static str, Buffer)>,
    /// Bounds of the operators of patches relative to their surrogates.
    pub(crate) bounds: [f64; 2],
}

impl MeshArrays {
    /// Of a level; `for_patches` with the surrogates of its patches.
    pub(crate) fn new(
        device: &dyn Device,
        mesh: &DeformedMesh,
        line: &Line,
        precision: Precision,
        for_patches: bool,
    ) -> Result<Self, MultigridError> {
        let points = line.points();
        let of = |name, values: &[f64]| Ok::<_, RuntimeError>((name, upload(device, values, precision)?));
        let mut arrays = vec![
            of("vertices", mesh.vertices())?,
            of("kappa", mesh.coefficient())?,
            of("values", &points.values.entries)?,
            of("slopes", &points.slopes.entries)?,
            of("linear", &points.linear.entries)?,
            of("weights", &points.weights)?,
        ];
        let mut bounds = [1.0; 2];
        if for_patches {
            let surrogate = Surrogate::of(mesh);
            arrays.push(of("factors", &surrogate.factors)?);
            bounds = surrogate.bounds;
        }
        Ok(Self { arrays, bounds })
    }

    /// The arguments by name.
    pub(crate) fn args(&self) -> impl Iterator<Item = (&'static str, Arg<'_>)> {
        self.arrays.iter().map(|(name, buffer)| (*name, Arg::Buffer(buffer)))
    }

    /// Bytes of a level of `cells` cells a side in `axes` dimensions; none if they are beyond 64 bits.
    pub(crate) fn bytes(axes: u32, cells: usize, precision: Precision) -> Option<u64> {
        let (cells, d) = (cells as u64, u64::from(axes));
        let vertices = (cells + 1).checked_pow(axes)?.checked_mul(d)?;
        let coefficient = (2 * cells).checked_pow(axes)?;
        let factors = (cells - 1).checked_pow(axes)?.checked_mul(d)?;
        vertices.checked_add(coefficient)?.checked_add(factors)?.checked_mul(precision.bytes())
    }
}
