//! Calls of callees that have code for the target: that code, with the arguments put in.

use super::Lower;
use crate::ast::{Block, CodePiece, Expr, Intrinsic, Op, Stmt};
use crate::error::CodegenError;
use kingpost_ir::calls::{Arg, Binding, Call, CallPlace, Callee, MapOfTensor, Piece, TargetCode};
use kingpost_ir::{
    Access, AddressSpace, AxisTag, Direction, Expr as Ir, Id, InameId, Kernel, Multiples, VarId, VarKind,
};

impl<'k> Lower<'k> {
    /// The call that stands at a place of a body.
    pub(super) fn call_at(&self, inside: Option<InameId>, first: usize) -> Option<Call> {
        self.calls.values().find(|c| c.place.inside == inside && c.place.first == first).cloned()
    }

    /// The target's code for a call; `None` where it cannot stand: a barrier inside, work-items
    /// that take no part, operands of which work-items hold copies of their own. There the meaning
    /// is written out.
    pub(super) fn intrinsic(&mut self, call: &Call) -> Result<Option<Block>, CodegenError> {
        let kernel = self.kernel;
        let callee = &kernel.callees[call.callee];
        let Some(code) = callee.code_for(self.target.name) else { return Ok(None) };
        if !self.may_stand(call, callee, code) {
            return Ok(None);
        }
        let on_axes: Vec<InameId> = call
            .binding
            .inames
            .iter()
            .map(|(i, _)| *i)
            .filter(|i| matches!(kernel.inames[*i].tag, AxisTag::Local(_)))
            .collect();
        let depth = self.scope.len();
        let mut everybody = true;
        for iname in &on_axes {
            match self.whole_axis(*iname)? {
                Some(value) => self.env.set_value(*iname, Some(value)),
                None => everybody = false,
            }
            self.scope.push(*iname);
        }
        let block = if everybody { self.put_in(call, callee, code) } else { Ok(None) };
        self.scope.truncate(depth);
        for iname in on_axes {
            self.env.set_value(iname, None);
        }
        block
    }

    fn may_stand(&self, call: &Call, callee: &Callee, code: &TargetCode) -> bool {
        let CallPlace { inside, first, len } = call.place;
        let barrier = (first + 1..first + len).any(|k| self.barriers.at(inside, k).is_some());
        let binding = &call.binding;
        if barrier || binding.inames.iter().any(|(i, _)| self.barriers.holds(*i)) {
            return false;
        }
        // Work-items run one after the other on a host, and their private arrays are interleaved where
        // they live across barriers.
        if self.target.is_host() && code.completes.is_some() {
            return false;
        }
        let in_order = self.target.is_host() && self.axes.work_items() > 1;
        // code for another width would take part of a sub-group for the whole, or several for one
        if callee.is_collective() && callee.kernel.sub_group != self.kernel.sub_group {
            return false;
        }
        if in_order && (callee.is_collective() || addresses_private(self.kernel, binding, code)) {
            return false;
        }
        // What the work-items hold together: one slice each.
        !callee.is_collective() || windows(binding).all(|var| self.is_shared_or_sliced(var))
    }

    fn is_shared_or_sliced(&self, var: VarId) -> bool {
        let variable = &self.kernel.vars[var];
        let own = variable.space == AddressSpace::Private && variable.kind == VarKind::Temporary;
        !own || self.placed.placement.sliced[var.index()].contains(&true)
    }

    /// The code, under the guards that all its instructions have.
    fn put_in(
        &mut self,
        call: &Call,
        callee: &Callee,
        code: &TargetCode,
    ) -> Result<Option<Block>, CodegenError> {
        let guards: Vec<_> = call.binding.insns.iter().map(|i| self.index_zero_guards(*i)).collect();
        let Some(guard) = guards.first().filter(|g| guards.iter().all(|other| other == *g)).cloned() else {
            return Ok(None);
        };
        if callee.is_collective() && !guard.is_empty() {
            return Ok(None);
        }
        if code.completes.as_ref().is_some_and(|completion| completion.begin().is_some()) {
            self.check_first(callee, &guard)?;
        }
        self.at_lane_zero = call.binding.insns.iter().all(|i| self.is_at_lane_zero(*i));
        let mut block = Block::new();
        let pieces = self.with_prelude(&mut block, |this| {
            code.text
                .iter()
                .map(|piece| this.piece(call, (callee, code), piece))
                .collect::<Result<Vec<_>, _>>()
        })?;
        let mut written: Vec<_> = call
            .binding
            .insns
            .iter()
            .map(|i| self.buffers[self.kernel.insns[*i].lhs.var.index()].clone())
            .collect();
        written.sort_unstable();
        written.dedup();
        block.push(Stmt::Intrinsic(Intrinsic {
            name: callee.name().to_owned(),
            pieces,
            written,
            origins: call.binding.insns.clone(),
            together: callee.axes_together(),
            asynchronous: code.completes.is_some(),
        }));
        Ok(Some(super::guarded(guard, block)))
    }

