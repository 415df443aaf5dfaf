//! What compilers are told of loops.

use super::Lower;
use crate::ast::{CodePiece, For, Stmt};
use crate::code::plain;
use kingpost_ir::{Affine, InameId};

impl Lower<'_> {
    /// That a loop has an iteration, where its calls update registers later. The compiler of PTX waits for each
    /// call at once if, for all it knows, the registers are read with no call before: on a way around the loop.
    pub(super) fn runs(
        &self,
        iname: InameId,
        [lower, upper]: [&[Vec<Affine>]; 2],
        head: &For,
    ) -> Option<Stmt> {
        let assume = self.target.words.assume.filter(|_| self.barriers.updates_registers(iname))?;
        let lengths =
            || upper.iter().flatten().flat_map(|hi| lower.iter().flatten().map(move |lo| hi.minus(lo)));
        let has_one = |length: Affine| self.env.is_non_negative(&length.plus_constant(-1));
        // a step may pass over the end
        let is_known = head.step == 1 && lengths().next().is_some() && lengths().all(has_one);
        is_known.then(|| {
            let pieces = vec![
                CodePiece::Text(format!("{assume}(")),
                CodePiece::Value(head.lower.clone()),
                CodePiece::Text(" < ".into()),
                CodePiece::Value(head.upper.clone()),
                CodePiece::Text(");".into()),
            ];
            Stmt::Intrinsic(plain("the next loop has an iteration", pieces))
        })
    }
}
