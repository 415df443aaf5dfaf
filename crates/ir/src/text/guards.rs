//! Conditions of the blocks of a text.

use super::lex::Span;
use super::parse::Parser;
use crate::expr::Expr;
use crate::guards::{Guarding, Guards};
use crate::ids::{InameId, InsnId, VarId};
use crate::kernel::Kernel;
use crate::types::ScalarType;

impl Guarding for Parser<'_> {
    type Place = Span;

    fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn parts(&mut self) -> (&mut Kernel, &mut Guards) {
        (&mut self.kernel, &mut self.made.guards)
    }

    fn new_scalar(&mut self, stem: &str, ty: ScalarType) -> VarId {
        self.scalar(stem, ty)
    }

    fn new_store(&mut self, scalar: VarId, rhs: Expr, predicate: Option<Expr>, place: Span) -> InsnId {
        self.store(scalar, rhs, predicate, place)
    }

    fn loop_place(&self, iname: InameId) -> Span {
        self.place_of(iname)
    }

    fn note_condition(&mut self, condition: &Expr, place: Span) {
        self.made.conditions.push((condition.clone(), place));
    }
}
