//! Running the internal form: loops and instructions.

use super::error::{InterpError, Site};
use super::node::{Bound, Condition, Disjunct, Form, Int, Number, Place, Program, Step, Touch};
use super::observe::Observer;
use super::points::{Points, Span, Stop, TooLarge};
use super::store::{Elements, Pair, Slot};
use crate::op::Tally;
use kingpost_ir::expr::UpdateOp;
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::Kernel;
use kingpost_ir::types::ScalarType;
use kingpost_ir::typing::ExprType;

pub(super) type Fault = Box<InterpError>;
pub(super) type Eval<T> = Result<T, Fault>;

/// What is being done, for messages.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Insn(InsnId),
    Entry(InameId),
}

/// The state of a run.
pub(super) struct Machine<'p, O> {
    pub(super) kernel: &'p Kernel,
    pub(super) program: &'p Program,
    pub(super) slots: Vec<Slot>,
    /// Values of the inames; those out of scope are stale.
    pub(super) inames: Vec<i64>,
    /// By tally.
    pub(super) ops: Vec<u64>,
    /// By instruction.
    pub(super) instances: Vec<u64>,
    pub(super) observer: &'p mut O,
    limit: u64,
    steps: u64,
    doing: Doing,
    /// Loops around what is being done.
    around: &'p [InameId],
    /// Inames of the reductions under way.
    reducing: Vec<InameId>,
    scratch: Vec<i64>,
}

