//! Kernels whose parts have roles, whoever made them.

use crate::lowering::{LoweredForm, LoweredKernel, NoSymmetry, Orbits, OtherRules};
use crate::program::{CellLoop, CellProgram, NotAnAction};
use crate::tabulated::IntegralType;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_ir::Kernel;
use kingpost_primitives::Script;
use std::borrow::Cow;

/// A form that was lowered again, with other tables.
pub type Relowered = Box<dyn CellKernel + Send + Sync>;

/// A kernel whose parts have roles: those that lowering handed over, or those that the tags of a
/// text say.
pub trait CellKernel {
    /// The kernel.
    fn kernel(&self) -> &Kernel;

    /// Its loop over cells.
    ///
    /// # Errors
    /// A kernel without a scatter inside a loop.
    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction>;

    /// All its roles.
    ///
    /// # Errors
    /// As [`CellProgram::read`].
    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction>;

    /// What its outermost loop runs over, where lowering says so.
    fn over(&self) -> Option<IntegralType>;

    /// The same with quadrature rules of a scheme, where both are exact.
    ///
    /// # Errors
    /// A kernel that was not lowered from a form, an integral that a rule need not integrate
    /// exactly, a rule that does not exist.
    fn with_scheme(&self, scheme: QuadratureScheme) -> Result<Relowered, OtherRules> {
        Err(OtherRules::NoForm { kernel: self.kernel().name.clone(), scheme })
    }

    /// The same with derivatives along [symmetric directions](crate::lowering::Directions), and the
    /// orbits of the nodes of its elements.
    ///
    /// # Errors
    /// A kernel that was not lowered from a form, a form or nodes without this symmetry.
    fn symmetric(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        Err(NoSymmetry::NoForm { kernel: self.kernel().name.clone() })
    }

    /// The same with the points of quadrature rules in orbits, one after the other.
    ///
    /// # Errors
    /// As [`CellKernel::symmetric`], and rules without orbits.
    fn in_point_orbits(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        Err(NoSymmetry::NoForm { kernel: self.kernel().name.clone() })
    }

    /// The degrees of freedom of a component on vertices, edges, faces and in the interior of a cell,
    /// where the form says so: see [`LoweredForm::entity_parts`].
    fn entity_parts(&self) -> Option<Vec<u64>> {
        None
    }

    /// The schedule that belongs to the kernel, whose holes a mapping may have values for.
    fn script(&self) -> Option<&Script> {
        None
    }
}

fn boxed<K: CellKernel + Send + Sync + 'static>(
    (kernel, orbits): (K, Vec<Orbits>),
) -> (Relowered, Vec<Orbits>) {
    (Box::new(kernel), orbits)
}

impl CellKernel for Kernel {
    fn kernel(&self) -> &Kernel {
        self
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        CellLoop::read(self).map(Cow::Owned)
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        CellProgram::read(self).map(Cow::Owned)
    }

    fn over(&self) -> Option<IntegralType> {
        None
    }
}

impl CellKernel for LoweredForm {
    fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        Ok(Cow::Borrowed(&self.program.cells))
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        Ok(Cow::Borrowed(&self.program))
    }

    fn over(&self) -> Option<IntegralType> {
        Some(IntegralType::Cell)
    }

    fn with_scheme(&self, scheme: QuadratureScheme) -> Result<Relowered, OtherRules> {
        Ok(Box::new(Self::with_scheme(self, scheme)?))
    }

    fn symmetric(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        Self::symmetric(self).map(boxed)
    }

    fn in_point_orbits(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        Self::in_point_orbits(self).map(boxed)
    }

    fn entity_parts(&self) -> Option<Vec<u64>> {
        Self::entity_parts(self)
    }
}

impl CellKernel for LoweredKernel {
    fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn cell_loop(&self) -> Result<Cow<'_, CellLoop>, NotAnAction> {
        Ok(Cow::Borrowed(&self.cells))
    }

    fn program(&self) -> Result<Cow<'_, CellProgram>, NotAnAction> {
        self.program.as_ref().map(Cow::Borrowed).map_err(Clone::clone)
    }

    fn over(&self) -> Option<IntegralType> {
        Some(self.over)
    }

    fn symmetric(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        Self::symmetric(self).map(boxed)
    }

    fn in_point_orbits(&self) -> Result<(Relowered, Vec<Orbits>), NoSymmetry> {
        Self::in_point_orbits(self).map(boxed)
    }

    fn entity_parts(&self) -> Option<Vec<u64>> {
        Self::entity_parts(self)
    }
}
