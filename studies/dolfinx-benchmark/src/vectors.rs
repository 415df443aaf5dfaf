//! The kernels on vectors, in either precision.

use kingpost::forms::tabulated::Precision;
use kingpost::runtime::{
    Buffer, Device, Executable, RuntimeError, buffer_of, download_values, upload_values,
};
use kingpost::solve::{SolveError, compile_text};

/// The kernels on vectors, as texts with a type called `REAL`, by their names.
pub const TEXTS: [(&str, &str); 9] = [
    ("clear", include_str!("vectors/clear.kingpost")),
    ("hold", include_str!("vectors/hold.kingpost")),
    ("put_back", include_str!("vectors/put_back.kingpost")),
    ("dot", include_str!("vectors/dot.kingpost")),
    ("residual", include_str!("vectors/residual.kingpost")),
    ("direction", include_str!("vectors/direction.kingpost")),
    ("turn", include_str!("vectors/turn.kingpost")),
    ("pack", include_str!("vectors/pack.kingpost")),
    ("combine", include_str!("vectors/combine.kingpost")),
];

/// A text in a precision.
#[must_use]
pub fn in_precision(text: &str, precision: Precision) -> String {
    text.replace("REAL", &precision.ty().to_string())
}

/// The kernels on vectors, compiled. Unknowns that are solved for come before prescribed ones.
pub struct Vectors {
    /// `v = 0`.
    pub clear: Executable,
    /// `kept = u` and `u = 0` where values are prescribed.
    pub hold: Executable,
    /// `u = kept` and `y = kept` there.
    pub put_back: Executable,
    /// `sums[k] += v·w`.
    pub dot: Executable,
    /// `r -= (rr[k]/pq[k]) q` and `rr[k + 1] += r·r`.
    pub residual: Executable,
    /// `x += (rr[k]/pq[k]) p`, `p = r + (rr[k + 1]/rr[k]) p` and `q = 0`.
    pub direction: Executable,
    /// The last sum becomes the first one.
    pub turn: Executable,
    /// `packed = q[at]`.
    pub pack: Executable,
    /// `q[at]` becomes the sum over all parts.
    pub combine: Executable,
}

impl Vectors {
    /// Compiles them.
    ///
    /// # Errors
    /// A device that refuses them.
    pub fn new(device: &dyn Device, precision: Precision) -> Result<Self, SolveError> {
        let mut all = TEXTS.iter().map(|(_, text)| compile_text(device, &in_precision(text, precision)));
        let mut next =
            || all.next().ok_or_else(|| SolveError::Missing { name: "a kernel on vectors".into() })?;
        Ok(Self {
            clear: next()?,
            hold: next()?,
            put_back: next()?,
            dot: next()?,
            residual: next()?,
            direction: next()?,
            turn: next()?,
            pack: next()?,
            combine: next()?,
        })
    }
}

/// Numbers on a device in a precision.
///
/// # Errors
/// No memory.
pub fn upload(device: &dyn Device, precision: Precision, values: &[f64]) -> Result<Buffer, RuntimeError> {
    match precision {
        Precision::F32 => buffer_of(device, &values.iter().map(|x| *x as f32).collect::<Vec<_>>()),
        Precision::F64 | Precision::C64 | Precision::C128 => buffer_of(device, values),
    }
}

/// The same into a buffer that is there.
///
/// # Errors
/// Another length.
pub fn upload_to(
    device: &dyn Device,
    precision: Precision,
    buffer: &Buffer,
    values: &[f64],
) -> Result<(), RuntimeError> {
    match precision {
        Precision::F32 => {
            upload_values(device, buffer, &values.iter().map(|x| *x as f32).collect::<Vec<_>>())
        }
        Precision::F64 | Precision::C64 | Precision::C128 => upload_values(device, buffer, values),
    }
}

/// The same numbers from the device.
///
/// # Errors
/// A failing driver.
pub fn download(
    device: &dyn Device,
    precision: Precision,
    buffer: &Buffer,
) -> Result<Vec<f64>, RuntimeError> {
    Ok(match precision {
        Precision::F32 => {
            let values: Vec<f32> = download_values(device, buffer)?;
            values.into_iter().map(f64::from).collect()
        }
        Precision::F64 | Precision::C64 | Precision::C128 => download_values(device, buffer)?,
    })
}
