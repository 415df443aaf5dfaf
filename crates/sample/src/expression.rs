//! Expressions of samples: bounded values, indices in range.

use super::draw::{Array, Draw, Extent};
use super::plan::ExprPlan;
use super::range::pick;
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use kingpost_ir::types::ScalarType;

impl Draw {
    /// A real expression. Written arrays are read through a bounded function, so that
    /// values cannot grow from statement to statement.
    pub(super) fn expression(&mut self, plan: &ExprPlan) -> Expr {
        match plan {
            ExprPlan::Literal(k) => Expr::from(f64::from(*k) / 128.0 - 1.0),
            ExprPlan::Load(array, index) => self.load(*array, *index),
            ExprPlan::Loop(k) if self.scope.is_empty() => self.expression(&ExprPlan::Literal(*k)),
            ExprPlan::Loop(k) => {
                let (iname, _) = pick(&self.scope, *k);
                Expr::Cast(ScalarType::F64, Box::new(iname.into()))
            }
            ExprPlan::Negate(a) => -self.expression(a),
            ExprPlan::Binary(op, a, b) => {
                let ops = [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Sub, BinaryOp::Min, BinaryOp::Max];
                Expr::binary(pick(&ops, *op), self.expression(a), self.expression(b))
            }
            // the high picks, so that small ones are simple
            ExprPlan::Call(208.., a) if self.config.records => self.external(a),
            ExprPlan::Call(k @ 160..208, _) if self.config.arithmetic && self.config.typed => {
                self.converted(*k)
            }
            ExprPlan::Call(function, a) => {
                let functions = [MathFn::Fabs, MathFn::Sin, MathFn::Cos, MathFn::Tanh, MathFn::Atan];
                Expr::call(pick(&functions, *function), [self.expression(a)])
            }
            ExprPlan::Choose(condition, a, b) => {
                let condition = self.condition(*condition);
                Expr::Select(Box::new(condition), Box::new(self.expression(a)), Box::new(self.expression(b)))
            }
            ExprPlan::Reduce(op, range, body) => self.reduction(*op, *range, body),
            ExprPlan::Literals(k, _) if !self.config.typed => self.expression(&ExprPlan::Literal(*k)),
            ExprPlan::Integer(a) | ExprPlan::Single(a) if !self.config.typed => self.expression(a),
            ExprPlan::Literals(k, range) => self.literals(*k, *range),
            ExprPlan::Integer(a) => self.integer_as_real(a),
            ExprPlan::Single(a) => Expr::Cast(ScalarType::F32, Box::new(self.expression(a))),
        }
    }

