//! Blocks with conditions, and values with names, for whoever builds kernels in Rust.

use crate::affine::Affine;
use crate::build::{Block, BlockKind, KernelBuilder};
use crate::expr::{Access, Expr};
use crate::guards::{Guarding, Guards};
use crate::ids::{InameId, InsnId, VarId};
use crate::kernel::{Insn, Kernel, WriteOp};
use crate::types::ScalarType;
use std::collections::BTreeSet;

impl KernelBuilder {
    /// Opens an `if`: what follows runs where the condition holds, until [`Self::open_else_if`],
    /// [`Self::open_else`] or [`Self::close_if`].
    ///
    /// The condition becomes a predicate of what is inside. Where the branches may change it, it is stored in a
    /// scalar before.
    ///
    /// ```
    /// use kingpost_ir::{Access, Affine, BinaryOp, Direction, Expr, KernelBuilder, ScalarType, UpdateOp};
    ///
    /// let mut b = KernelBuilder::new("clipped");
    /// let n = b.param("n", ScalarType::I32);
    /// let x = b.argument("x", ScalarType::F64, [Affine::var(n)], Direction::InOut);
    /// let lost = b.argument("lost", ScalarType::F64, [], Direction::InOut);
    /// let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
    /// let at = || Expr::load(x, [i.into()]);
    /// b.open_if(Expr::binary(BinaryOp::Lt, Expr::from(1.0), at()));
    /// b.update("count", Access::scalar(lost), UpdateOp::Add, at() - 1.0);
    /// b.assign("clip", Access::new(x, [i.into()]), 1.0);
    /// b.open_else();
    /// b.assign("halve", Access::new(x, [i.into()]), at() * 0.5);
    /// b.close_if();
    /// b.close_loop();
    /// let text = b.finish()?.to_string();
    /// assert!(text.contains("taken_set: taken = 1.0 < x[i]\n  count: lost += x[i] - 1.0 if taken\n"));
    /// assert!(text.contains("halve: x[i] = x[i]*0.5 if not taken\n"));
    /// # Ok::<(), kingpost_ir::KernelError>(())
    /// ```
    pub fn open_if(&mut self, condition: impl Into<Expr>) {
        self.open_block(BlockKind::If(vec![Some(condition.into())], Vec::new()));
    }

    /// What follows runs where no condition before holds, and this one does.
    pub fn open_else_if(&mut self, condition: impl Into<Expr>) {
        self.open_branch(Some(condition.into()));
    }

    /// What follows runs where no condition of the `if` holds.
    pub fn open_else(&mut self) {
        self.open_branch(None);
    }

    fn open_branch(&mut self, condition: Option<Expr>) {
        match self.innermost() {
            Some(Block { kind: BlockKind::If(conditions, bodies), nodes })
                if conditions.iter().all(Option::is_some) =>
            {
                bodies.push(std::mem::take(nodes));
                conditions.push(condition);
            }
            Some(_) | None => self.unbalanced = true,
        }
    }

    /// Opens `for name in lo..hi while condition`: the first iteration in which the condition does not hold, and
    /// all after it, do nothing. [`Self::close_loop`] closes it.
    ///
    /// ```
    /// use kingpost_ir::{Access, Affine, BinaryOp, Direction, Expr, KernelBuilder, ScalarType};
    ///
    /// // Newton's method for a square root
    /// let mut b = KernelBuilder::new("root");
    /// let a = b.argument("a", ScalarType::F64, [], Direction::In);
    /// let x = b.argument("x", ScalarType::F64, [], Direction::InOut);
    /// let root = || Expr::scalar(x);
    /// let far = Expr::binary(BinaryOp::Lt, Expr::from(1e-9), root() * root() - Expr::scalar(a));
    /// b.open_while("k", Affine::constant(0), Affine::constant(50), far);
    /// b.assign("next", Access::scalar(x), (root() + Expr::scalar(a) / root()) * 0.5);
    /// b.close_loop();
    /// let text = b.finish()?.to_string();
    /// assert!(text.contains("k_on_set: k_on = true\nfor k in 0..50\n  k_on_set_1: k_on = 1e-9 < x*x - a if k_on\n"));
    /// # Ok::<(), kingpost_ir::KernelError>(())
    /// ```
    pub fn open_while(
        &mut self,
        name: impl Into<String>,
        lo: Affine,
        hi: Affine,
        condition: impl Into<Expr>,
    ) -> InameId {
        let iname = self.range(name, lo, hi);
        self.open_block(BlockKind::Loop(iname, Some(condition.into())));
        iname
    }

