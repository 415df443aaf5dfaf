//! The walk over the statements of a function.

use super::counts::{GlobalAccesses, Integers, Traffic};
use super::live::Lives;
use super::memory::{Addresses, Service, Touched};
use super::standing::{array_words, operations};
use super::value::{Value, call, is_real, of_parts, operate};
use crate::ast::{Atomic, CodePiece, Declare, Expr, Extent, For, Intrinsic, Name, Op, Place, Stmt};
use crate::program::Code;
use kingpost_ir::{MathFn, ScalarType, UpdateOp};
use std::collections::HashMap;

/// Iterations of a loop up to which all are walked.
const ALL: i64 = 12;

/// Iterations that are walked of a longer loop: the first two, the last, and some between.
const BETWEEN: i64 = 3;

/// Where an array lives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Global,
    Constant,
    Local,
    Private,
}

/// An array.
#[derive(Clone, Copy)]
struct Buffer {
    space: Space,
    ty: ScalarType,
}

/// How an access uses memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Reduce,
}

/// The state of a walk.
pub(super) struct Walker<'w> {
    integers: &'w dyn Integers,
    service: Service,
    block: [u64; 3],
    group: [i64; 3],
    buffers: HashMap<Name, Buffer>,
    /// Integers by name, and those of private arrays and of local memory by name and element.
    scalars: HashMap<Name, Value>,
    elements: HashMap<(Name, i64), Value>,
    mask: Vec<bool>,
    /// Sub-groups that take part.
    active: f64,
    /// Times that the current statement stands for.
    weight: f64,
    /// Variables of loops around the current statement.
    loops: Vec<Name>,
    lives: Lives,
    now: u64,
    left: u64,
    touched: [Touched; 3],
    traffic: Traffic,
}

impl<'w> Walker<'w> {
    pub(super) fn new(code: &Code, group: [i64; 3], integers: &'w dyn Integers, limit: u64) -> Self {
        let function = &code.function;
        let service = Service { banks: code.banks, width: code.sub_group.width() as usize };
        let items = function.block.iter().product::<u64>() as usize;
        let mut buffers = HashMap::new();
        let mut scalars = HashMap::new();
        for param in &function.params {
            if param.buffer.is_some() {
                buffers.insert(param.name.clone(), Buffer { space: Space::Global, ty: param.ty });
            } else {
                let value = integers.param(&param.name).map_or(Value::Unknown, Value::Uniform);
                scalars.insert(param.name.clone(), if is_real(param.ty) { Value::Real } else { value });
            }
        }
        for table in &function.constants {
            buffers.insert(table.name.clone(), Buffer { space: Space::Constant, ty: table.ty });
        }
        let sub_groups = items.div_ceil(service.width);
        Self {
            integers,
            service,
            block: function.block,
            group,
            buffers,
            scalars,
            elements: HashMap::new(),
            mask: vec![true; items],
            active: sub_groups as f64,
            weight: 1.0,
            loops: Vec::new(),
            lives: Lives::default(),
            now: 0,
            left: limit,
            touched: Default::default(),
            traffic: Traffic {
                sub_groups: sub_groups as u64,
                complete: true,
                code: operations(&function.body),
                array_words: array_words(&function.body),
                ..Traffic::default()
            },
        }
    }

    pub(super) fn finish(mut self) -> Traffic {
        self.traffic.live_words = self.lives.peak();
        for (array, sectors) in self.touched.iter().flat_map(|touched| &touched.arrays) {
            *self.traffic.arrays.entry(array.to_string()).or_default() += sectors;
        }
        self.traffic
    }

    pub(super) fn block(&mut self, block: &[Stmt]) {
        for statement in block {
            if self.left == 0 {
                self.traffic.complete = false;
                return;
            }
            self.left -= 1;
            self.now += 1;
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Comment(_) | Stmt::Iteration(_) => {}
            Stmt::Declare(declared) => self.declare(declared),
            Stmt::Assign { place, op, value, .. } => self.assign(place, *op, value),
            Stmt::Atomic(atomic) => self.atomic(atomic),
            Stmt::Intrinsic(intrinsic) => self.intrinsic(intrinsic),
            Stmt::If { condition, body } => {
                let holds = self.visit(condition);
                self.masked(&holds, |walker| walker.block(body));
            }
            Stmt::For(repeated) => self.repeat(repeated),
            Stmt::Barrier(fence) => {
                if fence.scope == kingpost_analysis::placement::Scope::Group {
                    self.traffic.barriers += self.weight;
                }
            }
        }
    }

