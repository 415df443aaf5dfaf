//! Arrays that the work-items of a sub-group hold in registers: reads of what another one holds,
//! where the hardware has shuffles.
//!
//! A read is a statement of its own before the instruction, so that nothing but a condition or
//! a loop around the instruction can keep a work-item from taking part; `convergence` refuses those
//! that may.

use super::Lower;
use crate::ast::{CodePiece, Declare, Expr, Intrinsic, Op, Place, Stmt};
use crate::axes::{Axes, is_replicated};
use crate::code::{filled, plain};
use crate::complex::ComplexOp;
use crate::double_single::HELD;
use crate::error::CodegenError;
use crate::placed::PlacedKernel;
use crate::target::SubGroups;
use crate::value::{Value, arithmetic};
use kingpost_analysis::placement::index_origin;
use kingpost_ir::{Access, Affine, Arithmetic, AxisTag, Id, InameId, InsnId, ScalarType, Variable};

/// Checks that rows of work-items along l.0 are made of whole sub-groups, or sub-groups of whole
/// rows.
///
/// # Errors
/// [`CodegenError::SubGroupSize`].
pub(crate) fn check_size(placed: &PlacedKernel<'_>, axes: &Axes) -> Result<(), CodegenError> {
    let found = axes.row();
    let held = placed.placement.lanes.iter().position(Option::is_some);
    match held {
        Some(k) if u64::try_from(found).is_ok_and(|n| !n.is_power_of_two()) => {
            let var = placed.kernel.vars.values().nth(k).ok_or_else(|| CodegenError::Internal {
                what: format!("variable {k} is held by lanes and is not there"),
                kernel: kingpost_ir::text::print(placed.kernel),
            })?;
            Err(CodegenError::SubGroupSize { var: var.name.clone(), found })
        }
        Some(_) | None => Ok(()),
    }
}

impl<'k> Lower<'k> {
    /// Whether an instruction runs at index 0 of l.0 only.
    pub(super) fn is_at_lane_zero(&self, id: InsnId) -> bool {
        self.lane_loop().is_none() && !is_replicated(self.kernel, id, false)
    }

    /// The loop on l.0 around this point.
    fn lane_loop(&self) -> Option<InameId> {
        self.scope.iter().copied().find(|i| self.kernel.inames[*i].tag == AxisTag::Local(0))
    }

    /// The index along l.0 of the work-item that holds what is read, if it may be another one.
    pub(super) fn lane_read(&mut self, access: &Access) -> Result<Option<Expr>, CodegenError> {
        let Some((axis, offset)) = self.placed.placement.lanes[access.var.index()] else { return Ok(None) };
        let own = match self.lane_loop() {
            Some(l) => Some(Affine::iname(l).minus(&index_origin(self.kernel, l))),
            None => self.at_lane_zero.then(Affine::default),
        };
        let index = &access.index[axis];
        let is_own = own.is_some_and(|own| index.as_affine() == Some(own.plus_constant(offset)));
        if is_own || self.axes.row() == 1 {
            return Ok(None);
        }
        let index = self.index(index)?;
        let lane = arithmetic(&self.env, Op::Sub, index, Value::Affine(Affine::constant(offset)));
        Ok(Some(lane.as_integer(&self.env).0))
    }

    /// Whether all work-items of a row are in one sub-group, so that a shuffle reads whatever one
    /// of them holds.
    pub(super) fn shuffles_reach_all(&self) -> bool {
        self.axes.row() <= self.kernel.sub_group.width().into()
    }

    /// What the work-item at `lane` holds at `place`, read by all work-items of a row together.
    pub(super) fn shuffled(
        &mut self,
        place: Place,
        lane: Expr,
        var: &Variable,
    ) -> Result<Expr, CodegenError> {
        let SubGroups::Hardware { shuffle, .. } = self.target.sub_groups else {
            return Err(self.internal("a shuffle for a target without any"));
        };
        let name = self.env.names.fresh(&format!("{}_read", var.name));
        let width = self.axes.row().min(self.kernel.sub_group.width().into());
        // a complex number goes part by part, and so does a real that will be a pair
        let is_pair = var.ty == ScalarType::F64 && self.kernel.arithmetic == Arithmetic::DoubleSingle;
        let ty = if is_pair { HELD } else { var.ty };
        let parts: &[Option<ComplexOp>] =
            if ty.is_complex() { &[Some(ComplexOp::Real), Some(ComplexOp::Imag)] } else { &[None] };
        let member = |part: &Option<ComplexOp>| part.and_then(ComplexOp::member).map(|m| format!(".{m}"));
        let held = || Expr::Load(place.clone());
        let text = |text: String| Some(CodePiece::Text(text));
        let piece = |part: &Option<ComplexOp>, word: &str| match word {
            "to" => text(format!("{name}{}", member(part).unwrap_or_default())),
            "mask" => text(self.row_mask(width)),
            "value" => Some(CodePiece::Value(match part {
                Some(part) => Expr::Complex(*part, ty, vec![held()]),
                None => held(),
            })),
            "lane" => Some(CodePiece::Value(lane.clone())),
            "width" => text(width.to_string()),
            _ => None,
        };
        let declared = Declare::scalar(name.clone(), var.ty, None);
        let shuffle = |part: &Option<ComplexOp>| {
            let pieces = filled(shuffle, |word| piece(part, word));
            let written = vec![name.clone()];
            Intrinsic { written, together: 1, ..plain(&format!("shuffle of {}", var.name), pieces) }
        };
        let shuffles: Vec<Stmt> = parts.iter().map(|part| Stmt::Intrinsic(shuffle(part))).collect();
        if let Some(prelude) = self.prelude.last_mut() {
            prelude.push(Stmt::Declare(declared));
            prelude.extend(shuffles);
        }
        Ok(Expr::var(&name))
    }

    /// The lanes of the hardware's sub-group that are in the row of the work-item: conditions may
    /// differ between rows.
    fn row_mask(&self, width: i64) -> String {
        let [_, rows, layers] = [0, 1, 2].map(|k: usize| self.axes.block[k].as_ref().map_or(1, |a| a.extent));
        let lanes = i64::from(self.kernel.sub_group.width());
        let bits = u128::MAX >> (128 - width);
        if width == lanes || rows * layers == 1 {
            return format!("{bits:#x}u");
        }
        let [y, z] = [1, 2].map(|axis| (self.target.words.hardware)(false, axis));
        format!("{bits:#x}u << ({width}*({y} + {rows}*{z}) % {lanes})")
    }
}
