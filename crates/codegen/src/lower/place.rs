//! Accesses: an element of a variable as a flat offset into its buffer.

use super::Lower;
use crate::ast::{Expr, IntFn, Name, Op, Place};
use crate::complex::ComplexOp;
use crate::error::CodegenError;
use crate::value::{Value, arithmetic, divide, exclusive_or};
use kingpost_ir::{
    Access, AddressSpace, Affine, AxisTag, Class, Expr as IrExpr, Id, InameId, Kernel, Layout, TableData,
    VarId, VarKind, Variable,
};

/// Whether the variable is a plain scalar in code: passed by value, or declared where it lives.
pub(crate) fn is_plain_scalar(var: &Variable, sliced: &[bool]) -> bool {
    let no_axes = var.shape.len() == sliced.iter().filter(|s| **s).count();
    let behind_pointer = match var.kind {
        VarKind::Argument(_) | VarKind::Temporary => var.space == AddressSpace::Global,
        VarKind::Table(_) => true,
        VarKind::Param => false,
    };
    no_axes && !behind_pointer && var.storage.is_none()
}

impl<'k> Lower<'k> {
    /// The value of an element.
    pub(super) fn load(&mut self, access: &Access) -> Result<Value, CodegenError> {
        let var = &self.kernel.vars[access.var];
        let scalar = access.index.is_empty();
        if scalar && var.ty.is_exact() && is_plain_scalar(var, &[]) {
            return Ok(Value::Affine(Affine::var(access.var)));
        }
        if let Some(entry) = self.entry(access) {
            return Ok(entry);
        }
        let place = self.place(access)?;
        let code = match self.lane_read(access)? {
            None => Expr::Load(place),
            Some(lane) => self.shuffled(place, lane, var)?,
        };
        Ok(match var.ty.class() {
            Class::Real => Value::Real(code.decoded(var.ty), var.ty.loaded()),
            // C computes in 32 bits with what has fewer
            Class::Exact => Value::Int(code, var.ty.loaded(), self.env.element_range(access.var)),
            Class::Word => Value::Word(code, var.ty),
            Class::Complex => Value::Complex(code, var.ty),
            Class::Truth => Value::Bool(code.nonzero()),
            Class::Record => return Err(self.internal(super::expr::NO_RECORDS)),
        })
    }

    /// The value of an entry of a table of literals whose indices are numbers here, as in loops
    /// that are written out; in a predicate, of any table, so that no code is left where it is
    /// known; or of the one entry of a table in constant memory.
    fn entry(&self, access: &Access) -> Option<Value> {
        let var = &self.kernel.vars[access.var];
        let VarKind::Table(data) = &var.kind else { return None };
        let literal = match var.space {
            AddressSpace::Literal => true,
            AddressSpace::Constant => self.in_predicate || data.len() == 1,
            AddressSpace::Global => self.in_predicate,
            AddressSpace::Local | AddressSpace::SubGroup | AddressSpace::Private => false,
        };
        if !literal || var.layout != Layout::default() {
            return None;
        }
        let number = |e: &IrExpr| self.env.resolve(&e.as_affine()?).as_constant();
        // an index that is out of bounds stands behind a guard that does not hold
        let place = var.row_major_place(access.index.iter().map(number))?;
        match data {
            TableData::Real(values) => {
                let ty = var.ty.loaded();
                values.get(place).map(|v| Value::Real(Expr::Real(v.0, ty), ty))
            }
            TableData::Complex(values) => values.get(place).map(|z| {
                let parts = [z.re, z.im].map(|x| Expr::Real(x.0, var.ty.part()));
                Value::Complex(Expr::Complex(ComplexOp::Make, var.ty, parts.into()), var.ty)
            }),
            TableData::Int(values) => values.get(place).map(|v| match var.ty.class() {
                Class::Truth => Value::Bool(Expr::Bool(*v != 0)),
                Class::Word => Value::Word(Expr::Int(*v, var.ty), var.ty),
                Class::Exact | Class::Real | Class::Complex | Class::Record => {
                    Value::Affine(Affine::constant(*v))
                }
            }),
        }
    }

    /// An index of an access. Integers are exact there, whatever they are made of.
    pub(super) fn index(&mut self, e: &IrExpr) -> Result<Value, CodegenError> {
        let outer = std::mem::replace(&mut self.in_index, true);
        let value = self.expr(e);
        self.in_index = outer;
        value
    }

