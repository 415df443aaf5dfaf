//! What is known at a point of the program: values of loop variables, their ranges, facts.
//!
//! Everything here is plain integer arithmetic: intervals, and differences with known facts. What
//! it cannot prove stays as a guard or a wide integer, so that a miss costs a comparison, never a
//! result.

use crate::ast::Name;
use crate::factors::{Factor, factors};
use crate::interval::Interval;
use crate::launch_bounds::Reach;
use crate::names::Names;
use kingpost_ir::{
    AddressSpace, Affine, Atom, AxisTag, BinaryOp, Constraint, Expr, Id, InameId, Kernel, VarId, VarKind,
    Variable, WriteOp,
};
use std::cell::Cell;
use std::cmp::Ordering;

/// Number of hardware indices: three axes of groups, then three of work-items.
pub(crate) const HARDWARE: usize = 6;

/// The state of lowering at one point of the loop tree.
#[derive(Clone)]
pub(crate) struct Env<'k> {
    pub(crate) kernel: &'k Kernel,
    /// Names in use.
    pub(crate) names: Names,
    /// Name of each iname, then of each hardware index.
    pub(crate) iname_names: Vec<Name>,
    /// Name of each variable.
    pub(crate) var_names: Vec<Name>,
    /// Value of each iname in terms of hardware indices and loop variables, where it is no loop
    /// variable.
    values: Vec<Option<Affine>>,
    /// Range of each iname and hardware index.
    ranges: Vec<Interval>,
    var_ranges: Vec<Interval>,
    /// Expressions that are not negative here.
    facts: Vec<Affine>,
    /// Ranges that facts sharpen inside each other: a fact may hold a quotient of what it
    /// bounds.
    sharpened: Cell<usize>,
    /// What integers reach at a launch.
    pub(crate) reach: Reach,
}

/// Maximum number of ranges that facts sharpen inside each other.
const SHARPENED: usize = 2;

impl<'k> Env<'k> {
    /// At the top of the kernel.
    pub(crate) fn new(kernel: &'k Kernel) -> Self {
        let mut names = Names::new();
        let entry = names.fresh(&kernel.name);
        // what the host calls in C, at file scope like tables
        names.fresh(&crate::names::launcher(&entry));
        let var_names = kernel.vars.values().map(|v| names.fresh(&v.name)).collect();
        let mut iname_names: Vec<_> = kernel.inames.values().map(|i| names.fresh(&i.name)).collect();
        for k in 0..HARDWARE {
            let stem = format!("{}{}", if k < 3 { "g" } else { "l" }, k % 3);
            iname_names.push(names.fresh(&stem));
        }
        let count = iname_names.len();
        let var_ranges = values(kernel);
        let mut env = Self {
            kernel,
            names,
            iname_names,
            var_names,
            values: vec![None; count],
            ranges: vec![Interval::ALL; count],
            var_ranges,
            facts: Vec::new(),
            sharpened: Cell::new(0),
            reach: Reach::default(),
        };
        env.assume_parameters();
        env
    }

    fn assume_parameters(&mut self) {
        for constraint in self.kernel.known_of_parameters() {
            constraint.not_negative().iter().for_each(|e| self.assume_param(e));
        }
    }

    /// Takes `c*n + b >= 0` as a bound of `n`, anything else as a fact.
    fn assume_param(&mut self, e: &Affine) {
        if let [(Atom::Var(v), c)] = e.terms() {
            let range = &mut self.var_ranges[v.index()];
            let b = i128::from(e.constant_term());
            let bound = if *c > 0 {
                Interval { lo: -(b.div_euclid((*c).into())), hi: range.hi }
            } else {
                Interval { lo: range.lo, hi: b.div_euclid(-i128::from(*c)) }
            };
            *range = range.meet(bound);
        } else {
            self.facts.push(e.clone());
        }
    }

    /// The symbol of a hardware index.
    pub(crate) fn hardware(&self, group: bool, axis: u8) -> InameId {
        InameId::from_index(self.kernel.inames.len() + usize::from(axis) + if group { 0 } else { 3 })
    }

    /// The symbol of the hardware index an iname with this tag runs on.
    pub(crate) fn hardware_of(&self, tag: AxisTag) -> Option<InameId> {
        match tag {
            AxisTag::Group(k) => Some(self.hardware(true, k)),
            AxisTag::Local(k) => Some(self.hardware(false, k)),
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled | AxisTag::Vector | AxisTag::Launch => {
                None
            }
        }
    }

    /// Whether a symbol is a hardware index: of a work-group or a work-item.
    pub(crate) fn is_hardware(&self, symbol: InameId) -> bool {
        symbol.index() >= self.kernel.inames.len()
    }

    /// Whether a symbol is the index of a work-item (they differ within a group).
    pub(crate) fn is_work_item(&self, symbol: InameId) -> bool {
        symbol.index() >= self.kernel.inames.len() + 3
    }