    /// Products and extrema of bounded factors; the extrema of nothing are infinite, so they are
    /// brought back to the interval.
    fn reduction(&mut self, op: u8, range: super::plan::RangePlan, body: &ExprPlan) -> Expr {
        let op = pick(&[UpdateOp::Add, UpdateOp::Max, UpdateOp::Min, UpdateOp::Mul], op);
        let (iname, extent) = self.range(range);
        self.scope.push((iname, extent));
        let body = self.expression(body);
        self.scope.pop();
        match op {
            UpdateOp::Add => Expr::reduce(op, [iname], body),
            UpdateOp::Mul => Expr::reduce(op, [iname], Expr::call(MathFn::Tanh, [body])),
            UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_) => {
                Expr::call(MathFn::Tanh, [Expr::reduce(op, [iname], body)])
            }
        }
    }

    fn load(&mut self, array: u8, index: [u8; 2]) -> Expr {
        let choice = usize::from(array) % (self.arrays.len() + 1);
        let Some(array) = self.arrays.get(choice) else { return Expr::scalar(self.alpha) };
        let value = Expr::Load(self.element(array, index));
        if array.written {
            return Expr::call(MathFn::Sin, [value]);
        }
        // what is given has its sign and is zero whatever rounding does to the rest
        match index[1] >> 5 {
            7 if self.config.typed => Expr::call(MathFn::Atan, [Expr::binary(BinaryOp::Div, 0.5, value)]),
            6 if self.config.typed => Expr::call(MathFn::Copysign, [Expr::from(0.5), value]),
            _ => value,
        }
    }

    /// An element that exists.
    pub(super) fn element(&self, array: &Array, index: [u8; 2]) -> Access {
        let axes = array.axes.iter().zip(index);
        Access::new(array.var, axes.map(|(extent, k)| self.index(*extent, k)).collect::<Vec<_>>())
    }

    /// An integer expression from 0 to below the extent, the simplest first.
    pub(super) fn index(&self, extent: Extent, k: u8) -> Expr {
        let last = || Expr::from_affine(&self.size(extent).plus_constant(-1));
        let loops_of = |e: Extent| self.scope.iter().rev().filter(move |(_, f)| *f == e).map(|(i, _)| *i);
        let mut choices: Vec<Expr> = loops_of(extent).map(Expr::from).collect();
        choices.push(Expr::from(0));
        choices.extend(loops_of(extent).map(|i| last() - Expr::from(i)));
        if self.config.indirect && extent == Extent::N {
            choices.extend(loops_of(Extent::N).map(|i| Expr::load(self.permutation, [i.into()])));
            let columns: Vec<Expr> = loops_of(Extent::M).map(Expr::from).chain([Expr::from(0)]).collect();
            for row in loops_of(Extent::N) {
                choices.extend(columns.iter().map(|c| Expr::load(self.map, [row.into(), c.clone()])));
            }
        }
        for (other, of) in self.scope.iter().filter(|_| self.config.shaped) {
            if *of != extent {
                choices.push(Expr::binary(BinaryOp::Min, *other, last()));
            } else {
                choices.push(Expr::binary(BinaryOp::FloorDiv, *other, 2));
                choices.push(Expr::binary(BinaryOp::Min, Expr::from(*other) + 1, last()));
            }
        }
        pick(&choices, k)
    }

    /// A truth value.
    pub(super) fn condition(&self, k: u8) -> Expr {
        let n = Expr::scalar(self.n);
        let mut choices = vec![
            Expr::binary(BinaryOp::Lt, Expr::scalar(self.alpha), 0.25),
            Expr::binary(BinaryOp::Ne, Expr::scalar(self.m), n.clone()),
        ];
        for (i, _) in &self.scope {
            choices.push(Expr::binary(BinaryOp::Lt, *i, 2));
            choices.push(Expr::binary(BinaryOp::Eq, Expr::binary(BinaryOp::Mod, *i, 2), 0));
        }
        for (i, _) in self.scope.iter().filter(|(_, e)| *e == Extent::N && self.config.typed) {
            // with a nan neither is true
            choices.push(Expr::binary(BinaryOp::Lt, Expr::load(self.odd, [(*i).into()]), 0.25));
            choices.push(Expr::binary(BinaryOp::Le, 0.25, Expr::load(self.odd, [(*i).into()])));
            let mask = Expr::load(self.mask, [(*i).into()]);
            choices.push(mask.clone());
            if self.config.records {
                choices.push(Expr::binary(BinaryOp::Eq, mask, Expr::binary(BinaryOp::Lt, *i, 2)));
            }
        }
        for pair in self.scope.windows(2) {
            choices.push(Expr::binary(BinaryOp::Le, pair[0].0, pair[1].0));
            let sum = Expr::from(pair[0].0) + Expr::from(pair[1].0);
            let less = Expr::binary(BinaryOp::Lt, sum, n.clone());
            let differ = Expr::binary(BinaryOp::Eq, pair[0].0, pair[1].0);
            let differ = Expr::Unary(UnaryOp::Not, Box::new(differ));
            choices.push(less.clone());
            choices.push(Expr::binary(BinaryOp::And, less, differ));
        }
        pick(&choices, k)
    }
}
