//! Loops of samples: extents and shapes.

use super::draw::{Draw, Extent, TABLE_LEN};
use super::plan::RangePlan;
use kingpost_ir::affine::Affine;
use kingpost_ir::domain::{Constraint, Domain};
use kingpost_ir::ids::InameId;
use kingpost_ir::kernel::AxisTag;

impl Draw {
    /// Declares the iname of a loop; its values stay below its extent.
    pub(super) fn range(&mut self, plan: RangePlan) -> (InameId, Extent) {
        let (four, three) = (Extent::Constant(TABLE_LEN), Extent::Constant(3));
        // parametric loops are what most accesses need; an empty loop is rare
        let extents = [
            Extent::N,
            Extent::M,
            Extent::N,
            Extent::M,
            four,
            Extent::N,
            Extent::M,
            Extent::N,
            three,
            Extent::Constant(0),
        ];
        let extent = pick(&extents, plan.extent);
        let (zero, size) = (Affine::constant(0), self.size(extent));
        let outer: Vec<Affine> =
            self.scope.iter().filter(|(_, e)| *e == extent).map(|(i, _)| Affine::iname(*i)).collect();
        let plain = Shape::Whole;
        let free = [plain, plain, plain, Shape::FromOne, plain, Shape::Even, plain, Shape::Split];
        let nested = [plain, Shape::UpTo, plain, Shape::From, Shape::Band, plain, Shape::UpTo, Shape::From];
        let shape = match (self.config.shaped, outer.is_empty()) {
            (false, _) => plain,
            (true, true) => pick(&free, plan.shape),
            // the high bits choose between the lists, so that small picks are simple in both
            (true, false) => pick(if plan.shape < 64 { &free } else { &nested }, plan.shape),
        };
        let last = outer.last().cloned().unwrap_or_default();
        let guard = self.guard(plan.condition);
        let name = self.name("i");
        let iname = self.b.iname(name, |i| {
            let whole = Domain::range(i, &zero, &size).intersect(&guard);
            let i_ = Affine::iname(i);
            match shape {
                Shape::Whole => whole,
                Shape::FromOne => whole.intersect(&Domain::range(i, &Affine::constant(1), &size)),
                Shape::Even => {
                    whole.intersect(&Domain::conjunction([Constraint::equal(&i_.modulo(2), &zero)]))
                }
                Shape::Split => whole.intersect(&Domain::union([
                    vec![Constraint::lt(&i_, &Affine::constant(1))],
                    vec![Constraint::le(&Affine::constant(2), &i_)],
                ])),
                Shape::UpTo => Domain::range(i, &zero, &last.plus_constant(1)).intersect(&guard),
                Shape::From => Domain::range(i, &last, &size).intersect(&guard),
                Shape::Band => {
                    whole.intersect(&Domain::range(i, &last.plus_constant(-1), &last.plus_constant(2)))
                }
            }
        });
        if matches!(
            (extent, shape),
            (Extent::Constant(_), Shape::Whole | Shape::FromOne | Shape::Even | Shape::Split)
        ) && self.config.shaped
            && plan.condition >= 192
        {
            self.b.tag(iname, AxisTag::Unrolled);
        }
        (iname, extent)
    }

    /// A condition under which a loop runs: mostly none, else on a loop around, on parameters, or
    /// on both.
    pub(super) fn guard(&self, pick: u8) -> Domain {
        let (n, m) = (Affine::var(self.n), Affine::var(self.m));
        let around = self.scope.last().map(|(i, extent)| (Affine::iname(*i), self.size(*extent)));
        let (three, one) = (Affine::constant(3), Affine::constant(1));
        let few = Constraint::le(&n, &three);
        let odd = Constraint::equal(&m.modulo(2), &one);
        let (i, size) = around.unwrap_or((m.plus_constant(-1), n.clone()));
        let conditions = match pick % 16 {
            _ if !self.config.shaped => vec![],
            5 => vec![few],
            7 => vec![odd],
            9 => vec![Constraint::lt(&i.plus_constant(1), &size)],
            11 => vec![Constraint::le(&one, &i)],
            13 => vec![Constraint::equal(&i.plus(&n).modulo(3), &one)],
            15 => vec![Constraint::le(&one, &i), few],
            _ => vec![],
        };
        Domain::conjunction(conditions)
    }
}

/// Which values below its extent a loop takes.
#[derive(Clone, Copy)]
enum Shape {
    Whole,
    /// All but the first.
    FromOne,
    Even,
    /// All but one in the middle: a union.
    Split,
    /// Up to the value of the loop of the same extent around it.
    UpTo,
    /// From the value of that loop.
    From,
    /// That value and its neighbours.
    Band,
}

/// The choice a pick stands for; the first if there is none.
pub(super) fn pick<T: Clone>(choices: &[T], pick: u8) -> T {
    choices[usize::from(pick) % choices.len()].clone()
}