    /// Whether an expression depends on the work-group, and besides on parameters alone.
    pub(crate) fn is_of_group(&self, e: &Affine) -> bool {
        let (mut of_group, mut alone) = (false, true);
        e.for_each_symbol(&mut |a| match a {
            Atom::Iname(i) if self.is_hardware(*i) && !self.is_work_item(*i) => of_group = true,
            Atom::Var(v) => alone &= self.is_param(*v),
            Atom::Iname(_) => alone = false,
            Atom::Floor(..) => {}
        });
        of_group && alone
    }

    /// Whether an expression is of scalars that instructions write alone.
    pub(crate) fn is_read(&self, e: &Affine) -> bool {
        let mut is_read = e.as_constant().is_none();
        e.for_each_symbol(&mut |a| is_read &= matches!(a, Atom::Var(v) if !self.is_param(*v)));
        is_read
    }

    pub(crate) fn name(&self, symbol: InameId) -> &Name {
        &self.iname_names[symbol.index()]
    }

    pub(crate) fn set_range(&mut self, symbol: InameId, range: Interval) {
        self.ranges[symbol.index()] = range;
    }

    pub(crate) fn range_of(&self, symbol: InameId) -> Interval {
        self.ranges[symbol.index()]
    }

    /// Gives an iname a value, or makes it a loop variable again.
    pub(crate) fn set_value(&mut self, iname: InameId, value: Option<Affine>) {
        self.values[iname.index()] = value;
    }

    /// Number of facts, to go back to with [`Env::forget`].
    pub(crate) fn mark(&self) -> usize {
        self.facts.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        self.facts.truncate(mark);
    }

    /// Takes a constraint as known; those on temporaries are left out, as temporaries change.
    pub(crate) fn learn(&mut self, c: &Constraint) {
        let mut stable = true;
        c.expr().for_each_symbol(&mut |a| {
            if let Atom::Var(v) = a {
                stable &= self.is_param(*v);
            }
        });
        if !stable {
            return;
        }
        match c {
            Constraint::NonNegative(e) => self.facts.push(e.clone()),
            Constraint::Zero(e) => {
                self.facts.push(e.clone());
                self.facts.push(e.times(-1));
            }
        }
    }

    pub(crate) fn is_param(&self, v: VarId) -> bool {
        self.kernel.vars[v].kind == VarKind::Param
    }

    /// The expression in terms of hardware indices, loop variables and integer scalars.
    pub(crate) fn resolve(&self, e: &Affine) -> Affine {
        let resolved = e.substitute(&|a| match a {
            Atom::Iname(i) => self.values[i.index()].clone(),
            Atom::Var(_) | Atom::Floor(..) => None,
        });
        self.simplified(&resolved)
    }

    /// The constraint in the same terms.
    pub(crate) fn resolve_constraint(&self, c: &Constraint) -> Constraint {
        match c {
            Constraint::Zero(e) => Constraint::Zero(self.resolve(e)),
            Constraint::NonNegative(e) => Constraint::NonNegative(self.resolve(e)),
        }
        .normalised()
    }

    /// Range of the elements of a variable.
    pub(crate) fn element_range(&self, v: VarId) -> Interval {
        self.var_ranges[v.index()]
    }

    /// Range of an atom.
    pub(crate) fn atom_range(&self, atom: &Atom) -> Interval {
        match atom {
            Atom::Iname(i) => self.ranges[i.index()],
            Atom::Var(v) => self.var_ranges[v.index()],
            Atom::Floor(n, d) => self.range(n).floor_div(*d),
        }
    }

    /// Range of a factor.
    pub(crate) fn factor_range(&self, factor: &Factor) -> Interval {
        match factor {
            Factor::Atom(a) => self.atom_range(a),
            Factor::Remainder(_, d) => Interval::new(0, i128::from(*d) - 1),
        }
    }

    fn interval(&self, e: &Affine) -> Interval {
        let plain = e
            .terms()
            .iter()
            .fold(Interval::point(e.constant_term()), |sum, (a, c)| sum.plus(self.atom_range(a).times(*c)));
        let quotients = e.terms().iter().any(|(a, _)| matches!(a, Atom::Floor(..)));
        if e.terms().len() == 1 || !quotients {
            return plain;
        }
        let (terms, constant) = factors(e);
        let sum = terms
            .iter()
            .fold(Interval::point(constant), |sum, (f, c)| sum.plus(self.factor_range(f).times(*c)));
        plain.meet(sum)
    }

