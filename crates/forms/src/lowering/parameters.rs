//! Declaring parameters and arguments, one by one.

use super::names::Names;
use super::{LoweredArgument, LoweredRole};
use kingpost_ir::{Affine, Direction, KernelBuilder, ScalarType, VarId};

/// Declares the parameters and arguments, in order.
pub(super) struct Signature<'b> {
    pub(super) b: &'b mut KernelBuilder,
    pub(super) names: &'b mut Names,
    pub(super) arguments: Vec<LoweredArgument>,
    /// Type of coefficients, constants and results.
    pub(super) ty: ScalarType,
    /// Whether the result is overwritten.
    pub(super) sets_result: bool,
}

impl Signature<'_> {
    pub(super) fn param(&mut self, stem: &str, role: LoweredRole) -> VarId {
        let name = self.names.fresh(stem);
        self.arguments.push(LoweredArgument { name: name.clone(), role });
        self.b.param(name, ScalarType::I32)
    }

    pub(super) fn array(
        &mut self,
        stem: &str,
        ty: ScalarType,
        shape: Vec<Affine>,
        role: LoweredRole,
    ) -> VarId {
        let direction = match role {
            LoweredRole::Output { .. } if self.sets_result => Direction::Out,
            LoweredRole::Output { .. } => Direction::InOut,
            _ => Direction::In,
        };
        let name = self.names.fresh(stem);
        self.arguments.push(LoweredArgument { name: name.clone(), role });
        self.b.argument(name, ty, shape, direction)
    }
}
