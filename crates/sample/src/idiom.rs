//! Nests of samples that real programs have and single statements hardly ever make: sums in a
//! scalar, values handed over in an array, recurrences, prefix sums.

use super::draw::{Array, Draw, Extent, NODES, TABLE_LEN};
use super::entries::{Lines, unusual};
use super::plan::{IdiomPlan, RangePlan};
use super::range::pick;
use kingpost_ir::affine::Affine;
use kingpost_ir::constant::TableData;
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, UpdateOp};
use kingpost_ir::ids::InameId;
use kingpost_ir::types::ScalarType;

const OPERATORS: [UpdateOp; 4] = [UpdateOp::Add, UpdateOp::Max, UpdateOp::Min, UpdateOp::Mul];

impl Draw {
    /// Adds the nests of an idiom at the end of the kernel.
    pub(super) fn idiom(&mut self, plan: &IdiomPlan) {
        if self.is_of_records(plan) {
            return self.joined(plan);
        }
        if self.config.records && plan.index[1] & 16 != 0 && plan.op & 32 != 0 {
            return self.computed(plan);
        }
        if self.is_in_place(plan) {
            return self.stored_in_place(plan);
        }
        // what needs most steps to be used comes twice
        let all: [fn(&mut Self, &IdiomPlan); 14] = [
            Self::sum,
            Self::handed_over,
            Self::pair,
            Self::recurrence,
            Self::sum,
            Self::gather_and_scatter,
            Self::running_sum,
            Self::contraction,
            Self::contraction,
            Self::contraction,
            Self::products_at_points,
            Self::shared_scalar,
            Self::shared_scalar,
            Self::ended,
        ];
        let all = if !self.config.indirect {
            &all[..5]
        } else if !self.config.reductions {
            &all[..6]
        } else {
            &all[..]
        };
        pick(all, plan.kind)(self, plan);
    }

    /// `t = 0`, then a loop of updates of `t`, or two, then an update of an element by `t`.
    fn sum(&mut self, plan: &IdiomPlan) {
        let op = pick(&OPERATORS, plan.op);
        let nothing = op.real_of_nothing();
        // what both ignore is a start, too
        let odd = self.config.typed && plan.index[0] & 64 != 0 && nothing.is_infinite();
        let nothing = if odd { f64::NAN } else { nothing };
        let narrow = self.config.typed && plan.index[1] & 64 != 0;
        let ty = if narrow { ScalarType::F32 } else { ScalarType::F64 };
        let name = self.name("t");
        let total = Access::scalar(self.b.temporary(name, ty, []));
        self.inside(plan.outer, |this, _| {
            let name = this.name("s");
            this.b.assign(name, total.clone(), nothing);
            for _ in 0..1 + plan.kind / 128 {
                let (iname, extent) = this.loop_of(plan.inner);
                this.b.open(iname);
                this.scope.push((iname, extent));
                let value = this.factor(op, &plan.value);
                let (name, value) = (this.name("s"), this.stored(ty, value));
                this.b.update(name, total.clone(), op, value);
                this.scope.pop();
                this.b.close_loop();
            }
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let total = this.stored(ty, Expr::Load(total));
            this.b.update(name, lhs, op, total);
        });
    }

    /// A loop that a flag ends: it is true first, has a value in each iteration, and guards all of them.
    fn ended(&mut self, plan: &IdiomPlan) {
        let (name, op) = (self.name("t"), pick(&OPERATORS, plan.op));
        let flag = self.b.temporary(name, ScalarType::Bool, []);
        self.inside(plan.outer, |this, _| {
            let name = this.name("s");
            this.b.assign(name, Access::scalar(flag), Expr::truth(true));
            let (iname, extent) = this.loop_of(plan.inner);
            this.b.open(iname);
            this.scope.push((iname, extent));
            let (name, goes_on) = (this.name("s"), this.condition(plan.kind / 16));
            let next = this.b.assign(name, Access::scalar(flag), goes_on);
            let value = this.factor(op, &plan.value);
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let value = this.stored(ty, value);
            let update = this.b.update(name, lhs, op, value);
            for insn in [next, update] {
                this.b.insn_mut(insn).predicate = Some(Expr::scalar(flag));
            }
            this.scope.pop();
            this.b.close_loop();
        });
    }