    /// The interval of `e - f`, without making the difference where it needs no remainders.
    fn interval_of_difference(&self, e: &Affine, f: &Affine) -> Interval {
        if [e, f].iter().any(|e| e.terms().iter().any(|(a, _)| matches!(a, Atom::Floor(..)))) {
            return self.interval(&e.minus(f));
        }
        let (mut left, mut right) = (e.terms().iter().peekable(), f.terms().iter().peekable());
        let mut sum = Interval::point(e.constant_term().saturating_sub(f.constant_term()));
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return sum,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let x = if order == Ordering::Greater { None } else { left.next() };
            let y = if order == Ordering::Less { None } else { right.next() };
            let coefficient = |term: Option<&(Atom, i64)>| term.map_or(0, |(_, c)| *c);
            let c = coefficient(x).saturating_sub(coefficient(y));
            if let (Some((atom, _)), true) = (x.or(y), c != 0) {
                sum = sum.plus(self.atom_range(atom).times(c));
            }
        }
    }

    /// Range of a resolved expression: intervals, sharpened by facts where they do not fit 32 bits.
    pub(crate) fn range(&self, e: &Affine) -> Interval {
        let range = self.interval(e);
        if range.fits_i32() { range } else { self.range_by_facts(e) }
    }

    /// Range of a resolved expression: intervals, sharpened by facts.
    pub(crate) fn range_by_facts(&self, e: &Affine) -> Interval {
        let mut range = self.interval(e);
        let depth = self.sharpened.get();
        if depth == SHARPENED {
            return range;
        }
        self.sharpened.set(depth + 1);
        for fact in &self.facts {
            // fact >= 0, so e <= e + k*fact and e >= e - k*fact for k >= 0
            for (atom, f) in fact.terms() {
                let c = e.coefficient(atom);
                if c == 0 || c % f != 0 {
                    continue;
                }
                let k = c / f;
                if k < 0 {
                    range.hi = range.hi.min(self.interval(&e.plus(&fact.times(-k))).hi);
                } else {
                    range.lo = range.lo.max(self.interval(&e.minus(&fact.times(k))).lo);
                }
            }
        }
        self.sharpened.set(depth);
        range
    }

    /// [`Env::range`], cut to 32 bits where elimination proves that it fits: dearer.
    pub(crate) fn proved_range(&self, e: &Affine) -> Interval {
        let mut range = self.range(e);
        let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
        if range.lo < Interval::I32.lo && self.is_non_negative(&e.plus_constant(-least)) {
            range.lo = Interval::I32.lo;
        }
        if range.hi > Interval::I32.hi && self.is_non_negative(&e.times(-1).plus_constant(most)) {
            range.hi = Interval::I32.hi;
        }
        range
    }

    /// Whether a resolved expression is certainly not negative here.
    pub(crate) fn is_non_negative(&self, e: &Affine) -> bool {
        self.interval(e).lo >= 0
            || self.facts.iter().any(|f| self.interval_of_difference(e, f).lo >= 0)
            || kingpost_ir::elimination::implied(&self.relevant(e), e)
    }

    /// Whether a resolved constraint certainly holds here.
    pub(crate) fn holds(&self, c: &Constraint) -> bool {
        match c {
            Constraint::NonNegative(e) => self.is_non_negative(e),
            Constraint::Zero(e) => self.is_non_negative(e) && self.is_non_negative(&e.times(-1)),
        }
    }

    /// Facts and ranges as inequalities, for the atoms that `e` and the facts mention.
    fn relevant(&self, e: &Affine) -> Vec<Affine> {
        let mut atoms: Vec<Atom> = Vec::new();
        for a in self.facts.iter().chain([e]).flat_map(|f| f.terms()).map(|(a, _)| a) {
            if !atoms.contains(a) {
                atoms.push(a.clone());
            }
        }
        let mut known = self.facts.clone();
        for atom in &atoms {
            let range = self.atom_range(atom);
            let one = Affine::from(atom);
            if let Some(lo) = range.finite_lo() {
                known.push(one.plus_constant(lo.saturating_neg()));
            }
            if let Some(hi) = range.finite_hi() {
                known.push(one.times(-1).plus_constant(hi));
            }
            if let Atom::Floor(n, d) = atom {
                // 0 <= n - d*floor(n/d) <= d - 1
                let rest = n.minus(&one.times(*d));
                known.push(rest.times(-1).plus_constant(d - 1));
                known.push(rest);
            }
        }
        known
    }
}

/// What elements of each variable can be: what its type holds, and of a temporary of a work-group
/// or a work-item, whose writes are all here, what all of them are.
fn values(kernel: &Kernel) -> Vec<Interval> {
    let mut written: Vec<Option<Interval>> = vec![None; kernel.vars.len()];
    for insn in kernel.insns.values() {
        let mask = match (&insn.op, &insn.rhs) {
            (WriteOp::Assign, Expr::Binary(BinaryOp::BitAnd, _, mask)) => Some(&**mask),
            _ => None,
        };
        let value = match mask {
            Some(Expr::Int(mask)) if *mask >= 0 => Interval::new(0, i128::from(*mask)),
            Some(_) | None => Interval::ALL,
        };
        let known = &mut written[insn.lhs.var.index()];
        *known = Some(known.map_or(value, |known| known.join(value)));
    }
    let is_own = |v: &Variable| {
        let is_near = matches!(v.space, AddressSpace::Private | AddressSpace::Local | AddressSpace::SubGroup);
        v.kind == VarKind::Temporary && is_near && v.storage.is_none()
    };
    let of = |(v, written): (&Variable, Option<Interval>)| match written.filter(|_| is_own(v)) {
        Some(written) => Interval::of(v.ty).meet(written),
        None => Interval::of(v.ty),
    };
    kernel.vars.values().zip(written).map(of).collect()
}