    /// Where an element lies.
    pub(super) fn place(&mut self, access: &Access) -> Result<Place, CodegenError> {
        let var = &self.kernel.vars[access.var];
        let placed = self.placed;
        let sliced = &placed.placement.sliced[access.var.index()];
        let name = self.buffers[access.var.index()].clone();
        if is_plain_scalar(var, sliced) {
            return Ok(Place::scalar(name));
        }
        let mut index = Vec::with_capacity(access.index.len());
        for (k, e) in access.index.iter().enumerate() {
            if !sliced[k] {
                index.push((k, self.index(e)?));
            }
        }
        self.swizzle(var, access, &mut index)?;
        let strides = &self.strides[access.var.index()];
        let offset = match strides.get_or_init(|| kingpost_ir::layout::strides(var, sliced)) {
            Some(strides) => self.strided(strides, index),
            None => self.nested(var, index),
        };
        Ok(Place::element(name, offset.as_integer(&self.env).0))
    }

    /// The position along an axis instead of the index, where the layout swizzles one:
    /// `u ^ (r mod 2^b)`. One that is sliced has no position.
    fn swizzle(
        &mut self,
        var: &Variable,
        access: &Access,
        index: &mut [(usize, Value)],
    ) -> Result<(), CodegenError> {
        let Some(swizzle) = var.layout.swizzle else { return Ok(()) };
        let [axis, by] = [swizzle.axis, swizzle.by].map(|axis| axis as usize);
        let Some((_, unit)) = index.iter_mut().find(|(k, _)| *k == axis) else { return Ok(()) };
        let Some(extent) = var.shape[axis].as_constant() else {
            return Err(self.internal("a swizzled axis of parametric extent"));
        };
        // of a sliced one, too: a work-item's own elements are permuted alike
        let row = match self.index(&access.index[by])? {
            Value::Affine(row) => Value::Affine(row.minus(&row.floor_div(extent).times(extent))),
            row @ (Value::Int(..)
            | Value::Word(..)
            | Value::Real(..)
            | Value::Complex(..)
            | Value::Bool(_)) => {
                let (row, ty, range) =
                    divide(&self.env, row, Value::Affine(Affine::constant(extent)), IntFn::Mod);
                Value::Int(row, ty, range)
            }
        };
        *unit = exclusive_or(&self.env, unit, &row, extent);
        Ok(())
    }

    /// `sum index * stride`.
    fn strided(&self, strides: &[Affine], index: Vec<(usize, Value)>) -> Value {
        let mut sum = Value::Affine(Affine::constant(0));
        for (k, value) in index {
            let term = arithmetic(&self.env, Op::Mul, value, Value::Affine(strides[k].clone()));
            sum = arithmetic(&self.env, Op::Add, sum, term);
        }
        sum
    }

    /// `(i*n1 + j)*n2 + k`, for extents whose product is not affine.
    fn nested(&self, var: &Variable, mut index: Vec<(usize, Value)>) -> Value {
        let order = var.layout.order(var.shape.len());
        index.sort_by_key(|(k, _)| order.iter().position(|axis| axis == k));
        let mut sum = Value::Affine(Affine::constant(0));
        for (k, value) in index {
            let scaled = arithmetic(&self.env, Op::Mul, sum, Value::Affine(var.shape[k].clone()));
            sum = arithmetic(&self.env, Op::Add, scaled, value);
        }
        sum
    }

    /// Whether an integer temporary has one value for all work-items of a group: no loop over
    /// work-items sets it. What is set outside them is made of such values, as the placement
    /// lets no value flow through private memory to another work-item.
    pub(super) fn is_uniform_scalar(&self, var: VarId) -> bool {
        is_uniform_scalar(self.kernel, var)
    }
}

fn is_uniform_scalar(kernel: &Kernel, var: VarId) -> bool {
    let on_items = |l: &InameId| matches!(kernel.inames[*l].tag, AxisTag::Local(_));
    let schedule = kernel.schedule();
    let mut writes = schedule.iter().filter(|(insn, _)| kernel.insns[*insn].lhs.var == var);
    kernel.vars[var].space == AddressSpace::Local || writes.all(|(_, loops)| !loops.iter().any(on_items))
}

/// Names of the integer temporaries that have one value for all work-items of a group.
pub(crate) fn uniform_scalars(kernel: &Kernel, buffers: &[Name]) -> Vec<Name> {
    let temporary = |v: &VarId| {
        let var = &kernel.vars[*v];
        var.kind == VarKind::Temporary && var.is_integer_scalar()
    };
    let vars = kernel.vars.ids().filter(temporary).filter(|v| is_uniform_scalar(kernel, *v));
    vars.map(|v| buffers[v.index()].clone()).collect()
}