    /// One loop fills an array, another one uses it; then the same with a second array.
    fn handed_over(&mut self, plan: &IdiomPlan) {
        let extent = pick(&[Extent::N, Extent::M, Extent::Constant(TABLE_LEN)], plan.outer.extent);
        for _ in 0..2 {
            let (name, size) = (self.name("t"), self.size(extent));
            let var = self.b.temporary(name, ScalarType::F64, [size]);
            let array = Array { var, ty: ScalarType::F64, axes: vec![extent], written: true };
            self.over(extent, |this, i| {
                let (value, name) = (this.expression(&plan.value), this.name("s"));
                this.b.assign(name, Access::new(var, [i.into()]), value);
            });
            self.over(extent, |this, _| {
                let value = (Expr::Load(this.element(&array, plan.index)) - 0.25) * 0.5;
                let ((lhs, ty), name) = (this.target(plan), this.name("s"));
                let value = this.stored(ty, value);
                this.b.update(name, lhs, UpdateOp::Add, value);
            });
        }
    }

    /// An array whose extent is a parameter that is computed from the others, filled and used.
    fn computed(&mut self, plan: &IdiomPlan) {
        let [n, m] = [self.n, self.m].map(Expr::scalar);
        let of = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
        let choices = [
            n.clone() * m.clone(),
            n.clone() * 2 + 1,
            of(BinaryOp::Max, &n, &m),
            of(BinaryOp::FloorDiv, &(n.clone() * m.clone()), &m) + m.clone(),
            of(BinaryOp::Min, &n, &m) + of(BinaryOp::Mod, &n, &m),
        ];
        let [name, array] = [self.name("d"), self.name("t")];
        let size = self.b.defined_param(name, ScalarType::I64, pick(&choices, plan.kind));
        let array = self.b.temporary(array, ScalarType::F64, [Affine::var(size)]);
        let mut each = |of: &mut dyn FnMut(&mut Self, Access)| {
            let name = self.name("i");
            let i = self.b.open_loop(name, Affine::constant(0), Affine::var(size));
            of(self, Access::new(array, [i.into()]));
            self.b.close_loop();
        };
        each(&mut |this, element| {
            let (value, name) = (this.expression(&plan.value), this.name("s"));
            let i = Expr::Cast(ScalarType::F64, Box::new(element.index[0].clone()));
            this.b.assign(name, element, Expr::call(MathFn::Sin, [i + value]));
        });
        each(&mut |this, element| {
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let value = this.stored(ty, Expr::Load(element) * 0.5);
            this.b.update(name, lhs, UpdateOp::Add, value);
        });
    }

    /// Two values of each iteration in the columns of one array.
    fn pair(&mut self, plan: &IdiomPlan) {
        let extent = pick(&[Extent::N, Extent::M, Extent::Constant(TABLE_LEN)], plan.outer.extent);
        let (name, size) = (self.name("t"), self.size(extent));
        let var = self.b.temporary(name, ScalarType::F64, [size, Affine::constant(2)]);
        let at = |i: InameId, column: i64| Access::new(var, [i.into(), Expr::from(column)]);
        self.over(extent, |this, i| {
            for column in 0..2 {
                let (value, name) = (this.expression(&plan.value), this.name("s"));
                this.b.assign(name, at(i, column), value);
            }
        });
        self.over(extent, |this, i| {
            // a sum that is a factor, and a factor that two terms have
            let [first, second] = [0, 1].map(|column| Expr::Load(at(i, column)));
            let value = first.clone() * (Expr::from(0.5) - second) + first * 0.25;
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let value = this.stored(ty, value);
            this.b.update(name, lhs, UpdateOp::Add, value);
        });
    }