    fn piece(
        &mut self,
        call: &Call,
        (callee, code): (&Callee, &TargetCode),
        piece: &Piece,
    ) -> Result<CodePiece, CodegenError> {
        let (access, address, run) = match piece {
            Piece::Text(text) => return Ok(CodePiece::Text(text.clone())),
            Piece::Element(access) => (access, false, None),
            Piece::Address(access, run) => (access, true, *run),
            Piece::Map(argument) => return self.map(call, callee, *argument),
            Piece::Begin(argument, axis) => return self.begin(call, callee, *argument, *axis),
        };
        let name = &callee.kernel.vars[access.var].name;
        let Some(element) = call.binding.element(access) else {
            return Err(CodegenError::IntrinsicArgument {
                callee: callee.name().into(),
                argument: name.clone(),
            });
        };
        let is_value =
            matches!(call.binding.args.get(access.var.index()), Some(Arg::Value(_) | Arg::Param(_)));
        let value = match &element {
            Ir::Load(named) if !is_value => {
                let refuse = |why: &'static str| CodegenError::IntrinsicElement {
                    callee: callee.name().into(),
                    element: callee.kernel.show_access(access).to_string(),
                    var: self.kernel.vars[named.var].name.clone(),
                    why,
                };
                if !self.is_own_slice(call, access.var, named) {
                    return Err(refuse("lies in registers of another work-item, which nobody else can read"));
                }
                let written = callee.kernel.vars[access.var].kind != VarKind::Argument(Direction::In);
                let bytes = code.alignment(run, callee.kernel.vars[access.var].ty);
                if address && !self.is_aligned(named, bytes) {
                    return Err(refuse(
                        "is not known to lie in registers at as many bytes as the code needs",
                    ));
                }
                match (self.lane_read(named)?, self.shuffles_reach_all()) {
                    (None, _) => Expr::Load(self.place(named)?),
                    (Some(_), _) if address => {
                        return Err(refuse("lies in a register, which has no address"));
                    }
                    (Some(_), _) if written => {
                        return Err(refuse(
                            "lies in a register of another work-item, where the code may not write",
                        ));
                    }
                    (Some(_), false) => {
                        return Err(refuse(
                            "may lie in a register of another sub-group, which no shuffle reads",
                        ));
                    }
                    (Some(lane), true) => {
                        let place = self.place(named)?;
                        self.shuffled(place, lane, &self.kernel.vars[named.var])?
                    }
                }
            }
            value @ (Ir::Int(_)
            | Ir::Real(_)
            | Ir::Iname(_)
            | Ir::Load(_)
            | Ir::Unary(..)
            | Ir::Binary(..)
            | Ir::Call(..)
            | Ir::Cast(..)
            | Ir::Select(..)
            | Ir::Reduce(_)
            | Ir::Rule(..)
            | Ir::RuleParam(_)) => {
                let ty = callee.kernel.vars[access.var].ty;
                let value = self.expr_for(value, ty)?;
                self.stored(value, ty)
            }
        };
        Ok(if address { CodePiece::Address(value) } else { CodePiece::Value(value) })
    }
}

