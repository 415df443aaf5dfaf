//! What solvers multiply by.

use crate::texts::{compiled, text};
use crate::{Call, Constraints, DeviceForm, Queue, SolveError};
use kingpost_runtime::{Buffer, Device, Executable};

/// A square linear operator on vectors of a device.
pub trait Operator {
    /// Rows and columns.
    fn size(&self) -> usize;

    /// Numbers that vectors have room for where it works on them in place; those from its size on
    /// are its own.
    fn room(&self) -> usize {
        self.size()
    }

    /// Appends what computes `y = A x`. What `y` held is lost; `x` is as before in the end.
    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>);

    /// The same, and adds `x·y` to a sum.
    fn apply_with_dot<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, dot: Dot<'a>, queue: &mut Queue<'a>) {
        self.apply(x, y, queue);
        queue.push(dot.of(x, y));
    }

    /// Appends what makes the next direction, its product `y` and the curvature along it, if the operator does
    /// so in fewer kernels than one after the other.
    fn apply_to_next<'a>(&'a self, _turn: Turn<'a>, _y: &'a Buffer) -> Option<Call<'a>> {
        None
    }
}

/// What the next direction of conjugate gradients follows from, by Jacobi's preconditioner.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The inverse of the diagonal, the residual, the last direction, and where the next one goes; f64 `[n]`.
    pub(crate) vectors: [&'a Buffer; 4],
    /// The square that is small enough; sums of iterations: squares of the residual in the norms that it is
    /// judged by and of the preconditioner, and curvatures.
    pub(crate) sums: [&'a Buffer; 4],
    pub(crate) n_sums: usize,
    /// The iteration whose direction it is.
    pub(crate) place: usize,
}

/// A product of two vectors of `n` numbers that is added to entry `place` of `sums`, of which there are
/// `n_sums`.
#[derive(Clone, Copy)]
pub struct Dot<'a> {
    pub(crate) kernel: &'a Executable,
    pub(crate) n: usize,
    pub(crate) sums: &'a Buffer,
    pub(crate) n_sums: usize,
    pub(crate) place: usize,
}

impl<'a> Dot<'a> {
    /// What computes it.
    #[must_use]
    pub fn of(self, v: &'a Buffer, w: &'a Buffer) -> Call<'a> {
        let sizes = [("n", self.n), ("n_sums", self.n_sums), ("k", self.place)];
        Call::of(self.kernel, &sizes, &[("v", v), ("w", w), ("sums", self.sums)])
    }
}

/// The action of a bilinear form, applied without a matrix: rows and columns of prescribed unknowns
/// are those of the identity.
pub struct FormOperator<'s> {
    n: usize,
    form: &'s DeviceForm,
    constraints: &'s Constraints,
    unknown: &'s Buffer,
    clear: Executable,
}

impl<'s> FormOperator<'s> {
    /// A form of two given arrays: the unknown it is linearised at, and what it is applied to.
    ///
    /// # Errors
    /// A device that refuses the kernels.
    pub fn new(
        device: &dyn Device,
        n: usize,
        form: &'s DeviceForm,
        constraints: &'s Constraints,
        unknown: &'s Buffer,
    ) -> Result<Self, SolveError> {
        Ok(Self { n, form, constraints, unknown, clear: compiled(device, text!("clear"))? })
    }
}

impl Operator for FormOperator<'_> {
    fn size(&self) -> usize {
        self.n
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        queue.extend([self.constraints.keep(x), self.constraints.clear(x)]);
        queue.push(Call::of(&self.clear, &[("n", self.n)], &[("v", y)]));
        self.form.add_to(&[self.unknown, x], y, queue);
        queue.extend([self.constraints.put_back(x), self.constraints.put_back(y)]);
    }
}
