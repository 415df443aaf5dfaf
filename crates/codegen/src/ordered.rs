//! Groups that start in order and wait for values of earlier ones, on devices.
//!
//! A group takes the next number of the launch, so that those with smaller numbers have started. An element
//! that groups wait for lies in words of 64 bits: the upper half holds the number of the launch, the lower
//! half one of its value. A word is written and read in one piece, so that whoever finds the number of the
//! launch in all of them has the value, and no other memory needs an order. The memory is zero before its
//! first launch, and no launch has to clear it.
//!
//! On a host groups run in order, and nobody waits.

use crate::ast::{CodePiece, Declare, Expr, Intrinsic, Name, Op, Place, Stmt};
use crate::code::{filled, plain};
use crate::env::Env;
use crate::error::{CodegenError, or};
use crate::function::Param;
use crate::placed::PlacedKernel;
use crate::plan::{ArgKind, HostExpr, LaunchPlan};
use crate::target::{Awaits, Target, TargetDescription};
use kingpost_ir::{Id, InsnId, ScalarType, VarId};

/// Words before the elements of an array: the numbers that groups have taken, and one that keeps elements
/// of two words at multiples of 16 bytes.
const FRONT: i64 = 2;

/// What the code of a kernel needs whose groups wait for each other.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    awaits: &'static Awaits,
    /// The arrays, and how their elements are written and read.
    vars: Vec<(VarId, [String; 2])>,
    /// Shared by a group: its number, and the number of the launch in the upper half of a word.
    turn: Name,
    /// The number of the launch.
    launch: Name,
    /// The words of an element.
    words: [Name; 2],
}

impl Ordered {
    /// What the code needs, if groups wait for each other on the target.
    ///
    /// # Errors
    /// A target that does not promise that they go on meanwhile.
    pub(crate) fn of(
        placed: &PlacedKernel<'_>,
        target: &'static TargetDescription,
        env: &mut Env<'_>,
    ) -> Result<Option<Self>, CodegenError> {
        let awaited = &placed.placement.awaited;
        if awaited.is_empty() || target.is_host() {
            return Ok(None);
        }
        let Some(awaits) = &target.awaits else {
            let can = |other: &&Target| {
                let other = other.description();
                other.is_host() || other.awaits.is_some()
            };
            let others = or(Target::ALL.iter().filter(can));
            return Err(CodegenError::NoOrderedGroups { target: target.target, others });
        };
        let element = |var: &VarId| {
            let ty = placed.kernel.vars[*var].ty;
            awaits.element(ty).map(|code| (*var, code)).ok_or_else(|| CodegenError::Internal {
                what: format!("groups wait for elements of type {ty}"),
                kernel: kingpost_ir::text::print(placed.kernel),
            })
        };
        let vars = awaited.iter().map(element).collect::<Result<_, _>>()?;
        let mut fresh = |stem: &str| env.names.fresh(stem);
        let words = ["low", "high"].map(&mut fresh);
        Ok(Some(Self { awaits, vars, turn: fresh("turn"), launch: fresh("launch"), words }))
    }

    /// How elements of an array are written and read, if groups wait for them.
    fn code(&self, var: VarId) -> Option<&[String; 2]> {
        self.vars.iter().find(|(other, _)| *other == var).map(|(_, code)| code)
    }

    /// What a group shares.
    pub(crate) fn shared(&self) -> Declare {
        let plain = Declare::scalar(self.turn.clone(), ScalarType::U64, None);
        Declare { len: Some(2), local: true, ..plain }
    }

    /// Takes the next number of the launch; declares it as `index`, of a type.
    pub(crate) fn start(&self, names: &[Name], index: &Name, ty: ScalarType) -> Vec<Stmt> {
        let own = |k: i64| Expr::Load(Place::element(self.turn.clone(), Expr::int(k)));
        let counter =
            self.vars.first().map(|(var, _)| Place::element(names[var.index()].clone(), Expr::int(0)));
        let values: Vec<_> =
            counter.into_iter().map(|c| ("counter", CodePiece::Address(Expr::Load(c)))).collect();
        let pieces = self.pieces(self.awaits.start, &values);
        let written = vec![self.turn.clone()];
        let take = Intrinsic { written, ..plain("the next number of the launch", pieces) };
        let number = Expr::Cast(ty, Box::new(own(0)));
        vec![
            Stmt::Intrinsic(take),
            Stmt::Declare(Declare::constant(index.clone(), ty, number)),
            Stmt::Declare(Declare::constant(self.launch.clone(), ScalarType::U64, own(1))),
        ]
    }