impl Lower<'_> {
    /// Checks that the first work-item of a group alone makes a call: it is in no loop over work-items.
    fn check_first(&self, callee: &Callee, guard: &[Expr]) -> Result<(), CodegenError> {
        let along = (0..3_u8).find(|axis| {
            let index = Expr::var(self.env.name(self.env.hardware(false, *axis)));
            let is_first = Expr::binary(Op::Eq, index, Expr::int(0));
            let has_several =
                self.axes.block[usize::from(*axis)].as_ref().is_some_and(|axis| axis.extent > 1);
            has_several && !guard.contains(&is_first)
        });
        match along {
            Some(axis) => Err(CodegenError::NotByTheFirst { callee: callee.name().into(), axis }),
            None => Ok(()),
        }
    }

    /// The address of the map of a tensor.
    fn map(&self, call: &Call, callee: &Callee, argument: VarId) -> Result<CodePiece, CodegenError> {
        let wanted = MapOfTensor::of(callee, &call.binding, argument);
        let found = self.maps.iter().find(|param| Some(&param.map) == wanted.as_ref());
        found.map(|param| CodePiece::Text(format!("&{}", param.name))).ok_or_else(|| {
            let argument = callee.kernel.vars[argument].name.clone();
            CodegenError::IntrinsicArgument { callee: callee.name().into(), argument }
        })
    }

    /// The index at which a window begins.
    fn begin(
        &mut self,
        call: &Call,
        callee: &Callee,
        argument: VarId,
        axis: usize,
    ) -> Result<CodePiece, CodegenError> {
        let offset = match call.binding.args.get(argument.index()) {
            Some(Arg::Window(window)) => window.axes.get(axis).map(|axis| axis.offset.clone()),
            Some(Arg::Unused | Arg::Param(_) | Arg::Value(_)) | None => None,
        };
        let Some(offset) = offset else {
            let argument = callee.kernel.vars[argument].name.clone();
            return Err(CodegenError::IntrinsicArgument { callee: callee.name().into(), argument });
        };
        Ok(CodePiece::Value(self.index(&offset)?.as_integer(&self.env).0))
    }

    /// Whether an element in registers lies at a multiple of some bytes among those of its work-item; of all
    /// of them in other memory, the verifier knows.
    fn is_aligned(&self, element: &Access, bytes: Option<u64>) -> bool {
        let var = &self.kernel.vars[element.var];
        let sliced = &self.placed.placement.sliced[element.var.index()];
        let Some(bytes) = bytes.filter(|_| sliced.contains(&true)) else { return true };
        Multiples::of(self.kernel).of_kept(var, element, sliced) * var.ty.bytes() >= bytes
    }

    /// Whether an element that the code names is in the slice of a private array that the work-item
    /// itself holds: that of what the meaning accesses through the same argument. The lanes of a
    /// sub-group are for [`Lower::lane_read`].
    fn is_own_slice(&self, call: &Call, argument: VarId, named: &Access) -> bool {
        let placement = &self.placed.placement;
        let lane_axis = placement.lanes[named.var.index()].map(|(axis, _)| axis);
        let callee = &self.kernel.callees[call.callee].kernel;
        let mut sites = callee.insns.values().flat_map(|insn| insn.reads().into_iter().chain([&insn.lhs]));
        let own = match sites.find(|a| a.var == argument).and_then(|a| call.binding.element(a)) {
            Some(Ir::Load(own)) => own,
            _ => return false,
        };
        let position = |a: &Access, axis: usize| Some(self.env.resolve(&a.index.get(axis)?.as_affine()?));
        let mut sliced = placement.sliced[named.var.index()].iter().enumerate();
        sliced.all(|(axis, sliced)| {
            let own = position(&own, axis);
            !sliced || Some(axis) == lane_axis || own.is_some() && own == position(named, axis)
        })
    }
}

fn windows(binding: &Binding) -> impl Iterator<Item = VarId> + '_ {
    binding.args.iter().filter_map(|arg| match arg {
        Arg::Window(window) => Some(window.var),
        Arg::Unused | Arg::Param(_) | Arg::Value(_) => None,
    })
}

/// Whether the code takes the address of what lives in private memory.
fn addresses_private(kernel: &Kernel, binding: &Binding, code: &TargetCode) -> bool {
    code.text.iter().any(|piece| match piece {
        Piece::Text(_) | Piece::Element(_) | Piece::Map(_) | Piece::Begin(..) => false,
        Piece::Address(access, _) => match binding.args.get(access.var.index()) {
            Some(Arg::Window(window)) => {
                let var = &kernel.vars[window.var];
                var.space == AddressSpace::Private && var.kind != VarKind::Argument(Direction::In)
            }
            Some(Arg::Unused | Arg::Param(_) | Arg::Value(_)) | None => false,
        },
    })
}