    /// `let name = value`: a private scalar with the type of its value, which nothing else may write. A value
    /// without a type of its own, such as a literal, is stored as `i64` or `f64`.
    ///
    /// ```
    /// use kingpost_ir::{Access, Affine, Direction, Expr, KernelBuilder, ScalarType};
    ///
    /// let mut b = KernelBuilder::new("squares");
    /// let x = b.argument("x", ScalarType::F32, [Affine::constant(8)], Direction::InOut);
    /// let i = b.open_loop("i", Affine::constant(0), Affine::constant(8));
    /// let size = b.let_value("size", Expr::load(x, [i.into()]) * Expr::load(x, [i.into()]));
    /// b.assign("s", Access::new(x, [i.into()]), Expr::scalar(size) + Expr::scalar(size));
    /// b.close_loop();
    /// let text = b.finish()?.to_string();
    /// assert!(text.contains("temp size: f32 private") && text.contains("  size_set: size = x[i]*x[i]\n"));
    /// # Ok::<(), kingpost_ir::KernelError>(())
    /// ```
    pub fn let_value(&mut self, name: impl Into<String>, value: impl Into<Expr>) -> VarId {
        let value = value.into();
        // of a value without a type the verifier says why
        let found = self.kernel.type_of(&value, &[]).ok();
        let ty = found.and_then(|ty| ty.stored().or(ty.scalar())).unwrap_or(ScalarType::F64);
        let name = name.into();
        let stem = format!("{name}_set");
        let scalar = self.temporary(name, ty, []);
        let insn = self.kernel.fresh_name(&stem);
        self.assign(insn, Access::scalar(scalar), value);
        scalar
    }
}

impl Guarding for KernelBuilder {
    type Place = ();

    fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn parts(&mut self) -> (&mut Kernel, &mut Guards) {
        (&mut self.kernel, &mut self.guards)
    }

    fn new_scalar(&mut self, stem: &str, ty: ScalarType) -> VarId {
        let name = self.kernel.fresh_name(stem);
        self.temporary(name, ty, [])
    }

    fn new_store(&mut self, scalar: VarId, rhs: Expr, predicate: Option<Expr>, (): ()) -> InsnId {
        let name = self.kernel.fresh_name(&format!("{}_set", self.kernel.vars[scalar].name));
        let (lhs, tags) = (Access::scalar(scalar), BTreeSet::new());
        self.kernel.insns.push(Insn { name, lhs, op: WriteOp::Assign, rhs, predicate, tags, callee: None })
    }

    fn loop_place(&self, _: InameId) {}

    fn note_condition(&mut self, _: &Expr, (): ()) {}
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::expr::{BinaryOp, UpdateOp};
    use crate::kernel::Direction;
    use crate::text::parse;

    /// `array[i] < bound`.
    fn below(array: VarId, i: InameId, bound: f64) -> Expr {
        Expr::binary(BinaryOp::Lt, Expr::load(array, [i.into()]), Expr::from(bound))
    }

    #[test]
    fn blocks_are_those_of_the_text() {
        let text = "kernel k\nparam n: i32\narg x: f64[n] inout\narg c: i32[n] in\n\nfor i in 0..n\n  let m = c[i]\n  if x[i] < 1.0\n    lo: x[i] = 1.0\n    for k in 0..m while x[i] < 8.0\n      twice: x[i] = x[i]*2.0\n  else if x[i] < 4.0\n    up: x[i] += 1.0\n  else\n    down: x[i] = 4.0\n";
        let wanted = parse(text).unwrap();
        let mut b = KernelBuilder::new("k");
        let n = b.param("n", ScalarType::I32);
        let x = b.argument("x", ScalarType::F64, [Affine::var(n)], Direction::InOut);
        let c = b.argument("c", ScalarType::I32, [Affine::var(n)], Direction::In);
        let i = b.open_loop("i", Affine::constant(0), Affine::var(n));
        let at = || Access::new(x, [i.into()]);
        let m = b.let_value("m", Expr::load(c, [i.into()]));
        b.open_if(below(x, i, 1.0));
        b.assign("lo", at(), 1.0);
        b.open_while("k", Affine::constant(0), Affine::var(m), below(x, i, 8.0));
        b.assign("twice", at(), Expr::load(x, [i.into()]) * 2.0);
        b.close_loop();
        b.open_else_if(below(x, i, 4.0));
        b.update("up", at(), UpdateOp::Add, 1.0);
        b.open_else();
        b.assign("down", at(), 4.0);
        b.close_if();
        b.close_loop();
        let built = b.finish().unwrap();
        // the names of what neither says differ
        let unnamed = |text: String| {
            let lines = text.lines().map(|line| match line.trim_start().split_once(": ") {
                Some((name, rest))
                    if name.ends_with(|c: char| c.is_ascii_digit()) || name.contains("_set") =>
                {
                    rest
                }
                _ => line.trim_start(),
            });
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(unnamed(built.to_string()), unnamed(wanted.to_string()));
    }

    #[test]
    fn blocks_that_do_not_match_are_refused() {
        let build = |blocks: &dyn Fn(&mut KernelBuilder)| {
            let mut b = KernelBuilder::new("k");
            b.argument("x", ScalarType::F64, [], Direction::InOut);
            blocks(&mut b);
            b.finish().is_err()
        };
        let holds = || Expr::truth(true);
        assert!(build(&|b| b.open_if(holds())));
        assert!(build(&|b| b.close_if()));
        assert!(build(&|b| b.open_else()));
        assert!(build(&|b| {
            b.open_if(holds());
            b.close_loop();
        }));
        assert!(build(&|b| {
            b.open_if(holds());
            b.open_else();
            b.open_else_if(holds());
            b.close_if();
        }));
        assert!(build(&|b| {
            b.open_loop("i", Affine::constant(0), Affine::constant(4));
            b.close_if();
        }));
    }
}