    /// Writes an element of an array for later groups; `None` if nobody waits for it.
    pub(crate) fn publish(
        &self,
        var: VarId,
        place: &Place,
        ty: ScalarType,
        value: &Expr,
        id: InsnId,
    ) -> Option<Stmt> {
        let [publish, _] = self.code(var)?;
        let values = [("address", address(place, ty)), ("value", CodePiece::Value(value.clone()))];
        Some(self.statement(publish, &values, &place.name, id))
    }

    /// Waits for an element of an array, and writes it to `to`; `None` if nobody waits for those.
    pub(crate) fn receive(
        &self,
        var: VarId,
        place: &Place,
        ty: ScalarType,
        to: &Place,
        id: InsnId,
    ) -> Option<Stmt> {
        let [_, receive] = self.code(var)?;
        let values = [("address", address(place, ty)), ("to", CodePiece::Value(Expr::Load(to.clone())))];
        Some(self.statement(receive, &values, &to.name, id))
    }

    fn statement(&self, code: &str, values: &[(&str, CodePiece)], written: &Name, origin: InsnId) -> Stmt {
        let (written, origins) = (vec![written.clone()], vec![origin]);
        Stmt::Intrinsic(Intrinsic { written, origins, ..plain("groups in order", self.pieces(code, values)) })
    }

    /// Code with values for its words `$name`.
    fn pieces(&self, code: &str, values: &[(&str, CodePiece)]) -> Vec<CodePiece> {
        let value =
            |word: &str| values.iter().find(|(name, _)| *name == word).map(|(_, piece)| piece.clone());
        filled(code, |word| match word {
            "low" => Some(CodePiece::Text(self.words[0].to_string())),
            "high" => Some(CodePiece::Text(self.words[1].to_string())),
            "turn" => Some(CodePiece::Text(self.turn.to_string())),
            "launch" => Some(CodePiece::Text(self.launch.to_string())),
            _ => value(word),
        })
    }

    /// The parameters of the code: arrays of words.
    pub(crate) fn change_params(&self, names: &[Name], params: &mut [Param]) {
        let ours = |p: &&mut Param| self.vars.iter().any(|(var, _)| names[var.index()] == p.name);
        for p in params.iter_mut().filter(ours) {
            (p.ty, p.is_shared) = (ScalarType::U64, true);
            p.remark =
                p.remark.as_ref().map(|shape| format!("{shape}, words with the number of their launch"));
        }
    }
}

/// Makes the plan that of the code: arrays of words for what groups wait for, and a device on which they may.
pub(crate) fn change_plan(placed: &PlacedKernel<'_>, target: &TargetDescription, plan: &mut LaunchPlan) {
    let Some(awaits) = target.awaits.as_ref().filter(|_| !placed.placement.awaited.is_empty()) else {
        return;
    };
    plan.features.push(awaits.needs);
    for var in &placed.placement.awaited {
        let var = &placed.kernel.vars[*var];
        for spec in plan.args.iter_mut().filter(|spec| spec.name == var.name) {
            if let ArgKind::Scratch { len, zeroed } = &mut spec.kind {
                let words = HostExpr::Mul(Box::new(HostExpr::Const(words(var.ty))), Box::new(len.clone()));
                *len = HostExpr::Add(Box::new(HostExpr::Const(FRONT)), Box::new(words));
                *zeroed = true;
            }
            (spec.ty, spec.aligned) = (ScalarType::U64, 16);
        }
    }
}

/// Words of an element: one for each half of 32 bits of its value.
fn words(ty: ScalarType) -> i64 {
    if ty.bytes() > 4 { 2 } else { 1 }
}

/// The first word of an element.
fn address(place: &Place, ty: ScalarType) -> CodePiece {
    let offset = place.offset.as_deref().map_or(Expr::int(0), Clone::clone);
    let offset = Expr::Cast(ScalarType::I64, Box::new(offset));
    let first = match words(ty) {
        1 => offset,
        words => Expr::binary(Op::Mul, Expr::int(words), offset),
    };
    let word = Expr::binary(Op::Add, first, Expr::int(FRONT));
    CodePiece::Address(Expr::Load(Place::element(place.name.clone(), word)))
}