impl<'p, O: Observer> Machine<'p, O> {
    pub(super) fn new(
        kernel: &'p Kernel,
        program: &'p Program,
        slots: Vec<Slot>,
        observer: &'p mut O,
        limit: u64,
    ) -> Self {
        Self {
            kernel,
            program,
            slots,
            inames: vec![0; kernel.inames.len()],
            ops: vec![0; Tally::COUNT],
            instances: vec![0; kernel.insns.len()],
            observer,
            limit,
            steps: 0,
            doing: Doing::Insn(InsnId::from_index(0)),
            around: &[],
            reducing: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub(super) fn run(&mut self, steps: &'p [Step]) -> Eval<()> {
        for step in steps {
            match step {
                Step::Insn(insn) => self.instance(*insn)?,
                Step::Loop { iname, outer, body } => {
                    (self.doing, self.around) = (Doing::Entry(*iname), outer);
                    if O::ENABLED {
                        self.gather_point();
                        self.observer.enter_loop(*iname, &self.scratch);
                    }
                    let mut points = self.points(*iname)?;
                    while let Some(value) = self.advance(&mut points)? {
                        self.inames[iname.index()] = value;
                        self.run(body)?;
                        (self.doing, self.around) = (Doing::Entry(*iname), outer);
                    }
                }
            }
        }
        Ok(())
    }

    fn gather_point(&mut self) {
        let inames = &self.inames;
        self.scratch.clear();
        self.scratch.extend(self.around.iter().map(|i| inames[i.index()]));
    }

    fn instance(&mut self, insn: InsnId) -> Eval<()> {
        let statement = &self.program.statements[insn.index()];
        (self.doing, self.around) = (Doing::Insn(insn), &statement.loops);
        if O::ENABLED {
            self.gather_point();
            self.observer.instance(insn, &self.scratch);
        }
        self.count_step()?;
        if let Some(predicate) = &statement.predicate
            && !self.truth(predicate)?
        {
            return Ok(());
        }
        self.instances[insn.index()] += 1;
        if let Some(touches) = &statement.touches {
            return self.touch(touches);
        }
        match &statement.rhs {
            Number::Real(rhs) => {
                let value = self.real(rhs)?;
                self.store_real(&statement.lhs, statement.update, value)
            }
            Number::Complex(rhs) => {
                let value = self.complex(rhs)?;
                self.store_complex(&statement.lhs, statement.update, value)
            }
            Number::Int(rhs) => {
                let value = self.int(rhs)?;
                self.store_int(&statement.lhs, statement.update, value)
            }
        }
    }

    /// Goes where an instance would go.
    fn touch(&mut self, touches: &'p [Touch]) -> Eval<()> {
        for touch in touches {
            match touch {
                Touch::At(place) => drop(self.offset(place)?),
                Touch::When(condition, needed, inside) => {
                    if self.truth(condition)? == *needed {
                        self.touch(inside)?;
                    }
                }
                Touch::Over(inames, inside) => self.reduce(inames, &mut |this| this.touch(inside))?,
            }
        }
        Ok(())
    }

    fn store_real(&mut self, lhs: &'p Place, update: Option<(UpdateOp, Tally)>, value: f64) -> Eval<()> {
        let at = self.offset(lhs)?;
        let ty = self.kernel.vars[lhs.var].ty;
        let single = ty.loaded() == ScalarType::F32;
        let value = match update {
            None => value,
            Some((op, tally)) => {
                let old = self.load_real(lhs.var, at)?;
                self.ops[tally.index()] += 1;
                self.combined(op, single, old, value)
            }
        };
        if let Elements::Real(elements) = &mut self.slots[lhs.var.index()].elements {
            elements[at] = if ty.is_storage() { ty.rounded(value) } else { value };
        }
        self.written(lhs.var, at);
        Ok(())
    }

    fn store_complex(&mut self, lhs: &'p Place, update: Option<(UpdateOp, Tally)>, value: Pair) -> Eval<()> {
        let at = self.offset(lhs)?;
        let single = self.kernel.vars[lhs.var].ty == ScalarType::C64;
        let value = match update {
            None => value,
            Some((op, tally)) => {
                let old = self.load_complex(lhs.var, at)?;
                self.ops[tally.index()] += 1;
                self.combined_complex(op, single, old, value)
            }
        };
        if let Elements::Complex(elements) = &mut self.slots[lhs.var.index()].elements {
            elements[at] = value;
        }
        self.written(lhs.var, at);
        Ok(())
    }

    fn store_int(&mut self, lhs: &'p Place, update: Option<(UpdateOp, Tally)>, value: i64) -> Eval<()> {
        let (at, ty) = (self.offset(lhs)?, self.kernel.vars[lhs.var].ty);
        let value = match update {
            None => value,
            Some((op, tally)) => {
                let old = self.load_int(lhs.var, at)?;
                self.ops[tally.index()] += 1;
                self.combine_int(op, ExprType::Scalar(ty).word(), old, value)?
            }
        };
        if ty.is_exact() && !holds(ty, value) {
            let what = format!("{value}, stored in `{}`", self.element(lhs.var, at));
            return Err(self.overflow(what, format!("`{ty}`")));
        }
        if let Elements::Int(elements) = &mut self.slots[lhs.var.index()].elements {
            elements[at] = value;
        }
        self.written(lhs.var, at);
        Ok(())
    }

    #[inline]
    fn written(&mut self, var: VarId, at: usize) {
        let slot = &mut self.slots[var.index()];
        slot.writes += 1;
        if let Some(defined) = &mut slot.defined {
            defined[at] = true;
        }
        if O::ENABLED {
            self.observer.write(var, at);
        }
    }

    /// Position of an element, row-major.
    #[inline]
    pub(super) fn offset(&mut self, place: &'p Place) -> Eval<usize> {
        let program = self.program;
        let shape = &program.shapes[place.var.index()];
        let mut at = 0;
        for (index, extent) in place.index.iter().zip(shape) {
            let k = match index {
                Int::Iname(i) => self.inames[i.index()],
                other @ (Int::Const(_)
                | Int::Load(_)
                | Int::FromReal(..)
                | Int::Converted(..)
                | Int::FromTruth(_)
                | Int::Neg(..)
                | Int::Arith { .. }
                | Int::Select(..)
                | Int::Reduce { .. }) => self.int(other)?,
            };
            if k < 0 || k as u64 >= *extent as u64 {
                return Err(self.out_of_bounds(place));
            }
            at = at * extent + k as usize;
        }
        Ok(at)
    }

    #[cold]
    fn out_of_bounds(&mut self, place: &'p Place) -> Fault {
        let mut index = Vec::with_capacity(place.index.len());
        for e in &place.index {
            match self.int(e) {
                Ok(k) => index.push(k),
                Err(fault) => return fault,
            }
        }
        let at = self.here();
        let element = format!("{}{index:?}", self.kernel.vars[place.var].name);
        let shape = format!("{:?}", self.program.shapes[place.var.index()]).into();
        let through = match self.entries(place) {
            Ok(entries) if entries.is_empty() => Box::default(),
            Ok(entries) => format!(" as {}", entries.join(" and ")).into(),
            Err(fault) => return fault,
        };
        Box::new(InterpError::OutOfBounds { at, element, through, shape })
    }

    /// What an index is made of that memory holds: `` `dofs[3, 1]` is 12 ``.
    fn entries(&mut self, place: &'p Place) -> Eval<Vec<String>> {
        let mut entries = Vec::new();
        for load in place.index.iter().flat_map(Int::loads) {
            let at = self.offset(load)?;
            let value = self.load_int(load.var, at)?;
            entries.push(format!("`{}` is {value}", self.element(load.var, at)));
        }
        Ok(entries)
    }

    #[inline]
    pub(super) fn load_real(&mut self, var: VarId, at: usize) -> Eval<f64> {
        self.note_read(var, at)?;
        match &self.slots[var.index()].elements {
            Elements::Real(elements) => Ok(elements[at]),
            Elements::Int(elements) => Ok(elements[at] as f64),
            Elements::Complex(elements) => Ok(elements[at][0]),
        }
    }

    #[inline]
    pub(super) fn load_complex(&mut self, var: VarId, at: usize) -> Eval<Pair> {
        self.note_read(var, at)?;
        match &self.slots[var.index()].elements {
            Elements::Complex(elements) => Ok(elements[at]),
            Elements::Real(elements) => Ok([elements[at], 0.0]),
            Elements::Int(elements) => Ok([elements[at] as f64, 0.0]),
        }
    }

    #[inline]
    pub(super) fn load_int(&mut self, var: VarId, at: usize) -> Eval<i64> {
        self.note_read(var, at)?;
        match &self.slots[var.index()].elements {
            Elements::Int(elements) => Ok(elements[at]),
            Elements::Real(elements) => Ok(elements[at] as i64),
            Elements::Complex(elements) => Ok(elements[at][0] as i64),
        }
    }

    #[inline]
    fn note_read(&mut self, var: VarId, at: usize) -> Eval<()> {
        let slot = &mut self.slots[var.index()];
        slot.reads += 1;
        if slot.defined.as_ref().is_some_and(|d| !d[at]) {
            let element = self.element(var, at);
            return Err(Box::new(InterpError::Undefined { at: self.here(), element }));
        }
        if O::ENABLED {
            self.observer.read(var, at);
        }
        Ok(())
    }

    fn element(&self, var: VarId, at: usize) -> String {
        super::store::element_name(&self.kernel.vars[var].name, &self.program.shapes[var.index()], at)
    }

    /// The values of a loop where its outer inames stand now.
    pub(super) fn points(&mut self, iname: InameId) -> Eval<Points> {
        let program = self.program;
        let disjuncts = &program.domains[iname.index()];
        if let [only] = disjuncts.as_slice()
            && only.checks.is_empty()
        {
            let (lo, hi) = self.interval(iname, only)?;
            return Ok(Points::dense(lo, hi));
        }
        let mut spans = Vec::with_capacity(disjuncts.len());
        'disjuncts: for disjunct in disjuncts {
            let (lo, hi) = self.interval(iname, disjunct)?;
            let mut checks = Vec::with_capacity(disjunct.checks.len());
            for check in &disjunct.checks {
                let check = Condition { equal: check.equal, form: self.at_entry(iname, &check.form)? };
                match check.at_all_values() {
                    None => checks.push(check),
                    Some(true) => {}
                    Some(false) => continue 'disjuncts,
                }
            }
            spans.push(Span { lo, hi, checks });
        }
        Ok(Points::new(spans))
    }

    /// Minimum and maximum value that the linear constraints of a conjunction leave.
    fn interval(&mut self, iname: InameId, disjunct: &'p Disjunct) -> Eval<(i64, i64)> {
        let (mut lo, mut hi) = (None, None);
        for Bound { equal, coefficient, rest } in &disjunct.bounds {
            let rest = self.form(rest)?;
            let c = i128::from(*coefficient);
            // c i + rest >= 0: i >= ceil(-rest / c) for c > 0, i <= floor(rest / -c) for c < 0
            if *equal || c > 0 {
                let least = if c > 0 { -(rest.div_euclid(c)) } else { -((-rest).div_euclid(-c)) };
                lo = lo.max(Some(least));
            }
            if *equal || c < 0 {
                let most = if c > 0 { (-rest).div_euclid(c) } else { rest.div_euclid(-c) };
                hi = Some(hi.map_or(most, |h: i128| h.min(most)));
            }
        }
        match (lo, hi) {
            (None, _) => Err(self.unbounded(iname, "lower")),
            (_, None) => Err(self.unbounded(iname, "upper")),
            (Some(lo), Some(hi)) if lo > hi => Ok((1, 0)),
            (Some(lo), Some(hi)) => match (i64::try_from(lo), i64::try_from(hi)) {
                (Ok(lo), Ok(hi)) => Ok((lo, hi)),
                _ => Err(self.overflow("a loop bound".into(), "64 bits")),
            },
        }
    }

    /// A form with everything but `iname` replaced by its value now.
    fn at_entry(&mut self, iname: InameId, form: &Form) -> Eval<Form> {
        let mut own: Vec<(InameId, i64)> = form.inames.clone();
        own.retain(|(i, _)| *i == iname);
        let mut others = form.clone();
        others.inames.retain(|(i, _)| *i != iname);
        let floors = std::mem::take(&mut others.floors);
        let constant = self.form(&others)?;
        let mut result = Form { constant, inames: own, ..Form::default() };
        for (numerator, d, c) in &floors {
            result.floors.push((self.at_entry(iname, numerator)?, *d, *c));
        }
        Ok(result)
    }

    fn form(&mut self, form: &Form) -> Eval<i128> {
        let mut read = Vec::with_capacity(form.vars.len());
        self.read_scalars(form, &mut read)?;
        let inames = &self.inames;
        let value = form.eval::<TooLarge>(&|i| inames[i.index()], &mut |v| {
            read.iter().find(|(w, _)| *w == v).map(|(_, x)| *x).ok_or(TooLarge)
        });
        value.map_err(|TooLarge| self.overflow("a loop bound".into(), "128 bits"))
    }

    fn read_scalars(&mut self, form: &Form, read: &mut Vec<(VarId, i64)>) -> Eval<()> {
        for (var, _) in &form.vars {
            let value = self.load_int(*var, 0)?;
            read.push((*var, value));
        }
        for (numerator, ..) in &form.floors {
            self.read_scalars(numerator, read)?;
        }
        Ok(())
    }

    #[inline]
    fn advance(&mut self, points: &mut Points) -> Eval<Option<i64>> {
        let next = points.advance(self.limit.saturating_sub(self.steps)).map_err(|stop| match stop {
            Stop::TooLarge => self.overflow("a loop bound".into(), "128 bits"),
            Stop::Steps => self.step_limit(),
        })?;
        if next.is_some() {
            self.count_step()?;
        }
        Ok(next)
    }

    /// Calls `body` at every point of the inames, in lexicographic order.
    pub(super) fn reduce(
        &mut self,
        inames: &'p [InameId],
        body: &mut dyn FnMut(&mut Self) -> Eval<()>,
    ) -> Eval<()> {
        let Some((iname, inner)) = inames.split_first() else { return body(self) };
        let mut points = self.points(*iname)?;
        self.reducing.push(*iname);
        while let Some(value) = self.advance(&mut points)? {
            self.inames[iname.index()] = value;
            match inner {
                [] => body(self)?,
                _ => self.reduce(inner, body)?,
            }
        }
        self.reducing.pop();
        Ok(())
    }

    #[inline]
    fn count_step(&mut self) -> Eval<()> {
        self.steps += 1;
        if self.steps > self.limit {
            return Err(self.step_limit());
        }
        Ok(())
    }

    fn step_limit(&self) -> Box<InterpError> {
        Box::new(InterpError::StepLimit { at: self.here(), limit: self.limit })
    }

    /// Where the run is.
    pub(super) fn here(&self) -> Site {
        let value = |i: &InameId| (self.kernel.inames[*i].name.clone(), self.inames[i.index()]);
        let (name, is_loop) = match self.doing {
            Doing::Insn(insn) => (self.kernel.insns.get(insn).map_or("", |i| &i.name), false),
            Doing::Entry(iname) => (self.kernel.inames[iname].name.as_str(), true),
        };
        let point = self.around.iter().chain(&self.reducing).map(value).collect();
        Site { name: name.to_owned(), is_loop, point }
    }

    #[cold]
    fn unbounded(&self, iname: InameId, missing: &'static str) -> Fault {
        let iname = self.kernel.inames[iname].name.clone();
        Box::new(InterpError::Unbounded { at: self.here(), iname, missing })
    }

    #[cold]
    pub(super) fn overflow(&self, what: String, needed: impl Into<String>) -> Fault {
        Box::new(InterpError::Overflow { at: self.here(), what, needed: needed.into() })
    }
}

/// Whether an integer is one of a type.
pub(super) fn holds(ty: ScalarType, value: i64) -> bool {
    ty.ends().is_some_and(|(lo, hi)| (lo..=hi).contains(&value.into()))
}