    /// Updates of elements by those that the same rows of a map name, or the same columns of another one.
    fn gather_and_scatter(&mut self, plan: &IdiomPlan) {
        let read: Vec<_> = self.arrays.iter().filter(|a| !a.written && a.axes == [Extent::N]).collect();
        let read = read[usize::from(plan.inner.shape) % read.len()];
        let written: Vec<_> = self.arrays.iter().filter(|a| a.written && a.axes == [Extent::N]).collect();
        let written = written[usize::from(plan.target) % written.len()];
        let (of, to, ty, op) = (read.var, written.var, written.ty, pick(&OPERATORS, plan.op));
        let [rows, columns] = self.nodes;
        let by_columns = self.config.arithmetic && plan.inner.extent & 1 != 0;
        self.over(Extent::N, |this, cell| {
            this.over(Extent::Constant(NODES), |this, node| {
                let element = if by_columns {
                    Expr::load(columns, [node.into(), cell.into()])
                } else {
                    Expr::load(rows, [cell.into(), node.into()])
                };
                let value = this.factor(op, &plan.value) * Expr::load(of, [element.clone()]);
                let (name, value) = (this.name("s"), this.stored(ty, value));
                this.b.update(name, Access::new(to, [element]), op, value);
            });
        });
    }

    /// Every element is made of the one before.
    fn recurrence(&mut self, plan: &IdiomPlan) {
        let flat: Vec<_> = self.arrays.iter().filter(|a| a.written && a.axes == [Extent::N]).collect();
        let array = flat[usize::from(plan.target) % flat.len()];
        let (var, ty) = (array.var, array.ty);
        let (name, n) = (self.name("i"), self.size(Extent::N));
        let i = self.b.open_loop(name, Affine::constant(1), n);
        self.scope.push((i, Extent::N));
        let op = pick(&OPERATORS, plan.op);
        let value = self.factor(op, &plan.value);
        let value = self.stored(ty, value);
        let before = Expr::load(var, [Expr::from(i) - 1]);
        let name = self.name("s");
        self.b.assign(name, Access::new(var, [i.into()]), op.joined(before, value));
        self.scope.pop();
        self.b.close_loop();
    }

    /// Every element is a sum over the earlier iterations, with its own or without.
    fn running_sum(&mut self, plan: &IdiomPlan) {
        self.inside(RangePlan { shape: 0, ..plan.outer }, |this, (i, extent)| {
            let own = i64::from(plan.inner.shape.is_multiple_of(2));
            let name = this.name("i");
            let j = this.b.range(name, Affine::constant(0), Affine::iname(i).plus_constant(own));
            let around = std::mem::replace(&mut this.scope, vec![(j, extent)]);
            let op = pick(&OPERATORS, plan.op);
            let body = this.factor(op, &plan.value);
            this.scope = around;
            let sum = Expr::reduce(op, [j], body);
            let extreme = matches!(op, UpdateOp::Min | UpdateOp::Max); // infinite, if over nothing
            let value = if extreme { Expr::call(MathFn::Tanh, [sum]) } else { sum };
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let value = this.stored(ty, value);
            this.b.assign(name, lhs, value);
        });
    }

    /// A sum of products with a factor that stays the same in it, or over the points of a rule.
    fn contraction(&mut self, plan: &IdiomPlan) {
        if plan.op & 64 != 0 {
            return if plan.op & 32 != 0 { self.products_with_rows(plan) } else { self.quadrature(plan) };
        }
        if plan.op & 48 == 48 {
            return self.products_of_pairs(plan);
        }
        if plan.op & 48 == 16 {
            return self.below_maximum(plan);
        }
        self.inside(plan.outer, |this, _| {
            let factor = Expr::call(MathFn::Cos, [this.expression(&plan.value)]);
            let (iname, extent) = this.loop_of(plan.inner);
            this.scope.push((iname, extent));
            let body = factor * this.expression(&plan.value);
            this.scope.pop();
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let sum = this.stored(ty, Expr::reduce(UpdateOp::Add, [iname], body));
            this.b.update(name, lhs, UpdateOp::Add, sum);
        });
    }

