//! The V-cycle, alone and as a preconditioner.

use crate::MultigridError;
use crate::hierarchy::Hierarchy;
use crate::level::At;
use crate::options::Order;
use kingpost_runtime::Buffer;
use kingpost_solve::{Call, Operator, Queue};

impl Hierarchy<'_> {
    /// One V-cycle on a level, for its right-hand side, with a given number of smoothing steps before and
    /// after as [`HierarchyOptions::steps`](crate::HierarchyOptions::steps) has. Returns its
    /// seconds by the device's clock.
    ///
    /// Steps after the coarser level take the colours in the order `after`: backward makes the
    /// cycle symmetric if there are as many before it, forward is that of the publication.
    ///
    /// # Errors
    /// A failing driver.
    ///
    /// # Source
    /// Cui et al. 2024, Algorithm 2.1. On the coarsest level of a square or cube one step of the smoother is
    /// exact.
    pub fn v_cycle(&self, level: usize, after: Order) -> Result<f64, MultigridError> {
        let mut queue = Queue::new();
        self.cycle_in(level, self.at(level), after, &mut queue);
        self.run(&queue)
    }

    /// The launches of a V-cycle on a level, on these vectors of its length.
    pub(crate) fn cycle_in<'a>(&'a self, level: usize, at: At<'a>, after: Order, queue: &mut Queue<'a>) {
        if level == 0 {
            return self.solve_in(at, queue);
        }
        let below = self.at(level - 1);
        let [before, behind] = self.steps();
        (0..before).for_each(|_| self.smooth_in(at, Order::Forward, queue));
        self.residual_in(at, queue);
        self.restrict_in(at, below, queue);
        if let Some(neighbours) = &self.neighbours {
            self.add_residuals(neighbours, level, below, queue);
        }
        self.cycle_in(level - 1, below, after, queue);
        queue.push(self.prolongated(below, at));
        (0..behind).for_each(|_| self.smooth_in(at, after, queue));
    }
}

/// A V-cycle on a level from zero, as an operator on vectors in double precision. It computes in
/// the precision of its hierarchy.
pub struct VCycle<'h, 'd> {
    hierarchy: &'h Hierarchy<'d>,
    level: usize,
    after: Order,
}

impl<'h, 'd> VCycle<'h, 'd> {
    /// V-cycles on the finest level of a hierarchy, whose second smoothing step takes the colours
    /// in the order `after`.
    #[must_use]
    pub const fn new(hierarchy: &'h Hierarchy<'d>, after: Order) -> Self {
        Self { hierarchy, level: hierarchy.levels() - 1, after }
    }

    /// The same on another level, the coarsest being 0.
    #[must_use]
    pub(crate) const fn on(hierarchy: &'h Hierarchy<'d>, level: usize, after: Order) -> Self {
        Self { hierarchy, level, after }
    }
}

impl Operator for VCycle<'_, '_> {
    fn size(&self) -> usize {
        self.hierarchy.at(self.level).slab.nodes(self.hierarchy.element())
    }

    fn apply<'a>(&'a self, x: &'a Buffer, y: &'a Buffer, queue: &mut Queue<'a>) {
        let levels = self.hierarchy;
        let own = levels.at(self.level);
        let n = [("n", self.size())];
        match levels.narrow_and_widen() {
            None => {
                queue.push(levels.cleared(own, y));
                levels.cycle_in(self.level, At { x: y, b: x, ..own }, self.after, queue);
            }
            Some([narrow, widen]) => {
                queue.push(Call::of(narrow, &n, &[("from", x), ("to", own.b)]));
                queue.push(levels.cleared(own, own.x));
                levels.cycle_in(self.level, own, self.after, queue);
                queue.push(Call::of(widen, &n, &[("from", own.x), ("to", y)]));
            }
        }
    }
}