    /// Instructions of all sub-groups that take part.
    fn issued(&self) -> f64 {
        self.weight * self.active
    }

    fn declare(&mut self, declared: &Declare) {
        let Declare { name, ty, len, lanes, value, local, .. } = declared;
        if len.is_some() || *local {
            let space = if *local { Space::Local } else { Space::Private };
            self.buffers.insert(name.clone(), Buffer { space, ty: *ty });
            return;
        }
        let found = value.as_ref().map(|e| self.visit(e));
        if ty.is_exact() {
            self.scalars.insert(name.clone(), found.clone().unwrap_or(Value::Unknown));
        }
        if found.is_some() {
            self.write_private(name, 0, *ty, u64::from(*lanes), false);
        }
    }

    fn write_private(&mut self, name: &Name, element: i64, ty: ScalarType, lanes: u64, updates: bool) {
        let words = (ty.bytes() * lanes).div_ceil(4);
        self.lives.written(name, element, self.now, words, updates);
    }

    fn assign(&mut self, place: &Place, op: Option<UpdateOp>, value: &Expr) {
        let found = self.visit(value);
        if op.is_some() {
            // an update reads, and fuses with a product
            self.load(place);
            if found.is_real() && !is_product(value) {
                self.traffic.arithmetic += self.issued();
            }
        }
        self.store(place, found, op.is_some());
    }

    fn store(&mut self, place: &Place, value: Value, updates: bool) {
        let Some(offset) = &place.offset else {
            if !value.is_real() {
                let value = if updates { Value::Unknown } else { value };
                self.scalars.insert(place.name.clone(), value);
                self.write_private(&place.name, 0, ScalarType::I32, 1, updates);
            } else {
                self.write_private(&place.name, 0, ScalarType::F64, 1, updates);
            }
            return;
        };
        let at = self.visit(offset);
        let Some(buffer) = self.buffers.get(&place.name).copied() else { return };
        if buffer.ty.is_exact() && buffer.space != Space::Global {
            self.keep(&place.name, &at, &value);
        }
        self.touch(place, buffer, &at, Use::Write, updates);
    }

    /// Keeps the integers that are stored in an array.
    fn keep(&mut self, name: &Name, at: &Value, value: &Value) {
        match (at, value) {
            (Value::Uniform(element), _) => {
                self.elements.insert((name.clone(), *element), value.clone());
            }
            (Value::Lanes(elements), _) => {
                for lane in (0..elements.len()).filter(|lane| self.mask[*lane]) {
                    let value = value.at(lane).map_or(Value::Unknown, Value::Uniform);
                    self.elements.insert((name.clone(), elements[lane]), value);
                }
            }
            (Value::Unknown | Value::Real, _) => self.elements.retain(|(kept, _), _| kept != name),
        }
    }

    fn atomic(&mut self, atomic: &Atomic) {
        self.visit(&atomic.value);
        let Some(offset) = &atomic.place.offset else { return };
        let at = self.visit(offset);
        let Some(buffer) = self.buffers.get(&atomic.place.name).copied() else { return };
        self.touch(&atomic.place, buffer, &at, Use::Reduce, true);
    }