    /// A value at points by a table, and its products with another column of the table.
    fn quadrature(&mut self, plan: &IdiomPlan) {
        let mut entries: Vec<f64> =
            (0..2 * TABLE_LEN).map(|k| ((5 * k + 3) % 16) as f64 / 8.0 - 1.0).collect();
        let back = unusual(&mut entries, 2, Lines::Columns, plan.index[0] >> 5);
        let shape = [TABLE_LEN as usize, 2];
        let values = TableData::real(entries);
        let (name, at) = (self.name("phi"), self.name("t"));
        let table = self.b.table(name, ScalarType::F64, shape, values);
        let value = Access::scalar(self.b.temporary(at, ScalarType::F64, []));
        self.inside(plan.outer, |this, _| {
            let (name, size) = (this.name("i"), this.size(Extent::Constant(TABLE_LEN)));
            let point = this.b.open_loop(name, Affine::constant(0), size);
            let entry = |column: i64| Expr::load(table, [point.into(), Expr::from(column)]);
            let (name, given) = (this.name("s"), this.expression(&plan.value));
            this.b.assign(name, value.clone(), entry(0) * given);
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let term = this.stored(ty, scaled(Expr::Load(value) * entry(1), back));
            this.b.update(name, lhs, UpdateOp::Add, term);
            this.b.close_loop();
        });
    }

    /// Values of an element times the rows of a table, one of which is zero.
    fn products_with_rows(&mut self, plan: &IdiomPlan) {
        let extent = Extent::Constant(TABLE_LEN);
        let row = |k: i64| ((7 * k + 2) % 8) as f64 / 4.0;
        let is_zero = plan.index[0] >> 5 < 5;
        let mut entries: Vec<f64> =
            (0..2 * TABLE_LEN).map(|k| if k < TABLE_LEN || !is_zero { row(k) } else { 0.0 }).collect();
        let back = unusual(&mut entries, TABLE_LEN as usize, Lines::Rows, plan.index[0] >> 5);
        let values = TableData::real(entries);
        let (name, of_values, total) = (self.name("phi"), self.name("t"), self.name("t"));
        let table = self.b.table(name, ScalarType::F64, [2, TABLE_LEN as usize], values);
        let elements = self.b.temporary(of_values, ScalarType::F64, [Affine::constant(TABLE_LEN)]);
        let total = Access::scalar(self.b.temporary(total, ScalarType::F64, []));
        self.inside(plan.outer, |this, _| {
            this.over(extent, |this, j| {
                let (value, name) = (this.expression(&plan.value), this.name("s"));
                this.b.assign(name, Access::new(elements, [j.into()]), value);
            });
            let name = this.name("s");
            this.b.assign(name, total.clone(), 0.0);
            for row in 0..2 {
                this.over(extent, |this, j| {
                    let entry = Expr::load(table, [Expr::from(row), j.into()]);
                    let term = entry * Expr::load(elements, [j.into()]);
                    let (term, name) = (if row == 1 { scaled(term, back) } else { term }, this.name("s"));
                    this.b.update(name, total.clone(), UpdateOp::Add, term);
                });
            }
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let total = this.stored(ty, Expr::Load(total.clone()));
            this.b.update(name, lhs, UpdateOp::Add, total);
        });
    }

    /// The symmetric matrix of the products of entries of a table, scaled by a value.
    fn products_of_pairs(&mut self, plan: &IdiomPlan) {
        let extent = Extent::Constant(TABLE_LEN);
        let size = TABLE_LEN as usize;
        let entries = TableData::real((0..TABLE_LEN).map(|k| ((3 * k + 1) % 8) as f64 / 4.0 - 1.0));
        let (name, of_pairs) = (self.name("phi"), self.name("t"));
        let table = self.b.table(name, ScalarType::F64, [size], entries);
        let matrix =
            self.b.temporary(of_pairs, ScalarType::F64, [size, size].map(|n| Affine::constant(n as i64)));
        let entry = |i: InameId, j: InameId| Access::new(matrix, [i.into(), j.into()]);
        let scale = self.name("t");
        let scale = Access::scalar(self.b.temporary(scale, ScalarType::F64, []));
        self.inside(plan.outer, |this, _| {
            let (value, name) = (this.expression(&plan.value), this.name("s"));
            this.b.assign(name, scale.clone(), value);
            this.over(extent, |this, i| {
                this.over(extent, |this, j| {
                    let name = this.name("s");
                    this.b.assign(name, entry(i, j), Expr::from(0.0));
                });
            });
            this.over(extent, |this, i| {
                this.over(extent, |this, j| {
                    let pair = Expr::load(table, [i.into()]) * Expr::load(table, [j.into()]);
                    let name = this.name("s");
                    this.b.update(name, entry(i, j), UpdateOp::Add, Expr::Load(scale.clone()) * pair);
                });
            });
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let read = this.stored(ty, Expr::load(matrix, [Expr::from(2), Expr::from(0)]));
            this.b.update(name, lhs, UpdateOp::Add, read);
        });
    }

