//! Constraints of one part of a space, and loops that a split made, joined again.

use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::InameId;

/// A conjunction: what is not negative, and what is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct System {
    pub(super) least: Vec<Affine>,
    pub(super) zero: Vec<Affine>,
}

impl System {
    /// Makes one dimension of a loop over blocks of constant length and the loop inside a block, where only
    /// their joint value matters; says whether there are such loops.
    ///
    /// With `0 <= i < f` and `v = f*o + i`, each `v` is that of one pair; `o + r >= 0` is `v + f*r >= 0`,
    /// and `r - o >= 0` is `f*r + f - 1 - v >= 0`.
    pub(super) fn join_blocks(&mut self, dims: &mut Vec<InameId>) -> bool {
        let pairs = dims.iter().filter_map(|inner| Some((*inner, self.length(*inner)?)));
        let pairs: Vec<_> = pairs.flat_map(|(i, f)| dims.iter().map(move |o| (*o, i, f))).collect();
        for (outer, inner, length) in pairs {
            if let Some(joined) = self.joined(outer, inner, length) {
                self.least = joined;
                dims.retain(|dim| *dim != inner);
                return true;
            }
        }
        false
    }

    /// The number of values of a dimension that starts at 0 and ends at a constant.
    fn length(&self, dim: InameId) -> Option<i64> {
        let own = Affine::iname(dim);
        let mut last = self.least.iter().filter_map(|e| e.plus(&own).as_constant());
        last.next().filter(|_| self.least.contains(&own))?.checked_add(1)
    }

    /// The inequalities with `outer` for the joint value.
    fn joined(&self, outer: InameId, inner: InameId, length: i64) -> Option<Vec<Affine>> {
        let [o, i] = [outer, inner].map(Affine::iname);
        if outer == inner || length < 2 || self.zero.iter().any(|e| e.mentions(outer) || e.mentions(inner)) {
            return None;
        }
        let (mut joined, mut linked) = (Vec::new(), false);
        for e in &self.least {
            let [of_outer, of_inner] = [outer, inner].map(|dim| e.coefficient(&Atom::Iname(dim)));
            let rest = e.minus(&o.times(of_outer)).minus(&i.times(of_inner));
            if rest.mentions(outer) || rest.mentions(inner) {
                return None;
            }
            match (of_outer, of_inner) {
                (0, 0) => joined.push(e.clone()),
                // its own bounds
                (0, _) if *e == i || e.plus(&i).as_constant() == Some(length - 1) => {}
                (1, 0) => joined.push(o.plus(&rest.times(length))),
                (-1, 0) => joined.push(rest.times(length).plus_constant(length - 1).minus(&o)),
                (a, b) if b != 0 && b.checked_mul(length) == Some(a) => {
                    linked = true;
                    joined.push(o.times(b).plus(&rest));
                }
                _ => return None,
            }
        }
        linked.then_some(joined)
    }
}