    fn intrinsic(&mut self, intrinsic: &Intrinsic) {
        let Intrinsic { name, pieces, written, .. } = intrinsic;
        *self.traffic.calls.entry(name.clone()).or_default() += self.weight * self.active;
        let mut addressed: Vec<&Place> = Vec::new();
        for piece in pieces {
            match piece {
                CodePiece::Text(_) => {}
                CodePiece::Value(Expr::Load(place)) if written.contains(&place.name) => {
                    let at = place.offset.as_ref().map_or(Value::Uniform(0), |e| self.visit(e));
                    let buffer = self.buffers.get(&place.name).copied();
                    let buffer = buffer.unwrap_or(Buffer { space: Space::Private, ty: ScalarType::F64 });
                    // an operand that is written may be read, too
                    self.touch(place, buffer, &at, Use::Write, true);
                }
                CodePiece::Value(e) => {
                    self.visit(e);
                }
                CodePiece::Address(Expr::Load(place)) => addressed.push(place),
                CodePiece::Address(e) => {
                    self.visit(e);
                }
            }
        }
        // a copy: the addresses that it reads are those of arrays that it does not write
        let (to, from): (Vec<&Place>, Vec<&Place>) =
            addressed.into_iter().partition(|place| written.contains(&place.name));
        let mut value = Value::Unknown;
        for place in from {
            value = self.load(place);
        }
        for place in to {
            let Some(offset) = &place.offset else { continue };
            let at = self.visit(offset);
            let Some(buffer) = self.buffers.get(&place.name).copied() else { continue };
            if buffer.ty.is_exact() {
                self.keep(&place.name, &at, &value);
            }
            self.touch(place, buffer, &at, Use::Write, false);
        }
    }

    /// Runs a part of the walk for the work-items for which a condition holds; for all, if it is not
    /// known.
    fn masked(&mut self, holds: &Value, run: impl FnOnce(&mut Self)) {
        match holds {
            Value::Uniform(0) => return,
            Value::Uniform(_) | Value::Unknown | Value::Real => return run(self),
            Value::Lanes(_) => {}
        }
        let mask: Vec<bool> =
            self.mask.iter().enumerate().map(|(k, is)| *is && holds.at(k) != Some(0)).collect();
        let active = mask.chunks(self.service.width).filter(|part| part.contains(&true)).count();
        if active == 0 {
            return;
        }
        let before = (std::mem::replace(&mut self.mask, mask), self.active);
        self.active = active as f64;
        run(self);
        (self.mask, self.active) = before;
    }

    fn repeat(&mut self, repeated: &For) {
        let (lower, upper) = (self.visit(&repeated.lower), self.visit(&repeated.upper));
        let step = repeated.step.max(1);
        let (Value::Uniform(lower), Value::Uniform(upper)) = (&lower, &upper) else {
            return self.repeat_by_lanes(repeated, &lower, &upper);
        };
        let count = ((upper - lower).max(0) + step - 1) / step;
        let weight = self.weight;
        self.loops.push(repeated.name.clone());
        for (k, times) in chosen(count) {
            self.weight = weight * times;
            self.scalars.insert(repeated.name.clone(), Value::Uniform(lower + k * step));
            self.block(&repeated.body);
        }
        self.loops.pop();
        self.weight = weight;
    }

    /// A loop whose ends differ among work-items: as long as one of them goes on.
    fn repeat_by_lanes(&mut self, repeated: &For, lower: &Value, upper: &Value) {
        if matches!(lower, Value::Unknown | Value::Real) || matches!(upper, Value::Unknown | Value::Real) {
            self.scalars.insert(repeated.name.clone(), Value::Unknown);
            return self.block(&repeated.body);
        }
        let mut at = lower.clone();
        loop {
            let going = at.zip(upper, |a, b| Some(i64::from(a < b)));
            let any = (0..self.mask.len()).any(|lane| self.mask[lane] && going.at(lane) == Some(1));
            if !any || self.left == 0 {
                return;
            }
            self.scalars.insert(repeated.name.clone(), at.clone());
            self.masked(&going, |walker| walker.block(&repeated.body));
            at = at.map(|v| v.saturating_add(repeated.step.max(1)));
        }
    }