    /// The symmetric matrix of the sums over points of a value times the products of entries of a table.
    fn products_at_points(&mut self, plan: &IdiomPlan) {
        let (points, extent) = (Extent::Constant(TABLE_LEN), Extent::Constant(2));
        let mut entries: Vec<f64> =
            (0..2 * TABLE_LEN).map(|k| ((3 * k + 1) % 8) as f64 / 4.0 - 1.0).collect();
        let back = unusual(&mut entries, 2, Lines::Columns, plan.index[0] >> 5);
        let entries = TableData::real(entries);
        let [name, of_pairs, at] = [self.name("phi"), self.name("t"), self.name("t")];
        let table = self.b.table(name, ScalarType::F64, [TABLE_LEN as usize, 2], entries);
        let matrix = self.b.temporary(of_pairs, ScalarType::F64, [2, 2].map(Affine::constant));
        let value = Access::scalar(self.b.temporary(at, ScalarType::F64, []));
        let entry = |i: InameId, j: InameId| Access::new(matrix, [i.into(), j.into()]);
        self.inside(plan.outer, |this, _| {
            this.over(extent, |this, i| {
                this.over(extent, |this, j| {
                    let name = this.name("s");
                    this.b.assign(name, entry(i, j), Expr::from(0.0));
                });
            });
            this.over(points, |this, q| {
                let (given, name) = (this.expression(&plan.value), this.name("s"));
                this.b.assign(name, value.clone(), given);
                this.over(extent, |this, i| {
                    this.over(extent, |this, j| {
                        let at = |l: InameId| Expr::load(table, [q.into(), l.into()]);
                        let (term, name) = (Expr::Load(value.clone()) * at(i) * at(j), this.name("s"));
                        this.b.update(name, entry(i, j), UpdateOp::Add, term);
                    });
                });
            });
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let read = scaled(Expr::load(matrix, [Expr::from(1), Expr::from(0)]), back);
            let read = this.stored(ty, read);
            this.b.update(name, lhs, UpdateOp::Add, read);
        });
    }

    /// A scalar that instructions of one loop share, once or twice in an iteration, between lines of
    /// elements; then sums of products of the results with rows of a table.
    fn shared_scalar(&mut self, plan: &IdiomPlan) {
        let extent = Extent::Constant(TABLE_LEN);
        let entries = TableData::real((0..2 * TABLE_LEN).map(|k| ((5 * k + 2) % 8) as f64 / 4.0 - 0.5));
        let [name, given, shared, made] = ["phi", "t", "t", "t"].map(|stem| self.name(stem));
        let table = self.b.table(name, ScalarType::F64, [2, TABLE_LEN as usize], entries);
        let line = || [Affine::constant(TABLE_LEN)];
        let given = self.b.temporary(given, ScalarType::F64, line());
        let made = self.b.temporary(made, ScalarType::F64, line());
        let shared = Access::scalar(self.b.temporary(shared, ScalarType::F64, []));
        self.inside(plan.outer, |this, _| {
            this.over(extent, |this, j| {
                let (value, name) =
                    (Expr::call(MathFn::Tanh, [this.expression(&plan.value)]), this.name("s"));
                this.b.assign(name, Access::new(given, [j.into()]), value);
            });
            this.over(extent, |this, k| {
                let element = || Expr::load(given, [k.into()]);
                let name = this.name("s");
                this.b.assign(name, shared.clone(), element() * (element() + 0.5));
                let name = this.name("s");
                this.b.assign(name, Access::new(made, [k.into()]), Expr::Load(shared.clone()) * 0.5);
                if plan.op & 64 != 0 {
                    let name = this.name("s");
                    this.b.assign(name, shared.clone(), Expr::load(made, [k.into()]) - element());
                    let ((lhs, ty), name) = (this.target(plan), this.name("s"));
                    let value = this.stored(ty, Expr::Load(shared.clone()));
                    this.b.update(name, lhs, UpdateOp::Add, value);
                }
            });
            for row in 0..2 {
                let name = this.name("i");
                let l = this.b.range(name, Affine::constant(0), Affine::constant(TABLE_LEN));
                let entry = Expr::load(table, [Expr::from(row), l.into()]);
                let sum = Expr::reduce(UpdateOp::Add, [l], entry * Expr::load(made, [l.into()]));
                let ((lhs, ty), name) = (this.target(plan), this.name("s"));
                let sum = this.stored(ty, sum);
                this.b.update(name, lhs, UpdateOp::Add, sum);
            }
        });
    }

    /// The maximum of a line, then the sum of exponentials of differences from it.
    fn below_maximum(&mut self, plan: &IdiomPlan) {
        let read: Vec<_> = self.arrays.iter().filter(|a| !a.written && a.axes == [Extent::N]).collect();
        let of = read[usize::from(plan.inner.shape) % read.len()].var;
        let [top, total] = ["t", "t"].map(|stem| {
            let name = self.name(stem);
            Access::scalar(self.b.temporary(name, ScalarType::F64, []))
        });
        self.inside(plan.outer, |this, _| {
            let name = this.name("s");
            this.b.assign(name, top.clone(), f64::NEG_INFINITY);
            this.over(Extent::N, |this, j| {
                let name = this.name("s");
                this.b.update(name, top.clone(), UpdateOp::Max, Expr::load(of, [j.into()]));
            });
            let name = this.name("s");
            this.b.assign(name, total.clone(), 0.0);
            this.over(Extent::N, |this, j| {
                let below = Expr::load(of, [j.into()]) - Expr::Load(top.clone());
                let weight = Expr::call(MathFn::Exp, [below]);
                let (value, name) = (this.expression(&plan.value), this.name("s"));
                this.b.update(name, total.clone(), UpdateOp::Add, weight * value);
            });
            let ((lhs, ty), name) = (this.target(plan), this.name("s"));
            let total = this.stored(ty, Expr::Load(total.clone()));
            this.b.update(name, lhs, UpdateOp::Add, total);
        });
    }

    /// A value to join by an operator; factors are at most 1, so that products stay small.
    fn factor(&mut self, op: UpdateOp, plan: &super::plan::ExprPlan) -> Expr {
        let value = self.expression(plan);
        if op == UpdateOp::Mul { Expr::call(MathFn::Cos, [value]) } else { value }
    }

    /// An element of reals that is written, and its type.
    pub(super) fn target(&self, plan: &IdiomPlan) -> (Access, ScalarType) {
        let written: Vec<_> = self.arrays.iter().filter(|a| a.written).collect();
        let target = written[usize::from(plan.target) % written.len()];
        (self.element(target, plan.index), target.ty)
    }

    /// A loop of a plan.
    pub(super) fn inside(&mut self, plan: RangePlan, body: impl FnOnce(&mut Self, (InameId, Extent))) {
        let (iname, extent) = self.range(plan);
        self.b.open(iname);
        self.scope.push((iname, extent));
        body(self, (iname, extent));
        self.scope.pop();
        self.b.close_loop();
    }

    /// A loop over all values.
    fn over(&mut self, extent: Extent, body: impl FnOnce(&mut Self, InameId)) {
        let (name, size) = (self.name("i"), self.size(extent));
        let iname = self.b.open_loop(name, Affine::constant(0), size);
        self.scope.push((iname, extent));
        body(self, iname);
        self.scope.pop();
        self.b.close_loop();
    }
}

/// A product with a number other than 1.
fn scaled(value: Expr, by: f64) -> Expr {
    if by == 1.0 { value } else { value * by }
}