    /// The value of an expression; what it takes is counted.
    fn visit(&mut self, e: &Expr) -> Value {
        match e {
            Expr::Int(value, _) => Value::Uniform(*value),
            Expr::Bool(value) => Value::Uniform(i64::from(*value)),
            Expr::Real(..) => Value::Real,
            Expr::Load(place) => self.load(place),
            Expr::Hardware { group: true, axis } => {
                Value::Uniform(self.group.get(usize::from(*axis)).copied().unwrap_or(0))
            }
            Expr::Hardware { group: false, axis } => self.item(usize::from(*axis)),
            Expr::Neg(a) => self.visit(a).map(|v| -v),
            Expr::Not(a) => self.visit(a).map(|v| i64::from(v == 0)),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::Call(f, _, args) => {
                args.iter().for_each(|a| drop(self.visit(a)));
                let issued = self.issued();
                // a sign is part of the operand
                if matches!(f, MathFn::Fmin | MathFn::Fmax | MathFn::Fma | MathFn::Copysign) {
                    self.traffic.arithmetic += issued;
                } else if *f != MathFn::Fabs {
                    self.traffic.functions += issued;
                }
                Value::Real
            }
            Expr::Complex(_, _, args) | Expr::Pair(_, args) => {
                args.iter().for_each(|a| drop(self.visit(a)));
                let (cost, value) = of_parts(e);
                self.traffic.issue(cost, self.issued());
                value
            }
            Expr::LanesCall(_, _, lanes, args) => {
                args.iter().for_each(|a| drop(self.visit(a)));
                self.traffic.functions += self.issued() * f64::from(*lanes);
                Value::Real
            }
            Expr::IntCall(f, _, a, b) => {
                let (a, b) = (self.visit(a), self.visit(b));
                let found = a.zip(&b, |a, b| call(*f, a, b));
                self.of_integers(found)
            }
            Expr::Cast(ty, a) => {
                let found = self.visit(a);
                match (ty.is_real(), found.is_real()) {
                    (true, _) => Value::Real,
                    (false, true) => Value::Unknown,
                    (false, false) => found,
                }
            }
            Expr::Half(_, _, a) => {
                drop(self.visit(a));
                self.traffic.arithmetic += self.issued();
                Value::Real
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.visit(c), self.visit(a), self.visit(b));
                if a.is_real() {
                    return Value::Real;
                }
                match c {
                    Value::Uniform(c) => {
                        if c != 0 {
                            a
                        } else {
                            b
                        }
                    }
                    Value::Lanes(c) => {
                        let of_lane = |k: usize| if c[k] != 0 { a.at(k) } else { b.at(k) };
                        let values: Option<Vec<i64>> = (0..c.len()).map(of_lane).collect();
                        values.map_or(Value::Unknown, |values| Value::Lanes(values).shared())
                    }
                    Value::Unknown | Value::Real => Value::Unknown,
                }
            }
            Expr::Vector { lanes, .. } => {
                let found: Vec<Value> = lanes.iter().map(|e| self.visit(e)).collect();
                found.into_iter().next().unwrap_or(Value::Unknown)
            }
        }
    }

    fn of_integers(&mut self, found: Value) -> Value {
        if !matches!(found, Value::Uniform(_)) {
            self.traffic.integer += self.issued();
        }
        found
    }

    fn binary(&mut self, op: Op, a: &Expr, b: &Expr) -> Value {
        let (left, right) = (self.visit(a), self.visit(b));
        if !left.is_real() && !right.is_real() {
            let found = left.zip(&right, |a, b| operate(op, a, b));
            return self.of_integers(found);
        }
        let issued = self.issued();
        let literals = [a, b].into_iter().filter(|e| matches!(e, Expr::Real(..))).count();
        self.traffic.literals += issued * literals as f64;
        match op {
            Op::Add | Op::Sub => {
                // a product is fused with the sum
                if !is_product(a) && !is_product(b) {
                    self.traffic.arithmetic += issued;
                }
                Value::Real
            }
            Op::Mul => {
                self.traffic.arithmetic += issued;
                Value::Real
            }
            Op::Div | Op::Rem => {
                self.traffic.functions += issued;
                Value::Real
            }
            Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => {
                self.traffic.integer += issued;
                Value::Unknown
            }
            Op::Lt | Op::Le | Op::Eq | Op::Ne | Op::And | Op::Or => {
                self.traffic.arithmetic += issued;
                Value::Unknown
            }
        }
    }

    /// The index of each work-item along an axis.
    fn item(&self, axis: usize) -> Value {
        let [x, y, _] = self.block;
        let of = |k: usize| {
            let k = k as u64;
            (match axis {
                0 => k % x.max(1),
                1 => k / x.max(1) % y.max(1),
                _ => k / (x * y).max(1),
            }) as i64
        };
        Value::Lanes((0..self.mask.len()).map(of).collect()).shared()
    }

    /// The value of an element or a variable.
    fn load(&mut self, place: &Place) -> Value {
        let Some(offset) = &place.offset else {
            self.lives.read(&place.name, 0, self.now);
            let known = self.scalars.get(&place.name).cloned();
            return known.unwrap_or(Value::Real);
        };
        let at = self.visit(offset);
        let Some(buffer) = self.buffers.get(&place.name).copied() else { return Value::Unknown };
        self.touch(place, buffer, &at, Use::Read, false);
        if is_real(buffer.ty) {
            return Value::Real;
        }
        let name = &place.name;
        if buffer.space == Space::Global {
            let entry = |offset| self.integers.entry(name, offset);
            return at.zip(&Value::Uniform(0), |offset, _| entry(offset));
        }
        match &at {
            Value::Uniform(element) => {
                self.elements.get(&(name.clone(), *element)).cloned().unwrap_or(Value::Unknown)
            }
            Value::Lanes(elements) => {
                let of_lane = |k: usize| self.elements.get(&(name.clone(), elements[k]))?.at(k);
                let active = |k: usize| if self.mask[k] { of_lane(k) } else { Some(0) };
                let values: Option<Vec<i64>> = (0..elements.len()).map(active).collect();
                values.map_or(Value::Unknown, Value::Lanes)
            }
            Value::Unknown | Value::Real => Value::Unknown,
        }
    }

    /// Counts an access to an element.
    fn touch(&mut self, place: &Place, buffer: Buffer, at: &Value, used: Use, updates: bool) {
        let element = i64::try_from(buffer.ty.bytes()).unwrap_or(8);
        let width = match place.extent {
            Extent::Whole | Extent::Lane(_) => 1,
            Extent::Vector(_, lanes) => i64::from(lanes),
        };
        let (weight, issued) = (self.weight, self.issued());
        let (mask, service) = (&self.mask, self.service);
        let addresses = Addresses { offset: at, mask, service, bytes: element * width, element };
        match buffer.space {
            Space::Global => {
                let (touched, counts): (_, &mut GlobalAccesses) = match used {
                    Use::Read => (&mut self.touched[0], &mut self.traffic.reads),
                    Use::Write => (&mut self.touched[1], &mut self.traffic.writes),
                    Use::Reduce => (&mut self.touched[2], &mut self.traffic.reductions),
                };
                touched.count(&place.name, &addresses, weight, counts);
            }
            Space::Constant => self.traffic.constant_reads += weight * addresses.distinct(),
            Space::Local if used == Use::Reduce => {
                self.traffic.local_atomics += issued;
                self.traffic.local_rounds += weight * addresses.rounds();
            }
            Space::Local => {
                self.traffic.local_instructions += issued;
                self.traffic.local_wavefronts += weight * addresses.wavefronts();
            }
            Space::Private => {
                let Value::Uniform(first) = at else {
                    self.traffic.stack += issued;
                    return;
                };
                if place.offset.as_ref().is_some_and(|e| mentions(e, &self.loops)) {
                    self.traffic.indexed += issued;
                }
                for k in 0..width {
                    match used {
                        Use::Read => self.lives.read(&place.name, first + k, self.now),
                        Use::Write | Use::Reduce => {
                            self.lives.written(
                                &place.name,
                                first + k,
                                self.now,
                                (element as u64) / 4,
                                updates,
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Whether an expression mentions one of some variables.
fn mentions(e: &Expr, names: &[Name]) -> bool {
    let itself = matches!(e, Expr::Load(place) if place.offset.is_none() && names.contains(&place.name));
    itself || e.operands().any(|operand| mentions(operand, names))
}

/// Whether an expression is a product, which fuses with a sum.
fn is_product(e: &Expr) -> bool {
    if let Expr::Neg(a) = e {
        return is_product(a);
    }
    matches!(e, Expr::Binary(Op::Mul, ..))
}

/// The iterations of a loop that are walked, and how many each stands for.
fn chosen(count: i64) -> Vec<(i64, f64)> {
    if count <= ALL {
        return (0..count).map(|k| (k, 1.0)).collect();
    }
    let inner = count - 3;
    let times = inner as f64 / BETWEEN as f64;
    let between = (0..BETWEEN).map(|k| (2 + inner * k / BETWEEN, times));
    [(0, 1.0), (1, 1.0)].into_iter().chain(between).chain([(count - 1, 1.0)]).collect()
}
